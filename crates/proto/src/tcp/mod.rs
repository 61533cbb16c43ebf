//! TCP end points.

pub mod config;

pub use config::{AckpReaction, Clock, DelayedAck, TcpConfig, Variant};
