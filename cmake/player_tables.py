#!/usr/bin/env python3
"""Makes the tables of methods that take players' tokens of the options player_field and player_public in idl:
player_tables.py DESCRIPTOR_SET HEADER

What the router could not hold a token against is an error here, so that the build fails.
"""

import pathlib
import sys

from descriptor_set import DescriptorSet, enumerator


def rows(image):
    """[(enumerator, field)]"""
    found = []
    for method in image.methods:
        if method.player_field is None:
            continue
        field = image.messages[method.request].field(method.player_field)
        if field is None or field.type != "string" or field.repeated or field.oneof is not None:
            sys.exit(f"{method.full_name}: {method.request} has no string {method.player_field}, "
                     "which its option player_field names")
        if method.streams:
            sys.exit(f"{method.full_name}: a stream takes no player's token")
        if image.messages[method.request].field("authority") is not None:
            sys.exit(f"{method.full_name}: a player's token is no authority, and {method.request} has one")
        found.append((enumerator(method.name), field.name))
    return found


def public(image):
    """[enumerator]"""
    found = [method for method in image.methods if method.player_public]
    for method in found:
        if method.player_field is not None or not method.is_read or method.streams:
            sys.exit(f"{method.full_name}: player_public is for reads that are about no player")
    return [enumerator(method.name) for method in found]


def header(image):
    lines = "".join(f" \\\n    X({name}, {field})" for name, field in rows(image))
    open_to_all = "".join(f" \\\n    X({name})" for name in public(image))
    return f"""/* Made of idl by cmake/player_tables.py. */
#ifndef METHOD_PLAYERS_H
#define METHOD_PLAYERS_H

/* method, the field that names its player */
#define METHOD_PLAYERS(X){lines}
/* those that any player may call */
#define METHODS_PUBLIC(X){open_to_all}

#endif
"""


def main():
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(header(DescriptorSet(pathlib.Path(sys.argv[1]))), encoding="utf-8")


if __name__ == "__main__":
    main()
