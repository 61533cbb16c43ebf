//! Scenario files: their text becomes a [`Plan`], a list of runs.
//!
//! The crate is pure: text in, values out. The caller handles files, terminals and colours.
//!
//! ```text
//! text + --set/--vary -> document -> one document per combination -> Scenario -> Plan -> Run (seed, key)
//! ```
//!
//! [`parse`] does all of it. Every value has its source location in the file or in an argument, so an
//! [`Error`] can refer to it. The first fault is reported.
//!
//! ```
//! use lasthop_scenario::{Argument, example, parse};
//!
//! let text = example("west97-lan").map(|example| example.text).unwrap_or_default();
//! let arguments = [Argument::Vary("errors.mean=16KiB,64KiB".to_owned())];
//! let (plan, warnings) = parse(text, "west97-lan", &arguments)?;
//! assert!(warnings.is_empty());
//! // Three agents, two distances between errors, twenty seeds.
//! assert_eq!((plan.cells.len(), plan.runs().count()), (6, 120));
//!
//! let error = parse("rnus = 5", "mine", &[]).unwrap_err();
//! assert_eq!(error.at.span, 0..4);
//! assert!(error.help.contains("did you mean `runs`?"));
//! # Ok::<(), lasthop_scenario::Error>(())
//! ```

mod address;
mod argument;
mod compare;
mod document;
mod error;
pub mod examples;
pub mod files;
mod grid;
mod json_schema;
pub mod keys;
mod live;
pub mod model;
mod parts;
pub mod plan;
mod quic;
mod read;
mod reading;
mod resolve;
pub mod roaming;
mod schema;
mod schemes;
mod sliders;
pub mod synonyms;
mod syntax;
mod vary;

pub use argument::Argument;
pub use compare::{AS_IS, Comparison, Handoffs, LeftOut, SchemeChoice, compare};
pub use error::{Code, Diagnostic, Error, Location, Source, Warning};
pub use examples::{Example, example, examples, nearest_example};
pub use grid::Grid;
pub use json_schema::{File, json_schema};
pub use live::{LivePath, StationFile};
pub use model::{
    CrossTraffic, ErrorSpec, Host, HostSide, Quic, QuicCongestion, RadioStage, Scenario, Stack,
    Stage, StageKind, Traffic, Transfer, World,
};
pub use parts::host::KERNELS;
pub use parts::station::{Captures, Limits, PlaneChoice, StationSettings, SubscriberConfig};
pub use parts::tunnel::{Key, TunnelFile};
pub use plan::{Axis, Cell, Digest, Plan, Run, RunKey};
pub use roaming::Roaming;
pub use schema::{PARTS, Part, keys_of_hosts};
pub use schemes::{Family, Scheme, schemes, schemes_of};
pub use sliders::{Slider, Unit, sliders};
pub use vary::Setting;

use read::Reader;
use reading::take;

/// Turns the text of a scenario file into the plan of its runs.
///
/// `name` is the scenario's name if the file has none, for example the file's stem. `arguments` are the
/// `--set` and `--vary` arguments of the command line, applied in order before validation.
///
/// # Errors
///
/// The first fault, with its location in the text or in an argument, the expected form and an example. Any
/// text results in a plan or an error, never in a panic.
pub fn parse(
    text: &str,
    name: &str,
    arguments: &[Argument],
) -> Result<(Plan, Vec<Warning>), Error> {
    let mut document = document::parse(text)?;
    // Schemes affect comparisons only, but a mistake in them should be reported early.
    schemes::take(&mut document)?;
    let axes = vary::apply(&mut document, arguments, vary::MAX_CELLS)?;
    plan::expand(&document, name, &axes)
}

/// Reads the text of a tunnel's file.
///
/// # Errors
/// The first fault, with its location.
pub fn parse_tunnel(text: &str) -> Result<TunnelFile, Error> {
    let document = document::parse(text)?;
    let file = Reader::top(&document, "tunnel's file", schema::keys("tunnel"))?;
    take(&file, parts::tunnel::keys).map(|(file, _)| file)
}

/// Reads the text of a station's file.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_station(text: &str) -> Result<(StationFile, Vec<Warning>), Error> {
    let document = document::parse(text).map_err(|mut error| {
        error.0.help =
            "a station's file is written in TOML, for example\n\n    left = \"eth0\"\n    \
                        right = \"wlan0\"\n    [[path]]\n    agent = \"snoop\""
                .to_owned();
        error
    })?;
    StationFile::of(document)
}
