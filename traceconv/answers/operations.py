"""The sections `operations`, `waits` and `primitives`: the time of slices by name, of waits, of library calls."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.answers.attribution import NONE, grouped, self_lengths, timelines, work_of
from traceconv.answers.backward import forward_operators
from traceconv.answers.device_work import declared_operators, devices, first_above, operators, work
from traceconv.answers.section import Cell, Column, Section, Unit, Unnamed, place_of, rounded
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable, lengths_in_groups, sums_by
from traceconv.answers.steps import names, runs_nothing, timed_steps
from traceconv.errors import UsageError
from traceconv.io.shown import Counted, quantity
from traceconv.model.args import ABSENT, arg_values, as_text
from traceconv.model.columns import I32, I64, chunks, distinct_values, gathered, like_next, stable_order
from traceconv.model.diagnostics import CALLS, SLICES
from traceconv.model.marks import INPUT_DATA, PrimitiveMarks
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

# -- The section `operations`: the time of slices by name, or by other keys ------------------------------------------

_ON_DEVICE = (
    Column("device_ns", "device", Unit.NS),
    Column("device_share", "of kernels", Unit.SHARE),
    Column("kernels", "kernels", Unit.COUNT),
    Column("device_busy_ns", "device busy", Unit.NS, detail=True),
    Column("no_operator_ns", "of no operator", Unit.NS, detail=True),
)
_MEASURES = (
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("self_ns", "self", Unit.NS),
    Column("mean_ns", "mean", Unit.NS, spare=True),
    Column("p50_ns", "p50", Unit.NS, spare=True),
    Column("p99_ns", "p99", Unit.NS, spare=True),
    Column("max_ns", "max", Unit.NS),
    Column("host_share", "of host", Unit.SHARE),
    Column("step_share", "of steps", Unit.SHARE),
)
#: Only if some slice has no recorded duration.
_UNKNOWN = Column("no_duration", "no duration", Unit.COUNT)
#: The name of the row of device work that no operator is known to have launched.
NO_OPERATOR = Unnamed.NO_OPERATOR
#: A number for each slice.
Codes = I32 | I64
#: So many combinations of keys have numbers of 63 bits.
_MOST_CODES = 1 << 62
#: The keys that operations can be grouped by, besides `arg:KEY`.
KEYS = ("name", "category", "track", "thread", "process", "rank", "input", "shape", "module", "class", "range")
#: Those that slices around have.
AROUND = frozenset(("module", "class", "range"))
#: Those that the place of a slice has.
OF_TRACKS = ("track", "thread", "process", "rank", "input")
ARG = "arg:"
_RANGES = Counted("slice that is a range around operators", "slices that are ranges around operators")


def operations(table: SliceTable, by: Sequence[str] = ("name",), sort: str = "") -> Section:
    """Return a row for each value of the keys, sorted by a column: numbers descending, texts ascending.

    Device work, steps and waits are no operations; ranges around operators only if `by` has "range". The device time of
    a row is that of the work which its slices launched, without operations inside them; with the row NO_OPERATOR they
    add up to all device work.

    Slices without a recorded duration are counted in a column of their own; times are of the others, None without any.
    Of slices that sum up several calls, each call counts; percentiles and the maximum are None, since sums do not tell.
    So they are for means, and if the number of calls is not stated, the count and the mean are, too.

    Args:
        table: the slices.
        by: some of KEYS, or `arg:KEY` for the value of an arg.
        sort: the name or the title of a column; without such a column, the largest device time is first, then the
            largest share of steps, then the largest self time.

    Raises:
        UsageError: a key is not known.
    """
    columns = columns_of(by)
    section = Section("operations", columns[:-1])
    codes, values = combined([key_of(table, key) for key in by])
    counted = table.counted[_is_operation(table, ranges="range" in by)[table.counted]]
    launched = _launched(table, codes)
    if not len(counted) and not launched:
        section.notes.append(_why_empty(table))
        return section
    groups = _Groups(table, codes, counted)
    whole = sum(work.device_ns for work in launched.values())
    host = int(np.sum(groups.self_ns))
    in_steps, of_steps = _in_steps(table, groups)
    rows: list[tuple[Cell, ...]] = []
    for number, (code, *measures) in enumerate(groups.measures()):
        work = launched.pop(code, _NO_WORK)
        share = work.device_ns / whole if whole else None
        on_device = (work.device_ns, share, *work[1:]) if work.kernels else (None,) * 5
        self_ns, without = measures[2], measures[-1]
        of_host = self_ns / host if self_ns is not None and host else None
        of_step = in_steps[number] / of_steps if self_ns is not None and of_steps else None
        rows.append((*values(code), *on_device, *measures[:-1], of_host, of_step, without))
    for code, work in launched.items():  # of no operator, or of operators that do not count, as before the window
        keys = values(code) if code != _NO_CODE else (NO_OPERATOR, *("" for _ in by[1:]))
        share = work.device_ns / whole if whole else None
        count = None if code == _NO_CODE else 0
        rows.append((*keys, work.device_ns, share, *work[1:], count, *(None,) * 8, 0))
    if place_of(sort, columns) is None:
        rows = in_order(rows, section.place("self_ns"))
        for column in ("step_share", "device_ns"):
            rows = in_order(rows, section.place(column), stable=True)
    else:
        rows = in_order(rows, place_of(sort, columns) or 0)
    section.rows = rows
    section.notes += groups.notes
    if groups.without_duration:
        section.columns = columns
        section.notes += table.untimed_notes(counted)
    else:
        section.rows = [row[:-1] for row in section.rows]
    left_out = len(table.trace.slices.ts) - len(table.recorded)
    if left_out:
        section.notes.append(f"left out: {quantity(left_out, SLICES)} (copies of others, or about the recording)")
    if ranges := int(np.count_nonzero(left_ranges(table, "range" in by)[table.counted])):
        see = "their time is that of slices that they cross" if "range" in by else "see --by range"
        section.notes.append(f"left out: {quantity(ranges, _RANGES)}; {see}")
    section.notes += table.synthetic_notes(table.trace.slices.track)
    section.notes += without_values(by, section.rows)
    section.legend.append(
        "self: duration without the slices directly inside; total: nested slices of one row count once; "
        "of host: self as a share of that of all rows"
    )
    if whole:
        section.legend.append("device: the sum of the kernels and copies that it launched; of kernels: of all of them")
    if of_steps:
        section.legend.append(
            "of steps: the share of their time in which a thread of the process ran it, not what is inside"
        )
    return section


def _is_operation(table: SliceTable, *, ranges: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of all but device work, steps, spans, waits and, unless `ranges`, ranges around operators."""
    mask = ~(runs_nothing(table) | table.is_wait)
    mask &= ~left_ranges(table, ranges)
    for number in range(len(table.trace.sources)):
        mask[work_of(table, number)] = False
    return mask


