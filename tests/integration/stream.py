"""A client of streams: what a router tells until the stream ends."""

import http.client
import json
import socket
import struct
import threading
import time

END_OF_STREAM = 2


class Stream:
    """A method's messages as Connect streams them over HTTP/1.1, read by a thread of its own."""

    def __init__(self, cluster, method, request, reads=True, buffer_bytes=0):
        self.conn = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
        if buffer_bytes:  # Before the connection is made, or the window is not bound by it.
            self.conn.sock = socket.socket()
            self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            self.conn.sock.settimeout(120)
            self.conn.sock.connect(("127.0.0.1", cluster.port))
        message = json.dumps({"heartbeatMs": 1000} | request).encode()
        self.conn.request("POST", f"/holdfast.v1.{method}",
                          struct.pack(">BI", 0, len(message)) + message,
                          {"content-type": "application/connect+json"})
        self.answer = self.conn.getresponse()
        self.messages = []  # (arrived, message)
        self.end = None     # The last envelope; {}: it broke off.
        self.thread = threading.Thread(target=self.read, daemon=True)
        if reads:
            self.thread.start()

    def read(self):
        try:
            while self.end is None:
                flags, size = struct.unpack(">BI", self.exactly(5))
                message = json.loads(self.exactly(size))
                if flags & END_OF_STREAM:
                    self.end = message
                else:
                    self.messages.append((time.monotonic(), message))
        except (OSError, http.client.HTTPException, EOFError, ValueError, AttributeError):
            self.end = self.end or {}

    def exactly(self, size):
        data = self.answer.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def told(self, field):
        """What all messages say in a repeated field, in one list."""
        return [each for _, message in list(self.messages) for each in message.get(field, [])]

    def cursor(self):
        return self.messages[-1][1]["nextCursor"]

    def close(self):
        self.conn.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.conn.close()
