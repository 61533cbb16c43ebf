//! Bounds of the memory of all connections of a capture together.

use lasthop_proto::units::Time;

use crate::config::Config;
use crate::connection::Conn;

/// Packets between two checks. Each adds a few entries.
const BETWEEN: u64 = 1 << 16;

/// Minimum limit of a list.
const LEAST: usize = 16;

/// Maximum number of state entries for packets in flight, of all connections: at most 200 MB.
const PENDING: usize = 4 << 20;

/// Compares the memory of all connections with its bounds from time to time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    packets: u64,
}

impl Memory {
    /// Counts the next packet. If all lists together are too long, the longest ones are shortened, and `config` has
    /// the new limit. If all state together is too large, the state of the half of the connections that was silent
    /// longest is freed.
    #[inline]
    pub(crate) fn packet(&mut self, config: &mut Config, connections: &mut [Conn]) {
        self.packets += 1;
        if self.packets.is_multiple_of(BETWEEN) {
            check(config, connections);
        }
    }
}

#[cold]
fn check(config: &mut Config, connections: &mut [Conn]) {
    while connections.iter().map(Conn::listed).sum::<usize>() > config.listed {
        let most = config.points.max(config.losses) / 2;
        if most < LEAST {
            break;
        }
        (config.points, config.losses) = (config.points.min(most), config.losses.min(most));
        connections.iter_mut().for_each(|connection| connection.shorten(most));
    }
    if connections.iter().map(Conn::pending).sum::<usize>() > PENDING {
        let mut ends: Vec<Time> = connections.iter().map(|connection| connection.ended).collect();
        let (_, median, _) = ends.select_nth_unstable(connections.len() / 2);
        let silent = connections.iter_mut().filter(|connection| connection.ended <= *median);
        silent.for_each(Conn::release);
    }
}
