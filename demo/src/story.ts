// The demo: a story of one evening, told while it happens, and a table that says whether it went
// well. Usage: node out/src/story.js CLUSTER.JSON RECEIPTS.JSONL. Exits 1 if a number is wrong.
import { setTimeout as sleep } from "node:timers/promises";
import { StartMode } from "../gen/holdfast/v1/session_pb.js";
import { audit } from "./audit.js";
import { connect } from "./clients.js";
import { Cluster } from "./cluster.js";
import { GameServer } from "./game_server.js";
import { Journal } from "./journal.js";
import { Payments, isPurchase, readFeed } from "./payments.js";
import { Probe } from "./probe.js";
import { type Row, printTable } from "./table.js";

const PLAYERS = 500;
const STOLEN = 60;
const STUBBORN = 30; // Of the stolen: not released, and written on with the old token.
const GRACE_MS = 1500;
const RECEIPTS_PER_SECOND = 90;
const PROBES_AFFECTED = 24;
const PROBES_OTHER = 12;

const begun = performance.now();

function tell(text: string): void {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}

const names = (from: number, to: number) => Array.from({ length: to - from }, (_, i) =>
  `player-${String(from + i + 1).padStart(4, "0")}`);

async function stealSessions(east: GameServer, west: GameServer, journal: Journal) {
  const stolen = [...east.sessions.keys()].slice(0, STOLEN);
  const stubborn = stolen.slice(0, STUBBORN);
  const oldTokens = stubborn.map((player) => [player, east.sessions.get(player)!] as const);
  stubborn.forEach((player) => east.stubborn.add(player));
  const at = performance.now();
  const taken = await west.join(stolen, StartMode.STEAL, GRACE_MS);
  tell(`${west.name} took ${taken} players from ${east.name} in ` +
    `${Math.round(performance.now() - at)} ms: ${east.releasedOnRequest} saved and released when ` +
    `asked, ${STUBBORN} not, taken after ${GRACE_MS} ms of grace`);
  let sent = 0;
  for (let round = 0; round < 3; round++) {
    await Promise.all(oldTokens.map(([player, token]) => east.grantWith(player, token, true)));
    sent += oldTokens.length;
  }
  tell(`${east.name} wrote ${sent} times with the tokens it had lost: ${journal.staleRefused} ` +
    `refused as SESSION_LOST, ${journal.staleAcknowledged} accepted`);
  return sent;
}

// The node that owns most of the joined players.
async function chooseVictim(clients: GameServer["clients"], players: string[]) {
  const { nodes } = await clients.admin.getCluster({});
  const { shards } = await clients.admin.listShards({});
  const ownerOf = new Map(shards.map(({ shard, owner }) => [shard, owner]));
  const sessions = await Promise.all(
    players.map((playerId) => clients.admin.getSession({ playerId })));
  const playersOf = (replica: bigint) =>
    players.filter((_, i) => ownerOf.get(sessions[i]!.shard) === replica);
  return nodes.map((node) => ({ name: node.name, players: playersOf(node.replicaId) }))
    .sort((a, b) => b.players.length - a.players.length)[0]!;
}

async function killAndMeasure(cluster: Cluster, server: GameServer, players: string[],
  journal: Journal) {
  const victim = await chooseVictim(server.clients, players);
  const affected = victim.players.slice(0, PROBES_AFFECTED);
  const others = players.filter((player) => !victim.players.includes(player))
    .slice(0, PROBES_OTHER);
  const { pid, starts } = cluster.process(victim.name);
  const probe = new Probe(server.clients, journal, [...affected, ...others]);
  await sleep(1500);
  cluster.kill(victim.name);
  const killedAt = performance.now();
  tell(`SIGKILL to ${victim.name} (pid ${pid}), which serves ${victim.players.length} of the ` +
    `players, while everything goes on`);
  await cluster.waitBack(server.clients, victim.name, starts + 1, killedAt + 30000);
  tell(`${victim.name} is back and holds every shard again, ` +
    `${Math.round(performance.now() - killedAt)} ms after the kill`);
  await sleep(1000);
  await probe.stop();
  const gaps = probe.gaps(affected, killedAt);
  const result = { victim: victim.name, worst: gaps.at(-1)!,
    median: gaps[Math.floor(gaps.length / 2)]!, other: probe.gaps(others, killedAt).at(-1)! };
  tell(`its players were without service for ${Math.round(result.median)} ms (median), ` +
    `${Math.round(result.worst)} ms at worst; everyone else's longest gap: ` +
    `${Math.round(result.other)} ms`);
  return result;
}

