"""The figures of a run, as the generated block of docs/performance.md: ./dev bench --report.

A run that measured some groups alone replaces their rows; the others keep theirs, each with the day on which it was
measured. Nothing is written when a store lost what it had acknowledged.
"""

import datetime
import os
import pathlib
import re

from bars import BARS, short

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- bars: written by ./dev bench --report -->", "<!-- to here -->"
BLOCK = re.compile(re.escape(BEGIN) + "(.*?)" + re.escape(END), re.S)
BAR_HEAD = "| bar | Holdfast | beside | ratio | wanted | | measured |\n|---|---|---|---|---|---|---|"
LOAD_HEAD = "| load | a second | p50 ms | p99 ms | servers' us each | measured |\n|---|---|---|---|---|---|"
LOADS = {
    "holdfast.grant.64": "grants, 64 connections", "redis.grant.64": "... Redis",
    "postgres.grant.64": "... PostgreSQL", "holdfast.grant.256": "grants, 256 connections",
    "redis.grant.256": "... Redis, 256", "holdfast.grant.1": "grants, 1 connection",
    "redis.grant.1": "... Redis, 1", "holdfast.batchgrant.16": "grants in batches of 100, 16 connections",
    "redis.pipelined.64": "... Redis, pipelines of 16", "holdfast.read.64": "strict reads of 1 KiB, 64 connections",
    "holdfast.batchread.16": "... in batches of 50, 16 connections",
    "holdfast.startend.64": "StartSession + EndSession, 64 connections",
    "holdfast.transfer.64": "transfers of an item across shards, 64 connections",
    "redis.transfer.64": "... Redis, a script on one shard",
    "holdfast.swap.64": "swaps across shards, 64 connections",
    "holdfast.favorite.64": "favourites, 64 connections", "redis.favorite.64": "... Redis, a script",
    "holdfast.favorite.hot.64": "... half of them to one target",
    "holdfast.batchfavorite.16": "favourites in batches of 100, 16 connections",
    "redis.favorite.pipelined.64": "... Redis, pipelines of 16 scripts",
    "holdfast.favorites.status": "BatchGetStatus of 50 targets, 64 connections",
    "holdfast.favorites.page": "first pages of 20 favourites, 64 connections",
    "holdfast.favorites.count": "counts that the router remembers, 64 connections",
    "holdfast.favorites.top": "top lists of 100 that the router remembers, 64 connections",
    "holdfast.favorites.fresh": "counts gathered when asked, 1 connection",
    "holdfast.documents.update.64": "UpdateDocument at ONE of a leaf, 64 connections", "redis.hset.64": "... Redis, HSET",
    "holdfast.documents.get.64": "GetDocument of 1 KiB at any member, 64 connections",
    "holdfast.presence.set": "BatchSetPresence of 100 players, 8 connections",
    "holdfast.presence.get": "BatchGetPresence of 200 players, 8 connections",
}
LOAD_FIELDS = ("ops_per_s", "p50_ms", "p99_ms", "server_cpu_us_per_op")


class Lost(Exception):
    """A store lost something: the run is no measurement."""


def bar_rows(judged, day):
    """Text of the bar -> its row."""
    rows = {}
    for bar in judged:
        if bar["group"] == "verify":
            continue
        ratio = f"{bar['value']:.2f}" if bar["peer"] is not None else ""
        rows[bar["bar"]] = (f"| {bar['bar']} | {short(bar['ours'])} | {short(bar['peer'])} | {ratio} | {bar['limit']} "
                            f"| {'ok' if bar['holds'] else 'MISS'} | {day} |")
    return rows


def load_rows(medians, day):
    """Name of the load -> its row."""
    return {name: "| " + " | ".join([name, *(short(medians[figure].get(field)) for field in LOAD_FIELDS), day]) + " |"
            for figure, name in LOADS.items() if figure in medians}


def kept_rows(block):
    """First cell -> row, of all that the block has."""
    return {line.split(" | ")[0].removeprefix("| "): line for line in block.split("\n") if line.startswith("| ")}


def render(block, results, day, processors):
    """The block's new text, between its marks."""
    lost = [bar["bar"] for bar in results["bars"] if bar["group"] == "verify" and not bar["holds"]]
    if lost:
        raise Lost(f"not written, since this does not hold: {'; '.join(lost)}")
    rows = kept_rows(block) | bar_rows(results["bars"], day) | load_rows(results["medians"], day)
    last = (f"Last run: {day}, {processors} processors for servers and callers together, medians of "
            f"{results['rounds']} rounds of {results['seconds']:g} s in alternation, {results['players']:,} players, "
            f"{results['items']} item in each grant.")
    bars = [rows[bar.text] for bar in BARS if bar.text in rows]
    loads = [rows[name] for name in LOADS.values() if name in rows]
    return "\n".join(["", last, "", BAR_HEAD, *bars, "", LOAD_HEAD, *loads, ""])


def write(results, page=PAGE, day=None):
    text = page.read_text(encoding="utf-8")
    block = BLOCK.search(text)
    assert block, f"{page} has no block of bars"
    body = render(block[1], results, day or datetime.date.today().isoformat(), os.cpu_count())
    page.write_text(text[:block.start(1)] + body + text[block.end(1):], encoding="utf-8")
