//! A run as a file to keep.

use lasthop_lab::layout;
use lasthop_proto::machine::StageId;
use lasthop_trace::csv::EventCsv;
use lasthop_trace::pcapng::{CaptureSink, Place};
use serde::Deserialize;
use serde_json::json;

use crate::ask::{Failed, One};
use crate::envelope::Columns;
use crate::run::{MOST_ROWS, driven};

/// Bytes of each packet's body in captures: headers tell the story.
const PAYLOAD: u32 = 64;

/// What is in a file.
#[derive(Clone, Copy, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    /// Every event, a row each.
    Csv,
    /// What each link began to send, a file each.
    Pcapng,
}

/// Makes the run again, and writes it.
pub(crate) fn file(one: &One, form: Form) -> Result<Vec<u8>, Failed> {
    let (scenario, seed) = one.scenario()?;
    let layout = layout(&scenario);
    let most = MOST_ROWS as u64;
    let wrong = |error: std::io::Error| {
        Failed::new(format!("the file cannot be written: {error}"), "choose a shorter run")
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
            let stages = layout.stages.iter().enumerate().map(|(i, stage)| Place {
                stage: StageId(i as u16),
                name: stage.name.clone(),
                is_link: stage.role.is_link(),
            });
            let stages: Vec<Place> = stages.collect();
            let mut sink = CaptureSink::new(&stages, PAYLOAD, |_| Ok(Vec::new())).map_err(wrong)?;
            let (_, cut) = driven(&scenario, seed, most, &mut sink);
            for (stage, bytes) in sink.finish().map_err(wrong)?.links {
                let name = stages.get(usize::from(stage.0)).map_or("link", |place| &place.name);
                columns.bytes(&format!("file.{}", names.len()), &bytes);
                names.push(format!("{name}.pcapng"));
            }
            cut
        }
    };
    Ok(columns.envelope(&json!({ "names": names, "cut": cut })))
}
