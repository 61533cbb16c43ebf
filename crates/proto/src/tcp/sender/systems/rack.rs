//! RACK-TLP (RFC 8985): a segment is lost when another that was sent sufficiently later has arrived. It uses time
//! instead of a count of duplicate ACKs, so it detects lost retransmissions as well.
//!
//! Recovery sends by proportional rate reduction (RFC 6937); a probe detects losses at the tail. With the windows of
//! Linux, a spurious reaction is reverted; see `undo.rs`.

mod arrivals;
mod counting;
mod growing;
mod losses;
mod recovery;
mod reordering;
mod tail;
mod undo;

use crate::tcp::config::{Clock, Congestion, GrowthRule, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword, Linux};
use crate::units::{Span, Time};

use crate::tcp::sender::bursts::{BurstInput, new_data};
use crate::tcp::sender::congestion_control::rate::RateMeter;
use crate::tcp::sender::recovery::flight::{Flight, Judgement};
use crate::tcp::sender::recovery::prr::Prr;
use crate::tcp::sender::recovery::tlp::TailProbe;
use crate::tcp::sender::{Chunk, Core, Window};
use arrivals::{Facts, Last};
use losses::Losses;
use reordering::Reordering;
use undo::Undo;

/// The keyword.
pub const WORD: Keyword = Keyword {
    key: "rack",
    apply,
    summary: "losses detected by time, tail loss probes, a window that shrinks in proportion to delivered data; Reno's growth",
    source: "RFC 8985, RFC 6937",
    tier: 0,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Current,
    linux: Some(Linux::control("reno")),
};

/// RACK-TLP with Reno's window. It records each segment, so it sends new data after reports without limited transmit.
/// Modern networks need windows above 64 KiB.
pub(in crate::tcp::sender) fn apply(c: &mut TcpConfig) {
    c.variant = Variant::Rack;
    c.congestion = Congestion::Reno;
    c.sack = true;
    c.dsack = true;
    c.timestamps = true;
    c.window_scale = true;
    c.limited_transmit = false;
    c.window_validation = true;
}

/// Least time until the timeout that repairs discarded data.
const RENEGED: Span = Span::millis(10);

/// Loss detection by time, and recovery.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Segments in flight.
    flight: Flight,
    /// Measures the delivery rate.
    meter: RateMeter,
    /// The tail loss probe, and whether it is in use.
    probe: TailProbe,
    probes: bool,
    /// Bounds transmissions in recovery.
    prr: Prr,
    facts: Facts,
    losses: Losses,
    reordering: Reordering,
    last: Last,
    active: bool,
    /// Whether the last ACK has left nothing to repair (`TCP_CA_Open`).
    calm: bool,
    /// Whether the present call sends only lost segments, as Linux does when the timer for reordered segments expires, or
    /// that of a probe which is not sent.
    repairs: bool,
    /// Whether the rules of Linux apply.
    kernel: bool,
    /// Whether duplicate ACKs are counted, since the peer reports no segments.
    counts: bool,
    /// Whether the recovery that has just ended leaves losses that happened during it.
    leftovers: bool,
    /// One past the highest position sent when recovery began, or when the timer expired.
    recover: u64,
    /// State for reverting a spurious reaction to a loss.
    undo: Undo,
    /// Whether the left edge has stopped at data that the receiver had reported: it has discarded this data.
    reneged: bool,
    /// Highest position sent when an echoed mark began to reduce the window (`TCP_CA_CWR`).
    slowing: Option<u64>,
}

impl Rack {
    /// A recovery without segments in flight.
    pub fn new(config: &TcpConfig) -> Rack {
        Rack {
            flight: Flight::default(),
            meter: RateMeter::default(),
            probe: TailProbe::default(),
            probes: true,
            prr: Prr::new(0, 1),
            facts: Facts::new(match config.clock {
                Clock::Fine { granularity } => granularity.max(Span::millis(1)),
                Clock::Ticks { slow, .. } => slow,
            }),
            losses: Losses::default(),
            reordering: Reordering::new(),
            last: Last::default(),
            active: false,
            calm: true,
            repairs: false,
            kernel: config.growth == GrowthRule::Linux,
            counts: false,
            leftovers: false,
            recover: 0,
            undo: Undo::new(config.initial_ssthresh),
            reneged: false,
            slowing: None,
        }
    }

    /// Bytes in the network. Linux counts segments, of any size, so a window permits as many small ones as full ones.
    #[inline]
    fn in_network(&self, w: &Window) -> u64 {
        if self.kernel { self.flight.pending() * u64::from(w.mss) } else { self.flight.pipe() }
    }

    /// Bytes that the window counts for a segment of `bytes`.
    #[inline]
    fn weight(&self, w: &Window, bytes: u64) -> u64 {
        if self.kernel { w.mss.into() } else { bytes }
    }

    /// Sent and unacknowledged bytes, as the window counts them.
    #[inline]
    fn sent(&self, w: &Window) -> u64 {
        if self.kernel { self.flight.segments() as u64 * u64::from(w.mss) } else { w.nxt - w.una }
    }

