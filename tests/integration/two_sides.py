"""A cluster on a network of its own, with a router on each side of a cut."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))

from client import Client, Heartbeat, uuid7  # noqa: E402
from cluster import ClusterTest, wait_for  # noqa: E402
from network import FRONT, NetworkCluster, enter  # noqa: E402, F401

SHARDS = 8
TTL_MS = 5000  # Of a game server without a sign of life.


class TwoSides(NetworkCluster):
    """With a router on each side of a cut."""

    def __init__(self):
        super().__init__(seed=1, hosts=["router-2"], shards=SHARDS)
        listen = self.address("router-2")
        self.second = self.plan("router", "router-2", {"listen": listen, "access": "open", "player-rate": 0})
        self.far_endpoint = f"http://{listen}"
        self.far = Client(self.far_endpoint)

    def processes(self):
        return [self.second, *super().processes()]

    def cut_off(self, node):
        """`node` and the second router on one side; etcd and the coordinators on both. All members are equal before."""
        self.wait_documents_equal()
        others = [each.name for each in self.nodes if each.name != node]
        for here, there in (([node], [*others, FRONT]), ([*others, FRONT], [node]),  # Callers are at the front.
                            (["router-2"], others), (others, ["router-2"])):
            self.wire.cut(here, there)


class PresenceCase(ClusterTest):
    """What tests of presence do with it. Each test has names of its own."""

    @classmethod
    def plan(cls):
        return TwoSides()

    def setUp(self):
        self.tag = uuid7()[-8:]
        wait_for("the far router", self.cluster.second.ready)

    def tearDown(self):
        self.cluster.wire.heal()

    def server(self, name):
        """A game server and its heart."""
        incarnation = self.client.register(name, TTL_MS)
        return incarnation, self.enterContext(Heartbeat(self.client, incarnation))

    def settle(self, method, request, client=None):
        return (client or self.client).settle(f"PresenceService/{method}", request)

    def names(self, count, kind="p"):
        return [f"{kind}-{number}-{self.tag}" for number in range(count)]

    def batch_set(self, players, client=None, **shared):
        """All of them, 100 a call; what a call could not set is set by the next one."""
        left = list(players)
        while left:
            some = left[:100]
            answer = self.settle("BatchSetPresence", {
                "opId": uuid7(), "connection": "game", "requests": [{"playerId": each} for each in some]} | shared, client)
            self.assertEqual(len(answer["results"]), len(some))
            left = [player for player, result in zip(some, answer["results"]) if "error" in result] + left[100:]
