//! Tests of many runs and their stores. They are one program, which links once.

mod stores;
mod tables;
