//! Transfers that stop, are on and off, or are short ones in a row: accepted and refused files.

use lasthop_proto::units::{Bytes, Span};
use lasthop_scenario::{Argument, Code, Traffic, parse};

fn text(transfer: &str) -> String {
    format!(
        "{transfer}\n[host.fixed]\n[host.mobile]\n[[path]]\nlink = {{ rate = \"10mbit\", delay = \"1ms\" }}\n"
    )
}

fn transfer(keys: &str) -> String {
    text(&format!("transfer = {{ from = \"fixed\", to = \"mobile\", {keys} }}"))
}

#[track_caller]
fn read(keys: &str) -> lasthop_scenario::model::Transfer {
    let (plan, _) = parse(&transfer(keys), "test", &[]).unwrap_or_else(|error| panic!("{error}"));
    plan.cells[0].scenario.transfers[0].clone()
}

#[track_caller]
fn refused(keys: &str, code: Code, key: &str, expected: &str) {
    let error = parse(&transfer(keys), "test", &[]).map(|_| keys).expect_err("refused");
    let all = format!("{} | {} | {}", error.message, error.label, error.help);
    assert_eq!((error.code, error.key.as_str()), (code, key), "{all}");
    assert!(all.contains(expected), "`{expected}` is not said in: {all}");
}

#[test]
fn a_transfer_may_stop() {
    let stopped = read("start = \"2s\", stop = \"10s\"");
    assert_eq!((stopped.bytes, stopped.stop), (None, Some(Span::secs(10))));
    assert!(stopped.ends());
    assert_eq!(read("bytes = \"1kB\", stop = \"10s\"").bytes, Some(Bytes(1000)));
    assert!(read("bytes = \"unlimited\", stop = \"10s\"").ends());
    let key = "transfer.stop";
    refused("start = \"2s\", stop = \"2s\"", Code::OutOfRange, key, "later than `start`");
    refused("bytes = \"unlimited\"", Code::MissingKey, "horizon", "`stop = \"60s\"`");
}

/// Each session makes one transfer for each time that it thinks, and 20,000 are the most.
#[test]
fn sessions_and_think_times_limit_short_transfers() {
    let most = "the maximum is 20000";
    for (keys, fits) in [
        ("web = { sessions = 20, think = \"1s\" }, stop = \"1000s\"", true),
        ("web = { sessions = 21, think = \"1s\" }, stop = \"1000s\"", false),
        ("web = { sessions = 20, think = \"500ms\" }, stop = \"1000s\"", false),
        ("web = { sessions = 20, think = \"500ms\" }, start = \"500s\", stop = \"1000s\"", true),
    ] {
        match fits {
            true => assert!(matches!(read(keys).traffic, Traffic::Web(_)), "{keys}"),
            false => refused(keys, Code::OutOfRange, "transfer.web", most),
        }
    }
}

