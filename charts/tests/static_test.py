#!/usr/bin/env python3
"""What the chart says must be true of the source beside it: metrics, options, runbooks, values. Needs
Python alone; tests/run checks the rest with Helm."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import unittest

CHARTS = pathlib.Path(__file__).resolve().parent.parent
ROOT, CHART = CHARTS.parent, CHARTS / "holdfast"
RUNBOOKS = ROOT / "docs" / "runbooks"
SECTIONS = ["## Symptom", "## What it means", "## Check", "## Fix"]


def load_docs():
    loader = importlib.machinery.SourceFileLoader("charts_docs", str(CHARTS / "docs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("charts_docs", loader))
    loader.exec_module(module)
    return module


def source(name):
    return (ROOT / name).read_text()


def table(text, macro):
    """First arguments of the rows of `#define MACRO(X)`."""
    body = re.search(rf"#define {macro}\(X\)(.*?[^\\])\n", text, re.S)[1]
    return re.findall(r"\bX\(\s*(\w+)\s*,", body)


def metrics():
    """Every series a process can show, from the tables in the source."""
    literal = r'"((?:holdfast_node|process|holdfast_build)_[a-z_]+)"'
    found = set(re.findall(literal, source("node/io/node_metrics.c")))
    found |= set(re.findall(literal, source("runtime/metrics/metrics_process.c")))
    figures = re.findall(r"^    X\((?:gauge|counter), +(\w+),", source("router/io/router_metrics.c"), re.M)
    found |= {f"holdfast_router_{name}" for name in figures}
    found.add("holdfast_router_requests_total")
    coord = source("coordinator/core/coord.h")
    found |= {f"holdfast_coordinator_{name}_total" for name in table(coord, "COORD_COUNTERS")}
    found |= {f"holdfast_coordinator_{name}" for name in table(coord, "COORD_GAUGES")}
    found |= {f"holdfast_{name}_total" for name in table(coord, "AUDIT_COUNTERS")}
    found |= {f"holdfast_{name}" for name in table(coord, "AUDIT_GAUGES")}
    for histogram in ("holdfast_router_request_duration_seconds", "holdfast_node_call_duration_seconds"):
        found |= {histogram + end for end in ("_bucket", "_sum", "_count")}
    return found


def named(text):
    return set(re.findall(r"\b(?:holdfast_(?:node|router|coordinator|build|audit)|process)_[a-z_]*[a-z]", text))


def options(*headers):
    return {name for header in headers for name in
            re.findall(r"^ +X\((\w+),", source(header), re.M)}


SHARED = "runtime/config/process_config.h"
OPTIONS = {"node": options("node/io/node_config.h", SHARED),
           "router": options("router/io/router_config.h", SHARED),
           "coordinator": options("coordinator/io/coordinator_config.h", SHARED)}
# Under ctest only what makes the chart wrong fails; tests/run asks also for what makes it incomplete.
EVERYTHING = "--everything" in sys.argv
# Given by environment, or of no use in a pod.
NOT_IN_PODS = {"name", "zone", "advertise", "peer_advertise", "insecure", "native_listen", "log_level", "log_format"}


class Metrics(unittest.TestCase):
    def test_the_tables_are_read(self):
        known = metrics()
        for name in ("holdfast_node_sessions", "holdfast_router_links_ready", "holdfast_build_info",
                     "holdfast_coordinator_failovers_total", "holdfast_coordinator_active",
                     "holdfast_audit_imbalance"):
            self.assertIn(name, known)
        self.assertNotIn("holdfast_node_imagined_total", known)

    def test_every_metric_of_alerts_and_dashboard_exists(self):
        dashboard = json.loads((CHART / "dashboards/holdfast.json").read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 20)
        rules = (CHART / "rules/holdfast.yaml").read_text()
        self.assertEqual(named(rules + "\n".join(queries)) - metrics(), set())

    @unittest.skipUnless(EVERYTHING, "tests/run asks for it")
    def test_every_metric_of_runbooks_and_of_operating_exists(self):
        for page in [*RUNBOOKS.glob("*.md"), ROOT / "docs/operating.md"]:
            with self.subTest(page=page.name):
                text = re.sub(r"\w+_\{[\w,]+\}\w*|\w+\.\.\.\w*", "", page.read_text())
                self.assertEqual({n for n in named(text) if n not in metrics()} - {
                    "holdfast_router_request_duration_seconds"}, set())

    def test_label_values_exist(self):
        text = (CHART / "rules/holdfast.yaml").read_text() + (CHART / "dashboards/holdfast.json").read_text()
        kinds = set(re.findall(r'kind=\\?"(\w+)', text))
        self.assertEqual(kinds, {"contained"})
        self.assertIn("X(contained,", source("node/io/node_metrics.c"))
        codes = {code for group in re.findall(r'code=~"([a-z_|]+)"', text) for code in group.split("|")}
        protos = "".join(path.read_text() for path in (ROOT / "idl/holdfast/v1").glob("*.proto"))
        for code in codes:
            self.assertIn(f"ERROR_CODE_{code.upper()}", protos)


class Runbooks(unittest.TestCase):
    alerts = re.findall(r"- alert: (\w+)", (CHART / "rules/holdfast.yaml").read_text())

    def test_each_alert_has_a_page_and_each_page_an_alert(self):
        pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
        self.assertEqual(pages, set(self.alerts))
        rules = (CHART / "rules/holdfast.yaml").read_text()
        self.assertEqual(re.findall(r"runbook: (\S+)", rules),
                         [f"docs/runbooks/{alert}.md" for alert in self.alerts])

    def test_each_page_says_symptom_meaning_check_and_fix(self):
        for alert in self.alerts:
            headings = re.findall(r"^## .*", (RUNBOOKS / f"{alert}.md").read_text(), re.M)
            self.assertEqual(headings, SECTIONS, alert)
            self.assertIn(f"[{alert}]({alert}.md)", (RUNBOOKS / "README.md").read_text())

    def test_each_alert_has_a_test_that_fires_it(self):
        tests = (CHARTS / "tests/rules_test.yaml").read_text()
        for alert in self.alerts:
            self.assertIn(f'alertname="{alert}"', tests)

    def test_links_resolve(self):
        for page in [*RUNBOOKS.glob("*.md"), *CHARTS.glob("*.md"), *CHART.glob("*.md")]:
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", page.read_text()):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")


class Values(unittest.TestCase):
    docs = load_docs()
    schema = json.loads((CHART / "values.schema.json").read_text())
    rows = docs.rows((CHART / "values.yaml").read_text().split("\n"))

    def at(self, path):
        node = self.schema
        for key in path.split("."):
            node = node["properties"][key]
        return node

    def test_the_readme_shows_every_value_as_it_is(self):
        if self.docs.table(self.rows) not in (CHART / "README.md").read_text():
            self.fail("charts/holdfast/README.md is not current: run charts/docs")

    def test_the_schema_knows_every_value_and_nothing_else(self):
        def leaves(node, path):
            if "properties" in node and path.split(".")[-1] not in ("config", "issuerRef", "resources"):
                for key, child in node["properties"].items():
                    yield from leaves(child, f"{path}.{key}" if path else key)
            else:
                yield path
        self.assertEqual(set(leaves(self.schema, "")) - {"global"}, {row[0] for row in self.rows})

    def test_a_key_that_is_not_listed_is_refused_everywhere(self):
        def objects(node, path):
            if isinstance(node, dict):
                if "properties" in node and node.get("type") == "object":
                    self.assertIs(node.get("additionalProperties"), False, path)
                for key, child in node.items():
                    objects(child, f"{path}/{key}")
        objects(self.schema, "")

    def test_options_in_config_exist_and_are_not_the_charts_own(self):
        template = (CHART / "templates/_config.tpl").read_text()
        own = set(re.findall(r"^([a-z_]+): ", template, re.M))
        for process, known in OPTIONS.items():
            given = set(self.at(f"{process}.config")["properties"])
            self.assertGreater(len(given), 5)
            self.assertEqual(given - known, set(), process)
            self.assertEqual(given & (own & known), set(), process)

    @unittest.skipUnless(EVERYTHING, "tests/run asks for it")
    def test_every_option_is_the_charts_or_the_users(self):
        """An option that is in neither list could not be given at all: add it to values.schema.json."""
        template = (CHART / "templates/_config.tpl").read_text()
        own = set(re.findall(r"^([a-z_]+): ", template, re.M)) | NOT_IN_PODS
        for process, known in OPTIONS.items():
            given = set(self.at(f"{process}.config")["properties"])
            self.assertEqual(known - given - own, set(), process)

    def test_options_that_the_chart_sets_exist(self):
        template = (CHART / "templates/_config.tpl").read_text()
        for option in re.findall(r"^([a-z_]+): ", template, re.M):
            self.assertTrue(any(option in known for known in OPTIONS.values()), option)
        for name in ("node", "router", "coordinator"):
            text = (CHART / f"templates/{name}.yaml").read_text()
            for option in re.findall(r"name: HOLDFAST_(\w+)", text):
                self.assertIn(option.lower(), OPTIONS[name])


if __name__ == "__main__":
    unittest.main(argv=[arg for arg in sys.argv if arg != "--everything"])
