"""Promises of every verb of the command line, against a router that is a stub: an operation whose outcome is
unknown is named, so that it can be repeated, and output that could not be written is a failure."""

import http.server
import json
import re
import subprocess
import tempfile
import threading
import time
import unittest

from cluster import BIN

# Verbs that send an op_id: their own (--op-id), and those whose words make it.
CHANGES = [
    "item spend p u",
    "ledger reserve p gold=1",
    "ledger reverse p op --reason test",
    "ledger post p op",
    "ledger void p op",
    "mailbox deliver gold=1 p q",
    "quarantine release p --reason test",
    "quarantine repair p --reason test --rebuild",
    "review accept p t u --reason test",
    "review reject p t --reason test",
    "review flag p t --reason test",
    "review flag p --all --reason test",
    "consumer create c",
    "consumer commit c cur --if-version 1",
    "counters add c p t 1",
    "define put currency gold {}",
    "define rollback currency gold 1",
    "define delete currency gold",
    "doc put player:p c k {}",
    "doc delete player:p c k",
    "erase player p",
    "erase undo p",
    "favorites add p t",
    "favorites remove p t",
    "favorites describe t",
    "presence set p c",
    "presence clear p",
    "user upsert p",
    "user claim p n#1",
    "user release p n#1 1",
    "user rename p m#1 n#1 1",
    "user roles p --add judge",
]
OF_WORDS = ["mailbox claim p m", "swap op p gold=1 q -"]
# Verbs that print what a router answers.
READS = [
    "call AdminService/GetServiceInfo {}", "channel check 1 2", "consumer show c", "counters get c t", "counters list c p",
    "counters top c", "define diff currency gold", "define get currency gold", "define history currency gold",
    "define list", "doc get player:p c k", "doc list player:p c", "erase status p", "events consumers",
    "favorites count t", "favorites list p", "favorites metadata t", "favorites status p t", "favorites top",
    "item trace u", "ledger list p", "ledger reservations p", "mailbox list p", "op get player:p op", "player export p", "policy get", "policy set {}",
    "player show p", "presence get p", "user get p", "user find n#1", "quarantine check p", "quarantine list", "quarantine show p", "review list",
    "status", "transfers",
]
# Verbs that print without a router.
LOCAL = ["help", "help status", "--version", "--help", "status --help", "op new", "completion bash", "completion zsh"]


