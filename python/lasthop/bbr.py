"""BBR version 1 in Python, after draft-cardwell-iccrg-bbr-congestion-control-00 and Linux' ``tcp_bbr.c``.

It is an example of the interface :class:`lasthop.CongestionControl`, and a base for variants. Its throughput is within 2 %
of that of the built-in ``tcp = "bbr"``, except on paths whose queue the built-in one mistakes for a policer: this class does
not estimate a policer's rate.

>>> import lasthop as lh
>>> from lasthop.bbr import Bbr
>>> s = lh.Scenario.example("west97-lan").cell(agent="none").set("tcp", "bbr")
>>> ours, built_in = (lh.run(x, seeds=1).summary()[0]["mean"] for x in (s.with_control(Bbr, host="fixed"), s))
>>> abs(ours / built_in - 1) < 0.02
True
"""

from __future__ import annotations

from math import ceil

from .control import Ack, CongestionControl

#: 2/ln 2, as the kernel rounds it: fills the path as fast as slow start.
HIGH_GAIN = 739 / 256
#: ln 2 / 2: drains the queue of the startup.
DRAIN_GAIN = 88 / 256
#: Pacing gains of a cycle: probe, drain the queue of the probe, cruise.
CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
#: Round trips after which a delivery rate expires.
RATE_ROUNDS = 10
#: Seconds after which the shortest round trip expires.
RTT_MEMORY = 10.0
#: Seconds for which the path is drained to measure a new round trip.
PROBE_RTT_TIME = 0.2
#: The smallest window, in segments.
LEAST = 4
#: The pacing rate stays below the delivery rate, so that a queue drains.
MARGIN = 0.99


