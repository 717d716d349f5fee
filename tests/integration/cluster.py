"""
Real Holdfast processes and a real etcd, for tests: started on free loopback ports with everything
in one temporary directory, stopped by process id. The directory is kept when a test fails.
"""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from as_of import dot_of
from client import Client, RpcError, Unanswered
from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("HOLDFAST_BIN", ROOT / "build/release/bin"))
SANITIZED = os.environ.get("HOLDFAST_SANITIZED", "") == "1"  # Slower by half an order.
os.environ.setdefault("TSAN_OPTIONS", f"suppressions={ROOT / 'cmake/tsan.supp'}")
PATIENCE_S = 180 if SANITIZED else 90  # How long until something is wrong; not how fast it must be.
REPORT = re.compile(r"(?:Address|Thread|Leak)Sanitizer|runtime error:")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(what, condition, patience_s=PATIENCE_S, every_s=0.03):
    """Polls until `condition` gives something true, and returns that."""
    end = time.monotonic() + patience_s
    last = None
    while True:
        try:
            found = condition()
            if found:
                return found
        except (RpcError, Unanswered, OSError, http.client.HTTPException) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience_s} s in vain for {what}; last error: {last!r}")
        time.sleep(every_s)


def print_tails(processes, lines=12, columns=300):
    """What the processes said last, short enough for a CI log: lines that are not INFO first."""
    for name, process in processes.items():
        ended = "" if process.popen is None or process.running() else f", {process.popen.poll()}"
        print(f"-- {name}{ended}: {process.log_path}", file=sys.stderr)
        said = process.log().splitlines()
        plain = [line for line in said if " INFO " not in line and '"info"' not in line]
        for line in plain[-lines:] or said[-3:]:
            print(line[:columns], file=sys.stderr)


class Process:
    """One child process, with its output in a file."""

    def __init__(self, name, command, directory, metrics_port=0, host="127.0.0.1"):
        self.name, self.command = name, [str(word) for word in command]
        self.metrics_port, self.host = metrics_port, host
        self.environment = None  # As this process's.
        self.log_path = pathlib.Path(directory) / f"{name}.log"
        self.popen = None

    def start(self):
        assert self.popen is None or self.popen.poll() is not None, f"{self.name} runs already"
        with open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment,
                                          stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        return self

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen is not None and self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        """SIGKILL, and waits until it is gone."""
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def stop(self, patience_s=60):
        """SIGTERM; its exit code."""
        if self.running():
            self.popen.send_signal(signal.SIGCONT)
            self.popen.terminate()
        try:
            return self.popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not stop within {patience_s} s") from None

    def wait_exit(self, patience_s=PATIENCE_S):
        return self.popen.wait(patience_s)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def get(self, path):
        """(status, text) of the operations port."""
        conn = http.client.HTTPConnection(self.host, self.metrics_port, timeout=5)
        try:
            conn.request("GET", path)
            answer = conn.getresponse()
            return answer.status, answer.read().decode()
        finally:
            conn.close()

    def ready(self):
        return self.get("/readyz")[0] == 200

    def metrics(self):
        """{series with labels: value}"""
        lines = self.get("/metrics")[1].splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in lines if line and line[0] != "#"}


