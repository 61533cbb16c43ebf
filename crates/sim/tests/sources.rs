//! Sources of datagrams, compared with queueing theory.

use lasthop_observe::layout::Role;
use lasthop_observe::metrics::{Datagrams, Grade};
use lasthop_proto::machine::Side;
use lasthop_scenario::Scenario;

use crate::parsed::{self, metrics};

fn scenario(udp: &str, link: &str, horizon: &str) -> Scenario {
    let text = format!(
        "horizon = \"{horizon}\"\n\
         transfer = {{ from = \"fixed\", to = \"mobile\", udp = {{ {udp} }} }}\n\
         [host.fixed]\npreset = \"rfc\"\n[host.mobile]\npreset = \"rfc\"\n\
         [[path]]\nlink = {{ {link} }}\n"
    );
    parsed::scenario(&text)
}

fn datagrams(scenario: &Scenario, seed: u64) -> Datagrams {
    metrics(scenario, seed).datagrams.remove(0)
}

/// Mean and standard error over runs with these seeds.
fn over(seeds: u64, of: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=seeds).map(of).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, (square / n).sqrt())
}

/// The mean waiting time in units of the mean time of service of one, and its standard error, over 16 runs of 100,000
/// packets.
fn waiting(load: f64, size: u32, sizes: &str) -> (f64, f64) {
    let service = f64::from(size) * 8.0 / 8e6;
    let rate = (8e6 * load) as u64;
    let udp =
        format!("rate = \"{rate}bit\", size = {size}, arrivals = \"poisson\", sizes = \"{sizes}\"");
    let horizon = format!("{}s", (100_000.0 * service / load) as u64);
    let scenario = scenario(&udp, "rate = \"8mbit\", queue = \"100000p\"", &horizon);
    over(16, |seed| {
        let seen = datagrams(&scenario, seed);
        assert_eq!(seen.lost, 0);
        (seen.delay_mean_s - service) / service
    })
}

/// Asserts that the formula lies within four standard errors, which are less than 2.5% of it.
fn fits((mean, error): (f64, f64), formula: f64) {
    assert!(error < 0.025 * formula, "{error} is no small error for {formula}");
    assert!((mean - formula).abs() < 4.0 * error, "{mean} with an error of {error}, not {formula}");
}

#[test]
fn equal_packets_of_a_poisson_source_wait_as_in_m_d_1() {
    for load in [0.5, 0.8, 0.9] {
        fits(waiting(load, 1000, "constant"), load / (2.0 * (1.0 - load)));
    }
}

#[test]
fn exponential_packets_of_a_poisson_source_wait_as_in_m_m_1() {
    // Large packets, so that few are shorter than headers or longer than packets can be.
    for load in [0.5, 0.8, 0.9] {
        fits(waiting(load, 4000, "exponential"), load / (1.0 - load));
    }
}

#[test]
fn a_constant_source_alone_has_a_constant_delay() {
    // 1000 bytes each 20 ms; 1 ms at 8 Mbit/s and 15 ms of delay.
    let link = "rate = \"8mbit\", delay = \"15ms\"";
    let seen = datagrams(&scenario("rate = \"400kbit\", size = 1000", link, "100s"), 1);
    assert_eq!((seen.sent, seen.lost, seen.late, seen.duplicates), (5000, 0, 0, 0));
    // The last packet is still in flight when the source ends.
    assert_eq!(seen.delivered, seen.arrived * 1000);
    assert!(seen.sent - seen.arrived <= 1, "{seen:?}");
    for delay in [seen.delay_mean_s, seen.delay_p50_s, seen.delay_max_s] {
        assert!((delay - 0.016).abs() < 1e-9, "{seen:?}");
    }
    assert!(seen.jitter_s < 1e-9, "{seen:?}");
}

