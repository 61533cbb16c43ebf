//! The private module `_lasthop` of the Python package: values in, values out. Public names, documentation and types
//! are in `python/lasthop`, which is its only caller.
//!
//! A panic becomes a Python exception (the profile unwinds). Runs have separate threads with the interpreter's lock
//! released, so that a forked child finds no pool of its parent, and Ctrl-C works.

// `cargo test --lib` ignores `test = false`, and a test program of this crate takes a minute to build.
#![cfg(not(test))]

mod control;
mod error;
mod gym;
mod plan;
mod run;
mod study;
mod sweep;
mod table;
mod wait;

use pyo3::prelude::*;

#[pymodule]
mod _lasthop {
    #[pymodule_export]
    use super::control::Ack;
    #[pymodule_export]
    use super::gym::Session;
    #[pymodule_export]
    use super::plan::{
        Plan, commit, examples, link_files, nearest_example, version, with_link_file,
    };
    #[pymodule_export]
    use super::run::{Recording, Results, record, restore_recording, restore_results, run};
    #[pymodule_export]
    use super::study::{
        advise, all_claims, analyze, battery, compare, energy, explain, left_open, reproduce,
    };
    #[pymodule_export]
    use super::sweep::{Sweep, identity};
    #[pymodule_export]
    use super::table::{Table, amount, read_table};
    #[pymodule_export]
    use super::wait::fail;
}
