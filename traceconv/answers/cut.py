"""Cut a trace to a window of time, for `layers` and `stacks` with `--between`."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from traceconv.answers.operations import rounded
from traceconv.answers.owners import Owners
from traceconv.answers.section import Window
from traceconv.answers.tables import Rows, SliceTable, Uncut, interval_counters
from traceconv.model.trace import Counters, Flows, Slices, take


def cut(table: SliceTable, window: Window) -> SliceTable:
    """Return the part of a trace in a window.

    Slices that cross its edges are cut; those that start before it lose their args, which are about the whole slice.
    Calls of primitives stay whole, and are kept if their middle is in the window. Counts of intervals are divided by
    time. The results for two adjacent windows add up to those of the joint window.
    """
    trace = table.trace
    slices, rows = _slices(table, window)
    return SliceTable(
        replace(
            trace,
            slices=slices,
            flows=flows_among(trace.flows, rows, len(trace.slices.ts)),
            counters=_counters(table, window),
            samples=take(trace.samples, np.flatnonzero(window.holds(trace.samples.ts))),
        ),
        uncut=Uncut(table, rows, window),
    )


def _slices(table: SliceTable, window: Window) -> tuple[Slices, Rows]:
    """Return the slices, and their rows in the trace."""
    trace, slices = table.trace, table.trace.slices
    owners = np.zeros(len(slices.ts), bool)
    owners[Owners(table).rows] = True
    whole = np.zeros(len(slices.ts), bool)
    for number, source in enumerate(trace.sources):
        of_input = table.of_source(number)
        if source.marks.primitives is not None and not np.any(of_input & owners):
            whole |= of_input & table.of_categories(source.marks.primitives.calls)
    starts, ends = np.maximum(slices.ts, window.start), np.minimum(slices.ts + slices.dur, window.end)
    inside = (starts < ends) | window.holds(slices.ts)
    rows = np.flatnonzero(np.where(whole, window.holds(slices.ts + slices.dur // 2), inside))
    starts, lasting = np.where(whole, slices.ts, starts)[rows], np.where(whole, slices.dur, ends - starts)[rows]
    chosen = take(slices, rows)
    begun_before = chosen.ts < starts
    return replace(chosen, ts=starts, dur=lasting, args_len=np.where(begun_before, np.int32(0), chosen.args_len)), rows


def flows_among(flows: Flows, rows: Rows, count: int) -> Flows:
    """Return the flows between kept slices, by their new rows."""
    new = np.full(count, -1, np.int64)
    new[rows] = np.arange(len(rows))
    left = take(flows, np.flatnonzero((new[flows.from_slice] >= 0) & (new[flows.to_slice] >= 0)))
    return replace(left, from_slice=new[left.from_slice], to_slice=new[left.to_slice])


def _counters(table: SliceTable, window: Window) -> Counters:
    """Return the counters, with counts of intervals cut to the window.

    Integer counts stay integers: the part up to a time is rounded half to even.
    """
    trace, counters = table.trace, table.trace.counters
    is_counted = np.isin(counters.track, interval_counters(trace))
    order = np.flatnonzero(is_counted)[np.lexsort((counters.ts[is_counted], counters.track[is_counted]))]
    values = take(counters, order)
    ends = np.append(values.ts[1:], values.ts[-1:])
    last = np.append(np.diff(values.track) != 0, True)[: len(ends)]
    ends = np.where(last, values.ts, ends)
    starts, until = (np.clip(edge, window.start, window.end) for edge in (values.ts, ends))
    lasting = np.maximum(ends - values.ts, 1)
    before, after = (edge - values.ts for edge in (starts, until))
    point = (ends == values.ts) & window.holds(values.ts)  # of unknown duration: the count belongs to its time
    integer = np.array(
        [
            value if whole else rounded(value * two, of) - rounded(value * one, of)
            for value, one, two, of, whole in zip(
                *(column.tolist() for column in (values.integer, before, after, lasting, point)), strict=True
            )
        ],
        np.int64,
    )
    value = np.where(point, values.value, values.value * ((after - before) / lasting))
    some = (until > starts) | point
    parts = replace(values, ts=starts, integer=integer, value=np.where(values.is_integer == 1, integer, value))
    kept = take(parts, np.flatnonzero(some))
    # A count lasts up to the next value: a zero ends the last one.
    closing = take(replace(parts, ts=until, integer=integer * 0, value=value * 0), np.flatnonzero(some & ~point))
    joined = Counters(*(np.append(getattr(kept, one.name), getattr(closing, one.name)) for one in fields(Counters)))
    return take(joined, np.lexsort((np.arange(len(joined.ts)) < len(kept.ts), joined.ts, joined.track)))
