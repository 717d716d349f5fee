"""What hostile clients are made of: raw sockets, HTTP/2 frames written by hand, and a watch that
proves that other callers are served and memory stays bounded meanwhile."""

import contextlib
import functools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from client import Client, uuid7
from cluster import BIN, die_with_parent, wait_for

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, _, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
ENHANCE_YOUR_CALM = 11
GRANTS_MIN = 5


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def field(name, value):
    """A header that is a literal and never indexed (RFC 7541 section 6.2.2), up to 126 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def bearer(key):
    return field(b"authorization", b"Bearer " + key.encode())


def post_headers(path="/holdfast.v1.LedgerService/GetBalances", content_type=b"application/grpc"):
    return b"".join(field(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"localhost"),
        (b":path", path.encode()), (b"content-type", content_type), (b"te", b"trailers")))


def grpc_body(message):
    return b"\0" + struct.pack(">I", len(message)) + message


def post(path, body, *headers, length=None):
    """A POST of JSON as HTTP/1.1, as bytes."""
    if isinstance(body, dict):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    if length is not False:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def issue_keys(cluster, *wanted):
    """The keys of (name, scopes); the router knows them."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HOLDFAST_")}
    environment |= {"HOLDFAST_ETCD": cluster.etcd_url, "HOLDFAST_CLUSTER": "it"}
    keys = [json.loads(subprocess.run(
        [BIN / "holdfast", "key", "issue", name, "--scopes", scopes, "-o", "json"],
        env=environment, capture_output=True, text=True, check=True).stdout)["key"]
            for name, scopes in wanted]

    def is_known(key):
        status, _, _ = Client(cluster.endpoint, key).post(
            "/holdfast.v1.LedgerService/GetBalances", '{"playerId":"stranger"}')
        return status != 401
    for key in keys:
        wait_for("the keys to be known", lambda key=key: is_known(key))
    return keys


class Raw:
    """One connection on which anything may be sent."""

    def __init__(self, port, receive_buffer=None, source=None):
        self.sock = socket.socket()
        if source is not None:  # Another caller's address, of this machine all the same.
            self.sock.bind((source, 0))
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(20)
        self.sock.connect(("127.0.0.1", port))
        self.came = b""
        self.closed = False

    def send(self, data):
        """False when the other side has closed."""
        try:
            self.sock.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def read(self, patience_s):
        """What came until the other side closed or the time was over; True if it closed."""
        end = time.monotonic() + patience_s
        while not self.closed and time.monotonic() < end:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                data = self.sock.recv(1 << 16)
            except (TimeoutError, socket.timeout):
                break
            except ConnectionResetError:
                data = b""
            self.closed = not data
            self.came += data
        return self.closed

    def read_until(self, wanted, patience_s):
        end = time.monotonic() + patience_s
        while wanted not in self.came and not self.closed and time.monotonic() < end:
            self.read(0.05)
        return wanted in self.came

    def frames(self):
        """[(type, flags, stream, payload)] of what came."""
        found, at = [], 0
        while at + 9 <= len(self.came):
            size = int.from_bytes(self.came[at:at + 3], "big")
            kind, flags = self.came[at + 3], self.came[at + 4]
            stream = int.from_bytes(self.came[at + 5:at + 9], "big") & 0x7fffffff
            found.append((kind, flags, stream, self.came[at + 9:at + 9 + size]))
            at += 9 + size
        return found

    def goaway_code(self):
        codes = [int.from_bytes(payload[4:8], "big")
                 for kind, _, _, payload in self.frames() if kind == GOAWAY and len(payload) >= 8]
        return codes[-1] if codes else None

    def reset_codes(self):
        return [int.from_bytes(payload, "big")
                for kind, _, _, payload in self.frames() if kind == RST_STREAM]

    def status(self):
        """Of the first answer in HTTP/1.1; 0 without one."""
        return int(self.came.split(b" ", 2)[1]) if self.came.startswith(b"HTTP/1.1 ") else 0

    def close(self):
        self.sock.close()


