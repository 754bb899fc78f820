"""Check that the slices of each track open, close and nest as Perfetto pairs them.

An unnamed end closes the innermost open slice, a named one the innermost of its name. Perfetto sorts events by time, at
equal times by file order, so that order decides. Events are also paired in file order: it explains ends before their
start, and streaming readers pair in it.
"""

from __future__ import annotations

from array import array

import numpy as np

from traceconv.check._report import declare
from traceconv.check._zeros import Zeros
from traceconv.model.columns import I64
from traceconv.model.diagnostics import Diagnostics, Severity

END_ALONE = declare("check-pftrace.end_without_begin", Severity.DATA_LOSS, "an end finds no open slice on its track")
END_CROSSES = declare(
    "check-pftrace.end_crosses",
    Severity.DATA_LOSS,
    "a named end closes a slice that is not the innermost; Perfetto cuts the slices inside",
)
END_EARLY = declare("check-pftrace.end_before_begin", Severity.DATA_LOSS, "a slice ends before it begins")
NOT_CLOSED = declare("check-pftrace.not_closed", Severity.DATA_LOSS, 'a slice is shown as "did not end"')
TOO_DEEP = declare("check-pftrace.too_deep", Severity.DATA_LOSS, "below 512 levels Perfetto loses slices or their ends")
UNSORTED = declare(
    "check-pftrace.unsorted", Severity.NOTICE, "times on a track go back; viewers sort, which reads the file twice"
)
ORDER_MATTERS = declare(
    "check-pftrace.order_matters",
    Severity.NOTICE,
    "sorted by time, as in Perfetto, starts and ends pair differently than in the file",
)

_MAX_DEPTH = 512
_UNNAMED = 0


class Edges:
    """The starts and ends of one track, as columns."""

    def __init__(self) -> None:
        self._ts = array("q")
        self._packets = array("q")
        # Positive for a start, negative for an end; the number is that of the name (1: no name).
        self._kinds = array("q")

    def begin(self, ts: int, packet: int, name: int) -> None:
        self._ts.append(ts)
        self._packets.append(packet)
        self._kinds.append(name + 1)

    def end(self, ts: int, packet: int, name: int) -> None:
        self._ts.append(ts)
        self._packets.append(packet)
        self._kinds.append(-name - 1)

    def check(self, diagnostics: Diagnostics, zeros: Zeros) -> int:
        """Pair by time, and in file order if that differs; note slices from 0; return the number of slices."""
        ts = np.array(self._ts, np.int64)
        backwards = np.flatnonzero(ts[1:] < ts[:-1])
        if len(backwards):
            place = f"packet {self._packets[int(backwards[0]) + 1]}"
            diagnostics.add(UNSORTED, place, len(backwards))
            pairs = self._check_both_orders(np.argsort(ts, kind="stable").tolist(), place, diagnostics)
        else:
            pairs = self._pair(range(len(ts)), diagnostics)
        self._note_zeros(ts, pairs, zeros)
        return sum(kind > 0 for kind in self._kinds)

    def _note_zeros(self, ts: I64, pairs: dict[int, int], zeros: Zeros) -> None:
        """Note the slices from 0, and the times of the others."""
        starts = np.flatnonzero(np.array(self._kinds, np.int64) > 0)
        end_of = np.full(len(ts), -1)
        end_of[list(pairs)] = list(pairs.values())
        ends = ts[np.where(end_of[starts] < 0, starts, end_of[starts])]
        zeros.times(ts[starts[ts[starts] != 0]], ends[ts[starts] != 0])
        for row in starts[ts[starts] == 0].tolist():
            if row in pairs:
                zeros.slice(0, self._ts[pairs[row]], self._packets[row])
            else:
                zeros.unended(0, self._packets[row])

    def _check_both_orders(self, by_time: list[int], place: str, diagnostics: Diagnostics) -> dict[int, int]:
        wrong = Diagnostics()
        pairs = self._pair(by_time, wrong)
        in_file = self._pair(range(len(by_time)), Diagnostics())
        # At equal times it does not matter which end closes which slice.
        if {b: self._ts[e] for b, e in pairs.items()} != {b: self._ts[e] for b, e in in_file.items()}:
            diagnostics.add(ORDER_MATTERS, place)
        if len(wrong):
            diagnostics.extend(wrong)
            for begin, end in in_file.items():
                if self._ts[end] < self._ts[begin]:
                    diagnostics.add(END_EARLY, f"packet {self._packets[end]}")
        return pairs

    def _pair(self, order: range | list[int], diagnostics: Diagnostics) -> dict[int, int]:
        """Return the row of the end by the row of the start."""
        pairs: dict[int, int] = {}
        stack: list[int] = []
        kinds = self._kinds
        for row in order:
            if kinds[row] > 0:
                stack.append(row)
                if len(stack) > _MAX_DEPTH:
                    diagnostics.add(TOO_DEEP, f"packet {self._packets[row]}")
                continue
            begin = self._close(stack, row, diagnostics)
            if begin is not None:
                pairs[begin] = row
        for row in stack:
            diagnostics.add(NOT_CLOSED, f"packet {self._packets[row]}")
        return pairs

    def _close(self, stack: list[int], row: int, diagnostics: Diagnostics) -> int | None:
        wanted = -self._kinds[row]
        if stack and (wanted == _UNNAMED + 1 or self._kinds[stack[-1]] == wanted):
            return stack.pop()
        for depth in range(len(stack) - 1, -1, -1):
            if self._kinds[stack[depth]] == wanted:
                diagnostics.add(END_CROSSES, f"packet {self._packets[row]}")
                begin = stack[depth]
                # The cut slices are closed here, too.
                del stack[depth:]
                return begin
        diagnostics.add(END_ALONE, f"packet {self._packets[row]}")
        return None
