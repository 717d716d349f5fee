"""Writes the mutated cores into build/mutate/src and builds the programs that judge mutants."""

import dataclasses
import hashlib
import json
import pathlib
import shlex
import subprocess

import operators
import schemata
import scope
import syntax

PRESET = "mutate"
# What decides how a source is mutated; with the source, the headers and the compiler's arguments.
MAKERS = ("operators.py", "places.py", "schemata.py", "scope.py", "syntax.py")
BUILD_S_MAX = 3600


class Broken(Exception):
    """The machinery failed: there is no verdict about any mutant."""


def run(command, seconds=BUILD_S_MAX, **options):
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              timeout=seconds, **options)
    except subprocess.TimeoutExpired as late:
        raise Broken(f"{shlex.join(map(str, command))}: not done after {seconds} s") from late


def must(command, **options):
    done = run(command, **options)
    if done.returncode != 0:
        raise Broken(f"{shlex.join(map(str, command))}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def write_if_new(path, data):
    """Same bytes keep their time, so that ninja does not build them again."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class Build:
    """The tree of sources, the build folder, and what is known of its mutants."""

    def __init__(self, root=scope.ROOT, jobs=2):
        self.root, self.jobs = pathlib.Path(root), jobs
        self.out = self.root / "build" / PRESET
        self.src = self.out / "src"
        self.known, self.dropped = [], {}

    def build(self):
        """What judges mutants, of the files that `generate` wrote."""
        must(["cmake", "--build", "--preset", PRESET, "-j", str(self.jobs), "--", "--quiet"], cwd=self.root)

    def configure(self, files):
        """The build folder, and what protobuf makes, which the files include."""
        write_if_new(self.src / "files", "".join(f"{name}\n" for name in files).encode())
        must(["cmake", "--preset", PRESET], cwd=self.root)
        must(["cmake", "--build", "--preset", PRESET, "--target", "generated", "-j", str(self.jobs), "--",
              "--quiet"], cwd=self.root)

    def generate(self, files):
        """Writes every file with its mutants, and the table of all."""
        commands = self.commands()
        self.known, self.dropped = [], {}
        for name in files:
            if name not in commands:
                raise Broken(f"{name}: no component compiles it (build/{PRESET}/compile_commands.json)")
            known = self.mutants_of(name, commands[name])
            self.known += known
        write_if_new(self.src / "mutant_table.c", self.table(files).encode())

    def commands(self):
        """File -> the compiler's arguments that matter for its meaning."""
        found = {}
        for entry in json.loads((self.out / "compile_commands.json").read_text()):
            path = pathlib.Path(entry["file"])
            if path.is_relative_to(self.src):
                found[path.relative_to(self.src).as_posix()] = syntax.arguments_of(shlex.split(entry["command"]))
        return found

    def mutants_of(self, name, arguments):
        """From the source, or as they were found the last time in the same source with the same tool."""
        kept = self.src / f"{name}.json"
        key = self._key(name, arguments)
        if kept.exists() and (self.src / name).exists():
            stored = json.loads(kept.read_text())
            if stored["key"] == key:
                self.dropped[name] = stored["dropped"]
                return [schemata.Known(**one) for one in stored["known"]]
        text, known, dropped = schemata.mutate(self.root / name, name, scope.core_of(name), arguments)
        write_if_new(self.src / name, text)
        kept.write_text(json.dumps({"key": key, "dropped": dropped,
                                    "known": [dataclasses.asdict(one) for one in known]}))
        self.dropped[name] = dropped
        return known

    def _key(self, name, arguments):
        """A header may turn a text into a macro or change a type: all headers count."""
        digest = hashlib.sha256()
        makers = [pathlib.Path(__file__).parent / maker for maker in MAKERS]
        for path in [self.root / name, *makers, *self._headers()]:
            digest.update(path.read_bytes())
        digest.update(repr(arguments).encode())
        return digest.hexdigest()

    def _headers(self):
        if not hasattr(self, "_header_list"):
            folders = [*scope.CORES, "idl", "runtime"]
            self._header_list = [p for folder in folders for p in sorted((self.root / folder).rglob("*.h"))]
        return self._header_list

    def table(self, files):
        counts = {name: 0 for name in files}
        for one in self.known:
            counts[one.file] += 1
        lines = ['/* Made by tools/mutate/build.py. */', '#include "tools/mutate/mutant_run.h"']
        for name in files:
            lines.append(f"unsigned mutant_active_{schemata.slug(name)};")
            lines.append(f"unsigned char *mutant_marks_{schemata.slug(name)};")
        lines.append("const struct mutant_file mutant_files[] = {")
        for name in files:
            slug = schemata.slug(name)
            lines.append(f'    {{ "{name}", {counts[name]}, &mutant_active_{slug}, &mutant_marks_{slug} }},')
        lines += ["};", f"const unsigned mutant_file_count = {len(files)};",
                  "__attribute__((constructor)) static void start(void)", "{", "    mutant_start();", "}", ""]
        return "\n".join(lines)

    def places(self, files):
        """File -> where its marks begin in the file of marks, as mutant_run.c lays them out."""
        counts = {name: 0 for name in files}
        for one in self.known:
            counts[one.file] += 1
        found, at = {}, 0
        for name in files:
            found[name] = at
            at += counts[name] + 1
        return found

    def tests(self):
        """(name, command) of each unit test that judges mutants."""
        told = json.loads(must(["ctest", "--test-dir", self.out, "-L", "mutants", "--show-only=json-v1"]))
        return [(t["name"], t["command"]) for t in told["tests"] if "command" in t]


def operators_told():
    return ", ".join(operators.OPERATORS)
