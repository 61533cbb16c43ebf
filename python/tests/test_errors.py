"""Errors of bad input name the fault, its place, and valid alternatives."""

import io
import pathlib
import pickle

import lasthop as lh
import pytest

LAN = lh.Scenario.example("west97-lan")


class Odd:
    pass


BAD = {
    "unknown key": (lambda: LAN.set("errors.maen", "16KiB"), "errors.maen", "did you mean"),
    "unknown key of a file": (lambda: lh.Scenario("rnus = 5"), "no key `rnus`", "did you mean `runs`"),
    "no unit": (lambda: LAN.set("errors.mean", "abc"), "does not begin with a number", "for example"),
    "not a number": (lambda: LAN.set("errors.mean", float("nan")), "is set to nan", "finite"),
    "infinite": (lambda: LAN.set("errors.mean", float("inf")), "is set to inf", "finite"),
    "nothing": (lambda: LAN.set("errors.mean", None), "NoneType None", "a value is"),
    "an object": (lambda: LAN.set("errors.mean", Odd()), "Odd", "a value is"),
    "a key that is no text": (lambda: LAN.set(3, 4), "a key is int 3", "dotted"),
    "values that are a text": (lambda: LAN.vary("agent", "none,snoop"), "str", "give a list"),
    "no values": (lambda: LAN.vary("agent", []), "no values", "at least one"),
    "a value twice": (lambda: LAN.vary("agent", ["none", "none"]), "twice", "differs"),
    "no such label": (lambda: LAN.cell(agent="snop"), "no value `snop`", "none"),
    "no such axis": (lambda: LAN.cell(agnet="snoop"), "not varied", "agent"),
    "an open axis": (lambda: LAN.vary("errors.mean", ["1KiB", "2KiB"]).cell(agent="snoop"), "more than one", "errors.mean"),
    "not TOML": (lambda: lh.Scenario("a = = 1"), "", "TOML"),
    "a text that is none": (lambda: lh.Scenario(b"runs = 1"), "bytes", "str"),
    "no such example": (lambda: lh.Scenario.example("west97-lam"), "west97-lam", "west97-lan"),
    "no such file": (lambda: lh.Scenario.load("/nowhere/x.toml"), "No such file", "TOML"),
    "a folder": (lambda: lh.Scenario.load(pathlib.Path(__file__).parent), "directory", "TOML"),
    "a closed file": (lambda: lh.Scenario.load(_closed()), "closed file", "keep it open"),
    "no text file": (lambda: lh.Scenario.load(io.BytesIO(b"\xff\xfe\x00")), "not a text file", "UTF-8"),
    "a number for a file": (lambda: lh.Scenario.load(3), "int 3", "path"),
    "a list for a dict": (lambda: lh.Scenario.from_dict([1]), "list", "give a dict"),
    "a dict without hosts": (lambda: lh.Scenario.from_dict({"path": []}), "host", "host"),
    "seeds as text": (lambda: lh.run(LAN, seeds="5"), "seeds is '5'", "whole number"),
    "no seeds": (lambda: lh.run(LAN, seeds=0), "seeds is 0", "from 1"),
    "jobs below zero": (lambda: lh.run(LAN, jobs=-1), "jobs is -1", "from 0"),
    "a text for a scenario": (lambda: lh.run("west97-lan"), "is str", "Scenario.load"),
    "real packets": (lambda: lh.run(LAN.set("world", "testbed")), "testbed", "lasthop run"),
    "many cells to record": (lambda: lh.record(LAN), "3 cells", "scenario.cell(agent=...)"),
    "no points": (lambda: lh.run_points(LAN, []), "no points", "one row"),
    "points of unequal length": (lambda: lh.run_points(LAN, {"mss": [1, 2], "agent": ["none"]}), "different lengths", "row"),
    "no class": (lambda: LAN.with_control(int), "type", "CongestionControl"),
    "no host": (lambda: LAN.with_control(lh.CongestionControl, host="fxied"), "no host `fxied`", "fixed"),
    "no scheme": (lambda: lh.compare(LAN, ["snop"]), "snop", "schemes"),
    "no rate": (lambda: lh.advise(loss=0.01), "rate", "20mbit"),
    "a rate without unit": (lambda: lh.advise(rate="20"), "rate", "20mbit"),
    "too much loss": (lambda: lh.advise(rate="1mbit", loss=2), "loss is 2", "share"),
    "a rate that is a number": (lambda: lh.advise(rate=20), "rate is 20", "20mbit"),
    "a queue of the link": (lambda: lh.advise(rate="20mbit", queue="x"), "queue: `x`", "50p"),
    "a discipline": (lambda: lh.advise(rate="20mbit", discipline="x"), "discipline: `x`", "fq-codel"),
    "a local retransmission": (lambda: lh.advise(rate="20mbit", arq="x"), "arq: `x`", "ll-sack"),
    "a burst below one": (lambda: lh.advise(rate="20mbit", burst=0.5), "burst is 0.5", "from 1"),
    "a gain as text": (lambda: lh.advise(rate="20mbit", gain="x"), "gain is 'x'", "number"),
    "a direction as text": (lambda: lh.advise(rate="20mbit", upload="yes"), "upload is 'yes'", "True"),
    "a party": (lambda: lh.advise(rate="20mbit", can=[3]), "can is 3", "sender"),
    "no reports": (lambda: lh.battery(reports=0), "reports is 0", "number"),
    "a capacity without unit": (lambda: lh.battery(capacity=5), "capacity is 5", "5Wh"),
    "a loss to compare": (lambda: lh.compare(LAN, loss=["x"]), "loss: `x`", "loss="),
    "too much loss to compare": (lambda: lh.compare(LAN, loss=2), "loss is 2", "share"),
    "a scheme to compare": (lambda: lh.compare(LAN, "snop"), "snop", "snoop"),
    "energy of several cells": (lambda: lh.energy(LAN), "varies agent", '.set("agent", '),
    "a condition": (lambda: lh.explain("W-T4", fit=["x"]), "fit=x", "claim"),
    "progress": (lambda: lh.run(LAN, progress=3), "progress is 3", "function"),
    "points": (lambda: lh.run_points(LAN, 3), "points is 3", "list of dicts"),
    "a number for a store": (lambda: lh.sweep(LAN, 3), "store is int 3", "directory"),
    "no claim": (lambda: lh.reproduce("W-T999"), "W-T999", "claims()"),
    "no capture": (lambda: lh.analyze(io.BytesIO(b"hello")), "capture", "tcpdump"),
    "a capture as text": (lambda: lh.analyze(io.StringIO("x")), "text", "binary"),
}


