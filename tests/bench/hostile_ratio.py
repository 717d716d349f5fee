#!/usr/bin/env python3
"""How much longer other callers wait while a router, or a node, is attacked: quiet and attacked windows
take turns in one run, so that what else the machine does falls on both. All calls of the windows of one
kind are one sample, whose 99th percentile is told with the bounds that order statistics give it (95 %).

    tests/bench/hostile_ratio.py [ATTACK ..] [--rounds 8]

    hellos        1,000 ClientHellos a second, at a router and at a node
    answers       600 reads of 1.2 MB at once, again and again
    answers-many  2,400 of them
    batches       8 batches of 60 of them
    answers-key   600, by a key that may only read, as a stranger with such a key would
    answers-tls   600 over TLS, and the other callers' calls over TLS, too

The attacks, clusters and limits are those of tests/integration/hostile_*; this program judges nothing.
`one_ms` is what one such answer takes alone. `others_cpu` is the part of the processors that neither the
cluster nor this program took, in quiet and in attacked windows: what disturbed the run. An interval of fewer
than 3,000 calls is wide: give more rounds."""

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

# pylint: disable=wrong-import-position
import hostile_answers_test as answers  # noqa: E402
import hostile_connections_test as connections  # noqa: E402
from client import Client, RpcError, uuid7  # noqa: E402
from cluster import BIN, wait_for  # noqa: E402
from hostile import issue_keys, post  # noqa: E402

WINDOW_S, SETTLE_S = 6, 1  # What a window's first second brings is counted in neither.
CALLERS, PAUSE_S = 3, 0.01
CONNECTIONS = 20  # Of the attack over TLS.
FORK = multiprocessing.get_context("fork")
SPREAD = 1.96  # Standard deviations: 95 %.


def p99_of(took):
    """(p99, its lower and upper bound): the ranks of a sorted sample that hold it with 95 %."""
    took, middle = sorted(took), 0.99 * len(took)
    spread = SPREAD * math.sqrt(middle * 0.01)
    return [took[min(len(took) - 1, max(0, math.floor(rank)))] for rank in (middle, middle - spread, middle + spread)]


class Callers:
    """Other callers, each in a process of its own: `make()` gives what one of them calls, again and again."""

    def __init__(self, make):
        self.stop, self.told = FORK.Event(), FORK.Queue()
        self.processes = [FORK.Process(target=self.run, args=(make,), daemon=True) for _ in range(CALLERS)]
        self.samples, self.failures = [], 0

    def run(self, make):
        call, samples, failures = make(), [], 0
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                call()
            except RpcError:
                failures += 1
            samples.append((begun, (time.monotonic() - begun) * 1e3))
            time.sleep(PAUSE_S)
        self.told.put((samples, failures))

    def __enter__(self):
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, kind, error, trace):
        self.stop.set()
        for process in self.processes:
            samples, failures = self.told.get(timeout=60)
            self.samples += samples
            self.failures += failures
        for process in self.processes:
            process.join()

    def took_ms(self, windows):
        return [took for begun, took in self.samples if any(start <= begun < end for start, end in windows)]


def processor_s(pids):
    """(of the whole machine, of these processes)"""
    def of_line(line, first, last):
        return sum(map(int, line.split()[first:last]))
    machine = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
    own = os.times()
    spent = own.user + own.system + own.children_user + own.children_system
    for pid in pids:
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
            spent += of_line(line, 11, 13) / os.sysconf("SC_CLK_TCK")
    busy = [int(word) for word in machine[1:9]]
    return (sum(busy) - busy[3] - busy[4]) / os.sysconf("SC_CLK_TCK"), spent


