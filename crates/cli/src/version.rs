//! The output of `--version`.

use lasthop_sim::version::{COMMIT, VERSION};
use serde_json::json;

use crate::failure::Failure;
use crate::{features, format, output};

/// Version and commit, in one line.
pub const LINE: &str = lasthop_sim::version::LINE;

/// Prints version, commit and features of this build in JSON.
pub fn print_json() -> Result<(), Failure> {
    let absent: Vec<&str> = features::ABSENT.iter().map(|(feature, _)| *feature).collect();
    output::print_json(
        format::VERSION,
        &json!({ "lasthop": VERSION, "commit": COMMIT, "features_left_out": absent }),
    )
}
