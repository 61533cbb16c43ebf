//! Each fault results in one error that refers to the location and shows the right form.

use lasthop_scenario::{Argument, Code, Error, Source, parse};

/// A valid scenario, in pieces that the tests replace.
pub const HEAD: &str = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }\n";
pub const HOSTS: &str = "[host.fixed]\n[host.mobile]\n";
const PATH: &str = "[[path]]\nlink = { rate = \"10mbit\", delay = \"1ms\" }\n[[path]]\nagent = \"snoop\"\n\
                    [[path]]\nradio = { rate = \"2mbit\" }\n";

fn fault(text: &str) -> Error {
    parse(text, "test", &[]).map(|_| text).expect_err("this should be refused")
}

/// Asserts code and key, that the error points at `pointed`, and that message, label and help together
/// contain all of `expected`.
#[track_caller]
pub fn refused(text: &str, code: Code, key: &str, pointed: &str, expected: &[&str]) {
    let error = fault(text);
    let all = format!("{} | {} | {}", error.message, error.label, error.help);
    assert_eq!((error.code, error.key.as_str()), (code, key), "{all}");
    assert_eq!(error.at.source, Source::File);
    assert_eq!(text.get(error.at.span.clone()), Some(pointed), "{all}");
    for words in expected {
        assert!(all.contains(words), "`{words}` is not said in: {all}");
    }
}

/// The same for a path.
#[track_caller]
pub fn path_refused(path: &str, code: Code, key: &str, pointed: &str, expected: &[&str]) {
    refused(&format!("{HEAD}{HOSTS}{path}"), code, key, pointed, expected);
}

/// The same for one line at the top of the file.
#[track_caller]
fn top_refused(line: &str, code: Code, key: &str, pointed: &str, expected: &[&str]) {
    refused(&format!("{line}\n{HEAD}{HOSTS}{PATH}"), code, key, pointed, expected);
}

#[test]
fn the_test_fragments_form_a_valid_scenario() {
    assert!(parse(&format!("{HEAD}{HOSTS}{PATH}"), "test", &[]).is_ok());
}

#[test]
fn text_that_is_not_toml() {
    let error = fault("name = \"x\nruns = 3\n");
    assert_eq!(error.code, Code::Syntax);
    assert!(error.help.contains("double quotes"), "{}", error.help);
    assert!(error.help.contains("a double quote is missing"), "{}", error.help);
}

#[test]
fn a_key_in_the_wrong_table_is_reported_with_its_table() {
    let unknown = Code::UnknownKey;
    let path = "[[path]]\nlink = { rate = \"1mbit\" }\ndelay = \"1ms\"\n";
    let expected = ["inside the braces: `link = { delay = ... }`"];
    path_refused(path, unknown, "path.1.delay", "delay", &expected);
    let path = "[[path]]\nradio = { delay = \"1ms\" }\nbandwidth = \"1mbit\"\n";
    let expected = ["inside the braces: `radio = { rate = ... }`"];
    path_refused(path, unknown, "path.1.bandwidth", "bandwidth", &expected);
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\nloss = \"1%\"\n";
    let expected = ["did you mean `errors`?", "packet-loss"];
    path_refused(path, unknown, "path.1.loss", "loss", &expected);
    let path = "[[path]]\nlink = { rate = \"1mbit\" }\nerrors = \"none\"\n";
    path_refused(path, unknown, "path.1.errors", "errors", &["`frame-loss = \"1%\"`"]);

    let text = format!("{HEAD}{HOSTS}link = {{ rate = \"1mbit\" }}\n{PATH}");
    refused(&text, unknown, "host.mobile.link", "link", &["below its own `[[path]]`"]);
    let text = format!("{HEAD}{HOSTS}runs = 3\n{PATH}");
    refused(&text, unknown, "host.mobile.runs", "runs", &["the top of the file"]);
    top_refused("tcp = \"reno\"", unknown, "tcp", "tcp", &["`[host.NAME]`"]);
    top_refused("delay = \"1ms\"", unknown, "delay", "delay", &["`link = { delay = ... }`"]);
    let path = "[[path]]\nlink = \"1mbit\"\n";
    let expected = ["`{ rate = \"10mbit\" }`"];
    path_refused(path, Code::BadValue, "path.1.link", "\"1mbit\"", &expected);
}

