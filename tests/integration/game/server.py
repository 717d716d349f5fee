"""
One game server: server.py PLAN (JSON). Its hands take players, play with them, and let them go, or
forget them; another server may steal a player, or this process be killed, at any moment.
"""

import contextlib
import json
import random
import signal
import sys
import threading
import time

from holdfast.v1 import error_pb2
from wire import Failure, Journal, Wire, uuid7

TTL_MS, RENEW_S = 5000, 1.0
TRIES = 12
CURRENCIES = ("gold", "gems")


class Session:
    def __init__(self, player, token):
        self.player, self.token = player, token
        self.lost = False
        self.items = []

    def authority(self):
        return f"session:{self.token}"


class Lost(Exception):
    """Another server has the player, or this server is forgotten."""


class Server:
    def __init__(self, plan):
        self.name, self.players = plan["name"], plan["players"]
        self.wire = Wire(Journal(plan["directory"], plan["name"]), plan["routers"])
        self.dice = random.Random(plan["seed"])
        self.sessions = {}  # player: Session
        self.incarnation = ""
        self.stopping = threading.Event()

    def register(self):
        while not self.stopping.is_set():
            with contextlib.suppress(Failure):
                answer = self.wire.call("SessionService/RegisterServer", name=self.name, ttl_ms=TTL_MS)
                self.incarnation = answer.incarnation
                return
            time.sleep(0.2)

    def heart(self):
        """Renews what it holds; stops writing for what it lost, lets go what others ask for."""
        while not self.stopping.wait(RENEW_S):
            held = list(self.sessions.values())
            try:
                answer = self.wire.call("SessionService/RenewSessions", 3, incarnation=self.incarnation,
                                        sessions=[{"player_id": s.player, "token": s.token} for s in held])
            except Failure as failure:
                if failure.code == "SERVER_EXPIRED":
                    for session in held:
                        session.lost = True
                    self.register()
                continue
            gone = {ref.token for ref in answer.lost} | {ref.token for ref in answer.release_requested}
            for session in held:
                session.lost = session.lost or session.token in gone

    def run(self, hands):
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        self.register()
        threads = [threading.Thread(target=Hand(self, random.Random(self.dice.random())).run)
                   for _ in range(hands)] + [threading.Thread(target=self.heart)]
        for thread in threads:
            thread.start()
        for thread in threads:  # In turns: a signal that another thread got is handled when this one looks.
            while thread.is_alive():
                thread.join(0.2)


