// A game server as a studio would write one: it registers, keeps its heartbeat, takes players,
// pays match rewards, sells from its shop, and saves when a player leaves.
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorDetail } from "../gen/holdfast/v1/error_pb.js";
import type { GrantResponse } from "../gen/holdfast/v1/ledger_pb.js";
import { PatchKind } from "../gen/holdfast/v1/profile_pb.js";
import { StartMode } from "../gen/holdfast/v1/session_pb.js";
import { type Clients, failureOf, failureOfDetail, opId } from "./clients.js";
import { type Entry, type Journal, amountsOf, gold } from "./journal.js";
import { carryOut, onFailure } from "./settle.js";

const BATCH = 100;
const MATCH_PLAYERS = 10;
const MATCH_TIMEOUT_MS = 300; // Short, so that a failover shows as unknown outcomes.

function pick<T>(all: T[]): T {
  return all[Math.floor(Math.random() * all.length)]!;
}

export class GameServer {
  incarnation = "";
  // Player -> token, as this server believes.
  readonly sessions = new Map<string, string>();
  // Players whose release this server is asked for, but which it goes on writing.
  readonly stubborn = new Set<string>();
  releasedOnRequest = 0;
  toldLost = 0;
  matches = 0;
  private playing = true;
  private readonly loops: Promise<void>[] = [];

  constructor(readonly name: string, readonly clients: Clients, readonly journal: Journal) {}

  async register(): Promise<void> {
    const answer = await this.clients.session.registerServer({ name: this.name });
    this.incarnation = answer.incarnation;
    this.loops.push(this.heartbeat(answer.renewEveryMs));
  }

  // Takes all of `players`; returns how many it got.
  async join(players: string[], mode: StartMode, graceMs = 0): Promise<number> {
    let joined = 0;
    for (let i = 0; i < players.length; i += BATCH) {
      const requests = players.slice(i, i + BATCH).map((playerId) => ({ playerId }));
      const { results } = await this.clients.session.batchStartSession(
        { opId: opId(), incarnation: this.incarnation, mode, graceMs, requests });
      results.forEach(({ outcome }, at) => {
        if (outcome.case !== "response") throw new Error(`join: ${outcome.value?.message}`);
        this.sessions.set(requests[at]!.playerId, outcome.value.token);
        joined++;
      });
    }
    return joined;
  }

  play(matchLoops: number, shopLoops: number): void {
    for (let i = 0; i < matchLoops; i++) this.loops.push(this.until(() => this.playMatch()));
    for (let i = 0; i < shopLoops; i++) this.loops.push(this.until(() => this.visitShop()));
  }

  // Ends the load, saves every player and gives the registration back.
  async leave(): Promise<void> {
    this.playing = false;
    await Promise.all(this.loops);
    const players = [...this.sessions.keys()];
    for (let i = 0; i < players.length; i += BATCH) {
      const requests = players.slice(i, i + BATCH).map((player) => this.endRequest(player));
      const { results } = await this.clients.session.batchEndSession({ requests });
      for (const { outcome } of results)
        if (outcome.case !== "response") throw new Error(`leave: ${outcome.value?.message}`);
    }
    this.sessions.clear();
    await this.clients.session.unregisterServer({ incarnation: this.incarnation });
  }

  // A write with the token this server holds, or held once.
  async grantWith(player: string, token: string, stale: boolean): Promise<void> {
    const id = opId();
    const entry = this.journal.open(player, id, { changes: gold(1000), stale });
    await carryOut(this, entry, "seal", () => this.clients.ledger.grant({ playerId: player,
      opId: id, authority: session(token), currencies: amountsOf(entry.changes), reason: "late" }));
  }

  private endRequest(playerId: string) {
    return { playerId, opId: opId(), authority: session(this.sessions.get(playerId)!),
      edits: [{ name: "progression", schemaVersion: 1, edit: { case: "merge" as const,
        value: JSON.stringify({ last_server: this.name }) } }] };
  }

  private async until(step: () => Promise<void>): Promise<void> {
    while (this.playing) {
      if (this.sessions.size >= MATCH_PLAYERS) await step();
      await sleep(10 + Math.random() * 20);
    }
  }

  private async heartbeat(everyMs: number): Promise<void> {
    let last = 0;
    while (this.playing) {
      await sleep(20);
      if (Date.now() - last < Math.min(everyMs, 500)) continue;
      last = Date.now();
      await this.renew().catch(() => undefined); // The next one is due soon.
    }
  }

