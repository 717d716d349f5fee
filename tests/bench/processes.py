"""What a measuring run starts: found ports, started processes, their memory; all stopped by pid."""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("HOLDFAST_BIN", ROOT / "build/release/bin"))
HERE = ROOT / "tests/bench"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
sys.path.append(str(ROOT / "tests/integration"))

from ports import free_port  # noqa: E402, F401  (found there; for those who import this)


def say(text):
    print(text, file=sys.stderr, flush=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_for(what, condition, patience_s=60, every_s=0.02):
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {patience_s} s in vain for {what}")
        time.sleep(every_s)


class Processes:
    """Stopped by pid, newest first; they also end when this program is killed."""

    def __init__(self):
        self.started = []

    def start(self, command, log, **options):
        with open(log, "ab") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out,
                                       stdin=subprocess.DEVNULL, preexec_fn=die_with_parent,
                                       **options)
        self.started.append(process)
        return process

    def stop_one(self, process, patience_s=20):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        for process in reversed(self.started):
            self.stop_one(process)


def memory_mib(pids, field="VmRSS"):
    total_kib = 0
    for pid in pids:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        total_kib += int(re.search(rf"{field}:\s+(\d+)", status).group(1))
    return round(total_kib / 1024, 1)


def generator_command(program, port, options):
    """The command line of a load generator; options by their long names."""
    command = [BIN / program, "--port", port]
    for name, value in options.items():
        if value is True:
            command += [f"--{name.replace('_', '-')}"]
        elif value is not False:
            command += [f"--{name.replace('_', '-')}", value]
    return [str(word) for word in command]


def generate(program, port, **options):
    """Runs a load generator to its end; what it printed."""
    done = subprocess.run(generator_command(program, port, options), check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: exit {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if done.stderr:
        say("    " + done.stderr.strip().replace("\n", "\n    "))
    return result
