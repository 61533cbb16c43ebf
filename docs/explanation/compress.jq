# Energy saved by compression before sending, from `lasthop run --json`: --argjson ratio (compressed bytes per byte), c (processor
# seconds per byte) and P (watts of the busy processor). energy-questions.md explains the terms.
[.cells[].runs[].metrics.energy[]
  | select(.sent > 0 and .idle_s > 0 and (.emptied | not))
  | (.transmit_s + .receive_s + .doze_s + .idle_s) as $s
  | (.spent.base / $s + .spent.idle / .idle_s) as $rest
  | ($s / .sent) as $t
  | ((.spent_j - $rest * $s) / .sent) as $e
  | 1 - ($ratio * $e + $c * $P + $rest * ([$ratio * $t, $c] | max)) / ($e + $rest * $t)]
| add / length
