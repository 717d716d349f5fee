"""
holdfast rebuild over real processes: counts and totals computed again while callers write and an owner is killed, to the
numbers that the calls came to. In builds that can spoil rows, wrong counts are planted first, and are found and mended.
"""

import collections
import concurrent.futures
import json
import random
import subprocess
import threading
import time
import unittest

import counters_test
from client import Client, RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from containment_test import can_inject

PLAYERS = 60
GAMES = 12
THREADS = 4
WRITES = 80  # Of a thread.


class RebuildTest(ClusterTest):
    define, ask = counters_test.CountersTest.define, counters_test.CountersTest.ask
    add, totals = counters_test.CountersTest.add, counters_test.CountersTest.totals

    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=8)

    def setUp(self):
        self.client = Client(self.cluster.endpoint)
        self.define(counters_test.COUNTER)

    def holdfast(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def rebuild(self, what, *words):
        """Its JSON, once no owner is missing: it goes on where it was."""
        known = ()
        for _ in range(20):
            done = subprocess.run([BIN / "holdfast", "rebuild", what, "--json", "--rows", "3", *words, *known, "--endpoint",
                                   self.cluster.endpoint], capture_output=True, text=True, timeout=300, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
            self.assertIn("--id ", done.stderr)
            known = ("--id", done.stderr.split("--id ")[1].split()[0])
            time.sleep(0.5)
        return self.fail(done.stderr)

    def likes(self, target):
        return int(self.ask("FavoritesService/BatchGetCounts", {
            "collection": "likes", "targetIds": [target], "fresh": True})["counts"][0].get("count", 0))

    def define_likes(self):
        def made():
            try:
                return self.client.call("DefinitionService/PutDefinition", {
                    "name": "likes", "body": {"collection": {"conflictPolicy": "last_write"}}, "opId": uuid7(),
                    "waitMs": 5000})["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for("likes to be in force", lambda: (made() or {}).get("inForce"))

    def like(self, player, target, client=None, stands=True):
        method = "Favorite" if stands else "Unfavorite"
        (client or self.client).settle(f"FavoritesService/{method}", {
            "playerId": player, "opId": uuid7(), "collection": "likes", "targetId": target})

    def write(self, seed, killed, wanted):
        dice, client = random.Random(seed), Client(self.cluster.endpoint)
        for number in range(WRITES):
            if number == WRITES // 2:
                killed.wait(60)
            player, game = f"q{dice.randrange(PLAYERS)}", f"game-{dice.randrange(GAMES)}"
            amount = dice.choice((1, 2, 10))
            self.add(player, game, amount, client)
            wanted[game] += amount
            edge = f"q{seed}-{number}"
            self.like(edge, game, client)
            wanted["liked", game] += 1
            if dice.random() < 0.3:
                self.like(edge, game, client, stands=False)
                wanted["liked", game] -= 1

    def test_what_is_computed_while_callers_write_is_what_is_kept(self):
        self.define_likes()
        killed, over = threading.Event(), threading.Event()
        wanted = [collections.Counter() for _ in range(THREADS)]

        def rebuilds():
            found = []
            while not over.is_set():
                found += [self.rebuild("counters"), self.rebuild("tops")]
            return found

        with concurrent.futures.ThreadPoolExecutor(THREADS + 1) as pool:
            rebuilding = pool.submit(rebuilds)
            writing = [pool.submit(self.write, seed, killed, wanted[seed]) for seed in range(THREADS)]
            try:
                victim, _ = self.cluster.owner_of("p0")
                victim.kill()
            finally:
                killed.set()
            try:
                for each in writing:
                    each.result()
                victim.start()
                wait_for("all shards to serve", self.cluster.all_serving)
            finally:
                over.set()
            found = rebuilding.result()
        self.assertTrue(found)
        self.assertEqual([each for each in found if each["different"] or each["leftAlone"]], [])
        sums = sum(wanted, collections.Counter())
        totals = {game: amount for game, amount in sums.items() if isinstance(game, str)}
        self.assertEqual(self.totals(list(totals), fresh=True), totals)
        for game in totals:
            self.assertEqual(self.likes(game), sums["liked", game])
        self.assertGreater(self.rebuild("counters", "--dry-run")["targets"], 0)
        self.cluster.wait_converged()

    def test_one_target_and_what_is_used_wrongly(self):
        self.add("one", "solo", 7)
        told = self.rebuild("counters", "--counter", "plays", "--target", "solo")
        self.assertEqual((told["targets"], told["different"]), (8, 0))  # One in each shard.
        self.assertEqual(self.totals(["solo"], fresh=True), {"solo": 7})
        self.assertIn("--from events: ", self.holdfast("rebuild", "counters", "--from", "events", code=2))
        self.assertIn("--rows", self.holdfast("rebuild", "tops", "--rows", "513", code=2))
        self.assertIn("NOT_FOUND", self.holdfast("rebuild", "counters", "--counter", "play", code=1))
        self.assertIn("INVALID_ARGUMENT", self.holdfast("rebuild", "counters", "--target", "solo", code=1))
        self.assertIn("differ", self.holdfast("rebuild", "tops", "--dry-run"))

    @unittest.skipUnless(can_inject(), "this build cannot spoil rows")
    def test_a_count_that_was_planted_wrong_is_found_and_mended(self):
        """A partial in the first form of its row: a version, and the count (partial.c)."""
        self.define_likes()
        for number in range(9):
            self.like(f"liker-{number}", "wrong")
        number = int(self.client.call("DefinitionService/GetDefinition", {
            "kind": "collection", "name": "likes"})["definition"]["number"])
        key = "50" + f"{number:016x}" + b"wrong".hex()
        self.holdfast("debug", "inject", "liker-0", f"spoil-key={key}:01" + (77).to_bytes(8, "little").hex())
        self.assertGreaterEqual(self.likes("wrong"), 77)
        told = self.rebuild("counters", "--collection", "likes", "--dry-run")
        self.assertEqual([(each["targetId"], int(each["kept"])) for each in told["differences"]], [("wrong", 77)])
        self.assertGreaterEqual(self.likes("wrong"), 77)
        self.assertEqual(self.rebuild("counters", "--collection", "likes")["different"], 1)
        self.assertEqual(self.likes("wrong"), 9)
        self.holdfast("debug", "inject", "liker-0", f"spoil-key={key}")
        self.assertEqual(self.rebuild("counters")["different"], 1)
        self.assertEqual(self.likes("wrong"), 9)
        wait_for("the list", lambda: any(each["targetId"] == "wrong" and int(each["count"]) == 9 for each in self.client.call(
            "FavoritesService/GetTop", {"collection": "likes", "window": "all"}).get("entries", [])))
        self.assertEqual(self.rebuild("tops")["different"], 0)


if __name__ == "__main__":
    unittest.main()
