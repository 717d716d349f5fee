// join -> grant -> leave over gRPC with @grpc/grpc-js; the .proto files are loaded as they are.
// HOLDFAST_ENDPOINT names the router; the first argument the player.
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const idl = fileURLToPath(new URL("../../../idl", import.meta.url));
const { holdfast } = grpc.loadPackageDefinition(loadSync(
  ["holdfast/v1/session.proto", "holdfast/v1/ledger.proto"],
  { includeDirs: [idl], longs: String, enums: String, defaults: true }));
const address = new URL(process.env.HOLDFAST_ENDPOINT ?? "http://127.0.0.1:7400").host;
const insecure = grpc.credentials.createInsecure();
const sessions = new holdfast.v1.SessionService(address, insecure);
const ledger = new holdfast.v1.LedgerService(address, insecure);
const playerId = process.argv[2] ?? "grpc-js-player";

function call(service, method, request) {
  const deadline = Date.now() + 10000;
  return new Promise((resolve, reject) => service[method](request, { deadline },
    (error, answer) => (error ? reject(error) : resolve(answer))));
}

// A UUIDv7: 48 bits of time, then random.
function opId() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const { incarnation } = await call(sessions, "RegisterServer", { name: "grpc-js-example" });

// Join: the answer carries the token for every later write, and the whole profile.
const joined = await call(sessions, "StartSession",
  { playerId, opId: opId(), incarnation, mode: "START_MODE_STEAL" });
const authority = `session:${joined.token}`;
console.log(`joined: version ${joined.profile.version}, fence ${joined.fence}`);

// Grant. Sent twice under one op_id, as after a lost answer: carried out once.
const grant = { playerId, opId: opId(), authority, reason: "match_reward",
  currencies: [{ currency: "gold", amount: 100 }] };
const granted = await call(ledger, "Grant", grant);
const again = await call(ledger, "Grant", grant);
console.log(`granted: balance ${granted.balances[0].amount}, on ` +
  `${granted.write.replicasFsynced} disks; again: duplicate ${again.write.duplicate}`);

// Leave: a last save and the release, in one entry.
await call(sessions, "EndSession", { playerId, opId: opId(), authority,
  edits: [{ name: "progression", schemaVersion: 1,
    merge: JSON.stringify({ last_map: "harbour" }) }] });
await call(sessions, "UnregisterServer", { incarnation });
const { balances } = await call(ledger, "GetBalances", { playerId });
console.log(`balance: ${balances.map((b) => `${b.currency} ${b.amount}`).join(", ")}`);
sessions.close();
ledger.close();
