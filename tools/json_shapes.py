"""The shapes of plain JSON stand in one table, runtime/codec/json_shape.h, and in the comments of the .proto
files, for those who read the API. tidy.py asks here whether the two say the same."""

import re

TABLE = "runtime/codec/json_shape.h"
ROW = re.compile(r'X\("(?P<message>[\w.]+)",\s*"(?P<field>\w+)",\s*(?P<shape>\w+)\)')
MESSAGE = re.compile(r"^message (\w+) \{")
# A field, with the comment lines in front of it.
FIELD = re.compile(r"^\s*(?:repeated )?[\w.]+ (\w+) = \d+")
MARK = re.compile(r"^\s*// \((document|key|value|list|verb|operand)\)(?: |$)")


def of_table(text):
    return {(row["message"], row["field"], row["shape"].lower()) for row in ROW.finditer(text)}


def of_proto(text):
    package = re.search(r"^package ([\w.]+);", text, re.M).group(1)
    found, message, mark = set(), "", None
    for line in text.splitlines():
        if opened := MESSAGE.match(line):
            message, mark = opened.group(1), None
        elif marked := MARK.match(line):
            mark = marked.group(1)
        elif field := FIELD.match(line):
            if mark:
                found.add((f"{package}.{message}", field.group(1), mark))
            mark = None
    return found


def differences(root):
    """Sentences; none where table and comments agree."""
    table = of_table((root / TABLE).read_text())
    protos = set()
    for path in sorted((root / "idl").rglob("*.proto")):
        protos |= of_proto(path.read_text())
    for message, field, shape in sorted(table - protos):
        yield f"{message}.{field} is {shape} here, and its comment does not begin with ({shape})"
    for message, field, shape in sorted(protos - table):
        yield f"{message}.{field} is ({shape}) by its comment, and has no such row here"
