//! Three addresses on loopback: the page, the scenarios of a directory, and the engine's answers.
//!
//! Pages of other sites in the same browser must not access it. Requests are rejected if their `Host` is not
//! this server (DNS rebinding), or if their `Origin` is another page. No path of a request is looked up in
//! the file system.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::scenario::Text;

/// The page with its scripts, written by `make web-served`; `make web-test` compares it with its source.
const PAGE: &str = include_str!("page.html");

/// Size limit of a request, bytes; requests contain captures.
const LONGEST: usize = 256 << 20;

/// Limit of connections.
const CONNECTIONS: usize = 64;

/// Limit of simultaneous runs: the columns of a page.
const RUNS: usize = 4;

/// Limit of offered files.
const FILES: usize = 200;

/// The state that all requests share.
struct Lab {
    port: u16,
    directory: PathBuf,
    runs: Semaphore,
}

/// Serves until Ctrl-C or a termination signal.
pub fn serve(listener: TcpListener, port: u16, directory: PathBuf) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lab = Arc::new(Lab { port, directory, runs: Semaphore::new(RUNS) });
    let stop = Arc::new(Notify::new());
    let on_interrupt = stop.clone();
    ctrlc::set_handler(move || on_interrupt.notify_one()).map_err(io::Error::other)?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    runtime.spawn(accept(listener, lab));
    runtime.block_on(stop.notified());
    // Runs without a client do not delay the end.
    runtime.shutdown_background();
    Ok(())
}

/// Accepts and serves connections.
async fn accept(listener: tokio::net::TcpListener, lab: Arc<Lab>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        // A failed connection does not end the server.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let lab = lab.clone();
        tokio::spawn(async move {
            let answer = |request| {
                let lab = lab.clone();
                async move { Ok::<_, Infallible>(lab.answer(request).await) }
            };
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            let _ = connection.await;
            drop(place);
        });
    }
}

type HttpResponse = Response<Full<Bytes>>;

impl Lab {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> HttpResponse {
        if !is_ours(request.headers(), self.port) {
            return error_response(
                StatusCode::FORBIDDEN,
                "this server answers only requests of its own page\n",
            );
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => response("text/html; charset=utf-8", PAGE.as_bytes().to_vec()),
            (&Method::GET, "/scenarios.json") => {
                let files = scenarios(&self.directory);
                response("application/json", Value::Array(files).to_string().into_bytes())
            }
            (&Method::POST, "/ask") => self.post_request(request).await,
            (_, "/" | "/scenarios.json" | "/ask") => {
                error_response(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here\n")
            }
            _ => error_response(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }

    async fn post_request(&self, request: Request<Incoming>) -> HttpResponse {
        let body = Limited::new(request.into_body(), LONGEST).collect();
        let Ok(question) = body.await.map(|body| body.to_bytes()) else {
            return error_response(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the request is too long or incomplete\n",
            );
        };
        let Ok(_run) = self.runs.acquire().await else {
            return error_response(StatusCode::SERVICE_UNAVAILABLE, "ending\n");
        };
        let answer = tokio::task::spawn_blocking(move || lasthop_web::answer(&question));
        match answer.await {
            Ok(answer) => response("application/octet-stream", answer),
            Err(_) => error_response(StatusCode::INTERNAL_SERVER_ERROR, "the run failed\n"),
        }
    }
}

/// Whether a request is from the served page, or from no page.
fn is_ours(headers: &HeaderMap, port: u16) -> bool {
    let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let host = headers.get(header::HOST).map(text);
    let origin = headers.get(header::ORIGIN).map(text);
    host.is_some_and(|host| names.contains(&host))
        && origin.is_none_or(|origin| {
            origin.strip_prefix("http://").is_some_and(|host| names.iter().any(|name| name == host))
        })
}

/// The scenarios of a directory, sorted by name, with the files that their links name.
fn scenarios(directory: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml") && path.is_file())
        .collect();
    paths.sort();
    let scenario = |path: &PathBuf| {
        let text = Text::load(path.to_str()?, &[]).ok()?.text;
        // Other TOML files are ignored.
        let name = path.file_name()?.to_str()?;
        text.contains("path").then(|| json!({ "name": name, "text": text }))
    };
    paths.iter().filter_map(scenario).take(FILES).collect()
}

fn response(kind: &'static str, body: Vec<u8>) -> HttpResponse {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

fn error_response(status: StatusCode, words: &'static str) -> HttpResponse {
    let mut answer = response("text/plain; charset=utf-8", words.as_bytes().to_vec());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pages_and_other_names_are_refused() {
        let headers = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            headers
        };
        assert!(is_ours(&headers("127.0.0.1:80", None), 80));
        assert!(is_ours(&headers("localhost:80", Some("http://localhost:80")), 80));
        assert!(!is_ours(&headers("attacker.example:80", None), 80));
        assert!(!is_ours(&headers("127.0.0.1:81", None), 80));
        assert!(!is_ours(&headers("127.0.0.1:80", Some("http://attacker.example")), 80));
        assert!(!is_ours(&headers("127.0.0.1:80", Some("null")), 80));
        assert!(!is_ours(&HeaderMap::new(), 80));
    }
}
