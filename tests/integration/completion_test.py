"""What bash offers after `holdfast ...` and a tab: verbs, their second words, options, values, files."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from cluster import BIN

ASK = """
set -eu
source /dev/stdin <<< "$(%s completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
set +eu
_holdfast
printf '%%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words, directory=None):
    """What is offered for the last of `words`."""
    done = subprocess.run(["bash", "-c", ASK % (BIN / "holdfast"), "bash", "holdfast", *words],
                          capture_output=True, text=True, check=True, timeout=60, cwd=directory)
    assert done.stderr == "", done.stderr
    return sorted(done.stdout.split())


def help_text():
    return subprocess.run([BIN / "holdfast", "--help"], capture_output=True, text=True, check=True,
                          timeout=60).stdout


class CompletionTest(unittest.TestCase):
    def test_verbs_are_those_of_help(self):
        verbs = set(re.findall(r"^  holdfast ([a-z]+)", help_text(), re.M))
        self.assertGreater(len(verbs), 20)
        self.assertEqual(set(offered("")), verbs)
        self.assertEqual(offered("tran"), ["transfers"])

    def test_second_words_follow_their_verb(self):
        self.assertEqual(offered("quarantine", ""), ["check", "list", "release", "repair", "show"])
        self.assertEqual(offered("node", "un"), ["undrain"])
        self.assertEqual(offered("status", ""), [])
        self.assertEqual(offered("ledger", "list", ""), [])

    def test_options_are_those_of_the_verb(self):
        self.assertEqual(offered("rebalance", "--dr"), ["--dry-run"])
        self.assertEqual(offered("status", "--dr"), [])
        self.assertEqual(offered("ledger", "list", "42", "--page"), ["--page-size"])
        self.assertIn("--endpoint", offered("status", "--"))
        self.assertNotIn("--nodes", offered("status", "--"))

    def test_an_options_value_is_no_word_of_the_verb(self):
        self.assertEqual(offered("--endpoint", "http://x", "quarantine", "l"), ["list"])
        self.assertEqual(offered("-o", "json", "quarantine", "sh"), ["show"])
        self.assertEqual(offered("-o", ""), ["json", "table"])
        self.assertEqual(offered("--output", "=", "js"), ["json"])
        self.assertEqual(offered("--output", "="), ["json", "table"])
        self.assertEqual(offered("--endpoint", ""), [])

    def test_files_are_offered_where_one_is_wanted(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-completion.") as name:
            directory = pathlib.Path(name)
            (directory / "a-file").write_text("")
            (directory / "a-directory").mkdir()
            self.assertEqual(offered("ledger", "verify", "a-", directory=directory),
                             ["a-directory", "a-file"])
            self.assertEqual(offered("--ca", "a-f", directory=directory), ["a-file"])
            self.assertEqual(offered("dev", "--data", "a-", directory=directory), ["a-directory"])
            self.assertEqual(offered("player", "show", "a-", directory=directory), [])
            self.assertEqual(offered("orphans", "a-file", "a-d", directory=directory),
                             ["a-directory"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