def _closed():
    file = io.StringIO("runs = 1")
    file.close()
    return file


@pytest.mark.parametrize("call, message, help", BAD.values(), ids=BAD)
def test_bad_input(call, message, help):
    with pytest.raises(lh.ScenarioError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError)
    assert message in str(error) and help in error.help, str(error)


def test_the_key_is_the_argument():
    for call, argument in [
        (lambda: lh.advise(rate="20"), "rate"),
        (lambda: lh.advise(rate="20mbit", rate_back="x"), "rate_back"),
        (lambda: lh.advise(rate="20mbit", queue="x"), "queue"),
        (lambda: lh.advise(rate="20mbit", sender="x"), "sender"),
        (lambda: lh.battery(self_discharge="x"), "self_discharge"),
    ]:
        with pytest.raises(lh.ScenarioError) as caught:
            call()
        assert (caught.value.key, caught.value.line) == (argument, 0)
        assert "--" not in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_place_is_told():
    with pytest.raises(lh.ScenarioError) as caught:
        lh.Scenario("runs = 5\n[host.a]\nmsss = 5\n")
    error = caught.value
    assert (error.line, error.column, error.code) == (3, 1, "unknown-key")
    assert "msss = 5" in str(error) and "did you mean `mss`" in error.help
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.line) == (str(error), 3)


def test_a_dict_is_quoted_as_the_text_that_it_becomes():
    with pytest.raises(lh.ScenarioError) as caught:
        lh.Scenario.from_dict({"runs": 5, "host": {"a": {"mss": -1}}})
    assert "mss = -1" in str(caught.value) and caught.value.source == "dict"


def test_a_dict_is_the_scenario_that_a_file_is():
    given = {
        "runs": 2,
        "transfer": {"from": "a", "to": "b", "bytes": "20kB"},
        "host": {"a": {"tcp": "newreno"}, "b": {}},
        "path": [
            {"link": {"rate": "10mbit", "delay": "1ms"}},
            {"agent": "snoop"},
            {"radio": {"rate": "2mbit", "delay": "1ms"}, "errors": {"model": "exponential", "mean": "16KiB"}},
        ],
        "vary": {"errors.mean": ["16KiB", "64KiB"]},
    }
    text = """
runs = 2
transfer = { from = "a", to = "b", bytes = "20kB" }
[host.a]
tcp = "newreno"
[host.b]
[[path]]
link = { rate = "10mbit", delay = "1ms" }
[[path]]
agent = "snoop"
[[path]]
radio = { rate = "2mbit", delay = "1ms" }
errors = { model = "exponential", mean = "16KiB" }
[vary]
errors.mean = ["16KiB", "64KiB"]
"""
    assert lh.Scenario.from_dict(given).keys == lh.Scenario(text).keys


def test_what_probably_is_not_meant_is_a_warning():
    odd = LAN.set("agent", "none").set("transfer.bytes", "10kB").set("errors", "none")
    if odd.warnings:
        with pytest.warns(lh.ScenarioWarning):
            lh.run(odd, seeds=1)
