//! Kinds of current links with the mechanisms of their link layers: the values of `--link`.
//!
//! Each has figures with their sources. Options such as `--rate` override them.

use lasthop_proto::mac::ofdm::{Ofdm, Standard};
use lasthop_proto::units::{Probability, Rate, Span};
use serde::Serialize;

use super::link::Link;
use crate::{Error, traces};

/// A kind of link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Wi-Fi 6: aggregates, block acknowledgements, contention.
    Wifi6,
    /// LTE: blocks with HARQ, radio link control in acknowledged mode.
    Lte,
    /// 5G NR: shorter blocks, time division.
    Nr,
    /// Starlink: rates and delays like those of a record.
    Starlink,
    /// A geostationary satellite.
    Geo,
    /// LoRa.
    Lora,
    /// NB-IoT: blocks with HARQ at a low rate.
    NbIot,
}

/// Figures of a kind of link.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindFigures {
    pub rate: &'static str,
    pub rate_back: &'static str,
    pub delay: Span,
    pub wired_delay: Span,
    pub queue: &'static str,
    pub mtu: u32,
    pub loss: f64,
    /// The origin of the figures.
    pub source: &'static str,
}

impl LinkKind {
    /// The names.
    pub const WORDS: [(&str, LinkKind); 7] = [
        ("wifi6", LinkKind::Wifi6),
        ("lte", LinkKind::Lte),
        ("nr", LinkKind::Nr),
        ("starlink", LinkKind::Starlink),
        ("geo", LinkKind::Geo),
        ("lora", LinkKind::Lora),
        ("nb-iot", LinkKind::NbIot),
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        LinkKind::WORDS.iter().find(|(_, kind)| *kind == self).map_or("lte", |(word, _)| word)
    }

    /// Its figures.
    pub(super) fn figures(self) -> KindFigures {
        let base = KindFigures {
            rate: "",
            rate_back: "",
            delay: Span::millis(1),
            wired_delay: Span::millis(20),
            queue: "500p",
            mtu: super::MTU,
            loss: 0.0,
            source: "",
        };
        match self {
            LinkKind::Wifi6 => KindFigures {
                rate: "130mbit",
                rate_back: "130mbit",
                delay: Span::micros(1),
                queue: "1000p",
                source: "802.11ax, 20 MHz, one stream, MCS 11; queue of mac80211 without FQ-CoDel, assumed",
                ..base
            },
            LinkKind::Lte => KindFigures {
                rate: "35mbit",
                rate_back: "35mbit",
                delay: Span::micros(2200),
                source: "10 MHz, MCS 28 (3GPP TS 36.213); processing of 2.2 ms as in ns-3's LTE; queue assumed",
                ..base
            },
            LinkKind::Nr => KindFigures {
                rate: "100mbit",
                rate_back: "100mbit",
                delay: Span::millis(1),
                queue: "1000p",
                source: "slots of 0.5 ms in the pattern DDDSU (3GPP TS 38.213, 38.101); rate and queue assumed",
                ..base
            },
            LinkKind::Starlink => KindFigures {
                rate: "50mbit",
                rate_back: "50mbit",
                delay: Span::micros(10_500),
                wired_delay: Span::millis(5),
                loss: 0.0001,
                source: "a record of LeoCC (SIGCOMM 2025): mean 48.9 Mb/s and 10.7 ms, gaps of 59 to 135 ms every 15 s",
                ..base
            },
            LinkKind::Geo => KindFigures {
                rate: "20mbit",
                rate_back: "2mbit",
                delay: Span::millis(270),
                loss: 0.0001,
                source: "35,786 km up and down at the speed of light, and 30 ms of processing; rates assumed",
                ..base
            },
            LinkKind::Lora => KindFigures {
                rate: "5470bit",
                rate_back: "5470bit",
                delay: Span::micros(30),
                queue: "10p",
                mtu: 296,
                source: "spreading factor 7, 125 kHz, code 4/5 (Semtech AN1200.22); queue assumed",
                ..base
            },
            LinkKind::NbIot => KindFigures {
                rate: "26kbit",
                rate_back: "26kbit",
                delay: Span::millis(40),
                queue: "20p",
                mtu: 1280,
                source: "one HARQ process: 680 bits in about 26 ms (3GPP TR 45.820, TS 36.213); queue assumed",
                ..base
            },
        }
    }

    /// Its loss probability.
    pub(super) fn loss(self) -> Probability {
        Probability::nearest(self.figures().loss)
    }

    /// The MCS of Wi-Fi 6 whose saturation throughput is closest to `rate`.
    fn mcs(rate: Rate) -> u8 {
        let ofdm = Ofdm { standard: Standard::Ax, width: 20, streams: 1, mcs: 0 };
        // One station with full aggregates has 0.92 of the data rate.
        let far = |mcs: &u8| (ofdm.rate(*mcs) * 92 / 100).abs_diff(rate.bps());
        (0..=Standard::Ax.highest_mcs()).min_by_key(far).unwrap_or(0)
    }

