"""etcd frozen, killed and back: running shards and sessions do not notice."""

import signal
import threading
import time
import unittest

from as_of import dot_of
from client import Heartbeat, grant_of, uuid7
from cluster import ClusterTest, wait_for
from load import Load

OUTAGE_S = 10


class EtcdOutage(ClusterTest):
    def live_through(self, begin, finish):
        """Load, strict reads and heartbeats all through an outage of ten seconds."""
        server = self.client.register(f"server-{uuid7()}", 10000)
        players = [f"held-{uuid7()}" for _ in range(4)]
        tokens = {p: self.client.start(p, server)["token"] for p in players}
        self.client.renew(server, *tokens.items())
        heart = Heartbeat(self.client, server, *tokens.items())
        stop, reads = threading.Event(), []

        def read():
            while not stop.is_set():
                begun = time.monotonic()
                self.client.balance(players[0])
                reads.append(time.monotonic() - begun)
                stop.wait(0.02)
        reader = threading.Thread(target=read)
        with Load(self.client, prefix=f"etcd-{uuid7()}") as load, heart:
            wait_for("load", lambda: load.acked_count > 50)
            reader.start()
            try:
                begin()
                begun, before = time.monotonic(), load.acked_count
                reads_before = len(reads)
                while time.monotonic() - begun < OUTAGE_S:
                    at = load.acked_count
                    wait_for("grants during the outage", lambda at=at: load.acked_count > at,
                             OUTAGE_S - 2)
                during, reads_during = load.acked_count - before, len(reads) - reads_before
            finally:
                finish()
                wait_for("etcd to serve new game servers",
                         lambda: self.client.register("after the outage"))
                stop.set()
                reader.join()
        self.assertGreater(during, 50)
        self.assertGreater(reads_during, 20)
        self.assertLess(max(reads), OUTAGE_S - 2, "a strict read stood still")
        self.assertEqual(heart.lost, [])
        # Longer than the TTL after the outage: no server was taken for dead.
        end = time.monotonic() + 12
        while time.monotonic() < end:
            self.assertEqual(self.client.renew(server, *tokens.items()).get("lost", []), [])
            time.sleep(0.5)
        for player, token in tokens.items():
            self.client.update(player, token, {"name": "progress", "replace": '{"kept":true}'})
        load.audit(self)
        print(f"{during} grants and {reads_during} strict reads during the outage; "
              f"slowest read {max(reads) * 1000:.0f} ms, slowest grant "
              f"{load.slowest_s * 1000:.0f} ms")

    def test_frozen(self):
        etcd = self.cluster.etcd
        self.live_through(lambda: etcd.signal(signal.SIGSTOP), lambda: etcd.signal(signal.SIGCONT))
        self.fail_over_still_works()

    def test_killed_and_started_again(self):
        self.live_through(self.cluster.etcd.kill, self.cluster.etcd.start)
        self.fail_over_still_works()

    def fail_over_still_works(self):
        victim, dot = self.cluster.owner_of("probe")
        victim.kill()
        answer = self.client.settle("LedgerService/Grant", grant_of("probe", 1))
        self.assertGreater(dot_of(answer)["epoch"], dot["epoch"])
        victim.start()
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
