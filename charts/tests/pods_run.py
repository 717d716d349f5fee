#!/usr/bin/env python3
"""Runs what the rendered chart says its pods run: commands, arguments, environment, files, probes, preStop.

Processes instead of containers (pods.py), in a network and mount namespace of their own.
A real Prometheus then scrapes the pods as the ServiceMonitor has it: every query of the dashboard must
return data, every alert evaluate, and none fire. pods_change.py has what changes under load. Not shown
here: images, volumes' ownership, seccomp, NetworkPolicy, and etcd's own probes (the etcd of Debian 12
is older than what the chart allows, so a member is asked for /health).

    HOLDFAST_BIN=build/release/bin charts/tests/pods_run.py          needs root, or user namespaces
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from pods import CHARTS, HELM, NAMESPACE, READY_S, RELEASE, Machine, PodsCase, main, wait_for


class Prometheus:
    """Scrapes what the chart's metrics Service selects, with the labels a ServiceMonitor gives."""

    def __init__(self, machine):
        self.directory = machine.directory / "prometheus"
        self.directory.mkdir()
        service = machine.find("Service", f"{RELEASE}-holdfast-metrics")
        targets = [{"targets": [f"{pod.address}:{service['spec']['ports'][0]['port']}"],
                    "labels": {"namespace": NAMESPACE, "pod": pod.name}}
                   for pod in machine.pods if service["spec"]["selector"].items() <= pod.labels.items()]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(CHARTS / "holdfast/rules/holdfast.yaml")],
                  "scrape_configs": [{"job_name": service["metadata"]["name"],
                                      "static_configs": targets}]}
        (self.directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        self.log = open(self.directory / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.directory}/prometheus.yml",
             f"--storage.tsdb.path={self.directory}/data", "--web.listen-address=127.0.0.1:9090"],
            stdout=self.log, stderr=self.log)
        self.job, self.targets = service["metadata"]["name"], len(targets)

    def api(self, path, **parameters):
        url = f"http://127.0.0.1:9090/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # It is starting.
                return None
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except OSError:
            return None

    def query(self, expression):
        """The samples of a dashboard's query, its variables filled in as Grafana would."""
        for name, value in {"$namespace": NAMESPACE, "$job": self.job, "$__rate_interval": "30s"}.items():
            expression = expression.replace(name, value)
        answer = self.api("query", query=expression)
        return answer["result"] if answer else []

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def public_certificate(directory):
    """Values that bring a certificate of the public port, as a secret among the extra manifests."""
    key, cert = directory / "public.key", directory / "public.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=players"],
                   check=True, capture_output=True)
    data = {name: base64.b64encode(path.read_bytes()).decode()
            for name, path in (("tls.key", key), ("tls.crt", cert))}
    values = directory / "values.yaml"
    values.write_text(yaml.safe_dump({
        "router": {"tls": {"enabled": True, "existingSecret": "public"}, "preStopSleepSeconds": 1},
        "node": {"replicas": 1}, "cluster": {"replicationFactor": 1}, "etcd": {"replicas": 1},
        "extraManifests": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "public"},
                            "data": data}]}))
    return values


