//! The states of a connection (RFC 9293 section 3.3.2) as one table.

use serde::Serialize;

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No connection.
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// This end closed first; its FIN is not acknowledged.
    FinWait1,
    /// This end's FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed first; this end may still send.
    CloseWait,
    /// Both closed; this end's FIN is not acknowledged.
    Closing,
    /// The peer closed first; this end's FIN is not acknowledged.
    LastAck,
    /// Both closed; late segments are answered for a while.
    TimeWait,
}

/// Event that changes the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Input {
    /// The application opens actively; a SYN is sent.
    Open,
    /// A SYN arrives.
    Syn,
    /// A SYN arrives that acknowledges this end's SYN.
    SynAck,
    /// This end's SYN is acknowledged.
    SynAcked,
    /// This end's FIN is sent.
    FinSent,
    /// This end's FIN is acknowledged.
    FinAcked,
    /// The peer's FIN arrives in order.
    Fin,
    /// TIME-WAIT is over.
    Expired,
    /// A valid RST, or too many timeouts.
    Abort,
}

impl State {
    /// The state after `input`; `None` if it is invalid in this state.
    pub fn after(self, input: Input) -> Option<State> {
        use State::*;
        Some(match (self, input) {
            (Closed, Input::Open) => SynSent,
            (Closed, Input::Syn) => SynReceived,
            (Closed, _) => return None,
            (_, Input::Abort) => Closed,
            (SynSent, Input::Syn) => SynReceived,
            (SynSent, Input::SynAck) => Established,
            (SynReceived, Input::SynAcked) => Established,
            (SynReceived | Established, Input::FinSent) => FinWait1,
            (Established, Input::Fin) => CloseWait,
            (FinWait1, Input::FinAcked) => FinWait2,
            (FinWait1, Input::Fin) => Closing,
            (FinWait2, Input::Fin) => TimeWait,
            (Closing, Input::FinAcked) => TimeWait,
            (CloseWait, Input::FinSent) => LastAck,
            (LastAck, Input::FinAcked) => Closed,
            (TimeWait, Input::Expired) => Closed,
            _ => return None,
        })
    }

    /// Whether data may be sent and acknowledged: the handshake is done.
    pub fn is_synchronised(self) -> bool {
        !matches!(self, State::Closed | State::SynSent | State::SynReceived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state, in the order of a connection's life.
    const STATES: [State; 10] = [
        State::Closed,
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
    ];

    const INPUTS: [Input; 9] = [
        Input::Open,
        Input::Syn,
        Input::SynAck,
        Input::SynAcked,
        Input::FinSent,
        Input::FinAcked,
        Input::Fin,
        Input::Expired,
        Input::Abort,
    ];

    /// The whole matrix, so that review shows a change of any transition.
    #[test]
    fn the_transition_matrix() {
        let rows: Vec<String> = STATES
            .iter()
            .map(|state| {
                let cells: Vec<String> = INPUTS
                    .iter()
                    .filter_map(|i| state.after(*i).map(|to| format!("{i:?}>{to:?}")))
                    .collect();
                format!("{state:?}: {}", cells.join(" "))
            })
            .collect();
        let want = [
            "Closed: Open>SynSent Syn>SynReceived",
            "SynSent: Syn>SynReceived SynAck>Established Abort>Closed",
            "SynReceived: SynAcked>Established FinSent>FinWait1 Abort>Closed",
            "Established: FinSent>FinWait1 Fin>CloseWait Abort>Closed",
            "FinWait1: FinAcked>FinWait2 Fin>Closing Abort>Closed",
            "FinWait2: Fin>TimeWait Abort>Closed",
            "CloseWait: FinSent>LastAck Abort>Closed",
            "Closing: FinAcked>TimeWait Abort>Closed",
            "LastAck: FinAcked>Closed Abort>Closed",
            "TimeWait: Expired>Closed Abort>Closed",
        ];
        assert_eq!(rows, want);
    }
}
