//! Hops of hosts with a battery.

use crate::error::{Code, Diagnostic, Error, Location};
use crate::model::{Host, HostSide, RadioStage, Stage, StageKind};

/// Hops of hosts with a battery report their frames on the air. A plain radio does not, so it becomes a hop with the
/// ideal medium, which behaves the same.
pub(super) fn give_hops(
    path: &mut [Stage],
    hosts: &[Host],
    batteries: &[Option<Location>],
) -> Result<(), Error> {
    let is_link = |stage: &Stage| stage.kind.is_link();
    for (host, place) in hosts.iter().zip(batteries) {
        let Some(place) = place else { continue };
        let link = match host.side {
            HostSide::Left => path.iter().position(is_link),
            HostSide::Right => path.iter().rposition(is_link),
        };
        let Some(StageKind::Radio(RadioStage { hop, hops, varying, .. })) =
            link.map(|i| &mut path[i].kind)
        else {
            continue;
        };
        if hops.is_some() {
            return Err(Diagnostic::new(Code::BadValue, format!("host.{}.battery", host.name), place)
                .message(format!(
                    "`host.{}.battery`: `half-duplex-hops` does not report when its stations send",
                    host.name
                ))
                .label("not on this hop")
                .help("write another medium access, for example `mac = \"dcf\"`, or leave out the battery")
                .into());
        }
        if varying.is_some() {
            return Err(Diagnostic::new(
                Code::BadValue,
                format!("host.{}.battery", host.name),
                place,
            )
            .message(format!(
                "`host.{}.battery`: its radio varies, and does not report its airtime",
                host.name
            ))
            .label("not on this hop")
            .help("leave out the battery, or the keys by which the radio varies")
            .into());
        }
        hop.get_or_insert_default();
    }
    Ok(())
}

/// A moving host changes its radio, which a battery does not support.
pub(super) fn none_that_moves(hosts: &[Host], batteries: &[Option<Location>]) -> Result<(), Error> {
    let mut moving = hosts.iter().zip(batteries).filter(|(host, _)| host.side == HostSide::Right);
    let Some((host, Some(place))) = moving.find(|(_, place)| place.is_some()) else {
        return Ok(());
    };
    Err(Diagnostic::new(Code::BadValue, format!("host.{}.battery", host.name), place)
        .message(format!("`host.{}.battery`: a host that visits cells has no battery", host.name))
        .label("not with cells")
        .help("leave it out, or write the stages of one cell into `[[path]]`")
        .into())
}
