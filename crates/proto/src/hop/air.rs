//! The surroundings of a radio hop's medium: the channels, and the receivers of its reports.

use std::collections::VecDeque;

use super::Channels;
use super::upper::{Ended, Upper, UpperView};
use super::wakes::PollCache;
use crate::air::{AirEvent, FrameKind, Station};
use crate::channel::{Fate, Traffic};
use crate::event::{Cause, EventKind, Interest, Op};
use crate::link::LinkLayer;
use crate::link::end::LinkEnd as _;
use crate::link::fec::{Code, Coding};
use crate::link::frame::Frame;
use crate::link::transmitter::report_turn;
use crate::link::varied::Sky;
use crate::mac::{Air, Outcome};
use crate::machine::{Out, Side, Signal};
use crate::units::{Span, Time};

/// The surroundings of the medium during one call.
pub(super) struct AirView<'a> {
    pub coding: Coding,
    /// Indexed by station: the link layer's code of its frame, and the frame's length without it.
    pub codes: &'a [Option<(Code, u32)>],
    pub channels: &'a mut [Channels],
    pub sky: &'a mut Option<Box<Sky>>,
    pub ends: &'a mut [LinkLayer],
    pub uppers: &'a mut [Upper],
    pub ended: &'a mut [Ended],
    pub inside: &'a mut u64,
    pub polled: &'a mut [PollCache],
    pub outcomes: &'a mut VecDeque<Outcome>,
    pub out: &'a mut Out,
}

/// Signals to the neighbour at `own` that data leave in `frame`.
pub(super) fn report_departure(frame: &Frame, own: Side, out: &mut Out) {
    let packet = frame.load.packet();
    if let Some(packet) = packet.filter(|packet| packet.is_data())
        && let (Some(flow), Some(segment)) = (packet.flow(), packet.segment())
    {
        let end = segment.seq + segment.seq_len(packet.body.len());
        out.signal(own, Signal::Departing { flow, end });
    }
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
        // The draw of an outage or a varying loss precedes that of the channel.
        if let Some(sky) = &mut *self.sky
            && sky.loses(start..start + span, side)
        {
            return true;
        }
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
        if self.out.accepts(Interest::RESULTS) {
            self.out.event(EventKind::Air(event));
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.outcomes.push_back(outcome);
    }

    fn more(&mut self, from: Station, to: Station) -> Option<Frame> {
        let (i, now) = (from.index(), self.out.now());
        self.polled[i].forget();
        let upper = &mut self.uppers[i];
        let own = upper.own;
        let above = &mut UpperView {
            upper,
            ended: &mut *self.ended,
            inside: &mut *self.inside,
            out: &mut *self.out,
        };
        let frame = self.ends[i].next_frame_to(now, to, above)?;
        report_departure(&frame, own, self.out);
        Some(frame)
    }

    fn waits_for_order(&mut self, frame: &Frame) {
        if let Some(packet) = frame.load.packet() {
            let own = self.uppers[frame.to.index()].own;
            self.out.packet_event(Op::Redirected(Cause::ReorderWait), own, packet);
        }
    }

    fn repeated(&mut self, frame: &Frame, cause: Cause) {
        if let Some(packet) = frame.load.packet() {
            let side = self.uppers[frame.from.index()].own.other();
            self.out.packet_event(Op::Repeated(cause), side, packet);
        }
    }
}
