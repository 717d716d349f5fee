"""A router that is told to stop (SIGTERM) gives each call that it has taken its whole answer."""

import json
import re
import signal
import socket
import struct
import time
import unittest

from client import uuid7
from cluster import Cluster, ClusterTest, wait_for
from hostile import (DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE,
                     frame, grpc_body, post, post_headers)

PROFILE = "/holdfast.v1.ProfileService/GetProfile"
SECTIONS, SECTION_BYTES = 5, 240_000  # 1.2 MB.
READS = 8                             # Together more than the sockets hold.
HEAD = re.compile(rb"HTTP/1\.1 200 OK\r\n(.*?)\r\n\r\n", re.DOTALL)
LENGTH = re.compile(rb"content-length: (\d+)")
WINDOW = 0x7fff_ffff


def slow_reader(port):
    """A connection whose kernel holds little for it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.settimeout(20)
    sock.connect(("127.0.0.1", port))
    return sock


def read_all(sock):
    """What comes until the other side closes: a reset is none of its ways to say so."""
    came = bytearray()
    while data := sock.recv(1 << 16):
        came += data
        time.sleep(0.001)
    return bytes(came)


def answers_of(came):
    """(head, body) of each answer of HTTP/1.1; the last may be cut."""
    while came:
        head = HEAD.match(came)
        if head is None:
            raise AssertionError(f"no answer begins with {came[:80]!r}")
        length = int(LENGTH.search(head[1])[1])
        yield head[1], came[head.end():head.end() + length]
        came = came[head.end() + length:]


def frames_of(came):
    """(kind, flags, stream, payload) of each whole frame of HTTP/2."""
    at = 0
    while at + 9 <= len(came):
        size = int.from_bytes(came[at:at + 3], "big")
        stream = int.from_bytes(came[at + 5:at + 9], "big")
        if at + 9 + size > len(came):
            raise AssertionError("a frame is cut")
        yield came[at + 3], came[at + 4], stream, came[at + 9:at + 9 + size]
        at += 9 + size


class Drain(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, shards=4)

    def setUp(self):
        router = self.cluster.router
        if not router.running():
            router.start()
        wait_for("the router to be ready", router.ready, 30)
        wait_for("all shards to be served", self.cluster.all_serving)
        self.client.drop()
        self.player = f"big-{uuid7()}"
        for section in range(SECTIONS):
            self.client.update(self.player, None, {"name": f"s{section}",
                                                   "replace": json.dumps("x" * SECTION_BYTES)})
        self.client.drop()

    def port(self):
        return int(self.cluster.endpoint.rsplit(":", 1)[1])

    def connect(self):
        sock = slow_reader(self.port())
        self.addCleanup(sock.close)
        return sock

    def drain(self):
        """SIGTERM, and long enough that a router that waits for calls alone is gone."""
        metrics = self.cluster.router.metrics()
        self.assertEqual(metrics["holdfast_router_in_flight"], 0, "the calls have their answers")
        self.cluster.router.signal(signal.SIGTERM)
        time.sleep(1)
        self.assertTrue(self.cluster.router.running(), "it ended with answers unsent")

    def assert_ends_well(self):
        begun = time.monotonic()
        self.assertEqual(self.cluster.router.wait_exit(10), 0)
        self.assertLess(time.monotonic() - begun, 5, "nothing was left to wait for")

    def read_request(self):
        return post(PROFILE, {"playerId": self.player, "include": ["sections"]})

    def test_a_pipeline_of_large_answers(self):
        sock = self.connect()
        sock.sendall(self.read_request())
        first = sock.recv(1)
        sock.sendall(self.read_request() * (READS - 1))
        time.sleep(1)
        self.drain()
        answers = list(answers_of(first + read_all(sock)))
        self.assertGreater(len(answers), 3)
        for number, (_, body) in enumerate(answers):
            sections = json.loads(body)["profile"]["sections"]
            self.assertEqual(len(sections), SECTIONS, number)
        self.assert_ends_well()

    def test_streams_of_http_2(self):
        sock = self.connect()
        setting = struct.pack(">HI", 4, WINDOW)  # INITIAL_WINDOW_SIZE
        message = b"\x0a" + bytes([len(self.player)]) + self.player.encode()
        calls = b"".join(
            frame(HEADERS, END_HEADERS, 1 + 2 * number, post_headers(PROFILE)) +
            frame(DATA, END_STREAM, 1 + 2 * number, grpc_body(message))
            for number in range(READS))
        sock.sendall(PREFACE + frame(SETTINGS, 0, 0, setting) +
                     frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - 65535)) + calls)
        time.sleep(1)
        self.drain()
        late = 1 + 2 * READS
        sock.sendall(frame(HEADERS, END_HEADERS | END_STREAM, late, post_headers(PROFILE)))
        ended, sizes, last = set(), {}, None
        for kind, flags, stream, payload in frames_of(read_all(sock)):
            if kind == GOAWAY:
                last = int.from_bytes(payload[:4], "big")
            elif kind == DATA:
                sizes[stream] = sizes.get(stream, 0) + len(payload)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                ended.add(stream)
        self.assertEqual(last, late - 2)
        self.assertEqual(ended, set(range(1, late, 2)))
        self.assertTrue(all(size > SECTIONS * SECTION_BYTES for size in sizes.values()), sizes)
        self.assert_ends_well()

    def test_without_calls_it_ends_at_once(self):
        sock = self.connect()
        sock.sendall(post(PROFILE, {"playerId": "small"}))
        self.assertTrue(sock.recv(1 << 16).startswith(b"HTTP/1.1 200 "))
        self.cluster.router.signal(signal.SIGTERM)
        self.assert_ends_well()
        self.assertEqual(sock.recv(1 << 16), b"")


if __name__ == "__main__":
    socket.setdefaulttimeout(60)
    unittest.main(verbosity=2)
