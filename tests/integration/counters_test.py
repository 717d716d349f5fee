"""
Counters over real processes: additions with repetitions by many callers while an owner is killed and comes back. At the
end each player's value is what its calls came to, the totals are the sum of all players' values, and the top lists are in
their order; all through the API, and none was ever above it.
"""

import collections
import concurrent.futures
import random
import threading
import unittest

from client import Client, RpcError, Unanswered, uuid7
from cluster import Cluster, ClusterTest, wait_for

SHARDS = 8
PLAYERS = 60
GAMES = 25
THREADS = 8
WRITES = 120  # Of a thread.
COUNTER = "plays"


class CountersTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def setUp(self):
        self.client = Client(self.cluster.endpoint)
        self.define(COUNTER)

    def define(self, name, **body):
        def made():
            try:
                return self.client.call("DefinitionService/PutDefinition", {
                    "name": name, "body": {"counter": body}, "opId": uuid7(), "waitMs": 5000})["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for(f"{name} to be in force", lambda: (made() or {}).get("inForce"))

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

    def add(self, player, target, amount, client=None, **fields):
        return (client or self.client).settle("CounterService/AddToCounter", {
            "playerId": player, "opId": uuid7(), "authority": "system:match", "counter": COUNTER, "targetId": target,
            "amount": amount} | fields)

    def listed(self, player, **fields):
        """All pages."""
        request, found = {"playerId": player, "counter": COUNTER} | fields, {}
        while True:
            page = self.ask("CounterService/ListPlayerCounters", request)
            found |= {each["targetId"]: int(each["value"]) for each in page.get("counters", [])}
            if not page.get("nextCursor"):
                self.assertEqual(len(found), page.get("targets", 0))
                return found
            request["cursor"] = page["nextCursor"]

    def totals(self, targets, **fields):
        counts = self.ask("CounterService/BatchGetCounters", {
            "targetIds": targets, "counter": COUNTER} | fields)["counts"]
        return {each["targetId"]: int(each.get("count", 0)) for each in counts}

    def top(self, **fields):
        """None while no answer can be had."""
        try:
            told = self.client.call("CounterService/GetCounterTop", {"counter": COUNTER} | fields)
        except (RpcError, Unanswered):
            return None
        return [(each["targetId"], int(each["count"])) for each in told.get("entries", [])
                if each["targetId"].startswith("game-")]  # Other tests add to other targets.

    def write(self, seed, killed, wanted):
        dice, client = random.Random(seed), Client(self.cluster.endpoint)
        for number in range(WRITES):
            if number == WRITES // 2:
                killed.wait(60)
            player, game = f"p{dice.randrange(PLAYERS)}", f"game-{dice.randrange(GAMES)}"
            amount = dice.choice((1, 2, 10, 2**33))
            request = {"opId": uuid7()}
            for _ in range(2 if dice.random() < 0.2 else 1):  # Some are sent again.
                self.add(player, game, amount, client, **request)
            wanted[player, game] += amount

    def test_values_totals_and_tops_are_what_was_added(self):
        killed = threading.Event()
        wanted = [collections.Counter() for _ in range(THREADS)]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            writing = [pool.submit(self.write, seed, killed, wanted[seed]) for seed in range(THREADS)]
            try:
                wait_for("something to be in the list", lambda: self.top(limit=5))
                victim, _ = self.cluster.owner_of("p0")
                victim.kill()
            finally:
                killed.set()
            for each in writing:
                each.result()
        victim.start()
        wait_for("all shards to serve", self.cluster.all_serving)
        values = sum(wanted, collections.Counter())
        for player in range(PLAYERS):
            mine = {game: amount for (who, game), amount in values.items() if who == f"p{player}"}
            self.assertEqual(self.listed(f"p{player}", pageSize=7), mine)
        totals = collections.Counter()
        for (_, game), amount in values.items():
            totals[game] += amount
        self.assertEqual(self.totals(list(totals), fresh=True), dict(totals))
        order = sorted(totals.items(), key=lambda each: (-each[1], each[0]))
        for window in ("all", "7d", "24h"):
            wait_for(f"the list of {window} to be what was added",
                     lambda window=window: self.top(window=window, limit=1000) == order)
        self.assertEqual(self.top(window="all", limit=3), order[:3])
        self.cluster.wait_converged()

    def test_a_repetition_adds_nothing_and_its_outcome_is_readable(self):
        request = {"playerId": "again", "opId": uuid7(), "authority": "unheld", "counter": COUNTER, "targetId": "solo",
                   "amount": 5}
        self.assertEqual(int(self.client.settle("CounterService/AddToCounter", request)["value"]), 5)
        self.assertEqual(int(self.client.settle("CounterService/AddToCounter", request)["value"]), 5)
        self.refused("OPERATION_ID_MISMATCH", self.client.settle, "CounterService/AddToCounter", request | {"amount": 6})
        self.assertEqual(self.listed("again"), {"solo": 5})
        told = self.client.call("OperationService/GetOperation", {
            "entity": "player:again", "opId": request["opId"]})["operation"]
        self.assertEqual(int(told["addToCounter"]["value"]), 5)
        self.assertEqual(self.totals(["solo"], fresh=True), {"solo": 5})

    def test_bounds_and_bad_requests_change_nothing(self):
        self.define("few", maxValue=10, addMax=6)
        self.add("bound", "x", 6, counter="few")
        for amount in (5, 7):
            error = self.refused("CAPACITY_FULL", self.add, "bound", "x", amount, counter="few")
            self.assertEqual(error.field, "amount")
        self.assertEqual(int(self.add("bound", "x", 4, counter="few")["value"]), 10)
        error = self.refused("NOT_FOUND", self.add, "bound", "x", 1, counter="play")
        self.assertIn("did you mean plays?", error.message)
        for fields in ({"targetId": ""}, {"targetId": "x" * 129}, {"targetId": "a\nb"}, {"amount": 0}, {"amount": -1},
                       {"amount": 2**53}, {"counter": "No"}, {"counter": ""}, {"authority": ""}):
            error = self.refused("INVALID_ARGUMENT", self.add, **({"player": "bound", "target": "x", "amount": 1} | fields))
            self.assertIn(error.field, ("target_id", "amount", "counter", "authority"))
        self.assertEqual(self.listed("bound", counter="few"), {"x": 10})
        self.assertEqual(self.listed("bound"), {})

    def test_a_name_made_again_begins_without_values(self):
        self.define("brief")
        self.add("life", "x", 3, counter="brief")
        self.client.call("DefinitionService/DeleteDefinition", {
            "kind": "counter", "name": "brief", "opId": uuid7(), "waitMs": 20000})
        self.refused("NOT_FOUND", self.add, "life", "x", 1, counter="brief")
        self.define("brief")
        self.assertEqual(self.listed("life", counter="brief"), {})
        self.assertEqual(int(self.add("life", "x", 2, counter="brief")["value"]), 2)

    def test_a_batch_adds_for_many_players(self):
        request = {
            "targetId": "all", "opId": "match:m7:1", "authority": "system:match", "counter": COUNTER, "amount": 2,
            "requests": [{"playerId": f"many{each}"} for each in range(30)] + [{"playerId": "many-x", "amount": -1}]}
        self.ask("CounterService/BatchAddToCounter", request)
        answer = wait_for("all but one to be added", lambda: next(
            (each for each in [self.ask("CounterService/BatchAddToCounter", request)] if each["failed"] == 1), None))
        self.assertEqual(len(answer["results"]), 31)
        self.assertEqual(answer["results"][30]["error"]["field"], "amount")
        self.assertEqual(self.totals(["all"], fresh=True), {"all": 60})


if __name__ == "__main__":
    unittest.main()
