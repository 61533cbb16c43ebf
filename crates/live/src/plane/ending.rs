//! The list of connections that end at the station, for the program in the kernel: `struct ending` of `bpf/shared.h`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;
use std::io;

use lasthop_proto::agent::Bypass;
use lasthop_proto::wire::{Addr, FlowKey, Seq};

use crate::sys::bpf::Table;

/// The name of the map, by which the next station finds it.
pub(super) const NAME: &str = "lasthop_endings";

/// Limit of connections. The map uses memory only for existing ones.
pub(super) const MOST: u32 = 1 << 20;

const KEY: usize = 36;
pub(super) const VALUE: usize = 80;

/// Space for a link header after its length: addresses, two tags, type.
const LINK: usize = 24;

pub(super) type Key = [u8; KEY];
pub(super) type Map = Table<KEY, VALUE>;

/// `struct flow` of the connection whose flow from left to right is `flow`.
pub(super) fn key(flow: FlowKey) -> Key {
    let mut key = [0; KEY];
    for (at, addr) in [(0, flow.dst), (16, flow.src)] {
        match addr.ip() {
            IpAddr::V4(ip) => key[at..at + 4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => key[at..at + 16].copy_from_slice(&ip.octets()),
        }
    }
    key[32..34].copy_from_slice(&flow.dst_port.to_be_bytes());
    key[34..36].copy_from_slice(&flow.src_port.to_be_bytes());
    key
}

/// The flow from left to right of a key, whose addresses are of IPv4 if `is_v4`.
fn flow(key: &Key, is_v4: bool) -> FlowKey {
    let addr = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&key[at..at + 16]);
        match bytes {
            [a, b, c, d, ..] if is_v4 => Addr::from(IpAddr::V4(Ipv4Addr::new(a, b, c, d))),
            _ => Addr::from(IpAddr::V6(Ipv6Addr::from(bytes))),
        }
    };
    let port = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    FlowKey { src: addr(16), dst: addr(0), src_port: port(34), dst_port: port(32) }
}

/// `struct ending`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    /// The last acknowledgement number of each end, which it expects next.
    pub next: [Option<Seq>; 2],
    /// Whether its ends are reset.
    pub is_lost: bool,
    /// Whether its ends can continue without the station.
    pub resumes: bool,
    /// The link headers of packets to each end; empty where unknown.
    pub links: [Vec<u8>; 2],
}

impl Entry {
    pub fn read(value: &[u8; VALUE]) -> Entry {
        let word = |at: usize| {
            Seq(u32::from_ne_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]))
        };
        let link = |at: usize| {
            let len = usize::from(value[at]);
            value[at..at + LINK].get(1..=len).unwrap_or(&[]).to_vec()
        };
        Entry {
            next: [0, 1].map(|i| (value[12] & 1 << i != 0).then(|| word(4 * i))),
            is_lost: value[13] != 0,
            resumes: value[15] != 0,
            links: [16, 16 + LINK].map(link),
        }
    }

    pub fn write(&self) -> [u8; VALUE] {
        let mut value = [0; VALUE];
        for (i, next) in self.next.iter().enumerate() {
            if let Some(next) = next {
                value[4 * i..4 * i + 4].copy_from_slice(&next.0.to_ne_bytes());
                value[12] |= 1 << i;
            }
        }
        value[13] = self.is_lost.into();
        value[15] = self.resumes.into();
        for (at, link) in [16, 16 + LINK].into_iter().zip(&self.links) {
            if link.len() < LINK {
                value[at] = link.len() as u8;
                value[at + 1..=at + link.len()].copy_from_slice(link);
            }
        }
        value
    }

    /// The flow from left to right of the connection with this entry.
    pub fn flow(&self, key: &Key) -> FlowKey {
        let is_v4 = |link: &Vec<u8>| link.ends_with(&[8, 0]);
        flow(key, self.links.iter().any(is_v4))
    }
}

/// The entries of this station.
#[derive(Debug)]
pub(super) struct Endings {
    pub map: Map,
    /// The flows from left to right of all present entries.
    known: BTreeSet<FlowKey>,
}

impl Endings {
    pub fn new(map: Map) -> Endings {
        Endings { map, known: BTreeSet::new() }
    }

    /// Whether the connection of `flow` (from left to right) is listed, so that its packets wait for the station for longer.
    pub fn has(&self, flow: FlowKey) -> bool {
        self.known.contains(&flow)
    }

    /// Adds a connection that ends here. Packets to its ends have these link headers.
    pub fn add(&mut self, flow: FlowKey, resumes: bool, links: [Vec<u8>; 2]) -> io::Result<()> {
        let entry = Entry { resumes, links, ..Entry::default() };
        self.map.insert(&key(flow), &entry.write())?;
        self.known.insert(flow);
        Ok(())
    }

    pub fn remove(&mut self, flow: FlowKey) {
        if self.known.remove(&flow) {
            self.map.remove(&key(flow));
        }
    }

    /// Removes all connections but `flows`.
    pub fn retain(&mut self, flows: &BTreeSet<FlowKey>) {
        let gone: Vec<FlowKey> = self.known.difference(flows).copied().collect();
        gone.into_iter().for_each(|flow| self.remove(flow));
    }

    /// The connections that the program has reset or removed.
    pub fn lost(&self) -> Vec<(FlowKey, Bypass)> {
        let bypass = |flow: &FlowKey| match self.map.get(&key(*flow)) {
            None => Some(Bypass::Reopened),
            Some(value) => Entry::read(&value).is_lost.then_some(Bypass::Lost),
        };
        self.known.iter().filter_map(|flow| Some((*flow, bypass(flow)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows() -> [FlowKey; 2] {
        let v6 = |n: u16| Addr::from(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n)));
        let hosts = [[Addr::v4(10, 1, 2, 3), Addr::v4(10, 4, 5, 6)], [v6(1), v6(2)]];
        hosts.map(|[src, dst]| FlowKey { src, dst, src_port: 1234, dst_port: 80 })
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let links = [vec![7; 14], [[3; 20].as_slice(), &[8, 0]].concat()];
        for next in [[None; 2], [Some(Seq(5)), None], [Some(Seq(u32::MAX)), Some(Seq(0))]] {
            for (is_lost, resumes) in [(false, false), (true, false), (false, true)] {
                let entry = Entry { next, is_lost, resumes, links: links.clone() };
                assert_eq!(Entry::read(&entry.write()), entry);
            }
        }
        // A program of another version may leave a header that is longer than its field.
        let long = Entry { links: [vec![1; 24], vec![]], ..Entry::default() };
        assert_eq!(Entry::read(&long.write()), Entry::default());
        let mut value = Entry::default().write();
        value[16] = 200;
        assert!(Entry::read(&value).links.iter().all(Vec::is_empty));
    }

    #[test]
    fn a_flow_is_found_again_by_its_key() {
        let [v4, v6] = flows();
        for (flow, kind) in [(v4, [8, 0]), (v6, [0x86, 0xdd])] {
            let links = [[[1; 12].as_slice(), &kind].concat(), vec![]];
            let entry = Entry { links, ..Entry::default() };
            assert_eq!(entry.flow(&key(flow)), flow);
            assert_ne!(key(flow), key(flow.reversed()));
        }
    }

    /// If the map fails, no connection counts as one that ends here.
    #[test]
    fn a_failed_map_insert_registers_no_connection() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut endings = Endings::new(Map::from(std::os::fd::OwnedFd::from(file)));
        let [flow, _] = flows();
        assert!(endings.add(flow, false, [vec![], vec![]]).is_err());
        assert!(!endings.has(flow) && endings.lost().is_empty());
    }
}