  private async renew(): Promise<void> {
    const sessions = [...this.sessions].map(([playerId, token]) => ({ playerId, token }));
    const answer = await this.clients.session.renewSessions(
      { incarnation: this.incarnation, sessions }, { timeoutMs: 2000 });
    for (const { playerId, token } of answer.lost) {
      if (this.sessions.get(playerId) !== token) continue;
      this.toldLost++;
      this.sessions.delete(playerId);
    }
    for (const { playerId, token } of answer.releaseRequested) {
      if (this.stubborn.has(playerId) || this.sessions.get(playerId) !== token) continue;
      const request = this.endRequest(playerId);
      this.sessions.delete(playerId);
      await this.clients.session.endSession(request);
      this.releasedOnRequest++;
    }
  }

  // Ten players finish a match; one batch pays all of them.
  private async playMatch(): Promise<void> {
    const match = `${this.incarnation}.${++this.matches}`;
    const players = [...new Set(Array.from({ length: MATCH_PLAYERS }, () =>
      pick([...this.sessions.keys()])))];
    const sealed = await this.pay(`match:${match}:1`, players);
    // Sealed as "never": the reward is owed still, and is paid under the next version.
    for (const player of sealed)
      if (this.sessions.has(player)) await this.pay(`match:${match}:2`, [player]);
  }

  // Returns the players whose reward was sealed before it was carried out.
  private async pay(id: string, players: string[]): Promise<string[]> {
    const requests = players.map((playerId) => ({ playerId, opId: id, reason: "match_reward",
      authority: session(this.sessions.get(playerId) ?? ""),
      currencies: [{ currency: "gold", amount: BigInt(10 + Math.floor(Math.random() * 40)) }] }));
    const entries = requests.map((request) => this.journal.open(request.playerId, id, {
      changes: new Map([["gold", request.currencies[0]!.amount]]) }));
    let outcomes: Outcome[];
    try {
      const { results } = await this.clients.ledger.batchGrant({ requests },
        { timeoutMs: MATCH_TIMEOUT_MS });
      outcomes = results.map((result) => result.outcome);
    } catch (error) {
      outcomes = entries.map(() => ({ case: "failure", value: error }));
    }
    await Promise.all(outcomes.map(async (outcome, i) => {
      const again = await this.takeOutcome(entries[i]!, outcome);
      if (again)
        await carryOut(this, entries[i]!, "seal", () => this.clients.ledger.grant(requests[i]!));
    }));
    return entries.filter((entry) => entry.answer === "aborted").map((entry) => entry.player);
  }

  private async takeOutcome(entry: Entry, outcome: Outcome): Promise<boolean> {
    if (outcome.case === "response") {
      this.journal.acknowledge(entry, outcome.value.write!.duplicate);
      return false;
    }
    const failure = outcome.case === "error" ? failureOfDetail(outcome.value)
      : failureOf(outcome.value);
    return onFailure(this, entry, failure, "seal");
  }

  // One player buys something, another gains experience.
  private async visitShop(): Promise<void> {
    const [buyer, token] = pick([...this.sessions]);
    const spend = this.journal.open(buyer, opId(), { changes: gold(-5) });
    await carryOut(this, spend, "seal", () => this.clients.ledger.spend({ playerId: buyer,
      opId: spend.opId, authority: session(token), reason: "shop",
      currencies: [{ currency: "gold", amount: 5n }] }, { timeoutMs: 2000 }));
    const [learner, learnerToken] = pick([...this.sessions]);
    const update = this.journal.open(learner, opId(), { xp: 25 });
    await carryOut(this, update, "repeat", () => this.clients.profile.updateProfile({
      playerId: learner, opId: update.opId, authority: session(learnerToken),
      edits: [{ name: "progression", schemaVersion: 1, edit: { case: "patch", value: { steps: [
        { kind: PatchKind.INCREMENT, path: "/xp", json: "25" }] } } }] }, { timeoutMs: 2000 }));
  }
}

type Outcome = { case: "response"; value: GrantResponse } | { case: "error"; value: ErrorDetail }
  | { case: "failure"; value: unknown } | { case: undefined; value?: undefined };

function session(token: string) {
  return `session:${token}`;
}

