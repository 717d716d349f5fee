"""
Documents of a MiB over real processes: their edge by each way in; both sides of a cut write, a member is killed while the
others send it what no frame holds, and after it all are equal; a backup brings them back.
"""

import json
import re
import subprocess
import unittest
import urllib.parse

from backup_test import Backups, holdfast
from client import RpcError, uuid7
from cluster import BIN, ClusterTest, wait_for
from two_sides import TwoSides, enter

MOST = 1 << 20
POLICIES = {"maps": "vector", "plans": "merge", "notes": "last_write"}
LEAVES = 16


def define(client, name, policy):
    def made():
        try:
            return client.call("DefinitionService/PutDefinition", {
                "name": name, "body": {"documents": {"policy": policy, "bytesMax": MOST}}, "opId": uuid7(),
                "waitMs": 5000})["definition"].get("inForce")
        except RpcError as error:
            if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN", "VERSION_CONFLICT"):
                raise
            return False
    wait_for(f"{name} to be in force", made)


def value_of(letter, size=MOST):
    """JSON of so many bytes."""
    return {"v": letter * (size - len('{"v":""}'))}


def plan_of(side):
    """Leaves of a side's own, a MiB with their names."""
    names = [f"{side}-{number:02}" for number in range(LEAVES)]
    return {name: side * (MOST // LEAVES - len(name) - 2) for name in names}


def put(client, collection, value, entity="guild:1", **fields):
    return client.settle("DocumentService/PutDocument", {
        "entity": entity, "opId": uuid7(), "collection": collection, "key": "k", "json": value} | fields)["written"]


def siblings(client, entity="guild:1"):
    """First letters of all, sorted, by as many reads as it takes; the last context; how many reads."""
    found, context, reads = [], "", 0
    while True:
        answer = client.settle("DocumentService/GetDocument", {
            "entity": entity, "collection": "maps", "key": "k", "context": context})
        document, context, reads = answer["document"], answer["context"], reads + 1
        found += [each["json"]["v"][0] for each in document.get("siblings", [document])]
        if not document.get("siblingsUnseen"):
            return sorted(found), context, reads


class LargeDocumentsTest(ClusterTest):
    @classmethod
    def plan(cls):
        return TwoSides()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, policy in POLICIES.items():
            define(cls.client, name, policy)

    def rest_put(self, value):
        connection = self.client.connection(30)
        path = "/v1/entities/" + urllib.parse.quote("guild:9") + "/collections/notes/documents/k"
        connection.request("PUT", path, json.dumps({"json": value}).encode(),
                           {"content-type": "application/json", "Idempotency-Key": uuid7()})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_a_mebibyte_is_taken_and_no_byte_more(self):
        for collection in ("notes", "maps"):
            put(self.client, collection, value_of("x"), "guild:8")
            with self.assertRaises(RpcError) as caught:
                put(self.client, collection, value_of("x", MOST + 1), "guild:8")
            error = caught.exception
            self.assertEqual((error.code, error.field, error.limit, error.value),
                             ("INVALID_ARGUMENT", "json", f"at most {MOST}", f"{MOST + 1}"))
        with self.assertRaises(RpcError) as caught:
            self.client.call("DefinitionService/PutDefinition", {
                "name": "larger", "body": {"documents": {"policy": "merge", "bytesMax": MOST + 1}}, "opId": uuid7()})
        self.assertEqual((caught.exception.field, caught.exception.limit), ("body.documents.bytes_max", "1 to 1048576"))
        status, answer = self.rest_put(value_of("y"))
        self.assertEqual(status, 200, answer)
        found = self.client.settle("DocumentService/GetDocument", {"entity": "guild:9", "collection": "notes", "key": "k"})
        self.assertEqual(found["document"]["json"], value_of("y"))
        status, answer = self.rest_put(value_of("y", MOST + 1))
        self.assertEqual((status, answer["error"]["field"]), (400, "json"))
        many = self.client.settle("DocumentService/BatchGetDocuments", {
            "collection": "notes", "key": "k", "requests": [{"entity": "guild:9"}] * 8})
        told = [result["response"]["document"]["json"]["v"][0] for result in many["results"] if "response" in result]
        self.assertEqual(set(told), {"y"})

    def test_a_list_of_large_documents_has_pages(self):
        for number in range(4):
            self.client.settle("DocumentService/PutDocument", {
                "entity": "guild:7", "opId": uuid7(), "collection": "notes", "key": f"k{number}", "json": value_of("l")})
        keys, cursor = [], ""
        while True:
            page = self.client.settle("DocumentService/ListDocuments", {
                "entity": "guild:7", "collection": "notes", "cursor": cursor})
            keys += [each["key"] for each in page["documents"]]
            cursor = page.get("nextCursor", "")
            if not cursor:
                break
        self.assertEqual(keys, [f"k{number}" for number in range(4)])

    def test_both_sides_of_a_cut_write_a_mebibyte_and_all_are_equal(self):
        cluster, near, far = self.cluster, self.client, self.cluster.far
        wait_for("the far router", cluster.second.ready)
        entities = [f"guild:{number}" for number in range(20, 26)]
        for entity in entities:
            put(near, "maps", value_of("b", 20), entity)
        cluster.cut_off("node-3")
        for entity in entities:
            for client, side in ((near, "n"), (far, "f")):
                seen = client.settle("DocumentService/GetDocument", {"entity": entity, "collection": "maps", "key": "k"})
                put(client, "maps", value_of(side), entity, context=seen["context"])
                put(client, "maps", value_of(side.upper()), entity)
                put(client, "plans", plan_of(side), entity)
        cluster.wire.heal()
        for node in (cluster.nodes[2], cluster.nodes[0], cluster.nodes[2]):
            node.kill()
            node.start()
        self.cluster.wait_documents_equal(180)
        for entity in entities:
            for client in (near, far):
                found, context, reads = siblings(client, entity)
                self.assertEqual((found, reads), (["F", "N", "f", "n"], 2), entity)
        told = subprocess.run([BIN / "holdfast", "doc", "get", entities[0], "maps", "k", "--siblings", "--endpoint",
                               cluster.endpoint], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertEqual(sorted(re.findall(r'{"v":"(.)', told)), ["F", "N", "f", "n"])
        # What two sides wrote is above the limit: it is told, and only made smaller.
        with self.assertRaises(RpcError) as caught:
            near.settle("DocumentService/UpdateDocument", {
                "entity": entities[0], "opId": uuid7(), "collection": "plans", "key": "k", "merge": {"more": 1}})
        self.assertEqual(caught.exception.code, "CAPACITY_FULL")
        found = near.settle("DocumentService/GetDocument", {"entity": entities[0], "collection": "plans", "key": "k"})
        # One Put stands at each leaf that the other did not know of.
        self.assertEqual(found["document"]["json"], plan_of("n") | plan_of("f"))
        with self.assertRaises(RpcError) as caught:  # Without a context it would be a fifth.
            put(near, "maps", value_of("s", 20), entities[0])
        self.assertEqual(caught.exception.code, "CAPACITY_FULL")
        for entity in entities:
            found, context, reads = siblings(near, entity)
            put(near, "maps", value_of("r"), entity, context=context)
            put(near, "plans", {"one": 1}, entity)
        self.cluster.wait_documents_equal(90)
        for entity in entities:
            self.assertEqual(siblings(far, entity)[0], ["r"])


class LargeBackupTest(Backups):
    def test_large_documents_come_back(self):
        for name, policy in POLICIES.items():
            define(self.client, name, policy)
        for letter in "ab":
            put(self.client, "maps", value_of(letter))
        put(self.client, "plans", plan_of("p"))
        put(self.client, "notes", value_of("z"))
        stood = siblings(self.client)[0]
        self.assertEqual(stood, ["a", "b"])
        ran = holdfast(self.cluster, "backup", self.dir, "-o", "json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        other = self.new_cluster()
        self.done("restore", self.dir, cluster=other)
        self.assertEqual(siblings(other.client)[0], stood)
        for collection, value in (("plans", plan_of("p")), ("notes", value_of("z"))):
            found = other.client.settle("DocumentService/GetDocument", {
                "entity": "guild:1", "collection": collection, "key": "k"})
            self.assertEqual(found["document"]["json"], value)


if __name__ == "__main__":
    enter()
    unittest.main(verbosity=2)