def interleaved(what, suite, make, attack, rounds, **more):
    """`attack(seconds)` attacks for so long; others call as `make()` says. Prints one line of JSON."""
    quiet, attacked, disturbed = [], [], ([], [])
    with Callers(make) as callers:
        time.sleep(SETTLE_S)
        known = [process.pid for process in suite.cluster.processes() + callers.processes]
        for _ in range(rounds):
            for windows, others, act in ((quiet, disturbed[0], time.sleep), (attacked, disturbed[1], attack)):
                begun, before = time.monotonic(), processor_s(known)
                act(SETTLE_S + WINDOW_S)
                ended, after = time.monotonic(), processor_s(known)
                windows.append((begun + SETTLE_S, min(ended, begun + SETTLE_S + WINDOW_S)))
                machine, own = after[0] - before[0], after[1] - before[1]
                others.append(max(0, machine - own) / (ended - begun) / os.cpu_count())
                time.sleep(0.5)
    each = [p99_of(callers.took_ms([a]))[0] / p99_of(callers.took_ms([q]))[0] for q, a in zip(quiet, attacked)]
    calm, busy = (callers.took_ms(windows) for windows in (quiet, attacked))
    calm_p99, busy_p99 = p99_of(calm), p99_of(busy)
    print(json.dumps({
        "attack": what, "calls": [len(calm), len(busy)], "failures": callers.failures,
        "quiet_p50_ms": round(statistics.median(calm), 2), "quiet_p99_ms": [round(ms, 2) for ms in calm_p99],
        "attacked_p50_ms": round(statistics.median(busy), 2), "attacked_p99_ms": [round(ms, 2) for ms in busy_p99],
        "ratio": round(busy_p99[0] / calm_p99[0], 2),
        "ratio_bounds": [round(busy_p99[1] / calm_p99[2], 2), round(busy_p99[2] / calm_p99[1], 2)],
        "ratios": [round(one, 2) for one in each],
        "others_cpu": [round(statistics.mean(part), 2) for part in disturbed]} | more), flush=True)


