"""
Callers who hold what others need by waiting: reads of what has not happened yet, until the longest
deadline, by a key, a player's token or a native client; answers that need no key and are never read.
Each holds its own share; another caller finds places and room for answers all the while.
"""

import json
import multiprocessing
import time
import unittest

import as_of
from client import Client, RpcError, uuid7
from cluster import Cluster, ClusterTest, free_port, wait_for
from hostile_answers_test import ATTACK_S, Flood
from hostile import (DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, Raw, bearer, field,
                     frame, issue_keys, post)
from native import CLIENT, REQUEST, RESPONSE, Link, methods

MIB = 1 << 20
IN_FLIGHT_MAX = 600
SHARE = 50  # Percent: the standard.
ORDINARY = IN_FLIGHT_MAX * 85 // 100
WAIT_MS = 20_000
PATIENCE_S = 15
CALLS = 40
STREAMS = 250
BALANCES = "/holdfast.v1.LedgerService/GetBalances"
ANSWERS_MAX = 16 * MIB
NATIVE_BODIES = 4 * MIB
REGISTER_RATE = 20


def json_headers(path, key=None, wait_ms=WAIT_MS):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"localhost"),
              (b":path", path.encode()), (b"content-type", b"application/json"),
              (b"connect-timeout-ms", str(wait_ms).encode())]
    return b"".join(field(*pair) for pair in fields) + (bearer(key) if key else b"")


