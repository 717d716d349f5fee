"""A byte flipped on one node's disk: named, contained, and nothing lost."""

import json
import pathlib
import re
import unittest

from client import UNHELD, uuid7
from cluster import Cluster, ClusterTest, wait_for
from load import Load


BLOCK, BATCH, INSIDE = 4096, b"HLFB", 64  # Where batches begin, and how (node/store/log_format.h).


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x40]))


def written_bytes(path):
    """Offset behind the last byte that is not zero."""
    return len(pathlib.Path(path).read_bytes().rstrip(b"\0"))


class Damage(ClusterTest):
    def make_load(self, prefix):
        with Load(self.client, prefix=prefix, players=30) as load:
            wait_for("load", lambda: load.acked_count > 1500 or load.unexpected)
        return load

    def damaged(self):
        """{shard: replica} that nodes say are damaged; never is one of them the shard's owner."""
        found = {}
        for shard in self.client.shards():
            for replica in shard["replicas"]:
                if replica["state"] == "damaged":
                    self.assertNotEqual(shard.get("owner"), replica["replicaId"])
                    found[shard.get("shard", 0)] = replica["replicaId"]
        return found

    def is_whole(self):
        return not self.damaged() and all(
            len(s["members"]) == 3 and s["phase"] == "stable" for s in self.client.shards())

    def wait_repaired(self, node, replicas=1):
        """Of the node's replicas, which were damaged, at least so many came back by themselves."""
        leader = self.cluster.coordinators[0]
        name = "holdfast_coordinator_repairs_done_total"
        wait_for("repairs", lambda: leader.metrics()[name] >= replicas)
        wait_for("all shards to have three whole replicas", self.is_whole)
        metrics = leader.metrics()
        dropped = node.metrics()["holdfast_node_replicas_dropped_total"]
        print(f"repairs begun {metrics['holdfast_coordinator_repairs_begun_total']:.0f}, "
              f"done {metrics[name]:.0f}, replicas dropped by {node.name} {dropped:.0f}")
        self.assertEqual(metrics["holdfast_coordinator_replicas_damaged"], 0)
        self.assertEqual(metrics["holdfast_coordinator_repairs_given_up_total"], 0)


    def supervise(self, node, condition):
        """Starts it again whenever it stops, as Kubernetes and `holdfast dev` do."""
        def look():
            if not node.running():
                self.assertEqual(node.wait_exit(), 1)
                node.start()
            return condition()
        wait_for("the node to come back", look, every_s=0.2)

    def scrubs(self, node):
        """Whole passes since it started."""
        metrics = node.metrics()
        self.assertEqual(metrics["holdfast_node_scrub_damage_total"], 0)
        self.assertEqual(metrics["holdfast_node_scrub_period_seconds"], 2)
        return metrics["holdfast_node_scrub_passes_total"]


