use super::*;
use crate::event::Interest;
use crate::tcp::TcpConfig;
use crate::wire::Flags;

const US: Addr = Addr::v4(10, 0, 0, 1);
const PEER: Addr = Addr::v4(10, 0, 0, 2);

/// Two hosts on an ideal wire.
struct Pair {
    now: Time,
    ends: [Sockets; 2],
    /// Flags and payload of each packet, with the end that sent it.
    sent: Vec<(usize, Flags, u32)>,
    out: Out,
    /// Whether packets arrive.
    wired: bool,
}

impl Pair {
    fn new() -> Pair {
        let host = |name: &str, addr, side| {
            let tcp = Arc::new(TcpConfig::linux());
            Sockets::new(HostConfig { name: name.to_owned(), addr, side, tcp }, 1)
        };
        let ends = [host("a", US, Side::Right), host("b", PEER, Side::Left)];
        let out = Out::new(Interest::NOTHING);
        Pair { now: Time::ZERO, ends, sent: Vec::new(), out, wired: true }
    }

    /// A connection from the first to the second end, established at both.
    fn connected() -> (Pair, usize, usize) {
        let mut pair = Pair::new();
        pair.ends[1].listen(80, 5, &SocketOptions::default());
        let a = pair.ends[0].connect(pair.now, (PEER, 80), &SocketOptions::default());
        pair.run(Span::millis(10));
        assert_eq!(pair.ends[0].connected(a), Some(Ok(())));
        let b = pair.ends[1].accept(80).unwrap();
        pair.sent.clear();
        (pair, a, b)
    }

    /// Delivers all sent packets.
    fn carry(&mut self, from: usize) {
        let mut packets: Vec<Packet> = self.out.sends.drain(..).map(|(_, packet)| packet).collect();
        let mut from = from;
        while !packets.is_empty() {
            for packet in &packets {
                let flags = packet.segment().unwrap().flags;
                self.sent.push((from, flags, packet.body.len()));
            }
            if !self.wired {
                return;
            }
            let to = 1 - from;
            for packet in packets {
                self.ends[to].on_packet(self.now, Side::Left, packet, &mut self.out);
            }
            packets = self.out.sends.drain(..).map(|(_, packet)| packet).collect();
            from = to;
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let next = |end: &Sockets| end.next_wake().unwrap_or(Time::NEVER);
            let (at, which) = (0..2).map(|i| (next(&self.ends[i]), i)).min().unwrap();
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            self.ends[which].on_wake(self.now, &mut self.out);
            self.carry(which);
        }
        self.now = end;
    }

    fn send(&mut self, end: usize, index: usize, len: u32, more: bool) -> Result<u32, Errno> {
        let body = Body::copy_of(&vec![0; len as usize]);
        let result = self.ends[end].send(self.now, index, body, more, &mut self.out);
        self.carry(end);
        result
    }

    fn recv(&mut self, end: usize, index: usize) -> Result<u64, Errno> {
        let result = self.ends[end].recv(self.now, index, 1 << 20, &mut Vec::new(), &mut self.out);
        self.carry(end);
        result
    }

    fn close(&mut self, end: usize, index: usize) {
        self.ends[end].close(self.now, index, &mut self.out);
        self.carry(end);
    }

    fn flags(&self, end: usize) -> Vec<Flags> {
        self.sent.iter().filter(|(from, ..)| *from == end).map(|(_, flags, _)| *flags).collect()
    }
}

#[test]
fn a_port_that_does_not_listen_refuses() {
    let mut pair = Pair::new();
    let a = pair.ends[0].connect(pair.now, (PEER, 80), &SocketOptions::default());
    pair.run(Span::millis(1));
    assert_eq!(pair.ends[0].connected(a), Some(Err(Errno::ConnectionRefused)));
    assert_eq!(pair.ends[1].accept(80), Err(Errno::Invalid));
}

#[test]
fn a_full_backlog_ignores_syns() {
    let mut pair = Pair::new();
    pair.ends[1].listen(80, 1, &SocketOptions::default());
    let opened: Vec<usize> = (0..3)
        .map(|_| pair.ends[0].connect(pair.now, (PEER, 80), &SocketOptions::default()))
        .collect();
    pair.run(Span::millis(1));
    let states: Vec<_> = opened.iter().map(|i| pair.ends[0].connected(*i)).collect();
    assert_eq!(states, [Some(Ok(())), Some(Ok(())), None]);
    pair.ends[1].accept(80).unwrap();
    pair.run(Span::secs(4));
    assert_eq!(pair.ends[0].connected(opened[2]), Some(Ok(())), "the next SYN finds room");
}

#[test]
fn recv_returns_data_then_end_of_stream() {
    let (mut pair, a, b) = Pair::connected();
    assert_eq!(pair.recv(1, b), Err(Errno::Again));
    assert_eq!(pair.send(0, a, 300, false), Ok(300));
    pair.close(0, a);
    assert_eq!(pair.recv(1, b), Ok(300));
    assert_eq!(pair.recv(1, b), Ok(0));
    assert_eq!(pair.send(0, a, 1, false), Err(Errno::Pipe));
}

