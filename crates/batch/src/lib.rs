//! Runs in large numbers, for the command and for Python.
//!
//! Each call runs a plan on its own thread pool ([`run()`]) or makes a study ([`study`]). Results become
//! [Arrow](https://arrow.apache.org) tables with units and provenance ([`tables`]), CSV and Parquet files ([`files`]).
//! The crate uses threads and files, but no terminal, clock or signals: the caller interrupts it and receives its
//! progress ([`Work`]).
//!
//! ```
//! use lasthop_batch::{Provenance, Work, run, tables};
//!
//! let text = lasthop_scenario::example("west97-lan").map(|example| example.text).unwrap_or_default();
//! let set = ["runs=2", "transfer.bytes=50kB"].map(|set| lasthop_scenario::Argument::Set(set.to_owned()));
//! let (plan, _) = lasthop_scenario::parse(text, "west97-lan", &set).map_err(|error| error.to_string())?;
//! let results = run(&plan, "", &Work::new(1)).map_err(|error| error.to_string())?;
//! let table = tables::runs(&plan, &results, &Provenance::new(&plan, text, &set)).map_err(|error| error.to_string())?;
//! assert_eq!(table.num_rows(), 6);
//! assert_eq!(table.schema().field_with_name("throughput").unwrap().metadata()["unit"], "B/s");
//! # Ok::<(), String>(())
//! ```

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod error;
pub mod explain;
pub mod files;
mod provenance;
mod run;
#[cfg(feature = "parquet")]
pub mod store;
pub mod study;
#[cfg(feature = "parquet")]
pub mod sweep;
#[cfg(feature = "parquet")]
pub mod tables;

pub use error::Error;
pub use provenance::Provenance;
pub use run::{Done, Pool, Work, lock, measure, run, start_threads};
