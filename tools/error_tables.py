#!/usr/bin/env python3
"""
The errors of the public API, as tables of the documentation: made from idl/error_rule.h and
idl/method_errors.h, between `<!-- errors: METHOD ... -->` (or `codes`, `actions`) and
`<!-- end of errors -->`.

  error_tables.py            writes the tables of every page in docs/
  error_tables.py --check    says what is stale, and which public method is in no page
"""

import pathlib
import re
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- errors: ([^>]*?) -->\n(.*?)<!-- end of errors -->\n", re.DOTALL)
HEAD = re.compile(r"^#define (OF|ERRORS)_(\w+)\(X\)(.*)$")
TOKEN = re.compile(r'(OF|ERRORS)_(\w+)\(X\)|X\((\w+), (\w+), "([^"]*)", "([^"]*)"\)')
KINDS = {"OPEN": (False,), "FINAL": (True,), "BOTH": (False, True)}


def joined_lines(path):
    return (ROOT / path).read_text().replace("\\\n", " ").split("\n")


class Rule(typing.NamedTuple):
    course: str  # PASSES, REFUSED or UNKNOWN
    open: str  # The action if nothing was recorded,
    final: str  # and about the recorded outcome of an attempt.
    retry_after_ms: int  # Where the answer's maker names none.
    what: str  # to do

    def told(self, final):
        """(outcome, action)"""
        if final:
            return "REFUSED", self.final
        return "UNKNOWN" if self.course == "UNKNOWN" else "NOT_APPLIED", self.open


def rules():
    """Code -> Rule."""
    text = " ".join(joined_lines("idl/error_rule.h"))
    found = re.findall(r'X\((\w+),\s+ERROR_(\w+),\s+(\w+),\s+(\w+),\s+(\d+),\s+"([^"]*)"\)', text)
    return {row[0]: Rule(row[1], row[2], row[3], int(row[4]), row[5]) for row in found}


def actions():
    """Action -> what its comment in error.proto says, in one line."""
    text = (ROOT / "idl/holdfast/v1/error.proto").read_text()
    found = re.findall(r"((?:  // .*\n)+)  ACTION_(\w+) = [1-9];", text)
    return {name: " ".join(line.strip()[3:] for line in comment.strip().split("\n"))
            for comment, name in found}


def statuses():
    """Code -> Connect's name of its status."""
    text = (ROOT / "runtime/rpc/rpc_status.c").read_text()
    return dict(re.findall(r'X\((\w+),\s+\d+,\s+\d+, "(\w+)"\)', text))


def http_statuses():
    """Code -> the status of HTTP that REST answers with, as rpc_status_rest() finds it without If-Match."""
    text = (ROOT / "runtime/rpc/rpc_status.c").read_text()
    precondition = int(re.search(r"GRPC_FAILED_PRECONDITION\s+(\d+)", text)[1])
    rows = re.findall(r'X\((\w+),\s+(\d+),\s+(\d+), "\w+"\)', text)
    return {code: 409 if int(grpc) == precondition else int(http) for code, http, grpc in rows}


def public_rows():
    """[(enumerator, "Service/Method", route)], in the order of the table."""
    text = " ".join(joined_lines("idl/method.h"))
    rows = re.findall(r"X\(\s*\d+, (\w+),\s+v1,\s+(\w+),\s+(\w+),\s+\w+,\s+(\w+),", text)
    return [(row[0], f"{row[1].capitalize()}Service/{row[2]}", row[3]) for row in rows]


def methods():
    """Enumerator -> "Service/Method", of the public ones, in the order of the table."""
    return {enumerator: name for enumerator, name, _ in public_rows()}


def routes():
    """ "Service/Method" -> its route, "MUTATION"."""
    return {name: route for _, name, route in public_rows()}


def macros():
    found = {}
    for line in joined_lines("idl/method_errors.h"):
        head = HEAD.match(line)
        if head:
            found[head[1], head[2]] = TOKEN.findall(head[3])
    return found


