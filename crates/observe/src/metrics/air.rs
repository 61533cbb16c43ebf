//! Transmissions on a radio hop by kind of frame.

use lasthop_proto::air::{AirEvent, FrameFate, FrameKind};
use lasthop_proto::units::Span;
use serde::{Deserialize, Serialize};

/// The transmissions of one side of a radio hop, by kind of frame.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct AirMetrics {
    /// Frames with packets that carry data, or with parts of them.
    pub data: FrameCounts,
    /// Frames with packets without data: ACKs of the transport, SYN, FIN, RST.
    pub acks: FrameCounts,
    /// Pure acknowledgements of the link layer.
    pub link_acks: FrameCounts,
    /// Requests to send.
    pub rts: FrameCounts,
    /// Clears to send.
    pub cts: FrameCounts,
    /// Acknowledgements of medium access.
    pub mac_acks: FrameCounts,
    /// Beacons of an access point, with power saving.
    #[serde(default, skip_serializing_if = "FrameCounts::is_none")]
    pub beacons: FrameCounts,
    /// Polls of stations for buffered frames.
    #[serde(default, skip_serializing_if = "FrameCounts::is_none")]
    pub ps_polls: FrameCounts,
    /// Null frames, by which stations report that they sleep or wake.
    #[serde(default, skip_serializing_if = "FrameCounts::is_none")]
    pub nulls: FrameCounts,
}

/// Frames of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Sent frames.
    pub frames: u64,
    /// Frames that the channel damaged.
    pub damaged: u64,
    /// Frames that collided.
    pub collided: u64,
    /// Frames whose receiver was asleep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// Total airtime, seconds.
    pub airtime_s: f64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl FrameCounts {
    fn is_none(&self) -> bool {
        self.frames == 0
    }
}

/// Counters during a run.
#[derive(Clone, Default)]
pub(super) struct AirCounter {
    counts: AirMetrics,
    airtime: [Span; 9],
}

impl AirCounter {
    pub(super) fn add(&mut self, event: &AirEvent) {
        let (i, counts) = match event.kind {
            FrameKind::Data => (0, &mut self.counts.data),
            FrameKind::Ack => (1, &mut self.counts.acks),
            FrameKind::LinkAck => (2, &mut self.counts.link_acks),
            FrameKind::Rts => (3, &mut self.counts.rts),
            FrameKind::Cts => (4, &mut self.counts.cts),
            FrameKind::MacAck => (5, &mut self.counts.mac_acks),
            FrameKind::Beacon => (6, &mut self.counts.beacons),
            FrameKind::PsPoll => (7, &mut self.counts.ps_polls),
            FrameKind::Null => (8, &mut self.counts.nulls),
        };
        counts.frames += 1;
        counts.damaged += u64::from(event.fate == FrameFate::Damaged);
        counts.collided += u64::from(event.fate == FrameFate::Collided);
        counts.missed += u64::from(event.fate == FrameFate::Missed);
        self.airtime[i] = self.airtime[i] + event.airtime;
    }

    /// `None` if there was no transmission.
    pub(super) fn metrics(&self) -> Option<AirMetrics> {
        let mut all = self.counts;
        let kinds = all.kinds_mut();
        for (counts, airtime) in kinds.into_iter().zip(self.airtime) {
            counts.airtime_s = airtime.as_secs_f64();
        }
        (all.sum(|c| c.frames as f64) > 0.0).then_some(all)
    }
}

impl AirMetrics {
    fn kinds_mut(&mut self) -> [&mut FrameCounts; 9] {
        let AirMetrics { data, acks, link_acks, rts, cts, mac_acks, beacons, ps_polls, nulls } =
            self;
        [data, acks, link_acks, rts, cts, mac_acks, beacons, ps_polls, nulls]
    }

    /// Sum over all kinds.
    pub fn sum(&self, of: impl Fn(&FrameCounts) -> f64) -> f64 {
        self.clone().kinds_mut().into_iter().map(|counts| of(counts)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only kinds with sent frames are serialized.
    #[test]
    fn frames_that_were_sent_are_written() {
        let one = FrameCounts { frames: 1, ..FrameCounts::default() };
        let text = |air: &AirMetrics| serde_json::to_string(air).unwrap();
        let none = text(&AirMetrics::default());
        for kind in ["beacons", "ps_polls", "nulls"] {
            assert!(!none.contains(&format!("\"{kind}\"")), "{none}");
        }
        let all = AirMetrics { beacons: one, ps_polls: one, nulls: one, ..AirMetrics::default() };
        let read: AirMetrics = serde_json::from_str(&text(&all)).unwrap();
        assert_eq!(read, all, "{}", text(&all));
        assert!(!text(&all).contains("missed"), "no station slept");
        let missed = AirMetrics { data: FrameCounts { missed: 2, ..one }, ..all };
        assert_eq!(serde_json::from_str::<AirMetrics>(&text(&missed)).unwrap(), missed);
    }
}
