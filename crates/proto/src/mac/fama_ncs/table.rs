//! The state machine of a FAMA-NCS station as a table.

/// State of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The channel is quiet, and the station has no frame to send.
    Passive,
    /// The channel is quiet, a frame waits, and a random time runs.
    Backoff,
    /// An RTS is on the air or was sent; a CTS should follow.
    Rts,
    /// The radio turns around to send an RTS at once: the long answer of MAC acceleration.
    ToRts,
    /// The radio turns around to send a CTS.
    ToCts,
    /// A CTS is on the air.
    Cts,
    /// The radio turns around to send a data frame.
    ToXmit,
    /// A data frame is on the air.
    Xmit,
    /// The channel belongs to other stations, or may.
    Remote,
}

/// Event at a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The link layer hands over a frame.
    Request,
    /// The link layer answers the last frame with a load short enough to go without RTS.
    ShortAnswer,
    /// The link layer answers the last frame with a longer load.
    LongAnswer,
    /// The station begins to hear another one.
    Carrier,
    /// The state's timer expires while a frame waits.
    Expired,
    /// The state's timer expires, and no frame waits.
    ExpiredEmpty,
    /// An RTS for this station.
    Rts,
    /// A CTS for this station.
    Cts,
    /// A data frame for this station.
    Data,
    /// An RTS for another station.
    OtherRts,
    /// A CTS for another station.
    OtherCts,
    /// A data frame for another station.
    OtherData,
    /// An unreadable transmission, no longer than an RTS.
    Noise,
    /// An unreadable transmission, longer than an RTS: it may have hidden a CTS.
    LongNoise,
}

/// Action of the station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// No action; the timer continues.
    Nothing,
    /// Stop the timer.
    Rest,
    /// Start the timer with a random time.
    DrawBackoff,
    /// Start the timer with the turnaround time of the radio.
    TurnRound,
    /// Report WAIT to the link layer, then turn around.
    TellWait,
    /// Transmit an RTS; the timer runs until the CTS is due.
    SendRts,
    /// Transmit a CTS; the timer runs until it is sent.
    SendCts,
    /// Report TRANS to the link layer and transmit its frame; the timer runs until it is sent.
    SendData,
    /// Report to the link layer that its frame is sent, then wait until an answer must have begun.
    Finish,
    /// Deliver the frame, then wait until an answer must have begun.
    HandUp,
    /// Wait until an answer must have begun.
    LeaveAnswer,
    /// Wait for the duration of a CTS.
    LeaveCts,
    /// Wait for the time that the CTS claims for a data frame.
    LeaveData,
    /// Wait for the duration of the longest data frame.
    LeaveLongest,
}

/// Next state and action.
pub type Rule = (State, Action);

type Row = (&'static [State], &'static [Event], State, Action);

use Action as A;
use Event as E;
use State as S;

const EITHER: &[Event] = &[E::Expired, E::ExpiredEmpty];
/// States that accept frames. In PASSIVE and BACKOFF the carrier precedes the frame.
const LISTENING: &[State] = &[S::Rts, S::Remote];

/// The rules. All other combinations change nothing: a station that sends or turns around hears nothing.
const ROWS: &[Row] = &[
    (&[S::Passive], &[E::Request], S::Rts, A::SendRts),
    (&[S::Remote], &[E::Request], S::Remote, A::Nothing),
    (&[S::Remote], &[E::ShortAnswer], S::ToXmit, A::TurnRound),
    (&[S::Remote], &[E::LongAnswer], S::ToRts, A::TurnRound),
    (&[S::Passive, S::Backoff, S::Remote], &[E::Carrier], S::Remote, A::Rest),
    (&[S::Backoff], &[E::Expired], S::Rts, A::SendRts),
    (&[S::Rts], &[E::Expired], S::Backoff, A::DrawBackoff),
    (&[S::ToRts], &[E::Expired], S::Rts, A::SendRts),
    (&[S::ToCts], EITHER, S::Cts, A::SendCts),
    (&[S::Cts], EITHER, S::Remote, A::LeaveAnswer),
    (&[S::ToXmit], &[E::Expired], S::Xmit, A::SendData),
    (&[S::Xmit], EITHER, S::Remote, A::Finish),
    (&[S::Remote], &[E::Expired], S::Backoff, A::DrawBackoff),
    (&[S::Remote], &[E::ExpiredEmpty], S::Passive, A::Rest),
    (&[S::Rts], &[E::Cts], S::ToXmit, A::TurnRound),
    (&[S::Remote], &[E::Cts], S::Remote, A::LeaveData),
    (LISTENING, &[E::Rts], S::ToCts, A::TellWait),
    (LISTENING, &[E::Data], S::Remote, A::HandUp),
    (LISTENING, &[E::OtherRts], S::Remote, A::LeaveCts),
    (LISTENING, &[E::OtherCts], S::Remote, A::LeaveData),
    (LISTENING, &[E::OtherData], S::Remote, A::LeaveAnswer),
    (&[S::Remote], &[E::Noise], S::Remote, A::LeaveAnswer),
    (&[S::Rts], &[E::Noise], S::Rts, A::Nothing),
    (LISTENING, &[E::LongNoise], S::Remote, A::LeaveLongest),
];

const STATES: usize = State::ALL.len();
const EVENTS: usize = Event::ALL.len();

/// [`ROWS`] by state and event.
const TABLE: [[Option<Rule>; EVENTS]; STATES] = {
    let mut table = [[None; EVENTS]; STATES];
    let mut row = 0;
    while row < ROWS.len() {
        let (states, events, next, action) = ROWS[row];
        let mut s = 0;
        while s < states.len() {
            let mut e = 0;
            while e < events.len() {
                let slot = &mut table[states[s] as usize][events[e] as usize];
                assert!(slot.is_none(), "two rules for one event in one state");
                *slot = Some((next, action));
                e += 1;
            }
            s += 1;
        }
        row += 1;
    }
    table
};

/// Next state and action for `event` in `state`; `None` if the event is ignored.
pub fn rule(state: State, event: Event) -> Option<Rule> {
    TABLE[state as usize][event as usize]
}

impl State {
    /// Every state.
    pub const ALL: [State; 9] =
        [S::Passive, S::Backoff, S::Rts, S::ToRts, S::ToCts, S::Cts, S::ToXmit, S::Xmit, S::Remote];
}

impl Event {
    /// Every event.
    pub const ALL: [Event; 14] = [
        E::Request,
        E::ShortAnswer,
        E::LongAnswer,
        E::Carrier,
        E::Expired,
        E::ExpiredEmpty,
        E::Rts,
        E::Cts,
        E::Data,
        E::OtherRts,
        E::OtherCts,
        E::OtherData,
        E::Noise,
        E::LongNoise,
    ];
}
