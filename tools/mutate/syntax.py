"""A C file's syntax tree, by libclang: functions, and where macros stand in the way."""

import bisect
import pathlib
import re

from clang import cindex

LIBRARY = "libclang-14.so.1"
SHOWN_MAX = 3

if not cindex.Config.loaded:
    cindex.Config.set_library_file(LIBRARY)


class DoesNotCompile(Exception):
    """The compiler's first words about it."""


def arguments_of(command):
    """What of a compiler's command line changes the meaning of the source."""
    kept, take = [], False
    for word in command:
        if take:
            kept.append(word)
            take = False
        elif word in ("-I", "-D", "-isystem", "-include"):
            kept.append(word)
            take = True
        elif re.match(r"-(I|D|U|isystem|std=)", word):
            kept.append(word)
    return [*kept, "-Wno-everything"]


class Source:
    """One file, parsed. Offsets are bytes; `text` maps each byte to one character."""

    def __init__(self, path, arguments, content=None):
        self.path = pathlib.Path(path)
        self.text = (self.path.read_bytes() if content is None else content).decode("latin-1")
        given = [] if content is None else [(str(path), self.text.encode("latin-1").decode("utf-8"))]
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.unit = cindex.Index.create().parse(str(path), arguments, given, options)
        self._errors = [d for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        self._read_macros()

    def error_lines(self):
        """Lines of this file with errors; [0] when the error is elsewhere."""
        return sorted({d.location.line if self.is_here(d.location) else 0 for d in self._errors})

    def check(self):
        if self._errors:
            first = [f"{d.location.file}:{d.location.line}: {d.spelling}" for d in self._errors[:SHOWN_MAX]]
            raise DoesNotCompile("; ".join(first))

    def is_here(self, location):
        return location.file is not None and location.file.name == str(self.path)

    def _read_macros(self):
        self.macros = []
        for cursor in self.unit.cursor.get_children():
            if cursor.kind == cindex.CursorKind.MACRO_INSTANTIATION and self.is_here(cursor.location):
                self.macros.append((cursor.extent.start.offset, cursor.extent.end.offset))
        self.macros.sort(key=lambda m: (m[0], -m[1]))
        outer, end = [], -1
        for macro in self.macros:  # A macro in a macro's argument is the outer one's business.
            if macro[0] >= end:
                outer.append(macro)
                end = macro[1]
        self.macros = outer
        self._macro_starts = [m[0] for m in outer]

    def macro_at(self, offset):
        """The macro's use that covers this byte: (start, end), or None."""
        place = bisect.bisect_right(self._macro_starts, offset) - 1
        if place >= 0 and self.macros[place][0] <= offset < self.macros[place][1]:
            return self.macros[place]
        return None

    def functions(self):
        for cursor in self.unit.cursor.get_children():
            if (cursor.kind == cindex.CursorKind.FUNCTION_DECL and cursor.is_definition()
                    and self.is_here(cursor.location) and self.macro_at(cursor.location.offset) is None):
                yield cursor

    def span(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def text_of(self, cursor):
        start, end = self.span(cursor)
        return self.text[start:end]

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1
