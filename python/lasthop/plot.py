"""Figures that look like those of the report. Needs ``lasthop[plot]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib import pyplot

from ._errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from . import _lasthop

#: The colours of the report.
COLOURS = {
    "ink": "#1b2430",
    "muted": "#5c6773",
    "grid": "#e3e7ec",
    "axis": "#9aa5b1",
    "stall": "#f0ead6",
    "blue": "#0072b2",
    "orange": "#d98c00",
    "green": "#00875f",
    "purple": "#b4558c",
    "sky": "#3a9bd6",
    "red": "#cc3311",
}
KIB = 1024
#: How packets that are sent again are drawn: mark, colour and word.
_AGAIN = {
    "fast": ("^", "orange", "fast retransmission"),
    "timeout": ("D", "purple", "retransmission after time-out"),
    "eln": ("s", "sky", "retransmission after loss notice"),
    "probe": ("s", "purple", "tail loss probe"),
    "local": ("o", "green", "local retransmission"),
    "again": ("o", "orange", "retransmission"),
}


def _axes(ax: Axes | None, width: float = 7.2, height: float = 4.0) -> Axes:
    if ax is None:
        ax = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    ax.grid(True, color=COLOURS["grid"], linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(COLOURS["axis"])
    ax.tick_params(colors=COLOURS["muted"], labelsize=9)
    return ax


def _titled(ax: Axes, title: str, x: str, y: str) -> Axes:
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=COLOURS["ink"])
    ax.set_xlabel(x, fontsize=9, color=COLOURS["muted"])
    ax.set_ylabel(y, fontsize=9, color=COLOURS["muted"])
    return ax


def sequence(series: _lasthop.Table, flow: int, title: str, ax: Axes | None = None) -> Axes:
    """The time-sequence plot of flow number ``flow``: a stroke for each packet over its bytes, the ACKs as a line."""
    columns = {name: series[name] for name in ("flow", "what", "at_s", "to_s", "start", "end", "kind")}
    flows = list(dict.fromkeys(columns["flow"]))
    if not 0 <= flow < len(flows):
        raise ScenarioError(f"there is no flow {flow}", help=f"the series has {len(flows)}, counted from 0")
    rows: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*columns.values()):
        row = dict(zip(columns, values))
        if row["flow"] == flows[flow]:
            rows.setdefault(row["what"], []).append(row)
    ax = _axes(ax)
    for stall in rows.get("stall", []):
        ax.axvspan(stall["at_s"], stall["to_s"], color=COLOURS["stall"], linewidth=0)
    for bad in rows.get("bad", []):
        ax.axvspan(bad["at_s"], bad["to_s"], color=COLOURS["red"], alpha=0.18, linewidth=0)
    acked = rows.get("acked", [])
    if acked:
        to = [row["end"] / KIB for row in acked]
        at = [row["at_s"] for row in acked]
        ax.step(at, to, where="post", color=COLOURS["muted"], linewidth=1, label="acknowledged")
    sent = rows.get("sent", [])
    first = [row for row in sent if row["kind"] == "first"]
    low, high = ([row[key] / KIB for row in first] for key in ("start", "end"))
    ax.vlines([row["at_s"] for row in first], low, high, color=COLOURS["blue"], linewidth=2.2, label="data")
    for kind, (mark, colour, words) in _AGAIN.items():
        _marks(ax, [row for row in sent if row["kind"] == kind], mark, colour, words)
    _marks(ax, rows.get("lost", []), "x", "red", "lost")
    ax.legend(loc="upper left", frameon=False, fontsize=8)
    return _titled(ax, f"{title}: {flows[flow]}" if len(flows) > 1 else title, "time (s)", "sequence (KiB)")


def _marks(ax: Axes, rows: list[dict[str, Any]], mark: str, colour: str, words: str) -> None:
    if rows:
        middle = [(row["start"] + row["end"]) / 2 / KIB for row in rows]
        face = "none" if mark == "o" else COLOURS[colour]
        at = [row["at_s"] for row in rows]
        style: dict[str, Any] = {"color": COLOURS[colour], "markerfacecolor": face, "linestyle": "none"}
        ax.plot(at, middle, marker=mark, markersize=5, label=f"{words} ({len(rows)})", **style)


def bars(summary: list[dict[str, Any]], axes: list[str], name: str, ax: Axes | None = None) -> Axes:
    """One number over cells: bars with 95 % confidence intervals."""
    ax = _axes(ax, height=1.2 + 0.35 * max(len(summary), 2))
    labels = [" ".join(str(row[axis]) for axis in axes) or "all" for row in summary]
    unit = summary[0]["unit"] if summary else ""
    scale, unit = (1000.0, "kB/s") if unit == "B/s" else (1.0, unit)
    places = list(range(len(summary)))
    means = [row["mean"] / scale for row in summary]
    errors = [(row.get("ci95") or 0.0) / scale for row in summary]
    ax.barh(places, means, xerr=errors, color=COLOURS["blue"], ecolor=COLOURS["ink"], height=0.6)
    ax.set_yticks(places, labels)
    ax.invert_yaxis()
    return _titled(ax, name.replace("_", " "), name if unit in ("", "1") else unit, "")
