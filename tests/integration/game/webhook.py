"""
The payment provider: webhook.py PLAN (JSON). Delivers each receipt until it is acknowledged, some again
afterwards, some to two workers at once, and a few for another player, which must be refused.
"""

import json
import random
import signal
import sys
import threading
import time

from wire import Failure, Journal, Wire, as_dict, flat, uuid7

PAYMENTS = "system:payments"
DELIVERIES = 60


class Webhook:
    def __init__(self, plan):
        self.players, self.dice = plan["players"], random.Random(plan["seed"])
        self.wire = Wire(Journal(plan["directory"], plan["name"]), plan["routers"])
        self.stopping = threading.Event()

    def run(self, workers):
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        threads = [threading.Thread(target=self.work, args=(random.Random(self.dice.random()),))
                   for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:  # In turns: a signal that another thread got is handled when this one looks.
            while thread.is_alive():
                thread.join(0.2)

    def work(self, dice):
        while not self.stopping.is_set():
            purchase = self.purchase(dice, f"receipt:{uuid7()}", dice.choice(self.players))
            player = flat(purchase[0], as_dict(purchase[1]))["player_id"]
            others = [name for name in self.players if name != player]
            forged = self.purchase(dice, purchase[1].op_id, dice.choice(others))
            both = [purchase] * dice.choice((1, 1, 1, 2)) + [forged] * (dice.random() < 0.1)
            threads = [threading.Thread(target=self.deliver, args=(*one, random.Random(dice.random())))
                       for one in both]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            time.sleep(dice.random() * 0.05)

    def purchase(self, dice, receipt, player):
        fields = {"player_id": player, "op_id": receipt, "authority": PAYMENTS, "reason": "purchase"}
        amount = [{"currency": "gems", "amount": dice.randint(5, 50)}]
        if dice.random() < 0.3:
            return "MailboxService/DeliverMail", self.wire.message(
                "MailboxService/DeliverMail", currencies=amount, items=[{"kind": "crate"}], **fields)
        return "LedgerService/Grant", self.wire.message(
            "LedgerService/Grant", currencies=amount,
            items=[{"kind": "skin"}] if dice.random() < 0.4 else [], **fields)

    def deliver(self, method, request, dice):
        """Until it is acknowledged or refused; what is left is settled in the end."""
        for _ in range(DELIVERIES):
            try:
                self.wire.send(method, request, dice.choice((0.5, 2, 5)))
                if dice.random() < 0.9:
                    return
            except Failure as failure:
                if failure.kind == "refused" or failure.code == "OPERATION_ID_MISMATCH":
                    return
                time.sleep(min(failure.wait_ms + 20, 400) / 1e3)
            if self.stopping.is_set():
                return


if __name__ == "__main__":
    plan_given = json.loads(sys.argv[1])
    Webhook(plan_given).run(plan_given["workers"])
