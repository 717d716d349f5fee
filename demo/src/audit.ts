// Reads back every player (whole ledgers, balances, profiles) and compares with the journal of
// what was acknowledged. Uses nothing that Holdfast counted.
import type { LedgerEntry } from "../gen/holdfast/v1/ledger_pb.js";
import type { Profile } from "../gen/holdfast/v1/profile_pb.js";
import type { Clients } from "./clients.js";
import type { Entry, Journal } from "./journal.js";
import { type Receipt, isPurchase, worth } from "./payments.js";

const READERS = 16;

export interface Findings {
  ledgerEntries: number;
  lost: string[];
  duplicated: string[];
  // Applied though refused or sealed, stale writes among them, or never asked for.
  uninvited: string[];
  // Balances that are not the sum of their ledger, amounts that are not what was asked.
  wrong: string[];
}

type Amounts = Map<string, bigint>;

function add(to: Amounts, currency: string, amount: bigint): void {
  to.set(currency, (to.get(currency) ?? 0n) + amount);
}

const amountsText = (amounts: Amounts) => [...amounts].filter(([, amount]) => amount !== 0n)
  .sort().map(([currency, amount]) => `${currency}:${amount}`).join(",");

async function wholeLedger(clients: Clients, playerId: string): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let cursor = "";
  do {
    const page = await clients.ledger.listEntries({ playerId, pageSize: 200, cursor,
      ascending: true });
    entries.push(...page.entries);
    cursor = page.nextCursor;
  } while (cursor !== "");
  return entries;
}

function auditLedger(player: string, ledger: LedgerEntry[], asked: Map<string, Entry>,
  findings: Findings): Amounts {
  const sums: Amounts = new Map();
  const seen = new Set<string>();
  ledger.forEach((entry, i) => {
    const name = `${entry.opId} of ${player}`;
    const known = asked.get(entry.opId);
    const changes: Amounts = new Map();
    for (const { currency, amount } of entry.changes) {
      add(sums, currency, amount);
      add(changes, currency, amount);
    }
    if (seen.has(entry.opId)) findings.duplicated.push(name);
    seen.add(entry.opId);
    if (entry.seq !== BigInt(i + 1)) findings.wrong.push(`${name}: seq ${entry.seq}`);
    if (known === undefined || known.answer !== "acknowledged")
      findings.uninvited.push(`${name}: ${known?.answer ?? "never asked for"}`);
    else if (amountsText(changes) !== amountsText(known.changes) ||
             entry.items.length !== known.items)
      findings.wrong.push(`${name}: ${amountsText(changes)}, asked ${amountsText(known.changes)}`);
  });
  for (const entry of asked.values())
    if (entry.answer === "acknowledged" && entry.xp === 0 && !seen.has(entry.opId))
      findings.lost.push(`${entry.opId} of ${player}`);
  findings.ledgerEntries += ledger.length;
  return sums;
}

function auditProfile(player: string, profile: Profile, sums: Amounts, asked: Map<string, Entry>,
  findings: Findings): void {
  const balances: Amounts = new Map(profile.balances.map(({ currency, amount }) =>
    [currency, amount]));
  if (amountsText(balances) !== amountsText(sums))
    findings.wrong.push(`${player}: has ${amountsText(balances)}, ledger ${amountsText(sums)}`);
  let xp = 0;
  let items = 0;
  for (const entry of asked.values()) {
    if (entry.answer !== "acknowledged") continue;
    xp += entry.xp;
    items += entry.items;
  }
  const section = profile.sections.find(({ name }) => name === "progression");
  const progression = JSON.parse(section?.json ?? "{}") as { xp?: number; last_server?: string };
  const found = progression.xp ?? 0;
  if (found < xp) findings.lost.push(`${player}: ${xp - found} xp`);
  if (found > xp) findings.duplicated.push(`${player}: ${found - xp} xp too much`);
  if (profile.itemCount < items) findings.lost.push(`${player}: ${items} items expected`);
  if (profile.itemCount > items) findings.duplicated.push(`${player}: ${items} items expected`);
  if (progression.last_server === undefined) findings.lost.push(`${player}: the last save`);
}

// What the feed alone says each player must have been given: each order once, as first delivered.
function auditFeed(player: string, ledger: LedgerEntry[], feed: Receipt[], findings: Findings)
  : void {
  const orders = new Map<string, Receipt>();
  for (const receipt of feed)
    if (isPurchase(receipt) && receipt.obfuscatedAccountId === player &&
        !orders.has(receipt.orderId))
      orders.set(receipt.orderId, receipt);
  const expected: Amounts = new Map();
  for (const receipt of orders.values())
    for (const [currency, amount] of worth(receipt).changes) add(expected, currency, amount);
  const granted: Amounts = new Map();
  for (const entry of ledger)
    if (entry.opId.startsWith("receipt:"))
      for (const { currency, amount } of entry.changes) add(granted, currency, amount);
  if (amountsText(granted) !== amountsText(expected))
    findings.wrong.push(`${player}: paid for ${amountsText(expected)}, ` +
      `was given ${amountsText(granted)}`);
}

export async function audit(clients: Clients, journal: Journal, players: string[],
  feed: Receipt[]): Promise<Findings> {
  const findings: Findings = { ledgerEntries: 0, lost: [], duplicated: [], uninvited: [],
    wrong: [] };
  const asked = new Map(players.map((player) => [player, new Map<string, Entry>()]));
  for (const entry of journal.entries.values()) asked.get(entry.player)!.set(entry.opId, entry);
  const queue = [...players];
  await Promise.all(Array.from({ length: READERS }, async () => {
    for (let player = queue.pop(); player !== undefined; player = queue.pop()) {
      const ledger = await wholeLedger(clients, player);
      const { profile } = await clients.profile.getProfile({ playerId: player });
      const sums = auditLedger(player, ledger, asked.get(player)!, findings);
      auditProfile(player, profile!, sums, asked.get(player)!, findings);
      auditFeed(player, ledger, feed, findings);
    }
  }));
  return findings;
}
