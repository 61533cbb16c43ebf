//! Connections with a role, against the receiver and against hostile clients, over loopback. No test asserts a duration.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lasthop_live::clock::Clock;
use lasthop_live::endpoint::{
    DiscardObserver, DiscardOptions, End, EndpointError, LoadObserver, LoadOptions, Pattern, Phase,
    Received, Refusal, Reply, Report, Request, Role, RoleLimits, SendOptions, Served, Session,
    Totals, UdpOptions, discard, listen, load, receive, receive_udp, send_udp,
};
use lasthop_proto::units::{Rate, Span};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Length of a request and of an answer, bytes.
const MESSAGE: usize = 64;

/// Length of a block of data with marks, bytes.
const BLOCK: usize = 1024;

#[derive(Default)]
struct Log {
    received: Vec<Received>,
    served: Vec<Served>,
}

impl DiscardObserver for Log {
    fn received(&mut self, transfer: &Received) {
        self.received.push(transfer.clone());
    }
    fn served(&mut self, served: &Served) {
        self.served.push(served.clone());
    }
}

/// Raises the stop flag at the end of a client, also if it panics: the receiver would run for ever.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `client` against a receiver, and stops the receiver after it.
fn against<T: Send>(
    options: &DiscardOptions,
    client: impl FnOnce(SocketAddr) -> T + Send,
) -> (T, Log, Totals) {
    let listener = listen(SocketAddr::new(V4, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let stop = AtomicBool::new(false);
    let session = Session { clock: Clock::start(), stop: &stop };
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut seen = Log::default();
            let totals = discard(&listener, options, &session, &mut seen).expect("it runs");
            (seen, totals)
        });
        let stopping = StopAtEnd(&stop);
        let result = client(to);
        drop(stopping);
        let (seen, totals) = receiver.join().expect("the receiver ends");
        (result, seen, totals)
    })
}

fn with_session<T>(run: impl FnOnce(&Session<'_>) -> T) -> T {
    let stop = AtomicBool::new(false);
    run(&Session { clock: Clock::start(), stop: &stop })
}

/// Options whose handshake may take as long as a busy machine needs.
fn to(address: SocketAddr) -> SendOptions {
    SendOptions { connect_timeout: Span::secs(60), ..SendOptions::new(address) }
}

fn request(role: Role) -> Request {
    Request { duration: Span::secs(60), ..Request::new(role) }
}

/// Sends a request and returns the connection with the answer.
fn requested(address: SocketAddr, request: &Request) -> (TcpStream, Reply) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(&request.encode()).expect("written");
    let mut answer = [0; MESSAGE];
    stream.read_exact(&mut answer).expect("an answer");
    (stream, Reply::parse(&answer).expect("an answer"))
}

fn small_load(address: SocketAddr) -> LoadOptions {
    LoadOptions {
        send: to(address),
        phases: Phase::ALL.to_vec(),
        duration: Span::secs(1),
        streams: 2,
        interval: Span::millis(5),
    }
}

