"""Every list of the API, as idl/method.h has them, pages by the same rules."""

import re
import time
import unittest

from client import PAYMENTS, ROOT, UNHELD, Heartbeat, uuid7
from cluster import ClusterTest, wait_for

FEEDS = {"AdminService/ListIncidents", "EventService/Poll"}  # Without an end: the cursor is never empty.


def methods():
    """Public lists by the table and the idl: {"LedgerService/ListEntries": (repeated field, most)}."""
    text = (ROOT / "idl/method.h").read_text(encoding="utf-8")
    rows = re.findall(r"^ +X\( *\d+, \w+, +v1, +(\w+), +(\w+),", text, re.MULTILINE)
    idl = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "idl/holdfast/v1").glob("*.proto"))
    found = {}
    for service, method in rows:
        name = f"{service.capitalize()}Service/{method}"
        request = re.search(rf"message {method}Request {{(.*?)^}}", idl, re.MULTILINE | re.DOTALL)
        if request is None or "page_size" not in request[1] or name in FEEDS:
            continue
        answer = re.search(rf"message {method}Response {{(.*?)^}}", idl, re.MULTILINE | re.DOTALL)[1]
        most = re.search(r"1 to (\d+); 0 means", request[1])
        field = re.search(r"repeated \w+ (\w+) = 1;", answer)
        found[name] = (re.sub(r"_(\w)", lambda m: m[1].upper(), field[1]), int(most[1]))
        assert re.search(r"uint32 page_size = 10;.*string cursor = 11;", request[1], re.DOTALL), name
    return found


LISTS = methods()


