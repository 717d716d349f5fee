"""`holdfast dev`: every process that dies comes back, and each line says when, which, why and where its output is."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from client import uuid7
from cluster import BIN, DevCluster, die_with_parent, wait_for

TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S")


def alive(pid):
    """Neither gone nor a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


class DevTest(unittest.TestCase):
    def dev(self, *arguments):
        self.cluster = DevCluster(*arguments)
        self.addCleanup(lambda: self.cluster.stop(keep=bool(
            self._outcome and not self._outcome.success)))
        return self.cluster.start()

    def pid_of(self, name):
        state = self.cluster.state()
        if name == "etcd":
            return state["etcdPid"]
        return next(p["pid"] for p in state["processes"] if p["name"] == name)

    def said(self, *words):
        """The lines of dev that have all of these words."""
        return [line for line in self.cluster.process.log().splitlines()
                if all(word in line for word in words)]

    def check_lines(self):
        lines = self.cluster.process.log().splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, TIMED)
            self.assertLess(len(line), 1000)

    def check_gone(self, pids):
        for pid in pids:
            self.assertFalse(alive(pid), "a process was left behind")


class Pages(DevTest):
    """Where anyone on this machine may call, so may a page in its browser, but for what browsers tell of it."""

    def ask_etcd(self, headers):
        url = urllib.parse.urlsplit(self.cluster.state()["etcd"])
        conn = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
        self.addCleanup(conn.close)
        conn.request("POST", "/v3/kv/range", '{"key":"AA==","range_end":"AA=="}',
                     {"content-type": "text/plain"} | headers)
        answer = conn.getresponse()
        answer.read()
        return answer.status, answer.headers.get("access-control-allow-origin")

    def test_a_page_cannot_read_etcd(self):
        self.dev("--nodes", "1")
        self.assertEqual(self.ask_etcd({}), (200, None))
        self.assertEqual(self.ask_etcd({"host": "localhost:1"})[0], 200)
        for host in ("evil.example", "127.0.0.1.evil.example:2379"):  # A name that points to this machine.
            self.assertEqual(self.ask_etcd({"host": host})[0], 421, host)
        self.assertEqual(self.ask_etcd({"origin": "http://evil.example"}), (200, None))


class ComesBack(DevTest):
    def test_a_killed_etcd_is_started_again_while_writes_go_on(self):
        client = self.dev().client
        server = client.register("before")
        client.start("held", server)
        killed = self.pid_of("etcd")
        os.kill(killed, signal.SIGKILL)
        for number in range(20):
            client.grant(f"meanwhile-{number}", 1)
        wait_for("etcd to run again", lambda: self.pid_of("etcd") not in (0, killed))
        self.assertTrue(alive(self.pid_of("etcd")))
        after = wait_for("a game server to register", lambda: client.register("after"))
        wait_for("a login", lambda: client.start("new", after, op_id=uuid7()))
        died = self.said("etcd", "signal 9")
        self.assertEqual(len(died), 1, self.cluster.process.log())
        self.assertIn(str(self.cluster.data / "etcd.log"), died[0])
        self.assertTrue((self.cluster.data / "etcd.log").exists())
        self.assertTrue(self.said("etcd", f"process {self.pid_of('etcd')}"))
        self.check_lines()

    def test_every_process_comes_back_and_is_named(self):
        client = self.dev().client
        for name in ("node-1", "coordinator", "router", "etcd"):
            with self.subTest(process=name):
                killed = self.pid_of(name)
                os.kill(killed, signal.SIGKILL)
                wait_for("it to run again", lambda n=name, k=killed: self.pid_of(n) not in (0, k))
                died = self.said(name, "signal 9")
                self.assertEqual(len(died), 1)
                output = re.search(r"its output is in (\S+)", died[0]).group(1)
                self.assertEqual(output, str(self.cluster.data / f"{name}.log"))
                self.assertTrue(pathlib.Path(output).exists())
                wait_for("a grant", lambda: client.grant("player", 1))
        self.check_lines()

    def test_an_etcd_that_cannot_start_is_tried_again_ever_more_slowly(self):
        client = self.dev("--restart-ms", "1000").client
        port = int(self.cluster.state()["etcd"].rsplit(":", 1)[1])
        os.kill(self.pid_of("etcd"), signal.SIGKILL)
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wait_for("its port", lambda: taken.bind(("127.0.0.1", port)) is None, 1, 0.005)
        taken.listen()
        wait_for("the third failure", lambda: len(self.said("etcd exited with")) >= 3, 30)
        waits = [int(re.search(r"again in (\d+) ms", line).group(1))
                 for line in self.said("etcd exited with")]
        self.assertEqual(waits, sorted(waits))
        self.assertGreater(waits[2], waits[0])
        self.assertLessEqual(max(waits), 15000)
        # Why, in etcd's own words, and where there is more.
        self.assertTrue(self.said("address already in use"))
        self.assertTrue(all(str(self.cluster.data / "etcd.log") in line
                            for line in self.said("etcd exited with")))
        self.assertLess(len(self.cluster.process.log().splitlines()), 60, "it floods its output")
        wait_for("a grant meanwhile", lambda: client.grant("meanwhile", 1))
        taken.close()
        wait_for("a game server to register", lambda: client.register("after"))
        self.check_lines()


