"""A receipt pays one player, once, in the whole cluster, whatever dies or stays unanswered."""

import json
import random
import signal
import socket
import subprocess
import threading
import time
import unittest

from client import PAYMENTS, RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for


def receipt():
    return f"receipt:{uuid7()}"


def purchase(player, op_id, amount=50):
    return {"playerId": player, "opId": op_id, "authority": PAYMENTS,
            "currencies": {"gold": amount},
            "items": [{"kind": "hat"}], "reason": "purchase"}


class Receipts(ClusterTest):
    def player(self):
        return f"buyer-{uuid7()}"

    def bound_to(self, op_id):
        """Whose the receipt is; None: no player's yet."""
        operation = self.client.settle("OperationService/GetOperation", {
            "entity": op_id, "opId": op_id})["operation"]
        if operation["state"] == "bound":
            return operation["boundPlayerId"]
        self.assertEqual(operation["state"], "unknown")
        return None

    def state(self, player, op_id):
        return self.client.settle("OperationService/GetOperation", {
            "entity": f"player:{player}", "opId": op_id})["operation"]["state"].upper()

    def seal(self, entity, op_id):
        return self.client.settle("OperationService/ResolveOperation", {
            "entity": entity, "opId": op_id, "seal": True})["operation"]["state"].upper()

    def paid(self, op_id, *players):
        """To whom, by their ledgers and not by what the service says of the operation."""
        return [p for p in players for e in self.client.entries(p) if e["opId"] == op_id]


