"""Which time axis the inputs are put on, how each gets there, and how sure that is.

Evidence so far, from the surest: the same clock; what the files themselves say (snapshots); what the user says
(`facts`, `--offset`); what the events say. Each is an edge of the clock graph or a correction of the times.
Without evidence there is no output: a plausible wrong timeline is the worst that this tool can make.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Any

from traceconv.align.boot_sessions import with_clocks_of_boots
from traceconv.align.constraint_parser import NO_FACTS, Facts
from traceconv.align.constraints import Relation, Stated, moved_by_user, state
from traceconv.align.domains import one_machine_advice, spans, zone_option
from traceconv.align.duplicate_inputs import warnings_of_duplicates
from traceconv.align.hosts import with_wall_clocks_of_hosts
from traceconv.align.identity import Together, together
from traceconv.align.jobs import warnings_of_jobs
from traceconv.align.machines import Machine, machines_of, with_one_name
from traceconv.align.messages import Message
from traceconv.align.names import NameMap
from traceconv.align.non_overlapping import warnings_of_no_overlap
from traceconv.align.repeated_snapshots import lines_of_readings, warnings_of_set_clocks, with_readings_of_set_clocks
from traceconv.clocks import (
    DRIFT_UNIT,
    MOST_DRIFT,
    REALTIME,
    SINCE_BOOT,
    ClockDomain,
    ClockGraph,
    ClockMap,
    Provenance,
    Run,
    Step,
    Verdict,
    worse,
)
from traceconv.errors import InconsistentClocks, UnrelatedClocks, UsageError
from traceconv.ir.trace import Trace
from traceconv.times import LIMIT_NS, format_bound, format_drift, format_option

if TYPE_CHECKING:
    from traceconv.align.duration_layout import Placement
    from traceconv.align.estimate import Estimate
    from traceconv.align.select_estimator import PairEstimate

_ONE_BOOT = "both count from the boot of one machine, as --same-machine says"
_NO_TIMES = "no times in the file: placed at its first timed event"
_TOTALS = "totals have no times: placed at the begin of the trace"


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """How one clock of one input was put on trace time.

    Attributes:
        file: the input.
        format: its importer.
        clock: the name of the domain.
        method: where the relation is known from.
        offset_ns: what was added to each time of that clock.
        bound_ns: how wrong the position can be at most, the resolution of the clock included; None: not known.
        verdict: "ok" when the file says so; "assumed" when it rests on the word of the user or on an assumption, or
            when positions are synthetic; that of the estimate when its best place was taken though it is not certain;
            "separate" when it was not aligned at all.
        drift_ppm: how much faster trace time runs than the clock.
        matches: how many events were matched with those of another input, if it rests on that.
        residual_ns: how far apart these are, the median; None without any.
        warnings: what speaks against it, or was assumed and is wrong.
        note: which of its events are where, if not all were placed in the same way; "" if they were.
        host: the host that the input says it is of, "" if it states none.
        rank: the number in its job of the process that the input records, None if it states none.
        world_size: how many processes that job has, None if the input does not say.
        two_hosts: whether it takes the wall clocks of two hosts for one, so that its bound is not known.
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
    warnings: tuple[str, ...] = ()
    note: str = ""
    host: str = ""
    rank: int | None = None
    world_size: int | None = None
    two_hosts: bool = False

    @property
    def bound_text(self) -> str:
        """The bound for people."""
        return f"{format_bound(self.bound_ns)}{' (clocks of two hosts)' if self.two_hosts else ''}"

    def as_json(self) -> dict[str, Any]:
        """For metadata; what does not apply is left out."""
        members = asdict(self)
        absent = {"drift_ppm": not self.drift_ppm, "matches": not self.matches, "residual_ns": self.residual_ns is None}
        absent |= {name: not members[name] for name in ("warnings", "note", "host", "two_hosts")}
        absent |= {name: members[name] is None for name in ("rank", "world_size")}
        return {name: value for name, value in members.items() if not absent.get(name)}


