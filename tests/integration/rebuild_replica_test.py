"""A replica whose outcomes differ from a majority's is quarantined, and `holdfast replica rebuild` ends that:
it leaves the shard, drops its rows and comes back by a snapshot, whatever restarts meanwhile.

Only builds for tests can make a replica differ.
"""

import subprocess
import unittest

from client import Client, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from containment_test import can_inject


@unittest.skipUnless(can_inject(), "this build cannot make replicas differ")
class RebuildReplica(ClusterTest):
    used = set()

    @classmethod
    def plan(cls):
        return Cluster(coordinators=2, options={"node": {"checkpoint-interval": "300ms"}})

    def setUp(self):
        self.client = Client(self.cluster.endpoint)
        wait_for("all shards to serve", self.cluster.all_serving)
        self.cluster.wait_converged()
        while True:  # Of another shard each time: no replica is made to differ twice.
            self.player = f"p-{uuid7()}"
            self.client.grant(self.player, 50)
            self.shard = self.find_shard()
            if self.shard not in self.used:
                break
        self.used.add(self.shard)

    def find_shard(self):
        return next(number for number in range(len(self.client.shards())) if any(
            head["playerId"] == self.player for head in self.client.call(
                "AdminService/ListPlayers", {"shard": number, "pageSize": 1000}).get("players", [])))

    def holdfast(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def status(self):
        return next(s for s in self.client.shards() if s.get("shard", 0) == self.shard)

    def state(self, replica):
        return next((r.get("state") for r in self.status()["replicas"]
                     if r["replicaId"] == replica), None)

    def owner(self):
        return self.status().get("owner")

    def spoil(self, replica):
        """From here on it comes to other outcomes."""
        self.holdfast("debug", "inject", self.player, f"differs-on={replica}")
        wait_for("the replica to be quarantined", lambda: self.state(replica) == "quarantined")
        self.pass_checkpoints()

    def pass_checkpoints(self):
        """Snapshots begin behind what made the replica differ: else it would differ again."""
        for _ in range(3):
            before = {node: self.checkpoints(node) for node in self.cluster.nodes if node.running()}
            self.client.grant(self.player, 1)
            wait_for("checkpoints", lambda before=before: all(
                self.checkpoints(node) > count for node, count in before.items()))

    def checkpoints(self, node):
        return node.metrics()["holdfast_node_checkpoints_total"]

    def spoil_follower(self):
        replica = next(m for m in self.status()["members"] if m != self.owner())
        self.spoil(replica)
        return replica, self.cluster.node_of(replica)

    def rebuild(self, node, code=0):
        return self.holdfast("replica", "rebuild", str(self.shard), node, code=code)

    def healthy(self, replica):
        shard = self.status()
        return replica in shard["members"] and shard.get("phase", "") in ("", "stable") and \
            all(r["state"] == "ok" for r in shard["replicas"]) and len(shard["replicas"]) == 3

    def wait_healthy(self, replica):
        wait_for("the replica to be back", lambda: self.healthy(replica))
        self.cluster.wait_converged()
        self.assertIn("nothing to do", self.rebuild(str(replica)))

    def others(self, replica):
        return [node for node in self.cluster.nodes if node is not self.cluster.node_of(replica)]

    def balance(self):
        return self.client.call("LedgerService/GetBalances", {"playerId": self.player})["balances"]["gold"]

    def test_a_follower_is_rebuilt_and_can_own(self):
        replica, node = self.spoil_follower()
        gold = self.balance()
        self.assertIn("replica rebuild SHARD NODE", self.holdfast("doctor", code=1))
        self.assertIn("asked", self.rebuild(node.name))
        self.rebuild(node.name)  # Again: under way, or done.
        self.wait_healthy(replica)
        self.assertEqual(node.metrics()["holdfast_node_shards_quarantined"], 0)
        for other in self.others(replica):
            self.holdfast("node", "drain", other.name)
        wait_for("it to own the shard", lambda: self.owner() == replica)
        self.client.grant(self.player, 1)
        self.assertEqual(self.balance(), gold + 1)
        for other in self.others(replica):
            self.holdfast("node", "undrain", other.name)

    def test_node_and_coordinator_may_end_half_way(self):
        replica, node = self.spoil_follower()
        gold = self.balance()
        self.rebuild(node.name)
        wait_for("it to have left", lambda: replica not in self.status()["members"], every_s=0.01)
        node.kill()
        for coordinator in self.cluster.coordinators:
            coordinator.kill()
        self.client.grant(self.player, 1)
        node.start()
        for coordinator in self.cluster.coordinators:
            coordinator.start()
        self.wait_healthy(replica)
        self.assertEqual(self.balance(), gold + 1)

    def test_an_owner_is_replaced_first(self):
        replica = self.owner()
        self.spoil(replica)
        wait_for("another to own the shard", lambda: self.owner() not in (replica, None))
        gold = self.balance()
        node = self.cluster.node_of(replica)
        self.rebuild(node.name)
        self.wait_healthy(replica)
        self.assertEqual(self.balance(), gold)

    def test_nothing_is_dropped_while_another_member_is_away(self):
        replica, node = self.spoil_follower()
        other = next(n for n in self.others(replica))
        other.stop()
        wait_for("it to be gone", lambda: not all(n.get("live") for n in self.client.nodes()))
        told = wait_for("a refusal", lambda: self.refusal_of(node.name))
        self.assertIn("is not up", told)
        self.assertEqual(self.state(replica), "quarantined")
        other.start()
        wait_for("it to be ready", other.ready)
        wait_for("it to be asked", lambda: "asked" in self.try_rebuild(node.name))
        self.wait_healthy(replica)

    def try_rebuild(self, node):
        done = subprocess.run([BIN / "holdfast", "replica", "rebuild", str(self.shard), node, "--endpoint",
                               self.cluster.endpoint], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    def refusal_of(self, node):
        told = self.try_rebuild(node)
        return told if "is not up" in told else None


if __name__ == "__main__":
    unittest.main()
