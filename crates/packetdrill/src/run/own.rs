//! The world of lasthop's TCP: virtual time, exact and the same on every machine.

mod calls;
mod epoll;
mod messages;
mod numbers;
mod opening;
mod options;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Machine as _, Out, Side};
use lasthop_proto::side::StageId;
use lasthop_proto::tcp::HostConfig;
use lasthop_proto::tcp::info::CaState;
use lasthop_proto::tcp::sockets::{IcmpError, SocketOptions, Sockets};
use lasthop_proto::tcp::state::State;
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Addr, FlowKey, Seq, emit, parse};

use super::keys::Keys;
use super::wire::{self, Ends, IcmpMessage, LOCAL, REMOTE};
use super::{Info, Nanos, Reply, Started, World};
use crate::script::Call;

/// Start time of the run, so that no timer is before zero.
const START: Nanos = 1_000_000_000;
/// Timers of fewer ticks are in the first level of the wheel.
const FINE_TICKS: u64 = 63;
/// Maximum number of steps between two events of a script; a host with more is stuck.
const STEPS_MAX: usize = 1_000_000;

/// The timer wheel of Linux. A timer expires at the end of a tick, one tick later than that of its duration. Each level is
/// eight times as coarse as the one before: a timer of 63 ticks or more is late by up to an eighth of its duration
/// (`calc_wheel_index`). Timers of less than a tick are not in the wheel.
#[derive(Clone, Copy, Debug)]
pub struct Wheel {
    /// A tick of the kernel's clock, in nanoseconds.
    pub tick: Nanos,
    /// Ticks of the clock at the start of the run, modulo the outer levels.
    pub phase: u64,
    /// Nanoseconds from the last tick to the start of the run.
    pub into_tick: Nanos,
}

impl Wheel {
    /// When a timer for `at` expires that was set at `set`.
    fn expiry(self, set: Nanos, at: Nanos) -> Nanos {
        if at < set.saturating_add(self.tick) {
            return at;
        }
        let duration = (at - set).div_ceil(self.tick);
        let expires = set / self.tick + duration + self.phase;
        let level = (0..8).take_while(|level| duration >= FINE_TICKS << (3 * level)).count();
        let shift = 3 * level as u32;
        if shift == 0 && at.is_multiple_of(self.tick) {
            // The sender has rounded it (`tlp::tick`).
            return at;
        }
        ((((expires >> shift) + 1) << shift) - self.phase).saturating_mul(self.tick)
    }
}

/// A descriptor of the application.
#[derive(Clone, Debug)]
struct Fd {
    kind: Kind,
    options: SocketOptions,
    nonblocking: bool,
    port: Option<u16>,
    /// `TCP_FASTOPEN_CONNECT`: the connection opens with the first write.
    deferred: bool,
    /// Backlog argument of `listen`.
    backlog: u32,
    /// `SO_ZEROCOPY`.
    zerocopy: bool,
    /// `TCP_INQ`.
    inq: bool,
    /// The key of `TCP_FASTOPEN_KEY`.
    cookie_key: Option<[u64; 2]>,
    /// `IP_TOS`.
    tos: u8,
    /// `TCP_NOTSENT_LOWAT`.
    lowat: u32,
}