#[test]
fn a_transfer_can_repeat_at_intervals() {
    let (plan, _) = parse(
        &transfer(
            "bytes = \"5MB\", start = \"10s\", every = \"300s\", stop = \"700s\", cross = true",
        ),
        "test",
        &[],
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let transfers = &plan.cells[0].scenario.transfers;
    let starts: Vec<u64> = transfers.iter().map(|t| t.start.0 / 1_000_000_000).collect();
    assert_eq!(starts, [10, 310, 610]);
    assert!(transfers.iter().all(|t| t.cross && t.bytes == Some(Bytes(5_000_000))));
    let key = "transfer.every";
    refused("bytes = \"1kB\", every = \"9s\"", Code::MissingKey, "horizon", "`stop = \"600s\"`");
    refused(
        "bytes = \"unlimited\", every = \"9s\", stop = \"90s\"",
        Code::OutOfRange,
        key,
        "`bytes = \"5MB\"`",
    );
    refused(
        "bytes = \"1kB\", every = \"1ms\", stop = \"1000s\"",
        Code::OutOfRange,
        key,
        "1000000 transfers",
    );
}

#[test]
fn a_source_may_be_on_and_off() {
    let Traffic::OnOff(periods) =
        read("on-off = { off = \"2s\", shape = 1.5 }, stop = \"9s\"").traffic
    else {
        panic!("not on and off");
    };
    assert_eq!((periods.on.mean, periods.off.mean), (Span::millis(500), Span::secs(2)));
    assert_eq!(periods.on.shape, Some(1.5));
    let key = "transfer.on-off.shape";
    refused("on-off = { shape = 1 }, stop = \"9s\"", Code::OutOfRange, key, "1.05");
    let large = "on-off = { shape = 99999999999999999999 }, stop = \"9s\"";
    refused(large, Code::OutOfRange, key, "99999999999999999999 is too large");
    refused("on-off = {}", Code::MissingKey, "horizon", "never ends by itself");
    let twice = "on-off = {}, bytes = \"1kB\", stop = \"9s\"";
    refused(twice, Code::BadTransfer, "transfer.bytes", "exclude each other");
}

#[test]
fn web_traffic_is_a_number_of_sessions() {
    let web = "web = { sessions = 5, think = \"2s\", size = { mean = \"10kB\", shape = 1.2 } }";
    let transfer = read(&format!("{web}, stop = \"60s\""));
    let Traffic::Web(read) = transfer.traffic else { panic!("not short transfers") };
    assert_eq!((read.sessions, read.think), (5, Span::secs(2)));
    assert!((read.size.mean() - 10_000.0).abs() < 1e-3);
    assert_eq!(transfer.connections(), 0, "they are opened one after the other");
    let count = format!("{web}, stop = \"60s\", count = 2");
    refused(&count, Code::BadTransfer, "transfer.count", "sessions");
    let small = "web = { size = { mean = \"10kB\", max = \"10kB\" } }, stop = \"60s\"";
    refused(small, Code::OutOfRange, "transfer.web.size", "max = \"1MB\"");
    let many = "web = { sessions = 1000, think = \"1ms\" }, stop = \"60s\"";
    refused(many, Code::OutOfRange, "transfer.web", "raise `think`");
    refused("web = { sesions = 5 }", Code::UnknownKey, "transfer.web.sesions", "`sessions`");
}

#[test]
fn web_traffic_needs_the_lasthop_stack() {
    let web = "web = {}, stop = \"60s\"";
    let in_testbed = |host: &str| {
        let file = transfer(web).replace("[host.fixed]", &format!("[host.fixed]\n{host}"));
        let file = file.replace("[host.mobile]", &format!("[host.mobile]\n{host}"));
        parse(&format!("world = \"testbed\"\n{file}"), "test", &[]).map(|_| ())
    };
    let error = in_testbed("").expect_err("kernels");
    assert_eq!(error.code, Code::BadTransfer);
    assert!(error.help.contains("stack = \"lasthop\""), "{}", error.help);
    assert!(in_testbed("stack = \"lasthop\"").is_ok());
}

#[test]
fn request_response_traffic_is_parsed_and_checked() {
    let transfer = read("request = \"300B\", response = \"10kB\", exchanges = 7, think = \"2s\"");
    let Traffic::Exchange(exchange) = transfer.traffic else { panic!("not requests") };
    assert_eq!((exchange.request, exchange.response), (Bytes(300), Bytes(10_000)));
    assert_eq!((exchange.exchanges, exchange.think), (Some(7), Span::secs(2)));
    assert!(transfer.ends() && transfer.connections() == 0 && !exchange.persistent);
    let every = "request = \"1B\", response = \"1B\", every = \"1s\", stop = \"9s\", count = 2";
    let Traffic::Exchange(exchange) = read(every).traffic else { panic!("not requests") };
    assert_eq!((exchange.every, exchange.exchanges), (Some(Span::secs(1)), None));

    let key = "transfer.request";
    refused("response = \"1B\"", Code::MissingKey, key, "`response` needs a `request`");
    refused("persistent = true, bytes = \"1kB\"", Code::MissingKey, key, "every = \"1s\"");
    refused("request = \"1B\"", Code::MissingKey, "transfer.response", "10KB");
    let both = "request = \"1B\", response = \"1B\", bytes = \"1kB\"";
    refused(both, Code::BadTransfer, "transfer.bytes", "exclude each other");
    let both = "request = \"1B\", response = \"1B\", every = \"1s\", think = \"1s\", stop = \"9s\"";
    refused(both, Code::BadTransfer, "transfer.think", "exclude each other");
    let endless = "request = \"1B\", response = \"1B\", every = \"1s\"";
    refused(endless, Code::MissingKey, "horizon", "never ends by itself");
    let busy = "request = \"1B\", response = \"1B\", stop = \"9s\"";
    refused(busy, Code::MissingKey, "transfer.exchanges", "`every` or `think`");
    let many = "request = \"1B\", response = \"1B\", every = \"1ms\", stop = \"1000s\"";
    refused(many, Code::OutOfRange, key, "1000000 requests");
}

/// As many exchanges as a scenario may have are possible, and not one more; whether they are counted or come of a time.
#[test]
fn exchanges_are_limited_to_100000() {
    let text = |count: u32, rest: &str| {
        format!("request = \"1B\", response = \"1B\", count = {count}, {rest}")
    };
    for (count, rest, good) in [
        (1, "exchanges = 100000", true),
        (4, "exchanges = 25000", true),
        (4, "exchanges = 25001", false),
        (3, "exchanges = 33334", false),
        (1, "every = \"1ms\", stop = \"100s\"", true),
        (1, "every = \"1ms\", stop = \"100001ms\"", false),
        (2, "every = \"2ms\", stop = \"101s\", start = \"1s\"", true),
        (2, "every = \"2ms\", stop = \"101002ms\", start = \"1s\"", false),
    ] {
        let file = transfer(&text(count, rest));
        let found = parse(&file, "t", &[]);
        let message = found.as_ref().err().map(|error| format!("{error} {}", error.help));
        assert_eq!(message.is_none(), good, "{count} with {rest}: {message:?}");
        assert!(
            message.is_none_or(|message| message.contains("100000 exchanges")),
            "{count} with {rest}"
        );
    }
}

/// Kernels answer requests; the other applications are those of our hosts.
#[test]
fn kernel_hosts_support_only_request_traffic() {
    let read = |rest: &str| {
        let file = transfer(rest);
        parse(&format!("world = \"testbed\"\n{file}"), "test", &[]).map(|_| ())
    };
    for more in ["", ", every = \"1s\"", ", think = \"1s\", persistent = true"] {
        let rest = format!("request = \"1B\", response = \"1B\", exchanges = 1{more}");
        assert!(read(&rest).is_ok(), "{rest}");
    }
    for (word, rest) in [
        ("web", "web = {}, stop = \"9s\""),
        ("on-off", "on-off = {}, stop = \"9s\""),
        ("page", "page = { pages = 1 }"),
        ("stop", "stop = \"9s\""),
    ] {
        let error = read(rest).unwrap_err();
        assert_eq!(error.code, Code::BadTransfer);
        let expected = format!("`{word}` needs hosts with our TCP");
        assert!(error.message.contains(&expected), "{}", error.message);
    }
}

#[test]
fn a_tcp_variant_has_no_effect_on_quic() {
    let warned = |transfer: &str, argument: Argument| {
        let text = text(&format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\", {transfer} }}"
        ));
        let (_, warnings) = parse(&text, "test", &[argument]).unwrap_or_else(|e| panic!("{e}"));
        let of_tcp = warnings.iter().filter(|warning| warning.message == "`tcp` has no effect");
        of_tcp.map(|warning| warning.key.clone()).collect::<Vec<_>>()
    };
    let axis = || Argument::Vary("tcp=reno,cubic".to_owned());
    let both = ["host.fixed.tcp", "host.mobile.tcp"];
    assert_eq!(warned("protocol = \"quic\"", axis()), both);
    assert_eq!(warned("quic = {}", Argument::Set("tcp=cubic".to_owned())), both);
    assert!(warned("protocol = \"tcp\"", axis()).is_empty());
    let protocols = Argument::Vary("transfer.protocol=tcp,quic".to_owned());
    assert!(warned("protocol = \"tcp\"", protocols).is_empty());
}

