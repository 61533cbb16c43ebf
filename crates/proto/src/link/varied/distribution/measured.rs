//! The table `experimental` of netem: 13,448 round trips to a distant host, measured by NISTnet and in the
//! public domain.
//!
//! The table is the inverse of their distribution, in units of their deviation. The clock had steps of 0.1
//! ms, so there are few distinct values. Between most of its entries the table is a straight line, so its
//! corners describe it completely.

/// Corners of the table: index and entry in each line.
const CORNERS: &str = include_str!("experimental.txt");

/// The corners; lines of other forms do not exist.
fn corners() -> Vec<(u16, i16)> {
    let corner = |line: &str| {
        let (index, entry) = line.split_once(' ')?;
        Some((index.parse().ok()?, entry.parse().ok()?))
    };
    CORNERS.lines().filter_map(corner).collect()
}

/// All entries: interpolated between two corners, truncated towards zero.
pub(super) fn table() -> Vec<i16> {
    let mut entries = Vec::with_capacity(super::SIZE);
    let corners = corners();
    for pair in corners.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        let (width, rise) = (i32::from(to - from), i32::from(high) - i32::from(low));
        entries.extend((0..width).map(|step| low.saturating_add((step * rise / width) as i16)));
    }
    entries.extend(corners.last().map(|(_, entry)| entry));
    entries
}
