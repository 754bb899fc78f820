"""Find events whose time was never set, by the rule of the importers."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable

import numpy as np

from traceconv.check._report import declare
from traceconv.model.diagnostics import KEPT_PLACES, Diagnostics, Severity
from traceconv.model.never_set import FAR_NS, AtZero, Slices, latest_left

NEVER_SET = declare(
    "check.never_set",
    Severity.DATA_LOSS,
    "an event is at time 0, which its writer left since it could not measure it; viewers draw it there",
)
_UNENDED = -1


class Zeros:
    """The events at 0, and the first and last time of the others, ns."""

    def __init__(self) -> None:
        self._first, self._last = sys.maxsize, 0
        self._points = array("q")
        # Of slices: start, end, position and category
        self._slices = tuple(array("q") for _ in range(4))
        self._categories: dict[str, int] = {}

    def time(self, ts: int) -> None:
        """Note a time other than 0."""
        if ts < self._first:
            self._first = ts
        if ts > self._last:
            self._last = ts

    def point(self, ts: int, position: int) -> None:
        """Note an instant or a counter value."""
        if ts:
            self.time(ts)
        else:
            self._points.append(position)

    def slice(self, ts: int, end: int, position: int, category: bytes = b"") -> None:
        """Note a slice; `category` is a JSON text."""
        if ts > -FAR_NS and ts:
            self.time(ts)
            self.time(end)
        else:
            number = self._categories.setdefault(_text(category), len(self._categories))
            for column, value in zip(self._slices, (ts, end, position, number), strict=True):
                column.append(value)

    def unended(self, ts: int, position: int) -> None:
        """Note the start of a slice that has no end: it lasts as long as the trace."""
        if ts:
            self.time(ts)
        else:
            self.slice(ts, _UNENDED, position)

    def report(self, diagnostics: Diagnostics, what: str, evidence: Callable[[AtZero], None]) -> None:
        """Report the events whose time was never set.

        Args:
            diagnostics: the report.
            what: what the positions count.
            evidence: a function that sets what is known about the writer; only called if there are events at 0.
        """
        if not self._points and not self._slices[0]:
            return
        at_zero = AtZero(self._first, self._last)
        evidence(at_zero)
        if at_zero.marks.is_output:  # traceconv has looked at the inputs
            return
        ts, end, position, category = (np.array(column, np.int64) for column in self._slices)
        kept = (ts == 0) | (ts <= latest_left(at_zero.marks))
        at_zero.first = int(np.min(ts[~kept], initial=at_zero.first))
        at_zero.last = int(np.max(end[~kept], initial=at_zero.last))
        ts, end, position, category = (column[kept] for column in (ts, end, position, category))
        end[end == _UNENDED] = self._last
        slices = Slices(ts, end - ts, category, list(self._categories))
        found = position[at_zero.never_set(slices)].tolist()
        if at_zero.is_no_time(slices):
            found += self._points
        found.sort()
        for one in found[:KEPT_PLACES]:
            diagnostics.add(NEVER_SET, f"{what} {one}")
        if len(found) > KEPT_PLACES:
            diagnostics.add(NEVER_SET, count=len(found) - KEPT_PLACES)


def _text(category: bytes) -> str:
    return category.strip(b'"').decode("utf-8", "replace")
