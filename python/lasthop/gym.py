"""Congestion control as an environment of Gymnasium. Needs ``lasthop[gym]``.

>>> import gymnasium, lasthop.gym
>>> env = gymnasium.make("lasthop/Window-v0", interval="10ms")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

``lasthop/Window-v0`` and ``lasthop/Rate-v0`` take the arguments of :func:`make`. The import of this module registers
them; so does the import of ``lasthop`` after that of Gymnasium.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from . import _envs, _lasthop
from ._errors import ScenarioError
from .results import _natural
from .scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Observation = NDArray[np.float32]

#: Observations after each step. Of the step: bytes acknowledged, delivered and retransmitted, and the number of timeouts. At
#: its end: the smoothed round trip and its variation in seconds, bytes in flight, the congestion window in bytes, and
#: whether the sender is in recovery (0 or 1).
OBSERVATIONS = (
    "acked",
    "delivered",
    "resent",
    "timeouts",
    "srtt",
    "rttvar",
    "flight",
    "cwnd",
    "in_recovery",
)

#: Built-in senders that can replace the agent's decisions, behind the same interface.
BASELINES = ("reno", "cubic", "bbr")

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def power(observation: Observation, seconds: float) -> float:
    """The default reward: the delivery rate in Mbit/s minus a hundred times the smoothed round trip in seconds."""
    delivered, srtt = float(observation[1]), float(observation[4])
    return delivered * 8e-6 / seconds - 100.0 * srtt


class Environment(gymnasium.Env["Observation", "NDArray[np.float32]"]):
    """The first transfer of a scenario, whose sender the agent controls. :func:`make` creates it."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        interval: str | float,
        action: str,
        baseline: str | None,
        reward: Callable[[Observation, float], float],
        largest: float,
    ) -> None:
        if action not in ("window", "rate"):
            raise ScenarioError(f"there is no action `{action}`", key="action", help="there are window, rate")
        if baseline is not None and baseline not in BASELINES:
            raise ScenarioError(f"there is no baseline `{baseline}`", key="baseline", help=f"there are {', '.join(BASELINES)}")
        if scenario.control is not None:
            raise ScenarioError("the sender has a congestion control already", help="give a scenario without with_control")
        if len(scenario.plan.cells) > 1:
            left = ", ".join(f"{axis}=..." for axis in scenario.axes)
            raise ScenarioError("an environment is one cell", help=f"choose one: scenario.cell({left})")
        self.nanoseconds = _nanoseconds(interval)
        self.scenario = scenario.set("tcp", baseline or "rack")
        if action == "rate" and baseline is None:
            self.scenario = self.scenario.set("pacing", True)
        self.action = action
        self.baseline = baseline
        self.reward = reward
        self.largest = float(largest)
        high = np.full(len(OBSERVATIONS), np.finfo(np.float32).max, dtype=np.float32)
        self.observation_space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)
        # Training libraries expect -1 to 1: a logarithmic scale between the least and the largest value.
        self.action_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)
        self._least = 536.0 if action == "window" else 1000.0
        if not self.largest > self._least:
            raise ScenarioError(f"largest is {largest}", key="largest", help=f"give more than {self._least:.0f}")
        self._session: _lasthop.Session | None = None

    def value(self, action: NDArray[np.float32]) -> float:
        """The value of an action: a window in bytes, or a rate in bytes per second."""
        place = (float(np.clip(action[0], -1.0, 1.0)) + 1.0) / 2.0
        return float(self._least * (self.largest / self._least) ** place)

    def action_of(self, value: float) -> NDArray[np.float32]:
        """The action for ``value``: a window in bytes, or a rate in bytes per second."""
        value = min(max(value, self._least), self.largest)
        place = np.log(value / self._least) / np.log(self.largest / self._least)
        return np.array([2.0 * place - 1.0], dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts a new run. The environment's generator, which ``seed`` sets, draws the seed of the run; ``options`` can
        set it directly: ``{"seed": 7}``."""
        super().reset(seed=seed)
        if options and "seed" in options:
            run = _natural("seed", options["seed"], 2**64 - 1)
        else:
            run = int(self.np_random.integers(1, 2**31))
        self._session = _lasthop.Session(self.scenario.plan, 0, run, self.baseline is None)
        return np.zeros(len(OBSERVATIONS), dtype=np.float32), {"seed": run, "time": 0.0, "end": ""}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the window or the rate, which applies from the next ACK on, and simulates an interval."""
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if self.baseline is None:
            wanted = self.value(action)
            if wanted != wanted:
                raise ScenarioError("an action is not a number", help="give an array of one number from -1 to 1")
            if self.action == "window":
                self._session.set_window(wanted)
            else:
                self._session.set_rate(wanted)
        seen, end = self._session.step(self.nanoseconds)
        observation = np.array(seen, dtype=np.float32)
        reward = float(self.reward(observation, self.nanoseconds * 1e-9))
        complete = end in ("complete", "aborted")
        return observation, reward, complete, bool(end) and not complete, {"time": self._session.now, "end": end}


def _default() -> Scenario:
    """The scenario of an environment without one."""
    return Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "200kB")


