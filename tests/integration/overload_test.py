"""
Overload, made cheaply: a router that may have 100 calls in flight, and a node that is frozen. What
cannot be admitted is refused at once and says when to come back, by priority: bulk saves first,
purchases last. What was admitted is carried out once the node goes on, and nothing ends unknown.
"""

import signal
import time
import unittest

from client import UNHELD, grant_of, uuid7
from cluster import SANITIZED, Cluster, ClusterTest, wait_for
from hostile import Raw, post

GRANT = "/holdfast.v1.LedgerService/Grant"
UPDATE = "/holdfast.v1.ProfileService/UpdateProfile"
PROFILE = "/holdfast.v1.ProfileService/GetProfile"
IN_FLIGHT_MAX = 100
BULK_MAX, ORDINARY_MAX = 60, 85  # As router/core/admission.h has it.
REFUSED_S_MAX = 30  # Calls wait as long as DEADLINE says.
DEADLINE = "Connect-Timeout-Ms: 60000"
GROWTH_MAX = (300 if SANITIZED else 64) << 20


class Overload(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=4, options={
            "router": {"in-flight-max": IN_FLIGHT_MAX},
            # A frozen node must not lose its lease, or the router would drop its links.
            "node": {"lease-ttl": "60s"}})

    def setUp(self):
        self.raws = []
        self.node = self.cluster.nodes[0]
        self.client.grant("warm", 1)
        self.client.drop()
        self.before_bytes = self.cluster.router.resident_bytes()
        self.node.signal(signal.SIGSTOP)

    def tearDown(self):
        self.node.signal(signal.SIGCONT)
        for raw in self.raws:
            raw.close()

    def in_flight(self):
        return self.cluster.router.metrics()["holdfast_router_in_flight"]

    def send(self, path, requests):
        """One connection for each request; returns them."""
        raws = []
        for request in requests:
            raw = Raw(self.cluster.port)
            raw.send(post(path, request, DEADLINE))
            raws.append(raw)
        self.raws += raws
        return raws

    def refused(self, raws, admitted):
        """All but `admitted` are answered soon: THROTTLED, with a time to come back."""
        end = time.monotonic() + REFUSED_S_MAX
        answered = []
        while len(answered) < len(raws) - admitted and time.monotonic() < end:
            answered = [raw for raw in raws if raw.came or not raw.read(0.002) and raw.came]
        self.assertEqual(len(answered), len(raws) - admitted)
        for raw in answered:
            self.assertEqual(raw.status(), 429, raw.came)
            self.assertTrue(raw.read_until(b"throttled", 30), raw.came)
            self.assertIn(b"retryAfterMs", raw.came)
            self.assertIn(b"retry-after: ", raw.came)
        return [raw for raw in raws if raw not in answered]

    def test_bulk_is_refused_before_reads_and_purchases_last(self):
        saves = [{"playerId": f"p{n}", "opId": uuid7(), "authority": UNHELD,
                  "edits": [{"name": "a", "replace": "{}"}]} for n in range(200)]
        purchases = [grant_of(f"p{n}", 5) for n in range(10)]
        waiting = self.refused(self.send(UPDATE, saves), BULK_MAX)
        wait_for("the bulk's share to be full", lambda: self.in_flight() == BULK_MAX)
        reads = self.send(PROFILE, [{"playerId": f"p{n}"} for n in range(60)])
        waiting += self.refused(reads, ORDINARY_MAX - BULK_MAX)
        # Payments still get in, and bulk still does not.
        bought = self.send(GRANT, purchases)
        wait_for("purchases to be admitted",
                 lambda: self.in_flight() == ORDINARY_MAX + len(purchases))
        self.refused(self.send(UPDATE, saves[:10]), 0)
        self.assertFalse([raw.came for raw in bought if raw.read(0.001) or raw.came])
        self.assertLess(self.cluster.router.resident_bytes() - self.before_bytes, GROWTH_MAX)
        # The node goes on: everything that was admitted is done, nothing is unknown.
        self.node.signal(signal.SIGCONT)
        for raw in waiting + bought:
            self.assertTrue(raw.read_until(b"\r\n\r\n", 60), "an admitted call was not answered")
            self.assertEqual(raw.status(), 200, raw.came)
        metrics = self.cluster.router.metrics()
        self.assertEqual(metrics["holdfast_router_outcomes_unknown_total"], 0)
        self.assertEqual(metrics["holdfast_router_throttled_bulk_total"], 200 - BULK_MAX + 10)
        self.assertEqual(metrics["holdfast_router_throttled_urgent_total"], 0)
        for request in purchases:
            self.assertEqual(self.client.balance(request["playerId"]), 5)
        wait_for("nothing to be left in flight", lambda: self.in_flight() == 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
