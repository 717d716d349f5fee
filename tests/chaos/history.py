"""
Load that remembers what it was told, and the audit of it. Every player belongs to one thread, which
settles each operation before the next one on that player: so the ledger that must be there is known
entry by entry.
"""

import contextlib
import json
import random
import threading
import time

from client import UNHELD, RpcError, Unanswered, grant_of, retryable, uuid7

PATIENCE_S = 180
FILL = "x" * 3000


class Worker(threading.Thread):
    """One thread of load. `step` does one thing and settles it."""

    def __init__(self, crew, number, players):
        super().__init__(daemon=True)
        self.crew, self.client = crew, crew.client
        self.dice = random.Random(crew.dice.random())
        self.players = [f"{type(self).__name__.lower()}-{number}-{n}" for n in range(players)]
        self.ledger = {player: [] for player in self.players}  # (op_id, change) in order
        self.acked = self.retried = 0

    def run(self):
        try:
            while not self.crew.stopping.is_set():
                self.step()
        except (AssertionError, RpcError) as error:
            self.crew.unexpected.append(f"{self.name}: {error}")

    def until_known(self, what, attempt):
        """Calls `attempt` until it returns; errors after which the outcome is open are no end."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return attempt()
            except Unanswered:
                pass
            except RpcError as error:
                if not retryable(error):
                    raise AssertionError(f"{what}: {error}") from error
            assert time.monotonic() < end, f"{what}: no outcome within {PATIENCE_S} s"
            self.retried += 1
            time.sleep(0.02)

    def call(self, method, request):
        """One call; often it has less time than a failover takes, so that callers retry, too."""
        return self.client.call(method, request, self.dice.choice((250, 700, 5000)))

    def told(self, player, op_id, change):
        self.ledger[player].append((op_id, change))
        self.acked += 1


class Granter(Worker):
    """Grants and spends one by one."""

    def step(self):
        player, op_id = self.dice.choice(self.players), uuid7()
        balance = sum(change for _, change in self.ledger[player])
        amount = self.dice.randint(1, 9)
        spend = balance >= amount and self.dice.random() < 0.3
        request = grant_of(player, amount, op_id) | ({"authority": UNHELD} if spend else {})
        method = "LedgerService/Spend" if spend else "LedgerService/Grant"
        self.until_known(f"{player} {op_id}", lambda: self.call(method, request))
        self.told(player, op_id, -amount if spend else amount)


class Batcher(Worker):
    """Grants to all its players in one call; repeats those whose outcome is not known."""

    def step(self):
        waiting = [grant_of(player, self.dice.randint(1, 9)) for player in self.players]
        self.until_known("a batch", lambda: self.send(waiting))

    def send(self, waiting):
        answer = self.call("LedgerService/BatchGrant", {"requests": waiting})
        open_still = []
        for request, result in zip(list(waiting), answer["results"]):
            if "error" not in result:
                self.told(request["playerId"], request["opId"],
                          request["currencies"]["gold"])
                continue
            error = RpcError(200, {"error": result["error"]})
            if not retryable(error):
                raise AssertionError(f"{request['playerId']} {request['opId']}: {result}")
            open_still.append(request)
        waiting[:] = open_still
        if open_still:
            raise Unanswered("part of a batch")


class Saver(Worker):
    """Saves documents that are large, so that the log and the database turn over."""

    def __init__(self, crew, number, players):
        super().__init__(crew, number, players)
        self.saved = dict.fromkeys(self.players, 0)

    def step(self):
        player = self.dice.choice(self.players)
        request = {"playerId": player, "opId": uuid7(), "authority": UNHELD, "edits": [{
            "name": "save", "replace": json.dumps({"n": self.saved[player] + 1, "fill": FILL})}]}
        self.until_known(player, lambda: self.call("ProfileService/UpdateProfile", request))
        self.saved[player] += 1
        self.acked += 1

    def audit(self):
        for player, count in self.saved.items():
            sections = self.client.settle("ProfileService/GetProfile",
                                          {"playerId": player})["profile"].get("sections", {})
            found = [(s["json"]["n"], s["version"]) for s in sections.values()]
            if found != ([(count, count)] if count else []):
                yield f"{player}: saved {count} times, found (number, version) {found}"


class Sealer(Worker):
    """Gives up on grants at once, or never sent them, and seals them: carried out, or never."""

    def __init__(self, crew, number, players):
        super().__init__(crew, number, players)
        self.aborted = []  # requests

    def step(self):
        request = grant_of(self.dice.choice(self.players), self.dice.randint(1, 9))
        player, op_id = request["playerId"], request["opId"]
        if self.dice.random() < 0.7:
            with contextlib.suppress(Unanswered, RpcError):  # Whatever it was: the seal tells.
                self.client.call("LedgerService/Grant", request, self.dice.choice((1, 2, 4, 50)))
        state = self.until_known(f"seal of {op_id}", lambda: self.call(
            "OperationService/ResolveOperation", {
                "entity": f"player:{player}", "opId": op_id, "seal": True}))["operation"]["state"].upper()
        assert state in ("COMMITTED", "ABORTED"), f"{op_id} was sealed and is {state}"
        if state == "COMMITTED":
            self.told(player, op_id, request["currencies"]["gold"])
        else:
            self.aborted.append(request)
        time.sleep(0.002)

    def audit(self):
        """A packet of a sealed operation that comes late is still refused."""
        for request in self.aborted[:: max(1, len(self.aborted) // 200)]:
            try:
                self.client.settle("LedgerService/Grant", request)
                yield f"{request['opId']} was sealed, and then carried out"
            except RpcError as error:
                if error.code != "OPERATION_ABORTED":
                    yield f"{request['opId']} was sealed, and is now {error}"


class Crew:
    """All the load. Use as a context manager; audit afterwards."""

    def __init__(self, client, dice):
        self.client, self.dice = client, dice
        self.stopping = threading.Event()
        self.unexpected = []
        self.workers = [Granter(self, 1, 30), Granter(self, 2, 30), Batcher(self, 1, 100),
                        Saver(self, 1, 800), Saver(self, 2, 800), Sealer(self, 1, 20)]

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, kind, error, trace):
        self.stopping.set()
        for worker in self.workers:
            worker.join(PATIENCE_S + 60)
            if worker.is_alive():
                self.unexpected.append(f"{worker.name} does not end")

    def acked(self):
        return sum(worker.acked for worker in self.workers)

    def figures(self):
        return {"acknowledged": self.acked(),
                "repeated": sum(worker.retried for worker in self.workers),
                "sealed_as_never": sum(len(getattr(w, "aborted", [])) for w in self.workers)}

    def audit(self):
        """What is wrong, as texts."""
        wrong = []
        for worker in self.workers:
            if hasattr(worker, "audit"):
                wrong += worker.audit()
            for player, told in worker.ledger.items():
                wrong += self.audit_ledger(player, told)
                wrong += self.audit_operations(player, told)
        return wrong

    def audit_ledger(self, player, told):
        entries = self.client.entries(player)
        found = [(e["opId"], int(e["changes"][0]["amount"])) for e in entries]
        if found != told:
            lost = [op for op in told if op not in found]
            more = [op for op in found if op not in told]
            yield (f"{player}: {len(told)} told, {len(found)} found; lost {lost[:3]}, "
                   f"never told {more[:3]}, doubled {len(found) - len(set(found))}")
        if [int(e["seq"]) for e in entries] != list(range(1, len(entries) + 1)):
            yield f"{player}: the ledger has gaps"
        if self.client.balance(player) != sum(change for _, change in told):
            yield f"{player}: balance {self.client.balance(player)}, told {told}"

    def audit_operations(self, player, told):
        for op_id, _ in told[:: max(1, len(told) // 3)]:
            state = self.client.settle("OperationService/GetOperation", {
                "entity": f"player:{player}", "opId": op_id})["operation"]["state"]
            if state != "committed":
                yield f"{player} {op_id}: acknowledged, and now {state}"
