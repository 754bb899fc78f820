"""The trace in memory: one table per concept, one column per field, strings interned, args undecoded.

A row refers to its track, name and category by small integers. Args are the bytes of a JSON object, as the importer
passed them; they are decoded only where they are needed. Each row has an origin: the number of the event, line or row
in the input that its track belongs to.
"""

from __future__ import annotations

import enum
import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NewType, Self, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.errors import TraceconvError, UsageError
from traceconv.io.shown import Counted, quantity
from traceconv.io.spill import forget
from traceconv.model.args import Args
from traceconv.model.clocks import ClockDomain, ClockSnapshot
from traceconv.model.columns import F64, I32, I64, chunks, occurring
from traceconv.model.diagnostics import (
    COUNTER_VALUES,
    FLOWS,
    INSTANTS,
    LOG_ENTRIES,
    SAMPLES,
    SLICES,
    TRACKS,
    ProblemKind,
)
from traceconv.model.numbers import EVER, FOREVER
from traceconv.model.source_info import SourceInfo
from traceconv.model.stated_collectives import Collectives
from traceconv.model.track_table import Tracks

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from traceconv.answers.picture import Picture


# -- tables -----------------------------------------------------------------------------------------------------------

_MOST_HTML_ROWS = 50
#: Why a trace cannot do what needs the library.
_NOT_OURS = "was not returned by traceconv.read or merge"


def needed(module: str, extra: str) -> Any:
    """Return a module of an optional package. UsageError: it is not installed; the hint tells how."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        name = module.partition(".")[0]
        raise UsageError(f"{name} is not installed", hint=f"pip install 'traceconv[{extra}]'") from None


class Tabular:
    """A table that converts to data frames. Columns of times are integer ns, and their names end in `_ns`."""

    __slots__ = ()

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table. UsageError: pyarrow is not installed, here and below."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame. A column of integers with unknown values has them as objects, exactly."""
        needed("pandas", "pandas")
        return self.to_arrow().to_pandas(integer_object_nulls=True)

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars frame."""
        frame: polars.DataFrame = needed("polars", "polars").from_arrow(self.to_arrow())
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the table as a PyCapsule of Arrow's C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str | None:
        """Return the first rows as an HTML table, for notebooks; None, for which they show the repr, without one.

        So it is where Python has no such value, as for dates after the year 9999.
        """
        try:
            table = self.to_arrow()
            cells = [column.to_pylist() for column in table.slice(0, _MOST_HTML_ROWS).columns]
        except (TraceconvError, OverflowError, ValueError):
            return None
        return html_table(table.column_names, zip(*cells, strict=True), table.num_rows)


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """Return the first rows as an HTML table, with texts escaped; `count` is the number of all rows."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in islice(rows, _MOST_HTML_ROWS)
    )
    rest = f"<p>{count - _MOST_HTML_ROWS} more rows</p>" if count > _MOST_HTML_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


# -- traces -----------------------------------------------------------------------------------------------------------


SliceId = NewType("SliceId", int)
StackId = NewType("StackId", int)
NO_CPU = -1


class Level(enum.IntEnum):
    """The level of a log entry; the numbers are those of Android's and Perfetto's log priorities."""

    VERBOSE = 2
    DEBUG = 3
    INFO = 4
    WARNING = 5
    ERROR = 6
    FATAL = 7


class Events(Tabular):
    """The columns of one table of events; those of a trace (`trace.slices`) convert to data frames."""

    __slots__ = ("_trace",)

    def bound_to(self, trace: Trace | None) -> Self:
        """Return a copy that refers to the trace; the columns are shared."""
        kind = type(self)
        table = kind(*attrgetter(*kind.__slots__)(self))
        object.__setattr__(table, "_trace", trace)
        return table

    def to_arrow(self) -> pyarrow.Table:
        """Return the table of `traceconv.frames`, with texts, tracks and args: on one clock, by track and time.

        Raises UsageError without pyarrow, or if these columns belong to no trace, or to one without `table_of`; and
        UnrelatedClocks if the trace is on several clocks that nothing relates.
        """
        trace = getattr(self, "_trace", None)
        if trace is None:
            raise UsageError("these columns belong to no trace, so their texts and tracks are not known")
        name = next(name for name, table in TABLES.items() if isinstance(self, table))
        if trace.table_of is None:
            hint = f"traceconv.frames(trace).{name} has them"
            raise UsageError(f"the trace of these columns {_NOT_OURS}", hint=hint)
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


class Frame(Struct, frozen=True):
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
        picture_of: returns what `show` shows; set as `table_of`.
        answer_to: returns the answer to a question in SQL, set likewise; the last argument is folders that it may read.
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
    picture_of: Callable[[Trace], Any] | None = None
    answer_to: Callable[[Trace, str, Sequence[str]], Any] | None = None

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

    def show(self) -> Picture:
        """Return a picture that notebooks draw: a strip of the timeline, and the summary of `traceconv.report`.

        Raises UsageError if the trace was not returned by `read` or `merge`, and UnrelatedClocks if it is on several
        clocks that nothing relates.
        """
        if self.picture_of is None:
            raise UsageError(f"the trace {_NOT_OURS}", hint="traceconv.report(trace) shows its tables")
        picture: Picture = self.picture_of(self)
        return picture

    def sql(self, question: str, *, allow: Sequence[str] = ()) -> Tabular:
        """Return the answer to a question in SQL, as `traceconv.query` does."""
        if self.answer_to is None:
            raise UsageError(f"the trace {_NOT_OURS}", hint="traceconv.query(trace, ...) answers")
        answer: Tabular = self.answer_to(self, question, allow)
        return answer

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
        """Return a line for each kind of loss in reading an input, and of times that its writer did not measure."""
        return [
            f"{source.name}: {entry.message()}"
            for source in self.sources
            for entry in source.diagnostics
            if entry.code.kind is ProblemKind.LOST or entry.code.unmeasured
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

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The first start and the last end (ns) on each clock that has events, by the number of the clock."""
        clock_of_track, found = self.tracks.column("clock"), dict[int, tuple[int, int]]()
        for name, table in self.timed_tables():
            for rows in chunks(len(table.ts)):
                clocks, starts = clock_of_track[table.track[rows]], table.ts[rows]
                ends = starts + table.dur[rows] if name == "slices" else starts
                for clock in occurring(clocks):
                    here = clocks == clock
                    first, last = int(np.min(starts[here])), int(np.max(ends[here]))
                    before = found.get(clock, (first, last))
                    found[clock] = min(first, before[0]), max(last, before[1])
        return dict(sorted(found.items()))

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
                tracks = track[first]
                firsts[tracks] = np.minimum(firsts[tracks], ts[first])
                lasts[tracks] = np.maximum(lasts[tracks], np.maximum.reduceat(ends, first))
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
        return table.bound_to(trace)

    def __set__(self, trace: Trace, table: Events) -> None:
        vars(trace)[self._name] = table.bound_to(None)


for _name in TABLES:  # not in the class, where a dataclass would take them for defaults
    setattr(Trace, _name, _OfTrace(_name))
