"""How importers write a trace: verbs that take integer nanoseconds and return small handles.

Only the builder writes tables. A float time is a TypeError (the columns take integers only). A time or duration that
cannot be drawn is drawn as near to it as can be, counted, and kept in the args where the row has any: by verbs for one
event and by those for many alike.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.io.spill import Memory
from traceconv.model.clocks import NO_TIME, ClockDomain, ClockSnapshot
from traceconv.model.collectives import Collectives
from traceconv.model.columns import Column, finished
from traceconv.model.diagnostics import Balance, Code, ProblemKind, declare
from traceconv.model.ordering import pieces
from traceconv.model.pairing import Marks
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import (
    I32,
    I64,
    NO_CPU,
    NO_TRACK,
    TABLES,
    TIMED,
    Args,
    ClockId,
    Frame,
    Layer,
    Level,
    SliceId,
    SourceInfo,
    StackId,
    Trace,
    Track,
    TrackId,
    TrackKind,
    column_types,
)
from traceconv.model.tracks import Tracks

DEFAULT_CLOCK = ClockId(0)
_TOTALS_STEP_NS = 1000
_MANY = 64  # from so many slices on, columns are cheaper than one by one
_CHUNK = 1 << 13
_PART_BYTES = 4 << 20
#: Of args that came one at a time, so many are looked for when others come, of at most so many bytes.
_MOST_RECENT, _LONGEST_RECENT = 1 << 14, 1 << 10
#: So many rows at least: there may be thousands of small inputs, and each file takes an open file of the process.
_WORTH_A_FILE = 1 << 12
#: What a text, a track and a row that an importer keeps take, about.
_TEXT_BYTES, _TRACK_BYTES, _WAITING_BYTES = 250, 450, 48
#: After so many more rows it is looked at whether they still fit into memory.
_ROWS_BETWEEN_LOOKS = 1 << 14
_TOTALS_HELP = "The rows have no times: they stand in the order of the table, 1 µs apart."
_INT64 = range(-(2**63), 2**63)
_MAX_CPU = 2**31 - 1

UNBEGUN_END = declare(
    "slice.end_without_begin",
    ProblemKind.ABSENT,
    "an end has no begin on its track: the recording began inside the slice, so its start is unknown",
)
UNENDED = declare(
    "slice.begin_without_end",
    ProblemKind.ABSENT,
    "a begin has no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)
MISNAMED_END = declare(
    "slice.end_name_differs",
    ProblemKind.REPAIRED,
    "an end names no open slice of its track: it was taken as the end of the innermost one",
)
NEGATIVE_DURATION = declare(
    "slice.negative_duration",
    ProblemKind.REPAIRED,
    "a duration below zero (the clock stepped back): drawn with length 0, the value is kept in the args",
)

OUT_OF_RANGE = declare(
    "time.out_of_range",
    ProblemKind.REPAIRED,
    "a time or duration beyond 146 years: drawn at that limit; of slices and instants the value is kept in the args",
)

NOT_A_NUMBER = declare(
    "counter.not_a_number",
    ProblemKind.LOST,
    "a counter value is infinite, too large for a double or no number at all: it was left out",
)

IMPOSSIBLE_CPU = declare(
    "sample.impossible_cpu",
    ProblemKind.REPAIRED,
    "a sample names a CPU beyond 2^31 (a damaged or foreign value): its CPU counts as not known",
)
IMPOSSIBLE_WEIGHT = declare(
    "sample.impossible_weight",
    ProblemKind.REPAIRED,
    "a sample counts for more than 64 bits hold: it was kept with the greatest weight that they do",
)

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Builder:
    """Collects one input.

    Args:
        info: the input; its balance and diagnostics are filled while reading.
        clock: the domain of the times that the importer will hand over.
        memory: how much of it may be used.
    """

    def __init__(self, info: SourceInfo, clock: ClockDomain, memory: Memory | None = None) -> None:
        self.info = info
        self._columns = {
            table: {name: Column(dtype) for name, dtype in column_types(cls).items()} for table, cls in TABLES.items()
        }
        self._strings: dict[str, int] = {"": 0}
        self._args = bytearray()  # of events that came one at a time, since the last part
        self._memory = memory or Memory()
        self._args_parts = self._memory.parts()
        self._args_before = 0  # bytes in the parts
        self._recent_args: dict[bytes, tuple[int, int]] = {}
        self._slices = self._rows = 0
        self._look_at = _ROWS_BETWEEN_LOOKS  # rows
        self._waiting = 0  # rows that the importer itself keeps
        self._tracks = Tracks()
        self._clocks: list[ClockDomain] = []
        self._snapshots: list[ClockSnapshot] = []
        self._frames: dict[Frame, StackId] = {}
        self._metadata: dict[str, Any] = {}
        self._marks = Marks()
        self._totals: dict[TrackId, int] = {}
        self._collectives: Collectives | None = None
        self.clock(clock)

    # -- what the input is ------------------------------------------------------------------------------------

    @property
    def balance(self) -> Balance:
        """Where the events of the input went."""
        return self.info.balance

    def problem(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem.

        Args:
            code: what happened.
            at: the number of the event or line, or a place in words.
            detail: what exactly was found.
            count: how many occurrences this is.
        """
        self._count(code, at, detail, count, 0)

    def _count(self, code: Code, at: int | str, detail: str, count: int, skipped: int) -> None:
        if isinstance(at, int) and self.info.diagnostics.count_late(code, count, at, skipped):
            return
        place, number = str(at), math.inf
        if isinstance(at, int):
            place, number = f"{self.info.name}:{self.info.unit} {at}", at
        self.info.diagnostics.add(code, f"{place}: {detail}" if detail else place, count, number, skipped)

    def skip(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem because of which an event does not reach the trace."""
        self._count(code, at, detail, count, count)
        self.balance.skipped[code.skipped] += count

    def belongs_to(self, formats: tuple[str, ...], *, join_category: str = "") -> None:
        """Say that the input holds totals only, and what they may be about.

        Args:
            formats: names of importers; in a merge with one such input, the totals come under its process.
            join_category: the category of the slices that the rows are about one by one: the nth row of a name
                describes the nth slice of that name. "" for sums.
        """
        self.info.belongs_to, self.info.join_category = formats, join_category

    def of_rank(self, rank: int | None, world_size: int | None = None) -> None:
        """Say which process of a job the input records, from 0, and of how many; None for what it does not state."""
        self.info.rank, self.info.world_size = rank, world_size

    def collectives(self, collectives: Collectives) -> None:
        """Say which slices are collectives."""
        self._collectives = collectives

    def layer(self, layer: Layer) -> None:
        """Say where the slices of this input were written down, where its format alone does not tell."""
        self.info.layer = layer

    def note(self, text: str) -> None:
        """A sentence about this input that the user should read."""
        if text not in self.info.notes:
            self.info.notes.append(text)

    def metadata(self, key: str, value: Any) -> None:
        """A fact about the whole input: text, number, or anything that JSON can hold."""
        self._metadata[key] = value

    def clock(self, domain: ClockDomain) -> ClockId:
        """A domain that tracks of this input may use; the first one is the default."""
        if domain not in self._clocks:
            self._clocks.append(domain)
        return ClockId(self._clocks.index(domain))

    def set_clock(self, domain: ClockDomain) -> None:
        """Replace the default domain, once the file has said what its clock is."""
        self._clocks[0] = domain

    def snapshot(self, snapshot: ClockSnapshot) -> None:
        """Two clocks read at one instant, as the file itself says."""
        self._snapshots.append(snapshot)

    # -- tracks -----------------------------------------------------------------------------------------------

    def add_track(self, track: Track) -> TrackId:
        """Declare a track given as a whole."""
        self._tracks.append(track)
        return TrackId(len(self._tracks) - 1)

    def process(self, name: str = "", *, pid: int | None = None, description: str = "") -> TrackId:
        """A process of the operating system, or what the input presents as one."""
        return self.add_track(Track(TrackKind.PROCESS, name, pid=pid, description=description))

    def thread(self, process: TrackId, tid: int | None, name: str = "") -> TrackId:
        """A thread of a process."""
        return self.add_track(Track(TrackKind.THREAD, name, process, tid=tid))

    def track(
        self, name: str, parent: TrackId = NO_TRACK, *, description: str = "", clock: ClockId = DEFAULT_CLOCK
    ) -> TrackId:
        """Anything else that events are drawn on: a queue, a device, a group."""
        return self.add_track(Track(TrackKind.TRACK, name, parent, description=description, clock=clock))

    def counter_track(self, name: str, parent: TrackId = NO_TRACK, *, unit: str = "", description: str = "") -> TrackId:
        """A track for values."""
        return self.add_track(Track(TrackKind.COUNTER, name, parent, unit=unit, description=description))

    def totals_track(self, title: str, parent: TrackId = NO_TRACK, *, description: str = "") -> TrackId:
        """A track for the rows of a table that has no times: sums, averages, counts."""
        words = f"{description} {_TOTALS_HELP}".strip()
        track = self.track(f"{title} (no timeline)", parent, description=words, clock=self.clock(NO_TIME))
        self._totals[track] = 0
        return track

    def track_info(self, track: TrackId) -> Track:
        """The declared track, whose name, labels, rank and description may still be set."""
        return self._tracks.own(track)

    # -- events -----------------------------------------------------------------------------------------------

    def string(self, text: str) -> int:
        """The index of an interned string."""
        index = self._strings.get(text)
        if index is None:
            index = self._strings[text] = len(self._strings)
        return index

    def strings(self) -> list[str]:
        """The interned strings so far, by index."""
        return list(self._strings)

    def _put(
        self,
        columns: dict[str, Column],
        track: int,
        ts: int,
        name: int,
        category: int,
        args: tuple[int, int],
        at: int,
    ) -> None:
        """What slices and instants have in common; `args` tells where they are kept, and their length."""
        columns["ts"].append(ts)
        columns["track"].append(track)
        columns["name"].append(name)
        columns["category"].append(category)
        columns["args_at"].append(args[0])
        columns["args_len"].append(args[1])
        columns["origin"].append(at)
        self._added(1)

    def _added(self, rows: int) -> None:
        """Count rows that were added. What does not fit into memory goes to a file."""
        self._rows += rows
        if self._rows >= self._look_at:
            self._look_at = self._rows + _ROWS_BETWEEN_LOOKS
            self._tell_size()
            self._spill_columns_if_short()

    def _tell_size(self) -> None:
        """Let the memory know what is kept beside the args."""
        columns = sum(column.nbytes for column in [*self._all_columns(), *self._marks.columns.values()])
        texts = _TEXT_BYTES * len(self._strings) + _TRACK_BYTES * len(self._tracks)
        self._args_parts.rows = self._rows + self._waiting
        self._args_parts.row_bytes = columns + texts + _WAITING_BYTES * self._waiting

    def _spill_columns_if_short(self) -> None:
        if self._exceeds_memory():
            for column in [*self._all_columns(), *self._marks.columns.values()]:
                column.spill()

    def keep_args(self, args: bytes | dict[str, Any]) -> tuple[int, int]:
        """Keep the args of one or several events: where, and how long they are.

        Those that were kept lately are not kept again: a program does few different things many times.
        """
        args = _as_bytes(args)
        place = self._recent_args.get(args)
        if place is None:
            if len(self._args) > _PART_BYTES:
                self.args_part(b"")
            place = self._args_before + len(self._args), len(args)
            self._args += args
            if len(args) <= _LONGEST_RECENT:
                if len(self._recent_args) >= _MOST_RECENT:
                    self._recent_args.clear()
                self._recent_args[args] = place
        return place

    def slice(
        self,
        track: TrackId,
        ts: int,
        dur: int,
        name: str,
        category: str = "",
        args: bytes | dict[str, Any] = b"",
        at: int = 0,
    ) -> SliceId:
        """An interval of `dur` ns from `ts` ns.

        Args:
            args: a JSON object as bytes, or a dict.
            at: the number of the event or line in the input.
        """
        if not 0 <= dur <= LIMIT_NS or not -LIMIT_NS <= ts <= LIMIT_NS - dur:
            ts, dur, args = self._possible(ts, dur, args, at)
        columns = self._columns["slices"]
        columns["dur"].append(dur)
        self._put(columns, track, ts, self.string(name), self.string(category), self.keep_args(args), at)
        self._slices += 1
        return SliceId(self._slices - 1)

    def slices(
        self,
        track: Sequence[int],
        ts: Sequence[int] | I64,
        dur: Sequence[int] | I64,
        name: Sequence[int],
        category: Sequence[int],
        args: Sequence[bytes],
        origin: Sequence[int],
    ) -> None:
        """Many slices at once, as columns of equal length; `name` and `category` are interned strings.

        Raises:
            TypeError: for a time or duration that is no integer.
        """
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            possible = [self._possible(*row) for row in zip(map(index, ts), map(index, dur), args, origin, strict=True)]
            ts, dur, args = zip(*possible, strict=True)
        lengths = np.array([len(piece) for piece in args], np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        self.slice_rows(
            np.asarray(track, np.int32),
            _integers(ts),
            _integers(dur),
            np.asarray(name, np.int32),
            np.asarray(category, np.int32),
            self.args_part(b"".join(args)) + ends - lengths,
            lengths,
            np.asarray(origin, np.int64),
        )

    def slice_rows(
        self, track: I32, ts: I64, dur: I64, name: I32, category: I32, args_at: I64, args_len: I32, origin: I64
    ) -> None:
        """Many slices at once, as columns of equal length.

        Args:
            name, category: interned strings.
            args_at, args_len: where the args are, of those that `args_part` or `keep_args` was given.
        """
        if not len(ts):
            return
        if not _all_possible(ts, dur):
            ts, dur, args_at, args_len = ts.copy(), dur.copy(), args_at.copy(), args_len.copy()
            kept = self.kept_args()
            for row in np.flatnonzero((dur < 0) | (dur > LIMIT_NS) | _beyond(ts) | (ts > LIMIT_NS - dur)).tolist():
                args = kept.get(int(args_at[row]), int(args_len[row]))
                ts[row], dur[row], args = self._possible(int(ts[row]), int(dur[row]), args, int(origin[row]))
                args_at[row], args_len[row] = self.keep_args(args)
        self._extend(
            "slices",
            track=track,
            ts=ts,
            dur=dur,
            name=name,
            category=category,
            args_at=args_at,
            args_len=args_len,
            origin=origin,
        )

    def args_part(self, part: bytes | bytearray, waiting: int = 0) -> int:
        """Keep the args of many events as they are, without copying what is there; where they begin.

        Args:
            part: JSON objects, one behind the other.
            waiting: how many rows the importer itself still keeps.

        Raises:
            OutputError: they do not fit into memory, and cannot be written to a temporary file.
        """
        self._waiting = waiting
        self._tell_size()
        for one in (self._args, part):
            self._args_parts.append(one)
            self._args_before += len(one)
        self._args = bytearray()
        self._spill_columns_if_short()
        return self._args_before - len(part)

    def _exceeds_memory(self) -> bool:
        """Whether the columns have to go to a file."""
        return self._rows >= _WORTH_A_FILE and self._memory.is_short_for_columns()

    def _all_columns(self) -> list[Column]:
        return [column for columns in self._columns.values() for column in columns.values()]

    def _extend(self, table: str, **columns: npt.NDArray[Any]) -> None:
        """Append whole columns."""
        rows = len(columns["origin"])
        for name, values in columns.items():
            self._columns[table][name].put(values)
        self._slices += rows if table == "slices" else 0
        self._added(rows)

    def _possible(self, ts: int, dur: int, args: bytes | dict[str, Any], at: int) -> tuple[int, int, bytes]:
        """Start, length and args of a slice that can be drawn; what is changed is counted and kept in the args."""
        if index(dur) < 0:
            self.problem(NEGATIVE_DURATION, at)
            args = join_args(args, {"negative_dur_ns": dur})
            dur = 0
        if dur > LIMIT_NS or not -LIMIT_NS <= index(ts) <= LIMIT_NS - dur:
            self.problem(OUT_OF_RANGE, at)
            args = join_args(args, {"ts_ns": str(ts), "dur_ns": str(dur)})
            ts = _limited(ts)
            dur = min(dur, LIMIT_NS, LIMIT_NS - ts)
        return ts, dur, _as_bytes(args)

    def _possible_ts(self, ts: int, at: int) -> int:
        """The time of an event without length, likewise."""
        possible = _limited(index(ts))
        if possible != ts:
            self.problem(OUT_OF_RANGE, at, f"{ts} ns")
        return possible

    def _possible_times(self, ts: I64, at: I64) -> I64:
        """The times of many events without length, likewise."""
        beyond = np.flatnonzero(_beyond(ts))
        if not len(beyond):
            return ts
        for row in beyond.tolist():
            self._possible_ts(int(ts[row]), int(at[row]))
        return np.clip(ts, -LIMIT_NS, LIMIT_NS)

    def _told_times(self, args_at: I64, args_len: I32, ts: I64, key: Callable[[int], str]) -> tuple[I64, I32]:
        """Where the args are, once those of events at impossible times tell the time, by the key of their row."""
        beyond = np.flatnonzero(_beyond(ts)).tolist()
        if beyond:
            args_at, args_len, kept = args_at.copy(), args_len.copy(), self.kept_args()
            for row in beyond:
                args = kept.get(int(args_at[row]), int(args_len[row]))
                args_at[row], args_len[row] = self.keep_args(join_args(args, {key(row): str(ts[row])}))
        return args_at, args_len

    def slice_count(self) -> int:
        """How many slices there are so far; the next one gets this id."""
        return self._slices

    def slice_columns(self, *names: str) -> list[npt.NDArray[Any]]:
        """Some columns of the slices so far, not copied, to be read only; no slice may be added while they are in use.

        Raises:
            OutputError: they are in a temporary file that cannot be written.
        """
        return [self._columns["slices"][name].numbers() for name in names]

    def begin(
        self,
        track: TrackId,
        ts: int,
        name: str,
        category: str = "",
        args: bytes | dict[str, Any] = b"",
        at: int = 0,
    ) -> None:
        """The begin of a slice whose end comes later; paired when all events are known, in order of time."""
        self._mark(track, ts, True, name, category, args, at)

    def end(self, track: TrackId, ts: int, name: str = "", args: bytes | dict[str, Any] = b"", at: int = 0) -> None:
        """The end of the innermost open slice of that name (or of any name, when it has none)."""
        self._mark(track, ts, False, name, "", args, at)

    def _mark(
        self,
        track: TrackId,
        ts: int,
        is_begin: bool,
        name: str,
        category: str,
        args: bytes | dict[str, Any],
        at: int,
    ) -> None:
        possible = self._possible_ts(ts, at)
        if possible != ts:
            args = join_args(args, {_mark_key(is_begin): str(ts)})
        place = self.keep_args(join_args(args, b""))
        self._marks.add(track, possible, is_begin, self.string(name), self.string(category), place, at)
        self._added(1)

    def begins_and_ends(
        self,
        track: I32,
        ts: I64,
        is_begin: npt.NDArray[np.uint8],
        name: I32,
        category: I32,
        args_at: I64,
        args_len: I32,
        at: I64,
    ) -> None:
        """Many begins and ends at once, in the order of the input, as columns of equal length.

        Args:
            name, category: interned strings; the name of an end says which slice it ends, its category nothing.
            args_at, args_len: where the args are, of those that `args_part` was given.
        """
        args_len = np.where(args_len > len(b"{}"), args_len, 0).astype(np.int32)
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: _mark_key(bool(is_begin[row])))
        self._marks.extend(track, self._possible_times(ts, at), is_begin, name, category, args_at, args_len, at)
        self._added(len(at))

    def instant(
        self,
        track: TrackId,
        ts: int,
        name: str,
        category: str = "",
        args: bytes | dict[str, Any] = b"",
        at: int = 0,
    ) -> None:
        """A point in time."""
        possible = self._possible_ts(ts, at)
        if possible != ts:
            args = join_args(args, {"ts_ns": str(ts)})
        columns, place = self._columns["instants"], self.keep_args(args)
        self._put(columns, track, possible, self.string(name), self.string(category), place, at)

    def instants(self, track: I32, ts: I64, name: I32, category: I32, args_at: I64, args_len: I32, at: I64) -> None:
        """Many points in time at once, as columns of equal length.

        Args:
            name, category: interned strings.
            args_at, args_len: where the args are, of those that `args_part` was given.
        """
        args_at, args_len = self._told_times(args_at, args_len, ts, lambda row: "ts_ns")
        self._extend(
            "instants",
            track=track,
            ts=self._possible_times(ts, at),
            name=name,
            category=category,
            args_at=args_at,
            args_len=args_len,
            origin=at,
        )

    def counter(self, track: TrackId, ts: int, value: float, at: int = 0) -> bool:
        """A value that holds from `ts` until the next one of the track; False for one that was left out.

        Left out, and counted as a problem, is what no double holds.
        """
        if not _is_finite(value):
            self.problem(NOT_A_NUMBER, at, f"{value!s:.40}" if isinstance(value, float) else "more than 1.8e308")
            return False
        exact = isinstance(value, int) and value in _INT64
        columns = self._columns["counters"]
        columns["ts"].append(self._possible_ts(ts, at))
        columns["track"].append(track)
        columns["value"].append(float(value))
        columns["integer"].append(int(value) if exact else 0)
        columns["is_integer"].append(exact)
        columns["origin"].append(at)
        self._added(1)
        return True

    def counters(
        self, track: I32, ts: I64, value: I64, is_integer: npt.NDArray[np.uint8], at: I64
    ) -> npt.NDArray[np.bool_]:
        """Many values at once, as columns of equal length; which of them were not left out.

        Args:
            value: integers, and where `is_integer` is 0 the bits of doubles.
        """
        doubles = np.where(is_integer, value.astype(np.float64), value.view(np.float64))
        good = np.isfinite(doubles)
        for row in np.flatnonzero(~good).tolist():
            self.problem(NOT_A_NUMBER, int(at[row]), str(float(doubles[row])))
        self._extend(
            "counters",
            track=track[good],
            ts=self._possible_times(ts[good], at[good]),
            value=doubles[good],
            integer=np.where(is_integer, value, 0)[good],
            is_integer=is_integer[good],
            origin=at[good],
        )
        return good

    def count_values(self, written: int, left_out: int) -> None:
        """Count events of counters in the balance, by what `counter` and `counters` said of their values."""
        self.balance.written += written
        if left_out:
            self.info.diagnostics.add(NOT_A_NUMBER, count=0, skipped=left_out)
            self.balance.skipped[f"skipped ({NOT_A_NUMBER.name})"] += left_out

    def flow(self, from_slice: SliceId, to_slice: SliceId, name: str = "", category: str = "", at: int = 0) -> None:
        """An arrow between two slices."""
        columns = self._columns["flows"]
        columns["from_slice"].append(from_slice)
        columns["to_slice"].append(to_slice)
        columns["name"].append(self.string(name))
        columns["category"].append(self.string(category))
        columns["origin"].append(at)
        self._added(1)

    def flows(
        self,
        from_slice: Sequence[int] | I64,
        to_slice: Sequence[int] | I64,
        name: Sequence[int] | I64 | I32,
        category: Sequence[int] | I64 | I32,
        origin: Sequence[int] | I64,
    ) -> None:
        """Many arrows at once, as columns of equal length; `name` and `category` are interned strings."""
        columns = {"from_slice": from_slice, "to_slice": to_slice, "name": name, "category": category}
        self._extend("flows", **{key: np.asarray(one) for key, one in columns.items()}, origin=np.asarray(origin))

    def log(
        self,
        track: TrackId,
        ts: int,
        text: str,
        level: Level = Level.INFO,
        source: str = "",
        args: bytes | dict[str, Any] = b"",
        at: int = 0,
    ) -> None:
        """An entry of a log.

        Args:
            track: a thread, or another track that is neither process nor counter.
            source: where it was written: "engine.cpp:77", or the name of a logger.
        """
        columns = self._columns["logs"]
        columns["ts"].append(self._possible_ts(ts, at))
        columns["track"].append(track)
        columns["level"].append(level)
        columns["text"].append(self.string(text))
        columns["source"].append(self.string(source))
        start, length = self.keep_args(args)
        columns["args_at"].append(start)
        columns["args_len"].append(length)
        columns["origin"].append(at)
        self._added(1)

    def totals(
        self, track: TrackId, name: str, category: str = "", args: bytes | dict[str, Any] = b"", at: int = 0
    ) -> None:
        """A row of a table without times, on a track made by `totals_track`; its place is its number in the table."""
        row = self._totals[track]
        self._totals[track] += 1
        self.instant(track, row * _TOTALS_STEP_NS, name, category, args, at)

    def frame(self, name: str, category: str = "", parent: int = -1) -> StackId:
        """A frame of a call stack; its id also stands for the stack that ends in it."""
        frame = Frame(name, category, parent)
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
        """The call stack of a thread at a point in time; StackId(-1) where there is none, NO_CPU where nobody knows."""
        weight = self._possible_weight(weight, at)
        if not NO_CPU <= cpu <= _MAX_CPU:
            self.problem(IMPOSSIBLE_CPU, at, str(cpu))
            cpu = NO_CPU
        columns = self._columns["samples"]
        columns["ts"].append(self._possible_ts(ts, at))
        columns["track"].append(track)
        columns["stack"].append(stack)
        columns["name"].append(self.string(name))
        columns["weight"].append(weight)
        columns["cpu"].append(cpu)
        columns["origin"].append(at)
        self._added(1)

    def samples(self, track: I32, ts: I64, stack: I32, name: I32, weight: I64, cpu: I32, origin: I64) -> None:
        """Many samples at once, as columns of equal length.

        A `stack` of -1 is none, a `cpu` is NO_CPU or a number that a column holds, `name` is an interned string.
        """
        possible = self._possible_times(ts, origin)
        self._extend("samples", track=track, ts=possible, stack=stack, name=name, weight=weight, cpu=cpu, origin=origin)

    def _possible_weight(self, weight: int, at: int) -> int:
        """The weight of a sample, or the nearest one that the column holds."""
        possible = max(_INT64[0], min(index(weight), _INT64[-1]))
        if possible != weight:
            self.problem(IMPOSSIBLE_WEIGHT, at, str(weight))
        return possible

    # -- the end ----------------------------------------------------------------------------------------------

    def first_ts(self) -> int:
        """The first instant seen so far, ns; 0 when there is none."""
        earliest = [int(np.min(table["ts"].numbers())) for table in self._timed_tables()]
        return min([*earliest, *self._marks.span()], default=0)

    def last_ts(self) -> int:
        """The last instant seen so far, ns; 0 when there is none."""
        slices = self._columns["slices"]
        latest = [int(np.max(table["ts"].numbers())) for table in self._timed_tables()]
        if len(slices["ts"]):
            ts, dur = slices["ts"].numbers(), slices["dur"].numbers()
            latest += [int(np.max(ts[rows] + dur[rows])) for rows in pieces(len(ts))]
        return max([*latest, *self._marks.span()], default=0)

    def _timed_tables(self) -> list[dict[str, Column]]:
        tables = [self._columns[table] for table in TIMED]
        return [table for table in tables if len(table["ts"])]

    def pair(self) -> None:
        """Turn the begins and ends so far into slices."""
        if not len(self._marks):
            return
        close_at = self.last_ts()
        first, last = self._marks.span()
        marks, self._marks = self._marks, Marks()
        self._rows -= len(marks)
        self._look_at = self._rows + _ROWS_BETWEEN_LOOKS
        marks.settle()
        kept = self.kept_args()
        begin, end, misnamed = marks.pairs()
        texts = self.strings()
        # Whole pairs go in together.
        is_plain = np.zeros(len(begin), bool)
        if last - first <= LIMIT_NS:
            lengths = np.frombuffer(marks.args_len, np.int32)
            for rows in pieces(len(begin)):
                is_plain[rows] = (begin[rows] >= 0) & (end[rows] >= 0) & ~misnamed[rows] & (lengths[end[rows]] == 0)
        done = 0
        for odd in np.flatnonzero(~is_plain).tolist():
            self._slices_of_marks(marks, begin[done:odd], end[done:odd], kept)
            self._odd_pair(marks, int(begin[odd]), int(end[odd]), bool(misnamed[odd]), close_at, kept, texts)
            done = odd + 1
        self._slices_of_marks(marks, begin[done:], end[done:], kept)

    def kept_args(self) -> Args:
        """All args so far, to be read while others are added."""
        self.args_part(b"")
        return Args(self._args_parts.so_far())

    def _odd_pair(
        self, marks: Marks, begin: int, end: int, misnamed: bool, close_at: int, kept: Args, texts: Sequence[str]
    ) -> None:
        if begin < 0:
            name = texts[marks.name[end]]
            self.skip(UNBEGUN_END, marks.at[end], repr(name) if name else "")
            return
        name = texts[marks.name[begin]]
        if end < 0:
            self.problem(UNENDED, marks.at[begin], repr(name))
            self._slice_of_marks(marks, begin, close_at, kept, b'{"unfinished":true}')
            return
        if misnamed:
            self.problem(MISNAMED_END, marks.at[end], f"{texts[marks.name[end]]!r} ends {name!r}")
        more_args = kept.get(marks.args_at[end], marks.args_len[end])
        self._slice_of_marks(marks, begin, marks.ts[end], kept, more_args)
        self.balance.merged["ends joined to their begin"] += 1

    def _slices_of_marks(self, marks: Marks, begins: I64, ends: I64, kept: Args) -> None:
        """The slices of whole pairs, all at once if there are many."""
        if len(begins) < _MANY:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                self._slice_of_marks(marks, begin, marks.ts[end], kept, b"")
        else:
            for at in range(0, len(begins), _CHUNK):
                self._extend("slices", **marks.plain_pairs(begins[at : at + _CHUNK], ends[at : at + _CHUNK])._asdict())
                marks.forget()
            self.balance.written += len(begins)
        if len(begins):
            self.balance.merged["ends joined to their begin"] += len(begins)

    def _slice_of_marks(self, marks: Marks, begin: int, end_ts: int, kept: Args, more_args: bytes) -> None:
        """The slice of a begin, whose args are among those of the trace already."""
        ts, dur, at = marks.ts[begin], end_ts - marks.ts[begin], marks.at[begin]
        place = marks.args_at[begin], marks.args_len[begin]
        if more_args or dur > LIMIT_NS:
            ts, dur, args = self._possible(ts, dur, join_args(kept.get(*place), more_args), at)
            place = self.keep_args(args)
        self.balance.written += 1
        columns = self._columns["slices"]
        columns["dur"].append(dur)
        self._put(columns, marks.track[begin], ts, marks.name[begin], marks.category[begin], place, at)
        self._slices += 1

    def finish(self) -> Trace:
        """The trace as it stands. The builder is used up."""
        self.pair()
        self.args_part(b"")
        arrays, mappings = self._finished_columns()
        tables = {
            table: cls(**dict(zip(column_types(cls), arrays[table], strict=True))) for table, cls in TABLES.items()
        }
        return Trace(
            sources=[self.info],
            strings=list(self._strings),
            tracks=self._tracks,
            clocks=self._clocks,
            snapshots=self._snapshots,
            frames=list(self._frames),
            args=Args(self._args_parts.take()),
            metadata=self._metadata,
            mappings=mappings,
            collectives=self._collectives,
            **tables,
        )

    def _finished_columns(self) -> tuple[dict[str, list[npt.NDArray[Any]]], tuple[mmap.mmap, ...]]:
        """The columns of each table, which alone hold them from here on; and the files that they are in, if any."""
        columns = self._all_columns()
        in_file = self._exceeds_memory() or any(column.is_spilled for column in columns)
        arrays, mappings = finished(columns, in_file=in_file)
        each = iter(arrays)
        tables = {table: [next(each) for _ in columns] for table, columns in self._columns.items()}
        self._columns = {}
        return tables, mappings


def _all_possible(ts: Sequence[int] | I64, dur: Sequence[int] | I64) -> bool:
    """Whether no slice needs a change; may doubt, but is never wrong about it."""
    (first, last), (shortest, longest) = _range(ts), _range(dur)
    return shortest >= 0 and longest <= LIMIT_NS and first >= -LIMIT_NS and last <= LIMIT_NS - longest


def _range(column: Sequence[int] | I64) -> tuple[int, int]:
    if isinstance(column, np.ndarray):
        return index(np.min(column)), index(np.max(column))
    return index(min(column)), index(max(column))


def _integers(column: Sequence[int] | I64) -> I64:
    found = np.asarray(column)
    if found.dtype.kind not in "iu":
        raise TypeError(f"times are integers (ns), found {found.dtype}")
    return found.astype(np.int64, copy=False)


def _beyond(ts: I64) -> npt.NDArray[np.bool_]:
    """Which times cannot be drawn."""
    return (ts < -LIMIT_NS) | (ts > LIMIT_NS)


def _mark_key(is_begin: bool) -> str:
    """What args call the time of a begin or end that cannot be drawn there."""
    return "ts_ns" if is_begin else "end_ts_ns"


def _limited(ts: int) -> int:
    return max(-LIMIT_NS, min(ts, LIMIT_NS))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no double holds
        return False


def _as_bytes(args: bytes | dict[str, Any]) -> bytes:
    if not isinstance(args, dict):
        return args
    encoded = _encode(args) if args else b""
    # JSON has no words for infinity and NaN, and msgspec writes null; as text they stay what they are.
    return _encode(_with_text(args)) if b"null" in encoded else encoded


def _with_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_text(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def join_args(first: bytes | dict[str, Any], second: bytes | dict[str, Any]) -> bytes:
    """One JSON object with the members of both; of a key that both have, readers take the second."""
    one, two = _as_bytes(first).strip(), _as_bytes(second).strip()
    if len(one) <= 2 or not one[1:-1].strip():
        return two
    if len(two) <= 2 or not two[1:-1].strip():
        return one
    return one[:-1] + b"," + two[1:]
