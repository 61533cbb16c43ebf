//! Fate of the data in our SYN, and of a write that waits for the answer (Linux).

use crate::tcp::config::GrowthRule;
use crate::units::Time;

use super::Connection;

impl Connection {
    /// Retransmits at once the data of a SYN that the SYN-ACK does not acknowledge: Linux counts it as lost
    /// (`tcp_rcv_fastopen_synack`).
    pub(super) fn lose_early_data(&mut self, now: Time) {
        let Some(opening) = &self.opening else { return };
        let (una, carried) = (self.tx.core.window.una, opening.carried);
        if self.config.growth == GrowthRule::Linux && !self.agreed.counts && una < carried {
            self.tx.lose_early(now, carried);
        }
    }

    /// Sets whether a write waits for the answer to our SYN.
    pub(in crate::tcp) fn set_write_waits(&mut self, waits: bool) {
        self.opening.iter_mut().for_each(|opening| opening.write_waits = waits);
    }

    /// Handles the answer to our SYN where a write waits for it. Linux treats the write's data as a reply, so from
    /// now on ACKs wait for replies.
    pub(super) fn expect_write(&mut self, now: Time) {
        let waits = self.opening.as_ref().is_some_and(|opening| opening.write_waits);
        let rtt = &self.tx.core.timers.rtt;
        if let (true, Some(quick)) = (waits, self.rx.timed()) {
            quick.measured(rtt.srtt(), rtt.rto());
            quick.received(now);
        }
    }

    /// Whether the data of a SYN has arrived (`TCPI_OPT_SYN_DATA`).
    pub(in crate::tcp) fn syn_data_arrived(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.data_acked)
    }
}
