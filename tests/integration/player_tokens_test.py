"""
Players' tokens: signed by PyJWT as an identity service would, with keys that a small HTTP server serves as a JWK Set.
A player reads what is its own in every form of the API, and nothing else; keys come and go; bad tokens, one or a flood
of them, are refused by name, and players with good ones do not notice.
"""

import base64
import http.server
import json
import os
import pathlib
import socket
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

from python_env import python_of

PYTHON = str(python_of(pathlib.Path(__file__).parent))
if sys.executable != PYTHON:
    os.execv(PYTHON, [PYTHON, *sys.orig_argv[1:]])

import grpc  # noqa: E402  (of that Python)
import jwt  # noqa: E402
from cryptography.hazmat.primitives import serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402

from client import Client, RpcError, uuid7  # noqa: E402
from cluster import SANITIZED, Cluster, ClusterTest, wait_for  # noqa: E402
from ports import free_port  # noqa: E402

AUDIENCE, ISSUER = "game", "https://id.example"
REFUSED = 'holdfast_router_player_tokens_refused_total{{reason="{}"}}'
ANSWERS_S = 10.0 if SANITIZED else 2.0  # For a good token while bad ones come in a flood.
AGAIN_S = 10  # Between two requests for keys.


class Issuer:
    """Keys, what it signs with them, and a server that tells their public halves at /keys."""

    def __init__(self):
        self.keys, self.listed, self.status, self.asked = {}, [], 200, 0
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802  (the name of http.server)
                issuer.asked += 1
                body = json.dumps(issuer.document()).encode()
                self.send_response(issuer.status)
                self.send_header("content-type", "application/jwk-set+json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, kid, key, listed=True):
        self.keys[kid] = key
        if listed:
            self.listed.append(kid)

    def document(self):
        return {"keys": [self.public(kid) for kid in self.listed]}

    def public(self, kid):
        key = self.keys[kid]
        if isinstance(key, bytes):
            return {"kty": "oct", "kid": kid, "k": base64.urlsafe_b64encode(key).rstrip(b"=").decode()}
        algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
        return algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid, "use": "sig"}

    def token(self, kid, player="ada", headers=None, algorithm=None, **claims):
        """With None in the place of a claim it has no such claim."""
        key, now = self.keys[kid], int(time.time())
        if algorithm is None:
            algorithm = "HS256" if isinstance(key, bytes) else "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": player, "iat": now, "exp": now + 600} | claims
        return jwt.encode({name: value for name, value in claims.items() if value is not None}, key, algorithm=algorithm,
                          headers={"kid": kid} | (headers or {}))


def rsa_key(bits=2048):
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def ec_key():
    return ec.generate_private_key(ec.SECP256R1())


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def with_signature(token, change):
    head, _, signature = token.rpartition(".")
    raw = bytearray(base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)))
    change(raw)
    return f"{head}.{b64(bytes(raw))}"


class PlayersTest(ClusterTest):
    options = {}

    @classmethod
    def plan(cls):
        cls.issuer = Issuer()
        cls.addClassCleanup(cls.issuer.server.server_close)
        cls.addClassCleanup(cls.issuer.server.shutdown)
        cls.issuer.add("rsa-1", rsa_key())
        cls.issuer.add("ec-1", ec_key())
        cls.tokens = []
        return Cluster(nodes=1, shards=4, options={"router": {
            "access": "open", "player-keys": cls.issuer.url, "player-audience": AUDIENCE, "player-issuer": ISSUER,
        } | cls.options})

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for("the keys", lambda: cls.cluster.router.metrics()["holdfast_router_player_keys"] == 2)
        for player, gold in (("ada", 7), ("eve", 9)):
            cls.client.grant(player, gold)

    @classmethod
    def tearDownClass(cls):
        """No token, and no player, is in a log."""
        try:
            for process in cls.cluster.processes():
                said = process.log()
                for token in cls.tokens:
                    assert token.rsplit(".", 1)[-1] not in said or len(token) < 60, f"a token is in {process.log_path}"
                assert "eyJ" not in said, f"a token is in {process.log_path}"
        finally:
            super().tearDownClass()

    def token(self, *arguments, **named):
        token = self.issuer.token(*arguments, **named)
        self.tokens.append(token)
        return token

    def balances(self, token, player="ada", endpoint=None):
        request = {"playerId": player} if player is not None else {}
        return Client(endpoint or self.cluster.endpoint, token).call("LedgerService/GetBalances", request)

    def refusal(self, token, method="LedgerService/GetBalances", request=None):
        """(RpcError, headers) of a call that must be refused."""
        client = Client(self.cluster.endpoint, token)
        status, headers, data = client.post(f"/holdfast.v1.{method}", json.dumps(request or {"playerId": "ada"}))
        self.assertGreaterEqual(status, 400, data)
        error = RpcError(status, json.loads(data), method)
        error.hold_against_the_headers(headers)
        return error, headers

    def count(self, reason):
        return self.cluster.router.metrics()[REFUSED.format(reason)]


