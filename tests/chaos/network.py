"""
Hosts of a chaos run: network namespaces of its own, joined by chaos-wire, so that packets between any
two of them can be lost, late, or cut one way. All of it is inside one private namespace, so nothing of
it meets the machine's network, and nothing is left when the run ends.
"""

import json
import os
import subprocess
import sys

from cluster import BIN, Cluster, die_with_parent, free_port

INSIDE = "HOLDFAST_CHAOS_INSIDE"
SUBNET = "10.77.0"
DEVICE = "hf0"
FRONT = "front"  # This process's own host: callers, and readers of metrics.


def enter():
    """Runs this program again inside a network of its own, unless it is there. Needs root, or user
    namespaces."""
    if os.environ.get(INSIDE):
        for command in (["mount", "--make-rprivate", "/"], ["mkdir", "-p", "/run/netns"],
                        ["mount", "-t", "tmpfs", "tmpfs", "/run/netns"],
                        ["ip", "link", "set", "lo", "up"]):
            subprocess.run(command, check=True)
        return
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", *user, "--net", "--mount", sys.executable, *sys.orig_argv[1:]])


class Wire:
    """The process of chaos-wire, and the hosts that it joins."""

    def __init__(self, names, seed):
        assert os.environ.get(INSIDE), "hosts are made inside a network of their own: enter() comes first"
        self.hosts = [FRONT, *names]
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        where = [f"{'-' if name == FRONT else name}={self.address(name)}" for name in self.hosts]
        self.popen = subprocess.Popen([BIN / "chaos-wire", str(seed), *where], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      preexec_fn=die_with_parent)
        assert self.popen.stdout.readline().strip() == "ready", "the wire did not start"
        for name in self.hosts:
            self.configure(name)

    def address(self, name):
        return f"{SUBNET}.{self.hosts.index(name) + 1}"

    def configure(self, name):
        ip = ["ip"] if name == FRONT else ["ip", "-n", name]
        for words in (["addr", "add", f"{self.address(name)}/24", "dev", DEVICE],
                      ["link", "set", DEVICE, "mtu", "9000"], ["link", "set", DEVICE, "up"],
                      ["link", "set", "lo", "up"]):
            subprocess.run([*ip, *words], check=True)

    def say(self, line):
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()
        answer = self.popen.stdout.readline().strip()
        assert answer and not answer.startswith("error"), f"{line}: {answer}"
        return answer

    def cut(self, sources, destinations):
        """One way: what the first send does not reach the others."""
        for source in sources:
            for to in destinations:
                if source != to:
                    self.say(f"cut {self.hosts.index(source)} {self.hosts.index(to)}")

    def slow(self, names, delay_ms, jitter_ms, loss):
        """All between these hosts, both ways."""
        for source in names:
            for to in names:
                if source != to:
                    self.say(f"slow {self.hosts.index(source)} {self.hosts.index(to)} "
                             f"{int(delay_ms * 1000)} {int(jitter_ms * 1000)} {int(loss * 1e6)}")

    def heal(self):
        self.say("heal")

    def counts(self):
        return json.loads(self.say("counts"))

    def stop(self):
        self.popen.stdin.close()
        self.popen.wait(30)


class NetworkCluster(Cluster):
    """A cluster whose processes each have a host; the router and callers share the front. `hosts` are for what a test
    adds."""

    def __init__(self, seed, nodes=3, coordinators=2, hosts=(), **more):
        self.wire = Wire(["etcd", *[f"coordinator-{n + 1}" for n in range(coordinators)],
                          *[f"node-{n + 1}" for n in range(nodes)], *hosts], seed)
        super().__init__(nodes=nodes, coordinators=coordinators, **more)

    def host_name(self, name):
        return FRONT if name == "router" else name

    def host_of(self, name):
        return self.wire.address(self.host_name(name))

    def on_host(self, name, command):
        host = self.host_name(name)
        return command if host == FRONT else ["ip", "netns", "exec", host, *command]

    def address(self, name):
        return f"{self.host_of(name)}:{free_port()}"

    def stop(self, keep=False):
        try:
            super().stop(keep)
        finally:
            self.wire.stop()