def left_ranges(table: SliceTable, by_range: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of the ranges around operators that are no rows: by range, those that cross other slices."""
    mask: npt.NDArray[np.bool_] = table.once(_is_around_operators)
    return mask & is_on_lane(table) if by_range else mask


def is_on_lane(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices beside their track, since they cross others."""
    tracks = table.row_of_track
    on_lane: npt.NDArray[np.bool_] = (tracks != np.arange(len(tracks)))[table.trace.slices.track]
    return on_lane


def _is_around_operators(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the ranges of the user of a name that has declared operators inside; loaders are none.

    What a format declares as innermost is inside the ranges that run when it starts.
    """
    slices, parent = table.trace.slices, table.nesting.parent
    mask = np.zeros(len(slices.ts), bool)
    is_range = is_around(table, "range")
    if not np.any(is_range):
        return mask
    holds_operator = np.append(mask, True)  # NO_PARENT is the last one
    above = parent[declared_operators(table) & ~is_range]
    while len(above := distinct_values(above[~holds_operator[above]])):
        holds_operator[above] = True
        above = parent[above]
    crossing = table.once(_crossing_ranges)[declared_operators(table) & ~is_range]
    holds_operator[crossing[crossing != NONE]] = True
    for number, info in enumerate(table.trace.sources):
        rows = table.rows_of(number)
        inner = np.sort(slices.ts[rows[table.of_categories(info.marks.innermost, rows)]])
        rows = rows[is_range[rows]]
        names = slices.name[rows]
        begun, ended = np.searchsorted(inner, slices.ts[rows]), np.searchsorted(inner, table.ends(rows))
        around = np.isin(names, distinct_values(names[holds_operator[rows] | (begun < ended)]))
        mask[rows] = around & ~table.naming(INPUT_DATA, rows)
    return mask


def _why_empty(table: SliceTable) -> str:
    if len(table.counted):
        return "the inputs hold device work, steps and waits only"
    return "no slice is left" if len(table.recorded) else "the inputs hold no slices"


class _Launched(NamedTuple):
    """The device work that a group launched: the sum of its durations, its number, and the union, ns.

    `no_operator_ns` is the sum of what no operator is known to have launched, such as that of calls outside of any.
    """

    device_ns: int
    kernels: int
    busy_ns: int
    no_operator_ns: int


_NO_WORK = _Launched(0, 0, 0, 0)
#: The code of work without an operator.
_NO_CODE = -1


def _launched(table: SliceTable, codes: Codes) -> dict[int, _Launched]:
    """Return the device work in the window by the code of the operator that launched it, if that is chosen."""
    found, slices = work(table), table.trace.slices
    rows, operator = found.rows, operators(table)
    some = table.in_window(slices.ts[rows])
    if table.chosen is not None:
        some &= np.append(table.chosen(table), False)[operator]
    rows, operator = rows[some], operator[some]
    if not len(rows):
        return {}
    alone = (operator == NONE) | ((operator == found.launch[some]) & ~declared_operators(table)[operator])
    code = np.where(operator == NONE, _NO_CODE, codes[operator])
    distinct, group = np.unique(code, return_inverse=True)
    group = group.reshape(-1)
    device = np.zeros(len(slices.ts), np.int64)
    for number, each in enumerate(devices(table)):
        device[found.rows[each.work]] = number
    pair, group_of_pair = np.unique(group * (len(devices(table)) + 1) + device[rows], return_inverse=True)
    busy = lengths_in_groups(group_of_pair.reshape(-1), slices.ts[rows], table.ends(rows), len(pair))
    busy = sums_by(pair // (len(devices(table)) + 1), busy, len(distinct))
    sums, outside = (sums_by(group, lengths, len(distinct)) for lengths in (slices.dur[rows], slices.dur[rows] * alone))
    count = np.bincount(group, minlength=len(distinct))
    numbers = zip(sums.tolist(), count.tolist(), busy.tolist(), outside.tolist(), strict=True)
    return {key: _Launched(*of_group) for key, of_group in zip(distinct.tolist(), numbers, strict=True)}


def _in_steps(table: SliceTable, groups: _Groups) -> tuple[list[int], int]:
    """Return how long a thread ran slices of each group itself that lie inside of steps, ns, and the time of steps.

    Both are of each process by itself; the time in which several threads run a group counts once.
    """
    slices, process, rows = table.trace.slices, table.processes, timed_steps(table)
    rows = rows[table.in_window(slices.ts[rows])]
    inside = np.zeros(len(groups.order), bool)
    of_steps = 0
    of_processes = dict(grouped(process[slices.track[groups.order]])) if len(rows) else {}
    for group, members in grouped(process[slices.track[rows]]):
        times = table.busy(rows[members])
        of_steps += times.length
        of_process = of_processes.get(group, members[:0])
        slices_of_process = groups.order[of_process]
        step = np.searchsorted(times.starts, slices.ts[slices_of_process], "right") - 1
        inside[of_process] = (step >= 0) & (table.ends(slices_of_process) <= np.append(times.ends, 0)[step])
    group_of = np.cumsum(np.bincount(groups.first, minlength=len(groups.order))) - 1
    some = inside & (groups.row_self_ns > 0)
    return self_lengths(table, groups.order[some], group_of[some], len(groups.first)).tolist(), of_steps


class _Groups:
    """The counted slices by code, and the measures of each group.

    Attributes:
        order: their rows, sorted by code.
        first: where each group begins.
        row_self_ns: the self time of each, ns; 0 if its duration was not recorded.
        self_ns: that of each group.
        without_duration: the number of slices whose duration was not recorded.
        notes: on slices that stand for several calls.
    """

    def __init__(self, table: SliceTable, codes: Codes, counted: Rows) -> None:
        self._table, self._codes, self._counted = table, codes, counted
        self.order = gathered(counted, stable_order([gathered(codes, counted)], table.trace.forget))
        self.first = np.flatnonzero(np.append(True, ~like_next(self.order, codes))) if len(counted) else counted
        self._counts = np.diff(np.append(self.first, len(self.order)))
        # Few columns are in memory at a time.
        self._known = gathered(table.timed, self.order)
        self._unknown = self._sums(~self._known)
        self.without_duration = int(np.sum(self._unknown))
        self.row_self_ns = np.where(self._known, gathered(table.nesting.self_ns, self.order), 0)
        self.self_ns = self._sums(self.row_self_ns)
        self.notes: list[str] = []

    def _sums(self, values: npt.NDArray[Any]) -> I64:
        if not len(self.first):
            return np.zeros(0, np.int64)
        sums: I64 = np.add.reduceat(values, self.first, dtype=np.int64)
        return sums

    def measures(self) -> Iterator[tuple[Any, ...]]:
        """Yield the code of each group, its cells of `_MEASURES` up to the maximum, and how many have no duration."""
        if not len(self.first):
            return
        durations = np.where(self._known, gathered(self._table.trace.slices.dur, self.order), 0)
        sums = self._sums(durations).tolist()
        calls, timed_calls, is_sum, is_whole = self._calls()
        outermost = _outermost(self._table, self._codes, self._counted[self._table.timed[self._counted]])
        total = self._sums(np.where(gathered(outermost, self.order), durations, 0)).tolist()
        ranked = self._percentiles(durations)
        for number, code in enumerate(self._codes[self.order[self.first]].tolist()):
            times: tuple[Cell, ...] = (None,) * 6
            if timed_calls[number]:
                mean = None if is_whole[number] else rounded(sums[number], timed_calls[number])
                most = (None,) * 3 if is_sum[number] else tuple(column[number] for column in ranked)
                times = total[number], int(self.self_ns[number]), mean, *most
            count = None if is_whole[number] else calls[number]
            yield code, count, *times, int(self._unknown[number])

    def _percentiles(self, durations: I64) -> list[list[int]]:
        """Return p50, p99 and the maximum of each group by the nearest rank, ns; sorts the durations."""
        durations[~self._known] = -1  # the first ones of a group after sorting
        for start, count in zip(self.first.tolist(), self._counts.tolist(), strict=True):
            durations[start : start + count].sort()
        ranked = []
        for percent in (50, 99, 100):
            ranks = np.maximum(-(-(self._counts - self._unknown) * percent // 100), 1)
            at = np.minimum(self.first + self._unknown + ranks, self.first + self._counts) - 1
            ranked.append(durations[at].tolist())
        return ranked

    def _calls(self) -> tuple[list[int], list[int], list[bool], list[bool]]:
        """Return of each group the calls, those with a duration, and whether it holds sums, or sums of unknown calls.

        Notes say how many slices stand for several calls.
        """
        calls, timed_calls = self._counts, self._counts - self._unknown
        is_sum, is_whole = np.zeros((2, len(self.first)), bool)
        if self._table.calls is not None:
            calls_of = gathered(self._table.calls, self.order)
            calls, timed_calls = self._sums(calls_of), self._sums(np.where(self._known, calls_of, 0))
            is_sum = np.maximum.reduceat(calls_of, self.first) > 1
            if np.any(is_sum):
                several = quantity(int(np.count_nonzero(calls_of > 1)), SLICES)
                self.notes.append(
                    f"count is the number of calls; {several} with several calls: "
                    "the percentiles and the maximum of their rows are not known"
                )
        if self._table.several is not None:
            means, wholes = (gathered(mask, self.order) for mask in self._table.several)
            is_whole = np.logical_or.reduceat(wholes, self.first)
            is_sum = is_sum | is_whole | np.logical_or.reduceat(means, self.first)
            for mask, what, unstated in (
                (means, "means", "the percentiles and the maximum"),
                (wholes, "sums", "the count, the mean, the percentiles and the maximum"),
            ):
                if np.any(mask):
                    count = quantity(int(np.count_nonzero(mask)), SLICES)
                    self.notes.append(f"{what} of several calls: {count}; {unstated} of their rows are not known")
        return calls.tolist(), timed_calls.tolist(), is_sum.tolist(), is_whole.tolist()


def without_values(by: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> list[str]:
    """Return a note for each key that no row has a value of; the rows begin with the keys."""
    nothing = [key for at, key in enumerate(by) if rows and not any(row[at] for row in rows)]
    by_default = list(by) == ["name"]
    shown = [f"the arg {key.removeprefix(ARG)}" if key.startswith(ARG) else f"a {key}" for key in nothing]
    return [
        f"{'' if by_default else f'--by {key}: '}no slice here has {value}"
        for key, value in zip(nothing, shown, strict=True)
    ]


def columns_of(by: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of operations that are grouped by some keys; the last one only if a duration is unknown."""
    return (*(Column(key, key, Unit.TEXT) for key in by), *_ON_DEVICE, *_MEASURES, _UNKNOWN)


def in_order(rows: Sequence[tuple[Cell, ...]], at: int, *, stable: bool = False) -> list[tuple[Cell, ...]]:
    """Sort rows by a column, numbers descending and texts ascending, then by the texts of the row.

    If `stable`, rows with equal numbers stay in their order instead.
    """

    def key(row: tuple[Cell, ...]) -> tuple[float, str, list[str]]:
        value, texts = row[at], [cell for cell in row if isinstance(cell, str) and not stable]
        return (0, value, texts) if isinstance(value, str) else (-(value or 0), "", texts)

    return sorted(rows, key=key)


def check_key(key: str) -> None:
    """Raise UsageError if operations cannot be grouped by the key."""
    if key not in KEYS and not (key.startswith(ARG) and key != ARG):
        raise UsageError(f"--by: {key!r} is not a key", hint=f"keys: {', '.join(KEYS)}, arg:KEY")


def _outermost(table: SliceTable, codes: Codes, timed: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the slices that are inside no other one of `timed` of the same group."""
    parent = table.nesting.parent
    counted = np.zeros(len(codes), bool)
    counted[timed] = True
    outermost = np.ones(len(codes), bool)
    for rows in chunks(len(codes)):
        above, inner = parent[rows], np.arange(rows.start, rows.stop)
        while np.any(some := above != NO_PARENT):
            above, inner = above[some], inner[some]
            same = (codes[above] == codes[inner]) & counted[above]
            outermost[inner[same]] = False
            above, inner = parent[above[~same]], inner[~same]
    return outermost


def combined(keys: Sequence[tuple[Codes, Sequence[str]]]) -> tuple[Codes, Callable[[int], tuple[str, ...]]]:
    """Return the number of the combination of keys of each slice, and a function that returns the texts of a number."""
    codes = keys[0][0]
    renumbered: list[I64 | None] = []  # the codes of the keys so far, where they had to be numbered anew
    combinations = len(keys[0][1])
    for numbers, texts in keys[1:]:
        distinct = None
        if combinations * len(texts) >= _MOST_CODES:
            distinct, inverse = np.unique(codes.astype(np.int64), return_inverse=True)
            codes, combinations = inverse.reshape(-1), len(distinct)
        renumbered.append(distinct)
        codes = codes.astype(np.int64) * len(texts) + numbers
        combinations *= len(texts)

    def texts_of(code: int) -> tuple[str, ...]:
        path = []
        for (_, texts), distinct in zip(reversed(keys[1:]), reversed(renumbered), strict=True):
            code, number = divmod(code, len(texts))
            path.append(texts[number])
            code = code if distinct is None else int(distinct[code])
        return (keys[0][1][code], *reversed(path))

    return codes, texts_of


def key_of(table: SliceTable, key: str) -> tuple[Codes, Sequence[str]]:
    """Return the value of a key for each slice as the number of a text, and the texts."""
    return keyed(table, key, table.title)


def keyed(table: SliceTable, key: str, track_text: Callable[[int], str]) -> tuple[Codes, Sequence[str]]:
    """Return what `key_of` returns, with a function that returns the text of a track."""
    check_key(key)
    trace = table.trace
    if key == "name":
        shown = names(table)
        return shown.numbers, shown.texts
    if key == "category":
        return trace.slices.category, trace.strings
    if key.startswith(ARG):
        return _args(table, (key.removeprefix(ARG),))
    if key == "shape":
        return _args(table, tuple(dict.fromkeys(arg for info in trace.sources for arg in info.marks.shapes)))
    if key in AROUND:
        return _around(table, key)
    return key_of_tracks(table, key, track_text, "slices")


def key_of_tracks(
    table: SliceTable, key: str, track_text: Callable[[int], str], events: str
) -> tuple[Codes, Sequence[str]]:
    """Return the value of a key of OF_TRACKS for each row of a table of the trace as the number of a text, and these.

    Args:
        table: the slices.
        key: the key.
        track_text: returns the text of a track.
        events: the name of a table of the trace.
    """
    trace = table.trace
    known: dict[str, int] = {}
    if key == "rank":
        ranks = ("" if source.rank is None else str(source.rank) for source in trace.sources)
        return _numbered(ranks, known)[inputs_of(trace, events)], list(known)
    if key == "input":
        stated = by_stated_inputs(trace)
        return _numbered((source.name for source in stated.sources), known)[inputs_of(stated, events)], list(known)
    tracks = table.row_of_track
    if key == "process":
        tracks = table.processes[tracks]
    return _numbered((track_text(int(track)) for track in tracks), known)[getattr(trace, events).track], list(known)


def is_around(table: SliceTable, key: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that are modules (also for their class), or ranges of the user."""
    accepted = np.zeros(len(table.trace.slices.ts), bool)
    for number, info in enumerate(table.trace.sources):
        rows, marks = table.rows_of(number), info.marks
        if key == "range":
            accepted[rows] = table.of_categories(marks.ranges, rows) & ~runs_nothing(table, rows)
        elif marks.modules:
            accepted[rows] = table.named(marks.modules, rows)
    return accepted


def _crossing_ranges(table: SliceTable) -> I64:
    """Return the range that runs as each slice of its thread begins, if it crosses others, on a lane; else NONE."""
    slices, tracks = table.trace.slices, table.row_of_track
    rows = np.flatnonzero(is_around(table, "range") & is_on_lane(table))
    lines, found = distinct_values(tracks[slices.track[rows]]), np.full(len(slices.ts), NONE, np.int64)
    if not len(lines):
        return found
    line = np.where(np.isin(tracks, lines), np.searchsorted(lines, tracks), NONE)
    ran, of_slice = timelines(slices, rows, line), line[slices.track]
    some = np.flatnonzero(of_slice != NONE)
    found[some] = ran.rows[ran.locate(of_slice[some], slices.ts[some])]
    return found


def _around(table: SliceTable, key: str) -> tuple[Codes, Sequence[str]]:
    """Return the innermost module, its class, or range of the user, around each slice: the number of a text, and these.

    Slices of a backward pass are of the module or range of the operator whose number theirs is. Where a format declares
    innermost slices, all are inside the range that started last before them.
    """
    trace, slices = table.trace, table.trace.slices
    accepted = is_around(table, key)
    known = {"": 0}
    shown = names(table)
    text_of_name = np.zeros(len(shown.texts), np.int32)
    for number, info in enumerate(trace.sources):
        rows, marks = table.rows_of(number), info.marks
        pattern = re.compile(marks.modules if key != "range" and marks.modules else f"(?P<{key}>.*)", re.DOTALL)
        for name in distinct_values(shown.numbers[rows[accepted[rows]]]).tolist():
            found = pattern.fullmatch(shown.texts[name])
            text_of_name[name] = known.setdefault(found[key] if found else shown.texts[name], len(known))
    around = first_above(table, np.arange(len(slices.ts)), accepted)
    if key == "range":
        crossing, ends = table.once(_crossing_ranges), np.append(slices.ts + slices.dur, 0)
        begins = np.append(slices.ts, np.iinfo(np.int64).min)  # NONE is the last one
        is_inside = (crossing != NONE) & (ends[:-1] <= ends[crossing]) & (begins[crossing] > begins[around])
        around = np.where(is_inside, crossing, around)
    forward = first_above(table, np.arange(len(slices.ts)), table.once(forward_operators) != NONE)
    of_backward = np.flatnonzero((forward != NONE) & (around == NONE))
    around[of_backward] = around[table.once(forward_operators)[forward[of_backward]]]
    for number, info in enumerate(trace.sources):
        rows = table.rows_of(number)
        if info.marks.innermost and np.any(accepted[rows]):
            lines = timelines(slices, rows[accepted[rows]], np.zeros(len(trace.tracks), np.int64))
            rows = rows[around[rows] == NONE]
            around[rows] = lines.rows[lines.locate(np.zeros(len(rows), np.int64), slices.ts[rows])]
    return np.where(around == NONE, 0, text_of_name[shown.numbers[around]]).astype(np.int32), list(known)


def _numbered(texts: Iterable[str], known: dict[str, int]) -> I32:
    """Return the numbers of texts; those that are not known get the next one."""
    return np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int32)


def _args(table: SliceTable, keys: Sequence[str]) -> tuple[I32, list[str]]:
    """Return the first arg that each slice has as the number of a text, and the texts; "" for slices without any."""
    slices, known = table.trace.slices, dict[str, int]()
    numbers_of_rows = np.empty(len(slices.ts), np.int32)
    for rows in chunks(len(numbers_of_rows)):  # the values are Python objects
        numbers, values = arg_values(table.trace.args, slices.args_at[rows], slices.args_len[rows], keys)
        texts = (as_text(next((value for value in some if value is not ABSENT), "")) for some in values)
        numbers_of_rows[rows] = _numbered(texts, known)[numbers]
    return numbers_of_rows, list(known)


# -- The section `waits`: how long threads waited ----------------------------------------------------------------------

_WAITS = (
    Column("name", "name", Unit.TEXT),
    Column("thread", "thread", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("self_ns", "self", Unit.NS),
    Column("max_ns", "max", Unit.NS),
    Column("thread_share", "of thread", Unit.SHARE),
)


def waits(table: SliceTable) -> Section:
    """Return a row for each name and thread of the slices in which a thread waits, the largest self time first.

    While several slices of a thread wait, on lanes, the one that began last counts.
    """
    section = Section("waits", _WAITS)
    slices, strings, parent = table.trace.slices, table.trace.strings, table.nesting.parent
    rows = table.counted[(table.is_wait & table.timed)[table.counted]]
    rows = rows[~np.isin(rows, work(table).rows)]
    thread = table.row_of_track[slices.track[rows]]
    timed = table.recorded[(table.timed & table.in_window(slices.ts))[table.recorded]]  # also those not chosen
    timed = timed[np.isin(table.row_of_track[slices.track[timed]], thread)]
    on_thread = table.row_of_track[slices.track[timed]]
    recorded_of = lengths_in_groups(on_thread, slices.ts[timed], table.ends(timed), len(table.row_of_track))
    waiting = np.append(np.isin(np.arange(len(parent)), rows), False)  # NO_PARENT is the last one
    ran = timelines(slices, np.flatnonzero(waiting[:-1] | waiting[parent]), table.row_of_track)
    runs = ran.rows != NONE
    self_of = sums_by(ran.rows[runs], (ran.ends - ran.starts)[runs], len(parent))
    for track, of_thread in grouped(thread):
        title = table.title(track)
        recorded = int(recorded_of[track])
        for name, members in grouped(slices.name[rows[of_thread]].astype(np.int64)):
            some = rows[of_thread[members]]
            self_ns = int(np.sum(self_of[some]))
            length, longest = table.busy(some).length, int(np.max(slices.dur[some]))
            share = self_ns / recorded if recorded else None
            section.rows.append((strings[name], title, len(some), length, self_ns, longest, share))
    section.rows.sort(key=lambda row: (-int(row[section.place("self_ns")] or 0), str(row[0]), str(row[1])))
    if section.rows:
        section.legend.append("of thread: self as a share of the time in which the thread ran anything recorded")
    else:
        section.notes.append("no slice has the name of a wait")
    return section


# -- The section `primitives`: the implementations of library primitives and their speed -----------------------------

_PRIMITIVE_COLUMNS = (
    Column("kind", "kind", Unit.TEXT),
    Column("implementation", "implementation", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("mean_ns", "mean", Unit.NS),
    Column("primitives_share", "of primitives", Unit.SHARE),
    Column("reference", "reference", Unit.TEXT),
    Column("reorder", "reorder", Unit.TEXT),
    Column("gflop_per_s", "GFLOP/s", Unit.RATE),
    Column("gb_per_s", "GB/s", Unit.RATE),
)
#: Duration in ns, operations, and moved bytes; None if not known.
_Call = tuple[int, float | None, float | None]


def primitives(table: SliceTable) -> Section:
    """Return a row for each kind and implementation of the primitives that formats declare, the most time first."""
    section = Section("primitives", _PRIMITIVE_COLUMNS)
    trace = table.trace
    calls: dict[tuple[PrimitiveMarks, str, str | None], list[_Call]] = {}
    without_duration = 0
    for number, source in enumerate(trace.sources):
        if source.marks.primitives is not None:
            _collect(table, number, source.marks.primitives, calls)
            without_duration += _untimed(table, number, source.marks.primitives)
    if without_duration:
        section.notes.append(f"left out: {quantity(without_duration, CALLS)} without a duration in the input")
    if not calls:
        section.notes.append("no primitives found, or the inputs do not name their implementation")
        return section
    whole = sum(dur for works in calls.values() for dur, _, _ in works)
    rows: list[tuple[Cell, ...]] = []
    for (marks, kind, implementation), works in calls.items():
        total = sum(dur for dur, _, _ in works)
        known = implementation is not None
        rows.append(
            (
                kind,
                implementation,
                len(works),
                total,
                rounded(total, len(works)),
                total / whole if whole else None,
                _yes(re.search(marks.reference, implementation or "") is not None) if known else None,
                _yes(re.fullmatch(marks.reorders, kind) is not None),
                _rate([(dur, gflop) for dur, gflop, _ in works], 10**9),
                _rate([(dur, size) for dur, _, size in works], 1),
            )
        )
    section.rows = sorted(rows, key=lambda row: (-int(row[3] or 0), str(row[0]), str(row[1])))
    section.legend.append("of primitives: a share of the sum of all durations; calls of several threads may overlap")
    for formula in dict.fromkeys(marks.formula for marks, _, _ in calls):
        section.notes.append(f"GFLOP/s: {formula}; of calls with known shapes{_left_out(calls.values(), 1)}")
        section.notes.append(
            f"GB/s: source, weights and destination once each; of calls with known sizes{_left_out(calls.values(), 2)}"
        )
    section.notes += table.synthetic_notes(trace.slices.track)
    return section


def _collect(
    table: SliceTable,
    number: int,
    marks: PrimitiveMarks,
    calls: dict[tuple[PrimitiveMarks, str, str | None], list[_Call]],
) -> None:
    """Add the calls of one input to `calls`, by kind and implementation."""
    slices, strings = table.trace.slices, table.trace.strings
    is_call = table.of_source(number) & table.of_categories(marks.calls)
    rows = table.counted[(is_call & table.timed)[table.counted]]
    numbers, values = arg_values(
        table.trace.args, slices.args_at[rows], slices.args_len[rows], [marks.implementation, marks.gflop, marks.size]
    )
    names, durations = slices.name[rows].tolist(), slices.dur[rows].tolist()
    for name, dur, at in zip(names, durations, numbers.tolist(), strict=True):
        implementation, *work = values[at]
        key = marks, strings[name], None if implementation is ABSENT else str(implementation)
        gflop, size = (None if amount is ABSENT else float(amount) for amount in work)
        calls.setdefault(key, []).append((dur, gflop, size))


def _untimed(table: SliceTable, number: int, marks: PrimitiveMarks) -> int:
    """Return the number of calls of an input without a recorded duration: instants, and slices."""
    trace = table.trace
    slices = np.count_nonzero(
        (table.of_source(number) & table.of_categories(marks.calls) & ~table.timed)[table.counted]
    )
    categories = {at for at, text in enumerate(trace.strings) if text in marks.calls}
    of_input = inputs_of(trace, "instants") == number
    return int(
        slices
        + np.count_nonzero(
            of_input & np.isin(trace.instants.category, list(categories)) & table.in_window(trace.instants.ts)
        )
    )


def _rate(works: list[tuple[int, float | None]], scale: int) -> float | None:
    """Return the work of calls per ns, times a scale; calls without known work or a time count in neither."""
    known = [(amount, dur) for dur, amount in works if amount is not None and dur > 0]
    return math.fsum(amount for amount, _ in known) * scale / sum(dur for _, dur in known) if known else None


def _left_out(calls: Iterable[list[_Call]], which: int) -> str:
    """Return how many calls the speed of their row leaves out: the work is number 1 or 2 of a call."""
    known = [[call[which] is not None and call[0] > 0 for call in works] for works in calls]
    count = sum(works.count(False) for works in known if any(works))
    return f"; in rows with a speed, {quantity(count, CALLS)} left out" if count else ""


def _yes(value: bool) -> str:
    return "yes" if value else "no"
