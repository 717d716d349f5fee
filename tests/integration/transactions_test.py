"""Players exchange goods, all or nothing, while the nodes that hold them are killed."""

import random
import signal
import subprocess
import time
import unittest

import trading
from client import PAYMENTS, UNHELD, RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from load import Stepper

FREE = {"authority": UNHELD}


def gold(amount):
    return {"gold": amount}


class Trades(ClusterTest):
    def mint(self, player):
        """A sword's UID; its first four digits say the player's shard."""
        return self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "items": [{"kind": "sword"}]} | FREE
        )["itemUids"][0]

    def pair(self):
        """Two new players on different shards, each with a sword and 100 gold."""
        one, sword = f"one-{uuid7()}", None
        sword = self.mint(one)
        while True:
            two = f"two-{uuid7()}"
            hat = self.mint(two)
            if hat[:4] != sword[:4]:
                break
        self.client.grant(one, 100)
        self.client.grant(two, 100)
        return one, two, sword, hat

    def swap(self, one, two, gives=None, gets=None):
        return {"opId": uuid7(), "a": {"playerId": one, "gives": gives or {}} | FREE,
                "b": {"playerId": two, "gives": gets or {}} | FREE}

    def items(self, player):
        return {i["uid"] for i in self.client.settle(
            "InventoryService/ListItems", {"playerId": player}).get("items", [])}

    def operation(self, player, op_id, seal=False):
        return self.client.settle("OperationService/ResolveOperation", {
            "entity": f"player:{player}", "opId": op_id, "seal": seal})["operation"]

    def read(self, *players):
        """Profiles as of one moment; None while a transaction holds one of them."""
        try:
            return self.client.settle("TransactionService/ReadPlayers", {"playerIds": players})["profiles"]
        except RpcError as error:
            if error.code != "TXN_CONFLICT":
                raise
            return None

    def at_rest(self, *players):
        """A decided transaction holds its players until it has arrived everywhere."""
        wait_for("no player to be held", lambda: self.read(*players) is not None)


