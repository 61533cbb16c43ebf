//! Queue disciplines: removed ACKs, protected ACKs, priorities, and waiting times.

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
