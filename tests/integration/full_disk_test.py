"""A node's disk is full: its shards go to others, and come back; with every disk full, writes are refused
in so many words while reads are answered, and all goes on by itself once there is room."""

import os
import time
import unittest

from client import RpcError, Unanswered, grant_of, uuid7
from cluster import BIN, SANITIZED, Cluster, ClusterTest, wait_for
from load import Load


@unittest.skipIf(SANITIZED, "a sanitizer's runtime must be the first library")
class FullDisk(ClusterTest):
    @classmethod
    def plan(cls):
        cluster = Cluster(options={"node": {
            "checkpoint-interval": "1s", "write-buffer-size": "1MiB",
        }, "coordinator": {"rebalance-up": "500ms", "rebalance-period": "50ms", "claim-calm": "500ms"}})
        for node in cluster.nodes:
            node.fault = cluster.dir / f"{node.name}.disk"
            node.fault.write_text("0", encoding="ascii")
            node.environment = os.environ | {"LD_PRELOAD": f"{BIN}/libchaos_disk.so",
                                             "HOLDFAST_DISK_FAULT": str(node.fault)}
        return cluster

    def tearDown(self):
        for node in self.cluster.nodes:
            self.fill(node, "0")

    def fill(self, node, mode="l"):
        """l: next to nothing is left; f: not a byte."""
        node.fault.write_text(mode, encoding="ascii")

    def owned(self, node):
        return node.metrics()["holdfast_node_shards_owned"]

    def test_one_full_node_gives_its_shards_away_and_gets_them_back(self):
        node = self.cluster.nodes[0]
        with Load(self.client, prefix="one", players=20) as load:
            wait_for("ownership to be spread", lambda: all(self.owned(n) > 0 for n in self.cluster.nodes))
            wait_for("load", lambda: load.acked_count > 300 or load.unexpected)
            self.fill(node)
            wait_for("the node to own nothing", lambda: self.owned(node) == 0)
            self.assertEqual(node.metrics()["holdfast_node_disk_full"], 1)
            wait_for("all shards to be served", self.cluster.all_serving)
            already = load.acked_count
            wait_for("load to go on", lambda: load.acked_count > already + 1000 or load.unexpected)
            # It follows on what room its log has; its checkpoints wait, thrice their interval here.
            self.fill(node, "f")
            checkpoints = node.metrics()["holdfast_node_checkpoints_total"]
            time.sleep(3)
            self.assertTrue(node.running())
            self.assertEqual(node.metrics()["holdfast_node_checkpoints_total"], checkpoints)
            self.fill(node, "0")
            wait_for("shards to come back", lambda: self.owned(node) > 0)
            wait_for("checkpoints", lambda: node.metrics()["holdfast_node_checkpoints_total"] > checkpoints)
        load.audit(self)
        self.cluster.wait_converged()

    def test_with_every_disk_full_writes_are_refused_and_reads_answered(self):
        self.client.drop()  # The connection has been idle for long.
        self.client.grant("reader", 7)
        for node in self.cluster.nodes:
            self.fill(node)
        wait_for("every node to be full", lambda: all(
            n.metrics()["holdfast_node_disk_full"] == 1 for n in self.cluster.nodes))
        time.sleep(1)  # What the databases had begun.
        for node in self.cluster.nodes:
            self.fill(node, "f")

        def refused():
            try:
                self.client.call("LedgerService/Grant", grant_of("reader", 1, uuid7()), 3000)
            except RpcError as error:
                return error
            return None

        error = wait_for("a refusal", refused)
        self.assertEqual(error.code, "THROTTLED", error)
        self.assertIn("disk", str(error))
        self.assertIn("nothing was done", str(error))
        self.assertGreater(error.retry_after_ms, 0)
        balance = self.client.balance("reader")
        time.sleep(3)  # Reads go on for as long as it lasts; nothing is written meanwhile.
        self.assertEqual(self.client.balance("reader"), balance)
        self.assertTrue(all(node.running() for node in self.cluster.nodes))
        for node in self.cluster.nodes:
            self.fill(node, "0")
        op_id = uuid7()

        def written():
            try:
                return self.client.call("LedgerService/Grant", grant_of("reader", 5, op_id), 3000)
            except (RpcError, Unanswered):
                return None

        wait_for("writes to go on", written)
        self.assertEqual(self.client.balance("reader"), balance + 5)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main()
