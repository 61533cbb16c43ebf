//! Maximum packet sizes: that of the interface below, and that found for the path.

use super::discovery::Discovery;
use super::seal::Seal;
use super::{Datagram, LEAST, Tunnel, TunnelConfig, inner, link_header, message};
use crate::units::{Span, Time};

impl<S: Seal> Tunnel<S> {
    /// Longest inner packet at present, in bytes.
    pub fn mtu(&self) -> u16 {
        let own = self.config.session.mtu;
        let agreed = self.session.agreed().map_or(own, |agreed| agreed.mtu.min(own));
        match &self.path {
            Some(path) if self.config.follows => {
                let fits = inner(path.size(), self.config.framing, self.config.session.window);
                agreed.min(u16::try_from(fits).unwrap_or(u16::MAX))
            }
            _ => agreed,
        }
    }

    /// Longest IP packet that the path carries, or the interface below if the path is unknown, in bytes.
    pub fn path(&self) -> u32 {
        self.path.as_ref().map_or(self.config.below, Discovery::size)
    }

    /// Sets the MTU of the interface below; a new value restarts the search of the path.
    pub fn set_below(&mut self, now: Time, below: u32) {
        if self.config.below != below {
            self.config.below = below;
            self.search(now);
        }
    }

    /// Checks a report that the path carries packets of at most `hint` bytes. The report is not trusted.
    pub fn doubt(&mut self, now: Time, hint: u32) {
        if let Some(path) = &mut self.path {
            path.doubt(now, Some(hint));
        }
    }

    /// Starts the search of the path, if there is a session.
    pub(super) fn search(&mut self, now: Time) {
        let TunnelConfig { framing, below, session, .. } = &self.config;
        let least = LEAST + framing + message::OVERHEAD as u32 + link_header(session.window);
        self.path = self.session.agreed().map(|agreed| {
            // Probes take a sixteenth of the rate at most.
            let airtime =
                self.config.rate.map_or(Span::ZERO, |rate| rate.transmit((*below).into()));
            Discovery::new(now, least, *below, agreed.rtt.max(airtime * 32))
        });
    }

    /// Sends a probe, if one is due.
    pub(super) fn probe(&mut self, now: Time) {
        let due = self.path.as_mut().filter(|path| path.next_wake() <= now);
        let Some(size) = due.and_then(|path| path.on_wake(now)) else { return };
        let len = size.saturating_sub(self.config.framing);
        if let Some((to, bytes)) = self.session.probe(now, len as usize) {
            self.outbox.push(Datagram { to, bytes, whole: true });
            let airtime = self.config.rate.map_or(Span::ZERO, |rate| rate.transmit(size.into()));
            self.free_at = self.free_at.max(now) + airtime;
        }
    }
}
