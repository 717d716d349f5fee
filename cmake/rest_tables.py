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
KEPT_S_MAX = 60
WITH_BODY = {"POST": True, "PUT": True, "PATCH": True, "GET": False, "DELETE": False}


def fail(method, why):
    sys.exit(f"{method.full_name}: {why}")


def parts_of(binding):
    """(segments, action)."""
    method = binding.method
    if binding.path is None or not binding.path.startswith("/v1/"):
        fail(method, f"{binding.path} is not under /v1/")
    path, _, action = binding.path[1:].partition(":")
    segments = path.split("/")
    if len(segments) > SEGMENTS_MAX:
        fail(method, f"{binding.path} has more than {SEGMENTS_MAX} segments")
    for segment in segments:
        if not VARIABLE.fullmatch(segment) and not WORD.match(segment):
            fail(method, f"{segment} in {binding.path} is no small word and no {{field}}")
    if action and not ACTION.match(action):
        fail(method, f":{action} in {binding.path} is no verb")
    return segments, action


def check_fields(binding, messages):
    method = binding.method
    request = messages[method.request]
    names = VARIABLE.findall(binding.path)
    for name in names:
        field = request.field(name)
        if field is None:
            fail(method, f"{method.request} has no field {name}, which {binding.path} names")
        if field.repeated or field.type not in ("string", "uint32", "uint64"):
            fail(method, f"{name} cannot stand in a path")
    if len(names) != len(set(names)):
        fail(method, f"{binding.path} names a field twice")
    if (binding.body == "*") != WITH_BODY[binding.verb] or binding.body not in ("", "*"):
        fail(method, f"the body of a {binding.verb} is \"{'*' if WITH_BODY[binding.verb] else ''}\"")
    if binding.others and binding is not method.bindings[0]:
        fail(method, f"{binding.path} has bindings of its own")
    if binding.verb == "GET" and not method.is_read:
        fail(method, "a GET changes nothing: it lacks `option idempotency_level = NO_SIDE_EFFECTS;`")
    if method.streams:
        fail(method, "a stream has no REST route")


def routes_of(image):
    """[(binding, segments, action)]."""
    found, shapes = [], {}
    for binding in (each for method in image.methods for each in method.bindings):
        segments, action = parts_of(binding)
        check_fields(binding, image.messages)
        shape = (binding.verb, tuple(VARIABLE.sub("{}", each) for each in segments), action)
        if shape in shapes:
            fail(binding.method, f"{binding.verb} {binding.path} is the route of {shapes[shape].full_name} as well")
        shapes[shape] = binding.method
        found.append((binding, segments, action))
    return found


def kept(image):
    """[(enumerator, seconds)] of those whose answers a caller may keep."""
    found = []
    for method in image.methods:
        if method.cache_max_age_s == 0:
            continue
        if not method.is_read or all(binding.verb != "GET" for binding in method.bindings):
            fail(method, "cache_max_age_s is for what has a GET")
        if method.cache_max_age_s > KEPT_S_MAX:
            fail(method, f"cache_max_age_s is above {KEPT_S_MAX}")
        found.append((enumerator(method.name), method.cache_max_age_s))
    return found


def lines(macro, rows):
    return "".join(f" \\\n    X({row})" for row in rows).join((f"#define {macro}(X)", "\n"))


def header(image):
    routes = [f'{binding.verb}, {enumerator(binding.method.name)}, {len(segments)}, "{"/".join(segments)}", "{action}"'
              for binding, segments, action in routes_of(image)]
    reads = [enumerator(method.name) for method in image.methods if method.is_read]
    return f"""/* Made of idl by cmake/rest_tables.py. */
#ifndef REST_TABLES_H
#define REST_TABLES_H

/* verb, method, segments of the path, the path, the action behind its colon */
{lines("REST_ROUTES", routes)}
/* Methods whose idempotency_level is NO_SIDE_EFFECTS. */
{lines("REST_READS", reads)}
/* method, for how many seconds the caller of a GET may keep the answer */
{lines("REST_KEPT", [f"{name}, {seconds}" for name, seconds in kept(image)])}
#endif
"""


def main():
    image = DescriptorSet(pathlib.Path(sys.argv[1]))
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(header(image), encoding="utf-8")


if __name__ == "__main__":
    main()
