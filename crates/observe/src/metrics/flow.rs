//! State of one flow during a run.

use std::sync::Arc;

use lasthop_proto::event::{Cause, Tcb, TcpKind};
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Due, Span, Time};
use lasthop_proto::wire::{PacketId, Segment, Seq};

use super::Marks;
use super::carried::{Carried, Declared};
use super::episodes::{Episodes, InForce, Rare};
use super::flow_event::{FlowEvent, first_byte};
use super::timers::Allowed;
use crate::timeouts::TimeoutCauses;

/// One direction of a connection. A run may have a hundred thousand, so the parts for data and for rare
/// events are allocated when first needed.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Flow {
    /// Metrics of its data.
    pub(super) carried: Option<Box<Carried>>,
    /// Sequence number of the SYN: position 0 of the stream.
    origin: Option<Seq>,
    pub(super) opened: Due,
    pub(super) episodes: Option<Box<Episodes>>,
    pub(super) in_force: Option<Box<InForce>>,
    /// Originated packets of [`Cause::Control`], such as SYN and FIN of each flow.
    pub(super) control: u32,
    pub(super) towards: Side,
    pub(super) aborted: bool,
    /// Whether its SYN permitted SACK.
    pub(super) sack: bool,
}

#[cfg(target_pointer_width = "64")]
const _: () =
    assert!(size_of::<Flow>() == 48 && size_of::<Carried>() == 256 && size_of::<Episodes>() == 152);

impl Flow {
    pub(super) fn new(towards: Side) -> Flow {
        Flow {
            carried: None,
            origin: None,
            opened: Due::NEVER,
            episodes: None,
            in_force: None,
            control: 0,
            towards,
            aborted: false,
            sack: false,
        }
    }

    /// Metrics of its data, allocated if needed.
    #[inline]
    pub(super) fn carried(&mut self) -> &mut Carried {
        if self.carried.is_none() {
            self.begin_to_carry();
        }
        self.carried.get_or_insert_default()
    }

    #[cold]
    fn begin_to_carry(&mut self) {
        let mut carried = Box::<Carried>::default();
        if let Some(at) = self.opened.get() {
            carried.stalls.begin(at);
        }
        self.carried = Some(carried);
    }