    /// Whether data that was outstanding at the last timeout is still unacknowledged.
    fn after_timeout(&self, w: &Window) -> bool {
        !self.active && !self.is_over(w.una)
    }

    /// Whether nothing was to be repaired before the last ACK, and it is no duplicate and reports nothing.
    fn is_plain(&self) -> bool {
        let last = &self.last;
        self.calm && !last.reported && !last.repeats && last.needless == 0
    }

    /// Whether nothing is to be repaired.
    fn is_calm(&self, w: &Window) -> bool {
        let slowing = self.active || self.after_timeout(w) || self.slowing.is_some();
        !slowing && self.flight.sacked_segments() == 0 && !self.flight.is_disordered()
    }

    /// The reordering window: a segment is lost if it was sent at least this long before one that has arrived.
    fn reordering_window(&self, w: &Window, srtt: Span) -> Span {
        //= rfc8985#section-6.2: no waiting before reordering is seen, once a loss is likely
        let likely = w.una < self.recover || self.flight.sacked_segments() >= 3;
        if !self.facts.reordered && likely {
            return Span::ZERO;
        }
        self.reordering.window(self.facts.min_rtt.unwrap_or_default()).min(srtt)
    }

    /// Marks lost segments. Returns the number of newly lost bytes, and when the last of the segments that may be
    /// reordered will count as lost.
    //= rfc8985#section-6.2: step 5: RACK_detect_loss
    fn detect(&mut self, now: Time, w: &Window, srtt: Span) -> (u64, Option<Time>) {
        if self.facts.newest.1 == 0 {
            return (0, None);
        }
        let patience = self.facts.rtt + self.reordering_window(w, srtt);
        let (newest, mut latest, mut again) = (self.facts.newest, None, false);
        let (meter, losses) = (&mut self.meter, &mut self.losses);
        let lost = self.flight.judge(|sent| {
            //= rfc8985#section-6.2: RACK_sent_after, by the order of transmission: segments may leave at one time
            if (sent.order, sent.to()) >= newest {
                return Judgement::Later;
            }
            let due = sent.at + patience;
            if due <= now {
                losses.note(meter, now, sent);
                again |= sent.again;
                return Judgement::Lost;
            }
            latest = latest.max(Some(due));
            Judgement::Wait
        });
        // In Linux a lost retransmission begins a recovery, also while a timeout is repaired (`FLAG_LOST_RETRANS`), and so
        // does any loss that the timer for reordered segments detects (`tcp_rack_reo_timeout`).
        if self.kernel && self.after_timeout(w) && (again || self.repairs && lost > 0) {
            self.leftovers = true;
            self.undo.remember(w.cwnd, w.ssthresh);
        }
        (lost, latest)
    }

    /// The next new segment, with the bytes in the network bounded by the congestion window. Otherwise records the
    /// reason that there is none.
    fn new_data(&mut self, now: Time, core: &mut Core) -> Option<Chunk> {
        let (w, rtt) = (&mut core.window, &core.timers.rtt);
        let pipe = self.in_network(w);
        let calm = !self.active && !self.after_timeout(w);
        if let Some(bursts) = core.bursts.as_mut().filter(|_| calm) {
            let oldest = self.flight.first().map(|sent| sent.at);
            let (srtt, min_rtt) = (rtt.srtt(), self.facts.min_rtt);
            if !bursts.allow(w, &BurstInput { now, pipe, srtt, min_rtt, oldest }) {
                self.note_use(now, core, true);
                return None;
            }
        }
        let chunk = if self.flight.is_full() { None } else { new_data(w, pipe) };
        let chunk = chunk.or_else(|| core.bursts.as_ref()?.remainder(w, pipe));
        if chunk.is_some() {
            return chunk;
        }
        // In Linux a call that sends new data or ends at the window shows the use of the window, and a full window counts
        // as used, even without more data (`tcp_write_xmit`).
        let sends = self.kernel && core.usage.is_unnoted();
        let full = pipe + u64::from(w.mss) > u64::from(w.cwnd) && (w.nxt < w.last() || sends);
        if sends || full || !self.kernel {
            self.note_use(now, core, full);
        }
        self.note_app_limited(&core.window);
        None
    }

    /// Records the use of the window, and whether it is the limit.
    fn note_use(&self, now: Time, core: &mut Core, full: bool) {
        let (w, rto) = (&mut core.window, core.timers.rtt.rto());
        let sent = self.sent(w);
        core.usage.validate((now, rto), w, (sent, full), self.calm);
    }

    /// Records that the application has no more data: the delivery rate then does not show the capacity of the path.
    fn note_app_limited(&mut self, w: &Window) {
        let pipe = self.in_network(w);
        let full = pipe + u64::from(w.mss) > u64::from(w.cwnd);
        if w.nxt >= w.last() && !full && self.flight.lost() == 0 {
            self.meter.app_limited(pipe);
        }
    }
}
