"""Turn the flow events of Chrome traces into flows between two slices each.

A flow event states a thread and a time. It belongs to the slice around that time (`s`, `t`, and `f` with `bp: "e"`) or
to the next slice of the thread (`f` without). Where none is around it, Perfetto takes the one that was open last: it
ends a slice of phase X only when the thread goes on. So do we, but not for launches: the call before is another one.
Events of one flow have equal category, name and id. Writers put ends before starts in the file, reuse ids, and end one
flow several times (one launch, several kernels). So they are resolved after the last event: each start begins a flow of
its own; a step or end belongs to the latest start at or before it, else to the first start; flows go from the last
start or step to the next step or end.

Several slices can begin at the time: a thread can start a launch in the same µs as another call. In formats whose calls
and work share ids (`FormatMarks`), a launch flow then joins slices of equal id; Kineto also gives this id to the flow.
Without such ids it is the innermost slice.
Where a launch flow has ends only, an end at a call is its start: Kineto writes an end for each call that it does not
know as a launch, such as hipGraphLaunch, which launches many kernels.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.model.builder import Builder
from traceconv.model.columns import I32, I64, Order, chunks, gathered, like_next, occurring, stable_order
from traceconv.model.diagnostics import KEPT_PLACES, Code, absent, lost, noted
from traceconv.model.drawable import NEVER_SET, LeftOut
from traceconv.model.marks import LaunchMarks, ids_of, of_launches
from traceconv.model.numbers import whole

UNBOUND = lost("chrome.flow_unbound", "a flow event lies in no slice of its thread, so its flow has no end there")
LATE = noted(
    "chrome.flow_late",
    "a flow event lies behind the slices of its thread: its flow is drawn at the one open last, as in Perfetto",
)
UNPAIRED = absent("chrome.flow_unpaired", "a flow has a start without an end, or an end without a start: not drawn")

FlowKey = tuple[str, str, bytes]
_START, _STEP, _END = 0, 1, 2
_PHASES = {"s": _START, "t": _STEP, "f": _END}
_NO_SLICE = -1
_EARLIEST = np.iinfo(np.int64).min
_FIRST_PLACEHOLDER = -2  # the next ones are below
#: Longer ids are kept as texts: an int64 always holds this many digits.
_MOST_DIGITS = 18
_QUOTE, _ZERO = b'"0'
_STEP_COLUMNS = {"kind": "i", "id": "q", "phase": "b", "track": "i", "ts": "q", "at": "q"}
_STEP_COLUMNS |= {"to_next": "b", "row": "q", "counts": "b"}


class FlowSteps:
    """Collects the flow events of a trace, in columns; `unpaired` is the problem of a flow with one end in the file."""

    def __init__(self, unpaired: Code = UNPAIRED) -> None:
        self.unpaired = unpaired
        self._forget()
        self._settled: list[int] = []  # the track for each placeholder

    def _forget(self) -> None:
        self.kinds: dict[tuple[str, str], int] = {}  # the numbers of categories with names
        self.texts: dict[bytes, int] = {}  # those of ids that are no plain numbers; there may be millions of ids
        self._columns = {name: array(code) for name, code in _STEP_COLUMNS.items()}

    def add(
        self,
        key: FlowKey,
        phase: str,
        track: int,
        ts: int,
        at: int,
        *,
        to_next: bool = False,
        row: int = _NO_SLICE,
        counts: bool = True,
    ) -> None:
        """Add one flow event, in the order of the input.

        Args:
            key: category, name and id of the flow.
            phase: "s", "t" or "f".
            track, ts: its track, and its time in ns.
            at: the number of the event.
            to_next: whether it belongs to the next slice instead of the one around it.
            row: the slice that it belongs to, if known.
            counts: whether it counts as an event (a flow field of a slice does not).
        """
        category, name, id = key
        fields = (self.kind(category, name), self.id(id), _PHASES[phase], track, ts, at, to_next, row, counts)
        for column, value in zip(self._columns.values(), fields, strict=True):
            column.append(value)

    def extend(self, kinds: Sequence[int], ids: I64, phase: I64, track: I64, ts: I64, at: I64, to_next: I64) -> None:
        """Add many flow events at once; numbers of `kind` and of `id`, phases are numbers of characters."""
        columns = {
            "kind": np.array(kinds),
            "id": ids,
            "phase": np.select([phase == ord("s"), phase == ord("t")], [_START, _STEP], _END),
            "track": track,
            "ts": ts,
            "at": at,
            "to_next": to_next,
            "row": np.full(len(ids), _NO_SLICE),
            "counts": np.ones(len(ids)),
        }
        for name, values in columns.items():
            self._columns[name].frombytes(values.astype(_STEP_COLUMNS[name]).tobytes())

    def kind(self, category: str, name: str) -> int:
        """Return the number of a pair of category and name. torch 1.4 indents the names of ends."""
        return self.kinds.setdefault((category, name.strip()), len(self.kinds))

    def id(self, text: bytes) -> int:
        """Return the number of an id: its own if it is a plain number, otherwise one below 0."""
        if text.isdigit() and len(text) <= _MOST_DIGITS and (text[:1] != b"0" or len(text) == 1):
            return whole(text)
        return -1 - self.texts.setdefault(text, len(self.texts))

    def ids(self, data: bytes, at: I64, length: I64) -> I64:
        """Return the numbers of ids by their positions in JSON, where they may have quotes; see `id`."""
        text = np.frombuffer(data, np.uint8)
        quoted = (length > 0) & (text[np.minimum(at, len(text) - 1)] == _QUOTE)
        first, digits = at + quoted, length - 2 * quoted
        is_plain = (digits > 0) & (digits <= _MOST_DIGITS)
        numbers = np.zeros(len(at), np.int64)
        for place in range(int(np.max(digits, where=is_plain, initial=0))):
            inside = is_plain & (place < digits)
            digit = text[np.where(inside, first + place, 0)] - _ZERO  # wraps for characters before 0
            is_plain &= ~inside | (digit <= 9)
            numbers = np.where(inside, numbers * 10 + digit, numbers)
        is_plain &= (digits == 1) | (text[np.where(is_plain, first, 0)] != _ZERO)
        for row in np.flatnonzero(~is_plain).tolist():
            numbers[row] = self.id(data[at[row] : at[row] + length[row]].strip(b'"'))
        return numbers

    def placeholder(self) -> int:
        """Return a placeholder for a track that is not known yet."""
        self._settled.append(_NO_SLICE)
        return _FIRST_PLACEHOLDER - len(self._settled) + 1

    def settle(self, placeholder: int, track: int) -> None:
        """Set the track of a placeholder."""
        self._settled[_FIRST_PLACEHOLDER - placeholder] = track

    def resolve(self, out: Builder) -> None:
        """Add the flows to the builder, which must hold all slices and is settled. The steps are consumed."""
        left_out = out.settle()
        if self._columns["id"]:
            columns = self.take_columns()
            if left_out is not None:
                columns = _with_time(columns, left_out, out)
            if len(columns["id"]):
                _Resolution(self, columns, out).run()
        self._forget()

    def take_columns(self) -> dict[str, npt.NDArray[Any]]:
        """Remove and return the columns of all flow events, with kinds and ids as numbers."""
        columns = {name: np.frombuffer(values, _STEP_COLUMNS[name]) for name, values in self._columns.items()}
        self._columns = {}
        track = columns["track"]
        pending = track <= _FIRST_PLACEHOLDER
        track[pending] = np.array(self._settled, np.int64)[_FIRST_PLACEHOLDER - track[pending]]
        return columns


class _Resolution:
    """Finds the slice of each flow event, and adds the flows."""

    def __init__(self, steps: FlowSteps, columns: dict[str, npt.NDArray[Any]], out: Builder) -> None:
        self._out, self._steps = out, steps
        self.phase, self.track, self.ts, self.at = (columns[name] for name in ("phase", "track", "ts", "at"))
        self.to_next, self.row, self.counts = (columns[name] for name in ("to_next", "row", "counts"))
        self._kinds = list(steps.kinds)
        marks = out.info.marks
        self._marks = marks.launches or LaunchMarks()
        # By numbers of kinds: whether flows of that kind are launches, and join calls and work of equal id.
        named = [of_launches(marks.launch_flows, texts) for texts in zip(*self._kinds, strict=True)]
        self._is_launch = named[0] | named[1]
        self._joins_ids = self._is_launch & bool(self._marks.ids)
        self._is_late = np.zeros(len(self.ts), bool)  # whether a step lies in no slice
        self._is_one_of_many = np.zeros(len(self.ts), bool)  # whether several slices begin at the time of a step
        self._begin_there: list[Order] = []  # these slices
        kind, id = columns["kind"], columns["id"]
        by_key = _order(self.at, id, kind)  # the first step of each key first
        begins = np.append(True, ~like_next(by_key, kind, id))
        first = by_key[begins]
        # Flows are added in the order of their keys, so keys are numbered by file order.
        order = _order(first, self.at[first])
        rank = np.empty(len(first), np.int32)
        rank[order] = np.arange(len(first), dtype=np.int32)
        self.key = np.empty(len(by_key), np.int32)
        self.key[by_key] = rank[np.cumsum(begins, dtype=np.int32) - 1]
        self._kind_of, self._id_of = kind[first[order]], id[first[order]]

    def run(self) -> None:
        left = np.arange(len(self.key), dtype=np.int32)
        self._find_starts()
        left = self._without_unpaired(left)
        self._bind(left[self.row[left] == _NO_SLICE])
        several = np.flatnonzero(self._is_one_of_many)
        self.row[several] = self._with_ids(several, self.row[several], self._id_of[self.key[several]])
        lost = left[self.row[left] == _NO_SLICE]
        self._skip(UNBOUND, lost)
        left = self._without_unpaired(left[self.row[left] != _NO_SLICE])
        self._tell(LATE, left[self._is_late[left]], np.zeros(len(self.key), bool))
        self._draw(left[_order(self.at[left], self.phase[left], self.ts[left], self.key[left])])

    def _find_starts(self) -> None:
        """Turn ends at calls into starts, in launch flows with other ends and without a start."""
        if not np.any(self._joins_ids):
            return
        starts, others = np.zeros((2, len(self._id_of)), bool)
        starts[self.key[self.phase == _START]] = True
        steps = np.flatnonzero((self._joins_ids[self._kind_of] & ~starts)[self.key] & (self.phase == _END))
        self._bind(steps[self.row[steps] == _NO_SLICE])
        steps = steps[self.row[steps] != _NO_SLICE]
        if not len(steps):
            return
        calls = [number for number, text in enumerate(self._out.tables.strings()) if text in self._marks.calls]
        (category,) = self._out.tables.slice_columns("category")
        is_call = np.isin(category[self.row[steps]], calls)
        others[self.key[steps[~is_call]]] = True
        self.phase[steps[is_call & others[self.key[steps]]]] = _START

    def _without_unpaired(self, steps: Order) -> Order:
        """Return the steps of flows that have both a start and something after it; the others are reported."""
        starts, others = np.zeros((2, len(self._id_of)), bool)
        is_start = self.phase[steps] == _START
        starts[self.key[steps[is_start]]] = True
        others[self.key[steps[~is_start]]] = True
        paired = (starts & others)[self.key[steps]]
        self._skip(self._steps.unpaired, steps[~paired])
        left: Order = steps[paired]
        return left

    def _skip(self, code: Code, steps: Order) -> None:
        """Report steps that are not drawn."""
        self._tell(code, steps, self.counts != 0)

    def _tell(self, code: Code, steps: Order, is_lost: npt.NDArray[np.bool_]) -> None:
        """Report steps, the first ones with their places; `is_lost` says which of all are events not drawn."""
        steps = steps[np.argsort(self.at[steps], kind="stable")]
        more = steps[KEPT_PLACES:]
        skipped = int(np.count_nonzero(is_lost[more]))
        if skipped:
            self._out.skip(code, count=skipped)
        if len(more) > skipped:
            self._out.problem(code, count=len(more) - skipped)
        for step in steps[:KEPT_PLACES].tolist():
            key = self.key[step]
            category, name = self._kinds[self._kind_of[key]]
            shown = f"{'stf'[self.phase[step]]} of flow {category or name} {self._shown_id(int(self._id_of[key]))}"
            report = self._out.skip if is_lost[step] else self._out.problem
            report(code, int(self.at[step]), shown)

    def _shown_id(self, id: int) -> str:
        return str(id) if id >= 0 else next(islice(self._steps.texts, -1 - id, None)).decode("utf-8", "replace")

    # -- the slices -------------------------------------------------------------------------------------------

    def _bind(self, steps: Order) -> None:
        """Find the slice of each of the steps."""
        if not len(steps):
            return
        steps = steps[_order(self.ts[steps], self.track[steps])]
        step_tracks = self.track[steps]
        track, ts, dur, origin = self._out.tables.slice_columns("track", "ts", "dur", "origin")
        by_track = _order(track)
        tracks = gathered(track, by_track)
        for number in occurring(step_tracks):
            here = steps[slice(*np.searchsorted(step_tracks, [number, number + 1]))]
            rows = by_track[slice(*np.searchsorted(tracks, [number, number + 1]))]
            if len(rows):
                rows = rows[_order(origin[rows], -dur[rows], ts[rows])]  # as slices are laid out
                starts = ts[rows]
                self._bind_on_track(here, rows, starts, starts + dur[rows])

    def _bind_on_track(self, steps: Order, rows: Order, starts: I64, ends: I64) -> None:
        """Bind steps to slices; both are sorted by time, slices of equal start by length and place in the file."""
        around = np.searchsorted(starts, self.ts[steps], "right") - 1
        begins_here = (around >= 0) & (starts[around] == self.ts[steps]) & (self.to_next[steps] == 0)
        self.row[steps[begins_here]] = rows[around[begins_here]]  # no slice lies further inside
        is_as_before = np.append(False, starts[1:] == starts[:-1])
        self._note_several(steps[begins_here & is_as_before[around]], rows, starts)
        to_next = self.to_next[steps] != 0
        following = np.searchsorted(starts, self.ts[steps])
        self.row[steps[to_next]] = np.append(rows, _NO_SLICE)[following[to_next]]
        inside = steps[~begins_here & ~to_next]
        if len(inside):
            innermost = _innermost(starts, ends, self.ts[inside])
            is_late = (innermost < 0) & ~self._is_launch[self._kind_of[self.key[inside]]]
            if np.any(is_late):
                before = around[~begins_here & ~to_next][is_late]
                innermost[is_late] = self._last(rows, starts, ends, before)
            self.row[inside] = np.where(innermost >= 0, rows[innermost], _NO_SLICE)
            self._is_late[inside[is_late & (innermost >= 0)]] = True

    def _last(self, rows: Order, starts: I64, ends: I64, before: I64) -> I64:
        """Return the slice of phase X that was open at the last start or E, by the slices that began before; or -1."""
        is_paired = rows >= self._out.tables.first_paired
        ended = np.maximum.accumulate(np.where(is_paired, ends, _EARLIEST))[before]
        points = np.where(ended > starts[before], ended + 1, starts[before])  # an E ends what ends at its time
        points[before < 0] = _EARLIEST
        complete = np.flatnonzero(~is_paired)
        found = _innermost(starts[complete], ends[complete], points)
        return np.where(found >= 0, np.append(complete, _NO_SLICE)[found], _NO_SLICE)

    def _note_several(self, steps: Order, rows: Order, starts: I64) -> None:
        """Note steps at whose time several slices of a track begin, and these slices, the outermost first."""
        steps = steps[self._joins_ids[self._kind_of[self.key[steps]]]]
        if len(steps):
            self._is_one_of_many[steps] = True
            times = self.ts[steps]
            self._begin_there.append(rows[times[np.minimum(np.searchsorted(times, starts), len(times) - 1)] == starts])

    def _with_ids(self, steps: Order, rows: I64, wanted: I64) -> I64:
        """Return the slice of each step at whose time several begin: that with the wanted id, else that in `rows`."""
        if not len(steps):
            return rows
        there = np.concatenate(self._begin_there)
        track, ts = self._out.tables.slice_columns("track", "ts")
        places = [
            np.append(track[there], self.track[steps]),
            np.append(ts[there], self.ts[steps]),
            np.append(self._ids(there), wanted),
        ]
        order = np.lexsort(places)
        differs = np.any([column[order[1:]] != column[order[:-1]] for column in places], axis=0)
        number = np.empty(len(order), np.int64)
        number[order] = np.append(0, np.cumsum(differs))
        known, first = np.unique(number[: len(there)], return_index=True)
        positions = np.minimum(np.searchsorted(known, number[len(there) :]), len(known) - 1)
        has_one = (known[positions] == number[len(there) :]) & (wanted > 0)
        return np.where(has_one, there[first[positions]], rows)

    def _ids(self, rows: I64) -> I64:
        """Return the ids that slices share with their call or work, 0 without one."""
        at, length = self._out.tables.slice_columns("args_at", "args_len")
        return ids_of(self._out.tables.kept_args(), at[rows], length[rows], self._marks)

    # -- the flows -------------------------------------------------------------------------------------------

    def _draw(self, steps: Order) -> None:
        """Add the flows; the steps are in order of key, time and phase."""
        if not len(steps):
            return
        bounds = np.flatnonzero(np.diff(self.key[steps])) + 1
        firsts = np.concatenate(([0], bounds))
        sizes = np.diff(np.concatenate((firsts, [len(steps)])))
        pairs = steps[firsts[sizes == 2]], steps[firsts[sizes == 2] + 1]
        is_start = self.phase[pairs[0]] == _START
        sources, targets, alone = array("q"), array("q"), array("q")  # of flows with more than one end
        for first, size in zip(firsts[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
            self._join(steps[first : first + size].tolist(), sources, targets, alone)
        begins = np.where(is_start, *pairs), np.frombuffer(sources, np.int64)
        ends = np.where(is_start, *pairs[::-1]), np.frombuffer(targets, np.int64)
        self._flows(*(np.concatenate(parts).astype(steps.dtype) for parts in (begins, ends)))
        self._skip(self._steps.unpaired, np.frombuffer(alone, np.int64))
        self._out.balance.written += int(self.counts[steps].sum()) - int(
            self.counts[np.frombuffer(alone, np.int64)].sum()
        )

    def _join(self, steps: list[int], sources: array[int], targets: array[int], alone: array[int]) -> None:
        """Add the two ends of the flows of one key, each start begins a flow of its own, and starts without an end."""
        starts = [step for step in steps if self.phase[step] == _START]
        pending = set(starts)
        before = starts[0]
        for step in steps:
            if self.phase[step] == _START:
                before = step
                continue
            pending.discard(before)
            sources.append(before)
            targets.append(step)
            if self.phase[step] == _STEP:
                before = step
        alone.extend(sorted(pending))

    def _flows(self, sources: Order, targets: Order) -> None:
        kinds = self._kind_of[self.key[sources]]
        first = np.full(len(self._kinds), len(kinds))
        np.minimum.at(first, kinds, np.arange(len(kinds)))
        met = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(kinds))].tolist()
        in_order = [self._kinds[kind] for kind in met]
        for text in [*(name for _, name in in_order), *(category for category, _ in in_order)]:
            self._out.tables.string(text)
        names, categories = np.zeros((2, len(self._kinds)), np.int32)
        for kind in met:
            categories[kind], names[kind] = map(self._out.tables.string, self._kinds[kind])
        for rows in chunks(len(sources)):
            self._add(sources[rows], targets[rows], names[kinds[rows]], categories[kinds[rows]])

    def _add(self, sources: Order, targets: Order, names: I32, categories: I32) -> None:
        begins, ends = self.row[sources], self.row[targets]
        for steps, rows, others in ((sources, begins, ends), (targets, ends, begins)):
            some = np.flatnonzero(self._is_one_of_many[steps])
            if len(some):
                rows[some] = self._with_ids(steps[some], rows[some], self._ids(others[some]))
        self._out.bulk.flows(begins, ends, names, categories, self.at[targets])


def _with_time(columns: dict[str, npt.NDArray[Any]], left_out: LeftOut, out: Builder) -> dict[str, npt.NDArray[Any]]:
    """Return the steps without those whose time, or that of their slice, was never set, with the new slices."""
    is_unset = left_out.is_no_time(columns["ts"], columns["track"])
    has_row = columns["row"] != _NO_SLICE
    columns["row"][has_row] = left_out.numbers[columns["row"][has_row]]
    is_counted = is_unset & (columns["counts"] != 0)
    origins = np.sort(columns["at"][is_counted])
    for at in origins[:KEPT_PLACES].tolist():
        out.skip(NEVER_SET, at, "a flow")
    if len(origins) > KEPT_PLACES:
        out.skip(NEVER_SET, count=len(origins) - KEPT_PLACES)
    is_unset |= has_row & (columns["row"] == _NO_SLICE)
    return {name: values[~is_unset] for name, values in columns.items()}


def _order(*keys: npt.NDArray[Any]) -> Order:
    """Return the stable order of rows by several columns in memory, the last one first."""
    return stable_order(keys, lambda: None)


def _innermost(starts: I64, ends: I64, points: I64) -> I64:
    """Return the innermost slice of a track at each time, -1 without one.

    A slice that ends exactly at the time counts: critical paths leave slices at their ends. Slices that cross are a
    stack: one that ends before the next one starts is closed.

    Args:
        starts, ends: the slices, ns.
        points: the times, ns, ascending.
    """
    nesting = kernel.module("nesting")
    if nesting is not None:
        innermost = np.empty(len(points), np.int64)
        nesting.innermost(starts, ends, points, innermost)
        return innermost
    begins, stops = starts.tolist(), ends.tolist()
    around: list[int] = []
    open_slices: list[int] = []
    upcoming = 0
    for point in points.tolist():
        while upcoming < len(begins) and begins[upcoming] <= point:
            while open_slices and stops[open_slices[-1]] < begins[upcoming]:
                open_slices.pop()
            open_slices.append(upcoming)
            upcoming += 1
        while open_slices and stops[open_slices[-1]] < point:
            open_slices.pop()
        around.append(open_slices[-1] if open_slices else _NO_SLICE)
    return np.array(around, np.int64)
