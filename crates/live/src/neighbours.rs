//! Link-layer addresses of hosts, learned from forwarded frames. With them, both neighbours receive a
//! packet of the station in a frame like one of its nominal sender.
//!
//! A packet to a host has the destination to which the hosts of the other side address their frames, as on a bridge. So
//! the station follows a gateway that fails over as soon as one of these hosts does. A gateway may receive at another
//! address than it sends from (HSRP, VRRP).

use lasthop_proto::machine::Side;
use lasthop_proto::wire::Addr;

/// Sets of the table and entries per set: at most 16384 addresses, also with forged ones.
const SETS: usize = 4096;
const WAYS: usize = 4;

/// A link-layer address and the VLAN tags of this host's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Neighbour {
    /// Link-layer address.
    pub mac: [u8; 6],
    tags: [u8; 8],
    tags_len: u8,
}

impl Neighbour {
    /// A neighbour without VLAN tags.
    pub fn untagged(mac: [u8; 6]) -> Neighbour {
        Neighbour { mac, ..Neighbour::default() }
    }

    /// The neighbour at the offset `place` of a link-layer header (addresses, tags, type), with its tags.
    fn of(link: &[u8], place: usize) -> Option<Neighbour> {
        let mut neighbour = Neighbour::untagged(link.get(place..place + 6)?.try_into().ok()?);
        let tags = link.get(12..link.len().saturating_sub(2)).unwrap_or(&[]);
        if let Some(room) = neighbour.tags.get_mut(..tags.len()) {
            room.copy_from_slice(tags);
            neighbour.tags_len = tags.len() as u8;
        }
        Some(neighbour)
    }
}

#[derive(Clone, Copy)]
struct Slot {
    /// Side of the host. A forged address from the other side does not affect this entry.
    side: Side,
    addr: Addr,
    /// Source of the host's frames.
    source: Option<Neighbour>,
    /// Destination of the last frame from the other side to the host.
    addressed: Option<Neighbour>,
    used: u64,
}

impl Slot {
    fn is(&self, side: Side, addr: Addr) -> bool {
        self.side == side && self.addr == addr
    }

    /// Whether the host has sent from this neighbour, and the other side addresses it there.
    fn is_confirmed(&self) -> bool {
        self.source.is_some() && self.addressed == self.source
    }
}

/// A bounded table. A new entry replaces the least recently used one in its set.
pub struct Neighbours {
    slots: Vec<Option<Slot>>,
    clock: u64,
    /// The latest entries of `learn` and `learn_destination`, since packets come in trains.
    last: Option<(Side, Addr, Neighbour)>,
    addressed: Option<(Side, Addr, Addr, [u8; 6], Neighbour)>,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours { slots: vec![None; SETS * WAYS], clock: 0, last: None, addressed: None }
    }
}

impl Neighbours {
    fn set(addr: Addr) -> usize {
        let bits = addr.as_v6().to_bits();
        let mixed = ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize % SETS * WAYS
    }

    /// Learns that the sender of a frame from `side` with this link-layer header (addresses, tags, type) is
    /// `addr`. A frame with a forged source address does not change the entry while frames from the other
    /// side are addressed to the known neighbour, because a bridge would deliver them there. After a move of
    /// the host, the hosts of the other side find its new link-layer address themselves.
    pub fn learn(&mut self, side: Side, addr: Addr, link: &[u8]) {
        let Some(neighbour) = Neighbour::of(link, 6) else { return };
        if self.last == Some((side, addr, neighbour)) {
            return;
        }
        let confirmed = self.slot(side, addr).filter(|slot| slot.is_confirmed());
        if confirmed.is_some_and(|slot| slot.source != Some(neighbour)) {
            return;
        }
        self.last = Some((side, addr, neighbour));
        self.insert(side, addr, neighbour);
    }

    /// Learns the destination of a frame with this link-layer header from `src` to `addr`, which is on `side`. The frame
    /// counts only if its source is the known one of `src`. Otherwise a third party of the other side could make a host
    /// unreachable by frames to wrong destinations.
    pub fn learn_destination(&mut self, side: Side, src: Addr, addr: Addr, link: &[u8]) {
        // Group addresses are no hosts.
        let Some(neighbour) = Neighbour::of(link, 0).filter(|to| to.mac[0] & 1 == 0) else {
            return;
        };
        let Some(from) = Neighbour::of(link, 6) else { return };
        let entry = (side, src, addr, from.mac, neighbour);
        if self.addressed == Some(entry) {
            return;
        }
        let source = self.slot(side.other(), src).and_then(|slot| slot.source);
        if source.is_some_and(|source| source.mac != from.mac) {
            return;
        }
        self.addressed = Some(entry);
        self.slot_or_new(side, addr).addressed = Some(neighbour);
    }

