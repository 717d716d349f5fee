"""What ./dev bench --report writes into a page, and that the page in docs/ names the bars that there are."""

import pathlib
import tempfile
import unittest

import report
from bars import BARS, judge, median_of

OLD = f"before\n{report.BEGIN}\n{{}}\n{report.END}\nafter\n"
RUN = {"ops_per_s": 3000.0, "p50_ms": 1.5, "p99_ms": 9.25, "server_cpu_us_per_op": 61.0, "ops_per_server_cpu_s": 1.0,
       "checkpoints": 3}


def results_of(figures, checks=()):
    return {"rounds": 3, "seconds": 3.0, "players": 100000, "items": 1, "bars": judge(figures, checks),
            "medians": {name: median_of(runs) for name, runs in figures.items()}}


def page_after(results, block=""):
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory) / "page.md"
        page.write_text(OLD.format(block), encoding="utf-8")
        report.write(results, page, "2026-01-02")
        return page.read_text(encoding="utf-8")


class Report(unittest.TestCase):
    def test_bars_and_loads_are_written_with_the_day(self):
        page = page_after(results_of({"holdfast.batchgrant.16": [RUN],
                                      "redis.pipelined.64": [RUN | {"ops_per_s": 2000.0}]}))
        bar = "BatchGrant grants/s, 16 connections, to Redis pipelined"
        self.assertIn(f"\n| {bar} | 3,000 | 2,000 | 1.50 | >= 3 | MISS | 2026-01-02 |\n", page)
        self.assertIn("\n| grants in batches of 100, 16 connections | 3,000 | 1.50 | 9.25 | 61 | 2026-01-02 |\n", page)
        self.assertTrue(page.startswith("before\n") and page.endswith("\nafter\n"))

    def test_rows_that_were_not_measured_stay_and_unknown_ones_go(self):
        old = ("| strict reads/s of 1 KiB, singly | 46,520 |  |  | >= 30000 | ok | 2025-12-31 |\n"
               "| a bar that was dropped | 1 |  |  | >= 1 | ok | 2025-12-31 |")
        page = page_after(results_of({"holdfast.startend.64": [RUN]}), old)
        self.assertIn("| strict reads/s of 1 KiB, singly | 46,520 |  |  | >= 30000 | ok | 2025-12-31 |", page)
        self.assertIn("| StartSession + EndSession pairs/s | 3,000 |  |  | >= 5000 | MISS | 2026-01-02 |", page)
        self.assertNotIn("dropped", page)

    def test_a_run_replaces_the_row_of_an_earlier_one(self):
        first = page_after(results_of({"holdfast.startend.64": [RUN]}))
        block = report.BLOCK.search(first)[1]
        page = page_after(results_of({"holdfast.startend.64": [RUN | {"ops_per_s": 7000.0}]}), block)
        self.assertIn("| StartSession + EndSession pairs/s | 7,000 |  |  | >= 5000 | ok | 2026-01-02 |", page)
        self.assertEqual(page.count("StartSession + EndSession pairs/s"), 1)

    def test_a_run_that_lost_something_is_not_written(self):
        with self.assertRaisesRegex(report.Lost, "every grant is there"):
            page_after(results_of({"holdfast.startend.64": [RUN]}, [("every grant is there", False, "1 of 2")]))

    def test_the_page_has_each_bar_with_its_limit_and_no_other(self):
        rows = report.kept_rows(report.BLOCK.search(report.PAGE.read_text(encoding="utf-8"))[1])
        known = {bar.text: f"{bar.sense} {bar.limit:g}" for bar in BARS}
        for text, row in rows.items():
            if text in ("bar", "load") or text in report.LOADS.values():
                continue
            self.assertIn(text, known)
            wanted = row.split(" | ")[4]
            if "a node, MiB" not in text:  # Its limit follows the machine's memory.
                self.assertEqual(wanted, known[text])
        self.assertEqual(set(known) - set(rows), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
