//! The system calls that no safe interface offers: the only place with `unsafe`, one small file per need.

pub mod ethtool;
pub mod packet_socket;
