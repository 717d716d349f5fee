"""Ports of loopback that are free, for tests and measurements that run at the same time."""

import contextlib
import random
import socket

CLAIMS = []  # Open sockets: they go when this process does.


def free_port():
    """
    Below the ephemeral range, so that no outgoing connection takes it meanwhile; never given to
    anybody else who asks here or in runtime/etcd/loopback_port.c, as long as this process lives.
    """
    while True:
        port = random.randrange(15000, 32000)
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            claim.bind(f"\0holdfast-port-{port}")
            probe.bind(("127.0.0.1", port))
            CLAIMS.append(claim)
            return port
        claim.close()