impl Fd {
    fn new(kind: Kind, nonblocking: bool) -> Fd {
        Fd {
            kind,
            options: SocketOptions::default(),
            nonblocking,
            port: None,
            deferred: false,
            backlog: 0,
            zerocopy: false,
            inq: false,
            cookie_key: None,
            tos: 0,
            lowat: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Fresh,
    /// `connect` was called, and the SYN is sent with the first write.
    Deferred,
    Listening(u16),
    Connection(usize),
    /// `epoll_create`.
    Epoll(Vec<epoll::Watch>),
}

/// The world of lasthop's TCP.
#[derive(Debug)]
pub struct Own {
    keys: Keys,
    sockets: Option<Sockets>,
    out: Out,
    now: Nanos,
    sent: VecDeque<(Nanos, Vec<u8>)>,
    fds: BTreeMap<i64, Fd>,
    /// The connection of a script's `tcp_info`.
    last: Option<usize>,
    blocked: Option<Call>,
    /// Bytes written so far by a blocked write.
    written: i64,
    done: Option<(Nanos, Reply)>,
    /// Addresses of the host and of its peer.
    ends: Ends,
    /// Reports of connections for `MSG_ERRQUEUE`.
    queues: BTreeMap<usize, messages::ErrorQueue>,
    /// `IP_TOS` of connections.
    services: BTreeMap<FlowKey, u8>,
    /// Rounds timers as a kernel does; otherwise they are exact.
    wheel: Option<Wheel>,
    /// Timers that were the next one, and when they were set.
    timers: Vec<(Nanos, Nanos)>,
    /// Start time of the run.
    start: Nanos,
}

impl Default for Own {
    fn default() -> Own {
        Own {
            keys: Keys::default(),
            sockets: None,
            out: Out::new(Interest::NOTHING),
            now: START,
            sent: VecDeque::new(),
            fds: BTreeMap::new(),
            last: None,
            blocked: None,
            written: 0,
            done: None,
            ends: (LOCAL, REMOTE),
            queues: BTreeMap::new(),
            services: BTreeMap::new(),
            wheel: None,
            timers: Vec::new(),
            start: START,
        }
    }
}

fn addr(bytes: [u8; 4]) -> Addr {
    Addr::v4(bytes[0], bytes[1], bytes[2], bytes[3])
}

/// The host under test.
fn host(keys: &Keys, at: [u8; 4]) -> Sockets {
    let tcp = Arc::new(keys.config());
    let name = "host".to_owned();
    let mut sockets = Sockets::new(HostConfig { name, addr: addr(at), side: Side::Right, tcp }, 1);
    sockets.set_cookie_key(keys.cookie_key);
    sockets.set_tail_probes(keys.tail_probes);
    sockets.open_without_cookies(keys.fast_open & 4 != 0, keys.fast_open & 0x200 != 0);
    sockets
}

impl Own {
    /// A world whose timers expire like those of a kernel.
    pub fn with_wheel(wheel: Wheel) -> Own {
        let start = START + wheel.into_tick;
        Own { wheel: Some(wheel), now: start, start, ..Own::default() }
    }

    /// The host; it is created on first use with the current settings.
    fn sockets(&mut self) -> &mut Sockets {
        let (keys, at) = (&self.keys, self.ends.0);
        self.sockets.get_or_insert_with(|| host(keys, at))
    }

    /// The peer's address.
    fn peer(&self) -> Addr {
        addr(self.ends.1)
    }

    fn time(&self) -> Time {
        Time(self.now)
    }

    /// Acts on the host, and collects its packets.
    fn act<T>(&mut self, action: impl FnOnce(&mut Sockets, Time, &mut Out) -> T) -> T {
        let now = self.time();
        self.out.begin(StageId(0), now);
        let (keys, at) = (&self.keys, self.ends.0);
        let sockets = self.sockets.get_or_insert_with(|| host(keys, at));
        let result = action(sockets, now, &mut self.out);
        self.take_sent();
        self.note_progress();
        result
    }

    fn take_sent(&mut self) {
        for (_, packet) in self.out.sends.drain(..) {
            let mut bytes = Vec::new();
            if emit::emit(&packet, &mut bytes).is_ok() {
                if let Some(tos) = packet.flow().and_then(|flow| self.services.get(&flow)) {
                    wire::set_services(&mut bytes, *tos);
                }
                self.sent.push_back((self.now - self.start, bytes));
            }
        }
        self.out.events.clear();
        self.out.signals.clear();
    }

    /// Handles everything that is due now.
    fn settle(&mut self) {
        self.run(self.now - self.start, |_| false);
    }

    /// Runs timers up to `until`; stops early when `enough` returns true.
    fn run(&mut self, until: Nanos, enough: impl Fn(&Own) -> bool) {
        let until = until.saturating_add(self.start);
        for _ in 0..STEPS_MAX {
            self.retry();
            if enough(self) {
                return;
            }
            match self.next_expiry().filter(|at| *at <= until) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.act(|sockets, now, out| sockets.on_wake(now, out));
                }
                None => break,
            }
        }
        self.now = self.now.max(until);
        self.retry();
    }

