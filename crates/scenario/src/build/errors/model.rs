//! The channel model itself, and what its directions share.

use lasthop_proto::channel::{ErrorModel, Fading};
use lasthop_proto::units::{Bytes, Decibels, Frequency, Probability, Rate, Span, Speed};

use crate::error::{Code, Diagnostic, Error};
use crate::model::ErrorSpec;
use crate::read::Reader;
use crate::schema;

/// Reads the keys of the model `word`, on a radio of this rate.
pub(super) fn read(reader: &Reader<'_>, word: &str, rate: Rate) -> Result<ErrorSpec, Error> {
    let distance = Bytes(1)..=Bytes(1 << 50);
    // A mean has no default: it is the one thing that an experiment is about.
    let mean = || {
        reader.required::<Bytes>("mean")?;
        reader.within("mean", Bytes(65_536), distance.clone())
    };
    let model = match word {
        "exponential" => ErrorModel::Exponential(Exponential { mean: mean()? }),
        "bit-errors" => ErrorModel::BitErrors(BitErrors { ber: reader.required("ber")? }),
        "packet-loss" => ErrorModel::PacketLoss(PacketLoss { p: reader.required("p")? }),
        "packet-bursts" => {
            reader.required::<u64>("packets")?;
            ErrorModel::PacketBursts(PacketBursts {
                packets: reader.within("packets", 1_u64, 1..=1_000_000)? as u32,
                mean: mean()?,
                uniform: reader
                    .choice("spacing", &[("exponential", false), ("uniform", true)])?
                    .unwrap_or(false),
            })
        }
        "rayleigh" => return rayleigh(reader),
        _ => return two_state(reader, rate),
    };
    Ok(model.into())
}

fn rayleigh(reader: &Reader<'_>) -> Result<ErrorSpec, Error> {
    let (speed, carrier) = motion(reader)?;
    let model = ErrorModel::Rayleigh(Rayleigh {
        speed,
        carrier,
        snr: decibels(reader, "snr", 20.0, -50.0..=100.0)?,
        modulation: reader.choice("modulation", &schema::MODULATIONS)?.unwrap_or_default(),
    });
    // Waves take the same ways there and back.
    Ok(ErrorSpec { reciprocal: reader.or("reciprocal", true)?, ..model.into() })
}

/// How fast somebody moves, and on which carrier. Neither has a default.
fn motion(reader: &Reader<'_>) -> Result<(Speed, Frequency), Error> {
    reader.required::<Speed>("speed")?;
    reader.required::<Frequency>("carrier")?;
    // From a centimetre a second, slower than anybody stands, to an aeroplane.
    let speeds = Speed(10_000)..=Speed(1_000_000_000);
    let carriers = Frequency(1_000_000)..=Frequency(1_000_000_000_000);
    let speed = reader.within("speed", Speed(555_556), speeds)?;
    Ok((speed, reader.within("carrier", Frequency(2_400_000_000), carriers)?))
}

fn decibels(
    reader: &Reader<'_>,
    key: &str,
    usual: f64,
    range: core::ops::RangeInclusive<f64>,
) -> Result<Decibels, Error> {
    let [usual, low, high] =
        [usual, *range.start(), *range.end()].map(|db| Decibels::new(db).unwrap_or(Decibels::ZERO));
    reader.required::<Decibels>(key)?;
    reader.within(key, usual, low..=high)
}

/// Three ways to say how long the states last, each with its keys: by bits, by time, by speed.
const WAYS: [&[&str]; 3] = [
    &["good-bits", "bad-bits"],
    &["good", "bad", "deterministic"],
    &["speed", "carrier", "margin", "clock"],
];

fn two_state(reader: &Reader<'_>, rate: Rate) -> Result<ErrorSpec, Error> {
    let ber_good = reader.or("ber-good", Probability::ZERO)?;
    let ber_bad: Probability = reader.required("ber-bad")?;
    let first = |keys: &'static [&'static str]| keys.iter().copied().find(|key| reader.has(key));
    let mut said = WAYS.into_iter().filter_map(first);
    let (way, other) = (said.next(), said.next());
    if let (Some(one), Some(other)) = (way, other) {
        return Err(Diagnostic::new(Code::BadValue, reader.key(one), &reader.place(one))
            .message(format!("`{one}` and `{other}` exclude each other"))
            .label("states by bits, by time, or by speed")
            .help(
                "give `good` and `bad` as times, or `good-bits` and `bad-bits` as numbers of bits, or \
                 `speed`, `carrier` and `margin` of somebody who walks",
            )
            .into());
    }
    let by_speed = way.is_some_and(|key| WAYS[2].contains(&key));
    let model = match way {
        _ if by_speed => walker(reader, rate, ber_good, ber_bad)?,
        Some("good-bits" | "bad-bits") => {
            let range = 1..=1_u64 << 50;
            let period = |key| {
                reader.required::<u64>(key)?;
                reader.within(key, 1_u64, range.clone())
            };
            let (good_bits, bad_bits) = (period("good-bits")?, period("bad-bits")?);
            ErrorModel::TwoStateBits(TwoStateBits { good_bits, bad_bits, ber_good, ber_bad })
        }
        _ => {
            let period = |key| {
                reader.required::<Span>(key)?;
                reader.within(key, Span::secs(1), Span::micros(1)..=Span::secs(86_400))
            };
            ErrorModel::TwoState(TwoState {
                good: period("good")?,
                bad: period("bad")?,
                ber_good,
                ber_bad,
                deterministic: reader.or::<bool>("deterministic", false)?,
            })
        }
    };
    let by_time = model.goes_by_time();
    let reciprocal: bool = reader.or("reciprocal", by_speed && by_time)?;
    if reciprocal && !by_time {
        let at = reader.place("reciprocal");
        return Err(Diagnostic::new(Code::BadValue, reader.key("reciprocal"), &at)
            .message("directions whose states go by the bits sent cannot share them")
            .label("needs states by time")
            .help("give `good` and `bad` as times, or `clock = \"time\"` beside `speed`")
            .into());
    }
    Ok(ErrorSpec { reciprocal, tell_turns: reader.or("tell-turns", false)?, ..model.into() })
}

/// The periods of somebody who walks through Rayleigh fading (parsa98 5.3.2).
fn walker(
    reader: &Reader<'_>,
    rate: Rate,
    ber_good: Probability,
    ber_bad: Probability,
) -> Result<ErrorModel, Error> {
    let (speed, carrier) = motion(reader)?;
    let margin = decibels(reader, "margin", 10.0, -3.0..=60.0)?;
    let fading = Fading { speed, carrier, margin };
    let by_bits = reader.choice("clock", &[("time", false), ("bits", true)])?.unwrap_or(false);
    Ok(if by_bits {
        let [good_bits, bad_bits] = fading.bits(rate);
        ErrorModel::TwoStateBits(TwoStateBits { good_bits, bad_bits, ber_good, ber_bad })
    } else {
        let [good, bad] = fading.spans();
        ErrorModel::TwoState(TwoState { good, bad, ber_good, ber_bad, deterministic: false })
    })
}
