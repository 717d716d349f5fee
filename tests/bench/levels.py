"""Service levels of favourites: writes, checks, pages, hot counts and a top list at once, at four fifths of what they reach together."""

import concurrent.futures
import threading
import time

from favorites import STATUS_IDS, Favorites
from processes import wait_for

SHARE = 0.8
CALLERS = 8  # In an open loop, for each connection of the closed one: none waits for another's answer.
TOP_EVERY_S = 0.05
# What runs together: operation, connections, what more.
PARTS = {
    "write": ("favorite", 32, {}),
    "check": ("call", 16, {"method": "FavoritesService/BatchGetStatus", "answer_min": 16 * STATUS_IDS}),
    "page": ("call", 16, {"method": "FavoritesService/ListFavorites", "answer_min": 16}),
    "count": ("call", 8, {"method": "FavoritesService/GetCount", "answer_min": 16}),
}
BODIES = {"check": "status", "page": "page", "count": "count"}
HITS, MISSES = ("holdfast_router_count_hits_total", "holdfast_router_count_misses_total")


class AgeOfTop:
    """Asks for the top list all the time: how old each answer was when it came."""

    def __init__(self, favorites):
        self.favorites, self.ages_ms, self.ended = favorites, [], threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        while not self.ended.wait(TOP_EVERY_S):
            answer = self.favorites.call("GetTop", {"window": "24h", "limit": 100})
            self.ages_ms.append(time.time() * 1000 - int(answer["asOfFromMs"]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def p99_ms(self):
        return round(sorted(self.ages_ms)[int(len(self.ages_ms) * 0.99)], 1) if self.ages_ms else 0.0


class Levels:
    """Half of all writes go to one target; the counts that are asked for are those of hot targets."""

    def __init__(self, bench):
        self.bench, self.cluster = bench, bench.cluster("levels")
        self.favorites = Favorites(self.cluster)
        self.hot = self.favorites.hot()

    def options(self, part):
        op, connections, more = PARTS[part]
        if part in BODIES:
            path = self.bench.directory / f"bodies-{part}"
            path.write_text("".join(self.favorites.bodies(BODIES[part])), encoding="utf-8")
            more = more | {"bodies": path}
        else:
            more = more | {"hot": self.hot}
        return op, connections, more

    def together(self, rates, seconds):
        """{part: what its load generator told}, and the share of counts that the router remembered."""
        before = [self.cluster.router_metric(name) for name in (HITS, MISSES)]
        with concurrent.futures.ThreadPoolExecutor(len(PARTS)) as pool:
            asked = {}
            for part in PARTS:
                op, connections, more = self.options(part)
                if rates:
                    connections *= CALLERS
                    more = more | {"rate": max(1, round(rates[part]))}
                asked[part] = pool.submit(self.cluster.load, op, connections, seconds, True, **more)
            told = {part: future.result() for part, future in asked.items()}
        hits, misses = (self.cluster.router_metric(name) - was for name, was in zip((HITS, MISSES), before))
        return told, hits / max(hits + misses, 1)

    def measure(self, name, rates, seconds):
        with AgeOfTop(self.favorites) as top:
            told, hits = self.together(rates, seconds)
        for part, result in told.items():
            self.bench.note(f"holdfast.levels.{name}{part}", result)
        self.bench.note(f"holdfast.levels.{name}all", {
            "errors": sum(result["errors"] for result in told.values()), "hits": round(hits, 4), "top_ms": top.p99_ms()})


def measure_levels(bench):
    """At rest but for the load; then with a node killed: from when every shard serves again, while the node comes back."""
    levels, seconds = Levels(bench), bench.arguments.seconds
    peak, _ = levels.together(None, seconds)
    rates = {part: SHARE * result["ops_per_s"] for part, result in peak.items()}
    bench.settle()
    levels.measure("", rates, seconds)
    begun = time.monotonic()
    levels.cluster.kill_nodes(1)
    levels.cluster.probe(begun)
    levels.measure("killed.", rates, seconds)
    wait_for("the cluster to be whole", lambda: levels.cluster.replicas_live() == 3)
