#!/usr/bin/env python3
"""
Every metric that a page, an alert or the dashboard names must be one that a running process shows,
with the labels and of the type that its use takes. Real processes are asked, not the source.

    HOLDFAST_BIN=build/release/bin charts/tests/metrics_test.py     some seconds; needs etcd
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

CHARTS = pathlib.Path(__file__).resolve().parent.parent
ROOT, CHART = CHARTS.parent, CHARTS / "holdfast"
sys.path.insert(0, str(ROOT / "tests/integration"))

from client import UNHELD, RpcError, grant_of  # noqa: E402  (found beside this folder)
from cluster import BIN, Cluster, wait_for  # noqa: E402
from series import MATCHER, SCRAPED, SELECTOR, Shown, wrong_in_page, wrong_in_query, wrong_in_span  # noqa: E402

SKIPPED = {"build", "node_modules", ".git"}


def error_codes():
    """Values of the label `code`: each shows once such an error was given."""
    text = (ROOT / "idl/holdfast/v1/error.proto").read_text()
    return {code.lower() for code in re.findall(r"ERROR_CODE_(\w+) = ", text)}


def with_public_tls(cluster):
    """A second router, whose public port has a certificate: that is a metric of its own."""
    public = cluster.dir / "public"
    subprocess.run([BIN / "holdfast", "certs", "--dir", public, "--names", "public"], check=True,
                   stdout=subprocess.DEVNULL)
    return cluster.plan("router", "router-tls", {
        "listen": cluster.address("router-tls"), "access": "open",
        "public-tls-cert": public / "public.crt", "public-tls-key": public / "public.key"})


def ask_processes():
    """What all kinds of processes show once a call was answered and one was refused."""
    shown = Shown()
    with Cluster() as cluster:
        router = with_public_tls(cluster).start()
        try:
            wait_for("a router with TLS", router.ready)
            cluster.client.grant("shown", 1)
            try:
                cluster.client.call("LedgerService/Spend", grant_of("shown", 5) | {"authority": UNHELD})
            except RpcError as error:
                assert error.code == "INSUFFICIENT_FUNDS", error
            for process in [router, cluster.router, *cluster.coordinators, *cluster.nodes]:
                shown.add(process.get("/metrics")[1])
        finally:
            router.kill()
    return shown


def pages():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED]
        yield from (pathlib.Path(folder) / name for name in names
                    if name.endswith(".md") and name != "CHANGELOG.md")  # It tells what was.


def alerts():
    """(name, expression) of each rule."""
    text = (CHART / "rules/holdfast.yaml").read_text()
    found = re.findall(r"- alert: (\w+)\n +expr: (.*?)\n +(?:for|labels):", text, re.S)
    assert len(found) == text.count("- alert: "), "a rule is written in another way"
    return found


def queries():
    dashboard = json.loads((CHART / "dashboards/holdfast.json").read_text())
    found = [(panel["title"], target["expr"])
             for panel in dashboard["panels"] for target in panel.get("targets", [])]
    variables = [(v["name"], v["query"]) for v in dashboard["templating"]["list"] if v["type"] == "query"]
    return found + variables


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shown = ask_processes()
        cls.more = {"code": error_codes()}

    def test_what_is_shown_is_read(self):
        shown = self.shown
        self.assertGreater(len(shown.types), 100)
        self.assertEqual(shown.types["holdfast_node_sessions"], "gauge")
        self.assertTrue(shown.known("holdfast_router_request_duration_seconds_bucket"))
        self.assertFalse(shown.known("holdfast_node_sessions_count"))
        self.assertLessEqual({"ok", "insufficient_funds"},
                             shown.label_values("holdfast_router_requests_total", "code"))

    def test_alerts(self):
        self.assertGreater(len(alerts()), 20)
        for name, expression in alerts():
            with self.subTest(alert=name):
                self.assertEqual(wrong_in_query(self.shown, expression, self.more), [])

    def test_dashboard(self):
        self.assertGreater(len(queries()), 20)
        for title, expression in queries():
            with self.subTest(panel=title, query=expression):
                self.assertEqual(wrong_in_query(self.shown, expression, self.more), [])

    def test_tests_of_the_alerts_use_what_exists(self):
        series = re.findall(r"series: '(.*)'", (CHARTS / "tests/rules_test.yaml").read_text())
        self.assertGreater(len(series), 20)
        for one in series:  # Its methods and shards are made up.
            with self.subTest(series=one):
                self.assertEqual(wrong_in_query(self.shown, re.sub(r"\{.*", "", one)), [])
                for name, matchers in SELECTOR.findall(one):
                    for label, _, _ in MATCHER.findall(matchers):
                        self.assertTrue(label in SCRAPED or self.shown.label_values(name, label), label)

    def test_every_page(self):
        found = list(pages())
        self.assertGreater(len(found), 60)
        for page in found:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(wrong_in_page(self.shown, page.read_text(), self.more), [])


EXPOSED = """# HELP holdfast_node_calls_total Calls.
# TYPE holdfast_node_calls_total counter
holdfast_node_calls_total{method="a.B/C",status="ok"} 3
# TYPE holdfast_node_disk_full gauge
holdfast_node_disk_full 0
# TYPE holdfast_node_wait_seconds histogram
holdfast_node_wait_seconds_bucket{method="a.B/C",le="+Inf"} 1
holdfast_node_wait_seconds_sum{method="a.B/C"} 1
holdfast_node_wait_seconds_count{method="a.B/C"} 1
"""


class TheCheckItself(unittest.TestCase):
    """Each of these must be found: a check that finds nothing proves nothing."""

    shown = Shown().add(EXPOSED)

    def wrong(self, *queries_):
        for query in queries_:
            with self.subTest(query=query):
                self.assertTrue(wrong_in_query(self.shown, query))

    def test_queries(self):
        self.wrong("holdfast_node_dsk_full > 0", "sum(rate(holdfast_node_call_total[5m]))",
                   'holdfast_node_calls_total{kind="a"}', 'holdfast_node_calls_total{status="no"}',
                   'holdfast_node_calls_total{status=~"ok|no"}', "rate(holdfast_node_disk_full[5m])",
                   "sum by (kind) (holdfast_node_calls_total)", "holdfast_node_disk_full_bucket",
                   '{__name__=~"holdfast_node_disk_full|holdfast_node_gone"} > 0')
        for query in ('sum by (pod, method) (rate(holdfast_node_calls_total{status=~"ok"}[5m]))',
                      "histogram_quantile(0.9, sum by (le) (rate(holdfast_node_wait_seconds_bucket[5m])))",
                      'holdfast_node_calls_total{method!~".*/C",job="$job"}'):
            self.assertEqual(wrong_in_query(self.shown, query), [])

    def test_pages(self):
        for text in ("`holdfast_node_calls_total{kind}`", "`holdfast_node_{calls,call}_total`", "`..._cals_total`",
                     "`holdfast_nod_*`", "`process_*`", "holdfast_node_disk_fll in prose", "`cals_total`",
                     "`sum(rate(holdfast_node_disk_full[5m]))`", "`..._disk_fill`",
                     "```\nholdfast_node_cals_total\n```\n"):
            with self.subTest(text=text):
                self.assertTrue(wrong_in_page(self.shown, text))
        for text in ("`holdfast_node_calls_total{method,status}`", "`holdfast_node_{disk_full,calls_total}`",
                     "`..._calls_total`", "`holdfast_node_*`", "`calls_total`, `holdfast_node_wait_seconds`"):
            self.assertEqual(wrong_in_page(self.shown, text), [], text)
        self.assertEqual(wrong_in_span(self.shown, "holdfast dev"), [])


if __name__ == "__main__":
    unittest.main()
