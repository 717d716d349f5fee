"""Every program of a release is built so that a mistake in memory is hard to use: its ELF file says so."""

import pathlib
import platform
import subprocess
import unittest

from cluster import BIN, SANITIZED

PROGRAMS = ("holdfast", "holdfast-node", "holdfast-router", "holdfast-coordinator")


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], capture_output=True, text=True, check=True).stdout


@unittest.skipIf(SANITIZED, "sanitizers are built otherwise")
class Hardening(unittest.TestCase):
    def test_each_program(self):
        for name in PROGRAMS:
            program = pathlib.Path(BIN) / name
            with self.subTest(program=name):
                self.assertIn("DYN (Position-Independent Executable", readelf("-h", program))
                segments = readelf("-l", program)
                self.assertIn("GNU_RELRO", segments)
                stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
                self.assertNotIn("RWE", stack)
                dynamic = readelf("-d", program)
                self.assertIn("BIND_NOW", dynamic)
                self.assertNotIn("RPATH", dynamic)
                symbols = readelf("--dyn-syms", program)
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__(mem|str|sn|vsn|v?f)\w*_chk")
                if platform.machine() == "x86_64":
                    # Debian's crt1.o has no such mark, so none is in the program's notes.
                    code = subprocess.run(["objdump", "-d", "--disassemble=main", program],
                                          capture_output=True, text=True, check=True).stdout
                    self.assertIn("endbr64", code)


if __name__ == "__main__":
    unittest.main()
