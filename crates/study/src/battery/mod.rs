//! Battery life of a device that sends a number of reports per day, and its energy by use.

mod page;
mod radio;
mod tables;
mod traffic;
mod wire;

use lasthop_observe::stats::Summary;
use lasthop_proto::energy::iot::{Joules, Keeps, Part, Rest, Stretch, Timers, Wifi};
use lasthop_proto::units::{Energy, Power, Span};
use serde::Serialize;

use crate::Error;
pub use page::picture;
use radio::Kind;
pub use radio::{Network, Radio, rest};
pub use tables::{assumed, left_out, lifetimes, parts, remarks};
use traffic::Path;
pub use wire::{Over, Session, Step};

const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;

/// The options of a study.
#[derive(Clone, Debug)]
pub struct Options {
    pub radios: Vec<Radio>,
    /// Reports per day.
    pub reports: f64,
    /// Application bytes per report.
    pub bytes: u64,
    pub over: Over,
    pub session: Session,
    pub capacity: Energy,
    /// Share of the capacity lost to self-discharge per year.
    pub self_discharge: f64,
    /// Mean power of the rest of the device.
    pub base: Power,
    /// The timers of cellular networks.
    pub network: Network,
    /// Runs of the transfer, with seeds from 1.
    pub runs: u64,
}

/// The results for all radios.
#[derive(Clone, Debug, Serialize)]
pub struct Lifetimes {
    /// Reports per day.
    pub reports_a_day: f64,
    /// Application bytes per report.
    pub bytes: u64,
    pub over: Over,
    pub session: Session,
    /// The messages of a report over IP.
    pub steps: Vec<Step>,
    /// Capacity of the battery, in joules.
    pub capacity_j: f64,
    /// Share of the capacity lost to self-discharge per year.
    pub self_discharge: f64,
    /// Mean power of the rest of the device, in watts.
    pub base_w: f64,
    /// Runs of each transfer.
    pub runs: u64,
    /// In the requested order.
    pub radios: Vec<Lifetime>,
    /// Assumptions about networks and paths.
    pub assumed: Vec<String>,
    /// Effects that are not modelled, for all radios and for families.
    pub not_modelled: Vec<&'static str>,
}

/// The result for one radio.
#[derive(Clone, Debug, Serialize)]
pub struct Lifetime {
    pub radio: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Joules per report interval by use, with the rest of the device and self-discharge.
    pub parts: Vec<Share>,
    /// The sum of the parts.
    pub joules: Summary,
    /// Seconds from the first packet of a report to the last; `None` where packets are not IP.
    pub report_s: Option<Summary>,
    /// Battery life in days.
    pub days: Summary,
    /// The part with the most energy.
    pub mostly: &'static str,
    /// Reasons why this report rate is not possible.
    pub limits: Vec<String>,
}

/// The energy of one part.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    pub part: &'static str,
    /// Joules per report interval.
    pub joules: Summary,
}

/// Names of the parts besides the radio.
const BASE: &str = "base";
const LOSS: &str = "self-discharge";

/// Computes the battery life.
///
/// # Errors
///
/// A figure is invalid, or the scenario of a path refuses a setting.
pub fn answer(options: &Options) -> Result<Lifetimes, Error> {
    let wrong = |message: &str, help: &str| Err(Error::input(message, help));
    if !(options.reports > 0.0 && options.reports <= DAY) {
        return wrong(
            "reports a day are more than 0 and at most 86400",
            "for example `--reports 24`",
        );
    }
    if options.bytes == 0 || options.bytes > 1000 {
        return wrong("a report has 1 to 1000 bytes: one packet", "for example `--bytes 50`");
    }
    if options.capacity.get() <= 0.0 || !(0.0..1.0).contains(&options.self_discharge) {
        return wrong(
            "a battery holds something, and loses less than all of it in a year",
            "for example `--capacity 5Wh --self-discharge 1%`",
        );
    }
    let steps = wire::steps(options.over, options.session, options.bytes);
    let applied: Vec<Radio> =
        options.radios.iter().map(|radio| options.network.applied(*radio)).collect();
    let assumed: Result<Vec<Option<String>>, Error> = applied.iter().map(assumption).collect();
    let radios = applied.iter().map(|radio| lifetime(options, radio, &steps));
    let radios: Result<Vec<Lifetime>, Error> = radios.collect();
    Ok(Lifetimes {
        reports_a_day: options.reports,
        bytes: options.bytes,
        over: options.over,
        session: options.session,
        steps,
        capacity_j: options.capacity.get(),
        self_discharge: options.self_discharge,
        base_w: options.base.get(),
        runs: options.runs,
        radios: radios?,
        assumed: assumed?.into_iter().flatten().collect(),
        not_modelled: tables::not_modelled(&options.radios),
    })
}

