"""
Mutant schemata: all mutants of a file in one text, chosen at run time. A site becomes

    (MUTANT_OFF(first, count) ? (own text) : MUTANT_IS(first) ? (text of one) : (text of the next))

or `{ if (MUTANT_OFF(first, 1)) statement; }`. Own texts hold the sites within; a mutant's text is the source's.
"""

import dataclasses
import re

import operators
import places
import syntax

TRIES_MAX = 8


@dataclasses.dataclass(frozen=True)
class Known:
    """A mutant as the other parts see it."""

    file: str
    number: int
    reach: int  # The number whose mark says that this mutant could have made a difference.
    core: str
    operator: str
    function: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self):
        return f"{self.file}:{self.number}"


def slug(name):
    return re.sub(r"\W", "_", name)


def number(roots):
    """Gives every mutant its number, from 1 on, in the order of the text; how many there are."""
    count = 0
    for site in places.walk(roots):
        site.first = count + 1
        count += len(site.mutants)
    return count


def own_text(text, start, end, children):
    """text[start:end] with its sites in place."""
    parts, at = [], start
    for child in sorted(children, key=lambda s: (s.start, s.end)):
        parts += [text[at:child.start], render(text, child)]
        at = child.end
    return "".join([*parts, text[at:end]])


def one_line(text):
    """Lines keep their numbers: those of what does not compile say which mutants to leave out."""
    return re.sub(r"\s*\n\s*", " ", text)


def _within(site, span):
    return [c for c in site.children if span[0] <= c.start and c.end <= span[1]]


def _with_boundary(text, site, place):
    """The comparison with each operand evaluated once, so that equal operands mark the boundary as reached."""
    left, right = site.mutants[place].operands
    at = site.first + place
    one, two = f"mutant_l{at}", f"mutant_r{at}"
    operator = text[left[1]:right[0]].strip()
    return (f"({{ __typeof__(({one_line(text[slice(*left)])}) + 0) {one} = ({own_text(text, *left, _within(site, left))}); "
            f"__typeof__(({one_line(text[slice(*right)])}) + 0) {two} = ({own_text(text, *right, _within(site, right))}); "
            f"if ({one} == {two}) MUTANT_MARK({at}); {one} {operator} {two}; }})")


def render(text, site):
    off = f"MUTANT_OFF({site.first}, {len(site.mutants)})"
    if site.kind == places.STATEMENT:
        return f"{{ if ({off}) {own_text(text, site.start, site.end, site.children)} }}"
    if site.kind == places.LOOP_END:
        return f"if (!{off}) break; "
    if site.kind == places.ENTRY:
        taken = "".join(f" if (MUTANT_IS({site.first + i})){m.text}" for i, m in enumerate(site.mutants))
        return f" if (!{off}) {{{taken} }}"
    boundary = next((i for i, m in enumerate(site.mutants) if m.operands), None)
    own = (own_text(text, site.start, site.end, site.children) if boundary is None
           else _with_boundary(text, site, boundary))
    last = len(site.mutants) - 1
    told = "".join(f"MUTANT_IS({site.first + i}) ? ({one_line(m.text)}) : " for i, m in enumerate(site.mutants[:-1]))
    return f"({off} ? ({own}) : {told}({one_line(site.mutants[last].text)}))"


def head(name):
    """Before the file's own text: its switch and its marks; mutant_run.h says what the macros do."""
    return (f'#include "tools/mutate/mutant_run.h"\n'
            f"extern unsigned mutant_active_{slug(name)};\n"
            f"extern unsigned char *mutant_marks_{slug(name)};\n"
            f"#define MUTANT_ACTIVE mutant_active_{slug(name)}\n"
            f"#define MUTANT_MARKS mutant_marks_{slug(name)}\n")


def known(source, name, core, roots):
    for site in places.walk(roots):
        for place, mutant in enumerate(site.mutants):
            at = site.first + place
            yield Known(name, at, at if mutant.operands else site.first, core, mutant.operator, site.function,
                        source.line_of(site.start), site.start, site.end,
                        source.text[site.start:site.end], mutant.text)


def drop_lines(source, name, roots, lines):
    """The sites without those whose text is on a line that does not compile; how many mutants that takes."""
    head_lines = head(name).count("\n")
    kept, dropped = [], 0
    for site in list(places.walk(roots)):
        first, last = source.line_of(site.start), source.line_of(max(site.start, site.end - 1))
        if any(first <= line - head_lines <= last for line in lines):
            dropped += len(site.mutants)
        else:
            site.children = []
            kept.append(site)
    return kept, dropped


def mutate(path, name, core, arguments, chosen=tuple(operators.OPERATORS)):
    """(the text with all mutants, the mutants, how many were left out since the compiler refuses them)."""
    source = syntax.Source(path, arguments)
    source.check()
    sites = operators.Finder(source, set(chosen)).find()
    dropped = 0
    for _ in range(TRIES_MAX):
        roots = places.nest(sites)
        number(roots)
        text = (head(name) + own_text(source.text, 0, len(source.text), roots)).encode("latin-1")
        wrong = syntax.Source(path, arguments, text).error_lines()
        if not wrong:
            return text, list(known(source, name, core, roots)), dropped
        sites, more = drop_lines(source, name, roots, wrong)
        dropped += more
        if not more:
            raise syntax.DoesNotCompile(f"{name}: its mutants do not compile at line {wrong[0]}")
    raise syntax.DoesNotCompile(f"{name}: its mutants do not compile after {TRIES_MAX} tries")
