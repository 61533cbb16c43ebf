"""Studies: questions that need many runs. Documents have the content that ``--json`` of the commands prints."""

from __future__ import annotations

import os

from . import _lasthop
from ._errors import AsWritten, ScenarioError
from .results import _jobs, _loads, _natural, _progress, _seeded
from .scenario import Scenario

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any


class Document(dict[str, "Any"]):
    """An answer: a dict with the fields of the command's JSON, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        from ._html import escape, table

        flat = [[key, _short(value)] for key, value in self.items()]
        return f"{table(['field', 'value'], flat)}" if flat else escape(self)


def _short(value: object) -> str:
    import json

    text = json.dumps(value) if not isinstance(value, str) else value
    return text if len(text) <= 200 else text[:197] + "..."


def compare(
    scenario: Scenario,
    schemes: str | Iterable[str] = (),
    *,
    baseline: str | None = None,
    loss: str | float | Iterable[str | float] = (),
    handoff: str | None = None,
    seeds: int | None = None,
    jobs: int = 0,
) -> Document:
    """Compares schemes on a scenario: the gain of each, next to theoretical limits (``lasthop compare``).

    Args:
        scenario: The scenario on which they run.
        schemes: Names of ``lasthop list schemes``, or ``["all"]``; the scenario's own if none is given.
        baseline: The scheme to which others are compared; by default the unchanged scenario.
        loss: Probabilities of loss, such as ``["0.1%", "1%"]`` or ``0.01``, instead of the scenario's errors.
        handoff: How hosts move under every scheme, such as ``every=15s,gap=80ms``.
        seeds: As of :func:`lasthop.run`.
        jobs: As of :func:`lasthop.run`.
    """
    plan = _plain(_seeded(scenario, seeds)).plan
    _word("baseline", baseline, "reno")
    _word("handoff", handoff, "every=15s,gap=80ms")
    losses = [loss] if isinstance(loss, (str, float, int)) else list(loss)
    options = {
        "schemes": _words("schemes", schemes, "snoop"),
        "baseline": baseline,
        "errors": [_share("loss", each) for each in losses],
        "handoff": handoff,
    }
    with AsWritten({"errors.p": "loss"}):
        return Document(_loads(_lasthop.compare(plan, options, _jobs(jobs))))


def energy(
    scenario: Scenario,
    *,
    hardware: str | None = None,
    host: str | None = None,
    seeds: int | None = None,
    jobs: int = 0,
) -> Document:
    """Computes lifetimes of batteries, the consumers of their energy, and the change that saves most (``lasthop energy``).

    Args:
        scenario: What to run.
        hardware: The hardware of both ends, a name of ``lasthop list hardware``.
        host: The host whose battery ranks the changes.
        seeds: As of :func:`lasthop.run`.
        jobs: As of :func:`lasthop.run`.
    """
    plan = _plain(_seeded(scenario, seeds)).plan
    _word("hardware", hardware, "phone")
    _word("host", host, "phone")
    with AsWritten():
        return Document(_loads(_lasthop.energy(plan, hardware, host, _jobs(jobs))))


def advise(
    *,
    link: str | None = None,
    rate: str | None = None,
    rate_back: str | None = None,
    delay: str | None = None,
    wired_delay: str | None = None,
    loss: str | float | None = None,
    burst: float | None = None,
    queue: str | None = None,
    sender: str | None = None,
    handoff: str | None = None,
    upload: bool = False,
    duplex: str | None = None,
    discipline: str | None = None,
    arq: str | None = None,
    losses: str | None = None,
    mtu: int | None = None,
    overhead: str | None = None,
    customers: int | None = None,
    bytes: str | int | None = None,
    can: str | Iterable[str] = (),
    capture: str | os.PathLike[str] | None = None,
    gain: float = 0.05,
    seeds: int | None = None,
    quick: bool = False,
    jobs: int = 0,
) -> Document:
    """Recommends changes for a link (``lasthop advise``).

    Args:
        link: Kind of the link, which gives the figures that are not stated: ``wifi6``, ``lte``, ``nr``, ``starlink``, ``geo``, ``lora``
            or ``nb-iot``.
        rate: Rate of the lossy link, such as ``20mbit``; required unless a kind of link or a capture has it.
        rate_back: Rate for ACKs, if it differs.
        delay: One-way delay of the link, such as ``5ms``.
        wired_delay: One-way delay of the rest of the path.
        loss: Share of lost data packets: ``1%`` or ``0.01``.
        burst: Mean number of consecutive losses.
        queue: Length of the queue of the link, such as ``50p`` or ``64KiB``.
        sender: The sender's TCP.
        handoff: How hosts move, such as ``every=15s,gap=80ms``.
        upload: Whether the data comes from the host behind the link.
        duplex: Whether the directions share the medium of the link: ``full``, or ``half`` (turns).
        discipline: Discipline of the queue of the link, such as ``fq-codel``.
        arq: Link layer with retransmissions, such as ``ll-sack``.
        losses: Kind of losses: packets ``vanish``, or arrive with ``damage`` that checksums detect.
        mtu: The largest IP packet, in bytes.
        overhead: Time on the link for each frame in addition to its bits, such as ``1ms``.
        customers: Number of simultaneous transfers through the same queue.
        bytes: Size of each transfer, such as ``8MB``; many schemes gain more with longer ones.
        can: Parts that can be changed: ``sender``, ``receiver``, ``base-station``, ``link``, ``router``, ``gateway``; by
            default all of them.
        capture: A capture at the sender, from which missing arguments are estimated.
        gain: The minimum gain that is worth a change, as a share.
        seeds: As of :func:`lasthop.run`.
        quick: Whether to skip the repetition with other losses and delays.
        jobs: As of :func:`lasthop.run`.
    """
    given = {
        "link": link,
        "rate": rate,
        "rate_back": rate_back,
        "delay": delay,
        "wired_delay": wired_delay,
        "loss": None if loss is None else _share("loss", loss, 0.9),
        "burst": None if burst is None else _number("burst", burst, 1, 1000),
        "queue": queue,
        "sender": sender,
        "handoff": handoff,
        "upload": _flag("upload", upload),
        "duplex": duplex,
        "discipline": discipline,
        "arq": arq,
        "losses": losses,
        "mtu": None if mtu is None else _natural("mtu", mtu, 9000, 296),
        "overhead": overhead,
        "customers": None if customers is None else _natural("customers", customers, 100, 1),
        "bytes": f"{_natural('bytes', bytes, 10**9, 1000)}B" if isinstance(bytes, int) else bytes,
        "can": _words("can", can, "sender"),
        "capture": None if capture is None else _bytes(capture)[0],
    }
    for name, example in _WORDS.items():
        _word(name, given[name], example)
    seeds = None if seeds is None else _natural("seeds", seeds, 1000, 2)
    gain, quick = _number("gain", gain, 0, 100), _flag("quick", quick)
    with AsWritten({"radio.queue": "queue", "radio.discipline": "discipline", "link-layer": "arq"}):
        return Document(_loads(_lasthop.advise(given, seeds, gain, not quick, _jobs(jobs))))


#: Arguments of :func:`advise` that are text, each with an example.
_WORDS = {
    "link": "lte",
    "rate": "20mbit",
    "rate_back": "1mbit",
    "delay": "5ms",
    "wired_delay": "20ms",
    "queue": "50p",
    "sender": "linux",
    "handoff": "every=15s,gap=80ms",
    "duplex": "half",
    "discipline": "fq-codel",
    "arq": "ll-sack",
    "losses": "damage",
    "overhead": "1ms",
    "bytes": "8MB",
}


def _word(name: str, value: object, example: str) -> None:
    """Raises a :class:`ScenarioError` if a value is not text: a number has no unit."""
    if value is not None and not isinstance(value, str):
        raise ScenarioError(f"{name} is {value!r}", key=name, help=f'give a text with its unit, such as "{example}"')


def _words(name: str, value: str | Iterable[str], example: str) -> list[str]:
    """One text, or several."""
    words: list[Any] = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else list(value)
    for word in words:
        if not isinstance(word, str):
            raise ScenarioError(f"{name} is {word!r}", key=name, help=f'give texts, such as ["{example}"]')
    return words


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ScenarioError(f"{name} is {value!r}", key=name, help="give True or False")
    return value


def _number(name: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__") or not least <= float(value) <= most:
        raise ScenarioError(f"{name} is {value!r}", key=name, help=f"give a number from {least} to {most}")
    return float(value)


def _share(name: str, value: object, most: float = 1.0) -> str:
    """A share as text: ``1%`` as it is, and numbers up to ``most``."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__") or not 0 <= float(value) <= most:
        raise ScenarioError(f"{name} is {value!r}", key=name, help=f"give a share from 0 to {most:g}, or a text such as 2%")
    return repr(float(value))


