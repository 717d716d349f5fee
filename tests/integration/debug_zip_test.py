"""holdfast debug zip: one archive with all that a support case needs, and with no secrets in it."""

import json
import os
import pathlib
import stat
import subprocess
import unittest
import zipfile

from client import grant_of, uuid7
from cluster import BIN, Cluster, ClusterTest, free_port, wait_for

KEY = "hf_" + "5e" * 32
PARTS = {"about.json", "cluster.json", "processes.json", "load.json", "servers.json", "shards.json",
         "transfers.json", "quarantine.json", "incidents.json", "doctor.txt", "doctor.json", "errors.txt"}


class DebugZipTest(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(shards=4)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for("all shards to be served", cls.cluster.all_serving)
        for number in range(5):
            grant = grant_of(f"zoe-{number}", 7, uuid7())
            for _ in range(2):  # The second is a duplicate, and so an incident.
                cls.cluster.client.call("LedgerService/Grant", grant)

    def take(self, name, *words, code=0, endpoint=None):
        """(path, standard error)"""
        path = self.cluster.dir / name
        done = subprocess.run([BIN / "holdfast", "debug", "zip", path, "--endpoint",
                               endpoint or self.cluster.endpoint, "--key", KEY, *words],
                              capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return path, done.stderr

    def parts_of(self, path):
        """{name: text}; every checksum is right."""
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            return {name: archive.read(name).decode() for name in archive.namelist()}

    def everything(self):
        processes = [self.cluster.router, *self.cluster.coordinators, *self.cluster.nodes]
        return ["--metrics", ",".join(f"http://127.0.0.1:{p.metrics_port}" for p in processes),
                "--log", ",".join(str(p.log_path) for p in processes)]

    def test_passwords_of_urls_are_in_no_name_and_no_error(self):
        path, errors = self.take("urls.zip", "--metrics", "http://ops:hunter2@127.0.0.1:1/metrics,ops:hunter2@127.0.0.1:1")
        parts = self.parts_of(path)
        self.assertIn("metrics/01-http---127.0.0.1-1-metrics.txt", parts["errors.txt"])
        for text in [errors, *parts, *parts.values()]:
            self.assertNotIn("hunter2", text)

    def test_it_has_every_part_and_programs_can_read_it(self):
        def whole():
            taken, errors = self.take("whole.zip", *self.everything())
            return None if errors else taken  # A node may be late on a busy machine.

        path = wait_for("an archive that lacks nothing", whole)
        parts = self.parts_of(path)
        self.assertEqual(parts["errors.txt"], "")
        self.assertEqual({name for name in parts if "/" not in name}, PARTS)
        self.assertEqual(sum(name.startswith("metrics/") for name in parts), 5)
        self.assertEqual(sum(name.startswith("logs/") for name in parts), 5)
        self.assertIn("holdfast_node_shards_owned", "".join(parts.values()))
        self.assertEqual(len(json.loads(parts["shards.json"])), 4)
        self.assertEqual(len(json.loads(parts["processes.json"])["processes"]), 5)
        self.assertEqual({e["playerId"] for e in json.loads(parts["incidents.json"])
                          if e["kind"] == "INCIDENT_KIND_DUPLICATE_ATTEMPT"}, {f"zoe-{n}" for n in range(5)})
        self.assertEqual(sorted(json.loads(parts["about.json"])["players"]),
                         [f"zoe-{n}" for n in range(5)])
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(list(path.parent.glob("whole.zip.*")), [])

    def test_there_are_no_secrets_in_it_and_no_ids_if_asked(self):
        # What signs session tokens: only etcd and routers have it.
        secret = json.loads(subprocess.run(
            ["etcdctl", f"--endpoints={self.cluster.etcd_url}", "get", "--print-value-only",
             "/holdfast/it/tokens/secret"], capture_output=True, check=True, text=True,
            env=os.environ | {"ETCDCTL_API": "3"}).stdout)
        secrets = [value for value in secret.values() if isinstance(value, str) and len(value) >= 32]
        self.assertTrue(secrets, "the secret of session tokens")
        # What should never be in a log, but might be.
        log = self.cluster.dir / "bad.log"
        private = (self.cluster.certs / "node-1.key").read_text()
        log.write_text(f"start\nkey {KEY}\n{private}\n"
                       "t WARN audit.contained shard=1 player=zoe-3 reason=x\nend\n")
        words = self.everything()
        words[-1] += f",{log}"
        for name, redact in (("plain.zip", ()), ("redacted.zip", ("--redact",))):
            path, _ = self.take(name, *words, *redact)
            parts = self.parts_of(path)
            text = "\n".join(parts.values())
            self.assertIn("start", text)
            self.assertIn("end", text)
            self.assertNotIn(KEY, text)
            self.assertNotIn("PRIVATE KEY", text)
            for value in secrets:
                self.assertNotIn(value, text)
            for file in pathlib.Path(self.cluster.certs).glob("*.key"):
                for line in file.read_text().splitlines()[1:-1]:
                    self.assertNotIn(line, text)
            self.assertEqual("zoe-" in text, not redact)
            self.assertEqual(len(json.loads(parts["about.json"])["players"]), 5)

    def test_what_is_missing_is_named_and_the_rest_is_there(self):
        gone = f"http://127.0.0.1:{free_port()}"
        path, errors = self.take("poor.zip", "--deadline-ms", "1500", "--metrics", gone, "--log",
                                 f"/nowhere/x.log,{self.cluster.router.log_path}", endpoint=gone)
        self.assertIn("errors.txt", errors)
        parts = self.parts_of(path)
        for what in ("cluster.json", "metrics/01", "/nowhere/x.log"):
            self.assertIn(what, parts["errors.txt"])
        self.assertEqual(sum(name.startswith("logs/") for name in parts), 1)
        self.assertEqual(json.loads(parts["doctor.json"])["failed"], 1)

    def test_what_cannot_be_written_leaves_nothing(self):
        _path, errors = self.take("no-such-folder/x.zip", code=1)
        self.assertIn("No such file", errors)
        folder = self.cluster.dir / "taken.zip"
        folder.mkdir(exist_ok=True)
        self.take("taken.zip", code=1)
        self.assertEqual(list(self.cluster.dir.glob("taken.zip?*")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
