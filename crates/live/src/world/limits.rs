//! Limiting factors of the senders of a run, from the kernel's time counters and from lasthop's TCP.

use lasthop_observe::metrics::Limits;
use lasthop_proto::units::Span;

use crate::endpoint::SendReport;

/// The shares of one direction of a connection, with its bytes.
type Share = (u64, Limits);

/// Mean over directions, weighted by their bytes. The share of pacing is defined if all directions have one.
pub(super) fn mean(directions: impl Iterator<Item = Share>) -> Option<Limits> {
    let mut all = Limits { pacing: Some(0.0), ..Limits::default() };
    let mut carried = 0.0;
    for (bytes, share) in directions.filter(|(bytes, _)| *bytes > 0) {
        let bytes = bytes as f64;
        carried += bytes;
        all.application += bytes * share.application;
        all.send_buffer += bytes * share.send_buffer;
        all.receive_window += bytes * share.receive_window;
        all.congestion_window += bytes * share.congestion_window;
        all.pacing = all.pacing.zip(share.pacing).map(|(sum, share)| sum + bytes * share);
    }
    (carried > 0.0).then(|| Limits {
        application: all.application / carried,
        send_buffer: all.send_buffer / carried,
        receive_window: all.receive_window / carried,
        congestion_window: all.congestion_window / carried,
        pacing: all.pacing.map(|sum| sum / carried),
    })
}

/// Shares of a kernel sender, from its first data until the last acknowledgement. Kernels before 4.10 do not
/// count them.
///
/// The kernel counts in ticks of 1 to 10 ms, so the waiting times of a short transfer may exceed its
/// duration.
pub(super) fn of_kernel(report: &SendReport) -> Option<Share> {
    let info = report.tcp?;
    let times = [info.busy?, info.rwnd_limited?, info.sndbuf_limited?].map(Span::as_secs_f64);
    let begin = report.first_byte?;
    let took = Span(report.all_acked.unwrap_or(report.ended).0.saturating_sub(begin.0));
    Some((report.acked, shares(took.as_secs_f64(), times)?))
}

/// Shares of a transfer that took `took` seconds: its times with data outstanding, with the peer's window
/// full, and with the send buffer full.
fn shares(took: f64, [busy, receive_window, send_buffer]: [f64; 3]) -> Option<Limits> {
    let all = took.max(busy);
    (all > 0.0).then(|| Limits {
        application: (all - busy) / all,
        send_buffer: send_buffer / all,
        receive_window: receive_window / all,
        congestion_window: (busy - receive_window - send_buffer).max(0.0) / all,
        pacing: None,
    })
}

/// Shares of a sender of lasthop's TCP.
pub(super) fn of_ours(
    bytes: u64,
    times: lasthop_proto::tcp::sender::limits::LimitTimes,
) -> Option<Share> {
    let [application, send_buffer, receive_window, congestion_window, pacing] =
        times.map(Span::as_secs_f64);
    let all = application + send_buffer + receive_window + congestion_window + pacing;
    (all > 0.0).then(|| {
        let share = Limits {
            application: application / all,
            send_buffer: send_buffer / all,
            receive_window: receive_window / all,
            congestion_window: congestion_window / all,
            pacing: Some(pacing / all),
        };
        (bytes, share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds, with data outstanding for eight; one of these limited by the window, two by the buffer.
    #[test]
    fn times_of_the_kernel_become_shares() {
        let found = shares(10.0, [8.0, 1.0, 2.0]).unwrap();
        let expected = Limits {
            application: 0.2,
            send_buffer: 0.2,
            receive_window: 0.1,
            congestion_window: 0.5,
            pacing: None,
        };
        assert_eq!(found, expected);
        // One tick more than the transfer took.
        let short = shares(0.003, [0.004, 0.0, 0.0]).unwrap();
        assert_eq!((short.application, short.congestion_window), (0.0, 1.0));
        assert_eq!(shares(0.0, [0.0; 3]), None);
    }

    #[test]
    fn directions_count_with_their_bytes() {
        let kernel = shares(1.0, [1.0, 1.0, 0.0]).unwrap();
        let mut times = [Span::ZERO; 5];
        times[4] = Span::millis(5);
        let ours = of_ours(100, times).unwrap();
        assert_eq!(ours.1.pacing, Some(1.0));
        assert_eq!(mean([ours].into_iter()).unwrap().pacing, Some(1.0));
        let both = mean([(300, kernel), ours].into_iter()).unwrap();
        assert_eq!((both.receive_window, both.pacing), (0.75, None));
        assert_eq!(mean([(0, kernel)].into_iter()), None);
    }
}
