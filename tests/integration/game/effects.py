"""What a committed operation must have done, by the pages of the API: to whom, and how much."""

import collections


class Effect:
    """What an operation changes at one player: net amounts, items that come and go."""

    def __init__(self):
        self.money = collections.Counter()
        self.came, self.went = collections.Counter(), collections.Counter()

    def add(self, currencies=(), sign=1, came=(), went=()):
        for amount in currencies:
            self.money[amount["currency"]] += sign * int(amount["amount"])
        self.came.update(came)
        self.went.update(went)
        return self

    def net(self):
        """Comparable; what came and went again in one operation is nothing."""
        return ({name: n for name, n in self.money.items() if n},
                dict(self.came - self.went), dict(self.went - self.came))


class Effects(collections.defaultdict):
    """{(player, op_id): Effect}"""

    def __init__(self):
        super().__init__(Effect)

    def at(self, player, op):
        return self[player, op.op_id]


def uids(items):
    return [item["uid"] for item in items]


def grant(op, effects, _mails):
    effects.at(op.home, op).add(op.request.get("currencies", ()), came=op.result.get("item_uids", ()))


def take(op, effects, _mails):
    """Spend, and both kinds of Transfer, which put into a mailbox what they take."""
    effects.at(op.home, op).add(op.request.get("currencies", ()), -1, went=op.request.get("item_uids", ()))


def claim(op, effects, mails):
    for mail_id in op.request["mail_ids"]:
        mail = mails[mail_id]
        effects.at(op.home, op).add(mail.currencies, came=mail.items)


def swap(op, effects, _mails):
    request = op.request
    mine, theirs = effects.at(op.home, op), effects.at(request["other_player_id"], op)
    gives, gets = request.get("currencies", ()), request.get("other_currencies", ())
    items, others = request.get("item_uids", ()), request.get("other_item_uids", ())
    mine.add(gives, -1, went=items).add(gets, came=others)
    theirs.add(gets, -1, went=others).add(gives, came=items)


def execute(op, effects, _mails):
    for change in op.request["changes"]:
        (kind, what), = change.items()
        if kind == "move":
            effects.at(what["from_player_id"], op).add(what["currencies"], -1)
            effects.at(what["to_player_id"], op).add(what["currencies"])
        elif kind == "grant":
            effects.at(what["player_id"], op).add(what["currencies"])
        else:
            raise AssertionError(f"a {kind} is not played")


def nothing(_op, _effects, _mails):
    """Sessions and saves, which no ledger has; mail, whose goods count once they are claimed."""


DOES = {
    "LedgerService/Grant": grant, "LedgerService/Spend": take,
    "LedgerService/TransferCurrencies": take, "InventoryService/TransferItems": take,
    "MailboxService/SendMail": take, "MailboxService/ClaimMail": claim, "TransactionService/Swap": swap,
    "TransactionService/ExecuteTransaction": execute, "SessionService/StartSession": nothing, "MailboxService/DeliverMail": nothing,
    "SessionService/EndSession": nothing, "ProfileService/UpdateProfile": nothing,
}
MAILS = {"LedgerService/TransferCurrencies", "InventoryService/TransferItems", "MailboxService/SendMail",
         "MailboxService/DeliverMail"}


class Mail:
    """What a committed operation put into a mailbox."""

    def __init__(self, op):
        self.op = op
        self.currencies = op.request.get("currencies", ())
        self.items = list(op.request.get("item_uids", ()))
        self.to = op.request.get("to_player_id") or op.home
        if op.method == "MailboxService/DeliverMail":
            self.items += uids(op.result.get("items", ()))


def mails_of(committed):
    return {op.result["mail_id"]: Mail(op) for op in committed if op.method in MAILS}


def effects_of(committed, mails):
    """What the ledgers must show. Raises KeyError for a claim of mail that was never sent."""
    found = Effects()
    for op in committed:
        DOES[op.method](op, found, mails)
    return found


def shown(finals):
    """The same from the ledgers themselves."""
    found = Effects()
    for player, final in finals.items():
        for entry in final["entries"]:
            if entry["kind"] == "LEDGER_KIND_MAIL":
                continue  # It lies in the mailbox: no player has it before the CLAIM.
            moved = uids(entry.get("items", ()))
            taken = entry.get("items_taken") or entry["kind"] in (
                "LEDGER_KIND_TRANSFER", "LEDGER_KIND_TXN_TAKE")
            found[player, entry["op_id"]].add(
                [{"currency": c["currency"], "amount": c.get("amount", 0)} for c in entry.get("changes", ())],
                came=() if taken else moved, went=moved if taken else ())
    return found
