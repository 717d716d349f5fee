"""Join, save, leave; who may write, and what becomes of a game server that falls silent."""

import threading
import time
import unittest

from client import UNHELD, Heartbeat, uuid7
from cluster import ClusterTest, wait_for


def replace(name, json, schema=1, **more):
    return {"name": name, "schemaVersion": schema, "replace": json} | more


class JoinAndLeave(ClusterTest):
    def setUp(self):
        self.player = f"player-{uuid7()}"
        self.server = self.register("one")

    def register(self, name):
        """A game server whose heart beats until the test ends."""
        incarnation = self.client.register(name)
        self.enterContext(Heartbeat(self.client, incarnation))
        return incarnation

    def section(self, name="progress"):
        return self.client.profile(self.player).get("sections", {}).get(name)

    def test_registration_gives_growing_incarnations_and_the_ttl_asked_for(self):
        answer = self.client.call("SessionService/RegisterServer", {"name": "x", "ttlMs": 6000})
        self.assertEqual(answer["ttlMs"], 6000)
        self.assertLess(answer["renewEveryMs"], 6000)
        later = self.client.register("y")
        self.assertGreater([int(n) for n in later.split("-")],
                           [int(n) for n in answer["incarnation"].split("-")])
        names = [s["name"] for s in self.client.call("AdminService/ListServers", {})["servers"]]
        self.assertIn("y", names)

    def test_a_join_returns_token_and_whole_profile_and_is_seen_by_the_admin(self):
        self.client.grant(self.player, 70)
        self.client.update(self.player, None, replace("progress", '{"xp":1}'),
                           replace("quests", "[]"))
        joined = self.client.start(self.player, self.server)
        self.assertEqual(joined["fence"], 1)
        self.assertEqual(list(joined["profile"]["sections"]), ["progress", "quests"])
        self.assertEqual(joined["profile"]["balances"], {"gold": 70})
        seen = self.client.call("AdminService/GetSession", {"playerId": self.player})
        self.assertEqual((seen["state"], seen["incarnation"]), ("granted", self.server))
        self.client.renew(self.server, (self.player, joined["token"]))
        wait_for("the session to be held", lambda: self.client.call(
            "AdminService/GetSession", {"playerId": self.player})["state"] == "held")

    def test_a_join_returns_only_the_sections_asked_for(self):
        self.client.update(self.player, None, replace("progress", "{}"), replace("quests", "{}"))
        joined = self.client.start(self.player, self.server, include=["sections.quests"])
        self.assertEqual(list(joined["profile"]["sections"]), ["quests"])

    def test_fifty_players_join_with_all_they_have_in_one_request(self):
        tag = uuid7()
        players = [f"burst-{n}-{tag}" for n in range(50)]
        system, gold = "system:match", {"gold": 7}
        granted = self.client.call("LedgerService/BatchGrant", {
            "opId": tag, "authority": system, "requests": [
                {"playerId": p, "currencies": gold, "items": [{"kind": "sword"}] * 3} for p in players]})
        saved = self.client.call("ProfileService/BatchUpdateProfile", {
            "opId": uuid7(), "authority": "unheld", "requests": [
                {"playerId": p, "edits": [replace("progress", "{\"xp\":1}")]} for p in players]})
        self.assertFalse({"failed"} & (granted.keys() | saved.keys()))
        self.client.call("MailboxService/DeliverMail", {
            "toPlayerIds": players[::7], "opId": uuid7(), "authority": "system:mail", "text": "welcome"})
        join = {"opId": uuid7(), "incarnation": self.server, "mode": "steal",
                "include": ["sections", "balances", "items", "mail"],
                "requests": [{"playerId": p} for p in players]}
        for again in (False, True):
            answer = self.client.call("SessionService/BatchStartSession", join)
            for place, result in enumerate(answer["results"]):
                profile = result["response"]["profile"]
                self.assertEqual(result["response"]["write"].get("duplicate", False), again)
                self.assertEqual(profile["playerId"], players[place])
                self.assertEqual(profile["sections"]["progress"]["json"], {"xp": 1})
                self.assertEqual(profile["balances"], {"gold": 7})
                self.assertEqual(len(profile["items"]["items"]), 3)
                self.assertEqual(profile["items"]["total"], 3)
                self.assertEqual(len(profile["mail"].get("mails", [])), int(place % 7 == 0))
        read = self.client.call("ProfileService/BatchGetProfile", {
            "include": ["items"], "requests": [{"playerId": players[0]},
                                               {"playerId": players[1], "include": ["balances"]}]})
        kept = [sorted(r["response"]["profile"].keys() & {"items", "balances", "sections", "mail"})
                for r in read["results"]]
        self.assertEqual(kept, [["items"], ["balances"]])
        both = self.client.call("TransactionService/ReadPlayers", {
            "playerIds": players[:2], "include": ["items", "mail"]})["profiles"]
        self.assertEqual([p["items"]["total"] for p in both], [3, 3])
        self.assertNotIn("balances", both[0])
        error = self.refused("INVALID_ARGUMENT", self.client.start, self.player, self.server,
                             include=["items", "balance"])
        self.assertEqual((error.field, error.value), ("include[1]", "balance"))
        self.assertIn("did you mean balances?", error.message)

    def test_a_held_player_is_refused_at_once_in_mode_fail_naming_the_holder(self):
        self.client.start(self.player, self.server)
        other = self.register("two")
        begun = time.monotonic()
        error = self.refused("SESSION_LOCKED", self.client.start, self.player, other)
        self.assertLess(time.monotonic() - begun, 15, "it waited")
        self.assertEqual(error.connect_code, "aborted")
        self.assertEqual(error.owner, self.server)
        self.assertGreater(error.retry_after_ms, 0)

    def test_mode_wait_gets_the_player_when_the_holder_leaves(self):
        token = self.client.start(self.player, self.server)["token"]
        other = self.register("two")
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(
            self.client.start(self.player, other, "WAIT")))
        waiter.start()
        try:
            wait_for("the waiter to be seen or still waiting", waiter.is_alive)
            self.client.end(self.player, token)
        finally:
            waiter.join(60)
        self.assertEqual(answers[0]["fence"], 2)
        self.assertFalse(answers[0].get("stolen", False))

    def test_mode_wait_ends_at_its_deadline_while_the_holder_stays(self):
        token = self.client.start(self.player, self.server)["token"]
        other = self.register("two")
        request = {"playerId": self.player, "opId": uuid7(), "incarnation": other,
                   "mode": "wait"}
        begun = time.monotonic()
        error = self.refused("SESSION_LOCKED", self.client.call, "SessionService/StartSession",
                             request, deadline_ms=4000)
        self.assertGreater(time.monotonic() - begun, 2)
        self.assertLess(time.monotonic() - begun, 15)
        self.assertEqual(error.owner, self.server)
        self.assertGreater(error.retry_after_ms, 0)
        self.client.update(self.player, token, replace("progress", "{}"))

    def test_a_steal_tells_the_holder_waits_its_grace_and_fences_the_old_token(self):
        token = self.client.start(self.player, self.server)["token"]
        self.client.renew(self.server, (self.player, token))
        other = self.register("two")
        answers = []
        begun = time.monotonic()
        thief = threading.Thread(target=lambda: answers.append(
            (self.client.start(self.player, other, "STEAL", graceMs=8000), time.monotonic())))
        thief.start()
        try:
            told = wait_for("release_requested", lambda: self.client.renew(
                self.server, (self.player, token)).get("releaseRequested"))
            self.assertEqual(told[0]["playerId"], self.player)
            self.assertEqual(told[0]["token"], token)
            self.assertLessEqual(told[0]["remainingMs"], 8000)
            # Within the grace the holder still writes.
            self.client.update(self.player, token, replace("progress", '{"xp":7}'))
        finally:
            thief.join(60)
        stolen, at = answers[0]
        self.assertGreaterEqual(at - begun, 7.9)
        self.assertTrue(stolen["stolen"])
        self.assertEqual(stolen["fence"], 2)
        self.assertEqual(stolen["profile"]["sections"]["progress"]["json"], {"xp": 7})
        error = self.refused("SESSION_LOST", self.client.update, self.player, token,
                             replace("progress", '{"xp":666}'))
        self.assertEqual(error.connect_code, "failed_precondition")
        self.refused("SESSION_LOST", self.client.end, self.player, token,
                     edits=[replace("progress", '{"xp":667}')])
        self.assertEqual(self.section()["json"], {"xp": 7})
        lost = self.client.renew(self.server, (self.player, token))["lost"]
        self.assertEqual(lost, [{"playerId": self.player, "token": token}])
        self.client.update(self.player, stolen["token"], replace("progress", '{"xp":8}'))

    def test_a_holder_that_leaves_when_asked_ends_the_steal_before_its_grace(self):
        token = self.client.start(self.player, self.server)["token"]
        other = self.register("two")
        answers = []
        begun = time.monotonic()
        thief = threading.Thread(target=lambda: answers.append(
            self.client.start(self.player, other, "STEAL", graceMs=20000)))
        thief.start()
        try:
            wait_for("release_requested", lambda: self.client.renew(
                self.server, (self.player, token)).get("releaseRequested"))
            self.client.end(self.player, token, edits=[replace("progress", '{"last":true}')])
        finally:
            thief.join(60)
        self.assertLess(time.monotonic() - begun, 19, "it waited for the end of the grace")
        self.assertFalse(answers[0].get("stolen", False))
        self.assertEqual(answers[0]["profile"]["sections"]["progress"]["json"], {"last": True})

    def test_saves_replace_merge_and_patch_and_count_versions(self):
        token = self.client.start(self.player, self.server)["token"]
        self.client.update(self.player, token, replace("progress", '{"xp":1,"b":{"c":1},"l":[1]}'))
        self.client.update(self.player, token, {
            "name": "progress", "schemaVersion": 1, "merge": {"b": {"c": None, "d": 2}, "e": "f"}})
        answer = self.client.update(self.player, token, {
            "name": "progress", "schemaVersion": 1, "patch": [
                {"path": "/xp", "increment": 41}, {"path": "/l", "append": "two"},
                {"path": "/deep/er", "set": True}, {"path": "/e", "remove": True},
                {"path": "/best", "max": 9}]})
        self.assertEqual(answer["sections"]["progress"]["version"], 3)
        self.assertEqual(self.section()["json"], {
            "b": {"d": 2}, "best": 9, "deep": {"er": True}, "l": [1, "two"], "xp": 42})
        self.assertEqual(self.section()["version"], 3)
        self.client.update(self.player, token,
                           {"name": "progress", "schemaVersion": 1, "delete": {}})
        self.assertIsNone(self.section())

    def test_if_version_and_schema_version_guard_a_section(self):
        token = self.client.start(self.player, self.server)["token"]
        self.client.update(self.player, token, replace("progress", '{"v":1}', schema=3))
        error = self.refused("VERSION_CONFLICT", self.client.update, self.player, token,
                             replace("progress", '{"v":2}', schema=3, ifVersion=7))
        self.assertEqual(error.value, "1")
        self.refused("SCHEMA_TOO_NEW", self.client.update, self.player, token,
                     replace("progress", '{"v":2}', schema=2))
        # All or nothing: the good edit beside a bad one is not kept.
        self.refused("VERSION_CONFLICT", self.client.update, self.player, token,
                     replace("quests", "{}"), replace("progress", "{}", schema=3, ifVersion=9))
        self.assertIsNone(self.section("quests"))
        self.assertEqual(self.section()["json"], {"v": 1})
        self.client.update(self.player, token,
                           replace("progress", '{"v":2}', schema=4, ifVersion=1))
        self.assertEqual(self.section()["schemaVersion"], 4)

    def test_ending_saves_and_releases_in_one_entry(self):
        token = self.client.start(self.player, self.server)["token"]
        ended = self.client.end(self.player, token, edits=[replace("progress", '{"xp":9}')])
        self.assertEqual(list(ended["sections"]), ["progress"])
        seen = self.client.call("AdminService/GetSession", {"playerId": self.player})
        self.assertEqual(seen["state"], "free")
        self.assertEqual(self.section()["json"], {"xp": 9})
        self.refused("SESSION_LOST", self.client.update, self.player, token,
                     replace("progress", "{}"))
        self.assertEqual(self.client.start(self.player, self.server)["fence"], 2)

    def test_an_ending_that_is_refused_releases_nothing(self):
        token = self.client.start(self.player, self.server)["token"]
        self.refused("VERSION_CONFLICT", self.client.end, self.player, token,
                     edits=[replace("progress", "{}", ifVersion=5)])
        self.client.update(self.player, token, replace("progress", "{}"))

    def test_unheld_writes_stop_while_a_server_holds_the_player(self):
        self.client.update(self.player, None, replace("progress", '{"a":1}'))
        token = self.client.start(self.player, self.server)["token"]
        error = self.refused("SESSION_LOCKED", self.client.update, self.player, None,
                             replace("progress", '{"a":2}'))
        self.assertEqual(error.owner, self.server)
        self.assertGreater(error.retry_after_ms, 0)
        self.client.end(self.player, token)
        self.client.update(self.player, None, replace("progress", '{"a":3}'))

    def test_a_batch_of_joins_and_leaves_answers_each_by_itself(self):
        held = f"held-{uuid7()}"
        self.client.start(held, self.register("other"))
        players = [self.player, held, f"third-{uuid7()}"]
        results = self.client.call("SessionService/BatchStartSession", {"requests": [
            {"playerId": p, "opId": uuid7(), "incarnation": self.server} for p in players]})
        kinds = [next(iter(r)) for r in results["results"]]
        self.assertEqual(kinds, ["response", "error", "response"])
        tokens = [r.get("response", {}).get("token", "9-9-9") for r in results["results"]]
        ended = self.client.call("SessionService/BatchEndSession", {"requests": [
            {"playerId": p, "opId": uuid7(), "authority": f"session:{t}"}
            for p, t in zip(players, tokens)]})
        self.assertEqual([next(iter(r)) for r in ended["results"]],
                         ["response", "error", "response"])
        self.assertEqual((results["failed"], ended["failed"]), (1, 1))

    def test_a_batch_of_joins_says_server_mode_and_op_id_once(self):
        held, other = f"held-{uuid7()}", self.register("other")
        self.client.start(held, other)
        join = {"opId": uuid7(), "incarnation": self.server, "mode": "steal",
                "graceMs": 1, "requests": [{"playerId": p} for p in (self.player, held)]}
        first = self.client.call("SessionService/BatchStartSession", join)
        again = self.client.call("SessionService/BatchStartSession", join)
        self.assertTrue(first["results"][1]["response"]["stolen"])
        tokens = [[r["response"]["token"] for r in answer["results"]] for answer in (first, again)]
        self.assertEqual(tokens[0], tokens[1])
        ended = self.client.call("SessionService/BatchEndSession", {
            "opId": uuid7(), "requests": [
                {"playerId": p, "authority": f"session:{t}"}
                for p, t in zip((self.player, held), tokens[0])]})
        self.assertNotIn("failed", ended)


