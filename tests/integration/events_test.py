"""
Events over real processes: each change once and in order per shard, also while nodes are killed; filters; what is no
longer kept is told as a gap; cursors that no answer gave are refused.
"""

import base64
import collections
import concurrent.futures
import json
import subprocess
import threading
import unittest

from client import RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for

SHARDS = 8


def lasting(events):
    """Without the ends of sessions: a server that says nothing loses its own, sooner or later."""
    return [event for event in events if event["kind"] != "session" or event["session"].get("started")]


class EventCalls:
    """What the tests below ask of a cluster."""

    def poll(self, cursor="", **fields):
        return self.client.call("EventService/Poll", {"cursor": cursor} | fields)

    def read(self, cursor="", **fields):
        """All that there is after a cursor: events, gaps, the cursor after them."""
        events, gaps, more = [], [], True
        while more:
            page = wait_for("all shards to tell their events", lambda at=cursor: self.whole(at, **fields))
            events += page.get("events", [])
            gaps += page.get("gaps", [])
            cursor, more = page["nextCursor"], page.get("more", False)
        return events, gaps, cursor

    def whole(self, cursor, **fields):
        page = self.poll(cursor, **fields)
        return None if page.get("unreachableShards") else page

    def in_order(self, events):
        """Each event once, and a shard's in their order."""
        last = collections.defaultdict(str)
        for event in events:
            shard = event.get("shard", 0)
            self.assertGreater(event["seq"], last[shard], event)
            last[shard] = event["seq"]

    def define(self, kind, name, body):
        def made():
            return self.client.settle("DefinitionService/PutDefinition", {
                "name": name, "body": {kind: body}, "opId": uuid7(), "waitMs": 5000})["definition"].get("inForce")
        wait_for(f"{kind} {name} to be in force", made)


class EventsTest(EventCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def test_a_change_is_told_as_soon_as_it_is_answered(self):
        self.define("collection", "favorites", {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"})
        _, _, cursor = self.read()
        op_id = uuid7()
        self.client.grant("told", 5, op_id)
        self.client.settle("FavoritesService/Favorite", {"playerId": "told", "opId": uuid7(), "targetId": "pong"})
        server = self.client.register("one")
        token = self.client.start("told", server)["token"]
        self.client.end("told", token)
        events, gaps, cursor = self.read(cursor)
        self.assertEqual(gaps, [])
        self.assertEqual([event["kind"] for event in events], ["ledger", "favorite", "session", "session"])
        self.assertEqual({event["entity"] for event in events}, {"player:told"})
        self.assertEqual(events[0]["opId"], op_id)
        self.assertEqual(events[0]["ledger"]["changes"][0]["currency"], "gold")
        self.assertEqual(events[1]["favorite"]["targetId"], "pong")
        self.assertEqual([event["session"].get("started", False) for event in events[2:]], [True, False])
        self.in_order(events)
        again, _, _ = self.read(cursor)
        self.assertEqual(again, [])

    def test_filters_by_kind_and_by_prefix(self):
        _, _, cursor = self.read()
        self.define("currency", "pearls", {"maxBalance": 1000})
        for player in ("filter-a1", "filter-a2", "filter-b1"):
            self.client.grant(player, 1)
            self.client.start(player, self.client.register(player))
        told = lasting(self.read(cursor, entityPrefix="player:filter-a")[0])
        self.assertEqual(collections.Counter(event["entity"] for event in told),
                         {"player:filter-a1": 2, "player:filter-a2": 2})
        told = lasting(self.read(cursor, kinds=["EVENT_KIND_SESSION"])[0])
        self.assertEqual(len(told), 3)
        told = self.read(cursor, kinds=["EVENT_KIND_DEFINITION"])[0]
        self.assertEqual([event["entity"] for event in told], ["definition:currency/pearls"])
        told = lasting(self.read(cursor, kinds=["EVENT_KIND_LEDGER", "EVENT_KIND_SESSION"],
                                 entityPrefix="player:filter-b1")[0])
        self.assertEqual(len(told), 2)
        told = self.read(cursor, entity="player:filter-a1")[0]
        self.assertEqual([event["entity"] for event in told], ["player:filter-a1"] * 2)
        self.assertEqual(self.read(cursor, entity="player:filter-a")[0], [])
        told = self.read(cursor, entity="definition:currency/pearls")[0]
        self.assertEqual([event["kind"] for event in told], ["definition"])
        shown = subprocess.run([BIN / "holdfast", "events", "tail", "--kind", "session", "--prefix", "player:filter-",
                                "--endpoint", self.cluster.endpoint, "-o", "json"],
                               capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertEqual(len(lasting([json.loads(line) for line in shown.splitlines()])), 3)

    def test_pages_go_round_the_shards_and_leave_nothing_out(self):
        _, _, start = self.read()
        for number in range(60):
            self.client.grant(f"page{number}", 1)
        kinds = ["EVENT_KIND_LEDGER"]  # Sessions of other tests may end now.
        whole, _, _ = self.read(start, pageSize=1000, kinds=kinds)
        self.assertEqual(len(whole), 60)
        for size in (1, 3, 7, 20):
            told, gaps, _ = self.read(start, pageSize=size, kinds=kinds)
            self.in_order(told)
            self.assertEqual(gaps, [])
            self.assertEqual(sorted(event["seq"] for event in told), sorted(event["seq"] for event in whole))

    def test_bad_requests_are_refused(self):
        cursor = self.poll()["nextCursor"]
        raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        raw[len(raw) // 2] ^= 1
        forged = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
        for bad in (forged, cursor[:-4], "nonsense", "A" * 400):
            error = self.refused("INVALID_ARGUMENT", self.poll, bad)
            self.assertEqual(error.field, "cursor")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, pageSize=1001).field, "page_size")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, entityPrefix="x" * 129).field, "entity_prefix")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, entity="filter").field, "entity")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, entity="player:a", entityPrefix="player:").field,
                         "entity")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, kinds=["EVENT_KIND_UNSPECIFIED"]).field, "kinds[0]")


