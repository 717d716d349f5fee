// Callers of favourites with nothing but stock clients: REST with Node's fetch, and gRPC. A write goes
// out under one Idempotency-Key, or op_id, until it is acknowledged: whatever the outcome of a try was.
import { setTimeout as sleep } from "node:timers/promises";
import { type Clients, failureOf, opId } from "./clients.js";

const TRIES = 400;
const PAUSE_MS = 100;
const TIMEOUT_MS = 5000;

export interface FavoriteCaller {
  // Resolves once it is acknowledged. `tries` counts those that failed.
  write(player: string, game: string, favorited: boolean): Promise<{ failedTries: number }>;
  status(player: string, game: string): Promise<boolean>;
}

async function until<T>(once: () => Promise<T | undefined>): Promise<{ answer: T; failedTries: number }> {
  for (let failedTries = 0; failedTries < TRIES; failedTries++) {
    const answer = await once();
    if (answer !== undefined) return { answer, failedTries };
    await sleep(PAUSE_MS);
  }
  throw new Error(`not acknowledged after ${TRIES} tries`);
}

// Undefined where the same may be sent again.
async function tryOnce<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (failureOf(error).kind === "refused") throw error;
    return undefined;
  }
}

// A read over gRPC, asked again while no owner answers.
export async function read<T>(call: () => Promise<T>): Promise<T> {
  return (await until(() => tryOnce(call))).answer;
}

export class RestCaller implements FavoriteCaller {
  constructor(private readonly endpoint: string) {}

  // Undefined: the same may be sent again. The header says what a caller may do (docs/rest.md).
  private async once(verb: string, path: string, key: string, body?: object): Promise<any | undefined> {
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(`${this.endpoint}/v1/${path}`, {
        method: verb, signal: AbortSignal.timeout(2 * TIMEOUT_MS),
        headers: { "Content-Type": "application/json", "Connect-Timeout-Ms": String(TIMEOUT_MS),
          ...(key === "" ? {} : { "Idempotency-Key": key }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      text = await answer.text();
    } catch {
      return undefined; // The connection broke: the outcome is unknown.
    }
    if (answer.ok) return JSON.parse(text);
    if (answer.headers.get("Holdfast-Action") === "retry_same") return undefined;
    throw new Error(`${verb} ${path}: ${answer.status} ${text}`);
  }

  async write(player: string, game: string, favorited: boolean) {
    const key = opId();
    const path = `players/${player}/favorites/${game}`;
    return until(() => favorited ? this.once("PUT", path, key, {}) : this.once("DELETE", path, key));
  }

  async status(player: string, game: string): Promise<boolean> {
    const { answer } = await until(() =>
      this.once("POST", `players/${player}/favorites:batchGet`, "", { targetIds: [game] }));
    return answer.statuses[0].favorited === true;
  }
}

export class GrpcCaller implements FavoriteCaller {
  constructor(private readonly clients: Clients) {}

  async write(playerId: string, targetId: string, favorited: boolean) {
    const request = { playerId, targetId, opId: opId() };
    const options = { timeoutMs: TIMEOUT_MS };
    return until<unknown>(() => tryOnce<unknown>(() => favorited
      ? this.clients.favorites.favorite(request, options)
      : this.clients.favorites.unfavorite(request, options)));
  }

  async status(playerId: string, targetId: string): Promise<boolean> {
    const { statuses } = await read(() =>
      this.clients.favorites.batchGetStatus({ playerId, targetIds: [targetId] }, { timeoutMs: TIMEOUT_MS }));
    return statuses[0]!.favorited;
  }
}