class DamagedLog(Damage):
    @classmethod
    def plan(cls):
        # No checkpoint: what is in the database is not read from the log again.
        return Cluster(options={"node": {"checkpoint-interval": "1h"}, "coordinator": {
            "rebalance-up": "500ms", "rebalance-period": "50ms", "claim-calm": "500ms"}})

    def test_a_changed_log_is_named_and_repaired_while_others_serve(self):
        load = self.make_load("log")
        node = self.cluster.nodes[0]
        node.kill()
        segment = min(path for path in (self.cluster.dir / "node-1/log").iterdir()
                      if path.is_file() and written_bytes(path) > 100_000)
        size = written_bytes(segment)
        content = segment.read_bytes()
        for part in (3, 4, 5, 6):  # Well inside: what was synced long before it was killed.
            # Inside a batch: the padding of a small one up to its block is never read.
            block = next(at for at in range(size * part // 10 // BLOCK * BLOCK, size, BLOCK)
                         if content[at:at + len(BATCH)] == BATCH)
            flip(segment, block + INSIDE)
        already = len(node.log())
        node.start()
        wait_for("the log's file to be named", lambda: segment.name in node.log()[already:])
        wait_for("the node to be back", node.ready)
        wait_for("every shard to be served", self.cluster.all_serving)
        load.audit(self)
        with Load(self.client, prefix="log-after", players=30) as more:
            self.wait_repaired(node)
        more.audit(self)
        load.audit(self)
        self.cluster.wait_converged()


class DamagedOwner(Damage):
    """What an owner no longer has in memory, a member that was away needs, and the disk lost."""

    @classmethod
    def plan(cls):
        return Cluster()

    def test_an_owner_that_cannot_read_its_log_stops_and_another_serves(self):
        away, owner = self.cluster.nodes[2], self.cluster.nodes[0]
        away.kill()
        wait_for("the others to serve", self.cluster.all_serving)
        player = next(name for name in (f"p{n}" for n in range(10_000))
                      if self.cluster.owner_of(name)[0] is owner)
        needle = f"receipt:needle-{uuid7()}"
        self.client.grant(player, 7, op_id=needle)
        for n in range(200):  # Beyond what the owner keeps of the shard's log in memory.
            self.client.call("ProfileService/UpdateProfile", {
                "playerId": player, "opId": uuid7(), "authority": UNHELD, "edits": [
                    {"name": "blob", "replace": json.dumps({"n": n, "fill": "x" * 4000})}]})
        self.assertTrue(any(self.spoil(path, needle.encode())
                            for path in (self.cluster.dir / owner.name / "log").iterdir()))
        already = len(owner.log())
        away.start()
        wait_for("the owner to stop", lambda: not owner.running())
        self.assertEqual(owner.wait_exit(), 1)
        self.assertIn("damaged", owner.log()[already:])
        wait_for("every shard to be served", self.cluster.all_serving)
        self.assertEqual(self.client.balance(player), 8)  # With the one that found the owner.
        self.assertEqual([e["opId"] for e in self.client.entries(player)].count(needle), 1)
        self.cluster.wait_converged(nodes=2)
        owner.start()  # As whatever supervises it does.
        self.wait_repaired(owner)
        self.cluster.wait_converged()
        self.assertEqual([e["opId"] for e in self.client.entries(player)].count(needle), 1)

    @staticmethod
    def spoil(path, needle):
        at = path.read_bytes().find(needle)
        if at >= 0:
            flip(path, at)
        return at >= 0


class DamagedDatabase(Damage):
    @classmethod
    def plan(cls):
        return Cluster(options={"node-2": {"checkpoint-interval": "200ms"}})

    def test_a_changed_database_is_salvaged_and_repaired_while_others_serve(self):
        load = self.make_load("db")
        node = self.cluster.nodes[1]
        database = self.cluster.dir / "node-2/db"
        self.assertEqual(node.stop(), 0)  # Writes what it has.
        tables = sorted(database.glob("*.sst"))
        self.assertTrue(tables)
        table = max(tables, key=lambda path: path.stat().st_size)
        flip(table, table.stat().st_size // 3)
        already = len(node.log())
        node.start()
        with Load(self.client, prefix="db-after", players=30) as more:
            for player in load.acked:  # Reads and writes what may be cold there.
                self.client.settle("LedgerService/GetBalances", {"playerId": player})
            self.supervise(node, lambda: "db.salvaged" in node.log()[already:])
            self.supervise(node, node.ready)
            self.wait_repaired(node)
        text = node.log()[already:]
        self.assertIn(table.name, text)  # The file is named.
        self.assertNotIn("CHECK", text)
        self.assertFalse((self.cluster.dir / "node-2/DAMAGE").exists())
        self.assertFalse((self.cluster.dir / "node-2/db.salvage").exists())
        said = re.search(r"db.salvaged.*shards=(\d+).*lost=(\d+)", text)
        print(f"shards salvaged {said[1]}, lost {said[2]}")
        self.assertGreater(int(said[1]), 0)
        self.assertGreater(int(said[2]), 0)
        load.audit(self)
        more.audit(self)
        self.cluster.wait_converged()


class ColdDatabase(Damage):
    """No call reads what changes, and nothing is started again: only the scrub can find it."""

    @classmethod
    def plan(cls):
        # No checkpoint: nothing is merged, which would find it, too.
        return Cluster(options={"node-2": {"checkpoint-interval": "1h", "scrub-period": "2s"}})

    def test_a_changed_database_is_found_while_nobody_reads_it(self):
        load = self.make_load("cold")
        node = self.cluster.nodes[1]
        self.assertEqual(node.stop(), 0)  # Writes what it has.
        table = max((self.cluster.dir / "node-2/db").glob("*.sst"), key=lambda p: p.stat().st_size)
        node.start()
        wait_for("the node to be back", node.ready)
        wait_for("whole passes", lambda: self.scrubs(node) > 1)
        self.assertIn("scrub.done", node.log())
        already = len(node.log())
        flip(table, table.stat().st_size // 3)
        wait_for("the node to find it", lambda: not node.running())
        self.assertEqual(node.wait_exit(), 1)
        text = node.log()[already:]
        for event in ("scrub.damage", "db.damaged", "node.cannot_go_on"):
            self.assertIn(event, text)
        self.assertIn(table.name, text)
        self.assertTrue((self.cluster.dir / "node-2/DAMAGE").exists())
        with Load(self.client, prefix="cold-after", players=30) as more:
            self.supervise(node, lambda: "db.salvaged" in node.log()[already:])
            self.supervise(node, node.ready)
            self.wait_repaired(node)
        self.assertFalse((self.cluster.dir / "node-2/DAMAGE").exists())
        wait_for("a whole pass over what was salvaged", lambda: self.scrubs(node) > 1)
        load.audit(self)
        more.audit(self)
        self.cluster.wait_converged()


class ColdLog(Damage):
    @classmethod
    def plan(cls):
        # No checkpoint: full segments stay, and are not read.
        return Cluster(options={"node": {"checkpoint-interval": "1h"}, "node-2": {
            "scrub-period": "2s"}})

    def test_a_changed_log_is_found_while_nobody_reads_it(self):
        node = self.cluster.nodes[1]
        log = self.cluster.dir / "node-2/log"
        count = 0
        while len(sealed := self.full_segments(log)) < 2:
            for player in range(50):
                self.client.call("ProfileService/UpdateProfile", {
                    "playerId": f"cold-{player}", "opId": uuid7(), "authority": UNHELD, "edits": [
                        {"name": "blob",
                         "replace": json.dumps({"n": count, "fill": "x" * 12000})}]})
            count += 1
            self.assertLess(count, 100)
        load = self.make_load("cold-log")
        segment = sealed[0]
        content = segment.read_bytes()
        block = next(at for at in range(len(content) // 2 // BLOCK * BLOCK, len(content), BLOCK)
                     if content[at:at + len(BATCH)] == BATCH)
        passes = self.scrubs(node)
        wait_for("a whole pass", lambda: self.scrubs(node) > passes + 1)
        already = len(node.log())
        flip(segment, block + INSIDE)
        wait_for("the node to find it", lambda: not node.running())
        self.assertEqual(node.wait_exit(), 1)
        text = node.log()[already:]
        for event in ("scrub.damage", "log.shard_damaged", "node.cannot_go_on", segment.name):
            self.assertIn(event, text)
        self.assertFalse((self.cluster.dir / "node-2/DAMAGE").exists())
        self.supervise(node, node.ready)
        self.wait_repaired(node)
        # The bytes are as they were; but what they said is not wanted any more.
        wait_for("a whole pass over it", lambda: self.scrubs(node) > 1)
        load.audit(self)
        self.cluster.wait_converged()

    @staticmethod
    def full_segments(log):
        """Those before the one that is being written."""
        used = sorted(p for p in log.glob("*.seg") if written_bytes(p) > 100_000)
        return used[:-1]


class DamagedManifest(Damage):
    @classmethod
    def plan(cls):
        return Cluster(options={"node-3": {"checkpoint-interval": "200ms"}})

    def test_a_database_that_does_not_open_is_made_anew(self):
        load = self.make_load("manifest")
        node = self.cluster.nodes[2]
        self.assertEqual(node.stop(), 0)
        manifest, = (self.cluster.dir / "node-3/db").glob("MANIFEST-*")
        flip(manifest, manifest.stat().st_size // 2)
        node.start()
        with Load(self.client, prefix="manifest-after", players=30) as more:
            self.wait_repaired(node, replicas=16)
        load.audit(self)
        more.audit(self)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
