"""An entry that no replica can apply ends every process that holds its shard, once: their next lives leave
that shard where it is and serve all others. Only builds for tests can bring such an entry about.
"""

import contextlib
import json
import unittest

from client import Client, RpcError, Unanswered, uuid7
from cluster import Cluster, ClusterTest, wait_for
from containment_test import can_inject


@unittest.skipUnless(can_inject(), "this build cannot damage records")
class HaltedShard(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster()

    def setUp(self):
        self.client = Client(self.cluster.endpoint)

    def player_of(self, wanted):
        return next(name for name in (f"p{i}" for i in range(1000)) if wanted(self.cluster.shard_of(name)))

    def grant(self, player):
        return self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "authority": "unheld",
            "currencies": {"gold": 5}})

    def start_those_that_ended(self):
        """Restarts nodes that a failed check has ended. How many there were."""
        ended = [node for node in self.cluster.nodes if not node.running()]
        for node in ended:
            node.start()
        return len(ended)

    def halted(self):
        return sum("shard.halted" in node.log() for node in self.cluster.nodes)

    def test_nodes_end_once_and_then_go_on_without_the_shard(self):
        victim = self.player_of(lambda shard: shard == 3)
        others = [self.player_of(lambda shard, n=n: shard == n) for n in (0, 1, 2, 4, 5)]
        self.grant(victim)
        request = {"playerId": victim, "opId": uuid7(), "authority": "system:admin",
                   "failCheck": True}
        with contextlib.suppress(Unanswered):  # Every node that could answer ends.
            self.client.post("/holdfast.debug.v1.DebugService/Inject", json.dumps(request),
                             {"connect-timeout-ms": "2000"}, 5)
        ends = 0

        def all_left_it():
            nonlocal ends
            ends += self.start_those_that_ended()
            return self.halted() == len(self.cluster.nodes)

        wait_for("every node to leave the shard alone", all_left_it, every_s=0.2)
        self.assertEqual(ends, len(self.cluster.nodes), "each node ends once")
        for player in others:
            wait_for(f"a grant to {player}", lambda player=player: self.serves(player))
        self.assertFalse(self.serves(victim))
        for node in self.cluster.nodes:
            self.assertTrue(node.running())
            self.assertEqual(node.metrics()["holdfast_node_shards_quarantined"], 1)
            self.assertIn("fail_check", node.log())

    def serves(self, player):
        try:
            return bool(self.client.call("LedgerService/Grant", {
                "playerId": player, "opId": uuid7(), "authority": "unheld",
                "currencies": {"gold": 5}}, deadline_ms=3000))
        except (RpcError, Unanswered):
            return False


if __name__ == "__main__":
    unittest.main()
