#!/usr/bin/env python3
"""Refuses circles of files. A unit is NAME.c with NAME.h; it depends on the units whose symbols it
uses, as nm tells of the objects of a build, and on those whose headers it includes. A unit that
depends on itself through others cannot be read, tested or moved alone.

usage: circles.py ROOT BUILD [--list | --graph FOLDER]
  --list          the units that are in circles, as tools/circles.allow has them
  --graph FOLDER  what each unit in that folder depends on there, and by what

tools/circles.allow names the units that may be in circles, one a line: none today. It may only
shrink: a unit listed there that is in no circle fails too. Programs for tests (tests/) are not looked at.
"""

import json
import pathlib
import re
import subprocess
import sys

ALLOWED = "tools/circles.allow"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
NM_BATCH = 200


def unit_of(name):
    return re.sub(r"\.[ch]$", "", name)


def is_product(name):
    """Tests are the end of every path: the product depends on none of them."""
    return (name.endswith((".c", ".h")) and not unit_of(name).endswith("_test") and
            not name.startswith("tests/"))


def objects(root, build):
    """Object file -> source, relative to the root; and the sources that are not compiled yet."""
    found, missing = {}, []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        output = entry.get("output") or re.search(r"-o (\S+\.o)\b", entry["command"]).group(1)
        compiled = pathlib.Path(entry["directory"]) / output
        if root not in source.parents or build in source.parents:
            continue
        name = source.relative_to(root).as_posix()
        if is_product(name) and compiled.exists():
            found[str(compiled)] = name
        elif is_product(name):
            missing.append(name)
    return found, missing


def symbols(compiled):
    """(object, letter, symbol) of every external symbol."""
    names = sorted(compiled)
    for i in range(0, len(names), NM_BATCH):
        listing = subprocess.run(["nm", "-A", "-g", "-P", *names[i:i + NM_BATCH]], check=True,
                                 capture_output=True, text=True).stdout
        for line in listing.splitlines():
            path, rest = line.split(": ", 1)
            symbol, letter = rest.split()[:2]
            yield path, letter, symbol


def link_edges(compiled):
    definers, users = {}, {}
    for path, letter, symbol in symbols(compiled):
        table = users if letter in "Uvw" else definers
        table.setdefault(symbol, set()).add(unit_of(compiled[path]))
    for symbol, using in users.items():
        # What several programs define each, as main, says nothing.
        if len(definers.get(symbol, ())) == 1:
            (to,) = definers[symbol]
            for unit in using - {to}:
                yield unit, to, symbol


def include_edges(root, names):
    known = set(names)
    for name in names:
        for header in INCLUDE.findall((root / name).read_text()):
            if header in known and unit_of(header) != unit_of(name):
                yield unit_of(name), unit_of(header), f'"{header}"'


def graph(root, compiled):
    """Unit -> {unit that it depends on: why}."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
                             check=True, capture_output=True, text=True).stdout
    names = [n for n in listing.splitlines() if is_product(n) and (root / n).is_file()]
    edges = {unit_of(name): {} for name in names}
    for unit, to, why in include_edges(root, names):
        edges[unit].setdefault(to, why)
    for unit, to, symbol in link_edges(compiled):
        edges.setdefault(unit, {})[to] = symbol
    return edges


def circles(edges):
    """Tarjan's strongly connected components of more than one unit, without recursion."""
    order, low, on, stack, found = {}, {}, set(), [], []
    for start in sorted(edges):
        if start in order:
            continue
        work = [(start, iter(sorted(edges[start])))]
        while work:
            unit, rest = work[-1]
            if unit not in order:
                order[unit] = low[unit] = len(order)
                stack.append(unit)
                on.add(unit)
            for to in rest:
                if to not in order:
                    work.append((to, iter(sorted(edges.get(to, ())))))
                    break
                if to in on:
                    low[unit] = min(low[unit], order[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == order[unit]:
                    members = set()
                    while unit not in members:
                        members.add(stack.pop())
                    on -= members
                    if len(members) > 1:
                        found.append(members)
    return found


def shortest(edges, members):
    """The shortest circle among them, as a list of units that ends where it begins."""
    best = None
    for start in sorted(members):
        came, queue = {start: None}, [start]
        while queue:
            unit = queue.pop(0)
            for to in sorted(set(edges[unit]) & members):
                if to == start:
                    path = [start]
                    while unit is not None:
                        path.append(unit)
                        unit = came[unit]
                    path.reverse()
                    if best is None or len(path) < len(best):
                        best = path
                    queue = []
                    break
                if to not in came:
                    came[to] = unit
                    queue.append(to)
    return best


def told(edges, path):
    return " -> ".join([path[0]] + [f"{to} ({edges[unit][to]})" for unit, to in zip(path, path[1:])])


def show(edges, folder):
    for unit in sorted(edges):
        if unit.rpartition("/")[0] == folder:
            inside = [f"{to.rpartition('/')[2]} ({why})" for to, why in sorted(edges[unit].items())
                      if to.rpartition("/")[0] == folder]
            print(f"{unit.rpartition('/')[2]}: {', '.join(inside)}")


def main(root, build, *words):
    compiled, missing = objects(root, build)
    if missing:
        print(f"{len(missing)} sources are not compiled, such as {missing[0]}: build all, then look again")
        return 1
    edges = graph(root, compiled)
    if words[:1] == ("--graph",):
        return show(edges, *words[1:])
    if words == ("--list",):
        print("\n".join(sorted(set().union(*circles(edges)))))
        return 0
    allowed = {line for line in (root / ALLOWED).read_text().splitlines() if line and line[0] != "#"}
    problems, circling = [], set()
    for members in circles(edges):
        circling |= members
        new = members - allowed
        if new:
            problems.append(f"{len(members)} files in a circle, {len(new)} of them not allowed: "
                            f"{' '.join(sorted(members))}\n    {told(edges, shortest(edges, members))}")
    for unit in sorted(allowed - circling):
        problems.append(f"{ALLOWED}: {unit} is in no circle any more: take it out")
    print("\n".join(problems) if problems else f"circles: {len(edges)} units, none")
    return bool(problems)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:]))
