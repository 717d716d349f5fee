"""What a deposed owner had logged alone is set aside when it comes back, and `holdfast orphans` lists it."""

import json
import subprocess
import unittest

from client import RpcError, Unanswered, grant_of, uuid7
from cluster import BIN, Cluster, ClusterTest, wait_for


class Orphans(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=4)

    def orphans(self, *paths):
        done = subprocess.run([BIN / "holdfast", "orphans", *paths, "-o", "json"], capture_output=True,
                              text=True, check=False)
        return done.returncode, json.loads(done.stdout or "[]"), done.stderr

    def test_an_entry_that_only_its_owner_had_is_listed(self):
        owner, _ = self.cluster.owner_of("ann")
        others = [node for node in self.cluster.nodes if node is not owner]
        for node in others:
            node.kill()
        op_id = uuid7()
        with self.assertRaises((RpcError, Unanswered)) as caught:
            self.client.call("LedgerService/Grant", grant_of("ann", 3, op_id), 1500)
        self.assertNotEqual(getattr(caught.exception, "code", ""), "INVALID_ARGUMENT")
        owner.kill()
        for node in others:
            node.start()
        wait_for("the others to serve", self.cluster.all_serving)
        self.client.settle("LedgerService/Grant", grant_of("ann", 1, uuid7()))
        owner.start()
        wait_for("it to set its entries aside", lambda: "log.truncated" in owner.log())
        data = self.cluster.dir / owner.name
        row = wait_for("the grant to be listed", lambda: next(
            (row for row in self.orphans(data)[1] if row.get("opId") == op_id), None))
        self.assertEqual(row["entity"], "player:ann")
        self.assertTrue(row["method"].endswith("LedgerService/Grant"), row)
        self.assertGreater(row["index"], row["keepIndex"])
        self.assertEqual(len(row["dot"].split(".")), 3)
        # Sent again under its id, it is carried out: that alone proposes an orphan again.
        before = self.client.balance("ann")
        self.client.settle("LedgerService/Grant", grant_of("ann", 3, op_id))
        self.assertEqual(self.client.balance("ann"), before + 3)

        files = sorted((data / "log").glob("orphans-*.log"))
        content = bytearray(files[0].read_bytes())
        half, wrong = self.cluster.dir / "half.log", self.cluster.dir / "wrong.log"
        half.write_bytes(content[:-3])
        content[50] ^= 1
        wrong.write_bytes(content)
        code, _, said = self.orphans(half)
        self.assertEqual((code, "half a record" in said), (0, True), said)
        code, rows, said = self.orphans(wrong)
        self.assertEqual((code, rows, "damaged at byte 0" in said), (1, [], True), said)
        self.assertEqual(self.orphans(self.cluster.dir / "nothing")[0], 1)


if __name__ == "__main__":
    unittest.main()
