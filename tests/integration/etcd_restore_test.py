"""etcd restored from a backup: nodes that were stopped meanwhile notice, follow no record of it, and
go on once etcd's newer data is back."""

import os
import re
import shutil
import subprocess
import unittest

from cluster import Cluster, ClusterTest, wait_for


class EtcdRestore(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=4)

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

    def test_a_node_follows_no_etcd_that_is_older_than_it_knows(self):
        self.client.grant("ann", 5)
        backup = self.cluster.dir / "backup.db"
        self.etcdctl("snapshot", "save", str(backup))
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
        command = self.cluster.etcd.command
        url = command[command.index("--initial-advertise-peer-urls") + 1]
        restored = self.cluster.dir / "etcd-restored"
        self.etcdctl("snapshot", "restore", str(backup), "--data-dir", str(restored), "--initial-cluster",
                     f"default={url}", "--initial-advertise-peer-urls", url)
        self.restart_etcd(restored)
        for process in [*self.cluster.coordinators, *self.cluster.nodes]:
            process.start()
        for node in self.cluster.nodes:
            wait_for(f"{node.name} to notice",
                     lambda node=node: node.metrics()["holdfast_node_etcd_rolled_back"] == 1)
            status, said = node.get("/readyz")
            self.assertEqual((status, "restored from a backup" in said), (503, True), said)
            self.assertTrue(node.running())
        # Nobody may have been named by the coordinator, which knows nothing: no node is registered.
        self.assertTrue(all("node.registered" not in node.log().split("etcd.rolled_back")[-1]
                            for node in self.cluster.nodes))
        for node in self.cluster.nodes:
            node.stop()
        self.restart_etcd(self.cluster.dir / "etcd-before")
        for node in self.cluster.nodes:
            node.start()
        wait_for("all shards to be served", self.cluster.all_serving)
        self.assertEqual(self.client.balance("ann"), balance)


if __name__ == "__main__":
    unittest.main()
