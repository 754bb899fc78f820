"""Recognise samples of `perf script` whose lines have occurred before, except times and periods, by their bytes.

The text before the time of a sample names thread and CPU, the text behind the period the event, and the lines of frames
repeat. `families.common._lines` recognises them and assembles stacks; this module keeps their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from traceconv import kernel
from traceconv.families.perf import _text as text
from traceconv.families.perf._tracks import NO_STACK, PerfTracks, Place
from traceconv.model.trace import I64, NO_CPU, StackId, TrackId

_ROWS = 1 << 16
_MOST_FRAMES = 1 << 12
_MOST_KNOWN = 1 << 18
_FRAME_SHIFT = 32
#: The value of the head of a line: the thread, and in the upper bits the CPU plus 1, or 0 for none.
_CPU_SHIFT, _THREAD_MASK = 32, (1 << 32) - 1

#: Gets the times (ns) of written samples.
Written = Callable[[I64], None]


class RepeatedSamples:
    """Recognises known samples, and writes them.

    Args:
        tracks: the tracks.
        written: gets the times of written samples.
        begun: called before anything that follows the event of the last single line is read.

    Attributes:
        number: the number of the line at which reading stopped.
        reader: the reader of the kernel, which counts lines.
    """

    def __init__(self, tracks: PerfTracks, written: Written, begun: Callable[[], None]) -> None:
        self.number = 1
        self._tracks = tracks
        self._written = written
        self._begun = begun
        self._heads: dict[bytes, int] = {}
        self._tails: dict[bytes, int] = {}
        self._events: dict[str, int] = {}
        self._frame_numbers: dict[Place, int] = {}
        self._frames = [Place("", "")]  # their numbers start with 1
        self._lines: dict[bytes, int] = {}
        self._stacks: dict[int, int] = {}
        self._columns = np.empty((6, _ROWS), np.int64)
        self._kernel = kernel.module("lines")
        self.reader: Any = self._kernel.Samples(
            self._heads, self._tails, self._lines, self._stacks, _MOST_FRAMES, self._columns
        )

    def read(self, data: bytes, at: int) -> tuple[int, bool]:
        """Read whole lines.

        Returns:
            The start of the first sample that is not plain or not complete, and whether the data ends there.
        """
        reader = self.reader
        while True:
            why = reader.read(data, at, self.number)
            at, self.number = reader.at, reader.line
            if reader.any_sample:
                self._begun()
            if why == self._kernel.NEW_STACK:
                self._learn_stack(reader.stack())
            elif why == self._kernel.NEW_FRAME:
                if not self._learn_frames(data, reader.new_frame):
                    return at, False
            elif reader.row == _ROWS:
                self.flush()
            else:
                return at, why == self._kernel.END

    def flush(self) -> None:
        """Write the samples read so far."""
        if not self.reader.row:
            return
        ts, at, head, event, weight, stack = self._columns[:, : self.reader.row]
        self.reader.clear()
        self._written(ts)
        # Samples are in order as long as all are of one event.
        events = list(self._events)
        begins = [0, *(np.flatnonzero(np.diff(event)) + 1).tolist(), len(event)]
        for begin, end in pairwise(begins):
            some = slice(begin, end)
            self._tracks.samples_of(
                events[int(event[begin])],
                (head[some] & _THREAD_MASK).astype(np.int32),
                ts[some],
                stack[some].astype(np.int32),
                weight[some],
                ((head[some] >> _CPU_SHIFT) + NO_CPU).astype(np.int32),
                at[some],
            )

    # -- what lines say ---------------------------------------------------------------------------------------------

    def learn(
        self,
        line: bytes,
        match: re.Match[bytes],
        thread: TrackId,
        cpu: int | None,
        event: str,
        frame: Place | None,
    ) -> None:
        """Learn a line of a sample that is not a tracepoint; `frame` stands on it if it has more than the event."""
        time, name = match.start(6), match.start(10)
        is_plain = match[5] is None and name >= 0 and line.endswith(b"\n") and (time == 0 or line[time - 1] in b" \t")
        if not is_plain or (match[11] and frame is None) or len(self._heads) + len(self._tails) >= _MOST_KNOWN:
            return
        self._heads[line[:time]] = thread | (NO_CPU if cpu is None else cpu) + 1 << _CPU_SHIFT
        number = self._number(frame) if frame is not None else 0
        known = self._events.setdefault(event, len(self._events))
        self._tails[line[name:]] = known | number << _FRAME_SHIFT

    def _number(self, frame: Place) -> int:
        number = self._frame_numbers.setdefault(frame, len(self._frames))
        if number == len(self._frames):
            self._frames.append(frame)
        return number

    def _learn_frames(self, data: bytes, at: int) -> bool:
        """Register the lines of frames from a position on, up to a known one; return whether the first is a frame."""
        if len(self._lines) >= _MOST_KNOWN:
            self._lines.clear()
        known = len(self._lines)
        while data[at : at + 1] == b"\t":
            end = data.find(b"\n", at) + 1
            line = data[at:end]
            frame = text.frame_of(line.rstrip()) if end and line not in self._lines else None
            if frame is None:
                break
            self._lines[line] = self._number(frame)
            at = end
        return len(self._lines) > known

    def _learn_stack(self, frames: list[int]) -> None:
        """Register the stack of frames, the innermost first."""
        if len(self._stacks) >= _MOST_KNOWN:
            self._stacks.clear()
        if not frames:
            self._stacks[0] = self._tracks.empty_stack()
        parent = NO_STACK
        for frame in reversed(frames):
            key = (parent + 1) << _FRAME_SHIFT | frame
            parent = StackId(self._stacks.setdefault(key, self._tracks.child(parent, self._frames[frame])))
