//! The protocol of the control socket: one JSON object per line, one answer per request.
//!
//! ```text
//! {"do":"get","key":"agent"}                       {"value":"snoop"}
//! {"do":"set","values":["agent=none"]}             {"changed":{"settings":[{"key":"agent", ...
//! {"do":"set","values":["agent=none"],"endings":"drain"}
//! {"do":"status"}                                  {"status":{"version":"0.1.0", ...
//! {"do":"subscribers","by":"loss","top":10}        {"subscribers":{"followed":312, ...
//! ```
//!
//! Requests carry no version, and both sides may have different ones. Existing names and meanings never
//! change; new requests, keys and answers are added. A station refuses an unknown request or an unknown key
//! in a request before it does anything, and reports its version. A client ignores unknown keys of an answer.
//! It reports the station's version if it understands no answer ([`Response::parse`]).

use std::fmt;

use lasthop_scenario::{Error, Setting, Source};
use serde::{Deserialize, Serialize};

use lasthop_observe::subscribers::{Order, Prefix};

pub use crate::status::{Counts, PortStatus, StageStatus, Status, TunnelStatus};
pub use crate::subscribers::SubscriberList;

/// Size limit of a request, bytes.
pub const MAX_REQUEST: usize = 16 << 10;

/// Version of this side.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Limit of values in one request.
pub const MAX_VALUES: usize = 64;

/// Limit of subscribers in one answer, so that it stays below the size limit of answers.
pub const MAX_SUBSCRIBERS: usize = 10_000;

/// A request of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The whole status.
    Status {},
    /// The value of one key of the path.
    Get {
        /// The key, as `--set` takes it.
        key: String,
    },
    /// Changes of the path, all or none.
    Set {
        /// Each of the form `KEY=VALUE`.
        values: Vec<String>,
        /// Treatment of connections that end at a replaced agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endings: Option<Endings>,
    },
    /// Subscribers with their figures.
    Subscribers {
        /// Their order.
        #[serde(default)]
        by: Order,
        /// Number of subscribers; at most [`MAX_SUBSCRIBERS`].
        #[serde(default = "default_subscribers")]
        top: usize,
        /// Only those within this prefix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Prefix>,
    },
}

fn default_subscribers() -> usize {
    MAX_SUBSCRIBERS
}

/// Treatment of connections that end at a replaced agent (split connections).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endings {
    /// Both hosts receive a reset.
    Reset,
    /// They remain at the old agent until they close; the new agent handles all others.
    Drain,
}

impl Request {
    /// Parses a line.
    ///
    /// # Errors
    /// If the line is no valid request. The help describes one.
    pub fn parse(line: &[u8]) -> Result<Request, Trouble> {
        let trouble = |message: String| Trouble {
            code: "bad-request".to_owned(),
            message,
            key: String::new(),
            help: format!(
                "a request is one line of JSON, for example {{\"do\":\"get\",\"key\":\"agent\"}} or \
                 {{\"do\":\"set\",\"values\":[\"agent=snoop\"]}} or {{\"do\":\"status\"}}; this is lasthop \
                 {VERSION}, and other versions may have other requests"
            ),
            at: None,
        };
        if line.len() > MAX_REQUEST {
            return Err(trouble(format!("the request is longer than {MAX_REQUEST} bytes")));
        }
        let request: Request = serde_json::from_slice(line)
            .map_err(|error| trouble(format!("no request: {error}")))?;
        match &request {
            Request::Set { values, .. } if values.is_empty() => {
                Err(trouble("nothing to set".to_owned()))
            }
            Request::Set { values, .. } if values.len() > MAX_VALUES => {
                Err(trouble(format!("more than {MAX_VALUES} values at once")))
            }
            Request::Subscribers { top, .. } if *top > MAX_SUBSCRIBERS => {
                Err(trouble(format!("more than {MAX_SUBSCRIBERS} subscribers at once")))
            }
            _ => Ok(request),
        }
    }
}

/// An answer of the station.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The status of a station.
    Status(Box<Status>),
    /// The status of a tunnel.
    Link(Box<TunnelStatus>),
    /// The value of a key in the form that `--set` accepts; `None` means the default.
    Value(Option<String>),
    /// The changes made.
    Changed(Changed),
    /// The requested subscribers.
    Subscribers(Box<SubscriberList>),
    /// A rejected request.
    Error(Trouble),
}

impl Response {
    /// Parses a line.
    ///
    /// # Errors
    /// If this version does not understand the line; with the station's version, where the line contains it.
    pub fn parse(line: &[u8]) -> Result<Response, String> {
        serde_json::from_slice(line).map_err(|error| {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            let version =
                ["status", "link"].iter().find_map(|answer| value[answer]["version"].as_str());
            let who = version
                .map_or("of another version".to_owned(), |version| format!("lasthop {version}"));
            format!("lasthop {VERSION} cannot parse the answer; is the station {who}? ({error})")
        })
    }
}

/// The changes of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The keys with their old and new values.
    pub settings: Vec<Setting>,
    /// Warnings about probable mistakes.
    pub warnings: Vec<String>,
    /// Packets lost with the state of a replaced agent; replaced links lose none.
    pub lost: usize,
    /// Treatment and number of connections that ended at a replaced agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endings: Option<(Endings, usize)>,
}

/// A rejected request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trouble {
    /// A stable identifier for scripts.
    pub code: String,
    /// The problem, as a sentence.
    pub message: String,
    /// The key concerned; empty if there is none.
    pub key: String,
    /// The expected form, with an example.
    pub help: String,
    /// Location of the error, if one of the values is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// A byte range in one value of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct At {
    /// Index of the value, from 0.
    pub value: u32,
    /// First byte.
    pub from: u32,
    /// First byte after the range.
    pub to: u32,
}

