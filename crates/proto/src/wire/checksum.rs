//! The Internet checksum, computed in wide words.
//!
//! RFC 1071 defines the checksum as the ones' complement sum of 16-bit words. Addition in ones' complement
//! is associative and byte-order independent (RFC 1071 section 2), so 32-bit words are added into 64-bit
//! lanes, which compilers turn into vector code, and the carries are folded once at the end.

pub mod reference;

use core::net::{Ipv4Addr, Ipv6Addr};

use super::Addr;

/// A running ones' complement sum over pieces of any length and alignment.
///
/// ```
/// use lasthop_proto::wire::checksum::Sum;
/// let mut sum = Sum::default();
/// sum.bytes(&[0x00, 0x01, 0xf2]); // the pieces need not be even
/// sum.bytes(&[0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.fold(), 0xddf2); // the example of RFC 1071 section 3
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of big-endian 16-bit words, with room for the carries of 2^48 of them.
    total: u64,
    /// Whether an odd number of bytes was added: the next byte is the low half of a word.
    odd: bool,
}

impl Sum {
    /// Adds `bytes` as the direct continuation of the bytes added before.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let sum = sum_be(bytes);
        //= rfc1071#section-2: a byte-swapped sum is the sum of byte-swapped words
        let sum = if self.odd { sum.swap_bytes() } else { sum };
        self.total += u64::from(sum);
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Copies `from` to `to` and adds it in one pass: each byte is read once.
    ///
    /// # Panics
    /// If the lengths differ.
    //= agarwal00#3.3: a combined checksum and copy
    pub fn copy(&mut self, from: &[u8], to: &mut [u8]) {
        let sum = copy_be(from, to);
        let sum = if self.odd { sum.swap_bytes() } else { sum };
        self.total += u64::from(sum);
        self.odd ^= from.len() % 2 == 1;
    }

    /// Adds one 16-bit field; only between whole words.
    pub fn word(&mut self, word: u16) {
        debug_assert!(!self.odd, "a field cannot begin within a word");
        self.total += u64::from(word);
    }

    /// Adds one 32-bit field; only between whole words.
    pub fn long(&mut self, long: u32) {
        self.word((long >> 16) as u16);
        self.word(long as u16);
    }

    /// Adds the pseudo-header of a transport packet of `len` bytes, for the address family of `src`.
    //= rfc9293#section-3.1: the TCP checksum covers addresses, protocol and length of the IP layer
    //= rfc8200#section-8.1: so it does on IPv6, where the length has 32 bits
    pub fn pseudo_header(&mut self, src: Addr, dst: Addr, protocol: u8, len: u32) {
        if let (Some(src), Some(dst)) = (src.as_v4(), dst.as_v4()) {
            self.long(src.to_bits());
            self.long(dst.to_bits());
        } else {
            for half in [src.as_v6().to_bits(), dst.as_v6().to_bits()] {
                (0..4).for_each(|i| self.long((half >> (32 * i)) as u32));
            }
        }
        self.word(u16::from(protocol));
        self.long(len);
    }

    /// The sum so far, folded to 16 bits. Zero only if every word was zero.
    pub fn fold(self) -> u16 {
        fold(self.total)
    }

    /// Value of the checksum field: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Whether a sum that includes the checksum field indicates an undamaged packet.
    //= rfc1071#section-1: the sum over data and checksum is all ones
    pub fn verifies(self) -> bool {
        self.fold() == 0xffff
    }
}

/// The checksum of `bytes`; an odd last byte counts as the high half of a word.
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum_be(bytes)
}

/// The checksum after one 16-bit word of the data changed from `old` to `new`.
///
/// Exact unless data and checksum are all zero, which no packet with addresses is.
//= rfc1624#section-3: HC' = ~(~HC + ~m + m'), which unlike RFC 1141 never turns a sum of ones to zero
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

fn fold(mut total: u64) -> u16 {
    total = (total >> 32) + (total & 0xffff_ffff);
    total = (total >> 16) + (total & 0xffff);
    total = (total >> 16) + (total & 0xffff);
    total = (total >> 16) + (total & 0xffff);
    total as u16
}

