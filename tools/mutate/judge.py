"""
Runs mutants: which seeds and tests reach each, then those until one fails.

A seed or a test that a mutant makes loop, eat memory or die has found it: limits of processor time and memory end it.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

import build

EXIT_UNUSABLE = 99  # As in mutant_run.c.
MEMORY_BYTES_MAX = 4 << 30
# A judge may take so many times what it takes without a mutant, and this much more.
CPU_FACTOR, CPU_MORE_S = 10, 2
WALL_S_MIN = 120  # A process that waits for something uses no processor time.
MEASURE_CPU_S_MAX = 300
SIMULATOR_SHARE = 0.75  # Of a mutant's processor time; the unit tests have the rest.
OUTPUT_BYTES, REASON_MAX = 16384, 200

KILLED, SURVIVED, NOT_REACHED, TIMED_OUT = "killed", "survived", "not reached", "timed out"


@dataclasses.dataclass
class Judge:
    """A seed or a unit test."""

    name: str
    command: list
    simulator: bool
    cpu_s: float = 0.0
    marks: bytes = b""
    alone: bool = False  # Seeds of one room of a core, which are tried before those of whole clusters.
    handful: int = 0  # Of its room: the first of each room is tried before the second of any.

    def reaches(self, place):
        return self.marks[place] != 0


@dataclasses.dataclass
class Verdict:
    mutant: object
    simulator: str = NOT_REACHED  # Of the simulator alone.
    verdict: str = NOT_REACHED  # Together with the unit tests.
    by: str = ""  # The judge that found it, and by which end.
    runs: int = 0
    seconds: float = 0.0  # Of processor time.
    cut_short: bool = False  # It survived, and judges were left for which it had no time.


def seed_judge(program, seed):
    return Judge(f"seed {seed}", [str(program), "--first", str(seed), "--seeds", "1", "--no-reach", "--json", "--stop"],
                 True)


def room_judge(program, core, room, handful, count):
    """Seeds of one room of a core (tests/sim/cores), which are so short that a handful is one judge."""
    first = 1 + handful * count
    return Judge(f"{core} {room} seeds {first} to {first + count - 1}",
                 [str(program), "--core", core, "--room", room, "--first", str(first), "--seeds", str(count)],
                 True, alone=True, handful=handful)


def mergeable_judge(program, handful, count):
    """Seeds of the mergeable class alone (tests/sim/mergeable), a handful at a time."""
    first = 1 + handful * count
    return Judge(f"mergeable seeds {first} to {first + count - 1}",
                 [str(program), "--first", str(first), "--seeds", str(count), "--no-reach"], True, alone=True,
                 handful=handful)


def limited(command, cpu_s):
    """The command under limits of processor time (of each process), memory and core files, behind other work."""
    whole = max(1, int(cpu_s + 0.999))
    return ["nice", "-n", "5", "prlimit", f"--cpu={whole}:{whole + 1}", f"--as={MEMORY_BYTES_MAX}", "--core=0", "--",
            *command]


def execute(command, cpu_s, environment):
    """(exit code, or None when it was ended for its time; the last of what it said; its processor seconds)."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(limited(command, cpu_s), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   env=os.environ | environment, process_group=0)
        late = threading.Timer(max(WALL_S_MIN, 6 * cpu_s), os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
        code = process.returncode = os.waitstatus_to_exitcode(status)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - OUTPUT_BYTES))
        text = said.read().decode("utf-8", "replace")
    if code == EXIT_UNUSABLE:
        raise build.Broken(f"{command[0]}: {text}")
    return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code, text, used.ru_utime + used.ru_stime


class Bench:
    """All judges, and what each reaches without a mutant."""

    def __init__(self, simulators, tests):
        self.judges = list(simulators)
        self.judges += [Judge(name, command, False) for name, command in tests]
        self.seeds_max, self.budget_s = len(self.judges), None

    def measure(self, jobs):
        """Runs each once without a mutant; one that fails so cannot judge: the machinery is broken."""
        with tempfile.TemporaryDirectory(prefix="holdfast-mutate.") as folder:
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda pair: self._measure(pathlib.Path(folder) / str(pair[0]), pair[1]),
                              enumerate(self.judges)))
        # A test without a mark uses no core: it is of a component that only lives among them.
        self.judges = [j for j in self.judges if j.marks]

    def limit(self, seeds_max, test_s_max, budget_s=None):
        """At most so many seeds and so much processor time a mutant, and no unit test that takes longer; the names of
        those left out."""
        slow = [j.name for j in self.judges if not j.simulator and j.cpu_s > test_s_max]
        self.judges = [j for j in self.judges if j.name not in slow]
        self.seeds_max, self.budget_s = seeds_max, budget_s
        return slow

    def _measure(self, path, judge):
        code, said, judge.cpu_s = execute(judge.command, MEASURE_CPU_S_MAX, {"HOLDFAST_MUTANT_MARKS": str(path)})
        if code != 0:
            raise build.Broken(f"{judge.name} fails without any mutant: {said[-500:]}")
        judge.marks = path.read_bytes() if path.exists() else b""
        if judge.marks:
            path.unlink()
        elif judge.simulator:
            raise build.Broken(f"{judge.name} marked nothing: is it built with the mutants?")

    def _fails(self, judge, mutant, verdict):
        code, said, used_s = execute(judge.command, judge.cpu_s * CPU_FACTOR + CPU_MORE_S,
                                     {"HOLDFAST_MUTANT": mutant.name})
        verdict.runs += 1
        verdict.seconds += used_s
        if code is None:
            return TIMED_OUT
        return "" if code == 0 else f"exit {code}: {reason(said)}"

    def _hunt(self, judges, mutant, verdict, until_s):
        """One after the other until one fails; none begins that usually ends behind `until_s`."""
        for judge in judges:
            if until_s is not None and verdict.seconds + judge.cpu_s > until_s:
                verdict.cut_short = True
                continue
            how = self._fails(judge, mutant, verdict)
            if how:
                verdict.by = f"{judge.name}: {how}"
                return KILLED
        return SURVIVED if judges else NOT_REACHED

    def judge(self, mutant, place):
        """The simulator first; the unit tests, where no seed found it. `place`: of its mark."""
        reaching = sorted((j for j in self.judges if j.reaches(place)), key=lambda j: (j.handful, j.cpu_s))
        verdict = Verdict(mutant)
        seeds = [j for j in reaching if j.alone]
        seeds += [j for j in reaching if j.simulator and not j.alone][:self.seeds_max]
        whole = self.budget_s
        verdict.simulator = self._hunt(seeds, mutant, verdict, None if whole is None else whole * SIMULATOR_SHARE)
        verdict.verdict = verdict.simulator
        if verdict.simulator != KILLED:
            told = self._hunt([j for j in reaching if not j.simulator], mutant, verdict, whole)
            verdict.verdict = told if told != NOT_REACHED else verdict.simulator
        verdict.cut_short &= verdict.verdict != KILLED
        verdict.seconds = round(verdict.seconds, 2)
        return verdict


def reason(said):
    """What a program that failed said of it: a check, a test, a broken promise, or its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for sign in ("check failed", "[  FAILED  ]", '"broken"'):
        for line in lines:
            if sign in line:
                return line.split('"broken":', 1)[-1].strip(' "}')[:REASON_MAX]
    return lines[-1][:REASON_MAX] if lines else "died"
