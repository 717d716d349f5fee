#!/usr/bin/env python3
"""
What .ci/run promises: each suite within three days, every failure counted, one line at the end. And what
`./dev test` promises of what it runs meanwhile: nothing that fails is overlooked, nothing is left running.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATE = "#!/bin/sh\necho $((20000 * 86400 + TEST_DAY * 86400))\n"
SUITES = {"test", "charts", "fuzz", "chaos", "game"}


class Run(unittest.TestCase):
    """.ci/run itself, in a folder of its own whose ./dev says what the test wants."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="holdfast-ci.")))
        (self.folder / ".ci").mkdir()
        (self.folder / "bin").mkdir()
        shutil.copy(ROOT / ".ci/run", self.folder / ".ci/run")
        self.program("bin/date", DATE)
        self.program("dev", "#!/bin/sh\nexit 0\n")

    def program(self, name, text):
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def run_ci(self, *words, day=0, **environment):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "HOLDFAST_CI_TURN"}
        done = subprocess.run([self.folder / ".ci/run", *words], text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=kept | {"PATH": path, "TEST_DAY": str(day)} | environment)
        return done.returncode, done.stdout.splitlines()

    def suites(self, **more):
        code, lines = self.run_ci("--list", **more)
        self.assertEqual(code, 0, lines)
        return {line.split(":")[0] for line in lines}

    def test_each_suite_runs_within_three_days_whichever_they_are(self):
        for first in range(7):
            with self.subTest(first=first):
                days = [self.suites(day=first + n) for n in range(3)]
                self.assertEqual(set().union(*days), SUITES)
                self.assertTrue(all("test" in day for day in days))
        self.assertEqual(self.suites(HOLDFAST_CI_TURN="all"), SUITES)
        self.assertEqual(self.suites(day=1, HOLDFAST_CI_TURN="0"), self.suites(day=4, HOLDFAST_CI_TURN="0"))

    def test_a_turn_that_is_none_is_refused(self):
        code, lines = self.run_ci(HOLDFAST_CI_TURN="3")
        self.assertEqual((code, len(lines)), (2, 1))

    def test_the_last_line_counts_tests_and_suites(self):
        self.program("dev", "#!/bin/sh\n[ $# = 1 ] || exit 0\n"
                     "echo '100% tests passed, 0 tests failed out of 40'\n"
                     "echo '100% tests passed, 0 tests failed out of 2'\n")
        code, lines = self.run_ci(HOLDFAST_CI_TURN="all")
        self.assertEqual((code, lines[-1]), (0, "46 passed, 0 failed"))

    def test_failures_are_counted_and_the_other_suites_run_all_the_same(self):
        self.program("dev", "#!/bin/sh\ncase \"$1 ${2:-}\" in\n"
                     "'test ') echo '50% tests passed, 1 tests failed out of 2'; exit 8 ;;\n"
                     "'test --charts') echo '5 passed, 1 failed'; exit 1 ;;\n"
                     "'test --fuzz') exit 1 ;;\nesac\n")
        code, lines = self.run_ci(HOLDFAST_CI_TURN="all")
        self.assertEqual((code, lines[-1]), (1, "8 passed, 3 failed"))
        self.assertIn("FAILED: test charts fuzz", lines)

    def test_a_suite_that_ends_without_a_word_of_its_tests_has_failed_if_it_says_so(self):
        self.program("dev", "#!/bin/sh\necho '100% tests passed, 0 tests failed out of 9'\nexit 3\n")
        code, lines = self.run_ci(HOLDFAST_CI_TURN="1")
        self.assertEqual((code, lines[-1]), (1, "18 passed, 2 failed"))


