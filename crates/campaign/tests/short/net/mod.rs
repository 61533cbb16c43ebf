//! A net over what all systems do: figures of many small runs, kept in `tests/net`, a block for each system. A change of
//! behaviour changes them; what differs is told system by system, figure by figure. To change them on purpose:
//! `make figures`.

mod cases;
mod kept;
mod observed;
mod systems;
mod texts;
mod traces;

use kept::{Block, Digest, keep};
