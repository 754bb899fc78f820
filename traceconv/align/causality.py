"""Whether effects come after their causes on the common time axis: a check that needs no knowledge of any clock.

Four things can be told from the events alone. The arrows in a file: a kernel does not start before the call that
launches it, and a receive is not over before its send begins. The same where one file has the calls and another one
the kernels, by the ids that both wrote down. The matched slices of two files: the work of a library lies inside the
call of the framework around it. And what several ranks of a job do together: none leaves a collective before all have
entered it. Arrows join slices of one file, so that an arrow that runs backwards is a fault of the
recording as long as both its ends are on one clock. What two files have in common judges the alignment: what breaks a
rule by more than the bound that is stated contradicts it, and what its own checks contradict is refused (`believed`).

Times are cut to the resolution of their clock when they are printed, so each is up to that later than it says: between
two clocks a start may seem early by one step, an end late by two (start and duration are both cut).
"""

from __future__ import annotations

import enum
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.names import NameMap
from traceconv.clocks import ClockMap, Verdict
from traceconv.errors import InconsistentClocks, UnverifiedAlignment
from traceconv.ir.trace import I64, Layer, Trace
from traceconv.times import format_short, format_time

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.estimate import Array
    from traceconv.align.launches import Joined
    from traceconv.align.select_estimator import PairEstimate, Side


#: So many ranks are listed by number.
_MOST_LISTED = 4


class Rule(enum.StrEnum):
    """What must not happen."""

    INSIDE = "child outside its parent"
    CALL = "call outside of every operator"
    LAUNCH = "kernel before its launch"
    RECEIVE = "receive before its send"
    ARROW = "arrow backwards in time"
    COLLECTIVE = "collective left before it was entered"


class Breaches(Struct, frozen=True):
    """How often a rule is broken.

    Attributes:
        count: by how many pairs.
        worst_ns: by how much at most.
        place: where that is; "" if nowhere.
    """

    count: int
    worst_ns: int
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return {"violations": self.count, "worst_ns": self.worst_ns, "place": self.place}


class Contradiction(Struct, frozen=True):
    """What the breaches of a rule say against the clocks of inputs.

    Attributes:
        verdict: how far these are to be trusted then; ASSUMED where the user said so, OK where it is a warning only.
        inputs: the numbers of the inputs whose clocks that are.
        file: the last of them.
        text: what is wrong, said of that one.
        hint: what can be done about it.
    """

    verdict: Verdict
    inputs: tuple[int, ...]
    file: str
    text: str
    hint: str

    @property
    def sentence(self) -> str:
        """What is wrong, with the file of which it is said."""
        return f"{self.file}: {self.text}"


class Limit(Struct, frozen=True):
    """What the pairs of a check are measured against: who states a bound states it, and how many pairs may be wrong.

    Attributes:
        bound_ns: by how much a pair may break the rule by what is stated of the clocks; None if nothing is, so that
            nothing can be contradicted.
        wrong: the share of the pairs that may be wrong themselves, and say nothing about clocks.
        verdict: what it means if more pairs than that break the rule by more than the bound.
    """

    bound_ns: int | None = None
    wrong: float = 0.0
    verdict: Verdict = Verdict.INCONSISTENT

    def excused(self, count: int) -> int:
        """How many of some pairs may be wrong, by chance some more than their share."""
        return math.floor(self.wrong * count + 2 * math.sqrt(self.wrong * (1 - self.wrong) * count))