#[test]
fn all_phases_over_loopback() {
    let (report, seen, totals) = against(&DiscardOptions::default(), |address| {
        with_session(|session| load(&small_load(address), session, &())).expect("a receiver")
    });
    assert!(report.complete && report.failed.is_none(), "{:?}", report.failed);
    let phases: Vec<Phase> = report.phases.iter().map(|phase| phase.phase).collect();
    assert_eq!(phases, Phase::ALL);
    for phase in &report.phases {
        assert!(!phase.probes.samples.is_empty(), "{phase:?}");
        let connections = &phase.connections;
        assert!(connections.iter().all(|sample| sample.result.is_ok()), "{connections:?}");
        assert!(!connections.is_empty());
        let up = matches!(phase.phase, Phase::Up | Phase::Both);
        let down = matches!(phase.phase, Phase::Down | Phase::Both);
        assert_eq!((phase.up.is_some(), phase.down.is_some()), (up, down));
        for bulk in phase.up.iter().chain(&phase.down) {
            assert_eq!(bulk.streams.len(), 2);
            assert!(bulk.series.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", bulk.series);
            for stream in &bulk.streams {
                assert_eq!(stream.failed, None);
                assert!(stream.bytes > 0, "{stream:?}");
            }
        }
    }
    // The server's kernel counted the downloads.
    let down = report.phases[2].down.as_ref().expect("downloads");
    for stream in &down.streams {
        let sender = stream.sender.expect("a report");
        assert!(sender.bytes >= stream.bytes, "{stream:?}");
    }
    assert_eq!(totals.transfers, 0, "roles are no transfers");
    assert!(seen.served.iter().all(|served| served.refused.is_none()), "{:?}", seen.served);
}

#[test]
fn plain_connections_that_begin_like_a_request_stay_plain() {
    let options = DiscardOptions { count: Some(3), ..DiscardOptions::default() };
    let message = request(Role::Download).encode();
    let almost = [&message[..23], b"x", &[7; 200]].concat();
    let (_, seen, totals) = against(&options, |address| {
        // A prefix alone; one that differs late; one that arrives byte by byte.
        for bytes in [&message[..10], &almost] {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.write_all(bytes).expect("written");
            stream.shutdown(Shutdown::Write).expect("closed");
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("closed by the receiver");
            assert!(rest.is_empty());
        }
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("set");
        for byte in &almost {
            stream.write_all(&[*byte]).expect("written");
        }
        stream.shutdown(Shutdown::Write).expect("closed");
        stream.read_to_end(&mut Vec::new()).expect("closed by the receiver");
    });
    let bytes: Vec<u64> = seen.received.iter().map(|one| one.bytes).collect();
    assert_eq!(bytes, [10, almost.len() as u64, almost.len() as u64]);
    assert_eq!(seen.received[1].sha256, seen.received[2].sha256);
    assert_eq!((totals.transfers, totals.bad), (3, 0));
    assert!(seen.served.is_empty());
}

#[test]
fn refusals_have_their_reasons() {
    let refused = |options: &DiscardOptions, request: &Request| {
        let (answer, seen, _) = against(options, |address| {
            let (mut stream, answer) = requested(address, request);
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("closed by the receiver");
            assert!(rest.is_empty());
            answer
        });
        assert_eq!(seen.served.len(), 1, "{:?}", seen.served);
        let Reply::Refused(refusal) = answer else { panic!("{answer:?}") };
        assert_eq!(seen.served[0].refused, Some(refusal));
        refusal
    };
    let usual = DiscardOptions::default();
    let plain = DiscardOptions { roles: None, ..usual.clone() };
    assert_eq!(refused(&plain, &request(Role::Echo)), Refusal::Off);
    let counting = DiscardOptions { count: Some(1), ..usual.clone() };
    assert_eq!(refused(&counting, &request(Role::Upload)), Refusal::Off);
    assert_eq!(refused(&usual, &request(Role::Udp)), Refusal::Udp);
    let none = Some(RoleLimits { per_second: 0, ..RoleLimits::default() });
    let busy = DiscardOptions { roles: none, ..usual.clone() };
    assert_eq!(refused(&busy, &request(Role::Download)), Refusal::Busy);
    let carrier = Request { congestion: Some("carrier".to_owned()), ..request(Role::Download) };
    assert_eq!(refused(&usual, &carrier), Refusal::Congestion);
}

/// One client has no more connections with roles than its limit, and a new one after an old one has ended.
#[test]
fn connections_of_a_client_are_limited() {
    let limits = RoleLimits { client_at_once: 2, ..RoleLimits::default() };
    let options = DiscardOptions { roles: Some(limits), ..DiscardOptions::default() };
    let ((), seen, _) = against(&options, |address| {
        let open = || requested(address, &request(Role::Echo));
        let (first, second) = (open(), open());
        assert!(matches!(second.1, Reply::Granted { .. }), "{second:?}");
        let (mut refused, answer) = open();
        assert_eq!(answer, Reply::Refused(Refusal::Client));
        refused.read_to_end(&mut Vec::new()).expect("closed by the receiver");
        drop(refused);
        drop(first);
        // Until the receiver has noticed the two ends.
        while !matches!(open().1, Reply::Granted { .. }) {
            thread::yield_now();
        }
    });
    assert!(seen.served.iter().any(|served| served.refused == Some(Refusal::Client)));
}

#[test]
fn a_refusal_reaches_the_client_as_an_error() {
    let plain = DiscardOptions { roles: None, ..DiscardOptions::default() };
    let (error, _, _) = against(&plain, |address| {
        with_session(|session| load(&small_load(address), session, &())).unwrap_err()
    });
    let EndpointError::Role { refusal, .. } = &error else { panic!("{error}") };
    assert_eq!(*refusal, Refusal::Off);
    assert!(error.help().contains("--plain"), "{}", error.help());
}

/// An older receiver reads everything and answers nothing; another one closes at once.
#[test]
fn receivers_without_roles_are_named() {
    for closes in [false, true] {
        let listener = TcpListener::bind((V4, 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let error = thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                if !closes {
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            });
            let send =
                SendOptions { connect_timeout: Span::millis(300), ..SendOptions::new(address) };
            let options = LoadOptions { send, ..small_load(address) };
            with_session(|session| load(&options, session, &())).unwrap_err()
        });
        assert!(matches!(error, EndpointError::NoRoles(at) if at == address), "{error}");
        assert!(error.help().contains("lasthop discard --listen 0.0.0.0:"), "{}", error.help());
    }
}

