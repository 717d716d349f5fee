#!/usr/bin/env python3
"""
The judge: check.py DIRECTORY of journals. It believes what callers were told, and wants everything told to
fit together and to be found in what is read in the end. Exit 1: something does not; a line for each.
"""

import bisect
import collections
import json
import pathlib
import sys

import journal
from effects import effects_of, mails_of, shown

# Errors that a correct caller never gets: the judge's own program would be at fault, or the product.
NEVER = {"INTERNAL", "INVALID_ARGUMENT", "UNIMPLEMENTED", "PERMISSION_DENIED", "UNAUTHENTICATED",
         "QUARANTINED", "VERSION_LOST", "OPERATION_EXPIRED"}


class Case:
    """All there is to judge."""

    def __init__(self, calls, finals):
        self.calls, self.finals = calls, finals
        self.ops = journal.operations(calls)
        self.committed = [op for op in self.ops.values() if op.result is not None]
        self.mails = mails_of(self.committed)
        self.of_player = collections.defaultdict(list)
        for op in self.committed:
            if "write" in op.result:
                self.of_player[op.home].append(op)
        self.reads = collections.defaultdict(list)  # player: [(call, version, profile or balances)]
        for call in calls:
            if call.kind == "ok" and call.method == "ProfileService/GetProfile":
                profile = call.answer["profile"]
                self.reads[profile["player_id"]].append((call, int(profile.get("version", 0)), profile))
            elif call.kind == "ok" and "profile" in call.answer:
                profile = call.answer["profile"]
                self.reads[profile["player_id"]].append((call, int(profile.get("version", 0)), profile))
            elif call.kind == "ok" and call.method == "LedgerService/GetBalances":
                self.reads[call.request["player_id"]].append(
                    (call, int(call.answer.get("version", 0)), call.answer))


def version(op):
    return int(op.result["write"]["version"])


def money(balances):
    return {b["currency"]: int(b["amount"]) for b in balances if int(b.get("amount", 0))}


def tokens(call):
    """(player, token) of each session that a call acts under."""
    request, found = call.request, []
    acting = [(request.get("player_id"), request.get("authority", ""))]
    acting.append((request.get("other_player_id"), request.get("other_authority", "")))
    acting += [(other["player_id"], other["authority"]) for other in request.get("others", ())]
    for player, authority in acting:
        if authority.startswith("session:"):
            found.append((player, authority.removeprefix("session:")))
    return found


# Each judgement yields what is wrong, in words.


def answers_are_possible(case):
    for call in case.calls:
        if call.code in NEVER:
            yield f"{call.name} {call.method}: {call.answer}"


def outcomes_never_change(case):
    for op in case.ops.values():
        tellings = [(call, stored) for call in op.calls if call.kind == "ok"
                    for stored in [journal.stored(call.answer)]]
        tellings += [(call, journal.stored(call.answer["operation"].get("result", {})))
                     for call, state in op.states() if state == "COMMITTED"]
        for call, told in tellings:
            if told != op.result:
                yield f"{op.op_id} of {op.home}: {call.name} was told {told}, first {op.result}"
        if len(granted := {call.answer.get("token") for call in op.calls if call.kind == "ok"}) > 1:
            yield f"{op.op_id} of {op.home}: its callers were told of {len(granted)} sessions"
        refusals = collections.defaultdict(set)
        for call in op.calls:
            if call.kind == "refused" and call.code != "OPERATION_ABORTED":
                refusals[call.attempt].add(call.code)
        for attempt, codes in refusals.items():
            if len(codes) > 1:
                yield f"{op.op_id} of {op.home}: attempt {attempt} was refused with {sorted(codes)}"
        yield from order_of_outcomes(op)


def order_of_outcomes(op):
    """What was final before a call was sent is what the call is told."""
    told = [(call, "COMMITTED") for call in op.calls if call.kind == "ok"]
    told += [(call, "ABORTED") for call in op.calls if call.code == "OPERATION_ABORTED"]
    told += op.states()
    committed = min((call.end for call, state in told if state == "COMMITTED"), default=None)
    ended = [call for call, state in told if state in ("ABORTED", "EXPIRED")]
    if committed is not None and ended:
        yield f"{op.op_id} of {op.home}: carried out, and {ended[0].name} was told that it never is"
    sealed = [call for call, state in op.states() if call in op.resolved and state == "REFUSED"]
    if committed is not None and sealed:
        yield f"{op.op_id} of {op.home}: sealed as refused by {sealed[0].name}, and carried out"
    for call, state in told:
        if committed is not None and call.begin > committed and state in ("UNKNOWN", "REFUSED", "PENDING"):
            yield f"{op.op_id} of {op.home}: {call.name} was told {state} after it was carried out"


