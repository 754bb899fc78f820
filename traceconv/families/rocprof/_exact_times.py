"""Exact times of the Chrome JSON of the first rocprof.

    {"ph":"X","name":"hipMalloc","pid":"2","tid":"7","ts":"622108776102","dur":"13204",
     "args":{"BeginNs":"622108776102152","EndNs":"622108789306334"}}

`ts` and `dur` are whole microseconds, rounded down, `dur` to 1 at least, and `ts` counts from the time in
begin_ts_file.txt, if there is one.
The args hold the times that were measured, in ns of the same clock as the tables.

Source: bin/dform.py, bin/sqlitedb.py and bin/tblextr.py of ROCm/rocprofiler (ROCm 6.3), and a public file.
"""

from __future__ import annotations

import re

import numpy as np

from traceconv.model.builder import Builder
from traceconv.model.numbers import whole
from traceconv.model.times import LIMIT_NS

_TIMES = re.compile(rb'"(BeginNs|EndNs)"\s*:\s*"?([0-9]{1,19})"?\s*[,}]')
_US = 1000


def take_exact_times(out: Builder) -> bool:
    """Give all slices the times in their args; return whether they were taken.

    They are left as they are if other events have times, if a slice has none in its args, or if these are not what `ts`
    and `dur` were rounded from.
    """
    tables = out.tables
    ts, dur, args_at, args_len = tables.slice_columns("ts", "dur", "args_at", "args_len")
    if not len(ts) or any(len(tables.columns[table]["ts"]) for table in ("instants", "counters")):
        return False
    begin, end = np.zeros(len(ts), np.int64), np.zeros(len(ts), np.int64)
    kept = tables.kept_args()
    for row, (at, length) in enumerate(zip(args_at.tolist(), args_len.tolist(), strict=True)):
        times = {name: whole(digits) for name, digits in _TIMES.findall(kept.get(at, length))}
        if len(times) < 2 or max(times.values()) > LIMIT_NS:
            return False
        begin[row], end[row] = times[b"BeginNs"], times[b"EndNs"]
    measured, shift = end - begin, begin - ts
    if (
        np.any(measured < 0)
        or np.any(np.maximum(measured // _US, 1) * _US != np.maximum(dur, _US))
        or np.ptp(shift) >= _US
    ):
        return False
    del ts, dur, args_at, args_len  # a column in use cannot be replaced
    tables.columns["slices"]["ts"].replace([begin])
    tables.columns["slices"]["dur"].replace([measured])
    return True
