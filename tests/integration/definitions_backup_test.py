"""
Definitions in backups: a new cluster gets them with their numbers, so that what stands under these is found again; what
is defined otherwise there is named and left alone. A backup of an earlier version has none.
"""

import ctypes
import json
import re
import unittest

from backup_test import Backups
from client import RpcError, uuid7
from cluster import Cluster, wait_for

SHARDS = 4
ADMIN = "system:match"


def hashed(data):
    """As `xxhsum -H2` prints it."""
    class Sum(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
    xxh = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    xxh.restype, xxh.argtypes = Sum, [ctypes.c_char_p, ctypes.c_size_t]
    made = xxh(data, len(data))
    return f"{made.high:016x}{made.low:016x}"


def make_old(directory):
    """The backup as a version before had written it: without definitions."""
    path = directory / "000001" / "MANIFEST"
    text = path.read_text().replace("holdfast-backup 3\n", "holdfast-backup 2\n", 1)
    text = re.sub(r"^definitions? .*\n", "", text, flags=re.M)
    text = re.sub(r"^end \w+\n\Z", "", text, flags=re.M)
    path.write_text(f"{text}end {hashed(text.encode())}\n")


class DefinitionsBackup(Backups):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=SHARDS)

    def new_cluster(self, **options):
        return super().new_cluster(**{"nodes": 1, "shards": SHARDS} | options)

    def define(self, cluster, kind, name, body, **fields):
        def made():
            try:
                told = cluster.client.call("DefinitionService/PutDefinition", {
                    "name": name, "body": {kind: body}, "opId": uuid7(), "waitMs": 5000} | fields)["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN", "VERSION_CONFLICT"):
                    raise
                return None
            return told if told.get("inForce") else None
        return wait_for(f"{name} to be in force", made)

    def defined(self, cluster):
        """By kind and name; what tells of the moment is left out."""
        found = cluster.client.settle("DefinitionService/ListDefinitions", {}).get("definitions", [])
        return {(each["kind"], each["name"]): {key: value for key, value in each.items()
                                               if key not in ("current", "inForce", "shardsLeft")} for each in found}


