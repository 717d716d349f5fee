"""The peers: the same grant, on two disks before its answer, on this machine."""

import glob
import os
import pwd
import shutil
import subprocess
import time

from processes import HERE, free_port, generate, say, wait_for

TRADERS_MIN = 4096  # Enough for each connection to have pairs of its own.
REPEAT = 100  # One grant in so many repeats an earlier op_id; Holdfast's loads do the same.


class Peer:
    """What both have: acknowledged grants are counted, and must be found at the end."""

    generator = ""

    def __init__(self, directory, processes, players):
        self.directory, self.processes, self.players = directory, processes, players
        self.warm_up_s, self.items = 5, 1
        self.port, self.replica_port = free_port(), free_port()
        self.servers = []
        self.acknowledged = 0

    def grant(self, connections, seconds, depth=1):
        result = self.generated(op="grant", connections=connections, seconds=seconds, warm_up=min(0.7, seconds),
                                players=self.players, batch=depth, items=self.items, repeat=REPEAT,
                                pids=self.server_pids())
        self.acknowledged += result["acknowledged"]
        return result

    def generated(self, **options):
        result = generate(self.generator, self.port, **options)
        if result["errors"] or result["unknown"]:
            raise RuntimeError(f"{self.generator}: {result}")
        return result

    def server_pids(self):
        return ",".join(str(server.pid) for server in self.servers)

    def stop(self):
        for server in reversed(self.servers):
            self.processes.stop_one(server)

    def sums(self, port):
        """(currency, ledger entries) of all players, as the server on `port` has them."""
        raise NotImplementedError

    def verify(self):
        """[(check, holds, detail)]: both disks must hold every grant, once."""
        checks = []
        for role, port in (("primary", self.port), ("replica", self.replica_port)):
            gold, entries = self.sums(port)
            checks.append((f"{type(self).__name__} {role}: currency and ledger equal what was "
                           "acknowledged", gold == entries == self.acknowledged,
                           f"{gold}, {entries}, {self.acknowledged}"))
        return checks


class Redis(Peer):
    """Redis: a primary and a replica, both with appendfsync always; WAIT 1 after each grant."""

    generator = "load_redis"
    OPTIONS = [
        "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always",
        "--auto-aof-rewrite-percentage", "0", "--hash-max-listpack-value", "1024",
        "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb", "--maxclients", "9000",
        "--client-output-buffer-limit", "replica 2gb 2gb 0", "--loglevel", "warning"]
    FILL = ("for p = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do redis.call('HSET', 'p:' .. p, "
            "'gold', 0, 'version', 0, 'items', string.rep('0123456789abcdef', 24), "
            "'document', string.rep('fedcba98', 75)) end")
    SUMS = ("local gold, entries = 0, 0 for p = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do "
            "gold = gold + redis.call('HGET', 'p:' .. p, 'gold') "
            "entries = entries + redis.call('LLEN', 'l:' .. p) end return {gold, entries}")
    HELD = ("local held, mailed, entries = 0, 0, 0 for p = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do "
            "held = held + redis.call('SCARD', 'i:' .. p) "
            "mailed = mailed + redis.call('LLEN', 'm:' .. p) "
            "entries = entries + redis.call('LLEN', 'tl:' .. p) end return {held, mailed, entries}")
    EDGES = ("local edges = 0 for p = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do "
             "edges = edges + redis.call('HLEN', 'f:' .. p) end return {edges}")
    COUNTED = ("local parts, top = 0, 0 for c = 0, 63 do "
               "for _, n in ipairs(redis.call('HVALS', 'c:' .. c)) do parts = parts + n end end "
               "for _, t in ipairs(redis.call('ZRANGE', 'top', 0, -1)) do top = top + redis.call('ZSCORE', 'top', t) end "
               "return {parts, top}")
    CHUNK = 5000

    def __init__(self, directory, processes, players):
        super().__init__(directory, processes, players)
        self.transferred = self.edges = 0

    def transfer(self, connections, seconds, stock):
        """One item a transfer, into the mailbox of another player: one script, then WAIT 1."""
        result = self.generated(op="transfer", connections=connections, seconds=seconds, warm_up=max(1, seconds / 2),
                                players=max(self.players, TRADERS_MIN), batch=1, stock=stock, pids=self.server_pids())
        self.transferred += result["acknowledged"]
        return result

    def favorite(self, connections, seconds, depth=1):
        """One edge, its part of the target's count and its trending place a script; WAIT 1 after `depth` of them."""
        result = self.generated(op="favorite", connections=connections, seconds=seconds,
                                warm_up=min(0.7, seconds), players=self.players, batch=depth, pids=self.server_pids())
        self.edges += result["acknowledged"]
        return result

    def document(self, connections, seconds):
        """A leaf of a player's settings: one HSET, then WAIT 1."""
        return self.generated(op="document", connections=connections, seconds=seconds,
                              warm_up=min(0.7, seconds), players=self.players, batch=1, pids=self.server_pids())

    def verify(self):
        """And every transferred item must lie in a mailbox, every edge with a player and in the counts."""
        checks = super().verify()
        for role, port in (("primary", self.port), ("replica", self.replica_port)):
            edges = self.eval(port, self.EDGES, 1)[0]
            counted = [int(n) for n in self.cli(port, "EVAL", self.COUNTED, 0).split()]
            checks.append((f"Redis {role}: edges and counts equal what was acknowledged",
                           [edges, edges] == counted and edges == self.edges, f"{edges}, {counted}, {self.edges}"))
        for role, port in (("primary", self.port), ("replica", self.replica_port)):
            held, mailed, entries = self.eval(port, self.HELD, 3)
            checks.append((f"Redis {role}: items in mailboxes equal what was acknowledged",
                           mailed == self.transferred and entries == 2 * mailed,
                           f"{mailed}, {entries}, {self.transferred}; {held} not sent"))
        return checks

    def cli(self, port, *words):
        return subprocess.run(["redis-cli", "-h", "127.0.0.1", "-p", str(port), *map(str, words)],
                              check=True, capture_output=True, text=True).stdout

    def serve(self, name, port, *more):
        home = self.directory / f"redis-{name}"
        home.mkdir()
        self.servers.append(self.processes.start(
            ["redis-server", "--port", port, "--dir", home, *self.OPTIONS, *more],
            self.directory / f"redis-{name}.log"))

    def eval(self, port, script, count=2):
        """Runs the script over all players, some at a time; the sums of what it returns."""
        sums = [0] * count
        players = self.players if count < 3 else max(self.players, TRADERS_MIN)
        for first in range(0, players, self.CHUNK):
            last = min(first + self.CHUNK, players)
            for n, line in enumerate(self.cli(port, "EVAL", script, 0, first, last).split()):
                sums[n] += int(line)
        return sums

    def start(self):
        say("starting Redis (primary and replica, appendfsync always)")
        self.serve("primary", self.port)
        self.serve("replica", self.replica_port, "--replicaof", f"127.0.0.1 {self.port}")
        wait_for("Redis's replica", lambda: "master_link_status:up" in subprocess.run(
            ["redis-cli", "-h", "127.0.0.1", "-p", str(self.replica_port), "info", "replication"],
            check=False, capture_output=True, text=True).stdout)
        self.eval(self.port, self.FILL)
        if self.cli(self.port, "WAIT", 1, 20000).strip() != "1":
            raise RuntimeError("Redis's replica does not follow")
        self.grant(64, self.warm_up_s / 4)

    def sums(self, port):
        self.cli(self.port, "WAIT", 1, 20000)
        return tuple(self.eval(port, self.SUMS))


