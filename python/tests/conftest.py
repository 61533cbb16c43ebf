"""What all tests share: the command that numbers are compared with."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command() -> str:
    """The command `lasthop`, as it was built beside this package."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [p for p in (target / "debug" / "lasthop", target / "release" / "lasthop") if p.is_file()]
    assert found, "build the command first: cargo build"
    return str(max(found, key=lambda p: p.stat().st_mtime))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds a test that failed to the list at the end of `make test`."""
    if report.failed and (path := os.environ.get("LASTHOP_FAILED")):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"python: {report.nodeid}\n")