class Expiry(ClusterTest):
    def renewed(self, server, *sessions):
        self.enterContext(Heartbeat(self.client, server, *sessions))

    def test_a_silent_server_loses_its_sessions_and_can_not_come_back(self):
        server = self.client.register("silent", 5000)
        begun = time.monotonic()
        steady = self.client.register("steady", 8000)
        kept = self.client.start("kept", steady)["token"]
        self.renewed(steady, ("kept", kept))
        players = [f"orphan-{n}" for n in range(8)]
        tokens = {p: self.client.start(p, server)["token"] for p in players}
        self.client.renew(server, *tokens.items())
        for player in players:  # Freed by expiry: no one stole, no one asked.
            wait_for(f"{player} to be free", lambda p=player: self.client.call(
                "AdminService/GetSession", {"playerId": p})["state"] == "free")
        self.assertGreater(time.monotonic() - begun, 4)
        error = self.refused("SERVER_EXPIRED", self.client.start, "late", server)
        self.assertTrue(error.message)
        self.refused("SESSION_LOST", self.client.update, players[0], tokens[players[0]],
                     replace("progress", "{}"))
        wait_for("the registration to be forgotten", lambda: server not in [
            s["incarnation"] for s in
            self.client.call("AdminService/ListServers", {}).get("servers", [])])
        self.assertEqual(self.client.start(players[0], steady)["fence"], 2)
        # The server that kept renewing kept its player, beyond its own TTL.
        wait_for("the steady server's TTL to pass", lambda: time.monotonic() - begun > 9)
        self.client.update("kept", kept, replace("progress", '{"still":"here"}'))

    def test_unregistering_frees_sessions_at_once(self):
        server = self.client.register("polite", 10000)
        token = self.client.start("polite-player", server)["token"]
        self.client.renew(server, ("polite-player", token))
        begun = time.monotonic()
        self.client.call("SessionService/UnregisterServer", {"incarnation": server})
        wait_for("the session to be free", lambda: self.client.call(
            "AdminService/GetSession", {"playerId": "polite-player"})["state"] == "free")
        self.assertLess(time.monotonic() - begun, 9, "it waited for the TTL")
        self.refused("SERVER_EXPIRED", self.client.start, "polite-player", server)

    def test_a_server_that_never_was_gets_no_session(self):
        """Nothing would ever tell a shard that it has gone: the player would be held for ever."""
        real = self.client.register("real", 10000)
        self.renewed(real)
        for never in ("1-99999999", "7-3", real + "000000"):
            error = self.refused("SERVER_EXPIRED", self.client.start, "nobodys", never)
            self.assertEqual((error.field, error.value), ("incarnation", never))
            self.refused("SERVER_EXPIRED", self.client.call, "SessionService/BatchStartSession", {
                "incarnation": never, "mode": "fail", "opId": uuid7(), "requests": [{"playerId": "nobodys"}]})
        self.assertEqual(self.client.call("AdminService/GetSession", {"playerId": "nobodys"})["state"], "free")
        self.client.start("nobodys", real)

    def test_a_grant_of_a_session_that_is_never_used_frees_itself(self):
        server = self.client.register("forgetful", 10000)
        self.renewed(server)
        self.client.start("unused", server)
        wait_for("the unused session to be free", lambda: self.client.call(
            "AdminService/GetSession", {"playerId": "unused"})["state"] == "free")


if __name__ == "__main__":
    unittest.main(verbosity=2)
