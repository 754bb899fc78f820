"""Parents, depths and self times, against a stack and against Perfetto's trace processor."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import oracle
from tests.golden import Case, written
from tests.kernels import without
from tests.oracle.fixtures import OpenTrace
from tests.shapes import every_shape
from traceconv.answers.attribution import work_of
from traceconv.answers.operations import _is_around_operators, operations
from traceconv.answers.slice_tables import NO_PARENT, SliceTable, nesting_of
from traceconv.answers.steps import runs_nothing
from traceconv.model import columns
from traceconv.model.dump import as_shown
from traceconv.model.trace import Slices, Trace


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Slices as (track, ts, dur) in the order of a laid-out trace: of two, one is inside or behind the other."""
    rows = []
    for track in range(draw(st.integers(1, 3))):
        open_windows = [(0, draw(st.integers(0, 30)))]
        while open_windows and len(rows) < 40:
            start, end = open_windows.pop()
            while start <= end and draw(st.booleans()):
                begin = draw(st.integers(start, end))
                stop = draw(st.integers(begin, end))
                rows.append((track, begin, stop - begin))
                if stop > begin:
                    open_windows.append((begin, stop))
                start = stop
    return sorted(rows, key=lambda row: (row[0], row[1], -row[2]))


@given(nested(), st.sampled_from([1, 2, 5, 100]))
def test_against_a_stack(rows: list[tuple[int, int, int]], of_chunk: int) -> None:
    parents, depths, self_ns = [], [], [dur for _, _, dur in rows]
    stack: list[int] = []
    for number, (track, ts, dur) in enumerate(rows):
        while stack and (rows[stack[-1]][0] != track or sum(rows[stack[-1]][1:]) <= ts):
            stack.pop()
        parents.append(stack[-1] if stack else NO_PARENT)
        depths.append(len(stack))
        if stack:
            self_ns[stack[-1]] -= dur
        stack.append(number)
    track, ts, dur = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    none = np.zeros(len(rows), np.int64)
    slices = Slices(ts, dur, track.astype(np.int32), none, none, none, none, none)
    with patch.object(columns, "_CHUNK", of_chunk), without():
        in_chunks = nesting_of(slices)
    for found in (in_chunks, nesting_of(slices)):
        assert (found.parent.tolist(), found.depth.tolist(), found.self_ns.tolist()) == (parents, depths, self_ns)
    assert all(own >= 0 for own in self_ns)


OF_PERFETTO = """
    select slice.name as name, slice.ts as ts, slice.dur as dur, slice.depth as depth,
    coalesce(parent.name, '') as parent, coalesce(parent.ts, -1) as parent_ts,
    slice.dur - coalesce((select sum(child.dur) from slice child where child.parent_id = slice.id), 0) as self
    from slice left join slice parent on slice.parent_id = parent.id
"""


def calls_of(trace: Trace, row: int) -> int:
    """The calls of a slice: 1, but for a row of a table that sums up several; 0 if it does not state how many."""
    slices = trace.slices
    number = int(slices.track[row])
    declared = trace.sources[trace.tracks[number].source].marks
    several = declared.several
    if several and not several.means and re.fullmatch(several.tracks, SliceTable(trace).path(number)):
        return 0
    marks = declared.sums
    if marks is None or trace.strings[slices.category[row]] not in marks.categories:
        return 1
    args = json.loads(trace.args.get(int(slices.args_at[row]), int(slices.args_len[row])) or b"{}")
    return int(args.get(marks.calls) or 1)


@every_shape
def test_against_the_trace_processor(case: Case, tmp_path: Path, trace_processor: OpenTrace) -> None:
    trace = case.merged(case.traces(tmp_path))
    if not len(trace.slices.ts):
        pytest.skip("no slices")
    path = tmp_path / "out.pftrace"
    path.write_bytes(written(trace, "perfetto"))
    table = SliceTable(trace)
    shown = as_shown(trace)
    names = [shown.strings[name] for name in shown.slices.name.tolist()]
    span = trace.span()
    shift = max(0, -span[0]) if span else 0  # a writer moves what begins before zero
    ts, dur = (trace.slices.ts + shift).tolist(), trace.slices.dur.tolist()
    nesting = table.nesting
    expected = Counter(
        (names[row], ts[row], dur[row], depth, *((names[parent], ts[parent]) if parent >= 0 else ("", -1)), own)
        for row, (depth, parent, own) in enumerate(
            zip(nesting.depth.tolist(), nesting.parent.tolist(), nesting.self_ns.tolist(), strict=True)
        )
    )
    with trace_processor(path) as processor:
        rows = [tuple(row.values()) for row in oracle.rows(processor, OF_PERFETTO)]
    found = Counter((row[0] or "", *row[1:]) for row in rows)
    assert expected <= found
    assert all(row[2] == 0 for row in found - expected)  # instants and log entries are slices of length 0 there
    assert (found - expected).total() == len(trace.instants.ts) + len(trace.logs.ts)
    work = ~(runs_nothing(table) | table.is_wait | table.once(_is_around_operators))
    for number in range(len(trace.sources)):
        work[work_of(table, number)] = False
    counted = table.counted[work[table.counted]]
    rows = operations(table, ("name",)).records()
    assert sum(row["count"] or 0 for row in rows) == sum(calls_of(trace, row) for row in counted.tolist())
    timed = counted[table.timed[counted]]  # the others have no recorded end
    assert sum(row["self_ns"] or 0 for row in rows) == int(nesting.self_ns[timed].sum())
