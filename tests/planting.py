"""A copy of the source in which a mistake is planted on purpose: for tests/fuzz/planted and
tests/chaos/planted, which show that their tests find it. tests/sim/mutants has its own, with many."""

import pathlib
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[1]
COMMAND_S_MAX = 1800


def run(command, seconds=COMMAND_S_MAX, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                          timeout=seconds, **options)


class Copy:
    """The source and its build under build/NAME, kept from one time to the next."""

    def __init__(self, name, preset):
        self.folder = TOP / "build" / name
        self.src, self.out, self.preset = self.folder / "src", self.folder / "out", preset

    def refresh(self):
        """Only what differs is copied, with a new time, so that ninja builds just that."""
        listing = run(["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard"]).stdout
        names = {name for name in listing.splitlines() if (TOP / name).is_file()}
        for name in names:
            source, copy = TOP / name, self.src / name
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
                shutil.copymode(source, copy)
        for copy in [p for p in self.src.rglob("*") if p.is_file()]:
            if str(copy.relative_to(self.src)) not in names:
                copy.unlink()

    def build(self, *targets):
        """What went wrong; '' when nothing did."""
        if not (self.out / "build.ninja").exists():
            configured = run(["cmake", "--preset", self.preset, "-B", str(self.out)], cwd=self.src)
            if configured.returncode != 0:
                return configured.stdout + configured.stderr
        built = run(["cmake", "--build", str(self.out), "-j", "2", "--target", *targets,
                     "--", "--quiet"])
        return "" if built.returncode == 0 else built.stdout + built.stderr or "the build fails"

    def patch(self, path):
        return run(["patch", "-s", "-p1", "--no-backup-if-mismatch", "-i", str(path)],
                   cwd=self.src).returncode == 0

    def plant(self, path, targets, hunt):
        """(found, what was said): `hunt` with the patch applied and built; it is taken out again."""
        if not self.patch(path):
            return False, "DOES NOT APPLY"
        try:
            said = self.build(*targets)
            return (False, f"DOES NOT BUILD: {said[-2000:]}") if said else hunt()
        finally:
            self.refresh()  # A patch that fitted loosely need not come out where it went in.
