//! Hand-off of a flow's state: export and import.

use super::{Flow, Loss, SeqCache};
use crate::machine::Out;
use crate::travel::FAR;
use crate::travel::{Reader, Travels, Writer, travels};
use crate::units::Time;
use crate::wire::{Addr, FlowKey};

travels!(Flow {
    origin,
    top,
    acked,
    fin,
    receiver,
    runs,
    loss,
    ahead,
    segment,
    answers,
    rtt,
    backoff,
    ..
});

impl Travels for Loss {
    fn write(&self, to: &mut Writer) {
        match self {
            Loss::None => 0u8.write(to),
            Loss::Notified => 1u8.write(to),
            Loss::Resent { ahead, after } => {
                2u8.write(to);
                (*ahead, *after).write(to);
            }
            Loss::BySender => 3u8.write(to),
        }
    }
    fn read(from: &mut Reader<'_>) -> Option<Loss> {
        Some(match u8::read(from)? {
            0 => Loss::None,
            1 => Loss::Notified,
            2 => {
                let (ahead, after) = Travels::read(from)?;
                Loss::Resent { ahead, after }
            }
            3 => Loss::BySender,
            _ => return None,
        })
    }
}

impl Flow {
    /// Whether no operation can overflow with it.
    pub(in super::super) fn is_sound(&self) -> bool {
        self.top < FAR && self.acked <= self.top && self.fin.is_none_or(|fin| fin < FAR)
    }
}

impl SeqCache {
    /// Removes the flows of `host` and returns them.
    pub(in crate::agent) fn release(&mut self, host: Addr, out: &mut Out) -> Vec<(FlowKey, Flow)> {
        self.guard.leave(host);
        let flows = self.flows.take_of(host).into_iter().map(|(i, key, mut flow)| {
            self.forget(i, out);
            flow.rtt.moved();
            flow.timer = None;
            (key, flow)
        });
        flows.collect()
    }

    /// Continues flows of another agent.
    pub(in crate::agent) fn adopt(
        &mut self,
        now: Time,
        flows: Vec<(FlowKey, Flow)>,
        out: &mut Out,
    ) {
        for (key, flow) in flows {
            // Flows are tracked from their SYN on, so a flow known here is the same connection or a later
            // one.
            if self.flows.find(key).is_some() {
                continue;
            }
            let i = self.watch(key, out);
            self.flows[i] = flow;
            let flow = &mut self.flows[i];
            if flow.top > flow.acked && flow.loss != Loss::Notified {
                flow.restart(now);
            }
            self.set_wake(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_state_round_trips_and_bad_input_is_rejected() {
        for loss in
            [Loss::None, Loss::Notified, Loss::Resent { ahead: 3, after: 5 }, Loss::BySender]
        {
            let mut to = Writer::default();
            loss.write(&mut to);
            assert_eq!(Loss::read(&mut Reader(&to.bytes)), Some(loss));
            assert_eq!(Loss::read(&mut Reader(&to.bytes[..to.bytes.len() - 1])), None, "too short");
        }
        assert_eq!(Loss::read(&mut Reader(&[4])), None, "there is no such word");
    }

    #[test]
    fn a_flow_with_overflowing_or_inconsistent_numbers_is_unsound() {
        for (top, acked, fin, sound) in [
            (0, 0, None, true),
            (FAR - 1, FAR - 1, Some(FAR - 1), true),
            (FAR, 0, None, false),
            (5, 5, None, true),
            (5, 6, None, false),
            (5, 5, Some(FAR), false),
        ] {
            let flow = Flow { top, acked, fin, ..Flow::default() };
            assert_eq!(flow.is_sound(), sound, "{top} {acked} {fin:?}");
        }
    }
}