class Players(PlayersTest):
    options = {"failure-rate": 100000, "player-token-rate": 0}

    def rest(self, path, token):
        """(status, headers, answer)"""
        request = urllib.request.Request(self.cluster.endpoint + path, headers={"authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, json.load(error)

    def grpc(self, token, player):
        """The answer's bytes; grpc.RpcError."""
        with grpc.insecure_channel(self.cluster.endpoint.removeprefix("http://")) as channel:
            call = channel.unary_unary("/holdfast.v1.LedgerService/GetBalances")
            name = player.encode()
            return call(b"\x0a" + bytes([len(name)]) + name, metadata=[("authorization", f"Bearer {token}")], timeout=30)

    def grpc_web(self, token, player):
        """grpc-status of an answer."""
        name = player.encode()
        message = b"\x0a" + bytes([len(name)]) + name
        client = Client(self.cluster.endpoint, token)
        _, headers, data = client.post("/holdfast.v1.LedgerService/GetBalances", b"\0" + len(message).to_bytes(4, "big") + message,
                                       {"content-type": "application/grpc-web+proto"})
        text = data.decode("latin-1")
        return headers.get("grpc-status") or text[text.index("grpc-status: ") + 13:].split("\r")[0]

    def connect(self, token, player):
        client = Client(self.cluster.endpoint, token)
        status, _, data = client.post("/holdfast.v1.LedgerService/GetBalances", json.dumps({"playerId": player}),
                                      {"connect-protocol-version": "1"})
        return status, json.loads(data)

    def test_a_player_reads_its_own_in_every_form(self):
        for kid in ("rsa-1", "ec-1"):
            token = self.token(kid)
            self.assertEqual(self.balances(token)["balances"], {"gold": 7})
            self.assertEqual(self.balances(token, None)["balances"], {"gold": 7})  # Its own where none is named.
            self.assertEqual(self.connect(token, "ada")[0], 200)
            self.assertEqual(self.rest("/v1/players/ada/balances", token)[2]["balances"], {"gold": 7})
            self.assertIn(b"gold", self.grpc(token, "ada"))
            self.assertEqual(self.grpc_web(token, "ada"), "0")

    def test_and_nobody_elses_in_any_form(self):
        token = self.token("ec-1")
        error, headers = self.refusal(token, request={"playerId": "eve"})
        self.assertEqual((error.status, error.code, error.field, error.limit, error.value),
                         (403, "PERMISSION_DENIED", "player_id", "the token's own player, or none", "eve"))
        self.assertNotIn("www-authenticate", headers)
        self.assertEqual(self.connect(token, "eve")[1]["code"], "permission_denied")
        self.assertEqual(self.rest("/v1/players/eve/balances", token)[0], 403)
        self.assertEqual(self.grpc_web(token, "eve"), "7")
        with self.assertRaises(grpc.RpcError) as caught:
            self.grpc(token, "eve")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_every_read_that_is_declared_and_no_other_method(self):
        token = self.token("rsa-1")
        client = Client(self.cluster.endpoint, token)
        for method in ("ProfileService/GetProfile", "LedgerService/GetBalances", "LedgerService/ListEntries",
                       "LedgerService/ListReservations", "InventoryService/ListItems", "MailboxService/ListMail",
                       "UserService/GetUser", "UserService/GetUserFlags"):
            client.call(method, {"playerId": "ada"})
            self.refused("PERMISSION_DENIED", client.call, method, {"playerId": "eve"})
        for method in ("LedgerService/Grant", "ProfileService/UpdateProfile", "ProfileService/BatchGetProfile",
                       "AdminService/GetSession", "AdminService/GetServiceInfo", "AdminService/ListPlayers",
                       "OperationService/GetOperation", "InventoryService/TraceItem", "SessionService/StartSession",
                       "TransactionService/ReadPlayers", "UserService/UpsertUser", "UserService/BatchGetUsers",
                       "UserService/ClaimName", "UserService/FindByName"):
            error = self.refused("PERMISSION_DENIED", client.call, method, {})
            self.assertEqual((error.field, error.limit), ("authorization", "an API key"), method)
        self.assertEqual(self.rest("/v1/players/ada/balances?page", token)[0], 400)

    def test_a_player_favorites_for_itself_alone(self):
        wait_for("favourites to be in force", lambda: self.cluster.client.call("DefinitionService/PutDefinition", {
            "name": "favorites", "opId": uuid7(), "waitMs": 20000,
            "body": {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}}})["definition"].get("inForce"))
        client = Client(self.cluster.endpoint, self.token("rsa-1"))
        made = client.call("FavoritesService/Favorite", {"opId": uuid7(), "targetId": "pong"})
        self.assertTrue(made["applied"])
        listed = client.call("FavoritesService/ListFavorites", {})["favorites"]
        self.assertEqual([each["targetId"] for each in listed], ["pong"])
        self.assertTrue(client.call("FavoritesService/Unfavorite", {"opId": uuid7(), "targetId": "pong"})["applied"])
        for method in ("Favorite", "Unfavorite"):
            error = self.refused("PERMISSION_DENIED", client.call, f"FavoritesService/{method}", {
                "playerId": "eve", "opId": uuid7(), "targetId": "pong"})
            self.assertEqual(error.field, "player_id")
        for method in ("BatchFavorite", "ListByTarget"):
            self.refused("PERMISSION_DENIED", client.call, f"FavoritesService/{method}", {})

    def test_a_broken_token_is_refused_by_the_claim_that_breaks_it(self):
        now = int(time.time())
        rs = self.issuer.public("rsa-1")
        pem = self.issuer.keys["rsa-1"].public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.issuer.keys["pem"] = pem + b"\0" * (-len(pem) % 2)
        self.issuer.keys["stranger"] = rsa_key()
        good = self.token("rsa-1")
        head, claims, signature = good.split(".")
        none = f"{b64(json.dumps({'alg': 'none', 'typ': 'JWT'}).encode())}.{claims}."
        hs = b64(json.dumps({"alg": "HS256", "kid": "rsa-1"}).encode())
        key = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        confused = [f"{hs}.{claims}.{b64(key.sign(f'{hs}.{claims}'.encode(), secret))}"
                    for secret in (pem, json.dumps(rs).encode(), base64.urlsafe_b64decode(rs["n"] + "=="))]
        cases = [
            ("expired", "exp", self.token("rsa-1", exp=now - 40)),
            ("form", "exp", self.token("rsa-1", exp=None)),
            ("not_yet", "nbf and iat", self.token("rsa-1", nbf=now + 120)),
            ("not_yet", "nbf and iat", self.token("ec-1", iat=now + 120)),
            ("audience", "aud", self.token("rsa-1", aud="shop")),
            ("audience", "aud", self.token("rsa-1", aud=["shop", "Game"])),
            ("audience", "aud", self.token("rsa-1", aud=None)),
            ("issuer", "iss", self.token("rsa-1", iss="https://id.example/")),
            ("issuer", "iss", self.token("rsa-1", iss=None)),
            ("subject", "sub", self.token("rsa-1", sub=None)),
            ("subject", "sub", self.token("rsa-1", player="x" * 101)),
            ("subject", "sub", self.token("rsa-1", player="a\nb")),
            ("unknown_key", "kid", self.token("stranger")),
            ("signature", "signature", self.token("stranger", headers={"kid": "rsa-1"})),
            ("signature", "signature", f"{head}.{self.token('rsa-1', player='eve').split('.')[1]}.{signature}"),
            ("form", "crit", self.token("rsa-1", headers={"crit": ["b64"], "b64": True})),
            ("algorithm", "alg", self.token("rsa-1", algorithm="RS512")),
            ("algorithm", "alg", self.token("rsa-1", algorithm="PS256")),
            ("form", "token", none), ("form", "token", "a.b"), ("form", "token", "x." + "a" * 9000 + ".b"),
            ("algorithm", "alg", none + "AA"),
            *[("algorithm", "alg", token) for token in confused],
        ]
        for reason, field, token in cases:
            before = self.count(reason)
            error, headers = self.refusal(token)
            self.assertEqual((error.status, error.code, error.field), (401, "UNAUTHENTICATED", field), error)
            self.assertIn(f"({reason})", error.message)
            self.assertEqual(headers["www-authenticate"], 'Bearer error="invalid_token"')
            self.assertEqual(self.count(reason), before + 1, error)
            for part in token.split("."):
                self.assertFalse(len(part) > 8 and part in json.dumps(error.detail), "the error repeats the token")
        self.balances(good)

    def test_no_byte_of_a_token_can_change(self):
        for kid in ("rsa-1", "ec-1"):
            good = self.token(kid)
            client = Client(self.cluster.endpoint)
            for place in range(0, len(good), 11):
                broken = good[:place] + ("A" if good[place] != "A" else "B") + good[place + 1:]
                client.headers = {"authorization": f"Bearer {broken}"}
                self.refused("UNAUTHENTICATED", client.call, "LedgerService/GetBalances", {"playerId": "ada"})
            for place in (0, 31, -1):
                def flip(raw, place=place):
                    raw[place] ^= 1
                self.assertEqual(self.refusal(with_signature(good, flip))[0].field, "signature")
            self.balances(good)

    def test_clocks_may_differ_by_the_skew_and_no_more(self):
        now = int(time.time())
        self.balances(self.token("ec-1", exp=now - 15))
        self.balances(self.token("ec-1", nbf=now + 20, iat=now + 20))
        self.assertEqual(self.refusal(self.token("ec-1", exp=now - 31))[0].field, "exp")

    def test_a_token_that_was_proven_is_proven_once_and_ends_when_it_expires(self):
        token = self.token("rsa-1", exp=int(time.time()) - 27)  # Three seconds, by the skew of 30.
        before = self.cluster.router.metrics()["holdfast_router_player_signatures_total"]
        for _ in range(5):
            self.balances(token)
        self.assertEqual(self.cluster.router.metrics()["holdfast_router_player_signatures_total"], before + 1)
        wait_for("the token to expire", lambda: self.is_refused(token))

    def is_refused(self, token):
        try:
            self.balances(token)
        except RpcError as error:
            self.assertEqual(error.code, "UNAUTHENTICATED")
            return True
        return False

    def test_what_brings_nothing_is_told_how(self):
        router = self.second("router-keys", {"access": "keys", "player-keys": self.issuer.url})
        request = urllib.request.Request(f"{router}/v1/players/ada/balances")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        with caught.exception as error:
            self.assertEqual((error.code, error.headers["www-authenticate"]), (401, "Bearer"))
        self.assertEqual(self.balances(self.token("ec-1"), endpoint=router)["balances"], {"gold": 7})

    def second(self, name, options):
        """The endpoint of another router of the cluster."""
        port = free_port()
        process = self.cluster.plan("router", name, {
            "listen": f"127.0.0.1:{port}", "player-audience": AUDIENCE, "access": "open"} | options)
        self.addCleanup(process.stop)
        process.start()
        wait_for(f"{name} to be ready", process.ready)
        if "player-keys" in options:
            wait_for("the keys", lambda: process.metrics()["holdfast_router_player_keys"] > 0)
        self.other = process
        return f"http://127.0.0.1:{port}"

    def test_shared_secrets_come_from_a_file_which_is_followed(self):
        path = self.cluster.dir / "players.json"
        issuer = Issuer()
        self.addCleanup(issuer.server.server_close)
        self.addCleanup(issuer.server.shutdown)
        issuer.add("mac-1", os.urandom(32))
        issuer.add("short", os.urandom(31))
        path.write_text(json.dumps(issuer.document()))
        router = self.second("router-file", {"player-keys": path, "player-token-rate": 5})
        first = issuer.token("mac-1")
        self.assertEqual(self.balances(first, endpoint=router)["balances"], {"gold": 7})
        self.assertIn("left_out=1", self.other.log())
        with self.assertRaises(RpcError) as caught:
            for _ in range(50):
                self.balances(first, endpoint=router)
        self.assertEqual((caught.exception.code, caught.exception.status), ("THROTTLED", 429))
        issuer.add("mac-2", os.urandom(64))
        issuer.listed = ["mac-2"]
        part = path.with_suffix(".part")
        part.write_text(json.dumps(issuer.document()))
        part.rename(path)
        wait_for("the new key", lambda: self.balances(issuer.token("mac-2", player="eve"), "eve", router))
        self.refused("UNAUTHENTICATED", self.balances, issuer.token("mac-1", player="bob"), "bob", router)

    def test_a_router_does_not_start_without_an_audience_or_with_no_key(self):
        path = self.cluster.dir / "empty.json"
        path.write_text('{"keys": []}')
        for name, options, said in (("router-lax", {"player-audience": "", "player-keys": self.issuer.url}, "player_audience"),
                                    ("router-told", {"player-audience": AUDIENCE, "player-keys": "http://a:pass-word@127.0.0.1/"}, "password"),
                                    ("router-void", {"player-audience": AUDIENCE, "player-keys": path}, "player_keys")):
            process = self.cluster.plan("router", name, {"listen": f"127.0.0.1:{free_port()}"} | options)
            process.start()
            self.assertNotEqual(process.wait_exit(), 0)
            self.assertIn(said, process.log())
            self.assertNotIn("pass-word", process.log())


class Rotation(PlayersTest):
    options = {"failure-rate": 100000, "player-token-rate": 0}

    def works(self, token):
        try:
            self.balances(token)
        except RpcError as error:
            self.assertEqual(error.code, "UNAUTHENTICATED")
            return False
        return True

    def test_keys_come_and_go_without_a_restart(self):
        old = self.token("rsa-1")
        self.assertTrue(self.works(old))
        # One that is new is asked for, at most every ten seconds, when a token names it.
        self.issuer.add("ec-2", ec_key())
        new = self.token("ec-2")
        began, asked = time.monotonic(), self.issuer.asked
        wait_for("the new key", lambda: self.works(new))
        self.assertLessEqual(self.issuer.asked - asked, 1 + (time.monotonic() - began) / AGAIN_S)
        self.assertTrue(self.works(old))
        # One that is no longer listed goes with the next document.
        self.issuer.listed = ["ec-1", "ec-2", "ec-3"]
        self.issuer.keys["ec-3"] = ec_key()
        wait_for("the next key", lambda: self.works(self.token("ec-3")))
        self.assertFalse(self.works(old))
        self.assertEqual(self.refusal(old)[0].field, "kid")
        # A server that fails changes nothing.
        failures = "holdfast_router_player_keys_failures_total"
        self.issuer.status = 500
        wait_for("a request that fails", lambda: self.works(self.token("rsa-1", headers={"kid": "no-such"}))
                 or self.cluster.router.metrics()[failures] > 0)
        self.assertTrue(self.works(self.token("ec-3")))
        self.assertIn("player_keys.not_read", self.cluster.router.log())
        self.assertIn("HTTP 500", self.cluster.router.log())
        self.issuer.status = 200


class Flood(PlayersTest):
    def flood(self, host, tokens, until, answers):
        """One address that sends bad tokens as fast as they are answered."""
        sock = None
        place = 0
        while time.monotonic() < until:
            try:
                if sock is None:
                    sock = socket.create_connection(("127.0.0.1", self.cluster.port), 10, (host, 0))
                token = tokens[place % len(tokens)]
                sock.sendall(f"POST /holdfast.v1.LedgerService/GetBalances HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                             f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"
                             f"content-length: 2\r\n\r\n{{}}".encode())
                answers.append(sock.recv(65536)[9:12])
                place += 1
            except OSError:
                sock = None
        if sock is not None:
            sock.close()

    def come_in(self, player):
        """How often a player with a new token was told to come again."""
        token = self.token("ec-1", player=player)
        for times in range(100):
            try:
                self.balances(token, player)
                return times
            except RpcError as error:
                self.assertEqual((error.code, error.action), ("THROTTLED", "RETRY_SAME"))
                time.sleep(error.retry_after_ms / 1e3)
        self.fail(f"{player} never came in")
        return None

    def test_a_flood_of_bad_tokens_costs_the_router_a_share_of_its_time(self):
        good = self.token("rsa-1")
        self.balances(good)

        def flip(raw):
            raw[3] ^= 1
        bad = [with_signature(self.token("ec-1", player=f"p{i}"), flip) for i in range(20)]
        bad += [with_signature(self.token("rsa-1", player=f"p{i}"), flip) for i in range(20)]
        answers, slowest, fresh, late = [], 0.0, 0, 0
        before = self.cluster.router.metrics()
        began = time.monotonic()
        until = began + 8
        threads = [threading.Thread(target=self.flood, args=(f"127.0.1.{i + 1}", bad, until, answers)) for i in range(8)]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            sent = time.monotonic()
            self.balances(good)
            slowest = max(slowest, time.monotonic() - sent)
            late += self.come_in(f"fresh-{fresh}")
            fresh += 1
            time.sleep(0.12)
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        after = self.cluster.router.metrics()
        signatures = after["holdfast_router_player_signatures_total"] - before["holdfast_router_player_signatures_total"]
        refused = after[REFUSED.format("signature")] - before[REFUSED.format("signature")]
        print(f"{len(answers)} bad tokens in {took:.1f} s, {refused:.0f} of them looked at, {fresh} new good ones ({late} times to come again), "
              f"a good one took {slowest * 1e3:.0f} ms at most")
        self.assertGreater(answers.count(b"401"), 0)
        self.assertGreater(answers.count(b"429"), 0)
        self.assertEqual(set(answers) - {b"401", b"429", b""}, set())
        self.assertLessEqual(refused, 8 * 50 * (took + 2))
        self.assertEqual(signatures, refused + fresh)
        self.assertGreater(fresh, 5)
        self.assertLess(slowest, ANSWERS_S)


if __name__ == "__main__":
    unittest.main(verbosity=2)
