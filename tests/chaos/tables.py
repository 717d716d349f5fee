#!/usr/bin/env python3
"""
Runs the chaos of failovers and of all faults, and writes the figures of each into docs/reliability.md, between
its marks there. Exits 1, and writes nothing of a run that found anything wrong.

  tables.py [--only failovers|faults] [--kills N] [--freezes N] [--stops N] [--drains N] [--minutes M] [--faults N]
            [--seed S]
"""

import json
import pathlib
import re
import subprocess
import sys

from report import parser_for

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- {}: written by ./dev chaos report -->", "<!-- to here -->"
KINDS = {"killed": "SIGKILL", "frozen": "SIGSTOP", "stopped": "SIGTERM", "drained": "drain"}
BAR = 30  # Columns of the longest.


def run(name, *arguments):
    """The figures of one run."""
    done = subprocess.run([sys.executable, HERE / f"{name}.py", *map(str, arguments), "--json"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        sys.exit(f"{name} ended without figures")
    found = json.loads(done.stdout.splitlines()[-1])
    if done.returncode != 0:
        sys.exit(f"{name} found something wrong: {found['wrong']}")
    return found


def failover_table(found):
    yield "| the owner's | times | p50 | p99 | worst, ms |"
    yield "|---|---|---|---|---|"
    for kind, name in KINDS.items():
        if kind in found:
            yield (f"| {name} | {found[kind]} | {found[kind + '_p50_ms']} | {found[kind + '_p99_ms']} "
                   f"| {found[kind + '_worst_ms']} |")


def histogram(found):
    """Of the SIGKILLs."""
    counts = found.get("killed_histogram_ms", {})
    most = max(counts.values(), default=1)
    yield "```"
    for bound, count in counts.items():
        yield f"{bound:>8} ms {count:4} {'#' * max(1, round(BAR * count / most))}"
    yield "```"


def fault_table(found):
    """Three faults a line."""
    plain = {"seed", "seconds", "faults", "verdict", "history", "wrong"}
    counts = sorted((name, n) for name, n in found.items() if name not in plain and n)
    yield "| fault | times | fault | times | fault | times |"
    yield "|---|---|---|---|---|---|"
    for at in range(0, len(counts), 3):
        cells = [f"{name.replace('_', ' ')} | {n}" for name, n in counts[at:at + 3]]
        yield "| " + " | ".join(cells + [" | "] * (3 - len(cells))) + " |"


def write(part, lines):
    begin = BEGIN.format(part)
    page = PAGE.read_text(encoding="utf-8")
    text = "\n".join([begin, *lines, END])
    changed, count = re.subn(re.escape(begin) + ".*?" + re.escape(END), lambda _: text, page, flags=re.S)
    assert count == 1, f"{PAGE} has no marks of {part}"
    PAGE.write_text(changed, encoding="utf-8")


def failovers(arguments):
    found = run("failover", "--seed", arguments.seed, "--kills", arguments.kills, "--freezes",
                arguments.freezes, "--stops", arguments.stops, "--drains", arguments.drains)
    yield (f"How long the player that waits longest is not served (seed {found['seed']}; "
           "of a drain: the slowest grant):")
    yield from ("", *failover_table(found), "", "After a SIGKILL:", "", *histogram(found))


def faults(arguments):
    found = run("faults", "--seed", arguments.seed, "--minutes", arguments.minutes, "--faults", arguments.faults)
    yield (f"**{found['faults']} faults in {found['seconds']:.0f} s** (seed {found['seed']}), judged by "
           f"`holdfast-check`: {'; '.join(found['verdict'])}.")
    yield from ("", *fault_table(found))


PARTS = {"failovers": failovers, "faults": faults}


def main(arguments):
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            write(name, list(part(arguments)))


if __name__ == "__main__":
    parser = parser_for(__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--faults", type=int, default=300)
    for kind, times in (("kills", 100), ("freezes", 20), ("stops", 20), ("drains", 20)):
        parser.add_argument(f"--{kind}", type=int, default=times)
    main(parser.parse_args())