class Check(Struct, frozen=True):
    """One rule, asked of the arrows of a file, or of what two files have in common, or the ranks of a job.

    Attributes:
        rule: what must not happen.
        files: the file, or both; of collectives those of all ranks.
        checked: how many pairs were looked at.
        after: on the common time axis.
        before: by what the files themselves say; None if they say nothing, or if nothing was changed.
        known: whether the files themselves relate their clocks, well or badly.
        ranks: of collectives, those that took part.
        alone: of collectives, how many records of one there are beside, for which no record of another rank is certain;
            of calls, how many lie where no operator was recorded.
        contradictions: what the breaches say against clocks.
        limit: of what two files have in common, what it is measured against.
        beyond: how many pairs break the rule by more than that.
    """

    rule: Rule
    files: tuple[str, ...]
    checked: int
    after: Breaches
    before: Breaches | None = None
    known: bool = True
    ranks: tuple[int, ...] = ()
    alone: int = 0
    contradictions: tuple[Contradiction, ...] = ()
    limit: Limit = Limit()
    beyond: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst that it says of the alignment."""
        return max((one.verdict for one in self.contradictions), key=list(Verdict).index, default=Verdict.OK)

    @property
    def in_one_file(self) -> bool:
        """Whether it judges a recording; otherwise it judges the alignment of two."""
        return len(self.files) == 1

    @property
    def what(self) -> str:
        """What was looked at."""
        if self.in_one_file:
            return "arrows"
        return {Rule.LAUNCH: "launches", Rule.COLLECTIVE: "collectives", Rule.CALL: "calls"}.get(
            self.rule, "matched slices"
        )

    def describe(self) -> str:
        """One line for people."""
        if self.rule is Rule.COLLECTIVE:
            return self._of_ranks()
        line = f"{self.rule}: {self.after.count} of {self.checked} {self.what} of {' and '.join(self.files)}"
        if self.alone and not self.checked:
            return f"{self.alone} calls in {' and '.join(self.files)} are too few to be checked"
        if self.alone:
            line += f", and {self.alone} more where no operator was recorded"
        if self.after.count:
            line += f", by up to {format_time(self.after.worst_ns)} ({self.after.place})"
        if self.in_one_file:
            return f"{line}: a fault of the recording, not of the alignment" if self.after.count else line
        if self.beyond > self.limit.excused(self.checked):
            line += (
                f"; {self.beyond} of them by more than the {format_time(self.limit.bound_ns or 0)} that are possible"
            )
        if self.before is not None:
            worst = f", by up to {format_time(self.before.worst_ns)}" if self.before.count else ""
            return f"{line}; before the correction: {self.before.count}{worst}"
        return line if self.known else f"{line}; how it was before is not known"

    def _of_ranks(self) -> str:
        listed = ", ".join(map(str, self.ranks[:-1])) + f" and {self.ranks[-1]}"
        whose = f"collectives of {f'ranks {listed}' if len(self.ranks) <= _MOST_LISTED else f'{len(self.ranks)} ranks'}"
        alone = f"{self.alone} records of {whose}: no partner of another rank is certain"
        if not self.checked:
            return f"none of {alone}, so none was checked"
        if self.after.count:
            worst = f"by up to {format_short(self.after.worst_ns)} ({self.after.place})"
            found = f"{self.after.count} cannot have happened as drawn, {worst}"
        else:
            found = "all can have happened as drawn"
        line = f"{self.checked} {whose} checked: {found}"
        return f"{line}; of {self.alone} more records no partner is certain" if self.alone else line

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "rule": str(self.rule),
            "files": list(self.files),
            "checked": self.checked,
            "before": self.before.as_json() if self.before else None,
            "after": self.after.as_json(),
            "bound_ns": self.limit.bound_ns,
            "beyond": self.beyond,
            "may_be_wrong": self.limit.excused(self.checked),
            "verdict": str(self.verdict) if self.checked or self.contradictions else None,
            "ranks": list(self.ranks),
            "unmatched": self.alone,
            "contradictions": [{"verdict": str(one.verdict), "text": one.sentence} for one in self.contradictions],
        }


_NO_LIMIT = Limit()


class Causality(Struct, frozen=True):
    """All checks of a merge."""

    checks: tuple[Check, ...]

    @property
    def violations(self) -> int:
        """How many pairs break a rule on the common time axis."""
        return sum(check.after.count for check in self.checks)

    def describe(self) -> list[str]:
        """Lines for people: a sum, and a line for each check that found or changed something; none without checks."""
        if not self.checks:
            return []
        counts = Counter[str]()
        for check in self.checks:
            counts[check.what] += check.checked
        sizes = [f"{count} {what if count > 1 else what[:-1]}" for what, count in counts.items() if count]
        total = f"{self.violations} out of order" if self.violations else "all in order"
        found = [
            check
            for check in self.checks
            if check.after.count
            or (check.before and check.before.count)
            or check.alone
            or check.rule is Rule.COLLECTIVE
        ]
        head = [f"causality: {' and '.join(sizes)} checked, {total}" if sizes else "causality: nothing was checked"]
        return [*head, *(f"  {check.describe()}" for check in found)] if sizes or found else []

    def as_json(self) -> list[dict[str, Any]]:
        """For the report."""
        return [check.as_json() for check in self.checks]


def causality(traces: Sequence[Trace], alignment: Alignment, names: NameMap | None = None) -> Causality:
    """Check the order of cause and effect on the time axis of an alignment.

    Args:
        traces: the inputs, as the alignment got them.
        alignment: how they are put on one time axis.
        names: which names mean the same work; those that are built in if it is None.
    """
    checks = [check for trace, maps in zip(traces, alignment.maps, strict=True) for check in _arrows(trace, maps)]
    for pair in alignment.pairs:
        if pair.b.index in alignment.placements:
            continue  # its slices were laid there, so there is nothing to check
        way_a = alignment.maps[pair.a.index].get(pair.a.clock)
        way_b = alignment.maps[pair.b.index].get(pair.b.clock)
        if way_a and way_b and _tells(pair):
            keys = pair.a.key, pair.b.key
            limit = _limit(alignment, *keys, pair.estimate.wrong) if pair.taken else Limit()
            checks.append(_with_contradictions(_inside(pair, way_a, way_b, limit), alignment, keys))
    checks += _launches(traces, alignment)
    if {Layer.FRAMEWORK, Layer.LIBRARY} <= {trace.sources[0].layer for trace in traces}:
        from traceconv.align.containment import check_of_calls

        checks += check_of_calls(traces, alignment, names or NameMap())
    if sum(trace.collectives is not None for trace in traces) > 1:
        from traceconv.align.ranks import check_of_ranks  # most merges have no use for it

        checks += check_of_ranks(traces, alignment)
    return Causality(tuple(checks))


def _limit(alignment: Alignment, one: tuple[int, int], other: tuple[int, int], wrong: float) -> Limit:
    """What pairs of two clocks are measured against: how far off they may be by what the two maps rest on.

    A clock that lies beside the others, or that the user placed where nothing says how exactly, contradicts nothing.
    Where files call two clocks one, or say nothing of their bound, these are no better than such clocks were measured.
    """
    from traceconv.align.network import UNSTATED_BOUND_NS  # conversions have no use for it

    ways = [alignment.maps[index][clock] for index, clock in (one, other)]
    if Verdict.SEPARATE in (way.verdict for way in ways):
        return Limit()
    resting = [
        pair.bound_ns
        for pair in alignment.pairs
        if {pair.a.key, pair.b.key} == {one, other} and any(pair.carries(way) for way in ways)
    ]
    if resting:
        return Limit(min(resting), wrong)
    stated = [way.bound_ns for way in ways if way.bound_ns is not None]
    said = len(stated) == len(ways)
    if not said and not all(way.verdict is Verdict.OK for way in ways):
        return Limit()
    return Limit(max(sum(stated), UNSTATED_BOUND_NS) if said else UNSTATED_BOUND_NS, wrong)


def _with_contradictions(check: Check, alignment: Alignment, clocks: tuple[tuple[int, int], tuple[int, int]]) -> Check:
    """The check with what it says against the two clocks, if more pairs are beyond its limit than may be wrong."""
    if check.beyond <= check.limit.excused(check.checked):
        return check
    placed = [index for index, clock in clocks if alignment.maps[index][clock].by_user]
    last = placed[-1] if placed else clocks[-1][0]
    mine, other = (alignment.files[index] for index in (last, *(index for index, _ in clocks if index != last)))
    file = shlex.quote(check.files[-1])
    found = Contradiction(
        Verdict.ASSUMED if placed else check.limit.verdict,
        (last,),
        mine,
        f"its events contradict how it was put on one time axis with {other}: {check.describe()}",
        f"--anchor or --offset {file}=TIME say where it belongs (0ns: where its own times put it); "
        "--on-ambiguous best leaves it here and says so beside it",
    )
    return replace(check, contradictions=(found,))


def believed(alignment: Alignment, found: Causality, on_ambiguous: str = "fail") -> Alignment:
    """The alignment, with the verdicts that are left of it where its checks contradict it.

    Args:
        alignment: how inputs were put together.
        found: what was checked then.
        on_ambiguous: as `Policy` has it; "best" leaves them where they are.

    Raises:
        InconsistentClocks: events contradict what is known of the clocks, beyond its bounds.
        UnverifiedAlignment: they contradict what was assumed of them.
    """
    contradictions = [one for check in found.checks for one in check.contradictions]
    against = [one for one in contradictions if one.verdict not in (Verdict.OK, Verdict.ASSUMED)]
    if against and on_ambiguous != "best":
        worst = max(against, key=lambda one: list(Verdict).index(one.verdict))
        error = InconsistentClocks if worst.verdict is Verdict.INCONSISTENT else UnverifiedAlignment
        raise error(worst.sentence, hint=worst.hint, pairs=alignment.pairs)
    for one in contradictions:
        alignment = alignment.doubted(one.inputs, one.verdict, one.text)
    return alignment


# -- arrows in a file -----------------------------------------------------------------------------------------------


def _arrows(trace: Trace, maps: dict[int, ClockMap]) -> Iterator[Check]:
    """A check for each kind of arrow in a trace; places that were invented are not looked at."""
    flows, slices = trace.flows, trace.slices
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    real = np.array([not trace.clocks[clock].synthetic for clock in clock_of_track.tolist()], bool)
    used = np.flatnonzero(real[slices.track[flows.from_slice]] & real[slices.track[flows.to_slice]])
    source, target = flows.from_slice[used], flows.to_slice[used]
    clock_source, clock_target = clock_of_track[slices.track[source]], clock_of_track[slices.track[target]]
    starts = _on_trace_time(slices.ts[source], clock_source, maps)
    target_starts = _on_trace_time(slices.ts[target], clock_target, maps)
    target_ends = _on_trace_time(slices.ts[target] + slices.dur[target], clock_target, maps)
    steps = np.array([clock.resolution_ns for clock in trace.clocks], np.int64)[clock_target]
    slack = np.where(clock_source == clock_target, 0, steps)
    rules = _rules(trace, used)
    for number, rule in enumerate((Rule.LAUNCH, Rule.RECEIVE, Rule.ARROW)):
        rows = np.flatnonzero(rules == number)
        if len(rows):
            reached = target_ends if rule is Rule.RECEIVE else target_starts
            late = starts[rows] - reached[rows] - slack[rows]
            breaches = _breaches(late, (trace, target[rows]), (trace, source[rows]))
            yield Check(rule, (trace.sources[0].name,), len(rows), breaches)


def _rules(trace: Trace, rows: Array) -> Array:
    """For each of some flows the number of its rule, told by its name and category as its format means them."""
    marks = trace.sources[0].marks
    launched, sent = (_pattern(text) for text in (marks.launch_arrows, marks.receive_arrows))
    codes = trace.flows.name[rows].astype(np.int64) * len(trace.strings) + trace.flows.category[rows]
    different, kind_of = np.unique(codes, return_inverse=True)
    kinds = []
    for code in different.tolist():
        text = " ".join(trace.strings[part] for part in divmod(code, len(trace.strings)))
        kinds.append(0 if launched.search(text) else 1 if sent.search(text) else 2)
    return np.array(kinds, np.int64)[kind_of]


def _pattern(text: str) -> re.Pattern[str]:
    """The pattern without regard to case; one that nothing fits for ""."""
    return re.compile(text or r"(?!)", re.IGNORECASE)


def _on_trace_time(ts: I64, clocks: Array, maps: dict[int, ClockMap]) -> I64:
    mapped = ts.copy()
    for clock, way in maps.items():
        own = clocks == clock
        mapped[own] = way.apply(ts[own])
    return mapped


# -- calls in one file, their work in another one -------------------------------------------------------------------


def _launches(traces: Sequence[Trace], alignment: Alignment) -> Iterator[Check]:
    """A check for the two files of which one alone has calls that launched work, the other one alone the work."""
    from traceconv.align.launches import (  # conversions have no use for them
        LEAST_SHARE,
        WRONG_IDS,
        host_and_device,
        joined,
    )

    apart = host_and_device(traces)
    if apart is None:
        return
    host, device = apart
    for clock_host, way_host in alignment.maps[host].items():
        for clock_device, way_device in alignment.maps[device].items():
            both = joined(traces[host], clock_host, traces[device], clock_device)
            if both is not None and both.share >= LEAST_SHARE:
                known = _known(alignment, (host, clock_host, way_host), (device, clock_device, way_device))
                clocks = (host, clock_host), (device, clock_device)
                limit = _limit(alignment, *clocks, max(WRONG_IDS, *_wrong_ids(alignment, clocks)))
                after, beyond = _early(traces[host], traces[device], both, way_host, way_device, limit)
                before = None if known is None else _early(traces[host], traces[device], both, *known)[0]
                files = (traces[host].sources[0].name, traces[device].sources[0].name)
                checked = len(both.calls)
                check = Check(Rule.LAUNCH, files, checked, after, before, known is not None, limit=limit, beyond=beyond)
                yield _with_contradictions(check, alignment, clocks)


def _wrong_ids(alignment: Alignment, clocks: tuple[tuple[int, int], ...]) -> list[float]:
    """The share of ids that may be wrong by the estimates from them."""
    return [0.0, *(pair.estimate.wrong for pair in alignment.pairs if {pair.a.key, pair.b.key} == set(clocks))]


def _known(
    alignment: Alignment, host: tuple[int, int, ClockMap], device: tuple[int, int, ClockMap]
) -> tuple[ClockMap, ClockMap] | None:
    """The maps of two clocks to a common time, by what the files themselves say; None if they say nothing."""
    for pair in alignment.pairs:
        ends = [(side.index, side.clock) for side in (pair.a, pair.b)]
        if ends == [host[:2], device[:2]]:
            return None if pair.known is None else (pair.known, ClockMap())
        if ends == [device[:2], host[:2]]:
            return None if pair.known is None else (ClockMap(), pair.known)
    return None if host[2].by_user or device[2].by_user else (host[2], device[2])


def _early(
    host: Trace, device: Trace, both: Joined, way_host: ClockMap, way_device: ClockMap, limit: Limit = _NO_LIMIT
) -> tuple[Breaches, int]:
    """How much work begins before its call, and how much of it by more than is possible."""
    launched = way_host.apply(host.slices.ts[both.calls])
    began = way_device.apply(device.slices.ts[both.work])
    clock = int(device.tracks[int(device.slices.track[both.work[0]])].clock)
    late = launched - began - max(device.clocks[clock].resolution_ns, 1)
    return _breaches(late, (device, both.work), (host, both.calls)), _beyond(late, limit)


# -- matched slices of two files ------------------------------------------------------------------------------------


def _tells(pair: PairEstimate) -> bool:
    """Whether slices were matched that have times of their own."""
    real = not any(side.trace.clocks[side.clock].synthetic for side in (pair.a, pair.b))
    return pair.rows is not None and len(pair.rows[0]) > 0 and real and not pair.estimate.verdict.refused


def _inside(pair: PairEstimate, way_a: ClockMap, way_b: ClockMap, limit: Limit) -> Check:
    """Whether the inner slices of a pair lie inside the outer ones."""
    after, beyond = _outside(pair, way_a, way_b, limit)
    before = None if pair.known is None else _outside(pair, pair.known, ClockMap())[0]
    assert pair.rows is not None
    files, known = (pair.a.name, pair.b.name), pair.known is not None
    return Check(Rule.INSIDE, files, len(pair.rows[0]), after, before, known, limit=limit, beyond=beyond)


def _outside(pair: PairEstimate, way_a: ClockMap, way_b: ClockMap, limit: Limit = _NO_LIMIT) -> tuple[Breaches, int]:
    """How many inner slices stick out of the outer ones, and how many of them by more than is possible."""
    assert pair.rows is not None
    one, other = (pair.a, pair.rows[0], way_a), (pair.b, pair.rows[1], way_b)
    outer, inner = (other, one) if pair.turned else (one, other)
    outer_starts, outer_ends = _times(*outer)
    inner_starts, inner_ends = _times(*inner)
    early = outer_starts - inner_starts - _step(inner[0])
    late = inner_ends - outer_ends - 2 * _step(outer[0])
    by = np.maximum(early, late)
    return _breaches(by, (inner[0].trace, inner[1]), (outer[0].trace, outer[1])), _beyond(by, limit)


def _beyond(by: I64, limit: Limit) -> int:
    """How many pairs break a rule by more than is possible."""
    return 0 if limit.bound_ns is None else int((by > limit.bound_ns).sum())


def _times(side: Side, rows: Array, way: ClockMap) -> tuple[I64, I64]:
    slices = side.trace.slices
    return way.apply(slices.ts[rows]), way.apply(slices.ts[rows] + slices.dur[rows])


def _step(side: Side) -> int:
    """The least difference of two times as printed, ns."""
    return max(side.trace.clocks[side.clock].resolution_ns, 1)


def _breaches(by: I64, effects: tuple[Trace, Array], causes: tuple[Trace, Array]) -> Breaches:
    """What is wrong, from how much each pair is: not at all if that is 0 or less."""
    count = int((by > 0).sum())
    if not count:
        return Breaches(0, 0)
    worst = int(np.argmax(by))
    place = f"{place_of(effects[0], int(effects[1][worst]))}, {place_of(causes[0], int(causes[1][worst]))}"
    return Breaches(count, int(by[worst]), place)


def place_of(trace: Trace, row: int) -> str:
    """Return where a slice stands in its file, and its name, for messages."""
    slices = trace.slices
    return f"{trace.place(int(slices.track[row]), int(slices.origin[row]))} {trace.strings[slices.name[row]]!r}"