def battery(
    *radios: str,
    reports: float = 24,
    bytes: int = 50,
    over: str = "coap",
    session: str = "kept",
    capacity: str = "5Wh",
    self_discharge: str = "1%",
    base: str = "0W",
    inactivity: str | None = None,
    active: str | None = None,
    rest: str | None = None,
    release_assistance: bool = False,
    seeds: int = 10,
) -> Document:
    """Computes the battery lifetime of a device that reports over a radio (``lasthop battery``).

    Args:
        radios: Names of radios, such as ``lte-m``; by default all of them.
        reports: Reports per day.
        bytes: Application bytes in each report.
        over: Protocol of the reports over IP: ``coap`` or ``mqtt``.
        session: DTLS or TLS session of the reports: ``none``, ``full``, ``resumed`` or ``kept``.
        capacity: Capacity of the battery.
        self_discharge: Share of the capacity that the battery loses in a year without load.
        base: Mean power of the rest of the device.
        inactivity: LTE-M, NB-IoT: time from the last packet to the release of the connection.
        active: LTE-M, NB-IoT: time after the release in which the device can be paged.
        rest: LTE-M, NB-IoT: sleep mode between reports: ``psm``, ``drx:1.28s`` or ``edrx:81.92s``.
        release_assistance: LTE-M, NB-IoT: the device announces its last packet, and the network releases it immediately.
        seeds: Runs of each transfer.
    """
    options = {
        "radios": _words("radios", radios, "lte-m"),
        "reports": _number("reports", reports, 0.001, 86400),
        "bytes": _natural("bytes", bytes, 1000, 1),
        "over": over,
        "session": session,
        "capacity": capacity,
        "self_discharge": self_discharge,
        "base": base,
        "inactivity": inactivity,
        "active": active,
        "rest": rest,
        "release_assistance": _flag("release_assistance", release_assistance),
        "seeds": _natural("seeds", seeds, 1000, 1),
    }
    for name, example in _BATTERY_WORDS.items():
        _word(name, options[name], example)
    with AsWritten():
        return Document(_loads(_lasthop.battery(options)))


