//! Lines of `trace_pipe`, with the option `fields` set: every field of the event as `name=value`.
//!
//! ```text
//!           <idle>-0       [001] ..s2.  6496.122235: tcp_cong_state_set: skaddr=0xffff888213719bc0 (-131...) sport=...
//! CPU:0 [LOST 31 EVENTS]
//! ```
//!
//! The process name in front may contain any bytes, but has 16 columns.

/// A parsed line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// An event of one of the enabled tracepoints.
    Event(Raw),
    /// Number of events that left the ring buffer unread.
    Lost(u64),
    /// An enabled tracepoint with an unreadable field.
    Damaged,
    /// Any other line.
    Other,
}

/// An event of a tracepoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    /// Time in nanoseconds of the monotonic clock; the resolution is one microsecond.
    pub at: u64,
    /// The thread that ran at that time, which may be unrelated.
    pub thread: i32,
    /// Kernel address of the socket: constant during the socket's lifetime.
    pub socket: u64,
    /// Local port.
    pub port: u16,
    /// Tracepoint and fields.
    pub point: Point,
}

/// A tracepoint with its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// `inet_sock_set_state` to SYN-SENT: the named thread opens a connection.
    Opening,
    /// `tcp_cong_state_set` with the number of the state; also emitted if the state is unchanged.
    State(u8),
    /// `tcp_probe`: a segment arrived on an established connection. Shows the control block before it.
    Probe(Probe),
}

/// The control block in a `tcp_probe`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The socket's cookie.
    pub cookie: u64,
    /// Next sequence number to send.
    pub snd_nxt: u32,
    /// Oldest unacknowledged sequence number.
    pub snd_una: u32,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments.
    pub ssthresh: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt: u32,
}

/// The enabled tracepoints, with their groups and required fields.
pub const POINTS: [(&str, &str, &[&str]); 3] = [
    ("sock", "inet_sock_set_state", &["skaddr", "newstate", "sport"]),
    ("tcp", "tcp_cong_state_set", &["skaddr", "sport", "cong_state"]),
    (
        "tcp",
        "tcp_probe",
        &[
            "sport",
            "snd_nxt",
            "snd_una",
            "snd_cwnd",
            "ssthresh",
            "snd_wnd",
            "srtt",
            "sock_cookie",
            "skaddr",
        ],
    ),
];

/// The first of `required` that is missing in a tracepoint's `format`.
pub fn missing<'a>(format: &str, required: &[&'a str]) -> Option<&'a str> {
    let names: Vec<&str> = format
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("field:")?.split(';').next())
        .filter_map(|declaration| declaration.rsplit([' ', '*']).next())
        .map(|name| name.split('[').next().unwrap_or(name))
        .collect();
    required.iter().copied().find(|name| !names.contains(name))
}

/// Parses a line, with or without its newline.
pub fn parse(line: &[u8]) -> Line {
    if let Some(lost) = lost(line) {
        return Line::Lost(lost);
    }
    event(line).unwrap_or(Line::Other)
}

/// `CPU:0 [LOST 31 EVENTS]`, or `[LOST EVENTS]` if the kernel did not count them.
fn lost(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let text = text.strip_prefix("CPU:")?.split_once(" [LOST ")?.1.strip_suffix("EVENTS]")?.trim();
    if text.is_empty() { Some(1) } else { text.parse().ok() }
}

