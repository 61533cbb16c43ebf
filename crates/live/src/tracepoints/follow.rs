//! Converts tracepoint lines to events of a connection, each with the control block right after it.
//!
//! A tracepoint reports an event but not its effect. `tcp_probe` shows the block before its segment is
//! processed, and a change of state shows no block. So each event waits for a block: that of the socket's
//! next `tcp_probe`, or a result of `TCP_INFO` before the next event. The time is the tracepoint's in either
//! case.
//!
//! Sequence numbers become stream positions by pairing. While no segment has arrived since a result of
//! `TCP_INFO`, the next `tcp_probe` shows the `snd_una` that belongs to its count of acknowledged bytes. At
//! the first `tcp_probe` of a connection that count is one, for the SYN.

use std::collections::VecDeque;

use lasthop_proto::event::{Event, EventKind, Tcb, TcpEvent, TcpKind};
use lasthop_proto::side::StageId;
use lasthop_proto::tcp::state::State;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;

use super::line::{Point, Probe, Raw};
use crate::endpoint::{CaState, TcpInfo};

/// Number of lines buffered for unknown sockets. Some may belong to a connection that is registered later.
const UNKNOWN: usize = 4096;

/// `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// A connection that is followed.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// Identifier of the connection here.
    pub id: u64,
    /// The flow as seen from this end.
    pub flow: FlowKey,
    /// The stage in its events.
    pub stage: StageId,
    /// The thread that opens it.
    pub thread: i32,
    /// The socket's cookie.
    pub cookie: u64,
}

/// An event that waits for the block after it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Time,
    /// `None` for an arrived segment: its effect shows in the block.
    kind: Option<TcpKind>,
    in_recovery: bool,
}

#[derive(Debug)]
struct Flow {
    about: Followed,
    /// Kernel address of its socket, once known.
    socket: Option<u64>,
    /// Latest TCP_INFO.
    info: Option<TcpInfo>,
    /// Time of the latest TCP_INFO; `None` after a later event.
    info_at: Option<Time>,
    state: u8,
    /// Sequence number of position 0.
    iss: Option<u32>,
    /// The count of acknowledged bytes that belongs to the next `tcp_probe`.
    pair: Option<u64>,
    last: Option<Tcb>,
    waiting: Vec<Waiting>,
    timeouts: u64,
    closed: Option<Time>,
}

/// Follows connections.
#[derive(Debug, Default)]
pub struct Follower {
    flows: Vec<Flow>,
    /// Lines in reading order. It differs slightly from their order in time, since each processor has its own
    /// buffer.
    lines: Vec<(Time, Raw)>,
    unknown: VecDeque<(Time, Raw)>,
    lost: u64,
}

impl Follower {
    /// Starts to follow a connection. The tracepoint of its SYN may have been read already.
    pub fn follow(&mut self, about: Followed) {
        self.flows.push(Flow {
            about,
            socket: None,
            info: None,
            info_at: None,
            state: 0,
            iss: None,
            pair: None,
            last: None,
            waiting: Vec::new(),
            timeouts: 0,
            closed: None,
        });
    }

    /// Adds a line.
    pub fn read(&mut self, at: Time, raw: Raw) {
        self.lines.push((at, raw));
    }

    /// Records events that were lost before they could be read.
    pub fn lost(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
        for flow in &mut self.flows {
            flow.pair = None;
        }
    }

    /// Number of lost events.
    pub fn events_lost(&self) -> u64 {
        self.lost
    }

    /// Connections that need a TCP_INFO now.
    pub fn pending(&self) -> impl Iterator<Item = u64> {
        let needs_info = |f: &&Flow| {
            f.closed.is_none() && f.info_at.is_none() && (!f.waiting.is_empty() || f.info.is_none())
        };
        self.flows.iter().filter(needs_info).map(|f| f.about.id)
    }

    /// Stores the TCP_INFO of a connection, read at `at`.
    pub fn answer(&mut self, id: u64, at: Time, info: TcpInfo) {
        if let Some(flow) = self.flows.iter_mut().find(|f| f.about.id == id) {
            flow.info = Some(info);
            flow.info_at = Some(at);
        }
    }

