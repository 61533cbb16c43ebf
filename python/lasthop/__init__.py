"""A laboratory for TCP over lossy last hops."""

from __future__ import annotations

from . import _lasthop
from ._errors import ScenarioError, ScenarioWarning, StoreError
from .control import Ack, CongestionControl
from .scenario import Scenario

__version__: str = _lasthop.version()


def examples() -> list[str]:
    """Names of the built-in scenarios, the simplest first."""
    return [name for name, _ in _lasthop.examples()]


__all__ = [
    "Ack",
    "CongestionControl",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "StoreError",
    "examples",
]
