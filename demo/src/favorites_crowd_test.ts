// The draws of the crowd, and that a read which misses its own write is counted.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FavoriteCaller } from "./favorite_callers.js";
import { Crowd, countByGame, pick, random, zipf } from "./favorites_crowd.js";

class Fake implements FavoriteCaller {
  readonly held = new Set<string>();

  constructor(private readonly forgets: boolean) {}

  async write(player: string, game: string, favorited: boolean) {
    if (favorited) this.held.add(`${player} ${game}`);
    else this.held.delete(`${player} ${game}`);
    return { failedTries: 0 };
  }

  async status(player: string, game: string) {
    return this.held.has(`${player} ${game}`) !== this.forgets;
  }
}

async function play(forgets: boolean): Promise<{ crowd: Crowd; fake: Fake }> {
  const crowd = new Crowd(Array.from({ length: 200 }, (_, i) => `p${i}`), ["a", "b", "c"], "viral");
  const fake = new Fake(forgets);
  await Promise.all([0, 1, 2].map((worker) => crowd.work(fake, fake, worker, 3)));
  return { crowd, fake };
}

test("shares fall with the rank and reach 1", () => {
  const shares = zipf(100);
  assert.ok(Math.abs(shares[99]! - 1) < 1e-9);
  assert.ok(shares[0]! > 100 * (shares[99]! - shares[98]!));
  assert.equal(pick(shares, 0), 0);
  assert.equal(pick(shares, 0.9999999), 99);
  assert.equal(pick(shares, shares[41]!), 42);
});

test("the same seed draws the same", () => {
  const one = random(7), other = random(7);
  for (let i = 0; i < 100; i++) assert.equal(one(), other());
});

test("what the crowd says that it holds is what was written, half of it to one game", async () => {
  const { crowd, fake } = await play(false);
  assert.equal(crowd.writes, crowd.writesPlanned);
  assert.equal(crowd.edges(), fake.held.size);
  assert.ok(crowd.viralWrites > crowd.writes * 0.4 && crowd.viralWrites < crowd.writes * 0.6);
  const counts = crowd.byGame();
  assert.equal([...counts.values()].reduce((a, b) => a + b), crowd.edges());
  assert.equal(counts.get("viral"),
    [...fake.held].filter((edge) => edge.endsWith(" viral")).length);
  assert.ok(crowd.readsBack > 0);
  assert.equal(crowd.readsMissed, 0);
});

test("a read that misses the player's own write is counted", async () => {
  const { crowd } = await play(true);
  assert.equal(crowd.readsMissed, crowd.readsBack);
});

test("games are counted over all lists", () => {
  assert.deepEqual(countByGame([["a", "b"], ["a"]]), new Map([["a", 2], ["b", 1]]));
});
