# %% [markdown]
# # A published table, found again
#
# `reproduce` runs the experiments of a paper and compares with what it published, one claim after the other.

# %%
import lasthop as lh

claims = [c for c in lh.claims() if c["paper"] == "west97"]
claims[:3]

# %% [markdown]
# Table 1 of the paper, with few seeds, so that this takes seconds. A verdict rests on 20.

# %%
(told,) = lh.reproduce("W-T1", seeds=3)
for measured in told["measured"][:6]:
    print(measured)

# %%
assert told["id"] == "W-T1" and told["runs"] > 0
told["published"], told["verdict"], told["reason"]
