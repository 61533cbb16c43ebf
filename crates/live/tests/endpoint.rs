//! The test sender and the discard receiver, against each other and against faulty peers. All tests use
//! loopback and ports that the system assigns. They assert content, counts and order, never durations.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    DiscardObserver, DiscardOptions, End, EndpointError, Pattern, Progress, Received, SendObserver,
    SendOptions, SendReport, Session, Source, Totals, available_congestion, discard, listen,
    listen_everywhere, send,
};
use lasthop_observe::Sink as _;
use lasthop_observe::csv::TcbCsv;
use lasthop_proto::event::{Event, EventKind, TcpKind};
use lasthop_proto::units::Span;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const PATTERN: Pattern = Pattern { stream: 0 };

fn pattern(bytes: u64) -> Source {
    Source { pattern: PATTERN, bytes }
}

fn verifying(count: u64) -> DiscardOptions {
    DiscardOptions { count: Some(count), verify: Some(PATTERN), ..DiscardOptions::default() }
}

/// Runs `client` against a receiver on `address`. Returns the results of both.
fn against<T: Send>(
    address: IpAddr,
    options: &DiscardOptions,
    client: impl FnOnce(SocketAddr) -> T + Send,
) -> (T, Vec<Received>, Totals) {
    let listener = listen(SocketAddr::new(address, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut seen = Vec::new();
            let totals = discard(&listener, options, &session, &mut seen).expect("it runs");
            (seen, totals)
        });
        let result = client(to);
        if options.count.is_none() {
            stop.store(true, Ordering::Relaxed);
        }
        let (seen, totals) = receiver.join().expect("the receiver ends");
        (result, seen, totals)
    })
}

fn sent(options: &SendOptions, source: Source, observer: &mut dyn SendObserver) -> SendReport {
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    send(options, source, &session, observer).expect("a connection")
}

#[test]
fn everything_arrives_over_both_protocols() {
    for address in [V4, V6] {
        for bytes in [0, 1, 65_536, 65_537, 3_000_000] {
            let (report, seen, totals) = against(address, &verifying(1), |to| {
                sent(&SendOptions::new(to), pattern(bytes), &mut ())
            });
            assert_eq!(report.end, End::Closed);
            assert_eq!((report.bytes, report.acked), (bytes, bytes));
            let [received] = seen.as_slice() else { panic!("{seen:?}") };
            assert!(received.is_good(), "{received:?}");
            assert_eq!((received.bytes, received.peer), (bytes, report.local));
            assert_eq!(received.sha256, report.sha256);
            assert_eq!(report.sha256 == NOTHING, bytes == 0);
            assert_eq!(totals, Totals { transfers: 1, bad: 0, bytes });
            let times = [report.first_byte, report.last_byte];
            assert!(times.iter().all(|time| time.is_some() == (bytes > 0)), "{times:?}");
            let acked = report.all_acked.expect("all is acknowledged");
            assert!(report.connected <= acked && acked <= report.ended, "{report:?}");
            assert!(report.last_byte.is_none_or(|last| last <= acked), "{report:?}");
        }
    }
}

#[test]
fn a_listener_for_everything_takes_ipv4() {
    let listener = listen_everywhere(0).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for address in [V4, V6] {
                let to = SocketAddr::new(address, port);
                assert_eq!(sent(&SendOptions::new(to), pattern(10), &mut ()).end, End::Closed);
            }
        });
        discard(&listener, &verifying(2), &session, &mut seen).expect("it runs");
    });
    assert_eq!(seen.iter().map(|one| one.peer.ip()).collect::<Vec<_>>(), [V4, V6]);
}

#[test]
fn the_first_wrong_byte_is_named() {
    let (_, seen, totals) = against(V4, &verifying(1), |to| {
        let mut right = Vec::new();
        PATTERN.fill(0, 200_000, &mut right);
        right[123_456] ^= 1;
        right[150_000] ^= 1;
        let mut stream = TcpStream::connect(to).expect("a connection");
        stream.write_all(&right).expect("written");
    });
    let wrong = seen[0].wrong.expect("a wrong byte");
    assert_eq!((wrong.position, wrong.got ^ wrong.expected), (123_456, 1));
    assert_eq!((seen[0].end.clone(), totals.bad), (End::Closed, 1));
}

#[test]
fn concurrent_transfers_wait_for_free_slots() {
    // With two slots, the other senders wait and succeed later.
    let options = DiscardOptions { at_once: 2, ..verifying(5) };
    let (reports, seen, totals) = against(V4, &options, |to| {
        thread::scope(|scope| {
            let all: Vec<_> = (1..=5)
                .map(|n| {
                    scope.spawn(move || sent(&SendOptions::new(to), pattern(n * 400_000), &mut ()))
                })
                .collect();
            all.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
        })
    });
    assert_eq!(totals, Totals { transfers: 5, bad: 0, bytes: 15 * 400_000 });
    for report in reports {
        let same = seen.iter().find(|one| one.peer == report.local).expect("it was seen");
        assert_eq!((same.bytes, &same.sha256), (report.bytes, &report.sha256));
    }
}

