//! Scripts in packetdrill's language, run against lasthop's TCP in virtual time and against the TCP of the
//! machine.
//!
//! - [`script`] parses scripts. It is pure and bounded: any text gives a script or a fault with its line.
//! - [`run`] plays a script in a [`World`](run::World): packets arrive, the application calls sockets, and
//!   the host's packets are compared with the script's expectations. [`run::own`] is the world of lasthop's
//!   TCP; times are exact there. [`run::kernel`] is the machine's TCP behind a TUN device in a separate
//!   network namespace.
//! - [`eval`] evaluates assertions over `tcp_info`.
//! - [`diff`] compares the traces of two runs and finds the first difference.

pub mod diff;
pub mod eval;
pub mod report;
pub mod run;
pub mod script;

/// The number that Linux has for a name in a script.
fn symbol(name: &str) -> Option<i64> {
    let lines = include_str!("symbols.txt").lines().filter(|line| !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace);
    while let (Some(word), Some(value)) = (words.next(), words.next()) {
        if word == name {
            let hex = value.strip_prefix("0x");
            return hex.map_or(value.parse(), |hex| i64::from_str_radix(hex, 16)).ok();
        }
    }
    None
}
