"""
Journals as calls and operations. Python's library alone.

A line of a journal is one of:

    {"call": ID, "at": NS, "method": "LedgerService/Grant", "request": {..}}      before it is sent
    {"answer": ID, "at": NS, "kind": "ok", "with": {..}}                          the answer
    {"answer": ID, "at": NS, "kind": "refused" | "not_done" | "unknown", "with": {"code": .., ..}}
    {"final": PLAYER, ..}                                                         all a player has, in the end

Times are of one clock. A call without an answer is one whose process died: its outcome is unknown.
A batch counts as its elements; each has the batch's times.
"""

import collections
import json
import math

BATCHED = {"LedgerService/BatchGrant": "LedgerService/Grant"}
READS = {"ProfileService/GetProfile", "LedgerService/GetBalances", "InventoryService/ListItems",
         "MailboxService/ListMail", "LedgerService/ListEntries"}
ASKS = {"OperationService/GetOperation", "OperationService/ResolveOperation"}
# An answer tells of the request, too, what differs between the first one and a repetition.
NOT_STORED = ("duplicate", "replicas_fsynced")
# What only the caller of the method is told, not who asks for the outcome of an operation.
CALLERS_OWN = ("profile", "token")


class Call:
    def __init__(self, name, at, method, request):
        self.name, self.begin, self.method, self.request = name, at, method, request
        self.end, self.kind, self.answer = math.inf, "unknown", {}

    def answered(self, at, kind, answer):
        self.end, self.kind, self.answer = at, kind, answer

    @property
    def code(self):
        return self.answer.get("code", "")

    @property
    def attempt(self):
        return int(self.request.get("attempt", 0))


class Operation:
    """All calls of one op_id at one home player, and what was asked about it. Callers keep to one request."""

    def __init__(self, home, op_id):
        self.home, self.op_id = home, op_id
        self.calls, self.asks = [], []  # By time of sending.

    @property
    def method(self):
        return self.calls[0].method

    @property
    def request(self):
        return self.calls[0].request

    @property
    def begin(self):
        return self.calls[0].begin

    @property
    def resolved(self):
        return [call for call in self.asks if call.method.endswith("ResolveOperation") and call.kind == "ok"]

    def states(self):
        return [(call, state_of(call.answer)) for call in self.asks if call.kind == "ok"]

    @property
    def result(self):
        """Of a committed one: the answer as it is stored. None: it is not known to have committed."""
        for call in self.calls:
            if call.kind == "ok":
                return stored(call.answer)
        for call, state in self.states():
            if state == "COMMITTED":
                return stored(call.answer["operation"].get("result", {}))
        return None

    @property
    def token(self):
        """Of a StartSession that was answered, what its callers were told."""
        return next((call.answer["token"] for call in self.calls if call.kind == "ok"), None)

    @property
    def told(self):
        """Whether its outcome is settled: carried out, refused for its highest attempt, or sealed."""
        if self.result is not None:
            return True
        highest = max(call.attempt for call in self.calls)
        if any(call.kind == "refused" and call.attempt == highest for call in self.calls):
            return True
        if any(call.code == "OPERATION_ID_MISMATCH" for call in self.calls):
            return all(call.code == "OPERATION_ID_MISMATCH" for call in self.calls)
        return any(state in ("ABORTED", "REFUSED", "EXPIRED") for call, state in self.states()
                   if call in self.resolved)


def state_of(answer):
    return answer.get("operation", {}).get("state", "").removeprefix("OPERATION_STATE_")


def stored(answer):
    """What of an answer is the same each time, to all who may see it. A profile is read when answering."""
    kept = {name: value for name, value in answer.items() if name not in CALLERS_OWN}
    if "write" in kept:
        kept["write"] = {name: value for name, value in kept["write"].items() if name not in NOT_STORED}
    return kept


def elements(call):
    """A batch's calls."""
    results = call.answer.get("results", [])
    for place, request in enumerate(call.request["requests"]):
        element = Call(f"{call.name}#{place}", call.begin, BATCHED[call.method], request)
        if call.kind != "ok":
            element.answered(call.end, call.kind, call.answer)
        elif "response" in results[place]:
            element.answered(call.end, "ok", results[place]["response"])
        else:
            said = results[place]["error"]
            code = said["code"].removeprefix("ERROR_CODE_")
            kind = {"OUTCOME_UNKNOWN": "unknown", "OUTCOME_REFUSED": "refused"}.get(said["outcome"], "not_done")
            element.answered(call.end, kind, {"code": code, "said": said})
        yield element


def records(directory):
    for path in sorted(directory.glob("*.jsonl")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)


def read_records(found):
    """(calls by time of sending, final states by player)"""
    calls, finals = {}, {}
    for record in found:
        if "call" in record:
            assert record["call"] not in calls, f"{record['call']} was sent twice under one name"
            calls[record["call"]] = Call(record["call"], record["at"], record["method"], record["request"])
        elif "answer" in record:
            calls[record["answer"]].answered(record["at"], record["kind"], record["with"])
        else:
            finals[record["final"]] = record
    flat = []
    for call in calls.values():
        flat += elements(call) if call.method in BATCHED else [call]
    return sorted(flat, key=lambda call: call.begin), finals


def load(directory):
    return read_records(records(directory))[0]


def operations(calls):
    """{(home, op_id): Operation} of what was sent to be carried out."""
    found = collections.OrderedDict()
    for call in calls:
        if "op_id" in call.request and call.method not in ASKS | READS:
            key = call.request["player_id"], call.request["op_id"]
            found.setdefault(key, Operation(*key)).calls.append(call)
    for call in calls:
        if call.method in ASKS:
            key = call.request["entity"].removeprefix("player:"), call.request["op_id"]
            if key in found:
                found[key].asks.append(call)
    return found
