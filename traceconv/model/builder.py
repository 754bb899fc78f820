"""The interface through which importers write a trace: methods that take integer ns and return ids.

Only the builder writes tables. A time that is a float raises TypeError, since the columns take integers only. A time or
duration out of range is clamped and counted, and the original value is kept in the args of the row, if the table has
args. This holds for the methods for one event and for those for many (`Bulk`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.io.shown import Counted
from traceconv.io.spill import Memory
from traceconv.model.args import AnyArgs, join_args
from traceconv.model.clocks import NO_TIME, ClockDomain, ClockSnapshot
from traceconv.model.columns import I32, I64, U8
from traceconv.model.diagnostics import Balance, Code, lost, repaired
from traceconv.model.drawable import (
    LeftOut,
    beyond,
    possible_cpu,
    possible_cpus,
    possible_slice,
    possible_times,
    possible_ts,
    settle_times,
)
from traceconv.model.event_tables import PairedSlices, Tables
from traceconv.model.numbers import LIMIT_NS, fits_int64
from traceconv.model.source_info import SourceInfo
from traceconv.model.stated_collectives import Collectives
from traceconv.model.trace import NO_CPU, Frame, Level, SliceId, StackId, Trace
from traceconv.model.trace_inputs import is_output, ranks_of_inputs
from traceconv.model.track_table import BEYOND, NO_NUMBER, NO_TRACK, ClockId, Track, TrackId, TrackKind, Tracks

# -- many events at once ----------------------------------------------------------------------------------------------

Numbers = Sequence[int] | I64 | I32

NOT_A_NUMBER = lost(
    "counter.not_a_number",
    "a counter value is infinite, too large for a double, or not a number: it was left out",
)


class Bulk:
    """Adds many events to the tables of an input, given as columns of equal length.

    `name` and `category` are numbers of interned strings (`Tables.string`); `args_at` and `args_len` locate the args
    among those that were passed to `Tables.args_part` or `Tables.keep_args`.
    """

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info

    def slices(
        self,
        track: Numbers,
        ts: Numbers,
        dur: Numbers,
        name: Numbers,
        category: Numbers,
        args: Sequence[bytes],
        origin: Numbers,
    ) -> None:
        """Add slices, with the args of each as bytes. TypeError: a time or duration is not an integer."""
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            possible = [
                possible_slice(self._info, *row)
                for row in zip(map(index, ts), map(index, dur), args, origin, strict=True)
            ]
            ts, dur, args = zip(*possible, strict=True)
        lengths = np.array([len(chunk) for chunk in args], np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        self.slice_rows(
            np.asarray(track, np.int32),
            _integers(ts),
            _integers(dur),
            np.asarray(name, np.int32),
            np.asarray(category, np.int32),
            self._tables.args_part(b"".join(args)) + ends - lengths,
            lengths,
            np.asarray(origin, np.int64),
        )

    def slice_rows(
        self, track: I32, ts: I64, dur: I64, name: I32, category: I32, args_at: I64, args_len: I32, origin: I64
    ) -> None:
        """Add slices whose args were kept before."""
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            ts, dur, args_at, args_len = ts.copy(), dur.copy(), args_at.copy(), args_len.copy()
            kept = self._tables.kept_args()
            for row in np.flatnonzero(
                (dur < -LIMIT_NS) | (dur > LIMIT_NS) | beyond(ts) | (ts > LIMIT_NS - dur)
            ).tolist():
                args = kept.get(int(args_at[row]), int(args_len[row]))
                ts[row], dur[row], args = possible_slice(
                    self._info, int(ts[row]), int(dur[row]), args, int(origin[row])
                )
                args_at[row], args_len[row] = self._tables.keep_args(args)
        self._tables.extend("slices", ts, dur, track, name, category, args_at, args_len, origin)

    def begins_and_ends(
        self, track: I32, ts: I64, is_begin: U8, name: I32, category: I32, args_at: I64, args_len: I32, at: I64
    ) -> None:
        """Add starts and ends in the order of the input; an end closes the innermost open slice of its name."""
        args_len = np.where(args_len > len(b"{}"), args_len, 0).astype(np.int32)
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: mark_key(bool(is_begin[row])))
        self._tables.marks.extend(
            track, possible_times(self._info, ts, at), is_begin, name, category, args_at, args_len, at
        )
        self._tables.added(len(at))

    def instants(self, track: I32, ts: I64, name: I32, category: I32, args_at: I64, args_len: I32, at: I64) -> None:
        """Add instants."""
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: "ts_ns")
        ts = possible_times(self._info, ts, at)
        self._tables.extend("instants", ts, track, name, category, args_at, args_len, at)

    def counters(self, track: I32, ts: I64, value: I64, is_integer: U8, at: I64) -> npt.NDArray[np.bool_]:
        """Add counter values: integers where `is_integer` is 1, else the bits of a double. Return which were added."""
        doubles = np.where(is_integer, value.astype(np.float64), value.view(np.float64))
        good = np.isfinite(doubles)
        for row in np.flatnonzero(~good).tolist():
            self._info.problem(NOT_A_NUMBER, int(at[row]), str(float(doubles[row])))
        whole = np.where(is_integer, value, 0)
        ts = possible_times(self._info, ts[good], at[good])
        self._tables.extend("counters", ts, track[good], doubles[good], whole[good], is_integer[good], at[good])
        return good

    def flows(self, from_slice: Numbers, to_slice: Numbers, name: Numbers, category: Numbers, origin: Numbers) -> None:
        """Add flows between slices."""
        self._tables.extend("flows", *map(np.asarray, (from_slice, to_slice, name, category, origin)))

    def samples(self, track: I32, ts: I64, stack: I32, name: I32, weight: I64, cpu: I32, origin: I64) -> None:
        """Add samples. A `stack` of -1 is no call stack, a `cpu` of NO_CPU is unknown."""
        ts, cpu = possible_times(self._info, ts, origin), possible_cpus(self._info, cpu, origin)
        self._tables.extend("samples", ts, track, stack, name, weight, cpu, origin)

    def _told_times(self, args_at: I64, args_len: I32, ts: I64, key: Callable[[int], str]) -> tuple[I64, I32]:
        """Add the original time to the args of rows at impossible times; return the new `args_at` and `args_len`."""
        rows = np.flatnonzero(beyond(ts)).tolist()
        if rows:
            args_at, args_len, kept = args_at.copy(), args_len.copy(), self._tables.kept_args()
            for row in rows:
                args = kept.get(int(args_at[row]), int(args_len[row]))
                args_at[row], args_len[row] = self._tables.keep_args(join_args(args, {key(row): str(ts[row])}))
        return args_at, args_len


def _all_possible(ts: Numbers, dur: Numbers) -> bool:
    """Return True only if no slice needs a change; a False may be a false alarm."""
    (first, last), (shortest, longest) = _range(ts), _range(dur)
    return shortest >= 0 and longest <= LIMIT_NS and first >= -LIMIT_NS and last <= LIMIT_NS - longest


def _range(column: Numbers) -> tuple[int, int]:
    if isinstance(column, np.ndarray):
        return index(np.min(column).item()), index(np.max(column).item())
    return index(min(column)), index(max(column))


def _integers(column: Numbers) -> I64:
    values = np.asarray(column)
    if values.dtype.kind not in "iu":
        raise TypeError(f"times are integers (ns), found {values.dtype}")
    return values.astype(np.int64, copy=False)


def mark_key(is_begin: bool) -> str:
    """Return the key in args for the original time of a start or end that was clamped."""
    return "ts_ns" if is_begin else "end_ts_ns"


# -- the builder ------------------------------------------------------------------------------------------------------

DEFAULT_CLOCK = ClockId(0)
_TOTALS_STEP_NS = 1000
#: The end of the name of a track with rows of a table without times.
TOTALS_ENDING = " (no timeline)"
_TOTALS_HELP = "The rows have no times: they stand in the order of the table, 1 µs apart."
_LEAST, _MOST = -(2**63), 2**63 - 1

IMPOSSIBLE_WEIGHT = repaired(
    "sample.impossible_weight",
    "the weight of a sample exceeds 64 bits: it was kept with the largest possible weight",
)


class Clocks:
    """The clocks of an input: the domains that tracks may use, the default first, and the relations that it states."""

    def __init__(self, default: ClockDomain) -> None:
        self.domains = [default]
        self.snapshots: list[ClockSnapshot] = []

    def set_default(self, domain: ClockDomain) -> None:
        """Replace the default domain, once the importer knows the clock of the file."""
        self.domains[0] = domain

    def add(self, domain: ClockDomain) -> ClockId:
        """Declare a clock domain, and return its id; a domain that was declared before keeps its id."""
        if domain not in self.domains:
            self.domains.append(domain)
        return ClockId(self.domains.index(domain))

    def snapshot(self, snapshot: ClockSnapshot) -> None:
        """Add readings of two clocks at one instant."""
        self.snapshots.append(snapshot)


class TrackBuilder:
    """Declares the tracks of an input. `tracks[id]` is a track, which may still be changed."""

    def __init__(self, tracks: Tracks, clocks: Clocks) -> None:
        self._tracks, self._clocks = tracks, clocks

    def __getitem__(self, track: TrackId) -> Track:
        return self._tracks.changeable(track)

    def append(self, track: Track) -> TrackId:
        """Add a finished `Track`."""
        self._tracks.append(track)
        return TrackId(len(self._tracks) - 1)

    def _plain(
        self,
        kind: TrackKind,
        name: str,
        parent: TrackId,
        number: int | None,
        description: str = "",
        clock: ClockId = DEFAULT_CLOCK,
        shares_lanes: bool = False,
    ) -> TrackId:
        """Add a track; without an object for it, since there may be millions."""
        if number is not None and not BEYOND < number < -NO_NUMBER:
            pid, tid = (number, None) if kind is TrackKind.PROCESS else (None, number)
            return self.append(Track(kind, name, parent, pid, tid, description=description, clock=clock))
        number = NO_NUMBER if number is None else number
        return self._tracks.add(kind, name, parent, number, description, clock, shares_lanes=shares_lanes)

    def rename(self, track: TrackId, name: str) -> None:
        """Change the name of a track; as `tracks[id].name = name`, in less memory."""
        self._tracks.rename(track, name)

    def process(self, name: str = "", *, pid: int | None = None, description: str = "") -> TrackId:
        """Declare a process of the operating system, or a thing that the input presents as one."""
        return self._plain(TrackKind.PROCESS, name, NO_TRACK, pid, description)

    def thread(self, process: TrackId, tid: int | None, name: str = "") -> TrackId:
        """Declare a thread of a process."""
        return self._plain(TrackKind.THREAD, name, process, tid)

    def add(
        self,
        name: str,
        parent: TrackId = NO_TRACK,
        *,
        description: str = "",
        clock: ClockId = DEFAULT_CLOCK,
        shares_lanes: bool = False,
    ) -> TrackId:
        """Declare another track for slices and instants: a queue, a device, a group; see `Track.shares_lanes`."""
        return self._plain(TrackKind.TRACK, name, parent, None, description, clock, shares_lanes)

    def counter(self, name: str, parent: TrackId = NO_TRACK, *, unit: str = "", description: str = "") -> TrackId:
        """Declare a track for counter values."""
        if not unit:
            return self._plain(TrackKind.COUNTER, name, parent, None, description)
        return self.append(Track(TrackKind.COUNTER, name, parent, unit=unit, description=description))

    def totals(self, title: str, parent: TrackId = NO_TRACK, *, description: str = "") -> TrackId:
        """Declare a track for the rows of a table that has no times: sums, averages, counts."""
        words = f"{description} {_TOTALS_HELP}".strip()
        return self.add(f"{title}{TOTALS_ENDING}", parent, description=words, clock=self._clocks.add(NO_TIME))


class Builder:
    """Collects the events of one input, with a method for each kind of event.

    Attributes:
        clocks: the clock domains; call `clocks.set_default` once the file has stated its clock.
        tracks: the tracks, declared with `tracks.process`, `tracks.thread`, ...
        bulk: the methods for many events at once.
        tables: the strings, args and columns so far.
        metadata: information about the whole input: texts, numbers, or anything that JSON can hold.
        collectives: which slices are collectives; None without any.
    """

    def __init__(self, info: SourceInfo, clock: ClockDomain, memory: Memory | None = None) -> None:
        self.info = info
        self.clocks = Clocks(clock)
        self.tables = Tables(memory or Memory())
        self.tracks = TrackBuilder(self.tables.tracks, self.clocks)
        self.bulk = Bulk(self.tables, info)
        self.metadata: dict[str, Any] = {}
        self.collectives: Collectives | None = None
        self._frames: dict[Frame, StackId] = {}
        self._totals: defaultdict[TrackId, int] = defaultdict(int)  # the rows of tables without times so far, by track

    # -- what the input is ------------------------------------------------------------------------------------

    @property
    def balance(self) -> Balance:
        """The account of the events of the input; see `Balance`."""
        return self.info.balance

    def problem(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem; see `SourceInfo.problem`."""
        self.info.problem(code, at, detail, count)

    def skip(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem, and the event that does not reach the trace because of it."""
        self.info.skip(code, at, detail, count)

    def counts(self, unit: Counted, places: str = "") -> None:
        """State what of the input is counted, and what the places of events number if that is another unit."""
        self.balance.unit, self.info.unit = unit, places or unit.single

    def belongs_to(self, formats: tuple[str, ...], *, join_category: str = "") -> None:
        """State that the input holds totals only, and the formats of the recordings that they may sum up.

        In a merge with one such recording, they come under its process. With `join_category`, each row describes one
        slice of this category: the nth row of a name the nth slice of that name.
        """
        self.info.belongs_to, self.info.join_category = formats, join_category

    def note(self, text: str) -> None:
        """Add a sentence about this input that the user should read."""
        if text not in self.info.notes:
            self.info.notes.append(text)

    # -- events -----------------------------------------------------------------------------------------------

    def slice(
        self, track: TrackId, ts: int, dur: int, name: str, category: str = "", args: AnyArgs = b"", at: int = 0
    ) -> SliceId:
        """Add a slice of `dur` ns that starts at `ts` ns; return its id.

        The args are a JSON object as bytes, or a dict; `at` is the number of the event or line in the input.
        """
        if not 0 <= dur <= LIMIT_NS or not -LIMIT_NS <= ts <= LIMIT_NS - dur:
            ts, dur, args = possible_slice(self.info, ts, dur, args, at)
        tables = self.tables
        place = tables.keep_args(args)
        return tables.put_slice(ts, dur, track, tables.string(name), tables.string(category), place, at)

    def begin(self, track: TrackId, ts: int, name: str, category: str = "", args: AnyArgs = b"", at: int = 0) -> None:
        """Add the start of a slice whose end comes later. Starts and ends are paired when all events are known."""
        self._mark(track, ts, True, name, category, args, at)

    def end(self, track: TrackId, ts: int, name: str = "", args: AnyArgs = b"", at: int = 0) -> None:
        """Add an end: it closes the innermost open slice of that name, or of any name if `name` is ""."""
        self._mark(track, ts, False, name, "", args, at)

    def _mark(self, track: TrackId, ts: int, is_begin: bool, name: str, category: str, args: AnyArgs, at: int) -> None:
        possible = possible_ts(self.info, ts, at)
        if possible != ts:
            args = join_args(args, {mark_key(is_begin): str(ts)})
        tables = self.tables
        place = tables.keep_args(join_args(args, b""))
        tables.marks.add(track, possible, is_begin, tables.string(name), tables.string(category), place, at)
        tables.added(1)

    def instant(self, track: TrackId, ts: int, name: str, category: str = "", args: AnyArgs = b"", at: int = 0) -> None:
        """Add a point in time."""
        if not -LIMIT_NS <= ts <= LIMIT_NS:
            args = join_args(args, {"ts_ns": str(ts)})
            ts = possible_ts(self.info, ts, at)
        tables = self.tables
        place = tables.keep_args(args)
        tables.put("instants", ts, track, tables.string(name), tables.string(category), place, at)

    def counter(self, track: TrackId, ts: int, value: float, at: int = 0) -> bool:
        """Add a counter value that holds from `ts` (ns) to the next value of the track; return whether it was added.

        A value that is not a finite double is left out and counted as a problem.
        """
        if not _is_finite(value):
            self.problem(NOT_A_NUMBER, at, f"{value!s:.40}" if isinstance(value, float) else "more than 1.8e308")
            return False
        exact = isinstance(value, int) and fits_int64(value)
        columns = self.tables.columns["counters"]
        columns["ts"].append(ts if -LIMIT_NS <= ts <= LIMIT_NS else possible_ts(self.info, ts, at))
        columns["track"].append(track)
        columns["value"].append(float(value))
        columns["integer"].append(int(value) if exact else 0)
        columns["is_integer"].append(exact)
        columns["origin"].append(at)
        self.tables.added(1)
        return True

    def count_values(self, written: int, left_out: int) -> None:
        """Count counter events in the balance: those whose values were added, and those whose values were left out."""
        self.balance.written += written
        if left_out:
            self.info.diagnostics.add(NOT_A_NUMBER, count=0, skipped=left_out)
            self.balance.skipped[NOT_A_NUMBER.skipped] += left_out

    def flow(self, from_slice: SliceId, to_slice: SliceId, name: str = "", category: str = "", at: int = 0) -> None:
        """Add a flow between two slices."""
        columns = self.tables.columns["flows"]
        columns["from_slice"].append(from_slice)
        columns["to_slice"].append(to_slice)
        columns["name"].append(self.tables.string(name))
        columns["category"].append(self.tables.string(category))
        columns["origin"].append(at)
        self.tables.added(1)

    def log(
        self,
        track: TrackId,
        ts: int,
        text: str,
        level: Level = Level.INFO,
        source: str = "",
        args: AnyArgs = b"",
        at: int = 0,
    ) -> None:
        """Add an entry of a log, to a thread or another track that is neither process nor counter.

        The source is the place in the program, such as "engine.cpp:77", or the name of a logger.
        """
        if not -LIMIT_NS <= ts <= LIMIT_NS:
            ts = possible_ts(self.info, ts, at)
        tables = self.tables
        place = tables.keep_args(args)
        tables.put_log(ts, track, level, tables.string(text), tables.string(source), place, at)

    def totals(self, track: TrackId, name: str, category: str = "", args: AnyArgs = b"", at: int = 0) -> None:
        """Add a row of a table without times to a track of `tracks.totals`; its position is its number in the table."""
        row = self._totals[track]
        self._totals[track] += 1
        self.instant(track, row * _TOTALS_STEP_NS, name, category, args, at)

    def frame(self, name: str, category: str = "", parent: int = -1, *, named: bool = True) -> StackId:
        """Return the id of a frame of a call stack; the id also stands for the stack from the outermost frame to it."""
        frame = Frame(name, category, parent, named)
        if frame not in self._frames:
            self._frames[frame] = StackId(len(self._frames))
        return self._frames[frame]

    def sample(
        self,
        track: TrackId,
        ts: int,
        stack: StackId,
        name: str = "",
        weight: int = 1,
        at: int = 0,
        *,
        cpu: int = NO_CPU,
    ) -> None:
        """Add a sample: the call stack of a thread at a time. StackId(-1): no stack; NO_CPU: the CPU is not known."""
        weight = self._possible_weight(weight, at)
        cpu = possible_cpu(self.info, cpu, at)
        columns = self.tables.columns["samples"]
        columns["ts"].append(ts if -LIMIT_NS <= ts <= LIMIT_NS else possible_ts(self.info, ts, at))
        columns["track"].append(track)
        columns["stack"].append(stack)
        columns["name"].append(self.tables.string(name))
        columns["weight"].append(weight)
        columns["cpu"].append(cpu)
        columns["origin"].append(at)
        self.tables.added(1)

    def _possible_weight(self, weight: int, at: int) -> int:
        """Return the weight of a sample, clamped to 64 bits; a change is counted."""
        possible = max(_LEAST, min(index(weight), _MOST))
        if possible != weight:
            self.problem(IMPOSSIBLE_WEIGHT, at, str(weight))
        return possible

    # -- the end ----------------------------------------------------------------------------------------------

    def pair(self) -> None:
        """Pair the starts and ends so far into slices."""
        if len(self.tables.marks):
            PairedSlices(self.tables, self.info).add()

    def settle(self) -> LeftOut | None:
        """Pair the starts and ends so far, and leave out the events so far whose time was never set.

        Slices that end before they start get the length 0.

        Return what was left out; None if nothing was.
        """
        self.pair()
        self.info.written = is_output(self.metadata)
        self.info.ranks_inside = ranks_of_inputs(self.metadata) if self.info.written else ()
        return settle_times(self.tables, self.info, self.clocks.domains, self.clocks.snapshots)

    def finish(self) -> Trace:
        """Finish and return the trace; the builder cannot be used any more."""
        self.settle()
        args = self.tables.take_args()
        tables, mappings = self.tables.take_columns()
        self.tables.tracks.settle()
        return Trace(
            sources=[self.info],
            strings=self.tables.strings(),
            tracks=self.tables.tracks,
            clocks=self.clocks.domains,
            snapshots=self.clocks.snapshots,
            frames=list(self._frames),
            args=args,
            metadata=self.metadata,
            mappings=mappings,
            collectives=self.collectives,
            **tables,
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of a double
        return False
