"""Tables: one line for each library, numbers with units, and pickle."""

import pickle

import duckdb
import lasthop as lh
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lasthop import _lasthop

LAN = lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB")
SIZES = ["128KiB", "16KiB", "1MiB"]


@pytest.fixture(scope="module")
def results():
    return lh.run(LAN.vary("agent", ["none", "snoop"]).vary("errors.mean", SIZES), seeds=2)


@pytest.mark.parametrize("name", ["runs", "flows", "stages"])
def test_every_reader_needs_one_line(results, name):
    rows = getattr(results, name)
    frames = pd.DataFrame(rows), pl.DataFrame(rows), pa.table(rows), duckdb.sql("select * from rows").fetchdf()
    names = [list(frame.columns) for frame in (frames[0], frames[1], frames[3])]
    assert [*names, frames[2].column_names] == [rows.columns] * 4
    assert [len(f) for f in frames] == [len(rows)] * 4
    for column in ("cell", "seed", "errors.mean"):
        values = rows[column]
        assert frames[0][column].tolist() == frames[1][column].to_list() == values
        assert frames[2][column].to_pylist() == frames[3][column].tolist() == values


def test_rows_are_dicts(results):
    rows = list(results.runs)
    assert [row["key"] for row in rows] == results.runs["key"]
    assert list(rows[0]) == results.runs.columns
    assert [row["stuck"] for row in rows] == [None] * len(rows)
    assert list(results.runs) == rows


def test_values_of_axes_are_numbers_with_a_unit(results):
    assert results.runs.units["errors.mean"] == "B"
    frame = pl.DataFrame(results.runs)
    assert frame["errors.mean"].dtype == pl.Int64 and frame["agent"].dtype == pl.String
    assert frame["errors.mean"].unique().sort().to_list() == [16384, 131072, 1048576]
    assert pa.table(results.flows).schema.field("errors.mean").metadata == {b"unit": b"B"}
    assert [row["errors.mean"] for row in results.summary()] == [131072, 16384, 1048576] * 2
    assert results.scenario.axes["errors.mean"] == SIZES
    assert LAN.vary("errors.mean", SIZES).cell({"errors.mean": 16384, "agent": "none"}).keys == (
        LAN.vary("errors.mean", SIZES).cell({"errors.mean": "16KiB", "agent": "none"}).keys
    )
    with pytest.raises(lh.ScenarioError, match="no value `16385`"):
        LAN.vary("errors.mean", SIZES).cell({"errors.mean": 16385, "agent": "none"})


@pytest.mark.parametrize(
    "key, labels, values, unit",
    [
        ("radio.rate", ["2mbit", "500kbit"], [250_000, 62_500], "B/s"),
        ("radio.delay", ["5ms", "300us"], [0.005, 0.0003], "s"),
        ("mss", ["536", "1460"], [536, 1460], "1"),
    ],
)
def test_each_kind_of_amount_has_its_unit(key, labels, values, unit):
    t = lh.run(LAN.cell(agent="none").vary(key, labels), seeds=1)
    assert (t.runs[key], t.runs.units[key]) == (values, unit)


def test_words_are_no_amounts():
    assert [_lasthop.amount(word) for word in ("none", "", "16", "1e", "KiB")] == [None, None, (16.0, "1"), None, None]


def test_results_can_be_pickled(results):
    again = pickle.loads(pickle.dumps(results))
    assert again.to_json() == results.to_json() and again.scenario == results.scenario
    assert again.provenance == results.provenance and again.summary() == results.summary()
    for name in ("runs", "flows", "stages"):
        same = pa.table(getattr(again, name)).equals(pa.table(getattr(results, name)), check_metadata=True)
        assert same, name


def test_a_table_can_be_pickled_with_its_metadata(results):
    again = pickle.loads(pickle.dumps(results.runs))
    assert pa.table(again).equals(pa.table(results.runs), check_metadata=True)
    assert again.units == results.runs.units


def test_a_recording_can_be_pickled(tmp_path):
    one = lh.record(LAN.cell(agent="snoop"), seed=7)
    again = pickle.loads(pickle.dumps(one))
    assert (again.title, again.result, again.links) == (one.title, one.result, one.links)
    for name in ("series", "events", "tcb"):
        assert pa.table(getattr(again, name)).equals(pa.table(getattr(one, name)), check_metadata=True), name
    for recording in (one, again):
        recording.to_pcapng(tmp_path / f"{id(recording)}.pcapng")
    first, second = (path.read_bytes() for path in tmp_path.iterdir())
    assert first == second


def test_damaged_and_foreign_pickles_are_refused(results):
    for bytes_ in (b"", b"no table", bytes(64)):
        with pytest.raises(ValueError, match="no table"):
            _lasthop.read_table(bytes_)
    plan, json = results.scenario.plan, results.to_json()
    with pytest.raises(lh.ScenarioError, match="no results"):
        _lasthop.restore_results(plan, json[:-10])
    with pytest.raises(lh.ScenarioError, match="of lasthop 0.0.1, and this is"):
        _lasthop.restore_results(plan, json.replace(f'"lasthop":"{lh.__version__}"', '"lasthop":"0.0.1"', 1))
    with pytest.raises(lh.ScenarioError, match="another scenario"):
        _lasthop.restore_results(LAN.plan, json)
    one = lh.record(LAN.cell(agent="none"), seed=1)
    one._version = "lasthop 0.0.1"
    with pytest.raises(lh.ScenarioError, match="of lasthop 0.0.1"):
        one.to_pcapng("/nowhere/x.pcapng")


def test_tables_have_a_readable_repr_and_become_pandas(tmp_path):
    results = lh.run(LAN.set("agent", "none"), seeds=range(3, 5))
    assert results.runs["seed"] == [3, 4]
    assert repr(results.runs).startswith("<Table of 2 rows: ")
    assert results.runs.to_pandas().equals(pd.DataFrame(results.runs))
    lh.record(LAN.set("agent", "none"), seed=1).to_pcapng(tmp_path / "link.pcapng")
    assert (tmp_path / "link.pcapng").read_bytes()[:4] == b"\n\r\r\n"
    with pytest.raises(lh.ScenarioError, match="seeds"):
        lh.run(LAN, seeds=[1, 3])
