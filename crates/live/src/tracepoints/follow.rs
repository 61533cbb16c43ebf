//! From what tracepoints tell to events of a connection, each with the control block right after it.
//!
//! A tracepoint tells that something happens, not what comes of it: `tcp_probe` shows the block before its segment
//! is looked at, and a change of state shows no block at all. So each waits for the block: that of the next
//! `tcp_probe` of the socket, or an answer of `TCP_INFO` before anything else happened to it. The time is the
//! tracepoint's in either case.
//!
//! Sequence numbers become stream positions by pairing: as long as nothing has come in since an answer of
//! `TCP_INFO`, the next `tcp_probe` shows the `snd_una` that belongs to its count of acknowledged bytes. At the
//! first `tcp_probe` of a connection that count is one, the SYN.

use std::collections::VecDeque;

use lasthop_proto::event::{Event, Tcb, TcpEvent, TcpKind, What};
use lasthop_proto::place::StageId;
use lasthop_proto::tcp::state::State;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;

use super::line::{Point, Probe, Raw};
use crate::endpoint::{CaState, TcpInfo};

/// What is kept of sockets that are not known: the most recent lines, since some may be ours and told late.
const UNKNOWN: usize = 4096;

/// `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// A connection that is followed.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// The number that it is called by here.
    pub id: u64,
    /// The flow from this end.
    pub flow: FlowKey,
    /// The stage that events name.
    pub stage: StageId,
    /// The thread that opens it.
    pub thread: i32,
    /// The cookie of its socket.
    pub cookie: u64,
}

/// Something that waits for the block after it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Time,
    /// `None` for a segment that came in: what came of it shows in the block.
    kind: Option<TcpKind>,
    in_recovery: bool,
}

#[derive(Debug)]
struct Flow {
    about: Followed,
    /// Where its socket lies in the kernel, once that is known.
    socket: Option<u64>,
    /// The last answer of TCP_INFO.
    info: Option<TcpInfo>,
    /// When it was given, while nothing is known to have happened since.
    asked: Option<Time>,
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
    /// Lines in the order in which they were read, which is not quite that of their times: each processor has a
    /// buffer of its own.
    lines: Vec<(Time, Raw)>,
    unknown: VecDeque<(Time, Raw)>,
    lost: u64,
}

impl Follower {
    /// Begins to follow a connection; its SYN may have been told already.
    pub fn follow(&mut self, about: Followed) {
        self.flows.push(Flow {
            about,
            socket: None,
            info: None,
            asked: None,
            state: 0,
            iss: None,
            pair: None,
            last: None,
            waiting: Vec::new(),
            timeouts: 0,
            closed: None,
        });
    }

    /// Takes in a line.
    pub fn read(&mut self, at: Time, raw: Raw) {
        self.lines.push((at, raw));
    }

    /// Events were lost before they could be read.
    pub fn lost(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
        for flow in &mut self.flows {
            flow.pair = None;
        }
    }

    /// Events that were lost.
    pub fn events_lost(&self) -> u64 {
        self.lost
    }

    /// Connections whose TCP_INFO is wanted now.
    pub fn wanted(&self) -> impl Iterator<Item = u64> {
        let wanted = |f: &&Flow| {
            f.closed.is_none() && f.asked.is_none() && (!f.waiting.is_empty() || f.info.is_none())
        };
        self.flows.iter().filter(wanted).map(|f| f.about.id)
    }

    /// The answer, which was there at `at`.
    pub fn answer(&mut self, id: u64, at: Time, info: TcpInfo) {
        if let Some(flow) = self.flows.iter_mut().find(|f| f.about.id == id) {
            flow.info = Some(info);
            flow.asked = Some(at);
        }
    }

    /// The connection is about to be closed for good; `info` is the last that can be had of it.
    pub fn close(&mut self, id: u64, at: Time, info: Option<TcpInfo>) {
        if let Some(flow) = self.flows.iter_mut().find(|f| f.about.id == id) {
            flow.closed = Some(at);
            flow.info = info.or(flow.info);
            flow.asked = None;
        }
    }

