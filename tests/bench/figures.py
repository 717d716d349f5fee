"""What is measured, group by group. Each figure is a list: one value a round."""

import os
import time

from documents import measure_documents
from favorites import STATUS_IDS, TOP, Favorites
from presence import Presence
from levels import measure_levels
from holdfast import DOCUMENT_BYTES, Holdfast
from pages import Pages
from peers import TRADERS_MIN, Postgres, Redis
from processes import memory_mib, say, wait_for

CODES = tuple("errors_" + code for code in ("throttled", "unavailable", "deadline_exceeded", "other"))
SHOWN = ("p50_ms", "p99_ms", "p999_ms", "refused_calls", "refused_p99_ms", *CODES, "server_cpu_us_per_op", "other_cpu_s", "checkpoints", "throttled", "ms", "mib", "errors", "hits", "top_ms")
DISTURBED_SHARE = 0.08  # Of all processors: what others may take without a run being repeated.
FEW_PLAYERS = 10000
PAGES_PLAYERS = 1000
IN_FLIGHT = 1000  # Of a router that is to refuse: half of the callers that are offered to it.
COLD = {"checkpoint_interval": "1s", "cache_size": "4MiB", "block_cache_size": "1MiB"}
RESTART_LOAD_S = 3  # Load before the kill; it goes on until all is well again.


class Bench:
    """The stores of this run, started when first needed, and the figures so far."""

    def __init__(self, arguments, directory, processes):
        self.arguments, self.directory, self.processes = arguments, directory, processes
        self.figures, self.checks, self.stores = {}, [], {}

    def note(self, name, result):
        self.figures.setdefault(name, []).append(result)
        rate = f"{result['ops_per_s']:>10,.0f}/s" if "ops_per_s" in result else " " * 12
        say(f"  {name:28} {rate}   " + "  ".join(
            f"{k} {result[k]}" for k in SHOWN if result.get(k)))

    def store(self, kind):
        """A started store with all its players."""
        if kind not in self.stores:
            self.stores[kind] = store = kind(self.directory, self.processes, self.arguments.players)
            store.warm_up_s = min(5, 2 * self.arguments.seconds)
            store.items = self.arguments.items
            store.start()
        return self.stores[kind]

    def cluster(self, name="holdfast", players=0, batched_grants=0, settings=None):
        """A started cluster with all its players and, if asked for, grants behind it."""
        if name not in self.stores:
            say(f"starting Holdfast ({name})")
            cluster = Holdfast(self.directory, self.processes, players or self.arguments.players,
                               name)
            cluster.items = self.arguments.items
            cluster.access = "keys" if self.arguments.keys else "open"
            cluster.settings = settings or {}
            cluster.start()
            cluster.fill()
            while cluster.granted < batched_grants:
                result = cluster.load("batchgrant", 16, min(10, 3 * self.arguments.seconds),
                                      batch=100)
                say(f"    {cluster.granted:,} grants, {result['checkpoints']} checkpoints")
            cluster.load("grant", 64, min(2, self.arguments.seconds))
            self.stores[name] = cluster
        return self.stores[name]

    def least_disturbed(self, run):
        """Runs again, --tries in all, while something else takes a part of the machine."""
        results = []
        for _ in range(self.arguments.tries):
            results.append(run())
            share = results[-1]["other_cpu_s"] / results[-1]["seconds"] / os.cpu_count()
            if share <= DISTURBED_SHARE:
                break
        return min(results, key=lambda result: result["other_cpu_s"])

    def settle(self):
        """No cluster merges files any more: what others would be disturbed by."""
        for store in self.stores.values():
            if isinstance(store, Holdfast):
                store.settle()

    def holdfast(self, name, op, connections, cluster="holdfast", **more):
        store = self.cluster(cluster)
        self.note(name, self.least_disturbed(
            lambda: store.load(op, connections, self.arguments.seconds, **more)))

    def peer(self, name, kind, connections, depth=1):
        store = self.store(kind)
        self.settle()
        self.note(name, self.least_disturbed(
            lambda: store.grant(connections, self.arguments.seconds, depth)))

    def verify(self, name):
        """Everything acknowledged must be there; then the store is stopped."""
        for check, holds, detail in self.stores[name].verify():
            say(f"  {'ok  ' if holds else 'MISS'} {check} ({detail})")
            self.checks.append((check, holds, detail))
        self.stores.pop(name).stop()


