"""Congestion control in Python."""

import lasthop as lh
import pytest

LAN = lh.Scenario.example("west97-lan").set("agent", "none").set("transfer.bytes", "200kB")


class Reno(lh.CongestionControl):
    """Slow start and congestion avoidance of RFC 5681."""

    def on_ack(self, ack):
        if ack.cwnd < ack.ssthresh:
            return ack.cwnd + ack.mss
        return ack.cwnd + max(ack.mss * ack.mss // ack.cwnd, 1)


class Small(Reno):
    def on_ack(self, ack):
        return 2 * ack.mss


def test_a_rule_decides_the_window_and_is_repeatable():
    usual, small = (lh.run(LAN.with_control(c, host="fixed"), seeds=5) for c in (Reno, Small))
    assert usual.to_json() == lh.run(LAN.with_control(Reno, host="fixed"), seeds=5).to_json()
    assert usual.summary()[0]["mean"] > small.summary()[0]["mean"]
    windows = lh.record(LAN.with_control(Small, host="fixed"), seed=1).tcb["cwnd"]
    assert 1460 * 2 >= max(windows[20:]) > 0


def test_a_rule_that_does_as_ours_gives_the_same_run():
    """Without losses the window alone determines the run."""
    calm = LAN.set("errors", "none").set("tcp", "newreno")
    ours = lh.run(calm.set("slow-start", "below").set("growth", "rfc5681"), seeds=1)
    theirs = lh.run(calm.set("slow-start", "below").set("growth", "rfc5681").with_control(Reno, host="fixed"), seeds=1)
    assert theirs.runs["throughput"] == ours.runs["throughput"]


def test_name_and_version_enter_the_key():
    class Same(Reno):
        name, version = "mine", "1"

    class Other(Reno):
        name, version = "mine", "2"

    keys = [LAN.with_control(c, host="fixed").keys for c in (Reno, Small, Same, Other)] + [LAN.keys]
    assert len({tuple(k) for k in keys}) == 5
    assert Same.identity() == ("mine", "1")
    assert LAN.with_control(Same, host="mobile").keys != LAN.with_control(Same, host="fixed").keys


def test_a_rule_without_source_has_no_version():
    namespace = {"lh": lh}
    exec("class Typed(lh.CongestionControl):\n    def on_ack(self, ack):\n        return 3 * ack.mss", namespace)
    typed = namespace["Typed"]
    assert typed.identity()[1] == ""
    with pytest.raises(lh.ScenarioError, match="has no version"):
        typed.check_known()
    assert len(lh.run(LAN.with_control(typed), seeds=1)) == 1


class Broken(lh.CongestionControl):
    def on_ack(self, ack):
        raise ZeroDivisionError("in a rule")


class NotANumber(lh.CongestionControl):
    def on_ack(self, ack):
        return float("nan")


class ATextInstead(lh.CongestionControl):
    def on_ack(self, ack):
        return "large"


class CannotBeMade(lh.CongestionControl):
    def __init__(self):
        raise OSError("no")


@pytest.mark.parametrize(
    "rule, error",
    [(Broken, ZeroDivisionError), (NotANumber, ValueError), (ATextInstead, TypeError), (CannotBeMade, OSError)],
)
def test_what_a_rule_raises_comes_back(rule, error):
    s = LAN.with_control(rule, host="fixed")
    for _ in range(2):
        with pytest.raises(error):
            lh.run(s, seeds=5)
    with pytest.raises(error):
        lh.record(s, seed=1)


def test_a_study_refuses_a_rule():
    with pytest.raises(lh.ScenarioError, match="does not take"):
        lh.compare(LAN.with_control(Reno))


def measured(scenario, host, overrides):
    """The measurements that a control with these methods gets at every ACK."""
    seen = []

    class Probe(lh.CongestionControl):
        version = "1"
        scalable = overrides.get("scalable", False)

        def on_start(self, now, rtt):
            seen.append(("start", now, rtt))

        def on_ack(self, ack):
            seen.append(ack)
            return 20 * ack.mss

        if "control" in overrides:

            def control(self, ack):
                seen.append(ack)
                return overrides["control"](ack)

    lh.record(scenario.with_control(Probe, host=host), seed=1)
    assert seen[0][0] == "start" and seen[0][2] > 0
    return [ack for ack in seen if not isinstance(ack, tuple)], seen[0][2]


@pytest.mark.parametrize("overrides", [{}, {"control": lambda ack: 20 * ack.mss}], ids=["on_ack", "control"])
def test_a_control_has_the_measurements_of_a_kernel_module(overrides):
    acks, handshake = measured(LAN.set("tcp", "rack"), "fixed", overrides)
    last = acks[-1]
    assert sum(ack.acked for ack in acks) <= last.total_delivered + 2
    assert [a.total_delivered for a in acks] == sorted(a.total_delivered for a in acks)
    assert last.total_delivered >= (200_000 if overrides else 100_000) and last.total_lost > 0 and last.total_marked == 0
    assert last.min_rtt == min([handshake, *(ack.rtt for ack in acks if ack.rtt is not None)])
    rates = [ack.delivery_rate for ack in acks if ack.delivery_rate]
    # The link carries 2 Mbit/s.
    assert 100e3 < max(rates) < 300e3
    assert all(ack.in_flight <= ack.flight for ack in acks)
    assert all(ack.prior_delivered <= ack.total_delivered for ack in acks if ack.prior_delivered is not None)
    assert {ack.state for ack in acks} >= ({"open", "recovery"} if overrides else {"open"})
    assert all(ack.mss > 0 and ack.initial_window > 0 and ack.srtt >= ack.min_rtt for ack in acks)


def test_a_control_paces():
    calm = LAN.set("errors", "none").set("tcp", "rack").set("pacing", True)

    def control(ack):
        return 40 * ack.mss, 50e3

    acks, _ = measured(calm, "fixed", {"control": control})
    assert acks[0].pacing_rate is None and acks[-1].pacing_rate == pytest.approx(50e3)
    assert acks[-1].now == pytest.approx(200e3 / 50e3, rel=0.1)
    with pytest.raises(ValueError, match="does not pace"):
        measured(calm.set("pacing", False), "fixed", {"control": control})


@pytest.mark.parametrize("scalable", [False, True])
def test_a_control_sees_marks(scalable):
    l4s = lh.Scenario.example("l4s").cell(queue="dualpi2").set("horizon", "10s").set("host.l4s.pacing", True)
    overrides = {"control": lambda ack: (400 * ack.mss, 6e6), "scalable": scalable}
    acks, _ = measured(l4s, "l4s", overrides)
    assert sum(ack.marked for ack in acks) == acks[-1].total_marked
    # A nearly empty queue already marks ECT(1); only a long one marks ECT(0).
    assert acks[-1].total_marked > (100_000 if scalable else 0)


def test_a_control_that_needs_samples_needs_a_sender_with_records():
    class Samples(lh.CongestionControl):
        version = "1"

        def control(self, ack):
            return 10 * ack.mss

    with pytest.raises(lh.ScenarioError, match="`.*Samples.control` needs delivery rates") as caught:
        LAN.set("tcp", "newreno").with_control(Samples)
    assert 'set("tcp", "rack")' in caught.value.help
    with pytest.raises(lh.ScenarioError, match="host `mobile` has no SACK"):
        LAN.set("host.fixed.tcp", "rack").with_control(Samples, host="fixed")
    one_end = LAN.set("host.fixed.tcp", "rack").set("host.fixed.sack", True).set("host.mobile.sack", True)
    assert len(lh.run(one_end.with_control(Samples, host="fixed"), seeds=1)) == 1
    assert len(lh.run(LAN.set("tcp", "rack").with_control(Samples, host="fixed"), seeds=1)) == 1


def test_a_control_of_the_window_stays_without_sack():
    """The mobile host has none. Reno replaces a control that needs samples; this one needs none."""
    calls = []

    class Counts(Small):
        def on_ack(self, ack):
            calls.append(ack)
            return super().on_ack(ack)

    refused = LAN.set("host.fixed.tcp", "rack")
    lh.run(refused.with_control(Counts, host="fixed"), seeds=1)
    assert len(calls) > 50 and {ack.delivery_rate for ack in calls} == {None}


@pytest.mark.parametrize(
    "answer, error",
    [
        ((1e4,), "tuple"),
        ((1e4, -1.0), "pacing rate of -1"),
        ((1e4, float("nan")), "pacing rate of NaN"),
        ((-1, 1e4), "window of -1"),
        (None, "None"),
        ("wide", "str"),
    ],
)
def test_wrong_answers_of_control_are_errors(answer, error):
    class Wrong(lh.CongestionControl):
        version = "1"

        def control(self, ack):
            return answer

    with pytest.raises((ValueError, TypeError), match=error):
        lh.run(LAN.set("tcp", "bbr").with_control(Wrong, host="fixed"), seeds=1)


def test_undo_restart_and_marks_are_called():
    calls = set()

    class Calls(lh.CongestionControl):
        version = "1"

        def on_ack(self, ack):
            return ack.cwnd + ack.mss

        def on_mark(self, ack):
            calls.add("mark")

        def on_undo(self, ack, prior):
            calls.add("undo")
            assert prior > 0

        def on_restart(self, now, idle):
            calls.add("restart")

    l4s = lh.Scenario.example("l4s").cell(queue="dualpi2").set("horizon", "10s").set("host.classic.ecn", True)
    lh.run(l4s.set("tcp", "rack").with_control(Calls, host="classic"), seeds=1)
    assert "restart" in calls
