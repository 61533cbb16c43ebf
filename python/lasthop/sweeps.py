"""Sweeps that outgrow one call: batches of runs that any number of processes put into one store."""

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

#: Batches that an executor has at a time: enough for a thousand workers, whatever the size of the sweep.
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
    """Makes those runs of a scenario that a store does not have (``lasthop sweep``), in batches of about a second.

    The store is the truth: whatever dies, the same call goes on, and what is there is not made again. With
    :func:`merge` it becomes one table.

    >>> import lasthop as lh, tempfile
    >>> s = lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB")
    >>> lh.sweep(s, tempfile.mkdtemp(), seeds=2)["runs"]
    6

    Args:
        scenario: What to run.
        store: A directory, the address of a bucket such as ``s3://bucket/results`` (needs ``lasthop[s3]``), or an
            object with the methods of :class:`lasthop.stores.Store`. All workers must reach it.
        executor: Who makes the batches: any :class:`concurrent.futures.Executor`, such as a process pool or
            ``dask.distributed.Client(...).get_executor()``; threads of this process if none is given. Workers need
            this package in the same version.
        points: A table of sets in place of axes, as of :func:`lasthop.run_points`; each row sets the same keys. There
            may be any number.
        seeds: As of :func:`lasthop.run`.
        storage_options: What fsspec is told of a bucket.
        jobs: As of :func:`lasthop.run`; with an executor its own workers count.
        progress: Called now and then with the number of runs that are done, and of all that were missing.

    Returns:
        ``batches``, of these ``found`` and ``made``, the ``runs`` in those that were made, and whether the sweep is
        ``complete``.

    Raises:
        ScenarioError: A run cannot be made, a store or a worker is of another version, a batch is there with other
            results, or a congestion control has no version.
        concurrent.futures.BrokenExecutor: Workers have died and the executor does not replace them. The same call,
            with another one, goes on.
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
    return _handed_out(laid, place, executor, control, progress)


def merge(
    *stores: Places,
    out: str | os.PathLike[str] | None = None,
    csv: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Document:
    """Merges stores into one table, sorted by cell and seed (``lasthop merge``).

    Args:
        stores: As of :func:`sweep`.
        out: A directory for ``runs.parquet``; nothing is written if none is given.
        csv: Whether to write ``runs.csv`` there as well.
        storage_options: As of :func:`sweep`.

    Returns:
        ``runs``, ``of`` how many there are in all, the ``digest`` of the table, and the provenance of all ``sweeps``.
        Equal runs have equal digests, wherever and by whomever they were made.

    Raises:
        ScenarioError: What is no store or of another version, a damaged batch, and equal runs with different results.
    """
    if not stores:
        raise ScenarioError("there are no stores", help="give one at least, such as a directory")
    if out is not None and not isinstance(out, (str, os.PathLike)):
        raise ScenarioError(f"out is {out!r}", key="out", help="give a directory")
    places = [_place(store, storage_options) for store in stores]
    return Document(_loads(_lasthop.merge(places, None if out is None else os.fspath(out), csv)))


def _handed_out(
    laid: _lasthop.Sweep,
    place: str | Store,
    executor: Executor,
    control: Control | None,
    progress: Callable[[int, int], object] | None,
) -> Document:
    """Has the missing batches made by the workers of an executor."""
    from itertools import islice
    from queue import SimpleQueue

    version = _lasthop.identity()
    # Dask takes equal calls for one, and may still have the result of an earlier one.
    this = os.urandom(8).hex()
    # Before anything is made. Every worker looks for itself as well: one that answers does not speak for all.
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
        raise ScenarioError(message, help="install the same version everywhere")


#: Sweeps that this worker has laid out: the latest ones.
_laid: dict[str, _lasthop.Sweep] = {}


def _make(
    place: str | Store, sweep: str, index: int, control: Control | None, call: str, version: str
) -> bool:
    """What a worker does: makes a batch of a sweep, which it reads from the store."""
    _same(_lasthop.identity(), version)
    laid = _laid.get(sweep)
    if laid is None:
        found = _read(place, f"sweep-{sweep}.json")
        if found is None:
            raise ScenarioError(f"a worker finds no sweep-{sweep}.json", help="all workers must reach the store")
        told = _loads(found.decode())
        changes = [(option.removeprefix("--"), change) for option, change in told["arguments"]]
        name = told["name"]
        laid = _lasthop.Sweep(told["text"], name, name, changes, told.get("points"), control)
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
    """A store as workers find it, wherever they run."""
    if isinstance(store, str) and "://" in store:
        from .stores import Bucket

        return Bucket(store, options)
    if isinstance(store, (str, os.PathLike)):
        if options:
            raise ScenarioError("a directory has no storage_options", help="they are for s3://bucket and the like")
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
    """A table of points as CSV: what stands behind ``KEY=`` in each field."""
    import csv
    import io

    rows = _rows(points)
    if not rows:
        raise ScenarioError("there are no points", help="give one row at least, such as {'errors.mean': '16KiB'}")
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
