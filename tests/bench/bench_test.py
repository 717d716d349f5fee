"""./dev bench on tiny sizes: everything starts, adds up and is reported. Never how fast it is."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
FIGURES = {
    "holdfast.ready", "holdfast.idle", "holdfast.grant.64", "redis.grant.64", "postgres.grant.64",
    "holdfast.grant.256", "redis.grant.256", "holdfast.grant.1", "redis.grant.1",
    "holdfast.batchgrant.16", "redis.pipelined.64", "holdfast.read.64", "holdfast.batchread.16",
    "holdfast.startend.64", "holdfast.transfer.64", "redis.transfer.64", "holdfast.swap.64",
    "holdfast.favorite.64", "redis.favorite.64", "holdfast.favorite.hot.64", "holdfast.batchfavorite.16",
    "redis.favorite.pipelined.64", "holdfast.favorites.status", "holdfast.favorites.page",
    "holdfast.favorites.count", "holdfast.favorites.top", "holdfast.favorites.fresh",
    "holdfast.levels.write", "holdfast.levels.all", "holdfast.levels.killed.check", "holdfast.levels.killed.all",
    "holdfast.documents.update.64", "redis.hset.64", "holdfast.documents.get.64", "holdfast.documents.strict.64",
    "holdfast.presence.set", "holdfast.presence.get", "holdfast.pages.list.warm", "holdfast.pages.filter.cold", "holdfast.pages.trace.cold",
    "holdfast.overload.1024", "holdfast.overload.open",
    "holdfast.overload.batch", "holdfast.refusing.open", "holdfast.restart.one_node", "holdfast.restart.all_nodes",
    "holdfast.restart.everything", "holdfast.audited.64", "holdfast.unaudited.64", "holdfast.few.64", "holdfast.many.64",
    "holdfast.many.at_once.64", "holdfast.fresh.64", "holdfast.aged.64", "holdfast.aged.at_once.64"}


def processes_with(text):
    """Processes whose command line names it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().decode(errors="replace"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


class Smoke(unittest.TestCase):
    def test_a_tiny_run_reports_every_figure_and_every_bar(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-test-") as directory:
            os.chmod(directory, 0o755)  # PostgreSQL runs as another user.
            done = subprocess.run(
                [HERE / "run", "--json", "--rounds", "1", "--seconds", "0.15", "--players", "200",
                 "--tries", "1", "--long", "--many-players", "400", "--aged-grants", "2000",
                 "--entries", "1000",
                 "--directory", directory],
                stdout=subprocess.PIPE, text=True, check=False, timeout=560)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(processes_with(directory), [], "left running")
            self.assertEqual(list(pathlib.Path(directory).iterdir()), [], "left behind")
        report = json.loads(done.stdout)
        self.assertEqual(FIGURES - set(report["medians"]), set())
        for name in ("holdfast.grant.64", "redis.grant.64", "postgres.grant.64"):
            self.assertEqual(len(report["runs"][name]), 1)
            self.assertGreater(report["medians"][name]["ops"], 0)
            self.assertEqual(report["medians"][name]["errors"], 0)
        for bar in report["bars"]:
            self.assertEqual(set(bar), {"bar", "group", "ours", "peer", "value", "limit", "holds"})
        verified = [bar for bar in report["bars"] if bar["group"] == "verify"]
        self.assertGreaterEqual(len(verified), 6)
        self.assertEqual([bar for bar in verified if not bar["holds"]], [])

    def test_an_unknown_group_is_refused_before_anything_starts(self):
        done = subprocess.run([HERE / "run", "--only", "nothing"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no group nothing", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