class Hand:
    """One thread: it has one player at a time, and trades with what the server's other hands have."""

    def __init__(self, server, dice):
        self.server, self.wire, self.dice = server, server.wire, dice
        self.doing = [(5, self.reward), (3, self.loot), (4, self.spend), (6, self.save), (4, self.mail),
                      (2, self.pay), (2, self.give), (4, self.claim), (2, self.craft), (5, self.swap),
                      (3, self.ring), (4, self.look), (2, self.look_at_others), (1, self.give_up)]

    def run(self):
        while not self.server.stopping.is_set():
            free = [name for name in self.server.players if name not in self.server.sessions]
            session = self.join(self.dice.choice(free))
            if session is None:
                time.sleep(0.05)
                continue
            try:
                self.play(session)
            except Lost:
                pass
            finally:
                if self.server.sessions.get(session.player) is session:
                    del self.server.sessions[session.player]

    def play(self, session):
        weights = [weight for weight, _ in self.doing]
        for action in self.dice.choices([action for _, action in self.doing], weights,
                                        k=self.dice.randint(5, 40)):
            if session.lost or self.server.stopping.is_set():
                break
            action(session)
            time.sleep(self.dice.random() * 0.02)
        if self.dice.random() < 0.85:  # Else it forgets to leave, as a server does that crashes.
            self.leave(session)

    # Every mutation goes through here.

    def mutate(self, method, session, **fields):
        """Carries one operation out, as far as its luck goes; its answer, or None."""
        request = self.wire.message(method, op_id=fields.pop("op_id", None) or uuid7(), **fields)
        for _ in range(TRIES):
            try:
                answer = self.wire.send(method, request, self.dice.choice((0.7, 2, 8)))
                if self.dice.random() < 0.06:  # As if the answer had been lost.
                    with contextlib.suppress(Failure):
                        self.wire.send(method, request)
                return answer
            except Failure as failure:
                if not self.goes_on(failure, session, request):
                    return None
        return None  # It is settled in the end.

    def goes_on(self, failure, session, request):
        if failure.code in ("SESSION_LOST", "SERVER_EXPIRED"):
            if session:
                session.lost = True
            raise Lost
        if failure.kind == "unknown":
            way = self.dice.random()
            if way < 0.25:
                self.seal(request)
            return way >= 0.4
        if failure.kind == "refused":
            if failure.code == "INSUFFICIENT_FUNDS" and self.dice.random() < 0.2:
                request.attempt += 1
                return True
            return False
        if failure.code not in ("UNAVAILABLE", "THROTTLED", "TXN_CONFLICT", "DEADLINE_EXCEEDED"):
            return False
        time.sleep(min(max(failure.wait_ms, 10), 400) / 1e3)
        return True

    def seal(self, request):
        with contextlib.suppress(Failure):  # Settled in the end.
            home = request.a if hasattr(request, "a") else request  # A Swap is of its side a.
            self.wire.call("OperationService/ResolveOperation", entity=f"player:{home.player_id}",
                           op_id=request.op_id, seal=True)

    # Sessions.

    def join(self, player):
        mode = self.dice.choices(("STEAL", "FAIL", "WAIT"), (5, 4, 1))[0]
        try:
            answer = self.mutate("SessionService/StartSession", None, player_id=player,
                                 incarnation=self.server.incarnation, mode=f"START_MODE_{mode}",
                                 grace_ms=self.dice.choice((200, 1000, 2500)))
        except Lost:
            time.sleep(0.2)  # The heart registers again.
            return None
        if answer is None:
            return None
        session = Session(player, answer.token)
        self.server.sessions[player] = session
        return session

    def leave(self, session):
        self.mutate("SessionService/EndSession", session, player_id=session.player,
                    authority=session.authority(), edits=[self.edit()])

    # What players do.

    def write(self, method, session, **fields):
        return self.mutate(method, session, player_id=session.player, authority=session.authority(), **fields)

    def amounts(self, most=40):
        chosen = self.dice.sample(CURRENCIES, self.dice.choice((1, 1, 2)))
        return [{"currency": name, "amount": self.dice.randint(1, most)} for name in chosen]

    def edit(self):
        step = {"kind": "PATCH_KIND_INCREMENT", "path": "/xp", "json": str(self.dice.randint(1, 9))}
        return {"name": "progress", "schema_version": 1, "patch": {"steps": [step]}}

    def another(self, player):
        return self.dice.choice([name for name in self.server.players if name != player])

    def beside(self, session, wanted):
        """Other sessions of this server."""
        found = [s for s in list(self.server.sessions.values()) if s.player != session.player and not s.lost]
        return self.dice.sample(found, wanted) if len(found) >= wanted else []

    def take_item(self, session):
        return session.items.pop(self.dice.randrange(len(session.items))) if session.items else None

    def reward(self, session):
        """The end of a match pays all who were in it."""
        match = f"match:{uuid7()}:1"
        who = [session, *self.beside(session, self.dice.choice((0, 1, 2)))]
        request = self.wire.message("LedgerService/BatchGrant", requests=[
            {"player_id": s.player, "op_id": match, "authority": self.dice.choice(
                (s.authority(), "system:match")), "currencies": self.amounts(60),
             "reason": "match"} for s in who])
        for _ in range(self.dice.choice((1, 2, 4))):
            try:
                answer = self.wire.send("LedgerService/BatchGrant", request, self.dice.choice((1, 5)))
            except Failure as failure:
                time.sleep(min(failure.wait_ms + 10, 300) / 1e3)
                continue
            if all(result.HasField("response") or result.error.outcome == error_pb2.OUTCOME_REFUSED for result in answer.results):
                return

    def loot(self, session):
        answer = self.write("LedgerService/Grant", session, reason="loot", items=[
            {"kind": self.dice.choice(("sword", "hat", "ring"))} for _ in range(self.dice.choice((1, 1, 3)))])
        if answer:
            session.items += answer.item_uids

    def spend(self, session):
        self.write("LedgerService/Spend", session, currencies=self.amounts(), reason="shop")

    def save(self, session):
        self.write("ProfileService/UpdateProfile", session, edits=[self.edit()])

    def mail(self, session):
        item = self.take_item(session)
        self.write("MailboxService/SendMail", session, to_player_id=self.another(session.player), text="gl",
                   currencies=self.amounts(10), item_uids=[item] if item else [])

    def pay(self, session):
        self.write("LedgerService/TransferCurrencies", session, to_player_id=self.another(session.player),
                   currencies=self.amounts(10), reason="bet")

    def give(self, session):
        item = self.take_item(session)
        if item:
            self.write("InventoryService/TransferItems", session, to_player_id=self.another(session.player),
                       item_uids=[item], reason="gift")

    def claim(self, session):
        try:
            mails = self.wire.call("MailboxService/ListMail", player_id=session.player, page_size=20).mails
        except Failure:
            return
        chosen = [mail.mail_id for mail in mails][: self.dice.choice((1, 3, 8))]
        if chosen:
            answer = self.write("MailboxService/ClaimMail", session, mail_ids=chosen)
            session.items += [item.uid for item in answer.items] if answer else []

    def craft(self, session):
        item = self.take_item(session)
        if item:
            self.write("LedgerService/Spend", session, item_uids=[item], reason="crafting",
                       currencies=self.amounts(3) if self.dice.random() < 0.5 else [])

    def swap(self, session):
        for other in self.beside(session, 1):
            mine, theirs = self.take_item(session), self.take_item(other)
            self.write("TransactionService/Swap", session, reason="deal", other_player_id=other.player,
                       other_authority=other.authority(), currencies=self.amounts(8) if not mine else [],
                       item_uids=[mine] if mine else [], other_item_uids=[theirs] if theirs else [],
                       other_currencies=self.amounts(8) if not theirs else [])

    def ring(self, session):
        """Three players pay each other in a ring, or none does; the last one is given something new."""
        others = self.beside(session, 2)
        if not others:
            return
        names = [session.player] + [other.player for other in others]
        self.write("TransactionService/ExecuteTransaction", session, reason="ring", others=[
            {"player_id": other.player, "authority": other.authority()} for other in others], changes=[
            {"move": {"from_player_id": names[i], "to_player_id": names[(i + 1) % 3],
                      "currencies": [{"currency": "gold", "amount": self.dice.randint(1, 9)}]}}
            for i in range(3)] + [{"grant": {"player_id": names[2], "currencies": [
                {"currency": "gems", "amount": 1}]}}])

    def give_up(self, session):
        """Hardly waits, or does not even send, and seals: carried out, or never, also when sent again."""
        request = self.wire.message("LedgerService/Spend", player_id=session.player, op_id=uuid7(),
                                    authority=session.authority(), currencies=self.amounts(5))
        sent = self.dice.random() < 0.6
        if sent:
            with contextlib.suppress(Failure):
                self.wire.send("LedgerService/Spend", request, self.dice.choice((0.001, 0.003, 0.01)))
        self.seal(request)
        if not sent or self.dice.random() < 0.3:
            with contextlib.suppress(Failure):
                self.wire.send("LedgerService/Spend", request)

    def look(self, session):
        try:
            if self.dice.random() < 0.6:
                self.wire.call("ProfileService/GetProfile", player_id=session.player)
            else:
                self.wire.call("LedgerService/GetBalances", player_id=session.player)
            if self.dice.random() < 0.3:
                items = self.wire.call("InventoryService/ListItems", player_id=session.player).items
                session.items = [item.uid for item in items]
        except Failure:
            pass

    def look_at_others(self, session):
        with contextlib.suppress(Failure):
            self.wire.call("ProfileService/GetProfile", player_id=self.another(session.player))


if __name__ == "__main__":
    plan_given = json.loads(sys.argv[1])
    Server(plan_given).run(plan_given["hands"])
