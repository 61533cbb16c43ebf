//! How hosts and base stations stand at a time.

use lasthop_lab::layout;
use lasthop_path::Stage;
use lasthop_proto::agent::BaseStation as _;
use lasthop_proto::event::{Event, Op, Wants, What};
use lasthop_proto::machine::{Machine as _, Side, StageId};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Packet;
use lasthop_trace::Sink;
use lasthop_trace::layout::flow_name;
use serde_json::{Value, json};

use crate::ask::{Failed, One};
use crate::envelope::Columns;
use crate::rows::Positions;
use crate::run::until;

/// Packets of a cache that are told one by one.
const MOST: usize = 2000;

/// Makes the run up to `at` seconds, and tells what stands then.
pub(crate) fn look(one: &One, at: f64) -> Result<Vec<u8>, Failed> {
    let (scenario, seed) = one.scenario()?;
    let at = if at.is_finite() { at.max(0.0) } else { 0.0 };
    let at = Time::ZERO + Span::from_secs_f64(at);
    let mut watched = Watched(Positions::default());
    let session = until(&scenario, seed, at, &mut watched);
    let layout = layout(&scenario);
    let stages: Vec<Value> = session
        .stages()
        .iter()
        .enumerate()
        .map(|(i, stage)| {
            let name = layout.stages.get(i).map_or("", |info| &info.name);
            let mut told = json!({ "stage": i, "name": name, "holds": stage.holds() });
            let kept = kept(stage, &watched.0);
            if let Some(agent) = stage.agent() {
                told["agent"] = json!({ "flows": agent.flows() });
            }
            told["kept"] = json!(kept);
            told
        })
        .collect();
    let senders: Vec<Value> = (0..8)
        .map_while(|i| session.transfer(i).map(|_| session.control_block(i)))
        .map(|tcb| json!(tcb))
        .collect();
    let told = json!({ "t": at.as_secs_f64(), "stages": stages, "senders": senders });
    Ok(Columns::default().envelope(&told))
}

/// What an agent or the link layer of a base station keeps; nothing of what has no such thing.
fn kept(stage: &Stage, positions: &Positions) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    let keeps = stage.kept(&mut |kept| {
        if all.len() == MOST {
            return;
        }
        let from = positions.position(kept.flow, kept.seq);
        all.push(json!({
            "flow": flow_name(&kept.flow),
            "from": from,
            "to": from.map(|from| from + u64::from(kept.len)),
            "attempts": kept.attempts,
        }));
    });
    keeps.then_some(all)
}

/// Notes where flows begin.
struct Watched(Positions);

impl Sink for Watched {
    fn wants(&self) -> Wants {
        Wants::EVERYTHING
    }

    fn event(&mut self, event: &Event) {
        if let What::Packet { packet, .. } = &event.what {
            self.0.of(packet);
        }
    }

    fn packet(&mut self, _: Time, _: StageId, _: Op, _: Side, packet: &Packet) {
        self.0.of(packet);
    }
}
