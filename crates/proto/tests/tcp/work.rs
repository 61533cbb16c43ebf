//! Work of the stacks of two hosts for a transfer: each choice changes its own count.

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_proto::energy::{Operation, Work};
use lasthop_proto::event::{EventKind, Interest};
use lasthop_proto::machine::{Machine, Out, Side, StageId};
use lasthop_proto::tcp::{DelayedAck, Host, HostConfig, TcpConfig, Variant};
use lasthop_proto::units::{Bytes, Span, Time};
use lasthop_proto::wire::{Addr, Damage, Packet};

use crate::fine;

pub const RECEIVER: usize = 0;
pub const SENDER: usize = 1;

/// Work and events of two hosts.
pub struct Exchange {
    pub hosts: [Host; 2],
    /// All work events of each host.
    pub work: [Vec<Work>; 2],
    /// Segments that each host sent.
    pub sent: [u64; 2],
    /// Bytes of their packets.
    pub bytes: [u64; 2],
    /// All other events, as text.
    pub events: Vec<String>,
    /// End of the exchange.
    pub over: Time,
}

impl Exchange {
    pub fn count(&self, host: usize, operation: Operation) -> u64 {
        self.work[host].iter().map(|work| u64::from(work.count(operation))).sum()
    }
}

/// `streams` transfers of `bytes` between two hosts `delay` apart; `fate` may damage or drop (`None`) the
/// sender's packets.
pub fn exchange(
    tcp: [&TcpConfig; 2],
    (streams, bytes): (u32, u64),
    interest: Interest,
    fate: impl FnMut(u64) -> Option<Damage>,
) -> Exchange {
    exchange_between(tcp, |_| (), (streams, bytes), interest, fate)
}

/// Like [`exchange`], between hosts that `prepare` has changed.
pub fn exchange_between(
    tcp: [&TcpConfig; 2],
    prepare: impl Fn(&mut Host),
    (streams, bytes): (u32, u64),
    interest: Interest,
    mut fate: impl FnMut(u64) -> Option<Damage>,
) -> Exchange {
    let addr = [Addr::v4(10, 1, 0, 1), Addr::v4(10, 0, 0, 1)];
    let hosts = [Side::Right, Side::Left].map(|side| {
        let i = usize::from(side == Side::Left);
        let tcp = Arc::new(tcp[i].clone());
        Host::new(HostConfig { name: i.to_string(), addr: addr[i], side, tcp }, 1)
    });
    let mut x = Exchange {
        hosts,
        work: Default::default(),
        sent: [0; 2],
        bytes: [0; 2],
        events: Vec::new(),
        over: Time::ZERO,
    };
    x.hosts.iter_mut().for_each(prepare);
    for stream in 0..streams {
        x.hosts[SENDER].open(addr[RECEIVER], 9, Time::ZERO, Some(Bytes(bytes)), stream + 1);
    }
    let delay = Span::millis(10);
    let mut wire: VecDeque<(Time, usize, Packet)> = VecDeque::new();
    let mut out = Out::new(interest);
    let mut now = Time::ZERO;
    while x.hosts[SENDER].unfinished() > 0 || !wire.is_empty() {
        let wakes = [x.hosts[0].next_wake(), x.hosts[1].next_wake(), wire.front().map(|w| w.0)];
        let next = (0..3).filter_map(|i| wakes[i].map(|at| (at, i))).min();
        let (next, index) = next.expect("a wake");
        now = now.max(next);
        assert!(now < Time::ZERO + Span::secs(10_000), "it never ends");
        let host = match index {
            2 => {
                let (_, to, packet) = wire.pop_front().unwrap();
                out.begin(StageId(to as u16), now);
                let from = if to == RECEIVER { Side::Right } else { Side::Left };
                x.hosts[to].on_packet(now, from, packet, &mut out);
                to
            }
            host => {
                out.begin(StageId(host as u16), now);
                x.hosts[host].on_wake(now, &mut out);
                host
            }
        };
        for event in out.events.drain(..) {
            match event.kind {
                EventKind::Work(work) => x.work[usize::from(event.stage.0)].push(work),
                _ => x.events.push(format!("{event:?}")),
            }
        }
        for (_, mut packet) in out.sends.drain(..) {
            x.sent[host] += 1;
            x.bytes[host] += u64::from(packet.wire_len());
            let damage = if host == SENDER { fate(x.sent[host]) } else { Some(Damage::None) };
            if let Some(damage) = damage {
                packet.damage = damage;
                wire.push_back((now + delay, 1 - host, packet));
            }
        }
    }
    x.over = now;
    x
}

