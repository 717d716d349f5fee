"""Which code is mutated, and which is left alone, with the reason."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORES = ("node/core", "node/rpc", "router/core", "coordinator/core")

# Files that only assert: a weaker assertion is no mistake of the product.
ASSERTING = {"coordinator/core/coord_check.c", "node/core/rows/state_check.c", "node/core/shard/shard_check.c"}
# For tests: fixtures, virtual worlds, the replication simulator; damage on purpose.
FOR_TESTS = re.compile(r"_test\.c$|/([a-z_]+_)?fixture[^/]*\.c$|/core/world(_records)?\.c$|/mergeable/pair\.c$|/replication/sim/|/debug_inject\.c$")

# Functions and calls that only a log, a person or the allocator sees. Memory that is not given back is found by the address
# sanitizer in the unit tests; the mutants are built without it.
CALLS = re.compile(r"^(log_\w+|free|\w+_(free|deinit|unref|free_unpacked)|explicit_bzero|check_failed|static_assert)$")
# Functions that only a CHECK and tests ask: whether work is left to a coordinator that does not decide (coord.h).
ASSERTIONS = re.compile(r"^(transaction|call|shard|server|audit|(term|coord)_work)_left$|^definition_waits_open$")
# A function of this name that returns nothing and may write to nothing it is given (operators.py) can only assert.
ASSERTING_NAME = re.compile(r"(^|_)check(_|$)")
# Functions that say which rows to load ahead: a handler asks for what is missing, and runs again.
AHEAD = re.compile(r"_footprint$")
# How much is allocated: more changes nothing, less is found by the address sanitizer.
ALLOCATIONS = re.compile(r"^(mem_(alloc|zalloc|realloc)|arena_alloc)$")
# The same of a list that grows: `capacity = capacity > 0 ? capacity * 2 : 8`.
GROWTH = re.compile(r"^\*?(\w+(\.|->))*(\w+_)?capacity = [^;]*capacity \* 2\b")
# Their two sides are alike; of comparisons by bytes, where only equality is asked for.
SYMMETRIC, COMPARED = re.compile(r"_equal$"), re.compile(r"^(strcmp|memcmp|strncmp)$")
EQUALITY = re.compile(r"\s*\)?\s*[!=]= 0\b")
# Enumerators that only say how many others there are.
SENTINELS = re.compile(r"_(COUNT|KINDS|PLACES|RUNS|STATES)$|_IS_INT_SIZE$")
# Statistics: members of a `stats`, but for the sums by which rows leave memory.
STATISTICS = re.compile(r"\bstats(\.|->)(?!(dirty_)?bytes\b)\w+")


def core_of(name):
    """The core that a file belongs to, or None."""
    return next((core for core in CORES if name.startswith(core + "/")), None)


def files(root=ROOT):
    """Every file with mutants, sorted."""
    found = []
    for core in CORES:
        for path in sorted((root / core).rglob("*.c")):
            name = path.relative_to(root).as_posix()
            if name not in ASSERTING and not FOR_TESTS.search(name):
                found.append(name)
    return found
