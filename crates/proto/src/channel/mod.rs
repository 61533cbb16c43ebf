//! Channel models: which packets a radio damages, and where in the packet.

use serde::Serialize;

use crate::units::{Bytes, Probability, Span};

/// How errors come about in one direction of a radio link.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum ErrorModel {
    /// Errors at exponential distances in bytes; each damages the one packet it falls into (west97 4.3).
    Exponential {
        /// Mean distance between errors.
        mean: Bytes,
    },
    /// Independent bit errors.
    BitErrors {
        /// Bit error rate.
        ber: Probability,
    },
    /// Each error destroys `packets` consecutive packets; distances are from onset to onset (west97 5.2.2).
    PacketBursts {
        /// Packets destroyed by one error.
        packets: u32,
        /// Mean distance between the onsets of two errors.
        mean: Bytes,
        /// Whether the distances are all equal instead of exponential.
        uniform: bool,
    },
    /// A Markov channel that is good or bad for exponential times (bakshi96 3.1).
    TwoState {
        /// Mean time in the good state.
        good: Span,
        /// Mean time in the bad state.
        bad: Span,
        /// Bit error rate in the good state.
        ber_good: Probability,
        /// Bit error rate in the bad state.
        ber_bad: Probability,
        /// Whether the times are constant instead of exponential.
        deterministic: bool,
    },
    /// A Markov channel that changes its state between bits (parsa98 5.3.2).
    TwoStateBits {
        /// Mean length of a good period in bits.
        good_bits: u64,
        /// Mean length of a bad period in bits.
        bad_bits: u64,
        /// Bit error rate in the good state.
        ber_good: Probability,
        /// Bit error rate in the bad state.
        ber_bad: Probability,
    },
    /// Each packet is lost with this probability, whatever its length.
    PacketLoss {
        /// Probability of loss.
        p: Probability,
    },
}
