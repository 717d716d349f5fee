"""
Every error that idl/method_errors.h promises, brought about with a real cluster and a stock HTTP
client, as far as a client can; `UNIT` names the unit tests that bring about the rest. A pair that
no test brings about fails the last test, and so does an error that is not promised (client.py).
"""

import base64
import concurrent.futures
import gzip
import hmac
import json
import signal
import struct
import subprocess
import time
import unittest

import client as api
from as_of import dot_of, parse, token
from client import PAYMENTS, UNHELD, Client, RpcError, Unanswered, session, uuid7
from cluster import BIN, ROOT, Cluster, ClusterTest, wait_for
from smallest import EDIT, NO_ITEM, gold, player_writes

ROUTES = api.TABLES.routes()
STREAMS = [method for method, route in ROUTES.items() if route == "STREAM"]
STREAMS_OF_PLAYERS = {"EventService/Subscribe"}  # For keys that read players, and not for those of the cluster.
ADMIN = "system:admin"
# A player's token may ask them, and they know no field player_id.
OF_NO_PLAYER = {"FavoritesService/GetRank", "FavoritesService/GetCount", "FavoritesService/BatchGetCounts", "FavoritesService/GetTop",
                "FavoritesService/BatchGetTargetMetadata"}
COUNTERS = "CounterService/"
FOR_EVERY_KEY = "AdminService/GetServiceInfo"
MOVABLE = 3000  # Milliseconds; of calls that must not wait for an owner that is frozen.

# What a client cannot bring about in a sound cluster, and the unit test that does.
RPC_TEST = ("runtime/rpc/rpc_test.c",
            "an_answer_that_cannot_be_read_is_unknown_or_a_bug_as_the_method_says")
UNIT = {
    ("INTERNAL", False): RPC_TEST,  # Of every method that promises it.
    ("CANCELED", False): ("router/rpc/router_test.c", "goes_away_is_cancelled"),
    ("OPERATION_EXPIRED", True): (
        "node/rpc/admin_repair_player_test.c", "a_lost_outcome_is_never_carried_out_again"),
    ("QUARANTINED", False): ("node/rpc/admin_quarantine_test.c", "ERROR(QUARANTINED)"),
}
UNIT_OF_METHOD = {
    ("SessionService/RegisterServer", "CAPACITY_FULL", False): (
        "router/rpc/servers/servers_test.c", "no_more_are_registered_than_a_cluster_may_have"),
    ("AdminService/RepairPlayer", "INVALID_ARGUMENT", True): (
        "node/rpc/admin_repair_player_test.c", "ERROR(INVALID_ARGUMENT)"),
    ("MailboxService/ClaimMail", "INVALID_ARGUMENT", True): (
        "node/rpc/unreadable_rows_test.c", "TABLE_ROWS(TABLE_TEST)"),
    ("LedgerService/ReverseEntry", "INVALID_ARGUMENT", True): (
        "node/rpc/unreadable_rows_test.c", "TABLE_ROWS(TABLE_TEST)"),
    **{(method, "INVALID_ARGUMENT", True): ("node/rpc/currency_dropped_test.c", case)
       for method, case in {"LedgerService/Grant": "a_grant_is_refused", "LedgerService/Spend": "a_spend_is_refused",
                            "LedgerService/TransferCurrencies": "a_transfer_is_refused",
                            "LedgerService/ReserveCurrencies": "a_reservation_is_refused",
                            "MailboxService/SendMail": "mail_is_refused",
                            "TransactionService/Swap": "a_swap_is_refused"}.items()},
    **{(f"FavoritesService/{method}", "NOT_FOUND", True): (
        "node/rpc/favorites_favorite_test.c", "a_collection_that_is_deleted_meanwhile_refuses_at_apply")
       for method in ("Favorite", "Unfavorite")},
    ("CounterService/AddToCounter", "NOT_FOUND", True): (
        "node/rpc/counter_add_to_counter_test.c", "a_counter_that_is_deleted_meanwhile_refuses_at_apply"),
    ("UserService/FindByName", "TXN_CONFLICT", False): ("node/rpc/shard_settled_test.c", "TXN_CONFLICT"),
    ("AdminService/RebuildCounts", "VERSION_CONFLICT", False): (
        "node/rpc/admin_rebuild_counts_test.c", "ERROR(VERSION_CONFLICT)"),
    ("AdminService/RebuildCounts", "NOT_FOUND", False): ("node/rpc/admin_rebuild_counts_test.c", "ERROR(NOT_FOUND)"),
    ("BackupService/BeginRestore", "SCHEMA_TOO_NEW", False): (
        "node/rpc/backup_restore_test.c", "ERROR(SCHEMA_TOO_NEW)"),
    ("BackupService/BeginRestore", "VERSION_CONFLICT", False): (
        "node/rpc/backup_restore_test.c", "a_shard_in_use_is_refused"),
    ("BackupService/RestoreDefinition", "VERSION_CONFLICT", False): (
        "coordinator/core/definitions_test.c", "a_definition_of_a_backup_takes_no_others_place"),
    ("BackupService/RestoreDefinition", "CAPACITY_FULL", False): (
        "coordinator/core/definitions_test.c", "a_definition_of_a_backup_needs_room"),
    ("BackupService/RestoreDocuments", "VERSION_CONFLICT", False): (
        "node/io/mergeable/mergers_backup_test.c", "CODE(VERSION_CONFLICT)"),
    ("BackupService/RestoreDocuments", "NOT_FOUND", False): (
        "node/core/document/backup_rows_test.c", "CODE(NOT_FOUND)"),
    ("BackupService/FinishRestore", "VERSION_CONFLICT", False): (
        "node/rpc/backup_restore_test.c", "refused_as(w, ERROR(VERSION_CONFLICT))"),
}
# They read etcd first, and are UNAVAILABLE when that is silent; or they tell what they know without it.
OF_ETCD = {
    "SessionService/RegisterServer": {"name": "unheard"},
    "AdminService/MoveShard": {"shard": 0, "from": "node-1", "to": "node-2"},
    "AdminService/RebuildReplica": {"shard": 0, "node": "node-1"},
    "AdminService/ChangeNode": {"node": "node-1", "want": "drain"},
    "AdminService/RebalanceShards": {},
    "AdminService/AcceptEtcdRestore": {},
    "AdminService/GetCluster": {},
    "AdminService/GetServiceInfo": {},
    "AdminService/ListServers": {},
    "AdminService/ListProcesses": {},
    "AdminService/ListShards": {},
    "AdminService/GetShardClock": {"shard": 0},
    "AdminService/ListIncidents": {},
    "AdminService/GetLoad": {},
}
# OUTCOME_UNKNOWN of these needs an etcd that falls silent between a read and a write; a batch tells it of its elements.
for name in (*(method for method, route in ROUTES.items() if route == "SCATTER"), "SessionService/RegisterServer",
             "AdminService/SetPolicy", "AdminService/MoveShard", "AdminService/ChangeNode",
             "AdminService/RebuildReplica",
             "AdminService/RebalanceShards", "AdminService/AcceptEtcdRestore", "BackupService/PrepareRestore"):
    UNIT_OF_METHOD[(name, "OUTCOME_UNKNOWN", False)] = RPC_TEST
