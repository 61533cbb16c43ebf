//! `lasthop lab` with requests of a browser, and of a foreign page.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use lasthop_web::{answer, envelope};
use serde_json::json;

/// The program, which ends with the test.
struct Served {
    child: Child,
    host: String,
    /// The part of the address that opens a scenario.
    opened: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `lasthop lab`.
fn serve<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["--json", "lab"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    // The address may extend over several lines.
    while !output.trim_end().ends_with('}') {
        assert!(stdout.read_line(&mut output).expect("readable") > 0, "it ended: {output}");
    }
    let output: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    let url = output["url"].as_str().expect("an address");
    let (host, opened) = url.trim_start_matches("http://").split_once('/').expect("a path");
    Served { child, host: host.to_owned(), opened: opened.to_owned() }
}

/// Status and body of a response.
fn request(served: &Served, line: &str, headers: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(&served.host).expect("it listens");
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let status = String::from_utf8_lossy(&all[9..12]).parse().expect("a status");
    (status, all[end..].to_vec())
}

#[test]
fn the_laboratory_is_served_to_its_own_page_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = lasthop_scenario::example("quickstart").unwrap().text;
    std::fs::write(directory.path().join("mine.toml"), text).unwrap();
    std::fs::write(directory.path().join("other.toml"), "a = 1\n").unwrap();
    std::fs::write(directory.path().join("secret.txt"), "secret").unwrap();
    let served = serve([OsStr::new("--directory"), directory.path().as_os_str()]);
    assert_eq!(served.opened, "");
    let own = format!("Host: {}\r\n", served.host);

    let (status, page) = request(&served, "GET /", &own, &[]);
    assert_eq!(status, 200);
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("lasthop-served") && page.contains("Content-Security-Policy"));

    let (status, scenarios) = request(&served, "GET /scenarios.json", &own, &[]);
    let scenarios: serde_json::Value = serde_json::from_slice(&scenarios).unwrap();
    assert_eq!((status, &scenarios), (200, &json!([{ "name": "mine.toml", "text": text }])));

    let question =
        envelope::question(&json!({ "ask": "run", "text": text, "scheme": "snoop" }), &[]);
    let (status, answered) = request(&served, "POST /ask", &own, &question);
    assert_eq!(status, 200);
    assert!(answered == answer(&question), "the same bytes as the module's");

    let refused = |line: &str, headers: &str| request(&served, line, headers, &[]).0;
    assert_eq!(refused("GET /", "Host: attacker.example\r\n"), 403);
    assert_eq!(refused("POST /ask", &format!("{own}Origin: http://attacker.example\r\n")), 403);
    assert_eq!(refused("GET /", ""), 403);
    for path in
        ["/secret.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/mine.toml", "//etc/passwd"]
    {
        assert_eq!(refused(&format!("GET {path}"), &own), 404, "{path}");
    }
    assert_eq!(refused("DELETE /ask", &own), 405);
}

#[test]
fn ctrl_c_ends_it_as_it_ends_a_station() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut served = serve([OsStr::new("--directory"), directory.path().as_os_str()]);
    let host = format!("Host: {}\r\n", served.host);
    assert_eq!(request(&served, "GET /", &host, &[]).0, 200);
    // An idle connection does not delay the end.
    let silent = TcpStream::connect(&served.host).expect("it listens");
    let pid = nix::unistd::Pid::from_raw(served.child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it is there");
    assert_eq!(served.child.wait().expect("it ends").code(), Some(0));
    drop(silent);
    assert!(TcpStream::connect(&served.host).is_err(), "nothing listens any more");
}

#[test]
fn the_address_opens_the_named_scenario() {
    assert_eq!(serve(["ebsn"]).opened, "#ebsn");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("50 % loss.toml");
    std::fs::write(&file, lasthop_scenario::example("quickstart").unwrap().text).unwrap();
    let served = serve([&file]);
    assert_eq!(served.opened, "#50%20%25%20loss.toml");
    let own = format!("Host: {}\r\n", served.host);
    let (_, scenarios) = request(&served, "GET /scenarios.json", &own, &[]);
    let scenarios: serde_json::Value = serde_json::from_slice(&scenarios).unwrap();
    assert_eq!(scenarios[0]["name"], "50 % loss.toml", "files next to it are offered");

    let wrong = super::lasthop(&["lab", "ebns"]);
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(message.contains("`ebns`") && message.contains("`ebsn`"), "{message}");
}
