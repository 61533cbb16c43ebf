# %% [markdown]
# # A capture, analysed
#
# Any pcap or pcapng file does; this one is made here.

# %%
import pathlib
import tempfile

import lasthop as lh

s = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "300kB")
one = lh.record(s, seed=2)
path = pathlib.Path(tempfile.mkdtemp()) / "wired.pcapng"
one.to_pcapng(path)

# %%
found = lh.analyze(path)
(connection,) = found["connections"]
data = max(connection["to_client"], connection["to_server"], key=lambda d: d["unique_bytes"])
assert data["unique_bytes"] == 300_000
{key: data[key] for key in ("packets", "unique_bytes") if key in data}

# %% [markdown]
# The same run, drawn from its recording.

# %%
one.plot_sequence()
