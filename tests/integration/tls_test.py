"""
The public port under TLS: stock clients with right and wrong keys, certificates and schemes, and
certificates replaced under running processes.
"""

import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import time
import unittest

from cluster import BIN, ROOT, Cluster, ClusterTest, free_port, wait_for
from client import RpcError
from python_env import python_of

CONFORMANCE = ROOT / "tests/conformance"
EXPIRED_DAYS = 500  # A certificate is for 397.


def holdfast_certs(directory, *names, days_ago=0):
    environment = dict(os.environ)
    if days_ago > 0:
        library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        environment |= {"LD_PRELOAD": str(library), "FAKETIME": f"-{days_ago}d"}
    subprocess.run([BIN / "holdfast", "certs", "--dir", directory, "--names", ",".join(names)],
                   check=True, stdout=subprocess.DEVNULL, env=environment)


def serial_of(port, ca):
    """The serial number of the certificate that a port shows now."""
    context = ssl.create_default_context(cafile=str(ca))
    context.check_hostname = False
    with socket.create_connection(("127.0.0.1", port), 20) as plain, \
            context.wrap_socket(plain) as secure:
        return secure.getpeercert()["serialNumber"]


class TlsTest(ClusterTest):
    @classmethod
    def plan(cls):
        cluster = Cluster(nodes=1, shards=4)
        cls.public = cluster.dir / "public"
        cls.ca = cls.public / "ca.crt"
        holdfast_certs(cls.public, "first", "second")
        holdfast_certs(cls.public, "old", days_ago=EXPIRED_DAYS)
        for suffix in ("crt", "key"):
            shutil.copy(cls.public / f"first.{suffix}", cls.public / f"used.{suffix}")
        cls.routers = [cls.plan_router(cluster, "router-used", "used"),
                       cls.plan_router(cluster, "router-old", "old")]
        return cluster

    @classmethod
    def plan_router(cls, cluster, name, cert):
        router = cluster.plan("router", name, {
            "listen": f"127.0.0.1:{free_port()}", "access": "keys",
            "public-tls-cert": cls.public / f"{cert}.crt",
            "public-tls-key": cls.public / f"{cert}.key"})
        router.public_port = int(next(word for word in router.command
                                      if word.startswith("--listen=")).rsplit(":", 1)[1])
        processes = cluster.processes
        cluster.processes = lambda: [router, *processes()]
        return router

    def setUp(self):
        self.used, self.old = self.routers
        for router in self.routers:
            wait_for(f"{router.name} to be ready", router.ready)

    @classmethod
    def issue(cls, name, scopes):
        return subprocess.run(
            [BIN / "holdfast", "key", "issue", name, "--scopes", scopes, "--cluster", "it",
             "--etcd", cls.cluster.etcd_url], check=True, capture_output=True,
            text=True).stdout.strip()

    def situations(self):
        """What each client is put into; the player's name says what came of it."""
        url = f"https://localhost:{self.used.public_port}"
        right, reader = self.issue("payments", "payments"), self.issue("reader", "read")
        common = {"ca": str(self.ca), "url": url, "key": right}
        situations = {
            "right key": {},
            "no key": {"key": ""},
            "wrong key": {"key": "hf_" + "0" * 64},
            "missing scope": {"key": reader},
            "expired certificate": {"url": f"https://localhost:{self.old.public_port}"},
            "plain HTTP on the TLS port": {"url": url.replace("https", "http")},
            "another CA": {"ca": str(self.cluster.certs / "ca.crt")},
        }
        wait_for("the keys to be known", lambda: all(
            self.curl(common | {"key": key, "player": "known"}, "GetBalances")[0] != 401
            for key in (right, reader)))
        return [common | {"name": name, "player": "tls-" + name.replace(" ", "-")} | more
                for name, more in situations.items()]

    def curl(self, situation, method="Grant", *options):
        """(status, body, HTTP version, exit code, what curl says)"""
        request = {"playerId": situation["player"]}
        if method == "Grant":
            request |= {"opId": f"admin:{situation['player']}-curl",
                        "authority": "system:payments",
                        "currencies": {"gold": 5}}
        key = ["-H", f"Authorization: Bearer {situation['key']}"] if situation["key"] else []
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "20", "--cacert", situation["ca"], *key,
             "-H", "Content-Type: application/json", "-d", json.dumps(request),
             "-w", "\n%{http_code} %{http_version}", *options,
             f"{situation['url']}/holdfast.v1.LedgerService/{method}"],
            capture_output=True, text=True, check=False)
        body, _, end = done.stdout.rpartition("\n")
        status, version = end.split()
        return int(status), body, version, done.returncode, done.stderr

    def judge(self, name, client, result):
        code, message = result["code"], result["message"]
        with self.subTest(situation=name, client=client, message=message):
            if name == "right key":
                self.assertEqual((code, message), ("ok", "gold"))
            elif name in ("no key", "wrong key"):
                self.assertEqual(code, "unauthenticated")
                self.assertIn("no API key" if name == "no key" else "is not known", message)
            elif name == "missing scope":
                self.assertEqual(code, "permission_denied")
                self.assertRegex(message, r"scopes game, payments.* this one has: read")
            elif name == "expired certificate":
                self.assertIn(code, ("unavailable", "internal", "unknown"))
                self.assertRegex(message, r"(?i)expired|CERTIFICATE_VERIFY_FAILED")
            else:
                self.assertIn(code, ("unavailable", "internal", "unknown", "invalid_argument"))

    def judge_all(self, output, clients):
        results = json.loads(output)
        self.assertEqual(len(results), 7)
        for name, answers in results.items():
            self.assertEqual(len(answers), clients)
            for client, result in answers.items():
                self.judge(name, client, result)

    def test_connect_node_and_grpc_js(self):
        subprocess.run([CONFORMANCE / "generate"], check=True)
        done = subprocess.run(["node", CONFORMANCE / "tls_calls.mjs",
                               json.dumps(self.situations())], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.judge_all(done.stdout, 5)

    def test_pythons_grpcio(self):
        descriptors = self.cluster.dir / "idl.pb"
        subprocess.run(["protoc", f"--proto_path={ROOT / 'idl'}", "--include_imports",
                        f"--descriptor_set_out={descriptors}", "holdfast/v1/ledger.proto"],
                       check=True)
        done = subprocess.run([python_of(pathlib.Path(__file__).parent), CONFORMANCE / "grpcio_calls.py", descriptors,
                               json.dumps(self.situations())], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.judge_all(done.stdout, 1)

    def test_curl(self):
        situations = {situation["name"]: situation for situation in self.situations()}
        for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
            self.assertEqual(self.curl(situations["right key"], "Grant", option)[::2][:2],
                             (200, version))
        status, body, *_ = self.curl(situations["wrong key"])
        self.assertEqual((status, json.loads(body)["code"]), (401, "unauthenticated"))
        status, body, *_ = self.curl(situations["missing scope"])
        self.assertEqual((status, json.loads(body)["code"]), (403, "permission_denied"))
        *_, code, said = self.curl(situations["expired certificate"])
        self.assertEqual(code, 60)
        self.assertIn("expired", said)
        *_, code, said = self.curl(situations["another CA"])
        self.assertEqual(code, 60)
        status, body, *_ = self.curl(situations["plain HTTP on the TLS port"])
        self.assertEqual((status, body), (400, "this port speaks TLS: call it with https, not http\n"))
        # The other way about.
        plain = situations["right key"] | {"url": f"https://localhost:{self.cluster.port}"}
        self.assertNotEqual(self.curl(plain)[3], 0)

    def test_the_command_line(self):
        situation = self.situations()[0]
        done = subprocess.run([BIN / "holdfast", "status", "--endpoint", situation["url"],
                               "--ca", self.ca, "--key", situation["key"]], capture_output=True,
                              text=True, check=False)
        self.assertIn("node-1", done.stdout, done.stderr)

    def replace(self, directory, used, name):
        for suffix in ("key", "crt"):
            shutil.copy(directory / f"{name}.{suffix}", directory / "next")
            os.rename(directory / "next", directory / f"{used}.{suffix}")

    def test_a_new_certificate_is_shown_without_a_restart(self):
        situation = self.situations()[0]
        before = serial_of(self.used.public_port, self.ca)
        context = ssl.create_default_context(cafile=str(self.ca))
        with socket.create_connection(("localhost", self.used.public_port), 20) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as kept:
            self.replace(self.public, "used", "second")
            wait_for("the new certificate",
                     lambda: serial_of(self.used.public_port, self.ca) != before)
            # Who was connected stays so.
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200 OK", kept.recv(4096))
        self.assertEqual(self.curl(situation)[0], 200)
        pid = self.used.pid
        self.replace(self.public, "used", "old")  # By mistake: it is served, and clients refuse it.
        wait_for("the expired certificate", lambda: self.curl(situation)[3] == 60)
        (self.public / "used.crt").write_text("nonsense")
        wait_for("the mistake to be told", lambda: "tls.not_reloaded" in self.used.log())
        self.replace(self.public, "used", "first")
        wait_for("the first certificate", lambda: self.curl(situation)[0] == 200)
        self.assertTrue(self.used.running() and self.used.pid == pid)
        self.assertGreater(self.used.metrics()["holdfast_router_public_certificate_expires_seconds"],
                           time.time())

    def test_links_between_processes_take_new_certificates(self):
        certs = self.cluster.certs
        node, = self.cluster.nodes
        self.cluster.client.grant("links", 1)
        running = [self.cluster.router, node, *self.cluster.coordinators]
        self.cluster.make_certs("node", "router", "coordinator")  # The role alone: any name.
        for process in running:
            kind = process.command[0].rsplit("holdfast-", 1)[1]
            for end in ("key", "crt"):
                shutil.copy(certs / f"{kind}.{end}", certs / "new")
                os.rename(certs / "new", certs / f"{process.name}.{end}")
        wait_for("all to have read them",
                 lambda: all("tls.reloaded" in process.log() for process in running))
        node.kill()
        node.start()  # Every link to it is a new one.

        def granted():
            try:
                return self.cluster.client.grant("links", 1, "admin:links")
            except RpcError as error:
                self.assertIn(error.code, ("UNAVAILABLE", "OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED",
                                           "THROTTLED"))
                return None

        wait_for("a grant over new links", granted)


if __name__ == "__main__":
    unittest.main()
