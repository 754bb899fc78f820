"""Find events whose time was never set, by the rule of the importers."""

from __future__ import annotations

import sys
from array import array

from traceconv.check._report import declare
from traceconv.model.diagnostics import KEPT_PLACES, Diagnostics, Severity
from traceconv.model.never_set import AtZero

NEVER_SET = declare(
    "check.never_set",
    Severity.DATA_LOSS,
    "an event is at time 0, far from all others: its writer could not measure it; viewers begin the timeline there",
)


class Zeros:
    """The events at 0, and the first and last time of the others, ns."""

    def __init__(self) -> None:
        self._first, self._last = sys.maxsize, 0
        self._positions = array("q")
        self._starts = self._ends = 0

    def point(self, ts: int, position: int) -> None:
        """Note an instant or a counter value."""
        if not ts:
            self._positions.append(position)
            return
        if ts < self._first:
            self._first = ts
        if ts > self._last:
            self._last = ts

    def start(self, ts: int, position: int) -> None:
        """Note the start of a slice."""
        self.point(ts, position)
        self._starts += not ts

    def end(self, ts: int) -> None:
        """Note the end of a slice."""
        self._ends += not ts
        if ts > self._last:
            self._last = ts

    def report(self, diagnostics: Diagnostics, what: str) -> None:
        """Report the events whose time was never set; `what` they are, by position."""
        at_zero = AtZero(self._first, self._last, self._ends > 0, self._starts > self._ends)
        if not self._positions or not at_zero.is_no_time:
            return
        for position in self._positions[:KEPT_PLACES]:
            diagnostics.add(NEVER_SET, f"{what} {position}")
        if len(self._positions) > KEPT_PLACES:
            diagnostics.add(NEVER_SET, count=len(self._positions) - KEPT_PLACES)
