"""
Lies for the judge: each changes the journals of a run that was judged to be well, and names the judgement
that must see it. A judge that believes one, or a judgement that sees none, is worth nothing.
"""

import copy
import json

import check
import journal


class Story:
    """A copy of all records that may be changed."""

    def __init__(self, lines, case, dice):
        self.records, self.case, self.dice = [json.loads(line) for line in lines], case, dice
        self.calls = {r["call"]: r for r in self.records if "call" in r}
        self.answers = {r["answer"]: r for r in self.records if "answer" in r}
        self.finals = {r["final"]: r for r in self.records if "final" in r}

    def op(self, *methods, want=lambda op: True):
        """A committed operation of one of these methods."""
        return self.dice.choice([op for op in self.case.committed if op.method in methods and want(op)])

    def sealed(self):
        """One that is sealed as never, and was asked for."""
        return self.dice.choice([op for op in self.case.ops.values() if op.method == "LedgerService/Spend"
                                 and any(state == "ABORTED" and call in op.resolved for call, state in op.states())])

    def answered(self, call):
        return self.answers[call.name]["with"]

    def player(self, want):
        return self.dice.choice([final for final in self.finals.values() if want(final)])

    def remove(self, *calls):
        names = {call.name for call in calls}
        self.records = [r for r in self.records if r.get("call", r.get("answer")) not in names]

    def entry_of(self, op):
        entries = self.finals[op.home]["entries"]
        return next(place for place, entry in enumerate(entries) if entry["op_id"] == op.op_id)

    def add_up(self, player):
        """Makes a ledger whole again after its entries were changed: a lie that is told well."""
        final, balance = self.finals[player], {}
        for place, entry in enumerate(final["entries"], 1):
            entry["seq"] = str(place)
            for change in entry.get("changes", ()):
                name = change["currency"]
                if entry["kind"] != "LEDGER_KIND_MAIL":
                    balance[name] = balance.get(name, 0) + int(change.get("amount", 0))
                change["balance_after"] = str(balance.get(name, 0))
        final["balances"] = [{"currency": name, "amount": str(n)} for name, n in sorted(balance.items())]


SINGLE = ("LedgerService/Grant", "LedgerService/Spend")


def acknowledged(op):
    return any(call.kind == "ok" and "#" not in call.name for call in op.calls)


def an_acknowledged_write_is_lost(story):
    op = story.op(*SINGLE)
    del story.finals[op.home]["entries"][story.entry_of(op)]
    story.add_up(op.home)
    return check.ledgers_show_what_was_done


def a_write_is_carried_out_twice(story):
    op = story.op(*SINGLE)
    place = story.entry_of(op)
    entries = story.finals[op.home]["entries"]
    entries.insert(place, copy.deepcopy(entries[place]))
    story.add_up(op.home)
    return check.ledgers_show_what_was_done


def a_write_that_nobody_sent(story):
    op = story.op(*SINGLE, want=lambda op: all("#" not in call.name for call in op.calls))
    story.remove(*op.calls, *op.asks)
    return check.ledgers_show_what_was_done


def spends_gold(op):
    return bool(op.request.get("currencies"))


def gold_moves_to_another_player(story):
    op = story.op("LedgerService/Spend", want=spends_gold)
    other = story.op("LedgerService/Spend", want=lambda other: spends_gold(other) and other.home != op.home)
    for one, more in ((op, -1), (other, 1)):
        change = story.finals[one.home]["entries"][story.entry_of(one)]["changes"][0]
        change["amount"] = str(int(change["amount"]) + more)
        story.add_up(one.home)
    return check.ledgers_show_what_was_done


def a_balance_is_not_what_the_ledger_says(story):
    balance = story.player(lambda f: f.get("balances"))["balances"][0]
    balance["amount"] = str(int(balance.get("amount", 0)) + 1)
    return check.ledgers_are_whole


def an_entry_is_missing_in_a_ledger(story):
    del story.player(lambda f: len(f["entries"]) > 9)["entries"][4]
    return check.ledgers_are_whole


def an_item_is_doubled(story):
    item = story.player(lambda f: f["items"])["items"][0]
    story.player(lambda f: item not in f["items"])["items"].append(item)
    return check.goods_are_conserved


