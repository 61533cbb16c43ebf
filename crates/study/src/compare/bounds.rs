//! Theoretical bounds on the path of a scenario: see [`crate::theory`].

use lasthop_observe::layout::Role;
use lasthop_proto::link::LineConfig;
use lasthop_proto::link::tc::By;
use lasthop_proto::link::varied::Course;
use lasthop_proto::machine::Side;
use lasthop_proto::tcp::config::{Clock, Congestion, DelayedAck, TcpConfig};
use lasthop_proto::units::{Rate, Span};
use lasthop_scenario::{HostSide, Scenario, StageKind};
use lasthop_sim::runs::RunResult;
use serde::Serialize;

use crate::theory::{TcpPath, capacity, cubic, mathis, pftk};

/// Bytes of IP and TCP headers without options.
const HEADERS: f64 = 40.0;

/// Theoretical bounds in bytes of payload per second; `None` where a formula does not apply.
#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    /// Share of the data packets that the path lost or damaged under the baseline.
    pub loss: f64,
    /// Round-trip time of a full segment without queues, in seconds.
    pub rtt_s: f64,
    /// The slowest stage less the losses: the limit of every scheme.
    pub capacity: Option<f64>,
    /// End-to-end Reno by Mathis et al., at most the capacity; for a sender with Reno's window.
    pub mathis: Option<f64>,
    /// End-to-end Reno by Padhye et al. (PFTK), at most the capacity; for the same senders.
    pub pftk: Option<f64>,
    /// End-to-end CUBIC by the response function of RFC 9438, at most the capacity; for a CUBIC sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cubic: Option<f64>,
}

/// A data packet and an ACK on their way over the stages of a lossy path.
struct Journey {
    rightward: bool,
    /// Bytes of a full packet.
    packet: f64,
    /// Seconds of both without queues.
    rtt: f64,
    /// Seconds per packet of the slowest stage.
    slowest: Option<f64>,
    /// Probability that a packet arrives.
    survive: f64,
}

impl Journey {
    /// Adds a stage with these rates and the overhead `extra` of each packet, in bytes and seconds.
    fn pass(&mut self, [right, left]: [Option<Rate>; 2], extra: (f64, f64), delay: Span) {
        let (there, back) = if self.rightward { (right, left) } else { (left, right) };
        let seconds =
            |bytes: f64, rate: Rate| extra.1 + (bytes + extra.0) * 8.0 / rate.bps() as f64;
        if let Some(seconds) = there.map(|rate| seconds(self.packet, rate)) {
            self.rtt += seconds;
            self.slowest = Some(self.slowest.unwrap_or(0.0).max(seconds));
        }
        self.rtt += back.map_or(0.0, |rate| seconds(HEADERS, rate));
        self.rtt += 2.0 * delay.as_secs_f64();
    }

    fn stage(&mut self, kind: &StageKind) {
        let line = |line: &LineConfig| {
            ([line.rate_right, line.rate_left], (f64::from(line.framing), 0.0), line.delay)
        };
        let (rates, extra, delay) = match kind {
            StageKind::Link(link) => line(link),
            StageKind::Serial(serial) => {
                self.survive *= 1.0 - serial.frame_loss.get();
                line(&serial.line)
            }
            StageKind::Varied(varied) => {
                let side = if self.rightward { Side::Right } else { Side::Left };
                self.survive *= 1.0 - varied.losses.as_ref().map_or(0.0, Course::mean);
                let impaired = varied.impairments.as_ref();
                self.survive *= 1.0 - impaired.map_or(0.0, |i| i.share_lost(side));
                let rates = [Side::Right, Side::Left].map(|side| varied.mean_rate(side));
                let mean = |delays: &Course<Span>| Span(delays.mean() as u64);
                let (_, extra, delay) = line(&varied.line);
                (rates, extra, varied.delays.as_ref().map_or(delay, mean))
            }
            StageKind::Radio(radio) => {
                let overhead = radio.radio.overhead.as_secs_f64();
                self.survive *= 1.0 - radio.varying.as_ref().map_or(0.0, |v| v.mean_loss());
                ([Some(radio.radio.rate); 2], (0.0, overhead), radio.radio.delay)
            }
            StageKind::Cross(cross) => {
                self.survive *= 1.0 - cross.loss.get();
                return;
            }
            StageKind::Netem(netem) => {
                let side = if self.rightward { Side::Right } else { Side::Left };
                self.survive *= 1.0 - netem.share_lost(side);
                line(&netem.line)
            }
            // The bucket's rate limits long transfers only: a burst passes at once.
            StageKind::Tbf(tbf) => {
                let rate = |side| Some(tbf.rate).filter(|_| tbf.towards.is_none_or(|t| t == side));
                let bytes = f64::from(tbf.measure.framing);
                ([Side::Right, Side::Left].map(rate), (bytes, 0.0), Span::ZERO)
            }
            StageKind::Police(police) => {
                let rate = match police.by {
                    By::Bytes { rate, .. } => Some(rate),
                    By::Packets { .. } => None,
                };
                let rate = |side| rate.filter(|_| police.towards.is_none_or(|t| t == side));
                let bytes = f64::from(police.measure.framing);
                ([Side::Right, Side::Left].map(rate), (bytes, 0.0), Span::ZERO)
            }
            StageKind::Agent(_) => return,
        };
        self.pass(rates, extra, delay);
    }
}

