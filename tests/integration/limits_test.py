"""What a cluster costs without players, and how soon it is there. ./dev bench has the strict bars."""

import os
import pathlib
import signal
import time
import unittest

from cluster import SANITIZED, DevCluster, wait_for

RESIDENT_BYTES_MAX = 150 * 1024 * 1024
READY_S_MAX = 40.0  # A bound for machines of every kind.


def resident_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGESIZE")


class Limits(unittest.TestCase):
    def setUp(self):
        begun = time.monotonic()
        self.cluster = DevCluster("--restart-ms", "200")
        self.addCleanup(lambda: self.cluster.stop(keep=bool(
            self._outcome and not self._outcome.success)))
        self.cluster.start()
        self.ready_s = time.monotonic() - begun

    def processes(self):
        return self.cluster.state()["processes"]

    def test_ready_soon_small_when_idle_and_whole_again_after_a_kill(self):
        sizes = {p["name"]: resident_bytes(p["pid"]) for p in self.processes()}
        print(f"ready after {self.ready_s:.2f} s ; resident "
              f"{sum(sizes.values()) / 2**20:.1f} MiB without etcd: "
              + ", ".join(f"{name} {size / 2**20:.1f}" for name, size in sizes.items()))
        self.assertEqual(len(sizes), 5)
        self.assertLess(self.ready_s, READY_S_MAX)
        if not SANITIZED:
            self.assertLess(sum(sizes.values()), RESIDENT_BYTES_MAX)
        # A process that dies is started again.
        for victim in ("node-2", "router", "coordinator"):
            before = next(p for p in self.processes() if p["name"] == victim)
            os.kill(before["pid"], signal.SIGKILL)
            wait_for(f"{victim} to be started again", lambda v=victim, b=before: next(
                p for p in self.processes() if p["name"] == v)["starts"] > b["starts"])
            wait_for("a grant", lambda: self.cluster.client.grant("player", 1))
        pids = [p["pid"] for p in self.processes()] + [self.cluster.state()["etcdPid"]]
        self.assertEqual(self.cluster.process.stop(), 0)
        for pid in pids:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), "a process was left behind")
        self.assertFalse(self.cluster.state()["ready"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
