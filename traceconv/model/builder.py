"""The interface through which importers write a trace: methods that take integer ns and return ids.

Only the builder writes tables. A time that is a float raises TypeError, since the columns take integers only. A time or
duration out of range is clamped and counted, and the original value is kept in the args of the row, if the table has
args. This holds for the methods for one event and for those for many (`Bulk`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from operator import index
from typing import Any

from traceconv.io.spill import Memory
from traceconv.model.args import AnyArgs, join_args
from traceconv.model.bulk import NOT_A_NUMBER, Bulk, mark_key
from traceconv.model.clocks import NO_TIME, ClockDomain, ClockSnapshot
from traceconv.model.collectives import Collectives
from traceconv.model.diagnostics import Balance, Code, ProblemKind, declare
from traceconv.model.drawable import possible_cpu, possible_slice, possible_ts
from traceconv.model.never_set import LeftOut, leave_out_never_set
from traceconv.model.numbers import fits_int64
from traceconv.model.paired_slices import PairedSlices
from traceconv.model.tables import Tables
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import (
    NO_CPU,
    NO_TRACK,
    ClockId,
    Frame,
    Level,
    SliceId,
    SourceInfo,
    StackId,
    Trace,
    Track,
    TrackId,
    TrackKind,
)
from traceconv.model.tracks import BEYOND, NO_NUMBER, Tracks
from traceconv.writers.metadata import is_output, ranks_of_inputs

DEFAULT_CLOCK = ClockId(0)
_TOTALS_STEP_NS = 1000
#: The end of the name of a track with rows of a table without times.
TOTALS_ENDING = " (no timeline)"
_TOTALS_HELP = "The rows have no times: they stand in the order of the table, 1 µs apart."
_LEAST, _MOST = -(2**63), 2**63 - 1

IMPOSSIBLE_WEIGHT = declare(
    "sample.impossible_weight",
    ProblemKind.REPAIRED,
    "the weight of a sample exceeds 64 bits: it was kept with the largest possible weight",
)


class Clocks:
    """The clocks of an input.

    Attributes:
        domains: the clock domains that tracks may use; the first one is the default.
        snapshots: the relations between them that the file states.
    """

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
        return self._tracks.own(track)

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
    ) -> TrackId:
        """Add a track; without an object for it, since there may be millions."""
        if number is not None and not BEYOND < number < -NO_NUMBER:
            pid, tid = (number, None) if kind is TrackKind.PROCESS else (None, number)
            return self.append(Track(kind, name, parent, pid, tid, description=description, clock=clock))
        self._tracks.add(kind, name, parent, NO_NUMBER if number is None else number, description, clock)
        return TrackId(len(self._tracks) - 1)

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
        self, name: str, parent: TrackId = NO_TRACK, *, description: str = "", clock: ClockId = DEFAULT_CLOCK
    ) -> TrackId:
        """Declare another track for slices and instants: a queue, a device, a group."""
        return self._plain(TrackKind.TRACK, name, parent, None, description, clock)

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

    Args:
        info: the input; its balance and diagnostics are filled while reading.
        clock: the clock domain of the times that the importer passes.
        memory: the memory that all inputs share.

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
        """Count a problem.

        Args:
            code: what happened.
            at: the number of the event or line, or a place in words.
            detail: what exactly was found.
            count: how many occurrences this is.
        """
        self.info.problem(code, at, detail, count)

    def skip(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem, and the event that does not reach the trace because of it."""
        self.info.skip(code, at, detail, count)

    def belongs_to(self, formats: tuple[str, ...], *, join_category: str = "") -> None:
        """State that the input holds totals only, and the formats of the recordings that they may sum up.

        Args:
            formats: names of importers; in a merge with one such input, the totals come under its process.
            join_category: set if each row describes one slice of this category: the nth row of a name the nth slice of
                that name. "" for sums.
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

        Args:
            args: a JSON object as bytes, or a dict.
            at: the number of the event or line in the input.
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
        """Add an entry of a log.

        Args:
            track: a thread, or another track that is neither process nor counter.
            source: the place in the program: "engine.cpp:77", or the name of a logger.
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

        Return what was left out; None if nothing was.
        """
        self.pair()
        self.info.written = is_output(self.metadata)
        self.info.ranks_inside = ranks_of_inputs(self.metadata) if self.info.written else ()
        return leave_out_never_set(self.tables, self.info, self.clocks.domains, self.clocks.snapshots)

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
