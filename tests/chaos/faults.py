#!/usr/bin/env python3
"""
Everything that happens to a cluster at night, again and again, under callers who write down what they
were told: nodes, coordinators, router and etcd are killed, frozen, cut off, slowed and restarted, disks
fail or are wiped, clocks jump, nodes are drained and replaced, shards moved. What the callers wrote is then judged by holdfast-check.

  faults.py [--minutes M] [--faults N] [--seed S] [--json] [--history FILE]
"""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from client import RpcError, Unanswered, uuid7  # noqa: E402
from cluster import BIN, converged, die_with_parent, wait_for  # noqa: E402  (found beside this folder)
from network import FRONT, NetworkCluster, enter  # noqa: E402
from report import judged, main, parser_for  # noqa: E402

CALLERS, HANDS = 2, 8
NODE = {"workers": 2, "checkpoint-interval": "500ms", "log-size-max": "64MiB",
        "cache-size": "16MiB", "write-buffer-size": "1MiB", "block-cache-size": "4MiB"}
WRITERS = 4  # Of documents.
POLICIES = {"tags": "set", "settings": "merge", "rooms": "vector", "stats": "counter", "prefs": "last_write"}
ENTITIES = [f"guild:{number}" for number in range(6)]
CALLS_APART = 10_000_000  # Numbers of one caller's calls begin so far from the next one's.
UNDECIDED, LIES = 3, 5  # An end of holdfast-check; how many removed writes it may give up on.


class History:
    """The file: what callers print, and what was broken."""

    def __init__(self, path, seed):
        self.path, self.lock = pathlib.Path(path), threading.Lock()
        self.file = open(self.path, "w", encoding="ascii")
        self.answered = 0
        self.say({"history": "holdfast", "version": 1, "seed": seed})

    def say(self, record):
        self.line(json.dumps(record))

    def line(self, text):
        with self.lock:
            self.file.write(text.rstrip("\n") + "\n")
            self.answered += '"state":"ok"' in text

    def close(self):
        self.file.close()


class Caller:
    """One process of players.mjs or documents.mjs; what it prints goes to the history."""

    def __init__(self, history, program, plan):
        self.failure = ""
        self.popen = subprocess.Popen(["node", HERE / program], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      preexec_fn=die_with_parent)
        self.popen.stdin.write(json.dumps(plan) + "\n")
        self.popen.stdin.flush()
        self.thread = threading.Thread(target=self.listen, args=(history,), daemon=True)
        self.thread.start()

    def listen(self, history):
        for line in self.popen.stdout:
            history.line(line)
        if self.popen.wait() != 0:
            self.failure = f"a caller ended with {self.popen.returncode}"

    def end(self):
        self.popen.stdin.close()
        self.thread.join(300)
        assert not self.thread.is_alive(), "a caller does not end"


