// The stock gRPC client (grpc-js) with definitions loaded at run time, and grpc.health.v1.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { apiKey, isStub, opId, url } from "./client.mjs";

const idl = fileURLToPath(new URL("../../idl", import.meta.url));
const definition = loader.loadSync(["holdfast/v1/ledger.proto", "holdfast/v1/admin.proto"], {
  includeDirs: [idl], longs: String, enums: String, defaults: true });
const { holdfast } = grpc.loadPackageDefinition(definition);
const target = new URL(url).host;
const ledger = new holdfast.v1.LedgerService(target, grpc.credentials.createInsecure());
const admin = new holdfast.v1.AdminService(target, grpc.credentials.createInsecure());
after(() => [ledger, admin].forEach((client) => client.close()));

function call(client, method, request, options = {}, headers = {}) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  if (apiKey) metadata.set("authorization", `Bearer ${apiKey}`);
  return new Promise((resolve, reject) => {
    client[method](request, metadata, options, (error, answer) =>
      error ? reject(error) : resolve(answer));
  });
}

const grant = (playerId) => ({
  playerId, opId: opId(), authority: "system:payments",
  currencies: [{ currency: "gold", amount: "9007199254740000" }], reason: "conformance",
});

test("grpc-js: unary calls, many at once", async () => {
  const calls = Array.from({ length: 200 }, (_, i) => call(ledger, "Grant", grant(`g-${opId()}${i}`)));
  for (const answer of await Promise.all(calls)) assert.ok(BigInt(answer.ledgerSeq) > 0n);
});

test("grpc-js: errors carry google.rpc.Status", async () => {
  const failing = isStub ? call(ledger, "Grant", grant("fail:6"))
    : call(ledger, "Spend", { ...grant("g-poor"), authority: "unheld" });
  await assert.rejects(failing, (error) => {
    assert.equal(error.code, grpc.status.FAILED_PRECONDITION);
    if (isStub) assert.equal(error.details, 'as asked: "100%" \u2713');
    const [status] = error.metadata.get("grpc-status-details-bin");
    assert.equal(status[0], 8); // field 1, varint
    assert.equal(status[1], grpc.status.FAILED_PRECONDITION);
    assert.ok(status.includes("type.googleapis.com/holdfast.v1.ErrorDetail"));
    assert.deepEqual(error.metadata.get("holdfast-error"), ["insufficient_funds"]);
    assert.deepEqual(error.metadata.get("holdfast-action"), [isStub ? "reread" : "raise_attempt"]);
    return true;
  });
});

if (!isStub) test("grpc-js: metadata says the authority and the op_id", async () => {
  const { opId: _, authority: __, ...request } = grant(`g-${opId()}`);
  const headers = { "holdfast-authority": "system:payments", "idempotency-key": "order-17" };
  const first = await call(ledger, "Grant", request, {}, headers);
  const again = await call(ledger, "Grant", { ...request, opId: "key:order-17" }, {}, headers);
  assert.deepEqual([first.write.duplicate, again.write.duplicate], [false, true]);
  await assert.rejects(call(ledger, "Grant", { ...request, opId: opId() }, {}, headers),
    { code: grpc.status.INVALID_ARGUMENT });
});

test("grpc-js: deadlines", async () => {
  // A router answers before the deadline, unless it is shorter than the way there.
  const [player, ms] = isStub ? ["silent", 100] : [`g-${opId()}`, 0];
  await assert.rejects(
    call(ledger, "Grant", grant(player), { deadline: Date.now() + ms }),
    { code: grpc.status.DEADLINE_EXCEEDED });
});

test("grpc-js: a stream of incidents, its deadline and its cancellation", async () => {
  const watch = (cursor, options = {}) => admin.WatchIncidents({ cursor }, options);
  const twice = grant(`g-${opId()}`);
  const stream = watch(isStub ? "silent" : "");
  const told = new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("data", ({ incidents }) => {
      for (const incident of incidents) if (isStub || incident.opId === twice.opId) resolve(incident);
    });
  });
  if (!isStub) for (const _ of [1, 2]) await call(ledger, "Grant", twice);
  const incident = await told;
  assert.equal(incident.kind, isStub ? "INCIDENT_KIND_CONTAINED" : "INCIDENT_KIND_DUPLICATE_ATTEMPT");
  const ended = new Promise((resolve) => stream.removeAllListeners("error").on("error", resolve));
  stream.cancel();
  assert.equal((await ended).code, grpc.status.CANCELLED);
  const late = watch(isStub ? "silent" : "", { deadline: Date.now() + 300 });
  late.on("data", () => {});
  const { code } = await new Promise((resolve) => late.on("error", resolve));
  assert.equal(code, grpc.status.DEADLINE_EXCEEDED);
});

test("grpc-js: unknown methods", async () => {
  const Unknown = grpc.makeGenericClientConstructor({
    Nope: { path: "/holdfast.v1.LedgerService/Nope", requestStream: false, responseStream: false,
            requestSerialize: (b) => b, responseDeserialize: (b) => b },
  }, "Unknown");
  const unknown = new Unknown(target, grpc.credentials.createInsecure());
  await assert.rejects(call(unknown, "Nope", Buffer.alloc(0)), { code: grpc.status.UNIMPLEMENTED });
  unknown.close();
});

test("grpc-js: compressed requests and answers", async () => {
  const client = (algorithm) => new holdfast.v1.LedgerService(
    target, grpc.credentials.createInsecure(),
    { "grpc.default_compression_algorithm": algorithm });
  const gzip = client(2);
  const deflate = client(1);
  assert.ok(BigInt((await call(gzip, "Grant", grant(`g-${opId()}`))).ledgerSeq) > 0n);
  const requests = Array.from({ length: 300 }, (_, i) => grant(`g-gzip-${i}`));
  const { results } = await call(gzip, "BatchGrant", { requests });
  assert.equal(results.length, 300);
  await assert.rejects(call(deflate, "Grant", grant("g-deflate")), (error) => {
    assert.equal(error.code, grpc.status.UNIMPLEMENTED);
    assert.match(error.details, /send gzip or identity/);
    return true;
  });
  [gzip, deflate].forEach((each) => each.close());
});

test("grpc-js: what is too large is RESOURCE_EXHAUSTED", async () => {
  const large = { ...grant("g-large"), reason: "x".repeat(5_000_000) };
  await assert.rejects(call(ledger, "Grant", large), { code: grpc.status.RESOURCE_EXHAUSTED });
});

test("grpc.health.v1", async () => {
  const Health = grpc.makeGenericClientConstructor({
    Check: { path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false,
             requestSerialize: (b) => b, responseDeserialize: (b) => b },
  }, "Health");
  const health = new Health(target, grpc.credentials.createInsecure());
  assert.deepEqual(await call(health, "Check", Buffer.alloc(0)), Buffer.from([8, 1]));
  health.close();
});