@dataclass(frozen=True, slots=True)
class Alignment:
    """A trace time, and for each input a map from each of its clocks to it.

    Attributes:
        clock: what the times of the output count.
        maps: for each input, by clock index, the map of each clock that events use.
        receipt: a line for each of these maps.
        pairs: what the events said about pairs of clocks, where they were asked.
        placements: for inputs without times whose slices lie inside those of others, which in which.
        files: the names of all inputs; the receipt has no line of those without events.
        machines: for each input the machine that its pids and tids belong to.
        notes: for some inputs, what else is to be known about them.
        hosts: for each input a name of its host, "" where all are taken for one.
        together: which of their processes and threads are one.
    """

    clock: ClockDomain
    maps: list[dict[int, ClockMap]]
    receipt: list[ReceiptLine]
    pairs: list[PairEstimate] = field(default_factory=list)
    placements: dict[int, Placement] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    notes: dict[int, list[Message | str]] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    together: Together = field(default_factory=Together)

    def doubted(self, inputs: Sequence[int], verdict: Verdict, text: str) -> Alignment:
        """The same, where the verdicts of some inputs are no better than the given one; the last one gets a warning."""
        maps = [
            {clock: replace(way, verdict=worse(way.verdict, verdict)) for clock, way in found.items()}
            if index in inputs
            else found
            for index, found in enumerate(self.maps)
        ]
        lines = iter(self.receipt)
        receipt = [
            replace(
                line,
                verdict=str(worse(Verdict(line.verdict), verdict)),
                warnings=(*line.warnings, text) if index == inputs[-1] else line.warnings,
            )
            if index in inputs
            else line
            for index, found in enumerate(self.maps)
            for line in islice(lines, len(found))
        ]
        left = self.together.without(inputs) if verdict.refused else self.together
        return replace(self, maps=maps, receipt=receipt, together=left)


@dataclass(frozen=True, slots=True)
class Policy:
    """How bold an alignment may be.

    Attributes:
        names: which names of two traces mean the same work.
        same_run: the word of the user that all inputs are of one run.
        on_ambiguous: what to do with a trace that fits in several places, or nowhere: "fail", "best" (the best place
            with the verdict that it has; fails where there is none), or "separate" (side by side, from the begin of the
            trace on, with names that say so). What contradicts itself is refused, but for "best", which leaves it.
        estimate: whether to look at the events at all.
    """

    names: NameMap = field(default_factory=NameMap)
    same_run: bool = False
    on_ambiguous: str = "fail"
    estimate: bool = True


def align(
    traces: Sequence[Trace],
    offsets: Mapping[int, int] | None = None,
    policy: Policy | None = None,
    *,
    facts: Facts = NO_FACTS,
    same_machine: bool = False,
    offsets_within: Mapping[int, int] | None = None,
) -> Alignment:
    """Relate the clocks of all inputs.

    Args:
        traces: the inputs, as read.
        offsets: for some inputs, by index, ns to add to each of their times.
        policy: how bold to be.
        facts: what the user says about the clocks.
        same_machine: the word of the user that all inputs were recorded on one machine, since one boot of it.
        offsets_within: for some of the offsets how wrong each can be, ns.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates.
        AmbiguousAlignment: their events fit in several places.
        InconsistentClocks: what files and user say about the clocks contradicts itself, or the events.
        UsageError: a fact does not fit its input, or a name map no name.
    """
    policy = policy or Policy()
    if policy.names.extra:
        from traceconv.align.features import names_of

        policy.names.check_extra([names_of(trace) for trace in traces])
    named = [trace.host for trace in traces]
    stated = prepared(traces, facts, offsets, same_machine=same_machine)
    traces, domains = stated.traces, [trace.clocks for trace in stated.traces]
    graph = clock_graph(traces, stated.relations)
    if same_machine:
        join_boots(graph, domains)
    used = [{clock: first for clock, (first, _) in spans(trace).items()} for trace in traces]
    target = _trace_time(domains, used, graph)
    pairs: list[PairEstimate] = []
    if policy.estimate and len(traces) > 1:
        from traceconv.align import solve

        placed = set(offsets or ())
        pairs = solve.estimated(traces, domains, used, graph, target, policy, placed, offsets or {}, stated)
    related = graph.maps_to(target)
    maps = []
    for index, (clocks, first) in enumerate(zip(domains, used, strict=True)):
        known = related
        if index in (offsets or {}):
            known = without_other_hosts(related, graph, target, stated.walls[index])
        corrected = {number: stated.corrections.get(index, {}).get(number, ClockMap()) for number in first}
        found = {number: corrected[number].then(known[clocks[number]]) for number in first if clocks[number] in known}
        _place_synthetic(found, clocks, first)
        _apply_offset(found, corrected, (offsets or {}).get(index), (offsets_within or {}).get(index, 0))
        maps.append(found)
    placements: dict[int, Placement] = {}
    if policy.estimate and len(traces) > 1:
        from traceconv.align import solve

        placements = solve.placed_by_durations(traces, domains, used, maps, policy, pairs, stated.warnings)
    _place_totals(domains, used, maps)
    _refuse_unrelated(traces, domains, used, maps, target, pairs, policy)
    _refuse_far(traces, maps)
    if policy.estimate and len(traces) > 1:
        from traceconv.align import solve

        solve.doubts(traces, domains, maps, offsets or {}, policy, pairs, stated)
    for key, text in warnings_of_no_overlap(traces, maps, facts, set(placements)):
        stated.warnings[key].append(text)
    for index, text in chain(warnings_of_duplicates(traces, named), warnings_of_jobs(traces)):
        if maps[index]:
            stated.warnings[index, min(maps[index])].append(text)
    receipt = [
        _receipt_line(
            trace,
            clocks[number],
            found[number],
            _basis(index, number, found[number], pairs),
            stated.warnings[index, number],
            placements.get(index),
            host,
        )
        for index, (trace, host, clocks, found) in enumerate(zip(traces, named, domains, maps, strict=True))
        for number in sorted(found)
    ]
    files = [trace.sources[0].name for trace in traces]
    hosts = [wall.owner for wall in stated.walls]
    alignment = Alignment(target, maps, receipt, pairs, placements, files, stated.machines, stated.notes, hosts)
    return alignment if len(traces) == 1 else replace(alignment, together=together(traces, alignment))


