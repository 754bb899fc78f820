"""Clamp or leave out what no viewer draws: times that cannot be or were never set, CPUs, and texts that are too long.

Args keep the original times where a table has them.

A time was never set if the writer could not measure it, and left 0.
CUPTI states that a start and an end of 0 mean that no time could be collected (cupti_activity.h), and its users write
this 0 as if it were measured. Such an event would begin the timeline in 1970, count in every table, and seem to show
how far clocks differ.

In most traces 0 is a time as any other, so it takes evidence. Part of it is whether the bulk of the times of the clock
is far from 0 (`BulkOfTimes`), since single events may be astray:

- the format declares what its writer leaves (`FormatMarks.unmeasured`): then device work without a length at 0, and
  where the bulk is far from 0, device work of any length at 0, all else without a length there, and slices that begin
  there and end among the other events near the bulk. Where 0 is before all device work
  (`FormatMarks.zero_before_work`), the same holds at 0 and before it, wherever the bulk is, but of slices with a length
  only for work and the calls that launch it: a host may begin something else there.
  A writer that converts times from the clock of a device to its own may have put this 0 anywhere before 0. So a start
  from which the bulk is far counts as one at 0 if the slice has no length, or one of a minute or more, and an end from
  which the bulk is far counts as one at 0;
- the bulk counts from 1970, or the format or readings of clocks in the file state that it counts from 1970 or from
  boot: then every event at 0;
- the format writes early times as 0 (`FormatMarks.early_at_zero`), no slice with a length is at 0, and the bulk is far
  away: then every event at 0, too;
- in a format of any tool, device work without a length is at 0, and the bulk is far away: then this work;
- the length of a slice from 0 counts from 1970: then this slice. One that ends among events far from 0 may be a long
  startup, so where the format declares nothing of it, all other times must look as if they counted from boot.

A slice whose end only was never set is drawn with the length 0, and no duration of it counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import index
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.model.args import AnyArgs, Args, as_bytes, join_args
from traceconv.model.clocks import SINCE_BOOT, UNIX_TIMES, ClockDomain, ClockSnapshot, Zero, looks_like_unix_time
from traceconv.model.columns import I32, I64, chunks, distinct_values, occurring, utf8
from traceconv.model.diagnostics import KEPT_PLACES, absent, lost, repaired
from traceconv.model.marks import NO_MARKS, FormatMarks
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, TIMED, Trace

if TYPE_CHECKING:
    from traceconv.model.event_tables import Tables

# -- times and CPUs out of range --------------------------------------------------------------------------------------

NEGATIVE_DURATION = repaired(
    "slice.negative_duration",
    "a duration is below zero (the clock stepped back): drawn with length 0, the value is kept in the args",
)
END_NEVER_SET = absent(
    "slice.end_never_set",
    "the end of a slice was never set, so its duration leads to 0: drawn with length 0 and marked `unfinished`",
    unmeasured=True,
)
OUT_OF_RANGE = repaired(
    "time.out_of_range",
    "a time or duration is beyond 146 years: drawn at that limit; slices and instants keep the value in the args",
)

#: The trace processor ends itself at a CPU beyond these (kMaxCpusPerMachine in its cpu_tracker.h, v52). Linux for x86
#: has at most 8,192 (CONFIG_NR_CPUS).
MOST_CPUS = 4096
IMPOSSIBLE_CPU = repaired(
    "sample.impossible_cpu",
    f"a sample names a CPU beyond the {MOST_CPUS:,} that Perfetto draws: its CPU counts as not known",
)


def possible_slice(info: SourceInfo, ts: int, dur: int, args: AnyArgs, at: int) -> tuple[int, int, bytes]:
    """Return start and duration (ns) of a slice, clamped to the range, and its args with a note of a change.

    A duration may be below zero here: what it means is judged when all times are known (`settle_times`).
    """
    if abs(index(dur)) > LIMIT_NS or not -LIMIT_NS <= index(ts) <= LIMIT_NS - max(dur, 0):
        info.problem(OUT_OF_RANGE, at)
        args = join_args(args, {"ts_ns": str(ts), "dur_ns": str(dur)})
        ts = _limited(ts)
        dur = min(_limited(dur), LIMIT_NS - ts)
    return ts, dur, as_bytes(args)


def possible_ts(info: SourceInfo, ts: int, at: int) -> int:
    """Return the time (ns) of an event without duration, clamped to the range; a change is counted."""
    possible = _limited(index(ts))
    if possible != ts:
        info.problem(OUT_OF_RANGE, at, f"{ts} ns")
    return possible


def possible_times(info: SourceInfo, ts: I64, at: I64) -> I64:
    """Return the times (ns) of many events without duration, clamped to the range; changes are counted."""
    rows = np.flatnonzero(beyond(ts)).tolist()
    if not rows:
        return ts
    for row in rows:
        possible_ts(info, int(ts[row]), int(at[row]))
    return np.clip(ts, -LIMIT_NS, LIMIT_NS)


def possible_cpu(info: SourceInfo, cpu: int, at: int) -> int:
    """Return the CPU of a sample, NO_CPU if it is none that viewers draw; a change is counted."""
    if NO_CPU <= cpu < MOST_CPUS:
        return cpu
    info.problem(IMPOSSIBLE_CPU, at, str(cpu))
    return NO_CPU


def possible_cpus(info: SourceInfo, cpu: I32, at: I64) -> I32:
    """Return the CPUs of many samples, NO_CPU where they are none that viewers draw; changes are counted."""
    rows = np.flatnonzero((cpu < NO_CPU) | (cpu >= MOST_CPUS))
    if not len(rows):
        return cpu
    possible = cpu.copy()
    for row in rows.tolist():
        possible[row] = possible_cpu(info, int(cpu[row]), int(at[row]))
    return possible


def beyond(ts: I64) -> npt.NDArray[np.bool_]:
    """Return a mask of the times that are out of range."""
    return (ts < -LIMIT_NS) | (ts > LIMIT_NS)


def _limited(ts: int) -> int:
    return max(-LIMIT_NS, min(ts, LIMIT_NS))


# -- long names and args ----------------------------------------------------------------------------------------------

LONG_NAME = lost("source.long_name", "a name is longer than --max-length allows: it was cut to that length")
LONG_ARG = lost("source.long_arg", "an arg of an event is longer than --max-length allows: it was left out")

_SHOWN = 60
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def shorten(trace: Trace, length: int) -> Trace:
    """Return the trace of one input, which is consumed, without names and args of more than `length` bytes.

    Names are cut, args left out; both are counted.
    """
    _shorten_args(trace, length)
    names = chain(trace.strings, trace.tracks.texts("name"), (frame.name for frame in trace.frames))
    long = [name for name in names if _is_long(name, length)]
    if not long:
        return trace
    for name in long:
        trace.sources[0].diagnostics.add(LONG_NAME, f"{name[:_SHOWN]}...")
    return trace.with_tables(
        strings=[_cut(text, length) for text in trace.strings],
        tracks=trace.tracks.replaced(name=[_cut(name, length) for name in trace.tracks.texts("name")]),
        frames=[replace(frame, name=_cut(frame.name, length)) for frame in trace.frames],
    )


def _is_long(text: str, length: int) -> bool:
    """Return whether a text has more than `length` bytes in UTF-8; fast, since almost all are far shorter."""
    return 4 * len(text) > length and len(utf8(text)) > length


def _cut(text: str, length: int) -> str:
    """Return the longest prefix of a text that has at most `length` bytes in UTF-8."""
    return utf8(text)[:length].decode("utf-8", "ignore") if _is_long(text, length) else text


def _shorten_args(trace: Trace, length: int) -> None:
    parts, end = list(trace.args.parts), len(trace.args)
    for table in (trace.slices, trace.instants, trace.logs):
        for row in np.flatnonzero(np.asarray(table.args_len) > length).tolist():
            args = trace.args.view(int(table.args_at[row]), int(table.args_len[row]))
            short = _without_long(args, length, int(table.origin[row]), trace.sources[0])
            table.args_at[row], table.args_len[row] = end, len(short)
            parts.append(short)
            end += len(short)
    if len(parts) > len(trace.args.parts):
        trace.args = Args(parts)


def _without_long(args: memoryview, length: int, origin: int, source: SourceInfo) -> bytes:
    """Return the args of one event without those that are too long."""
    kept: dict[str, msgspec.Raw] = {}
    for key, value in _members(args).items():
        size = memoryview(value).nbytes
        if size <= length and not _is_long(key, length):
            kept[key] = value
        else:
            place = f"{source.name}:{source.unit} {origin}: {key[:_SHOWN]!r} has {size} bytes"
            source.diagnostics.add(LONG_ARG, place, number=origin)
    return msgspec.json.encode(kept)


# -- times that were never set ----------------------------------------------------------------------------------------

NEVER_SET = absent(
    "time.never_set",
    "the time of an event was never set, since its writer could not measure it: it is not on the timeline",
    unmeasured=True,
)

#: A time is far from others if it is so long before or after them, ns, and as long as their span.
FAR_NS = 60 * 10**9
#: Times look as if they counted from boot if they begin later than this, ns, and later than so many times their span.
_BOOT_LIKE_NS = 3600 * 10**9
_BOOT_LIKE_SPANS = 1000
_LONG_BEFORE = (Zero.UNIX_EPOCH, *SINCE_BOOT)
_LATEST = np.iinfo(np.int64).max
#: So many of the earliest and of the latest times, or a third of all if that is less, may be astray.
_STRAYS = 10
#: The tables with a row for each event, and the column with the text that tells it.
_TOLD = {"slices": "name", "instants": "name", "samples": "name", "logs": "text"}

Mask = npt.NDArray[np.bool_]


class UnsureSlices(Struct):
    """Slices that may have no time: starts and durations, ns, the number of the category of each, and their texts."""

    ts: I64
    dur: I64
    category: npt.NDArray[Any]
    texts: Mapping[int, str] | Sequence[str]

    def of_category(self, is_of: Callable[[str], object]) -> Mask:
        """Return which slices are of the categories of which this holds."""
        return np.isin(self.category, [number for number in occurring(self.category) if is_of(self.texts[number])])


class BulkOfTimes:
    """The times of a clock but for a few that may be astray: single events must not decide about all others."""

    def __init__(self) -> None:
        self._count = 0
        self._earliest, self._latest = np.empty((2, 0), np.int64)

    def add(self, starts: I64, ends: I64) -> None:
        """Add events by their starts and ends, ns."""
        self._count += len(starts)
        self._earliest = _least(self._earliest, starts)
        self._latest = -_least(-self._latest, -ends)

    @property
    def earliest(self) -> int:
        """The first start, which may be astray, ns; the latest possible time if there are no times."""
        return int(self._earliest[0]) if self._count else _LATEST

    @property
    def first(self) -> int:
        """The start of the bulk, ns; the latest possible time if there are no times."""
        return int(self._earliest[self._strays]) if self._count else _LATEST

    @property
    def last(self) -> int:
        """The end of the bulk, ns; 0 if there are no times."""
        return int(self._latest[self._strays]) if self._count else 0

    @property
    def far_before(self) -> int:
        """The latest time from which the bulk is far, ns."""
        return max(self.first - self._reach, -_LATEST) if self._count else -_LATEST

    @property
    def near(self) -> tuple[int, int]:
        """The first start and the last end, ns, of all times that are not far from the bulk."""
        if not self._count:
            return _LATEST, 0
        starts = self._earliest[self._earliest > self.far_before]
        ends = self._latest[self._latest < min(self.last + self._reach, _LATEST)]
        return int(starts[0]), int(ends[0])

    @property
    def _reach(self) -> int:
        return max(FAR_NS, self.last - self.first)

    @property
    def _strays(self) -> int:
        return min(_STRAYS, self._count // 3)


def _grouped(numbers: I64) -> Iterator[tuple[int, I64]]:
    """Yield each number that occurs, with the places where it does."""
    order = np.argsort(numbers, kind="stable")
    edges = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for here in np.split(order, edges[1:]) if len(order) else ():
        yield int(numbers[here[0]]), here


def _least(known: I64, more: I64) -> I64:
    """Return the least of these values, in order: one more than may be astray."""
    if len(known) > _STRAYS:
        more = more[more < known[-1]]
    return np.sort(np.concatenate((known, more)))[: _STRAYS + 1]


class AtZero(Struct):
    """What makes 0 no time of a clock.

    Attributes:
        times: the other times of the clock.
        marks: what the writer of the format does.
        zero: the zero of the clock, as the format states it.
        since_boot: whether readings in the file show that the clock counts from boot.
    """

    times: BulkOfTimes
    marks: FormatMarks = NO_MARKS
    zero: Zero = Zero.UNKNOWN
    since_boot: bool = False

    def may_be_left(self, ts: I64, dur: I64) -> Mask:
        """Return which slices may be without a time, by their starts and durations: they are no evidence."""
        may_be: Mask = ts == 0
        if self.marks.unmeasured:
            may_be |= (ts < 0) & ((dur == 0) | (dur >= FAR_NS))
        return may_be

    def is_no_time(self, slices: UnsureSlices) -> bool:
        """Return whether no event is at 0, given the slices there."""
        first, last = self.times.first, self.times.last
        long_before = self.since_boot or (self.zero in _LONG_BEFORE and not self.marks.any_tool)
        if looks_like_unix_time(first) or (long_before and FAR_NS <= first <= last):
            return True
        if not self.marks.early_at_zero or self.times.far_before < 0:
            return False
        is_unset = (slices.dur == 0) | self._is_left(slices)
        return bool(np.all(is_unset[slices.ts == 0]))

    def never_set(self, slices: UnsureSlices) -> Mask:
        """Return which slices have no time."""
        left = self._is_left(slices)
        return left | (slices.ts == 0) if self.is_no_time(slices) else left

    def _is_left(self, slices: UnsureSlices) -> Mask:
        """Return which slices are themselves what a writer leaves without a time."""
        ts, end, marks = slices.ts, slices.ts + slices.dur, self.marks
        at_zero, is_empty, is_far = ts == 0, end == ts, ts <= self.times.far_before
        first, last = self.times.near
        ends_among_others = (end > first) & (end < last)
        left: Mask = at_zero & (end >= UNIX_TIMES[0]) & (end < UNIX_TIMES[1])
        left |= at_zero & ends_among_others & self._is_like_boot
        launches = marks.launches
        is_work = slices.of_category(launches.work.__contains__) if launches else np.array(not marks.any_tool)
        if marks.unmeasured:
            is_call = slices.of_category(launches.calls.__contains__) if launches else np.array(False)
            is_before = (ts <= 0) & (marks.zero_before_work and self.zero is not Zero.UNKNOWN)
            is_none = is_far | is_before
            is_unset = is_none & (is_empty | is_work) | (is_far | is_before & is_call) & ends_among_others
            left |= (is_unset | at_zero & is_empty & is_work) & self._is_declared(slices)
        elif marks.any_tool:
            left |= is_work & at_zero & is_far & is_empty
        return left

    def end_never_set(self, slices: UnsureSlices) -> Mask:
        """Return which slices have no end, of those that end before they start."""
        end = slices.ts + slices.dur
        is_none: Mask = (end == 0) | (-slices.dur >= UNIX_TIMES[0]) & (-slices.dur < UNIX_TIMES[1])
        if self.marks.unmeasured:
            is_none |= (end <= self.times.far_before) & self._is_declared(slices)
        return is_none

    def _is_declared(self, slices: UnsureSlices) -> Mask:
        return slices.of_category(re.compile(self.marks.unmeasured).fullmatch)

    @property
    def _is_like_boot(self) -> bool:
        span = self.times.last - self.times.first
        return max(_BOOT_LIKE_NS, _BOOT_LIKE_SPANS * span) <= self.times.earliest


class LeftOut(Struct):
    """What was left out.

    Attributes:
        numbers: the new number of each slice, -1 for one that was left out.
        tracks: for each track, whether 0 is no time on it.
        times: the starts of the slices that were left out, ns, in order and each once, and 0.
        places: the places where only such slices begin, see `place`.
    """

    numbers: I64
    tracks: Mask
    times: I64
    places: I64

    def is_no_time(self, ts: I64, track: I64) -> Mask:
        """Return which points in time (ns) on tracks are those of slices that were left out, or are no times."""
        is_none: Mask = np.isin(self.place(ts, track), self.places)
        is_none |= (ts == 0) & self.tracks[track]
        is_none &= track >= 0
        return is_none

    def place(self, ts: I64, track: I64) -> I64:
        """Return a number for each time (ns) on a track, -1 where no slice of any track was left out at that time."""
        number = np.minimum(np.searchsorted(self.times, ts), len(self.times) - 1)
        return np.where(self.times[number] == ts, number * len(self.tracks) + track, -1)


def settle_times(
    tables: Tables, info: SourceInfo, clocks: Sequence[ClockDomain], snapshots: Sequence[ClockSnapshot]
) -> LeftOut | None:
    """Leave out the events whose time was never set, and count them; None if there are none.

    Flows from and to these slices are left out, too. Slices that end before they start get the length 0.
    """
    found = _Found(tables, info)
    if not found:
        return None
    is_any = found.judge(clocks, snapshots)
    return found.leave_out() if is_any else None


class _Found:
    """The events whose time was never set, and the slices that end before they start."""

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info
        # In outputs of traceconv all times are set: it has looked at the inputs.
        self._rows = {name: np.empty(0, np.int64) if info.written else self._rows_to_judge(name) for name in TIMED}
        dur = self._column("slices", "dur")
        backward = [rows.start + np.flatnonzero(dur[rows] < 0) for rows in chunks(len(dur))]
        self._backward = np.concatenate([np.empty(0, np.int64), *backward])
        self._clock_of = tables.tracks.column("clock")
        self._tracks = np.zeros(len(self._clock_of), bool)

    def _rows_to_judge(self, table: str) -> I64:
        found = [
            rows.start + np.flatnonzero(self._may_be_left(table, rows))
            for rows in chunks(len(self._column(table, "ts")))
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _may_be_left(self, table: str, rows: slice) -> Mask:
        ts = self._column(table, "ts")[rows]
        dur = self._column(table, "dur")[rows] if table == "slices" else np.ones_like(ts)
        return AtZero(BulkOfTimes(), self._info.marks).may_be_left(ts, dur)

    def __bool__(self) -> bool:
        return len(self._backward) > 0 or any(len(rows) for rows in self._rows.values())

    def judge(self, clocks: Sequence[ClockDomain], snapshots: Sequence[ClockSnapshot]) -> bool:
        """Keep only the events that the other times of their clock show to be without one; return if there are any.

        Slices that end before they start get the length 0.
        """
        of_clock = {name: self._clock_of[self._column(name, "track")[rows]] for name, rows in self._rows.items()}
        clocks_back = self._clock_of[self._column("slices", "track")[self._backward]]
        unset_slices, unset_ends = np.zeros(len(self._rows["slices"]), bool), np.zeros(len(self._backward), bool)
        is_none = np.zeros(len(clocks), bool)  # for each clock, whether 0 is no time
        slices_of, ends_of = dict(_grouped(of_clock["slices"])), dict(_grouped(clocks_back))
        none = np.empty(0, np.int64)
        for number, at_zero in self._evidence(np.concatenate([*of_clock.values(), clocks_back]), clocks, snapshots):
            here, ends_here = slices_of.get(number, none), ends_of.get(number, none)
            slices = self._slices(self._rows["slices"][here])
            unset_slices[here] = at_zero.never_set(slices)
            unset_ends[ends_here] = at_zero.end_never_set(self._slices(self._backward[ends_here]))
            is_none[number] = at_zero.is_no_time(slices)
        self._tracks = is_none[self._clock_of]
        for name, rows in self._rows.items():
            self._rows[name] = rows[unset_slices if name == "slices" else is_none[of_clock[name]]]
        self._end_at_start(unset_ends)
        return any(len(rows) for rows in self._rows.values())

    def _slices(self, rows: I64) -> UnsureSlices:
        ts, dur, category = (self._column("slices", column)[rows] for column in ("ts", "dur", "category"))
        return UnsureSlices(ts, dur, category, self._tables.strings())

    def _end_at_start(self, is_unset: Mask) -> None:
        """Give the slices that end before they start the length 0, and count them: those whose end was never set."""
        here = ~np.isin(self._backward, self._rows["slices"])
        rows, is_unset = self._backward[here], is_unset[here]
        if not len(rows):
            return
        columns = [self._column("slices", name)[rows].tolist() for name in ("dur", "origin", "args_at", "args_len")]
        kept, places = self._tables.kept_args(), []
        for dur, at, place, length, unset in zip(*columns, is_unset.tolist(), strict=True):
            self._info.problem(END_NEVER_SET if unset else NEGATIVE_DURATION, at)
            note = {"unfinished": True} if unset else {"negative_dur_ns": dur}
            places.append(self._tables.keep_args(join_args(kept.get(place, length), note)))
        args_at, args_len = np.array(places, np.int64).T
        for name, values in (("dur", np.zeros_like(rows)), ("args_at", args_at), ("args_len", args_len)):
            self._tables.columns["slices"][name].change(rows, values)

    def _column(self, table: str, name: str) -> npt.NDArray[Any]:
        return self._tables.columns[table][name].numbers()

    def _evidence(
        self, wanted: I64, clocks: Sequence[ClockDomain], snapshots: Sequence[ClockSnapshot]
    ) -> Iterator[tuple[int, AtZero]]:
        """Yield the numbers of the wanted clocks, each once, with what they show."""
        read = [(snap.clock, snap.ts) for snap in snapshots] + [(snap.other, snap.other_ts) for snap in snapshots]
        late = {clock for clock, ts in read if ts >= FAR_NS}
        bulks = self._bulks(np.bincount(wanted, minlength=len(clocks)) > 0)
        for number in occurring(wanted):
            clock, marks = clocks[number], self._info.marks
            since_boot = clock.zero in SINCE_BOOT and clock in late
            shown = AtZero(bulks[number], marks, clock.zero, since_boot)
            yield number, AtZero(BulkOfTimes(), marks) if clock.synthetic else shown

    def _bulks(self, is_wanted: Mask) -> defaultdict[int, BulkOfTimes]:
        """Return the bulk of the times of each wanted clock."""
        bulks: defaultdict[int, BulkOfTimes] = defaultdict(BulkOfTimes)
        for name in TIMED:
            ts, track = self._column(name, "ts"), self._column(name, "track")
            for rows in chunks(len(ts)):
                others = np.flatnonzero(is_wanted[self._clock_of[track[rows]]] & ~self._may_be_left(name, rows))
                times = ends = ts[rows][others]
                if name == "slices":
                    ends = times + np.maximum(self._column(name, "dur")[rows][others], 0)
                for number, here in _grouped(self._clock_of[track[rows][others]]):
                    bulks[number].add(times[here], ends[here])
        return bulks

    def leave_out(self) -> LeftOut:
        """Leave out what was found, and count it."""
        self._count()
        kept = np.ones(self._tables.slice_count, bool)
        kept[self._rows["slices"]] = False
        left_out = self._left_out(kept)
        for name, rows in self._rows.items():
            if len(rows):
                self._tables.drop(name, rows)
        self._tables.renumber_slices(left_out.numbers)
        return left_out

    def _left_out(self, kept: Mask) -> LeftOut:
        """Return what is left out, by which slices are kept."""
        gone, numbers = self._rows["slices"], np.where(kept, np.cumsum(kept) - 1, -1)
        ts, track = self._column("slices", "ts"), self._column("slices", "track")
        left_out = LeftOut(numbers, self._tracks, distinct_values(np.append(ts[gone], 0)), gone)
        places = distinct_values(left_out.place(ts[gone], track[gone]))
        for rows in chunks(len(ts)) if len(gone) else ():
            others = left_out.place(ts[rows], track[rows])[kept[rows]]
            places = places[~np.isin(places, others)]
        left_out.places = places
        return left_out

    def _count(self) -> None:
        """Count the events: a counter may have several values of one event, or repeat one that is an instant."""
        strings = self._tables.strings()
        events: list[tuple[int, str]] = []  # the first of each table, which are told
        for name, text in _TOLD.items():
            rows = self._rows[name]
            rows = rows[np.argsort(self._column(name, "origin")[rows], kind="stable")]
            origins, names = self._column(name, "origin")[rows], self._column(name, text)[rows]
            some = slice(KEPT_PLACES)
            events += zip(origins[some].tolist(), [repr(strings[at]) for at in names[some].tolist()], strict=True)
        instants, counters = (self._column(name, "origin")[self._rows[name]] for name in ("instants", "counters"))
        values = distinct_values(counters[~np.isin(counters, instants)])
        events += [(origin, "a counter") for origin in values[:KEPT_PLACES].tolist()]
        count = sum(len(self._rows[name]) for name in _TOLD) + len(values)
        balance = self._info.balance
        balance.written -= min(count, balance.written)
        for origin, name in events:
            self._info.skip(NEVER_SET, origin, name)
        if count > len(events):
            self._info.skip(NEVER_SET, count=count - len(events))