class AcrossFailures(EventCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def write(self, player, stop):
        done = 0
        while not stop.is_set():
            self.client.settle("LedgerService/Grant", {
                "playerId": player, "opId": uuid7(), "authority": "unheld", "currencies": {"gold": 1}})
            done += 1
        return done

    def follow(self, stop, events, cursor):
        """A reader that goes on, whatever fails."""
        while True:
            last = stop.is_set()
            try:
                page = self.poll(cursor, pageSize=50)
            except (RpcError, Unanswered):
                continue
            self.assertEqual(page.get("gaps", []), [])
            events += page.get("events", [])
            cursor = page["nextCursor"]
            if last and not page.get("more") and not page.get("unreachableShards"):
                return

    def test_each_committed_change_once_and_in_order_while_owners_die(self):
        stop, ended, events = threading.Event(), threading.Event(), []
        players = [f"torn{each}" for each in range(6)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            reader = pool.submit(self.follow, ended, events, "")
            writers = [pool.submit(self.write, player, stop) for player in players]
            try:
                for player in players[:2]:
                    before = len(events)
                    wait_for("events", lambda seen=before: len(events) > seen + 100)
                    owner, _ = self.cluster.owner_of(player)
                    owner.kill()
                    before = len(events)
                    wait_for("events of the new owners", lambda seen=before: len(events) > seen + 100)
                    owner.start()
                    wait_for("all shards to serve", self.cluster.all_serving)
            finally:
                stop.set()
                written = [each.result() for each in writers]
                ended.set()
            reader.result()
        self.in_order(events)
        for player, count in zip(players, written):
            told = [int(event["ledger"]["seq"]) for event in events if event["entity"] == f"player:{player}"]
            self.assertEqual(told, [int(entry["seq"]) for entry in self.client.entries(player)], player)
            self.assertGreaterEqual(len(told), count)


class Retention(EventCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, coordinators=1, shards=1)

    def test_what_is_no_longer_kept_is_a_gap(self):
        self.define("event_retention", "events", {"keepMs": 86400000, "eventsMax": 1000})
        _, _, start = self.read()
        for _ in range(3):
            answer = self.client.call("LedgerService/BatchGrant", {
                "authority": "unheld", "requests": [
                    {"playerId": f"many{each}", "opId": uuid7(), "currencies": {"gold": 1}} for each in range(500)]})
            self.assertEqual(answer.get("failed", 0), 0)

        def trimmed():
            events, gaps, _ = self.read(start, pageSize=1000)
            return events if gaps and len(events) <= 1000 else None
        events = wait_for("the oldest events to go", trimmed)
        self.in_order(events)
        self.assertEqual(len(events), 1000)
        told, gaps, cursor = self.read("", pageSize=1000)
        self.assertEqual(gaps, [])  # A reader without a cursor was promised no more.
        self.assertEqual([event["seq"] for event in told], [event["seq"] for event in events])
        self.assertEqual(self.read(cursor)[:2], ([], []))


if __name__ == "__main__":
    unittest.main()
