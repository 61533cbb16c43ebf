//! Options of connections that open with data: connection counts of T/TCP (RFC 1644), cookies of TCP Fast
//! Open (RFC 7413).

use core::fmt;

use super::options::KIND_EXPERIMENT;

/// Connection count (RFC 1644 section 3.2).
pub const KIND_CC: u8 = 11;
/// Connection count of a client whose counts do not rise (RFC 1644 section 3.2).
pub const KIND_CC_NEW: u8 = 12;
/// Connection count of the peer, on a SYN-ACK (RFC 1644 section 3.2).
pub const KIND_CC_ECHO: u8 = 13;
/// Fast Open cookie, or a request for one (RFC 7413 section 4.1.1).
pub const KIND_FAST_OPEN: u8 = 34;
/// Identifier of the same option among experiments, before it had a separate kind.
pub const EXID_FAST_OPEN: u16 = 0xf989;

/// Length of an option with a connection count: kind, length, count.
pub const COUNT_LEN: u32 = 6;

/// The count of a connection, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Count {
    /// CC: greater than earlier counts from the same host to the same peer, as far as that host remembers.
    Cc(u32),
    /// CC.NEW: possibly smaller, so the peer must discard its cached count.
    New(u32),
}

impl Count {
    /// The number.
    pub fn number(self) -> u32 {
        let (Count::Cc(number) | Count::New(number)) = self;
        number
    }
}

/// A Fast Open cookie of 4 to 16 bytes, or an empty one: a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    bytes: [u8; Cookie::MAX],
    len: u8,
}

impl Cookie {
    const MAX: usize = 16;

    /// No cookie: the option requests one.
    pub const REQUEST: Cookie = Cookie { bytes: [0; Cookie::MAX], len: 0 };

    /// A cookie of these bytes; an empty one is a request.
    //= rfc7413#section-4.1.1: 4 to 16 bytes, and their number is even
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        let fits = bytes.is_empty() || (4..=Cookie::MAX).contains(&bytes.len());
        if !fits || !bytes.len().is_multiple_of(2) {
            return None;
        }
        let mut cookie = Cookie { len: bytes.len() as u8, ..Cookie::REQUEST };
        cookie.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Some(cookie)
    }

    /// Its bytes; none in a request.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The opening options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Opening {
    /// The count of the sender's end: on its SYN, and on each of its segments if both ends use counts.
    pub count: Option<Count>,
    /// The count of the peer's end, on a SYN-ACK.
    pub echo: Option<u32>,
    /// A Fast Open cookie; SYN only.
    pub cookie: Option<Cookie>,
    /// Whether the cookie is in an experimental option ([`EXID_FAST_OPEN`]); false without a cookie.
    pub experiment: bool,
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = f.debug_struct("Opening");
        form.field("count", &self.count).field("echo", &self.echo).field("cookie", &self.cookie);
        if self.experiment {
            form.field("experiment", &self.experiment);
        }
        form.finish()
    }
}

impl Opening {
    /// No option.
    pub const NONE: Opening = Opening { count: None, echo: None, cookie: None, experiment: false };

    /// Unpadded length in bytes.
    pub fn wire_len(&self) -> u32 {
        self.count.map_or(0, |_| COUNT_LEN)
            + self.echo.map_or(0, |_| COUNT_LEN)
            + self
                .cookie
                .map_or(0, |cookie| 2 + u32::from(cookie.len) + if self.experiment { 2 } else { 0 })
    }

    /// Stores an option; returns false if it is another one, malformed, or a duplicate.
    pub(super) fn read(&mut self, kind: u8, value: &[u8]) -> bool {
        let number = <[u8; 4]>::try_from(value).ok().map(u32::from_be_bytes);
        //= rfc1644#section-3.2: zero is no count
        match (kind, number.filter(|number| *number != 0)) {
            (KIND_CC, Some(number)) => fill(&mut self.count, Count::Cc(number)),
            (KIND_CC_NEW, Some(number)) => fill(&mut self.count, Count::New(number)),
            (KIND_CC_ECHO, Some(number)) => fill(&mut self.echo, number),
            (KIND_FAST_OPEN, _) => {
                Cookie::new(value).is_some_and(|cookie| fill(&mut self.cookie, cookie))
            }
            _ => false,
        }
    }

    /// Stores a cookie of an experimental option; returns false if it is malformed or a duplicate.
    pub(super) fn read_experiment(&mut self, value: &[u8]) -> bool {
        let filled = Cookie::new(value).is_some_and(|cookie| fill(&mut self.cookie, cookie));
        self.experiment |= filled;
        filled
    }

