"""A laboratory for TCP over lossy last hops.

>>> import lasthop as lh
>>> s = lh.Scenario.example("west97-lan").set("errors.mean", "16KiB").vary("agent", ["none", "snoop"])
>>> t = lh.run(s, seeds=5)
>>> [round(row["mean"] / 1000) for row in t.summary("throughput")]
[14, 158]
"""

from __future__ import annotations

import sys

from . import _lasthop
from ._errors import ScenarioError, ScenarioWarning
from .control import Ack, CongestionControl
from .results import Recording, Results, Table, record, run, run_points
from .scenario import Scenario
from .studies import Document, advise, analyze, battery, claims, compare, energy, explain, left_open, reproduce
from .sweeps import sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import gym as gym

__version__: str = _lasthop.version()
#: The commit of the build, if known.
__commit__: str | None = _lasthop.commit()


def examples() -> list[str]:
    """Names of the built-in scenarios, the simplest first."""
    return [name for name, _ in _lasthop.examples()]


def __getattr__(name: str) -> object:
    # Gymnasium takes a second to import, so it is imported on first use.
    if name == "gym":
        import importlib

        return importlib.import_module(".gym", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if "gymnasium" in sys.modules:
    from . import _envs

    _envs.register()

__all__ = [
    "Ack",
    "CongestionControl",
    "Document",
    "Recording",
    "Results",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Table",
    "advise",
    "analyze",
    "battery",
    "claims",
    "compare",
    "energy",
    "examples",
    "explain",
    "gym",
    "left_open",
    "record",
    "reproduce",
    "run",
    "run_points",
    "sweep",
]
