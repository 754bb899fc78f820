"""Clamp what no viewer draws: times and durations out of range, and CPUs. Changes are counted.

Args keep the original times where a table has them.
"""

from __future__ import annotations

from operator import index

import numpy as np
import numpy.typing as npt

from traceconv.model.args import AnyArgs, as_bytes, join_args
from traceconv.model.clocks import looks_like_unix_time
from traceconv.model.diagnostics import ProblemKind, absent, declare
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I32, I64, NO_CPU, SourceInfo

NEGATIVE_DURATION = declare(
    "slice.negative_duration",
    ProblemKind.REPAIRED,
    "a duration is below zero (the clock stepped back): drawn with length 0, the value is kept in the args",
)
END_NEVER_SET = absent(
    "slice.end_never_set",
    "the end of a slice was never set, so its duration leads to 0: drawn with length 0 and marked `unfinished`",
)
OUT_OF_RANGE = declare(
    "time.out_of_range",
    ProblemKind.REPAIRED,
    "a time or duration is beyond 146 years: drawn at that limit; slices and instants keep the value in the args",
)

#: The trace processor ends itself at a CPU beyond these (kMaxCpusPerMachine in its cpu_tracker.h, v52). Linux for x86
#: has at most 8,192 (CONFIG_NR_CPUS).
MOST_CPUS = 4096
IMPOSSIBLE_CPU = declare(
    "sample.impossible_cpu",
    ProblemKind.REPAIRED,
    f"a sample names a CPU beyond the {MOST_CPUS:,} that Perfetto draws: its CPU counts as not known",
)


def possible_slice(info: SourceInfo, ts: int, dur: int, args: AnyArgs, at: int) -> tuple[int, int, bytes]:
    """Return start and duration (ns) of a slice, clamped to the range, and its args with a note of a change."""
    if index(dur) < 0 and (looks_like_unix_time(-dur) or dur == -ts):
        info.problem(END_NEVER_SET, at)
        args, dur = join_args(args, {"unfinished": True}), 0
    elif dur < 0:
        info.problem(NEGATIVE_DURATION, at)
        args = join_args(args, {"negative_dur_ns": dur})
        dur = 0
    if dur > LIMIT_NS or not -LIMIT_NS <= index(ts) <= LIMIT_NS - dur:
        info.problem(OUT_OF_RANGE, at)
        args = join_args(args, {"ts_ns": str(ts), "dur_ns": str(dur)})
        ts = _limited(ts)
        dur = min(dur, LIMIT_NS, LIMIT_NS - ts)
    return ts, dur, as_bytes(args)


def possible_ts(info: SourceInfo, ts: int, at: int) -> int:
    """Return the time (ns) of an event without duration, clamped to the range; a change is counted."""
    possible = _limited(index(ts))
    if possible != ts:
        info.problem(OUT_OF_RANGE, at, f"{ts} ns")
    return possible


def possible_times(info: SourceInfo, ts: I64, at: I64) -> I64:
    """Return the times (ns) of many events without duration, clamped to the range; changes are counted."""
    rows = np.flatnonzero(beyond(ts)).tolist()
    if not rows:
        return ts
    for row in rows:
        possible_ts(info, int(ts[row]), int(at[row]))
    return np.clip(ts, -LIMIT_NS, LIMIT_NS)


def possible_cpu(info: SourceInfo, cpu: int, at: int) -> int:
    """Return the CPU of a sample, NO_CPU if it is none that viewers draw; a change is counted."""
    if NO_CPU <= cpu < MOST_CPUS:
        return cpu
    info.problem(IMPOSSIBLE_CPU, at, str(cpu))
    return NO_CPU


def possible_cpus(info: SourceInfo, cpu: I32, at: I64) -> I32:
    """Return the CPUs of many samples, NO_CPU where they are none that viewers draw; changes are counted."""
    rows = np.flatnonzero((cpu < NO_CPU) | (cpu >= MOST_CPUS))
    if not len(rows):
        return cpu
    possible = cpu.copy()
    for row in rows.tolist():
        possible[row] = possible_cpu(info, int(cpu[row]), int(at[row]))
    return possible


def beyond(ts: I64) -> npt.NDArray[np.bool_]:
    """Return a mask of the times that are out of range."""
    return (ts < -LIMIT_NS) | (ts > LIMIT_NS)


def _limited(ts: int) -> int:
    return max(-LIMIT_NS, min(ts, LIMIT_NS))