#[test]
fn send_options_are_applied() {
    let (report, _, _) = against(V4, &verifying(1), |to| {
        let options = SendOptions {
            congestion: Some("reno".to_owned()),
            mss: Some(512),
            send_buffer: Some("64KiB".parse().expect("a size")),
            no_delay: true,
            from: Some("127.0.0.2:0".parse().expect("an address")),
            ..SendOptions::new(to)
        };
        sent(&options, pattern(100_000), &mut ())
    });
    assert_eq!(report.congestion.as_deref(), Some("reno"));
    assert_eq!(report.local.ip().to_string(), "127.0.0.2");
    let tcp = report.tcp.expect("a control block");
    // Timestamps take twelve bytes of each segment.
    assert!((500..=512).contains(&tcp.snd_mss), "{tcp:?}");
    // On a busy machine the kernel may retransmit some bytes.
    let again = tcp.bytes_retrans.expect("the kernel counts them");
    assert_eq!(tcp.bytes_sent, Some(100_000 + again), "{tcp:?}");
}

/// Stores the events, as rows of the control-block trace and as kinds.
struct Traced {
    csv: TcbCsv<Vec<u8>>,
    events: Vec<Event>,
    last: Option<Progress>,
}

impl SendObserver for Traced {
    fn event(&mut self, event: &Event) {
        self.csv.event(event);
        self.events.push(event.clone());
    }
    fn progress(&mut self, progress: Progress) {
        self.last = Some(progress);
    }
}

