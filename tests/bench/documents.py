"""Settings of many players as documents, beside Redis and beside strict reads of as many bytes."""

import json
import random

from holdfast import DOCUMENT_BYTES
from pages import uuid7
from peers import Redis
from processes import wait_for

READERS = 1000
BODIES = 2000
BATCH = 50


class Documents:
    """Defines the collection and gives the readers a document each, once for each cluster."""

    def __init__(self, cluster):
        self.cluster = cluster
        if not cluster.documents:
            self.fill()
            cluster.documents = True

    def fill(self):
        put = {"name": "settings", "opId": "bench", "reason": "bench", "waitMs": 20000,
               "body": {"documents": {"policy": "DOCUMENT_POLICY_MERGE"}}}
        answer = self.cluster.call("DefinitionService/PutDefinition", put, 30000)
        if "code" in answer:
            raise RuntimeError(f"PutDefinition: {answer}")
        for n in range(READERS):
            fill = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=DOCUMENT_BYTES - 24))
            answer = self.cluster.call("DocumentService/PutDocument", {
                "entity": f"player:reader{n}", "opId": uuid7(), "collection": "settings", "key": "main",
                "json": json.dumps({"fill": fill, "level": n % 100})}, 30000)
            if "written" not in answer:
                raise RuntimeError(f"PutDocument: {answer}")

    @staticmethod
    def bodies():
        """Lines of JSON."""
        for _ in range(BODIES):
            yield json.dumps({"entity": f"player:reader{random.randrange(READERS)}", "collection": "settings",
                              "key": "main"}) + "\n"

    def equal(self):
        """All members have all documents."""
        return not any(self.cluster.metric("holdfast_node_documents_apart_seconds")
                       + self.cluster.metric("holdfast_node_documents_syncing"))


def measure_documents(bench):
    """Updates at ONE beside a hash in Redis; reads of any member beside strict ones; then all members are equal."""
    cluster, redis = bench.cluster(), bench.store(Redis)
    documents = Documents(cluster)
    seconds = bench.arguments.seconds
    bench.holdfast("holdfast.documents.update.64", "document", 64)
    bench.settle()
    bench.note("redis.hset.64", bench.least_disturbed(lambda: redis.document(64, seconds)))
    bodies = bench.directory / "bodies"
    bodies.write_text("".join(documents.bodies()), encoding="utf-8")
    bench.holdfast("holdfast.documents.get.64", "call", 64, method="DocumentService/GetDocument", bodies=bodies,
                   answer_min=DOCUMENT_BYTES)
    bench.holdfast("holdfast.documents.strict.64", "read", 64, answer_min=DOCUMENT_BYTES)
    bodies.unlink()
    wait_for("all members to have all documents", documents.equal, 60)
