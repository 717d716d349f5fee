#!/usr/bin/env python3
"""Makes the router's table of REST routes of the options in idl: rest_tables.py DESCRIPTOR_SET HEADER

What the router could not serve, or what a caller could not tell apart, is an error here, so that the build fails.
"""

import pathlib
import re
import sys

from descriptor_set import DescriptorSet, enumerator

VARIABLE = re.compile(r"\{(\w+)\}")
WORD = re.compile(r"[a-z][a-z0-9]*\Z")
ACTION = re.compile(r"[a-z][a-zA-Z0-9]*\Z")
SEGMENTS_MAX = 8
WITH_BODY = {"POST": True, "PUT": True, "PATCH": True, "GET": False, "DELETE": False}


def fail(method, why):
    sys.exit(f"{method.full_name}: {why}")


def parts_of(method):
    """(segments, action)."""
    if not method.path.startswith("/v1/"):
        fail(method, f"{method.path} is not under /v1/")
    path, _, action = method.path[1:].partition(":")
    segments = path.split("/")
    if len(segments) > SEGMENTS_MAX:
        fail(method, f"{method.path} has more than {SEGMENTS_MAX} segments")
    for segment in segments:
        if not VARIABLE.fullmatch(segment) and not WORD.match(segment):
            fail(method, f"{segment} in {method.path} is no small word and no {{field}}")
    if action and not ACTION.match(action):
        fail(method, f":{action} in {method.path} is no verb")
    return segments, action


def check_fields(method, messages):
    request = messages[method.request]
    names = VARIABLE.findall(method.path)
    for name in names:
        field = request.field(name)
        if field is None:
            fail(method, f"{method.request} has no field {name}, which {method.path} names")
        if field.repeated or field.type not in ("string", "uint32", "uint64"):
            fail(method, f"{name} cannot stand in a path")
    if len(names) != len(set(names)):
        fail(method, f"{method.path} names a field twice")
    if (method.body == "*") != WITH_BODY[method.verb] or method.body not in ("", "*"):
        fail(method, f"the body of a {method.verb} is \"{'*' if WITH_BODY[method.verb] else ''}\"")
    if method.verb == "GET" and not method.is_read:
        fail(method, "a GET changes nothing: it lacks `option idempotency_level = NO_SIDE_EFFECTS;`")
    if method.streams:
        fail(method, "a stream has no REST route")


def routes_of(image):
    """[(method, segments, action)] of those that have a route."""
    found, shapes = [], {}
    for method in image.methods:
        if method.verb is None:
            continue
        segments, action = parts_of(method)
        check_fields(method, image.messages)
        shape = (method.verb, tuple(VARIABLE.sub("{}", each) for each in segments), action)
        if shape in shapes:
            fail(method, f"{method.verb} {method.path} is the route of {shapes[shape].full_name} as well")
        shapes[shape] = method
        found.append((method, segments, action))
    return found


def lines(macro, rows):
    return "".join(f" \\\n    X({row})" for row in rows).join((f"#define {macro}(X)", "\n"))


def header(image):
    routes = [f'{method.verb}, {enumerator(method.name)}, {len(segments)}, "{"/".join(segments)}", "{action}"'
              for method, segments, action in routes_of(image)]
    reads = [enumerator(method.name) for method in image.methods if method.is_read]
    return f"""/* Made of idl by cmake/rest_tables.py. */
#ifndef REST_TABLES_H
#define REST_TABLES_H

/* verb, method, segments of the path, the path, the action behind its colon */
{lines("REST_ROUTES", routes)}
/* Methods whose idempotency_level is NO_SIDE_EFFECTS. */
{lines("REST_READS", reads)}
#endif
"""


def main():
    image = DescriptorSet(pathlib.Path(sys.argv[1]))
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(header(image), encoding="utf-8")


if __name__ == "__main__":
    main()
