//! Parts of the program that a build may leave out.

use lasthop_scenario::Plan;

use crate::failure::Failure;

/// Features that this build does not have, with the commands of each.
pub const ABSENT: &[(&str, &[&str])] = &[
    #[cfg(not(feature = "live"))]
    ("live", &["shell", "testbed", "station", "link", "ctl"]),
    #[cfg(not(feature = "lab"))]
    ("lab", &["lab"]),
    #[cfg(not(feature = "parquet"))]
    ("parquet", &["sweep"]),
    #[cfg(not(feature = "zstd"))]
    ("zstd", &[]),
    #[cfg(not(feature = "quic"))]
    ("quic", &[]),
    #[cfg(not(feature = "png"))]
    ("png", &[]),
];

/// The feature that a command needs and this build does not have.
pub fn absent(command: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(_, commands)| commands.contains(&command)).map(|(feature, _)| *feature)
}

/// Remedy for a missing feature.
pub fn remedy(feature: &str) -> String {
    format!(
        "`cargo install --locked --path crates/cli` builds everything, with `--no-default-features --features {feature}` \
         only that part; packages have everything"
    )
}

/// The error for a missing feature.
pub fn refused(subject: &str, feature: &str) -> Failure {
    Failure::input(
        format!("{subject} needs the feature `{feature}`, which this build lacks"),
        remedy(feature),
    )
}

/// Fails if this build cannot run the plan.
pub fn check(plan: &Plan) -> Result<(), Failure> {
    let mut scenarios = plan.cells.iter().map(|cell| &cell.scenario);
    if cfg!(not(feature = "quic"))
        && scenarios.any(|s| s.transfers.iter().any(|t| t.quic.is_some()))
    {
        return Err(refused("a transfer over QUIC", "quic"));
    }
    Ok(())
}
