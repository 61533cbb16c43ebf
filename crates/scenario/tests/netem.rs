//! Links that do what netem does, sources of datagrams, and hosts with links of their own: what is read, and what is
//! refused.

use lasthop_scenario::{Code, parse};

const HEAD: &str = "transfer = { from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }\n";
const HOSTS: &str = "[host.fixed]\n[host.mobile]\n";
const PATH: &str = "[[path]]\nlink = { rate = \"10mbit\", delay = \"1ms\" }\n";

/// Asserts code and key, that the error points at `pointed`, and that message, label and help together contain all of
/// `said`.
#[track_caller]
fn refused(text: &str, code: Code, key: &str, pointed: &str, said: &[&str]) {
    let error = parse(text, "test", &[]).map(|_| text).expect_err("this should be refused");
    let all = format!("{} | {} | {}", error.message, error.label, error.help);
    assert_eq!((error.code, error.key.as_str()), (code, key), "{all}");
    assert_eq!(text.get(error.at.span.clone()), Some(pointed), "{all}");
    for words in said {
        assert!(all.contains(words), "`{words}` is not said in: {all}");
    }
}

/// The same for a path of its own.
#[track_caller]
fn path_refused(path: &str, code: Code, key: &str, pointed: &str, said: &[&str]) {
    refused(&format!("{HEAD}{HOSTS}{path}"), code, key, pointed, said);
}

#[test]
fn what_netem_does_is_refused_where_it_cannot_be_meant() {
    let link = |keys: &str| format!("[[path]]\nlink = {{ {keys} }}\n");
    let text = link("netem = \"delay 20ms jitter 5ms\"");
    let pointed = "\"delay 20ms jitter 5ms\"";
    let said = ["netem has no `jitter`", "limit, delay, loss"];
    path_refused(&text, Code::BadValue, "path.1.link.netem", pointed, &said);
    let text = link("netem = \"delay 20ms loss state 1%\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.netem",
        "\"delay 20ms loss state 1%\"",
        &["loss gemodel"],
    );
    let text = link("rate = \"1mbit\", jitter-order = \"kept\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.jitter-order",
        "\"kept\"",
        &["without `jitter`"],
    );
    let text = link("rate = \"1mbit\", reorder = \"1%\"");
    path_refused(&text, Code::BadValue, "path.1.link.reorder", "\"1%\"", &["without a delay"]);
    let text = link("loss = { p = \"1%\" }, loss-correlation = \"25%\"");
    path_refused(
        &text,
        Code::BadValue,
        "path.1.link.loss-correlation",
        "\"25%\"",
        &["beside a chain"],
    );
    let text = link("loss = \"1%\", frame-loss = \"1%\"");
    path_refused(&text, Code::BadValue, "path.1.link.frame-loss", "\"1%\"", &["two links"]);
}

#[test]
fn a_link_in_the_words_of_netem_is_one_in_ours() {
    let scenario = |link: &str| {
        let text = format!("{HEAD}{HOSTS}[[path]]\nlink = {{ {link} }}\n");
        let (plan, _) = parse(&text, "test", &[]).unwrap_or_else(|e| panic!("{e}: {}", e.help));
        plan.cells[0].scenario.clone()
    };
    let ours = "rate = \"5mbit\", delay = \"20ms\", jitter = \"5ms\", jitter-correlation = \"25%\", \
                jitter-order = \"kept\", loss = { p = \"1%\", r = \"10%\" }, queue = \"100p\"";
    let words = "netem = \"limit 100 delay 20ms 5ms 25% loss gemodel 1% 10% rate 5mbit\"";
    assert_eq!(scenario(words), scenario(ours));
    // What stands beside wins, and without an impairment it is a plain line.
    let beside =
        "netem = \"delay 20ms loss 1%\", delay = \"30ms\", loss = \"0%\", rate = \"1mbit\"";
    let lossless = scenario("delay = \"30ms\", loss = \"0%\", rate = \"1mbit\"");
    assert_eq!(scenario(beside), lossless);
    assert_eq!(
        scenario("netem = \"rate 1mbit delay 30ms\""),
        scenario("rate = \"1mbit\", delay = \"30ms\"")
    );
}

#[test]
fn datagrams_and_access_links_are_refused_where_they_cannot_be_meant() {
    let text = |transfer: &str, top: &str| {
        format!(
            "{top}transfer = {{ from = \"fixed\", to = \"mobile\", {transfer} }}\n{HOSTS}{PATH}"
        )
    };
    let udp = "udp = { rate = \"1mbit\" }";
    let endless = text(udp, "");
    refused(
        &endless,
        Code::MissingKey,
        "horizon",
        "{ rate = \"1mbit\" }",
        &["`udp` needs a `horizon`"],
    );
    let both = text(&format!("{udp}, bytes = \"1MB\""), "horizon = \"9s\"\n");
    refused(&both, Code::BadTransfer, "transfer.bytes", "\"1MB\"", &["exclude each other"]);
    let bare = text("udp = { size = 500 }", "horizon = \"9s\"\n");
    let error = parse(&bare, "test", &[]).expect_err("a rate is missing");
    assert!(error.key.ends_with("udp.rate"), "{}: {error}", error.key);
}
