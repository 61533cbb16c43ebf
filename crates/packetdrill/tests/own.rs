//! The scripts of this repository against lasthop's TCP.

use std::collections::BTreeMap;
use std::path::Path;

use lasthop_packetdrill::run::own::Own;
use lasthop_packetdrill::run::{EntryKind, Outcome, Rules, Verdict, play};
use lasthop_packetdrill::script::Script;

mod failing;
use failing::FAILING;

/// The scripts by name.
fn scripts() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        all.insert(name, std::fs::read_to_string(path).unwrap());
    }
    all
}

fn run(text: &str) -> Outcome {
    let script = Script::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
    play(&script, &mut Own::default(), &Rules::default())
}

/// By default PSH and the order of options count. Linux sends no SYN with PSH, also with data.
#[test]
fn flags_and_the_order_of_options_count_by_default() {
    let script = |syn: &str, last: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
             +0 sendto(3, ..., 0, MSG_FASTOPEN, ..., ...) = -1 EINPROGRESS\n\
             +0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8,FO,nop,nop>\n\
             +.05 < S. 123:123(0) ack 1 win 5840 <mss 1040,nop,nop,sackOK,nop,wscale 6,FO abcd1234,nop,nop>\n\
             +0 > . 1:1(0) ack 1\n+0 close(3) = 0\n+0 > F. 1:1(0) ack 1\n+.05 < F. 1:1(0) ack 2 win 92\n\
             +0 > . 2:2(0) ack 2\n\
             +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
             +0 sendto(3, ..., 500, MSG_FASTOPEN, ..., ...) = 500\n\
             +0 > {syn} 0:500(500) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8,FO abcd1234,nop,nop>\n\
             +.05 < S. 1000000:1000000(0) ack 501 win 5840 <mss 940,nop,nop,sackOK,nop,wscale 6>\n\
             +0 > . 501:501(0) ack 1\n+0 write(3, ..., 100) = 100\n+0 > {last} 501:601(100) ack 1\n"
        )
    };
    assert_eq!(run(&script("S", "P.")).verdict, Verdict::Pass);
    assert!(matches!(run(&script("SP", "P.")).verdict, Verdict::Fail { line: 14, .. }));
    assert!(matches!(run(&script("S", ".")).verdict, Verdict::Fail { line: 18, .. }));
    let loose = Script::parse(&script("SP", ".")).unwrap();
    let rules = Rules { strict: false, ..Rules::default() };
    assert_eq!(play(&loose, &mut Own::default(), &rules).verdict, Verdict::Pass);
}

