//! A link layer between two hosts, over datagrams.

pub mod message;
pub mod replay;
pub mod seal;
pub mod session;
pub mod states;
