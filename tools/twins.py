"""Static functions whose bodies are the same in two sources of the product, whatever their names. Used by tidy.py.

Such a helper wants one home, in the lowest layer that fits. Bodies of up to SHORT characters may repeat;
tools/twins.allow names files and functions that stay, with the reasons.
"""

import collections
import re

ALLOWED = "tools/twins.allow"
SHORT = 60
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STATIC = re.compile(r"^static [^;{}#=()\n]*?\b(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}$", re.M | re.S)


class Check:
    """Fed every source; `problems` has (file name, line, what)."""

    def __init__(self, root):
        rows = [line.split() for line in (root / ALLOWED).read_text().splitlines() if not line.startswith("#")]
        self.allowed = {tuple(row) for row in rows if row}
        self.bodies = collections.defaultdict(list)
        self.problems = []

    def source(self, name, text):
        for found in STATIC.finditer(text):
            # What it takes belongs to it: the same words may be said of two structures.
            body = " ".join(COMMENT.sub(" ", found[2] + "{" + found[3]).split())
            if len(body) - len(found[2]) > SHORT:
                self.bodies[body].append((name, text.count("\n", 0, found.start(1)) + 1, found[1]))

    def end(self):
        met = set()
        for places in self.bodies.values():
            if len({name for name, _, _ in places}) < 2:
                continue
            for name, line, function in places[1:]:
                met.add((name, function))
                if (name, function) not in self.allowed:
                    first = places[0]
                    self.problems.append((name, line, f"{function} does what {first[2]} of {first[0]}:{first[1]} does"))
        for name, function in sorted(self.allowed - met):
            self.problems.append((ALLOWED, 1, f"{name} {function} has no twin any more"))
