// Reads favourites back on every way that there is: lists, counts, totals, and who favourited a game.
import { setTimeout as sleep } from "node:timers/promises";
import type { Clients } from "./clients.js";
import { read } from "./favorite_callers.js";
import { type Crowd, countByGame } from "./favorites_crowd.js";

const TOGETHER = 32;
const COUNTS_MAX = 200;
const PAGE = 200;
const TOP = 1000;
const TOTALS_PATIENCE_MS = 60000;

export interface Found {
  edges: number; // In the players' own lists.
  listsWrong: number; // Players whose list is not what was acknowledged.
  counts: number; // The sum of all games' counts, gathered now.
  countsWrong: number; // Games whose count is not the number of lists that they are in.
  totals: number; // Of the games in the top list, of their totals.
  totalsWrong: number;
  totalsOf: number;
  viral: number; // Players who favourited the viral game, one by one, by ListByTarget.
}

async function inParallel<T>(things: T[], each: (thing: T) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: TOGETHER }, async () => {
    while (next < things.length) await each(things[next++]!);
  }));
}

async function listOf(clients: Clients, playerId: string): Promise<string[]> {
  const games: string[] = [];
  let cursor = "";
  do {
    const page = await read(() => clients.favorites.listFavorites({ playerId, pageSize: PAGE, cursor }));
    games.push(...page.favorites.map(({ targetId }) => targetId));
    cursor = page.nextCursor;
  } while (cursor !== "");
  return games;
}

const isSame = (list: string[], held: Set<string>) =>
  list.length === held.size && list.every((game) => held.has(game));

async function favorersOf(clients: Clients, targetId: string): Promise<number> {
  const { shardCount } = await read(() => clients.admin.getCluster({}));
  let favorers = 0;
  await inParallel(Array.from({ length: shardCount }, (_, shard) => shard), async (shard) => {
    let cursor = "";
    do {
      const page = await read(() =>
        clients.favorites.listByTarget({ shard, targetId, cursor, pageSize: 1000 }));
      favorers += page.edges.length;
      cursor = page.nextCursor;
    } while (cursor !== "");
  });
  return favorers;
}

// Totals follow the edges by about a second; they are read until they have come, or patience ends.
async function totalsOf(clients: Clients, counts: Map<string, number>) {
  const begun = performance.now();
  for (;;) {
    const { entries } = await read(() => clients.favorites.getTop({ window: "all", limit: TOP }));
    const wrong = entries.filter(({ targetId, count }) => Number(count) !== counts.get(targetId)).length +
      Math.max(0, Math.min(TOP, counts.size) - entries.length);
    if (wrong === 0 || performance.now() - begun > TOTALS_PATIENCE_MS)
      return { totals: entries.reduce((sum, { count }) => sum + Number(count), 0), totalsWrong: wrong,
        totalsOf: entries.length };
    await sleep(250);
  }
}

export async function auditFavorites(clients: Clients, crowd: Crowd): Promise<Found> {
  const lists = new Map<string, string[]>();
  await inParallel(crowd.players, async (player) => {
    lists.set(player, await listOf(clients, player));
  });
  const recounted = countByGame(lists.values());
  let counts = 0, countsWrong = 0;
  const games = [crowd.viral, ...crowd.games];
  for (let first = 0; first < games.length; first += COUNTS_MAX) {
    const targetIds = games.slice(first, first + COUNTS_MAX);
    const told = await read(() => clients.favorites.batchGetCounts({ targetIds, fresh: true }));
    for (const { targetId, count } of told.counts) {
      counts += Number(count);
      countsWrong += Number(count) === (recounted.get(targetId) ?? 0) ? 0 : 1;
    }
  }
  return {
    edges: [...lists.values()].reduce((sum, list) => sum + list.length, 0),
    listsWrong: crowd.players.filter((player) => !isSame(lists.get(player)!, crowd.held.get(player)!)).length,
    counts, countsWrong,
    ...await totalsOf(clients, recounted),
    viral: await favorersOf(clients, crowd.viral),
  };
}