#[test]
fn closing_with_unread_data_resets() {
    let (mut pair, a, b) = Pair::connected();
    pair.send(0, a, 300, false).unwrap();
    pair.close(1, b);
    assert!(pair.flags(1).iter().any(|flags| flags.has(Flags::RST)));
    assert_eq!(pair.send(0, a, 1, false), Err(Errno::ConnectionReset));
    assert_eq!(pair.send(0, a, 1, false), Err(Errno::Pipe), "the error is reported once");
}

#[test]
fn zero_linger_resets_on_close() {
    let (mut pair, a, _) = Pair::connected();
    let linger = |options: &mut SocketOptions| options.linger = Some(Span::ZERO);
    pair.ends[0].set_options(pair.now, a, linger, &mut pair.out);
    pair.close(0, a);
    assert_eq!(pair.flags(0), [Flags::RST | Flags::ACK]);
}

#[test]
fn data_for_a_closed_socket_is_answered_with_a_reset() {
    let (mut pair, a, b) = Pair::connected();
    pair.close(1, b);
    pair.send(0, a, 300, false).unwrap();
    assert_eq!(pair.flags(1).last(), Some(&Flags::RST));
    assert_eq!(pair.recv(0, a), Ok(0), "the peer had closed before");
    assert_eq!(pair.send(0, a, 1, false), Err(Errno::Pipe));
}

#[test]
fn nagle_delays_small_segments_until_an_ack() {
    let (mut pair, a, _) = Pair::connected();
    pair.wired = false;
    for _ in 0..3 {
        pair.send(0, a, 100, false).unwrap();
    }
    assert_eq!(pair.sent.iter().map(|sent| sent.2).collect::<Vec<_>>(), [100]);
    let nodelay = |options: &mut SocketOptions| options.nodelay = true;
    pair.ends[0].set_options(pair.now, a, nodelay, &mut pair.out);
    pair.carry(0);
    pair.send(0, a, 50, false).unwrap();
    assert_eq!(pair.sent.iter().map(|sent| sent.2).collect::<Vec<_>>(), [100, 200, 50]);
}

#[test]
fn a_cork_holds_partial_segments() {
    let (mut pair, a, _) = Pair::connected();
    pair.send(0, a, 100, true).unwrap();
    assert!(pair.sent.is_empty());
    pair.send(0, a, 100, false).unwrap();
    assert_eq!(pair.sent[0].2, 200);
    let cork = |options: &mut SocketOptions| options.cork = true;
    pair.ends[0].set_options(pair.now, a, cork, &mut pair.out);
    pair.sent.clear();
    pair.send(0, a, 10, false).unwrap();
    assert!(pair.sent.is_empty());
    pair.ends[0].set_options(pair.now, a, |options| options.cork = false, &mut pair.out);
    pair.carry(0);
    assert_eq!(pair.sent[0].2, 10);
}

#[test]
fn unacknowledged_data_ends_a_connection_after_the_user_timeout() {
    let (mut pair, a, _) = Pair::connected();
    let timeout = |options: &mut SocketOptions| options.user_timeout = Some(Span::secs(3));
    pair.ends[0].set_options(pair.now, a, timeout, &mut pair.out);
    pair.wired = false;
    pair.send(0, a, 100, false).unwrap();
    pair.run(Span::millis(2990));
    assert!(!pair.ends[0].connection(a).unwrap().is_aborted());
    pair.run(Span::millis(20));
    assert_eq!(pair.recv(0, a), Err(Errno::TimedOut));
}

#[test]
fn keepalives_probe_and_give_up() {
    let (mut pair, a, _) = Pair::connected();
    let keep = KeepAlive { idle: Span::secs(10), interval: Span::secs(1), count: 3 };
    pair.ends[0].set_options(pair.now, a, |o| o.keepalive = Some(keep), &mut pair.out);
    pair.run(Span::secs(25));
    assert_eq!(pair.flags(0).len(), 2, "each probe is answered");
    assert!(!pair.ends[0].connection(a).unwrap().is_aborted());
    pair.wired = false;
    pair.run(Span::secs(20));
    assert_eq!(pair.recv(0, a), Err(Errno::TimedOut));
}

#[test]
fn maxseg_bounds_the_segments_that_are_sent() {
    let mut pair = Pair::new();
    pair.ends[1].listen(80, 5, &SocketOptions::default());
    let options = SocketOptions { maxseg: Some(500), ..SocketOptions::default() };
    let a = pair.ends[0].connect(pair.now, (PEER, 80), &options);
    pair.run(Span::millis(1));
    pair.sent.clear();
    pair.send(0, a, 2000, false).unwrap();
    assert!(pair.sent.iter().all(|sent| sent.2 <= 500) && pair.sent.len() > 4);
}

#[test]
fn socket_info_has_negotiated_options_and_counters() {
    let (mut pair, a, _) = Pair::connected();
    pair.send(0, a, 3000, false).unwrap();
    pair.run(Span::millis(100));
    let info = pair.ends[0].info(a).unwrap();
    assert_eq!((info.state, info.snd_mss, info.timestamps), (State::Established, 1448, true));
    assert_eq!((info.bytes_acked, info.unacked, info.snd_ssthresh), (3000, 0, None));
}
