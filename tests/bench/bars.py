"""The bars, and which of them hold."""

import os
import statistics
from dataclasses import dataclass


@dataclass
class Bar:
    """`ours` (and `peer`: their ratio) of figures by name, against a limit. sense: ">=" or "<="."""

    group: str
    text: str
    ours: str
    field: str
    sense: str
    limit: float
    peer: str = ""
    pick: object = statistics.median


def node_mib_max():
    """What a node's caches may take by default (node/io/disk/caches.h), and 320 MiB beside them."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1048576
    return min(max(machine // 16, 256), 16384) + min(max(machine // 64, 64), 4096) + 320


RATE, CPU = "ops_per_s", "ops_per_server_cpu_s"
BARS = [
    Bar("grant", "grants/s, 64 connections, to Redis", "holdfast.grant.64", RATE, ">=", 1.5,
        "redis.grant.64"),
    Bar("grant", "grants/s, 64 connections, to PostgreSQL", "holdfast.grant.64", RATE, ">=", 2.5,
        "postgres.grant.64"),
    Bar("grant", "p99 ms, 64 connections, to Redis", "holdfast.grant.64", "p99_ms", "<=", 2,
        "redis.grant.64"),
    Bar("grant", "grants/s, 256 connections, to Redis", "holdfast.grant.256", RATE, ">=", 1.5,
        "redis.grant.256"),
    Bar("grant", "p50 ms, 1 connection, to Redis", "holdfast.grant.1", "p50_ms", "<=", 1.5,
        "redis.grant.1"),
    Bar("grant", "grants/server CPU-s, 64 connections, to Redis", "holdfast.grant.64", CPU, ">=", 1,
        "redis.grant.64"),
    Bar("grant", "checkpoints in the run with fewest", "holdfast.grant.64", "checkpoints", ">=", 1,
        pick=min),
    Bar("grant", "shards owned by the node with fewest", "holdfast.owned", "least", ">=", 16, pick=min),
    Bar("batch", "BatchGrant grants/s, 16 connections, to Redis pipelined",
        "holdfast.batchgrant.16", RATE, ">=", 3, "redis.pipelined.64"),
    Bar("read", "strict reads/s of 1 KiB, singly", "holdfast.read.64", RATE, ">=", 30000),
    Bar("read", "strict reads/s of 1 KiB, batches of 50", "holdfast.batchread.16", RATE, ">=",
        60000),
    Bar("session", "StartSession + EndSession pairs/s", "holdfast.startend.64", RATE, ">=", 5000),
    Bar("transfer", "transfers of an item across shards/s, 64 connections, to Redis's one-shard script",
        "holdfast.transfer.64", RATE, ">=", 1, "redis.transfer.64"),
    Bar("transfer", "transfers across shards, p99 ms", "holdfast.transfer.64", "p99_ms", "<=", 50),
    Bar("transfer", "swaps across shards/s, 64 connections, to Redis's transfers",
        "holdfast.swap.64", RATE, ">=", round(1 / 3, 3), "redis.transfer.64"),
    Bar("favorites", "favourites/s, 64 connections, to Redis's script", "holdfast.favorite.64", RATE, ">=", 0.8,
        "redis.favorite.64"),
    Bar("favorites", "favourites/s, half of them to one target, to all targets alike", "holdfast.favorite.hot.64", RATE,
        ">=", 0.85, "holdfast.favorite.64"),
    Bar("favorites", "BatchFavorite favourites/s, 16 connections, to Redis pipelined", "holdfast.batchfavorite.16", RATE,
        ">=", 1, "redis.favorite.pipelined.64"),
    Bar("favorites", "BatchGetStatus of 50 targets, calls/s", "holdfast.favorites.status", RATE, ">=", 30000),
    Bar("favorites", "first pages of 20 favourites/s", "holdfast.favorites.page", RATE, ">=", 30000),
    Bar("favorites", "counts that the router remembers/s", "holdfast.favorites.count", RATE, ">=", 45000),
    Bar("favorites", "top lists of 100 that the router remembers/s", "holdfast.favorites.top", RATE, ">=", 45000),
    Bar("favorites", "counts gathered when asked, 1 connection, p99 ms", "holdfast.favorites.fresh", "p99_ms", "<=", 20),
    *(Bar("levels", text + when, f"holdfast.levels.{name}{part}", field, sense, limit)
      for name, when in (("", ""), ("killed.", "; once a killed node's shards serve again"))
      for text, part, field, sense, limit in (
          ("at 80 % of the mixed peak: favourites, p99.9 ms", "write", "p999_ms", "<=", 120),
          ("... BatchGetStatus of 50, p99 ms", "check", "p99_ms", "<=", 60),
          ("... first pages, p99 ms", "page", "p99_ms", "<=", 100),
          ("... counts of hot targets from the router's memory", "all", "hits", ">=", 0.9),
          ("... age of the 24 h top list, p99 ms", "all", "top_ms", "<=", 2000),
          ("... calls that failed", "all", "errors", "<=", 0))),
    Bar("documents", "UpdateDocument at ONE/s, 64 connections, to Redis's HSET", "holdfast.documents.update.64", RATE, ">=",
        1.2, "redis.hset.64"),
    Bar("documents", "GetDocument of 1 KiB at any member/s, 64 connections, to strict reads", "holdfast.documents.get.64",
        RATE, ">=", 1.3, "holdfast.documents.strict.64"),
    Bar("presence", "BatchSetPresence of 100 players, calls/s", "holdfast.presence.set", RATE, ">=", 200),
    Bar("presence", "BatchGetPresence of 200 players, calls/s", "holdfast.presence.get", RATE, ">=", 300),
    *(Bar("pages", f"{text}, {warmth}, p99 ms", f"holdfast.pages.{what}.{warmth}", "p99_ms", "<=", 5)
      for what, text in (("list", "50 entries of a long ledger"), ("filter", "the same, filtered"),
                         ("trace", "an item's history there")) for warmth in ("warm", "cold")),
    Bar("start", "ready after, ms", "holdfast.ready", "ms", "<=", 2000),
    Bar("start", "idle, MiB without etcd", "holdfast.idle", "mib", "<=", 150),
    Bar("restart", "one node killed: every shard serves after, ms", "holdfast.restart.one_node",
        "ms", "<=", 3000),
    Bar("restart", "all nodes killed: every shard serves after, ms", "holdfast.restart.all_nodes",
        "ms", "<=", 3000),
    Bar("restart", "everything killed, started again: every shard serves after, ms",
        "holdfast.restart.everything", "ms", "<=", 3000),
    Bar("overload", "grants/s, 1024 connections, to 256", "holdfast.overload.1024", RATE, ">=", 0.8,
        "holdfast.peak.256"),
    Bar("overload", "grants/s, open loop at twice the rate, to the peak", "holdfast.overload.open",
        RATE, ">=", 0.8, "holdfast.peak.256"),
    Bar("overload", "BatchGrant grants/s, open loop at twice the rate, to the peak",
        "holdfast.overload.batch", RATE, ">=", 0.8, "holdfast.peak.batch"),
    Bar("overload", "refused batches are told so within, p99 ms", "holdfast.overload.batch",
        "refused_p99_ms", "<=", 500),
    Bar("overload", "purchases refused beside them", "holdfast.overload.purchases",
        "refused_calls", "<=", 0),
    Bar("overload", "router, MiB at its most", "holdfast.overload.memory.router", "mib", "<=", 512),
    Bar("overload", "a node, MiB at its most", "holdfast.overload.memory.node-1", "mib", "<=",
        node_mib_max()),
    Bar("overload", "grants/s at twice the rate, of a router that refuses, to its peak", "holdfast.refusing.open",
        RATE, ">=", 0.9, "holdfast.refusing.peak"),
    Bar("overload", "grants refused there with THROTTLED", "holdfast.refusing.open", "errors_throttled", ">=", 1),
    Bar("overload", "grants of unknown outcome there", "holdfast.refusing.open", "errors_other", "<=", 0),
    Bar("audit", "grants/s with a cut of all shards each second, to without",
        "holdfast.audited.64", RATE, ">=", 0.95, "holdfast.unaudited.64"),
    *(Bar(group, text + when, f"holdfast.{loaded}{figure}.64", RATE, ">=", 0.8,
          f"holdfast.{plain}.64")
      for group, text, loaded, plain in (
          ("scale", "grants/s, 2 million players, to 10 thousand", "many", "few"),
          ("hour", "grants/s after an hour's log, to a fresh cluster", "aged", "fresh"))
      for figure, when in (("", ""), (".at_once", "; seconds after it was written at once"))),
]


def median_of(results):
    return {key: statistics.median(r[key] for r in results)
            for key in results[0] if isinstance(results[0][key], (int, float))}


def judge(figures, checks):
    """Bars of what was measured, as [{bar, group, ours, peer, value, limit, holds}]."""
    judged = []
    for bar in BARS:
        if bar.ours not in figures:
            continue
        ours = bar.pick(r[bar.field] for r in figures[bar.ours])
        peer = bar.pick(r[bar.field] for r in figures[bar.peer]) if bar.peer else None
        value = ours if peer is None else ours / peer if peer else 0
        holds = value >= bar.limit if bar.sense == ">=" else value <= bar.limit
        judged.append({"bar": bar.text, "group": bar.group, "ours": ours, "peer": peer,
                       "value": round(value, 3), "limit": f"{bar.sense} {bar.limit:g}",
                       "holds": bool(holds)})
    for text, holds, detail in checks:
        judged.append({"bar": text, "group": "verify", "ours": detail, "peer": None,
                       "value": int(holds), "limit": "true", "holds": bool(holds)})
    return judged


def short(value):
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}"


def table(judged):
    """Markdown."""
    lines = ["| bar | Holdfast | beside | ratio | wanted | |", "|---|---|---|---|---|---|"]
    for bar in judged:
        ratio = f"{bar['value']:.2f}" if bar["peer"] is not None else ""
        lines.append(f"| {bar['bar']} | {short(bar['ours'])} | {short(bar['peer'])} | {ratio} "
                     f"| {bar['limit']} | {'ok' if bar['holds'] else 'MISS'} |")
    return "\n".join(lines)


def figure_table(medians):
    """Markdown: the figures behind the bars."""
    fields = ("ops_per_s", "p50_ms", "p99_ms", "server_cpu_us_per_op", "client_cpu_s",
              "aside_cpu_s", "other_cpu_s", "checkpoints")
    lines = ["| figure | ops/s | p50 ms | p99 ms | server CPU us/op | client CPU s | etcd CPU s "
             "| other CPU s | checkpoints |", "|---|---|---|---|---|---|---|---|---|"]
    for name, values in medians.items():
        if "ops_per_s" in values:
            lines.append(f"| {name} | " + " | ".join(short(values.get(f)) for f in fields) + " |")
    return "\n".join(lines)
