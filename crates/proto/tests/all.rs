//! Tests of links, packets and fields. They are one program, which links once; systems have programs of their own.

mod airmail;
mod csdp;
mod energy;
mod exhaustive;
mod fec;
mod header_compression;
mod icmp;
mod link_layers;
mod links;
mod local_recovery;
mod netem;
mod serial;
mod support;
mod tc;
mod turns;
mod varied;
mod wire;