    /// All lines of before `until` have been read: hands on the events that are known by them.
    pub fn advance(&mut self, until: Time, mut out: impl FnMut(Event)) {
        // Lines of one time stay in the order in which they were read.
        self.lines.sort_by_key(|(at, _)| *at);
        let ready = self.lines.partition_point(|(at, _)| *at < until);
        let rest = self.lines.split_off(ready);
        for (at, raw) in std::mem::replace(&mut self.lines, rest) {
            self.line(at, raw, &mut out);
        }
        for flow in &mut self.flows {
            // Of a socket that is not known it cannot be told whether something happened to it.
            if flow.socket.is_some() && flow.asked.is_some_and(|at| at < until) {
                flow.settle_by_info(&mut out);
            }
            if flow.closed.is_some_and(|at| at < until) {
                flow.settle_by_info(&mut out);
                // Where nothing was lost on the way, what the kernel counted must have been told.
                let counted = flow.info.and_then(|info| info.total_rto).unwrap_or(0);
                if self.lost == 0 {
                    self.lost += u64::from(counted).saturating_sub(flow.timeouts);
                }
            }
        }
        self.flows.retain(|f| f.closed.is_none_or(|at| at >= until));
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
        // What was told of it before it was known.
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
    /// Whether this line shows which socket is ours.
    fn is(&self, raw: &Raw) -> bool {
        raw.port == self.about.flow.src_port
            && match raw.what {
                Point::Opening => raw.thread == self.about.thread,
                Point::Probe(probe) => probe.cookie == self.about.cookie,
                Point::State(_) => false,
            }
    }

    fn line(&mut self, at: Time, raw: Raw, out: &mut impl FnMut(Event)) {
        if self.closed.is_some_and(|closed| at > closed) {
            return;
        }
        if let Some(asked) = self.asked {
            if at > asked {
                self.settle_by_info(out);
            }
            self.asked = None;
        }
        let kind = match raw.what {
            Point::Opening => {
                self.pair = Some(1);
                return;
            }
            // Another socket, in the place of ours.
            Point::Probe(probe) if probe.cookie != self.about.cookie => return,
            Point::Probe(probe) => {
                self.settle_by_probe(&probe, out);
                None
            }
            Point::State(state) => {
                let before = std::mem::replace(&mut self.state, state);
                match (before, state) {
                    // Told at each expiration, also if it follows another.
                    (_, LOSS) => Some(TcpKind::Timeout),
                    (RECOVERY, RECOVERY) => return,
                    (_, RECOVERY) => Some(TcpKind::FastRetransmit),
                    (RECOVERY, _) => Some(TcpKind::RecoveryEnded),
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
        self.asked = None;
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

    /// Tells what has waited for this block.
    fn settle(&mut self, tcb: Tcb, out: &mut impl FnMut(Event)) {
        for waiting in std::mem::take(&mut self.waiting) {
            let tcb = Tcb { in_recovery: waiting.in_recovery, ..tcb };
            let moved = self.last.is_none_or(|last| tcb.snd_una > last.snd_una);
            let kind = match waiting.kind {
                Some(kind) => kind,
                None if moved => TcpKind::Acked,
                None if self.last != Some(tcb) => TcpKind::Sampled,
                None => continue,
            };
            self.last = Some(tcb);
            let what = What::Tcp(TcpEvent { flow: self.about.flow, kind, tcb });
            out(Event { at: waiting.at, stage: self.about.stage, what });
        }
    }
}

/// The block that a probe shows; what it does not tell is that of the last answer of TCP_INFO.
fn block(probe: &Probe, iss: u32, info: &TcpInfo, last: Option<Tcb>) -> Tcb {
    let base = info.tcb();
    // The position next to one that is known, since 32 bits come round every 4 GiB.
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
