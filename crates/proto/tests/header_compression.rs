//! RFC 1144's codec: the known lengths, identity over any traffic, effects of a loss, and garbage.

use lasthop_proto::link::header_compression::{
    A, C, CompressionConfig, Compressor, Coverage, Decompressor, ECHOED, I, Kind, Lost,
    MAX_COMPRESSED, ONE_WAY, P, Recovery, S, U, W,
};
use lasthop_proto::rng::Stream;
use lasthop_proto::wire::emit::emit;
use lasthop_proto::wire::{
    Acc, Addr, Body, Damage, Eln, Flags, Packet, PacketId, Segment, Seq, Smart, Timestamps,
    Transport,
};
use proptest::prelude::*;

const HERE: Addr = Addr::v4(10, 0, 0, 1);
const THERE: Addr = Addr::v4(10, 0, 0, 2);

fn config(recovery: Recovery, coverage: Coverage) -> CompressionConfig {
    CompressionConfig { recovery, coverage, ..CompressionConfig::default() }
}

/// A segment of connection `port` with `len` bytes.
fn segment(port: u16, seq: u32, ack: u32, len: u32) -> Packet {
    let mut segment = Segment::new(port, 23, Seq(seq), Seq(ack), Flags::ACK);
    segment.window = 8192;
    let body = Body::Pattern { stream: port.into(), offset: seq.into(), len };
    Packet::tcp(HERE, THERE, segment, body)
}

fn edit(mut packet: Packet, change: impl FnOnce(&mut Segment)) -> Packet {
    if let Transport::Tcp(segment) = &mut packet.transport {
        change(segment);
    }
    packet
}

/// The bytes of a packet, independent of its identity. A packet that cannot be written is compared as a
/// value.
fn bytes(packet: &Packet) -> Result<Vec<u8>, String> {
    let packet = packet.clone().with(|packet| packet.id = PacketId(0));
    let mut out = Vec::new();
    emit(&packet, &mut out).map(|_| out).map_err(|_| format!("{packet:?}"))
}

/// Both ends of a link.
struct Link {
    compressor: Compressor,
    decompressor: Decompressor,
}

impl Link {
    fn new(config: CompressionConfig) -> Link {
        let (compressor, decompressor) = (Compressor::new(config), Decompressor::new(config));
        Link { compressor, decompressor }
    }

    /// Sends `packet`, which arrives; returns its kind and header.
    fn carry(&mut self, packet: &Packet) -> (Kind, Vec<u8>) {
        let sent = self.compressor.compress(packet);
        let got = match sent.kind {
            Kind::Ip => {
                assert!(sent.header.is_empty());
                let whole = bytes(packet).unwrap();
                self.decompressor.decompress(Kind::Ip, &whole, Body::EMPTY)
            }
            kind => self.decompressor.decompress(kind, &sent.header, packet.body.clone()),
        };
        let got = got.unwrap();
        assert_eq!(bytes(&got), bytes(packet));
        assert_eq!(got.damage, packet.damage);
        (sent.kind, sent.header.to_vec())
    }

    /// The mask of the compressed header for `packet`, and the header's length.
    fn mask(&mut self, packet: &Packet) -> (u8, usize) {
        let (kind, header) = self.carry(packet);
        assert_eq!(kind, Kind::CompressedTcp);
        (header[0], header.len())
    }

    /// Sends `packet`, which is lost.
    fn lose(&mut self, packet: &Packet) {
        assert_eq!(self.compressor.compress(packet).kind, Kind::CompressedTcp);
    }

    /// Sends `packet` and returns its fate.
    fn try_carry(&mut self, packet: &Packet) -> Result<Packet, Lost> {
        let sent = self.compressor.compress(packet);
        self.decompressor.decompress(sent.kind, &sent.header, packet.body.clone())
    }
}

fn whole(recovery: Recovery) -> Link {
    Link::new(config(recovery, Coverage::Whole))
}

