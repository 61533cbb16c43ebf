//! Several files that are parts of one capture: pieces of a ring buffer, or captures at several interfaces of a host.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lasthop_analyze::{Config, Endpoint, analyze_together};
use lasthop_proto::units::{Span, Time};
use lasthop_study::capture::Capture;
use lasthop_study::capture::matched::Pair;

use super::file;
use crate::failure::Failure;

/// Maximum time by which the pieces of a ring buffer overlap: packets of several queues are not in order.
const OVERLAP: Span = Span::millis(100);

/// First and last time of a capture.
fn span(capture: &Capture) -> Option<(Time, Time)> {
    let all = &capture.analysis.connections;
    let began = all.iter().map(|connection| connection.began).min()?;
    Some((began, all.iter().map(|connection| connection.ended).max()?))
}

/// Both ends of each connection, the lesser first.
fn ends(capture: &Capture) -> BTreeSet<[Endpoint; 2]> {
    let all = capture.analysis.connections.iter();
    all.map(|c| [c.client.min(c.server), c.client.max(c.server)]).collect()
}

/// Whether each file has a connection of the one before.
fn connected(captures: &[Capture], order: &[usize]) -> bool {
    let shared = |two: &[usize]| !ends(&captures[two[0]]).is_disjoint(&ends(&captures[two[1]]));
    order.windows(2).all(shared)
}

/// The files in the order of time, if they are successive pieces of one capture: none begins before the one before has
/// ended, and each continues a connection of that one.
pub fn pieces(captures: &[Capture]) -> Option<Vec<usize>> {
    let spans: Vec<(Time, Time)> = captures.iter().map(span).collect::<Option<_>>()?;
    let mut order: Vec<usize> = (0..captures.len()).collect();
    order.sort_by_key(|&i| spans[i]);
    let follows = |two: &[usize]| spans[two[0]].1 <= spans[two[1]].0 + OVERLAP;
    let apart = order.len() > 1 && order.windows(2).all(follows);
    (apart && connected(captures, &order)).then_some(order)
}

/// Whether the files are captures at several interfaces: they share connections, but no direction of one.
pub fn interfaces(captures: &[Capture], pairs: &[Pair]) -> bool {
    let order: Vec<usize> = (0..captures.len()).collect();
    !pairs.is_empty()
        && pairs.iter().all(|pair| pair.matched.clocks.is_none() && pair.matched.unmatched == 0)
        && connected(captures, &order)
}

/// Analyses captures at several interfaces as one.
pub fn together(
    paths: &[PathBuf],
    help: &str,
    most: u64,
    verify: bool,
) -> Result<Capture, Failure> {
    let files = paths.iter().map(|path| file::bytes(path, help, most));
    let files: Vec<Vec<u8>> = files.collect::<Result<_, _>>()?;
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let analysis = analyze_together(&files, Config { verify, ..Config::default() })
        .map_err(|error| Failure::input(error.to_string(), help))?;
    let file = format!("{} (joined by time: captures at several interfaces)", file::names(paths));
    Ok(Capture { file, analysis, left_out: 0 })
}