#[test]
fn quantities_of_other_programs_are_refused_with_an_example() {
    for (key, written, example) in [
        ("rate", "10M", "2mbit"),
        ("delay", "20 milliseconds", "20ms"),
        ("delay", "0,5ms", "20ms"),
        ("queue", "20packets", "50p"),
        ("frame-loss", "0.5pct", "0.4%"),
    ] {
        let path = format!("[[path]]\nlink = {{ {key} = \"{written}\" }}\n");
        let pointed = format!("\"{written}\"");
        let expected = format!("for example `{key} = \"{example}\"`");
        let full = format!("path.1.link.{key}");
        path_refused(&path, Code::BadValue, &full, &pointed, &[&expected]);
    }
}

#[test]
fn flags_and_counts_are_suggested_without_quotes() {
    for (key, written, meant) in
        [("sack", "\"yes\"", "`sack = true`"), ("sack", "0", "`sack = false`")]
    {
        let text = format!("{HEAD}[host.fixed]\n{key} = {written}\n[host.mobile]\n{PATH}");
        let full = format!("host.fixed.{key}");
        refused(&text, Code::BadValue, &full, written, &["did you mean", meant]);
    }
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\nerrors = \"1%\"\n";
    let expected = ["`errors = { model = \"packet-loss\", p = \"1%\" }`"];
    path_refused(path, Code::BadValue, "path.1.errors", "\"1%\"", &expected);
    let text = format!("{HEAD}[host]\nfixed = \"cubic\"\n[host.mobile]\n{PATH}");
    let expected = ["`{ tcp = \"cubic\" }`"];
    refused(&text, Code::BadValue, "host.fixed", "\"cubic\"", &expected);
}

#[test]
fn unknown_keys_are_reported_with_a_suggestion() {
    top_refused("rnus = 20", Code::UnknownKey, "rnus", "rnus", &["did you mean `runs`"]);
    let text = format!("{HEAD}[host.fixed]\nsend_buffer = 1\n[host.mobile]\n{PATH}");
    let key = "host.fixed.send_buffer";
    refused(&text, Code::UnknownKey, key, "send_buffer", &["did you mean `send-buffer`"]);
    let path = "[[path]]\nlink = { rate = \"1mbit\", dealy = \"1ms\" }\n";
    path_refused(path, Code::UnknownKey, "path.1.link.dealy", "dealy", &["did you mean `delay`"]);
}

#[test]
fn a_misplaced_key_is_reported_with_its_stage() {
    let path =
        "[[path]]\nlink = { rate = \"1mbit\" }\nerrors = { model = \"packet-loss\", p = 0.1 }\n";
    path_refused(path, Code::UnknownKey, "path.1.errors", "errors", &["next to `radio"]);
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\ndupacks = 2\n";
    path_refused(path, Code::UnknownKey, "path.1.dupacks", "dupacks", &["next to `agent"]);
}

#[test]
fn header_compression_name_and_slots_are_checked() {
    let with = |more: &str| format!("[[path]]\nlink = {{ rate = \"1mbit\", {more} }}\n");
    let path = with("header-compression = \"vj+twise\"");
    let expected = ["none of the choices", "did you mean `vj+twice`"];
    path_refused(
        &path,
        Code::BadValue,
        "path.1.link.header-compression",
        "\"vj+twise\"",
        &expected,
    );
    let path = with("header-compression = \"vj\", compression-slots = 257");
    let expected = ["1 to 256", "the default is 16"];
    path_refused(&path, Code::OutOfRange, "path.1.link.compression-slots", "257", &expected);
}

#[test]
fn a_discipline_is_a_valid_name_and_set_once() {
    let with =
        |kind: &str, more: &str| format!("[[path]]\n{kind} = {{ rate = \"1mbit\", {more} }}\n");
    for kind in ["link", "radio"] {
        let key = format!("path.1.{kind}.discipline");
        let bad = Code::BadValue;
        let path = with(kind, "discipline = \"ack-filtre\"");
        let expected = ["none of the choices", "did you mean `ack-filter`"];
        path_refused(&path, bad, &key, "\"ack-filtre\"", &expected);
        let path = with(kind, "discipline-left = \"lifo\"");
        path_refused(&path, bad, &format!("{key}-left"), "\"lifo\"", &["fifo"]);
        let path = with(kind, "discipline = \"fifo\", discipline-right = \"acks-first\"");
        let expected = ["`discipline-right` and `discipline-left`", "one direction"];
        path_refused(&path, bad, &key, "\"fifo\"", &expected);
        let path = with(kind, "disciplin = \"fifo\"");
        let expected = ["did you mean `discipline`"];
        path_refused(
            &path,
            Code::UnknownKey,
            &format!("path.1.{kind}.disciplin"),
            "disciplin",
            &expected,
        );
    }
}