def prepared(
    traces: Sequence[Trace], facts: Facts, offsets: Mapping[int, int] | None = None, *, same_machine: bool = False
) -> Stated:
    """The inputs with all that files and user say about their clocks, for `align` and for what describes clocks.

    Raises:
        InconsistentClocks: the facts contradict themselves or the files.
        UsageError: a fact does not fit its input.
    """
    traces = with_one_name(traces)
    by_host, walls = with_wall_clocks_of_hosts(traces, facts, same_machine=same_machine)
    apart = with_clocks_of_boots(by_host)
    sure, set_clocks = with_readings_of_set_clocks(apart.traces)
    stated = state(sure, facts, walls, offsets)
    found, lines = lines_of_readings(stated.traces)
    relations = [*stated.relations, *lines]
    for key, text in warnings_of_set_clocks(found, relations, set_clocks):
        stated.warnings[key].append(text)
    machines = machines_of(traces, stated.traces, facts, apart.named, same_machine=same_machine)
    return replace(stated, traces=found, relations=relations, machines=machines, notes=apart.notes)


def clock_graph(traces: Sequence[Trace], relations: Sequence[Relation]) -> ClockGraph:
    """The clocks of all inputs, whose domains are marked as their own, with everything that relates them."""
    snapshots = [snapshot for trace in traces for snapshot in trace.snapshots]
    domains = [domain for trace in traces for domain in trace.clocks]
    domains += [end for relation in relations for end in (relation.clock, relation.other)]
    graph = ClockGraph([REALTIME, *_walls_of_hosts(traces), *domains], snapshots)
    for relation in relations:
        graph.relate(relation.clock, relation.other, relation.way, relation.back)
    return graph


def _walls_of_hosts(traces: Sequence[Trace]) -> list[ClockDomain]:
    """The wall clocks of several hosts; first the one that trace time counts: that of the first input with events."""
    in_order = sorted(traces, key=lambda trace: not any(trace.counts().values()))
    found = [
        domain
        for trace in in_order
        for domain in (*trace.clocks, *(end for snap in trace.snapshots for end in (snap.clock, snap.other)))
    ]
    return [domain for domain in found if domain.is_wall_clock and domain.owner]


