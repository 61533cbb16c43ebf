//! The test sender and the discard receiver, against each other and against faulty peers. All tests use
//! loopback and ports that the system assigns. They assert content, counts and order, never durations.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    End, EndpointError, Pattern, Received, SendOptions, SendReport, Session, Source, discard,
    listen, send,
};
use lasthop_proto::event::{Event, EventKind, TcpKind};
use lasthop_proto::units::Span;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const PATTERN: Pattern = Pattern { stream: 0 };

fn pattern(bytes: u64) -> Source {
    Source { pattern: PATTERN, bytes }
}

/// Runs `client` against a receiver of `count` connections on `address`. Returns the results of both.
fn against<T: Send>(
    address: IpAddr,
    count: usize,
    client: impl FnOnce(SocketAddr) -> T + Send,
) -> (T, Vec<Received>) {
    let listener = listen(SocketAddr::new(address, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut seen = Vec::new();
            discard(&listener, count, &session, &mut |one| seen.push(one)).expect("it runs");
            seen
        });
        let result = client(to);
        (result, receiver.join().expect("the receiver ends"))
    })
}

fn sent(options: &SendOptions, source: Source, trace: &mut dyn FnMut(Event)) -> SendReport {
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    send(options, source, &session, trace).expect("a connection")
}

#[test]
fn everything_arrives_over_both_protocols() {
    for address in [V4, V6] {
        for bytes in [0, 1, 65_536, 65_537, 3_000_000] {
            let (report, seen) =
                against(address, 1, |to| sent(&SendOptions::new(to), pattern(bytes), &mut |_| {}));
            assert_eq!(report.end, End::Closed);
            assert_eq!((report.bytes, report.acked), (bytes, bytes));
            let [received] = seen.as_slice() else { panic!("{seen:?}") };
            assert_eq!((&received.end, received.bytes), (&End::Closed, bytes));
            assert_eq!((received.peer, &received.sha256), (report.local, &report.sha256));
            assert_eq!(report.sha256 == NOTHING, bytes == 0);
            assert_eq!(report.first_byte.is_some(), bytes > 0);
            let acked = report.all_acked.expect("all is acknowledged");
            assert!(report.first_byte.is_none_or(|first| first <= acked), "{report:?}");
            assert!(acked <= report.ended, "{report:?}");
        }
    }
}

#[test]
fn concurrent_transfers_arrive_separately() {
    let (reports, seen) = against(V4, 5, |to| {
        let transfer = |n: u64| sent(&SendOptions::new(to), pattern(n * 400_000), &mut |_| {});
        thread::scope(|scope| {
            let all: Vec<_> = (1..=5).map(|n| scope.spawn(move || transfer(n))).collect();
            all.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
        })
    });
    for report in reports {
        let same = seen.iter().find(|one| one.peer == report.local).expect("it was seen");
        assert_eq!((same.bytes, &same.sha256), (report.bytes, &report.sha256));
    }
}

#[test]
fn the_trace_has_the_events_of_the_simulator() {
    let mut events = Vec::new();
    let bytes = 20_000_000;
    against(V4, 1, |to| {
        let options = SendOptions { sample: Some(Span::millis(1)), ..SendOptions::new(to) };
        sent(&options, pattern(bytes), &mut |event| events.push(event))
    });
    let blocks: Vec<_> = events
        .iter()
        .map(|event| match event.kind {
            EventKind::Tcp(tcp) => (tcp.kind, tcp.tcb),
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert!(blocks.len() > 4, "{blocks:?}");
    assert_eq!((blocks[0].0, blocks[1].0), (TcpKind::Opening, TcpKind::Established));
    // A poll between the two may find the FIN acknowledged.
    let looked = [TcpKind::Acked, TcpKind::Sampled];
    let kinds: Vec<_> =
        blocks.iter().map(|block| block.0).filter(|k| !looked.contains(k)).collect();
    assert!(kinds.ends_with(&[TcpKind::Complete, TcpKind::Closed]), "{kinds:?}");
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let (first, last) = (blocks[1].1, blocks[blocks.len() - 1].1);
    // Position 1 is the first byte: the SYN is acknowledged before it, and the FIN after all bytes.
    assert!(first.snd_una >= 1 && first.snd_una <= bytes + 1, "{first:?}");
    assert!((bytes + 1..=bytes + 2).contains(&last.snd_una), "{last:?}");
    assert!(blocks.iter().skip(1).all(|(_, tcb)| tcb.snd_una <= tcb.snd_nxt && tcb.cwnd > 0));
    assert!(last.srtt > Span::ZERO && last.rto > Span::ZERO && last.snd_wnd > 0, "{last:?}");
}

#[test]
fn a_connection_without_a_listener_is_refused() {
    // A port that was free a moment ago.
    let to = TcpListener::bind((V4, 0)).and_then(|l| l.local_addr()).expect("a port");
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    let error = send(&SendOptions::new(to), pattern(1), &session, &mut |_| {}).unwrap_err();
    assert!(matches!(error, EndpointError::Refused(at) if at == to), "{error}");
}

/// A waiting connection fills the listener's queue, so the next SYN gets no answer.
#[test]
fn an_unanswered_syn_ends_at_the_connect_timeout() {
    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, getsockname, socket,
    };
    use std::os::fd::AsRawFd as _;
    let open = || {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket")
    };
    let listener = open();
    bind(listener.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a port");
    nix::sys::socket::listen(&listener, Backlog::new(0).expect("none")).expect("it listens");
    let address: SockaddrIn = getsockname(listener.as_raw_fd()).expect("an address");
    let waiting: Vec<_> = (0..4).map(|_| open()).collect();
    for client in &waiting {
        let _ = connect(client.as_raw_fd(), &address);
    }
    let to = SocketAddr::new(V4, address.port());
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    let after = Span::millis(120);
    let options = SendOptions { connect_timeout: after, ..SendOptions::new(to) };
    let error = send(&options, pattern(1), &session, &mut |_| {}).unwrap_err();
    assert!(
        matches!(error, EndpointError::TimedOut { to: at, after: limit } if at == to && limit == after),
        "{error}"
    );
    assert!(session.clock.now().since(lasthop_proto::units::Time::ZERO) >= after);
}

/// Sends to a foreign peer. `peer` receives the accepted connection and a signal at the sender's end, and may
/// raise the sender's stop flag.
fn against_peer(
    bytes: u64,
    peer: impl FnOnce(TcpStream, &Receiver<()>, &AtomicBool) + Send,
) -> SendReport {
    let listener = TcpListener::bind((V4, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let (through, wait) = channel();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || peer(listener.accept().expect("a connection").0, &wait, stop));
        let session = Session { clock: Clock::start(), stop };
        let options = SendOptions::new(to);
        let report = send(&options, pattern(bytes), &session, &mut |_| {}).expect("a connection");
        // A peer that has exited needs no signal.
        let _ = through.send(());
        report
    })
}

fn reset(stream: TcpStream) {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &now).expect("set");
}

