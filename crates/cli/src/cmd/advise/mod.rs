//! `lasthop advise`: the best remedies for this link, with their gain and cost.

#[cfg(live)]
mod station;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use lasthop_proto::units::{Bytes, Probability, Rate, Span};
use lasthop_scenario::Handoffs;
use lasthop_sim::runs::Setup;
use lasthop_study::advise;
use lasthop_study::advise::{
    Direction, Duplex, Estimate, Fault, LinkKind, LinkOptions, PARTIES, Question, ask, is_decided,
    remedies,
};

use super::analyze;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::study_args::{self, Jobs, Maker};
use crate::{format, output, show};

/// Size limit of a measurement, bytes.
const LARGEST_MEASUREMENT: u64 = 64 << 20;

/// Say what would help on a link: how much, how surely, and what must be deployed where
#[derive(clap::Args, Debug)]
pub struct AdviseArgs {
    /// Kind of the link, with its mechanisms and figures: wifi6, lte, nr, starlink, geo, lora, nb-iot; other options
    /// override its figures
    #[arg(long, value_name = "KIND", value_parser = study_args::one_of(LinkKind::WORDS), hide_possible_values = true, help_heading = "The link")]
    pub link: Option<LinkKind>,
    /// Rate of the lossy link for data
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate, help_heading = "The link")]
    pub rate: Option<Rate>,
    /// Rate for the ACKs [default: the same]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate, help_heading = "The link")]
    pub rate_back: Option<Rate>,
    /// Delay of the lossy link, one way [default: 5ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = delay, help_heading = "The link")]
    pub delay: Option<Span>,
    /// Delay of the rest of the path, one way [default: 20ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = delay, help_heading = "The link")]
    pub wired_delay: Option<Span>,
    /// Share of the packets with data that the link loses [default: 0]
    #[arg(long, value_name = "P", allow_hyphen_values = true, value_parser = loss, help_heading = "The link")]
    pub loss: Option<Probability>,
    /// Mean number of packets lost in a row [default: 1]
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = burst, help_heading = "The link")]
    pub burst: Option<f64>,
    /// Queue in front of the link [default: 50p]
    #[arg(long, value_name = "QUEUE", value_parser = queue, help_heading = "The link")]
    pub queue: Option<String>,
    /// Discipline of that queue: fifo, codel, fq-codel, pie and others (docs/reference/scenario-files.md) [default: fifo]
    #[arg(long, value_name = "DISCIPLINE", help_heading = "The link")]
    pub discipline: Option<String>,
    /// Whether the directions of the link share its medium: full, half (turns) [default: full]
    #[arg(long, value_name = "DUPLEX", value_parser = study_args::one_of(Duplex::WORDS), hide_possible_values = true, help_heading = "The link")]
    pub duplex: Option<Duplex>,
    /// Link layer that retransmits: none, ll, ll-sack, local-recovery, tulip, airmail [default: none]
    #[arg(long, value_name = "LINK-LAYER", help_heading = "The link")]
    pub arq: Option<String>,
    /// Fate of lost packets: they vanish, or they arrive as damage (bit errors that checksums show) [default: vanish]
    #[arg(long, value_enum, help_heading = "The link")]
    pub losses: Option<Losses>,
    /// The largest IP packet, in bytes [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(296..=9000), help_heading = "The link")]
    pub mtu: Option<u32>,
    /// Time of each frame on the link in addition to its bits [default: 0s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = delay, help_heading = "The link")]
    pub overhead: Option<Span>,
    /// Number of customers with simultaneous transfers through the same queue [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "The link")]
    pub customers: Option<u32>,
    /// Size of each transfer: many schemes gain more with longer ones [default: about 20 s at the rate, 250 KB to 8 MB, or 20
    /// round trips' worth]
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "The link")]
    pub bytes: Option<u64>,
    /// The sender: a preset (`lasthop list presets`) or a TCP [default: linux]
    #[arg(long, value_name = "SENDER", help_heading = "The link")]
    pub sender: Option<String>,
    /// Which way the data goes
    #[arg(long, value_enum, default_value = "download", help_heading = "The link")]
    pub direction: Way,
    /// The host moves between two base stations: `every` or `dwell`, and keys of `[handoff]`, for example every=15s,gap=80ms
    #[arg(long, value_name = "KEY=VALUE,...", help_heading = "The link")]
    pub handoff: Option<Handoffs>,
    /// Estimate the link from the largest transfer in this capture, taken at the sender
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["station", "measured"],
        help_heading = "Figures from elsewhere"
    )]
    pub capture: Option<PathBuf>,
    /// Estimate the link from the JSON of iperf3, flent or networkQuality, measured on the host behind the link
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "station",
        help_heading = "Figures from elsewhere"
    )]
    pub measured: Option<PathBuf>,
    /// Use the counts of the running station with this control socket
    #[arg(long, value_name = "SOCKET", help_heading = "Figures from elsewhere")]
    pub station: Option<PathBuf>,
    /// Who can be changed: sender, receiver, base-station, link, router, gateway [default: all of them]
    #[arg(long, value_name = "WHO,...", value_delimiter = ',', value_parser = study_args::one_of(PARTIES.map(|(name, party)| (name, party.to_owned()))), hide_possible_values = true, help_heading = "The question")]
    pub can: Vec<String>,
    /// The least gain worth a change, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = gain, help_heading = "The question")]
    pub gain: f64,
    /// Number of seeds, each one run of each scheme [default: as many runs as 10 seeds and up to 40 would take, most of them
    /// of the schemes near the top]
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::study_args::seeds(2, 1000), help_heading = "The question")]
    pub seeds: Option<u32>,
    /// Do not repeat the comparison with other losses and delays
    #[arg(long, help_heading = "The question")]
    pub quick: bool,
    /// Write the scenario, the numbers and ready files to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub jobs: Jobs,
}

