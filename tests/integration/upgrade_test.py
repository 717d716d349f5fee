"""
A rolling upgrade to a program of the next apply version, under load, and the way back. The build
under sanitizers has `--apply-version-max`, which stands for it: such a program dates the outcomes
that it keeps a millisecond later, so replicas of different rules would not have equal outcomes.
"""

import os
import unittest

from client import uuid7
from cluster import SANITIZED, Cluster, ClusterTest, wait_for
from load import Load

SHARDS = 8
OLD, NEW = 10, 11  # APPLY_VERSION of node/core/apply/apply.h, and the one after it.


@unittest.skipUnless(SANITIZED or os.environ.get("HOLDFAST_DEBUG_INJECT"),
                     "only a build with HOLDFAST_DEBUG_INJECT has a next apply version")
class Upgrades(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=SHARDS, options={"node": {"checkpoint-interval": "500ms"}})

    def run_program(self, node, version):
        node.command = [word for word in node.command if "apply-version-max" not in word]
        node.command.append(f"--apply-version-max={version}")

    def restart(self, node, version):
        node.stop()
        self.run_program(node, version)
        node.start()
        wait_for(f"{node.name} to be ready", node.ready)
        wait_for("all shards to serve", self.cluster.all_serving)

    def versions(self):
        return {s.get("applyVersion") for s in self.client.shards()}

    def promote_all(self):
        """Each node in turn is away for a moment, so each shard gets another owner."""
        for node in self.cluster.nodes:
            self.restart(node, NEW)

    def outcome_of(self, op_id):
        return self.client.settle("LedgerService/Grant", {
            "playerId": "upgraded", "opId": op_id, "authority": "system:payments",
            "currencies": {"gold": 1}})["write"]

    def test_all_agree_while_programs_differ_and_no_way_back_loses_anything(self):
        nodes = self.cluster.nodes
        old, new = uuid7(), uuid7()
        with Load(self.client, prefix="up") as load:
            self.outcome_of(old)
            self.restart(nodes[0], NEW)
            self.restart(nodes[1], NEW)
            self.assertEqual(self.versions(), {OLD}, "one member still runs the old program")
            self.restart(nodes[1], OLD)  # Back: nothing of it is in use yet.
            self.restart(nodes[1], NEW)
            self.restart(nodes[2], NEW)
            self.promote_all()
            self.assertEqual(self.versions(), {NEW})
            self.assertTrue(self.outcome_of(old)["duplicate"])
            self.outcome_of(new)
            acked = load.acked_count
            wait_for("grants by the new rules", lambda: load.acked_count > acked + 200)
            self.old_program_refuses(nodes[2])
        load.audit(self)
        self.assertTrue(self.outcome_of(new)["duplicate"])
        self.cluster.wait_converged()

    def old_program_refuses(self, node):
        node.stop()
        self.run_program(node, OLD)
        already = len(node.log())
        node.start()
        self.assertNotEqual(node.wait_exit(), 0)
        said = node.log()[already:]
        self.assertIn("written by a newer version of this program", said)
        self.assertIn("start the newer holdfast-node again", said)
        self.run_program(node, NEW)
        node.start()
        wait_for("it to be ready with the new program", node.ready)


if __name__ == "__main__":
    unittest.main(verbosity=2)