#[test]
fn quantities_need_the_right_unit_and_sign() {
    let with = |rate: &str| format!("[[path]]\nradio = {{ rate = {rate} }}\n");
    let key = "path.1.radio.rate";
    let bad = Code::BadValue;
    path_refused(&with("\"2mbps\""), bad, key, "\"2mbps\"", &["ambiguous", "`2mbit`"]);
    path_refused(&with("\"2\""), bad, key, "\"2\"", &["no unit", "mbit"]);
    path_refused(&with("2000000"), bad, key, "2000000", &["no unit", "\"2mbit\""]);
    path_refused(&with("\"2ms\""), bad, key, "\"2ms\"", &["`2ms` has no known unit", "a rate"]);
    path_refused(&with("true"), bad, key, "true", &["true or false", "a rate"]);
    let negative = &with("\"-2mbit\"");
    path_refused(negative, Code::OutOfRange, key, "\"-2mbit\"", &["negative", "\"2mbit\""]);
    let queue = "[[path]]\nradio = { rate = \"1mbit\", queue = 50 }\n";
    path_refused(queue, bad, "path.1.radio.queue", "50", &["packets or bytes", "\"50p\""]);
}

#[test]
fn numbers_have_limits() {
    top_refused("runs = 0", Code::OutOfRange, "runs", "0", &["1 to 1000000"]);
    top_refused("runs = 2000000", Code::OutOfRange, "runs", "2000000", &["1 to 1000000"]);
    top_refused("runs = \"20\"", Code::BadValue, "runs", "\"20\"", &["leave out the quotes"]);
    top_refused("seed = -1", Code::OutOfRange, "seed", "-1", &["negative"]);
    top_refused("horizon = \"0s\"", Code::OutOfRange, "horizon", "\"0s\"", &["out of range"]);
    let head = "transfer = { from = \"fixed\", to = \"mobile\", bytes = 1, count = 100001 }\n";
    let text = format!("{head}{HOSTS}{PATH}");
    refused(&text, Code::OutOfRange, "transfer.count", "100001", &["1 to 100000"]);
}

