//! Compression before sending: sizes and times of compressors for real data.

use std::io::Write as _;

use lasthop_study::compress::{LevelMeasurement, Piece};

/// A compressor and its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// No compression.
    None,
    /// DEFLATE, as in gzip.
    Gzip(u32),
    /// Zstandard.
    Zstd(i32),
}

impl Level {
    /// The compressors and levels.
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

    /// Compressed size of `data`, bytes.
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

/// Fixed text, the reference work to compare machines.
const REFERENCE: &[u8] = include_bytes!("../../../LICENSE-APACHE");
/// Instructions of zstd at level 3 for [`REFERENCE`], counted by callgrind: `examples/reference_work.rs` once
/// and eleven times.
const REFERENCE_INSTRUCTIONS: f64 = 691_900.0;
/// Measurements per level.
const REPEATS: usize = 5;

/// Instructions per second of compression on this machine.
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

/// Compresses `data` at every level; `speed` is the result of [`this_machine`].
pub fn measure(data: &[u8], speed: f64) -> std::io::Result<Vec<LevelMeasurement>> {
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
        Ok(LevelMeasurement {
            level: level.name(),
            ratio: left as f64 / length,
            ns_per_byte: median * 1e9,
            ns_range: [times[0] * 1e9, times[REPEATS - 1] * 1e9],
            instructions_per_byte: median * speed,
            pieces: pieces(level, data, speed)?,
        })
    };
    Level::ALL.into_iter().map(one).collect()
}

/// Lengths of separately compressed pieces, such as messages, bytes.
const LENGTHS: [usize; 6] = [64, 128, 256, 512, 1024, 4096];
/// Number of pieces of each length, spread over the data.
const PIECES: usize = 16;

/// Results of `level` for short pieces of `data`, each compressed separately.
fn pieces(level: Level, data: &[u8], speed: f64) -> std::io::Result<Vec<Piece>> {
    let one = |length: usize| {
        let mut left = 0;
        let chunks: Vec<&[u8]> = data.chunks_exact(length).collect();
        let tried: Vec<&[u8]> =
            chunks.iter().step_by(chunks.len().div_ceil(PIECES)).copied().collect();
        let from = cpu_s();
        for piece in &tried {
            left += level.compress(piece)?;
        }
        let (s, bytes) = (cpu_s() - from, (tried.len() * length) as f64);
        Ok(Piece {
            bytes: length as u64,
            ratio: left as f64 / bytes,
            instructions_per_byte: s / bytes * speed,
        })
    };
    LENGTHS.into_iter().filter(|length| *length <= data.len()).map(one).collect()
}

/// Processor time of this thread in seconds.
#[cfg(live)]
fn cpu_s() -> f64 {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

/// Elapsed time, in place of this thread's processor time.
#[cfg(not(live))]
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
    fn short_pieces_shrink_less_than_all_at_once() {
        let all = pieces(Level::Gzip(6), REFERENCE, 1e9).unwrap();
        assert_eq!(
            all.iter().map(|p| p.bytes).collect::<Vec<_>>(),
            [64, 128, 256, 512, 1024, 4096]
        );
        for pair in all.windows(2) {
            assert!(pair[0].ratio > pair[1].ratio, "{all:?}");
        }
        assert!(all.iter().all(|piece| piece.instructions_per_byte > 0.0));
        assert_eq!(pieces(Level::Gzip(6), &REFERENCE[..100], 1e9).unwrap().len(), 1);
    }

    #[test]
    fn text_shrinks_and_random_data_does_not() {
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
