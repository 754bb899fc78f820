"""The order of the events in a file: by time, and at equal times so that nesting comes out right.

Intervals are half open. At one instant, per track: ends come first, inner before outer; then begins, outer before
inner, where a slice of length 0 ends at once; then instants, counters, samples, log entries. Across tracks the order
does not matter. All tables are sorted by (track, ts, -dur), so the rows of a table are in the right order already, and
a stable sort by time of these groups one after the other gives the order of the file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.ir.trace import I64, Trace

_BLOCK = 16 * 1024


class Kind(enum.IntEnum):
    """What an entry of the file is."""

    END = 0
    BEGIN = 1
    INSTANT = 2
    COUNTER = 3
    SAMPLE = 4
    LOG = 5


class FileOrder(Struct, frozen=True):
    """All entries of the file, or some: time in ns, kind, and row in the table."""

    ts: I64
    kind: npt.NDArray[np.uint8]
    row: I64

    def of(self, kind: Kind) -> npt.NDArray[Any]:
        """Where the entries of a kind are."""
        return np.flatnonzero(self.kind == kind)


def file_order(trace: Trace) -> Iterator[FileOrder]:
    """The entries for a file with begins and ends, in their order, in pieces that fit into a cache.

    The columns are filled in place and only gathered piece by piece: there are two entries per slice.
    """
    slices = trace.slices
    empty = slices.dur == 0
    points: dict[Kind, Any] = {
        Kind.INSTANT: trace.instants,
        Kind.COUNTER: trace.counters,
        Kind.SAMPLE: trace.samples,
        Kind.LOG: trace.logs,
    }
    count = 2 * len(slices.ts) + sum(len(table.ts) for table in points.values())
    ts = np.empty(count, np.int64)
    kinds = np.empty(count, np.uint8)
    rows = np.empty(count, np.int32 if count < 1 << 31 else np.int64)

    late = np.flatnonzero(~empty)[::-1]
    at = len(late)
    ts[:at], kinds[:at], rows[:at] = slices.ts[late] + slices.dur[late], Kind.END, late
    # Each begin, and after an empty slice its end.
    begins = np.repeat(np.arange(len(slices.ts)), 1 + empty)
    end = at + len(begins)
    ts[at:end], kinds[at:end], rows[at:end] = slices.ts[begins], Kind.BEGIN, begins
    kinds[at + 1 : end][begins[1:] == begins[:-1]] = Kind.END
    at = end
    for kind, table in points.items():
        end = at + len(table.ts)
        ts[at:end], kinds[at:end], rows[at:end] = table.ts, kind, np.arange(len(table.ts))
        at = end
    del late, begins
    order = np.argsort(ts, kind="stable")
    for start in range(0, count, _BLOCK):
        piece = order[start : start + _BLOCK]
        yield FileOrder(ts[piece], kinds[piece], rows[piece].astype(np.int64))
