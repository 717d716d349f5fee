"""Damage on purpose: a doubled item and gold out of nothing are found by the audit and contained.

The means to do damage are in builds for tests alone; of others it is shown here that they have none.
"""

import subprocess
import time
import unittest

from client import uuid7
from cluster import BIN, Cluster, wait_for
from transactions_test import FREE, Trades, gold

CONTAINED_WITHIN_S = 5
MEANS = (b"DebugService", b"debug inject", b"debug_inject")
PROGRAMS = ("holdfast", "holdfast-node", "holdfast-router", "holdfast-coordinator")


def can_inject():
    return b"DebugService" in (BIN / "holdfast-node").read_bytes()


class Release(unittest.TestCase):
    def test_programs_have_all_means_of_damage_or_none(self):
        """A release has none: test with the preset `release` to see it."""
        for program in PROGRAMS:
            code = (BIN / program).read_bytes()
            found = [means for means in MEANS if means in code]
            if not can_inject():
                self.assertEqual(found, [], program)
        verb = subprocess.run([BIN / "holdfast", "debug", "inject"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertNotEqual(verb.returncode, 0)
        self.assertEqual("debug inject" in verb.stderr, can_inject(), verb.stderr)


@unittest.skipUnless(can_inject(), "this build cannot damage records")
class Containment(Trades):
    @classmethod
    def plan(cls):
        return Cluster()

    def holdfast(self, *words):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def metrics(self):
        return self.cluster.coordinators[0].metrics()

    def counting(self):
        """Until cuts are counted, and come to zero."""
        before = wait_for("metrics", self.metrics)["holdfast_audit_cuts_total"]
        wait_for("two cuts", lambda: self.metrics()["holdfast_audit_cuts_total"] >= before + 2)
        self.assertEqual(self.metrics()["holdfast_audit_imbalance"], 0)

    def held(self, player):
        return self.client.call("AdminService/GetQuarantine", {"playerId": player}).get(
            "quarantined")

    def wait_held(self, *players):
        """How long it took, in seconds."""
        began = time.monotonic()
        wait_for(f"{players} to be quarantined", lambda: all(self.held(p) for p in players))
        took = time.monotonic() - began
        self.assertLess(took, CONTAINED_WITHIN_S)
        return took

    def wait_balanced(self):
        wait_for("a cut that comes to zero",
                 lambda: self.metrics()["holdfast_audit_imbalance"] == 0)

    def incidents(self, player):
        found, cursor, more = [], "", True
        while more:
            page = self.client.call("AdminService/ListIncidents", {"cursor": cursor})
            cursor, more = page["nextCursor"], page.get("more", False)
            found += page.get("incidents", [])
        return [e for e in found if e["kind"] == "contained"
                and e.get("playerId") == player]

    def test_a_doubled_item_is_contained_and_ends_by_an_operators_word(self):
        one, two, sword, _ = self.pair()
        other = f"other-{uuid7()}"
        self.client.grant(other, 5)
        self.counting()
        before = self.metrics()
        self.holdfast("debug", "inject", two, sword)
        self.wait_held(one, two)
        for player in (one, two):
            self.refused("QUARANTINED", self.client.grant, player, 5)
            self.refused("QUARANTINED", self.client.call, "LedgerService/TransferCurrencies", {
                "playerId": player, "toPlayerId": other, "opId": uuid7(),
                "currencies": gold(2)} | FREE)
            self.refused("QUARANTINED", self.client.call, "InventoryService/TransferItems", {
                "playerId": player, "toPlayerId": other, "opId": uuid7(),
                "itemUids": [sword]} | FREE)
            wait_for("its incident", lambda p=player: self.incidents(p))
            self.assertEqual(self.incidents(player)[0]["what"], f"audit: item {sword} held 2 times")
        self.client.grant(other, 5)  # Others go on.
        wait_for("it to be counted", lambda: self.metrics()["holdfast_audit_contained_total"]
                 == before["holdfast_audit_contained_total"] + 2)
        self.assertEqual(self.metrics()["holdfast_audit_imbalance"], 1)
        wait_for("nodes to tell of them", lambda: sum(
            n.metrics()["holdfast_node_players_quarantined"] for n in self.cluster.nodes) == 2)
        listed = self.holdfast("quarantine", "list")
        self.assertIn(one, listed)
        self.assertIn(two, listed)
        self.assertIn(f"item {sword} held 2 times", self.holdfast("quarantine", "show", one))
        self.holdfast("quarantine", "release", one, "--reason", "it was there first")
        self.holdfast("quarantine", "release", two, "--reason", "may keep it", "--made", sword)
        self.wait_balanced()
        self.client.grant(one, 5)
        self.client.grant(two, 5)
        self.counting()
        self.assertIsNone(self.held(one))
        self.assertIsNone(self.held(two))
        self.cluster.wait_converged()

    def test_gold_without_an_entry_is_contained(self):
        player, other = f"rich-{uuid7()}", f"other-{uuid7()}"
        granted = uuid7()
        self.client.grant(player, 5, granted)
        self.client.grant(other, 5)
        self.counting()
        self.holdfast("debug", "inject", player, "gold=7")
        self.wait_held(player)
        self.assertIsNone(self.held(other))
        wait_for("its incident", lambda: self.incidents(player))
        incident = self.incidents(player)[0]
        self.assertEqual(incident["what"], "audit: +7 gold beside the ledger")
        self.assertEqual(incident["opId"], granted)
        self.assertEqual(self.holdfast("quarantine", "release", player, "--reason", "a gift",
                                       "--made", "gold=7").strip(),
                         f"{player} is released; it was quarantined for: "
                         "audit: +7 gold beside the ledger")
        self.wait_balanced()
        self.counting()
        self.assertIsNone(self.held(player))


if __name__ == "__main__":
    unittest.main(verbosity=2)
