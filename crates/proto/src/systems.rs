//! Every system of this crate: those with a keyword in a file, and those that a key enables.

use crate::agent;
use crate::channel;
use crate::describe::System;
use crate::energy;
use crate::hop;
use crate::link;
use crate::mac;
use crate::queue;
use crate::tcp::sender::congestion_control::pacing;
use crate::tcp::sender::notices;
use crate::tcp::sender::recovery::fast_rtx_handoff;
use crate::tcp::words::TCPS;
use crate::tcp::{acc, fast_open, prediction, receiver, t_tcp};

/// Systems that are parts of others and are enabled by a key, in the order of a path from sender to receiver.
const SWITCHES: &[System] = &[
    notices::ACKP,
    notices::EBSN,
    fast_rtx_handoff::SYSTEM,
    pacing::ADAPTATION,
    t_tcp::T_TCP,
    fast_open::FAST_OPEN,
    receiver::DELAYED_ACK,
    acc::ACC,
    prediction::OPTIONS,
    agent::i_tcp_handoff::HANDOFF,
    hop::pieces::FRAGMENTATION,
    link::fec::FEC,
    link::header_compression::HEADER_COMPRESSION,
    link::tc::TBF,
    link::tc::POLICE,
    energy::ENERGY_MODEL,
];

/// All systems, those of a kind in the order of their registry.
pub fn systems() -> Vec<System> {
    let words = TCPS.iter().map(|word| word.system());
    let words = words.chain(agent::words().map(|agent| agent.system));
    let words = words.chain(link::words().map(|layer| layer.system));
    let words = words.chain(mac::all_words().map(|mac| mac.system));
    let words = words.chain(queue::words().map(|discipline| discipline.system));
    let words = words.chain(channel::words().map(|model| model.system));
    let mut all: Vec<System> = words.chain(SWITCHES.iter().copied()).collect();
    all.retain(|system| system.tier != System::UNLISTED);
    all.sort_by_key(|system| system.kind as u8);
    all
}
