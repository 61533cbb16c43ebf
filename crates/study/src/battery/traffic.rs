//! Packet times of a report: for TCP from simulated runs, for UDP from the timers of CoAP and DTLS over the same path.

use lasthop_observe::Sink;
use lasthop_proto::energy::iot::Activity;
use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_proto::link::LineConfig;
use lasthop_proto::link::varied::{Impairments, Loss};
use lasthop_proto::machine::StageId;
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Rate, Span, Time};
use lasthop_scenario::{Argument, Scenario, StageKind, example};
use lasthop_sim::runs::layout;

use super::wire::{Over, Session, Step};
use crate::{Error, Source};

/// The scenario of all paths: a meter behind a narrow link.
const NAME: &str = "nb-iot";
/// The host with the battery, and the link that is its radio.
const METER: &str = "meter";
const AIR: &str = "air";
/// Bytes of the headers of IPv4 and UDP.
const UDP_IP: u64 = 28;
/// Time between two exchanges of a persistent connection. Pauses within an exchange are shorter than half of it.
const APART: Span = Span::secs(600);

/// The path of a report.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Settings of the scenario.
    pub sets: &'static [&'static str],
}

impl Path {
    fn scenario(self, more: &[String]) -> Result<Scenario, Error> {
        let text = example(NAME).map_or("", |example| example.text);
        let source = Source { origin: NAME, name: NAME, text };
        let sets = self.sets.iter().map(|set| (*set).to_owned()).chain(more.iter().cloned());
        let arguments: Vec<Argument> = sets.map(Argument::Set).collect();
        let (mut plan, _) = source.plan(&arguments)?;
        Ok(plan.cells.swap_remove(0).scenario)
    }

    /// A description of the path.
    ///
    /// # Errors
    ///
    /// The scenario refuses a setting.
    pub fn words(self) -> Result<String, Error> {
        let scenario = self.scenario(&["connection=each".to_owned()])?;
        let Some((line, impairments)) = air(&scenario) else { return Ok(String::new()) };
        let wire = scenario.path.iter().filter(|stage| stage.name != AIR);
        let wire: Span = wire
            .filter_map(|stage| Some(stage.kind.line()?.delay))
            .fold(Span::ZERO, |sum, delay| sum + delay);
        let rate = |rate: Option<Rate>| rate.map_or("any rate".to_owned(), |rate| rate.to_string());
        let [up, down] = rates(line).map(rate);
        let jitter = impairments.map_or(Span::ZERO, |all| all.jitter);
        let delay = line.delay;
        Ok(format!(
            "its path has {up} up and {down} down, {delay} each way with a jitter of {jitter}, and {wire} of wire behind it"
        ))
    }

    /// The packets of a report, for a run with each of `seeds`.
    ///
    /// # Errors
    ///
    /// The scenario refuses a setting.
    pub fn reports(
        self,
        over: Over,
        session: Session,
        steps: &[Step],
        seeds: impl Iterator<Item = u64>,
    ) -> Result<Vec<Vec<Activity>>, Error> {
        let scenarios: Result<Vec<Scenario>, Error> = match over {
            Over::Coap => self.scenario(&["connection=each".to_owned()]).map(|s| vec![s]),
            Over::Mqtt => steps
                .iter()
                .enumerate()
                .map(|(place, step)| {
                    self.scenario(&exchange(step, place > 0 || session == Session::Kept))
                })
                .collect(),
        };
        let scenarios = scenarios?;
        let report = |seed| match over {
            Over::Coap => datagrams(&scenarios[0], steps, seed),
            Over::Mqtt => {
                let mut all = Vec::new();
                for scenario in &scenarios {
                    let after = all.last().map_or(Time::ZERO, |a: &Activity| a.until);
                    all.extend(connection(scenario, seed, after));
                }
                all
            }
        };
        Ok(seeds.map(report).collect())
    }
}

