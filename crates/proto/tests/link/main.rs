//! Link layers over a medium whose losses, delays and copies are scripted.

mod support;
mod tulip_figure6;
