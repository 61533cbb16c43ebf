//! BBR version 3 on whole paths.

use lasthop_observe::stats::Summary;

use super::*;

use crate::parsed::scenario;

/// 50 Mb/s and a round trip of 20 ms: 83 segments, and a queue of two such products.
const FAST: [&str; 3] =
    ["path.wire.link.rate=50mbit", "path.wire.link.queue=170p", "path.wire.link.delay=10ms"];

/// Throughput in Mb/s of four seeds of `tcp` on such a path with random loss and the settings `set`.
fn rates(tcp: &str, loss: &str, set: &[&str]) -> Summary {
    let (tcp, loss) = (format!("tcp={tcp}"), format!("path.core.cross.loss={loss}"));
    let set = [&FAST[..], &[&tcp, &loss], set].concat();
    let all: Vec<f64> = (1..=4).map(|seed| course(seed, &set).2).collect();
    Summary::of(&all)
}

/// Between two probes a round trip with losses reduces the rate to the delivered share: after n of them it is (1 -
/// loss)^n of the original. The next probe, 63 rounds or a bandwidth-delay product of segments later, restores the
/// path's rate. So one percent of random loss has a cost, which is smaller where the product is small.
//= draft-ietf-ccwg-bbr-06#section-5.3.3.8.3: "a simplified model"
#[test]
fn throughput_at_one_percent_loss_matches_the_draft() {
    for (rate, rounds) in [("50mbit", 63), ("10mbit", 17), ("5mbit", 8)] {
        let rate = format!("path.wire.link.rate={rate}");
        let of = |loss: &str| rates("bbr3", loss, &[&rate]).mean;
        let model = mean(std::iter::successors(Some(1.0), |left| Some(left * 0.99)).take(rounds));
        let share = of("1%") / of("0%");
        assert!((0.92..1.15).contains(&(share / model)), "{rate}: {share} {model}");
    }
}

/// Version 1 ignores it; CUBIC reduces far more. Beyond 2 % version 3 yields.
#[test]
fn beyond_two_percent_of_loss_version_three_gives_way() {
    let of = |tcp: &str| ["1%", "3%", "5%"].map(|loss| rates(tcp, loss, &[]).mean);
    let (v1, v3, cubic) = (of("bbr"), of("bbr3"), of("cubic"));
    let clean = rates("bbr3", "0%", &[]).mean;
    assert!(clean > 46.0, "{clean}");
    assert!(v1.iter().all(|rate| *rate > 43.0), "{v1:?}");
    assert!(v3[0] > 34.0 && v3[1] < 16.0 && v3[2] < 8.0, "{v3:?}");
    assert!(v3.iter().zip(cubic).all(|(v3, cubic)| *v3 > 2.0 * cubic), "{v3:?} {cubic:?}");
}

/// Throughput of CUBIC in Mb/s next to `tcp` over a queue of `queue` segments, in two minutes.
fn cubic_rate_next_to(tcp: &str, queue: u32) -> f64 {
    let host = |name: &str, more: &str| format!("[host.{name}]\npreset = \"linux\"\n{more}\n");
    let transfer = |from: &str, to: &str| {
        format!("{{ from = \"{from}\", to = \"{to}\", bytes = \"unlimited\" }}")
    };
    let text = [
        "horizon = \"120s\"".to_owned(),
        format!("transfer = [{}, {}]", transfer("a", "b"), transfer("c", "d")),
        host("a", &format!("side = \"left\"\ntcp = \"{tcp}\"")),
        host("b", ""),
        host("c", "side = \"left\"\ntcp = \"cubic\""),
        host("d", ""),
        format!("[[path]]\nlink = {{ rate = \"50mbit\", delay = \"10ms\", queue = \"{queue}p\" }}"),
    ];
    let end = run(&scenario(&text.join("\n")), 1, &mut Course::default());
    end.transfers[1].acknowledged as f64 * 8.0 / 120.0 / 1e6
}

/// Over a queue of one product version 1 leaves CUBIC a tenth, version 3 nearly half.
#[test]
fn cubic_coexists_with_version_three() {
    let (v1, v3) = (cubic_rate_next_to("bbr", 83), cubic_rate_next_to("bbr3", 83));
    assert!(v1 < 10.0, "{v1}");
    assert!((15.0..32.0).contains(&v3), "{v3}");
}

/// Half a product in flight for a fifth of a second, five seconds after the last shorter round trip.
#[test]
fn rtt_probes_drain_the_path_to_half_bdp() {
    let (c, _, _) = course(1, &[&FAST[..], &["tcp=bbr3"]].concat());
    let low: Vec<(f64, u32)> =
        c.steps.iter().filter(|s| s.0 > 1.0 && s.1 <= 50 * 1448).map(|s| (s.0, s.1)).collect();
    let mut dips: Vec<(f64, f64)> = Vec::new();
    for (at, window) in &low {
        assert!((36 * 1448..46 * 1448).contains(window), "{window}");
        match dips.last_mut() {
            Some(dip) if at - dip.1 < 1.0 => dip.1 = *at,
            _ => dips.push((*at, *at)),
        }
    }
    assert!((3..=5).contains(&dips.len()), "{dips:?}");
    assert!(dips.iter().all(|(from, to)| (0.2..0.26).contains(&(to - from))), "{dips:?}");
    assert!(dips[0].0 < 5.3 && dips.windows(2).all(|two| two[1].0 - two[0].0 > 5.2), "{dips:?}");
}

/// A queue that marks from an eighth of a product on. Accurately counted marks reduce the inflight limit and cost no
/// rate; an echo counts as a loss and costs a fifth. Mean round trips do not get shorter: as soon as marks cease it
/// probes again, several times as often as without them.
#[test]
fn marks_that_are_counted_cost_no_rate_and_echoes_do() {
    let of = |more: &[&str]| {
        let (c, _, rate) = course(1, &[&FAST[..], &["tcp=bbr3"], more].concat());
        assert_eq!(c.drops, 0, "{more:?}");
        (rate, mean(c.steps.iter().filter(|s| s.0 > 2.0).map(|s| f64::from(s.1))))
    };
    let red = "path.wire.link.red={ min = 10, max = 20, weight = 1.0, mark = true }";
    let marks = ["path.wire.link.discipline=red", red, "ecn=true"];
    let plain = of(&[]);
    let echoed = of(&marks);
    let counted = of(&[&marks[..], &["accurate-ecn=ace"]].concat());
    assert!(counted.1 < 0.8 * plain.1, "{counted:?} {plain:?}");
    assert!((counted.0 / plain.0 - 1.0).abs() < 0.03, "{counted:?} {plain:?}");
    assert!((0.7..0.9).contains(&(echoed.0 / plain.0)), "{echoed:?} {plain:?}");
}
