"""
The data directory that the program of an earlier commit left (tests/data/upgrade), under the program of
today: nothing that a caller knew is lost or done twice, and everything goes on.
"""

import json
import os
import pathlib
import subprocess
import tarfile
import time
import unittest

from client import PAYMENTS, UNHELD, RpcError, session, uuid7
from cluster import BIN, ROOT, Cluster, ClusterTest, Process, wait_for

ARCHIVE = ROOT / "tests/data/upgrade/157c4af.tar.xz"
# Methods that have other names today.
RENAMED = {
    "LedgerService/Transfer": "LedgerService/TransferCurrencies",
    "LedgerService/Reserve": "LedgerService/ReserveCurrencies",
    "LedgerService/Post": "LedgerService/PostReservation",
    "LedgerService/Void": "LedgerService/VoidReservation",
    "LedgerService/Reverse": "LedgerService/ReverseEntry",
    "InventoryService/Transfer": "InventoryService/TransferItems",
    "MailboxService/Send": "MailboxService/SendMail",
    "MailboxService/Claim": "MailboxService/ClaimMail",
    "MailboxService/ReturnExpired": "MailboxService/ReturnExpiredMail",
    "TransactionService/Execute": "TransactionService/ExecuteTransaction",
}
# What does the deed of a method that is no more.
SUCCESSOR = {"InventoryService/Mint": "LedgerService/Grant", "InventoryService/Consume": "LedgerService/Spend"}
# What an operation tells beside the answer of its method.
STATUS = {"state", "attempt", "method", "dot", "refusal", "decidedAtMs", "boundPlayerId"}
CANONICAL = {"Connect-Protocol-Version": "1"}


