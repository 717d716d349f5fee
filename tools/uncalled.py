"""Public functions and constants that no source of the product uses. Used by tidy.py.

Such a function is a second way to ask, which no caller proves: a test should ask what the product asks.
tools/uncalled.allow names those that tests cannot do without, with the reasons; a line that is true of
no function fails too. What the preprocessor writes (`name##_handle`) counts as used.
"""

import collections
import re

ALLOWED = "tools/uncalled.allow"
COMMENT = re.compile(r"/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
WORD = re.compile(r"[A-Za-z_]\w*")
# At the left margin: functions and constants that a source defines, and what it or a header declares.
DEFINED = re.compile(r"^(?!static |typedef |return |extern )[a-z][^;{}#=()\n]*?\b(\w+)"
                     r"(?:\([^;{}]*\)\n\{|(?:\[\w*\])* = )", re.M)
DECLARED = re.compile(r"^(?!static |typedef |return )[A-Za-z_][^;{}#=()\n]*?\b(\w+)(?:\([^;{}]*\)|(?:\[\w*\])*);", re.M)
PASTED = re.compile(r"\b([a-z]\w*_)(?=\s*##)|##\s*(_\w+)")
# Found by the names of their files: CMake makes the tables.
BY_FILE = re.compile(r"(?:node|router)/rpc/(?:\w+/)?(\w+)\.c:\1_handler?|client/cli/verbs/(verb_\w+)\.c:\2$")
# Walks of what a structure relies on are for tests and simulators.
WALK = re.compile(r"void (\w+_check)\(const struct \w+ \*\w+\)")


class Check:
    """Fed every source of the product; `problems` has (file name, line, what)."""

    def __init__(self, root):
        rows = [line.split("#")[0].strip() for line in (root / ALLOWED).read_text().splitlines()]
        self.allowed = {row for row in rows if row}
        self.defined = {}  # Name: (file name, line).
        self.used = collections.Counter()  # Definitions and declarations taken off.
        self.ends = set()  # What the preprocessor puts before or behind a name.
        self.problems = []

    def source(self, name, text):
        text = TEXT.sub('""', COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text))
        self.used.update(WORD.findall(text))
        if "##" in text:
            self.ends.update(found[1] or found[2] for found in PASTED.finditer(text))
        for found in DECLARED.finditer(text):
            self.used[found[1]] -= 1
        if name.endswith(".c"):
            for found in DEFINED.finditer(text):
                self.used[found[1]] -= 1
                if not WALK.match(found[0]):
                    self.defined[found[1]] = (name, text.count("\n", 0, found.start(1)) + 1)

    def is_made(self, name):
        """Whether the preprocessor writes it, of a word that is somewhere and a part that is in a macro."""
        rests = [name[len(end):] if name.startswith(end) else name[:-len(end)]
                 for end in self.ends if name.startswith(end) or name.endswith(end)]
        return bool(BY_FILE.match(f"{self.defined[name][0]}:{name}")) or any(self.used[rest] > 0 for rest in rests)

    def end(self):
        unused = {name for name in self.defined
                  if "_" in name and self.used[name] <= 0 and not self.is_made(name)}
        for name in sorted(unused - self.allowed):
            self.problems.append((*self.defined[name], f"no source of the product uses {name}"))
        for name in sorted(self.allowed - unused):
            self.problems.append((ALLOWED, 1, f"{name} is used, or does not exist"))
