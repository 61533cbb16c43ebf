//! Requests that contain the size of their response; several may be pending on one connection.
//!
//! Both ends have the size of a request from the start. Its first eight bytes are the size of the response,
//! which the server starts at once; responses follow the order of requests.

use std::collections::VecDeque;

use crate::units::Bytes;
use crate::wire::Body;

use super::page::Browser;
use super::video::Player;

/// Minimum size of a request in bytes: the size of the response.
pub const SIZE_FIELD: usize = 8;
/// Maximum size of a response in bytes.
pub const MOST: u64 = 1 << 31;

/// A client of such requests.
#[derive(Clone, Debug)]
pub(super) enum Client {
    /// A client of Web pages.
    Browser(Box<Browser>),
    /// A client of a video.
    Player(Box<Player>),
}

impl Client {
    /// Asserts the invariants of the client.
    pub(super) fn check(&self) {
        match self {
            Client::Browser(browser) => browser.check(),
            Client::Player(player) => player.check(),
        }
    }

    /// Its connections.
    pub(super) fn connections(&self) -> Vec<usize> {
        match self {
            Client::Browser(browser) => browser.lanes.iter().map(|l| l.connection).collect(),
            Client::Player(player) => player.connection.into_iter().collect(),
        }
    }
}

/// State of such requests on a connection.
#[derive(Clone, Debug)]
pub(super) struct Fetching {
    request: Bytes,
    /// Whether this end sends the requests.
    pub(super) is_client: bool,
    /// End position of each pending response in the delivered stream, oldest first.
    ends: VecDeque<u64>,
    /// End positions of the last requested response, and of the last received one.
    last: u64,
    came: u64,
    /// Number of received responses.
    pub(super) done: u64,
    /// Whether the first byte of the next response has arrived.
    pub(super) begun: bool,
    /// Whether data has arrived that was not polled.
    pub(super) news: bool,
    /// Of a server: size field and length of the incoming request, and bytes answered so far.
    size_field: Vec<u8>,
    received: u64,
    answered: u64,
}

impl Fetching {
    /// State of the client's end.
    pub(super) fn client(request: Bytes) -> Fetching {
        Fetching {
            request,
            is_client: true,
            ends: VecDeque::new(),
            last: 0,
            came: 0,
            done: 0,
            begun: false,
            news: false,
            size_field: Vec::new(),
            received: 0,
            answered: 0,
        }
    }

    /// State of the server's end.
    pub(super) fn server(request: Bytes) -> Fetching {
        Fetching { is_client: false, ..Fetching::client(request) }
    }

    /// Adds a request for `response`; returns the bytes to send.
    pub(super) fn ask(&mut self, response: Bytes) -> Body {
        self.last += response.0;
        self.ends.push_back(self.last);
        let mut request = vec![0; (self.request.0 as usize).max(SIZE_FIELD)];
        request[..SIZE_FIELD].copy_from_slice(&response.0.to_be_bytes());
        Body::copy_of(&request)
    }

    /// Processes the total number of bytes delivered to the client, and returns whether another response is
    /// complete; one for each call.
    pub(super) fn comes(&mut self, delivered: u64) -> bool {
        let full = self.ends.front().copied().filter(|end| *end <= delivered);
        let begun = full.is_none() && delivered > self.came;
        self.news |= full.is_some() || begun && !self.begun;
        self.begun = begun;
        if let Some(end) = full {
            self.ends.pop_front();
            self.came = end;
            self.done += 1;
        }
        full.is_some()
    }

    /// Processes bytes delivered to the server, and returns the responses to all complete requests.
    pub(super) fn answers(&mut self, delivered: &[Body], stream: u32) -> Vec<Body> {
        let mut bytes = Vec::new();
        delivered.iter().for_each(|body| body.copy_into(u32::MAX, &mut bytes));
        let mut answers = Vec::new();
        for byte in bytes {
            if self.size_field.len() < SIZE_FIELD {
                self.size_field.push(byte);
            }
            self.received += 1;
            if self.received < self.request.0.max(SIZE_FIELD as u64) {
                continue;
            }
            self.received = 0;
            let size_field = core::mem::take(&mut self.size_field);
            let size = size_field.try_into().map_or(0, u64::from_be_bytes).min(MOST);
            answers.push(Body::Pattern { stream, offset: self.answered, len: size as u32 });
            self.answered += size;
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_parses_requests_in_pieces_of_any_size() {
        let mut client = Fetching::client(Bytes(20));
        let requests = [3000, 1, MOST].map(|size| client.ask(Bytes(size)));
        let mut all = Vec::new();
        requests.iter().for_each(|body| body.copy_into(u32::MAX, &mut all));
        assert_eq!(all.len(), 60);
        for cut in [1, 7, 8, 20, 33, 60] {
            let mut server = Fetching::server(Bytes(20));
            let pieces = all.chunks(cut).map(Body::copy_of);
            let answers: Vec<Body> = pieces.flat_map(|piece| server.answers(&[piece], 5)).collect();
            let pattern = |offset, len| Body::Pattern { stream: 5, offset, len };
            assert_eq!(
                answers,
                [pattern(0, 3000), pattern(3000, 1), pattern(3001, MOST as u32)],
                "{cut}"
            );
        }
    }

    #[test]
    fn a_client_detects_where_responses_begin_and_end() {
        let mut client = Fetching::client(Bytes(20));
        for size in [100, 50] {
            client.ask(Bytes(size));
        }
        let mut at = |delivered| {
            let done =
                core::iter::repeat_with(|| client.comes(delivered)).take_while(|d| *d).count();
            (done, client.done, client.begun, core::mem::take(&mut client.news))
        };
        assert_eq!(at(1), (0, 0, true, true), "the first byte is reported");
        assert_eq!(at(99), (0, 0, true, false), "and no other");
        assert_eq!(at(100), (1, 1, false, true));
        assert_eq!(at(150), (1, 2, false, true));
    }
}