class UpgradedCluster(Cluster):
    """Today's program on the data directories of the archive, soon after they were made."""

    def __init__(self):
        with tarfile.open(ARCHIVE) as archive:
            with archive.extractfile("known.json") as file:
                self.known = json.load(file)
            self.behind_s = max(0, int(time.time() - self.known["made_at_ms"] / 1000 - 120))
            library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
            own = dict(os.environ)
            os.environ.update({"LD_PRELOAD": str(library), "FAKETIME": f"-{self.behind_s}s",
                               "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
            super().__init__(shards=self.known["shards"])
            self.etcd.environment = own
            members = [m for m in archive.getmembers() if m.name != "known.json"]
            archive.extractall(self.dir, members=members)


def today(request):
    """The content of an earlier request in today's form."""
    if isinstance(request, list):
        return [today(value) for value in request]
    if not isinstance(request, dict):
        return request
    found = {}
    for name, value in request.items():
        if name in ("authority", "otherAuthority"):
            value = ("unheld" if "unheld" in value else
                     f"system:{value['system']['scope']}" if "system" in value else
                     f"session:{value['session']['token']}")
        found[name] = today(value)
    return found


def in_order(request):
    """Payload hashes were over lists as they came; today they are over maps in the order of names."""
    names = [[entry.get("currency", entry.get("name")) for entry in value]
             for key, value in request.items() if key in ("currencies", "edits")]
    return all(name == sorted(name) for name in names)


def method_today(known):
    return RENAMED.get(known["method"], known["method"])


def in_form_of_today(method, request):
    """(method, request): the same content where today's request has other places for it."""
    request = today(request)
    if method == "TransactionService/Swap":
        sides = {}
        for side, names in (("a", ("playerId", "authority", "currencies", "itemUids")),
                            ("b", ("otherPlayerId", "otherAuthority", "otherCurrencies", "otherItemUids"))):
            player, authority, currencies, uids = (request.pop(name, None) for name in names)
            sides[side] = {"playerId": player, "authority": authority,
                           "gives": {"currencies": currencies or [], "itemUids": uids or []}}
        return method, request | sides
    if method == "MailboxService/SendMail" and "toPlayerId" not in request:
        request |= {"toPlayerIds": [request.pop("playerId")], "items": request.pop("mint")}
        return "MailboxService/DeliverMail", request
    for change in request.get("changes", ()):
        for deed in ("debit", "consume"):
            if deed in change:
                change["spend"] = change.pop(deed)
    return SUCCESSOR.get(method, method), request


def same_operation(known):
    """Whether today's form is the same operation under its id; else it is refused, and not done again."""
    request = known["request"]
    return (in_order(request) and not request.get("mint") and known["method"] not in SUCCESSOR
            and not any("consume" in change for change in request.get("changes", ())))


def content(answer):
    """Without what differs from one telling of an outcome to the next. Tokens are signed today."""
    kept = {name: value for name, value in answer.items() if name not in ("profile", "token")}
    return kept | {"write": {name: value for name, value in answer["write"].items() if name == "version"}}


def apart(answer):
    """What is reserved stood within each balance; today it is a list beside them."""
    if "balances" not in answer:
        return answer
    balances = [{name: value for name, value in balance.items() if name != "reserved"}
                for balance in answer["balances"]]
    reserved = [{"currency": balance["currency"], "amount": balance["reserved"]}
                for balance in answer["balances"] if "reserved" in balance]
    return answer | {"balances": balances} | ({"reserved": reserved} if reserved else {})


def answer_today(known):
    """A stored answer of then, as it is told today: what was reserved then is not told any more."""
    answer = apart(known["answer"])
    answer.pop("reserved", None)
    if "players" in answer:
        answer["players"] = [apart(player) for player in answer["players"]]
        for player in answer["players"]:
            player.pop("reserved", None)
    if known["method"] == "InventoryService/Mint":
        answer["itemUids"] = [item["uid"] for item in answer.pop("items")]
    return content(answer)


def decided(operations):
    """By player and op_id, what decided the operation: None if nothing did."""
    found = {}
    for known in operations:
        key = known["request"]["playerId"], known["request"]["opId"]
        final = "answer" in known or known.get("refused", {}).get("final") or "sealed" in known
        if key not in found or (final and "answer" not in (found[key] or {}) and
                                "sealed" not in (found[key] or {})):
            found[key] = known if final else None
    return found


class Upgraded(ClusterTest):
    @classmethod
    def plan(cls):
        return UpgradedCluster()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.known = cls.cluster.known
        wait_for("all shards to serve", cls.cluster.all_serving)
        cls.found = cls.look()

    @classmethod
    def canonical(cls, method, request):
        """Earlier answers were in this form."""
        status, _, data = cls.client.post(f"/holdfast.v1.{method}", json.dumps(request), CANONICAL)
        answer = json.loads(data)
        if status != 200:
            raise RpcError(status, answer)
        return answer

    @classmethod
    def all_of(cls, method, request, field):
        found, cursor = [], ""
        while True:
            page = cls.canonical(method, request | {"cursor": cursor})
            found += page.get(field, [])
            cursor = page.get("nextCursor", "")
            if not cursor:
                return found

    @classmethod
    def look(cls):
        """{player: what is known of it}, of all but the traders."""
        found = {}
        for player in cls.known["players"]:
            of = {"playerId": player}
            found[player] = {
                "profile": cls.canonical("ProfileService/GetProfile", of)["profile"],
                "items": cls.all_of("InventoryService/ListItems", of, "items"),
                "mails": cls.all_of("MailboxService/ListMail", of, "mails"),
                "reservations": cls.all_of("LedgerService/ListReservations", of, "reservations"),
                "entries": cls.all_of("LedgerService/ListEntries", of | {"ascending": True}, "entries"),
            }
        return found

    def new_id(self):
        return uuid7(-self.cluster.behind_s * 1000)

    def operation(self, player, op_id):
        return self.canonical("OperationService/GetOperation", {
            "entity": f"player:{player}", "opId": op_id})["operation"]

    def of_players(self):
        """Of all but the traders, who were not read."""
        return [k for k in self.known["operations"] if k["request"]["playerId"] in self.known["players"]]


class Reads(Upgraded):
    def test_everything_that_a_player_has_is_there(self):
        for player, known in self.known["players"].items():
            for what, value in known.items():
                with self.subTest(player=player, what=what):
                    self.assertEqual(self.found[player][what],
                                     apart(value) if what == "profile" else value)

    def test_the_policy_is_in_force(self):
        policy = self.canonical("AdminService/GetCluster", {})["policy"]
        self.assertEqual(policy, policy | self.known["policy"])

    def test_outcomes_can_be_read(self):
        for (player, op_id), known in decided(self.of_players()).items():
            with self.subTest(player=player, op_id=op_id):
                operation = self.operation(player, op_id)
                told = set(operation) - STATUS
                if known is None:
                    self.assertEqual(operation["state"], "OPERATION_STATE_UNKNOWN")
                elif "sealed" in known:
                    self.assertEqual(operation["state"], known["sealed"])
                elif "answer" in known:
                    self.assertEqual(operation["state"], "OPERATION_STATE_COMMITTED")
                    self.assertEqual(operation["method"], f"holdfast.v1.{method_today(known)}")
                    self.assertEqual(len(told), 1, operation)
                    self.assertEqual(content(operation[told.pop()]), answer_today(known))
                    self.assertEqual(operation["dot"], known["answer"]["write"]["dot"])
                elif known["refused"]["code"].endswith("OPERATION_ABORTED"):
                    self.assertIn(operation["state"], ("OPERATION_STATE_ABORTED",
                                                       "OPERATION_STATE_REFUSED"))
                else:
                    self.assertEqual(operation["state"], "OPERATION_STATE_REFUSED")
                    self.assertEqual(operation["refusal"]["code"].removeprefix("ERROR_CODE_"),
                                     known["refused"]["code"])

    def test_chains_of_entries_end_in_the_hash_that_was_known(self):
        for player, known in self.known["players"].items():
            page = self.canonical("LedgerService/ListEntries", {"playerId": player, "pageSize": 1})
            self.assertEqual(page.get("headHash"), (known["entries"] or [{}])[-1].get("hash"), player)
        export = self.holdfast("ledger", "export", "--all")
        path = self.cluster.dir / "export.jsonl"
        path.write_text(export)
        self.assertIn(" 0 faults", self.holdfast("ledger", "verify", path))

    def holdfast(self, *words):
        return subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=True).stdout


class Writes(Upgraded):
    def retry(self, known):
        """What the request of then, in today's form, is answered today."""
        method, request = in_form_of_today(method_today(known), known["request"])
        try:
            answer = self.canonical(method, request)
        except RpcError as error:
            return error
        if "results" not in answer:
            return answer
        result, = answer["results"]
        return result.get("response") or RpcError(200, {"error": result["error"]})

    def test_1_what_was_asked_before_is_not_done_again(self):
        outcomes = decided(self.of_players())
        for known in self.of_players():
            outcome = outcomes[known["request"]["playerId"], known["request"]["opId"]]
            if outcome is None or "sealed" in known:
                continue
            with self.subTest(request=known):
                answer = self.retry(known)
                if not same_operation(known):
                    self.assertEqual(answer.code, "OPERATION_ID_MISMATCH")
                elif outcome is not known:  # Another request of this id was decided, or a later attempt.
                    self.assertIsInstance(answer, (dict, RpcError))
                elif "answer" in known:
                    self.assertIsInstance(answer, dict, answer)
                    self.assertTrue(answer["write"]["duplicate"])
                    self.assertEqual(content(answer), answer_today(known))
                else:
                    self.assertIsInstance(answer, RpcError)
                    self.assertEqual((answer.code, answer.final), (known["refused"]["code"], True))
        self.assertEqual(self.look(), self.found)

    def test_2_what_was_on_its_way_is_done_or_never_will_be(self):
        rush = [k for k in self.known["operations"] if k["request"]["playerId"] in self.known["traders"]]
        gems = 0
        for known in rush:
            player, op_id = known["request"]["playerId"], known["request"]["opId"]
            operation = self.client.settle("OperationService/ResolveOperation", {
                "entity": f"player:{player}", "opId": op_id, "seal": True})["operation"]
            self.assertIn(operation["state"], ("committed", "refused", "aborted"))
            if "answer" in known:
                self.assertEqual(operation["state"], "committed")
            if operation["state"] == "committed" and op_id.startswith("receipt:"):
                gems += 1
        wait_for("transfers to arrive", lambda: not any(
            int(s.get("transfersOpen", 0)) for s in self.client.shards()))
        have = {"gold": 0, "gems": 0}
        for player in self.known["traders"]:
            for currency in have:
                have[currency] += self.client.balance(player, currency)
            for mail in self.all_of("MailboxService/ListMail", {"playerId": player}, "mails"):
                for amount in mail.get("currencies", []):
                    have[amount["currency"]] += int(amount["amount"])
        self.assertEqual(have, {"gold": 1000 * len(self.known["traders"]), "gems": gems})

    def test_3_everything_goes_on(self):
        for part in ("early", "late"):
            self.money_goes_on(part)
            self.goods_go_on(part)
            self.sessions_go_on(part)
        self.cluster.wait_converged()
        wait_for("the audit to count cuts", lambda: self.audit("cuts_total") > 1)
        self.assertEqual(self.audit("imbalance"), 0)

    def audit(self, what):
        return self.cluster.coordinators[0].metrics()[f"holdfast_audit_{what}"]

    def write(self, method, player, op_id=None, authority=UNHELD, **more):
        return self.client.call(method, {"playerId": player, "opId": op_id or self.new_id(),
                                         "authority": authority} | more)

    def money_goes_on(self, part):
        bob = f"bob-{part}"
        gold = self.client.balance(bob)
        undone = self.write("LedgerService/ReverseEntry", bob, authority="system:admin",
                            targetOpId=f"claim:to-undo-{part}", reason="fraud")
        self.assertEqual(undone["balances"]["gold"], gold - 3)
        self.assertEqual(undone["reserved"], {"gold": 10})
        error = self.refused("ALREADY_REVERSED", self.write, "LedgerService/ReverseEntry", bob,
                             authority="system:admin", targetOpId=f"admin:gift-{part}", reason="again")
        self.assertTrue(error.final)
        self.write("LedgerService/PostReservation", bob, reserveOpId=f"claim:open-{part}",
                   toPlayerId=f"cy-{part}")
        self.assertEqual(self.client.balance(bob), gold - 3)
        self.write("LedgerService/Grant", bob, authority=PAYMENTS, currencies={"dust": 1})
        self.refused("INVALID_ARGUMENT", self.write, "LedgerService/Grant", bob, authority=PAYMENTS,
                     currencies={"dirt": 1})
        self.refused("OPERATION_ID_MISMATCH", self.write, "LedgerService/Grant", f"gil-{part}",
                     f"receipt:GPA.{part}.0", authority=PAYMENTS, currencies={"gems": 1})

    def goods_go_on(self, part):
        eve = f"eve-{part}"
        mails = [m["mailId"] for m in self.found[eve]["mails"]]
        claimed = self.write("MailboxService/ClaimMail", eve, mailIds=mails)
        bow = next(i["uid"] for i in claimed["items"] if i["kind"] == "bow")
        back = self.write("InventoryService/TransferItems", eve, toPlayerId=f"dan-{part}", itemUids=[bow])
        self.write("MailboxService/ClaimMail", f"dan-{part}", mailIds=[back["mailId"]])
        steps = self.client.call("InventoryService/TraceItem", {"itemUid": bow})["steps"]
        self.assertEqual([s["step"] for s in steps], list(range(1, len(steps) + 1)))
        self.assertEqual(steps[-1]["playerId"], f"dan-{part}")

    def sessions_go_on(self, part):
        """The servers of then are gone, so their players are free."""
        held = f"held-{part}"
        server = self.client.register(f"new-{part}")
        joined = wait_for("the earlier server to expire", lambda: self.client.start(
            held, server, op_id=self.new_id()))
        self.assertGreater(joined["fence"], 1)
        self.refused("SESSION_LOST", self.write, "ProfileService/UpdateProfile", held,
                     authority=session("1-9-1"), edits={"progress": {"merge": {}}})
        self.write("ProfileService/UpdateProfile", held, authority=session(joined["token"]),
                   edits={"progress": {"schemaVersion": 1, "merge": {"xp": 1}}})


if __name__ == "__main__":
    unittest.main(verbosity=2)