//= rfc1144#section-3.2.2: the two common cases take three bytes, mask and checksum
#[test]
fn bulk_data_takes_three_bytes() {
    let mut link = whole(Recovery::Retransmission);
    let packets: Vec<_> = (0..5).map(|i| segment(1, 1 + 512 * i, 1, 512)).collect();
    let (kind, header) = link.carry(&packets[0]);
    assert_eq!((kind, header.len(), header[9]), (Kind::UncompressedTcp, 40, 0));
    for packet in &packets[1..] {
        assert_eq!(link.mask(packet), (ONE_WAY, 3));
    }
    let pushed = edit(segment(1, 1 + 512 * 5, 1, 100), |s| s.flags = Flags::ACK | Flags::PSH);
    assert_eq!(link.mask(&pushed), (ONE_WAY | P, 3));
}

#[test]
fn typing_with_echo_takes_three_bytes_each_way() {
    let (mut to, mut back) = (whole(Recovery::Retransmission), whole(Recovery::Retransmission));
    for i in 0..10 {
        let push = |s: &mut Segment| s.flags = Flags::ACK | Flags::PSH;
        let key = edit(segment(1, 100 + i, 500 + i, 1), push);
        let echo = edit(segment(23, 500 + i, 101 + i, 1), push);
        if i == 0 {
            to.carry(&key);
            back.carry(&echo);
        } else {
            assert_eq!(to.mask(&key), (ECHOED | P, 3));
            assert_eq!(back.mask(&echo), (ECHOED | P, 3));
        }
    }
    // The last echo is acknowledged alone: one byte more, for the ACK. Sequence and ACK both grow by the last
    // key.
    let ack = segment(1, 110, 510, 0);
    assert_eq!(to.mask(&ack), (ECHOED, 3));
    // Data after an ACK without any: no field changed.
    assert_eq!(to.mask(&segment(1, 110, 510, 1)), (0, 3));
}

//= balakrishnan97#4.3: ACKs of 6 bytes
#[test]
fn acks_take_six_bytes_and_four_where_segments_are_short() {
    let mut link = whole(Recovery::Retransmission);
    link.carry(&segment(1, 1, 1000, 0));
    assert_eq!(link.mask(&segment(1, 1, 2000, 0)), (A, 6));
    assert_eq!(link.mask(&segment(1, 1, 4000, 0)), (A, 6));
    assert_eq!(link.mask(&segment(1, 1, 4255, 0)), (A, 4));
    assert_eq!(link.mask(&segment(1, 1, 4511, 0)), (A, 6));
    // The window moves as well, down and up: 16 bits that wrap.
    let narrow = edit(segment(1, 1, 5511, 0), |s| s.window = 8191);
    assert_eq!(link.mask(&narrow), (A | W, 9));
    assert_eq!(link.mask(&segment(1, 1, 6511, 0)), (A | W, 7));
    // A repeated ACK is sent uncompressed: the other end may have missed the first one.
    assert_eq!(link.carry(&segment(1, 1, 6511, 0)).0, Kind::UncompressedTcp);
}

#[test]
fn a_connection_number_takes_one_byte_when_it_changes() {
    let mut link = whole(Recovery::Retransmission);
    (0..2).for_each(|port| _ = link.carry(&segment(port, 1, 1, 100)));
    assert_eq!(link.mask(&segment(0, 101, 1, 100)), (ONE_WAY | C, 4));
    assert_eq!(link.mask(&segment(0, 201, 1, 100)), (ONE_WAY, 3));
    assert_eq!(link.mask(&segment(1, 101, 1, 100)), (ONE_WAY | C, 4));
    // The methods of RFC 2507 always send it.
    let mut link = whole(Recovery::Twice);
    link.carry(&segment(0, 1, 1, 100));
    assert_eq!(link.mask(&segment(0, 101, 1, 100)), (ONE_WAY | C, 4));
}

