"""Links between processes as a stranger would speak them: TLS, HELLO and frames (runtime/link/frame.h)."""

import re
import socket
import ssl
import struct

from client import ROOT

HELLO, REQUEST, RESPONSE, CANCEL, MESSAGE, PING, PONG = range(1, 8)
NODE, ROUTER, COORDINATOR, CLIENT = range(1, 5)
FORBIDDEN, NO_METHOD = 0xfffd, 0xfffe
HEADER = struct.Struct("<IBBHQIHH16s")
METHOD_ROW = re.compile(r"X\(\s*(\d+), (\w+),\s+(\w+),\s+\w+,\s+(\w+),\s+\w+,\s+(\w+),\s+(\w+),")


def methods():
    """{name: (number, is internal, route)} of idl/method.h; tests' own are not in a release."""
    rows = METHOD_ROW.findall((ROOT / "idl/method.h").read_text())
    return {name: (int(number), package.startswith("internal"), route)
            for number, name, package, _, route, _ in rows if package != "debug__v1"}


def text(value):
    return struct.pack("<I", len(value)) + value.encode()


class Closed(Exception):
    """The other side ended the link."""


class Link:
    """One TLS connection; `certs` is a pair of files or None. HELLO of the other side is `self.peer`."""

    def __init__(self, port, ca, certs=None, host="127.0.0.1"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(ca)
        if certs:
            context.load_cert_chain(*certs)
        plain = socket.create_connection((host, port), 10)
        plain.settimeout(10)
        try:
            self.sock = context.wrap_socket(plain)
        except (OSError, ssl.SSLError) as error:
            plain.close()
            raise Closed(str(error)) from error
        self.peer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, kind, method=0, number=0, body=b"", deadline_ms=2000):
        deadline_ms = deadline_ms if kind == REQUEST else 0
        head = HEADER.pack(HEADER.size - 4 + len(body), kind, 0, method, number, deadline_ms, 0, 0, b"")
        try:
            self.sock.sendall(head + body)
        except (OSError, ssl.SSLError) as error:
            raise Closed(str(error)) from error

    def read(self, size):
        data = b""
        while len(data) < size:
            try:
                part = self.sock.recv(size - len(data))
            except TimeoutError:
                raise
            except (OSError, ssl.SSLError) as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed("orderly")
            data += part
        return data

    def receive(self):
        """(kind, method, number, status, body)"""
        size, kind, _, method, number, _, status, _, _ = HEADER.unpack(self.read(HEADER.size))
        return kind, method, number, status, self.read(size + 4 - HEADER.size)

    def meet(self):
        """The other side's HELLO: (role, replica id, cluster id, name)."""
        if self.peer is None:
            kind, _, _, _, body = self.receive()
            assert kind == HELLO, kind
            _, role, replica = struct.unpack_from("<HBQ", body)
            texts, at = [], 11
            for _ in range(2):
                size, = struct.unpack_from("<I", body, at)
                texts.append(body[at + 4:at + 4 + size].decode())
                at += 4 + size
            self.peer = (role, replica, *texts)
        return self.peer

    def hello(self, role, name, replica=0, life=1, cluster=None, version=1):
        cluster = self.meet()[2] if cluster is None else cluster
        self.send(HELLO, body=struct.pack("<HBQ", version, role, replica) + text(cluster) + text(name) +
                  struct.pack("<Q", life))

    def admitted(self):
        """Whether it still stands after HELLO: a PING is answered."""
        try:
            self.meet()
            self.send(PING)
            while True:
                kind = self.receive()[0]
                if kind == PONG:
                    return True
        except Closed:
            return False

    def ask(self, method, number=1, body=b""):
        """(status, body) of the answer."""
        self.send(REQUEST, method, number, body)
        while True:
            kind, _, got, status, answer = self.receive()
            if kind == RESPONSE and got == number:
                return status, answer
