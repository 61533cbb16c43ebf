//! Base-station agents, from outside: short scripts for each mechanism, properties over random traffic, and
//! snoop's results for bursts of losses.

mod ack_reconstruction;
mod ack_split;
mod ackp;
mod attacks;
mod bursts;
mod feedback;
mod good_packet_size;
mod handoff;
mod handoff_net;
mod m_tcp;
mod numbers;
mod path;
mod properties;
#[path = "../support/record.rs"]
mod record;
mod script;
mod seq_cache;
mod silence;
mod snoop;
mod snoop_acks;
mod snoop_flows;
mod snoop_nack;
mod snoop_smart;
mod split;
mod split_fragments;
mod split_half_open;
mod split_opening;
mod split_paths;
mod split_script;
mod wtcp;
