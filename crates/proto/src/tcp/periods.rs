//! Random periods of an application.

use serde::Serialize;

use crate::rng::Stream;
use crate::units::Span;

/// Maximum of a single period.
const LONGEST: Span = Span::secs(86_400);

/// Distribution of on or off periods.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Periods {
    /// Mean of a period.
    pub mean: Span,
    /// The shape of a Pareto distribution, above 1; `None` is exponential.
    pub shape: Option<f64>,
}

impl Periods {
    /// Draws a period.
    pub fn draw(&self, rng: &mut Stream) -> Span {
        let mean = self.mean.0 as f64;
        let nanos = match self.shape {
            None => rng.exponential(mean),
            // By the inverse: 1 - unit() lies in (0, 1].
            Some(shape) => mean * (shape - 1.0) / shape / libm::pow(1.0 - rng.unit(), 1.0 / shape),
        };
        Span((nanos.min(LONGEST.0 as f64) as u64).max(1))
    }
}
