// Stock Connect clients (connect-node, connect-web) in every protocol they speak.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { LedgerService } from "./gen/holdfast/v1/ledger_pb.js";
import { OperationService } from "./gen/holdfast/v1/operation_pb.js";
import { ProfileService } from "./gen/holdfast/v1/profile_pb.js";
import { SessionService, StartMode } from "./gen/holdfast/v1/session_pb.js";
import { ErrorCode, ErrorDetailSchema } from "./gen/holdfast/v1/error_pb.js";
import { isStub, opId, transports } from "./client.mjs";
import { grant, hold, refusals } from "./refusals.mjs";

async function failure(promise, wanted = "an error") {
  try {
    await promise;
  } catch (error) {
    return ConnectError.from(error);
  }
  assert.fail(`the call succeeded, ${wanted} was expected`);
}

// ErrorCode -> Connect code, as idl/holdfast/v1/error.proto states it.
const codes = new Map([
  [ErrorCode.INVALID_ARGUMENT, Code.InvalidArgument],
  [ErrorCode.NOT_FOUND, Code.NotFound],
  [ErrorCode.SESSION_LOCKED, Code.Aborted],
  [ErrorCode.SESSION_LOST, Code.FailedPrecondition],
  [ErrorCode.VERSION_CONFLICT, Code.Aborted],
  [ErrorCode.INSUFFICIENT_FUNDS, Code.FailedPrecondition],
  [ErrorCode.ITEM_NOT_HELD, Code.FailedPrecondition],
  [ErrorCode.CAPACITY_FULL, Code.FailedPrecondition],
  [ErrorCode.THROTTLED, Code.ResourceExhausted],
  [ErrorCode.SCHEMA_TOO_NEW, Code.FailedPrecondition],
  [ErrorCode.QUARANTINED, Code.FailedPrecondition],
  [ErrorCode.OPERATION_ID_MISMATCH, Code.AlreadyExists],
  [ErrorCode.OPERATION_EXPIRED, Code.FailedPrecondition],
  [ErrorCode.OPERATION_ABORTED, Code.Aborted],
  [ErrorCode.TXN_CONFLICT, Code.Aborted],
  [ErrorCode.VERSION_LOST, Code.DataLoss],
  [ErrorCode.OUTCOME_UNKNOWN, Code.Unknown],
  [ErrorCode.UNAVAILABLE, Code.Unavailable],
  [ErrorCode.UNAUTHENTICATED, Code.Unauthenticated],
  [ErrorCode.PERMISSION_DENIED, Code.PermissionDenied],
  [ErrorCode.UNIMPLEMENTED, Code.Unimplemented],
  [ErrorCode.INTERNAL, Code.Internal],
  [ErrorCode.DEADLINE_EXCEEDED, Code.DeadlineExceeded],
  [ErrorCode.SERVER_EXPIRED, Code.FailedPrecondition],
  [ErrorCode.ALREADY_REVERSED, Code.FailedPrecondition],
  [ErrorCode.NOT_REVERSIBLE, Code.FailedPrecondition],
  [ErrorCode.RESERVATION_CLOSED, Code.FailedPrecondition],
  [ErrorCode.RESERVATION_EXPIRED, Code.FailedPrecondition],
]);

for (const [name, transport] of Object.entries(transports)) {
  const ledger = createClient(LedgerService, transport);
  const session = createClient(SessionService, transport);

  test(`${name}: unary calls`, async () => {
    const granted = await ledger.grant(grant(`c-${opId()}`));
    assert.ok(granted.write.replicasFsynced >= 1);
    assert.ok(granted.write.dot.epoch >= 1n);
    assert.equal(granted.balances[0].currency, "gold");
    const read = await ledger.getBalances({ playerId: "c-nobody" });
    assert.ok(read.asOf !== undefined);
    const registered = await session.registerServer({ name: "conformance" });
    assert.match(registered.incarnation, /^\d+-\d+$/);
  });

  test(`${name}: a large batch`, async () => {
    const requests = Array.from({ length: 300 }, (_, i) => grant(`c-batch-${i}`));
    const { results } = await ledger.batchGrant({ requests });
    assert.equal(results.length, 300);
    assert.ok(results.every((result) => result.outcome.case === "response"));
  });

  test(`${name}: many calls at once`, async () => {
    const calls = Array.from({ length: 100 }, (_, i) => ledger.grant(grant(`c-many-${i}`)));
    for (const answer of await Promise.all(calls)) assert.ok(answer.ledgerSeq > 0n);
  });

  // The stub answers with every code there is, the router with those that it can be made to give.
  if (!isStub) test(`${name}: typed errors of a router`, async () => {
    const operation = createClient(OperationService, transport);
    const profile = createClient(ProfileService, transport);
    for (const [errorCode, provoke] of await refusals({ ledger, session, operation, profile })) {
      const error = await failure(provoke(), ErrorCode[errorCode]);
      assert.equal(error.code, codes.get(errorCode), `${ErrorCode[errorCode]}: ${error.message}`);
      assert.ok(error.rawMessage.length > 0);
      const [detail] = error.findDetails(ErrorDetailSchema);
      assert.equal(detail.code, errorCode, error.message);
    }
  });
  else test(`${name}: typed errors`, async () => {
    for (const [errorCode, code] of codes) {
      const error = await failure(ledger.grant(grant(`fail:${errorCode}`)));
      assert.equal(error.code, code, ErrorCode[errorCode]);
      assert.equal(error.rawMessage, 'as asked: "100%" \u2713');
      const [detail] = error.findDetails(ErrorDetailSchema);
      assert.equal(detail.code, errorCode);
      assert.equal(detail.field, "player_id");
      assert.equal(detail.retryAfterMs, 1500);
    }
  });

  // A StartSession with WAIT is what takes long: it is answered before its deadline, or cancelled.
  if (!isStub) test(`${name}: deadline and cancel at a router`, async () => {
    const { player, server } = await hold(session);
    const wait = (options) => failure(session.startSession(
      { playerId: player, opId: opId(), incarnation: server, mode: StartMode.WAIT }, options));
    const late = await wait({ timeoutMs: 1000 });
    assert.ok([Code.Aborted, Code.DeadlineExceeded].includes(late.code), late.message);
    const abort = new AbortController();
    const call = wait({ signal: abort.signal });
    setTimeout(() => abort.abort(), 100);
    assert.equal((await call).code, Code.Canceled);
  });
  else test(`${name}: deadline and cancel`, async () => {
    const late = await failure(ledger.grant(grant("silent"), { timeoutMs: 100 }));
    assert.equal(late.code, Code.DeadlineExceeded);
    const abort = new AbortController();
    const call = failure(ledger.grant(grant("silent"), { signal: abort.signal }));
    setTimeout(() => abort.abort(), 30);
    assert.equal((await call).code, Code.Canceled);
  });
}
