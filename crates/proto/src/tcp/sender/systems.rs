//! The senders, one file each, under their names in the registry.

use super::registry;

/// Declares the modules.
macro_rules! files {
    ($($file:ident $words:tt $($part:ident $Name:ident($($kind:tt)*))?;)*) => { $(pub mod $file;)* };
}
registry::senders!(files);
