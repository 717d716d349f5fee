// join -> grant -> leave with @connectrpc/connect-node. HOLDFAST_ENDPOINT names the router; the
// first argument the player.
import { randomBytes } from "node:crypto";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Action, ErrorDetailSchema } from "./gen/holdfast/v1/error_pb.js";
import { LedgerService } from "./gen/holdfast/v1/ledger_pb.js";
import { SessionService, StartMode } from "./gen/holdfast/v1/session_pb.js";

const baseUrl = process.env.HOLDFAST_ENDPOINT ?? "http://127.0.0.1:7400";
const playerId = process.argv[2] ?? "typescript-player";
const transport = createConnectTransport({ baseUrl, httpVersion: "2", defaultTimeoutMs: 10000 });
const sessions = createClient(SessionService, transport);
const ledger = createClient(LedgerService, transport);

// A UUIDv7: 48 bits of time, then random.
function opId(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

// The same call under the same op_id until its outcome is known: the error's action decides, and an
// error without one (a broken connection, a proxy's) is an unknown outcome. What is not to be sent again
// is thrown. Give up only by OperationService.ResolveOperation with seal.
async function untilKnown<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
      const action = detail?.action ?? Action.RETRY_SAME;
      if (action !== Action.RETRY_SAME || tries === 5) throw error;
      await new Promise((done) => setTimeout(done, detail?.retryAfterMs || 100));
    }
  }
}

const { incarnation } = await sessions.registerServer({ name: "typescript-example" });

// Join: the answer carries the token for every later write, and the whole profile.
const startId = opId();
const joined = await untilKnown(() => sessions.startSession(
  { playerId, opId: startId, incarnation, mode: StartMode.STEAL }));
const authority = `session:${joined.token}`;
console.log(`joined: version ${joined.profile!.version}, fence ${joined.fence}`);

// Grant. Sent twice under one op_id, as after a lost answer: carried out once.
const grant = { playerId, opId: opId(), authority, reason: "match_reward",
  currencies: [{ currency: "gold", amount: 100n }] };
const granted = await untilKnown(() => ledger.grant(grant));
const again = await untilKnown(() => ledger.grant(grant));
console.log(`granted: balance ${granted.balances[0]!.amount}, on ` +
  `${granted.write!.replicasFsynced} disks; again: duplicate ${again.write!.duplicate}`);

// Leave: a last save and the release, in one entry.
const endId = opId();
await untilKnown(() => sessions.endSession({ playerId, opId: endId, authority,
  edits: [{ name: "progression", schemaVersion: 1,
    edit: { case: "merge", value: JSON.stringify({ last_map: "harbour" }) } }] }));
await sessions.unregisterServer({ incarnation });
const { balances } = await ledger.getBalances({ playerId });
console.log(`balance: ${balances.map((b) => `${b.currency} ${b.amount}`).join(", ")}`);
process.exit(0); // The connection would keep the process until it idles out.
