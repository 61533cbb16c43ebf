"""Runs give the results of the command, under any conditions."""

import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import lasthop as lh
import pandas as pd
import polars as pl
import pytest

LAN = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "50kB")


def test_numbers_are_those_of_the_command_bit_for_bit_in_1000_of_1000_runs(command):
    sets = ["--set", "transfer.bytes=50kB", "--vary", "agent=none,snoop", "--set", "errors.mean=16KiB"]
    arguments = [command, "run", "west97-lan", "--seeds", "500", "--json", *sets]
    theirs = json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)
    s = LAN.vary("agent", ["none", "snoop"]).set("errors.mean", "16KiB")
    t = lh.run(s, seeds=500)
    ours = json.loads(t.to_json())
    assert ours["cells"] == theirs["cells"]
    assert sum(len(cell["runs"]) for cell in theirs["cells"]) == 1000
    throughput = [run["metrics"]["aggregate_throughput"] for cell in theirs["cells"] for run in cell["runs"]]
    assert t.runs["throughput"] == throughput


def test_the_number_of_jobs_cannot_be_seen():
    one, two = (lh.run(LAN, seeds=20, jobs=jobs) for jobs in (1, 2))
    assert one.to_json() == two.to_json()


def test_tables_are_read_by_polars_with_their_units():
    t = lh.run(LAN.vary("agent", ["none", "snoop"]), seeds=3)
    df = pl.DataFrame(t.runs)
    assert df.shape[0] == len(t) == 6
    assert df["agent"].to_list() == ["none"] * 3 + ["snoop"] * 3
    assert df["throughput"].to_list() == t.runs["throughput"]
    assert t.runs.units["throughput"] == "B/s"
    assert len(pl.DataFrame(t.flows)) == len(t.flows) >= 6
    assert set(pl.DataFrame(t.stages)["agent"]) == {"none", "snoop"}


def test_the_table_is_enough_to_make_it_again():
    t = lh.run(LAN, seeds=4)
    again = lh.Scenario.from_provenance(t.provenance)
    assert lh.run(again).runs["key"] == t.runs["key"] == t.scenario.keys
    assert lh.run(again).to_json() == t.to_json()


def test_a_summary_is_the_mean_over_seeds():
    t = lh.run(LAN, seeds=8)
    (row,) = t.summary("throughput")
    assert row["n"] == 8 and row["unit"] == "B/s"
    assert math.isclose(row["mean"], sum(t.runs["throughput"]) / 8)
    with pytest.raises(lh.ScenarioError, match="no number `speed`"):
        t.summary("speed")


def test_points_have_common_seeds_and_are_as_if_they_were_set():
    rows = [{"errors.mean": "16KiB", "agent": "snoop"}, {"errors.mean": "64KiB", "agent": "none"}]
    t = lh.run_points(LAN, rows, seeds=3)
    assert t.runs["point"] == [0] * 3 + [1] * 3
    alone = lh.run(LAN.set(rows[1]), seeds=3)
    assert t.runs["throughput"][3:] == alone.runs["throughput"]
    assert t.runs["key"][3:] == alone.runs["key"]
    same = [pl.DataFrame(rows), pd.DataFrame(rows), {k: [r[k] for r in rows] for k in rows[0]}]
    assert all(lh.run_points(LAN, points, seeds=3).runs["key"] == t.runs["key"] for points in same)


def test_a_recording_measures_what_a_run_does(tmp_path):
    one = lh.record(LAN.set("agent", "snoop"), seed=7)
    again = lh.run(LAN.set("agent", "snoop").set("seed", 7), seeds=1)
    assert one.result["metrics"]["aggregate_throughput"] == again.runs["throughput"][0]
    assert len(one.events) > 100 and "at_s" in one.series.columns and len(one.tcb) > 10
    path = tmp_path / "run.pcapng"
    one.to_pcapng(path)
    analysis = lh.analyze(path)
    assert analysis["connections"][0]["to_client"]["unique_bytes"] + analysis["connections"][0]["to_server"]["unique_bytes"] == 50_000
    with pytest.raises(lh.ScenarioError, match="no link `nowhere`"):
        one.to_pcapng(path, link="nowhere")


def _child(queue):
    queue.put(lh.run(LAN, seeds=3).to_json())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_work_however_they_are_started(method):
    ours = lh.run(LAN, seeds=3).to_json()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    assert queue.get(timeout=300) == ours
    child.join(300)
    assert child.exitcode == 0


@pytest.fixture
def ctrl_c():
    """Enables Ctrl-C as in a terminal: background processes of a script ignore it by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heard_within_100_ms(ctrl_c):
    long = LAN.set("transfer.bytes", "20MB")
    at = []

    def press():
        time.sleep(0.5)
        at.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        lh.run(long, seeds=5000)
    # In CPU time of this process, since other programs use the processors as well. Its end takes up to 100 ms more.
    assert time.process_time() - at[0] < 0.1 * os.cpu_count() + 0.1


def test_progress_is_told_up_to_the_end():
    calls = []
    lh.run(LAN, seeds=200, progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (200, 200) and calls == sorted(calls)


def test_an_error_in_progress_comes_back():
    def broken(done, of):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lh.run(LAN, seeds=50, progress=broken)


def test_a_panic_is_an_exception_and_the_interpreter_goes_on():
    from lasthop import _lasthop

    with pytest.raises(RuntimeError, match="lasthop has failed: on purpose"):
        _lasthop.fail("on purpose")
    assert len(lh.run(LAN, seeds=1)) == 1


def test_import_is_quick_and_brings_nothing_large():
    code = (
        "import sys, time; a = time.process_time(); import lasthop; b = time.process_time();"
        "heavy = {'numpy', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'gymnasium', 'asyncio'} & set(sys.modules);"
        "print(1000 * (b - a), *heavy)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(5)]
    outputs = [run.stdout.split() for run in runs]
    assert all(len(words) == 1 for words in outputs), outputs
    # CPU time in ms, with a library of the development profile, on a machine with other load.
    assert min(float(words[0]) for words in outputs) < 10


def test_scenarios_travel():
    s = LAN.vary("agent", ["none", "snoop"])
    other = pickle.loads(pickle.dumps(s))
    assert other == s and hash(other) == hash(s) and other.keys == s.keys
