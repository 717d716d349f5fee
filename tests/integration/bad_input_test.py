"""
Bad input on the public port: the right code, what was wrong by field, limit and value, nothing
changed, and a connection that goes on or is closed in good order.
"""

import contextlib
import json
import socket
import unittest

from as_of import parse, token
from client import PAYMENTS, Unanswered, grant_of, uuid7
from cluster import ClusterTest, wait_for

GRANT = "/holdfast.v1.LedgerService/Grant"
UPDATE = "/holdfast.v1.ProfileService/UpdateProfile"
MAX_AMOUNT = 2**53 - 1
GOLD = 'currencies["gold"].amount'


class BadInput(ClusterTest):
    def setUp(self):
        self.player = f"player-{uuid7()}"
        self.client.grant(self.player, 100)
        self.before = self.client.profile(self.player)

    def tearDown(self):
        """Nothing changed, and this thread's connection still serves."""
        self.assertEqual(self.client.profile(self.player), self.before)

    def raw(self, body, path=GRANT, **headers):
        """(status, ErrorDetail, body) of a POST of these bytes."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        status, _, data = self.client.post(path, body, names)
        answer = json.loads(data)
        return status, answer.get("error", {}), answer

    def invalid(self, body, field=None, path=GRANT, limit=True):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        status, detail, answer = self.raw(body, path)
        self.assertEqual(status, 400, answer)
        self.assertEqual(answer["code"], "invalid_argument")
        self.assertEqual(detail.get("code"), "invalid_argument")
        self.assertTrue(answer.get("message"), answer)
        self.assertEqual((detail["outcome"], detail["action"]), ("not_applied", "fix"))
        if field is not None:
            names = (field,) if isinstance(field, str) else field
            self.assertIn(detail.get("field", ""), names, answer)
        if limit:
            self.assertTrue(detail.get("limit"), answer)
        return detail

    def grant(self, **changes):
        return grant_of(self.player, 5) | changes

    def test_bodies_that_are_no_json_object(self):
        for body in (b"", b"{", b"[]", b"null", b'"x"', b"5", b"{}{}", b"{,}", b"\x00",
                     b"{'a':1}", b'{"playerId":"a",}', b"nul", b"{\"playerId\" \"x\"}"):
            with self.subTest(body=body):
                self.invalid(body, limit=False)

    def test_wrong_json_types(self):
        for changes, field in (
                ({"playerId": 5}, "player_id"), ({"playerId": {}}, "player_id"),
                ({"playerId": ["a"]}, "player_id"), ({"attempt": "many"}, "attempt"),
                ({"attempt": -1}, "attempt"), ({"attempt": 1.5}, "attempt"),
                ({"attempt": 2**32}, "attempt"), ({"authority": "root"}, "authority"),
                ({"currencies": {}}, "currencies"),
                ({"currencies": [5]}, "currencies[0]"),
                ({"currencies": [None]}, "currencies[0]"),
                ({"currencies": [{"currency": "gold", "amount": "five"}]},
                 GOLD),
                ({"currencies": [{"currency": "gold", "amount": True}]}, GOLD),
                ({"currencies": [{"currency": "gold", "amount": 1.25}]}, GOLD),
                ({"currencies": [{"currency": "gold", "amount": str(2**63)}]}, GOLD)):
            with self.subTest(changes=changes):
                self.invalid(self.grant(**changes), field)

    def test_unknown_and_doubled_fields(self):
        detail = self.invalid(self.grant(amonut=7), "amonut")
        self.assertIn("holdfast.v1.GrantRequest", detail["limit"])
        self.invalid(self.grant(items=[{"kind": "sword", "x": 1}]), "items[0].x")
        text = json.dumps(self.grant())
        self.invalid(text[:-1] + ',"playerId":"other"}', "playerId")
        self.invalid(text[:-1] + ',"player_id":"other"}', ("playerId", "player_id"))

    def test_an_authority_that_is_none(self):
        for authority in ("", {}, {"unheld": {}}, {"system": {"scope": "payments"}}, 1, "system", "system:",
                          "system:root", "system:game", "system:" + "x" * 300, "unheld ", "Unheld",
                          "\x1a", "\x12\x0a\x0a\x08payments"):
            with self.subTest(authority=authority):
                self.invalid(self.grant(authority=authority), "authority")
        request = self.grant()
        del request["authority"]
        self.assertTrue(self.invalid(request)["field"].startswith("authority"))

    def test_missing_operation_id(self):
        request = self.grant()
        del request["opId"]
        self.invalid(request, "op_id")

    def test_malformed_tokens(self):
        for token in ("", "x", "1-2", "1-2-3-4", "-1-2-3", "1-2-99999999999999999999", "0x1-1-1",
                      " 1-1-1", "1-1-1 ", "t" * 300, "1-1-1\u0000", "１-１-１"):
            with self.subTest(token=token):
                refused = self.invalid(self.grant(authority=f"session:{token}"), "authority", limit=False)
                if len(token) > 5:
                    self.assertNotIn(token, json.dumps(refused))
                self.invalid(self.grant(authority=token), "authority", limit=False)
        # Well formed, but no player's.
        self.refused("SESSION_LOST", self.client.call, "LedgerService/Grant",
                     self.grant(authority="session:1-1-1"))

    def test_invalid_utf_8(self):
        good = json.dumps(self.grant()).encode()
        for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"):
            with self.subTest(bad=bad):
                self.invalid(good.replace(self.player.encode(), b"a" + bad), limit=False)
        for escape in (b"\\ud800", b"\\udc00x", b"\\u12"):
            with self.subTest(escape=escape):
                self.invalid(good.replace(self.player.encode(), escape), limit=False)
        binary = b"\x0a\x02\xff\xfe"
        status, _, answer = self.raw(binary, content_type="application/proto")
        self.assertEqual((status, answer["code"]), (400, "invalid_argument"))

    def test_amounts(self):
        for amount in (0, -1, -2**63, MAX_AMOUNT + 1, 2**63 - 1):
            with self.subTest(amount=amount):
                detail = self.invalid(grant_of(self.player, str(amount)), GOLD)
                self.assertEqual(detail["value"], str(amount))
                self.invalid(grant_of(self.player, str(amount)) | {"authority": "unheld"},
                             GOLD, "/holdfast.v1.LedgerService/Spend")

    def test_a_bare_number_that_may_have_been_rounded(self):
        for amount in (-2**63, 2**53 + 1, 2**63 - 1):
            with self.subTest(amount=amount):
                detail = self.invalid(grant_of(self.player, amount), GOLD)
                self.assertEqual(detail["value"], str(amount))
                self.assertIn("put it in quotes", detail["message"])

    def test_a_balance_may_not_pass_its_maximum(self):
        error = self.refused("CAPACITY_FULL", self.client.grant, self.player, MAX_AMOUNT)
        self.assertTrue(error.final)
        self.assertTrue(error.limit)
        self.assertEqual(error.field, GOLD)
        self.refused("CAPACITY_FULL", self.client.grant, self.player, MAX_AMOUNT - 99)

    def test_a_balance_may_not_fall_below_its_minimum(self):
        error = self.refused("INSUFFICIENT_FUNDS", self.client.call, "LedgerService/Spend",
                             grant_of(self.player, 101) | {"authority": "unheld"})
        self.assertTrue(error.final)
        self.assertIn("100", error.value + error.limit + error.message)

    def test_a_spend_of_two_currencies_is_all_or_nothing(self):
        request = grant_of(self.player, 60) | {"authority": "unheld"}
        request["currencies"]["gems"] = 1
        self.refused("INSUFFICIENT_FUNDS", self.client.call, "LedgerService/Spend", request)

    def test_currencies(self):
        for name in ("doubloons", "", "GOLD", "gold ", "x" * 33, "go\u0000ld", "gold\u00e9"):
            with self.subTest(name=name):
                self.invalid(grant_of(self.player, 5, currency=name), (
                    f'currencies["{name}"].currency', "currencies[0].currency", 'currencies["gold?"].currency'))
        self.assertIn("gold", self.invalid(grant_of(self.player, 5, currency="doubloons"))["limit"])
        gold = {"currency": "gold", "amount": "1"}
        self.invalid(self.grant(currencies=[gold, gold]), 'currencies["gold"]')
        self.invalid(self.grant(currencies=[gold] * 17))
        self.invalid(self.grant(currencies=[]))

    def test_player_ids(self):
        for player in ("", "x" * 101, "é" * 51, "a\nb", "a\u0000b", "a\u007fb", "\u0085"):
            with self.subTest(player=player):
                self.invalid(grant_of(player, 5), ("player_id", "playerId"))
                self.invalid({"playerId": player}, ("player_id", "playerId"),
                             "/holdfast.v1.ProfileService/GetProfile")
        self.client.grant("x" * 100, 1)
        self.client.grant("é" * 50, 1)

    def test_entities_of_operations(self):
        for entity in ("", "player:", "42", "dragon:42", "player:" + "x" * 101, "player:a\nb"):
            with self.subTest(entity=entity):
                for method in ("GetOperation", "ResolveOperation"):
                    self.invalid({"entity": entity, "opId": uuid7(), }, "entity",
                                 f"/holdfast.v1.OperationService/{method}")

    def test_items_and_reasons(self):
        item = {"kind": "sword"}
        for changes in ({"items": [{"kind": ""}]}, {"items": [{"kind": "k" * 65}]},
                        {"items": [item] * 65}, {"reason": "r" * 65}, {"reason": "a\nb"},
                        {"items": [item | {"attributes": "[1]"}]},
                        {"items": [item | {"attributes": "{"}]},
                        {"items": [item | {"attributes": json.dumps({"a": "x" * 1100})}]}):
            with self.subTest(changes=str(changes)[:80]):
                self.invalid(self.grant(**changes))

    def update(self, *edits):
        return {"playerId": self.player, "opId": uuid7(), "authority": "unheld",
                "edits": list(edits)}

    def test_section_names(self):
        path = "/holdfast.v1.ProfileService/UpdateProfile"
        for name in ("wallet", "inventory", "ledger", "", "Progress", "a b", "a-b", "x" * 65,
                     "é", "a\u0000"):
            with self.subTest(name=name):
                detail = self.invalid(self.update({"name": name, "replace": "{}"}),
                                      (f'edits["{name}"].name', f'edits["{name[:61]}..."].name',
                                       "edits[0].name"), path)
                self.assertEqual(detail.get("value", "")[:1], name[:1] if name.isascii()
                                 and name.isprintable() else detail.get("value", "")[:1])
        edit = {"name": "a", "replace": "{}"}
        self.invalid(self.update(edit, edit), None, path)
        self.invalid(self.update(), "edits", path)
        self.invalid(self.update(*({"name": f"s{n}", "replace": "{}"} for n in range(33))),
                     "edits", path)
        self.invalid(self.update({"name": "a"}), None, path)

    def test_documents(self):
        path = "/holdfast.v1.ProfileService/UpdateProfile"
        for text in ("", "{", "{} {}", "nul", "{\"a\":1,\"a\":2}", "\"\\ud800\"", "1e999",
                     "[" * 5000 + "]" * 5000, "{\"a\":" * 200 + "1" + "}" * 200,
                     json.dumps("x" * (256 * 1024))):
            with self.subTest(text=text[:20]):
                self.invalid(self.update({"name": "a", "replace": text}), 'edits["a"].replace', path)

    def test_patches(self):
        path = "/holdfast.v1.ProfileService/UpdateProfile"

        def step(kind, pointer, text="1"):
            return {"name": "a", "patch": {"steps": [
                {"kind": kind.lower(), "path": pointer, "json": text}]}}
        for edit in (step("SET", "no-slash"), step("SET", "/a~2b"), step("SET", "/" + "x" * 512),
                     step("SET", "/a", "{"), step("UNSPECIFIED", "/a"),
                     step("INCREMENT", "/a", "\"x\""), step("MAX", "/a", "1.5"),
                     {"name": "a", "patch": {"steps": []}},
                     {"name": "a", "patch": {"steps": step("SET", "/a")["patch"]["steps"] * 65}}):
            with self.subTest(edit=str(edit)[:90]):
                self.invalid(self.update(edit), None, path)

    def test_batches_over_their_limits(self):
        for method, limit, request in (
                ("LedgerService/BatchGrant", 1000, self.grant()),
                ("ProfileService/BatchGetProfile", 100, {"playerId": "a"}),
                ("ProfileService/BatchUpdateProfile", 100, self.update()),
                ("SessionService/BatchStartSession", 100, {"playerId": "a"}),
                ("SessionService/BatchEndSession", 100, {"playerId": "a"})):
            with self.subTest(method=method):
                detail = self.invalid({"requests": [request] * (limit + 1)}, "requests",
                                      f"/holdfast.v1.{method}")
                self.assertIn(str(limit), detail["limit"])
                self.assertEqual(detail["value"], str(limit + 1))
        ref = {"playerId": "a", "token": "1-1-1"}
        self.invalid({"incarnation": "1-1", "sessions": [ref] * 1001}, "sessions",
                     "/holdfast.v1.SessionService/RenewSessions")

    def test_pages_and_cursors(self):
        for method, limit in (("LedgerService/ListEntries", 200),
                              ("InventoryService/ListItems", 500)):
            path = f"/holdfast.v1.{method}"
            with self.subTest(method=method):
                for size in (limit + 1, 2**32 - 1):
                    detail = self.invalid({"playerId": self.player, "pageSize": size},
                                          "page_size", path)
                    self.assertIn(str(limit), detail["limit"])
                for cursor in ("x", "-1", "99999999999999999999999", "../..", "x" * 500, "\u0000",
                               "AAAA!"):
                    self.invalid({"playerId": self.player, "cursor": cursor}, "cursor", path,
                                 limit=False)
        self.invalid({"pageSize": 513}, "page_size", "/holdfast.v1.AdminService/ListShards")
        self.invalid({"cursor": "x"}, "cursor", "/holdfast.v1.AdminService/ListShards",
                     limit=False)

    def test_game_servers(self):
        path = "/holdfast.v1.SessionService/"
        for name in ("", "x" * 129, "a\nb"):
            self.invalid({"name": name}, "name", path + "RegisterServer")
        for ttl_ms in (1, 4999, 10001, 2**32 - 1):
            detail = self.invalid({"name": "a", "ttlMs": ttl_ms}, "ttl_ms", path + "RegisterServer")
            self.assertEqual(detail["value"], str(ttl_ms))
        for incarnation in ("", "x", "1", "1-", "1-x", "1-2-3", "99999999999999999999-1"):
            with self.subTest(incarnation=incarnation):
                request = {"playerId": self.player, "opId": uuid7(), "incarnation": incarnation}
                self.invalid(request, "incarnation", path + "StartSession")
                self.invalid({"incarnation": incarnation}, "incarnation", path + "RenewSessions")
        server = self.client.register("server")
        request = {"playerId": self.player, "opId": uuid7(), "incarnation": server}
        self.invalid(request | {"graceMs": 60001, "mode": "steal"}, "grace_ms",
                     path + "StartSession")
        self.invalid(request | {"mode": "grab"}, "mode", path + "StartSession")
        self.invalid(request | {"mode": 77}, "mode", path + "StartSession")

    def test_deadlines_that_have_passed(self):
        for value in ("0", "1"):
            op_id = uuid7()
            status, detail, answer = self.raw(json.dumps(self.grant(opId=op_id)),
                                              connect_timeout_ms=value)
            if status == 200:  # 1 ms can be enough; what is answered is then true.
                self.before = self.client.profile(self.player)
                continue
            self.assertIn(detail["code"], ("deadline_exceeded",
                                           "outcome_unknown",
                                           "invalid_argument"), answer)
            if value == "0":
                self.assertNotEqual(detail["code"], "outcome_unknown")
            elif detail["code"] == "outcome_unknown":
                self.client.call("OperationService/ResolveOperation", {
                    "entity": f"player:{self.player}", "opId": op_id, "seal": True})
                self.before = self.client.profile(self.player)
        for value in ("-1", "soon", "1.5", "99999999999999", " ", "1e3"):
            with self.subTest(value=value):
                status, _, answer = self.raw("{}", connect_timeout_ms=value)
                self.assertEqual((status, answer["code"]), (400, "invalid_argument"))

    def test_nesting_bombs(self):
        for bomb in ("[" * 100000, '{"authority":' * 100000, '{"a":' * 1000 + "1" + "}" * 1000,
                     '{"currencies":' + "[" * 1000 + "]" * 1000 + "}"):
            with self.subTest(bomb=bomb[:20]):
                self.invalid(bomb, path=UPDATE, limit=False)

    def test_oversized_bodies(self):
        """Each kind of method has its limit, and the error names it."""
        for path, limit in (("/holdfast.v1.LedgerService/GetBalances", 4096), (GRANT, 131072),
                            ("/holdfast.v1.LedgerService/BatchGrant", 4194304)):
            with self.subTest(path=path):
                body = b'{"playerId":"' + b"x" * limit + b'"}'
                status = data = None
                with contextlib.suppress(Unanswered):  # It may close while we still send.
                    status, _, data = self.client.post(path, body)
                if status is not None:
                    self.assertEqual(status, 413)
                    detail = json.loads(data)["error"]
                    self.assertEqual(str(limit), detail["limit"])
                self.client.drop()

    def test_bytes_that_are_no_http(self):
        for bad in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n",
                    b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n",
                    b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n"
                    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                    b"POST / HTTP/1.1\r\nx: " + b"y" * 70000 + b"\r\n\r\n"):
            with self.subTest(bad=bad[:40]):
                with socket.create_connection((self.client.host, self.client.port), 10) as conn:
                    answer = b""
                    with contextlib.suppress(ConnectionError):
                        conn.sendall(bad)
                        conn.shutdown(socket.SHUT_WR)
                        while chunk := conn.recv(4096):
                            answer += chunk
                    if answer:
                        self.assertRegex(answer, rb"^HTTP/1\.1 (4\d\d|505) ")

    def test_paths_methods_and_types(self):
        for path in ("/", "/holdfast.v1.LedgerService", "/holdfast.v1.LedgerService/Steal",
                     "/holdfast.v1.ThiefService/Grant", "/../etc/passwd", GRANT + "/x",
                     "/holdfast.internal.v1.NodeService/ApplyPolicy"):
            with self.subTest(path=path):
                status, _, answer = self.raw("{}", path)
                self.assertEqual((status, answer["code"]), (404, "unimplemented"))

    def test_the_nearest_name_is_told_of_misspelt_methods_fields_and_currencies(self):
        grant = {"playerId": "p", "opId": "receipt:near", "reason": "r",
                 "authority": "system:payments",
                 "currencies": [{"currency": "gold", "amount": "1"}]}
        near = [("/holdfast.v1.LedgerService/Grnat", grant, "LedgerService/Grant?"),
                ("/LedgerService/Grant", grant, "holdfast.v1.LedgerService/Grant?"),
                (GRANT, grant | {"resaon": "r"}, "reason?"),
                (GRANT, grant | {"currencies": [{"currency": "glod", "amount": "1"}]}, "gold?")]
        far = [("/holdfast.v1.LedgerService/Teleport", grant),
               (GRANT, grant | {"colour": "red"}),
               (GRANT, grant | {"currencies": [{"currency": "euro", "amount": "1"}]}),
               (GRANT, grant | {"x" * 5000: 1}), (GRANT, grant | {"\x9b31m\u202e": 1})]
        for path, body, meant in near:
            with self.subTest(path=path, meant=meant):
                status, _, answer = self.raw(json.dumps(body), path)
                self.assertEqual(status, 404 if path != GRANT else 400)
                self.assertTrue(answer["message"].endswith(f"; did you mean {meant}"), answer)
        for path, body in far:
            with self.subTest(path=path, body=str(body)[:80]):
                _, _, answer = self.raw(json.dumps(body, ensure_ascii=False).encode(), path)
                self.assertNotIn("did you mean", answer["message"])
                self.assertLess(len(answer["message"]), 300)
                self.assertTrue(answer["message"].isprintable(), answer)

    def test_the_policy_must_follow_the_one_in_force(self):
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        self.refused("VERSION_CONFLICT", self.client.call, "AdminService/SetPolicy",
                     {"policy": policy})
        path = "/holdfast.v1.AdminService/SetPolicy"
        following = policy | {"version": policy["version"] + 1}
        for changes in ({"operationWindowMs": "1"}, {"operationWindowMs": "604800001"},
                        {"currencies": [{"name": "Bad Name"}]},
                        {"currencies": [{"name": f"c{n}"} for n in range(65)]},
                        {"currencies": [{"name": "gold"}, {"name": "gold"}]},
                        {"currencies": [{"name": "gold", "minBalance": "5", "maxBalance": "4"}]}):
            with self.subTest(changes=str(changes)[:60]):
                self.invalid({"policy": following | changes}, None, path)
        self.invalid({}, None, path, limit=False)
        self.assertEqual(self.client.call("AdminService/GetCluster", {})["policy"], policy)

    def test_reads_with_impossible_options(self):
        request = {"playerId": self.player}
        shard, dot = parse(self.client.grant("token-probe", 1)["write"]["asOf"])
        request = {"playerId": "token-probe"}
        path = "/holdfast.v1.ProfileService/GetProfile"
        for wrong in ("psychic", "c1.", "c2.AAAA", token(shard + 1, dot), token(shard, dot)[:-1]):
            self.invalid(request | {"read": {"atLeast": wrong}}, "read.at_least", path)
        self.invalid(request | {"read": {"atLeast": token(shard, dot), "stale": True}},
                     "read.stale", path)
        error = self.refused("VERSION_LOST", self.client.call, "ProfileService/GetProfile",
                             request | {"read": {"atLeast": token(shard, dot | {"owner": 1})}}, 2000)
        self.assertEqual(error.connect_code, "data_loss")


if __name__ == "__main__":
    unittest.main(verbosity=2)
