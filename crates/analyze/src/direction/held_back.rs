//! Silences in which packets waited before the point of capture, by the timestamps of their sender.

use lasthop_proto::units::Span;

use super::Tracker;
use crate::reading::StallCause;

/// Common frequencies of timestamp clocks in Hz (RFC 7323, 5.4: between 1 ms and 1 s for a tick).
const CLOCKS: [f64; 6] = [1.0, 2.0, 10.0, 100.0, 250.0, 1000.0];

/// Maximum ratio of the observed to the true frequency: packets that wait make the clock look faster or slower.
const CLOSE: f64 = 1.5;

/// Minimum share of a silence in which its packet waited.
const MOSTLY: f64 = 0.5;

impl Tracker {
    /// The frequency of the sender's timestamp clock, in Hz.
    fn clock(&self) -> Option<f64> {
        let [(from, first), (to, last)] = self.stamps?;
        let seconds = to.since(from).as_secs_f64();
        let seen = f64::from(last.wrapping_sub(first)) / seconds.max(1e-9);
        let ratio = |clock: &f64| (seen / clock).max(clock / seen);
        CLOCKS
            .into_iter()
            .filter(|clock| ratio(clock) <= CLOSE)
            .min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }

    /// Changes the cause of silences whose last packet had been sent long before it passed the point of capture.
    //= rfc7323#section-4: the timestamp of a packet is the time of its transmission
    pub(super) fn held_back(&mut self) {
        let Some(clock) = self.clock() else { return };
        for (stall, ticks) in self.reading.stalls.iter_mut().zip(&self.ticks) {
            let Some(ticks) = ticks.filter(|ticks| *ticks <= u32::MAX / 2) else { continue };
            let silence = stall.to.since(stall.from);
            let sent = Span::from_secs_f64((f64::from(ticks) + 1.0) / clock);
            let early = silence.saturating_sub(sent);
            if stall.cause != StallCause::ZeroWindow
                && early.as_secs_f64() > MOSTLY * silence.as_secs_f64()
            {
                stall.cause = StallCause::HeldBack;
                let longest = &mut self.reading.held_back;
                *longest = Some(longest.map_or(early, |longest| longest.max(early)));
            }
        }
    }
}