def measure_grant(bench):
    owned = bench.cluster().metric("holdfast_node_shards_owned")
    bench.note("holdfast.owned", {"least": min(owned), "most": max(owned)})
    bench.holdfast("holdfast.grant.64", "grant", 64)
    bench.peer("redis.grant.64", Redis, 64)
    bench.peer("postgres.grant.64", Postgres, 64)
    bench.holdfast("holdfast.grant.256", "grant", 256)
    bench.peer("redis.grant.256", Redis, 256)
    bench.holdfast("holdfast.grant.1", "grant", 1)
    bench.peer("redis.grant.1", Redis, 1)


def measure_batch(bench):
    bench.holdfast("holdfast.batchgrant.16", "batchgrant", 16, batch=100)
    bench.peer("redis.pipelined.64", Redis, 64, 16)


def measure_read(bench):
    bench.holdfast("holdfast.read.64", "read", 64, answer_min=DOCUMENT_BYTES)
    bench.holdfast("holdfast.batchread.16", "batchread", 16, batch=50, answer_min=DOCUMENT_BYTES)


def measure_session(bench):
    bench.holdfast("holdfast.startend.64", "startend", 64)


def measure_transfer(bench):
    """Items are made before; some of their checkpoints are paid in the measured time."""
    seconds = bench.arguments.seconds
    stock = 64 + round(200 * seconds)  # For each connection: more than it sends.
    players = max(bench.arguments.players, TRADERS_MIN)
    bench.holdfast("holdfast.transfer.64", "transfer", 64, stock=stock, players=players,
                   warm_up=max(1, seconds))
    redis = bench.store(Redis)
    bench.settle()
    bench.note("redis.transfer.64", bench.least_disturbed(
        lambda: redis.transfer(64, seconds, stock)))
    bench.holdfast("holdfast.swap.64", "swap", 64, players=players, warm_up=max(1, seconds))


def restart(cluster, settings):
    cluster.kill_all()
    cluster.launch(**settings)
    wait_for("Holdfast to be ready", cluster.ready_or_dead)
    cluster.probe(time.monotonic())


def measure_pages(bench):
    """Pages of a player with a long ledger, one caller: warm, and with caches too small for it."""
    cluster = bench.cluster("pages", PAGES_PLAYERS)
    pages = Pages(cluster, bench.arguments.entries)
    for warmth, settings in (("warm", {}), ("cold", COLD)):
        restart(cluster, settings)
        time.sleep(min(5, 2 * bench.arguments.seconds))  # Cold: rows are checkpointed, and leave.
        for what in pages.KINDS:
            bodies = bench.directory / "bodies"
            bodies.write_text("".join(pages.bodies(what)), encoding="utf-8")
            bench.holdfast(f"holdfast.pages.{what}.{warmth}", "call", 1, cluster="pages",
                           method=pages.METHODS.get(what, "LedgerService/ListEntries"),
                           bodies=bodies)
        bodies.unlink()


