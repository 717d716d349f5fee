"""
Crowds of connections and handshakes, against a real cluster under TLS: each port keeps room for
those who prove themselves, and other callers hardly notice. Attackers run in processes of their own.
"""

import contextlib
import http.client
import json
import re
import resource
import select
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time
import unittest

from client import Client, uuid7
from cluster import BIN, SANITIZED, Cluster, ClusterTest, die_with_parent, free_port, wait_for
from hostile import machine, post

CROWD = 10_050            # On the public port; as in the issue.
CROWD_MIN = 2_000         # With fewer descriptors than that the test says nothing.
BARE = 1_100              # On a port for links.
HALF_OPEN = 1_000         # On a metrics port.
HELLOS_PER_S = 1_000
BURST_MAX = 50            # Of them at once, when the machine was busy.
BEGIN_S = 60
GROWTH_MAX = 64 << 20
# Two cores carry the cluster, the attacker and this test, so a turn of the scheduler is in each figure: one phase is
# up to four times another (tests/bench/hostile_ratio.py measures it). So medians of phases are compared with quiet
# ones and what the machine itself took in the same phases, together; below the floor the scheduler is measured.
P99_FLOOR_S = 0.150 if SANITIZED else 0.050
ROUNDS = 3
CALM_S, ATTACK_S = 2.5, 4
OTHER_ADDRESS = "127.0.2.1"
TRIES_MAX = 10            # Of a scraper at the attacker's own address.
PROFILE, BALANCES = "/holdfast.v1.ProfileService/GetProfile", "/holdfast.v1.LedgerService/GetBalances"
GRANT = "/holdfast.v1.LedgerService/Grant"
LINES_A_CAUSE = 2         # A minute may end within the test.
TLS_START = b"\x16\x03\x01\x02\x00\x01"
REFUSED = re.compile(r"connection\.refused .*?port=(\w+) cause=(\w+)")


# ---- attackers: `python3 hostile_connections_test.py attack KIND PORT COUNT`, until it is killed ----


