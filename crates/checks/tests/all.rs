//! Checks of the whole project. They are one program, which links once.

#[path = "../shared/can_run.rs"]
mod can_run;
mod citations;
mod dependencies;
mod documents;
mod language;
mod modules;
mod requirements;
mod schema;
mod size;
