#!/usr/bin/env python3
"""Style rules that a machine can check. Run by ctest as `tidy`; prints file:line: rule."""

import pathlib
import re
import subprocess
import sys

import json_shapes
import parameters
import twins
import uncalled

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
FILE_BYTES_MAX = 1024 * 1024
LEFTOVERS = {".orig", ".rej", ".swp"}
FILE_LINES_MAX, FUNCTION_LINES_MAX, COLUMNS_MAX, FOLDER_README_LINES_MAX = 800, 70, 100, 30
BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|atol|rand|srand|localtime|gmtime)\s*\(")
IMPURE = re.compile(r'#\s*include\s+<(unistd|pthread|time|sys/|poll|errno|nng|curl|mbedtls/ssl|uv)')
# One helper words every hint, so that what its test shows of secrets and sizes holds for all of them.
HINT, HINT_HOME = "did you mean", re.compile(r"runtime/base/nearest\.[ch]$|_test\.c$")
EMPTY_NAMES = {"utils", "util", "common", "misc", "helpers", "types", "defs", "globals"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
# Such a sentence outlives the day on which it was true: a page says what there is.
ANNOUNCED = re.compile(r"\bnot\s+(built|implemented|supported|there)\s+yet\b|\b(does|do|is|are)\s+not\s+yet\b"
                       r"|\byet\s+to\s+be\s+(built|written)\b", re.I)
# Words of sentences that hide their subject: name who does it ("a replica", "no caller"), and use a verb.
VAGUE = re.compile(r"\b(whoever|nobody|anew|that is none|said to be so)\b", re.I)
WORDED = {".c", ".h", ".proto", ".md", ".1", ".py", ".mjs", ".ts", ".sh", ".yaml", ".tpl", ".txt", ".cmake", ".luau"}
VAGUE_MAKER = "tools/tidy.py"  # It has to name them.
PROGRAM = re.compile(r"^program\(holdfast[\w-]* SOURCES [\w./ ]+ DEPENDS ([\w\s]*)", re.M)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
problems = []


def say(path, line, text):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def tracked():
    """Every file git knows, or every file where there is no git."""
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
                             capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]
    return [p for p in ROOT.rglob("*") if p.is_file()]


FILES = tracked()
PARAMETERS = parameters.Check(ROOT)
UNCALLED = uncalled.Check(ROOT)
TWINS = twins.Check(ROOT)


def programs():
    """The components that a program of the product names; reachable() has those behind them."""
    found = set()
    for path in FILES:
        if path.name == "CMakeLists.txt" and not path.relative_to(ROOT).as_posix().startswith("tests/"):
            for listed in PROGRAM.findall(path.read_text()):
                found |= set(listed.split("EXTERNAL")[0].split())
    return found


def components():
    """Folder -> [(name, DEPENDS, sources and headers)] from every component() call."""
    found = {}
    for path in FILES:
        if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
            continue
        for name, body in re.findall(r"^\s*component\((\w+)(.*?)\)", path.read_text(), re.S | re.M):
            depends = re.search(r"DEPENDS([\s\w]*)", body)
            names = depends.group(1).split("EXTERNAL")[0].split() if depends else []
            files = set(re.findall(r"[\w./-]+\.[ch]\b", body))
            files |= {"*"} if "SOURCES ${" in body else set()
            found.setdefault(path.parent.relative_to(ROOT).as_posix(), []).append(
                (name, set(names), files))
    return found


COMPONENTS = components()


def owner(file):
    """The component a file belongs to: by its listing, else the folder's only one, or the only one
    whose files are found by their names."""
    folder = file.rsplit("/", 1)[0] if "/" in file else ""
    listed = COMPONENTS.get(folder, [])
    for name, depends, files in listed:
        if file.rsplit("/", 1)[-1] in files:
            return name, depends
    rest = [each for each in listed if "*" in each[2]] or listed
    return rest[0][:2] if len(rest) == 1 else None


def reachable(name, seen=None):
    """Everything a component may include: what it depends on, however far down."""
    seen = seen if seen is not None else set()
    for listed in COMPONENTS.values():
        for other, depends, _ in listed:
            if other == name:
                for d in depends - seen:
                    seen.add(d)
                    reachable(d, seen)
    return seen


PROGRAMS = programs()
PRODUCT = PROGRAMS.union(*(reachable(name) for name in PROGRAMS))


def is_of_product(path):
    """Not a test, nor in a component that only tests are linked of."""
    file = path.relative_to(ROOT).as_posix()
    home = owner(file)
    return not file.startswith(("tests/", "tools/")) and not path.stem.endswith("_test") and \
        (home is None or home[0] in PRODUCT)


def check_include(path, n, line, home):
    if re.match(r"#\s*include\s+[<\"]mbedtls/", line) and path.parent.relative_to(ROOT).as_posix() not in (
            "runtime/tls", "runtime/crypto"):
        say(path, n, "headers of mbedtls are for runtime/tls and runtime/crypto alone")
    inc = re.match(r'#\s*include\s+"([^"]+)"', line)
    if not inc or not home or path.stem.endswith("_test"):
        return
    to = owner(inc.group(1))
    if to and to[0] != home[0] and to[0] not in reachable(home[0]):
        say(path, n, f"{home[0]} includes {to[0]} but does not declare it in DEPENDS")


def check_source(path):
    rel = path.relative_to(ROOT).as_posix()
    lines = path.read_text().split("\n")
    if path.stem in EMPTY_NAMES:
        say(path, 1, f"file name '{path.stem}' says nothing")
    if len(lines) > FILE_LINES_MAX:
        say(path, FILE_LINES_MAX, f"file of {len(lines)} lines")
    start, home, table = None, owner(rel), False
    for n, line in enumerate(lines, 1):
        table = (table or "clang-format off" in line) and "clang-format on" not in line
        if len(line) > COLUMNS_MAX and not table:
            say(path, n, f"line of {len(line)} columns")
        if BANNED.search(line):
            say(path, n, "banned function")
        if UNFINISHED.search(line):
            say(path, n, "unfinished work")
        if "/core/" in rel and not rel.endswith("_test.c") and IMPURE.search(line):
            say(path, n, "a core may not do I/O")
        if HINT in line and not HINT_HOME.search(rel):
            say(path, n, "a near miss is told without nearest_hint()")
        check_include(path, n, line, home)
        if line == "{":
            start = n
        if line == "}" and start:
            if n - start - 1 > FUNCTION_LINES_MAX:
                say(path, start, f"function of {n - start - 1} lines")
            start = None


def check_test(path):
    if not re.search(r"assert|CHECK", path.read_text()):
        say(path, 1, "a test without an assertion")


def check_patch(path):
    """One that plants a mistake fits what it was made for, exactly: else it may change something else."""
    fits = subprocess.run(["patch", "-s", "-p1", "-F0", "--dry-run", "-i", path], cwd=ROOT,
                          capture_output=True, check=False)
    if fits.returncode != 0:
        say(path, 1, "does not fit the source any more")


def check_page(path):
    text = path.read_text()
    for found in ANNOUNCED.finditer(text):
        say(path, text[:found.start()].count("\n") + 1, f"says what is not built: '{found.group()}'")


def check_words(path):
    """In C the comments: an error that a log keeps must stay what it was. Elsewhere all of it."""
    text = path.read_text()
    in_c = path.suffix in (".c", ".h", ".proto")
    parts = COMMENT.finditer(text) if in_c else [re.match(r".*", text, re.S)]
    for part in parts:
        for found in () if in_c and part[0][0] in "\"'" else VAGUE.finditer(part[0]):
            say(path, text[:part.start() + found.start()].count("\n") + 1,
                f"'{found[0]}': name the subject (a replica, the caller, no server), or say 'again'")


def anchors(path):
    """What links into a page may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def check_links(path):
    text = path.read_text()
    for found in re.finditer(r"\]\(([^)#\s:]*)(?:#([\w-]+))?\)", text):
        line = text[:found.start()].count("\n") + 1
        to = path.parent / found[1] if found[1] else path
        if not to.exists():
            say(path, line, f"links to {found[1]}, which does not exist")
        elif found[2] and to.suffix == ".md" and found[2] not in anchors(to):
            say(path, line, f"links to #{found[2]}, which is no heading of {to.name}")


def check_readme(path):
    if (path.parent / "Chart.yaml").exists():  # A chart's README is its manual.
        return
    lines = len(path.read_text().split("\n"))
    if path.parent != ROOT and path.parent.name != "docs" and lines > FOLDER_README_LINES_MAX + 1:
        say(path, lines, f"a folder's README has at most {FOLDER_README_LINES_MAX} lines")


for file in sorted(FILES):
    if file.suffix in LEFTOVERS:
        say(file, 1, "what a merge or a patch left behind")
    if file.stat().st_size > FILE_BYTES_MAX:
        say(file, 1, f"{file.stat().st_size} bytes: data, not source")
    if file.suffix in (".c", ".h"):
        check_source(file)
        if is_of_product(file):
            UNCALLED.source(file.relative_to(ROOT).as_posix(), file.read_text())
            TWINS.source(file.relative_to(ROOT).as_posix(), file.read_text())
        if file.suffix == ".c":
            PARAMETERS.source(file, file.read_text())
        if file.stem.endswith("_test") and file.suffix == ".c":
            check_test(file)
    elif file.suffix == ".patch":
        check_patch(file)
    if file.suffix in WORDED and file.relative_to(ROOT).as_posix() != VAGUE_MAKER:
        check_words(file)
    if file.suffix in (".md", ".1", ".proto", ".yaml"):
        check_page(file)
    if file.suffix == ".md":
        check_links(file)
    if file.name == "README.md":
        check_readme(file)

PARAMETERS.end(ROOT / parameters.ALLOWED)
for at in PARAMETERS.problems:
    say(*at)
for check in (UNCALLED, TWINS):
    check.end()
    for name, number, text in check.problems:
        say(ROOT / name, number, text)

problems.extend(f"{json_shapes.TABLE}: {what}" for what in json_shapes.differences(ROOT))

for maker in ("error_tables", "proof_tables", "rest_table"):
    tables = subprocess.run([sys.executable, ROOT / f"tools/{maker}.py", "--check"],
                            capture_output=True, text=True, check=False)
    if tables.returncode != 0:
        problems.append((tables.stdout + tables.stderr).strip())

print("\n".join(problems) if problems else f"tidy: {len(FILES)} files, nothing to say")
sys.exit(bool(problems))
