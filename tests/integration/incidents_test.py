"""What operators are told: duplicates, fenced writers, and how what a crash left was finished."""

import signal
import subprocess
import unittest

from client import UNHELD, RpcError, Unanswered, uuid7
from cluster import BIN, ClusterTest, wait_for


class Incidents(ClusterTest):
    def setUp(self):
        self.cursor = ""
        self.incidents()

    def incidents(self):
        """All since the last time."""
        found = []
        more = True
        while more:
            page = self.client.call("AdminService/ListIncidents", {"cursor": self.cursor})
            self.cursor = page["nextCursor"]
            found += page.get("incidents", [])
            more = page.get("more", False)
        return found

    def wait_incident(self, kind, **wanted):
        seen = []

        def found():
            seen.extend(self.incidents())
            return [e for e in seen if e["kind"] == kind.lower()
                    and all(e.get(k) == v for k, v in wanted.items())]
        return wait_for(f"{kind} {wanted}", found)

    def test_a_duplicate_and_a_fenced_writer_are_told_with_their_ids(self):
        player, op_id = f"player-{uuid7()}", uuid7()
        for _ in range(2):
            self.client.grant(player, 5, op_id)
        told = self.wait_incident("DUPLICATE_ATTEMPT", playerId=player, opId=op_id)
        self.assertEqual(len(told), 1)
        self.assertEqual(told[0]["method"], "holdfast.v1.LedgerService/Grant")
        one, two = self.client.register("one"), self.client.register("two")
        token = self.client.start(player, one)["token"]
        self.client.renew(one, (player, token))
        self.client.start(player, two, "STEAL", graceMs=100)
        self.refused("SESSION_LOST", self.client.update, player, token,
                     {"name": "a", "replace": "{}"})
        self.wait_incident("STALE_WRITE_REFUSED", playerId=player)
        counted = sum(node.metrics().get('holdfast_node_incidents_total{kind="stale_write_refused"}', 0)
                      for node in self.cluster.nodes)
        self.assertGreaterEqual(counted, 1)
        shown = subprocess.run([BIN / "holdfast", "incidents", "--endpoint", self.cluster.endpoint],
                               capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn(f"DUPLICATE_ATTEMPT player={player} id={op_id} method=", shown)
        self.assertIn(" by=system:payments shard=", shown)

    def test_a_transfer_that_lost_its_owner_is_told_as_resumed_and_settled(self):
        """The recipient's owner is frozen, so the transfer stays open; then the sender's dies."""
        giver = f"giver-{uuid7()}"
        self.client.grant(giver, 50)
        taker = next(t for t in (f"taker-{uuid7()}" for _ in range(200))
                     if self.cluster.owner_of(t)[0] is not self.cluster.owner_of(giver)[0])
        source, goal = self.cluster.owner_of(giver)[0], self.cluster.owner_of(taker)[0]
        op_id = uuid7()
        goal.signal(signal.SIGSTOP)
        try:
            with self.assertRaises((RpcError, Unanswered)):
                self.client.call("LedgerService/TransferCurrencies", {
                    "playerId": giver, "toPlayerId": taker, "opId": op_id,
                    "currencies": {"gold": 20},
                    "authority": UNHELD}, 400)
        finally:
            source.kill()
            goal.signal(signal.SIGCONT)
        source.start()
        self.wait_incident("RECONCILED", what="transfer_settled", playerId=giver, opId=op_id)
        shown = subprocess.run([BIN / "holdfast", "reconcile", "-o", "json", "--endpoint",
                                self.cluster.endpoint], capture_output=True, text=True, timeout=60,
                               check=True).stdout
        self.assertIn(op_id, shown)

    def test_a_cursor_of_something_else_is_refused(self):
        self.refused("INVALID_ARGUMENT", self.client.call, "AdminService/ListIncidents",
                     {"cursor": "1.2"})


if __name__ == "__main__":
    unittest.main()
