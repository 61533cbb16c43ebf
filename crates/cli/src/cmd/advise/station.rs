//! The link of a running station.

use std::path::Path;

use lasthop_live::control::client::Client;
use lasthop_live::control::protocol::{Request, Response, Status};
use lasthop_proto::event::Cause;
use lasthop_proto::units::{Probability, Rate};
use lasthop_study::advise::Estimate;

use crate::failure::Failure;

/// The link that a running station reports.
pub fn ask(socket: &Path) -> Result<Estimate, Failure> {
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
        Response::Status(status) => of_status(&status),
        _ => Err(Failure::input(
            format!("{}: not a station", socket.display()),
            "a tunnel cannot measure its path without its own repairs; give `--rate`, `--delay` and `--loss`",
        )),
    }
}

fn of_status(status: &Status) -> Result<Estimate, Failure> {
    let stage = |kind: &'static str| status.stages.iter().filter(move |stage| stage.kind == kind);
    // The witness of the left hosts counts their packets.
    let sent: u64 = stage("host").take(1).map(|host| host.happened.right.originated.total()).sum();
    let again = stage("host")
        .take(1)
        .map(|host| host.happened.right.originated.total_of(Cause::is_host_retransmission));
    let local = stage("agent")
        .map(|agent| agent.happened.right.originated.total_of(Cause::is_local_retransmission));
    let repeated: u64 = again.chain(local.clone()).sum();
    if sent == 0 {
        return Err(Failure::input(
            "the station has not examined any packet yet",
            "a path of `agent = \"none\"` alone forwards frames without reading them: `lasthop ctl set \
             agent=snoop-smart`, wait for traffic, and repeat the command",
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
        "a station counts retransmissions, not losses: they include losses of a full queue, and do not show bursts"
            .to_owned(),
    );
    // A radio in the station's path is simulated, with known parameters.
    for radio in stage("radio") {
        let of = |key: &str| radio.config.pointer(key).and_then(serde_json::Value::as_u64);
        if let Some(rate) = of("/radio/rate").and_then(Rate::from_bps) {
            estimate.rate = Some((rate, "the radio of the station's path".to_owned()));
        }
    }
    Ok(estimate)
}
