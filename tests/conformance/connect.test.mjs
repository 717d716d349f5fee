// Stock Connect clients (connect-node, connect-web) in every protocol they speak.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { AdminService, IncidentKind } from "./gen/holdfast/v1/admin_pb.js";
import { LedgerService } from "./gen/holdfast/v1/ledger_pb.js";
import { OperationService } from "./gen/holdfast/v1/operation_service_pb.js";
import { ProfileService } from "./gen/holdfast/v1/profile_pb.js";
import { SessionService, StartMode } from "./gen/holdfast/v1/session_pb.js";
import { Action, ErrorCode, ErrorDetailSchema, Outcome } from "./gen/holdfast/v1/error_pb.js";
import { isStub, opId, transports } from "./client.mjs";
import { grant, hold, refusals } from "./refusals.mjs";

// In the details, and in headers or trailers for those who read none.
function decides(error, detail) {
  assert.notEqual(detail.action, Action.UNSPECIFIED);
  assert.notEqual(detail.outcome, Outcome.UNSPECIFIED);
  assert.equal(error.metadata.get("holdfast-error"), ErrorCode[detail.code].toLowerCase());
  assert.equal(error.metadata.get("holdfast-action"), Action[detail.action].toLowerCase());
}

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
  [ErrorCode.TOO_LARGE, Code.ResourceExhausted],
  [ErrorCode.CANCELED, Code.Canceled],
  [ErrorCode.OUT_OF_RANGE, Code.OutOfRange],
]);

// What a stream tells of that operation. Leaving the loop alone would not end the call.
async function incidentOf(admin, wanted) {
  const abort = new AbortController();
  try {
    for await (const message of admin.watchIncidents({}, { signal: abort.signal })) {
      const told = message.incidents.find((incident) => incident.opId === wanted);
      if (told) return told;
    }
  } finally {
    abort.abort();
  }
  assert.fail("the stream ended before it told the incident");
}

for (const [name, transport] of Object.entries(transports)) {
  const admin = createClient(AdminService, transport);
  const ledger = createClient(LedgerService, transport);
  const session = createClient(SessionService, transport);

  test(`${name}: unary calls`, async () => {
    const granted = await ledger.grant(grant(`c-${opId()}`));
    assert.ok(granted.write.replicasFsynced >= 1);
    assert.match(granted.write.asOf, /^c1\.[\w-]+$/);
    assert.equal(granted.balances[0].currency, "gold");
    const read = await ledger.getBalances({ playerId: "c-stranger" });
    assert.match(read.asOf, /^c1\./);
    const registered = await session.registerServer({ name: "conformance" });
    assert.match(registered.incarnation, /^\d+-\d+$/);
  });

  test(`${name}: a large batch`, async () => {
    const requests = Array.from({ length: 300 }, (_, i) => grant(`c-batch-${i}`));
    const { results } = await ledger.batchGrant({ requests });
    assert.equal(results.length, 300);
    assert.ok(results.every((result) => result.outcome.case === "response"));
  });

  test(`${name}: what is too large is resource_exhausted`, async () => {
    const late = await failure(ledger.grant(grant("c-large", { reason: "x".repeat(5_000_000) })));
    assert.equal(late.code, Code.ResourceExhausted, late.message);
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
      decides(error, detail);
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
      assert.equal(detail.retryAfterMs, detail.action === Action.RETRY_SAME ? 1500 : 0);
      decides(error, detail);
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

  if (!isStub) test(`${name}: a stream of incidents from a router`, async () => {
    const twice = grant(`c-twice-${opId()}`);
    const told = incidentOf(admin, twice.opId);
    await ledger.grant(twice);
    await ledger.grant(twice);
    const incident = await told;
    assert.equal(incident.kind, IncidentKind.DUPLICATE_ATTEMPT);
    assert.equal(incident.playerId, twice.playerId);
    const failed = await failure((async () => {
      for await (const _ of admin.watchIncidents({ cursor: "not one" })) assert.fail("a message");
    })());
    assert.equal(failed.code, Code.InvalidArgument);
  });
  else test(`${name}: a stream ends well, in an error, or when its reader goes`, async () => {
    const numbers = [];
    for await (const message of admin.watchIncidents({})) {
      assert.equal(message.incidents[0].opId, "admin:\u2713");
      numbers.push(message.incidents[0].number);
    }
    assert.deepEqual(numbers, [1n, 2n, 3n]);
    const heard = [];
    const error = await failure((async () => {
      for await (const message of admin.watchIncidents({ cursor: `fail:${ErrorCode.THROTTLED}` }))
        heard.push(message);
    })());
    assert.equal(heard.length, 3);
    assert.equal(error.code, Code.ResourceExhausted);
    assert.equal(error.findDetails(ErrorDetailSchema)[0].retryAfterMs, 1500);
    const abort = new AbortController();
    const cancelled = await failure((async () => {
      for await (const { incidents } of admin.watchIncidents({ cursor: "silent" }, { signal: abort.signal }))
        if (incidents[0].number === 3n) abort.abort();
    })());
    assert.equal(cancelled.code, Code.Canceled);
  });
}