/// The settings for the messages of `step`: once over a new connection, or twice over a persistent one, of which the
/// second exchange counts.
fn exchange(step: &Step, open: bool) -> Vec<String> {
    let (connection, exchanges) = if open { ("persistent", 2) } else { ("each", 1) };
    vec![
        format!("connection={connection}"),
        format!("transfer.request={}B", step.request),
        format!("transfer.response={}B", step.response),
        format!("transfer.exchanges={exchanges}"),
        format!("transfer.think={APART}"),
    ]
}

/// The rates on the air: from the device and to it.
fn rates(line: &LineConfig) -> [Option<Rate>; 2] {
    [line.rate_left, line.rate_right]
}

fn air(scenario: &Scenario) -> Option<(&LineConfig, Option<&Impairments>)> {
    let stage = scenario.path.iter().find(|stage| stage.name == AIR)?;
    let impairments = match &stage.kind {
        StageKind::Varied(varied) => varied.impairments.as_ref(),
        StageKind::Netem(netem) => Some(&netem.impairments),
        _ => None,
    };
    Some((stage.kind.line()?, impairments))
}

fn airtime(rate: Option<Rate>, bytes: u64) -> Span {
    rate.map_or(Span::ZERO, |rate| rate.transmit(bytes))
}

/// Packets sent and received by a host: time, bytes, and direction.
struct Watch {
    host: Option<StageId>,
    seen: Vec<(Time, u64, bool)>,
}

impl Sink for Watch {
    fn event(&mut self, event: &Event) {
        if Some(event.stage) != self.host {
            return;
        }
        match &event.kind {
            EventKind::Packet { op: Op::Originated(_), packet, .. } => {
                self.seen.push((event.at, packet.wire_len().into(), true));
            }
            EventKind::Packet { op: Op::Received, packet, .. } => {
                self.seen.push((event.at, packet.wire_len().into(), false));
            }
            _ => {}
        }
    }
}

/// The packets of one exchange over TCP whose first packet is sent at `after`. Packets from the device wait for the air
/// and count even if lost there; packets lost towards the device do not count.
fn connection(scenario: &Scenario, seed: u64, after: Time) -> Vec<Activity> {
    let layout = layout(scenario);
    let host = layout.stages.iter().position(|stage| stage.name == METER);
    let mut watch = Watch { host: host.map(|place| StageId(place as u16)), seen: Vec::new() };
    lasthop_sim::runs::simulate(scenario, seed, &mut watch);
    let pause = |pair: &[(Time, u64, bool)]| pair[1].0.since(pair[0].0).0 > APART.0 / 2;
    let first = watch.seen.windows(2).position(pause).map_or(0, |place| place + 1);
    let seen = &watch.seen[first..];
    let (Some((start, ..)), Some((line, _))) = (seen.first(), air(scenario)) else {
        return Vec::new();
    };
    let [up, down] = rates(line);
    let mut busy = after;
    let activity = |(at, bytes, sends): &(Time, u64, bool)| {
        let at = after + at.since(*start);
        if *sends {
            let from = at.max(busy);
            busy = from + airtime(up, *bytes);
            return Activity { from, until: busy, sends: true };
        }
        let span = airtime(down, *bytes);
        Activity { from: Time(at.0.saturating_sub(span.0)), until: at, sends: false }
    };
    seen.iter().map(activity).collect()
}

/// First timeout of a confirmable message, randomized by up to 50 % (RFC 7252, 4.8), and of a DTLS handshake (RFC 7925,
/// 11).
const ACK_TIMEOUT: Span = Span::secs(2);
const HANDSHAKE_TIMEOUT: Span = Span::secs(9);
/// Maximum number of retransmissions (MAX_RETRANSMIT).
const AGAIN: u32 = 4;

