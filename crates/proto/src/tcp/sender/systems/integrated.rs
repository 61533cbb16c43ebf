//! Sender with state that all connections to a peer share (TCP-INT, balakrishnan97 5.2). Without lent state it is Reno.

use crate::event::{Cause, TcpKind};
use crate::tcp::config::{Congestion, IdleRestart, TcpConfig, Variant};
use crate::tcp::keyword::{Deployment, Keyword};
use crate::tcp::shared_window::Integrated;
use crate::units::Time;

use super::reno::Reno;
use crate::tcp::sender::congestion_control::{Acked, CongestionControl};
use crate::tcp::sender::recovery::{Choice, Progress, Recovery, Woken};
use crate::tcp::sender::{Chunk, Core, Purpose, Sender, Timers, Window};

/// The word.
pub const WORD: Keyword = Keyword {
    key: "tcp-int",
    apply: |c| {
        c.variant = Variant::Reno;
        c.congestion = Congestion::Reno;
        c.integrated = true;
    },
    summary: "connections to the same host share one congestion window and repair each other's losses",
    source: "balakrishnan97 5.2",
    tier: 1,
    worlds: crate::describe::SIM,
    syntax: "host: tcp = \"*\"",
    deployment: Deployment::Research,
    linux: None,
};

/// A sender's part of an integrated congestion control.
#[derive(Clone, Debug)]
pub struct Part {
    /// Identifier of this connection in the shared state.
    id: u32,
    /// The shared state, during a call of this connection.
    lent: Option<Box<Integrated>>,
    /// Whether this connection uses the shared window.
    joined: bool,
    /// Timeouts of the shared state that this connection has processed.
    timeouts: u64,
    /// An ACK of new data below this position shows the next loss.
    recover: u64,
    /// Duplicate ACKs below this position may come from data that was sent twice.
    went_back: u64,
    /// Whether the call is for a timer or a turn to send. Such a call sends all permitted data.
    woken: bool,
    /// Whether a loss was detected that begins a recovery and was not reported.
    found: bool,
    /// The window after idle time, in segments.
    initial: u32,
}

impl Part {
    fn new(config: &TcpConfig) -> Part {
        Part {
            id: 0,
            lent: None,
            joined: false,
            timeouts: 0,
            recover: 0,
            went_back: 0,
            woken: false,
            found: false,
            initial: match config.slow_start_after_idle {
                IdleRestart::OneSegment => 1,
                _ => config.initial_window,
            },
        }
    }

    /// The shared state and this connection's identifier in it, if it is lent and used.
    fn shared(&mut self) -> Option<(&mut Integrated, u32)> {
        let id = self.id;
        self.lent.as_deref_mut().filter(|_| self.joined).map(|shared| (shared, id))
    }

    /// Accepts the shared state for the next call; `id` identifies this connection in it.
    fn take(&mut self, core: &mut Core, id: u32, mut shared: Box<Integrated>) {
        (self.id, self.woken) = (id, false);
        if self.joined {
            shared.begin(id);
            let w = &mut core.window;
            (w.cwnd, w.ssthresh) = (shared.cwnd, shared.ssthresh);
            if self.timeouts < shared.timeouts() {
                self.timeouts = shared.timeouts();
                self.went_back = w.max;
                self.recover = 0;
                w.nxt = w.una;
                w.repair = None;
                w.again = Cause::TimeoutRetransmit;
                core.timers.timed = None;
                core.tally.dupacks = 0;
            }
        }
        self.lent = Some(shared);
        self.take_loss(core);
    }

    /// Joins the shared window after the handshake.
    //= balakrishnan97#5.2.2: later connections build on the window size attained by earlier ones
    pub(in crate::tcp::sender) fn join(&mut self, w: &mut Window) {
        let Some(shared) = self.lent.as_mut().filter(|_| !self.joined) else { return };
        shared.join();
        self.joined = true;
        self.timeouts = shared.timeouts();
        // The peer's window bounds each connection separately; the shared window grows only while it is fully used.
        w.largest = u32::MAX / 2;
        if shared.cwnd > 0 {
            (w.cwnd, w.ssthresh) = (shared.cwnd, shared.ssthresh);
        }
    }

