"""The command line's verbs of favourites and counters, and the page of hot targets of holdfast top."""

import json
import subprocess
import unittest

from client import RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for

SHARDS = 8


class FavoritesCliTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=SHARDS)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define("favorites", {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}})
        cls.define("likes", {"collection": {"conflictPolicy": "CONFLICT_POLICY_LAST_WRITE"}})
        cls.define("plays", {"counter": {"addMax": 100}})

    @classmethod
    def define(cls, name, body):
        def made():
            try:
                return cls.client.call("DefinitionService/PutDefinition", {
                    "name": name, "body": body, "opId": uuid7(), "waitMs": 5000})["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for(f"{name} to be in force", lambda: (made() or {}).get("inForce"))

    def run_verb(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint], capture_output=True,
                              text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def table(self, *words):
        """Rows of cells, the head among them; lines before the table are left out."""
        return [line.split() for line in self.run_verb(*words).stdout.splitlines()
                if not line.startswith(("operation ", "more: "))]

    def told(self, *words):
        return json.loads(self.run_verb(*words, "--json").stdout)

    def test_edges_are_made_listed_counted_and_taken_away(self):
        player, other, (new, old) = uuid7(), uuid7(), (f"new-{uuid7()}", f"old-{uuid7()}")
        self.assertEqual(self.table("favorites", "add", player, old)[1:], [[old, "true", "1", "true", "1"]])
        self.assertEqual(self.table("favorites", "add", player, new)[1:], [[new, "true", "1", "true", "2"]])
        self.run_verb("favorites", "add", other, old)
        rows = self.table("favorites", "list", player)
        self.assertEqual([row[:2] for row in rows], [["TARGET", "VER"], [new, "1"], [old, "1"]])
        self.assertEqual([row[:3] for row in self.table("favorites", "status", player, old, "chess")[1:]],
                         [[old, "true", "1"], ["chess", "false", "0"]])
        self.assertEqual([row[:2] for row in self.table("favorites", "count", old, new, "chess", "--fresh")[1:]],
                         [[old, "2"], [new, "1"], ["chess", "0"]])
        self.assertEqual(self.table("favorites", "remove", player, old)[1:], [[old, "false", "2", "true", "1"]])
        self.assertEqual(len(self.table("favorites", "list", player)), 2)
        # Another collection has edges of its own.
        self.assertEqual(len(self.table("favorites", "list", player, "--collection", "likes")), 1)

    def test_a_repetition_under_one_op_id_is_one_change(self):
        player, op_id = uuid7(), uuid7()
        first = self.told("favorites", "add", player, "zork", "--op-id", op_id)
        again = self.told("favorites", "add", player, "zork", "--op-id", op_id)
        self.assertEqual((again["status"], again["write"]["duplicate"]), (first["status"], True))
        self.assertEqual(self.run_verb("favorites", "add", player, "zork", "--op-id", op_id).stdout.splitlines()[0],
                         f"operation {op_id}")

    def test_pages_go_on_where_the_last_one_ended(self):
        player = uuid7()
        for n in range(5):
            self.run_verb("favorites", "add", player, f"g{n}")
        first = self.run_verb("favorites", "list", player, "--page-size", "3").stdout.splitlines()
        self.assertEqual(len(first), 5)
        cursor = first[-1].removeprefix("more: --cursor ")
        rest = self.table("favorites", "list", player, "--page-size", "3", "--cursor", cursor)
        self.assertEqual([row[0] for row in rest[1:]], ["g1", "g0"])

    def test_a_top_list_shows_what_has_the_most(self):
        target = f"top-{uuid7()}"
        for _ in range(3):
            self.run_verb("favorites", "add", uuid7(), target, "--collection", "likes")
        words = ("favorites", "top", "--collection", "likes", "--window", "all", "--limit", "1")
        wait_for("the target on top", lambda: self.table(*words)[1:] == [[target, "3"]])
        self.assertEqual(self.told(*words)["entries"], [{"targetId": target, "count": "3"}])

    def test_counters_are_added_to_listed_and_summed(self):
        player, other, target = uuid7(), uuid7(), f"level-{uuid7()}"
        self.assertEqual(self.table("counters", "add", "plays", player, target, "5")[1:], [["5", "1"]])
        self.assertEqual(self.table("counters", "add", "plays", player, target, "2")[1:], [["7", "1"]])
        self.run_verb("counters", "add", "plays", other, target, "30")
        self.assertEqual([row[:2] for row in self.table("counters", "list", "plays", player)[1:]], [[target, "7"]])
        self.assertEqual([row[:2] for row in self.table("counters", "get", "plays", target, "none", "--fresh")[1:]],
                         [[target, "37"], ["none", "0"]])
        wait_for("the target on top", lambda: [target, "37"] in self.table("counters", "top", "plays"))

    def test_what_is_refused_says_why(self):
        self.assertIn("NOT_FOUND", self.run_verb("favorites", "list", "p", "--collection", "likez", code=1).stderr)
        self.assertIn("100", self.run_verb("counters", "add", "plays", "p", "t", "101", code=1).stderr)
        self.assertIn("amount", self.run_verb("counters", "add", "plays", "p", "t", "many", code=1).stderr)
        self.assertIn("window", self.run_verb("favorites", "top", "--window", "1y", code=1).stderr)
        self.assertIn("--limit", self.run_verb("favorites", "top", "--limit", "0", code=2).stderr)
        self.run_verb("favorites", "add", "p", code=2)

    def test_top_shows_the_targets_that_gain(self):
        target = f"hot-{uuid7()}"
        self.run_verb("favorites", "add", uuid7(), target)

        def row():
            page = self.told("top", "--once", "--targets")
            return next((row for row in page["targets"]["rows"] if row["targetId"] == target), None)
        wait_for("the target among the hot ones", row)
        self.assertEqual(row()["count"], 1)
        text = self.run_verb("top", "--once", "--targets").stdout
        self.assertIn("collection favorites", text)
        self.assertIn(target, text)
        self.assertNotIn("METHOD AT THE NODES", text)
        missing = self.told("top", "--once", "--targets", "--counter", "no_such")["targets"]
        self.assertEqual(missing["rows"], [])
        self.assertIn("no_such", missing["why"])


if __name__ == "__main__":
    unittest.main()