/// The datagrams of all `steps`. Each is retransmitted, by a timer that doubles, until its answer arrives. The other
/// end answers every copy.
fn datagrams(scenario: &Scenario, steps: &[Step], seed: u64) -> Vec<Activity> {
    let Some((line, impairments)) = air(scenario) else { return Vec::new() };
    let [up, down] = rates(line);
    let jitter = impairments.map_or(Span::ZERO, |i| i.jitter);
    let lost = match impairments.and_then(|i| i.loss.as_ref()) {
        Some(Loss::Random(probability)) => probability.get(),
        _ => 0.0,
    };
    let wired = scenario.path.iter().filter(|stage| stage.name != AIR);
    let wired = wired.filter_map(|stage| stage.kind.line()).map(|line| line.delay.0).sum::<u64>();
    let mut chance = Stream::new(seed, "battery.datagrams");
    let mut way = || {
        let delay = (line.delay.0 + wired) as f64 + (2.0 * chance.unit() - 1.0) * jitter.0 as f64;
        (!chance.chance(lost)).then_some(Span(delay.max(0.0) as u64))
    };
    let mut timers = Stream::new(seed, "battery.timers");
    let mut all = Vec::new();
    let (mut now, mut busy) = (Time::ZERO, Time::ZERO);
    for step in steps {
        let mut timeout = match step.handshake {
            true => HANDSHAKE_TIMEOUT,
            false => Span((ACK_TIMEOUT.0 as f64 * (1.0 + timers.unit() / 2.0)) as u64),
        };
        let mut answered: Option<Time> = None;
        let mut at = now;
        for _ in 0..=AGAIN {
            let from = at.max(busy);
            busy = from + airtime(up, step.request + UDP_IP * step.datagrams);
            all.push(Activity { from, until: busy, sends: true });
            if let (Some(there), Some(back)) = (way(), way()) {
                let from = busy + there + back;
                let until = from + airtime(down, step.response + UDP_IP);
                all.push(Activity { from, until, sends: false });
                answered = Some(answered.map_or(until, |earlier| earlier.min(until)));
            }
            at += timeout;
            timeout = Span(timeout.0 * 2);
            if answered.is_some_and(|answered| answered <= at) {
                break;
            }
        }
        now = answered.unwrap_or(at);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::wire::steps;
    use super::*;

    const NEAR: Path = Path { sets: &["coverage=normal", "air.link.jitter=0ms"] };
    const EDGE: Path = Path { sets: &["coverage=edge", "air.link.loss=0%", "air.link.jitter=0ms"] };

    fn coap(path: Path) -> Vec<Activity> {
        let (over, session) = (Over::Coap, Session::None);
        let reports = path.reports(over, session, &steps(over, session, 33), 1..2).unwrap();
        reports[0].clone()
    }

    fn sent(all: &[Activity]) -> usize {
        all.iter().filter(|a| a.sends).count()
    }

    #[test]
    fn a_confirmable_message_takes_its_round_trip() {
        // 50 bytes and 28: 78 x 8 bits at 25 kb/s, 24.96 ms; twice 520 ms; 36 bytes at 20 kb/s, 14.4 ms.
        let all = coap(NEAR);
        let at = |ns: u64| Time(ns * 1_000);
        let request = Activity { from: at(0), until: at(24_960), sends: true };
        let answer = Activity { from: at(1_064_960), until: at(1_079_360), sends: false };
        assert_eq!(all, [request, answer]);
    }

    #[test]
    fn at_the_edge_the_timer_of_coap_expires_before_the_answer_comes() {
        // Sending takes 624 ms, and each direction 3.02 s, so the answer arrives after 6.7 s. The timer expires after 2
        // to 3 s, and again after 6 to 9 s.
        let copies = sent(&coap(EDGE));
        assert!(copies == 2 || copies == 3, "{copies}");
    }

    #[test]
    fn over_tcp_an_open_connection_spares_the_handshake() {
        let count = |session| {
            let steps = steps(Over::Mqtt, session, 50);
            let reports = NEAR.reports(Over::Mqtt, session, &steps, 1..3).unwrap();
            reports.iter().map(|all| sent(all)).collect::<Vec<_>>()
        };
        let (open, none, full) = (count(Session::Kept), count(Session::None), count(Session::Full));
        for seed in 0..2 {
            assert!(open[seed] >= 1 && open[seed] < none[seed] && none[seed] < full[seed]);
        }
        // SYN, ACK, request, FIN and ACKs of the first exchange: at least four packets more than one that is there.
        assert!(none[0] >= open[0] + 4, "{none:?} {open:?}");
    }
}
