"""Owners that have more to do than others exchange busy shards for idle ones, under load."""

import collections
import threading
import unittest

from as_of import dot_of
from client import Client, grant_of, uuid7
from cluster import Cluster, ClusterTest, wait_for

COORDINATOR = {"rebalance-up": "1s", "claim-calm": "500ms", "rebalance-load": "1s",
               "rebalance-load-floor": "20"}


class Balance(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=8, options={"coordinator": COORDINATOR})

    def owned(self):
        """How many shards each node owns, the fewest first."""
        return sorted(collections.Counter(shard["owner"] for shard in self.client.shards()).values())

    def owner(self, player):
        return dot_of(self.client.grant(player, 1))["owner"]

    def play(self, player):
        client = Client(self.client.endpoint)
        while not self.stopping.is_set():
            try:
                client.settle("LedgerService/Grant", grant_of(player, 1))
            except Exception as error:  # pylint: disable=broad-except
                self.wrong.append(error)
                return

    def test_shards_that_are_busy_together_are_parted_and_the_number_stays_even(self):
        self.stopping, self.wrong = threading.Event(), []
        wait_for("ownership to be even", lambda: self.owned() == [2, 3, 3])
        owners = {player: self.owner(player) for player in (f"p-{uuid7()}" for _ in range(60))}
        busy = max(owners.values(), key=list(owners.values()).count)
        players = [player for player, owner in owners.items() if owner == busy][:12]
        threads = [threading.Thread(target=self.play, args=(player,)) for player in players]
        for thread in threads:
            thread.start()
        try:
            wait_for("the busy shards to have several owners", lambda: self.wrong or len(
                {self.owner(player) for player in players}) > 1)
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.wrong, [])
        wait_for("ownership to be even again", lambda: self.owned() == [2, 3, 3])
        coordinator = self.cluster.coordinators[0]
        self.assertIn('reason="spread load"', coordinator.log())
        self.assertGreaterEqual(coordinator.metrics()["holdfast_coordinator_exchanges_total"], 1)


if __name__ == "__main__":
    unittest.main()
