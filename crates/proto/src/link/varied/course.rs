//! A value over time: in steps or along ramps, once or periodically.
//!
//! It is written from left to right: `0s 10mbit, 5s 2mbit, 8s to 6mbit, 10s again` is 10 Mbit/s until the
//! fifth second, then 2 Mbit/s, rising to 6 Mbit/s at the eighth, with a period of ten seconds.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::units::{Probability, Rate, Span, Time};

/// Limit of points of a course.
const MOST: usize = 1_000_000;
/// Minimum period.
const SHORTEST: Span = Span::millis(1);

/// A value that may vary.
pub trait Level: Copy + PartialEq {
    /// An example of its notation.
    const EXAMPLE: &'static str;
    /// Parses a value. The error message describes the problem.
    ///
    /// # Errors
    /// If it is invalid.
    fn read(word: &str) -> Result<Self, String>;
    /// The value as a number, for ramps.
    fn number(self) -> f64;
    /// The inverse of [`Level::number`].
    fn of(number: f64) -> Self;
}

impl Level for Option<Rate> {
    const EXAMPLE: &'static str = "10mbit";
    fn read(word: &str) -> Result<Option<Rate>, String> {
        let unit = word.trim().trim_start_matches(['0', '.']).trim_start();
        if word.trim().starts_with('0') && ["", "bit", "kbit", "mbit", "gbit"].contains(&unit) {
            return Ok(None);
        }
        word.parse().map(Some).map_err(|error: crate::units::UnitError| error.to_string())
    }
    fn number(self) -> f64 {
        self.map_or(0.0, |rate| rate.bps() as f64)
    }
    fn of(number: f64) -> Option<Rate> {
        Rate::from_bps(number as u64)
    }
}

impl Level for Span {
    const EXAMPLE: &'static str = "20ms";
    fn read(word: &str) -> Result<Span, String> {
        let span: Span =
            word.parse().map_err(|error: crate::units::UnitError| error.to_string())?;
        if span > Span::secs(1000) { Err(format!("`{word}` is more than 1000s")) } else { Ok(span) }
    }
    fn number(self) -> f64 {
        self.0 as f64
    }
    fn of(number: f64) -> Span {
        Span(number as u64)
    }
}

impl Level for Probability {
    const EXAMPLE: &'static str = "1%";
    fn read(word: &str) -> Result<Probability, String> {
        word.parse().map_err(|error: crate::units::UnitError| error.to_string())
    }
    fn number(self) -> f64 {
        self.get()
    }
    fn of(number: f64) -> Probability {
        Probability::nearest(number)
    }
}

impl Level for bool {
    const EXAMPLE: &'static str = "out";
    fn read(word: &str) -> Result<bool, String> {
        Err(format!("`{word}` is no outage"))
    }
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn of(number: f64) -> bool {
        number >= 1.0
    }
}

/// A point of a course.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct Point<T> {
    at: Span,
    value: T,
    /// Whether the previous value changes linearly to this one until then.
    ramp: bool,
}

/// A value over time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Course<T> {
    /// Ordered by time; the first one is at zero.
    #[serde(serialize_with = "points", bound(serialize = "T: Serialize"))]
    points: Arc<[Point<T>]>,
    /// Period, longer than the time of the last point.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<Span>,
}

fn points<T: Serialize, S: Serializer>(points: &Arc<[Point<T>]>, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(points.iter())
}

/// An error in a course.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The line of a file, from 1.
    pub line: Option<usize>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl Wrong {
    /// The error in this line; 0 is the whole file.
    pub(super) fn at(line: usize, message: impl Into<String>, help: impl Into<String>) -> Wrong {
        Wrong { line: (line > 0).then_some(line), message: message.into(), help: help.into() }
    }
}

/// A part of a course with constant slope.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch<T> {
    /// The value at the requested time.
    pub value: T,
    /// Change per nanosecond.
    pub slope: f64,
    /// End of the part.
    pub until: Time,
}

