"""The clocks of all inputs, before and after they are placed.

`gathered` returns them, with all statements of files and user about them (`Inputs`). `Policy` says how uncertain their
alignment may be. `Placed` holds their maps to trace time, with functions for maps and warnings that several modules
make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from traceconv.align.anchors import graph_of
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints, NameMap
from traceconv.align.domains import (
    Key,
    Warnings,
    ends_of,
    machines_of,
    rows_on,
    with_clocks_of_boots,
    with_one_name,
    with_own_domains,
    with_wall_clocks_of_hosts,
)
from traceconv.align.duplicates import repeated
from traceconv.align.statements import (
    Stated,
    lines_of_readings,
    moved_by_user,
    state,
    warnings_of_set_clocks,
    with_readings_of_set_clocks,
)
from traceconv.errors import UsageError
from traceconv.io.shown import counted
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
    from traceconv.align.collectives import Recorded
    from traceconv.align.devices import DeviceSkew
    from traceconv.align.duration_layout import Placement
    from traceconv.align.estimate import PairEstimate


#: For each input the skews of its devices, by clock and track.
Skews = Sequence[Mapping[int, Mapping[int, "DeviceSkew"]]]
#: The maps of clocks to trace time.
Maps = Mapping[Key, ClockMap]
#: The ends of an interval are shown to this part of its width.
_PART_HIDDEN = 10
#: The values of `Policy.on_ambiguous`.
ON_AMBIGUOUS = ("fail", "separate", "best")


class Policy(Struct, frozen=True):
    """How uncertain an alignment may be.

    Attributes:
        names: which names mean the same work; by default the built-in classes of names.
        same_run: whether the user states that all inputs are of one run.
        on_ambiguous: what to do with a trace that fits at several offsets, or at none. "fail" refuses it. "best" takes
            the best offset with its verdict, and refuses if there is none. "separate" draws it beside the others, from
            the start of the trace on, under names that tell this. A result in which an effect precedes its cause is
            refused, except with "best"; contradictions of statements are always refused.
        estimate: whether events are compared; otherwise only what files and user state relates clocks.

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


class ClockInput(Struct, frozen=True, eq=False, dict=True):
    """A clock of an input that has events. Two of them are equal only if they are the same object.

    Attributes:
        trace: the input, with its private clock domains marked as its own.
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

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last time on this clock, ns."""
        return self.trace.spans[self.clock]

    def times(self) -> I64:
        """Return all times on this clock, with the ends of slices, ns."""
        tables = [table for _, table in self.trace.timed_tables()]
        rows = [rows_on(self.trace, self.clock, table.track) for table in tables]
        slices = self.trace.slices
        ends = (slices.ts + slices.dur)[rows_on(self.trace, self.clock, slices.track)]
        return np.concatenate([*(table.ts[at] for table, at in zip(tables, rows, strict=True)), ends])


def of_other_pids(clock: ClockInput, other: ClockInput, clocks: Sequence[ClockInput]) -> bool:
    """Return whether pids show that two recordings are of different processes, and so share no events.

    Inside a container a process has another pid than outside. So pids count only if each of the two recordings shares
    one with a recording of another tool on its host.
    """
    if not clock.pids or not other.pids or clock.pids & other.pids:
        return False
    others = [third for third in clocks if third.index not in (clock.index, other.index)]
    return all(any(_of_one_process(side, third) for third in others) for side in (clock, other))


def _of_one_process(clock: ClockInput, other: ClockInput) -> bool:
    """Return whether recordings by two tools have a pid of one host in common."""
    if not clock.pids & other.pids or clock.wall.owner != other.wall.owner:
        return False
    return clock.trace.sources[0].format != other.trace.sources[0].format


def resolutions_ns(a: ClockInput, b: ClockInput) -> int:
    """Return the sum of the resolutions of two clocks, ns."""
    return a.domain.resolution_ns + b.domain.resolution_ns


def allowed_ns(clock_map: ClockMap, a: ClockInput, b: ClockInput) -> int:
    """Return how far events of two clocks may be from a map between them: its bound and the resolutions of both, ns."""
    return clock_map.stated_bound_ns + resolutions_ns(a, b)


def is_timed(clock: ClockInput, maps: Maps) -> bool:
    """Return whether a clock has real times and a map to trace time that relates it to others."""
    placed = clock.key in maps and maps[clock.key].verdict is not Verdict.SEPARATE
    return placed and not clock.domain.synthetic


