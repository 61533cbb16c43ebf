//! Regressions: runs that once ended in an endless loop.

use lasthop_observe::Nothing;
use lasthop_sim::{Reason, run};

use crate::parsed::scenario;

/// A paced sender whose TIME-WAIT ends before the pacer's next deadline: `mobile1` was called for it forever.
const CLOSED_WHILE_PACED: &str = r#"
seed = 3124550671
[[transfer]]
from = "fixed1"
to = "mobile2"
web = { sessions = 5, think = "50ms", size = { mean = "10kB" } }
stop = "10s"
[[transfer]]
from = "mobile1"
to = "fixed1"
web = { sessions = 1, think = "3.897s", size = { mean = "10kB" } }
stop = "10s"
[[transfer]]
from = "fixed2"
to = "mobile2"
bytes = 9971
[host.fixed1]
preset = "linux-2.2"
[host.fixed2]
preset = "rfc"
[host.mobile1]
preset = "bakshi96"
sender-adaptation = true
granularity = "114ms"
time-wait = "108ms"
[host.mobile2]
preset = "rfc"
tcp = "bbr"
[[path]]
link = { rate = "1mbit", delay = "0s", framing = 1, discipline = "fifo" }
[[path]]
radio = { rate = "11mbit", delay = "23ms", duplex = "full", discipline = "red+acks-first", red = { min = 10, max = 110, max-p = 1e-6, weight = 0.5, mark = false } }
[[path]]
radio = { rate = "1gbit", delay = "96us", duplex = "full", overhead = "82us", queue = "1MB" }
errors = { model = "packet-loss", p = 0.01 }
"#;

#[test]
fn a_closed_connection_is_not_woken() {
    let scenario = &scenario(CLOSED_WHILE_PACED);
    let end = run(scenario, scenario.first_seed + 1, &mut Nothing);
    assert_eq!((end.reason, end.stuck), (Reason::Finished, None));
}
