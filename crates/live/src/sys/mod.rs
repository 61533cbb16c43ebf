//! System calls without a safe interface: the only module with `unsafe`, one small file per need.

pub mod bpf;
pub mod calls;
pub mod ethtool;
pub mod filter;
pub mod flags;
pub(crate) mod heap;
pub mod inherited;
pub mod outq;
pub mod packet_socket;
pub mod privileges;
pub mod slice;
pub mod tcp_info;
pub mod tun;
pub mod udp_socket;
