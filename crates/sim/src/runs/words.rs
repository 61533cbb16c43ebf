//! Describes a plan for `--dry-run` and for reports.

use lasthop_proto::link::LineConfig;
use lasthop_proto::link::tc::By;
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Bytes, Rate};
use lasthop_scenario::model::{Exchange, OnOff, Traffic};
use lasthop_scenario::{HostSide, Plan, Scenario, Stage, StageKind};

/// The path in one line, from left to right. Stages that differ between the cells of the plan are marked.
pub(crate) fn path(plan: &Plan, scenario: &Scenario) -> String {
    let hosts = |side| {
        let those = scenario.hosts.iter().filter(|host| host.side == side);
        let names: Vec<String> = those
            .map(|host| match &host.access {
                None => host.name.clone(),
                Some(access) => format!("{} ({})", host.name, line(access)),
            })
            .collect();
        if names.is_empty() { "no host".to_owned() } else { names.join(", ") }
    };
    let mut parts = vec![hosts(HostSide::Left)];
    parts.extend(stages(plan, &scenario.path, |other| Some(&other.path)));
    if let Some(roaming) = &scenario.roaming {
        let cells = roaming.cells.iter().enumerate().map(|(i, cell)| {
            let path =
                stages(plan, &cell.path, |other| Some(&other.roaming.as_ref()?.cells.get(i)?.path));
            format!("{} ({})", cell.name, path.join(" | "))
        });
        let cells: Vec<String> = cells.collect();
        parts.push(cells.join(" or "));
    }
    parts.push(hosts(HostSide::Right));
    parts.join(" | ")
}

/// The stages of `path`. `other` selects the corresponding path of another cell: a stage that differs there is marked.
fn stages(
    plan: &Plan,
    path: &[Stage],
    other: impl Fn(&Scenario) -> Option<&Vec<Stage>>,
) -> Vec<String> {
    let here = path.iter().enumerate().map(|(i, here)| {
        let text = stage(here);
        let there = |scenario| other(scenario).and_then(|path| path.get(i)).map(stage);
        let same = plan.cells.iter().all(|cell| there(&cell.scenario).as_ref() == Some(&text));
        if same { text } else { format!("{}: varies", here.name) }
    });
    here.collect()
}

fn line(line: &LineConfig) -> String {
    let rate = |rate: Option<Rate>| rate.map_or("any rate".to_owned(), |rate| rate.to_string());
    if line.rate_right == line.rate_left {
        format!("{} {}", rate(line.rate_right), line.delay)
    } else {
        format!("{} right, {} left", rate(line.rate_right), rate(line.rate_left))
    }
}

fn stage(stage: &Stage) -> String {
    let description = match &stage.kind {
        StageKind::Link(config) => line(config),
        StageKind::Serial(serial) => {
            let how = if serial.compression.is_some() { ", short headers" } else { "" };
            format!("{}{how}", line(&serial.line))
        }
        StageKind::Varied(varied) => {
            let rates = [Side::Right, Side::Left].map(|side| varied.mean_rate(side));
            let [rate_right, rate_left] = rates;
            let line = line(&LineConfig { rate_right, rate_left, ..varied.line.clone() });
            let varies = if varied.varies() { ", varies" } else { "" };
            let impaired = if varied.impairments.is_some() { ", impaired" } else { "" };
            format!("{line}{varies}{impaired}")
        }
        StageKind::Agent(agent) => agent.plan(),
        StageKind::Radio(radio) => {
            let duplex = if radio.radio.half_duplex { "half" } else { "full" };
            let varies = if radio.varying.is_some() { ", varies" } else { "" };
            format!("{} {} {duplex} duplex{varies}", radio.radio.rate, radio.radio.delay)
        }
        StageKind::Cross(cross) => format!("loses {}%", cross.loss.get() * 100.0),
        StageKind::Netem(netem) => format!("{}, netem", line(&netem.line)),
        StageKind::Tbf(tbf) => format!("{}, bursts of {}", tbf.rate, Bytes(tbf.burst.into())),
        StageKind::Police(police) => match police.by {
            By::Bytes { rate, burst } => {
                format!("drops beyond {rate}, bursts of {}", Bytes(burst.into()))
            }
            By::Packets { rate, burst } => {
                format!("drops beyond {rate} packets/s, bursts of {burst}")
            }
        },
    };
    format!("{}: {description}", stage.name)
}

/// The transfers, one line each.
pub(crate) fn transfers(scenario: &Scenario) -> Vec<String> {
    scenario
        .transfers
        .iter()
        .map(|transfer| {
            let (from, to) = (&scenario.hosts[transfer.from], &scenario.hosts[transfer.to]);
            let bytes = match (transfer.traffic, transfer.bytes) {
                (Traffic::Bulk, Some(bytes)) => format!("{} bytes", bytes.0),
                (Traffic::Bulk, None) => "without end".to_owned(),
                (Traffic::OnOff(OnOff { on, off }), _) => {
                    format!("on for {}, off for {}", on.mean, off.mean)
                }
                (Traffic::Exchange(exchange), _) => {
                    let Exchange { request, response, .. } = exchange;
                    let each =
                        if exchange.persistent { "one connection" } else { "a connection each" };
                    format!("requests of {} bytes for {} bytes, {each}", request.0, response.0)
                }
                (Traffic::Page(page), _) => match page.connections {
                    1 => "pages over one connection".to_owned(),
                    most => format!("pages over {most} connections"),
                },
                (Traffic::Video(video), _) => {
                    format!("video of {} segments of {}", video.segments, video.segment)
                }
                (Traffic::Udp(udp), _) => {
                    format!("datagrams of {} bytes at {}", udp.size, udp.rate)
                }
                (Traffic::Web(web), _) => {
                    let (size, think) = (web.size.mean().round(), web.think);
                    format!("{} sessions of {size} bytes after {think}", web.sessions)
                }
            };
            let bytes = match transfer.quic {
                Some(_) => format!("{bytes} by QUIC"),
                None => bytes,
            };
            let cross = if transfer.cross { "cross traffic, " } else { "" };
            let stop = transfer.stop.map_or(String::new(), |stop| format!(", until {stop}"));
            let count = match transfer.count {
                1 => String::new(),
                count => format!("{count} times "),
            };
            format!("{} -> {}: {cross}{count}{bytes}{stop}", from.name, to.name)
        })
        .collect()
}
