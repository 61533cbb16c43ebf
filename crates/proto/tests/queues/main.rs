//! Queue disciplines: which ACKs are removed, which never are, and who goes first.

mod ack_filter;
mod acks_first;
mod properties;
mod red;
mod script;