#[test]
fn urgent_window_and_ack_changes_give_the_longest_header() {
    let mut link = whole(Recovery::Twice);
    let full = |seq, ack, window, urgent| {
        edit(segment(1, seq, ack, 10), |s| {
            s.flags = Flags::ACK | Flags::URG;
            s.window = window;
            s.options_mut().urgent = urgent;
        })
    };
    link.carry(&full(1, 1, 0, 7));
    let sent = link.compressor.compress_numbered(&full(1, 300, 300, 7), 5000);
    assert_eq!(sent.header[0], C | I | U | W | A);
    assert_eq!(sent.header.len(), 1 + 1 + 2 + 1 + 3 + 3 + 3);
    let packet = full(1, 300, 300, 7);
    link.decompressor.decompress(sent.kind, &sent.header, packet.body.clone()).unwrap();
    assert_eq!(link.decompressor.ip_id(), Some(5000));
    // All four would be the mask with the special meaning.
    assert_eq!(link.carry(&full(2, 301, 301, 7)).0, Kind::UncompressedTcp);
    // The urgent pointer may have any value, including zero, and the flag may be omitted only with an
    // unchanged pointer.
    assert_eq!(link.mask(&full(2, 302, 301, 0)).0, C | U | A);
    assert_eq!(link.mask(&full(2, 303, 301, 700)), (C | U | A, 8));
    let off = edit(segment(1, 2, 304, 10), |s| (s.window, s.options_mut().urgent) = (301, 700));
    assert_eq!(link.mask(&off).0, C | A);
    assert_eq!(link.carry(&edit(off, |s| s.options_mut().urgent = 1)).0, Kind::UncompressedTcp);
}

#[test]
fn packets_outside_rfc_1144_are_sent_as_plain_ip() {
    let mut link = whole(Recovery::Retransmission);
    link.carry(&segment(1, 1, 1, 100));
    for flags in [Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK, Flags::RST | Flags::ACK] {
        assert_eq!(link.carry(&edit(segment(1, 101, 1, 0), |s| s.flags = flags)).0, Kind::Ip);
    }
    assert_eq!(link.carry(&edit(segment(1, 101, 1, 0), |s| s.flags = Flags::NONE)).0, Kind::Ip);
    let mut six = segment(1, 101, 1, 100);
    (six.src, six.dst) = ("fd00::1", "fd00::2").map_ip();
    assert_eq!(link.carry(&six).0, Kind::Ip);
    let udp = segment(1, 1, 1, 100).with(|packet| packet.transport = Transport::Other(17));
    assert_eq!(link.carry(&udp).0, Kind::Ip);
    let harmed = segment(1, 101, 1, 100).with(|packet| packet.damage = Damage::Tcp);
    assert_eq!(link.carry(&harmed).0, Kind::Ip);
    // None of them has moved the connection.
    assert_eq!(link.mask(&segment(1, 101, 1, 100)), (ONE_WAY, 3));
}

trait MapIp {
    fn map_ip(self) -> (Addr, Addr);
}

impl MapIp for (&str, &str) {
    fn map_ip(self) -> (Addr, Addr) {
        let ip = |text: &str| Addr::from(text.parse::<core::net::IpAddr>().unwrap());
        (ip(self.0), ip(self.1))
    }
}

#[test]
fn changed_options_need_a_whole_header_unchanged_ones_none() {
    let mut link = whole(Recovery::Retransmission);
    let stamped = |seq, value| {
        edit(segment(1, seq, 1, 100), |s| s.timestamps = Some(Timestamps { value, echo: 9 }))
    };
    assert_eq!(link.carry(&stamped(1, 1)).1.len(), 52);
    assert_eq!(link.mask(&stamped(101, 1)), (ONE_WAY, 3));
    assert_eq!(link.carry(&stamped(201, 2)).0, Kind::UncompressedTcp);
    let blocks = |ack, left| {
        edit(segment(1, 201, ack, 0), |s| _ = s.options_mut().sack.push(Seq(left), Seq(left + 5)))
    };
    assert_eq!(link.carry(&blocks(1, 50)).0, Kind::UncompressedTcp);
    assert_eq!(link.mask(&blocks(7, 50)), (A, 4));
    assert_eq!(link.carry(&blocks(8, 60)).0, Kind::UncompressedTcp);
    for change in [|p: &mut Packet| p.ttl -= 1, |p: &mut Packet| p.tos = 3] {
        let mut packet = blocks(9, 60);
        change(&mut packet);
        assert_eq!(link.carry(&packet).0, Kind::UncompressedTcp);
    }
}

