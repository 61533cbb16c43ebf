//! One connection: the stack's state machine, its application, and its events.

use std::time::Instant;

use lasthop_path::TransferState;
use lasthop_proto::event::{Cause, EventKind, Tcb, TcpEvent, TcpKind};
use lasthop_proto::machine::{Out, Side};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::FlowKey;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Endpoint, Event, StreamEvent, VarInt,
};

use crate::quic::datagram;
use crate::quic::frames::Frames;
use crate::quic::host::Clock;
use crate::quic::ledger::StreamData;
use crate::quic::receiver::Receiver;
use crate::quic::sender::Sender;

/// Maximum number of datagrams that the stack may write in one batch, as real stacks do with segmentation offload
/// (`MAX_TRANSMIT_SEGMENTS` of quinn).
const TRAIN: usize = 10;

/// Minimum interval between timer expirations. With a round trip of a few nanoseconds, the stack's pacing would request
/// the present time forever.
const FINEST: Span = Span::micros(1);

pub(crate) struct HostConnection {
    /// From this end to its peer.
    pub flow: FlowKey,
    pub role: Role,
    stack: Option<(ConnectionHandle, Connection)>,
    planned: bool,
    /// A timer of the stack has expired since the last call.
    woken: bool,
    /// Time when the stack last handled a timer.
    handled: Option<Time>,
}

/// The application of the connection.
pub(crate) enum Role {
    Sends(Box<Sender>),
    Receives(Box<Receiver>),
}

impl HostConnection {
    pub(crate) fn new(flow: FlowKey, role: Role) -> HostConnection {
        let planned = matches!(role, Role::Sends(_));
        HostConnection { flow, role, stack: None, planned, woken: false, handled: None }
    }

    /// It is still to be opened.
    pub(crate) fn is_planned(&self) -> bool {
        self.planned
    }

    pub(crate) fn attach(&mut self, handle: ConnectionHandle, connection: Connection) {
        self.planned = false;
        self.stack = Some((handle, connection));
    }

    /// Opened here, or to be opened, and not over.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(&self.role, Role::Sends(sender) if !sender.is_over())
    }

    pub(crate) fn sent(&self) -> Option<TransferState> {
        let Role::Sends(sender) = &self.role else { return None };
        Some(TransferState {
            flow: self.flow,
            wanted: sender.size,
            acknowledged: sender.ledger.acked(),
            complete: sender.complete,
            aborted: sender.aborted,
        })
    }

    fn sent_bytes(&self) -> u64 {
        match &self.role {
            Role::Sends(sender) => sender.ledger.sent(),
            Role::Receives(_) => 0,
        }
    }

    pub(crate) fn delivered(&self) -> Option<u64> {
        match &self.role {
            Role::Sends(_) => None,
            Role::Receives(receiver) => Some(receiver.delivered),
        }
    }

    /// The next deadline.
    pub(crate) fn next_wake(&mut self, clock: Clock) -> Option<Time> {
        let (_, connection) = self.stack.as_mut()?;
        let timer = connection.poll_timeout().map(|at| clock.time(at));
        let timer = timer.map(|at| match self.handled {
            Some(handled) if at <= handled => handled + FINEST,
            _ => at,
        });
        let stop = match &self.role {
            Role::Sends(sender) if !sender.is_over() => sender.stop,
            _ => None,
        };
        timer.into_iter().chain(stop).min()
    }

    /// A deadline has passed.
    pub(crate) fn on_time(&mut self, there: Instant, now: Time) {
        let Some((_, connection)) = &mut self.stack else { return };
        if let Role::Sends(sender) = &mut self.role
            && sender.stop.is_some_and(|stop| stop <= now)
        {
            sender.stop = None;
            sender.stop(connection);
        }
        if connection.poll_timeout().is_some_and(|at| at <= there) {
            connection.handle_timeout(there);
            self.handled = Some(now);
            self.woken = true;
        }
    }

    /// A datagram has arrived.
    pub(crate) fn receives(&mut self, event: ConnectionEvent, data: &[u8]) {
        if let Role::Sends(sender) = &mut self.role {
            sender.ledger.receives(&Frames::of_datagram(data));
        }
        if let Some((_, connection)) = &mut self.stack {
            connection.handle_event(event);
        }
    }

    pub(crate) fn opening(&self, out: &mut Out) {
        self.emit(TcpKind::Opening, out);
    }

    pub(crate) fn give_up(&mut self, out: &mut Out) {
        self.planned = false;
        if let Role::Sends(sender) = &mut self.role
            && !sender.is_over()
        {
            sender.aborted = true;
            self.emit(TcpKind::Aborted, out);
        }
    }

    fn emit(&self, kind: TcpKind, out: &mut Out) {
        if out.accepts(kind.level()) {
            out.event(EventKind::Tcp(TcpEvent {
                flow: self.flow,
                kind,
                tcb: self.control_block(),
            }));
        }
    }

    /// The stack's state as a TCP control block. Its retransmission timeout is not visible.
    fn control_block(&self) -> Tcb {
        let (una, sent, received) = match &self.role {
            Role::Sends(sender) => (sender.ledger.acked(), sender.ledger.sent(), 0),
            Role::Receives(receiver) => (0, 0, receiver.delivered),
        };
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let stack = self.stack.as_ref().map(|(_, connection)| connection);
        let window = stack.map(|connection| connection.congestion_state().metrics());
        let (cwnd, ssthresh) =
            window.map_or((0, None), |window| (window.congestion_window, window.ssthresh));
        // Before the first measurement it is an initial guess.
        let measured = stack.filter(|connection| !connection.is_handshaking());
        let srtt = measured.map_or(Span::ZERO, |c| Span(c.rtt().as_nanos() as u64));
        Tcb {
            snd_una: 1 + una,
            snd_nxt: 1 + sent,
            snd_max: 1 + sent,
            rcv_nxt: 1 + received,
            cwnd: narrow(cwnd),
            ssthresh: ssthresh.map_or(u32::MAX, narrow),
            snd_wnd: 0,
            dupacks: 0,
            srtt,
            rttvar: Span::ZERO,
            rto: Span::ZERO,
            backoff: 0,
            in_recovery: false,
        }
    }

    /// Handles everything that is due. Returns the stack's handle once the connection is drained.
    pub(crate) fn drive(
        &mut self,
        there: Instant,
        endpoint: &mut Endpoint,
        side: Side,
        out: &mut Out,
    ) -> Option<ConnectionHandle> {
        if let Role::Sends(sender) = &mut self.role
            && sender.has_moved()
        {
            self.emit(TcpKind::Acked, out);
        }
        let sent = self.sent_bytes();
        let mut probing = Probing { woken: self.woken, reported: false };
        self.woken = false;
        loop {
            let (handle, connection) = self.stack.as_mut()?;
            let handle = *handle;
            let mut drained = false;
            while let Some(event) = connection.poll_endpoint_events() {
                drained |= event.is_drained();
                if let Some(answer) = endpoint.handle_event(handle, event) {
                    connection.handle_event(answer);
                }
            }
            let news = self.role.act(connection, there);
            news.into_iter().for_each(|kind| self.emit(kind, out));
            if drained {
                self.stack = None;
                return Some(handle);
            }
            if !self.transmit(there, &mut probing, side, out) {
                if self.sent_bytes() > sent {
                    self.emit(TcpKind::Sampled, out);
                }
                return None;
            }
        }
    }

    /// Sends the stack's datagrams; true if there were any.
    fn transmit(
        &mut self,
        there: Instant,
        probing: &mut Probing,
        side: Side,
        out: &mut Out,
    ) -> bool {
        let mut buf = Vec::new();
        let mut any = false;
        while let Some((_, connection)) = &mut self.stack {
            let (mtu, opening) = (connection.current_mtu(), connection.is_handshaking());
            buf.clear();
            let Some(sent) = connection.poll_transmit(there, TRAIN, &mut buf) else { break };
            any = true;
            let each = sent.segment_size.unwrap_or(sent.size);
            for datagram in buf[..sent.size].chunks(each) {
                let frames = Frames::of_datagram(datagram);
                // A probe for a larger packet exceeds the MTU.
                let timer = frames.probe && datagram.len() <= usize::from(mtu);
                if (timer || opening && probing.woken) && !probing.reported {
                    probing.reported = true;
                    self.emit(TcpKind::Timeout, out);
                }
                let cause = self.role.cause(&frames, probing.reported);
                datagram::send(self.flow, sent.ecn, datagram, cause, side, out);
            }
        }
        any
    }
}

