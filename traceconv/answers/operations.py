"""The sections `operations`, `steps` and `primitives`: the time of slices by name, of iterations, of library calls."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.answers.section import Cell, Column, Section, Unit, place_of
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.io.limits import UserPattern, user_pattern
from traceconv.io.shown import quantity
from traceconv.model.args import ABSENT, arg_values, as_text, having_any
from traceconv.model.columns import I32, I64, chunks, gathered, like_next, stable_order
from traceconv.model.diagnostics import CALLS, SLICES
from traceconv.model.marks import PrimitiveMarks
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

# -- The section `operations`: the time of slices by name, or by other keys ------------------------------------------

_MEASURES = (
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("self_ns", "self", Unit.NS),
    Column("mean_ns", "mean", Unit.NS, spare=True),
    Column("p50_ns", "p50", Unit.NS, spare=True),
    Column("p99_ns", "p99", Unit.NS, spare=True),
    Column("max_ns", "max", Unit.NS),
    Column("busy_share", "of busy", Unit.SHARE),
)
#: Only if some slice has no recorded duration.
_UNKNOWN = Column("no_duration", "no duration", Unit.COUNT)
#: A number for each slice.
Codes = I32 | I64
Mask = npt.NDArray[np.bool_]
#: The keys that operations can be grouped by, besides `arg:KEY`.
KEYS = ("name", "category", "track", "thread", "process", "rank", "input", "shape")
_ARG = "arg:"


def operations(table: SliceTable, by: Sequence[str] = ("name",), sort: str = "") -> Section:
    """Return a row for each value of the keys, sorted by a column: numbers descending, texts ascending.

    Slices without a recorded duration are counted in a column of their own; times are of the others, None without any.
    Of slices that sum up several calls, each call counts; percentiles and the maximum are None, since sums do not tell.
    So they are for means, and if the number of calls is not stated, the count and the mean are, too.

    Args:
        table: the slices.
        by: some of KEYS, or `arg:KEY` for the value of an arg.
        sort: the name or the title of a column; without such a column, the largest self time is first.

    Raises:
        UsageError: a key is not known.
    """
    slices = table.trace.slices
    columns = columns_of(by)
    section = Section("operations", columns[:-1])
    at = place_of(sort, columns)
    if at is None:
        at = section.place("self_ns")
    codes, values = combined([key_of(table, key) for key in by])
    if not len(table.counted):
        section.notes.append("no slice is left" if len(table.recorded) else "the inputs hold no slices")
        return section
    groups = _grouped(table, codes)
    calls, notes = _calls(table, groups)
    rows = zip(codes[groups.order[groups.first]].tolist(), _measures(table, codes, groups, calls), strict=True)
    section.rows = in_order([(*values(code), *cells) for code, cells in rows], at)
    section.notes += notes
    if np.all(groups.known):
        section.rows = [row[:-1] for row in section.rows]
    else:
        section.columns = columns
        section.notes += table.untimed_notes(table.counted)
    left_out = len(slices.ts) - len(table.recorded)
    if left_out:
        section.notes.append(f"left out: {quantity(left_out, SLICES)} (copies of others, or about the recording)")
    section.notes += table.synthetic_notes(slices.track)
    section.notes += without_values(by, section.rows)
    section.notes.append(
        "self: duration without the slices directly inside; total: nested slices of one row count once; "
        "of busy: self as a share of the busy time of all tracks and lanes"
    )
    return section


class _Groups(NamedTuple):
    """The counted slices by group: their rows, the place of the first of each group, and whose duration is known."""

    order: Rows
    first: Rows
    known: Mask

    @property
    def sizes(self) -> I64:
        """The number of slices of each group."""
        return np.diff(np.append(self.first, len(self.order)))

    def sums(self, numbers: I64 | Mask) -> I64:
        """Return the sum of each group, of numbers in this order."""
        sums: I64 = np.add.reduceat(numbers, self.first, dtype=np.int64)
        return sums


def _grouped(table: SliceTable, codes: Codes) -> _Groups:
    """Return the counted slices in groups of one code."""
    order = gathered(table.counted, stable_order([gathered(codes, table.counted)], table.trace.forget))
    first = np.flatnonzero(np.append(True, ~like_next(order, codes)))
    return _Groups(order, first, gathered(table.timed, order))


class _Calls(NamedTuple):
    """The calls of each group.

    Attributes:
        number: the number of calls.
        timed: that of calls with a duration.
        is_sum: whether a slice stands for several calls.
        is_whole: whether it does so without stating for how many.
    """

    number: I64
    timed: I64
    is_sum: Mask
    is_whole: Mask


def _calls(table: SliceTable, groups: _Groups) -> tuple[_Calls, list[str]]:
    """Return the calls, and notes on slices of several calls."""
    number, timed, notes = groups.sizes, groups.sums(groups.known), []
    is_sum = is_whole = np.zeros(len(number), bool)
    if table.calls is not None:
        calls = gathered(table.calls, groups.order)
        number, timed = groups.sums(calls), groups.sums(np.where(groups.known, calls, 0))
        is_sum = np.maximum.reduceat(calls, groups.first) > 1
        if several := int(np.count_nonzero(calls > 1)):
            notes.append(
                f"count is the number of calls; {quantity(several, SLICES)} with several calls: "
                "the percentiles and the maximum of their rows are not known"
            )
    if table.several is not None:
        means, wholes = (gathered(mask, groups.order) for mask in table.several)
        is_whole = np.logical_or.reduceat(wholes, groups.first)
        is_sum = is_sum | is_whole | np.logical_or.reduceat(means, groups.first)
        notes += [
            f"{what} of several calls: {quantity(int(np.count_nonzero(mask)), SLICES)}; {unstated} of their rows are "
            "not known"
            for mask, what, unstated in (
                (means, "means", "the percentiles and the maximum"),
                (wholes, "sums", "the count, the mean, the percentiles and the maximum"),
            )
            if np.any(mask)
        ]
    return _Calls(number, timed, is_sum, is_whole), notes


def _measures(table: SliceTable, codes: Codes, groups: _Groups, calls: _Calls) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each group behind those of its keys."""
    timed = table.counted[table.timed[table.counted]]
    busy = table.busy_on_lanes(timed)
    outermost = _outermost(table, codes, timed)
    # Few columns are in memory at a time.
    self_ns = groups.sums(np.where(groups.known, gathered(table.nesting.self_ns, groups.order), 0))
    durations = np.where(groups.known, gathered(table.trace.slices.dur, groups.order), 0)
    whole = groups.sums(durations)
    total = groups.sums(np.where(gathered(outermost, groups.order), durations, 0))
    ranked = _percentiles(groups, durations)
    columns = (*calls, groups.sums(~groups.known), total, self_ns, whole, *ranked)
    for count, with_times, is_sum, is_whole, without, outer, self_time, time, *shown in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        times: tuple[Cell, ...] = (None,) * 7
        if with_times:
            mean = None if is_whole else rounded(time, with_times)
            times = (outer, self_time, mean, *((None,) * 3 if is_sum else shown), self_time / busy if busy else None)
        yield (None if is_whole else count, *times, without)