/// Assumptions about a radio's network and path that no data sheet gives; `None` for a radio without network and path.
fn assumption(radio: &Radio) -> Result<Option<String>, Error> {
    let timers = match &radio.0 {
        Kind::Cellular(modem, _) => cellular(&modem.timers),
        Kind::Wifi(station, _) => wifi(station),
        Kind::Lora(_) | Kind::Ble(_) => return Ok(None),
    };
    let path = radio.path().map_or(Ok(String::new()), Path::words)?;
    Ok(Some(format!("{}: {timers}; {path}", radio.name())))
}

fn cellular(timers: &Timers) -> String {
    let release = match timers.release_assistance {
        true => "released at once behind a report (--release-assistance), and in a pause of one"
            .to_owned(),
        false => "released".to_owned(),
    };
    let rest = match timers.rest {
        Rest::Psm => "PSM".to_owned(),
        Rest::Drx(cycle) => format!("idle DRX in cycles of {cycle}"),
        Rest::Edrx(cycle) => format!("eDRX in cycles of {cycle}"),
    };
    format!(
        "{release} {} after the last packet, of which it listens for {} without a pause and then in connected DRX with \
         cycles of {}; then idle DRX with cycles of {} for {}; then {rest}",
        timers.inactivity, timers.attentive, timers.connected_drx, timers.idle_drx, timers.active,
    )
}

fn wifi(station: &Wifi) -> String {
    let keeps = match station.keeps {
        Keeps::WakeTime { every, awake } => format!("awake for {awake} each {every}"),
        Keeps::Beacons(_) => "beacons as its sheet has them".to_owned(),
    };
    format!(
        "{keeps}; {} to wake up, and awake for {} behind the last packet of a report",
        station.wake, station.linger
    )
}

fn lifetime(options: &Options, radio: &Radio, steps: &[Step]) -> Result<Lifetime, Error> {
    let reports = match radio.path() {
        Some(path) => path.reports(options.over, options.session, steps, 1..options.runs + 1)?,
        None => vec![Vec::new()],
    };
    let period = DAY / options.reports;
    let states: Vec<Vec<Stretch>> = reports
        .iter()
        .map(|air| radio.states(air, options.bytes, Span::from_secs_f64(period)))
        .collect();
    let joules: Vec<Joules> = states.iter().map(Joules::of).collect();
    let base = options.base.get() * period;
    let loss = options.capacity.get() * options.self_discharge / YEAR * period;
    let total = |j: &Joules| j.total() + base + loss;
    let summary =
        |of: &dyn Fn(&Joules) -> f64| Summary::of(&joules.iter().map(of).collect::<Vec<f64>>());
    let mut parts: Vec<Share> = Part::ALL
        .into_iter()
        .map(|part| Share { part: part.name(), joules: summary(&|j| j.part(part)) })
        .collect();
    parts.push(Share { part: BASE, joules: summary(&|_| base) });
    parts.push(Share { part: LOSS, joules: summary(&|_| loss) });
    let most = parts.iter().max_by(|a, b| a.joules.mean.total_cmp(&b.joules.mean));
    let ends =
        reports.iter().map(|air| air.iter().map(|a| a.until.as_secs_f64()).fold(0.0, f64::max));
    let [name, about, source] = radio.words();
    Ok(Lifetime {
        radio: name,
        about,
        source,
        mostly: most.map_or("", |share| share.part),
        joules: summary(&total),
        report_s: radio.path().map(|_| Summary::of(&ends.collect::<Vec<f64>>())),
        days: summary(&|j| options.capacity.get() / total(j) * period / DAY),
        limits: limits(options, radio, &states, period),
        parts,
    })
}

