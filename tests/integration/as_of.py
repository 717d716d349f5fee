"""Consistency tokens (idl/as_of.h), which callers do not look into; tests do, to know owners and epochs."""

import base64

PREFIX = "c1."


def check_of(numbers):
    value = 0x811C9DC5
    for byte in numbers:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value.to_bytes(4, "little")[:3]


def compact(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytearray([number]))


def token(shard, dot):
    numbers = b"".join(map(compact, (shard, dot["epoch"], dot["owner"], dot["counter"])))
    text = base64.urlsafe_b64encode(numbers + check_of(numbers))
    return PREFIX + text.rstrip(b"=").decode()


def parse(text):
    """(shard, {"epoch", "owner", "counter"})"""
    assert text.startswith(PREFIX), text
    text = text[len(PREFIX):]
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert check_of(data[:-3]) == data[-3:], text
    numbers, number, shift = [], 0, 0
    for byte in data[:-3]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers[0], dict(zip(("epoch", "owner", "counter"), numbers[1:], strict=True))


def dot_of(answer):
    """Of the entry that carried a mutation out, from its answer."""
    return parse(answer["write"]["asOf"])[1]
