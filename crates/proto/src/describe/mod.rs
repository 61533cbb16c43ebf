//! Self-description of systems: their purpose, and the keys of their configuration.
//!
//! A system's file has one [`Descriptor`], or several if the system has several keywords. All information
//! about the system is derived from it: the syntax of its configuration, reading and fault messages, the
//! lists of `lasthop list`, the tables of the manual, and the JSON Schema for completion in editors.
//!
//! A function visits the keys of the configuration ([`Keys`]), one line for each key. Its caller, a
//! [`Visitor`], reads values from a file, or lists the keys without any file. This module is independent of
//! file formats.

mod key;
mod keys;
mod system;

pub use key::{Form, Key, Need, Quantity, Value, Whole};
pub use keys::{Fault, Keys, Visitor};
pub use system::{BOTH, Descriptor, Kind, LIVE, Needs, SIM, Status, System, Where, find};
