"""The calls of an API trace and the work of a GPU trace that they launched, by correlation id, as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.families.common import cupti as _cupti
from traceconv.io.spill import forget
from traceconv.model.builder import Builder
from traceconv.model.columns import Column, kept_rows
from traceconv.model.ordering import like_next, stable_order
from traceconv.model.trace import I64, ClockId, SliceId

_COLUMNS = {
    **dict.fromkeys(("id", "slice", "ts", "at"), np.int64),
    **dict.fromkeys(("process", "clock"), np.int32),
    "is_work": np.uint8,
}


class Row(NamedTuple):
    """A slice with its start (ns) on a clock, and its line."""

    slice: SliceId
    ts: int
    clock: ClockId
    at: int


class Pairs(NamedTuple):
    """Calls and their work: the clocks and times (ns) of both, in the order of the work."""

    call_clock: I64
    call_ts: I64
    work_clock: I64
    work_ts: I64

    def closest(self, clock: ClockId, other: ClockId) -> tuple[int, int] | None:
        """Return the launch with the least time to its work, if one clock has the calls and the other one the work.

        The result is its time on each of the two clocks, if the time to its work were 0.
        """
        forward = np.flatnonzero((self.call_clock == clock) & (self.work_clock == other))
        if len(forward):
            at = forward[np.argmax(self.call_ts[forward] - self.work_ts[forward])]
            return int(self.call_ts[at]), int(self.work_ts[at])
        backward = np.flatnonzero((self.call_clock == other) & (self.work_clock == clock))
        if not len(backward):
            return None
        at = backward[np.argmin(self.work_ts[backward] - self.call_ts[backward])]
        return int(self.work_ts[at]), int(self.call_ts[at])


class TextLaunches:
    """Collects the slices with correlation ids, and draws the flows."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._processes: dict[int | None, int] = {}
        self._columns = {name: Column(dtype) for name, dtype in _COLUMNS.items()}
        out.tables.kept_columns = list(self._columns.values())

    def add(self, pid: int | None, correlation: int, row: Row, on_device: bool) -> None:
        """Add the slice of a call or of work; of several calls with one id, the last one counts."""
        columns = self._columns
        columns["id"].append(correlation)
        columns["slice"].append(row.slice)
        columns["ts"].append(row.ts)
        columns["at"].append(row.at)
        columns["process"].append(self._processes.setdefault(pid, len(self._processes)))
        columns["clock"].append(row.clock)
        columns["is_work"].append(on_device)
        self._out.tables.kept_rows(len(columns["id"]))

    def draw(self) -> Pairs:
        """Draw the flows from calls to their work; return both. No slice can be added any more."""
        arrays, mappings = kept_rows(list(self._columns.values()))
        self._out.tables.kept_columns = ()
        rows = dict(zip(_COLUMNS, arrays, strict=True))

        def drop_pages() -> None:
            for mapping in mappings:
                forget(mapping)

        calls, work = _joined(rows, drop_pages)
        launch = np.full(len(work), self._out.tables.string(_cupti.LAUNCH_FLOW), np.int32)
        self._out.bulk.flows(rows["slice"][calls], rows["slice"][work], launch, launch, rows["at"][work])
        return Pairs(rows["clock"][calls], rows["ts"][calls], rows["clock"][work], rows["ts"][work])


def _joined(rows: dict[str, npt.NDArray[Any]], drop_pages: Callable[[], None]) -> tuple[I64, I64]:
    """Return the rows of the calls and of their work, in the order of the work."""
    is_work = rows["is_work"] != 0
    if np.all(is_work) or not np.any(is_work):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = stable_order((rows["id"], rows["process"]), drop_pages)
    launch = np.empty(len(order), np.int64)
    launch[order] = np.cumsum(np.append(False, ~like_next(order, rows["id"], rows["process"])))
    calls = np.flatnonzero(~is_work)
    call_of = np.full(int(np.max(launch)) + 1, -1)
    call_of[launch[calls]] = calls
    work = np.flatnonzero(is_work)
    found = call_of[launch[work]]
    return found[found >= 0], work[found >= 0]
