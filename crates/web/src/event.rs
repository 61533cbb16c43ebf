//! One event of a run, in full.

use lasthop_observe::Sink;
use lasthop_proto::event::{Event, EventKind, Op, Tcb, TcpEvent};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use lasthop_sim::runs::layout;
use serde_json::{Value, json};

use crate::envelope::Columns;
use crate::request::{ErrorAnswer, RunRequest};
use crate::rows::{Positions, fields};
use crate::run::{MOST_EVENTS, driven};
use crate::words;

/// Repeats the run and reports event number `index`.
pub(crate) fn event(one: &RunRequest, index: usize) -> Result<Vec<u8>, ErrorAnswer> {
    let (scenario, seed) = one.scenario()?;
    let mut picked = EventFinder { left: index, positions: Positions::default(), event: None };
    driven(&scenario, seed, MOST_EVENTS.min(index as u64 * 4 + 400_000), &mut picked);
    let Some((event, bytes, acked)) = picked.event else {
        return Err(ErrorAnswer::new(
            format!("the run has no event {index}"),
            "choose one that is in the picture",
        ));
    };
    let layout = layout(&scenario);
    let fields: Vec<Value> =
        fields(&event, &layout).into_iter().map(|(name, value)| json!([name, value])).collect();
    let answer = json!({
        "index": index,
        "t": event.at.as_secs_f64(),
        "what": words::sentence(&event.kind),
        "source": words::source(&event.kind),
        "fields": fields,
        "bytes": bytes,
        "acked": acked,
        "tcb": tcb(&event.kind),
        "sack": sack(&event.kind),
    });
    Ok(Columns::default().envelope(&answer))
}

/// The control block after an event of an endpoint.
fn tcb(kind: &EventKind) -> Option<Tcb> {
    match kind {
        EventKind::Tcp(TcpEvent { tcb, .. }) | EventKind::Split(TcpEvent { tcb, .. }) => Some(*tcb),
        _ => None,
    }
}

/// The SACK blocks of an ACK, as in the header.
fn sack(kind: &EventKind) -> Vec<[u32; 2]> {
    let EventKind::Packet { packet, .. } = kind else { return Vec::new() };
    let Some(segment) = packet.segment() else { return Vec::new() };
    segment.options().sack.as_slice().iter().map(|block| [block.0.0, block.1.0]).collect()
}

/// A sink that waits for one event.
struct EventFinder {
    left: usize,
    positions: Positions,
    event: Option<FoundEvent>,
}

/// The event, the bytes of its packet, and the acknowledged position.
type FoundEvent = (Event, Option<(u64, u64)>, Option<u64>);

impl Sink for EventFinder {
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op, side, packet } = &event.kind {
            return self.packet(event.at, event.stage, *op, *side, packet);
        }
        if !matches!(event.kind, EventKind::Work(_) | EventKind::Datagram { .. }) && self.is_next()
        {
            self.event = Some((event.clone(), None, None));
        }
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if self.event.is_some() {
            return;
        }
        let bytes = self.positions.of(packet).filter(|_| !packet.body.is_empty());
        let acked = self.positions.ack(packet);
        if self.is_next() {
            let kind = EventKind::Packet { op, side, packet: packet.clone() };
            self.event = Some((Event { at, stage, kind }, bytes, acked));
        }
    }
}

impl EventFinder {
    /// The next event is the requested one.
    fn is_next(&mut self) -> bool {
        let next = self.event.is_none() && self.left == 0;
        self.left = self.left.saturating_sub(1);
        next
    }
}
