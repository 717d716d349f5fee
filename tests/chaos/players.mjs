// Callers who write down what they did and were told, for holdfast-check (check/README.md). They act
// through a stock client, several at once on the same players: money, documents, sessions. What is
// not answered they repeat under the same op_id, seal, or give up.
//
//   players.mjs < plan      plan: one line of JSON, {url, name, hands, free, held, seed, calls}
//
// `free` players are written by anybody; `held` ones under sessions, which are stolen from each other.
// Ends when standard input does. Prints the history's calls and answers; numbers are `calls` + 1 ...
import { createInterface } from "node:readline";
import { ConnectError, createClient, createConnectTransport, opId } from "../conformance/client.mjs";
import { ErrorCode, ErrorDetailSchema, Outcome } from "../conformance/gen/holdfast/v1/error_pb.js";
import { LedgerService } from "../conformance/gen/holdfast/v1/ledger_pb.js";
import { MailboxService } from "../conformance/gen/holdfast/v1/mailbox_pb.js";
import { OperationState } from "../conformance/gen/holdfast/v1/operation_pb.js";
import { OperationService } from "../conformance/gen/holdfast/v1/operation_service_pb.js";
import { ProfileService } from "../conformance/gen/holdfast/v1/profile_pb.js";
import { SessionService, StartMode } from "../conformance/gen/holdfast/v1/session_pb.js";
import { answers, dice } from "./caller.mjs";

const PATIENCE_MS = 120_000;
const SECTION = "save";
const unheld = "unheld";
const payments = "system:payments";
const within = (token) => `session:${token}`;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const transport = createConnectTransport({
  baseUrl: plan.url, httpVersion: "1.1", useBinaryFormat: false });
const ledger = createClient(LedgerService, transport);
const mailbox = createClient(MailboxService, transport);
const operation = createClient(OperationService, transport);
const profiles = createClient(ProfileService, transport);
const sessions = createClient(SessionService, transport);

const { below, choose, pause, random } = dice(plan.seed);
const { tell, clock, end } = answers();
const open = new Map(); // token -> player: the sessions that this server believes it holds.
let calls = plan.calls, documents = plan.calls, stopping = false;
lines.next().then(() => { stopping = true; });

function called(player, deed, more = {}) {
  calls++;
  tell({ call: calls, at: clock(), player, do: deed, client: plan.name, ...more });
  return calls;
}
const answered = (call, state, more = {}) => tell({ answer: call, at: clock(), state, ...more });

async function seal(player, op) {
  const until = Date.now() + PATIENCE_MS;
  while (Date.now() < until) {
    try {
      const answer = await operation.resolveOperation(
        { entity: `player:${player}`, opId: op, seal: true }, { timeoutMs: 3000 });
      return answer.operation.state;
    } catch {
      await pause(50);
    }
  }
  return undefined;
}

// One operation, from its first packet until its outcome is known or given up. `told(answer)` is what
// the answer says of the player. The answer, or undefined.
async function act(player, deed, fields, request, send, told) {
  const call = called(player, deed, fields);
  request.opId = opId();
  const tries = 1 + below(5);
  for (let i = 0; i < tries; i++) {
    try {
      const answer = await send(request, { timeoutMs: choose([100, 300, 1000, 4000]) });
      answered(call, "ok", { duplicate: answer.write?.duplicate ?? false, ...told(answer) });
      return answer;
    } catch (error) {
      const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
      if (detail?.outcome === Outcome.REFUSED) {
        answered(call, "refused", { code: ErrorCode[detail.code] ?? String(detail.code) });
        return undefined;
      }
    }
    await pause(below(60));
  }
  const state = random() < 0.9 ? await seal(player, request.opId) : undefined;
  if (state === OperationState.COMMITTED && deed !== "join") answered(call, "ok");
  else if (state === OperationState.ABORTED || state === OperationState.REFUSED)
    answered(call, "refused", { code: "SEALED" });
  else answered(call, "unknown");
  return undefined;
}

const goldOf = (balances) =>
  Number(balances.find((balance) => balance.currency === "gold")?.amount ?? 0n);
const currencies = (gold) => [{ currency: "gold", amount: BigInt(gold) }];
const afterChange = (answer) => ({ gold: goldOf(answer.balances) });

function standing(profile) {
  const section = profile.sections.find((one) => one.name === SECTION);
  return { gold: goldOf(profile.balances), document: section ? JSON.parse(section.json).n : 0,
    version: Number(section?.version ?? 0) };
}

