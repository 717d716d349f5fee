"""A kubelet as small as pods_run.py needs: pods of the rendered chart, as processes in one network namespace.

Every pod has an address of 127/8; where a container would listen on 0.0.0.0 its process listens on that
address, and where it mounts a volume its process gets the path of a directory. Secrets are projected as a
kubelet does it: a symbolic link that is replaced in one step. Names are in /etc/hosts, which is ours here.
"""

import base64
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

CHARTS = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("HOLDFAST_BIN", CHARTS.parent / "build/release/bin")).resolve()
HELM = CHARTS.parent / "build/tools/helm"
NAMESPACE, RELEASE, FULL = "game", "players", "players-holdfast"
STARTED_S, READY_S = 60, 120
ZONE = "topology.kubernetes.io/zone"


def wait_for(what, seconds, probe):
    """Polls until `probe` gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def fill(text, env):
    return re.sub(r"\$\((\w+)\)", lambda match: env[match[1]], text)


class Pod:
    def __init__(self, machine, workload, name, address, zone=""):
        self.machine, self.name, self.address, self.zone = machine, name, address, zone
        self.spec = workload["spec"]["template"]["spec"]
        self.labels = workload["spec"]["template"]["metadata"]["labels"]
        self.component = self.labels["app.kubernetes.io/component"]
        self.container = self.spec["containers"][0]
        self.directory = machine.directory / name
        self.directory.mkdir(exist_ok=True)  # A pod of that name before this one left its volume.
        self.volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        self.paths = {mount["mountPath"]: str(self.directory / mount["name"])
                      for mount in self.container["volumeMounts"]}
        for path in self.paths.values():
            pathlib.Path(path).mkdir(exist_ok=True)
        self.project()
        self.process = None

    def project(self):
        """What secrets and the configuration say now, in one step for each volume."""
        for mount in self.container["volumeMounts"]:
            volume = self.volumes.get(mount["name"], {})
            if "secret" in volume:
                data = self.machine.find("Secret", volume["secret"]["secretName"])["data"]
                self.write(mount["name"], {key: base64.b64decode(value) for key, value in data.items()})
            if "configMap" in volume:
                data = self.machine.find("ConfigMap", volume["configMap"]["name"])["data"]
                self.write(mount["name"], {key: self.translate(value).encode() for key, value in data.items()})

    def write(self, volume, files):
        top = self.directory / volume
        if (top / "..data").exists() and files == {
                file.name: file.read_bytes() for file in (top / "..data").iterdir()}:
            return
        made = top / f"..{time.monotonic_ns()}"
        made.mkdir()
        for name, content in files.items():
            (made / name).write_bytes(content)
        (top / "..data_tmp").symlink_to(made.name)
        os.replace(top / "..data_tmp", top / "..data")
        for name in files:
            if not (top / name).is_symlink():
                (top / name).symlink_to(f"..data/{name}")

    def translate(self, text):
        for path in sorted(self.paths, key=len, reverse=True):
            text = text.replace(path, self.paths[path])
        return text.replace("/usr/local/bin", str(BIN)).replace("0.0.0.0", self.address)

    def environment(self):
        fields = {"metadata.name": self.name, "status.podIP": self.address, f"metadata.labels['{ZONE}']": self.zone}
        found = {}
        for entry in self.container.get("env", []):
            if "value" in entry:
                found[entry["name"]] = self.translate(fill(entry["value"], found))
            else:
                found[entry["name"]] = fields[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        return found

    def start(self):
        env = self.environment()
        program = pathlib.Path(self.container["command"][0]).name
        binary = BIN / program if (BIN / program).exists() else shutil.which(program)
        arguments = [self.translate(fill(argument, env)) for argument in self.container["args"]]
        with open(self.directory / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([binary, *arguments], stdout=log, stderr=log, env=env)

    def port(self, name):
        return next(port["containerPort"] for port in self.container["ports"] if port["name"] == name)

    def get(self, probe):
        at = self.container[probe]["httpGet"]
        path = "/health" if self.component == "etcd" else at["path"]
        try:
            with urllib.request.urlopen(f"http://{self.address}:{self.port(at['port'])}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metrics(self):
        """Series of no labels -> value."""
        with urllib.request.urlopen(f"http://{self.address}:{self.port('metrics')}/metrics", timeout=10) as answer:
            return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", answer.read().decode(), re.M)}

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} exited with {self.process.returncode}")
        return self.get("readinessProbe") == 200

    def wait_ready(self):
        wait_for(f"{self.name} answers its startup probe", STARTED_S, lambda: self.get("startupProbe") == 200)
        wait_for(f"{self.name} is ready", READY_S, self.ready)

    def stop(self):
        """As a kubelet does; returns the exit code."""
        before = time.monotonic()
        hook = self.container.get("lifecycle", {}).get("preStop")
        if hook:
            subprocess.run(hook["exec"]["command"], check=True)
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(self.spec["terminationGracePeriodSeconds"] - (time.monotonic() - before))

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Machine:
    """The rendered chart, and its pods."""

    def __init__(self, directory, *settings, values=None):
        self.directory, self.values = pathlib.Path(directory), values
        self.objects, self.pods, self.leaving, self.addresses, self.surged = [], [], [], 0, 99
        self.upgrade(*settings)
        for workload in self.workloads():
            for number in range(workload["spec"].get("replicas", 2)):
                self.pods.append(self.new_pod(workload, number))
        self.hosts = self.directory / "hosts"
        self.write_hosts()
        subprocess.run(["mount", "--bind", self.hosts, "/etc/hosts"], check=True)

    def upgrade(self, *settings):
        """Renders again. Secrets stay: Helm's lookup finds them in a cluster."""
        command = [HELM, "template", RELEASE, CHARTS / "holdfast", "--namespace", NAMESPACE,
                   "--kube-version", "1.35.0"]
        for setting in settings:
            command += ["--set", setting]
        if self.values:
            command += ["--values", self.values]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        kept = {each["metadata"]["name"]: each for each in self.objects if each["kind"] == "Secret"}
        self.objects = [kept.get(each["metadata"]["name"], each) if each["kind"] == "Secret" else each
                        for each in yaml.safe_load_all(text) if each]

    def workloads(self):
        return [each for each in self.objects if each["kind"] in ("StatefulSet", "Deployment")]

    def new_pod(self, workload, number):
        self.addresses += 1
        return Pod(self, workload, f"{workload['metadata']['name']}-{number}", f"127.0.1.{self.addresses}",
                   zone=f"eu-1{'abc'[number % 3]}")

    def successor(self, pod):
        """A pod of the same name, as the chart has it now, with the same volume and another address."""
        workload = next(each for each in self.workloads() if pod.name.startswith(f"{each['metadata']['name']}-"))
        after = self.new_pod(workload, int(pod.name.rsplit("-", 1)[1]))
        self.pods[self.pods.index(pod)] = after
        self.write_hosts()
        after.start()
        return after

    def successor_beside(self, pod):
        """As a Deployment has it: another name, and the old one still runs, which the caller ends."""
        workload = self.find("Deployment", pod.name.rsplit("-", 1)[0])
        self.surged += 1
        after = self.new_pod(workload, self.surged)
        self.pods[self.pods.index(pod)] = after
        self.leaving.append(pod)
        self.write_hosts()
        after.start()
        return after

    def added(self):
        """Pods that the chart asks for since it was rendered again; started."""
        new = [self.new_pod(workload, number) for workload in self.workloads()
               for number in range(workload["spec"].get("replicas", 2))
               if f"{workload['metadata']['name']}-{number}" not in {pod.name for pod in self.pods}]
        self.pods += new
        self.write_hosts()
        for pod in new:
            pod.start()
        return new

    def find(self, kind, name):
        return next(each for each in self.objects
                    if each["kind"] == kind and each["metadata"]["name"] == name)

    def of(self, component):
        return [pod for pod in self.pods if pod.component == component]

    def write_hosts(self):
        """Names as the cluster's DNS would have them: pods behind headless services, and services."""
        lines = ["127.0.0.1 localhost"]
        for service in (each for each in self.objects if each["kind"] == "Service"):
            selector, name = service["spec"]["selector"], service["metadata"]["name"]
            for pod in self.pods:
                if selector.items() <= pod.labels.items():
                    domain = f"{name}.{NAMESPACE}.svc.cluster.local"
                    lines.append(f"{pod.address} {pod.name}.{domain} {name}")
        self.hosts.write_text("\n".join(lines) + "\n")

    def start(self):
        for pod in self.pods:
            pod.start()
        for pod in self.pods:
            pod.wait_ready()
        if any(each["kind"] == "Job" for each in self.objects):
            self.register_keys()

    def register_keys(self):
        """The Job after an install."""
        job = next(each for each in self.objects if each["kind"] == "Job")
        pod = Pod(self, job, f"{job['metadata']['name']}-{time.monotonic_ns()}", "127.0.2.1")
        pod.start()
        code = pod.process.wait(READY_S)
        if code != 0:
            raise AssertionError((pod.directory / "log").read_text())

    def secret_value(self, reference):
        return base64.b64decode(self.find("Secret", reference["name"])["data"][reference["key"]]).decode()

    def helm_test(self):
        """The pod of `helm test`; returns what it printed. Its Service has one router here."""
        container = next(each for each in self.objects if each["kind"] == "Pod")["spec"]["containers"][0]
        env = {entry["name"]: entry["value"] if "value" in entry else
               self.secret_value(entry["valueFrom"]["secretKeyRef"]) for entry in container["env"]}
        env["PATH"] = f"{BIN}:{os.environ['PATH']}"
        return subprocess.run(container["command"] + container["args"], env=env, timeout=120,
                              capture_output=True, text=True, check=False)

    def kill(self):
        for pod in self.pods + self.leaving:
            pod.kill()
        subprocess.run(["umount", "/etc/hosts"], check=True)


