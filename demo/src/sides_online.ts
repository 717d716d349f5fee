// Players who come online on either side of a cut, and when both sides know all of them.
import { setTimeout as sleep } from "node:timers/promises";
import { type Clients, opId } from "./clients.js";
import { read } from "./favorite_callers.js";

const SET_MAX = 100;
const GET_MAX = 200;
const TTL_MS = 600000n;
const POLL_MS = 20;
const EQUAL_MS_MAX = 60000;

function slices<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
}

export class Online {
  private readonly players: string[];

  constructor(private readonly near: Clients, private readonly far: Clients, count: number) {
    this.players = Array.from({ length: count }, (_, i) => `online-${i + 1}`);
  }

  private async setOn(clients: Clients, players: string[]): Promise<void> {
    for (const some of slices(players, SET_MAX)) {
      const request = { opId: opId(), connection: "game", ttlMs: TTL_MS, status: JSON.stringify({ in: "plaza" }),
        requests: some.map((playerId) => ({ playerId })) };
      await read(async () => {
        const answer = await clients.presence.batchSetPresence(request);
        return answer.failed === 0 ? answer : Promise.reject(new Error("some were not set"));
      });
    }
  }

  // Half of them on each side.
  async set(): Promise<void> {
    const half = this.players.length / 2;
    await Promise.all([this.setOn(this.near, this.players.slice(0, half)), this.setOn(this.far, this.players.slice(half))]);
  }

  private async knownOn(clients: Clients): Promise<number> {
    const answers = await Promise.all(slices(this.players, GET_MAX).map((some) => read(() =>
      clients.presence.batchGetPresence({ requests: some.map((playerId) => ({ playerId })) }))));
    return answers.flatMap(({ results }) => results).filter(({ outcome }) =>
      outcome.case === "response" && outcome.value.presence !== undefined).length;
  }

  // Milliseconds from then on until both sides tell that all are online.
  async untilEqual(fromMs: number): Promise<number> {
    for (;;) {
      const known = [await this.knownOn(this.near), await this.knownOn(this.far)];
      const tookMs = performance.now() - fromMs;
      if (known.every((count) => count === this.players.length) || tookMs > EQUAL_MS_MAX) return tookMs;
      await sleep(POLL_MS);
    }
  }
}
