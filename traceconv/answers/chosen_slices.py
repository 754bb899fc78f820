"""Columns about slices with a meaning (work of devices, the calls that launched it, steps), and about collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.align.collectives import Occurrences
from traceconv.align.receipt import Aligned
from traceconv.answers.attribution import NONE
from traceconv.answers.device_work import KINDS, devices, operators, work
from traceconv.answers.launch_calls import in_time
from traceconv.answers.rank_waits import who_waited
from traceconv.answers.slice_tables import Rows, SliceTable, sums_by
from traceconv.answers.steps import step_rows
from traceconv.io.shown import shown_ranks
from traceconv.model.columns import I64
from traceconv.model.stated_collectives import stated_collectives


class Texts(Struct, frozen=True):
    """A column of texts: the number of each, and the texts."""

    numbers: npt.NDArray[Any]
    texts: Sequence[str]


#: The columns of some slices by name: numbers, or texts.
Own = dict[str, npt.NDArray[Any] | Texts]


def kernels_of(table: SliceTable) -> tuple[Rows, Own]:
    """Return the slices that are work of devices, with kind, device, launch call and operator (rows of the slices)."""
    found, known = work(table), devices(table)
    device = np.zeros(len(found.rows), np.int64)
    for number, found_device in enumerate(known):
        device[found_device.work] = number
    return found.rows, {
        "kind": Texts(found.kind, KINDS),
        "device": Texts(device, [each.title for each in known]),
        "launch": found.launch,
        "operator": operators(table),
    }


_UNKNOWN, _BUSY, _LATE = "", "while busy", "late"


def launches_of(table: SliceTable) -> tuple[Rows, Own]:
    """Return the slices that launched work of devices, with the number, sum (ns) and first slice of that work.

    The state says whether the device was busy when the call began, as in the section `launches` of a report.
    """
    found, slices = work(table), table.trace.slices
    launched = np.flatnonzero(found.launch != NONE)
    rows, group = np.unique(found.launch[launched], return_inverse=True)
    group = group.reshape(-1)
    by_start = np.lexsort((slices.ts[found.rows[launched]], group))
    first = launched[by_start[np.flatnonzero(np.diff(group[by_start], prepend=-1))]]
    was_busy, known = in_time(table)
    return rows, {
        "kernels": np.bincount(group, minlength=len(rows)),
        "device_ns": sums_by(group, slices.dur[found.rows[launched]], len(rows)),
        "first": found.rows[first],
        "state": Texts(np.where(~known[first], 0, np.where(was_busy[first], 1, 2)), (_UNKNOWN, _BUSY, _LATE)),
    }


def steps_of(table: SliceTable) -> tuple[Rows, Own]:
    """Return the slices that are steps."""
    return step_rows(table), {}


class Calls(Struct, frozen=True):
    """The records of collectives, one for each rank that took part; columns of one length.

    Attributes:
        kind, ranks: the operation, and the ranks of the group.
        start, duration: ns on the clock of the trace.
        rank, input: the rank, and the number of the input.
        collective: the number of the collective, equal for all its ranks; NONE if it has no certain partner.
        seq: the sequence number that the input states, NONE without one.
        wait: the time that the rank waited for others, ns; NONE if that is not known.
        is_last: whether the rank is known to have come last.
        bound: how wrong the times may be, ns.
    """

    kind: Texts
    ranks: Texts
    start: I64
    duration: I64
    rank: I64
    input: I64
    collective: I64
    seq: I64
    wait: I64
    is_last: npt.NDArray[np.bool_]
    bound: I64


def collectives_of(table: SliceTable, aligned: Aligned) -> Calls:
    """Return the collectives that inputs recorded, matched where that is certain."""
    matched, alignment = aligned.matched, aligned.alignment
    if matched is None or alignment is None:
        return _stated(table)
    found = who_waited(matched, alignment)
    records, waited = found.waited.records, found.waited
    others = [matched.one_sided, matched.unmatched]
    each = Occurrences.joined([records, *others])
    last = waited.last[[not reason for reason in found.unknown]]
    is_last, wait = np.zeros(len(each.row), bool), np.full(len(each.row), NONE, np.int64)
    is_last[last] = True
    wait[: len(records.row)] = waited.wait
    behind = int(np.max(records.number, initial=NONE)) + 1
    number = [records.number, matched.one_sided.number + behind, np.full(len(matched.unmatched.row), NONE)]
    members = matched.terms.members
    return Calls(
        Texts(each.kind, list(matched.terms.kinds)),
        Texts(each.group, [shown_ranks(members.get(group, ())) for group in range(1 + max(members, default=0))]),
        each.start,
        each.end - each.start,
        each.rank,
        each.input,
        np.concatenate(number).astype(np.int64),
        each.seq,
        wait,
        is_last,
        each.bound,
    )


def _stated(table: SliceTable) -> Calls:
    """Return the collectives that the only input states."""
    trace, stated = table.trace, stated_collectives(table.trace)
    kinds = sorted({call.kind for call in stated.each})
    rows = np.array([call.row for call in stated.each], np.int64)
    source = trace.sources[0] if trace.sources else None
    nothing = np.full(len(rows), NONE, np.int64)
    rank = NONE if source is None or source.rank is None else source.rank
    return Calls(
        Texts(np.array([kinds.index(call.kind) for call in stated.each], np.int64), kinds),
        Texts(
            np.array([call.group for call in stated.each], np.int64),
            [shown_ranks(group.ranks or ()) for group in stated.groups],
        ),
        trace.slices.ts[rows],
        trace.slices.dur[rows],
        np.full(len(rows), rank, np.int64),
        np.zeros(len(rows), np.int64),
        nothing,
        np.array([call.seq for call in stated.each], np.int64),
        nothing,
        np.zeros(len(rows), bool),
        nothing,
    )