#[test]
fn paths_must_fit_together() {
    let both = "[[path]]\nlink = { rate = \"1mbit\" }\nagent = \"none\"\n";
    let error = fault(&format!("{HEAD}{HOSTS}{both}"));
    assert_eq!(error.code, Code::BadPath);
    assert!(error.message.contains("several kinds"), "{}", error.message);

    let error = fault(&format!("path = []\n{HEAD}{HOSTS}"));
    assert_eq!((error.code, error.message.as_str()), (Code::BadPath, "the path is empty"));
    let error = fault(&format!("{HEAD}{HOSTS}"));
    assert_eq!((error.code, error.key.as_str()), (Code::MissingKey, "path"));
    // QUIC over such a path would cause an endless loop at one instant.
    let error = fault(&format!("{HEAD}{HOSTS}[[path]]\ncross = {{ loss = \"1%\" }}\n"));
    assert_eq!((error.code, error.key.as_str()), (Code::BadPath, "path"));
    assert!(error.message.contains("no time passes"), "{}", error.message);
    // Three million segments would enter a buffer within one instant.
    let with_mss = |mss: u32, link: &str| {
        let hosts = format!("[host.fixed]\nmss = {mss}\nsend-buffer = 10_000_000\n[host.mobile]\n");
        let split = "[[path]]\nagent = \"split\"\nbuffer = 5777583\n";
        let line = "[[path]]\nlink = { rate = \"1mbit\" }\n";
        format!("{HEAD}{hosts}{}{split}{line}", if link.is_empty() { "" } else { line })
    };
    let error = fault(&with_mss(2, ""));
    assert_eq!((error.code, error.key.as_str()), (Code::BadTransfer, "transfer"), "{error}");
    let expected =
        "between `fixed` and the base station that splits its connections, 2888792 segments";
    assert!(error.message.contains(expected), "{}", error.message);
    for (mss, link) in [(2, "between"), (1460, "")] {
        assert!(parse(&with_mss(mss, link), "test", &[]).is_ok(), "{mss} {link}");
    }
    // So would TCP in a cell of an agent alone: a gigabyte within an instant.
    let cells = "[[path]]\nagent = \"none\"\n[[cell]]\nname = \"west\"\n[[cell.path]]\nradio = { rate = \"1mbit\" }\n\
                 [[cell]]\nname = \"east\"\n[[cell.path]]\nagent = \"none\"\n[visits]\nevery = \"1s\"\n";
    let error = fault(&format!("{HEAD}{HOSTS}{cells}"));
    assert_eq!((error.code, error.key.as_str()), (Code::BadPath, "cell"));
    assert!(error.message.contains("through cell `east`"), "{}", error.message);

    let agents = "[[path]]\nagent = \"snoop\"\n[[path]]\nlink = { delay = \"1ms\" }\n[[path]]\n\
                  agent = \"seq-cache\"\n[[path]]\nradio = { rate = \"1mbit\" }\n";
    let key = "path.3.agent";
    path_refused(agents, Code::BadPath, key, "\"seq-cache\"", &["two agents", "path.1", "[vary]"]);

    let many = "[[path]]\nlink = { delay = \"1ms\" }\n".repeat(65);
    assert_eq!(fault(&format!("{HEAD}{HOSTS}{many}")).code, Code::OutOfRange);
}

#[test]
fn several_radio_hops_may_each_have_an_agent() {
    let hop = "[[path]]\nagent = \"snoop\"\n[[path]]\nradio = { rate = \"1mbit\" }\n";
    let (plan, _) = parse(&format!("{HEAD}{HOSTS}{hop}{hop}"), "two", &[]).unwrap();
    let names: Vec<&str> =
        plan.cells[0].scenario.path.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["agent", "radio", "agent2", "radio2"]);
}

#[test]
fn transfers_cross_the_path_between_hosts_that_exist() {
    let with = |from: &str, to: &str| {
        format!("transfer = {{ from = \"{from}\", to = \"{to}\", bytes = 1 }}\n{HOSTS}{PATH}")
    };
    let bad = Code::BadTransfer;
    refused(&with("fixed", "mobil"), bad, "transfer.to", "\"mobil\"", &["did you mean `mobile`"]);
    let error = fault(&with("fixed", "fixed"));
    assert_eq!((error.code, error.key.as_str()), (bad, "transfer"));
    let hosts = "[host.a]\nside = \"left\"\n[host.b]\nside = \"left\"\n";
    let head = "transfer = { from = \"a\", to = \"b\", bytes = 1 }\n";
    let error = fault(&format!("{head}{hosts}{PATH}"));
    assert!(error.message.contains("same end"), "{}", error.message);
    assert!(error.help.contains("side = \"right\""), "{}", error.help);
}

#[test]
fn an_endless_transfer_needs_a_horizon() {
    let head = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"unlimited\" }\n";
    assert_eq!(fault(&format!("{head}{HOSTS}{PATH}")).key, "horizon");
    let text = format!("horizon = \"60s\"\n{head}{HOSTS}{PATH}");
    let (plan, _) = parse(&text, "endless", &[]).unwrap();
    assert_eq!(plan.cells[0].scenario.transfers[0].bytes, None);
}

