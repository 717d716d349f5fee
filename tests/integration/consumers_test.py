"""
Consumers of events over real processes: where they begin, who may move them, what is told of what retention removed, and
that no event is missed and no commit is undone while their programs and the nodes are killed.
"""

import base64
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading
import unittest

from client import RpcError, Unanswered, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from events_test import EventCalls

SHARDS = 8
HERE = pathlib.Path(__file__).parent


def number(data):
    """One compact number, and the rest: seven bits a byte, the lowest first."""
    value, shift = 0, 0
    for at, byte in enumerate(data):
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, data[at + 1:]
        shift += 7
    raise AssertionError("a number that does not end")


def places(cursor):
    """By shard (epoch, counter, place), as runtime/cluster/event_cursor.c writes them; None: nothing is known."""
    if not cursor:
        return [None] * SHARDS
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    counts, data = data[0] == 2, data[1:]
    shards, data = number(data)
    _, data = number(data)
    if counts:
        _, data = number(data)
    told = []
    for _ in range(shards):
        form, data = data[0], data[1:]
        if form == 0:
            told.append(None)
            continue
        epoch, data = number(data[4:])
        counter, data = number(data)
        place, data = number(data)
        told.append((epoch, counter, (place - 1) % (1 << 32)))
        if form == 2:
            _, data = number(data)
            _, data = number(data)
    return told


