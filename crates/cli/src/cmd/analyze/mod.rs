//! `lasthop analyze`: what happened to TCP in a capture.

mod file;
mod joined;

use std::io::{BufWriter, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use lasthop_analyze::{Config, Connection, OverTime, match_captures};
use lasthop_report::plot::{Plot, Theme};
use lasthop_study::capture::matched::Pair;
use lasthop_study::capture::{Capture, Content, Filter, files, unread};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::output::AtomicFile;
use crate::sweep::PAGE;
use crate::{format, output, show};

pub use file::read;

/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;

/// Say what happened to TCP in a capture: losses, retransmissions, stalls, and why
#[derive(clap::Args, Debug)]
pub struct AnalyzeArgs {
    /// Captures in pcap or pcapng form, plain, gzip or zstd; `-` is the standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// Also write tables and plots to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Leave out packets whose checksum is wrong, as a receiver would
    #[arg(long, help_heading = "Input")]
    pub checksums: bool,
    /// Only this connection, by its number from 0; may be repeated
    #[arg(long, value_name = "NUMBER", help_heading = "Input")]
    pub connection: Vec<u32>,
    /// Only connections of this address, at either end; may be repeated
    #[arg(long, value_name = "IP", help_heading = "Input")]
    pub address: Vec<IpAddr>,
    /// Only connections of this TCP port, at either end; may be repeated
    #[arg(long, value_name = "PORT", help_heading = "Input")]
    pub port: Vec<u16>,
    /// With --json: also what changes over time
    #[arg(long, requires = "json")]
    pub over_time: bool,
    /// Largest of several captures, unpacked: where they are matched, two are held in memory as a whole
    #[arg(long, value_name = "GIB", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024), help_heading = "Input")]
    pub max_size: u64,
}

/// Runs the command.
pub fn run(args: &AnalyzeArgs, json: bool) -> Result<Outcome, Failure> {
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
    }
    let from_stdin = args.captures.iter().any(|path| file::is_stdin(path));
    if from_stdin && args.captures.len() > 1 {
        let message = "`-` cannot be matched with other captures: it can be read only once";
        return Err(Failure::input(message, "write it to a file first"));
    }
    let captures = args.captures.iter().map(|path| read(path, HELP, args.checksums));
    let mut captures = captures.collect::<Result<Vec<_>, _>>()?;
    let unreadable = nothing_read(&captures);
    let mut pairs = Vec::new();
    if let Some(order) = joined::pieces(&captures) {
        let paths: Vec<PathBuf> = order.iter().map(|&i| args.captures[i].clone()).collect();
        captures = vec![file::read_pieces(&paths, HELP, args.checksums)?];
    } else {
        for two in args.captures.windows(2) {
            pairs.push(read_pair(&two[0], &two[1], args)?);
        }
        if joined::interfaces(&captures, &pairs) {
            let most = args.max_size * GIB;
            captures = vec![joined::together(&args.captures, HELP, most, args.checksums)?];
            pairs.clear();
        }
    }
    filter(args, &mut captures)?;
    captures.iter_mut().for_each(shorten);
    if let Some(dir) = &args.output {
        write(dir, &captures, &pairs, args)?;
    }
    if json {
        for connection in captures.iter_mut().flat_map(|c| &mut c.analysis.connections) {
            for direction in [&mut connection.to_server, &mut connection.to_client] {
                direction.points.clear();
                if !args.over_time {
                    direction.over_time = OverTime::default();
                }
            }
        }
        let pairs = leaner(pairs, args.over_time);
        output::print_json(format::ANALYZE, &Document { captures: &captures, matched: &pairs })?;
        return unreadable.map_or(Ok(Outcome::Done), Err);
    }
    let texts = captures.iter().map(show::capture::text);
    let texts: Vec<String> = texts.chain(pairs.iter().map(show::capture::pair)).collect();
    let mut text = texts.join("\n");
    if let Some(dir) = &args.output {
        text += &format!("\nplots, {} and analysis.json are in {}\n", PAGE, dir.display());
    }
    output::print(&text)?;
    unreadable.map_or(Ok(Outcome::Done), Err)
}

/// The failure if packets were unreadable, and no readable packet is TCP.
fn nothing_read(captures: &[Capture]) -> Option<Failure> {
    let tcp: u64 = captures.iter().map(|capture| capture.analysis.tcp_packets).sum();
    let unread = captures.iter().find_map(|capture| Some((capture, unread(&capture.analysis)?)));
    let (capture, unread) = unread.filter(|_| tcp == 0)?;
    let message = format!("{}: no TCP could be read; {unread}", capture.file);
    let help = "docs/how-to/analyze.md lists the formats; capture inside of the tunnel, or with a larger snap length (-s 128)";
    Some(Failure::input(message, help))
}

/// Removes connections that the filters exclude.
fn filter(args: &AnalyzeArgs, captures: &mut [Capture]) -> Result<(), Failure> {
    let AnalyzeArgs { connection, address, port, .. } = args;
    let filter =
        Filter { numbers: connection.clone(), addresses: address.clone(), ports: port.clone() };
    if filter.is_empty() {
        return Ok(());
    }
    captures.iter_mut().for_each(|capture| filter.apply(capture));
    if captures.iter().all(|capture| capture.analysis.connections.is_empty()) {
        let all: u64 = captures.iter().map(|capture| capture.left_out).sum();
        let message = format!("none of {all} connections matches the filters");
        return Err(Failure::input(message, "without filters, all are listed with their numbers"));
    }
    Ok(())
}

