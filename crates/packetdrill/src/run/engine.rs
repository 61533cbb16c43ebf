//! Plays a script in a world.

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::wire::Flags;

use super::compare::{self, Window};
use super::flows::Flows;
use super::values::{matches, number, show as show_value};
use super::wire::{self, IcmpMessage, Segment};
use super::{Entry, EntryKind, Nanos, Outcome, Reply, Rules, Started, Verdict, World};
use crate::eval::{self, Refusal, Value};
use crate::script::shell::{self, Command};
use crate::script::{Action, Call, Event, Expr, Packet, Script, Tcp, Transport, When};

/// Additional wait for a late packet, to report its time.
const LATE: Nanos = 2_000_000_000;
/// Maximum duration of a train of segments from one write.
const TRAIN: Nanos = 2_000_000;
/// Maximum wait for `*`.
const ANY: Nanos = 60_000_000_000;
/// Maximum number of entries of a trace.
const TRACE_MAX: usize = 100_000;

/// Plays `script` in `world`.
pub fn play(script: &Script, world: &mut dyn World, rules: &Rules) -> Outcome {
    let mut play = Play {
        world,
        rules: rules.clone(),
        ends: (wire::LOCAL, wire::REMOTE),
        flows: Flows::default(),
        last: None,
        blocked: None,
        taken: VecDeque::new(),
        variables: BTreeMap::new(),
        outcome: Outcome { verdict: Verdict::Pass, notes: Vec::new(), trace: Vec::new() },
    };
    if let Err(stop) = play.script(script) {
        play.note_failure(stop);
    }
    play.rest();
    play.outcome
}

/// Why a run ends early.
enum Stop {
    Fail { line: u32, expected: String, got: String },
    Unsupported { line: u32, feature: String },
}

struct Play<'a> {
    world: &'a mut dyn World,
    rules: Rules,
    ends: wire::Ends,
    flows: Flows,
    /// The time of the previous event, and whether a packet arrived then.
    last: Option<(Nanos, bool)>,
    blocked: Option<(u32, Call, Window)>,
    /// Packets taken from the world and not matched.
    taken: VecDeque<(Nanos, Vec<u8>)>,
    variables: BTreeMap<String, Value>,
    outcome: Outcome,
}