    /// Marks the connection as about to close; `info` is its last TCP_INFO.
    pub fn close(&mut self, id: u64, at: Time, info: Option<TcpInfo>) {
        if let Some(flow) = self.flows.iter_mut().find(|f| f.about.id == id) {
            flow.closed = Some(at);
            flow.info = info.or(flow.info);
            flow.info_at = None;
        }
    }

    /// Emits the events that the lines before `until` determine. All those lines must have been read.
    pub fn advance(&mut self, until: Time, mut out: impl FnMut(Event)) {
        // The sort is stable: lines of equal time remain in reading order.
        self.lines.sort_by_key(|(at, _)| *at);
        let ready = self.lines.partition_point(|(at, _)| *at < until);
        let rest = self.lines.split_off(ready);
        for (at, raw) in std::mem::replace(&mut self.lines, rest) {
            self.line(at, raw, &mut out);
        }
        for flow in &mut self.flows {
            // For an unknown socket there may be later events that are not assigned to it yet.
            if flow.socket.is_some() && flow.info_at.is_some_and(|at| at < until) {
                flow.settle_by_info(&mut out);
            }
            if flow.closed.is_some_and(|at| at < until) {
                flow.settle_by_info(&mut out);
                // If no line was lost, every timeout that the kernel counted was seen. Missing ones count as
                // lost.
                let counted = flow.info.and_then(|info| info.total_rto).unwrap_or(0);
                if self.lost == 0 {
                    self.lost += u64::from(counted).saturating_sub(flow.timeouts);
                }
            }
        }
        self.flows.retain(|f| f.closed.is_none_or(|at| at >= until));
    }

    /// After [`advance`](Follower::advance) to `until`: the time before which all events are emitted. Events
    /// that wait for a block follow later.
    pub fn complete_until(&self, until: Time) -> Time {
        let waiting = self.flows.iter().flat_map(|flow| &flow.waiting).map(|waiting| waiting.at);
        waiting.fold(until, Time::min)
    }

    fn line(&mut self, at: Time, raw: Raw, out: &mut impl FnMut(Event)) {
        if let Some(flow) = self.flows.iter_mut().find(|f| f.socket == Some(raw.socket)) {
            return flow.line(at, raw, out);
        }
        let mine = |f: &&mut Flow| f.socket.is_none() && f.is(&raw);
        let Some(flow) = self.flows.iter_mut().find(mine) else {
            self.unknown.push_back((at, raw));
            if self.unknown.len() > UNKNOWN {
                self.unknown.pop_front();
            }
            return;
        };
        flow.socket = Some(raw.socket);
        // Lines of this socket from before its registration.
        let (earlier, others) =
            self.unknown.drain(..).partition(|(_, other)| other.socket == raw.socket);
        self.unknown = others;
        let earlier: VecDeque<(Time, Raw)> = earlier;
        for (at, raw) in earlier {
            flow.line(at, raw, out);
        }
        flow.line(at, raw, out);
    }
}

impl Flow {
    /// Whether this line identifies the socket of the connection.
    fn is(&self, raw: &Raw) -> bool {
        raw.port == self.about.flow.src_port
            && match raw.point {
                Point::Opening => raw.thread == self.about.thread,
                Point::Probe(probe) => probe.cookie == self.about.cookie,
                Point::State(_) => false,
            }
    }

    fn line(&mut self, at: Time, raw: Raw, out: &mut impl FnMut(Event)) {
        if self.closed.is_some_and(|closed| at > closed) {
            return;
        }
        if let Some(info_at) = self.info_at {
            if at > info_at {
                self.settle_by_info(out);
            }
            self.info_at = None;
        }
        let kind = match raw.point {
            Point::Opening => {
                self.pair = Some(1);
                return;
            }
            // Another socket reuses the kernel address.
            Point::Probe(probe) if probe.cookie != self.about.cookie => return,
            Point::Probe(probe) => {
                self.settle_by_probe(&probe, out);
                None
            }
            Point::State(state) => {
                let before = std::mem::replace(&mut self.state, state);
                match (before, state) {
                    // The kernel reports each expiration, also repeated ones.
                    (_, LOSS) => Some(TcpKind::Timeout),
                    (RECOVERY, RECOVERY) => return,
                    (_, RECOVERY) => Some(TcpKind::FastRetransmit),
                    (RECOVERY, _) => Some(TcpKind::RecoveryEnded),
                    (LOSS, _) => Some(TcpKind::Undone),
                    _ => return,
                }
            }
        };
        self.timeouts += u64::from(kind == Some(TcpKind::Timeout));
        self.waiting.push(Waiting { at, kind, in_recovery: self.state == RECOVERY });
    }

