// Runs example.luau, and Holdfast.luau with it, by a real Luau: node run.mjs PLAYER.
// HOLDFAST_ENDPOINT is the router's; HOLDFAST_KEY the API key, if the cluster wants one.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { LuauState } from "luau-web";

const TIMEOUT_MS = 15_000;

async function httpRequest(method, url, headers, body) {
  const pairs = JSON.parse(headers);
  const options = { method, body, headers: {}, signal: AbortSignal.timeout(TIMEOUT_MS) };
  for (let i = 0; i < pairs.length; i += 2) options.headers[pairs[i]] = pairs[i + 1];
  try {
    const answer = await fetch(url, options);
    return { error: "", status: answer.status, headers: JSON.stringify(Object.fromEntries(answer.headers)),
             body: await answer.text() };
  } catch (error) {
    return { error: String(error) };
  }
}

const [player] = process.argv.slice(2);
if (!player) {
  console.error("run.mjs PLAYER");
  process.exit(2);
}
const modules = new Map();
const state = await LuauState.createAsync({
  http_request: httpRequest,
  random_hex: (digits) => randomBytes(digits / 2).toString("hex"),
  now_ms: () => Date.now(),
  sleep_s: (seconds) => new Promise((done) => setTimeout(done, seconds * 1000)),
  print: (...words) => console.log(...words),
  script: { Parent: { Holdfast: "Holdfast" } },
  require: (name) => modules.get(name),
  arguments: { player, endpoint: process.env.HOLDFAST_ENDPOINT ?? "http://127.0.0.1:7400",
               key: process.env.HOLDFAST_KEY ?? "" },
});

async function load(name) {
  const source = await readFile(new URL(`${name}.luau`, import.meta.url), "utf8");
  const results = await state.loadstring(source, `${name}.luau`, true)();
  return results?.[0];
}

try {
  await load("roblox");
  modules.set("Holdfast", await load("Holdfast"));
  await load("example");
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
