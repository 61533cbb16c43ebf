//! Path MTU discovery of a base station's end, which determines its segment size.
//!
//! A router answers a too large packet to its source address, which is not the base station's. The base station
//! forwards these ICMP messages, and uses a message that quotes a segment in flight ([`Connection::on_too_big`],
//! RFC 1191 and RFC 8201). Without a message, a second timeout of full segments reduces their size. Later one
//! larger segment probes the path ([`Connection::probe_path`], RFC 4821).
//!
//! Ends of hosts have no path MTU discovery: links of the simulator have no MTU below the size of their packets.

use super::Connection;
use crate::event::{Cause, TcpKind};
use crate::machine::Out;
use crate::units::{Span, Time};
use crate::wire::Seq;

/// Minimum size that a message or lost segments may impose. If a router reports a smaller MTU, packets have this size
/// and routers may fragment them, as in Linux (`min_pmtu`, `ip_dont_fragment`).
//= rfc791#section-3.2: every internet module must forward 68 bytes
const LEAST_V4: u32 = 552;
//= rfc8200#section-5: every link has an MTU of 1280 or more
const LEAST_V6: u32 = 1280;

/// Reduced sizes to try when full segments are lost, in bytes of an IP packet.
//= rfc4821: 1024 is a good starting point; 1280 suits tunnels of IPv6
const STEPS: [u32; 3] = [1280, 1024, LEAST_V4];

/// Number of consecutive timeouts from which the size counts as their cause.
const SUSPECT: u32 = 2;

/// Time until a larger size is tried after lost full segments; `RETRY_NAMED` after a router has reported its MTU.
//= rfc4821: a failed probe is repeated after some time
const RETRY: Span = Span::secs(30);
//= rfc1191#section-6.3: ten minutes
const RETRY_NAMED: Span = Span::secs(600);

/// State of path MTU discovery while the segments are smaller than agreed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    /// Payload of a segment as agreed with the peer, in bytes.
    agreed: u32,
    /// When the next larger segment is tried.
    retry: Time,
    /// Wait after a failed probe.
    patience: Span,
    /// End position of the probe in flight.
    probe: Option<u64>,
    /// Acknowledged position at the last reduction of the size.
    stuck: u64,
    /// Whether routers may fragment the packets, since the path's MTU is below the minimum size.
    fragments: bool,
}

impl Connection {
    /// Bytes of a packet's headers.
    fn overhead(&self) -> u32 {
        let ip = if self.flow.src.is_v4() { 20 } else { 40 };
        let options = if self.agreed.timestamps { 12 } else { 0 };
        ip + 20 + options + if self.agreed.counts { 8 } else { 0 }
    }

    /// Handles a router's report that the segment with number `seq`, in a packet of `len` bytes, exceeded a link's
    /// MTU of `mtu` bytes; an old router reports 0. The report is valid only for a segment in flight. Returns whether
    /// the size was reduced.
    //= rfc5927#section-7.2: the quoted number must be that of unacknowledged data
    pub fn on_too_big(
        &mut self,
        now: Time,
        (seq, len): (Seq, u32),
        mtu: u32,
        out: &mut Out,
    ) -> bool {
        let w = &self.tx.core.window;
        let in_flight = |position: u64| (w.una..w.max).contains(&position);
        if !self.state.is_synchronised() || !seq.unwrap_near(self.iss, w.una).is_some_and(in_flight)
        {
            return false;
        }
        let is_v4 = self.flow.src.is_v4();
        let least = if is_v4 { LEAST_V4 } else { LEAST_V6 };
        let named = match mtu {
            //= rfc1191#section-5: a message without an MTU is answered by a smaller guess
            0 => STEPS.into_iter().find(|step| *step < len).unwrap_or(0),
            mtu => mtu,
        };
        self.shrink(now, named.max(least), RETRY_NAMED, is_v4 && named < least, out)
    }

    /// Whether routers may fragment the packets of this end.
    pub(super) fn permits_fragments(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.fragments)
    }

    /// Sets whether two consecutive timeouts of full segments reduce their size.
    pub fn set_suspicious(&mut self, suspicious: bool) {
        self.suspicious = suspicious;
    }

    /// Reduces the size of segments if this timeout suggests that full segments are too large for the path.
    pub(super) fn suspect_size(&mut self, now: Time, kind: TcpKind, out: &mut Out) {
        if !self.suspicious || kind != TcpKind::Timeout || !self.state.is_synchronised() {
            return;
        }
        let w = &self.tx.core.window;
        let full = w.max - w.una >= u64::from(w.mss);
        // The reduced size is lost as well.
        let again = self.path.as_ref().is_some_and(|path| path.stuck == w.una);
        if self.tx.retries() < if again { 1 } else { SUSPECT } || !full {
            return;
        }
        let now_sent = w.mss + self.overhead();
        let least = if self.flow.src.is_v4() { LEAST_V4 } else { LEAST_V6 };
        if let Some(step) = STEPS.into_iter().find(|step| *step < now_sent && *step >= least) {
            self.shrink(now, step, RETRY, self.permits_fragments(), out);
        }
    }

    /// Limits packets to `mtu` bytes, permits routers to fragment them if `fragments`, and retransmits the data in
    /// flight. Returns false if the size does not change.
    fn shrink(
        &mut self,
        now: Time,
        mtu: u32,
        patience: Span,
        fragments: bool,
        out: &mut Out,
    ) -> bool {
        let before = self.tx.core.window.mss;
        let mss = mtu.saturating_sub(self.overhead()).clamp(1, before.max(1));
        if mss == before && fragments <= self.permits_fragments() {
            return false;
        }
        let largest = self.tx.core.window.path_mss();
        let agreed = self.path.as_ref().map_or(largest, |path| path.agreed);
        let (retry, stuck) = (now + patience, self.tx.core.window.una);
        let path = PathMtu { agreed, retry, patience, probe: None, stuck, fragments };
        self.path = Some(Box::new(path));
        self.tx.core.window.set_mss(mss);
        self.tx.resend(now);
        self.flush(now, out);
        true
    }

    /// Sends a larger segment as a probe, if the time for it has come and there is enough data. The caller polls
    /// this from time to time.
    pub fn probe_path(&mut self, now: Time, out: &mut Out) {
        let Some(mut path) = self.path.as_deref().copied() else { return };
        let troubled = self.tx.retries() > 0 || self.control_block().in_recovery;
        let w = &mut self.tx.core.window;
        if let Some(end) = path.probe {
            if troubled {
                // The lost segment need not be the probe. In any case the next probe is sent later.
                (path.probe, path.retry) = (None, now + path.patience);
                self.path = Some(Box::new(path));
            } else if w.una >= end {
                w.set_mss(path.agreed);
                self.path = None;
            }
            return;
        }
        let fits = w.nxt == w.max && w.end.saturating_sub(w.nxt) >= u64::from(path.agreed);
        let open = self.state.is_synchronised() && !self.frozen && !self.corked;
        if now < path.retry || troubled || !fits || !open {
            return;
        }
        let usual = core::mem::replace(&mut w.mss, path.agreed);
        if let Some(chunk) = self.tx.poll(now) {
            if chunk.len == path.agreed && chunk.cause == Cause::Data {
                path.probe = Some(chunk.end());
            }
            // A fragmented probe would not show the MTU.
            self.path = Some(Box::new(PathMtu { fragments: false, ..path }));
            self.send_chunk(now, chunk, None, out);
            self.path = Some(Box::new(path));
        }
        self.tx.core.window.mss = usual;
    }
}
