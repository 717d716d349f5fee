#!/usr/bin/env python3
"""How much longer another caller waits while a router, or a node, is attacked: quiet and attacked phases
take turns, so that what else the machine does falls on both, and medians over the rounds are compared.

    tests/bench/hostile_ratio.py [hellos|answers ..] [--rounds 7]

The attacks, clusters and limits are those of tests/integration/hostile_*; this program judges nothing."""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

# pylint: disable=wrong-import-position
import hostile_answers_test as answers  # noqa: E402
import hostile_connections_test as connections  # noqa: E402
from cluster import wait_for  # noqa: E402

QUIET_S = 3


def told(what, rounds, **more):
    """One line of JSON: the median over the rounds of each phase, and of their ratios."""
    quiet, attacked = zip(*rounds)
    print(json.dumps({
        "attack": what, "rounds": len(rounds), "load": os.getloadavg()[0],
        "quiet_p99_ms": round(statistics.median(quiet), 2),
        "attacked_p99_ms": round(statistics.median(attacked), 2),
        "ratio": round(statistics.median(a / q for q, a in rounds), 2),
        "ratios": [round(a / q, 2) for q, a in rounds]} | more), flush=True)


def hellos(count):
    suite = connections.HostileConnections
    suite.setUpClass()
    try:
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
    finally:
        suite.doClassCleanups()


def large_answers(count):
    suite = answers.HostileAnswers
    suite.setUpClass()
    try:
        request = suite.one(suite)
        rounds = []
        for _ in range(count):
            with answers.Others(suite.cluster) as quiet:
                time.sleep(QUIET_S)
            with answers.Others(suite.cluster) as attacked:
                answers.Flood(suite.cluster.port, request, 600, True).wait()
            rounds.append((quiet.p99_ms(), attacked.p99_ms()))
            time.sleep(1)
        told("answers", rounds)
    finally:
        suite.doClassCleanups()


def main():
    attacks = {"hellos": hellos, "answers": large_answers}
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
