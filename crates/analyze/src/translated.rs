//! Connections of one capture that are the same connection on both sides of address translation.

use std::collections::BTreeMap;

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Seq};

use crate::connection::Conn;
use crate::finding::Diagnosis;
use crate::reading::{Closing, Connection, Opening};

/// Maximum time from one side of a translation to the other.
const WITHIN: Span = Span::secs(1);

/// Maximum number of hops of the translating host.
const HOPS: u8 = 2;

/// Maximum distance of a stray segment from the data of its connection: the largest usual window.
const NEAR: u64 = 4 << 20;

/// Ends and sequence numbers of a connection. The first end sent the first packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) ends: [(Addr, u16); 2],
    /// Initial sequence number of each end whose SYN was captured.
    pub(crate) initial: [Option<Seq>; 2],
    /// First sequence number of each end.
    pub(crate) first: [Option<Seq>; 2],
    /// IPv4 identification and hops left of the first packet.
    pub(crate) identified: (Option<u16>, u8),
    pub(crate) began: Time,
    pub(crate) ended: Time,
}

impl Numbers {
    /// Whether both are one connection on two sides of a host that forwards it. Scripts that write captures use the same
    /// sequence numbers for all connections.
    fn is_forwarded(&self, other: &Numbers) -> bool {
        let ((id, ttl), (other_id, other_ttl)) = (self.identified, other.identified);
        let hops = ttl.abs_diff(other_ttl);
        self.ends != other.ends
            && self.began.since(other.began) <= WITHIN
            && id == other_id
            && (1..=HOPS).contains(&hops)
    }
}

/// Connections by both initial sequence numbers, and by each of their ends.
#[derive(Debug, Default)]
pub(crate) struct Translations {
    all: Vec<Numbers>,
    by_initial: BTreeMap<(u32, u32), usize>,
    by_end: BTreeMap<(Addr, u16), Vec<usize>>,
}

/// Maximum number of connections with one end that are compared with a stray segment.
const COMPARED: usize = 16;

impl Translations {
    pub(crate) fn add(&mut self, connection: &Conn) {
        let numbers = connection.numbers();
        let index = self.all.len();
        self.all.push(numbers);
        if let [Some(a), Some(b)] = numbers.initial {
            self.by_initial.entry((a.0.min(b.0), a.0.max(b.0))).or_insert(index);
            for end in numbers.ends {
                let of = self.by_end.entry(end).or_default();
                if of.len() < COMPARED {
                    of.push(index);
                }
            }
        }
    }

    /// Records that connection `index` of `connections` is another one behind a translation, or has stray packets of one.
    pub(crate) fn report(&self, index: usize, connections: &mut [Connection]) {
        let own = self.all[index];
        if let [Some(a), Some(b)] = own.initial {
            let original = self.by_initial.get(&(a.0.min(b.0), a.0.max(b.0))).copied();
            let original = original.filter(|&other| own.is_forwarded(&self.all[other]));
            connections[index].translated = original.map(|other| connections[other].number);
            return;
        }
        // The other end knows no such connection, so it answers by a reset.
        let Connection { opening, closing, .. } = connections[index];
        if opening != Opening::MidConnection || closing != Closing::Reset {
            return;
        }
        for (side, end) in own.ends.iter().enumerate() {
            let Some(seq) = own.first[1 - side] else { continue };
            let mut of = self.by_end.get(end).into_iter().flatten().copied();
            let is_of = |&other: &usize| {
                let numbers = self.all[other];
                let server = usize::from(numbers.ends[0] == *end);
                let connection = &connections[other];
                let sent = [&connection.to_server, &connection.to_client];
                let bytes = sent.iter().map(|direction| direction.unique_bytes).max().unwrap_or(0);
                let initial = numbers.initial[server];
                let behind =
                    initial.map_or(u64::MAX, |initial| seq.0.wrapping_sub(initial.0).into());
                let meanwhile = numbers.began <= own.began && own.began <= numbers.ended;
                numbers.ends[server] != own.ends[1 - side]
                    && meanwhile
                    && behind <= bytes.saturating_add(NEAR)
            };
            if let Some(other) = of.find(is_of) {
                let of = connections[other].number;
                let Connection { client, to_server, to_client, .. } = &mut connections[index];
                let (addr, port) = own.ends[1 - side];
                let by_client = (client.addr, client.port) == (addr.ip(), port);
                let data = if by_client { to_server } else { to_client };
                data.diagnoses.push(Diagnosis::untranslated(
                    of,
                    (addr.ip(), port).into(),
                    data.packets,
                ));
                return;
            }
        }
    }
}
