#!/usr/bin/env python3
"""What changes under load, with the pods' processes of the rendered chart (pods.py): nodes 3 -> 5, a rolling upgrade
of everything, a node whose volume is lost, new certificates and a new CA.

Callers reach routers as through a Service: a new connection goes to a router that is ready and not leaving. A
request fails when its answer is an error, or when there is none; a connection that was closed while idle
is opened again, as by any HTTP client. Where a node is killed, its callers settle under the same op_id.

    HOLDFAST_BIN=build/release/bin charts/tests/pods_change.py          needs root, or user namespaces
"""

import base64
import json
import os
import pathlib
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

import yaml

from pods import BIN, FULL, READY_S, RELEASE, Machine, PodsCase, main, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
from client import Client, RpcError, Unanswered, grant_of  # noqa: E402
from load import Load  # noqa: E402

SHARDS, PACE_S = 16, 0.01
CONNECTION_LOST = (ConnectionError, BrokenPipeError)  # RemoteDisconnected is a ConnectionResetError.


class ServiceClient(Client):
    """Calls the routers that a Service would name."""

    def __init__(self, case, key):
        super().__init__("http://127.0.0.1:7400", key)
        self.case, self.turn, self.lock, self.reopened = case, 0, threading.Lock(), 0

    def connection(self, timeout_s):
        if getattr(self.local, "conn", None) is None:
            with self.lock:
                self.turn += 1
                self.host = self.case.routers[self.turn % len(self.case.routers)]
                return super().connection(timeout_s)
        return super().connection(timeout_s)

    def post(self, *args, **named):
        used = getattr(self.local, "conn", None) is not None
        try:
            return super().post(*args, **named)
        except Unanswered as error:
            if not used or not isinstance(error.__cause__, CONNECTION_LOST):
                raise
            with self.lock:
                self.reopened += 1
            return super().post(*args, **named)


class StrictLoad(Load):
    """Every first try that is not answered well is remembered; then it is settled, so that sums agree."""

    def __init__(self, client, prefix):
        super().__init__(client, threads=4, prefix=prefix)
        self.failed = []

    def carry_out(self, player, amount, op_id):
        time.sleep(PACE_S)
        begun = time.monotonic()
        try:
            self.client.call("LedgerService/Grant", grant_of(player, amount, op_id), 10000)
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            return True
        except (RpcError, Unanswered) as error:
            self.failed.append(f"{player} {op_id}: {error}")
            return super().carry_out(player, amount, op_id)


class Authority:
    """A CA as openssl has it."""

    def __init__(self, directory, name, data=None):
        self.key, self.cert = directory / f"{name}.key", directory / f"{name}.crt"
        if data:  # The chart's.
            self.key.write_bytes(base64.b64decode(data["tls.key"]))
            self.cert.write_bytes(base64.b64decode(data["tls.crt"]))
        else:
            self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", self.cert,
                         "-days", "2", "-subj", f"/CN={name}")

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    def issue(self, names, identity=None):
        """A new key and certificate: the data of a secret without ca.crt."""
        key, request, cert, extensions = (self.key.with_suffix(end) for end in (".leaf", ".csr", ".new", ".ext"))
        alternatives = [f"DNS:{name}" for name in names] + ([f"URI:{identity}"] if identity else [])
        extensions.write_text("subjectAltName=" + ",".join(alternatives) +
                              "\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN={names[0]}")
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", "2",
                     "-extfile", extensions, "-out", cert)
        return {"tls.key": encoded(key.read_bytes()), "tls.crt": encoded(cert.read_bytes())}


def encoded(data):
    return base64.b64encode(data).decode()


