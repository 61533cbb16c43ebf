//! The system calls that no safe interface offers: the only place with `unsafe`, one small file per need.

pub mod outq;
pub mod tcp_info;
