#!/usr/bin/env python3
"""
Nodes of a real cluster are killed with SIGKILL, again and again, under load, while checkpoints,
cuts of the log and replays happen all the time. Afterwards every acknowledged operation is there
exactly once, nothing sealed is, and the replicas agree.

  kills.py [--kills N] [--seed S] [--json]
"""

import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from cluster import Cluster, wait_for  # noqa: E402  (found beside this folder)
from history import Crew  # noqa: E402
from report import judged, main, parser_for  # noqa: E402

# Checkpoints are written and the log is cut every few hundred milliseconds; who is away for longer than
# a fifth of a second holds up no other's log, and may need a snapshot.
NODE = {"checkpoint-interval": "100ms", "log-lag-max": "200ms", "log-segment-size": "4MiB",
        "log-size-max": "64MiB", "cache-size": "4MiB", "write-buffer-size": "1MiB", "block-cache-size": "1MiB"}
COORDINATOR = {"claim-calm": "500ms", "rebalance-up": "1s", "rebalance-period": "50ms"}
# Counted from every node's metrics; each must be above zero at the end.
REACHED = {"checkpoints": "holdfast_node_checkpoints_total",
           "log_files_cut": "holdfast_node_log_segments_recycled_total",
           "entries_replayed": "holdfast_node_entries_replayed_total",
           "promotions": "holdfast_node_promotions_total"}
NEVER = "holdfast_node_replica_divergence_total"


class Watch:
    """Sums of counters that start at zero again with each process."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.done = dict.fromkeys([*REACHED.values(), NEVER], 0)
        self.now = {}  # node -> its last metrics

    def look(self):
        for node in self.nodes:
            try:
                self.now[node.name] = node.metrics()
            except (OSError, ValueError, IndexError):
                pass  # Dead, or dying while it answered.

    def died(self, node):
        for series in self.done:
            self.done[series] += self.now.get(node.name, {}).get(series, 0)
        self.now.pop(node.name, None)

    def sums(self):
        return {series: int(count + sum(m.get(series, 0) for m in self.now.values()))
                for series, count in self.done.items()}


class Killer:
    """One of the nodes, two, or all three; while they serve, start, or lack each other."""

    def __init__(self, cluster, crew, dice):
        self.cluster, self.crew, self.dice = cluster, crew, dice
        self.watch = Watch(cluster.nodes)
        self.kills = self.at_once = self.while_starting = 0

    def kill(self, nodes):
        self.watch.look()
        for node in nodes:
            node.popen.kill()  # All of them before any is waited for.
        for node in nodes:
            node.kill()
            self.watch.died(node)
            self.kills += 1
        self.at_once += len(nodes) > 1

    def round(self):
        dice, nodes = self.dice, self.cluster.nodes
        time.sleep(dice.random() ** 2 * 0.8)
        victims = dice.sample(nodes, dice.choices((1, 2, 3), (70, 18, 12))[0])
        self.kill(victims)
        time.sleep(dice.choice((0, 0, 0, dice.random() * 2.5)))  # Long enough for a failover, or not.
        for node in victims:
            node.start()
        if dice.random() < 0.2:  # Again, while it recovers.
            time.sleep(dice.random() * 0.4)
            again = dice.sample(victims, 1)
            self.kill(again)
            self.while_starting += 1
            again[0].start()
        # Without progress in between the test would be one long outage.
        wanted = self.crew.acked() + dice.choice((1, 20, 300))
        wait_for("operations after the kill", lambda: self.crew.acked() >= wanted
                 or self.crew.unexpected, 120, 0.01)

    def run(self, kills):
        begun = time.monotonic()
        while self.kills < kills and not self.crew.unexpected:
            self.round()
        return time.monotonic() - begun


def settle(cluster, watch):
    """Every replica of every shard agrees; returns the counters."""
    wait_for("every node to be ready", lambda: all(node.ready() for node in cluster.nodes))
    cluster.wait_converged()
    watch.look()
    return watch.sums()


def restart_all(cluster, killer):
    """Once more from the disks alone, to see what they hold."""
    killer.kill(cluster.nodes)
    for node in cluster.nodes:
        node.start()
    wait_for("every shard to be served", cluster.all_serving)


def judge(killer, crew, sums):
    wrong = list(crew.unexpected)
    wrong += [f"never happened: {name}" for name, series in REACHED.items() if not sums[series]]
    wrong += [f"{sums[NEVER]} outcomes differed between replicas"] if sums[NEVER] else []
    return wrong + crew.audit()


def run(arguments):
    dice = random.Random(arguments.seed)
    with Cluster(options={"node": NODE, "coordinator": COORDINATOR}) as cluster:
        crew = Crew(cluster.client, dice)
        killer = Killer(cluster, crew, dice)
        with crew:
            wait_for("load", lambda: crew.acked() > 100 or crew.unexpected)
            seconds = killer.run(arguments.kills)
        begun = time.monotonic()
        settle(cluster, killer.watch)
        restart_all(cluster, killer)
        sums = settle(cluster, killer.watch)
        wrong = judge(killer, crew, sums)
        found = {"seed": arguments.seed, "kills": killer.kills, "several_at_once": killer.at_once,
                 "while_starting": killer.while_starting, "seconds": round(seconds, 1)}
        found |= crew.figures() | {name: sums[series] for name, series in REACHED.items()}
        found |= {"audit_seconds": round(time.monotonic() - begun, 1)}
        return judged(found, wrong)


if __name__ == "__main__":
    parser = parser_for(__doc__)
    parser.add_argument("--kills", type=int, default=200)
    sys.exit(main(run, parser))
