//! The parameters of a link and their sources: given, estimated or assumed.

use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_report::number::short;
use lasthop_scenario::Handoffs;
use serde::Serialize;

use super::estimate::{Estimate, Estimation};
use super::faults::Fault;
use super::kinds::LinkKind;
use super::link::{Direction, Duplex, FIFO, Link, MTU, NO_ARQ};
use crate::Error;

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Given by the user.
    Given,
    /// Estimated from a capture or a station.
    Estimated,
    /// A usual value.
    Assumed,
}

/// A parameter of the link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fact {
    /// The name of its option.
    pub what: &'static str,
    /// Its value, in the option's format.
    pub value: String,
    pub from: Basis,
    /// How it was estimated, and the limits of the estimate.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
}

/// Parameters of the link given by the user; see [`Link`].
#[derive(Clone, Debug, Default)]
pub struct LinkOptions {
    pub rate: Option<Rate>,
    pub rate_back: Option<Rate>,
    pub delay: Option<Span>,
    pub wired_delay: Option<Span>,
    pub loss: Option<Probability>,
    pub burst: Option<f64>,
    pub queue: Option<String>,
    pub sender: Option<String>,
    pub direction: Direction,
    pub duplex: Option<Duplex>,
    pub discipline: Option<String>,
    pub mtu: Option<u32>,
    pub overhead: Option<Span>,
    pub arq: Option<String>,
    pub damage: Option<bool>,
    pub customers: Option<u32>,
    pub handoff: Option<Handoffs>,
    pub kind: Option<LinkKind>,
    /// Size of the transfer.
    pub bytes: Option<u64>,
}

