"""Gather the clocks of all inputs, with all statements of files and user about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.anchors import graph_of
from traceconv.align.constraint_parser import NO_CONSTRAINTS, Constraints
from traceconv.align.constraints import Stated, moved_by_user, state
from traceconv.align.domains import Key, ends_of, rows_on, spans, with_own_domains
from traceconv.align.duplicates import repeated
from traceconv.align.machines import machines_of, with_clocks_of_boots, with_one_name, with_wall_clocks_of_hosts
from traceconv.align.names import NameMap
from traceconv.align.repeated_snapshots import lines_of_readings, warnings_of_set_clocks, with_readings_of_set_clocks
from traceconv.align.wording import counted
from traceconv.errors import UsageError
from traceconv.model.clocks import (
    REALTIME,
    SINCE_BOOT,
    ClockDomain,
    ClockGraph,
    ClockMap,
    ClockSnapshot,
    Provenance,
    Run,
    Step,
    Verdict,
)
from traceconv.model.columns import I64
from traceconv.model.numbers import format_within
from traceconv.model.source_info import Layer
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

if TYPE_CHECKING:
    from traceconv.align.device_skew import DeviceSkew

#: For each input the skews of its devices, by clock and track.
Skews = Sequence[Mapping[int, Mapping[int, "DeviceSkew"]]]
#: The maps of clocks to trace time.
Maps = Mapping[Key, ClockMap]
#: The ends of an interval are shown to this part of its width.
_PART_HIDDEN = 10
#: The values of `Policy.on_ambiguous`.
ON_AMBIGUOUS = ("fail", "separate", "best")


@dataclass(frozen=True, slots=True)
class Policy:
    """How uncertain an alignment may be.

    Attributes:
        names: which names of two traces mean the same work.
        same_run: whether the user states that all inputs are of one run.
        on_ambiguous: what to do with a trace that fits at several offsets, or at none. "fail" refuses it. "best" takes
            the best offset with its verdict, and refuses if there is none. "separate" draws it beside the others, from
            the start of the trace on, under names that tell this. A contradiction is refused, except with "best".
        estimate: whether to compare events.

    Raises:
        UsageError: `on_ambiguous` is another word.
    """

    names: NameMap = field(default_factory=NameMap)
    same_run: bool = False
    on_ambiguous: str = "fail"
    estimate: bool = True

    def __post_init__(self) -> None:
        if self.on_ambiguous not in ON_AMBIGUOUS:
            raise UsageError(f"on_ambiguous={self.on_ambiguous!r} is not one of {', '.join(ON_AMBIGUOUS)}")


@dataclass(frozen=True, eq=False)
class ClockInput:
    """A clock of an input that has events. Two of them are equal only if they are the same object.

    Attributes:
        index: the number of the input.
        clock: the number of the clock in its trace.
        trace: the input, with its private clock domains marked as its own.
        wall: the wall clock of the host of the input.
        correction: the map that takes out a drift that the user states; applied before all others.
        offset: the map of --offset; None without one.
    """

    index: int
    clock: int
    trace: Trace
    wall: ClockDomain = REALTIME
    correction: ClockMap = field(default_factory=ClockMap)
    offset: ClockMap | None = None

    @property
    def key(self) -> Key:
        """The numbers of the input and of the clock."""
        return self.index, self.clock

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.trace.sources[0].name

    @property
    def path(self) -> str:
        """The path of the file, as a command takes it."""
        return self.trace.sources[0].path or self.name

    @property
    def domain(self) -> ClockDomain:
        """The clock domain of its times."""
        return self.trace.clocks[self.clock]

    @property
    def by_user(self) -> ClockSnapshot | None:
        """What --clock states of this clock: the clock that it is; None without that option."""
        snapshots = (snap for snap in self.trace.snapshots if snap.clock == self.domain)
        return next((snap for snap in snapshots if snap.provenance is Provenance.USER), None)

    @property
    def counted(self) -> ClockDomain:
        """The clock that its times count: the one that --clock states, else the domain."""
        return self.domain if self.by_user is None else self.by_user.other

    def describe(self) -> str:
        """Return what its times count, by the user or else by the file, for messages."""
        return self.domain.describe() if self.by_user is None else self.by_user.method

    @property
    def layer(self) -> Layer | None:
        """The layer of software that the slices are of; None if the format does not state it."""
        return self.trace.sources[0].layer

    @cached_property
    def pids(self) -> frozenset[int]:
        """The pids of the processes of the input; empty unless all of them are known."""
        numbers = {track.pid for track in self.trace.tracks if track.kind is TrackKind.PROCESS}
        is_known = self.trace.sources[0].real_ids and None not in numbers
        return frozenset(pid for pid in numbers if is_known and pid is not None)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last time on this clock, ns."""
        return spans(self.trace)[self.clock]

    def times(self) -> I64:
        """Return all times on this clock, with the ends of slices, ns."""
        tables = [table for _, table in self.trace.timed_tables()]
        rows = [rows_on(self.trace, self.clock, table.track) for table in tables]
        slices = self.trace.slices
        ends = (slices.ts + slices.dur)[rows_on(self.trace, self.clock, slices.track)]
        return np.concatenate([*(table.ts[at] for table, at in zip(tables, rows, strict=True)), ends])


