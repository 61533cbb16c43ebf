//! Names of variants in traces, tables and files: those of the source text, in lower case with hyphens.

/// Length of the name of the variant `ident`.
pub(crate) const fn length(ident: &str) -> usize {
    let (bytes, mut i, mut hyphens) = (ident.as_bytes(), 1, 0);
    while i < bytes.len() {
        hyphens += bytes[i].is_ascii_uppercase() as usize;
        i += 1;
    }
    ident.len() + hyphens
}

/// The name of the variant `ident`, of `N` bytes.
pub(crate) const fn name<const N: usize>(ident: &str) -> [u8; N] {
    let (bytes, mut name) = (ident.as_bytes(), [b'-'; N]);
    let (mut i, mut at) = (0, 0);
    while i < bytes.len() {
        at += (i > 0 && bytes[i].is_ascii_uppercase()) as usize;
        name[at] = bytes[i].to_ascii_lowercase();
        (i, at) = (i + 1, at + 1);
    }
    name
}

/// The text of a name.
pub(crate) const fn text(name: &[u8]) -> &str {
    match core::str::from_utf8(name) {
        Ok(text) => text,
        Err(_) => panic!("a name has letters and hyphens"),
    }
}

/// Generates the method `name` of an enum with these variants.
macro_rules! named {
    ($Name:ident: $($Kind:ident)*) => {
        impl $Name {
            /// Its name in traces, tables and files.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Name::$Kind { .. } => {
                        const NAME: [u8; $crate::names::length(stringify!($Kind))] = $crate::names::name(stringify!($Kind));
                        const { $crate::names::text(&NAME) }
                    })*
                }
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_hyphen_before_each_further_capital() {
        for (ident, len) in [("Acked", 5), ("PsPoll", 7), ("LinkAckSeen", 13)] {
            assert_eq!(length(ident), len);
        }
        assert_eq!(name::<5>("Acked"), *b"acked");
        assert_eq!(name::<7>("PsPoll"), *b"ps-poll");
    }
}