class Pages(ClusterTest):
    """Each list has more rows than a page of one; what another list, or other filters, would show is there too."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        client = cls.client
        for player in ("ann", "bob"):
            for _ in range(3):
                client.grant(player, 5)
                client.call("MailboxService/DeliverMail", {
                    "toPlayerIds": [player], "opId": uuid7(), "authority": "system:mail",
                    "text": "hello"})
                client.call("LedgerService/ReserveCurrencies", {
                    "playerId": player, "opId": uuid7(), "authority": UNHELD, "expiresInMs": 600000,
                    "currencies": {"gold": 1}})
        granted = client.call("LedgerService/Grant", {
            "playerId": "ann", "opId": uuid7(), "authority": PAYMENTS, "items": [{"kind": "hat"}] * 3})
        cls.uid = granted["itemUids"][0]
        client.call("LedgerService/Grant", {
            "playerId": "bob", "opId": uuid7(), "authority": PAYMENTS, "items": [{"kind": "hat"}] * 3})
        cls.other_uid = granted["itemUids"][1]
        client.call("InventoryService/TransferItems", {
            "playerId": "ann", "opId": uuid7(), "authority": UNHELD, "toPlayerId": "bob",
            "itemUids": [cls.uid]})
        cls.servers = [client.register(f"server-{n}") for n in range(3)]
        for n in range(40):
            client.grant(f"extra-{n}", 1)
        for n in range(8):  # Four versions each of two definitions, and two more of other kinds.
            wait_for("a version", lambda value=n: client.call("DefinitionService/PutDefinition", {
                "name": f"c{value % 2}", "opId": f"page-{value}", "body": {"counter": {"maxValue": value + 1}}}))
        wait_for("favourites to be in force", lambda: client.call("DefinitionService/PutDefinition", {
            "name": "favorites", "opId": uuid7(), "waitMs": 20000,
            "body": {"collection": {"conflictPolicy": "CONFLICT_POLICY_HIGHEST_VERSION"}}})["definition"].get("inForce"))
        for player in ("ann", "bob", *(f"fan-{each}" for each in range(60))):
            for target in ("pong", "chess", "doom") if player in ("ann", "bob") else ("pong", "chess"):
                client.call("FavoritesService/Favorite", {"playerId": player, "opId": uuid7(), "targetId": target})
        for each in range(60):
            client.call("AdminService/FlagEdges", {
                "playerId": f"fan-{each}", "opId": uuid7(), "authority": "system:moderation", "reason": "pages",
                "targetIds": ["pong", "chess"]})
        wait_for("plays to be in force", lambda: client.call("DefinitionService/PutDefinition", {
            "name": "plays", "opId": uuid7(), "waitMs": 20000, "body": {"counter": {}}})["definition"].get("inForce"))
        for player in ("ann", "bob"):
            for target in ("pong", "chess", "doom"):
                client.call("CounterService/AddToCounter", {
                    "playerId": player, "opId": uuid7(), "authority": UNHELD, "counter": "plays", "targetId": target,
                    "amount": 2})
        wait_for("notes to be in force", lambda: client.call("DefinitionService/PutDefinition", {
            "name": "notes", "opId": uuid7(), "waitMs": 20000, "body": {"documents": {"policy": "last_write"}}})["definition"].get("inForce"))
        for entity in ("guild:1", "guild:2"):
            for key in ("a", "b", "c"):
                client.call("DocumentService/PutDocument", {
                    "entity": entity, "opId": uuid7(), "collection": "notes", "key": key, "json": {"n": 1}})
        for name in ("ann", "bob", "cleo"):
            client.call("PresenceService/SetPresence", {
                "playerId": name, "opId": uuid7(), "connection": "web", "ttlMs": 86400000})
        for each in range(100):
            client.call("EventService/CreateConsumer", {"consumer": f"reader-{each}", "opId": uuid7()})
        for name in ("pearls", "shells"):
            client.call("DefinitionService/PutDefinition", {
                "name": name, "opId": uuid7(), "body": {"currency": {"maxBalance": 5}}})

    def request_of(self, method):
        """(filters, other filters or None) of a list that has rows."""
        if method == "InventoryService/TraceItem":
            return {"itemUid": self.uid}, {"itemUid": self.other_uid}
        if method in ("AdminService/ListPlayers", "AdminService/ListQuarantined", "AdminService/ListFlaggedEdges",
                      "EventService/ListConsumers"):
            return {"shard": 0}, {"shard": 1}
        if method in ("AdminService/ListShards", "AdminService/ListServers", "AdminService/ListProcesses",
                      "PresenceService/ListOnline"):
            return {}, None
        if method == "DefinitionService/ListDefinitions":
            return {}, {"kind": "currency"}
        if method == "DefinitionService/ListDefinitionVersions":
            return {"kind": "counter", "name": "c0"}, {"kind": "counter", "name": "c1"}
        if method == "FavoritesService/ListByTarget":
            return {"shard": 0, "targetId": "pong"}, {"shard": 0, "targetId": "chess"}
        if method == "DocumentService/ListDocuments":
            return ({"entity": each, "collection": "notes"} for each in ("guild:1", "guild:2"))
        if method == "CounterService/ListPlayerCounters":
            return {"playerId": "ann", "counter": "plays"}, {"playerId": "bob", "counter": "plays"}
        return {"playerId": "ann"}, {"playerId": "bob"}

    def pages(self, method, request):
        """All rows, walked with that request; each page but the only one has rows."""
        field, _ = LISTS[method]
        rows, cursors, cursor = [], [], ""
        while True:
            page = self.client.call(method, request | {"cursor": cursor})
            found, cursor = page.get(field, []), page.get("nextCursor", "")
            self.assertLessEqual(len(found), request.get("pageSize", len(found)))
            if cursor or rows:
                self.assertTrue(found, f"{method}: an empty page before the end")
            rows += found
            if not cursor:
                return rows, cursors
            self.assertNotIn(cursor, cursors)
            cursors.append(cursor)
            self.assertLess(len(cursors), 200)

    def names(self, method, rows):
        """What stays the same of a row while processes go on."""
        keys = {"AdminService/ListProcesses": ("role", "replicaId"), "AdminService/ListShards": ("shard",)}
        return [tuple(row.get(key) for key in keys[method]) if method in keys else row for row in rows]

    def walked(self, method):
        request, _ = self.request_of(method)
        whole, _ = self.pages(method, request)
        single, cursors = self.pages(method, request | {"pageSize": 1})
        self.assertEqual(self.names(method, single), self.names(method, whole))
        return whole, cursors

    def test_every_list_is_here(self):
        listed = {name.split("/")[1] for name in LISTS}
        self.assertLessEqual({"ListEntries", "ListItems", "ListMail", "ListReservations", "ListShards", "ListServers",
                              "ListProcesses", "ListPlayers", "ListQuarantined", "TraceItem"}, listed)

    def test_pages_of_one_row_are_the_whole_list(self):
        for beat in [Heartbeat(self.client, server) for server in self.servers]:
            self.enterContext(beat)
        for method in LISTS:
            with self.subTest(method):
                if method == "AdminService/CheckPlayer":
                    continue  # Its rows are those that cannot be read; its pages are of work, and may be empty.
                whole, cursors = self.walked(method)
                if method != "AdminService/ListQuarantined":
                    self.assertGreater(len(whole), 1)
                self.assertEqual(len(cursors), max(len(whole) - 1, 0))

    def test_a_page_above_the_maximum_is_refused_with_the_limit(self):
        for method, (_, most) in LISTS.items():
            with self.subTest(method):
                request, _ = self.request_of(method)
                self.client.call(method, request | {"pageSize": most})
                error = self.refused("INVALID_ARGUMENT", self.client.call, method,
                                     request | {"pageSize": most + 1})
                self.assertEqual((error.field, error.value), ("page_size", str(most + 1)))
                self.assertIn(str(most), error.limit)

    def test_a_cursor_is_good_for_its_list_and_filters_alone(self):
        found = {}
        for method in LISTS:
            request, _ = self.request_of(method)
            page = self.client.call(method, request | {"pageSize": 1})
            found[method] = page.get("nextCursor", "")
        self.assertGreaterEqual(sum(bool(cursor) for cursor in found.values()), len(LISTS) - 1)
        for method, own in found.items():
            request, other = self.request_of(method)
            foreign = [cursor for name, cursor in found.items() if cursor and name != method]
            for cursor in ["1", "ann", "!", *foreign[:2]]:
                error = self.refused("INVALID_ARGUMENT", self.client.call, method, request | {"cursor": cursor})
                self.assertEqual(error.field, "cursor", method)
            if other and own:
                error = self.refused("INVALID_ARGUMENT", self.client.call, method, other | {"cursor": own})
                self.assertEqual(error.field, "cursor", method)

    def test_what_comes_meanwhile_neither_repeats_nor_hides_a_row(self):
        player = f"busy-{uuid7()}"
        for _ in range(4):
            self.client.grant(player, 1)
        page = self.client.call("LedgerService/ListEntries", {"playerId": player, "pageSize": 2})
        self.client.grant(player, 1)
        rest = self.client.call("LedgerService/ListEntries", {
            "playerId": player, "pageSize": 2, "cursor": page["nextCursor"]})
        self.assertEqual([e["seq"] for e in page["entries"] + rest["entries"]], [4, 3, 2, 1])
        self.assertNotIn("nextCursor", rest)
        self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "authority": PAYMENTS, "items": [{"kind": "hat"}] * 3})
        page = self.client.call("InventoryService/ListItems", {"playerId": player, "pageSize": 1})
        time.sleep(0.002)
        self.client.call("LedgerService/Grant", {
            "playerId": player, "opId": uuid7(), "authority": PAYMENTS, "items": [{"kind": "hat"}] * 2})
        rest = self.client.call("InventoryService/ListItems", {
            "playerId": player, "cursor": page["nextCursor"]})
        uids = [item["uid"] for item in page["items"] + rest["items"]]
        self.assertEqual(len(set(uids)), len(uids))
        self.assertGreaterEqual(len(uids), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