impl LinkOptions {
    /// The link, from given, estimated and usual values, in this order.
    ///
    /// # Errors
    ///
    /// The rate is unknown, or determined by a fault.
    pub fn link(self, estimate: &Estimate) -> Result<(Link, Vec<Fact>), Error> {
        let mut facts = Facts(Vec::new());
        let estimated = estimate.rate.as_ref().map(|(rate, _)| *rate);
        let fault = estimate.faults.iter().find(|fault| fault.decides && fault.transfer.is_none());
        if let Some(Fault { diagnosis, .. }) = fault.filter(|_| self.rate.is_none()) {
            return Err(Error::input(diagnosis.evidence.clone(), diagnosis.remedy.clone()));
        }
        // Other properties of a link layer exclude those of a recognized kind.
        let described = self.arq.is_some() || self.duplex.is_some() || self.handoff.is_some();
        let recognized = estimate.kind.as_ref().filter(|_| self.kind.is_none() && !described);
        if let Some((kind, how)) = recognized {
            let (value, how) = (kind.word().to_owned(), how.clone());
            facts.0.push(Fact { what: "link", value, from: Basis::Estimated, how });
        }
        let kind = self.kind.or(recognized.map(|(kind, _)| *kind));
        let of_kind = kind.map(LinkKind::figures);
        let source = of_kind.map_or("", |figures| figures.source);
        let usual_rate = of_kind.and_then(|figures| figures.rate.parse().ok());
        let known = self.rate.or(estimated).or(usual_rate);
        let known = known.ok_or_else(|| unknown_rate(estimate))?;
        let rate = facts.settle("rate", self.rate, estimate.rate.clone(), known, formatted);
        let back = of_kind.and_then(|figures| figures.rate_back.parse().ok());
        let back = back.filter(|_| self.rate.is_none() && estimated.is_none()).unwrap_or(rate);
        let rate_back =
            facts.settle("rate-back", self.rate_back, estimate.rate_back.clone(), back, formatted);
        let (usual, rest) = match &estimate.delay {
            // A capture at one end does not show the position of the lossy link on the path.
            Some((whole, _)) => {
                let usual = of_kind.map_or(Span::millis(5), |figures| figures.delay);
                let link = self.delay.unwrap_or(usual.min(Span(whole.0 / 2)));
                let own = kind.map_or(Span::ZERO, LinkKind::own_round_trip);
                (link, whole.saturating_sub(link + Span(own.0 / 2)))
            }
            None => {
                of_kind.map_or((Span::millis(5), Span::millis(20)), |f| (f.delay, f.wired_delay))
            }
        };
        let wired = estimate.delay.as_ref().map(|(whole, how)| {
            (rest, format!("{whole} for the whole path, one way ({how}), less that of the link and its layers"))
        });
        let delay = facts.settle("delay", self.delay, None, usual, formatted);
        let wired_delay = facts.settle("wired-delay", self.wired_delay, wired, rest, formatted);
        let usual_loss = kind.map_or(Probability::ZERO, LinkKind::loss);
        // A link that repairs its losses has none.
        let estimated_loss = estimate.loss.clone().filter(|_| !kind.is_some_and(LinkKind::repairs));
        let percent = |p: &Probability, _| format!("{}%", (p.get() * 1e6).round() / 1e4);
        let loss = facts.settle("loss", self.loss, estimated_loss, usual_loss, percent);
        let packets = |burst: &f64, from| match from {
            Basis::Estimated => format!("{burst:.2}"),
            _ => burst.to_string(),
        };
        let burst = facts.settle("burst", self.burst, estimate.burst.clone(), 1.0, packets);
        let usual_queue = of_kind.map_or("50p", |figures| figures.queue).to_owned();
        let queue =
            facts.settle("queue", self.queue, estimate.queue.clone(), usual_queue, formatted);
        let fifo = FIFO.to_owned();
        let discipline = facts.settle("discipline", self.discipline, None, fifo, formatted);
        let sender = facts.settle(
            "sender",
            self.sender,
            estimate.sender.clone(),
            "linux".to_owned(),
            formatted,
        );
        let duplex = |duplex: &Duplex, _| duplex.word().to_owned();
        let duplex = facts.settle("duplex", self.duplex, None, Duplex::Full, duplex);
        let arq = facts.settle("arq", self.arq, None, NO_ARQ.to_owned(), formatted);
        let losses = |damage: &bool, _| if *damage { "damage" } else { "vanish" }.to_owned();
        let damage = facts.settle("losses", self.damage, None, false, losses);
        let usual_mtu = of_kind.map_or(MTU, |figures| figures.mtu);
        let mtu = facts.settle("mtu", self.mtu, estimate.mtu.clone(), usual_mtu, formatted);
        let overhead = facts.settle("overhead", self.overhead, None, Span::ZERO, formatted);
        let customers = facts.settle("customers", self.customers, None, 1, formatted);
        if let Some((bytes, how)) = &estimate.window {
            let (value, how) = (format!("{bytes}B"), how.clone());
            facts.0.push(Fact { what: "window", value, from: Basis::Estimated, how });
        }
        let window = estimate.window.as_ref().map(|(bytes, _)| *bytes);
        let estimated = estimate.transfer.map(Link::simulated);
        let transfer = self.bytes.or(estimated);
        let LinkOptions { direction, handoff, .. } = self;
        if let Some(all) = &handoff {
            let (value, from) = (all.to_string(), Basis::Given);
            facts.0.push(Fact { what: "handoff", value, from, how: String::new() });
        }
        #[rustfmt::skip]
        let link = Link {
            rate, rate_back, delay, wired_delay, loss, burst, queue, sender, direction, duplex, discipline, mtu,
            overhead, arq, damage, customers, window, transfer, handoff, kind, rare_requests: false,
        };
        let (from, how) = match (self.bytes, estimated) {
            (Some(_), _) => (Basis::Given, String::new()),
            (None, Some(_)) => (Basis::Estimated, "the captured transfer".to_owned()),
            (None, None) => (Basis::Assumed, size(&link)),
        };
        facts.0.push(Fact { what: "bytes", value: in_megabytes(link.bytes()), from, how });
        let of_kind = ["rate", "rate-back", "delay", "wired-delay", "loss", "queue", "mtu"];
        for fact in &mut facts.0 {
            if fact.from == Basis::Assumed && of_kind.contains(&fact.what) {
                source.clone_into(&mut fact.how);
            }
        }
        Ok((link, facts.0))
    }
}

/// A size in the option's format.
pub(super) fn in_megabytes(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1_000_000 => format!("{}MB", bytes as f64 / 1e6),
        _ if bytes >= 1000 => format!("{}KB", bytes as f64 / 1e3),
        _ => format!("{bytes}B"),
    }
}

