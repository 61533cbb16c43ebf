//! Status report of a connection, in the units and under the names of Linux's `tcp_info`.

use serde::Serialize;

use crate::units::Span;

use super::connection::Connection;
use super::state::State;

/// The state of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaState {
    /// No loss is suspected.
    Open,
    /// Segments are reported above a hole, too few for a retransmission.
    Disorder,
    /// The window is being reduced after a mark of congestion.
    Cwr,
    /// Losses are being repaired.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

/// A snapshot of a connection. Counts are in segments, except those with `bytes` in their names.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TcpInfo {
    /// State in the sense of RFC 9293.
    pub state: State,
    /// State of loss recovery.
    pub ca_state: CaState,
    /// Timeouts since the left edge last moved.
    pub retransmits: u32,
    /// Unanswered window probes.
    pub probes: u32,
    /// Number of doublings of the timeout.
    pub backoff: u32,
    /// Whether both ends agreed on timestamps.
    pub timestamps: bool,
    /// Whether both ends agreed on SACK.
    pub sack: bool,
    /// Window scale shifts of the peer and of this end, if both ends agreed on scaling.
    pub window_scale: Option<(u8, u8)>,
    /// Whether both ends agreed on ECN.
    pub ecn: bool,
    /// Whether data in a SYN has arrived.
    pub syn_data: bool,
    /// Current retransmission timeout.
    pub rto: Span,
    /// Largest payload of a segment sent, in bytes.
    pub snd_mss: u32,
    /// Largest payload that this end offered, in bytes.
    pub advmss: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Segments reported by SACK blocks; without SACK, duplicate ACKs.
    pub sacked: u32,
    /// Segments marked lost.
    pub lost: u32,
    /// Segments retransmitted and not reported.
    pub retrans: u32,
    /// Segments that have arrived, this end's SYN included.
    pub delivered: u32,
    /// Expected reordering distance in segments.
    pub reordering: u32,
    /// Number of detected reorderings.
    pub reord_seen: u32,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Round-trip time variation.
    pub rttvar: Span,
    /// Minimum round-trip time, if the sender measures it.
    pub min_rtt: Option<Span>,
    /// Slow-start threshold; `None` before the first loss.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes that arrived in order.
    pub bytes_received: u64,
    /// Bytes written and never sent.
    pub notsent_bytes: u64,
}

impl Connection {
    /// A snapshot of this connection.
    pub fn info(&self) -> TcpInfo {
        let tcb = self.control_block();
        let known = self.outstanding();
        let agreement = self.agreement();
        let mss = agreement.mss.max(1);
        let sacked =
            if agreement.sack || known.delivered.is_some() { known.sacked } else { tcb.dupacks };
        // A backoff may outlast the repair of a loss, until the next round-trip sample.
        let backed_off = tcb.backoff > 0 && tcb.snd_una < tcb.snd_max;
        let unrecorded = known.delivered.is_none() || tcb.snd_una == 0;
        let ca_state = match () {
            () if tcb.in_recovery => CaState::Recovery,
            () if known.timed_out || backed_off && unrecorded => CaState::Loss,
            () if agreement.reducing => CaState::Cwr,
            () if sacked > 0 => CaState::Disorder,
            () => CaState::Open,
        };
        let acked = self.acknowledged().div_ceil(mss.into()) as u32;
        let delivered = known.delivered.unwrap_or(acked);
        let (reordering, reord_seen) = known.reordering.unwrap_or((3, 0));
        TcpInfo {
            state: self.state(),
            ca_state,
            retransmits: agreement.retries,
            probes: agreement.probes,
            backoff: tcb.backoff,
            timestamps: agreement.timestamps,
            sack: agreement.sack,
            window_scale: agreement.window_scale,
            ecn: agreement.ecn,
            syn_data: agreement.syn_data,
            rto: tcb.rto,
            snd_mss: mss,
            advmss: agreement.advmss,
            unacked: known.segments,
            sacked,
            lost: known.lost,
            retrans: known.retransmitted,
            delivered: u32::from(agreement.syn_acked).wrapping_add(delivered),
            reordering,
            reord_seen,
            rtt: tcb.srtt,
            rttvar: tcb.rttvar,
            min_rtt: known.min_rtt,
            snd_ssthresh: (tcb.ssthresh != agreement.initial_ssthresh)
                .then_some(tcb.ssthresh / mss),
            snd_cwnd: tcb.cwnd / mss,
            snd_wnd: tcb.snd_wnd,
            bytes_acked: self.acknowledged(),
            bytes_received: self.delivered(),
            notsent_bytes: agreement.unsent,
        }
    }
}
