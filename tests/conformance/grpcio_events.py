"""
Python's stock gRPC client, following events until its standard input ends:

    grpcio_events.py DESCRIPTORS HOST:PORT PREFIX

Prints a line of JSON for each message of the stream, {"events": [{"shard", "seq", "entity", "ledgerSeq"}], "gaps":
n}, and {"end": code} when it ends, after which it goes on with the last cursor. DESCRIPTORS is a FileDescriptorSet of
idl/holdfast/v1 (protoc --descriptor_set_out).
"""

import json
import pathlib
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

RESUME_S = 0.1


def messages(path):
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(path).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"holdfast.v1.{name}"))
            for name in ("SubscribeRequest", "SubscribeResponse")]


def tell(what):
    print(json.dumps(what), flush=True)


def follow(subscribe, request):
    try:
        for message in subscribe(request):
            request.cursor = message.next_cursor
            tell({"events": [{"shard": event.shard, "seq": event.seq, "entity": event.entity,
                              "ledgerSeq": event.ledger.seq} for event in message.events],
                  "gaps": len(message.gaps)})
    except grpc.RpcError as error:
        tell({"end": error.code().name.lower()})


def main():
    request_class, response_class = messages(sys.argv[1])
    channel = grpc.insecure_channel(sys.argv[2])
    subscribe = channel.unary_stream("/holdfast.v1.EventService/Subscribe",
                                     request_serializer=request_class.SerializeToString,
                                     response_deserializer=response_class.FromString)
    request = request_class(entity_prefix=sys.argv[3])

    def run():
        while True:
            follow(subscribe, request)
            time.sleep(RESUME_S)
    threading.Thread(target=run, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
