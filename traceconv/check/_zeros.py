"""Find events whose time was never set, by the rule of the importers."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from traceconv.check._report import declare
from traceconv.model.columns import I64
from traceconv.model.diagnostics import KEPT_PLACES, Diagnostics, Severity
from traceconv.model.drawable import AtZero, BulkOfTimes, UnsureSlices

NEVER_SET = declare(
    "check.never_set",
    Severity.DATA_LOSS,
    "the time of an event was never set: its writer could not measure it, and left a 0, which viewers take for a time",
)
_UNENDED = -1
_BUFFERED = 1 << 16


class Zeros:
    """The events that may be without a time, and where the bulk of the others is."""

    def __init__(self) -> None:
        self._bulk, self._starts, self._ends = BulkOfTimes(), array("q"), array("q")
        self._points = array("q")
        # Of slices: start, end, position and category
        self._slices = tuple(array("q") for _ in range(4))
        self._categories: dict[str, int] = {}

    def time(self, start: int, end: int) -> None:
        """Note an event that has a time."""
        self._starts.append(start)
        self._ends.append(end)
        if len(self._starts) == _BUFFERED:
            self._flush()

    def times(self, starts: I64, ends: I64) -> None:
        """Note events that have a time."""
        self._bulk.add(starts, ends)

    def _flush(self) -> None:
        self.times(np.array(self._starts, np.int64), np.array(self._ends, np.int64))
        del self._starts[:], self._ends[:]

    def point(self, ts: int, position: int) -> None:
        """Note an instant, a counter value or a sample."""
        if ts:
            self.time(ts, ts)
        else:
            self._points.append(position)

    def slice(self, ts: int, end: int, position: int, category: bytes = b"") -> None:
        """Note a slice; `category` is a JSON text."""
        if ts > 0 or (ts < 0 and end != ts):
            self.time(ts, end)
        else:
            number = self._categories.setdefault(_text(category), len(self._categories))
            for column, value in zip(self._slices, (ts, end, position, number), strict=True):
                column.append(value)

    def unended(self, ts: int, position: int) -> None:
        """Note the start of a slice that has no end: it lasts as long as the trace."""
        if ts:
            self.time(ts, ts)
        else:
            self.slice(ts, _UNENDED, position)

    def report(
        self, diagnostics: Diagnostics, what: str, evidence: Callable[[AtZero], None], is_output: bool
    ) -> list[int]:
        """Report the events whose time was never set, and return their positions.

        Args:
            diagnostics: the report.
            what: what the positions count.
            evidence: a function that sets what is known about the writer; only called if there are events at 0.
            is_output: whether traceconv wrote the trace: it has looked at the inputs, so all events have a time.
        """
        if is_output or not (self._points or self._slices[0]):
            return []
        ts, end, position, category = (np.array(column, np.int64) for column in self._slices)
        at_zero = AtZero(0, 0)
        evidence(at_zero)
        kept = at_zero.may_be_left(ts, end - ts)
        self._flush()
        self._bulk.add(ts[~kept], end[~kept])
        at_zero.first, at_zero.last = self._bulk.first, self._bulk.last
        end[(ts == 0) & (end == _UNENDED)] = at_zero.last
        slices = UnsureSlices(ts[kept], (end - ts)[kept], category[kept], list(self._categories))
        found: list[int] = position[kept][at_zero.never_set(slices)].tolist()
        if at_zero.is_no_time(slices):
            found += self._points
        found.sort()
        for one in found[:KEPT_PLACES]:
            diagnostics.add(NEVER_SET, f"{what} {one}")
        if len(found) > KEPT_PLACES:
            diagnostics.add(NEVER_SET, count=len(found) - KEPT_PLACES)
        return found


def _text(category: bytes) -> str:
    return category.strip(b'"').decode("utf-8", "replace")
