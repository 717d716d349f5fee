#!/usr/bin/env python3
"""
How long a player is not served when the owner of its shard dies, freezes, leaves or is drained: one node
after the other, under a steady trickle of grants. From the moment of the fault until the first answer to a
grant that was sent after it, for the player that waits longest; of a drain the slowest grant of all.

  failover.py [--kills N] [--freezes N] [--stops N] [--drains N] [--seed S] [--json]
"""

import collections
import pathlib
import random
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from as_of import dot_of
from client import RpcError, Unanswered, grant_of, uuid7  # noqa: E402
from cluster import Cluster, wait_for  # noqa: E402  (found beside this folder)
from report import judged, main, parser_for  # noqa: E402

THREADS, PLAYERS = 12, 4  # Players each.
STEPS_MS = (50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1500, 2000, 3000, 4000, 8000)
COORDINATOR = {"rebalance-up": "1s", "rebalance-period": "20ms", "claim-calm": "500ms"}


class Probe(threading.Thread):
    """Grants to its players in turn, and remembers who carried out the last one, and when."""

    def __init__(self, client, number, stopping):
        super().__init__(daemon=True)
        self.client, self.stopping = client, stopping
        self.players = [f"probe-{number}-{n}" for n in range(PLAYERS)]
        self.owner = {}  # player -> replica id
        self.last = {}   # player -> (sent, answered), the newest
        self.slowest = {}  # player -> seconds, retries included, since it was cleared
        self.errors = collections.Counter()

    def run(self):
        while not self.stopping.is_set():
            for player in self.players:
                self.grant(player)
            time.sleep(0.005)

    def grant(self, player):
        request = grant_of(player, 1, uuid7())
        begun = time.monotonic()
        while not self.stopping.is_set():
            sent = time.monotonic()
            try:
                answer = self.client.call("LedgerService/Grant", request, 15000)
                self.owner[player] = dot_of(answer)["owner"]
                self.last[player] = (sent, time.monotonic())
                took = time.monotonic() - begun
                self.slowest[player] = max(took, self.slowest.get(player, 0))
                return
            except Unanswered:
                self.errors["no answer"] += 1
            except RpcError as error:
                self.errors[error.code] += 1


class Measure:
    """Faults one by one, each on another node, and what each cost."""

    def __init__(self, cluster, dice):
        self.cluster, self.dice = cluster, dice
        self.stopping = threading.Event()
        self.probes = [Probe(cluster.client, n, self.stopping) for n in range(THREADS)]
        self.times = collections.defaultdict(list)  # kind -> milliseconds
        self.replicas = {}  # node's name -> replica id; the same for as long as its disk lives

    def errors(self):
        return sum((probe.errors for probe in self.probes), collections.Counter())

    def owned(self, replica):
        return [(probe, player) for probe in self.probes for player, owner in probe.owner.items()
                if owner == replica]

    def settle(self):
        """Everybody is up, has all there is, and owns something."""
        wait_for("every node to be ready", lambda: all(n.ready() for n in self.cluster.nodes))
        wait_for("every node to own players", lambda: all(
            len(self.owned(replica)) >= 3 for replica in self.replicas.values()))

    def choose(self):
        """A node, and those whose players it serves: at least one."""
        hit = []
        while not hit:
            self.settle()
            node = self.dice.choice(self.cluster.nodes)
            time.sleep(self.dice.random() * 0.3)  # Ownership may move meanwhile.
            hit = self.owned(self.replicas[node.name])
        return node, hit

    def once(self, kind, fault, mend):
        """One fault. `fault(node)` breaks it; `mend(node)` when its players are served elsewhere."""
        node, hit = self.choose()
        begun = time.monotonic()
        fault(node)
        wait_for("the players to be served", lambda: all(
            probe.last[player][0] >= begun for probe, player in hit), every_s=0.005)
        self.times[kind].append(max(
            1000 * (probe.last[player][1] - begun) for probe, player in hit))
        mend(node)

    def drain(self):
        """A planned hand-over of all that a node owns; then it may own again."""
        node, hit = self.choose()
        replica = self.replicas[node.name]
        for probe in self.probes:
            probe.slowest.clear()
        self.want(node, "drain")
        wait_for("the players to be served elsewhere", lambda: all(
            probe.owner[player] != replica for probe, player in hit), every_s=0.005)
        time.sleep(0.1)
        self.times["drained"].append(max(1000 * probe.slowest[player] for probe, player in hit))
        self.want(node, "undrain")

    def want(self, node, what):
        self.cluster.client.drop()  # It was idle for long: the router may have closed it.
        self.cluster.client.call("AdminService/ChangeNode", {"node": node.name, "want": what})

    def kill(self, node):
        node.popen.kill()

    def bring_back(self, node):
        node.popen.wait()
        node.start()

    def freeze(self, node):
        node.signal(signal.SIGSTOP)

    def thaw(self, node):
        node.signal(signal.SIGCONT)

    def stop(self, node):
        node.popen.terminate()

    def run(self, arguments):
        self.replicas = {n["name"]: n["replicaId"] for n in self.cluster.client.nodes()}
        for probe in self.probes:
            probe.start()
        for kind, count, fault, mend in (
                ("killed", arguments.kills, self.kill, self.bring_back),
                ("frozen", arguments.freezes, self.freeze, self.thaw),
                ("stopped", arguments.stops, self.stop, self.bring_back)):
            before = self.errors()
            for _ in range(count):
                self.once(kind, fault, mend)
            yield kind, self.times[kind], self.errors() - before
        before = self.errors()
        for _ in range(arguments.drains):
            self.drain()
        yield "drained", self.times["drained"], self.errors() - before
        self.stopping.set()
        for probe in self.probes:
            probe.join(60)


def share(times, part):
    """The time that `part` of all are at or below."""
    return round(sorted(times)[min(len(times) - 1, int(part * len(times)))])


def histogram(times):
    """{upper bound in ms: how many}"""
    found = {}
    for low, high in zip((0, *STEPS_MS), STEPS_MS):
        count = sum(low < ms <= high for ms in times)
        if count:
            found[f"<= {high}"] = count
    return found


def run(arguments):
    dice = random.Random(arguments.seed)
    found, wrong = {"seed": arguments.seed}, []
    with Cluster(shards=16, options={"coordinator": COORDINATOR}) as cluster:
        for kind, times, errors in Measure(cluster, dice).run(arguments):
            if not times:
                continue
            found |= {f"{kind}": len(times), f"{kind}_p50_ms": share(times, 0.5),
                      f"{kind}_p99_ms": share(times, 0.99), f"{kind}_worst_ms": round(max(times)),
                      f"{kind}_histogram_ms": histogram(times), f"{kind}_errors": dict(errors)}
        cluster.wait_converged()
    return judged(found, wrong)


if __name__ == "__main__":
    parser = parser_for(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--freezes", type=int, default=20)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--drains", type=int, default=20)
    sys.exit(main(run, parser))
