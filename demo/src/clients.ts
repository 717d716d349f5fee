// Stock Connect clients of every service, and what each caller needs beside them: fresh operation
// ids, and what kind of failure an error is.
import { randomBytes } from "node:crypto";
import { type Client, Code, ConnectError, type Transport, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { AdminService } from "../gen/holdfast/v1/admin_pb.js";
import { DefinitionService } from "../gen/holdfast/v1/definition_pb.js";
import { DocumentService } from "../gen/holdfast/v1/document_pb.js";
import {
  Action, ErrorCode, type ErrorDetail, ErrorDetailSchema, Outcome,
} from "../gen/holdfast/v1/error_pb.js";
import { FavoritesService } from "../gen/holdfast/v1/favorites_pb.js";
import { LedgerService } from "../gen/holdfast/v1/ledger_pb.js";
import { OperationService } from "../gen/holdfast/v1/operation_service_pb.js";
import { PresenceService } from "../gen/holdfast/v1/presence_pb.js";
import { ProfileService } from "../gen/holdfast/v1/profile_pb.js";
import { SessionService } from "../gen/holdfast/v1/session_pb.js";

export interface Clients {
  admin: Client<typeof AdminService>;
  definition: Client<typeof DefinitionService>;
  document: Client<typeof DocumentService>;
  favorites: Client<typeof FavoritesService>;
  ledger: Client<typeof LedgerService>;
  operation: Client<typeof OperationService>;
  presence: Client<typeof PresenceService>;
  profile: Client<typeof ProfileService>;
  session: Client<typeof SessionService>;
}

export type Protocol = "Connect, JSON, HTTP/1.1" | "Connect, binary, HTTP/2" | "gRPC";

function transportOf(protocol: Protocol, baseUrl: string): Transport {
  switch (protocol) {
    case "Connect, JSON, HTTP/1.1":
      return createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false });
    case "Connect, binary, HTTP/2":
      return createConnectTransport({ baseUrl, httpVersion: "2" });
    case "gRPC":
      return createGrpcTransport({ baseUrl });
  }
}

export function connect(protocol: Protocol, baseUrl: string): Clients {
  const transport = transportOf(protocol, baseUrl);
  return {
    admin: createClient(AdminService, transport),
    definition: createClient(DefinitionService, transport),
    document: createClient(DocumentService, transport),
    favorites: createClient(FavoritesService, transport),
    ledger: createClient(LedgerService, transport),
    operation: createClient(OperationService, transport),
    presence: createClient(PresenceService, transport),
    profile: createClient(ProfileService, transport),
    session: createClient(SessionService, transport),
  };
}

// A UUIDv7: the time in its first 48 bits lets a shard tell an old id from a new one.
export function opId(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
    .join("-");
}

// What a caller has to tell apart: docs/operations.md, "The rule for every caller". `later`: this try
// did nothing, send the same again after a pause. `refused` with `settles`: what became of the
// operation, not only of this try.
export type Failure =
  | { kind: "refused"; code: ErrorCode; settles: boolean; message: string }
  | { kind: "later"; afterMs: number; message: string }
  | { kind: "unknown"; message: string };

export type Detail = Pick<ErrorDetail, "code" | "message" | "retryAfterMs" | "outcome" | "action">;

export function failureOfDetail({ code, message, retryAfterMs, outcome, action }: Detail): Failure {
  if (outcome === Outcome.UNKNOWN || action === Action.UNSPECIFIED)
    return { kind: "unknown", message };
  if (action === Action.RETRY_SAME) return { kind: "later", afterMs: retryAfterMs, message };
  // The id of an operation that stands for another request was never this one's.
  const settles = outcome === Outcome.REFUSED || code === ErrorCode.OPERATION_ID_MISMATCH;
  return { kind: "refused", code, settles, message };
}

export function failureOf(error: unknown): Failure {
  const connectError = ConnectError.from(error);
  const [detail] = connectError.findDetails(ErrorDetailSchema);
  if (detail !== undefined)
    return failureOfDetail(detail);
  // No detail: the client itself gave up, or its connection broke. The call may have been
  // carried out: that is no failure, it is an unknown outcome.
  return { kind: "unknown", message: `${Code[connectError.code]}: ${connectError.rawMessage}` };
}