def measure_favorites(bench):
    """Edges beside Redis, all targets alike and half of them to one; then what is read about them."""
    cluster, redis = bench.cluster(), bench.store(Redis)
    favorites = Favorites(cluster)
    seconds = bench.arguments.seconds
    for figure, connections, depth in (("favorite", 64, 1), ("batchfavorite", 16, 100)):
        bench.holdfast(f"holdfast.{figure}.{connections}", figure, connections, batch=depth)
        bench.settle()
        bench.note("redis.favorite.64" if depth == 1 else "redis.favorite.pipelined.64", bench.least_disturbed(
            lambda pipeline=min(depth, 16): redis.favorite(64, seconds, pipeline)))
    bench.holdfast("holdfast.favorite.hot.64", "favorite", 64, hot=favorites.hot())
    bodies = bench.directory / "bodies"
    for what, method in Favorites.METHODS.items():
        bodies.write_text("".join(favorites.bodies(what)), encoding="utf-8")
        bench.holdfast(f"holdfast.favorites.{what}", "call", 1 if what == "fresh" else 64,
                       method=f"FavoritesService/{method}", bodies=bodies,
                       answer_min={"status": 16 * STATUS_IDS, "top": 16 * TOP}.get(what, 16))
    bodies.unlink()


def measure_presence(bench):
    """One game server sets its players, 100 a call; then they are read, 200 a call."""
    bodies = bench.directory / "bodies"
    with Presence(bench.cluster()) as presence:
        for what, (method, players) in Presence.METHODS.items():
            bodies.write_text("".join(presence.bodies(what)), encoding="utf-8")
            bench.holdfast(f"holdfast.presence.{what}", "call", 8, method=f"PresenceService/{method}", bodies=bodies,
                           answer_min=14 * players)
    bodies.unlink()


def measure_overload(bench):
    """Four times the connections; twice the rate, in an open loop; purchases while batches are offered
    at twice the rate of what goes through. The peak is measured before and after: what is written
    is still being merged a little later."""
    bench.holdfast("holdfast.peak.256", "grant", 256)
    bench.holdfast("holdfast.overload.1024", "grant", 1024, may_fail=True)
    rate = 2 * bench.figures["holdfast.peak.256"][-1]["ops_per_s"]
    bench.holdfast("holdfast.overload.open", "grant", 2048, rate=rate, may_fail=True)
    bench.holdfast("holdfast.peak.256", "grant", 256)
    bench.holdfast("holdfast.peak.batch", "batchgrant", 16, batch=100)
    rate = 2 * bench.figures["holdfast.peak.batch"][-1]["ops_per_s"] / 100
    bench.holdfast("holdfast.overload.batch", "batchgrant", 1024, batch=100, rate=rate,
                   may_fail=True)
    bench.holdfast("holdfast.peak.batch", "batchgrant", 16, batch=100)
    behind = bench.cluster().load_behind("batchgrant", 1024, batch=100, rate=rate)
    bench.holdfast("holdfast.overload.purchases", "grant", 16, may_fail=True)
    bench.cluster().end_load(behind, "batchgrant")
    for name, mib in bench.cluster().peak_mib().items():
        bench.note(f"holdfast.overload.memory.{name}", {"mib": mib})
    measure_refusing(bench)


def measure_refusing(bench):
    """Twice the rate again, at a router that lets half of the callers in at once: what it refuses
    costs it little of what it does for the others."""
    bench.cluster("refusing", settings={"in_flight_max": str(IN_FLIGHT)})
    bench.holdfast("holdfast.refusing.peak", "grant", 256, cluster="refusing")
    rate = 2 * bench.figures["holdfast.refusing.peak"][-1]["ops_per_s"]
    bench.holdfast("holdfast.refusing.open", "grant", 2 * IN_FLIGHT, cluster="refusing", rate=rate,
                   may_fail=True)
    bench.holdfast("holdfast.refusing.peak", "grant", 256, cluster="refusing")


def measure_start(bench):
    """A cluster of its own, from nothing: ready, every shard serving, idle memory."""
    round_number = len(bench.figures.get("holdfast.ready", [])) + 1
    cluster = Holdfast(bench.directory, bench.processes, 1, f"start-{round_number}")
    begun = time.monotonic()
    bench.note("holdfast.ready", {"ms": cluster.start()})
    bench.note("holdfast.ready.every_shard", {"ms": cluster.probe(begun)})
    time.sleep(2)
    bench.note("holdfast.idle", {"mib": cluster.resident_mib(),
                                 "etcd_mib": memory_mib([cluster.state()["etcdPid"]])})
    cluster.stop()


