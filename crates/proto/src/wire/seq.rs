//! TCP sequence numbers: 32 bits that wrap.

use core::fmt;
use core::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A TCP sequence number. Comparison is meaningful only within half the number space, so there is no `Ord`.
/// Use [`Seq::lt`] and [`Seq::le`], or [`Seq::unwrap_near`] for a 64-bit stream offset.
//= rfc9293#section-3.4: arithmetic on sequence numbers is modulo 2^32
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Seq(pub u32);

impl Seq {
    /// `self < other` in the circular order.
    pub fn lt(self, other: Seq) -> bool {
        (self - other) < 0
    }

    /// `self <= other` in the circular order.
    pub fn le(self, other: Seq) -> bool {
        (self - other) <= 0
    }

    /// The 64-bit offset closest to `near` whose low 32 bits are `self - origin`; `None` when that
    /// offset would be negative.
    pub fn unwrap_near(self, origin: Seq, near: u64) -> Option<u64> {
        let delta = self - (origin + near as u32);
        near.checked_add_signed(i64::from(delta))
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    fn add(self, n: u32) -> Seq {
        Seq(self.0.wrapping_add(n))
    }
}

impl Sub for Seq {
    type Output = i32;
    /// The signed circular distance from `other` to `self`.
    fn sub(self, other: Seq) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_circular() {
        assert!(Seq(u32::MAX).lt(Seq(3)));
        assert!(!Seq(3).lt(Seq(u32::MAX)));
        assert!(Seq(7).le(Seq(7)));
    }

    #[test]
    fn unwrapping_follows_the_nearest_offset_across_wraps() {
        let origin = Seq(u32::MAX - 10);
        let far = (1u64 << 32) + 5;
        assert_eq!((origin + far as u32).unwrap_near(origin, 1 << 32), Some(far));
        assert_eq!((origin + 3).unwrap_near(origin, 0), Some(3));
        assert_eq!(Seq(origin.0 - 1).unwrap_near(origin, 0), None);
    }
}