def everything_is_settled(case):
    for op in case.ops.values():
        if not op.told:
            yield f"{op.op_id} of {op.home}: its outcome was never settled"


def seals_are_final(case):
    for op in case.ops.values():
        for call, state in op.states():
            if call in op.resolved and call.request.get("seal") and state in ("UNKNOWN", "PENDING"):
                if not any(s in ("COMMITTED", "REFUSED", "ABORTED") for _, s in op.states()):
                    yield f"{op.op_id} of {op.home}: a seal was answered {state}"


def receipts_pay_once(case):
    paid = collections.defaultdict(set)
    for op in case.committed:
        if op.op_id.startswith("receipt:"):
            paid[op.op_id].add(op.home)
    for receipt, players in paid.items():
        if len(players) > 1:
            yield f"{receipt} paid {sorted(players)}"


def ledgers_show_what_was_done(case):
    """Each committed operation once, with its amounts; nothing else at all."""
    try:
        wanted = effects_of(case.committed, case.mails)
    except KeyError as error:
        yield f"mail {error} was claimed and never sent"
        return
    found = shown(case.finals)
    for key in wanted.keys() | found.keys():
        should, does = wanted[key].net(), found[key].net()
        if should != does:
            yield f"{key[1]} at {key[0]}: should come to {should}, the ledger says {does}"


def ledgers_are_whole(case):
    for player, final in case.finals.items():
        balance = collections.Counter()
        for place, entry in enumerate(final["entries"], 1):
            if int(entry["seq"]) != place:
                yield f"{player}: entry {entry['seq']} of the ledger stands at {place}"
            for change in entry.get("changes", ()):
                if entry["kind"] != "LEDGER_KIND_MAIL":
                    balance[change["currency"]] += int(change.get("amount", 0))
                if int(change.get("balance_after", 0)) != balance[change["currency"]]:
                    yield f"{player}: entry {place} leaves {change}, added up {balance[change['currency']]}"
        if {name: n for name, n in balance.items() if n} != money(final.get("balances", ())):
            yield f"{player}: the ledger comes to {dict(balance)}, the balance is {final.get('balances')}"


def mail_is_in_one_place(case):
    claimed = collections.Counter()
    for op in case.committed:
        if op.method == "MailboxService/ClaimMail":
            claimed.update(op.request["mail_ids"])
    lying = collections.Counter()
    for player, final in case.finals.items():
        for mail in final["mails"]:
            lying[mail["mail_id"]] += 1
            sent = case.mails.get(mail["mail_id"])
            if sent is None or sent.to != player:
                yield f"{player} has mail {mail['mail_id']} that was never sent there"
            elif (money(mail.get("currencies", ())), sorted(i["uid"] for i in mail.get("items", ()))) != (
                    money(sent.currencies), sorted(sent.items)):
                yield f"mail {mail['mail_id']} is not what was sent: {mail}"
    for mail_id in case.mails.keys() | lying.keys() | claimed.keys():
        if claimed[mail_id] + lying[mail_id] != 1:
            yield f"mail {mail_id}: claimed {claimed[mail_id]} times, in a mailbox {lying[mail_id]} times"


