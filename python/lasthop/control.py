"""Congestion control in Python."""

from __future__ import annotations

from . import _lasthop
from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

Ack = _lasthop.Ack


class CongestionControl:
    """The rule by which a sender's congestion window opens and closes. Derive from it, and hand the class to
    :meth:`Scenario.with_control`.

    An object is made for each connection. Losses are detected and repaired as the scenario's ``tcp`` says; the rule
    only says how large the window is. It must depend on nothing but what it is told: then the same seed gives the
    same run. Windows are in bytes, times in seconds.

    >>> import lasthop as lh
    >>> class Fixed(lh.CongestionControl):
    ...     version = "1"
    ...     def on_ack(self, ack):
    ...         return 20 * ack.mss
    >>> s = lh.Scenario.example("west97-lan").with_control(Fixed, host="fixed")
    """

    #: The name that enters the keys of runs; the class's own where it is empty.
    name: ClassVar[str] = ""
    #: Changes whenever the rule does, and enters the keys of runs. Where it is empty: a hash of the class's source.
    version: ClassVar[str] = ""

    def on_ack(self, ack: Ack) -> float:
        """The congestion window after an ACK for new data, outside of recovery, in bytes."""
        raise NotImplementedError

    def on_loss(self, ack: Ack, timeout: bool) -> float:
        """The threshold that recovery takes the window down to, in bytes, after a loss. ``timeout`` says whether the
        retransmission timer expired; then the window begins again at one segment. By default half of what is in
        flight, and two segments at least."""
        return max(ack.flight / 2, 2 * ack.mss)

    @classmethod
    def identity(cls) -> tuple[str, str]:
        """Name and version as they enter the keys of runs; the version is empty where none is known."""
        return cls.name or cls.__qualname__, cls.version or _source(cls)

    @classmethod
    def check_known(cls) -> None:
        """Raises a :class:`ScenarioError` for a rule without a version: its results would be mixed with others'."""
        if not cls.identity()[1]:
            raise ScenarioError(
                f"the congestion control `{cls.__qualname__}` has no version",
                help="its source cannot be read, so say which one it is: `version = \"1\"` in the class",
            )


def _source(cls: type) -> str:
    """A hash of the source of a class and of those that it is derived from."""
    import hashlib
    import inspect

    try:
        sources = [inspect.getsource(c) for c in cls.__mro__ if c not in (CongestionControl, object)]
    except (OSError, TypeError):
        return ""
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:16]
