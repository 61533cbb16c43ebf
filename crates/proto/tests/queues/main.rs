//! Queue disciplines: which ACKs are removed, which never are, who goes first, and how long a packet waits.

mod ack_filter;
mod acks_first;
mod codel;
mod dualpi2;
mod fq_codel;
mod ns3;
mod pie;
mod properties;
mod red;
mod script;
