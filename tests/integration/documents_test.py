"""
Documents over real processes, each on a network of its own: both sides of a cut write, members are killed meanwhile, and
after it all are equal, with nothing lost that was acknowledged. Then what a stranger may send.
"""

import random
import subprocess
import threading
import time
import unittest

from client import RpcError, Unanswered, uuid7
from cluster import BIN, ClusterTest, wait_for
from two_sides import SHARDS, TwoSides, enter

ENTITIES = [f"guild:{number}" for number in range(24)]
POLICIES = {"prefs": "last_write", "settings": "merge", "tags": "set", "rooms": "vector", "stats": "counter"}


class DocumentsTest(ClusterTest):
    @classmethod
    def plan(cls):
        return TwoSides()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, policy in POLICIES.items():
            cls.define(name, policy=policy)
        cls.define("small", policy="merge", bytesMax=100)
        cls.define("safe", policy="last_write", durability="majority")

    @classmethod
    def define(cls, name, **body):
        def made():
            try:
                return cls.client.call("DefinitionService/PutDefinition", {
                    "name": name, "body": {"documents": body}, "opId": uuid7(), "waitMs": 5000})["definition"]
            except RpcError as error:
                if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN"):
                    raise
                return None
        wait_for(f"{name} to be in force", lambda: (made() or {}).get("inForce"))

    def settle(self, client, method, request, patience_s=60):
        """Until it is answered, under the same op_id."""
        return client.settle(f"DocumentService/{method}", request, patience_s)

    def put(self, entity, json, collection="prefs", key="k", client=None, **fields):
        return self.settle(client or self.client, "PutDocument", {
            "entity": entity, "opId": uuid7(), "collection": collection, "key": key,
            "json": {"v": json} if isinstance(json, str) else json} | fields)["written"]

    def step(self, entity, collection, steps, client=None, op_id=None, key="k"):
        return self.settle(client or self.client, "UpdateDocument", {
            "entity": entity, "opId": op_id or uuid7(), "collection": collection, "key": key, "patch": steps})["written"]

    def get(self, entity, collection="prefs", key="k", client=None, **fields):
        """The document, or None."""
        return self.settle(client or self.client, "GetDocument", {
            "entity": entity, "collection": collection, "key": key} | fields).get("document")

    def values(self, entity, client=None):
        """Of a `vector`: all siblings."""
        found = self.get(entity, "rooms", client=client)
        if found is None:
            return []
        return sorted(each["json"]["v"] for each in found.get("siblings", [found]))

    # One side, all well.

    def test_a_document_of_each_policy(self):
        entity = "player:ada"
        self.put(entity, {"volume": 3})
        self.settle(self.client, "UpdateDocument", {
            "entity": entity, "opId": uuid7(), "collection": "prefs", "key": "k", "merge": {"music": False}})
        self.assertEqual(self.get(entity)["json"], {"volume": 3, "music": False})
        self.put(entity, {"video": {"w": 1, "h": 2}}, "settings")
        self.settle(self.client, "UpdateDocument", {
            "entity": entity, "opId": uuid7(), "collection": "settings", "key": "k",
            "merge": {"video": {"w": None}, "a": 1}})
        self.assertEqual(self.get(entity, "settings")["json"], {"video": {"h": 2}, "a": 1})
        self.put(entity, ["b", "a"], "tags")
        self.step(entity, "tags", [{"path": "", "discard": "b"}, {"path": "", "add": "c"}])
        self.assertEqual(self.get(entity, "tags")["json"], ["a", "c"])
        op_id = uuid7()
        for _ in range(3):
            self.step(entity, "stats", [{"path": "/kills", "increment": 3}], op_id=op_id)
        self.assertEqual(self.get(entity, "stats")["json"], {"kills": 3})
        self.settle(self.client, "DeleteDocument", {
            "entity": entity, "opId": uuid7(), "collection": "tags", "key": "k"})
        self.assertIsNone(self.get(entity, "tags"))

    def test_a_list_is_of_one_entity_and_prefix(self):
        for key in ("a1", "a2", "a3", "b1"):
            self.put("player:bob", key, key=key)
        self.put("player:bobby", "other", key="a9")
        found, request = [], {"entity": "player:bob", "collection": "prefs", "prefix": "a", "pageSize": 2}
        while True:
            page = self.settle(self.client, "ListDocuments", request)
            found += [each["key"] for each in page.get("documents", [])]
            if not page.get("nextCursor"):
                break
            request["cursor"] = page["nextCursor"]
        self.assertEqual(found, ["a1", "a2", "a3"])
        batch = self.settle(self.client, "BatchGetDocuments", {
            "collection": "prefs", "key": "a1", "requests": [{"entity": "player:bob"}, {"entity": "player:eve"}]})
        self.assertEqual([each["response"].get("document", {}).get("json") for each in batch["results"]], [{"v": "a1"}, None])

    def test_what_expires_is_gone(self):
        self.put("player:tom", "here", ttlMs=1000)
        self.assertIsNotNone(self.get("player:tom"))
        wait_for("it to expire", lambda: self.get("player:tom") is None)

    # Both sides of a cut.

    def seen_by(self, client):
        """All documents of the entities, as this router tells them."""
        return {(entity, name): (self.values(entity, client) if name == "rooms" else
                                 (self.get(entity, name, client=client) or {}).get("json"))
                for entity in ENTITIES for name in POLICIES}

    def test_both_sides_of_a_cut_write_and_nothing_is_lost(self):
        cluster, near, far = self.cluster, self.client, self.cluster.far
        wait_for("the far router", cluster.second.ready)
        for entity in ENTITIES:
            self.put(entity, "before", "rooms")
            self.put(entity, {"base": 0}, "settings")
        cluster.cut_off("node-3")
        counted = {"near": 0, "far": 0}

        def write(side, client):
            for number, entity in enumerate(ENTITIES):
                seen = self.settle(client, "GetDocument", {"entity": entity, "collection": "rooms", "key": "k"})
                self.put(entity, side, "rooms", client=client, context=seen["context"])
                self.put(entity, f"{side} {number}", client=client)
                self.settle(client, "UpdateDocument", {
                    "entity": entity, "opId": uuid7(), "collection": "settings", "key": "k", "merge": {side: number}})
                self.step(entity, "tags", [{"path": "", "add": side}], client)
                self.step(entity, "stats", [{"path": "/n", "increment": 1}], client)
                counted[side] += 1
        threads = [threading.Thread(target=write, args=("near", near)), threading.Thread(target=write, args=("far", far))]
        for thread in threads:
            thread.start()
        dice = random.Random(4)
        while any(thread.is_alive() for thread in threads):
            time.sleep(dice.uniform(0.5, 3))
            node = dice.choice(cluster.nodes)
            node.kill()
            node.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counted, {"near": len(ENTITIES), "far": len(ENTITIES)})
        with self.assertRaises((RpcError, Unanswered)) as caught:  # A minority has no majority.
            far.call("DocumentService/PutDocument", {
                "entity": ENTITIES[0], "opId": uuid7(), "collection": "safe", "key": "k", "json": 1}, 5000)
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
        cluster.wire.heal()
        self.cluster.wait_documents_equal()
        told = self.seen_by(near)
        self.assertEqual(told, self.seen_by(far))
        for number, entity in enumerate(ENTITIES):
            self.assertEqual(told[entity, "rooms"], ["far", "near"], entity)
            self.assertIn(told[entity, "prefs"], ({"v": f"near {number}"}, {"v": f"far {number}"}))
            self.assertEqual(told[entity, "settings"], {"base": 0, "near": number, "far": number})
            self.assertEqual(told[entity, "tags"], ["far", "near"])
            self.assertEqual(told[entity, "stats"], {"n": 2})
        self.resolve()

    def resolve(self):
        """What has seen both siblings replaces both, and its writer reads that at whichever member."""
        for entity in ENTITIES:
            seen = self.settle(self.client, "GetDocument", {"entity": entity, "collection": "rooms", "key": "k"})
            written = self.put(entity, "one", "rooms", context=seen["context"])
            found = self.get(entity, "rooms", client=self.cluster.far, context=written["context"])
            self.assertEqual((found["json"], found.get("siblings", [])), ({"v": "one"}, []))

    def clock(self, client, shard):
        """What each member says, by the state that the router told."""
        return client.call("AdminService/GetShardClock", {"shard": shard})["members"]

    def test_a_clock_tells_what_members_lack_of_each_other(self):
        cluster, entity = self.cluster, "player:clock"
        wait_for("the far router", cluster.second.ready)
        shard = self.client.call("AdminService/GetSession", {"playerId": "clock"}).get("shard", 0)
        self.put(entity, "here")
        self.cluster.wait_documents_equal()
        self.assertEqual([each["state"] for each in self.clock(self.client, shard)], ["ok"] * 3)
        cluster.cut_off("node-3")
        for number in range(5):
            self.put(entity, number, key=f"far{number}", client=cluster.far)

        def lacked():
            told = self.clock(cluster.far, shard)
            self.assertEqual(sorted(each["state"] for each in told), ["ok", "unreachable", "unreachable"])
            alone = next(each for each in told if each["state"] == "ok")
            return [int(each.get("lackedThere", 0)) for each in alone["peers"]] == [5, 5]
        wait_for("the member that is cut off to tell what the others lack", lacked)
        shown = subprocess.run([BIN / "holdfast", "clock", str(shard), "--endpoint", cluster.endpoint],
                               capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(shown.returncode, 1, shown.stderr)  # One does not answer.
        self.assertIn("unreachable", shown.stdout)
        cluster.wire.heal()
        self.cluster.wait_documents_equal()
        for each in self.clock(self.client, shard):
            self.assertEqual([(int(peer.get("lackedHere", 0)), int(peer.get("lackedThere", 0))) for peer in each["peers"]],
                             [(0, 0), (0, 0)])
        self.refused("INVALID_ARGUMENT", self.client.call, "AdminService/GetShardClock", {"shard": SHARDS})

    # Crashes.

    def test_what_was_acknowledged_survives_sigkill_of_all(self):
        written = {}
        for number in range(60):
            self.put(f"player:{number % 7}", number, key=f"k{number}")
            written[f"player:{number % 7}", f"k{number}"] = number
            if number % 20 == 19:
                for node in self.cluster.nodes:
                    node.kill()
                for node in self.cluster.nodes:
                    node.start()
        self.cluster.wait_documents_equal()  # Until then a member may not know what another one acknowledged.
        for (entity, key), number in written.items():
            self.assertEqual(self.get(entity, key=key)["json"], number)

    # A stranger.

    def refuse(self, code, method, request, field=None):
        error = self.refused(code, self.client.call, f"DocumentService/{method}", request)
        if field is not None:
            self.assertEqual(error.field, field, str(error))
        return error

    def test_bad_input_is_refused_with_its_field(self):
        written = self.put("player:mia", 1)
        whole = {"entity": "player:mia", "opId": uuid7(), "collection": "prefs", "key": "k", "json": 2}
        read = {"entity": "player:mia", "collection": "prefs", "key": "k"}
        context = written["context"]
        forged = [context[:at] + ("A" if context[at] != "A" else "B") + context[at + 1:]
                  for at in range(3, len(context), 7)]
        for bad in [*forged, "rubbish", "d1.", "d1.AAAA", context + "A", "d1." + "A" * 800]:
            self.refuse("INVALID_ARGUMENT", "GetDocument", read | {"context": bad}, "context")
            self.refuse("INVALID_ARGUMENT", "GetDocument", read | {"context": bad, "consistency": "majority"}, "context")
            self.refuse("INVALID_ARGUMENT", "PutDocument", whole | {"context": bad}, "context")
        self.refuse("INVALID_ARGUMENT", "GetDocument", read | {"context": context, "key": "k2"}, "context")
        for fields, field in (({"ttlMs": 0}, "ttl_ms"), ({"ttlMs": 999}, "ttl_ms"), ({"ttlMs": -5}, "ttl_ms"),
                              ({"ttlMs": 31536000001}, "ttl_ms"), ({"key": ""}, "key"), ({"key": "x" * 201}, "key"),
                              ({"key": "a\nb"}, "key"), ({"collection": "No"}, "collection"), ({"opId": ""}, "op_id"),
                              ({"opId": "what"}, "op_id"), ({"entity": "mia"}, "entity"), ({"entity": ""}, "entity"),
                              ({"entity": "player:" + "x" * 130}, "entity"), ({"durability": "memory"}, "durability")):
            self.refuse("INVALID_ARGUMENT", "PutDocument", whole | fields, field)
        deep = current = []
        for _ in range(70):
            current.append([])
            current = current[0]
        self.refuse("INVALID_ARGUMENT", "PutDocument", whole | {"json": deep}, "json")
        error = self.refuse("INVALID_ARGUMENT", "PutDocument", whole | {"json": ["x" * 65533]}, "json")
        self.assertEqual((error.limit, error.value), ("at most 65536", "65537"))
        self.put("player:mia", {"a": 1}, "small")
        self.refuse("CAPACITY_FULL", "UpdateDocument", {
            "entity": "player:mia", "opId": uuid7(), "collection": "small", "key": "k", "merge": {"b": "x" * 97}})
        self.refuse("NOT_FOUND", "PutDocument", whole | {"collection": "pref"}, "collection")
        self.assertEqual(self.get("player:mia")["json"], 1)

    def test_a_typed_edit_of_the_wrong_type_is_refused(self):
        edit = {"entity": "player:mia", "opId": uuid7(), "key": "k"}
        for collection, patch in (("tags", [{"path": "", "increment": 1}]), ("tags", [{"path": "/a", "add": "x"}]),
                                  ("tags", [{"path": "", "add": 7}]), ("stats", [{"path": "/n", "set": 1}]),
                                  ("stats", [{"path": "/n", "increment": "a"}]), ("stats", [{"path": "/a/b", "increment": 1}]),
                                  ("settings", [{"path": "/a", "increment": 1}]), ("settings", [{"path": "", "set": {}}]),
                                  ("rooms", [{"path": "/a", "set": 1}]), ("prefs", [{"path": "a", "set": 1}]), ("prefs", [])):
            self.refuse("INVALID_ARGUMENT", "UpdateDocument", edit | {"collection": collection, "patch": patch}, "patch")
        self.refuse("INVALID_ARGUMENT", "UpdateDocument", edit | {"collection": "tags", "merge": {"a": 1}}, "merge")
        self.refuse("INVALID_ARGUMENT", "UpdateDocument", edit | {"collection": "prefs"}, "edit")
        late = edit | {"collection": "stats", "patch": [{"path": "/n", "increment": 1}]}
        self.refuse("INVALID_ARGUMENT", "UpdateDocument", late | {"opId": "key:x"}, "op_id")
        self.refuse("OPERATION_EXPIRED", "UpdateDocument", late | {"opId": "018bcfd0-0000-7000-8000-000000000001"})


if __name__ == "__main__":
    enter()
    unittest.main(verbosity=2)