def client_hello():
    """A ClientHello as a client's first bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def connect_from(number, port, addresses):
    sock = socket.socket()
    sock.setblocking(False)
    if addresses > 1:
        sock.bind((f"127.0.1.{1 + number % addresses}", 0))
    with contextlib.suppress(BlockingIOError):
        sock.connect(("127.0.0.1", port))
    return sock


def say(sock, data):
    with contextlib.suppress(OSError):
        sock.send(data)


def crowd(port, count, addresses, first):
    """So many connections at once, each with a few bytes; those that were closed are opened again."""
    socks, silent, number = [], [], 0
    while True:
        begun = time.monotonic()
        for sock in silent:  # Connected by now.
            say(sock, first)
        silent = []
        while len(socks) < count and time.monotonic() < begun + 0.1:
            silent.append(connect_from(number, port, addresses))
            socks.append(silent[-1])
            number += 1
        if len(socks) >= count:
            print("full", flush=True)
            for sock in socks[:count // 20]:
                sock.close()
            del socks[:count // 20]
        time.sleep(0.05)


def hello_flood(port, rate):
    """So many handshakes begun each second, none of which goes on."""
    hello, socks, number = client_hello(), [], 0
    begun = time.monotonic()
    while True:
        for _ in range(BURST_MAX):
            if number >= (time.monotonic() - begun) * rate:
                break
            socks.append(connect_from(number, port, 1))
            number += 1
            for sock in socks[-3:-2]:
                say(sock, hello)
        for sock in socks[:-400]:
            sock.close()
        del socks[:-400]
        if number > rate / 4 or time.monotonic() > begun + 2:
            print("full", flush=True)
        time.sleep(0.005)


def attack(kind, port, count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
    if kind == "hellos":
        hello_flood(port, count)
    crowd(port, count, {"one-byte": 1, "one-byte-many": 8}.get(kind, 1),
          {"tls-half": TLS_START, "half-open": b"GET /metrics HTTP/1.1\r\nX: "}.get(kind, b"\x16")
          if kind != "bare" else b"")


@contextlib.contextmanager
def attacked(kind, port, count):
    """An attacker at work; what is inside begins once its crowd is complete."""
    with subprocess.Popen(["nice", sys.executable, __file__, "attack", kind, str(port), str(count)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          preexec_fn=die_with_parent) as attacker:
        try:
            ready, _, _ = select.select([attacker.stdout], [], [], BEGIN_S)
            assert ready and attacker.stdout.readline() == b"full\n", "the attacker failed"
            threading.Thread(target=attacker.stdout.read, daemon=True).start()
            yield
            assert attacker.poll() is None, "the attacker ended early"
        finally:
            attacker.kill()


# ---- callers ----


class TlsCaller:
    """Grants over one connection under TLS, and how long each took."""

    def __init__(self, port, ca, session=None, source=None):
        self.context = ssl.create_default_context(cafile=str(ca))
        self.context.check_hostname = False
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.port, self.source = port, source
        self.sock = self.connect(session)

    def connect(self, session=None):
        plain = socket.create_connection(("127.0.0.1", self.port), 20,
                                         (self.source, 0) if self.source else None)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(plain, session=session)

    def grant(self, player="watched"):
        self.sock.sendall(post(GRANT, {"playerId": player, "opId": uuid7(), "authority":
                                       "system:payments", "currencies": {"gold": 1}}))
        came = b""
        while b"}" not in came.partition(b"\r\n\r\n")[2]:
            data = self.sock.recv(1 << 16)
            assert data, "the connection was closed"
            came += data
        assert came.startswith(b"HTTP/1.1 200 "), came
        return came

    def p99(self, for_s):
        latencies, end = [], time.monotonic() + for_s
        while time.monotonic() < end:
            begun = time.monotonic()
            self.grant()
            latencies.append(time.monotonic() - begun)
            time.sleep(0.01)
        return sorted(latencies)[int(len(latencies) * 0.99)]

    def close(self):
        self.sock.close()


class Phases:
    """The p99 of a caller in quiet phases and in attacked ones, and the machine's own in those."""

    def __init__(self, caller):
        self.caller, self.quiet, self.attacked, self.machine = caller, [], [], []
        machine()

    def be_quiet(self):
        self.quiet.append(self.caller.p99(CALM_S))

    def be_attacked(self):
        begun = time.monotonic()
        self.attacked.append(self.caller.p99(ATTACK_S))
        self.machine.append(machine().p99_s(begun))

    def judge(self, test, what, times):
        quiet, attacked, own = (statistics.median(phases) for phases in (self.quiet, self.attacked, self.machine))
        print(f"{what}: p99 {quiet * 1e3:.1f} -> {attacked * 1e3:.1f} ms, the machine's {own * 1e3:.1f} ms", flush=True)
        test.assertLess(attacked, max(times * (quiet + own), P99_FLOOR_S))


