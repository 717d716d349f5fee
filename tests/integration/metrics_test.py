"""The operations port of every process: valid metrics that move, liveness, readiness."""

import subprocess
import unittest

from client import UNHELD, Heartbeat, grant_of, uuid7
from cluster import ClusterTest, wait_for


class Metrics(ClusterTest):
    def everything(self):
        return [self.cluster.router, *self.cluster.coordinators, *self.cluster.nodes]

    def test_promtool_accepts_the_metrics_of_every_process(self):
        self.client.grant("promtool", 1)
        for process in self.everything():
            with self.subTest(process=process.name):
                status, text = process.get("/metrics")
                self.assertEqual(status, 200)
                result = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                        capture_output=True, check=False)
                self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))
                for series in ("process_resident_memory_bytes", "process_cpu_seconds_total",
                               "process_open_fds", "process_start_time_seconds"):
                    self.assertGreater(process.metrics()[series], 0)

    def test_each_shard_has_one_owner_in_the_metrics_and_the_database_is_told_of(self):
        self.cluster.wait_converged()
        told = {node.name: node.metrics() for node in self.cluster.nodes}
        for shard in self.client.shards():
            series = f'{{shard="{shard.get("shard", 0)}"}}'
            epochs = {name: metrics["holdfast_node_shard_epoch" + series]
                      for name, metrics in told.items()}
            owner = self.cluster.node_of(shard["owner"]).name
            self.assertEqual(epochs.pop(owner), int(shard["epoch"]))
            self.assertEqual(set(epochs.values()), {0})
            wait_for("its last member to lack nothing", lambda o=owner, s=series: next(
                n for n in self.cluster.nodes if n.name == o).metrics()[
                    "holdfast_node_shard_lag_entries" + s] == 0)
        for metrics in told.values():
            self.assertGreater(metrics["holdfast_node_db_write_buffer_bytes"], 0)
            self.assertEqual(metrics["holdfast_node_db_write_stopped"], 0)

    def nodes_sum(self, series):
        return sum(node.metrics().get(series, 0) for node in self.cluster.nodes)

    def test_key_series_move_with_the_calls_they_count(self):
        router = self.cluster.router
        player, op_id = f"player-{uuid7()}", uuid7()
        grant = 'method="holdfast.v1.LedgerService/Grant"'
        ok = f'holdfast_router_requests_total{{{grant},code="ok"}}'
        mismatch = f'holdfast_router_requests_total{{{grant},code="operation_id_mismatch"}}'
        timed = f"holdfast_router_request_duration_seconds_count{{{grant}}}"
        before = router.metrics()
        names = ("holdfast_node_operations_duplicate_total",
                 "holdfast_node_operations_refused_total", "holdfast_node_entries_applied_total",
                 f'holdfast_node_calls_total{{{grant},status="ok"}}',
                 f"holdfast_node_call_duration_seconds_count{{{grant}}}",
                 "holdfast_node_stale_writes_refused_total",
                 "holdfast_node_sessions_stolen_total")
        nodes_before = {name: self.nodes_sum(name) for name in names}
        for _ in range(3):
            self.client.grant(player, 5, op_id)
        self.refused("OPERATION_ID_MISMATCH", self.client.grant, player, 6, op_id)
        self.refused("INSUFFICIENT_FUNDS", self.client.call, "LedgerService/Spend",
                     grant_of(player, 50) | {"authority": UNHELD})
        one, two = self.client.register("one"), self.client.register("two")
        for server in (one, two):
            self.enterContext(Heartbeat(self.client, server))
        token = self.client.start(player, one)["token"]
        self.client.renew(one, (player, token))
        self.client.start(player, two, "STEAL", graceMs=100)
        self.refused("SESSION_LOST", self.client.update, player, token,
                     {"name": "a", "replace": "{}"})
        after = router.metrics()
        self.assertEqual(after[ok] - before.get(ok, 0), 3)
        self.assertEqual(after[mismatch] - before.get(mismatch, 0), 1)
        self.assertEqual(after[timed] - before.get(timed, 0), 4)
        self.assertGreaterEqual(after["holdfast_router_servers_registered_total"], 2)
        # Nodes publish their shards' figures about ten times a second.
        stale, stolen = names[5], names[6]
        wait_for("the last figures", lambda: all(
            self.nodes_sum(name) > nodes_before[name] for name in (stale, stolen)))
        moved = {name: self.nodes_sum(name) - nodes_before[name] for name in names}
        self.assertGreaterEqual(moved[names[0]], 2, moved)
        self.assertGreaterEqual(moved[names[1]], 2)
        self.assertGreater(moved[names[2]], 3)
        self.assertGreaterEqual(moved[names[3]], 3)  # More when a router had to ask again.
        self.assertGreaterEqual(moved[names[4]], 4)
        self.assertGreaterEqual(moved[names[5]], 1)
        self.assertGreaterEqual(moved[names[6]], 1, moved)
        self.assertEqual(self.nodes_sum("holdfast_node_replica_divergence_total"), 0)
        wait_for("each shard to have one owner",
                 lambda: self.nodes_sum("holdfast_node_shards_owned") == 16)
        self.assertEqual(self.nodes_sum("holdfast_node_shards_held"), 48)
        coordinator = self.cluster.coordinators[0]
        wait_for("three live nodes", lambda: coordinator.metrics()[
            "holdfast_coordinator_nodes_live"] == 3)
        self.assertEqual(coordinator.metrics()["holdfast_coordinator_active"], 1)

    def test_liveness_and_readiness(self):
        for process in self.everything():
            with self.subTest(process=process.name):
                self.assertEqual(process.get("/healthz")[0], 200)
                # A node that has just taken its shards over may still be catching up with them.
                wait_for("readiness", lambda: process.get("/readyz")[0] == 200)
                self.assertEqual(process.get("/nothing")[0], 404)

    def test_z_a_router_without_nodes_is_alive_but_not_ready(self):
        for node in self.cluster.nodes:
            node.kill()
        router = self.cluster.router
        wait_for("the router to be unready", lambda: router.get("/readyz")[0] == 503)
        self.assertTrue(router.get("/readyz")[1].strip())
        self.assertEqual(router.get("/healthz")[0], 200)
        for node in self.cluster.nodes:
            node.start()
        self.cluster.wait_ready()
        wait_for("a grant", lambda: self.client.grant("after", 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
