"""Which clocks the inputs have, what relates each to the wall clock and to each other, and what else could."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from traceconv.align import clock_graph
from traceconv.align.domains import one_clock_options, spans
from traceconv.align.facts import NO_FACTS, Facts
from traceconv.align.stated import lines_of_readings, state
from traceconv.clocks import REALTIME, ClockDomain, ClockMap, Run, Zero
from traceconv.ir.trace import Trace
from traceconv.registry import importer_class


@dataclass(frozen=True, slots=True)
class ClockLine:
    """A clock of an input.

    Attributes:
        file: the input.
        clock: its domain.
        events: whether events stand on it; else it only relates others.
        realtime: what relates it to CLOCK_REALTIME; None if nothing does.
    """

    file: str
    clock: ClockDomain
    events: bool
    realtime: ClockMap | None


@dataclass(frozen=True, slots=True)
class PairLine:
    """Two inputs: what relates their events, or what would.

    Attributes:
        file, other: the inputs.
        way: how times of the one become times of the other; None if nothing relates them.
        advice: sentences on what would relate them; empty if something does.
    """

    file: str
    other: str
    way: ClockMap | None
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """All clocks, and all pairs of inputs that have events with times."""

    clocks: list[ClockLine]
    pairs: list[PairLine]


def survey(traces: Sequence[Trace], facts: Facts = NO_FACTS, offsets: Mapping[int, int] | None = None) -> Survey:
    """What is known of the clocks of some inputs; nothing is refused for want of a relation.

    Raises:
        InconsistentClocks: the facts contradict themselves or the files.
        UsageError: a fact does not fit its input.
    """
    stated = state(traces, facts, offsets)
    traces, lines = lines_of_readings(stated.traces)
    graph = clock_graph(traces, [*stated.relations, *lines])
    to_realtime = graph.maps_to(REALTIME)
    clocks = [
        ClockLine(trace.sources[0].name, domain, number in used, to_realtime.get(domain))
        for trace in traces
        for used in (spans(trace),)
        for number, domain in enumerate(trace.clocks)
        if number in used or domain.run is not Run.TOTALS
    ]
    main = [_main_clock(trace) for trace in traces]
    pairs = []
    for (one, clock), (other, other_clock) in combinations(zip(traces, main, strict=True), 2):
        if clock is None or other_clock is None:
            continue
        way = graph.maps_to(other_clock).get(clock)
        advice = () if way is not None else _advice(one, clock, other, other_clock)
        pairs.append(PairLine(one.sources[0].name, other.sources[0].name, way, advice))
    return Survey(clocks, pairs)


def _main_clock(trace: Trace) -> ClockDomain | None:
    """The first clock of events with times, or that of events without; None for clocks and totals alone."""
    used = [trace.clocks[number] for number in spans(trace) if trace.clocks[number].run is not Run.TOTALS]
    return next((domain for domain in used if not domain.synthetic), used[0] if used else None)


def _advice(one: Trace, clock: ClockDomain, other: Trace, other_clock: ClockDomain) -> tuple[str, ...]:
    """What would relate two inputs: what their formats say of themselves, then what the user can."""
    names = [trace.sources[0].name for trace in (one, other)]
    words = []
    for trace, domain in ((one, clock), (other, other_clock)):
        if domain.zero is not Zero.UNIX_EPOCH:
            words.append(f"{trace.sources[0].name}: {importer_class(trace.sources[0].format).line_up}")
    options = one_clock_options(one, clock, other, other_clock)
    if options:
        words.append(f"if both count the monotonic clock of one machine: {options}")
    for name, domain in zip(names, (clock, other_clock), strict=True):
        if domain.zero is Zero.BOOT and not domain.machine and not options:
            words.append(f"if {name} counts the monotonic clock of this machine: --clock {shlex.quote(name)}=monotonic")
    if clock.zero is Zero.BOOT or other_clock.zero is Zero.BOOT:
        words.append("next time, read the clocks around the run: traceconv anchor -o anchor.json -- COMMAND")
    anchor = f"{names[0]}:NAME#1.start={names[1]}:NAME#1.start"
    words.append(f"if an event of one is an event of the other: --anchor {shlex.quote(anchor)}")
    return tuple(words)
