//! The states of an end as tables: what they are, what leads from one to the other, and a drawing of it.
//!
//! The tables say nothing that the machine does not do, and all that it does: a test compares the two. They are for
//! the paper's pacing, in which the stations take turns.

use serde::Serialize;

/// What a sender is at, with respect to one destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum SendState {
    /// Nothing is unacknowledged.
    Idle,
    /// A reliable packet is with medium access, which waits for the channel.
    Handed,
    /// Timer T1 runs: the channel is left to the answer.
    Waiting,
    /// Packets are unacknowledged, and it is this end's turn.
    Ready,
}

/// What changes a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum SendEvent {
    /// A reliable packet is chosen and handed to medium access.
    Choose,
    /// TRANS: medium access begins to send it.
    Trans,
    /// Medium access gives the packet up without having sent it.
    Refused,
    /// An acknowledgement comes.
    Lack,
    /// T1 expires, WAIT included.
    T1,
}

/// What a receiver is at, with respect to one sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum ReceiveState {
    /// Everything received has been handed up.
    InOrder,
    /// Packets wait for one that is missing.
    Gap,
}

/// What changes a receiver; each is answered with a LACK.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum ReceiveEvent {
    /// The packet that is next in order.
    Next,
    /// A packet behind a missing one.
    Ahead,
    /// A packet that has come before.
    Again,
}

/// A row: from, event, to, and what is done.
pub type Row<S, E> = (S, E, S, &'static str);

use ReceiveEvent::{Again, Ahead, Next};
use ReceiveState::{Gap, InOrder};
use SendEvent::{Choose, Lack, Refused, T1, Trans};
use SendState::{Handed, Idle, Ready, Waiting};

/// The sender of one destination.
pub const SENDER: [Row<SendState, SendEvent>; 14] = [
    (Idle, Choose, Handed, "a new packet"),
    (Idle, Lack, Idle, "nothing is left to acknowledge"),
    (Handed, Trans, Waiting, "T1 starts"),
    (Handed, Refused, Ready, "the oldest may go again"),
    (Handed, Lack, Handed, "the list is made anew"),
    (Waiting, Lack, Idle, "T1 is stopped, all is acknowledged"),
    (Waiting, Lack, Ready, "T1 is stopped, the list is made anew"),
    (Waiting, Lack, Waiting, "a late one: the list is made anew"),
    (Waiting, Choose, Handed, "a packet goes with an acknowledgement that is owed"),
    (Waiting, T1, Ready, "no answer came"),
    (Waiting, T1, Idle, "it was acknowledged before it was sent again"),
    (Ready, Choose, Handed, "from the list, else a new one, else the oldest"),
    (Ready, Lack, Idle, "all is acknowledged"),
    (Ready, Lack, Ready, "the list is made anew"),
];

/// The receiver of one sender.
pub const RECEIVER: [Row<ReceiveState, ReceiveEvent>; 7] = [
    (InOrder, Next, InOrder, "handed up"),
    (InOrder, Ahead, Gap, "kept, its bit set"),
    (InOrder, Again, InOrder, "dropped"),
    (Gap, Next, InOrder, "handed up with all that waited for it"),
    (Gap, Next, Gap, "handed up with what is in order behind it"),
    (Gap, Ahead, Gap, "kept, its bit set"),
    (Gap, Again, Gap, "dropped"),
];

fn drawn<S: core::fmt::Debug, E: core::fmt::Debug>(title: &str, rows: &[Row<S, E>]) -> String {
    let mut text = format!("{title}\n\n```mermaid\nstateDiagram-v2\n");
    for (from, event, to, _) in rows {
        text += &format!("    {from:?} --> {to:?}: {event:?}\n");
    }
    text += "```\n\n| state | event | next | |\n|---|---|---|---|\n";
    for (from, event, to, what) in rows {
        text += &format!("| {from:?} | {event:?} | {to:?} | {what} |\n");
    }
    text
}

/// Both tables as they stand in the manual.
pub fn markdown() -> String {
    let sender = drawn("The sender, for each destination:", &SENDER);
    format!(
        "{sender}\n{}",
        drawn("The receiver, for each sender; every event is answered:", &RECEIVER)
    )
}