def _percentiles(groups: _Groups, durations: I64) -> list[I64]:
    """Return the median, the 99th percentile and the maximum of each group (nearest rank), ns; sorts the durations."""
    sizes, unknown = groups.sizes, groups.sums(~groups.known)
    durations[~groups.known] = -1  # the first ones of a group after sorting
    for start, size in zip(groups.first.tolist(), sizes.tolist(), strict=True):
        durations[start : start + size].sort()
    ranks = (np.maximum(-(-(sizes - unknown) * percent // 100), 1) for percent in (50, 99, 100))
    return [durations[groups.first + np.minimum(unknown + rank, sizes) - 1] for rank in ranks]


def without_values(by: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> list[str]:
    """Return a note for each key that no row has a value of; the rows begin with the keys."""
    nothing = [key for at, key in enumerate(by) if rows and not any(row[at] for row in rows)]
    by_default = list(by) == ["name"]
    shown = [f"the arg {key.removeprefix(_ARG)}" if key.startswith(_ARG) else f"a {key}" for key in nothing]
    return [
        f"{'' if by_default else f'--by {key}: '}no slice here has {value}, so the cells are empty"
        for key, value in zip(nothing, shown, strict=True)
    ]


def columns_of(by: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of operations that are grouped by some keys; the last one only if a duration is unknown."""
    return (*(Column(key, key, Unit.TEXT) for key in by), *_MEASURES, _UNKNOWN)


def in_order(rows: Sequence[tuple[Cell, ...]], at: int) -> list[tuple[Cell, ...]]:
    """Sort rows by a column, numbers descending and texts ascending, then by the texts of the row."""

    def key(row: tuple[Cell, ...]) -> tuple[float, str, list[str]]:
        value, texts = row[at], [cell for cell in row if isinstance(cell, str)]
        return (0, value, texts) if isinstance(value, str) else (-(value or 0), "", texts)

    return sorted(rows, key=key)


def check_key(key: str) -> None:
    """Raise UsageError if operations cannot be grouped by the key."""
    if key not in KEYS and not (key.startswith(_ARG) and key != _ARG):
        raise UsageError(f"--by: {key!r} is not a key", hint=f"keys: {', '.join(KEYS)}, arg:KEY")


def rounded(whole: int, count: int) -> int:
    """Return a mean in integer ns, rounded half to even."""
    quotient, rest = divmod(whole, count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2 == 1))


def _outermost(table: SliceTable, codes: Codes, timed: Rows) -> Mask:
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
    for numbers, texts in keys[1:]:
        codes = codes.astype(np.int64) * len(texts) + numbers

    def texts_of(code: int) -> tuple[str, ...]:
        path = []
        for _, texts in reversed(keys):
            code, number = divmod(code, len(texts))
            path.append(texts[number])
        return tuple(reversed(path))

    return codes, texts_of


def key_of(table: SliceTable, key: str) -> tuple[Codes, Sequence[str]]:
    """Return the value of a key for each slice as the number of a text, and the texts."""
    return keyed(table, key, table.title)


def keyed(table: SliceTable, key: str, track_text: Callable[[int], str]) -> tuple[Codes, Sequence[str]]:
    """Return what `key_of` returns, with a function that returns the text of a track."""
    check_key(key)
    trace = table.trace
    if key == "name":
        return trace.slices.name, trace.strings
    if key == "category":
        return trace.slices.category, trace.strings
    if key.startswith(_ARG):
        return _args(table, (key.removeprefix(_ARG),))
    if key == "shape":
        return _args(table, tuple(dict.fromkeys(arg for info in trace.sources for arg in info.marks.shapes)))
    known: dict[str, int] = {}
    if key == "rank":
        ranks = ("" if source.rank is None else str(source.rank) for source in trace.sources)
        return _numbered(ranks, known)[inputs_of(trace, "slices")], list(known)
    if key == "input":
        stated = by_stated_inputs(trace)
        return _numbered((source.name for source in stated.sources), known)[inputs_of(stated, "slices")], list(known)
    tracks = table.row_of_track
    if key == "process":
        tracks = table.processes[tracks]
    return _numbered((track_text(int(track)) for track in tracks), known)[trace.slices.track], list(known)


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


# -- The section `steps`: the duration of each iteration, and the operations that made slow ones slow ----------------

_STEP_COLUMNS = (
    Column("step", "step", Unit.TEXT),
    Column("track", "track", Unit.TEXT),
    Column("start_ns", "start", Unit.NS),
    Column("duration_ns", "duration", Unit.NS),
    Column("interval_ns", "interval", Unit.NS),
    Column("state", "state", Unit.TEXT),
    Column("slower_by_ns", "slower by", Unit.NS),
    Column("slower_operation", "slower operation", Unit.TEXT, below=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
_PERCENTILES = (50, 90, 99)
_OF_ALL = (
    Column("track", "track", Unit.TEXT),
    Column("count", "steps", Unit.COUNT),
    Column("of", "of all", Unit.COUNT),
    *(Column(f"p{percent}_ns", f"p{percent}", Unit.NS) for percent in _PERCENTILES),
    Column("max_ns", "max", Unit.NS),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: A step is an outlier if its distance from the median is this many times the median distance, and at least this share
#: of the median.
_FAR, _AT_LEAST = 5, 0.1
_FEW = 4
#: The most names that a note lists, and how many characters of each.
_MOST_NAMES, _MOST_CHARACTERS = 3, 60
#: A name that ends with a number, in ASCII digits.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
#: The number in place of a name for the self time of a step, since numbered steps have names of their own.
_ITSELF = -1
_NOT_SLOWER = None, ""


def steps(table: SliceTable, pattern: str = "") -> list[Section]:
    """Return a row for each step in order of time, and a row with the percentiles of each track.

    Steps at synthetic positions have no start and no interval.

    Args:
        table: the slices.
        pattern: a pattern of the whole names of steps; "" for the steps that formats declare.

    Raises:
        UsageError: the pattern cannot be read.
    """
    section, times = Section("steps", _STEP_COLUMNS), Section("step_times", _OF_ALL)
    rows = step_rows(table, pattern)
    shown = set(rows[np.isin(rows, table.counted)].tolist())
    if not len(rows):
        section.notes.append(no_steps(table, pattern))
        return [section]
    trace = table.trace
    slices = trace.slices
    names = np.array(slices.name)
    names[rows] = _ITSELF
    timed = table.timed
    by_track: dict[int, list[int]] = {}
    for row in rows[np.lexsort((slices.ts[rows], slices.track[rows]))].tolist():
        by_track.setdefault(int(table.row_of_track[slices.track[row]]), []).append(row)
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")
    file_of = {row: stated.sources[inputs[row]].name for row in rows.tolist()}

    def is_apart(row: int, follows: int) -> bool:
        """Return whether steps between two of them were not recorded."""
        if inputs[row] != inputs[follows]:
            return True
        return not pattern and _leaves_out(*(trace.strings[slices.name[step]] for step in (row, follows)))

    of_steps: list[tuple[int, tuple[Cell, ...]]] = []
    for track, track_rows in by_track.items():
        title = table.title(track)
        durations = {row: int(slices.dur[row]) for row in track_rows if timed[row]}
        middle = _median(durations.values())
        spread = _median(abs(duration - middle) for duration in durations.values())
        limit = max(_FAR * spread, _AT_LEAST * middle) if len(durations) >= _FEW else float("inf")
        far = {row for row, duration in durations.items() if abs(duration - middle) > limit}
        inside = {row: _inside(table, names, row) for row in durations} if far else {}
        usual = _usual(inside.values())
        for number, row in enumerate(track_rows):
            if row not in shown:
                continue
            start, duration = int(slices.ts[row]), durations.get(row)
            follows = track_rows[number + 1] if number + 1 < len(track_rows) else row
            in_time = bool(table.drawn_in_time[slices.track[row]])
            begin = start - table.start if in_time else None
            has_next = in_time and follows != row and not is_apart(row, follows)
            interval = int(slices.ts[follows]) - start if has_next else None
            why = _slower(table, inside[row], usual) if row in far and durations[row] > middle else _NOT_SLOWER
            name = trace.strings[slices.name[row]]
            state = "outlier" if row in far else "first" if number == 0 else ""
            state = state if row in durations else "no duration"
            of_steps.append((start, (name, title, begin, duration, interval, state, *why, file_of[row])))
        counted = [duration for row, duration in durations.items() if row in shown]
        if len(durations) > 1 and counted:
            files = dict.fromkeys(file_of[row] for row in durations if row in shown)
            times.rows.append((title, *_summary(counted, len(durations)), ", ".join(files)))
    section.notes += table.untimed_notes(rows)
    section.notes += table.synthetic_notes(slices.track[rows])
    if not of_steps:
        section.notes.insert(0, "no step is left")
    section.rows = [row for _, row in sorted(of_steps, key=lambda step: step[0])]
    return [section, times] if times.rows else [section]


def step_rows(table: SliceTable, pattern: str = "") -> Rows:
    """Return the rows of the slices that are steps: by the pattern of their names, or as formats declare.

    Raises:
        UsageError: the pattern cannot be read, or takes too long.
    """
    is_step = table.named_as(step_pattern(pattern)) if pattern else marked(table)
    return table.recorded[is_step[table.recorded]]


def no_steps(table: SliceTable, pattern: str = "") -> str:
    """Return a note that there are no steps; of a pattern that matches no whole name, with names that are near."""
    if not pattern:
        return "no input marks steps; if slices of the input are steps, name them: --step-name REGEX"

    names = table.names
    near = [*compress(names, step_pattern(pattern).accepted(names))] or table.near_names(pattern)
    shown = f"; there is {', '.join(name[:_MOST_CHARACTERS] for name in near[:_MOST_NAMES])}" if near else ""
    return f"--step-name {pattern}: no slice has a whole name that matches{shown}"


def step_pattern(pattern: str) -> UserPattern:
    """Return the pattern of the names of steps. Raises UsageError if it is invalid."""
    try:
        return user_pattern("--step-name", pattern)
    except ValueError as error:
        raise UsageError(f"--step-name {pattern!r}: {error}") from None


def marked(table: SliceTable) -> Mask:
    """Return a mask of the slices that the formats declare as steps, by their names or by an arg on a host."""
    trace, slices = table.trace, table.trace.slices
    is_step = np.zeros(len(slices.ts), bool)
    for number, info in enumerate(trace.sources):
        if info.marks.steps or info.marks.step_args:
            rows = table.rows_of(number)
            if info.marks.steps:
                is_step[rows] = table.named(info.marks.steps, rows)
            if info.marks.devices is not None and info.marks.devices.hosts:
                rows = rows[table.on_tracks(info.marks.devices.hosts, rows)]
            is_step[rows] |= having_any(slices.args_at[rows], slices.args_len[rows], trace.args, info.marks.step_args)
    return is_step


def _leaves_out(step: str, follows: str) -> bool:
    """Return whether two steps whose names end with numbers skip one: "ProfilerStep#3", "ProfilerStep#6"."""
    parts = [_NUMBERED.fullmatch(name) for name in (step, follows)]
    if not parts[0] or not parts[1] or parts[0][1] != parts[1][1]:
        return False
    return int(parts[1][2]) > int(parts[0][2]) + 1


def _summary(durations: list[int], measured: int) -> list[int]:
    """Return how many steps of a track are displayed, of how many, and their percentiles (nearest rank), ns."""
    ordered = sorted(durations)
    ranks = (max(-(-len(ordered) * percent // 100), 1) for percent in (*_PERCENTILES, 100))
    return [len(ordered), measured, *(ordered[rank - 1] for rank in ranks)]


def _median(numbers: Iterable[float]) -> float:
    """Return the median, the mean of the two middle ones if their number is even; 0 without any."""
    ordered = sorted(numbers)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2 if ordered else 0


def _usual(inside: Collection[dict[int, int]]) -> dict[int, float]:
    """Return the median over all steps of the self time by name, ns; 0 for a step without the name."""
    times: dict[int, list[int]] = {}
    for step in inside:
        for name, self_ns in step.items():
            times.setdefault(name, []).append(self_ns)
    return {name: _median(known + [0] * (len(inside) - len(known))) for name, known in times.items()}


def _slower(table: SliceTable, step: dict[int, int], usual: dict[int, float]) -> tuple[int | None, str]:
    """Return the largest increase of an operation of a step, or of the step itself, over its usual time; its name."""
    name = max(step, key=lambda number: (step[number] - usual[number], number))
    extra = round(step[name] - usual[name])
    return (extra, "the step itself" if name == _ITSELF else table.trace.strings[name]) if extra > 0 else _NOT_SLOWER


def _inside(table: SliceTable, names: I32, row: int) -> dict[int, int]:
    """Return the recorded self time of a slice and those inside it, ns, by the number of their name in `names`."""
    slices = table.trace.slices
    track = slices.track[row]
    last = row + int(np.searchsorted(slices.track[row:], track, "right"))
    end = slices.ts[row] + slices.dur[row]
    last = row + int(np.searchsorted(slices.ts[row:last], end, "left"))
    time: dict[int, int] = {}
    self_times = np.where(table.timed[row:last], table.nesting.self_ns[row:last], 0).tolist()
    for name, self_ns in zip(names[row:last].tolist(), self_times, strict=True):
        time[name] = time.get(name, 0) + self_ns
    return time


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
    section.notes.append("of primitives: a share of the sum of all durations; calls of several threads may overlap")
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
