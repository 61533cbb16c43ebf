//! Sends packets through a machine and records their fates.

use lasthop_proto::event::{Cause, EventKind, Interest, Op};
use lasthop_proto::machine::{Machine, Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Damage, Flags, Packet, PacketId, Segment, Seq};

/// A packet of `bytes` bytes, 40 of them headers. Each acknowledges more than the previous one.
pub fn packet(id: u64, bytes: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(0), Seq(1000 * id as u32), Flags::ACK);
    let body = Body::Pattern { stream: 1, len: bytes - 40, offset: 0 };
    let mut packet = Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body);
    packet.id = PacketId(id);
    packet
}

/// How long the deadlines of an empty machine are handled: machines with beacons have deadlines without end.
const PATIENCE: Span = Span::secs(2);

/// Fates of packets: times and sides of delivered ones, and the dropped ones.
#[derive(Default, Debug, PartialEq)]
pub struct Outcome {
    pub out: Vec<(Time, Side, u64)>,
    pub dropped: Vec<(Time, u64, Cause)>,
    /// Packets that the channel damaged.
    pub damaged: Vec<u64>,
}

/// Sends `arrivals` (sorted by time; side and length) through `machine`, and checks conservation at each
/// step.
pub fn play(machine: &mut impl Machine, arrivals: &[(Time, Side, u32)]) -> Outcome {
    play_late(machine, arrivals, |wake| wake)
}

/// The same on a late clock: a deadline at `t` is handled at `late(t)`.
pub fn play_late(
    machine: &mut impl Machine,
    arrivals: &[(Time, Side, u32)],
    late: impl Fn(Time) -> Time,
) -> Outcome {
    play_packets(machine, arrivals, late, |id, _, bytes| packet(id, bytes))
}

/// The same with packets that `make` creates from number, side and length.
pub fn play_packets(
    machine: &mut impl Machine,
    arrivals: &[(Time, Side, u32)],
    late: impl Fn(Time) -> Time,
    make: impl Fn(u64, Side, u32) -> Packet,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut out = Out::new(Interest::EVERYTHING);
    let mut arrivals = arrivals.iter().enumerate().peekable();
    let mut arrived = 0;
    let mut idle_since = None;
    loop {
        let wake = machine.next_wake().map_or(Time::NEVER, &late);
        let idle = idle_since.is_some_and(|at: Time| wake.since(at) > PATIENCE);
        let now = match arrivals.peek() {
            Some((_, (at, ..))) if *at <= wake => *at,
            None if idle => break,
            _ if wake == Time::NEVER => break,
            _ => wake,
        };
        out.begin(Default::default(), now);
        match arrivals.next_if(|(_, (at, ..))| *at == now) {
            Some((id, (_, from, bytes))) => {
                machine.on_packet(now, *from, make(id as u64, *from, *bytes), &mut out);
                arrived += 1;
            }
            None => {
                machine.on_wake(now, &mut out);
                assert!(machine.next_wake().is_none_or(|next| next > now), "no progress at {now}");
            }
        }
        let damaged = out.sends.iter().filter(|(_, packet)| packet.damage != Damage::None);
        outcome.damaged.extend(damaged.map(|(_, packet)| packet.id.0));
        outcome.out.extend(out.sends.drain(..).map(|(side, packet)| (now, side, packet.id.0)));
        for event in out.events.drain(..) {
            if let EventKind::Packet { op: Op::Dropped(cause), packet, .. } = event.kind {
                outcome.dropped.push((now, packet.id.0, cause));
            }
        }
        let ended = outcome.out.len() + outcome.dropped.len();
        assert_eq!(arrived, ended + machine.holds(), "conservation at {now}");
        idle_since = (machine.holds() == 0).then_some(idle_since.unwrap_or(now));
    }
    assert_eq!(machine.holds(), 0);
    outcome
}