def join_boots(graph: ClockGraph, domains: list[list[ClockDomain]]) -> None:
    """Relate the clocks since boot of different inputs, by whatever names they call the machine: the user knows."""
    boots = [(index, domain) for index, own in enumerate(domains) for domain in own if domain.zero in SINCE_BOOT]
    way = ClockMap(0, 0, (Step(_ONE_BOOT, Provenance.USER),), Verdict.ASSUMED)
    for (index, one), (other_index, other) in combinations(boots, 2):
        if index != other_index and one != other and one.zero is other.zero:
            graph.relate(one, other, way)


def without_other_hosts(
    known: dict[ClockDomain, ClockMap], graph: ClockGraph, target: ClockDomain, wall: ClockDomain
) -> dict[ClockDomain, ClockMap]:
    """The maps to trace time, where the user says by how much an input is moved: from where its own host puts it.

    Args:
        known: for each domain that is related to trace time, its map.
        graph: all clocks.
        target: what trace time counts.
        wall: the wall clock of the host of the input.
    """
    if not wall.owner or target != REALTIME:
        return known
    own = {domain: way for domain, way in graph.maps_to(wall).items() if not way.two_hosts}
    return {domain: own.get(domain, way) if way.two_hosts else way for domain, way in known.items()}


def _trace_time(domains: list[list[ClockDomain]], used: list[dict[int, int]], graph: ClockGraph) -> ClockDomain:
    """Unix time if any input knows it, else the clock of the first input that has one."""
    known = graph.maps_to(REALTIME)
    found = [clocks[number] for clocks, first in zip(domains, used, strict=True) for number in first]
    timed = [domain for domain in found if not domain.synthetic]
    events_on = timed or [domain for domain in found if domain.run is not Run.TOTALS] or found
    if not events_on or any(domain in known for domain in events_on):
        return REALTIME
    return events_on[0]


def _place_synthetic(found: dict[int, ClockMap], clocks: list[ClockDomain], first: dict[int, int]) -> None:
    """Tracks without times, beside others of the same file that have times: from the first of these on."""
    starts = [found[number].at(first[number]) for number in found]
    for number in first:
        if starts and number not in found and clocks[number].synthetic:
            found[number] = ClockMap(min(starts), 0, (Step(_NO_TIMES, Provenance.ASSUMED),))


def _place_totals(
    domains: list[list[ClockDomain]], used: list[dict[int, int]], maps: list[dict[int, ClockMap]]
) -> None:
    """Tables without times stand at the begin of everything that has times."""
    starts = [
        found[number].at(first[number])
        for clocks, first, found in zip(domains, used, maps, strict=True)
        for number in found
        if clocks[number].run is not Run.TOTALS
    ]
    if not starts:
        return
    for clocks, first, found in zip(domains, used, maps, strict=True):
        for number in first:
            if clocks[number].run is Run.TOTALS:
                found[number] = ClockMap(min(starts), 0, (Step(_TOTALS, Provenance.ASSUMED),))


def _apply_offset(
    found: dict[int, ClockMap], corrected: dict[int, ClockMap], offset: int | None, within_ns: int
) -> None:
    if offset is not None:
        for number, own in corrected.items():
            found[number] = found.get(number, own).then(moved_by_user(offset, within_ns))


def _refuse_unrelated(
    traces: Sequence[Trace],
    domains: list[list[ClockDomain]],
    used: list[dict[int, int]],
    maps: list[dict[int, ClockMap]],
    target: ClockDomain,
    pairs: Sequence[PairEstimate],
    policy: Policy,
) -> None:
    for index, (trace, clocks, first, found) in enumerate(zip(traces, domains, used, maps, strict=True)):
        lost = [number for number in first if number not in found]
        if not lost:
            continue
        name, clock = trace.sources[0].name, clocks[lost[0]].describe()
        files = " ".join(shlex.quote(one.sources[0].name) for one in traces)
        other = next(index for index, found_there in enumerate(maps) if found_there)
        if traces[other] is trace:
            raise UnrelatedClocks(
                f"{name} holds times of two clocks that nothing relates: {target.describe()}, and {clock}",
                hint="split it where the second recording begins, and merge the parts with --offset",
            )
        start = min(found_there.at(used[other][number]) for number, found_there in maps[other].items())
        shift = start - first[lost[0]]
        ours = domains[other][next(number for number in maps[other])]
        advice: list[Message | str | None] = [
            one_machine_advice(traces[other], ours, trace, clocks[lost[0]]),
            _word_wanted(index, pairs, policy),
            zone_option(trace, clocks[lost[0]]),
        ]
        offset = f"--offset {shlex.quote(name)}="
        advice += [
            f"`traceconv clocks {files}` says what else would relate them",
            f"say how: {offset}TIME adds TIME to all times of that file",
            f"{offset}{format_option(shift)} would let both begin together, which is a guess",
        ]
        raise UnrelatedClocks(
            f"the clocks of {traces[other].sources[0].name} and {name} cannot be related: the first counts "
            f"{target.describe()}, the second {clock}{_tried(index, pairs)}",
            hint="; else ".join(map(str, filter(None, advice))),
            pairs=pairs,
            verdict=Verdict.UNVERIFIED.value if _word_wanted(index, pairs, policy) else "",
        )


