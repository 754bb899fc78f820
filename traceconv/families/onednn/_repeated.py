"""Read lines of a oneDNN log that differ in their timestamps only: parsed once, then recognised by their bytes.

A network repeats its primitives, and durations are printed with few digits, so most lines have occurred before.
`families.common._lines` recognises them; this module keeps their rows, with the args once for all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from traceconv import kernel
from traceconv.families.onednn._lines import Malformed, Shape, args_of, duration_ns
from traceconv.model.builder import Builder
from traceconv.model.trace import I64

_ROWS = 1 << 16
_MOST_ENTRIES = 1 << 17
_COLUMNS = 6
_LONGEST_NS = 10**17


class Fields(NamedTuple):
    """The content of lines that differ in timestamp and duration only.

    Attributes:
        shape: the content of the fields.
        exact: whether durations may be differences of whole microseconds.
        writer: marker and version of the lines, which identify their run.
        texts: name and category, as interned strings.
    """

    shape: Shape
    exact: bool
    writer: tuple[bytes, bytes]
    texts: tuple[int, int]


class Rows(NamedTuple):
    """Lines that were written, in order."""

    ts: I64
    dur: I64
    run: I64
    origin: I64


class RepeatedLines:
    """Recognises known lines, and writes their slices.

    Args:
        out: the builder.
        meaning: returns the fields of a line from the parts before and behind its timestamp; None if it is not plain.
        place: returns the current track and the number of the run for fields.
        written: gets the rows that were written.

    Attributes:
        number: the number of the line at which reading stopped.
    """

    def __init__(
        self,
        out: Builder,
        meaning: Callable[[bytes, bytes], Fields | None],
        place: Callable[[Fields], tuple[int, int]],
        written: Callable[[Rows], None],
    ) -> None:
        self.number = 1
        self._out = out
        self._meaning = meaning
        self._place = place
        self._written = written
        self._columns = np.empty((3, _ROWS), np.int64)
        self._kernel = kernel.module("lines")
        self._lines: Any = self._kernel.Timed(self._columns)
        self._forget()

    def read(self, data: bytes, at: int) -> int:
        """Read whole lines; return the start of the first line that is not plain, or the end of the data."""
        lines = self._lines
        while True:
            why = lines.read(data, at, self.number)
            at, self.number = lines.at, lines.number
            if lines.row == _ROWS:
                self.flush()
            elif why == self._kernel.NEW_FIELDS:
                marker, fields = data[at : lines.time], data[lines.fields : lines.last]
                if not self._learn_fields(marker, fields, data[lines.last : lines.end]):
                    return at
            elif why == self._kernel.NEW_LAST:
                if not self._learn_last(lines.kind, data[lines.last : lines.end]):
                    return at
            else:
                return at

    def _learn_fields(self, marker: bytes, fields: bytes, last: bytes) -> bool:
        meaning = self._meaning(marker, fields + last)
        if meaning is None:
            return False
        if len(self._meanings) >= _MOST_ENTRIES:
            self._forget()
        self._meanings.append(meaning)
        self._places.extend((0, 0))
        return self._learn_last(self._lines.add_fields(marker, fields[:-1]), last)

    def _learn_last(self, kind: int, last: bytes) -> bool:
        """Register a line of a kind by its last field; return whether it can be recognised by it."""
        shape, exact, _, texts = self._meanings[kind - 1]
        duration = last.rstrip()
        if b"." not in duration:
            return False
        try:
            dur = duration_ns(duration, exact)
        except Malformed:
            return False
        if not 0 <= dur < _LONGEST_NS:
            return False
        if len(self._entries) >= _COLUMNS * _MOST_ENTRIES:
            self._forget()  # the line, too: it will be searched again
            return True
        self._lines.add_last(kind, last, len(self._entries) // _COLUMNS)
        self._entries.extend((kind - 1, *texts, dur, *self._out.tables.keep_args(args_of(shape, duration, dur))))
        return True

    def _forget(self) -> None:
        """Write the lines read so far, and clear the tables."""
        self.flush()
        self._lines.forget()
        #: The fields by kind of lines.
        self._meanings: list[Fields] = []
        #: Of each kind: the track and the number of the run that were last used.
        self._places = array("q")
        #: Of each kind with each last field: kind, name, category, duration, place and length of the args.
        self._entries = array("q")

    def flush(self) -> None:
        """Write the lines read so far. To be called before the runs are changed elsewhere."""
        row = self._lines.row
        if not row:
            return
        ts, what, origin = self._columns[:, :row]
        ts = (ts + 500) // 1000 * 1000  # `nearest_us`
        entries = np.frombuffer(self._entries, np.int64).reshape(-1, _COLUMNS)
        kind, name, category, dur, args_at, args_len = entries[what].T
        places = np.frombuffer(self._places, np.int64).reshape(-1, 2)
        for one in dict.fromkeys(kind.tolist()):  # tracks are created in the order of the lines
            places[one] = self._place(self._meanings[one])
        track, run = places[kind].T
        self._out.bulk.slice_rows(track, ts, dur, name, category, args_at, args_len, origin)
        self._out.balance.read += row
        self._out.balance.written += row
        self._lines.clear()
        self._written(Rows(ts, dur, run, origin))
