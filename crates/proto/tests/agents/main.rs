//! Base-station agents, from outside: short scripts for each mechanism, properties over random traffic, and
//! what snoop makes of bursts of losses.

mod ackp;
mod bursts;
mod properties;
mod script;
mod seq_cache;
mod snoop;
