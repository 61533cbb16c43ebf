"""Fixtures of all tests: the command whose results are the reference."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command() -> str:
    """Path of the command `lasthop` from the latest build of this workspace."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [p for p in (target / "debug" / "lasthop", target / "release" / "lasthop") if p.is_file()]
    assert found, "build the command first: cargo build"
    return str(max(found, key=lambda p: p.stat().st_mtime))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds a failed test to the list at the end of `make test`."""
    if report.failed and (path := os.environ.get("LASTHOP_FAILED")):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"python: {report.nodeid}\n")
