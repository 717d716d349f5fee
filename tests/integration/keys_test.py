"""API keys: who may call what, from issue to revocation, over real processes."""

import base64
import json
import os
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from client import Client, RpcError, uuid7
from cluster import BIN, SANITIZED, Cluster, ClusterTest, wait_for

KEYS_MAX = 8192
SOON_S = 5.0 if SANITIZED else 1.0  # Within which a revocation must act.


class KeysTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=4, options={"router": {"access": "keys"}})

    def holdfast(self, *words, code=0, key=None):
        """(standard output, standard error) of the command line, against this cluster."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("HOLDFAST_")}
        environment |= {"HOLDFAST_ETCD": self.cluster.etcd_url, "HOLDFAST_CLUSTER": "it",
                        "HOLDFAST_ENDPOINT": self.cluster.endpoint}
        if key is not None:
            environment["HOLDFAST_KEY"] = key
        done = subprocess.run([BIN / "holdfast", *words], env=environment, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def issue(self, name, scopes, *options):
        """(key, id); the router knows it."""
        answer = json.loads(self.holdfast("key", "issue", name, "--scopes", scopes, "-o", "json",
                                          *options)[0])
        client = self.with_key(answer["key"])
        wait_for("the key to be known", lambda: self.is_known(client))
        return answer["key"], answer["id"]

    def with_key(self, key):
        return Client(self.cluster.endpoint, key)

    def is_known(self, client):
        try:
            client.call("LedgerService/GetBalances", {"playerId": "stranger"})
        except RpcError as error:
            return error.code != "UNAUTHENTICATED"
        return True

    def rest(self, verb, path, key=None, body=None):
        """(status, headers, answer) of a REST call."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        request = urllib.request.Request(self.cluster.endpoint + path, method=verb, headers=headers | {
            "content-type": "application/json", "idempotency-key": uuid7()}, data=body and json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, json.load(error)

    def test_rest_asks_for_the_same_keys(self):
        key, _ = self.issue("rest-payments", "payments")
        grant = {"currencies": {"gold": 5}, "reason": "test", "authority": "system:payments"}
        for verb, path, body in (("GET", "/v1/players/ada", None), ("POST", "/v1/players/ada:grant", grant)):
            self.assertEqual(self.rest(verb, path, key, body)[0], 200)
            status, headers, answer = self.rest(verb, path, None, body)
            self.assertEqual((status, answer["error"]["code"]), (401, "unauthenticated"))
            self.assertEqual(headers["holdfast-error"], "unauthenticated")
        status, headers, answer = self.rest("POST", "/v1/players/ada:grant", key, grant | {"authority": "system:match"})
        self.assertEqual((status, answer["error"]["code"]), (403, "permission_denied"))
        self.assertEqual(self.rest("POST", "/v1/shards:rebalance", key, {"dryRun": True})[0], 403)
        self.assertEqual(self.rest("GET", "/openapi.json")[0], 200)

    def refused(self, client, method, request):
        with self.assertRaises(RpcError) as caught:
            client.call(method, request)
        return caught.exception

    @staticmethod
    def grant(player, scope):
        return {"playerId": player, "opId": uuid7(), "authority": f"system:{scope}",
                "currencies": {"gold": 5}, "reason": "test"}

    def test_nothing_is_answered_without_a_key(self):
        for client in (self.with_key(None), self.with_key("hf_" + "0" * 64),
                       self.with_key("password")):
            for method, request in (("LedgerService/Grant", self.grant("a", "payments")),
                                    ("LedgerService/GetBalances", {"playerId": "a"}),
                                    ("SessionService/RegisterServer", {"name": "x"}),
                                    ("AdminService/GetCluster", {})):
                error = self.refused(client, method, request)
                self.assertEqual((error.code, error.status), ("UNAUTHENTICATED", 401))
        # Health is for everybody: load balancers have no key.
        self.assertEqual(self.cluster.router.get("/readyz")[0], 200)

    def test_a_key_opens_its_scope_and_nothing_else(self):
        shop, _ = self.issue("shop", "payments")
        reader, _ = self.issue("dashboard", "read")
        server, _ = self.issue("server", "game, read")
        answer = self.with_key(shop).call("LedgerService/Grant", self.grant("b", "payments"))
        self.assertEqual(answer["balances"]["gold"], 5)
        self.assertEqual(self.with_key(reader).call(
            "LedgerService/GetBalances", {"playerId": "b"})["balances"]["gold"], 5)

        error = self.refused(self.with_key(reader), "LedgerService/Grant",
                             self.grant("b", "payments"))
        self.assertEqual((error.code, error.status, error.value), ("PERMISSION_DENIED", 403, "read"))
        self.assertIn("payments", error.limit)
        error = self.refused(self.with_key(shop), "SessionService/RegisterServer", {"name": "x"})
        self.assertEqual((error.code, error.limit), ("PERMISSION_DENIED", "scope game"))
        error = self.refused(self.with_key(server), "AdminService/SetPolicy", {})
        self.assertEqual((error.code, error.limit), ("PERMISSION_DENIED", "scope admin"))
        self.with_key(server).call("SessionService/RegisterServer", {"name": "x"})

    def test_the_authority_in_a_message_is_not_believed_but_asked_of_the_key(self):
        server, _ = self.issue("server-2", "game")
        shop, _ = self.issue("shop-2", "payments")
        for scope in ("payments", "moderation", "admin", "mail", "match"):
            error = self.refused(self.with_key(server), "LedgerService/Grant",
                                 self.grant("c", scope))
            self.assertEqual((error.code, error.limit), ("PERMISSION_DENIED", f"scope {scope}"))
        error = self.refused(self.with_key(shop), "LedgerService/BatchGrant", {
            "requests": [self.grant("c", "payments"), self.grant("d", "admin")]})
        self.assertEqual((error.code, error.limit), ("PERMISSION_DENIED", "scope admin"))
        spend = self.grant("c", "payments") | {"authority": "unheld"}
        error = self.refused(self.with_key(shop), "LedgerService/Spend", spend)
        self.assertEqual(error.code, "PERMISSION_DENIED")
        error = self.refused(self.with_key(server), "LedgerService/Grant", self.grant("c", "root"))
        self.assertEqual((error.code, error.field),
                         ("INVALID_ARGUMENT", "authority"))
        balances = self.with_key(shop).call("LedgerService/GetBalances", {"playerId": "c"})
        self.assertEqual(balances.get("balances", {}), {})

    def test_a_key_or_a_header_says_the_authority_that_a_body_leaves_out(self):
        key, key_id = self.issue("shop-3", "payments, mail", "--authority", "system:payments")
        client = self.with_key(key)

        def paid(player, **headers):
            grant = self.grant(player, "payments")
            del grant["authority"]
            asked = self.with_key(key)
            asked.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
            asked.call("LedgerService/Grant", grant)
            return client.call("LedgerService/ListEntries", {"playerId": player})["entries"][0]["authority"]

        self.assertEqual(paid("i"), f"system:payments/{key_id}")
        self.assertEqual(paid("j", holdfast_authority="system:mail"), f"system:mail/{key_id}")
        parts = [self.grant("k", "mail"), self.grant("l", "mail")]
        del parts[1]["authority"]
        results = client.call("LedgerService/BatchGrant", {"requests": parts})["results"]
        self.assertEqual(["response" in result for result in results], [True, True])
        for header, code, limit in (
                ("system:admin", "PERMISSION_DENIED", "scope admin"),
                ("unheld", "PERMISSION_DENIED", "one of the scopes game, admin"),
                ("system:root", "INVALID_ARGUMENT", None), ("1-17-4", "INVALID_ARGUMENT", None)):
            with self.assertRaises(RpcError) as caught:
                paid("i", holdfast_authority=header)
            self.assertEqual(caught.exception.code, code)
            if limit is not None:
                self.assertEqual(caught.exception.limit, limit)
        self.assertEqual(caught.exception.field, "holdfast-authority")
        self.assertNotIn("1-17-4", json.dumps(caught.exception.detail))
        plain, _ = self.issue("shop-4", "payments")
        nothing = self.grant("i", "payments")
        del nothing["authority"]
        self.assertEqual(self.refused(self.with_key(plain), "LedgerService/Grant", nothing).field,
                         "authority")
        listed = json.loads(self.holdfast("key", "list", "-o", "json")[0])
        self.assertEqual([row["authority"] for row in listed if row["id"] == key_id],
                         ["system:payments"])
        for authority in ("unheld", "session:1-1-1", "system:admin", "system:read", "payments"):
            self.holdfast("key", "issue", "bad", "--scopes", "payments, read", "--authority",
                          authority, code=2)

    def authorities(self, client, player):
        answer = client.call("LedgerService/ListEntries", {"playerId": player, "ascending": True})
        return [entry["authority"] for entry in answer["entries"]]

    def test_a_ledger_tells_whose_key_it_was_first(self):
        old, old_id = self.issue("rotated-out", "payments, mail")
        new, new_id = self.issue("rotated-in", "payments, mail, admin")
        grant = self.grant("tess", "payments")
        self.with_key(old).call("LedgerService/Grant", grant)
        again = self.with_key(new).call("LedgerService/Grant", grant)
        self.assertTrue(again["write"]["duplicate"])
        mail = {"toPlayerIds": ["tess"], "opId": uuid7(), "authority": "system:mail", "currencies": {"gold": 1},
                "text": "hello"}
        self.with_key(new).call("MailboxService/DeliverMail", mail)
        self.with_key(new).call("LedgerService/ReverseEntry", {
            "playerId": "tess", "opId": uuid7(), "authority": "system:admin", "targetOpId": grant["opId"],
            "reason": "chargeback"})
        self.assertEqual(self.authorities(self.with_key(new), "tess"), [
            f"system:payments/{old_id}", f"system:mail/{new_id}", f"system:admin/{new_id}"])
        exported, _ = self.holdfast("ledger", "export", "--player", "tess", key=new)
        path = self.cluster.dir / "tess.jsonl"
        path.write_text(exported)
        self.assertIn("0 faults", self.holdfast("ledger", "verify", str(path))[0])
        path.write_text(exported.replace(old_id, new_id))
        self.assertIn("entry 1 was edited", self.holdfast("ledger", "verify", str(path), code=1)[0])
        self.assertIn(old_id, self.holdfast("ledger", "list", "tess", key=new)[0])

    def test_no_caller_says_whose_key_it_is(self):
        key, key_id = self.issue("forger", "admin, payments")
        error = self.refused(self.with_key(key), "LedgerService/Grant", self.grant("uma", "admin/0a1b2c3d4e5f"))
        self.assertEqual((error.code, error.field), ("INVALID_ARGUMENT", "authority"))
        # The field by which a router tells a node, written by the caller: the router's own comes behind it.
        forged, op_id = b"0a1b2c3d4e5f", uuid7().encode()
        body = (b"\x0a\x03uma" + b"\x12" + bytes([len(op_id)]) + op_id + b"\x22\x0csystem:admin"
                + b"\x52\x08\x0a\x04gold\x10\x05" + b"\xfa\x7f" + bytes([len(forged)]) + forged)
        request = urllib.request.Request(
            self.cluster.endpoint + "/holdfast.v1.LedgerService/Grant", data=body,
            headers={"authorization": f"Bearer {key}", "content-type": "application/proto"})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(self.authorities(self.with_key(key), "uma"), [f"system:admin/{key_id}"])

    def test_what_is_refused_before_it_is_understood_names_its_key(self):
        key, key_id = self.issue("mumbler", "game")
        request = urllib.request.Request(
            self.cluster.endpoint + "/holdfast.v1.LedgerService/Grant", data=b"{not json",
            headers={"authorization": f"Bearer {key}", "content-type": "application/json"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        caught.exception.close()
        self.assertEqual(caught.exception.code, 400)
        lines = [line for line in self.cluster.router.log().splitlines()
                 if "request.refused" in line and key_id in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("why=invalid_argument", lines[0])
        self.assertIn("peer=127.0.0.1:", lines[0])
        self.assertIn("method=holdfast.v1.LedgerService/Grant", lines[0])

    def test_a_revocation_acts_within_a_second(self):
        key, key_id = self.issue("short", "payments")
        client = self.with_key(key)
        client.call("LedgerService/Grant", self.grant("e", "payments"))
        self.holdfast("key", "revoke", key_id)
        revoked = time.monotonic()
        wait_for("the key to be refused", lambda: not self.is_known(client))
        self.assertLess(time.monotonic() - revoked, SOON_S)
        error = self.refused(client, "LedgerService/Grant", self.grant("e", "payments"))
        self.assertEqual(error.code, "UNAUTHENTICATED")

    def test_keys_are_listed_without_their_secret_and_hashed_at_rest(self):
        key, key_id = self.issue("listed", "game,moderation", "--rate", "500", "--expires-days",
                                 "30")
        listed = json.loads(self.holdfast("key", "list", "-o", "json")[0])
        row = next(row for row in listed if row["id"] == key_id)
        self.assertEqual((row["name"], row["scopes"], row["rate"]),
                         ("listed", "game, moderation", 500))
        stored = subprocess.run(["etcdctl", f"--endpoints={self.cluster.etcd_url}", "get",
                                 "--prefix", "/holdfast/"], capture_output=True, check=True,
                                env=os.environ | {"ETCDCTL_API": "3"}).stdout.decode(errors="replace")
        self.assertIn(key_id, stored)
        for text in (stored, self.holdfast("key", "list")[0], self.cluster.router.log()):
            self.assertNotIn(key[3:], text)

    def etcd(self, call, body):
        request = urllib.request.Request(f"{self.cluster.etcd_url}/v3/kv/{call}", data=json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def test_no_key_is_issued_that_routers_would_not_know(self):
        def coded(text):
            return base64.b64encode(text.encode()).decode()
        _, key_id = self.issue("pattern", "read", "--expires-days", "1")
        found = self.etcd("range", {"key": coded("/holdfast/"), "range_end": coded("/holdfast0")})["kvs"]
        pattern = next(kv for kv in found if base64.b64decode(kv["key"]).decode().endswith(key_id))
        name, record = (base64.b64decode(pattern[part]).decode() for part in ("key", "value"))
        digest = json.loads(record)["digest"]
        there = len(json.loads(self.holdfast("key", "list", "-o", "json")[0]))
        others = [os.urandom(6).hex() for _ in range(KEYS_MAX - there)]
        puts = [{"requestPut": {"key": coded(name.replace(key_id, other)), "value": coded(
            record.replace(digest, other + os.urandom(26).hex()).replace(key_id, other))}} for other in others]
        for first in range(0, len(puts), 128):
            self.etcd("txn", {"success": puts[first:first + 128]})
        try:
            self.assertIn(f"has {KEYS_MAX} keys, at most {KEYS_MAX}; 0 of them have expired",
                          self.holdfast("key", "issue", "one-more", "--scopes", "read", code=1)[1])
            self.holdfast("key", "revoke", others[7])
            key, _ = self.issue("one-more", "read")
            self.assertTrue(self.is_known(self.with_key(key)))
        finally:
            drops = [{"requestDeleteRange": {"key": put["requestPut"]["key"]}} for put in puts]
            for first in range(0, len(drops), 128):
                self.etcd("txn", {"success": drops[first:first + 128]})

    def test_a_key_is_throttled_at_its_rate(self):
        key, _ = self.issue("slow", "read", "--rate", "1")
        client = self.with_key(key)
        codes = set()
        for _ in range(50):
            try:
                client.call("LedgerService/GetBalances", {"playerId": "f"})
            except RpcError as error:
                codes.add((error.status, error.code, 0 < error.retry_after_ms <= 1000))
        self.assertEqual(codes, {(429, "THROTTLED", True)})

    def test_the_command_line_takes_a_key(self):
        key, _ = self.issue("operator", "admin, read")
        self.assertIn("no API key", self.holdfast("status", code=1)[1])
        self.assertIn("node-1", self.holdfast("status", key=key)[0])

    def test_a_server_goes_on_while_its_key_is_rotated(self):
        old_key, old_id = self.issue("arena", "game,read", "--rate", "700")
        foreign, _ = self.issue("stranger", "game,read")
        old = self.with_key(old_key)
        server = old.register("arena-1")
        token = old.start("rotated", server)["token"]
        answer = json.loads(self.holdfast("key", "issue", "arena-2027", "--replaces", "arena", "-o", "json")[0])
        self.assertEqual(answer["scopes"], "game, read")
        new = self.with_key(answer["key"])
        wait_for("the new key to be known", lambda: self.is_known(new))
        row = next(row for row in json.loads(self.holdfast("key", "list", "-o", "json")[0])
                   if row["id"] == answer["id"])
        self.assertEqual((row["replaces"], row["rate"]), (old_id, 700))
        new.renew(server, ("rotated", token))
        new.start("rotated-too", server)
        self.refused(self.with_key(foreign), "SessionService/RenewSessions", {
            "incarnation": server, "sessions": [{"playerId": "rotated", "token": token}]})
        second = new.register("arena-2")  # Of both, too: not all callers change at the same time.
        old.renew(second)
        self.holdfast("key", "revoke", old_id)
        third, _ = self.issue("arena-2028", "game,read", "--replaces", answer["id"])
        self.with_key(third).renew(server, ("rotated", token))
        self.with_key(third).end("rotated", token)
        self.assertIn("there is no key", self.holdfast("key", "issue", "x", "--replaces", "arena", code=1)[1])

    def test_a_key_made_elsewhere_is_registered(self):
        path = self.cluster.dir / "a.key"
        path.write_text("hf_" + "ab" * 32 + "\n")
        for _ in range(2):  # Again is the same.
            out, _ = self.holdfast("key", "issue", "from-a-secret", "--scopes", "read", "--from",
                                   str(path))
            self.assertEqual(out, "")
        wait_for("the key", lambda: self.is_known(self.with_key("hf_" + "ab" * 32)))
        path.write_text("hf_abc\n")
        self.holdfast("key", "issue", "bad", "--scopes", "read", "--from", str(path), code=2)
        self.holdfast("key", "issue", "bad", "--scopes", "everything", code=2)
        self.holdfast("key", "issue", "bad", code=2)
        self.holdfast("key", "revoke", "no-key-has-this", code=1)

    def test_while_etcd_is_away_known_keys_work(self):
        key, _ = self.issue("lasting", "payments")
        client = self.with_key(key)
        self.cluster.etcd.signal(19)  # SIGSTOP
        try:
            client.call("LedgerService/Grant", self.grant("g", "payments"))
            self.assertEqual(self.refused(self.with_key("hf_" + "1" * 64), "LedgerService/Grant",
                                          self.grant("g", "payments")).code, "UNAUTHENTICATED")
        finally:
            self.cluster.etcd.signal(18)

    def test_refusals_are_counted_by_reason(self):
        name = 'holdfast_router_refused_total{reason="no_key"}'
        before = self.cluster.router.metrics()[name]
        self.refused(self.with_key(None), "LedgerService/GetBalances", {"playerId": "h"})
        self.assertEqual(self.cluster.router.metrics()[name], before + 1)
        self.assertGreater(self.cluster.router.metrics()["holdfast_router_api_keys"], 0)


if __name__ == "__main__":
    unittest.main()
