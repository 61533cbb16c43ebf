//! A time-sequence plot for xplot, in the style of tcptrace.
//!
//! White strokes are segments from their first byte to their last. Red ones with an R are retransmissions, an O marks
//! reordering. The green line is the cumulative ACK with a tick at each duplicate, the yellow line the right edge of
//! the receive window.

use std::fmt::Write as _;

use lasthop_analyze::PointKind;

use super::{Transfer, seconds};

/// The plot as `.xpl`: seconds from the first packet of the connection, bytes from its SYN.
pub fn xplot(transfer: &Transfer<'_>) -> String {
    let at_s = |at| format!("{:.6}", seconds(transfer.connection.began, at));
    let mut text = format!(
        "dtime signed\ntitle\n{} (time sequence graph)\nxlabel\ntime\nylabel\nsequence offset\n",
        transfer.title().replace(' ', "_")
    );
    let mut acked: Option<(String, i64)> = None;
    for point in &transfer.data.points {
        let (at, from) = (at_s(point.at), point.offset);
        let to = from + i64::from(point.len);
        let segment = |colour: &str, mark: &str| {
            let label =
                if mark.is_empty() { String::new() } else { format!("atext {at} {to}\n{mark}\n") };
            format!(
                "{colour}\n{label}line {at} {from} {at} {to}\ndarrow {at} {to}\nuarrow {at} {from}\n"
            )
        };
        // Writing to a string cannot fail.
        let _ = match point.kind {
            PointKind::Data => write!(text, "{}", segment("white", "")),
            PointKind::Retransmission => write!(text, "{}", segment("red", "R")),
            PointKind::OutOfOrder => write!(text, "{}", segment("white", "O")),
            PointKind::DuplicateAck => writeln!(text, "green\ndtick {at} {from}"),
            PointKind::Ack => {
                let before = acked.replace((at.clone(), from));
                let line = before.map_or(String::new(), |(then, held)| {
                    format!("line {then} {held} {at} {held}\nline {at} {held} {at} {from}\n")
                });
                write!(text, "green\n{line}utick {at} {from}\n")
            }
        };
    }
    let mut edge: Option<(String, i64)> = None;
    for flight in &transfer.data.over_time.in_flight.kept {
        let Some(window) = flight.window else { continue };
        let (at, to) = (at_s(flight.at), flight.acked.saturating_add_unsigned(window));
        if let Some((then, held)) = &edge
            && *held != to
        {
            let _ = writeln!(
                text,
                "yellow\nline {then} {held} {at} {held}\nline {at} {held} {at} {to}"
            );
        } else if edge.is_some() {
            continue;
        }
        edge = Some((at, to));
    }
    text + "go\n"
}