    /// Requests the retransmission of a loss that the shared state has detected.
    fn take_loss(&mut self, core: &mut Core) {
        let Some((shared, id)) = self.shared() else { return };
        let Some(from) = shared.take_lost(id) else { return };
        let w = &mut core.window;
        w.repair = Some((from, Cause::FastRetransmit));
        self.found |= w.una >= self.recover;
        self.recover = self.recover.max(w.max);
        core.timers.timed = None;
    }

    /// Whether a loss was detected that begins a recovery and was not reported yet. Restarts the timer for its
    /// retransmission.
    fn take_found_loss(&mut self, now: Time, timers: &mut Timers) -> bool {
        let found = core::mem::take(&mut self.found);
        if found {
            timers.rearm(now);
        }
        found
    }
}

impl Sender {
    /// Lends the shared state for the next call; `id` identifies this connection in it.
    pub fn lend(&mut self, id: u32, shared: Box<Integrated>) {
        if let Some(part) = self.recovery.part() {
            part.take(&mut self.core, id, shared);
        }
    }

    /// Gives the shared state back.
    pub fn give_back(&mut self) -> Option<Box<Integrated>> {
        // Without a part, no state is lent.
        self.recovery.part()?.lent.as_ref()?;
        let has_work = self.has_work();
        let part = self.recovery.part()?;
        let mut shared = part.lent.take()?;
        if part.joined {
            // Not every call sends: for example that for a damaged ACK, a partial ACK, or an application that has
            // stopped.
            shared.end(part.id, part.woken || !has_work);
            shared.cwnd = self.core.window.cwnd;
            shared.ssthresh = self.core.window.ssthresh;
        }
        Some(shared)
    }

    /// Removes a closed connection from the shared state.
    pub fn leave(&mut self, shared: &mut Integrated) {
        if let Some(part) = self.recovery.part().filter(|part| part.joined) {
            shared.leave(part.id);
            part.joined = false;
        }
    }
}

/// Recovery that uses the shared state, and plain Reno while no state is lent.
#[derive(Clone, Debug)]
pub struct Together {
    part: Part,
    alone: Reno,
}

impl Together {
    /// A recovery that has not joined a shared state.
    pub fn new(config: &TcpConfig) -> Together {
        Together { part: Part::new(config), alone: Reno::new(config) }
    }
}

impl Recovery for Together {
    fn check(&self, w: &Window) {
        self.alone.check(w);
    }

    fn active(&self) -> bool {
        self.alone.active()
    }
    fn engaged(&self) -> bool {
        self.part.joined && self.part.lent.is_some() || self.alone.active()
    }
    fn enter(&mut self, w: &mut Window, dupacks: u32) {
        self.alone.enter(w, dupacks);
    }

    fn on_ack(&mut self, core: &mut Core, ack: &Acked) -> Progress {
        let recover = self.part.recover;
        let Some((shared, id)) = self.part.shared() else { return self.alone.on_ack(core, ack) };
        let w = &mut core.window;
        let mut result = shared.acked(ack.now, id, w.una, w.mss);
        if w.una < recover {
            result.halve |= shared.missing(id, w.una);
        } else if result.full && !result.suspicious {
            core.congestion_control.on_ack(w, ack);
        }
        if result.halve {
            halve(w);
        }
        let over = recover > 0 && w.una >= recover;
        if over {
            self.part.recover = 0;
        }
        self.part.take_loss(core);
        match (self.part.take_found_loss(ack.now, &mut core.timers), over) {
            (true, _) => Progress::Lost,
            (_, true) => Progress::Over,
            _ => Progress::Partial { rearm: true },
        }
    }