impl Bounds {
    /// The bounds of `scenario`, with the losses in its `runs`.
    pub fn of(scenario: &Scenario, runs: &[RunResult]) -> Bounds {
        let Some(transfer) = scenario.transfers.first() else {
            let (capacity, mathis, pftk, cubic) = (None, None, None, None);
            return Bounds { loss: 0.0, rtt_s: 0.0, capacity, mathis, pftk, cubic };
        };
        let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
        let mss = f64::from(from.tcp.mss.min(to.tcp.mss));
        let packet = mss + HEADERS;
        let rightward = from.side == HostSide::Left;
        let mut journey = Journey { rightward, packet, rtt: 0.0, slowest: None, survive: 1.0 };
        scenario.line(0).for_each(|stage| journey.stage(&stage.kind));
        let Journey { rtt, slowest, survive, .. } = journey;
        let loss = 1.0 - survive * radio_survival(runs);
        let rate = slowest.filter(|s| *s > 0.0).map(|seconds| packet * 8.0 / seconds);
        let capacity = rate.map(|rate| capacity(rate, mss, packet, loss));
        let path = tcp_path(&from.tcp, &to.tcp, mss, rtt);
        let flows: u32 = scenario.transfers.iter().map(|transfer| transfer.count).sum();
        let limited = |rate: f64| {
            let all = rate.min(path.w_max * mss / rtt) * f64::from(flows);
            (rtt > 0.0).then(|| capacity.map_or(all, |most| all.min(most)))
        };
        // Each formula describes one response to losses; there is none for BBR and others.
        let control = from.tcp.congestion;
        let of = |wanted: Congestion, rate: fn(&TcpPath, f64) -> f64| {
            limited(rate(&path, loss)).filter(|_| control == wanted)
        };
        Bounds {
            loss,
            rtt_s: rtt,
            capacity,
            mathis: of(Congestion::Reno, mathis),
            pftk: of(Congestion::Reno, pftk),
            cubic: of(Congestion::Cubic, cubic),
        }
    }
}

/// Share of the data packets that the radio hops of `runs` did not damage.
fn radio_survival(runs: &[RunResult]) -> f64 {
    let (sent, damaged) = runs
        .iter()
        .flat_map(|run| &run.metrics.stages)
        .filter(|stage| stage.role == Role::Radio)
        .fold((0, 0), |(sent, damaged), stage| {
            (sent + stage.data_packets, damaged + stage.damaged_data)
        });
    if sent > 0 { 1.0 - damaged as f64 / sent as f64 } else { 1.0 }
}

/// The parameters of the formulas for a sender `from` and a receiver `to`.
fn tcp_path(from: &TcpConfig, to: &TcpConfig, mss: f64, rtt: f64) -> TcpPath {
    let window = f64::from(from.send_buffer.min(to.recv_buffer));
    let window = if from.window_scale && to.window_scale { window } else { window.min(65_535.0) };
    let tick = match from.clock {
        Clock::Ticks { slow, .. } => slow.as_secs_f64(),
        Clock::Fine { granularity } => granularity.as_secs_f64(),
    };
    TcpPath {
        mss,
        rtt,
        t0: from.rto_min.as_secs_f64().max(rtt + tick),
        b: match to.delayed_ack.every {
            // With ACKs by time only, the formula assumes an ACK for half of the window.
            DelayedAck::BY_TIME => (window / mss / 2.0).floor().max(1.0),
            every => f64::from(every.max(1)),
        },
        w_max: (window / mss).floor().max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use lasthop_scenario::parse;

    use super::*;

    /// Loss rate of a path with this stage.
    fn loss(stage: &str) -> f64 {
        let text = format!(
            "horizon = \"10s\"\ntransfer = {{ from = \"a\", to = \"b\", bytes = \"1MB\" }}\n\
             [host.a]\npreset = \"rfc\"\n[host.b]\npreset = \"rfc\"\n[[path]]\n{stage}\n[[path]]\nlink = {{ rate = \"1gbit\" }}\n"
        );
        let (plan, _) = parse(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        Bounds::of(&plan.cells[0].scenario, &[]).loss
    }

    #[test]
    fn losses_of_all_loss_settings_are_counted() {
        let link =
            |more: &str| loss(&format!("link = {{ rate = \"10mbit\", delay = \"1ms\", {more} }}"));
        let radio =
            "radio = { rate = \"10mbit\", delay = \"1ms\", losses = \"0s 4%, 1s 0%, 2s again\" }";
        let cases = [
            (link("loss = \"2%\""), 0.02),
            (link("loss = \"2%\", impaired = \"right\""), 0.02),
            (link("loss = \"2%\", impaired = \"left\""), 0.0),
            // The bad state lasts for a tenth of the time and loses nine tenths of the packets.
            (link("netem = \"loss gemodel 1% 9% 90% 0%\""), 0.09),
            (link("losses = \"0s 4%, 1s 0%, 2s again\""), 0.02),
            (loss("cross = { loss = \"2%\" }"), 0.02),
            (loss(radio), 0.02),
        ];
        for (i, (found, wanted)) in cases.into_iter().enumerate() {
            assert!((found - wanted).abs() < 1e-9, "{i}: {found} {wanted}");
        }
    }
}
