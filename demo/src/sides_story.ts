// Two sides of a cut: game servers on both change the same players' settings while one node is alone
// with its router, and in the end all of it is there on both.
// Usage: node out/src/sides_story.js NEAR FAR, of demo/sides, which cuts and heals. Exits 1 if a number is wrong.
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { DocumentPolicy } from "../gen/holdfast/v1/definition_pb.js";
import { type Clients, connect, opId } from "./clients.js";
import { read } from "./favorite_callers.js";
import { Online } from "./sides_online.js";
import { Settings } from "./sides_settings.js";
import { type Row, printTable } from "./table.js";

const PLAYERS = 40;
const ONLINE = 2000;
const ALONE_MS = 20000;
const EQUAL_MS_MAX = 3000;

const begun = performance.now();
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function tell(text: string): void {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}

async function ask(what: "@cut" | "@heal"): Promise<void> {
  console.log(what);
  await answers.next();
}

async function define(clients: Clients): Promise<void> {
  const policies = { settings: DocumentPolicy.MERGE, kills: DocumentPolicy.COUNTER, loadout: DocumentPolicy.VECTOR };
  for (const [name, policy] of Object.entries(policies))
    for (;;) { // Made once; from then on it waits for the nodes.
      const request = { name, opId: opId(), reason: "demo", waitMs: 20000,
        body: { kind: { case: "documents" as const, value: { policy } } } };
      const { definition } = await read(() => clients.definition.putDefinition(request));
      if (definition!.inForce) break;
    }
}

// Three who have not seen each other's: two devices on one side, a game server on the other.
async function chooseLoadouts(near: Clients, far: Clients): Promise<number> {
  const choices = [[near, "sword"], [far, "bow"], [near, "staff"]] as const;
  for (const [clients, weapon] of choices) {
    const request = { entity: "player:hero", collection: "loadout", key: "main", opId: opId(),
      json: JSON.stringify({ weapon }) };
    await read(() => clients.document.putDocument(request));
  }
  return choices.length;
}

async function resolveLoadout(near: Clients, far: Clients) {
  const where = { entity: "player:hero", collection: "loadout", key: "main" };
  const found = await read(() => near.document.getDocument(where));
  const siblings = found.document!.siblings.map(({ json }) => json);
  tell(`three devices chose a loadout and none had seen another's: ${siblings.join("  ")}`);
  const json = siblings.find((sibling) => sibling.includes("bow")) ?? siblings[0]!;
  const request = { ...where, opId: opId(), json, context: found.context };
  const { written } = await read(() => near.document.putDocument(request));
  const after = await read(() => far.document.getDocument({ ...where, context: written!.context }));
  tell(`the player chooses: ${after.document!.json}, written with what was read, so that it replaces all of them`);
  return { siblings: siblings.length, left: Math.max(1, after.document!.siblings.length), right: after.document!.json === json };
}

async function main(nearUrl: string, farUrl: string): Promise<boolean> {
  const [near, far] = [connect("gRPC", nearUrl), connect("Connect, binary, HTTP/2", farUrl)];
  const settings = new Settings(near, far, Array.from({ length: PLAYERS }, (_, i) => `settler-${i + 1}`));
  const online = new Online(near, far, ONLINE);

  await define(near);
  await settings.begin();
  tell(`${PLAYERS} players have settings; a game server on each side of the network changes them`);
  await ask("@cut");
  const cutAt = performance.now();
  tell("the network is cut: node-3 and one router are alone");
  const chosen = await chooseLoadouts(near, far);
  await Promise.all([settings.play(cutAt + ALONE_MS), online.set()]);
  tell(`after ${ALONE_MS / 1000} s: ${settings.acknowledged.near} and ${settings.acknowledged.far} changes are acknowledged on the ` +
    `two sides, and ${ONLINE} players came online`);
  await sleep(Math.max(0, cutAt + ALONE_MS - performance.now()));
  await ask("@heal");
  const healedAt = performance.now();
  const equalMs = await online.untilEqual(healedAt);
  tell(`healed: both sides list all ${ONLINE} players after ${Math.round(equalMs)} ms`);
  const lost = await settings.lost();
  const loadout = await resolveLoadout(near, far);

  const rows: Row[] = [
    ["changes acknowledged on the two sides", `${settings.acknowledged.near} and ${settings.acknowledged.far}`,
      settings.acknowledged.near > 100 && settings.acknowledged.far > 100],
    ["of them lost", String(lost.leaves), lost.leaves === 0],
    ["kills counted, acknowledged = told on both sides", `${settings.kills} = ${lost.kills.join(" = ")}`,
      lost.kills.every((kills) => kills === settings.kills)],
    ["loadouts shown side by side, and after the choice", `${loadout.siblings} of ${chosen}, ${loadout.left}`,
      loadout.siblings === chosen && loadout.left === 1 && loadout.right],
    ["both sides list all who are online", `${Math.round(equalMs)} ms after the cut healed`, equalMs <= EQUAL_MS_MAX],
  ];
  printTable(rows);
  return rows.every(([, , right]) => right);
}

const [near, far] = process.argv.slice(2);
process.exit(await main(near!, far!) ? 0 : 1);
