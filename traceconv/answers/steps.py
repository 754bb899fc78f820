"""The section `steps`: which slices are steps, how long they took, and what made slow ones slow.

The differences between a step and the median step add up to the difference of their durations, in exact integers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import compress
from shlex import quote
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.attribution import NONE, Timelines, expanded, grouped, run_parts, timelines, work_of
from traceconv.answers.section import Cell, Column, Section, Unit, Unnamed, shown_cell
from traceconv.answers.slice_tables import (
    ALL,
    NOTHING,
    Intervals,
    Rows,
    SliceTable,
    Some,
    gaps,
    intersect,
    sums_by,
    union,
)
from traceconv.errors import UsageError
from traceconv.io.limits import UserPattern, user_pattern
from traceconv.io.shown import Counted, one_line, quantity
from traceconv.model.args import having_any
from traceconv.model.columns import I64, distinct_values
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
STEPS = Counted("step", "steps")
_REPEATS = Counted("slice that repeats a step", "slices that repeat a step")
_PERCENTILES = (50, 90, 99)
_OF_ALL = (
    Column("track", "track", Unit.TEXT),
    Column("count", "steps", Unit.COUNT),
    Column("of", "of all", Unit.COUNT),
    *(Column(f"p{percent}_ns", f"p{percent}", Unit.NS) for percent in _PERCENTILES),
    Column("max_ns", "max", Unit.NS),
    Column("input", "input", Unit.TEXT, detail=True),
)
DIFFERENCES = (
    Column("step", "step", Unit.TEXT),
    Column("start_ns", "start", Unit.NS, detail=True),
    Column("usual_step", "median step", Unit.TEXT),
    Column("name", "name", Unit.TEXT),
    Column("kind", "kind", Unit.TEXT),
    Column("time_ns", "time", Unit.NS),
    Column("usual_ns", "in the median step", Unit.NS),
    Column("difference_ns", "difference", Unit.NS),
    Column("track", "track", Unit.TEXT, detail=True),
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
#: A name that counts steps, with its text, the number, and what is behind; one that counts anything; and how often such
#: names must count up by one.
_COUNTED = re.compile(
    r"((?:.*[^a-zA-Z])?(?:step|iter|iteration|batch)[ _#:=([-]*)([0-9]{1,18})([)\]]?)", re.IGNORECASE | re.DOTALL
)
_COUNTING = re.compile(r"(.*[^0-9])([0-9]{1,18})([)\]]?)", re.DOTALL)
#: A name that may be that of a step, and what patterns of names are made of.
_STEP_NAME = re.compile(
    r"(?:.*[^a-zA-Z])?(?:step|iter|iteration|batch)(?:[^a-zA-Z]*[0-9].*)?", re.IGNORECASE | re.DOTALL
)
_DIGITS, _SYNTAX = re.compile("[0-9]+"), re.compile(r"[.^$*+?{}\[\]\\|()]")
_LEAST_NUMBERED = 2
#: What takes less of the time from its first to its last is no candidate for steps.
_LEAST_OF_STEPS = 0.1
#: A step is slow if it takes this many times the median of its track, and the track has this many steps.
SLOW, LEAST_STEPS = 1.25, 3
#: The names of a slow step that have rows of their own; a step of a model has hundreds.
MOST_DIFFERENCES = 10
#: The names of the time in which a step runs nothing that was recorded, and of all other names.
NOT_RECORDED, OTHERS = Unnamed.NOT_RECORDED, Unnamed.OTHERS
#: The name of the time in which several threads of a process ran at once, which counts against them.
IN_PARALLEL = Unnamed.IN_PARALLEL
#: The codes of names that are none of slices.
_NOTHING, _PARALLEL = 0, -1
_SPECIAL = {_NOTHING: NOT_RECORDED, _PARALLEL: IN_PARALLEL}
_KINDS = ("", "wait", "call of the device", "operation", "communication")


def steps(table: SliceTable) -> list[Section]:
    """Return a row for each step in order of time, and a row with the percentiles of each track.

    Steps at synthetic positions have no start and no interval.

    Raises:
        UsageError: the pattern of their names takes too long.
    """
    section, times = Section("steps", _STEP_COLUMNS), Section("step_times", _OF_ALL)
    rows = step_rows(table)
    shown = set(rows[table.is_counted[rows]].tolist())
    if not len(rows):
        section.notes.append(no_steps(table))
        return [section]
    trace = table.trace
    slices = trace.slices
    timed = table.timed
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")
    file_of = {row: stated.sources[inputs[row]].name for row in rows.tolist()}

    def is_apart(row: int, follows: int) -> bool:
        """Return whether steps between two of them were not recorded."""
        if inputs[row] != inputs[follows]:
            return True
        return not table.step_name and _leaves_out(*(trace.strings[slices.name[step]] for step in (row, follows)))

    of_steps: list[tuple[int, tuple[Cell, ...]]] = []
    for track, track_rows in _by_track(table, rows[np.argsort(slices.ts[rows], kind="stable")]).items():
        title = table.title(track)
        durations = {row: int(slices.dur[row]) for row in track_rows if timed[row]}
        middle = median(durations.values() or (0,))
        spread = median([abs(duration - middle) for duration in durations.values()] or (0,))
        limit = max(_FAR * spread, _AT_LEAST * middle) if len(durations) >= _FEW else float("inf")
        far = {row for row, duration in durations.items() if abs(duration - middle) > limit}
        usual = _usual_step(table, [*durations]) if far else 0
        for number, row in enumerate(track_rows):
            if row not in shown:
                continue
            start, duration = int(slices.ts[row]), durations.get(row)
            follows = track_rows[number + 1] if number + 1 < len(track_rows) else row
            in_time = bool(table.drawn_in_time[slices.track[row]])
            begin = start - table.start if in_time else None
            has_next = in_time and follows != row and not is_apart(row, follows)
            interval = int(slices.ts[follows]) - start if has_next else None
            longest = table.once(differences, row, usual)[0] if row in far and durations[row] > middle else None
            why = (None, "") if longest is None else (longest.time - longest.usual, longest.name)
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
    if repeated := int(np.count_nonzero(is_step(table)[table.recorded])) - len(rows):
        section.notes.append(f"left out: {quantity(repeated, _REPEATS)}")
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
    marks: npt.NDArray[np.bool_] = table.once(_marked)
    return marks if np.any(marks) else _numbered(table)


def step_rows(table: SliceTable) -> Rows:
    """Return the rows of the slices that are steps, once each; shared.

    Slices of equal name, thread and times are one step, such as the range and the operator of `ProfilerStep#N`.
    """
    rows: Rows = table.once(_step_rows)
    return rows


def _step_rows(table: SliceTable) -> Rows:
    slices, rows = table.trace.slices, table.recorded[is_step(table)[table.recorded]]
    track = table.row_of_track[slices.track[rows]]
    key = np.stack([track, slices.ts[rows], slices.dur[rows], slices.name[rows]])
    return rows[np.sort(np.unique(key, axis=1, return_index=True)[1])]


def no_steps(table: SliceTable) -> str:
    """Return a note that there are no steps; of a pattern that matches no whole name, with names that are near."""
    pattern = table.step_name
    if not pattern:
        parts, named = _parts_of_steps(table)
        return (
            f"no input marks steps{parts}; if slices of the input are steps, name them: --step-name {named or 'REGEX'}"
        )

    known = table.names
    near = [*compress(known, step_pattern(pattern).accepted(known))] or table.near_names(pattern)
    shown = f"; there is {', '.join(name[:_MOST_CHARACTERS] for name in near[:_MOST_NAMES])}" if near else ""
    return f"--step-name {pattern}: no slice has a whole name that matches{shown}"


def _parts_of_steps(table: SliceTable) -> tuple[str, str]:
    """Return for a note which range repeats, and how much of the time it takes, and a pattern that names it.

    They are the user's, or have the name of a step; of those that repeat without overlap, on a thread, under one name
    or names that differ in numbers only, the longest counts. Both texts are "" if none does, the pattern also if it
    would name others on the thread.
    """
    trace, slices = table.trace, table.trace.slices
    is_range = np.zeros(len(slices.ts), bool)
    for number, info in enumerate(trace.sources):
        rows = table.rows_of(number)
        is_range[rows] = table.of_categories(info.marks.ranges, rows)
    distinct = distinct_values(slices.name[table.recorded]).tolist()
    is_range |= np.isin(slices.name, [name for name in distinct if _STEP_NAME.fullmatch(trace.strings[name])])
    rows = table.recorded[(is_range & table.timed & ~table.is_exchange & (slices.dur > 0))[table.recorded]]
    known: dict[str, int] = {}
    codes = np.zeros(len(trace.strings), np.int64)
    for name in distinct_values(slices.name[rows]).tolist():
        codes[name] = known.setdefault(_DIGITS.sub("N", trace.strings[name]), len(known))
    found: list[tuple[int, int, list[int]]] = []
    for _, same in grouped(table.row_of_track[slices.track[rows]] * max(len(known), 1) + codes[slices.name[rows]]):
        names_of = slices.name[rows[same]].astype(np.int64)
        is_series = len(distinct_values(names_of)) == len(same)
        for members in [rows[same]] if is_series else [rows[same][each] for _, each in grouped(names_of)]:
            busy = table.busy(members)
            between = int(busy.ends[-1] - busy.starts[0]) if len(members) > _LEAST_NUMBERED else 0
            is_apart = busy.length == int(np.sum(slices.dur[members]))
            if is_apart and between and busy.length >= _LEAST_OF_STEPS * between:
                found.append((busy.length, between, members.tolist()))
    if not found:
        return "", ""
    length, between, longest = max(found)
    names_of = slices.name[longest].astype(np.int64)
    text, is_series = trace.strings[names_of[0]], len(distinct_values(names_of)) > 1
    said = one_line((_DIGITS.sub("N", text) if is_series else text)[:_MOST_CHARACTERS])
    pattern = _SYNTAX.sub(r"\\\g<0>", text)
    pattern = _DIGITS.sub(r"\\d+", pattern) if is_series else pattern
    track = table.row_of_track[slices.track[longest[0]]]
    on_track = table.recorded[table.row_of_track[slices.track[table.recorded]] == track]
    accepts = re.compile(pattern).fullmatch
    accepted = [name for name in distinct_values(slices.name[on_track]).tolist() if accepts(trace.strings[name])]
    names_it = len(text) <= _MOST_CHARACTERS and one_line(text) == text
    names_it &= sorted(longest) == sorted(on_track[np.isin(slices.name[on_track], accepted)].tolist())
    is_elsewhere = int(np.count_nonzero(np.isin(slices.name[table.recorded], names_of))) > len(longest)
    times = f"{len(longest)} times{' on one thread' if is_elsewhere else ''}"
    repeats = f"; {said} repeats {times}, in {shown_cell(length / between, Unit.SHARE)} of the time"
    return f"{repeats} from its first to its last", quote(pattern) if names_it else ""


def step_pattern(pattern: str) -> UserPattern:
    """Return the pattern of the names of steps. Raises UsageError if it is invalid."""
    try:
        return user_pattern("--step-name", pattern)
    except ValueError as error:
        raise UsageError(f"--step-name {pattern!r}: {error}") from None


def _marked(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that the formats declare as steps, by name, arg on a host, or line of a device."""
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
        if info.marks.devices is not None and info.marks.devices.steps and not np.any(mask[table.rows_of(number)]):
            mask[table.rows_of(number)] = table.on_tracks(info.marks.devices.steps, table.rows_of(number))
    return mask


