"""Rows that cannot be read, on all replicas of a real cluster: others go on, and a person repairs them
by the commands of docs/runbooks/HoldfastRowsUnreadable.md.

The means to spoil rows are in builds for tests alone.
"""

import json
import subprocess
import unittest

from client import RpcError, uuid7
from cluster import BIN, Cluster, wait_for
from containment_test import can_inject
from transactions_test import FREE, Trades, gold

REPAIRS = 5  # The first apply version that knows all repairs: RECORD_REPAIR_VERSION.


@unittest.skipUnless(can_inject(), "this build cannot spoil rows")
class Repair(Trades):
    @classmethod
    def plan(cls):
        return Cluster()

    def holdfast(self, *words, code=0):
        done = subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def setUp(self):
        """Every shard gets another owner, and with it goes by the version of this build."""
        super().setUp()
        for node in self.cluster.nodes:
            if all(shard.get("applyVersion", 0) >= REPAIRS for shard in self.client.shards()):
                return
            node.stop()
            node.start()
            wait_for(f"{node.name} to be ready", node.ready)
            wait_for("all shards to serve", self.cluster.all_serving)
        self.assertGreaterEqual(min(shard.get("applyVersion", 0) for shard in self.client.shards()),
                                REPAIRS)

    def spoil(self, player, table):
        self.holdfast("debug", "inject", player, f"spoil={table}")

    def held(self, player):
        return self.client.call("AdminService/GetQuarantine", {"playerId": player}).get(
            "quarantined")

    def spend(self, player):
        self.client.call("LedgerService/Spend", {
            "playerId": player, "opId": uuid7(), "currencies": gold(1)} | FREE)

    def plays(self, player, other):
        self.client.grant(player, 5)
        self.spend(player)
        self.client.call("LedgerService/TransferCurrencies", {
            "playerId": player, "toPlayerId": other, "opId": uuid7(), "currencies": gold(2)} | FREE)

    def balance(self, player):
        return self.client.call("LedgerService/GetBalances", {"playerId": player})["balances"]

    def test_a_players_row_is_repaired_by_the_runbook(self):
        player, other = f"spoilt-{uuid7()}", f"other-{uuid7()}"
        self.client.grant(player, 50)
        self.client.grant(other, 50)
        self.spend(player)
        self.client.call("ProfileService/UpdateProfile", {
            "playerId": player, "opId": uuid7(),
            "edits": [{"name": "progression", "schemaVersion": 2, "merge": '{"xp":1}'}]} | FREE)
        before = self.balance(player)
        self.spoil(player, "p")
        self.refused("QUARANTINED", self.client.grant, player, 5)
        wait_for("it to be held back", lambda: self.held(player))
        self.assertIn("cannot be read", self.held(player)["reason"])
        wait_for("it to be counted", lambda: sum(
            n.metrics()["holdfast_node_rows_unreadable_total"] for n in self.cluster.nodes) > 0)
        self.plays(other, f"third-{uuid7()}")

        rows = json.loads(self.holdfast("quarantine", "check", player, "-o", "json"))
        self.assertEqual([row["table"] for row in rows], ["p"])
        self.assertEqual(rows[0]["key"], ("pplayer:" + player).encode().hex())
        told = self.holdfast("quarantine", "check", player)
        self.assertIn(f"holdfast quarantine repair {player} --reason TEXT --rebuild --dry-run", told)
        repair = ("quarantine", "repair", player, "--reason", "ticket 118", "--rebuild",
                  "--sections", "progression:2")
        self.assertIn("would have: ledger 2", self.holdfast(*repair, "--dry-run"))
        self.refused("QUARANTINED", self.client.grant, player, 5)
        self.assertIn(f"gold {before['gold']}", self.holdfast(*repair))
        self.assertEqual(self.holdfast("quarantine", "check", player),
                         f"every row of {player} can be read\n")
        self.refused("QUARANTINED", self.client.grant, player, 5)
        self.holdfast("quarantine", "release", player, "--reason", "ticket 118")

        self.assertEqual(self.balance(player), before)
        profile = self.client.call("ProfileService/GetProfile", {"playerId": player})["profile"]
        self.assertEqual([s["json"] for s in profile["sections"].values()], [{"xp": 1}])
        self.plays(player, other)
        self.cluster.wait_converged()
        self.assertEqual(sum(n.metrics()["holdfast_node_replica_divergence_total"]
                             for n in self.cluster.nodes), 0)

    def test_a_ledger_entry_that_is_lost_is_said_to_be(self):
        player, other = f"spoilt-{uuid7()}", f"other-{uuid7()}"
        self.client.grant(player, 50)
        self.client.grant(player, 7)
        self.client.grant(other, 50)
        self.spoil(player, "l")
        self.client.call("LedgerService/ListEntries", {"playerId": player})
        wait_for("it to be held back", lambda: self.held(player))
        self.plays(other, f"third-{uuid7()}")
        rows = json.loads(self.holdfast("quarantine", "check", player, "-o", "json"))
        self.assertEqual([row["table"] for row in rows], ["l"])
        self.assertIn("REPAIR_OUTCOME_REPLACED", self.holdfast(
            "quarantine", "repair", player, "--reason", "ticket 119", "--rows", rows[0]["key"]))
        self.holdfast("quarantine", "release", player, "--reason", "ticket 119")
        self.plays(player, other)
        entries = self.client.call("LedgerService/ListEntries", {"playerId": player})["entries"]
        self.assertEqual(entries[-2]["kind"], "lost")
        self.assertEqual(self.balance(player), {"gold": 59})
        self.assertIsNone(self.held(player))
        self.cluster.wait_converged()

    def shard_of(self, player):
        return next(shard for shard in range(len(self.client.shards())) if any(
            head["playerId"] == player for head in self.client.call(
                "AdminService/ListPlayers", {"shard": shard, "pageSize": 1000}).get("players", [])))

    def two_players(self):
        """On two shards, each with money, one of them with a transfer behind it."""
        sender = f"sender-{uuid7()}"
        self.client.grant(sender, 50)
        home = self.shard_of(sender)
        while True:
            receiver = f"receiver-{uuid7()}"
            self.client.grant(receiver, 50)
            if self.shard_of(receiver) != home:
                break
        self.send(sender, receiver, 1)
        return sender, home, receiver, self.shard_of(receiver)

    def send(self, sender, receiver, amount):
        return self.client.call("LedgerService/TransferCurrencies", {
            "playerId": sender, "toPlayerId": receiver, "opId": uuid7(),
            "currencies": gold(amount)} | FREE)

    def mails(self, player):
        return sorted(mail["currencies"]["gold"] for mail in self.client.call(
            "MailboxService/ListMail", {"playerId": player})["mails"])

    def nothing_on_its_way(self):
        wait_for("nothing to be on its way", lambda: all(
            "transfersOpen" not in shard for shard in self.client.shards()))

    def test_a_channels_row_at_its_sender_is_made_again(self):
        sender, home, receiver, away = self.two_players()
        self.holdfast("debug", "inject", sender, f"spoil-key=636f{away:04x}")
        self.refused("QUARANTINED", self.send, sender, receiver, 2)
        self.assertIn(f"shard {home} cannot read its row of the channel to shard {away}",
                      self.holdfast("channel", "check", str(home), str(away)))
        self.assertIn("made again: channel to", self.holdfast(
            "channel", "repair", str(home), str(away), "--reason", "ticket 120"))
        self.assertNotIn("cannot read", self.holdfast("channel", "check", str(home), str(away)))
        self.send(sender, receiver, 4)
        self.nothing_on_its_way()
        self.assertEqual(self.mails(receiver), [1, 4])
        self.assertEqual(self.balance(sender)["gold"], 45)
        self.cluster.wait_converged()

    def test_a_channels_row_at_its_receiver_is_made_again_and_what_waited_arrives_once(self):
        sender, home, receiver, away = self.two_players()
        self.nothing_on_its_way()
        self.holdfast("debug", "inject", receiver, f"spoil-key=6369{home:04x}")
        with self.assertRaises(RpcError):  # It is on its way, and no one can say when it arrives.
            self.client.call("LedgerService/TransferCurrencies", {
                "playerId": sender, "toPlayerId": receiver, "opId": "claim:waits",
                "currencies": gold(2)} | FREE, deadline_ms=2000)
        self.assertIn("made again: channel from", self.holdfast(
            "channel", "repair", str(away), str(home), "--reason", "ticket 121"))
        self.nothing_on_its_way()
        self.send(sender, receiver, 4)
        self.nothing_on_its_way()
        self.assertEqual(self.mails(receiver), [1, 2, 4])
        self.assertEqual(self.balance(sender)["gold"], 43)
        self.assertIn("can read its rows", self.holdfast(
            "channel", "repair", str(away), str(home), "--reason", "ticket 121"))
        self.cluster.wait_converged()
        self.assertEqual(sum(n.metrics()["holdfast_node_replica_divergence_total"]
                             for n in self.cluster.nodes), 0)

    def channel(self, *words, code=0):
        return self.holdfast("channel", *(str(word) for word in words), code=code)

    def stuck_record(self, sender, home, receiver, away, op_id):
        """A transfer of 2 gold whose record cannot be read: it never left. Its number."""
        self.nothing_on_its_way()
        self.holdfast("debug", "inject", receiver, f"spoil-key=6369{home:04x}")
        with self.assertRaises(RpcError):
            self.client.call("LedgerService/TransferCurrencies", {
                "playerId": sender, "toPlayerId": receiver, "opId": op_id,
                "currencies": gold(2)} | FREE, deadline_ms=2000)
        told = self.client.call("AdminService/GetChannel", {"shard": home, "otherShard": away})
        record = int(told["outgoing"]["lastSeq"])
        self.holdfast("debug", "inject", sender, f"spoil-key=78{away:04x}{record:016x}")
        self.channel("repair", away, home, "--reason", "ticket 121")
        return record

    def plays_on(self, sender, home, receiver, away):
        if self.held(sender):
            self.holdfast("quarantine", "release", sender, "--reason", "ticket 122")
        self.send(sender, receiver, 4)
        self.nothing_on_its_way()
        self.assertNotIn("cannot read", self.channel("check", home, away))
        self.cluster.wait_converged()
        self.assertEqual(sum(n.metrics()["holdfast_node_replica_divergence_total"]
                             for n in self.cluster.nodes), 0)

    def test_a_record_that_never_left_comes_back(self):
        sender, home, receiver, away = self.two_players()
        record = self.stuck_record(sender, home, receiver, away, "claim:stuck")
        told = self.channel("check", home, away)
        self.assertIn(f"shard {home} cannot read its record {record} to shard {away}", told)
        self.assertIn(f"to repair: holdfast channel repair {home} {away} --reason TEXT "
                      f"--record {record}", told)
        repair = ("repair", home, away, "--reason", "ticket 122", "--record", record)
        self.assertIn("record.op_id", self.channel(*repair, code=1))
        self.assertIn("the sender's ledger tells", self.channel(
            *repair, "--player", sender, "--operation", "claim:stuck", "--give-up", code=1))
        done = self.channel(*repair, "--player", sender, "--operation", "claim:stuck")
        self.assertIn(f"REPAIR_OUTCOME_MADE_AGAIN: record {record} to shard {away}", done)
        self.assertIn("gold 2 (ledger entry", done)
        self.nothing_on_its_way()
        self.assertEqual(self.balance(sender)["gold"], 49)
        self.assertEqual(self.mails(receiver), [1])
        operation = self.client.call("OperationService/GetOperation", {
            "entity": "player:" + sender, "opId": "claim:stuck"})["operation"]
        self.assertIn("aborted", str(operation["state"]).lower())
        self.assertIn("or has none", self.channel(*repair))
        self.plays_on(sender, home, receiver, away)
        self.assertEqual(self.balance(sender)["gold"], 45)
        self.assertEqual(self.mails(receiver), [1, 4])

    def test_a_decision_is_stated_where_no_row_tells(self):
        sender, home, receiver, away = self.two_players()
        record = self.stuck_record(sender, home, receiver, away, "claim:stuck")
        self.holdfast("debug", "inject", receiver, f"spoil-key=6e{home:04x}{record:016x}")
        self.channel("repair", home, away, "--reason", "ticket 122", "--record", record,
                     "--player", sender, "--operation", "claim:stuck")
        told = self.channel("check", home, away)
        self.assertIn(f"shard {away} cannot read its decision on record {record} from shard {home}",
                      told)
        self.assertIn(f"of player {sender}, operation claim:stuck", told)
        repair = ("repair", away, home, "--reason", "ticket 122", "--record", record,
                  "--to", receiver)
        self.assertIn("no row of the receiver tells", self.channel(*repair, code=1))
        self.assertIn("RECORD_DECISION_CANCELLED", self.channel(
            *repair, "--decision", "cancelled"))
        self.nothing_on_its_way()  # The sender asks again, 10 seconds after it was told to wait.
        self.assertEqual(self.balance(sender)["gold"], 49)
        self.assertEqual(self.mails(receiver), [1])
        self.plays_on(sender, home, receiver, away)

    def test_both_ends_of_a_channel_are_made_again(self):
        sender, home, receiver, away = self.two_players()
        self.nothing_on_its_way()
        self.holdfast("debug", "inject", receiver, f"spoil-key=6369{home:04x}")
        self.holdfast("debug", "inject", sender, f"spoil-key=636f{away:04x}")
        self.assertIn("the sender's row is repaired first", self.channel(
            "repair", away, home, "--reason", "ticket 123", code=1))
        self.assertIn("made again: channel to", self.channel(
            "repair", home, away, "--reason", "ticket 123"))
        self.assertIn("made again: channel from", self.channel(
            "repair", away, home, "--reason", "ticket 123"))
        self.send(sender, receiver, 2)
        self.plays_on(sender, home, receiver, away)
        self.assertEqual(self.mails(receiver), [1, 2, 4])
        self.assertEqual(self.balance(sender)["gold"], 43)

    def test_rows_that_can_be_read_are_never_touched(self):
        player = f"sound-{uuid7()}"
        self.client.grant(player, 50)
        key = (b"lplayer:" + player.encode() + b"\0" + (1).to_bytes(8, "big")).hex()
        repair = ("quarantine", "repair", player, "--reason", "curious", "--rows", key)
        self.assertIn("not quarantined", self.holdfast(*repair, code=1))
        self.spoil(player, "p")
        wait_for("it to be held back", lambda: self.refused(
            "QUARANTINED", self.client.grant, player, 5) or self.held(player))
        self.assertIn("rows that cannot be read", self.holdfast(*repair, code=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
