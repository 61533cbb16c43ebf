//! Pages and videos over paths with exactly known times.

use lasthop_observe::metrics::{Exchanges, Pages, RunMetrics, Videos};

use crate::parsed::{self, scenario};

fn metrics(text: &str) -> RunMetrics {
    let metrics = parsed::metrics(&scenario(text), 1);
    assert_eq!(metrics.corrupted, 0, "{text}");
    metrics
}

fn table(transfer: &str, hosts: &str, link: &str) -> Exchanges {
    let text = format!(
        "horizon = \"1000s\"\ntransfer = {{ from = \"mobile\", to = \"server\", {transfer} }}\n[host.mobile]\n{hosts}\n\
         [host.server]\nside = \"left\"\n{hosts}\n[[path]]\nlink = {{ {link} }}\n"
    );
    let metrics = metrics(&text);
    assert!(metrics.flows.is_empty() && metrics.complete(), "reported together: {metrics:?}");
    metrics.exchanges[0].clone()
}

/// Pages of a thousand bytes per object, over a round trip of 100 ms without transmission times.
fn pages(keys: &str) -> (Pages, Exchanges) {
    let keys = format!("page = {{ first = \"1000B\", objects = 3, size = \"1000B\", {keys} }}");
    let table = table(&keys, "preset = \"rfc\"\ninitial-window = 10", "delay = \"50ms\"");
    (table.pages.clone().expect("pages"), table)
}

/// Equal times, up to binary fractions.
#[track_caller]
fn same(measured: f64, ms: f64) {
    assert!((measured * 1e3 - ms).abs() < 1e-6, "{} ms and not {ms}", measured * 1e3);
}

#[test]
fn a_page_takes_its_round_trips() {
    // One round trip to open and one for the first object; then one for each of three sequential objects.
    let (one, table) = pages("connections = 1, pages = 1");
    same(one.first_byte_p50_s, 200.0);
    same(one.load_p50_s, 500.0);
    assert_eq!((table.connections, table.asked, table.answered, table.delivered), (1, 4, 4, 4000));
    // Two in parallel: the second connection opens while the first carries the second object, then each has one more.
    let (two, table) = pages("connections = 2, pages = 1");
    same(two.load_p50_s, 400.0);
    assert_eq!((table.connections, table.answered), (2, 4));
    // Three objects need no more than three connections.
    let (six, table) = pages("connections = 6, pages = 1");
    same(six.load_p50_s, 400.0);
    assert_eq!(table.connections, 3);
    // All at once after the first.
    let (multiplexed, table) = pages("multiplexed = true, pages = 1");
    same(multiplexed.load_p50_s, 300.0);
    assert_eq!((table.connections, table.answered), (1, 4));
}

#[test]
fn connections_stay_open_from_page_to_page() {
    let (two, table) = pages("connections = 2, pages = 3");
    // 400 ms for the first, then 100 ms for the first object and twice that for three others on two connections.
    assert_eq!((two.asked, two.loaded, table.connections), (3, 3, 2));
    same(two.load_max_s, 400.0);
    same(two.load_p50_s, 300.0);
    same(two.first_byte_p50_s, 100.0);
    let (multiplexed, _) = pages("multiplexed = true, pages = 3");
    same(multiplexed.load_p50_s, 200.0);
}

#[test]
fn sizes_are_those_requested() {
    let keys = "count = 3, page = { sizes = \"ngmn\", pages = 5, think = \"1s\" }";
    let on = |delay: &str| {
        table(keys, "preset = \"rfc\"", &format!("rate = \"10mbit\", delay = \"{delay}\""))
    };
    let (near, far) = (on("5ms"), on("80ms"));
    assert_eq!(near.pages.as_ref().map(|pages| pages.loaded), Some(15));
    assert_eq!((near.delivered, near.asked), (far.delivered, far.asked), "the draws are equal");
    assert!(far.pages.unwrap().load_p50_s > near.pages.unwrap().load_p50_s);
}

fn video(keys: &str, link: &str) -> Videos {
    let keys = format!("video = {{ {keys} }}");
    table(&keys, "preset = \"linux\"\ntcp = \"rack\"", link).videos.expect("a video")
}

#[test]
fn a_constant_rate_plays_at_the_rung_below_it() {
    let keys = "ladder = [\"500kbit\", \"1mbit\", \"3mbit\"], abr = \"rate\"";
    let link = "rate = \"2mbit\", delay = \"5ms\"";
    let video = video(keys, link);
    // 15 segments: the first at the lowest rate, then 0.85 times slightly less than 2 Mbit/s exceeds 1.
    assert_eq!((video.clients, video.ended, video.segments, video.switches), (1, 1, 15, 1));
    assert_eq!((video.rebuffers, video.rebuffer_time_s), (0, 0.0));
    assert!((video.bitrate - 14.5e6 / 15.0).abs() < 1.0, "{video:?}");
    // Four seconds of 500 kbit/s over 2 Mbit/s, and what headers and opening take.
    assert!(video.startup_s > 1.0 && video.startup_s < 1.15, "{video:?}");
}

#[test]
fn the_mean_bitrate_stays_below_the_link_without_rebuffering() {
    let keys = "ladder = [\"500kbit\", \"1mbit\", \"3mbit\"], length = \"600s\", buffer = \"40s\"";
    let link = "rate = \"2mbit\", delay = \"5ms\"";
    let video = video(keys, link);
    assert_eq!((video.ended, video.rebuffers), (1, 0), "{video:?}");
    assert!(video.bitrate > 1.2e6 && video.bitrate < 2e6, "{video:?}");
}

#[test]
fn an_outage_is_seen_when_it_is_longer_than_the_buffer() {
    // Half a second for each segment of 4 s and 1 Mbit/s, and at most two in the buffer: at 20.4 s, when the outage
    // starts, four seconds are left.
    let during = |outage: f64| {
        let keys = "ladder = [\"1mbit\"], length = \"60s\", buffer = \"8s\"";
        let until = 20.0 + outage;
        video(keys, &format!("rate = \"10mbit\", delay = \"5ms\", outages = \"20s-{until}s\""))
    };
    let short = during(3.5);
    assert_eq!((short.rebuffers, short.rebuffer_time_s), (0, 0.0));
    let [long, longer] = [during(5.0), during(10.0)];
    assert_eq!((long.rebuffers, longer.rebuffers), (1, 1));
    assert!(long.rebuffer_time_s > 0.9 && long.rebuffer_time_s < 1.6, "{long:?}");
    let more = longer.rebuffer_time_s - long.rebuffer_time_s;
    assert!((more - 5.0).abs() < 0.5, "{more}");
}

#[test]
fn a_video_may_stop() {
    let keys = "ladder = [\"1mbit\"], length = \"600s\", buffer = \"8s\"";
    let transfer = format!("stop = \"30s\", video = {{ {keys} }}");
    let table = table(&transfer, "preset = \"rfc\"", "rate = \"10mbit\", delay = \"5ms\"");
    let video = table.videos.unwrap();
    // A segment for each four seconds plus the first buffered one; all received segments are played.
    assert_eq!((video.ended, video.segments, video.rebuffers), (1, 9, 0), "{video:?}");
}