pub fn unharmed(_: u64) -> Option<Damage> {
    Some(Damage::None)
}

const SIZE: u64 = 100_000;

fn both(tcp: &TcpConfig) -> Exchange {
    exchange([tcp, tcp], (1, SIZE), Interest::WORK, unharmed)
}

#[test]
fn each_segment_is_counted_once_at_each_end() {
    let x = both(&fine());
    for host in [RECEIVER, SENDER] {
        let taken = x.count(host, Operation::Processed) + x.count(host, Operation::Predicted);
        assert_eq!(x.count(host, Operation::Send), x.sent[host]);
        assert_eq!(taken, x.sent[1 - host]);
        assert_eq!(x.work[host].len() as u64, x.sent[0] + x.sent[1]);
        assert_eq!(x.count(host, Operation::CardByte), x.bytes[0] + x.bytes[1]);
        // Each byte of the transfer is copied and summed once at each end, and headers without options have
        // 40 bytes.
        assert_eq!(x.count(host, Operation::CopiedSummedByte), SIZE);
        let syns = 2 * 4;
        assert_eq!(x.count(host, Operation::SummedByte), 40 * (x.sent[0] + x.sent[1]) + syns);
        let looked =
            x.count(host, Operation::LookupCached) + x.count(host, Operation::LookupHashed);
        assert_eq!(looked, taken);
    }
}

#[test]
fn work_is_reported_only_if_requested() {
    let x = exchange([&fine(), &fine()], (1, SIZE), Interest::EVERYTHING, unharmed);
    assert!(x.work.iter().all(Vec::is_empty));
    let with_work = exchange(
        [&fine(), &fine()],
        (1, SIZE),
        Interest::EVERYTHING.union(Interest::WORK),
        unharmed,
    );
    assert!(with_work.work.iter().all(|work| !work.is_empty()));
    assert_eq!(x.events, with_work.events);
}

#[test]
fn timestamps_are_counted_where_both_ends_have_them() {
    let with = TcpConfig { timestamps: true, ..fine() };
    let x = both(&with);
    for host in [RECEIVER, SENDER] {
        let (all, syns) = (x.sent[0] + x.sent[1], 1);
        assert_eq!(x.count(host, Operation::Timestamps), all - syns);
        // The check against old segments begins with the second timestamp.
        assert_eq!(x.count(host, Operation::Paws), x.sent[1 - host] - syns);
    }
    let one = exchange([&fine(), &with], (1, SIZE), Interest::WORK, unharmed);
    assert_eq!(one.count(SENDER, Operation::Timestamps), 1, "the offer");
    for x in [one, both(&fine())] {
        assert_eq!(x.count(RECEIVER, Operation::Timestamps), 0);
        assert_eq!(x.count(SENDER, Operation::Paws) + x.count(RECEIVER, Operation::Paws), 0);
    }
}

#[test]
fn windows_are_scaled_where_that_is_agreed_on() {
    let with = TcpConfig { window_scale: true, recv_buffer: 100_000, ..fine() };
    let shifts = |x: &Exchange, host| x.count(host, Operation::WindowScale);
    let x = both(&with);
    // All segments except the SYN and its answer.
    assert!([0, 1].iter().all(|host| shifts(&x, *host) >= x.sent[0] + x.sent[1] - 3));
    assert_eq!(shifts(&both(&TcpConfig { recv_buffer: 65_535, ..with.clone() }), SENDER), 0);
    assert_eq!(shifts(&exchange([&with, &fine()], (1, SIZE), Interest::WORK, unharmed), SENDER), 0);
    assert_eq!(shifts(&both(&fine()), RECEIVER), 0);
}

