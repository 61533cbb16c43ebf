//! Socket options that change a running connection, and the values that a socket reports.

use crate::event::Cause;
use crate::machine::Out;
use crate::tcp::config::Variant;
use crate::tcp::keyword::Keyword;
use crate::tcp::sender::recovery::Outstanding;
use crate::tcp::sender::window::Coalescing;
use crate::tcp::state::State;
use crate::units::{Rate, Time};
use crate::wire::{Addr, Body, Flags, Segment, Seq};

use super::Connection;

/// Negotiated options, and counters of the sender that no other query reports.
pub(in crate::tcp) struct Agreement {
    pub(in crate::tcp) timestamps: bool,
    pub(in crate::tcp) sack: bool,
    pub(in crate::tcp) ecn: bool,
    pub(in crate::tcp) window_scale: Option<(u8, u8)>,
    pub(in crate::tcp) mss: u32,
    pub(in crate::tcp) advmss: u32,
    pub(in crate::tcp) retries: u32,
    pub(in crate::tcp) probes: u32,
    pub(in crate::tcp) initial_ssthresh: u32,
    pub(in crate::tcp) unsent: u64,
    pub(in crate::tcp) reducing: bool,
    pub(in crate::tcp) syn_data: bool,
    pub(in crate::tcp) syn_acked: bool,
}

impl Connection {
    /// Bounds the sending rate by `most`.
    pub(in crate::tcp) fn limit_pacing(&mut self, most: Rate) {
        let config = self.config.clone();
        self.tx.limit_pacing(&config, most);
    }

    pub(in crate::tcp) fn agreement(&self) -> Agreement {
        let (agreed, w) = (&self.agreed, &self.tx.core.window);
        Agreement {
            timestamps: agreed.timestamps,
            sack: agreed.sack,
            ecn: agreed.ecn || self.marks.is_accurate(),
            window_scale: agreed.scaled.then_some((agreed.send_scale, agreed.recv_scale)),
            mss: w.mss,
            advmss: super::payload_mss(self.config.mss, agreed.timestamps, agreed.counts),
            retries: self.tx.core.tally.retries,
            probes: self.tx.core.timers.persist_backoff,
            initial_ssthresh: self.config.initial_ssthresh,
            unsent: w.end.saturating_sub(w.max.max(1)),
            reducing: w.una < self.tx.core.reduced_below || self.tx.is_slowing(),
            syn_data: self.syn_data_arrived(),
            syn_acked: w.una > 0 && !self.is_half(),
        }
    }

    pub(in crate::tcp) fn outstanding(&self) -> Outstanding {
        self.tx.outstanding()
    }

    /// Sets the conditions for which partial segments wait for more data, and sends segments that need not wait any
    /// more.
    pub fn set_coalescing(&mut self, coalescing: Coalescing, now: Time, out: &mut Out) {
        self.tx.core.window.coalescing = coalescing;
        self.flush(now, out);
    }

    /// Sets the maximum number of sent and unacknowledged bytes.
    pub fn set_send_buffer(&mut self, bytes: u32) {
        self.tx.core.window.send_buffer = bytes;
    }

    /// Bounds the payload of segments sent from now on, in bytes.
    pub fn clamp_mss(&mut self, bytes: u32) {
        let w = &mut self.tx.core.window;
        w.set_mss(w.path_mss().min(bytes.max(1)));
    }

    /// Bounds the segments by a known size of the path: `bytes` without options.
    pub(in crate::tcp) fn apply_path(&mut self, bytes: u32) {
        self.clamp_mss(bytes.saturating_sub(if self.agreed.timestamps { 12 } else { 0 }));
    }

    /// Enables or disables tail loss probes.
    pub(in crate::tcp) fn set_tail_probes(&mut self, on: bool) {
        self.tx.set_tail_probes(on);
    }

    /// Sets when partial segments wait. Takes effect at the next segment of the peer, or the next write.
    pub(in crate::tcp) fn put_coalescing(&mut self, coalescing: Coalescing) {
        self.tx.core.window.coalescing = coalescing;
    }

    /// Sets the maximum number of retransmissions of the SYN.
    pub(in crate::tcp) fn set_syn_retries(&mut self, retries: u32) {
        self.config = self.config.changed(|config| config.syn_retries = Some(retries));
    }

    /// The peer, and the MSS that a SYN to it offers.
    pub(in crate::tcp) fn offer(&self) -> (Addr, u32) {
        (self.flow.dst, self.config.mss)
    }

