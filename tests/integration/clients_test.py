"""
The stock clients of tests/conformance: against the stub server, which answers with every error
there is, and against the real router of a real cluster.
"""

import os
import subprocess
import unittest

from cluster import BIN, ROOT, ClusterTest


class StockClients(ClusterTest):
    def run_clients(self, *arguments):
        result = subprocess.run([ROOT / "tests/conformance/run.sh", *arguments],
                                env=os.environ | {"HOLDFAST_BIN": str(BIN)}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(result.stdout)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"(?m)^. skipped 0$")

    def test_against_the_stub_every_error_reaches_connect_grpc_and_grpc_web_clients(self):
        self.run_clients()

    def test_connect_grpc_and_grpc_web_clients_and_curl_against_a_router(self):
        self.run_clients(self.cluster.endpoint)
        # The cluster is as well as before.
        self.client.grant("after the clients", 1)
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
