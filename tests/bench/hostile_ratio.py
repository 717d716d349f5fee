#!/usr/bin/env python3
"""How much longer another caller waits while a router, or a node, is attacked: quiet and attacked phases
take turns, so that what else the machine does falls on both, and medians over the rounds are compared.

    tests/bench/hostile_ratio.py [ATTACK ..] [--rounds 7]

    hellos        1,000 ClientHellos a second, at a router and at a node
    answers       600 reads of 1.2 MB at once, again and again
    answers-many  2,400 of them
    batches       8 batches of 60 of them
    answers-key   600, by a key that may only read, as a stranger with such a key would
    answers-tls   600 over TLS, and the other caller's calls over TLS, too

The attacks, clusters and limits are those of tests/integration/hostile_*; this program judges nothing.
`one_ms` is what one such answer takes alone; `answers_waited` is by how many of those the p99 rose."""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import ssl
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

# pylint: disable=wrong-import-position
import hostile_answers_test as answers  # noqa: E402
import hostile_connections_test as connections  # noqa: E402
from client import Client  # noqa: E402
from cluster import BIN, wait_for  # noqa: E402
from hostile import issue_keys, post  # noqa: E402

QUIET_S = 3
CONNECTIONS = 20  # Of the attack over TLS.


def told(what, rounds, **more):
    """One line of JSON: the median over the rounds of each phase, and of their ratios."""
    quiet, attacked = zip(*rounds)
    print(json.dumps({
        "attack": what, "rounds": len(rounds), "load": os.getloadavg()[0],
        "quiet_p99_ms": round(statistics.median(quiet), 2),
        "attacked_p99_ms": round(statistics.median(attacked), 2),
        "ratio": round(statistics.median(a / q for q, a in rounds), 2),
        "ratios": [round(a / q, 2) for q, a in rounds]} | more), flush=True)


def told_answers(what, rounds, ones):
    """rounds: (quiet, attacked); ones: what one answer took alone in each."""
    told(what, rounds, one_ms=round(statistics.median(ones), 2),
         answers_waited=round(statistics.median((a - q) / one for (q, a), one in zip(rounds, ones)), 2))


@contextlib.contextmanager
def running(suite):
    suite.setUpClass()
    try:
        yield suite
    finally:
        suite.doClassCleanups()


def hellos(count):
    with running(connections.HostileConnections) as suite:
        wait_for("the second router to be ready", suite.tls_router.ready)
        wait_for("all shards to be served", suite.cluster.all_serving)
        caller = connections.TlsCaller(suite.tls_port, suite.ca)
        caller.p99(1)
        node = suite.cluster.nodes[0]
        ports = {"hellos, router": suite.tls_port,
                 "hellos, node": connections.HostileConnections.port_of(suite, node, "listen")}
        spent = 'holdfast_handshake_seconds_total{port="public"}'
        for what, port in ports.items():
            rounds, shares = [], []
            for _ in range(count):
                quiet = caller.p99(QUIET_S) * 1e3
                with connections.attacked("hellos", port, connections.HELLOS_PER_S):
                    before, begun = suite.tls_router.metrics()[spent], time.monotonic()
                    rounds.append((quiet, caller.p99(connections.ATTACK_S) * 1e3))
                    shares.append((suite.tls_router.metrics()[spent] - before) / (time.monotonic() - begun))
                time.sleep(1)
            told(what, rounds, share_of_loop=round(statistics.median(shares), 3))
        caller.close()


def flooded(what, suite, request, at_once, count, key=None):
    rounds, ones = [], []
    for _ in range(count):
        with answers.Others(suite.cluster, key) as quiet:
            time.sleep(QUIET_S)
        ones.append(answers.alone_ms(suite.cluster.port, request))
        with answers.Others(suite.cluster, key) as attacked:
            answers.Flood(suite.cluster.port, request, at_once, True).wait()
        rounds.append((quiet.p99_ms(), attacked.p99_ms()))
        time.sleep(1)
    told_answers(what, rounds, ones)


def open_answers(what, at_once):
    def measure(count):
        with running(answers.HostileAnswers) as suite:
            flooded(what, suite, suite.one(suite), at_once, count)
    return measure


def batches(count):
    with running(answers.HostileAnswers) as suite:
        batch = {"requests": [{"playerId": suite.big[i % 4]} for i in range(60)], "include": ["sections"]}
        flooded("batches", suite, post(answers.BATCH, batch), 8, count)


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


def answers_key(count):
    with running(WithKeys) as suite:
        request = post(answers.PROFILE, {"playerId": suite.big[0], "include": ["sections"]},
                       f"Authorization: Bearer {suite.reader}")
        flooded("answers-key", suite, request, 600, count, suite.writer)


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


def answers_tls(count):
    with running(WithTls) as suite:
        wait_for("the second router to be ready", suite.tls_router.ready)
        request, rounds, ones = suite.one(suite), [], []
        caller = connections.TlsCaller(suite.tls_port, suite.ca)
        for _ in range(count):
            quiet = caller.p99(QUIET_S) * 1e3
            ones.append(answers.alone_ms(suite.tls_port, request, tls_connection(suite.ca)))
            attack = multiprocessing.get_context("fork").Process(
                target=tls_flood, args=(suite.tls_port, suite.ca, request, 600, answers.ATTACK_S))
            attack.start()
            time.sleep(0.5)
            rounds.append((quiet, caller.p99(answers.ATTACK_S - 1.5) * 1e3))
            attack.join()
            time.sleep(1)
        caller.close()
        told_answers("answers-tls", rounds, ones)


def main():
    attacks = {"hellos": hellos, "answers": open_answers("answers", 600),
               "answers-many": open_answers("answers-many", 2400), "batches": batches,
               "answers-key": answers_key, "answers-tls": answers_tls}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", nargs="*", help=", ".join(attacks))
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for name in given.attack or attacks:
        if name not in attacks:
            parser.error(f"there is no attack {name}")
        attacks[name](given.rounds)


if __name__ == "__main__":
    main()
