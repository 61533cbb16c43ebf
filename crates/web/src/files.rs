//! A run as a file.

use lasthop_observe::csv::EventCsv;
use lasthop_observe::pcapng::{CapturePoint, CaptureSink};
use lasthop_proto::machine::StageId;
use lasthop_sim::runs::layout;
use serde::Deserialize;
use serde_json::json;

use crate::envelope::Columns;
use crate::request::{ErrorAnswer, RunRequest};
use crate::rows::MOST_ROWS;
use crate::run::driven;

/// Bytes of each packet's payload in captures, which need mainly the headers.
const PAYLOAD: u32 = 64;

/// The format of a file.
#[derive(Clone, Copy, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// A row for each event.
    Csv,
    /// The packets that each link started to send, a file per link.
    Pcapng,
}

/// Repeats the run and writes the file.
pub(crate) fn file(one: &RunRequest, form: Form) -> Result<Vec<u8>, ErrorAnswer> {
    let (scenario, seed) = one.scenario()?;
    let layout = layout(&scenario);
    let most = MOST_ROWS as u64;
    let wrong = |error: std::io::Error| {
        ErrorAnswer::new(format!("the file cannot be written: {error}"), "choose a shorter run")
    };
    let mut columns = Columns::default();
    let mut names = Vec::new();
    let cut = match form {
        Form::Csv => {
            let mut csv = EventCsv::new(&layout, Vec::new());
            let (_, cut) = driven(&scenario, seed, most, &mut csv);
            columns.bytes("file", &csv.finish().map_err(wrong)?);
            names.push("events.csv".to_owned());
            cut
        }
        Form::Pcapng => {
            let stages = layout.stages.iter().enumerate().map(|(i, stage)| CapturePoint {
                stage: StageId(i as u16),
                name: stage.name.clone(),
                is_link: stage.role.is_link(),
            });
            let stages: Vec<CapturePoint> = stages.collect();
            let mut sink = CaptureSink::new(&stages, PAYLOAD, |_| Ok(Vec::new())).map_err(wrong)?;
            let (_, cut) = driven(&scenario, seed, most, &mut sink);
            for (stage, bytes) in sink.finish().map_err(wrong)?.links {
                let name = stages.get(usize::from(stage.0)).map_or("link", |point| &point.name);
                columns.bytes(&format!("file.{}", names.len()), &bytes);
                names.push(format!("{name}.pcapng"));
            }
            cut
        }
    };
    Ok(columns.envelope(&json!({ "names": names, "cut": cut })))
}
