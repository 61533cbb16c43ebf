from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

__all__ = ["Ack", "Plan", "Recording", "Results", "Session", "Sweep", "Table", "advise", "all_claims", "amount", "analyze", "battery", "commit", "compare", "energy", "examples", "explain", "fail", "identity", "left_open", "link_files", "nearest_example", "read_table", "record", "reproduce", "restore_recording", "restore_results", "run", "version", "with_link_file"]

_Progress = Callable[[int, int], object] | None
_Seen = tuple[float, float, float, float, float, float, float, float, float]

@final
class Ack:
    """The measurements of a sender after an ACK, or after a detected loss.

    A sender that keeps no record of its segments (such as ``reno``) measures no delivery rate and no losses.
    """
    @property
    def now(self) -> float:
        """Seconds since the start of the run."""
    @property
    def acked(self) -> int:
        """Bytes by which the left edge moved; 0 for a loss."""
    @property
    def rtt(self) -> float | None:
        """The round trip that this ACK measures, in seconds."""
    @property
    def min_rtt(self) -> float | None:
        """The shortest round trip of the connection, with that of the handshake."""
    @property
    def srtt(self) -> float | None:
        """The smoothed round trip: 7/8 of the last value and 1/8 of the new one."""
    @property
    def cwnd(self) -> int:
        """The congestion window, in bytes."""
    @property
    def ssthresh(self) -> int:
        """The slow-start threshold, in bytes."""
    @property
    def flight(self) -> int:
        """Unacknowledged bytes."""
    @property
    def mss(self) -> int:
        """Bytes of a full segment."""
    @property
    def initial_window(self) -> int:
        """Segments of the first window."""
    @property
    def in_flight(self) -> int:
        """Bytes in the network after this ACK: unacknowledged ones that are neither sacked nor lost."""
    @property
    def prior_in_flight(self) -> int:
        """Bytes in the network before this ACK."""
    @property
    def delivered(self) -> int:
        """Bytes that this ACK newly acknowledges, cumulatively or selectively."""
    @property
    def lost(self) -> int:
        """Bytes newly found to be lost."""
    @property
    def marked(self) -> int:
        """Bytes newly reported as marked (CE); 0 unless the peer counts marks (AccECN)."""
    @property
    def total_delivered(self) -> int:
        """Bytes delivered since the connection opened."""
    @property
    def total_lost(self) -> int:
        """Bytes lost since the connection opened."""
    @property
    def total_marked(self) -> int:
        """Bytes reported as marked since the connection opened."""
    @property
    def delivery_rate(self) -> float | None:
        """The measured delivery rate in bytes per second; None if this ACK does not measure it."""
    @property
    def prior_delivered(self) -> int | None:
        """``total_delivered`` at the transmission of the segment that measures the rate."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had too little to send, so that the path may be faster."""
    @property
    def pacing_rate(self) -> float | None:
        """The pacing rate that this control has set, in bytes per second."""
    @property
    def state(self) -> str:
        """``open``, ``recovery``, or ``loss`` after a timeout."""

@final
class Plan:
    def __new__(
        cls,
        text: str,
        name: str,
        origin: str,
        changes: list[tuple[str, str]],
        control: tuple[type, str, str, str | None] | None = None,
    ) -> Plan: ...
    @property
    def axes(self) -> list[tuple[str, list[str]]]: ...
    @property
    def cells(self) -> list[list[str]]: ...
    @property
    def hosts(self) -> list[str]: ...
    @property
    def title(self) -> str: ...
    @property
    def first_seed(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def warnings(self) -> list[dict[str, Any]]: ...
    def keys(self) -> list[str]: ...

@final
class Table:
    """An Arrow table, for all libraries that support the Arrow PyCapsule interface."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def to_pandas(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __reduce__(self) -> tuple[Callable[[bytes], Table], tuple[bytes]]: ...

@final
class Results:
    def runs(self) -> Table: ...
    def flows(self) -> Table: ...
    def stages(self) -> Table: ...
    @property
    def provenance(self) -> str: ...
    def json(self) -> str: ...
    def summary(self) -> str: ...
    def stuck(self) -> list[str]: ...

@final
class Recording:
    @property
    def series(self) -> Table: ...
    @property
    def events(self) -> Table: ...
    @property
    def tcb(self) -> Table: ...
    @property
    def result(self) -> str: ...
    @property
    def end(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def links(self) -> list[str]: ...
    def pcapng(self, link: str | None) -> bytes: ...

@final
class Session:
    def __new__(cls, plan: Plan, cell: int, seed: int, steered: bool) -> Session: ...
    def set_window(self, bytes: float) -> None: ...
    def set_rate(self, rate: float) -> None: ...
    def step(self, nanoseconds: int) -> tuple[_Seen, str]: ...
    @property
    def now(self) -> float: ...

@final
class Sweep:
    def __new__(
        cls,
        text: str,
        name: str,
        origin: str,
        changes: list[tuple[str, str]],
        points: str | None = None,
        control: tuple[type, str, str, str | None] | None = None,
    ) -> Sweep: ...
    @property
    def id(self) -> str: ...
    def __len__(self) -> int: ...
    def missing(self, store: str) -> list[tuple[int, int]]: ...
    def make(self, index: int, store: str, jobs: int = 1) -> bool: ...
    def make_all(self, store: str, jobs: int = 0, progress: _Progress = None) -> str: ...

def commit() -> str | None: ...
def version() -> str: ...
def identity() -> str: ...
def examples() -> list[tuple[str, str]]: ...
def link_files(text: str) -> list[str]: ...
def with_link_file(text: str, name: str, content: str) -> str: ...
def nearest_example(word: str) -> str | None: ...
def amount(label: str) -> tuple[float, str] | None: ...
def read_table(bytes: bytes) -> Table: ...
def restore_results(plan: Plan, json: str) -> Results: ...
def restore_recording(
    plan: Plan, seed: int, tables: tuple[Table, Table, Table], result: str, end: float
) -> Recording: ...
def run(plan: Plan, jobs: int = 0, progress: _Progress = None) -> Results: ...
def record(plan: Plan, cell: int, seed: int) -> Recording: ...
def compare(
    plan: Plan,
    options: Mapping[str, Any],
    jobs: int = 0,
    progress: _Progress = None,
) -> str: ...
def energy(
    plan: Plan,
    hardware: str | None = None,
    host: str | None = None,
    jobs: int = 0,
    progress: _Progress = None,
) -> str: ...
def advise(
    options: Mapping[str, Any],
    seeds: int | None,
    gain: float,
    vary: bool,
    jobs: int = 0,
    progress: _Progress = None,
) -> str: ...
def battery(options: Mapping[str, Any]) -> str: ...
def analyze(bytes: bytes, name: str, verify: bool) -> str: ...
def reproduce(claims: list[str], seeds: int, jobs: int = 0, progress: _Progress = None) -> str: ...
def explain(claims: list[str], options: Mapping[str, Any], jobs: int = 0, progress: _Progress = None) -> str: ...
def left_open(claims: list[str], testbed: bool) -> str: ...
def all_claims() -> list[tuple[str, str, str, str]]: ...
def fail(message: str) -> None: ...
