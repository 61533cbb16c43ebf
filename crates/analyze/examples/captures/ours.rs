//! Our analysis, by direction.

use std::collections::BTreeMap;

use lasthop_analyze::{Analysis, Connection, Direction, Endpoint};

/// A direction by the number of its connection and its sender.
pub type Key = (u32, Endpoint);

/// One direction with its connection.
#[derive(Clone, Copy)]
pub struct Ours<'a> {
    pub connection: &'a Connection,
    pub sent: &'a Direction,
    pub to: Endpoint,
    /// Whether the file has packets that were not analysed as TCP.
    pub unread: bool,
    /// Whether the file has fragments.
    pub fragments: bool,
}

/// All directions with packets.
pub fn directions(analysis: &Analysis) -> BTreeMap<Key, Ours<'_>> {
    let mut all = BTreeMap::new();
    let unread = analysis.other_packets + analysis.malformed_packets > 0;
    for connection in &analysis.connections {
        let Connection { number, client, server, to_server, to_client, .. } = connection;
        for (from, to, sent) in [(client, server, to_server), (server, client, to_client)] {
            if sent.packets + sent.copies > 0 {
                let fragments = analysis.fragments > 0;
                let ours = Ours { connection, sent, to: *to, unread, fragments };
                all.insert((*number, *from), ours);
            }
        }
    }
    all
}
