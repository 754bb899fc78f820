"""Inputs that do not overlap in time with any other one, and the zone or the day that would let them.

Most often a local time was taken for one of another zone. Nothing is moved for that: it is said, with what to type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from traceconv.align.constraint_parser import Facts
from traceconv.align.domains import spans
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import ClockMap, LocalTime, Run
from traceconv.model.trace import Trace

_MINUTE_NS = 60 * 10**9
_HOUR_NS = 60 * _MINUTE_NS
_DAY_NS = 24 * _HOUR_NS
#: All zones are so far ahead of UTC, in steps of this.
_LEAST_ZONE_NS, _MOST_ZONE_NS, _ZONE_STEP_NS = -12 * _HOUR_NS, 14 * _HOUR_NS, 15 * _MINUTE_NS
#: Where so many zones fit, or more, they are not listed.
_MOST_ZONES = 4


@dataclass(frozen=True, slots=True)
class _Placed:
    """An input on trace time.

    Attributes:
        index: which.
        name: of the file.
        begin, end: ns.
        bound_ns: how wrong that can be; 0 where nobody knows.
        clock: the first of its clocks, by number.
        local: what its local time was taken for; None if it is placed by none.
    """

    index: int
    name: str
    begin: int
    end: int
    bound_ns: int
    clock: int
    local: LocalTime | None

    def gap(self, other: _Placed, shift: int = 0) -> int:
        """How far apart the two are if this one is moved, ns; 0 or less if they overlap."""
        return max(other.begin - self.end - shift, self.begin + shift - other.end)

    def meets(self, other: _Placed, shift: int) -> bool:
        """Whether the two may overlap if this one is moved."""
        return self.gap(other, shift) <= self.bound_ns + other.bound_ns


def zone_text(ahead_ns: int) -> str:
    """A zone as --tz takes it, such as "+05:30"."""
    minutes = abs(ahead_ns) // _MINUTE_NS
    return f"{'-' if ahead_ns < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"


def zone_behind(local: LocalTime, shift: int, within_ns: int) -> int | None:
    """The zone, in ns ahead of UTC, in which a local time would be so much later; None if there is none."""
    steps = round(shift / _ZONE_STEP_NS)
    ahead = local.ahead_ns - steps * _ZONE_STEP_NS
    fits = steps and abs(shift - steps * _ZONE_STEP_NS) <= within_ns
    return ahead if fits and _LEAST_ZONE_NS <= ahead <= _MOST_ZONE_NS else None


def local_time_of(trace: Trace, clock: int) -> LocalTime | None:
    """What the local time that a clock of a trace is placed by was taken for; None if it is placed by none."""
    return next((snap.local for snap in trace.snapshots if snap.clock == trace.clocks[clock] and snap.local), None)


def warnings_of_no_overlap(
    traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]], facts: Facts, without: set[int]
) -> Iterator[tuple[tuple[int, int], Message]]:
    """What to say of each input that overlaps with no other one, with the numbers of the input and of its clock.

    Args:
        traces: the inputs.
        maps: for each one the way to trace time, by clock.
        facts: what the user says, for the day.
        without: inputs that are left out, since their events are put elsewhere.
    """
    placed = [one for one in _placed(traces, maps) if one.index not in without]
    alone = [one for one in placed if len(placed) > 1 and all(one.gap(other) > 0 for other in placed if other != one)]
    for one in alone:
        others = [other for other in placed if other != one]
        near = min(others, key=one.gap)
        text = Text.OVERLAPS_WITH_NONE(gap=one.gap(near), other=near.name)
        hints = [_hint(one, others, facts)]
        hints += [_hint(other, [one], facts, only_if_some=True) for other in others if other not in alone]
        yield (one.index, one.clock), Text.WITH_HINTS(said=(text, *filter(None, hints)))


def _placed(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Iterator[_Placed]:
    for index, (trace, found) in enumerate(zip(traces, maps, strict=True)):
        timed = [number for number in found if trace.clocks[number].run is not Run.TOTALS]
        spanned = spans(trace)
        ends = [found[number].at(end) for number in timed for end in spanned[number]]
        if ends:
            locals_ = [local for number in timed if (local := local_time_of(trace, number))]
            bound = max(found[number].bound_ns or 0 for number in timed)
            name = trace.sources[0].name
            yield _Placed(index, name, min(ends), max(ends), bound, timed[0], locals_[0] if locals_ else None)


def _hint(one: _Placed, others: Sequence[_Placed], facts: Facts, *, only_if_some: bool = False) -> Message | None:
    """How the local time of an input was read, and what would let it overlap with one of some others.

    Returns:
        None if it is placed by no local time, or if nothing would and only that is wanted.
    """
    if one.local is None:
        return None
    options, zone = _options(one, one.local, others, facts.dates.get(one.index)), zone_text(one.local.ahead_ns)
    if options is not None:
        return Text.ZONE_WOULD_OVERLAP(file=one.name, zone=zone, options=options)
    return None if only_if_some else Text.NO_ZONE_WOULD_OVERLAP(file=one.name, zone=zone)


def _options(one: _Placed, local: LocalTime, others: Sequence[_Placed], day: date | None) -> Message | None:
    """The day or the zones that would let an input overlap with one of some others, as options; None if none would."""
    for days in (-1, 1):
        if day is not None and any(one.meets(other, days * _DAY_NS) for other in others):
            return Text.DATE_IS(file=one.name, day=day + timedelta(days))
    zones = [
        ahead
        for ahead in range(_LEAST_ZONE_NS, _MOST_ZONE_NS + 1, _ZONE_STEP_NS)
        if any(one.meets(other, local.ahead_ns - ahead) for other in others)
    ]
    if len(zones) > _MOST_ZONES:
        return Text.ANY_ZONE_OF(file=one.name, count=len(zones))
    options = tuple(Text.ZONE_OPTION(file=one.name, zone=zone_text(ahead)) for ahead in zones)
    return Text.ONE_OPTION_OF(options=options) if options else None
