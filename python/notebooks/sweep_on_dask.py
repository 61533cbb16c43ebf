# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # A sweep on a Dask cluster
# The cluster here is two processes of this machine. For a real one only the first lines change: on Slurm
# `dask_jobqueue.SLURMCluster(cores=16, memory="16GB")` with `cluster.scale(jobs=8)`, and a store that all machines
# reach: a directory they share, or `s3://bucket/results`.

# %%
import tempfile

import lasthop as lh
import polars as pl

s = lh.Scenario.example("west97-lan").set("transfer.bytes", "100kB").vary("errors.mean", ["16KiB", "64KiB", "256KiB"])
store = tempfile.mkdtemp()

# %%
# Dask starts processes that import this file again: only the first may start a cluster.
if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        swept = lh.sweep(s, store, seeds=300, executor=client.get_executor())
    print(swept)

    # %% [markdown]
    # The store has every batch that was finished. The same call makes what is missing: nothing.

    # %%
    again = lh.sweep(s, store, seeds=300)
    assert again["made"] == 0 and again["complete"]

    # %% [markdown]
    # Merged, it is one table, with a digest that is the same wherever the runs were made.

    # %%
    merged = lh.merge(store, out=store + "/table")
    print(merged["digest"])
    df = pl.read_parquet(store + "/table/runs.parquet")
    means = df.group_by("agent", "errors.mean").agg(pl.col("throughput").mean() / 1000, pl.len())
    print(means.sort("errors.mean", "agent"))
    assert merged["runs"] == merged["of"] == df.height == s.set("runs", 300).count
