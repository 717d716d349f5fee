"""
Events as a stream: as they are committed, each once and in order while owners die, through slow readers and a
stopping router; what retention took from a reader is told as a gap.
"""

import collections
import concurrent.futures
import json
import pathlib
import signal
import struct
import subprocess
import tempfile
import threading
import unittest

from client import RpcError, uuid7
from cluster import BIN, ROOT, Cluster, ClusterTest, wait_for
from python_env import python_of
from stream import Stream

SHARDS = 8
STREAMS_EACH = 16  # Of one key, or of one address where no key is asked for.


class StreamCalls:
    def subscribe(self, cursor="", reads=True, buffer_bytes=0, **fields):
        stream = Stream(self.cluster, "EventService/Subscribe", {"cursor": cursor} | fields,
                        reads=reads, buffer_bytes=buffer_bytes)
        self.addCleanup(lambda: stream.thread.is_alive() and stream.close())
        return stream

    def grant(self, player):
        op_id = uuid7()
        self.client.settle("LedgerService/Grant", {
            "playerId": player, "opId": op_id, "authority": "unheld", "currencies": {"gold": 1}})
        return op_id

    def arrival(self, stream, op_id):
        return wait_for(f"the event of {op_id}", lambda: next(
            (event for event in stream.told("events") if event.get("opId") == op_id), None), every_s=0.005)

    def in_order(self, events):
        """Each event once, and a shard's in their order."""
        last = collections.defaultdict(str)
        for event in events:
            shard = event.get("shard", 0)
            self.assertGreater(event["seq"], last[shard], event)
            last[shard] = event["seq"]


