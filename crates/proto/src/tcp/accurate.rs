//! Accurate ECN (RFC 9768): a receiver counts marked packets and reports its counts in every segment.
//!
//! The field ACE, the three flags AE, CWR and ECE as one number, counts packets with CE. If configured, an
//! option counts bytes with ECT(0), CE and ECT(1), on ACKs that have room for it. In the handshake the same
//! flags report how each SYN arrived.
//!
//! Not implemented: tests for paths that change the IP field, except for a field of zero on the first ACK;
//! counters on segments with data.

use serde::Serialize;

use crate::travel::Travels;
use crate::wire::{CE, ECT, ECT1, EcnCounts, Flags, Segment};

/// Whether accurate ECN is offered, and the extent of a receiver's reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccurateEcn {
    /// Not offered.
    #[default]
    Off,
    /// Counts packets, by the field in the header.
    Ace,
    /// Counts packets, and bytes by the option where there is room for it.
    Option,
}

impl AccurateEcn {
    /// Keywords of the modes.
    pub(super) const WORDS: [(&'static str, AccurateEcn); 3] =
        [("off", AccurateEcn::Off), ("ace", AccurateEcn::Ace), ("option", AccurateEcn::Option)];

    /// Whether accurate ECN is offered.
    pub fn is_on(self) -> bool {
        self != AccurateEcn::Off
    }
}

/// Flags of a SYN that offers accurate ECN.
pub const OFFER: Flags = Flags::ACE;

/// Initial value of both counters of packets.
//= rfc9768#section-3.2.1: r.cep = 5
const FIRST: u8 = 5;
/// Initial values of the byte counters: ECT(0), CE, ECT(1).
//= rfc9768#section-3.2.1: r.e0b = r.e1b = 1 and r.ceb = 0
const FIRST_BYTES: [u32; 3] = [1, 0, 1];
/// Maximum number of packets for which the field cannot have wrapped.
const UNAMBIGUOUS: u32 = 7;

/// How the handshake reflects `bits` of the IP header: on the SYN-ACK and on the ACK of that.
//= rfc9768#section-3.2.2.1: Table 3
pub fn reflection(bits: u8) -> u8 {
    match bits {
        ECT1 => 0b011,
        ECT => 0b100,
        CE => 0b110,
        _ => 0b010,
    }
}

/// One end of a connection that has agreed on accurate ECN.
#[derive(Clone, Debug)]
pub struct Accurate {
    /// Packets that arrived with CE, modulo 8.
    packets: u8,
    /// Bytes that arrived with ECT(0), CE and ECT(1), modulo 2^24.
    bytes: [u32; 3],
    /// Counters of CE that the peer has reported.
    reported: u8,
    reported_bytes: u32,
    /// Bytes reported from an estimate by packets, in excess of the peer's counter.
    ahead: u32,
    /// ECN bits in the IP header of the peer's SYN or SYN-ACK.
    syn: u8,
    /// Whether the next pure ACK reflects the SYN-ACK.
    reflects: bool,
    /// Whether the peer's first ACK may reflect this end's SYN-ACK.
    reflected: bool,
    /// Whether the peer or the path is faulty: no packet is sent with ECT, and marks are ignored.
    mute: bool,
    /// Whether the last packet arrived with CE.
    marked: bool,
    /// Packets with CE since this end sent its last segment.
    since: u8,
    /// Whether the byte counters are reported, and whether they have changed since.
    option: bool,
    news: bool,
}

impl Accurate {
    /// Starts after the arrival of the peer's SYN, or SYN-ACK if `active`, with these bits in its IP header.
    pub fn new(mode: AccurateEcn, bits: u8, active: bool) -> Accurate {
        let option = mode == AccurateEcn::Option;
        Accurate {
            //= rfc9768#section-3.2.2.2: a client counts the mark of a SYN-ACK, a server not that of a SYN
            packets: FIRST + u8::from(active && bits == CE),
            bytes: FIRST_BYTES,
            reported: FIRST,
            reported_bytes: FIRST_BYTES[1],
            ahead: 0,
            syn: bits,
            reflects: active,
            reflected: !active,
            mute: false,
            marked: false,
            since: 0,
            option,
            news: option,
        }
    }

    /// The flags of a SYN-ACK.
    pub fn answer(&self) -> Flags {
        Flags::NONE.with_ace(reflection(self.syn))
    }

    /// Whether packets may be sent with ECT.
    pub fn may_mark(&self) -> bool {
        !self.mute
    }

    /// Records that the SYN-ACK arrived again: the next pure ACK reflects it.
    pub fn reflect_again(&mut self) {
        self.reflects = true;
    }

    /// Whether the next pure ACK must reflect the SYN-ACK.
    pub fn reflects(&self) -> bool {
        self.reflects
    }

    /// The flags of a segment that is sent now.
    pub fn segment_flags(&mut self) -> Flags {
        self.since = 0;
        Flags::NONE.with_ace(self.packets)
    }

    /// Completes a pure ACK in `ack`: adds the reflection, and the byte counters if they have changed and
    /// there are `room` bytes for them.
    pub fn complete(&mut self, ack: &mut Segment, room: u32) {
        if self.reflects && ack.options().sack.is_empty() {
            //= rfc9768#section-3.2.2.1: a pure ACK without SACK blocks reflects the SYN-ACK
            ack.flags = ack.flags.with_ace(reflection(self.syn));
        }
        self.reflects = false;
        if self.news
            && let Some(counts) = self.counts(room)
        {
            ack.options_mut().ecn = Some(counts);
            self.news = false;
        }
    }

    /// The byte counters that fit `room` bytes, if they are reported. The first one alone is useless.
    pub fn counts(&self, room: u32) -> Option<EcnCounts> {
        let len = room.saturating_sub(2).min(9) as usize / 3;
        let ect1_first = self.bytes[2] != FIRST_BYTES[2];
        (self.option && len >= 2).then(|| EcnCounts::new(ect1_first, self.bytes, len))
    }

    /// Records a packet with `len` bytes of payload and these bits in its IP header. Returns whether it must
    /// be acknowledged at once.
    pub fn arrived(&mut self, bits: u8, len: u32) -> bool {
        let counter = match bits {
            ECT => 0,
            CE => 1,
            ECT1 => 2,
            _ => {
                self.marked = false;
                return false;
            }
        };
        self.bytes[counter] = (self.bytes[counter] + len) & 0xff_ffff;
        self.news |= self.option && len > 0;
        let marked = bits == CE;
        let begins = !core::mem::replace(&mut self.marked, marked) && marked;
        if marked {
            self.packets = (self.packets + 1) & 7;
            self.since = self.since.saturating_add(1);
        }
        //= rfc9768#section-3.2.2.5.1: data with CE after a packet without, and the second CE since the last ACK
        let enough = if len > 0 { 2 } else { 3 };
        marked && (begins && len > 0 || self.since >= enough)
    }

    /// Processes an ACK of the peer, for `newly` newly acknowledged segments. Returns the bytes newly
    /// reported with CE. `plain` if it carries no data.
    pub fn on_ack(&mut self, ack: &Segment, plain: bool, newly: u32, mss: u32) -> u32 {
        let field = ack.flags.ace();
        if core::mem::take(&mut self.reflected) && plain && ack.options().sack.is_empty() {
            //= rfc9768#section-3.2.2.1: Table 4
            self.mute = field == 0;
            let marked = field == reflection(CE);
            self.reported += u8::from(marked);
            return if marked { mss } else { 0 };
        }
        let least = u32::from(field.wrapping_sub(self.reported) & 7);
        self.reported = field;
        let counter = ack.options().ecn.and_then(|counts| counts.ce());
        if self.mute {
            return 0;
        }
        if let Some(counter) = counter {
            let grown = counter.wrapping_sub(self.reported_bytes) & 0xff_ffff;
            //= rfc9768#section-3.2.3.2: a counter that seems to have run back was overtaken
            if grown < 1 << 23 {
                self.reported_bytes = counter;
                let ahead = self.ahead;
                self.ahead = ahead.saturating_sub(grown);
                return grown.saturating_sub(ahead);
            }
        }
        //= rfc9768#section-3.2.2.5.2: the most that the field can mean, if it may have wrapped
        let packets = match newly > UNAMBIGUOUS {
            true => newly - (newly - least) % 8,
            false => least,
        };
        let bytes = packets.saturating_mul(mss);
        if self.option {
            self.ahead = self.ahead.saturating_add(bytes);
        }
        bytes
    }
}

/// ECN state of a connection.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Whether each segment echoes a mark until the peer has reduced its window (RFC 3168).
    pub echo: bool,
    /// ECN bits in the IP header of the last packet.
    pub arrived: u8,
    /// Whether the peer has sent data with ECT, without accurate ECN.
    pub seen: bool,
    /// Whether this end's last SYN offered accurate ECN.
    pub offered: bool,
    /// State of accurate ECN, if it was agreed on instead of echoes.
    pub accurate: Option<Box<Accurate>>,
}

impl Marks {
    /// Whether accurate ECN is in use.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }
}

impl Travels for Marks {
    fn size(&self) -> u64 {
        if self.is_accurate() { 26 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Seq;

    fn agreed() -> (Accurate, Accurate) {
        (Accurate::new(AccurateEcn::Option, 0, true), Accurate::new(AccurateEcn::Option, 0, true))
    }

    fn ack(of: &mut Accurate, room: u32) -> Segment {
        let mut ack = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK | of.segment_flags());
        of.reflects = false;
        of.complete(&mut ack, room);
        ack
    }

    /// For at most seven packets between two received ACKs, the field gives the exact number of marks, even
    /// after it has wrapped. The option gives bytes at any distance.
    #[test]
    fn ce_counts_survive_wrapped_counters_and_lost_acks() {
        for room in [0, 20] {
            let (mut receiver, mut sender) = agreed();
            let (mut marked, mut reported) = (0, 0);
            for i in 0..100_000u32 {
                let bits = if i % 3 == 0 || i % 7 == 0 { CE } else { ECT1 };
                receiver.arrived(bits, 1000);
                marked += u32::from(bits == CE);
                // Only one ACK of seven arrives.
                let ack = ack(&mut receiver, room);
                if i % 7 == 6 {
                    reported += sender.on_ack(&ack, true, 7, 1000);
                }
            }
            reported += sender.on_ack(&ack(&mut receiver, room), true, 6, 1000);
            assert_eq!(reported, marked * 1000, "{room}");
        }
    }

    //= rfc9768#section-3.2.2.5.2: Appendix A.2.1: 10 packets and a field that grew by 1 may be 9 marks
    #[test]
    fn a_possibly_wrapped_field_counts_as_the_maximum() {
        let estimate = |newly, grown: u8| {
            let (_, mut sender) = agreed();
            let flags = Flags::ACK.with_ace(FIRST + grown);
            sender.on_ack(&Segment::new(1, 2, Seq(0), Seq(0), flags), true, newly, 1)
        };
        assert_eq!(
            [estimate(7, 0), estimate(8, 0), estimate(10, 1), estimate(15, 1), estimate(17, 1)],
            [0, 8, 9, 9, 17]
        );
    }

    #[test]
    fn the_option_corrects_the_ace_field_overestimate() {
        let (mut receiver, mut sender) = agreed();
        receiver.arrived(CE, 1000);
        // Ten segments are acknowledged by an ACK without room for the option.
        assert_eq!(sender.on_ack(&ack(&mut receiver, 0), true, 10, 1000), 9000);
        (0..9).for_each(|_| _ = receiver.arrived(CE, 1000));
        assert_eq!(sender.on_ack(&ack(&mut receiver, 20), true, 10, 1000), 1000);
        receiver.arrived(CE, 500);
        assert_eq!(sender.on_ack(&ack(&mut receiver, 20), true, 1, 1000), 500);
    }
}