def _refuse_far(traces: Sequence[Trace], maps: list[dict[int, ClockMap]]) -> None:
    for trace, found in zip(traces, maps, strict=True):
        drift = max((abs(line.drift) for way in found.values() for line in way.lines), default=0)
        if drift > MOST_DRIFT:
            raise InconsistentClocks(
                f"{trace.sources[0].name}: what is known of its clock contradicts itself: it would run "
                f"{format_drift(drift * DRIFT_UNIT * 1e6)} off",
                hint="leave a file out, or say with --offset where this one belongs",
            )
        ends = [found[clock].at(end) for clock, span in spans(trace).items() for end in span]
        if any(abs(end) > LIMIT_NS for end in ends):
            raise UsageError(
                f"{trace.sources[0].name}: its times lie more than 146 years from zero once they are moved",
                hint="check --offset and the unit of the times (-O ts_unit=...)",
            )


def _word_wanted(index: int, pairs: Sequence[PairEstimate], policy: Policy) -> str:
    """The option that would settle it, if the word of the user is all that is missing."""
    if policy.same_run:
        return ""
    own = [pair.estimate.verdict for pair in pairs if index in (pair.a.index, pair.b.index)]
    return "if both are of one run: --same-run" if Verdict.UNVERIFIED in own else ""


def _tried(index: int, pairs: Sequence[PairEstimate]) -> str:
    """Why the events of an input do not tell where it belongs, if they were asked."""
    reasons = [pair.estimate.reason for pair in pairs if index in (pair.a.index, pair.b.index)]
    return f"; nor do their events tell: {reasons[0]}" if reasons else ""


def _basis(index: int, clock: int, found: ClockMap, pairs: Sequence[PairEstimate]) -> Estimate | None:
    """The estimate that the map of a clock rests on, None if it rests on what was said."""
    used = [
        pair.estimate
        for pair in pairs
        if (index, clock) in ((pair.a.index, pair.a.clock), (pair.b.index, pair.b.clock)) and pair.carries(found)
    ]
    return max(used, key=lambda estimate: estimate.matches, default=None)


def _receipt_line(
    trace: Trace,
    clock: ClockDomain,
    found: ClockMap,
    basis: Estimate | None,
    warnings: Sequence[Message | str],
    placement: Placement | None,
    host: str,
) -> ReceiptLine:
    source = trace.sources[0]
    method = found.method if found.steps else "its own times"
    if found.bends:
        method += f", along {len(found.lines)} lines"
    invented = clock.synthetic and found.by_user  # the user places one instant of it, and the others are not known
    bound = None if found.bound_ns is None or invented else found.bound_ns + clock.resolution_ns
    verdict = Verdict.ASSUMED if clock.synthetic and found.verdict is Verdict.OK else found.verdict
    laid = placement if clock.run is Run.NONE else None
    return ReceiptLine(
        source.name,
        source.format,
        clock.name,
        method,
        found.offset_ns,
        bound,
        str(verdict),
        round(found.drift_ppm, 4),
        laid.matches if laid else basis.matches if basis else 0,
        round(basis.residuals.median) if basis and basis.residuals.n and not laid else None,
        tuple(map(str, warnings)),
        laid.note if laid else "",
        host,
        source.rank,
        source.world_size,
        found.two_hosts,
    )
