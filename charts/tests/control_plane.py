"""A Kubernetes without machines: etcd, API server, controllers, scheduler, all real, on loopback.

`ControlPlane` starts and stops them (charts/tools/build makes the binary). `Kubelet` plays the machines, of
which there are none: what is bound to one is said to run, who is deleted is gone at once, a claim
gets a volume. `Metrics` plays the metrics server. Nothing is run: pods_run.py does that.
"""

import base64
import ctypes
import datetime
import http.server
import json
import pathlib
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "build/tools"
TOKEN, ADDRESS, PATIENCE_S = "of-the-test", "192.0.2.1", 180
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
# A machine has a zone; three zones, and more machines than there are nodes of Holdfast.
MACHINES = {f"m{number}": f"eu-1{'abc'[number % 3]}" for number in range(6)}


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(what, probe, patience_s=PATIENCE_S):
    """Polls until `probe` gives something true, and returns that."""
    deadline = time.monotonic() + patience_s
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(0.1)


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


def self_signed(directory, name):
    key, cert = directory / f"{name}.key", directory / f"{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:127.0.0.1,IP:{ADDRESS}"],
                   check=True, capture_output=True)
    return key, cert


class ControlPlane:
    """Listens on fixed ports: give it a network namespace of its own."""

    def __init__(self, directory):
        self.directory, self.processes = pathlib.Path(directory), []
        self.key, self.cert = self_signed(self.directory, "apiserver")
        self.kubeconfig = self.directory / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": "https://127.0.0.1:6443", "certificate-authority": str(self.cert)}}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
        self.trust = ssl.create_default_context(cafile=self.cert)

    def run(self, name, *command):
        with open(self.directory / f"{name}.log", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory,
                                                   preexec_fn=die_with_parent))

    def start(self):
        """etcd and the API server."""
        (self.directory / "tokens").write_text(f'{TOKEN},test,1,"system:masters"\n')
        self.run("etcd", "etcd", f"--data-dir={self.directory}/etcd", "--listen-peer-urls=http://127.0.0.1:2380",
                 "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379")
        self.run("kube-apiserver", TOOLS / "kube", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                 "--bind-address=127.0.0.1", f"--advertise-address={ADDRESS}", "--endpoint-reconciler-type=none",
                 f"--cert-dir={self.directory}", f"--tls-cert-file={self.cert}", f"--tls-private-key-file={self.key}",
                 f"--token-auth-file={self.directory}/tokens", "--authorization-mode=RBAC",
                 "--service-cluster-ip-range=10.96.0.0/16",
                 "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.cert}",
                 f"--service-account-signing-key-file={self.key}", "--enable-aggregator-routing=true",
                 "--feature-gates=PodTopologyLabelsAdmission=true")  # On by default from 1.35.
        wait_for("the API server is ready", self.is_ready)

    def is_ready(self):
        for process in self.processes:
            if process.poll() is not None:
                raise AssertionError(self.tails())
        try:
            return self.request("GET", "/readyz") == b"ok"
        except (OSError, Refused):
            return False

    def start_controllers(self):
        kubeconfig = f"--kubeconfig={self.kubeconfig}"
        shared = (kubeconfig, "--leader-elect=false", f"--cert-dir={self.directory}", "--bind-address=127.0.0.1")
        # Machines that report nothing are not to be given up: there are none.
        self.run("kube-controller-manager", TOOLS / "kube", "kube-controller-manager", *shared,
                 "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
                 f"--service-account-private-key-file={self.key}", f"--root-ca-file={self.cert}",
                 "--horizontal-pod-autoscaler-sync-period=1s",
                 "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
                 "--horizontal-pod-autoscaler-cpu-initialization-period=0s")
        self.run("kube-scheduler", TOOLS / "kube", "kube-scheduler", *shared)

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def tails(self):
        return "\n".join(f"--- {log.stem}\n" + "\n".join(log.read_text().splitlines()[-8:])
                         for log in sorted(self.directory.glob("*.log")))

    def open(self, method, path, body=None, kind="application/json", token=TOKEN):
        request = urllib.request.Request(f"https://127.0.0.1:6443{path}", method=method, headers={
            "Authorization": f"Bearer {token}", "Content-Type": kind},
            data=None if body is None else json.dumps(body).encode())
        try:
            return urllib.request.urlopen(request, context=self.trust, timeout=600)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            raise Refused(error.code, said) from error

    def request(self, *args, **named):
        with self.open(*args, **named) as answer:
            return answer.read()

    def call(self, *args, **named):
        return json.loads(self.request(*args, **named))

    def get(self, path):
        """The object, or None."""
        try:
            return self.call("GET", path)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, path, **labels):
        selector = urllib.parse.quote(",".join(f"{name}={value}" for name, value in labels.items()))
        return self.call("GET", f"{path}?labelSelector={selector}")["items"]

    def create_namespace(self, name):
        """One that lets in nothing but what the restricted Pod Security Standard allows."""
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})

    def kubectl(self, *words, text=None):
        """(exit code, output and errors)."""
        done = subprocess.run([TOOLS / "kube", "kubectl", f"--kubeconfig={self.kubeconfig}", *words], input=text,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return done.returncode, done.stdout + done.stderr

    def helm(self, *words):
        done = subprocess.run([TOOLS / "helm", "--kubeconfig", self.kubeconfig, *words], capture_output=True,
                              text=True, check=False, timeout=2 * PATIENCE_S)
        return done.returncode, done.stdout + done.stderr


class Watcher(threading.Thread):
    """Calls `changed` with each change of what `path` lists, in order."""

    def __init__(self, plane, path, changed):
        super().__init__(daemon=True)
        self.plane, self.path, self.changed, self.failure = plane, path, changed, None

    def run(self):
        try:
            version = self.plane.call("GET", self.path)["metadata"]["resourceVersion"]
            with self.plane.open("GET", f"{self.path}?watch=1&resourceVersion={version}") as stream:
                for line in stream:
                    event = json.loads(line)
                    self.changed(event["type"], event["object"])
        except (OSError, ValueError):
            pass  # The API server was stopped.
        except BaseException as failure:
            self.failure = failure
            raise


class Kubelet:
    """Plays all machines. Start it before there are pods."""

    def __init__(self, plane):
        self.plane, self.lock, self.held = plane, threading.Lock(), set()
        self.addresses = 0
        self.history = []  # (name, uid, "ready" or "unready" or "gone"), as the API server told it.
        self.watchers = [Watcher(plane, "/api/v1/pods", self.pod_changed),
                         Watcher(plane, "/api/v1/persistentvolumeclaims", self.claim_changed)]

    def start(self):
        self.plane.call("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "disk", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kubernetes.io/no-provisioner"})
        for name, zone in MACHINES.items():
            room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
            self.plane.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {
                "topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}}})
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            self.patch(f"/api/v1/nodes/{name}/status", {"status": {
                "capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}})
        for watcher in self.watchers:
            watcher.start()

    def patch(self, path, change):
        return self.plane.call("PATCH", path, change, kind="application/merge-patch+json")

    def hold(self, name):
        """That pod is not ready from its next start on, until it is let go."""
        with self.lock:
            self.held.add(name)

    def let_go(self, namespace, name):
        with self.lock:
            self.held.discard(name)
        pod = self.plane.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        if pod and pod["status"].get("phase") == "Running":
            self.report(pod, "Running", True)

    def pod_changed(self, change, pod):
        meta, status = pod["metadata"], pod["status"]
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))
        state = "gone" if change == "DELETED" else "ready" if ready else "unready"
        self.history.append((meta["name"], meta["uid"], state))
        try:
            if change == "DELETED" or "nodeName" not in pod["spec"]:
                return
            if "deletionTimestamp" in meta:
                self.plane.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", {
                    "gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
            elif status.get("phase") == "Pending":
                with self.lock:
                    held = meta["name"] in self.held
                always = pod["spec"]["restartPolicy"] == "Always"
                self.report(pod, "Running" if always else "Succeeded", always and not held)
        except Refused as refused:
            if refused.status not in (404, 409):  # It changed meanwhile: that is told next.
                raise

    def report(self, pod, phase, ready):
        with self.lock:
            self.addresses += 1
            address = f"10.244.{self.addresses // 250}.{self.addresses % 250 + 1}"
        address = pod["status"].get("podIP", address)
        state = {"running": {"startedAt": now()}}
        if phase == "Succeeded":
            state = {"terminated": {"exitCode": 0, "startedAt": now(), "finishedAt": now()}}
        truth = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        meta = pod["metadata"]
        self.patch(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status", {
            "metadata": {"uid": meta["uid"]}, "status": {
                "phase": phase, "startTime": now(), "podIP": address, "podIPs": [{"ip": address}],
                "conditions": [{"type": name, "status": str(value), "lastTransitionTime": now()}
                               for name, value in truth.items()],
                "containerStatuses": [{"name": each["name"], "image": each["image"], "imageID": "", "ready": ready,
                                       "started": True, "restartCount": 0, "state": state}
                                      for each in pod["spec"]["containers"]]}})

    def claim_changed(self, change, claim):
        meta = claim["metadata"]
        name = f"pv-{meta['uid']}"
        if change == "DELETED" or claim["status"].get("phase") != "Pending" or self.plane.get(
                f"/api/v1/persistentvolumes/{name}"):
            return
        self.plane.call("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
            "capacity": claim["spec"]["resources"]["requests"], "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"], "hostPath": {"path": f"/{name}"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": meta["namespace"], "name": meta["name"],
                         "uid": meta["uid"]}}})

    def failures(self):
        return [watcher.failure for watcher in self.watchers if watcher.failure]