impl<T: Level> Course<T> {
    /// Parses a course in the notation of a scenario.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(text: &str) -> Result<Course<T>, Wrong> {
        let mut builder = Builder::default();
        for item in text.split([',', ';', '\n']).map(str::trim).filter(|item| !item.is_empty()) {
            let (at, value) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
            builder.item(at, value.trim()).map_err(|message| wrong::<T>(None, message))?;
        }
        builder.finish().map_err(|message| wrong::<T>(None, message))
    }

    /// The value at `now`.
    pub fn at(&self, now: Time) -> T {
        self.stretch(now).value
    }

    /// The part of the course from `now` on.
    pub fn stretch(&self, now: Time) -> Stretch<T> {
        let local = match self.period {
            Some(period) => Span(now.0 % period.0),
            None => Span(now.0),
        };
        let next = self.points.partition_point(|point| point.at <= local);
        let here = self.points[next - 1];
        let end = self.points.get(next).map(|point| point.at).or(self.period);
        let until = end.map_or(Time::NEVER, |end| now + Span(end.0 - local.0));
        match self.points.get(next).filter(|point| point.ramp) {
            None => Stretch { value: here.value, slope: 0.0, until },
            Some(to) => {
                let (from, long) = (here.value.number(), (to.at.0 - here.at.0) as f64);
                let slope = (to.value.number() - from) / long;
                let value = T::of(from + slope * (local.0 - here.at.0) as f64);
                Stretch { value, slope, until }
            }
        }
    }

    /// The mean over a period; without one, up to the last point; of a single point its value.
    pub fn mean(&self) -> f64 {
        let last = self.points[self.points.len() - 1];
        let end = self.period.unwrap_or(last.at);
        if end == Span::ZERO {
            return last.value.number();
        }
        let ends = self.points.iter().skip(1).map(|to| (to.at, to.ramp.then_some(to.value)));
        let area = self.points.iter().zip(ends.chain([(end, None)])).map(|(from, (until, to))| {
            let value = from.value.number();
            let mean = to.map_or(value, |to| (value + to.number()) / 2.0);
            mean * until.saturating_sub(from.at).0 as f64
        });
        area.sum::<f64>() / end.0 as f64
    }

    /// Period.
    pub fn period(&self) -> Option<Span> {
        self.period
    }

    /// Its points: time, value, and whether the previous value changes linearly to it.
    pub fn points(&self) -> impl Iterator<Item = (Span, T, bool)> + '_ {
        self.points.iter().map(|point| (point.at, point.value, point.ramp))
    }

    /// The course of steps with these values, with the given `period`.
    ///
    /// # Errors
    /// If the times do not ascend from zero, or the period is too short.
    pub fn steps(
        steps: impl IntoIterator<Item = (Span, T)>,
        period: Option<Span>,
    ) -> Result<Course<T>, Wrong> {
        Course::ramps(steps.into_iter().map(|(at, value)| (at, value, false)), period)
    }

    /// The course of these times and values, each with whether the previous value changes linearly to it.
    ///
    /// # Errors
    /// If the times do not ascend from zero, or the period is too short.
    pub fn ramps(
        points: impl IntoIterator<Item = (Span, T, bool)>,
        period: Option<Span>,
    ) -> Result<Course<T>, Wrong> {
        let points = points.into_iter().map(|(at, value, ramp)| Point { at, value, ramp });
        let mut builder = Builder { points: Vec::new(), period: None };
        points
            .into_iter()
            .try_for_each(|point| builder.push(point))
            .map_err(|m| wrong::<T>(None, m))?;
        builder.period = period;
        builder.finish().map_err(|message| wrong::<T>(None, message))
    }
}

impl Course<bool> {
    /// Parses times such as `4s-4.5s, 9s-9.2s, 10s again`: true within them.
    ///
    /// # Errors
    /// The first error.
    pub fn parse_outages(text: &str) -> Result<Course<bool>, Wrong> {
        let help = "for example `4s-4.5s, 9s-9.2s`, or `4s-4.5s, 10s again`";
        let wrong = |message: String| Wrong { line: None, message, help: help.to_owned() };
        let span =
            |word: &str| word.trim().parse::<Span>().map_err(|error| wrong(error.to_string()));
        let (mut steps, mut period) = (Vec::new(), None);
        for item in text.split([',', ';', '\n']).map(str::trim).filter(|item| !item.is_empty()) {
            if period.is_some() {
                return Err(wrong(format!("`{item}` comes after `again`")));
            }
            if let Some(at) = item.strip_suffix("again") {
                period = Some(span(at)?);
                continue;
            }
            let Some((from, to)) = item.split_once('-') else {
                return Err(wrong(format!("`{item}` is no outage")));
            };
            let (from, to) = (span(from)?, span(to)?);
            if steps.last().is_some_and(|(at, _)| *at >= from) || to <= from {
                return Err(wrong(format!("`{item}` does not come after the outage before it")));
            }
            steps.extend([(from, true), (to, false)]);
        }
        if steps.is_empty() {
            return Err(wrong("there is no outage".to_owned()));
        }
        // A time that lasts to the end of the period ends at its restart.
        steps.pop_if(|(end, _)| period == Some(*end));
        if steps[0].0 > Span::ZERO {
            steps.insert(0, (Span::ZERO, false));
        }
        Course::steps(steps, period).map_err(|error| Wrong { help: help.to_owned(), ..error })
    }
}

