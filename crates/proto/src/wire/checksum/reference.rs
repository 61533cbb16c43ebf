//! The checksum word by word: reference for tests and measurements of the fast code.

/// The ones' complement sum of `bytes` by the definition (RFC 1071 section 4.1): 16-bit words in network order, one by
/// one, each carry added at once. An odd last byte counts as the high half of a word.
///
/// ```
/// use lasthop_proto::wire::checksum::reference::{Order, by_definition, in_words};
/// // The example of agarwal00 3.3: 0x5051 + 0x5253 + 0x5455. (The paper prints the wrong sums 0x575A, and
/// // 0x5A57 for the swapped words.)
/// let bytes = [0x50, 0x51, 0x52, 0x53, 0x54, 0x55];
/// assert_eq!(by_definition(&bytes), 0xf6f9);
/// // Words read in the other order have the same sum, with its bytes swapped.
/// let swapped = [0x51, 0x50, 0x53, 0x52, 0x55, 0x54];
/// assert_eq!(by_definition(&swapped), 0xf9f6);
/// assert_eq!(in_words::<4>(&bytes, Order::Little), 0xf6f9);
/// ```
pub fn by_definition(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Byte order of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The first byte is the highest, as on the network.
    Big,
    /// The first byte is the lowest.
    Little,
}

/// The same sum on a machine with words of `WORD` bytes (2, 4 or 8) in this byte order: ones' complement
/// additions of whole words, one fold to 16 bits, one swap.
//= agarwal00#3.3: any word size of 16 bits or more, in any byte order
pub fn in_words<const WORD: usize>(bytes: &[u8], order: Order) -> u16 {
    const { assert!(WORD == 2 || WORD == 4 || WORD == 8) };
    let ones = u128::MAX >> (128 - 8 * WORD);
    let mut sum = 0u128;
    for chunk in bytes.chunks(WORD) {
        let place = |at: usize| match order {
            Order::Big => 8 * (WORD - 1 - at),
            Order::Little => 8 * at,
        };
        let word = chunk
            .iter()
            .enumerate()
            .fold(0, |word, (at, byte)| word | u128::from(*byte) << place(at));
        sum += word;
        sum = (sum & ones) + (sum >> (8 * WORD));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match order {
        Order::Big => sum as u16,
        Order::Little => (sum as u16).swap_bytes(),
    }
}
