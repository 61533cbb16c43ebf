//! Presentation of results: tables for terminals, plots as SVG, PNG and PDF, and a self-contained
//! HTML page.
//!
//! The crate writes no files: functions return text or bytes. The same input gives the same bytes.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

pub mod data;
pub mod estimate;
pub mod html;
pub mod model;
pub mod number;
pub mod plot;
mod script;
pub mod table;
pub mod wrap;
