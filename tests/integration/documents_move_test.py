"""
A member is replaced and another one is lost right after: what a majority had acknowledged is there, though the third member
was away when it was written. Then the verbs of a person.
"""

import json
import subprocess
import unittest

from client import RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for

DOCUMENTS = 400  # Some chunks of what members send each other.


class DocumentsMoveTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=4, coordinators=1, shards=1)

    def setUp(self):
        wait_for("the collections to be in force", lambda: all([
            self.define("safe", {"policy": "last_write", "durability": "majority"}),
            self.define("rooms", {"policy": "vector"})]))

    def define(self, name, documents):
        try:
            return self.client.call("DefinitionService/PutDefinition", {
                "name": name, "body": {"documents": documents}, "opId": uuid7(), "waitMs": 5000})["definition"].get("inForce")
        except RpcError as error:
            if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                raise
            return False

    def holdfast(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def shard(self):
        return self.client.shards()[0]

    def read(self, key):
        try:
            return self.client.settle("DocumentService/GetDocument", {
                "entity": "player:ada", "collection": "safe", "key": key, "consistency": "majority"}).get("document", {}).get("json")
        except Unanswered:
            return None

    def test_a_replacement_waits_for_the_documents_of_the_new_member(self):
        wait_for("the shard to serve", self.cluster.all_serving)
        shard = self.shard()
        owner = self.cluster.node_of(shard["owner"])
        staying, leaving = [self.cluster.node_of(each) for each in shard["members"] if each != shard["owner"]]
        coming = next(node for node in self.cluster.nodes if node not in (owner, staying, leaving))
        replica = {node["name"]: node["replicaId"] for node in self.client.nodes()}
        staying.kill()
        for number in range(DOCUMENTS):
            self.client.settle("DocumentService/PutDocument", {
                "entity": "player:ada", "opId": uuid7(), "collection": "safe", "key": f"k{number}", "json": number})
        staying.start()
        self.holdfast("shard", "move", "0", "--from", leaving.name, "--to", coming.name)
        leaving_id = replica[leaving.name]
        wait_for("it to be left", lambda: self.shard()["phase"] == "stable" and
                 leaving_id not in self.shard()["members"], 90)
        leaving.kill()
        owner.kill()
        wait_for("a member that is left to answer", lambda: self.read("k0") is not None)
        self.assertEqual([self.read(f"k{number}") for number in range(DOCUMENTS)], list(range(DOCUMENTS)))
        owner.start()
        leaving.start()
        wait_for("the shard to serve", self.cluster.all_serving)

    def test_a_person_resolves_siblings(self):
        wait_for("the shard to serve", self.cluster.all_serving)
        for where in ("castle", "harbour"):
            told = self.holdfast("doc", "put", "guild:7", "rooms", "hall", json.dumps({"at": where}))
            self.assertRegex(told, r"guild:7/rooms/hall: on \d disks\ncontext: d1\.")
        told = self.holdfast("doc", "get", "guild:7", "rooms", "hall", "--siblings")
        rows = [row.split() for row in told.splitlines()[1:-1]]
        self.assertEqual([row[-1] for row in rows], ['{"at":"harbour"}', '{"at":"castle"}'])
        for when, expires, _ in rows:
            self.assertRegex(when, r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertEqual(expires, "-")
        self.assertIn("2", self.holdfast("doc", "list", "guild:7", "rooms").splitlines()[1].split())
        context = told.splitlines()[-1].removeprefix("context: ")
        self.holdfast("doc", "put", "guild:7", "rooms", "hall", '"both"', "--context", context, "--durability", "majority")
        answer = json.loads(self.holdfast("doc", "get", "guild:7", "rooms", "hall", "--majority", "--json"))
        self.assertEqual(answer["document"]["json"], '"both"')
        self.holdfast("doc", "delete", "guild:7", "rooms", "hall")
        self.assertNotIn("both", self.holdfast("doc", "get", "guild:7", "rooms", "hall"))
        self.holdfast("doc", "put", "guild:7", "rooms", "hall", "{", code=2)
        self.holdfast("doc", "get", "guild:7", "none", "hall", code=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
