//! What is said over the control socket: one JSON object a line, a request each, an answer each.
//!
//! ```text
//! {"do":"get","key":"agent"}                       {"value":"snoop"}
//! {"do":"set","values":["agent=none"]}             {"changed":{"settings":[{"key":"agent", ...
//! {"do":"set","values":["agent=none"],"endings":"drain"}
//! {"do":"status"}                                  {"status":{"version":"0.1.0", ...
//! ```

use std::fmt;

use lasthop_scenario::{Error, Setting, Source};
use serde::{Deserialize, Serialize};

pub use crate::status::{Counts, PortStatus, StageStatus, Status, TunnelStatus};

/// Longest request in bytes.
pub const MAX_REQUEST: usize = 16 << 10;

/// Most values set by one request.
pub const MAX_VALUES: usize = 64;

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Everything there is to know.
    Status {},
    /// The value of one key of the path.
    Get {
        /// The key, as `--set` takes it.
        key: String,
    },
    /// Changes to the path, all or none.
    Set {
        /// Each `KEY=VALUE`.
        values: Vec<String>,
        /// What becomes of connections that end at an agent which is replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endings: Option<Endings>,
    },
}

/// What becomes of the connections that end at an agent which is replaced (split connections).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endings {
    /// Both ends are told that the connection is over.
    Reset,
    /// They go on at the old agent until they are over; the new one has all others.
    Drain,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no request; says what one is.
    pub fn parse(line: &[u8]) -> Result<Request, Trouble> {
        let trouble = |message: String| Trouble {
            code: "bad-request".to_owned(),
            message,
            key: String::new(),
            help:
                "a request is one line of JSON, for example {\"do\":\"get\",\"key\":\"agent\"} or \
                   {\"do\":\"set\",\"values\":[\"agent=snoop\"]} or {\"do\":\"status\"}"
                    .to_owned(),
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
            _ => Ok(request),
        }
    }
}

/// What the station answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Everything there is to know.
    Status(Box<Status>),
    /// The same of a tunnel.
    Link(Box<TunnelStatus>),
    /// The value of a key, as it would be written; nothing where the default holds.
    Value(Option<String>),
    /// What was changed.
    Changed(Changed),
    /// Why nothing was done.
    Error(Trouble),
}

/// What a request has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The keys, with what they were and are.
    pub settings: Vec<Setting>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// Packets that were lost with the state of a replaced agent; links lose none.
    pub lost: usize,
    /// Connections that ended at a replaced agent, and what becomes of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endings: Option<(Endings, usize)>,
}

/// Why a request was not done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trouble {
    /// A stable word for scripts.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// The key concerned; empty if there is none.
    pub key: String,
    /// What was expected, with an example.
    pub help: String,
    /// Where, if it is about one of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// A place in the values of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct At {
    /// Which of the values, from 0.
    pub value: u32,
    /// First byte of it.
    pub from: u32,
    /// Behind the last.
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
            Source::File | Source::Points => None,
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

    #[test]
    fn a_request_is_one_of_three() {
        let parse = |line: &str| Request::parse(line.as_bytes());
        assert_eq!(parse(r#"{"do":"status"}"#), Ok(Request::Status {}));
        assert_eq!(
            parse(r#"{"do":"get","key":"agent"}"#),
            Ok(Request::Get { key: "agent".to_owned() })
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
            "{\"do\":\"get\",\"key\":\"\u{0}\"}",
        ] {
            let trouble = parse(wrong).unwrap_err();
            assert!(trouble.help.contains("{\"do\":\"get\""), "{wrong}: {trouble}");
        }
        let many = vec!["agent=none"; MAX_VALUES + 1];
        let many = serde_json::json!({ "do": "set", "values": many }).to_string();
        assert!(parse(&many).unwrap_err().message.contains("at once"));
        assert!(Request::parse(&vec![b' '; MAX_REQUEST + 1]).is_err());
        // Nesting is bounded by the reader.
        assert!(Request::parse("[".repeat(10_000).as_bytes()).is_err());
    }
}