    /// Writes `body` as Linux does with `TCP_NOTSENT_LOWAT`: a new buffer starts only while fewer than `lowat` bytes
    /// are unsent. Returns the number of accepted bytes.
    pub(in crate::tcp) fn write_up_to(
        &mut self,
        now: Time,
        body: &Body,
        (lowat, more): (u32, bool),
        out: &mut Out,
    ) -> u32 {
        let (mut taken, corked) = (0, self.corked);
        while taken < body.len() {
            let w = &self.tx.core.window;
            let goal = w.buffer_goal();
            let unsent = w.end.saturating_sub(w.max.max(1));
            let room = match unsent % goal {
                0 if unsent >= lowat.into() => break,
                filled => goal - filled,
            };
            let len = room.min(u64::from(body.len() - taken)) as u32;
            let more = more || taken + len < body.len();
            let written = self.write_part(now, body.slice(taken, len), more, out);
            if written == 0 {
                break;
            }
            taken += written;
            // A full buffer is sent although the connection is corked.
            if corked {
                self.uncork(now, out);
                self.cork();
            }
        }
        taken
    }

    /// Makes the next write begin a new segment.
    pub(in crate::tcp) fn end_record(&mut self) {
        let end = self.tx.core.window.end;
        self.tx.core.window.end_record(end);
    }

    /// Whether a sequence number belongs to a segment in flight, including this end's SYN.
    pub(in crate::tcp) fn has_sent(&self, seq: Seq) -> bool {
        let w = &self.tx.core.window;
        let (una, open) = (w.una, self.state != State::Closed);
        let from = if self.waits_for_handshake() { 0 } else { una };
        let to = w.max.max(self.opening.as_ref().map_or(1, |opening| opening.carried));
        open && seq.unwrap_near(self.iss, una).is_some_and(|at| (from..=to).contains(&at))
    }

    /// Whether this end exchanges data while its SYN is unacknowledged.
    pub(in crate::tcp) fn waits_for_handshake(&self) -> bool {
        self.is_half()
    }

    /// Reduces the segment size to the path's `mss` bytes, without options, and retransmits larger segments in flight.
    //= rfc1191#section-6.4: a retransmission without a sign of congestion
    pub(in crate::tcp) fn shrink_path(&mut self, now: Time, mss: u32, out: &mut Out) {
        if mss >= self.config.mss || self.state == State::Closed {
            return;
        }
        self.config = self.config.changed(|config| config.mss = mss);
        if self.state == State::SynSent {
            if self.opening.as_ref().is_some_and(|opening| opening.carries > 1) {
                self.send_syn(now, true, out);
            }
            return;
        }
        let (agreed, w) = (self.agreed, &mut self.tx.core.window);
        let before = w.mss.max(1);
        let payload = super::payload_mss(mss, agreed.timestamps, agreed.counts);
        w.set_mss(w.path_mss().min(payload));
        // Linux counts cwnd and ssthresh in segments, so they change with the segment size.
        let resized = |bytes: u32| (u64::from(bytes) * u64::from(w.mss) / u64::from(before)) as u32;
        (w.cwnd, w.ssthresh) = match w.ssthresh == self.config.initial_ssthresh {
            true => (resized(w.cwnd), w.ssthresh),
            false => (resized(w.cwnd), resized(w.ssthresh)),
        };
        self.tx.split_flight(now);
        self.flush(now, out);
    }

    /// Replaces the growth of the congestion window by that of `word`, if both use the same loss recovery. The
    /// windows do not change. Returns false if the loss recovery differs.
    pub fn set_congestion_control(&mut self, now: Time, word: &Keyword) -> bool {
        let settings = self.config.changed(word.apply);
        let fits = settings.variant == self.config.variant
            || settings.variant == Variant::Rack && self.state == State::Closed;
        if fits {
            self.tx.replace_growth(now, &settings);
            self.config = settings;
        }
        fits
    }

    /// Sends an empty segment below the window as a keepalive; the peer answers it with an ACK.
    //= rfc9293#section-3.8.4: SEG.SEQ = SND.NXT-1
    pub fn probe_peer(&mut self, now: Time, out: &mut Out) {
        if !self.state.is_synchronised() {
            return;
        }
        let position = self.tx.core.window.una.saturating_sub(1);
        let segment = self.segment(now, position, Flags::ACK);
        self.originate(segment, Body::EMPTY, Cause::Control, out);
    }

    /// Answers `segment` with a reset and aborts the connection, because the application does not read its data.
    pub fn refuse_data(&mut self, segment: &Segment, out: &mut Out) {
        self.refuse_ack(segment, out);
        self.abort(out);
    }

    /// Aborts the connection without a segment to the peer.
    pub fn give_up(&mut self, out: &mut Out) {
        self.abort(out);
    }

    /// The first unacknowledged position, and whether any data is outstanding or waits for a window.
    pub fn left_edge(&self) -> (u64, bool) {
        let w = &self.tx.core.window;
        (w.una, w.una < w.last())
    }
}
