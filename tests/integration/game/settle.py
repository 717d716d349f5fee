"""
When the game is over: settle.py PLAN (JSON). Every operation whose outcome its caller was not told is
settled: sent again until it is known, or sealed. Then outcomes are asked for once more, and all is read.
"""

import concurrent.futures
import json
import pathlib
import random
import sys
import threading
import time

import journal
from wire import Failure, Journal, Wire

PATIENCE_S = 90
HANDS = 8
ASKED_AGAIN = 2000
WAITS = ("UNAVAILABLE", "THROTTLED", "TXN_CONFLICT", "DEADLINE_EXCEEDED")
FINAL = ("COMMITTED", "REFUSED", "ABORTED", "EXPIRED", "BOUND")


class Settler:
    def __init__(self, plan):
        self.directory, self.players = pathlib.Path(plan["directory"]), plan["players"]
        self.calls = journal.load(self.directory)
        self.journal = Journal(self.directory, "settle")
        self.wire = Wire(self.journal, plan["routers"])
        self.dice, self.lock = random.Random(plan["seed"]), threading.Lock()

    def until_known(self, what, attempt):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return attempt()
            except Failure as failure:
                if failure.kind == "refused":
                    return None
                if failure.kind == "not_done" and failure.code not in WAITS:  # A seal ends it.
                    return None
                if time.monotonic() > end:
                    raise AssertionError(f"{what}: {failure} for {PATIENCE_S} s") from failure
                time.sleep(min(max(failure.wait_ms, 20), 500) / 1e3)

    def resolve(self, op, seal):
        def attempt():
            method = "ResolveOperation" if seal else "GetOperation"
            fields = {"entity": f"player:{op.home}", "op_id": op.op_id} | ({"seal": True} if seal else {})
            answer = self.wire.call(f"OperationService/{method}", 10, **fields)
            state = journal.state_of(self.wire.readable("", answer))
            if state not in FINAL and (seal or state == "PENDING"):
                raise Failure("not_done", f"{state} of {op.op_id}", 50)
            return state
        return self.until_known(f"{op.op_id} of {op.home}", attempt)

    def settle(self, op):
        with self.lock:
            again = self.dice.random() < 0.5
        if again and op.method != "SessionService/StartSession":
            request = self.wire.message(op.method, **op.calls[-1].request)
            self.until_known(op.op_id, lambda: self.wire.send(op.method, request, 10))
        self.resolve(op, seal=True)

    def pages(self, method, name, **fields):
        found, cursor = [], ""
        while True:
            page = self.until_known(method, lambda c=cursor: self.wire.call(method, 10, cursor=c, **fields))
            found += self.wire.readable(method, page).get(name, [])
            cursor = page.next_cursor
            if not cursor:
                return found

    def read(self, player):
        """What a player has in the end, all of it."""
        profile = self.until_known("a profile", lambda: self.wire.call(
            "ProfileService/GetProfile", 10, player_id=player, settled=True))
        return {"final": player} | self.wire.readable("", profile)["profile"] | {
            "items": self.pages("InventoryService/ListItems", "items", player_id=player, page_size=500),
            "mails": self.pages("MailboxService/ListMail", "mails", player_id=player, page_size=100),
            "entries": self.pages("LedgerService/ListEntries", "entries", player_id=player,
                                  page_size=200, ascending=True)}

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(HANDS) as pool:
            ops = journal.operations(self.calls)
            list(pool.map(self.settle, [op for op in ops.values() if not op.told]))
            # In the end nothing may be on its way: then what is read is all there is.
            known = list(journal.operations(journal.load(self.directory)).values())
            asked = [op for op in known if len(op.calls) > 1 or op.resolved]
            self.dice.shuffle(asked)
            rest = self.dice.sample(known, min(len(known), ASKED_AGAIN // 4))
            list(pool.map(lambda op: self.resolve(op, seal=False), asked[:ASKED_AGAIN] + rest))
            for record in pool.map(self.read, self.players):
                self.journal.write(record)


if __name__ == "__main__":
    Settler(json.loads(sys.argv[1])).run()
