//! `red`: the options of random early detection, beside the discipline.

use lasthop_proto::queue::{Discipline, RedConfig};
use lasthop_proto::units::{Bytes, Probability, Rate};

use crate::error::{Code, Diagnostic, Error};
use crate::read::Reader;
use crate::schema;

/// A discipline and the rate of the transmitter behind it.
type Direction = (Discipline, Option<Rate>);

/// Fills in what the file says of random early detection, towards the right and towards the left.
pub(super) fn read(
    reader: &Reader<'_>,
    right: Direction,
    left: Direction,
) -> Result<(Discipline, Discipline), Error> {
    let used = right.0.red().or(left.0.red());
    let Some(node) = reader.node("red") else {
        let usual = |direction| settled(direction, RedConfig::FLOYD93, RedConfig::TYPICAL);
        return Ok((usual(right), usual(left)));
    };
    if used.is_none() {
        return Err(Diagnostic::new(Code::BadValue, reader.key("red"), &node.at)
            .message(format!("`{}` without random early detection", reader.key("red")))
            .label("nothing uses it")
            .help(
                "write `discipline = \"red\"` beside it, or `discipline-left = \"red+acks-first\"`",
            )
            .into());
    }
    let table = Reader::open(node, &reader.key("red"), schema::RED)?;
    let usual = RedConfig::FLOYD93;
    let packets = |key: &str, default: f64| {
        let value = table.or(key, default)?;
        if (0.0..=1e6).contains(&value) {
            return Ok(value);
        }
        Err(table.out_of_range(key, "a number of packets, 0 to 1000000; for example `min = 5`"))
    };
    let (min, max) = (packets("min", usual.min)?, packets("max", usual.max)?);
    if max <= min {
        let key = if table.has("max") { "max" } else { "min" };
        let help =
            format!("min ({min}) must be below max ({max}); for example `min = 5, max = 15`");
        return Err(table.out_of_range(key, &help));
    }
    let weight = table.or("weight", usual.weight)?;
    if !(weight > 0.0 && weight <= 1.0) {
        let help =
            "the weight of each arrival in the average, above 0 and at most 1; for example 0.002";
        return Err(table.out_of_range("weight", help));
    }
    let max_p = match table.optional::<Probability>("max-p")? {
        None => usual.max_p,
        Some(p) if p.get() > 0.0 => p.get(),
        Some(_) => {
            return Err(table.out_of_range("max-p", "above 0; for example `max-p = \"2%\"`"));
        }
    };
    let mark = table.or("mark", usual.mark)?;
    let typical = table.within("typical", RedConfig::TYPICAL, Bytes(1)..=Bytes(65_535))?;
    let red = RedConfig { min, max, max_p, weight, mark, ..usual };
    Ok((settled(right, red, typical), settled(left, red, typical)))
}

fn settled((discipline, rate): Direction, red: RedConfig, typical: Bytes) -> Discipline {
    discipline.with_red(red.on(rate, typical))
}
