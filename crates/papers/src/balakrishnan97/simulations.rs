//! The simulations of section 4: common hosts and sizes, and the path of each topology.

pub(super) const ASYMMETRIC: &str =
    concat!(include_str!("simulated.toml"), include_str!("asymmetric.toml"));
pub(super) const FIGURE_5: &str =
    concat!(include_str!("simulated.toml"), include_str!("figure_5.toml"));
pub(super) const RADIO: &str = concat!(include_str!("simulated.toml"), include_str!("radio.toml"));
