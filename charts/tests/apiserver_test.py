#!/usr/bin/env python3
"""The rendered chart, taken and carried out by a real Kubernetes: API server, controllers, scheduler.

    charts/tests/apiserver_test.py [TEST]           needs root, or user namespaces; charts/tools/build

Pods are played (control_plane.py): shown here is what Kubernetes makes of the chart's objects, not what the
processes do. Where the API server is missing, the tests are skipped and say so.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

from control_plane import ADDRESS, MACHINES, TOOLS, ControlPlane, Kubelet, Metrics, Refused, decoded, wait_for

CHARTS = pathlib.Path(__file__).resolve().parent.parent
CHART = CHARTS / "holdfast"
FIRST = CHARTS / "tests/first_version.yaml"
RELEASE, NAMESPACE, FULL = "players", "game", "players-holdfast"
COMPONENT, ZONE = "app.kubernetes.io/component", "topology.kubernetes.io/zone"
SOON = ("--set", "node.minReadySeconds=1", "--set", "node.topologySpread.zones=DoNotSchedule")
plane = None


def setUpModule():
    global plane
    if not (TOOLS / "kube").exists():
        raise unittest.SkipTest("no build/tools/kube: charts/tools/build says why it could not be built")
    directory = tempfile.mkdtemp(prefix="holdfast-apiserver-")
    unittest.addModuleCleanup(shutil.rmtree, directory)
    plane = ControlPlane(directory)
    unittest.addModuleCleanup(plane.stop)
    plane.start()
    install_definitions()


def install_definitions():
    """Kinds of others that the chart uses, as those publish them."""
    for file in sorted((TOOLS / "crds").glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        definition["metadata"].pop("labels", None)  # cert-manager's are a template.
        code, said = plane.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump(definition))
        assert code == 0, said
    code, said = plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    assert code == 0, said


def render(namespace, *words):
    done = subprocess.run([TOOLS / "helm", "template", RELEASE, CHART, "--namespace", namespace,
                           "--kube-version", "1.34.0", *words], check=True, capture_output=True, text=True)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def apply(namespace, objects):
    """Server-side, with strict validation of fields; (exit code, what was said)."""
    return plane.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "--namespace",
                         namespace, "-f", "-", text=yaml.safe_dump_all(objects))


def find(objects, kind, name):
    return next(each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)


class Accepted(unittest.TestCase):
    """Before any controller runs: what is stored is what was sent."""

    def setUp(self):
        self.namespace = "accepted-" + re.sub(r"[^a-z]+", "-", self.id().rsplit(".", 1)[1])[:40].strip("-")
        plane.create_namespace(self.namespace)
        # The account of pods that bring none; a controller makes it elsewhere.
        plane.call("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": "default"}})

    def remove(self, objects):
        code, said = plane.kubectl("delete", "--namespace", self.namespace, "--cascade=background", "--wait=false",
                                   "--force", "-f", "-", text=yaml.safe_dump_all(objects))
        self.assertEqual(code, 0, said)

    def test_every_example_of_values_is_taken_with_strict_validation(self):
        examples = sorted((CHART / "ci").glob("*-values.yaml"))
        self.assertGreaterEqual(len(examples), 5)
        kinds = set()
        for values in examples:
            with self.subTest(values=values.name):
                objects = render(self.namespace, "--values", values)
                code, said = apply(self.namespace, objects)
                self.assertEqual(code, 0, said)
                self.assertEqual(said.count("serverside-applied"), len(objects), said)
                self.assertNotIn("Warning", said)  # Deprecated fields, pods that the namespace would refuse.
                kinds |= {each["kind"] for each in objects}
                print(f"{values.name}: {len(objects)} objects", file=sys.stderr)
                self.remove(objects)
        self.assertLessEqual({"Certificate", "ServiceMonitor", "PrometheusRule", "HTTPRoute", "Ingress"}, kinds)

    def test_a_field_that_nobody_knows_is_refused(self):
        objects = render(self.namespace, "--values", CHART / "ci/production-values.yaml")
        for kind, name, path, value in (
                ("StatefulSet", f"{FULL}-node", ("spec", "template", "spec", "containers", 0, "redinessProbe"), {}),
                ("HorizontalPodAutoscaler", f"{FULL}-router", ("spec", "maxReplica"), 3),
                ("ServiceMonitor", FULL, ("spec", "endpoint"), []),
                ("HTTPRoute", FULL, ("spec", "hostname"), "players.example")):
            wrong = find(objects, kind, name)
            at = wrong
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            code, said = apply(self.namespace, [wrong])
            self.assertNotEqual(code, 0, kind)
            self.assertRegex(said, f"unknown field.*{path[-1]}|{path[-1]}: field not declared in schema")

    def test_a_value_out_of_range_and_a_pod_with_privileges_are_refused(self):
        objects = render(self.namespace)
        budget = find(objects, "PodDisruptionBudget", f"{FULL}-node")
        budget["spec"]["minAvailable"] = 1
        code, said = apply(self.namespace, [budget])
        self.assertIn("cannot be both set", said)
        pod = find(objects, "Pod", f"{FULL}-test")
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        code, said = apply(self.namespace, [find(objects, "ServiceAccount", FULL), pod])
        self.assertNotEqual(code, 0)
        self.assertIn('violates PodSecurity "restricted', said)

    def test_what_the_first_version_installed_can_be_upgraded(self):
        """Selectors, names of services and claims are never to change: a server refuses that."""
        first = list(yaml.safe_load_all(FIRST.read_text()))
        self.assertEqual({each["kind"] for each in first}, {"Service", "StatefulSet", "Deployment"})
        for each in first:
            each["metadata"].pop("namespace", None)
        code, said = apply(self.namespace, first)
        self.assertEqual(code, 0, said)
        now = render(self.namespace)
        self.assertLessEqual({(each["kind"], each["metadata"]["name"]) for each in first},
                             {(each["kind"], each["metadata"]["name"]) for each in now})
        code, said = apply(self.namespace, now)
        self.assertEqual(code, 0, said)
        wrong = find(now, "StatefulSet", f"{FULL}-node")
        wrong["spec"]["serviceName"] = "another"
        code, said = apply(self.namespace, [wrong])
        self.assertIn("Forbidden: updates to statefulset spec", said)
        self.remove(now)


class Reconciled(unittest.TestCase):
    """One release, installed by Helm; each test leaves it as it found it: three nodes, all ready."""

    @classmethod
    def setUpClass(cls):
        plane.start_controllers()
        cls.kubelet, cls.metrics = Kubelet(plane), Metrics(plane)
        cls.kubelet.start()
        cls.metrics.start()
        plane.create_namespace(NAMESPACE)
        wait_for("the namespace's account", lambda: plane.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"))
        cls.helm("install")

    def setUp(self):
        self.addCleanup(lambda: self.assertEqual(self.kubelet.failures(), []))

    @staticmethod
    def helm(verb, *words):
        """All values that are not given are the chart's own."""
        code, said = plane.helm(verb, RELEASE, str(CHART), "--namespace", NAMESPACE, "--wait", "--timeout", "300s",
                                *SOON, *words)
        if code != 0:
            raise AssertionError(f"helm {verb}: {said}\n{plane.tails()}")
        return said

    @staticmethod
    def of(group, kind, name):
        return plane.get(f"/{group}/namespaces/{NAMESPACE}/{kind}/{name}")

    @staticmethod
    def pods(component):
        return {pod["metadata"]["name"]: pod for pod in plane.list(
            f"/api/v1/namespaces/{NAMESPACE}/pods", **{COMPONENT: component, "app.kubernetes.io/instance": RELEASE})}

    def claims(self, component):
        return {claim["metadata"]["name"]: claim["status"]["phase"] for claim in plane.list(
            f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims", **{COMPONENT: component})}

    def nodes_ready(self, count):
        status = self.of("apis/apps/v1", "statefulsets", f"{FULL}-node")["status"]
        return (status.get("availableReplicas"), status.get("replicas")) == (count, count)

    def budget(self, component):
        return self.of("apis/policy/v1", "poddisruptionbudgets", f"{FULL}-{component}")["status"]

    def test_an_install_has_every_pod_on_a_machine_and_every_claim_a_volume(self):
        nodes = self.pods("node")
        self.assertEqual(set(nodes), {f"{FULL}-node-{n}" for n in range(3)})
        self.assertEqual(set(self.pods("etcd")), {f"{FULL}-etcd-{n}" for n in range(3)})
        self.assertEqual(self.claims("node"), {f"data-{FULL}-node-{n}": "Bound" for n in range(3)})
        self.assertEqual(self.claims("etcd"), {f"data-{FULL}-etcd-{n}": "Bound" for n in range(3)})
        for component in ("router", "coordinator"):
            wait_for(f"two of {component}", lambda c=component: len(self.pods(c)) == 2)
            owners = {pod["metadata"]["ownerReferences"][0]["name"] for pod in self.pods(component).values()}
            sets = plane.list(f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets", **{COMPONENT: component})
            self.assertLessEqual(owners, {each["metadata"]["name"] for each in sets})
        machines = [pod["spec"]["nodeName"] for pod in nodes.values()]
        self.assertEqual(len({MACHINES[machine] for machine in machines}), 3)  # Zones.
        # The machine's zone is on the pod, where the node's environment takes it from.
        for pod in nodes.values():
            self.assertEqual(pod["metadata"]["labels"][ZONE], MACHINES[pod["spec"]["nodeName"]])
            zone = next(e for e in pod["spec"]["containers"][0]["env"] if e["name"] == "HOLDFAST_ZONE")
            self.assertEqual(zone["valueFrom"]["fieldRef"]["fieldPath"], f"metadata.labels['{ZONE}']")

    def test_services_have_the_addresses_of_their_pods(self):
        def addresses(service):
            slices = plane.list(f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices",
                                **{"kubernetes.io/service-name": service})
            return {address for each in slices for end in each["endpoints"] or [] for address in end["addresses"]}
        ips = {component: {pod["status"]["podIP"] for pod in self.pods(component).values()}
               for component in ("node", "router", "coordinator", "etcd")}
        for service, components in ((FULL, ["router"]), (f"{FULL}-node", ["node"]), (f"{FULL}-etcd", ["etcd"]),
                                    (f"{FULL}-metrics", ["node", "router", "coordinator"])):
            expected = set().union(*(ips[component] for component in components))
            wait_for(f"addresses of {service}", lambda s=service, e=expected: addresses(s) == e)

    def test_helm_test_and_the_hook_that_registers_keys_are_carried_out(self):
        states = [state for name, _uid, state in self.kubelet.history if name.startswith(f"{FULL}-keys-")]
        self.assertIn("unready", states)
        self.assertIsNone(self.of("apis/batch/v1", "jobs", f"{FULL}-keys"))  # Deleted once it succeeded.
        code, said = plane.helm("test", RELEASE, "--namespace", NAMESPACE)
        self.assertEqual(code, 0, said)
        self.assertIn("Phase:          Succeeded", said)

    def test_an_eviction_beyond_the_budget_is_refused(self):
        for component in ("node", "router", "coordinator", "etcd"):
            wait_for(f"the budget of {component}", lambda c=component: self.budget(c).get("disruptionsAllowed") == 1)
        for component, first, second in (("node", f"{FULL}-node-0", f"{FULL}-node-1"),
                                         ("etcd", f"{FULL}-etcd-0", f"{FULL}-etcd-1")):
            uid = self.pods(component)[first]["metadata"]["uid"]
            self.kubelet.hold(first)
            self.addCleanup(self.kubelet.let_go, NAMESPACE, first)
            self.evict(first)
            with self.assertRaises(Refused) as refused:
                self.evict(second)
            self.assertEqual(refused.exception.status, 429)
            wait_for("its successor runs", lambda f=first, u=uid: (pod := self.of("api/v1", "pods", f))
                     and pod["metadata"]["uid"] != u and pod["status"]["phase"] == "Running")
            with self.assertRaises(Refused) as refused:  # Running is not ready.
                self.evict(second)
            self.assertEqual(refused.exception.status, 429)
            self.kubelet.let_go(NAMESPACE, first)
            wait_for("one may go again", lambda c=component: self.budget(c).get("disruptionsAllowed") == 1)
        wait_for("three nodes", lambda: self.nodes_ready(3))

    def evict(self, name):
        plane.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})

    def test_three_nodes_become_five_and_three_and_volumes_stay(self):
        self.helm("upgrade", "--set", "node.replicas=5")
        wait_for("five nodes", lambda: self.nodes_ready(5))
        nodes = self.pods("node")
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in nodes.values()}), 5)  # hosts: DoNotSchedule.
        wait_for("the budget counts them", lambda: self.budget("node").get("expectedPods") == 5)
        self.helm("upgrade")
        wait_for("three nodes", lambda: set(self.pods("node")) == {f"{FULL}-node-{n}" for n in range(3)})
        self.assertEqual(self.claims("node"), {f"data-{FULL}-node-{n}": "Bound" for n in range(5)})
        delete = ("--set", "node.persistence.retention.whenScaled=Delete")
        self.helm("upgrade", "--set", "node.replicas=5", *delete)
        self.helm("upgrade", *delete)
        wait_for("claims of the nodes that left are gone", lambda: set(self.claims("node")) == {
            f"data-{FULL}-node-{n}" for n in range(3)})
        self.helm("upgrade")

    def test_an_upgrade_replaces_one_node_at_a_time_and_waits_until_it_is_ready(self):
        names = {f"{FULL}-node-{n}" for n in range(3)}
        before = {name: pod["metadata"]["uid"] for name, pod in self.pods("node").items()}
        begun = len(self.kubelet.history)
        last = f"{FULL}-node-2"
        self.kubelet.hold(last)
        self.addCleanup(self.kubelet.let_go, NAMESPACE, last)
        code, said = plane.helm("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE, *SOON, "--set",
                                "node.config.cache_size=64MiB", "--no-hooks")
        self.assertEqual(code, 0, said)
        wait_for("the last node is new, and not ready", lambda: self.pods("node").get(last, {}).get("metadata", {})
                 .get("uid", before[last]) != before[last])
        wait_for("the StatefulSet counts it", lambda: (status := self.of(
            "apis/apps/v1", "statefulsets", f"{FULL}-node")["status"]).get("updatedReplicas") == 1
            and status.get("readyReplicas") == 2)
        self.kubelet.let_go(NAMESPACE, last)
        wait_for("all are new", lambda: len(uids := {
            pod["metadata"]["uid"] for pod in self.pods("node").values()} - set(before.values())) == 3
            and self.nodes_ready(3) and uids)
        ready, order = set(names), []
        for name, _uid, state in self.kubelet.history[begun:]:
            if name not in names:
                continue
            if state == "gone":
                order.append(name)
            if state == "ready":
                ready.add(name)
            else:
                ready.discard(name)
            self.assertGreaterEqual(len(ready), 2, (name, state))
        self.assertEqual(order, [f"{FULL}-node-{n}" for n in (2, 1, 0)])
        self.helm("upgrade")

    def test_routers_follow_the_load_and_an_upgrade_leaves_their_number_alone(self):
        def status():
            return self.of("apis/autoscaling/v2", "horizontalpodautoscalers", f"{FULL}-router")["status"]

        def condition(name):
            return next((each for each in status().get("conditions") or [] if each["type"] == name), {})
        def use():
            metrics = status().get("currentMetrics") or [{}]
            return metrics[0].get("resource", {}).get("current", {}).get("averageUtilization")
        wait_for("it is active", lambda: condition("ScalingActive").get("status") == "True")
        self.assertEqual(condition("AbleToScale").get("status"), "True")
        self.metrics.millicores = 1400  # Twice what it aims for, 70 % of one core.
        wait_for("four routers", lambda: len(self.pods("router")) >= 4 and status().get("desiredReplicas", 0) >= 4)
        self.metrics.millicores = 700  # As it should be: nothing changes.
        wait_for("their use is what was aimed for", lambda: use() == 70)
        count = status()["desiredReplicas"]
        self.helm("upgrade", "--set", "router.podAnnotations.changed=yes")
        deployment = self.of("apis/apps/v1", "deployments", f"{FULL}-router")
        self.assertEqual(deployment["spec"]["replicas"], count)
        self.metrics.millicores = 0
        wait_for("it waits before it goes down", lambda: condition("AbleToScale").get("reason") == "ScaleDownStabilized")
        self.helm("upgrade")

    def test_certificates_stay_with_an_upgrade_and_a_deleted_one_is_made_anew(self):
        def secret(name):
            return self.of("api/v1", "secrets", f"{FULL}-{name}")

        def annotation():
            return self.of("apis/apps/v1", "deployments", f"{FULL}-router")["spec"]["template"]["metadata"][
                "annotations"]["checksum/certificates"]
        self.helm("upgrade")
        before = {name: secret(name)["data"] for name in ("ca", "node-tls", "router-tls", "etcd-tls", "operator-key",
                                                          "test-key")}
        self.assertRegex(decoded(secret("operator-key"), "key"), rb"^hf_[0-9a-f]{64}$")
        summed = annotation()
        self.helm("upgrade")
        self.assertEqual({name: secret(name)["data"] for name in before}, before)
        self.assertEqual(annotation(), summed)
        plane.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/secrets/{FULL}-router-tls")
        self.helm("upgrade")
        self.assertEqual(secret("ca")["data"], before["ca"])
        self.assertNotEqual(secret("router-tls")["data"]["tls.crt"], before["router-tls"]["tls.crt"])
        self.assertEqual(secret("router-tls")["data"]["ca.crt"], before["router-tls"]["ca.crt"])
        self.assertNotEqual(annotation(), summed)

    def test_other_values_can_be_upgraded_to_and_those_that_cannot_are_refused(self):
        values = CHARTS / "tests/changed-values.yaml"
        self.helm("upgrade", "--values", str(values))
        self.helm("upgrade")
        for setting in ("node.persistence.size=64Gi", "etcd.persistence.size=16Gi"):  # As UPGRADING.md says.
            code, said = plane.helm("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE, *SOON, "--set", setting)
            self.assertNotEqual(code, 0, setting)
            self.assertIn("Forbidden: updates to statefulset spec", said)
        self.helm("upgrade")

    def test_who_reads_the_zone_may_read_machines_and_nothing_else(self):
        self.helm("upgrade", "--set", "node.zone.from=nodeLabel", "--set", "apiKeys.access=open")
        self.addCleanup(self.helm, "upgrade")
        token = plane.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{FULL}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
        machine = plane.call("GET", "/api/v1/nodes/m1", token=token)
        self.assertEqual(machine["metadata"]["labels"][ZONE], MACHINES["m1"])
        for path in ("/api/v1/nodes", f"/api/v1/namespaces/{NAMESPACE}/pods", f"/api/v1/namespaces/{NAMESPACE}/secrets"):
            with self.assertRaises(Refused) as refused:
                plane.call("GET", path, token=token)
            self.assertEqual(refused.exception.status, 403, path)


class Removed(unittest.TestCase):
    """What an uninstall leaves. Runs after Reconciled, whose controllers it uses."""

    def test_volumes_outlive_the_release_unless_told_otherwise(self):
        for name, values, left in (("stays", (), 1), ("goes", ("--set", "node.persistence.retention.whenDeleted=Delete",
                                                               "--set", "etcd.persistence.retention.whenDeleted=Delete"), 0)):
            with self.subTest(values=values):
                plane.create_namespace(name)
                code, said = plane.helm("install", RELEASE, str(CHART), "--namespace", name, "--wait", "--timeout", "300s",
                                        "--values", str(CHART / "ci/small-values.yaml"), *SOON,
                                        *(values or ("--set", "node.persistence.retention.whenDeleted=Retain")))
                self.assertEqual(code, 0, said)
                claims = f"/api/v1/namespaces/{name}/persistentvolumeclaims"
                self.assertEqual(len(plane.list(claims)), 2)
                code, said = plane.helm("uninstall", RELEASE, "--namespace", name, "--wait", "--timeout", "120s")
                self.assertEqual(code, 0, said)
                wait_for("claims are as they should be", lambda c=claims, n=left: len(plane.list(c)) == 2 * n)
                self.assertEqual(plane.list(f"/api/v1/namespaces/{name}/secrets"), [])


def main():
    if "HOLDFAST_APISERVER" not in os.environ:
        os.environ["HOLDFAST_APISERVER"] = "1"
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        os.execvp("unshare", ["unshare", *user, "--net", sys.executable, __file__, *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
