#!/usr/bin/env python3
"""
Players send and trade through stock clients while proxies lose answers and deliver requests late,
and nodes are killed. Callers retry, give up, seal, and refund as the code of the incident did.
Afterwards every item is in one place, every coin is accounted for and every trade happened on all
sides or on none, by an audit of exported ledgers.

  transfers.py [--operations N] [--seed S] [--late-max SECONDS] [--json]
"""

import json
import pathlib
import random
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from books import Books  # noqa: E402  (found beside this file)
from client import RpcError, uuid7  # noqa: E402
from cluster import Cluster, die_with_parent, free_port, wait_for  # noqa: E402
from report import judged, main, parser_for  # noqa: E402

PLAYERS, SWORDS, GOLD = 192, 3, 500
TRADERS = 2  # Processes: a stock client fills a core.
NODE = {"workers": 2}
COORDINATOR = {"claim-calm": "500ms", "rebalance-up": "1s", "rebalance-period": "50ms"}
# Of the run: what must have happened, or it proved nothing.
REACHED = ("committed", "aborted", "unknown", "sealed", "refunds", "retries", "swaps", "executes",
           "waits", "made_up_for", "dropped", "delivered_late", "twice", "links_held",
           "links_deaf_then_cut", "kills")


class Network:
    """The process of proxies.py between callers, router and nodes."""

    def __init__(self, links, front, seed, late_max_s):
        self.popen = subprocess.Popen([sys.executable, HERE / "proxies.py"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      preexec_fn=die_with_parent)
        self.say({"seed": seed, "front": front, "links": links, "late_max_s": late_max_s})
        assert self.popen.stdout.readline().strip() == "ready", "the proxies did not start"

    def say(self, line):
        self.popen.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        self.popen.stdin.flush()

    def calm(self):
        """Ends all faults, and delivers what is late; the counters."""
        self.say("calm")
        return json.loads(self.popen.stdout.readline())

    def stop(self):
        self.popen.stdin.close()
        self.popen.wait(30)


def through_proxies(cluster):
    """Makes every node advertise a proxy's ports; the links to serve."""
    links = []
    for node in cluster.nodes:
        options = dict(word[2:].split("=", 1) for word in node.command[1:])
        for listen, advertise in (("listen", "advertise"), ("peer-listen", "peer-advertise")):
            proxy = f"127.0.0.1:{free_port()}"
            links.append({"listen": proxy, "to": options[listen]})
            node.command.append(f"--{advertise}={proxy}")
    return links


class Trader:
    """One process of traders.mjs, and what it tells."""

    def __init__(self, plan):
        self.told, self.figures, self.failure = [], {}, ""
        self.popen = subprocess.Popen(["node", HERE / "traders.mjs"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      preexec_fn=die_with_parent)
        self.popen.stdin.write(json.dumps(plan) + "\n")
        self.popen.stdin.close()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        for line in self.popen.stdout:
            record = json.loads(line)
            if "figures" in record:
                self.figures = record["figures"]
            else:
                self.told.append(record)
        if self.popen.wait() != 0 or not self.figures:
            self.failure = f"a trader ended with {self.popen.returncode}"

    def running(self):
        return self.thread.is_alive()


def stock(client, players):
    """Gives everybody swords and gold."""
    for first in range(0, len(players), 32):
        answer = client.settle("LedgerService/BatchGrant", {"requests": [{
            "playerId": player, "opId": uuid7(), "authority": "system:payments",
            "currencies": {"gold": GOLD},
            "items": [{"kind": "sword"}] * SWORDS} for player in players[first:first + 32]]})
        assert all("response" in result for result in answer["results"]), answer


def kill_nodes(cluster, traders, dice):
    """Until the traders are done; how many were killed."""
    kills = 0
    while any(trader.running() for trader in traders):
        time.sleep(1 + 4 * dice.random())
        victim = dice.choice(cluster.nodes)
        victim.kill()
        kills += 1
        time.sleep(dice.choice((0, 0, 2.5 * dice.random())))
        victim.start()
        wait_for("the node to be back", victim.ready)
    return kills


def in_flight(cluster):
    return sum(int(shard.get("transfersOpen", 0)) for shard in cluster.client.shards())


def nobody_is_held(client, players):
    """Whether everybody can be read as of one moment: no trade is half done anywhere."""
    try:
        for first in range(0, len(players), 8):
            client.settle("TransactionService/ReadPlayers", {"playerIds": players[first:first + 8]})
    except RpcError as error:
        if error.code != "TXN_CONFLICT":
            raise
        return False
    return True


def run(arguments):
    dice = random.Random(arguments.seed)
    subprocess.run([HERE.parent / "conformance/generate"], check=True, stdout=subprocess.DEVNULL)
    cluster = Cluster(options={"node": NODE, "coordinator": COORDINATOR})
    front = {"listen": f"127.0.0.1:{free_port()}", "to": f"127.0.0.1:{cluster.port}"}
    network = Network(through_proxies(cluster), front, arguments.seed, arguments.late_max)
    players = [f"trader-{number}" for number in range(PLAYERS)]
    begun = time.monotonic()
    with cluster:
        stock(cluster.client, players)
        share = PLAYERS // TRADERS
        traders = [Trader({
            "url": f"http://{front['listen']}", "players": players, "seed": arguments.seed + n + 1,
            "mine": [n * share, (n + 1) * share], "steps": arguments.operations // TRADERS,
        }) for n in range(TRADERS)]
        kills = kill_nodes(cluster, traders, dice)
        seconds = time.monotonic() - begun
        counts = network.calm()
        wait_for("nothing to be on its way", lambda: in_flight(cluster) == 0)
        wait_for("no player to be held", lambda: nobody_is_held(cluster.client, players))
        cluster.wait_converged()
        told = [record for trader in traders for record in trader.told]
        wrong = [trader.failure for trader in traders if trader.failure]
        wrong += Books(cluster.client, players).wrong(told)
        network.stop()
        found = {"seed": arguments.seed, "operations": len(told), "seconds": round(seconds, 1),
                 "kills": kills} | counts
        for name in traders[0].figures:
            found[name] = sum(trader.figures.get(name, 0) for trader in traders)
        wrong += [f"never happened: {name}" for name in REACHED if not found.get(name)]
        return judged(found, wrong)


if __name__ == "__main__":
    parser = parser_for(__doc__)
    parser.add_argument("--operations", type=int, default=100000)
    parser.add_argument("--late-max", type=float, default=60, help="seconds (60)")
    sys.exit(main(run, parser))
