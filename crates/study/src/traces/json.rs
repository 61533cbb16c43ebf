//! Measurements in JSON: the traces of AlphaRTC, and results of `irtt client -o`.
//!
//! AlphaRTC's `trace_pattern` has steps with a `duration` in milliseconds, a `capacity` in kbit/s, and optionally
//! `rtt` in milliseconds and `loss`. `jitter` is not used. irtt writes the times of its packets in nanoseconds.

use lasthop_proto::link::varied::Course;
use lasthop_proto::link::varied::measured::{Hints, Measured};
use lasthop_proto::units::{Probability, Rate, Span};
use serde_json::Value;

use super::wrong;
use crate::Error;

/// Maximum number of steps or packets.
const MOST: usize = 1_000_000;

/// Reads a measurement; `None` if it is none of these.
///
/// # Errors
///
/// The fault.
pub fn read(value: &Value, hints: &Hints) -> Result<Option<Measured>, Error> {
    if let Some(trips) = value["round_trips"].as_array() {
        return irtt(trips).map(Some);
    }
    let pattern = |way: &str| value[way]["trace_pattern"].as_array().filter(|p| !p.is_empty());
    let (way, steps) = match (pattern("downlink"), pattern("uplink"), hints.down) {
        (Some(down), _, None | Some(true)) => ("downlink", down),
        (None, Some(up), None) | (_, Some(up), Some(false)) => ("uplink", up),
        (Some(_), None, Some(false)) | (None, Some(_), Some(true)) => {
            return Err(wrong("it has the other direction alone", "leave out `--direction`"));
        }
        (None, None, _) => return Ok(None),
    };
    alphartc(way, steps).map(Some)
}

fn alphartc(way: &str, steps: &[Value]) -> Result<Measured, Error> {
    let help = "each step of `trace_pattern` has a `duration` in ms and a `capacity` in kbit/s";
    if steps.len() > MOST {
        return Err(wrong(format!("more than {MOST} steps"), "cut the pattern"));
    }
    let (mut rates, mut delays, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut jitter) = (Span::ZERO, false);
    for (i, step) in steps.iter().enumerate() {
        let number = |key: &str| step[key].as_f64().filter(|n| n.is_finite() && *n >= 0.0);
        let needed = |key: &str| {
            number(key).ok_or_else(|| wrong(format!("step {} has no `{key}`", i + 1), help))
        };
        rates.push((at, Rate::from_bps(libm::round(needed("capacity")? * 1e3) as u64)));
        if let Some(rtt) = number("rtt") {
            delays.push((at, Span::from_secs_f64(rtt / 2e3)));
        }
        if let Some(loss) = number("loss") {
            let loss = Probability::new(if loss > 1.0 { loss / 100.0 } else { loss });
            let loss =
                loss.ok_or_else(|| wrong(format!("step {} has no valid `loss`", i + 1), help))?;
            losses.push((at, loss));
        }
        jitter |= number("jitter").is_some_and(|jitter| jitter > 0.0);
        at = at + Span::from_secs_f64(needed("duration")? / 1e3);
    }
    let mut understood = vec![
        format!("AlphaRTC trace: {way}, {} steps over {:.3} s", steps.len(), at.as_secs_f64()),
        "rates: `capacity` in kbit/s; delays: half of `rtt` in ms".to_owned(),
    ];
    if jitter {
        understood.push("not used: jitter (`jitter` of a link adds it)".to_owned());
    }
    Ok(Measured {
        rate: course(rates)?,
        back: None,
        delays: course(delays)?,
        losses: course(losses)?,
        end: at,
        understood,
    })
}

/// The course of these steps; a value that is missing at first holds from the beginning.
fn course<T: lasthop_proto::link::varied::Level>(
    mut steps: Vec<(Span, T)>,
) -> Result<Option<Course<T>>, Error> {
    let Some(first) = steps.first_mut() else { return Ok(None) };
    first.0 = Span::ZERO;
    let course = Course::steps(steps, None);
    course.map(Some).map_err(|error| wrong(error.message, "each step lasts for some time"))
}

