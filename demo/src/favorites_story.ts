// A game goes viral: a crowd of players favourites games over REST and gRPC, half of all writes go to
// one game, a node is killed meanwhile, and in the end everything must add up.
// Usage: node out/src/favorites_story.js CLUSTER.JSON [PLAYERS]. Exits 1 if a number is wrong.
import { setTimeout as sleep } from "node:timers/promises";
import { ConflictPolicy } from "../gen/holdfast/v1/definition_pb.js";
import { type Clients, connect, opId } from "./clients.js";
import { Cluster } from "./cluster.js";
import { GrpcCaller, RestCaller, read } from "./favorite_callers.js";
import { auditFavorites } from "./favorites_audit.js";
import { Crowd } from "./favorites_crowd.js";
import { type Row, printTable } from "./table.js";

const PLAYERS = 2000;
const PLAYERS_PER_GAME = 4;
const GAMES_MAX = 2000;
const WORKERS = 48;
const POLL_MS = 50;
const BACK_MS = 120000;
const AGE_MS_MAX = 8000; // A router's --count-age, the longest gather, and what the call takes.

const begun = performance.now();

function tell(text: string): void {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}

// How old the count of the viral game is that a website shows, asked again and again.
class Freshness {
  readonly agesMs: number[] = [];
  stale = 0;
  private over = false;
  private readonly done: Promise<void>;

  constructor(private readonly clients: Clients, private readonly game: string) {
    this.done = this.poll();
  }

  private async poll(): Promise<void> {
    while (!this.over) {
      try {
        const { count } = await this.clients.favorites.getCount({ targetId: this.game }, { timeoutMs: 5000 });
        if (count!.stale) this.stale++; // It says so itself.
        else this.agesMs.push(Date.now() - Number(count!.asOfFromMs));
      } catch {
        // While a shard has no owner there may be no count to tell.
      }
      await sleep(POLL_MS);
    }
  }

  async p99(): Promise<number> {
    this.over = true;
    await this.done;
    this.agesMs.sort((a, b) => a - b);
    return this.agesMs[Math.floor(this.agesMs.length * 0.99)] ?? Infinity;
  }
}

async function define(clients: Clients): Promise<void> {
  const value = { conflictPolicy: ConflictPolicy.HIGHEST_VERSION };
  for (;;) { // Made once; from then on it waits for the shards.
    const request = { name: "favorites", opId: opId(), reason: "demo", waitMs: 20000,
      body: { kind: { case: "collection" as const, value } } };
    const { definition } = await read(() => clients.definition.putDefinition(request));
    if (definition!.inForce) return;
  }
}

async function killInTheMiddle(cluster: Cluster, clients: Clients, crowd: Crowd): Promise<void> {
  while (crowd.writes < crowd.writesPlanned / 3) await sleep(20);
  const { nodes } = await read(() => clients.admin.getCluster({}));
  const victim = nodes.sort((a, b) => b.shardsOwned - a.shardsOwned)[0]!;
  const { pid, starts } = cluster.process(victim.name);
  cluster.kill(victim.name);
  const killedAt = performance.now();
  tell(`SIGKILL to ${victim.name} (pid ${pid}), which owns ${victim.shardsOwned} shards, after ` +
    `${crowd.writes} of ${crowd.writesPlanned} writes`);
  await cluster.waitBack(clients, victim.name, starts + 1, killedAt + BACK_MS);
  tell(`${victim.name} is back, ${Math.round(performance.now() - killedAt)} ms after the kill`);
}

async function main(clusterFile: string, playerCount: number): Promise<boolean> {
  const cluster = new Cluster(clusterFile);
  const { endpoint } = cluster.read();
  const clients = connect("gRPC", endpoint);
  const players = Array.from({ length: playerCount }, (_, i) => `fan-${i + 1}`);
  const gameCount = Math.min(GAMES_MAX, Math.max(1, Math.floor(playerCount / PLAYERS_PER_GAME)));
  const games = Array.from({ length: gameCount - 1 }, (_, i) => `game-${i + 1}`);
  const crowd = new Crowd(players, games, "game-viral");
  const callers = [new RestCaller(endpoint), new GrpcCaller(clients)];

  await define(clients);
  tell(`${players.length} players favourite ${gameCount} games, half of them over REST, half over gRPC; ` +
    `${crowd.viral} goes viral`);
  const freshness = new Freshness(clients, crowd.viral);
  const writtenAt = performance.now();
  await Promise.all([killInTheMiddle(cluster, clients, crowd),
    ...Array.from({ length: WORKERS }, (_, worker) =>
      crowd.work(callers[worker % 2]!, callers[(worker + 1) % 2]!, worker, WORKERS))]);
  const perS = Math.round(crowd.writes / (performance.now() - writtenAt) * 1000);
  const ageMs = await freshness.p99();
  tell(`${crowd.writes} writes are acknowledged, ${perS} a second; ${crowd.failedTries} tries failed and were ` +
    `sent again under their op_id`);

  const found = await auditFavorites(clients, crowd);
  tell("read back: every list, every count, the top list, and who favourited the viral game");
  const viral = crowd.byGame().get(crowd.viral) ?? 0;
  const edges = crowd.edges();
  const viralShare = Math.round(100 * crowd.viralWrites / crowd.writes);
  const rows: Row[] = [
    ["writes acknowledged, and to the viral game", `${crowd.writes}, ${viralShare} %`,
      crowd.writes === crowd.writesPlanned],
    ["edges acknowledged = edges in lists = counts", `${edges} = ${found.edges} = ${found.counts}`,
      edges === found.edges && edges === found.counts],
    ["players or games that differ", `${found.listsWrong}, ${found.countsWrong}`,
      found.listsWrong === 0 && found.countsWrong === 0],
    [`totals of ${found.totalsOf} games, and those that differ`, `${found.totals}, ${found.totalsWrong}`,
      found.totalsWrong === 0 && (found.totalsOf >= 1000 || found.totals === edges)],
    ["the viral game, acknowledged = recounted", `${viral} = ${found.viral}`, viral === found.viral],
    ["reads that missed the player's own write", `${crowd.readsMissed} of ${crowd.readsBack}`,
      crowd.readsMissed === 0 && crowd.readsBack > 0],
    ["age of the viral game's count, p99", `${Math.round(ageMs)} ms of ${freshness.agesMs.length} reads, ` +
      `${freshness.stale} more told as stale`, ageMs <= AGE_MS_MAX],
  ];
  printTable(rows);
  return rows.every(([, , right]) => right);
}

const [clusterFile, players] = process.argv.slice(2);
const count = players === undefined ? PLAYERS : Number(players);
if (!Number.isInteger(count) || count < 10 || count > 1000000) {
  console.error(`PLAYERS: 10 to 1000000, not ${players}`);
  process.exit(2);
}
process.exit(await main(clusterFile!, count) ? 0 : 1);
