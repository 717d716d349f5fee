// One corpus of requests, forms_cases.txt, in four forms of one API: plain JSON, canonical JSON, gRPC, and REST
// where there is a route. Equal answers, equal errors; and mutations under one op_id, of which the first form is
// carried out and the others are its repetitions, so that their payload hashes are equal, too.
//   HOLDFAST_URL=http://127.0.0.1:7400 node forms.mjs      a cluster that nothing was written to
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { fromBinary, fromJson, toJson } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode, ErrorDetailSchema } from "./gen/holdfast/v1/error_pb.js";
import { opId, opIdAt, transports, url } from "./client.mjs";
import { canonical, fieldOf, isDocument } from "./forms_shape.mjs";

const REQUESTS_MIN = 300;
const DAY_MS = 86400000;
const JSON_TYPE = { "content-type": "application/json" };
// Of any answer: what a repetition tells in another way, and what depends on the moment.
const NOT_COMPARED = new Set(["duplicate", "replicasFsynced", "traceId", "retryAfterMs", "remainingMs"]);
// Of the answers of these methods: what every call makes, or what changes by itself.
const OF_THE_MOMENT = {
  RegisterServer: ["incarnation"],
  SetPolicy: ["version"],
  GetServiceInfo: ["serverTimeMs"],
  GetCluster: ["residentBytes"],
  ListProcesses: ["clockMs", "clockAheadMs", "roundTripMs", "tookMs", "answerMs", "databaseBytes", "diskFreeBytes",
                  "totalsBehindMs", "consumersBehindPercent"],
  ListShards: ["logIndex", "commitIndex", "appliedIndex", "outcomeHash", "acknowledgedIndex", "stalledMs",
               "transfersOpen", "transfersOldestMs", "sessions"],
  ListIncidents: ["incidents", "nextCursor"],
  Poll: ["events", "nextCursor", "more"],
  GetLoad: ["atUs", "answered", "failed", "buckets", "inFlight", "residentBytes", "logSyncs", "logSyncUs",
            "commitBuckets", "diskFreeBytes", "replicasLag", "replicasSilentMs", "unapplied", "methods", "proposed",
            "reads", "sessions"],
  GetCount: ["asOfFromMs", "asOfToMs"],
  BatchGetCounts: ["asOfFromMs", "asOfToMs"],
  GetCounter: ["asOfFromMs", "asOfToMs"],
  BatchGetCounters: ["asOfFromMs", "asOfToMs"],
  PutDocument: ["context", "replicas"],
  UpdateDocument: ["context", "replicas"],
  DeleteDocument: ["context", "replicas"],
  GetDocument: ["context", "writtenAtMs", "expiresAtMs"],
  BatchGetDocuments: ["context", "writtenAtMs", "expiresAtMs"],
  ListDocuments: ["writtenAtMs", "expiresAtMs"],
  SetPresence: ["context", "replicas"],
  ClearPresence: ["context", "replicas"],
  BatchSetPresence: ["context", "replicas"],
  GetPresence: ["setAtMs", "expiresAtMs", "lastSetAtMs"],
  ListOnline: ["lastSetAtMs", "asOfMs", "nextCursor", "players"],
  BatchGetPresence: ["setAtMs", "expiresAtMs", "lastSetAtMs"],
  UpsertUser: ["context", "replicas", "createdAtMs", "lastSeenAtMs", "setAtMs", "expiresAtMs"],
  BatchUpsertUsers: ["context", "replicas", "createdAtMs", "lastSeenAtMs", "setAtMs", "expiresAtMs"],
  GetUser: ["context", "createdAtMs", "lastSeenAtMs", "setAtMs", "expiresAtMs"],
  FindByName: ["claimedAtMs"],
  SetUserFlags: ["atMs"],
  GetUserFlags: ["atMs"],
  BatchGetUsers: ["context", "createdAtMs", "lastSeenAtMs", "setAtMs", "expiresAtMs"],
};

// ---- the methods, and their routes ----

const methods = new Map();
for (const file of readdirSync(new URL("gen/holdfast/v1", import.meta.url)))
  for (const service of Object.values(await import(`./gen/holdfast/v1/${file}`)))
    if (service?.kind === "service")
      for (const method of service.methods)
        if (method.methodKind === "unary") methods.set(method.name, method);
