"""A client (plain JSON over HTTP/1.1, keep-alive) that knows no more than curl would."""

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
PROMISED, RULES, ROUTES = TABLES.pairs(), TABLES.rules(), TABLES.routes()
TRACED = {"OUTCOME_UNKNOWN", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"}
# The member of `about` that a recorded refusal has, by code.
ABOUT = {"INSUFFICIENT_FUNDS": "funds", "VERSION_CONFLICT": "version", "SESSION_LOCKED": "holder",
         "ITEM_NOT_HELD": "item", "ALREADY_REVERSED": "entry", "RESERVATION_CLOSED": "entry",
         "CAPACITY_FULL": "capacity"}
# What a router may say before it has read the request.
UNREAD = {"INVALID_ARGUMENT", "TOO_LARGE", "UNAUTHENTICATED", "PERMISSION_DENIED", "THROTTLED", "UNAVAILABLE",
          "UNIMPLEMENTED", "DEADLINE_EXCEEDED"}
SEEN = set()  # (method, code, final) of every error that a router answered with.


class RpcError(Exception):
    """An answer that is an error. `code` is an ErrorCode without its prefix."""

    def __init__(self, status, body, method=None):
        self.status = status
        self.connect_code = body.get("code", "")
        detail = body.get("error", {})
        for entry in body.get("details", []):  # Connect's form, as streams have it.
            detail = entry.get("debug", {})
        self.detail = detail
        self.code = detail.get("code", "").removeprefix("ERROR_CODE_").upper()
        self.message = body.get("message", "")
        self.field = detail.get("field", "")
        self.limit = detail.get("limit", "")
        self.value = detail.get("value", "")
        self.outcome = detail.get("outcome", "").removeprefix("OUTCOME_").upper()
        self.action = detail.get("action", "").removeprefix("ACTION_").upper()
        self.final = self.outcome == "REFUSED"
        self.owner = detail.get("about", {}).get("holder", {}).get("incarnation", "")
        self.entity, self.op_id = detail.get("entity", ""), detail.get("opId", "")
        self.trace_id = detail.get("traceId", "")
        self.retry_after_ms = detail.get("retryAfterMs", 0)
        super().__init__(f"{status} {self.code} {self.message} {detail}")
        if method in PROMISED and self.code:
            self.hold_against_the_table(method)

    def hold_against_the_table(self, method):
        """What no page tells of must not be answered: idl/method_errors.h."""
        SEEN.add((method, self.code, self.final))
        assert (self.code, self.final) in PROMISED[method], f"not promised of {method}: {self}"
        rule = RULES[self.code]
        about, told = self.detail.get("about", {}), rule.told(self.final)
        if about.get("cameBack") or about.get("onItsWay"):
            told = ("REFUSED", "REREAD" if about.get("cameBack") else "RAISE_ATTEMPT")
        assert (self.outcome, self.action) == told, f"decision of {method}: {self}"
        if not self.final:
            passes = rule.course != "REFUSED"
            assert passes == (self.retry_after_ms > 0), f"retry_after_ms of {method}: {self}"
        if self.final:
            assert ABOUT.get(self.code) in (None, *self.detail.get("about", {})), f"facts of {method}: {self}"
        assert not self.trace_id or self.code in TRACED, f"trace_id of {method}: {self}"

    def hold_against_the_headers(self, headers):
        """What decides without a look at the body says the same."""
        words = headers.get("holdfast-error"), headers.get("holdfast-action")
        assert words == (self.code.lower(), self.action.lower()), f"{words}: {self}"
        wait_s = headers.get("retry-after")
        assert wait_s == (str(-(-self.retry_after_ms // 1000)) if self.retry_after_ms else None), self

    def hold_against_the_request(self, method, request):
        """Whose request it was, and which: of each one that a router has read."""
        if ROUTES.get(method) not in ("MUTATION", "READ") and method != "TransactionService/Swap":
            return
        player = request.get("a", request).get("playerId", "")
        if self.action == "STOP_WRITING":  # Of a transaction, perhaps another player's session is lost.
            player = self.detail.get("about", {}).get("playerId", player)
        entity = f"player:{player}" if well_formed(player, 100) else ""
        if "entity" in request:
            entity = request["entity"] if well_formed(request["entity"], 128) else ""
        op_id = request.get("opId", "") if well_formed(request.get("opId", ""), 160) else ""
        unread = self.code in UNREAD and not self.entity and not self.op_id
        if not unread:
            assert (self.entity, self.op_id) == (entity, op_id), f"{method} {request}: {self}"
        assert unread or self.code not in TRACED or self.trace_id, f"trace_id of {method}: {self}"


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
        status, headers, data = self.post(
            f"/holdfast.v1.{method}", json.dumps(request), {"connect-timeout-ms": str(deadline_ms)},
            deadline_ms / 1e3 + 5)
        answer = json.loads(data)
        if status != 200:
            error = RpcError(status, answer, method.removeprefix("holdfast.v1."))
            if error.code:
                error.hold_against_the_headers(headers)
                error.hold_against_the_request(method.removeprefix("holdfast.v1."), request)
            raise error
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
        return answer.get("balances", {}).get(currency, 0)

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
            "mode": mode.lower()} | more)

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


def well_formed(text, bytes_max):
    return 0 < len(text.encode()) <= bytes_max and all(ord(c) >= 32 and ord(c) != 127 for c in text)


def retryable(error):
    """Unknown, or not done: the same op_id may be sent again."""
    return error.code in ("OUTCOME_UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED", "THROTTLED")


UNHELD = "unheld"
PAYMENTS = "system:payments"


def session(token):
    return f"session:{token}"


def grant_of(player, amount, op_id=None, currency="gold", **more):
    return {"playerId": player, "opId": op_id or uuid7(), "authority": PAYMENTS,
            "currencies": {currency: amount}} | more


def uuid7(ahead_ms=0):
    now_ms = int(time.time() * 1000) + ahead_ms
    bits = now_ms << 80 | 7 << 76 | 2 << 62
    random = int.from_bytes(os.urandom(10), "big")
    bits |= (random >> 68 & 0xFFF) << 64 | random & (1 << 62) - 1
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
