"""Backups of a cluster at work, and restores into new ones. docs/backup.md."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from audit_test import Traders
from client import uuid7
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
        cluster = Cluster(shards=SHARDS, currencies="gold,silver")
        self.enterContext(cluster) if hasattr(self, "enterContext") else (
            cluster.__enter__(), self.addCleanup(cluster.__exit__, None, None, None))
        self.done("restore", directory or self.dir, *more, cluster=cluster)
        return cluster



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


if __name__ == "__main__":
    unittest.main(verbosity=2)
