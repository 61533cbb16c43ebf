//! Columns of numbers as text for a page: differences of integers, compressed, in base64.
//!
//! It is lossless: a column that is not made of integers, whole milliseconds, microseconds or nanoseconds is stored as
//! doubles.

use std::io::{Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

/// A column: its name, its length, and the divisor of its integers; 0 where it holds doubles.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Column(pub(super) String, pub(super) usize, pub(super) u64);

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct PackedColumns {
    pub(super) columns: Vec<Column>,
    /// DEFLATE (RFC 1951), then base64.
    pub(super) data: String,
}

/// Largest integer: the difference of any two is still exact in a double, the number type of scripts.
const EXACT: f64 = 2_251_799_813_685_248.0;
/// Candidate units: one, milliseconds, microseconds, nanoseconds.
const SCALES: [u64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];
/// Limit of the unpacked size of a page, in bytes.
const MOST_UNPACKED: u64 = 1 << 30;

pub(super) fn pack(columns: &[(String, Vec<f64>)]) -> PackedColumns {
    let mut bytes = Vec::new();
    let mut names = Vec::new();
    for (name, values) in columns {
        let scale = scale(values);
        names.push(Column(name.clone(), values.len(), scale));
        if scale == 0 {
            // Bytes of equal weight are adjacent, because they are alike.
            for i in 0..8 {
                bytes.extend(values.iter().map(|value| value.to_le_bytes()[i]));
            }
            continue;
        }
        let mut last = 0;
        for value in values {
            let whole = (value * scale as f64).round() as i64;
            write_whole(&mut bytes, whole - last);
            last = whole;
        }
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(9));
    let data = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    let data = data.expect("writing to memory does not fail");
    PackedColumns { columns: names, data: BASE64_STANDARD.encode(data) }
}

/// The unpacked columns; `None` if the format is wrong.
pub(super) fn unpack(packed: &PackedColumns) -> Option<Vec<(String, Vec<f64>)>> {
    let data = BASE64_STANDARD.decode(&packed.data).ok()?;
    let mut bytes = Vec::new();
    DeflateDecoder::new(&data[..]).take(MOST_UNPACKED).read_to_end(&mut bytes).ok()?;
    let mut rest = &bytes[..];
    let mut columns = Vec::new();
    for Column(name, n, scale) in &packed.columns {
        let mut values = Vec::new();
        if *scale == 0 {
            let (all, behind) = rest.split_at_checked(n.checked_mul(8)?)?;
            rest = behind;
            for at in 0..*n {
                let weights: [usize; 8] = std::array::from_fn(|i| i);
                values.push(f64::from_le_bytes(weights.map(|i| all[i * n + at])));
            }
        } else {
            let mut last = 0i64;
            for _ in 0..*n {
                last = last.checked_add(read_whole(&mut rest)?)?;
                values.push(last as f64 / *scale as f64);
            }
        }
        columns.push((name.clone(), values));
    }
    Some(columns)
}

/// The factor that makes all values integers and is reversible without loss; 0 if there is none.
fn scale(values: &[f64]) -> u64 {
    let fits = |scale: &u64| {
        let scale = *scale as f64;
        values.iter().all(|value| {
            let whole = (value * scale).round();
            whole.abs() <= EXACT
                && whole / scale == *value
                && (*value != 0.0 || value.is_sign_positive())
        })
    };
    SCALES.into_iter().find(fits).unwrap_or(0)
}

/// Variable-length integer: seven bits per byte, least significant first; the sign is the lowest bit.
fn write_whole(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn read_whole(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(values: &[f64]) -> (Vec<f64>, u64) {
        let packed = pack(&[("a".to_owned(), vec![1.0, 2.0]), ("b".to_owned(), values.to_vec())]);
        let unpacked = unpack(&packed).unwrap();
        assert_eq!(unpacked[0], ("a".to_owned(), vec![1.0, 2.0]));
        (unpacked[1].1.clone(), packed.columns[1].2)
    }

    #[test]
    fn packed_numbers_are_restored_exactly() {
        for (values, scale) in [
            (vec![0.0, 1460.0, 2920.0, -5.0, 2e15], 1),
            (vec![0.001, 1.5, 86_400.25], 1000),
            (vec![0.000_000_001, 123_456.789_012_345], 1_000_000_000),
            (vec![std::f64::consts::PI, 1e300, -0.0], 0),
            (vec![0.0, 3e15], 0),
            (vec![], 1),
        ] {
            let (found, by) = again(&values);
            assert_eq!(by, scale, "{values:?}");
            let bits = |all: &[f64]| all.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&values));
        }
        let (found, scale) = again(&[f64::NAN, f64::INFINITY]);
        assert!(found[0].is_nan() && found[1].is_infinite() && scale == 0);
    }

    #[test]
    fn times_of_the_simulator_are_whole_nanoseconds() {
        use lasthop_proto::units::Time;
        let times: Vec<f64> =
            (0..20_000u64).map(|i| Time(i * 987_654_321_987).as_secs_f64()).collect();
        assert_eq!(scale(&times[..2000]), 1_000_000_000);
        let (found, _) = again(&times);
        assert_eq!(found, times);
    }

    #[test]
    fn invalid_packed_columns_are_refused() {
        let good = pack(&[("a".to_owned(), vec![1.0, 2.0])]);
        let longer =
            |n| PackedColumns { columns: vec![Column("a".to_owned(), n, 1)], ..good.clone() };
        assert!(unpack(&longer(2)).is_some());
        assert!(unpack(&longer(3)).is_none() && unpack(&longer(usize::MAX)).is_none());
        let plain =
            PackedColumns { columns: vec![Column("a".to_owned(), usize::MAX, 0)], ..good.clone() };
        assert!(unpack(&plain).is_none());
        for data in ["", "!", "AAAA", "////////"] {
            let bad = PackedColumns { data: data.to_owned(), ..good.clone() };
            assert!(unpack(&bad).is_none(), "{data}");
        }
    }
}
