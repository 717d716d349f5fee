// Refusals that a real router gives, one way to provoke each. Fields as connect-node takes them.
import { ErrorCode } from "./gen/holdfast/v1/error_pb.js";
import { StartMode } from "./gen/holdfast/v1/session_pb.js";
import { opId, opIdAt } from "./client.mjs";

export const system = "system:payments";
export const unheld = "unheld";
export const held = (token) => `session:${token}`;
export const gold = (amount) => [{ currency: "gold", amount }];

export const grant = (playerId, extra = {}) => ({
  playerId, opId: opId(), authority: system, reason: "conformance \u{1F600}",
  currencies: gold(5n), ...extra,
});

// A player that a server of its own holds; `server` beside it is another one.
export async function hold(session) {
  const player = `c-held-${opId()}`;
  const { incarnation } = await session.registerServer({ name: "holder" });
  const { incarnation: server } = await session.registerServer({ name: "other" });
  const { token } = await session.startSession({ playerId: player, opId: opId(), incarnation });
  return { player, token, incarnation, server };
}

// Nodes hear of an unregistered server from etcd's watch: a moment after its own call was answered.
async function untilRefused(call, tries = 200) {
  for (let i = 0; i < tries; i++) {
    await call();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// [ErrorCode, call] for each; a call must fail with an error of that code. `c`: one client per
// service.
export async function refusals(c) {
  const { player, token, incarnation, server } = await hold(c.session);
  const free = `c-free-${opId()}`;
  const once = grant(free);
  const sealed = opId();
  const edit = (playerId, more) => ({ playerId, opId: opId(), authority: unheld,
    edits: [{ name: "a", edit: { case: "replace", value: "{}" }, schemaVersion: 2, ...more }] });
  const start = (playerId, server_, mode) => c.session.startSession({
    playerId, opId: opId(), incarnation: server_, mode });
  await c.ledger.grant(once);
  await c.profile.updateProfile(edit(free));
  await c.operation.resolveOperation({ entity: `player:${free}`, opId: sealed, seal: true });
  const gone = await c.session.registerServer({ name: "gone" });
  await c.session.unregisterServer({ incarnation: gone.incarnation });
  return [
    [ErrorCode.INVALID_ARGUMENT, () => c.ledger.grant(grant(free, { currencies: gold(-1n) }))],
    [ErrorCode.SESSION_LOCKED, () => start(player, server, StartMode.FAIL)],
    [ErrorCode.SESSION_LOCKED, () => c.profile.updateProfile(edit(player))],
    [ErrorCode.SESSION_LOST, () => c.profile.updateProfile(
      { ...edit(player), authority: held(`${incarnation}-99`) })],
    [ErrorCode.VERSION_CONFLICT, () => c.profile.updateProfile(edit(free, { ifVersion: 7n }))],
    [ErrorCode.SCHEMA_TOO_NEW, () => c.profile.updateProfile(edit(free, { schemaVersion: 1 }))],
    [ErrorCode.INSUFFICIENT_FUNDS, () => c.ledger.spend(
      { ...grant(free), authority: unheld, currencies: gold(6n) })],
    [ErrorCode.CAPACITY_FULL, () => c.ledger.grant(
      grant(free, { currencies: gold(BigInt(Number.MAX_SAFE_INTEGER)) }))],
    [ErrorCode.OPERATION_ID_MISMATCH, () => c.ledger.grant({ ...once, currencies: gold(6n) })],
    [ErrorCode.OPERATION_EXPIRED, () => c.ledger.grant(
      grant(free, { opId: opIdAt(Date.now() - 8 * 86400000) }))],
    [ErrorCode.OPERATION_ABORTED, () => c.ledger.grant(grant(free, { opId: sealed }))],
    [ErrorCode.PERMISSION_DENIED, () => c.ledger.spend(grant(free))],
    [ErrorCode.SERVER_EXPIRED, () => untilRefused(
      () => start(`c-none-${opId()}`, gone.incarnation, StartMode.FAIL))],
  ];
}