class OnePlayer(Receipts):
    def test_a_replay_for_another_player_is_refused_however_it_is_routed(self):
        for _ in range(12):  # Any of them may live on any shard.
            op_id, mine, theirs = receipt(), self.player(), self.player()
            first = self.client.call("LedgerService/Grant", purchase(mine, op_id))
            again = self.client.call("LedgerService/Grant", purchase(mine, op_id))
            self.assertTrue(again["write"]["duplicate"])
            self.assertEqual(again["itemUids"], first["itemUids"])
            for attempt in (0, 3):
                error = self.refused("OPERATION_ID_MISMATCH", self.client.call,
                                     "LedgerService/Grant",
                                     purchase(theirs, op_id) | {"attempt": attempt})
                self.assertTrue(error.final)
            mail, = self.client.call("MailboxService/DeliverMail", {
                "toPlayerIds": [theirs], "opId": op_id, "authority": PAYMENTS,
                "items": [{"kind": "hat"}], "attempt": 5})["results"]
            self.assertEqual(mail["error"]["code"], "operation_id_mismatch")
            self.assertEqual(self.paid(op_id, mine, theirs), [mine])
            self.assertEqual(self.bound_to(op_id), mine)
        shown = subprocess.run([BIN / "holdfast", "op", "get", op_id, op_id, "--endpoint",
                                self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertEqual(shown.stdout.splitlines()[0], f"BOUND {mine}")

    def test_a_batch_pays_each_receipt_once(self):
        players, op_ids = [self.player() for _ in range(6)], [receipt() for _ in range(3)]
        grants = [purchase(player, op_ids[i % 3]) for i, player in enumerate(players)]
        results = self.client.call("LedgerService/BatchGrant", {"requests": grants})["results"]
        self.assertEqual(sum("response" in r for r in results), 3, results)
        for op_id in op_ids:
            self.assertEqual(len(self.paid(op_id, *players)), 1)

    def test_the_answer_is_lost_and_the_retry_gets_it(self):
        op_id, mine, theirs = receipt(), self.player(), self.player()
        body = json.dumps(purchase(mine, op_id)).encode()
        with socket.create_connection(("127.0.0.1", self.cluster.port)) as raw:
            raw.sendall(b"POST /holdfast.v1.LedgerService/Grant HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                        + body)
            wait_for("the purchase to be paid", lambda: self.client.balance(mine) == 50)
        self.refused("OPERATION_ID_MISMATCH", self.client.call, "LedgerService/Grant",
                     purchase(theirs, op_id))
        again = self.client.call("LedgerService/Grant", purchase(mine, op_id))
        self.assertTrue(again["write"]["duplicate"])
        self.assertEqual(self.seal(f"player:{mine}", op_id), "COMMITTED")
        self.assertEqual(self.paid(op_id, mine, theirs), [mine])

    def test_what_is_sealed_first_pays_somebody_else_or_nobody(self):
        op_id, mine, theirs = receipt(), self.player(), self.player()
        self.assertEqual(self.seal(f"player:{mine}", op_id), "ABORTED")
        self.refused("OPERATION_ABORTED", self.client.call, "LedgerService/Grant",
                     purchase(mine, op_id))
        self.client.call("LedgerService/Grant", purchase(theirs, op_id))
        self.assertEqual(self.paid(op_id, mine, theirs), [theirs])
        self.assertEqual(self.seal(op_id, op_id), "BOUND")
        void = receipt()
        self.assertEqual(self.seal(void, void), "ABORTED")
        self.refused("OPERATION_ABORTED", self.client.call, "LedgerService/Grant",
                     purchase(mine, void))
        self.assertEqual(self.paid(void, mine, theirs), [])

    def test_other_calls_want_other_ids(self):
        mine = self.player()
        error = self.refused("INVALID_ARGUMENT", self.client.call, "LedgerService/Spend", {
            "playerId": mine, "opId": receipt(), "authority": "unheld",
            "currencies": {"gold": 1}})
        self.assertEqual(error.field, "op_id")


class Webhook(threading.Thread):
    """Delivers purchases again and again, each for two players; gives up on none."""

    def __init__(self, test, seed):
        super().__init__(daemon=True)
        self.test, self.client, self.random = test, test.client, random.Random(seed)
        self.orders, self.ending, self.failure = [], False, None

    def deliver(self, op_id, player):
        """True: paid. False: refused for good."""
        end = time.monotonic() + 90
        while True:
            try:
                self.client.call("LedgerService/Grant", purchase(player, op_id), deadline_ms=1500)
                return True
            except Unanswered:
                pass
            except RpcError as error:
                if error.final:
                    assert error.code == "OPERATION_ID_MISMATCH", error
                    return False
                assert error.code in ("UNAVAILABLE", "THROTTLED", "DEADLINE_EXCEEDED",
                                      "OUTCOME_UNKNOWN"), error
            assert time.monotonic() < end, "no outcome"
            time.sleep(0.02)

    def step(self):
        op_id = receipt()
        players = self.random.sample(self.test.players, 2)
        outcomes = [None, None]
        threads = []
        for i, player in enumerate(players):
            def one(i=i, player=player):
                outcomes[i] = self.deliver(op_id, player)
            threads.append(threading.Thread(target=one, daemon=True))
        self.random.shuffle(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert sorted(map(str, outcomes)) == ["False", "True"], outcomes
        self.orders.append((op_id, players[outcomes.index(True)]))

    def run(self):
        while not self.ending:
            try:
                self.step()
            except BaseException as error:
                self.failure = error
                raise


class ReceiptFailure(Receipts):
    """SIGKILL of owners while a webhook delivers each receipt for two players at once."""

    @classmethod
    def plan(cls):
        return Cluster(options={"node": {"workers": 2}})

    def test_killed_owners_pay_each_receipt_once(self):
        self.players = [self.player() for _ in range(10)]
        hooks = [Webhook(self, seed) for seed in range(4)]
        for hook in hooks:
            hook.start()

        def progress(count=5):
            wanted = [len(h.orders) + count for h in hooks]
            wait_for("purchases to go on", lambda: any(h.failure for h in hooks) or all(
                len(h.orders) >= w for h, w in zip(hooks, wanted)))

        for turn in range(3):
            progress()
            victim = self.cluster.nodes[turn % 3]
            if turn % 2:
                victim.signal(signal.SIGSTOP)  # What is sent to it stays unanswered...
                time.sleep(0.3)
            victim.kill()                      # ... and what it had sent, too.
            progress()
            victim.start()
            wait_for("the node to be back", victim.ready)
        progress()
        for hook in hooks:
            hook.ending = True
        for hook in hooks:
            hook.join(120)
        self.audit(hooks)
        self.cluster.wait_converged()

    def audit(self, hooks):
        """By the ledgers: each receipt in one, that of whom it was told to be paid to."""
        found = {}
        for player in self.players:
            for entry in self.client.entries(player):
                self.assertNotIn(entry["opId"], found)
                found[entry["opId"]] = player
        orders = dict(order for hook in hooks for order in hook.orders)
        for hook in hooks:
            self.assertIsNone(hook.failure)
        self.assertEqual(found, orders)
        for op_id, player in random.Random(1).sample(sorted(orders.items()), 10):
            self.assertEqual(self.bound_to(op_id), player)
        print(f"{len(orders)} receipts, each delivered for two players")


if __name__ == "__main__":
    unittest.main(verbosity=2)
