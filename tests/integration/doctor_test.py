"""holdfast doctor: nothing fails in a healthy cluster; what is broken is named, with what to do."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from cluster import BIN, ROOT, Cluster, ClusterTest, free_port, wait_for


class DoctorTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=8)

    def doctor(self, *words, endpoint=None):
        """(exit code, report)"""
        done = subprocess.run([BIN / "holdfast", "doctor", "-o", "json", "--endpoint",
                               endpoint or self.cluster.endpoint, *words], capture_output=True, text=True,
                              check=False, timeout=300)
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if report["failed"] else 0, report)
        for check in report["checks"]:
            if check["level"] != "ok":
                self.assertTrue(check["todo"], check)
            if "runbook" in check:
                self.assertTrue((ROOT / "docs/runbooks" / f"{check['runbook']}.md").exists(), check)
        return done.returncode, report

    @staticmethod
    def levels(report, level):
        return {c["check"] for c in report["checks"] if c["level"] == level}

    @staticmethod
    def texts(report, check, level):
        return [c["what"] for c in report["checks"] if (c["check"], c["level"]) == (check, level)]

    def settled(self):
        code, report = self.doctor()
        # Debian's etcd is older than production wants.
        well = code == 0 and not report["unknown"] and not self.levels(report, "warn") - {"etcd"}
        return report if well else None

    def test_a_healthy_cluster_passes_and_each_fault_is_named(self):
        for player in range(20):
            self.client.grant(f"d{player}", 1)
        report = wait_for("nothing to complain of", self.settled)
        self.assertEqual(self.levels(report, "ok") | {"etcd"}, {
            "router", "coordinator", "nodes", "versions", "clocks", "disks", "certificates", "etcd",
            "shards", "replicas", "replication", "learners", "transfers", "players", "audit", "counts", "consumers"})
        for check in ("versions", "clocks", "certificates"):  # The router, three nodes, the coordinator.
            self.assertIn("5 processes", self.texts(report, check, "ok")[0])

        with self.subTest("a router that is not there"):
            gone = f"http://127.0.0.1:{free_port()}"
            code, report = self.doctor("--deadline-ms", "1500", endpoint=gone)
            self.assertEqual((code, self.levels(report, "fail")), (1, {"router"}))
            code, report = self.doctor("--deadline-ms", "1500",
                                       endpoint=f"{gone},{self.cluster.endpoint}")
            self.assertEqual((code, self.levels(report, "fail")), (1, {"router"}))
            self.assertEqual(len(self.texts(report, "router", "ok")), 1)

        with self.subTest("one node is dead"):
            node = self.cluster.nodes[1]
            node.kill()
            report = wait_for("the node to be missed", lambda: self.misses(node.name))
            self.assertIn("replicas", self.levels(report, "warn"))

        with self.subTest("two of three are dead"):
            self.cluster.nodes[2].kill()
            report = wait_for("the shards to be missed", lambda: (
                lambda code, r: r if code == 1 and "without a majority" in
                " ".join(self.texts(r, "shards", "fail")) else None)(*self.doctor()))
            self.assertIn("HoldfastShardsUnserved", {c.get("runbook") for c in report["checks"]})
            self.assertIn("players", self.levels(report, "unknown"))

        for node in self.cluster.nodes[1:]:
            node.start()
        wait_for("nothing to complain of", self.settled)

    def fails(self, check, text):
        """The report, once that check fails for that reason."""
        report = self.doctor()[1]
        return report if text in " ".join(self.texts(report, check, "fail")) else None

    def test_a_clock_that_is_off_is_named(self):
        wait_for("nothing to complain of", self.settled)
        node = self.cluster.nodes[2]
        faketime = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        node.kill()
        node.environment = os.environ | {"LD_PRELOAD": str(faketime), "FAKETIME": "+0.7",
                                         "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        node.start()

        def warned():
            return [what for what in self.texts(self.doctor()[1], "clocks", "warn") if node.name in what]

        self.assertRegex(wait_for("the clock to be missed", warned)[0], r"is \d+ ms ahead")
        node.kill()
        node.environment = None
        node.start()
        wait_for("nothing to complain of", self.settled)

    def test_a_coordinator_that_is_gone_is_named(self):
        wait_for("nothing to complain of", self.settled)
        coordinator = self.cluster.coordinators[0]
        coordinator.kill()
        report = wait_for("it to be missed", lambda: self.fails("coordinator", "no coordinator is elected"))
        self.assertIn("HoldfastNoCoordinator", {c.get("runbook") for c in report["checks"]})
        coordinator.start()
        # Routers find it again: without its word the audit would be unknown.
        wait_for("nothing to complain of", self.settled)

    def test_a_disk_that_is_short_and_an_etcd_that_hangs_are_named(self):
        wait_for("nothing to complain of", self.settled)
        if shutil.disk_usage(self.cluster.dir).free < 900 << 30:  # The option's bound is 1 TiB.
            with self.subTest("a disk"):
                node = self.cluster.nodes[0]
                node.kill()
                node.command.append("--disk-free-min=1000GiB")
                node.start()
                report = wait_for("the disk to be missed",
                                  lambda: self.fails("disks", f"{node.name} is full"))
                self.assertIn("HoldfastDiskFull", {c.get("runbook") for c in report["checks"]})
                node.kill()
                node.command.pop()
                node.start()
        with self.subTest("etcd"):
            self.cluster.etcd.signal(signal.SIGSTOP)
            try:
                wait_for("etcd to be missed", lambda: self.fails("etcd", "does not answer"))
            finally:
                self.cluster.etcd.signal(signal.SIGCONT)
        wait_for("nothing to complain of", self.settled)

    def misses(self, name):
        code, report = self.doctor()
        named = any(name in what or "has no lease" in what for what in self.texts(report, "nodes", "warn"))
        return report if code == 0 and named else None

    def test_it_is_read_by_people_too(self):
        done = subprocess.run([BIN / "holdfast", "doctor", "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=300)
        self.assertIn("coordinator", done.stdout)
        self.assertRegex(done.stdout, r"\d+ ok, \d+ warnings, \d+ failed, \d+ unknown\n$")
        used = subprocess.run([BIN / "holdfast", "doctor", "now"], capture_output=True, text=True,
                              check=False, timeout=300)
        self.assertEqual(used.returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