impl Play<'_> {
    fn script(&mut self, script: &Script) -> Result<(), Stop> {
        // They belong to no line.
        let refused = self.world.refused().iter().map(|setting| (0, setting.clone())).collect();
        self.outcome.notes = refused;
        for (line, name, value) in &script.options {
            self.option(*line, name, value.as_deref())?;
        }
        if !self.world.set_addresses(self.ends.0, self.ends.1) {
            // Packets are the same with other addresses.
            self.ends = (wire::LOCAL, wire::REMOTE);
        }
        let first = script.events.first().map_or(u32::MAX, |event| event.line);
        for (line, text) in script.commands.iter().filter(|(line, _)| *line < first) {
            self.shell(*line, text);
        }
        for event in &script.events {
            match self.event(event) {
                Err(stop @ Stop::Fail { .. }) if self.rules.observe => self.note_failure(stop),
                other => other?,
            }
        }
        self.wait_for_call()
    }

    /// Records a failure; the first one counts.
    fn note_failure(&mut self, stop: Stop) {
        if self.outcome.verdict != Verdict::Pass {
            return;
        }
        self.outcome.verdict = match stop {
            Stop::Fail { line, expected, got } => Verdict::Fail { line, expected, got },
            Stop::Unsupported { line, feature } => Verdict::Unsupported { line, feature },
        };
    }

    fn option(&mut self, line: u32, name: &str, value: Option<&str>) -> Result<(), Stop> {
        let fixed = match (name, value) {
            ("tolerance_usecs", Some(value)) => {
                let micros = value.parse().map(|micros: Nanos| micros.min(10_000_000));
                micros.map(|micros| self.rules.tolerance = micros * 1000).is_ok()
            }
            ("tolerance_percent", Some(value)) => {
                let percent = value.parse().ok().filter(|percent: &f64| percent.is_finite());
                percent.map(|percent| self.rules.percent = percent.clamp(0.0, 100.0)).is_some()
            }
            ("tcp_ts_tick_usecs", Some(value)) => {
                let micros = value.parse().map(|micros: Nanos| micros.min(1 << 32));
                micros.map(|micros| self.rules.tick = Some(micros * 1000)).is_ok()
            }
            ("tcp_ts_ecr_scaled", _) => {
                self.rules.scaled = true;
                true
            }
            ("ip_version", value) => value == Some("ipv4"),
            ("remote_ip", Some(value)) => address(value).map(|it| self.ends.1 = it).is_some(),
            ("local_ip", Some(value)) => address(value).map(|it| self.ends.0 = it).is_some(),
            ("mss" | "mtu" | "speed", _) => false,
            _ => {
                self.outcome.notes.push((line, format!("--{name}")));
                true
            }
        };
        match fixed {
            true => Ok(()),
            false => Err(Stop::Unsupported { line, feature: format!("the option --{name}") }),
        }
    }

    fn shell(&mut self, line: u32, text: &str) {
        for command in shell::commands(text) {
            let note = match command {
                Command::Setting(name, value) => {
                    (!self.world.set(&name, &value)).then(|| format!("{name}={value}"))
                }
                Command::ForgetServers => {
                    let forgotten = self.last.is_none() || self.world.forget_servers();
                    (!forgotten).then(|| "`ip tcp_metrics flush`".to_owned())
                }
                Command::Refused(text) => Some(format!("`{text}`")),
            };
            self.outcome.notes.extend(note.map(|note| (line, note)));
        }
    }

    fn entry(&mut self, at: Nanos, line: Option<u32>, kind: EntryKind, text: String) {
        if self.outcome.trace.len() < TRACE_MAX {
            self.outcome.trace.push(Entry { at, line, kind, text });
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let arrives = matches!(&event.action, Action::Packet(packet) if packet.inbound);
        let now = self.world.now();
        // Consecutive arrivals preserve the intervals of the script.
        let base = match self.last {
            Some((at, true)) if arrives => at,
            _ => now,
        };
        let window = Window::new(event.when, base, self.last.map(|(at, _)| at), &self.rules);
        let line = event.line;
        let at_once = !matches!(&event.action, Action::Call(call) if call.until.is_some());
        let moment = self.rules.moments.get(&line).filter(|_| at_once);
        let mut at = moment.copied().unwrap_or_else(|| window.start(now));
        match &event.action {
            Action::Packet(packet) if arrives => {
                self.world.wait(at);
                self.arrive(line, packet)?;
            }
            Action::Packet(packet) => at = self.expect(line, packet, &window)?,
            Action::Call(call) => {
                self.wait_for_call()?;
                self.world.wait(at);
                self.call(line, call, event.when, base)?;
            }
            Action::Shell(text) => {
                self.world.wait(at);
                self.shell(line, text);
            }
            Action::Code(text) => {
                self.world.wait(at);
                self.code(line, text)?;
            }
        }
        self.last = Some((at, arrives));
        Ok(())
    }

    fn arrive(&mut self, line: u32, packet: &Packet) -> Result<(), Stop> {
        let now = self.world.now();
        // The numbers of the host follow from its packets.
        self.learn();
        let (bytes, text) = match &packet.transport {
            Transport::Tcp(tcp) => {
                let Some(index) = self.flows.arriving(packet, tcp) else {
                    let got = "no connection or listener".to_owned();
                    let expected = "a connection on which the packet arrives".to_owned();
                    return Err(Stop::Fail { line, expected, got });
                };
                let Some(flow) = self.flows.get(index) else { return Ok(()) };
                let segment = flow.arriving(packet, tcp, self.rules.scaled);
                let (ack, options) =
                    (tcp.ack.unwrap_or(0), tcp.options.clone().unwrap_or_default());
                let shown = Segment { seq: tcp.seq, ack, options, ..segment.clone() };
                (segment.write(self.ends), wire::show(&shown))
            }
            Transport::Icmp(icmp) => {
                let Some(flow) = self.flows.current() else { return Ok(()) };
                let message = IcmpMessage {
                    kind: icmp.kind,
                    mtu: icmp.mtu.unwrap_or(0),
                    ports: flow.ports,
                    seq: flow.seq(icmp.seq),
                };
                let bytes = wire::icmp_error(self.ends, &message);
                (bytes, format!("icmp type {} code {}", icmp.kind.0, icmp.kind.1))
            }
        };
        self.entry(now, Some(line), EntryKind::Arrived, text);
        self.world.arrive(bytes);
        Ok(())
    }

    /// Reads sent packets that are not matched yet, to determine initial sequence numbers.
    fn learn(&mut self) {
        let now = self.world.now();
        while let Some(sent) = self.world.sent(now) {
            if let Some(segment) = Segment::read(&sent.1)
                && let Some(index) = self.flows.sent(&segment)
                && segment.flags.has(Flags::SYN)
                && let Some(flow) = self.flows.get(index)
            {
                flow.sent(&segment, None);
            }
            self.taken.push_back(sent);
        }
    }

    /// The next sent TCP segment, waiting until `until`.
    fn next(&mut self, until: Nanos) -> Option<(Nanos, Segment)> {
        loop {
            let (at, bytes) = match self.taken.pop_front() {
                Some(sent) if sent.0 <= until => sent,
                Some(sent) => {
                    self.taken.push_front(sent);
                    return None;
                }
                None => self.world.sent(until)?,
            };
            if let Some(segment) = Segment::read(&bytes) {
                return Some((at, segment));
            }
        }
    }

    /// The same for the connection of `packet`. Segments of others are noted, if `packet` names no ports.
    fn next_of(&mut self, packet: &Packet, until: Nanos) -> Option<(Nanos, Segment)> {
        loop {
            let (at, segment) = self.next(until)?;
            let index = self.flows.sent(&segment);
            let other = index.is_some_and(|index| !self.flows.is_of(packet, index));
            if packet.ports.is_some() || !other {
                return Some((at, segment));
            }
            if let Some(flow) = index.and_then(|index| self.flows.get(index)) {
                let text = wire::show(&flow.sent(&segment, None));
                self.entry(at, None, EntryKind::Sent, text);
            }
        }
    }

    fn expect(&mut self, line: u32, packet: &Packet, window: &Window) -> Result<Nanos, Stop> {
        let Transport::Tcp(tcp) = &packet.transport else {
            return Err(Stop::Unsupported { line, feature: "ICMP sent by the host".to_owned() });
        };
        let now = self.world.now();
        let fallback = window.start(now);
        let end = match window.end() {
            Some(end) if self.rules.observe => end,
            Some(end) => end + LATE,
            None => now + ANY,
        };
        let expected = || format!("{} at {}", expectation(packet, tcp), window.show());
        let Some((at, first)) = self.next_of(packet, end) else {
            let got = format!("no packet until {:.6} s", end as f64 / 1e9);
            return Err(Stop::Fail { line, expected: expected(), got });
        };
        let got = self.assemble(tcp, at, first);
        let index = self.flows.sent(&got);
        let Some(index) = index.filter(|index| self.flows.is_of(packet, *index)) else {
            let got = format!("a packet of another connection: {}", wire::show(&got));
            return Err(Stop::Fail { line, expected: expected(), got });
        };
        let Some(flow) = self.flows.get(index) else { return Ok(fallback) };
        let got = flow.sent(&got, Some(tcp));
        let text = wire::show(&got);
        self.entry(at, Some(line), EntryKind::Sent, text.clone());
        let shown = || format!("{text} at {:.6} s", at as f64 / 1e9);
        if let Err((field, wanted, was)) = compare::segment(packet, tcp, &got, at, &self.rules) {
            let got = format!("{}; {field} is {was} instead of {wanted}", shown());
            return Err(Stop::Fail { line, expected: expected(), got });
        }
        if !window.allows(at) {
            return Err(Stop::Fail { line, expected: expected(), got: shown() });
        }
        Ok(fallback)
    }

    /// Joins segments of one size that were sent together, as a card would have split them, up to the
    /// expected length. A card copies PSH only to the last one.
    fn assemble(&mut self, tcp: &Tcp, at: Nanos, first: Segment) -> Segment {
        let piece = first.len;
        let mut whole = first;
        while piece > 0 && whole.len < tcp.len && whole.len.is_multiple_of(piece) {
            let Some((later, next)) = self.next(at + TRAIN) else { break };
            let follows = next.ports == whole.ports
                && next.seq == whole.seq.wrapping_add(whole.len)
                && next.ack == whole.ack
                && (1..=piece).contains(&next.len)
                && !whole.flags.any(Flags::FIN | Flags::SYN | Flags::RST);
            if !follows {
                let bytes = next.write(self.ends);
                self.taken.push_front((later, bytes));
                break;
            }
            whole.len += next.len;
            whole.flags = whole.flags.without(Flags::PSH) | next.flags;
        }
        whole
    }

    fn call(&mut self, line: u32, call: &Call, when: When, base: Nanos) -> Result<(), Stop> {
        self.learn();
        let until = call.until.map(|until| match when {
            When::After(_) | When::AfterBetween(..) => base + until,
            _ => until,
        });
        match call.name.as_str() {
            "socket" => self.flows.renew(),
            "accept" | "accept4" if call.args.get(1).is_some_and(|arg| *arg != Expr::Any) => {
                let note = "the address of accept() is not compared".to_owned();
                self.outcome.notes.push((line, note));
            }
            "listen" => {
                let port = super::flows::PORT;
                self.flows.listening = Some(port);
            }
            "connect" | "sendto" | "sendmsg" | "send" | "write" | "writev"
                if self.flows.current().is_none() && self.flows.listening.is_none() =>
            {
                self.flows.connects();
            }
            _ => {}
        }
        let started =
            self.world.call(call).map_err(|feature| Stop::Unsupported { line, feature })?;
        match (started, until) {
            (Started::Done(reply), None) => self.returned(line, call, &reply),
            (started, Some(until)) => {
                let start = self.world.now();
                let window = Window::new(When::At(until), base, Some(start), &self.rules);
                match started {
                    Started::Done(reply) => {
                        self.in_time(line, call, &window, start)?;
                        self.returned(line, call, &reply)
                    }
                    Started::Blocks => {
                        self.blocked = Some((line, call.clone(), window));
                        Ok(())
                    }
                }
            }
            (Started::Blocks, None) => Err(Stop::Fail {
                line,
                expected: format!("{}() = {}", call.name, show_value(&call.result)),
                got: "the call blocks".to_owned(),
            }),
        }
    }

    /// A blocking call must not return late, nor early by more than the tolerance.
    fn in_time(&self, line: u32, call: &Call, window: &Window, at: Nanos) -> Result<(), Stop> {
        if window.allows(at) {
            return Ok(());
        }
        let expected = format!("{}() to return at {}", call.name, window.show());
        Err(Stop::Fail { line, expected, got: format!("it returned at {:.6} s", at as f64 / 1e9) })
    }

    /// Waits for the blocking call.
    fn wait_for_call(&mut self) -> Result<(), Stop> {
        let Some((line, call, window)) = self.blocked.take() else { return Ok(()) };
        let end = window.end().unwrap_or(0).max(self.world.now()) + LATE;
        let Some((at, reply)) = self.world.finished(end) else {
            let expected = format!("{}() to return at {}", call.name, window.show());
            let got = format!("it had not returned at {:.6} s", end as f64 / 1e9);
            return Err(Stop::Fail { line, expected, got });
        };
        self.in_time(line, &call, &window, at)?;
        self.returned(line, &call, &reply)
    }

    fn returned(&mut self, line: u32, call: &Call, reply: &Reply) -> Result<(), Stop> {
        let shown = |value: String, errno: Option<&str>| {
            let errno = errno.map_or(String::new(), |errno| format!(" {errno}"));
            format!("{}() = {value}{errno}", call.name)
        };
        let got = shown(reply.value.to_string(), reply.errno.as_deref());
        let now = self.world.now();
        self.entry(now, Some(line), EntryKind::Called, got.clone());
        let expected = shown(show_value(&call.result), call.errno.as_deref());
        let value = call.result == Expr::Any || number(&call.result) == Some(reply.value);
        let errno = match (&call.errno, &reply.errno) {
            (Some(a), Some(b)) => {
                a == b || matches!((a.as_str(), b.as_str()), ("EWOULDBLOCK", "EAGAIN"))
            }
            (None, None) => true,
            // A script may omit the error.
            (None, Some(_)) => true,
            (Some(_), None) => false,
        };
        if !value || !errno {
            return Err(Stop::Fail { line, expected, got });
        }
        for (index, got) in &reply.written {
            let Some(wanted) = call.args.get(*index).filter(|wanted| !matches(wanted, got)) else {
                continue;
            };
            let describe = |value: &Expr| {
                format!("argument {} of {}() {}", index + 1, call.name, show_value(value))
            };
            return Err(Stop::Fail { line, expected: describe(wanted), got: describe(got) });
        }
        Ok(())
    }

    fn code(&mut self, line: u32, text: &str) -> Result<(), Stop> {
        let info = self.world.info().map_err(|feature| Stop::Unsupported { line, feature })?;
        let lookup = |name: &str| info.get(name).copied();
        let printed = eval::run(text, &lookup, &mut self.variables);
        let now = self.world.now();
        match printed {
            Ok(printed) => {
                for text in printed {
                    self.entry(now, Some(line), EntryKind::Printed, text);
                }
                Ok(())
            }
            Err(Refusal::Unsupported(feature)) => Err(Stop::Unsupported { line, feature }),
            Err(Refusal::False(text)) => {
                let (expected, got) = match text.split_once(", got ") {
                    Some((a, b)) => (a.trim_start_matches("expected ").to_owned(), b.to_owned()),
                    None => (text.trim_start_matches("expected ").to_owned(), "false".to_owned()),
                };
                Err(Stop::Fail { line, expected, got })
            }
            Err(Refusal::Wrong(got)) => {
                Err(Stop::Fail { line, expected: "an assertion".to_owned(), got })
            }
        }
    }

    /// Adds sent packets without an expectation to the trace.
    fn rest(&mut self) {
        let now = self.world.now();
        while let Some((at, segment)) = self.next(now) {
            let Some(index) = self.flows.sent(&segment) else { continue };
            let Some(flow) = self.flows.get(index) else { continue };
            let text = wire::show(&flow.sent(&segment, None));
            self.entry(at, None, EntryKind::Sent, text);
        }
    }
}

/// An IPv4 address.
fn address(text: &str) -> Option<[u8; 4]> {
    text.parse().ok().map(|address: core::net::Ipv4Addr| address.octets())
}

/// The expectation of a line, in the language of scripts.
fn expectation(packet: &Packet, tcp: &Tcp) -> String {
    let ecn = match packet.tos {
        Some(crate::script::Tos::Ecn(bits)) => bits,
        _ => 0,
    };
    let segment = Segment {
        tos: ecn,
        ttl: 0,
        ports: (0, 0),
        seq: tcp.seq,
        ack: tcp.ack.unwrap_or(0),
        flags: tcp.flags,
        window: tcp.window.unwrap_or(0),
        urgent: tcp.urgent,
        options: tcp.options.clone().unwrap_or_default(),
        len: tcp.len,
    };
    let text = wire::show(&segment);
    match tcp.window {
        Some(_) => text,
        None => text.replacen(" win 0", "", 1),
    }
}
