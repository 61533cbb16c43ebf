//! Campaigns of faults: what no test of one thing would think of is tried in large numbers.
//!
//! [`text`] makes scenarios that are valid and meant badly: every key of every part at its extremes. [`examine`] runs
//! one and says what is wrong with it. The program runs many of them in processes of their own, so that a crash, a hang
//! or too much memory costs one case and is counted (`make campaign`). [`kills`] kills a
//! sweep again and again, and looks whether anything is lost; [`stations`] does that to stations
//! under load, [`tunnels`] and [`testbeds`] to those; [`disk`] lets commands write to disks that are full, [`memory`] lets
//! them have too little of it, and [`clock`] lets the wall clock jump.

pub mod clock;
pub mod disk;
pub mod examine;
pub mod kills;
pub mod memory;
pub mod report;
pub mod stations;
pub mod testbeds;
pub mod text;
pub mod tunnels;
pub mod workers;
