//! The laboratory's engine: what a page asks, and what it is answered.
//!
//! A question is an [envelope] of bytes, and so is the answer. The page hands questions to this crate compiled to
//! WebAssembly, by the functions below that copy nothing and import nothing; `lasthop lab` answers the same questions
//! natively, by [`answer`]. Both give the same bytes.
//!
//! Any bytes are answered, if only with an error. Runs and their records are bounded, and an answer that was cut says so.

mod ask;
mod band;
mod capture;
mod check;
pub mod envelope;
mod event;
mod files;
mod look;
mod marks;
mod rows;
mod run;
mod words;

pub use ask::{Failed, answer};
pub use run::{MOST_EVENTS, MOST_ROWS};

use std::sync::Mutex;

/// The question, and then the answer, where a page finds it in memory.
static HELD: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a question of `len` bytes, and says where to put it.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_room(len: usize) -> *mut u8 {
    let Ok(mut held) = HELD.lock() else { return core::ptr::null_mut() };
    held.clear();
    held.resize(len, 0);
    held.as_mut_ptr()
}

/// Answers the question. Says how long the answer is.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_answer() -> usize {
    let Ok(mut held) = HELD.lock() else { return 0 };
    *held = answer(&held);
    held.len()
}

/// Where the answer stands, until the next question.
#[expect(unsafe_code, reason = "an exported name; nothing else in the module has it")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_answered() -> *const u8 {
    HELD.lock().map_or(core::ptr::null(), |held| held.as_ptr())
}