/// Detects transmissions caused by the timer, as far as visible.
struct Probing {
    /// A timer of the stack has expired, of any kind: during a handshake only this one causes transmissions.
    woken: bool,
    /// The expiration was reported.
    reported: bool,
}

impl Role {
    /// Calls the application.
    fn act(&mut self, connection: &mut Connection, there: Instant) -> Vec<TcpKind> {
        let mut news = Vec::new();
        let mut readable = false;
        while let Some(event) = connection.poll() {
            match (&mut *self, event) {
                (role, Event::Connected) => {
                    news.push(TcpKind::Established);
                    if let Role::Sends(sender) = role {
                        sender.open(connection);
                    }
                }
                (Role::Receives(receiver), Event::Stream(StreamEvent::Opened { .. })) => {
                    receiver.accept(connection);
                    readable = true;
                }
                (_, Event::Stream(StreamEvent::Readable { .. })) => readable = true,
                (Role::Sends(sender), Event::Stream(StreamEvent::Finished { .. })) => {
                    news.extend(sender.finished().then(|| {
                        connection.close(there, VarInt::from_u32(0), bytes::Bytes::new());
                        TcpKind::Complete
                    }));
                }
                (Role::Sends(sender), Event::ConnectionLost { .. }) if !sender.is_over() => {
                    sender.aborted = true;
                    news.push(TcpKind::Aborted);
                }
                _ => {}
            }
        }
        match self {
            Role::Sends(sender) => {
                sender.write(connection);
                // The stack counts each detected loss; a reduction of the window changes the threshold.
                let threshold = connection.congestion_state().metrics().ssthresh;
                if core::mem::replace(&mut sender.threshold, threshold) != threshold {
                    news.push(TcpKind::FastRetransmit);
                }
            }
            Role::Receives(receiver) if readable => {
                receiver.read(connection, |kind| news.push(kind));
            }
            Role::Receives(_) => {}
        }
        news
    }

    /// The cause of a datagram with `frames`; `timer` is true if the timer caused it.
    fn cause(&mut self, frames: &Frames, timer: bool) -> Cause {
        let held = match self {
            Role::Sends(sender) => sender.ledger.sends(frames),
            Role::Receives(_) => StreamData::Nothing,
        };
        match held {
            StreamData::New => Cause::Data,
            StreamData::Again if timer => Cause::TailLossProbe,
            StreamData::Again => Cause::FastRetransmit,
            StreamData::Nothing if frames.eliciting => Cause::Control,
            StreamData::Nothing => Cause::Ack,
        }
    }
}
