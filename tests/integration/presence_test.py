"""
Presence over real processes, each on a network of its own: a game server that falls silent takes its players along and no
others, a node that dies takes none, both sides of a cut set and clear, and after it all are equal. Then what a stranger may
send.
"""

import time
import unittest

from client import RpcError, uuid7
from cluster import wait_for
from two_sides import TTL_MS, PresenceCase, enter

# A lease ends at most its TTL and one renewal of etcd's after the last sign of life; then the coordinator settles.
DEAD_S = 15


class PresenceTest(PresenceCase):
    def set(self, player, connection="game", client=None, **fields):
        return self.settle("SetPresence", {"playerId": player, "opId": uuid7(), "connection": connection} | fields, client)

    def seen(self, players, client=None):
        """Player -> the connections, as their names; 200 a call. None: something could not be read."""
        found = {}
        for at in range(0, len(players), 200):
            some = players[at:at + 200]
            answer = self.settle("BatchGetPresence", {"requests": [{"playerId": each} for each in some]}, client)
            self.assertEqual(len(answer["results"]), len(some))
            for player, result in zip(some, answer["results"]):
                if "error" in result:
                    return None
                presence = result["response"].get("presence", {"playerId": player})
                self.assertEqual(presence["playerId"], player)
                found[player] = sorted(each["connection"] for each in presence.get("connections", []))
        return found

    def until(self, what, players, expected, client=None, patience_s=30):
        """Seconds until each player has these connections."""
        begun = time.monotonic()
        wait_for(what, lambda: self.seen(players, client) == {player: expected for player in players}, patience_s)
        return time.monotonic() - begun

    def documents_written(self):
        return sum(node.metrics()["holdfast_node_documents_written_bytes_total"] for node in self.cluster.nodes)

    # One side, all well.

    def test_connections_and_their_statuses(self):
        player = self.names(1)[0]
        incarnation, _ = self.server("one")
        self.set(player, "game", incarnation=incarnation, status={"in": "lobby", "n": 2})
        made = self.set(player, "phone", ttlMs=60000)
        found = self.settle("GetPresence", {"playerId": player, "context": made["written"]["context"]})["presence"]
        self.assertEqual([each["connection"] for each in found["connections"]], ["phone", "game"])
        self.assertEqual(found["connections"][1]["status"], {"in": "lobby", "n": 2})
        self.assertEqual(found["connections"][1]["incarnation"], incarnation)
        self.assertNotIn("expiresAtMs", found["connections"][1])
        self.assertEqual(found["lastSetAtMs"], found["connections"][0]["setAtMs"])
        self.settle("ClearPresence", {"playerId": player, "opId": uuid7(), "connection": "phone"})
        self.assertEqual(self.seen([player]), {player: ["game"]})
        self.settle("ClearPresence", {"playerId": player, "opId": uuid7()})
        self.assertNotIn("presence", self.settle("GetPresence", {"playerId": player}))

    def test_a_sliding_time_ends_where_it_is_not_begun_again(self):
        kept, left = self.names(2)
        for player in (kept, left):
            self.set(player, ttlMs=2000)

        def renewed():
            self.set(kept, ttlMs=2000)
            return self.seen([left]) == {left: []}
        wait_for("it to expire", renewed, every_s=0.3)
        self.assertEqual(self.seen([kept]), {kept: ["game"]})

    def test_a_server_that_falls_silent_takes_its_own_along(self):
        theirs, ours = self.names(150, "a"), self.names(150, "b")
        dying, heart = self.server("dying")
        living, _ = self.server("living")
        self.batch_set(theirs, incarnation=dying)
        self.batch_set(ours, incarnation=living)
        both = theirs[0]
        self.set(both, "second", incarnation=living)
        self.until("all to be there", theirs[1:] + ours, ["game"])
        heart.stop()
        took_s = self.until("its players to be gone", theirs[1:], [])
        self.assertLess(took_s, DEAD_S)
        print(f"a silent server's players were gone after {took_s:.1f} s (ttl_ms {TTL_MS})")
        self.assertEqual(self.seen([both]), {both: ["second"]})
        self.assertEqual(self.seen(ours), {player: ["game"] for player in ours})
        self.assertEqual(self.until("the far side", theirs[1:], [], self.cluster.far) < DEAD_S, True)
        with self.assertRaises(RpcError) as caught:
            self.client.call("PresenceService/SetPresence", {
                "playerId": ours[0], "opId": uuid7(), "connection": "c", "incarnation": dying})
        self.assertEqual((caught.exception.code, caught.exception.field), ("SERVER_EXPIRED", "incarnation"))

    def test_a_server_that_leaves_takes_its_own_along(self):
        players = self.names(20)
        incarnation, heart = self.server("leaving")
        self.batch_set(players, incarnation=incarnation)
        self.until("all to be there", players, ["game"])
        heart.stop()
        self.client.call("SessionService/UnregisterServer", {"incarnation": incarnation})
        self.assertLess(self.until("all to be gone", players, []), DEAD_S)

    def test_who_is_online_costs_no_write(self):
        players = self.names(100)
        incarnation, _ = self.server("quiet")
        self.batch_set(players, incarnation=incarnation)
        # What was set is on the disks, and nothing else of this test is on its way.
        last = [self.documents_written(), time.monotonic()]

        def quiet():
            written = self.documents_written()
            if written != last[0]:
                last[:] = [written, time.monotonic()]
            return time.monotonic() - last[1] > 8
        wait_for("no document to be written for 8 s", quiet, 90, 0.3)
        self.assertEqual(self.seen(players), {player: ["game"] for player in players})

    # Losses and cuts.

    def test_a_lost_node_takes_nobody_along(self):
        players = self.names(200)
        incarnation, _ = self.server("firm")
        self.batch_set(players, incarnation=incarnation)
        self.until("all to be there", players, ["game"])
        node = self.cluster.nodes[0]
        node.kill()
        try:
            self.until("all to be there still", players, ["game"], patience_s=60)
        finally:
            node.start()
        self.until("all to be there again", players, ["game"], patience_s=60)

    def test_both_sides_of_a_cut_set_and_clear(self):
        players = self.names(60)
        near_server, _ = self.server("near")
        self.batch_set(players, incarnation=near_server)
        self.until("all to be there", players, ["game"])
        self.cluster.cut_off("node-3")
        self.batch_set(players[:30], connection="near", incarnation=near_server)
        self.batch_set(players[15:45], self.cluster.far, connection="far", ttlMs=600000)
        for player in players[45:]:
            self.settle("ClearPresence", {"playerId": player, "opId": uuid7(), "connection": "game"}, self.cluster.far)
        self.assertEqual(self.seen(players[:1]), {players[0]: ["game", "near"]})
        self.cluster.wire.heal()
        expected = {player: ["game"] * (number < 45) + ["near"] * (number < 30) for number, player in enumerate(players)}
        for player in players[15:45]:
            expected[player] = sorted([*expected[player], "far"])
        for client in (self.client, self.cluster.far):
            wait_for("both sides to be equal", lambda client=client: self.seen(players, client) == expected, 60)

    def far_is_quick(self, players):
        """The far router has found out whom it does not reach."""
        def asked_s():
            begun = time.monotonic()
            self.seen(players, self.cluster.far)
            return time.monotonic() - begun
        wait_for("the far router to ask node-3 at once", lambda: asked_s() < 1)

    def test_two_thousand_players_come_to_a_member_that_was_not_asked(self):
        """The far router reaches one node alone, which hears of all from the others."""
        players = self.names(2000)
        incarnation, _ = self.server("large")
        others = [node.name for node in self.cluster.nodes if node.name != "node-3"]
        self.cluster.wire.cut(["router-2"], others)
        self.cluster.wire.cut(others, ["router-2"])
        self.far_is_quick(players)
        begun = time.monotonic()
        self.batch_set(players, incarnation=incarnation)
        set_s = time.monotonic() - begun
        took_s = self.until("all to be there", players, ["game"], self.cluster.far)
        print(f"2000 players were set in {set_s:.2f} s and seen at the other member {took_s:.2f} s later")
        self.assertLess(took_s, 3)
        self.cluster.wire.heal()
        self.cluster.cut_off("node-3")  # And of all that it missed in a cut.
        self.batch_set(players, connection="second", incarnation=incarnation)
        self.assertEqual(self.seen(players[:200], self.cluster.far), {player: ["game"] for player in players[:200]})
        self.cluster.wire.heal()
        self.cluster.wire.cut(["router-2"], others)
        self.cluster.wire.cut(others, ["router-2"])
        took_s = self.until("what was missed", players, ["game", "second"], self.cluster.far, 60)
        print(f"after a cut, 2000 players were equal {took_s:.2f} s after it healed")

    # A stranger.

    def test_a_registration_that_never_was_keeps_no_player_online(self):
        player, = self.names(1)
        incarnation, _ = self.server("true")
        generation, revision = incarnation.split("-")
        for wrong in (f"{generation}-{int(revision) + 500000}", f"{int(generation) + 1}-{revision}", f"{generation}-1"):
            setting = {"opId": uuid7(), "connection": "c", "incarnation": wrong}
            for method, request in (
                    ("PresenceService/SetPresence", {"playerId": player} | setting),
                    ("PresenceService/BatchSetPresence", {"requests": [{"playerId": player} | setting]}),
                    ("UserService/UpsertUser", {"playerId": player} | setting),
                    ("UserService/BatchUpsertUsers", {"requests": [{"playerId": player} | setting]})):
                with self.subTest(method=method, wrong=wrong), self.assertRaises(RpcError) as caught:
                    self.client.call(method, request)
                self.assertEqual((caught.exception.code, caught.exception.field), ("SERVER_EXPIRED", "incarnation"))
        self.assertEqual(self.seen([player]), {player: []})

    def test_bad_input_is_refused_with_its_field(self):
        whole = {"playerId": self.names(1)[0], "opId": uuid7(), "connection": "c", "ttlMs": 5000}
        for field, name, bad in (("connection", "connection", "a/b"), ("connection", "connection", ""),
                                 ("ttl_ms", "ttlMs", 999), ("ttl_ms", "ttlMs", 86400001), ("op_id", "opId", ""),
                                 ("player_id", "playerId", ""), ("status", "status", "x" * 1023),
                                 ("ttl_ms", "incarnation", "1-5")):
            error = self.refused("INVALID_ARGUMENT", self.client.call, "PresenceService/SetPresence", whole | {name: bad})
            self.assertEqual(error.field, field, str(error))
        error = self.refused("INVALID_ARGUMENT", self.client.call, "PresenceService/BatchGetPresence", {
            "requests": [{"playerId": "a"}] * 201})
        self.assertEqual(error.field, "requests")
        self.refused("INVALID_ARGUMENT", self.client.call, "PresenceService/BatchSetPresence", {
            "requests": [{"playerId": f"a{number}"} for number in range(101)], "opId": uuid7(), "ttlMs": 5000})
        part = self.client.call("PresenceService/BatchSetPresence", {
            "opId": uuid7(), "connection": "c", "ttlMs": 5000,
            "requests": [{"playerId": whole["playerId"]}, {"playerId": "other", "connection": "a b"}]})
        self.assertEqual(part["failed"], 1)
        self.assertIn("response", part["results"][0])
        self.assertEqual(part["results"][1]["error"]["field"], "connection")


if __name__ == "__main__":
    enter()
    unittest.main(verbosity=2)
