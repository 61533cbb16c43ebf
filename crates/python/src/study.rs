//! Studies: values in, documents as JSON out.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_analyze::{Config, analyze_capture};
use lasthop_batch::explain::Question;
use lasthop_batch::study::AdviceOptions;
use lasthop_batch::{Done, Work, study};
use lasthop_papers::{Bench, Trial, choose, evaluate};
use lasthop_proto::units::{Bytes, Probability, Rate, Span};
use lasthop_scenario::Handoffs;
use lasthop_sim::runs::{Observer, RunResult};
use lasthop_study::advise::{Direction, Duplex, Estimate, LinkKind, LinkOptions, PARTIES};
use lasthop_study::battery::{Network, Options, Over, Radio, Session};
use lasthop_study::capture::Capture;
use lasthop_study::{Source, battery as batteries, compare as comparing};
use pyo3::prelude::*;
use serde::Serialize;

use crate::error;
use crate::plan::Plan;
use crate::run::json;
use crate::wait::Waiting;

const HANDOFF: &str = "every=15s,gap=80ms";
/// The fate of lost packets, and whether it is damage.
const LOSSES: [(&str, bool); 2] = [("vanish", false), ("damage", true)];

type JsonResult = Result<serde_json::Value, lasthop_batch::Error>;

fn value(of: &impl Serialize) -> JsonResult {
    serde_json::to_value(of).map_err(|e| lasthop_batch::Error::Input {
        message: format!("this is no JSON: {e}"),
        help: String::new(),
    })
}

fn answer(
    py: Python<'_>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Work<'_>) -> JsonResult + Send + 'static,
) -> PyResult<String> {
    let waiting = Waiting { jobs, progress, control: None };
    json(py, &waiting.on(py, work)?)
}

/// The keyword arguments of `lasthop.compare`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CompareArguments {
    schemes: Vec<String>,
    baseline: Option<String>,
    errors: Vec<String>,
    handoff: Option<String>,
}

/// Compares schemes on a scenario.
#[pyfunction]
#[pyo3(signature = (plan, options, jobs=0, progress=None))]
pub fn compare(
    py: Python<'_>,
    plan: &Plan,
    options: CompareArguments,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (origin, name, text) = (plan.origin.clone(), plan.name.clone(), plan.text.clone());
    let arguments = plan.arguments.clone();
    let handoffs = quantity::<Handoffs>(py, "handoff", options.handoff, HANDOFF)?;
    answer(py, jobs, progress, move |work| {
        let source = Source { origin: &origin, name: &name, text: &text };
        let settings = comparing::Options {
            schemes: &options.schemes,
            baseline: options.baseline.as_deref(),
            errors: &options.errors,
            handoffs: handoffs.as_ref(),
        };
        value(&study::compare(&source, &arguments, &settings, "", work)?)
    })
}

/// Battery lifetimes.
#[pyfunction]
#[pyo3(signature = (plan, hardware=None, host=None, jobs=0, progress=None))]
pub fn energy(
    py: Python<'_>,
    plan: &Plan,
    hardware: Option<String>,
    host: Option<String>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (origin, name, text) = (plan.origin.clone(), plan.name.clone(), plan.text.clone());
    let arguments = plan.arguments.clone();
    answer(py, jobs, progress, move |work| {
        let source = Source { origin: &origin, name: &name, text: &text };
        value(&study::energy(source, arguments, hardware.as_deref(), host.as_deref(), "", work)?)
    })
}

/// The keyword arguments of `lasthop.advise`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AdviseArguments {
    link: Option<String>,
    rate: Option<String>,
    rate_back: Option<String>,
    delay: Option<String>,
    wired_delay: Option<String>,
    loss: Option<String>,
    burst: Option<f64>,
    queue: Option<String>,
    sender: Option<String>,
    handoff: Option<String>,
    upload: bool,
    duplex: Option<String>,
    discipline: Option<String>,
    arq: Option<String>,
    losses: Option<String>,
    mtu: Option<u32>,
    overhead: Option<String>,
    customers: Option<u32>,
    bytes: Option<String>,
    can: Vec<String>,
    capture: Option<Vec<u8>>,
}