class Watch:
    """While it stands: grants of another caller must be answered soon, and the process stays small."""

    def __init__(self, cluster, latency_s_max, growth_bytes_max):
        self.cluster, self.latency_s_max = cluster, latency_s_max
        self.growth_bytes_max = growth_bytes_max
        self.stop = threading.Event()
        self.latencies_s, self.failures = [], []
        self.peak_bytes = 0

    def __enter__(self):
        self.before_bytes = self.cluster.router.resident_bytes()
        self.threads = [threading.Thread(target=self.call), threading.Thread(target=self.measure)]
        for thread in self.threads:
            thread.start()
        return self

    def call(self):
        client, player = Client(self.cluster.endpoint), f"watched-{uuid7()}"
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                client.grant(player, 1)
            except Exception as error:  # pylint: disable=broad-except
                self.failures.append(repr(error))
            self.latencies_s.append(time.monotonic() - begun)
            self.stop.wait(0.02)

    def measure(self):
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                self.peak_bytes = max(self.peak_bytes, self.cluster.router.resident_bytes())
            self.stop.wait(0.02)

    def __exit__(self, kind, error, trace):
        end = time.monotonic() + self.latency_s_max * GRANTS_MIN
        while kind is None and len(self.latencies_s) < GRANTS_MIN and time.monotonic() < end:
            time.sleep(0.01)
        self.stop.set()
        for thread in self.threads:
            thread.join()
        if kind is not None:
            return
        growth = self.peak_bytes - self.before_bytes
        print(f"{len(self.latencies_s)} grants meanwhile, slowest {max(self.latencies_s):.3f} s; "
              f"router grew by {growth / 2**20:.1f} MiB", flush=True)
        assert not self.failures, f"another caller's grants failed: {self.failures[:3]}"
        assert len(self.latencies_s) >= GRANTS_MIN, "the watch saw too little"
        assert max(self.latencies_s) < self.latency_s_max, "another caller had to wait"
        assert growth < self.growth_bytes_max, f"the router grew by {growth} bytes"


class Machine:
    """How long the machine itself takes: a byte goes through as many processes as a grant does, is flushed to disk by
    one of them, and comes back. What else runs, and what an attack takes of the processors, slows it as it slows a
    grant; what the attacked process lets others wait for does not."""

    HOPS, PAUSE_S, SAMPLES_MIN = 6, 0.02, 20
    RELAY = "import os\nwhile b := os.read(0, 1): os.write(1, b)"
    FLUSH = ("import os, tempfile\nf = tempfile.TemporaryFile()\n"
             "while b := os.read(0, 1): os.pwrite(f.fileno(), b, 0); os.fdatasync(f.fileno()); os.write(1, b)")

    def __init__(self):
        self.samples, way, self.processes = [], subprocess.PIPE, []
        for hop in range(self.HOPS):
            self.processes.append(subprocess.Popen(
                [sys.executable, "-S", "-c", self.FLUSH if hop == 0 else self.RELAY], stdin=way,
                stdout=subprocess.PIPE, preexec_fn=die_with_parent))
            way = self.processes[-1].stdout
        self.go_round()  # They run.
        threading.Thread(target=self.run, daemon=True).start()

    def go_round(self):
        os.write(self.processes[0].stdin.fileno(), b"x")
        return os.read(self.processes[-1].stdout.fileno(), 1)

    def run(self):
        while True:
            begun = time.monotonic()
            if not self.go_round():
                return
            self.samples.append((begun, time.monotonic() - begun))
            time.sleep(self.PAUSE_S)

    def part_s(self, since, part):
        took = []
        while len(took) < self.SAMPLES_MIN:
            took = sorted(took for begun, took in list(self.samples) if begun >= since)
            time.sleep(self.PAUSE_S)
        return took[int(len(took) * part)]

    def p99_s(self, since):
        return self.part_s(since, 0.99)

    def median_s(self, since):
        return self.part_s(since, 0.5)


@functools.cache
def machine():
    """Measured from the first call on."""
    return Machine()


def machine_is_busy():
    return os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)


# Two cores carry the cluster, the attack and the test, so a few turns of the scheduler are in each p99. Below these the
# scheduler is measured, and above them what the attack costs. They hide a rise from 5 to 60 ms:
# tests/bench/hostile_ratio.py measures the ratio, with enough calls.
P99_FLOOR_S = 0.15


def p99_limit_s(quiet_s, since):
    """The bar: another caller's p99, since `since`, is at most three times the quiet one and what the machine itself
    needed, together."""
    return max(3 * (quiet_s + machine().p99_s(since)), P99_FLOOR_S)
