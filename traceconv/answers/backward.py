"""Find the operators whose gradients other ones compute: backward operators have the sequence number of the former.

Each thread counts its own operators, and a backward operator states the thread by a number of PyTorch that nothing else
has: `forward_tid_` in torch/csrc/profiler/collection.cpp. Flows from forward to backward operators tell which track it
is. Without any, an operator is that of the only track with its number.
"""

from __future__ import annotations

import numpy as np

from traceconv.answers.attribution import NONE, grouped
from traceconv.answers.slice_tables import NO_PARENT, SliceTable
from traceconv.model.args import arg_values
from traceconv.model.columns import I64, distinct_values


def forward_operators(table: SliceTable) -> I64:
    """Return the operator whose backward operator each slice is: the last one before it with its number; else NONE."""
    trace, slices = table.trace, table.trace.slices
    forward, at = np.full((2, len(slices.ts)), NONE, np.int64)
    for number, info in enumerate(trace.sources):
        if info.marks.backward is None:
            continue
        rows = table.rows_of(number)
        rows = rows[table.of_categories(info.marks.operators, rows)]
        keys = info.marks.backward.number, info.marks.backward.thread
        values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], keys)
        pairs = [tuple(value if type(value) is int else NONE for value in values[1][at]) for at in values[0].tolist()]
        sequence, thread = np.array(pairs, np.int64).reshape(-1, 2).T
        at[rows] = np.arange(len(rows))
        computes_gradient = (thread > 0) | table.named(info.marks.backward.names, rows)
        parent = table.nesting.parent[rows]
        above = np.where(parent == NO_PARENT, NONE, at[parent])  # the call of the engine around the function
        computes_gradient |= (above != NONE) & computes_gradient[above] & (sequence[above] == sequence)
        is_forward, is_backward = (sequence >= 0) & ~computes_gradient, (sequence >= 0) & computes_gradient
        track = np.where(is_forward, table.row_of_track[slices.track[rows]].astype(np.int64), NONE)
        begin, end = at[trace.flows.from_slice], at[trace.flows.to_slice]
        at[rows] = NONE
        begin, end = (ends[(begin != NONE) & (end != NONE)] for ends in (begin, end))
        linked = is_forward[begin] & is_backward[end] & (sequence[begin] == sequence[end])
        for _, of_thread in grouped(np.where(is_backward, np.maximum(thread, 0), NONE)):
            tracks = distinct_values(track[begin[linked & np.isin(end, of_thread)]])
            track[of_thread] = tracks[0] if len(tracks) == 1 else NONE
        if not np.any(linked):
            counted = np.unique(np.stack((sequence, track))[:, is_forward], axis=1)
            place = np.searchsorted(counted[0], sequence)
            single = np.searchsorted(counted[0], sequence, "right") - place == 1
            some = np.flatnonzero(is_backward & single)
            track[some] = counted[1][place[some]]
        order = np.lexsort((slices.ts[rows], track, sequence))
        before = np.maximum.accumulate(np.where(is_forward[order], np.arange(len(rows)), NONE))
        same = (before != NONE) & (sequence[order[before]] == sequence[order]) & (track[order[before]] == track[order])
        found = np.where(same, rows[order[before]], NONE)
        forward[rows[order[is_backward[order]]]] = found[is_backward[order]]
    return forward
