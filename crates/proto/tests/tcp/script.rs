//! Scripts of segments in virtual time, with no tolerance, for one end of a connection.
//!
//! A script is the complete record of one [`Connection`]. Each line has a time, an actor, and an action:
//!
//! ```text
//! 0ms    open 5000                   the application sends 5000 bytes and closes (`open`: no end)
//! 0ms    > S mss 1460                the connection sends a SYN
//! 10ms   < S. ack 1 mss 1460         the peer's answer arrives
//! 10ms   note established            the connection reports
//! 10ms   > . 1+1460 ack 1            bytes 1 to 1460
//! 20ms   tcb cwnd 2920 ssthresh 9000 values of the control block
//! 900ms  end                         nothing else happens until here
//! ```
//!
//! `open`, `stop-reading`, `read N`, `handoff` (the host has entered another cell) and `<` lines are the
//! input; all others are the expected output. Flags are tcpdump's: `S`, `F`, `R`, `P`, and `.` for ACK.
//! Numbers count from the initial sequence number of the side they belong to. `at N` is the sequence number
//! of a segment without data if it is not 1 (0 for a SYN). `win N` is the header's window if it is not the
//! usual one: the whole receive buffer on output, 32000 on input. Options: `mss N`, `wscale N`, `sackok`,
//! `ts VALUE ECHO` (VALUE from the sender's own zero), `sack A-B`, `ackp`, `eln`, `marks`, `smart` and `scps`
//! (permitted), `snack OFFSET+SIZE/BITS` (a hole and, with a slash, the bit vector after it), `partial`,
//! `lost N`, `marked`, `caused N`. A `<` line with `damaged` fails the TCP checksum. A `!` line is a message
//! of a base station about the segment at a position, `bad-state N` or `quench N`; the text after its `=>` is
//! the reason why it is ignored. Flags `E` and `W` are ECE and CWR. Flag `e` is AE. `ce` is a segment that a
//! router marked, `ect` and `ect1` are ones that may be marked; `counts E0 CE E1` are the byte counters of
//! accurate ECN. Options of ACK congestion control: `acc` (permitted), `told WINDOW MARKS ACKED`. Options
//! that open: `cc N`, `ccnew N`, `ccecho N` (counts of T/TCP), `cookie HEX` and `cookie ask` (Fast Open). The
//! text after `=>` on a `>` line is the cause of a retransmission. `#` begins a comment.
//!
//! Some lines are abbreviations:
//!
//! ```text
//! 10ms   established 5000 sackok     `open 5000` and a SYN at 0, the answer now; both with `mss 1000 sackok`
//! 10ms   established ackp / win 2000 the peer's answer has `mss 1000 win 2000` instead
//! 10ms   accepted sackok / marks     the peer's SYN at 0 with `mss 1000 marks`, our SYN-ACK, and the ACK now
//! 10ms   > . 1+1000 x3 ack 1         1+1000, 1001+1000 and 2001+1000
//! 10ms   > . 1+1000 x4 pairs ack 1   the same for four, the second and the fourth with PSH
//! ```

