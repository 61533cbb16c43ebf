//! QUIC in the simulator, compared with quinn on sockets through a station with the same path.

use std::net::Ipv4Addr;
use std::sync::mpsc::channel;
use std::thread;

use lasthop_observe::stats::Summary;
use lasthop_scenario::parse;

use super::through::timed;
use super::world::{World, enter, inside};
use crate::quic as quinn_ends;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Number of runs in the simulator, where one takes a moment, and on sockets. Sixteen of each were too few:
/// with random losses, the mean of the first sixteen seeds is a tenth above the mean of all.
const SIMULATED: u64 = 300;
const MEASURED: u64 = 48;

/// A path with a rate, a one-way delay in each direction, and losses.
struct Link {
    rate: u32,
    delay: u32,
    loss: f64,
    megabytes: u64,
}

impl Link {
    fn path(&self) -> String {
        format!(
            "[[path]]\nlink = {{ rate = \"{}mbit\", delay = \"{}ms\", queue = \"100p\" }}\n\
             [[path]]\ncross = {{ loss = \"{}%\" }}\n",
            self.rate, self.delay, self.loss
        )
    }

    fn bytes(&self) -> usize {
        (self.megabytes * 1_000_000) as usize
    }

    /// Rates in Mb/s of simulated transfers, from the call until all data is acknowledged.
    fn simulated(&self) -> Vec<f64> {
        let text = format!(
            "horizon = \"600s\"\n\
             transfer = {{ from = \"fixed\", to = \"mobile\", bytes = {}, protocol = \"quic\" }}\n\
             [host.fixed]\n[host.mobile]\n{}",
            self.bytes(),
            self.path()
        );
        let (plan, _) = parse(&text, "quic", &[]).expect("a scenario");
        let measured = |seed| lasthop_sim::runs::measure(&plan.cells[0].scenario, seed);
        (1..=SIMULATED).map(|seed| measured(seed).metrics.flows[0].throughput * 8e-6).collect()
    }

    /// Rates of transfers on quinn's sockets, through a station.
    fn measured(&self, world: &World, runs: u64) -> Vec<f64> {
        world
            .write(&format!("left = \"lx\"\nright = \"rx\"\nplane = \"sockets\"\n{}", self.path()));
        let station = world.station(&[]);
        let rates = (0..runs).map(|_| 8e-6 * self.bytes() as f64 / transfer(self.bytes()));
        let rates = rates.collect();
        assert_eq!(station.end("TERM"), Some(0));
        rates
    }
}

/// Seconds from the call until all `bytes` of the caller's stream are acknowledged.
fn transfer(bytes: usize) -> f64 {
    let (ready, is_ready) = channel();
    let server = thread::spawn(move || {
        enter("b");
        quinn_ends::runtime().block_on(async {
            let (endpoint, certificate) = quinn_ends::serve((SERVER, 4433).into());
            ready.send(certificate).expect("the test waits for it");
            let connection = endpoint.accept().await.expect("a client connects");
            let connection = connection.await.expect("a handshake");
            let mut stream = connection.accept_uni().await.expect("a stream");
            let got = stream.read_to_end(bytes).await.expect("it is read");
            assert_eq!(got.len(), bytes);
            connection.closed().await;
        });
    });
    let certificate = is_ready.recv().expect("a server");
    let client = thread::spawn(move || {
        enter("a");
        let runtime = quinn_ends::runtime();
        let work = || {
            runtime.block_on(async {
                let address = (SERVER, 4433).into();
                let (endpoint, connection) = quinn_ends::call(address, certificate).await;
                let mut stream = connection.open_uni().await.expect("a stream");
                stream.write_all(&vec![7; bytes]).await.expect("it is written");
                stream.finish().expect("the end");
                let stopped = stream.stopped().await.expect("all is acknowledged");
                assert_eq!(stopped, None);
                (endpoint, connection)
            })
        };
        let ((endpoint, connection), seconds) = timed(work);
        connection.close(0_u32.into(), b"done");
        // Waits until the server has received the close.
        runtime.block_on(endpoint.wait_idle());
        seconds
    });
    let seconds = client.join().expect("the client");
    server.join().expect("the server");
    seconds
}

fn mean_text(rates: &[f64]) -> String {
    let all = Summary::of(rates);
    format!("{:.2} ± {:.2}", all.mean, all.ci95)
}

#[test]
#[ignore = "takes minutes: cargo test -p lasthop --test cli station:: -- --ignored --nocapture quic_beside"]
fn quic_in_the_simulator_is_compared_with_sockets() {
    inside("quic_beside::quic_in_the_simulator_is_compared_with_sockets", || {
        let world = World::new("");
        println!("| link | simulator, Mb/s | sockets, Mb/s | ratio |\n|---|---|---|---|");
        for (rate, delay, loss, megabytes) in [(10, 20, 0.0, 5), (10, 20, 1.0, 3), (50, 10, 0.5, 8)]
        {
            let link = Link { rate, delay, loss, megabytes };
            let (ours, theirs) = (link.simulated(), link.measured(&world, MEASURED));
            let ratio = Summary::of(&ours).mean / Summary::of(&theirs).mean;
            println!(
                "| {rate} Mb/s, {delay} ms, {loss} % | {} | {} | {ratio:.3} |",
                mean_text(&ours),
                mean_text(&theirs)
            );
        }
    });
}

/// Without losses the results are equal, except for the delays of a busy machine: the test repeats until
/// these are small.
#[test]
fn sockets_are_as_fast_as_the_simulator() {
    inside("quic_beside::sockets_are_as_fast_as_the_simulator", || {
        let link = Link { rate: 5, delay: 20, loss: 0.0, megabytes: 1 };
        let ours = link.simulated()[0];
        let world = World::new("");
        let mut found = (0..20).flat_map(|_| link.measured(&world, 3));
        let is_near = |theirs: f64| {
            println!("{ours} and {theirs} Mb/s");
            assert!(ours / theirs > 0.9, "{ours} and {theirs} Mb/s");
            ours / theirs < 1.15
        };
        assert!(found.any(is_near), "none is near {ours} Mb/s");
    });
}
