//! Tests of the analysis. They are one program, which links once; `memory.rs` measures a process of its own.

#[path = "../../checks/shared/can_run.rs"]
mod can_run;
#[path = "common/links.rs"]
mod links;
#[path = "common/packets.rs"]
mod packets;
#[path = "common/wrap.rs"]
mod wrap;

mod acks_alone;
mod causes;
mod common;
mod conclusions;
mod copies;
mod diagnose;
mod elsewhere;
mod encapsulated;
mod field;
mod files;
mod kinds;
mod limits;
mod matched;
mod missing;
mod multipath;
mod openings;
mod over_time;
mod pieces;
mod policed;
mod rarely_seen;
mod snapped;
mod stripped;
mod super_segments;
mod tshark;
mod verdict;
mod waits;
