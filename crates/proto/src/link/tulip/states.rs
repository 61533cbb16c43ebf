//! The states of an end as tables, and their drawing.
//!
//! A test verifies that the tables match the machine exactly. They describe the paper's pacing, in which the
//! stations take turns.

use serde::Serialize;

/// State of a sender for one destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum SendState {
    /// All packets are acknowledged.
    Idle,
    /// A reliable packet is at medium access, which waits for the channel.
    Handed,
    /// Timer T1 runs: the channel is left to the answer.
    Waiting,
    /// There are unacknowledged packets, and it is this end's turn.
    Ready,
}

/// Events of a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum SendEvent {
    /// A reliable packet is chosen and passed to medium access.
    Choose,
    /// TRANS: medium access starts to send it.
    Trans,
    /// Medium access gives up the packet without sending it.
    Refused,
    /// An acknowledgement arrives.
    Lack,
    /// T1 expires, including WAIT.
    T1,
}

/// State of a receiver for one sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum ReceiveState {
    /// All received packets were delivered.
    InOrder,
    /// Packets wait for a missing one.
    Gap,
}

/// Events of a receiver; each is answered with a LACK.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum ReceiveEvent {
    /// The next packet in order.
    Next,
    /// A packet behind a missing one.
    Ahead,
    /// A duplicate packet.
    Again,
}

/// A row: state, event, next state, and action.
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
    (Handed, Lack, Handed, "the list is rebuilt"),
    (Waiting, Lack, Idle, "T1 is stopped, all is acknowledged"),
    (Waiting, Lack, Ready, "T1 is stopped, the list is rebuilt"),
    (Waiting, Lack, Waiting, "a late one: the list is rebuilt"),
    (Waiting, Choose, Handed, "a packet is sent with a pending acknowledgement"),
    (Waiting, T1, Ready, "no answer arrived"),
    (Waiting, T1, Idle, "it was acknowledged before it was retransmitted"),
    (Ready, Choose, Handed, "from the list, else a new one, else the oldest"),
    (Ready, Lack, Idle, "all is acknowledged"),
    (Ready, Lack, Ready, "the list is rebuilt"),
];

/// The receiver of one sender.
pub const RECEIVER: [Row<ReceiveState, ReceiveEvent>; 7] = [
    (InOrder, Next, InOrder, "delivered"),
    (InOrder, Ahead, Gap, "stored, its bit set"),
    (InOrder, Again, InOrder, "dropped"),
    (Gap, Next, InOrder, "delivered, with all packets that waited for it"),
    (Gap, Next, Gap, "delivered, with the packets that follow it in order"),
    (Gap, Ahead, Gap, "stored, its bit set"),
    (Gap, Again, Gap, "dropped"),
];

fn drawn<S: core::fmt::Debug, E: core::fmt::Debug>(title: &str, rows: &[Row<S, E>]) -> String {
    let mut text = format!("{title}\n\n```mermaid\nstateDiagram-v2\n");
    for (from, event, to, _) in rows {
        text += &format!("    {from:?} --> {to:?}: {event:?}\n");
    }
    text += "```\n\n| state | event | next | |\n|---|---|---|---|\n";
    for (from, event, to, meaning) in rows {
        text += &format!("| {from:?} | {event:?} | {to:?} | {meaning} |\n");
    }
    text
}

/// Both tables in the format of the manual.
pub fn markdown() -> String {
    let sender = drawn("The sender, for each destination:", &SENDER);
    format!(
        "{sender}\n{}",
        drawn("The receiver, for each sender; it answers every event:", &RECEIVER)
    )
}