use lasthop_proto::event::{EventKind, Interest, Op};
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::tcp::opening::Memory;
use lasthop_proto::tcp::rtt::Beat;
use lasthop_proto::tcp::settings::{Beats, Settings};
use lasthop_proto::tcp::{Connection, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::opening::{Cookie, Count};
use lasthop_proto::wire::{
    Acc, Ackp, Addr, Body, CE, ECT, ECT1, EcnCounts, Eln, Flags, FlowKey, Nack, Notice, SackBlocks,
    Scps, Segment, Seq, Smart, Snack, Timestamps, Transport,
};

use crate::record::{compare, flags, letters, lines, words};

/// Phases of a BSD host's ticks after each multiple of their period.
pub const SLOW_PHASE: Span = Span::millis(130);
pub const FAST_PHASE: Span = Span::millis(70);

const PEER_WINDOW: u16 = 32_000;

/// Plays `script` on a connection of `config` and fails with the whole record if it differs. Several initial
/// sequence numbers are used, so that every script also tests the wrap.
#[track_caller]
pub fn check(config: &TcpConfig, script: &str) {
    check_with(config, None, script);
}

/// Like [`check`], with the host's stored state of its peers.
#[track_caller]
pub fn check_with(config: &TcpConfig, memory: Option<&Memory>, script: &str) {
    for (iss, irs) in [(0, 7000), (u32::MAX - 2000, u32::MAX - 999), (1 << 31, u32::MAX)] {
        let script = full(script);
        let mut player = Player::new(config, Seq(iss), Seq(irs));
        if let Some(memory) = memory {
            player.connection.lend_memory(Box::new(memory.clone()));
        }
        compare(iss, &player.play(&script), &script);
    }
}

/// The lines of a script with abbreviations expanded.
fn full(script: &str) -> Vec<String> {
    let mut full = Vec::new();
    for line in lines(script) {
        match &words(line)[..] {
            [at, "established", more @ ..] => full.extend(established(at, more)),
            [at, "accepted", more @ ..] => full.extend(accepted(at, more)),
            [at, ">", flags, span, times, more @ ..] if times.starts_with('x') => {
                let (first, len) = span.split_once('+').expect(line);
                let (first, len): (u32, u32) = (first.parse().unwrap(), len.parse().unwrap());
                let pairs = more.first() == Some(&"pairs");
                let more = &more[usize::from(pairs)..];
                let rest = more.iter().map(|word| format!(" {word}")).collect::<String>();
                full.extend((0..times[1..].parse().expect(line)).map(|i| {
                    let push = if pairs && i % 2 == 1 { "P" } else { "" };
                    format!("{at} > {push}{flags} {}+{len}{rest}", first + i * len)
                }));
            }
            words => full.push(words.join(" ")),
        }
    }
    full
}

/// The handshake that ends at `at`.
fn established(at: &str, words: &[&str]) -> [String; 4] {
    let (end, options) = match words {
        [end, options @ ..] if end.parse::<u64>().is_ok() => (format!(" {end}"), options),
        options => (String::new(), options),
    };
    let [own, peer] = options_of_ends(options);
    [
        format!("0ms open{end}"),
        format!("0ms > S mss 1000{own}"),
        format!("{at} < S. ack 1 mss 1000{peer}"),
        format!("{at} note Established"),
    ]
}

/// The handshake of a connection that the peer opens, which ends at `at`.
fn accepted(at: &str, options: &[&str]) -> [String; 4] {
    let [own, peer] = options_of_ends(options);
    [
        format!("0ms < S mss 1000{peer}"),
        format!("0ms > S. ack 1 mss 1000{own}"),
        format!("{at} < . ack 1"),
        format!("{at} note Established"),
    ]
}

/// The connection's options and the peer's, which follow a slash if they differ.
fn options_of_ends(words: &[&str]) -> [String; 2] {
    let mut ends = words.split(|word| *word == "/");
    let own = ends.next().unwrap_or_default();
    let peer = ends.next().unwrap_or(own);
    [own, peer].map(|of| of.iter().map(|word| format!(" {word}")).collect())
}

fn stamp(at: Time) -> String {
    let (ms, rest) = (at.0 / 1_000_000, at.0 % 1_000_000);
    if rest == 0 { format!("{ms}ms") } else { format!("{ms}.{:03}ms", rest / 1000) }
}

struct Player {
    connection: Connection,
    out: Out,
    iss: Seq,
    irs: Seq,
    full_window: u32,
    record: Vec<String>,
}

impl Player {
    fn new(config: &TcpConfig, iss: Seq, irs: Seq) -> Player {
        let beats = Beats {
            slow: Beat::new(Span::millis(500), SLOW_PHASE),
            fast: Beat::new(Span::millis(200), FAST_PHASE),
        };
        let flow = FlowKey {
            src: Addr::v4(10, 0, 0, 1),
            dst: Addr::v4(10, 1, 0, 1),
            src_port: 1024,
            dst_port: 9,
        };
        let config = Settings::new(config.clone(), beats);
        Player {
            full_window: config.recv_buffer,
            connection: Connection::new(config, flow, Side::Right, iss, 1),
            out: Out::new(Interest::EVERYTHING),
            iss,
            irs,
            record: Vec::new(),
        }
    }

    fn play(mut self, script: &[String]) -> Vec<String> {
        for line in script {
            let words = words(line);
            let at =
                Time::ZERO + words[0].parse::<Span>().unwrap_or_else(|e| panic!("{line}: {e}"));
            let own = matches!(words[1], ">" | "note");
            if own {
                continue;
            }
            self.wake_until(at);
            let mut entry = words.join(" ");
            if words[1] == "tcb" {
                entry = format!("{} tcb {}", words[0], self.control_block(&words[2..]));
            }
            self.record.push(entry);
            self.out.begin(Default::default(), at);
            let number = |i: usize| words.get(i).map(|w| w.parse::<u64>().expect(line));
            match words[1] {
                "open" => {
                    self.connection.open(at, number(2).map(Bytes));
                    self.wake_until(at);
                }
                "stop-reading" => self.connection.set_reading(false),
                "handoff" => self.connection.on_handoff(at, &mut self.out),
                "read" => self.connection.read(at, number(2).expect(line), &mut self.out),
                "<" => self.put(at, &words[2..]),
                "!" => self.notice(at, words[2], number(3).expect(line) as u32),
                "tcb" | "end" => {}
                other => panic!("{line}: what is {other}?"),
            }
            self.drain();
        }
        self.record
    }

    fn wake_until(&mut self, at: Time) {
        while let Some(wake) = self.connection.next_wake().filter(|wake| *wake <= at) {
            self.out.begin(Default::default(), wake);
            self.connection.on_wake(wake, &mut self.out);
            let next = self.connection.next_wake();
            assert!(next.is_none_or(|next| next > wake), "woken at {wake} again and again");
            self.drain();
        }
    }

    /// The current values of the keys in `keys`.
    fn control_block(&self, keys: &[&str]) -> String {
        let tcb = self.connection.control_block();
        let values = keys.chunks(2).map(|pair| {
            let value = match pair[0] {
                "cwnd" => tcb.cwnd.to_string(),
                "ssthresh" => tcb.ssthresh.to_string(),
                "una" => tcb.snd_una.to_string(),
                "rto" => tcb.rto.to_string(),
                "backoff" => tcb.backoff.to_string(),
                "state" => format!("{:?}", self.connection.state()),
                other => panic!("no {other} in the control block"),
            };
            format!("{} {value}", pair[0])
        });
        values.collect::<Vec<_>>().join(" ")
    }

    /// Delivers a base station's message about the segment at `position`.
    fn notice(&mut self, at: Time, name: &str, position: u32) {
        let notice = match name {
            "bad-state" => Notice::BadState,
            "quench" => Notice::SourceQuench,
            other => panic!("what is {other}?"),
        };
        let answer = self.connection.heeds(notice, self.iss + position);
        self.connection.on_notice(at, notice, self.iss + position, &mut self.out);
        let line = self.record.pop().unwrap_or_default();
        let line = line.split(" => ").next().unwrap_or_default();
        let why = answer.err().map_or(String::new(), |cause| format!(" => {}", cause.name()));
        self.record.push(format!("{line}{why}"));
    }

    /// Delivers a segment of the peer.
    fn put(&mut self, at: Time, words: &[&str]) {
        let flags = flags(words[0]);
        let first = u32::from(!flags.has(Flags::SYN));
        let mut segment = Segment::new(9, 1024, self.irs + first, Seq(0), flags);
        segment.window = PEER_WINDOW;
        let (mut len, mut offset, mut damaged, mut ecn) = (0, 0, false, 0);
        let mut words = words[1..].iter();
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|w| w.parse::<u32>().ok()).expect(word);
            match *word {
                "ack" => segment.ack = self.iss + number(),
                "at" => segment.seq = self.irs + number(),
                "win" => segment.window = number() as u16,
                "mss" => segment.options_mut().mss = Some(number() as u16),
                "wscale" => segment.options_mut().window_scale = Some(number() as u8),
                "sackok" => segment.options_mut().sack_permitted = true,
                "ts" => {
                    let (value, echo) = (number(), number());
                    segment.timestamps = Some(Timestamps { value, echo: (self.iss + echo).0 });
                }
                "sack" => {
                    let (from, to) = words.next().and_then(|w| w.split_once('-')).expect("A-B");
                    let edge = |s: &str| self.iss + s.parse::<u32>().expect("a number");
                    segment.options_mut().sack.push(edge(from), edge(to));
                }
                "nack" => segment.options_mut().nack = Some(Nack::Permitted),
                "missing" => {
                    let (from, to) = words.next().and_then(|w| w.split_once('-')).expect("A-B");
                    let edge = |s: &str| self.iss + s.parse::<u32>().expect("a number");
                    let mut missing = match segment.options().nack {
                        Some(Nack::Missing(missing)) => missing,
                        _ => SackBlocks::default(),
                    };
                    missing.push(edge(from), edge(to));
                    segment.options_mut().nack = Some(Nack::Missing(missing));
                }
                "ackp" => segment.options_mut().ackp = Some(Ackp::Permitted),
                "eln" => segment.options_mut().eln = Some(Eln::Permitted),
                "partial" => segment.options_mut().ackp = Some(Ackp::Partial),
                "marks" => segment.options_mut().eln = Some(Eln::MarksPermitted),
                "marked" => segment.options_mut().eln = Some(Eln::Marked),
                "smart" => segment.options_mut().smart = Some(Smart::Permitted),
                "scps" => segment.options_mut().scps = Some(Scps::SNACK),
                "snack" => segment.options_mut().snack = words.next().and_then(|w| snack(w)),
                "caused" => {
                    segment.options_mut().smart = Some(Smart::Caused(self.iss + number()));
                }
                "cc" => segment.options_mut().opening.count = Some(Count::Cc(number())),
                "ccnew" => segment.options_mut().opening.count = Some(Count::New(number())),
                "ccecho" => segment.options_mut().opening.echo = Some(number()),
                "cookie" => {
                    segment.options_mut().opening.cookie = words.next().and_then(|w| cookie(w))
                }
                "lost" => segment.options_mut().eln = Some(Eln::Lost(self.iss + number())),
                "damaged" => damaged = true,
                "ce" => ecn = CE,
                "ect" => ecn = ECT,
                "ect1" => ecn = ECT1,
                "counts" => {
                    let counters = [number(), number(), number()];
                    segment.options_mut().ecn = Some(EcnCounts::new(false, counters, 3));
                }
                "acc" => segment.options_mut().acc = Some(Acc::Permitted),
                "told" => {
                    let (segments, marks) = (number() as u16, number() as u8);
                    let acked = self.irs + number();
                    segment.options_mut().acc = Some(Acc::Window { segments, marks, acked });
                }
                span => {
                    let (from, count) = span.split_once('+').unwrap_or_else(|| panic!("{span}?"));
                    let from: u32 = from.parse().unwrap();
                    (len, offset) = (count.parse().unwrap(), u64::from(from) - 1);
                    segment.seq = self.irs + (from - u32::from(flags.has(Flags::SYN)));
                }
            }
        }
        let body = Body::Pattern { stream: 7, len, offset };
        if damaged {
            self.connection.on_damaged(at, &segment, &body, &mut self.out);
        } else {
            self.connection.on_arrival(at, &segment, body, ecn, &mut self.out);
        }
    }

    fn drain(&mut self) {
        let mut sent = core::mem::take(&mut self.out.sends).into_iter();
        for event in core::mem::take(&mut self.out.events) {
            let at = stamp(event.at);
            match event.kind {
                EventKind::Packet { op: Op::Originated(cause), packet, .. } => {
                    assert_eq!(sent.next().expect("a packet").1, packet);
                    let why = match cause.name() {
                        "data" | "ack" | "control" => String::new(),
                        name => format!(" => {name}"),
                    };
                    let ect = match packet.tos {
                        ECT => " ect",
                        ECT1 => " ect1",
                        _ => "",
                    };
                    let Transport::Tcp(segment) = &packet.transport else { panic!("not TCP") };
                    self.record
                        .push(format!("{at} > {}{ect}{why}", self.describe(segment, &packet.body)));
                }
                EventKind::Tcp(tcp) => {
                    let kind = format!("{:?}", tcp.kind);
                    // Every ACK is in the script already.
                    if !matches!(kind.as_str(), "Opening" | "Acked" | "DupAck") {
                        self.record.push(format!("{at} note {kind}"));
                    }
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        assert!(sent.next().is_none(), "sent without saying why");
    }

    /// The line of a sent segment, in the syntax and order of scripts.
    fn describe(&self, s: &Segment, body: &Body) -> String {
        let mut words = Vec::new();
        words.push(letters(s.flags));
        let at = s.seq - self.iss;
        if !body.is_empty() {
            // The SYN has a separate number, before the data.
            let first = at + i32::from(s.flags.has(Flags::SYN));
            words.push(format!("{first}+{}", body.len()));
        } else if at != i32::from(!s.flags.has(Flags::SYN)) {
            words.push(format!("at {at}"));
        }
        if s.flags.has(Flags::ACK) {
            words.push(format!("ack {}", s.ack - self.irs));
        }
        let usual = if s.flags == Flags::RST { 0 } else { self.full_window.min(0xffff) };
        if u32::from(s.window) != usual {
            words.push(format!("win {}", s.window));
        }
        let options = s.options();
        words.extend(options.mss.map(|mss| format!("mss {mss}")));
        words.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
        words.extend(options.sack_permitted.then(|| "sackok".to_owned()));
        words.extend(
            s.timestamps.map(|ts| format!("ts {} {}", ts.value.wrapping_sub(self.iss.0), ts.echo)),
        );
        for (from, to) in options.sack.as_slice() {
            words.push(format!("sack {}-{}", *from - self.irs, *to - self.irs));
        }
        if options.nack == Some(Nack::Permitted) {
            words.push("nack".to_owned());
        }
        words.extend(options.ackp.map(|o| match o {
            Ackp::Permitted => "ackp".to_owned(),
            Ackp::Partial => "partial".to_owned(),
        }));
        words.extend(options.acc.map(|o| match o {
            Acc::Permitted => "acc".to_owned(),
            Acc::Window { segments, marks, acked } => {
                format!("told {segments} {marks} {}", acked - self.iss)
            }
        }));
        words.extend(options.eln.map(|o| match o {
            Eln::Permitted => "eln".to_owned(),
            Eln::Lost(seq) => format!("lost {}", seq - self.irs),
            Eln::MarksPermitted => "marks".to_owned(),
            Eln::Marked => "marked".to_owned(),
        }));
        words.extend(options.smart.map(|o| match o {
            Smart::Permitted => "smart".to_owned(),
            Smart::Caused(seq) => format!("caused {}", seq - self.irs),
        }));
        words.extend(options.scps.map(|_| "scps".to_owned()));
        words.extend(options.ecn.map(|counts| format!("counts {counts:?}")));
        words.extend(options.opening.count.map(|count| match count {
            Count::Cc(n) => format!("cc {n}"),
            Count::New(n) => format!("ccnew {n}"),
        }));
        words.extend(options.opening.echo.map(|n| format!("ccecho {n}")));
        words.extend(options.opening.cookie.map(|cookie| match cookie.is_request() {
            true => "cookie ask".to_owned(),
            false => format!("cookie {cookie:?}"),
        }));
        words.extend(options.snack.map(|o| {
            let bits: String = o.vector().iter().map(|byte| format!("{byte:08b}")).collect();
            let bits = bits.trim_end_matches('0');
            let slash = if bits.is_empty() { "" } else { "/" };
            format!("snack {}+{}{slash}{bits}", o.offset, o.size)
        }));
        words.join(" ")
    }
}

/// A cookie in hexadecimal, or `ask`.
fn cookie(word: &str) -> Option<Cookie> {
    if word == "ask" {
        return Some(Cookie::REQUEST);
    }
    let bytes: Option<Vec<u8>> =
        (0..word.len() / 2).map(|i| u8::from_str_radix(&word[2 * i..2 * i + 2], 16).ok()).collect();
    Cookie::new(&bytes?)
}

/// `OFFSET+SIZE` or `OFFSET+SIZE/BITS`.
fn snack(word: &str) -> Option<Snack> {
    let (hole, bits) = word.split_once('/').unwrap_or((word, ""));
    let (offset, size) = hole.split_once('+')?;
    let bytes = bits.as_bytes().chunks(8);
    let byte =
        |byte: &[u8]| (0..8).fold(0, |sum, at| sum << 1 | u8::from(byte.get(at) == Some(&b'1')));
    let vector: Vec<u8> = bytes.map(byte).collect();
    Some(Snack::new(offset.parse().ok()?, size.parse().ok()?, &vector))
}
