//! A run reports the limits of its senders.

use lasthop_observe::Nothing;
use lasthop_proto::tcp::TcpConfig;
use lasthop_proto::tcp::sender::limits::Limit;
use lasthop_proto::tcp::words::TCPS;
use lasthop_sim::run;

use crate::parsed::scenario_with;

/// The share of each limit over 20 s on the path of `link`.
fn shares(transfer: &str, link: &str, set: &[String]) -> [f64; 5] {
    let text = format!(
        "horizon = \"20s\"\ntransfer = {{ {transfer} }}\n\
         [host.server]\npreset = \"linux\"\nside = \"left\"\nsend-buffer = \"8MB\"\n\
         [host.client]\npreset = \"linux\"\nrecv-buffer = \"8MB\"\nsmart = true\nsnack = true\n\
         [[path]]\nlink = {{ {link} }}\n"
    );
    let end = run(&scenario_with(&text, set), 1, &mut Nothing);
    let shares = end.limits.expect("data was sent").0.map(|part| f64::from(part) / 1e6);
    let sum: f64 = shares.iter().sum();
    assert!((0.9999..=1.0).contains(&sum), "{set:?}: {shares:?}");
    shares
}

const BULK: &str = "from = \"server\", to = \"client\", bytes = \"unlimited\"";
const REQUESTS: &str = "from = \"client\", to = \"server\", request = \"100B\", response = \"5kB\", every = \"500ms\", persistent = true";
const LONG: &str = "rate = \"100mbit\", delay = \"50ms\", queue = \"2000p\"";
const NARROW: &str = "rate = \"5mbit\", delay = \"20ms\", queue = \"30p\"";

/// Every sender with each limit. A paced sender spreads what its window or buffer allows, so it waits for both.
#[test]
fn each_limit_is_reported_for_every_sender() {
    for word in TCPS {
        let tcp = format!("host.server.tcp={}", word.key);
        for (limit, transfer, link, set) in [
            (Limit::Application, REQUESTS, LONG, ""),
            (Limit::SendBuffer, BULK, LONG, "host.server.send-buffer=32KiB"),
            (Limit::ReceiveWindow, BULK, LONG, "host.client.recv-buffer=32KiB"),
            (Limit::CongestionWindow, BULK, NARROW, ""),
        ] {
            let set: Vec<String> = [tcp.as_str(), set]
                .iter()
                .filter(|s| !s.is_empty())
                .map(|s| (*s).to_owned())
                .collect();
            let shares = shares(transfer, link, &set);
            let share = shares[limit as usize] + shares[Limit::Pacing as usize];
            assert!(share > 0.8, "{set:?}: {limit:?} {shares:?}");
            let mut config = TcpConfig::linux();
            (word.apply)(&mut config);
            let paced = config.pacing || matches!(word.key, "bbr" | "bbr3");
            let unpaced = shares[Limit::Pacing as usize] == 0.0;
            assert!(paced || unpaced, "{set:?}: {shares:?}");
        }
    }
}

#[test]
fn a_pacer_is_reported() {
    let set = ["host.server.tcp=cubic".to_owned(), "host.server.pacing=true".to_owned()];
    let shares = shares(BULK, NARROW, &set);
    assert!(shares[Limit::Pacing as usize] > 0.2, "{shares:?}");
}