    /// Learns from an announcement of a host on `side`: an ARP packet, or a message of neighbour discovery. The hosts of
    /// the other side, to which it is forwarded, address their frames accordingly.
    pub fn announce(&mut self, side: Side, addr: Addr, mac: [u8; 6], link: &[u8]) {
        let Some(neighbour) = Neighbour::of(link, 6) else { return };
        let neighbour = Neighbour { mac, ..neighbour };
        let slot = self.slot_or_new(side, addr);
        (slot.source, slot.addressed) = (Some(neighbour), Some(neighbour));
        (self.last, self.addressed) = (None, None);
    }

    fn slot(&mut self, side: Side, addr: Addr) -> Option<&mut Slot> {
        let from = Neighbours::set(addr);
        self.slots[from..from + WAYS].iter_mut().flatten().find(|slot| slot.is(side, addr))
    }

    /// Stores the source of the frames of `addr` on `side`.
    pub fn insert(&mut self, side: Side, addr: Addr, neighbour: Neighbour) {
        self.slot_or_new(side, addr).source = Some(neighbour);
    }

    /// The slot of `addr` on `side`, which counts as used now. A new one replaces the least recently used one of its set.
    fn slot_or_new(&mut self, side: Side, addr: Addr) -> &mut Slot {
        self.clock += 1;
        let new = Slot { side, addr, source: None, addressed: None, used: self.clock };
        let from = Neighbours::set(addr);
        let set = &self.slots[from..from + WAYS];
        let known = set.iter().position(|slot| slot.is_some_and(|slot| slot.is(side, addr)));
        let oldest = (0..WAYS).min_by_key(|i| set[*i].map_or(0, |slot| slot.used)).unwrap_or(0);
        let place = &mut self.slots[from + known.unwrap_or(oldest)];
        if let Some(evicted) = place.take_if(|slot| !slot.is(side, addr)) {
            // Its next frame must store it again.
            self.last.take_if(|cached| evicted.is(cached.0, cached.1));
            self.addressed.take_if(|cached| evicted.is(cached.0, cached.2));
        }
        let slot = place.get_or_insert(new);
        slot.used = self.clock;
        slot
    }

    fn find(&mut self, side: Side, addr: Addr) -> Option<&Slot> {
        self.clock += 1;
        let clock = self.clock;
        let slot = self.slot(side, addr)?;
        slot.used = clock;
        Some(slot)
    }

