"""
Metadata of targets over real processes: kept by the shards, or told by an HTTP endpoint that is slow, wrong, huge, down
or points elsewhere. Lists always go out; what is missing of them is said.
"""

import http.server
import json
import subprocess
import threading
import time
import unittest

import favorites_test
from client import Client, RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for

SHARDS = 8
AGE_MS = 300
TIMEOUT_MS = 400
GAMES = [f"game-{number}" for number in range(12)]


class Endpoint:
    """A small HTTP server that answers as `mode` says, and counts what it is asked."""

    def __init__(self, port=0):
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with endpoint.lock:
                    endpoint.asked.append((self.path, json.loads(body)))
                endpoint.answer(self, json.loads(body))

            def log_message(self, *_):
                pass

        self.lock, self.asked, self.mode = threading.Lock(), [], "good"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/games?key=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler, question):
        status, headers = 200, {}
        entries = [{"targetId": target, "title": f"Title of {target}", "attributes": {"of": question["collection"]}}
                   for target in question["targetIds"]]
        said = json.dumps({"metadata": entries}).encode()
        if self.mode == "slow":
            time.sleep(5 * TIMEOUT_MS / 1000)
        elif self.mode == "wrong":
            said = b"<html>not found</html>"
        elif self.mode == "failing":
            status = 503
        elif self.mode == "huge":
            said = b'{"metadata": ["' + b"x" * (1 << 20) + b'"]}'
        elif self.mode == "elsewhere":
            status, headers = 302, {"Location": f"http://127.0.0.1:{self.port}/other"}
        elif self.mode == "broken entry":
            entries[0]["thumbnailUrl"] = "javascript:alert(1)"
            said = json.dumps({"metadata": entries}).encode()
        try:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(said)))
            handler.end_headers()
            handler.wfile.write(said)
        except OSError:
            pass  # The router has given it up.

    def count(self):
        with self.lock:
            return len(self.asked)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class MetadataCalls(favorites_test.FavoriteCalls):
    def tell(self, target, **fields):
        return self.client.settle("FavoritesService/PutTargetMetadata", {"targetId": target, "opId": uuid7()} | fields)

    def told(self, *targets, **fields):
        return self.client.call("FavoritesService/BatchGetTargetMetadata", {"targetIds": list(targets)} | fields)

    def page(self, player="olga", **fields):
        return self.client.call("FavoritesService/ListFavorites", {"playerId": player, "include": ["metadata"]} | fields)

    def titles(self, page):
        return {each["targetId"]: each.get("metadata", {}).get("title") for each in page["favorites"]}

    def get(self, target, **headers):
        connection = Client(self.cluster.endpoint).connection(30)
        connection.request("GET", target, None, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(said) if said else None

    def metric(self, name):
        return self.cluster.router.metrics()[f"holdfast_router_{name}"]


class ShardsTest(MetadataCalls, ClusterTest):
    """Kept by PutTargetMetadata."""

    @classmethod
    def plan(cls):
        return Cluster(shards=SHARDS, options={"router": {"metadata-age": f"{AGE_MS}ms"}})

    def test_lists_have_what_was_written_and_change_with_it(self):
        for game in GAMES:
            self.favorite("olga", game)
            self.tell(game, title=f"The {game}", thumbnailUrl=f"https://i.example/{game}.png")
        self.favorite("olga", "bare")
        page = self.page()
        self.assertEqual(self.titles(page), {game: f"The {game}" for game in GAMES} | {"bare": None})
        self.assertNotIn("metadataIncomplete", page)
        self.assertNotIn("metadata", self.client.call("FavoritesService/ListFavorites", {"playerId": "olga"})
                         ["favorites"][0])
        version = self.told("game-0")["metadata"][0]["version"]
        with self.assertRaises(RpcError) as refused:
            self.tell("game-0", title="Late", ifVersion=int(version) - 1)
        self.assertEqual(refused.exception.code, "VERSION_CONFLICT")
        self.tell("game-0", title="Renamed", ifVersion=version)
        wait_for("the new title", lambda: self.titles(self.page())["game-0"] == "Renamed")
        gone = self.client.call("FavoritesService/DeleteTargetMetadata", {"targetId": "game-0"})
        self.assertTrue(gone["deleted"])
        wait_for("the title to go", lambda: self.titles(self.page())["game-0"] is None)
        self.assertNotIn("deleted", self.client.call("FavoritesService/DeleteTargetMetadata", {"targetId": "game-0"}))

    def test_tops_and_rest_include_it(self):
        for player in ("ada", "bob"):
            self.favorite(player, "tetris")
        self.tell("tetris", title="Tetris", attributes={"year": 1984})
        wait_for("a top list with a title", lambda: any(
            each.get("metadata", {}).get("title") == "Tetris" for each in
            self.get("/v1/games/top?window=all&include=metadata")[2].get("entries", [])))
        status, headers, page = self.get("/v1/users/ada/favorites?include=metadata")
        self.assertEqual((status, page["favorites"][0]["metadata"]["attributes"]), (200, {"year": 1984}))
        self.assertIsNone(headers["ETag"])  # A title may change without the list.
        self.assertIsNotNone(self.get("/v1/users/ada/favorites")[1]["ETag"])
        self.assertEqual(self.get("/v1/targets/metadata?game_ids=tetris")[2]["metadata"][0]["title"], "Tetris")
        self.assertEqual(self.get("/v1/users/ada/favorites?include=mail")[0], 400)

    def test_a_node_that_is_down_takes_nothing_from_the_list(self):
        self.favorite("piet", "zork")
        self.tell("zork", title="Zork")
        self.assertEqual(self.titles(self.page("piet")), {"zork": "Zork"})
        self.cluster.nodes[0].kill()
        try:
            wait_for("the list again", lambda: self.titles(self.page("piet")) == {"zork": "Zork"})
        finally:
            self.cluster.nodes[0].start()

    def test_an_unknown_collection_is_named(self):
        def named():
            try:
                self.assertTrue(self.told("zork", collection="favourites")["metadataIncomplete"])  # No coordinator yet.
                return False
            except RpcError as error:
                return error.code == "NOT_FOUND"
        wait_for("the collection to be unknown", named)

    def test_the_command_line(self):
        def run(*words):
            done = subprocess.run([BIN / "holdfast", "favorites", *words, "--endpoint", self.cluster.endpoint],
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        self.assertIn("Doom", run("describe", "doom", "--title", "Doom", "--attributes", '{"year": 1993}'))
        self.assertIn("Doom", run("metadata", "doom"))
        self.assertIn("deleted", run("undescribe", "doom"))
        self.assertIn("there was none", run("undescribe", "doom"))


class EndpointTest(MetadataCalls, ClusterTest):
    """Told by an endpoint that the definition names."""

    @classmethod
    def plan(cls):
        return Cluster(shards=SHARDS, options={"router": {
            "metadata-age": f"{AGE_MS}ms", "metadata-timeout": f"{TIMEOUT_MS}ms"}})

    def setUp(self):
        super().setUp()
        self.endpoint = Endpoint()
        self.addCleanup(self.endpoint.close)
        self.collection = f"c{uuid7()[-8:]}"  # None is known of.
        self.define(self.collection, metadataUrl=self.endpoint.url)
        self.put(f"haste_{self.collection}", {"rateRule": {
            "subject": self.collection, "limit": 1000000, "periodMs": 1000}})
        for game in GAMES:
            self.favorite("olga", game, collection=self.collection)

    def listed_titles(self):
        page = self.page(collection=self.collection)
        self.assertEqual(len(page["favorites"]), len(GAMES))
        return self.titles(page), page.get("metadataReason", "")

    def all_known(self):
        titles, reason = self.listed_titles()
        return titles == {game: f"Title of {game}" for game in GAMES} and reason == ""

    def test_a_list_is_one_question_and_then_none(self):
        self.assertTrue(self.all_known())
        self.assertEqual(self.endpoint.count(), 1)
        path, question = self.endpoint.asked[0]
        self.assertEqual((path, question["collection"]), ("/games?key=1", self.collection))
        self.assertEqual(sorted(question["targetIds"]), sorted(GAMES))
        self.assertTrue(self.all_known())
        self.assertEqual(self.endpoint.count(), 1)
        time.sleep(AGE_MS / 1000)
        self.endpoint.mode = "slow"
        before = time.monotonic()
        self.assertTrue(self.all_known())  # As it was, while it is asked again.
        self.assertLess(time.monotonic() - before, TIMEOUT_MS / 1000)
        wait_for("another question", lambda: self.endpoint.count() == 2)

    def gives(self, mode, words):
        """What goes wrong costs the list its titles, no more; and it is said."""
        self.endpoint.mode = mode
        before = time.monotonic()
        titles, reason = self.listed_titles()
        self.assertLess(time.monotonic() - before, 4 * TIMEOUT_MS / 1000 + 2)
        self.assertEqual(set(titles.values()), {None})
        self.assertIn(words, reason)
        self.assertEqual(self.client.call("AdminService/GetServiceInfo", {}).get("code"), None)
        self.endpoint.mode = "good"
        wait_for(f"titles after {mode}", self.all_known)

    def test_slow(self):
        self.gives("slow", "time")

    def test_wrong(self):
        self.gives("wrong", "JSON")

    def test_failing(self):
        self.gives("failing", "503")

    def test_huge(self):
        self.gives("huge", "524288")

    def test_a_redirect_is_not_followed(self):
        self.gives("elsewhere", "302")
        self.assertEqual({path for path, _ in self.endpoint.asked}, {"/games?key=1"})

    def test_one_entry_that_breaks_a_rule_is_left_out_alone(self):
        self.endpoint.mode = "broken entry"
        titles, reason = self.listed_titles()
        self.assertEqual(sum(title is None for title in titles.values()), 1)
        self.assertIn("rule", reason)

    def test_down_it_rests_and_comes_back(self):
        port = self.endpoint.port
        self.endpoint.close()
        failures = self.metric("metadata_failures_total")
        wait_for("the endpoint to rest", lambda: "rests" in self.listed_titles()[1])
        self.assertGreaterEqual(self.metric("metadata_endpoints_resting"), 1)
        self.assertGreaterEqual(self.metric("metadata_failures_total"), failures + 5)
        self.endpoint = Endpoint(port)
        self.addCleanup(self.endpoint.close)
        wait_for("titles again", self.all_known)

    def test_a_stranger_by_plain_http_is_not_asked(self):
        self.define(self.collection, metadataUrl="http://169.254.169.254/latest/meta-data/")
        wait_for("the new definition", lambda: "plain" in self.listed_titles()[1] or "rests" in self.listed_titles()[1])
        with self.assertRaises(RpcError) as refused:
            self.client.call("DefinitionService/PutDefinition", {
                "name": "bad", "opId": uuid7(), "body": {"collection": {
                    "conflictPolicy": "CONFLICT_POLICY_LAST_WRITE", "metadataUrl": "https://user@cms.example/"}}})
        self.assertEqual(refused.exception.code, "INVALID_ARGUMENT")


if __name__ == "__main__":
    unittest.main()
