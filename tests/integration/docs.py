#!/usr/bin/env python3
"""Runs the shell blocks of documentation pages and compares what they print with the blocks that
follow them. In an expected block, a horizontal ellipsis stands for anything; white space and
anything after the last line does not count.

  docs.py HOLDFAST PAGE...      against a cluster of its own
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@ block "
READY_SECONDS = 120  # Bounds only: machines may be slow and busy.
PAGE_SECONDS = 240


def blocks_of(page):
    """Pairs (script, expected or None)."""
    found = []
    with open(page, encoding="utf-8") as text:
        for kind, body in BLOCK.findall(text.read()):
            if kind == "sh":
                found.append([body, None])
            elif found and found[-1][1] is None:
                found[-1][1] = body
    return found


def pattern_of(expected):
    parts = re.sub(r"\s+", "", expected).split("…")
    return re.compile(".*?".join(re.escape(part) for part in parts) + r"\Z", re.DOTALL)


def page_text(name):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / name
    return page.read_text(encoding="utf-8")


def run_page(page, directory, environment):
    blocks = blocks_of(page)
    script = "".join(f"{body}\necho\necho '{MARK}{i}'\n" for i, (body, _) in enumerate(blocks))
    done = subprocess.run(["bash", "-eu"], input=script, cwd=directory, env=environment, text=True,
                          capture_output=True, timeout=PAGE_SECONDS, check=False)
    printed = re.split(rf"{MARK}\d+\n", done.stdout)
    wrong = 0
    if done.returncode != 0:
        print(f"{page}: a block failed: {done.stderr}\n{printed[-1]}")
        wrong += 1
    for (body, expected), said in zip(blocks, printed):
        if expected is None or pattern_of(expected).match(re.sub(r"\s+", "", said)):
            continue
        print(f"{page}:\n{body}\nprinted:\n{said}\nexpected:\n{expected}")
        wrong += 1
    print(f"{page}: {len(blocks)} blocks, {wrong} wrong")
    return wrong


def endpoint_of(data, cluster):
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and cluster.poll() is None:
        try:
            with open(f"{data}/cluster.json", encoding="utf-8") as text:
                state = json.load(text)
            if state["ready"]:
                return state["endpoint"]
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    sys.exit("the cluster did not become ready")


def main():
    holdfast, pages = os.path.abspath(sys.argv[1]), sys.argv[2:]
    work = tempfile.mkdtemp(prefix="holdfast-docs.")
    # docs/player-tokens.md writes this file again, with the key that its tokens are signed with.
    with open(f"{work}/players.json", "w", encoding="utf-8") as text:
        text.write(re.search(r"^\{\"keys.*$", page_text("player-tokens.md"), re.M)[0])
    cluster = subprocess.Popen([holdfast, "dev", "--data", f"{work}/data", "--port", "0"], env=os.environ | {
        "HOLDFAST_PLAYER_KEYS": f"{work}/players.json", "HOLDFAST_PLAYER_AUDIENCE": "game"})
    wrong = 0
    try:
        environment = dict(os.environ, HOLDFAST_ENDPOINT=endpoint_of(f"{work}/data", cluster),
                           PATH=f"{os.path.dirname(holdfast)}:{os.environ['PATH']}")
        for page in pages:
            wrong += run_page(page, work, environment)
    finally:
        cluster.send_signal(signal.SIGTERM)
        cluster.wait()
        shutil.rmtree(work)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
