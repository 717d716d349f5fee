"""
Python's stock gRPC client, asked to grant in each of some situations:

    grpcio_calls.py DESCRIPTORS SITUATIONS   both as tls_calls.mjs; prints {situation: {client: ..}}

DESCRIPTORS is a FileDescriptorSet of idl/holdfast/v1 (protoc --descriptor_set_out).
"""

import json
import pathlib
import sys
import urllib.parse

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PATIENCE_S = 20


def messages(path):
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(path).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"holdfast.v1.{name}"))
            for name in ("GrantRequest", "GrantResponse")]


def grant(situation, request_class, response_class):
    url = urllib.parse.urlsplit(situation["url"])
    if url.scheme == "https":
        credentials = grpc.ssl_channel_credentials(pathlib.Path(situation["ca"]).read_bytes())
        channel = grpc.secure_channel(f"localhost:{url.port}", credentials)
    else:
        channel = grpc.insecure_channel(f"localhost:{url.port}")
    call = channel.unary_unary("/holdfast.v1.LedgerService/Grant",
                               request_serializer=request_class.SerializeToString,
                               response_deserializer=response_class.FromString)
    request = request_class(player_id=situation["player"], op_id=f"admin:{situation['player']}-py")
    request.authority = "system:payments"
    request.currencies.add(currency="gold", amount=5)
    metadata = [("authorization", f"Bearer {situation['key']}")] if situation["key"] else []
    try:
        answer = call(request, metadata=metadata, timeout=PATIENCE_S)
        return {"code": "ok", "message": answer.balances[0].currency}
    except grpc.RpcError as error:
        return {"code": error.code().name.lower(), "message": error.details()}
    finally:
        channel.close()


def main():
    request_class, response_class = messages(sys.argv[1])
    print(json.dumps({situation["name"]: {"grpcio": grant(situation, request_class, response_class)}
                      for situation in json.loads(sys.argv[2])}))


if __name__ == "__main__":
    main()
