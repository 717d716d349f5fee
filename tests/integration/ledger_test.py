"""The ledger's own operations on a real cluster: items spent, operations reversed."""

import subprocess
import tempfile
import unittest

from client import PAYMENTS, UNHELD, grant_of, session, uuid7
from cluster import BIN, ClusterTest, wait_for


class Ledger(ClusterTest):
    def setUp(self):
        self.player = f"player-{uuid7()}"

    def write(self, method, op_id=None, authority=UNHELD, **more):
        return self.client.call(method, {"playerId": self.player, "opId": op_id or uuid7(),
                                         "authority": authority} | more)

    def make(self, count=1):
        return self.write("LedgerService/Grant", items=[{"kind": "orb"}] * count)["itemUids"]

    def spend(self, *uids, gold=0, **more):
        currencies = {"gold": gold} if gold else {}
        return self.write("LedgerService/Spend", itemUids=list(uids), currencies=currencies, **more)

    def reverse(self, target, **more):
        return self.write("LedgerService/ReverseEntry", targetOpId=target,
                          **({"reason": "support"} | more))

    def held(self):
        page = self.client.call("InventoryService/ListItems", {"playerId": self.player})
        return [item["uid"] for item in page.get("items", [])]

    def test_spent_items_are_gone_once_and_recorded(self):
        first, second = self.make(2)
        self.client.grant(self.player, 10)
        op_id = uuid7()
        answer = self.spend(first, gold=4, op_id=op_id, reason="crafting")
        self.assertEqual(answer["ledgerSeq"], 3)
        self.assertEqual(answer["items"][0]["uid"], first)
        self.assertTrue(self.spend(first, gold=4, op_id=op_id,
                                     reason="crafting")["write"]["duplicate"])
        self.assertEqual(self.held(), [second])
        self.assertEqual(self.client.balance(self.player), 6)
        entry = self.client.entries(self.player)[-1]
        self.assertEqual((entry["kind"], entry["itemsTaken"], entry["reason"]),
                         ("spend", True, "crafting"))
        error = self.refused("ITEM_NOT_HELD", self.spend, first, second)
        self.assertEqual((error.connect_code, error.value), ("failed_precondition", first))
        self.assertEqual(self.held(), [second])

    def test_only_the_holder_of_the_session_spends(self):
        uid, = self.make()
        server = self.client.register("server")
        token = self.client.start(self.player, server)["token"]
        self.refused("SESSION_LOCKED", self.spend, uid)
        self.refused("PERMISSION_DENIED", self.spend, uid, authority=PAYMENTS)
        self.refused("SESSION_LOST", self.spend, uid, authority=session(f"{server}-77"))
        self.spend(uid, authority=session(token))
        self.assertEqual(self.held(), [])

    def test_a_reversal_undoes_a_purchase_once(self):
        purchase = f"receipt:{uuid7()}"
        self.client.call("LedgerService/Grant", grant_of(self.player, 30, purchase) | {
            "items": [{"kind": "sword"}]})
        undo = uuid7()
        answer = self.reverse(purchase, authority=PAYMENTS, reason="chargeback", op_id=undo)
        self.assertEqual((answer["ledgerSeq"], answer["reversedSeq"]), (2, 1))
        self.assertTrue(self.reverse(purchase, authority=PAYMENTS, reason="chargeback",
                                     op_id=undo)["write"]["duplicate"])
        self.assertEqual((self.client.balance(self.player), self.held()), (0, []))
        error = self.refused("ALREADY_REVERSED", self.reverse, purchase)
        self.assertEqual((error.connect_code, error.value), ("failed_precondition", "2"))
        entries = self.client.entries(self.player)
        self.assertEqual([e["kind"] for e in entries],
                         ["grant", "reversal"])
        self.assertEqual(entries[1]["refersTo"], 1)
        self.refused("NOT_REVERSIBLE", self.reverse, undo)

    def test_what_was_spent_comes_back(self):
        uid, = self.make()
        op_id = uuid7()
        self.spend(uid, op_id=op_id)
        self.reverse(op_id)
        self.assertEqual(self.held(), [uid])

    def test_a_reversal_does_not_overdraw(self):
        op_id = uuid7()
        self.client.grant(self.player, 30, op_id)
        self.write("LedgerService/Spend", currencies={"gold": 1})
        error = self.refused("INSUFFICIENT_FUNDS", self.reverse, op_id)
        self.assertTrue(error.final)
        self.assertEqual(self.client.balance(self.player), 29)

    def test_bad_requests_name_what_is_wrong(self):
        uid, = self.make()
        for uids, field in (([], "currencies"), (["x"], "item_uids[0]"), ([uid, uid],
                            "item_uids[1]"), ([uid.upper() + "0"], "item_uids[0]"),
                            ([f"{n:032x}" for n in range(65)], "item_uids")):
            with self.subTest(uids=uids):
                error = self.refused("INVALID_ARGUMENT", self.spend, *uids)
                self.assertEqual(error.field, field)
                self.assertFalse(error.final)
        for amount in ("0", "-1", str(2**53), str(-2**63)):
            with self.subTest(amount=amount):
                error = self.refused("INVALID_ARGUMENT", self.write, "LedgerService/Spend",
                                     currencies={"gold": amount})
                self.assertEqual(error.field, 'currencies["gold"].amount')
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.write, "LedgerService/Spend",
                                      currencies={"doubloons": 1}).field,
                         'currencies["doubloons"].currency')
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.reverse, "x").field, "target_op_id")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.reverse, uuid7(), reason="").field,
                         "reason")
        self.assertEqual(self.refused("NOT_FOUND", self.reverse, uuid7()).field, "target_op_id")
        self.assertEqual(self.held(), [uid])

    def reserve(self, gold, op_id, ms=60000):
        return self.write("LedgerService/ReserveCurrencies", op_id=op_id, expiresInMs=str(ms),
                          currencies={"gold": gold})

    def reserved(self):
        balances = self.client.call("LedgerService/GetBalances", {"playerId": self.player})
        return balances.get("reserved", {}).get("gold", 0)

    def test_a_reservation_is_posted_once_to_a_player_of_any_shard(self):
        self.client.grant(self.player, 100)
        for n in range(6):
            bid, taker = f"claim:bid-{n}", f"taker-{n}-{uuid7()}"
            self.reserve(10, bid)
            self.assertEqual(self.reserved(), 10)
            answer = self.write("LedgerService/PostReservation", reserveOpId=bid, toPlayerId=taker)
            self.assertEqual(len(answer["mailId"]), 32)
            again, attempts = uuid7(), iter(range(1000))

            def settled():
                error = self.refused("RESERVATION_CLOSED", self.write, "LedgerService/PostReservation",
                                     op_id=again, attempt=next(attempts), reserveOpId=bid)
                self.assertEqual(error.value, str(answer["ledgerSeq"]))
                self.assertIn(error.action, ("RAISE_ATTEMPT", "NEVER"))
                return error.action == "NEVER"
            wait_for("the shard has logged that it arrived", settled)
            mails = self.client.call("MailboxService/ListMail", {"playerId": taker})["mails"]
            self.assertEqual(mails[0]["currencies"], {"gold": 10})
        self.assertEqual((self.client.balance(self.player), self.reserved()), (40, 0))

    def test_a_reservation_that_is_not_posted_comes_back_by_itself(self):
        self.client.grant(self.player, 100)
        self.reserve(70, "claim:bid", ms=1000)
        told = self.client.call("LedgerService/GetBalances", {"playerId": self.player})
        self.assertEqual((told["balances"], told["reserved"]), ({"gold": 30}, {"gold": 70}))
        read = self.client.call("ProfileService/GetProfile", {"playerId": self.player})["profile"]
        self.assertEqual((read["balances"], read["reserved"]), ({"gold": 30}, {"gold": 70}))
        wait_for("the reservation comes back",
                 lambda: self.client.balance(self.player) == 100)
        self.refused("RESERVATION_EXPIRED", self.write, "LedgerService/VoidReservation",
                     reserveOpId="claim:bid")
        self.assertEqual([e["kind"] for e in self.client.entries(self.player)],
                         ["grant", "reserve", "expiry"])

    def holdfast(self, *words):
        ran = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                             capture_output=True, text=True, check=True)
        return ran.stdout

    def test_people_trace_items_and_change_ledgers(self):
        uid, = self.make()
        takers = [f"taker-{n}-{uuid7()}" for n in range(5)]
        holder = self.player
        for taker in takers:
            sent = self.client.call("InventoryService/TransferItems", {
                "playerId": holder, "toPlayerId": taker, "opId": uuid7(), "authority": UNHELD,
                "itemUids": [uid]})
            self.client.call("MailboxService/ClaimMail", {
                "playerId": taker, "opId": uuid7(), "authority": UNHELD,
                "mailIds": [sent["mailId"]]})
            holder = taker
        self.holdfast("item", "spend", holder, uid, "--reason", "decay", "--op-id", "claim:eat")
        steps, cursor = [], ""
        while True:
            page = self.client.call("InventoryService/TraceItem",
                                    {"itemUid": uid, "pageSize": 3, "cursor": cursor})
            steps += page.get("steps", [])
            cursor = page.get("nextCursor", "")
            if not cursor:
                break
        self.assertEqual([step["step"] for step in steps], list(range(1, 13)))
        self.assertEqual([step["playerId"] for step in steps if step.get("held")],
                         [self.player, *takers])
        self.assertEqual((steps[-1]["opId"], steps[-1]["reason"]), ("claim:eat", "decay"))
        told = self.holdfast("item", "trace", uid)
        for taker in takers:
            self.assertIn(taker, told)
        self.assertEqual(self.refused("NOT_FOUND", self.client.call, "InventoryService/TraceItem",
                                      {"itemUid": "0" * 28 + "ffff"}).field, "item_uid")

        self.client.grant(self.player, 100)
        self.holdfast("ledger", "reserve", self.player, "gold=30", "--op-id", "claim:bid")
        self.holdfast("ledger", "post", self.player, "claim:bid", "gold=10", "--op-id", "claim:won")
        self.holdfast("ledger", "reserve", self.player, "gold=5", "--op-id", "claim:bid-2")
        self.holdfast("ledger", "void", self.player, "claim:bid-2")
        self.assertEqual(self.client.balance(self.player), 90)
        self.assertIn("100", self.holdfast("ledger", "reverse", self.player, "claim:won",
                                           "--reason", "support"))
        for player in [self.player, holder]:
            export = self.holdfast("ledger", "export", "--player", player)
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
                file.write(export)
                file.flush()
                self.holdfast("ledger", "verify", file.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
