use lasthop_proto::wire::Flags;
use proptest::prelude::*;

use super::shell::{Command, commands};
use super::*;

fn one(text: &str) -> Event {
    let mut script = Script::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(script.events.len(), 1, "{text}");
    script.events.remove(0)
}

fn fault(text: &str) -> Fault {
    Script::parse(text).expect_err(text)
}

#[test]
fn times_are_absolute_relative_ranges_or_any() {
    let ms = |n: u64| n * 1_000_000;
    for (text, when) in [
        ("1", When::At(ms(1000))),
        ("0.25", When::At(ms(250))),
        (".25", When::At(ms(250))),
        ("1~1.5", When::Between(ms(1000), ms(1500))),
        ("+.1", When::After(ms(100))),
        ("+0", When::After(0)),
        ("+0~+.1", When::AfterBetween(0, ms(100))),
        ("*", When::Any),
    ] {
        assert_eq!(one(&format!("{text} close(3) = 0")).when, when, "{text}");
    }
    assert!(fault("2~1 close(3) = 0").message.contains("before its start"));
    assert!(fault("90000 close(3) = 0").message.contains("at most one day"));
}

#[test]
fn a_segment_has_flags_numbers_window_and_options() {
    let text = "0 < [ce] 1000 > 80 SEW. 0:0(0) ack 1 win 100 urg 7 \
                <mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 7,sack 1:2 3:4,FO 0a0b,FOEXP,eol,md5 00>";
    let Action::Packet(packet) = one(text).action else { panic!("no packet") };
    assert!(packet.inbound);
    assert_eq!((packet.tos, packet.ports), (Some(Tos::Ecn(3)), Some((1000, 80))));
    let Transport::Tcp(tcp) = packet.transport else { panic!("no segment") };
    let flags = Flags::SYN | Flags::ECE | Flags::CWR | Flags::ACK;
    assert_eq!((tcp.flags, tcp.ack, tcp.window, tcp.urgent), (flags, Some(1), Some(100), 7));
    let options = vec![
        TcpOption::Mss(1460),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { value: 1, echo: 2 },
        TcpOption::Nop,
        TcpOption::WindowScale(7),
        TcpOption::Sack(vec![(1, 2), (3, 4)]),
        TcpOption::FastOpen(vec![10, 11]),
        TcpOption::FastOpenExp(vec![]),
        TcpOption::Eol,
        TcpOption::Md5(vec![0]),
    ];
    assert_eq!(tcp.options, Some(options));
}

#[test]
fn flags_include_accurate_ecn_by_letter_and_number() {
    let flags = |text: &str| match one(&format!("0 > {text} 1:1(0)")).action {
        Action::Packet(Packet { transport: Transport::Tcp(tcp), .. }) => (tcp.flags, tcp.ace),
        other => panic!("{other:?}"),
    };
    assert_eq!(flags("-"), (Flags::NONE, None));
    assert_eq!(flags("A."), (Flags::AE | Flags::ACK, None));
    assert_eq!(flags("P.5"), (Flags::PSH | Flags::ACK, Some(5)));
    assert!(fault("0 > X 1:1(0)").message.starts_with("expected flags"));
}

#[test]
fn options_may_be_left_open() {
    let Action::Packet(packet) = one("0 > S 0:0(0) <...>").action else { panic!() };
    assert!(matches!(packet.transport, Transport::Tcp(Tcp { options: None, .. })));
}

#[test]
fn sequence_numbers_agree_with_the_length() {
    let message = fault("0 > . 1:1001(999) ack 1").message;
    assert!(message.contains("`1:1000(999)`"), "{message}");
    one("0 > . 4294967295:499(500) ack 1");
    // A FIN may be counted.
    one("0 > F. 1:2(0) ack 1");
}

#[test]
fn a_call_may_block_and_fail() {
    let text = "+0...0.010 sendto(3, ..., 10, MSG_A | MSG_B, {fd=4, events=POLLOUT}, [5]) \
                = -1 EAGAIN (Resource temporarily unavailable)";
    let Action::Call(call) = one(text).action else { panic!("no call") };
    assert_eq!((call.name.as_str(), call.until), ("sendto", Some(10_000_000)));
    assert_eq!((call.result, call.errno.as_deref()), (Expr::Int(-1), Some("EAGAIN")));
    let flags = Expr::Or(vec![Expr::Word("MSG_A".into()), Expr::Word("MSG_B".into())]);
    assert_eq!(call.args[3], flags);
    assert_eq!(call.args[4].field("fd"), Some(&Expr::Int(4)));
    assert_eq!(call.args[5], Expr::List(vec![Expr::Int(5)]));
}

#[test]
fn messages_and_addresses_are_structures() {
    let text = "0 sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 100}, {\"ab\"..., 2}], msg_flags=0}, 0) = 102";
    let Action::Call(call) = one(text).action else { panic!("no call") };
    let Some(Expr::List(pieces)) = call.args[1].field("msg_iov") else { panic!("{call:?}") };
    assert_eq!(pieces[0], Expr::Tuple(vec![Expr::Any, Expr::Int(100)]));
    let text = "0 bind(3, {sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr(\"1.2.3.4\")}, ...) = 0";
    let Action::Call(call) = one(text).action else { panic!("no call") };
    assert_eq!(call.args[1].field("sin_port"), Some(&Expr::Int(8080)));
}

