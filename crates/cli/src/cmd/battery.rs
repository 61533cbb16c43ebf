//! `lasthop battery`: the lifetime of a battery that feeds a periodically transmitting radio.

use std::path::PathBuf;

use lasthop_proto::energy::iot::Rest;
use lasthop_proto::units::{Bytes, Energy, Power, Probability, Span};
use lasthop_report::model::Table;
use lasthop_report::number::{plural, plural_of};
use lasthop_report::table::render;
use lasthop_study::battery::{self, Lifetimes, Network, Options, Over, Radio, Session};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{format, output, study_args, style};

/// Compute the battery lifetime of a device that reports over LTE-M, NB-IoT, LoRaWAN, Wi-Fi or Bluetooth Low Energy
#[derive(clap::Args, Debug)]
pub struct BatteryArgs {
    /// Radios, by name [default: all]
    #[arg(value_name = "RADIO", value_parser = study_args::one_of(radios()), hide_possible_values = true)]
    radios: Vec<Radio>,
    /// Reports per day
    #[arg(long, value_name = "N", default_value_t = 24.0, help_heading = "The device")]
    reports: f64,
    /// Application bytes in each report
    #[arg(long, value_name = "SIZE", default_value_t = Bytes(50), help_heading = "The device")]
    bytes: Bytes,
    /// Protocol of the reports over IP
    #[arg(long, value_enum, default_value_t = Carrier::Coap, help_heading = "The device")]
    over: Carrier,
    /// DTLS or TLS session of the reports
    #[arg(long, value_enum, default_value_t = Security::Kept, help_heading = "The device")]
    session: Security,
    /// Capacity of the battery
    #[arg(long, value_name = "ENERGY", default_value = "5Wh", help_heading = "The device")]
    capacity: Energy,
    /// Share of the capacity that the battery loses in a year without load
    #[arg(long, value_name = "SHARE", default_value = "1%", help_heading = "The device")]
    self_discharge: Probability,
    /// Mean power of the rest of the device
    #[arg(long, value_name = "POWER", default_value = "0W", help_heading = "The device")]
    base: Power,
    /// LTE-M, NB-IoT: time from the last packet to the release of the connection
    #[arg(long, value_name = "TIME", help_heading = "The network")]
    inactivity: Option<Span>,
    /// LTE-M, NB-IoT: time after the release in which the device can be paged
    #[arg(long, value_name = "TIME", help_heading = "The network")]
    active: Option<Span>,
    /// LTE-M, NB-IoT: sleep mode between reports: psm, drx:TIME or edrx:TIME
    #[arg(long, value_name = "MODE", value_parser = rest, help_heading = "The network")]
    rest: Option<Rest>,
    /// LTE-M, NB-IoT: the device announces its last packet, and the network releases it immediately
    #[arg(long, help_heading = "The network")]
    release_assistance: bool,
    /// Number of runs of each transfer, with the seeds 1 to N
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Write all numbers and a picture to this directory
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Carrier {
    /// CoAP over UDP
    Coap,
    /// MQTT over TCP
    Mqtt,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Security {
    /// No security
    None,
    /// A full handshake for each report
    Full,
    /// A resumed session for each report
    Resumed,
    /// One session for all reports: a DTLS connection ID, or an open TLS connection
    Kept,
}

fn radios() -> Vec<(&'static str, Radio)> {
    Radio::all().into_iter().map(|radio| (radio.name(), radio)).collect()
}

fn rest(word: &str) -> Result<Rest, String> {
    battery::rest(word).ok_or_else(|| "not known; `psm`, `drx:1.28s` or `edrx:81.92s`".to_owned())
}

/// Runs the command.
pub fn run(args: &BatteryArgs, json: bool) -> Result<Outcome, Failure> {
    let options = Options {
        radios: if args.radios.is_empty() { Radio::all() } else { args.radios.clone() },
        reports: args.reports,
        bytes: args.bytes.0,
        over: match args.over {
            Carrier::Coap => Over::Coap,
            Carrier::Mqtt => Over::Mqtt,
        },
        session: match args.session {
            Security::None => Session::None,
            Security::Full => Session::Full,
            Security::Resumed => Session::Resumed,
            Security::Kept => Session::Kept,
        },
        capacity: args.capacity,
        self_discharge: args.self_discharge.get(),
        base: args.base,
        network: Network {
            inactivity: args.inactivity,
            active: args.active,
            rest: args.rest,
            release_assistance: args.release_assistance,
        },
        runs: args.seeds,
    };
    let answer = battery::answer(&options)?;
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
        output::write(
            &dir.join("battery.json"),
            output::json(&format::BATTERY.of(&answer))?.as_bytes(),
        )?;
        output::write(&dir.join("battery.svg"), battery::picture(&answer).as_bytes())?;
    }
    if json {
        output::print_json(format::BATTERY, &answer)?;
    } else {
        output::print(&text(&answer))?;
    }
    Ok(Outcome::Done)
}

fn table_text(table: Table) -> String {
    render(&table, style::look())
}

/// The answer for a terminal.
fn text(answer: &Lifetimes) -> String {
    let over = match answer.over {
        Over::Coap => "CoAP",
        Over::Mqtt => "MQTT",
    };
    let session = match (answer.session, answer.over) {
        (Session::None, _) => "without security",
        (Session::Full, Over::Coap) => "a whole DTLS handshake each",
        (Session::Full, Over::Mqtt) => "a whole TLS handshake each",
        (Session::Resumed, Over::Coap) => "a resumed DTLS session each",
        (Session::Resumed, Over::Mqtt) => "a resumed TLS session each",
        (Session::Kept, Over::Coap) => "a DTLS session that stays open by its connection id",
        (Session::Kept, Over::Mqtt) => "a TLS connection that stays open",
    };
    let messages: Vec<String> =
        answer.steps.iter().map(|step| format!("{} for {}", step.request, step.response)).collect();
    let mut text = format!(
        "{}\n{over}, {session}: {} bytes above UDP or TCP; battery {:.2} Wh, {:.1} % a year lost by itself\n\n{}\n\n",
        style::heading(&format!(
            "{} of {} a day",
            plural_of(answer.reports_a_day, "report"),
            plural(answer.bytes, "byte")
        )),
        messages.join(", then "),
        answer.capacity_j / 3600.0,
        answer.self_discharge * 100.0,
        table_text(battery::lifetimes(answer)),
    );
    text += &format!(
        "{}\n{}\n",
        style::heading("mJ from one report to the next"),
        table_text(battery::parts(answer))
    );
    for remark in battery::remarks(answer) {
        text += &format!("{} {remark}\n", style::bad("note:"));
    }
    text += &format!("\n{}\n", style::heading("assumed"));
    for line in battery::assumed(answer) {
        text += &format!("  {line}\n");
    }
    text += &format!("\n{}\n", style::heading("figures"));
    for life in &answer.radios {
        text += &format!("  {}: {}. {}\n", life.radio, life.about, life.source);
    }
    text += &format!("\n{}\n", style::heading("not modelled"));
    for line in battery::left_out(answer) {
        text += &format!("  {line}\n");
    }
    text
}
