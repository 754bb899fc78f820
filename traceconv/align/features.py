"""What estimators see of a trace: intervals of named work, samples, deltas of counters, each on one clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceconv.align.domains import rows_on
from traceconv.align.estimate import Array, Events
from traceconv.align.names import NameMap
from traceconv.align.nesting import UNNAMED, Stretches, ThreadStretches
from traceconv.model.clocks import Run
from traceconv.model.trace import I32, Trace

#: Args that tell the type of an operator whose slice is named after the node.
_TYPE = re.compile(rb'"(?:op_name|op_type|layer_type)"\s*:\s*"([^"\\]+)"')
#: Args that tell the problem that an event solves: oneDNN's direction and sizes, the shapes of PyTorch's inputs.
_PROBLEM = re.compile(rb'"(?:prop_kind|problem|Input Dims)"\s*:\s*("[^"]*"|\[[^"]*?\]\s*(?=[,}]))')


@dataclass(frozen=True, slots=True)
class SharedWork:
    """The intervals of one clock of one input that another trace may know, too.

    Attributes:
        events: in order of their start.
        rows: for each event its row in the slices of the trace.
    """

    events: Events
    rows: Array


def shared_work(a: Trace, clock_a: int, b: Trace, clock_b: int, names: NameMap) -> tuple[SharedWork, SharedWork] | None:
    """The slices of two clocks whose kind both have; None if there are none.

    A slice inside another one of the same kind on the same track counts instead of the outer one: the innermost call is
    the one that does the work.
    """
    kinds_a, kinds_b = _kinds(a, clock_a, names), _kinds(b, clock_b, names)
    numbers = {kind: number for number, kind in enumerate(sorted(set(kinds_a.values()) & set(kinds_b.values())))}
    if not numbers:
        return None
    both = (_work_on(a, clock_a, kinds_a, numbers), _work_on(b, clock_b, kinds_b, numbers))
    return both if all(len(work.events) for work in both) else None


def nested_work(a: Trace, b: Trace, both: tuple[SharedWork, SharedWork]) -> ThreadStretches | None:
    """The nest of two traces; None where it says no more: no slice holds another, and b knows nothing else.

    Args:
        a, b: the outer and the inner trace.
        both: what both know.
    """
    found = nest_of(a, b, both)
    flat = sum(len(thread.begin) for thread in found.threads) <= 2 * len(both[0].rows) + 1
    return None if flat and len(found.calls) == len(both[1].rows) else found


def nest_of(a: Trace, b: Trace, both: tuple[SharedWork, SharedWork]) -> ThreadStretches:
    """The threads of a that work on what both know, and all that b has on the tracks of such work."""
    outer, inner = both
    kinds = np.full(len(a.slices.ts), UNNAMED, np.int32)
    kinds[outer.rows] = outer.events.kind
    tracks = np.unique(a.slices.track[outer.rows]).tolist()
    threads = tuple(_stretches(a, track, kinds, outer.events.zero_ns) for track in tracks)
    return ThreadStretches(threads, _calls(b, inner, unnamed=len(tracks) == 1), outer.events.quantum_ns)


def _stretches(trace: Trace, track: int, kinds: I32, zero: int) -> Stretches:
    """What a thread was in at each time; slices are sorted by time on each track, outer ones first."""
    slices = trace.slices
    rows = np.flatnonzero(slices.track == track)
    starts, ends = slices.ts[rows].tolist(), (slices.ts[rows] + slices.dur[rows]).tolist()
    found = []
    opened: list[tuple[int, int]] = []  # when each ends, and its kind
    at, last = starts[0], max(ends)
    for start, until, number in zip([*starts, last], [*ends, last], [*kinds[rows].tolist(), UNNAMED], strict=True):
        while opened and opened[-1][0] <= start:
            closing, closed = opened.pop()
            found.append((at, closing, closed))
            at = closing
        found.append((at, start, opened[-1][1] if opened else UNNAMED))
        opened.append((until, number))
        at = start
    begin, end, kind = np.array([one for one in found[:-1] if one[1] > one[0]] or np.empty((0, 3)), np.int64).T
    return Stretches((begin - zero).astype(np.float64), (end - zero).astype(np.float64), kind.astype(np.int32))


def _calls(trace: Trace, work: SharedWork, *, unnamed: bool) -> Events:
    """The shared events, and those of other kinds on their tracks, but for what holds others."""
    slices = trace.slices
    kinds = np.full(len(slices.ts), UNNAMED, np.int32)
    kinds[work.rows] = work.events.kind
    rows = work.rows
    if unnamed:
        rows = np.flatnonzero(np.isin(slices.track, np.unique(slices.track[rows])))
        end = slices.ts[rows] + slices.dur[rows]
        holds = (slices.track[rows[1:]] == slices.track[rows[:-1]]) & (slices.ts[rows[1:]] < end[:-1])
        kept = np.append(~holds, True) | (kinds[rows] != UNNAMED)
        rows = rows[kept]
        rows = rows[np.argsort(slices.ts[rows], kind="stable")]
    start = (slices.ts[rows] - work.events.zero_ns).astype(np.float64)
    return Events(start, slices.dur[rows].astype(np.float64), kinds[rows], work.events.zero_ns, work.events.quantum_ns)


def _kinds(trace: Trace, clock: int, names: NameMap) -> dict[int, str]:
    """The kind of work for each name of the slices on a clock."""
    found: dict[int, str] = {}
    for name, typed in _names(trace, rows_on(trace, clock, trace.slices.track)):
        found[name] = names.kind(typed if typed and names.has_class(typed) else trace.strings[name])
    return found


def _names(trace: Trace, rows: Array) -> Iterator[tuple[int, str]]:
    """The names of slices, as numbers, each with the type of its operator; "" if none is told."""
    used, first = np.unique(trace.slices.name[rows], return_index=True)
    for name, at in zip(used.tolist(), rows[first].tolist(), strict=True):
        typed = _TYPE.search(trace.args.get(int(trace.slices.args_at[at]), int(trace.slices.args_len[at])))
        yield name, typed[1].decode("utf-8", "replace") if typed else ""


def names_of(trace: Trace) -> set[str]:
    """What the slices of a trace are called, by name and by type."""
    found = {
        text for name, typed in _names(trace, np.arange(len(trace.slices.ts))) for text in (trace.strings[name], typed)
    }
    return found - {""}


def _work_on(trace: Trace, clock: int, kinds: dict[int, str], numbers: dict[str, int]) -> SharedWork:
    slices = trace.slices
    number_of = np.full(len(trace.strings), -1, np.int32)
    for name, kind in kinds.items():
        number_of[name] = numbers.get(kind, -1)
    rows = rows_on(trace, clock, slices.track)
    shared = number_of[slices.name[rows]]
    rows, shared = innermost(trace, rows[shared >= 0], shared[shared >= 0])
    # Without times, the order is that of the log: positions may begin anew in it, and lengths may be 0.
    order = np.argsort(slices.origin[rows] if trace.clocks[clock].run is Run.NONE else slices.ts[rows], kind="stable")
    rows, shared = rows[order], shared[order]
    zero = int(slices.ts[rows[0]]) if len(rows) else 0
    events = Events(
        (slices.ts[rows] - zero).astype(np.float64),
        slices.dur[rows].astype(np.float64),
        shared.astype(np.int32),
        zero,
        float(trace.clocks[clock].resolution_ns),
        label=_labels(trace, rows),
    )
    return SharedWork(events, rows)


def _labels(trace: Trace, rows: Array) -> I32:
    """A number for each name with each problem."""
    slices = trace.slices
    numbers: dict[tuple[int, tuple[bytes, ...]], int] = {}
    used = slices.name[rows], slices.args_at[rows], slices.args_len[rows]
    keys = (
        (name, tuple(_PROBLEM.findall(trace.args.get(at, size))) if size else ())
        for name, at, size in zip(*(column.tolist() for column in used), strict=True)
    )
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int32, len(rows))


def innermost(trace: Trace, rows: Array, kind: Array) -> tuple[Array, Array]:
    """Rows and kinds of slices that hold none of their kind; rows are in order of track and time, outer ones first."""
    slices = trace.slices
    end = slices.ts[rows] + slices.dur[rows]
    order = np.lexsort((np.arange(len(rows)), kind, slices.track[rows]))
    one, following = order[:-1], order[1:]
    holds = (
        (slices.track[rows[one]] == slices.track[rows[following]])
        & (kind[one] == kind[following])
        & (slices.ts[rows[following]] < end[one])
        & (end[following] <= end[one])
    )
    keep = np.ones(len(rows), bool)
    keep[one[holds]] = False
    return rows[keep], kind[keep]
