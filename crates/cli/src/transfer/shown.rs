//! Transfers as tables, lines and JSON.

use lasthop_live::endpoint::{End, Received, SendReport};
use lasthop_proto::units::Span;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{MBIT, RATE_UNIT};
use lasthop_report::table::render;
use serde_json::{Value, json};

use crate::{format, style};

/// Bytes per second in Mbit/s, as a cell.
fn rate(throughput: Option<f64>) -> String {
    throughput.map_or_else(|| "–".to_owned(), |rate| format!("{:.2}", rate / MBIT))
}

/// Seconds with three decimals, the resolution of west97 4.5.
fn seconds(span: Span) -> String {
    format!("{:.3}", span.as_secs_f64())
}

fn count(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| number.to_string())
}

fn retransmissions(report: &SendReport) -> Option<u64> {
    report.tcp.map(|tcp| tcp.total_retrans.into())
}

/// The transfer as a table, with notes below.
pub fn table(report: &SendReport) -> String {
    let columns = [
        Column::text("to"),
        Column::number("bytes"),
        Column::number("seconds"),
        Column::number(RATE_UNIT),
        Column::number("retransmissions"),
        Column::number("timeouts"),
        Column::text("end"),
    ];
    let row = vec![
        report.peer.to_string(),
        report.bytes.to_string(),
        seconds(report.ended),
        rate(report.throughput()),
        count(retransmissions(report)),
        count(report.timeouts),
        report.end.to_string(),
    ];
    let table = render(&Table::new(columns, [row]), style::look());
    let mut text = format!("{table}\n\nSHA-256 {}\n", report.sha256);
    if report.end != End::Closed {
        text += "Incomplete transfers: bytes and SHA-256 are of data that the kernel accepted, not of data that arrived.\n";
    }
    text += &style::dim("From the SYN until the peer closed.");
    text.push('\n');
    text
}

/// A sent transfer in JSON: times in seconds, rates in bytes per second.
pub fn sent(report: &SendReport) -> Value {
    let time = |span: Option<Span>| span.map(Span::as_secs_f64);
    json!({
        "local": report.local,
        "peer": report.peer,
        "end": report.end,
        "bytes": report.bytes,
        "acked": report.acked,
        "sha256": report.sha256,
        "began_s": report.began.as_secs_f64(),
        "connected_s": report.connected.as_secs_f64(),
        "first_byte_s": time(report.first_byte),
        "last_byte_s": time(report.last_byte),
        "all_acked_s": time(report.all_acked),
        "ended_s": report.ended.as_secs_f64(),
        "throughput": report.throughput(),
        "congestion": report.congestion,
        "retransmissions": retransmissions(report),
        "timeouts": report.timeouts,
    })
}

/// A received transfer on one line.
pub fn line(received: &Received, verified: bool) -> String {
    let Received { number, peer, bytes, sha256, end, .. } = received;
    let time = seconds(received.seconds);
    let rate = rate(received.throughput());
    let mut text = format!("{number}  {peer}  {bytes} B  {time} s  {rate} {}  {end}", RATE_UNIT);
    if let Some(wrong) = received.wrong {
        let (got, expected) = (wrong.got, wrong.expected);
        text += &style::bad(&format!(
            "  WRONG at byte {}: 0x{got:02x}, expected 0x{expected:02x}",
            wrong.position
        ));
    } else if verified {
        text += "  verified";
    }
    format!("{text}  sha256 {sha256}\n")
}

/// A received transfer on one line of JSON.
pub fn received(received: &Received) -> String {
    let value = json!({
        "number": received.number,
        "peer": received.peer,
        "local": received.local,
        "end": received.end,
        "bytes": received.bytes,
        "sha256": received.sha256,
        "accepted_s": received.accepted.as_secs_f64(),
        "first_byte_s": received.first_byte.map(Span::as_secs_f64),
        "seconds": received.seconds.as_secs_f64(),
        "throughput": received.throughput(),
        "wrong": received.wrong,
    });
    format::DISCARD.line(&value)
}