def _scenario(given: Scenario | str | None) -> Scenario:
    if given is None:
        return _default()
    if isinstance(given, str):
        return Scenario.example(given)
    if not isinstance(given, Scenario):
        raise ScenarioError(
            f"scenario is {type(given).__name__}", key="scenario", help="give a Scenario, or the name of a built-in one"
        )
    return given


def make(
    scenario: Scenario | str | None = None,
    interval: str | float = "10ms",
    *,
    action: str = "window",
    baseline: str | None = None,
    reward: Callable[[Observation, float], float] = power,
    largest: float | None = None,
) -> Environment:
    """An environment in which an agent is the congestion control of a scenario's first transfer.

    RACK (RFC 8985) detects and repairs losses, but only the agent sets the window. The same seed and the same actions
    give the same run.

    Args:
        scenario: One cell: a scenario, or the name of a built-in one. The default is the link of ``west97-lan`` with
            errors, no agent, and a transfer of 200 kB.
        interval: The time of a step: a text such as ``10ms``, or seconds.
        action: ``window`` or ``rate``. An action is an array of one number from -1 to 1: a logarithm between one small
            segment (536 bytes, or 8 kbit/s) and ``largest``.
        baseline: ``reno``, ``cubic`` or ``bbr`` controls the sender, and actions are ignored. Observations and rewards
            are as for an agent.
        reward: The reward of a step: a function of the observation (:data:`OBSERVATIONS`) and the interval in seconds.
        largest: The largest window in bytes, or the largest rate in bytes per second. The defaults are 1 MB and
            12.5 MB/s.

    Raises:
        ScenarioError: The scenario has more than one cell or no transfer, or an argument is invalid.
    """
    if largest is None:
        largest = 1e6 if action == "window" else 12.5e6
    return Environment(_scenario(scenario), interval, action, baseline, reward, largest)


def make_vec(scenarios: Scenario | str | list[Scenario] | None = None, count: int = 2, **options: Any) -> gymnasium.vector.SyncVectorEnv:
    """``count`` environments, or one for each of several scenarios, behind Gymnasium's vector API."""
    all_of = scenarios if isinstance(scenarios, list) else [scenarios] * _natural("count", count, 4096, 1)
    return gymnasium.vector.SyncVectorEnv([partial(make, s, **options) for s in all_of])


def episode(env: gymnasium.Env[Any, Any], policy: Callable[[Observation], Any] | None = None, *, seed: int) -> dict[str, Any]:
    """Plays one run with ``seed`` to its end. Returns total reward, steps, seconds, delivered bytes per second, and the
    reason of the end. Without a policy the environment must have a baseline."""
    observation, _ = env.reset(options={"seed": seed})
    idle = np.zeros(1, dtype=np.float32)
    total, steps, delivered = 0.0, 0, 0.0
    while True:
        action = idle if policy is None else policy(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        total, steps, delivered = total + float(reward), steps + 1, delivered + float(observation[1])
        if terminated or truncated:
            seconds = info["time"]
            return {
                "reward": total,
                "steps": steps,
                "seconds": seconds,
                "throughput": delivered / seconds if seconds else 0.0,
                "end": info["end"],
            }


def _nanoseconds(interval: str | float) -> int:
    help = "give a time such as 10ms, or seconds"
    scale = 1_000_000_000
    number: str | float = interval
    if isinstance(interval, str):
        digits = interval.rstrip("nums")
        if interval[len(digits) :] not in _UNITS:
            raise ScenarioError(f"interval is {interval!r}", key="interval", help=help)
        number, scale = digits, _UNITS[interval[len(digits) :]]
    try:
        span = float(number) * scale
    except (TypeError, ValueError):
        raise ScenarioError(f"interval is {interval!r}", key="interval", help=help) from None
    if not 1 <= span <= 1e15:
        raise ScenarioError(f"interval is {interval!r}", key="interval", help="give a time from 1ns to 1000000s")
    return round(span)


_envs.register()
