"""What every chaos run prints, and how it ends."""

import argparse
import json
import time


class Broken(AssertionError):
    """The run's figures, with what was wrong."""

    def __init__(self, found):
        self.found = found
        super().__init__("\n".join(found["wrong"][:20]))


def judged(found, wrong):
    """The figures; Broken, which keeps logs and data, if anything was wrong."""
    found = found | {"wrong": wrong}
    if wrong:
        raise Broken(found)
    return found


def parser_for(text):
    """Options that every run has."""
    parser = argparse.ArgumentParser(description=" ".join(text.split("\n\n")[0].split()))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true", help="figures as JSON only")
    return parser


def main(run, parser):
    """Runs, prints the figures; the exit code."""
    arguments = parser.parse_args()
    code = 0
    try:
        found = run(arguments)
    except Broken as broken:
        found, code = broken.found, 1
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' '):24} {value}")
    return code
