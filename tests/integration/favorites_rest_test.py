"""
Favourites as a game's page asks for them: REST under names of its own, with a player's token, across origins; and counts
that a router gathers from all shards, keeps for a while, and never tells wrong without saying so.
"""

import concurrent.futures
import functools
import json
import signal
import time
import unittest
import urllib.parse

import player_tokens_test  # Runs this again under the Python that has PyJWT.
from client import Client, RpcError, uuid7
from cluster import Cluster, ClusterTest, wait_for

ORIGIN = "https://games.example"
AGE_S = 2.0  # Of the router's option count-age, and of max-age.


class FavoritesRestTest(ClusterTest):
    @classmethod
    def plan(cls):
        cls.issuer = player_tokens_test.Issuer()
        cls.addClassCleanup(cls.issuer.server.server_close)
        cls.addClassCleanup(cls.issuer.server.shutdown)
        cls.issuer.add("ec-1", player_tokens_test.ec_key())
        return Cluster(nodes=1, shards=8, options={"router": {
            "access": "open", "player-keys": cls.issuer.url, "player-audience": player_tokens_test.AUDIENCE,
            "player-issuer": player_tokens_test.ISSUER, "player-token-rate": 0, "cors-origins": ORIGIN,
            "count-age": f"{AGE_S:.0f}s"}})

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for("the keys", lambda: cls.cluster.router.metrics()["holdfast_router_player_keys"] == 1)
        for name in ("favorites", "likes"):
            cls.define(name)

    @classmethod
    def define(cls, name):
        fields = {"name": name, "body": {"collection": {"conflictPolicy": "last_write"}}, "opId": uuid7(),
                  "waitMs": 5000}

        def made():
            try:
                return cls.client.call("DefinitionService/PutDefinition", fields)
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for(f"{name} to be made", made)

    @classmethod
    @functools.cache
    def token(cls, player):
        """The same each time: a router checks its signature once."""
        return cls.issuer.token("ec-1", player)

    @classmethod
    def ask(cls, verb, target, player=None, body=None, **headers):
        """(status, headers, answer) of REST; with that player's token."""
        client = Client(cls.cluster.endpoint)
        connection = client.connection(30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if player is not None:
            sent["authorization"] = f"Bearer {cls.token(player)}"
        if body is not None:
            sent.setdefault("content-type", "application/json")
        connection.request(verb, target, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(said) if said else None

    def good(self, verb, target, player=None, **headers):
        status, _, answer = self.ask(verb, target, player, **headers)
        self.assertEqual(status, 200, answer)
        return answer

    def bad(self, status, field, verb, target, player=None, **headers):
        said, head, answer = self.ask(verb, target, player, **headers)
        self.assertEqual(said, status, answer)
        self.assertEqual(answer["error"].get("field", ""), field, answer)
        self.assertEqual(head["cache-control"], "no-store")
        return answer["error"], head

    def favorite(self, player, game, verb="POST"):
        return self.good(verb, f"/v1/favorites/{game}", player, idempotency_key=uuid7())

    def fan(self, player, game, verb="PUT"):
        """The same by a game server, which needs no token of each player."""
        return self.good(verb, f"/v1/players/{player}/favorites/{game}", idempotency_key=uuid7())

    @staticmethod
    def names():
        """A game's id that no other test has."""
        return f"g-{uuid7()}"

    def count(self, game, query="", **headers):
        """(count, headers, the whole)"""
        status, head, answer = self.ask("GET", f"/v1/games/{game}/favorites/count{query}", **headers)
        self.assertEqual(status, 200, answer)
        return int(answer["count"].get("count", 0)), head, answer["count"]

    def metric(self, name):
        return self.cluster.router.metrics()[f"holdfast_router_count_{name}"]

    # ---- a player's own ----

    def test_a_player_favorites_lists_asks_and_takes_back(self):
        player, first, second = f"ada-{uuid7()}", self.names(), self.names()
        made = self.favorite(player, first)
        self.assertTrue(made["status"]["favorited"])
        self.assertEqual(made["edges"], 1)
        time.sleep(0.01)
        self.favorite(player, second)
        page = self.good("GET", f"/v1/users/{player}/favorites?limit=1", player)
        self.assertEqual([each["targetId"] for each in page["favorites"]], [second])
        rest = self.good("GET", f"/v1/users/{player}/favorites?limit=1&cursor={page['nextCursor']}", player)
        self.assertEqual([each["targetId"] for each in rest["favorites"]], [first])
        status = self.good("GET", f"/v1/favorites/status?user_id={player}&game_ids={first}&game_ids=other", player)
        self.assertEqual([each.get("favorited", False) for each in status["statuses"]], [True, False])
        own = self.good("GET", f"/v1/favorites/status?game_ids={first}", player)  # Whose, the token says.
        self.assertTrue(own["statuses"][0]["favorited"])
        self.assertFalse(self.favorite(player, first, "DELETE")["status"].get("favorited", False))
        page = self.good("GET", f"/v1/users/{player}/favorites", player)
        self.assertEqual([each["targetId"] for each in page["favorites"]], [second])

    def test_the_same_call_again_is_the_same_operation(self):
        player, game = f"bob-{uuid7()}", self.names()
        one = self.good("POST", f"/v1/favorites/{game}", player, idempotency_key="tap-1")
        two = self.good("POST", f"/v1/favorites/{game}", player, idempotency_key="tap-1")
        self.assertTrue(two["write"]["duplicate"])
        self.assertEqual(one["write"]["version"], two["write"]["version"])
        self.assertEqual(self.count(game, "?fresh=true")[0], 1)
        error, _ = self.bad(409, "op_id", "POST", f"/v1/favorites/{self.names()}", player, idempotency_key="tap-1")
        self.assertEqual(error["code"], "operation_id_mismatch")

    def test_a_token_is_for_its_player_and_for_what_idl_says(self):
        game = self.names()
        self.bad(403, "player_id", "GET", "/v1/users/eve/favorites", "ada")
        self.bad(403, "player_id", "GET", "/v1/favorites/status?user_id=eve&game_ids=a", "ada")
        self.bad(403, "player_id", "PUT", f"/v1/players/eve/favorites/{game}", "ada", idempotency_key=uuid7())
        self.bad(403, "player_id", "POST", f"/v1/favorites/{game}", "ada", body={"playerId": "eve"},
                 idempotency_key=uuid7())
        self.bad(403, "authorization", "POST", "/v1/favorites:batchFavorite", "ada", body={"requests": []})
        self.bad(403, "authorization", "GET", f"/v1/shards/0/favorites?game_id={game}", "ada")
        error, _ = self.bad(403, "op_id", "POST", f"/v1/favorites/{game}", "ada", idempotency_key="receipt:1")
        self.assertEqual(error["limit"], "a UUIDv7, or key:<anything>")
        self.assertEqual(self.count(game, "?fresh=true", player="ada")[0], 0)  # Counts are anyone's.

    def test_without_a_token_the_player_is_named(self):
        game = self.names()
        answer = self.good("POST", f"/v1/favorites/{game}", body={"playerId": "server-1"}, idempotency_key=uuid7())
        self.assertTrue(answer["status"]["favorited"])
        self.bad(400, "player_id", "POST", f"/v1/favorites/{game}", idempotency_key=uuid7())

    def test_what_is_malformed_is_named_and_changes_nothing(self):
        game = self.names()
        self.bad(400, "op_id", "POST", f"/v1/favorites/{game}", "ada")
        self.bad(400, "body", "DELETE", f"/v1/favorites/{game}", "ada", body={"ver": 3}, idempotency_key=uuid7())
        self.bad(400, "target_id", "POST", f"/v1/favorites/{'x' * 129}", "ada", idempotency_key=uuid7())
        self.bad(400, "page_size", "GET", "/v1/users/ada/favorites?limit=201", "ada")
        self.bad(400, "page_size", "GET", "/v1/users/ada/favorites?limit=-1", "ada")
        self.bad(400, "cursor", "GET", "/v1/users/ada/favorites?cursor=forged", "ada")
        error, _ = self.bad(404, "collection", "POST", f"/v1/favorites/{game}", "ada", body={"collection": "favorite"},
                            idempotency_key=uuid7())
        self.assertIn("favorites", error["message"])
        self.assertEqual(self.count(game, "?fresh=true")[0], 0)

    # ---- counts ----

    def test_a_count_is_exact_when_fresh_and_kept_for_a_while(self):
        game = self.names()
        for number in range(12):
            self.fan(f"fan-{number}", game)
        number, head, whole = self.count(game, "?fresh=true")
        self.assertEqual(number, 12)
        self.assertEqual((head["cache-control"], head["etag"]), ("no-store", 'W/"n12"'))
        self.assertLessEqual(int(whole["asOfFromMs"]), int(whole["asOfToMs"]))
        self.assertLess(abs(int(whole["asOfToMs"]) / 1000 - time.time()), 30)
        self.fan("fan-12", game)
        hits = self.metric("hits_total")
        kept, head, again = self.count(game)
        self.assertEqual(head["cache-control"], "private, max-age=2")
        if kept == 12:  # Else the machine was slower than count-age.
            self.assertEqual((again["asOfFromMs"], again["asOfToMs"]), (whole["asOfFromMs"], whole["asOfToMs"]))
            self.assertGreater(self.metric("hits_total"), hits)
        self.assertEqual(self.count(game, "?fresh=true")[0], 13)
        self.assertEqual(self.count(game)[0], 13)  # What was fresh is kept.
        self.fan("fan-12", game, "DELETE")
        wait_for("the count to be gathered again", lambda: self.count(game)[0] == 12, patience_s=AGE_S * 10)

    def test_a_count_that_is_known_is_not_sent_again(self):
        game = self.names()
        self.fan("fan", game)
        tag = self.count(game, "?fresh=true")[1]["etag"]
        status, head, answer = self.ask("GET", f"/v1/games/{game}/favorites/count", if_none_match=tag)
        self.assertEqual((status, head["etag"], answer), (304, tag, None))
        self.fan("fan-2", game)
        status, head, _ = self.ask("GET", f"/v1/games/{game}/favorites/count?fresh=true", if_none_match=tag)
        self.assertEqual((status, head["etag"]), (200, 'W/"n2"'))

    def test_collections_are_counted_apart(self):
        game = self.names()
        self.good("POST", f"/v1/favorites/{game}", "ada", body={"collection": "likes"}, idempotency_key=uuid7())
        self.assertEqual(self.count(game, "?fresh=true&collection=likes")[0], 1)
        self.assertEqual(self.count(game, "?fresh=true")[0], 0)

    def test_many_counts_in_one_call(self):
        games = [self.names() for _ in range(5)]
        for place, game in enumerate(games):
            for number in range(place):
                self.fan(f"fan-{number}", game)
        query = urllib.parse.urlencode({"game_ids": games, "fresh": "true"}, doseq=True)
        answer = self.good("GET", f"/v1/favorites/counts?{query}")
        self.assertEqual([(each["targetId"], int(each.get("count", 0))) for each in answer["counts"]],
                         list(zip(games, range(5))))
        self.assertEqual(self.good("POST", "/v1/favorites:batchGetCounts", body={"targetIds": games})["counts"],
                         answer["counts"])
        self.bad(400, "target_ids", "POST", "/v1/favorites:batchGetCounts", body={})
        self.bad(400, "target_ids", "POST", "/v1/favorites:batchGetCounts",
                 body={"targetIds": [str(number) for number in range(201)]})
        self.bad(400, "target_ids[1]", "POST", "/v1/favorites:batchGetCounts", body={"targetIds": ["a", "a"]})
        self.bad(400, "target_ids[1]", "POST", "/v1/favorites:batchGetCounts", body={"targetIds": ["a", "b\u0001"]})
        self.bad(400, "collection", "GET", "/v1/games/a/favorites/count?collection=No")
        error, _ = self.bad(404, "collection", "GET", "/v1/games/a/favorites/count?collection=like")
        self.assertIn("likes", error["message"])

    def test_callers_at_once_share_a_gather(self):
        game = self.names()
        self.fan("fan", game)
        before = self.metric("gathers_total")
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            counts = list(pool.map(lambda _: self.count(game)[0], range(200)))
        self.assertEqual(set(counts), {1})
        self.assertLess(self.metric("gathers_total") - before, 20)

    def test_every_favorite_is_in_the_count(self):
        game = self.names()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: self.fan(f"crowd-{number}", game), range(150)))
            list(pool.map(lambda number: self.fan(f"crowd-{number}", game, "DELETE"), range(0, 150, 3)))
        self.assertEqual(self.count(game, "?fresh=true")[0], 100)

    def test_z_a_silent_node_makes_counts_stale_or_unavailable(self):
        known, unknown = self.names(), self.names()
        self.fan("fan", known)
        self.assertEqual(self.count(known, "?fresh=true")[0], 1)
        time.sleep(AGE_S + 0.1)
        node = self.cluster.nodes[0]
        node.signal(signal.SIGSTOP)
        try:
            number, head, whole = self.count(known)
            self.assertEqual((number, whole["stale"]), (1, True))
            self.assertLess(int(whole["asOfToMs"]) / 1000, time.time() - AGE_S)
            self.assertEqual((head["cache-control"], head["etag"]), ("no-store", None))
            for target in (f"/v1/games/{unknown}/favorites/count", f"/v1/games/{known}/favorites/count?fresh=true"):
                status, head, answer = self.ask("GET", target)
                self.assertIn(status, (503, 504), answer)
                if status == 503:
                    self.assertGreaterEqual(int(head["retry-after"]), 1)
            self.assertGreaterEqual(self.metric("stale_total"), 1)
            self.assertGreaterEqual(self.metric("gathers_failed_total"), 1)
        finally:
            node.signal(signal.SIGCONT)

        def is_back():
            status, _, answer = self.ask("GET", f"/v1/games/{known}/favorites/count?fresh=true")
            return status == 200 and int(answer["count"]["count"]) == 1
        wait_for("the node to answer again", is_back)

    # ---- HTTP ----

    def test_a_page_of_the_allowed_origin_may_call(self):
        status, head, _ = self.ask("OPTIONS", "/v1/favorites/g1", origin=ORIGIN, access_control_request_method="POST",
                                   access_control_request_headers="authorization,idempotency-key")
        self.assertEqual((status, head["access-control-allow-origin"]), (204, ORIGIN))
        self.assertEqual(head["access-control-allow-methods"], "POST, DELETE")
        for name in ("authorization", "idempotency-key", "if-none-match"):
            self.assertIn(name, head["access-control-allow-headers"])
        self.assertIsNone(head["access-control-allow-credentials"])
        status, head, _ = self.ask("GET", "/v1/users/ada/favorites", "ada", origin=ORIGIN)
        self.assertEqual((status, head["access-control-allow-origin"]), (200, ORIGIN))
        self.assertIn("etag", head["access-control-expose-headers"])
        status, head, _ = self.ask("GET", "/v1/users/eve/favorites", "ada", origin=ORIGIN)  # Errors are read, too.
        self.assertEqual((status, head["access-control-allow-origin"]), (403, ORIGIN))
        _, head, _ = self.ask("OPTIONS", "/v1/favorites/g1", origin="https://evil.example")
        self.assertIsNone(head["access-control-allow-origin"])
        self.assertIsNone(head["access-control-allow-methods"])

    def test_paths_verbs_and_heads(self):
        _, head = self.bad(405, ":method", "GET", "/v1/favorites/g1")
        self.assertEqual(head["allow"], "POST, DELETE")
        _, head = self.bad(405, ":method", "POST", "/v1/games/g1/favorites/count")
        self.assertEqual(head["allow"], "GET, HEAD")
        self.bad(404, ":path", "GET", "/v1/games/g1/favourites/count")
        status, head, answer = self.ask("HEAD", f"/v1/games/{self.names()}/favorites/count")
        self.assertEqual((status, head["etag"], answer), (200, 'W/"n0"', None))


if __name__ == "__main__":
    unittest.main()
