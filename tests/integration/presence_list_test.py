"""
Who is online, over real processes, each on a network of its own: 2,000 players are listed and counted while servers, nodes and
links are lost; pages leave out none who stays while others come, go and are set again; erased players are not in them. And
batches, whose parts one node cannot take, while another one can.
"""

import threading
import time
import unittest

from client import uuid7
from cluster import wait_for
from two_sides import PresenceCase, enter

MANY = 2000


class PresenceListTest(PresenceCase):
    def walk(self, page_size, client=None, between=lambda page: None):
        """Names in the order of the list, the first page, and whether some page was stale."""
        found, first, stale, cursor = [], None, False, ""
        while True:
            page = self.settle("ListOnline", {"pageSize": page_size, "cursor": cursor}, client)
            first = first or page
            found += [each["playerId"] for each in page.get("players", [])]
            stale |= page.get("stale", False)
            self.assertLessEqual(len(page.get("players", [])), page_size)
            cursor = page.get("nextCursor", "")
            if not cursor:
                return found, first, stale
            between(page)

    def listed(self, client=None):
        """Those of this test; None: not all shards answered."""
        found, first, stale = self.walk(1000, client)
        mine = [name for name in found if name.endswith(self.tag)]
        return None if stale else (mine, int(first.get("count", 0)) - len(set(found)) + len(set(mine)))

    def until(self, what, players, client=None, patience_s=60):
        """The list has each of them once and no others, and counts as many."""
        def same():
            told = self.listed(client)
            return told is not None and sorted(told[0]) == sorted(players) and told[1] == len(players)
        wait_for(what, same, patience_s)

    def test_a_0_cluster_without_a_player_answers_for_all_shards(self):
        """Shards have no documents yet: first of all tests."""
        def whole():
            told = self.settle("ListOnline", {})
            return not told.get("stale") and not told.get("missingShards") and int(told.get("count", 0)) == 0
        wait_for("all shards to answer", whole)

    def test_those_who_were_set_last_come_first(self):
        players = self.names(5)
        incarnation, _ = self.server("order")
        for player in players:
            self.settle("SetPresence", {"playerId": player, "opId": uuid7(), "connection": "game", "incarnation": incarnation})
            time.sleep(2)  # A slow one is asked of another member too, which may set it later.
        self.settle("SetPresence", {"playerId": players[1], "opId": uuid7(), "connection": "phone", "ttlMs": 600000})
        self.until("all to be there", players)
        page = self.settle("ListOnline", {"pageSize": 2})
        self.assertEqual([each["playerId"] for each in page["players"]], [players[1], players[4]])
        self.assertEqual([each["connections"] for each in page["players"]], [2, 1])
        self.assertGreaterEqual(int(page["players"][0]["lastSetAtMs"]), int(page["players"][1]["lastSetAtMs"]))
        self.assertGreaterEqual(int(page["asOfMs"]), int(page["players"][0]["lastSetAtMs"]) - 1000)
        self.settle("ClearPresence", {"playerId": players[4], "opId": uuid7()})
        self.until("the one who was cleared to be gone", [player for player in players if player != players[4]])
        self.settle("ClearPresence", {"playerId": players[1], "opId": uuid7()})

    def test_two_thousand_players_through_losses(self):
        ours, theirs = self.names(MANY - 500, "a"), self.names(500, "b")
        living, _ = self.server("living")
        dying, heart = self.server("dying")
        self.batch_set(ours, incarnation=living)
        self.batch_set(theirs, incarnation=dying)
        self.until("all to be listed", ours + theirs)
        self.until("all to be listed at the far side", ours + theirs, self.cluster.far)
        heart.stop()  # A server that dies takes its players along.
        self.until("its players to be gone", ours)
        node = self.cluster.nodes[0]
        node.kill()
        try:
            self.until("all to be listed without a node", ours)
        finally:
            node.start()
        self.until("all to be listed again", ours)
        self.cluster.cut_off("node-3")
        late = self.names(50, "late")
        self.batch_set(late, self.cluster.far, ttlMs=600000)
        self.until("the far side to list those whom it took", ours + late, self.cluster.far)
        self.until("the near side to list what it has", ours)
        self.cluster.wire.heal()
        for client in (self.client, self.cluster.far):
            self.until("both sides to list all", ours + late, client)
        for player in late:
            self.settle("ClearPresence", {"playerId": player, "opId": uuid7()})

    def test_pages_leave_out_none_who_stays(self):
        staying, going = self.names(400, "s"), self.names(100, "g")
        incarnation, _ = self.server("pages")
        self.batch_set(staying + going, incarnation=incarnation)
        self.until("all to be there", staying + going)
        stop = threading.Event()

        def churn():
            number = 0
            while not stop.is_set():
                some = staying[number * 40 % 400:][:40]
                self.batch_set(some, incarnation=incarnation)
                self.batch_set([f"new-{number}-{self.tag}"], ttlMs=5000)
                if going:
                    self.settle("ClearPresence", {"playerId": going.pop(), "opId": uuid7()})
                number += 1
                stop.wait(0.25)  # A list ends for those who read faster than others set.
        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(5):
                found, _, stale = self.walk(17)
                self.assertFalse(stale)
                self.assertEqual(set(staying) - set(found), set())
        finally:
            stop.set()
            thread.join()

    def test_erased_players_are_not_listed(self):
        kept, hidden, purged = self.names(3)
        self.batch_set([kept, hidden, purged], ttlMs=600000)
        self.until("all to be there", [kept, hidden, purged])
        for player, grace_ms in ((hidden, 3600000), (purged, 0)):
            self.client.settle("ErasureService/ErasePlayer", {
                "playerId": player, "opId": uuid7(), "authority": "system:admin", "graceMs": grace_ms})
        self.until("the erased ones to be gone", [kept])
        self.client.settle("ErasureService/RestorePlayer", {
            "playerId": hidden, "opId": uuid7(), "authority": "system:admin"})
        self.until("the restored one to be back", [kept, hidden])

    def test_a_batch_passes_over_a_node_that_is_cut_off(self):
        players = self.names(100)
        others = [node.name for node in self.cluster.nodes if node.name != "node-3"]
        for here, there in ((["router-2"], others), (others, ["router-2"])):
            self.cluster.wire.cut(here, there)
        self.batch_set(players, self.cluster.far, ttlMs=600000)
        answer = self.settle("BatchGetPresence", {"requests": [{"playerId": each} for each in players]}, self.cluster.far)
        self.assertEqual([result["response"]["presence"]["playerId"] for result in answer["results"]], players)
        self.cluster.wire.heal()
        self.until("all members to have them", players)


if __name__ == "__main__":
    enter()
    unittest.main(verbosity=2)
