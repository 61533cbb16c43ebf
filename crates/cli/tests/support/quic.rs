//! Two ends of QUIC (RFC 9000), for the tests and `examples/quic.rs`.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use tokio::runtime::{Builder, Runtime};

/// The name in the certificate.
const NAME: &str = "lasthop.test";

/// quinn's runtime: one thread, so that its sockets are in the network namespace of that thread.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Listens at `address`. Returns the newly made certificate, which clients need.
pub fn serve(address: SocketAddr) -> (Endpoint, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let endpoint = Endpoint::server(config.expect("key and certificate fit"), address);
    (endpoint.expect("it listens"), certificate)
}

/// Connects to the server with `certificate`.
pub async fn call(
    address: SocketAddr,
    certificate: CertificateDer<'static>,
) -> (Endpoint, Connection) {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
    let endpoint = Endpoint::client(([0, 0, 0, 0], 0).into()).expect("a socket");
    let connecting = endpoint.connect_with(config, address, NAME).expect("it may be called");
    (endpoint.clone(), connecting.await.expect("the peer is there"))
}
