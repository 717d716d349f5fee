"""
A program that follows events as a consumer, for consumers_test.py, which kills it at any moment: it writes each event
down, then commits. Its arguments: endpoint, the consumer's name, the file.
"""

import json
import os
import sys

from client import Client, RpcError, Unanswered, uuid7

BEHIND = {"VERSION_CONFLICT", "OUT_OF_RANGE"}  # Another worker has committed: go on from there.


def work_on(client, name, log):
    page = client.call("EventService/Poll", {"consumer": name, "pageSize": 20})
    for event in page.get("events", []):
        log.write(json.dumps([event.get("shard", 0), event["seq"], event.get("opId", "")]) + "\n")
    log.write(json.dumps(["gaps", page.get("gaps", [])]) + "\n")
    log.flush()
    os.fsync(log.fileno())
    if page.get("events"):
        client.call("EventService/CommitConsumer", {
            "consumer": name, "opId": uuid7(), "version": page["consumerVersion"], "cursor": page["nextCursor"]})


def main():
    endpoint, name, path = sys.argv[1:]
    client = Client(endpoint)
    with open(path, "a", encoding="utf-8") as log:
        while True:
            try:
                work_on(client, name, log)
            except RpcError as error:
                if error.code not in BEHIND | {"UNAVAILABLE", "OUTCOME_UNKNOWN", "THROTTLED", "DEADLINE_EXCEEDED"}:
                    raise
            except (Unanswered, OSError):
                continue


if __name__ == "__main__":
    main()
