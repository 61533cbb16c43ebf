//! Bakshi, Krishna, Vaidya & Pradhan 1996: packet sizes, local recovery, and explicit bad state notification.
//!
//! One set of values serves all experiments on one network: see the `.toml` files in this folder.

mod averages;
mod feedback;
mod lan;
mod range;
mod recovery;
mod setup;
mod size;
mod traces;

use crate::Paper;

pub(crate) const PAPER: Paper = Paper {
    key: "bakshi96",
    title: "B. Bakshi, P. Krishna, N. Vaidya, D. Pradhan: Improving Performance of TCP over Wireless Networks. \
            TR 96-014, Texas A&M, 1996",
    claims: &[
        range::CLAIM.named("B-F3", traces::f3),
        range::CLAIM.named("B-F4", traces::f4),
        range::CLAIM.named("B-F5", traces::f5),
        range::CLAIM.named("B-F7", size::f7),
        range::CLAIM.named("B-F8", recovery::f8),
        range::CLAIM.named("B-F9", recovery::f9),
        range::CLAIM.named("B-F10", lan::f10),
        range::CLAIM.named("B-DEVIATION", averages::deviation),
        range::CLAIM.named("B-QUENCH", feedback::quench),
        range::CLAIM.named("B-TICK", feedback::tick),
        range::CLAIM.named("B-RECOVERY", feedback::recovery),
        range::CLAIM.named("B-LONGER", recovery::longer),
    ],
};

#[cfg(test)]
mod tests {
    use super::setup::{LAN, SIZES, Scheme, WAN, packet_size, wan};
    use crate::{Bench, scenario};

    #[test]
    fn every_network_is_a_scenario_with_every_scheme() {
        for scheme in [Scheme::Basic, Scheme::Recovery, Scheme::Ebsn, Scheme::Quench] {
            for text in [WAN, LAN] {
                assert_eq!(scenario(text, scheme.changes()).path.len(), 3);
            }
            for size in SIZES {
                let fixed = &scenario(WAN, &packet_size(size)).hosts[0].tcp;
                assert_eq!(fixed.mss, size - 40);
                assert!(fixed.send_buffer <= 4096 && fixed.send_buffer > 4096 / 2);
            }
        }
    }

    /// The base station's link layer, its agent and the source work together.
    #[test]
    fn each_failed_attempt_reaches_the_source() {
        let mut bench = Bench::new(1, &());
        let bad = ["errors.deterministic=true"];
        let mut counts = |scheme| {
            let runs = wan(&mut bench, scheme, 576, 4, &bad).unwrap();
            let of = |of: fn(&lasthop_observe::metrics::FlowMetrics) -> u64| {
                runs.each(|m| m.sum(of) as f64)[0]
            };
            (of(|f| f.bad_state_notices), of(|f| f.quenches), of(|f| f.repeated.total()))
        };
        let (notices, quenches, repeated) = counts(Scheme::Ebsn);
        assert!(notices > 0.9 * repeated && quenches == 0.0, "{notices} of {repeated}");
        let (notices, quenches, repeated) = counts(Scheme::Quench);
        assert!(quenches > 0.0 && notices == 0.0 && repeated > 0.0);
    }
}