#[test]
fn options_comments_commands_and_code_have_their_lines() {
    let text = "// a comment\n--tolerance_usecs=10000\n`sysctl -q net.ipv4.tcp_sack=0`\n# another\n0 close(3) = 0\n\
                /* one\nmore */ +0 %{ assert tcpi_state == 1\n}%\n+0 `true`\n`restore`";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.options, [(2, "tolerance_usecs".into(), Some("10000".into()))]);
    assert_eq!(script.commands.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 10]);
    assert_eq!(script.events.iter().map(|event| event.line).collect::<Vec<_>>(), [5, 7, 9]);
}

#[test]
fn icmp_names_its_code_and_quotes_a_segment() {
    for (text, kind, mtu, seq) in [
        ("unreachable frag_needed mtu 1000 [1:1461(1460)]", (3, 4), Some(1000), 1),
        ("unreachable source_host_isolated [1:1461(1460)]", (3, 8), None, 1),
        ("unreachable precedence_cutoff", (3, 15), None, 0),
        ("unreachable mtu 1000", (3, 0), Some(1000), 0),
        ("unreachable", (3, 0), None, 0),
        ("source_quench [2:3(1)]", (4, 0), None, 2),
        ("redirect [2:3(1)]", (5, 0), None, 2),
        ("time_exceeded frag_reass_exceeded [2:3(1)]", (11, 1), None, 2),
        ("parameter_problem [2:3(1)]", (12, 0), None, 2),
    ] {
        let Action::Packet(packet) = one(&format!("0 < icmp {text}")).action else { panic!() };
        assert_eq!(packet.transport, Transport::Icmp(Icmp { kind, mtu, seq }), "{text}");
    }
    for (text, expected) in [
        ("unreachable no_route", "unsupported: ICMPv6"),
        ("packet_too_big mtu 1280", "unsupported: ICMPv6"),
        ("echo_request", "unsupported: ICMP that is no error"),
        ("time_exceeded frag_needed", "expected a code"),
        ("gone", "expected a type of ICMP"),
    ] {
        let message = fault(&format!("0 < icmp {text}")).to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_fault_names_its_line_and_cause() {
    let wrong = fault("0 close(3) = 0\n\n+0 > . 1:1(0) ack x");
    assert_eq!(wrong.line, 3);
    assert_eq!(wrong.to_string(), "line 3: expected a number, got `x`");
    let missing = fault("0 close(3) = 0\n+0 < gre: udp (10)");
    assert_eq!((missing.line, missing.kind), (2, FaultKind::Unsupported));
    assert_eq!(missing.to_string(), "line 2: unsupported: GRE");
}

#[test]
fn only_settings_of_shell_commands_are_applied() {
    let set = |name: &str, value: &str| Command::Setting(name.into(), value.into());
    assert_eq!(
        commands("true\nsysctl -q net.ipv4.tcp_ecn=1 net/ipv4/tcp_sack=0 >/dev/null 2>&1; sleep 1"),
        [set("tcp_ecn", "1"), set("tcp_sack", "0"), Command::Refused("sleep 1".into())]
    );
    assert_eq!(
        commands(
            "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_wmem=\"4096  50000 4194304\" \\\n /proc/sys/net/ipv4/tcp_frto=0 # why"
        ),
        [set("tcp_wmem", "4096 50000 4194304"), set("tcp_frto", "0")]
    );
    assert_eq!(
        commands(
            "sysctl -q net.ipv4.tcp_rmem=\"4096 $((128*1024)) $((32 * 1024*1024))\" net.ipv4.x=$((a+1))"
        ),
        [set("tcp_rmem", "4096 131072 33554432"), set("x", "$((a+1))")]
    );
    assert_eq!(commands("../../common/defaults.sh").len(), shell::DEFAULTS.len());
    assert!(commands("/tmp/sysctl_restore_${PPID}.sh").is_empty());
    assert_eq!(
        commands("sysctl -q kernel.panic=1"),
        [Command::Refused("sysctl -q kernel.panic=1".into())]
    );
    assert_eq!(commands("rm -rf /"), [Command::Refused("rm -rf /".into())]);
}

proptest! {
    /// Any bytes result in a script or a fault.
    #[test]
    fn any_text_is_parsed_or_refused(text in ".{0,200}") {
        let _ = Script::parse(&text);
    }

    /// The same for texts made of the words of the language.
    #[test]
    fn any_words_are_parsed_or_refused(words in prop::collection::vec(prop::sample::select(vec![
        "0", "+.1", "+0~+1", "*", "<", ">", "S", ".", "1:1001(1000)", "ack", "win", "0x", "<...>", "<mss", "sack",
        "{", "}", "[", "]", "(", ")", "...", "%{", "}%", "`", "\"", "|", "=", ",", "close", "icmp", "-1", "--a=b", "\n", "é",
    ]), 0..40)) {
        let _ = Script::parse(&words.join(" "));
        commands(&words.join(" "));
    }
}
