//! The link that advice is about, and its scenario.

use lasthop_proto::tcp::config::PRESETS;
use lasthop_proto::tcp::words::{self, Deployment, TCPS};
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_scenario::Handoffs;
use lasthop_scenario::synonyms::{Synonyms, meaning};
use serde::Serialize;

use super::kinds::LinkKind;
use crate::Error;

/// Other names of senders.
const SENDERS: &Synonyms =
    &[("linux", "kernel default"), ("bbr", "bbrv1 bbrv2"), ("westwood", "westwood+")];
/// Bytes of IP and TCP headers without options.
const HEADERS: u32 = 40;
/// The usual largest packet, in bytes.
pub const MTU: u32 = 1500;
/// The usual queue discipline.
pub const FIFO: &str = "fifo";
/// A link layer without retransmissions.
pub const NO_ARQ: &str = "none";
/// Target duration of a transfer on a link without losses, in seconds.
const SECONDS: f64 = 20.0;
/// Minimum transfer, in bytes.
const LEAST: f64 = 250e3;
/// Maximum transfer in bytes, unless [`WINDOWS`] are more.
const MOST: f64 = 8e6;
/// Minimum transfer on a long and fast link, in bandwidth-delay products.
const WINDOWS: f64 = 20.0;
/// Minimum transfer in stays of a cell, on a link without losses, where the host moves.
const HAND_OFFS: f64 = 3.5;
/// Maximum transfer on any link that is not given, in bytes.
const MOST_AT_ALL: f64 = 64e6;
/// Minimum number of runs.
const LEAST_RUNS: f64 = 10.0;
/// Loss bursts that all runs together should have; short transfers need more runs.
const BURSTS: f64 = 200.0;
/// Maximum number of runs.
const MOST_RUNS: f64 = 40.0;
/// Maximum number of packets of all runs together.
const PACKETS: f64 = 60e3;

/// The direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards the host behind the lossy link.
    #[default]
    Download,
    /// From that host.
    Upload,
}

/// How the two directions share the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// Each direction has the full rate.
    #[default]
    Full,
    /// The directions alternate frame by frame at one rate.
    Half,
}

impl Duplex {
    /// The names, the usual one first.
    pub const WORDS: [(&str, Duplex); 2] = [("full", Duplex::Full), ("half", Duplex::Half)];

    pub fn word(self) -> &'static str {
        Duplex::WORDS.iter().find(|(_, duplex)| *duplex == self).map_or("full", |(word, _)| word)
    }
}

/// A lossy link, its ends, and its use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Link {
    /// Rate for data.
    pub rate: Rate,
    /// Rate for ACKs.
    pub rate_back: Rate,
    /// One-way delay of the lossy link.
    pub delay: Span,
    /// One-way delay of the rest of the path.
    pub wired_delay: Span,
    /// Loss rate of data packets.
    pub loss: Probability,
    /// Mean number of consecutive losses.
    pub burst: f64,
    /// Queue in front of the link, in the format of scenario files.
    pub queue: String,
    /// The sender: a preset or a TCP.
    pub sender: String,
    pub direction: Direction,
    pub duplex: Duplex,
    /// The queue discipline, as in scenario files.
    pub discipline: String,
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// Time overhead of each frame.
    pub overhead: Span,
    /// Retransmissions by the link itself: `link-layer` of scenario files.
    pub arq: String,
    /// Lost packets arrive damaged; otherwise they vanish.
    pub damage: bool,
    /// Simultaneous customers, each with a transfer through the same queue.
    pub customers: u32,
    /// The receiver's window in bytes, if it is a known limit.
    pub window: Option<u64>,
    /// Bytes to transfer, where given or estimated.
    pub transfer: Option<u64>,
    /// How the host behind the link moves between base stations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoffs>,
    /// Its kind, if its link layer is one of those of `--link`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<LinkKind>,
    /// Whether a device of this kind requests grants as rarely as its standard allows.
    #[serde(skip)]
    pub rare_requests: bool,
}

/// Whether `sender` is the preset `linux`, or a TCP that current systems can have.
pub(super) fn is_current(sender: &str) -> bool {
    let deployment = words::find(sender).map(|word| word.deployment);
    sender == "linux" || deployment == Some(Deployment::Current)
}

