"""Parse the window of time of tables: `ProfilerStep#3`, `ProfilerStep#2..ProfilerStep#4` or `1.5ms..20ms`.

`docs/answers.md` describes the syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from traceconv.answers.section import Window
from traceconv.answers.tables import Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.io.shown import quantity
from traceconv.model.counted import SLICES
from traceconv.model.numbers import is_digits, whole
from traceconv.model.times import LIMIT_NS, format_option, parse_duration

#: The option that states a window, for messages.
OPTION = "--between"
_HINT = "the name of a slice, or an interval: 'ProfilerStep#2..ProfilerStep#4', '1.5ms..20ms', '1.5ms..'"
_QUOTED = r""""(?:[^"]|"")*"|'(?:[^']|'')*'"""
#: The first end is as short as possible: `a..b..c` is from `a` to `b..c`.
_INTERVAL = re.compile(rf"\s*+(?P<first>{_QUOTED}|(?:.*?\S)??)\s*+\.\.\s*+(?P<last>{_QUOTED}|(?:.*\S)?)\s*+", re.DOTALL)
_NUMBERED = re.compile(r"(?P<name>.*)\[(?P<number>[0-9]{1,18})\]", re.DOTALL)
_BEFORE_NUMBER = re.compile(r"(.*[^0-9])[0-9]+", re.DOTALL)
_CLOCK_TIME = re.compile(r"[+-]?[0-9]{1,19}")
_LIKE_A_TIME = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*([a-zµ]{1,3})?")


@dataclass(frozen=True, slots=True)
class _End:
    """One end of an interval, or the name of a slice that is the window: its text, and its position in `whole`."""

    text: str
    at: int
    whole: str
    option: str

    def fail(self, problem: str, hint: str = _HINT) -> NoReturn:
        """Raise UsageError with the position."""
        raise UsageError(f"{self.option}: {problem}, at character {self.at + 1} of {self.whole!r}", hint=hint)

    def time(self, origin: int) -> int | None:
        """Return the time (ns on the clock of the trace) if the text is a time; None if it is a name.

        Args:
            origin: the zero of times with a unit, ns.
        """
        if not _LIKE_A_TIME.fullmatch(self.text):
            return None
        try:
            time = whole(self.text) if _CLOCK_TIME.fullmatch(self.text) else origin + parse_duration(self.text)
        except ValueError as error:
            self.fail(str(error))
        if abs(time) > LIMIT_NS:
            self.fail(f"time out of range: {self.text!r}")
        return time

    def rows(self, table: SliceTable) -> Rows:
        """Return the rows of the slices with the name; the name may be quoted, and `NAME[2]` is the second one."""
        name = self.text
        if re.fullmatch(_QUOTED, name):
            name = name[1:-1].replace(name[0] * 2, name[0])
        rows = _of_name(table, name)
        if len(rows) or not (match := _NUMBERED.fullmatch(name)):
            return rows
        rows, number = _of_name(table, match["name"]), whole(match["number"])
        if len(rows) and not 1 <= number <= len(rows):
            name, last = match["name"], f"{match['name']}[{len(rows)}]"
            named = f"{name!r} is the name of {quantity(len(rows), SLICES)}"
            self.fail(f"{named}: {f'{name}[1]'!r} is the first, {last!r} the last")
        return rows[number - 1 : number] if len(rows) else rows

    def edge(self, table: SliceTable, side: int) -> int:
        """Return the start (side 0) or the end (side 1) of the only slice with the name, ns."""
        rows = self.rows(table)
        if not len(rows):
            near = table.near_names(self.text)
            hint = f"near it: {', '.join(map(repr, near))}" if near else _HINT
            self.fail(f"no slice is named {self.text!r}", hint)
        if len(rows) > 1:
            first, last = f"{self.text}[1]", f"{self.text}[{len(rows)}]"
            self.fail(
                f"{len(rows)} slices are named {self.text!r}",
                f"{first!r} is the first, {last!r} the last one, '{first}..{last}' from one to the other",
            )
        if side and not table.timed[rows[0]]:
            self.fail(
                f"the duration of {self.text!r} was not recorded", f"'{self.text}..' lasts until the end of the trace"
            )
        return int(table.ends(rows)[0] if side else table.trace.slices.ts[rows[0]])


