//! How systems describe themselves: what each is, and which keys its configuration has.
//!
//! A system's file holds one [`Descriptor`], or several if several words stand for it. Everything that knows about the
//! system is derived from that: what a file may say, how it is read and what is wrong with it, the lists of
//! `lasthop list`, the tables of the manual, and the JSON Schema by which editors complete.
//!
//! The keys are stated by a function that goes over the configuration ([`Keys`]), one line for each key. Who called it,
//! a [`Visitor`], reads values from a file, or lists the keys without any file. Nothing here knows a file format.

mod key;
mod keys;
mod system;

pub use key::{Form, Key, Need, Quantity, Value, Whole};
pub use keys::{Fault, Keys, Visitor};
pub use system::{BOTH, Descriptor, Kind, LIVE, Needs, SIM, Status, System, Where, find};