#[test]
fn effects_of_a_line_on_datagrams_are_metrics() {
    let link =
        "rate = \"8mbit\", delay = \"15ms\", jitter = \"6ms\", loss = \"5%\", duplicate = \"10%\"";
    let n = 20_000.0_f64;
    let seen = datagrams(&scenario("rate = \"400kbit\", size = 1000", link, "400s"), 3);
    let within =
        |count: u64, p: f64| (count as f64 - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt();
    // One surviving copy suffices: a duplicate replaces a lost packet.
    assert!(within(seen.lost, 0.05 * 0.9), "{seen:?}");
    assert!(within(seen.duplicates, 0.1 * 0.95 * 0.95), "{seen:?}");
    assert_eq!(seen.late, 0);
    // The mean difference of two uniform delays within 6 ms is 4 ms; of two duplicates the first counts.
    assert!((seen.jitter_s - 0.004).abs() < 0.000_2, "{seen:?}");
    assert!((seen.delay_mean_s - 0.016).abs() < 0.000_4, "{seen:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let link =
        "rate = \"8mbit\", delay = \"15ms\", jitter = \"30ms\", loss = \"1%\", reorder = \"5%\"";
    let udp = "rate = \"6mbit\", size = 1000, arrivals = \"poisson\"";
    let scenario = scenario(udp, link, "10s");
    let [one, again, other] = [1, 1, 2].map(|seed| datagrams(&scenario, seed));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert!(one.late > 1000, "{one:?}");
}

#[test]
fn scalars_include_datagrams() {
    let run = metrics(&scenario("rate = \"4mbit\"", "rate = \"2mbit\"", "10s"), 1);
    let of = |name| run.scalars().into_iter().find(|s| s.name == name).unwrap().value;
    // Half of the datagrams do not fit.
    assert!((of("datagram_loss") - 0.5).abs() < 0.02, "{}", of("datagram_loss"));
    assert!((of("datagrams") - 2500.0).abs() < 10.0, "{}", of("datagrams"));
    // 50 packets of 4 ms wait.
    assert!((of("datagram_delay_p95") - 0.204).abs() < 0.005, "{}", of("datagram_delay_p95"));
    // 250 packets of 1000 bytes in each second.
    assert!((of("throughput") / 250_000.0 - 1.0).abs() < 0.01, "{}", of("throughput"));
    assert!(run.complete());
}

#[test]
fn tcp_delivers_all_bytes_despite_netem_impairments() {
    let text = "horizon = \"600s\"\n\
                transfer = { from = \"fixed\", to = \"mobile\", bytes = \"500kB\" }\n\
                [host.fixed]\npreset = \"linux\"\n[host.mobile]\npreset = \"linux\"\n[[path]]\n\
                link = { rate = \"5mbit\", netem = \"delay 20ms 10ms 25% distribution pareto loss gemodel 1% 30% \
                duplicate 3% corrupt 1% reorder 5%\" }\n";
    let scenario = parsed::scenario(text);
    for seed in 1..=10 {
        let run = metrics(&scenario, seed);
        assert!(run.complete() && run.corrupted == 0, "seed {seed}");
        let towards_right = run
            .stages
            .iter()
            .find(|stage| stage.role == Role::Link && stage.towards == Some(Side::Right));
        let towards_right = towards_right.unwrap();
        let happened = [
            towards_right.damaged,
            towards_right.originated.total(),
            towards_right.redirected.total(),
        ];
        assert!(happened.iter().all(|n| *n > 0), "seed {seed}: {towards_right:?}");
    }
}

#[test]
fn a_call_is_as_good_as_its_delay_and_its_loss() {
    let call = |udp: &str, link: &str| datagrams(&scenario(udp, link, "200s"), 1).voice.unwrap();
    // 20 ms of speech in a packet, 40 ms on the way with 2 ms of sending, 60 ms in the buffer.
    // G.107 7.4: 122 ms without echo cost 0.002313, and 130 ms 0.012188.
    let whole = 93.2 - 0.002313;
    let g711 = call("voice = \"g711\"", "rate = \"800kbit\", delay = \"40ms\"");
    assert!((g711.delay_s - 0.122).abs() < 1e-9 && g711.missing == 0.0, "{g711:?}");
    assert!((g711.r - whole).abs() < 1e-6 && (g711.mos - 4.41).abs() < 0.01, "{g711:?}");
    // 5% of 10,000 packets lost, give or take 1%: 95 * 5 / (5 + 25.1) = 15.8 less.
    let lossy = call("voice = \"g711\"", "rate = \"800kbit\", delay = \"40ms\", loss = \"5%\"");
    assert!((lossy.missing - 0.05).abs() < 0.01, "{lossy:?}");
    assert!(
        (lossy.r - (whole - 95.0 * lossy.missing * 100.0 / (lossy.missing * 100.0 + 25.1))).abs()
            < 1e-6
    );
    // With a jitter of 50 ms, packets more than 60 ms above the minimum are too late: two fifths.
    let jitter = "delay = \"60ms\", jitter = \"50ms\"";
    let late = call("voice = \"g729\"", jitter);
    assert!((late.missing - 0.4).abs() < 0.02, "{late:?}");
    // A buffer for all packets has no loss, and more delay.
    let patient = call("voice = \"g729\", buffer = \"100ms\"", jitter);
    // Except for packets overtaken at the very end.
    assert!(patient.missing < 0.001 && patient.r > late.r, "{patient:?}");
    assert!((patient.r - (93.2 - 11.0 - 0.012188)).abs() < 0.4, "{patient:?}");
}

#[test]
fn load_adds_the_delay_of_the_queue() {
    // Two downloads and two uploads from the fifth second on, and a probe all the time.
    let text = |queue: &str| {
        let flow = "bytes = \"unlimited\", start = \"5s\", count = 2";
        format!(
            "horizon = \"30s\"\ntransfer = [\n  {{ from = \"fixed\", to = \"mobile\", {flow} }},\n  \
             {{ from = \"mobile\", to = \"fixed\", {flow} }},\n  \
             {{ from = \"mobile\", to = \"fixed\", udp = {{ probe = \"100ms\" }} }},\n]\n\
             [host.fixed]\npreset = \"linux\"\n[host.mobile]\npreset = \"linux\"\n\
             [[path]]\nlink = {{ rate = \"10mbit\", delay = \"10ms\", {queue} }}\n"
        )
    };
    let run = |queue: &str| {
        let run = metrics(&parsed::scenario(&text(queue)), 1);
        let load = run.datagrams[0].load.unwrap();
        // 64 bytes at 10 Mbit/s and 10 ms, twice.
        assert!((load.idle_s - 0.020_102_4).abs() < 1e-9, "{load:?}");
        assert!((load.rpm - 60.0 / load.loaded_s).abs() < 1e-9);
        let rise = run.scalars().into_iter().find(|s| s.name == "load_rise").unwrap().value;
        assert_eq!(rise, load.rise_s);
        load
    };
    // Up to 100 packets of 1.2 ms wait in each direction.
    let full = run("queue = \"100p\"");
    assert!((0.06..0.24).contains(&full.rise_s) && full.grade == Grade::C, "{full:?}");
    let managed = run("queue = \"1000p\", discipline = \"fq-codel\"");
    assert!(managed.rise_s < 0.005 && managed.grade == Grade::Best, "{managed:?}");
}
