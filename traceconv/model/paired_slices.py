"""Add the slices of an input whose starts and ends are separate events."""

from __future__ import annotations

import numpy as np

from traceconv.model.args import join_args
from traceconv.model.counted import JOINED_ENDS
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.drawable import possible_slice
from traceconv.model.ordering import chunks
from traceconv.model.tables import Tables
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64, SourceInfo

_MANY = 64  # from this many slices on, columns are cheaper than single calls
_CHUNK = 1 << 13

UNBEGUN_END = declare(
    "slice.end_without_begin",
    ProblemKind.ABSENT,
    "an end has no start on its track: the recording started inside the slice, so its start is not known",
)
UNENDED = declare(
    "slice.begin_without_end",
    ProblemKind.ABSENT,
    "a start has no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)
MISNAMED_END = declare(
    "slice.end_name_differs",
    ProblemKind.REPAIRED,
    "an end names no open slice of its track: it was taken as the end of the innermost one",
)


class PairedSlices:
    """Pairs the starts and ends of a builder, and adds the slices to it."""

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info
        self._close_at = tables.last_ts()
        first, last = tables.marks.span()
        self._is_short = last - first <= LIMIT_NS
        self._marks, self._kept, self._texts = tables.take_marks(), tables.kept_args(), tables.strings()

    def add(self) -> None:
        """Add all slices."""
        marks = self._marks
        begin, end, misnamed = marks.pairs()
        # Complete pairs are added together.
        is_plain = np.zeros(len(begin), bool)
        if self._is_short:
            lengths = np.frombuffer(marks.args_len, np.int32)
            for rows in chunks(len(begin)):
                is_plain[rows] = (begin[rows] >= 0) & (end[rows] >= 0) & ~misnamed[rows] & (lengths[end[rows]] == 0)
        done = 0
        for odd in np.flatnonzero(~is_plain).tolist():
            self._whole(begin[done:odd], end[done:odd])
            self._odd(int(begin[odd]), int(end[odd]), bool(misnamed[odd]))
            done = odd + 1
        self._whole(begin[done:], end[done:])

    def _odd(self, begin: int, end: int, misnamed: bool) -> None:
        marks, texts = self._marks, self._texts
        if begin < 0:
            name = texts[marks.name[end]]
            self._info.skip(UNBEGUN_END, marks.at[end], repr(name) if name else "")
            return
        name = texts[marks.name[begin]]
        if end < 0:
            self._info.problem(UNENDED, marks.at[begin], repr(name))
            self._slice(begin, self._close_at, b'{"unfinished":true}')
            return
        if misnamed:
            self._info.problem(MISNAMED_END, marks.at[end], f"{texts[marks.name[end]]!r} ends {name!r}")
        more_args = self._kept.get(marks.args_at[end], marks.args_len[end])
        self._slice(begin, marks.ts[end], more_args)
        self._info.balance.merged[JOINED_ENDS] += 1

    def _whole(self, begins: I64, ends: I64) -> None:
        """Add the slices of complete pairs, as columns if there are many."""
        marks = self._marks
        if len(begins) < _MANY:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                self._slice(begin, marks.ts[end], b"")
        else:
            for at in range(0, len(begins), _CHUNK):
                columns = marks.plain_pairs(begins[at : at + _CHUNK], ends[at : at + _CHUNK])
                self._tables.extend("slices", *columns)
                marks.forget()
            self._info.balance.written += len(begins)
        if len(begins):
            self._info.balance.merged[JOINED_ENDS] += len(begins)

    def _slice(self, begin: int, end_ts: int, more_args: bytes) -> None:
        """Add the slice of a start, with its args, which the trace holds already, and those of its end."""
        marks, tables = self._marks, self._tables
        ts, dur, at = marks.ts[begin], end_ts - marks.ts[begin], marks.at[begin]
        place = marks.args_at[begin], marks.args_len[begin]
        if more_args or dur > LIMIT_NS:
            ts, dur, args = possible_slice(self._info, ts, dur, join_args(self._kept.get(*place), more_args), at)
            place = tables.keep_args(args)
        self._info.balance.written += 1
        tables.put_slice(ts, dur, marks.track[begin], marks.name[begin], marks.category[begin], place, at)
