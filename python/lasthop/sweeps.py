"""Sweeps of any size: many processes can make batches of runs and put them into one directory."""

from __future__ import annotations

import os

from . import _lasthop, _toml
from ._errors import ScenarioError
from .results import _jobs, _loads, _progress, _rows, _seeded, _warn
from .scenario import Scenario
from .studies import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor, Future
    from typing import Any

    Control = tuple[type, str, str, str | None]

#: Number of batches that an executor has at a time: enough for a thousand workers.
WINDOW = 4096


def sweep(
    scenario: Scenario,
    store: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    points: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] | Any = None,
    seeds: int | None = None,
    jobs: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Document:
    """Makes the runs of a scenario that are missing in a store, in batches of about a second (``lasthop sweep``).

    After an interruption the same call continues the sweep: it does not repeat the runs in the store. The store has a
    Parquet file for each batch, which DuckDB and polars read as one table (``STORE/*.parquet``).

    >>> import lasthop as lh, tempfile
    >>> s = lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB")
    >>> lh.sweep(s, tempfile.mkdtemp(), seeds=2)["runs"]
    6

    Args:
        scenario: What to run.
        store: A directory that all workers reach.
        executor: The executor of the batches: any :class:`concurrent.futures.Executor`, such as a process pool or
            ``dask.distributed.Client(...).get_executor()``. By default threads of this process run them.
            Workers need this package in the same version.
        points: A table of settings instead of axes, as of :func:`lasthop.run_points`, with any number of rows. Each row
            sets the same keys.
        seeds: As of :func:`lasthop.run`.
        jobs: As of :func:`lasthop.run`; ignored with an executor, which has its own workers.
        progress: Called repeatedly with the number of finished runs, and of all missing runs.

    Returns:
        The number of ``batches``, of those ``found`` in the store and those ``made`` now, the ``runs`` in the latter, and
        whether the sweep is ``complete``.

    Raises:
        ScenarioError: A run cannot be made, a store or a worker has another version, the store has a batch with
            different results, or a congestion control has no version.
        concurrent.futures.BrokenExecutor: Workers died and the executor does not replace them. The same call with a
            new executor continues the sweep.
    """
    scenario = _seeded(scenario, seeds)
    _warn(scenario)
    jobs, progress = _jobs(jobs), _progress(progress)
    if scenario.control is not None:
        scenario.control.check_known()
    control = _control(scenario)
    table = None if points is None else _csv(points)
    laid = _lasthop.Sweep(scenario.text, scenario.name, scenario.origin, list(scenario.changes), table, control)
    place = _place(store)
    if executor is None:
        return Document(_loads(laid.make_all(place, jobs, progress)))
    return _distributed(laid, place, executor, control, progress)


def _distributed(
    laid: _lasthop.Sweep,
    place: str,
    executor: Executor,
    control: Control | None,
    progress: Callable[[int, int], object] | None,
) -> Document:
    """Makes the missing batches with the workers of an executor."""
    from itertools import islice
    from queue import SimpleQueue

    version = _lasthop.identity()
    # Makes calls unique: Dask merges equal calls, and may return the result of an earlier one.
    this = os.urandom(8).hex()
    # Checks the version of one worker before the first batch. Each worker also checks its own version.
    _same(executor.submit(_lasthop.identity).result(), version)
    missing = laid.missing(place)
    of = sum(runs for _, runs in missing)
    waiting = iter(missing)
    ended: SimpleQueue[Future[bool]] = SimpleQueue()
    at_work: dict[Future[bool], int] = {}
    made = done = 0
    try:
        while True:
            for index, runs in islice(waiting, WINDOW - len(at_work)):
                future = executor.submit(_make, place, laid.id, index, control, this, version)
                at_work[future] = runs
                future.add_done_callback(ended.put)
            if not at_work:
                break
            future = ended.get()
            made += future.result()
            done += at_work.pop(future)
            if progress is not None:
                progress(done, of)
    finally:
        for future in at_work:
            future.cancel()
    found = len(laid) - len(missing)
    return Document(batches=len(laid), found=found, made=made, runs=done, complete=made == len(missing))


def _same(theirs: str, ours: str) -> None:
    if theirs != ours:
        message = f"a worker has {theirs}, and this sweep is of {ours}: versions do not mix"
        raise ScenarioError(message, help="install the same version on all workers")


#: The latest sweeps of this worker, by id.
_laid: dict[str, _lasthop.Sweep] = {}


def _make(
    place: str, sweep: str, index: int, control: Control | None, call: str, version: str
) -> bool:
    """The task of a worker: reads the sweep from the store and makes a batch of it."""
    _same(_lasthop.identity(), version)
    laid = _laid.get(sweep)
    if laid is None:
        try:
            with open(os.path.join(place, f"sweep-{sweep}.json"), encoding="utf-8") as file:
                description = _loads(file.read())
        except FileNotFoundError as error:
            help = "use a store that all workers can reach"
            raise ScenarioError(f"a worker finds no sweep-{sweep}.json", help=help) from error
        changes = [(option.removeprefix("--"), change) for option, change in description["arguments"]]
        name = description["name"]
        laid = _lasthop.Sweep(description["text"], name, name, changes, description.get("points"), control)
        while len(_laid) >= 4:
            _laid.pop(next(iter(_laid)), None)
        _laid[sweep] = laid
    return laid.make(index, place)


def _place(store: str | os.PathLike[str]) -> str:
    """A directory as workers can open it: by its absolute path."""
    if not isinstance(store, (str, os.PathLike)):
        raise ScenarioError(f"store is {_toml.brief(store)}", key="store", help="give a directory")
    return os.path.abspath(os.fspath(store))


def _control(scenario: Scenario) -> Control | None:
    if scenario.control is None:
        return None
    return (scenario.control, *scenario.control.identity(), scenario.host)


def _csv(points: Any) -> str:
    """A table of points as CSV: each field has the value after ``KEY=``."""
    import csv
    import io

    rows = _rows(points)
    if not rows:
        raise ScenarioError("there are no points", help="give at least one row, such as {'errors.mean': '16KiB'}")
    keys = list(rows[0])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(keys)
    for row in rows:
        if list(row) != keys:
            message = f"one point sets {', '.join(keys)}, another {', '.join(row)}"
            raise ScenarioError(message, help="each row sets every key")
        writer.writerow([_toml.word(key, row[key]) for key in keys])
    return text.getvalue()
