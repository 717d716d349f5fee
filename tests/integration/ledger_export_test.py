"""Ledgers exported from a running cluster and checked without it: nothing is found where nothing was
done, and every line that was edited, left out or moved is named."""

import json
import pathlib
import subprocess
import unittest

from client import PAYMENTS, uuid7
from cluster import BIN, ClusterTest

UNHELD = {"authority": "unheld"}


class LedgerExport(ClusterTest):
    def holdfast(self, *words, **options):
        return subprocess.run([BIN / "holdfast", *words, "--endpoint", self.cluster.endpoint],
                              capture_output=True, text=True, timeout=120, check=False, **options)

    def spend_and_earn(self, player, times):
        for i in range(times):
            self.client.settle("LedgerService/Grant", {
                "playerId": player, "opId": uuid7(), "reason": f"é{i}",
                "currencies": {"gold": 7},
                "items": [{"kind": "sword", "attributes": '{"b":1,"a":[2]}'}], "authority": PAYMENTS})
            self.client.settle("LedgerService/Spend", {
                "playerId": player, "opId": uuid7(),
                "currencies": {"gold": 3}} | UNHELD)
        uids = [i["uid"] for i in self.client.settle(
            "InventoryService/ListItems", {"playerId": player})["items"]]
        eaten = uuid7()
        self.client.settle("LedgerService/Spend", {
            "playerId": player, "opId": eaten, "itemUids": uids[:2]} | UNHELD)
        self.client.settle("LedgerService/ReverseEntry", {
            "playerId": player, "opId": uuid7(), "targetOpId": eaten, "reason": "support"} | UNHELD)

    def verify(self, lines):
        path = pathlib.Path(self.cluster.dir) / "export.jsonl"
        path.write_text("".join(line + "\n" for line in lines))
        done = subprocess.run([BIN / "holdfast", "ledger", "verify", path], capture_output=True,
                              text=True, timeout=60, check=False)
        *faults, last = done.stdout.splitlines()
        self.assertEqual(done.returncode, 1 if faults else 0, done)
        return faults, last

    def test_an_export_is_whole_and_every_change_to_it_is_named(self):
        players = [f"ledger-{i}-{uuid7()}" for i in range(9)]
        for player in players:
            self.spend_and_earn(player, 3)
        self.spend_and_earn(players[0], 110)  # More than a page.
        one = self.holdfast("ledger", "export", "--player", players[0])
        self.assertEqual(one.returncode, 0, one)
        lines = one.stdout.splitlines()
        self.assertEqual(len(lines), 2 * 113 + 4 + 1)
        self.assertEqual(self.verify(lines), ([], "1 players, 230 entries, 0 faults"))

        everyone = self.holdfast("ledger", "export", "--all")
        self.assertEqual(everyone.returncode, 0, everyone)
        all_lines = everyone.stdout.splitlines()
        heads = [json.loads(line)["playerId"] for line in all_lines if '"head"' in line]
        self.assertEqual(len(heads), len(set(heads)))
        self.assertEqual([p for p in players if p not in heads], [])
        self.assertEqual(self.verify(all_lines)[0], [])

        name = f"player {players[0]}"
        edited = list(lines)
        edited[4] = edited[4].replace('"amount":"7"', '"amount":"8"')
        self.assertEqual(self.verify(edited)[0], [
            f"{name}: entry 5 was edited: its hash does not follow from what it says and from the "
            "entry before"])
        self.assertEqual(self.verify(lines[:6] + lines[7:])[0], [f"{name}: entry 7 is missing"])
        self.assertEqual(self.verify(lines[:-2] + lines[-1:])[0], [
            f"{name}: the ledger has 230 entries, the file ends at entry 229"])

    def test_an_export_of_nobody_is_a_head_alone(self):
        lines = self.holdfast("ledger", "export", "--player", f"stranger-{uuid7()}").stdout
        self.assertEqual(self.verify(lines.splitlines()), ([], "1 players, 0 entries, 0 faults"))


if __name__ == "__main__":
    unittest.main()
