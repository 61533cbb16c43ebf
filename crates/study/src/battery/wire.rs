//! Messages of a report: requests and answers above UDP or TCP.
//!
//! Sizes of handshakes and records are from draft-ietf-iotops-security-protocol-comparison-07, for DTLS 1.3 and TLS
//! 1.3 with secp256r1, ECDSA and CCM_8. A full handshake has raw public keys at both ends, a resumption a
//! pre-shared key with ECDHE. Certificate chains would add one to three kilobytes to a full handshake.

use serde::Serialize;

/// The protocol of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// CoAP over UDP: one confirmable POST (RFC 7252).
    Coap,
    /// MQTT 3.1.1 over TCP: one PUBLISH with quality of service 1.
    Mqtt,
}

/// The security cost of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// No protection; with MQTT each report opens a connection.
    None,
    /// A full handshake for each report.
    Full,
    /// A resumed session for each report.
    Resumed,
    /// The session outlives sleep: with DTLS by its connection id (RFC 9146), with TLS by a persistent connection.
    Kept,
}

/// A message and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    /// Bytes sent by the device, without headers of IP, UDP and TCP.
    pub request: u64,
    /// Bytes of the answer.
    pub response: u64,
    /// Datagrams of the request, with UDP.
    pub datagrams: u64,
    /// Part of a handshake, which has a slower timer than CoAP.
    pub handshake: bool,
}

/// Header 4, token 4, option Uri-Path of five characters 6, Content-Format 2, payload marker 1 (RFC 7252, 3).
const COAP: u64 = 17;
/// Header and token of an answer without payload.
const COAP_ANSWER: u64 = 8;
/// CONNECT: fixed header 2, variable header 10, client identifier of 12 characters 14 (MQTT 3.1.1, 3.1).
const CONNECT: u64 = 26;
/// PUBLISH: fixed header 2, topic of ten characters 12, packet identifier 2 (MQTT 3.1.1, 3.3).
const PUBLISH: u64 = 16;
/// CONNACK and PUBACK.
const MQTT_ANSWER: u64 = 4;

/// Bytes added by a record: content type, header and tag.
fn record(over: Over, session: Session) -> u64 {
    match (session, over) {
        (Session::None, _) => 0,
        (Session::Kept, Over::Coap) => 12,
        (_, Over::Coap) => 11,
        (_, Over::Mqtt) => 14,
    }
}

/// Bytes of the three flights of a handshake, if there is one.
fn flights(over: Over, session: Session) -> Option<[u64; 3]> {
    match (session, over) {
        (Session::None | Session::Kept, _) => None,
        (Session::Full, Over::Coap) => Some([179, 447, 254]),
        (Session::Full, Over::Mqtt) => Some([162, 394, 233]),
        (Session::Resumed, Over::Coap) => Some([213, 219, 55]),
        (Session::Resumed, Over::Mqtt) => Some([196, 190, 50]),
    }
}

/// The messages of a report of `bytes`, in order. The device's data is in its last flight of the handshake.
pub fn steps(over: Over, session: Session, bytes: u64) -> Vec<Step> {
    let record = record(over, session);
    let step = |request: u64, response: u64| Step {
        request: request + record,
        response: response + record,
        datagrams: 1,
        handshake: false,
    };
    let mut steps = match over {
        Over::Coap => vec![step(COAP + bytes, COAP_ANSWER)],
        Over::Mqtt if session == Session::Kept => vec![step(PUBLISH + bytes, MQTT_ANSWER)],
        Over::Mqtt => vec![step(CONNECT, MQTT_ANSWER), step(PUBLISH + bytes, MQTT_ANSWER)],
    };
    if let Some([first, second, third]) = flights(over, session) {
        steps[0].request += third;
        steps[0].datagrams = 2;
        let opening = Step { request: first, response: second, datagrams: 1, handshake: true };
        steps.insert(0, opening);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(over: Over, session: Session) -> Vec<(u64, u64)> {
        steps(over, session, 50).iter().map(|s| (s.request, s.response)).collect()
    }

    #[test]
    fn handshakes_are_as_long_as_the_draft_counts() {
        // Totals of the draft: DTLS 1.3 880 and 487 bytes, TLS 1.3 789 and 436.
        for (over, session, total) in [
            (Over::Coap, Session::Full, 880),
            (Over::Coap, Session::Resumed, 487),
            (Over::Mqtt, Session::Full, 789),
            (Over::Mqtt, Session::Resumed, 436),
        ] {
            assert_eq!(flights(over, session).map(|f| f.iter().sum()), Some(total));
        }
    }

    #[test]
    fn a_report_has_its_headers_records_and_handshake() {
        assert_eq!(sizes(Over::Coap, Session::None), [(67, 8)]);
        assert_eq!(sizes(Over::Coap, Session::Kept), [(79, 20)]);
        assert_eq!(sizes(Over::Coap, Session::Full), [(179, 447), (254 + 67 + 11, 19)]);
        assert_eq!(sizes(Over::Mqtt, Session::None), [(26, 4), (66, 4)]);
        assert_eq!(sizes(Over::Mqtt, Session::Kept), [(80, 18)]);
        assert_eq!(sizes(Over::Mqtt, Session::Resumed), [(196, 190), (50 + 40, 18), (80, 18)]);
    }
}
