//! Arguments, runs and output that commands with many runs share.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lasthop_scenario::{Argument, Plan};
use lasthop_sim::runs::{Results, Setup};
use lasthop_study::Document;

use crate::failure::Failure;
use crate::format::Format;
use crate::outcome::Outcome;
use crate::output;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::sweep::bound::Most;
use crate::sweep::testbed::Order;
use crate::sweep::{Job, PAGE, Traces};

/// Threads.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Jobs {
    /// Runs at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    /// Number of threads.
    pub fn count(self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.jobs.map_or_else(processors, NonZeroUsize::get)
    }
}

/// One of `words`, with its value. Completion scripts offer the words.
pub fn one_of<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let words: Vec<(&'static str, T)> = words.into_iter().collect();
    let names: Vec<&'static str> = words.iter().map(|(name, _)| *name).collect();
    PossibleValuesParser::new(names).map(move |word| {
        let known = words.iter().find(|(name, _)| *name == word);
        known.map_or_else(
            || unreachable!("clap accepts known words only"),
            |(_, value)| value.clone(),
        )
    })
}

/// A number of seeds, from `least` to `most`.
pub fn seeds(least: u32, most: u32) -> impl TypedValueParser<Value = u32> {
    clap::builder::StringValueParser::new().try_map(move |word| {
        let fits = |count: &u32| (least..=most).contains(count);
        word.parse().ok().filter(fits).ok_or_else(|| {
            format!(
                "not a number of seeds; write a whole number from {least} to {most}: `--seeds 5` makes runs with the \
                 seeds 1 to 5"
            )
        })
    })
}

/// A question about alternatives on one scenario.
#[derive(clap::Args, Debug)]
pub struct StudyArgs {
    /// Scenario file, `-` for stdin, or the name of a built-in scenario
    #[arg(value_name = "FILE|NAME")]
    pub scenario: String,
    /// Number of seeds, each one run of each scheme; overrides `runs` of the file
    #[arg(long, short = 'n', value_name = "N", value_parser = seeds(1, 100_000))]
    seeds: Option<u32>,
    /// Change a value of the scenario; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write results and a page to this directory; the same command continues there after Ctrl-C
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
}

impl StudyArgs {
    /// The arguments as the scenario takes them.
    pub fn arguments(&self) -> Vec<Argument> {
        let mut arguments: Vec<Argument> = self.set.iter().cloned().map(Argument::Set).collect();
        arguments.extend(self.seeds.map(|seeds| Argument::Set(format!("runs={seeds}"))));
        // Only simulated runs of the same seed share the channel.
        arguments.push(Argument::Set("world=sim".to_owned()));
        arguments
    }

    /// The command that repeats the study; `own` are the options specific to `name`, with their values.
    pub fn command(&self, name: &str, own: &[(&str, &[String])]) -> String {
        let mut words = vec!["lasthop".to_owned(), name.to_owned(), output::quoted(&self.scenario)];
        let own = own.iter().filter(|(_, values)| !values.is_empty());
        words
            .extend(own.map(|(option, all)| format!("{option} {}", output::quoted(all.join(",")))));
        words.extend(self.seeds.map(|seeds| format!("--seeds {seeds}")));
        words.extend(self.set.iter().map(|set| format!("--set {}", output::quoted(set))));
        words.join(" ")
    }

    /// The maker of the runs.
    pub fn maker(&self, quiet: bool) -> Result<Maker<'_>, Failure> {
        Maker::new(self.output.as_deref(), self.jobs, quiet)
    }

    /// Writes a complete answer and prints it. `file` is the name of its document; `page` and `pictures` are
    /// written to the same directory; `text` is for a terminal.
    #[expect(clippy::too_many_arguments, reason = "each argument is a named part of the answer")]
    pub fn report<S: serde::Serialize>(
        &self,
        json: bool,
        format: Format,
        document: &Document<S>,
        file: &str,
        page: impl Fn(&Document<S>) -> String,
        pictures: impl Fn(&Document<S>) -> Vec<(String, String)>,
        text: impl Fn(&Document<S>) -> String,
    ) -> Result<Outcome, Failure> {
        let complete = document.is_complete();
        let dir = self.output.as_deref().filter(|_| complete);
        if let Some(dir) = dir {
            output::write(&dir.join(file), output::json(&format.of(document))?.as_bytes())?;
            output::write(&dir.join(PAGE), page(document).as_bytes())?;
            let mut names = Vec::new();
            for (name, svg) in pictures(document) {
                output::write(&dir.join(&name), svg.as_bytes())?;
                names.push(name);
            }
            output::remove_former(dir, file.trim_end_matches(".json"), &names)?;
        }
        if json && complete {
            output::print_json(format, document)?;
        } else if !json {
            let mut output_text = text(document);
            if let Some(dir) = dir {
                output_text += &format!("\n{file} and {PAGE} are in {}\n", dir.display());
            }
            output::print(&output_text)?;
        }
        if complete {
            return Ok(Outcome::Done);
        }
        Ok(output::interrupted(self.output.as_deref()))
    }
}

/// Makes the runs of studies until Ctrl-C, with progress on stderr.
#[derive(Debug)]
pub struct Maker<'a> {
    /// The store of runs.
    output: Option<&'a Path>,
    jobs: Jobs,
    quiet: bool,
    stop: Stop,
}

impl Maker<'_> {
    /// Installs the Ctrl-C handler; once per program.
    pub fn new(output: Option<&Path>, jobs: Jobs, quiet: bool) -> Result<Maker<'_>, Failure> {
        Ok(Maker { output, jobs, quiet, stop: Stop::listen()? })
    }

    /// Results of a plan; fewer runs after Ctrl-C.
    pub fn results(&self, plan: &Plan, setup: Setup) -> Result<Results, Failure> {
        if let Some(dir) = self.output {
            output::prepare(dir)?;
        }
        let progress = Progress::new(plan.count(), self.quiet);
        let job = Job {
            plan,
            order: Order::default(),
            traces: Traces::None,
            most: Most::USUAL,
            output: self.output,
            jobs: self.jobs.count(),
            brief: false,
            stop: &self.stop,
            progress: &progress,
        };
        let runs = job.measure();
        progress.finish();
        let results = Results::new(plan, setup, runs?.results);
        Failure::if_stuck(results.stuck())?;
        Ok(results)
    }
}