#: Arguments of :func:`battery` that are text, each with an example.
_BATTERY_WORDS = {
    "over": "mqtt",
    "session": "resumed",
    "capacity": "5Wh",
    "self_discharge": "1%",
    "base": "40uW",
    "inactivity": "10s",
    "active": "8s",
    "rest": "edrx:81.92s",
}


def analyze(capture: str | os.PathLike[str] | IO[bytes], *, verify: bool = False) -> Document:
    """Analyses TCP in a capture: losses, retransmissions, stalls, and their causes (``lasthop analyze``).

    Args:
        capture: Path of a pcap or pcapng file, or such a file that is open in binary mode.
        verify: Whether to drop packets with a wrong checksum, as a receiver would.
    """
    data, name = _bytes(capture)
    return Document(_loads(_lasthop.analyze(data, name, verify)))


def reproduce(*what: str, seeds: int = 20, jobs: int = 0) -> list[dict[str, Any]]:
    """Compares published with measured results (``lasthop reproduce``). Returns a dict for each claim, with its verdict.

    Claims about the CPU time of a kernel's TCP need the command.

    Args:
        what: Papers or claims; :func:`claims` lists them. By default all claims of the papers, which takes minutes.
            ``"related"`` means the claims of works that they cite.
        seeds: Runs of each case.
        jobs: As of :func:`lasthop.run`.
    """
    with AsWritten():
        text = _lasthop.reproduce(_words("what", what, "west97"), _natural("seeds", seeds, 100_000, 1), _jobs(jobs))
    results: list[dict[str, Any]] = _loads(text)
    return results