class Stops(DevTest):
    def pids(self):
        return [self.cluster.process.pid, self.pid_of("etcd")] + [
            p["pid"] for p in self.cluster.state()["processes"]]

    def test_a_child_killed_while_dev_stops_stays_dead(self):
        self.dev()
        pids = self.pids()
        os.kill(self.pid_of("node-3"), signal.SIGSTOP)  # So that it is still there when it is killed.
        self.cluster.process.signal(signal.SIGINT)
        wait_for("the router to stop", lambda: not alive(pids[2]))
        os.kill(pids[-1], signal.SIGKILL)
        os.kill(pids[1], signal.SIGKILL)
        self.assertEqual(self.cluster.process.wait_exit(60), 0)
        self.check_gone(pids)
        self.check_lines()
        self.assertFalse(self.said("started again"), "it was started while all was being stopped")
        self.assertFalse(self.cluster.state()["ready"])

    def test_it_stops_while_etcd_is_away(self):
        self.dev("--restart-ms", "600000")
        pids = self.pids()
        os.kill(pids[1], signal.SIGKILL)
        wait_for("dev to see it", lambda: self.said("etcd", "signal 9"))
        begun = time.monotonic()
        self.assertEqual(self.cluster.process.stop(), 0)
        self.assertLess(time.monotonic() - begun, 45)
        self.check_gone(pids)
        self.check_lines()

    def test_a_killed_dev_is_started_again_at_once(self):
        """Its children die with it, a little later: nodes wait for their directories."""
        client = self.dev().client
        client.grant("kept", 7)
        pids = self.pids()
        os.kill(self.pid_of("node-1"), signal.SIGSTOP)
        self.cluster.process.popen.kill()
        self.cluster.process.popen.wait()
        (self.cluster.data / "cluster.json").unlink()
        self.cluster.start()
        self.assertEqual(self.cluster.client.balance("kept"), 7)
        self.check_gone(pids[1:] if self.cluster.process.pid != pids[0] else pids[1:])
        self.check_lines()


class CannotStart(unittest.TestCase):
    def run_dev(self, path, patience_s=60):
        with tempfile.TemporaryDirectory(prefix="holdfast-dev.") as directory:
            data = pathlib.Path(directory) / "data"
            done = subprocess.run([BIN / "holdfast", "dev", "--data", data, "--port", "0"],
                                  capture_output=True, text=True, check=False, timeout=patience_s,
                                  env=os.environ | {"PATH": path}, preexec_fn=die_with_parent)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            for line in done.stderr.splitlines():
                self.assertRegex(line, TIMED)
            output = re.search(r"its output is in (\S+)", done.stderr)
            self.assertIsNotNone(output, done.stderr)
            self.assertEqual(output.group(1), str(data / "etcd.log"))
            self.assertTrue(pathlib.Path(output.group(1)).exists())
            return done.stderr

    def test_without_etcd_it_says_so(self):
        self.assertIn("No such file or directory", self.run_dev("/nonexistent"))

    def test_an_etcd_that_dies_at_once_is_quoted(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-etcd.") as directory:
            program = pathlib.Path(directory) / "etcd"
            program.write_text("#!/bin/sh\n/bin/echo 'the volume is upside \033[31m down' >&2\nexit 3\n",
                               encoding="ascii")
            program.chmod(0o755)
            said = self.run_dev(directory)
            self.assertIn("exited with 3", said)
            self.assertIn("the volume is upside ?[31m down", said)
            self.assertLess(len(said.splitlines()), 30)


if __name__ == "__main__":
    unittest.main(verbosity=2)