/// `None` for any other tracepoint.
fn event(line: &[u8]) -> Option<Line> {
    // `%16s-%-7d`: the text before the thread's number is unused and untrusted.
    let rest = line.get(16..)?.strip_prefix(b"-")?;
    let rest = std::str::from_utf8(rest).ok()?;
    let (thread, rest) = rest.split_once(' ')?;
    let thread = thread.parse().ok()?;
    let rest = rest.trim_start().strip_prefix('[')?;
    let (_cpu, rest) = rest.split_once(']')?;
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (at, rest) = rest.trim_start().split_once(": ")?;
    let (name, fields) = rest.split_once(':')?;
    if !POINTS.iter().any(|(_, point, _)| *point == name) {
        return None;
    }
    let read = || {
        let field = |name| field(fields, name);
        let number = |name| u32::try_from(field(name)?).ok();
        let point = match name {
            "inet_sock_set_state" => match field("newstate")? {
                2 => Point::Opening,
                _ => return Some(Line::Other),
            },
            "tcp_cong_state_set" => Point::State(u8::try_from(field("cong_state")?).ok()?),
            _ => Point::Probe(Probe {
                cookie: field("sock_cookie")?,
                snd_nxt: number("snd_nxt")?,
                snd_una: number("snd_una")?,
                cwnd: number("snd_cwnd")?,
                ssthresh: number("ssthresh")?,
                snd_wnd: number("snd_wnd")?,
                srtt: number("srtt")?,
            }),
        };
        let port = u16::try_from(field("sport")?).ok()?;
        Some(Line::Event(Raw {
            at: nanoseconds(at)?,
            thread,
            socket: field("skaddr")?,
            port,
            point,
        }))
    };
    Some(read().unwrap_or(Line::Damaged))
}

/// Parses seconds such as `6496.122235`.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    if micros.len() != 6 {
        return None;
    }
    let micros: u64 = micros.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(micros * 1000)
}

