//! The tables of a battery study.

use lasthop_report::model::{Column, Table};
use lasthop_report::number::{short, summary};

use super::{Kind, Lifetimes, Over, Radio, Session};

/// Assumptions for every radio.
const FOR_ALL: &str = "all: one joule of the battery is one for the radio (no regulator, no cold, no cut-off voltage, no \
                       capacity lost at peaks); sensors and processor but as `--base`; failures and their repair";
const CELLULAR: &str = "LTE-M, NB-IoT: attaching, tracking area updates of their own, changes of cells, a network that \
                        grants other timers than requested; repetitions but as a lower rate (nb-iot-edge)";
const LORA: &str = "LoRa: joining, confirmed frames, downlinks, adaptive data rate, collisions; CoAP, MQTT and TLS do not \
                    apply: LoRaWAN encrypts by itself and a server speaks for the device";
const WIFI: &str = "Wi-Fi: associating again after a loss, ARP and DHCP, broadcasts, frames retransmitted, contention";
const BLE: &str = "BLE: advertising and connecting, damaged packets, the gateway; CoAP, MQTT and TLS do not apply: reports \
                   are notifications over a link that is encrypted by itself";
const COAP: &str = "CoAP and DTLS: a server that takes time to answer; the timers of RFC 7252 and RFC 7925 run over the \
                    path of the scenario `nb-iot`, with its rates or those of the radio";
const MQTT: &str = "MQTT and TLS: keep-alives, and gateways that forget open connections (`--session kept`); TCP is that of \
                    the simulator over the scenario `nb-iot`, with its rates or those of the radio";
const KEYS: &str = "TLS and DTLS: certificate chains (1 to 3 kB more in `full`), and what a processor draws for signatures";

/// Effects that are not modelled for `radios`.
pub(super) fn not_modelled(radios: &[Radio]) -> Vec<&'static str> {
    let family = |radio: &Radio| match radio.0 {
        Kind::Cellular(..) => CELLULAR,
        Kind::Lora(_) => LORA,
        Kind::Wifi(..) => WIFI,
        Kind::Ble(_) => BLE,
    };
    let mut all = vec![FOR_ALL];
    for line in radios.iter().map(family) {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// Assumptions, one per line.
pub fn assumed(answer: &Lifetimes) -> &[String] {
    &answer.assumed
}

/// Effects that are not modelled, one per line.
pub fn left_out(answer: &Lifetimes) -> Vec<&'static str> {
    let mut all = answer.not_modelled.clone();
    if answer.radios.iter().any(|life| life.report_s.is_some()) {
        all.push(match answer.over {
            Over::Coap => COAP,
            Over::Mqtt => MQTT,
        });
        if matches!(answer.session, Session::Full | Session::Resumed) {
            all.push(KEYS);
        }
    }
    all
}

/// Battery life by radio.
pub fn lifetimes(answer: &Lifetimes) -> Table {
    let columns = Column::list("<radio | days | years | mJ a report | <mostly | report takes, s");
    let rows = answer.radios.iter().map(|life| {
        let share = life.parts.iter().find(|share| share.part == life.mostly);
        let percent = share.map_or(0.0, |s| s.joules.mean / life.joules.mean * 100.0);
        vec![
            life.radio.to_owned(),
            format!("{:.0}", life.days.mean),
            format!("{:.1}", life.days.mean / 365.25),
            summary(&life.joules.in_units_of(1e-3)),
            format!("{} {percent:.0} %", life.mostly),
            life.report_s.as_ref().map_or("–".to_owned(), summary),
        ]
    });
    Table::new(columns, rows)
}

/// Energy per report interval by use.
pub fn parts(answer: &Lifetimes) -> Table {
    let mut columns = vec![Column::text("radio")];
    let first = answer.radios.first();
    columns.extend(first.into_iter().flat_map(|life| &life.parts).map(|s| Column::number(s.part)));
    let rows = answer.radios.iter().map(|life| {
        let mut cells = vec![life.radio.to_owned()];
        cells.extend(life.parts.iter().map(|share| short(share.joules.mean * 1e3)));
        cells
    });
    Table::new(columns, rows)
}

/// Reasons against this report rate, one per line.
pub fn remarks(answer: &Lifetimes) -> Vec<String> {
    let of = |life: &super::Lifetime| {
        let radio = life.radio;
        life.limits.iter().map(move |limit| format!("{radio}: {limit}")).collect::<Vec<_>>()
    };
    answer.radios.iter().flat_map(of).collect()
}
