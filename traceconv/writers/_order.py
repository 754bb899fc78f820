"""The order of the events in a file: by time, and at equal times so that nesting comes out right.

Intervals are half open. At one instant, per track: ends come first, inner before outer; then begins, outer before
inner, where a slice of length 0 ends at once; then instants, counters, samples, log entries. Across tracks the order
does not matter. All tables are sorted by (track, ts, -dur), so the rows of a table are in the right order already, and
a stable sort by time of these groups one after the other gives the order of the file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True, slots=True)
class FileOrder:
    """All entries in the order of the file: time in ns, kind, and row in the table."""

    ts: I64
    kind: npt.NDArray[np.uint8]
    row: I64

    def blocks(self) -> Iterator[FileOrder]:
        """The entries in pieces that fit into a cache."""
        for start in range(0, len(self.ts), _BLOCK):
            piece = slice(start, start + _BLOCK)
            yield FileOrder(self.ts[piece], self.kind[piece], self.row[piece])

    def of(self, kind: Kind) -> npt.NDArray[Any]:
        """Where the entries of a kind are."""
        return np.flatnonzero(self.kind == kind)


def file_order(trace: Trace) -> FileOrder:
    """The order for a file with begins and ends."""
    slices = trace.slices
    empty = slices.dur == 0
    rows = np.arange(len(slices.ts))
    late_ends = rows[~empty][::-1]
    # Each begin, and after an empty slice its end.
    begin_rows = np.repeat(rows, 1 + empty)
    repeated = np.concatenate(([False], begin_rows[1:] == begin_rows[:-1])) if len(rows) else empty
    begins = np.where(repeated, Kind.END, Kind.BEGIN)
    groups = [
        (slices.ts[late_ends] + slices.dur[late_ends], np.full(len(late_ends), Kind.END), late_ends),
        (slices.ts[begin_rows], begins, begin_rows),
    ]
    points: dict[Kind, Any] = {
        Kind.INSTANT: trace.instants,
        Kind.COUNTER: trace.counters,
        Kind.SAMPLE: trace.samples,
        Kind.LOG: trace.logs,
    }
    for kind, table in points.items():
        groups.append((table.ts, np.full(len(table.ts), kind), np.arange(len(table.ts))))
    ts, kinds, all_rows = (np.concatenate(column) for column in zip(*groups, strict=True))
    order = np.argsort(ts, kind="stable")
    return FileOrder(ts[order], kinds[order].astype(np.uint8), all_rows[order])
