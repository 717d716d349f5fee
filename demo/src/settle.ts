// Calls that end: each mutation is sent under one op_id until it is acknowledged, refused, or
// sealed as "never". An unknown outcome is never taken for a failure.
import { setTimeout as sleep } from "node:timers/promises";
import { ErrorCode } from "../gen/holdfast/v1/error_pb.js";
import { OperationState, type WriteInfo } from "../gen/holdfast/v1/operation_pb.js";
import { type Clients, type Failure, failureOf } from "./clients.js";
import type { Entry, Journal } from "./journal.js";

const TRIES = 40;

export interface Writer {
  clients: Clients;
  journal: Journal;
}

// Asks what became of the operation and, if nothing did, sees to it that nothing ever will.
export async function settle(writer: Writer, entry: Entry): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const { operation } = await writer.clients.operation.resolveOperation(
        { entity: `player:${entry.player}`, opId: entry.opId, seal: true }, { timeoutMs: 5000 });
      switch (operation?.state) {
        case OperationState.COMMITTED:
          writer.journal.settledCommitted++;
          return writer.journal.acknowledge(entry, false);
        case OperationState.REFUSED:
          return refuse(writer.journal, entry, operation.refusal?.code);
        case OperationState.ABORTED:
        case OperationState.EXPIRED:
          writer.journal.settledAborted++;
          entry.answer = "aborted";
          return;
      }
    } catch (error) {
      failureOf(error); // Sealing may be repeated at will.
    }
    await sleep(100);
  }
  throw new Error(`${entry.opId} of ${entry.player} could not be settled`);
}

function refuse(journal: Journal, entry: Entry, code: ErrorCode | undefined): void {
  if (code === ErrorCode.OPERATION_ID_MISMATCH) {
    // The id stands for another request, whose entry keeps its own answer.
    journal.mismatchesRefused++;
    return;
  }
  if (code === ErrorCode.SESSION_LOST && entry.stale) journal.staleRefused++;
  if (entry.answer !== "acknowledged") entry.answer = "refused";
}

// What to do when the outcome is unknown: send the same operation again until it is known, or
// give it up for good. A purchase must be granted in the end; a match reward may be given up here
// and paid under a new version.
export type WhenUnknown = "repeat" | "seal";

// What a failure means for one operation. True: send it again.
export async function onFailure(writer: Writer, entry: Entry, failure: Failure,
  whenUnknown: WhenUnknown): Promise<boolean> {
  switch (failure.kind) {
    case "later":
      await sleep(failure.afterMs);
      return true;
    case "unknown":
      writer.journal.unknown++;
      entry.doubtful = true;
      return settleOrRepeat(writer, entry, whenUnknown);
    case "refused":
      // Said of this try alone: it does not make an earlier one known.
      if (entry.doubtful && !failure.settles) return settleOrRepeat(writer, entry, whenUnknown);
      refuse(writer.journal, entry, failure.code);
      return false;
  }
}

async function settleOrRepeat(writer: Writer, entry: Entry, whenUnknown: WhenUnknown)
  : Promise<boolean> {
  if (whenUnknown === "repeat") {
    await sleep(50);
    return true;
  }
  await settle(writer, entry);
  return false;
}

// Sends `call` under the entry's op_id until its outcome is definite; its answer if acknowledged.
export async function carryOut<T extends { write?: WriteInfo }>(
  writer: Writer, entry: Entry, whenUnknown: WhenUnknown, call: () => Promise<T>)
  : Promise<T | undefined> {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const answer = await call();
      writer.journal.acknowledge(entry, answer.write?.duplicate ?? false);
      return answer;
    } catch (error) {
      if (!(await onFailure(writer, entry, failureOf(error), whenUnknown))) return undefined;
    }
  }
  throw new Error(`${entry.opId} of ${entry.player} was put off ${TRIES} times`);
}