impl Link {
    /// The lines of `[host.NAME]` of the sender.
    fn sender_lines(&self) -> Result<String, Error> {
        let word = self.sender.as_str();
        if word == "linux" {
            return Ok("preset = \"linux\"\ntcp = \"cubic\"\n".to_owned());
        }
        if is_current(word) {
            return Ok(format!("preset = \"linux\"\ntcp = \"{word}\"\n"));
        }
        if PRESETS.iter().any(|(name, _)| *name == word) {
            return Ok(format!("preset = \"{word}\"\n"));
        }
        if words::find(word).is_some() {
            // Buffers that are no limit, without modern options.
            return Ok(format!(
                "preset = \"rfc\"\ntcp = \"{word}\"\nsend-buffer = \"4MiB\"\nwindow-scale = true\ntimestamps = true\n"
            ));
        }
        let presets = PRESETS.iter().map(|(name, _)| *name);
        let known: Vec<&str> = presets.chain(TCPS.iter().map(|word| word.key)).collect();
        let help = match meaning(word, SENDERS, &known) {
            Some(near) => format!("did you mean `{near}`? Others are {}", known.join(", ")),
            None => format!("one of {}; for example `--sender linux`", known.join(", ")),
        };
        Err(Error::input(format!("there is no sender `{word}`"), help))
    }

    /// Bytes to transfer.
    pub(super) fn bytes(&self) -> u64 {
        if let Some(bytes) = self.transfer {
            return bytes;
        }
        let rate = self.rate.bps() as f64 / 8.0;
        let rtt = 2.0 * (self.delay.as_secs_f64() + self.wired_delay.as_secs_f64());
        let stay = self.handoff.as_ref().map_or(0.0, |handoff| handoff.stay().as_secs_f64());
        let seconds = SECONDS.max(HAND_OFFS * stay);
        let most = MOST.max(WINDOWS * rate * rtt).max(rate * HAND_OFFS * stay).min(MOST_AT_ALL);
        ((rate * seconds).clamp(LEAST, most) / 1000.0) as u64 * 1000
    }

    /// The number of runs: enough losses in total, if transfers are short.
    pub fn runs(&self) -> u32 {
        let packets = self.bytes() as f64 / f64::from(self.mtu);
        let each = self.loss.get() * packets / self.burst;
        let wanted = if each > 0.0 { BURSTS / each } else { 0.0 };
        let most = (PACKETS / packets).min(MOST_RUNS);
        wanted.min(most).max(LEAST_RUNS).ceil() as u32
    }

    fn errors(&self) -> String {
        let p = self.loss.get();
        if p <= 0.0 {
            return "errors = \"none\"\n".to_owned();
        }
        let burst = self.burst.round().max(1.0);
        let packet = f64::from(self.mtu);
        if burst < 1.5 && self.damage {
            // Mean distance of errors at which a full packet is hit with this probability.
            let mean = (-packet / libm::log(1.0 - p)).round();
            return format!(
                "errors = {{ model = \"exponential\", mean = {mean}, on = [\"data\"] }}\n"
            );
        }
        if burst < 1.5 {
            return format!("errors = {{ model = \"packet-loss\", p = {p}, on = [\"data\"] }}\n");
        }
        // Mean number of bytes from the start of one burst to the start of the next.
        let mean = (burst * packet / p).round();
        format!(
            "errors = {{ model = \"packet-bursts\", packets = {burst}, mean = {mean}, on = [\"data\"] }}\n"
        )
    }

