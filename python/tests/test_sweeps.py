"""Sweeps: the table does not depend on executors, stores, or killed workers."""

import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys

import lasthop as lh
import polars as pl
import pytest
from dask.distributed import Client, LocalCluster

# The estimate of a run is 375 MB, so ten runs make a batch; with these errors it transfers less.
TEXT = """
name = "tiny"
runs = 50
horizon = "300ms"
transfer = { from = "fixed", to = "mobile", bytes = "1GB" }
[host.fixed]
preset = "rfc"
[host.mobile]
preset = "rfc"
[[path]]
link = { rate = "10gbit", delay = "1ms" }
[[path]]
agent = "none"
[[path]]
radio = { rate = "10gbit", delay = "1ms" }
errors = { model = "exponential", mean = "16KiB" }
[vary]
agent = ["none", "snoop"]
link.delay = ["1ms", "2ms", "3ms"]
"""
TINY = lh.Scenario(TEXT)
RUNS, BATCHES = 300, 30

# Runs a sweep on a cluster and prints its progress. The test kills it.
DRIVER = """
import os, sys
import lasthop as lh

if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        s = lh.Scenario.load(sys.argv[1])
        lh.sweep(s, sys.argv[2], executor=client.get_executor(), progress=lambda done, of: print(done, flush=True))
"""


@pytest.fixture(scope="module")
def wanted(command, tmp_path_factory) -> str:
    """The digest of the command's table."""
    place = tmp_path_factory.mktemp("command")
    (place / "tiny.toml").write_text(TEXT)
    for shard in ("2/2", "1/2"):
        arguments = [command, "sweep", "tiny.toml", "--store", "store", "--shard", shard]
        subprocess.run(arguments, check=True, capture_output=True, cwd=place)
    assert rows(place / "store").height == RUNS
    return digest(place / "store")


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made


def batches(store: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in store.iterdir() if path.suffix == ".parquet")


def rows(store: pathlib.Path | str) -> pl.DataFrame:
    """The table of a store, as the manual reads it."""
    return pl.scan_parquet(f"{store}/*.parquet", missing_columns="insert", extra_columns="ignore").sort("cell", "seed").collect()


def digest(store: pathlib.Path | str) -> str:
    """Equal batches are equal files."""
    hashes = [hashlib.sha256(path.name.encode() + path.read_bytes()) for path in batches(pathlib.Path(store))]
    return " ".join(one.hexdigest() for one in hashes)


def test_threads_of_this_process(tmp_path, wanted):
    calls = []
    swept = lh.sweep(TINY, tmp_path, progress=lambda done, of: calls.append((done, of)))
    assert swept == {"batches": BATCHES, "found": 0, "made": BATCHES, "runs": RUNS, "complete": True}
    assert calls[-1] == (RUNS, RUNS) and calls == sorted(calls) and {of for _, of in calls} == {RUNS}
    assert digest(tmp_path) == wanted
    assert rows(tmp_path)["throughput"].to_list() == lh.run(TINY).runs["throughput"]
    again = lh.sweep(TINY, tmp_path)
    assert (again["found"], again["made"]) == (BATCHES, 0)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_of_processes(tmp_path, wanted, method):
    calls = []
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        swept = lh.sweep(TINY, tmp_path, executor=pool, progress=lambda done, of: calls.append((done, of)))
        assert (swept["made"], swept["runs"], swept["complete"]) == (BATCHES, RUNS, True)
        assert calls[-1] == (RUNS, RUNS) and calls == sorted(calls)
        assert lh.sweep(TINY, tmp_path, executor=pool)["found"] == BATCHES
    assert digest(tmp_path) == wanted