def an_item_is_lost(story):
    story.player(lambda f: f["items"])["items"].pop()
    return check.goods_are_conserved


def an_item_is_another_players(story):
    one = story.player(lambda f: f["items"])
    story.player(lambda f: f is not one)["items"].append(one["items"].pop())
    return check.items_are_where_ledgers_say


def mail_that_was_claimed_is_still_there(story):
    op = story.op("MailboxService/ClaimMail")
    mail_id = op.request["mail_ids"][0]
    sent = story.case.mails[mail_id]
    story.finals[op.home]["mails"].append({
        "mail_id": mail_id, "currencies": list(sent.currencies), "items": [{"uid": uid} for uid in sent.items]})
    return check.mail_is_in_one_place


def mail_is_lost(story):
    story.player(lambda f: f["mails"])["mails"].pop()
    return check.mail_is_in_one_place


def mail_holds_less_than_was_sent(story):
    mail = next(m for m in story.player(lambda f: any(m.get("currencies") for m in f["mails"]))["mails"]
                if m.get("currencies"))
    mail["currencies"][0]["amount"] = str(int(mail["currencies"][0]["amount"]) + 1)
    return check.mail_is_in_one_place


def a_repeated_call_is_told_something_else(story):
    op = story.op(*SINGLE, want=lambda op: sum(c.kind == "ok" and "#" not in c.name for c in op.calls) > 1)
    answer = story.answered([call for call in op.calls if call.kind == "ok"][-1])
    answer["ledger_seq"] = str(int(answer["ledger_seq"]) + 1)
    return check.outcomes_never_change


def what_was_carried_out_is_said_to_be_aborted(story):
    op = story.op(*SINGLE, want=lambda op: any(state == "COMMITTED" for _, state in op.states()))
    call = next(call for call, state in op.states() if state == "COMMITTED")
    story.answers[call.name]["with"] = {"operation": {"state": "OPERATION_STATE_ABORTED"}}
    return check.outcomes_never_change


def a_sealed_write_is_carried_out_later(story):
    op, other = story.sealed(), story.op("LedgerService/Spend", want=acknowledged)
    story.records += [
        {"call": "late:1", "at": op.asks[-1].end + 1, "method": op.method, "request": op.request},
        {"answer": "late:1", "at": op.asks[-1].end + 2, "kind": "ok", "with": other.result}]
    return check.outcomes_never_change


def a_sealed_write_is_in_the_ledger(story):
    op = story.sealed()
    story.finals[op.home]["entries"].append({
        "kind": "LEDGER_KIND_SPEND", "op_id": op.op_id, "changes": [
            {"currency": c["currency"], "amount": f"-{c['amount']}"} for c in op.request["currencies"]]})
    story.add_up(op.home)
    return check.ledgers_show_what_was_done


def a_seal_leaves_it_open(story):
    op = story.sealed()
    story.remove(*op.calls[1:])
    for call in op.asks:
        story.answers[call.name]["with"] = {"operation": {"state": "OPERATION_STATE_PENDING"}}
    return check.seals_are_final


def an_outcome_is_never_told(story):
    op = story.sealed()
    story.remove(*op.asks, *op.calls[1:])
    story.answers.pop(op.calls[0].name, None)
    story.records = [r for r in story.records if r.get("answer") != op.calls[0].name]
    return check.everything_is_settled


def a_receipt_pays_two(story):
    op = story.op("LedgerService/Grant", want=lambda op: op.op_id.startswith("receipt:"))
    other = story.player(lambda f: f["final"] != op.home)["final"]
    story.records += [{"call": "forged:1", "at": op.begin, "method": op.method,
                       "request": op.request | {"player_id": other}},
                      {"answer": "forged:1", "at": op.begin + 1, "kind": "ok", "with": op.result}]
    return check.receipts_pay_once


def two_writes_have_one_version(story):
    op = story.op("LedgerService/Spend", want=lambda op: acknowledged(op) and len(op.calls) == 1)
    same = story.dice.choice([o for o in story.case.of_player[op.home] if o is not op])
    story.answered(op.calls[0])["write"]["version"] = same.result["write"]["version"]
    return check.versions_are_one_operations