#[test]
fn keys_of_another_error_model_are_named_as_such() {
    let path =
        "[[path]]\nradio = { rate = \"1mbit\" }\nerrors = { model = \"bit-errors\", mean = 5 }\n";
    let key = "path.1.errors.mean";
    path_refused(path, Code::UnknownKey, key, "mean", &["`bit-errors` takes `ber`"]);
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\nerrors = { model = \"expnential\" }\n";
    let key = "path.1.errors.model";
    path_refused(path, Code::BadValue, key, "\"expnential\"", &["did you mean `exponential`"]);
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\nerrors = { model = \"exponential\" }\n";
    assert_eq!(fault(&format!("{HEAD}{HOSTS}{path}")).code, Code::MissingKey);
}

#[test]
fn one_direction_has_one_channel() {
    let path = "[[path]]\nradio = { rate = \"1mbit\" }\nerrors = { model = \"packet-loss\", p = 0.1 }\n\
                errors-ack = { model = \"packet-loss\", p = 0.2 }\n";
    let error = fault(&format!("{HEAD}{HOSTS}{path}"));
    assert_eq!((error.code, error.key.as_str()), (Code::BadPath, "path.1.errors-ack"));
}

fn argument_fault(argument: Argument) -> (Error, String) {
    let text = format!("{HEAD}{HOSTS}{PATH}");
    let error = parse(&text, "test", std::slice::from_ref(&argument)).expect_err("refused");
    assert_eq!(error.at.source, Source::Argument(0), "{error}");
    let pointed = argument.text().get(error.at.span.clone()).unwrap_or("?").to_owned();
    (error, pointed)
}

#[test]
fn errors_in_arguments_point_into_the_argument() {
    let set = |text: &str| argument_fault(Argument::Set(text.to_owned()));
    let vary = |text: &str| argument_fault(Argument::Vary(text.to_owned()));

    let (error, pointed) = set("host.fixd.tcp=sack");
    assert_eq!((error.code, pointed.as_str()), (Code::UnknownKey, "fixd"));
    let (error, pointed) = set("host.fixed.tpc=sack");
    assert_eq!((error.code, pointed.as_str()), (Code::UnknownKey, "tpc"));
    assert!(error.help.contains("`tcp`"), "{}", error.help);
    let (error, pointed) = set("link.rate=-1mbit");
    assert_eq!((error.code, pointed.as_str()), (Code::OutOfRange, "-1mbit"));
    let (error, pointed) = set("agnet=none");
    assert_eq!((error.code, pointed.as_str()), (Code::UnknownKey, "agnet"));
    assert!(error.help.contains("did you mean `agent`"), "{}", error.help);
    for (key, expected) in [
        ("bandwidth", "did you mean `link.rate` or `radio.rate`?"),
        ("path.bandwidth", "did you mean `link.rate` or `radio.rate`?"),
        ("size", "did you mean `transfer.bytes`?"),
        ("mtu", "did you mean `mss`?"),
        ("timeout", "did you mean `horizon`?"),
    ] {
        let (error, _) = set(&format!("{key}=1"));
        assert_eq!(error.code, Code::UnknownKey);
        assert!(error.help.contains(expected), "{key}: {}", error.help);
    }
    let (error, pointed) = set("path.9.agent=none");
    assert_eq!((error.code, pointed.as_str()), (Code::BadAxis, "9"));
    assert_eq!(set("runs").0.code, Code::BadAxis);
    assert_eq!(set("name=x").0.code, Code::BadAxis);
    assert_eq!(set("cross.loss=1%").0.code, Code::BadAxis);
    let (error, pointed) = vary("agent=none,snop");
    assert_eq!((error.code, pointed.as_str()), (Code::BadValue, "snop"));
    assert!(error.help.contains("in the combination agent = snop"), "{}", error.help);
    assert_eq!(vary("agent=none,,snoop").0.code, Code::BadAxis);
    assert_eq!(vary("agent=none,none").0.code, Code::BadAxis);
}

#[test]
fn axes_are_lists_of_different_values() {
    let with = |axis: &str| fault(&format!("{HEAD}{HOSTS}{PATH}[vary]\n{axis}\n"));
    assert_eq!(with("agent = \"snoop\"").code, Code::BadAxis);
    assert_eq!(with("agent = []").code, Code::BadAxis);
    let seeds: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    let list = seeds.join(", ");
    let error = with(&format!("seed = [{list}]\nruns = [{list}]"));
    assert_eq!(error.code, Code::OutOfRange);
}

#[test]
fn fading_reports_invalid_and_exclusive_options() {
    let stage = |errors: &str| {
        format!("[[path]]\nradio = {{ rate = \"1mbit\" }}\nerrors = {{ model = {errors} }}\n")
    };
    let refused = |errors: &str, code, key: &str, pointed: &str, expected: &[&str]| {
        path_refused(&stage(errors), code, &format!("path.1.errors.{key}"), pointed, expected);
    };
    let walk = "\"two-state\", ber-bad = \"50%\", speed = \"2mph\", carrier = \"900MHz\"";
    refused(walk, Code::BadValue, "speed", "\"2mph\"", &["km/h", "`speed = \"2km/h\"`"]);
    let walk = "\"two-state\", ber-bad = \"50%\", speed = \"2km/h\", carrier = \"2.4\"";
    refused(walk, Code::BadValue, "carrier", "\"2.4\"", &["has no unit", "GHz"]);
    let walk = "\"two-state\", ber-bad = \"50%\", speed = \"2km/h\", carrier = \"1GHz\", margin = \"90dB\"";
    refused(walk, Code::OutOfRange, "margin", "\"90dB\"", &["`-3dB` to `60dB`"]);
    let walk = "\"two-state\", ber-bad = \"50%\", speed = \"2km/h\", good = \"1s\"";
    refused(walk, Code::BadValue, "good", "\"1s\"", &["`good` and `speed` exclude", "`margin`"]);
    let walk = "\"two-state\", ber-bad = \"50%\", good-bits = 9, bad-bits = 9, reciprocal = true";
    refused(walk, Code::BadValue, "reciprocal", "true", &["cannot share", "`good` and `bad`"]);
    let wave =
        "\"rayleigh\", speed = \"2km/h\", carrier = \"1GHz\", snr = \"20dB\", modulation = \"am\"";
    refused(wave, Code::BadValue, "modulation", "\"am\"", &["`dbpsk`"]);
    refused(
        "\"bit-errors\", ber = 1e-5, only = [\"rts\"]",
        Code::BadValue,
        "only",
        "\"rts\"",
        &["`control`"],
    );
    refused(
        "\"rayleigh\", speed = \"2km/h\", carrier = \"1GHz\", ber = 1e-5",
        Code::UnknownKey,
        "ber",
        "ber",
        &["`rayleigh` takes"],
    );
}

#[test]
fn packet_radio_has_neither_link_layer_nor_a_second_channel() {
    let with = |keys: &str| {
        format!("[[path]]\nradio = {{ rate = \"100kbit\" }}\nmac = \"half-duplex-hops\"\n{keys}\n")
    };
    let expected = ["leave out `link-layer`", "half-duplex-hops"];
    path_refused(
        &with("link-layer = \"ll\""),
        Code::BadValue,
        "path.1.link-layer",
        "\"ll\"",
        &expected,
    );
    let many = with("half-duplex-hops = { hops = 17 }");
    path_refused(&many, Code::OutOfRange, "path.1.half-duplex-hops.hops", "17", &["1", "16"]);
    let full =
        "[[path]]\nradio = { rate = \"100kbit\", duplex = \"full\" }\nmac = \"half-duplex-hops\"\n";
    let key = "path.1.mac";
    path_refused(full, Code::BadValue, key, "\"half-duplex-hops\"", &["half-duplex radio"]);
    let none = "[[path]]\nagent = \"ack-reconstruction\"\nack-thresh = 0\n[[path]]\nlink = {}\n";
    path_refused(none, Code::OutOfRange, "path.1.ack-thresh", "0", &["1"]);
}

/// Asserts the error for `battery = ...` of a host.
#[track_caller]
fn battery_refused(value: &str, code: Code, key: &str, pointed: &str, expected: &[&str]) {
    let text = format!("{HEAD}[host.fixed]\n[host.mobile]\nbattery = {value}\n{PATH}");
    refused(&text, code, &format!("host.mobile.battery{key}"), pointed, expected);
}

#[test]
fn an_invalid_battery_is_refused() {
    let expected = ["none of the choices", "did you mean `sens-800`"];
    battery_refused("\"sens-80\"", Code::BadValue, "", "\"sens-80\"", &expected);
    let expected = ["this is an integer", "a preset or a table", "lasthop list hardware"];
    battery_refused("30", Code::BadValue, "", "30", &expected);
    let value = "{ preset = \"sens\", base = \"3W\" }";
    battery_refused(value, Code::BadValue, ".preset", "\"sens\"", &["there are `sens-800`"]);
    let value = "{ preset = \"sens-800\", dose = \"1W\" }";
    battery_refused(value, Code::UnknownKey, ".dose", "dose", &["did you mean `doze`"]);
}

#[test]
fn battery_amounts_need_a_valid_value_and_unit() {
    let with = |more: &str| format!("{{ preset = \"sens-800\", {more} }}");
    let expected = ["is negative", "capacity = \"30Wh\""];
    let value = with("capacity = \"-30Wh\"");
    battery_refused(&value, Code::OutOfRange, ".capacity", "\"-30Wh\"", &expected);
    let expected = ["out of range", "capacity = \"30Wh\""];
    battery_refused(&with("capacity = 0"), Code::OutOfRange, ".capacity", "0", &expected);
    let value = with("capacity = \"0Ah\", supply = \"5V\"");
    battery_refused(&value, Code::OutOfRange, ".capacity", "\"0Ah\"", &expected);
    let expected = ["does not begin with a number", "base = \"0.9W\""];
    battery_refused(&with("base = nan"), Code::BadValue, ".base", "nan", &expected);
    battery_refused(&with("base = \"nanW\""), Code::BadValue, ".base", "\"nanW\"", &expected);
    battery_refused(&with("segment = \"infJ\""), Code::BadValue, ".segment", "\"infJ\"", &[]);
    let expected = ["has no unit", "idle = \"0.9W\""];
    battery_refused(&with("idle = 3"), Code::BadValue, ".idle", "3", &expected);
    let expected = ["no known unit", "a power with its unit"];
    battery_refused(&with("idle = \"3Wh\""), Code::BadValue, ".idle", "\"3Wh\"", &expected);
    let value = with("capacity = \"1e300Wh\"");
    battery_refused(&value, Code::BadValue, ".capacity", "\"1e300Wh\"", &["no known unit"]);
    let huge = format!("\"{}Wh\"", "9".repeat(300));
    let value = with(&format!("capacity = {huge}"));
    battery_refused(&value, Code::OutOfRange, ".capacity", &huge, &["out of range"]);
    let value = with(&format!("capacity = \"{}Ah\", supply = \"5V\"", "9".repeat(308)));
    let expected = ["out of range"];
    battery_refused(
        &value,
        Code::OutOfRange,
        ".capacity",
        &format!("\"{}Ah\"", "9".repeat(308)),
        &expected,
    );
}

#[test]
fn a_current_needs_a_voltage() {
    let value = "{ preset = \"sens-800\", transmit = \"280mA\" }";
    let expected = ["is a current", "supply = \"5V\"", "transmit = \"0.9W\""];
    battery_refused(value, Code::MissingKey, ".transmit", "\"280mA\"", &expected);
    let value = "{ preset = \"sens-800\", capacity = \"2.8Ah\" }";
    let expected = ["is a charge", "supply = \"5V\"", "capacity = \"30Wh\""];
    battery_refused(value, Code::MissingKey, ".capacity", "\"2.8Ah\"", &expected);
    let value = "{ preset = \"sens-800\", supply = \"0V\" }";
    battery_refused(value, Code::OutOfRange, ".supply", "\"0V\"", &["supply = \"5V\""]);
}

#[test]
fn a_battery_without_a_preset_needs_all_keys() {
    let value = "{ capacity = \"30Wh\" }";
    let expected = ["needs `base`", "preset = \"sens-800\"", "segment"];
    battery_refused(value, Code::MissingKey, ".base", value, &expected);
}

#[test]
fn an_oversized_initial_burst_is_refused() {
    let text = |window: u32| {
        format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\", count = 100000 }}\n[host.fixed]\nmss = 9\n\
             send-buffer = \"1MB\"\ninitial-window = {window}\n[host.mobile]\nrecv-buffer = \"1MB\"\n{PATH}"
        )
    };
    assert!(parse(&text(100), "test", &[]).is_ok());
    let error = fault(&text(101));
    assert_eq!(error.code, Code::BadTransfer);
    assert!(error.message.contains("10100000 packets"), "{}", error.message);
    assert!(error.help.contains("initial-window"), "{}", error.help);
}

#[test]
fn a_battery_on_a_hop_without_reports_is_refused() {
    let text = format!(
        "{HEAD}[host.fixed]\n[host.mobile]\nbattery = \"esp32\"\n[[path]]\nradio = {{ rate = \"1mbit\" }}\n\
         mac = \"half-duplex-hops\"\n"
    );
    let expected = ["does not report when", "mac = \"dcf\""];
    refused(&text, Code::BadValue, "host.mobile.battery", "\"esp32\"", &expected);
}

#[test]
fn a_threshold_below_the_frame_of_an_ack_is_refused() {
    let path = |bytes| {
        format!(
            "[[path]]\nradio = {{ rate = \"2mbit\" }}\nmac = \"dcf\"\ndcf = {{ rts-threshold = {bytes} }}\n"
        )
    };
    let expected = ["an ACK has 76B", "rts-threshold = \"76B\""];
    path_refused(&path("75"), Code::OutOfRange, "path.1.dcf.rts-threshold", "75", &expected);
    path_refused(&path("0"), Code::OutOfRange, "path.1.dcf.rts-threshold", "0", &expected);
    assert!(parse(&format!("{HEAD}{HOSTS}{}", path("76")), "test", &[]).is_ok());
}

/// TCP over `rate = "65mbit"` has 8 Mbit/s with preambles and ACKs of 802.11b.
#[test]
fn a_rate_that_802_11b_lacks_causes_a_warning() {
    let warnings = |rate: &str, rest: &str| {
        let radio = format!("[[path]]\nradio = {{ rate = \"{rate}\" }}\nmac = \"dcf\"\n{rest}\n");
        let (_, warnings) = parse(&format!("{HEAD}{HOSTS}{radio}"), "test", &[]).unwrap();
        warnings
    };
    let found = warnings("65mbit", "");
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!((warning.code, warning.key.as_str()), (Code::Differs, "path.1.radio.rate"));
    assert!(warning.help.contains("phy = \"ax\""), "{warning:?}");
    assert_eq!(warnings("65mbit", "dcf = { phy = \"ax\", mcs = 5 }"), []);
    assert_eq!(warnings("5.5mbit", ""), []);
    let own = "dcf = { stations = [{ host = \"mobile\", rate = \"6mbit\" }] }";
    assert_eq!(warnings("11mbit", own).len(), 1);
}

#[test]
fn power_saving_errors_point_at_the_key() {
    let path =
        |rest: &str| format!("[[path]]\nradio = {{ rate = \"2mbit\" }}\nmac = \"dcf\"\n{rest}\n");
    let key = "path.1.dcf.power-save";
    let word = path("dcf = { power-save = \"on\" }");
    path_refused(&word, Code::BadValue, key, "\"on\"", &["ps-poll", "dynamic", "off"]);
    let long = path("dcf = { power-save = { beacon = \"1ms\" } }");
    let key = "path.1.dcf.power-save.beacon";
    path_refused(&long, Code::OutOfRange, key, "\"1ms\"", &["10ms", "102.4ms"]);
    let unknown = path("dcf = { power-save = { dtim = 3 } }");
    path_refused(&unknown, Code::UnknownKey, "path.1.dcf.power-save.dtim", "dtim", &["listen"]);
    let text = path("dcf = { power-save = \"ps-poll\" }\nlink-layer = \"ll\"");
    path_refused(&text, Code::BadValue, "path.1.link-layer", "\"ll\"", &["beacon", "leave out"]);
}

/// Warns of an agent that needs information which the hosts do not send.
#[test]
fn agents_without_needed_information_cause_warnings() {
    let notes = |agent: &str, host: &str| {
        let path = PATH.replace("\"snoop\"", &format!("\"{agent}\""));
        let text = format!("{HEAD}[host.fixed]\n{host}\n[host.mobile]\n{host}\n{path}");
        let (_, notes) = parse(&text, "test", &[]).unwrap_or_else(|error| panic!("{error}"));
        notes.into_iter().map(|note| note.message).collect::<Vec<_>>()
    };
    for (agent, host, noted) in [
        ("snoop", "", None),
        (
            "snoop-smart",
            "tcp = \"newreno\"\nsack = false",
            Some("`snoop-smart` gains nothing from `mobile`"),
        ),
        ("snoop-smart", "sack = true", None),
    ] {
        let found = notes(agent, host);
        let is_reported = found.iter().any(|note| noted.is_some_and(|noted| note.contains(noted)));
        assert_eq!(is_reported, noted.is_some(), "{agent} with `{host}`: {found:?}");
        assert!(noted.is_some() || found.is_empty(), "{agent} with `{host}`: {found:?}");
    }
}
