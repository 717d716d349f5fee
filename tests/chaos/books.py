"""
An audit that believes nothing but what was exported: every player's ledger, inventory, mailbox and
wallet. It knows no shard, no outbox and no counter of the service. docs/transfers.md says what must
hold; `wrong()` says what does not.
"""

import collections
import concurrent.futures

# What an entry does to its player's own goods: amounts carry their sign, items do not.
ITEMS = {"GRANT": 1, "TRANSFER": -1, "REFUND": 1, "CLAIM": 1, "MAIL": 0, "SPEND": -1,
         "TXN_TAKE": -1, "TXN_GIVE": 1}
MADE = ("GRANT", "MAIL")  # Goods that did not exist before.
TRADED = ("TXN_TAKE", "TXN_GIVE", "REFUND")


def kind_of(entry):
    return entry["kind"].upper()


def uids(thing):
    return [item["uid"] for item in thing.get("items", [])]


def goods(entry):
    """What an entry did to its player's goods: uid or currency -> how many came."""
    moved = {uid: ITEMS[kind_of(entry)] for uid in uids(entry)}
    return moved | {c["currency"]: int(c["amount"]) for c in entry.get("changes", [])}


def pages(client, method, request, field):
    cursor = ""
    while True:
        page = client.settle(method, request | {"cursor": cursor, "pageSize": 100})
        yield from page.get(field, [])
        cursor = page.get("nextCursor", "")
        if not cursor:
            return


class Player:
    """One player's export."""

    def __init__(self, client, player):
        read = {"playerId": player}
        self.name = player
        self.entries = list(pages(client, "LedgerService/ListEntries", read | {"ascending": True},
                                  "entries"))
        self.items = collections.Counter(
            item["uid"] for item in pages(client, "InventoryService/ListItems", read, "items"))
        self.mails = list(pages(client, "MailboxService/ListMail", read, "mails"))
        self.balances = collections.Counter(
            client.settle("LedgerService/GetBalances", read).get("balances", {}))
        self.by_op = collections.Counter((kind_of(e), e["opId"]) for e in self.entries)
        self.moved = collections.defaultdict(collections.Counter)
        for entry in self.entries:
            self.moved[kind_of(entry), entry["opId"]].update(goods(entry))

    def wrong(self):
        """The ledger, added up, is the inventory and the wallet."""
        held, wallet = collections.Counter(), collections.Counter()
        for seq, entry in enumerate(self.entries, 1):
            if int(entry["seq"]) != seq:
                yield f"{self.name}: entry {seq} has seq {entry['seq']}"
            for uid in uids(entry):
                held[uid] += ITEMS[kind_of(entry)]
            if kind_of(entry) == "MAIL":
                continue  # Into the mailbox, not into the wallet.
            for change in entry.get("changes", []):
                wallet[change["currency"]] += int(change.get("amount", 0))
                if int(change.get("balanceAfter", 0)) != wallet[change["currency"]]:
                    yield f"{self.name}: entry {seq} says another balance than the entries before it"
        for uid in held.keys() | self.items.keys():
            if held[uid] != self.items[uid]:
                yield f"{self.name}: {uid} held {self.items[uid]}, {held[uid]} by the ledger"
        for currency in wallet.keys() | self.balances.keys():
            if wallet[currency] != self.balances[currency]:
                yield (f"{self.name}: {self.balances[currency]} {currency}, "
                       f"{wallet[currency]} by the ledger")


