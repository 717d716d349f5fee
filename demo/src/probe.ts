// Measures time without service: small writes to chosen players, one after the other, without
// pause worth speaking of. The longest gap between two acknowledgements of one player is how long
// that player could not be saved.
import { setTimeout as sleep } from "node:timers/promises";
import { type Clients, opId } from "./clients.js";
import { type Journal, amountsOf, gold } from "./journal.js";
import { carryOut } from "./settle.js";

const PAUSE_MS = 20;

export class Probe {
  private readonly acknowledgedAt = new Map<string, number[]>();
  private running = true;
  private readonly loops: Promise<void>[];

  constructor(readonly clients: Clients, readonly journal: Journal, players: string[]) {
    this.loops = players.map((player) => this.loop(player));
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  // The longest gap of each player of `players` that ends after `since`, in ms, ascending.
  gaps(players: string[], since: number): number[] {
    return players.map((player) => {
      const at = this.acknowledgedAt.get(player)!;
      let longest = 0;
      for (let i = 1; i < at.length; i++)
        if (at[i]! >= since) longest = Math.max(longest, at[i]! - at[i - 1]!);
      return longest;
    }).sort((a, b) => a - b);
  }

  private async loop(player: string): Promise<void> {
    const times: number[] = [];
    this.acknowledgedAt.set(player, times);
    while (this.running) {
      const entry = this.journal.open(player, opId(), { changes: gold(1) });
      const answer = await carryOut(this, entry, "repeat", () => this.clients.ledger.grant({
        playerId: player, opId: entry.opId, reason: "probe",
        authority: "system:match",
        currencies: amountsOf(entry.changes) }, { timeoutMs: 8000 }));
      if (answer !== undefined) times.push(performance.now());
      await sleep(PAUSE_MS);
    }
  }
}
