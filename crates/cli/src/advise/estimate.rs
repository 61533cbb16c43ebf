//! What a capture or a running station tells about a link.

use std::path::Path;

use lasthop_analyze::{Cause, Config, Direction, PointKind, analyze_capture};
use lasthop_proto::units::{Probability, Rate, Span};
use lasthop_trace::stats::quantile;

use crate::capture::Capture;
use crate::failure::Failure;

/// Bytes of IP and TCP headers, timestamps included.
const HEADERS: f64 = 52.0;
/// The rate is looked for over windows of at least this long, in seconds ...
const WINDOW: f64 = 0.2;
/// ... and so many round trips.
const ROUND_TRIPS: f64 = 4.0;
/// Fewer ACKs for each packet with data than this, and the way back is taken to be the reason.
const FEW_ACKS: f64 = 1.0 / 6.0;
/// Larger captures are not read.
const LARGEST: u64 = 4 << 30;

/// What was found out, and how.
#[derive(Debug, Default)]
pub struct Estimate {
    /// The largest rate that was seen.
    pub rate: Option<(Rate, String)>,
    /// Rate of the ACKs, if they are few.
    pub rate_back: Option<(Rate, String)>,
    /// Delay of the whole path one way.
    pub delay: Option<(Span, String)>,
    /// Share of the packets lost.
    pub loss: Option<(Probability, String)>,
    /// Mean number of packets lost in a row.
    pub burst: Option<(f64, String)>,
    /// The sender's TCP, as far as it shows.
    pub sender: Option<(String, String)>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What the largest transfer of a capture tells.
pub fn of_capture(path: &Path) -> Result<Estimate, Failure> {
    let help =
        "give a capture that was taken at the sender, as `tcpdump -s 128 -w FILE tcp` writes it";
    let size = std::fs::metadata(path).map_err(|error| Failure::file(path, error, help))?.len();
    if size > LARGEST {
        let help = "cut the capture: editcap -c 1000000 FILE PARTS";
        return Err(Failure::input(format!("{}: more than 4 GiB", path.display()), help));
    }
    let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error, help))?;
    let analysis = analyze_capture(&bytes, Config::default())
        .map_err(|error| Failure::input(format!("{}: {error}", path.display()), help))?;
    let capture = Capture { file: path.display().to_string(), analysis };
    let transfers = capture.transfers();
    let Some(transfer) = transfers.first() else {
        let what = match capture.analysis.tcp_packets {
            0 => "no TCP in it".to_owned(),
            n => format!("{n} packets of TCP, and none with data"),
        };
        return Err(Failure::input(format!("{}: {what}", path.display()), help));
    };
    let (data, back) = (transfer.data, transfer.back);
    let rtt = transfer
        .connection
        .handshake_rtt
        .map(Span::as_secs_f64)
        .into_iter()
        .chain(data.rtt.map(|rtt| rtt.min))
        .fold(f64::INFINITY, f64::min);
    if !rtt.is_finite() {
        return Err(Failure::input(
            format!("{}: {} has no round trip to measure", path.display(), transfer.title()),
            "give a capture with both directions of a longer transfer",
        ));
    }
    let mut estimate = Estimate {
        delay: Some((Span::from_secs_f64(rtt / 2.0), "half of the shortest round trip".to_owned())),
        rate: rate(data, rtt),
        ..Estimate::default()
    };
    estimate.notes.push(format!(
        "the largest of {} transfers: {}",
        transfers.len(),
        transfer.title()
    ));
    losses(data, &mut estimate);
    let acks = back.packets as f64 / data.data_packets.max(1) as f64;
    let seconds = transfer.seconds();
    if acks < FEW_ACKS && seconds > 0.0 {
        let bits = back.packets as f64 * HEADERS * 8.0 / seconds;
        estimate.rate_back = Rate::from_bps(bits as u64).map(|rate| {
            (
                rate,
                format!(
                    "only one ACK for {:.0} packets came back, and so many bits a second",
                    1.0 / acks
                ),
            )
        });
    }
    let sack = data.sack_permitted && back.sack_permitted;
    let seen = transfer.connection.opening == lasthop_analyze::Opening::Handshake;
    estimate.sender = (seen && !sack)
        .then(|| ("newreno".to_owned(), "the ends did not agree on SACK".to_owned()));
    Ok(estimate)
}