async function main(clusterFile: string, feedFile: string): Promise<boolean> {
  const cluster = new Cluster(clusterFile);
  const { endpoint } = cluster.read();
  const journal = new Journal();
  const players = names(0, PLAYERS);
  const feed = readFeed(feedFile);
  const east = new GameServer("plaza-east", connect("Connect, binary, HTTP/2", endpoint), journal);
  const west = new GameServer("plaza-west", connect("Connect, JSON, HTTP/1.1", endpoint), journal);
  const payments = new Payments(connect("Connect, JSON, HTTP/1.1", endpoint), journal);

  await Promise.all([east.register(), west.register()]);
  tell(`two game servers registered: ${east.name} ${east.incarnation} (binary, HTTP/2), ` +
    `${west.name} ${west.incarnation} (JSON, HTTP/1.1)`);
  const joinAt = performance.now();
  const joined = (await Promise.all([east.join(players.slice(0, 300), StartMode.FAIL),
    west.join(players.slice(300), StartMode.FAIL)])).reduce((a, b) => a + b);
  tell(`${joined} players joined in ${Math.round(performance.now() - joinAt)} ms, profiles loaded`);

  east.play(3, 2);
  west.play(3, 2);
  tell(`matches begin; the payment provider delivers ${feed.length} notifications, about ` +
    `${RECEIPTS_PER_SECOND} a second`);
  const paid = payments.consume(feed, RECEIPTS_PER_SECOND);
  await sleep(1000);
  const staleSent = await stealSessions(east, west, journal);
  const outage = await killAndMeasure(cluster, east, players, journal);
  await paid;
  const orders = new Set(feed.filter(isPurchase).map(({ orderId }) => orderId)).size;
  tell(`the feed is through: ${orders} orders granted, ${journal.duplicatesAnswered} redeliveries ` +
    `answered from the stored outcome, ${journal.mismatchesRefused} replay with another quantity ` +
    `refused`);
  await east.leave();
  await west.leave();
  tell(`${east.matches + west.matches} matches were paid; every player saved and left`);

  const found = await audit(connect("gRPC", endpoint), journal, players, feed);
  tell(`read back ${PLAYERS} players over gRPC: ${found.ledgerEntries} ledger entries, balances, ` +
    `items, profiles`);
  const acknowledged = journal.count("acknowledged");
  const rows: Row[] = [
    ["acknowledged", String(acknowledged), acknowledged > 1000],
    ["lost", String(found.lost.length), found.lost.length === 0],
    ["duplicated", String(found.duplicated.length), found.duplicated.length === 0],
    ["applied though refused, sealed or unasked", String(found.uninvited.length),
      found.uninvited.length === 0],
    ["balances or amounts that do not add up", String(found.wrong.length),
      found.wrong.length === 0],
    ["stale writes refused", `${journal.staleRefused} of ${staleSent}`,
      journal.staleRefused === staleSent],
    ["redeliveries answered as duplicates", String(journal.duplicatesAnswered),
      journal.duplicatesAnswered > 0],
    ["mismatching replays refused", `${journal.mismatchesRefused} of 1`,
      journal.mismatchesRefused === 1],
    ["outcome unknown at first", `${journal.unknown} (settled: ${journal.settledCommitted} had ` +
      `committed, ${journal.settledAborted} sealed as never; the rest repeated)`,
      journal.count("open") === 0],
    ["time without service", `${Math.round(outage.worst)} ms at worst, median ` +
      `${Math.round(outage.median)} ms, for players of ${outage.victim}`, outage.worst < 10000],
  ];
  printTable(rows);
  for (const finding of [...found.lost, ...found.duplicated, ...found.uninvited, ...found.wrong]
    .slice(0, 20))
    console.log(`  wrong: ${finding}`);
  return rows.every(([, , right]) => right);
}

const [clusterFile, feedFile] = process.argv.slice(2);
const right = await main(clusterFile!, feedFile!);
process.exit(right ? 0 : 1);