class Bbr(CongestionControl):
    """Models the path by the largest delivery rate and the shortest round trip."""

    name = "bbr.py"
    version = "1"

    def __init__(self) -> None:
        self.mode = "startup"
        self.rates: list[tuple[int, float]] = []
        self.round = 0
        self.round_starts = False
        self.round_end = 0
        self.min_rtt: float | None = None
        self.min_rtt_at = 0.0
        self.full_rate = 0.0
        self.full_rounds = 0
        self.filled = False
        self.phase = 0
        self.phase_at = 0.0
        self.probe_rtt_until: float | None = None
        self.probe_rtt_round = False
        self.drained_until = 0
        self.prior_cwnd = 0.0
        self.state = "open"
        self.conserves = False
        self.idle_restart = False
        self.pacing: float | None = None
        # ACK aggregation: bytes acknowledged in excess of the rate, as maxima of the current and the previous window of rounds.
        self.excess = [0.0, 0.0]
        self.excess_rounds = 0
        self.epoch_at = 0.0
        self.epoch_acked = 0

    @property
    def rate(self) -> float:
        """The largest delivery rate of the last rounds, in bytes per second."""
        return self.rates[0][1] if self.rates else 0.0

    def on_start(self, now: float, rtt: float) -> None:
        self.min_rtt, self.min_rtt_at = rtt, now

    def control(self, ack: Ack) -> tuple[float, float | None]:
        self._update_rate(ack)
        self._update_aggregation(ack)
        self._update_phase(ack)
        if self.mode == "startup" and self.filled:
            self.mode = "drain"
        if self.mode == "drain" and ack.in_flight <= self._target(ack, 1.0):
            self._enter_probe_bw(ack.now)
        cwnd = self._update_min_rtt(ack, float(ack.cwnd))
        pacing_gain, window_gain = self._gains()
        self._update_pacing(ack, cwnd, pacing_gain)
        return self._window(ack, cwnd, window_gain), self.pacing

    def on_loss(self, ack: Ack, timeout: bool) -> float:
        self._save_window(ack.cwnd)
        if timeout:
            self.state, self.conserves = "loss", False
            self.full_rate, self.full_rounds = 0.0, 0
        return ack.ssthresh

    def on_undo(self, ack: Ack, prior: int) -> None:
        self.full_rate, self.full_rounds = 0.0, 0

    def on_restart(self, now: float, idle: bool) -> float | None:
        if idle and self.min_rtt is not None:
            self.idle_restart = True
            self.epoch_at, self.epoch_acked = now, 0
            if self.mode == "probe_bw":
                self.pacing = MARGIN * max(self.rate, 1.0)
                return self.pacing
        return None

    def _gains(self) -> tuple[float, float]:
        """Gains of the pacing rate and of the window."""
        return {
            "startup": (HIGH_GAIN, HIGH_GAIN),
            "drain": (DRAIN_GAIN, HIGH_GAIN),
            "probe_bw": (CYCLE[self.phase], 2.0),
            "probe_rtt": (1.0, 1.0),
        }[self.mode]

    def _target(self, ack: Ack, gain: float, extra: float = 0.0) -> float:
        """Target of bytes in flight: rate times round trip times ``gain``, plus room for bursts and delayed ACKs."""
        if self.min_rtt is None:
            return ack.mss * ack.initial_window
        pacing = self.pacing or 0.0
        burst = min(max(int(pacing / 1024 / ack.mss), 1 if pacing < 150_000 else 2), 127)
        segments = ceil((gain * self.rate * self.min_rtt + extra) / ack.mss) + 3 * burst
        segments += segments % 2
        if self.mode == "probe_bw" and self.phase == 0:
            segments += 2
        return segments * ack.mss

    def _update_rate(self, ack: Ack) -> None:
        self.round_starts = ack.prior_delivered is not None and ack.prior_delivered >= self.round_end
        if self.round_starts:
            self.round += 1
            self.round_end = ack.total_delivered
            self.conserves = False
        if ack.delivery_rate is None or ack.prior_delivered is None:
            return
        limited = ack.app_limited or ack.prior_delivered < self.drained_until
        if not limited or ack.delivery_rate >= self.rate:
            larger = [(at, rate) for at, rate in self.rates if self.round - at <= RATE_ROUNDS and rate > ack.delivery_rate]
            self.rates = [*larger, (self.round, ack.delivery_rate)]
        if self.filled or not self.round_starts or limited:
            return
        if self.rate >= 1.25 * self.full_rate and self.rate > 0:
            self.full_rate, self.full_rounds = self.rate, 0
        else:
            self.full_rounds += 1
            self.filled = self.full_rounds >= 3

    def _update_aggregation(self, ack: Ack) -> None:
        if ack.delivered == 0 or ack.delivery_rate is None:
            return
        if self.round_starts:
            self.excess_rounds += 1
            if self.excess_rounds >= 5:
                self.excess_rounds = 0
                self.excess = [0.0, self.excess[0]]
        expected = self.rate * (ack.now - self.epoch_at)
        if self.epoch_acked <= expected or (self.epoch_acked + ack.delivered) / ack.mss >= 1 << 20:
            self.epoch_at, self.epoch_acked, expected = ack.now, 0, 0.0
        self.epoch_acked += ack.delivered
        self.excess[0] = max(self.excess[0], min(self.epoch_acked - expected, ack.cwnd))

    def _update_phase(self, ack: Ack) -> None:
        if self.mode != "probe_bw":
            return
        whole = ack.now - self.phase_at > (self.min_rtt or 0.0)
        gain = CYCLE[self.phase]
        if gain > 1:
            over = whole and (ack.lost > 0 or ack.prior_in_flight >= self._target(ack, gain))
        else:
            over = whole or (gain < 1 and ack.prior_in_flight <= self._target(ack, 1.0))
        if over:
            self._next_phase(ack.now)

    def _next_phase(self, now: float) -> None:
        self.phase = (self.phase + 1) % len(CYCLE)
        self.phase_at = now

    def _enter_probe_bw(self, now: float) -> None:
        self.mode = "probe_bw"
        # The draft draws a random phase. A hash of the time keeps runs repeatable, and gives flows different phases.
        self.phase = len(CYCLE) - 1 - (round(now * 1e9) // 1000 * 0x9E3779B97F4A7C15 % (1 << 64) >> 32) % 7
        self._next_phase(now)

    def _update_min_rtt(self, ack: Ack, cwnd: float) -> float:
        expired = self.min_rtt is not None and ack.now - self.min_rtt_at > RTT_MEMORY
        if ack.rtt is not None and (expired or self.min_rtt is None or ack.rtt < self.min_rtt):
            self.min_rtt, self.min_rtt_at = ack.rtt, ack.now
        if expired and not self.idle_restart and self.mode != "probe_rtt":
            self.mode = "probe_rtt"
            self._save_window(cwnd)
            self.probe_rtt_until = None
        if self.mode == "probe_rtt":
            self.drained_until = ack.total_delivered + ack.in_flight
            if self.probe_rtt_until is None:
                if ack.in_flight <= LEAST * ack.mss:
                    self.probe_rtt_until = ack.now + PROBE_RTT_TIME
                    self.probe_rtt_round = False
                    self.round_end = ack.total_delivered
            else:
                self.probe_rtt_round |= self.round_starts
                if self.probe_rtt_round and ack.now > self.probe_rtt_until:
                    self.min_rtt_at = ack.now
                    cwnd = max(cwnd, self.prior_cwnd)
                    if self.filled:
                        self._enter_probe_bw(ack.now)
                    else:
                        self.mode = "startup"
        if ack.delivered > 0:
            self.idle_restart = False
        return cwnd

    def _update_pacing(self, ack: Ack, cwnd: float, gain: float) -> None:
        if self.pacing is None:
            if ack.rtt is None:
                return
            self.pacing = HIGH_GAIN * cwnd / max(self.min_rtt or ack.rtt, 1e-9)
        pacing = MARGIN * gain * self.rate
        if self.filled or pacing > self.pacing:
            self.pacing = max(pacing, 1.0)

    def _save_window(self, cwnd: float) -> None:
        normal = self.state == "open" and self.mode != "probe_rtt"
        self.prior_cwnd = cwnd if normal else max(self.prior_cwnd, cwnd)

    def _conserve(self, ack: Ack, cwnd: float) -> float:
        """Packet conservation: in the first round of recovery, sends as many bytes as were delivered."""
        if ack.lost > 0:
            cwnd = max(cwnd - ack.lost, ack.mss)
        before, self.state = self.state, ack.state
        if ack.state == "recovery" and before != "recovery":
            self.conserves = True
            self.round_end = ack.total_delivered
            cwnd = ack.in_flight + max(ack.delivered, ack.mss)
        elif before != "open" and ack.state == "open":
            self.conserves = False
            cwnd = max(cwnd, self.prior_cwnd)
        if self.conserves:
            cwnd = max(cwnd, ack.in_flight + ack.delivered)
        return cwnd

    def _window(self, ack: Ack, cwnd: float, gain: float) -> float:
        if ack.delivered > 0:
            cwnd = self._conserve(ack, cwnd)
            if not self.conserves:
                extra = min(max(self.excess), 0.1 * self.rate) if self.filled else 0.0
                target = self._target(ack, gain, extra)
                if self.filled:
                    cwnd = min(cwnd + ack.delivered, target)
                elif cwnd < target or ack.total_delivered < ack.mss * ack.initial_window:
                    cwnd += ack.delivered
                cwnd = max(cwnd, LEAST * ack.mss)
        if self.mode == "probe_rtt":
            cwnd = min(cwnd, LEAST * ack.mss)
        return cwnd
