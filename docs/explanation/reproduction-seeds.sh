#!/bin/sh
# Compares the printed verdict of each claim with those of blocks of 20 seeds, 21 to 140, and of these 120 seeds together.
#
#     docs/explanation/reproduction-seeds.sh [LASTHOP] [CLAIM...]
#
# Prints a line for each claim with a block whose verdict is not the printed one: the printed verdict, that of each block,
# and that of the 120 seeds, which decides. Claims that measure this machine have no seeds. Stored evaluations of the same
# program are reused.
set -eu
lasthop=${1:-target/release/lasthop}
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
"$lasthop" list claims --json >"$out/printed.json"
differ=$(python3 - "$out" <<'PYTHON'
import json, sys

blocks = [21, 41, 61, 81, 101, 121]
rows = json.load(open(f"{sys.argv[1]}/printed.json"))["claims"]
printed = {row["id"]: row["verdict"] for row in rows if row.get("verdict")}
verdicts, papers = {}, {}
for block in blocks:
    for claim in json.load(open(f"{sys.argv[1]}/{block}.json"))["claims"]:
        verdicts.setdefault(claim["id"], []).append(claim["verdict"])
        papers.setdefault(claim["paper"], set()).add(claim["id"])
print(f"{'claim':<18} {'printed':<10}", *(f"{f'{b}-{b + 19}':<10}" for b in blocks), file=sys.stderr)
other = [claim for claim, of in verdicts.items() if set(of) != {printed.get(claim)}]
for claim in other:
    print(f"{claim:<18} {printed.get(claim, 'none'):<10}", *(f"{v:<10}" for v in verdicts[claim]), file=sys.stderr)
for paper, claims in papers.items():
    alike = len(claims - set(other))
    print(f"{paper}: {alike} of {len(claims)} claims have the printed verdict in all {len(blocks)} blocks", file=sys.stderr)
contrary = [c for c in other if {"holds", "fails"} <= {printed.get(c), *verdicts[c]}]
print("claims that hold in one block and fail in another:", ", ".join(contrary) or "none", file=sys.stderr)
print(*other)
PYTHON
)
[ -z "$differ" ] && exit
# shellcheck disable=SC2086  # a list of names
"$lasthop" reproduce $differ --seed 21 --seeds 120 --json -o "$out/all" >"$out/all.json"
python3 -c '
import json, sys
for claim in json.load(open(sys.argv[1]))["claims"]:
    print("seeds 21 to 140:", claim["id"], claim["verdict"])' "$out/all.json"
