"""holdfast dev as a measured store: three nodes, a router, a coordinator, a real etcd."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
import urllib.request

from favorites import Favorites
from peers import REPEAT, TRADERS_MIN
from processes import (BIN, die_with_parent, free_port, generate, generator_command, memory_mib,
                       say, wait_for)

DOCUMENT_BYTES = 1000  # What `loadgen --op fill` gives every player: a profile of 1 KiB.
PROBES = 1000          # Players of a probe: enough that every one of 64 shards has some.
PROBE_DEADLINE_MS = 300


class Holdfast:
    """One cluster with data of its own."""

    def __init__(self, directory, processes, players, name="holdfast"):
        self.home, self.processes, self.players = directory / name, processes, players
        self.name = name
        self.log = directory / f"{name}.log"
        self.port = free_port()
        self.dev, self.items, self.settings = None, 1, {}
        self.access, self.key = "open", ""
        self.granted = self.unknown = self.unknown_edges = 0
        self.made = self.transferred = 0  # Items of players "t0", "t1", ..
        self.long_ledger = {}             # See pages.py.
        self.favorites = {}               # See favorites.py.
        self.documents = False            # See documents.py.
        self.edges = 0                    # Acknowledged, of players "p0", "p1", ..

    # Starting and stopping.

    def state(self):
        path = self.home / "cluster.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def launch(self, **settings):
        """`settings` of every process, beside its own, as HOLDFAST_NAME=VALUE."""
        settings = {"key_rate": "0", "player_rate": "0"} | self.settings | settings
        env = os.environ | {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
        self.dev = self.processes.start([BIN / "holdfast", "dev", "--data", self.home, "--port",
                                         self.port, "--access", self.access], self.log, env=env)

    def start(self):
        """Until cluster.json says ready; milliseconds."""
        begun = time.monotonic()
        self.launch()
        wait_for("Holdfast to be ready", self.ready_or_dead, every_s=0.005)
        took_ms = round((time.monotonic() - begun) * 1000)
        if self.access == "keys":
            self.issue_key()
        return took_ms

    def ready_or_dead(self):
        if self.dev.poll() is not None:
            raise RuntimeError(self.log.read_text(encoding="utf-8"))
        state = self.state()
        return state.get("ready") and state["pid"] == self.dev.pid

    def stop(self):
        self.processes.stop_one(self.dev, 40)

    def nodes(self):
        return [p for p in self.state()["processes"] if p["name"].startswith("node")]

    def pids(self):
        return [p["pid"] for p in self.state()["processes"]]

    def kill_nodes(self, count):
        for node in self.nodes()[:count]:
            os.kill(node["pid"], signal.SIGKILL)

    def kill_all(self):
        """SIGKILL of `holdfast dev`, with which all its processes die."""
        self.dev.kill()
        self.dev.wait()

    # What it says about itself.

    def resident_mib(self):
        return memory_mib(self.pids())

    def peak_mib(self):
        """{process: the most it ever held}"""
        return {p["name"]: memory_mib([p["pid"]], "VmHWM") for p in self.state()["processes"]}

    @staticmethod
    def metric_of(process, name):
        url = f"http://127.0.0.1:{process['metricsPort']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return [float(line.split()[1]) for line in lines if line.split()[0] == name]

    def checkpoints(self):
        """Of the nodes that are up: a figure beside the others, which no lost node is to take along."""
        found = 0
        for node in self.nodes():
            with contextlib.suppress(OSError):
                found += sum(self.metric_of(node, "holdfast_node_checkpoints_total"))
        return found

    def metric(self, name):
        """One value a node."""
        return [value for node in self.nodes() for value in self.metric_of(node, name)]

    def router_metric(self, name):
        return sum(value for process in self.state()["processes"] if process["name"].startswith("router")
                   for value in self.metric_of(process, name))

    def merges(self):
        """Whether a database still merges what was written."""
        return any(self.metric("holdfast_node_db_merges_running")
                   + self.metric("holdfast_node_db_compaction_pending_bytes"))

    def settle(self):
        """Until what was written is merged: three looks in a row that find nothing."""
        quiet = 0
        def is_quiet():
            nonlocal quiet
            quiet = 0 if self.merges() else quiet + 1
            return quiet >= 3
        wait_for(f"{self.name} to merge its files", is_quiet, 300, 0.2)

    def call(self, method, body, deadline_ms=10000):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", f"/holdfast.v1.{method}", json.dumps(body), {
                "Content-Type": "application/json", "Connect-Timeout-Ms": str(deadline_ms),
                "Authorization": f"Bearer {self.key}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    # Load.

    def issue_key(self):
        """What every request brings from now on, as in production."""
        state = self.state()
        self.key = subprocess.run(
            [BIN / "holdfast", "key", "issue", "bench", "--scopes", "game,payments,admin",
             "--etcd", state["etcd"], "--etcd-ca", state["etcdCa"], "--etcd-cert", state["etcdCert"],
             "--etcd-key", state["etcdKey"]], check=True, capture_output=True, text=True).stdout.strip()
        wait_for("the key to be known", lambda: "nodes" in self.call("AdminService/GetCluster", {}))

    def generate(self, **options):
        return generate("loadgen", self.port, **options | {"api_key": self.key})

    def options(self, op, connections, seconds, more):
        return {"op": op, "connections": connections, "seconds": seconds,
                "warm_up": min(0.7, seconds), "players": self.players, "repeat": REPEAT, "items": self.items,
                "pids": ",".join(map(str, self.pids())),
                "aside_pids": self.state()["etcdPid"], "api_key": self.key} | more

    def load(self, op, connections, seconds, may_fail=False, **more):
        checkpoints = self.checkpoints()
        result = self.generate(**self.options(op, connections, seconds, more))
        result["checkpoints"] = round(self.checkpoints() - checkpoints)
        if result["errors"] and not may_fail:
            raise RuntimeError(f"{op}: {result['errors']} errors")
        self.count(op, result)
        return result

    def count(self, op, result):
        if op in ("grant", "batchgrant"):
            self.granted += result["acknowledged"]
            self.unknown += result["unknown"]
        if op in ("favorite", "batchfavorite"):
            self.edges += result["acknowledged"]
            self.unknown_edges += result["unknown"]
        self.transferred += result["acknowledged"] if op == "transfer" else 0
        self.made += result["items"] if op in ("transfer", "swap") else 0

    def load_behind(self, op="grant", connections=64, **more):
        """Grants over connections that are dialled again when lost, until `end_load`."""
        command = generator_command("loadgen", self.port, self.options(
            op, connections, 600, {"persist": True, "warm_up": 0} | more))
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, preexec_fn=die_with_parent)

    def end_load(self, load, op="grant"):
        load.send_signal(signal.SIGTERM)
        result = json.loads(load.communicate(timeout=60)[0])
        self.count(op, result)
        return result

    def fill(self):
        result = self.generate(op="fill", connections=8, batch=50,
                          players=self.players)
        say(f"    {self.players:,} profiles of 1 KiB in {result['seconds']} s")
        if result["acknowledged"] != self.players:
            raise RuntimeError(f"fill: {result}")

    def probe(self, begun):
        """Milliseconds from `begun` until players of every shard had a grant acknowledged."""
        pending = {f"probe-{n}": f"probe:{n}" for n in range(PROBES)}
        while pending:
            requests = [{"playerId": player, "opId": f"admin:{op}-{begun}",
                         "authority": "system:payments",
                         "currencies": {"gems": 1}}
                        for player, op in pending.items()]
            try:
                results = self.call("LedgerService/BatchGrant", {"requests": requests},
                                    PROBE_DEADLINE_MS).get("results", [])
            except (OSError, http.client.HTTPException, ValueError):
                results = []
            for player, result in zip(list(pending), results):
                if "response" in result:
                    del pending[player]
            if time.monotonic() - begun > 60:
                raise RuntimeError(f"{len(pending)} of {PROBES} players have no owner after 60 s")
            if pending:
                time.sleep(0.005)
        return round((time.monotonic() - begun) * 1000)

    # Afterwards.

    def replicas_live(self):
        """The least number of replicas that a shard can reach; 0 while it is not known."""
        try:
            shards = self.call("AdminService/ListShards", {}).get("shards", [])
        except (OSError, http.client.HTTPException, ValueError):
            return 0
        return min((sum(r["state"] == "ok" for r in shard["replicas"]) for shard in shards),
                   default=0)

    def replicas_agree(self):
        """Every replica of every shard has applied all there is, to equal outcome hashes."""
        for shard in self.call("AdminService/ListShards", {}).get("shards", []):
            replicas = shard["replicas"]
            if len(replicas) != len(shard["members"]) or len(
                    {(r["outcomeHash"], r["appliedIndex"], r["logIndex"]) for r in replicas}) != 1:
                return False
            if any(r["appliedIndex"] != r["logIndex"] for r in replicas):
                return False
        return True

    def verify(self):
        """[(check, holds, detail)]: every acknowledged grant is there once, on every replica."""
        sums = self.generate(op="audit", connections=8, players=self.players)
        entries = self.generate(op="ledger", players=self.players)["entries"]
        gold, most = sums["balance"], self.granted + self.unknown
        checks = [(f"{self.name}: currency, items and ledger equal what was acknowledged",
                   gold == entries and gold * self.items == sums["items"]
                   and self.granted <= gold <= most,
                   f"{gold}, {sums['items']}, {entries}, {self.granted}"
                   + (f" to {most} (unknown outcomes)" if self.unknown else ""))]
        if self.made:
            held = self.generate(op="audit", connections=8, prefix="t",
                            players=max(self.players, TRADERS_MIN))["items"]
            checks.append((f"{self.name}: of all items made, those not sent are with a player",
                           held == self.made - self.transferred,
                           f"{held}, {self.made}, {self.transferred}"))
        if self.favorites:
            edges = self.generate(op="edges", players=self.players)["edges"]
            counted = Favorites(self).counted()
            checks.append((f"{self.name}: edges equal what was acknowledged, and the counts of all targets",
                           self.edges <= edges <= self.edges + self.unknown_edges
                           and counted == edges + self.favorites["read"],
                           f"{edges} and {self.favorites['read']}, {self.edges}, {counted}"))
        try:
            wait_for("replicas to agree", self.replicas_agree, 20, 0.2)
            agree = True
        except RuntimeError:
            agree = False
        checks.append((f"{self.name}: all replicas of all shards hold the same", agree, ""))
        return checks
