//! `lasthop analyze`: what happened to TCP in a capture.

use std::path::{Path, PathBuf};

use lasthop_analyze::{Config, analyze_capture};
use lasthop_report::plot::Theme;
use lasthop_study::capture::{Capture, DESCRIBED, page, plot};

use crate::failure::Failure;
use crate::sweep::PAGE;
use crate::{Outcome, output, show};

const EXAMPLES: &str = "\
Examples:
  lasthop analyze trace.pcapng                    one capture
  lasthop analyze wired.pcap wireless.pcap        both sides of a base station, one after the other
  lasthop analyze trace.pcap -o out               also plots, a page and every number
  lasthop analyze trace.pcap --json | jq '.captures[0].connections[].to_client.losses'

A capture at the sender sees most: what was lost behind it shows as sent again. --json leaves out the points
of the plots; analysis.json, which -o writes, has them.";

/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;

/// Say what happened to TCP in a capture: losses, retransmissions, stalls, and why
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captures in pcap or pcapng form
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// Also write tables and plots to this directory
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Leave out packets whose checksum is wrong, as a receiver would
    #[arg(long)]
    pub verify: bool,
    /// Largest capture that is read; a capture is held in memory as a whole
    #[arg(long, value_name = "GIB", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub max_size: u64,
}

/// Runs the command.
pub fn run(args: &Args, json: bool) -> Result<Outcome, Failure> {
    if let Some(dir) = &args.output {
        output::prepare(dir)?;
    }
    let mut captures =
        args.captures.iter().map(|path| read_one(path, args)).collect::<Result<Vec<_>, _>>()?;
    if let Some(dir) = &args.output {
        write(dir, &captures, args)?;
    }
    if json {
        for connection in captures.iter_mut().flat_map(|c| &mut c.analysis.connections) {
            connection.to_server.points.clear();
            connection.to_client.points.clear();
        }
        output::print_json(&serde_json::json!({ "captures": captures }))?;
        return Ok(Outcome::Done);
    }
    let texts: Vec<String> = captures.iter().map(show::capture::text).collect();
    let mut text = texts.join("\n");
    if let Some(dir) = &args.output {
        text += &format!("\nplots, {} and analysis.json are in {}\n", PAGE, dir.display());
    }
    output::print(&text)?;
    Ok(Outcome::Done)
}

fn read_one(path: &Path, args: &Args) -> Result<Capture, Failure> {
    let help = "give one or more capture files, as tcpdump or Wireshark write them";
    read(path, help, args.verify, args.max_size * GIB, |size| {
        let (size, most) = (size as f64 / GIB as f64, args.max_size);
        let what =
            format!("{}: {size:.1} GiB is more than the {most} GiB that are read", path.display());
        let help = "raise `--max-size`, or cut the capture: editcap -c 1000000 FILE PARTS";
        Failure::input(what, help)
    })
}

/// Reads a capture of at most `most` bytes; `help` says what would be one, `too_large` what one of a size is.
pub fn read(
    path: &Path,
    help: &str,
    verify: bool,
    most: u64,
    too_large: impl Fn(u64) -> Failure,
) -> Result<Capture, Failure> {
    let size = std::fs::metadata(path).map_err(|error| Failure::file(path, error, help))?.len();
    if size > most {
        return Err(too_large(size));
    }
    let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error, help))?;
    let analysis = analyze_capture(&bytes, Config { verify, ..Config::default() })
        .map_err(|error| Failure::input(format!("{}: {error}", path.display()), help))?;
    Ok(Capture { file: path.display().to_string(), analysis })
}

fn write(dir: &Path, captures: &[Capture], args: &Args) -> Result<(), Failure> {
    for (i, capture) in captures.iter().enumerate() {
        // Captures from two directories may have the same name.
        let before = if captures.len() > 1 { format!("capture-{}-", i + 1) } else { String::new() };
        for transfer in capture.transfers().iter().take(DESCRIBED) {
            let plot = plot(transfer);
            let name = format!("{before}{}", transfer.file_name());
            output::write(&dir.join(format!("{name}.svg")), plot.svg().as_bytes())?;
            let target = dir.join(format!("{name}.png"));
            let png = plot
                .png(Theme::Light, 2.0)
                .map_err(|error| Failure::file(&target, std::io::Error::other(error), ""))?;
            output::write(&target, &png)?;
        }
    }
    let all = serde_json::json!({ "captures": captures });
    output::write(&dir.join("analysis.json"), output::json(&all)?.as_bytes())?;
    let names: Vec<String> = args.captures.iter().map(output::quoted).collect();
    let verify = if args.verify { " --verify" } else { "" };
    let command = format!("lasthop analyze{verify} {}", names.join(" "));
    output::write(&dir.join(PAGE), page(captures, command).as_bytes())
}