/// Reasons why this radio cannot report so often with this size.
fn limits(options: &Options, radio: &Radio, states: &[Vec<Stretch>], period: f64) -> Vec<String> {
    let mut limits = Vec::new();
    if let Kind::Lora(lora) = &radio.0 {
        let most = lora.most_a_day(options.bytes);
        if options.reports > most {
            limits.push(format!(
                "1 % of the time on the air (EU868) allows {} reports of {} bytes a day, not {}",
                most.floor(),
                options.bytes,
                options.reports
            ));
        }
        let frames = lora.frames(options.bytes);
        if frames > 1 {
            limits.push(format!(
                "a report takes {frames} frames: at most {} bytes fit into one at SF{}",
                lora.spreading.longest(),
                lora.spreading.get()
            ));
        }
    }
    let longest = states.iter().map(|s| s.iter().map(|s| s.span.as_secs_f64()).sum::<f64>());
    let longest = longest.fold(0.0, f64::max);
    if longest > period * 1.000_001 {
        limits.push(format!(
            "a report takes {longest:.1} s, but the next is due after {period:.1} s"
        ));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(radios: &[&str]) -> Options {
        Options {
            radios: Radio::all()
                .into_iter()
                .filter(|radio| radios.contains(&radio.name()))
                .collect(),
            reports: 24.0,
            bytes: 50,
            over: Over::Coap,
            session: Session::Kept,
            capacity: Energy::joules(18_000.0).unwrap(),
            self_discharge: 0.01,
            base: Power::ZERO,
            network: Network::default(),
            runs: 5,
        }
    }

    fn joules(life: &Lifetime, part: &str) -> f64 {
        life.parts.iter().find(|share| share.part == part).map_or(0.0, |share| share.joules.mean)
    }

    #[test]
    fn names_are_unique_and_every_radio_answers() {
        let names: Vec<&str> = Radio::all().iter().map(Radio::name).collect();
        for (place, name) in names.iter().enumerate() {
            assert!(!names[..place].contains(name), "{name}");
        }
        let answer = answer(&options(&names)).unwrap();
        for life in &answer.radios {
            let sum: f64 = life.parts.iter().map(|share| share.joules.mean).sum();
            assert!((sum / life.joules.mean - 1.0).abs() < 1e-9, "{}", life.radio);
            // 18 kJ at 24 times that a day.
            let days = 18_000.0 / (24.0 * life.joules.mean);
            assert!((life.days.mean / days - 1.0).abs() < 0.05, "{}: {days}", life.radio);
        }
    }

    #[test]
    fn assumptions_on_networks_and_paths_are_reported() {
        let mut options = options(&["lte-m", "wifi-twt", "ble"]);
        options.runs = 1;
        options.network.rest = Some(Rest::Edrx(Span::from_secs_f64(81.92)));
        let assumptions = answer(&options).unwrap().assumed;
        assert_eq!(assumptions.len(), 2, "{assumptions:?}");
        for words in [
            "released 10s after",
            "cycles of 320ms",
            "cycles of 1.28s for 8s",
            "eDRX in cycles of 81.92s",
        ] {
            assert!(assumptions[0].contains(words), "{assumptions:?}");
        }
        assert!(
            assumptions[0]
                .contains("180kbit up and 180kbit down, 50ms each way with a jitter of 10ms"),
            "{assumptions:?}"
        );
        assert!(
            assumptions[1].contains("awake for 10ms each 60s")
                && assumptions[1].contains("6mbit up"),
            "{assumptions:?}"
        );
    }

    #[test]
    fn self_discharge_shortens_the_battery_life() {
        let mut options = options(&["lora-sf7"]);
        options.reports = 0.001;
        options.base = Power::watts(1e-3).unwrap();
        let answer = answer(&options).unwrap();
        // 1 mW and 180 J a year, 5.7 uW, in addition to 5.3 uW asleep: 18 kJ last 206 days.
        assert!((answer.radios[0].days.mean - 206.1).abs() < 0.3, "{:?}", answer.radios[0].days);
        assert_eq!(answer.radios[0].mostly, "base");
    }

    #[test]
    fn open_sessions_cost_less_than_resumed_or_full_ones() {
        for (over, radio) in [(Over::Coap, "nb-iot"), (Over::Mqtt, "lte-m")] {
            let of = |session| {
                let options = Options { over, session, ..options(&[radio]) };
                let life = answer(&options).unwrap().radios.remove(0);
                joules(&life, "send") + joules(&life, "listen")
            };
            let (open, resumed, full) =
                (of(Session::Kept), of(Session::Resumed), of(Session::Full));
            assert!(open < resumed && resumed < full, "{radio}: {open} {resumed} {full}");
        }
    }

    #[test]
    fn network_timers_change_tail_and_sleep_energy() {
        let mut options = options(&["lte-m"]);
        let usual = answer(&options).unwrap().radios.remove(0);
        assert_eq!(usual.mostly, "tail");
        options.network.release_assistance = true;
        let released = answer(&options).unwrap().radios.remove(0);
        assert_eq!(joules(&released, "tail"), 0.0);
        options.network.rest = Some(Rest::Edrx(Span::from_secs_f64(81.92)));
        let edrx = answer(&options).unwrap().radios.remove(0);
        // 18 uA at 3.7 V for nearly an hour, in addition to 8 s in idle DRX.
        let more = joules(&edrx, "reachable") - joules(&released, "reachable");
        assert!((more - 18e-6 * 3.7 * 3587.0).abs() < 0.002, "{more}");
        assert_eq!(joules(&edrx, "sleep"), 0.0);
    }

    #[test]
    fn the_duty_cycle_of_lora_is_reported() {
        let mut options = options(&["lora-sf12"]);
        options.reports = 1000.0;
        options.bytes = 60;
        let limits = answer(&options).unwrap().radios.remove(0).limits;
        assert!(limits[0].contains("allows") && limits[1].contains("2 frames"), "{limits:?}");
    }

    #[test]
    fn invalid_options_are_refused() {
        for change in [
            |a: &mut Options| a.reports = 0.0,
            |a: &mut Options| a.bytes = 0,
            |a: &mut Options| a.capacity = Energy::ZERO,
            |a: &mut Options| a.self_discharge = 1.0,
        ] {
            let mut options = options(&["ble"]);
            change(&mut options);
            assert!(answer(&options).is_err());
        }
    }
}