class HostileConnections(ClusterTest):
    @classmethod
    def plan(cls):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        cls.crowd = min(CROWD, hard - 1_000)
        cluster = Cluster(nodes=3, shards=8)
        cls.public = cluster.dir / "public"
        subprocess.run([BIN / "holdfast", "certs", "--dir", cls.public, "--names", "public"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.ca = cls.public / "ca.crt"
        cls.tls_port = free_port()
        cls.tls_router = cluster.plan("router", "router-tls", {
            "listen": f"127.0.0.1:{cls.tls_port}", "access": "open",
            "public-tls-cert": cls.public / "public.crt",
            "public-tls-key": cls.public / "public.key"})
        processes = cluster.processes
        cluster.processes = lambda: [cls.tls_router, *processes()]
        return cluster

    def setUp(self):
        if self.crowd < CROWD_MIN:
            self.skipTest(f"only {self.crowd} descriptors")
        wait_for("the second router to be ready", self.tls_router.ready)
        wait_for("all shards to be served", self.cluster.all_serving)
        self.epochs = {s.get("shard", 0): s["epoch"] for s in self.client.shards()}

    def tearDown(self):
        for process in self.cluster.processes():
            self.assertTrue(process.running(), process.name)
            self.assert_log_is_calm(process)
        self.assertEqual(self.epochs, {s.get("shard", 0): s["epoch"] for s in self.client.shards()},
                         "there was a failover")

    def assert_log_is_calm(self, process):
        told = REFUSED.findall(process.log())
        for cause in set(told):
            self.assertLessEqual(told.count(cause), LINES_A_CAUSE, f"{process.name}: {cause}")

    def port_of(self, process, option):
        return int(next(word for word in process.command
                        if word.startswith(f"--{option}=")).rsplit(":", 1)[1])

    def refused(self, process, port, *reasons):
        metrics = process.metrics()
        return sum(metrics[f'holdfast_connections_refused_total{{port="{port}",reason="{reason}"}}']
                   for reason in reasons)

    def caller(self, **options):
        caller = TlsCaller(self.tls_port, self.ca, **options)
        self.addCleanup(caller.close)
        return caller

    # ---- the public port ----

    def watch_crowd(self, kind, reason):
        """New callers come in and an old one is not put out, while the crowd is there."""
        phases = Phases(self.caller())
        phases.be_quiet()
        before = self.tls_router.resident_bytes()
        with attacked(kind, self.tls_port, self.crowd):
            begun = time.monotonic()
            for number in range(20):
                caller = TlsCaller(self.tls_port, self.ca)
                caller.grant(f"new-{number}")
                caller.close()
            took = (time.monotonic() - begun) / 20
            for _ in range(ROUNDS):
                phases.be_attacked()
            growth = self.tls_router.resident_bytes() - before
        print(f"{kind}: a new caller {took * 1e3:.1f} ms, grew by {growth / 2**20:.1f} MiB", flush=True)
        self.assertGreater(self.refused(self.tls_router, "public", reason), 0)
        self.assertLess(growth, GROWTH_MAX)
        phases.judge(self, kind, 3)
        self.assertLess(took, 2)

    def test_crowd_of_one_address(self):
        self.watch_crowd("one-byte", "address_cap")

    def test_crowd_of_many_addresses(self):
        self.watch_crowd("one-byte-many", "full")

    def test_callers_that_come_back_resume_their_session(self):
        first = self.caller()
        first.grant()
        session = first.sock.session
        self.assertTrue(session.has_ticket)
        second = self.caller()
        second.sock.close()
        second.context = first.context
        second.sock = second.connect(session)
        self.assertTrue(second.sock.session_reused)
        second.grant()
        self.assertGreater(self.tls_router.metrics()[
            'holdfast_handshakes_resumed_total{port="public"}'], 0)

    def test_what_is_answered_behind_a_long_answer_leaves_too(self):
        """Over TLS a long answer leaves in turns; the next requests of its connection are answered meanwhile."""
        player, caller = f"big-{uuid7()}", self.caller()
        for section in range(5):
            self.client.update(player, None, {"name": f"s{section}", "replace": json.dumps("x" * 240_000)})
        requests = [post(PROFILE, {"playerId": player, "include": ["sections"]})] * 6
        requests += [post(BALANCES, {"playerId": player})]
        for pause_s in (0, 0.2, 0.5, 2):  # Its socket is full, and more is answered before it reads on.
            caller.sock.sendall(b"".join(requests))
            time.sleep(pause_s)
            came = b""
            while came.count(b"HTTP/1.1 200 ") < len(requests) or not came.endswith(b"}"):
                data = caller.sock.recv(1 << 16)
                self.assertTrue(data, "the connection was closed")
                came += data
            self.assertEqual(came.count(b"HTTP/1.1 "), len(requests))

    def test_flood_of_client_hellos(self):
        phases, shares = Phases(self.caller()), []
        spent = "holdfast_handshake_seconds_total{port=\"public\"}"
        for _ in range(ROUNDS):
            phases.be_quiet()
            with attacked("hellos", self.tls_port, HELLOS_PER_S):
                before, begun = self.tls_router.metrics()[spent], time.monotonic()
                phases.be_attacked()
                shares.append((self.tls_router.metrics()[spent] - before) / (time.monotonic() - begun))
                stranger = self.caller(source=OTHER_ADDRESS)  # Its address has tokens of its own.
                stranger.grant()
        share = statistics.median(shares)
        print(f"hellos: {share:.0%} of the loop", flush=True)
        phases.judge(self, "hellos", 2)
        self.assertLess(share, 0.4)

    # ---- links ----

    def test_bare_connections_to_the_ports_for_links(self):
        """A router that comes back finds its way in to nodes and coordinator, and peers stay."""
        node, coordinator = self.cluster.nodes[0], self.cluster.coordinators[0]
        ports = [self.port_of(node, "listen"), self.port_of(node, "peer-listen"),
                 self.port_of(coordinator, "listen")]
        with contextlib.ExitStack() as stack:
            for port, kind in zip(ports, ("bare", "tls-half", "bare")):
                stack.enter_context(attacked(kind, port, BARE))
            self.cluster.router.kill()
            self.cluster.router.start()
            wait_for("the router to be ready", self.cluster.router.ready, 30)
            client = Client(self.cluster.endpoint)
            for number in range(40):  # All shards, so all owners.
                client.settle("LedgerService/Grant", {
                    "playerId": f"links-{number}", "opId": uuid7(), "authority": "system:payments",
                    "currencies": {"gold": 1}}, 30)
            self.assertEqual(self.cluster.router.metrics()["holdfast_router_links_ready"], 3)
            time.sleep(3)  # Longer than an owner's silence may last.
        self.client.drop()
        for process in (node, coordinator):
            self.assertGreater(self.refused(process, "links", "address_cap", "timeout"), 500)
            metrics = process.metrics()
            self.assertLessEqual(metrics['holdfast_connections_unproven{port="links"}'], 32)

    def test_flood_of_client_hellos_on_a_node(self):
        phases = Phases(self.caller())
        for _ in range(ROUNDS):
            phases.be_quiet()
            with attacked("hellos", self.port_of(self.cluster.nodes[0], "listen"), HELLOS_PER_S):
                phases.be_attacked()
        phases.judge(self, "hellos on a node", 2)

    # ---- metrics ----

    def scrape(self, process, path, source=""):
        conn = http.client.HTTPConnection("127.0.0.1", process.metrics_port, 20, source_address=(source, 0))
        try:
            conn.request("GET", path)
            answer = conn.getresponse()
            return answer.status, answer.read().decode()
        finally:
            conn.close()

    def scrape_beside(self, process):
        """From the attacker's own address: the newest of its connections put out the oldest that have not proved
        themselves, so a scraper may have to come again."""
        for _ in range(TRIES_MAX):
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.scrape(process, "/metrics")
        return self.fail(f"{process.name}: none of {TRIES_MAX} scrapes was answered")

    def test_half_open_clients_of_the_metrics_ports(self):
        for process in (self.cluster.nodes[0], self.cluster.router, self.cluster.coordinators[0]):
            with attacked("half-open", process.metrics_port, HALF_OPEN):
                for _ in range(20):
                    status, text = self.scrape(process, "/metrics", OTHER_ADDRESS)  # Each is answered.
                    self.assertEqual(status, 200)
                    self.assertIn("holdfast_build_info", text)
                    self.assertEqual(self.scrape(process, "/readyz", OTHER_ADDRESS)[0], 200)
                    self.assertEqual(self.scrape_beside(process)[0], 200)
            self.assertGreater(self.refused(process, "metrics", "address_cap"), HALF_OPEN // 2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        attack(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    socket.setdefaulttimeout(60)
    unittest.main(verbosity=2)
