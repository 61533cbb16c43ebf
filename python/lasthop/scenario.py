"""Scenarios: the input of runs."""

from __future__ import annotations

import os

from . import _lasthop, _toml
from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import IO, Any

    from .control import CongestionControl

_LONGEST = 16 << 20
_A_FILE = "a scenario is a TOML file in UTF-8"


class Scenario:
    """An experiment: a path with hosts at both ends, their transfers, the axes to vary, and the number of repetitions.

    It is immutable; :meth:`set` and :meth:`vary` return a new one. Invalid input raises a :class:`ScenarioError` with
    line, column and help immediately. Keys and values are those of scenario files, with units in the values: ``20ms``,
    ``2mbit``, ``64KiB``, ``1%``.

    >>> import lasthop as lh
    >>> s = lh.Scenario.example("west97-lan").set("errors.mean", "16KiB").vary("agent", ["none", "snoop"])
    >>> s.axes
    {'agent': ['none', 'snoop']}
    >>> s.count
    40
    """

    __slots__ = ("text", "name", "origin", "changes", "control", "host", "_plan")

    #: The text, in TOML.
    text: str
    #: The name of the scenario if the text has none.
    name: str
    #: The name in messages: a file, or a built-in scenario.
    origin: str
    #: The changes: ``set`` or ``vary``, and ``KEY=VALUE``.
    changes: tuple[tuple[str, str], ...]
    #: The congestion control in Python, if any.
    control: type[CongestionControl] | None
    #: The host with that congestion control; None for all hosts.
    host: str | None

    def __init__(self, text: str, name: str = "scenario", origin: str | None = None) -> None:
        """A scenario of this text. ``name`` is its name if the text has none."""
        if not isinstance(text, str):
            raise _wrong_type("a scenario's text", text, "give TOML as a str, or use Scenario.load or .from_dict")
        self.text = text
        self.name = name
        self.origin = origin or name
        self.changes = ()
        self.control = None
        self.host = None
        self._plan: _lasthop.Plan | None = None
        self.plan  # noqa: B018  raises an error now

    @classmethod
    def load(cls, source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Scenario:
        """The scenario in a file, given as a path or an open file.

        Raises:
            ScenarioError: The file cannot be read, or its text is no valid scenario.
        """
        read = getattr(source, "read", None)
        if read is not None:
            origin = str(getattr(source, "name", "file"))
            try:
                data = read(_LONGEST + 1)
            except ValueError as error:
                raise ScenarioError(f"{origin}: {error}", help="open it for reading, and keep it open") from None
        elif isinstance(source, (str, os.PathLike)):
            origin = os.fspath(source)
            try:
                with open(origin, "rb") as file:
                    data = file.read(_LONGEST + 1)
            except OSError as error:
                near = _lasthop.nearest_example(origin)
                help = f'did you mean Scenario.example("{near}")?' if near else _A_FILE
                raise ScenarioError(f"{origin}: {error.strerror or error}", help=help) from error
        else:
            raise _wrong_type("a scenario's file", source, "give a path, or a file that is open for reading")
        text = _decoded(data, origin)
        folder = os.path.dirname(origin)
        stem = os.path.splitext(os.path.basename(origin))[0] or "scenario"
        return cls(_with_files(text, folder), stem, origin)

    @classmethod
    def example(cls, name: str) -> Scenario:
        """A built-in scenario; :func:`lasthop.examples` lists them."""
        for known, text in _lasthop.examples():
            if known == name:
                return cls(text, known, f"{known} (built in)")
        near = _lasthop.nearest_example(str(name))
        help = f"did you mean `{near}`?" if near else "lasthop.examples() lists them"
        raise ScenarioError(f"there is no built-in scenario `{name}`", help=help)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], name: str = "scenario") -> Scenario:
        """A scenario of nested dicts and lists, with the keys of a file. Errors quote the resulting TOML."""
        if not hasattr(given, "items"):
            raise _wrong_type("a scenario", given, "give a dict, such as {'path': [...], 'transfer': {...}}")
        return cls(_toml.document(given), name, "dict")

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, Any]) -> Scenario:
        """The scenario of results, from their :attr:`Results.provenance`."""
        try:
            text, name, arguments = (provenance[key] for key in ("text", "name", "arguments"))
            changes = [(option.removeprefix("--"), change) for option, change in arguments]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _wrong_type("a provenance", provenance, "give Results.provenance") from None
        if provenance.get("control"):
            raise ScenarioError(
                f"these results are of the congestion control {provenance['control'][0]}",
                help="results do not contain its class: use Scenario(text) and with_control",
            )
        return cls(text, name)._changed(changes)

    def set(self, key: str | Mapping[str, Any], value: Any = None) -> Scenario:
        """The scenario with another value: ``s.set("errors.mean", "16KiB")``, or several as a dict.

        Keys are dotted as in the file, with the short forms of ``lasthop run --set``. Setting an axis leaves only this
        value of it.
        """
        pairs = key.items() if hasattr(key, "items") else [(key, value)]
        return self._changed([("set", f"{_key(k)}={_toml.word(k, v)}") for k, v in pairs])

    def vary(self, key: str, values: Iterable[Any]) -> Scenario:
        """The scenario with an axis: runs have every value, in all combinations with the values of other axes."""
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise _wrong_type(f"the values of the axis `{key}`", values, 'give a list, such as ["none", "snoop"]')
        words = [_toml.word(key, each) for each in values]
        if not words:
            raise ScenarioError(f"the axis `{key}` has no values", code="bad-axis", key=key, help="give at least one")
        return self._changed([("vary", f"{_key(key)}={','.join(words)}")])

    def cell(self, labels: Mapping[str, str | float] | None = None, /, **more: str | float) -> Scenario:
        """One combination of the values of all axes: ``s.cell(agent="snoop")``. A dotted axis needs a dict.

        A value is a label, or the number in the tables: ``s.cell({"errors.mean": 16384})`` selects ``16KiB``.

        Raises:
            ScenarioError: An axis has no such value, or an axis has no value here.
        """
        axes = self.axes
        changes = []
        for axis, value in {**(labels or {}), **more}.items():
            if axis not in axes:
                known = ", ".join(axes) or "none"
                raise ScenarioError(f"`{axis}` is not varied", code="bad-axis", key=axis, help=f"the axes are {known}")
            label = _label(axes[axis], value)
            if label is None:
                known = ", ".join(axes[axis])
                message = f"the axis `{axis}` has no value `{value}`"
                raise ScenarioError(message, code="bad-axis", key=axis, help=f"its values are {known}")
            changes.append(("set", f"{axis}={label}"))
        cell = self._changed(changes)
        # A labelled axis remains, with one label.
        if len(cell.plan.cells) > 1:
            left = ", ".join(f"{axis}=..." for axis, labels in cell.axes.items() if len(labels) > 1)
            raise ScenarioError("this is more than one cell", code="bad-axis", help=f"choose one: {left}")
        return cell

    def with_control(self, control: type[CongestionControl], host: str | None = None) -> Scenario:
        """The scenario with a congestion control in Python at ``host``, or at all hosts."""
        from .control import CongestionControl

        if not (isinstance(control, type) and issubclass(control, CongestionControl)):
            raise _wrong_type("a congestion control", control, "give a class derived from CongestionControl")
        return self._changed([], control, host)

    def _changed(
        self,
        changes: list[tuple[str, str]],
        control: type[CongestionControl] | None = None,
        host: str | None = None,
    ) -> Scenario:
        other = object.__new__(Scenario)
        # A new setting of a key replaces earlier ones.
        again = {change.split("=", 1)[0] for _, change in changes}
        unchanged = tuple(c for c in self.changes if c[1].split("=", 1)[0] not in again)
        other.__setstate__((self.text, self.name, self.origin, unchanged + tuple(changes), self.control, self.host))
        if control is not None:
            other.control, other.host = control, host
        other.plan  # noqa: B018  raises an error now
        return other

    @property
    def plan(self) -> _lasthop.Plan:
        """The checked scenario with all its runs."""
        if self._plan is None:
            control = None
            if self.control is not None:
                control = (self.control, *self.control.identity(), self.host)
            self._plan = _lasthop.Plan(self.text, self.name, self.origin, list(self.changes), control)
        return self._plan

    @property
    def axes(self) -> dict[str, list[str]]:
        """The axes: name and labels of each. The first axis changes slowest."""
        return dict(self.plan.axes)

    @property
    def count(self) -> int:
        """Number of runs."""
        return self.plan.count

    @property
    def keys(self) -> list[str]:
        """The key of each run. Runs with equal keys have equal results."""
        return self.plan.keys()

    @property
    def warnings(self) -> list[ScenarioError]:
        """Settings that are valid but probably not intended, with their places."""
        return [ScenarioError(**fields) for fields in self.plan.warnings]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash(self.__getstate__())

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.text, self.name, self.origin, self.changes, self.control, self.host)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.text, self.name, self.origin, self.changes, self.control, self.host = state
        self._plan = None

    def __repr__(self) -> str:
        calls = "".join(f".{how}({change})" for how, change in self.changes)
        return f"<Scenario {self.plan.title}{calls}: {self.count} runs>"

    def _repr_html_(self) -> str:
        from ._html import escape, table

        axes = self.axes
        rows = [[axis, ", ".join(labels)] for axis, labels in axes.items()]
        varied = table(["axis", "values"], rows) if rows else ""
        changes = "<br>".join(escape(f"{how} {change}") for how, change in self.changes)
        return f"<b>{escape(self.plan.title)}</b>: {self.count} runs<br>{changes}{varied}"


