#!/usr/bin/env python3
"""
Writes the table of REST routes in docs/rest.md, of the options google.api.http in idl. --check: only says whether it is
stale. What the router serves, the build makes of the same options (cmake/rest_tables.py).
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/rest.md"
BLOCK = re.compile(r"<!-- routes -->\n.*?<!-- end of routes -->\n", re.DOTALL)
RPC = re.compile(r"^  rpc (\w+)\([^{;]*\{(.*?)^  }", re.MULTILINE | re.DOTALL)
RULE = re.compile(r'\b(get|put|post|delete|patch): "([^"]+)"')
ORDER = ["session", "profile", "ledger", "inventory", "mailbox", "transaction", "user", "presence", "document", "favorites",
         "counter", "erasure", "events", "operation_service", "definition", "admin"]


def routes():
    """[(service, verb, path, method)]"""
    found = []
    left = {path.stem for path in (ROOT / "idl/holdfast/v1").glob("*.proto")
            if RULE.search(path.read_text(encoding="utf-8"))} - set(ORDER)
    if left:
        sys.exit(f"rest_table: ORDER lacks {', '.join(sorted(left))}")
    for name in ORDER:
        text = (ROOT / f"idl/holdfast/v1/{name}.proto").read_text(encoding="utf-8")
        service = re.search(r"^service (\w+) ", text, re.MULTILINE)[1]
        for method, options in RPC.findall(text):
            found += [(service, verb.upper(), path, method) for verb, path in RULE.findall(options)]
    return found


def table():
    lines = ["| route | method |", "|---|---|"]
    lines += [f"| `{verb} {path}` | `{service}/{method}` |" for service, verb, path, method in routes()]
    return "<!-- routes -->\n" + "\n".join(lines) + "\n<!-- end of routes -->\n"


def main():
    old = PAGE.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda _: table(), old)
    if table() not in new:
        sys.exit("docs/rest.md has no place for the table of routes")
    if new != old and "--check" in sys.argv[1:]:
        print("docs/rest.md: its table of routes is stale: tools/rest_table.py")
        return 1
    if new != old:
        PAGE.write_text(new, encoding="utf-8")
    print(f"routes: {len(routes())} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
