"""The result of an alignment: the maps to one time axis, and the receipt, which has a line for each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from traceconv.align.checks import Causality
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.domains import Machine
from traceconv.align.identity import Together
from traceconv.align.placement import NoOverlap
from traceconv.model.clocks import ClockDomain, ClockMap, Run, Verdict, worse
from traceconv.model.columns import I64
from traceconv.model.numbers import format_bound

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched
    from traceconv.align.devices import DeviceBound
    from traceconv.align.duration_layout import Placement
    from traceconv.align.estimate import PairEstimate
    from traceconv.align.inputs import ClockInput, HostsApart

#: If a warning is about several inputs, the most names of them that are listed after the first one.
_MOST_OTHERS = 3


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """How one clock of one input was put on trace time.

    Attributes:
        method: the sources of the map to trace time.
        offset_ns: what was added to each time of the clock, ns; with a drift, at one instant.
        bound_ns: how wrong a mapped time can be at most, with the resolution of the clock, ns; None if not known, and
            for totals and synthetic positions that nothing places.
        verdict: how far to trust the map: a `Verdict`, as text. "assumed" also for synthetic positions, and for
            times without a unit.
        drift_ppm: by how much trace time runs faster than the clock, ppm.
        matches: the number of events matched with those of another input, if the map rests on them.
        residual_ns: the median distance that remains between matched events, ns; None without any.
        messages: the warnings, texts or such as have one: reasons against the map, and assumptions that are wrong.
        note: the positions of the events, if not all were placed in the same way; else "".
        rank: the rank of the process in its job, None if the input states none.
        two_hosts: whether the map takes the wall clocks of two hosts for one, so that its bound is not known.
        moved_ns: how much later the first event is than its file states, ns; None if not known. Not in the metadata.
        device_bound_ns: how wrong times of its device can be against those of the first device of the job, ns; None if
            the bound of the clock holds there, too.
        resolution_ns: the smallest step of the clock, ns. Not in the metadata.
    """

    file: str
    format: str
    clock: str
    method: str
    offset_ns: int
    bound_ns: int | None
    verdict: str
    drift_ppm: float = 0.0
    matches: int = 0
    residual_ns: int | None = None
    messages: tuple[object, ...] = field(default=(), repr=False)
    note: str = ""
    host: str = ""
    rank: int | None = None
    world_size: int | None = None
    two_hosts: bool = False
    moved_ns: int | None = None
    device_bound_ns: int | None = None
    resolution_ns: int = 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings as text."""
        return tuple(map(str, self.messages))

    @property
    def bound_text(self) -> str:
        """The bound as text."""
        bound = "not known (clocks of hosts may differ)" if self.two_hosts else format_bound(self.bound_ns)
        devices = self.device_bound_ns
        return bound if devices is None else f"{bound}; {format_bound(devices)} between devices"

    def as_json(self) -> dict[str, Any]:
        """Return the members of the line in the metadata of a trace, without those that do not apply."""
        names = ["warnings" if member.name == "messages" else member.name for member in fields(self)]
        unless_none = ("residual_ns", "rank", "world_size", "device_bound_ns")
        unless_empty = ("drift_ppm", "matches", "warnings", "note", "host", "two_hosts")
        absent = {"moved_ns", "resolution_ns", *(name for name in unless_none if getattr(self, name) is None)}
        absent.update(name for name in unless_empty if not getattr(self, name))
        return {name: getattr(self, name) for name in names if name not in absent}


def moved_ns(clock: ClockInput, clock_map: ClockMap, by_file: ClockMap | None, target: ClockDomain) -> int | None:
    """Return how much later the first event of a clock is on trace time than its file states, ns; None if not known.

    Args:
        by_file: the same map by what the files alone state; None if they do not relate the two. Then the times of the
            file are compared as they are, unless they are synthetic, or trace time counts from 1970.
    """
    if by_file is None and (clock.domain.synthetic or target.is_wall_clock):
        return None
    first = clock.span[0]
    return clock_map.at(first) - (by_file or ClockMap()).at(first)


