"""
tests/mutation/equivalent: mutants that change nothing that anyone could see, each with the reason. One a line, its
parts separated by tabs: file, function, operator, the line of source, OLD => NEW, the reason.
"""

import difflib
import re

PARTS = ("file", "function", "operator", "line", "change", "reason")


class Stale(Exception):
    """Lines that name no mutant."""


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def keys(known, line_text):
    """Each mutant's key, unique: the same change for the second time in a line has ` #2`."""
    seen, found = {}, {}
    for one in known:
        key = (one.file, one.function, one.operator, squeeze(line_text(one.file, one.line)),
               squeeze(f"{one.old} => {one.new}"))  # What is left out becomes nothing: `old =>`.
        seen[key] = seen.get(key, 0) + 1
        found[one.name] = key if seen[key] == 1 else (*key[:-1], f"{key[-1]} #{seen[key]}")
    return found


def read(path):
    """[(line number, key, reason)]; blank lines and those that begin with # say nothing."""
    found, wrong = [], []
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [squeeze(part) for part in line.split("\t")]
        if len(parts) != len(PARTS) or not parts[-1]:
            wrong.append(f"{path.name}:{n}: {len(parts)} parts, separated by tabs; wanted: {', '.join(PARTS)}")
        else:
            found.append((n, tuple(parts[:-1]), parts[-1]))
    if wrong:
        raise Stale("\n".join(wrong))
    return found


def nearest(key, known):
    """The key that looks most like it: in its function, its file, or anywhere."""
    for alike in (lambda k: k[:2] == key[:2], lambda k: k[0] == key[0], lambda k: True):
        texts = {"\t".join(k): k for k in known if alike(k)}
        match = difflib.get_close_matches("\t".join(key), texts, 1, 0.5)
        if match:
            return texts[match[0]]
    return None


def marked(path, keys_of):
    """The names of the mutants that the file calls equivalent. A line that names none: Stale, with the nearest."""
    names = {key: name for name, key in keys_of.items()}
    found, wrong = {}, []
    for n, key, reason in read(path) if path.exists() else []:
        if key in names:
            found[names[key]] = reason
            continue
        near = nearest(key, names)
        told = f"; did you mean {' | '.join(near)}" if near else ""
        wrong.append(f"{path.name}:{n}: no such mutant: {' | '.join(key)}{told}")
    if wrong:
        raise Stale("\n".join(wrong))
    return found
