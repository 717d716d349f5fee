"""
Documents and presence in backups: what stood comes back with its siblings, though a member is away; contexts of before are refused; erasures stand; damage is named.
"""

import json
import shutil
import subprocess
import unittest

from backup_test import SHARDS, Backups, holdfast
from client import RpcError, uuid7
from cluster import BIN, wait_for
from definitions_backup_test import make_old

POLICIES = {"prefs": "last_write", "settings": "merge", "tags": "set", "rooms": "vector", "stats": "counter"}
GUILDS = 60
PLAYERS = 300
PLAYER = "player:ada"


class DocumentsBackup(Backups):
    def define(self, cluster, names=tuple(POLICIES)):
        for name in names:
            def made(name=name):
                try:
                    return cluster.client.call("DefinitionService/PutDefinition", {
                        "name": name, "body": {"documents": {"policy": POLICIES[name]}}, "opId": uuid7(),
                        "waitMs": 5000})["definition"].get("inForce")
                except RpcError as error:
                    if error.code not in ("UNAVAILABLE", "OUTCOME_UNKNOWN", "VERSION_CONFLICT"):
                        raise
                    return False
            wait_for(f"{name} to be in force", made)

    def settle(self, client, method, collection, entity=PLAYER, **fields):
        return client.settle(f"DocumentService/{method}",
                             {"entity": entity, "collection": collection, "key": "k"} | fields)

    def put(self, client, collection, value, entity=PLAYER, **fields):
        return self.settle(client, "PutDocument", collection, entity, json=value, opId=uuid7(), **fields)["written"]

    def add(self, client, op_id, entity=PLAYER):
        self.settle(client, "UpdateDocument", "stats", entity, opId=op_id,
                    patch=[{"path": "/wins", "increment": 2}])

    def document(self, client, collection, entity=PLAYER):
        found = self.settle(client, "GetDocument", collection, entity)
        shown = found.get("document")
        if shown is None:
            return None, found.get("context")
        return sorted(json.dumps(each["json"]) for each in shown.get("siblings", [shown])), found["context"]

    def all_documents(self, client):
        names = [(name, PLAYER) for name in POLICIES]
        names += [(name, f"guild:{number}") for number in range(GUILDS) for name in ("prefs", "rooms")]
        return {(name, entity): self.document(client, name, entity)[0] for name, entity in names}

    def presence(self, client, player="ada"):
        return client.settle("PresenceService/GetPresence", {"playerId": player}).get("presence", {}).get("connections", [])

    def user(self, client, player="ada"):
        return client.settle("UserService/GetUser", {"playerId": player})["user"]

    def applies_as(self, cluster, client):
        """A shard's apply version rises while all of its members are there."""
        def versions(asked):
            return {asked.call("BackupService/GetBackupState", {"shard": shard})["applyVersion"] for shard in range(SHARDS)}
        wait_for("the apply version", lambda: versions(cluster.client) == versions(client))

    def write_all(self, client):
        """The id of an increment, and the context of siblings."""
        op_id = uuid7()
        self.put(client, "prefs", {"volume": 3})
        self.put(client, "settings", {"video": {"w": 1, "h": 2}})
        self.settle(client, "UpdateDocument", "settings", opId=uuid7(), merge={"video": {"w": None}})
        self.put(client, "tags", ["a", "b"])
        self.settle(client, "UpdateDocument", "tags", opId=uuid7(), patch=[{"path": "", "discard": "a"}])
        self.put(client, "rooms", {"at": "castle"})
        self.put(client, "rooms", {"at": "harbour"})
        self.add(client, op_id)
        self.add(client, uuid7())
        client.settle("UserService/UpsertUser", {
            "playerId": "ada", "opId": uuid7(), "displayName": "Ada", "settings": {"music": 0},
            "connection": "phone", "ttlMs": 3600000})
        for number in range(GUILDS):
            self.put(client, "prefs", {"n": number}, f"guild:{number}")
            self.put(client, "rooms", {"n": number}, f"guild:{number}")
            self.put(client, "rooms", {"n": -number - 1}, f"guild:{number}")
        return op_id, self.document(client, "rooms")[1]


