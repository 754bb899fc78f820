"""The work of devices: what kind it is, which call launched it, and which operator that call was in."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, grouped, launch_rows, timelines, work_of
from traceconv.answers.section import Cell, Column, Section, Unit, rounded
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable, sums_by
from traceconv.answers.steps import names, runs_nothing
from traceconv.io.shown import quantity
from traceconv.model.args import having_any
from traceconv.model.columns import I64
from traceconv.model.diagnostics import EVENTS, SLICES
from traceconv.model.drawable import NEVER_SET
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

COMPUTATION, COMMUNICATION, COPY = "computation", "communication", "copy"
KINDS = (COMPUTATION, COMMUNICATION, COPY)


class Work(Struct, frozen=True, dict=True):
    """The work of all devices whose duration was recorded, one value for each slice.

    Attributes:
        rows: the slices, in ascending order.
        is_copy, is_communication: their kind; others are computation.
        tells_copies, tells_communication: whether their format tells such work apart.
        launch: the row of the call that launched each, NONE if not recorded.
        notes: what of the devices is not counted.
        untimed: a note on work whose duration was not recorded; empty if there is none.
    """

    rows: Rows
    is_copy: npt.NDArray[np.bool_]
    is_communication: npt.NDArray[np.bool_]
    tells_copies: npt.NDArray[np.bool_]
    tells_communication: npt.NDArray[np.bool_]
    launch: I64
    notes: list[str]
    untimed: list[str]

    @cached_property
    def kind(self) -> npt.NDArray[np.intp]:
        """Return the kind of each: 0 for computation, 1 for communication, 2 for a copy."""
        return np.where(self.is_communication, 1, np.where(self.is_copy, 2, 0))


class Device(Struct, frozen=True):
    """A device with work.

    Attributes:
        title: its name for people, which no other device of its input has.
        path: the path of its track.
        source: the name of its input.
        work: which work is its own, as positions in `Work`, ascending.
        queues: these positions by the main track of each queue.
    """

    title: str
    path: str
    source: str
    work: Rows
    queues: dict[int, Rows]


def work(table: SliceTable) -> Work:
    """Return the device work that the formats of the inputs declare; the result is shared."""
    found: Work = table.once(_work)
    return found


def devices(table: SliceTable) -> list[Device]:
    """Return the devices with work, in the order of their tracks; the result is shared."""
    found: list[Device] = table.once(_devices)
    return found


def operators(table: SliceTable) -> I64:
    """Return the operator that launched each slice of device work: a row of the slices, NONE without one; shared.

    It is the innermost slice around the launch call in the categories that the format declares as operators; if the
    file has none, the innermost slice that is itself no launch call, step, span or wait. Without such a slice, as for
    graphs, it is the call itself.
    """
    found: I64 = table.once(_operators)
    return found


def first_above(table: SliceTable, rows: I64, accepted: npt.NDArray[np.bool_]) -> I64:
    """Return the innermost accepted slice around each slice, which may be the slice itself; NONE without one.

    Args:
        table: the slices.
        rows: slices; NONE stays NONE.
        accepted: a mask of all slices.
    """
    parent = table.nesting.parent
    around = np.where(parent == NO_PARENT, NONE, parent.astype(np.int64))
    above = np.append(np.where(accepted, np.arange(len(parent)), around), NONE)  # the last one is that of NONE
    # Each round doubles the number of slices that are skipped: slices can be nested as deep as there are slices.
    while not np.array_equal(further := above[above], above):
        above = further
    found: I64 = above[rows]
    return found


def _work(table: SliceTable) -> Work:
    trace = table.trace
    slices = trace.slices
    is_work = np.zeros(len(slices.ts), bool)
    copies, communication, tells_copies, tells_communication = (is_work.copy() for _ in range(4))
    for number, info in enumerate(trace.sources):
        of_input = work_of(table, number)
        if not len(of_input):
            continue
        is_work[of_input] = True
        by_id, by_track = info.marks.launches, info.marks.devices
        in_categories = table.of_categories(by_id.work if by_id is not None else (), of_input)
        if by_id is not None:
            of_names = in_categories & table.named(by_id.copies_names, of_input)
            copies[of_input] |= table.of_categories(by_id.copies_work, of_input) | of_names
            tells_copies[of_input] |= in_categories & bool(by_id.copies_work)
        if by_track is not None and by_track.copies:
            args = slices.args_at[of_input], slices.args_len[of_input], trace.args
            copies[of_input] |= table.naming(by_track.copies, of_input) | having_any(*args, by_track.copy_args)
            tells_copies[of_input] |= ~in_categories
        for marks, of_marks in ((by_id, in_categories), (by_track, ~in_categories)):
            if marks is not None and marks.communication:
                communication[of_input] |= table.naming(marks.communication, of_input)
                tells_communication[of_input] |= of_marks
    rows = np.flatnonzero(is_work)
    untimed = table.untimed_notes(rows[table.in_window(slices.ts[rows])])
    rows = rows[table.timed[rows]]
    return Work(
        rows,
        copies[rows],
        communication[rows],
        tells_copies[rows],
        tells_communication[rows],
        launch_rows(table)[rows],
        _undivided(table),
        untimed,
    )


def _undivided(table: SliceTable) -> list[str]:
    """Return a note for each category of slices on devices whose times do not tell how long it worked."""
    found: dict[str, int] = {}
    for number, info in enumerate(table.trace.sources):
        categories = info.marks.launches.undivided if info.marks.launches is not None else ()
        rows = table.rows_of(number) if categories else np.empty(0, np.intp)
        rows = rows[table.in_window(table.trace.slices.ts[rows])]
        for category in categories:
            found[category] = found.get(category, 0) + int(np.sum(table.of_categories((category,), rows)))
    return [
        f"not counted: {quantity(count, SLICES)} of devices in the category {category}, whose times do not tell how "
        "long it worked"
        for category, count in found.items()
        if count
    ]


def _devices(table: SliceTable) -> list[Device]:
    queue = table.row_of_track[table.trace.slices.track[work(table).rows]]
    queues_of: dict[int, dict[int, Rows]] = {}
    for track, positions in grouped(queue):
        queues_of.setdefault(_device_of(table, track), {})[track] = positions
    found: dict[tuple[str, str], Device] = {}
    numbers = Counter[tuple[str, str]]()
    for track, queues in sorted(queues_of.items()):
        path, source = table.device_path(track), table.input_of(track)
        stated = title = table.title(track, path)
        while (source, title) in found:
            numbers[source, stated] += 1
            title = f"{stated} ({numbers[source, stated] + 1})"
        positions = np.sort(np.concatenate(list(queues.values())))
        found[source, title] = Device(title, path, source, positions, queues)
    return list(found.values())


def _device_of(table: SliceTable, queue: int) -> int:
    """Return the track of the device of a queue.

    It is the innermost one from which on the path of the queue is that of a device, as its format declares. Without
    one, it is the outermost track that is not a process of the system: a device can be drawn as one.
    """
    tracks = table.trace.tracks
    marks, path = table.trace.sources[tracks[queue].source].marks.devices, table.path(queue)
    parent, is_work = tracks[queue].parent, re.compile(marks.queues).fullmatch if marks else None
    while parent != NO_TRACK and not _is_of_system(tracks[parent]):
        if is_work and is_work(path.removeprefix(table.path(parent)).removeprefix(" / ")):
            break
        queue, parent = parent, tracks[parent].parent
    return queue


def _is_of_system(track: Track) -> bool:
    return track.kind is TrackKind.PROCESS and (track.pid is not None or track.stated.without_pid)


def is_operator(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that are operators, as `operators` has them; shared."""
    mask: npt.NDArray[np.bool_] = table.once(_is_operator)
    return mask


