// Players who send each other items and money, and trade them, through a stock client, over a network
// that loses answers. What a hand is not told it treats as game code does: it retries, gives up, seals,
// or "refunds" after a look at a replica that may be behind, as the code of the incident did. What a
// seal says will never happen it makes up for without a look.
//
//   traders.mjs < plan      plan: one line of JSON, {url, players, mine: [from, to], steps, seed}
//
// Every player belongs to one hand. Prints one line of JSON for each operation whose outcome this
// side knows or has given up, and one with figures at the end.
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { once } from "node:events";
import { ConnectError, createClient, createConnectTransport, opId } from "../conformance/client.mjs";
import { Action, ErrorDetailSchema } from "../conformance/gen/holdfast/v1/error_pb.js";
import { InventoryService } from "../conformance/gen/holdfast/v1/inventory_pb.js";
import { LedgerService } from "../conformance/gen/holdfast/v1/ledger_pb.js";
import { MailboxService } from "../conformance/gen/holdfast/v1/mailbox_pb.js";
import { OperationState } from "../conformance/gen/holdfast/v1/operation_pb.js";
import { OperationService } from "../conformance/gen/holdfast/v1/operation_service_pb.js";
import { TransactionService } from "../conformance/gen/holdfast/v1/transaction_pb.js";
import { dice } from "./caller.mjs"; // The same choices again for the same seed and order of answers.

const PATIENCE_MS = 180_000;
const WAITS_MAX = 20; // In one operation: short ones, which cost no patience.
const SHORT_MS = 200;
const unheld = "unheld";
const stale = { stale: true };

const [line] = await once(createInterface({ input: process.stdin }), "line");
const plan = JSON.parse(line);
const transport = createConnectTransport({
  baseUrl: plan.url, httpVersion: "1.1", useBinaryFormat: false });
const inventory = createClient(InventoryService, transport);
const ledger = createClient(LedgerService, transport);
const mailbox = createClient(MailboxService, transport);
const operation = createClient(OperationService, transport);
const transaction = createClient(TransactionService, transport);

const out = createWriteStream(null, { fd: 1 });
const figures = { steps: 0, retries: 0, waits: 0, sealed: 0, given_up: 0, refunds: 0,
  made_up_for: 0, swaps: 0, executes: 0, committed: 0, refused: 0, aborted: 0 };
const { below, choose, pause, random } = dice(plan.seed);
const coins = ({ gold }) => (gold > 0 ? [{ currency: "gold", amount: BigInt(gold) }] : []);

function told(record) {
  figures[record.state] = (figures[record.state] ?? 0) + 1;
  if (record.sides && record.state === "committed") figures[`${record.kind}s`]++;
  out.write(`${JSON.stringify(record)}\n`);
}

// What the service's error asks for, and nothing else of it; without our detail the outcome is unknown.
function decisionOf(error) {
  const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
  return { action: detail?.action ?? Action.RETRY_SAME, waitMs: detail?.retryAfterMs };
}

async function asked(call) { // What reads nothing but the truth is asked until it answers.
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await call({ timeoutMs: 3000 });
    } catch (error) {
      if (Date.now() > end) throw error;
      await pause(50);
    }
  }
}

async function seal(player, op) {
  const answer = await asked((options) => operation.resolveOperation(
    { entity: `player:${player}`, opId: op, seal: true }, options));
  figures.sealed++;
  const state = answer.operation.state;
  return { [OperationState.COMMITTED]: "committed", [OperationState.ABORTED]: "aborted",
    [OperationState.REFUSED]: "refused" }[state] ?? `sealed as ${OperationState[state]}`;
}

// Carries out `call(request, options)` as a game server would that may lose patience; the state
// it believes in the end: committed, refused, aborted or unknown.
async function settle(record, request, call) {
  request.opId = opId();
  request.authority = unheld;
  record.op = request.opId;
  let waits = 0;
  for (let tries = 1 + below(4); tries > 0; tries--) {
    try {
      const answer = await call(request, { timeoutMs: 150 + below(1500) });
      return { ...record, state: "committed", answer };
    } catch (error) {
      const { action, waitMs } = decisionOf(error);
      switch (action) {
        case Action.RETRY_SAME:
          if (waitMs < SHORT_MS && waits++ < WAITS_MAX) {
            figures.waits++;
            tries++;
            await pause(waitMs);
            continue;
          }
          break;
        case Action.NEVER: // Sealed by somebody else, or on its way.
          return { ...record, state: "aborted" };
        case Action.RAISE_ATTEMPT: // Both: not carried out, and this hand does something else next.
        case Action.REREAD:
          return { ...record, state: "refused", action: Action[action] };
        default: // FIX, or of sessions, which no hand has.
          throw error;
      }
    }
    figures.retries++;
    await pause(below(100));
  }
  if (random() < 0.5) return { ...record, state: await seal(record.player, record.op) };
  figures.given_up++;
  return { ...record, state: "unknown" };
}

class Hand {
  constructor(player) {
    this.player = player;
  }

  others(count) {
    const found = new Set();
    while (found.size < count) {
      const player = choose(plan.players);
      if (player !== this.player) found.add(player);
    }
    return [...found];
  }

  target() {
    return this.others(1)[0];
  }