#[test]
fn the_connection_not_used_longest_gives_way() {
    let config = CompressionConfig { slots: 2, ..CompressionConfig::default() };
    let mut link = Link::new(config);
    let number = |(kind, header): (Kind, Vec<u8>)| (kind, header[9]);
    assert_eq!(number(link.carry(&segment(1, 1, 1, 100))), (Kind::UncompressedTcp, 0));
    assert_eq!(number(link.carry(&segment(2, 1, 1, 100))), (Kind::UncompressedTcp, 1));
    assert_eq!(link.mask(&segment(1, 101, 1, 100)).0, ONE_WAY | C);
    assert_eq!(number(link.carry(&segment(3, 1, 1, 100))), (Kind::UncompressedTcp, 1));
    assert_eq!(link.mask(&segment(1, 201, 1, 100)).0, ONE_WAY | C);
    assert_eq!(number(link.carry(&segment(2, 101, 1, 100))), (Kind::UncompressedTcp, 1));
}

//= rfc1144#section-4.2: out of step until the sender retransmits
#[test]
fn after_a_silent_loss_headers_are_wrong_until_a_retransmission() {
    let mut link = whole(Recovery::Retransmission);
    link.carry(&segment(1, 1, 1, 100));
    link.carry(&segment(1, 101, 1, 100));
    link.lose(&segment(1, 201, 1, 100));
    for seq in [301, 401, 501] {
        let wrong = link.try_carry(&segment(1, seq, 1, 100)).unwrap();
        assert_eq!(wrong.damage, Damage::Tcp, "the receiver refuses it");
        assert_eq!(wrong.segment().unwrap().seq, Seq(seq - 100));
    }
    // The sender retransmits the lost segment: a step backwards, so a full header.
    assert_eq!(link.carry(&segment(1, 201, 1, 100)).0, Kind::UncompressedTcp);
    assert_eq!(link.mask(&segment(1, 301, 1, 100)), (ONE_WAY, 3));
}

//= rfc1144#section-4.1
#[test]
fn after_a_loss_that_is_noticed_frames_without_number_are_tossed() {
    let mut link = whole(Recovery::Retransmission);
    for port in [1, 2] {
        link.carry(&segment(port, 1, 1, 100));
    }
    link.lose(&segment(2, 101, 1, 100));
    link.decompressor.lost();
    assert_eq!(link.try_carry(&segment(2, 201, 1, 100)), Err(Lost::Tossed));
    // The other connection has its number in the header, and was not affected.
    assert_eq!(link.mask(&segment(1, 101, 1, 100)), (ONE_WAY | C, 4));
    assert_eq!(link.mask(&segment(1, 201, 1, 100)), (ONE_WAY, 3));
    let wrong = link.try_carry(&segment(2, 301, 1, 100)).unwrap();
    assert_eq!(wrong.damage, Damage::Tcp);
}

//= rfc2507#section-10.1
#[test]
fn twice_repairs_the_loss_of_one_of_equal_steps() {
    for coverage in [Coverage::Whole, Coverage::Headers] {
        let mut link = Link::new(config(Recovery::Twice, coverage));
        (0..3).for_each(|i| _ = link.carry(&segment(1, 1 + 100 * i, 1, 100)));
        link.lose(&segment(1, 301, 1, 100));
        assert_eq!(link.mask(&segment(1, 401, 1, 100)), (ONE_WAY | C, 4));
        // Two at once are too many, whatever follows.
        link.lose(&segment(1, 501, 1, 100));
        link.lose(&segment(1, 601, 1, 100));
        assert_eq!(link.try_carry(&segment(1, 701, 1, 100)), Err(Lost::OutOfStep(0)));
        assert_eq!(link.try_carry(&segment(1, 801, 1, 100)), Err(Lost::OutOfStep(0)));
        assert_eq!(link.carry(&segment(1, 501, 1, 100)).0, Kind::UncompressedTcp);
        // ACKs: a loss is repaired by the next step of the same size, after any number of others.
        link.carry(&segment(1, 601, 1000, 0));
        link.lose(&segment(1, 601, 3000, 0));
        assert_eq!(link.try_carry(&segment(1, 601, 4000, 0)), Err(Lost::OutOfStep(0)));
        assert_eq!(link.try_carry(&segment(1, 601, 5000, 0)), Err(Lost::OutOfStep(0)));
        assert_eq!(link.mask(&segment(1, 601, 7000, 0)).0, A | C);
    }
}

