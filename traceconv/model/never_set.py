"""Leave out the events whose time was never set: the writer could not measure it, and left 0.

CUPTI states that a start and an end of 0 mean that no time could be collected (cupti_activity.h), and its users write
this 0 as if it were measured. Such an event would begin the timeline in 1970, count in every table, and seem to show
how far clocks differ.

In most traces 0 is a time as any other, so it takes evidence:

- the format declares what its writer leaves (`FormatMarks.unmeasured`): then these slices, without a length at 0, or
  device work of any length where 0 is before all of it. A writer that converts times from the clock of a device to its
  own has put this 0 long before its start;
- the other times count from 1970, or the format or readings of clocks in the file state that they count from 1970 or
  from boot: then every event at 0;
- the format writes early times as 0 (`FormatMarks.early_at_zero`), slices without a length are at 0, none with one is,
  and all other times are far away: then every event at 0, too;
- in a format of any tool, device work without a length is at 0, and all other times are far away: then this work;
- a slice from 0 ends among times that are all far from 0, or its length counts from 1970: then this slice. One that
  ends before or with the others, or lasts as long as they do, may be what they are parts of. Where the format declares
  nothing of the slice, it may be a long startup, so the others must look as if they counted from boot.

An event with a start, whose end was never set, has a negative duration that leads to 0: it is drawn as unfinished.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.clocks import SINCE_BOOT, UNIX_TIMES, ClockDomain, ClockSnapshot, Zero, looks_like_unix_time
from traceconv.model.diagnostics import KEPT_PLACES, absent
from traceconv.model.marks import NO_MARKS, FormatMarks
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
#: Times look as if they counted from boot if they begin later than this, ns, and later than so many times their span.
_BOOT_LIKE_NS = 3600 * 10**9
_BOOT_LIKE_SPANS = 1000
_LONG_BEFORE = (Zero.UNIX_EPOCH, *SINCE_BOOT)
_TABLES = "slices", "instants", "counters"
_LATEST = np.iinfo(np.int64).max

Mask = npt.NDArray[np.bool_]


class Slices(Struct):
    """Slices that may have no time.

    Attributes:
        ts, dur: starts and durations, ns.
        category: the number of the category of each.
        texts: the categories by their numbers.
    """

    ts: I64
    dur: I64
    category: npt.NDArray[Any]
    texts: Mapping[int, str] | Sequence[str]

    def of(self, is_of: Callable[[str], object]) -> Mask:
        """Return which slices are of the categories of which this holds."""
        return np.isin(self.category, [one for one in occurring(self.category) if is_of(self.texts[one])])


class AtZero(Struct):
    """What makes 0 no time of a clock.

    Attributes:
        first, last: the first and the last of the times that are neither 0 nor before `latest_left`, ns.
        marks: what the writer of the format does.
        zero: the zero of the clock, as the format states it.
        since_boot: whether readings in the file show that the clock counts from boot.
    """

    first: int
    last: int
    marks: FormatMarks = NO_MARKS
    zero: Zero = Zero.UNKNOWN
    since_boot: bool = False

    def is_no_time(self, slices: Slices) -> bool:
        """Return whether no event is at 0, given the slices there."""
        long_before = self.since_boot or (self.zero in _LONG_BEFORE and not self.marks.any_tool)
        if looks_like_unix_time(self.first) or (long_before and FAR_NS <= self.first <= self.last):
            return True
        if not self.marks.early_at_zero or not self._is_far:
            return False
        here = slices.ts == 0
        is_empty = slices.dur == 0
        return bool(np.any(is_empty & here) and not np.any(here & ~is_empty & ~self._is_stretched(slices)))

    def never_set(self, slices: Slices) -> Mask:
        """Return which slices have no time."""
        left = self._far_below(slices, self._is_left(slices)) | self._is_stretched(slices)
        return left | (slices.ts == 0) if self.is_no_time(slices) else left

    def _is_left(self, slices: Slices) -> Mask:
        """Return which slices are what the format declares as left without a time."""
        is_left: Mask = slices.dur == 0
        work = self.marks.launches.work if self.marks.launches is not None else ()
        if not self.marks.unmeasured:
            is_left &= self.marks.any_tool and self._is_far
            return is_left & slices.of(work.__contains__)
        if self.marks.zero_before_work:
            is_left = is_left | (slices.ts == 0) & slices.of(work.__contains__)
        is_left &= self._is_declared(slices)
        return is_left

    def _far_below(self, slices: Slices, left: Mask) -> Mask:
        """Return which of these slices are at 0, or long before all that is not among them."""
        others = slices.ts[(slices.ts < 0) & ~left]
        is_far: Mask = slices.ts == 0
        if len(others) or self.first <= self.last:
            is_far |= slices.ts <= np.min(others, initial=self.first) - FAR_NS
        is_far &= left
        return is_far

    def _is_declared(self, slices: Slices) -> Mask:
        """Return which slices are of a category whose unmeasured times the format declares."""
        if not self.marks.unmeasured:
            return np.zeros(len(slices.ts), bool)
        return slices.of(re.compile(self.marks.unmeasured).fullmatch)

    def _is_stretched(self, slices: Slices) -> Mask:
        """Return which slices have an end, but no start."""
        is_stretched: Mask = (slices.dur >= UNIX_TIMES[0]) & (slices.dur < UNIX_TIMES[1])
        ends_among_others: Mask = (slices.dur > self.first) & (slices.dur < self.last)
        if self._is_far and not self._begins_at_least(_BOOT_LIKE_NS, _BOOT_LIKE_SPANS):
            ends_among_others &= self._is_declared(slices)
        if self._is_far:
            is_stretched |= ends_among_others
        is_stretched &= slices.ts == 0
        return is_stretched

    @property
    def _is_far(self) -> bool:
        return self._begins_at_least(FAR_NS, _FAR_SPANS)

    def _begins_at_least(self, after: int, spans: int) -> bool:
        """Return whether the other times begin this late, ns, and so many times their span after 0."""
        return max(after, spans * (self.last - self.first)) <= self.first <= self.last


def latest_left(marks: FormatMarks) -> int:
    """Return the latest time (ns) below 0 that can be the 0 of a device, converted by the writer of the format."""
    return -FAR_NS if marks.unmeasured else -_LATEST


class LeftOut(Struct):
    """What was left out.

    Attributes:
        numbers: the new number of each slice, -1 for one that was left out.
        tracks: for each track, whether 0 is no time on it.
    """

    numbers: I64
    tracks: Mask


def leave_out_never_set(
    tables: Tables, info: SourceInfo, clocks: Sequence[ClockDomain], snapshots: Sequence[ClockSnapshot]
) -> LeftOut | None:
    """Leave out the events whose time was never set, and count them; None if there are none.

    Flows from and to these slices are left out, too.
    """
    if info.marks.is_output:  # traceconv has looked at these inputs
        return None
    found = _Found(tables, info)
    if found.any:
        found.judge(clocks, snapshots)
    return found.leave_out() if found.any else None


class _Found:
    """The events at 0 whose time was never set."""

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info
        self._latest = latest = latest_left(info.marks)
        self._rows = {name: _rows_at_zero(tables.columns[name]["ts"].numbers(), latest) for name in _TABLES}
        self._clock_of = tables.tracks.column("clock")
        self._tracks = np.zeros(len(self._clock_of), bool)

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return any(len(rows) for rows in self._rows.values())

    def judge(self, clocks: Sequence[ClockDomain], snapshots: Sequence[ClockSnapshot]) -> None:
        """Keep only the events that the other times of their clock show to be without one."""
        is_unset = {name: np.zeros(len(rows), bool) for name, rows in self._rows.items()}
        of_clock = {name: self._clock_of[self._column(name, "track")[rows]] for name, rows in self._rows.items()}
        for clock in np.flatnonzero(np.bincount(np.concatenate(list(of_clock.values())))).tolist():
            at_zero, here = self._look_at(clock, clocks[clock], snapshots), of_clock["slices"] == clock
            slices = self._slices(self._rows["slices"][here])
            is_unset["slices"][here] = at_zero.never_set(slices)
            if at_zero.is_no_time(slices):
                self._tracks |= self._clock_of == clock
                for name in ("instants", "counters"):
                    is_at_zero = self._column(name, "ts")[self._rows[name]] == 0
                    is_unset[name] |= is_at_zero & (of_clock[name] == clock)
        for name, rows in self._rows.items():
            self._rows[name] = rows[is_unset[name]]

    def _column(self, table: str, name: str) -> npt.NDArray[Any]:
        return self._tables.columns[table][name].numbers()

    def _slices(self, rows: I64) -> Slices:
        ts, dur, category = (self._column("slices", name)[rows] for name in ("ts", "dur", "category"))
        return Slices(ts, dur, category, self._tables.strings())

    def _look_at(self, number: int, clock: ClockDomain, snapshots: Sequence[ClockSnapshot]) -> AtZero:
        """Return what a clock shows."""
        marks = self._info.marks
        if clock.synthetic:
            return AtZero(0, 0, marks)
        read = [(one.clock, one.ts) for one in snapshots] + [(one.other, one.other_ts) for one in snapshots]
        since_boot = clock.zero in SINCE_BOOT and any(one == clock and ts >= FAR_NS for one, ts in read)
        at_zero = AtZero(_LATEST, 0, marks, clock.zero, since_boot)
        is_any_below = bool(np.any(self._column("slices", "ts")[self._rows["slices"]]))
        for name in _TABLES:
            ts, track = self._column(name, "ts"), self._column(name, "track")
            dur = self._column(name, "dur") if name == "slices" else None
            for rows in chunks(len(ts)):
                others = (ts[rows] != 0) & (ts[rows] > self._latest) & (self._clock_of[track[rows]] == number)
                times = ts[rows][others]
                at_zero.first = int(np.min(times, initial=at_zero.first))
                ends = times if dur is None else times + dur[rows][others]
                at_zero.last = int(np.max(ends, initial=at_zero.last))
                if at_zero.first < FAR_NS and not is_any_below:  # 0 is a time, whatever follows
                    return at_zero
        return at_zero

    def leave_out(self) -> LeftOut:
        """Leave out what was found, and count it."""
        self._count()
        kept = np.ones(self._tables.slice_count, bool)
        kept[self._rows["slices"]] = False
        numbers = np.where(kept, np.cumsum(kept) - 1, -1)
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
