"""Find the host call that launched each slice of device work."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from traceconv.align.launches import own_ids, with_ids
from traceconv.answers.attribution import NONE
from traceconv.answers.tables import SliceTable
from traceconv.model.marks import FormatMarks
from traceconv.model.trace import I64


def is_work(table: SliceTable, number: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices of an input that are device work."""
    marks = table.trace.sources[number].marks
    found = np.zeros(len(table.trace.slices.ts), bool)
    if marks.launches is not None:
        found |= table.of_categories(marks.launches.work)
    if marks.devices is not None:
        found |= table.on_tracks(marks.devices.queues)
    return found & table.of_source(number)


def launches(table: SliceTable) -> I64:
    """Return the row of the launch call of each slice, NONE if not recorded.

    Work and its call share an id. Flows are used where no id is stated, or several calls have it. They are less
    reliable: several slices can start at the time of a flow, and of a graph only one slice may have a flow.
    """
    trace = table.trace
    found = np.full(len(trace.slices.ts), NONE, np.int64)
    for number, info in enumerate(trace.sources):
        work = np.flatnonzero(is_work(table, number))
        if not len(work):
            continue
        _add_by_flows(found, table, info.marks, work)
        marks = info.marks.launches
        if marks is None:
            continue
        rows, ids = with_ids(trace, work, marks)
        calls = own_ids(trace, np.flatnonzero(table.of_source(number)), marks, marks.calls)
        if len(calls.ids):
            at = np.minimum(np.searchsorted(calls.ids, ids), len(calls.ids) - 1)
            known = calls.ids[at] == ids
            found[rows[known]] = calls.rows[at[known]]
    return found


def _add_by_flows(found: I64, table: SliceTable, marks: FormatMarks, work: I64) -> None:
    """Add the starts of flows that end at device work and have the names of launch flows."""
    flows = table.trace.flows
    is_work = np.zeros(len(found), bool)
    is_work[work] = True
    pattern = re.compile(marks.launch_flows)
    texts = [bool(marks.launch_flows) and pattern.search(text) is not None for text in table.trace.strings]
    says = np.array(texts, bool)
    mine = (says[flows.name] | says[flows.category]) & is_work[flows.to_slice]
    found[flows.to_slice[mine]] = flows.from_slice[mine]