    /// Rare counts, allocated if needed.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.episodes().rare.get_or_insert_default()
    }

    /// Rare counts, if there are any.
    pub(super) fn has_rare(&self) -> Option<&Rare> {
        self.episodes.as_ref()?.rare.as_deref()
    }

    /// Counts a packet that was originated for `cause`.
    #[inline]
    fn originate(&mut self, cause: Cause) {
        match cause {
            Cause::Data => self.carried().data += 1,
            Cause::Control => self.control = self.control.saturating_add(1),
            cause => self.episodes().originated.add(cause),
        }
    }

    /// Stores the layout's description.
    pub(super) fn declare(&mut self, declared: Arc<Declared>) {
        let carried = self.carried();
        carried.size = declared.bytes.unwrap_or(u64::MAX);
        carried.declared = Some(declared);
    }

    /// The layout's description, if this is the data direction of a transfer that the layout names.
    pub(super) fn declared(&self) -> Option<&Declared> {
        self.carried.as_ref()?.declared.as_deref()
    }

    /// Whether the layout names this direction.
    pub(super) fn is_declared(&self) -> bool {
        self.declared().is_some()
    }

    /// Counts a datagram of its transfer, carried by a link with these marks. Only the ends can read its
    /// content, so each one counts as data.
    pub(super) fn datagram(&mut self, marks: Marks, len: u32) {
        /// Length of the UDP header, bytes.
        const HEADER: u32 = 8;
        let carried = self.carried();
        carried.count(marks);
        carried.largest = carried.largest.max(len.saturating_sub(HEADER));
    }

    /// Whether this direction carries data, or was meant to.
    pub(super) fn counts(&self) -> bool {
        let carried = self.carried.as_ref();
        carried.is_some_and(|c| c.declared.is_some() || c.offered > 0 || c.delivered > 0)
    }

    /// Whether its connection was opened from this end.
    pub(super) fn begun(&self) -> bool {
        self.opened.is_set()
    }

    /// Handles its SYN, which determines the origin of the stream.
    pub(super) fn syn(&mut self, at: Time, segment: &Segment) {
        self.origin = Some(segment.seq);
        self.sack = segment.options().sack_permitted;
        self.open(at);
    }

    fn open(&mut self, at: Time) {
        // Events of kernel senders arrive late, possibly after their data was seen on a link.
        self.opened = Due::at(at.min(self.opened.or_never()));
        if let Some(carried) = &mut self.carried {
            carried.stalls.begin(at);
        }
    }

    /// Reads one word of each cache line that `take` will change, as a prefetch. The result has no meaning.
    #[inline]
    pub(super) fn touch(&self, event: &FlowEvent, brief: bool) -> u64 {
        let Some(carried) = &self.carried else { return 0 };
        match event {
            FlowEvent::Originated { .. } | FlowEvent::Carried { .. } => carried.offered,
            FlowEvent::Crossed { .. } => carried.wireless_packets,
            FlowEvent::Delivered { .. } if brief => carried.delivered,
            FlowEvent::Delivered { .. } => carried.offered ^ carried.delivered ^ carried.delay.n(),
            FlowEvent::Dropped { .. } | FlowEvent::DupAck { .. } => 0,
        }
    }

    /// Counts a buffered event.
    #[inline]
    pub(super) fn take(&mut self, event: FlowEvent, brief: bool) {
        match event {
            FlowEvent::Originated { cause, first, len, at, .. } => {
                self.originate(cause);
                match len {
                    0 if cause == Cause::Data => self.episodes().empty += 1,
                    0 => {}
                    len => self.offer(at, first, len, brief),
                }
            }
            FlowEvent::Carried { marks, first, len, at, .. } => {
                self.carried().count(marks);
                if marks.has(Marks::FIRST) {
                    self.offer(at, first, len, brief);
                }
            }
            FlowEvent::Crossed { first, len, id, .. } => {
                let (carried, start, end) = self.span(first, len);
                if !carried.cross(id, start, end) {
                    self.episodes().redundant += 1;
                }
            }
            FlowEvent::Delivered { bytes, at, .. } => self.deliver(at, bytes, brief),
            FlowEvent::Dropped { cause, .. } => self.episodes().dropped.add(cause),
            FlowEvent::DupAck { srtt, rto, .. } => {
                self.episodes().dupacks += 1;
                self.sample(srtt, rto);
            }
        }
    }

    /// Stream positions of a data packet's payload, where the stream's first byte is 1, with the metrics of
    /// the flow's data.
    #[inline(always)]
    fn span(&mut self, first: Seq, len: u32) -> (&mut Carried, u64, u64) {
        // A flow without a captured SYN begins with its first captured packet.
        let origin = *self.origin.get_or_insert(Seq(first.0.wrapping_sub(1)));
        let carried = self.carried();
        let start = first.unwrap_near(origin, carried.offered).unwrap_or(0);
        (carried, start, start + u64::from(len))
    }

    /// Records a data packet that enters the path. Hosts of the simulator originate it; packets of other
    /// hosts are observed on the first link. Only the first occurrence of each byte counts.
    #[inline]
    fn offer(&mut self, at: Time, first: Seq, len: u32, brief: bool) {
        let (carried, _, end) = self.span(first, len);
        // A flow with data is open.
        if carried.offer(at, end, len, brief) && !self.opened.is_set() {
            self.open(at);
        }
    }

    /// Removes a packet that did not arrive: the channel damaged it, or it was dropped behind the last link.
    #[cold]
    pub(super) fn uncross(&mut self, id: PacketId, segment: &Segment, len: u32) {
        match self.carried().forget(id) {
            Some(true) => {
                let (carried, start, end) = self.span(first_byte(segment), len);
                carried.uncross(start, end);
            }
            Some(false) => self.episodes().redundant -= 1,
            None => {}
        }
    }

    /// Records data that was delivered to the application at the other end.
    fn deliver(&mut self, at: Time, bytes: u32, brief: bool) {
        if self.carried().deliver(at, bytes, brief) {
            self.episodes().completion.received(at);
        }
    }

    /// Recovery events, allocated if needed.
    pub(super) fn episodes(&mut self) -> &mut Episodes {
        self.episodes.get_or_insert_default()
    }

    /// Samples the control block at an event of its sender.
    fn sample(&mut self, srtt: Span, rto: Span) {
        let in_force = self.in_force.get_or_insert_default();
        in_force.srtt.add(srtt);
        in_force.rto.add(rto);
    }

    fn end_if_complete(&mut self, at: Time) {
        if self.episodes().completion.at().is_some() {
            self.carried().stalls.end(at);
        }
    }

    /// Handles an event of a base station's connection that forwards this flow.
    pub(super) fn relay_event(&mut self, at: Time, kind: TcpKind) {
        self.episodes().completion.relay_event(at, kind);
        self.end_if_complete(at);
    }

    /// Handles an expiration of its sender's timer; `sack` is whether the ends agreed on SACK.
    pub(super) fn timer_expired(&mut self, tcb: &Tcb, sack: bool) {
        // Before the connection is open there are no duplicate ACKs.
        if tcb.snd_una == 0 {
            return;
        }
        let declared = self.declared().and_then(|declared| declared.bytes);
        let full = self.carried.as_ref().map_or(0, |carried| carried.largest);
        // Position 0 is the SYN.
        let end = declared.map(|bytes| bytes.saturating_add(1));
        self.rare().timers.expired(tcb, Allowed { sack, full, end });
    }

    /// Its timeouts by cause; `None` if there were none.
    pub(super) fn timeout_causes(&self) -> Option<TimeoutCauses> {
        let offered = self.carried.as_ref().map_or(0, |carried| carried.offered);
        Some(self.has_rare()?.timers.causes(offered))
    }

    /// Handles an event of the end point that sends this flow.
    pub(super) fn sender_event(&mut self, at: Time, kind: TcpKind, tcb: &Tcb) {
        match kind {
            TcpKind::Opening => self.open(at),
            TcpKind::DupAck => self.episodes().dupacks += 1,
            TcpKind::FastRetransmit => {
                self.rare().timers.recovery(kind, tcb);
                self.episodes().fast_retransmits += 1;
            }
            TcpKind::RecoveryEnded => {
                self.rare().timers.recovery(kind, tcb);
                self.episodes().recoveries += 1;
            }
            TcpKind::Timeout => {
                let own = self.episodes();
                own.timeouts += 1;
                own.opening_timeouts += u32::from(tcb.snd_una == 0);
            }
            TcpKind::PartialAck => self.episodes().partial_acks += 1,
            TcpKind::LossNotified => self.episodes().loss_notifications += 1,
            TcpKind::BadStateNotified => self.episodes().bad_state_notices += 1,
            TcpKind::Quenched => self.episodes().quenches += 1,
            TcpKind::CongestionEchoed => self.episodes().congestion_echoes += 1,
            TcpKind::Complete => {
                self.episodes().completion.sender_complete(at);
                self.end_if_complete(at);
            }
            TcpKind::Aborted => {
                self.aborted = true;
                self.carried().stalls.end(at);
            }
            TcpKind::Asked => {
                self.rare().exchanges.get_or_insert_default().open.push_back(at);
                return;
            }
            TcpKind::Answered => {
                let exchanges = self.rare().exchanges.get_or_insert_default();
                let begun = exchanges.open.pop_front();
                exchanges.times.extend(begun.map(|begun| at.since(begun)));
                return;
            }
            // Events of the other direction, or of a full trace only.
            TcpKind::Delivered { .. }
            | TcpKind::Acked
            | TcpKind::Sampled
            | TcpKind::AckFactor { .. } => return,
            TcpKind::Established | TcpKind::TailLossProbe | TcpKind::WindowProbe => {}
            TcpKind::Undone => {
                // An undo ends a fast recovery, or the repair after a timeout.
                let timers = &mut self.rare().timers;
                let recovers = timers.is_recovering();
                timers.recovery(kind, tcb);
                let own = self.episodes();
                own.undone += 1;
                own.recoveries += u32::from(recovers);
            }
            TcpKind::Corrupted | TcpKind::Closed => {}
        }
        self.sample(tcb.srtt, tcb.rto);
    }
}
