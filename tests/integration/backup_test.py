"""Backups of a cluster at work, and restores into new ones. docs/backup.md."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from audit_test import Traders
from client import PAYMENTS
from cluster import BIN, Cluster, wait_for
from load import Load
from transactions_test import Trades

SHARDS = 8


def holdfast(cluster, *arguments):
    """The command line against that cluster: what it did."""
    return subprocess.run([BIN / "holdfast", *arguments, "--endpoint", cluster.endpoint],
                          capture_output=True, text=True, timeout=300, check=False)


def manifest(directory, number=1):
    text = (directory / f"{number:06}" / "MANIFEST").read_text()
    return {int(m[1]): m[2] for m in re.finditer(
        r"^shard (\d+) .* (rows \d+ bytes \d+ digest \w+) pack", text, re.M)}


def size_of(directory, number):
    return sum(f.stat().st_size for f in (directory / f"{number:06}").iterdir())


class Backups(Trades):
    @classmethod
    def plan(cls):
        return Cluster(shards=SHARDS)

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-backup."))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def done(self, *arguments, cluster=None):
        ran = holdfast(cluster or self.cluster, *arguments)
        self.assertEqual(ran.returncode, 0, ran.stderr + ran.stdout)
        return ran.stdout

    def refusal(self, *arguments, cluster=None):
        """What it says; it must not be a success."""
        ran = holdfast(cluster or self.cluster, *arguments)
        self.assertEqual(ran.returncode, 1, ran.stderr + ran.stdout)
        self.assertEqual(ran.stdout, "")
        return ran.stderr

    def back_up(self, cluster=None, directory=None):
        return json.loads(self.done("backup", directory or self.dir, "-o", "json",
                                    cluster=cluster))

    def restored(self, directory=None, *more):
        """A new cluster with that backup in it."""
        cluster = self.new_cluster()
        self.done("restore", directory or self.dir, *more, cluster=cluster)
        return cluster

    def new_cluster(self, **options):
        cluster = Cluster(**{"shards": SHARDS, "currencies": "gold,silver"} | options)
        self.addCleanup(lambda: cluster.stop(keep=type(self).failed))
        return cluster.start()

    def begun(self, *arguments):
        """The command line at work, with a backup that is not complete yet."""
        ran = subprocess.Popen([BIN / "holdfast", "backup", self.dir, "--endpoint",
                                self.cluster.endpoint, *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(ran.kill)
        wait_for("the backup to write", lambda: any(self.dir.glob("*/shard-0001.pack")))
        return ran


class BackupsTest(Backups):
    def test_a_backup_is_good_and_a_later_one_has_only_what_changed(self):
        with Load(self.client, threads=2, players=300) as load:
            wait_for("some load", lambda: load.acked_count > 3000)
        first = self.back_up()
        self.assertEqual(first["number"], 1)
        self.assertGreater(first["rows"], 6000)
        for number in range(20):
            self.client.grant(f"load-0-{number}", 1)
        second = self.back_up()
        self.assertEqual(second["number"], 2)
        self.assertLess(size_of(self.dir, 2), size_of(self.dir, 1) / 3)
        said = json.loads(self.done("backup", "verify", self.dir, "-o", "json"))
        self.assertTrue(said["good"])
        self.assertEqual(said["backups"], 2)
        self.assertEqual(len(json.loads(self.done("backup", "list", self.dir, "-o", "json"))), 2)

    def test_a_restore_waits_for_a_policy_that_stands_already(self):
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        policy["version"] = int(policy["version"]) + 1
        policy = self.client.call("AdminService/SetPolicy", {"policy": policy})["policy"]
        self.back_up()
        cluster = self.new_cluster()
        cluster.client.call("AdminService/SetPolicy",
                            {"policy": policy | {"version": 2}, "dropCurrencies": ["silver"]})
        self.done("restore", self.dir, cluster=cluster)
        stands = cluster.client.call("AdminService/GetCluster", {})["policy"]
        self.assertEqual(int(stands["version"]), 3)  # SetPolicy answered: every shard has it.
        self.assertEqual(stands["currencies"], policy["currencies"])


class RefusalsTest(Backups):
    def filled(self):
        """So much that a backup of 1 MiB/s takes some seconds."""
        for number in range(80):
            self.client.update(f"filled-{number}", None, {
                "name": "book", "schemaVersion": 1,
                "replace": json.dumps({"text": os.urandom(50000).hex()})})

    def both_refuse(self, *wanted):
        for said in (self.refusal("backup", "verify", self.dir),
                     self.refusal("restore", self.dir)):
            for text in wanted:
                self.assertIn(text, said)

    def test_a_directory_that_holds_something_else(self):
        (self.dir / "photo.jpg").write_text("x")
        self.assertIn("photo.jpg", self.refusal("backup", self.dir))
        self.assertIn("no directory of backups", self.refusal("restore", self.dir))
        self.assertEqual([f.name for f in self.dir.iterdir()], ["photo.jpg"])

    def test_one_flipped_byte_and_a_version_that_is_too_new(self):
        self.client.grant("somebody", 5)
        self.back_up()
        pack = max((self.dir / "000001").glob("*.pack"), key=lambda f: f.stat().st_size)
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 4
        pack.write_bytes(data)
        self.both_refuse(pack.name, "damaged")
        data[len(data) // 2] ^= 4
        pack.write_bytes(data)
        self.done("backup", "verify", self.dir)
        text = (self.dir / "000001/MANIFEST").read_text()
        (self.dir / "000001/MANIFEST").write_text(text.replace("backup 3", "backup 4", 1))
        self.both_refuse("MANIFEST", "newer version")

    def test_an_interrupted_backup_counts_for_nothing(self):
        self.filled()
        self.back_up()
        ran = self.begun("--throttle", "1")
        wait_for("the second", (self.dir / "000002/shard-0001.pack").exists)
        ran.kill()
        ran.wait()
        said = self.refusal("restore", self.dir)
        self.assertIn("backup 2 was interrupted", said)
        self.assertIn("--number 1", said)
        self.assertIn("interrupted", self.refusal("restore", self.dir, "--number", "2"))
        ran = holdfast(self.cluster, "backup", "verify", self.dir)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("backup 2 was interrupted", ran.stderr)
        self.assertEqual(self.back_up()["number"], 2)
        self.done("backup", "verify", self.dir)

    def test_a_cluster_of_other_shards_and_one_that_is_in_use(self):
        self.client.grant("somebody", 5)
        self.back_up()
        self.assertIn("in use", self.refusal("restore", self.dir))
        other = self.new_cluster(shards=4)
        self.assertIn("4 shards", self.refusal("restore", self.dir, cluster=other))
        other.client.register("a server")
        third = self.new_cluster()
        third.client.register("a server")
        self.assertIn("registered", self.refusal("restore", self.dir, cluster=third))

    def test_a_backup_begins_anew_when_an_owner_dies(self):
        self.filled()
        ran = self.begun("--throttle", "1")
        last = next(s for s in self.client.shards() if s.get("shard", 0) == SHARDS - 1)
        victim = self.cluster.node_of(last["owner"])
        victim.kill()
        out, errors = ran.communicate(timeout=240)
        victim.start()
        self.assertEqual(ran.returncode, 0, errors + out)
        self.assertIn("begins again", errors)
        self.done("backup", "verify", self.dir)
        self.cluster.wait_converged()


class ExactRestoreTest(Backups):
    """Of a cluster that moved no goods: what is settled is forgotten with the next message."""

    def test_what_is_restored_is_what_was_cut_to_the_last_row(self):
        with Load(self.client, threads=2, players=50) as load:
            wait_for("some load", lambda: load.acked_count > 500)
        self.back_up()
        other = self.restored()
        self.back_up(other, self.dir / "again")
        self.assertEqual(manifest(self.dir), manifest(self.dir / "again"))
        load.client = other.client
        load.audit(self)
        other.nodes[0].kill()
        other.nodes[0].start()
        other.wait_converged()


class RestoresTest(Backups):
    """What was cut while goods moved and transactions were open is whole in another cluster."""

    def test_a_backup_under_load_is_restored_whole(self):
        for player in range(50):
            self.client.grant(f"quiet-{player}", player + 1)
        incarnation = self.client.register("old server")
        token = self.client.start("quiet-1", incarnation)["token"]
        receipt = {"playerId": "quiet-2", "opId": "receipt:ORDER-1", "authority": PAYMENTS,
                   "currencies": {"gold": 500}}
        self.client.call("LedgerService/Grant", receipt)
        with Traders(self) as traders:
            wait_for("some trades", lambda: traders.done > 50)
            taken = self.back_up()
            done = traders.done
            wait_for("trades to go on after it", lambda: traders.done > done)
        other = self.restored()
        again = self.dir / "again"
        self.audit_comes_to_zero(other)
        for player in range(3, 50):
            self.assertEqual(other.client.balance(f"quiet-{player}"), player + 1)
        self.old_tokens_are_refused(other, token)
        answer = other.client.call("LedgerService/Grant", receipt)
        self.assertTrue(answer["write"]["duplicate"])
        self.assertEqual(other.client.balance("quiet-2"), 503)
        self.epochs_have_risen(other, taken)
        self.assertGreater(self.back_up(other, again)["rows"], 100)
        self.refused_over_what_is_in_use(other)

    def audit_comes_to_zero(self, cluster):
        coordinator = cluster.coordinators[0]
        cuts = coordinator.metrics()["holdfast_audit_cuts_total"]
        wait_for("cuts of the restored cluster",
                 lambda: coordinator.metrics()["holdfast_audit_cuts_total"] >= cuts + 3)
        metrics = coordinator.metrics()
        self.assertEqual(metrics["holdfast_audit_violations_total"], 0, coordinator.log())
        self.assertEqual(metrics["holdfast_audit_imbalance"], 0)
        wait_for("nothing to be on its way", lambda: not any(
            int(s.get("transfersOpen", 0)) for s in cluster.client.shards()))
        cluster.wait_converged()

    def old_tokens_are_refused(self, cluster, token):
        edit = {"name": "quests", "schemaVersion": 1, "replace": "{}"}
        self.refused("SESSION_LOST", cluster.client.update, "quiet-1", token, edit)
        fence = int(token.split("-")[2])
        new = cluster.client.start("quiet-1", cluster.client.register("new server"))
        self.assertGreater(int(new["fence"]), fence + 1000000)
        self.refused("SESSION_LOST", cluster.client.update, "quiet-1", token, edit)
        cluster.client.end("quiet-1", new["token"])

    def epochs_have_risen(self, cluster, taken):
        before = max(int(s["epoch"]) for s in self.client.shards())
        self.assertGreater(min(int(s["epoch"]) for s in cluster.client.shards()), before + 1000)
        self.assertGreater(int(cluster.client.call("AdminService/GetCluster", {})["generation"]), 1)
        self.assertEqual(taken["shards"], SHARDS)

    def refused_over_what_is_in_use(self, other):
        self.assertIn("in use", self.refusal("restore", self.dir))
        self.assertIn("another cluster", self.refusal("backup", self.dir, cluster=other))
        self.assertIn("restored here before", self.refusal("restore", self.dir, cluster=other))


if __name__ == "__main__":
    unittest.main(verbosity=2)
