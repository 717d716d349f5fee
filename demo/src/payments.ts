// The back end behind a payment provider's webhooks: each delivery becomes a grant under
// `receipt:<orderId>`, by `system` authority, whether or not the player is in a game.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clients } from "./clients.js";
import { type Journal, amountsOf } from "./journal.js";
import { carryOut } from "./settle.js";

// The fields this back end reads of a notification.
export interface Receipt {
  orderId: string;
  productId: string;
  quantity: number;
  obfuscatedAccountId: string;
  notificationType: string;
}

interface Product {
  currency?: [string, number];
  item?: string;
}

const catalogue: Record<string, Product> = {
  gems_80: { currency: ["gems", 80] },
  gems_500: { currency: ["gems", 500] },
  gems_1200: { currency: ["gems", 1200] },
  starter_pack: { currency: ["gold", 2500], item: "starter_chest" },
  sword_of_dawn: { item: "sword_of_dawn" },
};

export function readFeed(path: string): Receipt[] {
  return readFileSync(path, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

export const isPurchase = (receipt: Receipt) =>
  receipt.notificationType === "ONE_TIME_PRODUCT_PURCHASED";

// What a receipt is worth.
export function worth(receipt: Receipt): { changes: Map<string, bigint>; items: string[] } {
  const product = catalogue[receipt.productId]!;
  const changes = new Map<string, bigint>();
  if (product.currency !== undefined)
    changes.set(product.currency[0], BigInt(product.currency[1] * receipt.quantity));
  const items = product.item !== undefined
    ? Array<string>(receipt.quantity).fill(product.item) : [];
  return { changes, items };
}

export class Payments {
  delivered = 0;

  constructor(readonly clients: Clients, readonly journal: Journal) {}

  // Takes `perSecond` deliveries a second, each on its own: a slow one holds up no other.
  async consume(feed: Receipt[], perSecond: number): Promise<void> {
    const begun = Date.now();
    const open: Promise<void>[] = [];
    for (let i = 0; i < feed.length; i++) {
      const early = begun + (i * 1000) / perSecond - Date.now();
      if (early > 0) await sleep(early);
      open.push(this.deliver(feed[i]!));
    }
    await Promise.all(open);
  }

  private async deliver(receipt: Receipt): Promise<void> {
    this.delivered++;
    if (!isPurchase(receipt)) return;
    const player = receipt.obfuscatedAccountId;
    const { changes, items } = worth(receipt);
    const entry = this.journal.open(player, `receipt:${receipt.orderId}`,
      { changes, items: items.length });
    await carryOut(this, entry, "repeat", () => this.clients.ledger.grant({
      playerId: player, opId: entry.opId, reason: "purchase",
      authority: "system:payments",
      currencies: amountsOf(changes), items: items.map((kind) => ({ kind })) },
    { timeoutMs: 2000 }));
  }
}