#[test]
fn blocks_are_counted_when_something_was_lost() {
    let lossy = |n: u64| (!n.is_multiple_of(17)).then_some(Damage::None);
    let sack = TcpConfig { variant: Variant::Sack, sack: true, initial_window: 8, ..fine() };
    let reno = TcpConfig { variant: Variant::Reno, sack: false, ..sack.clone() };
    let blocks = |x: &Exchange, host| x.count(host, Operation::SackBlock);
    let x = exchange([&sack, &sack], (1, SIZE), Interest::WORK, lossy);
    assert!(blocks(&x, RECEIVER) > 5, "{}", blocks(&x, RECEIVER));
    assert_eq!(blocks(&x, RECEIVER), blocks(&x, SENDER), "all that were written were read");
    let x = exchange([&reno, &reno], (1, SIZE), Interest::WORK, lossy);
    assert_eq!(blocks(&x, RECEIVER) + blocks(&x, SENDER), 0);
    assert_eq!(blocks(&both(&sack), RECEIVER), 0);
    // A retransmitted segment is stored already, with its sum.
    assert_eq!(x.count(SENDER, Operation::CopiedSummedByte), SIZE);
}

#[test]
fn damaged_segments_are_checksummed_but_not_processed() {
    let x = exchange([&fine(), &fine()], (1, SIZE), Interest::WORK, |n| {
        Some(if n % 17 == 0 { Damage::Tcp } else { Damage::None })
    });
    let again = x.sent[SENDER] / 17;
    assert!(again > 3);
    let taken = x.count(RECEIVER, Operation::Processed) + x.count(RECEIVER, Operation::Predicted);
    assert_eq!(taken, x.sent[SENDER] - again);
    assert_eq!(x.count(RECEIVER, Operation::CopiedSummedByte), SIZE);
    let headers = 40 * (x.sent[0] + x.sent[1]) + 8;
    assert!(x.count(RECEIVER, Operation::SummedByte) > headers, "the damaged bytes");
    let ip = exchange([&fine(), &fine()], (1, SIZE), Interest::WORK, |n| {
        Some(if n % 17 == 0 { Damage::Ip } else { Damage::None })
    });
    assert!(ip.count(RECEIVER, Operation::SummedByte) < headers, "their own headers alone");
}

#[test]
fn connections_in_turn_miss_the_cache() {
    let look = |streams| {
        let x = exchange([&fine(), &fine()], (streams, 20_000), Interest::WORK, unharmed);
        let hits = x.count(RECEIVER, Operation::LookupCached);
        assert_eq!(hits, x.hosts[RECEIVER].lookup().cached());
        hits as f64 / (hits + x.count(RECEIVER, Operation::LookupHashed)) as f64
    };
    assert!(look(1) > 0.8, "{}", look(1));
    assert!(look(5) < look(1), "{}", look(5));
}

#[test]
fn acks_by_time_alone_are_few_and_starve_no_sender() {
    let run = |every, timeout| {
        let delayed_ack = DelayedAck { every, timeout };
        let tcp = TcpConfig { delayed_ack, ..fine() };
        let x = exchange([&tcp, &tcp], (1, 2_000_000), Interest::METRICS, unharmed);
        let timeouts = x.events.iter().filter(|event| event.contains("Timeout")).count();
        (x.sent[RECEIVER], timeouts, x.over)
    };
    let (usual, timeouts, quick) = run(2, Span::millis(200));
    assert_eq!(timeouts, 0);
    let (few, timeouts, over) = run(DelayedAck::BY_TIME, Span::millis(500));
    assert_eq!(timeouts, 0, "slow start waits for the timer, not for a timeout");
    // An ACK for half a window of 32 segments.
    assert!(usual > 1000 && few < usual / 6, "{few} of {usual}");
    // The window grows by a segment for each 500 ms until half a window is in flight; from then on at full
    // speed.
    assert!(over.0 < quick.0 + Span::secs(10).0, "{over} after {quick}");
    let (lazy, _, slow) = run(1_000_000, Span::millis(500));
    assert!(
        lazy > 50 && slow.0 > over.0 + Span::secs(15).0,
        "without a look at the window: {slow}"
    );
}