//= rfc2507#section-10.2
#[test]
fn feedback_requests_a_whole_header() {
    let mut link = whole(Recovery::Feedback);
    link.carry(&segment(1, 1, 1, 100));
    link.lose(&segment(1, 101, 1, 100));
    assert_eq!(link.try_carry(&segment(1, 201, 1, 100)), Err(Lost::OutOfStep(0)));
    let request = link.decompressor.request().unwrap();
    assert_eq!(link.decompressor.request(), None);
    // The request may be lost: the second, fourth and eighth dropped frame repeat it.
    let requests = (2..=9).filter(|i| {
        let step = link.try_carry(&segment(1, 101 + 100 * i, 1, 100));
        assert_eq!(step, Err(Lost::OutOfStep(0)));
        link.decompressor.request().is_some()
    });
    assert_eq!(requests.collect::<Vec<_>>(), [2, 4, 8]);
    link.compressor.on_request(&request);
    assert_eq!(link.carry(&segment(1, 1101, 1, 100)).0, Kind::UncompressedTcp);
    assert_eq!(link.mask(&segment(1, 1201, 1, 100)), (ONE_WAY | C, 4));
}

/// Real bytes and sums over the headers alone have equal results, for any losses.
#[test]
fn header_checksums_alone_give_the_same_results() {
    for recovery in [Recovery::Retransmission, Recovery::Twice, Recovery::Feedback] {
        let mut rng = Stream::new(7, "losses");
        let mut links =
            [Coverage::Whole, Coverage::Headers].map(|c| Link::new(config(recovery, c)));
        let (mut seq, mut right) = (1u32, 0);
        for i in 0..5000 {
            if rng.one_in(40) {
                seq = seq.saturating_sub(3000).max(1);
            }
            let len = if rng.one_in(9) { 77 } else { 1000 };
            let packet = segment(1 + (i / 50) % 3, seq, i.into(), len);
            seq += len;
            let lost = rng.one_in(30);
            let [a, b] = links.each_mut().map(|link| {
                let sent = link.compressor.compress(&packet);
                let got = (!lost).then(|| {
                    link.decompressor.decompress(sent.kind, &sent.header, packet.body.clone())
                });
                if let Some(request) = link.decompressor.request() {
                    link.compressor.on_request(&request);
                }
                (sent.kind, sent.header.len(), got)
            });
            assert_eq!(a, b);
            if let Some(Ok(got)) = a.2
                && got.damage == Damage::None
            {
                assert_eq!(bytes(&got), bytes(&packet), "what the checksum lets pass is right");
                right += 1;
            }
        }
        assert!((2000..5000).contains(&right), "{recovery:?}: {right}");
    }
}

trait OneIn {
    fn one_in(&mut self, n: u64) -> bool;
}