def explain(
    *claims: str,
    testbed: bool = False,
    sets: int = 1000,
    seeds: int | None = None,
    again: int = 20,
    sample: int = 1,
    fit: str | Iterable[str] = (),
    jobs: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Document:
    """Finds which unstated parameters of a paper decide its claims (``lasthop explain``).

    Args:
        claims: Claims of one testbed.
        testbed: Whether to include all other claims of the testbed.
        sets: Number of sets of values to try.
        seeds: Runs of each case for each set; the default depends on the testbed.
        again: Runs of each case in the repetition of the best sets with whole transfers; 0 skips it.
        sample: Seed of the sample of sets.
        fit: Claims, or conditions by number, that select the sets; the others test them. By default random halves.
        jobs: As of :func:`lasthop.run`.
        progress: Called repeatedly with the number of tried sets, and of all sets.
    """
    options = {
        "testbed": _flag("testbed", testbed),
        "sets": _natural("sets", sets, 1_000_000, 1),
        "seeds": None if seeds is None else _natural("seeds", seeds, 100_000, 1),
        "again": _natural("again", again, 100_000),
        "sample": _natural("sample", sample, 2**64 - 1),
        "fit": _words("fit", fit, "W-T4"),
    }
    with AsWritten():
        return Document(_loads(_lasthop.explain(_some(claims), options, _jobs(jobs), _progress(progress))))


def left_open(*claims: str, testbed: bool = False) -> list[dict[str, Any]]:
    """Parameters of claims that papers do not state (``lasthop explain --open``): a dict for each, with the assumed value,
    its range, and the reason."""
    parameters: list[dict[str, Any]] = _loads(_lasthop.left_open(_some(claims), testbed))
    return parameters


def _some(claims: tuple[str, ...]) -> list[str]:
    if not claims:
        raise ScenarioError("there are no claims", help="give at least one, such as W-T4; lasthop.claims() lists them")
    return list(claims)


def claims() -> list[dict[str, str]]:
    """The published claims that :func:`reproduce` can check."""
    return [dict(zip(("id", "paper", "where", "published"), claim)) for claim in _lasthop.all_claims()]


def _plain(scenario: Scenario) -> Scenario:
    if scenario.control is not None:
        raise ScenarioError(
            "a study does not take a congestion control in Python",
            help="to compare with it, call lasthop.run twice with the same seeds",
        )
    return scenario


def _bytes(capture: str | os.PathLike[str] | IO[bytes]) -> tuple[bytes, str]:
    read = getattr(capture, "read", None)
    help = "give a pcap or pcapng file, as tcpdump and Wireshark write them"
    if read is not None:
        name = str(getattr(capture, "name", "capture"))
        try:
            data = read()
        except ValueError as error:
            raise ScenarioError(f"{name}: {error}", help="open it in binary mode, and keep it open") from None
        if not isinstance(data, bytes):
            raise ScenarioError(f"{name}: this file is open in text mode", help="open it in binary mode")
        return data, name
    if not isinstance(capture, (str, os.PathLike)):
        raise ScenarioError(f"a capture is {type(capture).__name__}", help=help)
    name = os.fspath(capture)
    try:
        with open(name, "rb") as file:
            return file.read(), name
    except OSError as error:
        raise ScenarioError(f"{name}: {error.strerror or error}", help=help) from error
