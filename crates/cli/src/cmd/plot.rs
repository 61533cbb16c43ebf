//! `lasthop plot`: one figure of results, as SVG, PDF or PNG.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lasthop_report::plot::{Plot, Theme};
use lasthop_study::sweep::single::{self, Kind, NoFigure, Request};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::sweep::files;
use crate::{format, output, study_args};

/// Draw one figure of results for a paper or a slide
#[derive(clap::Args, Debug)]
pub struct PlotArgs {
    /// One of the kinds below
    #[arg(value_name = "KIND", value_parser = study_args::one_of(Kind::ALL), hide_possible_values = true)]
    kind: Kind,
    /// Directory that `lasthop run -o` wrote
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The scalar of cdf, sweep and ranking, by its name in JSON results
    #[arg(long, value_name = "SCALAR", default_value = "throughput")]
    of: String,
    /// The only cell that is drawn, by its title, such as `agent=snoop tcp=reno`
    #[arg(long, value_name = "TITLE")]
    cell: Option<String>,
    /// Light figures on a dark background
    #[arg(long)]
    dark: bool,
    /// The file: .svg or .png [default: KIND.svg in the directory]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &PlotArgs, json: bool) -> Result<Outcome, Failure> {
    let name = format!("{}.svg", args.kind.name());
    let target = args.output.clone().unwrap_or_else(|| args.dir.join(&name));
    let form = Form::of(&target)?;
    let results = super::report::read(&args.dir)?;
    let recorded = files::recorded(&args.dir, &results, BTreeMap::new())?;
    let request = Request { kind: args.kind, scalar: &args.of, cell: args.cell.as_deref() };
    let plot = single::figure(&results, &recorded, &request).map_err(|missing| {
        let help = match missing {
            NoFigure::Cell { .. } => "quote the title: --cell 'agent=snoop tcp=reno'",
            NoFigure::Scalar { .. } => "choose one with --of",
            NoFigure::NotRecorded => {
                "run the scenario again with `-o`; real packets and sweeps leave no series"
            }
            NoFigure::Cells => {
                "vary something in the run: `--vary agent=none,snoop`; or draw a cdf"
            }
            NoFigure::TooMany { .. } => "choose a cell with --cell",
        };
        Failure::input(missing.to_string(), help)
    })?;
    let theme = if args.dark { Theme::Dark } else { Theme::Light };
    output::write(&target, &form.bytes(&plot, theme)?)?;
    if args.output.is_none() {
        output::add_made(&args.dir, &name)?;
    }
    if json {
        output::print_json(
            format::PLOT,
            &serde_json::json!({ "figure": target.display().to_string() }),
        )?;
    } else {
        output::print(&format!("{}\n", target.display()))?;
    }
    Ok(Outcome::Done)
}

/// Form of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Svg,
    Png,
}

impl Form {
    /// The form that the ending of `path` names.
    pub(super) fn of(path: &Path) -> Result<Form, Failure> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        match ending.to_str() {
            Some("svg") => Ok(Form::Svg),
            Some("png") => Ok(Form::Png),
            _ => {
                let message = format!("{}: the ending names no form of figures", path.display());
                Err(Failure::input(
                    message,
                    "write FILE.svg or FILE.png; `rsvg-convert -f pdf` makes a PDF of an .svg",
                ))
            }
        }
    }

    #[cfg(feature = "png")]
    pub(super) fn bytes(self, plot: &Plot, theme: Theme) -> Result<Vec<u8>, Failure> {
        let drawn = match self {
            Form::Svg => return Ok(plot.figure(theme).into_bytes()),
            Form::Png => plot.png(theme, 2.0),
        };
        drawn.map_err(|error| Failure::input(error.to_string(), "write an .svg instead"))
    }

    #[cfg(not(feature = "png"))]
    pub(super) fn bytes(self, plot: &Plot, theme: Theme) -> Result<Vec<u8>, Failure> {
        match self {
            Form::Svg => Ok(plot.figure(theme).into_bytes()),
            Form::Png => Err(Failure::input(
                "this program was built without the feature `png`".to_owned(),
                "write an .svg, or build with `--features png`",
            )),
        }
    }
}