/// Which way the data goes.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Way {
    /// Towards the host behind the lossy link.
    Download,
    /// From it.
    Upload,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Direction {
        match way {
            Way::Download => Direction::Download,
            Way::Upload => Direction::Upload,
        }
    }
}

/// The fate of lost packets.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Losses {
    /// No host sees them.
    Vanish,
    /// They arrive with bit errors.
    Damage,
}

impl AdviseArgs {
    /// The options of the link.
    fn link_options(&self) -> LinkOptions {
        LinkOptions {
            rate: self.rate,
            rate_back: self.rate_back,
            delay: self.delay,
            wired_delay: self.wired_delay,
            loss: self.loss,
            burst: self.burst,
            queue: self.queue.clone(),
            sender: self.sender.clone(),
            direction: self.direction.into(),
            duplex: self.duplex,
            discipline: self.discipline.clone(),
            mtu: self.mtu,
            overhead: self.overhead,
            arq: self.arq.clone(),
            damage: self.losses.map(|losses| losses == Losses::Damage),
            customers: self.customers,
            handoff: self.handoff.clone(),
            kind: self.link,
            bytes: self.bytes,
        }
    }
}

fn rate(word: &str) -> Result<Rate, String> {
    word.parse().map_err(|error| format!("{error}; for example 20mbit or 28.8kbit"))
}

fn delay(word: &str) -> Result<Span, String> {
    let span: Span = word.parse().map_err(|error| format!("{error}; for example 5ms"))?;
    if span > Span::secs(100) {
        Err("out of range; at most 100s, for example 5ms".to_owned())
    } else {
        Ok(span)
    }
}

fn loss(word: &str) -> Result<Probability, String> {
    let p: Probability =
        word.parse().map_err(|error| format!("{error}; for example 2% or 0.02"))?;
    if word.trim().parse() == Ok(1.0) {
        return Err("every packet would be lost; write `1%` for one in a hundred".to_owned());
    }
    if p.get() > 0.9 {
        return Err("beyond 90% no TCP continues; for example 2%".to_owned());
    }
    Ok(p)
}

fn burst(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(n) if (1.0..=1000.0).contains(&n) => Ok(n),
        _ => Err("not a burst; a number of packets from 1 to 1000, for example 4".to_owned()),
    }
}

fn bytes(word: &str) -> Result<u64, String> {
    let bytes: Bytes = word.parse().map_err(|error| format!("{error}; for example 8MB"))?;
    match bytes.0 {
        1_000..=1_000_000_000 => Ok(bytes.0),
        _ => Err("out of range; from 1KB to 1GB, for example 8MB".to_owned()),
    }
}

fn gain(word: &str) -> Result<f64, String> {
    match word.trim_end_matches('%').parse::<f64>() {
        Ok(n) if (0.0..=1000.0).contains(&n) => Ok(n),
        _ => Err("not a gain; a percentage from 0 to 1000, for example 5".to_owned()),
    }
}

fn queue(word: &str) -> Result<String, String> {
    let fits = word.strip_suffix('p').map_or_else(
        || word.ends_with('B') && word.parse::<Bytes>().is_ok(),
        |packets| packets.parse::<u32>().is_ok_and(|n| n > 0),
    );
    if fits {
        Ok(word.to_owned())
    } else {
        Err("not a queue; a number of packets or bytes, for example 50p or 64KiB".to_owned())
    }
}

