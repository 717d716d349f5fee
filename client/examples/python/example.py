#!/usr/bin/env python3
"""
join -> grant -> leave over gRPC with grpcio. HOLDFAST_ENDPOINT names the router; the first argument
the player. The stubs in gen/ are made from idl/ by grpcio-tools: see README.md one folder up.

`carry_out` is docs/operations.md, "The rule for every caller", as code.
"""

import os
import pathlib
import random
import secrets
import sys
import time
import urllib.parse

import grpc
from grpc_status import rpc_status

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "gen"))
from holdfast.v1 import currency_pb2, error_pb2, ledger_pb2  # noqa: E402
from holdfast.v1 import ledger_pb2_grpc, profile_pb2, session_pb2, session_pb2_grpc  # noqa: E402
from holdfast.v1.error_pb2 import ErrorDetail  # noqa: E402

TRY_S = 5.0  # Deadline of one try.
UNKNOWN_PAUSE_S = 0.5


class Refused(Exception):
    """The operation was not carried out: `detail` says why."""

    def __init__(self, detail):
        super().__init__(f"{error_pb2.ErrorCode.Name(detail.code)}: {detail.message}")
        self.detail = detail


class Later(Exception):
    """Nothing was done, and there is no more time: `detail` says when to send the same again."""

    def __init__(self, detail):
        super().__init__(detail.message)
        self.detail = detail


class Unknown(Exception):
    """It may have been carried out: send the same again, or call ResolveOperation with seal."""


def detail_of(error: grpc.RpcError) -> ErrorDetail | None:
    """The service's word on a failed call; None: the library's own error, so the outcome is unknown."""
    status = rpc_status.from_call(error)
    for packed in status.details if status else ():
        detail = ErrorDetail()
        if packed.Unpack(detail):
            return detail
    return None


def settles(detail):
    """It tells what became of the operation, not only of this try."""
    return (detail.outcome == error_pb2.OUTCOME_REFUSED
            or detail.code == error_pb2.ERROR_CODE_OPERATION_ID_MISMATCH)


def is_unknown(detail):
    return detail is None or detail.outcome == error_pb2.OUTCOME_UNKNOWN


def carry_out(method, request, patience_s=30.0):
    """The answer. Raises Refused, Later or Unknown; sends the same bytes until it knows."""
    end = time.monotonic() + patience_s
    unknown = False  # Of any try so far.
    while True:
        try:
            return method(request, timeout=TRY_S)
        except grpc.RpcError as error:
            detail = detail_of(error)
        if is_unknown(detail):
            unknown, pause_s = True, UNKNOWN_PAUSE_S
        elif detail.action == error_pb2.ACTION_RETRY_SAME:
            pause_s = detail.retry_after_ms / 1000
        elif unknown and not settles(detail):
            raise Unknown("a later try was refused, which says nothing of the earlier one")
        else:
            raise Refused(detail)  # detail.action says what to do instead.
        pause_s *= random.uniform(1.0, 1.2)
        if time.monotonic() + pause_s > end:
            raise Unknown("no answer in time") if unknown else Later(detail)
        time.sleep(pause_s)


def op_id():
    """A UUIDv7: 48 bits of time, then random."""
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 7 << 76
    text = f"{number & ~(3 << 62) | 2 << 62:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def main():
    player = sys.argv[1] if len(sys.argv) > 1 else "python-player"
    endpoint = os.environ.get("HOLDFAST_ENDPOINT", "http://127.0.0.1:7400")
    with grpc.insecure_channel(urllib.parse.urlsplit(endpoint).netloc) as channel:
        play(session_pb2_grpc.SessionServiceStub(channel),
             ledger_pb2_grpc.LedgerServiceStub(channel), player)


def play(sessions, ledger, player):
    server = carry_out(sessions.RegisterServer,
                       session_pb2.RegisterServerRequest(name="python-example"))

    # Join: the answer carries the token for every later write, and the whole profile.
    joined = carry_out(sessions.StartSession, session_pb2.StartSessionRequest(
        player_id=player, op_id=op_id(), incarnation=server.incarnation,
        mode=session_pb2.START_MODE_STEAL))
    authority = f"session:{joined.token}"
    print(f"joined: version {joined.profile.version}, fence {joined.fence}")

    # Grant. Sent twice under one op_id, as after a lost answer: carried out once.
    grant = ledger_pb2.GrantRequest(
        player_id=player, op_id=op_id(), authority=authority, reason="match_reward",
        currencies=[currency_pb2.CurrencyAmount(currency="gold", amount=100)])
    granted = carry_out(ledger.Grant, grant)
    again = carry_out(ledger.Grant, grant)
    print(f"granted: balance {granted.balances[0].amount}, on "
          f"{granted.write.replicas_fsynced} disks; again: duplicate {again.write.duplicate}")

    # Leave: a last save and the release, in one entry.
    carry_out(sessions.EndSession, session_pb2.EndSessionRequest(
        player_id=player, op_id=op_id(), authority=authority,
        edits=[profile_pb2.SectionEdit(name="progression", schema_version=1,
                                       merge='{"last_map":"harbour"}')]))
    carry_out(sessions.UnregisterServer,
              session_pb2.UnregisterServerRequest(incarnation=server.incarnation))
    found = carry_out(ledger.GetBalances, ledger_pb2.GetBalancesRequest(player_id=player))
    print("balance: " + ", ".join(f"{each.currency} {each.amount}" for each in found.balances))


if __name__ == "__main__":
    main()
