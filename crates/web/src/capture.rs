//! The analysis of a capture.

use lasthop_analyze::{Config, analyze_capture};
use lasthop_study::capture::{Capture, DESCRIBED, series};
use serde_json::{Value, json};

use crate::envelope::Columns;
use crate::marks;
use crate::request::ErrorAnswer;

/// Maximum number of connections of one file.
const MOST: usize = 10_000;

/// Analyses `bytes`, as `lasthop analyze` does.
pub(crate) fn capture(file: String, bytes: &[u8]) -> Result<Vec<u8>, ErrorAnswer> {
    let config = Config { connections: MOST, ..Config::default() };
    let analysis = analyze_capture(bytes, config).map_err(|error| {
        ErrorAnswer::new(
            format!("{file}: {error}"),
            "drop a file that tcpdump, Wireshark or `lasthop run -o` wrote, pcap or pcapng",
        )
    })?;
    let capture = Capture { file, analysis, left_out: 0 };
    let transfers = capture.transfers();
    let mut columns = Columns::default();
    let described: Vec<Value> = transfers
        .iter()
        .take(DESCRIBED)
        .enumerate()
        .map(|(i, transfer)| {
            let series = series(transfer);
            marks::pack(&series, i, &mut columns);
            let losses = transfer.data.lost_segments;
            json!({
                "title": transfer.title(),
                "facts": transfer.facts(),
                "verdict": transfer.data.verdict,
                "losses": losses,
                "end": series.end_s,
            })
        })
        .collect();
    let answer = json!({
        "file": capture.file,
        "heading": capture.heading(),
        "transfers": transfers.len(),
        "described": described,
    });
    Ok(columns.envelope(&answer))
}
