"""Congestion control in Python."""

from __future__ import annotations

from . import _lasthop
from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

Ack = _lasthop.Ack


class CongestionControl:
    """A congestion control. Derive from it, and pass the class to :meth:`Scenario.with_control`.

    An object is created for each connection. The scenario's ``tcp`` detects and repairs losses. There are two ways to
    write a control, as in the kernel:

    - :meth:`on_ack` and :meth:`on_loss` set the window outside of recovery, and the threshold after a loss.
    - :meth:`control` sets window and pacing rate at every ACK, also in recovery. It needs a sender that records its
      segments, such as ``tcp = "rack"``; for pacing set ``pacing = true``. With ``tcp = "bbr"`` both are given.

    :class:`Ack` has the measurements: delivery rate, marks, round trips, bytes in flight, losses. A control may depend
    on its arguments only; then the same seed gives the same run. Windows are in bytes, times in seconds, rates in bytes
    per second. :class:`lasthop.bbr.Bbr` is a complete example.

    >>> import lasthop as lh
    >>> class Fixed(lh.CongestionControl):
    ...     version = "1"
    ...     def on_ack(self, ack):
    ...         return 20 * ack.mss
    >>> s = lh.Scenario.example("west97-lan").with_control(Fixed, host="fixed")
    """

    #: The name in the keys of runs; the name of the class where it is empty.
    name: ClassVar[str] = ""
    #: The version in the keys of runs; it changes with the rule. Where it is empty: a hash of the class's source.
    version: ClassVar[str] = ""
    #: Whether the control reacts to each mark by a little (RFC 9331). Then packets are sent as ECT(1), if the peer
    #: counts marks.
    scalable: ClassVar[bool] = False

    def on_start(self, now: float, rtt: float) -> None:
        """The handshake is over; it took the round trip ``rtt``."""

    def on_ack(self, ack: Ack) -> float:
        """The congestion window after an ACK for new data, outside of recovery, in bytes."""
        raise NotImplementedError

    def control(self, ack: Ack) -> float | tuple[float, float | None]:
        """The congestion window in bytes after any ACK, or the window and the pacing rate in bytes per second.

        Where a class overrides this method, :meth:`on_ack` is not called, and recovery leaves the window alone. A rate
        of None leaves the pacing rate as it is.
        """
        raise NotImplementedError

    def on_loss(self, ack: Ack, timeout: bool) -> float:
        """The slow-start threshold after a loss, in bytes. Recovery takes the window down to it.

        ``timeout`` is true if the retransmission timer expired; then the window begins again at one segment. The
        default is half of the bytes in flight, and at least two segments.
        """
        return max(ack.flight / 2, 2 * ack.mss)

    def on_mark(self, ack: Ack) -> float | None:
        """The threshold and window after the peer echoed a mark (ECN), at most once per window of data; None leaves
        the window. The default is :meth:`on_loss`."""
        return self.on_loss(ack, False)

    def on_undo(self, ack: Ack, prior: int) -> float | None:
        """The window after a loss proved to be none; ``prior`` is the window before it. For None it is ``prior`` or the
        current window, whichever is larger; with :meth:`control` the window stays."""
        return None

    def on_restart(self, now: float, idle: bool) -> float | None:
        """The pacing rate in bytes per second when sending begins again with nothing in flight; None leaves it. ``idle``
        is true if the application had nothing to send."""
        return None

    @classmethod
    def identity(cls) -> tuple[str, str]:
        """Name and version in the keys of runs; the version is empty if it is unknown."""
        return cls.name or cls.__qualname__, cls.version or _source(cls)

    @classmethod
    def check_known(cls) -> None:
        """Raises a :class:`ScenarioError` for a control without a version: a store would mix its results with others."""
        if not cls.identity()[1]:
            raise ScenarioError(
                f"the congestion control `{cls.__qualname__}` has no version",
                help="its source cannot be read, so state the version in the class: `version = \"1\"`",
            )


def _source(cls: type) -> str:
    """A hash of the source of a class and of its bases."""
    import hashlib
    import inspect

    try:
        sources = [inspect.getsource(c) for c in cls.__mro__ if c not in (CongestionControl, object)]
    except (OSError, TypeError):
        return ""
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:16]
