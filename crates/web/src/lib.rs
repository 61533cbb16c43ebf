//! The laboratory's engine: answers the questions of the page.
//!
//! Question and answer are [envelopes](envelope) of bytes. The page runs this crate as a WebAssembly module, by the
//! functions below, which copy and import nothing. `lasthop lab` answers the same questions natively, by [`answer`].
//! Both give the same bytes.
//!
//! Any input gets an answer, possibly an error. Runs and their records are bounded, and an answer reports a cut-off.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod ask;
mod band;
mod capture;
mod check;
pub mod envelope;
mod event;
mod files;
mod look;
mod marks;
mod request;
mod rows;
mod run;
mod words;

pub use ask::answer;
pub use request::ErrorAnswer;
pub use rows::MOST_ROWS;
pub use run::MOST_EVENTS;

use std::sync::Mutex;

/// The question, and then the answer, at an address that the page reads.
static HELD: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Allocates a buffer for a question of `len` bytes and returns its address.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_room(len: usize) -> *mut u8 {
    let Ok(mut held) = HELD.lock() else { return core::ptr::null_mut() };
    held.clear();
    held.resize(len, 0);
    held.as_mut_ptr()
}

/// Answers the question and returns the length of the answer.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_answer() -> usize {
    let Ok(mut held) = HELD.lock() else { return 0 };
    *held = answer(&held);
    held.len()
}

/// The address of the answer, valid until the next question.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_answered() -> *const u8 {
    HELD.lock().map_or(core::ptr::null(), |held| held.as_ptr())
}
