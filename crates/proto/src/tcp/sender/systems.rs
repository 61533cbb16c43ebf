//! The senders, one file each, under their names in the registry, and a simulator whose rules apply to any sender.

use super::registry;

pub mod ns;

/// Declares the modules.
macro_rules! files {
    ($($file:ident $words:tt $($part:ident $Name:ident($($kind:tt)*))?;)*) => { $(pub mod $file;)* };
}
registry::senders!(files);
