//! `lasthop lab` with requests of a browser, and of a foreign page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use lasthop_web::{answer, envelope};
use serde_json::json;

/// The program, which ends with the test.
struct Served {
    child: Child,
    host: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(directory: &std::path::Path) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["--json", "lab", "--directory"])
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut told = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    // The address may extend over several lines.
    while !told.trim_end().ends_with('}') {
        assert!(stdout.read_line(&mut told).expect("it says where it is") > 0, "it ended: {told}");
    }
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let url = told["url"].as_str().expect("an address");
    let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    Served { child, host }
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
    let served = serve(directory.path());
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
    let mut served = serve(directory.path());
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
