"""
The game's kind of run: several game servers in Python over grpcio, a payment provider, players who join,
play, trade, pay, send mail and leave, servers that crash and steal, on a cluster whose processes are killed
and frozen all the while. Each call is journalled by its caller. In the end every unknown outcome is settled,
and a judge of our own looks at the journals alone.

HOLDFAST_GAME_SECONDS: how long they play, 25 by default. HOLDFAST_GAME_SEED: who is killed when.
HOLDFAST_GAME_JOURNALS: a directory for the journals, which is kept.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from cluster import BIN, ROOT, Cluster, ClusterTest, Process, wait_for

GAME = pathlib.Path(__file__).resolve().parent / "game"
sys.path.insert(0, str(GAME))

import check  # noqa: E402  (of the folder beside this file)
import doctor  # noqa: E402

SECONDS = float(os.environ.get("HOLDFAST_GAME_SECONDS", "25"))
SEED = int(os.environ.get("HOLDFAST_GAME_SEED", time.time()))
SERVERS, HANDS, PLAYERS = 3, 4, 18
# Each lie is a judgement of all that was written: a long run is told some of them.
LIES_ALL_S, LIES_LONG = 60, 4
NODE = {"workers": 2, "checkpoint-interval": "1s", "cache-size": "16MiB", "write-buffer-size": "1MiB"}


class Game:
    """The processes of the game: servers, which crash, and the provider's webhook."""

    def __init__(self, cluster, routers, journals):
        self.cluster, self.journals = cluster, journals
        self.python = subprocess.run([ROOT / "tools/python_env"], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout.strip()
        self.stubs = cluster.dir / "stubs"
        self.stubs.mkdir()
        protos = [path for folder in ("google/api", "holdfast/v1")
                  for path in sorted((ROOT / "idl" / folder).glob("*.proto"))]
        subprocess.run([self.python, "-m", "grpc_tools.protoc", "-I", ROOT / "idl", "-I", GAME,
                        f"--python_out={self.stubs}", *protos, GAME / "status.proto"], check=True)
        self.plan = {"directory": str(journals), "routers": routers,
                     "players": [f"player-{n}" for n in range(PLAYERS)]}
        self.lives, self.crashes = 0, 0

    def process(self, program, name, **more):
        plan = json.dumps(self.plan | {"name": name, "seed": SEED * 1000 + self.lives} | more)
        process = Process(name, [self.python, GAME / f"{program}.py", plan], self.cluster.dir)
        process.environment = os.environ | {"PYTHONPATH": str(self.stubs), "GRPC_VERBOSITY": "NONE"}
        return process

    def server(self):
        self.lives += 1
        return self.process("server", f"server-{self.lives}", hands=HANDS).start()

    def start(self):
        self.servers = [self.server() for _ in range(SERVERS)]
        self.webhook = self.process("webhook", "webhook", workers=2).start()

    def crash(self, dice):
        """A game server ends without goodbye; another one starts."""
        place = dice.randrange(SERVERS)
        self.servers[place].kill()
        self.servers[place] = self.server()
        self.crashes += 1

    def check_alive(self):
        for process in [*self.servers, self.webhook]:
            assert process.running(), f"{process.name} ended: {process.log()[-2000:]}"
            assert "Traceback" not in process.log(), f"{process.name}: {process.log()[-2000:]}"

    def has_begun(self, server):
        """It hears SIGTERM from then on: its first call stands in its journal."""
        journal = self.journals / f"{server.name}.jsonl"
        return journal.exists() and journal.stat().st_size > 0

    def end(self):
        self.check_alive()
        for server in self.servers:
            wait_for(f"{server.name} to have begun", lambda server=server: self.has_begun(server))
        # Players of game servers that vanished all at once are held for up to two minutes (hold_ms_max).
        for process in [*self.servers, self.webhook]:
            assert process.stop(240) == 0, f"{process.name}: {process.log()[-2000:]}"

    def settle(self):
        done = self.process("settle", "settle").start()
        assert done.wait_exit(300) == 0, done.log()[-3000:]


class Trouble:
    """What breaks meanwhile: one thing at a time, and all of it comes back."""

    def __init__(self, cluster, routers, game, dice):
        self.cluster, self.routers, self.game, self.dice = cluster, routers, game, dice
        self.counts = {}
        self.kinds = [(6, self.node_killed), (2, self.nodes_killed), (4, self.node_frozen), (3, self.router_killed),
                      (3, self.coordinator_killed), (2, self.coordinator_frozen), (3, self.etcd_restarted),
                      (4, self.server_crashed), (2, self.server_frozen)]

    def round(self):
        for process in [*self.cluster.processes(), *self.routers]:
            assert process.running(), f"{process.name} ended by itself: {process.popen.poll()}"
        what = self.dice.choices([kind for _, kind in self.kinds], [weight for weight, _ in self.kinds])[0]
        self.counts[what.__name__] = self.counts.get(what.__name__, 0) + 1
        what()
        for process in [*self.cluster.processes(), *self.routers]:
            if not process.running():
                process.start()
        time.sleep(self.dice.random() * 1.5)

    def node_killed(self, count=1):
        for node in self.dice.sample(self.cluster.nodes, count):
            node.kill()
        time.sleep(self.dice.random() * 2)

    def nodes_killed(self):
        self.node_killed(self.dice.choice((2, 3)))

    def freeze(self, process, most_s):
        process.signal(signal.SIGSTOP)
        time.sleep(self.dice.random() * most_s)
        process.signal(signal.SIGCONT)

    def node_frozen(self):
        self.freeze(self.dice.choice(self.cluster.nodes), 4)

    def router_killed(self):
        self.dice.choice(self.routers).kill()

    def coordinator_killed(self):
        self.dice.choice(self.cluster.coordinators).kill()
        time.sleep(self.dice.random())

    def coordinator_frozen(self):
        self.freeze(self.dice.choice(self.cluster.coordinators), 4)

    def etcd_restarted(self):
        self.cluster.etcd.kill()
        time.sleep(self.dice.random() * 2)

    def server_crashed(self):
        self.game.crash(self.dice)

    def server_frozen(self):
        """For longer than its registration holds: what it does afterwards must be refused."""
        self.freeze(self.dice.choice(self.game.servers), 8)


class GameBackEnd(ClusterTest):
    @classmethod
    def plan(cls):
        cluster = Cluster(nodes=3, coordinators=2, shards=8, options={"node": NODE})
        cls.second = cluster.plan("router", "router-2", {
            "listen": cluster.address("router-2"), "access": "open"})
        return cluster

    def play(self, journals):
        cluster, dice = self.cluster, random.Random(SEED)
        self.second.start()
        self.addCleanup(self.second.kill)
        wait_for("the second router", self.second.ready)
        listening = next(word for word in self.second.command if word.startswith("--listen="))
        game = Game(cluster, [f"127.0.0.1:{cluster.port}", listening.removeprefix("--listen=")], journals)
        trouble = Trouble(cluster, [cluster.router, self.second], game, dice)
        game.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            trouble.round()
            game.check_alive()
        wait_for("every node to be ready", lambda: all(node.ready() for node in cluster.nodes))
        game.end()
        game.settle()
        return trouble.counts

    def test_what_callers_were_told_is_true(self):
        journals = pathlib.Path(os.environ.get("HOLDFAST_GAME_JOURNALS", self.cluster.dir / "journals"))
        journals.mkdir(parents=True, exist_ok=True)
        assert not list(journals.iterdir()), f"{journals} has journals of another run"
        counts = self.play(journals)
        figures, wrong = check.judge_directory(journals)
        print(json.dumps({"seed": SEED, "seconds": SECONDS} | figures | counts))
        self.assertEqual(wrong, [], f"{len(wrong)} violations, seed {SEED}")
        self.assertGreater(figures["committed"], 8 * SECONDS)
        self.assertGreater(sum(counts.values()), SECONDS / 10)
        lies = len(doctor.LIES) if SECONDS <= LIES_ALL_S else LIES_LONG
        self.assertEqual(doctor.believed(journals, random.Random(SEED), lies), [], f"seed {SEED}")


if __name__ == "__main__":
    assert BIN.is_dir(), f"no programs in {BIN}"
    unittest.main(verbosity=2)
