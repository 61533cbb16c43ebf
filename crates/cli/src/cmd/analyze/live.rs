//! A live capture at an interface.

use std::io::ErrorKind;

use lasthop_analyze::{Analyzer, Config};
use lasthop_live::sniff::Sniffer;
use lasthop_observe::capture::{Decoder, Frame, LinkType};
use lasthop_proto::units::{Span, Time};
use lasthop_study::capture::Capture;

use crate::failure::Failure;
use crate::stop::Stop;

/// Interval of checks for the end.
const LOOK: Span = Span::millis(100);

/// Captures at `interface` for `length` or until Ctrl-C, and analyses the packets.
pub fn watch(interface: &str, length: Option<Span>, verify: bool) -> Result<Capture, Failure> {
    let help = |kind| match kind {
        ErrorKind::PermissionDenied => {
            "packet sockets need the capability CAP_NET_RAW: run it as root, or give it to the program: \
             `sudo setcap cap_net_raw+ep $(realpath \"$(command -v lasthop)\")` (every user of this machine may \
             capture then)"
        }
        ErrorKind::Unsupported => "`tcpdump -i NAME -w FILE` takes a capture of any interface",
        _ => "`ip link` shows the interfaces",
    };
    let failed =
        |error: std::io::Error| Failure::input(format!("{interface}: {error}"), help(error.kind()));
    let mut sniffer = Sniffer::open(interface).map_err(failed)?;
    let stop = Stop::listen()?;
    if length.is_none() {
        eprintln!("capturing at {interface}; Ctrl-C ends it and prints the result");
    }
    let mut analyzer = Analyzer::new(Config { verify, ..Config::default() });
    let mut decoder = Decoder::new(verify);
    loop {
        let left = length.map(|length| Span(length.0.saturating_sub(sniffer.elapsed().0)));
        if stop.requested() || left == Some(Span::ZERO) {
            break;
        }
        sniffer
            .take(left.map_or(LOOK, |left| left.min(LOOK)), |at, bytes| {
                let (link, wire_len) = (LinkType::ETHERNET, bytes.len() as u32);
                let frame = Frame { at, link, bytes, wire_len, ..Frame::default() };
                analyzer.on_link(frame.link_id());
                decoder.frame(&frame, |content| analyzer.content(at, content));
            })
            .map_err(failed)?;
    }
    decoder.finish(|content| analyzer.content(Time::ZERO, content));
    let mut analysis = analyzer.finish();
    analysis.missed_packets = sniffer.take_drops().map_err(failed)?.into();
    Ok(Capture { file: interface.to_owned(), analysis, left_out: 0 })
}
