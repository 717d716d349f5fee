// Each row of docs/operations.md, "The rule for every caller".
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode, ErrorDetailSchema } from "../gen/holdfast/v1/error_pb.js";
import { failureOf, failureOfDetail } from "./clients.js";

function kindOf(code: ErrorCode, retryAfterMs = 0, final = false): string {
  const failure = failureOfDetail({ code, retryAfterMs, final, message: "" });
  return failure.kind === "refused" && failure.settles ? "settled" : failure.kind;
}

test("an error without our detail is unknown, whatever its code", () => {
  for (const code of [Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Internal])
    assert.equal(failureOf(new ConnectError("broken", code)).kind, "unknown");
  assert.equal(failureOf(new Error("socket hang up")).kind, "unknown");
});

test("our detail is read from an error of Connect", () => {
  const error = new ConnectError("", Code.Unavailable, undefined, [
    { desc: ErrorDetailSchema, value: { code: ErrorCode.UNAVAILABLE, retryAfterMs: 500 } }]);
  assert.deepEqual(failureOf(error), { kind: "later", afterMs: 500, message: "" });
});

test("the detail decides, its code last", () => {
  assert.equal(kindOf(ErrorCode.OUTCOME_UNKNOWN, 500), "unknown");
  assert.equal(kindOf(999 as ErrorCode, 500), "unknown");
  assert.equal(kindOf(ErrorCode.INSUFFICIENT_FUNDS, 0, true), "settled");
  assert.equal(kindOf(ErrorCode.SESSION_LOCKED, 1000, true), "settled");
  assert.equal(kindOf(ErrorCode.OPERATION_ID_MISMATCH), "settled");
  for (const code of [ErrorCode.UNAVAILABLE, ErrorCode.DEADLINE_EXCEEDED, ErrorCode.THROTTLED,
    ErrorCode.TXN_CONFLICT, ErrorCode.QUARANTINED, ErrorCode.SESSION_LOCKED])
    assert.equal(kindOf(code, 20), "later");
  for (const code of [ErrorCode.INVALID_ARGUMENT, ErrorCode.UNAUTHENTICATED,
    ErrorCode.OPERATION_EXPIRED])
    assert.equal(kindOf(code), "refused");
});
