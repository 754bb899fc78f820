"""Leave out the events whose time was never set: the writer could not measure it, and left 0.

CUPTI states that a start and an end of 0 mean that no time could be collected (cupti_activity.h), and its users write
this 0 as if it were measured. Such an event would begin the timeline in 1970, count in every table, and seem to show
how far clocks differ.

In most traces 0 is a time as any other, so it takes evidence:

- the format declares what its writer leaves (`FormatMarks.unmeasured`): then these slices, without a length at 0. A
  writer that converts times from the clock of a device to its own has put this 0 long before its start;
- the other times count from 1970, or the format states that they count from 1970 or from boot: then every event at 0;
- slices without a length are at 0, none with one is, and all other times are far away: then every event at 0, too.
  Kineto writes the times from before the base time of its file, and those that were never set, as 0.

An event with a start, whose end was never set, has a negative duration that leads to 0: it is drawn as unfinished.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.clocks import SINCE_BOOT, ClockDomain, Zero, looks_like_unix_time
from traceconv.model.diagnostics import KEPT_PLACES, absent
from traceconv.model.ordering import chunks, distinct_values, occurring
from traceconv.model.tables import Tables
from traceconv.model.trace import I64, SourceInfo

NEVER_SET = absent(
    "time.never_set",
    "the time of an event was never set (0), since its writer could not measure it: it is not on the timeline",
)

#: Zero is far from the other times if they begin later than this, ns, and later than so many times their span.
FAR_NS = 60 * 10**9
_FAR_SPANS = 10
_LONG_BEFORE = (Zero.UNIX_EPOCH, *SINCE_BOOT)
_TABLES = "slices", "instants", "counters"
_LATEST = np.iinfo(np.int64).max

Mask = npt.NDArray[np.bool_]


class AtZero(Struct):
    """What a clock shows at 0, and its other times.

    Attributes:
        first, last: the first and the last of the other times, ns.
        empty: whether slices without a length are at 0.
        long: whether slices with a length begin at 0.
        long_before: whether the format states that 0 is long before its recordings, such as 1970 or the boot.
    """

    first: int
    last: int
    empty: bool
    long: bool
    long_before: bool = False

    @property
    def is_no_time(self) -> bool:
        """Whether 0 is no time of this clock."""
        if looks_like_unix_time(self.first) or (self.long_before and FAR_NS <= self.first <= self.last):
            return True
        is_far = self.first >= max(FAR_NS, _FAR_SPANS * (self.last - self.first))
        return is_far and self.first <= self.last and self.empty and not self.long


class LeftOut(Struct):
    """What was left out.

    Attributes:
        numbers: the new number of each slice, -1 for one that was left out.
        tracks: for each track, whether 0 is no time on it.
    """

    numbers: I64
    tracks: Mask


def leave_out_never_set(tables: Tables, info: SourceInfo, clocks: Sequence[ClockDomain]) -> LeftOut | None:
    """Leave out the events whose time was never set, and count them; None if there are none.

    Flows from and to these slices are left out, too.
    """
    if info.marks.is_output:  # traceconv has looked at these inputs
        return None
    found = _Found(tables, info, clocks)
    return found.leave_out() if found.any else None


class _Found:
    """The events at 0 whose time was never set."""

    def __init__(self, tables: Tables, info: SourceInfo, clocks: Sequence[ClockDomain]) -> None:
        self._tables, self._info = tables, info
        latest = -FAR_NS if info.marks.unmeasured else -_LATEST  # of the 0 of a device
        self._rows = {name: _rows_at_zero(tables.columns[name]["ts"].numbers(), latest) for name in _TABLES}
        self.any = any(len(rows) for rows in self._rows.values())
        if not self.any:
            return
        self._clock_of = tables.tracks.column("clock")
        self._tracks = np.zeros(len(self._clock_of), bool)
        used = np.zeros(len(clocks), bool)
        for name, rows in self._rows.items():
            used[self._clock_of[self._column(name, "track")[rows]]] = True
        slices = self._rows["slices"]
        empty = self._column("slices", "dur")[slices] == 0
        is_unmeasured = empty & self._is_of_unmeasured(slices)
        for clock in np.flatnonzero(used).tolist():
            at_zero = self._look_at(clock, empty)
            at_zero.long_before = clocks[clock].zero in _LONG_BEFORE and not info.marks.any_tool
            if not clocks[clock].synthetic and at_zero.is_no_time:
                self._tracks |= self._clock_of == clock
        for name, rows in self._rows.items():
            is_unset = self._tracks[self._column(name, "track")[rows]] & (self._column(name, "ts")[rows] == 0)
            self._rows[name] = rows[is_unset | is_unmeasured if name == "slices" else is_unset]
        self.any = any(len(rows) for rows in self._rows.values())

    def _column(self, table: str, name: str) -> npt.NDArray[Any]:
        return self._tables.columns[table][name].numbers()

    def _is_of_unmeasured(self, rows: I64) -> Mask:
        """Return which slices have a category that the format declares as left at 0."""
        categories, texts = self._column("slices", "category")[rows], self._tables.strings()
        if not self._info.marks.unmeasured:
            return np.zeros(len(rows), bool)
        is_of = re.compile(self._info.marks.unmeasured).fullmatch
        return np.isin(categories, [one for one in occurring(categories) if is_of(texts[one])])

    def _look_at(self, clock: int, empty: Mask) -> AtZero:
        """Return what a clock shows; `empty` is of the slices that were found."""
        here = self._clock_of[self._column("slices", "track")[self._rows["slices"]]] == clock
        first, last = _LATEST, 0
        for name in _TABLES:
            ts, track = self._column(name, "ts"), self._column(name, "track")
            dur = self._column(name, "dur") if name == "slices" else None
            for rows in chunks(len(ts)):
                others = (ts[rows] != 0) & (self._clock_of[track[rows]] == clock)
                times = ts[rows][others]
                first = int(np.min(times, initial=first))
                last = int(np.max(times if dur is None else times + dur[rows][others], initial=last))
                if first < FAR_NS:  # 0 is a time, whatever follows
                    return AtZero(first, last, empty=False, long=True)
        return AtZero(first, last, bool(np.any(here & empty)), bool(np.any(here & ~empty)))

    def leave_out(self) -> LeftOut:
        """Leave out what was found, and count it."""
        self._count()
        kept = np.ones(self._tables.slice_count, bool)
        kept[self._rows["slices"]] = False
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
        self._tracks[self._column("slices", "track")[self._rows["slices"]]] = True
        for name, rows in self._rows.items():
            if len(rows):
                self._tables.drop(name, rows)
        self._tables.renumber_slices(numbers)
        return LeftOut(numbers, self._tracks)

    def _count(self) -> None:
        """Count the events: a counter may have several values of one event, or repeat one that is an instant."""
        strings = self._tables.strings()
        events: list[tuple[int, str]] = []  # the first of each table, which are told
        for name in ("slices", "instants"):
            rows = self._rows[name]
            rows = rows[np.argsort(self._column(name, "origin")[rows], kind="stable")]
            origins, names = self._column(name, "origin")[rows], self._column(name, "name")[rows]
            some = slice(KEPT_PLACES)
            events += zip(origins[some].tolist(), [repr(strings[at]) for at in names[some].tolist()], strict=True)
        instants, counters = (self._column(name, "origin")[self._rows[name]] for name in ("instants", "counters"))
        values = distinct_values(counters[~np.isin(counters, instants)])
        events += [(origin, "a counter") for origin in values[:KEPT_PLACES].tolist()]
        count = len(self._rows["slices"]) + len(self._rows["instants"]) + len(values)
        balance = self._info.balance
        balance.written -= min(count, balance.written)
        for origin, name in events:
            self._info.skip(NEVER_SET, origin, name)
        if count > len(events):
            self._info.skip(NEVER_SET, count=count - len(events))


def _rows_at_zero(ts: I64, latest: int) -> I64:
    """Return the rows whose time (ns) is 0, or `latest` or before."""
    found = [rows.start + np.flatnonzero((ts[rows] == 0) | (ts[rows] <= latest)) for rows in chunks(len(ts))]
    return np.concatenate(found) if found else np.empty(0, np.int64)
