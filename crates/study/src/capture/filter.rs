//! Selects connections of a capture.

use std::net::IpAddr;

use lasthop_analyze::Connection;

use super::Capture;

/// A connection passes if it matches one value of each list that is not empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Numbers in the capture, from 0.
    pub numbers: Vec<u32>,
    /// Addresses of either end.
    pub addresses: Vec<IpAddr>,
    /// TCP ports of either end.
    pub ports: Vec<u16>,
}

impl Filter {
    /// Every connection passes.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    fn matches(&self, connection: &Connection) -> bool {
        let ends = [connection.client, connection.server];
        let fits = |empty: bool, any: bool| empty || any;
        fits(self.numbers.is_empty(), self.numbers.contains(&connection.number))
            && fits(
                self.addresses.is_empty(),
                ends.iter().any(|e| self.addresses.contains(&e.addr)),
            )
            && fits(self.ports.is_empty(), ends.iter().any(|e| self.ports.contains(&e.port)))
    }

    /// Removes the other connections from `capture`; their number is in [`Capture::left_out`].
    pub fn apply(&self, capture: &mut Capture) {
        let all = &mut capture.analysis.connections;
        let before = all.len();
        all.retain(|connection| self.matches(connection));
        capture.left_out += (before - all.len()) as u64;
    }
}