/// Runs the command.
pub fn run(args: &AdviseArgs, json: bool) -> Result<Outcome, Failure> {
    let estimate = match (&args.capture, &args.station, &args.measured) {
        (Some(path), ..) => capture(path)?,
        (_, Some(socket), _) => station(socket)?,
        (_, _, Some(path)) => measurement(path, args.direction)?,
        _ => Estimate::default(),
    };
    let faults = estimate.faults.clone();
    if args.rate.is_none() && is_decided(&faults) {
        return repair_first(args, &faults, &estimate.notes, json);
    }
    let (link, facts) = args.link_options().link(&estimate)?;
    let runs = args.seeds.unwrap_or_else(|| link.runs());
    let text = link.scenario(runs)?;
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
        output::write(&dir.join("scenario.toml"), text.as_bytes())?;
    }
    let (gain, can) = (args.gain / 100.0, args.can.as_slice());
    let race = args.seeds.is_none();
    let question = Question { link: &link, runs, race, gain, can, vary: !args.quick };
    let maker = Maker::new(None, args.jobs, json)?;
    let command = again(std::env::args_os().skip(1));
    let mut make = |plan: &_| maker.results(plan, Setup::new(command.clone(), plan));
    let Some(advice) = ask(&question, facts, estimate, &mut make)? else {
        eprintln!(
            "interrupted; advice needs all of its runs: `--quick` and `--seeds 5` take fewer"
        );
        return Ok(Outcome::Interrupted);
    };
    let remedies = remedies(&advice, &link);
    let document = serde_json::json!({
        "faults": faults, "link": link, "advice": advice, "remedies": remedies, "scenario": text,
    });
    if let Some(dir) = &args.output {
        let files: Vec<_> = remedies.iter().filter_map(|remedy| remedy.file.as_ref()).collect();
        for (name, body) in &files {
            output::write(&dir.join(name), body.as_bytes())?;
        }
        let names = files.iter().map(|(name, _)| name.clone());
        let names: Vec<String> = names.chain(["scenario.toml".to_owned()]).collect();
        output::remove_former(dir, "advise", &names)?;
        let page = advise::page(&advice, &faults, &remedies);
        output::write(&dir.join(crate::sweep::PAGE), page.as_bytes())?;
        save(dir, &document)?;
    }
    if json {
        output::print_json(format::ADVISE, &document)?;
    } else {
        let saved = args.output.as_ref().map(|dir| dir.display().to_string());
        let saved = saved.as_deref();
        let text = show::advise::text(&advice, &link, &faults, &remedies, saved);
        // The text is wrapped, but the contents of files are printed as they are.
        output::exact(&output::for_here(&text))?;
    }
    let helps = advice.anything_helps || !faults.is_empty();
    Ok(if helps { Outcome::Done } else { Outcome::No })
}

/// Prints the answer if a fault determines the rate of the transfer. The link cannot be estimated then, so no
/// scheme is simulated.
fn repair_first(
    args: &AdviseArgs,
    faults: &[Fault],
    notes: &[String],
    json: bool,
) -> Result<Outcome, Failure> {
    let none: [(); 0] = [];
    let document = serde_json::json!({
        "faults": faults, "notes": notes, "link": null, "advice": null, "remedies": none, "scenario": null,
    });
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
        output::remove_former(dir, "advise", &[])?;
        let page = advise::page_of_faults(faults, notes, &again(std::env::args_os().skip(1)));
        output::write(&dir.join(crate::sweep::PAGE), page.as_bytes())?;
        save(dir, &document)?;
    }
    if json {
        output::print_json(format::ADVISE, &document)?;
    } else {
        output::exact(&show::advise::repair_first(faults, notes))?;
    }
    Ok(Outcome::Done)
}

/// Writes what `--json` prints.
fn save(dir: &Path, document: &serde_json::Value) -> Result<(), Failure> {
    let text = output::json(&format::ADVISE.of(document))?;
    output::write(&dir.join("advice.json"), text.as_bytes())
}

/// The command that repeats the question, from its words. Options for output and threads are left out.
fn again(words: impl Iterator<Item = OsString>) -> String {
    let mut command_line = vec!["lasthop".to_owned()];
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" | "--output" | "-j" | "--jobs" => drop(words.next()),
            "--json" => {}
            word if ["--output=", "--jobs="].iter().any(|left| word.starts_with(left)) => {}
            word => command_line.push(output::quoted(word)),
        }
    }
    command_line.join(" ")
}

/// Estimates the link from a capture.
fn capture(path: &Path) -> Result<Estimate, Failure> {
    let help =
        "give a capture that was taken at the sender, as `tcpdump -s 128 -w FILE tcp` writes it";
    let capture = analyze::read(path, help, false)?;
    Ok(Estimate::of(&capture, help)?)
}

/// Estimates the link from a measurement of another tool; flent compresses its files.
fn measurement(path: &Path, way: Way) -> Result<Estimate, Failure> {
    let help = "measure first: iperf3 -c HOST -R --json > down.json";
    let failed = |error| Failure::file(path, error, help);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LARGEST_MEASUREMENT).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let decoder = flate2::read::GzDecoder::new(bytes.as_slice());
        decoder.take(LARGEST_MEASUREMENT).read_to_end(&mut plain).map_err(failed)?;
        bytes = plain;
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Estimate::of_measurement(&text, &path.display().to_string(), way.into())?)
}

#[cfg(live)]
fn station(socket: &Path) -> Result<Estimate, Failure> {
    station::ask(socket)
}

#[cfg(not(live))]
fn station(socket: &Path) -> Result<Estimate, Failure> {
    Err(Failure::input(format!("{}: stations run on Linux only", socket.display()), ""))
}
