//! Only one direction of a connection was captured.

use lasthop_proto::units::Time;
use lasthop_proto::wire::{Segment, Seq};

use crate::finding::{Confidence, Diagnosis, Finding};
use crate::reading::Direction;

/// Minimum number of packets that show that the other direction exists.
const FEWEST: u64 = 3;

/// Distance of two ACKs, the largest window of RFC 7323, beyond which they belong to different sequence number spaces.
const FAR: u32 = 1 << 30;

const REMEDY: &str = "capture both directions without a filter, at the sender: on a router with asymmetric paths at an end host, \
    and with a mirror port for both receive and transmit";

/// The ACKs of one side whose peer was not captured so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acks {
    count: u64,
    began: Option<Time>,
    ended: Time,
    latest: Option<Seq>,
    bytes: u64,
    /// ACKs that acknowledge more than the previous one.
    advances: u64,
    duplicates: u64,
}

/// Timestamps of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    /// The latest one.
    stamp: Option<u32>,
    /// Echoes of timestamps of the peer that were not captured: their number, and the latest.
    unseen: u64,
    echo: Option<u32>,
}

impl Stamps {
    /// Processes the timestamps of a packet. Returns whether its echo shows a packet of the peer that was not captured.
    pub(super) fn packet(&mut self, peer: &Stamps, segment: &Segment) -> bool {
        let Some(stamps) = segment.timestamps else { return false };
        self.stamp = Some(stamps.value);
        let later = |stamp: u32, than: Option<u32>| {
            than.is_some_and(|than| stamp.wrapping_sub(than) as i32 > 0)
        };
        let unseen = later(stamps.echo, peer.stamp);
        if unseen && self.echo != Some(stamps.echo) {
            (self.echo, self.unseen) = (Some(stamps.echo), self.unseen + 1);
        }
        unseen
    }
}

impl Acks {
    pub(super) fn packet(&mut self, at: Time, segment: &Segment, duplicate: bool) {
        self.count += 1;
        self.began.get_or_insert(at);
        self.duplicates += u64::from(duplicate);
        let forward = self.latest.map_or(0, |latest| segment.ack - latest);
        if forward.unsigned_abs() > FAR {
            self.latest = Some(segment.ack);
        } else if forward > 0 {
            self.bytes += forward.unsigned_abs() as u64;
            (self.advances, self.ended) = (self.advances + 1, at);
        }
        if forward > 0 || self.latest.is_none() {
            self.latest = Some(segment.ack);
        }
    }

    /// Handles new sequence numbers of the data; bytes acknowledged before remain counted.
    pub(super) fn restart(&mut self) {
        self.latest = None;
    }

    fn rate(&self) -> Option<f64> {
        let seconds = self.ended.since(self.began?).as_secs_f64();
        (seconds > 0.0).then(|| self.bytes as f64 * 8.0 / seconds)
    }
}

/// Diagnoses the direction `data` of one side with the timestamps `own`, from the peer's direction `back` and its ACKs.
pub(super) fn diagnose(
    data: &Direction,
    back: &Direction,
    own: &Stamps,
    acks: Option<&Acks>,
) -> Option<Diagnosis> {
    if let Some(acks) = acks.filter(|acks| data.packets == 0 && acks.advances >= FEWEST) {
        return Some(only_acks(back, acks));
    }
    let again = data.retransmissions.total();
    // A peer that no longer answers looks the same, except that there is no new data.
    let missing = own.unseen >= FEWEST && own.unseen > back.packets;
    let alone = back.packets == 0 && 2 * again < data.data_packets;
    if !(alone || missing) || data.data_packets < FEWEST {
        return None;
    }
    let (data_packets, unique_bytes) = (data.data_packets, data.unique_bytes);
    let finding = Finding::OnlyData { data_packets, unique_bytes, sent_again: again };
    let captured = match back.packets {
        0 => "only the data was captured, no ACK".to_owned(),
        n => format!(
            "most ACKs were not captured ({n} were): the sender echoes {} timestamps of missing ones",
            own.unseen
        ),
    };
    let evidence = format!(
        "{captured}: {data_packets} packets, {unique_bytes} B each once, {again} retransmitted; losses after the point of capture, \
         windows and round trips are not visible"
    );
    let confidence = if missing { Confidence::Certain } else { Confidence::Likely };
    Some(Diagnosis::new(finding, confidence, evidence, REMEDY))
}

fn only_acks(back: &Direction, acks: &Acks) -> Diagnosis {
    let (count, rate, sack_acks) = (acks.count, acks.rate(), back.sack_acks);
    let finding = Finding::OnlyAcks {
        acks: count,
        acked_bytes: acks.bytes,
        rate,
        duplicate_acks: acks.duplicates,
        sack_acks,
    };
    let rate = rate.map_or(String::new(), |rate| format!(", {:.0} kbit/s", rate / 1e3));
    let evidence = format!(
        "only the ACKs were captured, no data: {count} ACKs acknowledge {} B{rate}; {} duplicate ACKs, {sack_acks} with \
         SACK blocks; losses and retransmissions are not visible",
        acks.bytes, acks.duplicates
    );
    Diagnosis::new(finding, Confidence::Certain, evidence, REMEDY)
}
