#!/bin/sh
# Compares the verdicts of all claims between blocks of 20 seeds, 21 to 140, to find those that depend on the seeds.
#
#     docs/explanation/reproduction-seeds.sh [LASTHOP] [CLAIM...]
#
# Prints a line for each claim whose verdicts differ, with the verdict of each block, and a count of the others for each
# paper. Claims that measure this machine have no seeds. Stored evaluations of the same program are reused.
set -eu
lasthop=${1:-target/quick/lasthop}
[ $# -gt 0 ] && shift
out=${OUT:-target/reproduction-seeds}
mkdir -p "$out"
claims=${*:-$("$lasthop" list claims --json | python3 -c '
import json, sys
live = {"A-CHECKSUM", "A-LOOKUP"}
rows = json.load(sys.stdin)["claims"]
print(*(row["id"] for row in rows if row["id"] not in live))')}
for seed in 21 41 61 81 101 121; do
    # shellcheck disable=SC2086  # a list of names
    "$lasthop" reproduce $claims --seed $seed --json -o "$out/$seed" >"$out/$seed.json"
done
python3 - "$out" <<'PYTHON'
import json, sys

blocks = [21, 41, 61, 81, 101, 121]
verdicts, papers = {}, {}
for block in blocks:
    for claim in json.load(open(f"{sys.argv[1]}/{block}.json"))["claims"]:
        verdicts.setdefault(claim["id"], []).append(claim["verdict"])
        papers.setdefault(claim["paper"], set()).add(claim["id"])
print(f"{'claim':<18}", *(f"{f'{b}-{b + 19}':<10}" for b in blocks))
for claim, of in verdicts.items():
    if len(set(of)) > 1:
        print(f"{claim:<18}", *(f"{v:<10}" for v in of))
alike = {claim for claim, of in verdicts.items() if len(set(of)) == 1}
for paper, claims in papers.items():
    print(f"{paper}: {len(claims & alike)} of {len(claims)} claims have one verdict in all {len(blocks)} blocks")
print(f"all: {len(alike)} of {len(verdicts)}")
contrary = [c for c, of in verdicts.items() if {"holds", "fails"} <= set(of)]
print("claims that hold in one block and fail in another:", ", ".join(contrary) or "none")
PYTHON