def goods_are_conserved(case):
    """What was made, less what was used up, is what there is."""
    made, there = collections.Counter(), collections.Counter()
    for op in case.committed:
        request, result = op.request, op.result
        given = list(request.get("currencies", ())) if op.method in (
            "LedgerService/Grant", "MailboxService/DeliverMail") else []
        used = request.get("currencies", ()) if op.method == "LedgerService/Spend" else ()
        given += [amount for change in request.get("changes", ()) if "grant" in change
                  for amount in change["grant"]["currencies"]]
        for amount in given:
            made[amount["currency"]] += int(amount["amount"])
        for amount in used:
            made[amount["currency"]] -= int(amount["amount"])
        made.update(result.get("item_uids", ()) if op.method == "LedgerService/Grant" else ())
        if op.method == "MailboxService/DeliverMail":
            made.update(item["uid"] for item in result.get("items", ()))
        if op.method == "LedgerService/Spend":
            made.subtract(request.get("item_uids", ()))
    for final in case.finals.values():
        there.update(item["uid"] for item in final["items"])
        there.update(money(final.get("balances", ())))
        for mail in final["mails"]:
            there.update(item["uid"] for item in mail.get("items", ()))
            there.update(money(mail.get("currencies", ())))
    for what in made.keys() | there.keys():
        if made[what] != there[what]:
            yield f"{what}: made less used up {made[what]}, there {there[what]}"


def items_are_where_ledgers_say(case):
    for player, final in case.finals.items():
        have = collections.Counter()
        for (name, _), effect in shown({player: final}).items():
            assert name == player
            have.update(effect.came)
            have.subtract(effect.went)
        if +have != collections.Counter(i["uid"] for i in final["items"]) or -have:
            yield f"{player}: the ledger comes to items {+have}, the inventory has {final['items']}"


def versions_are_one_operations(case):
    for player, ops in case.of_player.items():
        owner = {}
        for op in ops:
            other = owner.setdefault(version(op), op)
            if other is not op and not handed_over(op, other):
                yield f"{player}: {op.op_id} and {other.op_id} both made version {version(op)}"


def handed_over(*ops):
    """One entry ends a session and begins the one that waited for it (docs/sessions.md)."""
    return ({op.method for op in ops} == {"SessionService/EndSession", "SessionService/StartSession"}
            and ops[0].result["write"]["as_of"] == ops[1].result["write"]["as_of"])


def sessions_of(case):
    """{player: [(fence, version, first told, token)]}"""
    starts = collections.defaultdict(list)
    for player, ops in case.of_player.items():
        for op in ops:
            if op.method == "SessionService/StartSession":
                told = min((c.end for c in op.calls if c.kind == "ok"), default=None)
                starts[player].append((int(op.result["fence"]), version(op), told, op.token))
        starts[player].sort(key=lambda start: start[:2])
    return starts


def fences_rise(case):
    for player, found in sessions_of(case).items():
        for one, next_one in zip(found, found[1:]):
            if one[0] == next_one[0] or one[1] >= next_one[1] or one[3] and one[3] == next_one[3]:
                yield f"{player}: the session {next_one} does not come after {one}"


def fences_hold(case):
    """No write under a session after a later one began: by versions, and by what was told when."""
    starts = sessions_of(case)
    own = {(player, start[3]): start for player, found in starts.items() for start in found}
    for op in case.committed:
        for player, token in tokens(op.calls[0]):
            if (player, token) not in own:
                yield f"{op.op_id}: carried out under a session that {player} never had"
                continue
            mine = own[player, token]
            later = [start for start in starts[player] if start[0] > mine[0]]
            if any(start[2] is not None and op.begin > start[2] for start in later):
                yield f"{op.op_id}: sent after {player} was another server's, and carried out"
            if player == op.home and "write" in op.result:
                # What ends a session may be the entry that begins the next one.
                last = min((start[1] for start in later), default=version(op) + 1)
                last += op.method == "SessionService/EndSession"
                if not mine[1] < version(op) < last:
                    yield f"{op.op_id}: version {version(op)} of {player} is not within its session"


def nothing_goes_back(case):
    """What begins after something was told of a player sees at least that; what is written is new."""
    for player in case.of_player.keys() | case.reads.keys():
        told = [(call.end, number) for call, number, _ in case.reads[player]]
        for op in case.of_player[player]:
            told += [(call.end, version(op)) for call in op.calls if call.kind == "ok"]
        told.sort()
        ends = [end for end, _ in told]
        greatest = [0]
        for _, number in told:
            greatest.append(max(greatest[-1], number))
        before = lambda at: greatest[bisect.bisect_left(ends, at)]
        for call, number, _ in case.reads[player]:
            if number < before(call.begin):
                yield f"{call.name}: {player} is read at {number}, told before {before(call.begin)}"
        for op in case.of_player[player]:
            if version(op) <= before(op.begin):
                yield f"{op.op_id}: version {version(op)} of {player}, told before {before(op.begin)}"


