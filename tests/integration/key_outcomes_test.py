"""Keys and secrets when etcd's answers are lost, and when a chart registers keys again at each upgrade."""

import http.server
import json
import os
import re
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from client import Client, Heartbeat, RpcError, uuid7
from cluster import BIN, ROOT, Cluster, ClusterTest, wait_for

EDIT = {"name": "progress", "replace": '{"xp":1}'}


class Proxy(http.server.ThreadingHTTPServer):
    """To etcd. Passes each request on; answers to transactions from the `lost`-th on are lost, `lose` of them."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = urllib.request.Request(self.server.target + self.path, data=body, headers=dict(self.headers))
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    status, text = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    status, text = error.code, error.read()
            if self.path.endswith("/txn") and self.server.is_lost():
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    def __init__(self, target, lost, lose):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.target, self.lost, self.lose, self.seen = target, lost, lose, 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def is_lost(self):
        with self.lock:
            self.seen += 1
            return self.lost <= self.seen < self.lost + self.lose

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class KeyOutcomes(ClusterTest):
    @classmethod
    def plan(cls):
        return Cluster(nodes=1, shards=4, options={"router": {"access": "keys"}})

    def environment(self, etcd=None):
        return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")} | {
            "HOLDFAST_ETCD": etcd or self.cluster.etcd_url, "HOLDFAST_CLUSTER": "it"}

    def holdfast(self, *words, etcd=None, code=0):
        done = subprocess.run([BIN / "holdfast", *words], env=self.environment(etcd), capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def proxy(self, lost, lose):
        proxy = Proxy(self.cluster.etcd_url, lost, lose)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        return proxy.url

    def secret(self):
        done = self.holdfast("key", "issue", f"key-{uuid7()}", "--scopes", "game, payments, admin", "-o", "json")
        key = json.loads(done.stdout)["key"]
        wait_for("the key to be known", lambda: self.is_taken(key))
        return key

    def is_taken(self, key):
        try:
            Client(self.cluster.endpoint, key).call("LedgerService/GetBalances", {"playerId": "stranger"})
        except RpcError as error:
            return error.code != "UNAUTHENTICATED"
        return True

    def records(self):
        return {row["name"]: row for row in json.loads(self.holdfast("key", "list", "-o", "json").stdout)}

    def test_a_rotation_whose_answer_is_lost_is_not_made_twice(self):
        client = Client(self.cluster.endpoint, self.secret())
        server = client.register("s")
        with Heartbeat(client, server):
            token = client.start("ada", server)["token"]
            # Next, and then the rotation itself, of which no answer comes before the deadline.
            lost = self.holdfast("key", "rotate-tokens", "--deadline-ms", "3000", etcd=self.proxy(2, 1000), code=3)
            again = re.search(r"repeat it with (--unless-rotated) (\d+)", lost.stderr)
            self.assertTrue(again, lost.stderr)
            self.holdfast("key", "rotate-tokens", *again.groups())
            client.update("ada", token, EDIT)
            # An answer that is lost once is found by the repetition.
            token = client.start("eve", server)["token"]
            self.holdfast("key", "rotate-tokens", etcd=self.proxy(2, 1))
            client.update("eve", token, EDIT)

    def test_an_unknown_issue_or_revocation_is_not_called_failed(self):
        issue = self.holdfast("key", "issue", "lost", "--scopes", "read", "--deadline-ms", "1500",
                              etcd=self.proxy(1, 1000), code=3)
        self.assertIn("may be known to the cluster", issue.stderr)
        self.assertIn("lost", self.records())
        self.holdfast("key", "revoke", "lost", "--deadline-ms", "1500", etcd=self.proxy(1, 1000), code=3)
        self.assertNotIn("lost", self.records())

    def register(self, name, scopes, path, authority=""):
        """As the chart's Job does."""
        template = (ROOT / "charts/holdfast/templates/keys.yaml").read_text()
        script = re.search(r"register\(\) \{.*?\n +\}", template, re.S)[0].replace("/usr/local/bin", str(BIN))
        return subprocess.run(["sh", "-euc", f"{script}\nregister '{name}' '{scopes}' '{path}' {authority}"],
                              env=self.environment(), capture_output=True, text=True, timeout=60, check=True).stderr

    def test_an_upgrade_keeps_limits_and_revocations(self):
        path = self.cluster.dir / "shop-key"
        key = f"hf_{uuid7().replace('-', '') * 2}"
        path.write_text(key + "\n")
        self.register("shop", "payments", path)
        wait_for("the key to be known", lambda: self.is_taken(key))
        self.holdfast("key", "issue", "shop", "--scopes", "payments", "--grants", "gold:10", "--rate", "77",
                      "--from", str(path))
        self.register("shop", "payments,read", path, "system:payments")
        shop = self.records()["shop"]
        self.assertEqual((shop["grants"], shop["rate"], shop["authority"]), ("gold:10", 77, "system:payments"))
        self.assertEqual(set(shop["scopes"].replace(",", " ").split()), {"payments", "read"})

        self.holdfast("key", "revoke", "shop")
        self.assertIn("was revoked and stays so", self.register("shop", "payments", path))
        self.assertNotIn("shop", self.records())
        wait_for("the key to be refused", lambda: not self.is_taken(key))
        # One who means it issues it without --register.
        self.holdfast("key", "issue", "shop", "--scopes", "payments", "--from", str(path))
        self.register("shop", "payments", path)
        self.assertIn("shop", self.records())


if __name__ == "__main__":
    unittest.main()
