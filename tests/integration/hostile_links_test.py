"""
Who is who on links: processes with certificates of the cluster's own CA that say they are others, and
roles that send what they may not. Each is refused for the right reason; replication of all pairs, the
owners of shards and another caller stay as they were.
"""

import contextlib
import json
import socket
import subprocess
import threading
import time
import unittest

from client import Client, uuid7
from cluster import BIN, Cluster, ClusterTest, free_port, wait_for
from hostile import machine, p99_limit_s
from native import (CLIENT, COORDINATOR, FORBIDDEN, MESSAGE, NODE, ROUTER, Closed, Link, methods)

METHODS = methods()
OF_SHARDS = {"MUTATION", "READ", "SHARD", "GATHER", "SHARD_WRITE", "MEMBER_READ", "MEMBER_WRITE", "SHARD_VIEW"}
INTERNAL = {  # (who is asked, who asks): internal methods, told a second time.
    (NODE, NODE): {"CHANNEL_DELIVER", "FORGET_PARTIALS", "PULL_PARTIALS"},
    (NODE, ROUTER): {"RENEW_TOKENS", "ITEM_HISTORY", "GET_PARTIALS", "GET_SHARD_TOP", "LIST_SHARD_EVENTS", "LIST_EVENT_NEWS",
                     "LIST_NODE_ONLINE", "GET_NODE_CLOCK", "BATCH_GET_PRESENCE", "BATCH_SET_PRESENCE", "BATCH_GET_USERS", "SWAP_GOODS", "READ_SETTLED",
                     "DELIVER_TO_PLAYER", "LIST_NODE_INCIDENTS", "GET_NODE_LOAD", "GET_NODE_STATUS", "APPLY_POLICY"},
    (NODE, COORDINATOR): {"GET_NODE_STATUS", "APPLY_POLICY", "EXPIRE_SERVER", "MEMBER_STATE", "TAKE_CUT", "DEFINE", "GET_DEFINED",
                          "AUDIT_SEARCH", "CONTAIN_PLAYER"},
    (COORDINATOR, NODE): {"REPORT_OWNER"},
    (COORDINATOR, ROUTER): {"GET_COORDINATOR_STATUS", "CHANGE_DEFINITION", "FIND_DEFINITIONS"},
}
ATTACK_S = 6


def may_ask(asked, asker):
    names = set(INTERNAL.get((asked, asker), ()))
    if (asked, asker) == (NODE, ROUTER):
        names |= {name for name, (_, internal, route) in METHODS.items() if not internal and route in OF_SHARDS}
    if (asked, asker) == (ROUTER, CLIENT):
        names |= {name for name, (_, internal, _) in METHODS.items() if not internal}
    return names


