//! The states of a session as a table: what may follow what. `docs/reference/tunnel.md` has it as a diagram made from here.

use serde::Serialize;

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No session. It answers who knocks.
    Idle,
    /// Hellos go out.
    Calling,
    /// The peer has answered; confirms go out until it is heard under the session's keys.
    Confirming,
    /// Packets pass.
    Up,
    /// Over, by our own will.
    Closed,
}

/// What happens to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// It is time to call the peer.
    Call,
    /// A welcome that answers our hello.
    Welcome,
    /// A confirm that answers our welcome.
    Confirm,
    /// Something sealed under the keys of the session.
    Heard,
    /// The peer takes its leave.
    Goodbye,
    /// Nothing was heard for too long, or confirms were not answered.
    Silence,
    /// The counter is near its end.
    Worn,
    /// The owner ends it.
    Stop,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] =
        [State::Idle, State::Calling, State::Confirming, State::Up, State::Closed];

    /// What follows; nothing where the input means nothing.
    pub fn next(self, input: Input) -> Option<State> {
        use Input::{Call, Confirm, Goodbye, Heard, Silence, Stop, Welcome, Worn};
        use State::{Calling, Closed, Confirming, Idle, Up};
        match (self, input) {
            (Closed, _) => None,
            (_, Stop) => Some(Closed),
            (Idle, Call) => Some(Calling),
            (Calling, Welcome) => Some(Confirming),
            // Also in `Up`: a peer that has started anew.
            (_, Confirm) => Some(Up),
            (Confirming, Heard) => Some(Up),
            (Up, Heard) => Some(Up),
            (Confirming, Silence) => Some(Idle),
            (Up, Goodbye | Silence | Worn) => Some(Idle),
            _ => None,
        }
    }
}

impl Input {
    /// All of them.
    pub const ALL: [Input; 8] = [
        Input::Call,
        Input::Welcome,
        Input::Confirm,
        Input::Heard,
        Input::Goodbye,
        Input::Silence,
        Input::Worn,
        Input::Stop,
    ];
}

/// The table as a Mermaid diagram.
pub fn diagram() -> String {
    let mut text = "stateDiagram-v2\n    [*] --> Idle\n".to_owned();
    for state in State::ALL {
        for to in State::ALL {
            let inputs = Input::ALL.iter().filter(|input| state.next(**input) == Some(to));
            let inputs: Vec<String> =
                inputs.map(|input| format!("{input:?}").to_lowercase()).collect();
            if !inputs.is_empty() {
                text += &format!("    {state:?} --> {to:?}: {}\n", inputs.join(", "));
            }
        }
    }
    text + "    Closed --> [*]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for state in State::ALL {
            let leaves = Input::ALL.iter().any(|i| state.next(*i).is_some_and(|to| to != state));
            assert_eq!(leaves, state != State::Closed, "{state:?}");
            let reached = State::ALL.iter().any(|from| {
                *from != state && Input::ALL.iter().any(|input| from.next(*input) == Some(state))
            });
            assert!(reached, "{state:?}");
        }
    }
}