def small_calls(endpoint, key=None):
    """Grants and reads of a small profile, by turns."""
    def make():
        client, players = Client(endpoint, key), [f"other-{i}-{uuid7()}" for i in range(8)]
        numbers = iter(range(1 << 30))

        def call():
            number = next(numbers)
            player = players[number // 2 % 8]
            if number % 2:
                client.balance(player)
            else:
                client.grant(player, 1)
        return call
    return make


def tls_grants(suite):
    """Grants over TLS; each caller has a player of its own, since a router bounds calls for one."""
    def make():
        caller, player = connections.TlsCaller(suite.tls_port, suite.ca), f"other-{uuid7()}"
        return lambda: caller.grant(player)
    return make


@contextlib.contextmanager
def running(suite):
    suite.setUpClass()
    try:
        yield suite
    finally:
        suite.doClassCleanups()


def hellos(rounds):
    with running(connections.HostileConnections) as suite:
        wait_for("the second router to be ready", suite.tls_router.ready)
        wait_for("all shards to be served", suite.cluster.all_serving)
        node = suite.cluster.nodes[0]
        ports = {"hellos, router": suite.tls_port,
                 "hellos, node": connections.HostileConnections.port_of(suite, node, "listen")}
        for what, port in ports.items():
            def attack(seconds, port=port):
                with connections.attacked("hellos", port, connections.HELLOS_PER_S):
                    time.sleep(seconds)
            interleaved(what, suite, tls_grants(suite), attack, rounds)


def flooded(what, suite, request, at_once, rounds, key=None):
    one_ms, told = answers.alone_ms(suite.cluster.port, request), {}

    def attack(seconds):
        _, counts = answers.Flood(suite.cluster.port, request, at_once, True, seconds).wait()
        for status, count in counts.items():
            told[status] = told.get(status, 0) + count
    interleaved(what, suite, small_calls(suite.cluster.endpoint, key), attack, rounds,
                one_ms=round(one_ms, 2), answered=told)


def open_answers(what, at_once):
    def measure(rounds):
        with running(answers.HostileAnswers) as suite:
            flooded(what, suite, suite.one(suite), at_once, rounds)
    return measure


def batches(rounds):
    with running(answers.HostileAnswers) as suite:
        batch = {"requests": [{"playerId": suite.big[i % 4]} for i in range(60)], "include": ["sections"]}
        flooded("batches", suite, post(answers.BATCH, batch), 8, rounds)


class WithKeys(answers.HostileAnswers):
    """The same cluster; who reads has a key that may do nothing else."""

    @classmethod
    def plan(cls):
        cluster = super().plan()
        cluster.router.command.append("--access=keys")
        return cluster

    @classmethod
    def setUpClass(cls):
        super(answers.HostileAnswers, cls).setUpClass()
        cls.writer, cls.reader = issue_keys(cls.cluster, ("writer", "payments,game"), ("reader", "read"))
        cls.client = Client(cls.cluster.endpoint, cls.writer)
        cls.big = [cls.big_profile(0)]


def answers_key(rounds):
    with running(WithKeys) as suite:
        request = post(answers.PROFILE, {"playerId": suite.big[0], "include": ["sections"]},
                       f"Authorization: Bearer {suite.reader}")
        flooded("answers-key", suite, request, 600, rounds, suite.writer)


class WithTls(answers.HostileAnswers):
    """The same cluster, and a second router whose public port speaks TLS."""

    @classmethod
    def plan(cls):
        cluster = super().plan()
        folder = cluster.dir / "public"
        subprocess.run([BIN / "holdfast", "certs", "--dir", folder, "--names", "public"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.ca, cls.tls_port = folder / "ca.crt", connections.free_port()
        cls.tls_router = cluster.plan("router", "router-tls", {
            "listen": f"127.0.0.1:{cls.tls_port}", "access": "open", "answers-size-max": answers.BUDGET,
            "public-tls-cert": folder / "public.crt", "public-tls-key": folder / "public.key"})
        processes = cluster.processes
        cluster.processes = lambda: [cls.tls_router, *processes()]
        return cluster


def tls_connection(ca):
    """As socket.create_connection."""
    context = ssl.create_default_context(cafile=str(ca))
    context.check_hostname = False
    return lambda address, patience_s: context.wrap_socket(socket.create_connection(address, patience_s))


def tls_flood(port, ca, request, at_once, for_s):
    """As many requests at once, over CONNECTIONS connections that are kept, again and again."""
    end = time.monotonic() + for_s

    def one():
        sock, each, asked, came = tls_connection(ca)(("127.0.0.1", port), answers.PATIENCE_S), at_once // CONNECTIONS, 0, 0
        tail = b""
        while time.monotonic() < end:
            if asked == came:
                sock.sendall(request * each)
                asked += each
            data = sock.recv(1 << 16)
            if not data:
                return
            text = tail + data
            came += len(answers.STATUS.findall(text)) - len(answers.STATUS.findall(tail))
            tail = text[-12:]
    threads = [threading.Thread(target=one) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def answers_tls(rounds):
    with running(WithTls) as suite:
        wait_for("the second router to be ready", suite.tls_router.ready)
        request = suite.one(suite)
        one_ms = answers.alone_ms(suite.tls_port, request, tls_connection(suite.ca))

        def attack(seconds):
            flood = FORK.Process(target=tls_flood, args=(suite.tls_port, suite.ca, request, 600, seconds))
            flood.start()
            flood.join()
        interleaved("answers-tls", suite, tls_grants(suite), attack, rounds,
                    one_ms=round(one_ms, 2))


def main():
    attacks = {"hellos": hellos, "answers": open_answers("answers", 600),
               "answers-many": open_answers("answers-many", 2400), "batches": batches,
               "answers-key": answers_key, "answers-tls": answers_tls}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", nargs="*", help=", ".join(attacks))
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    for name in given.attack or attacks:
        if name not in attacks:
            parser.error(f"there is no attack {name}")
        attacks[name](given.rounds)


if __name__ == "__main__":
    main()