/// Advice on a link.
#[pyfunction]
#[pyo3(signature = (options, seeds, gain, vary, jobs=0, progress=None))]
pub fn advise(
    py: Python<'_>,
    options: AdviseArguments,
    seeds: Option<u32>,
    gain: f64,
    vary: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let given = LinkOptions {
        kind: options.link.map(|word| one_of(py, "link", &word, &LinkKind::WORDS)).transpose()?,
        rate: quantity::<Rate>(py, "rate", options.rate, "20mbit")?,
        rate_back: quantity::<Rate>(py, "rate_back", options.rate_back, "28.8kbit")?,
        delay: quantity::<Span>(py, "delay", options.delay, "5ms")?,
        wired_delay: quantity::<Span>(py, "wired_delay", options.wired_delay, "20ms")?,
        loss: quantity::<Probability>(py, "loss", options.loss, "2% or 0.02")?,
        burst: options.burst,
        queue: options.queue,
        sender: options.sender,
        handoff: quantity::<Handoffs>(py, "handoff", options.handoff, HANDOFF)?,
        direction: if options.upload { Direction::Upload } else { Direction::Download },
        duplex: options
            .duplex
            .map(|word| one_of(py, "duplex", &word, &Duplex::WORDS))
            .transpose()?,
        discipline: options.discipline,
        arq: options.arq,
        damage: options.losses.map(|word| one_of(py, "losses", &word, &LOSSES)).transpose()?,
        mtu: options.mtu,
        overhead: quantity::<Span>(py, "overhead", options.overhead, "1ms")?,
        customers: options.customers,
        bytes: quantity::<Bytes>(py, "bytes", options.bytes, "8MB")?.map(|bytes| bytes.0),
    };
    let can = options.can.iter().map(|who| Ok(one_of(py, "can", who, &PARTIES)?.to_owned()));
    let can = can.collect::<PyResult<Vec<String>>>()?;
    let wish = AdviceOptions { seeds, gain, can, vary };
    let capture = options.capture;
    answer(py, jobs, progress, move |work| {
        let estimate = match capture {
            None => Estimate::default(),
            Some(bytes) => Estimate::of(&read(&bytes, "capture", false)?, "capture at the sender")?,
        };
        let faults = value(&estimate.faults)?;
        let Some(advised) = study::advise(given, estimate, &wish, work)? else {
            return Ok(serde_json::Value::Null);
        };
        value(&serde_json::json!({
            "faults": faults, "link": value(&advised.link)?, "advice": value(&advised.advice)?,
            "remedies": value(&advised.remedies)?, "scenario": advised.scenario,
        }))
    })
}

/// The value of the name `choice` in `words`.
fn one_of<T: Copy>(py: Python<'_>, name: &str, choice: &str, words: &[(&str, T)]) -> PyResult<T> {
    let found = words.iter().find(|(word, _)| *word == choice);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        error::argument(
            py,
            &format!("{name} is `{choice}`"),
            &format!("one of {}", known.join(", ")),
        )
    })
}

/// The keyword arguments of `lasthop.battery`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct BatteryArguments {
    radios: Vec<String>,
    reports: f64,
    bytes: u64,
    over: String,
    session: String,
    capacity: String,
    self_discharge: String,
    base: String,
    inactivity: Option<String>,
    active: Option<String>,
    rest: Option<String>,
    release_assistance: bool,
    seeds: u64,
}

/// Battery life of a reporting device.
#[pyfunction]
pub fn battery(py: Python<'_>, options: BatteryArguments) -> PyResult<String> {
    let all: Vec<(&str, Radio)> = Radio::all().into_iter().map(|r| (r.name(), r)).collect();
    let radios = options.radios.iter().map(|name| one_of(py, "radios", name, &all));
    let radios = radios.collect::<PyResult<Vec<Radio>>>()?;
    let rest = options.rest.map(|word| {
        let wrong =
            || error::argument(py, &format!("rest is `{word}`"), "psm, drx:1.28s or edrx:81.92s");
        batteries::rest(&word).ok_or_else(wrong)
    });
    let over = [("coap", Over::Coap), ("mqtt", Over::Mqtt)];
    let sessions = [
        ("none", Session::None),
        ("full", Session::Full),
        ("resumed", Session::Resumed),
        ("kept", Session::Kept),
    ];
    let settings = Options {
        radios: if radios.is_empty() { Radio::all() } else { radios },
        reports: options.reports,
        bytes: options.bytes,
        over: one_of(py, "over", &options.over, &over)?,
        session: one_of(py, "session", &options.session, &sessions)?,
        capacity: parsed(py, "capacity", &options.capacity, "5Wh")?,
        self_discharge: parsed::<Probability>(py, "self_discharge", &options.self_discharge, "1%")?
            .get(),
        base: parsed(py, "base", &options.base, "40uW")?,
        network: Network {
            inactivity: quantity::<Span>(py, "inactivity", options.inactivity, "10s")?,
            active: quantity::<Span>(py, "active", options.active, "8s")?,
            rest: rest.transpose()?,
            release_assistance: options.release_assistance,
        },
        runs: options.seeds,
    };
    answer(py, 1, None, move |_| value(&batteries::answer(&settings)?))
}