def kill_everything(cluster):
    """And starts it again: the clock runs from the start."""
    cluster.kill_all()
    begun = time.monotonic()
    cluster.launch()
    return begun


def kill_nodes(cluster, count):
    """`holdfast dev` starts them again after a second; the clock runs from the kill."""
    begun = time.monotonic()
    cluster.kill_nodes(count)
    return begun


def measure_restart(bench):
    """SIGKILL under load: one node, all nodes, everything. Until every shard acknowledges again."""
    cluster = bench.cluster("restart")
    for name, kill in (("one_node", lambda: kill_nodes(cluster, 1)),
                       ("all_nodes", lambda: kill_nodes(cluster, 3)),
                       ("everything", lambda: kill_everything(cluster))):
        load = cluster.load_behind()
        time.sleep(min(RESTART_LOAD_S, 2 * bench.arguments.seconds))
        served = cluster.probe(kill())
        wait_for("the cluster to be whole", lambda: cluster.replicas_live() == 3)
        result = cluster.end_load(load)
        bench.note(f"holdfast.restart.{name}", {
            "ms": served, "acknowledged": result["acknowledged"], "unknown": result["unknown"]})


def measure_audit(bench):
    """The same load with a cut each second and without: two clusters in alternation."""
    for name, interval in (("audited", "1s"), ("unaudited", "0ms")):
        bench.cluster(name, FEW_PLAYERS, settings={"audit_interval": interval})
        bench.holdfast(f"holdfast.{name}.64", "grant", 64, cluster=name)


def measure_beside(bench, plain, loaded, **of_loaded):
    """Grants on a cluster that much was written to, at once and when its files are merged, beside a
    plain one: in alternation, neither while the other one merges."""
    if loaded not in bench.stores:
        bench.cluster(loaded, **of_loaded)
        bench.holdfast(f"holdfast.{loaded}.at_once.64", "grant", 64, cluster=loaded)
    for name in (plain, loaded):
        bench.settle()
        bench.holdfast(f"holdfast.{name}.64", "grant", 64, cluster=name)


def measure_scale(bench):
    """The same load on few and on many players."""
    bench.cluster("few", FEW_PLAYERS)
    measure_beside(bench, "few", "many", players=bench.arguments.many_players)


def measure_hour(bench):
    """A cluster with an hour's log behind it, written in two minutes, beside a fresh one."""
    bench.cluster("fresh")
    measure_beside(bench, "fresh", "aged", batched_grants=bench.arguments.aged_grants)


# In this order; those of LONG only when asked for.
GROUPS = {"start": measure_start, "grant": measure_grant, "batch": measure_batch,
          "read": measure_read, "session": measure_session, "transfer": measure_transfer,
          "favorites": measure_favorites, "levels": measure_levels, "documents": measure_documents,
          "presence": measure_presence, "pages": measure_pages, "overload": measure_overload,
          "restart": measure_restart, "audit": measure_audit}
LONG = {"scale": measure_scale, "hour": measure_hour}


# Clusters that serve one group alone.
OWN = {"levels": ("levels",), "overload": ("refusing",), "restart": ("restart",), "audit": ("audited", "unaudited"), "pages": ("pages",), "scale": ("few", "many"), "hour": ("fresh", "aged")}


def measure(bench, names):
    """All figures of these groups, each group round by round."""
    for name in names:
        for n in range(bench.arguments.rounds):
            say(f"{name}: round {n + 1} of {bench.arguments.rounds}")
            (GROUPS | LONG)[name](bench)
        for own in OWN.get(name, ()):
            bench.verify(own)
    for name in list(bench.stores):
        bench.verify(name)
