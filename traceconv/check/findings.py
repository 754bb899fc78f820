"""What a check finds: its report, events whose time was never set, and rows that are kept until the last event."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np

from traceconv.io.shown import Counted
from traceconv.model.columns import I64
from traceconv.model.diagnostics import KEPT_PLACES, Code, Diagnostics, Severity, register
from traceconv.model.drawable import FAR_NS, AtZero, BulkOfTimes, UnsureSlices

Format = Literal["chrome-json", "pftrace"]


def refusal(name: str, help: str) -> Code:
    """Declare a finding with which viewers refuse a file, or count an error. Raises ValueError if the name is taken."""
    return register(Code(name, Severity.ERROR, help))


def data_loss(name: str, help: str) -> Code:
    """Declare a finding with which a viewer shows less than the file holds, as `refusal`."""
    return register(Code(name, Severity.DATA_LOSS, help))


def notice(name: str, help: str) -> Code:
    """Declare a finding with which viewers show all, as `refusal`."""
    return register(Code(name, Severity.NOTICE, help))


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem in a file.

    Attributes:
        code: the declared name, such as "check-json.overlap".
        severity: the severity; from DATA_LOSS on, a viewer shows less than the file holds.
        message: the meaning of the code.
        at: the first few places, such as "event 12: 'a' ends as 'b'; event 40: ...".
        count: the number of occurrences.
    """

    code: str
    severity: Severity
    message: str
    at: str
    count: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    Attributes:
        format: the format of the file.
        problems: one entry per kind of problem, the worst first.
        counts: the number of "events", "slices", "tracks", ... in the file.
        is_trace: whether viewers read it as a trace, even one without events.
    """

    format: Format
    problems: list[Problem]
    counts: dict[Counted, int]
    is_trace: bool = True

    @property
    def ok(self) -> bool:
        """Whether viewers show the whole file as intended."""
        return all(problem.severity < Severity.DATA_LOSS for problem in self.problems)


def make_report(
    format: Format, diagnostics: Diagnostics, counts: dict[Counted, int], *, is_trace: bool = True
) -> CheckReport:
    """Return a report of the diagnostics; equal severities stay in the order of first occurrence."""
    return CheckReport(format, _worst_first(_problems(diagnostics)), counts, is_trace)


def extend_report(report: CheckReport, diagnostics: Diagnostics) -> CheckReport:
    """Return the report with more diagnostics, before its own ones of the same severity."""
    return replace(report, problems=_worst_first([*_problems(diagnostics), *report.problems]))


def _problems(diagnostics: Diagnostics) -> list[Problem]:
    return [
        Problem(entry.code.name, entry.code.severity, entry.code.help, "; ".join(entry.places), entry.count)
        for entry in diagnostics
    ]


def _worst_first(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: -problem.severity)


NEVER_SET = data_loss(
    "check.never_set",
    "the time of an event was never set: its writer could not measure it, and left a 0, which viewers take for a time",
)
_UNENDED = -1
_BUFFERED = 1 << 16


class Zeros:
    """The events that may be without a time, and where the bulk of the others is."""

    def __init__(self) -> None:
        self._bulk, self._starts, self._ends = BulkOfTimes(), array("q"), array("q")
        self._points = array("q")
        # Of slices: start, end, position and category
        self._slices = tuple(array("q") for _ in range(4))
        self._categories: dict[str, int] = {}

    def time(self, start: int, end: int) -> None:
        """Note an event that has a time."""
        self._starts.append(start)
        self._ends.append(end)
        if len(self._starts) == _BUFFERED:
            self._flush()

    def times(self, starts: I64, ends: I64) -> None:
        """Note events that have a time."""
        self._bulk.add(starts, ends)

    def _flush(self) -> None:
        self.times(np.array(self._starts, np.int64), np.array(self._ends, np.int64))
        del self._starts[:], self._ends[:]

    def point(self, ts: int, position: int) -> None:
        """Note an instant, a counter value or a sample."""
        if ts:
            self.time(ts, ts)
        else:
            self._points.append(position)

    def slice(self, ts: int, end: int, position: int, category: bytes = b"") -> None:
        """Note a slice; `category` is a JSON text."""
        if ts > 0 or (ts < 0 and end != ts and end - ts < FAR_NS):
            self.time(ts, end)
        else:
            text = category.strip(b'"').decode("utf-8", "replace")
            number = self._categories.setdefault(text, len(self._categories))
            for column, value in zip(self._slices, (ts, end, position, number), strict=True):
                column.append(value)

    def unended(self, ts: int, position: int) -> None:
        """Note the start of a slice that has no end: it lasts as long as the trace."""
        if ts:
            self.time(ts, ts)
        else:
            self.slice(ts, _UNENDED, position)

    def report(
        self, diagnostics: Diagnostics, what: str, evidence: Callable[[AtZero], None], is_output: bool
    ) -> list[int]:
        """Report the events whose time was never set, and return their positions.

        Args:
            diagnostics: the report.
            what: what the positions count.
            evidence: a function that sets what is known about the writer; only called if there are events at 0.
            is_output: whether traceconv wrote the trace: it has looked at the inputs, so all events have a time.
        """
        if is_output or not (self._points or self._slices[0]):
            return []
        ts, end, position, category = (np.array(column, np.int64) for column in self._slices)
        at_zero = AtZero(self._bulk)
        evidence(at_zero)
        kept = at_zero.may_be_left(ts, end - ts)
        self._flush()
        self._bulk.add(ts[~kept], end[~kept])
        end[(ts == 0) & (end == _UNENDED)] = self._bulk.near[1]
        slices = UnsureSlices(ts[kept], (end - ts)[kept], category[kept], list(self._categories))
        found: list[int] = position[kept][at_zero.never_set(slices)].tolist()
        if at_zero.is_no_time(slices):
            found += self._points
        found.sort()
        for place in found[:KEPT_PLACES]:
            diagnostics.add(NEVER_SET, f"{what} {place}")
        if len(found) > KEPT_PLACES:
            diagnostics.add(NEVER_SET, count=len(found) - KEPT_PLACES)
        return found


_SOME = 1 << 14
_MOST_TEXTS = 1 << 16


class Texts:
    """Numbers texts by their hashes, and keeps some of them for messages."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {0: b""}

    def number(self, text: bytes) -> int:
        """Return the same number for the same text; 0 for an empty one."""
        number = hash(text)
        if number not in self._known and len(self._known) < _MOST_TEXTS:
            self._known[number] = text
        return number

    def text(self, number: int) -> bytes:
        """Return the text of a number, b"" if it was not kept."""
        return self._known.get(number, b"...")


