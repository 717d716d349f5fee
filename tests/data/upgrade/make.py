"""
Makes the data directory of a small cluster as an earlier program leaves it, for upgrade_data_test.py:

    make.py CHECKOUT ARCHIVE

CHECKOUT is a working copy of the earlier commit with its release built; its own test cluster and
client drive its programs, in the forms of requests that they know. ARCHIVE, a .tar.xz, gets the data
directories of etcd and of the nodes, and known.json: what the callers know at the end.

Every deed is done twice: once so that checkpoints have it, and once so that it is in the log alone.
At the end transfers and swaps are on their way, and all nodes are killed.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import socket
import sys
import tarfile
import threading
import time

CHECKOUT, ARCHIVE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
os.environ["HOLDFAST_BIN"] = str(CHECKOUT / "build/release/bin")
sys.path.insert(0, str(CHECKOUT / "tests/integration"))
from client import RpcError, Unanswered, uuid7  # noqa: E402
from cluster import Cluster, wait_for  # noqa: E402

SHARDS = 4
CLONE_NEWUTS = 0x04000000
UNHELD = {"unheld": {}}
TRADERS, TRADES = 8, 400


def system(scope):
    return {"system": {"scope": scope}}


def session(token):
    return {"session": {"token": token}}


def money(**amounts):
    return [{"currency": name, "amount": str(amount)} for name, amount in amounts.items()]


class Story:
    """What game servers and back ends ask for, and what they are answered."""

    def __init__(self, client):
        self.client = client
        self.operations, self.players, self.lock = [], set(), threading.Lock()

    def do(self, method, player, op_id=None, authority=UNHELD, **more):
        """Carries out or is refused; the answer, or None."""
        request = {"playerId": player, "opId": op_id or uuid7()} | more
        if authority is not None:
            request["authority"] = authority
        known = {"method": method, "request": request}
        self.players.update((player, *(more[key] for key in ("toPlayerId", "otherPlayerId")
                                       if key in more)))
        try:
            known["answer"] = self.client.call(method, request)
        except RpcError as error:
            known["refused"] = {"code": error.code, "final": error.final, "message": error.message}
        except Unanswered:
            known["unknown"] = True
        with self.lock:
            self.operations.append(known)
        return known.get("answer")

    def seal(self, player, op_id):
        answer = self.client.call("OperationService/ResolveOperation", {
            "entity": f"player:{player}", "opId": op_id, "seal": True})["operation"]
        self.operations.append({"sealed": answer["state"],
                                "request": {"playerId": player, "opId": op_id}})

    # The deeds of one part. Names and typed ids end in `part`.

    def deeds(self, part):
        self.sessions(part)
        self.ledger(part)
        self.items_and_mail(part)
        self.receipts(part)
        self.transactions(part)

    def sessions(self, part):
        ada, token = f"ada-{part}", None
        server = self.client.register(f"server-{part}")
        join = {"authority": None, "incarnation": server, "mode": "START_MODE_FAIL"}
        token = self.do("SessionService/StartSession", ada, **join)["token"]
        other = self.client.register(f"other-{part}")
        self.do("SessionService/StartSession", ada, **join | {"incarnation": other})  # Refused.
        mine = {"authority": session(token)}
        self.do("ProfileService/UpdateProfile", ada, **mine, edits=[
            {"name": "progress", "schemaVersion": 1, "replace": '{"xp":1,"tags":["a"]}'},
            {"name": "quests", "schemaVersion": 2, "replace": "[]"}])
        self.do("ProfileService/UpdateProfile", ada, **mine, edits=[
            {"name": "progress", "schemaVersion": 1, "merge": '{"level":{"n":3}}', "ifVersion": "1"}])
        self.do("ProfileService/UpdateProfile", ada, **mine, edits=[
            {"name": "progress", "schemaVersion": 1, "patch": {"steps": [
                {"kind": "PATCH_KIND_INCREMENT", "path": "/xp", "json": "40"},
                {"kind": "PATCH_KIND_APPEND", "path": "/tags", "json": '"b"'}]}}])
        self.do("ProfileService/UpdateProfile", ada, **mine, edits=[
            {"name": "progress", "schemaVersion": 1, "replace": "{}", "ifVersion": "1"}])  # Refused.
        self.do("LedgerService/Grant", ada, authority=system("match"), currencies=money(gold=50))
        self.do("LedgerService/Spend", ada, **mine, currencies=money(gold=20), reason="potion")
        self.do("ProfileService/UpdateProfile", ada, edits=[
            {"name": "progress", "schemaVersion": 1, "replace": "{}"}])  # Held: refused.
        self.do("SessionService/EndSession", ada, **mine, edits=[
            {"name": "quests", "schemaVersion": 2, "delete": {}},
            {"name": "last", "schemaVersion": 1, "replace": "{}"}])
        self.do("SessionService/StartSession", f"held-{part}", **join)

    def ledger(self, part):
        bob, cy = f"bob-{part}", f"cy-{part}"
        pay = {"authority": system("payments")}
        bought = f"claim:bought-{part}"
        self.do("LedgerService/Grant", bob, bought, **pay, currencies=money(gold=500, gems=7),
                items=[{"kind": "sword", "attributes": '{"level":1}'}], reason="purchase")
        self.do("LedgerService/Grant", bob, bought, **pay, currencies=money(gold=1))  # Mismatch.
        self.do("LedgerService/Grant", bob, f"match:m-{part}:1", authority=system("match"),
                currencies=money(gold=5))
        self.do("LedgerService/Grant", bob, f"admin:gift-{part}", authority=system("admin"),
                currencies=money(gems=1), reason="gift")
        self.do("LedgerService/Spend", bob, currencies=money(gold=30, gems=1), reason="hat")
        short = uuid7()
        self.do("LedgerService/Spend", cy, short, currencies=money(gold=30))  # Refused.
        self.do("LedgerService/Grant", cy, **pay, currencies=money(gold=40))
        self.do("LedgerService/Spend", cy, short, attempt=1, currencies=money(gold=30))
        self.do("LedgerService/Transfer", bob, toPlayerId=cy, currencies=money(gold=11), reason="debt")
        for name, hours in (("posted", 20), ("paid", 20), ("voided", 20), ("open", 600)):
            self.do("LedgerService/Reserve", bob, f"claim:{name}-{part}", currencies=money(gold=10),
                    expiresInMs=str(hours * 3600 * 1000), reason="bid")
        self.do("LedgerService/Post", bob, reserveOpId=f"claim:posted-{part}",
                currencies=money(gold=4))
        self.do("LedgerService/Post", bob, reserveOpId=f"claim:paid-{part}", toPlayerId=cy)
        self.do("LedgerService/Void", bob, reserveOpId=f"claim:voided-{part}")
        self.do("LedgerService/Void", bob, reserveOpId=f"claim:voided-{part}")  # Refused.
        self.do("LedgerService/Reverse", bob, f"admin:undo-{part}", authority=system("admin"),
                targetOpId=f"admin:gift-{part}", reason="mistake")
        self.do("LedgerService/Grant", bob, f"claim:to-undo-{part}", **pay, currencies=money(gold=3),
                items=[{"kind": "ring"}])
        sealed = f"claim:sealed-{part}"
        self.seal(bob, sealed)
        self.do("LedgerService/Grant", bob, sealed, **pay, currencies=money(gold=99))  # Refused.

    def items_and_mail(self, part):
        dan, eve = f"dan-{part}", f"eve-{part}"
        mint = self.do("InventoryService/Mint", dan, items=[
            {"kind": "hat"}, {"kind": "bow", "attributes": '{"z":1,"a":{"b":[2]}}'}, {"kind": "cup"},
            {"kind": "pie"}, {"kind": "egg"}])
        hat, bow, cup, pie, _ = (item["uid"] for item in mint["items"])
        self.do("LedgerService/Grant", dan, authority=system("payments"), currencies=money(gold=100))
        sent = self.do("InventoryService/Transfer", dan, toPlayerId=eve, itemUids=[hat], reason="gift")
        self.do("InventoryService/Transfer", dan, toPlayerId=eve, itemUids=[hat])  # Refused.
        self.do("InventoryService/Consume", dan, itemUids=[pie], currencies=money(gold=2),
                reason="crafting")
        self.do("MailboxService/Send", dan, toPlayerId=eve, itemUids=[bow], currencies=money(gold=9),
                text="with love", expiresInMs=str(30 * 24 * 3600 * 1000), reason="gift")
        self.do("MailboxService/Send", dan, toPlayerId=eve, itemUids=[cup], text="be quick",
                expiresInMs="1000")
        self.do("MailboxService/Send", dan, toPlayerId=eve, text="only words")
        made = self.do("MailboxService/Send", eve, f"claim:season-{part}", authority=system("mail"),
                       currencies=money(gems=2), mint=[{"kind": "crate"}, {"kind": "key"}],
                       text="season 3", reason="season")
        self.do("MailboxService/Send", eve, authority=system("mail"), mint=[{"kind": "lamp"}])
        self.do("MailboxService/Claim", eve, mailIds=[sent["mailId"], made["mailId"]])
        self.do("MailboxService/Claim", eve, mailIds=[sent["mailId"]])  # Refused.
        time.sleep(1.5)  # It expires.
        self.do("MailboxService/ReturnExpired", eve, authority=system("mail"))

    def receipts(self, part):
        for n in range(4):
            pay = {"op_id": f"receipt:GPA.{part}.{n}", "authority": system("payments"),
                   "items": [{"kind": "skin"}]}
            self.do("LedgerService/Grant", f"fay-{part}", **pay, currencies=money(gems=100))
            self.do("LedgerService/Grant", f"gil-{part}", **pay, currencies=money(gems=100))  # Refused.
        self.do("InventoryService/Mint", f"gil-{part}", f"receipt:mint.{part}",
                authority=system("payments"), items=[{"kind": "skin"}])
        self.do("MailboxService/Send", f"gil-{part}", f"receipt:mail.{part}",
                authority=system("payments"), mint=[{"kind": "skin"}])
        self.client.call("OperationService/ResolveOperation", {
            "entity": f"receipt:void.{part}", "opId": f"receipt:void.{part}", "seal": True})
        self.do("LedgerService/Grant", f"gil-{part}", f"receipt:void.{part}",
                authority=system("payments"), currencies=money(gems=100))  # Sealed: refused.

    def transactions(self, part):
        players = [f"{name}-{part}" for name in ("hal", "ivy", "jo", "kit")]
        swords = []
        for player in players:
            self.do("LedgerService/Grant", player, authority=system("payments"),
                    currencies=money(gold=100, gems=10))
            made = self.do("InventoryService/Mint", player, items=[{"kind": "sword"}])
            swords.append(made["items"][0]["uid"])
        hal, ivy, jo, kit = players
        self.do("TransactionService/Swap", hal, otherPlayerId=ivy, otherAuthority=UNHELD,
                currencies=money(gold=30), itemUids=[swords[0]], otherCurrencies=money(gems=5),
                otherItemUids=[swords[1]], reason="trade")
        self.rest(hal, ivy)
        self.do("TransactionService/Swap", hal, otherPlayerId=ivy, otherAuthority=UNHELD,
                currencies=money(gold=3000), otherCurrencies=money(gems=5))  # Refused.
        self.rest(hal, ivy)
        server = self.client.register(f"trades-{part}")
        token = self.do("SessionService/StartSession", kit, authority=None, incarnation=server,
                        mode="START_MODE_FAIL")["token"]
        everybody = {"others": [{"playerId": ivy, "authority": UNHELD},
                                {"playerId": jo, "authority": system("match")},
                                {"playerId": kit, "authority": session(token)}], "reason": "craft"}
        self.do("TransactionService/Execute", hal, **everybody, checks=[
            {"playerId": ivy, "balance": {"currency": "gold", "amount": "10"}},
            {"playerId": hal, "section": {"name": "quests", "version": "0"}}], changes=[
            {"grant": {"playerId": jo, "currencies": money(gold=1), "items": [{"kind": "ring"}]}},
            {"debit": {"playerId": hal, "currencies": money(gold=7)}},
            {"move": {"fromPlayerId": ivy, "toPlayerId": jo, "currencies": money(gems=1),
                      "itemUids": [swords[0]]}},
            {"consume": {"playerId": kit, "itemUids": [swords[3]]}},
            {"patch": {"playerId": kit, "edit": {"name": "quests", "replace": '{"n":1}'}}}])
        self.rest(*players)
        self.do("TransactionService/Execute", hal, **everybody, changes=[
            {"debit": {"playerId": ivy, "currencies": money(gems=1000)}}])  # Refused.
        self.rest(*players)

    def rest(self, *players):
        """A decided transaction holds its players until it has arrived everywhere."""
        def read():
            try:
                return self.client.call("TransactionService/Read", {"playerIds": players})
            except RpcError:
                return None
        wait_for("the players to be free", read)

    # What is on its way when everything dies.

    def rush(self, kill):
        players = [f"trader-{n}" for n in range(TRADERS)]
        for player in players:
            self.do("LedgerService/Grant", player, authority=system("payments"),
                    currencies=money(gold=1000))
        ending = threading.Event()

        def trade(n):
            for turn in range(TRADES):
                if ending.is_set():
                    return
                one, two = players[n], players[(n + 1 + turn) % TRADERS]
                if one == two:
                    continue
                if turn % 3 == 0:
                    self.do("LedgerService/Transfer", one, toPlayerId=two, currencies=money(gold=1))
                elif turn % 3 == 1:
                    self.do("TransactionService/Swap", one, otherPlayerId=two, otherAuthority=UNHELD,
                            currencies=money(gold=2), otherCurrencies=money(gold=1))
                else:
                    self.do("LedgerService/Grant", one, f"receipt:rush-{n}-{turn}",
                            authority=system("payments"), currencies=money(gems=1))

        threads = [threading.Thread(target=trade, args=(n,)) for n in range(TRADERS)]
        before = len(self.operations)
        for thread in threads:
            thread.start()
        wait_for("trades", lambda: len(self.operations) > before + TRADERS * 4)
        kill()
        ending.set()
        for thread in threads:
            thread.join()

    # What a caller can read.

    def all_of(self, method, request, field):
        found, cursor = [], ""
        while True:
            page = self.client.call(method, request | {"cursor": cursor})
            found += page.get(field, [])
            cursor = page.get("nextCursor", "")
            if not cursor:
                return found

    def look(self):
        """{player: what is known of it}"""
        known = {}
        for player in sorted(self.players):
            of = {"playerId": player}
            known[player] = {
                "profile": self.client.profile(player),
                "items": self.all_of("InventoryService/ListItems", of, "items"),
                "mails": self.all_of("MailboxService/List", of, "mails"),
                "reservations": self.all_of("LedgerService/ListReservations", of, "reservations"),
                "entries": self.client.entries(player),
            }
        return known


def restart_nodes(cluster, **options):
    for node in cluster.nodes:
        node.stop()
        for option, value in options.items():
            name = "--" + option.replace("_", "-") + "="
            node.command = [word for word in node.command if not word.startswith(name)]
            node.command.append(name + value)
        node.start()
        wait_for(f"{node.name} to be ready", node.ready)
        wait_for("all shards to serve", cluster.all_serving)


def set_policy(client):
    policy = client.call("AdminService/GetCluster", {})["policy"]
    policy["version"] = str(int(policy["version"]) + 1)
    policy["currencies"] = [{"name": "gold", "maxBalance": "1000000"},
                            {"name": "gems", "minBalance": "-5"}, {"name": "dust"}]
    policy["mailboxMax"] = 50
    client.call("AdminService/SetPolicy", {"policy": policy})
    return client.call("AdminService/GetCluster", {})["policy"]


def without_chatter(member):
    """RocksDB's own log and the owner of files tell of the machine."""
    if pathlib.Path(member.name).name.startswith("LOG"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def pack(cluster, known):
    (cluster.dir / "known.json").write_text(json.dumps(known, indent=1))
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name in ("known.json", "etcd", *(node.name for node in cluster.nodes)):
            archive.add(cluster.dir / name, name, filter=without_chatter)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes, {len(known['operations'])} operations")


def hide_host():
    """RocksDB writes the name of the host into its tables."""
    if ctypes.CDLL(None).unshare(CLONE_NEWUTS) != 0:
        sys.exit("make.py: only root can give the archive's host another name")
    socket.sethostname("holdfast")


def main():
    hide_host()
    cluster = Cluster(shards=SHARDS, options={"node": {
        "checkpoint-interval": "300ms"}})
    with cluster:
        story = Story(cluster.client)
        policy = set_policy(cluster.client)
        story.deeds("early")
        time.sleep(3)  # Some rounds of checkpoints.
        restart_nodes(cluster, checkpoint_interval="1h")
        story.deeds("late")
        players = story.look()
        story.rush(lambda: [node.kill() for node in cluster.nodes])
        for process in (cluster.router, *cluster.coordinators):
            process.kill()
        cluster.etcd.stop()
        pack(cluster, {"made_at_ms": int(time.time() * 1000), "shards": SHARDS, "policy": policy,
                       "operations": story.operations, "players": players,
                       "traders": [f"trader-{n}" for n in range(TRADERS)]})


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
