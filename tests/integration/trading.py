"""Players who trade in a tight loop, and readers who want to see them as of one moment."""

import random
import threading
import time

from client import UNHELD, RpcError, Unanswered, uuid7

GOLD = 1_000


class Counter(threading.Thread):
    """Does `step` again and again, and counts how each ended by the answer's code."""

    def __init__(self, client, players, seed):
        super().__init__(daemon=True)
        self.client, self.players = client, players
        self.random = random.Random(seed)
        self.ending, self.failure, self.pause_s = threading.Event(), None, 0.0
        self.ended, self.slowest_s, self.seconds = {}, 0.0, 0.0

    def step(self):
        raise NotImplementedError

    def run(self):
        begun = time.monotonic()
        while not self.ending.wait(self.pause_s):
            at = time.monotonic()
            try:
                self.step()
                code = "OK"
            except RpcError as error:
                code = error.code
            except Unanswered:
                code = "UNANSWERED"
            except BaseException as error:
                self.failure = error
                raise
            self.ended[code] = self.ended.get(code, 0) + 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - at)
        self.seconds = time.monotonic() - begun

    @property
    def steps(self):
        return sum(self.ended.values())

    def share(self, code):
        return self.ended.get(code, 0) / max(1, self.steps)


class Writer(Counter):
    """Swaps gold between two of the players, or moves it around three of them."""

    def step(self):
        one, two, three = self.random.sample(self.players, 3)
        gold = {"gold": 1}
        free = {"authority": UNHELD}
        if self.random.random() < 0.5:
            self.client.call("TransactionService/Swap", {
                "opId": uuid7(), "a": {"playerId": one, "gives": {"currencies": gold}} | free,
                "b": {"playerId": two} | free}, 5000)
            return
        move = lambda a, b: {"move": {"fromPlayerId": a, "toPlayerId": b, "currencies": gold}}
        self.client.call("TransactionService/ExecuteTransaction", {
            "playerId": one, "opId": uuid7(),
            "others": [{"playerId": two} | free, {"playerId": three} | free],
            "changes": [move(two, three), move(three, one)]} | free, 5000)


class Reader(Counter):
    """Reads all of the players, or some, and finds the same gold in all of them together."""

    def __init__(self, client, players, seed, some=False, deadline_ms=2000):
        super().__init__(client, players, seed)
        self.some, self.deadline_ms = some, deadline_ms

    def step(self):
        count = self.random.randint(2, len(self.players)) if self.some else len(self.players)
        wanted = self.random.sample(self.players, count)
        profiles = self.client.call("TransactionService/ReadPlayers", {"playerIds": wanted},
                                    self.deadline_ms)["profiles"]
        total = sum(p["balances"]["gold"] for p in profiles)
        if count == len(self.players) and total != GOLD * count:
            raise AssertionError(f"{total} gold was read of {GOLD * count}")
        if len(profiles) != count:
            raise AssertionError(f"{len(profiles)} players were read of {count}")


def players(client, count=6):
    """New ones, each with so much gold that none runs out."""
    names = [f"trader-{uuid7()}" for _ in range(count)]
    for name in names:
        client.grant(name, GOLD)
    return names


def run(threads, seconds):
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop(threads)


def stop(threads):
    for thread in threads:
        thread.ending.set()
    for thread in threads:
        thread.join(60)
        if thread.failure is not None:
            raise thread.failure
        if thread.is_alive():
            raise AssertionError("a caller still waits for its answer")
