"""One outcome per operation: retries, refusals, seals, and ids that may not be used."""

import json
import threading
import unittest

from as_of import dot_of
from client import PAYMENTS, Heartbeat, RpcError, grant_of, uuid7
from cluster import ClusterTest


def field(number, value):
    """A field of a protobuf message: bytes, text or a small number."""
    if isinstance(value, int):
        return bytes((number << 3, value))
    data = value.encode() if isinstance(value, str) else value
    return bytes((number << 3 | 2, len(data))) + data


class OneOutcome(ClusterTest):
    def setUp(self):
        self.player = f"player-{uuid7()}"

    def operation(self, op_id, player=None):
        return self.client.call("OperationService/GetOperation", {
            "entity": f"player:{player or self.player}", "opId": op_id})["operation"]

    def seal(self, op_id, seal=True):
        return self.client.call("OperationService/ResolveOperation", {
            "entity": f"player:{self.player}", "opId": op_id, "seal": seal})["operation"]

    def spend(self, amount, op_id, **more):
        return self.client.call("LedgerService/Spend", grant_of(self.player, amount, op_id) | {
            "authority": "unheld"} | more)

    def test_a_retry_gets_the_same_answer_marked_duplicate(self):
        op_id = uuid7()
        first = self.client.grant(self.player, 5, op_id)
        again = self.client.grant(self.player, 5, op_id)
        self.assertFalse(first["write"].get("duplicate", False))
        self.assertTrue(again["write"]["duplicate"])
        self.assertGreaterEqual(first["write"]["replicasFsynced"], 2)
        for answer in (first, again):
            answer["write"].pop("duplicate", None)
            answer["write"].pop("replicasFsynced")
        self.assertEqual(first, again)
        self.assertEqual(self.client.balance(self.player), 5)
        self.assertEqual(len(self.client.entries(self.player)), 1)

    def post(self, method, request, **headers):
        """The answer to a call with these headers; RpcError."""
        status, _, data = self.client.post(f"/holdfast.v1.{method}", json.dumps(request), {
            name.replace("_", "-"): value for name, value in headers.items()})
        if status != 200:
            raise RpcError(status, json.loads(data), method)
        return json.loads(data)

    def test_an_idempotency_key_is_the_op_id_of_a_single_mutation(self):
        request = grant_of(self.player, 5)
        del request["opId"]
        for duplicate in (False, True):
            answer = self.post("LedgerService/Grant", request, idempotency_key="order-17")
            self.assertEqual(answer["write"].get("duplicate", False), duplicate)
        self.assertEqual(self.client.balance(self.player), 5)
        self.assertEqual(self.operation("key:order-17")["state"], "committed")
        self.assertTrue(self.client.grant(self.player, 5, "key:order-17")["write"]["duplicate"])
        self.assertTrue(self.post("LedgerService/Grant", request | {"opId": "key:order-17"},
                                  idempotency_key="order-17")["write"]["duplicate"])
        error = self.refused("INVALID_ARGUMENT", self.post, "LedgerService/Grant",
                             request | {"opId": "claim:other"}, idempotency_key="order-17")
        self.assertEqual((error.field, error.value), ("op_id", "claim:other"))
        self.assertIn("key:order-17", error.limit)
        error = self.refused("INVALID_ARGUMENT", self.post, "LedgerService/BatchGrant",
                             {"requests": [grant_of(self.player, 5)]}, idempotency_key="order-17")
        self.assertEqual(error.field, "idempotency-key")
        error = self.refused("INVALID_ARGUMENT", self.post, "LedgerService/Grant", request,
                             idempotency_key="order 17")
        self.assertEqual(error.field, "idempotency-key")
        self.post("LedgerService/GetBalances", {"playerId": self.player}, idempotency_key="order-17")
        self.post("LedgerService/Grant", request, idempotency_key="receipt:" + self.player)
        self.assertEqual(self.operation("receipt:" + self.player)["state"],
                         "committed")

    def test_the_order_of_currencies_and_the_encoding_make_no_other_operation(self):
        request = grant_of(self.player, 5, "season:3")
        gold, gems = ({"currency": name, "amount": "5"} for name in ("gold", "gems"))
        first = self.client.call("LedgerService/Grant", request | {"currencies": [gold, gems]})
        self.assertFalse(first["write"].get("duplicate", False))
        again = self.post("LedgerService/Grant", request | {"currencies": [gems, gold]},
                          connect_protocol_version="1")
        self.assertTrue(again["write"]["duplicate"])
        body = b"".join((field(1, self.player), field(2, "season:3"), field(4, PAYMENTS), *(
            field(10, field(1, name) + field(2, 5)) for name in ("gems", "gold"))))
        for packed in (body, body.replace(b"gems", b"GEMS").replace(b"gold", b"gems").replace(b"GEMS", b"gold")):
            status, _, answer = self.client.post("/holdfast.v1.LedgerService/Grant", packed,
                                                 {"content-type": "application/proto"})
            self.assertEqual(status, 200, answer)
        self.assertEqual(self.client.balance(self.player), 5)
        self.assertEqual(len(self.client.entries(self.player)), 1)

    def test_simultaneous_retries_commit_once(self):
        op_id, answers = uuid7(), []
        threads = [threading.Thread(target=lambda: answers.append(
            self.client.settle("LedgerService/Grant", grant_of(self.player, 3, op_id))))
            for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 8)
        self.assertEqual(sum(not a["write"].get("duplicate", False) for a in answers), 1)
        self.assertEqual({a["ledgerSeq"] for a in answers}, {1})
        self.assertEqual(self.client.balance(self.player), 3)

    def test_another_payload_under_the_same_id_is_a_mismatch(self):
        op_id = uuid7()
        self.client.grant(self.player, 5, op_id)
        error = self.refused("OPERATION_ID_MISMATCH", self.client.grant, self.player, 6, op_id)
        self.assertEqual((error.connect_code, error.field), ("already_exists", "op_id"))
        self.refused("OPERATION_ID_MISMATCH", self.client.grant, self.player, 5, op_id, "gems")
        self.refused("OPERATION_ID_MISMATCH", self.spend, 5, op_id)
        self.assertEqual(self.client.balance(self.player), 5)

    def test_attempt_and_deadline_are_no_part_of_the_payload(self):
        op_id = uuid7()
        self.client.grant(self.player, 5, op_id)
        again = self.client.call("LedgerService/Grant",
                                 grant_of(self.player, 5, op_id, attempt=3), deadline_ms=4321)
        self.assertTrue(again["write"]["duplicate"])

    def test_a_refusal_is_stored_per_attempt_and_a_higher_one_is_evaluated_anew(self):
        op_id = uuid7()
        error = self.refused("INSUFFICIENT_FUNDS", self.spend, 10, op_id)
        self.assertTrue(error.final)
        self.assertEqual(self.operation(op_id)["state"], "refused")
        self.client.grant(self.player, 25)
        # The money is there now, but this attempt has its outcome.
        self.assertTrue(self.refused("INSUFFICIENT_FUNDS", self.spend, 10, op_id).final)
        self.assertEqual(self.client.balance(self.player), 25)
        self.spend(10, op_id, attempt=1)
        self.assertEqual(self.client.balance(self.player), 15)
        # Carried out for every attempt from now on.
        for attempt in (0, 1, 2):
            self.assertTrue(self.spend(10, op_id, attempt=attempt)["write"]["duplicate"])
        self.assertEqual(self.client.balance(self.player), 15)
        self.assertEqual(self.operation(op_id)["state"], "committed")

    def test_get_operation_tells_what_became_of_it(self):
        op_id = uuid7()
        self.assertEqual(self.operation(op_id)["state"], "unknown")
        answer = self.client.grant(self.player, 5, op_id)
        found = self.operation(op_id)
        self.assertEqual(found["state"], "committed")
        self.assertEqual(found["method"], "holdfast.v1.LedgerService/Grant")
        self.assertEqual(found["dot"], dot_of(answer))
        self.assertEqual(found["grant"]["ledgerSeq"], answer["ledgerSeq"])
        self.assertEqual(found["grant"]["balances"], answer["balances"])
        self.assertTrue(found["grant"]["write"]["duplicate"])
        self.assertNotIn("result", found)
        self.assertGreater(int(found["decidedAtMs"]), 1_600_000_000_000)

    def test_a_pending_steal_is_pending_then_committed(self):
        holder, thief = self.client.register("holder"), self.client.register("thief")
        for server in (holder, thief):
            self.enterContext(Heartbeat(self.client, server))
        token = self.client.start(self.player, holder)["token"]
        self.client.renew(holder, (self.player, token))
        op_id = uuid7()
        request = {"playerId": self.player, "opId": op_id, "incarnation": thief,
                   "mode": "steal", "graceMs": 4000}
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            self.client.call("SessionService/StartSession", request)))
        thread.start()
        states = set()
        while thread.is_alive():
            states.add(self.operation(op_id)["state"])
            thread.join(0.05)
        self.assertIn("pending", states)
        self.assertTrue(answers)
        self.assertEqual(self.operation(op_id)["state"], "committed")

    def test_after_a_seal_the_late_packet_is_aborted(self):
        op_id = uuid7()
        self.assertEqual(self.seal(op_id, seal=False)["state"], "unknown")
        self.assertEqual(self.seal(op_id)["state"], "aborted")
        for attempt in (0, 1, 7, 2**32 - 1):
            error = self.refused("OPERATION_ABORTED", self.client.grant, self.player, 5, op_id,
                                 attempt=attempt)
            self.assertEqual(error.connect_code, "aborted")
        self.assertEqual(self.client.balance(self.player), 0)
        self.assertEqual(self.operation(op_id)["state"], "aborted")
        self.assertEqual(self.seal(op_id)["state"], "aborted")

    def test_a_seal_of_what_was_carried_out_tells_that_it_was(self):
        op_id = uuid7()
        answer = self.client.grant(self.player, 5, op_id)
        sealed = self.seal(op_id)
        self.assertEqual(sealed["state"], "committed")
        self.assertEqual(sealed["dot"], dot_of(answer))
        self.assertTrue(self.client.grant(self.player, 5, op_id)["write"]["duplicate"])
        self.assertEqual(self.client.balance(self.player), 5)

    def test_a_seal_of_a_refusal_makes_every_later_attempt_end(self):
        op_id = uuid7()
        self.refused("INSUFFICIENT_FUNDS", self.spend, 10, op_id)
        self.assertIn(self.seal(op_id)["state"],
                      ("refused", "aborted"))
        self.client.grant(self.player, 100)
        with self.assertRaises(Exception) as caught:
            self.spend(10, op_id, attempt=9)
        self.assertIn(caught.exception.code, ("OPERATION_ABORTED", "INSUFFICIENT_FUNDS"))
        self.assertEqual(self.client.balance(self.player), 100)

    def test_a_race_of_seal_and_grant_has_one_winner(self):
        for _ in range(20):
            op_id, outcome = uuid7(), {}

            def grant(op_id=op_id, outcome=outcome):
                try:
                    self.client.settle("LedgerService/Grant", grant_of(self.player, 1, op_id))
                    outcome["grant"] = "COMMITTED"
                except Exception as error:  # Judged below.
                    outcome["grant"] = getattr(error, "code", repr(error))
            thread = threading.Thread(target=grant)
            before = self.client.balance(self.player)
            thread.start()
            sealed = self.seal(op_id)["state"].upper()
            thread.join()
            wanted = {"COMMITTED": "COMMITTED", "ABORTED": "OPERATION_ABORTED"}[sealed]
            self.assertEqual(outcome["grant"], wanted)
            self.assertEqual(self.client.balance(self.player) - before,
                             1 if sealed == "COMMITTED" else 0)

    def test_typed_ids_are_accepted_and_unique_per_player(self):
        for op_id in ("receipt:GPA.3312-5671", "claim:day-7", "match:m1:2", "admin:ticket-9"):
            self.client.grant(self.player, 5, op_id)
            self.assertTrue(self.client.grant(self.player, 5, op_id)["write"]["duplicate"])
            self.refused("OPERATION_ID_MISMATCH", self.client.grant, self.player, 6, op_id)
            self.assertEqual(self.operation(op_id)["state"], "committed")
        self.assertEqual(self.client.balance(self.player), 20)
        self.assertEqual([e["opId"] for e in self.client.entries(self.player)],
                         ["receipt:GPA.3312-5671", "claim:day-7", "match:m1:2", "admin:ticket-9"])

    def test_bad_operation_ids_are_refused_and_change_nothing(self):
        uuid4 = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
        for op_id in ("", "x", uuid4, "receipt:", "unknown:1", "match:1", uuid7()[:-1],
                      "receipt:" + "x" * 200, "claim:a\u0000b", "claim:a\nb", "admin:a b"):
            with self.subTest(op_id=op_id):
                error = self.refused("INVALID_ARGUMENT", self.client.call, "LedgerService/Grant",
                                     grant_of(self.player, 5) | {"opId": op_id})
                self.assertIn(error.field, ("op_id", "opId"))
                self.assertFalse(error.final)
        self.assertEqual(self.client.balance(self.player), 0)

    def test_a_uuid_from_the_future_is_refused_naming_the_limit(self):
        error = self.refused("INVALID_ARGUMENT", self.client.grant, self.player, 5,
                             uuid7(ahead_ms=10 * 60 * 1000))
        self.assertEqual(error.field, "op_id")
        self.assertTrue(error.limit)
        self.assertFalse(error.final)
        self.client.grant(self.player, 5, uuid7(ahead_ms=60 * 1000))
        self.assertEqual(self.client.balance(self.player), 5)

    def test_a_uuid_older_than_the_window_is_expired(self):
        error = self.refused("OPERATION_EXPIRED", self.client.grant, self.player, 5,
                             uuid7(ahead_ms=-8 * 24 * 3600 * 1000))
        self.assertEqual(error.connect_code, "failed_precondition")
        self.assertEqual(self.client.balance(self.player), 0)

    def test_the_same_id_on_two_players_is_two_operations(self):
        op_id, other = uuid7(), f"other-{uuid7()}"
        self.client.grant(self.player, 5, op_id)
        answer = self.client.grant(other, 9, op_id)
        self.assertFalse(answer["write"].get("duplicate", False))
        self.assertEqual((self.client.balance(self.player), self.client.balance(other)), (5, 9))
        self.assertEqual(self.operation(op_id, other)["state"], "committed")

    def test_a_batch_of_grants_answers_each_by_itself_and_once(self):
        requests = [grant_of(f"batch-{n}-{self.player}", n + 1) for n in range(50)]
        requests[7]["currencies"] = {"doubloons": 8}
        again = requests + [dict(requests[0])]
        error = self.refused("INVALID_ARGUMENT", self.client.call, "LedgerService/BatchGrant",
                             {"requests": again})
        self.assertEqual((error.field, error.value), ("requests[50].op_id", requests[0]["opId"]))
        self.assertEqual(self.client.balance(requests[0]["playerId"]), 0)
        answer = self.client.call("LedgerService/BatchGrant", {"requests": requests})
        results = answer["results"]
        self.assertEqual((len(results), answer["failed"]), (50, 1))
        self.assertEqual([n for n, r in enumerate(results) if "error" in r], [7])
        self.assertEqual(self.client.balance(requests[0]["playerId"]), 1)
        self.assertEqual(self.client.balance(requests[49]["playerId"]), 50)

    def test_a_match_of_fifty_is_paid_under_one_op_id_that_is_said_once(self):
        tag = f"{uuid7()[-6:]}"
        rewards = [{"playerId": f"{tag}{n}", "currencies": {"gold": n + 1}} for n in range(50)]
        shared = {"opId": f"match:{tag}:1", "authority": "system:match", "reason": "win"}
        request = shared | {"requests": rewards}
        spelt_out = {"requests": [reward | shared for reward in rewards]}
        answer = self.client.call("LedgerService/BatchGrant", request)
        self.assertEqual([r["response"]["balances"]["gold"] for r in answer["results"]],
                         list(range(1, 51)))
        self.assertNotIn("failed", answer)
        entry = self.client.entries(rewards[7]["playerId"])[0]
        self.assertEqual((entry["opId"], entry["reason"], entry["authority"]),
                         (f"match:{tag}:1", "win", "system:match"))
        # It is the same operation as one that says everything itself.
        for same in (request, spelt_out):
            again = self.client.call("LedgerService/BatchGrant", same)
            self.assertTrue(all(r["response"]["write"]["duplicate"] for r in again["results"]))
        self.assertEqual(self.client.balance(rewards[49]["playerId"]), 50)
        sizes = [len(json.dumps(body, separators=(",", ":"))) for body in (request, spelt_out)]
        self.assertLess(sizes[0], 2800)
        self.assertGreater(sizes[1], 2 * sizes[0])

    def test_a_request_of_a_batch_keeps_what_it_says_itself(self):
        ids = [uuid7() for _ in range(2)]
        players = [f"own-{n}-{ids[0]}" for n in range(3)]
        gold = {"gold": 3}
        answer = self.client.call("LedgerService/BatchGrant", {
            "opId": ids[0], "authority": "system:match", "reason": "win", "requests": [
                {"playerId": players[0], "currencies": gold},
                {"playerId": players[1], "currencies": gold, "opId": ids[1], "reason": "mvp"},
                {"playerId": players[2], "currencies": gold, "authority": "session:1-1-1"}]})
        self.assertEqual(answer["failed"], 1)
        self.assertEqual(answer["results"][2]["error"]["code"], "session_lost")
        said = [(e["opId"], e["reason"], e["authority"])
                for e in (self.client.entries(player)[0] for player in players[:2])]
        self.assertEqual(said, [(ids[0], "win", "system:match"), (ids[1], "mvp", "system:match")])
        for authority in ("payments", "Unheld"):
            error = self.refused("INVALID_ARGUMENT", self.client.call, "LedgerService/BatchGrant", {
                "opId": ids[0], "authority": authority,
                "requests": [{"playerId": players[0], "currencies": gold}]})
            self.assertEqual(error.field, "authority")

    def test_a_session_token_is_no_part_of_the_payload(self):
        server = self.client.register("server")
        self.enterContext(Heartbeat(self.client, server))
        token = self.client.start(self.player, server)["token"]
        self.client.grant(self.player, 10)
        op_id = uuid7()
        request = {"playerId": self.player, "opId": op_id,
                   "currencies": {"gold": 4}}
        self.client.call("LedgerService/Spend", request | {
            "authority": f"session:{token}"})
        self.client.end(self.player, token)
        token = self.client.start(self.player, server)["token"]
        again = self.client.call("LedgerService/Spend", request | {
            "authority": f"session:{token}"})
        self.assertTrue(again["write"]["duplicate"])
        self.assertEqual(self.client.balance(self.player), 6)

    def test_system_scope_may_add_but_not_take(self):
        self.client.grant(self.player, 10)
        error = self.refused("PERMISSION_DENIED", self.spend, 5, uuid7(), authority=PAYMENTS)
        self.assertEqual(error.connect_code, "permission_denied")
        self.assertEqual(self.client.balance(self.player), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
