//! What becomes of data in our SYN, and of a write that waits for the answer (Linux).

use crate::tcp::config::GrowthRule;
use crate::units::Time;

use super::Connection;

impl Connection {
    /// Linux counts what a SYN carried and its answer does not acknowledge as sent and lost: it is sent again at once
    /// (`tcp_rcv_fastopen_synack`).
    pub(super) fn lose_early_data(&mut self, now: Time) {
        let Some(opening) = &self.opening else { return };
        let (una, carried) = (self.tx.core.window.una, opening.carried);
        if self.config.growth == GrowthRule::Linux && !self.agreed.counts && una < carried {
            self.tx.lose_early(now, carried);
        }
    }

    /// A write waits for the answer to our SYN, or no longer.
    pub(in crate::tcp) fn set_write_waits(&mut self, waits: bool) {
        self.opening.iter_mut().for_each(|opening| opening.write_waits = waits);
    }

    /// Our SYN was answered. If a write waits, its data is a reply to that for Linux: ACKs wait for replies from now on.
    pub(super) fn expect_write(&mut self, now: Time) {
        let waits = self.opening.as_ref().is_some_and(|opening| opening.write_waits);
        let rtt = &self.tx.core.timers.rtt;
        if let (true, Some(quick)) = (waits, self.rx.timed()) {
            quick.data_arrived(now, rtt.srtt(), rtt.rto());
        }
    }

    /// Whether data in a SYN has arrived (`TCPI_OPT_SYN_DATA`).
    pub(in crate::tcp) fn syn_data_arrived(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.data_acked)
    }
}
