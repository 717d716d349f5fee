"""
Rate rules over real processes: exactly so many changes of one player, whatever routers, threads and batches ask for them,
and across the death of an owner; and what routers count by themselves, by device and address. Periods are a day long, or a
minute where only a minute exists: no assertion depends on how fast the machine is.
"""

import concurrent.futures
import json
import unittest

import player_tokens_test  # Runs this again under the Python that has PyJWT.
import favorites_test
from client import Client, RpcError, Unanswered, uuid7
from cluster import Cluster, ClusterTest, wait_for

SHARDS = 8
DAY_MS = 24 * 3600 * 1000
LATE_MS = 3600 * 1000  # No test takes that long.
UNSURE = ("OUTCOME_UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED")


class AbuseCluster(Cluster):
    """Two routers; the second one counts by address."""

    def __init__(self, issuer):
        tokens = {"player-keys": issuer.url, "player-audience": player_tokens_test.AUDIENCE, "player-token-rate": 0}
        super().__init__(nodes=3, coordinators=1, shards=SHARDS, options={"router": {
            "access": "open", "player-rate": 0, "player-device-writes": 1} | tokens})
        listen = self.address("router-2")
        self.second = self.plan("router", "router-2", {
            "listen": listen, "access": "open", "player-rate": 0, "player-address-writes": 1} | tokens)
        self.second_endpoint = f"http://{listen}"

    def processes(self):
        return [self.second, *super().processes()]

    def wait_ready(self):
        wait_for("the second router to be ready", self.second.ready)
        return super().wait_ready()