#[test]
fn the_trace_has_the_rows_of_the_simulator() {
    let mut traced = Traced { csv: TcbCsv::new(Vec::new()), events: Vec::new(), last: None };
    let bytes = 20_000_000;
    let (report, _, _) = against(V4, &verifying(1), |to| {
        let options = SendOptions { sample: Some(Span::millis(1)), ..SendOptions::new(to) };
        sent(&options, pattern(bytes), &mut traced)
    });
    let last = traced.last.expect("a progress report");
    let retransmissions = last.retransmissions;
    let complete = Progress { written: bytes, acked: bytes, retransmissions };
    assert_eq!(last, complete);
    let blocks: Vec<_> = traced
        .events
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
    assert!(traced.events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let (first, last) = (blocks[1].1, blocks[blocks.len() - 1].1);
    // Position 1 is the first byte: the SYN is acknowledged before it, and the FIN after all bytes.
    assert!(first.snd_una >= 1 && first.snd_una <= bytes + 1, "{first:?}");
    assert!((bytes + 1..=bytes + 2).contains(&last.snd_una), "{last:?}");
    assert!(blocks.iter().skip(1).all(|(_, tcb)| tcb.snd_una <= tcb.snd_nxt && tcb.cwnd > 0));
    assert!(last.srtt > Span::ZERO && last.rto > Span::ZERO && last.snd_wnd > 0, "{last:?}");
    assert_eq!(report.timeouts, report.tcp.and_then(|tcp| tcp.total_rto).map(u64::from));
    let text = String::from_utf8(traced.csv.finish().expect("written")).expect("text");
    assert_eq!(text.lines().count(), blocks.len() + 1);
}

#[test]
fn a_connection_without_a_listener_is_refused() {
    // A port that was free a moment ago.
    let to = TcpListener::bind((V4, 0)).and_then(|l| l.local_addr()).expect("a port");
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    let error = send(&SendOptions::new(to), pattern(1), &session, &mut ()).unwrap_err();
    assert!(matches!(error, EndpointError::Refused(at) if at == to), "{error}");
    assert!(error.help().contains("lasthop discard --listen 0.0.0.0:"), "{}", error.help());
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
    let error = send(&options, pattern(1), &session, &mut ()).unwrap_err();
    assert!(
        matches!(error, EndpointError::TimedOut { to: at, after: limit } if at == to && limit == after),
        "{error}"
    );
    assert!(session.clock.now().since(lasthop_proto::units::Time::ZERO) >= after);
}

#[test]
fn unsupported_options_and_addresses_are_reported() {
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    let to = SocketAddr::new(V4, 1);
    let options = SendOptions { congestion: Some("carrier".to_owned()), ..SendOptions::new(to) };
    let error = send(&options, pattern(1), &session, &mut ()).unwrap_err();
    assert!(error.to_string().contains("`carrier`"), "{error}");
    for name in available_congestion() {
        assert!(error.help().contains(&name), "{}", error.help());
    }
    let options = SendOptions { mss: Some(1), ..SendOptions::new(to) };
    let error = send(&options, pattern(1), &session, &mut ()).unwrap_err();
    assert!(matches!(error, EndpointError::Mss(1)), "{error}");
    let taken = listen(SocketAddr::new(V4, 0)).expect("a listener");
    let error = listen(taken.local_addr().expect("an address")).unwrap_err();
    assert!(matches!(error, EndpointError::InUse(_)), "{error}");
    let error = listen("192.0.2.1:0".parse().expect("an address")).unwrap_err();
    assert!(matches!(error, EndpointError::Address { .. }), "{error}");
}

/// Sends to a foreign peer. `peer` receives the accepted connection and a signal at the sender's end, and may
/// raise the sender's stop flag.
fn against_peer(
    idle: Option<Span>,
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
        let options = SendOptions { idle, ..SendOptions::new(to) };
        let report = send(&options, pattern(bytes), &session, &mut ()).expect("a connection");
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
    let report = against_peer(None, u64::MAX, |mut stream, _, _| {
        stream.read_exact(&mut [0; 1000]).expect("some bytes");
        reset(stream);
    });
    assert!(matches!(report.end, End::Failed { .. }), "{report:?}");
    assert_eq!((report.all_acked, report.throughput()), (None, None));
}

#[test]
fn a_peer_that_never_reads_is_given_up() {
    let report = against_peer(Some(Span::millis(200)), u64::MAX, |_stream, wait, _| {
        let _ = wait.recv();
    });
    assert_eq!(report.end, End::Idle);
    assert!(report.bytes > 0 && report.acked < report.bytes, "{report:?}");
}

#[test]
fn a_peer_that_takes_all_and_never_closes_is_given_up() {
    // All bytes fit into the receive window, so the kernel acknowledges them before the peer reads.
    let report = against_peer(Some(Span::millis(200)), 10_000, |mut stream, wait, _| {
        stream.read_to_end(&mut Vec::new()).expect("all of it");
        let _ = wait.recv();
    });
    assert_eq!((report.end.clone(), report.acked), (End::Idle, 10_000));
    assert!(report.all_acked.is_some());
}

#[test]
fn a_stop_in_mid_transfer_breaks_the_connection() {
    let (peer_end, ends) = channel();
    let report = against_peer(None, u64::MAX, move |mut stream, _, stop| {
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
    let report = send(&SendOptions::new(to), pattern(1), &session, &mut ());
    assert_eq!(report.expect("a connection").end, End::Stopped);
    let error = send(&SendOptions::new(to), pattern(1), &session, &mut ()).unwrap_err();
    assert!(matches!(error, EndpointError::Stopped(at) if at == to), "{error}");
}

#[test]
fn a_peer_that_closes_first_still_gets_everything() {
    let (took, taken) = channel();
    let report = against_peer(None, 5_000_000, move |mut stream, _, _| {
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
    let report = against_peer(None, 1_000_000, |mut stream, _, _| {
        let mut other = stream.try_clone().expect("a second handle");
        thread::scope(|scope| {
            scope.spawn(move || other.write_all(&[7; 3_000_000]).expect("written"));
            stream.read_to_end(&mut Vec::new()).expect("all of it");
        });
    });
    assert_eq!((report.end.clone(), report.acked), (End::Closed, 1_000_000));
}

#[test]
fn silent_and_aborted_clients_free_their_slots() {
    // Longer than a busy machine delays the data of the third client.
    let options = DiscardOptions { at_once: 1, idle: Some(Span::secs(3)), ..verifying(3) };
    let (_, seen, totals) = against(V4, &options, |to| {
        let silent = TcpStream::connect(to).expect("a connection");
        let gone = TcpStream::connect(to).expect("a connection");
        reset(gone);
        let report = sent(&SendOptions::new(to), pattern(1000), &mut ());
        drop(silent);
        report
    });
    let ends: Vec<_> = seen.iter().map(|one| one.end.clone()).collect();
    assert_eq!((&ends[0], &ends[2]), (&End::Idle, &End::Closed), "{ends:?}");
    assert!(matches!(ends[1], End::Failed { .. }), "{ends:?}");
    assert_eq!((totals.bad, totals.bytes), (2, 1000));
}

#[test]
fn a_stopped_receiver_reports_its_partial_transfer() {
    struct Observer(std::sync::mpsc::Sender<u64>, Vec<Received>);
    impl DiscardObserver for Observer {
        fn accepted(&mut self, number: u64, _: SocketAddr) {
            let _ = self.0.send(number);
        }
        fn received(&mut self, transfer: &Received) {
            self.1.push(transfer.clone());
        }
    }
    let listener = listen(SocketAddr::new(V4, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let (sender, numbers) = channel();
    let mut observer = Observer(sender, Vec::new());
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let mut stream = TcpStream::connect(to).expect("a connection");
            stream.write_all(b"something").expect("written");
            assert_eq!(numbers.recv(), Ok(1));
            stop.store(true, Ordering::Relaxed);
            let _ = stream.read(&mut [0]);
        });
        let session = Session { clock: Clock::start(), stop };
        let options = DiscardOptions::default();
        discard(&listener, &options, &session, &mut observer).expect("it runs");
    });
    assert_eq!(observer.1.len(), 1);
    assert_eq!(observer.1[0].end, End::Stopped);
}
