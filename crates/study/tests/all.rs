//! Tests of studies. They are one program, which links once; those that take long are programs of their own.

mod compare;
mod field;
mod grid;
mod no_loss;
mod pftk;
mod replay;