    /// The scenario file.
    ///
    /// # Errors
    ///
    /// The sender is unknown, or a trace of the link cannot have its rate.
    pub fn scenario(&self, runs: u32) -> Result<String, Error> {
        let (from, to, data, acks) = match self.direction {
            Direction::Download => ("server", "client", "right", "left"),
            Direction::Upload => ("client", "server", "left", "right"),
        };
        let sender = self.sender_lines()?;
        let (radio, wired) = self.rates();
        let moves = self.handoff.as_ref().map_or(String::new(), |all| format!(" --handoff {all}"));
        let count = match self.customers {
            0 | 1 => String::new(),
            n => format!(", count = {n}"),
        };
        // By default the hosts use the MSS of their presets.
        let mss = match self.mtu {
            MTU => String::new(),
            mtu => format!("mss = {}\n", mtu - HEADERS),
        };
        let window = self.window.map_or(String::new(), |w| format!("recv-buffer = \"{w}B\"\n"));
        let mut text = format!(
            "# Made by `lasthop advise`: its model of the link. Change it, and compare again:\n\
             #\n\
             #     lasthop compare THIS-FILE --schemes all{moves}\n\n\
             name = \"advise\"\nruns = {runs}\n\
             transfer = {{ from = \"{from}\", to = \"{to}\", bytes = {}{count} }}\n\n\
             [host.{from}]\nside = \"{acks}\"\n{sender}{mss}\
             [host.{to}]\nside = \"{data}\"\npreset = \"linux\"\n{mss}{window}\n\
             [[path]]\n# the rest of the path, assumed to be fast\n\
             link = {{ rate = \"{wired}\", delay = \"{}\", queue = \"1000p\" }}\n",
            self.bytes() / u64::from(self.customers.max(1)),
            self.wired_delay,
        );
        let discipline = match self.discipline.as_str() {
            FIFO => String::new(),
            word => format!(", discipline = \"{word}\""),
        };
        if self.rate != self.rate_back {
            let (name, towards, rate) = if self.rate < self.rate_back {
                ("forward", data, self.rate)
            } else {
                ("return", acks, self.rate_back)
            };
            text += &format!(
                "[[path]]\nname = \"{name}\"\n# the slower direction of the link\n\
                 link = {{ rate-{towards} = \"{rate}\", queue = \"{}\"{discipline} }}\n",
                self.queue
            );
        }
        text += &format!(
            "[[path]]\nagent = \"none\"\n[[path]]\n{}{}",
            self.radio(radio, &discipline),
            self.errors()
        );
        let radio = if self.rate == self.rate_back { 3 } else { 4 };
        let data =
            if self.rate < self.rate_back { "path.2.link" } else { &format!("path.{radio}.radio") };
        text += &self.schemes(radio, data);
        let (rate, _) = self.rates();
        if let Some(kind) = self.kind {
            text += &kind.files(self, rate)?;
        }
        Ok(text)
    }

    /// The rates of the radio and of the rest of the path.
    fn rates(&self) -> (Rate, Rate) {
        let radio = self.rate.max(self.rate_back);
        let wired = Rate::from_bps(radio.bps().saturating_mul(10).max(100_000_000));
        (radio, wired.unwrap_or(radio))
    }

    /// The lines of the radio without its errors.
    fn radio(&self, rate: Rate, discipline: &str) -> String {
        if let Some(kind) = self.kind {
            return kind.radio(self, rate, discipline);
        }
        let (duplex, delay) = (self.duplex.word(), self.delay);
        let overhead = match self.overhead {
            Span::ZERO => String::new(),
            overhead => format!(", overhead = \"{overhead}\""),
        };
        let arq = match (self.arq.as_str(), self.duplex) {
            (NO_ARQ, _) => String::new(),
            ("tulip", Duplex::Full) => {
                "link-layer = \"tulip\"\ntulip = { pacing = \"full-duplex\" }\n".to_owned()
            }
            (word, _) => format!("link-layer = \"{word}\"\n"),
        };
        format!(
            "radio = {{ rate = \"{rate}\", delay = \"{delay}\", duplex = \"{duplex}\", queue = \"{}\"\
             {discipline}{overhead} }}\n{arq}",
            self.queue
        )
    }

    /// A transfer that is known from a capture, within the limits of a simulation.
    pub(super) fn simulated(bytes: u64) -> u64 {
        bytes.clamp(LEAST as u64, MOST_AT_ALL as u64) / 1000 * 1000
    }

    /// The same link with a transfer of `share` of the bytes, within the limits of a simulation; `None` if that is the
    /// same transfer.
    pub(super) fn with_share(&self, share: f64) -> Option<Link> {
        let bytes = (self.bytes() as f64 * share).clamp(LEAST / 10.0, MOST_AT_ALL) as u64;
        let other = Link { transfer: Some(bytes / 1000 * 1000), ..self.clone() };
        let is_wider =
            if share < 1.0 { other.bytes() < self.bytes() } else { other.bytes() > self.bytes() };
        is_wider.then_some(other)
    }

