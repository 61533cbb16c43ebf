# %% [markdown]
# # First steps
#
# A scenario, its runs, a table, a picture. Open this file as a notebook (jupytext), or run it.

# %%
import lasthop as lh
import polars as pl

s = lh.Scenario.example("west97-lan").set("errors.mean", "16KiB").vary("agent", ["none", "snoop"])
s

# %% [markdown]
# Every combination with every seed is a run. The table is an Arrow table.

# %%
t = lh.run(s, seeds=20)
df = pl.DataFrame(t.runs)
means = df.group_by("agent").agg(pl.col("throughput").mean()).sort("agent")
means

# %% [markdown]
# The same, with confidence intervals, and where it is from.

# %%
t.summary("throughput")

# %%
none, snoop = (row["mean"] for row in t.summary("throughput"))
assert snoop > 1.2 * none
t.plot("throughput")

# %% [markdown]
# One run in full: its time-sequence plot, its events, and a capture for Wireshark.

# %%
one = lh.record(s.cell(agent="snoop"), seed=7)
one.plot_sequence()

# %%
pl.DataFrame(one.events).group_by("event").len().sort("len", descending=True)