    /// The link-layer header of a frame from `src` to `dst`, which is on `side`; `None` if one of them is
    /// unknown. The tags are those of the destination's link.
    pub fn link_header(&mut self, side: Side, src: Addr, dst: Addr) -> Option<Vec<u8>> {
        let from = self.find(side.other(), src).and_then(|slot| slot.source.or(slot.addressed))?;
        let to = self.find(side, dst).and_then(|slot| slot.addressed.or(slot.source))?;
        let mut link = Vec::with_capacity(22);
        link.extend_from_slice(&to.mac);
        link.extend_from_slice(&from.mac);
        link.extend_from_slice(&to.tags[..usize::from(to.tags_len)]);
        link.extend_from_slice(&if src.is_v4() { [0x08, 0x00] } else { [0x86, 0xdd] });
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Addr = Addr::v4(10, 0, 0, 1);
    const B: Addr = Addr::v4(10, 1, 0, 1);

    #[test]
    fn a_link_header_combines_the_frames_of_both_hosts() {
        let mut table = Neighbours::default();
        table.learn(Side::Left, A, &[2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        assert_eq!(table.link_header(Side::Right, A, B), None);
        let tagged = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x81, 0, 0, 7, 8, 0];
        table.learn(Side::Right, B, &tagged);
        let link = table.link_header(Side::Right, A, B).unwrap();
        assert_eq!(link, [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0x81, 0, 0, 7, 8, 0]);
    }

    #[test]
    fn a_forger_on_one_side_does_not_move_a_host_of_the_other() {
        let mut table = Neighbours::default();
        table.learn(Side::Left, A, &[2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        table.learn(Side::Right, B, &[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
        let before = table.link_header(Side::Right, A, B);
        table.learn(Side::Left, B, &[6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 8, 0]);
        assert_eq!(table.link_header(Side::Right, A, B), before);
    }

    #[test]
    fn an_unseen_host_is_learned_from_frames_to_it() {
        let mut table = Neighbours::default();
        let to = |table: &mut Neighbours| {
            table.link_header(Side::Right, A, B).map(|link| link[..6].to_vec())
        };
        let first = [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0];
        table.learn(Side::Left, A, &first);
        table.learn_destination(Side::Right, A, B, &first);
        assert_eq!(to(&mut table), Some(vec![2; 6]));
        // A later frame replaces the entry; a group address and a frame of a third party do not.
        table.learn_destination(Side::Right, A, B, &[4, 4, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 8, 0]);
        table.learn_destination(Side::Right, A, B, &[0xff, 5, 5, 5, 5, 5, 1, 1, 1, 1, 1, 1, 8, 0]);
        table.learn_destination(Side::Right, A, B, &[6, 6, 6, 6, 6, 6, 9, 9, 9, 9, 9, 9, 8, 0]);
        assert_eq!(to(&mut table), Some(vec![4; 6]));
    }

    /// A router sends from its own address and receives at the virtual one of its group.
    #[test]
    fn a_host_is_addressed_as_the_other_side_addresses_it() {
        let mut table = Neighbours::default();
        let link = |to: u8, from: u8| [&[to; 6][..], &[from; 6], &[8, 0]].concat();
        table.learn(Side::Left, A, &link(9, 1));
        table.learn(Side::Right, B, &link(1, 4));
        table.learn_destination(Side::Right, A, B, &link(8, 1));
        assert_eq!(table.link_header(Side::Right, A, B), Some(link(8, 1)));
        assert_eq!(table.link_header(Side::Left, B, A), Some(link(1, 4)));
        // Its standby router takes over, without a change for the hosts of the other side.
        table.learn(Side::Right, B, &link(1, 5));
        assert_eq!(table.link_header(Side::Right, A, B), Some(link(8, 1)));
        assert_eq!(table.link_header(Side::Left, B, A), Some(link(1, 5)));
    }

    /// A gateway without a virtual address: its hosts learn the new one by ARP.
    #[test]
    fn an_announcement_moves_a_host_at_once() {
        let mut table = Neighbours::default();
        let link = |to: u8, from: u8| [&[to; 6][..], &[from; 6], &[8, 0]].concat();
        table.learn(Side::Left, A, &link(4, 1));
        table.learn(Side::Right, B, &link(1, 4));
        table.learn_destination(Side::Right, A, B, &link(4, 1));
        table.announce(Side::Right, B, [6; 6], &link(0xff, 6));
        assert_eq!(table.link_header(Side::Right, A, B), Some(link(6, 1)));
        // A frame to the old address was under way.
        table.learn_destination(Side::Right, A, B, &link(4, 1));
        table.learn_destination(Side::Right, A, B, &link(6, 1));
        assert_eq!(table.link_header(Side::Right, A, B), Some(link(6, 1)));
        // The announcement of the other side concerns another host.
        table.announce(Side::Left, B, [7; 6], &link(0xff, 7));
        assert_eq!(table.link_header(Side::Right, A, B), Some(link(6, 1)));
    }

    /// A third party on the side of the host forges its address. A host that has moved sends from another
    /// link-layer address as well, and then the hosts of the other side address it there.
    #[test]
    fn a_forger_on_the_side_of_a_host_does_not_move_it() {
        let mut table = Neighbours::default();
        let to = |table: &mut Neighbours| {
            table.link_header(Side::Right, A, B).map(|link| link[..6].to_vec())
        };
        let link = |to: u8, from: u8| [&[to; 6][..], &[from; 6], &[8, 0]].concat();
        let (from, towards) = (|mac| link(1, mac), |mac| link(mac, 1));
        table.learn(Side::Left, A, &from(1));
        table.learn_destination(Side::Right, A, B, &towards(4));
        table.learn(Side::Right, B, &from(4));
        for _ in 0..2 {
            table.learn(Side::Right, B, &from(6));
            assert_eq!(to(&mut table), Some(vec![4; 6]), "forged");
            table.learn(Side::Right, B, &from(4));
        }
        // A tag moves it no more than an address.
        table.learn(Side::Right, B, &[1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 4, 4, 0x81, 0, 0, 9, 8, 0]);
        assert_eq!(table.link_header(Side::Right, A, B).map(|link| link.len()), Some(14));
        table.learn(Side::Right, B, &from(10));
        assert_eq!(to(&mut table), Some(vec![4; 6]), "no frame was addressed there yet");
        table.learn_destination(Side::Right, A, B, &towards(10));
        assert_eq!(to(&mut table), Some(vec![10; 6]), "it has moved");
        table.learn(Side::Right, B, &from(10));
        table.learn(Side::Right, B, &from(4));
        let source = table.link_header(Side::Left, B, A).map(|link| link[6..12].to_vec());
        assert_eq!(source, Some(vec![10; 6]));
    }

    /// Addresses of one network differ in a few bits only, at either end of the address.
    #[test]
    fn hosts_of_a_network_spread_without_overfilling_a_set() {
        let v6 = |high: u128, low: u128| {
            let bits = 0x2001_0db8 << 96 | high << 64 | low;
            Addr::from(core::net::IpAddr::from(core::net::Ipv6Addr::from(bits)))
        };
        type Numbered<'a> = (&'static str, &'a dyn Fn(u32) -> Addr);
        let networks: [Numbered<'_>; 3] = [
            ("10.0.0.0/20", &|n| Addr::v4(10, 0, (n >> 8) as u8, n as u8)),
            ("hosts of one network", &|n| v6(7, n.into())),
            ("networks of one host each", &|n| v6(n.into(), 1)),
        ];
        for (name, host) in networks {
            let mut taken = vec![0; SETS];
            for n in 0..SETS as u32 {
                let first = Neighbours::set(host(n));
                assert_eq!(first % WAYS, 0, "{name}: each begins a set");
                taken[first / WAYS] += 1;
            }
            let used = taken.iter().filter(|count| **count > 0).count();
            assert!(used > SETS / 2, "{name}: {used} of {SETS} sets");
            let most = taken.iter().max().copied();
            assert!(most <= Some(WAYS), "{name}: {most:?} in a set");
        }
    }

    #[test]
    fn a_full_set_evicts_the_least_recently_used_neighbour() {
        let first = Neighbours::set(A);
        let rivals = (0..u32::MAX).map(|n| {
            let [a, b, c, d] = n.to_be_bytes();
            Addr::v4(a, b, c, d)
        });
        let same = |addr: &Addr| *addr != A && Neighbours::set(*addr) == first;
        let rivals: Vec<Addr> = rivals.filter(same).take(WAYS).collect();
        let link = [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0];
        let mut table = Neighbours::default();
        table.learn(Side::Right, B, &link);
        table.learn(Side::Left, A, &link);
        for rival in &rivals[..WAYS - 1] {
            table.learn(Side::Left, *rival, &link);
        }
        let knows =
            |table: &mut Neighbours, addr: Addr| table.link_header(Side::Right, addr, B).is_some();
        // All fit. A sends once more, so the first rival is the least recently used.
        for addr in [&[A], &rivals[..WAYS - 1]].concat() {
            assert!(knows(&mut table, addr), "{addr}");
        }
        table.learn(Side::Left, A, &link);
        table.learn(Side::Left, rivals[WAYS - 1], &link);
        assert!(knows(&mut table, A) && knows(&mut table, rivals[WAYS - 1]));
        let left = rivals.iter().filter(|rival| knows(&mut table, **rival)).count();
        assert_eq!(left, WAYS - 1, "one had to go");
    }

    /// A third party evicts a host by addresses of the same set. The next frame to the host or from it stores
    /// it again, although it equals the last one.
    #[test]
    fn an_evicted_host_is_stored_again_by_its_next_frame() {
        let link = [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 8, 0];
        for has_sent in [false, true] {
            let mut table = Neighbours::default();
            let restore = |table: &mut Neighbours| match has_sent {
                true => table.learn(Side::Right, B, &link),
                false => table.learn_destination(Side::Right, A, B, &link),
            };
            table.learn(Side::Left, A, &link);
            restore(&mut table);
            let rivals = (0..u32::MAX).map(|n| {
                let [a, b, c, d] = n.to_be_bytes();
                Addr::v4(a, b, c, d)
            });
            let of_b = |addr: &Addr| Neighbours::set(*addr) == Neighbours::set(B);
            let same = |addr: &Addr| ![A, B].contains(addr) && of_b(addr);
            for rival in rivals.filter(same).take(WAYS) {
                table.insert(Side::Left, rival, Neighbour::untagged([6; 6]));
            }
            assert_eq!(table.link_header(Side::Right, A, B), None, "has sent: {has_sent}");
            restore(&mut table);
            assert!(table.link_header(Side::Right, A, B).is_some(), "has sent: {has_sent}");
        }
    }

    #[test]
    fn a_flood_of_addresses_takes_no_more_room() {
        let mut table = Neighbours::default();
        let link = [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0];
        table.learn(Side::Right, B, &link);
        for n in 0..200_000u32 {
            let [_, b, c, d] = n.to_be_bytes();
            table.learn(Side::Left, Addr::v4(10, b, c, d), &link);
        }
        assert_eq!(table.slots.len(), SETS * WAYS);
        table.learn(Side::Right, B, &link);
        assert!(table.link_header(Side::Right, Addr::v4(10, 3, 13, 63), B).is_some());
    }
}
