#!/usr/bin/env python3
"""
The Python of a folder with a requirements.txt, which tools/python_env makes once per content of that file.

  python_env.py FOLDER...    makes them, and prints the interpreter of each
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "client/examples/python"


def python_of(folder):
    requirements = pathlib.Path(folder).resolve() / "requirements.txt"
    done = subprocess.run([ROOT / "tools/python_env", requirements], check=True, text=True,
                          stdout=subprocess.PIPE)
    return pathlib.Path(done.stdout.strip())


def example_python():
    """The interpreter of client/examples/python, with the stubs that it imports made from idl/."""
    python, generated = python_of(EXAMPLE), EXAMPLE / "gen"
    generated.mkdir(exist_ok=True)
    protos = sorted(str(path) for folder in ("google/api", "holdfast/v1")
                    for path in (ROOT / "idl" / folder).glob("*.proto"))
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
