"""
Hostile clients on the public port. Each is closed with the right error, costs the router little
memory, and disturbs no one: grants of another caller are answered all the while.
"""

import json
import resource
import socket
import time
import unittest
import zlib

from client import uuid7
from cluster import SANITIZED, Cluster, ClusterTest, wait_for
from hostile import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, HEADERS,
                     PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS, Raw, Watch, field, frame,
                     grpc_body, machine_is_busy, post, post_headers)

MIB = 1 << 20
GRANT = "/holdfast.v1.LedgerService/Grant"
BATCH_GRANT = "/holdfast.v1.LedgerService/BatchGrant"
PROFILE = "/holdfast.v1.ProfileService/GetProfile"
CONNECTIONS_MAX = 1000
BODIES_MAX = 8 * MIB
ANSWERS_MAX = 16 * MIB
LATENCY_S_MAX = 20 if SANITIZED else 2
LATENCY_S_MAX_BUSY = 20
# Beyond the limits above: buffers of sockets and TLS, the heap's own.
GROWTH_MAX = (400 if SANITIZED else 48) * MIB
PATIENCE_S = 60


class Hostile(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=4, options={"router": {
            "connections-max": CONNECTIONS_MAX, "header-timeout": "2s", "body-timeout": "2s",
            "write-timeout": "2s", "idle-timeout": "60s", "bodies-size-max": BODIES_MAX,
            "answers-size-max": ANSWERS_MAX}})

    def setUp(self):
        self.raws = []
        self.client.grant("warm", 1)
        self.client.drop()

    def tearDown(self):
        for raw in self.raws:
            raw.close()
        wait_for("connections to be closed", lambda: self.metric("http_connections") < 10)
        wait_for("calls to end", lambda: self.metric("in_flight") == 0)
        self.assertTrue(self.cluster.router.running())

    def raw(self, **options):
        raw = Raw(self.cluster.port, **options)
        self.raws.append(raw)
        return raw

    def h2(self, settings=b"", **options):
        raw = self.raw(**options)
        raw.send(PREFACE + frame(SETTINGS, payload=settings))
        return raw

    def metric(self, name):
        return self.cluster.router.metrics()[f"holdfast_router_{name}"]

    def watch(self, growth_max=GROWTH_MAX):
        busy = machine_is_busy()
        return Watch(self.cluster, LATENCY_S_MAX_BUSY if busy else LATENCY_S_MAX, growth_max)

    def assert_calmed(self, raw):
        self.assertTrue(raw.read(PATIENCE_S), "the connection was not closed")
        self.assertEqual(raw.goaway_code(), ENHANCE_YOUR_CALM)

    def big_profile(self):
        player = f"big-{uuid7()}"
        for name in ("a", "b"):
            self.client.update(player, None, {"name": name, "replace": json.dumps("x" * 200_000)})
        return player

    # Slow ones.

    def test_clients_that_send_half_a_request_and_fall_silent(self):
        with self.watch():
            raws = [self.raw() for _ in range(50)]
            for raw in raws:
                raw.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Half")
            halves = [self.raw() for _ in range(50)]
            for raw in halves:
                raw.send(PREFACE[:10])
            for raw in raws + halves:
                self.assertTrue(raw.read(PATIENCE_S), "the connection was not closed")
            self.assertEqual({raw.status() for raw in raws}, {408})

    def test_slow_headers(self):
        with self.watch():
            raw = self.raw()
            raw.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n")
            begun = time.monotonic()
            while time.monotonic() < begun + PATIENCE_S and raw.send(b"X-A: b\r\n"):
                if raw.read(0.05):
                    break
            self.assertEqual(raw.status(), 408)
            self.assertIn(b"connection: close", raw.came)

    def test_slow_bodies(self):
        with self.watch():
            raw = self.raw()
            raw.send(post(GRANT, b"{", length=1000))
            begun = time.monotonic()
            while time.monotonic() < begun + PATIENCE_S and raw.send(b" "):
                if raw.read(0.05):
                    break
            self.assertEqual(raw.status(), 408)
            slow = self.h2()
            slow.send(frame(HEADERS, END_HEADERS, 1, post_headers()))
            slow.send(frame(DATA, 0, 1, b"\0"))
            self.assertTrue(wait_for("the stream's reset", lambda: slow.read(0.05) or
                                     slow.reset_codes(), PATIENCE_S))

    def test_slow_readers(self):
        player = self.big_profile()
        request = post(PROFILE, {"playerId": player})
        before = self.metric("http_slow_readers_total") + self.metric("http_timeouts_total")
        with self.watch(GROWTH_MAX + 2 * ANSWERS_MAX):
            raws = [self.raw(receive_buffer=4096) for _ in range(5)]
            for raw in raws:
                raw.send(request * (8 if SANITIZED else 40))
            # One whose reads were refused for want of room holds nothing yet, and asks again.
            wait_for("the readers of nothing to be closed", lambda: [
                raw.send(request) for raw in raws] and self.metric(
                "http_slow_readers_total") + self.metric("http_timeouts_total") >= before + 5,
                PATIENCE_S)
            wait_for("their answers to be given up",
                     lambda: self.metric("http_waiting_bytes") == 0, PATIENCE_S)

    def test_slow_readers_that_give_no_window(self):
        player = self.big_profile()
        body = grpc_body(b"\x0a" + bytes([len(player)]) + player.encode())
        with self.watch(GROWTH_MAX + 2 * ANSWERS_MAX):
            raws = [self.h2(settings=b"\0\4\0\0\0\0") for _ in range(4)]
            for raw in raws:
                for stream in range(1, 200, 2):
                    raw.send(frame(HEADERS, END_HEADERS, stream, post_headers(PROFILE)) +
                             frame(DATA, END_STREAM, stream, body))
            wait_for("their answers to be given up", lambda: self.metric(
                "http_waiting_bytes") == 0 and self.metric("in_flight") <= 1, PATIENCE_S)

    # Floods.

    def test_rapid_resets(self):
        with self.watch():
            raw = self.h2()
            for first in range(1, 8001, 200):
                if not raw.send(b"".join(
                        frame(HEADERS, END_HEADERS, stream, post_headers()) +
                        frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
                        for stream in range(first, first + 200, 2))):
                    break
            self.assert_calmed(raw)
        self.assertGreater(self.metric("http_floods_total"), 0)

    def test_continuation_flood(self):
        with self.watch():
            raw = self.h2()
            raw.send(frame(HEADERS, 0, 1, post_headers()))
            for _ in range(200):
                if not raw.send(frame(CONTINUATION, 0, 1, field(b"x-a", b"b" * 100)) * 50):
                    break
            self.assert_calmed(raw)

    def test_settings_flood(self):
        self.flood(frame(SETTINGS, payload=b"\0\3\0\0\0\x64"))

    def test_settings_ack_flood(self):
        self.flood(frame(SETTINGS, ACK), allow_other=True)

    def test_ping_flood(self):
        self.flood(frame(PING, payload=b"12345678"))

    def test_priority_flood(self):
        self.flood(frame(PRIORITY, 0, 1, b"\0\0\0\0\1"))

    def flood(self, one, allow_other=False):
        with self.watch():
            for _ in range(3):
                raw = self.h2()
                for _ in range(50):
                    if not raw.send(one * 500):
                        break
                self.assertTrue(raw.read(PATIENCE_S), "the connection was not closed")
                if not allow_other:
                    self.assertIn(raw.goaway_code(), (ENHANCE_YOUR_CALM, None))
            raw = self.h2()
            raw.send(one * 4000)
            raw.read(PATIENCE_S)
            self.assertTrue(raw.goaway_code() is not None)
            if not allow_other:
                self.assertEqual(raw.goaway_code(), ENHANCE_YOUR_CALM)

    # Bombs.

    def test_header_bombs(self):
        with self.watch():
            for head in (b"X-A: " + b"a" * MIB + b"\r\n\r\n", b"X-A: b\r\n" * 100 + b"\r\n",
                         b"X-A: b\r\n" * 100_000):
                raw = self.raw()
                raw.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head)
                self.assertTrue(raw.read(PATIENCE_S))
                self.assertEqual(raw.status() or 431, 431)
            raw = self.raw()
            raw.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 100 + b"\r\n")
            raw.read(PATIENCE_S)
            self.assertEqual(raw.status(), 431)

    def test_hpack_bombs(self):
        # One field of 4,000 bytes goes into the table; each byte of the rest repeats it.
        value = b"\x40\x01a\x7f" + bytes([(4000 - 127) % 128 + 128, (4000 - 127) // 128]) + b"v" * 4000
        with self.watch():
            raw = self.h2()
            raw.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, post_headers() + value))
            for stream in range(3, 43, 2):
                raw.send(frame(HEADERS, END_HEADERS | END_STREAM, stream,
                               post_headers() + b"\xbe" * 10))
            wait_for("the resets", lambda: raw.read(0.05) or len(raw.reset_codes()) >= 20,
                     PATIENCE_S)
            self.assertEqual(set(raw.reset_codes()), {ENHANCE_YOUR_CALM})
            for _ in range(20):
                raw = self.h2()
                raw.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, post_headers() + value) +
                         frame(HEADERS, END_HEADERS | END_STREAM, 3,
                               post_headers() + b"\xbe" * 15_000))
                self.assert_calmed(raw)

    def test_deep_json(self):
        deep = "{\"a\":" * 10_000 + "1" + "}" * 10_000
        lists = "[" * 10_000 + "]" * 10_000
        with self.watch():
            for body in (deep, lists, "{\"authority\":" * 10_000,
                         json.dumps({"playerId": "a", "opId": uuid7(), "authority": "unheld",
                                     "edits": [{"name": "a", "replace": lists}]})):
                for path in (GRANT, "/holdfast.v1.ProfileService/UpdateProfile"):
                    raw = self.raw()
                    raw.send(post(path, body))
                    self.assertTrue(raw.read_until(b"invalid_argument", PATIENCE_S), raw.came)
                    self.assertEqual(raw.status(), 400)

    def test_oversized_bodies(self):
        with self.watch(GROWTH_MAX + BODIES_MAX):
            raw = self.raw()
            raw.send(post(GRANT, b"", length=1 << 40))
            self.assertTrue(raw.read(PATIENCE_S))
            self.assertEqual(raw.status(), 413)
            chunked = self.raw()
            chunked.send(post(GRANT, b"", "Transfer-Encoding: chunked", length=False))
            for _ in range(100):
                if not chunked.send(b"10000\r\n" + b" " * 65536 + b"\r\n"):
                    break
            chunked.read(PATIENCE_S)
            self.assertIn(chunked.status(), (413, 0))  # 0: lost when its connection was reset.
            streams = self.h2()
            streams.send(frame(HEADERS, END_HEADERS, 1, post_headers()))
            streams.send(frame(DATA, 0, 1, b" " * 16384) * 64)
            streams.read(0.5)
            # Many at once share one limit.
            many = [self.raw() for _ in range(4)]
            for raw in many:
                raw.send(post(BATCH_GRANT, b" " * (3 * MIB), length=4 * MIB))
            wait_for("one to be refused", lambda: any(
                raw.read(0.05) or raw.status() in (429, 503) for raw in many), PATIENCE_S)
            self.assertTrue({raw.status() for raw in many} & {429, 503, 408})

    def test_compression_bombs(self):
        """Each holds 256 MiB. What is unpacked of it is bounded, in every protocol."""
        pack = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(pack.compress(b" " * MIB) for _ in range(256)) + pack.flush()
        framed = b"\1" + len(bomb).to_bytes(4, "big") + bomb
        forms = (("application/json", "content-encoding", bomb, b"HTTP/1.1 413 "),
                 ("application/grpc-web", "grpc-encoding", framed, b"grpc-status: 8\r\n"),
                 ("application/grpc-web", "content-encoding", bomb, b"grpc-status: 8\r\n"))
        with self.watch(GROWTH_MAX + BODIES_MAX):
            for _ in range(20):
                for content_type, header, body, wanted in forms:
                    raw = self.raw()
                    raw.send((f"POST {GRANT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
                              f"{header}: gzip\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
                    self.assertTrue(raw.read_until(wanted, PATIENCE_S), raw.came)
                    raw.close()
        path = "/grpc.health.v1.Health/Check"  # Without a key, less is unpacked.
        raw = self.raw()
        raw.send(post(path, bomb, "Content-Encoding: gzip"))
        self.assertTrue(raw.read_until(b"4096", PATIENCE_S), raw.came)

    # Ambiguities.

    def test_request_smuggling(self):
        inner = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        post_line = b"POST " + GRANT.encode() + b" HTTP/1.1\r\nHost: localhost\r\n"
        post_line += b"Content-Type: application/json\r\n"
        forms = {
            "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "both, swapped": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
            "two lengths": b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
            "list of lengths": b"Content-Length: 0, 40\r\n\r\n",
            "signed length": b"Content-Length: +0\r\n\r\n",
            "hex length": b"Content-Length: 0x0\r\n\r\n",
            "length out of range": b"Content-Length: 99999999999999999999\r\n\r\n",
            "two encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "other encoding": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "hidden encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "blank before colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            "folded": b"Content-Length:\r\n 0\r\n\r\n",
            "bare newline": b"Content-Length: 0\nX: y\r\n\r\n",
            "bare return": b"X: a\rContent-Length: 0\r\n\r\n",
            "nul": b"X: a\0b\r\n\r\n",
            "two hosts": b"Host: y\r\n\r\n",
            "negative chunk": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
            "huge chunk": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
            "prefixed chunk": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
            "chunk without end": b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc0\r\n\r\n",
        }
        with self.watch():
            for name, rest in forms.items():
                with self.subTest(form=name):
                    raw = self.raw()
                    raw.send(post_line + rest + inner)
                    self.assertTrue(raw.read(PATIENCE_S), "the connection was not closed")
                    self.assertEqual(raw.status(), 400, raw.came)
                    self.assertEqual(raw.came.count(b"HTTP/1.1 "), 1, "the inner one was served")

    # Crowds.

    def test_idle_connections_up_to_the_limit_and_beyond(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = CONNECTIONS_MAX + 500
        if soft < wanted + 100:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted + 100), hard))
        with self.watch():
            kept = self.raw()
            for _ in range(wanted):
                self.raw()
                if len(self.raws) % 100 == 0:  # One that speaks now and then is not idle longest.
                    kept.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertTrue(kept.read_until(b"ok\n", PATIENCE_S))
                    kept.came = b""
            self.assertLessEqual(self.metric("http_connections"), CONNECTIONS_MAX)
            # The longest idle make room for one more, whenever it comes.
            wait_for("a new caller to be served", self.serves_a_new_caller, PATIENCE_S)
            self.assertGreater(self.metric("http_evicted_total") +
                               self.metric("http_connections_refused_total"), 0)
            self.assertFalse(kept.read(0.01))

    def serves_a_new_caller(self):
        raw = Raw(self.cluster.port)
        try:
            raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return raw.read_until(b"ok\n", 20)
        finally:
            raw.close()


if __name__ == "__main__":
    socket.setdefaulttimeout(60)
    unittest.main(verbosity=2)
