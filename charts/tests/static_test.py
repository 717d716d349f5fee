#!/usr/bin/env python3
"""What the chart says must be true of the programs beside it: options, runbooks, values, rules. Needs the
built programs and promtool; metrics_test.py checks the metrics, tests/run the rest with Helm."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess
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


BIN = pathlib.Path(os.environ.get("HOLDFAST_BIN", ROOT / "build/release/bin"))
# Given by environment, or of no use in a pod.
NOT_IN_PODS = {"name", "zone", "advertise", "peer_advertise", "insecure", "native_listen", "log_level", "log_format"}


def options(process):
    """The options of a program, as it tells them itself."""
    told = subprocess.run([BIN / f"holdfast-{process}", "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return {name.replace("-", "_") for name in re.findall(r"^  --([a-z-]+) ", told, re.M)} - {"config"}


OPTIONS = {process: options(process) for process in ("node", "router", "coordinator")}


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


class Rules(unittest.TestCase):
    def promtool(self, *words):
        done = subprocess.run(["promtool", *words], cwd=CHARTS / "tests", text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_prometheus_takes_them(self):
        self.promtool("check", "rules", str(CHART / "rules/holdfast.yaml"))

    def test_each_fires_on_what_it_is_for_and_on_nothing_else(self):
        self.promtool("test", "rules", "rules_test.yaml")


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

    def test_a_keys_authority_is_a_scope_that_the_command_line_takes(self):
        key = self.schema["$defs"]["apiKey"]["properties"]
        told = subprocess.run([BIN / "holdfast", "key", "issue", "x", "--scopes", "game", "--authority", "unheld"],
                              check=False, text=True, stderr=subprocess.PIPE).stderr
        taken = re.findall(r"\w+", re.search(r"one of ([\w, ]+?) that the key has", told).group(1))
        self.assertEqual({f"system:{scope}" for scope in taken if scope != "and"}, set(key["authority"]["enum"]))
        self.assertLess({scope.removeprefix("system:") for scope in key["authority"]["enum"]},
                        set(key["scopes"]["items"]["enum"]))
        self.assertIn('${4:+--authority "$4"}', (CHART / "templates/keys.yaml").read_text())

    def test_options_in_config_exist_and_are_not_the_charts_own(self):
        template = (CHART / "templates/_config.tpl").read_text()
        own = set(re.findall(r"^([a-z_]+): ", template, re.M))
        for process, known in OPTIONS.items():
            given = set(self.at(f"{process}.config")["properties"])
            self.assertGreater(len(given), 5)
            self.assertEqual(given - known, set(), process)
            self.assertEqual(given & (own & known), set(), process)

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
    unittest.main()
