"""The section `steps`: the duration of each iteration, and the operations that made slow ones slow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import compress

import numpy as np
import numpy.typing as npt

from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.tables import Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.io.user_pattern import UserPattern, user_pattern
from traceconv.model.arg_values import having_any
from traceconv.model.inputs_of import inputs_of
from traceconv.model.stated import by_stated_inputs
from traceconv.model.trace import I32

_COLUMNS = (
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
    section, times = Section("steps", _COLUMNS), Section("step_times", _OF_ALL)
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
        return not pattern and _leaves_out(*(trace.strings[slices.name[one]] for one in (row, follows)))

    of_steps: list[tuple[int, tuple[Cell, ...]]] = []
    for track, own in by_track.items():
        title = table.title(track)
        durations = {row: int(slices.dur[row]) for row in own if timed[row]}
        middle = _median(durations.values())
        spread = _median(abs(one - middle) for one in durations.values())
        limit = max(_FAR * spread, _AT_LEAST * middle) if len(durations) >= _FEW else float("inf")
        far = {row for row, duration in durations.items() if abs(duration - middle) > limit}
        inside = {row: _inside(table, names, row) for row in durations} if far else {}
        usual = _usual(inside.values())
        for number, row in enumerate(own):
            if row not in shown:
                continue
            start, duration = int(slices.ts[row]), durations.get(row)
            follows = own[number + 1] if number + 1 < len(own) else row
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
    section.rows = [row for _, row in sorted(of_steps, key=lambda one: one[0])]
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


def marked(table: SliceTable) -> npt.NDArray[np.bool_]:
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


def _summary(durations: list[int], of: int) -> list[int]:
    """Return how many steps of a track are displayed, of how many, and their percentiles (nearest rank), ns."""
    ordered = sorted(durations)
    ranks = (max(-(-len(ordered) * percent // 100), 1) for percent in (*_PERCENTILES, 100))
    return [len(ordered), of, *(ordered[rank - 1] for rank in ranks)]


def _median(numbers: Iterable[float]) -> float:
    """Return the median, the mean of the two middle ones if their number is even; 0 without any."""
    ordered = sorted(numbers)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2 if ordered else 0


def _usual(inside: Collection[dict[int, int]]) -> dict[int, float]:
    """Return the median over all steps of the self time by name, ns; 0 for a step without the name."""
    times: dict[int, list[int]] = {}
    for step in inside:
        for name, own in step.items():
            times.setdefault(name, []).append(own)
    return {name: _median(own + [0] * (len(inside) - len(own))) for name, own in times.items()}


def _slower(table: SliceTable, step: dict[int, int], usual: dict[int, float]) -> tuple[int | None, str]:
    """Return the largest increase of an operation of a step, or of the step itself, over its usual time; its name."""
    name = max(step, key=lambda one: (step[one] - usual[one], one))
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
    own = np.where(table.timed[row:last], table.nesting.self_ns[row:last], 0).tolist()
    for name, self_ns in zip(names[row:last].tolist(), own, strict=True):
        time[name] = time.get(name, 0) + self_ns
    return time
