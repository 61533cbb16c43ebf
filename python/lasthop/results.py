"""Runs and their results."""

from __future__ import annotations

from collections.abc import Sequence

from . import _lasthop
from ._errors import ScenarioError, ScenarioWarning
from .scenario import Scenario

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from matplotlib.axes import Axes

Table = _lasthop.Table


class Results:
    """The results of the runs of a scenario.

    Tables are Arrow tables (:class:`Table`): ``pandas.DataFrame(t.runs)``, ``polars.DataFrame(t.runs)`` and
    ``pyarrow.table(t.runs)`` read them, and DuckDB queries a variable that holds one. Columns have the names of the
    command's JSON. ``units`` has their units, and the schema's metadata their provenance.

    The values of an axis are numbers in base units if all its labels are amounts of one kind: ``128KiB`` is 131072 in
    ``B``, ``2mbit`` is 250000 in ``B/s``, ``5ms`` is 0.005 in ``s``, ``1%`` is 0.01. Other labels remain texts.

    Results can be pickled. Another version of lasthop rejects them.
    """

    def __init__(self, results: _lasthop.Results, scenario: Scenario) -> None:
        self._results = results
        self._tables: dict[str, Table] = {}
        #: The scenario that was run.
        self.scenario = scenario

    def _table(self, name: str, make: Callable[[], Table]) -> Table:
        if name not in self._tables:
            self._tables[name] = make()
        return self._tables[name]

    @property
    def runs(self) -> Table:
        """A row for each run: cell, axes, seed, key, and all results of the run as a whole."""
        return self._table("runs", self._results.runs)

    @property
    def flows(self) -> Table:
        """A row for each flow of each run."""
        return self._table("flows", self._results.flows)

    @property
    def stages(self) -> Table:
        """A row for each stage of the path and direction of each run."""
        return self._table("stages", self._results.stages)

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the results: version, text of the scenario, arguments, seeds. Enough to reproduce them."""
        provenance: dict[str, Any] = _loads(self._results.provenance)
        return provenance

    def summary(self, name: str = "throughput") -> list[dict[str, Any]]:
        """Summarises one number over the runs of each cell. A dict has the values of the axes as in the tables, then
        ``n``, ``mean``, ``sd``, ``ci95`` and more, in ``unit``.

        Raises:
            ScenarioError: There is no such number.
        """
        axes = list(self.scenario.axes)
        places = self._places()
        return [{**dict(zip(axes, places[cell])), **row} for cell, _, row in self._summaries(name)]

    def _summaries(self, name: str) -> list[tuple[int, list[str], dict[str, Any]]]:
        """Index, labels and summary of each cell that has the number."""
        cells = _loads(self._results.summary())
        names = sorted({known for _, summary in cells for known in summary})
        if name not in names:
            raise ScenarioError(f"there is no number `{name}`", key=name, help=f"there are {', '.join(names)}")
        return [
            (cell, labels, {"name": name, **summary[name]})
            for cell, (labels, summary) in enumerate(cells)
            if name in summary
        ]

    def _places(self) -> dict[int, tuple[Any, ...]]:
        """The values of the axes of each cell."""
        runs = self.runs
        columns = runs.columns[1 : 1 + len(self.scenario.axes)]
        return dict(zip(runs["cell"], zip(*(runs[column] for column in columns)) if columns else ((),) * len(runs)))

    def to_json(self) -> str:
        """All results, as ``lasthop run --json`` prints them."""
        return self._results.json()

    def plot(self, name: str = "throughput", ax: Axes | None = None) -> Axes:
        """Draws one number over the cells: bars with 95 % confidence intervals, or a heat map of many cells.

        Needs ``lasthop[plot]``.
        """
        from . import plot

        summaries = self._summaries(name)
        labels = [labels for _, labels, _ in summaries]
        return plot.cells([row for *_, row in summaries], labels, list(self.scenario.axes), name, ax)

    def __getstate__(self) -> tuple[Scenario, str]:
        return self.scenario, self.to_json()

    def __setstate__(self, state: tuple[Scenario, str]) -> None:
        self.scenario, json = state
        self._results = _lasthop.restore_results(self.scenario.plan, json)
        self._tables = {}

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"<Results of {self.scenario.plan.title}: {len(self)} runs>"

    def _repr_html_(self) -> str:
        from ._html import escape, figure, table

        head = [*self.scenario.axes, "runs", "throughput, Mbit/s", "95 %"]
        cells = [
            [*labels, r["n"], f"{r['mean'] * 8e-6:.3f}", f"± {(r.get('ci95') or 0) * 8e-6:.3f}"]
            for _, labels, r in self._summaries("throughput")
        ]
        title = f"<b>{escape(self.scenario.plan.title)}</b>"
        if len(cells) > 40:
            title += f", the 10 cells with the highest throughput and the 10 with the lowest, of {len(cells)}"
            cells.sort(key=lambda cell: -float(cell[-2]))
            cells = cells[:10] + cells[-10:]
        return f"{title}{table(head, cells)}" + figure(lambda: self.plot())


class Recording:
    """One run with all its events. It can be pickled, with all its tables."""

    def __init__(self, recording: _lasthop.Recording, scenario: Scenario) -> None:
        self._recording = recording
        self._version: str = _lasthop.identity()
        #: The scenario that was run.
        self.scenario = scenario
        #: The title of plots.
        self.title = f"{scenario.plan.title}, seed {recording.seed}"

    @property
    def series(self) -> Table:
        """The time-sequence series of the first flows: times of sent, acknowledged and lost data. Times are in seconds,
        positions in bytes of the stream."""
        return self._recording.series

    @property
    def events(self) -> Table:
        """Every event, as in ``events.csv`` of the command."""
        return self._recording.events

    @property
    def tcb(self) -> Table:
        """The control block at each event of a TCP end point, as in ``tcb.csv`` of the command."""
        return self._recording.tcb

    @property
    def result(self) -> dict[str, Any]:
        """The results of the run, exactly as without the recording."""
        result: dict[str, Any] = _loads(self._recording.result)
        return result

    @property
    def links(self) -> list[str]:
        """Names of the stages that carry packets."""
        return self._recording.links

    def to_pcapng(self, path: str | os.PathLike[str], link: str | None = None) -> None:
        """Writes the capture of a link for Wireshark. The default is the first link; ``drops`` is the capture of all
        dropped packets. Packets contain only headers.

        Raises:
            ScenarioError: There is no such link.
        """
        if link is None:
            link = self.links[0]
        if link != "drops" and link not in self.links:
            help = f"there are {', '.join([*self.links, 'drops'])}"
            raise ScenarioError(f"there is no link `{link}`", help=help)
        if self._version != _lasthop.identity():
            message = f"this recording is of {self._version}, and this is {_lasthop.identity()}"
            raise ScenarioError(message, help="packets are simulated again: use the version of the recording")
        data = self._recording.pcapng(None if link == "drops" else link)
        with open(path, "wb") as file:
            file.write(data)

    def plot_sequence(self, flow: int = 0, ax: Axes | None = None) -> Axes:
        """Draws the time-sequence plot of a flow, as the report does. Needs ``lasthop[plot]``."""
        from . import plot

        return plot.sequence(self.series, flow, self.title, ax)

    def __getstate__(self) -> tuple[Any, ...]:
        one = self._recording
        parts = (one.seed, (one.series, one.events, one.tcb), one.result, one.end)
        return self.scenario, self.title, self._version, parts

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.scenario, self.title, self._version, parts = state
        self._recording = _lasthop.restore_recording(self.scenario.plan, *parts)

    def __repr__(self) -> str:
        return f"<Recording of {self.title}: {len(self.events)} events>"

    def _repr_html_(self) -> str:
        from ._html import escape, figure

        return f"<b>{escape(self.title)}</b>: {len(self.events)} events" + figure(lambda: self.plot_sequence())


def run(
    scenario: Scenario,
    seeds: int | Sequence[int] | None = None,
    *,
    jobs: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Makes all runs of a scenario: every combination of its axes with every seed.

    The interpreter's lock is released, and Ctrl-C stops the runs at once. The results do not depend on the number of
    jobs; they are those of the command ``lasthop run``.

    Args:
        scenario: What to run.
        seeds: Number of seeds, instead of the scenario's ``runs``, or consecutive seeds such as ``range(21, 41)``.
        jobs: Number of parallel runs; 0 means one on each processor.
        progress: Called repeatedly with the number of finished runs, and of all runs.

    Raises:
        ScenarioError: The scenario cannot be run.
    """
    scenario = _seeded(scenario, seeds)
    _warn(scenario)
    return Results(_lasthop.run(scenario.plan, _jobs(jobs), _progress(progress)), scenario)


