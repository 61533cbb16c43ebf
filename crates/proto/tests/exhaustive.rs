//! Small domains, whole: sequence numbers, headers, options and receive windows.
//!
//! What depends on a difference only is tried for every difference near a boundary and for a grid between them, from
//! origins that include every wrap.

use std::sync::Arc;

use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::{Connection, TcpConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::options::{self, walk};
use lasthop_proto::wire::parse::{Mode, parse, view};
use lasthop_proto::wire::{Addr, Body, Flags, FlowKey, Segment, Seq, Transport};

/// Numbers around every boundary of signed and unsigned 32 bits, and a grid whose step is odd.
fn numbers() -> Vec<u32> {
    let near = |boundary: u32| (0..=5).map(move |i| boundary.wrapping_add(i).wrapping_sub(2));
    let boundaries = [0, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX];
    let grid = (0..u32::MAX).step_by(40_000_003);
    boundaries.into_iter().flat_map(near).chain(grid).collect()
}

#[test]
fn sequence_numbers_compare_as_stream_offsets_do() {
    for origin in numbers() {
        for delta in numbers() {
            let (a, b) = (Seq(origin), Seq(origin) + delta);
            let ahead = i64::from(delta as i32);
            assert_eq!(i64::from(b - a), ahead, "{origin} {delta}");
            // Numbers that lie half the space apart have no order.
            if delta != 1 << 31 {
                assert_eq!(a.lt(b), ahead > 0, "{origin} {delta}");
                assert_eq!(a.le(b), ahead >= 0, "{origin} {delta}");
                assert_eq!(a.lt(b), !b.le(a), "{origin} {delta}");
            }
        }
    }
}

#[test]
fn every_offset_within_half_the_number_space_is_found_again() {
    let nears = [0_u64, 1, 1000, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 7];
    for origin in numbers() {
        for near in nears {
            for delta in numbers() {
                let delta = i64::from(delta as i32);
                let offset = near.checked_add_signed(delta);
                let seq = Seq(origin) + (near as i64).wrapping_add(delta) as u32;
                assert_eq!(seq.unwrap_near(Seq(origin), near), offset, "{origin} {near} {delta}");
            }
        }
    }
}

/// An IPv4 packet with a TCP header; `options` follow it, then `payload` bytes.
fn bytes(options: &[u8], payload: usize) -> Vec<u8> {
    let len = 40 + options.len() + payload;
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    (bytes[8], bytes[9]) = (64, 6);
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[32] = ((20 + options.len()) as u8 / 4) << 4;
    bytes[40..40 + options.len()].copy_from_slice(options);
    bytes
}

const UNVERIFIED: Mode = Mode { verify: false, wire_len: None };

#[test]
fn every_offset_and_flag_of_a_tcp_header_is_read_or_refused() {
    // No payload, as much as one option word, and more than any header.
    for payload in [0, 4, 60] {
        let mut packet = bytes(&[], payload);
        for word in 0..=u16::MAX {
            packet[32..34].copy_from_slice(&word.to_be_bytes());
            let header = usize::from(word >> 12) * 4;
            let read = view(&packet, UNVERIFIED);
            assert_eq!(read.is_ok(), (20..=20 + payload).contains(&header), "{word:04x} {payload}");
            let Ok(read) = read else { continue };
            let Transport::Tcp(segment) = &read.transport else { panic!("{word:04x}") };
            assert_eq!(segment.flags.0, word & 0x01ff, "{word:04x}");
            assert_eq!(read.body_at, 20 + header, "{word:04x}");
            assert_eq!(read.body_len as usize, 20 + payload - header, "{word:04x}");
        }
    }
}

#[test]
fn every_length_of_an_ip_header_and_packet_is_read_or_refused() {
    let mut packet = bytes(&[], 44);
    for first in 0..=u8::MAX {
        for total in 0..=packet.len() as u16 + 3 {
            packet[0] = first;
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            let (total, header) = (usize::from(total), usize::from(first & 15) * 4);
            for have in [packet.len(), total.min(packet.len()), 20, 19, 0] {
                let read = view(&packet[..have], UNVERIFIED);
                if first >> 4 != 4 {
                    // The bytes are no IPv6 packet either: its length field is that of nothing.
                    assert!(first >> 4 == 6 || read.is_err(), "{first:02x} {total} {have}");
                    continue;
                }
                let Ok(read) = read else {
                    // The TCP header, whose offset is 5, does not fit, or the IP header is too short.
                    let fits = header >= 20 && total <= have && total >= header + 20;
                    let at = header + 12;
                    let offset = packet.get(at).map_or(0, |byte| usize::from(byte >> 4) * 4);
                    assert!(!fits || offset < 20 || header + offset > total, "{first:02x} {total}");
                    continue;
                };
                assert!((20..=total).contains(&header) && total <= have, "{first:02x} {total}");
                assert!(read.body_at + read.body_len as usize <= total, "{first:02x} {total}");
            }
        }
    }
}

#[test]
fn every_beginning_of_options_is_walked_once_and_to_its_end() {
    let mut area = [0; 8];
    // After the first three bytes: zeros (end of list), or a complete option.
    for rest in [[0; 5], [1, 1, 2, 4, 1]] {
        area[3..].copy_from_slice(&rest);
        for first in 0..1 << 24 {
            area[..3].copy_from_slice(&u32::to_le_bytes(first)[..3]);
            let mut at = 0;
            for option in walk(&area) {
                let Ok(option) = option else {
                    at = area.len() + 1;
                    continue;
                };
                assert!(at <= area.len(), "{area:?}: something follows an error");
                let begin = option.bytes.as_ptr() as usize - area.as_ptr() as usize;
                assert!(begin >= at && area[at..begin].iter().all(|byte| *byte == 1), "{area:?}");
                assert_eq!(option.bytes.len(), usize::from(area[begin + 1]), "{area:?}");
                at = begin + option.bytes.len();
            }
        }
    }
}

#[test]
fn every_kind_and_length_of_an_option_is_read_and_written_again() {
    for kind in 2..=u8::MAX {
        for len in 0..=40 {
            for fill in [0, 1, 0x55, 0xff] {
                let mut area = [fill; 40];
                (area[0], area[1]) = (kind, len);
                area[usize::from(len).max(2)..].fill(0);
                let frame: Arc<[u8]> = bytes(&area, 5).into();
                let read = options::read(&area);
                assert_eq!(read.error.is_some(), len < 2, "{kind} {len} {fill}");
                let parsed = parse(&frame, 0, false);
                assert_eq!(parsed.is_err(), len < 2, "{kind} {len} {fill}");
                let Ok(packet) = parsed else { continue };
                let segment = packet.segment().expect("TCP");
                assert_eq!(segment.timestamps.is_some(), read.timestamps.is_some());
                assert_eq!(packet.body.len(), 5, "{kind} {len} {fill}");
                let mut again = Vec::new();
                let emitted = lasthop_proto::wire::emit::emit(&packet, &mut again);
                if emitted.is_err() {
                    continue;
                }
                let written = view(&again, UNVERIFIED).expect("our own bytes");
                let Transport::Tcp(written) = written.transport else { panic!("{kind} {len}") };
                assert_eq!(&written, segment, "{kind} {len} {fill}");
            }
        }
    }
}

const LATER: Time = Time(60_000_000_000);

/// Bytes that came before the window.
const BEFORE: u32 = 20;

/// A connection with a receive buffer of `buffer` bytes that has received [`BEFORE`] bytes, and its window: what it advertised
/// last may be less than the buffer (RFC 9293, 3.8.6.2.2).
fn established(buffer: u32, irs: Seq) -> (Connection, i64) {
    let config = TcpConfig { mss: 1000, recv_buffer: buffer, ..TcpConfig::rfc() };
    let beats = Beats {
        slow: Beat::new(Span::millis(500), Span::ZERO),
        fast: Beat::new(Span::millis(200), Span::ZERO),
    };
    let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
    let flow = FlowKey { src, dst, src_port: 1024, dst_port: 9 };
    let settings = Settings::new(config, beats);
    let mut connection = Connection::new(settings, flow, Side::Right, Seq(77), 1);
    let mut out = Out::new(Interest::METRICS);
    out.begin(Default::default(), Time::ZERO);
    connection.open(Time::ZERO, None);
    connection.on_wake(Time::ZERO, &mut out);
    let mut answer = Segment::new(9, 1024, irs, Seq(78), Flags::SYN | Flags::ACK);
    answer.window = 1000;
    connection.on_segment(Time(1), &answer, Body::EMPTY, &mut out);
    for offset in 0..BEFORE {
        let segment = near(irs, i64::from(offset) - i64::from(BEFORE), Flags::ACK);
        let body = Body::Pattern { stream: 7, len: 1, offset: offset.into() };
        let now = Time::ZERO + Span::secs(1 + u64::from(offset));
        connection.on_segment(now, &segment, body, &mut out);
        // The delayed ACK moves the window.
        while let Some(wake) = connection.next_wake().filter(|wake| *wake < now + Span::millis(900))
        {
            connection.on_wake(wake, &mut out);
        }
    }
    assert_eq!(connection.delivered(), BEFORE.into());
    let last = out.sends.last().expect("an ACK").1.segment().expect("TCP").clone();
    assert_eq!(last.ack, irs + 1 + BEFORE);
    assert!(last.window > 0 && u32::from(last.window) <= buffer, "{buffer}: {last:?}");
    (connection, last.window.into())
}

/// A segment `from` bytes behind the left edge of the window.
fn near(irs: Seq, from: i64, flags: Flags) -> Segment {
    let mut segment = Segment::new(9, 1024, irs + 1 + BEFORE + from as u32, Seq(78), flags);
    segment.window = 1000;
    segment
}

/// Every segment of up to 11 bytes from 11 bytes before the window to 11 behind it, with windows of 1 to 9 bytes.
#[test]
fn every_segment_near_a_small_window_is_cut_to_it() {
    for (buffer, irs) in
        (1..=9).zip([0, 7, u32::MAX, u32::MAX - 1, u32::MAX - 5].into_iter().cycle())
    {
        let (fresh, window) = established(buffer, Seq(irs));
        for from in -11..=window + 11 {
            for len in 0..=11_u32 {
                let mut connection = fresh.clone();
                let mut out = Out::new(Interest::METRICS);
                out.begin(Default::default(), LATER);
                let segment = near(Seq(irs), from, Flags::ACK);
                let offset = (i64::from(BEFORE) + from) as u64;
                let body = Body::Pattern { stream: 7, len, offset };
                connection.on_segment(LATER, &segment, body, &mut out);
                let end = (from + i64::from(len)).min(window);
                let new = if from <= 0 { end.max(0) } else { 0 };
                let delivered = connection.delivered() as i64 - i64::from(BEFORE);
                assert_eq!(delivered, new, "window {window}: {from}+{len}");
                assert!(!connection.is_aborted(), "window {window}: {from}+{len}");
            }
        }
    }
}

/// RFC 9293, 3.10.7.4 and RFC 5961, 3.2, for every sequence number near the window.
#[test]
fn only_an_exact_reset_resets() {
    for (buffer, irs) in
        (1..=9).zip([0, 7, u32::MAX, u32::MAX - 1, u32::MAX - 5].into_iter().cycle())
    {
        let (fresh, window) = established(buffer, Seq(irs));
        for from in -11..=window + 11 {
            for flags in [Flags::RST, Flags::RST | Flags::ACK, Flags::SYN, Flags::SYN | Flags::ACK]
            {
                let mut connection = fresh.clone();
                let mut out = Out::new(Interest::METRICS);
                out.begin(Default::default(), LATER);
                let segment = near(Seq(irs), from, flags);
                connection.on_segment(LATER, &segment, Body::EMPTY, &mut out);
                let resets = flags.has(Flags::RST);
                assert_eq!(
                    connection.is_aborted(),
                    resets && from == 0,
                    "{window}: {from} {flags:?}"
                );
                let challenged = if resets { from > 0 && from <= window } else { true };
                assert_eq!(out.sends.len(), usize::from(challenged), "{window}: {from} {flags:?}");
            }
        }
    }
}