class EventsStream(StreamCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def streams_open(self):
        return self.cluster.router.metrics()["holdfast_router_event_streams"]

    def test_events_come_as_they_are_committed_and_heartbeats_between(self):
        stream = self.subscribe()
        wait_for("a first message", lambda: stream.messages)
        for number in range(20):
            self.arrival(stream, self.grant(f"come{number % 4}"))
        self.in_order(stream.told("events"))
        self.assertEqual(stream.told("gaps"), [])
        before = len(stream.messages)
        wait_for("a heartbeat", lambda: len(stream.messages) > before)
        self.assertGreaterEqual(self.streams_open(), 1)
        stream.close()
        wait_for("the router to notice", lambda: self.streams_open() == 0)

    def test_a_cursor_goes_on_where_a_stream_ended_and_is_that_of_poll(self):
        first = self.subscribe(entity="player:goes-on")
        self.arrival(first, self.grant("goes-on"))
        first.close()
        missed = [self.grant("goes-on") for _ in range(5)]
        second = self.subscribe(cursor=first.cursor(), entity="player:goes-on")
        for op_id in missed:
            self.arrival(second, op_id)
        events = first.told("events") + second.told("events")
        self.assertEqual([int(event["ledger"]["seq"]) for event in events], list(range(1, 7)))
        page = self.client.call("EventService/Poll", {"cursor": second.cursor(), "entity": "player:goes-on"})
        self.assertEqual(page.get("events", []), [])

    def test_filters(self):
        stream = self.subscribe(kinds=["EVENT_KIND_SESSION"], entityPrefix="player:sift")
        self.grant("sift-1")
        server = self.client.register("one")
        for player in ("other-1", "sift-1", "sift-2"):
            self.client.start(player, server)
        # A server that says nothing loses its sessions, sooner or later: only their beginnings are counted.
        wait_for("two sessions", lambda: sum(
            event["session"].get("started", False) for event in stream.told("events")) == 2)
        self.assertEqual({event["entity"] for event in stream.told("events")}, {"player:sift-1", "player:sift-2"})

    def test_bad_requests_are_refused(self):
        for request, field in (({"cursor": "nonsense"}, "cursor"), ({"heartbeatMs": 10}, "heartbeat_ms"),
                               ({"entity": "pony"}, "entity"), ({"kinds": [0]}, "kinds[0]")):
            message = json.dumps(request).encode()
            status, _, data = self.client.post(
                "/holdfast.v1.EventService/Subscribe", struct.pack(">BI", 0, len(message)) + message,
                {"content-type": "application/connect+json"})
            self.assertEqual(status, 200)  # As the protocol has it: the end tells.
            self.assertIn(b'"invalid_argument"', data)
            self.assertIn(field.encode(), data)
        with self.assertRaises(RpcError) as caught:  # Not a unary method.
            self.client.call("EventService/Subscribe", {})
        self.assertEqual(caught.exception.status, 415)

    def test_one_caller_has_so_many_streams(self):
        wait_for("the streams of other tests to be gone", lambda: self.streams_open() == 0)
        streams = [self.subscribe() for _ in range(STREAMS_EACH)]
        for stream in streams:
            wait_for("a first message", lambda at=stream: at.messages)
        refused = self.subscribe()
        wait_for("the refusal", lambda: refused.end)
        self.assertEqual(refused.end["error"]["code"], "resource_exhausted")
        for stream in streams:
            stream.close()


class AcrossFailures(StreamCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def write(self, player, stop):
        done = 0
        while not stop.is_set():
            self.grant(player)
            done += 1
        return done

    def kill_owners(self, players, count):
        """Two of them, one after the other; `count` says how many events the reader has."""
        for player in players[:2]:
            before = count()
            wait_for("events", lambda seen=before: count() > seen + 50)
            owner, _ = self.cluster.owner_of(player)
            owner.kill()
            before = count()
            wait_for("events of the new owners", lambda seen=before: count() > seen + 50)
            owner.start()
            wait_for("all shards to serve", self.cluster.all_serving)

    def follow(self, players, count, is_open):
        """Writes and kills; returns how many grants each player got."""
        stop = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(len(players)) as pool:
            writers = [pool.submit(self.write, player, stop) for player in players]
            try:
                self.kill_owners(players, count)
            finally:
                stop.set()
                written = [each.result() for each in writers]
        self.assertTrue(is_open())
        return written

    def check(self, events, players, written):
        """All that the ledgers have, each once and in order."""
        self.in_order(events)
        for player, least in zip(players, written):
            told = [int(event["ledger"]["seq"]) for event in events if event["entity"] == f"player:{player}"]
            self.assertEqual(told, [int(entry["seq"]) for entry in self.client.entries(player)], player)
            self.assertGreaterEqual(len(told), least)

    def test_one_stream_tells_each_change_once_and_in_order_while_owners_die(self):
        stream = self.subscribe(entityPrefix="player:torn-")
        players = [f"torn-{each}" for each in range(6)]
        written = self.follow(players, lambda: len(stream.told("events")), lambda: stream.end is None)
        last = [self.grant(player) for player in players]
        for op_id in last:
            self.arrival(stream, op_id)
        self.assertEqual(stream.told("gaps"), [])
        self.check(stream.told("events"), players, written)

    def stock_client(self, prefix):
        """Python's grpcio, as a program of its own; its lines, as they come."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        descriptors = pathlib.Path(folder.name) / "holdfast.pb"
        subprocess.run(["protoc", f"--proto_path={ROOT / 'idl'}", "--include_imports",
                        f"--descriptor_set_out={descriptors}", "holdfast/v1/events.proto"], check=True)
        client = subprocess.Popen([python_of(pathlib.Path(__file__).parent), ROOT / "tests/conformance/grpcio_events.py", descriptors,
                                   f"127.0.0.1:{self.cluster.port}", prefix],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(json.loads(line) for line in client.stdout), daemon=True)
        reader.start()
        self.addCleanup(client.stdout.close)
        self.addCleanup(reader.join)
        self.addCleanup(client.wait)
        self.addCleanup(client.stdin.close)
        return lines

    def test_grpcio_hears_each_change_once_and_in_order_while_owners_die(self):
        lines = self.stock_client("player:rent-")
        wait_for("a first message", lambda: lines)

        def events():
            return [event for line in list(lines) for event in line.get("events", [])]
        players = [f"rent-{each}" for each in range(4)]
        written = self.follow(players, lambda: len(events()), lambda: all("end" not in line for line in lines))
        wait_for("all of them", lambda: len(events()) >= sum(len(self.client.entries(player)) for player in players))
        self.assertEqual(sum(line.get("gaps", 0) for line in lines), 0)
        self.check([event | {"ledger": {"seq": event["ledgerSeq"]}} for event in events()], players, written)

    def test_the_command_line_follows_through_a_router_that_was_away(self):
        follower = subprocess.Popen(
            [BIN / "holdfast", "events", "tail", "--follow", "--entity", "player:line", "-o", "json",
             "--endpoint", self.cluster.endpoint], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(iter(follower.stdout.readline, "")), daemon=True)
        reader.start()
        self.addCleanup(follower.stdout.close)
        self.addCleanup(reader.join)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        first = self.grant("line")
        wait_for("the line", lambda: any(first in line for line in list(lines)))
        self.cluster.router.kill()
        self.cluster.router.start()
        self.cluster.wait_ready()
        second = self.grant("line")
        wait_for("the other line", lambda: any(second in line for line in list(lines)))
        self.assertEqual([json.loads(line)["opId"] for line in lines], [first, second])

    def test_a_stopping_router_ends_streams_with_a_word(self):
        stream = self.subscribe(entity="player:stops")
        self.arrival(stream, self.grant("stops"))
        self.cluster.router.signal(signal.SIGTERM)
        wait_for("the end", lambda: stream.end is not None)
        self.assertEqual(self.cluster.router.wait_exit(), 0)
        self.cluster.router.start()
        self.cluster.wait_ready()
        self.assertEqual(stream.end.get("error", {}).get("code"), "unavailable", stream.end)
        op_id = self.grant("stops")
        again = self.subscribe(cursor=stream.cursor(), entity="player:stops")
        self.arrival(again, op_id)
        told = stream.told("events") + again.told("events")
        self.assertEqual([int(event["ledger"]["seq"]) for event in told], [1, 2])


class SlowReader(StreamCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, coordinators=1, shards=1)

    def keep(self, events):
        def made():
            return self.client.settle("DefinitionService/PutDefinition", {
                "name": "events", "body": {"event_retention": {"keepMs": 86400000, "eventsMax": events}},
                "opId": uuid7(), "waitMs": 5000})["definition"].get("inForce")
        wait_for("the retention to be in force", made)

    def write(self, batches):
        for _ in range(batches):
            answer = self.client.call("LedgerService/BatchGrant", {"authority": "unheld", "requests": [
                {"playerId": f"slow-{each}", "opId": uuid7(), "currencies": {"gold": 1}} for each in range(500)]})
            self.assertEqual(answer.get("failed", 0), 0)

    def kept(self):
        return self.cluster.nodes[0].metrics()["holdfast_node_events"]

    def told_until(self, stream, op_id):
        """What a stream tells up to that event; it goes on with its cursor where it was closed for its slowness."""
        while True:
            wait_for("the last event, or the end", lambda: stream.end is not None or any(
                event.get("opId") == op_id for event in stream.told("events")))
            yield stream
            if any(event.get("opId") == op_id for event in stream.told("events")):
                return
            stream = self.subscribe(cursor=stream.cursor())

    def test_a_slow_reader_is_told_of_what_it_missed(self):
        self.keep(1000)
        stream = self.subscribe(reads=False, buffer_bytes=4096)
        self.write(50)  # More than sockets and router hold for it.
        wait_for("the oldest to go", lambda: self.kept() < 2000)
        stream.thread.start()
        streams = list(self.told_until(stream, self.grant("slow-0")))
        events = [event for each in streams for event in each.told("events")]
        self.in_order(events)
        self.assertLess(len(events), 25001)
        self.assertTrue([gap for each in streams for gap in each.told("gaps")])


if __name__ == "__main__":
    unittest.main()