#[test]
fn a_download_ends_at_the_limit_with_a_report() {
    let limits = RoleLimits { bytes: 300_000, ..RoleLimits::default() };
    let options = DiscardOptions { roles: Some(limits), ..DiscardOptions::default() };
    let (bytes, seen, _) = against(&options, |address| {
        let (mut stream, answer) =
            requested(address, &Request { bytes: Some(u64::MAX), ..request(Role::Download) });
        assert!(matches!(answer, Reply::Granted { bytes: 300_000, .. }), "{answer:?}");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("everything");
        bytes
    });
    let (data, report) = bytes.split_at(300_000);
    let mut pattern = Vec::new();
    Pattern { stream: 0 }.fill(0, 300_000, &mut pattern);
    assert!(data == pattern);
    assert_eq!(Report::parse(report).expect("a report").bytes, 300_000);
    assert_eq!((seen.served[0].bytes, seen.served[0].role), (300_000, Some(Role::Download)));
}

/// The mark of a download is the number of bytes that the client has sent.
#[test]
fn marks_of_a_download_follow_the_client() {
    against(&DiscardOptions::default(), |address| {
        let request = Request { marks: true, ..request(Role::Download) };
        let (mut stream, _) = requested(address, &request);
        let mut block = [0; BLOCK];
        for sent in 0..3_u64 {
            let mut mark = || {
                stream.read_exact(&mut block).expect("a block");
                u64::from_be_bytes(*block.first_chunk().expect("a mark"))
            };
            while mark() < sent {}
            assert_eq!(mark(), sent);
            stream.write_all(&[0]).expect("written");
        }
    });
}

#[test]
fn marks_of_an_upload_are_returned() {
    against(&DiscardOptions::default(), |address| {
        let request = Request { marks: true, ..request(Role::Upload) };
        let (mut stream, _) = requested(address, &request);
        let mut returned = [0; 8];
        for mark in [1_u64, 2, u64::MAX] {
            let block = [&mark.to_be_bytes()[..], &[0xff; BLOCK - 8]].concat();
            // Also in pieces.
            stream.write_all(&block[..5]).expect("written");
            stream.write_all(&block[5..]).expect("written");
            stream.read_exact(&mut returned).expect("an answer");
            assert_eq!(returned, mark.to_be_bytes());
        }
        stream.shutdown(Shutdown::Write).expect("closed");
        let mut report = Vec::new();
        stream.read_to_end(&mut report).expect("a report");
        assert_eq!(Report::parse(&report).expect("a report").bytes, 3 * BLOCK as u64);
    });
}

