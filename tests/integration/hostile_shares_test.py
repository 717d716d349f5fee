"""
One key through two routers: each of them gives it its share, and a node sees the sum. A key has its
share of a node, too, over all routers; other keys find places and room there all the while. And
what routers log of native clients: under which name, and when they do not read.
"""

import json
import re
import signal
import time
import unittest

import as_of
from client import Client, RpcError, uuid7
from cluster import Cluster, ClusterTest, free_port, wait_for
from hostile_answers_test import Flood
from hostile_places_test import BALANCES, json_headers
from hostile import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, Raw, frame, issue_keys, post
from native import CLIENT, REQUEST, Link, methods

MIB = 1 << 20
CALLS_MAX = 200
ORDINARY = CALLS_MAX * 85 // 100
PLAYERS = "/holdfast.v1.AdminService/ListPlayers"
SHARE = ORDINARY * 50 // 100
STREAMS = 120  # On each router; together more than SHARE.
ANSWERS_MAX = 64 * MIB
ROOM = ANSWERS_MAX * 3 // 4 // 2
SECTIONS, SECTION_BYTES = 5, 240_000
PATIENCE_S = 60


class HostileShares(ClusterTest):
    @classmethod
    def plan(cls):
        cls.native_port = free_port()
        cls.ports = [None, free_port()]
        router = {"access": "keys", "answers-size-max": ANSWERS_MAX}
        cluster = Cluster(nodes=1, shards=4, options={
            "node": {"answers-size-max": ANSWERS_MAX, "calls-max": CALLS_MAX},
            "router": router | {"native-listen": f"127.0.0.1:{cls.native_port}"}})
        cluster.make_certs("client/glutton?scopes=game+read", "client/modest?scopes=read")
        cls.second = cluster.plan("router", "router-b", router | {"listen": f"127.0.0.1:{cls.ports[1]}"})
        processes = cluster.processes
        cluster.processes = lambda: [cls.second, *processes()]
        return cluster

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ports[0] = cls.cluster.port
        wait_for("the second router to be ready", cls.second.ready)
        cls.writer, cls.greedy, cls.modest = issue_keys(
            cls.cluster, ("writer", "payments,game"), ("greedy", "read"), ("modest", "read"))
        for key in (cls.writer, cls.greedy, cls.modest):
            wait_for("the second router to know the keys", lambda key=key: cls.knows(cls.ports[1], key))
        cls.payer = Client(cls.cluster.endpoint, cls.writer)
        cls.player = f"future-{uuid7()}"
        shard, dot = as_of.parse(cls.payer.grant(cls.player, 1)["write"]["asOf"])
        cls.ahead = as_of.token(shard, dot | {"epoch": dot["epoch"] + 10**6})
        cls.big = f"big-{uuid7()}"
        for section in range(SECTIONS):
            cls.payer.update(cls.big, None, {"name": f"s{section}", "replace": json.dumps("x" * SECTION_BYTES)})

    @staticmethod
    def knows(port, key):
        return Client(f"http://127.0.0.1:{port}", key).post(BALANCES, '{"playerId":"stranger"}')[0] != 401

    def throttled(self, share):
        return self.cluster.nodes[0].metrics()[f'holdfast_node_callers_throttled_total{{share="{share}"}}']

    def in_flight(self):
        return sum(router.metrics()["holdfast_router_in_flight"] for router in (self.cluster.router, self.second))

    def others_are_served(self):
        payer = Client(self.cluster.endpoint, self.writer)  # Routers close connections that rest for a minute.
        for port in self.ports:
            reader = Client(f"http://127.0.0.1:{port}", self.modest)
            for number in range(20):
                payer.grant(f"other-{number}", 1)
                reader.balance(f"other-{number}")

    def wait_for_the_future(self, port):
        """A key's reads of what has not happened yet."""
        raw = Raw(port)
        self.addCleanup(raw.close)
        raw.send(PREFACE + frame(SETTINGS))
        body = json.dumps({"playerId": self.player, "read": {"atLeast": self.ahead}}).encode()
        for number in range(STREAMS):
            stream = 2 * number + 1
            raw.send(frame(HEADERS, END_HEADERS, stream, json_headers(BALANCES, self.greedy, 60_000)) +
                     frame(DATA, END_STREAM, stream, body))
        return raw

    def test_a_key_holds_its_share_of_a_node_s_calls(self):
        raws = [self.wait_for_the_future(port) for port in self.ports]
        wait_for("the node to refuse what is above the share",
                 lambda: self.throttled("calls") >= 2 * STREAMS - SHARE, PATIENCE_S)
        wait_for("no more than its share to wait", lambda: self.in_flight() <= SHARE, PATIENCE_S)
        self.others_are_served()
        for port in self.ports:
            with self.assertRaises(RpcError) as caught:
                Client(f"http://127.0.0.1:{port}", self.greedy).balance("p")
            error = caught.exception
            self.assertEqual((error.code, error.status, error.outcome, error.action, error.limit),
                             ("THROTTLED", 429, "NOT_APPLIED", "RETRY_SAME", str(SHARE)))
            self.assertIn("node", error.message)
            self.assertGreater(error.retry_after_ms, 0)
        for raw in raws:
            raw.close()
        wait_for("calls to end", lambda: self.in_flight() == 0, PATIENCE_S)
        Client(self.cluster.endpoint, self.greedy).balance("p")

    def ask_for_lists(self, port):
        """A key's reads that name a shard."""
        raw = Raw(port)
        self.addCleanup(raw.close)
        raw.send(PREFACE + frame(SETTINGS))
        for number in range(STREAMS):
            stream = 2 * number + 1
            raw.send(frame(HEADERS, END_HEADERS, stream, json_headers(PLAYERS, self.greedy, 60_000)) +
                     frame(DATA, END_STREAM, stream, b'{"shard":1}'))
        return raw

    def test_reads_of_shards_count_for_the_share_of_their_key(self):
        """So many reach a node at once when it was away for a moment."""
        node, before = self.cluster.nodes[0], self.throttled("calls")

        def refused_by_the_node():
            node.signal(signal.SIGSTOP)
            raws = [self.ask_for_lists(port) for port in self.ports]
            wait_for("all to be on their way", lambda: self.in_flight() == 2 * STREAMS, PATIENCE_S)
            node.signal(signal.SIGCONT)
            wait_for("all to be answered", lambda: self.in_flight() == 0, PATIENCE_S)
            for raw in raws:
                raw.close()
            return self.throttled("calls") > before
        wait_for("the node to refuse what is above the share", refused_by_the_node, 2 * PATIENCE_S)
        self.others_are_served()

    def test_a_key_holds_its_share_of_a_node_s_room_for_answers(self):
        request = post("/holdfast.v1.ProfileService/GetProfile", {"playerId": self.big, "include": ["sections"]},
                       f"Authorization: Bearer {self.greedy}")
        told = {}

        def refused_by_the_node():
            for flood in [Flood(port, request, 300, True) for port in self.ports]:
                for status, count in flood.wait()[1].items():
                    told[status] = told.get(status, 0) + count
            return self.throttled("answers") > 0
        wait_for("the node to refuse what is above the share", refused_by_the_node, 4 * PATIENCE_S)
        self.assertLessEqual(set(told), {200, 429})
        self.assertGreater(told[200], 0)
        self.assertEqual(self.client_profile(self.modest), SECTIONS)
        wait_for("all answers to have gone", lambda: self.cluster.nodes[0].metrics()[
            "holdfast_node_answers_bytes"] == 0, PATIENCE_S)
        self.assertEqual(self.client_profile(self.greedy), SECTIONS)

    def client_profile(self, key):
        return len(Client(self.cluster.endpoint, key).profile(self.big, include=["sections"])["sections"])

    # Native clients.

    def link(self, name):
        certs = self.cluster.certs
        link = Link(self.native_port, certs / "ca.crt", (certs / f"{name}.crt", certs / f"{name}.key"))
        link.hello(CLIENT, name)
        self.assertTrue(link.admitted())
        return link

    def router_log(self, event):
        return [line for line in self.cluster.router.log().splitlines() if re.search(rf"\b{event}\b", line)]

    def test_a_refused_native_client_is_named_in_the_log(self):
        with self.link("modest") as link:
            status, _ = link.ask(methods()["GRANT"][0], 1, b"\x0a\x01p\x12\x01o\x22\x0fsystem:payments")
            self.assertEqual(status, 1)
        wait_for("the refusal to be logged", lambda: any(
            "cert:modest" in line for line in self.router_log("request.refused")), PATIENCE_S)

    def test_a_native_client_that_does_not_read_is_told_of_once(self):
        """What no longer fits its link is answered as unknown; the router says so in one line a minute."""
        player = self.big.encode()
        request = b"\x0a" + bytes([len(player)]) + player
        number, begun = methods()["GET_PROFILE"][0], time.monotonic()
        with self.link("glutton") as link:
            sent = [0]

            def not_answered():
                for _ in range(4):  # Fewer than its share at once, so that none is refused for that.
                    sent[0] += 1
                    link.send(REQUEST, number, sent[0], request, 60_000)
                return self.router_log("native.not_answered")
            wait_for("the link to be full", not_answered, PATIENCE_S)
            self.others_are_served()
            lines = self.router_log("native.not_answered")
            self.assertLessEqual(len(lines), 1 + (time.monotonic() - begun) // 60)
            self.assertRegex(lines[0], rf"method={number}\b.*bytes=1[0-9]{{6}}\b")
        self.assertTrue(self.cluster.router.running())


if __name__ == "__main__":
    unittest.main(verbosity=2)