class Alignment(Struct, frozen=True):
    """Trace time, and a map to it from each clock of each input.

    Attributes:
        maps: for each input the map of each clock that events use, by the number of the clock.
        receipt: a line for each of these maps.
        placements: for each input without times that was laid into slices of another one: its position there.
        files: the names of all inputs, also of those without events, which have no line in the receipt.
        machines: for each input the machine that its pids and tids belong to.
        hosts: for each input a name for its host, equal for hosts that are related within a bound; "" where all are
            taken for one.
        together: the processes and threads that several inputs share.
        hosts_apart: for each two hosts the limits of the difference of their wall clocks, by common collectives.
        repeats: for each input that repeats another one that input, by numbers.
        skews: for each input the skews of its devices, by clock and track.
        collectives: the collectives of inputs of several ranks, until these are matched.
        others: for a log with calls of other processes than the recorded one: the rows of these slices.
        device_bounds: for inputs with collectives of a device the bound between devices, if it is less.
        constraints: the options of the user.
        again: aligns the inputs with other options, and returns what events say of that; raises as `align` does.
        zones_told: the inputs whose warnings tell what other zones would do: nobody need be asked for their zone.
    """

    clock: ClockDomain
    maps: list[dict[int, ClockMap]]
    receipt: list[ReceiptLine]
    pairs: list[PairEstimate] = []
    placements: dict[int, Placement] = {}
    files: list[str] = []
    machines: list[Machine] = []
    notes: dict[int, list[str]] = {}
    hosts: list[str] = []
    together: Together = Together()
    hosts_apart: Sequence[HostsApart] = ()
    repeats: Mapping[int, int] = {}
    skews: Sequence[Mapping[int, Mapping[int, Any]]] = ()
    collectives: Any = None
    others: Mapping[int, I64] = {}
    device_bounds: Mapping[int, DeviceBound] = {}
    constraints: Constraints = NO_CONSTRAINTS
    again: Callable[[Constraints], Causality] | None = None
    zones_told: frozenset[int] = frozenset()

    @property
    def lines(self) -> list[list[ReceiptLine]]:
        """For each input its lines of the receipt."""
        lines = iter(self.receipt)
        return [list(islice(lines, len(maps_of))) for maps_of in self.maps]

    @property
    def apart(self) -> list[str]:
        """For each input its host if its wall clock is assumed to agree with that of the first host; else "".

        Hosts that are related within a bound have one name.
        """
        alone = [any(clock_map.two_hosts for clock_map in maps_of.values()) for maps_of in self.maps]
        return [host if apart else "" for host, apart in zip(self.hosts, alone, strict=True)]

    @property
    def related(self) -> list[int]:
        """For each input a number, equal for inputs that are related within a bound; -1 for one without a bound."""
        names = self.apart
        sure = (
            all(
                way.bound_in_step_ns is not None and way.verdict in (Verdict.OK, Verdict.ASSUMED)
                for way in ways.values()
            )
            for ways in self.maps
        )
        return [names.index(name) if known else -1 for name, known in zip(names, sure, strict=True)]

    def doubted(self, inputs: Sequence[int], verdict: Verdict, text: str) -> Alignment:
        """Return the alignment with no better verdict than this one for some inputs, and a warning for the last.

        What events contradict beyond its bound has none.
        """
        unbound: dict[str, Any] = {} if verdict in (Verdict.OK, Verdict.ASSUMED) else {"bound_ns": None}
        maps, lines = list(self.maps), self.lines
        for index in inputs:
            maps[index] = {
                clock: structs.replace(clock_map, verdict=worse(clock_map.verdict, verdict), **unbound)
                for clock, clock_map in self.maps[index].items()
            }
            said = (text,) if index == inputs[-1] else ()
            lines[index] = [
                replace(
                    line, verdict=str(worse(Verdict(line.verdict), verdict)), messages=line.messages + said, **unbound
                )
                for line in lines[index]
            ]
        left = self.together.without(inputs) if verdict.unusable else self.together
        return structs.replace(self, maps=maps, receipt=list(chain.from_iterable(lines)), together=left)


