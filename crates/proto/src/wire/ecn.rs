//! Accurate ECN feedback in a TCP header (RFC 9768): a field of three flags, and an option with byte
//! counters.

use core::fmt;

use super::Flags;

/// The AccECN option whose first counter is that of ECT(0) (RFC 9768 section 3.2.3).
pub const KIND_ACCECN0: u8 = 172;
/// The AccECN option whose first counter is that of ECT(1) (RFC 9768 section 3.2.3).
pub const KIND_ACCECN1: u8 = 174;

impl Flags {
    /// The flags with the field AE, CWR, ECE replaced by `ace`.
    #[must_use]
    pub fn with_ace(self, ace: u8) -> Flags {
        Flags(self.0 & !Flags::ACE.0 | u16::from(ace & 7) << 6)
    }

    /// The field AE, CWR, ECE as a number.
    pub fn ace(self) -> u8 {
        (self.0 >> 6 & 7) as u8
    }
}

/// Byte counters of a receiver in the AccECN option: up to three, each modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EcnCounts {
    /// Whether the counter of ECT(1) is the first, and that of ECT(0) the last.
    ect1_first: bool,
    len: u8,
    fields: [u32; 3],
}

impl EcnCounts {
    /// The first `len` counters of ECT(0), CE and ECT(1), or of ECT(1), CE and ECT(0).
    pub fn new(ect1_first: bool, [ect0, ce, ect1]: [u32; 3], len: usize) -> EcnCounts {
        let mut fields = if ect1_first { [ect1, ce, ect0] } else { [ect0, ce, ect1] };
        let len = len.min(3);
        fields.iter_mut().for_each(|field| *field &= 0xff_ffff);
        fields[len..].fill(0);
        EcnCounts { ect1_first, len: len as u8, fields }
    }

    /// Payload bytes that arrived with CE, modulo 2^24, if the option has the counter.
    pub fn ce(&self) -> Option<u32> {
        self.fields().get(1).copied()
    }

    /// The counters in the option, in its order.
    pub fn fields(&self) -> &[u32] {
        &self.fields[..usize::from(self.len)]
    }

    /// Length in bytes of the option.
    pub fn wire_len(&self) -> u32 {
        2 + 3 * u32::from(self.len)
    }

    /// The option of this kind with this value; `None` for another option or an invalid length.
    pub(super) fn read(kind: u8, value: &[u8]) -> Option<EcnCounts> {
        if !matches!(kind, KIND_ACCECN0 | KIND_ACCECN1) || !matches!(value.len(), 0 | 3 | 6 | 9) {
            return None;
        }
        let mut fields = [0; 3];
        for (field, bytes) in fields.iter_mut().zip(value.chunks_exact(3)) {
            *field = bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        }
        Some(EcnCounts { ect1_first: kind == KIND_ACCECN1, len: value.len() as u8 / 3, fields })
    }

    /// Writes the option in the form of the header.
    pub(super) fn write(&self, mut put: impl FnMut(&[u8])) {
        let kind = if self.ect1_first { KIND_ACCECN1 } else { KIND_ACCECN0 };
        put(&[kind, self.wire_len() as u8]);
        self.fields().iter().for_each(|field| put(&field.to_be_bytes()[1..]));
    }
}

impl fmt::Debug for EcnCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", if self.ect1_first { "ect1" } else { "ect0" }, self.fields())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::options::{read, write};

    #[test]
    fn the_option_has_the_layout_of_the_rfc() {
        let bytes = |counts: EcnCounts| {
            let options = crate::wire::Options { ecn: Some(counts), ..Default::default() };
            write(None, &options).unwrap().as_slice().to_vec()
        };
        let counters = [0x01_0203, 0x04_0506, 0xff07_0809];
        let ect0 = bytes(EcnCounts::new(false, counters, 3));
        assert_eq!(ect0, [172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
        let ect1 = bytes(EcnCounts::new(true, counters, 2));
        assert_eq!(ect1, [174, 8, 7, 8, 9, 4, 5, 6]);
        assert_eq!(bytes(EcnCounts::new(true, counters, 0)), [174, 2, 1, 1]);
        assert_eq!(EcnCounts::new(true, counters, 1).ce(), None);
        assert_eq!(EcnCounts::new(true, counters, 2).ce(), Some(0x04_0506));
    }

    #[test]
    fn malformed_or_repeated_options_are_stored_unchanged() {
        for bytes in [&[172, 3, 0][..], &[174, 4, 0, 0], &[172, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            let options = read(bytes).options.unwrap();
            assert_eq!((options.ecn, &options.unknown[..]), (None, bytes));
        }
        let twice = read(&[172, 5, 0, 0, 1, 174, 5, 0, 0, 2]).options.unwrap();
        assert_eq!(twice.ecn, Some(EcnCounts::new(false, [1, 0, 0], 1)));
        assert_eq!(twice.unknown, [174, 5, 0, 0, 2]);
    }

    #[test]
    fn the_ace_field_consists_of_three_flags() {
        assert_eq!(Flags::ACK.with_ace(5), Flags::ACK | Flags::AE | Flags::ECE);
        assert_eq!((Flags::CWR | Flags::SYN).with_ace(0), Flags::SYN);
        assert!((0..8).all(|ace| Flags::ACE.with_ace(ace).ace() == ace));
    }

    proptest! {
        #[test]
        fn parsed_options_are_unchanged_by_writing_and_reading(bytes in prop::collection::vec(
            prop_oneof![Just(172u8), Just(174), Just(11), Just(8), Just(5), Just(2), any::<u8>()], 0..40,
        )) {
            let first = read(&bytes);
            let options = first.options.unwrap_or_default();
            if let Ok(written) = write(first.timestamps, &options) {
                let again = read(written.as_slice());
                prop_assert_eq!(*again.options.unwrap_or_default(), *options);
            }
        }
    }
}
