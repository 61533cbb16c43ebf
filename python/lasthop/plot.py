"""Figures in the style of ``lasthop plot``. Needs ``lasthop[plot]``.

The style is a Matplotlib style file, for other figures too: ``plt.style.use("lasthop.figure")``, or
``"lasthop.figure_dark"`` for slides.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib import pyplot

from ._errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from . import _lasthop

#: The colours of figures by name, dark on light and light on dark.
COLOURS = {
    "paper": ("#ffffff", "#14181d"),
    "ink": ("#1b2430", "#e7ebf0"),
    "muted": ("#5c6773", "#9ba6b2"),
    "grid": ("#e3e7ec", "#2a323b"),
    "axis": ("#9aa5b1", "#5b6672"),
    "stall": ("#f0ead6", "#2c2a20"),
    "blue": ("#0072b2", "#5ab4ea"),
    "orange": ("#bf7900", "#f0b23c"),
    "green": ("#00875f", "#2fc49a"),
    "purple": ("#b4558c", "#dd90bd"),
    "sky": ("#3a9bd6", "#8fd0f5"),
    "red": ("#cc3311", "#ff7458"),
}
KIB = 1024
#: The marks of retransmissions: mark, colour, name.
_AGAIN = {
    "fast": ("^", "orange", "fast retransmission"),
    "timeout": ("D", "purple", "retransmission after timeout"),
    "eln": ("s", "sky", "retransmission after loss notice"),
    "probe": ("s", "purple", "tail loss probe"),
    "local": ("o", "green", "local retransmission"),
    "again": ("o", "orange", "retransmission"),
}


def _axes(ax: Axes | None, height: float = 4.0) -> Axes:
    """The given axes unchanged, or new ones in the style."""
    if ax is not None:
        return ax
    # A dark style in use selects the dark figures.
    name = "figure_dark" if _is_dark(matplotlib.rcParams["axes.facecolor"]) else "figure"
    path = os.path.join(os.path.dirname(__file__), f"{name}.mplstyle")
    style = matplotlib.rc_params_from_file(path, use_default_template=False)
    # `style.context` does not work: the first figure sets up a notebook's backend, and the end of the context would undo that.
    before = {key: matplotlib.rcParams[key] for key in style}
    matplotlib.rcParams.update(style)
    try:
        return pyplot.subplots(figsize=(7.2, height))[1]
    finally:
        matplotlib.rcParams.update(before)


def _is_dark(colour: Any) -> bool:
    from matplotlib.colors import to_rgb

    return sum(to_rgb(colour)) < 1.5


def _colour(ax: Axes, name: str) -> str:
    return COLOURS[name][_is_dark(ax.get_facecolor())]


def _titled(ax: Axes, title: str, x: str, y: str) -> Axes:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=_colour(ax, "ink"))
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def sequence(series: _lasthop.Table, flow: int, title: str, ax: Axes | None = None) -> Axes:
    """The time-sequence plot of flow number ``flow``: a vertical stroke for each packet, and the ACKs as a line."""
    columns = {name: series[name] for name in ("flow", "what", "at_s", "to_s", "start", "end", "kind")}
    flows = list(dict.fromkeys(columns["flow"]))
    if not 0 <= flow < len(flows):
        raise ScenarioError(f"there is no flow {flow}", key="flow", help=f"the series has {len(flows)}, counted from 0")
    rows: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*columns.values()):
        row = dict(zip(columns, values))
        if row["flow"] == flows[flow]:
            rows.setdefault(row["what"], []).append(row)
    ax = _axes(ax)
    for stall in rows.get("stall", []):
        ax.axvspan(stall["at_s"], stall["to_s"], color=_colour(ax, "stall"), linewidth=0, zorder=0)
    for bad in rows.get("bad", []):
        ax.axvspan(bad["at_s"], bad["to_s"], color=_colour(ax, "red"), alpha=0.18, linewidth=0, zorder=0)
    acked = rows.get("acked", [])
    if acked:
        to = [row["end"] / KIB for row in acked]
        at = [row["at_s"] for row in acked]
        ax.step(at, to, where="post", color=_colour(ax, "muted"), linewidth=1, label="acknowledged")
    sent = rows.get("sent", [])
    first = [row for row in sent if row["kind"] == "first"]
    low, high = ([row[key] / KIB for row in first] for key in ("start", "end"))
    ax.vlines([row["at_s"] for row in first], low, high, color=_colour(ax, "blue"), linewidth=2.2, label="data")
    for kind, (mark, colour, words) in _AGAIN.items():
        _marks(ax, [row for row in sent if row["kind"] == kind], mark, colour, words)
    _marks(ax, rows.get("lost", []), "x", "red", "lost")
    ax.legend(loc="upper left", frameon=False, fontsize=8.6, labelcolor=_colour(ax, "ink"))
    return _titled(ax, f"{title}: {flows[flow]}" if len(flows) > 1 else title, "time (s)", "sequence (KiB)")


def _marks(ax: Axes, rows: list[dict[str, Any]], mark: str, colour: str, words: str) -> None:
    if rows:
        middle = [(row["start"] + row["end"]) / 2 / KIB for row in rows]
        face = "none" if mark == "o" else _colour(ax, colour)
        at = [row["at_s"] for row in rows]
        style: dict[str, Any] = {"color": _colour(ax, colour), "markerfacecolor": face, "linestyle": "none"}
        ax.plot(at, middle, marker=mark, markersize=5, label=f"{words} ({len(rows)})", **style)


#: Number of cells up to which each has a bar, and of the bars at both ends of more cells.
FEW, ENDS = 40, 15
#: Maximum number of rows and columns of a heat map.
MOST = 60


def cells(
    summary: list[dict[str, Any]], labels: list[list[str]], axes: list[str], name: str, ax: Axes | None = None
) -> Axes:
    """One number over cells: bars of few cells, a heat map of many cells with several axes, else the ends of their order."""
    unit = summary[0]["unit"] if summary else ""
    scale, unit = (125_000.0, "Mbit/s") if unit == "B/s" else (1.0, unit)
    words, unit = name.replace("_", " "), name if unit in ("", "1") else unit
    if len(summary) > FEW and len(axes) > 1:
        means = {tuple(each): row["mean"] / scale for each, row in zip(labels, summary)}
        return _heat(means, axes, f"{words} ({unit})" if unit != name else words, ax)
    names = [" ".join(each) or "all" for each in labels]
    title = words
    if len(summary) > FEW:
        order = sorted(range(len(summary)), key=lambda i: -summary[i]["mean"])
        title = f"{words}: the {ENDS} highest and the {ENDS} lowest of {len(summary)} cells"
        ends = order[:ENDS] + order[-ENDS:]
        summary, names = [summary[i] for i in ends], [names[i] for i in ends]
    return _bars(summary, names, scale, title, unit, ax)


def _heat(means: dict[tuple[str, ...], float], axes: list[str], words: str, ax: Axes | None) -> Axes:
    """A tile for each cell: the axis with the most values is horizontal, the others together are vertical."""
    from matplotlib.colors import LinearSegmentedColormap

    values = [list(dict.fromkeys(each[i] for each in means)) for i in range(len(axes))]
    across = max(range(len(axes)), key=lambda i: len(values[i]))
    others = list(dict.fromkeys(each[:across] + each[across + 1 :] for each in means))
    rows, columns = others[:MOST], values[across][:MOST]
    found = [[means.get((*row[:across], column, *row[across:]), float("nan")) for column in columns] for row in rows]
    ax = _axes(ax, height=1.6 + 0.16 * len(rows))
    colours = LinearSegmentedColormap.from_list("lasthop", [_colour(ax, "grid"), _colour(ax, "blue")])
    image = ax.imshow(found, aspect="auto", cmap=colours)
    ax.grid(visible=False)
    ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
    ax.set_yticks(range(len(rows)), [" ".join(row) for row in rows], fontsize=7)
    ax.figure.colorbar(image, ax=ax).outline.set_visible(False)
    drawn = len(rows) * len(columns)
    missing = len(others) * len(values[across]) - drawn
    title = f"{words}, {len(means)} cells" + (f"; {missing} of them do not fit" if missing else "")
    return _titled(ax, title, axes[across], ", ".join(axes[:across] + axes[across + 1 :]))


def _bars(
    summary: list[dict[str, Any]], labels: list[str], scale: float, title: str, unit: str, ax: Axes | None
) -> Axes:
    """Bars with 95 % confidence intervals."""
    ax = _axes(ax, height=1.2 + 0.35 * max(len(summary), 2))
    places = list(range(len(summary)))
    means = [row["mean"] / scale for row in summary]
    errors = [(row.get("ci95") or 0.0) / scale for row in summary]
    ax.barh(places, means, xerr=errors, color=_colour(ax, "blue"), ecolor=_colour(ax, "ink"), height=0.6)
    ax.set_yticks(places, labels)
    ax.grid(visible=False, axis="y")
    ax.invert_yaxis()
    return _titled(ax, title, unit, "")