def check_between(text: str, option: str = OPTION) -> None:
    """Raise UsageError, with the name of the option, if a window has invalid times."""
    for end in _ends(text, option):
        end.time(0)


def window_of(table: SliceTable, text: str, option: str = OPTION) -> Window:
    """Parse a window.

    Args:
        table: the table, whose recorded slices can be named.
        text: the name of a slice, or two ends with `..` between: each a name, a time with a unit from the start of the
            trace, an integer in ns on the clock of the trace, or nothing for the start or the end of the trace. Between
            names, the window goes from the start of the first slice to the end of the last one. The number of the last
            one is enough: `step 2..4`.
        option: the option, for messages.

    Raises:
        UsageError: an end is invalid, only one of two times has a unit, a name has no slice or several, or the window
            is empty.
    """
    whole = _End(text, 0, text, option)
    ends = [whole] if len(_of_name(table, text)) else _ends(text, option)
    if len(ends) == 1:
        start, end = whole.edge(table, 0), whole.edge(table, 1)
    else:
        span = table.trace.span() or (0, 0)
        ends[1] = _numbered(table, *ends)
        _refuse_one_unit(table, ends)
        start, end = (_instant(table, one, side) if one.text else span[side] for side, one in enumerate(ends))
    if end <= start:
        first, last = (format_option(instant - table.start) for instant in (start, end))
        bare = [one.text for one in ends if _CLOCK_TIME.fullmatch(one.text) and not len(one.rows(table))]
        problem = f"nothing lies between {first} and {last} from the start"
        if bare:
            if all(one.text in bare for one in ends):
                problem = f"nothing lies between {ends[0].text} ns and {ends[-1].text} ns"
            whole.fail(problem, f"{bare[-1]} has no unit, so it is ns on the clock of the trace; from the start: 1.5ms")
        whole.fail(problem)
    return Window(text, start, end, table.start)


def _ends(text: str, option: str) -> list[_End]:
    """Return the two ends of an interval; the whole text if it is not an interval."""
    match = None if re.fullmatch(_QUOTED, text) else _INTERVAL.fullmatch(text)
    if match is None:
        return [_End(text, 0, text, option)]
    return [_End(match[name], match.start(name), text, option) for name in ("first", "last")]


def _numbered(table: SliceTable, first: _End, last: _End) -> _End:
    """Return the last end of an interval; of `step 2..4` it is `step 4`, if that is a slice or 4 ns lies before."""
    match = _BEFORE_NUMBER.fullmatch(first.text)
    if match and is_digits(last.text) and len(rows := first.rows(table)) and not len(last.rows(table)):
        named = replace(last, text=match[1] + last.text)
        is_time = _CLOCK_TIME.fullmatch(last.text) and whole(last.text) > table.trace.slices.ts[rows[0]]
        if len(named.rows(table)) or not is_time:
            return named
    return last


def _refuse_one_unit(table: SliceTable, ends: Sequence[_End]) -> None:
    """Raise UsageError if one end is a time with a unit and the other is without: they count from different zeros."""
    times = [one for one in ends if _LIKE_A_TIME.fullmatch(one.text) and not len(one.rows(table))]
    bare = [one for one in times if _CLOCK_TIME.fullmatch(one.text)]
    if len(bare) == 1 and len(times) == 2:
        (other,) = (one for one in times if one is not bare[0])
        unit = other.text.lstrip("+-.0123456789eE").strip()
        bare[0].fail(
            f"{bare[0].text!r} has no unit, but {other.text!r} has one",
            f"times from the start of the trace need a unit: {bare[0].text}{unit}; "
            "without a unit, both are ns on the clock of the trace",
        )


def _instant(table: SliceTable, end: _End, side: int) -> int:
    """Return the time (ns) of an end of an interval; for a slice its start on side 0, its end on side 1."""
    time = None if len(end.rows(table)) else end.time(table.start)
    return end.edge(table, side) if time is None else time


def _of_name(table: SliceTable, name: str) -> Rows:
    """Return the rows of the recorded slices of a name, or of a name in a `.pftrace`, in order of time."""
    rows = table.recorded[table.named(re.escape(name))[table.recorded]]
    if not len(rows):
        names, texts = table.drawn_names
        numbers = [number for number, text in enumerate(texts) if text == name]
        rows = table.recorded[np.isin(names[table.recorded], numbers)]
    return rows[np.argsort(table.trace.slices.ts[rows], kind="stable")]