class ConsumerCalls(EventCalls):
    def create(self, name, **fields):
        return self.client.call("EventService/CreateConsumer", {"consumer": name, "opId": uuid7()} | fields)["consumer"]

    def commit(self, name, version, cursor, **fields):
        return self.client.call("EventService/CommitConsumer", {
            "consumer": name, "opId": uuid7(), "version": version, "cursor": cursor} | fields)

    def consumer(self, name):
        return self.client.call("EventService/GetConsumer", {"consumer": name})["consumer"]

    def page_of(self, name, **fields):
        """A page in which every shard that is asked has answered."""
        def whole():
            page = self.poll(consumer=name, **fields)
            return None if page.get("unreachableShards") else page
        return wait_for("all shards to tell their events", whole)

    def holdfast(self, *words):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class ConsumersTest(ConsumerCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def test_it_begins_at_what_it_has_committed(self):
        made = self.create("mail-index", kinds=["EVENT_KIND_LEDGER"], entityPrefix="player:idx")
        ids = [uuid7() for _ in range(6)]
        for at, op_id in enumerate(ids):
            self.client.grant(f"idx{at}", 1, op_id)
            self.client.grant(f"other{at}", 1)
        page = self.page_of("mail-index", pageSize=1000)
        self.assertEqual({event["opId"] for event in page["events"]}, set(ids))
        self.assertEqual(page["consumerVersion"], made["version"])
        self.assertGreaterEqual(int(page["lag"]["events"]), 12)
        again = self.page_of("mail-index", pageSize=1000)
        self.assertEqual({event["opId"] for event in again["events"]}, set(ids))  # Nothing is committed yet.
        done = self.commit("mail-index", page["consumerVersion"], page["nextCursor"])["consumer"]
        self.assertNotEqual(done["version"], made["version"])
        more = uuid7()
        self.client.grant("idx0", 1, more)
        page = self.page_of("mail-index")
        self.assertEqual([event["opId"] for event in page["events"]], [more])
        self.assertEqual(page.get("gaps", []), [])

    def test_of_two_workers_one_is_refused(self):
        self.create("two")
        self.client.grant("worker", 1)
        first, second = self.page_of("two"), self.page_of("two")
        self.commit("two", first["consumerVersion"], first["nextCursor"])
        self.assertEqual(self.refused("VERSION_CONFLICT", self.commit, "two", second["consumerVersion"],
                                      second["nextCursor"]).field, "version")
        at = self.consumer("two")
        self.assertEqual(at["cursor"], first["nextCursor"])
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.commit, "two", at["version"], "").field, "cursor")
        begin = self.commit("two", at["version"], "", rewind=True)["consumer"]
        self.assertEqual(begin.get("cursor", ""), "")

    def test_a_commit_is_found_again_and_does_not_go_back(self):
        self.create("again")
        self.client.grant("again", 1)
        before = self.page_of("again")
        op_id = uuid7()
        call = {"consumer": "again", "opId": op_id, "version": before["consumerVersion"],
                "cursor": before["nextCursor"]}
        done = self.client.call("EventService/CommitConsumer", call)
        told = self.client.call("EventService/CommitConsumer", call)
        self.assertTrue(told["duplicate"])
        self.assertEqual(told["consumer"]["version"], done["consumer"]["version"])
        self.client.grant("again", 1)
        after = self.page_of("again")
        last = self.commit("again", after["consumerVersion"], after["nextCursor"])["consumer"]
        self.refused("VERSION_CONFLICT", self.client.call, "EventService/CommitConsumer", call)
        self.refused("OUT_OF_RANGE", self.commit, "again", last["version"], before["nextCursor"])
        self.assertEqual(self.consumer("again")["cursor"], after["nextCursor"])
        self.commit("again", last["version"], before["nextCursor"], rewind=True)
        self.assertEqual(self.consumer("again")["cursor"], before["nextCursor"])

    def test_it_is_listed_until_it_is_deleted(self):
        self.create("listed", entity="player:listed")
        self.client.grant("listed", 1)

        def names():
            return {each["name"] for shard in range(SHARDS) for each in
                    self.client.call("EventService/ListConsumers", {"shard": shard}).get("consumers", [])}
        self.assertIn("listed", names())
        table = self.holdfast("events", "consumers")
        line = next(line for line in table.splitlines() if line.startswith("listed "))
        self.assertIn("player:listed", line)
        self.assertIn("never", line)
        rows = {row["name"]: row for row in json.loads(self.holdfast("events", "consumers", "--json"))}
        self.assertGreaterEqual(int(rows["listed"]["lagEvents"]), 1)
        tail = self.holdfast("events", "tail", "--consumer", "listed", "--print-cursor").splitlines()
        self.assertEqual(len(tail), 2)
        self.holdfast("consumer", "commit", "listed", tail[-1])
        self.assertEqual(self.consumer("listed")["cursor"], tail[-1])
        self.assertEqual(len(self.holdfast("events", "tail", "--consumer", "listed").splitlines()), 0)
        self.holdfast("consumer", "delete", "listed")
        self.assertNotIn("listed", names())
        self.refused("NOT_FOUND", self.poll, consumer="listed")
        self.assertIn("there was no", self.holdfast("consumer", "delete", "listed"))
        self.holdfast("consumer", "create", "listed", "--kind", "ledger")
        self.assertEqual(self.consumer("listed")["kinds"], ["ledger"])

    def test_a_consumer_brings_its_filters(self):
        self.create("own")
        for field, value in (("kinds", ["EVENT_KIND_LEDGER"]), ("entityPrefix", "player:"), ("entity", "player:a")):
            with self.assertRaises(RpcError) as refused:
                self.poll(consumer="own", **{field: value})
            self.assertEqual(refused.exception.code, "INVALID_ARGUMENT")
        self.refused("NOT_FOUND", self.poll, consumer="none")
        self.assertEqual(self.refused("INVALID_ARGUMENT", self.poll, consumer="a b").field, "consumer")

    def test_routers_tell_how_many_there_are_and_how_far_behind(self):
        self.create("watched")

        def told():
            metrics = self.cluster.router.metrics()
            return metrics.get("holdfast_router_event_consumers", 0) >= 1 and metrics
        metrics = wait_for("a look at all shards", told, patience_s=180)
        self.assertGreaterEqual(metrics["holdfast_router_event_consumer_lag_seconds"], 0)
        self.assertLess(metrics["holdfast_router_event_consumer_retention_ratio"], 1)


