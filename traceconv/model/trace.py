"""The trace in memory: one table per concept, one column per field, strings interned, args undecoded.

A row refers to its track, name and category by small integers. Args are the bytes of a JSON object, as the importer
passed them; they are decoded only where they are needed. Each row has an origin: the number of the event, line or row
in the input that its track belongs to.
"""

from __future__ import annotations

import enum
import math
import mmap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NewType, Self, TypeVar

import numpy as np
import numpy.typing as npt

from traceconv.errors import UsageError
from traceconv.io.shown import Counted, quantity
from traceconv.io.spill import forget
from traceconv.model.arg_bytes import Args
from traceconv.model.clocks import ClockDomain, ClockSnapshot
from traceconv.model.collectives import Collectives
from traceconv.model.counted import COUNTER_VALUES, FLOWS, INSTANTS, LOG_ENTRIES, SAMPLES, SLICES, TRACKS
from traceconv.model.diagnostics import Balance, Code, Diagnostics, ProblemKind
from traceconv.model.forms import Form
from traceconv.model.marks import NO_MARKS, FormatMarks
from traceconv.model.ordering import chunks
from traceconv.model.placing import Placing
from traceconv.model.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow

    from traceconv.model.tracks import Tracks

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]

TrackId = NewType("TrackId", int)
SliceId = NewType("SliceId", int)
ClockId = NewType("ClockId", int)
StackId = NewType("StackId", int)
NO_TRACK = TrackId(-1)
#: The time that is before all others, and the one that is after all others, ns.
EVER, FOREVER = -(2**63), 2**63 - 1
NO_CPU = -1


class Level(enum.IntEnum):
    """The level of a log entry; the numbers are those of Android's and Perfetto's log priorities."""

    VERBOSE = 2
    DEBUG = 3
    INFO = 4
    WARNING = 5
    ERROR = 6
    FATAL = 7


class TrackKind(enum.IntEnum):
    """The kind of a track.

    PROCESS and THREAD are those of the operating system, COUNTER holds values, TRACK is anything else: a device queue,
    a lane, a group of tracks.
    """

    PROCESS = 0
    THREAD = 1
    TRACK = 2
    COUNTER = 3


@dataclass(slots=True)
class Track:
    """A row of the timeline, or a group of rows.

    Attributes:
        kind: process, thread, counter, or anything else.
        name: the name, "" if that of a process or thread is not known.
        parent: the track that it belongs to, declared before it; NO_TRACK at the top.
        pid: PROCESS only: the number of the operating system, None if there is none.
        tid: THREAD only: the number of the operating system, None if there is none.
        unit: COUNTER only: "bytes", "count", ...
        description: help text, shown beside the track.
        rank: position among its siblings; smaller is higher, None comes last in order of creation.
        labels: PROCESS only: short remarks beside the name.
        clock: the domain of the times on it, an index into Trace.clocks.
        source: the input that it comes from, an index into Trace.sources.
        carries: in a merge, where a thread that several inputs record is one track: a table, an input, and the time
            (ns) from which the rows of that table on this track are of that input, in order of time; before, and in
            other tables, rows are of `source`.
        lane_of: set on an overflow lane: the track whose overlapping slices it takes.
        shares_lanes: whether the track may be put on one lane with others of the same name and parent that do not
            overlap it in time (used for asynchronous operations, which have a track for each id).
        unknown: PROCESS only: whether it stands for the unknown processes of its threads.
        shown: the name in pictures, if it differs; "" for `name`.
        name_in_rank: the name below a process that names the rank of the input, if it differs; "" for `name`.
        doubts: why its place in time is uncertain, such as "not aligned"; pictures show it behind the name. It is set
            on the topmost tracks of a clock.
        stated: in an output of traceconv that was read: its input, an index into `SourceInfo.stated`.
        stated_carries: in such an output: as `carries`, with indices into `SourceInfo.stated`.
        invented: PROCESS only, in such an output: whether the pid was made up for pictures.
        synthetic: whether its times are synthetic although its clock is not: in a merge, all tracks have one clock.
    """

    kind: TrackKind
    name: str
    parent: TrackId = NO_TRACK
    pid: int | None = None
    tid: int | None = None
    unit: str = ""
    description: str = ""
    rank: int | None = None
    labels: tuple[str, ...] = ()
    clock: ClockId = ClockId(0)
    source: int = 0
    carries: tuple[tuple[str, int, int], ...] = ()
    lane_of: TrackId = NO_TRACK
    shares_lanes: bool = False
    unknown: bool = False
    shown: str = ""
    name_in_rank: str = ""
    doubts: tuple[str, ...] = ()
    stated: int = 0
    stated_carries: tuple[tuple[str, int, int], ...] = ()
    invented: bool = False
    synthetic: bool = False

    @property
    def source_of_slices(self) -> int:
        """The input that the slices on it come from; of several the first one."""
        return next((source for name, source, since in self.carries if name == "slices" and since == EVER), self.source)

    def inputs_over_time(self, table: str) -> list[tuple[int, int]]:
        """Return the inputs of the rows of a table on it, each with the time (ns) from which rows are of it."""
        return [(EVER, self.source), *((since, source) for name, source, since in self.carries if name == table)]