def rows_of(table, name):
    rows = []
    for kind, group, code, final, when, what in table[name]:
        rows += rows_of(table, (kind, group)) if kind else [(code, final, when, what)]
    return rows


def errors():
    """ "Service/Method" -> [(code, OPEN | FINAL | BOTH, when, what to do)]."""
    table, rule = macros(), rules()
    return {name: [(code, kind, when, what or rule[code].what)
                   for code, kind, when, what in rows_of(table, ("ERRORS", enumerator))]
            for enumerator, name in methods().items()}


def pairs():
    """ "Service/Method" -> {(code, final)}: all that it can give."""
    return {name: {(code, final) for code, kind, _, _ in rows for final in KINDS[kind]}
            for name, rows in errors().items()}


def table_of(names):
    """One row for what several methods share."""
    every, shared = errors(), {}
    for name in names:
        for row in every[name]:
            shared.setdefault(row, []).append(name)
    rule = rules()
    order = list(rule)
    lines = ["| error | outcome, action | of | when | do |", "|---|---|---|---|---|"]
    for row in sorted(shared, key=lambda row: (order.index(row[0]), row[1])):
        code, kind, when, what = row
        of = shared[row]
        who = "all" if len(of) == len(names) else ", ".join(short(name, names) for name in of)
        told = "; ".join(", ".join(word.lower() for word in rule[code].told(final)) for final in KINDS[kind])
        lines.append(f"| `{code}` | {told} | {who} | {when} | {what} |")
    return "\n".join(lines) + "\n"


def short(name, names):
    method = name.split("/")[1]
    return method if sum(other.split("/")[1] == method for other in names) == 1 else name


def table_of_codes():
    status = statuses()
    lines = ["| error | status | outcome, action | if refused | retry_after_ms, if the answer's maker names none | do |",
             "|---|---|---|---|---|---|"]
    given = {pair for found in pairs().values() for pair in found}
    for code, rule in rules().items():
        if code == "UNSPECIFIED":
            continue
        told = {final: ", ".join(rule.told(final)).lower() if (code, final) in given else ""
                for final in (False, True)}
        told[True] = told[True].removeprefix("refused, ")
        lines.append(f"| `{code}` | `{status[code]}` | {told[False]} | {told[True]} | "
                     f"{rule.retry_after_ms or ''} | {rule.what} |")
    return "\n".join(lines) + "\n"


def table_of_actions():
    given = {pair for found in pairs().values() for pair in found}
    lines = ["| `action` | what the client does | of |", "|---|---|---|"]
    for action, text in actions().items():
        codes = [code for code, rule in rules().items()
                 if any((code, final) in given and rule.told(final)[1] == action for final in (False, True))]
        lines.append(f"| `{action.lower()}` | {text} | {', '.join(f'`{code}`' for code in codes)} |")
    return "\n".join(lines) + "\n"


def render(names):
    tables = {"codes": table_of_codes, "actions": table_of_actions}
    return tables[names[0]]() if len(names) == 1 and names[0] in tables else table_of(names)


def main():
    check = "--check" in sys.argv[1:]
    told, wrong = set(), []
    for page in sorted((ROOT / "docs").glob("*.md")):
        old = page.read_text()
        for names, _ in BLOCK.findall(old):
            unknown = set(names.split()) - set(errors()) - {"codes", "actions"}
            if unknown:
                sys.exit(f"{page.name}: no public method: {', '.join(sorted(unknown))}")
            told |= set(names.split())
        new = BLOCK.sub(lambda block: f"<!-- errors: {block[1]} -->\n{render(block[1].split())}"
                                      "<!-- end of errors -->\n", old)
        if new != old and check:
            wrong.append(f"docs/{page.name}: its table of errors is stale: tools/error_tables.py")
        elif new != old:
            page.write_text(new)
    wrong += [f"idl/method_errors.h: {name} has its table of errors in no page of docs/"
              for name in errors() if name not in told]
    print("\n".join(wrong) if wrong else f"errors: {sum(map(len, errors().values()))} rows")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
