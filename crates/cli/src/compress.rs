//! Compression before sending: what compressors do to real data, and how long they take here.

use std::io::Write as _;

use lasthop_study::compress::Measured;

/// A compressor and its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// As it is.
    None,
    /// DEFLATE, as in gzip.
    Gzip(u32),
    /// Zstandard.
    Zstd(i32),
}

impl Level {
    /// What is tried.
    pub const ALL: [Level; 7] = [
        Level::None,
        Level::Gzip(1),
        Level::Gzip(6),
        Level::Zstd(1),
        Level::Zstd(3),
        Level::Zstd(9),
        Level::Zstd(19),
    ];

    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Level::None => "none".to_owned(),
            Level::Gzip(level) => format!("gzip -{level}"),
            Level::Zstd(level) => format!("zstd -{level}"),
        }
    }

    /// How many bytes are left of `data`.
    pub fn compress(self, data: &[u8]) -> std::io::Result<usize> {
        match self {
            Level::None => Ok(data.len()),
            Level::Gzip(level) => {
                let level = flate2::Compression::new(level);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(data)?;
                Ok(encoder.finish()?.len())
            }
            Level::Zstd(level) => Ok(zstd::bulk::compress(data, level)?.len()),
        }
    }
}

/// Text that does not change: the work by which this machine is compared with others.
const REFERENCE: &[u8] = include_bytes!("../../../LICENSE-APACHE");
/// What [`REFERENCE`] takes with zstd at level 3, in instructions: counted by callgrind, `examples/reference_work.rs`
/// once and eleven times.
const REFERENCE_INSTRUCTIONS: f64 = 691_900.0;
/// Each level is timed so often.
const REPEATS: usize = 5;

/// Instructions of compressing that this machine does in a second.
pub fn this_machine() -> std::io::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let from = cpu_s();
        for _ in 0..20 {
            Level::Zstd(3).compress(REFERENCE)?;
        }
        best = best.min((cpu_s() - from) / 20.0);
    }
    Ok(REFERENCE_INSTRUCTIONS / best.max(1e-9))
}

/// Compresses `data` at every level; `speed` is that of [`this_machine`].
pub fn measure(data: &[u8], speed: f64) -> std::io::Result<Vec<Measured>> {
    let length = data.len().max(1) as f64;
    let one = |level: Level| {
        let mut left = 0;
        let mut times = Vec::new();
        for _ in 0..REPEATS {
            let from = cpu_s();
            left = level.compress(data)?;
            times.push(if level == Level::None { 0.0 } else { (cpu_s() - from) / length });
        }
        times.sort_by(f64::total_cmp);
        let median = times[REPEATS / 2];
        Ok(Measured {
            level: level.name(),
            ratio: left as f64 / length,
            ns_per_byte: median * 1e9,
            ns_range: [times[0] * 1e9, times[REPEATS - 1] * 1e9],
            instructions_per_byte: median * speed,
        })
    };
    Level::ALL.into_iter().map(one).collect()
}

/// Processor time of this thread in seconds.
#[cfg(target_os = "linux")]
fn cpu_s() -> f64 {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

/// Processor time of this thread, as well as a clock can tell.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "measures how long this machine takes")]
fn cpu_s() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shrinks_and_what_is_random_does_not() {
        let mut word = 1_u64;
        let random: Vec<u8> = (0..100_000)
            .map(|_| {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (word >> 56) as u8
            })
            .collect();
        for level in Level::ALL.into_iter().skip(1) {
            assert!(level.compress(REFERENCE).unwrap() * 2 < REFERENCE.len(), "{level:?}");
            assert!(level.compress(&random).unwrap() > random.len() * 99 / 100, "{level:?}");
        }
        let left: Vec<usize> =
            Level::ALL.iter().map(|level| level.compress(REFERENCE).unwrap()).collect();
        assert!(left[0] > left[3] && left[3] > left[6], "{left:?}");
    }
}
