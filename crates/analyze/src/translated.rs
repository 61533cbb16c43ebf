//! Connections of one capture that are one connection on two sides of a host: of address translation, or of a PEP or proxy
//! that splits it.

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

/// Minimum share of the bytes of one half of a closed connection in those of the other half.
const ALMOST: (u64, u64) = (9, 10);

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
    pub(crate) first_bytes: [Option<FirstBytes>; 2],
    /// IPv4 identification and hops left of the first packet.
    pub(crate) identified: (Option<u16>, u8),
    pub(crate) began: Time,
    pub(crate) ended: Time,
}

/// The first bytes of a direction: their hash, and when they were captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstBytes {
    pub(crate) hash: u64,
    pub(crate) at: Time,
}

impl Numbers {
    /// Whether both are one connection on two sides of a host that forwards it. Scripts that write captures use the same
    /// sequence numbers for all connections.
    fn is_forwarded(&self, other: &Numbers) -> bool {
        let ((id, ttl), (other_id, other_ttl)) = (self.identified, other.identified);
        let hops = ttl.abs_diff(other_ttl);
        self.ends != other.ends
            && self.began.since(other.began) <= WITHIN
            && (id == other_id || self.hashes() == other.hashes() && self.hashes() != [None; 2])
            && (1..=HOPS).contains(&hops)
    }

    /// Hashes of the first bytes of both directions.
    fn hashes(&self) -> [Option<u64>; 2] {
        self.first_bytes.map(|bytes| Some(bytes?.hash))
    }

    /// Whether this is the second half of the connection `other`, which a host has split: it opens this half while the other
    /// one is open, and the first bytes pass it in the order of their way.
    fn is_behind(&self, other: &Numbers) -> bool {
        let [Some(own), Some(back)] = self.first_bytes else { return false };
        let [Some(first), Some(last)] = other.first_bytes else { return false };
        let inside = other.began <= self.began && self.began <= other.ended;
        inside && first.at <= own.at && back.at <= last.at && self.initial != other.initial
    }
}

/// Whether both connections have the same number of bytes in each direction, as far as they were captured.
fn have_equal_bytes(a: &Connection, b: &Connection) -> bool {
    let almost = |of: fn(&Connection) -> u64| {
        let (a, b) = (of(a), of(b));
        a.min(b) * ALMOST.1 >= a.max(b) * ALMOST.0
    };
    let closed = a.closing == Closing::Fin && b.closing == Closing::Fin;
    !closed || almost(|c| c.to_server.unique_bytes) && almost(|c| c.to_client.unique_bytes)
}

/// Connections by both initial sequence numbers, and by each of their ends.
#[derive(Debug, Default)]
pub(crate) struct Translations {
    all: Vec<Numbers>,
    by_first: BTreeMap<(u32, u32), usize>,
    /// The first connection with these bytes, and the number of all.
    by_bytes: BTreeMap<[u64; 2], (usize, u32)>,
    /// Made for the first stray segment.
    by_end: Option<BTreeMap<(Addr, u16), Vec<usize>>>,
}

/// Maximum number of connections with one end that are compared with a stray segment.
const COMPARED: usize = 16;

impl Translations {
    pub(crate) fn add(&mut self, connection: &Conn) {
        let numbers = connection.numbers();
        let index = self.all.len();
        self.all.push(numbers);
        if let [Some(a), Some(b)] = numbers.first {
            self.by_first.entry((a.0.min(b.0), a.0.max(b.0))).or_insert(index);
        }
        if let [Some(a), Some(b)] = numbers.hashes() {
            self.by_bytes.entry([a, b]).or_insert((index, 0)).1 += 1;
        }
    }

    /// Connections with a captured handshake by their ends, at most [`COMPARED`] of each.
    fn by_end(all: &[Numbers]) -> BTreeMap<(Addr, u16), Vec<usize>> {
        let mut by_end: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let opened =
            all.iter().enumerate().filter(|(_, of)| of.initial.iter().all(Option::is_some));
        for (index, end) in opened.flat_map(|(index, of)| of.ends.map(|end| (index, end))) {
            let of = by_end.entry(end).or_default();
            if of.len() < COMPARED {
                of.push(index);
            }
        }
        by_end
    }

    /// Records that connection `index` of `connections` is another one behind a translation, or has stray packets of one.
    pub(crate) fn report(&mut self, index: usize, connections: &mut [Connection]) {
        let own = self.all[index];
        if let [Some(a), Some(b)] = own.first {
            let original = self.by_first.get(&(a.0.min(b.0), a.0.max(b.0))).copied();
            let original = original.filter(|&other| own.is_forwarded(&self.all[other]));
            connections[index].translated = original.map(|other| connections[other].number);
            if original.is_some() {
                return;
            }
        }
        if let [Some(_), Some(_)] = own.initial {
            // Equal bytes of more connections are those of equal requests.
            let [a, b] = own.hashes();
            let equal = a.zip(b).and_then(|(a, b)| self.by_bytes.get(&[a, b]));
            let first = equal.filter(|(first, all)| *first != index && *all == 2);
            let first = first.map(|(first, _)| *first).filter(|&first| {
                own.is_behind(&self.all[first])
                    && have_equal_bytes(&connections[index], &connections[first])
            });
            let half = first.map(|first| connections[first].number);
            connections[index].half = connections[index].half.or(half);
            return;
        }
        // The other end knows no such connection, so it answers by a reset.
        let Connection { opening, closing, .. } = connections[index];
        if opening != Opening::MidConnection || closing != Closing::Reset {
            return;
        }
        let by_end = self.by_end.get_or_insert_with(|| Translations::by_end(&self.all));
        for (side, end) in own.ends.iter().enumerate() {
            let Some(seq) = own.first[1 - side] else { continue };
            let mut of = by_end.get(end).into_iter().flatten().copied();
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