class Router(http.server.ThreadingHTTPServer):
    """Answers `answer`, or with outcome_unknown that nothing is known."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):  # pylint: disable=invalid-name
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.asked.append(body)
            answer = json.dumps(self.server.reply(self.path.rsplit("/", 1)[1], body)).encode()
            self.send_response(self.server.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.asked, self.answer, self.status = [], {}, 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def reply(self, _method, _body):
        return self.answer

    def outcome_unknown(self):
        self.status = 500
        self.answer = {"code": "unknown", "details": [{
            "type": "holdfast.v1.ErrorDetail", "value": "",
            "debug": {"code": "ERROR_CODE_OUTCOME_UNKNOWN", "outcome": "OUTCOME_UNKNOWN", "action": "ACTION_RETRY_SAME"}}]}


class SlowShards(Router):
    """A cluster of many shards, where an order to arm and one to cut take 50 ms each."""

    SHARDS = 256

    def __init__(self):
        super().__init__()
        self.times = {"ArmBackup": {}, "CutBackup": {}}

    def reply(self, method, body):
        if method == "GetCluster":
            return {"clusterId": "c", "shardCount": self.SHARDS, "generation": "1", "policy": {}}
        if method in self.times:
            time.sleep(0.05)
            self.times[method][body.get("shard", 0)] = time.monotonic()
        return {"state": "none"}


class Backups(unittest.TestCase):
    def test_no_shard_waits_long_between_its_order_to_arm_and_its_cut(self):
        router = SlowShards()
        self.addCleanup(router.server_close)
        self.addCleanup(router.shutdown)
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([BIN / "holdfast", "backup", f"{place}/backups", "--endpoint",
                            f"http://127.0.0.1:{router.server_address[1]}"],
                           capture_output=True, timeout=200, check=False)
        armed, cut = router.times["ArmBackup"], router.times["CutBackup"]
        self.assertEqual(len(armed), SlowShards.SHARDS)
        self.assertEqual(len(cut), SlowShards.SHARDS)
        # One after the other they would wait 13 s.
        self.assertLess(max(cut[shard] - armed[shard] for shard in cut), 6)


class Verbs(unittest.TestCase):
    def setUp(self):
        self.router = Router()
        self.addCleanup(self.router.server_close)
        self.addCleanup(self.router.shutdown)

    def run_verb(self, line, *more, stdout=subprocess.PIPE):
        return subprocess.run(
            [BIN / "holdfast", *line.split(), *more],
            env={"HOLDFAST_ENDPOINT": f"http://127.0.0.1:{self.router.server_address[1]}"},
            stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def test_every_verb_that_takes_an_op_id_is_in_the_table(self):
        takers = set()
        for row in self.run_verb("help").stdout.splitlines():
            words = re.match(r"  holdfast ([a-z-]+(?: [a-z-]+)?)\b", row)
            if words and "--op-id" in self.run_verb(words[1], "--help").stdout:
                takers.add(words[1])
        self.assertGreater(len(takers), 20)
        tested = {verb for verb in takers for line in CHANGES if line.startswith(verb + " ")}
        self.assertEqual(takers - {"debug inject"}, tested)

    def test_an_unknown_outcome_names_the_op_id_to_repeat_it_with(self):
        self.router.outcome_unknown()
        for line in CHANGES:
            for form in ("table", "json"):
                with self.subTest(line, form=form):
                    done = self.run_verb(line, "--deadline-ms", "300", "-o", form)
                    self.assertEqual(done.returncode, 3, done)
                    said = re.search(r"^repeat it with --op-id (\S+)$", done.stderr, re.M)
                    self.assertTrue(said, done.stderr)
                    self.assertEqual({said[1]}, {asked["opId"] for asked in self.router.asked})
                    self.router.asked.clear()
                    self.run_verb(line, "--deadline-ms", "300", "--op-id", said[1])
                    self.assertEqual({said[1]}, {asked["opId"] for asked in self.router.asked})
                    self.router.asked.clear()
        for line in OF_WORDS:
            with self.subTest(line):
                done = self.run_verb(line, "--deadline-ms", "300")
                self.assertEqual(done.returncode, 3, done)
                self.assertIn(self.router.asked[-1]["opId"], done.stderr)

    def test_several_operations_of_one_command_are_repeated_under_its_op_id(self):
        self.router.answer = {"edges": 1}
        for _ in range(2):
            self.assertEqual(self.run_verb("review accept p t u v --reason test --op-id x").returncode, 0)
        self.assertEqual([asked["opId"] for asked in self.router.asked], ["x", "key:x:1", "key:x:2"] * 2)

    def test_a_delivery_that_failed_for_some_says_how_to_repeat_it_for_them(self):
        for outcome, code in (("OUTCOME_NONE", 1), ("OUTCOME_UNKNOWN", 3)):
            self.router.answer = {"failed": 1, "results": [
                {"response": {"mailId": "m"}}, {"error": {"message": "later", "outcome": outcome}}]}
            for form in ("table", "json"):
                with self.subTest(outcome, form=form):
                    done = self.run_verb("mailbox deliver gold=1 p q", "-o", form)
                    self.assertEqual(done.returncode, code, done)
                    self.assertEqual(done.stderr.count(f"repeat it with --op-id {self.router.asked[-1]['opId']}\n"), 1)

    def test_a_delivery_that_is_wrong_is_not_to_be_repeated(self):
        for action, times in (("ACTION_RETRY_SAME", 1), ("ACTION_FIX", 0), ("ACTION_RAISE_ATTEMPT", 0)):
            self.router.answer = {"failed": 1, "results": [
                {"response": {"mailId": "m"}},
                {"error": {"message": "no", "outcome": "OUTCOME_NONE", "action": action}}]}
            done = self.run_verb("mailbox deliver gold=1 p q")
            self.assertEqual((done.returncode, done.stderr.count("repeat it with --op-id")), (1, times), action)

    def test_output_that_cannot_be_written_is_a_failure(self):
        printed = 0
        for line in LOCAL + READS + CHANGES + OF_WORDS:
            for form in ("table", "json"):
                with self.subTest(line, form=form):
                    more = [] if line in LOCAL or line.startswith(("player export", "quarantine release", "call")) \
                        else ["-o", form]
                    good = self.run_verb(line, *more)
                    if good.returncode != 0 or good.stdout == "":
                        continue
                    printed += 1
                    with open("/dev/full", "w", encoding="utf-8") as full:
                        lost = self.run_verb(line, *more, stdout=full)
                    self.assertEqual(lost.returncode, 1, lost)
                    self.assertIn("standard output", lost.stderr)
        self.assertGreater(printed, 80)


if __name__ == "__main__":
    unittest.main()
