//! Frames that a script names are lost or damaged.

use serde::Serialize;

use super::{Descriptor, ErrorModel, Errors, Model, Read};
use crate::describe::{Form, Kind, Need, System, Value};
use crate::fates::{Fate, Script};
use crate::rng::Stream;
use crate::units::{Span, Time};

/// Frames of one direction by their place in the order of transmission: those that are dropped are damaged from the first
/// byte on, those that are damaged in their last byte.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Scripted {
    /// Only [`Fate::Dropped`] and [`Fate::Damaged`].
    pub fates: Script,
}

impl Model for Scripted {
    const WORDS: &'static [Descriptor<Read>] = &[Descriptor {
        word: "scripted",
        system: System::new(
            Kind::Channel,
            "scripted",
            "path: errors-right = { model = \"scripted\", fates = \"5 drop, 7 damage\" }",
            "the frames that a script names are lost, or their last byte is damaged",
            "lasthop explore",
        )
        .tier(0),
        read: |k, _| {
            const EXAMPLE: &str = "\"5 drop, 7 damage\"";
            let doc = "what happens to frames, by their number in this direction: drop or damage; with several stations or hops, \
                        of the first; with an empty text, `lasthop explore` tries fates here";
            let form = Form::Text(EXAMPLE);
            let text = k.value("fates", form, Need::Else("none"), Value::Absent, doc);
            let mut scripted = Scripted::default();
            if let Value::Text(text) = text {
                match Script::parse(&text).filter(|script| script.fates().all(Scripted::is_known)) {
                    Some(script) => scripted.fates = script,
                    None => k.refuse(
                        "fates",
                        format!("`{text}` at `{}` does not list frames and fates", k.path("fates")),
                        "expected numbers and `drop` or `damage`",
                        format!(
                            "number frames from 1, in ascending order, for example `fates = {EXAMPLE}`"
                        ),
                    ),
                }
            }
            ErrorModel::Scripted(scripted).into()
        },
    }];

    fn loses_whole_packets(&self) -> bool {
        true
    }

    type Errors = ScriptedErrors;

    fn errors(&self, _: Stream, _: Option<Stream>) -> ScriptedErrors {
        ScriptedErrors::new(self.fates.clone())
    }
}

impl Scripted {
    /// A channel can do this to a frame.
    pub fn is_known(fate: Fate) -> bool {
        matches!(fate, Fate::Dropped | Fate::Damaged)
    }
}

/// Start times are stored of so many frames, enough for any search.
const STARTS: usize = 4096;

/// Errors by a script, and which frames it has decided about.
#[derive(Clone, Debug)]
pub struct ScriptedErrors {
    script: Script,
    frames: u64,
    /// Of the first frames.
    starts: Vec<Time>,
}

impl ScriptedErrors {
    /// Errors by `script`, before the first frame.
    pub fn new(script: Script) -> ScriptedErrors {
        ScriptedErrors { script, frames: 0, starts: Vec::new() }
    }

    /// Frames that have passed.
    pub fn decided(&self) -> u64 {
        self.frames
    }

    /// When the frame at `place` began; `None` far behind the first frames.
    pub fn start_of(&self, place: u64) -> Option<Time> {
        self.starts.get(usize::try_from(place).ok()?.checked_sub(1)?).copied()
    }

    /// Decides about the frame at `place`. Other fates than drop and damage have no effect.
    pub fn set(&mut self, place: u64, fate: Fate) {
        self.script.set(place, fate);
    }
}

impl Errors for ScriptedErrors {
    fn pass(&mut self, start: Time, _: Span, bytes: u32) -> Option<u32> {
        self.frames += 1;
        if self.starts.len() < STARTS {
            self.starts.push(start);
        }
        match self.script.at(self.frames) {
            Fate::Dropped => (bytes > 0).then_some(0),
            Fate::Damaged => bytes.checked_sub(1),
            _ => None,
        }
    }

    fn script(&self) -> Option<&ScriptedErrors> {
        Some(self)
    }

    fn script_mut(&mut self) -> Option<&mut ScriptedErrors> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_meet_the_fates_of_their_places() {
        let fates = Script::parse("2 drop, 4 damage, 5 late").unwrap();
        let mut errors = Scripted { fates }.errors(Stream::new(1, "radio"), None);
        errors.set(6, Fate::Dropped);
        let found: Vec<Option<u32>> =
            (1..=7).map(|at| errors.pass(Time(at * 10), Span(1), 100)).collect();
        assert_eq!(found, [None, Some(0), None, Some(99), None, Some(0), None]);
        assert_eq!(errors.decided(), 7);
        assert_eq!(
            [0, 1, 7, 8].map(|place| errors.start_of(place)),
            [None, Some(Time(10)), Some(Time(70)), None]
        );
    }
}
