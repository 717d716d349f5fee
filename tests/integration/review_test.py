"""
Flagged edges over real processes: an edge that a rule flags is its player's and no count's, also across the death of an
owner; what moderators decide, by the API and by `holdfast review`; who decided, in events and in the log.
"""

import json
import subprocess
import unittest

import favorites_test
from client import RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for

SHARDS = 8
DAY_MS = 24 * 3600 * 1000


class ReviewTest(favorites_test.FavoriteCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def flagged(self, **filters):
        """Of all shards."""
        return [edge for shard in range(SHARDS) for edge in self.client.call(
            "AdminService/ListFlaggedEdges", {"shard": shard} | filters).get("edges", [])]

    def decide(self, verb, player, *targets, **fields):
        return self.client.settle(f"AdminService/{verb}Edges", {
            "playerId": player, "opId": uuid7(), "authority": "system:moderation", "reason": "looked at",
            "targetIds": list(targets)} | fields)

    def count(self, target, collection):
        def told():
            try:
                return [self.client.call("FavoritesService/GetCount", {
                    "targetId": target, "collection": collection, "fresh": True})["count"].get("count", 0)]
            except RpcError as error:
                if error.code != "UNAVAILABLE":
                    raise
                return None
        return int(wait_for("a count", told)[0])

    def cli(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", "review", *words], capture_output=True, text=True,
                              env={"HOLDFAST_ENDPOINT": self.cluster.endpoint})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_a_young_account_is_in_no_count_until_it_is_accepted(self):
        self.define("wary")
        self.favorite("old", "pong", collection="wary")
        self.put("wary_age", {"rateRule": {"subject": "wary", "accountAgeMs": str(DAY_MS)}})
        self.assertTrue(self.favorite("young", "pong", collection="wary")["status"]["favorited"])
        self.favorite("young", "chess", collection="wary")
        self.assertTrue(self.status("young", "pong", collection="wary")[0]["favorited"])
        self.assertEqual(sorted(self.listed("young", collection="wary")), ["chess", "pong"])
        self.assertEqual(self.count("pong", "wary"), 1)
        waiting = self.flagged(collection="wary")
        self.assertEqual(sorted((each["playerId"], each["targetId"], each["reason"]) for each in waiting), [
            ("young", "chess", "account_age"), ("young", "pong", "account_age")])
        owner, _ = self.cluster.owner_of("young")
        owner.kill()
        try:
            self.assertEqual(self.decide("Accept", "young", "pong", collection="wary")["edges"], 1)
            self.assertEqual(self.decide("Reject", "young", "chess", collection="wary")["edges"], 1)
        finally:
            owner.start()
        wait_for("all shards to serve", self.cluster.all_serving)
        self.cluster.wait_converged()
        self.assertEqual(self.count("pong", "wary"), 2)
        self.assertEqual(self.count("chess", "wary"), 0)
        self.assertEqual(self.listed("young", collection="wary"), ["pong"])
        self.assertEqual(self.flagged(collection="wary"), [])
        self.favorite("young", "chess", collection="wary")
        self.assertEqual([each["reason"] for each in self.flagged(collection="wary")], ["rejected"])
        self.assertEqual(self.count("chess", "wary"), 0)

    def test_a_pace_flags_what_is_past_it_and_refuses_nothing(self):
        self.define("brisk")
        self.put("brisk_pace", {"rateRule": {"subject": "brisk", "flagAbove": 3, "periodMs": DAY_MS}})
        for each in range(5):
            self.favorite("fast", f"b{each}", collection="brisk")
        self.assertEqual([each["targetId"] for each in self.flagged(collection="brisk", reason="velocity")],
                         ["b3", "b4"])
        self.assertEqual([self.count(f"b{each}", "brisk") for each in range(5)], [1, 1, 1, 0, 0])
        self.favorite("fast", "b4", gone=True, collection="brisk")
        self.assertEqual(self.count("b4", "brisk"), 0)
        self.assertEqual([each["targetId"] for each in self.flagged(collection="brisk")], ["b3"])

    def test_decisions_are_once_and_name_who_made_them(self):
        self.define("known")
        self.favorite("ann", "pong", collection="known")
        self.decide("Flag", "ann", "pong", collection="known")
        self.assertEqual(self.count("pong", "known"), 0)
        op_id = uuid7()
        once = self.decide("Accept", "ann", "pong", collection="known", opId=op_id)
        again = self.decide("Accept", "ann", "pong", collection="known", opId=op_id)
        self.assertTrue(again["write"]["duplicate"])
        self.assertEqual(again["edges"], once["edges"])
        self.assertEqual(self.count("pong", "known"), 1)
        error = self.refused("NOT_FOUND", self.decide, "Accept", "ann", "pong", collection="known")
        self.assertEqual(error.field, "target_ids[0]")
        self.refused("PERMISSION_DENIED", self.decide, "Accept", "ann", "pong", collection="known",
                     authority="system:payments")
        told = self.client.call("EventService/Poll", {"entity": "player:ann", "kinds": ["favorite"]})["events"]
        decided = [each["favorite"] for each in told if each["favorite"]["collection"] == "known"]
        self.assertEqual([each.get("decision") for each in decided], [
            None, "flagged", "accepted"])
        self.assertEqual(decided[1]["flaggedFor"], "moderation")
        self.assertNotIn("flaggedFor", decided[2])
        self.assertTrue(decided[2]["decidedBy"].startswith("system:moderation"), decided[2])
        self.assertEqual(decided[2]["reason"], "looked at")

    def test_the_verbs_list_and_decide(self):
        self.define("verbs")
        for each in range(3):
            self.favorite("vera", f"v{each}", collection="verbs")
        self.assertIn("flagged: 3 edges of vera", self.cli("flag", "vera", "--all", "--collection", "verbs", "--reason", "bought"))
        rows = json.loads(self.cli("list", "--collection", "verbs", "--player", "vera", "--flagged-for", "moderation", "--json"))
        self.assertEqual(sorted(row["targetId"] for row in rows), ["v0", "v1", "v2"])
        self.assertIn("MODERATION", self.cli("list", "--player", "vera"))
        self.assertIn("accepted: 2 edges of vera", self.cli(
            "accept", "vera", "v0", "v1", "--collection", "verbs", "--reason", "looked at"))
        self.assertIn("1 edge of vera", self.cli("reject", "vera", "v2", "--collection", "verbs", "--reason", "bought"))
        self.assertEqual([self.count(f"v{each}", "verbs") for each in range(3)], [1, 1, 0])
        self.assertIn("no edge waits", self.cli("list", "--collection", "verbs"))
        self.cli("accept", "vera", "v0", "--collection", "verbs", code=2)
        self.cli("accept", "vera", "v0", "--collection", "verbs", "--reason", "again", code=1)

    def test_top_lists_leave_flagged_edges_out(self):
        self.define("tops")
        for player in ("ann", "bob", "carl"):
            self.favorite(player, "first", collection="tops")
        self.favorite("ann", "second", collection="tops")
        self.favorite("bob", "second", collection="tops")

        def top(window):
            try:
                return [(each["targetId"], int(each["count"])) for each in self.client.call(
                    "FavoritesService/GetTop", {"collection": "tops", "window": window}).get("entries", [])]
            except RpcError:
                return None
        for window in ("all", "24h"):
            wait_for("the top list", lambda of=window: top(of) == [("first", 3), ("second", 2)])
        for player in ("ann", "bob"):
            self.decide("Flag", player, "first", collection="tops")
        for window in ("all", "24h"):
            wait_for("flagged edges to leave", lambda of=window: top(of) == [("second", 2), ("first", 1)])
        for player in ("ann", "bob"):
            self.decide("Accept", player, "first", collection="tops")
        for window in ("all", "24h"):
            wait_for("accepted edges to be back", lambda of=window: top(of) == [("first", 3), ("second", 2)])

    def test_rules_say_one_thing(self):
        for body, field in (({"limit": 5, "flagAbove": 5, "periodMs": 1000}, "body.rate_rule.limit"),
                            ({"accountAgeMs": "5000", "periodMs": 1000}, "body.rate_rule.period_ms"),
                            ({"accountAgeMs": "5"}, "body.rate_rule.account_age_ms"),
                            ({"accountAgeMs": "5000", "flagAbove": 5}, "body.rate_rule.flag_above"),
                            ({"flagAbove": 1000001, "periodMs": 1000}, "body.rate_rule.flag_above")):
            error = self.refused("INVALID_ARGUMENT", self.client.call, "DefinitionService/PutDefinition", {
                "name": "bad", "opId": uuid7(), "body": {"rateRule": {"subject": "favorites"} | body}})
            self.assertEqual(error.field, field)


if __name__ == "__main__":
    unittest.main()