class AbuseTest(favorites_test.FavoriteCalls, ClusterTest):
    @classmethod
    def plan(cls):
        cls.issuer = player_tokens_test.Issuer()
        cls.addClassCleanup(cls.issuer.server.server_close)
        cls.addClassCleanup(cls.issuer.server.shutdown)
        cls.issuer.add("ec-1", player_tokens_test.ec_key())
        return AbuseCluster(cls.issuer)

    def rule(self, subject, limit, name=None, period_ms=DAY_MS):
        self.put(name or f"{subject}_rule", {"rateRule": {"subject": subject, "limit": limit, "periodMs": period_ms}})

    def changes(self, player, collection, endpoint=None, op_id=None, **fields):
        """One change, asked for until its outcome is known: None, or the refusal by a rate rule."""
        request = {"playerId": player, "opId": op_id or uuid7(), "collection": collection,
                   "targetId": f"t-{uuid7()}"} | fields
        client = Client(endpoint or self.cluster.endpoint)

        def once():
            try:
                return [client.call("FavoritesService/Favorite", request) and None]
            except Unanswered:
                return None
            except RpcError as error:
                if error.code in UNSURE:
                    return None
                self.assertEqual(error.code, "THROTTLED", error)
                return [error]
        return wait_for("a change to be decided", once)[0]

    def refused_for_the_day(self, error, limit):
        self.assertEqual((error.status, error.outcome, error.action), (429, "NOT_APPLIED", "RETRY_SAME"))
        self.assertEqual((error.field, error.limit), ("player_id", f"{limit} in {DAY_MS} ms"))
        self.assertGreater(error.retry_after_ms, DAY_MS - LATE_MS)
        self.assertLessEqual(error.retry_after_ms, DAY_MS)

    def test_threads_at_two_routers_get_exactly_the_limit(self):
        self.define("busy")
        self.rule("busy", 10)
        endpoints = [self.cluster.endpoint, self.cluster.second_endpoint]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda number: self.changes("ann", "busy", endpoints[number % 2]), range(40)))
        self.assertEqual(told.count(None), 10)
        self.assertEqual(len(self.listed("ann", collection="busy")), 10)
        for error in told:
            if error is not None:
                self.refused_for_the_day(error, 10)
        self.assertIsNone(self.changes("bob", "busy"))

    def test_each_element_of_a_batch_counts(self):
        self.define("bulk")
        self.rule("bulk", 3)

        def made():
            try:
                return self.client.call("FavoritesService/BatchFavorite", {"collection": "bulk", "requests": requests})
            except (RpcError, Unanswered):
                return None
        requests = [{"playerId": "ann", "opId": uuid7(), "targetId": f"b{each}"} for each in range(8)]
        decided = wait_for("the batch to be decided", lambda: next((answer for answer in [made()] if answer and all(
            result.get("error", {}).get("code", "THROTTLED").upper() == "THROTTLED" for result in answer["results"])), None))
        self.assertEqual(decided["failed"], 5)
        self.assertEqual(len(self.listed("ann", collection="bulk")), 3)

    def test_what_was_done_is_told_again_and_what_changes_nothing_passes(self):
        self.define("few")
        self.rule("few", 2)
        op_id = uuid7()
        self.assertIsNone(self.changes("ann", "few", op_id=op_id, targetId="one", ver=5))
        self.assertIsNone(self.changes("ann", "few"))
        self.refused_for_the_day(self.changes("ann", "few"), 2)
        again = self.client.settle("FavoritesService/Favorite", {
            "playerId": "ann", "opId": op_id, "collection": "few", "targetId": "one", "ver": 5})
        self.assertTrue(again["write"]["duplicate"])
        late = self.favorite("ann", "one", gone=True, collection="few", ver=4)
        self.assertFalse(late.get("applied", False))

    def test_an_owner_that_dies_takes_no_count_with_it(self):
        self.define("kept")
        self.rule("kept", 4)
        for _ in range(3):
            self.assertIsNone(self.changes("ann", "kept"))
        owner, _ = self.cluster.owner_of("ann")
        owner.kill()
        try:
            self.assertIsNone(self.changes("ann", "kept"))
            self.refused_for_the_day(self.changes("ann", "kept"), 4)
        finally:
            owner.start()
        wait_for("all shards to serve", self.cluster.all_serving)
        self.cluster.wait_converged()
        self.refused_for_the_day(self.changes("ann", "kept"), 4)

    def test_a_rule_that_changes_begins_anew_and_all_of_them_hold(self):
        self.define("stars")
        self.rule("stars", 1)
        self.assertIsNone(self.changes("ann", "stars"))
        self.refused_for_the_day(self.changes("ann", "stars"), 1)
        self.rule("stars", 2)
        self.rule("stars", 3, name="stars_too")
        for _ in range(2):
            self.assertIsNone(self.changes("ann", "stars"))
        error = self.changes("ann", "stars")
        self.refused_for_the_day(error, 2)
        self.assertIn("stars_rule", error.message)
        self.client.call("DefinitionService/DeleteDefinition", {
            "kind": "rate_rule", "name": "stars_rule", "opId": uuid7(), "waitMs": 20000})
        self.assertIsNone(self.changes("ann", "stars"))
        self.refused_for_the_day(self.changes("ann", "stars"), 3)

    def test_rules_of_a_subject_have_a_limit_and_keep_their_subject(self):
        for each in range(8):
            self.rule("full", 5, name=f"full_{each}")
        error = self.refused("CAPACITY_FULL", self.client.call, "DefinitionService/PutDefinition", {
            "name": "full_8", "opId": uuid7(), "body": {"rateRule": {"subject": "full", "limit": 5, "periodMs": 1000}}})
        self.assertEqual(error.field, "body.rate_rule.subject")
        error = self.refused("INVALID_ARGUMENT", self.client.call, "DefinitionService/PutDefinition", {
            "name": "full_0", "opId": uuid7(), "body": {"rateRule": {"subject": "else", "limit": 5, "periodMs": 1000}}})
        self.assertEqual(error.field, "body.rate_rule.subject")

    # ---- at routers ----

    def write(self, endpoint, player, verb="PUT", **headers):
        """(status, headers, answer) of a favourite with the player's token."""
        client = Client(endpoint)
        connection = client.connection(30)
        sent = {"authorization": f"Bearer {self.issuer.token('ec-1', player)}", "content-type": "application/json",
                "idempotency-key": uuid7()} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(verb, f"/v1/players/{player}/favorites/pong", "{}", sent)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, answer.headers, said

    def held_back(self, endpoint, **headers):
        """One write a minute passes: of two within a minute, which come sooner or later, the second does not."""
        status, head, said = wait_for("a write to be held back", lambda: next((
            told for told in [self.write(endpoint, "ann", **headers)] if told[0] == 429), None))
        self.assertEqual(status, 429)
        self.assertEqual(said["error"]["code"], "throttled")
        self.assertIn(int(head["retry-after"]), range(1, 62))
        return said["message"]

    def refusals(self, process, reason):
        return process.metrics()[f'holdfast_router_refused_total{{reason="{reason}"}}']

    def test_a_device_is_held_back_and_others_are_not(self):
        wait_for("the keys", lambda: self.cluster.router.metrics()["holdfast_router_player_keys"] == 1)
        self.assertIn("device", self.held_back(self.cluster.endpoint, holdfast_device="phone-1"))
        self.assertGreaterEqual(self.refusals(self.cluster.router, "device_writes"), 1)
        self.assertNotEqual(self.write(self.cluster.endpoint, "ann", holdfast_device="phone-2")[0], 429)
        self.assertNotEqual(self.write(self.cluster.endpoint, "ann")[0], 429)

    def test_an_address_is_held_back_whatever_device_and_player(self):
        wait_for("the keys", lambda: self.cluster.second.metrics()["holdfast_router_player_keys"] == 1)
        self.assertIn("address", self.held_back(self.cluster.second_endpoint))
        self.assertGreaterEqual(self.refusals(self.cluster.second, "address_writes"), 1)
        self.assertIn("address", self.held_back(self.cluster.second_endpoint, holdfast_device="phone-3"))


if __name__ == "__main__":
    unittest.main()