# Given when two callers change one record of etcd within the same milliseconds, or when etcd holds
# what no process wrote: nothing brings these about on purpose.
RACES = {
    ("AdminService/AcceptEtcdRestore", "INTERNAL"),
    ("AdminService/AcceptEtcdRestore", "VERSION_CONFLICT"),
    ("AdminService/ChangeNode", "VERSION_CONFLICT"),
    ("AdminService/MoveShard", "VERSION_CONFLICT"),
    ("AdminService/RebuildReplica", "VERSION_CONFLICT"),
    ("AdminService/RebalanceShards", "VERSION_CONFLICT"),
    ("BackupService/PrepareRestore", "VERSION_CONFLICT"),
}


# Of players who are held back.
REVIEWS = {f"AdminService/{verb}Edges": {"targetIds": ["pong"]} for verb in ("Accept", "Reject", "Flag")}
STAFF_WRITES = {"AdminService/ReleaseQuarantine": {}, "AdminService/RepairPlayer": {"rebuild": True}} | REVIEWS
PLAYER_WRITES = player_writes()
ERASURES = ("ErasureService/ErasePlayer", "ErasureService/RestorePlayer")
NO_AUTHORITY = {"FavoritesService/Favorite", "FavoritesService/Unfavorite"}
ONLY_SYSTEM = {"MailboxService/DeliverMail"}


def formed(method, request):
    """Tests name a home player and its authority; where the form of the method has other places for them."""
    if method == "MailboxService/DeliverMail" and "playerId" in request:
        rest = {name: value for name, value in request.items() if name != "playerId"}
        return rest | {"toPlayerIds": [request["playerId"]]}
    if method in NO_AUTHORITY:
        return {name: value for name, value in request.items() if name != "authority"}
    if method == "TransactionService/Swap" and "playerId" in request:
        a = {name: request[name] for name in ("playerId", "authority")}
        a["gives"] = {name: request[name] for name in ("currencies", "itemUids") if name in request}
        return {name: request[name] for name in ("opId", "b", "attempt", "ifVersion") if name in request} | {"a": a}
    return request


NOT_UNHELD = {"SessionService/EndSession"}


PLAYERS_SECRET = b"thirty-two bytes, or some more.."


def text_of(data):
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def players_token(player):
    claims = json.dumps({"sub": player, "aud": "errors", "exp": int(time.time()) + 3600}).encode()
    head = json.dumps({"alg": "HS256"}).encode()
    signed = f"{text_of(head)}.{text_of(claims)}"
    return f"{signed}.{text_of(hmac.digest(PLAYERS_SECRET, signed.encode(), 'sha256'))}"


