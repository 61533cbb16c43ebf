//! Tests of captures. They are one program, which links once.

mod capture;
mod tshark;

#[path = "../../checks/shared/can_run.rs"]
mod can_run;
