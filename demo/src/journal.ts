// The journal of the demo's side: what was asked of Holdfast, and what it answered. The audit at
// the end compares it with what the ledgers and profiles really hold.

export type Answer = "acknowledged" | "refused" | "aborted" | "open";

// One operation on one player, under one op_id.
export interface Entry {
  player: string;
  opId: string;
  // What it adds to each balance (negative: takes), and to progression.xp.
  changes: Map<string, bigint>;
  xp: number;
  items: number;
  // True when it was sent with a token that had been taken away.
  stale: boolean;
  // True once a try of it was unknown.
  doubtful?: boolean;
  answer: Answer;
}

export class Journal {
  readonly entries = new Map<string, Entry>();
  duplicatesAnswered = 0;
  mismatchesRefused = 0;
  staleRefused = 0;
  staleAcknowledged = 0;
  unknown = 0;
  settledCommitted = 0;
  settledAborted = 0;

  // The entry of (player, op_id): asked once, however often it is sent.
  open(player: string, opId: string, effect: Partial<Entry>): Entry {
    const key = `${player} ${opId}`;
    let entry = this.entries.get(key);
    if (entry === undefined) {
      entry = { player, opId, changes: new Map(), xp: 0, items: 0, stale: false, answer: "open",
        ...effect };
      this.entries.set(key, entry);
    }
    return entry;
  }

  acknowledge(entry: Entry, duplicate: boolean): void {
    if (duplicate) this.duplicatesAnswered++;
    if (entry.stale) this.staleAcknowledged++;
    entry.answer = "acknowledged";
  }

  count(answer: Answer): number {
    let count = 0;
    for (const entry of this.entries.values()) if (entry.answer === answer) count++;
    return count;
  }
}

export const gold = (amount: number) => new Map([["gold", BigInt(amount)]]);

export function amountsOf(changes: Map<string, bigint>) {
  return [...changes].map(([currency, amount]) => ({ currency, amount }));
}