class Metrics:
    """metrics.k8s.io, as an aggregated API: every pod uses `millicores`."""

    def __init__(self, plane):
        self.plane, self.millicores = plane, 0
        key, cert = self_signed(plane.directory, "metrics")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = json.dumps(outer.answer(urllib.parse.urlsplit(self.path))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer((ADDRESS, 4443), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        services = "/api/v1/namespaces/kube-system/services"
        self.plane.call("POST", services, {"metadata": {"name": "metrics"}, "spec": {
            "ports": [{"name": "https", "port": 443, "targetPort": 4443}]}})
        self.plane.call("POST", "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
            "metadata": {"name": "metrics", "labels": {"kubernetes.io/service-name": "metrics"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": 4443, "protocol": "TCP"}],
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}]})
        self.plane.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
            "metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": {
                "group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"namespace": "kube-system", "name": "metrics"}}})

    def answer(self, url):
        version = {"apiVersion": "metrics.k8s.io/v1beta1"}
        asked = re.fullmatch(r"/apis/metrics\.k8s\.io/v1beta1/namespaces/([^/]+)/pods", url.path)
        if not asked:
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
                    "resources": [{"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics",
                                   "verbs": ["get", "list"]}]}
        pods = self.plane.call("GET", f"/api/v1/namespaces/{asked[1]}/pods?{url.query}")["items"]
        usage = {"cpu": f"{self.millicores}m", "memory": "64Mi"}
        return version | {"kind": "PodMetricsList", "metadata": {}, "items": [
            {"metadata": {"name": pod["metadata"]["name"], "namespace": asked[1]}, "timestamp": now(), "window": "15s",
             "containers": [{"name": each["name"], "usage": usage} for each in pod["spec"]["containers"]]}
            for pod in pods]}


def decoded(secret, key):
    return base64.b64decode(secret["data"][key])
