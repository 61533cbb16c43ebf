//! The states of a session as a transition table. `docs/reference/tunnel.md` has the diagram generated from it.

use serde::Serialize;

/// State of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No session. The end answers calls.
    Idle,
    /// Hellos are sent.
    Calling,
    /// The peer has answered; confirms are sent until a message arrives under the session's keys.
    Confirming,
    /// Packets pass.
    Up,
    /// Ended by this end.
    Closed,
}

/// Event of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A call to the peer is due.
    Call,
    /// A welcome in response to this end's hello.
    Welcome,
    /// A confirm in response to this end's welcome.
    Confirm,
    /// A message sealed under the keys of the session.
    Heard,
    /// The peer's goodbye.
    Goodbye,
    /// No message for too long, or unanswered confirms.
    Silence,
    /// The counter is near its limit.
    Worn,
    /// The owner ends the session.
    Stop,
}

impl State {
    /// Next state; `None` where the input is ignored.
    pub fn next(self, input: Input) -> Option<State> {
        use Input::{Call, Confirm, Goodbye, Heard, Silence, Stop, Welcome, Worn};
        use State::{Calling, Closed, Confirming, Idle, Up};
        match (self, input) {
            (Closed, _) => None,
            (_, Stop) => Some(Closed),
            (Idle, Call) => Some(Calling),
            (Calling, Welcome) => Some(Confirming),
            // Also in `Up`: a peer that has restarted.
            (_, Confirm) => Some(Up),
            (Confirming, Heard) => Some(Up),
            (Up, Heard) => Some(Up),
            (Confirming, Silence) => Some(Idle),
            (Up, Goodbye | Silence | Worn) => Some(Idle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 5] =
        [State::Idle, State::Calling, State::Confirming, State::Up, State::Closed];

    const INPUTS: [Input; 8] = [
        Input::Call,
        Input::Welcome,
        Input::Confirm,
        Input::Heard,
        Input::Goodbye,
        Input::Silence,
        Input::Worn,
        Input::Stop,
    ];

    /// The table as a Mermaid diagram.
    fn diagram() -> String {
        let mut text = "stateDiagram-v2\n    [*] --> Idle\n".to_owned();
        for state in STATES {
            for to in STATES {
                let inputs = INPUTS.iter().filter(|input| state.next(**input) == Some(to));
                let inputs: Vec<String> =
                    inputs.map(|input| format!("{input:?}").to_lowercase()).collect();
                if !inputs.is_empty() {
                    text += &format!("    {state:?} --> {to:?}: {}\n", inputs.join(", "));
                }
            }
        }
        text + "    Closed --> [*]\n"
    }

    #[test]
    fn the_documentation_shows_this_table() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tunnel.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        assert!(
            docs.contains(&diagram()),
            "put this into docs/reference/tunnel.md:\n{}",
            diagram()
        );
    }

    #[test]
    fn every_state_but_the_last_can_be_left_and_reached() {
        for state in STATES {
            let leaves = INPUTS.iter().any(|i| state.next(*i).is_some_and(|to| to != state));
            assert_eq!(leaves, state != State::Closed, "{state:?}");
            let reached = STATES.iter().any(|from| {
                *from != state && INPUTS.iter().any(|input| from.next(*input) == Some(state))
            });
            assert!(reached, "{state:?}");
        }
    }
}
