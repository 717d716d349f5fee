"""
Favourites over real processes: concurrent calls about one edge, the highest `ver` decides and the counts agree; a
player reads its own writes through another router, also while an owner is killed; a player's token; REST.
"""

import concurrent.futures
import random
import threading
import unittest

from client import Client, RpcError, Unanswered, uuid7
from cluster import Cluster, ClusterTest, wait_for

SHARDS = 8
CALLS = 1000
THREADS = 24


class FavoriteCalls:
    """What the tests below ask of a cluster."""

    def setUp(self):
        self.client = Client(self.cluster.endpoint)
        self.define("favorites")
        self.put("haste", {"rateRule": {"subject": "favorites", "limit": 1000000, "periodMs": 1000}})

    def define(self, name, policy="CONFLICT_POLICY_HIGHEST_VERSION", **body):
        self.put(name, {"collection": {"conflictPolicy": policy} | body})

    def put(self, name, body):
        def made():
            try:
                return self.client.call("DefinitionService/PutDefinition", {
                    "name": name, "body": body, "opId": uuid7(), "waitMs": 5000})["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for(f"{name} to be in force", lambda: (made() or {}).get("inForce"))

    def favorite(self, player, target, gone=False, client=None, **fields):
        method = "Unfavorite" if gone else "Favorite"
        return (client or self.client).settle(f"FavoritesService/{method}", {
            "playerId": player, "opId": uuid7(), "targetId": target} | fields)

    def status(self, player, *targets, client=None, **fields):
        return (client or self.client).call("FavoritesService/BatchGetStatus", {
            "playerId": player, "targetIds": list(targets)} | fields)["statuses"]

    def listed(self, player, client=None, **fields):
        """All pages."""
        request, found = {"playerId": player} | fields, []
        while True:
            page = (client or self.client).call("FavoritesService/ListFavorites", request)
            found += [each["targetId"] for each in page.get("favorites", [])]
            if not page.get("nextCursor"):
                return found
            request["cursor"] = page["nextCursor"]

    def who(self, target, **fields):
        """Of all shards: as many as the shards count (node/rpc/favorites_favorite_test.c, and the simulator)."""
        return sorted(edge["playerId"] for shard in range(SHARDS) for edge in self.client.call(
            "FavoritesService/ListByTarget", {"shard": shard, "targetId": target} | fields).get("edges", []))


class FavoritesTest(FavoriteCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def test_concurrent_calls_about_one_edge_end_in_the_state_of_the_highest_ver(self):
        dice = random.Random(19)
        calls = [(ver, dice.random() < 0.5) for ver in range(1, CALLS + 1)]
        last = dict(calls)[CALLS]
        dice.shuffle(calls)
        self.favorite("rival", "hot")
        applied = []

        def call(ver, gone):
            answer = self.favorite("ann", "hot", gone, ver=ver)
            self.assertGreaterEqual(int(answer["status"]["ver"]), ver)
            if answer.get("applied"):
                applied.append(ver)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(call, *each) for each in calls]:
                done.result()
        status = self.status("ann", "hot")[0]
        self.assertEqual(int(status["ver"]), CALLS)
        self.assertEqual(status.get("favorited", False), not last)
        self.assertIn(CALLS, applied)
        self.assertEqual(self.who("hot"), ["rival"] if last else ["ann", "rival"])
        self.assertEqual(self.listed("ann"), [] if last else ["hot"])
        self.favorite("ann", "hot", ver=CALLS + 1)
        self.assertEqual(self.who("hot"), ["ann", "rival"])
        self.favorite("ann", "hot", True, ver=CALLS + 2)
        self.assertEqual(self.who("hot"), ["rival"])

    def test_a_list_is_newest_first_and_pages_do_not_move(self):
        for number in range(7):
            self.favorite("pager", f"t{number}")
        whole = [f"t{number}" for number in reversed(range(7))]
        self.assertEqual(sorted(self.listed("pager", pageSize=3)), sorted(whole))
        self.assertEqual(self.listed("pager", pageSize=1), self.listed("pager"))
        page = self.client.call("FavoritesService/ListFavorites", {"playerId": "pager", "pageSize": 4})
        self.favorite("pager", "late")
        rest = self.client.call("FavoritesService/ListFavorites", {
            "playerId": "pager", "pageSize": 4, "cursor": page["nextCursor"]})
        told = [each["targetId"] for each in page["favorites"] + rest["favorites"]]
        self.assertEqual(sorted(told), sorted(whole))
        self.assertEqual(len(told), len(set(told)))
        self.refused("INVALID_ARGUMENT", self.listed, "other", cursor=page["nextCursor"])

    def test_bad_requests_change_nothing(self):
        error = self.refused("NOT_FOUND", self.favorite, "bad", "x", collection="favorits")
        self.assertIn("did you mean favorites?", error.message)
        for fields in ({"targetId": ""}, {"targetId": "x" * 129}, {"targetId": "a\nb"}, {"ver": 0}, {"ver": 2**53},
                       {"collection": "No"}):
            error = self.refused("INVALID_ARGUMENT", self.favorite, "bad", **({"target": "x"} | fields))
            self.assertIn(error.field, ("target_id", "ver", "collection"))
        self.refused("INVALID_ARGUMENT", self.listed, "bad", pageSize=201)
        self.refused("INVALID_ARGUMENT", self.status, "bad", *(f"t{each}" for each in range(201)))
        self.favorite("bad", "kept", ifVer=0)
        self.refused("VERSION_CONFLICT", self.favorite, "bad", "kept", ifVer=0)
        self.assertEqual(self.listed("bad"), ["kept"])

    def test_a_collection_has_room_for_so_many_and_begins_again_under_its_name(self):
        self.define("stars", edgesMax=2)
        self.favorite("few", "a", collection="stars")
        self.favorite("few", "b", collection="stars")
        self.refused("CAPACITY_FULL", self.favorite, "few", "c", collection="stars")
        self.client.call("DefinitionService/DeleteDefinition", {
            "kind": "collection", "name": "stars", "opId": uuid7(), "waitMs": 20000})
        self.refused("NOT_FOUND", self.favorite, "few", "a", collection="stars")
        self.define("stars")
        self.assertEqual(self.listed("few", collection="stars"), [])
        self.assertEqual(self.who("a", collection="stars"), [])
        self.assertEqual(self.favorite("few", "a", collection="stars")["edges"], 1)

    def test_a_batch_makes_edges_of_many_players(self):
        answer = self.client.call("FavoritesService/BatchFavorite", {"targetId": "all", "opId": uuid7(), "requests": [
            {"playerId": f"many{each}"} for each in range(30)] + [{"playerId": "many-x", "targetId": "x" * 129}]})
        self.assertEqual((len(answer["results"]), answer["failed"]), (31, 1))
        self.assertEqual(len(self.who("all")), 30)

    def test_an_outcome_is_readable(self):
        op_id = uuid7()
        self.client.settle("FavoritesService/Favorite", {"playerId": "told", "opId": op_id, "targetId": "x"})
        told = self.client.call("OperationService/GetOperation", {"entity": "player:told", "opId": op_id})["operation"]
        self.assertTrue(told["favorite"]["status"]["favorited"])


class TwoRouters(Cluster):
    def __init__(self, **options):
        super().__init__(**options)
        listen = self.address("router-2")
        self.second = self.plan("router", "router-2", {"listen": listen, "access": "open", "player-rate": 0})
        self.second_endpoint = f"http://{listen}"

    def processes(self):
        return [self.second, *super().processes()]

    def wait_ready(self):
        wait_for("the second router to be ready", self.second.ready)
        return super().wait_ready()


class ReadYourWrites(FavoriteCalls, ClusterTest):
    """A write through one router, the read through the other, while an owner is killed."""

    @classmethod
    def plan(cls):
        return TwoRouters(nodes=3, coordinators=1, shards=SHARDS)

    def play(self, player, stop, failed, reads):
        """Edges come and go; each read has to show the write that was answered before."""
        other = Client(self.cluster.second_endpoint)
        for number in range(10**6):
            if stop.is_set():
                return
            target, gone = f"g{number % 3}", number // 3 % 2 == 1
            self.favorite(player, target, gone, ver=number + 1)
            status = self.retried(self.status, player, target, client=other)[0]
            listed = self.retried(self.listed, player, client=other)
            reads.append(player)
            if status.get("favorited", False) == gone or (target in listed) == gone:
                failed.append((player, number, status, listed))

    def retried(self, read, *arguments, **named):
        def once():
            try:
                return [read(*arguments, **named)]
            except (RpcError, Unanswered):
                return None
        return wait_for("a read to be answered", once)[0]

    def test_no_read_misses_a_write_that_was_answered(self):
        stop, failed, reads = threading.Event(), [], []
        owner, _ = self.cluster.owner_of("eager0")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            played = [pool.submit(self.play, f"eager{each}", stop, failed, reads) for each in range(4)]
            try:
                for process in (None, owner):
                    before = len(reads)
                    if process is not None:
                        process.kill()
                    wait_for("reads", lambda seen=before: len(reads) > seen + 40)
                owner.start()
                wait_for("all shards to serve", self.cluster.all_serving)
            finally:
                stop.set()
            for each in played:
                each.result()
        self.assertEqual(failed, [])
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main()
