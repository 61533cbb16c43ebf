//! How long packets may be: what the interface below takes, and what the path is found to take.

use super::discovery::Discovery;
use super::seal::Seal;
use super::{Datagram, LEAST, Tunnel, TunnelConfig, inner, link_header, message};
use crate::units::{Span, Time};

impl<S: Seal> Tunnel<S> {
    /// Longest packet inside that is carried now.
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

    /// Longest packet of IP that the path is known to take, or that the interface below takes.
    pub fn path(&self) -> u32 {
        self.path.as_ref().map_or(self.config.below, Discovery::size)
    }

    /// The interface below takes packets of up to so many bytes; if that is new, the path is searched anew.
    pub fn set_below(&mut self, now: Time, below: u32) {
        if self.config.below != below {
            self.config.below = below;
            self.search(now);
        }
    }

    /// Somebody says that the path takes packets of up to `hint` bytes only. It is not believed, but tried.
    pub fn doubt(&mut self, now: Time, hint: u32) {
        if let Some(path) = &mut self.path {
            path.doubt(now, Some(hint));
        }
    }

    /// Begins to search the path, if there is a session.
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

    /// Asks the path for a length, if that is due.
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