class Cluster:
    """
    etcd, coordinators, nodes and a router, each with options of the test's choosing. Nothing is
    restarted by itself. Use as a context manager, or start and stop.
    """

    def __init__(self, nodes=3, coordinators=1, shards=16, options=None, currencies="gold,gems"):
        options = options or {}
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-it."))
        self.cluster = "it"
        self.certs = self.dir / "certs"
        self.nodes, self.coordinators = [], []
        self.make_certs("client")
        self.etcd = self.plan_etcd()
        for number in range(1, coordinators + 1):
            name = "coordinator" if coordinators == 1 else f"coordinator-{number}"
            self.coordinators.append(self.plan("coordinator", name, {
                "listen": self.address(name), "currencies": currencies,
                "shard-count": shards, "replication-factor": min(nodes, 3),
            } | options.get("coordinator", {})))
        for number in range(1, nodes + 1):
            name = f"node-{number}"
            self.nodes.append(self.plan("node", name, {
                "listen": self.address(name), "peer-listen": self.address(name),
                "data-dir": self.dir / f"node-{number}", "zone": f"zone-{number}",
                "log-segment-size": "4MiB",
            } | options.get("node", {}) | options.get(f"node-{number}", {})))
        listen = self.address("router")
        self.port = int(listen.split(":")[1])
        self.router = self.plan("router", "router", {
            "listen": listen, "access": "open", "player-rate": 0,  # Tests try one player hard.
        } | options.get("router", {}))
        self.endpoint = f"http://{listen}"
        self.client = Client(self.endpoint)

    def make_certs(self, *who):
        """Certificates of the cluster's CA: "node/node-1", "client", ... (holdfast certs)."""
        subprocess.run([BIN / "holdfast", "certs", "--dir", self.certs, "--cluster", self.cluster,
                        "--names", ",".join(who)], check=True, stdout=subprocess.DEVNULL)

    def host_of(self, _name):
        """Where a process listens; chaos runs give each host an address of its own."""
        return "127.0.0.1"

    def on_host(self, _name, command):
        """The command that starts `command` there."""
        return command

    def address(self, name):
        return f"{self.host_of(name)}:{free_port()}"

    def plan_etcd(self):
        self.etcd_url = f"http://{self.address('etcd')}"
        peers = f"http://{self.address('etcd')}"
        return Process("etcd", self.on_host("etcd", [
            "etcd", "--data-dir", self.dir / "etcd", "--listen-client-urls", self.etcd_url,
            "--advertise-client-urls", self.etcd_url, "--listen-peer-urls", peers,
            "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
            "--logger", "zap", "--unsafe-no-fsync" if etcd_can_skip_fsync() else "--log-level=warn",
        ]), self.dir)

    def plan(self, kind, name, options):
        port = free_port()
        self.make_certs(f"{kind}/{name}")
        command = [BIN / f"holdfast-{kind}"]
        options = {"name": name, "cluster": self.cluster, "etcd": self.etcd_url,
                   "metrics-host": self.host_of(name), "metrics-port": port, "tls-ca": self.certs / "ca.crt",
                   "tls-cert": self.certs / f"{name}.crt",
                   "tls-key": self.certs / f"{name}.key"} | options
        command += [f"--{option}={value}" for option, value in options.items()]
        return Process(name, self.on_host(name, command), self.dir, port, self.host_of(name))

    def processes(self):
        return [self.router, *self.coordinators, *self.nodes, self.etcd]

    def start(self):
        for process in reversed(self.processes()):
            process.start()
        return self.wait_ready()

    def wait_ready(self):
        wait_for("the router to be ready", self.router.ready)
        return self

    def stop(self, keep=False):
        unclean = []
        if keep:
            self.print_logs()
        for process in self.processes():
            if SANITIZED and process is not self.etcd and process.running():
                if process.stop(60) != 0:  # Leaks are found at the exit.
                    unclean.append(process.name)
            elif process.popen is not None:
                process.kill()
            # One that was killed by the test may have said something before.
            if SANITIZED and REPORT.search(process.log()) and process.name not in unclean:
                unclean.append(process.name)
        if keep or unclean:
            print(f"logs and data are in {self.dir}; not stopped with 0: {unclean}", file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        assert not unclean, f"not stopped with 0: {unclean}"

    def print_logs(self):
        print_tails({process.name: process for process in self.processes()})

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop(keep=True)
            raise

    def __exit__(self, kind, error, trace):
        self.stop(keep=kind is not None)

    # What tests ask of a cluster.

    def node_of(self, replica_id):
        name = next(n["name"] for n in self.client.nodes() if n["replicaId"] == int(replica_id))
        return next(process for process in self.nodes if process.name == name)

    def shard_of(self, player):
        """The shard, found by whose log grows; costs a grant of one."""
        before = {s.get("shard", 0): max_index(s) for s in self.client.shards()}
        self.client.grant(player, 1)
        return wait_for("the grant's log entry", lambda: [
            s.get("shard", 0) for s in self.client.shards()
            if max_index(s) > before[s.get("shard", 0)]])[0]

    def owner_of(self, player):
        """(node process, dot) that owns the player, by a write of 1 gold."""
        dot = dot_of(self.client.grant(player, 1))
        return self.node_of(dot["owner"]), dot

    def wait_converged(self, patience_s=PATIENCE_S, nodes=None):
        """Every replica of every shard (or, if some are down, of so many nodes) has applied all
        there is, to equal outcome hashes."""
        wait_for("all replicas to converge", lambda: converged(self.client.shards(), nodes),
                 patience_s)

    def wait_documents_equal(self, patience_s=PATIENCE_S):
        """Until each node says, by its metrics, that all members have all documents and presences."""
        def equal(node):
            metrics = node.metrics()
            return metrics.get("holdfast_node_documents_apart_seconds") == 0 and \
                metrics.get("holdfast_node_documents_syncing") == 0
        wait_for("all members to be equal", lambda: all(equal(node) for node in self.nodes), patience_s)

    def all_serving(self):
        shards = self.client.shards()  # None before the router knows the cluster.
        return len(shards) > 0 and all(s.get("serving") for s in shards)


def max_index(shard):
    return max(int(r.get("logIndex", 0)) for r in shard["replicas"])


def converged(shards, replicas_wanted=None):
    for shard in shards:
        replicas = [r for r in shard["replicas"]
                    if replicas_wanted is None or r["state"] != "unreachable"]
        if not shard.get("serving") or len(replicas) != (replicas_wanted or len(shard["members"])):
            return False
        if any(r["state"] != "ok" for r in replicas):
            return False
        # Absent is 0: a replica that has just come back.
        if len({(r["outcomeHash"], r.get("appliedIndex")) for r in replicas}) != 1:
            return False
        if any(r.get("appliedIndex") != r.get("logIndex") for r in replicas):
            return False
    return True


def etcd_can_skip_fsync():
    text = subprocess.run(["etcd", "--help"], capture_output=True, text=True, check=False)
    return "--unsafe-no-fsync" in text.stdout + text.stderr


class LogFile:
    """The output of a process that `holdfast dev` started, for print_tails."""

    popen = None

    def __init__(self, path):
        self.log_path = path

    def running(self):
        return False

    def log(self):
        return self.log_path.read_text(errors="replace")


class DevCluster:
    """A cluster by `holdfast dev`, which starts dead processes again."""

    def __init__(self, *arguments):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-dev."))
        self.data = self.dir / "data"
        self.process = Process("holdfast-dev", [
            BIN / "holdfast", "dev", "--data", self.data, "--port", 0, *arguments], self.dir)

    def start(self):
        self.process.start()
        wait_for("cluster.json to say ready", lambda: self.state().get("ready"))
        self.client = Client(self.state()["endpoint"])
        return self

    def state(self):
        path = self.data / "cluster.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def stop(self, keep=False):
        if self.process.popen is not None:
            with contextlib.suppress(AssertionError):
                self.process.stop()
        if keep:
            print(f"logs and data are in {self.dir}", file=sys.stderr)
            logs = {log.stem: LogFile(log) for log in sorted(self.data.glob("*.log"))}
            print_tails({"holdfast-dev": self.process} | logs)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop(keep=True)
            raise

    def __exit__(self, kind, error, trace):
        self.stop(keep=kind is not None)


class ClusterTest(unittest.TestCase):
    """One cluster for all tests of the class; `plan` says which."""

    @classmethod
    def plan(cls):
        return Cluster()

    @classmethod
    def setUpClass(cls):
        cls.failed = False
        cls.cluster = cls.plan()
        cls.addClassCleanup(lambda: cls.cluster.stop(keep=cls.failed))
        try:
            cls.cluster.start()
        except BaseException:
            cls.failed = True
            raise
        cls.client = cls.cluster.client

    def run(self, result=None):
        before = len(result.errors) + len(result.failures)
        super().run(result)
        if len(result.errors) + len(result.failures) > before:
            type(self).failed = True
        return result

    def refused(self, code, function, *arguments, **named):
        """The RpcError that the call must end with."""
        with self.assertRaises(RpcError) as caught:
            function(*arguments, **named)
        error = caught.exception
        self.assertEqual(error.code, code, str(error))
        self.assertTrue(error.message, "an error without a message")
        return error