fn wrong<T: Level>(line: Option<usize>, message: String) -> Wrong {
    let value = T::EXAMPLE;
    let help = format!(
        "times and values from left to right, for example `0s {value}, 5s {value}, 10s again`"
    );
    Wrong { line, message, help }
}

/// A course under construction.
struct Builder<T> {
    points: Vec<Point<T>>,
    period: Option<Span>,
}

impl<T> Default for Builder<T> {
    fn default() -> Builder<T> {
        Builder { points: Vec::new(), period: None }
    }
}

impl<T: Level> Builder<T> {
    fn item(&mut self, at: &str, value: &str) -> Result<(), String> {
        self.point(at.parse().map_err(|e: crate::units::UnitError| e.to_string())?, value)
    }

    fn point(&mut self, at: Span, value: &str) -> Result<(), String> {
        if value == "again" {
            if self.period.is_some() {
                return Err("`again` is given twice".to_owned());
            }
            self.period = Some(at);
            return Ok(());
        }
        let (ramp, word) = match value.strip_prefix("to ") {
            Some(word) => (true, word.trim()),
            None => (false, value),
        };
        if word.is_empty() {
            return Err(format!("no value at {at}"));
        }
        self.push(Point { at, value: T::read(word)?, ramp })
    }

    fn push(&mut self, point: Point<T>) -> Result<(), String> {
        let at = point.at;
        if self.period.is_some() {
            return Err(format!("the value at {at} comes after `again`"));
        }
        match self.points.last() {
            None if at > Span::ZERO => {
                return Err(format!("it begins at {at} and has no value at 0s"));
            }
            None if point.ramp => return Err("there is nothing before the first `to`".to_owned()),
            Some(last) if last.at >= at => {
                return Err(format!("{at} does not come after {}", last.at));
            }
            _ if self.points.len() == MOST => {
                return Err(format!("it has more than {MOST} points"));
            }
            _ => {}
        }
        self.points.push(point);
        Ok(())
    }

    fn finish(self) -> Result<Course<T>, String> {
        let Some(last) = self.points.last() else { return Err("it is empty".to_owned()) };
        if let Some(period) = self.period
            && (period <= last.at || period < SHORTEST)
        {
            return Err(format!(
                "it begins again at {period}, which is not later than its last point and {SHORTEST}"
            ));
        }
        Ok(Course { points: self.points.into(), period: self.period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rates = Course<Option<Rate>>;

    fn mbit(course: &Rates, ms: u64) -> f64 {
        course.at(Time(ms * 1_000_000)).number() / 1e6
    }

    #[test]
    fn a_course_is_parsed_from_left_to_right() {
        let course = Rates::parse("0s 10mbit, 5s 2mbit, 8s to 6mbit, 10s again").unwrap();
        let levels = [0, 4999, 5000, 6500, 8000, 9999, 10_000, 15_000].map(|ms| mbit(&course, ms));
        assert_eq!(levels, [10.0, 10.0, 2.0, 4.0, 6.0, 6.0, 10.0, 2.0]);
        assert_eq!(course.stretch(Time(11_000_000_000)).until, Time(15_000_000_000));
        assert_eq!(course.mean(), (10.0 * 5.0 + 4.0 * 3.0 + 6.0 * 2.0) * 1e5);
    }

    #[test]
    fn invalid_courses_are_refused() {
        for text in [
            "5s 1mbit",
            "0s to 1mbit",
            "0s 1mbit, 0s again",
            "0s 1mbit, 1s again, 2s 1mbit",
            "0s",
            "0s 1",
        ] {
            assert!(Rates::parse(text).is_err(), "{text}");
        }
        for text in ["", "4s", "5s-4s", "1s-2s, 2s-3s", "1s-3s, 2s again", "1s-2s, 3s again, 4s-5s"]
        {
            assert!(Course::parse_outages(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_outage_course_is_true_within_each_outage() {
        let course = Course::parse_outages("0s-1s, 4s-4.5s, 10s again").unwrap();
        let levels =
            [0, 1000, 4000, 4500, 10_000, 14_499].map(|ms| course.at(Time(ms * 1_000_000)));
        assert_eq!(levels, [true, false, true, false, true, true]);
        let until_the_end = Course::parse_outages("8s-10s, 10s again").unwrap();
        assert_eq!(
            [7, 8, 9, 10, 18].map(|s| until_the_end.at(Time(s * 1_000_000_000))),
            [false, true, true, false, true]
        );
    }
}