#[test]
fn probes_are_returned_and_counted() {
    let (_, seen, _) = against(&DiscardOptions::default(), |address| {
        let (mut stream, _) = requested(address, &request(Role::Echo));
        for length in [1, 64, 5000] {
            let sent: Vec<u8> = (0..length).map(|n: u32| n as u8).collect();
            stream.write_all(&sent).expect("written");
            let mut back = vec![0; sent.len()];
            stream.read_exact(&mut back).expect("returned");
            assert!(back == sent);
        }
        stream.shutdown(Shutdown::Write).expect("closed");
        let mut report = Vec::new();
        stream.read_to_end(&mut report).expect("a report");
        assert_eq!(Report::parse(&report).expect("a report").bytes, 5065);
    });
    assert_eq!((seen.served[0].bytes, seen.served[0].role), (5065, Some(Role::Echo)));
}

/// A client that never reads its probes blocks only itself.
#[test]
fn an_unread_echo_blocks_no_other_client() {
    let (_, seen, totals) = against(&DiscardOptions::default(), |address| {
        let (deaf, _) = requested(address, &request(Role::Echo));
        deaf.set_nonblocking(true).expect("set");
        // Until no buffer on the way has room. On a busy machine each attempt may take a moment, and the receiver ends
        // connections that are silent for long.
        let mut full = 0;
        while full < 100 {
            match (&deaf).write(&[1; 4096]) {
                Ok(_) => full = 0,
                Err(error) if error.kind() == ErrorKind::WouldBlock => full += 1,
                Err(error) => panic!("{error}"),
            }
            thread::yield_now();
        }
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(&[2; 100_000]).expect("written");
        stream.shutdown(Shutdown::Write).expect("closed");
        stream.read_to_end(&mut Vec::new()).expect("closed by the receiver");
    });
    assert_eq!((totals.transfers, totals.bad, totals.bytes), (1, 0, 100_000));
    assert_eq!(seen.served.len(), 1);
}

#[test]
fn a_reverse_transfer_is_the_pattern() {
    for bytes in [0, 1, 2_000_000] {
        let (report, ..) = against(&DiscardOptions::default(), |address| {
            with_session(|session| receive(&to(address), bytes, Span::secs(60), session, &mut ()))
                .expect("a receiver")
        });
        assert_eq!((report.end, report.bytes, report.wrong), (End::Closed, bytes, None));
        assert_eq!(report.sender.expect("a report").bytes, bytes);
    }
}

#[test]
fn a_reverse_transfer_beyond_the_limit_is_not_complete() {
    let limits = RoleLimits { bytes: 1000, ..RoleLimits::default() };
    let options = DiscardOptions { roles: Some(limits), ..DiscardOptions::default() };
    let (report, ..) = against(&options, |address| {
        with_session(|session| receive(&to(address), 1001, Span::secs(60), session, &mut ()))
            .expect("a receiver")
    });
    let End::Failed { why } = &report.end else { panic!("{report:?}") };
    assert!(why.contains("at most 1000 bytes"), "{why}");
    assert_eq!((report.bytes, report.throughput()), (1000, None));
}

/// Raises the stop flag during uploads.
struct Stopping<'a>(&'a AtomicBool);

