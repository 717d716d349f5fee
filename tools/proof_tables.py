#!/usr/bin/env python3
"""
Tables of docs/reliability.md and docs/planted.md that no one writes by hand: the planted mistakes, from the first
lines of their patches, and what long runs came to, from tests/runs.json. Each stands between
`<!-- proof: NAME -->` and `<!-- end of proof -->`.

  proof_tables.py                    writes the tables
  proof_tables.py --check            says what is stale
  proof_tables.py --add KIND FILE    takes a run's --json output from FILE into tests/runs.json, then writes.
                                     KIND: simulator [--first SEED], mutants, mutation, kills, transfers, game
"""

import argparse
import datetime
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = ROOT / "tests/runs.json"
PAGES = ("reliability.md", "planted.md")
BLOCK = re.compile(r"<!-- proof: (\w+) -->\n(.*?)<!-- end of proof -->\n", re.DOTALL)
SIMULATOR_RUNS_MAX = 5
AREAS = {
    "3": "profiles: sections, wallet, items", "4": "replication, members, etcd",
    "5": "sessions and fences", "6": "operations, op_ids, receipts, reservations",
    "7": "transfers, transactions, mail, the audit", "8": "checkpoints, restarts, eviction",
    "11": "budgets and lanes", "16": "the mergeable class", "17": "names of users", "20": "favourites: edges, lists, counts",
    "21": "events",
}
COLUMNS = 3
# Of a run's figures: what is not a count of something that happened.
PLAIN = {"seed", "seconds", "day", "wrong", "audit_seconds"}


def mistakes():
    """[{name, title, area, caught_by, budget, simulator}] of the simulators, by area and name."""
    found = []
    for path in sorted((ROOT / "tests/sim/mutants").glob("*.patch")):
        head = path.read_text().split("\ndiff --git", 1)[0]
        fields = dict(re.findall(r"^(Section|Caught by|Budget|Simulator): (.*)$", head, re.M))
        if fields["Section"] not in AREAS:
            sys.exit(f"{path.name}: no area for Section {fields['Section']}: tools/proof_tables.py, AREAS")
        found.append({"name": path.stem, "title": head.splitlines()[0].rstrip("."), "area": fields["Section"],
                      "caught_by": fields["Caught by"], "budget": int(fields["Budget"]),
                      "simulator": fields.get("Simulator", "cluster")})
    return sorted(found, key=lambda mistake: (mistake["area"], mistake["name"]))


def titles(folder):
    """(name, the first line) of each patch."""
    return [(path.stem, path.read_text().split("\n", 1)[0].rstrip("."))
            for path in sorted((ROOT / folder).glob("*.patch"))]


def counts_table(counts):
    """Names and numbers, three pairs a line."""
    cells = [f"{name.replace('_', ' ')} | {n:,}" for name, n in sorted(counts.items()) if n]
    yield "| what | times | what | times | what | times |"
    yield "|---|---|---|---|---|---|"
    for at in range(0, len(cells), COLUMNS):
        row = cells[at:at + COLUMNS]
        yield "| " + " | ".join(row + [" | "] * (COLUMNS - len(row))) + " |"


def simulator(runs):
    yield "| seeds | events | minutes | events a second and processor | seeds that failed | run on |"
    yield "|---|---|---|---|---|---|"
    for run in runs["simulator"]:
        minutes = f"{run['seconds'] / 60:.0f}" if run.get("seconds") else ""
        speed = f"{run['events_per_processor_second']:,}" if "events_per_processor_second" in run else ""
        yield (f"| {run['first']:,} to {run['first'] + run['seeds'] - 1:,} | {run['events']:,} | {minutes} "
               f"| {speed} | {run['violations']} | {run['day']} |")
    last = runs["simulator"][-1]
    yield from ("", "Of the last one:", "", *counts_table(last["reach"] | last["faults"]))


def planted_summary(runs):
    found, missed = runs["mutants"]["found"], runs["mutants"]["missed"]
    yield "| area | mistakes | found | missed | planted since | seeds, at most |"
    yield "|---|---|---|---|---|---|"
    for areas, name in [*(((area,), name) for area, name in AREAS.items()), (tuple(AREAS), "**all**")]:
        here = [mistake["name"] for mistake in mistakes() if mistake["area"] in areas]
        seeds = [found[one] for one in here if one in found]
        away = sum(one in missed for one in here)
        yield (f"| {name} | {len(here)} | {len(seeds)} | {away} | {len(here) - len(seeds) - away} "
               f"| {max(seeds, default=0):,} |")
    yield from ("", f"The last run of all was on {runs['mutants']['day']}.")