class Changes(PodsCase):
    def machine_in(self, directory):
        self.directory, self.key = directory, f"hf_{secrets.token_hex(32)}"
        values = directory / "values.yaml"
        values.write_text(yaml.safe_dump({
            "cluster": {"shardCount": SHARDS},
            "router": {"preStopSleepSeconds": 1, "autoscaling": {"enabled": False}},
            "node": {"config": {"checkpoint_interval": "1s"}},  # Snapshots, also of a short history.
            "apiKeys": {"register": [{"name": "load", "secret": "load", "scopes": ["admin", "read", "payments"]}]},
            "extraManifests": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "load"},
                                "data": {"key": encoded(self.key.encode())}}]}))
        return Machine(directory, values=values)

    def setUp(self):
        super().setUp()
        self.machine.start()
        self.routers = [pod.address for pod in self.machine.of("router")]
        self.client = ServiceClient(self, self.key)

    def cli(self, *words):
        """`holdfast`, as by kubectl exec in a coordinator's pod."""
        done = subprocess.run([BIN / "holdfast", *words], capture_output=True, text=True, check=False, timeout=60, env={
            "HOLDFAST_ENDPOINT": f"http://{self.routers[0]}:7400", "HOLDFAST_KEY": self.key})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def replica_of(self, pod):
        return next((n["replicaId"] for n in self.client.nodes() if n["name"] == pod.name and n.get("live")), None)

    def held(self, replica):
        return sum(replica in shard["members"] or shard.get("learner") == replica for shard in self.client.shards())

    def settled(self):
        return all(shard["phase"] == "stable" and len(shard["members"]) == 3 and shard.get("serving")
                   for shard in self.client.shards())

    def all_serve(self):
        return all(shard.get("serving") for shard in self.client.shards())

    def loaded(self, prefix):
        load = StrictLoad(self.client, prefix)
        self.addCleanup(load.stop)
        for thread in load.threads:
            thread.start()
        self.more(load)
        return load

    def more(self, load, count=100):
        acked = load.acked_count
        wait_for(f"{count} more grants", READY_S, lambda: load.acked_count >= acked + count or not load.threads[0].is_alive())

    def finish(self, load, may_fail=False):
        self.more(load)
        load.stop()
        print(f"{load.acked_count} grants, {len(load.failed)} failed at first, the slowest took {load.slowest_s * 1000:.0f} "
              f"ms, {self.client.reopened} connections opened again", file=sys.stderr)
        if not may_fail:
            self.assertEqual(load.failed, [])
        load.audit(self)

    def roll(self, pod):
        """As a StatefulSet does: the old one ends, then its successor starts."""
        self.assertEqual(pod.stop(), 0, pod.name)
        after = self.machine.successor(pod)
        after.wait_ready()
        return after

    def test_three_nodes_become_five_and_three_again(self):
        zones = {node["replicaId"]: node["zone"] for node in self.client.nodes()}
        self.assertEqual(set(zones.values()), {"eu-1a", "eu-1b", "eu-1c"})
        load = self.loaded("five")
        self.machine.upgrade("node.replicas=5")
        new = self.machine.added()
        self.assertEqual([pod.name for pod in new], [f"{FULL}-node-3", f"{FULL}-node-4"])
        for pod in new:
            pod.wait_ready()
            wait_for("it is known", READY_S, lambda p=pod: self.replica_of(p))
        replicas = [self.replica_of(pod) for pod in self.machine.of("node")]
        self.assertEqual([self.held(replica) for replica in replicas], [SHARDS] * 3 + [0] * 2)
        self.cli("rebalance")
        # Zones a and b have two nodes now, and c one: each shard has a replica in each.
        wait_for("replicas are spread", 3 * READY_S, lambda: self.settled() and all(
            self.held(replica) > 0 for replica in replicas) and not json.loads(
                self.cli("rebalance", "--dry-run", "-o", "json")).get("moves"))
        zones = {node["replicaId"]: node["zone"] for node in self.client.nodes()}
        for shard in self.client.shards():
            self.assertEqual(len({zones[member] for member in shard["members"]}), 3, shard)
        print("replicas held:", [self.held(replica) for replica in replicas], file=sys.stderr)
        self.fewer(load, new, replicas[3:])
        self.finish(load)
        self.call_passes()

    def fewer(self, load, pods, replicas):
        """UPGRADING.md, "Fewer nodes": first they hold nothing, then they end."""
        for pod in pods:
            self.cli("node", "remove", pod.name)
        wait_for("they hold nothing", 3 * READY_S, lambda: self.settled() and not any(
            self.held(replica) for replica in replicas))
        self.more(load)
        self.machine.upgrade()
        for pod in pods:
            self.assertEqual(pod.stop(), 0, pod.name)
            self.machine.pods.remove(pod)
        self.machine.write_hosts()

    def test_a_rolling_upgrade_of_everything_fails_no_request(self):
        load = self.loaded("roll")
        self.machine.upgrade("log.level=debug", "node.config.cache_size=64MiB")
        for pod in list(self.machine.of("router")):  # One more, then one less: maxSurge 1, maxUnavailable 0.
            after = self.machine.successor_beside(pod)
            after.wait_ready()
            self.routers.append(after.address)
            self.routers.remove(pod.address)  # A pod that is to end leaves its Service at once.
            self.assertEqual(pod.stop(), 0, pod.name)
            self.more(load)
        for pod in reversed(self.machine.of("node")):
            after = self.roll(pod)
            self.assertIn("64MiB", (after.directory / "config/node.yaml").read_text())
            self.more(load)
        for pod in list(self.machine.of("coordinator")):
            self.roll(pod)
            self.more(load)
        self.finish(load)
        self.call_passes()

    def test_a_node_whose_volume_is_lost_is_replaced(self):
        load = self.loaded("lost")
        pod = self.machine.of("node")[1]
        lost = self.replica_of(pod)
        pod.kill()
        shutil.rmtree(pod.directory)
        wait_for("the others serve", READY_S, self.all_serve)
        after = self.machine.successor(pod)
        after.wait_ready()
        new = wait_for("it is known", READY_S, lambda: self.replica_of(after))
        self.assertNotEqual(new, lost)
        self.cli("node", "remove", str(lost))
        wait_for("it holds what was lost", READY_S, lambda: self.settled() and self.held(lost) == 0)
        self.assertEqual(self.held(new), SHARDS)
        self.more(load)
        # What it has caught up with serves: without it there is no majority any more.
        other = self.machine.of("node")[2]
        other.kill()
        wait_for("two serve", READY_S, self.all_serve)
        self.finish(load, may_fail=True)
        other.start()
        other.wait_ready()

    def rotate(self, data, ca):
        """Puts new contents into the secrets of all components, as `data` has them, and projects them."""
        for component, leaf in data.items():
            self.machine.find("Secret", f"{FULL}-{component}-tls")["data"] |= leaf | {"ca.crt": ca}
        before = {pod.name: self.reloads(pod) for pod in self.processes()}
        for pod in self.machine.pods:
            pod.project()
        wait_for("all have read them", READY_S, lambda: all(
            self.reloads(pod) > before[pod.name] for pod in self.processes()))

    def processes(self):
        return [pod for pod in self.machine.pods if pod.component != "etcd"]

    @staticmethod
    def reloads(pod):
        return (pod.directory / "log").read_text().count("tls.reloaded")

    def names_of(self, component):
        if component != "etcd":
            return [f"{FULL}-{component}"]
        return [f"{FULL}-etcd", *(f"{pod.name}.{FULL}-etcd.game.svc.cluster.local" for pod in self.machine.of("etcd")),
                "localhost"]

    def identity_of(self, component):
        return None if component == "etcd" else f"holdfast://{FULL}/{component}/*"

    def shown(self, pod, port, ca):
        """The certificate that a port shows now, to one who has a certificate too; verified."""
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        mount = self.machine.of("router")[0].directory / "tls"
        context.load_cert_chain(mount / "tls.crt", mount / "tls.key")
        with socket.create_connection((pod.address, port), 20) as plain, context.wrap_socket(plain) as session:
            return ssl.DER_cert_to_PEM_cert(session.getpeercert(binary_form=True))

    def test_certificates_are_replaced_without_a_restart(self):
        chart = Authority(self.directory, "chart", self.machine.find("Secret", f"{FULL}-ca")["data"])
        load = self.loaded("certificates")
        pids = {pod.name: pod.process.pid for pod in self.machine.pods}
        data = {component: chart.issue(self.names_of(component), self.identity_of(component))
                for component in ("node", "router", "coordinator", "etcd")}
        self.rotate(data, encoded(chart.cert.read_bytes()))
        for component, port in (("node", 7401), ("node", 7402), ("coordinator", 7301), ("etcd", 2379)):
            expected = ssl.PEM_cert_to_DER_cert(base64.b64decode(data[component]["tls.crt"]).decode())
            for pod in self.machine.of(component):
                wait_for(f"{pod.name} shows the new one at {port}", READY_S, lambda p=pod, n=port, e=expected:
                         ssl.PEM_cert_to_DER_cert(self.shown(p, n, chart.cert)) == e)
        self.assertEqual({pod.name: pod.process.pid for pod in self.machine.pods}, pids)
        for pod in self.processes():
            self.assertLess(pod.metrics()["holdfast_certificate_expires_seconds"], time.time() + 3 * 86400)
        self.roll(self.machine.of("node")[0])  # Every link to it is a new one.
        self.finish(load)
        self.call_passes()

    def restart_etcd(self):
        """It reads ca.crt when it starts, and then alone."""
        for pod in self.machine.of("etcd"):
            pod.stop()
            pod.start()
            pod.wait_ready()

    def test_a_new_ca_takes_over_in_three_rounds(self):
        """UPGRADING.md, "Certificates"."""
        old = Authority(self.directory, "old", self.machine.find("Secret", f"{FULL}-ca")["data"])
        new = Authority(self.directory, "new")
        components = ("node", "router", "coordinator", "etcd")
        load = self.loaded("ca")
        both = encoded(old.cert.read_bytes() + new.cert.read_bytes())
        self.rotate({component: {} for component in components}, both)
        self.restart_etcd()
        self.rotate({component: new.issue(self.names_of(component), self.identity_of(component)) for component in components}, both)
        self.rotate({component: {} for component in components}, encoded(new.cert.read_bytes()))
        self.restart_etcd()
        for pod in reversed(self.machine.of("node")):
            self.roll(pod)
        for port in (7401, 7402):  # Under the new CA, and not under the old one.
            self.shown(self.machine.of("node")[0], port, new.cert)
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.shown(self.machine.of("node")[0], port, old.cert)
        self.finish(load)
        self.call_passes()


if __name__ == "__main__":
    main(__file__)
