//! Transfers as tables, lines and JSON.

use lasthop_live::endpoint::{End, Received, ReverseReport, Role, SendReport, Served, UdpReport};
use lasthop_proto::units::Span;
use lasthop_report::model::{Column, Table};
use lasthop_report::number::{Units, plural};
use lasthop_report::table::render;
use serde_json::{Value, json};

use crate::{format, style};

/// Bytes per second in `units`, as a cell.
fn rate(throughput: Option<f64>, units: Units) -> String {
    throughput.map_or_else(|| "–".to_owned(), |rate| format!("{:.2}", rate / units.size()))
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

/// The columns of a table of transfers; `peer` is the heading of the other end.
fn columns(peer: &str, units: Units) -> Vec<Column> {
    vec![
        Column::text(peer),
        Column::number("bytes"),
        Column::number("seconds"),
        Column::number(units.name()),
        Column::number("retransmissions"),
        Column::number("timeouts"),
        Column::text("end"),
    ]
}

/// The transfer as a table, with notes below.
pub fn table(reports: &[SendReport], units: Units) -> String {
    let table = Table {
        title: String::new(),
        columns: columns("to", units),
        rows: reports
            .iter()
            .map(|report| {
                vec![
                    report.peer.to_string(),
                    report.bytes.to_string(),
                    seconds(report.ended),
                    rate(report.throughput(), units),
                    count(retransmissions(report)),
                    count(report.timeouts),
                    report.end.to_string(),
                ]
            })
            .collect(),
    };
    let mut text = format!("{}\n\n", render(&table, style::look()));
    let first = reports.first().map(|report| &report.sha256);
    if reports.iter().all(|report| Some(&report.sha256) == first) {
        text.extend(first.map(|sha256| format!("SHA-256 {sha256}\n")));
    } else {
        text.extend(reports.iter().map(|report| format!("SHA-256 {}\n", report.sha256)));
    }
    if reports.iter().any(|report| report.end != End::Closed) {
        text += "Incomplete transfers: bytes and SHA-256 are of data that the kernel accepted, not of data that arrived.\n";
    }
    text += &style::dim(match units {
        Units::Mbit => "From the SYN until the peer closed.",
        Units::KB => "From the SYN until the peer closed; KB = 1024 B.",
    });
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
pub fn line(received: &Received, verified: bool, units: Units) -> String {
    let Received { number, peer, bytes, sha256, end, .. } = received;
    let time = seconds(received.seconds);
    let rate = rate(received.throughput(), units);
    let mut text = format!("{number}  {peer}  {bytes} B  {time} s  {rate} {}  {end}", units.name());
    if let Some(wrong) = received.wrong {
        let (got, expected) = (wrong.got, wrong.expected);
        text += &style::bad(&format!(
            "  WRONG at byte {}: 0x{got:02x}, expected 0x{expected:02x}",
            wrong.position
        ));
    } else if verified {
        text += "  verified";
    }
    if let Some(file) = &received.file {
        text += &format!("  {}", file.display());
    }
    format!("{text}  sha256 {sha256}\n")
}

/// Received transfers of `send -R` as a table, with notes below.
pub fn reverse_table(reports: &[ReverseReport], units: Units) -> String {
    let row = |report: &ReverseReport| {
        vec![
            report.peer.to_string(),
            report.bytes.to_string(),
            seconds(report.ended),
            rate(report.throughput(), units),
            count(report.sender.and_then(|sender| sender.retransmissions)),
            count(report.sender.and_then(|sender| sender.timeouts)),
            match report.wrong {
                Some(wrong) => format!("wrong at byte {}", wrong.position),
                None => report.end.to_string(),
            },
        ]
    };
    let table = Table {
        title: String::new(),
        columns: columns("from", units),
        rows: reports.iter().map(row).collect(),
    };
    let note = style::dim("From the SYN until the last byte; retransmissions of the sending end.");
    format!("{}\n\n{note}\n", render(&table, style::look()))
}

/// A received transfer of `send -R` in JSON: times in seconds, rates in bytes per second.
pub fn reverse(report: &ReverseReport) -> Value {
    json!({
        "reverse": true,
        "local": report.local,
        "peer": report.peer,
        "end": report.end,
        "bytes": report.bytes,
        "sha256": report.sha256,
        "wrong": report.wrong,
        "began_s": report.began.as_secs_f64(),
        "connected_s": report.connected.as_secs_f64(),
        "first_byte_s": report.first_byte.map(Span::as_secs_f64),
        "ended_s": report.ended.as_secs_f64(),
        "throughput": report.throughput(),
        "retransmissions": report.sender.and_then(|sender| sender.retransmissions),
        "timeouts": report.sender.and_then(|sender| sender.timeouts),
    })
}

/// Datagrams of `send -u` as a table.
pub fn udp_table(report: &UdpReport, units: Units) -> String {
    let receiver = report.receiver;
    let per_second = |bytes: u64| {
        let seconds = report.seconds.as_secs_f64();
        (seconds > 0.0).then(|| bytes as f64 / seconds)
    };
    let share = report.lost().filter(|_| report.sent > 0).map_or_else(String::new, |lost| {
        format!(" ({:.2} %)", lost as f64 * 100.0 / report.sent as f64)
    });
    let table = Table {
        title: String::new(),
        columns: vec![
            Column::text(if report.reverse { "from" } else { "to" }),
            Column::number("sent"),
            Column::number(format!("sent ({})", units.name())),
            Column::number(format!("received ({})", units.name())),
            Column::number("lost"),
            Column::number("reordered"),
            Column::number("duplicates"),
            Column::number("jitter (ms)"),
            Column::text("end"),
        ],
        rows: vec![vec![
            report.peer.to_string(),
            report.sent.to_string(),
            rate(per_second(report.bytes), units),
            rate(receiver.and_then(|receiver| per_second(receiver.bytes)), units),
            format!("{}{share}", count(report.lost())),
            count(receiver.map(|receiver| receiver.reordered)),
            count(receiver.map(|receiver| receiver.duplicates)),
            receiver.map_or_else(
                || "–".to_owned(),
                |receiver| format!("{:.3}", receiver.jitter.as_secs_f64() * 1e3),
            ),
            report.end.to_string(),
        ]],
    };
    let mut text = format!("{}\n\n", render(&table, style::look()));
    if let Some(rate) = report.limited {
        let rate = units.rate(rate.bps() as f64 / 8.0);
        text += &format!("the receiver limits the rate to {rate}\n");
    }
    if report.refused > 0 {
        text += &format!("this machine's kernel refused {}\n", plural(report.refused, "datagram"));
    }
    if report.skipped > 0 {
        text +=
            &format!("this machine was too busy to send {}\n", plural(report.skipped, "datagram"));
    }
    text += &style::dim("Rates are of the payload. Jitter: RFC 3550 section 6.4.1.");
    text.push('\n');
    text
}

/// Datagrams of `send -u` in JSON: times in seconds, rates in bytes per second.
pub fn udp(report: &UdpReport) -> Value {
    let receiver = report.receiver;
    json!({
        "reverse": report.reverse,
        "local": report.local,
        "peer": report.peer,
        "end": report.end,
        "sent": report.sent,
        "bytes": report.bytes,
        "length": report.length,
        "refused": report.refused,
        "skipped": report.skipped,
        "limited": report.limited.map(|rate| rate.bps() as f64 / 8.0),
        "began_s": report.began.as_secs_f64(),
        "seconds": report.seconds.as_secs_f64(),
        "received": receiver.map(|receiver| receiver.datagrams),
        "received_bytes": receiver.map(|receiver| receiver.bytes),
        "lost": report.lost(),
        "reordered": receiver.map(|receiver| receiver.reordered),
        "duplicates": receiver.map(|receiver| receiver.duplicates),
        "jitter_s": receiver.map(|receiver| receiver.jitter.as_secs_f64()),
    })
}

/// A connection of `lasthop load`, `send -R` or `send -u` on one line; none for a connection that was opened only for its
/// handshake.
pub fn served_line(served: &Served, units: Units) -> Option<String> {
    let Served { number, peer, bytes, end, .. } = served;
    if let Some(refusal) = served.refused {
        return Some(format!("{number}  {peer}  refused: {refusal}\n"));
    }
    if served.role == Some(Role::Echo) && served.bytes == 0 {
        return None;
    }
    let role = served.role.map(|role| role.to_string()).unwrap_or_default();
    let time = seconds(served.seconds);
    let throughput =
        (served.seconds != Span::ZERO).then(|| served.bytes as f64 / served.seconds.as_secs_f64());
    let rate = rate(throughput, units);
    let name = units.name();
    Some(format!("{number}  {peer}  {role}  {bytes} B  {time} s  {rate} {name}  {end}\n"))
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
        "file": received.file,
    });
    format::DISCARD.line(&value)
}
