"""Checkpoints, cut logs and replay; rows that are evicted and read from disk."""

import json
import time
import unittest

from client import UNHELD, uuid7
from cluster import SANITIZED, Cluster, ClusterTest, wait_for
from load import Load

CACHE_BYTES = 4 * 1024 * 1024
PLAYERS = 2500
DOCUMENT = "x" * 4000  # All players together: twice the cache and more.


class Checkpoints(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(options={"node": {
            "checkpoint-interval": "200ms", "cache-size": "4MiB", "log-segment-size": "4MiB",
            "write-buffer-size": "1MiB", "block-cache-size": "1MiB"}})

    def series(self, name):
        return [node.metrics()[name] for node in self.cluster.nodes]

    def test_killed_between_checkpoints_the_nodes_replay_and_lose_nothing(self):
        with Load(self.client, prefix="replay") as load:
            for _ in range(2):
                before = self.series("holdfast_node_checkpoints_total")
                wait_for("two rounds of checkpoints under load", lambda b=before: all(
                    now - then > 32 for now, then in zip(
                        self.series("holdfast_node_checkpoints_total"), b)))
                acked = load.acked_count
                for node in self.cluster.nodes:
                    node.popen.kill()
                for node in self.cluster.nodes:
                    node.kill()
                    node.start()
                wait_for("grants after the restart", lambda a=acked: load.acked_count > a + 50)
        load.audit(self)
        self.cluster.wait_converged()

    def test_more_players_than_memory_are_evicted_and_read_back(self):
        names = [f"cold-{n:05}" for n in range(PLAYERS)]
        for begin in range(0, PLAYERS, 50):
            results = self.client.call("ProfileService/BatchUpdateProfile", {"requests": [{
                "playerId": name, "opId": uuid7(), "authority": UNHELD, "edits": [{
                    "name": "blob", "replace": json.dumps({"who": name, "fill": DOCUMENT})}],
            } for name in names[begin:begin + 50]]})["results"]
            self.assertEqual([r for r in results if "response" not in r], [])
        wait_for("rows to be evicted", lambda: all(
            bytes_held <= CACHE_BYTES
            for bytes_held in self.series("holdfast_node_rows_memory_bytes")))
        misses = sum(self.series("holdfast_node_row_misses_total"))
        self.read_all(names)
        self.assertGreater(sum(self.series("holdfast_node_row_misses_total")), misses + 500,
                           "nothing was read from disk")
        # Cold rows are written as well as hot ones.
        for name in names[::250]:
            self.client.grant(name, 11)
            self.assertEqual(self.client.balance(name), 11)
        victim = self.cluster.nodes[0]
        victim.kill()
        wait_for("the others to serve", self.cluster.all_serving)
        self.read_all(names[::5])
        victim.start()
        wait_for("the node to be ready", victim.ready)
        self.cluster.wait_converged()
        begun = time.monotonic()
        self.read_all(names)
        # Caches of 7 MiB in all, and what an idle node takes.
        for node in self.cluster.nodes:
            if not SANITIZED:  # They keep what was freed.
                self.assertLess(node.resident_bytes(), 80 << 20)
        print(f"{PLAYERS} cold profiles of 4 kB in {time.monotonic() - begun:.2f} s; resident "
              f"{[node.resident_bytes() >> 20 for node in self.cluster.nodes]} MiB")

    def read_all(self, names):
        for begin in range(0, len(names), 50):
            results = self.client.call("ProfileService/BatchGetProfile", {
                "requests": [{"playerId": name} for name in names[begin:begin + 50]]})["results"]
            for name, result in zip(names[begin:begin + 50], results):
                self.assertIn("response", result)
                document = result["response"]["profile"]["sections"]["blob"]["json"]
                self.assertEqual(document, {"who": name, "fill": DOCUMENT})


if __name__ == "__main__":
    unittest.main(verbosity=2)
