"""Methods of the builder that add many events at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

import numpy as np
import numpy.typing as npt

from traceconv.model.args import join_args
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.drawable import beyond, possible_cpus, possible_slice, possible_times
from traceconv.model.tables import Tables
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I32, I64, U8, SourceInfo

Numbers = Sequence[int] | I64 | I32

NOT_A_NUMBER = declare(
    "counter.not_a_number",
    ProblemKind.LOST,
    "a counter value is infinite, too large for a double, or not a number: it was left out",
)


class Bulk:
    """Adds many events to the tables of an input, given as columns of equal length.

    `name` and `category` are numbers of interned strings (`Tables.string`); `args_at` and `args_len` locate the args
    among those that were passed to `Tables.args_part` or `Tables.keep_args`.
    """

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info

    def slices(
        self,
        track: Numbers,
        ts: Numbers,
        dur: Numbers,
        name: Numbers,
        category: Numbers,
        args: Sequence[bytes],
        origin: Numbers,
    ) -> None:
        """Add slices, with the args of each as bytes.

        Raises:
            TypeError: for a time or duration that is not an integer.
        """
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            possible = [
                possible_slice(self._info, *row)
                for row in zip(map(index, ts), map(index, dur), args, origin, strict=True)
            ]
            ts, dur, args = zip(*possible, strict=True)
        lengths = np.array([len(chunk) for chunk in args], np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        self.slice_rows(
            np.asarray(track, np.int32),
            _integers(ts),
            _integers(dur),
            np.asarray(name, np.int32),
            np.asarray(category, np.int32),
            self._tables.args_part(b"".join(args)) + ends - lengths,
            lengths,
            np.asarray(origin, np.int64),
        )

    def slice_rows(
        self, track: I32, ts: I64, dur: I64, name: I32, category: I32, args_at: I64, args_len: I32, origin: I64
    ) -> None:
        """Add slices whose args were kept before."""
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            ts, dur, args_at, args_len = ts.copy(), dur.copy(), args_at.copy(), args_len.copy()
            kept = self._tables.kept_args()
            for row in np.flatnonzero((dur < 0) | (dur > LIMIT_NS) | beyond(ts) | (ts > LIMIT_NS - dur)).tolist():
                args = kept.get(int(args_at[row]), int(args_len[row]))
                ts[row], dur[row], args = possible_slice(
                    self._info, int(ts[row]), int(dur[row]), args, int(origin[row])
                )
                args_at[row], args_len[row] = self._tables.keep_args(args)
        self._tables.extend("slices", ts, dur, track, name, category, args_at, args_len, origin)

    def begins_and_ends(
        self, track: I32, ts: I64, is_begin: U8, name: I32, category: I32, args_at: I64, args_len: I32, at: I64
    ) -> None:
        """Add starts and ends in the order of the input; an end closes the innermost open slice of its name."""
        args_len = np.where(args_len > len(b"{}"), args_len, 0).astype(np.int32)
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: mark_key(bool(is_begin[row])))
        self._tables.marks.extend(
            track, possible_times(self._info, ts, at), is_begin, name, category, args_at, args_len, at
        )
        self._tables.added(len(at))

    def instants(self, track: I32, ts: I64, name: I32, category: I32, args_at: I64, args_len: I32, at: I64) -> None:
        """Add instants."""
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: "ts_ns")
        ts = possible_times(self._info, ts, at)
        self._tables.extend("instants", ts, track, name, category, args_at, args_len, at)

    def counters(self, track: I32, ts: I64, value: I64, is_integer: U8, at: I64) -> npt.NDArray[np.bool_]:
        """Add counter values; return a mask of those that were added.

        Args:
            value: integers where `is_integer` is 1, else the bits of a double.
        """
        doubles = np.where(is_integer, value.astype(np.float64), value.view(np.float64))
        good = np.isfinite(doubles)
        for row in np.flatnonzero(~good).tolist():
            self._info.problem(NOT_A_NUMBER, int(at[row]), str(float(doubles[row])))
        whole = np.where(is_integer, value, 0)
        ts = possible_times(self._info, ts[good], at[good])
        self._tables.extend("counters", ts, track[good], doubles[good], whole[good], is_integer[good], at[good])
        return good

    def flows(self, from_slice: Numbers, to_slice: Numbers, name: Numbers, category: Numbers, origin: Numbers) -> None:
        """Add flows between slices."""
        self._tables.extend("flows", *map(np.asarray, (from_slice, to_slice, name, category, origin)))

    def samples(self, track: I32, ts: I64, stack: I32, name: I32, weight: I64, cpu: I32, origin: I64) -> None:
        """Add samples. A `stack` of -1 is no call stack, a `cpu` of NO_CPU is unknown."""
        ts, cpu = possible_times(self._info, ts, origin), possible_cpus(self._info, cpu, origin)
        self._tables.extend("samples", ts, track, stack, name, weight, cpu, origin)

    def _told_times(self, args_at: I64, args_len: I32, ts: I64, key: Callable[[int], str]) -> tuple[I64, I32]:
        """Add the original time to the args of rows at impossible times; return the new `args_at` and `args_len`."""
        rows = np.flatnonzero(beyond(ts)).tolist()
        if rows:
            args_at, args_len, kept = args_at.copy(), args_len.copy(), self._tables.kept_args()
            for row in rows:
                args = kept.get(int(args_at[row]), int(args_len[row]))
                args_at[row], args_len[row] = self._tables.keep_args(join_args(args, {key(row): str(ts[row])}))
        return args_at, args_len


def _all_possible(ts: Numbers, dur: Numbers) -> bool:
    """Return True only if no slice needs a change; a False may be a false alarm."""
    (first, last), (shortest, longest) = _range(ts), _range(dur)
    return shortest >= 0 and longest <= LIMIT_NS and first >= -LIMIT_NS and last <= LIMIT_NS - longest


def _range(column: Numbers) -> tuple[int, int]:
    if isinstance(column, np.ndarray):
        return index(np.min(column).item()), index(np.max(column).item())
    return index(min(column)), index(max(column))


def _integers(column: Numbers) -> I64:
    values = np.asarray(column)
    if values.dtype.kind not in "iu":
        raise TypeError(f"times are integers (ns), found {values.dtype}")
    return values.astype(np.int64, copy=False)


def mark_key(is_begin: bool) -> str:
    """Return the key in args for the original time of a start or end that was clamped."""
    return "ts_ns" if is_begin else "end_ts_ns"