def a_fence_is_given_twice(story):
    sessions = check.sessions_of(story.case)
    op = story.op("SessionService/StartSession", want=lambda op: (
        len(op.calls) == 1 and not op.asks and op.token != sessions[op.home][0][3]))
    place = next(i for i, s in enumerate(sessions[op.home]) if s[3] == op.token)
    story.answered(op.calls[0])["fence"] = str(sessions[op.home][place - 1][0])
    return check.fences_rise


def a_server_writes_after_it_lost_the_player(story):
    """The token of an acknowledged write becomes that of an earlier session of the player."""
    sessions = check.sessions_of(story.case)
    op = story.op("LedgerService/Spend", "ProfileService/UpdateProfile", want=lambda op: (
        len(op.calls) == 1 and check.tokens(op.calls[0]) and check.tokens(op.calls[0])[0][1] in [
            s[3] for s in sessions[op.home][1:]]))
    story.calls[op.calls[0].name]["request"]["authority"] = f"session:{sessions[op.home][0][3]}"
    return check.fences_hold


def a_read_is_stale(story):
    """A read is answered as one of before was, although a newer one was answered meanwhile."""
    found = []
    for player in story.finals:
        reads = [(call, number) for call, number, _ in story.case.reads[player]
                 if call.method == "ProfileService/GetProfile"]
        for early, middle, late in zip(reads, reads[1:], reads[2:]):
            if early[1] < middle[1] and middle[0].end < late[0].begin:
                found.append((early[0], late[0]))
    early, late = story.dice.choice(found)
    story.answers[late.name]["with"] = early.answer
    return check.nothing_goes_back


def a_read_shows_what_never_was(story):
    call = story.dice.choice([c for c in story.case.calls if c.kind == "ok" and c.answer.get("balances")
                              and c.method == "LedgerService/GetBalances"])
    balance = story.answered(call)["balances"][0]
    balance["amount"] = str(int(balance.get("amount", 0)) + 100_000)
    return check.reads_show_what_was_written


def a_save_is_lost(story):
    section = story.player(lambda f: f.get("sections"))["sections"][0]
    document = json.loads(section["json"])
    section["json"] = json.dumps({"xp": document["xp"] - 1})
    return check.sections_are_the_sum_of_saves


def an_internal_error_is_told(story):
    call = story.dice.choice([c for c in story.case.calls if c.method == "LedgerService/GetBalances"])
    story.answers[call.name] |= {"kind": "not_done", "with": {"code": "INTERNAL"}}
    return check.answers_are_possible


LIES = (
    an_acknowledged_write_is_lost, a_write_is_carried_out_twice, a_write_that_nobody_sent,
    gold_moves_to_another_player, a_balance_is_not_what_the_ledger_says, an_entry_is_missing_in_a_ledger,
    an_item_is_doubled, an_item_is_lost, an_item_is_another_players, mail_that_was_claimed_is_still_there,
    mail_is_lost, mail_holds_less_than_was_sent, a_repeated_call_is_told_something_else,
    what_was_carried_out_is_said_to_be_aborted, a_sealed_write_is_carried_out_later,
    a_sealed_write_is_in_the_ledger, a_seal_leaves_it_open, an_outcome_is_never_told, a_receipt_pays_two,
    two_writes_have_one_version, a_fence_is_given_twice, a_server_writes_after_it_lost_the_player, a_read_is_stale,
    a_read_shows_what_never_was, a_save_is_lost, an_internal_error_is_told)


def believed(directory, dice, count=len(LIES)):
    """What the judge believes and should not, of `count` lies; and, of all, judgements that no lie is for."""
    lines = [json.dumps(record) for record in journal.records(directory)]
    case = check.Case(*journal.read_records(json.loads(line) for line in lines))
    wrong, tested = [], set()
    for lie in dice.sample(LIES, count):
        story = Story(lines, case, dice)
        try:
            judgement = lie(story)
        except (IndexError, StopIteration):
            wrong.append(f"{lie.__name__}: nothing of the kind happened in this run")
            continue
        tested.add(judgement)
        if not any(judgement(check.Case(*journal.read_records(story.records)))):
            wrong.append(f"{lie.__name__}: {judgement.__name__} does not see it")
    return wrong + [f"no lie is for {judgement.__name__}" for judgement in check.JUDGEMENTS
                    if judgement not in tested and count == len(LIES)]
