"""
One API in four forms: the corpus of tests/conformance/forms_cases.txt through plain JSON, canonical JSON, gRPC and
REST, to equal operations and equal answers.
"""

import os
import subprocess
import unittest

from cluster import ROOT, ClusterTest

CONFORMANCE = ROOT / "tests/conformance"
PATIENCE_S = 300


class Forms(ClusterTest):
    def test_one_corpus_in_four_forms(self):
        subprocess.run([CONFORMANCE / "generate"], check=True)
        result = subprocess.run(["node", CONFORMANCE / "forms.mjs"], text=True, stdout=subprocess.PIPE,
                                env=os.environ | {"HOLDFAST_URL": self.cluster.endpoint}, stderr=subprocess.STDOUT,
                                timeout=PATIENCE_S, check=False)
        print(result.stdout)
        self.assertEqual(result.returncode, 0, "see the differences above")
        self.cluster.wait_converged()


if __name__ == "__main__":
    unittest.main(verbosity=2)
