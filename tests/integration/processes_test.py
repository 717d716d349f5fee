"""Each process by itself: who may connect, whose data it takes, what it says of its options."""

import json
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import unittest

from cluster import (BIN, PATIENCE_S, ROOT, Cluster, ClusterTest, Process, free_port,
                     wait_for)

PROGRAMS = {"node": "node/io/process/node_config.h", "router": "router/io/router_config.h",
            "coordinator": "coordinator/io/coordinator_config.h"}


def option(process, name):
    return next(word.split("=", 1)[1] for word in process.command if
                word.startswith(f"--{name}="))


def changed(process, label, **options):
    """A process like this one, with other options; its output goes to LABEL.log."""
    command = []
    port = options.get("metrics_port", 0)
    options = {key.replace("_", "-"): str(value) for key, value in options.items()}
    for word in process.command:
        key = word[2:].split("=", 1)[0]
        command.append(f"--{key}={options.pop(key)}" if key in options else word)
    command += [f"--{key}={value}" for key, value in options.items()]
    return Process(label, command, process.log_path.parent, port)


class Certificates(ClusterTest):
    def handshake(self, port, certs=None, ca=None, patience_s=PATIENCE_S):
        """Whether the server lets us in: it says so by not closing for that long."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(ca or self.cluster.certs / "ca.crt")
        if certs:
            context.load_cert_chain(certs / "client.crt", certs / "client.key")
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            with context.wrap_socket(plain) as secure:
                secure.settimeout(patience_s)
                try:
                    return secure.recv(1) != b""
                except TimeoutError:
                    return True

    def ports(self):
        node = self.cluster.nodes[0]
        coordinator = self.cluster.coordinators[0]
        return {"node": option(node, "listen"), "peer": option(node, "peer-listen"),
                "coordinator": option(coordinator, "listen")}

    def test_without_a_certificate_of_the_clusters_ca_nobody_gets_in(self):
        other = self.cluster.dir / "other-certs"
        subprocess.run([BIN / "holdfast", "certs", "--dir", other, "--cluster", "other"],
                       check=True, stdout=subprocess.DEVNULL)
        for kind, address in self.ports().items():
            port = int(address.rsplit(":", 1)[1])
            with self.subTest(port=kind):
                self.assertTrue(self.handshake(port, self.cluster.certs, patience_s=0.7),
                                "not even its own")
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    self.assertFalse(self.handshake(port))
                    raise ConnectionResetError("closed in silence")
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    self.assertFalse(self.handshake(port, other))
                    raise ConnectionResetError("closed in silence")
                # And the client would notice a server of another cluster.
                with self.assertRaises(ssl.SSLCertVerificationError):
                    self.handshake(port, self.cluster.certs, other / "ca.crt")
        self.client.grant("still", 1)

    def test_a_plain_or_babbling_connection_disturbs_nobody(self):
        for address in self.ports().values():
            for bytes_sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x03\xff\xff" * 50):
                with socket.create_connection(("127.0.0.1",
                                               int(address.rsplit(":", 1)[1])), 10) as plain:
                    plain.sendall(bytes_sent)
        self.client.grant("undisturbed", 1)
        self.assertTrue(all(p.running() for p in self.cluster.processes()))

    def test_a_process_of_another_ca_does_not_join(self):
        other = self.cluster.dir / "stranger-certs"
        subprocess.run([BIN / "holdfast", "certs", "--dir", other, "--cluster", "it"],
                       check=True, stdout=subprocess.DEVNULL)
        stranger = changed(self.cluster.router, "stranger", tls_ca=other / "ca.crt",
                           tls_cert=other / "router.crt", tls_key=other / "router.key",
                           listen=f"127.0.0.1:{free_port()}", metrics_port=free_port()).start()
        self.addCleanup(stranger.kill)
        wait_for("refused links", lambda: "link.failed" in stranger.log())
        self.assertFalse(stranger.ready())

    def test_a_certificate_that_does_not_exist_is_named(self):
        for name in ("tls-ca", "tls-cert", "tls-key"):
            with self.subTest(option=name):
                process = changed(self.cluster.nodes[0], f"no-{name}", **{
                    name.replace("-", "_"): "/nowhere/file.pem", "metrics_port": free_port()})
                self.assertNotEqual(process.start().wait_exit(), 0)
                self.assertIn("/nowhere/file.pem", process.log())


class DataDirectories(ClusterTest):
    def test_a_second_process_on_the_same_directory_is_refused(self):
        node = self.cluster.nodes[0]
        second = changed(node, "second", metrics_port=free_port(), name="second",
                         listen=f"127.0.0.1:{free_port()}",
                         peer_listen=f"127.0.0.1:{free_port()}").start()
        self.assertEqual(second.wait_exit(), 1)
        self.assertIn(str(node.pid), second.log())
        self.assertIn(option(node, "data-dir"), second.log())
        self.client.grant("undisturbed", 1)
        self.cluster.wait_converged()

    def test_a_directory_is_waited_for_while_its_last_process_dies(self):
        node = self.cluster.nodes[1]
        first = node.popen
        node.signal(signal.SIGSTOP)  # It is not served from, and holds the directory.
        second = changed(node, "heir", metrics_port=free_port(),
                         listen=f"127.0.0.1:{free_port()}",
                         peer_listen=f"127.0.0.1:{free_port()}").start()
        self.addCleanup(second.kill)
        wait_for("a word that it waits", lambda: str(first.pid) in second.log())
        self.assertIn(option(node, "data-dir"), second.log())
        status, reason = second.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn(str(first.pid), reason)
        self.assertTrue(second.running())
        first.kill()
        first.wait()
        wait_for("the heir to be ready", second.ready)
        waits = [line for line in second.log().splitlines() if str(first.pid) in line]
        self.assertEqual(len(waits), 1, "it says more than once that it waits")
        self.assertEqual(second.stop(), 0)
        node.start()
        wait_for("the node to be ready", node.ready)

    def test_a_node_that_waits_for_its_directory_can_be_stopped(self):
        node = self.cluster.nodes[1]
        second = changed(node, "impatient", metrics_port=free_port(),
                         listen=f"127.0.0.1:{free_port()}",
                         peer_listen=f"127.0.0.1:{free_port()}").start()
        wait_for("a word that it waits", lambda: str(node.pid) in second.log())
        self.assertEqual(second.stop(5), 0)
        self.assertTrue(node.running())

    def test_a_killed_node_is_started_again_at_once(self):
        """On the same ports, before the killed one is gone."""
        self.client.grant("hasty", 3)
        node = self.cluster.nodes[2]
        for _ in range(5):
            killed = node.popen
            killed.kill()
            node.popen = None
            node.start()
            killed.wait()
            wait_for("the node to be ready", lambda: node.ready() or not node.running())
            self.assertTrue(node.running(), node.log()[-2000:])
        self.assertEqual(self.client.balance("hasty"), 3)
        # As if it took long to die: it still listens on the ports, too.
        killed = node.popen
        killed.send_signal(signal.SIGSTOP)
        node.popen = None
        node.start()
        wait_for("a word that it waits", lambda: f"in use by process {killed.pid}" in node.log())
        killed.kill()
        killed.wait()
        wait_for("the node to be ready", lambda: node.ready() or not node.running())
        self.assertTrue(node.running(), node.log()[-2000:])

    def test_a_port_that_its_earlier_life_still_has_is_waited_for(self):
        """The kernel gives a killed process's lock back before the last of its ports."""
        node = self.cluster.nodes[1]
        node.kill()
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", node.metrics_port))
            holder.listen()
            node.start()
            wait_for("a word that it waits", lambda: "node.waits_for_port" in node.log())
        wait_for("the node to be ready", lambda: node.ready() or not node.running())
        self.assertTrue(node.running(), node.log()[-2000:])

    def test_a_port_of_another_process_is_told(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            node = changed(self.cluster.nodes[0], "shut-out", metrics_port=holder.getsockname()[1],
                           data_dir=self.cluster.dir / "shut-out",
                           listen=f"127.0.0.1:{free_port()}",
                           peer_listen=f"127.0.0.1:{free_port()}").start()
            self.assertEqual(node.wait_exit(), 1)
        self.assertEqual(node.log().count("node.waits_for_port"), 1)
        self.assertIn("another process listens there", node.log())

    def test_a_directory_of_another_cluster_is_refused(self):
        ours = self.client.call("AdminService/GetCluster", {})["clusterId"]
        with Cluster(nodes=1) as other:
            theirs = other.client.call("AdminService/GetCluster", {})["clusterId"]
            other.nodes[0].kill()
            directory = option(other.nodes[0], "data-dir")
            before = {path.name for path in pathlib.Path(directory).rglob("*")}
            lost = changed(self.cluster.nodes[0], "lost", metrics_port=free_port(), name="lost",
                           data_dir=directory, listen=f"127.0.0.1:{free_port()}",
                           peer_listen=f"127.0.0.1:{free_port()}").start()
            self.assertEqual(lost.wait_exit(), 1)
            self.assertIn(ours, lost.log())
            self.assertIn(theirs, lost.log())
            self.assertEqual({path.name for path in pathlib.Path(directory).rglob("*")}, before)

    def test_a_directory_that_cannot_be_made_is_named(self):
        node = changed(self.cluster.nodes[0], "homeless", metrics_port=free_port(),
                       data_dir="/proc/nowhere/data").start()
        self.assertEqual(node.wait_exit(), 1)
        self.assertIn("/proc/nowhere", node.log())

    def test_a_wiped_node_is_a_new_replica_and_loses_nothing(self):
        self.client.grant("before the wipe", 5)
        node = self.cluster.nodes[2]
        old = next(n["replicaId"] for n in self.client.nodes() if n.get("name") == node.name)
        node.kill()
        subprocess.run(["rm", "-r", option(node, "data-dir")], check=True)
        node.start()
        wait_for("the node to be ready", node.ready)
        wait_for("every shard to be served", self.cluster.all_serving)
        wait_for("the router to know the new replica", lambda: [
            n["replicaId"] for n in self.client.nodes()
            if n.get("name") == node.name and n.get("live") and n["replicaId"] != old])
        self.assertEqual(self.client.balance("before the wipe"), 5)


class EtcdAtStart(unittest.TestCase):
    def test_without_etcd_all_wait_and_say_so_and_start_when_it_comes(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        processes = [cluster.router, *cluster.coordinators, *cluster.nodes]
        for process in processes:
            process.start()
        for process in processes:
            with self.subTest(process=process.name):
                wait_for("a word about etcd", lambda p=process: re.search(
                    r"(WARN|ERROR).*etcd", p.log()))
                wait_for("liveness", lambda p=process: p.get("/healthz")[0] == 200)
                status, reason = process.get("/readyz")
                self.assertEqual(status, 503)
                self.assertTrue(reason.strip())
                self.assertTrue(process.running())
                self.assertLess(len(process.log().splitlines()), 200, "it floods its log")
        cluster.etcd.start()
        cluster.wait_ready()
        cluster.client.grant("player", 1)


class Options(unittest.TestCase):
    def run_program(self, kind, *arguments, env=None):
        return subprocess.run([BIN / f"holdfast-{kind}", *arguments], capture_output=True,
                              text=True, timeout=30, check=False, env=env)

    def test_help_documents_every_option(self):
        for kind, header in PROGRAMS.items():
            table = (ROOT / header).read_text()
            # Rows of their own lines: what test builds alone have stands behind a #define.
            rows = re.findall(r'^\s+X\((\w+),\s*\w+,.*"((?:[^"\\]|\\.)*)"\)', table, re.M)
            self.assertGreater(len(rows), 15, header)
            text = self.run_program(kind, "--help").stdout
            for name, doc in rows:
                with self.subTest(program=kind, option=name):
                    self.assertIn(f"--{name.replace('_', '-')} ", text)
                    self.assertIn(doc, text)
                    self.assertIn(f"HOLDFAST_{name.upper()}", text)
            self.assertEqual(self.run_program(kind, "--help").returncode, 0)
            self.assertIn("holdfast-" + kind, self.run_program(kind, "--version").stdout)

    def test_the_command_line_tool_tells_of_each_verb_by_itself(self):
        def run(*words):
            return subprocess.run([BIN / "holdfast", *words], capture_output=True, text=True,
                                  check=True, timeout=30).stdout
        manual = (ROOT / "docs/holdfast.1").read_text().split("The options are:")[1]
        flags = set(re.findall(r"Fl -([a-z-]+)", "\n".join(re.findall(r"^\.It Fl .*", manual, re.M))))
        verbs = re.findall(r"^  holdfast ([a-z]+(?: [a-z-]+)?)(?= |$)", run("--help"), re.M)
        self.assertGreater(len(verbs), 40)
        told = {"version"}
        for verb in verbs:
            with self.subTest(verb=verb):
                text = run(*verb.split(), "--help")
                self.assertIn(f"usage: holdfast {verb}", text)
                self.assertEqual(text, run("help", *verb.split()))
                told |= set(re.findall(r"^  --([a-z-]+) ", text, re.M))
        self.assertEqual(told, flags)
        self.assertNotIn("holdfast status", run("ledger", "list", "--help"))
        self.assertIn("holdfast ledger void", run("ledger", "--help"))

    def test_bad_values_name_option_limit_and_value(self):
        for kind, argument, words in (
                ("node", "--tick=1", ("tick", "5ms", '"1"')),
                ("node", "--log-segment-size=1MiB", ("log-segment-size", "1MiB", "4")),
                ("node", "--metrics-port=65536", ("metrics-port", "65535", "65536")),
                ("node", "--calls-max=many", ("calls-max", "many")),
                ("node", "--insecure=maybe", ("insecure", "maybe")),
                ("node", f"--name={'x' * 64}", ("name", "63")),
                ("node", "--nmae=s3cret", ("nmae", "did you mean --name?")),
                ("node", "stray", ("stray",)),
                ("node", "--log-level=loud", ("log", "debug, info, warn or error")),
                ("router", "--in-flight-max=0", ("in-flight-max", "1", '"0"')),
                ("router", "--deadline-max=2h", ("deadline-max", "2h", "1m", )),
                ("router", "--workers=2", ("workers",)),
                ("node", "--listen=nonsense", ("--listen", "nonsense", "address")),
                ("node", "--peer-listen=10.0.0.1:65536", ("--peer-listen", "65536")),
                ("node", "--advertise=::1:7401", ("--advertise", "::1:7401", "[::1]")),
                ("coordinator", "--listen=:7301", ("--listen", ":7301")),
                ("router", "--listen=nonsense", ("--listen", "nonsense", "address")),
                ("router", "--native-listen=a:b", ("--native-listen", "a:b")),
                ("router", "--etcd=", ("etcd",)),
                ("coordinator", "--replication-factor=8", ("replication-factor", "7", '"8"')),
                ("coordinator", "--lease-ttl=1ms", ("lease-ttl", "1ms", "1s"))):
            with self.subTest(program=kind, argument=argument[:40]):
                result = self.run_program(kind, argument)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertLess(len(result.stderr.splitlines()), 4, result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr)

    def test_what_only_together_makes_no_sense_is_refused_too(self):
        for kind, arguments, words in (
                ("coordinator", ["--shard-count=65"], ("shard", "65")),
                ("coordinator", ["--currencies=Gold"], ("currenc", "Gold")),
                ("coordinator", ["--currencies=gold:9:1"], ("currenc", "gold")),
                ("node", ["--cluster=Big Cluster"], ("cluster",)),
                ("node", ["--insecure=false"], ("tls_ca",)),
                ("node", ["--node-transport=udp"], ("node_transport",)),
                ("node", ["--cache-size=1KiB"], ("cache_size", "4MiB")),
                ("router", ["--node-transport=udp"], ("node_transport",))):
            with self.subTest(program=kind, arguments=arguments):
                if "--insecure" not in arguments and "--insecure=false" not in arguments:
                    arguments = [*arguments, "--insecure"]
                result = self.run_program(kind, *arguments,
                                          f"--etcd=http://127.0.0.1:{free_port()}")
                self.assertIn(result.returncode, (1, 2), result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr)

    def test_unknown_yaml_keys_and_bad_yaml_name_file_and_line(self):
        path = pathlib.Path(self.id().replace(".", "-") + ".yaml")
        path = pathlib.Path("/tmp") / f"holdfast-{free_port()}-{path}"
        self.addCleanup(path.unlink)
        for text, words in (("tick: 20ms\ntcik: 5ms\n", ("tcik", "line 2")),
                            ("tick: 1\n", ("tick", "line 1", "5ms")),
                            ("tick: [1\n", ("line",)), ("- tick\n", ("line",)),
                            ("tick: 20ms\ntick: 30ms\n", ("tick", "line 2"))):
            with self.subTest(text=text):
                path.write_text(text)
                result = self.run_program("node", "--config", path)
                self.assertEqual(result.returncode, 2, result.stderr)
                for word in (path.name, *words):
                    self.assertIn(word, result.stderr)
        result = self.run_program("node", "--config", "/nowhere.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nowhere.yaml", result.stderr)

    def test_bad_values_in_the_environment_are_named(self):
        result = self.run_program("node", env={"HOLDFAST_TICK": "1"})
        self.assertEqual(result.returncode, 2)
        self.assertIn("HOLDFAST_TICK", result.stderr)

    def test_the_command_line_tool(self):
        def run(*arguments):
            return subprocess.run([BIN / "holdfast", *arguments], capture_output=True, text=True,
                                  timeout=30, check=False)
        for arguments, word in ((["dance"], "dance"), (["stauts"], "did you mean 'status'?"),
                                (["ledger", "lsit"], "did you mean 'ledger list'?"),
                                (["status", "--endpiont=x"], "did you mean --endpoint?"),
                                (["help", "stauts"], "did you mean 'status'?"),
                                (["stauts", "--help"], "did you mean 'status'?"),
                                (["node", "drain", "x", "--dry-run"], "does not take --dry-run"),
                                (["status", "-o", "tabel"], "did you mean table?"),
                                (["key", "issue", "x", "--scopes", "gmae"], "did you mean game?"),
                                (["ledger", "list"], "usage: holdfast ledger list PLAYER"),
                                (["dev", "--nodes", "10"], "nodes"),
                                (["dev", "--nodes", "x"], "nodes"), (["--output", "xml"], "xml"),
                                (["status", "--nope", "1"], "nope"),
                                (["status", "--deadline-ms"], "deadline-ms")):
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(word, result.stderr)
        result = run("status", "--endpoint", f"http://127.0.0.1:{free_port()}")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertTrue(result.stderr)


class Tool(ClusterTest):
    def run_tool(self, *arguments):
        return subprocess.run([BIN / "holdfast", *arguments, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=30, check=False)

    def test_every_verb_against_a_cluster(self):
        self.client.grant("42", 500, "receipt:1")
        for arguments, words in (
                (["status"], ("node-1", "node-3")), (["player", "show", "42"], ("gold", "500")),
                (["ledger", "list", "42"], ("receipt:1",)),
                (["op", "get", "player:42", "receipt:1"],
                 ("COMMITTED", "LedgerService/Grant", "ledgerSeq", "balances", "gold", "500")),
                (["op", "resolve", "player:42", "receipt:2", "--seal"], ("ABORTED",)),
                (["call", "LedgerService/GetBalances", '{"playerId":"42"}'], ("gold",))):
            for output in ("table", "json"):
                with self.subTest(arguments=arguments, output=output):
                    result = self.run_tool(*arguments, "-o", output)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    for word in words:
                        self.assertIn(word.lower(), result.stdout.lower())
        result = self.run_tool("call", "LedgerService/Grnat", '{"playerId":"42"}')
        self.assertEqual(result.returncode, 1)
        self.assertIn("did you mean LedgerService/Grant?", result.stderr)
        result = self.run_tool("call", "LedgerService/Grant", '{"playerId":"42"}')
        self.assertEqual(result.returncode, 1)
        self.assertIn("op_id", result.stderr)

    def status(self, *arguments):
        result = self.run_tool("status", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_status_names_nodes_and_shows_shards_when_asked_or_wrong(self):
        shards = len(self.client.shards())
        self.client.grant("42", 1)
        self.cluster.wait_converged()
        well = self.status()
        for words in (r"nodes +3 of 3 up", rf"shards +{shards} of {shards} served", r"; 0 behind;",
                      r"coordinator +coordinator\n", r"version +\d+\.\d+\.\d+\n", r"\nnode-2 +up "):
            self.assertRegex(well, words)
        self.assertNotIn("SHARD", well)
        self.assertNotRegex(well, r"\d{14}")
        every = self.status("--shards")
        self.assertEqual(len(re.findall(r"(?m)^\d+ +node-\d +yes +stable ", every)), shards)
        self.assertNotRegex(every, r"\d{14}")
        machine = json.loads(self.status("--json"))
        self.assertEqual(set(machine), set(json.loads(self.status("-o", "json"))))
        self.assertEqual(machine["summary"]["nodesUp"], 3)
        self.assertEqual(machine["summary"]["shardsServed"], shards)
        self.assertEqual(len(machine["shards"]), shards)
        self.assertTrue(machine["summary"]["coordinatorElected"])
        victim = self.cluster.nodes[2]
        victim.kill()
        wait_for("every shard to be served", self.cluster.all_serving)
        wait_for("status to tell", lambda: "2 of 3 up" in self.status())
        wrong = self.status()
        self.assertIn(f"{shards} shards to look at", wrong)
        self.assertIn("unreachable", wrong)
        victim.start()
        wait_for("status to be content", lambda: "to look at" not in self.status() and
                 "3 of 3 up" in self.status())


if __name__ == "__main__":
    unittest.main(verbosity=2)