fn irtt(trips: &[Value]) -> Result<Measured, Error> {
    let help = "give a file of `irtt client -o FILE`";
    if trips.len() > MOST {
        return Err(wrong(format!("more than {MOST} round trips"), "cut the list"));
    }
    let sent = |trip: &Value| {
        let send = &trip["timestamps"]["client"]["send"];
        ["wall", "monotonic"].iter().find_map(|clock| send[clock].as_u64())
    };
    let begin = trips.first().and_then(sent);
    let begin = begin.ok_or_else(|| wrong("its round trips have no times of sending", help))?;
    let (mut delays, mut end, mut lost): (Vec<(Span, Span)>, _, _) = (Vec::new(), Span::ZERO, 0);
    for trip in trips {
        let at = Span(sent(trip).unwrap_or(begin).saturating_sub(begin));
        end = end.max(at);
        match trip["delay"]["rtt"].as_u64() {
            Some(rtt) if delays.last().is_none_or(|(last, _)| *last < at) => {
                delays.push((at, Span(rtt / 2)));
            }
            Some(_) => {}
            None => lost += 1,
        }
    }
    if delays.is_empty() {
        return Err(wrong("no round trip has a delay", help));
    }
    let step = end / (trips.len().max(2) as u64 - 1);
    let text =
        format!("irtt: half of {} round-trip times are delays, {lost} packets lost", delays.len());
    let delays = course(delays)?;
    let understood = vec![text];
    Ok(Measured { rate: None, back: None, delays, losses: None, end: end + step, understood })
}

#[cfg(test)]
mod tests {
    use lasthop_proto::units::Time;

    use super::*;

    fn measured(text: &str) -> Measured {
        let value: Value = serde_json::from_str(text).unwrap();
        read(&value, &Hints::default()).unwrap().unwrap()
    }

    #[test]
    fn steps_of_alphartc_have_rates_delays_and_losses() {
        let found = measured(
            r#"{"type":"video","downlink":{},"uplink":{"trace_pattern":[
                {"duration":60000,"capacity":300,"loss":0,"rtt":50,"jitter":0},
                {"duration":30000,"capacity":500,"loss":0.01,"rtt":80,"jitter":2}]}}"#,
        );
        let (before, after) = (Time::ZERO, Time::ZERO + Span::secs(60));
        let rate = found.rate.as_ref().unwrap();
        assert_eq!([before, after].map(|at| rate.at(at).unwrap().bps()), [300_000, 500_000]);
        let delays = found.delays.as_ref().unwrap();
        assert_eq!([before, after].map(|at| delays.at(at)), [25, 40].map(Span::millis));
        assert_eq!(found.losses.as_ref().unwrap().at(after).get(), 0.01);
        assert_eq!(found.end, Span::secs(90));
        assert!(found.understood.join(" ").contains("not used: jitter"));
    }

    #[test]
    fn results_of_irtt_are_delays() {
        let found = measured(
            r#"{"round_trips":[
                {"timestamps":{"client":{"send":{"wall":1000000000}}},"delay":{"rtt":20000000}},
                {"timestamps":{"client":{"send":{"wall":1200000000}}},"delay":{}},
                {"timestamps":{"client":{"send":{"wall":1400000000}}},"delay":{"rtt":40000000}}]}"#,
        );
        let delays = found.delays.as_ref().unwrap();
        let at = [0, 399, 400].map(|ms| delays.at(Time::ZERO + Span::millis(ms)));
        assert_eq!(at, [10, 10, 20].map(Span::millis));
        assert_eq!(found.end, Span::millis(600));
    }

    #[test]
    fn wrong_steps_are_refused() {
        for text in [
            r#"{"uplink":{"trace_pattern":[{"duration":10}]}}"#,
            r#"{"uplink":{"trace_pattern":[{"capacity":10}]}}"#,
            r#"{"uplink":{"trace_pattern":[{"duration":0,"capacity":10},{"duration":5,"capacity":10}]}}"#,
            r#"{"round_trips":[{}]}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(read(&value, &Hints::default()).is_err(), "{text}");
        }
    }
}
