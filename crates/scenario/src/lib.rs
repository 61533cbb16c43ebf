//! What to run: a scenario file becomes a validated [`Scenario`], and that a list of [`plan::Run`]s.

pub mod model;

pub use model::{
    CrossTraffic, ErrorSpec, Host, HostSide, RadioStage, Scenario, Stage, StageKind, Transfer,
};