def of_other_pids(one: ClockInput, other: ClockInput, clocks: Sequence[ClockInput]) -> bool:
    """Return whether pids show that two recordings are of different processes, and so share no events.

    Inside a container a process has another pid than outside. So pids count only if each of the two recordings shares
    one with a recording of another tool on its host.
    """
    if not one.pids or not other.pids or one.pids & other.pids:
        return False
    others = [third for third in clocks if third.index not in (one.index, other.index)]
    return all(any(_of_one_process(side, third) for third in others) for side in (one, other))


def _of_one_process(one: ClockInput, other: ClockInput) -> bool:
    """Return whether recordings by two tools have a pid of one host in common."""
    if not one.pids & other.pids or one.wall.owner != other.wall.owner:
        return False
    return one.trace.sources[0].format != other.trace.sources[0].format


def is_timed(clock: ClockInput, maps: Maps) -> bool:
    """Return whether a clock has real times and a map to trace time that relates it to others."""
    placed = clock.key in maps and maps[clock.key].verdict is not Verdict.SEPARATE
    return placed and not clock.domain.synthetic


@dataclass(frozen=True, slots=True)
class HostsApart:
    """The limits of the difference of the wall clocks of two hosts, in the middle of their recordings.

    Attributes:
        host, other: the names of the hosts.
        least_ns, most_ns: by how much the clock of the host is ahead of the other one, at least and at most, ns.
        collectives: the number of collectives that both took part in.
    """

    host: str
    other: str
    least_ns: int
    most_ns: int
    collectives: int

    def describe(self) -> str:
        """Return the limits as a sentence."""
        host, other, least, most = self.host, self.other, self.least_ns, self.most_ns
        either = least < 0 < most
        if not either and most <= 0:
            host, other, least, most = other, host, -most, -least
        ends = [format_within(abs(end), (most - least) // _PART_HIDDEN) for end in (least, most)]
        by = f"by {counted(self.collectives, 'collective')}{'' if either else ' of both'}, the wall clock of {host} is"
        apart = f"at most {ends[0]} behind and {ends[1]} ahead" if either else f"{ends[0]} to {ends[1]} ahead"
        return f"{by} {apart} of that of {other} (in the middle of the recording)"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of an alignment, with all that files and user state about their clocks.

    Attributes:
        traces: the inputs, with private clock domains marked as their own.
        clocks: the clocks that have events, in order of the inputs.
        graph: the relations between clocks that files and user state.
        of_files: those that the files state, without what the user states and what collectives and events show.
        target: the clock domain of trace time.
        stated: all other statements.
        hosts_apart: for each two hosts the limits of the difference of their wall clocks, by common collectives.
        beside: for the wall clock of each host that options or collectives relate to that of an earlier one, the
            latter.
        repeats: for each input that repeats another one that input, by numbers.
        skews: for each input the skews of its devices, by clock and track; see `device_skew`.
    """

    traces: Sequence[Trace]
    clocks: Sequence[ClockInput]
    graph: ClockGraph
    of_files: ClockGraph
    target: ClockDomain
    stated: Stated
    hosts_apart: Sequence[HostsApart] = ()
    beside: Mapping[ClockDomain, ClockDomain] = field(default_factory=dict)
    repeats: Mapping[int, int] = field(default_factory=dict)
    skews: Skews = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files, as a command takes them."""
        sources = [trace.sources[0] for trace in self.traces]
        return tuple(source.path or source.name for source in sources)

    def are_one_recording(self, one: int, other: int) -> bool:
        """Return whether two inputs, by number, are copies or forms of one recording."""
        return self.repeats.get(one, one) == self.repeats.get(other, other)

    def of(self, index: int) -> list[ClockInput]:
        """Return the clocks of one input, by its number."""
        return [one for one in self.clocks if one.index == index]


def gathered(traces: Sequence[Trace], constraints: Constraints = NO_CONSTRAINTS) -> Inputs:
    """Return the clocks of some inputs, with all statements of files and user about them.

    Args:
        traces: the inputs, as read.
        constraints: what the user states.

    Raises:
        InconsistentClocks: the constraints contradict each other or the files.
        UsageError: a constraint does not fit its input.
    """
    traces = with_one_name(traces)
    by_host, walls = with_wall_clocks_of_hosts(traces, constraints)
    by_boot, notes, boots = with_clocks_of_boots(by_host)
    own = [with_own_domains(trace, index) for index, trace in enumerate(by_boot)]
    sure, set_clocks = with_readings_of_set_clocks(own)
    stated = state(sure, constraints, walls)
    with_lines, lines = lines_of_readings(stated.traces)
    relations = [*stated.relations, *lines]
    warnings = [*stated.warnings, *warnings_of_set_clocks(with_lines, relations, set_clocks)]
    machines = machines_of(traces, stated.traces, constraints, boots)
    stated = replace(stated, traces=with_lines, relations=relations, warnings=warnings, machines=machines, notes=notes)
    graph = _graph(stated, same_machine=constraints.same_machine)
    of_files = _graph(Stated(*lines_of_readings(sure)))
    moved = moved_by_user(constraints)
    clocks = [
        ClockInput(
            index,
            number,
            trace,
            walls[index],
            stated.corrections.get(index, {}).get(number, ClockMap()),
            moved.get(index),
        )
        for index, trace in enumerate(with_lines)
        for number in spans(trace)
    ]
    beside = {REALTIME.owned_by(host): REALTIME.owned_by(first) for host, first in graph.join_hosts().items()}
    target = _trace_time(clocks, graph)
    return Inputs(with_lines, clocks, graph, of_files, target, stated, beside=beside, repeats=repeated(with_lines))


def _graph(stated: Stated, *, same_machine: bool = False) -> ClockGraph:
    """Return the graph of all clocks, with all relations between them.

    Args:
        stated: the statements of files and user.
        same_machine: whether the user states that all inputs are of one machine.
    """
    # Of the wall clocks of several hosts the first one becomes trace time: let it be that of an input with events.
    in_order = sorted(stated.traces, key=lambda trace: not any(trace.counts().values()))
    hosts = [domain for trace in in_order for domain in (*trace.clocks, *ends_of(trace))]
    own = [(index, domain) for index, trace in enumerate(stated.traces) for domain in trace.clocks]
    ends = [end for relation in stated.relations for end in (relation.clock, relation.other)]
    walls = [domain for domain in hosts if domain.is_wall_clock and domain.owner]
    graph = graph_of([REALTIME, *walls, *(domain for _, domain in own), *ends], stated.traces, stated.relations)
    # With same_machine the clocks since boot of all inputs are one, by whatever names these call the machine.
    clock_map = ClockMap(
        0,
        0,
        (Step("both count from the boot of one machine, as --same-machine says", Provenance.USER),),
        Verdict.ASSUMED,
    )
    boots = [one for one in own if one[1].zero in SINCE_BOOT] if same_machine else []
    for (index, one), (other_index, other) in combinations(boots, 2):
        if index != other_index and one != other and one.zero is other.zero:
            graph.relate(one, other, clock_map)
    return graph


def _trace_time(clocks: Sequence[ClockInput], graph: ClockGraph) -> ClockDomain:
    """Return the clock domain of trace time: Unix time if any input knows it, else the first clock with times."""
    known = graph.maps_to(REALTIME)
    domains = [one.domain for one in clocks]
    timed = [domain for domain in domains if not domain.synthetic]
    events_on = timed or [domain for domain in domains if domain.run is not Run.TOTALS] or domains
    if not events_on or any(domain in known for domain in events_on):
        return REALTIME
    return events_on[0]
