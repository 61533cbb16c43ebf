# %% [markdown]
# # A Gymnasium agent in twenty lines
#
# The cross-entropy method looks for a fixed window: a policy with one number. Its competitors stand behind the same
# interface.

# %%
import lasthop as lh
import numpy as np

s = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "200kB")
env = lh.gym.make(s, interval="20ms")
rng = np.random.default_rng(1)
mean, spread = 0.0, 0.5
for generation in range(5):
    places = np.clip(rng.normal(mean, spread, 8), -1, 1)
    scores = []
    for place in places:
        action = np.array([place], dtype=np.float32)
        scores.append(lh.gym.episode(env, lambda _: action, seed=generation)["throughput"])
    best = places[np.argsort(scores)[-3:]]
    mean, spread = best.mean(), best.std() + 0.05
window = env.value(np.array([mean]))
print(f"a window of {window / 1000:.1f} kB")

# %%
def throughput(policy=None, **options):
    env = lh.gym.make(s, interval="20ms", **options)
    return np.mean([lh.gym.episode(env, policy, seed=100 + i)["throughput"] for i in range(5)])

learned = throughput(lambda _: env.action_of(window))
told = {name: throughput(baseline=name) for name in lh.gym.BASELINES}
print({"learned": round(learned), **{name: round(value) for name, value in told.items()}})
assert learned > 0 and all(value > 0 for value in told.values())
