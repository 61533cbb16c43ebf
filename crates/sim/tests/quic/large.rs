//! Memory use of a transfer of a hundred megabytes, alone in a process of its own.

use std::process::Command;
use std::time::Instant;

use crate::common::scenario;
use lasthop_observe::Nothing;
use lasthop_sim::run_with;

/// Peak memory of this process in bytes, where the system reports it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn a_hundred_megabytes_go_through_in_little_memory() {
    const ALONE: &str = "LASTHOP_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().expect("the path of this program"));
        alone.args(["--exact", "large::a_hundred_megabytes_go_through_in_little_memory"]);
        assert!(alone.env(ALONE, "1").status().expect("it starts").success());
        return;
    }
    let transfer = |bytes: &str| {
        scenario(&format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"{bytes}\", protocol = \"quic\" }}\n\
             [host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
             [[path]]\nlink = {{ rate = \"100mbit\", delay = \"10ms\", queue = \"200p\" }}\n\
             [[path]]\ncross = {{ loss = \"0.1%\" }}\n"
        ))
    };
    let delivered = |bytes: &str| {
        let end = run_with(&transfer(bytes), 1, &lasthop_sim::quic::end, &mut Nothing);
        (end.transfers[0].delivered, end.hops)
    };
    assert_eq!(delivered("5MB").0, 5_000_000);
    let before = peak();
    let begun = Instant::now();
    let (bytes, hops) = delivered("100MB");
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(bytes, 100_000_000);
    println!("{:.1} MB/s, {:.0} packets a second", 100.0 / seconds, hops as f64 / seconds);
    if let (Some(before), Some(after)) = (before, peak()) {
        // The stack stores unacknowledged data and a few records.
        assert!(after < before + 8_000_000, "{before} bytes, then {after}");
    }
}
