//! HyStart++ (RFC 9406): the first slow start ends when round trips increase, before the queue is full. Growth first
//! becomes conservative, and resumes if round trips decrease again.

use crate::units::Span;

use crate::tcp::sender::Window;

const MIN_THRESHOLD: Span = Span::millis(4);
const MAX_THRESHOLD: Span = Span::millis(16);
const SAMPLES: u32 = 8;
const CONSERVATIVE_DIVISOR: u32 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// Maximum growth by one ACK without pacing, in segments.
const BURST: u32 = 8;

/// Round trips of the current and the previous round of slow start.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    /// Acknowledged position that ends the round.
    round_end: u64,
    /// Shortest round trip of the previous round, and of this one.
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    /// In conservative slow start: the shortest round trip at its start, and the number of completed rounds.
    conservative: Option<(Span, u32)>,
}

impl HyStart {
    /// Growth of the window in bytes by an ACK of `bytes`; `None` after the end of slow start.
    //= rfc9406#section-4.2
    pub fn on_ack(
        &mut self,
        w: &Window,
        bytes: u32,
        rtt: Option<Span>,
        paced: bool,
    ) -> Option<u32> {
        if w.una >= self.round_end {
            self.round_end = w.nxt;
            (self.last, self.current, self.samples) = (self.current, None, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                //= rfc9406#section-4.2: the partial round in which it began counts
                if *rounds >= CONSERVATIVE_ROUNDS {
                    return None;
                }
            }
        }
        if let Some(rtt) = rtt {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        let most = if paced { u32::MAX } else { BURST * w.mss };
        let opens = bytes.min(most);
        if let (Some(current), true) = (self.current, self.samples >= SAMPLES) {
            match (self.conservative, self.last) {
                (Some((baseline, _)), _) if current < baseline => self.conservative = None,
                (None, Some(last)) => {
                    let threshold = Span((last / 8).0.clamp(MIN_THRESHOLD.0, MAX_THRESHOLD.0));
                    if current >= last + threshold {
                        self.conservative = Some((current, 0));
                    }
                }
                _ => {}
            }
        }
        Some(if self.conservative.is_some() { opens / CONSERVATIVE_DIVISOR } else { opens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    /// Runs a round of eight ACKs of one segment, all with the round trip `ms`. Returns the growth in bytes by the
    /// last one, or `None` if slow start ends.
    fn round(hystart: &mut HyStart, w: &mut Window, ms: u64) -> Option<u32> {
        (w.una, w.nxt) = (w.nxt, w.nxt + 8000);
        let acks = (0..8).map(|_| hystart.on_ack(w, 1000, Some(Span::millis(ms)), false));
        acks.collect::<Option<Vec<u32>>>()?.last().copied()
    }

    /// RFC 9406 section 4.2: after an increase of round trips by an eighth, slow start has a quarter of its speed for
    /// five rounds. It resumes if round trips decrease again.
    #[test]
    fn slow_start_is_careful_for_five_rounds_and_then_over() {
        let mut w = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::rfc() });
        let mut hystart = HyStart::default();
        let mut opens = |ms| round(&mut hystart, &mut w, ms);
        assert_eq!([opens(80), opens(89)], [Some(1000); 2], "not an eighth more");
        assert_eq!(
            opens(101),
            Some(250),
            "an eighth more than 89 ms: part of this round is the first of five"
        );
        assert_eq!([101; 4].map(&mut opens), [Some(250); 4]);
        assert_eq!(opens(101), None, "five rounds are over");

        let mut hystart = HyStart::default();
        let mut opens = |ms| round(&mut hystart, &mut w, ms);
        assert_eq!([opens(80), opens(100), opens(100)], [Some(1000), Some(250), Some(250)]);
        assert_eq!(opens(99), Some(1000), "shorter again");
    }
}
