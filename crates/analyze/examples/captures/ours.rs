//! Our analysis, by direction.

use std::collections::BTreeMap;

use lasthop_analyze::{Analysis, Connection, Direction, Endpoint};
use lasthop_observe::capture::Reason;

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
    /// Whether some of them were not reassembled.
    pub incomplete: bool,
    /// Packets in the file.
    pub file: u64,
}

/// Whether packets were not read for a reason of this kind.
pub fn is_unread(analysis: &Analysis, kind: impl Fn(&Reason) -> bool) -> bool {
    analysis.unread.iter().any(|unread| kind(&unread.reason))
}

/// All directions with packets.
pub fn directions(analysis: &Analysis) -> BTreeMap<Key, Ours<'_>> {
    let mut all = BTreeMap::new();
    let unread = analysis.other_packets + analysis.malformed_packets > 0;
    let incomplete = is_unread(analysis, |reason| {
        matches!(reason, Reason::IncompleteFragments | Reason::OverlappingFragments)
    });
    let fragments = analysis.fragments > 0 || incomplete;
    for connection in &analysis.connections {
        let Connection { number, client, server, to_server, to_client, .. } = connection;
        for (from, to, sent) in [(client, server, to_server), (server, client, to_client)] {
            if sent.packets + sent.copies > 0 {
                let (to, file) = (*to, analysis.packets);
                let ours = Ours { connection, sent, to, unread, fragments, incomplete, file };
                all.insert((*number, *from), ours);
            }
        }
    }
    all
}
