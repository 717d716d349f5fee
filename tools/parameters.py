"""How many parameters a C function takes, and which may take more than PARAMETERS_MAX. Used by tidy.py.

tools/parameters.allow has a line for each function that takes more: file name, function, how many, with
the reason above it. It may only shrink: a line that is true of no function fails too.
"""

import re

ALLOWED = "tools/parameters.allow"
PARAMETERS_MAX = 5
COMMENT = re.compile(r"/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
# A definition at the left margin: what it returns, its name, parameters with brackets two deep, a brace.
INNER = r"(?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*"
DEFINITION = re.compile(r"^[A-Za-z_][^;{}#=()]*?\b(\w+)\((" + INNER + r")\)\s*\n\{", re.M)


def count(parameters):
    """Commas outside of brackets, and one more. What a format prints is part of the format."""
    parameters = re.sub(r",\s*\.\.\.\s*$", "", parameters)
    depth, commas = 0, 0
    for character in parameters:
        depth += (character in "([{") - (character in ")]}")
        commas += character == "," and depth == 0
    return 0 if parameters.strip() in ("", "void") else commas + 1


def definitions(text):
    """(line, function, how many parameters) of each function that the text defines."""
    text = COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)
    text = TEXT.sub('""', text)
    for found in DEFINITION.finditer(text):
        yield text[:found.start(1)].count("\n") + 1, found.group(1), count(found.group(2))


def allowed(root):
    """{(file name, function): how many}"""
    lines = (root / ALLOWED).read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {(name, function): int(number) for name, function, number in rows}


class Check:
    """Fed every source; `problems` has (path, line, what)."""

    def __init__(self, root):
        self.allowed = allowed(root)
        self.met = set()
        self.problems = []

    def source(self, path, text):
        for line, function, number in definitions(text):
            if number <= PARAMETERS_MAX:
                continue
            key = (path.name, function)
            self.met.add((*key, number))
            if number > self.allowed.get(key, PARAMETERS_MAX):
                self.problems.append((path, line, f"{function} takes {number} parameters"))

    def end(self, path):
        for key, number in sorted(self.allowed.items()):
            if (*key, number) not in self.met:
                self.problems.append((path, 1, f"{key[0]} {key[1]} takes no {number} parameters any more"))