class Pods(PodsCase):
    def machine_in(self, directory):
        if "public_tls" in self._testMethodName:
            return Machine(directory, values=public_certificate(directory))
        return Machine(directory, "router.preStopSleepSeconds=1")

    def test_one_node_serves_with_public_tls(self):
        self.machine.start()
        self.machine.register_keys()  # As an upgrade does: nothing changes.
        self.call_passes()
        address = self.machine.of("router")[0].address
        self.only_with_a_key(f"https://{address}:7400")
        plain = subprocess.run(["curl", "-s", f"http://{address}:7400/healthz"], check=False,
                               capture_output=True, timeout=30)
        self.assertNotIn(b"ok", plain.stdout)

    def only_with_a_key(self, endpoint):
        """The operator's key asks, and may not play; without one there is no answer."""
        key = self.machine.secret_value({"name": f"{RELEASE}-holdfast-operator-key", "key": "key"})
        for header, method, status in (("X-None: 1", "AdminService/GetCluster", b"401"),
                                       (f"Authorization: Bearer {key}", "AdminService/GetCluster", b"200"),
                                       (f"Authorization: Bearer {key}", "SessionService/RegisterServer", b"403")):
            done = subprocess.run(
                ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H", header, "-H",
                 "Content-Type: application/json", "-d", "{}", f"{endpoint}/holdfast.v1.{method}"],
                check=False, capture_output=True, timeout=30)
            self.assertEqual(done.stdout, status, (header[:14], method))

    def test_the_dashboard_has_data_and_no_alert_fires(self):
        machine = self.machine
        machine.start()
        prometheus = Prometheus(machine)
        self.addCleanup(prometheus.stop)
        wait_for("all pods are scraped", READY_S, lambda: len(
            prometheus.query("up{namespace='$namespace'} == 1")) == prometheus.targets)
        self.call_passes()
        wait_for("requests are counted", READY_S, lambda: prometheus.query(
            "sum(rate(holdfast_router_requests_total[30s])) > 0"))
        dashboard = json.loads((CHARTS / "holdfast/dashboards/holdfast.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                if 'code!="ok"' in target["expr"]:
                    continue  # No series before the first failure, which is as it should be.
                with self.subTest(panel=panel["title"], query=target["expr"]):
                    self.assertTrue(prometheus.query(target["expr"]))
        rules = prometheus.api("rules")["groups"][0]["rules"]
        alerts = (CHARTS / "holdfast/rules/holdfast.yaml").read_text().count("- alert: ")
        self.assertEqual(len(rules), alerts)
        self.assertEqual({rule["health"] for rule in rules}, {"ok"})

        # A checkpoint is due within 30 s of the start; until then one alert has a reason, and waits.
        def reasons():
            found = {rule["name"]: rule["state"] for rule in prometheus.api("rules")["groups"][0]["rules"]}
            self.assertNotIn("firing", found.values(), found)
            return {name for name, state in found.items() if state != "inactive"}
        wait_for("no alert has a reason", READY_S, lambda: not reasons())

    def test_installs_serves_restarts_node_by_node_and_ends_in_time(self):
        machine = self.machine
        machine.start()
        self.call_passes()
        for pod in reversed(machine.of("node")):  # As a StatefulSet rolls.
            self.assertEqual(pod.stop(), 0, pod.name)
            self.call_passes()
            pod.start()
            wait_for(f"{pod.name} is ready again", READY_S, pod.ready)
        self.call_passes()
        for pod in machine.of("coordinator")[:1]:
            self.assertEqual(pod.stop(), 0, pod.name)
            self.call_passes()
        for member in machine.of("etcd"):  # Who waits for etcd is not ready, but lives.
            member.process.kill()
            member.process.wait()
        for pod in machine.of("node"):
            wait_for(f"{pod.name} without etcd is not ready", READY_S, lambda pod=pod: not pod.ready())
            self.assertEqual(pod.get("livenessProbe"), 200)
        for member in machine.of("etcd"):
            member.start()
        for pod in machine.of("node") + machine.of("router"):
            wait_for(f"{pod.name} is ready after etcd is back", READY_S, pod.ready)
        self.call_passes()
        for pod in machine.of("router") + machine.of("node"):
            self.assertEqual(pod.stop(), 0, pod.name)


NODE_JSON = """{
  "metadata": {"name": "m1",
    "labels": {
      "topology.kubernetes.io/region": "eu",
      "topology.kubernetes.io/zone": "eu-1b"
    }
  }
}"""


class Zone(unittest.TestCase):
    """The init container of node.zone.from=nodeLabel, with a curl that answers as the API server would."""

    def run_init(self, curl):
        with tempfile.TemporaryDirectory(prefix="holdfast-zone-") as name:
            directory = pathlib.Path(name)
            text = subprocess.run([HELM, "template", RELEASE, CHARTS / "holdfast", "--kube-version", "1.34.0",
                                   "--set", "node.zone.from=nodeLabel"],
                                  check=True, capture_output=True, text=True).stdout
            init = next(each["spec"]["template"]["spec"]["initContainers"][0]
                        for each in yaml.safe_load_all(text)
                        if each and "initContainers" in each.get("spec", {}).get("template", {}).get("spec", {}))
            for path in ("api", "etc", "run"):
                (directory / path).mkdir()
            (directory / "api/token").write_text("secret")
            (directory / "etc/node.yaml").write_text("cluster: c")
            (directory / "curl").write_text(f"#!/bin/sh\n{curl}\n")
            (directory / "curl").chmod(0o755)
            script = init["args"][0].replace("/var/run/holdfast-api", f"{name}/api")
            script = script.replace("/etc/holdfast", f"{name}/etc").replace("/run/holdfast", f"{name}/run")
            done = subprocess.run([*init["command"], script], check=False, capture_output=True, env={
                "PATH": f"{name}:/usr/bin:/bin", "NODE_NAME": "m1"})
            made = directory / "run/node.yaml"
            return done.returncode, yaml.safe_load(made.read_text()) if made.exists() else None

    def test_the_zone_of_the_machine_is_an_option_of_the_node(self):
        self.assertEqual(self.run_init(f"cat <<'EOF'\n{NODE_JSON}\nEOF"), (0, {"cluster": "c", "zone": "eu-1b"}))

    def test_an_answer_on_one_line_is_read_too(self):
        flat = json.dumps(json.loads(NODE_JSON))
        self.assertEqual(self.run_init(f"echo '{flat}'"), (0, {"cluster": "c", "zone": "eu-1b"}))

    def test_a_machine_without_a_zone_has_none(self):
        self.assertEqual(self.run_init("echo '{}'"), (0, {"cluster": "c", "zone": ""}))

    def test_a_node_does_not_start_while_the_api_server_refuses(self):
        code, made = self.run_init("exit 22")
        self.assertNotEqual(code, 0)
        self.assertIsNone(made)


if __name__ == "__main__":
    main(__file__)