def declared_operators(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the operators in the categories that their format declares as such."""
    is_declared: npt.NDArray[np.bool_] = table.once(_is_declared)
    return is_operator(table) & is_declared


def _is_declared(table: SliceTable) -> npt.NDArray[np.bool_]:
    declared = np.zeros(len(table.trace.slices.ts), bool)
    for number, info in enumerate(table.trace.sources):
        rows = table.rows_of(number)
        declared[rows] = table.of_categories(info.marks.operators, rows)
    return declared


def _is_operator(table: SliceTable) -> npt.NDArray[np.bool_]:
    accepted: npt.NDArray[np.bool_] = table.once(_is_declared).copy()
    for number, info in enumerate(table.trace.sources):
        rows = table.rows_of(number)
        if not np.any(accepted[rows]):
            calls = info.marks.launches.calls if info.marks.launches else ()
            accepted[rows] = ~table.of_categories((*calls, *info.marks.asides), rows)
    accepted[_is_none(table)] = False
    return accepted


def _is_none(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that are no operators in any format: steps, spans, waits, device work."""
    is_none = runs_nothing(table) | table.is_wait
    is_none[work(table).rows] = True
    return is_none


def _operators(table: SliceTable) -> I64:
    launch = work(table).launch
    found = first_above(table, launch, is_operator(table))
    _put_crossing(table, launch, found)
    return np.where((found == NONE) & ~_is_none(table)[launch], launch, found)


def _put_crossing(table: SliceTable, launch: I64, found: I64) -> None:
    """Put the operators of launches on threads with lanes: of those that run then, the one that started last."""
    slices, thread = table.trace.slices, table.row_of_track
    with_lanes = np.zeros(len(thread), bool)
    with_lanes[thread[thread != np.arange(len(thread))]] = True
    calls = np.flatnonzero(launch != NONE)
    calls = calls[with_lanes[thread[slices.track[launch[calls]]]]]
    if not len(calls):
        return
    rows = np.flatnonzero(is_operator(table) & with_lanes[thread[slices.track]])
    line = np.full(len(thread), NONE, np.int64)
    present = np.unique(thread[slices.track[rows[slices.dur[rows] > 0]]])
    line[present] = np.arange(len(present))
    ran = timelines(slices, rows, line[thread])
    line_of_call = line[thread[slices.track[launch[calls]]]]
    some = line_of_call != NONE
    found[calls[some]] = ran.rows[ran.locate(line_of_call[some], slices.ts[launch[calls[some]]])]


def without_work(table: SliceTable) -> str:
    """Return the note on a recording without work of a device, which names events whose times were never set."""
    found = (entry for source in table.trace.sources for entry in source.diagnostics if entry.code is NEVER_SET)
    count = sum(entry.count for entry in found)
    with_time = f" with a time: those of {quantity(count, EVENTS)} were never set" if count else ""
    return f"no work of a device is recorded{with_time}"


# -- The section `kernels`: the time of device work by name ----------------------------------------------------------

_KERNELS = (
    Column("name", "name", Unit.TEXT),
    Column("kind", "kind", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("kernel_share", "of kernels", Unit.SHARE),
    Column("mean_ns", "mean", Unit.NS),
    Column("p50_ns", "p50", Unit.NS, spare=True),
    Column("max_ns", "max", Unit.NS),
    Column("operator", "launched by", Unit.TEXT, below=True),
)


def kernels(table: SliceTable) -> Section:
    """Return a row for each name and kind of device work, the largest sum of durations first.

    The shares are of the sum over all of these rows. `operator` launched the most of the row; it is the launch call
    where no operator is around it. Work counts that starts in the window of the table.
    """
    section = Section("kernels", _KERNELS)
    found = work(table)
    slices, strings = table.trace.slices, table.trace.strings
    some = np.flatnonzero(table.in_window(slices.ts[found.rows]))
    if not len(some):
        section.notes += found.notes + (found.untimed or [without_work(table)])
        return section
    rows, operator = found.rows[some], operators(table)[some]
    codes = slices.name[rows].astype(np.int64) * len(KINDS) + found.kind[some]
    whole = int(np.sum(slices.dur[rows]))
    for code, positions in grouped(codes):
        durations = np.sort(slices.dur[rows[positions]])
        total, count = int(np.sum(durations)), len(durations)
        section.rows.append(
            (
                strings[code // len(KINDS)],
                KINDS[code % len(KINDS)],
                count,
                total,
                total / whole if whole else None,
                rounded(total, count),
                int(durations[(count - 1) // 2]),
                int(durations[-1]),
                _most(table, operator[positions], slices.dur[rows[positions]]),
            )
        )
    section.rows.sort(key=lambda row: (-int(row[section.place("total_ns")] or 0), str(row[0])))
    section.notes += found.notes + found.untimed
    section.legend.append(
        "of kernels: of the sum of the durations of all rows; launched by: what launched the most of it"
    )
    return section


def _most(table: SliceTable, operator: I64, durations: I64) -> Cell:
    """Return the name of the operator of the most time, "" if none is known."""
    known = operator != NONE
    distinct, codes = np.unique(names(table).numbers[operator[known]], return_inverse=True)
    if not len(distinct):
        return ""
    return names(table).texts[
        int(distinct[int(np.argmax(sums_by(codes.reshape(-1), durations[known], len(distinct))))])
    ]
