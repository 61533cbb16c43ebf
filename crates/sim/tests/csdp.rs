//! Channel-state-dependent scheduling under TCP: its gain and its cost.

use lasthop_observe::Sink;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op};
use lasthop_scenario::{Scenario, example};
use lasthop_sim::run;

use crate::parsed::scenario_and_warnings;

const POLICIES: [&str; 3] = ["fifo", "round-robin", "longest-queue-first"];
/// Attempts for an RTS, and for a frame after it: those of 802.11, and a number so large that nothing is dropped.
const RETRIES: [[u8; 2]; 2] = [[7, 4], [255, 255]];

/// The built-in scenario with `phones` phones.
fn scenario(phones: usize, policy: &str, channel: &str, retries: [u8; 2]) -> Scenario {
    let text = example("csdp").unwrap().text;
    let (head, path) = text.split_once("[[path]]").unwrap();
    let (path, _) = path.split_once("[vary]").unwrap();
    let (head, _) = head.split_once("[[transfer]]").unwrap();
    let mut file = head.to_owned();
    for n in 1..=phones {
        file += "[[transfer]]\nfrom = \"server\"\nbytes = \"unlimited\"\n";
        file += &format!("to = \"phone{n}\"\n");
    }
    file += "[host.server]\nside = \"left\"\npreset = \"freebsd-2.1\"\n";
    for n in 1..=phones {
        file += &format!("[host.phone{n}]\npreset = \"freebsd-2.1\"\n");
    }
    file += &format!("[[path]]{path}");
    let set = [
        format!("radio.csdp.policy={policy}"),
        format!("radio.csdp.channel={channel}"),
        format!("dcf.short-retries={}", retries[0]),
        format!("dcf.long-retries={}", retries[1]),
    ];
    let (scenario, warnings) = scenario_and_warnings(&file, &set);
    assert_eq!(warnings, []);
    scenario
}

/// Drops at the base station.
#[derive(Default)]
struct DropCounts {
    given_up: u64,
    returned: u64,
}

impl Sink for DropCounts {
    fn interest(&self) -> Interest {
        Interest::METRICS
    }
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Packet { op: Op::Dropped(Cause::RetryLimit), .. } => self.given_up += 1,
            EventKind::Packet { op: Op::Repeated(Cause::RetryLimit), .. } => self.returned += 1,
            _ => {}
        }
    }
}

/// For each seed: the total throughput of all phones in KB/s, and the drops.
fn runs(
    phones: usize,
    policy: &str,
    (channel, retries): (&str, [u8; 2]),
    seeds: u64,
) -> Vec<(f64, DropCounts)> {
    let scenario = scenario(phones, policy, channel, retries);
    let one = |seed| {
        let mut seen = DropCounts::default();
        let end = run(&scenario, seed, &mut seen);
        let bytes: u64 = end.transfers.iter().map(|transfer| transfer.delivered).sum();
        (bytes as f64 / end.at.as_secs_f64() / 1024.0, seen)
    };
    (1..=seeds).map(one).collect()
}

fn mean(runs: &[(f64, DropCounts)]) -> f64 {
    runs.iter().map(|(rate, _)| rate).sum::<f64>() / runs.len() as f64
}

#[test]
fn passing_over_bad_channels_gains_over_one_queue() {
    let [fifo, patient] = RETRIES.map(|retries| runs(4, "fifo", ("none", retries), 3));
    assert!(fifo.iter().chain(&patient).all(|(_, seen)| seen.returned == 0));
    // With unlimited attempts nothing is dropped, and the loss of throughput is due to waiting alone.
    assert!(patient.iter().all(|(_, seen)| seen.given_up == 0));
    let blocked = mean(&fifo).max(mean(&patient));
    for policy in POLICIES {
        let csdp = runs(4, policy, ("failures", RETRIES[0]), 3);
        let rate = mean(&csdp);
        assert!(rate > blocked * 1.2, "{policy}: {rate} of {blocked}");
        // Returned packets are buffered, not dropped.
        assert!(csdp.iter().all(|(_, seen)| seen.given_up * 20 < seen.returned), "{policy}");
    }
    // Round robin alone does not help: the packet at the head blocks all.
    let turns = mean(&runs(4, "round-robin", ("none", RETRIES[0]), 3));
    assert!(turns < blocked * 1.2, "{turns} of {blocked}");
}