#[test]
fn a_reset_by_the_peer_fails_the_transfer() {
    let report = against_peer(u64::MAX, |mut stream, _, _| {
        stream.read_exact(&mut [0; 1000]).expect("some bytes");
        reset(stream);
    });
    assert!(matches!(report.end, End::Failed { .. }), "{report:?}");
    assert_eq!(report.all_acked, None);
}

#[test]
fn a_stop_in_mid_transfer_breaks_the_connection() {
    let (peer_end, ends) = channel();
    let report = against_peer(u64::MAX, move |mut stream, _, stop| {
        stream.read_exact(&mut [0; 100_000]).expect("some bytes");
        stop.store(true, Ordering::Relaxed);
        // The peer must not take an abort for a complete transfer.
        let _ = peer_end.send(stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind()));
    });
    assert_eq!(report.end, End::Stopped);
    assert!(report.bytes >= 100_000);
    assert_eq!(ends.recv().expect("the peer ended"), Err(ErrorKind::ConnectionReset));
}

#[test]
fn after_a_stop_only_established_connections_are_reported() {
    let stop = AtomicBool::new(true);
    let session = Session { clock: Clock::start(), stop: &stop };
    let listener = TcpListener::bind((V4, 0)).expect("a listener");
    // The kernel answers one connection, which is never accepted, and drops the next SYN.
    let none = nix::sys::socket::Backlog::new(0).expect("a length");
    nix::sys::socket::listen(&listener, none).expect("set");
    let to = listener.local_addr().expect("an address");
    let report = send(&SendOptions::new(to), pattern(1), &session, &mut |_| {});
    assert_eq!(report.expect("a connection").end, End::Stopped);
    let error = send(&SendOptions::new(to), pattern(1), &session, &mut |_| {}).unwrap_err();
    assert!(matches!(error, EndpointError::Stopped(at) if at == to), "{error}");
}

#[test]
fn a_peer_that_closes_first_still_gets_everything() {
    let (took, taken) = channel();
    let report = against_peer(5_000_000, move |mut stream, _, _| {
        stream.shutdown(Shutdown::Write).expect("half-closed");
        let mut all = Vec::new();
        let _ = took.send(stream.read_to_end(&mut all).map(|_| all));
    });
    assert_eq!(report.end, End::Closed);
    let all = taken.recv().expect("the peer ended").expect("all of it");
    let mut right = Vec::new();
    PATTERN.fill(0, 5_000_000, &mut right);
    assert!(all == right);
}

#[test]
fn a_sender_drains_data_that_its_peer_sends() {
    let report = against_peer(1_000_000, |mut stream, _, _| {
        let mut other = stream.try_clone().expect("a second handle");
        thread::scope(|scope| {
            scope.spawn(move || other.write_all(&[7; 3_000_000]).expect("written"));
            stream.read_to_end(&mut Vec::new()).expect("all of it");
        });
    });
    assert_eq!((report.end.clone(), report.acked), (End::Closed, 1_000_000));
}

#[test]
fn a_receiver_reports_aborted_and_partial_transfers() {
    let listener = listen(SocketAddr::new(V4, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let mut ends = Vec::new();
    let (reported, is_reported) = channel();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let mut partial = TcpStream::connect(to).expect("a connection");
            partial.write_all(b"something").expect("written");
            let gone = TcpStream::connect(to).expect("a connection");
            reset(gone);
            is_reported.recv().expect("the reset was seen");
            stop.store(true, Ordering::Relaxed);
            let _ = partial.read(&mut [0]);
        });
        let session = Session { clock: Clock::start(), stop };
        let mut report = |one: Received| {
            ends.push(one.end);
            let _ = reported.send(());
        };
        discard(&listener, 3, &session, &mut report).expect("it runs");
    });
    assert!(matches!(ends[..], [End::Failed { .. }, End::Stopped]), "{ends:?}");
}
