//! The surroundings of a radio hop's medium: the channels, and the receivers of its reports.

use std::collections::VecDeque;

use super::Channels;
use crate::air::{AirEvent, FrameKind, Station};
use crate::channel::{Fate, Traffic};
use crate::event::{EventKind, Interest};
use crate::link::fec::{Code, Coding};
use crate::link::transmitter::report_turn;
use crate::mac::{Air, Outcome};
use crate::machine::{Out, Side};
use crate::units::{Span, Time};

/// The surroundings of the medium during one call.
pub(super) struct AirView<'a> {
    pub coding: Coding,
    /// Indexed by station: the link layer's code of its frame, and the frame's length without it.
    pub codes: &'a [Option<(Code, u32)>],
    pub channels: &'a mut [Channels],
    pub outcomes: &'a mut VecDeque<Outcome>,
    pub out: &'a mut Out,
}

impl Air for AirView<'_> {
    fn damages(
        &mut self,
        from: Station,
        to: Station,
        kind: FrameKind,
        bytes: u32,
        start: Time,
        span: Span,
    ) -> bool {
        let (mobile, side) = match from {
            Station::BASE => (to, Side::Right),
            mobile => (mobile, Side::Left),
        };
        let channels = self.channels.get_mut(mobile.index().saturating_sub(1));
        let Some(channel) = channels.and_then(|c| c[side.index()].as_mut()) else { return false };
        if !channel.applies_to(kind.traffic()) {
            return false;
        }
        // With a code of the radio, the code of a frame has no effect: each frame is correct or lost.
        let code = match self.coding {
            _ if kind.traffic() == Traffic::Control => None,
            Coding::Block(code) => Some((code, bytes)),
            Coding::Overhead(_) => self.codes[from.index()],
        };
        let (damaged, turned) = match code {
            Some((code, bytes)) => {
                let mut wrong = Vec::new();
                let on_air = code.on_air(bytes);
                let harm = channel.pass_symbols(start, span, on_air, &mut |byte| wrong.push(byte));
                (harm.whole || !code.survives(wrong, bytes), harm.turned)
            }
            _ => {
                let Fate { damaged_at, turned } = channel.pass(start, span, bytes);
                (damaged_at.is_some(), turned)
            }
        };
        // A channel that reports its changes immediately has reported this one.
        if let Some(good) = turned
            && !(channel.reports_changes() && channel.turns().is_some())
        {
            report_turn(side, good, channel.reports_changes(), self.out);
        }
        damaged
    }

    fn report(&mut self, event: AirEvent) {
        if self.out.accepts(Interest::METRICS) {
            self.out.event(EventKind::Air(event));
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.outcomes.push_back(outcome);
    }
}