class Meanwhile(unittest.TestCase):
    """`./dev test` in a folder of its own, where every program only notes that it was called."""

    NOTE = '#!/bin/sh\necho "${0##*/} $*" >>"$NOTES"\n'

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="holdfast-dev-test.")))
        shutil.copy(ROOT / "dev", self.folder / "dev")
        (self.folder / "idl").mkdir()
        (self.folder / "some_script").write_text("#!/bin/sh\n")
        self.program("bin/dpkg-query", "#!/bin/sh\necho 'install ok installed'\n")
        self.program("bin/git", "#!/bin/sh\nprintf 'some_script\\0'\n")
        self.noted = ["bin/cmake", "bin/ctest", "bin/python3", "bin/shellcheck", "tools/format",
                      "tools/compile_check", "build/sim/bin/holdfast-sim", "tests/sim/mutants/run",
                      "tools/contract", "tools/mutate/run"]
        for name in self.noted:
            self.program(name)

    def program(self, name, text=""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or self.NOTE)
        path.chmod(0o755)

    def failing(self, name, when, instead="exit 1"):
        """The program fails if its arguments match the shell pattern `when`."""
        self.program(name, f'{self.NOTE}case "$*" in {when}) echo "$0 is unhappy"; {instead} ;; esac\n')

    def dev_test(self):
        """(exit code, what was printed, what was called)"""
        notes = self.folder / "notes"
        environment = os.environ | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "NOTES": str(notes)}
        done = subprocess.run([self.folder / "dev", "test"], text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, timeout=120)
        return done.returncode, done.stdout, notes.read_text()

    def test_all_is_called_and_every_section_named(self):
        code, said, called = self.dev_test()
        self.assertEqual(code, 0, said)
        for name in self.noted:
            self.assertIn(f"{name.rsplit('/', 1)[1]} ", called)
        for asked in ("-L release", "-LE release|tsan", "-L tsan"):
            self.assertIn(asked, called)
        for preset in ("release", "clang", "asan", "sim", "tsan"):
            self.assertIn(f"--build --preset {preset}", called)
        for section in ("== style", "== tests of the release build", "== builds", "== building asan",
                        "address and undefined-behaviour", "simulator", "== threads"):
            self.assertIn(section, said)

    def test_each_program_that_fails_fails_the_run_and_is_heard(self):
        for name, when in (("bin/python3", "*tidy*"), ("bin/shellcheck", "*"), ("tools/format", "*"),
                           ("tools/contract", "*"), ("tools/compile_check", "*"),
                           ("bin/cmake", "*--build*release*"), ("bin/cmake", "*--build*asan*"),
                           ("bin/cmake", "*--build*clang*"), ("bin/cmake", "*--build*tsan*"),
                           ("bin/ctest", "*-L\\ release*"), ("bin/ctest", "*-LE*"), ("bin/ctest", "*-L\\ tsan*"),
                           ("build/sim/bin/holdfast-sim", "*"), ("tests/sim/mutants/run", "*"),
                           ("tools/mutate/run", "*--prepare*"), ("tools/mutate/run", "*--check*")):
            with self.subTest(name=name, when=when):
                self.failing(name, when)
                code, said, _ = self.dev_test()
                self.assertNotEqual(code, 0, said)
                self.assertIn("is unhappy", said)
                self.program(name)

    def test_what_runs_meanwhile_ends_with_it(self):
        self.failing("bin/cmake", "*--build*asan*", 'echo $$ >"$NOTES.pid"; exec sleep 600')
        self.failing("bin/ctest", "*-L\\ release*",
                     'while [ ! -s "$NOTES.pid" ]; do sleep 0.05; done; exit 1')
        code, said, _ = self.dev_test()
        self.assertNotEqual(code, 0, said)
        pid = int((self.folder / "notes.pid").read_text())
        end = time.monotonic() + 60  # It is told to end, and may be a moment about it.
        while self.runs(pid):
            self.assertLess(time.monotonic(), end, "left running")
            time.sleep(0.05)

    @staticmethod
    def runs(pid):
        """Neither gone nor a zombie."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
        except OSError:
            return False


class Gates(unittest.TestCase):
    """Every test that the build knows is one that a gate runs, and the page says which."""

    def test_the_page_names_every_suite_of_the_gate(self):
        page = (ROOT / "docs/reliability.md").read_text()
        done = subprocess.run([ROOT / ".ci/run", "--list"], text=True, check=True, stdout=subprocess.PIPE,
                              env=os.environ | {"HOLDFAST_CI_TURN": "all"})
        for line in done.stdout.splitlines():
            command = re.sub(r" --seed \d+", "", line.split(": ")[1])
            self.assertTrue(f"`{command}`" in page, f"docs/reliability.md does not name {command}")

    def test_every_label_is_run_by_dev_test(self):
        """ctest runs what has a label it is asked for: `release` and `tsan`; the sanitized build the rest.
        `mutants` says in a build of its own, of which tools/mutate runs the programs, which tests those are."""
        dev = (ROOT / "dev").read_text()
        for asked in ("run_ctest asan -LE 'release|tsan'", "run_ctest release -L release", "run_ctest tsan -L tsan"):
            self.assertIn(asked, dev)
        labels = set()
        for path in [*ROOT.rglob("CMakeLists.txt"), *ROOT.glob("*/**/*.cmake")]:
            if not {"build", "node_modules"} & set(path.relative_to(ROOT).parts):
                labels.update(re.findall(r"LABELS (\w+)|label (\w+)\)", path.read_text()))
        self.assertLessEqual({one or other for one, other in labels}, {"release", "tsan", "integration", "mutants", ""})


if __name__ == "__main__":
    unittest.main(verbosity=2 if "-v" in sys.argv else 1)
