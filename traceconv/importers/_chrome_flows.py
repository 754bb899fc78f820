"""Flow events of Chrome traces become arrows between slices.

A flow event names a thread and a time; it belongs to the slice around it (`s`, `t`, and `f` with `bp: "e"`) or to the
next slice that begins there (`f` without). Steps of one flow are known by category, name and id. Writers put the end
before the start in the file, reuse ids, and end one flow several times (one launch, several kernels), so steps are put
together only when all are known: each start begins a flow of its own; a later step or end belongs to the latest start
at or before it, or to the first start if there is none; arrows go from the last start or step to the next step or end.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.diagnostics import Code, Severity, declare
from traceconv.ir.builder import Builder
from traceconv.ir.trace import I64, occurring

UNBOUND = declare(
    "chrome.flow_unbound",
    Severity.DATA_LOSS,
    "a flow event lies in no slice of its thread, so its arrow has no end there",
)
UNPAIRED = declare(
    "chrome.flow_unpaired", Severity.DATA_LOSS, "a flow has a start without an end, or an end without a start: no arrow"
)

FlowKey = tuple[str, str, bytes]
_START, _STEP, _END = 0, 1, 2
_PHASES = {"s": _START, "t": _STEP, "f": _END}
_NO_SLICE = -1
_FIRST_PLACEHOLDER = -2  # the next ones are below
_WIDTH, _TRACK = 8, 2


class FlowSteps:
    """Collects the flow events of a trace, in columns.

    Args:
        unpaired: the diagnostic for a flow that has only one end in the file.
    """

    def __init__(self, unpaired: Code = UNPAIRED) -> None:
        self._unpaired = unpaired
        self._keys: dict[FlowKey, int] = {}
        self._fields = array("q")  # _WIDTH of them for each flow event, as `add` takes them
        self._settled: list[int] = []  # the track of each placeholder

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
            track: where it stands, and `ts` when, in ns.
            at: the number of the event.
            to_next: whether it belongs to the next slice instead of the one around it.
            row: the slice that it belongs to, if that is known.
            counts: whether it is an event of its own (a flow field of a slice is not).
        """
        number = self._keys.setdefault(key, len(self._keys))
        self._fields.extend((number, _PHASES[phase], track, ts, at, to_next, row, counts))

    def extend(self, keys: Sequence[FlowKey], phase: I64, track: I64, ts: I64, at: I64, to_next: I64) -> None:
        """Add many flow events at once; the phases are numbers of characters."""
        known = self._keys
        fields = np.empty((len(keys), _WIDTH), np.int64)
        fields[:, 0] = [known.setdefault(key, len(known)) for key in keys]
        fields[:, 1] = np.select([phase == ord("s"), phase == ord("t")], [_START, _STEP], _END)
        for place, column in enumerate((track, ts, at, to_next), 2):
            fields[:, place] = column
        fields[:, 6:] = _NO_SLICE, 1
        self._fields.frombytes(fields.tobytes())

    def placeholder(self) -> int:
        """Stands for a track that is not known yet."""
        self._settled.append(_NO_SLICE)
        return _FIRST_PLACEHOLDER - len(self._settled) + 1

    def settle(self, placeholder: int, track: int) -> None:
        """Say which track a placeholder stands for."""
        self._settled[_FIRST_PLACEHOLDER - placeholder] = track

    def resolve(self, out: Builder) -> None:
        """Draw the arrows. All slices must be in the builder."""
        if self._fields:
            _Resolution(self, out).run()

    def columns(self) -> tuple[I64, ...]:
        """Key, phase, track, ts, at, to_next, row and counts of all flow events."""
        fields = np.array(self._fields, np.int64).reshape(-1, _WIDTH).T.copy()
        pending = fields[_TRACK] <= _FIRST_PLACEHOLDER
        fields[_TRACK, pending] = np.array(self._settled, np.int64)[_FIRST_PLACEHOLDER - fields[_TRACK, pending]]
        return tuple(fields)

    def names(self) -> list[FlowKey]:
        """The keys by number."""
        return list(self._keys)

    @property
    def unpaired(self) -> Code:
        """The diagnostic for a flow with only one end."""
        return self._unpaired