impl OneIn for Stream {
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn step() -> impl Strategy<Value = (u16, u32, u32, u32, u16, u8, u16, u8)> {
    let jump = prop_oneof![
        4 => 0u32..4, 4 => Just(100), 2 => 0u32..70_000, 1 => any::<u32>(), 1 => Just(u32::MAX - 99)
    ];
    let len = prop_oneof![3 => Just(100u32), 1 => Just(0), 1 => 0u32..2000];
    let window = prop_oneof![3 => Just(0u16), 1 => any::<u16>()];
    let flags = prop_oneof![4 => Just(0x10u8), 2 => Just(0x18), 1 => Just(0x30), 1 => any::<u8>()];
    let id = prop_oneof![4 => Just(1u16), 1 => any::<u16>()];
    (0u16..5, jump.clone(), jump, len, window, flags, id, 0u8..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn decompression_restores_any_traffic(
        steps in proptest::collection::vec(step(), 1..120),
        slots in 1u16..6,
        recovery in prop_oneof![
            Just(Recovery::Retransmission), Just(Recovery::Twice), Just(Recovery::Feedback)
        ],
        coverage in prop_oneof![Just(Coverage::Whole), Just(Coverage::Headers)],
    ) {
        let mut link = Link::new(CompressionConfig { slots, recovery, coverage });
        let mut flows = [(1u32, 1u32, 500u16, 0u16); 5];
        for (flow, seq, ack, len, window, flags, id, other) in steps {
            let now = &mut flows[usize::from(flow)];
            now.0 = now.0.wrapping_add(seq);
            now.1 = now.1.wrapping_add(ack);
            now.2 = now.2.wrapping_add(window);
            now.3 = now.3.wrapping_add(id);
            let mut packet = edit(segment(flow, now.0, now.1, len), |s| {
                (s.flags, s.window) = (Flags(flags.into()), now.2);
                match other {
                    0 => s.timestamps = Some(Timestamps { value: 5, echo: ack }),
                    1 => _ = s.options_mut().sack.push(Seq(1), Seq(2)),
                    2 => s.options_mut().urgent = window,
                    3 => s.options_mut().unknown = vec![30, 4, 1, 2],
                    // More than fits.
                    4 => s.options_mut().unknown = [30, 2].repeat(30),
                    // Fields that change from segment to segment.
                    9..=14 => {
                        let acked = Seq(ack);
                        let options = s.options_mut();
                        options.acc = Some(Acc::Window { segments: window, marks: flags, acked });
                    }
                    15..=18 => s.options_mut().smart = Some(Smart::Caused(Seq(ack))),
                    19..=22 => s.options_mut().eln = Some(Eln::Lost(Seq(ack))),
                    _ => {}
                }
            });
            match other {
                5 => packet.ttl = 9,
                6 => packet.tos = 1,
                7 => packet.damage = Damage::Ip,
                8 => packet.transport = Transport::Other(17),
                _ => {}
            }
            let sent = link.compressor.compress_numbered(&packet, now.3);
            prop_assert!(sent.kind != Kind::CompressedTcp || sent.header.len() <= MAX_COMPRESSED);
            if sent.kind == Kind::Ip {
                continue;
            }
            let got = link.decompressor.decompress(sent.kind, &sent.header, packet.body.clone());
            let got = got.map_err(|lost| TestCaseError::fail(format!("{lost}: {packet:?}")))?;
            prop_assert_eq!(got.damage, Damage::None);
            prop_assert_eq!(bytes(&got), bytes(&packet));
            prop_assert_eq!(link.decompressor.ip_id(), Some(now.3));
        }
    }

    /// Arbitrary frames between real ones affect only the connection that they name.
    #[test]
    fn garbage_is_refused_or_fails_its_checksum(
        frames in proptest::collection::vec(
            (0u8..3, proptest::collection::vec(any::<u8>(), 0..90), 0u32..70_000), 1..60),
        slots in 1u16..=256,
        requests in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let config = CompressionConfig { slots, ..config(Recovery::Feedback, Coverage::Headers) };
        let mut link = Link::new(config);
        link.carry(&segment(1, 1, 1, 100));
        for (kind, header, len) in frames {
            let kind = [Kind::Ip, Kind::UncompressedTcp, Kind::CompressedTcp][usize::from(kind)];
            let body = Body::Pattern { stream: 1, offset: 0, len };
            let _ = link.decompressor.decompress(kind, &header, body);
            let _ = link.decompressor.request();
        }
        link.compressor.on_request(&requests);
        // A full header synchronises the ends, after any input.
        link.compressor.on_request(&[3, 1, 0]);
        link.carry(&segment(1, 101, 1, 100));
        link.mask(&segment(1, 201, 1, 100));
    }
}

#[test]
fn masks_of_single_changes() {
    let mut link = whole(Recovery::Retransmission);
    link.carry(&segment(1, 1, 1, 100));
    assert_eq!(link.mask(&segment(1, 51, 1, 100)), (S, 4), "a step that is not the payload");
    assert_eq!(link.mask(&edit(segment(1, 51, 1, 100), |s| s.window += 1)), (W, 4));
    assert_eq!(link.mask(&edit(segment(1, 151, 2, 0), |s| s.window += 1)), (S | A, 5));
}
