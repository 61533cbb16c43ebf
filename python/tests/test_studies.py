"""Studies give the answers of the commands."""

import json
import subprocess

import lasthop as lh
import pytest


def test_explain_answers_as_the_command_does(command):
    words = ["W-F10", "--sets", "40", "--seeds", "1", "--again", "0", "--json"]
    theirs = json.loads(subprocess.run([command, "explain", *words], check=True, capture_output=True).stdout)
    steps = []
    ours = lh.explain("W-F10", sets=40, seeds=1, again=0, progress=lambda done, of: steps.append((done, of)))
    # The command's answer also has the version and the command.
    assert {"lasthop", "command", *ours} == set(theirs) - {"format", "format_version", "commit"}
    assert ours == {key: theirs[key] for key in ours}
    assert steps[-1] == (41, 41)
    assert lh.explain("W-F10", sets=40, seeds=1, again=0, sample=2) != ours


def answered(command, *words):
    """The command's answer without the members about its format."""
    answer = json.loads(subprocess.run([command, *words, "--json"], check=False, capture_output=True).stdout)
    assert answer.pop("format").startswith("lasthop-") and answer.pop("format_version") >= 1
    return answer


def test_advise_takes_the_options_of_the_command(command):
    words = ["--rate", "2mbit", "--loss", "2%", "--duplex", "half", "--discipline", "fq-codel", "--losses", "damage"]
    words += ["--mtu", "1400", "--overhead", "1ms", "--customers", "2", "--arq", "ll", "--can", "sender,base-station"]
    ours = lh.advise(
        rate="2mbit",
        loss="2%",
        duplex="half",
        discipline="fq-codel",
        losses="damage",
        mtu=1400,
        overhead="1ms",
        customers=2,
        arq="ll",
        can=["sender", "base-station"],
        seeds=2,
        quick=True,
    )
    theirs = answered(command, "advise", *words, "--seeds", "2", "--quick")
    # The command's answer also has the command line.
    assert theirs["advice"]["comparison"].pop("command").startswith("lasthop advise --rate 2mbit")
    assert ours["advice"]["comparison"].pop("command") == ""
    assert ours == theirs
    changed = [row["change"] for row in ours["advice"]["comparison"]["points"][0]["schemes"] if row["change"]]
    assert {who for all in changed for who in all} <= {"sender", "base station", "nothing"}


def test_battery_answers_as_the_command_does(command):
    words = ["lte-m", "nb-iot", "--over", "mqtt", "--session", "resumed", "--rest", "edrx:81.92s", "--base", "40uW"]
    words += ["--reports", "12", "--bytes", "100", "--capacity", "8.9Wh", "--inactivity", "20s", "--active", "2s"]
    ours = lh.battery(
        "lte-m",
        "nb-iot",
        over="mqtt",
        session="resumed",
        rest="edrx:81.92s",
        base="40uW",
        reports=12,
        bytes=100,
        capacity="8.9Wh",
        inactivity="20s",
        active="2s",
        seeds=2,
    )
    assert ours == answered(command, "battery", *words, "--seeds", "2")
    assert len(lh.battery(seeds=1)["radios"]) > 5


def test_what_is_left_open(command):
    assert lh.left_open("W-F10") == answered(command, "explain", "W-F10", "--open")["parameters"]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lh.advise(rate=20), "rate is 20"),
        (lambda: lh.advise(rate="2mbit", delay=0.02), "delay is 0.02"),
        (lambda: lh.advise(rate="2mbit", burst="4"), "burst is '4'"),
        (lambda: lh.advise(rate="2mbit", duplex="quarter"), "duplex is `quarter`"),
        (lambda: lh.advise(rate="2mbit", losses="lost"), "losses is `lost`"),
        (lambda: lh.advise(rate="2mbit", can="me"), "can is `me`"),
        (lambda: lh.advise(rate="2mbit", mtu=100), "mtu is 100"),
        (lambda: lh.advise(rate="2mbit", customers=0), "customers is 0"),
        (lambda: lh.advise(rate="2mbit", discipline="fast"), "fast"),
        (lambda: lh.battery("sigfox"), "radios is `sigfox`"),
        (lambda: lh.battery("lte-m", rest="deep"), "rest is `deep`"),
        (lambda: lh.battery("lte-m", capacity="much"), "capacity"),
        (lambda: lh.battery("lte-m", reports=0), "reports is 0"),
        (lambda: lh.explain("W-T999"), "no claim `W-T999`"),
        (lambda: lh.explain(), "no claims"),
        (lambda: lh.explain("W-F10", sets=0), "sets is 0"),
        (lambda: lh.explain("W-F10", "D-F1"), "another testbed"),
        (lambda: lh.explain("W-F10", sets=10, seeds=1, again=0, fit=["W-T999"]), "names no condition"),
    ],
)
def test_a_wrong_question(call, message):
    with pytest.raises(lh.ScenarioError, match=message):
        call()
