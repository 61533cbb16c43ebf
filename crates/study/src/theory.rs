//! Theoretical limits of a path: capacity, and formulas for the throughput of end-to-end TCP.
//!
//! Segments have `mss` bytes of payload; times are in seconds, rates in bytes of payload per second.

/// `C` of Mathis et al. for one ACK per segment and random losses: sqrt(3/2).
const MATHIS_C: f64 = 1.224_744_871_391_589;

/// Parameters of a TCP connection and its path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpPath {
    /// Payload of a segment in bytes.
    pub mss: f64,
    /// Round-trip time in seconds.
    pub rtt: f64,
    /// First retransmission timeout in seconds.
    pub t0: f64,
    /// Segments per ACK: 2 with delayed ACKs.
    pub b: f64,
    /// The largest window in segments.
    pub w_max: f64,
}

/// The payload rate of a link of `rate` bits per second that loses `p` of its packets, used without waste: `rate / 8 *
/// payload / packet * (1 - p)`, in bytes per second.
pub fn capacity(rate: f64, payload: f64, packet: f64, p: f64) -> f64 {
    rate / 8.0 * payload / packet * (1.0 - p)
}

/// M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", CCR
/// 27 (3), 1997, equation 3: `mss / rtt * C / sqrt(p)`, with `C = sqrt(3 / (2 b))`. It ignores timeouts and window
/// limits, so it is an upper bound at high loss. In bytes per second; infinite without losses.
pub fn mathis(path: &TcpPath, p: f64) -> f64 {
    path.mss / path.rtt * MATHIS_C / path.b.sqrt() / p.sqrt()
}

/// RFC 9438, section 5.1, with `C = 0.4` and a decrease to 0.7. The mean window of CUBIC in segments is
/// `(C (3 + beta) / (4 (1 - beta)))^(1/4) * rtt^(3/4) / p^(3/4)`. It is at least `sqrt(3 / (2 p))`, the window of a
/// Reno with a decrease to 0.7 and the growth of section 4.3. The result is `mss * window / rtt`, in bytes per second,
/// infinite without losses.
pub fn cubic(path: &TcpPath, p: f64) -> f64 {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;
    let steep = libm::pow(C * (3.0 + BETA) / (4.0 * (1.0 - BETA)), 0.25);
    let window = steep * libm::pow(path.rtt / p, 0.75);
    path.mss / path.rtt * window.max(MATHIS_C / p.sqrt())
}