async function read(player) {
  const at = clock(); // Those that had no answer read nothing.
  try {
    const { profile } = await profiles.getProfile({ playerId: player }, { timeoutMs: 2000 });
    calls++;
    tell({ call: calls, at, player, do: "read", client: plan.name });
    answered(calls, "ok", standing(profile));
  } catch {
    await pause(20);
  }
}

const edit = (n) => [{ name: SECTION, edit: { case: "replace", value: JSON.stringify({ n }) } }];
const saved = (answer) => ({ version: Number(answer.sections[0]?.version ?? 0) });

async function grant(player) {
  const gold = 1 + below(20);
  await act(player, "grant", { gold }, { playerId: player, authority: payments,
    currencies: currencies(gold) }, ledger.grant, afterChange);
}

async function spend(player) {
  const gold = 1 + below(30);
  await act(player, "spend", { gold }, { playerId: player, authority: unheld,
    currencies: currencies(gold) }, ledger.spend, afterChange);
}

async function send(player) {
  const gold = 1 + below(10), to = choose(plan.free);
  if (to === player) return;
  await act(player, "send", { gold, to }, { playerId: player, toPlayerId: to, authority: unheld,
    currencies: currencies(gold), text: "for you" }, mailbox.send,
  (answer) => (answer.mailId ? { mail: answer.mailId } : {}));
}

async function claim(player) {
  let mails;
  try {
    ({ mails } = await mailbox.listMail({ playerId: player, pageSize: 8 }, { timeoutMs: 2000 }));
  } catch {
    return;
  }
  if (mails.length === 0) return;
  const mail = choose(mails);
  await act(player, "claim", { mail: mail.mailId, gold: goldOf(mail.currencies) },
    { playerId: player, mailIds: [mail.mailId], authority: unheld }, mailbox.claim, () => ({}));
}

async function save(player, session) {
  documents++;
  const fields = { document: documents, ...(session ? { fence: session.fence } : {}) };
  await act(player, "save", fields, { playerId: player, edits: edit(documents),
    authority: session ? within(session.token) : unheld }, profiles.updateProfile, saved);
}

async function leave(player, session) {
  documents++;
  open.delete(session.token);
  await act(player, "leave", { document: documents, fence: session.fence }, { playerId: player,
    edits: edit(documents), authority: within(session.token) }, sessions.endSession, saved);
}

async function join(player, incarnation) {
  const from = clock();
  const answer = await act(player, "join", {}, { playerId: player, incarnation: incarnation.name,
    mode: StartMode.STEAL, graceMs: choose([100, 500]) }, sessions.startSession,
  (said) => ({ fence: Number(said.fence) }));
  if (!answer?.profile) return undefined; // Without one, the session was over when this was answered.
  calls++; // Read when answering, not when the session began.
  tell({ call: calls, at: from, player, do: "read", client: plan.name });
  answered(calls, "ok", standing(answer.profile));
  const session = { token: answer.token, fence: Number(answer.fence) };
  open.set(session.token, player);
  return session;
}

async function play(player, incarnation) {
  const session = await join(player, incarnation);
  if (session === undefined) return;
  for (let left = below(8); left > 0 && !stopping; left--) {
    if (random() < 0.3) await pause(below(300));
    await (random() < 0.7 ? save(player, session) : read(player));
  }
  if (random() < 0.8) await leave(player, session);
  else open.delete(session.token); // Crashed, as far as the player is concerned.
}

async function hand(incarnation) {
  const free = [[0.25, grant], [0.45, spend], [0.57, send], [0.7, claim], [0.8, save], [1, read]];
  while (!stopping) {
    if (random() < 0.25) await play(choose(plan.held), incarnation);
    else if (random() < 0.1) await choose([grant, read])(choose(plan.held));
    else {
      const roll = random();
      await free.find(([until]) => roll < until)[1](choose(plan.free));
    }
  }
}

// The heartbeat of a game server. One that was taken for dead registers again.
async function renew(incarnation) {
  while (!stopping) {
    try {
      if (incarnation.name === "")
        incarnation.name = (await sessions.registerServer({ name: plan.name }, { timeoutMs: 3000 })).incarnation;
      const held = [...open].map(([token, playerId]) => ({ playerId, token }));
      await sessions.renewSessions({ incarnation: incarnation.name, sessions: held }, { timeoutMs: 3000 });
    } catch (error) {
      const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
      if (detail?.code === ErrorCode.SERVER_EXPIRED) incarnation.name = "";
    }
    await pause(1000);
  }
}

const incarnation = { name: "" };
const heart = renew(incarnation);
await Promise.all(Array.from({ length: plan.hands }, () => hand(incarnation)));
await heart;
end();