const HELP: &str = "give one or more capture files, as tcpdump or Wireshark write them";

/// The comparison of two captures.
fn read_pair(first: &Path, second: &Path, args: &AnalyzeArgs) -> Result<Pair, Failure> {
    let read = |path: &Path| file::bytes(path, HELP, args.max_size * GIB);
    let config = Config { verify: args.checksums, ..Config::default() };
    let matched = match_captures(&read(first)?, &read(second)?, config)
        .map_err(|error| Failure::input(error.to_string(), HELP))?;
    Ok(Pair { files: [first, second].map(|path| path.display().to_string()), matched })
}

/// The answer as JSON.
#[derive(serde::Serialize)]
struct Document<'a> {
    captures: &'a [Capture],
    matched: &'a [Pair],
}

/// Number of connections, those with most bytes, whose lists (points, samples, losses, stalls) are in analysis.json. All
/// have their totals there, and a row in connections.csv.
const LISTS: usize = 1000;

/// Empties the lists of connections beyond [`LISTS`].
fn shorten(capture: &mut Capture) {
    let connections = &mut capture.analysis.connections;
    if connections.len() <= LISTS {
        return;
    }
    let bytes = |c: &Connection| c.to_server.unique_bytes + c.to_client.unique_bytes;
    let mut order: Vec<usize> = (0..connections.len()).collect();
    order.sort_by_key(|&i| core::cmp::Reverse(bytes(&connections[i])));
    for &i in &order[LISTS..] {
        let Connection { to_server, to_client, .. } = &mut connections[i];
        for direction in [to_server, to_client] {
            direction.points_omitted += direction.points.len() as u64;
            direction.losses_omitted += direction.losses.len() as u64;
            direction.stalls_omitted += direction.stalls.len() as u64;
            (direction.points, direction.losses, direction.stalls) = Default::default();
            direction.over_time = OverTime::default();
        }
    }
}

/// Writes the answer without a copy in memory.
fn write_json(path: &Path, answer: &Document<'_>) -> Result<(), Failure> {
    let fail = |error| Failure::file(path, error, "is there room, and may you write there?");
    let mut out = BufWriter::new(AtomicFile::create(path).map_err(fail)?);
    serde_json::to_writer_pretty(&mut out, &format::ANALYZE.of(answer))
        .map_err(|error| fail(error.into()))?;
    out.write_all(b"\n").map_err(fail)?;
    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
    file.commit().map_err(fail)
}

/// Removes values over time, unless `--over-time` is set.
fn leaner(mut pairs: Vec<Pair>, over_time: bool) -> Vec<Pair> {
    for crossing in pairs.iter_mut().flat_map(|pair| &mut pair.matched.crossings) {
        if !over_time {
            crossing.delays = lasthop_analyze::Samples::default();
        }
    }
    pairs
}

fn write(
    dir: &Path,
    captures: &[Capture],
    pairs: &[Pair],
    args: &AnalyzeArgs,
) -> Result<(), Failure> {
    write_json(&dir.join("analysis.json"), &Document { captures, matched: pairs })?;
    let quoted: Vec<String> = args.captures.iter().map(output::quoted).collect();
    let verify = if args.checksums { " --checksums" } else { "" };
    let mut filters: String =
        args.connection.iter().map(|n| format!(" --connection {n}")).collect();
    filters.extend(args.address.iter().map(|address| format!(" --address {address}")));
    filters.extend(args.port.iter().map(|port| format!(" --port {port}")));
    let command = format!("lasthop analyze{verify}{filters} {}", quoted.join(" "));
    let mut names = Vec::new();
    files(captures, pairs, command, |name, content| -> Result<(), Failure> {
        match content {
            Content::Page(text) => return output::write(&dir.join(PAGE), text.as_bytes()),
            Content::Table(text) => output::write(&dir.join(&name), text.as_bytes())?,
            Content::Plot(plot) => {
                names.extend(picture(dir, &name, &plot)?);
                return Ok(());
            }
        }
        names.push(name);
        Ok(())
    })?;
    output::remove_former(dir, "analyze", &names)
}

/// A plot as SVG and, where this build has them, as PNG. Returns the names of the files.
fn picture(dir: &Path, name: &str, plot: &Plot) -> Result<Vec<String>, Failure> {
    output::write(&dir.join(format!("{name}.svg")), plot.svg().as_bytes())?;
    #[cfg(feature = "png")]
    png(dir, name, plot)?;
    let kinds: &[&str] = if cfg!(feature = "png") { &["svg", "png"] } else { &["svg"] };
    Ok(kinds.iter().map(|kind| format!("{name}.{kind}")).collect())
}

#[cfg(feature = "png")]
fn png(dir: &Path, name: &str, plot: &Plot) -> Result<(), Failure> {
    let target = dir.join(format!("{name}.png"));
    let png = plot
        .png(Theme::Light, 2.0)
        .map_err(|error| Failure::file(&target, std::io::Error::other(error), ""))?;
    output::write(&target, &png)
}
