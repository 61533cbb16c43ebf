//! The system calls that no safe interface offers: the only place with `unsafe`, one small file per need.

pub mod cookie;
pub mod ethtool;
pub(crate) mod heap;
pub mod outq;
pub mod packet_socket;
pub mod path_mtu;
pub mod tcp_info;
pub mod tun;