class ReturnTest(DocumentsBackup):
    def test_what_stood_comes_back_though_a_member_was_away_at_the_backup(self):
        client = self.client
        self.define(self.cluster)
        op_id, _ = self.write_all(client)
        self.cluster.wait_documents_equal(90)
        self.cluster.nodes[2].kill()
        self.put(client, "prefs", {"volume": 4})
        context = self.document(client, "rooms")[1]
        stood, was_there = self.all_documents(client), self.presence(client)
        self.assertEqual(stood["rooms", PLAYER], ['{"at": "castle"}', '{"at": "harbour"}'])
        self.assertEqual(stood["prefs", PLAYER], ['{"volume": 4}'])
        self.assertEqual(len(was_there), 1)
        user = self.user(client)
        self.assertEqual((user["displayName"], user["settings"], user["connections"]), ("Ada", {"music": 0}, was_there))
        ran = holdfast(self.cluster, "backup", self.dir, "-o", "json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("that it alone has", ran.stderr)
        self.assertGreater(json.loads(ran.stdout)["documentRows"], 2 * GUILDS)
        self.cluster.nodes[2].start()
        self.after_the_backup(client)
        other = self.new_cluster()
        self.applies_as(other, client)
        other.nodes[2].kill()
        wait_for("two to serve", other.all_serving, 90)
        self.assertIn("bring up all nodes", self.refusal("restore", self.dir, cluster=other))
        other.nodes[2].start()
        self.done("restore", self.dir, cluster=other)
        self.assertEqual(self.all_documents(other.client), stood)
        self.assertEqual(self.presence(other.client), was_there)
        self.assertEqual(self.user(other.client), user)
        self.life_goes_on(other, op_id, context)

    def after_the_backup(self, client):
        """A second backup has what has changed and no more, and the first stays what it was."""
        self.put(client, "prefs", {"volume": 5})
        self.settle(client, "DeleteDocument", "rooms", "guild:1", opId=uuid7())
        self.cluster.wait_documents_equal(90)
        second = self.dir.parent / (self.dir.name + "-second")
        self.addCleanup(shutil.rmtree, second, ignore_errors=True)
        self.assertEqual(self.back_up(directory=second)["shardsWithMembersAway"], 0)
        self.done("backup", "verify", second)

    def life_goes_on(self, other, op_id, context):
        client = other.client
        with self.assertRaises(RpcError) as caught:
            self.put(client, "rooms", {"at": "both"}, context=context)
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        self.assertIn("restore", caught.exception.limit)
        self.add(client, op_id)  # A retry of before the backup counts once.
        self.assertEqual(self.document(client, "stats")[0], ['{"wins": 4}'])
        self.add(client, uuid7())
        self.put(client, "rooms", {"at": "both"}, context=self.document(client, "rooms")[1])
        self.assertEqual(self.document(client, "rooms")[0], ['{"at": "both"}'])
        other.wait_documents_equal(90)
        stood = self.all_documents(client)
        for node in other.nodes:
            node.kill()
        for node in other.nodes:
            node.start()
        wait_for("all to serve", other.all_serving, 90)
        self.assertEqual(self.all_documents(client), stood)
        self.assertEqual(self.document(client, "stats")[0], ['{"wins": 6}'])
        again = self.dir / "again"
        self.back_up(other, again)
        self.done("backup", "verify", again)


class ErasedTest(DocumentsBackup):
    def test_an_erasure_that_stands_in_the_backup_hides_documents_after_it(self):
        self.define(self.cluster, ["prefs"])
        self.put(self.client, "prefs", {"secret": 1}, "player:bob")
        self.put(self.client, "prefs", {"secret": 2}, "player:eve")
        self.client.grant("bob", 1)
        self.client.grant("eve", 1)
        self.erase(self.client, "bob", 3600000)
        self.erase(self.client, "eve", 0)
        wait_for("the purge", lambda: self.state(self.client, "eve") == "purged", 90)
        self.put(self.client, "prefs", {"new": 3}, "player:eve")
        self.back_up()
        other = self.new_cluster()
        self.done("restore", self.dir, cluster=other)
        self.assertIsNone(self.document(other.client, "prefs", "player:bob")[0])
        self.assertEqual(self.document(other.client, "prefs", "player:eve")[0], ['{"new": 3}'])
        other.client.settle("ErasureService/RestorePlayer", {
            "playerId": "bob", "opId": uuid7(), "authority": "system:admin"})
        wait_for("it to be shown again", lambda: self.document(other.client, "prefs", "player:bob")[0] == ['{"secret": 1}'])

    def erase(self, client, player, grace_ms):
        client.settle("ErasureService/ErasePlayer", {
            "playerId": player, "opId": uuid7(), "graceMs": grace_ms,
            "authority": "system:admin"})

    def state(self, client, player):
        return client.settle("ErasureService/GetErasure", {"playerId": player}).get("erasure", {}).get("state")


class AcknowledgedTest(DocumentsBackup):
    """Somebody writes while a restore begins: what was acknowledged is there afterwards, or the restore fails and says why."""

    def test_what_is_acknowledged_meanwhile_is_not_dropped(self):
        self.define(self.cluster, ["rooms"])
        self.put(self.client, "rooms", {"n": 0})
        for number in range(PLAYERS):
            self.client.grant(f"p{number}", 1)
        self.back_up()
        other = self.new_cluster()
        self.applies_as(other, self.client)
        ran = subprocess.Popen([BIN / "holdfast", "restore", self.dir, "--endpoint", other.endpoint],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(ran.kill)
        wait_for("the first shard to begin", lambda: ran.poll() is not None or self.stands(other, 0) != "empty", 90, 0.001)
        written = self.write_until_ended(ran, other)
        said = ran.communicate()[1]
        if ran.returncode != 0:
            self.assertIn("only a new, empty cluster can be restored", said)
            return
        for guild in written:
            self.assertIsNotNone(self.document(other.client, "rooms", guild)[0], guild)

    def stands(self, cluster, shard):
        return cluster.client.call("BackupService/GetBackupState", {"shard": shard})["state"]

    def write_until_ended(self, ran, cluster):
        written = []
        for number in range(100000):
            if ran.poll() is not None:
                break
            try:
                cluster.client.call("DocumentService/PutDocument", {
                    "entity": f"guild:w{number}", "collection": "rooms", "key": "k", "json": {"n": number}, "opId": uuid7()})
                written.append(f"guild:w{number}")
            except RpcError as error:
                self.assertIn(error.code, ("UNAVAILABLE", "OUTCOME_UNKNOWN"))
        return written


class DamageTest(DocumentsBackup):
    def begin_refused(self, cluster, shard):
        """What a BeginRestore without a backup says: of documents before all else."""
        with self.assertRaises(RpcError) as caught:
            cluster.client.call("BackupService/BeginRestore", {
                "shard": shard, "restoreId": "AAAAAAAAAAAAAAAAAAAAAA==", "meta": ""})
        return caught.exception.message

    def test_damage_a_missing_collection_and_documents_of_its_own_are_named(self):
        self.define(self.cluster, ["rooms"])
        for number in range(GUILDS):
            self.put(self.client, "rooms", {"n": number}, f"guild:{number}")
        self.back_up()
        pack = max((self.dir / "000001").glob("*.documents.pack"), key=lambda f: f.stat().st_size)
        whole = pack.read_bytes()
        for damaged in (whole[:-1], whole[:40] + bytes([whole[40] ^ 4]) + whole[41:]):
            pack.write_bytes(damaged)
            for said in (self.refusal("backup", "verify", self.dir), self.refusal("restore", self.dir)):
                self.assertIn(pack.name, said)
        pack.write_bytes(whole)
        make_old(self.dir)  # Else it brings the definition along.
        other = self.new_cluster()
        said = self.refusal("restore", self.dir, cluster=other)
        self.assertIn("define put documents rooms '{\"policy\": \"vector\"}'", said)
        self.define(other, ["rooms"])
        self.put(other.client, "rooms", {"own": 1}, "guild:x")
        self.assertIn("has documents", self.refusal("restore", self.dir, cluster=other))
        self.assertEqual(sum("has documents" in self.begin_refused(other, shard) for shard in range(SHARDS)), 1)
        self.settle(other.client, "DeleteDocument", "rooms", "guild:x", opId=uuid7(),
                    context=self.document(other.client, "rooms", "guild:x")[1])
        self.done("restore", self.dir, cluster=other)
        self.assertEqual(self.document(other.client, "rooms", "guild:7")[0], ['{"n": 7}'])
        self.assertIsNone(self.document(other.client, "rooms", "guild:x")[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
