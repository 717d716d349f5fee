"""What was found, as text, as a diff and as JSON. `sources`: each file's text, as it was when its mutants were made."""

import difflib

import judge

FOUND = judge.KILLED


def score(verdicts):
    """{mutants, simulator, together, not_reached, cut_short}: counts."""
    return {"mutants": len(verdicts), "simulator": sum(v.simulator == FOUND for v in verdicts),
            "together": sum(v.verdict == FOUND for v in verdicts),
            "not_reached": sum(v.verdict == judge.NOT_REACHED for v in verdicts),
            "cut_short": sum(v.cut_short for v in verdicts)}


def percent(part, whole):
    return 100.0 * part / whole if whole else 0.0


def by(verdicts, field):
    groups = {}
    for verdict in verdicts:
        groups.setdefault(getattr(verdict.mutant, field), []).append(verdict)
    return {name: score(group) for name, group in sorted(groups.items())}


def table(title, groups):
    width = max([len(title), *map(len, groups)])
    yield f"{title:<{width}} mutants  simulator  together  not reached  cut short"
    for name, one in groups.items():
        yield (f"{name:<{width}} {one['mutants']:>7}  {percent(one['simulator'], one['mutants']):>7.1f} %"
               f"  {percent(one['together'], one['mutants']):>6.1f} %  {one['not_reached']:>11}"
               f"  {one['cut_short']:>9}")


def changed(text, mutant):
    """The file's text with this one mistake in it; offsets are of Latin-1."""
    if mutant.start == mutant.end:  # An early return, or the end of a loop.
        return text[:mutant.start] + mutant.new + text[mutant.end:]
    new = mutant.new or ";"
    return text[:mutant.start] + new + text[mutant.end:]


def diff(sources, mutant):
    old = sources[mutant.file]
    new = changed(old, mutant)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{mutant.file}", f"b/{mutant.file}", "", "",
                                 1, "")
    return "\n".join(lines).encode("latin-1").decode("utf-8", "replace")


def survivors(verdicts):
    return [v for v in verdicts if v.verdict != FOUND]


def whole(verdicts):
    """As JSON has it."""
    return {"all": score(verdicts), "cores": by(verdicts, "core"), "operators": by(verdicts, "operator"),
            "files": by(verdicts, "file")}


def as_dict(verdict, key, sources):
    told = {"file": verdict.mutant.file, "number": verdict.mutant.number, "line": verdict.mutant.line,
            "function": verdict.mutant.function, "operator": verdict.mutant.operator, "core": verdict.mutant.core,
            "simulator": verdict.simulator, "verdict": verdict.verdict, "by": verdict.by, "runs": verdict.runs,
            "seconds": verdict.seconds, "cut_short": verdict.cut_short}
    if verdict.verdict != FOUND:
        told |= {"diff": diff(sources, verdict.mutant), "equivalent_line": "\t".join([*key, "REASON"])}
    return told


def text(verdicts, keys, sources):
    for field, title in (("core", "core"), ("operator", "operator"), ("file", "file")):
        yield from table(title, by(verdicts, field))
        yield ""
    for verdict in survivors(verdicts):
        told = "survived, cut short" if verdict.cut_short else verdict.verdict
        yield f"---- {told}: {verdict.mutant.name} {verdict.mutant.function} ({verdict.mutant.operator})"
        yield diff(sources, verdict.mutant)
        yield "\t".join([*keys[verdict.mutant.name], "REASON"])
    yield from table("", {"all": score(verdicts)})