    /// The period in which a device may request a grant, where it needs one: the usual one, or the longest of the
    /// standard. LTE: 80 ms (3GPP TS 36.213 table 10.1.5-1). NR with 30 kHz: 160 slots (TS 38.331,
    /// `SchedulingRequestResourceConfig`). NB-IoT requests by random access: 2560 ms (TS 36.331,
    /// `nprach-Periodicity`).
    pub(super) fn request(self, longest: bool) -> Span {
        match (self, longest) {
            (LinkKind::Lte, true) => Span::millis(80),
            (LinkKind::Nr, true) => Span::millis(80),
            (LinkKind::NbIot, true) => Span::millis(2560),
            (LinkKind::Nr, false) => Span::millis(5),
            (LinkKind::NbIot, false) => Span::millis(160),
            _ => Span::millis(10),
        }
    }

    /// Whether a device waits for grants, whose period is the operator's choice.
    pub(super) fn has_grants(self) -> bool {
        matches!(self, LinkKind::Lte | LinkKind::Nr | LinkKind::NbIot)
    }

    /// Whether the link layer repairs losses.
    pub(super) fn repairs(self) -> bool {
        self.has_grants() || self == LinkKind::Wifi6
    }

    /// Time that granted access adds to the round trip of a single packet: one and a half blocks in each direction, and
    /// the request of the ACK's grant.
    pub(super) fn own_round_trip(self) -> Span {
        let block = match self {
            LinkKind::Lte => Span::millis(1),
            LinkKind::Nr => Span::micros(500),
            LinkKind::NbIot => Span::millis(26),
            _ => return Span::ZERO,
        };
        block * 3 + self.request(false)
    }

    /// The lines of the radio of `link` without its errors, with a queue of `discipline`.
    pub(super) fn radio(self, link: &Link, rate: Rate, discipline: &str) -> String {
        let (delay, queue) = (link.delay, &link.queue);
        let rest = format!("delay = \"{delay}\", queue = \"{queue}\"{discipline}");
        let request = self.request(link.rare_requests);
        match self {
            LinkKind::Wifi6 => format!(
                "radio = {{ rate = \"{rate}\", {rest} }}\nmac = \"dcf\"\n\
                 dcf = {{ phy = \"ax\", width = 20, streams = 1, mcs = {}, aggregate = \"1MiB\" }}\n",
                LinkKind::mcs(rate)
            ),
            LinkKind::Lte => format!(
                "radio = {{ rate = \"{rate}\", {rest}, duplex = \"full\" }}\nmac = \"granted\"\n\
                 granted = {{ block = \"1ms\", errors = \"10%\", repeat = \"8ms\", attempts = 4, again = \"5%\", request = \
                 \"{request}\" }}\nlink-layer = \"rlc\"\n\
                 rlc = {{ mode = \"am\", reorder = \"40ms\", status = \"20ms\" }}\n"
            ),
            LinkKind::Nr => format!(
                "radio = {{ rate = \"{rate}\", {rest}, duplex = \"full\" }}\nmac = \"granted\"\n\
                 granted = {{ block = \"0.5ms\", errors = \"10%\", repeat = \"5ms\", attempts = 4, again = \"5%\", request = \
                 \"{request}\", pattern = \"DDDSU\" }}\nlink-layer = \"rlc\"\n\
                 rlc = {{ mode = \"am\", reorder = \"40ms\", status = \"10ms\" }}\n"
            ),
            LinkKind::NbIot => format!(
                "radio = {{ rate = \"{rate}\", {rest}, duplex = \"full\" }}\nmac = \"granted\"\n\
                 granted = {{ block = \"26ms\", errors = \"10%\", repeat = \"104ms\", attempts = 4, again = \"5%\", request = \
                 \"{request}\" }}\nlink-layer = \"rlc\"\n\
                 rlc = {{ mode = \"am\", reorder = \"500ms\", status = \"500ms\", poll = \"2s\" }}\n"
            ),
            LinkKind::Starlink => format!(
                "radio = {{ rate = \"{rate}\", {rest}, duplex = \"full\", measured = \"starlink.csv\" }}\n"
            ),
            LinkKind::Geo => {
                format!("radio = {{ rate = \"{rate}\", {rest}, duplex = \"full\" }}\n")
            }
            LinkKind::Lora => {
                format!("radio = {{ rate = \"{rate}\", {rest}, duplex = \"half\" }}\n")
            }
        }
    }

