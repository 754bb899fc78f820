"""Find the host call that launched each slice of device work."""

from __future__ import annotations

import numpy as np

from traceconv.align.launches import OwnIds, group_numbers, own_ids, with_ids
from traceconv.answers.attribution import NONE
from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.launch_ids import of_launches
from traceconv.model.marks import LaunchMarks
from traceconv.model.ordering import distinct_values
from traceconv.model.trace import I64


def work_of(table: SliceTable, number: int) -> Rows:
    """Return the rows of the slices of an input that are device work."""
    marks = table.trace.sources[number].marks
    rows = table.rows_of(number) if marks.launches is not None or marks.devices is not None else np.empty(0, np.intp)
    is_work = np.zeros(len(rows), bool)
    if marks.launches is not None:
        is_work |= table.of_categories(marks.launches.work, rows)
    if marks.devices is not None:
        is_work |= table.on_tracks(marks.devices.queues, rows)
    return rows[is_work]


def launches(table: SliceTable) -> I64:
    """Return the row of the launch call of each slice, NONE if not recorded; the array is shared.

    Work and its call share an id, which is unique in their process. Flows are used where no id is stated, several calls
    have it, or the process of a device is not known. They are less reliable: several slices can start at the time of a
    flow, and of a graph only one slice may have a flow.
    """
    found: I64 = table.once(_launches)
    return found


def _launches(table: SliceTable) -> I64:
    trace = table.trace
    launch = np.full(len(trace.slices.ts), NONE, np.int64)
    works = [work_of(table, number) for number in range(len(trace.sources))]
    by_flows: dict[str, list[Rows]] = {}
    for work, info in zip(works, trace.sources, strict=True):
        if len(work):
            by_flows.setdefault(info.marks.launch_flows, []).append(work)
    for pattern, some in by_flows.items():
        _add_by_flows(launch, table, pattern, np.concatenate(some))
    _add_by_flows_of_outputs(launch, table, works)
    numbers: dict[tuple[str, ...], I64] = {}
    no_ranks = np.zeros(len(trace.strings), np.int64)  # calls on the tracks of hosts have any category
    for number, (work, info) in enumerate(zip(works, trace.sources, strict=True)):
        if not len(work):
            continue
        by_track, by_category = info.marks.devices, info.marks.launches
        if by_track is not None and by_track.ids:
            rows = table.rows_of(number)
            rows = rows[table.on_tracks(by_track.hosts, rows)]
            _add_by_ids(launch, table, work, rows, LaunchMarks(calls=("",), ids=by_track.ids), no_ranks)
        if by_category is not None:
            if by_category.calls not in numbers:
                numbers[by_category.calls] = group_numbers(trace.strings, by_category.calls)
            _add_by_ids(launch, table, work, table.rows_of(number), by_category, numbers[by_category.calls])
    return launch


def _add_by_ids(launch: I64, table: SliceTable, work: Rows, hosts: Rows, marks: LaunchMarks, rank_of: I64) -> None:
    """Add the calls with the ids of device work.

    Args:
        launch: the launch calls by flows; those by ids are added.
        table: the slices.
        work: the work.
        hosts: the slices that may be calls.
        marks: how to read ids.
        rank_of: the rank of calls by their category, as for `own_ids`.
    """
    rows, ids = with_ids(table.trace, work, marks)
    calls = own_ids(table.trace, hosts, marks, rank_of, table.processes, len(marks.calls))
    if not len(calls.ids) or not len(rows):
        return
    device = table.processes[table.trace.slices.track[rows]]
    process = _processes(launch, table, device, rows, calls)[device]
    known = process != NONE
    # The ids of the calls of each process, in one ascending order.
    values, number = np.unique(np.concatenate((calls.ids, ids)), return_inverse=True)
    number = number.reshape(-1)
    of_call, of_work = number[: len(calls.ids)], number[len(calls.ids) :]
    keys = calls.process * len(values) + of_call
    order = np.argsort(keys)
    wanted = process[known] * len(values) + of_work[known]
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    same = keys[at] == wanted
    launch[rows[known][same]] = calls.rows[at[same]]
    # Each process counts from 1: two devices with one id may be of two processes, of which one has no calls here.
    id_of_pair, device_of_pair = _distinct_pairs(of_work, device)
    shares = np.bincount(id_of_pair, minlength=len(values)) > 1
    apart = ~np.isin(device, device_of_pair[shares[id_of_pair]])
    only = calls.of_one_process()
    rest = np.flatnonzero(~known & apart & (launch[rows] == NONE))
    if len(only.ids) and len(rest):
        at = np.minimum(np.searchsorted(only.ids, ids[rest]), len(only.ids) - 1)
        same = only.ids[at] == ids[rest]
        launch[rows[rest[same]]] = only.rows[at[same]]


