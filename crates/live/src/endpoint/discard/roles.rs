//! Connections with a role and datagrams, at the receiver.

use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};

use lasthop_proto::units::{Span, Time};

use super::{Connection, Receiver};
use crate::endpoint::End;
use crate::endpoint::role::limits::client;
use crate::endpoint::role::serve::{Candidate, Serving};
use crate::endpoint::role::{REQUEST, Recognition, Refusal, Request, Role, Token, recognize};
use crate::endpoint::socket::LOOK;
use crate::endpoint::udp::Header;
use crate::tunnel;

/// Datagrams that are read before connections have their turn.
const DATAGRAMS: usize = 256;

/// Minimum interval at which pending probes are answered, so that many probe connections do not delay others.
const ECHO_INTERVAL: Span = Span::micros(200);

/// A non-blocking UDP socket at the address of `listener`.
pub(super) fn datagrams(listener: &TcpListener) -> io::Result<UdpSocket> {
    let address = listener.local_addr()?;
    let failed =
        |error: io::Error| io::Error::new(error.kind(), format!("UDP at {address}: {error}"));
    let socket = UdpSocket::bind(address).map_err(failed)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Receiver<'_> {
    /// Answers probes that have arrived. Called between the turns of other connections, whose data would delay the
    /// answers. An end is noticed in the next turn.
    pub(super) fn echo(&mut self) {
        if self.session.clock.now().since(self.echoed) < ECHO_INTERVAL {
            return;
        }
        for serving in self.serving.iter_mut().filter(|serving| serving.is_echo()) {
            serving.answer(self.session.clock.now(), &mut self.piece);
        }
        self.echoed = self.session.clock.now();
    }

    /// Counts pending datagrams.
    pub(super) fn count_datagrams(&mut self) {
        let Some(udp) = &self.udp else { return };
        for _ in 0..DATAGRAMS {
            let (length, from) = match udp.recv_from(&mut self.piece) {
                Ok(received) => received,
                // Errors such as ICMP messages concern single datagrams.
                Err(_) => return,
            };
            let now = self.session.clock.now();
            let Some(header) = Header::parse(&self.piece[..length]) else { continue };
            let of = |serving: &&mut Serving| serving.accepts(&header.token, from.ip());
            if let Some(serving) = self.serving.iter_mut().find(of) {
                serving.take(&header, from, now, length);
            }
        }
    }

    /// Sends the datagrams that are due to clients.
    pub(super) fn send_datagrams(&mut self) {
        let Some(udp) = &self.udp else { return };
        for serving in &mut self.serving {
            serving.send(udp, self.session.clock.now(), &mut self.piece);
        }
    }

    /// Longest wait: until the next datagram to a client.
    pub(super) fn patience(&self, now: Time) -> Span {
        let due = self.serving.iter().filter_map(|serving| serving.due(now)).min();
        due.map_or(LOOK, |due| due.since(now).min(LOOK))
    }

    /// The request at the start of a connection, if its first bytes are one.
    pub(super) fn request(&self, index: usize) -> Option<Result<Request, Refusal>> {
        match recognize(self.open[index].first_bytes.as_deref()?) {
            Recognition::Plain | Recognition::Incomplete => None,
            Recognition::Request(request) => Some(Ok(request)),
            Recognition::Refused(refusal) => Some(Err(refusal)),
        }
    }

    /// Begins or refuses the role of the connection at `index`, which is no transfer any more.
    pub(super) fn begin(
        &mut self,
        index: usize,
        request: Result<Request, Refusal>,
    ) -> io::Result<()> {
        let now = self.session.clock.now();
        let Connection { number, stream, peer, rest, .. } = self.open.swap_remove(index);
        let candidate = Candidate { number, stream, peer, rest };
        let admitted = request.and_then(|request| {
            self.admit(request.role, client(peer.ip()), now)?;
            Ok(request)
        });
        let serving = match admitted {
            Ok(request) => {
                let token = request.role.is_udp().then(token).transpose()?;
                Serving::grant(candidate, &request, &self.limits, token, now)
            }
            Err(refusal) => Serving::refuse(candidate, refusal, now),
        };
        self.serving.push(serving);
        Ok(())
    }

    fn admit(&mut self, role: Role, client: IpAddr, now: Time) -> Result<(), Refusal> {
        // A receiver with a limited number of transfers has no roles.
        if self.options.roles.is_none() || self.options.count.is_some() {
            return Err(Refusal::Off);
        }
        if role.is_udp() && self.udp.is_none() {
            return Err(Refusal::Udp);
        }
        let of_client = self.serving.iter().filter(|serving| serving.is_of(client));
        // Datagrams have no congestion control, so a client has their limit once.
        if role == Role::UdpDown && of_client.clone().any(Serving::has_source) {
            return Err(Refusal::Client);
        }
        let open = of_client.count();
        self.admission.admit(client, open, &self.limits, now)
    }

    pub(super) fn served(&mut self, serving: Serving, end: End) {
        let served = serving.finish(end, self.session.clock.now());
        self.observer.served(&served);
    }
}

impl Connection {
    /// Adds data to the first bytes. Returns whether they are a request, complete or refused.
    pub(super) fn is_request(&mut self, piece: &[u8]) -> bool {
        let Some(first) = &mut self.first_bytes else { return false };
        let (head, rest) = piece.split_at(piece.len().min(REQUEST - first.len()));
        first.extend_from_slice(head);
        match recognize(first) {
            Recognition::Plain => self.first_bytes = None,
            Recognition::Incomplete => {}
            Recognition::Request(_) | Recognition::Refused(_) => {
                self.rest = rest.to_vec();
                return true;
            }
        }
        false
    }
}

/// Unpredictable bytes that name a client of the UDP role.
fn token() -> io::Result<Token> {
    let random = tunnel::random()?;
    Ok(random.first_chunk().copied().unwrap_or_default())
}