    fn settle_by_probe(&mut self, probe: &Probe, out: &mut impl FnMut(Event)) {
        let pair = self.pair.take();
        if self.iss.is_none() {
            self.iss = pair.map(|acked| probe.snd_una.wrapping_sub(acked as u32));
        }
        // Before the handshake TCP_INFO has another segment size.
        let known = self.info.filter(|info| info.state != Some(State::SynSent));
        if let (Some(iss), Some(info)) = (self.iss, known) {
            self.settle(block(probe, iss, &info, self.last), out);
        }
    }

    fn settle_by_info(&mut self, out: &mut impl FnMut(Event)) {
        self.info_at = None;
        let Some(info) = self.info else { return };
        if info.state == Some(State::Established) {
            self.pair = Some(info.bytes_acked);
        }
        self.state = match info.ca_state {
            CaState::Open => 0,
            CaState::Disorder => 1,
            CaState::Cwr => 2,
            CaState::Recovery => RECOVERY,
            CaState::Loss => LOSS,
            CaState::Unknown => self.state,
        };
        self.settle(info.tcb(), out);
    }

    /// Emits the events that waited for this block.
    fn settle(&mut self, tcb: Tcb, out: &mut impl FnMut(Event)) {
        // Only an undo raises the threshold when a repair ends (`tcp_undo_cwnd_reduction`).
        let undone = self.last.is_some_and(|last| tcb.ssthresh > last.ssthresh);
        for waiting in std::mem::take(&mut self.waiting) {
            let tcb = Tcb { in_recovery: waiting.in_recovery, ..tcb };
            let moved = self.last.is_none_or(|last| tcb.snd_una > last.snd_una);
            let kind = match waiting.kind {
                Some(TcpKind::RecoveryEnded) if undone => TcpKind::Undone,
                Some(kind) if kind != TcpKind::Undone || undone => kind,
                Some(_) | None if moved => TcpKind::Acked,
                Some(_) | None if self.last != Some(tcb) => TcpKind::Sampled,
                Some(_) | None => continue,
            };
            self.last = Some(tcb);
            let kind = EventKind::Tcp(TcpEvent { flow: self.about.flow, kind, tcb });
            out(Event { at: waiting.at, stage: self.about.stage, kind });
        }
    }
}