class HostsApart(Struct, frozen=True):
    """The limits of the difference of the wall clocks of two hosts, in the middle of their recordings.

    Attributes:
        least_ns, most_ns: by how much the clock of the host is ahead of the other one, at least and at most, ns.
        assumed: what is assumed for that, as a clause of a sentence; "" for nothing.
    """

    host: str
    other: str
    least_ns: int
    most_ns: int
    collectives: int
    assumed: str = ""

    def describe(self) -> str:
        """Return the limits as a sentence."""
        host, other, least, most = self.host, self.other, self.least_ns, self.most_ns
        either = least < 0 < most
        if not either and most <= 0:
            host, other, least, most = other, host, -most, -least
        ends = [format_within(abs(end), (most - least) // _PART_HIDDEN) for end in (least, most)]
        of_both = f"{'' if either else ' of both'}{self.assumed}"
        by = f"by {counted(self.collectives, 'collective')}{of_both}, the wall clock of {host} is"
        apart = f"at most {ends[0]} behind and {ends[1]} ahead" if either else f"{ends[0]} to {ends[1]} ahead"
        return f"{by} {apart} of that of {other} (in the middle of the recording)"


class Inputs(Struct, frozen=True):
    """The inputs of an alignment, with all that files and user state about their clocks.

    Attributes:
        traces: the inputs, with private clock domains marked as their own.
        clocks: the clocks that have events, in order of the inputs.
        graph: the relations between clocks that files and user state.
        of_files: those that the files state, without what the user states and what collectives and events show.
        hosts_apart: for each two hosts the limits of the difference of their wall clocks, by common collectives.
        beside: for the wall clock of each host that options or collectives relate to that of an earlier one, the
            latter.
        repeats: for each input that repeats another one that input, by numbers.
        skews: for each input the skews of its devices, by clock and track; see `devices`.
        collectives: the collectives of inputs of several ranks, if they were looked for.
    """

    traces: Sequence[Trace]
    clocks: Sequence[ClockInput]
    graph: ClockGraph
    of_files: ClockGraph
    target: ClockDomain
    stated: Stated
    hosts_apart: Sequence[HostsApart] = ()
    beside: Mapping[ClockDomain, ClockDomain] = {}
    repeats: Mapping[int, int] = {}
    skews: Skews = ()
    collectives: Recorded | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files, as a command takes them."""
        sources = [trace.sources[0] for trace in self.traces]
        return tuple(source.path or source.name for source in sources)

    def are_one_recording(self, index: int, other: int) -> bool:
        """Return whether two inputs, by number, are copies or forms of one recording."""
        return self.repeats.get(index, index) == self.repeats.get(other, other)

    def clocks_of(self, index: int) -> list[ClockInput]:
        """Return the clocks of one input, by its number."""
        return [clock for clock in self.clocks if clock.index == index]


def gathered(traces: Sequence[Trace], constraints: Constraints = NO_CONSTRAINTS) -> Inputs:
    """Return the clocks of some inputs, with all statements of files and user about them.

    Raises:
        InconsistentClocks: the constraints contradict each other or the files.
        UsageError: a constraint does not fit its input.
    """
    traces = with_one_name(traces)
    by_host, walls = with_wall_clocks_of_hosts(traces, constraints)
    by_boot, notes, boots = with_clocks_of_boots(by_host)
    with_owners = [with_own_domains(trace, index) for index, trace in enumerate(by_boot)]
    sure, set_clocks = with_readings_of_set_clocks(with_owners)
    stated = state(sure, constraints, walls)
    with_lines, lines = lines_of_readings(stated.traces)
    relations = [*stated.relations, *lines]
    warnings = [*stated.warnings, *warnings_of_set_clocks(with_lines, relations, set_clocks)]
    machines = machines_of(traces, stated.traces, constraints, boots)
    stated = replace(stated, traces=with_lines, relations=relations, warnings=warnings, machines=machines, notes=notes)
    graph = _graph(stated, same_machine=constraints.same_machine)
    of_files = _graph(Stated(*lines_of_readings(sure)))
    moved, corrections = moved_by_user(constraints), stated.corrections
    clocks = [
        ClockInput(
            index, number, trace, walls[index], corrections.get(index, {}).get(number, ClockMap()), moved.get(index)
        )
        for index, trace in enumerate(with_lines)
        for number in trace.spans
    ]
    beside = {REALTIME.owned_by(host): REALTIME.owned_by(first) for host, first in graph.join_hosts().items()}
    target = _trace_time(clocks, graph)
    return Inputs(with_lines, clocks, graph, of_files, target, stated, beside=beside, repeats=repeated(with_lines))


def _graph(stated: Stated, *, same_machine: bool = False) -> ClockGraph:
    """Return the graph of all clocks, with all relations between them."""
    # Of the wall clocks of several hosts the first one becomes trace time: let it be that of an input with events.
    in_order = sorted(stated.traces, key=lambda trace: not any(trace.counts().values()))
    hosts = [domain for trace in in_order for domain in (*trace.clocks, *ends_of(trace))]
    indexed = [(index, domain) for index, trace in enumerate(stated.traces) for domain in trace.clocks]
    ends = [end for relation in stated.relations for end in (relation.clock, relation.other)]
    walls = [domain for domain in hosts if domain.is_wall_clock and domain.owner]
    graph = graph_of([REALTIME, *walls, *(domain for _, domain in indexed), *ends], stated.traces, stated.relations)
    # With same_machine the clocks since boot of all inputs are one, by whatever names these call the machine.
    step = Step("both count from the boot of one machine, as --same-machine says", Provenance.USER)
    clock_map = ClockMap(0, 0, (step,), Verdict.ASSUMED)
    boots = [(index, domain) for index, domain in indexed if domain.zero in SINCE_BOOT] if same_machine else []
    for (index, clock), (other_index, other) in combinations(boots, 2):
        if index != other_index and clock != other and clock.zero is other.zero:
            graph.relate(clock, other, clock_map)
    return graph


def _trace_time(clocks: Sequence[ClockInput], graph: ClockGraph) -> ClockDomain:
    """Return the clock domain of trace time: Unix time if any input knows it, else the first clock with times."""
    known = graph.maps_to(REALTIME)
    domains = [clock.domain for clock in clocks]
    timed = [domain for domain in domains if not domain.synthetic]
    events_on = timed or [domain for domain in domains if domain.run is not Run.TOTALS] or domains
    if not events_on or any(domain in known for domain in events_on):
        return REALTIME
    return events_on[0]


# -- The clocks on trace time, and the warnings about those that are placed without certainty ------------------------


class Placed(Struct, frozen=True):
    """The clocks on trace time.

    Attributes:
        maps: the map to trace time of each clock that is related to it.
        pairs: the estimates, each with whether it is used.
        placements: for each input without times that was laid into slices of another one: its position there.
        others: for a log with calls of other processes than the recorded one: the rows of these slices.
    """

    maps: Maps
    pairs: Sequence[PairEstimate] = ()
    warnings: Warnings = ()
    placements: Mapping[int, Placement] = {}
    others: Mapping[int, I64] = {}


def related_maps(inputs: Inputs, graph: ClockGraph) -> dict[Key, ClockMap]:
    """Return the maps of all clocks that are related to trace time, without the offsets of the user."""
    known = graph.maps_to(inputs.target)
    return {clock.key: clock.correction.then(known[clock.domain]) for clock in inputs.clocks if clock.domain in known}


def beside(offset: int) -> ClockMap:
    """Return the map, by its offset in ns, of a clock that nothing relates and that is drawn beside the others."""
    return ClockMap(offset, None, (Step("not aligned: starts with the others", Provenance.ASSUMED),), Verdict.SEPARATE)


def taken_as_best(pair: PairEstimate, moved: ClockInput) -> str:
    """Return the warning for a clock, one of the pair, that is placed by its best offset though that is not certain."""
    return (
        f"placed at the best offset (--on-ambiguous best), but that is {pair.estimate.verdict}: "
        f"{pair.why_refused(moved)}"
    )


def not_aligned(tried: Sequence[PairEstimate]) -> str:
    """Return the warning for a clock that is drawn beside the others, given its estimates."""
    why = f" ({tried[0].estimate.reason})" if tried else ""
    return f"not aligned: do not compare its times with those of other files{why}"


def is_related(inputs: Inputs, maps: Maps, index: int) -> bool:
    """Return whether any clock of an input with events has a map; True for an input without events."""
    clocks = inputs.clocks_of(index)
    return not clocks or any(clock.key in maps for clock in clocks)
