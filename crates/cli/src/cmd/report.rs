//! `lasthop report`: results of sweeps as a page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lasthop_sim::runs::Results;
use lasthop_study::sweep::side_by_side::{self, NamedResults};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::sweep::{self, files};
use crate::{format, output};

/// Limit of results in a legible picture.
const MOST: usize = 6;

/// Make a self-contained page with tables and plots from the results in a directory, or in several together
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Directory that `lasthop run -o` wrote; several are drawn together
    #[arg(value_name = "DIR", required = true, num_args = 1..=MOST)]
    pub dirs: Vec<PathBuf>,
    /// The page [default: report.html in the directory, overlay.html in the first of several]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ReportArgs, json: bool) -> Result<Outcome, Failure> {
    let dirs = &args.dirs;
    let (page, name) = match dirs.as_slice() {
        [dir] => {
            let results = read(dir)?;
            (files::page(dir, &results, BTreeMap::new())?, sweep::PAGE)
        }
        _ => (together(dirs)?, OVERLAY),
    };
    let target = args.output.clone().unwrap_or_else(|| dirs[0].join(name));
    output::write(&target, page.as_bytes())?;
    if args.output.is_none() && name == OVERLAY {
        output::add_made(&dirs[0], name)?;
    }
    if json {
        output::print_json(
            format::REPORT,
            &serde_json::json!({ "page": target.display().to_string() }),
        )?;
    } else {
        output::print(&format!("{}\n", target.display()))?;
    }
    Ok(Outcome::Done)
}

/// The page of several results.
const OVERLAY: &str = "overlay.html";

fn together(dirs: &[PathBuf]) -> Result<String, Failure> {
    let mut all: Vec<NamedResults> = Vec::new();
    for dir in dirs {
        let results = read(dir)?;
        let recorded = files::recorded(dir, &results, BTreeMap::new())?;
        let short = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        let taken = |name: &String| all.iter().any(|one| one.name == *name);
        // Two directories may have the same name.
        let name = short.filter(|name| !taken(name)).unwrap_or_else(|| dir.display().to_string());
        if taken(&name) {
            let message = format!("{} is given twice", dir.display());
            return Err(Failure::input(message, "give each directory once"));
        }
        all.push(NamedResults { name, results, recorded });
    }
    side_by_side::page(&all).map_err(|apart| {
        let help = "only results that vary the same keys can be drawn together: run both with the same `--vary`";
        Failure::input(apart.to_string(), help)
    })
}

/// The results in a directory.
pub(super) fn read(dir: &Path) -> Result<Results, Failure> {
    let help = "give a directory of results, written by `lasthop run FILE -o DIR`";
    if !dir.is_dir() {
        let message = if dir.exists() { "not a directory" } else { "there is no such directory" };
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, message);
        return Err(Failure::file(dir, error, help));
    }
    let path = dir.join(sweep::RESULTS);
    let text = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::input(
            format!("{} has no {}", dir.display(), sweep::RESULTS),
            "results are written when a sweep is complete: `lasthop run FILE -o DIR` continues one",
        ),
        _ => Failure::file(&path, error, help),
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        let help = "this is no result of this version of lasthop; run the scenario again with `-o`";
        Failure::file(&path, error.into(), help)
    })
}
