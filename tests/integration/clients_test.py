"""The stock clients of tests/conformance against the real router of a real cluster."""

import os
import subprocess
import unittest

from cluster import BIN, ROOT, ClusterTest


class StockClients(ClusterTest):
    def test_connect_grpc_and_grpc_web_clients_and_curl(self):
        result = subprocess.run([ROOT / "tests/conformance/run.sh", self.cluster.endpoint],
                                env=os.environ | {"HOLDFAST_BIN": str(BIN)}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(result.stdout)
        self.assertEqual(result.returncode, 0)
        # The cluster is as well as before.
        self.client.grant("after the clients", 1)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