fn quantity<T: FromStr<Err: std::fmt::Display>>(
    py: Python<'_>,
    name: &str,
    word: Option<String>,
    example: &str,
) -> PyResult<Option<T>> {
    word.map(|word| parsed(py, name, &word, example)).transpose()
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(
    py: Python<'_>,
    name: &str,
    word: &str,
    example: &str,
) -> PyResult<T> {
    word.parse().map_err(|e| {
        error::argument(py, &format!("{name}: {e}"), &format!("for example `{example}`"))
    })
}

/// The analysis of a capture.
#[pyfunction]
pub fn analyze(py: Python<'_>, bytes: Vec<u8>, name: String, verify: bool) -> PyResult<String> {
    answer(py, 1, None, move |_| value(&read(&bytes, &name, verify)?))
}

fn read(bytes: &[u8], name: &str, verify: bool) -> Result<Capture, lasthop_batch::Error> {
    let analysis = analyze_capture(bytes, Config { verify, ..Config::default() });
    let analysis = analysis.map_err(|e| lasthop_batch::Error::Input {
        message: format!("{name}: {e}"),
        help: "give a capture in pcap or pcapng form, as tcpdump and Wireshark write them"
            .to_owned(),
    })?;
    Ok(Capture { file: name.to_owned(), analysis, left_out: 0 })
}

/// Published and measured results.
#[pyfunction]
#[pyo3(signature = (claims, seeds, jobs=0, progress=None))]
pub fn reproduce(
    py: Python<'_>,
    claims: Vec<String>,
    seeds: u32,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let chosen = choose(&claims).map_err(|word| {
        let message = format!("there is no paper or claim `{word}`");
        error::argument(py, &message, "lasthop.claims() lists them")
    })?;
    answer(py, jobs, progress, move |work| {
        let watch = Watch(work);
        let results: Vec<_> = work.pool(usize::MAX)?.install(|| {
            let mut bench = Bench::new(seeds, &watch);
            let done = chosen.iter().map_while(|claim| evaluate(claim, &mut bench).ok());
            done.map(|evaluated| evaluated.result).collect()
        });
        value(&results)
    })
}

/// The keyword arguments of `lasthop.explain`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ExplainArguments {
    testbed: bool,
    sets: usize,
    seeds: Option<u32>,
    again: u32,
    sample: u64,
    fit: Vec<String>,
}

/// The open parameters of a paper that decide its claims.
#[pyfunction]
#[pyo3(signature = (claims, options, jobs=0, progress=None))]
pub fn explain(
    py: Python<'_>,
    claims: Vec<String>,
    options: ExplainArguments,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let question =
        Question::new(&claims, options.testbed).map_err(|error| error::batch(py, &error))?;
    let seeds = options.seeds.unwrap_or(question.seeds);
    let (sets, sample, again, fit) = (options.sets, options.sample, options.again, options.fit);
    let question = Question { sets, sample, seeds, again, fit, ..question };
    answer(py, jobs, progress, move |work| {
        let watch = Watch(work);
        let pool = work.pool(usize::MAX)?;
        let explained = question.answer(&mut |trial: &Trial<'_>, sets: &[Vec<String>]| {
            let (done, of) = (AtomicU64::new(0), sets.len() as u64);
            let step = |cell: usize| {
                let runs = done.fetch_add(1, Ordering::Relaxed) + 1;
                (work.progress)(Done { runs, of, cell });
            };
            Ok::<_, lasthop_batch::Error>(
                pool.install(|| trial.judge_all(sets, &watch, &|i, _| step(i))),
            )
        })?;
        value(&explained)
    })
}

/// The open parameters of claims.
#[pyfunction]
pub fn left_open(py: Python<'_>, claims: Vec<String>, testbed: bool) -> PyResult<String> {
    let question = Question::new(&claims, testbed).map_err(|error| error::batch(py, &error))?;
    json(py, &question.parameters())
}

struct Watch<'a>(&'a Work<'a>);

impl Observer for Watch<'_> {
    fn measured(&self, _: usize, _: &RunResult) {}

    fn stop(&self) -> bool {
        (self.0.stop)()
    }
}

/// All claims, those of related work last: name, paper, table or figure, published result.
#[pyfunction]
pub fn all_claims() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    lasthop_papers::all_claims()
        .map(|c| (c.id, c.paper, &*c.text().place, &*c.text().published))
        .collect()
}
