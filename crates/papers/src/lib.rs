//! The papers: their systems, and what they claim.

pub mod systems;