class PodsCase(unittest.TestCase):
    """A machine for each test."""

    def machine_in(self, directory):
        raise NotImplementedError

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-pods-")
        self.addCleanup(directory.cleanup)
        self.machine = self.machine_in(pathlib.Path(directory.name))
        self.addCleanup(self.machine.kill)

    def run(self, result=None):
        self.failures_before = len(result.failures) + len(result.errors)
        return super().run(result)

    def tearDown(self):
        """After a failure: the last lines of every pod."""
        outcome = self._outcome.result
        if len(outcome.failures) + len(outcome.errors) == self.failures_before:
            return
        for pod in self.machine.pods:
            log = pod.directory / "log"
            lines = log.read_text(errors="replace").split("\n")[-6:] if log.exists() else ["not started"]
            print(f"--- {pod.name}", *lines, sep="\n", file=sys.stderr)

    def call_passes(self):
        done = self.machine.helm_test()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("left. All is well.", done.stdout)


def main(file):
    """Runs the tests of `file` in namespaces of their own."""
    if "HOLDFAST_PODS" not in os.environ:
        os.environ["HOLDFAST_PODS"] = "1"
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        os.execvp("unshare", ["unshare", *user, "--mount", "--net", sys.executable, file, *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    unittest.main(verbosity=2, warnings="ignore")  # Connections of threads that ended.