def _processes(launch: I64, table: SliceTable, device: I64, rows: Rows, calls: OwnIds) -> I64:
    """Return, for each track that is a device, the process that launches its work: NONE if unknown, or one of several.

    It is the process that the device is drawn in, if this has calls, or else that from which all its flows come.
    """
    result = np.full(len(table.trace.tracks), NONE, np.int64)
    by_flow = launch[rows] != NONE
    launched, by = device[by_flow], table.processes[table.trace.slices.track[launch[rows[by_flow]]]]
    launched, by = _distinct_pairs(launched, by)
    one, first, count = np.unique(launched, return_index=True, return_counts=True)
    result[one[count == 1]] = by[first[count == 1]]
    result[calls.process] = calls.process
    return result


def _distinct_pairs(one: I64, other: I64) -> tuple[I64, I64]:
    """Return the distinct pairs of two columns of numbers that are not negative, in ascending order."""
    count = int(np.max(other, initial=0)) + 1
    pairs = distinct_values(one.astype(np.int64) * count + other)
    return pairs // count, pairs % count


def _add_by_flows(launch: I64, table: SliceTable, pattern: str, work: Rows) -> None:
    """Add the starts of flows that end at device work and have the names of launch flows."""
    flows = table.trace.flows
    is_work = np.zeros(len(launch), bool)
    is_work[work] = True
    says = of_launches(pattern, table.trace.strings)
    mine = (says[flows.name] | says[flows.category]) & is_work[flows.to_slice]
    launch[flows.to_slice[mine]] = flows.from_slice[mine]


def _add_by_flows_of_outputs(launch: I64, table: SliceTable, works: list[Rows]) -> None:
    """Add the starts of flows in outputs of traceconv, where Perfetto's format drops the names of flows.

    They are launches if they lead from what is no device work to device work of one stated input, and the format of
    that input declares launch flows.

    Args:
        launch: the launch calls that are known; more are added.
        table: the slices.
        works: the device work of each input.
    """
    trace = table.trace
    flows, of_slice = trace.flows, trace.slices.track
    unnamed = np.array([not text for text in trace.strings], bool)
    stated = np.array([track.stated for track in trace.tracks], np.int64)
    for number, (work, info) in enumerate(zip(works, trace.sources, strict=True)):
        launching = [at for at, one in enumerate(info.stated) if one.marks.launch_flows]
        if not len(work) or not launching or not len(flows.from_slice):
            continue
        is_work, is_mine = np.zeros(len(launch), bool), np.zeros(len(launch), bool)
        is_work[work], is_mine[table.rows_of(number)] = True, True
        begin, end = flows.from_slice, flows.to_slice
        inputs = stated[of_slice[end]]
        found = unnamed[flows.name] & unnamed[flows.category] & is_work[end] & is_mine[begin] & ~is_work[begin]
        found &= np.isin(inputs, launching) & (stated[of_slice[begin]] == inputs) & (launch[end] == NONE)
        launch[end[found]] = begin[found]
