"""What an operator makes of a place in the source: a Site with its mutants."""

import dataclasses

EXPRESSION, STATEMENT, ENTRY, LOOP_END = "expression", "statement", "entry", "loop end"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One mistake: `text` stands where the site's own text stood."""

    operator: str
    text: str
    # For a boundary: the operands as (start, end), so that it counts as reached only where they are equal.
    operands: tuple = ()


@dataclasses.dataclass
class Site:
    """A place that holds one or more mutants. Offsets are bytes of the file."""

    kind: str
    start: int
    end: int
    function: str
    mutants: list
    children: list = dataclasses.field(default_factory=list)
    first: int = 0  # The number of its first mutant in this file.


def nest(sites):
    """The same sites as a forest: a site's children lie within it. Those that overlap in part are left out."""
    roots, open_sites = [], []
    for site in sorted(sites, key=lambda s: (s.start, -s.end, s.kind != STATEMENT)):
        while open_sites and site.start >= open_sites[-1].end and open_sites[-1].end > open_sites[-1].start:
            open_sites.pop()
        while open_sites and open_sites[-1].start == open_sites[-1].end:
            open_sites.pop()
        if open_sites and site.end > open_sites[-1].end:
            continue
        (open_sites[-1].children if open_sites else roots).append(site)
        open_sites.append(site)
    return roots


def walk(sites):
    for site in sites:
        yield site
        yield from walk(site.children)