class Postgres(Peer):
    """PostgreSQL: a primary and one synchronous standby (remote flush)."""

    generator = "load_postgres"
    CONFIG = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 300
shared_buffers = 1GB
wal_buffers = 64MB
max_wal_size = 16GB
checkpoint_timeout = 1h
wal_keep_size = 2GB
fsync = on
synchronous_commit = on
jit = off
"""

    def __init__(self, directory, processes, players):
        super().__init__(directory, processes, players)
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.home = directory / "postgres"
        self.home.mkdir()
        self.demote = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            user = pwd.getpwnam("postgres")
            os.chmod(directory, 0o755)
            os.chown(self.home, user.pw_uid, user.pw_gid)
            self.demote = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def tool(self, name, *arguments):
        return subprocess.run([f"{self.bin}/{name}", *map(str, arguments)], check=True, text=True,
                              capture_output=True, cwd=self.home, **self.demote).stdout

    def serve(self, name, port):
        self.servers.append(self.processes.start(
            [f"{self.bin}/postgres", "-D", self.home / name, "-p", port],
            self.directory / f"postgres-{name}.log", cwd=self.home, **self.demote))
        wait_for(f"PostgreSQL's {name}", lambda: subprocess.run(
            [f"{self.bin}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)],
            check=False).returncode == 0, every_s=0.1)

    def psql(self, port, *arguments):
        return self.tool("psql", "-h", "127.0.0.1", "-p", port, "-U", "peer", "-d", "postgres",
                         "-X", "-q", "-A", "-t", *arguments)

    def start(self):
        say("starting PostgreSQL (primary and one synchronous standby)")
        self.tool("initdb", "-D", self.home / "primary", "-U", "peer", "-A", "trust", "--no-locale",
                  "-E", "UTF8")
        with open(self.home / "primary/postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(self.CONFIG)
        self.serve("primary", self.port)
        self.tool("pg_basebackup", "-h", "127.0.0.1", "-p", self.port, "-U", "peer", "-D",
                  self.home / "standby", "-R", "-X", "stream", "-c", "fast")
        with open(self.home / "standby/postgresql.auto.conf", "a", encoding="utf-8") as conf:
            conf.write(f"primary_conninfo = 'host=127.0.0.1 port={self.port} user=peer "
                       "application_name=standby'\n")
        self.serve("standby", self.replica_port)
        schema = self.home / "schema.sql"
        shutil.copy(HERE / "postgres.sql", schema)
        os.chmod(schema, 0o644)
        self.psql(self.port, "-v", f"players={self.players}", "-f", schema)
        self.psql(self.port, "-c", "VACUUM ANALYZE", "-c",
                  "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'",
                  "-c", "SELECT pg_reload_conf()", "-c", "CHECKPOINT")
        wait_for("PostgreSQL's standby to be synchronous", lambda: "sync" in self.psql(
            self.port, "-c", "SELECT sync_state FROM pg_stat_replication").split())
        self.grant(64, self.warm_up_s)  # The first write to a page after a checkpoint logs the whole page.

    def sums(self, port):
        query = "SELECT sum(gold), (SELECT count(*) FROM ledger) FROM profile"
        found = self.psql(port, "-c", query).strip()
        for _ in range(50):  # A standby has flushed what was acknowledged; it applies it later.
            if found == self.psql(self.port, "-c", query).strip():
                break
            time.sleep(0.1)
            found = self.psql(port, "-c", query).strip()
        return tuple(int(number) for number in found.split("|"))
