"""Load by several threads, and the audit of what was acknowledged."""

import threading
import time

from client import RpcError, Unanswered, grant_of, retryable, uuid7

PATIENCE_S = 120


class Load:
    """
    Each thread grants to players of its own in turn, repeating a grant under its op_id until the
    outcome is known. Use as a context manager; `audit` afterwards.
    """

    def __init__(self, client, threads=4, players=8, prefix="load"):
        self.client = client
        self.stopping = threading.Event()
        self.acked = {}  # player -> [(op_id, amount)]
        self.acked_count = 0
        self.unexpected = []
        self.slowest_s = 0.0
        self.threads = []
        for number in range(threads):
            names = [f"{prefix}-{number}-{n}" for n in range(players)]
            self.acked |= {name: [] for name in names}
            self.threads.append(threading.Thread(target=self.run, args=(names,), daemon=True))

    def run(self, names):
        count = 0
        while not self.stopping.is_set():
            player = names[count % len(names)]
            amount, op_id = count % 7 + 1, uuid7()
            if not self.carry_out(player, amount, op_id):
                return
            self.acked[player].append((op_id, amount))
            self.acked_count += 1
            count += 1

    def carry_out(self, player, amount, op_id):
        begun = time.monotonic()
        while True:
            try:
                self.client.call("LedgerService/Grant", grant_of(player, amount, op_id), 10000)
                self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
                return True
            except Unanswered:
                pass
            except RpcError as error:
                if not retryable(error):
                    self.unexpected.append(f"{player} {op_id}: {error}")
                    return False
            if time.monotonic() - begun > PATIENCE_S:
                self.unexpected.append(f"{player} {op_id}: no outcome within {PATIENCE_S} s")
                return False
            time.sleep(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.stop()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE_S + 20)

    def audit(self, test, players=None):
        """Every acknowledged grant is there exactly once; nothing else is; the sums agree."""
        test.assertEqual(self.unexpected, [])
        test.assertGreater(self.acked_count, 0)
        self.client.drop()
        for player in players or self.acked:
            acked = self.acked[player]
            entries = self.client.entries(player)
            test.assertEqual([int(e["seq"]) for e in entries], list(range(1, len(entries) + 1)))
            found = [(e["opId"], int(e["changes"][0]["amount"])) for e in entries]
            test.assertEqual(found, acked, f"the ledger of {player}")
            test.assertEqual(self.client.balance(player), sum(amount for _, amount in acked))
            if entries:
                test.assertEqual(int(entries[-1]["changes"][0]["balanceAfter"]),
                                 sum(amount for _, amount in acked))


class Stepper(threading.Thread):
    """Does `step` again and again until it is told to end; what fails for now is tried again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ending, self.failure = False, None

    def step(self):
        raise NotImplementedError

    def run(self):
        while not self.ending:
            try:
                self.step()
            except (RpcError, Unanswered) as error:
                for_now = isinstance(error, Unanswered) or retryable(error)
                if not for_now and error.code != "TXN_CONFLICT":
                    self.failure = error
                    return
                time.sleep(0.05)
            except BaseException as error:
                self.failure = error
                raise
