"""The section `steps`: which slices are steps, how long they took, and which operations made slow ones slow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import compress

import numpy as np
import numpy.typing as npt

from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.io.limits import UserPattern, user_pattern
from traceconv.model.args import having_any
from traceconv.model.columns import I32, distinct_values
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

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
#: A name that counts steps, with its text and the number; and how often such names must count up by one.
_COUNTED = re.compile(
    r"((?:.*[^a-zA-Z])?(?:step|iter|iteration|batch)[ _#:=-]*)([0-9]{1,18})", re.IGNORECASE | re.DOTALL
)
_LEAST_NUMBERED = 2
#: The number in place of a name for the self time of a step, since numbered steps have names of their own.
_ITSELF = -1
_NOT_SLOWER = None, ""


def steps(table: SliceTable) -> list[Section]:
    """Return a row for each step in order of time, and a row with the percentiles of each track.

    Steps at synthetic positions have no start and no interval.

    Raises:
        UsageError: the pattern of their names takes too long.
    """
    section, times = Section("steps", _STEP_COLUMNS), Section("step_times", _OF_ALL)
    rows = step_rows(table)
    shown = set(rows[np.isin(rows, table.counted)].tolist())
    if not len(rows):
        section.notes.append(no_steps(table))
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
        return not table.step_name and _leaves_out(*(trace.strings[slices.name[step]] for step in (row, follows)))

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


def is_step(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that are steps; it is shared.

    They have the names that the user states, else the marks of their format, else names that only differ in a number,
    which counts them.

    Raises:
        UsageError: the pattern of their names cannot be read, or takes too long.
    """
    mask: npt.NDArray[np.bool_] = table.once(_is_step)
    return mask


def _is_step(table: SliceTable) -> npt.NDArray[np.bool_]:
    if table.step_name:
        return table.named_as(step_pattern(table.step_name))
    marks = _marked(table)
    return marks if np.any(marks) else _numbered(table)


def is_span(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that formats declare as spans of what runs in them; it is shared."""
    mask: npt.NDArray[np.bool_] = table.once(_is_span)
    return mask


def _is_span(table: SliceTable) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(table.trace.slices.ts), bool)
    for number, info in enumerate(table.trace.sources):
        if info.marks.spans:
            rows = table.rows_of(number)
            mask[rows] = table.named(info.marks.spans, rows) | table.categorised(info.marks.spans, rows)
    return mask


def step_rows(table: SliceTable) -> Rows:
    """Return the rows of the slices that are steps."""
    return table.recorded[is_step(table)[table.recorded]]


def no_steps(table: SliceTable) -> str:
    """Return a note that there are no steps; of a pattern that matches no whole name, with names that are near."""
    pattern = table.step_name
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


def _marked(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that the formats declare as steps, by their names or by an arg on a host."""
    trace, slices = table.trace, table.trace.slices
    mask = np.zeros(len(slices.ts), bool)
    for number, info in enumerate(trace.sources):
        if info.marks.steps or info.marks.step_args:
            rows = table.rows_of(number)
            if info.marks.steps:
                mask[rows] = table.named(info.marks.steps, rows)
            if info.marks.devices is not None and info.marks.devices.hosts:
                rows = rows[table.on_tracks(info.marks.devices.hosts, rows)]
            mask[rows] |= having_any(slices.args_at[rows], slices.args_len[rows], trace.args, info.marks.step_args)
    return mask


def _numbered(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices whose names count steps: "step 7", "Iteration_8".

    On a track, the names that differ in their number only must count up by one, at least _LEAST_NUMBERED times, and
    none of these slices lies in another one.
    """
    trace, slices = table.trace, table.trace.slices
    mask = np.zeros(len(slices.ts), bool)
    numbers: dict[int, tuple[str, int]] = {}
    for number in distinct_values(slices.name).tolist():
        found = _COUNTED.fullmatch(trace.strings[number])
        if found:
            numbers[number] = found[1], int(found[2])
    if not numbers:
        return mask
    rows = table.recorded[np.isin(slices.name[table.recorded], list(numbers))]
    series: dict[tuple[int, str], list[int]] = {}
    for row in rows[np.argsort(slices.ts[rows], kind="stable")].tolist():
        track = int(table.row_of_track[slices.track[row]])
        series.setdefault((track, numbers[int(slices.name[row])][0]), []).append(row)
    for members in series.values():
        counts = np.array([numbers[int(slices.name[row])][1] for row in members])
        counting = np.diff(counts) == 1
        apart = table.ends(np.array(members[:-1], np.intp)) <= slices.ts[members[1:]]
        if np.count_nonzero(counting) >= _LEAST_NUMBERED and bool(np.all(apart)):
            mask[members] = True
    return mask


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
