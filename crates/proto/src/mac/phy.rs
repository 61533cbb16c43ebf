//! Parameters of the IEEE 802.11 physical layer for medium access: times, rates and lengths.

use serde::Serialize;

use super::ofdm::Ofdm;
use crate::link::RadioConfig;
use crate::link::fec::Coding;
use crate::link::frame::Timing;
use crate::units::{Rate, Span};

/// Times, rates and lengths of the physical layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Phy {
    /// Time of preamble and PLCP header, before every frame.
    pub preamble: Span,
    /// Rate of data frames.
    pub data_rate: Rate,
    /// Rate of RTS, CTS and ACK: one of the basic rates, which every station can read.
    pub control_rate: Rate,
    /// Slot of the backoff.
    pub slot: Span,
    /// Short interframe space: also the radio turnaround time from receiving to sending.
    pub sifs: Span,
    /// Interframe space before a frame that contends.
    pub difs: Span,
    /// Bytes that medium access adds to a data frame: header, LLC and SNAP, check sequence.
    pub header: u32,
    /// Length of an RTS in bytes.
    pub rts: u32,
    /// Length of a CTS in bytes.
    pub cts: u32,
    /// Length of an ACK in bytes.
    pub ack: u32,
    /// Propagation delay between any two stations.
    pub propagation: Span,
    /// Bytes on the air for each byte of a data frame.
    pub coding: Coding,
    /// Frames of 802.11n, ac or ax; then the rates and the preamble have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ofdm: Option<Ofdm>,
}

const MEGABIT: Rate = Rate::from_bps(1_000_000).expect("a rate");

impl Phy {
    /// IEEE 802.11-1999 DSSS (clause 15; clause 18 for 5.5 and 11 Mb/s): long preamble of 192 us, slot 20 us, SIFS
    /// 10 us, a header of 24 bytes, 4 of check sequence and 8 of LLC and SNAP. Control frames go at 1 Mb/s, or at the
    /// data rate if that is less. The radio's own overhead comes on top of each preamble.
    pub fn dsss(radio: &RadioConfig, coding: Coding) -> Phy {
        Phy {
            preamble: Span::micros(192) + radio.overhead,
            data_rate: radio.rate,
            control_rate: if radio.rate.bps() < MEGABIT.bps() { radio.rate } else { MEGABIT },
            slot: Span::micros(20),
            sifs: Span::micros(10),
            difs: Span::micros(50),
            header: 36,
            rts: 20,
            cts: 14,
            ack: 14,
            propagation: radio.delay,
            coding,
            ofdm: None,
        }
    }

    /// OFDM at 5 GHz with the parameters of best effort traffic (EDCA): slot 9 us, SIFS 16 us, AIFS of three slots.
    /// A frame has 26 bytes of header, 4 of check sequence and 8 of LLC.
    pub fn ofdm(radio: &RadioConfig, ofdm: Ofdm) -> Phy {
        Phy {
            slot: Span::micros(9),
            sifs: Span::micros(16),
            difs: Span::micros(16 + 3 * 9),
            header: 38,
            ofdm: Some(ofdm),
            data_rate: Rate::from_bps(ofdm.rate(ofdm.mcs)).unwrap_or(radio.rate),
            ..Phy::dsss(radio, Coding::NONE)
        }
    }

    /// Time on the air of a data frame of `bytes`, which include the link layer's header and the load.
    pub fn data_time(&self, bytes: u32) -> Span {
        match &self.ofdm {
            Some(ofdm) => ofdm.frame(ofdm.mcs, ofdm.single(bytes + self.header)),
            None => self.data_time_at(self.data_rate, bytes),
        }
    }

    /// The same at another rate.
    pub fn data_time_at(&self, rate: Rate, bytes: u32) -> Span {
        let coded = self.coding.on_air(bytes + self.header);
        self.preamble + rate.transmit(coded.into())
    }

    /// Time on the air of a control frame of `bytes`.
    pub fn control_time(&self, bytes: u32) -> Span {
        if self.ofdm.is_some() {
            return Ofdm::control(bytes);
        }
        self.preamble + self.control_rate.transmit(bytes.into())
    }

    /// Time within which an answer must begin to be heard: two propagation delays and a radio turnaround.
    pub fn answer(&self) -> Span {
        self.propagation * 2 + self.sifs
    }

    /// Interframe space after an unreadable frame: room for the ACK that others may send.
    pub fn eifs(&self) -> Span {
        self.sifs + self.control_time(self.ack) + self.difs
    }

    /// Input of a link layer's timers; `access` is the time of medium access for an answer.
    pub fn timing(&self, access: Span) -> Timing {
        Timing {
            byte_ps: libm::ceil(8e12 * self.coding.factor() / self.data_rate.bps() as f64) as u64,
            frame: self.data_time(0),
            propagation: self.propagation,
            turnaround: self.sifs,
            processing: access,
            turn: Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Discipline, Limit};

    fn radio(bps: u64) -> RadioConfig {
        RadioConfig {
            rate: Rate::from_bps(bps).unwrap(),
            delay: Span::micros(3),
            overhead: Span::micros(8),
            half_duplex: true,
            queue: Limit::Packets(10),
            discipline_right: Discipline::Fifo,
            discipline_left: Discipline::Fifo,
        }
    }

    /// Computed by hand, at 2 Mb/s with a code of three bytes for two. Control frames are uncoded at 1 Mb/s.
    #[test]
    fn frame_times_and_spaces_match_the_standard() {
        let phy = Phy::dsss(&radio(2_000_000), Coding::Overhead(1.5));
        let times = [
            ("preamble", phy.preamble, 192 + 8),
            ("data", phy.data_time(64), 200 + 150 * 4),
            ("empty data frame", phy.data_time(0), 200 + 54 * 4),
            ("RTS", phy.control_time(phy.rts), 200 + 160),
            ("CTS", phy.control_time(phy.cts), 200 + 112),
            ("ACK", phy.control_time(phy.ack), 200 + 112),
            ("answer", phy.answer(), 3 + 10 + 3),
            ("EIFS", phy.eifs(), 10 + 312 + 50),
            ("slot", phy.slot, 20),
            // 802.11-1999 9.2.10: a DIFS is a SIFS and two slots.
            ("DIFS", phy.difs, 10 + 2 * 20),
        ];
        for (name, time, micros) in times {
            assert_eq!(time, Span::micros(micros), "{name}");
        }
    }

    #[test]
    fn control_frames_are_never_faster_than_data() {
        for (data, control) in
            [(19_200, 19_200), (999_999, 999_999), (1_000_000, 1_000_000), (11_000_000, 1_000_000)]
        {
            let phy = Phy::dsss(&radio(data), Coding::NONE);
            assert_eq!((phy.data_rate.bps(), phy.control_rate.bps()), (data, control));
        }
    }

    #[test]
    fn link_timing_includes_coding_and_turnaround() {
        let phy = Phy::dsss(&radio(2_000_000), Coding::Overhead(1.5));
        let timing = phy.timing(Span::micros(7));
        assert_eq!(timing.byte_ps, 6_000_000);
        assert_eq!(timing.on_air(64), phy.data_time(64));
        let rest = [timing.propagation, timing.turnaround, timing.processing, timing.turn];
        assert_eq!(rest, [3, 10, 7, 0].map(Span::micros));
        // Fractions are rounded up: 8 / 3 microseconds.
        assert_eq!(
            Phy::dsss(&radio(3_000_000), Coding::NONE).timing(Span::ZERO).byte_ps,
            2_666_667
        );
    }
}
