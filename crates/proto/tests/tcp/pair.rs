//! A client and a server on a wire of 50 ms, and the record of every segment between them.
//!
//! Each line has the send time, the sender (`C` or `S`), flags as in tcpdump, bytes as `FIRST+LEN`, the
//! acknowledgement, and the opening options. Numbers count from the initial ones. A final `x` means that the
//! wire lost the segment. Requests have 300 bytes, responses 500, and each exchange has a separate
//! connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use lasthop_proto::event::{EventKind, Interest, TcpKind};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::tcp::opening::Memory;
use lasthop_proto::tcp::traffic::{Answers, Exchange};
use lasthop_proto::tcp::{Host, HostConfig, TcpConfig};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::opening::Count;
use lasthop_proto::wire::{Addr, Flags, Packet, Seq, Transport};

use crate::record::letters;

pub const CLIENT: Addr = Addr::v4(10, 1, 0, 1);
pub const SERVER: Addr = Addr::v4(10, 0, 0, 1);
const DELAY: Span = Span::millis(50);
const PORT: u16 = 10_000;

pub struct Pair {
    hosts: [Host; 2],
    configs: [TcpConfig; 2],
    wire: Vec<(Time, usize, Packet)>,
    now: Time,
    /// Every packet that was sent, with its line.
    pub sent: Vec<(String, Packet)>,
    lose: fn(&str) -> bool,
    origins: BTreeMap<(Addr, u16), Seq>,
    /// Time from request to response of each exchange.
    pub times: Vec<Span>,
    requests: Vec<Time>,
    /// Bytes delivered to the server's application.
    pub delivered: u64,
}

fn host(name: &str, addr: Addr, side: Side, tcp: &TcpConfig) -> Host {
    let config = HostConfig { name: name.into(), addr, side, tcp: Arc::new(tcp.clone()) };
    Host::new(config, 1)
}

impl Pair {
    /// Configurations of client and server, and the lines that the wire loses.
    pub fn new(client: &TcpConfig, server: &TcpConfig, lose: fn(&str) -> bool) -> Pair {
        let mut pair = Pair {
            hosts: [
                host("client", CLIENT, Side::Left, client),
                host("server", SERVER, Side::Right, server),
            ],
            configs: [client.clone(), server.clone()],
            wire: Vec::new(),
            now: Time::ZERO,
            sent: Vec::new(),
            lose,
            origins: BTreeMap::new(),
            times: Vec::new(),
            requests: Vec::new(),
            delivered: 0,
        };
        pair.restart_server();
        pair
    }

    fn exchange() -> Exchange {
        Exchange {
            request: Bytes(300),
            response: Bytes(500),
            every: None,
            think: Span::ZERO,
            persistent: false,
            exchanges: Some(1),
        }
    }

    /// Restarts the server without its stored state.
    pub fn restart_server(&mut self) {
        self.hosts[1] = host("server", SERVER, Side::Right, &self.configs[1]);
        self.hosts[1].answer(CLIENT, PORT, Answers::Constant(Pair::exchange()));
    }

    /// Changes the stored state of a host (0 is the client, 1 the server).
    pub fn remember(&mut self, host: usize, change: impl FnOnce(&mut Memory)) {
        change(self.hosts[host].memory_mut().expect("it opens with data"));
    }

    /// Delivers the packet of an earlier line again, now.
    pub fn again(&mut self, line: &str) {
        let found = self.sent.iter().find(|(sent, _)| sent == line);
        let packet = found.unwrap_or_else(|| panic!("nothing was `{line}`")).1.clone();
        let to = usize::from(packet.dst == SERVER);
        self.wire.push((self.now, to, packet));
    }

    /// Like [`Pair::again`], but a new SYN with another count; from now on numbers count from there.
    pub fn forge(&mut self, line: &str, count: u32) {
        self.again(line);
        let (_, _, packet) = self.wire.last_mut().expect("it was put there");
        let Transport::Tcp(segment) = &mut packet.transport else { panic!("not TCP") };
        segment.seq = segment.seq + 100_000;
        segment.options_mut().opening.count = Some(Count::Cc(count));
        self.origins.insert((CLIENT, segment.src_port), segment.seq);
    }

    pub fn client(&self) -> &Host {
        &self.hosts[0]
    }

    pub fn server(&self) -> &Host {
        &self.hosts[1]
    }