impl LoadObserver for Stopping<'_> {
    fn progress(&self, phase: Phase, _: Span, up: u64, _: u64) {
        if phase == Phase::Up && up > 0 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stopped_measurement_reports_its_finished_part() {
    let (report, ..) = against(&DiscardOptions::default(), |address| {
        let stop = AtomicBool::new(false);
        let session = Session { clock: Clock::start(), stop: &stop };
        let options = LoadOptions { duration: Span::secs(30), ..small_load(address) };
        let options = LoadOptions { phases: vec![Phase::Up, Phase::Down], ..options };
        load(&options, &session, &Stopping(&stop)).expect("a receiver")
    });
    assert!(!report.complete && report.failed.is_none(), "{:?}", report.failed);
    let [up] = report.phases.as_slice() else { panic!("{:?}", report.phases) };
    assert!(up.seconds <= Span::secs(30));
    let bulk = up.up.as_ref().expect("uploads");
    assert!(bulk.streams.iter().any(|stream| stream.bytes > 0), "{bulk:?}");
}

#[test]
fn datagrams_are_counted_and_forged_ones_ignored() {
    let options = DiscardOptions { udp: true, ..DiscardOptions::default() };
    let (report, seen, _) = against(&options, |address| {
        let forged = UdpSocket::bind((V4, 0)).expect("a socket");
        for length in [0, 31, 32, 1400] {
            forged.send_to(&vec![0; length], address).expect("sent");
        }
        let options = UdpOptions {
            send: to(address),
            rate: Rate::from_bps(2_000_000).expect("a rate"),
            length: 500,
            duration: Span::millis(500),
        };
        with_session(|session| send_udp(&options, session, &mut ())).expect("a receiver")
    });
    let receiver = report.receiver.expect("a report");
    assert!(receiver.datagrams <= report.sent, "{report:?}");
    assert_eq!(receiver.bytes, receiver.datagrams * 500);
    assert_eq!((receiver.reordered, receiver.duplicates), (0, 0), "loopback keeps the order");
    assert_eq!(report.lost(), Some(report.sent - receiver.datagrams));
    assert_eq!(seen.served[0].role, Some(Role::Udp));
}

#[test]
fn datagrams_of_the_receiver_are_counted() {
    let options = DiscardOptions { udp: true, ..DiscardOptions::default() };
    let (report, seen, _) = against(&options, |address| {
        let options = UdpOptions {
            send: to(address),
            rate: Rate::from_bps(2_000_000).expect("a rate"),
            length: 500,
            duration: Span::millis(500),
        };
        with_session(|session| receive_udp(&options, session, &mut ())).expect("a receiver")
    });
    assert_eq!((&report.end, report.reverse, report.limited), (&End::Closed, true, None));
    let receiver = report.receiver.expect("counters");
    assert!((1..=report.sent).contains(&receiver.datagrams), "{report:?}");
    assert_eq!(receiver.bytes, receiver.datagrams * 500);
    assert_eq!(report.bytes, report.sent * 500);
    assert_eq!((receiver.reordered, receiver.duplicates), (0, 0), "loopback keeps the order");
    assert_eq!(seen.served[0].role, Some(Role::UdpDown));
}

/// Datagrams go only to an address that sends the token, at most at the limit, once for each client.
#[test]
fn datagrams_need_the_token_of_the_client() {
    let limits = RoleLimits { udp_rate: 10_000, ..RoleLimits::default() };
    let options = DiscardOptions { udp: true, roles: Some(limits), ..DiscardOptions::default() };
    against(&options, |address| {
        let udp_request = Request { bytes: Some(1 << 40), length: 100, ..request(Role::UdpDown) };
        let (_control, answer) = requested(address, &udp_request);
        let Reply::Granted { bytes: 10_000, token, .. } = answer else { panic!("{answer:?}") };
        let (_second, answer) = requested(address, &udp_request);
        assert_eq!(answer, Reply::Refused(Refusal::Client));
        let socket = UdpSocket::bind((V4, 0)).expect("a socket");
        let mut piece = [0; 200];
        socket.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("set");
        socket.send_to(&[7; 32], address).expect("sent");
        let error = socket.recv(&mut piece).expect_err("nothing without the token");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        socket.set_read_timeout(None).expect("set");
        socket.send_to(&[&token[..], &[0; 16]].concat(), address).expect("sent");
        assert_eq!(socket.recv(&mut piece).expect("a datagram"), 100);
        assert_eq!(piece[..16], token);
    });
}
