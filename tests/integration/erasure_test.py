"""
Erasures over real processes, while owners are killed: a player with many edges is erased and purged, another is erased and
restored. Counts are those of the edges that are left, what is restored is as it was, and nothing of the purged one is kept.
"""

import unittest

from client import Client, RpcError, Unanswered, uuid7
from cluster import Cluster, ClusterTest, wait_for

EDGES = 900  # Some entries of an erasure each way.
CONCERNED = 20  # Of whose targets counts are looked at.


class ErasureTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=4)

    def setUp(self):
        self.client = Client(self.cluster.endpoint)
        for name, body in {"favorites": {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}}, "plays": {"counter": {}},
                           "haste": {"rateRule": {"subject": "favorites", "limit": 1000000, "periodMs": 60000}},
                           "notes": {"documents": {"policy": "merge", "durability": "majority"}}}.items():
            wait_for(f"{name} to be in force", lambda name=name, body=body: self.put(name, body))

    def put(self, name, body):
        try:
            return self.client.call("DefinitionService/PutDefinition", {
                "name": name, "body": body, "opId": uuid7(), "waitMs": 5000})["definition"].get("inForce")
        except RpcError as error:
            if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                raise
            return False

    def ask(self, method, request):
        """A read's answer, once an owner gives it."""
        def once():
            try:
                return [self.client.call(method, request)]
            except Unanswered:
                return None
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "THROTTLED", "DEADLINE_EXCEEDED"):
                    raise
                return None
        return wait_for("a read to be answered", once)[0]

    def fill(self, *players):
        for begin in range(0, EDGES, 300):
            for player in players:
                response = self.client.call("FavoritesService/BatchFavorite", {"requests": [
                    {"playerId": player, "opId": uuid7(), "targetId": f"t{each}", "ver": 1 + each}
                    for each in range(begin, begin + 300)]})
                self.assertEqual(response.get("failed", 0), 0, response)
        for player in players:
            for target in ("t0", "t1"):
                self.client.settle("CounterService/AddToCounter", {
                    "playerId": player, "opId": uuid7(), "authority": "system:match", "counter": "plays",
                    "targetId": target, "amount": 5})

    def exported(self, player):
        request, rows = {"playerId": player, "pageSize": 150}, []
        while True:
            page = self.ask("ErasureService/ExportPlayer", request)
            rows += [row for row in page.get("rows", []) if "rate" not in row]
            if not page.get("nextCursor"):
                return rows
            request["cursor"] = page["nextCursor"]

    def state(self, player):
        return self.ask("ErasureService/GetErasure", {"playerId": player})["erasure"].get("state", "")

    def counts(self, method="FavoritesService/BatchGetCounts", **fields):
        targets = [f"t{each}" for each in range(CONCERNED)]
        counts = self.ask(method, {"targetIds": targets, "fresh": True} | fields)["counts"]
        return [int(each.get("count", 0)) for each in counts]

    def totals(self):
        return self.counts("CounterService/BatchGetCounters", counter="plays")[:3]

    def change(self, method, player, **fields):
        return self.client.settle(f"ErasureService/{method}", {
            "playerId": player, "opId": uuid7(), "authority": "system:admin"} | fields)

    def kill_owner(self, player):
        wait_for("all shards to serve", self.cluster.all_serving)
        owner, _ = self.cluster.owner_of(player)
        owner.kill()
        owner.start()

    def test_a_purge_and_an_undone_erasure_survive_their_owners(self):
        self.fill("gone", "back", "other")
        before = self.exported("back")
        self.assertEqual(len(before), EDGES + 2)
        self.assertEqual(self.counts(), [3] * CONCERNED)
        self.change("ErasePlayer", "gone", graceMs=0)
        self.change("ErasePlayer", "back", graceMs=3600000)
        self.kill_owner("gone")
        self.assertEqual(self.ask("FavoritesService/ListFavorites", {"playerId": "gone"}).get("edges", 0), 0)
        self.assertEqual(self.ask("FavoritesService/ListFavorites", {"playerId": "back"}).get("edges", 0), 0)
        wait_for("it to be withdrawn", lambda: self.state("back") == "withdrawn")
        self.kill_owner("back")
        wait_for("it to be purged", lambda: self.state("gone") == "purged", 120)
        self.assertEqual(self.exported("gone"), [])
        self.assertEqual(self.counts(), [1] * CONCERNED)
        self.assertEqual(self.totals(), [5, 5, 0])

        self.change("RestorePlayer", "back")
        self.kill_owner("back")
        wait_for("it to be restored", lambda: self.state("back") == "restored", 120)
        self.assertEqual(self.exported("back"), before)
        self.assertEqual(self.counts(), [2] * CONCERNED)
        self.assertEqual(self.totals(), [10, 10, 0])

        self.client.settle("FavoritesService/Favorite", {"playerId": "gone", "opId": uuid7(), "targetId": "t0"})
        status = self.ask("FavoritesService/BatchGetStatus", {"playerId": "gone", "targetIds": ["t0", "t1"]})["statuses"]
        self.assertEqual([int(each.get("ver", 0)) for each in status], [1, 0])
        self.assertEqual(self.counts()[:2], [3, 2])
        self.cluster.wait_converged()

    def written(self, method, request):
        """The code of the refusal, or None."""
        try:
            self.client.settle(method, request | {"opId": uuid7()})
        except RpcError as error:
            return error.code
        return None

    def note(self, player, key, value):
        return self.written("DocumentService/PutDocument", {
            "entity": f"player:{player}", "collection": "notes", "key": key, "json": {"v": value}})

    def listed(self, player):
        return [each["key"] for each in self.ask("DocumentService/ListDocuments", {
            "entity": f"player:{player}", "collection": "notes"}).get("documents", [])]

    def notes(self, player):
        """What is told of the player's documents, by a list and by key, which say the same."""
        listed = self.listed(player)
        for key in ("a", "b"):
            answer = self.ask("DocumentService/GetDocument", {
                "entity": f"player:{player}", "collection": "notes", "key": key, "consistency": "majority"})
            self.assertEqual("document" in answer, key in listed, answer)
        return listed

    def user(self, player):
        """Whether the player's user and presence are told, which go alike."""
        user = self.ask("UserService/GetUser", {"playerId": player}).get("user")
        presence = self.ask("PresenceService/GetPresence", {"playerId": player}).get("presence")
        self.assertEqual(user is None, presence is None)
        return user is not None

    def upsert(self, player):
        return self.written("UserService/UpsertUser", {
            "playerId": player, "displayName": player, "connection": "web", "ttlMs": 3600000})

    def test_documents_go_with_their_player_and_come_back_with_it(self):
        for player in ("amy", "ben"):
            self.assertIsNone(self.upsert(player))
            self.assertIsNone(self.note(player, "a", 1))
            self.assertIsNone(self.note(player, "b", 2))
        self.change("ErasePlayer", "amy", graceMs=3600000)
        self.assertEqual(self.notes("amy"), [])
        self.assertEqual(self.note("amy", "a", 3), "QUARANTINED")
        self.assertEqual(self.upsert("amy"), "QUARANTINED")
        self.assertEqual([self.user(each) for each in ("amy", "ben")], [False, True])
        self.assertEqual(self.notes("ben"), ["a", "b"])
        self.kill_owner("amy")
        wait_for("members to know it again", lambda: self.listed("amy") == [])  # Once they have applied their logs' ends.
        self.change("RestorePlayer", "amy")
        wait_for("all shards to serve", self.cluster.all_serving)
        self.cluster.wait_converged()  # Until then a member that was away may hide them.
        wait_for("the notes to be back", lambda: self.listed("amy") == ["a", "b"])
        self.assertEqual(self.notes("amy"), ["a", "b"])
        self.assertTrue(self.user("amy"))
        self.change_after_restore("amy", graceMs=0)
        wait_for("it to be purged", lambda: self.state("amy") == "purged", 120)
        self.assertEqual(self.notes("amy"), [])
        self.assertFalse(self.user("amy"))
        self.kill_owner("amy")
        wait_for("members to know it again", lambda: self.listed("amy") == [])
        wait_for("all shards to serve", self.cluster.all_serving)
        wait_for("a write of the next life", lambda: self.note("amy", "b", 4) is None)
        wait_for("it to be all there is", lambda: self.listed("amy") == ["b"])
        self.assertEqual(self.notes("ben"), ["a", "b"])

    def change_after_restore(self, player, **fields):
        wait_for("it to be restored", lambda: self.state(player) == "restored", 60)
        self.change("ErasePlayer", player, **fields)


if __name__ == "__main__":
    unittest.main()