class Faults:
    """What is broken, one thing or two at a time, and mended again."""

    def __init__(self, cluster, history, dice):
        self.cluster, self.history, self.dice = cluster, history, dice
        self.wire = cluster.wire
        self.hosts = [name for name in self.wire.hosts if name != FRONT]
        self.node_hosts = [node.name for node in cluster.nodes]
        self.counts = {}
        self.mending = []  # What mends that which is broken now.
        self.after = []  # What an operator does when all is mended, until it is done.
        self.lost = None  # The replica whose disk was wiped last.
        self.kinds = [
            (8, self.kill_nodes), (6, self.freeze_node), (5, self.isolate), (5, self.one_way),
            (4, self.split_pair), (4, self.lossy), (3, self.etcd_killed), (3, self.etcd_cut),
            (3, self.coordinator_killed), (2, self.coordinator_frozen), (3, self.disk_fails),
            (2, self.disk_slow), (3, self.disk_full), (3, self.clock_jumps), (2, self.router_restarted),
            (2, self.rolling_restart), (3, self.node_drained), (3, self.shard_moved),
            (2, self.node_wiped),
        ]

    def round(self):
        """One fault, and sometimes another into it; then all is mended, and work goes on."""
        weights = [weight for weight, _ in self.kinds]
        faults = self.dice.choices([fault for _, fault in self.kinds], weights,
                                   k=self.dice.choice((1, 1, 1, 2)))
        for fault in dict.fromkeys(faults):
            self.note(fault.__name__)
            self.mending.append(fault())
            self.pause(1)
        self.mend()
        for process in self.cluster.processes():
            if not process.running():
                process.start()
        while self.after:
            wait_for("an operator to be heard", self.after[-1])
            self.after.pop()

    def mend(self):
        for mend in self.mending:
            if mend:
                mend()
        self.mending = []
        self.wire.heal()

    def note(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.history.say({"fault": kind, "at": time.monotonic_ns()})

    def pause(self, longest_s):
        time.sleep(self.dice.random() ** 2 * longest_s)

    # Each breaks something, waits as long as it likes, and returns what mends it, or nothing.

    def kill_nodes(self):
        victims = self.dice.sample(self.cluster.nodes, self.dice.choices((1, 2, 3), (75, 18, 7))[0])
        for node in victims:
            node.kill()
        self.pause(3)

    def freeze_node(self):
        return self.freeze(self.dice.choice(self.cluster.nodes))

    def freeze(self, process):
        process.signal(signal.SIGSTOP)
        self.pause(7)
        return lambda: process.running() and process.signal(signal.SIGCONT)

    def isolate(self):
        victim = self.dice.choice(self.node_hosts)
        self.wire.cut([victim], self.wire.hosts)
        self.wire.cut(self.wire.hosts, [victim])
        self.pause(5)

    def one_way(self):
        victim = self.dice.choice(self.node_hosts)
        others = self.dice.choice((self.wire.hosts, self.node_hosts, [FRONT], ["etcd"]))
        if self.dice.random() < 0.5:
            self.wire.cut([victim], others)
        else:
            self.wire.cut(others, [victim])
        self.pause(6)

    def split_pair(self):
        one, other = self.dice.sample(self.node_hosts, 2)
        self.wire.cut([one, other], [one, other])
        self.pause(5)

    def lossy(self):
        self.wire.slow(self.wire.hosts, self.dice.choice((0, 1, 5, 20)), self.dice.choice((0, 5, 30)),
                       self.dice.choice((0, 0.01, 0.05, 0.2)))
        self.pause(6)

    def etcd_killed(self):
        self.cluster.etcd.kill()
        self.pause(6)
        self.cluster.etcd.start()

    def etcd_cut(self):
        victims = self.dice.sample(self.hosts[1:], self.dice.randint(1, len(self.hosts) - 1))
        self.wire.cut(["etcd"], victims)
        self.wire.cut(victims, ["etcd"])
        self.pause(7)

    def coordinator_killed(self):
        self.dice.choice(self.cluster.coordinators).kill()
        self.pause(2)

    def coordinator_frozen(self):
        return self.freeze(self.dice.choice(self.cluster.coordinators))

    def disk_fails(self):
        """The process must end by itself: what it was told about its disk is not to be trusted."""
        node = self.dice.choice(self.cluster.nodes)
        self.disk(node, "e")
        self.mend()  # One that is cut off or frozen writes nothing.
        wait_for(f"{node.name} to end after its disk failed", lambda: not node.running(), 60)
        self.disk(node, "0")

    def disk_slow(self):
        node = self.dice.choice(self.cluster.nodes)
        self.disk(node, "s")
        self.pause(4)
        self.disk(node, "0")

    def disk_full(self):
        """One node's disk, sometimes all: no node stops, and all goes on once there is room."""
        victims = [node for node in self.cluster.nodes if node.running()]
        if self.dice.random() < 0.7:
            victims = [self.dice.choice(victims)] if victims else []
        for mode, seconds in (("l", 2), ("f", 0)):  # As disks do: nearly full at first.
            for node in victims:
                self.disk(node, mode)
            time.sleep(seconds)
        self.pause(6)
        for node in victims:
            self.disk(node, "0")

    def disk(self, node, mode):
        node.disk_fault.write_text(mode, encoding="ascii")

    def clock_jumps(self):
        """The wall clock of a node, by seconds to minutes; it stays wrong for a while."""
        node = self.dice.choice(self.cluster.nodes)
        node.clock.write_text(f"{self.dice.choice((-1, 1)) * self.dice.choice((1, 3, 30, 300))}s\n",
                              encoding="ascii")
        self.pause(5)
        node.clock.write_text("+0s\n", encoding="ascii")

    def router_restarted(self):
        router = self.cluster.router
        if self.dice.random() < 0.5:
            router.kill()
        else:
            router.stop()
        router.start()

    def rolling_restart(self):
        self.mend()  # A node that is cut off or frozen would be waited for in vain.
        for node in self.cluster.nodes:
            if node.running():
                node.stop()
            node.start()
            wait_for(f"{node.name} to be ready", node.ready)

    # What operators do; while something else is broken they may not be heard.

    def ask(self, method, request):
        try:
            self.cluster.client.call(f"AdminService/{method}", request, 2000)
            return True
        except (RpcError, Unanswered, OSError):
            return False

    def want(self, node, what, already):
        """Whether that is so now: an earlier answer may have been lost."""
        try:
            self.cluster.client.call("AdminService/ChangeNode", {"node": node, "want": what}, 2000)
            return True
        except RpcError as error:
            return already in str(error)
        except (Unanswered, OSError):
            return False

    def node_drained(self):
        name = self.dice.choice(self.node_hosts)
        self.want(name, "drain", "is drained already")
        self.pause(4)
        self.after.append(lambda: self.want(name, "undrain", "neither drained nor removed"))

    def shard_moved(self):
        try:
            shard = self.dice.choice(self.cluster.client.shards())
            others = [n["replicaId"] for n in self.cluster.client.nodes()
                      if n["replicaId"] not in shard["members"]]
        except (RpcError, Unanswered, OSError):
            return
        if others:
            self.ask("MoveShard", {"shard": shard.get("shard", 0), "to": str(self.dice.choice(others)),
                                   "from": str(self.dice.choice(shard["members"]))})
        self.pause(2)

    def node_wiped(self):
        """A node loses its disk and comes back as another replica; the old one is removed for good."""
        node = self.dice.choice(self.cluster.nodes)
        try:
            held = any(self.lost in s["members"] for s in self.cluster.client.shards())
            lost = next((n["replicaId"] for n in self.cluster.client.nodes()
                         if n.get("name") == node.name), None)
        except (RpcError, Unanswered, OSError):
            return
        if held or lost is None or not node.running():
            return  # A majority of each shard must keep its disks.
        self.lost = lost
        node.kill()
        shutil.rmtree(self.cluster.dir / node.name)
        self.pause(2)
        # Backwards. In the end all hold something, so that every disk that fails is noticed.
        self.after.append(self.all_hold)
        self.after.append(lambda: self.ask("RebalanceShards", {}))
        self.after.append(lambda: self.is_replaced(lost))
        self.after.append(lambda: self.want(str(lost), "remove", "is removed already"))

    def is_replaced(self, lost):
        shards = self.cluster.client.shards()
        return all(s["phase"] == "stable" and lost not in s["members"] for s in shards)

    def all_hold(self):
        shards = self.cluster.client.shards()
        live = [n["replicaId"] for n in self.cluster.client.nodes() if n.get("live")]
        return (len(live) == len(self.cluster.nodes) and
                all(any(replica in s["members"] for s in shards) for replica in live) and
                all(s["phase"] == "stable" for s in shards))


def prepare(cluster):
    """Nodes get a disk and a clock that can be broken."""
    faketime = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    for node in cluster.nodes:
        node.disk_fault = cluster.dir / f"{node.name}.disk"
        node.clock = cluster.dir / f"{node.name}.clock"
        node.disk_fault.write_text("0", encoding="ascii")
        node.clock.write_text("+0s\n", encoding="ascii")
        node.environment = os.environ | {
            "LD_PRELOAD": f"{BIN}/libchaos_disk.so:{faketime}",
            "HOLDFAST_DISK_FAULT": str(node.disk_fault),
            "FAKETIME_TIMESTAMP_FILE": str(node.clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1",
        }


def define(client, name, policy):
    """A collection whose answered writes survive what a strict write survives."""
    body = {"documents": {"policy": policy, "durability": "majority"}}

    def in_force():
        try:
            return client.call("DefinitionService/PutDefinition", {
                "name": name, "body": body, "opId": uuid7(), "waitMs": 5000})["definition"].get("inForce")
        except (RpcError, Unanswered):
            return False
    wait_for(f"the collection {name}", in_force)


def shown(collection, document):
    """What documents.mjs calls shown."""
    if not document:
        return [0] if collection == "stats" else []
    value = document["json"]
    return {"tags": lambda: [int(each) for each in value], "settings": lambda: list(value.values()),
            "rooms": lambda: [each["json"] for each in document.get("siblings", [document])],
            "prefs": lambda: [value], "stats": lambda: [int(value.get("n", 0))]}[collection]()


def documents_equal(cluster):
    """Every member says that it has all that the others have."""
    metrics = [node.metrics() for node in cluster.nodes]
    return all(each.get("holdfast_node_documents_apart_seconds") == 0 and
               each.get("holdfast_node_documents_syncing") == 0 for each in metrics)


def told_by(cluster, node):
    """What this node tells of all documents, with the others out of the router's reach: of the entities
    whose shard it is a member of."""
    others = [each.name for each in cluster.nodes if each is not node]
    cluster.wire.cut([FRONT], others)
    cluster.wire.cut(others, [FRONT])

    def told(entity):
        found = {}
        for collection in POLICIES:
            try:
                found[f"{collection}:{entity}"] = shown(collection, cluster.client.call(
                    "DocumentService/GetDocument", {"entity": entity, "collection": collection, "key": "k"},
                    5000).get("document"))
            except (RpcError, Unanswered):
                return {}
        return found

    def all_told():
        with concurrent.futures.ThreadPoolExecutor(len(ENTITIES)) as pool:
            return {name: shows for found in pool.map(told, ENTITIES) for name, shows in found.items()}
    found = wait_for(f"{node.name} to tell documents", all_told)
    cluster.wire.heal()
    return found


def documents_told(cluster, history):
    """Every document as each member tells it. Returns what is wrong."""
    members = {f"{collection}:{entity}": 0 for entity in ENTITIES for collection in POLICIES}
    for node in cluster.nodes:
        for name, shows in told_by(cluster, node).items():
            history.say({"stands": name, "on": node.name, "at": time.monotonic_ns(), "shows": shows})
            members[name] += 1
    return [f"{name}: told by {count} members, not 3" for name, count in members.items() if count != 3]


def finals(cluster, history, players):
    """What everybody holds in the end, and how the replicas ended."""
    for player in players:
        history.say({"final": player, "gold": cluster.client.balance(player),
                     "mail": mail_gold(cluster.client, player)})
    # All as of one entry: owners log cuts for the audit every second, also without calls.
    for shard in wait_for("replicas to be alike", lambda: alike(cluster.client.shards())):
        for replica in shard["replicas"]:
            history.say({"replica": f"node-{replica['replicaId']}", "shard": shard.get("shard", 0),
                         "digest": str(replica["outcomeHash"])})


def alike(shards):
    return shards if converged(shards) else None


def mail_gold(client, player):
    gold, cursor = 0, ""
    while True:
        page = client.settle("MailboxService/ListMail", {"playerId": player, "cursor": cursor,
                                                     "pageSize": 100})
        for mail in page.get("mails", []):
            gold += sum(mail.get("currencies", {}).values())
        cursor = page.get("nextCursor", "")
        if not cursor:
            return gold


def check(path):
    """(exit code, text) of holdfast-check."""
    done = subprocess.run([BIN / "holdfast-check", path], capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def doctored_documents(lines, records):
    """A member that lacks what all others show, an element that all lost, an increment counted twice."""
    ends = [(at, r) for at, r in enumerate(records) if "stands" in r]
    name = next(r["stands"] for _, r in ends if r["stands"].startswith("tags:") and r["shows"])
    counter = next(r["stands"] for _, r in ends if r["stands"].startswith("stats:") and r["shows"] != [0])
    most = sum(r["value"] for r in records if r.get("of") == counter)

    def changed(which, change):
        lies = {at: json.dumps(r | {"shows": change(r["shows"])}) for at, r in which}
        return [lies.get(at, line) for at, line in enumerate(lines)]
    those = [(at, r) for at, r in ends if r["stands"] == name]
    yield "a member apart", [changed(those[-1:], lambda shows: shows[1:])]
    yield "a lost element", [changed(those, lambda shows: shows[1:])]
    yield "an increment too many", [changed([(at, r) for at, r in ends if r["stands"] == counter],
                                            lambda _: [most + 1])]


def doctored(path, dice):
    """Copies of a history with one lie each: a removed write, of which there are several, an added stale read."""
    lines = path.read_text(encoding="ascii").splitlines()
    records = [json.loads(line) for line in lines]
    calls = {record["call"]: record for record in records if "call" in record}
    answers = [r for r in records if "answer" in r and r["state"] == "ok"]
    grants = [r["answer"] for r in answers if "gold" in r and calls[r["answer"]]["do"] == "grant"]
    yield "a removed write", ([line for line, r in zip(lines, records)
                               if gone not in (r.get("call"), r.get("answer"))]
                              for gone in dice.sample(grants[: len(grants) // 2], LIES))
    yield from doctored_documents(lines, records)
    reads = [r for r in answers if calls[r["answer"]]["do"] == "read" and r.get("version", 0) > 0]
    first = {}
    for old in reads:
        player = calls[old["answer"]]["player"]
        if first.setdefault(player, old)["version"] < old["version"]:
            lie = {name: first[player][name] for name in ("gold", "document", "version")}
            yield "a stale read", [lines + [
                json.dumps({"call": 1, "at": old["at"] + 1, "player": player, "do": "read"}),
                json.dumps({"answer": 1, "at": old["at"] + 2, "state": "ok"} | lie)]]
            return
    raise AssertionError("no document was read at two versions: the run was too short")


def judge_the_judge(path, dice):
    """What is wrong with holdfast-check: it believes a lie."""
    for what, copies in doctored(path, dice):
        for lines in copies:
            copy = path.with_suffix(".doctored")
            copy.write_text("\n".join(lines) + "\n", encoding="ascii")
            code, text = check(copy)
            copy.unlink()
            if code != UNDECIDED:  # It gave up: another lie may be easier to judge.
                break
        if code != 1:
            yield f"holdfast-check does not see {what}: {code}, {text[-200:]}"


def run(arguments):
    dice = random.Random(arguments.seed)
    subprocess.run([HERE.parent / "conformance/generate"], check=True, stdout=subprocess.DEVNULL)
    cluster = NetworkCluster(arguments.seed, nodes=4, shards=8, options={"node": NODE})
    prepare(cluster)
    history = History(arguments.history or cluster.dir / "history.jsonl", arguments.seed)
    free = [f"free-{n}" for n in range(24)]
    held = [f"held-{n}" for n in range(8)]
    with cluster:
        faults = Faults(cluster, history, dice)
        for name, policy in POLICIES.items():
            define(cluster.client, name, policy)
        plans = [("players.mjs", {"hands": HANDS, "free": free, "held": held}) for _ in range(CALLERS)]
        plans.append(("documents.mjs", {"hands": WRITERS, "entities": ENTITIES}))
        callers = [Caller(history, program, plan | {
            "url": cluster.endpoint, "name": f"server-{n}",
            "seed": arguments.seed * 10 + n + 1, "calls": (n + 1) * CALLS_APART,
        }) for n, (program, plan) in enumerate(plans)]
        wait_for("calls to be answered", lambda: history.answered > 100)
        begun = time.monotonic()
        while (time.monotonic() - begun < arguments.minutes * 60
               or sum(faults.counts.values()) < arguments.faults):
            assert not any(caller.failure for caller in callers), "a caller ended"
            faults.round()
            wanted = history.answered + dice.choice((20, 100, 400))
            wait_for("work to go on", lambda: history.answered >= wanted
                     or any(caller.failure for caller in callers), 120, 0.02)
        seconds = time.monotonic() - begun
        for caller in callers:
            caller.end()
        wait_for("every node to be ready", lambda: all(node.ready() for node in cluster.nodes))
        wait_for("every change of members to end", lambda: all(
            s["phase"] == "stable" and len(s["members"]) == 3 for s in cluster.client.shards()))
        cluster.wait_converged()
        finals(cluster, history, free + held)
        wait_for("all members to have all documents", lambda: documents_equal(cluster), 120)
        wrong = documents_told(cluster, history)
        history.close()
        code, text = check(history.path)
        wrong += [caller.failure for caller in callers if caller.failure]
        wrong += [] if code == 0 else [f"holdfast-check ended with {code}: {text}"]
        wrong += judge_the_judge(history.path, dice) if code == 0 else []
        found = {"seed": arguments.seed, "seconds": round(seconds, 1),
                 "faults": sum(faults.counts.values())} | faults.counts
        found |= {"packets_" + name: n for name, n in cluster.wire.counts().items()}
        found |= {"verdict": text.splitlines()[-3:], "history": str(history.path)}
        return judged(found, wrong)


if __name__ == "__main__":
    enter()
    parser = parser_for(__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--faults", type=int, default=0, help="at least so many, however long it takes")
    parser.add_argument("--history", help="where to write it; it is kept")
    sys.exit(main(run, parser))
