#!/usr/bin/env python3
"""
The bill of materials that stands beside the image, held against CycloneDX's own schema, against what the
programs are linked to, and against what dpkg says is installed. Here the root is that of this machine.

    HOLDFAST_BIN=build/release/bin charts/tests/sbom_test.py     some seconds
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMAGE = HERE.parent / "image"
BIN = pathlib.Path(os.environ["HOLDFAST_BIN"]).resolve()
PROGRAMS = {"holdfast", "holdfast-node", "holdfast-router", "holdfast-coordinator"}
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(wrong) if wrong else 0)
"""


def sbom(*arguments, code=0):
    done = subprocess.run([IMAGE / "sbom", "--bin", BIN, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def validate(text):
    """What CycloneDX's library says is wrong; empty: nothing."""
    python = subprocess.run([ROOT / "tools/python_env", HERE / "requirements.txt"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    return subprocess.run([python, "-c", VALIDATE], input=text, capture_output=True, text=True, check=False).stderr


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = sbom("--epoch", "1700000000")
        cls.bill = json.loads(cls.text)
        cls.by_name = {one["name"]: one for one in cls.bill["components"]}

    def test_it_is_of_the_schema(self):
        self.assertEqual(validate(self.text), "")
        self.assertIn("is not one of", validate(self.text.replace('"type": "container"', '"type": "box"')))

    def test_the_same_input_gives_the_same_text(self):
        self.assertEqual(sbom("--epoch", "1700000000"), self.text)
        self.assertEqual(self.bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z")

    def test_the_programs_are_those_that_were_built(self):
        for name in PROGRAMS:
            digest = hashlib.sha256((BIN / name).read_bytes()).hexdigest()
            self.assertEqual(self.by_name[name]["hashes"], [{"alg": "SHA-256", "content": digest}])

    def test_every_linked_library_is_there_in_its_version(self):
        linked = subprocess.run([IMAGE / "packages", BIN], check=True, text=True, stdout=subprocess.PIPE).stdout
        self.assertIn("libmbedtls14", linked.split())
        depends = {one["ref"]: set(one["dependsOn"]) for one in self.bill["dependencies"]}
        for name in linked.split():
            with self.subTest(package=name):
                said = subprocess.run(["dpkg-query", "-W", "-f", "${Version} ${Architecture}", f"{name}"],
                                      check=True, text=True, stdout=subprocess.PIPE).stdout.split()
                found = self.by_name[name]
                self.assertEqual(found["version"], said[0])
                self.assertIn(f"?arch={said[1]}&", found["purl"])
                for program in PROGRAMS:
                    self.assertIn(found["bom-ref"], depends[program])

    def test_licenses_are_told_where_debian_tells_them(self):
        names = [one["license"]["name"] for one in self.by_name["libmbedtls14"]["licenses"]]
        self.assertIn("Apache-2.0", names)

    def test_what_is_not_there_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("var/lib/dpkg/status is not there", sbom("--root", empty, code=2))
            folder = pathlib.Path(empty) / "var/lib/dpkg"
            folder.mkdir(parents=True)
            (folder / "status").write_text("Package: base\nStatus: install ok installed\nVersion: 1\n"
                                           "Architecture: all\nMaintainer: A\n")
            self.assertIn("does not have", sbom("--root", empty, code=1))


if __name__ == "__main__":
    sys.exit(unittest.main())
