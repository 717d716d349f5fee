"""holdfast top: what it shows of a real cluster under a little load, and its terminal manners."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from client import RpcError, Unanswered, uuid7
from cluster import BIN, PATIENCE_S, Cluster, ClusterTest, free_port, wait_for

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Load:
    """Grants to one player, one after another, until the end."""

    def __init__(self, client, player):
        self.client, self.player = client, player
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            with contextlib.suppress(RpcError, Unanswered):
                self.client.grant(self.player, 1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Screen:
    """`holdfast top` in a terminal of its own."""

    def __init__(self, endpoint, rows=24, columns=90, **environment):
        self.main, self.side = pty.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.side)
        self.said = b""
        self.popen = subprocess.Popen(
            [BIN / "holdfast", "top", "--endpoint", endpoint], stdin=self.side, stdout=self.side,
            stderr=self.side, start_new_session=True, env=os.environ | {"TERM": "xterm"} | environment)

    def resize(self, rows, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.main], [], [], 0.05)[0]:
            self.said += os.read(self.main, 65536)
        return self.said

    def await_text(self, text, after=0):
        return wait_for(f"{text!r} on the screen",
                        lambda: self.read().find(text, after) + 1) + len(text) - 1

    def press(self, keys):
        os.write(self.main, keys)

    def end(self):
        """Its exit code; the terminal must be as it was."""
        end = time.monotonic() + PATIENCE_S
        while self.popen.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.popen.poll()

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        os.close(self.main)
        os.close(self.side)


class TopTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=8)

    def once(self, *words, endpoint=None):
        return subprocess.run([BIN / "holdfast", "top", "--once", "--endpoint",
                               endpoint or self.cluster.endpoint, *words], capture_output=True,
                              text=True, check=False, timeout=300)

    def open_screen(self, **environment):
        screen = Screen(self.cluster.endpoint, **environment)
        self.addCleanup(screen.close)
        return screen

    def test_json_shows_rates_and_the_right_owner(self):
        player = f"player-{uuid7()}"
        owner, dot = self.cluster.owner_of(player)
        with Load(self.client, player):
            done = self.once("-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = json.loads(done.stdout)
        self.assertEqual((page["shardCount"], page["shardsServing"]), (8, 8))
        nodes = {node["name"]: node for node in page["nodes"]}
        self.assertEqual(set(nodes), {"node-1", "node-2", "node-3"})
        busy = nodes[owner.name]
        self.assertGreater(busy["callsPerS"], 0)
        self.assertGreater(busy["commitP99Ms"], 0)
        self.assertGreaterEqual(busy["commitP99Ms"], busy["commitP50Ms"])
        self.assertGreater(busy["diskFreeBytes"], 0)
        self.assertGreater(busy["residentBytes"], 1 << 20)
        self.assertEqual(sum(node["shardsOwned"] for node in page["nodes"]), 8)
        self.assertTrue(all(node["shardsHeld"] == 8 for node in page["nodes"]))
        grant = next(m for m in page["methods"] if m["method"] == "LedgerService/Grant")
        self.assertGreater(grant["perS"], 0)
        self.assertGreater(grant["p99Ms"], 0)
        self.assertEqual(page["shards"][0]["owner"], owner.name)
        owners = {s.get("shard", 0): s["owner"] for s in self.client.shards()}
        for shown in page["shards"]:
            self.assertEqual(str(shown["ownerId"]), str(owners[shown["shard"]]))
        self.assertEqual(str(page["shards"][0]["ownerId"]), str(dot["owner"]))
        self.assertGreater(page["shards"][0]["writesPerS"], 0)
        self.assertGreater(page["router"]["requestsPerS"], 0)

    def test_text_is_one_page(self):
        player = f"player-{uuid7()}"
        owner, _ = self.cluster.owner_of(player)
        with Load(self.client, player):
            done = self.once()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("holdfast "), lines)
        self.assertIn("shards 8 of 8 served", lines[0])
        self.assertEqual(sum(line.startswith("NODE ") for line in lines), 1)
        first_shard = lines[[line.split(" ")[0] for line in lines].index("SHARD") + 1]
        self.assertEqual(first_shard.split()[1], owner.name)
        self.assertNotIn("\x1b", done.stdout)

    def test_it_draws_follows_keys_and_leaves_the_terminal_as_it_was(self):
        screen = self.open_screen()
        screen.await_text(b"NODE ")
        self.assertEqual(screen.said.count(ENTER), 1)
        self.assertNotEqual(termios.tcgetattr(screen.side), screen.modes)
        screen.press(b"h")
        at = screen.await_text(b"now rate")
        screen.press(b"s")
        at = screen.await_text(b"now latency", at)
        screen.press(b"h")
        # A page that is drawn after the window shrank keeps to it.
        screen.resize(10, 40)
        screen.popen.send_signal(signal.SIGWINCH)
        at = screen.await_text(b"\x1b[H", len(screen.read()))
        screen.press(b"q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.said.endswith(LEAVE), screen.said[-80:])
        self.assertEqual(termios.tcgetattr(screen.side), screen.modes)

    def test_a_signal_restores_the_terminal_too(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                screen = self.open_screen()
                screen.await_text(b"NODE ")
                screen.popen.send_signal(number)
                self.assertEqual(screen.end(), 128 + number)
                self.assertTrue(screen.said.endswith(LEAVE), screen.said[-80:])
                self.assertEqual(termios.tcgetattr(screen.side), screen.modes)

    def test_a_dumb_terminal_gets_page_after_page(self):
        screen = self.open_screen(TERM="dumb")
        at = screen.await_text(b"NODE ")
        screen.await_text(b"NODE ", at)
        screen.popen.send_signal(signal.SIGINT)
        self.assertEqual(screen.end(), 128 + signal.SIGINT)
        self.assertNotIn(b"\x1b", screen.said)
        self.assertEqual(termios.tcgetattr(screen.side), screen.modes)

    def test_a_router_that_is_not_there_is_an_error(self):
        done = self.once("--deadline-ms", "1000", endpoint=f"http://127.0.0.1:{free_port()}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("holdfast:", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.once("--interval", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