/// J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its Empirical Validation",
/// SIGCOMM 1998, the full model (equations 28 to 30 of the technical report, 32 and 33 of the paper): Reno's sending
/// rate in bytes of payload per second, retransmissions included.
///
/// `p` is the rate of loss **indications**: the probability that a packet is lost, given that it is the first of its
/// round or that its predecessor in the round arrived. In the model, all packets of a round behind a lost one are
/// lost. With independent losses `p` is the number of recoveries and timeout sequences per packet sent, which is less
/// than the loss rate. Without losses the rate is the window per round trip.
pub fn pftk(path: &TcpPath, p: f64) -> f64 {
    let &TcpPath { mss, rtt, t0, b, w_max } = path;
    if p <= 0.0 {
        return w_max * mss / rtt;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let q = 1.0 - p;
    // Equation 13: the window at the end of a period without losses.
    let base = (2.0 + b) / (3.0 * b);
    let w = base + (8.0 * q / (3.0 * b * p) + base * base).sqrt();
    let (packets, seconds) = if w < w_max {
        let timeouts = timeout_share(p, w);
        (q / p + w + timeouts / q, rtt * (b / 2.0 * w + 1.0) + timeouts * t0 * backoff(p) / q)
    } else {
        let timeouts = timeout_share(p, w_max);
        let rounds = b / 8.0 * w_max + q / (p * w_max) + 2.0;
        (q / p + w_max + timeouts / q, rtt * rounds + timeouts * t0 * backoff(p) / q)
    };
    mss * packets / seconds
}

/// `Q(w)`, equation 24: the probability that a loss in a window of `w` causes a timeout, because fewer than three later
/// packets arrive.
pub fn timeout_share(p: f64, w: f64) -> f64 {
    let q = 1.0 - p;
    let q3 = q * q * q;
    let share = (1.0 - q3) * (1.0 + q3 * (1.0 - libm::pow(q, w - 3.0))) / (1.0 - libm::pow(q, w));
    share.clamp(0.0, 1.0)
}

/// `f(p)`, equation 27: the mean length of a timeout sequence in units of the first timeout, each twice its
/// predecessor, up to factor 64.
pub fn backoff(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: TcpPath = TcpPath { mss: 1460.0, rtt: 0.1, t0: 1.0, b: 2.0, w_max: 1e9 };

    #[test]
    fn mathis_equals_the_triangle_model_of_the_paper() {
        // Section 2: between losses the window grows from W/2 to W by one a round trip; 1/p packets in W/2 round trips.
        let one = TcpPath { b: 1.0, ..PATH };
        let p = 0.001;
        let w = (8.0_f64 / (3.0 * p)).sqrt();
        let triangle = 1460.0 * (1.0 / p) / (0.1 * w / 2.0);
        assert!((mathis(&one, p) / triangle - 1.0).abs() < 1e-12);
        assert!((mathis(&PATH, p) / mathis(&one, p) - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!(mathis(&PATH, 0.0).is_infinite());
    }

    #[test]
    fn cubic_matches_the_table_of_the_rfc() {
        // RFC 9438, table 1: at a round trip of 0.1 s mean windows of CUBIC with C = 0.4, in segments.
        let window = |p| cubic(&PATH, p) * PATH.rtt / PATH.mss;
        for (p, segments) in [(1e-2, 12.0), (1e-3, 38.0), (1e-4, 187.0), (1e-5, 1054.0)] {
            assert!((window(p) / segments - 1.0).abs() < 0.03, "{p}: {}", window(p));
        }
        assert!(cubic(&PATH, 0.0).is_infinite());
    }

    #[test]
    fn pftk_matches_the_square_root_law_at_rare_losses() {
        // Equation 20 without timeouts: 1 / rtt * sqrt(3 / (2 b p)) + o(1 / sqrt(p)).
        let rare = TcpPath { t0: 0.0, ..PATH };
        let ratio = pftk(&rare, 1e-8) / mathis(&rare, 1e-8);
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn pftk_by_hand() {
        // p = 2 %, b = 2: E[W] = 2/3 + sqrt(8 * 0.98 / 0.12 + 4/9) = 8.7771, Q = 0.3459 by equation 24, f = 1.0208.
        let w = 2.0 / 3.0 + (8.0 * 0.98 / 0.12 + 4.0 / 9.0_f64).sqrt();
        assert!((w - 8.777_06).abs() < 1e-4, "{w}");
        let q3 = 0.98_f64 * 0.98 * 0.98;
        let share =
            (1.0 - q3) * (1.0 + q3 * (1.0 - libm::pow(0.98, w - 3.0))) / (1.0 - libm::pow(0.98, w));
        assert!((timeout_share(0.02, w) - share).abs() < 1e-12);
        let rate =
            1460.0 * (49.0 + w + share / 0.98) / (0.1 * (w + 1.0) + share * backoff(0.02) / 0.98);
        assert!((pftk(&PATH, 0.02) / rate - 1.0).abs() < 1e-12);
        assert!((backoff(0.02) - 1.020_832_6).abs() < 1e-6, "{}", backoff(0.02));
    }

    #[test]
    fn the_window_is_a_limit_and_more_loss_is_never_faster() {
        let narrow = TcpPath { w_max: 8.0, ..PATH };
        assert_eq!(pftk(&narrow, 0.0), 8.0 * 1460.0 / 0.1);
        assert!(pftk(&narrow, 1e-6) <= pftk(&narrow, 0.0));
        let rates: Vec<f64> = (1..100).map(|i| pftk(&narrow, f64::from(i) / 100.0)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]));
        assert_eq!(pftk(&narrow, 1.0), 0.0);
    }

    #[test]
    fn the_capacity_excludes_headers_and_lost_packets() {
        assert_eq!(capacity(8e6, 1460.0, 1500.0, 0.25), 1e6 * 1460.0 / 1500.0 * 0.75);
    }
}
