"""
The smallest mutation of a player that each method takes, for tests that drive every one of them: valid in itself; what it
names may not be there. A method gets what FIELDS has for the fields of its request, unless it has a row of its own: a new
one whose fields are the usual ones needs nothing here.
"""

import re

import client as api
from cluster import ROOT

UNHELD = api.UNHELD
EDIT = [{"name": "progression", "schemaVersion": 1, "merge": {"xp": 1}}]
NO_ITEM = ["0" * 32]


def gold(amount):
    return {"gold": amount}


FIELDS = {
    "currencies": gold(1),
    "edits": EDIT,
    "item_uids": NO_ITEM,
    "mail_ids": NO_ITEM,
    "reserve_op_id": "claim:none",
    "target_id": "pong",
    "target_op_id": "claim:none",
    "to_player_id": "receiver",
}
# Of a request that has both, the first alone.
INSTEAD = {"item_uids": "currencies"}
OWN = {
    "LedgerService/ReserveCurrencies": {"currencies": gold(1), "expiresInMs": 60000},
    "LedgerService/PostReservation": {"reserveOpId": "claim:none"},
    "LedgerService/ReverseEntry": {"targetOpId": "claim:none", "reason": "test"},
    "TransactionService/ExecuteTransaction": {"changes": [{"spend": {"currencies": gold(1)}}]},
    "TransactionService/Swap": {"b": {"playerId": "other", "authority": UNHELD}, "currencies": gold(1)},
    "MailboxService/DeliverMail": {"text": "hello"},
    "UserService/ClaimName": {"name": "ada", "tag": "1"},
    "UserService/ReleaseName": {"name": "ada", "tag": "1", "number": 1},
    "CounterService/AddToCounter": {"counter": "plays", "targetId": "pong", "amount": 1},
}
# They are of no use to a test that does not know who holds the player, or what became of it.
LEFT_OUT = {"SessionService/StartSession", "OperationService/ResolveOperation", "AdminService/ReleaseQuarantine",
            "AdminService/RepairPlayer", "AdminService/AcceptEdges", "AdminService/RejectEdges", "AdminService/FlagEdges",
            "ErasureService/ErasePlayer", "ErasureService/RestorePlayer", "UserService/SetUserFlags"}


def json_name(field):
    return re.sub(r"_(\w)", lambda m: m[1].upper(), field)


def fields_of(method, protos):
    body = re.search(rf"message {method.split('/')[1]}Request {{(.*?)\n}}", protos, re.DOTALL)[1]
    return re.findall(r"^  (?:repeated |optional )?\w+ (\w+) = \d+", body, re.MULTILINE)


def smallest(method, protos):
    fields = [f for f in fields_of(method, protos) if f in FIELDS]
    return {json_name(f): FIELDS[f] for f in fields if INSTEAD.get(f) not in fields}


def player_writes():
    """Method -> what its request has besides player_id, op_id and authority."""
    protos = "\n".join(path.read_text() for path in sorted((ROOT / "idl/holdfast/v1").glob("*.proto")))
    found = {method: smallest(method, protos) for method, route in api.TABLES.routes().items()
             if route == "MUTATION" and method in api.PROMISED and method not in OWN.keys() | LEFT_OUT}
    return found | OWN
