//! From numbers to something a person can read: terminal tables, plots as SVG and PNG, and one
//! self-contained HTML page.
//!
//! Nothing here touches a file: functions return text or bytes, and the caller decides where they go.
//! The same input gives the same bytes.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod cpu_tables;
pub mod data;
pub mod html;
pub mod model;
pub mod number;
pub mod plot;
mod script;
pub mod table;
pub mod wrap;
