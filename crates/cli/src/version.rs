//! The output of `--version`.

use std::fs;
use std::time::UNIX_EPOCH;

use lasthop_sim::version::{COMMIT, VERSION};
use serde_json::json;

use crate::failure::Failure;
use crate::{features, format, output};

/// Version and commit, in one line.
pub const LINE: &str = lasthop_sim::version::LINE;

/// Length and modification time of the program's file, which identify a build where a version has many. Empty if unknown.
pub fn build() -> String {
    let file = std::env::current_exe().and_then(fs::metadata);
    let build = file.and_then(|file| {
        let written = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(format!("{:x}-{:x}", file.len(), written.as_nanos()))
    });
    build.unwrap_or_default()
}

/// Prints version, commit and features of this build in JSON.
pub fn print_json() -> Result<(), Failure> {
    let absent: Vec<&str> = features::ABSENT.iter().map(|(feature, _)| *feature).collect();
    output::print_json(
        format::VERSION,
        &json!({ "lasthop": VERSION, "commit": COMMIT, "features_left_out": absent }),
    )
}
