// Each row of docs/operations.md, "The rule for every caller".
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { Action, ErrorCode, ErrorDetailSchema, Outcome } from "../gen/holdfast/v1/error_pb.js";
import { failureOf, failureOfDetail } from "./clients.js";

function kindOf(code: ErrorCode, outcome: Outcome, action: Action, retryAfterMs = 0): string {
  const failure = failureOfDetail({ code, retryAfterMs, outcome, action, message: "" });
  return failure.kind === "refused" && failure.settles ? "settled" : failure.kind;
}

test("an error without our detail is unknown, whatever its code", () => {
  for (const code of [Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Internal])
    assert.equal(failureOf(new ConnectError("broken", code)).kind, "unknown");
  assert.equal(failureOf(new Error("socket hang up")).kind, "unknown");
});

test("our detail is read from an error of Connect", () => {
  const error = new ConnectError("", Code.Unavailable, undefined, [
    { desc: ErrorDetailSchema, value: { code: ErrorCode.UNAVAILABLE,
      outcome: Outcome.NOT_APPLIED, action: Action.RETRY_SAME, retryAfterMs: 500 } }]);
  assert.deepEqual(failureOf(error), { kind: "later", afterMs: 500, message: "" });
});

test("the outcome and the action decide, the code last", () => {
  const { NOT_APPLIED, REFUSED, UNKNOWN } = Outcome;
  assert.equal(kindOf(ErrorCode.OUTCOME_UNKNOWN, UNKNOWN, Action.RETRY_SAME, 500), "unknown");
  assert.equal(kindOf(ErrorCode.INSUFFICIENT_FUNDS, REFUSED, Action.RAISE_ATTEMPT), "settled");
  assert.equal(kindOf(ErrorCode.SESSION_LOCKED, REFUSED, Action.RAISE_ATTEMPT, 1000), "settled");
  assert.equal(kindOf(ErrorCode.SESSION_LOST, REFUSED, Action.STOP_WRITING), "settled");
  assert.equal(kindOf(ErrorCode.OPERATION_ID_MISMATCH, NOT_APPLIED, Action.NEVER), "settled");
  assert.equal(kindOf(ErrorCode.UNAVAILABLE, NOT_APPLIED, Action.RETRY_SAME, 20), "later");
  for (const action of [Action.FIX, Action.NEVER, Action.REREAD, Action.REGISTER])
    assert.equal(kindOf(ErrorCode.INVALID_ARGUMENT, NOT_APPLIED, action), "refused");
});

test("a code of a later version needs no table", () => {
  const code = 999 as ErrorCode;
  assert.equal(kindOf(code, Outcome.NOT_APPLIED, Action.RETRY_SAME, 20), "later");
  assert.equal(kindOf(code, Outcome.REFUSED, Action.NEVER), "settled");
  assert.equal(kindOf(code, Outcome.UNSPECIFIED, Action.UNSPECIFIED), "unknown");
});
