"""Sweeps of any size: many processes can make batches of runs and put them into one store."""

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

    from .stores import Store

    Places = str | os.PathLike[str] | Store
    Control = tuple[type, str, str, str | None]

#: Number of batches that an executor has at a time: enough for a thousand workers.
WINDOW = 4096


def sweep(
    scenario: Scenario,
    store: Places,
    *,
    executor: Executor | None = None,
    points: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] | Any = None,
    seeds: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    jobs: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Document:
    """Makes the runs of a scenario that are missing in a store, in batches of about a second (``lasthop sweep``).

    After an interruption the same call continues the sweep: it does not repeat the runs in the store. :func:`merge`
    converts the store to one table.

    >>> import lasthop as lh, tempfile
    >>> s = lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB")
    >>> lh.sweep(s, tempfile.mkdtemp(), seeds=2)["runs"]
    6

    Args:
        scenario: What to run.
        store: A directory, the address of a bucket such as ``s3://bucket/results`` (needs ``lasthop[s3]``), or an
            object with the methods of :class:`lasthop.stores.Store`. All workers must reach it.
        executor: The executor of the batches: any :class:`concurrent.futures.Executor`, such as a process pool or
            ``dask.distributed.Client(...).get_executor()``. By default threads of this process run them.
            Workers need this package in the same version.
        points: A table of settings instead of axes, as of :func:`lasthop.run_points`, with any number of rows. Each row
            sets the same keys.
        seeds: As of :func:`lasthop.run`.
        storage_options: Options of fsspec for a bucket.
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
    place = _place(store, storage_options)
    if executor is None:
        return Document(_loads(laid.make_all(place, jobs, progress)))
    return _distributed(laid, place, executor, control, progress)


def merge(
    *stores: Places,
    out: str | os.PathLike[str] | None = None,
    csv: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Document:
    """Merges stores into one table, sorted by cell and seed (``lasthop merge``).

    Args:
        stores: As of :func:`sweep`.
        out: A directory for ``runs.parquet``; by default nothing is written.
        csv: Whether to write ``runs.csv`` there as well.
        storage_options: As of :func:`sweep`.

    Returns:
        The number of ``runs``, and ``of`` how many in all, the ``digest`` of the table, and the provenance of all
        ``sweeps``. Equal runs have equal digests on every machine.

    Raises:
        ScenarioError: A store is invalid or has another version, a batch is damaged, or equal runs have different
            results.
    """
    if not stores:
        raise ScenarioError("there are no stores", help="give at least one, such as a directory")
    if out is not None and not isinstance(out, (str, os.PathLike)):
        raise ScenarioError(f"out is {out!r}", key="out", help="give a directory")
    places = [_place(store, storage_options) for store in stores]
    return Document(_loads(_lasthop.merge(places, None if out is None else os.fspath(out), csv)))


def _distributed(
    laid: _lasthop.Sweep,
    place: str | Store,
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
    place: str | Store, sweep: str, index: int, control: Control | None, call: str, version: str
) -> bool:
    """The task of a worker: reads the sweep from the store and makes a batch of it."""
    _same(_lasthop.identity(), version)
    laid = _laid.get(sweep)
    if laid is None:
        found = _read(place, f"sweep-{sweep}.json")
        if found is None:
            raise ScenarioError(f"a worker finds no sweep-{sweep}.json", help="use a store that all workers can reach")
        description = _loads(found.decode())
        changes = [(option.removeprefix("--"), change) for option, change in description["arguments"]]
        name = description["name"]
        laid = _lasthop.Sweep(description["text"], name, name, changes, description.get("points"), control)
        while len(_laid) >= 4:
            _laid.pop(next(iter(_laid)), None)
        _laid[sweep] = laid
    return laid.make(index, place)


def _read(place: str | Store, name: str) -> bytes | None:
    if not isinstance(place, str):
        return place.get(name)
    try:
        with open(os.path.join(place, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _place(store: Places, options: Mapping[str, Any] | None) -> str | Store:
    """A store as workers can open it: directories get absolute paths."""
    if isinstance(store, str) and "://" in store:
        from .stores import Bucket

        return Bucket(store, options)
    if isinstance(store, (str, os.PathLike)):
        if options:
            help = "leave them out: only addresses such as s3://bucket have options"
            raise ScenarioError("a directory has no storage_options", help=help)
        return os.path.abspath(os.fspath(store))
    if not hasattr(store, "put_if_absent"):
        help = "give a directory, s3://BUCKET/PREFIX, or an object with the methods of lasthop.stores.Store"
        raise ScenarioError(f"store is {_toml.brief(store)}", key="store", help=help)
    return store


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
