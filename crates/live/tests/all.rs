//! Tests of stations and of the stages on real packets. They are one program, which links once; `.ci/lanes` distributes their modules
//! over lanes. Tests that need a process without threads are programs of their own.

mod alike;
mod attack;
mod control;
mod endings;
mod endpoint;
mod fail_open;
mod feedback;
mod frames;
mod hostile;
mod hosts;
mod numbers;
mod plane;
mod properties;
mod subscribers;
mod tamper;
mod vanishing;

mod common;
#[path = "support/frames_net.rs"]
mod frames_net;
#[path = "../../checks/shared/record.rs"]
mod record;
