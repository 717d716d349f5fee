"""Nodes come and go under load: 3, then 5, then 3 others; moves, drains, a dead and a wiped node."""

import json
import shutil
import subprocess
import unittest

from cluster import BIN, Cluster, ClusterTest, wait_for
from load import Load

SHARDS = 16


class Growing(Cluster):
    """Five nodes, of which two are started later."""

    def start(self):
        for process in reversed(self.processes()):
            if process not in self.nodes[3:]:
                process.start()
        return self.wait_ready()


class Members(ClusterTest):
    @classmethod
    def plan(cls):
        return Growing(nodes=5, shards=SHARDS, options={"node": {
            "checkpoint-interval": "500ms", "write-buffer-size": "1MiB"}})

    def cli(self, *words):
        """(exit code, output, errors) of the command."""
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def ask(self, *words):
        code, out, errors = self.cli(*words)
        self.assertEqual(code, 0, errors)
        return out

    def refuse(self, reason, *words):
        code, _out, errors = self.cli(*words)
        self.assertEqual(code, 1, errors)
        self.assertIn(reason, errors)

    def replica_of(self, node):
        return next(n["replicaId"] for n in self.client.nodes() if n.get("name") == node.name)

    def held(self, replica):
        return sum(replica in s["members"] or s.get("learner") == replica
                   for s in self.client.shards())

    def owned(self, replica):
        return sum(s["owner"] == replica for s in self.client.shards())

    def settled(self):
        return all(s["phase"] == "stable" and len(s["members"]) == 3 and s.get("serving")
                   for s in self.client.shards())

    def come(self, *nodes):
        for node in nodes:
            node.start()
        for node in nodes:
            wait_for(f"{node.name} to be known", lambda n=node: any(
                live["name"] == n.name and live.get("live") for live in self.client.nodes()))

    def refusals(self):
        self.refuse("2 nodes would be left", "node", "remove", "node-1")
        self.refuse("there is no such node", "node", "drain", "node-77")
        self.refuse("neither drained nor removed", "node", "undrain", "node-1")
        self.refuse("there is no such shard", "shard", "move", "99", "--from", "node-1", "--to", "node-2")
        self.refuse("already", "shard", "move", "3", "--from", "node-1", "--to", "node-2")
        self.refuse("there is no such node", "shard", "move", "3", "--from", "node-1", "--to", "x")
        self.assertEqual(self.cli("shard", "move", "3")[0], 2)
        self.assertEqual(self.cli("node", "explode", "node-1")[0], 2)

    def grow(self):
        self.come(*self.cluster.nodes[3:])
        before = [s["members"] for s in self.client.shards()]
        planned = json.loads(self.ask("rebalance", "--dry-run", "-o", "json"))["moves"]
        self.assertGreater(len(planned), 0)
        self.assertEqual([s["members"] for s in self.client.shards()], before)
        self.ask("shard", "move", "3", "--from", "node-1", "--to", "node-4")
        wait_for("the shard to be moved", lambda: self.replica_of(self.cluster.nodes[3]) in
                 next(s for s in self.client.shards() if s.get("shard", 0) == 3)["members"])
        self.ask("rebalance")
        wait_for("replicas on all nodes", lambda: self.settled() and all(
            SHARDS * 3 // 5 <= self.held(self.replica_of(node)) <= SHARDS * 3 // 5 + 1
            for node in self.cluster.nodes))
        self.assertEqual(json.loads(self.ask("rebalance", "-o", "json")).get("moves", []), [])

    def drain(self, node):
        replica = self.replica_of(node)
        self.ask("node", "drain", node.name)
        wait_for("it to own nothing", lambda: self.owned(replica) == 0)
        self.refuse("is drained already", "node", "drain", node.name)
        self.assertGreater(self.held(replica), 0)
        self.ask("node", "undrain", node.name)

    def shrink(self, nodes):
        replicas = [self.replica_of(node) for node in nodes]
        for node in nodes:
            self.ask("node", "remove", node.name)
            self.refuse("is removed already", "node", "remove", node.name)
        self.refuse("2 nodes would be left", "node", "remove", "node-3")
        wait_for("them to hold nothing", lambda: self.settled() and
                 all(self.held(replica) == 0 for replica in replicas))
        for node in nodes:
            wait_for("it to drop all rows", lambda n=node: n.metrics()[
                "holdfast_node_replicas_dropped_total"] > 0)
            node.kill()
        wait_for("the rest to serve", self.cluster.all_serving)

    def replace(self, dead, wiped):
        """`dead` is gone for good; `wiped` comes back without a disk, so as another replica."""
        shutil.rmtree(self.cluster.dir / wiped.name)
        lost = self.replica_of(dead)
        self.come(wiped)
        dead.kill()
        wait_for("the rest to serve", self.cluster.all_serving)
        self.ask("node", "remove", str(lost))
        wait_for("others in its place", lambda: self.settled() and self.held(lost) == 0)

    def test_three_nodes_become_five_and_three_others(self):
        nodes = self.cluster.nodes
        with Load(self.client, prefix="move") as load:
            wait_for("grants", lambda: load.acked_count > 50)
            self.refusals()
            self.grow()
            self.drain(nodes[4])
            self.shrink(nodes[:2])
            self.replace(dead=nodes[2], wiped=nodes[0])
            acked = load.acked_count
            wait_for("grants", lambda: load.acked_count > acked + 50)
        load.audit(self)
        self.cluster.wait_converged()
        print(f"{load.acked_count} grants; the slowest took {load.slowest_s * 1000:.0f} ms")
        # What the newest replicas have serves without the others.
        nodes[3].kill()
        wait_for("the rest to serve", self.cluster.all_serving)
        load.audit(self)


if __name__ == "__main__":
    unittest.main(verbosity=2)