def positions(entries):
    """{op_id: (first, last seq)}, and the balances after each entry, from none."""
    places, after = {}, [{}]
    for entry in entries:
        seq = int(entry["seq"])
        places[entry["op_id"]] = (places.get(entry["op_id"], (seq,))[0], seq)
        now = dict(after[-1])
        if entry["kind"] != "LEDGER_KIND_MAIL":
            for change in entry.get("changes", ()):
                now[change["currency"]] = now.get(change["currency"], 0) + int(change.get("amount", 0))
        after.append({name: n for name, n in now.items() if n})
    return places, after


def reads_show_what_was_written(case):
    """Balances at a version are those of the ledger, between the writes before it and those after."""
    for player, final in case.finals.items():
        places, after = positions(final["entries"])
        wrote = sorted((version(op), *places[op.op_id]) for op in case.of_player[player]
                       if op.op_id in places and int(op.result.get("ledger_seq", 0)))
        if [w[1] for w in wrote] != sorted(w[1] for w in wrote):
            yield f"{player}: the ledger is not in the order of versions"
        versions = [w[0] for w in wrote]
        for call, number, read in case.reads[player]:
            place = bisect.bisect_right(versions, number)
            low = wrote[place - 1][2] if place else 0
            high = wrote[place][1] if place < len(wrote) else len(after)
            if money(read.get("balances", ())) not in after[low:high]:
                yield f"{call.name}: {player} at {number} has {read.get('balances')}, not what the ledger says"


def sections_are_the_sum_of_saves(case):
    for player in case.finals:
        saves = sorted((version(op), sum(int(step["json"]) for edit in op.request["edits"]
                                         for step in edit["patch"]["steps"]))
                       for op in case.of_player[player] if op.request.get("edits"))
        versions, sums = [number for number, _ in saves], [0]
        for _, amount in saves:
            sums.append(sums[-1] + amount)
        final = case.finals[player]
        looks = [("in the end", int(final.get("version", 0)), final)]
        looks += [(call.name, number, read) for call, number, read in case.reads[player]
                  if call.method != "LedgerService/GetBalances"]
        for name, number, read in looks:
            count = bisect.bisect_right(versions, number)
            found = [(json.loads(s["json"])["xp"], int(s["version"])) for s in read.get("sections", ())]
            if found != ([(sums[count], count)] if count else []):
                yield f"{name}: {player} at {number} has (xp, version) {found}, saved {(sums[count], count)}"


JUDGEMENTS = (answers_are_possible, outcomes_never_change, everything_is_settled, seals_are_final,
              receipts_pay_once, ledgers_show_what_was_done, ledgers_are_whole, mail_is_in_one_place,
              goods_are_conserved, items_are_where_ledgers_say, versions_are_one_operations, fences_rise, fences_hold,
              nothing_goes_back, reads_show_what_was_written, sections_are_the_sum_of_saves)


def judge(records):
    """(figures, what is wrong)"""
    case = Case(*journal.read_records(records))
    wrong = [f"{judgement.__name__}: {text}" for judgement in JUDGEMENTS for text in judgement(case)]
    kinds = collections.Counter(call.kind for call in case.calls)
    figures = {"calls": len(case.calls), "operations": len(case.ops), "committed": len(case.committed)}
    figures |= {"unknown": kinds["unknown"], "refused": kinds["refused"],
                "sealed_as_never": sum(any(s == "ABORTED" for _, s in op.states()) for op in case.ops.values()),
                "sessions": sum(op.method.endswith("StartSession") for op in case.committed),
                "stolen": sum(bool(op.result.get("stolen")) for op in case.committed),
                "reads": sum(len(reads) for reads in case.reads.values())}
    return figures, wrong


def judge_directory(directory):
    return judge(journal.records(pathlib.Path(directory)))


if __name__ == "__main__":
    found_figures, found_wrong = judge_directory(sys.argv[1])
    print(json.dumps(found_figures))
    for line in found_wrong[:100]:
        print(line)
    print(f"{len(found_wrong)} violations")
    sys.exit(1 if found_wrong else 0)