    /// Writes the options one by one, in the form of the header.
    pub(super) fn write(&self, mut put: impl FnMut(&[u8])) {
        let mut number = |kind: u8, number: u32| {
            put(&[kind, COUNT_LEN as u8]);
            put(&number.to_be_bytes());
        };
        match self.count {
            Some(Count::Cc(count)) => number(KIND_CC, count),
            Some(Count::New(count)) => number(KIND_CC_NEW, count),
            None => {}
        }
        if let Some(echo) = self.echo {
            number(KIND_CC_ECHO, echo);
        }
        if let Some(cookie) = &self.cookie {
            if self.experiment {
                put(&[KIND_EXPERIMENT, 4 + cookie.len]);
                put(&EXID_FAST_OPEN.to_be_bytes());
            } else {
                put(&[KIND_FAST_OPEN, 2 + cookie.len]);
            }
            put(cookie.as_slice());
        }
    }
}

fn fill<T>(place: &mut Option<T>, value: T) -> bool {
    let empty = place.is_none();
    if empty {
        *place = Some(value);
    }
    empty
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Options;
    use crate::wire::options::{read, write};
    use proptest::prelude::*;

    fn bytes_of(opening: Opening) -> Vec<u8> {
        write(None, &Options { opening, ..Options::default() }).unwrap().as_slice().to_vec()
    }

    #[test]
    fn opening_options_have_the_layout_of_the_rfcs() {
        let count = Opening { count: Some(Count::Cc(0x0102_0304)), ..Opening::NONE };
        assert_eq!(bytes_of(count), [11, 6, 1, 2, 3, 4, 1, 1]);
        let answer = Opening { echo: Some(7), ..count };
        assert_eq!(bytes_of(answer), [11, 6, 1, 2, 3, 4, 13, 6, 0, 0, 0, 7]);
        let new = Opening { count: Some(Count::New(9)), ..Opening::NONE };
        assert_eq!(bytes_of(new), [12, 6, 0, 0, 0, 9, 1, 1]);
        let request = Opening { cookie: Some(Cookie::REQUEST), ..Opening::NONE };
        assert_eq!(bytes_of(request), [34, 2, 1, 1]);
        let cookie = Opening { cookie: Cookie::new(&[1, 2, 3, 4]), ..Opening::NONE };
        assert_eq!(bytes_of(cookie), [34, 6, 1, 2, 3, 4, 1, 1]);
        let experiment = Opening { experiment: true, ..cookie };
        assert_eq!(bytes_of(experiment), [254, 8, 0xf9, 0x89, 1, 2, 3, 4]);
        let request = Opening { experiment: true, ..request };
        assert_eq!(bytes_of(request), [254, 4, 0xf9, 0x89]);
    }

    #[test]
    fn malformed_or_repeated_options_are_stored_unchanged() {
        for bytes in [
            &[11, 5, 1, 2, 3][..],
            &[11, 6, 0, 0, 0, 0],
            &[13, 7, 1, 2, 3, 4, 5],
            &[34, 5, 1, 2, 3],
            &[34, 4, 1, 2],
            &[34, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18],
        ] {
            let options = read(bytes).options.unwrap();
            assert_eq!((options.opening, &options.unknown[..]), (Opening::NONE, bytes));
        }
        let twice = read(&[11, 6, 0, 0, 0, 1, 12, 6, 0, 0, 0, 2]).options.unwrap();
        assert_eq!(twice.opening.count, Some(Count::Cc(1)));
        assert_eq!(twice.unknown, [12, 6, 0, 0, 0, 2]);
    }

    proptest! {
        #[test]
        fn written_options_are_read_back_unchanged(
            count in prop::option::of((any::<bool>(), 1u32..)),
            echo in prop::option::of(1u32..),
            cookie in prop::option::of(prop::collection::vec(any::<u8>(), 0..17)),
            experiment in any::<bool>(),
        ) {
            let count = count.map(|(new, n)| if new { Count::New(n) } else { Count::Cc(n) });
            let cookie = cookie.and_then(|bytes| Cookie::new(&bytes));
            let experiment = experiment && cookie.is_some();
            let opening = Opening { count, echo, cookie, experiment };
            let options = read(&bytes_of(opening)).options.unwrap_or_default();
            prop_assert_eq!(options.opening, opening);
            prop_assert_eq!(&options.unknown[..], &[0u8; 0]);
        }

        #[test]
        fn parsed_options_are_unchanged_by_writing_and_reading(bytes in prop::collection::vec(
            prop_oneof![Just(11u8), Just(12), Just(13), Just(34), Just(6), Just(2), any::<u8>()], 0..40,
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