/// Words that are added in parallel, so that no addition waits for another.
const LANES: usize = 8;
/// Bytes of one round over all lanes.
const WIDE: usize = 4 * LANES;

/// A word in native byte order: sums are swapped once, at the end.
#[inline(always)]
fn word(bytes: [u8; 4]) -> u64 {
    u64::from(u32::from_ne_bytes(bytes))
}

// Arrays of known length and no iterators over them: compilers then vectorise in any profile.
#[inline(always)]
fn add_wide(lanes: &mut [u64; LANES], bytes: &[u8; WIDE]) {
    for i in 0..LANES {
        lanes[i] += word([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
    }
}

/// The folded sum of the lanes and of the remaining bytes.
#[inline(always)]
fn finish(lanes: [u64; LANES], mut rest: &[u8]) -> u16 {
    let mut total = 0;
    for lane in lanes {
        total += lane;
    }
    while let Some((four, more)) = rest.split_first_chunk() {
        total += word(*four);
        rest = more;
    }
    if !rest.is_empty() {
        let mut padded = [0u8; 4];
        padded[..rest.len()].copy_from_slice(rest);
        total += word(padded);
    }
    u16::from_be(fold(total))
}

/// The folded sum of `bytes` as big-endian words.
fn sum_be(mut bytes: &[u8]) -> u16 {
    let mut lanes = [0u64; LANES];
    while let Some((wide, more)) = bytes.split_first_chunk() {
        add_wide(&mut lanes, wide);
        bytes = more;
    }
    finish(lanes, bytes)
}

/// Like [`sum_be`], and copies the bytes to `to`.
fn copy_be(from: &[u8], to: &mut [u8]) -> u16 {
    assert_eq!(from.len(), to.len(), "a copy has the length of its original");
    let mut lanes = [0u64; LANES];
    let whole = from.len() - from.len() % WIDE;
    let ((mut from, rest), (mut to, room)) = (from.split_at(whole), to.split_at_mut(whole));
    room.copy_from_slice(rest);
    while let Some((wide, more)) = from.split_first_chunk() {
        let Some((copy, room)) = to.split_first_chunk_mut::<WIDE>() else { break };
        *copy = *wide;
        add_wide(&mut lanes, wide);
        (from, to) = (more, room);
    }
    finish(lanes, rest)
}

impl Addr {
    /// The address as IPv4, if it is one.
    pub fn as_v4(self) -> Option<Ipv4Addr> {
        match self.ip() {
            core::net::IpAddr::V4(v4) => Some(v4),
            core::net::IpAddr::V6(_) => None,
        }
    }

    /// The address as IPv6; IPv4 in its mapped form (RFC 4291 section 2.5.5.2).
    pub fn as_v6(self) -> Ipv6Addr {
        match self.ip() {
            core::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            core::net::IpAddr::V6(v6) => v6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use super::reference::{Order, in_words};

    fn by_definition(bytes: &[u8]) -> u16 {
        !reference::by_definition(bytes)
    }

    /// The sums of `bytes` by words of every size and order.
    fn in_all_words(bytes: &[u8]) -> [u16; 6] {
        let all = |order| {
            [in_words::<2>(bytes, order), in_words::<4>(bytes, order), in_words::<8>(bytes, order)]
        };
        let ([a, b, c], [d, e, f]) = (all(Order::Big), all(Order::Little));
        [a, b, c, d, e, f]
    }

    #[test]
    fn the_example_of_the_thesis_adds_up_and_its_twin_is_its_swap() {
        //= agarwal00#3.3: 0x5051 + 0x5253 + 0x5455, which is 0xF6F9 and not the 0x575A that is printed
        let bytes = [0x50, 0x51, 0x52, 0x53, 0x54, 0x55];
        let twin = [0x51, 0x50, 0x53, 0x52, 0x55, 0x54];
        assert_eq!(0x5051 + 0x5253 + 0x5455, 0xf6f9);
        assert_eq!(checksum(&bytes), !0xf6f9);
        assert_eq!(checksum(&twin), !0xf6f9u16.swap_bytes());
        assert_eq!(in_all_words(&bytes), [0xf6f9; 6]);
        // A case with end-around carries.
        let bytes = [0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5];
        let twin = [0xf1, 0xf0, 0xf3, 0xf2, 0xf5, 0xf4];
        assert_eq!(checksum(&twin), checksum(&bytes).swap_bytes());
    }

    #[test]
    fn a_known_header_has_its_known_checksum() {
        // The example header of Wikipedia's article on the IPv4 checksum.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum(&header), 0xb861);
    }

    #[test]
    fn the_counterexample_to_rfc_1141_is_right() {
        // RFC 1624 section 4: 0xdd2f with 0x5555 -> 0x3285 must become 0x0000, not 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn many_ones_do_not_overflow() {
        let ones = vec![0xff; 1 << 20];
        assert_eq!(checksum(&ones), 0);
        let mut sum = Sum::default();
        for _ in 0..1000 {
            sum.bytes(&ones);
        }
        assert_eq!(sum.fold(), 0xffff);
    }

    proptest! {
        #[test]
        fn wide_words_agree_with_the_definition(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            skip in 0usize..9,
        ) {
            let bytes = &bytes[skip.min(bytes.len())..];
            prop_assert_eq!(checksum(bytes), by_definition(bytes));
        }

        #[test]
        fn words_of_every_size_and_order_add_up_to_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            skip in 0usize..9,
        ) {
            let bytes = &bytes[skip.min(bytes.len())..];
            prop_assert_eq!(in_all_words(bytes), [reference::by_definition(bytes); 6]);
        }

        #[test]
        fn a_copy_is_the_same_and_so_is_its_sum(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            skip in 0usize..9,
            shift in 0usize..9,
            cut in 0usize..300,
        ) {
            let bytes = &bytes[skip.min(bytes.len())..];
            let cut = cut.min(bytes.len());
            let mut copy = vec![0; bytes.len() + shift];
            let mut sum = Sum::default();
            let (head, tail) = copy[shift..].split_at_mut(cut);
            sum.copy(&bytes[..cut], head);
            sum.copy(&bytes[cut..], tail);
            prop_assert_eq!(&copy[shift..], bytes);
            prop_assert_eq!(sum.checksum(), by_definition(bytes));
        }

        #[test]
        fn pieces_add_up_to_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(0usize..200, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut sum = Sum::default();
            cuts.windows(2).for_each(|w| sum.bytes(&bytes[w[0]..w[1]]));
            prop_assert_eq!(sum.checksum(), by_definition(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(
            mut bytes in prop::collection::vec(any::<u8>(), 4..64),
            at in 0usize..64,
            new in any::<u16>(),
        ) {
            // The one case that the method cannot distinguish: all zero.
            bytes[0] |= 1;
            let at = (2 + at % (bytes.len() - 3)) & !1;
            let before = checksum(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), checksum(&bytes));
        }

        #[test]
        fn the_pseudo_header_is_the_one_of_the_rfcs(
            src in any::<u128>(),
            dst in any::<u128>(),
            v4 in any::<bool>(),
            len in any::<u32>(),
        ) {
            let (src, dst, laid_out) = if v4 {
                let (src, dst) = (Ipv4Addr::from(src as u32), Ipv4Addr::from(dst as u32));
                let mut bytes = [src.octets(), dst.octets()].concat();
                bytes.extend([0, 6]);
                bytes.extend((len as u16).to_be_bytes());
                (Addr::from(core::net::IpAddr::from(src)), Addr::from(core::net::IpAddr::from(dst)), bytes)
            } else {
                let (src, dst) = (Ipv6Addr::from(src | 1 << 127), Ipv6Addr::from(dst));
                let mut bytes = [src.octets(), dst.octets()].concat();
                bytes.extend(len.to_be_bytes());
                bytes.extend([0, 0, 0, 6]);
                (Addr::from(core::net::IpAddr::from(src)), Addr::from(core::net::IpAddr::from(dst)), bytes)
            };
            let mut sum = Sum::default();
            sum.pseudo_header(src, dst, 6, if v4 { len & 0xffff } else { len });
            prop_assert_eq!(sum.checksum(), by_definition(&laid_out));
        }
    }
}
