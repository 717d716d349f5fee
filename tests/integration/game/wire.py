"""
Calls over stock gRPC, with a journal: a line before a call is sent, a line when it is answered. A
process that dies leaves calls without an answer: their outcome is unknown.
"""

import importlib
import itertools
import json
import os
import time
import uuid

import grpc
import status_pb2
from google.protobuf import json_format
from holdfast.v1 import error_pb2

CONNECT_S = 0.2
OPTIONS = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.min_reconnect_backoff_ms", 50),
           ("grpc.max_reconnect_backoff_ms", 300), ("grpc.enable_retries", 0)]
FILES = {"SessionService": "session", "LedgerService": "ledger", "InventoryService": "inventory",
         "MailboxService": "mailbox", "ProfileService": "profile", "OperationService": "operation_service",
         "TransactionService": "transaction"}


KINDS = {"OUTCOME_UNKNOWN": "unknown", "OUTCOME_REFUSED": "refused", "OUTCOME_NOT_APPLIED": "not_done"}


def uuid7():
    """An op_id: made before the first try, and kept."""
    bits = int(time.time() * 1000) << 80 | 7 << 76 | int.from_bytes(os.urandom(10), "big") & ~(0xF << 76)
    return str(uuid.UUID(int=bits & ~(3 << 62) | 2 << 62))


def as_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


class Methods:
    """Full names of methods, and their messages."""

    def __init__(self):
        self.found = {}
        for service, file in FILES.items():
            module = importlib.import_module(f"holdfast.v1.{file}_pb2")
            for method in module.DESCRIPTOR.services_by_name[service].methods:
                request = getattr(module, method.input_type.name)
                response = getattr(module, method.output_type.name)
                self.found[f"{service}/{method.name}"] = (request, response)


class Failure(Exception):
    """A call that was not answered with a result. `kind`: refused, not_done or unknown."""

    def __init__(self, kind, code, wait_ms=0, owner=""):
        super().__init__(f"{kind} {code}")
        self.kind, self.code, self.wait_ms, self.owner = kind, code, wait_ms, owner


def failure_of(error):
    """docs/operations.md as code. A status without our detail is the client's own: unknown."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for packed in status_pb2.Status.FromString(value).details:
            detail = error_pb2.ErrorDetail()
            if packed.Unpack(detail):
                return failure_of_detail(detail)
    return Failure("unknown", f"grpc:{error.code().name}"), {"grpc": error.details() or ""}


def failure_of_detail(detail):
    code = error_pb2.ErrorCode.Name(detail.code).removeprefix("ERROR_CODE_")
    kind = KINDS[error_pb2.Outcome.Name(detail.outcome)]
    return Failure(kind, code, detail.retry_after_ms, detail.about.holder.incarnation), as_dict(detail)


SIDES = ("a", ""), ("b", "other_")  # Of a Swap: the prefix of its fields in journals.


def formed(method, fields):
    """A request as it is sent. Journals, and players, know each one in one level: whose it is, and the rest."""
    fields = dict(fields)
    if method == "MailboxService/DeliverMail":
        return fields | {"to_player_ids": [fields.pop("player_id")]}
    if method != "TransactionService/Swap":
        return fields
    for side, prefix in SIDES:
        gives = {name: fields.pop(prefix + name) for name in ("currencies", "item_uids")
                 if prefix + name in fields}
        fields[side] = {"player_id": fields.pop(prefix + "player_id"),
                        "authority": fields.pop(prefix + "authority"), "gives": gives}
    return fields


def flat(method, fields):
    """The same, back."""
    fields = dict(fields)
    if method == "MailboxService/DeliverMail":
        return {"player_id": fields.pop("to_player_ids")[0]} | fields
    if method != "TransactionService/Swap":
        return fields
    for side, prefix in SIDES:
        of = fields.pop(side)
        of |= of.pop("gives", {})
        fields |= {prefix + name: value for name, value in of.items()}
    return fields


class Journal:
    """One file of one process; a line is one write, so that a killed process leaves whole lines."""

    def __init__(self, directory, name):
        self.name, self.numbers = name, itertools.count(1)
        self.file = os.open(os.path.join(directory, f"{name}.jsonl"),
                            os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, record):
        os.write(self.file, (json.dumps(record, separators=(",", ":")) + "\n").encode())

    def sent(self, method, request):
        call = f"{self.name}:{next(self.numbers)}"
        self.write({"call": call, "at": time.monotonic_ns(), "method": method, "request": flat(method, as_dict(request))})
        return call

    def answered(self, call, kind, answer):
        self.write({"answer": call, "at": time.monotonic_ns(), "kind": kind, "with": answer})


class Wire:
    """Calls any of the routers; another one after a call that was not answered."""

    def __init__(self, journal, routers):
        self.journal, self.methods = journal, Methods()
        self.channels = [grpc.insecure_channel(router, OPTIONS) for router in routers]
        self.turn = 0

    def message(self, method, **fields):
        return json_format.ParseDict(formed(method, fields), self.methods.found[method][0]())

    def send(self, method, request, timeout_s=5):
        """The answer; raises Failure. Journalled."""
        call = self.journal.sent(method, request)
        response = self.methods.found[method][1]
        stub = self.channels[self.turn % len(self.channels)].unary_unary(
            f"/holdfast.v1.{method}", request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString)
        try:
            answer = stub(request, timeout=timeout_s)
        except grpc.RpcError as error:
            failure, said = failure_of(error)
            self.journal.answered(call, failure.kind, {"code": failure.code} | {"said": said})
            if failure.kind == "unknown" or failure.code == "UNAVAILABLE":
                self.turn += 1
            raise failure from None
        if method == "MailboxService/DeliverMail":  # A batch of one.
            answer, = answer.results
            if answer.WhichOneof("outcome") == "error":
                failure, said = failure_of_detail(answer.error)
                self.journal.answered(call, failure.kind, {"code": failure.code} | {"said": said})
                raise failure
            answer = answer.response
        self.journal.answered(call, "ok", self.readable(method, answer))
        return answer

    def readable(self, method, answer):
        found = as_dict(answer)
        kind = answer.operation.WhichOneof("result") if "operation" in found else None
        if kind is not None:
            found["operation"]["result"] = found["operation"].pop(kind)
        return found

    def call(self, method, timeout_s=5, **fields):
        return self.send(method, self.message(method, **fields), timeout_s)