const routes = new Map();
for (const [path, item] of Object.entries((await (await fetch(`${url}/openapi.json`)).json()).paths))
  for (const [verb, operation] of Object.entries(item)) // Further routes of a method: rest_test.py.
    if (methods.has(operation.operationId)) routes.set(operation.operationId, { verb: verb.toUpperCase(), path, hasBody: "requestBody" in operation,
      headers: (operation.parameters ?? []).map((each) => each.$ref?.split("/").pop()) });

// ---- the corpus ----

const names = new Map();
let policy = 1; // SetPolicy takes the next version alone, so each form has its own.

function filled(text, uuid) {
  return text.replace(/\$([a-z_][a-z0-9_]*)/g, (whole, name) => {
    if (name === "uuid") return uuid;
    if (name === "policy") return String(policy);
    assert.ok(names.has(name), `no earlier line has given a ${whole}`);
    return names.get(name);
  });
}

// LINE: [json|plain] Method [error[:field]] {request} [-> name=path.in.the.answer ...]
const LINE = /^(?:(json|plain) )?([A-Z]\w+) (?:([a-z_]+)(?::(\S+))? )?([{[].*?)(?: -> (.*))?$/;

function cases() {
  const found = [];
  readFileSync(new URL("forms_cases.txt", import.meta.url), "utf8").split("\n").forEach((text, at) => {
    if (text === "" || text.startsWith("#")) return;
    const parts = LINE.exec(text) ?? text.match(/^let (\w+) (uuid|old)$/);
    assert.ok(parts, `line ${at + 1} is no case: ${text}`);
    if (text.startsWith("let ")) return found.push({ line: at + 1, name: parts[1], kind: parts[2] });
    const [, only, method, error, field, request, keeps] = parts;
    assert.ok(methods.has(method), `line ${at + 1}: no public unary method ${method}`);
    found.push({ line: at + 1, text, only, method: methods.get(method), error, field, request, keeps });
  });
  return found;
}

// ---- the four forms: each sends one request, and tells {code, message, detail} or {answer}, canonical ----

const told = (status, body, detail) => ({ status, code: body.code, message: body.message, detail });

async function post(target, body, headers) {
  const response = await fetch(url + target, { method: "POST", body, headers: { ...JSON_TYPE, ...headers } });
  return { ok: response.ok, status: response.status, body: await response.json() };
}

const detailOf = (plain) => toJson(ErrorDetailSchema, fromJson(ErrorDetailSchema, canonical(ErrorDetailSchema, plain)));
const answerOf = (method, body) => toJson(method.output, fromJson(method.output, body));
const target = (method) => `/${method.parent.typeName}/${method.name}`;

function plainTold(method, { ok, status, body }) {
  if (ok) return { answer: answerOf(method, canonical(method.output, body)) };
  assert.ok(body.error, `an error without its part: ${JSON.stringify(body)}`);
  return told(status, body, detailOf(body.error));
}

async function plain({ method }, text) {
  return plainTold(method, await post(target(method), text, {}));
}

async function canonicalJson({ method }, text) {
  const said = canonicalText(method, text);
  const { ok, body } = await post(target(method), said, { "connect-protocol-version": "1" });
  if (ok) {
    const answer = answerOf(method, body);
    assert.deepEqual(body, answer, "the answer is not canonical JSON");
    return { answer };
  }
  assert.equal(body.details?.length, 1, `an error without its detail: ${JSON.stringify(body)}`);
  const [{ value, debug }] = body.details;
  const detail = toJson(ErrorDetailSchema, fromBinary(ErrorDetailSchema, base64Decode(value)));
  assert.deepEqual(debug, detail, "debug says otherwise than value");
  return told(0, body, detail);
}

// What is no JSON goes out as it stands.
function canonicalText(method, text) {
  try {
    return JSON.stringify(canonical(method.input, JSON.parse(text)));
  } catch {
    return text;
  }
}

const grpcTransport = transports["connect-node gRPC binary"];

async function grpc({ method }, text) {
  const message = fromJson(method.input, canonical(method.input, JSON.parse(text)));
  try {
    const { message: answer } = await grpcTransport.unary(method, undefined, 30000, undefined, message);
    return { answer: toJson(method.output, answer) };
  } catch (failure) {
    const error = ConnectError.from(failure);
    const [detail] = error.findDetails(ErrorDetailSchema);
    assert.ok(detail, `an error without its detail: ${error}`);
    const code = Code[error.code].replace(/(?<=[a-z])[A-Z]/g, (each) => `_${each}`).toLowerCase();
    return told(0, { code, message: error.rawMessage }, toJson(ErrorDetailSchema, detail));
  }
}

// The query of what is left of a request: fields by their names in the idl, a dot into a message.
function query(desc, request, prefix = "") {
  const found = [];
  for (const [name, value] of Object.entries(request)) {
    const field = fieldOf(desc, name);
    const called = prefix + (field?.name ?? name);
    if (value === null) continue;
    if (field?.message && !Array.isArray(value)) found.push(...query(field.message, value, `${called}.`));
    else for (const each of [value].flat()) found.push(`${called}=${encodeURIComponent(String(each))}`);
  }
  return found;
}

// op_id, authority and if_version by their headers.
function headed(route, request, body, headers) {
  for (const [field, header, names_] of [["opId", "idempotency-key", "IdempotencyKey"],
    ["authority", "holdfast-authority", "Authority"], ["ifVersion", "if-match", "IfMatch"]]) {
    if (!route.headers.includes(names_) || request[field] == null) continue;
    headers[header] = field === "ifVersion" ? `"${request[field]}"` : request[field];
    delete body[field];
  }
}

// null: the request cannot stand in this route, since a part of the path is missing, or is no id in paths.
function restRequest({ method, line, error, only }, text) {
  const route = routes.get(method.name);
  const request = JSON.parse(text);
  const body = { ...request };
  const headers = {};
  let possible = true;
  const path = route.path.replace(/\{(\w+)\}/g, (_, name) => {
    const field = fieldOf(method.input, name);
    const key = field.jsonName in request ? field.jsonName : name;
    const value = request[key] ?? (field.scalar && field.fieldKind === "scalar" && name === "shard" ? 0 : undefined);
    possible &&= value !== undefined && !/^\.{0,2}$/.test(String(value));
    delete body[key];
    return encodeURIComponent(String(value));
  });
  if (!possible) return null;
  if (!route.hasBody) {
    const asked = query(method.input, body);
    return { verb: route.verb, path: asked.length ? `${path}?${asked.join("&")}` : path };
  }
  // In turns: the whole request in the body, the rest of the path in it, and what headers can say in headers.
  if (only || line % 3 === 0) return { verb: route.verb, path, headers, body: text };
  if (line % 3 === 1 && !error) headed(route, request, body, headers);
  return { verb: route.verb, path, headers, body: JSON.stringify(body) };
}

async function rest(each, text) {
  const { verb, path, headers, body } = restRequest(each, text);
  const response = await fetch(url + path, { method: verb, body, headers: body ? { ...JSON_TYPE, ...headers } : headers });
  return plainTold(each.method, { ok: response.ok, status: response.status, body: await response.json() });
}

const FORMS = { plain, canonical: canonicalJson, gRPC: grpc, REST: rest };

function formsOf(each, text) {
  const found = ["plain"];
  if (each.only !== "plain") found.push("canonical");
  if (!each.only) found.push("gRPC");
  else if (each.only === "json")
    assert.throws(() => fromJson(each.method.input, canonical(each.method.input, JSON.parse(text))), undefined,
                  "protobuf can say this: the line is not one of `json`");
  let fits = false;
  try {
    fits = routes.has(each.method.name) && restRequest(each, text) !== null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (fits) found.push("REST");
  return found;
}

// ---- what is compared ----

// Documents are compared by what they say.
function comparable(desc, value, ignored) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((each) => comparable(desc, each, ignored));
  const made = {};
  for (const [name, each] of Object.entries(value)) {
    // A read's grows with whatever the shard does meanwhile.
    if (ignored.has(name) || name === "asOf" && desc.name !== "WriteInfo") continue;
    const field = fieldOf(desc, name);
    if (field && isDocument(field)) made[name] = JSON.parse(each, (_, said) => said === 0 ? 0 : said); // -0
    else made[name] = field?.message ? comparable(field.message, each, ignored) : each;
  }
  return made;
}

// What is wrong has the same words in every form. What was meant is told in the form's own spelling, and REST tells
// where a name stands that is no field's.
const words = (message) => message.replace(/; did you mean \S+\?$/, "")
  .replace("the query names a field that there is not", "no such field");

function compared(method, { answer, code, message, detail }) {
  const ignored = new Set([...NOT_COMPARED, ...(OF_THE_MOMENT[method.name] ?? [])]);
  if (answer) return { answer: comparable(method.output, answer, ignored) };
  const facts = comparable(ErrorDetailSchema, detail, ignored);
  return { code, message: words(message), detail: { ...facts, message: words(facts.message) } };
}

// Every WriteInfo of an answer: its own, or those of a batch.
const writes = (answer) => [answer.write, ...(answer.results ?? []).map((each) => each.response?.write)].filter(Boolean);

function repeats(first, later) {
  writes(later.answer ?? {}).forEach((write) => assert.ok(write.duplicate, "carried out a second time, not repeated"));
  assert.equal(writes(later.answer ?? {}).length, writes(first.answer ?? {}).length);
}

function expected({ error, field }, { answer, detail }) {
  const said = answer ? undefined : detail.code.replace("ERROR_CODE_", "").toLowerCase();
  assert.equal(said, error, `the line wants ${error ?? "an answer"}: ${JSON.stringify(answer ?? detail)}`);
  if (field) assert.equal(detail.field ?? "", field);
}

function keep(keeps, answer) {
  for (const each of keeps?.split(" ") ?? []) {
    const [name, path] = each.split("=");
    const value = path.split(".").reduce((at, part) => at?.[part], answer);
    assert.ok(typeof value === "string" && value !== "", `the answer has no ${path}`);
    names.set(name, value);
  }
}

// ---- the run ----

const sent = { plain: 0, canonical: 0, gRPC: 0, REST: 0 };
const covered = new Set(), routed = new Set();
let failures = 0;

async function run(each, at) {
  const uuid = opId();
  const forms = formsOf(each, filled(each.request, uuid));
  const order = forms.map((_, i) => forms[(i + at) % forms.length]);
  let first;
  for (const form of order) {
    try {
      if (each.request.includes("$policy")) policy++;
      const answered = await FORMS[form](each, filled(each.request, uuid));
      sent[form]++;
      if (form === "REST") routed.add(each.method.name);
      if (first) {
        assert.deepEqual(compared(each.method, answered), compared(each.method, first), `other than by ${order[0]}`);
        repeats(first, answered);
      } else {
        first = answered;
        expected(each, answered);
      }
    } catch (error) {
      failures++;
      console.log(`forms_cases.txt:${each.line}: ${form} (order ${order}): ${each.text}\n  ${error.message}\n`);
    }
  }
  covered.add(each.method.name);
  if (first?.answer) keep(each.keeps, first.answer);
}

// Registered servers stay alive, however slow the machine is.
const heart = setInterval(() => {
  for (const [name, incarnation] of names)
    if (name.startsWith("server"))
      post("/holdfast.v1.SessionService/RenewSessions", JSON.stringify({ incarnation }), {}).catch(() => undefined);
}, 2000);

const all = cases();
let at = 0;
for (const each of all) {
  if (each.name) names.set(each.name, each.kind === "old" ? opIdAt(Date.now() - 8 * DAY_MS) : opId());
  else {
    try {
      await run(each, at++);
    } catch (error) {
      failures++;
      console.log(`forms_cases.txt:${each.line}: ${each.text}\n  ${error.message}\n`);
    }
  }
}
clearInterval(heart);

const missing = [...methods.keys()].filter((name) => !covered.has(name));
const unrouted = [...routes.keys()].filter((name) => !routed.has(name));
console.log(`forms: ${at} requests; sent by ${JSON.stringify(sent)}; ${failures} differences`);
if (missing.length) console.log(`public unary methods without a line: ${missing}`);
if (unrouted.length) console.log(`routes without a line: ${unrouted}`);
if (at < REQUESTS_MIN) console.log(`fewer than ${REQUESTS_MIN} requests`);
process.exit(failures || missing.length || unrouted.length || at < REQUESTS_MIN ? 1 : 0);
