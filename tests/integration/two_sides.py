"""A cluster on a network of its own, with a router on each side of a cut."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))

from client import Client  # noqa: E402
from network import FRONT, NetworkCluster, enter  # noqa: E402, F401

SHARDS = 8


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
