"""The Gymnasium environment."""

import pickle

import cma
import gymnasium
import lasthop as lh
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

LAN = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "200kB")


@pytest.mark.parametrize("name", ["lasthop/Window-v0", "lasthop/Rate-v0"])
def test_the_checker_of_gymnasium_passes_without_a_warning(name):
    check_env(gymnasium.make(name).unwrapped)
    check_env(gymnasium.make(name, scenario=LAN, interval="20ms", baseline="cubic").unwrapped)


def test_environments_have_names():
    env = gymnasium.make("lasthop/Rate-v0", scenario=LAN, interval="20ms")
    assert (env.unwrapped.action, env.unwrapped.nanoseconds) == ("rate", 20_000_000)
    assert gymnasium.make(pickle.loads(pickle.dumps(env.spec))).unwrapped.scenario == env.unwrapped.scenario
    vector = gymnasium.make_vec("lasthop/Window-v0", num_envs=2)
    assert vector.reset(seed=1)[0].shape == (2, len(lh.gym.OBSERVATIONS))
    vector.close()
    with pytest.raises(lh.ScenarioError, match="no built-in scenario `west97`"):
        gymnasium.make("lasthop/Window-v0", scenario="west97")


def test_training_improves_on_a_random_policy():
    """CMA-ES for less than a minute. `python/notebooks/machine-learning.ipynb` is the longer version."""
    link = lh.Scenario("""
        horizon = "5s"
        transfer = { from = "server", to = "phone", bytes = "100MB" }
        [host.server]
        [host.phone]
        [[path]]
        link = { rate = "100mbit", delay = "20ms" }
        [[path]]
        radio = { rate = "6mbit", delay = "10ms", queue = "200p" }
        errors = { model = "packet-loss", p = "0.5%" }
    """)
    env = gymnasium.make("lasthop/Window-v0", scenario=link, interval="50ms")

    def policy(weights):
        def act(seen):
            features = [np.log1p(seen[1]) / 10, np.log(seen[4] + 1e-3) / 3, np.log1p(seen[6]) / 10, 1.0]
            return np.array([np.tanh(weights @ features)], dtype=np.float32)

        return act

    def score(policy, seeds):
        return np.mean([lh.gym.episode(env, policy, seed=seed)["reward"] for seed in seeds])

    env.action_space.seed(1)
    random = score(lambda _: env.action_space.sample(), range(1000, 1010))
    untrained = score(policy(np.zeros(4)), range(1000, 1010))
    search = cma.CMAEvolutionStrategy(np.zeros(4), 0.5, {"seed": 1, "popsize": 8, "verbose": -9})
    for generation in range(25):
        candidates = search.ask()
        search.tell(candidates, [-score(policy(weights), [generation, generation + 100]) for weights in candidates])
    learned = score(policy(search.result.xfavorite), range(1000, 1010))
    print(f"return of a random policy {random:.0f}, untrained {untrained:.0f}, trained {learned:.0f}")
    assert learned > max(random, untrained) + 100


@pytest.mark.parametrize("baseline", lh.gym.BASELINES)
def test_baselines_stand_behind_the_same_interface(baseline):
    env = lh.gym.make(LAN, "10ms", baseline=baseline)
    played = lh.gym.episode(env, seed=7)
    alone = lh.run(LAN.set("tcp", baseline).set("seed", 7), seeds=1)
    assert played["end"] == "complete"
    # The last interval counts in full.
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
        (lambda: lh.gym.make(LAN, "10"), "interval is '10'"),
        (lambda: lh.gym.make(3), "scenario is int"),
        (lambda: lh.gym.make(LAN, largest=5), "largest is 5"),
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
