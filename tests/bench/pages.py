"""One player with a long ledger, and requests for pages of it from anywhere."""

import json
import os
import random
import time
import uuid

BATCH = 500
ITEM_EVERY = 100  # Entries: each of those mints an item.
BODIES = 4000
PAGE_SIZE = 200


def uuid7():
    data = bytearray(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    data[6], data[8] = data[6] & 0x0F | 0x70, data[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(data)))


class Pages:
    """Fills the ledger once for each cluster, which keeps what was made."""

    PLAYER = "long"
    KINDS = ("list", "filter", "trace")
    METHODS = {"trace": "InventoryService/TraceItem"}

    def __init__(self, cluster, entries):
        self.cluster, self.entries = cluster, entries
        if not cluster.long_ledger:
            cluster.long_ledger = self.fill()
        self.known = cluster.long_ledger

    def fill(self):
        """{items, ops, times, cursors}: something to ask for."""
        known = {"items": [], "ops": [], "times": [], "cursors": []}
        for first in range(0, self.entries, BATCH):
            ops = [uuid7() for _ in range(BATCH)]
            results = self.cluster.call("LedgerService/BatchGrant", {"requests": [{
                "playerId": self.PLAYER, "opId": op, "reason": "bench",
                "authority": "system:payments",
                "currencies": {"gems" if n % 3 else "gold": 1},
                "items": [] if n % ITEM_EVERY else [{"kind": "sword_of_dawn"}]}
                for n, op in enumerate(ops)]}, 30000)["results"]
            known["items"] += [uid for r in results for uid in r["response"].get("itemUids", [])]
            known["ops"].append(ops[0])
            known["times"].append(int(time.time() * 1000))
        cursor = None
        while cursor != "":
            page = {"playerId": self.PLAYER, "pageSize": PAGE_SIZE, "cursor": cursor}
            cursor = self.cluster.call("LedgerService/ListEntries", page).get("nextCursor", "")
            known["cursors"].append(cursor)
        return known

    def filters(self):
        """Each finds something, or looks at as many entries as a page may, from anywhere on."""
        when = random.choice(self.known["times"])
        return random.choice((
            {"currency": "gold", "toMs": when}, {"kinds": ["LEDGER_KIND_SPEND"], "toMs": when},
            {"opId": random.choice(self.known["ops"])},
            {"fromMs": when, "ascending": True},
            {"itemUid": random.choice(self.known["items"])}))

    def bodies(self, what):
        """Lines of JSON."""
        for _ in range(BODIES):
            if what == "trace":
                yield json.dumps({"itemUid": random.choice(self.known["items"])}) + "\n"
                continue
            where = self.filters() if what == "filter" else {
                "cursor": random.choice(self.known["cursors"])}
            yield json.dumps({"playerId": self.PLAYER} | where) + "\n"
