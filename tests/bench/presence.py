"""Presence of many players by one game server, and requests for it: bodies for `loadgen --op call`."""

import json
import random
import threading

from pages import uuid7

PLAYERS = 100000
SET, GET = 100, 200  # Players of one call.
BODIES = 2000


class Presence:
    """A game server whose heart beats until the end of the `with`."""

    METHODS = {"set": ("BatchSetPresence", SET), "get": ("BatchGetPresence", GET)}

    def __init__(self, cluster):
        self.cluster = cluster
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def __enter__(self):
        answer = self.cluster.call("SessionService/RegisterServer", {"name": "bench"}, 30000)
        self.incarnation = answer["incarnation"]
        self.thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.stopping.set()
        self.thread.join(60)
        self.cluster.call("SessionService/UnregisterServer", {"incarnation": self.incarnation}, 30000)

    def beat(self):
        while not self.stopping.wait(2):
            self.cluster.call("SessionService/RenewSessions", {"incarnation": self.incarnation})

    def bodies(self, what):
        """Lines of JSON; each player at most once in each."""
        shared = {"connection": "game", "incarnation": self.incarnation, "status": json.dumps({"in": "lobby", "party": 3})}
        for _ in range(BODIES):
            few = [{"playerId": f"u{n}"} for n in random.sample(range(PLAYERS), self.METHODS[what][1])]
            yield json.dumps(({"opId": uuid7()} | shared if what == "set" else {}) | {"requests": few}) + "\n"