impl Trouble {
    pub(crate) fn new(code: &str, message: impl Into<String>, help: impl Into<String>) -> Trouble {
        Trouble {
            code: code.to_owned(),
            message: message.into(),
            key: String::new(),
            help: help.into(),
            at: None,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let diagnostic = *error.0;
        let at = match diagnostic.at.source {
            Source::Argument(i) => {
                let span = &diagnostic.at.span;
                Some(At { value: i as u32, from: span.start as u32, to: span.end as u32 })
            }
            Source::File | Source::Points | Source::Referenced(_) => None,
        };
        Trouble {
            code: diagnostic.code.to_string(),
            message: diagnostic.message,
            key: diagnostic.key,
            help: diagnostic.help,
            at,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests to a station and a tunnel of 0.1.0, with their answers (`kept/control` in the tests of the
    /// command). A change of requests or answers must still accept these, so that two releases understand
    /// each other.
    #[test]
    fn requests_and_responses_of_an_earlier_release_parse() {
        let stored = |name: &str| {
            let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/data/kept/control/");
            std::fs::read_to_string(format!("{directory}{name}")).expect("it is there")
        };
        let requests = stored("requests.jsonl");
        for line in requests.lines() {
            let request = Request::parse(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
            let again = serde_json::to_string(&request).expect("it is JSON");
            assert_eq!(again, line, "this version writes the same request");
        }
        let answers = stored("answers.jsonl");
        let read =
            |line: &str| Response::parse(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
        let answers: Vec<Response> = answers.lines().map(read).collect();
        let kinds = answers.iter().map(|answer| match answer {
            Response::Status(status) => format!("status of {} stages", status.stages.len()),
            Response::Link(link) => format!("link {}", link.tun),
            Response::Value(value) => format!("value {value:?}"),
            Response::Changed(changed) => format!("changed {}", changed.settings[0].key),
            Response::Error(trouble) => format!("error {}", trouble.code),
            Response::Subscribers(_) => "subscribers".to_owned(),
        });
        let kinds: Vec<String> = kinds.collect();
        assert_eq!(
            kinds,
            [
                "status of 4 stages",
                "value Some(\"snoop\")",
                "error bad-axis",
                "changed errors.mean",
                "changed agent",
                "changed agent",
                "error unknown-key",
                "link lasthop0",
            ]
        );
    }

    #[test]
    fn parse_errors_suggest_a_version_mismatch() {
        // Additional keys of a later station are ignored.
        let more = r#"{"changed":{"settings":[],"warnings":[],"lost":0,"moved":3}}"#;
        assert!(Response::parse(more.as_bytes()).is_ok());
        let parse = |line: &str| Response::parse(line.as_bytes()).unwrap_err();
        let other = parse(r#"{"status":{"version":"9.1.0","stages":{}}}"#);
        assert!(other.contains("is the station lasthop 9.1.0?"), "{other}");
        assert!(parse(r#"{"histogram":[]}"#).contains("is the station of another version?"));
        let unknown = Request::parse(br#"{"do":"histogram"}"#).unwrap_err();
        assert!(unknown.message.contains("histogram"), "{unknown}");
        assert!(unknown.help.contains(&format!("this is lasthop {VERSION}")), "{}", unknown.help);
    }

    #[test]
    fn a_request_is_one_of_four() {
        let parse = |line: &str| Request::parse(line.as_bytes());
        assert_eq!(parse(r#"{"do":"status"}"#), Ok(Request::Status {}));
        assert_eq!(
            parse(r#"{"do":"get","key":"agent"}"#),
            Ok(Request::Get { key: "agent".to_owned() })
        );
        let subscribers = |by, top, within| Ok(Request::Subscribers { by, top, within });
        assert_eq!(
            parse(r#"{"do":"subscribers"}"#),
            subscribers(Order::Grade, MAX_SUBSCRIBERS, None)
        );
        assert_eq!(
            parse(r#"{"do":"subscribers","by":"round-trip","top":3,"within":"10.0.0.0/8"}"#),
            subscribers(Order::RoundTrip, 3, Some("10.0.0.0/8".parse().unwrap()))
        );
        for wrong in [
            "",
            "{}",
            "null",
            "[]",
            "get agent",
            r#"{"do":"status","also":1}"#,
            r#"{"do":"get"}"#,
            r#"{"do":"get","key":"agent","key":"errors"}"#,
            r#"{"do":"set","values":[]}"#,
            r#"{"do":"set","values":"agent=none"}"#,
            r#"{"do":"stop"}"#,
            r#"{"do":"subscribers","by":"moths"}"#,
            r#"{"do":"subscribers","top":10001}"#,
            "{\"do\":\"get\",\"key\":\"\u{0}\"}",
        ] {
            let trouble = parse(wrong).unwrap_err();
            assert!(trouble.help.contains("{\"do\":\"get\""), "{wrong}: {trouble}");
        }
        let many = vec!["agent=none"; MAX_VALUES + 1];
        let many = serde_json::json!({ "do": "set", "values": many }).to_string();
        assert!(parse(&many).unwrap_err().message.contains("at once"));
        assert!(Request::parse(&vec![b' '; MAX_REQUEST + 1]).is_err());
        // The JSON reader limits nesting.
        assert!(Request::parse("[".repeat(10_000).as_bytes()).is_err());
    }
}
