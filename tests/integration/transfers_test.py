"""Goods between players: in one place at any time, whatever dies or stays unanswered meanwhile."""

import json
import signal
import socket
import subprocess
import time
import unittest

from client import PAYMENTS, RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from load import Stepper

UNHELD = {"authority": "unheld"}


class Goods(ClusterTest):
    def mint(self, player):
        """A sword's UID; its first four digits say the player's shard."""
        return self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "items": [{"kind": "sword"}]} | UNHELD
        )["itemUids"][0]

    def pair(self):
        """Two new players on different shards, the first with a sword: (giver, taker, uid)."""
        giver = f"giver-{uuid7()}"
        uid = self.mint(giver)
        while True:
            taker = f"taker-{uuid7()}"
            if self.mint(taker)[:4] != uid[:4]:
                return giver, taker, uid

    def give(self, giver, taker, uid, op_id=None):
        return {"playerId": giver, "toPlayerId": taker, "itemUids": [uid],
                "opId": op_id or uuid7()} | UNHELD

    def items(self, player):
        return {i["uid"] for i in self.client.settle(
            "InventoryService/ListItems", {"playerId": player}).get("items", [])}

    def mails(self, player):
        return self.client.settle("MailboxService/ListMail", {"playerId": player}).get("mails", [])

    def mailed(self, player):
        return {i["uid"] for m in self.mails(player) for i in m.get("items", [])}

    def holders(self, uid, *players):
        """Where the item is: 'inventory' and 'mailbox' places, for all of these players."""
        return [(player, place) for player in players
                for place, held in (("inventory", self.items(player)),
                                    ("mailbox", self.mailed(player))) if uid in held]

    def operation(self, player, op_id):
        return self.client.call("OperationService/GetOperation", {
            "entity": f"player:{player}", "opId": op_id})["operation"]

    def seal(self, player, op_id):
        return self.client.settle("OperationService/ResolveOperation", {
            "entity": f"player:{player}", "opId": op_id, "seal": True})["operation"]

    def in_flight(self):
        return sum(int(s.get("transfersOpen", 0)) for s in self.client.shards())