/// Parses a field: `0x1f (31)`, or `(31)` for one byte. The decimal form may be signed, so the hexadecimal
/// one is used.
fn field(fields: &str, name: &str) -> Option<u64> {
    let mut words = fields.split_ascii_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    if let Some(hex) = value.strip_prefix("0x") {
        // At the end of the text the number may be truncated.
        return u64::from_str_radix(hex, 16).ok().filter(|_| words.next().is_some());
    }
    // A printable byte appears as a character before the bracket.
    value.rsplit_once('(')?.1.strip_suffix(')')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPENING: &str = "         python3-9407    [001] .....  6496.021836: inet_sock_set_state: \
        skaddr=0xffff88821371a500 (-131382723369728) oldstate=0x7 (7) newstate=0x2 (2) sport=0x4e20 (20000) \
        dport=0x9 (9) family=0x2 (2) protocol=0x6 (6) saddr=0x100007f (16777343) saddr_v6=<INVALID-SIZE>\n";
    const STATE: &str = "          <idle>-0       [001] ..s2.  6496.021925: tcp_cong_state_set: \
        skaddr=0xffff88821371a500 (-131382723369728) sport=0x4e20 (20000) dport=0x9 (9) family=0x2 (2) \
        daddr_v6=<INVALID-SIZE> cong_state=(4)\n";
    const PROBE: &str = "          <idle>-0       [000] ..s2.  6496.022050: tcp_probe: saddr=<INVALID-SIZE> \
        daddr=<INVALID-SIZE> sport=0x4e20 (20000) dport=0x9 (9) family=0x2 (2) mark=0x0 (0) data_len=0x0 (0) \
        snd_nxt=0x9fec1c18 (-1611916264) snd_una=0x4ac87667 (1254651495) snd_cwnd=0xa (10) \
        ssthresh=0x7fffffff (2147483647) snd_wnd=0xffcb (65483) srtt=0x1c (28) rcv_wnd=0x10000 (65536) \
        sock_cookie=0x5d (93) skbaddr=0xffff88816d244000 (-131385513459712) \
        skaddr=0xffff88821371a500 (-131382723369728)\n";

    #[test]
    fn lines_of_other_tracepoints_parse_as_other() {
        for name in ["tcp_probes", "tcp_send_reset", "sched_switch", ""] {
            let line = PROBE.replace("tcp_probe", name);
            assert!(matches!(parse(line.as_bytes()), Line::Other), "{name}");
        }
    }

    fn raw(line: &str) -> Raw {
        match parse(line.as_bytes()) {
            Line::Event(raw) => raw,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_as_the_kernel_writes_them() {
        let opening = raw(OPENING);
        assert_eq!((opening.at, opening.thread), (6_496_021_836_000, 9407));
        assert_eq!((opening.socket, opening.port), (0xffff_8882_1371_a500, 20_000));
        assert_eq!(opening.point, Point::Opening);
        assert_eq!(raw(STATE).point, Point::State(4));
        let probe = Probe {
            cookie: 93,
            snd_nxt: 0x9fec_1c18,
            snd_una: 0x4ac8_7667,
            cwnd: 10,
            ssthresh: 0x7fff_ffff,
            snd_wnd: 65_483,
            srtt: 28,
        };
        assert_eq!(raw(PROBE).point, Point::Probe(probe));
        assert_eq!(raw(PROBE).socket, opening.socket);
    }

    #[test]
    fn lost_event_lines_are_parsed() {
        assert_eq!(parse(b"CPU:0 [LOST 31 EVENTS]\n"), Line::Lost(31));
        assert_eq!(parse(b"CPU:12 [LOST EVENTS]"), Line::Lost(1));
        assert_eq!(parse(b"CPU:0 [LOST x EVENTS]"), Line::Other);
    }

    #[test]
    fn a_thread_name_is_not_parsed_as_an_event() {
        let name = ": tcp_probe: x=1";
        assert_eq!(name.len(), 16);
        let line = format!("{name}{}", &STATE[16..]);
        assert_eq!(raw(&line).point, Point::State(4));
        let mut bytes = line.into_bytes();
        bytes[..16].fill(0xff);
        assert!(matches!(parse(&bytes), Line::Event(_)));
    }

    #[test]
    fn a_truncated_line_yields_no_wrong_event() {
        for line in [OPENING, STATE, PROBE] {
            for length in 0..line.len() {
                let found = parse(&line.as_bytes()[..length]);
                if let Line::Event(found) = found {
                    // Only unused fields were cut, or the last digits of a number in brackets.
                    assert_eq!(found, raw(line), "{}", &line[..length]);
                }
            }
        }
    }

    #[test]
    fn formats_are_searched_for_fields() {
        let format = "name: tcp_probe\nformat:\n\tfield:__u16 sport;\toffset:64;\n\
            \tfield:__u8 saddr[28];\toffset:8;\n\tfield:const void * skaddr;\toffset:128;\n\nprint fmt: \"x\"";
        assert_eq!(missing(format, &["sport", "skaddr", "saddr"]), None);
        assert_eq!(missing(format, &["sport", "sock_cookie"]), Some("sock_cookie"));
        assert_eq!(missing("", &["sport"]), Some("sport"));
    }

    /// Changes each byte of each line in turn: the line gives the same fields, or counts as damaged.
    #[test]
    fn invalid_field_values_mark_a_line_as_damaged() {
        for (line, name, value) in [
            (OPENING, "skaddr", "0x7"),
            (OPENING, "newstate", "0x1"),
            (OPENING, "sport", "0x9999999"),
            (STATE, "cong_state", "(300)"),
            (STATE, "sport", "0x10000"),
            (PROBE, "snd_nxt", "0x1ffffffff"),
            (PROBE, "snd_una", "0x1ffffffff"),
            (PROBE, "snd_cwnd", "0x1ffffffff"),
            (PROBE, "ssthresh", "0x1ffffffff"),
            (PROBE, "snd_wnd", "0x1ffffffff"),
            (PROBE, "srtt", "0x1ffffffff"),
            (PROBE, "sock_cookie", "zz"),
        ] {
            let from = line.find(&format!(" {name}=")).expect("it is there") + name.len() + 2;
            let to = from + line[from..].find(' ').unwrap_or(line.len() - 1 - from);
            let changed = format!("{}{value}{}", &line[..from], &line[to..]);
            let expected = match name {
                // Another socket, and a state other than opening.
                "skaddr" => Line::Event(Raw { socket: 7, ..raw(OPENING) }),
                "newstate" => Line::Other,
                _ => Line::Damaged,
            };
            assert_eq!(parse(changed.as_bytes()), expected, "{changed}");
        }
        let times =
            [("6496.02183", None), ("6496.0218360", None), ("7.000001", Some(7_000_001_000))];
        for (time, expected) in times {
            let line = OPENING.replace("6496.021836", time);
            let found = match parse(line.as_bytes()) {
                Line::Event(raw) => Some(raw.at),
                other => {
                    assert_eq!(other, Line::Damaged, "{time}");
                    None
                }
            };
            assert_eq!(found, expected, "{time}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            parse(&bytes);
        }

        #[test]
        fn damaged_lines_are_parsed_without_panic(
            which in 0_usize..3,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = [OPENING, STATE, PROBE][which].as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            parse(&bytes);
        }
    }
}
