"""Exact times of the Chrome JSON of the first rocprof.

    {"ph":"X","name":"hipMalloc","pid":"2","tid":"7","ts":"622108776102","dur":"13204",
     "args":{"BeginNs":"622108776102152","EndNs":"622108789306334"}}

`ts` and `dur` are whole microseconds, rounded down, `dur` to 1 at least, and `ts` counts from the time in
begin_ts_file.txt, if there is one.
The args hold the times that were measured, in ns of the same clock as the tables.

Source: bin/dform.py, bin/sqlitedb.py and bin/tblextr.py of ROCm/rocprofiler (ROCm 6.3), and a public file.
"""

from __future__ import annotations

import numpy as np

from traceconv.model.arg_bytes import Args
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import noted
from traceconv.model.trace import I32, I64

NOT_EXACT = noted(
    "rocprof.not_exact",
    "the args of a call, copy or kernel hold no ns that ts and dur were cut from: its times are whole µs",
)

_US = 1000
_MOST_DIGITS = 18


def take_exact_times(out: Builder) -> bool:
    """Give the slices the times in their args, and the others the same clock; return whether that could be done.

    A slice whose args hold no times, or none that its `ts` and `dur` were rounded from, keeps whole microseconds, and
    is counted. All are left as they are if that holds for half of them, or if other events have times.
    """
    tables = out.tables
    ts, dur, args_at, args_len, origin = tables.slice_columns("ts", "dur", "args_at", "args_len", "origin")
    args = tables.kept_args()
    begin, end = (_numbers(args, args_at, args_len, key) for key in (b"BeginNs", b"EndNs"))
    measured, shift = end - begin, begin - ts
    exact = (begin >= 0) & (measured >= 0) & (np.maximum(measured // _US, 1) * _US == np.maximum(dur, _US))
    if not exact.any():
        return False
    exact &= np.abs(shift - np.median(shift[exact])) < _US
    others = any(len(tables.columns[table]["ts"]) for table in ("instants", "counters"))
    whole = np.flatnonzero(~exact)
    if others or 2 * len(whole) >= len(ts):
        why = "an instant or counter has no ns" if others else "too few have them"
        out.problem(NOT_EXACT, int(np.min(origin)), why, count=len(ts))
        return False
    if len(whole):
        out.problem(NOT_EXACT, int(np.min(origin[whole])), count=len(whole))
    base = int(np.min(shift[exact])) // _US * _US
    begin, measured = np.where(exact, begin, ts + base), np.where(exact, measured, dur)
    del ts, dur, args_at, args_len, origin  # a column in use cannot be replaced
    tables.columns["slices"]["ts"].replace([begin])
    tables.columns["slices"]["dur"].replace([measured])
    return True


def _numbers(args: Args, at: I64, length: I32, key: bytes) -> I64:
    """Return the whole number, quoted or not, that each JSON object holds under a key; -1 for none, or several."""
    numbers = np.full(len(at), -1, np.int64)
    for rows, starts, data in args.by_part(at, length):
        first, last = int(np.min(starts)), int(np.max(starts + length[rows]))
        text = np.append(data[first:last], np.zeros(_MOST_DIGITS + 2, np.uint8))
        places = _places(text, b'"%b":' % key)
        places += text[places] == ord('"')
        values, digits = np.zeros(len(places), np.int64), np.ones(len(places), bool)
        count = np.zeros(len(places), np.int64)
        for number in range(_MOST_DIGITS + 1):
            byte = text[places + number]
            digits &= (byte >= ord("0")) & (byte <= ord("9"))
            values = np.where(digits & (number < _MOST_DIGITS), 10 * values + (byte - ord("0")), values)
            count += digits
        is_whole = np.isin(text[places + np.minimum(count, _MOST_DIGITS)], tuple(b'",}'))
        values[~is_whole | (count == 0)] = -1
        order = np.argsort(starts, kind="stable")
        begins = starts[order] - first
        low, high = (np.searchsorted(places, edges) for edges in (begins, begins + length[rows][order]))
        found = high - low == 1
        numbers[rows[order[found]]] = values[low[found]]
    return numbers


def _places(text: np.ndarray[tuple[int], np.dtype[np.uint8]], wanted: bytes) -> I64:
    """Return the positions behind each occurrence of some bytes."""
    places = np.flatnonzero(text[: len(text) - len(wanted)] == wanted[0])
    for number in range(1, len(wanted)):
        places = places[text[places + number] == wanted[number]]
    return places + len(wanted)
