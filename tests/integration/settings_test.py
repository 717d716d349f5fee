"""Settings over real processes: put, read by game servers, reloaded while they run, rolled back, deleted."""

import json
import os
import subprocess
import threading
import time
import unittest

from client import Client, RpcError, uuid7
from cluster import BIN, SANITIZED, Cluster, ClusterTest, wait_for

SOON_S = 10.0 if SANITIZED else 2.0  # Within which a change reaches who waits for it.
SERVICE = "DefinitionService/"


class Settings(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.admin = Client(cls.cluster.endpoint, cls.issue("ops", "admin"))
        cls.game = Client(cls.cluster.endpoint, cls.issue("game", "game"))

    @classmethod
    def holdfast(cls, *words, key=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment |= {"HOLDFAST_ETCD": cls.cluster.etcd_url, "HOLDFAST_CLUSTER": "it",
                        "HOLDFAST_ENDPOINT": cls.cluster.endpoint}
        if key is not None:
            environment["HOLDFAST_KEY"] = key
        return subprocess.run([BIN / "holdfast", *words], env=environment, capture_output=True, text=True, check=False)

    @classmethod
    def issue(cls, name, scope):
        """The key; the router knows it."""
        done = cls.holdfast("key", "issue", name, "--scopes", scope, "-o", "json")
        key = json.loads(done.stdout)["key"]

        def is_known():
            try:
                Client(cls.cluster.endpoint, key).call("LedgerService/GetBalances", {"playerId": "stranger"})
            except RpcError as error:
                return error.code != "UNAUTHENTICATED"
            return True
        wait_for("the key to be known", is_known)
        return key

    def put(self, name, value, kind="settings", **fields):
        body = {"json": value} if kind == "settings" else value
        fields = {"name": name, "opId": uuid7(), "body": {kind: body}} | fields

        def made():
            try:
                return self.admin.call(SERVICE + "PutDefinition", fields)["definition"]
            except RpcError as error:
                return None if error.code in ("UNAVAILABLE", "OUTCOME_UNKNOWN") else error
        answer = wait_for(f"{name} to be made", made)
        if isinstance(answer, RpcError):
            raise answer
        return answer

    def change(self, method, name, **fields):
        return self.admin.call(SERVICE + method, {
            "kind": "settings", "name": name, "opId": uuid7()} | fields)["definition"]

    def get(self, name, client=None, **fields):
        return (client or self.game).call(SERVICE + "GetSettings", {"name": name} | fields)

    def later(self, name, version):
        """What stands above that version, and how long it took."""
        begin = time.monotonic()
        told = self.get(name, ifVersionAbove=version, waitMs=20000)
        return told, time.monotonic() - begin

    def shown(self, name, version):
        """As the router tells it once it has heard of that version."""
        told, took = self.later(name, version - 1)
        self.assertEqual(told["version"], version)
        self.assertLess(took, SOON_S)
        return told

    def known(self, name):
        try:
            return self.get(name)
        except RpcError as error:
            self.assertEqual(error.code, "NOT_FOUND")
            return None


class SettingsTest(Settings):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, shards=4, options={"router": {"access": "keys"}})

    def test_game_servers_read_what_the_team_puts(self):
        # A router that has not heard of it yet says NOT_FOUND: nothing waits for a name to be made.
        made = self.put("match", {"tickRate": 30, "maps": ["dust", "ice"]}, reason="first")
        told = wait_for("the router to know", lambda: self.known("match"))
        self.assertEqual(told, {"name": "match", "version": 1, "number": made["number"],
                                "updatedAtMs": made["madeAtMs"], "json": {"tickRate": 30, "maps": ["dust", "ice"]}})
        self.assertEqual(self.get("match", ifVersionAbove=1), {
            "name": "match", "version": 1, "number": made["number"], "updatedAtMs": made["madeAtMs"], "unchanged": True})
        error = self.refused("NOT_FOUND", self.get, "mach")
        self.assertIn("did you mean match?", error.message)
        self.refused("INVALID_ARGUMENT", self.get, "Match")
        self.refused("INVALID_ARGUMENT", self.get, "match", waitMs=30001)

    def test_only_keys_that_read_players_may(self):
        self.put("hidden", {"a": 1})
        wait_for("the router to know", lambda: self.known("hidden"))
        for scope, may in (("moderation", True), ("read:player", True), ("read:ops", False)):
            client = Client(self.cluster.endpoint, self.issue(f"of-{scope[-3:]}", scope))
            with self.subTest(scope=scope):
                if may:
                    self.assertEqual(self.get("hidden", client)["json"], {"a": 1})
                else:
                    self.refused("PERMISSION_DENIED", self.get, "hidden", client)
        self.refused("UNAUTHENTICATED", self.get, "hidden", Client(self.cluster.endpoint))
        self.refused("PERMISSION_DENIED", self.game.call, SERVICE + "PutDefinition", {
            "name": "hidden", "opId": uuid7(), "body": {"settings": {"json": {"a": 2}}}})

    def test_a_change_reaches_who_waits_and_a_rollback_raises_the_version(self):
        self.put("shop", {"price": 5})
        wait_for("the router to know", lambda: self.known("shop"))
        heard = []
        waiting = threading.Thread(target=lambda: heard.append(self.later("shop", 1)))
        waiting.start()
        time.sleep(0.3)
        self.assertEqual(heard, [])
        begin = time.monotonic()
        self.put("shop", {"price": 7})
        waiting.join(30)
        self.assertLess(time.monotonic() - begin, SOON_S)
        self.assertEqual((heard[0][0]["version"], heard[0][0]["json"]), (2, {"price": 7}))
        self.change("RollbackDefinition", "shop", version=1)
        self.assertEqual(self.shown("shop", 3)["json"], {"price": 5})
        begin = time.monotonic()
        self.assertTrue(self.get("shop", ifVersionAbove=3, waitMs=400)["unchanged"])
        self.assertGreaterEqual(time.monotonic() - begin, 0.39)
        changes = self.admin.call(SERVICE + "DiffDefinitions", {"kind": "settings", "name": "shop", "fromVersion": 1,
                                                                 "toVersion": 2})["changes"]
        self.assertEqual(changes, [{"field": "settings.json", "before": '{"price": 5}', "after": '{"price": 7}'}])

    def test_what_is_deleted_is_gone_and_a_name_made_again_is_told(self):
        first = self.put("event", {"on": True})
        wait_for("the router to know", lambda: self.known("event"))
        heard = []
        waiting = threading.Thread(target=lambda: heard.append(
            self.refused("NOT_FOUND", self.get, "event", ifVersionAbove=1, waitMs=20000)))
        waiting.start()
        time.sleep(0.3)
        self.assertTrue(self.change("DeleteDefinition", "event")["deleted"])
        waiting.join(30)
        self.assertEqual(len(heard), 1)
        self.refused("NOT_FOUND", self.get, "event")
        again = self.put("event", {"on": False})
        self.assertEqual(again["version"], 1)
        wait_for("the router to know", lambda: self.known("event"))
        self.assertTrue(self.get("event", ifVersionAbove=1)["unchanged"])
        told = self.get("event", ifVersionAbove=1, ifNumber=first["number"], waitMs=20000)
        self.assertEqual((told["json"], told["number"]), ({"on": False}, again["number"]))

    def test_other_kinds_and_what_is_no_object_are_refused(self):
        self.put("kills", {"maxValue": 10}, kind="counter")
        self.put("after", {"a": 1})  # Once this is known, so is what was made before.
        wait_for("the router to know", lambda: self.known("after"))
        self.refused("NOT_FOUND", self.get, "kills")
        for bad in ([1], "7", '{"a":1,"a":2}', "{", {"a": "x" * 4000}):
            with self.subTest(bad=str(bad)[:20]):
                self.refused("INVALID_ARGUMENT", self.put, "bad", bad)
        self.refused("NOT_FOUND", self.get, "bad")

    def test_they_come_into_force_as_other_kinds_and_leave_no_event(self):
        made = self.put("force", {"a": 1}, waitMs=20000)
        self.assertTrue(made["inForce"])
        counter = self.put("forced", {"maxValue": 10}, kind="counter", waitMs=20000)
        self.assertTrue(counter["inForce"])
        told, cursor = [], ""
        while True:
            page = self.admin.call("EventService/Poll", {"kinds": ["definition"], "cursor": cursor})
            told += [each["definition"]["name"] for each in page.get("events", [])]
            cursor = page["nextCursor"]
            if not page.get("more"):
                break
        self.assertIn("forced", told)
        self.assertNotIn("force", told)

    def test_the_largest_body_comes_into_force(self):
        """A shard takes 4096 bytes, with the name and the numbers; one that is refused would hold up all later ones."""
        name = "n" * 64
        self.refused("INVALID_ARGUMENT", self.put, name, {"a": "x" * 3986})
        made = self.put(name, {"a": "x" * 3985}, waitMs=20000)
        self.assertTrue(made["inForce"])
        self.assertEqual(wait_for("the router to know", lambda: self.known(name))["json"], {"a": "x" * 3985})

    def test_a_router_that_stops_answers_who_waits(self):
        self.put("stop", {"a": 1})
        wait_for("the router to know", lambda: self.known("stop"))
        heard = []
        waiting = threading.Thread(target=lambda: heard.append(self.later("stop", 1)))
        waiting.start()
        time.sleep(0.3)
        begin = time.monotonic()
        try:
            self.assertEqual(self.cluster.router.stop(), 0)
            waiting.join(30)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertTrue(heard[0][0]["unchanged"])
        finally:
            self.cluster.router.start()
            self.cluster.wait_ready()

    def test_a_router_that_starts_says_unavailable_or_the_truth(self):
        self.put("start", {"a": 1})
        wait_for("the router to know", lambda: self.known("start"))
        router = self.cluster.router
        router.kill()
        router.start()
        codes, told = set(), None
        begin = time.monotonic()
        while told is None and time.monotonic() - begin < 60:
            try:
                told = self.get("start")
            except RpcError as error:
                codes.add(error.code)
            except Exception:  # No answer: it does not listen yet.
                time.sleep(0.002)
        self.assertEqual(told["json"], {"a": 1})
        self.assertLessEqual(codes, {"UNAVAILABLE", "UNAUTHENTICATED"}, "its keys are read beside its settings")
        self.cluster.wait_ready()

    def test_the_command_line(self):
        key = self.issue("cli", "admin")
        done = self.holdfast("define", "put", "settings", "cli", '{"json": {"a": 1}}', key=key)
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_for("the router to know", lambda: self.known("cli"))
        done = self.holdfast("settings", "get", "cli", key=key)
        self.assertEqual((done.returncode, json.loads(done.stdout)["json"]), (0, {"a": 1}))
        watch = subprocess.Popen([BIN / "holdfast", "settings", "watch", "cli"], text=True, stdout=subprocess.PIPE,
                                 env={"HOLDFAST_ENDPOINT": self.cluster.endpoint, "HOLDFAST_KEY": key})
        try:
            self.assertEqual(json.loads(watch.stdout.readline())["version"], 1)
            self.put("cli", {"a": 2})
            line = json.loads(watch.stdout.readline())
            self.assertEqual((line["version"], line["json"]), (2, {"a": 2}))
            self.change("DeleteDefinition", "cli")
            self.assertEqual(watch.wait(30), 1)
        finally:
            watch.kill()
            watch.wait()
            watch.stdout.close()
        self.assertEqual(self.holdfast("settings", "get", "cli", key=key).returncode, 1)


class SettingsLimitTest(Settings):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=1, options={"router": {"access": "keys", "in-flight-max": 40, "slow-request": "200ms"}})

    def test_half_of_the_calls_that_may_wait_are_of_one_key(self):
        """A quarter of in-flight-max may wait."""
        other = Client(self.cluster.endpoint, self.issue("other", "game"))
        self.put("busy", {"a": 1})
        wait_for("the router to know", lambda: self.known("busy"))
        heard = []
        waiting = [threading.Thread(target=lambda: heard.append(self.later("busy", 1)[0])) for _ in range(5)]
        for each in waiting:
            each.start()
        time.sleep(0.5)
        error = self.refused("THROTTLED", self.get, "busy", ifVersionAbove=1, waitMs=20000)
        self.assertGreater(error.detail["retryAfterMs"], 0)
        self.assertTrue(self.get("busy", ifVersionAbove=1)["unchanged"], "it does not wait")
        self.assertTrue(self.get("busy", other, ifVersionAbove=1, waitMs=100)["unchanged"])
        self.put("busy", {"a": 2})
        for each in waiting:
            each.join(30)
        self.assertEqual([each["version"] for each in heard], [2] * 5)
        slow = [line for line in self.cluster.router.log().splitlines() if "request.slow" in line and "GetSettings" in line]
        self.assertEqual(slow, [], "how long a caller wished to wait is no latency")


if __name__ == "__main__":
    unittest.main()
