"""
Users over real processes, each on a network of its own: one call at login, both sides of a cut write, nothing that was
acknowledged is lost by a node that is killed, and after it all are equal. Then a name that many players claim at once, while owners are killed.
"""

import threading
import time
import unittest

from client import RpcError, uuid7
from cluster import ClusterTest, wait_for
from two_sides import TwoSides, enter

CLAIMANTS = 6


class UsersTest(ClusterTest):
    @classmethod
    def plan(cls):
        return TwoSides()

    def setUp(self):
        self.tag = uuid7()[-8:]
        wait_for("the far router", self.cluster.second.ready)

    def tearDown(self):
        self.cluster.wire.heal()

    def settle(self, method, request, client=None):
        """Until the outcome is known; what another claim of the name holds up is sent again, as the page says."""
        while True:
            try:
                return (client or self.client).settle(f"UserService/{method}", request)
            except RpcError as error:
                if error.code != "TXN_CONFLICT":
                    raise
                time.sleep(0.02)

    def upsert(self, player, client=None, **fields):
        return self.settle("UpsertUser", {"playerId": player, "opId": uuid7()} | fields, client)

    def get(self, player, client=None, **fields):
        return self.settle("GetUser", {"playerId": player} | fields, client).get("user")

    def read(self, players, client=None):
        answer = self.settle("BatchGetUsers", {"requests": [{"playerId": each} for each in players]}, client)
        self.assertEqual(len(answer["results"]), len(players))
        return [result.get("response", {}).get("user") for result in answer["results"]]

    def names(self, count, kind="u"):
        return [f"{kind}-{number}-{self.tag}" for number in range(count)]

    # One side, all well.

    def test_a_login_is_one_call(self):
        player = self.names(1)[0]
        server = self.client.register("plaza")
        made = self.upsert(player, displayName="Ada", attributes={"rank": 3}, settings={"a": 1, "b": {"c": 2}},
                           connection="game", incarnation=server, status={"in": "plaza"})
        found = self.get(player, context=made["written"]["context"])
        self.assertEqual(found, made["user"])
        self.assertEqual((found["displayName"], found["attributes"], found["settings"]), ("Ada", {"rank": 3}, {"a": 1, "b": {"c": 2}}))
        presence = self.client.settle("PresenceService/GetPresence", {"playerId": player})["presence"]
        self.assertEqual(presence["connections"], found["connections"])
        self.client.call("SessionService/UnregisterServer", {"incarnation": server})
        wait_for("the connection to go with its server", lambda: "connections" not in self.get(player))
        self.assertEqual(self.get(player)["settings"], {"a": 1, "b": {"c": 2}})

    def test_a_batch_writes_and_reads_many(self):
        players = self.names(100)
        answer = self.settle("BatchUpsertUsers", {
            "opId": uuid7(), "connection": "web", "ttlMs": 600000,
            "requests": [{"playerId": each, "displayName": each} for each in players]})
        self.assertNotIn("failed", answer)
        self.assertEqual([each["displayName"] for each in self.read(players)], players)
        self.assertEqual(self.read(["no-such"]), [None])

    def test_an_upsert_outlives_every_process(self):
        player = self.names(1)[0]
        self.upsert(player, settings={"kept": True})
        for node in self.cluster.nodes:
            node.kill()
        for node in self.cluster.nodes:
            node.start()
        wait_for("the user to be read again", lambda: (self.get(player) or {}).get("settings") == {"kept": True}, 60)

    # Two sides.

    def test_both_sides_of_a_cut_write_and_read(self):
        players = self.names(8)
        for player in players:
            self.upsert(player, settings={"old": 1})
        self.cluster.cut_off(self.cluster.nodes[0].name)
        far = self.cluster.far
        for player in players:
            here = self.upsert(player, settings={"here": 1}, connection="game", ttlMs=600000)
            there = self.upsert(player, far, settings={"there": 2}, connection="phone", ttlMs=600000, displayName="Far")
            self.assertEqual(here["user"]["settings"], {"old": 1, "here": 1})
            self.assertEqual(there["user"]["settings"], {"old": 1, "there": 2})
        self.cluster.wire.heal()

        def all_are_equal():
            seen = [self.read(players, client) for client in (self.client, far)]
            return all(user is not None and user["settings"] == {"old": 1, "here": 1, "there": 2} and
                       user.get("displayName") == "Far" and
                       sorted(each["connection"] for each in user.get("connections", [])) == ["game", "phone"]
                       for side in seen for user in side)
        wait_for("both sides to have both writes", all_are_equal, 60)

    def test_nothing_acknowledged_is_lost_by_a_node_that_is_killed(self):
        players, kept, stop = self.names(4), {}, threading.Event()

        def write():
            count = 0
            while not stop.is_set():
                for player in players:
                    count += 1
                    self.upsert(player, settings={f"n{count % 20}": count})
                    kept.setdefault(player, {})[f"n{count % 20}"] = count
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(2):
            time.sleep(1)
            victim = self.cluster.nodes[1]
            victim.kill()
            time.sleep(1)
            victim.start()
        time.sleep(1)
        stop.set()
        writer.join()
        wait_for("all that was acknowledged to be read", lambda: [
            user and user["settings"] for user in self.read(players)] == [kept[each] for each in players], 60)

    # Names: exactly one of those who claim one has it.

    def claim(self, player, name, op_id):
        return self.settle("ClaimName", {
            "playerId": player, "opId": op_id, "authority": "unheld", "name": name, "tag": self.tag})

    def rename(self, player, name, old, number, op_id):
        return self.settle("ClaimName", {
            "playerId": player, "opId": op_id, "authority": "unheld", "name": name, "tag": self.tag,
            "replaces": {"name": old, "tag": self.tag, "number": number}})

    def release(self, player, name, number, op_id=None):
        return self.settle("ReleaseName", {
            "playerId": player, "opId": op_id or uuid7(), "authority": "unheld", "name": name, "tag": self.tag, "number": number})

    def find(self, name):
        """Who has it, and the number of the binding."""
        found = self.settle("FindByName", {"name": name, "tag": self.tag})
        return found.get("playerId"), found.get("number")

    def section(self, player, name):
        found = self.client.settle("ProfileService/GetProfile", {"playerId": player, "include": [f"sections.{name}"]})
        return found["profile"].get("sections", {}).get(name, {}).get("json")

    def refused(self, field, call, *arguments):
        with self.assertRaises(RpcError) as caught:
            call(*arguments)
        self.assertEqual((caught.exception.code, caught.exception.detail["field"]), ("VERSION_CONFLICT", field))

    def test_a_name_has_one_holder_and_is_released_by_its_number_alone(self):
        ann, bob = self.names(2, "n")
        self.claim(ann, "Aurora", "claim:1")
        self.assertEqual(self.find("aUrOrA"), (ann, 1))
        self.assertTrue(self.claim(ann, "Aurora", "claim:1")["write"]["duplicate"])
        self.refused("name", self.claim, bob, "AURORA", "claim:1")
        self.refused("player_id", self.claim, ann, "Borealis", "claim:2")
        self.refused("number", self.release, bob, "Aurora", 1)  # Another one's.
        self.refused("number", self.release, ann, "Aurora", 2)
        self.assertEqual(self.find("Aurora"), (ann, 1))
        self.release(ann, "Aurora", 1, "claim:3")
        self.assertEqual(self.find("Aurora"), (None, None))
        self.claim(bob, "Aurora", "claim:2")
        _, number = self.find("Aurora")
        self.assertEqual(self.find("Aurora"), (bob, number))
        self.assertTrue(self.release(ann, "Aurora", 1, "claim:3")["write"]["duplicate"])  # Comes late, and again.
        self.refused("number", self.release, ann, "Aurora", 1, "claim:4")
        self.refused("number", self.release, ann, "Aurora", number)
        self.assertEqual(self.find("Aurora"), (bob, number))
        self.claim(ann, "Borealis", "claim:5")
        self.release(bob, "Aurora", number)
        self.release(ann, "Borealis", self.find("Borealis")[1])
        self.claim(ann, "Aurora", "claim:6")  # Made again under a greater number, which both sections have.
        self.assertGreater(self.find("Aurora")[1], number)
        self.release(ann, "Aurora", self.find("Aurora")[1])
        for method, request in (("ProfileService/UpdateProfile", {"edits": {"holder": {"schemaVersion": 1, "replace": {}}}}),
                                ("LedgerService/Grant", {"currencies": {"gold": 5}, "reason": "x"})):
            with self.assertRaises(RpcError) as caught:
                self.client.call(method, {"playerId": f"user-name:aurora#{self.tag}", "opId": uuid7(), "authority": "unheld"} | request)
            self.assertEqual(caught.exception.detail["field"], "player_id")

    def test_a_rename_is_all_or_nothing(self):
        ann, bob = self.names(2, "r")
        self.claim(ann, "Castor", "claim:1")
        self.claim(bob, "Pollux", "claim:1")
        self.refused("name", self.rename, ann, "pollux", "castor", 1, "claim:2")
        self.refused("replaces.number", self.rename, ann, "Deneb", "Pollux", 1, "claim:3")  # Another one's.
        self.refused("replaces.number", self.rename, ann, "Deneb", "Castor", 2, "claim:4")
        self.refused("player_id", self.claim, ann, "Deneb", "claim:5")
        self.assertEqual([self.find(each) for each in ("Castor", "Pollux", "Deneb")], [(ann, 1), (bob, 1), (None, None)])
        self.rename(ann, "Deneb", "Castor", 1, "claim:6")
        self.assertEqual([self.find(each) for each in ("Castor", "Deneb")], [(None, None), (ann, 1)])
        self.assertEqual(self.section(ann, "hf_name"), {"name": "Deneb", "tag": self.tag})
        self.rename(bob, "Castor", "Pollux", 1, "claim:6")
        self.assertTrue(self.rename(ann, "Deneb", "Castor", 1, "claim:6")["write"]["duplicate"])
        self.assertEqual([self.find(each)[0] for each in ("Castor", "Pollux", "Deneb")], [bob, None, ann])
        self.rename(ann, "DENEB", "deneb", 1, "claim:7")  # The same name, written in another way.
        self.assertEqual((self.find("Deneb"), self.section(ann, "hf_name")["name"]), ((ann, 2), "DENEB"))
        with self.assertRaises(RpcError) as caught:
            self.client.call("ProfileService/UpdateProfile", {
                "playerId": ann, "opId": "edit:name", "authority": "unheld",
                "edits": [{"name": "hf_name", "delete": {}}]})
        self.assertEqual((caught.exception.code, caught.exception.detail["field"]), ("INVALID_ARGUMENT", "edits[0].name"))
        self.release(ann, "Deneb", 2)
        self.release(bob, "Castor", self.find("Castor")[1])
        self.assertEqual(self.section(bob, "hf_name"), None)

    def test_of_many_who_claim_a_name_one_has_it_though_owners_are_killed(self):
        for turn in range(3):
            players, name = self.names(CLAIMANTS, f"c{turn}"), f"aurora{turn}"
            won, lost = [], []

            def run(player, name=name, won=won, lost=lost):
                try:
                    self.claim(player, name, "claim:name")
                    won.append(player)
                except RpcError as error:
                    lost.append((error.code, error.detail["field"]))
            threads = [threading.Thread(target=run, args=(each,)) for each in players]
            for thread in threads:
                thread.start()
            victim = self.cluster.nodes[turn % len(self.cluster.nodes)]
            victim.kill()
            victim.start()
            for thread in threads:
                thread.join()
            self.assertEqual((len(won), lost), (1, [("VERSION_CONFLICT", "name")] * (CLAIMANTS - 1)))
            self.assertEqual(self.find(name), (won[0], 1))
            for player in players:
                self.assertEqual(self.section(player, "hf_name"),
                                 {"name": name, "tag": self.tag} if player in won else None)
            self.assertTrue(self.claim(won[0], name, "claim:name")["write"].get("duplicate"))  # Told again.

    # Roles: once, though the answer is lost.

    def test_a_role_is_given_once_though_owners_are_killed(self):
        player = self.names(1, "roles")[0]
        for number in range(6):
            request = {"playerId": player, "opId": f"claim:{number}", "authority": "system:admin", "addRoles": [f"r{number}"],
                       "removeRoles": [f"r{number - 3}"] if number >= 3 else [], "setFlags": [{"name": "premium", "untilMs": 4102444800000}]}
            if number % 2:
                victim = self.cluster.nodes[number % len(self.cluster.nodes)]
                victim.kill()
                victim.start()
            first = self.settle("SetUserFlags", request)
            again = self.settle("SetUserFlags", request)
            self.assertEqual((first["write"]["version"], again["write"]["version"]), (number + 1, number + 1))
            self.assertTrue(again["write"]["duplicate"])
            self.assertEqual(first["roles"], again["roles"])
        told = self.settle("GetUserFlags", {"playerId": player})
        self.assertEqual([role["name"] for role in told["roles"]], ["r3", "r4", "r5"])
        self.assertEqual([(flag["name"], flag["untilMs"]) for flag in told["flags"]], [("premium", 4102444800000)])
        self.assertEqual({role["by"].split("/")[0] for role in told["roles"]}, {"system:admin"})


if __name__ == "__main__":
    enter()
    unittest.main(verbosity=2)
