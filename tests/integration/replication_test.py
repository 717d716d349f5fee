"""
Replication links that are up and do not advance: who sends to whom, and which shards, is named by
doctor and metrics. Proxies between the nodes read the frames of plain TCP and leave out what they
are told to; links stay open, and answer pings.
"""

import json
import socket
import struct
import subprocess
import threading
import unittest

from cluster import BIN, Cluster, ClusterTest, free_port, wait_for

FRAME_HELLO, FRAME_MESSAGE = 1, 5  # runtime/link/frame.h
KIND_OFFSET, HEADER_SIZE = 4, 40
ENTRIES_SIZE_MIN = 200  # A heartbeat has 140 bytes at most, what carries a grant has 240.


class PeerProxy:
    """In front of one node's peer port. `stalled`: names of nodes whose entries do not get through."""

    def __init__(self, listen, to):
        self.to, self.stalled, self.left_out = to, set(), 0
        self.listener = socket.create_server(("127.0.0.1", listen))
        self.spawn(self.accept)

    @staticmethod
    def spawn(target, *args):
        threading.Thread(target=target, args=args, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                here.close()
                continue
            self.spawn(self.carry_frames, here, there)
            self.spawn(self.carry_bytes, there, here)

    @staticmethod
    def read(source, size):
        data = b""
        while len(data) < size:
            part = source.recv(size - len(data))
            if not part:
                raise OSError("closed")
            data += part
        return data

    def carry_frames(self, source, sink):
        """From the node that dials: its HELLO says who that is."""
        dialer = None
        try:
            while True:
                head = self.read(source, 4)
                rest = self.read(source, struct.unpack("<I", head)[0])
                kind = rest[KIND_OFFSET - 4]
                if kind == FRAME_HELLO:
                    dialer = next((f"node-{n}" for n in (1, 2, 3) if f"node-{n}".encode() in rest), None)
                if kind == FRAME_MESSAGE and dialer in self.stalled and len(rest) > ENTRIES_SIZE_MIN:
                    self.left_out += 1
                    continue
                sink.sendall(head + rest)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()

    @staticmethod
    def carry_bytes(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()

    def close(self):
        self.listener.close()


def proxied_cluster():
    ports = [(free_port(), free_port()) for _ in range(3)]
    options = {f"node-{n}": {"peer-listen": f"127.0.0.1:{to}", "peer-advertise": f"127.0.0.1:{listen}"}
               for n, (listen, to) in enumerate(ports, start=1)}
    cluster = Cluster(shards=8, options=options)
    for process in (cluster.router, *cluster.coordinators, *cluster.nodes):
        process.command = [word for word in process.command if not word.startswith("--tls-")]
        process.command.append("--insecure")
    cluster.proxies = [PeerProxy(listen, to) for listen, to in ports]
    return cluster


class ReplicationTest(ClusterTest):
    @classmethod
    def plan(cls):
        return proxied_cluster()

    @classmethod
    def tearDownClass(cls):
        for proxy in cls.cluster.proxies:
            proxy.close()
        super().tearDownClass()

    def doctor(self):
        done = subprocess.run([BIN / "holdfast", "doctor", "-o", "json", "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def findings(self, level):
        return [c for c in self.doctor()["checks"] if (c["check"], c["level"]) == ("replication", level)]

    def metric(self, node, peer):
        """Seconds for which `peer` has acknowledged nothing to `node`."""
        for line in node.get("/metrics")[1].splitlines():
            if line.startswith("holdfast_node_peer_stalled_seconds") and f'peer="{peer.name}"' in line:
                return float(line.rsplit(" ", 1)[1])
        return None

    def write(self):
        for player in range(40):
            self.client.grant(f"r{player}", 1)

    def test_a_link_that_is_up_and_does_not_advance_is_named(self):
        wait_for("all shards to be served", self.cluster.all_serving)
        self.write()
        wait_for("nothing to complain of", lambda: self.findings("ok"))
        by_id = {int(n["replicaId"]): n["name"] for n in self.client.nodes()}
        # The node of the least id is dialled by both others: what they send it passes its proxy.
        process = {p.name: (p, proxy) for p, proxy in zip(self.cluster.nodes, self.cluster.proxies)}
        least, middle, greatest = (by_id[i] for i in sorted(by_id))
        member, proxy = process[least]
        owner, other = process[middle][0], process[greatest][0]
        owned = [s.get("shard", 0) for s in self.client.shards() if by_id[int(s["owner"])] == owner.name]
        self.assertTrue(owned)

        closed = [node.log().count("peer.closed") for node in self.cluster.nodes]
        proxy.stalled = {owner.name}
        self.write()
        found = wait_for("the pair to be named", lambda: self.findings("warn"), 60)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{owner.name} -> {member.name}: nothing acknowledged for ", found[0]["what"])
        self.assertEqual(found[0]["runbook"], "HoldfastReplicationStalled")
        named = found[0]["what"].rsplit("shard", 1)[1].lstrip("s ")
        self.assertLessEqual({int(shard) for shard in named.split(", ")}, set(owned))
        self.assertGreater(proxy.left_out, 0)
        self.assertGreater(self.metric(owner, member), 9)
        for node, peer in ((owner, other), (other, member), (other, owner), (member, owner), (member, other)):
            self.assertLess(self.metric(node, peer), 5, f"{node.name} -> {peer.name}")
        # Nothing else was told: its replicas live, answer, and call themselves well.
        replicas = [r for s in self.client.shards() for r in s["replicas"]]
        self.assertEqual({r["state"] for r in replicas}, {"ok"})
        self.assertEqual(closed, [node.log().count("peer.closed") for node in self.cluster.nodes])

        proxy.stalled = set()
        wait_for("it to go on", lambda: self.findings("ok"))
        wait_for("the metric to say so", lambda: self.metric(owner, member) == 0)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
