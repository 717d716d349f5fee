// Settings of some players, changed by a game server on each side of a cut, and what was acknowledged of it.
import { setTimeout as sleep } from "node:timers/promises";
import { PatchKind } from "../gen/holdfast/v1/profile_pb.js";
import { type Clients, opId } from "./clients.js";
import { read } from "./favorite_callers.js";

const PAUSE_MS = 5;
const EQUAL_MS_MAX = 60000;

type Side = "near" | "far";

export class Settings {
  readonly acknowledged = { near: 0, far: 0 };
  kills = 0;
  // The last value of each leaf that a side had acknowledged, by player.
  private readonly written = { near: new Map<string, number>(), far: new Map<string, number>() };

  constructor(private readonly near: Clients, private readonly far: Clients, private readonly players: string[]) {}

  private clients(side: Side): Clients {
    return side === "near" ? this.near : this.far;
  }

  private async change(side: Side, player: string, leaf: string, value: number): Promise<void> {
    const request = { entity: `player:${player}`, collection: "settings", key: "main", opId: opId(),
      edit: { case: "merge" as const, value: JSON.stringify({ [leaf]: value }) } };
    await read(() => this.clients(side).document.updateDocument(request));
    this.written[side].set(`${player} ${leaf}`, value);
    this.acknowledged[side]++;
  }

  private async kill(side: Side, player: string): Promise<void> {
    const steps = [{ kind: PatchKind.INCREMENT, path: "/kills", json: "1" }];
    const request = { entity: `player:${player}`, collection: "kills", key: "main", opId: opId(),
      edit: { case: "patch" as const, value: { steps } } };
    await read(() => this.clients(side).document.updateDocument(request));
    this.kills++;
    this.acknowledged[side]++;
  }

  async begin(): Promise<void> {
    await Promise.all(this.players.map((player) => this.change("near", player, "language", 0)));
  }

  // One leaf of its own, one of both, and a kill, player by player.
  private async playSide(side: Side, endMs: number): Promise<void> {
    for (let turn = 1; performance.now() < endMs; turn++) {
      const player = this.players[turn % this.players.length]!;
      await this.change(side, player, side === "near" ? "hud" : "volume", turn);
      await this.change(side, player, "language", turn * 2 + (side === "near" ? 0 : 1));
      await this.kill(side, player);
      await sleep(PAUSE_MS);
    }
  }

  async play(endMs: number): Promise<void> {
    await Promise.all([this.playSide("near", endMs), this.playSide("far", endMs)]);
  }

  private async told(clients: Clients, player: string, collection: string): Promise<Record<string, number>> {
    const where = { entity: `player:${player}`, collection, key: "main" };
    const { document } = await read(() => clients.document.getDocument(where));
    return document === undefined ? {} : JSON.parse(document.json);
  }

  // Leaves that a reader on one side is told otherwise than some side had acknowledged last.
  private async lostOn(clients: Clients): Promise<number> {
    let lost = 0;
    for (const player of this.players) {
      const told = await this.told(clients, player, "settings");
      for (const leaf of ["hud", "volume", "language"]) {
        const key = `${player} ${leaf}`;
        const last = [this.written.near.get(key), this.written.far.get(key)].filter((value) => value !== undefined);
        if (last.length > 0 && !last.includes(told[leaf]!)) lost++;
      }
    }
    return lost;
  }

  private async killsOn(clients: Clients): Promise<number> {
    const told = await Promise.all(this.players.map((player) => this.told(clients, player, "kills")));
    return told.reduce((sum, { kills }) => sum + (kills ?? 0), 0);
  }

  // Read on both sides until nothing is missing, at most a minute.
  async lost(): Promise<{ leaves: number; kills: number[] }> {
    const endMs = performance.now() + EQUAL_MS_MAX;
    for (;;) {
      const leaves = await this.lostOn(this.near) + await this.lostOn(this.far);
      const kills = [await this.killsOn(this.near), await this.killsOn(this.far)];
      const all = leaves === 0 && kills.every((sum) => sum === this.kills);
      if (all || performance.now() > endMs) return { leaves, kills };
      await sleep(200);
    }
  }
}
