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
      segments, such as ``tcp = "rack"``; for pacing set ``pacing = true``. ``tcp = "bbr"`` has both.

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

    #: The name in the keys of runs; if empty, the name of the class.
    name: ClassVar[str] = ""
    #: The version in the keys of runs: change it with the algorithm. If empty, a hash of the class's source.
    version: ClassVar[str] = ""
    #: Whether the control is scalable (RFC 9331): it reacts a little to each mark. Then packets are sent as ECT(1), if
    #: the peer counts marks.
    scalable: ClassVar[bool] = False

    def on_start(self, now: float, rtt: float) -> None:
        """Called after the handshake, which took the round trip ``rtt``."""

    def on_ack(self, ack: Ack) -> float:
        """The congestion window after an ACK for new data, outside of recovery, in bytes."""
        raise NotImplementedError

    def control(self, ack: Ack) -> float | tuple[float, float | None]:
        """The congestion window in bytes after any ACK, or the window and the pacing rate in bytes per second.

        If a class overrides this method, :meth:`on_ack` is not called, and recovery does not change the window. With
        None as rate the pacing rate remains.
        """
        raise NotImplementedError

    def on_loss(self, ack: Ack, timeout: bool) -> float:
        """The slow-start threshold after a loss, in bytes. Recovery reduces the window to it.

        ``timeout`` is true if the retransmission timer expired; then the window restarts at one segment. The default is
        half of the bytes in flight, but at least two segments.
        """
        return max(ack.flight / 2, 2 * ack.mss)

    def on_mark(self, ack: Ack) -> float | None:
        """The threshold and window after the peer echoed a mark (ECN), in bytes; None keeps the window. Called at most
        once per window of data. The default is :meth:`on_loss`."""
        return self.on_loss(ack, False)

    def on_undo(self, ack: Ack, prior: int) -> float | None:
        """The window after a spurious loss detection; ``prior`` is the window before it. None means the larger one of
        ``prior`` and the current window; with :meth:`control` it keeps the current window."""
        return None

    def on_restart(self, now: float, idle: bool) -> float | None:
        """The pacing rate in bytes per second when sending restarts without data in flight; None keeps the rate. ``idle``
        is true if the application had no data to send."""
        return None

    @classmethod
    def identity(cls) -> tuple[str, str]:
        """Name and version in the keys of runs; the version is empty if it is unknown."""
        return cls.name or cls.__qualname__, cls.version or _source(cls)

    @classmethod
    def check_known(cls) -> None:
        """Raises a :class:`ScenarioError` for a control without a version: a store could mix results of two versions."""
        if not cls.identity()[1]:
            raise ScenarioError(
                f"the congestion control `{cls.__qualname__}` has no version",
                help="its source cannot be read, so set the version in the class: `version = \"1\"`",
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
