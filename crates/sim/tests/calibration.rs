//! The two unmeasured figures of the preset `sens-800`, from the two lifetimes in agarwal00.
//!
//! Section 5 gives the lifetimes of one battery: 223 minutes idle, 110 minutes while the laptop sends continuously. It
//! states the currents of the card, `segment` has another source (docs/how-to/energy.md), and a run of the original sender
//! gives the power of radio and processor. That leaves two unknowns and two equations:
//!
//!     capacity = (base + idle) * 223 min = (base + radio + processing) * 110 min

use lasthop_observe::metrics::NodeEnergy;
use lasthop_proto::energy::PRESETS;

use crate::parsed::{metrics, scenario_with};

/// Linux 2.2 as it came, over one hop of 802.11b without RTS: MTU 1500, timestamps, SACK and window scale.
const STOCK: &str = r#"
transfer = { from = "sender", to = "receiver", bytes = "unlimited" }
horizon = "300s"
[host.receiver]
side = "left"
preset = "linux-2.2"
[host.sender]
side = "right"
preset = "linux-2.2"
battery = "sens-800"
[[path]]
radio = { rate = "11mbit", delay = "1ns", queue = "100p" }
mac = "dcf"
dcf = { control-rate = "2mbit" }
errors = { model = "bit-errors", ber = 1e-8 }
"#;

const IDLE_S: f64 = 223.0 * 60.0;
const SENDING_S: f64 = 110.0 * 60.0;

fn sender(set: &[&str]) -> NodeEnergy {
    metrics(&scenario_with(STOCK, set), 1).energy.remove(0)
}

#[test]
fn base_and_capacity_follow_from_the_two_lifetimes() {
    let hardware =
        PRESETS.iter().find(|p| p.name == "sens-800").expect("the thesis's laptop").hardware();
    let node = sender(&[]);
    let elapsed = node.transmit_s + node.receive_s + node.doze_s + node.idle_s;
    let spent = &node.spent;
    let radio = (spent.transmit + spent.receive + spent.idle) / elapsed;
    let processing = spent.processing / elapsed;
    let idle = hardware.radio.idle.get();
    let base = ((radio + processing) * SENDING_S - idle * IDLE_S) / (IDLE_S - SENDING_S);
    let capacity = (base + idle) * IDLE_S;
    println!(
        "radio {radio:.3} W, processing {processing:.3} W: base {base:.3} W, capacity {capacity:.0} J"
    );
    assert!((hardware.base.get() / base - 1.0).abs() < 0.005, "base should be {base:.3} W");
    assert!(
        (hardware.capacity.get() / capacity - 1.0).abs() < 0.005,
        "capacity should be {capacity:.0} J"
    );
    // The preset's lifetimes.
    assert!((node.lifetime_s / SENDING_S - 1.0).abs() < 0.005, "{}", node.lifetime_s);
    let silent = sender(&["transfer.start=299s"]);
    assert!((silent.lifetime_s / IDLE_S - 1.0).abs() < 0.005, "{}", silent.lifetime_s);
}
