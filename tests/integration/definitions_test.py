"""Definitions over real processes: made, told, in force in every shard, rolled back, deleted; by whom and why."""

import json
import os
import subprocess
import unittest

from client import Client, RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for


class DefinitionsTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=2, shards=8)

    def setUp(self):
        self.client = Client(self.cluster.endpoint)

    def ask(self, method, **fields):
        return self.client.call(f"DefinitionService/{method}", fields)

    def put(self, kind, name, body, **fields):
        """Waits for the shards; asks again while the coordinator has not heard all of them."""
        fields = {"name": name, "body": {kind: body}, "opId": uuid7(), "waitMs": 5000} | fields

        def made():
            try:
                return self.ask("PutDefinition", **fields)
            except RpcError as error:
                return None if error.code in ("UNAVAILABLE", "OUTCOME_UNKNOWN") else error
        answer = wait_for(f"{name} to be made", made)
        if isinstance(answer, RpcError):
            raise answer
        return answer

    def grant(self, currency, amount, player="ann"):
        return self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "authority": "system:payments", "currencies": {currency: amount},
            "reason": "test"})

    def holdfast(self, *words, code=0):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        environment["HOLDFAST_ENDPOINT"] = self.cluster.endpoint
        done = subprocess.run([BIN / "holdfast", "define", *words], env=environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_currency_is_granted_in_every_shard_once_it_is_in_force(self):
        made = self.put("currency", "pearls", {"maxBalance": 100})["definition"]
        self.assertTrue(made["inForce"])
        self.assertEqual(made["version"], 1)
        for number in range(20):
            self.grant("pearls", 100, f"diver{number}")
        self.refused("CAPACITY_FULL", self.grant, "pearls", 1, "diver0")
        raised = self.put("currency", "pearls", {"maxBalance": 200}, reason="season two")["definition"]
        self.assertTrue(raised["inForce"])
        self.assertEqual((raised["version"], raised["number"]), (2, made["number"]))
        for number in range(20):
            self.grant("pearls", 100, f"diver{number}")

    def test_a_policy_that_is_set_later_leaves_it_in_place(self):
        self.put("currency", "shells", {"maxBalance": 10})
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        policy["version"] = int(policy.get("version", 0)) + 1
        self.client.call("AdminService/SetPolicy", {"policy": policy})
        self.grant("shells", 10)
        self.refused("CAPACITY_FULL", self.grant, "shells", 1)
        self.grant("gold", 5)

    def test_a_policy_for_whose_currencies_shards_have_no_room_is_not_stored(self):
        for name in ("amber", "beryl"):
            self.put("currency", name, {"maxBalance": 10})
        before = self.client.call("AdminService/GetCluster", {})["policy"]
        known = {each["name"] for each in before["currencies"]} | {"amber", "beryl"}
        policy = before | {"version": int(before.get("version", 0)) + 1}
        policy["currencies"] = before["currencies"] + [
            {"name": f"coin{n}", "maxBalance": 5} for n in range(64 - len(before["currencies"]))]
        error = self.refused("CAPACITY_FULL", self.client.call, "AdminService/SetPolicy", {"policy": policy})
        self.assertEqual((error.detail["field"], error.detail["limit"]), ("policy.currencies", "64"))
        self.assertGreaterEqual(int(error.detail["value"]), 66)
        self.assertEqual(self.client.call("AdminService/GetCluster", {})["policy"], before, "it was stored")
        defined = {each["name"] for each in self.ask("ListDefinitions", kind="currency")["definitions"]}
        room = 64 - len(known | defined)
        policy["currencies"] = before["currencies"] + [{"name": f"coin{n}", "maxBalance": 5} for n in range(room)]
        self.client.call("AdminService/SetPolicy", {"policy": policy})
        self.grant("amber", 1)
        fewer = {"policy": before | {"version": policy["version"] + 1}}
        error = self.refused("INVALID_ARGUMENT", self.client.call, "AdminService/SetPolicy", fewer)
        self.assertEqual((error.detail["field"], error.detail["value"]), ("policy.currencies", "coin0"))
        self.client.call("AdminService/SetPolicy", fewer | {"dropCurrencies": [f"coin{n}" for n in range(room)]})

        def make_room():  # The coordinator hears of a policy a moment after its caller does.
            try:
                return self.put("currency", "citrine", {"maxBalance": 10})
            except RpcError as error:
                self.assertEqual(error.code, "CAPACITY_FULL")
                return None
        wait_for("the coordinator to hear of the policy", make_room)

    def test_history_diff_and_rollback(self):
        self.put("counter", "kills", {"maxValue": 10}, reason="first")
        self.put("counter", "kills", {"maxValue": 20}, reason="second")
        rolled = self.ask("RollbackDefinition", kind="counter", name="kills", version=1, opId=uuid7(), reason="oops",
                          waitMs=5000)["definition"]
        self.assertEqual((rolled["version"], rolled["rolledBackTo"]), (3, 1))
        self.assertEqual(rolled["body"]["counter"]["maxValue"], 10)
        versions = self.ask("ListDefinitionVersions", kind="counter", name="kills")["versions"]
        self.assertEqual([(each["version"], each["reason"]) for each in versions],
                         [(3, "oops"), (2, "second"), (1, "first")])
        page = self.ask("ListDefinitionVersions", kind="counter", name="kills", pageSize=2)
        rest = self.ask("ListDefinitionVersions", kind="counter", name="kills", pageSize=2, cursor=page["nextCursor"])
        self.assertEqual([each["version"] for each in page["versions"] + rest["versions"]], [3, 2, 1])
        changes = self.ask("DiffDefinitions", kind="counter", name="kills", fromVersion=1, toVersion=2)["changes"]
        self.assertEqual(changes, [{"field": "counter.max_value", "before": "10", "after": "20"}])
        self.assertEqual(self.ask("DiffDefinitions", kind="counter", name="kills", fromVersion=1).get("changes", []), [])

    def test_one_thing_of_the_policy_is_changed_and_the_rest_stays(self):
        def policy(*words, code=0):
            done = subprocess.run([BIN / "holdfast", "policy", *words, "--endpoint", self.cluster.endpoint],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stdout if code == 0 else done.stderr
        before = json.loads(policy("get"))
        changed = json.loads(policy("set", '{"mailboxMax": 500, "currencies": [{"name": "fads"}]}'))
        self.assertEqual((changed["version"], changed["mailboxMax"]), (before["version"] + 1, 500))
        self.assertEqual(changed["currencies"][:-1], before["currencies"])
        trial = json.loads(policy("set", "{}", "--drop", "fads", "--dry-run"))
        self.assertEqual(trial["currencies"], before["currencies"])
        self.grant("fads", 5, "trendy")
        dropped = json.loads(policy("set", '{"mailboxMax": 0}', "--drop", "fads"))
        self.assertEqual(dropped, before | {"version": before["version"] + 2})
        self.refused("INVALID_ARGUMENT", self.grant, "fads", 1, "trendy")
        self.assertIn("drop_currencies[0]", policy("set", "{}", "--drop", "fads", code=1))
        balances = self.client.call("LedgerService/GetBalances", {"playerId": "trendy"})["balances"]
        self.assertIn("fads", balances)

    def test_a_retry_makes_nothing_more_and_another_change_under_its_id_is_refused(self):
        op_id = uuid7()
        first = self.put("counter", "jumps", {"maxValue": 10}, opId=op_id)
        again = self.put("counter", "jumps", {"maxValue": 10}, opId=op_id)
        self.assertEqual(again["definition"]["version"], first["definition"]["version"])
        self.assertTrue(again["duplicate"])
        self.refused("OPERATION_ID_MISMATCH", self.put, "counter", "jumps", {"maxValue": 11}, opId=op_id)
        same = self.put("counter", "jumps", {"maxValue": 10})
        self.assertTrue(same["unchanged"])
        self.refused("VERSION_CONFLICT", self.put, "counter", "jumps", {"maxValue": 12}, ifVersion=0)
        trial = self.put("counter", "jumps", {"maxValue": 12}, ifVersion=1, dryRun=True)
        self.assertEqual(trial["definition"]["version"], 2)
        self.assertNotIn("madeAtMs", trial["definition"], "it was not made")
        self.assertEqual(self.ask("GetDefinition", kind="counter", name="jumps")["definition"]["version"], 1)

    def test_a_name_that_is_made_again_has_another_number(self):
        first = self.put("collection", "likes", {"conflictPolicy": "CONFLICT_POLICY_LAST_WRITE"})["definition"]
        self.refused("INVALID_ARGUMENT", self.put, "collection", "likes",
                     {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"})
        gone = self.ask("DeleteDefinition", kind="collection", name="likes", opId=uuid7(), waitMs=5000)["definition"]
        self.assertTrue(gone["deleted"])
        self.assertEqual(gone["version"], 2)
        self.refused("NOT_FOUND", self.ask, "GetDefinition", kind="collection", name="likes")
        again = self.put("collection", "likes", {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"})["definition"]
        self.assertEqual(again["version"], 1)
        self.assertNotEqual(again["number"], first["number"])
        names = [each["name"] for each in self.ask("ListDefinitions", kind="collection")["definitions"]]
        self.assertEqual(names, ["likes"])

    def test_bad_requests_name_what_is_wrong(self):
        self.put("counter", "deaths", {"maxValue": 10})
        with self.assertRaises(RpcError) as caught:
            self.ask("DeleteDefinition", kind="counter", name="death", opId=uuid7())
        self.assertIn("did you mean", str(caught.exception))
        with self.assertRaises(RpcError) as caught:
            self.ask("ListDefinitions", kind="curency")
        self.assertIn("did you mean", str(caught.exception))
        self.refused("INVALID_ARGUMENT", self.put, "counter", "Deaths", {"maxValue": 10})
        self.refused("INVALID_ARGUMENT", self.put, "counter", "deaths", {"maxValue": -1})
        for kind, body in (("counter", {"maxValue": -1}), ("currency", {"maxBalance": -1}), ("collection", {
                "edgesMax": 2**31 - 1}), ("documents", {"policy": "merge", "bytesMax": 2**31 - 1}),
                           ("rate_rule", {"subject": "nothing"}), ("event_retention", {"eventsMax": 2**32 - 1})):
            detail = self.refused("INVALID_ARGUMENT", self.put, kind, "unbounded", body).detail
            for part in ("field", "limit", "value"):
                self.assertIn(detail.get(part, ""), detail["message"], kind)
        self.refused("INVALID_ARGUMENT", self.ask, "PutDefinition", name="deaths", opId=uuid7())
        self.put("currency", "tokens", {"maxBalance": 10})
        self.refused("INVALID_ARGUMENT", self.ask, "DeleteDefinition", kind="currency", name="tokens", opId=uuid7())

    def test_the_command_line(self):
        self.assertIn("counter", self.holdfast("put", "counter", "steps", '{"maxValue": 5}', "--wait-ms", "5000",
                                               "--reason", "walks"))
        self.holdfast("put", "counter", "steps", '{"maxValue": 6}')
        self.assertIn("counter.max_value", self.holdfast("diff", "counter", "steps"))
        self.assertIn("walks", self.holdfast("history", "counter", "steps"))
        self.assertIn("steps", self.holdfast("list", "--kind", "counter"))
        self.holdfast("rollback", "counter", "steps", "1")
        self.assertEqual(json.loads(self.holdfast("get", "counter", "steps"))["definition"]["rolledBackTo"], 1)
        self.holdfast("delete", "counter", "steps")
        self.holdfast("get", "counter", "steps", code=1)
        self.assertIn("JSON", self.holdfast("put", "counter", "steps", "7", code=2))

    def test_the_next_coordinator_goes_on(self):
        made = self.put("counter", "wins", {"maxValue": 10})["definition"]
        leader = next(each for each in self.cluster.coordinators if "coordinator.elected" in each.log())
        leader.kill()
        try:
            raised = self.put("counter", "wins", {"maxValue": 20})["definition"]
            self.assertEqual((raised["number"], raised["version"]), (made["number"], 2))
            self.assertTrue(raised["inForce"])
        finally:
            leader.start()
            self.cluster.wait_ready()


if __name__ == "__main__":
    unittest.main()
