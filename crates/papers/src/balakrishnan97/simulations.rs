//! The simulations of sections 4 and 5, with common hosts and sizes.
//!
//! Section 4.3 gives: segments in packets of 1000 bytes, socket buffers of 100 KB (100 packets), 10 packets in the buffer of each
//! router, 10 Mb/s forward, 50 seconds.

/// A scenario with the common hosts: Reno, one ACK per packet, as in the simulator's receivers.
macro_rules! simulated {
    ($path:literal) => {
        concat!(
            r#"
name = "balakrishnan97-simulations"
runs = 20
horizon = "50s"

[[transfer]]
from = "server"
to = "home"
bytes = "unlimited"

[host.server]
preset = "ns"
tcp = "reno"
mss = 960
send-buffer = 96_000
window-scale = true
[host.home]
preset = "ns"
mss = 960
recv-buffer = 96_000
window-scale = true
"#,
            $path
        )
    };
}

/// The topology of Figure 5 for 4.1: a fast forward line, and one of another rate for the ACKs.
pub(super) const ASYMMETRIC: &str = simulated!(
    r#"
[[path]]
name = "forward"
link = { rate-right = "10mbit", delay = "5ms", queue = "9p" }
[[path]]
name = "return"
link = { rate-left = "28.8kbit", queue = "9p" }
"#
);

/// The topology of Figure 5, for Table 1 and 4.4.1, as in the published scripts of the authors' simulator: server, two
/// routers, client; 10 Mb/s everywhere except on the return path between the routers. Two lines connect the routers,
/// because a line here has one delay: 5 ms forward and 50 ms back become 5 ms and 22.5 ms in each direction; only the
/// sum matters.
pub(super) const FIGURE_5: &str = simulated!(
    r#"
[[path]]
name = "server-line"
link = { rate = "10mbit", delay = "1ms", queue = "110p" }
[[path]]
name = "forward"
link = { rate-right = "10mbit", delay = "5ms", queue = "9p" }
[[path]]
name = "return"
link = { rate-left = "28.8kbit", delay = "22.5ms", queue = "9p" }
[[path]]
name = "home-line"
link = { rate = "10mbit", delay = "1ms", queue = "110p" }
"#
);

/// Packet radio (4.4.2): a wired network, and half-duplex hops behind it.
pub(super) const RADIO: &str = simulated!(
    r#"
[[path]]
name = "wired"
link = { rate = "10mbit", delay = "5ms", queue = "9p" }
[[path]]
name = "radio"
radio = { rate = "100kbit", delay = "10ms", overhead = "1280us", queue = "9p" }
mac = "half-duplex-hops"
half-duplex-hops = { hops = 2 }
"#
);
