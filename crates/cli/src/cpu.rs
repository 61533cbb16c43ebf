//! CPU time of the kernel's TCP, measured by a separate process.

use lasthop_observe::cpu_time::{About, Measurement, Sample, cases};
use lasthop_papers::live::{Live, NoMeasurement};
use serde::{Deserialize, Serialize};

use crate::child::{self, Remaining};
use crate::failure::Failure;

/// The measurement to make.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Segment sizes in bytes.
    pub sizes: Vec<u16>,
    /// Bytes of each transfer.
    pub bytes: u64,
    /// Number of rounds.
    pub rounds: u32,
}

/// A line of the answer.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The machine's description.
    About(About),
    /// A finished transfer.
    Sample(Sample),
    /// The end of the measurement by an error.
    Error {
        /// The error.
        message: String,
        /// The remedy.
        help: String,
    },
}

/// Makes the measurement. `on_sample` receives each transfer and the total number. When `stop` is set, it
/// ends early without an error and returns the finished transfers.
pub fn measure(
    order: &Order,
    stop: &dyn Fn() -> bool,
    mut on_sample: impl FnMut(&Sample, u64),
) -> Result<Measurement, Failure> {
    child::needs_linux("")?;
    let cases = cases(&order.sizes);
    let of = cases.len() as u64 * u64::from(order.rounds);
    let mut measured = Measurement { bytes: order.bytes, cases, ..Measurement::default() };
    child::converse(&["testbed", "measure-cpu"], order, stop, |line| match line {
        Line::About(about) => {
            measured.about = about;
            Ok(Remaining::More)
        }
        Line::Sample(sample) => {
            on_sample(&sample, of);
            measured.samples.push(sample);
            Ok(if measured.samples.len() as u64 == of {
                Remaining::Nothing
            } else {
                Remaining::More
            })
        }
        Line::Error { message, help } => Err(Failure::input(message, help)),
    })?;
    Ok(measured)
}

/// The measurement for claims.
pub struct ForClaims<'a> {
    /// Whether to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Receives the number of finished transfers, and of all.
    pub show: &'a dyn Fn(u64, u64),
}

impl Live for ForClaims<'_> {
    fn cpu(&self, sizes: &[u16], bytes: u64, rounds: u32) -> Result<Measurement, NoMeasurement> {
        let order = Order { sizes: sizes.to_vec(), bytes, rounds };
        let mut done = 0;
        let measured = measure(&order, self.stop, |_, of| {
            done += 1;
            (self.show)(done, of);
        });
        match measured {
            Err(failure) => Err(NoMeasurement::Impossible(failure.to_string())),
            Ok(measured) if measured.rounds() < rounds => Err(NoMeasurement::Interrupted),
            Ok(measured) => Ok(measured),
        }
    }
}
