//! An erasure code over packets: any `k` of `k` packets and `r` parity packets restore all `k`. It verifies
//! the rule of `parity.rs`.
//!
//! Each byte of parity is a sum over GF(256) of the packets' bytes at the same offset, weighted by a Cauchy
//! matrix. Every square submatrix is invertible, so any parity packet can replace any packet. All packets
//! have the length of the longest, padded with zeros.

/// Limit of packets and parity packets together.
const MOST: usize = 256;

/// The field's polynomial x^8 + x^4 + x^3 + x^2 + 1, of which x is a generator.
const POLYNOMIAL: u16 = 0x11d;

/// Powers of the generator, repeated once, and logarithms.
const TABLES: ([u8; 512], [u8; 256]) = {
    let (mut exp, mut log) = ([0; 512], [0; 256]);
    let (mut x, mut i) = (1_u16, 0);
    while i < 255 {
        exp[i] = x as u8;
        exp[i + 255] = x as u8;
        log[x as usize] = i as u8;
        x <<= 1;
        if x & 0x100 != 0 {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    (exp, log)
};

fn times(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.0[usize::from(TABLES.1[usize::from(a)]) + usize::from(TABLES.1[usize::from(b)])]
}

fn inverse(a: u8) -> u8 {
    TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])]
}

/// Weight of packet `packet` in parity packet `index`. Parity packets use the elements from 255 downwards,
/// packets those from 0 upwards, so no sum is zero.
fn weight(index: u8, packet: u8) -> u8 {
    inverse((255 - index) ^ packet)
}

/// Adds `factor` times `from` to `to`.
fn add(to: &mut [u8], factor: u8, from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= times(factor, *from);
    }
}

/// Parity packet `index` of `packets`, with the length of the longest.
///
/// # Panics
/// If there are more than [`MOST`] packets and parity packets.
fn encode(packets: &[&[u8]], index: u8) -> Vec<u8> {
    assert!(packets.len() + usize::from(index) < MOST, "more packets than the field has elements");
    let longest = packets.iter().map(|packet| packet.len()).max().unwrap_or(0);
    let mut parity = vec![0; longest];
    for (i, packet) in packets.iter().enumerate() {
        add(&mut parity, weight(index, i as u8), packet);
    }
    parity
}

/// Restores the missing packets, with the length of the parity packets, which have their indices. `None` if
/// there are not enough of them.
fn decode(packets: &[Option<&[u8]>], parity: &[(u8, &[u8])]) -> Option<Vec<Vec<u8>>> {
    let missing: Vec<u8> =
        (0..packets.len()).filter(|i| packets[*i].is_none()).map(|i| i as u8).collect();
    let count = missing.len();
    // Sum of the missing packets in each parity packet, and their weights there.
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (index, bytes) in parity.iter().take(count) {
        let mut left = bytes.to_vec();
        for (i, packet) in packets.iter().enumerate() {
            add(&mut left, weight(*index, i as u8), packet.unwrap_or_default());
        }
        rows.push((missing.iter().map(|i| weight(*index, *i)).collect(), left));
    }
    if rows.len() < count {
        return None;
    }
    for column in 0..count {
        let pivot = (column..count).find(|row| rows[*row].0[column] != 0)?;
        rows.swap(column, pivot);
        let factor = inverse(rows[column].0[column]);
        let (weights, bytes) = &mut rows[column];
        weights.iter_mut().chain(bytes).for_each(|byte| *byte = times(*byte, factor));
        let (weights, bytes) = rows[column].clone();
        for (row, (others, left)) in rows.iter_mut().enumerate().filter(|(row, _)| *row != column) {
            let _ = row;
            let factor = others[column];
            add(others, factor, &weights);
            add(left, factor, &bytes);
        }
    }
    Some(rows.into_iter().map(|(_, bytes)| bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_field_has_inverses() {
        for a in 1..=255 {
            assert_eq!(times(a, inverse(a)), 1, "{a}");
        }
        assert_eq!((times(0, 7), times(7, 0), times(2, 0x80)), (0, 0, 0x1d));
    }

    proptest! {
        #[test]
        fn any_parity_makes_up_for_any_packet(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..24),
            parity in 0_u8..8,
            lost in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
            parity_lost in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let whole: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            let sent: Vec<(u8, Vec<u8>)> = (0..parity).map(|i| (i, encode(&whole, i))).collect();
            let mut come: Vec<Option<&[u8]>> = whole.iter().copied().map(Some).collect();
            lost.iter().for_each(|i| come[i.index(packets.len())] = None);
            let mut codes: Vec<(u8, &[u8])> =
                sent.iter().map(|(i, bytes)| (*i, bytes.as_slice())).collect();
            for i in &parity_lost {
                if !codes.is_empty() {
                    codes.remove(i.index(codes.len()));
                }
            }
            let missing: Vec<usize> = (0..come.len()).filter(|i| come[*i].is_none()).collect();
            let found = decode(&come, &codes);
            // The rule by which an end decides without the bytes.
            prop_assert_eq!(found.is_some(), super::super::parity::suffices(missing.len(), codes.len()));
            for (i, bytes) in missing.into_iter().zip(found.unwrap_or_default()) {
                let (head, fill) = bytes.split_at(packets[i].len());
                prop_assert_eq!(head, packets[i].as_slice());
                prop_assert!(fill.iter().all(|byte| *byte == 0));
            }
        }
    }
}