/// The duration of the assumed transfer.
fn size(link: &Link) -> String {
    let seconds = link.bytes() as f64 * 8.0 / link.rate.bps() as f64;
    format!("{} s at the rate of the link", short((seconds * 10.0).round() / 10.0))
}

/// A value in the option's format.
fn formatted(value: &impl ToString, _: Basis) -> String {
    value.to_string()
}

/// The parameters settled so far.
struct Facts(Vec<Fact>);

impl Facts {
    /// The value of `option` from the first source that has one.
    fn settle<T>(
        &mut self,
        option: &'static str,
        given: Option<T>,
        estimated: Option<Estimation<T>>,
        usual: T,
        word: impl Fn(&T, Basis) -> String,
    ) -> T {
        let (value, from, how) = match (given, estimated) {
            (Some(value), _) => (value, Basis::Given, String::new()),
            (None, Some((value, how))) => (value, Basis::Estimated, how),
            (None, None) => (usual, Basis::Assumed, String::new()),
        };
        self.0.push(Fact { what: option, value: word(&value, from), from, how });
        value
    }
}

/// The error where the rate is neither given nor estimated.
fn unknown_rate(estimate: &Estimate) -> Error {
    let (Some(_), Some(bytes)) = (&estimate.captured, estimate.transfer) else {
        return Error::input(
            "the rate of the link is not known",
            "give it, `--rate 20mbit`, or a capture to estimate it from, `--capture FILE`",
        );
    };
    let fault = estimate.faults.iter().find(|fault| fault.transfer.is_none());
    let fault = fault.map_or(String::new(), |fault| format!("; {}", fault.diagnosis.evidence));
    Error::input(
        format!(
            "the capture does not show the rate of the link: its largest transfer has {bytes} B{fault}"
        ),
        "give a capture of a longer transfer (a second or more of data and ACKs), or the rate, `--rate 20mbit`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_values_override_estimates_which_override_defaults() {
        let rate_is_missing = LinkOptions::default().link(&Estimate::default());
        assert!(rate_is_missing.is_err());
        let rate = |word: &str| word.parse::<Rate>().ok();
        let estimate = Estimate {
            rate: rate("2mbit").map(|rate| (rate, "seen".to_owned())),
            delay: Some((Span::millis(8), "half of a round trip".to_owned())),
            burst: Some((1.5, "counted".to_owned())),
            ..Estimate::default()
        };
        let given = LinkOptions { rate: rate("3mbit"), ..LinkOptions::default() };
        let (link, facts) = given.link(&estimate).unwrap();
        assert_eq!((Some(link.rate), Some(link.rate_back)), (rate("3mbit"), rate("3mbit")));
        // The lossy link gets at most half of the path's delay.
        assert_eq!((link.delay, link.wired_delay), (Span::millis(4), Span::millis(4)));
        let facts: Vec<(&str, &str, Basis)> =
            facts.iter().map(|fact| (fact.what, fact.value.as_str(), fact.from)).collect();
        assert_eq!(facts[0], ("rate", "3mbit", Basis::Given));
        assert_eq!(facts[1].2, Basis::Assumed);
        assert_eq!(facts[3].2, Basis::Estimated);
        assert_eq!(facts[5], ("burst", "1.50", Basis::Estimated));
        assert_eq!(facts[8], ("sender", "linux", Basis::Assumed));
        assert_eq!(facts[9], ("duplex", "full", Basis::Assumed));
        assert!(facts[10..].iter().all(|(_, _, from)| *from == Basis::Assumed), "{facts:?}");
        assert_eq!(facts.last().map(|fact| (fact.0, fact.1)), Some(("bytes", "7.5MB")));
        let (link, facts) =
            LinkOptions { rate: rate("3mbit"), bytes: Some(64_000), ..LinkOptions::default() }
                .link(&Estimate::default())
                .unwrap();
        let bytes = facts.last().map(|fact| (fact.value.as_str(), fact.from));
        assert_eq!((link.bytes(), bytes), (64_000, Some(("64KB", Basis::Given))));
    }
}
