#!/bin/sh
# Verdicts of all claims of the papers by blocks of 20 seeds, 21 to 140: which of them depend on the seeds.
#
#     docs/explanation/reproduction-seeds.sh [LASTHOP] [CLAIM...]
#
# Prints a line for each claim whose verdicts differ, with the verdict of each block, and a count of the others. Claims
# that measure this machine have no seeds. About ten minutes on two cores.
set -eu
lasthop=${1:-target/quick/lasthop}
[ $# -gt 0 ] && shift
out=${OUT:-target/reproduction-seeds}
mkdir -p "$out"
claims=${*:-$("$lasthop" list claims --json | python3 -c '
import json, sys
live = {"A-CHECKSUM", "A-LOOKUP", "A-LIVE"}
apart = {"related", "modern"}
rows = json.load(sys.stdin)["claims"]
print(*(row["id"] for row in rows if row["paper"] not in apart and row["id"] not in live))')}
for seed in 21 41 61 81 101 121; do
    # shellcheck disable=SC2086  # a list of names
    "$lasthop" reproduce $claims --seed $seed --json -o "$out/$seed" >"$out/$seed.json"
done
python3 - "$out" <<'PYTHON'
import json, sys

blocks = [21, 41, 61, 81, 101, 121]
verdicts = {}
for block in blocks:
    for claim in json.load(open(f"{sys.argv[1]}/{block}.json"))["claims"]:
        verdicts.setdefault(claim["id"], []).append(claim["verdict"])
print(f"{'claim':<18}", *(f"{f'{b}-{b + 19}':<10}" for b in blocks))
alike = 0
for claim, of in verdicts.items():
    if len(set(of)) == 1:
        alike += 1
    else:
        print(f"{claim:<18}", *(f"{v:<10}" for v in of))
print(f"{alike} of {len(verdicts)} claims have one verdict in all {len(blocks)} blocks")
contrary = [c for c, of in verdicts.items() if {"holds", "fails"} <= set(of)]
print("claims that hold in one block and fail in another:", ", ".join(contrary) or "none")
PYTHON
