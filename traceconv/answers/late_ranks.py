"""The table `late_causes`: what the rank that came last to collectives ran longer than the other ranks before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, grouped, run_parts, timelines
from traceconv.answers.collective_waits import Waits
from traceconv.answers.device_time import NOTHING_RAN
from traceconv.answers.device_work import COMMUNICATION, work
from traceconv.answers.section import Column, Section, Unit, Unnamed, rounded
from traceconv.answers.slice_tables import Rows, SliceTable, sums_by, union
from traceconv.answers.steps import names, runs_nothing
from traceconv.model.columns import I64
from traceconv.model.trace_inputs import inputs_of

_LATE = (
    Column("rank", "rank", Unit.COUNT),
    Column("name", "ran longer than the others", Unit.TEXT),
    Column("kind", "kind", Unit.TEXT),
    Column("extra_ns", "longer by", Unit.NS),
    Column("time_ns", "time", Unit.NS),
    Column("others_ns", "others", Unit.NS),
    Column("collectives", "before collectives", Unit.COUNT, detail=True),
)


class _Before(Struct, frozen=True):
    """The times of ranks between two collectives: from the end of a record to the start of the next one.

    Attributes:
        collective: the number of the later collective of each.
        rank, starts, ends: the rank and the time of each, ns on the clock of the trace.
        inputs: the number of the input of the later record of each.
        is_late: whether the rank came last to the later collective.
    """

    collective: I64
    rank: I64
    starts: I64
    ends: I64
    inputs: I64
    is_late: I64


def late_causes(table: SliceTable, waited: Waits, unknown: Sequence[str]) -> Section:
    """Return a row for each late rank and name: how much longer it ran than in the mean of the others.

    A collective counts if it is known which rank came last. What the same ranks ran since they met in the one before is
    compared; for the first of all, since the first recording began: NOT_BEGUN is the time before that of a rank.
    This is the work of the device of a rank, else what the thread ran that launched the most, or ran the longest, else
    what other threads ran. The differences of a rank add up to how much longer it took from one collective to the next.

    Args:
        table: the slices.
        waited: the collectives.
        unknown: why the last rank of each is not known; "" where it is.
    """
    section = Section("late_causes", _LATE)
    trace, slices = table.trace, table.trace.slices
    begins = _begins(table)
    before = _before(waited, unknown, None if table.window else begins)
    if before is None:
        return section
    found = work(table)
    is_work = np.zeros(len(slices.ts), bool)
    is_work[found.rows] = True
    communicates = table.is_exchange & ~is_work
    communicates[found.rows[found.is_communication]] = True
    candidates = table.recorded[(table.timed & (slices.dur > 0))[table.recorded]]
    candidates = candidates[~runs_nothing(table, candidates)]
    preferred = _preferred(table, is_work, candidates)
    candidates = candidates[(preferred[candidates] > 0) | ~table.is_wait[candidates]]
    compared = union(before.starts, before.ends)
    meets = np.searchsorted(compared.ends, slices.ts[candidates], "right") < np.searchsorted(
        compared.starts, table.ends(candidates)
    )
    rows = candidates[meets]
    line_of_track = np.full(len(trace.tracks), NONE, np.int64)
    line_of_track[slices.track[rows]] = inputs_of(trace, "slices")[rows]
    present = np.unique(line_of_track[slices.track[rows]])
    ran = timelines(slices, rows, line_of_track, preferred)
    number_of_line = np.full(len(trace.sources) + 1, NONE, np.int64)
    number_of_line[present] = np.arange(len(present))
    starts = np.clip(begins[before.inputs], before.starts, before.ends)
    interval, row, length = run_parts(ran, number_of_line[before.inputs], starts, before.ends)
    texts = [*names(table).texts, NOT_BEGUN, NOTHING_RAN]
    name = np.where(row == NONE, len(texts) - 1, names(table).numbers[row])
    kind = np.where(row == NONE, 0, np.where(is_work[row], 2, np.where(table.is_wait[row], 3, 1)))
    kind = np.where((row != NONE) & communicates[row], 4, kind)
    late = np.flatnonzero(starts > before.starts)
    codes = np.append(name * len(_KINDS) + kind, np.full(len(late), (len(texts) - 2) * len(_KINDS)))
    lengths = np.append(length, (starts - before.starts)[late])
    _add_rows(section, before, np.append(interval, late), codes, lengths, texts)
    if section.rows:
        section.legend.append(
            "since the collective before those to which the rank came last, or the start of the first recording; "
            "others: the mean of the other ranks"
        )
    return section


_KINDS = ("", "host", "device", "wait", COMMUNICATION)
#: The name of the time in which another rank was recorded, and the late one not yet.
NOT_BEGUN = Unnamed.NOT_BEGUN


def _begins(table: SliceTable) -> I64:
    """Return when the recording of each input begins, ns; later than all times without slices."""
    slices = table.trace.slices
    begins = np.full(len(table.trace.sources), np.iinfo(np.int64).max, np.int64)
    some = table.drawn_in_time[slices.track]
    np.minimum.at(begins, inputs_of(table.trace, "slices")[some], slices.ts[some])
    return begins


def _before(waited: Waits, unknown: Sequence[str], begins: I64 | None) -> _Before | None:
    """Return the times before the collectives whose last rank is known; None without any.

    With the times at which the recordings of inputs begin, the first collective of all counts, too.
    """
    records = waited.records
    edges = np.append(waited.first, len(records.number)).tolist()
    of_ranks: defaultdict[tuple[int, ...], list[tuple[int, int, int]]] = defaultdict(list)
    for number, (low, high) in enumerate(pairwise(edges)):
        order = low + np.argsort(records.rank[low:high], kind="stable")
        of_ranks[tuple(records.rank[order].tolist())].append((int(np.min(records.start[low:high])), low, number))
    columns: list[tuple[I64, I64, I64, I64, I64, I64]] = []
    first = min(map(min, of_ranks.values()), default=None)
    for ranks, collectives in of_ranks.items():
        ordered = sorted(collectives)
        if begins is not None and ordered[0] == first:
            ordered.insert(0, (0, NONE, NONE))
        for (_, low, _), (_, next_low, number) in pairwise(ordered):
            if unknown[number]:
                continue
            later = next_low + np.argsort(records.rank[next_low : next_low + len(ranks)], kind="stable")
            if begins is not None and low == NONE:  # since the first recording began
                starts = np.full(len(ranks), np.min(begins[records.input[later]]))
            else:
                starts = records.end[low + np.argsort(records.rank[low : low + len(ranks)], kind="stable")]
            ends = np.maximum(records.start[later], starts)
            is_late = (later == waited.last[number]).astype(np.int64)
            columns.append(
                (np.full(len(ranks), number), records.rank[later], starts, ends, records.input[later], is_late)
            )
    if not columns:
        return None
    return _Before(*(np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True)))


def _preferred(table: SliceTable, is_work: npt.NDArray[np.bool_], candidates: Rows) -> npt.NDArray[np.int8]:
    """Return how much each slice tells about the rank of its input: 2 for work of a device, 1 for the main thread.

    That is the thread that launched the most, or else ran the longest, but for waits and communication.
    """
    slices = table.trace.slices
    inputs = inputs_of(table.trace, "slices").astype(np.int64)
    thread = table.row_of_track[slices.track]
    launch = work(table).launch
    launch, host = launch[launch != NONE], candidates[~(is_work | table.is_wait | table.is_exchange)[candidates]]
    weighed = {number: (launch[some], np.ones(len(some), np.int64)) for number, some in grouped(inputs[launch])}
    for number, some in grouped(inputs[host]):
        weighed.setdefault(number, (host[some], table.nesting.self_ns[host[some]]))
    preferred = np.where(is_work, 2, 0).astype(np.int8)
    for rows, weights in weighed.values():
        threads, group = np.unique(thread[rows], return_inverse=True)
        main = threads[int(np.argmax(sums_by(group.reshape(-1), weights, len(threads))))]
        preferred[(thread == main) & ~is_work] = 1
    return preferred


def _add_rows(section: Section, before: _Before, interval: I64, code: I64, length: I64, texts: Sequence[str]) -> None:
    """Add a row for each rank that came last, and each name that it ran longer or shorter than the others."""
    late_rank = np.full(int(np.max(before.collective)) + 1, NONE, np.int64)
    late = before.is_late == 1
    late_rank[before.collective[late]] = before.rank[late]
    blamed = late_rank[before.collective]
    others = np.bincount(before.collective[~late], minlength=len(late_rank))  # the other ranks of each collective
    found: list[list[tuple[int, str, str, int, int, int, int]]] = []
    for rank, members in grouped(blamed):
        some = np.isin(interval, members)
        times: defaultdict[int, int] = defaultdict(int)
        of_others: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        for number, key, amount in zip(
            interval[some].tolist(), code[some].tolist(), length[some].tolist(), strict=True
        ):
            if late[number]:
                times[key] += amount
            else:
                of_others[key][int(others[before.collective[number]])] += amount
        collectives = len(np.unique(before.collective[members]))
        rows: list[tuple[int, str, str, int, int, int, int]] = []
        for key in times.keys() | of_others.keys():
            time, mean = times[key], sum(rounded(amount, count) for count, amount in of_others[key].items())
            name, kind = texts[key // len(_KINDS)], _KINDS[key % len(_KINDS)]
            rows.append((rank, name, kind, time - mean, time, mean, collectives))
        found.append(sorted(rows, key=lambda row: (-row[3], row[1])))
    for rows in sorted(found, key=lambda rows: -sum(row[3] for row in rows)):
        section.rows += rows