class Transfers(Goods):
    def test_an_item_goes_to_the_mailbox_of_a_player_of_another_shard_and_is_claimed(self):
        giver, taker, uid = self.pair()
        request = self.give(giver, taker, uid)
        answer = self.client.call("InventoryService/TransferItems", request)
        self.assertEqual(answer["items"][0]["uid"], uid)
        self.assertEqual(self.holders(uid, giver, taker), [(taker, "mailbox")])
        again = self.client.call("InventoryService/TransferItems", request)
        self.assertTrue(again["write"]["duplicate"])
        self.assertEqual(again["mailId"], answer["mailId"])
        self.assertEqual(self.operation(giver, request["opId"])["state"],
                         "committed")
        claim = {"playerId": taker, "opId": uuid7(), "mailIds": [answer["mailId"]]} | UNHELD
        self.client.call("MailboxService/ClaimMail", claim)
        self.assertEqual(self.holders(uid, giver, taker), [(taker, "inventory")])
        claim["opId"] = uuid7()
        self.refused("NOT_FOUND", self.client.call, "MailboxService/ClaimMail", claim)
        kinds = [e["kind"] for e in self.client.entries(giver)]
        self.assertEqual(kinds, ["grant", "transfer"])

    def test_currencies_and_mail(self):
        giver, taker, _ = self.pair()
        self.client.grant(giver, 100)
        paid = self.client.call("LedgerService/TransferCurrencies", {
            "playerId": giver, "toPlayerId": taker, "opId": uuid7(),
            "currencies": {"gold": 30}} | UNHELD)
        self.assertEqual(paid["balances"], {"gold": 70})
        sent = self.client.call("MailboxService/SendMail", {
            "playerId": giver, "toPlayerId": taker, "opId": uuid7(), "text": "with love",
            "currencies": {"gold": 5}} | UNHELD)
        self.client.call("MailboxService/DeliverMail", {
            "toPlayerIds": [taker], "opId": uuid7(), "authority": "system:mail",
            "currencies": {"gems": 1}, "items": [{"kind": "hat"}]})
        mails = self.mails(taker)
        self.assertEqual([m.get("fromPlayerId", "") for m in mails], [giver, giver, ""])
        self.assertEqual(mails[1]["text"], "with love")
        self.assertEqual(mails[1]["mailId"], sent["mailId"])
        listed = subprocess.run([BIN / "holdfast", "mailbox", "list", taker, "--endpoint",
                                 self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertIn("with love", listed.stdout)
        for mail in mails:
            subprocess.run([BIN / "holdfast", "mailbox", "claim", taker, mail["mailId"],
                            "--endpoint", self.cluster.endpoint], check=True,
                           stdout=subprocess.DEVNULL)
        self.assertEqual(self.client.balance(taker), 35)
        self.assertEqual(self.client.balance(taker, "gems"), 1)
        self.assertEqual(self.mails(taker), [])

    def test_new_goods_are_delivered_to_many_players_once_each(self):
        players = [f"reader-{n}-{uuid7()}" for n in range(60)]  # Of every shard.
        request = {"toPlayerIds": players, "opId": uuid7(), "authority": "system:mail",
                   "currencies": {"gems": 1}, "items": [{"kind": "crate", "attributes": {"tier": 2}}],
                   "text": "gl", "reason": "season"}
        first = self.client.call("MailboxService/DeliverMail", request)
        self.assertNotIn("failed", first)
        again = self.client.call("MailboxService/DeliverMail", request)
        for player, one, two in zip(players, first["results"], again["results"], strict=True):
            self.assertTrue(two["response"]["write"].pop("duplicate"))
            self.assertEqual(two["response"]["mailId"], one["response"]["mailId"])
            operation = self.operation(player, request["opId"])
            self.assertEqual((operation["state"], operation["method"]),
                             ("committed", "holdfast.v1.MailboxService/DeliverMail"))
            self.assertEqual(operation["deliverMail"]["items"], one["response"]["items"])
        done = subprocess.run(
            [BIN / "holdfast", "mailbox", "deliver", "gems=2,crate", players[0], players[1], "--op-id",
             request["opId"], "--endpoint", self.cluster.endpoint], capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("the op_id was used before for another request"), 2)
        done = subprocess.run([BIN / "holdfast", "mailbox", "deliver", "gems=-2", players[2], "--endpoint",
                               self.cluster.endpoint], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertNotIn("repeat", done.stderr, "the same request is refused again")
        subprocess.run([BIN / "holdfast", "mailbox", "deliver", "gems=2,crate,hat", players[2], "--endpoint",
                        self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertEqual([len(m["items"]) for m in self.mails(players[2])], [1, 2])
        mail, = self.mails(players[0])
        self.assertEqual((mail["text"], mail["currencies"], len(mail["items"])), ("gl", {"gems": 1}, 1))
        self.assertEqual(self.client.balance(players[0], "gems"), 0)
        new = f"reader-new-{uuid7()}"
        mixed = self.client.call("MailboxService/DeliverMail", request | {
            "toPlayerIds": [players[0], new], "text": "another text"})
        self.assertEqual(mixed["failed"], 1)
        error = mixed["results"][0]["error"]
        self.assertEqual((error["code"], error["entity"], error["opId"]),
                         ("operation_id_mismatch", f"player:{players[0]}", request["opId"]))
        self.assertIn("response", mixed["results"][1])
        self.assertEqual(len(self.mails(players[0])), 1)

    def test_bad_deliveries_deliver_nothing(self):
        _, taker, uid = self.pair()
        deliver = lambda **more: self.client.call("MailboxService/DeliverMail", {
            "toPlayerIds": [taker], "opId": uuid7(), "authority": "system:mail", "text": "x"} | more)
        for wrong, field, limit in (({"toPlayerIds": []}, "to_player_ids", "1 to 1000"),
                                    ({"toPlayerIds": [taker] * 2}, "to_player_ids[1]", "each recipient once"),
                                    ({"toPlayerIds": [f"{n}" for n in range(1001)]}, "to_player_ids",
                                     "1 to 1000"),
                                    ({"text": "x" * 9000}, "", "at most 8192 bytes")):
            error = self.refused("INVALID_ARGUMENT", deliver, **wrong)
            self.assertEqual((error.field, error.limit), (field, limit))
        for wrong, field in (({"authority": ""}, "authority"), ({"opId": ""}, "op_id"),
                             ({"text": ""}, "text"), ({"items": [{"kind": ""}]}, "items[0].kind"),
                             ({"toPlayerIds": [""]}, "to_player_ids")):
            answer = deliver(**wrong)
            self.assertEqual((answer["failed"], answer["results"][0]["error"]["field"]), (1, field))
        answer = deliver(authority="unheld")
        self.assertEqual(answer["results"][0]["error"]["code"], "permission_denied")
        self.assertEqual(self.mails(taker), [])
        send = {"playerId": taker, "opId": uuid7(), "text": "x", "itemUids": [uid]}
        error = self.refused("INVALID_ARGUMENT", self.client.call, "MailboxService/SendMail",
                             send | {"authority": "system:mail"})
        self.assertEqual(error.field, "authority")
        self.assertIn("MailboxService.DeliverMail", error.limit)
        error = self.refused("INVALID_ARGUMENT", self.client.call, "MailboxService/SendMail",
                             send | {"toPlayerId": "b", "mint": [{"kind": "hat"}]} | UNHELD)
        self.assertIn("MailboxService.DeliverMail", error.limit)

    def test_bad_transfers_move_nothing(self):
        giver, taker, uid = self.pair()
        give = lambda **more: self.client.call(
            "InventoryService/TransferItems", self.give(giver, taker, uid) | more)
        self.assertEqual(self.refused("INVALID_ARGUMENT", give, toPlayerId=giver).field,
                         "to_player_id")
        self.assertEqual(self.refused("INVALID_ARGUMENT", give, itemUids=[]).field, "item_uids")
        self.assertEqual(self.refused("INVALID_ARGUMENT", give, itemUids=[uid, uid]).field,
                         "item_uids[1]")
        self.refused("ITEM_NOT_HELD", give, itemUids=["0" * 32])
        self.refused("PERMISSION_DENIED", give, authority=PAYMENTS)
        self.refused("INSUFFICIENT_FUNDS", self.client.call, "LedgerService/TransferCurrencies", {
            "playerId": giver, "toPlayerId": taker, "opId": uuid7(),
            "currencies": {"gold": 1}} | UNHELD)
        self.assertEqual(self.holders(uid, giver, taker), [(giver, "inventory")])

    def test_the_incident_ends_with_one_holder(self):
        """
        Five steps, as they happened: a send commits, but its answer is dropped; the caller times
        out; it asks what became of the send; it decides about a refund; somebody looks who holds
        the item. Instead of a read that may be old, the caller seals, and believes the answer.
        """
        giver, taker, uid = self.pair()
        request = self.give(giver, taker, uid)
        body = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", self.cluster.port)) as raw:
            raw.sendall(b"POST /holdfast.v1.InventoryService/TransferItems HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                        + body)
            wait_for("the send to commit", lambda: uid not in self.items(giver))
        sealed = self.seal(giver, request["opId"])
        self.assertIn(sealed["state"], ("committed", "aborted"))
        expected = {"committed": [(taker, "mailbox")],
                    "aborted": [(giver, "inventory")]}[sealed["state"]]
        self.assertEqual(self.holders(uid, giver, taker), expected)
        # The packet comes once more, much later, with whatever attempt.
        for attempt in (0, 7):
            try:
                late = self.client.call("InventoryService/TransferItems", request | {"attempt": attempt})
                self.assertTrue(late["write"]["duplicate"])
            except RpcError as error:
                self.assertEqual(error.code, "OPERATION_ABORTED")
        self.assertEqual(self.holders(uid, giver, taker), expected)

    def test_a_seal_before_the_send_arrives_keeps_it_from_ever_happening(self):
        giver, taker, uid = self.pair()
        request = self.give(giver, taker, uid)
        self.assertEqual(self.seal(giver, request["opId"])["state"], "aborted")
        self.refused("OPERATION_ABORTED", self.client.call, "InventoryService/TransferItems", request)
        self.assertEqual(self.holders(uid, giver, taker), [(giver, "inventory")])

    def total(self, name):
        return sum(node.metrics()[f"holdfast_node_transfers_{name}"] for node in self.cluster.nodes)

    def test_what_is_on_its_way_is_shown(self):
        giver, taker, uid = self.pair()
        self.client.call("InventoryService/TransferItems", self.give(giver, taker, uid))
        shown = subprocess.run([BIN / "holdfast", "transfers", "-o", "json", "--endpoint",
                                self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertIsInstance(json.loads(shown.stdout), list)
        wait_for("nothing on its way", lambda: self.in_flight() == 0)
        # Nodes publish their shards' figures about ten times a second.
        wait_for("the metrics to say so", lambda: self.total("settled_total") > 0 and
                 self.total("in_flight") == 0 and self.total("oldest_seconds") == 0)


class Circulation(Stepper):
    """Sends one sword round and round among players; settles each step as a careful caller does."""

    def __init__(self, test, players, uid):
        super().__init__()
        self.test, self.client, self.players, self.uid = test, test.client, players, uid
        self.at, self.steps, self.aborted = 0, 0, 0

    def step(self):
        holder, taker = self.players[self.at], self.players[(self.at + 1) % len(self.players)]
        request = self.test.give(holder, taker, self.uid)
        try:
            self.client.call("InventoryService/TransferItems", request, deadline_ms=1500)
            state = "committed"
        except (RpcError, Unanswered) as error:
            if isinstance(error, RpcError) and error.final:
                raise
            state = self.test.seal(holder, request["opId"])["state"]
        if state == "aborted":
            self.aborted += 1
            return
        assert state == "committed", state
        mail = next(m for m in self.test.mails(taker)
                    if any(i["uid"] == self.uid for i in m["items"]))
        self.client.settle("MailboxService/ClaimMail", {
            "playerId": taker, "opId": uuid7(), "mailIds": [mail["mailId"]]} | UNHELD)
        self.at = (self.at + 1) % len(self.players)
        self.steps += 1


class TransferFailure(Goods):
    """SIGKILL of owners while swords go round: each ends with one holder, none is lost."""

    @classmethod
    def plan(cls):
        return Cluster(options={"node": {"workers": 2}})

    def setUp(self):
        self.players = [f"round-{uuid7()}" for _ in range(8)]
        self.rounds = []
        for i in range(6):
            players = self.players[i:] + self.players[:i]
            self.rounds.append(Circulation(self, players, self.mint(players[0])))

    def progress(self, count=20):
        wanted = [r.steps + r.aborted + count // len(self.rounds) for r in self.rounds]
        wait_for("swords to go round", lambda: any(r.failure for r in self.rounds) or all(
            r.steps + r.aborted >= w for r, w in zip(self.rounds, wanted)))

    def audit(self):
        wait_for("nothing on its way", lambda: self.in_flight() == 0)
        for r in self.rounds:
            self.assertIsNone(r.failure)
            self.assertEqual(len(self.holders(r.uid, *self.players)), 1, r.uid)

    def test_killed_owners_of_source_and_destination_lose_and_double_nothing(self):
        for r in self.rounds:
            r.start()
        for turn in range(4):
            self.progress()
            victim = self.cluster.nodes[turn % 3]
            if turn % 2:
                victim.signal(signal.SIGSTOP)  # What is sent to it stays unanswered...
                time.sleep(0.3)
            victim.kill()                      # ... and what it had sent, too.
            self.progress()
            victim.start()
            wait_for("the node to be back", victim.ready)
        self.progress()
        for r in self.rounds:
            r.ending = True
        for r in self.rounds:
            r.join(60)
        self.audit()
        print(f"{sum(r.steps for r in self.rounds)} transfers, "
              f"{sum(r.aborted for r in self.rounds)} sealed as never")
        self.cluster.wait_converged()
        self.audit()


if __name__ == "__main__":
    unittest.main(verbosity=2)
