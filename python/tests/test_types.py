"""Types: mypy in strict mode, and the stub of the private module against the module."""

import pathlib
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def _run(folder, *words):
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_strict():
    _run(PACKAGE, "mypy", "--strict", "lasthop")


def test_stubtest():
    _run(PACKAGE / "tests", "mypy.stubtest", "lasthop._lasthop")
