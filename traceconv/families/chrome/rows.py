"""Columns of events from the compiled scanner of Chrome traces; see _scan.pyx.

Without the kernel, and for events that are not plain, importers read each event as an object.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.trace import I64

_CAPACITY = 1 << 14
_COMMA = ord(",")
#: Two events are usually separated by a comma, a line break and indentation only.
_USUAL_GAP = 12
_decode_text = msgspec.json.Decoder(str).decode


class Rows(Struct):
    """Events of a trace in file order; valid until the next ones are read.

    Attributes:
        scanner: the scanner, which holds texts and stands.
        data: part of the file.
        phase: the phase as the number of its character; 0 for an event that is not plain.
        start, end: the position of each event in the data.
        ts, dur: start and duration, ns; like the following ones, for plain events only.
        stand: the number of its pid, tid and category; see `RowScanner.stand`.
        name, category: numbers of `RowScanner.name`.
        id_at, id_len: the position of the id in the data.
        args: the args of all of them, without white space.
        args_at, args_len: the position of the args of the event in `args`.
        is_fresh: whether it is the first one with this name, category or stand.
        is_enclosing: whether `bp` is "e".
    """

    scanner: RowScanner
    data: bytes
    phase: I64
    start: I64
    end: I64
    ts: I64
    dur: I64
    stand: I64
    name: I64
    category: I64
    id_at: I64
    id_len: I64
    args: bytes
    args_at: I64
    args_len: I64
    is_fresh: npt.NDArray[np.bool_]
    is_enclosing: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.phase)

    def raw(self, row: int) -> bytes:
        """Return the bytes of an event."""
        return self.data[self.start[row] : self.end[row]]

    def odd_commas(self) -> list[int]:
        """Return the numbers of commas between consecutive events, where it is not one."""
        text = np.frombuffer(self.data, np.uint8)
        ends, starts = self.end[:-1], self.start[1:]
        gaps = starts - ends
        commas = np.zeros(len(gaps), np.int64)
        for at in range(min(int(np.max(gaps, initial=0)), _USUAL_GAP)):
            commas += text[np.minimum(ends + at, starts)] == _COMMA  # the first event follows a bracket
        odd = np.flatnonzero((commas != 1) | (gaps > _USUAL_GAP)).tolist()
        counts = [self.data.count(b",", ends[row], starts[row]) for row in odd]
        return [count for count in counts if count != 1]

    def args_of(self, row: int) -> bytes:
        """Return the args of a plain event."""
        start = self.args_at[row]
        return self.args[start : start + self.args_len[row]]


class RowScanner:
    """Reads the events of one trace.

    Args:
        module: the kernel module with the scanner.
        exponent: the unit of ts and dur as a power of ten of ns.
    """

    def __init__(self, module: Any, exponent: int) -> None:
        self._module = module
        self._fields = np.zeros((len(module.FIELDS), _CAPACITY), np.int64)
        self._scanner = module.Scanner(self._fields, exponent)
        self._space = np.empty(0, np.uint8)
        self._pids: dict[int, bytes] = {}
        self._last_pid = -1, b""
        self._last_category = -1, ""

    def scan(self, data: bytes, start: int) -> Rows:
        """Return the complete, valid events from a position of the data on, as many as fit."""
        if len(self._space) <= len(data) - start:
            self._space = np.empty(len(data) + 1, np.uint8)
        count, _ = self._scanner.scan(data, start, self._space)
        columns = dict(zip(self._module.FIELDS, self._fields[:, :count], strict=True))
        flags = columns.pop("flags")
        return Rows(
            scanner=self,
            data=data,
            args=self._space[: self._scanner.args_size].tobytes(),
            is_fresh=(flags & self._module.FRESH) != 0,
            is_enclosing=(flags & self._module.ENCLOSING) != 0,
            **columns,
        )

    def text_count(self) -> int:
        """Return the number of texts so far."""
        return len(self._scanner.texts)

    def text(self, number: int) -> bytes:
        """Return the bytes of a name, category, pid or tid by number; names and categories without quotes."""
        text = self._scanner.text(number)
        assert isinstance(text, bytes)
        return text

    def name(self, number: int) -> str:
        """Return a name or category by number; for a pid or tid its JSON text."""
        text = self.text(number)
        is_escaped = b"\\" in text and text[:1] != b'"'
        return _decode_text(b'"%b"' % text) if is_escaped else text.decode()

    def stand_count(self) -> int:
        """Return the number of stands so far."""
        return len(self._scanner.stands)

    def pid(self, stand: int) -> bytes:
        """Return the pid of a stand."""
        pid = self._pids.get(stand)
        if pid is None:
            pid = self._pids[stand] = self.stand(stand)[0]
        return pid

    def stand(self, number: int) -> tuple[bytes, bytes, str, str]:
        """Return the pid, tid and category of an event, and what `ChromeEvents.track_of` calls `flow`."""
        pid, tid, category, flow = self._scanner.stand(number)
        if pid != self._last_pid[0]:  # consecutive stands often share the pid: one text is enough for them
            self._last_pid = pid, self.text(pid)
        if category != self._last_category[0]:
            self._last_category = category, self.name(category)
        return self._last_pid[1], self.text(tid), self._last_category[1], chr(flow) if flow else ""