def run_points(
    scenario: Scenario,
    points: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] | Any,
    seeds: int | None = None,
    *,
    jobs: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Makes the runs of a table of settings, for designs of experiments (SALib, scipy.stats.qmc, Optuna).

    Each row sets some keys, and all rows have the same seeds. The rows become an axis ``point`` with the numbers 0, 1, ...;
    the table of runs has a column of this name.

    Args:
        scenario: What to run; its own axes remain.
        points: A list of dicts, a dict of columns, or a data frame of polars or pandas. Columns are keys.
        seeds: As of :func:`run`.
        jobs: As of :func:`run`.
        progress: As of :func:`run`.
    """
    from . import _toml

    rows = _rows(points)
    if not rows:
        raise ScenarioError("there are no points", help="give at least one row, such as {'errors.mean': '16KiB'}")
    tables = []
    for i, row in enumerate(rows):
        sets = "".join(f", {k} = {_toml.value(k, v)}" for k, v in row.items())
        tables.append(f'{{label = "{i}"{sets}}}')
    changed = scenario._changed([("vary", f"point={','.join(tables)}")])
    return run(changed, seeds, jobs=jobs, progress=progress)


def record(scenario: Scenario, seed: int | None = None) -> Recording:
    """Makes one run and records all its events: about 100 bytes of memory for each event.

    Raises:
        ScenarioError: The scenario has more than one cell (:meth:`Scenario.cell` selects one), or cannot be run.
    """
    plan = scenario.plan
    if len(plan.cells) > 1:
        left = ", ".join(f"{axis}=..." for axis in scenario.axes)
        raise ScenarioError(f"this scenario has {len(plan.cells)} cells", help=f"choose one: scenario.cell({left})")
    _warn(scenario)
    seed = plan.first_seed if seed is None else _natural("seed", seed, 2**64 - 1)
    return Recording(_lasthop.record(plan, 0, seed), scenario)


def _loads(text: str) -> Any:
    # Imported here: the import of json takes as long as that of this whole package.
    import json

    return json.loads(text)


def _rows(points: Any) -> list[Mapping[str, Any]]:
    if hasattr(points, "to_dicts"):
        rows: list[Mapping[str, Any]] = points.to_dicts()
        return rows
    if hasattr(points, "to_dict") and hasattr(points, "columns"):
        records: list[Mapping[str, Any]] = points.to_dict("records")
        return records
    if hasattr(points, "items"):
        columns = dict(points.items())
        if len({len(column) for column in columns.values()}) > 1:
            raise ScenarioError("the columns of points have different lengths", help="give one value for each row")
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    if isinstance(points, (str, bytes)) or not hasattr(points, "__iter__"):
        help = "give a list of dicts, a dict of columns, or a data frame"
        raise ScenarioError(f"points is {points!r}", key="points", help=help)
    rows = list(points)
    for row in rows:
        if not hasattr(row, "items"):
            raise ScenarioError(f"a point is {row!r}", key="points", help="a point is a dict of keys and values")
    return rows


def _seeded(scenario: Scenario, seeds: int | Sequence[int] | None) -> Scenario:
    if not isinstance(scenario, Scenario):
        raise ScenarioError(
            f"scenario is {type(scenario).__name__}", key="scenario", help="create one with Scenario.load, .example or .from_dict"
        )
    if isinstance(seeds, Sequence) and not isinstance(seeds, str | bytes):
        all_of = [_natural("seeds", seed, 2**53) for seed in seeds]
        if not all_of or all_of != list(range(all_of[0], all_of[0] + len(all_of))):
            message = f"seeds is {seeds!r}"
            raise ScenarioError(message, key="seeds", help="a number of seeds, or consecutive ones: range(21, 41)")
        scenario, seeds = scenario.set("seed", all_of[0]), len(all_of)
    return scenario if seeds is None else scenario.set("runs", _natural("seeds", seeds, 1_000_000, 1))


def _natural(name: str, given: object, most: int, least: int = 0) -> int:
    number = getattr(given, "__index__", None)
    if isinstance(given, bool) or number is None:
        raise ScenarioError(f"{name} is {given!r}", key=name, help=f"give a whole number from {least} to {most}")
    whole: int = number()
    if not least <= whole <= most:
        raise ScenarioError(f"{name} is {whole}", key=name, help=f"give a whole number from {least} to {most}")
    return whole


def _progress(progress: Callable[[int, int], object] | None) -> Callable[[int, int], object] | None:
    if progress is not None and not callable(progress):
        help = "give a function of two numbers: finished runs, and all runs"
        raise ScenarioError(f"progress is {progress!r}", key="progress", help=help)
    return progress


def _jobs(jobs: int) -> int:
    return _natural("jobs", jobs, 4096)


def _warn(scenario: Scenario) -> None:
    found = scenario.warnings
    if found:
        import warnings

        for warning in found:
            warnings.warn(str(warning), ScenarioWarning, stacklevel=3)