class Books:
    """All players at rest: nothing is on its way between shards."""

    def __init__(self, client, players):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            exports = pool.map(lambda name: Player(client, name), players)
            self.players = {player.name: player for player in exports}

    def wrong(self, told):
        """All that does not hold, as sentences. `told`: what callers believe, see traders.mjs."""
        for player in self.players.values():
            yield from player.wrong()
        yield from self.wrong_items()
        yield from self.wrong_sums()
        yield from self.wrong_trades()
        for record in told:
            yield from (self.wrong_sides if "sides" in record else self.wrong_outcome)(record)

    def wrong_items(self):
        """Each item ever made is in one place, once; nothing else is anywhere."""
        made, places = collections.Counter(), collections.defaultdict(list)
        for player in self.players.values():
            for entry in player.entries:
                if kind_of(entry) in MADE:
                    made.update(uids(entry))
                elif kind_of(entry) == "SPEND":
                    made.subtract(uids(entry))
            for uid, count in player.items.items():
                places[uid] += [f"inventory of {player.name}"] * count
            for mail in player.mails:
                for uid in uids(mail):
                    places[uid].append(f"mailbox of {player.name}")
        for uid in made.keys() | places.keys():
            if made[uid] not in (0, 1) or len(places[uid]) != made[uid]:
                yield f"item {uid}: made {made[uid]} times, in {places[uid] or 'no place'}"

    def wrong_sums(self):
        made, there = collections.Counter(), collections.Counter()
        for player in self.players.values():
            for entry in player.entries:
                if kind_of(entry) in (*MADE, "SPEND"):
                    made.update({c["currency"]: int(c["amount"]) for c in entry.get("changes", [])})
            there.update(player.balances)
            for mail in player.mails:
                there.update(mail.get("currencies", {}))
        for currency in made.keys() | there.keys():
            if made[currency] != there[currency]:
                yield f"{made[currency]} {currency} were made, {there[currency]} are there"

    def wrong_trades(self):
        """What left one player in a trade came to another, whichever of them asked for it."""
        sums, trades = collections.defaultdict(collections.Counter), set()
        for player in self.players.values():
            for (kind, op), moved in player.moved.items():
                if kind in TRADED:
                    sums[op].update(moved)
                    trades |= {op} if kind != "REFUND" else set()
        for op in trades:
            wrong = {thing: count for thing, count in sums[op].items() if count}
            if wrong:
                yield f"half a trade: {op} left {wrong} in all"

    def wrong_sides(self, record):
        """All sides of a trade or none, as its caller was told. Each gives to the next."""
        sides, op = record["sides"], record["op"]
        done = [self.side_done(op, giver, taker) for giver, taker in zip(sides, sides[1:] + sides[:1])]
        allowed = {"committed": (True,), "refused": (False,), "aborted": (False,),
                   "unknown": (True, False)}.get(record["state"], ())
        if len(set(done)) > 1:
            yield f"half a trade: {op}, told {record['state']}: {done} of {sides}"
        elif done[0] not in allowed:
            yield f"{op} of {record['player']}: told {record['state']}, carried out: {done[0]}"

    def side_done(self, op, giver, taker):
        """True, False, or what was moved instead of what was offered."""
        offered = collections.Counter(giver["uids"])
        if giver["gold"]:
            offered["gold"] = giver["gold"]
        books = self.players[giver["player"]].moved
        left = collections.Counter(books.get(("TXN_TAKE", op)))
        left.update(books.get(("REFUND", op), {}))
        left = {thing: -count for thing, count in left.items() if count}
        came = dict(self.players[taker["player"]].moved.get(("TXN_GIVE", op), {}))
        if left == came == offered:
            return True
        return f"left {left}, came {came}" if left or came else False

    def wrong_outcome(self, record):
        """What a caller was told is what the ledger says, and happened at most once."""
        by_op = self.players[record["player"]].by_op
        done = by_op["CLAIM" if record["kind"] == "claim" else "TRANSFER", record["op"]]
        undone = by_op["REFUND", record["op"]]
        happened = done - undone
        at_most = len(record["mails"]) if record["kind"] == "claim" else 1
        allowed = {"committed": (at_most,), "refused": (0,), "aborted": (0,),
                   "unknown": (0, at_most)}.get(record["state"])
        if allowed is None:
            yield f"{record['op']} of {record['player']}: {record['state']}"
        elif happened not in allowed or done > at_most:
            yield (f"{record['op']} of {record['player']}: told {record['state']}, carried out "
                   f"{done} times, taken back {undone} times")