class DefinitionsBackupTest(DefinitionsBackup):
    def test_what_stands_under_a_number_is_found_in_a_cluster_that_defined_nothing(self):
        self.define(self.cluster, "currency", "pearls", {"maxBalance": 1000})
        self.define(self.cluster, "collection", "stars", {"conflictPolicy": "CONFLICT_POLICY_LAST_WRITE"})
        self.define(self.cluster, "counter", "kills", {"maxValue": 10}, reason="season one")
        self.define(self.cluster, "counter", "kills", {"maxValue": 1000}, reason="season two")
        self.define(self.cluster, "documents", "rooms", {"policy": "vector"})
        self.define(self.cluster, "settings", "arena", {"json": {"rate": 30}})
        self.define(self.cluster, "counter", "gone", {})
        self.cluster.client.settle("DefinitionService/DeleteDefinition", {
            "kind": "counter", "name": "gone", "opId": uuid7(), "waitMs": 5000})
        self.fill(self.cluster.client)
        stood = self.defined(self.cluster)
        self.assertEqual(self.back_up()["definitions"], len(stood))
        listed = json.loads(self.done("backup", "list", self.dir, "-o", "json"))
        self.assertEqual(listed[0]["definitions"], len(stood))
        self.assertEqual((stood["counter", "kills"]["version"], stood["counter", "kills"]["reason"]), (2, "season two"))
        other = self.restored()
        self.assertEqual(self.defined(other), stood)
        self.assert_filled(other.client)
        self.life_goes_on(other, stood)

    def fill(self, client):
        client.settle("LedgerService/Grant", {
            "playerId": "ada", "opId": uuid7(), "authority": "system:payments", "currencies": {"pearls": 7}})
        client.settle("FavoritesService/Favorite", {
            "playerId": "ada", "opId": uuid7(), "collection": "stars", "targetId": "sirius"})
        client.settle("CounterService/AddToCounter", {
            "playerId": "ada", "opId": uuid7(), "authority": ADMIN, "counter": "kills", "targetId": "orc", "amount": 900})
        client.settle("DocumentService/PutDocument", {
            "entity": "guild:1", "collection": "rooms", "key": "k", "json": {"at": "castle"}, "opId": uuid7()})

    def assert_filled(self, client):
        self.assertEqual(client.balance("ada", "pearls"), 7)
        edges = client.settle("FavoritesService/ListFavorites", {"playerId": "ada", "collection": "stars"})["favorites"]
        self.assertEqual([edge["targetId"] for edge in edges], ["sirius"])
        counted = client.settle("CounterService/ListPlayerCounters", {"playerId": "ada", "counter": "kills"})["counters"]
        self.assertEqual(int(counted[0]["value"]), 900)
        found = client.settle("DocumentService/GetDocument", {"entity": "guild:1", "collection": "rooms", "key": "k"})
        self.assertEqual(found["document"]["json"], {"at": "castle"})
        told = client.settle("DefinitionService/GetSettings", {"name": "arena"})
        self.assertEqual((told["version"], told["json"]), (1, {"rate": 30}))

    def life_goes_on(self, other, stood):
        """Definitions that are changed and made meet nothing of before."""
        raised = self.define(other, "counter", "kills", {"maxValue": 2000})
        self.assertEqual((raised["number"], raised["version"]), (stood["counter", "kills"]["number"], 3))
        again = self.define(other, "counter", "gone", {})
        self.assertNotIn(again["number"], [each["number"] for each in stood.values()])
        self.assertIn("restored here before", self.refusal("restore", self.dir, cluster=other))
        directory = self.dir / "again"
        self.assertEqual(self.back_up(other, directory)["definitions"], len(stood) + 1)
        self.done("backup", "verify", directory)

    def test_a_cluster_that_defined_something_else_is_left_as_it_is(self):
        self.define(self.cluster, "counter", "aces", {})
        self.define(self.cluster, "counter", "deaths", {"maxValue": 5})
        self.back_up()
        other = self.new_cluster()
        self.define(other, "counter", "deaths", {"maxValue": 5})
        stood = self.defined(other)
        said = self.refusal("restore", self.dir, cluster=other)
        self.assertIn("the definition of the counter deaths", said)
        self.assertIn("another definition", said)
        self.assertEqual(self.defined(other), stood)
        other.client.settle("DefinitionService/DeleteDefinition", {
            "kind": "counter", "name": "deaths", "opId": uuid7(), "waitMs": 5000})
        self.done("restore", self.dir, cluster=other)
        self.assertEqual(self.defined(other)["counter", "deaths"], self.defined(self.cluster)["counter", "deaths"])

    def test_a_backup_of_before_is_restored_and_said_to_have_none(self):
        self.define(self.cluster, "counter", "old", {})
        self.cluster.client.grant("somebody", 5)
        self.back_up()
        make_old(self.dir)
        self.assertIn("without definitions", self.done("backup", "verify", self.dir))
        self.assertIsNone(json.loads(self.done("backup", "list", self.dir, "-o", "json"))[0]["definitions"])
        other = self.new_cluster()
        self.assertIn("it has no definitions", self.done("restore", self.dir, cluster=other))
        self.assertEqual(other.client.balance("somebody"), 5)
        self.assertEqual(self.defined(other), {})

    def test_two_clusters_of_one_backup_take_no_context_of_each_other(self):
        self.define(self.cluster, "documents", "twins", {"policy": "vector"})
        self.cluster.client.settle("DocumentService/PutDocument", {
            "entity": "guild:1", "collection": "twins", "key": "k", "json": {"at": "castle"}, "opId": uuid7()})
        self.back_up()
        first, second = self.restored(), self.restored()
        where = {"entity": "guild:1", "collection": "twins", "key": "k"}
        context = first.client.settle("DocumentService/GetDocument", where)["context"]
        with self.assertRaises(RpcError) as caught:
            second.client.settle("DocumentService/PutDocument", where | {
                "json": {"at": "harbour"}, "opId": uuid7(), "context": context})
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        first.client.settle("DocumentService/PutDocument", where | {
            "json": {"at": "harbour"}, "opId": uuid7(), "context": context})


if __name__ == "__main__":
    unittest.main(verbosity=2)
