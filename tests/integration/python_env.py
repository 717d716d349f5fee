#!/usr/bin/env python3
"""
The virtual environment of a folder with a requirements.txt, made once per content of that file.

  python_env.py FOLDER...    makes them, and prints the interpreter of each
"""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "client/examples/python"


def python_of(folder):
    requirements = pathlib.Path(folder).resolve() / "requirements.txt"
    venv = requirements.parent / ".venv"
    stamp = venv / "installed.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run(["python3", "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                        "--requirement", requirements], check=True)
        shutil.copy(requirements, stamp)
    return venv / "bin/python"


def example_python():
    """The interpreter of client/examples/python, with the stubs that it imports made from idl/."""
    python, generated = python_of(EXAMPLE), EXAMPLE / "gen"
    generated.mkdir(exist_ok=True)
    protos = sorted(str(path) for path in (ROOT / "idl/holdfast/v1").glob("*.proto"))
    subprocess.run([python, "-m", "grpc_tools.protoc", f"-I{ROOT / 'idl'}",
                    f"--python_out={generated}", f"--grpc_python_out={generated}", *protos],
                   check=True)
    return python


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if pathlib.Path(argument).resolve() == EXAMPLE:
            print(example_python())
        else:
            print(python_of(argument))
