// A stock client of OpenAPI, as the document of the router itself has it, and a stock validator: what a router
// answers is what its document says.
import assert from "node:assert/strict";
import { test } from "node:test";
import Ajv from "ajv/dist/2020.js";
import createClient from "openapi-fetch";
import { apiKey, isStub, opId, url } from "./client.mjs";

const client = createClient({ baseUrl: url, headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {} });
const document = await (await fetch(`${url}/openapi.json`)).json();

// Stricter than the document: an answer may have no member that it does not name.
function close(schema) {
  if (schema === null || typeof schema !== "object") return;
  if (schema.properties && schema.type === "object") schema.additionalProperties ??= false;
  Object.values(schema).forEach(close);
}
const closed = structuredClone(document);
close(closed.components);
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(closed, "openapi");

function valid(name, value) {
  const good = ajv.validate({ $ref: `openapi#/components/schemas/${name}` }, value);
  assert.ok(good, `${name} ${JSON.stringify(value)}: ${ajv.errorsText()}`);
}

// Calls the route, and holds its answer against the document.
async function call(verb, path, options = {}) {
  const { data, error, response } = await client[verb](path, options);
  const operation = document.paths[path][verb.toLowerCase()];
  if (response.ok) {
    valid(operation.responses[200].content["application/json"].schema.$ref.split("/").pop(), data);
    assert.equal(response.headers.has("etag"), "headers" in operation.responses[200], path);
  } else if (response.status === 304) {
    assert.ok("304" in operation.responses && response.headers.has("etag"), path);
  } else {
    const listed = operation.responses[response.status];
    assert.ok(listed, `${path} lists ${response.status}`);
    const answers = document.components.responses[listed.$ref.split("/").pop()];
    const codes = answers.content["application/json"].schema.allOf[1].properties.error.properties.code.enum;
    assert.ok(codes.includes(error.error.code), `${path} lists ${error.error.code}`);
    valid("Error", error);
    assert.equal(response.headers.get("holdfast-error"), error.error.code);
    assert.equal(response.headers.get("holdfast-action"), error.error.action);
  }
  return { data, error, response };
}

const live = isStub ? () => undefined : test; // The stub answers nothing of this.
const named = (player_id, header = {}, query = {}) => ({ params: { path: { player_id }, header, query } });
const player = `rest/${opId()} \u00e9%41`; // An id that has to be encoded.
const keyed = () => ({ "idempotency-key": opId(), "holdfast-authority": "unheld" });

test("the document describes every service that has routes", () => {
  assert.equal(document.openapi, "3.1.0");
  assert.ok(Object.keys(document.paths).length > 40);
  for (const [path, item] of Object.entries(document.paths)) {
    assert.match(path, /^\/v1\//);
    for (const operation of Object.values(item)) assert.ok(operation.summary, `${path} says what it does`);
  }
});

test("each operation lists errors of its own", () => {
  const told = ({ $ref }) => document.components.responses[$ref.split("/").pop()].description;
  const { get, patch } = document.paths["/v1/players/{player_id}"];
  assert.match(told(patch.responses[412]), /`version_conflict`/);
  assert.match(told(patch.responses[409]), /`schema_too_new` \(refused, fix\)/);
  assert.ok(!("412" in get.responses));
  assert.doesNotMatch(told(get.responses[409]), /schema_too_new/);
});

live("a stock client grants, reads, edits and spends", async () => {
  const body = { currencies: { gold: 50 }, items: [{ kind: "sword", attributes: { level: 1 } }], reason: "test" };
  const options = { ...named(player, { "idempotency-key": opId(), "holdfast-authority": "system:payments" }), body };
  const granted = await call("POST", "/v1/players/{player_id}:grant", options);
  assert.equal(granted.data.balances.gold, 50);
  assert.equal((await call("POST", "/v1/players/{player_id}:grant", options)).data.write.duplicate, true);
  const edits = { progression: { schemaVersion: 1, patch: [{ path: "/xp", increment: 40 }] } };
  await call("PATCH", "/v1/players/{player_id}", { ...named(player, keyed()), body: { edits } });
  const include = ["sections", "balances", "items", "mail"];
  const read = await call("GET", "/v1/players/{player_id}", named(player, {}, { include }));
  assert.equal(read.data.profile.playerId, player);
  assert.deepEqual(read.data.profile.sections.progression.json, { xp: 40 });
  assert.equal(read.response.headers.get("etag"), `W/"${read.data.asOf}"`); // It has mail, which comes without a version.
  const balances = await call("GET", "/v1/players/{player_id}/balances", named(player));
  assert.equal(balances.response.headers.get("etag"), `"${read.data.profile.version}"`);
  const known = await call("GET", "/v1/players/{player_id}/balances",
    named(player, { "if-none-match": balances.response.headers.get("etag") }));
  assert.equal(known.response.status, 304);
  assert.equal(known.data, undefined);
  const items = await call("GET", "/v1/players/{player_id}/items", named(player, {}, { page_size: 1, kind: "sword" }));
  assert.deepEqual(items.data.items[0].attributes, { level: 1 });
  await call("GET", "/v1/items/{item_uid}/steps", { params: { path: { item_uid: items.data.items[0].uid } } });
  await call("POST", "/v1/players/{player_id}/reservations",
    { ...named(player, keyed()), body: { currencies: { gold: 20 }, expiresInMs: 60000 } });
  await call("GET", "/v1/players/{player_id}/balances", named(player));
  const held = await call("GET", "/v1/players/{player_id}/reservations", named(player));
  assert.deepEqual(held.data.reservations.map((each) => each.currencies), [{ gold: 20 }]);
  const entries = await call("GET", "/v1/players/{player_id}/entries", named(player, {}, { kinds: ["grant", "reserve"] }));
  assert.deepEqual(entries.data.entries.map((entry) => entry.kind), ["reserve", "grant"]);
});

live("a stock client reads what was refused, and why", async () => {
  const poor = await call("POST", "/v1/players/{player_id}:spend",
    { ...named(player, keyed()), body: { currencies: { gold: 5000 } } });
  assert.equal(poor.response.status, 409);
  assert.equal(poor.error.error.about.funds.needed, 5000);
  const wrong = await call("POST", "/v1/players/{player_id}:spend",
    { ...named(player, keyed()), body: { curencies: { gold: 1 } } });
  assert.equal(wrong.response.status, 400);
  assert.match(wrong.error.message, /did you mean currencies\?/);
});

live("what operators read is as the document says", async () => {
  for (const [path, item] of Object.entries(document.paths))
    if (item.get && !path.includes("{") && path !== "/v1/players:read") await call("GET", path);
  await call("GET", "/v1/players:read", { params: { query: { player_ids: [player, "stranger"] } } });
  await call("GET", "/v1/shards/{shard}/players", { params: { path: { shard: 0 } } });
  await call("GET", "/v1/players/{player_id}/session", named(player));
});
