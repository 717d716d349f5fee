// A crowd of players who favourite games: which player taps what, what each must hold afterwards, and
// the workers that carry it out. Every player belongs to one worker, so that its taps have an order.
import type { FavoriteCaller } from "./favorite_callers.js";

const WRITES_PER_PLAYER = 3;
const UNFAVORITE_SHARE = 0.3; // Of taps on a game that the player holds.
const READ_BACK_SHARE = 0.25;
const ZIPF_EXPONENT = 1.07;

// The same draws in every run: mulberry32.
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  };
}

// Cumulative shares: game 1 is the most popular.
export function zipf(games: number): number[] {
  const weights = Array.from({ length: games }, (_, rank) => 1 / (rank + 1) ** ZIPF_EXPONENT);
  const whole = weights.reduce((a, b) => a + b);
  let sum = 0;
  return weights.map((weight) => (sum += weight) / whole);
}

// The place of the first share that is above `at`.
export function pick(shares: number[], at: number): number {
  let low = 0, high = shares.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (shares[middle]! > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class Crowd {
  // What each player holds, as acknowledged.
  readonly held = new Map<string, Set<string>>();
  writes = 0;
  viralWrites = 0;
  failedTries = 0;
  readsBack = 0;
  readsMissed = 0;
  private readonly shares: number[];

  constructor(readonly players: string[], readonly games: string[], readonly viral: string) {
    for (const player of players) this.held.set(player, new Set());
    this.shares = zipf(games.length);
  }

  get writesPlanned(): number {
    return this.players.length * WRITES_PER_PLAYER;
  }

  // Half of all writes go to the viral game; a game that the player holds is taken away now and then.
  private async tap(caller: FavoriteCaller, reader: FavoriteCaller, player: string, draw: () => number) {
    const viral = draw() < 0.5;
    const game = viral ? this.viral : this.games[pick(this.shares, draw())]!;
    const mine = this.held.get(player)!;
    const favorited = !(mine.has(game) && draw() < UNFAVORITE_SHARE);
    const { failedTries } = await caller.write(player, game, favorited);
    if (favorited) mine.add(game);
    else mine.delete(game);
    this.writes++;
    this.viralWrites += viral ? 1 : 0;
    this.failedTries += failedTries;
    if (draw() >= READ_BACK_SHARE) return;
    this.readsBack++;
    if (await reader.status(player, game) !== favorited) this.readsMissed++;
  }

  // Players come in turns, so that each has taps before the node dies and after it.
  async work(caller: FavoriteCaller, reader: FavoriteCaller, worker: number, workers: number) {
    const draw = random(worker + 1);
    const mine = this.players.filter((_, i) => i % workers === worker);
    for (let turn = 0; turn < WRITES_PER_PLAYER; turn++)
      for (const player of mine) await this.tap(caller, reader, player, draw);
  }

  edges(): number {
    return [...this.held.values()].reduce((sum, games) => sum + games.size, 0);
  }

  // Of each game, by what the players hold.
  byGame(): Map<string, number> {
    return countByGame([...this.held.values()]);
  }
}

export function countByGame(lists: Iterable<Iterable<string>>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const games of lists)
    for (const game of games) counts.set(game, (counts.get(game) ?? 0) + 1);
  return counts;
}
