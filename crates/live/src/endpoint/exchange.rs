//! Requests and responses on the kernel's TCP: a client that sends queries, and a server that answers at
//! once. Both ends take the sizes from the scenario, as the simulator's hosts do. The content of the bytes is
//! arbitrary.
//!
//! Nagle's algorithm is off at both ends, as in the simulator.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use lasthop_proto::event::TcpKind;
use lasthop_proto::tcp::traffic::Exchange;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use nix::poll::{PollFd, PollFlags};

use super::send::is_later;
use super::socket::{self, LOOK};
use super::{CHUNK, EndpointError, SendOptions, Session, flow};

/// Limit of simultaneous connections of an end. A client opens no more, and a server accepts no more.
const MOST: usize = 1000;

/// Time limit of a handshake.
const PATIENCE: Span = Span::secs(300);

/// A client and its server.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Sizes and times of the exchanges.
    pub exchange: Exchange,
    /// The server.
    pub to: SocketAddr,
    /// Time of the first request.
    pub start: Time,
    /// Time of the end: no later request starts.
    pub stop: Option<Time>,
}

/// One end of a connection.
struct Talk {
    stream: TcpStream,
    flow: Option<FlowKey>,
    /// Bytes that this end sends and receives in each exchange.
    sends: u64,
    gets: u64,
    /// Bytes still to write, and total of received bytes.
    due: u64,
    got: u64,
    /// Number of requests, and of exchanges that have received the peer's part completely.
    requests: u64,
    done: u64,
    /// Whether this end closes its direction after its last byte.
    closes: bool,
    /// Whether this end, and the peer, have closed their directions.
    shut: bool,
    peer_closed: bool,
    /// Deadline of the handshake, while it lasts.
    opening: Option<Time>,
}

