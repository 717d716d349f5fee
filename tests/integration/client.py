"""A Connect client (JSON over HTTP/1.1, keep-alive) that knows no more than curl would."""

import contextlib
import http.client
import importlib
import json
import os
import pathlib
import sys
import threading
import time
import urllib.parse


ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
TABLES = importlib.import_module("error_tables")
PROMISED, RULES = TABLES.pairs(), TABLES.rules()
SEEN = set()  # (method, code, final) of every error that a router answered with.


class RpcError(Exception):
    """An answer that is an error. `code` is an ErrorCode without its prefix."""

    def __init__(self, status, body, method=None):
        self.status = status
        self.connect_code = body.get("code", "")
        detail = {}
        for entry in body.get("details", []):
            detail = entry.get("debug", {})
        self.detail = detail
        self.code = detail.get("code", "").removeprefix("ERROR_CODE_")
        self.message = body.get("message", "")
        self.field = detail.get("field", "")
        self.limit = detail.get("limit", "")
        self.value = detail.get("value", "")
        self.final = detail.get("final", False)
        self.owner = detail.get("owner", "")
        self.retry_after_ms = detail.get("retryAfterMs", 0)
        super().__init__(f"{status} {self.code} {self.message} {detail}")
        if method in PROMISED and self.code:
            self.hold_against_the_table(method)

    def hold_against_the_table(self, method):
        """What no page tells of must not be answered: idl/method_errors.h."""
        SEEN.add((method, self.code, self.final))
        assert (self.code, self.final) in PROMISED[method], f"not promised of {method}: {self}"
        if not self.final:
            passes = RULES[self.code][0] != "REFUSED"
            assert passes == (self.retry_after_ms > 0), f"retry_after_ms of {method}: {self}"


class Unanswered(Exception):
    """No answer came: the call may or may not have been carried out."""


class Client:
    """Calls one router. Each thread has a connection of its own."""

    def __init__(self, endpoint, key=None):
        url = urllib.parse.urlsplit(endpoint)
        self.headers = {"authorization": f"Bearer {key}"} if key else {}
        self.host, self.port = url.hostname, url.port
        self.local = threading.local()

    def connection(self, timeout_s):
        conn = getattr(self.local, "conn", None)
        if conn is None:
            conn = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
            self.local.conn = conn
        conn.timeout = timeout_s
        if conn.sock is not None:
            conn.sock.settimeout(timeout_s)
        return conn

    def drop(self):
        conn = getattr(self.local, "conn", None)
        if conn is not None:
            conn.close()
        self.local.conn = None

    def post(self, path, body, headers=None, timeout_s=30):
        """(status, headers, bytes); Unanswered when the connection ends without an answer."""
        conn = self.connection(timeout_s)
        try:
            conn.request("POST", path, body, {"content-type": "application/json"} | self.headers |
                         (headers or {}))
            answer = conn.getresponse()
            data = answer.read()
            return answer.status, answer.headers, data
        except (OSError, http.client.HTTPException) as error:
            self.drop()
            raise Unanswered(f"{path}: {error!r}") from error

    def call(self, method, request, deadline_ms=30000):
        """One call, no retries. `method` as "LedgerService/Grant"; raises RpcError, Unanswered."""
        status, _, data = self.post(f"/holdfast.v1.{method}", json.dumps(request),
                                    {"connect-timeout-ms": str(deadline_ms)}, deadline_ms / 1e3 + 5)
        answer = json.loads(data)
        if status != 200:
            raise RpcError(status, answer, method.removeprefix("holdfast.v1."))
        return answer

    def settle(self, method, request, patience_s=90):
        """Repeats a call under the same op_id until its outcome is known."""
        end = time.monotonic() + patience_s
        while True:
            try:
                return self.call(method, request, 10000)
            except Unanswered:
                if time.monotonic() > end:
                    raise
            except RpcError as error:
                if not retryable(error) or time.monotonic() > end:
                    raise
            time.sleep(0.02)

    # The calls that nearly every test makes.

    def grant(self, player, amount, op_id=None, currency="gold", **more):
        return self.call("LedgerService/Grant", grant_of(player, amount, op_id, currency, **more))

    def balance(self, player, currency="gold", **more):
        answer = self.call("LedgerService/GetBalances", {"playerId": player} | more)
        return {b["currency"]: int(b.get("amount", 0))
                for b in answer.get("balances", [])}.get(currency, 0)

    def entries(self, player):
        """The player's whole ledger, oldest first."""
        found, cursor = [], ""
        while True:
            page = self.call("LedgerService/ListEntries", {
                "playerId": player, "ascending": True, "pageSize": 200, "cursor": cursor})
            found += page.get("entries", [])
            cursor = page.get("nextCursor", "")
            if not cursor:
                return found

    def register(self, name, ttl_ms=10000):
        return self.call("SessionService/RegisterServer",
                         {"name": name, "ttlMs": ttl_ms})["incarnation"]

    def start(self, player, incarnation, mode="FAIL", op_id=None, **more):
        return self.call("SessionService/StartSession", {
            "playerId": player, "opId": op_id or uuid7(), "incarnation": incarnation,
            "mode": f"START_MODE_{mode}"} | more)

    def renew(self, incarnation, *sessions):
        return self.call("SessionService/RenewSessions", {
            "incarnation": incarnation,
            "sessions": [{"playerId": player, "token": token} for player, token in sessions]}, 5000)

    def end(self, player, token, op_id=None, **more):
        return self.call("SessionService/EndSession", {
            "playerId": player, "opId": op_id or uuid7(), "authority": session(token)} | more)

    def update(self, player, token, *edits, op_id=None, **more):
        return self.call("ProfileService/UpdateProfile", {
            "playerId": player, "opId": op_id or uuid7(), "edits": list(edits),
            "authority": session(token) if token else UNHELD} | more)

    def profile(self, player, **more):
        return self.call("ProfileService/GetProfile", {"playerId": player} | more)["profile"]

    def shards(self):
        return self.call("AdminService/ListShards", {}).get("shards", [])

    def nodes(self):
        return self.call("AdminService/GetCluster", {}).get("nodes", [])


class Heartbeat:
    """A game server's heart: renews its sessions twice a second until the end of the `with`."""

    def __init__(self, client, incarnation, *sessions):
        self.client, self.incarnation, self.sessions = client, incarnation, sessions
        self.stopping = threading.Event()
        self.lost = []  # Every token that an answer called lost.
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopping.wait(0.5):
            with contextlib.suppress(RpcError, Unanswered):  # The next one tells.
                self.lost += self.client.renew(self.incarnation, *self.sessions).get("lost", [])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.stop()

    def stop(self):
        self.stopping.set()
        self.thread.join(60)


def retryable(error):
    """Unknown, or not done: the same op_id may be sent again."""
    return error.code in ("OUTCOME_UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED", "THROTTLED")


UNHELD = "unheld"
PAYMENTS = "system:payments"


def session(token):
    return f"session:{token}"


def grant_of(player, amount, op_id=None, currency="gold", **more):
    return {"playerId": player, "opId": op_id or uuid7(), "authority": PAYMENTS,
            "currencies": [{"currency": currency, "amount": str(amount)}]} | more


def uuid7(ahead_ms=0):
    now_ms = int(time.time() * 1000) + ahead_ms
    bits = now_ms << 80 | 7 << 76 | 2 << 62
    random = int.from_bytes(os.urandom(10), "big")
    bits |= (random >> 68 & 0xFFF) << 64 | random & (1 << 62) - 1
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