    /// The same link with scaled loss and delay.
    pub fn scaled(&self, loss: f64, delay: f64) -> Link {
        let p = Probability::nearest((self.loss.get() * loss).min(0.9));
        let scale = |span: Span| Span::from_secs_f64(span.as_secs_f64() * delay);
        Link {
            loss: p,
            delay: scale(self.delay),
            wired_delay: scale(self.wired_delay),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{StageKind, parse};

    fn link() -> Link {
        Link {
            rate: "2mbit".parse().unwrap(),
            rate_back: "2mbit".parse().unwrap(),
            delay: Span::millis(5),
            wired_delay: Span::millis(20),
            loss: Probability::new(0.02).unwrap(),
            burst: 1.0,
            queue: "50p".to_owned(),
            sender: "linux".to_owned(),
            direction: Direction::Download,
            duplex: Duplex::Full,
            discipline: FIFO.to_owned(),
            mtu: MTU,
            overhead: Span::ZERO,
            arq: NO_ARQ.to_owned(),
            damage: false,
            customers: 1,
            window: None,
            transfer: None,
            handoff: None,
            kind: None,
            rare_requests: false,
        }
    }

    #[test]
    fn every_link_makes_a_scenario_without_warnings() {
        let back: Rate = "28.8kbit".parse().unwrap();
        for direction in [Direction::Download, Direction::Upload] {
            for rate_back in [link().rate, back, "100mbit".parse().unwrap()] {
                for (burst, loss) in [(1.0, 0.0), (1.0, 0.02), (6.0, 0.02), (2.4, 1e-6)] {
                    let loss = Probability::new(loss).unwrap();
                    let link = Link { direction, rate_back, burst, loss, ..link() };
                    let text = link.scenario(5).unwrap();
                    let (plan, warnings) =
                        parse(&text, "advise", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
                    assert!(warnings.is_empty(), "{warnings:?}");
                    assert_eq!(plan.cells[0].scenario.runs, 5);
                }
            }
        }
    }

    #[test]
    fn every_assumption_is_set_in_the_scenario() {
        for (_, duplex) in Duplex::WORDS {
            for arq in ["none", "ll", "ll-sack", "local-recovery", "tulip", "airmail"] {
                for discipline in ["fifo", "codel", "fq-codel", "pie"] {
                    let more = Link {
                        duplex,
                        arq: arq.to_owned(),
                        discipline: discipline.to_owned(),
                        damage: true,
                        mtu: 576,
                        overhead: Span::millis(1),
                        customers: 4,
                        window: Some(65_536),
                        ..link()
                    };
                    let text = more.scenario(1).unwrap();
                    let (plan, _) =
                        parse(&text, "advise", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
                    let scenario = &plan.cells[0].scenario;
                    assert_eq!(scenario.transfers[0].count, 4);
                    assert_eq!(scenario.hosts[0].tcp.mss, 536);
                    assert!(text.contains("exponential"), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_slower_direction_has_a_stage_of_its_own() {
        let slow = Link { rate_back: "28.8kbit".parse().unwrap(), ..link() };
        let (plan, _) = parse(&slow.scenario(1).unwrap(), "x", &[]).unwrap();
        let StageKind::Link(line) = &plan.cells[0].scenario.path[1].kind else { panic!() };
        assert_eq!((line.rate_left, line.rate_right), (Some(slow.rate_back), None));
    }

    #[test]
    fn short_runs_with_few_losses_use_more_seeds() {
        assert_eq!(link().runs(), 10);
        let slow = Link { rate: "100kbit".parse().unwrap(), burst: 4.0, ..link() };
        assert_eq!(slow.runs(), 40);
        let clean = Link { loss: Probability::ZERO, ..slow };
        assert_eq!(clean.runs(), 10);
    }

    #[test]
    fn a_sender_is_a_preset_or_a_tcp() {
        for sender in ["linux", "reno", "sack", "bbr", "freebsd-2.1"] {
            let link = Link { sender: sender.to_owned(), ..link() };
            assert!(parse(&link.scenario(1).unwrap(), "x", &[]).is_ok(), "{sender}");
        }
        assert!(Link { sender: "windows".to_owned(), ..link() }.scenario(1).is_err());
    }
}