class _Resolution:
    """Finds the slice of each flow event and draws the arrows."""

    def __init__(self, steps: FlowSteps, out: Builder) -> None:
        self._out = out
        self._names = steps.names()
        self._unpaired = steps.unpaired
        self.key, self.phase, self.track, self.ts, self.at, self.to_next, self.row, self.counts = steps.columns()
        self._number_keys_by_first_event()

    def run(self) -> None:
        left = np.arange(len(self.key))
        left = self._without_unpaired(left)
        self._bind(left[self.row[left] == _NO_SLICE])
        lost = left[self.row[left] == _NO_SLICE]
        self._skip(UNBOUND, lost)
        left = self._without_unpaired(left[self.row[left] != _NO_SLICE])
        self._draw(left[np.lexsort((self.at[left], self.phase[left], self.ts[left], self.key[left]))])

    def _number_keys_by_first_event(self) -> None:
        """The arrows come in the order of their keys: let it be that of the file, however the steps were added."""
        first = np.full(len(self._names), np.iinfo(np.int64).max)
        np.minimum.at(first, self.key, self.at)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self.key = rank[self.key]
        self._names = [self._names[number] for number in order.tolist()]

    def _without_unpaired(self, steps: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The steps of flows that have both a start and something after it; the others are reported."""
        starts = np.bincount(self.key[steps][self.phase[steps] == _START], minlength=len(self._names)) > 0
        others = np.bincount(self.key[steps][self.phase[steps] != _START], minlength=len(self._names)) > 0
        paired = (starts & others)[self.key[steps]]
        self._skip(self._unpaired, steps[~paired])
        return steps[paired]

    def _skip(self, code: Code, steps: npt.NDArray[np.intp]) -> None:
        for step in steps.tolist():
            category, name, number = self._names[self.key[step]]
            shown = f"{'stf'[self.phase[step]]} of flow {category or name} {number.decode('utf-8', 'replace')}"
            if self.counts[step]:
                self._out.skip(code, int(self.at[step]), shown)
            else:
                self._out.problem(code, int(self.at[step]), shown)

    # -- the slices -------------------------------------------------------------------------------------------

    def _bind(self, steps: npt.NDArray[np.intp]) -> None:
        """Find the slice of each of the steps."""
        if not len(steps):
            return
        steps = steps[np.lexsort((self.ts[steps], self.track[steps]))]
        columns = self._out.slice_columns()
        track = np.array(columns["track"])
        ts = np.array(columns["ts"], np.int64)
        end = ts + np.array(columns["dur"], np.int64)
        order = np.lexsort((ts - end, ts, track))
        for number in occurring(self.track[steps]):
            here = steps[slice(*np.searchsorted(self.track[steps], [number, number + 1]))]
            rows = order[slice(*np.searchsorted(track[order], [number, number + 1]))]
            if len(rows):
                self._bind_on_track(here, rows, ts[rows], end[rows])

    def _bind_on_track(self, steps: npt.NDArray[np.intp], rows: npt.NDArray[np.intp], starts: I64, ends: I64) -> None:
        """Both the steps and the slices are in order of time, slices that begin together the longer first."""
        around = np.searchsorted(starts, self.ts[steps], "right") - 1
        begins_here = (around >= 0) & (starts[around] == self.ts[steps]) & (self.to_next[steps] == 0)
        self.row[steps[begins_here]] = rows[around[begins_here]]  # nothing can lie further inside
        to_next = self.to_next[steps] != 0
        following = np.searchsorted(starts, self.ts[steps])
        self.row[steps[to_next]] = np.append(rows, _NO_SLICE)[following[to_next]]
        inside = steps[~begins_here & ~to_next]
        if len(inside):
            found = _innermost(starts, ends, self.ts[inside])
            self.row[inside] = np.where(found >= 0, rows[found], _NO_SLICE)

    # -- the arrows -------------------------------------------------------------------------------------------

    def _draw(self, steps: npt.NDArray[np.intp]) -> None:
        """The arrows of all flows; the steps are in order of key, time and phase."""
        if not len(steps):
            return
        bounds = np.flatnonzero(np.diff(self.key[steps])) + 1
        firsts = np.concatenate(([0], bounds))
        sizes = np.diff(np.concatenate((firsts, [len(steps)])))
        pairs = steps[firsts[sizes == 2]], steps[firsts[sizes == 2] + 1]
        is_start = self.phase[pairs[0]] == _START
        self._arrows(np.where(is_start, *pairs), np.where(is_start, pairs[1], pairs[0]))
        for first, size in zip(firsts[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
            self._draw_flow(steps[first : first + size].tolist())
        self._out.balance.written += int(self.counts[steps].sum())

    def _draw_flow(self, steps: list[int]) -> None:
        """The arrows of all flows with one key: each start begins one of its own."""
        starts = [step for step in steps if self.phase[step] == _START]
        pending = set(starts)
        sources, targets = [], []
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
        self._arrows(np.array(sources), np.array(targets))
        lonely = np.array(sorted(pending), np.intp)
        self._skip(self._unpaired, lonely)
        self._out.balance.written -= int(self.counts[lonely].sum())

    def _arrows(self, sources: npt.NDArray[np.intp], targets: npt.NDArray[np.intp]) -> None:
        names = [self._names[key] for key in self.key[sources].tolist()]
        self._out.flows(
            self.row[sources].tolist(),
            self.row[targets].tolist(),
            [self._out.string(name) for _, name, _ in names],
            [self._out.string(category) for category, _, _ in names],
            self.at[targets].tolist(),
        )


def _innermost(starts: I64, ends: I64, points: I64) -> I64:
    """The innermost slice of one track around each point in time, -1 where there is none.

    A slice that just ends at the point is taken only if no other is open. Slices that cross are as in a stack: what
    ends before the next one begins is closed.

    Args:
        starts, ends: of the slices, ns.
        points: in order of time, ns.
    """
    if kernel.COMPILED:
        from traceconv.kernel import nesting

        found = np.empty(len(points), np.int64)
        nesting.innermost(starts, ends, points, found)
        return found
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
        around.append(_top(open_slices, begins, stops, point))
    return np.array(around, np.int64)


def _top(open_slices: list[int], starts: list[int], ends: list[int], ts: int) -> int:
    """The innermost slice around ts; one that just ends there only if no other is open."""
    ending = -1
    for index in reversed(open_slices):
        if ends[index] > ts or starts[index] == ts:
            return index
        if ends[index] == ts and ending < 0:
            ending = index
    return ending