def test_a_pool_of_threads_and_a_relative_path(tmp_path, wanted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lh.sweep(TINY, "store", executor=pool)
    assert digest("store") == wanted


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_with_a_worker_killed_at_a_third(tmp_path, wanted, cluster):
    with Client(cluster) as client:
        killed = []

        def progress(done, of):
            if not killed and done >= of / 3:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        swept = lh.sweep(TINY, tmp_path, executor=client.get_executor(), progress=progress)
        # A deleted batch is made again, although Dask has seen these calls before.
        batches(tmp_path)[0].unlink()
        assert lh.sweep(TINY, tmp_path, executor=client.get_executor())["made"] == 1
    assert killed and killed[0] != os.getpid()
    assert swept["complete"] and swept["made"] == BATCHES
    assert digest(tmp_path) == wanted


@pytest.mark.filterwarnings("ignore")
def test_a_driver_killed_at_two_thirds_and_started_again(tmp_path, wanted, cluster):
    (tmp_path / "tiny.toml").write_text(TEXT)
    (tmp_path / "driver.py").write_text(DRIVER)
    store = tmp_path / "store"
    arguments = [sys.executable, "driver.py", "tiny.toml", "store"]
    driver = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in driver.stdout:
        if int(line) >= 2 * RUNS / 3:
            break
    driver.kill()
    driver.wait()
    driver.stdout.close()
    there = len(batches(store))
    assert 2 * BATCHES / 3 <= there < BATCHES, "it was killed in the middle"
    with Client(cluster) as client:
        swept = lh.sweep(TINY, store, executor=client.get_executor())
    assert swept["found"] >= there and swept["complete"]
    assert digest(store) == wanted


def test_dead_workers_that_nobody_replaces_are_an_error_and_the_same_call_goes_on(tmp_path, wanted):
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:

        def progress(done, of):
            if done >= of / 3:
                for worker in set(multiprocessing.active_children()) - others:
                    worker.kill()

        with pytest.raises(concurrent.futures.BrokenExecutor):
            lh.sweep(TINY, tmp_path, executor=pool, progress=progress)
    there = len(batches(tmp_path))
    assert BATCHES / 3 <= there < BATCHES
    assert lh.sweep(TINY, tmp_path)["found"] == there
    assert digest(tmp_path) == wanted


@pytest.mark.parametrize("pooled", [False, True])
def test_ctrl_c_ends_a_sweep_which_then_goes_on(tmp_path, wanted, pooled):
    def progress(done, of):
        if done >= of / 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
            lh.sweep(TINY, tmp_path, executor=pool if pooled else None, progress=progress, jobs=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 < len(batches(tmp_path)) < BATCHES
    assert lh.sweep(TINY, tmp_path)["complete"]
    assert digest(tmp_path) == wanted


def test_duckdb_queries_a_store(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    lh.sweep(TINY, tmp_path)
    query = f"SELECT agent, avg(throughput), count(*) FROM read_parquet('{tmp_path}/*.parquet', union_by_name = true) GROUP BY agent"
    found = {agent: (mean, count) for agent, mean, count in duckdb.sql(query).fetchall()}
    df = pl.DataFrame(lh.run(TINY).runs)
    for agent, (mean, count) in found.items():
        own = df.filter(pl.col("agent") == agent)
        assert count == own.height and mean == pytest.approx(own["throughput"].mean())


def test_equal_keys_with_different_results_are_a_loud_error(tmp_path):
    # More runs than fit into the interval of the progress.
    few, seeds = TINY.cell({"agent": "none", "link.delay": "1ms"}), 1000
    lh.sweep(few, tmp_path, seeds=seeds)
    first, *others = batches(tmp_path)
    for batch in others:
        batch.unlink()

    # Another process that writes first is simulated by batches that appear while runs are made.
    def rival(done, of):
        for batch in others:
            if not batch.exists():
                batch.write_bytes(first.read_bytes())

    with pytest.raises(lh.ScenarioError, match="other results") as caught:
        lh.sweep(few, tmp_path, seeds=seeds, progress=rival)
    assert any(batch.name in str(caught.value) for batch in others)


class Elsewhere(concurrent.futures.ThreadPoolExecutor):
    """Workers of another version; with `late` the first worker has the right one."""

    def __init__(self, late):
        super().__init__(1)
        self.late = late

    def submit(self, call, /, *args):
        if not args:
            return super().submit(lambda: call() if self.late else "lasthop 0.0.9 (results 7)")
        return super().submit(call, *args[:-1], "lasthop 0.0.9 (results 7)")


@pytest.mark.parametrize("late", [False, True])
def test_workers_of_another_version_make_nothing(tmp_path, late):
    with Elsewhere(late) as pool, pytest.raises(lh.ScenarioError, match=r"0\.0\.9 \(results 7\).*versions do not mix"):
        lh.sweep(TINY, tmp_path, executor=pool)
    assert not tmp_path.exists() or batches(tmp_path) == []


def test_points_take_the_place_of_axes(tmp_path):
    points = [{"agent": "snoop", "errors.mean": "16KiB"}, {"agent": "none", "errors.mean": "64KiB"}]
    s = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "50kB")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        lh.sweep(s, tmp_path / "a", points=points, seeds=4, executor=pool)
    lh.sweep(s, tmp_path / "b", points=pl.DataFrame(points), seeds=4)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    df = rows(tmp_path / "a")
    assert df["agent"].to_list() == ["snoop"] * 4 + ["none"] * 4
    assert df["errors.mean"].to_list() == ["16KiB"] * 4 + ["64KiB"] * 4
    assert df["key"].to_list() == lh.run_points(s, points, seeds=4).runs["key"]


class Window(lh.CongestionControl):
    version = "1"

    def on_ack(self, ack):
        return 8 * ack.mss


def test_a_rule_in_python_is_swept(tmp_path):
    s = lh.Scenario.example("west97-lan").cell(agent="none").set("transfer.bytes", "50kB")
    s = s.with_control(Window, host="fixed")
    lh.sweep(s, tmp_path / "a", seeds=3)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        lh.sweep(s, tmp_path / "b", seeds=3, executor=pool)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    df = rows(tmp_path / "a")
    assert df["key"].to_list() == lh.run(s, seeds=3).runs["key"]


class Faulty(Window):
    def on_loss(self, ack, timeout):
        raise ZeroDivisionError


@pytest.mark.parametrize("pooled", [False, True])
def test_nothing_is_kept_of_a_rule_that_fails(tmp_path, pooled):
    s = lh.Scenario.example("west97-lan").cell(agent="none").with_control(Faulty)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        lh.sweep(s, tmp_path, seeds=1, executor=pool if pooled else None)
    assert batches(tmp_path) == []


def test_a_rule_without_a_version_is_refused(tmp_path):
    place: dict[str, object] = {}
    exec("import lasthop as lh\nclass Nameless(lh.CongestionControl):\n    def on_ack(self, ack): return 9000", place)
    s = lh.Scenario.example("west97-lan").with_control(place["Nameless"])
    with pytest.raises(lh.ScenarioError, match="no version"):
        lh.sweep(s, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_a_task_is_small_and_costs_little():
    """The task of a batch is a store, a hash and a number."""
    from lasthop import sweeps

    task = (sweeps._make, "/somewhere/results", "0" * 32, 12345, None, "0" * 16, "lasthop 0.1.0 (results 1)")
    assert len(pickle.dumps(task)) < 300


BAD = {
    "a store that is none": (lambda: lh.sweep(TINY, 3), "store is int 3", "directory"),
    "points of other keys": (lambda: lh.sweep(TINY, "x", points=[{"mss": 500}, {"agent": "none"}]), "one point sets mss", "every key"),
    "a wrong point": (lambda: lh.sweep(TINY, "x", points=[{"errors.maen": "1KiB"}]), "errors.maen", "did you mean"),
    "real packets": (lambda: lh.sweep(TINY.set("world", "testbed"), "x"), "simulator", "world=sim"),
}


@pytest.mark.parametrize("call, message, help", BAD.values(), ids=BAD)
def test_bad_input(call, message, help, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lh.ScenarioError) as caught:
        call()
    assert message in str(caught.value) and help in caught.value.help, str(caught.value)


def test_a_wrong_cell_is_found_when_it_is_built_and_quoted(tmp_path):
    points = [{"errors.mean": "16KiB"}] * 3 + [{"errors.mean": "16 furlongs"}]
    with pytest.raises(lh.ScenarioError) as caught:
        lh.sweep(TINY, tmp_path, points=points)
    assert caught.value.source == "points" and caught.value.line == 5 and "furlongs" in caught.value.quoted