/// The rate that nine tenths of all windows stay below.
fn rate(data: &Direction, rtt: f64) -> Option<(Rate, String)> {
    let window = WINDOW.max(ROUND_TRIPS * rtt);
    let acks: Vec<(f64, f64)> = data
        .points
        .iter()
        .filter(|point| point.kind == PointKind::Ack)
        .map(|point| (point.at.as_secs_f64(), point.offset as f64))
        .collect();
    let mut rates = Vec::new();
    let mut first = 0;
    for (i, (at, offset)) in acks.iter().enumerate() {
        while first + 1 < i && at - acks[first + 1].0 >= window {
            first += 1;
        }
        let (from, begun) = acks[first];
        if at - from >= window {
            rates.push((offset - begun) / (at - from));
        }
    }
    let payload = data.bytes as f64 / data.data_packets.max(1) as f64;
    let whole = (payload + HEADERS) / payload.max(1.0);
    let overall = data.throughput.map(|bits| bits / 8.0);
    let bytes = quantile(&rates, 0.9).or(overall)?;
    let rate = Rate::from_bps((bytes * whole * 8.0) as u64)?;
    let how = format!(
        "acknowledged in the best windows of {:.1} s; what a sender does not fill does not show, so it may be more",
        window
    );
    Some((rate, how))
}

/// Losses, and how they come.
fn losses(data: &Direction, estimate: &mut Estimate) {
    let lost = data.losses.len() as u64 + data.losses_omitted;
    let share = lost as f64 / data.data_packets.max(1) as f64;
    if data.verdict.cause == Cause::Queue {
        let how = format!("{lost} losses, but a full queue's: {}", data.verdict.evidence);
        estimate.loss = Some((Probability::ZERO, how));
        estimate.notes.push(
            "the losses came when the queue was full; repairing them over the link would only fill it again"
                .to_owned(),
        );
        return;
    }
    let Some(p) = Probability::new(share) else { return };
    estimate.loss = Some((p, format!("{lost} losses of {} packets with data", data.data_packets)));
    let mut ordered: Vec<(i64, i64)> =
        data.losses.iter().map(|loss| (loss.offset, loss.offset + i64::from(loss.len))).collect();
    ordered.sort_unstable();
    ordered.dedup();
    let runs = 1 + ordered.windows(2).filter(|pair| pair[0].1 < pair[1].0).count();
    if !ordered.is_empty() {
        let mean = ordered.len() as f64 / runs as f64;
        estimate.burst = Some((mean, format!("{} lost segments in {runs} runs", ordered.len())));
    }
}

/// What a running station tells.
#[cfg(target_os = "linux")]
pub fn of_station(socket: &Path) -> Result<Estimate, Failure> {
    use lasthop_live::control::client::Client;
    use lasthop_live::control::protocol::{Answer, Request};
    let wrong = |error| {
        Failure::file(
            socket,
            error,
            "give the control socket of a running station, as `lasthop ctl --socket` takes it",
        )
    };
    let answer = Client::connect(socket)
        .and_then(|mut client| client.ask(&Request::Status {}))
        .map_err(wrong)?;
    match answer {
        Answer::Status(status) => of_status(&status),
        _ => Err(Failure::input(
            format!("{}: not a station", socket.display()),
            "a tunnel cannot tell what its path would do without it; give `--rate`, `--delay` and `--loss`",
        )),
    }
}

#[cfg(target_os = "linux")]
fn of_status(status: &lasthop_live::control::protocol::Status) -> Result<Estimate, Failure> {
    use lasthop_proto::event::Cause as Why;
    let stage = |kind: &'static str| status.stages.iter().filter(move |stage| stage.kind == kind);
    // The witness of the hosts on the left sees what they send.
    let sent: u64 = stage("host").take(1).map(|host| host.happened.right.originated.total()).sum();
    let again = stage("host")
        .take(1)
        .map(|host| host.happened.right.originated.total_of(Why::is_host_retransmission));
    let local = stage("agent")
        .map(|agent| agent.happened.right.originated.total_of(Why::is_local_retransmission));
    let repeated: u64 = again.chain(local.clone()).sum();
    if sent == 0 {
        return Err(Failure::input(
            "the station has not looked into any packet yet",
            "a path of `agent = \"none\"` alone passes frames on unread: `lasthop ctl set agent=snoop`, wait for \
             traffic, and ask again",
        ));
    }
    let on_the_way = sent + local.sum::<u64>();
    let mut estimate = Estimate {
        loss: Probability::new(repeated as f64 / on_the_way as f64).map(|p| {
            (p, format!("{repeated} repeated of {on_the_way} sent towards the wireless side"))
        }),
        ..Estimate::default()
    };
    estimate.notes.push(
        "a station counts repetitions, not losses: those of a full queue are among them, and their bursts do not show"
            .to_owned(),
    );
    // A radio in the station's own path imitates one, and its figures are known.
    for radio in stage("radio") {
        let of = |key: &str| radio.config.pointer(key).and_then(serde_json::Value::as_u64);
        if let Some(rate) = of("/radio/rate").and_then(Rate::from_bps) {
            estimate.rate = Some((rate, "the radio of the station's path".to_owned()));
        }
    }
    Ok(estimate)
}
