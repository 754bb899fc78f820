"""Flow events of Chrome traces become arrows between slices.

A flow event names a thread and a time; it belongs to the slice around it (`s`, `t`, and `f` with `bp: "e"`) or to the
next slice that begins there (`f` without). Steps of one flow are known by category, name and id. Writers put the end
before the start in the file, reuse ids, and end one flow several times (one launch, several kernels), so steps are put
together only when all are known: each start begins a flow of its own; a later step or end belongs to the latest start
at or before it, or to the first start if there is none; arrows go from the last start or step to the next step or end.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from traceconv.diagnostics import Severity, declare
from traceconv.ir.builder import Builder
from traceconv.ir.trace import SliceId

UNBOUND = declare(
    "chrome.flow_unbound",
    Severity.DATA_LOSS,
    "a flow event lies in no slice of its thread, so its arrow has no end there",
)
UNPAIRED = declare(
    "chrome.flow_unpaired", Severity.DATA_LOSS, "a flow has a start without an end, or an end without a start: no arrow"
)

FlowKey = tuple[str, str, bytes]


@dataclass(slots=True)
class Step:
    """One flow event.

    Attributes:
        key: category, name and id of the flow.
        phase: "s", "t" or "f".
        track, ts: where it stands.
        at: the number of the event.
        to_next: whether it belongs to the next slice instead of the one around it.
        row: the slice that it belongs to, once known.
        counts: whether it is an event of its own (a flow field of a slice is not).
    """

    key: FlowKey
    phase: str
    track: int
    ts: int
    at: int
    to_next: bool = False
    row: int = -1
    counts: bool = True


class FlowSteps:
    """Collects the flow events of a trace."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Add one step, in the order of the input."""
        self._steps.append(step)

    def resolve(self, out: Builder) -> None:
        """Draw the arrows. All slices must be in the builder."""
        self._bind(out)
        bound = [step for step in self._steps if step.row >= 0]
        for step in self._steps:
            if step.row < 0:
                out.skip(UNBOUND, step.at, f"{step.phase} of flow {_shown(step.key)}")
        for _, steps in groupby(sorted(bound, key=attrgetter("key")), key=attrgetter("key")):
            _draw(list(steps), out)

    def _bind(self, out: Builder) -> None:
        waiting = sorted((s for s in self._steps if s.row < 0), key=attrgetter("track", "ts"))
        if not waiting:
            return
        columns = out.slice_columns()
        track = np.frombuffer(columns["track"], np.int32)
        ts = np.frombuffer(columns["ts"], np.int64)
        dur = np.frombuffer(columns["dur"], np.int64)
        order = np.lexsort((-dur, ts, track))
        sorted_track = track[order]
        for number, steps in groupby(waiting, key=attrgetter("track")):
            first, last = np.searchsorted(sorted_track, [number, number + 1])
            rows = order[first:last]
            _bind_on_track(list(steps), rows.tolist(), ts[rows].tolist(), (ts + dur)[rows].tolist())


def _bind_on_track(steps: list[Step], rows: list[int], starts: list[int], ends: list[int]) -> None:
    """Find the slice of each step; both are in order of time, slices that begin together the longer first."""
    open_slices: list[int] = []
    upcoming = 0
    for step in steps:
        if step.to_next:
            following = bisect_left(starts, step.ts)
            step.row = rows[following] if following < len(rows) else -1
            continue
        while upcoming < len(rows) and starts[upcoming] <= step.ts:
            while open_slices and ends[open_slices[-1]] < starts[upcoming]:
                open_slices.pop()
            open_slices.append(upcoming)
            upcoming += 1
        while open_slices and ends[open_slices[-1]] < step.ts:
            open_slices.pop()
        around = _innermost(open_slices, starts, ends, step.ts)
        step.row = rows[around] if around >= 0 else -1


def _innermost(open_slices: list[int], starts: list[int], ends: list[int], ts: int) -> int:
    """The innermost slice around ts; one that just ends there only if no other is open."""
    ending = -1
    for index in reversed(open_slices):
        if ends[index] > ts or starts[index] == ts:
            return index
        if ends[index] == ts and ending < 0:
            ending = index
    return ending


def _draw(steps: list[Step], out: Builder) -> None:
    """The arrows of all flows with one key."""
    steps.sort(key=lambda step: (step.ts, "stf".index(step.phase)))
    flows: list[list[Step]] = [[step] for step in steps if step.phase == "s"]
    starts = [flow[0].ts for flow in flows]
    current = -1
    for step in steps:
        if step.phase == "s":
            current += 1
        elif flows:
            flows[max(current, 0)].append(step)
        else:
            _unpaired(step, out)
    assert len(starts) == len(flows)
    for flow in flows:
        _draw_flow(flow, out)


def _draw_flow(flow: list[Step], out: Builder) -> None:
    if len(flow) == 1:
        _unpaired(flow[0], out)
        return
    category, name, _ = flow[0].key
    before = flow[0]
    for step in flow[1:]:
        out.flow(SliceId(before.row), SliceId(step.row), name, category, step.at)
        if step.phase != "f":
            before = step
    out.balance.written += sum(step.counts for step in flow)


def _unpaired(step: Step, out: Builder) -> None:
    detail = f"{step.phase} of flow {_shown(step.key)}"
    if step.counts:
        out.skip(UNPAIRED, step.at, detail)
    else:
        out.problem(UNPAIRED, step.at, detail)


def _shown(key: FlowKey) -> str:
    category, name, number = key
    return f"{category or name} {number.decode('utf-8', 'replace')}"
