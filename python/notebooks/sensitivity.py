# %% [markdown]
# # How sensitive is snoop to its local timer?
#
# SALib draws the points and computes the indices; `run_points` makes the runs, with common seeds.

# %%
import lasthop as lh
import numpy as np
from SALib.analyze import sobol as indices
from SALib.sample import sobol as sample

problem = {
    "num_vars": 2,
    "names": ["agent.min-timeout", "errors.mean"],
    "bounds": [[5.0, 300.0], [8.0, 128.0]],
}
places = sample.sample(problem, 8, calc_second_order=False, seed=1)
places.shape

# %%
base = lh.Scenario.example("west97-lan").cell(agent="snoop").set("transfer.bytes", "200kB")
points = [{"agent.min-timeout": f"{t:.0f}ms", "errors.mean": f"{e:.0f}KiB"} for t, e in places]
t = lh.run_points(base, points, seeds=3)
throughput = np.array([row["mean"] for row in t.summary("throughput")])

# %% [markdown]
# First-order and total indices: the share of the variance that each key explains. With so few points they are rough.

# %%
found = indices.analyze(problem, throughput, calc_second_order=False, seed=1)
for name, first, total in zip(problem["names"], found["S1"], found["ST"]):
    print(f"{name}: first order {first:.2f}, total {total:.2f}")
assert np.isfinite(found["ST"]).all()
