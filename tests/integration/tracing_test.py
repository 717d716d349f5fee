"""A slow request is found by its trace id: in the router's, the owner's and a replica's log."""

import contextlib
import json
import secrets
import signal
import threading
import time
import unittest

from client import RpcError, grant_of, uuid7
from cluster import Cluster, ClusterTest, wait_for

SLOW_MS = 100
STOP_S = 0.4


def lines_of(process, event, trace):
    found = []
    for line in process.log().splitlines():
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if said.get("event") == event and (trace is None or said.get("trace") == trace):
                found.append(said)
    return found


class Tracing(ClusterTest):
    @classmethod
    def plan(cls):
        options = {"slow-request": f"{SLOW_MS}ms", "log-format": "json"}
        return Cluster(options={"router": options, "node": options | {"report-silent": "20s"}})

    def traced_grant(self, player, stopped, headers=True):
        """A grant that waits for `stopped`: its trace id, the caller's span and the answer."""
        trace, parent = secrets.token_hex(16), secrets.token_hex(8)
        answer = []
        sent = {"traceparent": f"00-{trace}-{parent}-01", "tracestate": "a=b"} if headers else {}
        body = json.dumps(grant_of(player, 1))
        thread = threading.Thread(target=lambda: answer.append(self.client.post(
            "/holdfast.v1.LedgerService/Grant", body, sent | {"connect-timeout-ms": "20000"})))
        for process in stopped:
            process.signal(signal.SIGSTOP)
        try:
            thread.start()
            time.sleep(STOP_S)
        finally:
            for process in stopped:
                process.signal(signal.SIGCONT)
        thread.join(60)
        self.assertEqual(answer[0][0], 200, answer)
        return trace, parent, answer[0]

    def one_line(self, process, event, trace):
        return wait_for(f"{event} of {trace} in the log of {process.name}",
                        lambda: lines_of(process, event, trace))[0]

    def test_replicas_that_stood_still_show_in_three_logs_under_one_trace(self):
        player = f"player-{uuid7()}"
        owner, _ = self.cluster.owner_of(player)
        others = [node for node in self.cluster.nodes if node is not owner]
        trace, parent, answer = self.traced_grant(player, others)
        at_router = self.one_line(self.cluster.router, "request.slow", trace)
        at_owner = self.one_line(owner, "request.slow", trace)
        self.assertEqual(at_router["method"], "holdfast.v1.LedgerService/Grant")
        self.assertEqual(at_router["parent"], parent)
        self.assertEqual(at_router["shard"], at_owner["shard"])
        # The same call, as both sides name it.
        self.assertEqual(at_router["node_span"], at_owner["span"])
        self.assertNotEqual(at_router["span"], at_owner["span"])
        self.assertGreaterEqual(at_owner["replicas_ms"], SLOW_MS)
        spans = ("queue_ms", "prepare_ms", "log_ms", "replicas_ms", "apply_ms")
        self.assertLessEqual(sum(at_owner[span] for span in spans), at_owner["ms"])
        spans = ("wait_ms", "retry_ms", "link_ms", "node_ms")
        self.assertLessEqual(sum(at_router[span] for span in spans), at_router["ms"])
        self.assertGreaterEqual(at_router["node_ms"], SLOW_MS)
        self.assertLessEqual(at_owner["ms"], at_router["ms"])
        appended = wait_for("a replica's line", lambda: [
            line for node in others for line in lines_of(node, "append.slow", trace)])[0]
        self.assertEqual(appended["shard"], at_owner["shard"])
        self.assertGreaterEqual(appended["stalled_ms"], SLOW_MS)
        self.assertLessEqual(appended["stalled_ms"] + appended["log_ms"], appended["ms"])
        # Nothing of it goes back to the caller.
        self.assertNotIn("traceparent", answer[1])
        self.assertNotIn("tracestate", answer[1])

    def test_an_owner_that_stood_still_shows_as_time_on_the_link(self):
        player = f"player-{uuid7()}"
        owner, _ = self.cluster.owner_of(player)
        trace, _, _ = self.traced_grant(player, [owner])
        at_router = self.one_line(self.cluster.router, "request.slow", trace)
        self.assertGreaterEqual(at_router["link_ms"], SLOW_MS)
        self.assertIn("@0", at_router["route"])

    def test_a_request_without_a_trace_gets_one(self):
        player = f"player-{uuid7()}"
        owner, _ = self.cluster.owner_of(player)
        before = {line["trace"] for line in lines_of(owner, "request.slow", None)}
        self.traced_grant(player, [n for n in self.cluster.nodes if n is not owner], headers=False)
        line = wait_for("the owner's line", lambda: [
            line for line in lines_of(owner, "request.slow", None)
            if line["trace"] not in before and line["method"].endswith("/Grant")])[0]
        self.assertRegex(line["trace"], "^[0-9a-f]{32}$")
        at_router = self.one_line(self.cluster.router, "request.slow", line["trace"])
        self.assertNotIn("parent", at_router)
        self.assertEqual(at_router["node_span"], line["span"])

    def test_an_error_of_ours_names_the_trace_and_has_a_line(self):
        player = f"player-{uuid7()}"
        owner, _ = self.cluster.owner_of(player)
        others = [node for node in self.cluster.nodes if node is not owner]
        trace = secrets.token_hex(16)
        for node in others:
            node.signal(signal.SIGSTOP)
        try:
            status, _, body = self.client.post(
                "/holdfast.v1.LedgerService/Grant", json.dumps(grant_of(player, 1)),
                {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-00", "connect-timeout-ms": "50"})
        finally:
            for node in others:
                node.signal(signal.SIGCONT)
        error = RpcError(status, json.loads(body))
        self.assertIn(error.code, ("OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED"))
        self.assertEqual(error.detail["traceId"], trace)
        # It took 50 ms, or longer on a machine that is busy.
        said = wait_for("the router's line", lambda: [
            line for event in ("request.failed", "request.slow")
            for line in lines_of(self.cluster.router, event, trace)])[0]
        self.assertEqual(said["code"], error.code.lower())

    def test_quick_requests_leave_no_lines(self):
        trace = secrets.token_hex(16)
        for _ in range(20):
            status, _, _ = self.client.post(
                "/holdfast.v1.LedgerService/Grant", json.dumps(grant_of(f"player-{uuid7()}", 1)),
                {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-01"})
            self.assertEqual(status, 200)
        for process in (self.cluster.router, *self.cluster.nodes):
            slow = [line for line in lines_of(process, "request.slow", trace)
                    if line["ms"] < SLOW_MS]
            self.assertEqual(slow, [])


if __name__ == "__main__":
    unittest.main()