class Aligned(Struct, frozen=True):
    """How the inputs of a trace were aligned.

    Attributes:
        alignment: the maps of their clocks; None if there was nothing to align.
        earlier: for a trace that was merged before: its receipt; nothing else is known then.
    """

    alignment: Alignment | None = None
    checks: Causality = Causality(())
    earlier: Sequence[ReceiptLine] = ()

    @property
    def matched(self) -> Matched | None:
        """The collectives that several ranks recorded; None without any."""
        return self.checks.matched

    @property
    def receipt(self) -> Sequence[ReceiptLine]:
        """The lines of the receipt, one for each clock."""
        return self.alignment.receipt if self.alignment else self.earlier


def warning_lines(receipt: Sequence[ReceiptLine]) -> list[str]:
    """Return a line for each warning, with all inputs that it is about."""
    return ["; ".join(filter(None, texts)) for texts in warned(receipt)]


def warned(receipt: Sequence[ReceiptLine]) -> list[tuple[str, str]]:
    """Return each warning once, with its first input, and a text with the other inputs that it is about, "" for none.

    A warning that two inputs give about each other is returned for the first one.
    """
    given: set[Hashable] = set()
    files_of = defaultdict[str, list[str]](list)
    for line in receipt:
        for message in line.messages:
            if isinstance(message, NoOverlap):
                if message.gap in given:
                    continue
                given.add(message.gap)
            if line.file not in files_of[str(message)]:
                files_of[str(message)].append(line.file)
    return [(f"warning: {first}: {text}", likewise(others)) for text, (first, *others) in files_of.items()]


def likewise(files: Sequence[str]) -> str:
    """Return a line that names a few of the other files that a line holds for; "" without others."""
    rest = len(files) - _MOST_OTHERS
    more = f" and {rest} more" if rest > 0 else ""
    return f"likewise {', '.join(files[:_MOST_OTHERS])}{more}" if files else ""


def receipt_line(
    clock: ClockInput,
    clock_map: ClockMap,
    moved: int | None,
    pairs: Sequence[PairEstimate],
    warnings: Sequence[object],
    placement: Placement | None,
    host: str,
) -> ReceiptLine:
    """Return the line of the receipt for a clock.

    Args:
        pairs: all estimates; those that the map rests on count.
        placement: which slices of its input lie in which, if it was placed by durations.
    """
    source, domain = clock.trace.sources[0], clock.domain
    used = [pair.estimate for pair in pairs if clock.key in pair.keys and pair.carries(clock_map)]
    basis = max(used, key=lambda estimate: estimate.matches, default=None)
    has_times = not domain.synthetic or (bool(clock_map.steps) and domain.run is Run.NONE)
    method = clock_map.method if clock_map.steps else _times_of(domain)
    if clock_map.bends:
        method = f"{method}, in {len(clock_map.lines)} segments of time"
    assumed = domain.synthetic or (domain.seconds_assumed and not clock_map.steps)
    # of a synthetic clock that the user places the position of one time is known, and of no other one
    bounded = has_times and clock_map.bound_ns is not None and not (domain.synthetic and clock_map.by_user)
    laid = placement if domain.run is Run.NONE else None
    return ReceiptLine(
        source.name,
        source.format,
        domain.name,
        method,
        clock_map.offset_ns,
        clock_map.stated_bound_ns + domain.resolution_ns if bounded else None,
        str(Verdict.ASSUMED if assumed and clock_map.verdict is Verdict.OK else clock_map.verdict),
        round(clock_map.drift_ppm, 4),
        laid.matches if laid else basis.matches if basis else 0,
        round(basis.residuals.median) if basis and basis.residuals.n and not laid else None,
        tuple(warnings),
        laid.note if laid else "",
        host,
        source.rank,
        source.world_size,
        clock_map.two_hosts,
        moved,
        resolution_ns=domain.resolution_ns,
    )


def _times_of(domain: ClockDomain) -> str:
    """Return what the times of a clock are that no relation moves."""
    if domain.synthetic:
        return "totals have no times" if domain.run is Run.TOTALS else "no times in the file: positions are synthetic"
    return "its own times, assumed to be seconds" if domain.seconds_assumed else "its own times"