#[test]
fn page_and_video_traffic_is_parsed_and_checked() {
    let Traffic::Page(page) = read("page = { pages = 3, multiplexed = true }").traffic else {
        panic!("no page");
    };
    assert_eq!((page.connections, page.pages, page.think), (1, Some(3), Span::ZERO));
    let Traffic::Video(video) = read("video = { length = \"61s\", buffer = \"80s\" }").traffic
    else {
        panic!("no video");
    };
    assert_eq!((video.segments, video.startup), (16, Span::secs(4)));
    assert_eq!(video.ladder.rates().len(), 10);
    refused("page = {}", Code::MissingKey, "horizon", "`stop = \"60s\"`");
    refused(
        "page = { pages = 1 }, bytes = \"1MB\"",
        Code::BadTransfer,
        "transfer.bytes",
        "exclude",
    );
    refused("page = { pages = 1 }, video = {}", Code::BadTransfer, "transfer.video", "exclude");
    let key = "transfer.page.connections";
    refused(
        "page = { multiplexed = true, connections = 2 }",
        Code::BadValue,
        key,
        "one connection",
    );
    let key = "transfer.page.size";
    refused("page = { sizes = \"ngmn\", size = \"1kB\", pages = 1 }", Code::BadValue, key, "drawn");
    let key = "transfer.video.ladder";
    refused("video = { ladder = [\"2mbit\", \"1mbit\"] }", Code::BadValue, key, "ascending rates");
    let key = "transfer.video.cushion";
    refused("video = { buffer = \"30s\", cushion = \"20s\" }", Code::OutOfRange, key, "fit into");
    let key = "transfer.video.window";
    refused("video = { window = 3 }", Code::BadValue, key, "nothing uses it");
}