class Errors(ClusterTest):
    @classmethod
    def plan(cls):
        cluster = Cluster(shards=8, currencies="gold,gems")
        listen = cluster.address("keyed")
        players = cluster.dir / "players.json"
        players.write_text(json.dumps({"keys": [{"kty": "oct", "k": text_of(PLAYERS_SECRET)}]}))
        cls.keyed = cluster.plan("router", "keyed", {
            "listen": listen, "access": "keys", "failure-rate": 1000, "player-keys": players,
            "player-audience": "errors", "player-token-rate": 0})
        cls.keyed_endpoint = f"http://{listen}"
        listen = cluster.address("blind")
        cls.blind = cluster.plan("router", "blind", {
            "listen": listen, "access": "keys", "etcd": "http://127.0.0.1:9"})
        cls.blind_endpoint = f"http://{listen}"
        return cluster

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for process in (cls.keyed, cls.blind):
            process.start()
            cls.addClassCleanup(process.kill)
        policy = cls.client.call("AdminService/GetCluster", {})["policy"]
        policy |= {"version": policy["version"] + 1, "itemsMax": 3, "mailboxMax": 1}
        policy["currencies"][[c["name"] for c in policy["currencies"]].index("gems")] |= {
            "maxBalance": 10}
        cls.client.call("AdminService/SetPolicy", {"policy": policy})
        wait_for("favourites to be in force", lambda: cls.collection("favorites")["definition"].get("inForce"))
        wait_for("plays to be in force", lambda: cls.counter("plays")["definition"].get("inForce"))
        cls.server = cls.client.register("errors-test")
        cls.player = "errors"

    @classmethod
    def collection(cls, name, **body):
        body = {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"} | body
        return wait_for("the shards to be heard", lambda: cls.quietly_of(
            "DefinitionService/PutDefinition", {"name": name, "opId": uuid7(), "body": {"collection": body}, "waitMs": 5000}))

    @classmethod
    def counter(cls, name, **body):
        return wait_for("the shards to be heard", lambda: cls.quietly_of(
            "DefinitionService/PutDefinition", {"name": name, "opId": uuid7(), "body": {"counter": body}, "waitMs": 5000}))

    @classmethod
    def quietly_of(cls, method, request):
        try:
            return cls.client.call(method, request)
        except RpcError:
            return None

    # -- calls --

    def raw(self, endpoint, method, body=b"{}", headers=None, key=None):
        """One call with headers of the test's choosing, recorded as client.py records its own."""
        streams = method in STREAMS
        if streams:
            packed = (headers or {}).get("connect-content-encoding") == "gzip"
            body = struct.pack(">BI", packed, len(body)) + body
            headers = {"content-type": "application/connect+json"} | (headers or {})
        status, told, data = Client(endpoint, key).post(f"/holdfast.v1.{method}", body, headers)
        answer = json.loads(data[5:] if data[:1] in (b"\0", b"\2") else data)
        if streams and "error" in answer:
            status, answer = 400, answer["error"]
        if status != 200:
            error = RpcError(status, answer, method)
            self.assertTrue(error.code, f"{method}: no detail: {data}")
            if not streams:
                error.hold_against_the_headers(told)
            return error.code
        return None

    def outcome(self, method, request, deadline_ms=30000):
        """The code of the error, or None."""
        try:
            answer = self.client.call(method, formed(method, request), deadline_ms)
        except RpcError as error:
            return error.code
        if method == "MailboxService/DeliverMail":  # A batch of one.
            return self.of_element(method, answer["results"][0])
        return None

    def of_element(self, method, result):
        if "error" not in result:
            return None
        return RpcError(200, {"error": result["error"], "message": result["error"]["message"]}, method).code

    def gives(self, code, method, request, deadline_ms=30000):
        got = self.outcome(method, request, deadline_ms)
        self.assertEqual(got, code, f"{method} {request}")

    def write(self, method, player=None, **more):
        return {"playerId": player or self.player, "opId": uuid7(),
                "authority": PAYMENTS if method in ONLY_SYSTEM else UNHELD,
                } | filled(PLAYER_WRITES[method], player or self.player) | more

    def key(self, *words):
        done = subprocess.run(
            [BIN / "holdfast", "key", "issue", *words, "-o", "json"], check=True,
            capture_output=True, text=True, env={
                "HOLDFAST_ETCD": self.cluster.etcd_url, "HOLDFAST_CLUSTER": "it",
                "HOLDFAST_ENDPOINT": self.keyed_endpoint})
        key = json.loads(done.stdout)["key"]
        wait_for("the key to be known", lambda: self.raw(
            self.keyed_endpoint, "LedgerService/GetBalances", b'{"playerId":"stranger"}',
            key=key) not in ("UNAUTHENTICATED", "UNAVAILABLE"))
        return key

    # -- what any call can get --

    def test_a_any_call(self):
        for method in api.PROMISED:
            for code, body, headers in (
                    ("INVALID_ARGUMENT", b"{not JSON", {}),
                    ("UNIMPLEMENTED", b"{}", {"connect-content-encoding": "snappy"}
                     if method in STREAMS else {"content-encoding": "snappy"}),
                    ("DEADLINE_EXCEEDED", b"{}", {"connect-timeout-ms": "0"})):
                with self.subTest(method=method, code=code):
                    self.assertEqual(self.raw(self.cluster.endpoint, method, body, headers), code)

    def test_a_too_large(self):
        """For what the method takes: as sent, or unpacked."""
        padded = b'{"pad": "%s"}' % (b"x" * (5 << 20))
        packed = gzip.compress(padded)
        for method in api.PROMISED:
            with self.subTest(method=method):
                encoding = "connect-content-encoding" if method in STREAMS else "content-encoding"
                self.assertEqual(self.raw(self.cluster.endpoint, method, packed, {encoding: "gzip"}), "TOO_LARGE")

    def test_a_keys(self):
        readers = [self.key(f"reader-{scope[5:]}", "--scopes", scope)
                   for scope in ("read:player", "read:ops")]
        slow = self.key(
            "slow", "--scopes", "game,payments,admin,moderation,match,mail,read", "--rate", "1")
        token, anothers = players_token("errors"), b'{"playerId":"another"}'
        for method in api.PROMISED:
            with self.subTest(method=method):
                self.assertEqual(self.raw(self.keyed_endpoint, method), "UNAUTHENTICATED")
                self.assertEqual(self.raw(self.keyed_endpoint, method, anothers, key=token),
                                 "INVALID_ARGUMENT" if method in OF_NO_PLAYER else "PERMISSION_DENIED")
                if ("PERMISSION_DENIED", False) in api.PROMISED[method] and method != FOR_EVERY_KEY:
                    # The first that is refused is enough: a stream that is not goes on and on.
                    first_refused = readers[::-1] if method in STREAMS_OF_PLAYERS else readers
                    self.assertTrue(any(self.raw(self.keyed_endpoint, method, key=reader) ==
                                        "PERMISSION_DENIED" for reader in first_refused))
                end = time.monotonic() + 10
                while self.raw(self.keyed_endpoint, method, b"{not JSON", key=slow) != "THROTTLED":
                    self.assertLess(time.monotonic(), end)

    def test_a_blind_router(self):
        wait_for("the router to listen", lambda: self.raw(
            self.blind_endpoint, "AdminService/GetCluster"))
        for method in api.PROMISED:
            with self.subTest(method=method):
                self.assertEqual(self.raw(self.blind_endpoint, method), "UNAVAILABLE")

    # -- operations --

    def test_b_op_ids(self):
        old = "01890000-0000-7000-8000-000000000000"
        writes = {method: self.write(method) for method in PLAYER_WRITES}
        writes["SessionService/EndSession"]["authority"] = session("1-1-1")
        writes["SessionService/StartSession"] = {
            "playerId": self.player, "incarnation": self.server, "mode": "fail"}
        for method, more in STAFF_WRITES.items():
            writes[method] = {"playerId": self.player, "authority": ADMIN, "reason": "test"} | more
        writes |= self.of_admins(self.player)
        for method, request in writes.items():
            with self.subTest(method=method):
                kind = "key" if method in NO_AUTHORITY else "claim"
                used, sealed = f"{kind}:{method[-9:]}".replace("/", "-"), f"{kind}:s{method[-9:]}"
                sealed = sealed.replace("/", "-")
                self.client.grant(self.player, 77, used)
                self.gives("OPERATION_ID_MISMATCH", method, request | {"opId": used})
                self.gives("OPERATION_EXPIRED", method, request | {"opId": old})
                self.client.call("OperationService/ResolveOperation", {
                    "entity": f"player:{self.player}", "opId": sealed, "seal": True})
                self.gives("OPERATION_ABORTED", method, request | {"opId": sealed})

    def test_b_if_version(self):
        self.client.grant(self.player, 1)
        held = self.client.start("versioned", self.server)
        writes = {method: self.write(method) for method in PLAYER_WRITES if method not in ONLY_SYSTEM}
        writes["SessionService/EndSession"] |= {
            "playerId": "versioned", "authority": session(held["token"])}
        writes["SessionService/StartSession"] = {
            "playerId": self.player, "opId": uuid7(), "incarnation": self.server, "mode": "fail"}
        for method, more in STAFF_WRITES.items():
            writes[method] = {"playerId": self.player, "opId": uuid7(), "authority": ADMIN,
                              "reason": "test"} | more
        writes |= self.of_admins(self.player)
        for method, request in writes.items():
            with self.subTest(method=method):
                self.gives("VERSION_CONFLICT", method, request | {"ifVersion": 999999})

    def test_b_receipts(self):
        for method, more in (("LedgerService/Grant", {}), ("MailboxService/DeliverMail", {})):
            with self.subTest(method=method):
                op = f"receipt:{method.split('/')[1]}"
                one = self.write(method, f"buyer-{op[8:]}", opId=op, authority=PAYMENTS, **more)
                self.client.settle(method, formed(method, one))
                self.gives("OPERATION_ID_MISMATCH", method, one | {"playerId": "another buyer"})

    # -- sessions --

    def test_c_authority(self):
        server = self.client.register("holder")
        held = self.client.start("held", server)
        self.client.update("held", held["token"], {"name": "x", "schemaVersion": 1, "merge": {}})
        with api.Heartbeat(self.client, server, ("held", held["token"])):
            for method in PLAYER_WRITES.keys() - NO_AUTHORITY:
                with self.subTest(method=method):
                    if method in ONLY_SYSTEM:
                        self.gives("PERMISSION_DENIED", method, self.write(method, authority=UNHELD))
                        continue
                    stale = session(f"{server}-999999")
                    self.gives("SESSION_LOST", method, self.write(method, "held", authority=stale))
                    if method not in NOT_UNHELD:
                        self.gives("SESSION_LOCKED", method, self.write(method, "held"))
            other = self.client.register("errors-other")
            start = {"playerId": "held", "incarnation": other}
            for mode, deadline_ms in (("FAIL", 5000), ("WAIT", 700)):
                self.gives("SESSION_LOCKED", "SessionService/StartSession", start | {
                    "opId": uuid7(), "mode": mode.lower()}, deadline_ms)
        self.client.call("SessionService/UnregisterServer", {"incarnation": other})
        wait_for("the registration to be over", lambda: self.outcome(
            "SessionService/RenewSessions", {"incarnation": other}) == "SERVER_EXPIRED")
        wait_for("the player's shard to know", lambda: self.outcome(
            "SessionService/StartSession", start | {"opId": uuid7(), "mode": "steal"})
            == "SERVER_EXPIRED")
        self.gives("SERVER_EXPIRED", "SessionService/StartSession", start | {
            "opId": uuid7(), "incarnation": other + "000000"})
        self.gives("SERVER_EXPIRED", "SessionService/BatchStartSession", {
            "opId": uuid7(), "incarnation": other + "000000", "mode": "fail", "requests": [{"playerId": "held"}]})

    # -- what the rules refuse --

    def test_d_goods(self):
        player, none = self.player, "poor"
        self.client.grant("rich", 10, currency="gems")
        full = {"currencies": {"gems": 1}}
        lots = {"items": [{"kind": "hat"}] * 4}
        for method in ("Spend", "TransferCurrencies", "ReserveCurrencies"):
            self.gives("INSUFFICIENT_FUNDS", f"LedgerService/{method}",
                       self.write(f"LedgerService/{method}", none))
        self.gives("INSUFFICIENT_FUNDS", "MailboxService/SendMail",
                   self.write("MailboxService/SendMail", none))
        self.gives("ITEM_NOT_HELD", "LedgerService/Spend", self.write(
            "LedgerService/Spend", none, currencies={}, itemUids=NO_ITEM))
        self.gives("ITEM_NOT_HELD", "InventoryService/TransferItems", self.write(
            "InventoryService/TransferItems", none))
        self.gives("ITEM_NOT_HELD", "MailboxService/SendMail", self.write(
            "MailboxService/SendMail", none, currencies=[], itemUids=NO_ITEM))
        self.gives("CAPACITY_FULL", "LedgerService/Grant",
                   self.write("LedgerService/Grant", "rich") | full)
        self.gives("CAPACITY_FULL", "LedgerService/Grant",
                   self.write("LedgerService/Grant", none, currencies={}) | lots)
        self.mailbox(player)
        execute, swap = "TransactionService/ExecuteTransaction", "TransactionService/Swap"
        self.gives("INSUFFICIENT_FUNDS", execute, self.write(execute, none))
        self.gives("INSUFFICIENT_FUNDS", swap, self.write(swap, none))
        self.gives("ITEM_NOT_HELD", swap, self.write(swap, none, currencies=[], itemUids=NO_ITEM))
        self.client.grant("rich too", 10, currency="gems")
        self.gives("CAPACITY_FULL", swap, self.write(
            swap, "rich", **full, b={"playerId": "rich too", "authority": UNHELD}))
        for code, changes in (
                ("ITEM_NOT_HELD", {"spend": {"playerId": none, "itemUids": NO_ITEM}}),
                ("CAPACITY_FULL", {"grant": {"playerId": none} | lots})):
            self.gives(code, execute, self.write(execute, none, changes=[changes]))

    def mailbox(self, player):
        """A mailbox holds one piece of mail (the policy), and these come too late."""
        self.client.grant(player, 100)
        uid = self.client.call("LedgerService/Grant", self.write(
            "LedgerService/Grant", currencies={}, items=[{"kind": "sword"}]))["itemUids"][0]
        self.client.call("LedgerService/TransferCurrencies", self.write(
            "LedgerService/TransferCurrencies", toPlayerId="full"))
        self.gives("CAPACITY_FULL", "MailboxService/DeliverMail",
                   self.write("MailboxService/DeliverMail", "full"))
        for method, more in (("LedgerService/TransferCurrencies", {}), ("MailboxService/SendMail", {}),
                             ("InventoryService/TransferItems", {"itemUids": [uid]})):
            self.gives("CAPACITY_FULL", method, self.write(method, toPlayerId="full", **more))
        reserve = self.client.call("LedgerService/ReserveCurrencies", held := self.write(
            "LedgerService/ReserveCurrencies"))
        self.gives("CAPACITY_FULL", "LedgerService/PostReservation", self.write(
            "LedgerService/PostReservation", reserveOpId=held["opId"], toPlayerId="full",
            reserveSeq=reserve["ledgerSeq"]))
        self.gives("NOT_FOUND", "MailboxService/ClaimMail", self.write("MailboxService/ClaimMail"))
        gems = {"currencies": {"gems": 1}}
        self.client.grant("claimant", 10, currency="gems")
        self.client.grant(player, 1, currency="gems")
        mail = self.client.call("LedgerService/TransferCurrencies", self.write(
            "LedgerService/TransferCurrencies", toPlayerId="claimant", **gems))["mailId"]
        self.gives("CAPACITY_FULL", "MailboxService/ClaimMail", self.write(
            "MailboxService/ClaimMail", "claimant", mailIds=[mail]))

    def test_d_reservations(self):
        player = "keeper"
        self.client.grant(player, 100)
        posted = self.write("LedgerService/ReserveCurrencies", player)
        short = self.write("LedgerService/ReserveCurrencies", player, expiresInMs=1000)
        self.client.call("LedgerService/ReserveCurrencies", posted)
        self.client.call("LedgerService/ReserveCurrencies", short)
        post = {"reserveOpId": posted["opId"]}
        self.gives("INSUFFICIENT_FUNDS", "LedgerService/PostReservation", self.write(
            "LedgerService/PostReservation", player, currencies=gold(2), **post))
        self.client.call("LedgerService/PostReservation", self.write("LedgerService/PostReservation", player, **post))
        time.sleep(1.1)  # The reservation's own time, which has no event.
        for method in ("LedgerService/PostReservation", "LedgerService/VoidReservation"):
            self.gives("RESERVATION_CLOSED", method, self.write(method, player, **post))
            self.gives("NOT_FOUND", method, self.write(method, player))
            self.gives("RESERVATION_EXPIRED", method, self.write(
                method, player, reserveOpId=short["opId"]))
        self.client.grant(player, 100)
        for _ in range(64):
            self.outcome("LedgerService/ReserveCurrencies", self.write("LedgerService/ReserveCurrencies", player))
        self.gives("CAPACITY_FULL", "LedgerService/ReserveCurrencies",
                   self.write("LedgerService/ReserveCurrencies", player))

    def test_d_reversals(self):
        reverse, player = "LedgerService/ReverseEntry", "reversed"

        def undo(target, **more):
            return self.write(reverse, player, targetOpId=target, **more)

        def done(method, **more):
            request = self.write(method, player, **more)
            self.client.call(method, request)
            return request["opId"]

        grant = done("LedgerService/Grant")
        self.gives("PERMISSION_DENIED", reverse, undo(grant, authority=PAYMENTS))
        first = undo(grant)
        self.client.call(reverse, first)
        self.gives("ALREADY_REVERSED", reverse, undo(grant))
        self.gives("NOT_REVERSIBLE", reverse, undo(first["opId"]))
        self.gives("NOT_FOUND", reverse, undo("claim:none"))
        grant = done("LedgerService/Grant")
        spend = done("LedgerService/Spend")
        self.gives("INSUFFICIENT_FUNDS", reverse, undo(grant))
        self.assertTrue(spend)
        sword = {"currencies": {}, "items": [{"kind": "sword"}]}
        item = self.write("LedgerService/Grant", player, **sword)
        uid = self.client.call("LedgerService/Grant", item)["itemUids"][0]
        spent = done("LedgerService/Spend", currencies={}, itemUids=[uid])
        self.gives("ITEM_NOT_HELD", reverse, undo(item["opId"]))
        for _ in range(3):
            done("LedgerService/Grant", **sword)
        self.gives("CAPACITY_FULL", reverse, undo(spent))

    def test_d_sections(self):
        player = "edited"
        held = self.client.start(player, self.client.register("editor"))
        authority = session(held["token"])
        big = json.dumps("x" * 20000)
        edits = {
            "VERSION_CONFLICT": {"ifVersion": 9, "merge": {}},
            "SCHEMA_TOO_NEW": {"schemaVersion": 1, "merge": {}},
            "INVALID_ARGUMENT": {"patch": {"steps": [{
                "kind": "PATCH_KIND_INCREMENT", "path": "/name", "json": "1"}]}},
            "CAPACITY_FULL": {"patch": {"steps": [
                {"kind": "PATCH_KIND_SET", "path": "/more", "json": big}]}},
        }
        self.client.update(player, held["token"], {
            "name": "s", "schemaVersion": 2, "replace": json.dumps({"name": "x", "big": "y" * 250000})})
        for code, edit in edits.items():
            edit = {"name": "s", "schemaVersion": 2} | edit
            for method in ("ProfileService/UpdateProfile", "SessionService/EndSession"):
                with self.subTest(method=method, code=code):
                    self.gives(code, method, self.write(
                        method, player, authority=authority, edits=[edit]))
            if code != "CAPACITY_FULL":
                self.gives(code, "TransactionService/ExecuteTransaction", self.write(
                    "TransactionService/ExecuteTransaction", player, authority=authority,
                    changes=[{"patch": {"playerId": player, "edit": edit}}]))

    def test_d_names(self):
        """Of 64 sections none may be added."""
        for number in (0, 32):
            self.client.call("ProfileService/UpdateProfile", self.write("ProfileService/UpdateProfile", "crowded", edits=[
                {"name": f"s{number + each}", "schemaVersion": 1, "replace": {}} for each in range(32)]))
        self.gives("CAPACITY_FULL", "UserService/ClaimName", self.write("UserService/ClaimName", "crowded"))

    def test_d_facts(self):
        """As the first answer told them, so a duplicate and the stored outcome do."""
        player, spend = "counted", self.write("LedgerService/Spend", "counted", currencies=gold(7))
        self.client.grant(player, 5)
        told = []
        for _ in range(2):
            with self.assertRaises(RpcError) as refused:
                self.client.call("LedgerService/Spend", spend)
            told.append(refused.exception.detail)
        self.assertEqual(told[0]["about"]["funds"], {"currency": "gold", "balance": 5, "needed": 7})
        self.assertEqual(told[0]["action"], "raise_attempt")
        stored = self.client.call("OperationService/GetOperation", {
            "entity": f"player:{player}", "opId": spend["opId"]})["operation"]["refusal"]
        self.assertEqual(told + [stored], told[:1] * 3)

    def test_d_batches(self):
        """Each element's error is whole by itself."""
        used, good = uuid7(), self.write("LedgerService/Grant", "batched")
        self.client.grant("batched", 1, used)
        requests = [good, self.write("LedgerService/Grant", "batched", opId=used, currencies=gold(9)),
                    self.write("LedgerService/Grant", "batched", opId=""),
                    good | {"playerId": ""}]
        results = self.client.call("LedgerService/BatchGrant", {"requests": requests})["results"]
        self.assertIn("response", results[0])
        decided = [[result["error"].get(name, "") for name in
                    ("code", "outcome", "action", "entity", "opId")] for result in results[1:]]
        nothing = "not_applied"
        self.assertEqual(decided, [
            ["operation_id_mismatch", nothing, "never", "player:batched", used],
            ["invalid_argument", nothing, "fix", "player:batched", ""],
            ["invalid_argument", nothing, "fix", "", requests[3]["opId"]]])

    def test_d_reads(self):
        shard, dot = parse(self.client.grant("probe", 1)["write"]["asOf"])
        read = {"atLeast": token(shard, dot | {"owner": 1})}
        for method, codes in api.PROMISED.items():
            if ("VERSION_LOST", False) in codes and method != "UserService/FindByName":
                self.gives("VERSION_LOST", method, {"playerId": "probe", "read": read})
        name = {"name": "probe", "tag": "1"}  # Its shard is not the player's.
        shard, dot = parse(self.client.call("UserService/FindByName", name)["asOf"])
        self.gives("VERSION_LOST", "UserService/FindByName", name | {"read": {"atLeast": token(shard, dot | {"owner": 1})}})
        self.gives("NOT_FOUND", "InventoryService/TraceItem", {"itemUid": "0" * 28 + "0001"})
        release = {"playerId": "probe", "authority": ADMIN, "reason": "test"}
        for method, more in STAFF_WRITES.items():
            self.gives("NOT_FOUND", method, release | more | {"opId": uuid7()})
            self.gives("PERMISSION_DENIED", method,
                       release | more | {"opId": uuid7(), "authority": PAYMENTS})
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        with self.assertRaises(RpcError) as refused:
            self.client.call("AdminService/SetPolicy", {"policy": policy | {"version": policy["version"] + 7}})
        self.assertEqual(refused.exception.code, "VERSION_CONFLICT")
        self.assertEqual(refused.exception.detail["about"]["version"]["current"], policy["version"])
    def test_d_definitions(self):
        service = "DefinitionService/"
        kills = {"kind": "counter", "name": "kills"}
        body = {"counter": {"maxValue": 5}}
        wait_for("the shards to be heard", lambda: self.client.call(
            service + "PutDefinition", kills | {"opId": "made", "body": body}))
        for method in ("PutDefinition", "RollbackDefinition", "DeleteDefinition"):
            more = {"body": {"counter": {"maxValue": 6}}} if method == "PutDefinition" else {}
            more |= {"version": 1} if method == "RollbackDefinition" else {}
            self.gives("OPERATION_ID_MISMATCH", service + method, kills | more | {"opId": "made"})
            self.gives("VERSION_CONFLICT", service + method, kills | more | {"opId": uuid7(), "ifVersion": 9})
            if method != "PutDefinition":
                self.gives("NOT_FOUND", service + method, kills | more | {"opId": uuid7(), "name": "none"})
        self.gives("NOT_FOUND", service + "GetSettings", {"name": "none"})
        for method in ("GetDefinition", "DiffDefinitions", "ListDefinitionVersions"):
            self.gives("NOT_FOUND", service + method, kills | {"name": "none"})
        currency = {"body": {"currency": {"maxBalance": 5}}}
        for number in range(64 - len(self.client.call("AdminService/GetCluster", {})["policy"]["currencies"])):
            self.client.call(service + "PutDefinition", currency | {"name": f"c{number}", "opId": uuid7()})
        self.gives("CAPACITY_FULL", service + "PutDefinition", currency | {"name": "more", "opId": uuid7()})
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        self.gives("CAPACITY_FULL", "AdminService/SetPolicy", {"policy": policy | {
            "version": policy["version"] + 1,
            "currencies": policy["currencies"] + [{"name": "more", "maxBalance": 5}]}})

    def test_d_favorites(self):
        one = "FavoritesService/Favorite"
        wait_for("few to be in force", lambda: self.collection("few", edgesMax=1)["definition"].get("inForce"))
        self.gives(None, one, self.write(one, collection="few"))
        self.gives("CAPACITY_FULL", one, self.write(one, collection="few", targetId="chess"))
        for method in NO_AUTHORITY:
            self.gives("VERSION_CONFLICT", method, self.write(method, ifVer=999))
            self.gives("NOT_FOUND", method, self.write(method, collection="none"))
        self.gives("NOT_FOUND", "FavoritesService/ListFavorites", {"playerId": self.player, "collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/BatchGetStatus", {
            "playerId": self.player, "targetIds": ["pong"], "collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/ListByTarget", {"targetId": "pong", "collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/GetCount", {"targetId": "pong", "collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/BatchGetCounts", {"targetIds": ["pong"], "collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/GetTop", {"collection": "none"})
        self.gives("NOT_FOUND", "FavoritesService/GetRank", {"collection": "none", "targetId": "t"})
        self.gives("NOT_FOUND", "AdminService/ListFlaggedEdges", {"collection": "none"})
        for method, more in REVIEWS.items():
            self.gives("NOT_FOUND", method, {"playerId": self.player, "opId": uuid7(), "authority": ADMIN,
                                             "reason": "test", "collection": "none"} | more)

    def test_d_counters(self):
        one = COUNTERS + "AddToCounter"
        wait_for("little to be in force", lambda: self.counter("little", maxValue=3)["definition"].get("inForce"))
        self.gives(None, one, self.write(one, counter="little", amount=3))
        self.gives("CAPACITY_FULL", one, self.write(one, counter="little"))
        self.gives("NOT_FOUND", one, self.write(one, counter="none"))
        self.gives("NOT_FOUND", COUNTERS + "ListPlayerCounters", {"playerId": self.player, "counter": "none"})
        self.gives("NOT_FOUND", COUNTERS + "BatchGetPlayerCounters", {
            "playerId": self.player, "targetIds": ["pong"], "counter": "none"})
        self.gives("NOT_FOUND", COUNTERS + "GetCounter", {"targetId": "pong", "counter": "none"})
        self.gives("NOT_FOUND", COUNTERS + "BatchGetCounters", {"targetIds": ["pong"], "counter": "none"})
        self.gives("NOT_FOUND", COUNTERS + "GetCounterTop", {"counter": "none"})
        self.gives("NOT_FOUND", COUNTERS + "GetCounterRank", {"counter": "none", "targetId": "t"})

    @staticmethod
    def document(**more):
        return {"entity": "guild:1", "opId": uuid7(), "collection": "notes", "key": "k"} | more

    def test_d_documents(self):
        for name, policy in (("notes", "vector"), ("sums", "counter"), ("few", "merge")):
            wait_for(f"{name} to be in force", lambda name=name, policy=policy: self.quietly_of(
                "DefinitionService/PutDefinition", {"name": name, "opId": uuid7(), "waitMs": 5000, "body": {
                    "documents": {"policy": policy, "bytesMax": 50}}}))
        service, read = "DocumentService/", {"entity": "guild:1", "collection": "none"}
        for method, request in (("PutDocument", self.document(json={})), ("DeleteDocument", self.document()),
                                ("UpdateDocument", self.document(merge={"a": 1})), ("GetDocument", read | {"key": "k"}),
                                ("ListDocuments", read)):
            self.gives("NOT_FOUND", service + method, request | {"collection": "none"})
        for number in range(17):  # Siblings.
            self.gives(None if number < 16 else "CAPACITY_FULL", service + "PutDocument", self.document(json=[number]))
        self.gives("CAPACITY_FULL", service + "UpdateDocument", self.document(collection="few", merge={"a": "x" * 48}))
        self.gives("OPERATION_EXPIRED", service + "UpdateDocument", self.document(
            collection="sums", opId="018bcfd0-0000-7000-8000-000000000001", patch=[{"path": "/a", "increment": 1}]))
        once = self.document(collection="sums", patch=[{"path": "/a", "increment": 1}])
        self.gives(None, service + "UpdateDocument", once)
        self.gives("OPERATION_ID_MISMATCH", service + "UpdateDocument", once | {"patch": [{"path": "/a", "increment": 2}]})

    def test_d_presence(self):
        service, one = "PresenceService/", {"playerId": self.player, "ttlMs": 600000}
        gone = self.client.register("gone")
        self.client.call("SessionService/UnregisterServer", {"incarnation": gone})
        wait_for("the nodes to know that it is gone", lambda: self.outcome(service + "SetPresence", {
            "playerId": self.player, "opId": uuid7(), "connection": "game", "incarnation": gone}) == "SERVER_EXPIRED")
        never = {"opId": uuid7(), "connection": "game", "incarnation": gone + "000000"}
        self.gives("SERVER_EXPIRED", service + "BatchSetPresence", {"requests": [{"playerId": self.player}]} | never)
        for number in range(17):
            self.gives(None if number < 16 else "CAPACITY_FULL", service + "SetPresence", one | {
                "opId": uuid7(), "connection": f"c{number}"})

    def test_d_users(self):
        service, one = "UserService/", {"playerId": self.player + "-user", "ttlMs": 600000}
        gone = self.client.register("gone-too")
        self.client.call("SessionService/UnregisterServer", {"incarnation": gone})
        wait_for("the nodes to know that it is gone", lambda: self.outcome(service + "UpsertUser", {
            "playerId": self.player, "opId": uuid7(), "connection": "game", "incarnation": gone}) == "SERVER_EXPIRED")
        never = {"opId": uuid7(), "connection": "game", "incarnation": gone + "000000"}
        self.gives("SERVER_EXPIRED", service + "BatchUpsertUsers", {"requests": [one | never | {"ttlMs": 0}]})
        for number in range(17):
            self.gives(None if number < 16 else "CAPACITY_FULL", service + "UpsertUser", one | {
                "opId": uuid7(), "connection": f"c{number}"})

    def test_d_roles(self):
        def change(code, **more):
            self.gives(code, "UserService/SetUserFlags", {"playerId": "judge", "opId": uuid7(), "authority": ADMIN} | more)
        change("PERMISSION_DENIED", authority=PAYMENTS, addRoles=["judge"])
        change("PERMISSION_DENIED", authority=UNHELD, addRoles=["judge"])
        change("INVALID_ARGUMENT")
        change(None, addRoles=[f"r{number}" for number in range(32)])
        change("CAPACITY_FULL", addRoles=["judge"])

    def test_d_consumers(self):
        service, op_id = "EventService/", uuid7()

        def call(method, **more):
            return service + method, {"consumer": "errors", "opId": op_id} | more
        made = self.client.call(*call("CreateConsumer"))["consumer"]
        self.gives("VERSION_CONFLICT", *call("CreateConsumer", opId=uuid7()))
        self.gives("OPERATION_ID_MISMATCH", *call("CreateConsumer", entityPrefix="player:"))
        cursor = self.client.call(service + "Poll", {"consumer": "errors", "pageSize": 1000})["nextCursor"]
        commit = {"cursor": cursor, "version": made["version"]}
        self.gives("OPERATION_ID_MISMATCH", *call("CommitConsumer", **commit))
        self.gives("VERSION_CONFLICT", *call("CommitConsumer", **commit | {"opId": uuid7(), "version": 1 << 40}))
        self.gives("NOT_FOUND", *call("CommitConsumer", **commit, consumer="none"))
        for method in ("GetConsumer", "Poll"):
            self.gives("NOT_FOUND", service + method, {"consumer": "none"})
        self.assertEqual(self.raw(self.cluster.endpoint, service + "Subscribe", b'{"consumer":"none"}'), "NOT_FOUND")
        done = self.client.call(service + "CommitConsumer", {"consumer": "errors", "opId": uuid7()} | commit)["consumer"]
        begin = self.client.call(service + "Poll", {"pageSize": 1})["nextCursor"]
        self.gives("OUT_OF_RANGE", *call("CommitConsumer", opId=uuid7(), version=done["version"], cursor=begin))
        self.gives("VERSION_CONFLICT", service + "DeleteConsumer", {"consumer": "errors", "version": 1 << 40})
        shards, full = self.client.call("AdminService/GetCluster", {})["shardCount"], None
        for number in range(shards * 64 + 1):
            full = self.outcome(*call("CreateConsumer", consumer=f"full-{number}", opId=uuid7()), 30000)
            if full is not None:
                break
        self.assertEqual(full, "CAPACITY_FULL")

    def test_d_metadata(self):
        service, op_id = "FavoritesService/", uuid7()
        put = {"targetId": "shown", "opId": op_id, "title": "A"}
        self.gives(None, service + "PutTargetMetadata", put)
        self.gives("OPERATION_ID_MISMATCH", service + "PutTargetMetadata", put | {"title": "B"})
        for method in ("PutTargetMetadata", "DeleteTargetMetadata"):
            request = {"targetId": "shown"} | ({"opId": uuid7()} if method == "PutTargetMetadata" else {})
            self.gives("VERSION_CONFLICT", service + method, request | {"ifVersion": 1 << 40})
            self.gives("NOT_FOUND", service + method, request | {"collection": "none"})
        wait_for("the collection to be unknown", lambda: self.outcome(service + "BatchGetTargetMetadata", {
            "targetIds": ["shown"], "collection": "none"}) == "NOT_FOUND")

    def test_d_erasure(self):
        erase, undo = "ErasureService/ErasePlayer", "ErasureService/RestorePlayer"
        request = {"playerId": "erased", "opId": uuid7(), "authority": ADMIN}
        self.gives("NOT_FOUND", undo, request)
        self.gives("PERMISSION_DENIED", erase, request | {"opId": uuid7(), "authority": "system:match"})
        self.gives("PERMISSION_DENIED", undo, request | {"opId": uuid7(), "authority": "system:match"})
        self.gives("INVALID_ARGUMENT", erase, request | {"opId": uuid7(), "graceMs": -1})
        self.gives(None, erase, request | {"opId": uuid7()})
        self.gives("QUARANTINED", "FavoritesService/Favorite", {
            "playerId": "erased", "opId": uuid7(), "targetId": "pong"})

    def test_d_backups(self):
        self.client.grant(self.player, 1)
        self.gives("VERSION_CONFLICT", "BackupService/ArmBackup", {"shard": 0})
        self.gives("NOT_FOUND", "BackupService/ReadBackup", {"shard": 1, "cut": "99"})
        self.gives("VERSION_CONFLICT", "BackupService/ReadDocuments", {"shard": 1, "reader": "99"})
        self.gives("VERSION_CONFLICT", "BackupService/RestoreRows",
                   {"shard": 0, "restoreId": "A" * 22, "part": "1"})

    # -- with a node frozen --

    def test_y_a_transaction_holds_the_player(self):
        home, other = self.pair_of_owners()
        calls = {method: self.write(method, home) for method in PLAYER_WRITES}
        calls["SessionService/EndSession"]["authority"] = session(f"{self.server}-1")
        calls["SessionService/StartSession"] = {
            "playerId": home, "opId": uuid7(), "incarnation": self.server, "mode": "fail"}
        calls["AdminService/ReleaseQuarantine"] = {
            "playerId": home, "opId": uuid7(), "authority": ADMIN, "reason": "test"}
        for method, more in REVIEWS.items():
            calls[method] = {"playerId": home, "opId": uuid7(), "authority": ADMIN, "reason": "test"} | more
        calls |= self.of_admins(home)
        calls["ProfileService/GetProfile"] = {"playerId": home, "settled": True}
        calls["TransactionService/ReadPlayers"] = {"playerIds": [home]}
        frozen, _ = self.cluster.owner_of(other)
        with concurrent.futures.ThreadPoolExecutor(len(calls) + 1) as pool:
            frozen.signal(signal.SIGSTOP)
            try:
                pool.submit(self.quietly, "TransactionService/Swap", self.write(
                    "TransactionService/Swap", home, b={"playerId": other, "authority": UNHELD}))
                wait_for("the home player to be held", lambda: self.outcome(
                    "ProfileService/GetProfile", calls["ProfileService/GetProfile"], 500)
                    == "TXN_CONFLICT", every_s=0.005)
                done = [pool.submit(self.quietly, method, request)
                        for method, request in calls.items()]
                concurrent.futures.wait(done)
            finally:
                frozen.signal(signal.SIGCONT)

    def test_y_no_one_answers(self):
        """Sent, and nothing came back: whatever a process does that is frozen may have been done."""
        unheard = {"kind": "counter", "name": "unheard", "opId": uuid7()}
        writes = {method: self.write(method) for method in PLAYER_WRITES}
        writes["SessionService/StartSession"] = {
            "playerId": self.player, "opId": uuid7(), "incarnation": self.server, "mode": "fail"}
        writes["OperationService/ResolveOperation"] = {
            "entity": f"player:{self.player}", "opId": uuid7(), "seal": True}
        for method, more in STAFF_WRITES.items():
            writes[method] = {"playerId": self.player, "opId": uuid7(), "authority": ADMIN, "reason": "test"} | more
        writes |= self.of_admins(self.player)
        writes |= {"DocumentService/PutDocument": self.document(json={}), "DocumentService/DeleteDocument": self.document(),
                   "DocumentService/UpdateDocument": self.document(merge={"a": 1})}
        connection = {"playerId": self.player, "opId": uuid7(), "connection": "c"}
        writes |= {"PresenceService/SetPresence": connection | {"ttlMs": 5000}, "PresenceService/ClearPresence": connection}
        writes["UserService/UpsertUser"] = connection | {"ttlMs": 5000}
        for method, route in ROUTES.items():
            if route == "SHARD_WRITE" and method in api.PROMISED:
                named, shown = method.endswith("Consumer"), method.endswith("TargetMetadata")
                writes[method] = ({"consumer": "unheard"} if named else {"targetId": "unheard"} if shown
                                  else {"shard": 0})
                if (named or shown) and "/Delete" not in method:
                    writes[method]["opId"] = uuid7()
        for verb, more in (("Put", {"body": {"counter": {"maxValue": 5}}}), ("Rollback", {"version": 1}),
                           ("Delete", {})):
            writes[f"DefinitionService/{verb}Definition"] = unheard | more
        writes["BackupService/RestoreDocuments"] = {"shard": 0}
        writes["BackupService/RestoreDefinition"] = {"definition": {
            "number": 7, "version": 1, "name": "unheard", "body": {"counter": {"maxValue": 5}}}}
        writes["SessionService/UnregisterServer"] = {"incarnation": self.client.register("unheard")}
        policy = self.client.call("AdminService/GetCluster", {})["policy"]
        calls = writes | OF_ETCD | {"AdminService/SetPolicy": {"policy": policy | {"version": policy["version"] + 1}}}
        frozen = [*self.cluster.nodes, *self.cluster.coordinators, self.cluster.etcd]
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            for process in frozen:
                process.signal(signal.SIGSTOP)
            try:
                told = {method: pool.submit(self.outcome, method, request, 1000)
                        for method, request in calls.items()}
                concurrent.futures.wait(told.values())
            finally:
                for process in frozen:
                    process.signal(signal.SIGCONT)
        codes = {method: code.result() for method, code in told.items()}  # Each was answered in time.
        self.assertEqual({method: codes[method] for method in writes},
                         {method: "OUTCOME_UNKNOWN" for method in writes})
        for method in OF_ETCD:
            self.assertIn(codes[method], (None, "UNAVAILABLE"), method)

    @staticmethod
    def of_admins(player):
        request = {"playerId": player, "authority": ADMIN}
        calls = {method: request | {"opId": uuid7()} for method in ERASURES}
        return calls | {"UserService/SetUserFlags": request | {"opId": uuid7(), "addRoles": ["judge"]}}

    def quietly(self, method, request):
        try:
            return self.outcome(method, request, MOVABLE)
        except Unanswered:
            return None

    def pair_of_owners(self):
        """Two players whose shards have different owners, each with 100 gold."""
        home = "holder"
        owner = dot_of(self.client.grant(home, 100))["owner"]
        for number in range(100):
            other = f"other-{number}"
            if dot_of(self.client.grant(other, 100))["owner"] != owner:
                return home, other
        raise AssertionError("one node owns all shards")

    def test_z_every_error_is_brought_about(self):
        missing = []
        for method, promised in api.PROMISED.items():
            for code, final in sorted(promised):
                where = UNIT_OF_METHOD.get((method, code, final), UNIT.get((code, final)))
                if (method, code, final) in api.SEEN or (method, code) in RACES:
                    continue
                if where is None or where[1] not in (ROOT / where[0]).read_text():
                    missing.append(f"{method}: {code}{', final' if final else ''}")
        self.assertEqual("\n".join(missing), "")


def filled(fields, player):
    """Execute names its player in each change."""
    changes = [{kind: {"playerId": player} | change for kind, change in each.items()}
               for each in fields.get("changes", [])]
    return fields | ({"changes": changes} if changes else {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
