#!/usr/bin/env python3
"""Copies .proto files in a form that protoc-c 1.4 takes: proto_for_c.py ROOT OUT FILE..

Two things go that C has no use for or protoc-c no notion of. The options of methods go, with the imports
that declare them: cmake/rest_tables.py makes the table of routes out of google.api.http, and
cmake/player_tables.py that of the methods for players out of player_field and player_public. An `optional` scalar of proto3 becomes the oneof of one member that it is on the wire and in descriptors.
"""

import pathlib
import re
import sys

OPTION_IMPORT = re.compile(r'^import "(?:google/api/annotations|holdfast/v1/(?:player|caching))\.proto";\n', re.MULTILINE)
# The value of an option is a message in braces, which holds others of two levels at most.
HTTP_OPTION = re.compile(
    r"^ *option \(google\.api\.http\) = \{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\};\n", re.MULTILINE)
SCALAR_OPTION = re.compile(
    r"^ *option \((?:player_field|player_public|cache_max_age_s)\) = (?:\"\w+\"|\w+);\n", re.MULTILINE)
OPTIONAL = re.compile(r"^( *)optional (\w+) (\w+) = (\d+)([^;]*);", re.MULTILINE)


def for_c(text):
    text = SCALAR_OPTION.sub("", HTTP_OPTION.sub("", OPTION_IMPORT.sub("", text)))
    if 'syntax = "proto3"' not in text:
        return text
    return OPTIONAL.sub(r"\1oneof _\3 { \2 \3 = \4\5; }", text)


def main():
    root, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in sys.argv[3:]:
        text = for_c((root / name).read_text(encoding="utf-8"))
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
