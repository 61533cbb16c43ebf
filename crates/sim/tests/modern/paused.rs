//! Pauses of an application after each small answer are no congestion: no sender slows down.

use lasthop_observe::Sink;
use lasthop_proto::event::{Event, EventKind, TcpKind};
use lasthop_proto::units::Time;
use lasthop_sim::run;

use super::current_senders;

use crate::parsed::scenario_with;

const TEXT: &str = r#"
transfer = { from = "client", to = "server", request = "300B", response = "5kB", every = "300ms", persistent = true, exchanges = 40 }
horizon = "20s"
[host.server]
preset = "linux"
side = "left"
[host.client]
preset = "linux"
[[path]]
name = "core"
link = { rate = "10mbit", delay = "40ms", queue = "200p" }
"#;

/// Times of requests and complete answers, in milliseconds.
#[derive(Default)]
struct Answers {
    requested: Vec<f64>,
    answered: Vec<f64>,
}

impl Sink for Answers {
    fn event(&mut self, event: &Event) {
        let EventKind::Tcp(tcp) = &event.kind else { return };
        let at = (event.at - Time::ZERO).as_secs_f64() * 1e3;
        match tcp.kind {
            TcpKind::Asked => self.requested.push(at),
            TcpKind::Answered => self.answered.push(at),
            _ => {}
        }
    }
}

/// A round trip of 80 ms and five segments at 10 Mb/s: a Linux kernel (6.18) takes 85.5 ms with BBR.
#[test]
fn short_answers_with_pauses_take_a_round_trip_with_every_sender() {
    for sender in current_senders() {
        let scenario = scenario_with(TEXT, &[format!("host.server.tcp={sender}")]);
        let mut answers = Answers::default();
        run(&scenario, 1, &mut answers);
        assert_eq!((answers.requested.len(), answers.answered.len()), (40, 40), "{sender}");
        let times = answers.requested.iter().zip(&answers.answered).map(|(from, to)| to - from);
        let later: Vec<f64> = times.skip(5).collect();
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        assert!((80.0..100.0).contains(&mean), "{sender}: {mean} ms");
    }
}
