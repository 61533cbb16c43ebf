//! One stream of QUIC, with the congestion control of quinn (CUBIC), for `deploy/measure-link.sh`:
//!
//! ```text
//! quic serve ADDRESS:PORT CERTIFICATE SECONDS    accepts one connection, prints Mb/s received
//! quic send ADDRESS:PORT CERTIFICATE             sends until the receiver closes
//! ```
//!
//! `serve` writes the file CERTIFICATE, which `send` needs to authenticate the server.

#[path = "../tests/support/quic.rs"]
mod quic;

use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use quinn::VarInt;

/// Receives for `seconds` from the first byte on. Returns the rate in Mb/s.
async fn received(endpoint: quinn::Endpoint, seconds: u64) -> f64 {
    let connection = endpoint.accept().await.expect("a client connects");
    let connection = connection.await.expect("a handshake");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let mut bytes = 0;
    let all = async {
        while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.expect("a stream") {
            bytes += chunk.bytes.len();
        }
    };
    // The sender does not end, so the time limit does.
    let _ = tokio::time::timeout(Duration::from_secs(seconds), all).await;
    connection.close(VarInt::from_u32(0), b"enough");
    bytes as f64 * 8.0 / 1e6 / seconds as f64
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = quic::runtime();
    match words[..] {
        ["serve", address, certificate, seconds] => runtime.block_on(async {
            let address = address.parse().expect("ADDRESS:PORT");
            let seconds = seconds.parse().expect("SECONDS");
            let (endpoint, made) = quic::serve(address);
            fs::write(certificate, made).expect("the certificate is written");
            println!("{:.2}", received(endpoint, seconds).await);
            ExitCode::SUCCESS
        }),
        ["send", address, certificate] => runtime.block_on(async {
            let address = address.parse().expect("ADDRESS:PORT");
            let known = fs::read(certificate).expect("the certificate is there");
            let (_endpoint, connection) = quic::call(address, known.into()).await;
            let mut stream = connection.open_uni().await.expect("a stream");
            while stream.write_all(&[0x5a; 1 << 16]).await.is_ok() {}
            ExitCode::SUCCESS
        }),
        _ => {
            eprintln!(
                "quic serve ADDRESS:PORT CERTIFICATE SECONDS | quic send ADDRESS:PORT CERTIFICATE"
            );
            ExitCode::from(2)
        }
    }
}
