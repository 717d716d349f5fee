"""etcd restored from a backup: nodes notice, follow no record of it, and go on once etcd's newer data
is back, or once somebody accepts the older one: then nothing that was acknowledged is lost."""

import json
import os
import re
import shutil
import subprocess
import unittest

from client import RpcError, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for
from load import Load


class Restoring(ClusterTest):
    def etcdctl(self, *words):
        subprocess.run(["etcdctl", *words], check=True, capture_output=True,
                       env=os.environ | {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": self.cluster.etcd_url})

    def noted(self, node):
        text = (self.cluster.dir / node.name / "IDENTITY").read_text(encoding="ascii")
        return int(re.search(r"etcd_revision (\d+)", text)[1])

    def restart_etcd(self, data):
        directory = self.cluster.dir / "etcd"
        self.cluster.etcd.kill()
        aside = self.cluster.dir / "etcd-aside"
        shutil.move(data, aside)
        shutil.move(directory, self.cluster.dir / "etcd-before")
        shutil.move(aside, directory)
        self.cluster.etcd.start()

    def backup(self):
        path = self.cluster.dir / f"backup-{uuid7()}.db"
        self.etcdctl("snapshot", "save", str(path))
        return path

    def restored(self, backup):
        """A data directory of etcd's with what the backup has."""
        command = self.cluster.etcd.command
        url = command[command.index("--initial-advertise-peer-urls") + 1]
        data = self.cluster.dir / f"etcd-restored-{uuid7()}"
        self.etcdctl("snapshot", "restore", str(backup), "--data-dir", str(data), "--initial-cluster",
                     f"default={url}", "--initial-advertise-peer-urls", url)
        return data

    def cli(self, *words):
        """(exit code, output, errors) of the command."""
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def accept(self, *words):
        return self.cli("admin", "accept-etcd-restore", *words)

    def all_doubt(self):
        return all(node.metrics()["holdfast_node_etcd_rolled_back"] == 1 for node in self.cluster.nodes)

    def refuse(self, code, call, *arguments):
        with self.assertRaises(RpcError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.code, code, raised.exception)


class Noticed(Restoring):
    @classmethod
    def plan(cls):
        return Cluster(shards=4)

    def test_a_node_follows_no_etcd_that_is_older_than_it_knows(self):
        self.client.grant("ann", 5)
        backup = self.backup()
        before = max(self.noted(node) for node in self.cluster.nodes)
        for number in range(200):  # What other clusters or operators write counts, too.
            self.etcdctl("put", "/elsewhere", str(number))
            if number == 0:
                self.client.grant("ann", 1)
        wait_for("every node to note it",
                 lambda: all(self.noted(node) >= before + 200 for node in self.cluster.nodes))
        balance = self.client.balance("ann")
        for process in [*self.cluster.nodes, *self.cluster.coordinators]:
            process.stop()
        restored = self.restored(backup)
        self.restart_etcd(restored)
        for process in [*self.cluster.coordinators, *self.cluster.nodes]:
            process.start()
        for node in self.cluster.nodes:
            wait_for(f"{node.name} to notice",
                     lambda node=node: node.metrics()["holdfast_node_etcd_rolled_back"] == 1)
            status, said = node.get("/readyz")
            self.assertEqual((status, "restored from a backup" in said), (503, True), said)
            self.assertTrue(node.running())
        # The coordinator knows nothing by itself, and may name no owner.
        for coordinator in self.cluster.coordinators:
            wait_for("the coordinator to halt",
                     lambda c=coordinator: c.metrics()["holdfast_coordinator_halted"] == 1)
        self.assertTrue(all("coordinator.owner_named" not in c.log().split("coordinator.halted")[-1]
                            for c in self.cluster.coordinators))
        # Given back: each process that noticed has to be restarted, the router too if it did.
        for process in [self.cluster.router, *self.cluster.nodes, *self.cluster.coordinators]:
            process.stop()
        self.restart_etcd(self.cluster.dir / "etcd-before")
        for process in [*self.cluster.coordinators, *self.cluster.nodes, self.cluster.router]:
            process.start()
        self.client.drop()
        wait_for("all shards to be served", self.cluster.all_serving)
        self.assertEqual(self.client.balance("ann"), balance)


class Accepted(Restoring):
    @classmethod
    def plan(cls):
        return Cluster(nodes=4, shards=4)

    def history(self):
        """What etcd's backup does not have: a move, later epochs, another game server, grants."""
        shard = next(s for s in self.client.shards() if s.get("shard", 0) == 1)
        live = {n["replicaId"]: n["name"] for n in self.client.nodes()}
        comer = next(r for r in live if r not in shard["members"])
        code, _out, errors = self.cli("shard", "move", "1", "--from", live[shard["members"][0]], "--to",
                                      live[comer])
        self.assertEqual(code, 0, errors)
        wait_for("the shard to be moved", lambda: self.members(1) != set(shard["members"]) and all(
            s["phase"] == "stable" and s.get("serving") for s in self.client.shards()))
        victim = self.cluster.nodes[0]
        victim.kill()
        wait_for("others to take over", self.others_serve)
        victim.start()
        wait_for("all shards to be served", self.cluster.all_serving)
        return self.members(1)

    def others_serve(self):
        shards = self.client.shards()
        return len(shards) == 4 and all(s.get("serving") for s in shards)

    def members(self, number):
        return set(next(s for s in self.client.shards() if s.get("shard", 0) == number)["members"])

    def settled(self):
        return self.cluster.all_serving() and all(s["phase"] == "stable" for s in self.client.shards())

    def check_after(self, players, members, generation):
        for process in [self.cluster.router, *self.cluster.nodes]:
            wait_for(f"{process.name} to take etcd as it is", lambda p=process:
                     f"etcd.restore_accepted generation={generation} " in p.log())
        wait_for("all shards to be served", self.settled)
        self.assertEqual({p: self.client.balance(p) for p in players}, players)
        if members:
            self.assertEqual(self.members(1), members)
        code, _out, errors = self.accept("--yes")
        self.assertEqual(code, 1)
        self.assertIn("nothing to accept", errors)
        for node in self.cluster.nodes:
            wait_for("the node to be ready", node.ready)
        for coordinator in self.cluster.coordinators:
            wait_for("the coordinator to be ready", coordinator.ready)
        self.assertNotIn("RESTORED", self.cli("status")[1])

    def test_1_everybody_was_stopped(self):
        code, _out, errors = self.accept("--yes")
        self.assertEqual(code, 1, errors)
        self.assertIn("nothing to accept", errors)
        before = self.client.register("registered before", 10000)
        held = self.client.start("held", before)["token"]
        self.client.renew(before, ("held", held))
        backup = self.backup()
        policy = self.policy()
        for step in (1, 2, 3):  # The backup has none of these.
            self.set_policy(policy, int(policy["version"]) + step, "amber")
        after = self.client.register("registered after", 10000)
        late = self.client.start("late", after)["token"]
        self.client.renew(after, ("late", late))
        members = self.history()
        players = {f"p{number}": number + 1 for number in range(20)}
        for player, amount in players.items():
            self.client.grant(player, amount)
        seen = max(self.noted(node) for node in self.cluster.nodes)
        self.etcdctl("put", "/elsewhere", "1")
        wait_for("every node to note what the backup lacks",
                 lambda: all(self.noted(node) > seen for node in self.cluster.nodes))
        for process in [self.cluster.router, *self.cluster.nodes, *self.cluster.coordinators]:
            process.stop()
        self.restart_etcd(self.restored(backup))
        for process in [*self.cluster.coordinators, *self.cluster.nodes, self.cluster.router]:
            process.start()
        self.client.drop()
        wait_for("all nodes to notice", self.all_doubt)
        wait_for("the router to say so", lambda: "ETCD WAS RESTORED FROM A BACKUP: 4 nodes" in
                 self.cli("status")[1])
        self.refuse("UNAVAILABLE", self.client.register, "refused")
        # Shown, and not done.
        out = wait_for("enough nodes to tell", lambda: self.accepted("--dry-run", "-o", "json"))[1]
        plan = json.loads(out)
        self.assertEqual((plan["generationBefore"], plan["generation"], plan["shards"]), ("1", "2", 4))
        self.assertEqual(plan.get("shardsUnknown", 0), 0)
        self.assertTrue(any(s.get("membersDiffer") and {int(m) for m in s["members"]} == members
                            for s in plan["shardsBehind"]), plan)
        self.assertEqual(self.accept()[0], 1)  # No operator says yes.
        self.assertIn("coordinator.halted", self.cluster.coordinators[0].log())
        code, out, errors = self.accept("--yes")
        self.assertEqual(code, 0, errors)
        self.assertIn("generation 2", out)
        self.check_after(players, members, 2)
        self.check_policy(policy, players)
        # Game servers of before are told so, and their players are free.
        for incarnation, player, token in ((before, "held", held), (after, "late", late)):
            wait_for("the session to be lost", lambda i=incarnation, p=player, t=token:
                     self.is_lost(i, p, t))
        again = self.client.register("registered again", 10000)
        self.assertTrue(again.startswith("2-"), again)
        for player, token in (("held", held), ("late", late)):
            fresh = self.client.start(player, again)["token"]
            self.refuse("SESSION_LOST", self.client.update, player, token,
                        {"name": "progress", "replace": '{"old":true}'})
            self.client.update(player, fresh, {"name": "progress", "replace": '{"new":true}'})
        self.client.grant("p0", 5)
        self.assertEqual(self.client.balance("p0"), players["p0"] + 5)

    def policy(self):
        return self.client.call("AdminService/GetCluster", {})["policy"]

    def set_policy(self, policy, version, currency):
        self.client.call("AdminService/SetPolicy", {"policy": policy | {
            "version": version, "currencies": [*policy["currencies"], {"name": currency}]}})

    def check_policy(self, policy, players):
        """It is the backup's in every shard, and the next one holds in every shard once it is set."""
        self.assertEqual(self.policy(), policy)
        for player in players:
            wait_for("the policy of the backup to hold", lambda p=player: self.refuses(p, "amber"))
        self.set_policy(policy, int(policy["version"]) + 1, "beryl")
        for player in players:
            self.client.grant(player, 1, currency="beryl")

    def refuses(self, player, currency):
        try:
            self.client.grant(player, 1, currency=currency)
        except RpcError as error:
            return error.code == "INVALID_ARGUMENT"
        return False

    def is_lost(self, incarnation, player, token):
        try:
            return self.client.renew(incarnation, (player, token)).get("lost", []) != []
        except RpcError as error:
            return error.code == "SERVER_EXPIRED"

    def test_2_everybody_runs_on(self):
        backup = self.backup()
        seen = max(self.noted(node) for node in self.cluster.nodes)
        for number in range(30):
            self.etcdctl("put", "/elsewhere", str(number))
        wait_for("every node to note it",
                 lambda: all(self.noted(node) >= seen + 30 for node in self.cluster.nodes))
        with Load(self.client, prefix=f"restore-{uuid7()}") as load:
            wait_for("load", lambda: load.acked_count > 50)
            self.restart_etcd(self.restored(backup))
            wait_for("all nodes to notice", self.all_doubt)
            at = load.acked_count
            wait_for("grants before it is accepted", lambda: load.acked_count > at + 50)
            wait_for("to be accepted", lambda: self.accepted("--yes"))
            wait_for("all shards to be served", self.settled)
            at = load.acked_count
            wait_for("grants afterwards", lambda: load.acked_count > at + 50)
        load.audit(self)
        self.check_after({}, None, 3)

    def accepted(self, *words):
        """Some node may be late to register with the restored etcd, or the router to reach it."""
        done = self.accept(*words)
        return done if done[0] == 0 else None


if __name__ == "__main__":
    unittest.main()
