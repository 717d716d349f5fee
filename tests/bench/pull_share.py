#!/usr/bin/env python3
"""What totals of targets cost: clusters of few and of many shards, idle and while favourites come evenly to many
targets. One line of JSON for each: processors that all nodes use, bytes of pulls, how old totals are."""

import argparse
import json
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from cluster import BIN, Cluster, wait_for  # noqa: E402

TICKS = 100.0  # Of /proc/PID/stat, a second.
DEFINITIONS = {"favorites": {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}},
               "bench": {"rateRule": {"subject": "favorites", "limit": 1000000, "periodMs": 1000}}}
FIGURES = {"pulled_bytes": "holdfast_node_totals_pulled_bytes_total", "rounds": "holdfast_node_totals_rounds_total",
           "counts": "holdfast_node_totals_counts_total", "failed": "holdfast_node_totals_calls_failed_total",
           "asked_bytes": "holdfast_node_totals_asked_bytes_total"}


def processor_s(processes):
    total = 0.0
    for process in processes:
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def figures(cluster):
    found = [node.metrics() for node in cluster.nodes]
    return {name: sum(m.get(metric, 0) for m in found) for name, metric in FIGURES.items()}


def behind_ms(cluster):
    return 1000 * max(node.metrics().get("holdfast_node_totals_behind_seconds", 0) for node in cluster.nodes)


def measure(cluster, seconds):
    before, cpu, begun = figures(cluster), processor_s(cluster.nodes), time.monotonic()
    ages = []
    while time.monotonic() - begun < seconds:
        time.sleep(0.25)
        ages.append(behind_ms(cluster))
    passed = time.monotonic() - begun
    after, cpu = figures(cluster), processor_s(cluster.nodes) - cpu
    told = {f"{name}_per_s": round((after[name] - before[name]) / passed) for name in before}
    ages.sort()
    return told | {"nodes_cpu": round(cpu / passed, 3), "behind_p50_ms": round(ages[len(ages) // 2]),
                   "behind_max_ms": round(ages[-1])}


def load(cluster, options):
    command = [BIN / "loadgen", "--port", cluster.port, "--op", "batchfavorite", "--connections", 4, "--batch", 50,
               "--rate", options.rate / 50, "--seconds", options.seconds + 12, "--targets",
               options.targets, "--players", 100000]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def define(cluster):
    for name, body in DEFINITIONS.items():
        put = {"name": name, "opId": name, "reason": "bench", "waitMs": 60000, "body": body}
        answer = cluster.client.call("DefinitionService/PutDefinition", put, deadline_ms=70000)
        assert answer, answer


def bench(shards, options):
    cluster = Cluster(shards=shards, options={"node": {"log-segment-size": "64MiB"}})
    with cluster:
        wait_for("all shards", cluster.all_serving, 120)
        time.sleep(3)
        define(cluster)
        time.sleep(options.settle)
        for what in options.what.split(","):
            loading = load(cluster, options) if what == "writes" else None
            time.sleep(6)
            told = measure(cluster, options.seconds)
            if loading is not None:
                out, err = loading.communicate(timeout=120)
                done = json.loads(out) if out else {"error": err[-300:]}
                told |= {"acknowledged": done.get("acknowledged"), "p99_ms": done.get("p99_ms"), "error": done.get("error")}
            print(json.dumps({"shards": shards, "what": what, **told}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", default="64,1024")
    parser.add_argument("--what", default="idle,writes")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--settle", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--targets", type=int, default=100000)
    options = parser.parse_args()
    for shards in options.shards.split(","):
        bench(int(shards), options)


if __name__ == "__main__":
    main()