class Rows:
    """Rows of integers; the first integer is a time."""

    def __init__(self, columns: int) -> None:
        self._columns = [array("q") for _ in range(columns)]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *values: int) -> None:
        """Add a row."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def extend(self, *columns: I64) -> None:
        """Add rows, given by their columns."""
        for column, values in zip(self._columns, columns, strict=True):
            column.frombytes(values.astype(np.int64).tobytes())

    def column(self, number: int) -> I64:
        """Return the values of a column, in the order of adding."""
        return np.frombuffer(self._columns[number], np.int64)

    def in_order(self) -> Iterator[tuple[int, ...]]:
        """Yield the rows sorted by time, at equal times in the order of adding."""
        return self._some(np.argsort(self.column(0), kind="stable"))

    def _some(self, order: I64) -> Iterator[tuple[int, ...]]:
        for at in range(0, len(order), _SOME):
            some = order[at : at + _SOME]
            columns = [self.column(number)[some].tolist() for number in range(len(self._columns))]
            yield from zip(*columns, strict=True)

    def groups(self) -> Iterator[Iterator[tuple[int, ...]]]:
        """Yield the rows of each group, given by the last column, sorted by time.

        Groups are in the order of their first row.
        """
        if not len(self):
            return
        _, first, group = np.unique(self.column(-1), return_index=True, return_inverse=True)
        rank = first[group]
        del first, group
        order = np.lexsort((self.column(0), rank))
        del rank
        for _, rows in groupby(self._some(order), itemgetter(-1)):
            yield rows