class Pipe:
    """In front of one node's peer port: every connection through it can be cut."""

    def __init__(self, listen, to):
        self.to, self.pairs = to, []
        self.listener = socket.create_server(("127.0.0.1", listen))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
                there = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                if self.listener.fileno() < 0:
                    return
                here.close()
                continue
            pair = (here, there)
            self.pairs.append(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self.carry, args=(pair, source, sink), daemon=True).start()

    def carry(self, pair, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(ValueError):  # The other direction ended first.
            self.pairs.remove(pair)
        self.end(pair)

    @staticmethod
    def end(pair):
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        for pair in list(self.pairs):
            self.end(pair)


class Caller:
    """Another caller, all the while: how long its grants take."""

    def __init__(self, endpoint):
        self.client, self.player, self.took_s, self.failed = Client(endpoint), f"caller-{uuid7()}", [], []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stop.is_set():
            begun = time.monotonic()
            try:
                self.client.grant(self.player, 1)
            except Exception as error:  # pylint: disable=broad-except
                self.failed.append(repr(error))
            self.took_s.append(time.monotonic() - begun)
            self.stop.wait(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def p99_s(self):
        return sorted(self.took_s)[int(len(self.took_s) * 0.99)]


class HostileLinks(ClusterTest):
    @classmethod
    def plan(cls):
        ports = [(free_port(), free_port()) for _ in range(3)]
        cls.native_port = free_port()
        options = {f"node-{n}": {"peer-listen": f"127.0.0.1:{to}", "peer-advertise": f"127.0.0.1:{listen}"}
                   for n, (listen, to) in enumerate(ports, start=1)}
        cluster = Cluster(shards=8, options=options | {
            "router": {"native-listen": f"127.0.0.1:{cls.native_port}"}})
        cluster.pipes = [Pipe(listen, to) for listen, to in ports]
        cluster.make_certs("client/plain", "client/ops?scopes=admin+read", "client/odd?scopes=king", "unnamed")
        subprocess.run([BIN / "holdfast", "certs", "--dir", cluster.certs, "--cluster", "other", "--names",
                        "node/elsewhere"], check=True, stdout=subprocess.DEVNULL)
        return cluster

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for("all shards to be served", cls.cluster.all_serving)
        cls.ids = {n["name"]: int(n["replicaId"]) for n in cls.client.nodes()}
        cls.port = {"router": cls.native_port}
        for process in (*cls.cluster.nodes, *cls.cluster.coordinators):
            options = dict(word[2:].split("=", 1) for word in process.command[1:])
            cls.port[process.name] = int(options["listen"].rsplit(":", 1)[1])
            if "peer-listen" in options:
                cls.port["peer " + process.name] = int(options["peer-listen"].rsplit(":", 1)[1])

    def link(self, place, cert):
        certs = self.cluster.certs
        pair = (certs / f"{cert}.crt", certs / f"{cert}.key")
        return Link(self.port[place], certs / "ca.crt", pair)

    def process(self, place):
        name = place.removeprefix("peer ")
        return next(p for p in self.cluster.processes() if p.name == name)

    def refusals(self, place, reason):
        return self.process(place).metrics()[f'holdfast_link_refused_total{{reason="{reason}"}}']

    def refused(self, reason, place, cert, **hello):
        before = self.refusals(place, reason)
        with self.link(place, cert) as link:
            link.hello(**hello)
            self.assertFalse(link.admitted(), f"{cert} at {place}: {hello}")
        self.assertEqual(self.refusals(place, reason), before + 1, f"{cert} at {place}: {hello}")

    def owners(self):
        return {s.get("shard", 0): (s["owner"], s["epoch"]) for s in self.client.shards()}

    def doctor(self):
        done = subprocess.run([BIN / "holdfast", "doctor", "-o", "json", "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, check=False, timeout=120)
        return [c for c in json.loads(done.stdout)["checks"] if c["check"] == "replication"]

    def all_pairs_advance(self):
        for player in range(24):
            self.client.grant(f"pairs-{player}", 1)
        self.cluster.wait_converged()
        found = wait_for("doctor to see all pairs advance", lambda: [
            c for c in self.doctor() if c["level"] == "ok"])
        self.assertTrue(found)

    def impostors(self):
        """(reason, place, certificate, what HELLO says)"""
        ids = self.ids
        by_id = sorted(ids, key=ids.get)
        for place in by_id:
            other = next(name for name in by_id if name != place)
            peer, as_other = f"peer {place}", {"role": NODE, "name": other, "replica": ids[other]}
            third = next(name for name in by_id if name not in (place, other))
            yield "role", peer, "plain", as_other
            yield "role", peer, "router", as_other
            yield "role", peer, "coordinator", as_other
            yield "name", peer, third, as_other
            yield "unnamed", peer, "unnamed", as_other
            yield "cluster", peer, "elsewhere", as_other | {"name": "elsewhere"}
            # Its own name, and another's replica.
            yield "replica", peer, third, {"role": NODE, "name": third, "replica": ids[other]}
            yield "replica", peer, third, {"role": NODE, "name": third, "replica": ids[place]}
            yield "replica", peer, third, {"role": NODE, "name": third, "replica": 0}
            yield "unregistered", peer, third, {"role": NODE, "name": third, "replica": 12345}
            # The true one, a second time: which side it is, or that the older link lives.
            second = "second" if ids[other] > ids[place] else "side"
            yield second, peer, other, as_other
            yield second, peer, other, as_other | {"life": 0}
            yield "place", peer, "plain", {"role": CLIENT, "name": "plain"}
            yield "place", peer, "router", {"role": ROUTER, "name": "router"}
            yield "place", place, "plain", {"role": CLIENT, "name": "plain"}
            yield "place", place, other, as_other
        for name in ("plain", "node-1", "router"):
            yield "role", "coordinator", name, {"role": COORDINATOR, "name": "coordinator"}
        yield "place", "coordinator", "plain", {"role": CLIENT, "name": "plain"}
        yield "place", "router", "node-1", {"role": NODE, "name": "node-1", "replica": ids["node-1"]}
        yield "place", "router", "coordinator", {"role": COORDINATOR, "name": "coordinator"}
        yield "scopes", "router", "odd", {"role": CLIENT, "name": "odd"}
        yield "name", "router", "plain", {"role": CLIENT, "name": "ops"}
        yield "cluster_id", "router", "plain", {"role": CLIENT, "name": "plain", "cluster": "x"}
        yield "protocol", "router", "plain", {"role": CLIENT, "name": "plain", "version": 2}

    def test_a_who_says_that_it_is_another_is_refused_and_disturbs_no_one(self):
        self.all_pairs_advance()
        before = self.owners()
        machine()
        with Caller(self.cluster.endpoint) as calm:
            time.sleep(ATTACK_S)
        lines = {p.name: p.log().count("\n") for p in self.cluster.processes()}
        rounds, attempts, begun = 0, 0, time.monotonic()
        with Caller(self.cluster.endpoint) as caller:
            end = begun + ATTACK_S
            while rounds == 0 or time.monotonic() < end:
                for reason, place, cert, hello in self.impostors():
                    self.refused(reason, place, cert, **hello)
                    attempts += 1
                rounds += 1
        limit_s = p99_limit_s(calm.p99_s(), begun)
        print(f"{attempts} impostors refused; another caller's p99 {caller.p99_s():.3f} s, before "
              f"{calm.p99_s():.3f} s, of {len(caller.took_s)}", flush=True)
        self.assertEqual(caller.failed, [])
        self.assertLessEqual(caller.p99_s(), limit_s)
        self.assertEqual(self.owners(), before, "a shard changed hands")
        for name in self.ids:  # A line a minute and cause, not one per connection.
            said = self.process(name).log().count("\n") - lines[name]
            self.assertLess(said, 40, f"{name} said {said} lines of {attempts} impostors")
        self.all_pairs_advance()

    def every_method(self, place, asked, cert, asker, name, replica=0):
        """Each method that the role may not send is forbidden; what it may is not tried here."""
        allowed = may_ask(asked, asker)
        with self.link(place, cert) as link:
            link.hello(asker, name, replica)
            self.assertTrue(link.admitted(), f"{cert} at {place}")
            for method, (number, _, _) in METHODS.items():
                if method in allowed:
                    continue
                status, body = link.ask(number, number)
                self.assertEqual((status, body), (FORBIDDEN, b""), f"{cert} at {place}: {method}")
            link.send(MESSAGE, body=b"\1" * 40)
            self.assertFalse(link.admitted(), f"{cert} at {place} replicates")
        return len(METHODS) - len(allowed)

    def test_b_a_role_may_send_what_the_table_says_alone(self):
        forbidden = 0
        for place in self.ids:
            forbidden += self.every_method(place, NODE, "router", ROUTER, "router")
            forbidden += self.every_method(place, NODE, "coordinator", COORDINATOR, "coordinator")
        forbidden += self.every_method("coordinator", COORDINATOR, "router", ROUTER, "router")
        forbidden += self.every_method("coordinator", COORDINATOR, "node-1", NODE, "node-1", self.ids["node-1"])
        forbidden += self.every_method("router", ROUTER, "plain", CLIENT, "plain")
        print(f"{forbidden} requests forbidden", flush=True)
        self.assertGreater(forbidden, 3 * len(METHODS))
        # What the table admits is answered, so that "forbidden" above means something.
        with self.link("node-1", "router") as link:
            link.hello(ROUTER, "router")
            status, body = link.ask(METHODS["GET_NODE_STATUS"][0])
            self.assertEqual((status, bool(body)), (0, True))
        self.all_pairs_advance()

    def test_c_a_native_client_has_the_scopes_of_its_certificate(self):
        grant = text_field(1, "native") + text_field(2, str(uuid7())) + text_field(4, "system:admin")
        answers = {}
        for cert in ("plain", "ops", "client"):
            with self.link("router", cert) as link:
                link.hello(CLIENT, cert)
                answers[cert] = [link.ask(METHODS[name][0], n, body) for n, (name, body) in enumerate((
                    ("GET_BALANCES", text_field(1, "native")), ("GRANT", grant),
                    ("SET_POLICY", b"")), start=1)]
        for cert in ("plain", "client"):
            self.assertEqual(answers[cert][0][0], 0)
            for status, body in answers[cert][1:]:
                self.assertEqual(status, 1, cert)
                self.assertIn(b"scope", body)
        self.assertEqual(answers["ops"][0][0], 0)
        self.assertNotIn(b"scope", answers["ops"][1][1])
        self.assertNotIn(b"scope", answers["ops"][2][1])

    def test_d_a_cut_link_is_dialled_again_at_once(self):
        def connected():
            return sum(self.process(name).log().count("peer.connected") for name in self.ids)

        pipes = self.cluster.pipes
        wait_for("one connection a pair, of which there are three", lambda: sum(len(pipe.pairs) for pipe in pipes) == 3)
        before, begun = connected(), time.monotonic()
        for pipe in pipes:
            pipe.cut()
        wait_for("both ends of all pairs to be linked again", lambda: connected() >= before + 6, 10, 0.01)
        print(f"linked again after {time.monotonic() - begun:.3f} s", flush=True)
        self.assertLess(time.monotonic() - begun, 3)
        self.all_pairs_advance()

    def test_e_a_restarted_node_is_linked_again_at_once(self):
        node = self.cluster.nodes[0]
        node.kill()
        node.start()
        wait_for("the node to be ready", node.ready)
        self.all_pairs_advance()

    def test_f_without_a_certificate_there_is_no_hello(self):
        for place, port in self.port.items():
            with self.subTest(place=place), self.assertRaises(Closed):
                with Link(port, self.cluster.certs / "ca.crt") as link:
                    link.hello(NODE, "node-1", self.ids["node-1"])
                    if not link.admitted():
                        raise Closed


class OldCertificates(unittest.TestCase):
    def test_unnamed_certificates_serve_while_an_upgrade_allows_them(self):
        accept = {"tls-names": "accept-unnamed"}
        cluster = Cluster(nodes=1, shards=4, options={kind: accept for kind in (
            "node", "router", "coordinator")})
        cluster.make_certs("old")
        node = cluster.nodes[0]
        for process in (node, cluster.router):
            process.command = [word.replace(f"{process.name}.", "old.") if word.startswith("--tls-") else word
                               for word in process.command]
        with cluster:
            wait_for("all shards to be served", cluster.all_serving)
            cluster.client.grant("old", 1)
            self.assertIn("link.own_certificate", node.log())
            node.stop()  # Now those that it dials and that dial it want a name.
            cluster.router.stop()
            cluster.router.command.remove("--tls-names=accept-unnamed")
            node.start()
            cluster.router.start()
            wait_for("the node to be refused", lambda: "reason=unnamed" in cluster.router.log())
            self.assertFalse(cluster.router.ready())


def text_field(number, value):
    return bytes([number << 3 | 2, len(value)]) + value.encode()


if __name__ == "__main__":
    unittest.main(verbosity=2)
