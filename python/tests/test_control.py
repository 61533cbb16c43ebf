"""Congestion control in Python."""

import lasthop as lh
import pytest

LAN = lh.Scenario.example("west97-lan").set("agent", "none").set("transfer.bytes", "200kB")


class Reno(lh.CongestionControl):
    """Slow start and congestion avoidance as RFC 5681 has them."""

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
    """Once nothing is lost, the window is all there is."""
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
