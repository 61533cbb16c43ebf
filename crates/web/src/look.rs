//! The state of hosts and base stations at a time.

use lasthop_observe::Sink;
use lasthop_observe::layout::flow_name;
use lasthop_path::Stage;
use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::event::{Event, EventKind, Op};
use lasthop_proto::machine::{Machine as _, Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Packet;
use lasthop_sim::runs::layout;
use serde_json::{Value, json};

use crate::envelope::Columns;
use crate::request::{ErrorAnswer, RunRequest};
use crate::rows::Positions;
use crate::run::until;

/// Maximum number of packets of a cache in an answer.
const MOST: usize = 2000;

/// Runs up to `at` seconds, and reports the state then.
pub(crate) fn look(one: &RunRequest, at: f64) -> Result<Vec<u8>, ErrorAnswer> {
    let (scenario, seed) = one.scenario()?;
    let at = if at.is_finite() { at.max(0.0) } else { 0.0 };
    let at = Time::ZERO + Span::from_secs_f64(at);
    let mut watched = PositionSink(Positions::default());
    let session = until(&scenario, seed, at, &mut watched);
    let layout = layout(&scenario);
    let stages: Vec<Value> = session
        .stages()
        .iter()
        .enumerate()
        .map(|(i, stage)| {
            let name = layout.stages.get(i).map_or("", |info| &info.name);
            let mut state = json!({ "stage": i, "name": name, "holds": stage.holds() });
            let stored = buffered(stage, &watched.0);
            if let Some(agent) = stage.agent() {
                state["agent"] = json!({ "flows": agent.flows() });
            }
            state["kept"] = json!(stored);
            state
        })
        .collect();
    let senders: Vec<Value> = (0..8)
        .map_while(|i| session.transfer(i).map(|_| session.control_block(i)))
        .map(|tcb| json!(tcb))
        .collect();
    let state = json!({ "t": at.as_secs_f64(), "stages": stages, "senders": senders });
    Ok(Columns::default().envelope(&state))
}

/// The packets buffered by an agent or the link layer of a base station; `None` for other stages.
fn buffered(stage: &Stage, positions: &Positions) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    let may_store = stage.stored_segments(&mut |segment| {
        if all.len() == MOST {
            return;
        }
        let from = positions.position(segment.flow, segment.seq);
        all.push(json!({
            "flow": flow_name(&segment.flow),
            "from": from,
            "to": from.map(|from| from + u64::from(segment.len)),
            "attempts": segment.attempts,
        }));
    });
    may_store.then_some(all)
}

/// A sink that records the first sequence numbers of flows.
struct PositionSink(Positions);

impl Sink for PositionSink {
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { packet, .. } = &event.kind {
            self.0.of(packet);
        }
    }

    fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, packet: &Packet) {
        self.0.of(packet);
    }
}
