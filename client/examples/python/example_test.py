#!/usr/bin/env python3
"""Each row of docs/operations.md, "The rule for every caller", against a stock gRPC server."""

import concurrent.futures
import pathlib
import unittest

import example
import grpc
from google.protobuf import any_pb2
from google.rpc import status_pb2
from grpc_status import rpc_status
from holdfast.v1 import error_pb2, ledger_pb2, ledger_pb2_grpc

OK = object()
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/operations.md"


def error(name, retry_after_ms=0, action=None, outcome="NOT_APPLIED", status=grpc.StatusCode.ABORTED):
    """The service's own: with its detail."""
    action = action or ("RETRY_SAME" if retry_after_ms else "FIX")
    detail = error_pb2.ErrorDetail(code=getattr(error_pb2, f"ERROR_CODE_{name}"),
                                   outcome=f"OUTCOME_{outcome}", action=f"ACTION_{action}",
                                   message=name, retry_after_ms=retry_after_ms)
    packed = any_pb2.Any()
    packed.Pack(detail)
    return rpc_status.to_status(status_pb2.Status(code=status.value[0], details=[packed]))


class Ledger(ledger_pb2_grpc.LedgerServiceServicer):
    """Plays one scripted answer per try."""

    def __init__(self):
        self.script, self.tries = [], []

    def Grant(self, request, context):
        self.tries.append(request.SerializeToString(deterministic=True))
        answer = self.script[len(self.tries) - 1]
        if answer is OK:
            return ledger_pb2.GrantResponse(ledger_seq=7)
        if isinstance(answer, grpc.StatusCode):
            context.abort(answer, "without a detail")
        context.abort_with_status(answer)


class Decisions(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        ledger_pb2_grpc.add_LedgerServiceServicer_to_server(self.ledger, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.grant = ledger_pb2_grpc.LedgerServiceStub(self.channel).Grant

    def tearDown(self):
        self.channel.close()
        self.server.stop(0).wait()

    def carry_out(self, *script, patience_s=10.0):
        self.ledger.script, self.ledger.tries = list(script), []
        try:
            answer = example.carry_out(
                self.grant, ledger_pb2.GrantRequest(op_id=example.op_id()), patience_s)
            return "answer", answer.ledger_seq
        except (example.Refused, example.Later, example.Unknown) as outcome:
            return type(outcome).__name__, None
        finally:
            self.assertEqual(len(self.ledger.tries), len(script))
            self.assertEqual(len(set(self.ledger.tries)), 1, "not the same again")

    def test_an_answer(self):
        self.assertEqual(self.carry_out(OK), ("answer", 7))

    def test_a_status_without_our_detail_is_unknown_and_sent_again(self):
        for status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                       grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
            self.assertEqual(self.carry_out(status, OK)[0], "answer")
            self.assertEqual(self.carry_out(status, patience_s=0.1)[0], "Unknown")

    def test_outcome_unknown(self):
        unknown = error("OUTCOME_UNKNOWN", 500, outcome="UNKNOWN")
        self.assertEqual(self.carry_out(unknown, OK)[0], "answer")
        self.assertEqual(self.carry_out(unknown, patience_s=0.1)[0], "Unknown")

    def test_a_recorded_outcome_is_refused(self):
        for wait_ms in (0, 900):
            self.assertEqual(self.carry_out(
                error("SESSION_LOCKED", wait_ms, "RAISE_ATTEMPT", "REFUSED"))[0], "Refused")
        self.assertEqual(self.carry_out(error("OPERATION_ID_MISMATCH", action="NEVER"))[0], "Refused")

    def test_what_may_pass_is_waited_out(self):
        self.assertEqual(self.carry_out(
            error("UNAVAILABLE", 10, status=grpc.StatusCode.UNAVAILABLE),
            error("DEADLINE_EXCEEDED", 10, status=grpc.StatusCode.DEADLINE_EXCEEDED),
            error("TXN_CONFLICT", 10), error("THROTTLED", 10), OK)[0], "answer")
        self.assertEqual(self.carry_out(error("QUARANTINED", 60000))[0], "Later")

    def test_what_waiting_does_not_help_is_refused(self):
        self.assertEqual(self.carry_out(error("INVALID_ARGUMENT"))[0], "Refused")
        self.assertEqual(self.carry_out(error("UNAUTHENTICATED"))[0], "Refused")

    def test_an_earlier_try_stays_unknown_until_something_settles_it(self):
        lost = grpc.StatusCode.UNAVAILABLE
        self.assertEqual(self.carry_out(lost, error("UNAUTHENTICATED"))[0], "Unknown")
        self.assertEqual(self.carry_out(lost, error("OPERATION_EXPIRED", action="NEVER"))[0], "Unknown")
        self.assertEqual(self.carry_out(lost, error("QUARANTINED", 60000))[0], "Unknown")
        self.assertEqual(self.carry_out(
            lost, error("SESSION_LOST", 0, "STOP_WRITING", "REFUSED"))[0], "Refused")
        self.assertEqual(self.carry_out(
            lost, error("OPERATION_ID_MISMATCH", action="NEVER"))[0], "Refused")

    def test_nobody_listening_is_unknown(self):
        self.server.stop(0).wait()
        self.ledger.script, self.ledger.tries = [], []
        with self.assertRaises(example.Unknown):
            example.carry_out(self.grant, ledger_pb2.GrantRequest(), 0.1)

    def test_op_ids_are_version_7(self):
        self.assertRegex(example.op_id(), "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]")

    def test_the_page_shows_the_code_that_runs(self):
        shown = PAGE.read_text().split("```python\n")[1].split("```")[0]
        self.assertIn(shown, pathlib.Path(example.__file__).read_text())


if __name__ == "__main__":
    unittest.main()