  async items(read, player = this.player) {
    const { items } = await asked((options) => inventory.listItems(
      { playerId: player, pageSize: 100, read }, options));
    return items.map((item) => item.uid);
  }

  async give(uids, to = this.target()) {
    const record = { player: this.player, kind: "give", to, uids };
    return settle(record, { playerId: this.player, toPlayerId: to, itemUids: uids },
      (request, options) => inventory.transferItems(request, options));
  }

  async pay(amount = 1n + BigInt(below(20)), to = this.target()) {
    const record = { player: this.player, kind: "pay", to, gold: Number(amount) };
    return settle(record, { playerId: this.player, toPlayerId: to,
      currencies: [{ currency: "gold", amount }] },
    (request, options) => ledger.transferCurrencies(request, options));
  }

  async send(uids) {
    const to = this.target();
    const amount = 1n + BigInt(below(5));
    const record = { player: this.player, kind: "send", to, uids, gold: Number(amount) };
    return settle(record, { playerId: this.player, toPlayerId: to, itemUids: uids,
      currencies: [{ currency: "gold", amount }], text: "for you" },
    (request, options) => mailbox.sendMail(request, options));
  }

  async claim() {
    const { mails } = await asked((options) => mailbox.listMail(
      { playerId: this.player, pageSize: 16 }, options));
    if (mails.length === 0) return undefined;
    const taken = mails.slice(0, 1 + below(mails.length)).map((mail) => mail.mailId);
    const record = { player: this.player, kind: "claim", mails: taken };
    return settle(record, { playerId: this.player, mailIds: taken },
      (request, options) => mailbox.claimMail(request, options));
  }

  // What a player gives in a trade: an item, by a look that may be behind, or gold.
  async offer(player) {
    const uids = random() < 0.6 ? await this.items(stale, player) : [];
    if (uids.length > 0) return { player, uids: [choose(uids)], gold: 0 };
    return { player, uids: [], gold: 1 + below(20) };
  }

  // Two looks at different moments can show one item with two players: the first of them offers it.
  async offers(players) {
    const sides = await Promise.all(players.map((player) => this.offer(player)));
    return sides.map((side, i) => {
      const offered = sides.slice(0, i).some(({ uids }) => uids[0] === side.uids[0]);
      return side.uids.length > 0 && offered
        ? { player: side.player, uids: [], gold: 1 + below(20) } : side;
    });
  }

  async swap() {
    const [mine, theirs] = await this.offers([this.player, this.target()]);
    const record = { player: this.player, kind: "swap", sides: [mine, theirs] };
    const [a, b] = [mine, theirs].map((side) => ({ playerId: side.player, authority: unheld,
      gives: { currencies: coins(side), itemUids: side.uids } }));
    return settle(record, { a, b },
    (request, options) => transaction.swap(request, options));
  }

  // Three or four in a ring: each gives to the next.
  async execute() {
    const players = [this.player, ...this.others(2 + below(2))];
    const sides = await this.offers(players);
    const changes = sides.map((side, i) => ({ change: { case: "move", value: {
      fromPlayerId: side.player, toPlayerId: players[(i + 1) % players.length],
      currencies: coins(side), itemUids: side.uids } } }));
    const checks = sides.flatMap((side) => side.uids.map((uid) => ({
      playerId: side.player, check: { case: "itemUid", value: uid } })));
    return settle({ player: this.player, kind: "execute", sides }, { playerId: this.player,
      others: players.slice(1).map((playerId) => ({ playerId, authority: unheld })),
      changes, checks }, (request, options) => transaction.executeTransaction(request, options));
  }

  // A trade that a seal has ended never happens, so what was offered is given by itself.
  async makeUpFor({ sides: [{ uids, gold }, next] }) {
    figures.made_up_for++;
    this.tell(uids.length > 0 ? await this.give(uids, next.player)
      : await this.pay(BigInt(gold), next.player));
  }

  // The incident: the send has no answer, a read that may be old shows the item still here, so it
  // is given away once more. At most one of the two can have happened.
  async refund(record) {
    const held = new Set(await this.items(random() < 0.8 ? stale : undefined));
    const here = record.uids.filter((uid) => held.has(uid));
    if (here.length === 0) return;
    figures.refunds++;
    this.tell(await this.give(here));
  }

  tell({ answer: _, ...record }) {
    told(record);
    figures.steps++;
  }

  async step() {
    const roll = random();
    let record;
    if (roll < 0.3) record = await this.claim();
    else if (roll < 0.4) record = await this.pay();
    else if (roll < 0.62) record = await this.swap();
    else if (roll < 0.7) record = await this.execute();
    else {
      const held = await this.items(random() < 0.3 ? stale : undefined);
      if (held.length === 0) return;
      const uids = [choose(held)];
      record = roll < 0.85 ? await this.give(uids) : await this.send(uids);
    }
    if (record === undefined) return;
    this.tell(record);
    if (record.state === "unknown" && record.uids) await this.refund(record);
    if (record.state === "aborted" && record.sides) await this.makeUpFor(record);
  }
}

async function play(hand) {
  while (figures.steps < plan.steps) await hand.step();
}

await Promise.all(plan.players.slice(...plan.mine).map((player) => play(new Hand(player))));
out.end(`${JSON.stringify({ figures })}\n`);
