//! The delay controller: its target, and the traffic that it leaves unchanged.

use lasthop_proto::queue::{Discipline, PieConfig};

use super::codel::{Observations, PLENTY, watch};
use super::script::Bench;

fn pie(config: PieConfig) -> Bench {
    Bench::new(Discipline::Pie(config), PLENTY)
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

/// Five packets in four milliseconds, a fifth too many, for `millis`.
fn overload(config: PieConfig, millis: u64, capable: bool) -> Observations {
    watch(pie(config), millis, |now| 1 + u64::from(now.is_multiple_of(4)), capable)
}

#[test]
fn the_delay_of_an_overload_is_held_at_the_target() {
    let observed = overload(PieConfig::default(), 60_000, false);
    let settled = &observed.waited[30_000..];
    assert!((mean(settled) - 15.0).abs() < 3.0, "{} ms", mean(settled));
    // A fifth is excess: that share is dropped.
    let ended =
        observed.drops.iter().filter(|at| **at >= 30_000).count() as f64 / (30_000.0 * 1.25);
    assert!((ended - 0.2).abs() < 0.01, "{ended}");
    let slow = PieConfig { target: lasthop_proto::units::Span::millis(60), ..PieConfig::default() };
    let observed = overload(slow, 60_000, false);
    assert!(
        (mean(&observed.waited[30_000..]) - 60.0).abs() < 6.0,
        "{}",
        mean(&observed.waited[30_000..])
    );
}

//= rfc8033: a burst after an idle time passes
#[test]
fn a_burst_after_an_idle_time_passes() {
    let burst = |now: u64| if now == 500 { 100 } else { 0 };
    assert!(watch(pie(PieConfig::default()), 1000, burst, false).drops.is_empty());
    // Without the burst allowance the same overload causes earlier drops.
    let none = PieConfig { max_burst: lasthop_proto::units::Span::ZERO, ..PieConfig::default() };
    let first = |config| overload(config, 5000, false).drops[0];
    let (with, without) = (first(PieConfig::default()), first(none));
    assert!(with >= 150 && without < with, "{with} {without}");
}

#[test]
fn small_chances_mark_and_large_ones_drop() {
    // An excess of a hundredth needs a probability of a hundredth; one of a half more than a tenth.
    let little = |now: u64| 1 + u64::from(now.is_multiple_of(100));
    let observed = watch(pie(PieConfig::default()), 60_000, little, true);
    // Marks alone do not shorten this queue, so the probability grows until packets are dropped.
    assert!(observed.marks[0] < observed.drops[0] && observed.marks.len() > 10);
    let all = PieConfig { mark_below: 1.0, ..PieConfig::default() };
    assert!(watch(pie(all), 60_000, little, true).drops.is_empty());
}

#[test]
fn an_idle_queue_forgets_its_chance() {
    let pause = |now: u64| if now < 10_000 { 2 } else { u64::from(now >= 40_000) };
    let observed = watch(pie(PieConfig::default()), 60_000, pause, false);
    assert!(observed.drops.iter().any(|at| *at < 10_000));
    let after = observed.drops.iter().filter(|at| **at >= 40_000).count();
    assert_eq!(after, 0, "as many come as go");
}