/// The block of a probe. Fields that it lacks are from the latest TCP_INFO.
fn block(probe: &Probe, iss: u32, info: &TcpInfo, last: Option<Tcb>) -> Tcb {
    let base = info.tcb();
    // The nearest position to the last one, since 32-bit numbers wrap every 4 GiB.
    let near = last.map_or(0, |last| last.snd_una);
    let position = |seq: u32| {
        let ahead = seq.wrapping_sub(iss).wrapping_sub(near as u32) as i32;
        near.saturating_add_signed(ahead.into())
    };
    let snd_nxt = position(probe.snd_nxt);
    Tcb {
        snd_una: position(probe.snd_una),
        snd_nxt,
        snd_max: snd_nxt,
        cwnd: probe.cwnd.saturating_mul(info.snd_mss),
        ssthresh: probe.ssthresh.saturating_mul(info.snd_mss),
        snd_wnd: probe.snd_wnd,
        srtt: Span::micros(probe.srtt.into()),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::wire::Addr;

    const PORT: u16 = 20_000;
    const ISS: u32 = u32::MAX - 1000;

    fn about() -> Followed {
        let (src, dst) = (Addr::v4(10, 0, 0, 1), Addr::v4(10, 1, 0, 1));
        let flow = FlowKey { src, dst, src_port: PORT, dst_port: 9 };
        Followed { id: 0, flow, stage: StageId(0), thread: 7, cookie: 70 }
    }

    fn info(bytes_acked: u64, cwnd: u32) -> TcpInfo {
        let mut bytes = [0; 248];
        bytes[0] = 1;
        bytes[16..20].copy_from_slice(&1000_u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes).expect("long enough");
        TcpInfo { bytes_acked, cwnd, ..info }
    }

    fn raw(socket: u64, point: Point) -> Raw {
        Raw { at: 0, thread: 7, socket, port: PORT, point }
    }

    fn probe(cookie: u64, acked: u32, cwnd: u32) -> Point {
        let snd_una = ISS.wrapping_add(acked);
        let snd_nxt = snd_una.wrapping_add(3000);
        Point::Probe(Probe { cookie, snd_nxt, snd_una, cwnd, ssthresh: 8, snd_wnd: 9000, srtt: 50 })
    }

    fn advance(follower: &mut Follower, until: u64) -> Vec<(u64, TcpKind, u64, u32)> {
        let mut events = Vec::new();
        follower.advance(Time(until), |event| match event.kind {
            EventKind::Tcp(tcp) => {
                events.push((event.at.0, tcp.kind, tcp.tcb.snd_una, tcp.tcb.cwnd))
            }
            other => panic!("{other:?}"),
        });
        events
    }

    /// A connection with a known socket, and its first segment at time 10.
    fn opened() -> Follower {
        let mut follower = Follower::default();
        follower.follow(about());
        follower.read(Time(1), raw(1, Point::Opening));
        follower.answer(0, Time(5), info(1, 4));
        follower.read(Time(10), raw(1, probe(70, 1, 4)));
        follower
    }

    #[test]
    fn an_event_gets_the_tcb_of_the_next_probe() {
        let mut follower = opened();
        follower.read(Time(20), raw(1, probe(70, 1001, 5)));
        follower.read(Time(30), raw(1, probe(70, 3001, 6)));
        use TcpKind::Acked;
        assert_eq!(advance(&mut follower, 100), [(10, Acked, 1001, 5000), (20, Acked, 3001, 6000)]);
        // The last event waits for a TCP_INFO, and for all lines before that.
        assert_eq!(follower.pending().collect::<Vec<_>>(), [0]);
        follower.answer(0, Time(110), info(4001, 7));
        assert_eq!(advance(&mut follower, 110), []);
        assert_eq!(follower.complete_until(Time(110)), Time(30), "one waits");
        assert_eq!(advance(&mut follower, 111), [(30, Acked, 4001, 7000)]);
        assert_eq!(follower.complete_until(Time(111)), Time(111));
        assert_eq!(follower.pending().count(), 0);
    }

    #[test]
    fn each_rto_is_a_timeout_and_recoveries_end_once() {
        let mut follower = opened();
        for (at, state) in [(11, 1), (12, 3), (13, 3), (20, 0), (30, 3), (40, 4), (50, 4), (60, 0)]
        {
            follower.read(Time(at), raw(1, Point::State(state)));
        }
        follower.read(Time(70), raw(1, probe(70, 1, 1)));
        let events = advance(&mut follower, 100);
        let kinds: Vec<_> = events.iter().map(|(at, kind, ..)| (*at, *kind)).collect();
        use TcpKind::*;
        assert_eq!(
            kinds,
            [
                (10, Acked),
                (12, FastRetransmit),
                (20, RecoveryEnded),
                (30, FastRetransmit),
                (40, Timeout),
                (50, Timeout)
            ]
        );
    }

    /// The block after the end of a repair shows whether it was reverted, even if an ACK waits for the same block.
    #[test]
    fn a_raised_threshold_is_an_undo() {
        for (state, ssthresh, kinds) in [
            (3, 8, &[TcpKind::FastRetransmit, TcpKind::Acked, TcpKind::RecoveryEnded][..]),
            (3, 9, &[TcpKind::FastRetransmit, TcpKind::Acked, TcpKind::Undone]),
            (4, 8, &[TcpKind::Timeout, TcpKind::Acked]),
            (4, 9, &[TcpKind::Timeout, TcpKind::Acked, TcpKind::Undone]),
        ] {
            let mut follower = opened();
            follower.read(Time(20), raw(1, Point::State(state)));
            follower.read(Time(30), raw(1, probe(70, 1001, 2)));
            follower.read(Time(31), raw(1, Point::State(0)));
            let Point::Probe(last) = probe(70, 2001, 5) else { unreachable!() };
            follower.read(Time(40), raw(1, Point::Probe(Probe { ssthresh, ..last })));
            let events = advance(&mut follower, 100);
            let found: Vec<_> = events.iter().map(|(_, kind, ..)| *kind).skip(1).collect();
            assert_eq!(found, kinds, "{state} {ssthresh}");
        }
    }

    #[test]
    fn a_late_line_discards_a_newer_tcp_info() {
        let mut follower = opened();
        follower.read(Time(20), raw(1, Point::State(4)));
        assert_eq!(advance(&mut follower, 25), []);
        // Read late: another processor was slow to write the line.
        follower.answer(0, Time(40), info(1, 1));
        follower.read(Time(35), raw(1, probe(70, 1, 2)));
        let events = advance(&mut follower, 100);
        assert_eq!(events.last(), Some(&(20, TcpKind::Timeout, 1, 2000)));
    }

    #[test]
    fn the_same_ports_of_another_testbed_are_another_socket() {
        let mut follower = Follower::default();
        let other = Raw { thread: 8, ..raw(2, Point::Opening) };
        follower.read(Time(1), other);
        follower.read(Time(2), raw(2, Point::State(4)));
        // The socket opens before the connection is registered.
        follower.read(Time(3), raw(1, Point::Opening));
        follower.read(Time(4), raw(1, Point::State(4)));
        assert_eq!(advance(&mut follower, 10), []);
        follower.follow(about());
        follower.read(Time(20), raw(2, probe(71, 1, 9)));
        follower.read(Time(21), raw(1, probe(70, 1, 2)));
        follower.answer(0, Time(22), info(1, 2));
        follower.read(Time(30), raw(2, probe(71, 5001, 9)));
        assert_eq!(advance(&mut follower, 100), [(4, TcpKind::Timeout, 1, 2000)]);
        follower.answer(0, Time(110), info(1, 3));
        assert_eq!(advance(&mut follower, 200), [(21, TcpKind::Sampled, 1, 3000)]);
    }

    #[test]
    fn lost_events_are_counted_without_shifting_positions() {
        let mut follower = Follower::default();
        follower.follow(about());
        follower.lost(5);
        follower.read(Time(10), raw(1, probe(70, 2001, 4)));
        assert_eq!(advance(&mut follower, 11), []);
        follower.answer(0, Time(12), info(3001, 5));
        assert_eq!(advance(&mut follower, 20), [(10, TcpKind::Acked, 3001, 5000)]);
        follower.read(Time(30), raw(1, probe(70, 3001, 5)));
        follower.read(Time(40), raw(1, probe(70, 4001, 6)));
        assert_eq!(advance(&mut follower, 50), [(30, TcpKind::Acked, 4001, 6000)]);
        assert_eq!(follower.events_lost(), 5);
    }

    #[test]
    fn timeouts_missing_from_the_trace_count_as_lost() {
        let mut follower = opened();
        follower.read(Time(20), raw(1, Point::State(4)));
        let last = TcpInfo { total_rto: Some(3), ..info(1, 1) };
        follower.close(0, Time(50), Some(last));
        let events = advance(&mut follower, u64::MAX);
        assert_eq!(events.last(), Some(&(20, TcpKind::Timeout, 1, 1000)));
        assert_eq!(follower.events_lost(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let mut follower = Follower::default();
        for n in 0..10_000 {
            follower.read(Time(n), raw(n, Point::State(4)));
            advance(&mut follower, n);
        }
        assert!(follower.unknown.len() <= UNKNOWN);
    }

    #[test]
    fn the_control_block_has_all_fields_of_a_probe() {
        let info = info(0, 3);
        let probe = Probe {
            cookie: 70,
            snd_nxt: ISS.wrapping_add(5000),
            snd_una: ISS.wrapping_add(2000),
            cwnd: 11,
            ssthresh: 7,
            snd_wnd: 40_000,
            srtt: 1250,
        };
        let block = block(&probe, ISS, &info, None);
        assert_eq!((block.snd_una, block.snd_nxt, block.snd_max), (2000, 5000, 5000));
        assert_eq!((block.cwnd, block.ssthresh), (11 * info.snd_mss, 7 * info.snd_mss));
        assert_eq!((block.snd_wnd, block.srtt), (40_000, Span::micros(1250)));
        assert!(info.snd_mss > 1);
    }
}
