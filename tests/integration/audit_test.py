"""The continuous audit: every unit and item of a cluster is counted while goods move and processes die."""

import threading
import unittest

from client import UNHELD, RpcError, Unanswered, uuid7
from cluster import Cluster, wait_for
from transactions_test import FREE, Trades, gold

TRADERS = 3


class Traders:
    """Pairs of players who swap, send and claim until told to stop, whatever they are answered."""

    def __init__(self, test):
        self.test, self.over, self.done = test, threading.Event(), 0
        self.threads = [threading.Thread(target=self.trade, args=(test.pair(),))
                        for _ in range(TRADERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def attempt(self, method, body):
        try:
            answer = self.test.client.call(method, body)
        except (RpcError, Unanswered):
            return {}
        self.done += 1
        return answer

    def trade(self, pair):
        one, two, sword, hat = pair
        while not self.over.is_set():
            self.attempt("TransactionService/Swap", self.test.swap(
                one, two, {"currencies": gold(3), "itemUids": [sword]}, {"itemUids": [hat]}))
            self.attempt("LedgerService/TransferCurrencies", {
                "playerId": two, "toPlayerId": one, "opId": uuid7(),
                "currencies": gold(2)} | FREE)
            self.attempt("LedgerService/Grant", {
                "playerId": two, "opId": uuid7(), "authority": UNHELD, "currencies": gold(5),
                "items": [{"kind": "hat"}]})
            mails = self.attempt("MailboxService/ListMail", {"playerId": one}).get("mails", [])
            if mails:
                self.attempt("MailboxService/ClaimMail", {
                    "playerId": one, "opId": uuid7(),
                    "mailIds": [m["mailId"] for m in mails]} | FREE)
            one, two, sword, hat = two, one, hat, sword


class Audit(Trades):
    @classmethod
    def plan(cls):
        return Cluster(coordinators=2)

    def elected(self):
        name = self.client.call("AdminService/GetCluster", {}).get("coordinator")
        return next((c for c in self.cluster.coordinators if c.name == name), None)

    def count_more(self, cuts):
        """Until the elected coordinator has counted so many more cuts; none may be wrong."""
        coordinator = wait_for("a coordinator", self.elected)
        before = coordinator.metrics()["holdfast_audit_cuts_total"]
        wait_for(f"{cuts} cuts", lambda: coordinator.metrics()["holdfast_audit_cuts_total"]
                 >= before + cuts)
        metrics = coordinator.metrics()
        self.assertEqual(metrics["holdfast_audit_violations_total"], 0, coordinator.log())
        self.assertEqual(metrics["holdfast_audit_imbalance"], 0)

    def test_every_cut_comes_to_zero_while_goods_move_and_processes_die(self):
        with Traders(self) as traders:
            self.count_more(3)
            self.assertGreater(traders.done, 0)
            victim, _ = self.cluster.owner_of("probe")
            victim.kill()
            victim.start()
            self.count_more(3)
            elected = self.elected()
            elected.kill()
            wait_for("the second to be elected", lambda: self.elected() not in (None, elected))
            elected.start()
            self.count_more(3)
        self.count_more(2)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
