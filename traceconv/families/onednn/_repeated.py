"""Lines of a oneDNN log that repeat themselves but for their timestamps: read once, then found by their bytes.

A network runs the same primitives again and again, and durations are printed with few digits, so that most lines have
occurred before. `families.common._lines` finds them; what they become is kept here, their args once for all of them.
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
    """What lines become that differ in timestamp and duration only.

    Attributes:
        shape: what the fields say.
        exact: whether durations may be differences of whole microseconds.
        writer: marker and version of the lines, which tell the run that they belong to.
        texts: name and category, as interned strings.
    """

    shape: Shape
    exact: bool
    writer: tuple[bytes, bytes]
    texts: tuple[int, int]


class Rows(NamedTuple):
    """Lines that were written, in their order."""

    ts: I64
    dur: I64
    run: I64
    origin: I64


class RepeatedLines:
    """Reads the lines that are known, and writes them.

    Args:
        out: where they go.
        meaning: of a line without its timestamp, before which stands the first part: what its fields say; None if it
            is not a plain one.
        place: the track of lines with such fields, and the number of their run, as of now.
        written: is told what was written.

    Attributes:
        number: that of the line where the reading has stopped.
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
        """Read on in whole lines; where the first line begins that is not a plain one, or where the data ends."""
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
        """Return whether a line of a kind with this last field can be known by it."""
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
            self._forget()  # the line, too: it will be asked for again
            return True
        self._lines.add_last(kind, last, len(self._entries) // _COLUMNS)
        self._entries.extend((kind - 1, *texts, dur, *self._out.tables.keep_args(args_of(shape, duration, dur))))
        return True

    def _forget(self) -> None:
        """Write what was read, and begin anew."""
        self.flush()
        self._lines.forget()
        #: By kind of lines, from the first one on.
        self._meanings: list[Fields] = []
        #: Of each kind: track, and number of the run; what was last written.
        self._places = array("q")
        #: Of each kind with each last field: kind, name, category, duration, place and length of the args.
        self._entries = array("q")

    def flush(self) -> None:
        """Write what was read. To be called before anything else changes the runs."""
        row = self._lines.row
        if not row:
            return
        ts, what, origin = self._columns[:, :row]
        ts = (ts + 500) // 1000 * 1000  # `nearest_us`
        entries = np.frombuffer(self._entries, np.int64).reshape(-1, _COLUMNS)
        kind, name, category, dur, args_at, args_len = entries[what].T
        places = np.frombuffer(self._places, np.int64).reshape(-1, 2)
        for one in dict.fromkeys(kind.tolist()):  # tracks are made in the order of the lines
            places[one] = self._place(self._meanings[one])
        track, run = places[kind].T
        self._out.bulk.slice_rows(track, ts, dur, name, category, args_at, args_len, origin)
        self._out.balance.read += row
        self._out.balance.written += row
        self._lines.clear()
        self._written(Rows(ts, dur, run, origin))
