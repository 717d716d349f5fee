#!/usr/bin/env python3
"""tools/contract finds what would break a caller, and lets through what would not."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]


class ContractTest(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="holdfast-contract.")))
        self.idl = folder / "idl"
        shutil.copytree(ROOT / "idl", self.idl)

    def edit(self, old, new):
        path = self.idl / "holdfast/v1/ledger.proto"
        text = path.read_text(encoding="utf-8")
        changed, count = re.subn(old, new, text, count=1, flags=re.DOTALL)
        self.assertEqual(count, 1, old)
        path.write_text(changed, encoding="utf-8")

    def judged(self):
        """What it said; empty: nothing."""
        done = subprocess.run([ROOT / "tools/contract", self.idl], text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("npm "))
        self.assertEqual(done.returncode != 0, bool(said), said)
        return said

    def test_a_new_field_breaks_no_caller(self):
        self.edit("message SpendResponse {\n", "message SpendResponse {\n  // New.\n  string brand_new = 1000;\n")
        self.assertEqual(self.judged(), "")

    def test_a_field_that_is_gone_is_told(self):
        self.edit("message SpendResponse {\n  WriteInfo write = 1;\n", "message SpendResponse {\n")
        self.assertRegex(self.judged(), r'Previously present field "1" with name "write" on message "SpendResponse"')

    def test_a_field_of_another_type_is_told(self):
        self.edit("  uint32 attempt = 3;", "  string attempt = 3;")
        self.assertIn("changed type", self.judged())

    def test_a_method_that_is_gone_is_told(self):
        self.edit(r"  rpc Spend\(.*?\n  }\n", "")
        self.assertIn('RPC "Spend"', self.judged())


if __name__ == "__main__":
    unittest.main(verbosity=2)