    /// When the next timer expires.
    fn next_expiry(&mut self) -> Option<Nanos> {
        let at = self.sockets.as_ref()?.next_wake()?.0;
        let Some(wheel) = self.wheel else { return Some(at) };
        let now = self.now;
        self.timers.retain(|timer| timer.0 >= now || timer.0 == at);
        let known = self.timers.iter().find(|timer| timer.0 == at).map(|timer| timer.1);
        if known.is_none() {
            self.timers.push((at, now));
        }
        Some(wheel.expiry(known.unwrap_or(now), at))
    }

    /// Retries the blocking call.
    fn retry(&mut self) {
        let Some(call) = self.blocked.take() else { return };
        match self.attempt(&call) {
            Ok(Some(reply)) => self.done = Some((self.now - self.start, reply)),
            Ok(None) => self.blocked = Some(call),
            Err(_) => self.done = Some((self.now - self.start, Reply::error("ENOSYS"))),
        }
    }
}

impl World for Own {
    fn now(&mut self) -> Nanos {
        self.now - self.start
    }

    /// Timers due at the same instant expire after the script's actions, like those of a kernel, whose ticks
    /// are later.
    fn wait(&mut self, at: Nanos) {
        let at = at.max(self.now - self.start);
        if at > self.now - self.start {
            self.run(at - 1, |_| false);
        }
        self.now = self.now.max(at.saturating_add(self.start));
        self.retry();
    }

    fn sent(&mut self, until: Nanos) -> Option<(Nanos, Vec<u8>)> {
        if self.sent.is_empty() && until > self.now - self.start {
            self.run(until, |own| !own.sent.is_empty());
        }
        let at = self.sent.front()?.0;
        (at <= until).then(|| self.sent.pop_front()).flatten()
    }

    fn arrive(&mut self, bytes: Vec<u8>) {
        if let Some(message) = wire::read_icmp_error(&bytes) {
            let IcmpMessage { kind: (kind, code), mtu, ports: (src_port, dst_port), seq } = message;
            let flow = FlowKey { src: addr(self.ends.0), dst: self.peer(), src_port, dst_port };
            let error = IcmpError { kind, code, mtu, seq: Seq(seq) };
            self.act(|sockets, now, out| sockets.on_icmp_error(now, flow, &error, out));
            self.settle();
            return;
        }
        // A packet that the host cannot parse never reaches its TCP.
        let Ok(packet) = parse::parse(&Arc::from(bytes), 0, true) else { return };
        self.act(|sockets, now, out| sockets.on_packet(now, Side::Right, packet, out));
        self.settle();
    }

    fn call(&mut self, call: &Call) -> Result<Started, String> {
        self.written = 0;
        match self.attempt(call)? {
            Some(reply) => {
                self.settle();
                Ok(Started::Done(reply))
            }
            None => {
                self.blocked = Some(call.clone());
                self.settle();
                match self.done.take() {
                    Some((_, reply)) => Ok(Started::Done(reply)),
                    None => Ok(Started::Blocks),
                }
            }
        }
    }

    fn finished(&mut self, until: Nanos) -> Option<(Nanos, Reply)> {
        self.run(until, |own| own.done.is_some());
        self.done.take()
    }