class Transactions(Trades):
    def test_a_swap_across_shards_is_done_once(self):
        one, two, sword, hat = self.pair()
        request = self.swap(one, two, {"currencies": gold(30), "itemUids": [sword]}, {"itemUids": [hat]})
        answer = self.client.call("TransactionService/Swap", request)
        self.assertEqual([p["playerId"] for p in answer["players"]], [one, two])
        self.assertEqual(answer["players"][0]["balances"]["gold"], 70)
        self.assertEqual(answer["players"][1]["items"][0]["uid"], sword)
        again = self.client.call("TransactionService/Swap", request)
        self.assertTrue(again["write"]["duplicate"])
        self.at_rest(one, two)
        self.assertEqual((self.items(one), self.items(two)), ({hat}, {sword}))
        self.assertEqual((self.client.balance(one), self.client.balance(two)), (70, 130))
        kinds = [e["kind"] for e in self.client.entries(two)]
        self.assertEqual(kinds[-2:], ["txn_take", "txn_give"])
        for kind in kinds[-2:]:
            told = self.client.call("LedgerService/ListEntries", {"playerId": two, "kinds": [kind]})
            self.assertEqual({e["kind"] for e in told["entries"]}, {kind})

    def test_eight_players_or_none(self):
        players = [f"p{i}-{uuid7()}" for i in range(8)]
        for player in players:
            self.client.grant(player, 10)
        execute = lambda amount: self.client.call("TransactionService/ExecuteTransaction", {
            "playerId": players[0], "opId": uuid7(), "reason": "round",
            "others": [{"playerId": p} | FREE for p in players[1:]],
            "changes": [{"move": {"fromPlayerId": players[i], "toPlayerId": players[(i + 1) % 8],
                                  "currencies": gold(amount if i == 5 else i + 1)}}
                        for i in range(8)]} | FREE)
        refused = self.refused("INSUFFICIENT_FUNDS", execute, 11)
        self.assertIn(players[5], refused.message)
        self.at_rest(*players)
        self.assertEqual([self.client.balance(p) for p in players], [10] * 8)
        execute(6)
        self.at_rest(*players)
        self.assertEqual([self.client.balance(p) for p in players], [17] + [9] * 7)
        nine = [{"playerId": f"x{i}"} | FREE for i in range(8)]
        bad = self.refused("INVALID_ARGUMENT", self.client.call, "TransactionService/ExecuteTransaction", {
            "playerId": players[0], "opId": uuid7(), "others": nine,
            "changes": [{"spend": {"playerId": players[0], "currencies": gold(1)}}]} | FREE)
        self.assertEqual(bad.field, "others")

    def test_checks_grants_patches_and_a_read_of_one_moment(self):
        one, two, sword, _ = self.pair()
        version = self.client.profile(one)["version"]
        answer = self.client.call("TransactionService/ExecuteTransaction", {
            "playerId": one, "opId": uuid7(), "others": [{"playerId": two} | FREE],
            "checks": [{"playerId": one, "playerVersion": version},
                       {"playerId": two, "balance": {"currency": "gold", "amount": 100}}],
            "changes": [
                {"spend": {"playerId": one, "itemUids": [sword]}},
                {"grant": {"playerId": two, "items": [{"kind": "ring"}]}},
                {"patch": {"playerId": two, "edit": {"name": "quests", "replace": {"n": 1}}}}]
        } | FREE)
        ring = answer["players"][1]["itemUids"][0]
        self.at_rest(one, two)
        self.assertIn(ring, self.items(two))
        self.assertEqual(self.items(one), set())
        read = self.client.call("TransactionService/ReadPlayers", {"playerIds": [one, two]})["profiles"]
        self.assertEqual([p["playerId"] for p in read], [one, two])
        self.assertEqual(read[1]["sections"]["quests"]["json"], {"n": 1})
        self.refused("VERSION_CONFLICT", self.client.call, "TransactionService/ExecuteTransaction", {
            "playerId": one, "opId": uuid7(),
            "checks": [{"playerId": one, "playerVersion": version}],
            "changes": [{"spend": {"playerId": one, "currencies": gold(1)}}]} | FREE)
        self.assertEqual(self.client.balance(one), 100)

    def test_bad_swaps_move_nothing(self):
        one, two, sword, hat = self.pair()
        swap = lambda *goods, op_id=None, b=(), two=two: self.client.call("TransactionService/Swap", {
            **(form := self.swap(one, two, *goods)), "opId": op_id or uuid7(), "b": form["b"] | dict(b)})
        mine, theirs = {"itemUids": [sword]}, {"itemUids": [hat]}
        self.assertEqual(self.refused("INVALID_ARGUMENT", swap, mine, two=one).field, "b.player_id")
        self.assertEqual(self.refused("INVALID_ARGUMENT", swap).field, "a.gives")
        self.assertEqual(self.refused("INVALID_ARGUMENT", swap, mine, b={"authority": ""}).field,
                         "b.authority")
        for code, field, about, goods, more in (
                ("ITEM_NOT_HELD", "a.gives.item_uids", one, (theirs,), {}),
                ("ITEM_NOT_HELD", "b.gives.item_uids", two, ({}, mine), {}),
                ("INSUFFICIENT_FUNDS", 'a.gives.currencies["gold"].amount', one, ({"currencies": gold(101)},), {}),
                ("INSUFFICIENT_FUNDS", 'b.gives.currencies["gold"].amount', two, ({}, {"currencies": gold(101)}), {}),
                ("PERMISSION_DENIED", "b.authority", two, (mine, theirs), {"authority": PAYMENTS})):
            with self.subTest(code=code, field=field):
                error = self.refused(code, swap, *goods, b=more)
                self.assertEqual((error.field, error.detail["about"]["playerId"]), (field, about))
        for a, field in (({}, "a.player_id"), ({"playerId": one}, "a.authority")):
            error = self.refused("INVALID_ARGUMENT", self.client.call, "TransactionService/Swap",
                                 self.swap(one, two, mine) | {"a": a})
            self.assertEqual(error.field, field)
        op_id = uuid7()
        swap(mine, op_id=op_id)
        self.refused("OPERATION_ID_MISMATCH", swap, {"currencies": gold(1)}, op_id=op_id)
        self.at_rest(one, two)
        self.assertEqual(self.items(two), {sword, hat})
        self.assertEqual((self.client.balance(one), self.client.balance(two)), (100, 100))

    def test_a_lost_session_is_told_of_its_player(self):
        """A game server drops the player whom STOP_WRITING names, and no other."""
        one, two, sword, _ = self.pair()
        server, tokens = self.client.register("two-sides"), {}
        for player in (one, two):
            tokens[player] = self.client.start(player, server)["token"]
        lost = self.client.start(two, self.client.register("thief"), mode="STEAL")["token"]

        def told(error, home, field):
            self.assertEqual((error.detail["action"], error.detail["entity"], error.detail["about"]["playerId"], error.field),
                             ("stop_writing", f"player:{two}", two, field))
            self.assertEqual(home, one)
        swap = self.swap(one, two, {"itemUids": [sword]}) | {"opId": uuid7()}
        for side, player in (("a", one), ("b", two)):
            swap[side] = swap[side] | {"authority": f"session:{tokens[player]}"}
        told(self.refused("SESSION_LOST", self.client.call, "TransactionService/Swap", swap), one, "b.authority")
        execute = {"playerId": one, "opId": uuid7(), "authority": f"session:{tokens[one]}",
                   "others": [{"playerId": two, "authority": f"session:{tokens[two]}"}],
                   "changes": [{"spend": {"playerId": one, "currencies": gold(1)}}]}
        told(self.refused("SESSION_LOST", self.client.call, "TransactionService/ExecuteTransaction", execute), one,
             "others[0].authority")
        error = self.refused("INSUFFICIENT_FUNDS", self.client.call, "TransactionService/ExecuteTransaction", execute | {
            "opId": uuid7(), "others": [{"playerId": two, "authority": f"session:{lost}"}], "checks": [
                {"playerId": one, "balance": {"currency": "gold", "amount": 1}}, {"playerId": two, "balance": {"currency": "gold", "amount": 1}},
                {"playerId": two, "balance": {"currency": "gold", "amount": 1000}}]})
        self.assertEqual((error.field, error.detail["about"]["playerId"], error.detail["entity"]),
                         ("checks[2]", two, f"player:{one}"))

    def test_a_sealed_swap_never_happens(self):
        one, two, sword, _ = self.pair()
        request = self.swap(one, two, {"itemUids": [sword]})
        self.assertEqual(self.operation(one, request["opId"], seal=True)["state"],
                         "aborted")
        self.refused("OPERATION_ABORTED", self.client.call, "TransactionService/Swap", request)
        self.assertEqual(self.items(one), {sword})

    def test_people_can_swap_too(self):
        one, two, sword, hat = self.pair()
        shown = subprocess.run(
            [BIN / "holdfast", "swap", uuid7(), one, f"gold=5,{sword}", two, hat, "--endpoint",
             self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertIn(two, shown.stdout)
        self.at_rest(one, two)
        self.assertEqual((self.items(one), self.items(two)), ({hat}, {sword}))


class ReadsAmongTrades(Trades):
    """Six players, two writers that never pause, readers with two seconds of time."""

    READS = 60

    def trade(self, readers):
        """Until there were so many reads; (writers, readers)."""
        names = trading.players(self.client)
        writers = [trading.Writer(self.client, names, seed) for seed in range(2)]
        reading = readers(names)
        threads = writers + reading
        for thread in threads:
            thread.start()
        wait_for("reads among trades", lambda: any(not t.is_alive() for t in threads) or (
            sum(r.steps for r in reading) >= self.READS and all(w.steps > 50 for w in writers)))
        trading.stop(threads)
        self.at_rest(*names)
        total = sum(p["balances"]["gold"] for p in self.read(*names))
        self.assertEqual(total, trading.GOLD * len(names))
        return writers, reading

    def ended(self, threads, code):
        return sum(t.ended.get(code, 0) for t in threads)

    def assert_answered(self, reading):
        steps = sum(r.steps for r in reading)
        self.assertLessEqual(self.ended(reading, "TXN_CONFLICT"), steps / 100,
                             f"of {steps} reads: {[r.ended for r in reading]}")
        self.assertEqual(self.ended(reading, "OK") + self.ended(reading, "TXN_CONFLICT"), steps)

    def assert_writers_go_on(self, writers):
        """They meet each other's intents, nothing else; and they are not shut out."""
        for writer in writers:
            self.assertEqual(writer.ended.get("OK", 0) + writer.ended.get("TXN_CONFLICT", 0),
                             writer.steps, writer.ended)
            self.assertGreater(writer.share("OK"), 0.2, writer.ended)

    def test_all_players_are_read_among_steady_trades(self):
        writers, reading = self.trade(
            lambda names: [trading.Reader(self.client, names, seed) for seed in (100, 101)])
        self.assert_answered(reading)
        self.assert_writers_go_on(writers)

    def test_some_players_are_read_among_steady_trades(self):
        writers, reading = self.trade(lambda names: [
            trading.Reader(self.client, names, seed, some=True) for seed in range(100, 104)])
        self.assert_answered(reading)
        self.assert_writers_go_on(writers)

    def test_the_time_that_writes_wait_for_reads_is_bounded_and_told(self):
        held = lambda: sum(n.metrics()["holdfast_node_read_held_seconds_total"]
                           for n in self.cluster.nodes)
        before, begun = held(), time.monotonic()
        self.trade(lambda names: [trading.Reader(self.client, names, s) for s in range(100, 103)])
        elapsed_ms = (time.monotonic() - begun) * 1000
        players, saved_up_ms = 6, 3000 / 20 + 200
        share = 1 / 6  # A twentieth, if none lasts for its whole 200 ms, as on a busy machine.
        held_ms = (held() - before) * 1000
        self.assertLess(held_ms, players * (elapsed_ms * share + saved_up_ms))
        wait_for("nothing to wait", lambda: all(
            n.metrics()[f"holdfast_node_{what}_waiting"] == 0
            for n in self.cluster.nodes for what in ("reads", "writes")))


class Trader(Stepper):
    """Swaps gold between random players, as a careful caller: what is unknown is sealed."""

    def __init__(self, test, players, seed):
        super().__init__()
        self.test, self.client, self.players = test, test.client, players
        self.random = random.Random(seed)
        self.done, self.aborted, self.conflicts = 0, 0, 0

    def step(self):
        one, two = self.random.sample(self.players, 2)
        request = self.test.swap(one, two, {"currencies": gold(self.random.randint(1, 3))})
        try:
            self.client.call("TransactionService/Swap", request, deadline_ms=1500)
            self.done += 1
        except (RpcError, Unanswered) as error:
            code = error.code if isinstance(error, RpcError) else "OUTCOME_UNKNOWN"
            if code == "TXN_CONFLICT":
                self.conflicts += 1
                time.sleep(error.retry_after_ms / 1000)
            elif code != "INSUFFICIENT_FUNDS":
                state = self.test.operation(one, request["opId"], seal=True)["state"]
                self.done += state == "committed"
                self.aborted += state == "aborted"


class TransactionFailure(Trades):
    """SIGKILL of owners of both sides while players trade: the gold adds up, no player stays held."""

    @classmethod
    def plan(cls):
        return Cluster(options={"node": {"workers": 2}})

    def setUp(self):
        self.players = [f"trader-{uuid7()}" for _ in range(8)]
        for player in self.players:
            self.client.grant(player, 1000)
        self.traders = [Trader(self, self.players, seed) for seed in range(4)]

    def progress(self, count=12):
        wanted = [t.done + t.aborted + count // len(self.traders) for t in self.traders]
        wait_for("players to trade", lambda: any(t.failure for t in self.traders) or all(
            t.done + t.aborted >= w for t, w in zip(self.traders, wanted)))

    def test_reads_while_owners_die_are_answered_in_time(self):
        """An answer, TXN_CONFLICT, or that the shard is away: by the deadline, whatever dies."""
        reading = [trading.Reader(self.client, self.players, seed, some=True)
                   for seed in range(100, 102)]
        for thread in self.traders + reading:
            thread.start()
        for victim in self.cluster.nodes:
            self.progress()
            asked = [r.steps for r in reading]
            victim.signal(signal.SIGSTOP)  # Open intents of its shards stay open.
            wait_for("reads to end meanwhile", lambda: any(r.failure for r in reading) or all(
                r.steps > a + 1 for r, a in zip(reading, asked)))
            victim.kill()
            self.progress()
            victim.start()
            wait_for("the node to be back", victim.ready)
        for trader in self.traders:
            trader.ending = True
        for trader in self.traders:
            trader.join(60)
            self.assertIsNone(trader.failure)
        answered = sum(r.ended.get("OK", 0) for r in reading)
        wait_for("reads to be answered", lambda: any(r.failure for r in reading) or sum(
            r.ended.get("OK", 0) for r in reading) > answered + 10)
        trading.stop(reading)
        known = {"OK", "TXN_CONFLICT", "UNAVAILABLE", "DEADLINE_EXCEEDED"}
        for reader in reading:
            self.assertEqual(set(reader.ended) - known, set(), reader.ended)
        print(f"reads: {[r.ended for r in reading]}")
        self.cluster.wait_converged()

    def total(self, profiles):
        return sum(p["balances"]["gold"] for p in profiles)

    def test_killed_owners_leave_no_trade_half_done(self):
        for trader in self.traders:
            trader.start()
        reads = 0
        for turn in range(3):
            self.progress()
            victim = self.cluster.nodes[turn % 3]
            if turn % 2:
                victim.signal(signal.SIGSTOP)
                time.sleep(0.3)
            victim.kill()
            self.progress()
            victim.start()
            wait_for("the node to be back", victim.ready)
            for _ in range(20):
                profiles = self.read(*self.players)
                if profiles is not None:  # They may trade too much to be read at once.
                    self.assertEqual(self.total(profiles), 8000)  # Never one side of a trade alone.
                    reads += 1
        for trader in self.traders:
            trader.ending = True
        for trader in self.traders:
            trader.join(60)
            self.assertIsNone(trader.failure)
        self.at_rest(*self.players)
        self.assertEqual(self.total(self.read(*self.players)), 8000)
        for player in self.players:  # No player is held for ever.
            self.client.grant(player, 1)
        print(f"{sum(t.done for t in self.traders)} trades, {sum(t.aborted for t in self.traders)} "
              f"sealed as never, {sum(t.conflicts for t in self.traders)} conflicts, {reads} reads")
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