    /// Runs an exchange at `at`, and everything until `until`; `lines` are the segments sent.
    #[track_caller]
    pub fn ask(&mut self, at: &str, until: &str, lines: &str) {
        let at = Time::ZERO + at.parse::<Span>().unwrap();
        self.hosts[0].request(SERVER, PORT, at, None, Pair::exchange());
        self.wait(until, lines);
    }

    /// Runs everything until `until`; `lines` are the segments sent.
    #[track_caller]
    pub fn wait(&mut self, until: &str, lines: &str) {
        let until = Time::ZERO + until.parse::<Span>().unwrap();
        let before = self.sent.len();
        while let Some((at, event)) = self.next().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            let mut out = Out::new(Interest::METRICS);
            out.begin(Default::default(), self.now);
            let host = match event {
                Ok(host) => {
                    self.hosts[host].on_wake(self.now, &mut out);
                    host
                }
                Err(i) => {
                    let (_, host, packet) = self.wire.remove(i);
                    let from = if host == 1 { Side::Right } else { Side::Left };
                    self.hosts[host].on_packet(self.now, from, packet, &mut out);
                    host
                }
            };
            self.drain(host, out);
        }
        self.now = until;
        let sent: Vec<&str> = self.sent[before..].iter().map(|(line, _)| line.as_str()).collect();
        let expected: Vec<&str> = lines.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        assert_eq!(sent, expected, "\n{}", sent.join("\n"));
    }

    /// The next event: a host's timer, or the arrival of a packet.
    fn next(&self) -> Option<(Time, Result<usize, usize>)> {
        let wakes = (0..2).filter_map(|i| Some((self.hosts[i].next_wake()?, Ok(i))));
        let arrivals = self.wire.iter().enumerate().map(|(i, (at, ..))| (*at, Err(i)));
        arrivals.chain(wakes).min_by_key(|(at, _)| *at)
    }

    fn drain(&mut self, host: usize, out: Out) {
        for event in out.events {
            let EventKind::Tcp(tcp) = event.kind else { continue };
            match tcp.kind {
                TcpKind::Corrupted => panic!("a wrong byte at {}", event.at),
                TcpKind::Asked => self.requests.push(event.at),
                TcpKind::Answered => self.times.push(event.at.since(self.requests.remove(0))),
                TcpKind::Delivered { bytes } if host == 1 => self.delivered += u64::from(bytes),
                _ => {}
            }
        }
        for (_, packet) in out.sends {
            let mut line = self.describe(host, &packet);
            if (self.lose)(&line) {
                line.push_str(" x");
            } else {
                self.wire.push((self.now + DELAY, 1 - host, packet.clone()));
            }
            self.sent.push((line, packet));
        }
    }

    fn describe(&mut self, host: usize, packet: &Packet) -> String {
        let s = packet.segment().expect("TCP");
        let port = |own: bool| if (host == 0) == own { s.src_port } else { s.dst_port };
        // Ports of the client identify its connections.
        let client = if host == 0 { port(true) } else { s.dst_port };
        let own = if host == 0 { CLIENT } else { SERVER };
        let peer = if host == 0 { SERVER } else { CLIENT };
        if s.flags.has(Flags::SYN) {
            self.origins.insert((own, client), s.seq);
        }
        let since =
            |addr: Addr, seq: Seq| self.origins.get(&(addr, client)).map_or(0, |o| seq - *o);
        let who = if host == 0 { 'C' } else { 'S' };
        let mut words =
            vec![format!("{}ms", self.now.0 / 1_000_000), who.to_string(), letters(s.flags)];
        if !packet.body.is_empty() {
            let first = since(own, s.seq) + i32::from(s.flags.has(Flags::SYN));
            words.push(format!("{first}+{}", packet.body.len()));
        }
        if s.flags.has(Flags::ACK) {
            words.push(format!("ack {}", since(peer, s.ack)));
        }
        let opening = s.options().opening;
        words.extend(opening.count.map(|count| match count {
            Count::Cc(n) => format!("cc {n}"),
            Count::New(n) => format!("ccnew {n}"),
        }));
        words.extend(opening.echo.map(|n| format!("ccecho {n}")));
        words.extend(opening.cookie.map(|cookie| match cookie.is_request() {
            true => "ask".to_owned(),
            false => "cookie".to_owned(),
        }));
        words.join(" ")
    }
}