class HostilePlaces(ClusterTest):
    @classmethod
    def plan(cls):
        cls.native_port = free_port()
        cluster = Cluster(nodes=1, shards=4, options={"node": {"answers-size-max": ANSWERS_MAX}, "router": {
            "access": "keys", "in-flight-max": IN_FLIGHT_MAX, "register-rate": REGISTER_RATE,
            "answers-size-max": ANSWERS_MAX,
            "native-listen": f"127.0.0.1:{cls.native_port}", "bodies-size-max": 4 * NATIVE_BODIES}})
        cluster.make_certs("client/glutton?scopes=game+read", "client/modest?scopes=read")
        return cluster

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.writer, cls.greedy, cls.modest, cls.crowd = issue_keys(
            cls.cluster, ("writer", "payments,game"), ("greedy", "read"), ("modest", "read"), ("crowd", "game"))
        cls.payer = Client(cls.cluster.endpoint, cls.writer)
        cls.players = [f"p-{number}-{uuid7()}" for number in range(8)]
        cls.ahead = [cls.future(player) for player in cls.players]

    @classmethod
    def future(cls, player):
        """Names an entry of an owner that this player's shard will not have for a long time."""
        shard, dot = as_of.parse(cls.payer.grant(player, 1)["write"]["asOf"])
        return as_of.token(shard, dot | {"epoch": dot["epoch"] + 10**6})

    def metric(self, name):
        return self.cluster.router.metrics()[f"holdfast_router_{name}"]

    def calm(self):
        wait_for("calls to end", lambda: self.metric("in_flight") == 0, 60)

    def setUp(self):
        self.raws = []
        self.calm()

    def tearDown(self):
        for raw in self.raws:
            raw.close()
        self.calm()

    def h2(self, settings=b""):
        raw = Raw(self.cluster.port, source="127.0.0.2")
        self.raws.append(raw)
        raw.send(PREFACE + frame(SETTINGS, payload=settings))
        return raw

    def read_of_the_future(self, number):
        return {"playerId": self.players[number % 8], "read": {"atLeast": self.ahead[number % 8]}}

    def wait_for_the_future(self, key, calls):
        for number in range(calls):
            if number % STREAMS == 0:
                raw = self.h2()
            stream = 2 * (number % STREAMS) + 1
            raw.send(frame(HEADERS, END_HEADERS, stream, json_headers(BALANCES, key)) + frame(
                DATA, END_STREAM, stream, json.dumps(self.read_of_the_future(number)).encode()))
        settled = [-1]

        def is_settled():
            before, settled[0] = settled[0], self.metric("in_flight")
            time.sleep(0.2)
            return settled[0] == before and before > 0
        wait_for("the attacker's calls to have come", is_settled, PATIENCE_S)
        return settled[0]

    def others_are_served(self):
        """Reads and writes of two other keys, not one of which is refused."""
        reader = Client(self.cluster.endpoint, self.modest)
        for number in range(CALLS):
            self.payer.grant(f"other-{number}", 1)
            reader.balance(f"other-{number}")

    def test_a_key_holds_its_share_of_places(self):
        held = self.wait_for_the_future(self.greedy, 3 * STREAMS)
        self.others_are_served()
        self.assertLessEqual(held, ORDINARY * SHARE // 100)
        self.assertGreater(self.metric("callers_throttled_total"), 0)
        with self.assertRaises(RpcError) as caught:
            Client(self.cluster.endpoint, self.greedy).balance("p")
        error = caught.exception
        self.assertEqual((error.code, error.status, error.outcome, error.action, error.limit),
                         ("THROTTLED", 429, "NOT_APPLIED", "RETRY_SAME", str(ORDINARY * SHARE // 100)))
        self.assertGreater(error.retry_after_ms, 0)
        for raw in self.raws:
            raw.close()
        self.calm()  # A caller that goes gives its places back.
        Client(self.cluster.endpoint, self.greedy).balance("p")

    def test_a_key_registers_servers_a_few_at_a_time(self):
        """Each costs a lease in etcd, and an entry in every shard's log when it lapses."""
        crowd, refused, begun = Client(self.cluster.endpoint, self.crowd), [], time.monotonic()
        for number in range(200):
            try:
                crowd.register(f"crowd-{number}")
            except RpcError as error:
                refused.append(error)
        most = REGISTER_RATE * (2 + time.monotonic() - begun)
        self.assertGreaterEqual(len(refused), 200 - most)
        self.assertEqual({(error.code, error.limit) for error in refused},
                         {("THROTTLED", f"at most {REGISTER_RATE} a second")})
        self.assertTrue(all(error.retry_after_ms > 0 for error in refused))
        self.payer.register("another's")

    # Native clients.

    def link(self, name):
        certs = self.cluster.certs
        link = Link(self.native_port, certs / "ca.crt", (certs / f"{name}.crt", certs / f"{name}.key"))
        link.hello(CLIENT, name)
        self.assertTrue(link.admitted())
        return link

    def native_read(self, number):
        player, token = self.players[number % 8].encode(), self.ahead[number % 8].encode()
        read = b"\x22" + bytes([len(token)]) + token
        return (b"\x0a" + bytes([len(player)]) + player + b"\x12" + bytes([len(read)]) + read)

    def test_a_native_client_holds_its_share_of_places(self):
        number = methods()["GET_BALANCES"][0]
        with self.link("glutton") as link:
            for call in range(IN_FLIGHT_MAX):
                link.send(REQUEST, number, call + 1, self.native_read(call), WAIT_MS)
            time.sleep(1)
            self.others_are_served()
            held = self.metric("in_flight")
            self.assertGreater(held, 100, "the attack did nothing")
            self.assertLessEqual(held, ORDINARY * SHARE // 100)
            with self.link("modest") as other:
                self.assertEqual(other.ask(number, 1, b"\x0a\x01p")[0], 0)

    def test_a_native_client_sends_no_more_than_its_method_takes(self):
        known, filler = methods(), b"\xfa\x3f" + b"\x80\x80\x40" + b"u" * MIB  # Field 127.
        with self.link("glutton") as link:
            status, body = link.ask(known["GET_BALANCES"][0], 1, b"\x0a\x01p" + filler)
            self.assertEqual(status, 1)
            self.assertIn(b"4096", body)
            # Where so much is welcome, it counts in a budget while it is under way.
            before = self.cluster.router.resident_bytes()
            batch = known["BATCH_GET_PROFILE"][0]
            element = self.native_read(0) + filler
            request = b"\x0a" + as_of.compact(len(element)) + element
            for call in range(2, 34):
                link.send(REQUEST, batch, call, request, WAIT_MS)
            answers = []
            while len(answers) < 30:  # All but the first, which waits.
                kind, _, _, status, answer = link.receive()
                if kind == RESPONSE:
                    answers.append((status, b"bodies" in answer))
            self.assertEqual(set(answers), {(1, True)})
            self.others_are_served()
            self.assertLess(self.cluster.router.resident_bytes() - before, 5 * NATIVE_BODIES)

    # Large answers.

    def big_profile(self, name):
        player = f"{name}-{uuid7()}"
        for section in range(4):
            self.payer.update(player, None, {"name": f"s{section}", "replace": json.dumps("x" * 240_000)})
        return player

    def test_a_key_leaves_room_for_the_large_answers_of_others(self):
        greedy, modest = self.big_profile("greedy"), self.big_profile("modest")
        reader = Client(self.cluster.endpoint, self.modest)
        request = post("/holdfast.v1.ProfileService/GetProfile", {"playerId": greedy, "include": ["sections"]},
                       f"Authorization: Bearer {self.greedy}")
        Client(self.cluster.endpoint, self.greedy).profile(greedy, include=["sections"])
        refused, calls = [], 0
        attack, end = Flood(self.cluster.port, request, 600, True), time.monotonic() + ATTACK_S
        while time.monotonic() < end:
            calls += 1
            try:
                reader.profile(modest, include=["sections"])
            except RpcError as error:
                refused.append(str(error))
            time.sleep(0.01)
        told = attack.wait()[1]
        self.assertGreater(told.get(429, 0), 10)
        print(f"{calls} large reads of another key, {len(refused)} refused; the attacker: {told}", flush=True)
        self.assertGreater(calls, 20)
        self.assertLessEqual(len(refused), calls // 20, refused[-1:])

    # Answers without a key.

    def test_documents_without_a_key_leave_room_for_answers(self):
        """/openapi.json by streams without a window, by a crowd that reads nothing."""
        big = "big-" + uuid7()
        self.payer.update(big, None, {"name": "a", "replace": json.dumps("x" * 200_000)})
        reader = Client(self.cluster.endpoint, self.modest)
        reader.profile(big, include=["sections"])
        ask = b"".join(field(*pair) for pair in (
            (b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"localhost"),
            (b":path", b"/openapi.json")))
        stop = multiprocessing.Event()

        def crowd():
            raws = []
            while not stop.is_set():
                raw = Raw(self.cluster.port, source="127.0.0.2")
                raw.send(PREFACE + frame(SETTINGS, payload=b"\0\4\0\0\0\0") + b"".join(
                    frame(HEADERS, END_HEADERS | END_STREAM, stream, ask) for stream in range(1, 41, 2)))
                raws = [*raws[-200:], raw]
                time.sleep(0.01)
        attacker = multiprocessing.get_context("fork").Process(target=crowd)
        attacker.start()
        try:
            refused, end = [], time.monotonic() + 6
            peak = 0
            while time.monotonic() < end:
                peak = max(peak, self.metric("answers_bytes"))
                try:
                    reader.profile(big, include=["sections"])
                except RpcError as error:
                    refused.append(str(error))
                time.sleep(0.01)
        finally:
            stop.set()
            attacker.join(20)
        print(f"documents held {peak / MIB:.1f} MiB of {ANSWERS_MAX / MIB:.0f}", flush=True)
        self.assertEqual(refused, [])
        self.assertLess(peak, ANSWERS_MAX / 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