    fn on_dup_ack(&mut self, core: &mut Core, now: Time) -> TcpKind {
        let went_back = self.part.went_back;
        let Some((shared, id)) = self.part.shared() else {
            return self.alone.on_dup_ack(core, now);
        };
        let w = &mut core.window;
        if shared.duplicate(id, w.una, w.una >= went_back) {
            halve(w);
        }
        self.part.take_loss(core);
        match self.part.take_found_loss(now, &mut core.timers) {
            true => TcpKind::FastRetransmit,
            false => TcpKind::DupAck,
        }
    }

    /// Handles a timeout of the timer that all connections share.
    fn on_timeout(&mut self, now: Time, core: &mut Core) -> Option<u64> {
        self.alone.on_timeout(now, core);
        let (shared, id) = self.part.shared()?;
        let w = &mut core.window;
        let first = shared.timer().1 == 0;
        w.ssthresh = if first { half(w.cwnd, w.mss) } else { shared.ssthresh };
        shared.time_out(now, id);
        // An unreachable peer is abandoned after the same number of timeouts as with one connection.
        core.tally.retries = core.tally.retries.max(shared.timer().1);
        self.part.timeouts = shared.timeouts();
        self.part.went_back = w.max;
        self.part.recover = 0;
        None
    }

    fn called(&mut self) {
        self.part.woken = true;
    }
    fn on_wake(&mut self, now: Time, core: &mut Core) -> Option<Woken> {
        let timers = &mut core.timers;
        if self.part.take_found_loss(now, timers) {
            return Some(Woken::Send(TcpKind::FastRetransmit));
        }
        timers.expired(now)?;
        // The timer is shared by all connections, so it may expire later.
        let shared = self.part.lent.as_ref().filter(|_| self.part.joined)?;
        let (since, backoff) = shared.timer();
        let more = backoff.saturating_sub(timers.rtt.backoff()).min(6);
        let at = timers.rtt.deadline(since, 1 << more);
        if at > now {
            timers.set(Purpose::Timeout, at);
        }
        None
    }

    fn on_sent(&mut self, now: Time, core: &mut Core, chunk: &Chunk) -> Option<bool> {
        if chunk.cause != Cause::WindowProbe
            && let Some((shared, id)) = self.part.shared()
        {
            let again = chunk.end() <= core.window.max;
            shared.sent(now, id, chunk.from, chunk.end(), again);
        }
        None
    }

    /// The next segment, if there is one and it is this connection's turn.
    fn next_chunk(&mut self, core: &mut Core, now: Time) -> Choice {
        let initial = self.part.initial;
        let Some((shared, id)) = self.part.shared() else { return Choice::Window };
        let (w, rto) = (&mut core.window, core.timers.rtt.rto());
        //= rfc5681#section-4.1: the restart window after an idle time of one timeout
        if shared.idle_since().is_some_and(|busy| now.since(busy) >= rto) {
            w.cwnd = w.cwnd.min(w.mss.saturating_mul(initial));
        }
        // Select without the congestion window, which applies to all connections together.
        shared.cwnd = core::mem::replace(&mut w.cwnd, u32::MAX);
        let chunk = w.next_chunk();
        w.cwnd = shared.cwnd;
        match chunk {
            Some(chunk) if shared.may_send(id, chunk.len + u32::from(chunk.fin)) => {
                Choice::Send(chunk)
            }
            Some(_) => Choice::Wait,
            None => {
                shared.pass(id);
                Choice::Idle
            }
        }
    }

    fn shares_window(&self) -> bool {
        true
    }
    fn part(&mut self) -> Option<&mut Part> {
        Some(&mut self.part)
    }
}

//= rfc5681#section-3.1: at least two segments
fn half(cwnd: u32, mss: u32) -> u32 {
    (cwnd / 2 / mss * mss).max(2 * mss)
}

/// Halves the shared window after a loss of any connection.
fn halve(w: &mut Window) {
    w.ssthresh = half(w.cwnd, w.mss);
    w.cwnd = w.cwnd.min(w.ssthresh);
}