class AcrossFailures(ConsumerCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=3, coordinators=1, shards=SHARDS)

    def write(self, player, stop, done):
        while not stop.is_set():
            op_id = uuid7()
            self.client.settle("LedgerService/Grant", {
                "playerId": player, "opId": op_id, "authority": "unheld", "currencies": {"gold": 1}})
            done.append(op_id)

    def watch(self, ended):
        """Of each shard the committed place only rises."""
        last, looks = [None] * SHARDS, 0
        while not ended.is_set():
            try:
                at = places(self.consumer("torn").get("cursor", ""))
            except (RpcError, Unanswered):
                continue
            for shard, (was, now) in enumerate(zip(last, at)):
                self.assertTrue(was is None or (now is not None and now >= was), f"shard {shard}: {was}, then {now}")
            last, looks = at, looks + 1
        return looks

    def worker(self):
        # It is ended by the test alone, at whatever it does.
        return subprocess.Popen([sys.executable, HERE / "consumer_worker.py", self.cluster.endpoint, "torn", self.path])

    def processed(self):
        """What the workers wrote down; a line that a kill cut off was not committed, so it comes again."""
        told = []
        for line in pathlib.Path(self.path).read_text(encoding="utf-8").splitlines():
            try:
                told.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        self.assertEqual([gaps for word, *gaps in told if word == "gaps" and gaps != [[]]], [])
        return {row[2] for row in told if row[0] != "gaps"}

    def test_each_event_is_processed_and_no_commit_is_undone(self):
        self.create("torn", kinds=["EVENT_KIND_LEDGER"], entityPrefix="player:torn")
        self.path = str(self.cluster.dir / "torn.log")
        pathlib.Path(self.path).touch()
        stop, ended, done = threading.Event(), threading.Event(), []
        players = [f"torn{each}" for each in range(4)]
        worker = self.worker()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            watcher = pool.submit(self.watch, ended)
            writers = [pool.submit(self.write, player, stop, done) for player in players]
            try:
                for turn in range(4):
                    before = len(self.processed())
                    wait_for("events to be processed", lambda seen=before: len(self.processed()) > seen + 40)
                    worker.kill()
                    worker.wait()
                    worker = self.worker()
                    if turn % 2:
                        owner, _ = self.cluster.owner_of(players[turn])
                        owner.kill()
                        before = len(self.processed())
                        wait_for("events of the new owners", lambda seen=before: len(self.processed()) > seen + 40)
                        owner.start()
                        wait_for("all shards to serve", self.cluster.all_serving)
            finally:
                stop.set()
                for writer in writers:
                    writer.result()
                try:
                    wait_for("each event to be processed", lambda: set(done) <= self.processed())
                finally:
                    ended.set()
                    worker.kill()
                    worker.wait()
            self.assertGreater(watcher.result(), 0)


class Retention(ConsumerCalls, ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, coordinators=1, shards=1)

    def test_what_was_lost_is_counted(self):
        self.define("event_retention", "events", {"keepMs": 86400000, "eventsMax": 100})
        self.create("slow")
        page = self.page_of("slow", pageSize=1000)
        self.commit("slow", page["consumerVersion"], page["nextCursor"])
        ids = []
        for _ in range(3):
            ids += [uuid7() for _ in range(100)]
            self.client.call("LedgerService/BatchGrant", {"authority": "unheld", "requests": [
                {"playerId": f"slow{at}", "opId": op_id, "currencies": {"gold": 1}}
                for at, op_id in enumerate(ids[-100:])]})

        def trimmed():
            told = self.page_of("slow", pageSize=1000)
            return told if told.get("gaps") and len(told["events"]) <= 100 else None
        page = wait_for("the oldest events to go", trimmed)
        self.assertEqual(len(page["events"]), 100)
        self.assertEqual([int(gap["lost"]) for gap in page["gaps"]], [200])
        self.assertEqual({event["opId"] for event in page["events"]}, set(ids[200:]))
        self.assertEqual(int(page["lag"]["events"]), 100)
        tail = subprocess.run([BIN / "holdfast", "events", "tail", "--consumer", "slow", "--endpoint",
                               self.cluster.endpoint], capture_output=True, text=True, check=True)
        self.assertIn("200 events are missing", tail.stderr)
        self.commit("slow", page["consumerVersion"], page["nextCursor"])
        self.assertEqual(self.page_of("slow").get("gaps", []), [])
        self.assertEqual(int(self.page_of("slow")["lag"].get("events", 0)), 0)


if __name__ == "__main__":
    unittest.main()