/// The list of scripts that lasthop's TCP does not pass is complete and minimal, with reasons. It may only
/// shrink.
#[test]
fn every_script_passes_but_for_those_that_are_listed() {
    let scripts = scripts();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let mut wrong = Vec::new();
    for (name, text) in &scripts {
        let listed = FAILING.iter().find(|(listed, _)| listed == name);
        match (run(text).verdict, listed) {
            (Verdict::Pass, None) => {}
            (Verdict::Pass, Some(_)) => wrong.push(format!("{name} passes: take it off the list")),
            (_, Some((_, reason))) => assert!(!reason.is_empty(), "{name}"),
            (verdict, None) => wrong.push(format!("{name}: {verdict:?}")),
        }
    }
    for (name, _) in FAILING {
        assert!(scripts.contains_key(*name), "{name} is listed and not there");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Virtual time: the same run twice has the same trace.
#[test]
fn repeated_runs_are_identical() {
    for name in ["fast-retransmit-sack", "rto-backoff", "syn-retries"] {
        let text = &scripts()[name];
        assert_eq!(run(text), run(text), "{name}");
    }
}

/// A script with one changed number fails: its expectations are compared.
#[test]
fn a_wrong_expectation_fails_at_its_line() {
    let good = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
                +.1 < . 1:1(0) ack 1 win 4000\n+0 accept(3, ..., ...) = 4\n\
                +0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n+.3 > . 1:1001(1000) ack 1\n\
                +0 %{ assert tcpi_snd_cwnd == 1, tcpi_snd_cwnd }%\n+0 close(4) = 0\n";
    assert_eq!(run(good).verdict, Verdict::Pass);
    for (line, from, to) in [
        (5, "ack 1 <mss 1460>", "ack 1 <mss 1461>"),
        (5, "S. 0:0(0) ack 1", "S. 0:0(0) ack 2"),
        (7, ", ...) = 4", ", ...) = 5 EAGAIN"),
        (8, "2000) = 2000", "2000) = 1999"),
        (9, "P. 1:2001(2000)", "P. 1:3001(3000)"),
        (9, "+0 > P. 1:2001", "+.1 > P. 1:2001"),
        (10, "+.3 > . 1:1001", "+.9 > . 1:1001"),
        (10, ". 1:1001(1000) ack 1\n+0 %", "F. 1:1001(1000) ack 1\n+0 %"),
        (11, "cwnd == 1", "cwnd == 2"),
        (12, "close(4) = 0", "close(9) = 0"),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        match run(&changed).verdict {
            Verdict::Fail { line: at, .. } => assert_eq!(at, line, "{from} -> {to}"),
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
}

/// A missing feature is named with its line.
#[test]
fn a_missing_feature_is_named() {
    for (text, feature) in [
        ("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "sockets other than SOCK_STREAM"),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 splice(3, 4) = 0", "the call splice()"),
        (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 setsockopt(3, SOL_SOCKET, SO_RCVLOWAT, [1], 4) = 0",
            "setsockopt SO_RCVLOWAT",
        ),
        (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 send(3, ..., 1, MSG_SOON) = 1",
            "the value MSG_SOON",
        ),
        (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 poll([{fd=3, events=POLLNOW}], 1, 0) = 0",
            "the value POLLNOW",
        ),
        (
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, {sin_port=70000}, 16) = 0",
            "the port 70000",
        ),
        ("--tolerance_usecs=soon\n0 close(3) = 0", "the option --tolerance_usecs"),
        ("--tolerance_percent=nan\n0 close(3) = 0", "the option --tolerance_percent"),
        ("--tcp_ts_tick_usecs=-1\n0 close(3) = 0", "the option --tcp_ts_tick_usecs"),
        ("--remote_ip=192.0.2.256\n0 close(3) = 0", "the option --remote_ip"),
        ("--local_ip=fd::1\n0 close(3) = 0", "the option --local_ip"),
    ] {
        match run(text).verdict {
            Verdict::Unsupported { feature: named, .. } => assert_eq!(named, feature),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn an_option_without_effect_is_reported() {
    let outcome = run("--strict_segments\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
    assert_eq!(outcome.notes, [(1, "--strict_segments".to_owned())]);
    assert_eq!(outcome.verdict, Verdict::Pass);
}

/// A connection that is accepted as descriptor 4, and `rest`.
fn accepted(rest: &str) -> String {
    let opens = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                 +0 setsockopt(3, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0\n\
                 +.1 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n\
                 +.1 < . 1:1(0) ack 1 win 30000\n+0 accept(3, ..., ...) = 4\n\
                 +0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n";
    format!("{opens}{rest}")
}

/// `recvmsg` of a report of the error queue with these control messages.
fn note(controls: &str) -> String {
    format!(
        "+0 recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., 0}}], msg_flags=..., msg_control=[{controls}]}}, \
         MSG_ERRQUEUE) = 0\n"
    )
}

/// A control message of the error queue.
fn error(errno: &str, origin: &str, code: u8, info: &str, data: u32) -> String {
    format!(
        "{{cmsg_level=CMSG_LEVEL_IP, cmsg_type=CMSG_TYPE_RECVERR, cmsg_data={{ee_errno={errno}, \
         ee_origin={origin}, ee_type=0, ee_code={code}, ee_info={info}, ee_data={data}}}}}"
    )
}

#[test]
fn writes_without_a_copy_are_reported_together_once_they_are_acknowledged() {
    let copied = |info, data| note(&error("0", "SO_EE_ORIGIN_ZEROCOPY", 1, info, data));
    let none = "+0 recvmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 0}], msg_flags=..., msg_control=[]}, \
                MSG_ERRQUEUE) = -1 EAGAIN\n";
    let writes = "+0 send(4, ..., 1000, MSG_ZEROCOPY) = 1000\n+0 > P. 1:1001(1000) ack 1\n\
                  +0 send(4, ..., 1000, MSG_ZEROCOPY) = 1000\n+0 > P. 1001:2001(1000) ack 1\n";
    let script = |acked: &str, notes: &str| {
        accepted(&format!("{writes}+.1 < . 1:1(0) ack {acked} win 30000\n{notes}"))
    };
    for (acked, notes) in
        [("1001", copied("0", 0) + none), ("2001", copied("0", 1) + none), ("1", none.to_owned())]
    {
        assert_eq!(run(&script(acked, &notes)).verdict, Verdict::Pass, "{acked}");
    }
    let wrong = script("2001", &copied("0", 0));
    assert!(matches!(run(&wrong).verdict, Verdict::Fail { line: 15, .. }));
}

#[test]
fn times_of_a_write_are_those_of_its_last_byte() {
    let at = |ms: u32| {
        format!(
            "{{cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMPING, cmsg_data={{scm_sec=0, scm_nsec={ms}000000}}}}"
        )
    };
    let timestamp = |kind, ms| {
        note(&format!(
            "{}, {}",
            at(ms),
            error("ENOMSG", "SO_EE_ORIGIN_TIMESTAMPING", 0, kind, 1999)
        ))
    };
    let script = accepted(&format!(
        "+0 setsockopt(4, SOL_SOCKET, SO_TIMESTAMPING, [SOF_TIMESTAMPING_TX_SCHED|SOF_TIMESTAMPING_TX_SOFTWARE|\
         SOF_TIMESTAMPING_TX_ACK|SOF_TIMESTAMPING_SOFTWARE|SOF_TIMESTAMPING_OPT_ID], 4) = 0\n\
         +0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n+.1 < . 1:1(0) ack 1001 win 30000\n\
         +.1 < . 1:1(0) ack 2001 win 30000\n{}{}{}",
        timestamp("SCM_TSTAMP_SCHED", 200),
        timestamp("SCM_TSTAMP_SND", 200),
        timestamp("SCM_TSTAMP_ACK", 400)
    ));
    assert_eq!(run(&script).verdict, Verdict::Pass);
}

#[test]
fn tcp_inq_reports_the_unread_bytes() {
    let read = |len: u32, left: u32| {
        format!(
            "+0 recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., {len}}}], msg_flags=0, \
             msg_control=[{{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data={left}}}]}}, 0) = {len}\n"
        )
    };
    let arrives = "+0 setsockopt(4, SOL_TCP, TCP_INQ, [1], 4) = 0\n+.1 < P. 1:1001(1000) ack 1 win 30000\n\
                   +0 > . 1:1(0) ack 1001\n";
    let script = |left| accepted(&format!("{arrives}{}{}", read(400, left), read(600, 0)));
    assert_eq!(run(&script(600)).verdict, Verdict::Pass);
    assert!(matches!(run(&script(599)).verdict, Verdict::Fail { line: 13, .. }));
}

#[test]
fn epoll_reports_an_edge_once_and_a_level_repeatedly() {
    let wait = |events: &str, count: u8| match count {
        0 => "+0 epoll_wait(5, {events=0, ptr=0}, 1, 0) = 0\n".to_owned(),
        _ => format!("+0 epoll_wait(5, {{events={events}, fd=4}}, 1, 0) = 1\n"),
    };
    let data = |from: u32| {
        let to = from + 100;
        format!("+.1 < P. {from}:{to}(100) ack 1 win 30000\n* > . 1:1(0) ack {to}\n")
    };
    let script = |mode: &str, second: u8| {
        let watch = format!(
            "+0 epoll_create(1) = 5\n+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {{events=EPOLLIN{mode}, fd=4}}) = 0\n"
        );
        accepted(&format!(
            "{watch}{}{}{}{}{}{}",
            wait("", 0),
            data(1),
            wait("EPOLLIN", 1),
            wait("EPOLLIN", second),
            data(101),
            wait("EPOLLIN", if mode.contains("SHOT") { 0 } else { 1 })
        ))
    };
    for (mode, second) in [("", 1), ("|EPOLLET", 0), ("|EPOLLONESHOT", 0)] {
        assert_eq!(run(&script(mode, second)).verdict, Verdict::Pass, "{mode}");
        assert_ne!(run(&script(mode, 1 - second)).verdict, Verdict::Pass, "{mode}");
    }
}

/// With explicit addresses in a script, cookies are computed from them.
#[test]
fn fast_open_cookies_use_the_scripts_addresses() {
    let script = "--local_ip=192.168.0.7\n--remote_ip=10.9.8.7\n\
                  `sysctl -q net.ipv4.tcp_fastopen=0x403 net.ipv4.tcp_fastopen_key=01020304-05060708-090a0b0c-0d0e0f10`\n\
                  0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                  +0 < S 0:0(0) win 1000 <mss 1000,FO,nop,nop>\n+0 > S. 0:0(0) ack 1 <mss 1460,FO 182d4a6989b1df13,nop,nop>\n";
    assert_eq!(run(script).verdict, Verdict::Pass);
    let elsewhere = script.replace("10.9.8.7", "10.9.8.6");
    assert!(matches!(run(&elsewhere).verdict, Verdict::Fail { line: 8, .. }));
}

/// A timestamp is compared only if the script defines its unit.
#[test]
fn timestamps_are_compared_where_a_script_names_their_unit() {
    let script = |first: &str, value: u32| {
        format!(
            "{first}0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 1000 <mss 1000,sackOK,TS val 1 ecr 0>\n\
             +0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 500 ecr 1>\n\
             +.2 < P. 1:101(100) ack 1 win 1000 <nop,nop,TS val 2 ecr 500>\n\
             +0 > . 1:1(0) ack 101 <nop,nop,TS val {value} ecr 2>\n"
        )
    };
    let unit = "--tcp_ts_tick_usecs=1000\n";
    assert_eq!(run(&script("", 9000)).verdict, Verdict::Pass);
    assert_eq!(run(&script(unit, 700)).verdict, Verdict::Pass);
    assert!(matches!(run(&script(unit, 9000)).verdict, Verdict::Fail { line: 8, .. }));
}

/// The trace has the numbers of the script, also in SACK blocks and timestamps, so that two hosts can be compared.
#[test]
fn arriving_packets_are_shown_with_the_numbers_of_the_script() {
    let options = "sack 1001:2001,TS val 3 ecr 77";
    let outcome = run(&accepted(&format!(
        "+0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n+.1 < . 1:1(0) ack 1 win 30000 <{options}>\n"
    )));
    assert_eq!(outcome.verdict, Verdict::Pass);
    let arrived = outcome.trace.iter().rev().find(|entry| entry.kind == EntryKind::Arrived);
    assert_eq!(arrived.unwrap().text, format!(". 1:1(0) ack 1 win 30000 <{options}>"));
}

/// Settings and commands without an effect are reported with their line.
#[test]
fn settings_and_commands_without_effect_are_reported() {
    let outcome = run(
        "`sysctl -q net.ipv4.tcp_mtu_probing=2\nrm -rf /tmp/x`\n0 socket(..., SOCK_STREAM, 0) = 3",
    );
    let notes = [(1, "tcp_mtu_probing=2".to_owned()), (1, "`rm -rf /tmp/x`".to_owned())];
    assert_eq!(outcome.notes, notes);
}
