"""A node that was away for so long that the others cut their logs gets snapshots, under load."""

import unittest

from client import UNHELD, uuid7
from cluster import Cluster, ClusterTest, wait_for
from load import Load

PLAYERS = 400
LOG_MIB = 24


class Snapshots(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(options={"node": {
            "checkpoint-interval": "200ms", "log-lag-max": "1s", "log-segment-size": "4MiB",
            "write-buffer-size": "1MiB"}})

    def write(self, mark):
        for begin in range(0, PLAYERS, 50):
            results = self.client.call("ProfileService/BatchUpdateProfile", {"requests": [{
                "playerId": f"away-{n:04}", "opId": uuid7(), "authority": UNHELD, "edits": [{
                    "name": "blob", "replace": f'{{"mark": "{mark}", "fill": "{"x" * 2000}"}}'}],
            } for n in range(begin, begin + 50)]})["results"]
            self.assertEqual([r for r in results if "response" not in r], [])

    def sum_of(self, name, nodes):
        return sum(node.metrics()[name] for node in nodes)

    def checkpoints(self, nodes, count):
        name = "holdfast_node_checkpoints_total"
        before = self.sum_of(name, nodes)
        wait_for("checkpoints", lambda: self.sum_of(name, nodes) > before + count)

    def away(self, victim, others, load, mark):
        victim.kill()
        wait_for("the others to serve", self.cluster.all_serving)
        self.write(mark)
        acked = load.acked_count
        wait_for("grants meanwhile", lambda: load.acked_count > acked + 100)
        self.checkpoints(others, 300)

    def recycled(self, others, mark):
        """Until every log file of now is written again: an owner keeps, for 30 s, what follows a
        snapshot that it began, and a node that was away more shortly needs no other."""
        wanted = {node: node.metrics()["holdfast_node_log_segments"]
                  + node.metrics()["holdfast_node_log_segments_recycled_total"] for node in others}

        def done():
            self.write(mark)
            return all(node.metrics()["holdfast_node_log_segments_recycled_total"] >= count
                       for node, count in wanted.items())
        wait_for("the log files to be written again", done, every_s=0.3)

    def start(self, victim):
        """Until it is registered; it is not ready, which means caught up."""
        already = len(victim.log())
        victim.start()
        wait_for("the node to be there", lambda: "node.started" in victim.log()[already:])

    def test_a_node_that_was_away_too_long_comes_back_by_snapshots(self):
        victim, others = self.cluster.nodes[0], self.cluster.nodes[1:]
        with Load(self.client, prefix="snap") as load:
            self.write("before")
            self.away(victim, others, load, "after")
            self.start(victim)
            installed = wait_for("snapshots", lambda: victim.metrics()[
                "holdfast_node_snapshots_installed_total"])
            self.cut_short(victim, others, load)
        load.audit(self)
        self.cluster.wait_converged()
        given = self.sum_of("holdfast_node_snapshots_given_total", others)
        print(f"{installed:.0f} snapshots installed at first; {given:.0f} given in all")
        # What it has now serves: the others go, one at a time.
        for node in others:
            node.kill()
            wait_for("the rest to serve", self.cluster.all_serving)
            profile = self.client.call("ProfileService/GetProfile", {"playerId": "away-0007"})
            self.assertTrue(profile["profile"]["sections"]["blob"]["json"]["mark"].startswith("after-"))
            node.start()
            wait_for("the node to be ready", node.ready)
            self.cluster.wait_converged()

    def cut_short(self, victim, others, load):
        """Killed while it is being brought up to date, again and again. The log may still hold what
        it lacks: then once more, and it stays away until no file is left of that log."""
        cut, caught_up = 0, False
        for turn in range(7):
            self.away(victim, others, load, f"after-{turn}")
            if caught_up:
                self.recycled(others, f"after-{turn}")
            given = self.sum_of("holdfast_node_snapshots_given_total", others)
            self.start(victim)

            def outcome(before=given):
                if self.sum_of("holdfast_node_snapshots_given_total", others) > before:
                    return "begun"
                return "caught up" if victim.ready() else None
            caught_up = wait_for("a snapshot to begin, or the node to catch up", outcome) != "begun"
            cut += not caught_up
            if cut == 3:
                break
        self.assertEqual(cut, 3)
        victim.kill()
        victim.start()
        wait_for("the node to be ready", victim.ready)


class FullLogs(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(options={"node": {
            "checkpoint-interval": "1s", "log-lag-max": "1h", "log-segment-size": "4MiB",
            "log-size-max": f"{LOG_MIB}MiB"}})

    def test_a_dead_node_does_not_fill_the_others_logs(self):
        victim, others = self.cluster.nodes[0], self.cluster.nodes[1:]
        victim.kill()
        wait_for("the others to serve", self.cluster.all_serving)
        fill = "x" * 16000
        for turn in range(3 * LOG_MIB * 1024 // (16 * 50)):
            results = self.client.call("ProfileService/BatchUpdateProfile", {"requests": [{
                "playerId": f"full-{n:04}", "opId": uuid7(), "authority": UNHELD, "edits": [{
                    "name": "blob", "replace": f'{{"turn": {turn}, "fill": "{fill}"}}'}],
            } for n in range(50)]})["results"]
            self.assertEqual([r for r in results if "response" not in r], [])
        for node in others:
            self.assertLessEqual(node.metrics()["holdfast_node_log_bytes"], LOG_MIB << 20)
            self.assertGreater(node.metrics()["holdfast_node_log_segments_recycled_total"], 0)
        victim.start()
        wait_for("the node to be ready", victim.ready)
        self.cluster.wait_converged()
        self.assertGreater(victim.metrics()["holdfast_node_snapshots_installed_total"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