def device_of_step(table: SliceTable, step: int) -> str:
    """Return the path of the device that a step is about, "" for all devices of its input."""
    track = int(table.row_of_track[table.trace.slices.track[step]])
    marks = table.trace.sources[table.trace.tracks[track].source].marks.devices
    is_of_device = marks is not None and marks.steps and table.on_tracks(marks.steps, np.array([step]))[0]
    return table.device_path(table.trace.tracks[track].parent) if is_of_device else ""


def _numbered(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices whose names count steps: "step 7", "Iteration_8".

    They must count up by one, at least _LEAST_NUMBERED times. Of series inside of one another, the outermost one has
    the steps.
    """
    slices = table.trace.slices
    mask = np.zeros(len(slices.ts), bool)
    steps_of: defaultdict[int, Intervals] = defaultdict(lambda: NOTHING)
    counting = [
        each
        for each in _series(table, _COUNTED.fullmatch, table.recorded)
        if np.count_nonzero(np.diff(each.counts) == 1) >= _LEAST_NUMBERED
    ]
    for each in sorted(counting, key=lambda each: -float(np.mean(slices.dur[each.rows]))):
        steps, starts, ends = steps_of[each.track], slices.ts[each.rows], table.ends(each.rows)
        if intersect(steps, union(starts, ends)).length == 0:
            mask[each.rows] = True
            steps_of[each.track] = union(np.append(steps.starts, starts), np.append(steps.ends, ends))
    return mask


class _Series(Struct, frozen=True):
    """Slices of a track, one after the other, whose names differ in a number only.

    Attributes:
        track: the main track.
        text: the name, with N for the number.
        rows: the slices by time.
        counts: their numbers.
    """

    track: int
    text: str
    rows: Rows
    counts: I64


def _series(table: SliceTable, match: Callable[[str], re.Match[str] | None], rows: Rows) -> list[_Series]:
    """Return the series among some slices, of names with a text, a number and what is behind it."""
    trace, slices = table.trace, table.trace.slices
    numbers: dict[int, tuple[str, int]] = {}
    for number in distinct_values(slices.name[rows]).tolist():
        if found := match(trace.strings[number]):
            numbers[number] = f"{found[1]}N{found[3]}", int(found[2])
    rows = rows[np.isin(slices.name[rows], list(numbers))]
    members: dict[tuple[int, str], list[int]] = {}
    for row in rows[np.argsort(slices.ts[rows], kind="stable")].tolist():
        track = int(table.row_of_track[slices.track[row]])
        members.setdefault((track, numbers[int(slices.name[row])][0]), []).append(row)
    found_series = []
    for (track, text), of_text in members.items():
        some = np.array(of_text, np.intp)
        counts = np.array([numbers[name][1] for name in slices.name[some].tolist()], np.int64)
        if bool(np.all(table.ends(some[:-1]) <= slices.ts[some[1:]])):
            found_series.append(_Series(track, text, some, counts))
    return found_series


class Names(Struct, frozen=True):
    """The names of slices in tables: the number of that of each slice, and the names."""

    numbers: npt.NDArray[Any]
    texts: Sequence[str]


def names(table: SliceTable) -> Names:
    """Return the names of slices in tables; shared.

    Ranges of the user that follow one another on a thread and whose names count up ("round 3", "round 4") have one
    name, unless they are steps; so do names that count steps, such as those inside of others.
    """
    found: Names = table.once(_names)
    return found


def _names(table: SliceTable) -> Names:
    trace, slices = table.trace, table.trace.slices
    of_ranges = np.zeros(len(slices.ts), bool)
    for number, info in enumerate(trace.sources):
        rows = table.rows_of(number)
        of_ranges[rows] = table.of_categories(info.marks.ranges, rows)
    others = table.recorded[~runs_nothing(table, table.recorded)]
    series = _series(table, _COUNTING.fullmatch, others[of_ranges[others]]) + _series(table, _COUNTED.fullmatch, others)
    series = [each for each in series if len(each.rows) > _LEAST_NUMBERED and bool(np.all(np.diff(each.counts) > 0))]
    if not series:
        return Names(slices.name, trace.strings)
    numbers, known = slices.name.astype(np.int64), dict[str, int]()
    for each in series:
        numbers[each.rows] = len(trace.strings) + known.setdefault(each.text, len(known))
    return Names(numbers, [*trace.strings, *known])


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


# -- The table `step_differences`: what slow steps ran longer, or shorter, than the median step ----------------------


class Difference(Struct, frozen=True):
    """The self time of a name in a step and in the median step of its track, ns."""

    name: str
    kind: str
    time: int
    usual: int


def step_differences(table: SliceTable) -> Section:
    """Return what the slow steps of each track ran longer or shorter than its median step.

    Slow are those that take SLOW times the median or longer; the median step is one that occurred. The
    MOST_DIFFERENCES names that differ most have a row each, the others one together. The differences of a step add up
    to that of the durations.
    """
    section = Section("step_differences", telling_apart(table, DIFFERENCES))
    for slow in slow_steps(table):
        section.rows += slow.cells(largest(table.once(differences, slow.row, slow.usual)))
    if section.rows:
        section.legend.append(
            f"steps of {SLOW:g} times the median or more, beside the step of median duration; "
            "the differences of a step add up to that of the durations"
        )
    return section


class SlowStep(Struct, frozen=True):
    """A slow step and the median step of its track: their rows, and the cells that rows about it begin and end with."""

    row: int
    usual: int
    begin: tuple[Cell, ...]
    end: tuple[Cell, ...]

    def cells(self, parts: Sequence[Difference], *more: Cell) -> list[tuple[Cell, ...]]:
        """Return a row of a table for each difference; `more` is before the name."""
        return [
            (*self.begin, *more, part.name, part.kind, part.time, part.usual, part.time - part.usual, *self.end)
            for part in parts
        ]


def slow_steps(table: SliceTable) -> list[SlowStep]:
    """Return the steps of SLOW times the median of their track or more, the most beyond it first."""
    trace, slices = table.trace, table.trace.slices
    slow: list[tuple[int, int, int]] = []
    for rows in _by_track(table, timed_steps(table)).values():
        if len(rows) >= LEAST_STEPS:
            usual = _usual_step(table, rows)
            took = int(slices.dur[usual])
            longer = [(took - int(slices.dur[row]), row, usual) for row in rows if int(slices.dur[row]) >= SLOW * took]
            slow += [step for step in longer if step[1] != usual]
    if not slow:
        return []
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")
    found = []
    for _, row, usual in sorted((step for step in slow if table.is_counted[step[1]]), key=lambda step: step[0]):
        step, usual_step = (trace.strings[slices.name[at]] for at in (row, usual))
        track, source = table.title(int(table.row_of_track[slices.track[row]])), stated.sources[inputs[row]].name
        found.append(SlowStep(row, usual, (step, int(slices.ts[row]) - table.start, usual_step), (track, source)))
    return found


def telling_apart(table: SliceTable, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of a table about steps; people see tracks if there are several, and starts if names repeat."""
    steps = timed_steps(table)
    names = len(distinct_values(table.trace.slices.name[steps]))
    hidden = {"track": len(_by_track(table, steps)) < 2, "start_ns": names == len(steps)}
    return tuple(replace(column, detail=hidden.get(column.name, column.detail)) for column in columns)


def timed_steps(table: SliceTable) -> Rows:
    """Return the steps with a duration by time, also those that the window or a condition of the table leave out."""
    slices = table.trace.slices
    rows = step_rows(table)
    rows = rows[table.timed[rows] & table.drawn_in_time[slices.track[rows]]]
    ordered: Rows = rows[np.lexsort((slices.track[rows], slices.ts[rows]))]
    return ordered


def _by_track(table: SliceTable, rows: Rows) -> dict[int, list[int]]:
    """Return slices by their main track, in the order that they have."""
    of_track: defaultdict[int, list[int]] = defaultdict(list)
    for row, track in zip(rows.tolist(), table.row_of_track[table.trace.slices.track[rows]].tolist(), strict=True):
        of_track[track].append(row)
    return of_track


def _usual_step(table: SliceTable, steps: list[int]) -> int:
    """Return the step of median duration, the shorter one of the two in the middle if their number is even."""
    return sorted(steps, key=lambda row: int(table.trace.slices.dur[row]))[(len(steps) - 1) // 2]


def largest(found: list[Difference], kind: str = "") -> list[Difference]:
    """Return the largest differences, in the order that they have, and the sum of the others; one other as it is.

    Args:
        found: the differences.
        kind: that of the others.
    """
    most = MOST_DIFFERENCES if len(found) > MOST_DIFFERENCES + 1 else len(found)
    by_size = sorted(range(len(found)), key=lambda at: -abs(found[at].time - found[at].usual))
    rest = [found[at] for at in by_size[most:]]
    others = Difference(OTHERS, kind, sum(part.time for part in rest), sum(part.usual for part in rest))
    return [found[at] for at in sorted(by_size[:most])] + ([others] if rest else [])


def differences(table: SliceTable, step: int, usual: int) -> list[Difference]:
    """Return the self times of each name in a step and in the median step, the largest increase first."""
    usual_times = table.once(_self_times, usual)  # which all slow steps of a track have in common
    return differences_of(names(table).texts, _self_times(table, step), usual_times, _KINDS, _SPECIAL)


def differences_of(
    strings: Sequence[str],
    step: tuple[I64, I64],
    usual: tuple[I64, I64],
    kinds: Sequence[str],
    special: dict[int, Unnamed],
) -> list[Difference]:
    """Return the times of each name in a step and in the median step, the largest increase first.

    Args:
        strings: the names.
        step, usual: numbers of names and kinds in each of them, and their times, ns.
        kinds: the kinds; a number is that of the name times their count, and the number of the kind.
        special: the names of other numbers, all of the first kind.
    """
    code, at = np.unique(np.append(step[0], usual[0]), return_inverse=True)
    places = np.split(at.reshape(-1), [len(step[0])])
    of_steps = [sums_by(place, ns, len(code)).tolist() for place, (_, ns) in zip(places, (step, usual), strict=True)]
    found = [
        Difference(special[number], kinds[0], *pair)
        if number in special
        else Difference(strings[number // len(kinds)], kinds[number % len(kinds)], *pair)
        for number, *pair in zip(code.tolist(), *of_steps, strict=True)
        if any(pair)
    ]
    return sorted(found, key=lambda part: (part.usual - part.time, part.name, part.kind))


def _self_times(table: SliceTable, step: int) -> tuple[I64, I64]:
    """Return the codes of names and kinds in a step, 0 for nothing recorded, and self times of each, ns.

    They are those of the thread of the step, and, while it runs nothing, of the communication of other threads of its
    process. If nothing lies inside any step of it, they are those of all threads of its process: IN_PARALLEL is then
    what they ran at the same time, or behind the step. The self times add up to the duration of the step: those of
    slices without a recorded duration count as nothing.
    """
    slices = table.trace.slices
    start, duration = int(slices.ts[step]), int(slices.dur[step])
    if int(table.row_of_track[slices.track[step]]) in table.once(holding_tracks):
        _, rows, starts, ends = ran_in(table, np.array([step]))
        runs = table.timed[rows] & ~runs_nothing(table, rows)
        idle = gaps(union(starts[runs], ends[runs]), start, start + duration)
        other, ns = _exchanged(table, int(table.processes[slices.track[step]]), idle)
        self_ns = np.append((ends - starts)[runs], ns)
        codes = np.append(_codes(table, rows[runs]), _codes(table, other))
        return np.append(codes, _NOTHING), np.append(self_ns, duration - int(np.sum(self_ns)))
    ran, busy = table.once(_ran_by_process).get(
        int(table.processes[slices.track[step]]), (np.empty(0, np.intp), NOTHING)
    )
    first, last = np.searchsorted(slices.ts[ran], (start, start + duration))
    rows = ran[first:last]
    self_ns = table.nesting.self_ns[rows]
    nothing = gaps(busy, start, start + duration).length
    rest = nothing, duration - nothing - int(np.sum(self_ns))
    return np.append(_codes(table, rows), (_NOTHING, _PARALLEL)), np.append(self_ns, rest)


def _codes(table: SliceTable, rows: Rows) -> I64:
    """Return the number of the name and kind of each slice."""
    codes: I64 = table.once(_all_codes)[rows]
    return codes


def _all_codes(table: SliceTable) -> I64:
    marks = [info.marks.launches for info in table.trace.sources if info.marks.launches is not None]
    calls = {category for of_format in marks for category in of_format.calls}
    others = np.where(table.of_categories(calls), 2, np.where(table.is_exchange, 4, 3))
    codes: I64 = names(table).numbers * np.int64(len(_KINDS)) + np.where(table.is_wait, 1, others)
    return codes


def exchanges(table: SliceTable) -> Rows:
    """Return the slices in which threads communicate for some time; shared."""
    rows: Rows = table.once(_exchanges)
    return rows


def _exchanges(table: SliceTable) -> Rows:
    mask = table.is_exchange & table.timed & (table.trace.slices.dur > 0)
    for number in range(len(table.trace.sources)):
        mask[work_of(table, number)] = False
    return table.recorded[mask[table.recorded]]


def _exchanged(table: SliceTable, process: int, times: Intervals) -> tuple[Rows, I64]:
    """Return the slices in which threads of a process communicate at some times, and how long each does then, ns.

    Of several that do at once, the one that started last counts.
    """
    line, ran = table.once(_exchange_lines)
    lines = np.full(len(times.starts), line[process])
    _, row, length = run_parts(ran, lines, *times)
    some = row != NONE
    return row[some], length[some]


def _exchange_lines(table: SliceTable) -> tuple[I64, Timelines]:
    """Return the number of the timeline of each process, NONE without one, and in which slice each communicates."""
    rows, track = exchanges(table), table.trace.slices.track
    present = np.unique(table.processes[track[rows]])
    line = np.full(len(table.trace.tracks), NONE, np.int64)
    line[present] = np.arange(len(present))
    return line, timelines(table.trace.slices, rows, line[table.processes])


def holding_tracks(table: SliceTable) -> set[int]:
    """Return the main tracks on which some step has slices inside that run something."""
    steps = timed_steps(table)
    rows, first, last = inside(table, steps)
    running = np.append(0, np.cumsum(~runs_nothing(table, rows)))
    return set(table.row_of_track[table.trace.slices.track[steps[running[last] > running[first]]]].tolist())


def _ran_by_process(table: SliceTable) -> dict[int, tuple[Rows, Intervals]]:
    """Return for each process the slices of its threads that run or wait, by time, and when there are some."""
    slices = table.trace.slices
    mask = table.timed & ~runs_nothing(table)
    for number in range(len(table.trace.sources)):
        mask[work_of(table, number)] = False
    rows = table.recorded[mask[table.recorded]]
    rows = rows[np.argsort(slices.ts[rows], kind="stable")]
    process = table.processes[slices.track[rows]]
    return {number: (rows[members], table.busy(rows[members])) for number, members in grouped(process)}


class _Threads(Struct, frozen=True):
    """The slices of the threads that have steps, each thread with its lanes together.

    Attributes:
        rows: the slices by thread and start, those around others first, steps around what is as long.
        place: where each slice of the trace is in `rows`, NONE if it is not.
        thread: the main track of each of `rows`.
        line: the timeline of each main track, NONE without one.
        ran: which slice ran innermost, on any lane.
    """

    rows: Rows
    place: I64
    thread: I64
    line: I64
    ran: Timelines


def _threads(table: SliceTable) -> _Threads:
    slices = table.trace.slices
    thread = table.row_of_track[slices.track[table.recorded]]
    some = np.isin(thread, table.row_of_track[slices.track[step_rows(table)]])
    rows = table.recorded[some]
    rows = rows[np.lexsort((~is_step(table)[rows], -slices.dur[rows], slices.ts[rows], slices.track[rows]))]
    thread = table.row_of_track[slices.track[rows]]
    order = np.lexsort((-slices.dur[rows], slices.ts[rows], thread))
    place = np.full(len(slices.ts), NONE, np.int64)
    place[rows[order]] = np.arange(len(rows))
    line = np.full(len(table.row_of_track), NONE, np.int64)
    present = np.unique(thread[slices.dur[rows] > 0])
    line[present] = np.arange(len(present))
    ran = timelines(slices, rows, line[table.row_of_track], ~runs_nothing(table))
    return _Threads(rows[order], place, thread[order], line, ran)


def inside(table: SliceTable, steps: Rows) -> tuple[Rows, I64, I64]:
    """Return slices, and where among them those are that begin in each step on its thread: from the first, to the last.

    Slices around a step are not in it.
    """
    found, slices = table.once(_threads), table.trace.slices
    first = found.place[steps] + 1
    last = first.copy()
    starts, thread = slices.ts[found.rows], found.thread[first - 1]
    for each, members in grouped(thread):
        low, high = np.searchsorted(found.thread, (each, each + 1))
        last[members] = low + np.searchsorted(starts[low:high], table.ends(steps[members]))
    return found.rows, first, np.maximum(first, last)


def ran_in(table: SliceTable, steps: Rows) -> tuple[Rows, Rows, I64, I64]:
    """Return what the threads of steps ran in them: the number of the step, the slice, and from when to when.

    It is the innermost slice on any lane; the step itself where none runs that began in it.
    """
    found, slices = table.once(_threads), table.trace.slices
    some = np.flatnonzero(slices.dur[steps] > 0)
    starts, ends = slices.ts[steps], table.ends(steps)
    line = found.line[table.row_of_track[slices.track[steps[some]]]]
    low, high = (found.ran.locate(line, edges[some]) for edges in (starts, ends - 1))
    which, segment = expanded(low, high + 1)
    step, row = some[which], found.ran.rows[segment]
    is_inside = (row != NONE) & (found.place[row] > found.place[steps[step]])
    begin, end = np.maximum(found.ran.starts[segment], starts[step]), np.minimum(found.ran.ends[segment], ends[step])
    return step, np.where(is_inside, row, steps[step]), begin, end


def runs_nothing(table: SliceTable, rows: Some = ALL) -> npt.NDArray[np.bool_]:
    """Return which slices run nothing on the host: steps, their marks, spans of what is inside, undivided ones."""
    nothing: npt.NDArray[np.bool_] = table.once(_runs_nothing)[rows]
    return nothing


def _runs_nothing(table: SliceTable) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = is_step(table) | table.once(_marked)
    for number, info in enumerate(table.trace.sources):
        rows = table.rows_of(number)
        if info.marks.spans:
            mask[rows] |= table.named(info.marks.spans, rows) | table.categorised(info.marks.spans, rows)
        if info.marks.launches is not None:
            launches = info.marks.launches
            pauses = table.of_categories(launches.work, rows) & table.named(launches.pauses, rows)
            mask[rows] |= table.of_categories(launches.undivided, rows) | pauses
    return mask
