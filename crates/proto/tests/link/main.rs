//! Link layers over a medium whose losses, delays and copies are scripted.

mod codec;
mod long_hop;
mod support;
mod tulip_figure6;
mod tulip_gigabit;
mod tulip_properties;
mod tulip_states;
