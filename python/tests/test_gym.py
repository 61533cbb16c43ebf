"""The Gymnasium environment."""

import warnings

import lasthop as lh
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

LAN = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "200kB")


@pytest.mark.parametrize("action", ["window", "rate"])
def test_the_checker_of_gymnasium_passes(action):
    with warnings.catch_warnings():
        # It would like a spec of the registry and bounded observations: there is neither.
        warnings.filterwarnings("ignore", module="gymnasium")
        check_env(lh.gym.make(LAN, "10ms", action=action), skip_render_check=True)


@pytest.mark.parametrize("baseline", lh.gym.BASELINES)
def test_baselines_stand_behind_the_same_interface(baseline):
    env = lh.gym.make(LAN, "10ms", baseline=baseline)
    played = lh.gym.episode(env, seed=7)
    alone = lh.run(LAN.set("tcp", baseline).set("seed", 7), seeds=1)
    assert played["end"] == "complete"
    # The interval in which the run ended is counted to its end.
    assert abs(played["seconds"] - alone.runs["end_s"][0]) < 0.5


def test_steps_do_not_change_the_run():
    ends = [lh.gym.episode(lh.gym.make(LAN, i, baseline="cubic"), seed=3) for i in ("1ms", "7ms", 0.1)]
    assert len({e["end"] for e in ends}) == 1
    assert max(e["seconds"] for e in ends) - min(e["seconds"] for e in ends) < 0.2


@pytest.mark.parametrize("action", ["window", "rate"])
def test_the_agent_decides(action):
    env = lh.gym.make(LAN.set("errors", "none"), "10ms", action=action)
    slow, fast = (2000.0, 60000.0) if action == "window" else (20e3, 200e3)
    small = lh.gym.episode(env, lambda _: env.action_of(slow), seed=1)
    large = lh.gym.episode(env, lambda _: env.action_of(fast), seed=1)
    assert large["throughput"] > 1.2 * small["throughput"]
    if action == "rate":
        assert small["throughput"] == pytest.approx(20e3, rel=0.1)


def test_the_same_actions_give_the_same_run():
    def play():
        env = lh.gym.make(LAN)
        env.action_space.seed(5)
        return lh.gym.episode(env, lambda _: env.action_space.sample(), seed=2)

    assert play() == play()


def test_actions_and_values_are_each_others_inverse():
    env = lh.gym.make(LAN)
    for value in (600.0, 20000.0, 1e6):
        assert env.value(env.action_of(value)) == pytest.approx(value, rel=1e-5)


def test_vectorised():
    env = lh.gym.make_vec(LAN, 3, interval="20ms")
    observations, _ = env.reset(seed=1)
    assert observations.shape == (3, len(lh.gym.OBSERVATIONS))
    observations, rewards, *_ = env.step(np.zeros((3, 1), dtype=np.float32))
    assert rewards.shape == (3,)
    env.close()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lh.gym.make(lh.Scenario.example("west97-lan")), "one cell"),
        (lambda: lh.gym.make(LAN, "10"), "interval"),
        (lambda: lh.gym.make(LAN, -1), "interval"),
        (lambda: lh.gym.make(LAN, action="speed"), "no action"),
        (lambda: lh.gym.make(LAN, baseline="tahoe"), "no baseline"),
        (lambda: lh.gym.make(LAN).reset(options={"seed": "x"}), "seed"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(lh.ScenarioError, match=message):
        call()


def test_an_action_that_is_no_number():
    env = lh.gym.make(LAN)
    env.reset(seed=1)
    with pytest.raises(lh.ScenarioError, match="not a number"):
        env.step(np.array([np.nan], dtype=np.float32))