    fn info(&mut self) -> Result<Info, String> {
        let index = self.last.ok_or("tcp_info without a connection")?;
        let now = self.time();
        let sockets = self.sockets();
        let info = sockets.info(index).ok_or("tcp_info without a connection")?;
        let last_arrival = sockets.last_arrival(index).unwrap_or(now);
        let micros = |span: lasthop_proto::units::Span| (span.0 / 1000) as i64;
        let options = [
            (info.timestamps, 1),
            (info.sack, 2),
            (info.window_scale.is_some(), 4),
            (info.ecn, 8),
            (info.syn_data, 32),
        ];
        let options: i64 = options.into_iter().map(|(set, bit)| if set { bit } else { 0 }).sum();
        let state: i64 = match info.state {
            State::Established => 1,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait | State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Closing => 11,
        };
        let ca_state = match info.ca_state {
            CaState::Open => 0,
            CaState::Disorder => 1,
            CaState::Cwr => 2,
            CaState::Recovery => 3,
            CaState::Loss => 4,
        };
        let pairs: Vec<(&str, i64)> = vec![
            ("tcpi_state", state),
            ("tcpi_ca_state", ca_state),
            ("tcpi_retransmits", info.retransmits.into()),
            ("tcpi_probes", info.probes.into()),
            ("tcpi_backoff", info.backoff.into()),
            ("tcpi_options", options),
            ("tcpi_snd_wscale", info.window_scale.map_or(0, |(send, _)| send.into())),
            ("tcpi_rcv_wscale", info.window_scale.map_or(0, |(_, recv)| recv.into())),
            ("tcpi_rto", micros(info.rto)),
            ("tcpi_snd_mss", info.snd_mss.into()),
            ("tcpi_advmss", info.advmss.into()),
            ("tcpi_unacked", info.unacked.into()),
            ("tcpi_sacked", info.sacked.into()),
            ("tcpi_lost", info.lost.into()),
            ("tcpi_retrans", info.retrans.into()),
            ("tcpi_rtt", micros(info.rtt)),
            ("tcpi_rttvar", micros(info.rttvar)),
            ("tcpi_snd_ssthresh", info.snd_ssthresh.map_or(0x7fff_ffff, i64::from)),
            ("tcpi_snd_cwnd", info.snd_cwnd.into()),
            ("tcpi_snd_wnd", info.snd_wnd.into()),
            ("tcpi_bytes_acked", info.bytes_acked as i64),
            ("tcpi_bytes_received", info.bytes_received as i64),
            ("tcpi_notsent_bytes", info.notsent_bytes as i64),
            ("tcpi_delivered", info.delivered.into()),
            ("tcpi_reordering", info.reordering.into()),
            ("tcpi_reord_seen", info.reord_seen.into()),
            ("tcpi_last_data_recv", (now.since(last_arrival).0 / 1_000_000) as i64),
        ];
        let mut all: Info = pairs.into_iter().collect();
        if let Some(connection) = sockets.connection(index) {
            let [_, buffer, window, ..] = connection.limits(now);
            all.insert("tcpi_rwnd_limited", micros(window));
            all.insert("tcpi_sndbuf_limited", micros(buffer));
        }
        if let Some(busy) = sockets.busy_time(now, index) {
            all.insert("tcpi_busy_time", micros(busy));
        }
        if let Some(span) = info.min_rtt {
            all.insert("tcpi_min_rtt", micros(span));
        }
        Ok(all)
    }

    fn set_addresses(&mut self, host: [u8; 4], peer: [u8; 4]) -> bool {
        self.ends = (host, peer);
        true
    }

    fn forget_servers(&mut self) -> bool {
        self.sockets().forget_servers();
        true
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        let applied = self.keys.set(name, value);
        if applied {
            self.reconfigure();
        }
        applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_the_wheel_are_late_by_a_tick_or_an_eighth_at_most() {
        const TICK: Nanos = 4_000_000;
        for phase in 0..64 {
            let wheel = Wheel { tick: TICK, phase, into_tick: 0 };
            let late = |ticks: u64| {
                wheel.expiry(START + 1, START + 1 + ticks * TICK) - START - ticks * TICK
            };
            assert_eq!((late(1), late(62)), (TICK, TICK), "the first level");
            assert_eq!(wheel.expiry(START, START + TICK), START + TICK, "rounded by the sender");
            assert_eq!(wheel.expiry(START, START + TICK - 1), START + TICK - 1, "not in the wheel");
            for ticks in [63, 100, 503, 504, 4000] {
                assert!(0 < late(ticks) && late(ticks) <= ticks * TICK / 63 * 8, "{ticks}");
            }
            // One that was due before it was set.
            assert_eq!(wheel.expiry(START + 9 * TICK, START), START);
        }
    }
}
