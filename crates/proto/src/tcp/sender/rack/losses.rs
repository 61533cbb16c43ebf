//! Segments that were found to be lost, until the window growth is told of them.

use crate::tcp::sender::Core;
use crate::tcp::sender::flight::Sent;
use crate::tcp::sender::growth::{Growth as _, Lost};
use crate::tcp::sender::rate::RateMeter;
use crate::units::Time;

/// Segments of which the window growth is not told yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(Vec<Lost>);

impl Losses {
    /// `sent` is found to be lost.
    pub(super) fn note(&mut self, meter: &mut RateMeter, now: Time, sent: &Sent) {
        meter.lose(sent.bytes());
        self.0.push(Lost {
            now,
            from: sent.from,
            bytes: sent.bytes(),
            in_flight: sent.stamp.in_flight(),
            lost: meter.lost_since(&sent.stamp),
            app_limited: sent.stamp.app_limited(),
            total: meter.total(),
        });
    }

    /// Tells the window growth, if it wants to know.
    #[inline]
    pub(super) fn tell(&mut self, core: &mut Core) {
        if self.0.is_empty() {
            return;
        }
        let steers = core.growth.steers();
        for lost in self.0.drain(..).filter(|_| steers) {
            core.growth.on_lost(&core.window, &lost);
        }
    }
}