def _label(labels: list[str], value: object) -> str | None:
    """The label that equals ``value``, as a text or as the number in the tables."""
    if str(value) in labels:
        return str(value)
    if isinstance(value, str) or not hasattr(value, "__float__"):
        return None
    for label in labels:
        amount = _lasthop.amount(label)
        if amount is not None and amount[0] == value:
            return label
    return None


def _wrong_type(name: str, given: object, help: str) -> ScenarioError:
    return ScenarioError(f"{name} is {_toml.brief(given)}", help=help)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _wrong_type("a key", key, "give a str, dotted as in the file: `errors.mean`")
    return key


def _decoded(data: str | bytes, origin: str) -> str:
    if len(data) > _LONGEST:
        raise ScenarioError(f"{origin}: too large for a scenario", help=_A_FILE)
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ScenarioError(f"{origin}: this is not a text file", help=_A_FILE) from None


def _with_files(text: str, folder: str) -> str:
    """The text with the contents of the files that it names."""
    help = "a scenario names files in its directory: traces of mm-link, CSV files, or visits such as `8s east`"
    for name in _lasthop.link_files(text):
        try:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read(_LONGEST + 1)
        except OSError as error:
            raise ScenarioError(f"{name}: {error}", help=help) from error
        text = _lasthop.with_link_file(text, name, _decoded(content, name))
    return text
