"""Favourites of many players, and requests about them: bodies for `loadgen --op call`, and sums."""

import json
import random

TARGETS = 10000      # As loadgen's --targets by default.
READERS = 500        # Players whose lists and statuses are read.
PAGE = 20            # What a reader has, and a first page of it.
STATUS_IDS = 50
REMEMBERED = 100     # Targets whose counts are asked for often enough that the router tells them from its memory.
TOP = 100
BATCH = 500
COUNTS_MAX = 200
BODIES = 4000


class Favorites:
    """Defines the collection and makes the readers' edges, once for each cluster."""

    METHODS = {"status": "BatchGetStatus", "page": "ListFavorites", "count": "GetCount", "top": "GetTop",
               "fresh": "GetCount"}

    # Rate rules are counted as in production, and refuse nothing.
    DEFINITIONS = {"favorites": {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}},
                   "bench": {"rateRule": {"subject": "favorites", "limit": 1000000, "periodMs": 1000}}}

    def __init__(self, cluster):
        self.cluster = cluster
        if not cluster.favorites:
            self.fill()

    def call(self, method, body):
        return self.cluster.call(f"FavoritesService/{method}", body, 30000)

    def fill(self):
        for name, body in self.DEFINITIONS.items():
            put = {"name": name, "opId": name, "reason": "bench", "waitMs": 20000, "body": body}
            answer = self.cluster.call("DefinitionService/PutDefinition", put, 30000)
            if "code" in answer:
                raise RuntimeError(f"PutDefinition: {answer}")
        edges = [{"playerId": f"reader{n % READERS}", "opId": f"key:bench-{n}", "targetId": f"g{target}"}
                 for n, target in enumerate(random.choices(range(TARGETS), k=READERS * PAGE * 2))]
        held = {}
        for edge in edges:  # A reader has PAGE edges, each to another target.
            mine = held.setdefault(edge["playerId"], {})
            if len(mine) < PAGE:
                mine.setdefault(edge["targetId"], edge)
        edges = [edge for mine in held.values() for edge in mine.values()]
        for first in range(0, len(edges), BATCH):
            answer = self.call("BatchFavorite", {"requests": edges[first:first + BATCH]})
            if "results" not in answer or answer.get("failed"):
                raise RuntimeError(f"BatchFavorite: {str(answer)[:300]}")
        self.cluster.favorites = {"read": len(edges), "hot": []}

    def hot(self):
        """A target that no run has used."""
        name = f"hot{len(self.cluster.favorites['hot'])}"
        self.cluster.favorites["hot"].append(name)
        return name

    def bodies(self, what):
        """Lines of JSON."""
        for _ in range(BODIES):
            body = {
                "status": lambda: {"playerId": self.reader(), "targetIds": self.targets(STATUS_IDS)},
                "page": lambda: {"playerId": self.reader()},
                "count": lambda: {"targetId": f"g{random.randrange(REMEMBERED)}"},
                "top": lambda: {"window": "all", "limit": TOP},
                "fresh": lambda: {"targetId": self.targets(1)[0], "fresh": True},
            }[what]()
            yield json.dumps(body) + "\n"

    @staticmethod
    def reader():
        return f"reader{random.randrange(READERS)}"

    @staticmethod
    def targets(count):
        return [f"g{n}" for n in random.sample(range(TARGETS), count)]

    def counted(self):
        """The sum of the counts of all targets, gathered when asked."""
        names = [f"g{n}" for n in range(TARGETS)] + self.cluster.favorites["hot"]
        total = 0
        for first in range(0, len(names), COUNTS_MAX):
            answer = self.call("BatchGetCounts", {"targetIds": names[first:first + COUNTS_MAX], "fresh": True})
            total += sum(int(count.get("count", 0)) for count in answer["counts"])
        return total
