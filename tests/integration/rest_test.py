"""
REST against a real cluster: every route of /openapi.json is driven here, and every kind of bad input has its status,
its field and its headers.
"""

import json
import re
import unittest
import urllib.parse

from client import Unanswered, grant_of, uuid7
from cluster import ClusterTest, wait_for
from smallest import player_writes

JSON = {"content-type": "application/json"}


def encoded(text):
    return urllib.parse.quote(str(text), safe="")


class Rest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.document = cls.ask("GET", "/openapi.json")[2]
        cls.routes = {operation["operationId"]: (verb.upper(), path)
                      for path, item in cls.document["paths"].items() for verb, operation in item.items()}
        cls.driven = set()

    @classmethod
    def ask(cls, verb, target, body=None, headers=None):
        """(status, headers, answer). The target goes out as it stands."""
        connection = cls.client.connection(30)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(verb, target, data, (JSON if data is not None else {}) | (headers or {}))
            answer = connection.getresponse()
            said = answer.read()
        except OSError as error:
            cls.client.drop()
            raise Unanswered(target) from error
        return answer.status, answer.headers, json.loads(said) if said else None

    def route(self, operation, path=None, body=None, query=None, headers=None):
        verb, target = self.routes[operation]
        self.driven.add(operation)
        for name, value in (path or {}).items():
            self.assertIn(f"{{{name}}}", target)
            target = target.replace(f"{{{name}}}", encoded(value))
        self.assertNotIn("{", target)
        if query:
            target += "?" + urllib.parse.urlencode(query, doseq=True)
        if verb in ("POST", "PUT", "PATCH") and body is None:
            body = {}
        asked = self.ask(verb, target, body, headers)
        self.stands_in_document(operation, *asked)
        return asked

    def stands_in_document(self, operation, status, headers, answer):
        """The operation names the status, and for it the code and the ETag."""
        verb, path = self.routes[operation]
        responses = self.document["paths"][path][verb.lower()]["responses"]
        self.assertIn(str(status), responses, (operation, answer))
        found = responses[str(status)]
        if status < 400:
            if headers["etag"]:
                self.assertIn("ETag", found["headers"], operation)
            return
        response = self.document["components"]["responses"][found["$ref"].rsplit("/", 1)[1]]
        schema = response["content"]["application/json"]["schema"]["allOf"][1]
        codes = schema["properties"]["error"]["properties"]["code"]["enum"]
        self.assertIn(answer["error"]["code"], codes, (operation, status))

    def good(self, operation, path=None, body=None, query=None, headers=None):
        def settled():  # For a moment after a transaction was answered: nothing was done, the same is sent again.
            asked = self.route(operation, path, body, query, headers)
            return None if asked[0] == 409 and asked[2]["error"]["code"] == "txn_conflict" else asked
        status, said, answer = wait_for(f"{operation} not to meet a transaction", settled)
        self.assertEqual(status, 200, (operation, answer))
        self.assertEqual(said["content-type"], "application/json")
        return answer

    def bad(self, status, field, asked, action="fix"):
        """What is wrong is named in body and headers."""
        said, headers, answer = asked
        self.assertEqual(said, status, answer)
        self.assertEqual(set(answer), {"code", "message", "error"})
        error = answer["error"]
        self.assertEqual((error["outcome"], error["action"]), ("not_applied", action), answer)
        self.assertEqual((headers["holdfast-error"], headers["holdfast-action"]), (error["code"], action))
        if field:
            self.assertEqual(error["field"], field, answer)
            self.assertTrue(error.get("limit"), answer)
        return error

    def player(self, gold=0):
        player = f"rest/{uuid7()} é"
        if gold:
            self.good("Grant", {"player_id": player}, {"currencies": {"gold": gold}, "reason": "test"},
                      headers=self.as_system())
        return player

    @staticmethod
    def as_system(scope="payments"):
        return {"idempotency-key": uuid7(), "holdfast-authority": f"system:{scope}"}

    @staticmethod
    def unheld():
        return {"idempotency-key": uuid7(), "holdfast-authority": "unheld"}

    # ---- every route ----

    def test_1_players_and_their_goods(self):
        ada, bob = self.player(100), self.player(10)
        self.good("Spend", {"player_id": ada}, {"currencies": {"gold": 1}}, headers=self.unheld())
        self.good("UpdateProfile", {"player_id": ada}, {"edits": {"a": {"replace": {"x": [1, None]}}}},
                  headers=self.unheld())
        read = self.good("GetProfile", {"player_id": ada}, query={"include": ["sections.a", "balances"]})
        self.assertEqual(read["profile"]["sections"]["a"]["json"], {"x": [1, None]})
        self.assertEqual(read["profile"]["balances"], {"gold": 99})
        self.assertEqual(self.good("GetBalances", {"player_id": ada},
                                   query={"read.at_least": read["asOf"]})["balances"], {"gold": 99})
        uids = self.good("Grant", {"player_id": ada}, {"items": [{"kind": "hat"}] * 3}, headers=self.as_system())["itemUids"]
        page = self.good("ListItems", {"player_id": ada}, query={"limit": 2})
        rest = self.good("ListItems", {"player_id": ada}, query={"page_size": 2, "cursor": page["nextCursor"]})
        self.assertEqual({item["uid"] for item in page["items"] + rest["items"]}, set(uids))
        self.good("TransferItems", {"player_id": ada}, {"toPlayerId": bob, "itemUids": uids[:1]}, headers=self.unheld())
        self.good("Spend", {"player_id": ada}, {"itemUids": uids[1:2]}, headers=self.unheld())
        steps = self.good("TraceItem", {"item_uid": uids[0]})["steps"]
        self.assertEqual(steps[0]["kind"], "grant")
        self.good("TransferCurrencies", {"player_id": ada}, {"toPlayerId": bob, "currencies": {"gold": 5}},
                  headers=self.unheld())
        self.good("SendMail", {"player_id": ada}, {"toPlayerId": bob, "text": "gl"}, headers=self.unheld())
        mails = self.good("ListMail", {"player_id": bob})["mails"]
        self.assertEqual(len(mails), 3)
        self.good("ClaimMail", {"player_id": bob}, {"mailIds": [mail["mailId"] for mail in mails]},
                  headers=self.unheld())
        self.good("ReturnExpiredMail", {"player_id": bob}, query={"max": 8}, headers=self.as_system("mail"))
        kinds = [entry["kind"] for entry in
                 self.good("ListEntries", {"player_id": ada}, query={"kinds": ["grant", "spend"],
                                                                     "ascending": "true"})["entries"]]
        self.assertEqual(kinds, ["grant", "spend", "grant", "spend"])
        for player in (ada, bob):
            self.good("GetBalances", {"player_id": player})
        both = self.good("ReadPlayers", query={"player_ids": [ada, bob], "include": "balances"})["profiles"]
        self.assertEqual([profile["balances"]["gold"] for profile in both], [94, 15])
        self.good("ExecuteTransaction", None, {"playerId": ada, "others": [{"playerId": bob, "authority": "unheld"}],
                                               "changes": [{"spend": {"playerId": ada, "currencies": {"gold": 1}}}]},
                  headers=self.unheld())
        sides = {name: {"playerId": player, "authority": "unheld", "gives": {"currencies": {"gold": 1}}}
                 for name, player in (("a", ada), ("b", bob))}
        self.good("Swap", None, sides, headers={"idempotency-key": uuid7()})
        mail = {"toPlayerIds": [ada, bob], "opId": f"claim:{uuid7()}", "text": "gl", "authority": "system:mail",
                "items": [{"kind": "crate"}]}
        # The swap may hold a player for a moment after it was answered: TXN_CONFLICT, to be sent again.
        delivered = wait_for("both to be delivered", lambda: next(
            (told for told in [self.good("DeliverMail", None, mail)] if not told.get("failed")), None))
        self.assertEqual(len(delivered["results"]), 2)

    def test_1_reservations_and_reversals(self):
        ada = self.player(100)
        ids = [uuid7(), uuid7()]
        for op_id in ids:
            self.good("ReserveCurrencies", {"player_id": ada}, {"currencies": {"gold": 10}, "expiresInMs": 60000},
                      headers=self.unheld() | {"idempotency-key": op_id})
        self.assertEqual(len(self.good("ListReservations", {"player_id": ada})["reservations"]), 2)
        post = self.unheld()
        self.good("PostReservation", {"player_id": ada, "reserve_op_id": ids[0]}, headers=post)
        self.good("VoidReservation", {"player_id": ada, "reserve_op_id": ids[1]}, headers=self.unheld())
        closed = self.route("VoidReservation", {"player_id": ada, "reserve_op_id": ids[1]}, headers=self.unheld())
        self.assertEqual((closed[0], closed[2]["error"]["code"]), (409, "reservation_closed"))
        self.good("ReverseEntry", {"player_id": ada}, {"targetOpId": post["idempotency-key"], "reason": "support"},
                  headers=self.as_system())

    def test_1_operations(self):
        ada, op_id = self.player(), f"receipt:{uuid7()}"
        grant = {"currencies": {"gold": 5}, "reason": "purchase"}
        headers = self.as_system() | {"idempotency-key": op_id}
        self.good("Grant", {"player_id": ada}, grant, headers=headers)
        self.assertTrue(self.good("Grant", {"player_id": ada}, grant, headers=headers)["write"]["duplicate"])
        place = {"entity": f"player:{ada}", "op_id": op_id}
        told = self.good("GetOperation", place)["operation"]
        self.assertEqual((told["state"], told["grant"]["balances"]), ("committed", {"gold": 5}))
        sealed = self.good("ResolveOperation", place | {"op_id": uuid7()}, {"seal": True})["operation"]
        self.assertEqual(sealed["state"], "aborted")

    def test_1_sessions_and_batches(self):
        incarnation = self.good("RegisterServer", None, {"name": "rest"})["incarnation"]
        ada, bob, eve = self.player(10), self.player(10), self.player(10)
        started = self.good("StartSession", {"player_id": ada}, {"incarnation": incarnation, "mode": "fail"},
                            headers={"idempotency-key": uuid7()})
        self.assertEqual(self.good("GetSession", {"player_id": ada})["state"], "granted")
        renewed = self.good("RenewSessions", {"incarnation": incarnation},
                            {"sessions": [{"playerId": ada, "token": started["token"]}]})
        self.assertEqual(renewed, {})
        self.good("EndSession", {"player_id": ada}, {"edits": {"a": {"merge": {"x": 1}}}},
                  headers={"idempotency-key": uuid7(), "holdfast-authority": f"session:{started['token']}"})
        both = self.good("BatchStartSession", None, {"opId": uuid7(), "incarnation": incarnation, "mode": "fail",
                                                     "requests": [{"playerId": bob}, {"playerId": eve}]})["results"]
        self.good("BatchEndSession", None, {"opId": uuid7(), "requests": [
            {"playerId": player, "authority": f"session:{result['response']['token']}"}
            for player, result in zip((bob, eve), both)]})
        granted = self.good("BatchGrant", None, {
            "opId": f"match:{uuid7()}:1", "authority": "system:match", "reason": "win",
            "requests": [{"playerId": player, "currencies": {"gold": 5}} for player in (ada, bob)]})
        self.assertEqual([result["response"]["balances"] for result in granted["results"]], [{"gold": 15}] * 2)
        self.good("BatchUpdateProfile", None, {"opId": uuid7(), "authority": "unheld", "requests": [
            {"playerId": ada, "edits": {"b": {"replace": 5}}}]})
        read = self.good("BatchGetProfile", None, {"include": ["balances"], "requests": [{"playerId": ada}]})
        self.assertEqual(read["results"][0]["response"]["profile"]["balances"], {"gold": 15})
        self.good("UnregisterServer", {"incarnation": incarnation})

    def test_shards_that_there_are_not(self):
        """Of every method that names one."""
        count = self.good("GetCluster")["shardCount"]
        places = {"shard": 0, "other_shard": 1, "key": "70"}
        bodies = {"MoveShard": {"from": "node-1", "to": "node-2"}, "RebuildReplica": {"node": "node-1"},
                  "RepairRow": {"reason": "test"},
                  "RebuildCounts": {"rebuildId": "r1", "part": "REBUILD_PART_COUNTS"}}
        named = {name: path for name, (_, path) in self.routes.items() if "{shard}" in path}
        self.assertEqual(len(named), 11, named)
        for name, path in named.items():
            for field in ("shard", "other_shard"):
                for shard in (count, 65536, 2**32 - 1):
                    if f"{{{field}}}" not in path:
                        continue
                    at = {place: value for place, value in places.items() if f"{{{place}}}" in path} | {field: shard}
                    with self.subTest(name=name, at=at):
                        error = self.bad(400, field, self.route(name, at, bodies.get(name), headers=self.as_system("admin")
                                                                if name == "RepairRow" else None))
                        self.assertIn(f"0 to {count - 1}", error["limit"])
                        self.assertEqual(error["value"], str(shard))
        for method in ("GetBackupState", "ArmBackup", "CutBackup", "ReadBackup", "ReadDocuments", "BeginRestore", "RestoreRows",
                       "RestoreDocuments", "FinishRestore"):
            with self.subTest(method=method):
                error = self.bad(400, "shard", self.ask("POST", f"/holdfast.v1.BackupService/{method}", {"shard": count}))
                self.assertEqual((error["limit"], error["value"]), (f"0 to {count - 1}", str(count)))

    def definitions(self):
        name = {"kind": "counter", "name": "kills"}
        for most in (5, 6):
            wait_for("the shards to be heard", lambda value=most: self.route("PutDefinition", name, {
                "opId": f"rest-{value}", "body": {"counter": {"maxValue": value}}})[0] == 200)
        self.assertEqual(self.good("GetDefinition", name)["definition"]["version"], 2)
        listed = self.good("ListDefinitions", query={"kind": "counter"})["definitions"]
        self.assertEqual([each["version"] for each in listed if each["name"] == "kills"], [2])
        self.assertEqual(len(self.good("ListDefinitionVersions", name)["versions"]), 2)
        self.assertEqual(self.good("DiffDefinitions", name)["changes"][0]["field"], "counter.max_value")
        self.good("RollbackDefinition", name, {"opId": uuid7(), "version": 1})
        self.assertTrue(self.good("DeleteDefinition", name, query={"op_id": uuid7()})["definition"]["deleted"])

    def settings(self):
        name = {"kind": "settings", "name": "arena"}
        wait_for("the shards to be heard", lambda: self.route("PutDefinition", name, {
            "opId": "rest-settings", "body": {"settings": {"json": {"rate": 30}}}})[0] == 200)
        wait_for("the router to know", lambda: self.route("GetSettings", {"name": "arena"})[0] == 200)
        told = self.good("GetSettings", {"name": "arena"})
        self.assertEqual((told["version"], told["json"]), (1, {"rate": 30}))
        unchanged = self.good("GetSettings", {"name": "arena"}, query={"if_version_above": 1, "wait_ms": 10})
        self.assertTrue(unchanged["unchanged"])
        tag = self.route("GetSettings", {"name": "arena"})[1]["etag"]
        self.assertEqual(self.route("GetSettings", {"name": "arena"}, headers={"if-none-match": tag})[0], 304)

    def test_1_favorites(self):
        ada, collection = self.player(), {"kind": "collection", "name": "favorites"}
        wait_for("favourites to be in force", lambda: self.route("PutDefinition", collection, {
            "opId": uuid7(), "waitMs": 20000, "body": {"collection": {"conflictPolicy": "highest_version"}}})[2].get(
                "definition", {}).get("inForce"))
        place = {"player_id": ada, "target_id": "a/b é"}
        made = self.good("Favorite", place, {"ver": 5}, headers={"idempotency-key": uuid7()})
        self.assertEqual((made["status"]["targetId"], made["status"]["ver"]), ("a/b é", 5))
        self.assertEqual(self.good("ListFavorites", {"player_id": ada})["favorites"], [made["status"]])
        self.assertEqual(self.good("BatchGetStatus", {"player_id": ada}, {"targetIds": ["a/b é"]})["statuses"],
                         [made["status"]])
        self.good("BatchFavorite", None, {"requests": [{"playerId": ada, "targetId": "x", "opId": uuid7()}]})
        gone = self.good("Unfavorite", place, query={"ver": 6}, headers={"idempotency-key": uuid7()})
        self.assertTrue(gone["applied"])
        self.good("ListByTarget", {"shard": 0}, query={"target_id": "x"})

    def test_1_metadata(self):
        collection, place = {"kind": "collection", "name": "shown"}, {"target_id": "a/b é"}
        wait_for("shown to be in force", lambda: self.route("PutDefinition", collection, {
            "opId": uuid7(), "waitMs": 20000, "body": {"collection": {"conflictPolicy": "highest_version"}}})[2].get(
                "definition", {}).get("inForce"))
        made = self.good("PutTargetMetadata", place, {"title": "A", "collection": "shown", "attributes": {"n": 1}},
                         headers={"idempotency-key": uuid7()})["metadata"]
        self.assertEqual((made["title"], made["attributes"]), ("A", {"n": 1}))
        wait_for("a router to know", lambda: self.good("BatchGetTargetMetadata", None, {
            "targetIds": ["a/b é"], "collection": "shown"}).get("metadata") == [made])
        self.assertEqual(self.good("BatchGetTargetMetadata_2", query={
            "target_ids": ["a/b é"], "collection": "shown"})["metadata"], [made])
        self.assertTrue(self.good("DeleteTargetMetadata", place, query={
            "collection": "shown", "if_version": made["version"]})["deleted"])

    def test_1_documents(self):
        wait_for("notes to be in force", lambda: self.route("PutDefinition", {"kind": "documents", "name": "notes"}, {
            "opId": uuid7(), "waitMs": 20000, "body": {"documents": {"policy": "merge"}}})[2].get(
                "definition", {}).get("inForce"))
        place = {"entity": "guild:a/b é", "collection": "notes", "key": "k/é"}
        self.good("PutDocument", place, {"json": {"a": 1}}, headers={"idempotency-key": uuid7()})
        made = self.good("UpdateDocument", place, {"merge": {"b": {"c": 2}}}, headers={"idempotency-key": uuid7()})
        read = self.good("GetDocument", place, query={"context": made["written"]["context"]})["document"]
        self.assertEqual((read["key"], read["json"]), ("k/é", {"a": 1, "b": {"c": 2}}))
        few = {name: place[name] for name in ("entity", "collection")}
        self.assertEqual(self.good("ListDocuments", few, query={"prefix": "k"})["documents"], [read])
        batch = self.good("BatchGetDocuments", None, {"requests": [place]})
        self.assertEqual(batch["results"][0]["response"]["document"], read)
        self.good("DeleteDocument", place, headers={"idempotency-key": uuid7()})
        self.assertNotIn("document", self.good("GetDocument", place))

    def test_1_presence(self):
        place = {"player_id": "a/b é", "connection": "game:1"}
        made = self.good("SetPresence", place, {"ttlMs": 600000, "status": {"in": "lobby"}},
                         headers={"idempotency-key": uuid7()})
        player = {"player_id": place["player_id"]}
        found = self.good("GetPresence", player, query={"context": made["written"]["context"]})["presence"]
        self.assertEqual((found["playerId"], found["connections"][0]["status"]), ("a/b é", {"in": "lobby"}))
        batch = self.good("BatchSetPresence", None, {
            "opId": uuid7(), "ttlMs": 600000, "connection": "web", "requests": [{"playerId": "a/b é"}, {"playerId": ""}]})
        self.assertEqual(batch["failed"], 1)
        read = self.good("BatchGetPresence", None, {"requests": [{"playerId": "a/b é"}]})["results"][0]["response"]["presence"]
        self.assertEqual([each["connection"] for each in read["connections"]], ["web", "game:1"])
        listed = self.good("ListOnline", {}, query={"page_size": "1000"})
        self.assertIn("a/b é", [each["playerId"] for each in listed["players"]])
        self.good("ClearPresence", place, headers={"idempotency-key": uuid7()})
        self.good("ClearPresence_2", player, headers={"idempotency-key": uuid7()})
        self.assertNotIn("presence", self.good("GetPresence", player))

    def test_1_users(self):
        user = {"player_id": "a/b user"}
        made = self.good("UpsertUser", user, {
            "displayName": "Ada", "settings": {"music": 0}, "connection": "web", "ttlMs": 600000},
            headers={"idempotency-key": uuid7()})
        self.assertEqual((made["user"]["displayName"], made["user"]["settings"]), ("Ada", {"music": 0}))
        found = self.good("GetUser", user, query={"context": made["written"]["context"]})["user"]
        self.assertEqual(found, made["user"])
        both = self.good("BatchUpsertUsers", None, {
            "opId": uuid7(), "requests": [{"playerId": "a/b user", "displayName": "Ada L"}, {"playerId": "", "displayName": "x"}]})
        self.assertEqual((both["failed"], both["results"][0]["response"]["user"]["displayName"]), (1, "Ada L"))
        read = self.good("BatchGetUsers", None, {"requests": [{"playerId": "a/b user"}]})
        self.assertEqual(read["results"][0]["response"]["user"]["displayName"], "Ada L")
        name = {"name": "Ada é", "tag": "7"}
        self.good("ClaimName", user, name, headers={"idempotency-key": uuid7(), "holdfast-authority": "unheld"})
        found = self.good("FindByName", {}, query=name)
        self.assertEqual((found["playerId"], found["name"], found["number"]), ("a/b user", "Ada é", 1))
        self.good("ReleaseName", user, name | {"number": 1}, headers={"idempotency-key": uuid7(), "holdfast-authority": "unheld"})
        self.assertNotIn("playerId", self.good("FindByName", {}, query=name))
        self.good("SetUserFlags", user, {"addRoles": ["judge"]}, headers=self.as_system("admin"))
        self.assertEqual(self.good("GetUserFlags", user)["roles"][0]["name"], "judge")

    def test_1_counters(self):
        ada, plays = self.player(), {"counter": "plays"}
        wait_for("plays to be in force", lambda: self.route("PutDefinition", {"kind": "counter", "name": "plays"}, {
            "opId": uuid7(), "waitMs": 20000, "body": {"counter": {"addMax": 50}}})[2].get("definition", {}).get("inForce"))
        place = {"player_id": ada, "target_id": "a/b é"} | plays
        made = self.good("AddToCounter", place, {"amount": 5}, headers=self.as_system("match"))
        self.assertEqual((made["value"], made["targets"]), (5, 1))
        self.good("BatchAddToCounter", None, plays | {
            "authority": "system:match", "requests": [{"playerId": ada, "targetId": "c", "amount": 2, "opId": uuid7()}]})
        listed = self.good("ListPlayerCounters", {"player_id": ada} | plays)
        self.assertEqual([(each["targetId"], each["value"]) for each in listed["counters"]], [("a/b é", 5), ("c", 2)])
        self.assertEqual(self.good("BatchGetPlayerCounters", {"player_id": ada} | plays,
                                   {"targetIds": ["c"]})["counters"], [listed["counters"][1]])
        total = {"target_id": "a/b é"} | plays
        self.assertEqual(self.good("GetCounter", total, query={"fresh": "true"})["count"]["count"], 5)
        counts = self.good("BatchGetCounters", plays, {"targetIds": ["a/b é", "c"], "fresh": True})["counts"]
        self.assertEqual([each["count"] for each in counts], [5, 2])
        counts = self.good("BatchGetCounters_2", plays, query={"target_ids": ["a/b é", "c"]})["counts"]
        self.assertEqual([each["count"] for each in counts], [5, 2])
        top = [{"targetId": "a/b é", "count": 5}, {"targetId": "c", "count": 2}]
        wait_for("the top list", lambda: self.route("GetCounterTop", plays)[2].get("entries") == top)
        self.assertEqual(self.good("GetCounterTop", plays, query={"limit": "1", "window": "7d"})["entries"], top[:1])
        wait_for("the rank", lambda: self.route("GetCounterRank", plays | {"target_id": "c"})[2].get("rank") == 2)
        rank = self.good("GetCounterRank", plays | {"target_id": "d"}, query={"window": "all"})
        self.assertEqual((rank.get("rank", 0), rank["count"], rank["listed"], rank["lastCount"]), (0, 0, 2, 2))

    def test_1_consumers(self):
        place = {"consumer": "rest.index"}
        made = self.good("CreateConsumer", place, {"kinds": ["ledger"]}, headers={"idempotency-key": uuid7()})["consumer"]
        self.assertEqual((made["name"], made["kinds"]), ("rest.index", ["ledger"]))
        page = self.good("Poll", query={"consumer": "rest.index"})
        self.good("CommitConsumer", place, {"opId": uuid7(), "version": page["consumerVersion"],
                                            "cursor": page["nextCursor"]})
        self.assertEqual(self.good("GetConsumer", place)["consumer"]["cursor"], page["nextCursor"])
        self.good("ListConsumers", {"shard": 0})
        self.assertTrue(self.good("DeleteConsumer", place)["deleted"])
        self.bad(404, None, self.route("GetConsumer", place))

    def test_1_erasure(self):
        ada = {"player_id": self.player()}
        kept = self.good("ExportPlayer", ada)
        self.assertNotIn("rows", kept)
        told = self.good("ErasePlayer", ada, {"graceMs": 3600000}, headers=self.as_system("admin"))["erasure"]
        self.assertEqual(told["state"], "withdrawing")
        wait_for("it to be erased", lambda: self.good("GetErasure", ada)["erasure"]["state"] == "withdrawn")
        self.assertEqual(self.good("RestorePlayer", ada, {}, headers=self.as_system("admin"))["erasure"]["number"],
                         told["number"])
        wait_for("it to be restored", lambda: self.good("GetErasure", ada)["erasure"]["state"] == "restored")

    def test_1_what_operators_call(self):
        ada = self.player(1)
        for operation in ("GetServiceInfo", "ListProcesses", "ListShards", "ListServers", "ListIncidents", "GetLoad",
                          "Poll"):
            self.good(operation)
        policy = self.good("GetCluster")["policy"]
        self.good("SetPolicy", None, {"policy": policy | {"version": policy["version"] + 1}})
        stale = self.route("SetPolicy", None, {"policy": policy})
        self.assertIn(stale[0], (400, 409), stale)
        self.good("ListPlayers", {"shard": 0}, query={"limit": 5})
        self.good("ListQuarantined", {"shard": 0})
        self.good("ListFlaggedEdges", {"shard": 0})
        self.good("GetChannel", {"shard": 0, "other_shard": 1})
        self.assertTrue(self.good("GetShardClock", {"shard": 0})["members"])
        for part in ("REBUILD_PART_COUNTS", "REBUILD_PART_TOTALS"):
            wait_for("the shard to know this version", lambda part=part: self.route("RebuildCounts", {"shard": 0}, {
                "rebuildId": part.lower(), "part": part})[0] == 200)
        self.assertNotIn("quarantined", self.good("GetQuarantine", {"player_id": ada}))
        self.good("CheckPlayer", {"player_id": ada})
        for operation, path, body in (
                ("ReleaseQuarantine", {"player_id": ada}, {"reason": "test"}),
                ("RepairPlayer", {"player_id": ada}, {"reason": "test", "rows": ["70"]}),
                ("AcceptEdges", {"player_id": ada}, {"reason": "test", "targetIds": ["none"]}),
                ("RejectEdges", {"player_id": ada}, {"reason": "test", "targetIds": ["none"]}),
                ("FlagEdges", {"player_id": ada}, {"reason": "test", "targetIds": ["none"]}),
                ("RepairRow", {"shard": 0, "key": "70"}, {"reason": "test"}),
                ("MoveShard", {"shard": 0}, {"from": "nowhere", "to": "elsewhere"}),
                ("RebuildReplica", {"shard": 0}, {"node": "nowhere"}),
                ("ChangeNode", {"node": "nowhere"}, {"want": "drain"})):
            status, _, answer = self.route(operation, path, body, headers=self.as_system("admin"))
            self.assertIn(status, (400, 404, 409), (operation, answer))
        self.definitions()
        self.settings()
        self.good("RebalanceShards", None, {"dryRun": True})
        status, _, answer = self.route("AcceptEtcdRestore", None, {"dryRun": True})
        self.assertIn(status, (200, 409), answer)

    def test_1_counts_and_the_routes_for_players(self):
        """Of a method's second route the operation ends in a number."""
        ada, likes = self.player(), {"collection": "likes"}
        wait_for("likes to be in force", lambda: self.route("PutDefinition", {"kind": "collection", "name": "likes"}, {
            "opId": uuid7(), "waitMs": 20000, "body": {"collection": {"conflictPolicy": "last_write"}}})[2].get(
                "definition", {}).get("inForce"))
        made = self.good("Favorite_2", {"target_id": "a/b é"}, {"playerId": ada} | likes,
                         headers={"idempotency-key": uuid7()})
        self.assertTrue(made["status"]["favorited"])
        query = {"user_id": ada, "game_ids": ["a/b é", "c"]} | likes
        self.assertEqual(self.good("BatchGetStatus_2", query=query)["statuses"], [made["status"], {"targetId": "c"}])
        self.assertEqual(self.good("GetCount", {"target_id": "a/b é"}, query={"fresh": "true"} | likes)["count"]["count"], 1)
        counts = self.good("BatchGetCounts_2", query={"game_ids": ["a/b é", "c"], "fresh": "true"} | likes)["counts"]
        self.assertEqual([each.get("count", 0) for each in counts], [1, 0])
        self.assertEqual(self.good("BatchGetCounts", None, {"targetIds": ["a/b é", "c"]} | likes)["counts"], counts)
        for route in ("GetTop", "GetTop_2"):
            wait_for("the top list", lambda route=route: self.route(route, query={"limit": "1"} | likes)[2].get("entries"))
            top = self.good(route, query={"limit": "1", "window": "7d"} | likes)
            self.assertEqual((top["entries"], top["window"]), ([{"targetId": "a/b é", "count": 1}], "7d"))
        wait_for("the rank", lambda: self.route("GetRank", {"target_id": "a/b é"}, query=likes)[2].get("rank") == 1)
        gone = self.good("Unfavorite_2", {"target_id": "a/b é"}, query={"player_id": ada} | likes,
                         headers={"idempotency-key": uuid7()})
        self.assertNotIn("favorited", gone["status"])

    def test_1_the_smallest_of_each_write(self):
        """What a new method has for its fields is enough: the form is right, whatever became of it."""
        player, driven = self.player(100), 0
        for method, body in player_writes().items():
            operation = method.split("/")[1]
            if re.findall(r"{(\w+)}", self.routes[operation][1]) != ["player_id"]:
                continue
            with self.subTest(method=method):
                known = operation in self.driven
                status, _, answer = self.route(operation, {"player_id": player}, body, headers=self.unheld())
                driven += 1
                if status == 200:
                    continue
                self.assertNotIn(answer["error"]["code"], ("invalid_argument", "unimplemented"))
                if not known:
                    self.driven.discard(operation)  # To be refused is not enough.
        self.assertGreater(driven, 5)

    def test_2_every_route_was_driven(self):
        self.assertEqual(set(self.routes) - self.driven, set())

    # ---- bad input ----

    def test_paths_that_there_are_not(self):
        for target, meant in (("/v1/player/ada/items", "/v1/players/{player_id}/items"), ("/v1/clutser", "/v1/cluster"),
                              ("/v1/players", ""), ("/v1/players//items", ""), ("/v1/players/ada/items/1", ""),
                              ("/v1/", ""), ("/v1", ""), ("/v1/players/ada/items/", "")):
            verb = "GET"
            error = self.bad(404, ":path", self.ask(verb, target))
            self.assertEqual(f"did you mean {meant}?" in error["message"], bool(meant), error)
        error = self.bad(404, ":path", self.ask("POST", "/v1/players/ada:grnat", {}))
        self.assertIn("did you mean /v1/players/{player_id}:grant?", error["message"])

    def test_verbs_that_a_path_does_not_have(self):
        for verb, target, allowed in (("DELETE", "/v1/players/ada", "GET, HEAD, PATCH"), ("PUT", "/v1/cluster", "GET, HEAD"),
                                      ("GET", "/v1/players/ada:grant", "POST"), ("OPTIONS", "/v1/policy", "PUT"),
                                      ("POST", "/openapi.json", "GET, HEAD"), ("BREW", "/v1/cluster", "GET")):
            asked = self.ask(verb, target, {} if verb == "POST" else None)
            if verb != "BREW":
                self.bad(405, ":method", asked)
                self.assertEqual(asked[1]["allow"], allowed)
            else:
                self.assertIn(asked[0], (400, 405), asked)
        status, headers, answer = self.ask("HEAD", "/v1/cluster")
        self.assertEqual((status, headers["content-type"], answer), (200, "application/json", None))
        status, headers, answer = self.ask("HEAD", "/v1/players/ada:grant")
        self.assertEqual((status, headers["allow"], answer), (405, "POST", None))

    def test_queries(self):
        for query, field in (("pagesize=1", "pagesize"), ("page_size=x", "page_size"), ("page_size=-1", "page_size"),
                             ("page_size=501", "page_size"), ("page_size=1&page_size=2", "page_size"),
                             ("limit=1&page_size=1", "page_size"), ("pageSize=1", "pageSize"), ("kind", "kind"),
                             ("kind=%zz", "kind"), ("kind=%00", "kind"), ("kind=%ff", "kind"), ("read=strict", "read"),
                             ("read.stale=maybe", "read.stale"), ("read.at_least=x", "read.at_least"), ("player_id=bob", "player_id"),
                             ("cursor=nonsense", "cursor"), ("&".join(["kind=a"] * 65), "query")):
            with self.subTest(query=query):
                self.bad(400, field, self.ask("GET", f"/v1/players/ada/items?{query}"))

    def test_ids(self):
        for raw in ("%zz", "a%2", ".", "..", "%2e%2e", "a%00", "a%ff", "a" * 101):
            with self.subTest(raw=raw):
                self.bad(400, "player_id", self.ask("GET", f"/v1/players/{raw}/items"))
        plain, twice = self.player(1), "a%252Fb"
        self.assertEqual(self.ask("GET", f"/v1/players/{encoded(plain)}")[2]["profile"]["playerId"], plain)
        self.assertEqual(self.ask("GET", f"/v1/users/{encoded(plain)}/balances")[0], 200)
        self.assertEqual(self.ask("GET", f"/v1/players/{twice}")[2]["profile"]["playerId"], "a%2Fb")

    def test_bodies(self):
        self.bad(400, "body", self.ask("GET", "/v1/players/ada", {}))
        self.bad(400, "body", self.ask("DELETE", "/v1/servers/1-1", {}))
        self.bad(400, None, self.ask("POST", "/v1/players/ada:grant", b"{"))
        self.bad(400, "curencies", self.ask("POST", "/v1/players/ada:grant", {"curencies": {}}))
        self.bad(400, "player_id", self.ask("POST", "/v1/players/ada:grant", {"playerId": "bob"}))
        self.bad(400, "attempt", self.ask("POST", "/v1/players/ada:grant?attempt=1", {"attempt": 2}))
        self.bad(400, "shard", self.ask("POST", "/v1/shards/0:move", {"shard": 3, "from": "a", "to": "b"}))
        form = self.ask("POST", "/v1/players/ada:grant", b"gold=5",
                        {"content-type": "application/x-www-form-urlencoded"})
        self.bad(415, "content-type", form)
        self.assertEqual(form[1]["accept"], "application/json")
        self.bad(413, "body", self.ask("POST", "/v1/players/ada:grant", b" " * (5 << 20)))

    def test_rest_and_rpc_are_one_operation(self):
        """Equal payload hashes: what one has done, the other repeats."""
        ada, op_id = self.player(), uuid7()
        grant = grant_of(ada, 5, op_id, items=[{"kind": "hat", "attributes": {"b": 1, "a": [True, None]}}])
        self.client.call("LedgerService/Grant", grant)
        sorted_otherwise = {"items": [{"attributes": {"a": [True, None], "b": 1}, "kind": "hat"}],
                            "currencies": grant["currencies"]}
        headers = {"idempotency-key": op_id, "holdfast-authority": grant["authority"]}
        again = self.good("Grant", {"player_id": ada}, sorted_otherwise, headers=headers)
        self.assertTrue(again["write"]["duplicate"])
        status, _, other = self.route("Grant", {"player_id": ada}, {"currencies": {"gold": 6}}, headers=headers)
        self.assertEqual((status, other["error"]["code"], other["error"]["action"]),
                         (409, "operation_id_mismatch", "never"))
        edits = {"a": {"patch": [{"path": "/x", "increment": 2}]}}
        edited = self.unheld()
        self.good("UpdateProfile", {"player_id": ada}, {"edits": edits}, headers=edited)
        self.assertTrue(self.client.call("ProfileService/UpdateProfile", {
            "playerId": ada, "opId": edited["idempotency-key"], "authority": "unheld",
            "edits": edits})["write"]["duplicate"])

    def test_forms(self):
        """Canonical JSON is understood, and contradicts nothing; the answer stays plain."""
        ada = self.player()
        whole = {"currencies": [{"currency": "gold", "amount": "5"}], "reason": "test", "player_id": ada}
        for headers in ({}, {"connect-protocol-version": "1"}):
            granted = self.good("Grant", {"player_id": ada}, whole, headers=self.as_system() | headers)
            self.assertIn("gold", granted["balances"])
        target = f"/v1/players/{encoded(ada)}:grant"
        for body, field in ((b'{"op_id": "claim:1", "opId": "claim:1"}', "opId"),
                            (b'{"currencies": {"gold": 1, "gold": 2}}', 'currencies["gold"]'),
                            (b'{"currencies": {"gold": 9007199254740993}}', 'currencies["gold"].amount')):
            self.bad(400, field, self.ask("POST", target, body))
        self.assertEqual(self.good("GetBalances", {"player_id": ada})["balances"], {"gold": 10})

    def test_headers(self):
        grant = {"currencies": {"gold": 5}, "reason": "test"}
        target = "/v1/players/ada:grant"
        self.bad(400, "op_id", self.ask("POST", target, grant | {"opId": uuid7()}, self.as_system()))
        self.bad(400, "holdfast-authority", self.ask("POST", target, grant, self.unheld() |
                                                     {"holdfast-authority": "root"}))
        self.bad(400, "connect-timeout-ms", self.ask("GET", "/v1/players/ada", None, {"connect-timeout-ms": "soon"}))
        self.bad(504, None, self.ask("GET", "/v1/players/ada", None, {"connect-timeout-ms": "0"}), "retry_same")
        self.bad(400, "if-match", self.ask("GET", "/v1/players/ada", None, {"if-match": '"1"'}))
        self.bad(400, "if-match", self.ask("POST", "/v1/players:batchGrant", {}, {"if-match": '"1"'}))
        self.bad(400, "idempotency-key", self.ask("POST", "/v1/players:batchGrant", {}, {"idempotency-key": "k"}))

    def test_if_match(self):
        """The version of every mutation, as an ETag tells it."""
        ada, grant = self.player(5), {"currencies": {"gold": 5}, "reason": "test"}
        stale = self.route("Grant", {"player_id": ada}, grant, headers=self.as_system() | {"if-match": '"999"'})
        self.assertEqual((stale[0], stale[2]["error"]["code"]), (412, "version_conflict"))
        body = self.route("Grant", {"player_id": ada}, grant | {"ifVersion": 999}, headers=self.as_system())
        self.assertEqual((body[0], body[2]["error"]["code"]), (409, "version_conflict"))
        etag = self.route("GetProfile", {"player_id": ada})[1]["etag"]
        fresh = self.route("Grant", {"player_id": ada}, grant, headers=self.as_system() | {"if-match": etag})
        self.assertEqual(fresh[0], 200, fresh)
        self.assertEqual(fresh[1]["etag"], f'"{int(etag[1:-1]) + 1}"')
        gone = self.route("Grant", {"player_id": ada}, grant, headers=self.as_system() | {"if-match": '"0"'})
        self.assertEqual((gone[0], gone[2]["error"]["about"]["version"]["current"]), (412, int(etag[1:-1]) + 1))
        for malformed in ("*", 'W/"1"', '"1", "2"', "one"):
            self.bad(400, "if-match", self.route("Grant", {"player_id": ada}, grant,
                                                 headers=self.as_system() | {"if-match": malformed}))
        self.bad(400, "if_version", self.route("Grant", {"player_id": ada}, grant | {"ifVersion": 1},
                                               headers=self.as_system() | {"if-match": '"2"'}))

    def test_if_none_match(self):
        """A GET whose answer the caller has is 304, without a body."""
        ada = self.player(5)
        for operation, query in (("GetProfile", None), ("GetBalances", None), ("ListEntries", None), ("ListItems", None),
                                 ("ListMail", None), ("GetSession", None), ("GetProfile", {"include": "mail"})):
            with self.subTest(operation=operation, query=query):
                self.is_known(operation, {"player_id": ada}, query)
        etag = self.route("GetBalances", {"player_id": ada})[1]["etag"]
        self.good("Grant", {"player_id": ada}, {"currencies": {"gold": 1}, "reason": "test"},
                  headers=self.as_system() | {"if-match": etag})
        changed = self.route("GetBalances", {"player_id": ada}, headers={"if-none-match": etag})
        self.assertEqual((changed[0], changed[2]["balances"]), (200, {"gold": 6}))
        # Mail comes without a new version, so what has mail in it goes by the token.
        had = self.route("GetProfile", {"player_id": ada}, query={"include": "mail"})
        self.good("SendMail", {"player_id": self.player()}, {"toPlayerId": ada, "text": "gl"}, headers=self.unheld())
        told = {}

        def has_come():
            status, _, answer = self.route("GetProfile", {"player_id": ada}, query={"include": "mail"},
                                           headers={"if-none-match": had[1]["etag"]})
            told.update(answer["profile"] if status == 200 else {})
            return told.get("mail", {}).get("mails")

        wait_for("the mail to come", has_come)
        self.assertEqual(told["version"], had[2]["profile"]["version"])
        late = self.route("GetProfile", {"player_id": ada}, headers={"if-none-match": "*", "connect-timeout-ms": "0"})
        self.assertEqual(late[0], 504, late)
        for malformed in ("1", '"1', '"1";', '"1",', "one"):
            self.bad(400, "if-none-match", self.route("GetBalances", {"player_id": ada},
                                                      headers={"if-none-match": malformed}))
        for operation in ("Grant", "UpdateProfile"):
            self.bad(400, "if-none-match", self.route(operation, {"player_id": ada}, {},
                                                      headers=self.unheld() | {"if-none-match": "*"}))
        self.good("GetCluster")  # No ETag, so no header makes it a 304.
        self.assertEqual(self.route("GetCluster", headers={"if-none-match": '"1"'})[0], 200)

    def is_known(self, operation, path, query):
        """The cluster has other players, but the shard's token stands while nothing is written to it."""
        for _ in range(20):
            first = self.route(operation, path, query=query)
            self.assertEqual(first[0], 200)
            for header in (first[1]["etag"], f'"other", {first[1]["etag"]}', "*"):
                again = self.route(operation, path, query=query, headers={"if-none-match": header})
                if again[0] != 304:
                    break
                self.assertEqual((again[1]["etag"], again[2]), (first[1]["etag"], None))
                self.assertIsNone(again[1]["content-type"])
                self.assertEqual(again[1]["cache-control"], "no-store")
            else:
                return
        self.fail(f"{operation} never was 304")

    def test_what_a_caller_decides_by(self):
        ada = self.player(5)
        poor = self.route("Spend", {"player_id": ada}, {"currencies": {"gold": 50}}, headers=self.unheld())
        self.assertEqual((poor[0], poor[2]["error"]["outcome"]), (409, "refused"))
        self.assertEqual(poor[2]["error"]["about"]["funds"], {"currency": "gold", "balance": 5, "needed": 50})
        read = self.route("GetProfile", {"player_id": ada})
        self.assertEqual(read[1]["etag"], f'"{read[2]["profile"]["version"]}"')


if __name__ == "__main__":
    unittest.main(verbosity=2)
