"""
Trending over real processes: edges written with Zipf popularity while a node is killed and comes back. At the end the
top lists are what a recount of all edges gives, through the API and REST, and none was ever above it.
"""

import collections
import concurrent.futures
import json
import random
import threading
import time
import unittest

import favorites_test
from client import Client, RpcError, Unanswered
from cluster import Cluster, ClusterTest, wait_for

SHARDS = 8
PLAYERS = 120
GAMES = 60
THREADS = 8
WRITES = 150  # Of a thread.


class TopTest(favorites_test.FavoriteCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def top(self, **fields):
        return self.client.call("FavoritesService/GetTop", fields)

    def entries(self, **fields):
        return [(each["targetId"], int(each["count"])) for each in self.top(**fields).get("entries", [])]

    def seen(self, **fields):
        """The same; None while no answer can be had."""
        try:
            return self.entries(**fields)
        except (RpcError, Unanswered):
            return None

    def fresh(self, after_ms):
        """A list that is not stale, of after that moment; None while there is none."""
        told = self.top()
        return None if told.get("stale") or int(told["asOfFromMs"]) <= after_ms else told

    def recount(self):
        counts = collections.Counter(game for player in range(PLAYERS) for game in self.listed(f"p{player}"))
        return sorted(((game, count) for game, count in counts.items()), key=lambda each: (-each[1], each[0]))

    def get(self, target, **headers):
        connection = Client(self.cluster.endpoint).connection(30)
        connection.request("GET", target, None, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(said) if said else None

    def write(self, seed, killed):
        dice = random.Random(seed)
        client = Client(self.cluster.endpoint)
        weights = [1 / place for place in range(1, GAMES + 1)]
        for number in range(WRITES):
            if number == WRITES // 2:
                killed.wait(60)
            game = f"game-{dice.choices(range(GAMES), weights)[0]}"
            self.favorite(f"p{dice.randrange(PLAYERS)}", game, gone=dice.random() < 0.25, client=client)

    def test_a_top_list_is_what_a_recount_gives(self):
        killed = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            writing = [pool.submit(self.write, seed, killed) for seed in range(THREADS)]
            wait_for("something to be trending", lambda: self.seen(limit=5))
            victim = self.cluster.nodes[0]
            victim.kill()
            killed.set()
            concurrent.futures.wait(writing)
            for each in writing:
                each.result()
        victim.start()
        wait_for("all shards to serve", self.cluster.all_serving)
        wanted = self.recount()
        self.assertGreater(len(wanted), 30)
        for window in ("all", "7d", "24h"):
            wait_for(f"the list of {window} to be what a recount gives",
                     lambda window=window: self.seen(window=window, limit=1000) == wanted)
        self.assertEqual(self.entries(window="all", limit=7), wanted[:7])
        counts = self.client.call("FavoritesService/BatchGetCounts", {
            "targetIds": [game for game, _ in wanted[:10]], "fresh": True})["counts"]
        self.assertEqual([int(each["count"]) for each in counts], [count for _, count in wanted[:10]])
        self.freshness(wanted)
        self.rest(wanted)

    def freshness(self, wanted):
        """A new edge is in the list soon, and the list says as of when it is."""
        last = wanted[-1][0]
        began = time.time()
        self.favorite("newcomer", last)
        wait_for("the edge to be counted",
                 lambda: dict(self.seen(window="all", limit=1000) or [("", 0), (last, 0)])[last] == wanted[-1][1] + 1)
        told = wait_for("a list of now", lambda: self.fresh(began * 1000))
        self.assertGreaterEqual(int(told["asOfToMs"]), int(told["asOfFromMs"]))
        self.favorite("newcomer", last, gone=True)
        wait_for("it to be gone again", lambda: self.seen(window="all", limit=1000) == wanted)

    def rest(self, wanted):
        def of_now():
            told = self.get("/v1/games/top?window=7d&limit=3")
            return told if told[0] == 200 and not told[2].get("stale") else None
        _, headers, said = wait_for("a list that is not stale", of_now)
        self.assertEqual([(each["targetId"], int(each["count"])) for each in said["entries"]], wanted[:3])
        self.assertEqual(headers["cache-control"], "private, max-age=2")
        self.assertRegex(headers["etag"], r'^W/"t[0-9a-f]{16}"$')
        time.sleep(1.5)  # It is gathered again, to the same list.
        status, _, said = self.get("/v1/games/top?window=7d&limit=3", if_none_match=headers["etag"])
        self.assertEqual((status, said), (304, None))
        status, other, _ = self.get("/v1/games/top?window=7d&limit=4", if_none_match=headers["etag"])
        self.assertEqual(status, 200)
        self.assertNotEqual(other["etag"], headers["etag"])

    def rounds(self):
        return sum(node.metrics().get("holdfast_node_totals_rounds_total", 0) for node in self.cluster.nodes)

    def fast_rounds(self, number):
        """Whether nodes pulled more often than once a second while lists were read and counts changed."""
        began, before, until = time.monotonic(), self.rounds(), time.monotonic() + 3
        while time.monotonic() < until:
            number += 1
            self.favorite(f"fan{number}", f"fad{number % 24}")
            self.top()
        return (self.rounds() - before) / len(self.cluster.nodes) / (time.monotonic() - began) > 1.4

    def test_nodes_pull_faster_while_lists_are_read(self):
        self.favorite("ann", "pong")
        wait_for("a list", self.seen)
        numbers = iter(range(0, 10**9, 10**5))
        wait_for("rounds to come faster", lambda: self.fast_rounds(next(numbers)), 60)

    def test_bad_requests_say_what_is_wrong(self):
        self.favorite("ann", "pong")
        wait_for("a list", self.seen)
        for fields, field, limit, hint in (
                ({"window": "24hours"}, "window", "24h, 7d or all", ""),
                ({"window": "7days"}, "window", "24h, 7d or all", ""),
                ({"window": "al"}, "window", "24h, 7d or all", "did you mean all?"),
                ({"limit": 0}, "limit", "1 to 1000, or absent", ""),
                ({"limit": 1001}, "limit", "1 to 1000, or absent", ""),
                ({"collection": "Favorites!"}, "collection", "1 to 64 of a-z, 0-9 and _", "")):
            with self.subTest(**fields), self.assertRaises(RpcError) as caught:
                self.top(**fields)
            self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
            detail = caught.exception.detail
            self.assertEqual((detail["field"], detail["limit"]), (field, limit))
            self.assertIn(hint, str(caught.exception))
        with self.assertRaises(RpcError) as caught:
            self.top(collection="favorite")
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        self.assertIn("favorites", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