def processes(tracks: Tracks) -> I64:
    """Return the process of each track, as the number of a track; the topmost track above it if it has none."""
    parent, own = tracks.column("parent"), np.arange(len(tracks))
    return topmost(np.where((parent == NO_TRACK) | (tracks.column("kind") == TrackKind.PROCESS), own, parent))


def topmost(above: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return for each track the one at the top of it, given the one above each; one at the top is above itself."""
    top = above
    while not np.array_equal(higher := top[top], top):
        top = higher
    return top


class Events(Tabular):
    """The columns of one table of events; those of a trace (`trace.slices`) convert to data frames."""

    __slots__ = ("_trace",)

    def of(self, trace: Trace | None) -> Self:
        """Return a copy that refers to the trace; the columns are shared."""
        table = type(self)(*(getattr(self, name) for name in type(self).__slots__))
        object.__setattr__(table, "_trace", trace)
        return table

    def to_arrow(self) -> pyarrow.Table:
        """Return the table of `traceconv.frames`, with texts, tracks and args: on one clock, by track and time.

        Raises:
            UsageError: pyarrow is not installed, or these columns belong to no trace, or to one without `table_of`.
            UnrelatedClocks: the trace is on several clocks that nothing relates.
        """
        trace = getattr(self, "_trace", None)
        if trace is None:
            raise UsageError("these columns belong to no trace, so their texts and tracks are not known")
        name = next(name for name, table in TABLES.items() if isinstance(self, table))
        if trace.table_of is None:
            hint = f"traceconv.frames(trace).{name} has them"
            raise UsageError("the trace of these columns was not returned by traceconv.read or merge", hint=hint)
        table: pyarrow.Table = trace.table_of(trace, name)
        return table

    def __repr__(self) -> str:
        """Return the number of rows, and the names of the columns."""
        columns = type(self).__slots__
        return f"<{type(self).__name__}: {len(getattr(self, columns[0]))} rows: {', '.join(columns)}>"


@dataclass(frozen=True, slots=True, repr=False)
class Slices(Events):
    """Intervals: [ts, ts + dur) in ns. `args_at`, `args_len` locate the args in Trace.args; length 0 is none."""

    ts: I64
    dur: I64
    track: I32
    name: I32
    category: I32
    args_at: I64
    args_len: I32
    origin: I64


@dataclass(frozen=True, slots=True, repr=False)
class Instants(Events):
    """Points in time, ns."""

    ts: I64
    track: I32
    name: I32
    category: I32
    args_at: I64
    args_len: I32
    origin: I64


@dataclass(frozen=True, slots=True, repr=False)
class Counters(Events):
    """Counter values; each holds until the next one of its track.

    Where `is_integer` is 1, `integer` is the exact value; `value` always holds the nearest double.
    """

    ts: I64
    track: I32
    value: F64
    integer: I64
    is_integer: npt.NDArray[np.uint8]
    origin: I64


@dataclass(frozen=True, slots=True, repr=False)
class Flows(Events):
    """Flows between two slices, which are rows of the slices table."""

    from_slice: I64
    to_slice: I64
    name: I32
    category: I32
    origin: I64


@dataclass(frozen=True, slots=True, repr=False)
class Samples(Events):
    """Call stacks of a thread at points in time.

    `stack` is the innermost frame in Trace.frames, -1 for none; `cpu` is the number of the CPU, NO_CPU if not known.
    """

    ts: I64
    track: I32
    stack: I32
    name: I32
    weight: I64
    cpu: I32
    origin: I64


@dataclass(frozen=True, slots=True, repr=False)
class Logs(Events):
    """Log entries; `source` is the place in the program that wrote the entry, "" if not known."""

    ts: I64
    track: I32
    level: I32
    text: I32
    source: I32
    args_at: I64
    args_len: I32
    origin: I64


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a call stack in a tree.

    Attributes:
        name: of the function; an address if it is not known.
        category: the file that its code is in.
        parent: the index of its caller, -1 for the outermost.
        named: whether the name is that of a function.
    """

    name: str
    category: str
    parent: int
    named: bool = True


TABLES = {
    "slices": Slices,
    "instants": Instants,
    "counters": Counters,
    "flows": Flows,
    "samples": Samples,
    "logs": Logs,
}
#: The tables whose rows have a time and a track.
TIMED = ("slices", "instants", "counters", "samples", "logs")
#: The columns that hold interned strings.
TEXTS = ("name", "category", "text", "source")
_TYPES: dict[str, Any] = {
    "I64": np.int64,
    "I32": np.int32,
    "F64": np.float64,
    "npt.NDArray[np.uint8]": np.uint8,
}


_Number = TypeVar("_Number", np.int32, np.int64)
Table = TypeVar("Table", Slices, Instants, Counters, Flows, Samples, Logs)


def column_types(table: type[Any]) -> dict[str, Any]:
    """Return the numpy type of each column of a table."""
    return {column.name: _TYPES[str(column.type)] for column in fields(table)}


def empty(table: type[Table]) -> Table:
    """Return a table without rows."""
    return table(**{name: np.empty(0, dtype) for name, dtype in column_types(table).items()})


def take(table: Table, rows: npt.NDArray[Any]) -> Table:
    """Return the given rows of a table, in that order."""
    return type(table)(*(getattr(table, column.name)[rows] for column in fields(table)))


class Layer(enum.IntEnum):
    """The layer of the software stack that the slices of a format are recorded in, outermost first.

    A slice of a framework contains the calls of the library below it, on the same thread. Device work runs when its
    queue reaches it, and lies inside no host call for certain.
    """

    FRAMEWORK = 1
    LIBRARY = 2
    DEVICE = 3


@dataclass(slots=True)
class SourceInfo:
    """One input of a trace, with its balance and diagnostics.

    Attributes:
        name: the file as the user named it, without folders.
        format: the name of the importer.
        unit: the unit of `origin`: "event", "line", "row".
        notes: sentences about the input for the user, such as an assumption about its times.
        belongs_to: if the input holds totals only: the formats of the recordings that these may sum up.
        join_category: the category of the slices of that recording that the rows describe one by one; "" if rows are
            sums.
        runs_in: if the input states no process: the formats that record processes in which its recorder can run.
        real_ids: whether pids and tids are those of the operating system.
        several_at_once: whether a process can have several such recordings at the same time, such as logs, or those of
            tools outside the process.
        boot_id: the boot session that it was recorded in, as the system names it; "" if not stated.
        rank: the rank of the recorded process in its job, from 0; None if the input states none or several.
        world_size: the number of processes of that job; None if not stated.
        layer: the layer that its slices are recorded in; None if the format does not declare one.
        marks: the declarations of its format about slices and flows.
        without_periods: the names of samples whose periods are not stated, so that each has the weight 1.
        sampled: in a trace of several inputs: the names of its samples, which may be on threads of other inputs.
        stated: of an output of traceconv: its inputs, as far as answers need them; () if they are not stated.
        written: whether traceconv wrote the file: it can hold inputs whose clock bounds are not known, unless `stated`.
        ranks_inside: of an output of traceconv: the ranks of its inputs.
        form: the form of its recording that it is; None if its format has only one.
        placings: of an input that an output of traceconv states: how it was placed in the outputs that held it,
            innermost first; () for others.
        path: the file as the user named it, with folders, for commands in hints; "" if equal to `name`.
        digest: a hash of the unpacked content; b"" if no other input has the same start.
        fingerprint: the size and a checksum of the file as it is stored, by which copies of it are known; "" for a
            stream.
        room: the most bytes that an output may take for it, since none needs so many; 0 for no limit.
    """

    name: str
    format: str
    unit: str = "event"
    balance: Balance = field(default_factory=Balance)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    notes: list[str] = field(default_factory=list)
    belongs_to: tuple[str, ...] = ()
    join_category: str = ""
    runs_in: tuple[str, ...] = ()
    real_ids: bool = False
    several_at_once: bool = False
    boot_id: str = ""
    rank: int | None = None
    world_size: int | None = None
    layer: Layer | None = None
    marks: FormatMarks = NO_MARKS
    without_periods: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()
    stated: tuple[SourceInfo, ...] = ()
    written: bool = False
    ranks_inside: tuple[int, ...] = ()
    form: Form | None = None
    placings: tuple[Placing, ...] = ()
    path: str = ""
    digest: bytes = b""
    fingerprint: str = ""
    room: int = 0

    @property
    def place_in_job(self) -> str:
        """For messages: "rank 3 of 8", "rank 3", or "" if the input states none."""
        if self.rank is None:
            return ""
        return f"rank {self.rank}" if self.world_size is None else f"rank {self.rank} of {self.world_size}"

    def problem(self, code: Code, at: int | str = "", detail: str = "", count: int = 1, skipped: int = 0) -> None:
        """Count a problem.

        Args:
            code: what happened.
            at: the number of the event or line, or a position in words.
            detail: what exactly was found.
            count: how many occurrences this is.
            skipped: how many events do not reach the trace because of it; the caller counts them in the balance.
        """
        if isinstance(at, int) and self.diagnostics.count_late(code, count, at, skipped):
            return
        place, number = str(at), math.inf
        if isinstance(at, int):
            place, number = f"{self.name}:{self.unit} {at}", at
        self.diagnostics.add(code, f"{place}: {detail}" if detail else place, count, number, skipped)

    def skip(self, code: Code, at: int | str = "", detail: str = "", count: int = 1) -> None:
        """Count a problem, and in the balance the events that do not reach the trace because of it; see `problem`."""
        self.problem(code, at, detail, count, count)
        self.balance.skipped[code.skipped] += count

    def copy(self) -> SourceInfo:
        """Return a copy whose balance, diagnostics and notes can be changed independently."""
        diagnostics = Diagnostics()
        diagnostics.extend(self.diagnostics)
        return replace(self, balance=self.balance.copy(), diagnostics=diagnostics, notes=list(self.notes))


#: The most names of inputs, and of clocks, in the summary of a trace.
_MOST_NAMES = 3


@dataclass
class Trace:
    """The events of one or several inputs, in columns.

    Attributes:
        mappings: the mapped temporary files of the columns, if they are in files.
        collectives: the declared collectives of an input; None without any, and in a trace of several inputs.
        left_out: the files of folders and archives that were not read, with the reason.
        one_machine: whether the user states that all inputs are of one machine.
        receipt: how the clocks of its inputs were put on its time, by `traceconv.align`; () if they were not.
        table_of: returns one of its tables, by name, as an Arrow table on one clock. It needs the alignment, about
            which nothing is known here, so the functions of the library that return the trace set it; else None.
    """

    sources: list[SourceInfo]
    strings: Sequence[str]
    tracks: Tracks
    clocks: list[ClockDomain]
    snapshots: list[ClockSnapshot]
    slices: Slices
    instants: Instants
    counters: Counters
    flows: Flows
    samples: Samples
    logs: Logs
    frames: list[Frame]
    args: Args
    metadata: dict[str, Any]
    mappings: tuple[mmap.mmap, ...] = ()
    collectives: Collectives | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    one_machine: bool = False
    receipt: tuple[Any, ...] = ()
    table_of: Callable[[Trace, str], Any] | None = None

    def __repr__(self) -> str:
        """Return five lines: the inputs, the counts of events, the clocks, the time span and the problems."""
        names = [repr(source.name) for source in self.sources]
        inputs = ", ".join(names[:_MOST_NAMES]) + (
            f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
        )
        counts = self.counts() | {TRACKS: len(self.tracks)}
        span, problems = self.span(), Counter[str]()
        for source in self.sources:
            for entry in source.diagnostics:
                problems[entry.code.kind.value if entry.code.kind else "unknown"] += entry.count
        return "\n ".join(
            (
                f"<Trace of {inputs or 'no input'}",
                "events: " + (", ".join(quantity(count, kind) for kind, count in counts.items() if count) or "none"),
                "clocks: " + (", ".join(domain.name for domain in self.clocks[:_MOST_NAMES]) or "none"),
                "span: " + (f"{(span[1] - span[0]) / 1e6:.6f} ms, from {span[0]} ns" if span else "none"),
                "problems: " + (", ".join(f"{count} {kind}" for kind, count in problems.items()) or "none") + ">",
            )
        )

    @property
    def host(self) -> str:
        """The host that the input states, "" if it states none."""
        stated = (domain.host for domain in [*self.clocks, *(snap.other for snap in self.snapshots)])
        return next(filter(None, stated), "")

    def place(self, track: int, origin: int) -> str:
        """Return the position of a row in its input, for messages: "profile.json:event 12"."""
        source = self.sources[self.tracks[track].source]
        return f"{source.name}:{source.unit} {origin}"

    def place_of_slice(self, row: int) -> str:
        """Return the position of a slice in its input, for messages."""
        return self.place(int(self.slices.track[row]), int(self.slices.origin[row]))

    def counts(self) -> dict[Counted, int]:
        """Return the number of events of each kind."""
        return {
            SLICES: len(self.slices.ts),
            INSTANTS: len(self.instants.ts),
            COUNTER_VALUES: len(self.counters.ts),
            FLOWS: len(self.flows.from_slice),
            SAMPLES: len(self.samples.ts),
            LOG_ENTRIES: len(self.logs.ts),
        }

    def losses(self) -> list[str]:
        """Return a line for each kind of loss in reading an input."""
        return [
            f"{source.name}: {entry.message()}"
            for source in self.sources
            for entry in source.diagnostics
            if entry.code.kind is ProblemKind.LOST
        ]

    def timed_tables(self) -> Iterator[tuple[str, Any]]:
        """Return the tables whose rows have a time and a track, by name."""
        return ((name, getattr(self, name)) for name in TIMED)

    def span(self) -> tuple[int, int] | None:
        """Return the first and the last time of all events, ns; None without events."""
        firsts, lasts = [], []
        for name, table in self.timed_tables():
            for rows in chunks(len(table.ts)):
                ts = table.ts[rows]
                firsts.append(int(np.min(ts)))
                lasts.append(int(np.max(ts + table.dur[rows] if name == "slices" else ts)))
                self.forget()
        return (min(firsts), max(lasts)) if firsts else None

    def extents(self, tables: Sequence[str] = TIMED) -> tuple[I64, I64]:
        """Return the first and the last time (ns) of the events in the given tables, by track; without any, reversed.

        The trace must be laid out: each table sorted by track and time.
        """
        firsts, lasts = np.full(len(self.tracks), FOREVER), np.full(len(self.tracks), EVER)
        for name in tables:
            table = getattr(self, name)
            for rows in chunks(len(table.ts)):
                track, ts = table.track[rows], table.ts[rows]
                first = np.append(0, np.flatnonzero(np.diff(track)) + 1)
                ends = ts + table.dur[rows] if name == "slices" else ts
                own = track[first]
                firsts[own] = np.minimum(firsts[own], ts[first])
                lasts[own] = np.maximum(lasts[own], np.maximum.reduceat(ends, first))
                self.forget()
        return firsts, lasts

    def forget(self) -> None:
        """Drop the resident pages of columns and args in files; the next access loads them again."""
        self.args.forget()
        for mapping in self.mappings:
            forget(mapping)

    def with_tables(self, **tables: Any) -> Trace:
        """Return a shallow copy with the given fields replaced."""
        return replace(self, **tables)


class _OfTrace:
    """A table of a trace. Reading it binds it to the trace.

    Storing that reference would tie both into a cycle, which keeps their memory until the garbage collector runs.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, trace: Trace | None, owner: type[Trace]) -> Events | _OfTrace:
        if trace is None:  # read on the class
            return self
        table: Events = vars(trace)[self._name]
        return table.of(trace)

    def __set__(self, trace: Trace, table: Events) -> None:
        vars(trace)[self._name] = table.of(None)


for _name in TABLES:  # not in the class, where a dataclass would take them for defaults
    setattr(Trace, _name, _OfTrace(_name))
