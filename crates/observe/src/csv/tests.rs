use super::*;
use crate::layout::{Role, StageInfo};
use crate::testing;

fn layout() -> Layout {
    let stages = ["fixed", "wire, \"thin\""]
        .map(|name| StageInfo { name: name.to_owned(), role: Role::Link });
    Layout { stages: stages.into(), ..Layout::default() }
}

#[test]
fn rows_are_exact_and_of_equal_width() {
    let mut csv = EventCsv::new(&layout(), Vec::new());
    let mut tcb = TcbCsv::new(Vec::new());
    let events = [
        testing::transmitted(1_500_000_001, 1, 7, 1, 1460),
        testing::tcp_at_receiver(2_000_000_000, TcpKind::Delivered { bytes: 1460 }),
        testing::tcp_at_sender(2_000_000_000, TcpKind::Timeout),
        Event {
            at: Time(3),
            stage: StageId(9),
            kind: EventKind::Agent {
                flow: testing::FLOW,
                note: AgentNote::LocalRtt { rtt: Span::millis(4) },
            },
        },
        Event {
            at: Time(4),
            stage: StageId(1),
            kind: EventKind::Channel { side: Side::Right, good: false },
        },
    ];
    for event in &events {
        csv.event(event);
        tcb.event(event);
    }
    let text = String::from_utf8(csv.finish().unwrap()).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows[1],
        "1.500000001,\"wire, \"\"thin\"\"\",transmitted,,right,7,\
         10.0.0.1:1024>10.0.1.1:9,1001,5001,.,8760,1460,1500,,"
    );
    assert_eq!(rows[4], "0.000000003,9,agent-local-rtt,,,,10.0.0.1:1024>10.0.1.1:9,,,,,,,,4000000");
    assert_eq!(rows[5], "0.000000004,\"wire, \"\"thin\"\"\",channel-bad,,right,,,,,,,,,,");
    let columns = EVENT_COLUMNS.matches(',').count();
    for row in &rows {
        assert_eq!(row.replace("wire, ", "").matches(',').count(), columns, "{row}");
    }
    let text = String::from_utf8(tcb.finish().unwrap()).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[2].contains(",timeout,"), "{}", rows[2]);
    for row in &rows {
        assert_eq!(row.matches(',').count(), TCB_COLUMNS.matches(',').count(), "{row}");
    }
}

#[test]
fn the_first_error_of_the_writer_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("disk full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut csv = EventCsv::new(&layout(), Full);
    for _ in 0..10_000 {
        csv.event(&testing::transmitted(0, 1, 1, 1, 1460));
    }
    assert_eq!(csv.finish().map(|_| ()).unwrap_err().to_string(), "disk full");
}

#[test]
fn datagrams_write_no_row_and_clients_do() {
    let mut csv = EventCsv::new(&layout(), Vec::new());
    let event = |at, kind| Event { at: Time(at), stage: StageId(9), kind };
    let flow = testing::FLOW;
    let datagram = lasthop_proto::udp::Datagram { flow, number: 0, sent: Time(1), bytes: 100 };
    csv.event(&event(1, EventKind::Datagram { datagram, arrived: true }));
    let rate = lasthop_proto::units::Rate::from_bps(235_000).unwrap();
    let news = ClientNews::VideoSegment(rate);
    csv.event(&event(2, EventKind::Client(ClientEvent { client: flow, news })));
    let text = String::from_utf8(csv.finish().unwrap()).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows, ["0.000000002,9,video-segment,,,,10.0.0.1:1024>10.0.1.1:9,,,,,,,,235000"]);
}