    /// The files that the radio names, as `[files]` of a scenario.
    ///
    /// # Errors
    /// If the rate is too high for a trace.
    pub(super) fn files(self, link: &Link, rate: Rate) -> Result<String, Error> {
        if self != LinkKind::Starlink {
            return Ok(String::new());
        }
        let (delay, minute) = (link.delay.as_secs_f64() * 1e3, Span::secs(60));
        let rows = traces::starlink_table(rate, delay, minute, 1).map_err(|_| {
            Error::input(format!("a trace of Starlink cannot have {rate}"), "give a lower `--rate`")
        })?;
        Ok(format!("\n[files]\n\"starlink.csv\" = '''\n{rows}'''\n"))
    }

    /// `link` as one of this kind with the same rates and the same delay of the whole path, no other losses, and the
    /// longest period of requests.
    pub(super) fn like(self, link: &Link) -> Link {
        let base = link.clone();
        let (loss, kind, arq) = (Probability::ZERO, Some(self), super::NO_ARQ.to_owned());
        // Wi-Fi waits for answers within a room: a long delay belongs to the rest of the path.
        let whole = link.delay + link.wired_delay;
        let delay = match self {
            LinkKind::Wifi6 => self.figures().delay.min(whole),
            _ => link.delay,
        };
        Link {
            delay,
            wired_delay: whole.saturating_sub(delay),
            loss,
            kind,
            arq,
            damage: false,
            overhead: Span::ZERO,
            handoff: None,
            rare_requests: true,
            ..base
        }
    }
}

/// Rate from which Wi-Fi is a possible link.
const WIFI: u64 = 6_000_000;
/// Rate up to which NB-IoT is a possible link: the uplink peak of category NB2 (3GPP TS 36.306: 2536 bits in 16 ms).
const NB_IOT: u64 = 159_000;

/// The kinds on which a scheme for a short queue must hold at the rate of `link`: repair in order with any period of
/// requests, and aggregates. The link's own kind is one of them if it has such a period.
pub(super) fn checked(link: &Link) -> impl Iterator<Item = LinkKind> {
    let wifi = (link.rate.bps() >= WIFI).then_some(LinkKind::Wifi6);
    let nb_iot = (link.rate.bps() <= NB_IOT).then_some(LinkKind::NbIot);
    let other = [LinkKind::Lte].into_iter().chain(nb_iot).chain(wifi);
    let other = other.filter(|_| link.kind != Some(LinkKind::Geo));
    let own = link.kind.filter(|kind| kind.has_grants());
    let own_kind = link.kind;
    other.filter(move |kind| Some(*kind) != own_kind).chain(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::parse;

    /// Otherwise the scenario would have an empty file of rates.
    #[test]
    fn a_rate_that_no_trace_can_have_is_an_error() {
        let (kind, rate) = (Some(LinkKind::Starlink), Rate::from_bps(20_000_000_000));
        let options = super::super::LinkOptions { kind, rate, ..Default::default() };
        let (link, _) = options.link(&super::super::Estimate::default()).unwrap();
        let error = link.scenario(2).unwrap_err().to_string();
        assert!(error.contains("20gbit"), "{error}");
    }

    #[test]
    fn every_kind_makes_a_scenario_without_warnings() {
        for (word, kind) in LinkKind::WORDS {
            let options = super::super::LinkOptions { kind: Some(kind), ..Default::default() };
            let (link, facts) = options.link(&super::super::Estimate::default()).unwrap();
            assert!(
                facts.iter().any(|fact| fact.what == "rate" && fact.how == kind.figures().source)
            );
            let text = link.scenario(2).unwrap();
            let (_, warnings) =
                parse(&text, "advise", &[]).unwrap_or_else(|e| panic!("{word}: {e}\n{text}"));
            assert!(warnings.is_empty(), "{word}: {warnings:?}");
        }
        let options =
            super::super::LinkOptions { kind: Some(LinkKind::NbIot), ..Default::default() };
        let (link, _) = options.link(&super::super::Estimate::default()).unwrap();
        assert!(checked(&link).eq([LinkKind::Lte, LinkKind::NbIot]));
        // Delay-based senders depend on this period, which the operator chooses.
        for (kind, period) in [(LinkKind::Lte, "80ms"), (LinkKind::NbIot, "2.56s")] {
            let text = kind.like(&link).scenario(1).unwrap();
            assert!(text.contains(&format!("request = \"{period}\"")), "{text}");
        }
        let wifi = LinkKind::Wifi6.like(&Link { delay: Span::millis(7), ..link.clone() });
        assert_eq!((wifi.delay, wifi.wired_delay), (Span::micros(1), Span::micros(26_999)));
        assert!(link.scenario(1).unwrap().contains("request = \"160ms\""));
        assert_eq!(
            ["130mbit", "8mbit", "1gbit"].map(|rate| LinkKind::mcs(rate.parse().unwrap())),
            [11, 0, 11]
        );
    }
}