impl Talk {
    fn new(stream: TcpStream, sends: u64, gets: u64) -> io::Result<Talk> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Talk {
            stream,
            flow: None,
            sends,
            gets,
            due: 0,
            got: 0,
            requests: 0,
            done: 0,
            closes: false,
            shut: false,
            peer_closed: false,
            opening: None,
        })
    }

    fn is_over(&self) -> bool {
        self.shut && self.peer_closed
    }

    fn watched(&self) -> Option<PollFd<'_>> {
        let mut interest = PollFlags::empty();
        if !self.peer_closed {
            interest |= PollFlags::POLLIN;
        }
        if self.due > 0 || self.opening.is_some() {
            interest |= PollFlags::POLLOUT;
        }
        // With both directions closed, `poll` would return at once.
        (!interest.is_empty()).then(|| PollFd::new(self.stream.as_fd(), interest))
    }

    /// Writes and reads without blocking. Returns the number of exchanges that completed.
    fn act(&mut self, buffer: &mut [u8]) -> io::Result<u64> {
        if self.opening.is_some() {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            if self.stream.peer_addr().is_err() {
                return Ok(0);
            }
            self.opening = None;
        }
        self.write(buffer)?;
        let before = self.done;
        self.read(buffer)?;
        Ok(self.done - before)
    }

    fn write(&mut self, buffer: &[u8]) -> io::Result<()> {
        while self.due > 0 {
            let piece = usize::try_from(self.due).unwrap_or(usize::MAX).min(buffer.len());
            match self.stream.write(&buffer[..piece]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.due -= count as u64,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.closes && !self.shut {
            self.shut = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while !self.peer_closed {
            match self.stream.read(buffer) {
                Ok(0) => self.peer_closed = true,
                Ok(count) => {
                    self.got += count as u64;
                    self.done = self.got / self.gets.max(1);
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Waits until one of `talks` or the listener is ready, or until `due`. Returns early if the session is
/// stopped.
fn wait(
    talks: &VecDeque<Talk>,
    listener: Option<&TcpListener>,
    session: &Session<'_>,
    due: Option<Time>,
) -> io::Result<()> {
    let mut watched: Vec<PollFd<'_>> = talks.iter().filter_map(Talk::watched).collect();
    watched.extend(listener.map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)));
    let left = due.map_or(LOOK, |due| due.since(session.clock.now()));
    socket::wait(&mut watched, left.min(LOOK))
}

/// Answers requests on connections of `listener` until the session is stopped. Drops broken connections.
///
/// # Errors
///
/// Errors of the listener.
pub fn answer(
    listener: &TcpListener,
    exchange: &Exchange,
    session: &Session<'_>,
) -> Result<(), EndpointError> {
    let (gets, sends) = (exchange.request.0, exchange.response.0);
    let mut buffer = vec![0; CHUNK];
    let mut talks: VecDeque<Talk> = VecDeque::new();
    while !session.stopped() {
        let accepts = (talks.len() < MOST).then_some(listener);
        wait(&talks, accepts, session, None)?;
        match accepts.map(TcpListener::accept) {
            None => {}
            Some(Ok((stream, _))) => talks.push_back(Talk::new(stream, sends, gets)?),
            Some(Err(error)) if is_later(&error) => {}
            Some(Err(error)) if error.kind() == ErrorKind::ConnectionAborted => {}
            Some(Err(error)) => return Err(error.into()),
        }
        talks.retain_mut(|talk| {
            let Ok(requests) = talk.act(&mut buffer) else { return false };
            talk.due += requests * talk.sends;
            talk.closes |= talk.peer_closed || requests > 0 && !exchange.persistent;
            talk.write(&buffer).is_ok() && !talk.is_over()
        });
    }
    Ok(())
}

/// Sends the requests of `client` until all exchanges are over or the session is stopped. `report` receives
/// each request and each complete response with its time.
///
/// # Errors
///
/// [`EndpointError`] if no socket can be made.
pub fn ask(
    client: &Client,
    session: &Session<'_>,
    mut report: impl FnMut(Time, FlowKey, TcpKind),
) -> Result<(), EndpointError> {
    let Client { exchange, stop, .. } = *client;
    let mut buffer = vec![0; CHUNK];
    let mut talks: VecDeque<Talk> = VecDeque::new();
    let (mut next, mut requests) = (Some(client.start), 0);
    loop {
        let now = session.clock.now();
        if session.stopped() {
            return Ok(());
        }
        if next.is_some_and(|at| at <= now) && talks.len() < MOST {
            let at = next.unwrap_or(now);
            if !exchange.persistent || talks.is_empty() {
                talks.push_back(opened(client, now)?);
            }
            let last = talks.len() - 1;
            let talk = &mut talks[last];
            talk.due += talk.sends;
            talk.closes = !exchange.persistent;
            talk.requests += 1;
            requests += 1;
            talk.flow.into_iter().for_each(|flow| report(now, flow, TcpKind::Asked));
            // Periods do not drift, however late this thread runs.
            next = exchange.every.map(|every| at + every);
            next = next.filter(|at| may_request(&exchange, stop, requests, *at));
        }
        // A persistent connection stays open until the last response.
        let ends = exchange.every.is_some() && next.is_none();
        let waits = next.is_none() && !ends;
        let mut idle = None;
        talks.retain_mut(|talk| {
            let late = talk.opening.is_some_and(|give_up| give_up <= now);
            let done = talk.act(&mut buffer).ok().filter(|_| !late);
            let at = session.clock.now();
            // The client continues after a response or a broken connection.
            if waits && done != Some(0) {
                idle = Some(at + exchange.think);
            }
            let Some(done) = done else { return false };
            for _ in 0..done {
                talk.flow.into_iter().for_each(|flow| report(at, flow, TcpKind::Answered));
            }
            talk.closes |= exchange.persistent && ends && talk.done >= talk.requests;
            talk.write(&buffer).is_ok() && !talk.is_over()
        });
        if let Some(at) = idle {
            next = Some(at).filter(|at| may_request(&exchange, stop, requests, *at));
            if next.is_none() {
                talks.retain_mut(|talk| {
                    talk.closes = true;
                    talk.write(&buffer).is_ok()
                });
            }
        }
        if next.is_none() && talks.is_empty() {
            return Ok(());
        }
        wait(&talks, None, session, next)?;
    }
}

/// Whether a client that has sent `requests` requests sends another one at `at`.
fn may_request(exchange: &Exchange, stop: Option<Time>, requests: u32, at: Time) -> bool {
    exchange.exchanges.is_none_or(|most| requests < most) && stop.is_none_or(|stop| at < stop)
}

/// Opens a connection to the server of `client`; the handshake is not complete yet.
fn opened(client: &Client, now: Time) -> Result<Talk, EndpointError> {
    let Client { exchange, to, .. } = client;
    let options = SendOptions { no_delay: true, ..SendOptions::new(*to) };
    let stream = socket::connecting(&options)?;
    let local = stream.local_addr()?;
    let mut talk = Talk::new(stream, exchange.request.0, exchange.response.0)?;
    (talk.flow, talk.opening) = (Some(flow(local, *to)), Some(now + PATIENCE));
    Ok(talk)
}
