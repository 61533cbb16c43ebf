//! Link layers over a medium whose losses, delays and copies are scripted.

mod codec;
mod support;
mod tulip_figure6;
mod tulip_properties;