def planted(runs):
    found = runs["mutants"]["found"]
    for area, name in AREAS.items():
        yield from ("", f"## {name[0].upper()}{name[1:]}", "", "| mistake | patch | check that finds it | at seed | budget |",
                    "|---|---|---|---|---|")
        for mistake in mistakes():
            if mistake["area"] == area:
                missed = mistake["name"] in runs["mutants"]["missed"]
                seed = found.get(mistake["name"], "**missed**" if missed else "planted since")
                where = f" ({mistake['simulator']})" if mistake["simulator"] != "cluster" else ""
                yield (f"| {mistake['title']} | `{mistake['name']}` | {mistake['caught_by']} | {seed}{where} "
                       f"| {mistake['budget']} |")


def planted_real(_runs):
    yield "| hunted by | patch | mistake |"
    yield "|---|---|---|"
    for hunt, folder in (("fuzzing", "tests/fuzz/planted"), ("kills", "tests/chaos/planted/kills"),
                         ("transfers", "tests/chaos/planted/transfers")):
        for name, title in titles(folder):
            yield f"| {hunt} | `{name}` | {title} |"


def mutation(runs):
    run = runs["mutation"]
    for field, title in (("cores", "core"), ("operators", "operator")):
        yield f"| {title} | mutants | found by the simulator alone | by it and the unit tests | reached by neither |"
        yield "|---|---|---|---|---|"
        for name, one in [*run[field].items(), *([("**all**", run["all"])] if field == "cores" else [])]:
            alone, both = (f"{100 * one[part] / one['mutants']:.0f} %" for part in ("simulator", "together"))
            yield f"| {name} | {one['mutants']:,} | {alone} | {both} | {one['not_reached']} |"
        yield ""
    yield (f"{run['all']['mutants']:,} of {run['known']:,} mutants, as many of each core, on {run['day']}; "
           f"{run['equivalent']} are marked as equivalent."
           + (f" {run['all']['cut_short']} of those not found had no time left for every judge."
              if run["all"].get("cut_short") else ""))


def long_run(kind):
    def lines(runs):
        run = runs[kind]
        yield f"Seed {run['seed']}, {run['seconds']:,.0f} s, on {run['day']}:"
        yield from ("", *counts_table({name: n for name, n in run.items()
                                       if name not in PLAIN and isinstance(n, int)}))
    return lines


TABLES = {"simulator": simulator, "planted_summary": planted_summary, "planted": planted,
          "planted_real": planted_real, "mutation": mutation} | {kind: long_run(kind) for kind in ("kills", "transfers", "game")}


def add(runs, kind, run, first):
    run["day"] = datetime.date.today().isoformat()
    if kind == "simulator":
        kept = {name: run[name] for name in ("seeds", "events", "violations", "seconds",
                                             "events_per_processor_second", "reach", "faults", "day")}
        runs[kind] = [*runs[kind], {"first": first} | kept][-SIMULATOR_RUNS_MAX:]
    elif kind == "mutants":
        runs[kind] = {"day": run["day"],
                      "found": {r["name"]: r["seed"] for r in run["results"] if r["verdict"] == "found"},
                      "missed": [r["name"] for r in run["results"] if r["verdict"] != "found"]}
    elif kind == "mutation":
        runs[kind] = {name: run["score"][name] for name in ("all", "cores", "operators")}
        runs[kind] |= {name: run[name] for name in ("known", "equivalent", "seed", "day")}
    elif run.get("wrong"):
        sys.exit(f"that run found something wrong: {run['wrong']}")
    else:
        runs[kind] = run


def render(runs, check):
    stale, placed = [], set()
    for name in PAGES:
        page = ROOT / "docs" / name
        old = page.read_text()
        placed |= {found[1] for found in BLOCK.finditer(old)}
        unknown = {found[1] for found in BLOCK.finditer(old)} - set(TABLES)
        if unknown:
            sys.exit(f"docs/{name}: no table {', '.join(sorted(unknown))}")
        new = BLOCK.sub(lambda block: "\n".join([f"<!-- proof: {block[1]} -->", *TABLES[block[1]](runs),
                                                 "<!-- end of proof -->\n"]), old)
        if new != old and check:
            stale.append(f"docs/{name}: its tables of proof are stale: tools/proof_tables.py")
        elif new != old:
            page.write_text(new)
    return stale + [f"no page has the table {name}" for name in TABLES if name not in placed]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--add", nargs=2, metavar=("KIND", "FILE"))
    parser.add_argument("--first", type=int, default=1, help="the first seed of a run of the simulator")
    given = parser.parse_args()
    runs = json.loads(RUNS.read_text())
    if given.add:
        kind, file = given.add
        if kind not in ("simulator", "mutants", "mutation", "kills", "transfers", "game"):
            parser.error(f"--add: no kind {kind}")
        add(runs, kind, json.loads(pathlib.Path(file).read_text()), given.first)
        RUNS.write_text(json.dumps(runs, indent=1) + "\n")
    wrong = render(runs, given.check)
    print("\n".join(wrong) if wrong else f"proof: {len(mistakes())} planted mistakes, {len(runs['simulator'])} runs")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
