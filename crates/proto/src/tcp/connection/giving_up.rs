//! The limits after which a connection with a silent peer is aborted.

use crate::event::TcpKind;
use crate::machine::Out;
use crate::tcp::config::GivingUp;
use crate::tcp::state::State;
use crate::units::{Span, Time};
use crate::wire::Flags;

use super::Connection;

impl Connection {
    /// Aborts the connection because its peer is silent.
    pub(super) fn time_out(&mut self, now: Time, out: &mut Out) {
        // A peer that never answered our SYN has no connection to reset.
        if self.state != State::SynSent && self.config.giving_up == GivingUp::Count {
            self.send_control(now, Flags::RST | Flags::ACK, out);
        }
        self.abort(out);
    }

    /// Whether the connection is aborted at the timer that has just expired as an event of `kind`.
    pub(super) fn gives_up(&self, now: Time, kind: TcpKind) -> bool {
        let (config, retries) = (&self.config, self.tx.retries());
        let by_time = config.giving_up == GivingUp::Time;
        match kind {
            TcpKind::Timeout if self.state == State::SynSent => {
                retries > config.syn_retries.unwrap_or(config.max_retries)
            }
            TcpKind::Timeout if self.state == State::SynReceived || self.is_half() => {
                retries > config.syn_ack_retries.unwrap_or(config.max_retries)
            }
            // Retransmissions into a withdrawn window are probes.
            TcpKind::Timeout if by_time && self.tx.core.window.peer == 0 => {
                self.tx.unanswered_probes() > config.max_retries
            }
            //= rfc9293#section-3.8.3: R2 as a time or as a count of retransmissions
            TcpKind::Timeout if by_time => {
                retries > 1
                    && self.tx.silence(now)
                        >= time_of(config.max_retries, config.rto_min, config.rto_max)
            }
            TcpKind::Timeout => retries > config.max_retries,
            TcpKind::WindowProbe => by_time && self.tx.unanswered_probes() > config.max_retries,
            _ => false,
        }
    }
}

/// Total wait of the first transmission and `count` retransmissions. The first timeout is `least`; each next one is
/// twice as long, up to `most` (`tcp_model_timeout` of Linux).
fn time_of(count: u32, least: Span, most: Span) -> Span {
    let doublings = (most.0 / least.0.max(1)).checked_ilog2().unwrap_or(0);
    let doubled = least * ((2u64 << count.min(doublings)) - 1);
    doubled + most * u64::from(count.saturating_sub(doublings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_timeouts_take_linux_a_quarter_of_an_hour() {
        let time = |count| time_of(count, Span::millis(200), Span::secs(120));
        assert_eq!(time(15), Span::millis(924_600));
        assert_eq!([time(0), time(3)], [Span::millis(200), Span::millis(3000)]);
        assert_eq!(time_of(255, Span(1), Span::secs(86_400)).0 / 86_400_000_000_000, 210);
        assert_eq!(time_of(4, Span::secs(5), Span::secs(2)), Span::secs(13));
    }
}
