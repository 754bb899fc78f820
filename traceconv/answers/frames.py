"""The tables of a trace as data frames; `docs/python-api.md` lists their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.align.receipt import Aligned, ReceiptLine, warning_lines
from traceconv.answers.chosen_slices import Own, Texts, collectives_of, kernels_of, launches_of, steps_of
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.errors import UsageError, refuse_single_texts
from traceconv.model.args import ABSENT, arg_values, as_text
from traceconv.model.columns import I64, occurring
from traceconv.model.numbers import fits_int64
from traceconv.model.trace import Level, Tabular, Trace, needed, take
from traceconv.model.trace_inputs import inputs_of
from traceconv.model.track_table import NO_TRACK, TrackKind

if TYPE_CHECKING:
    import pyarrow


#: The version of the columns and their meaning.
SCHEMA_VERSION = "1"
UNKNOWN = -1
Columns = dict[str, Any]
_NOT_ALIGNED = Aligned()


class Frame(Tabular):
    """One table of a trace, built on first use."""

    def __init__(self, name: str, build: Callable[[], pyarrow.Table]) -> None:
        self.name = name
        self._build = build

    @cached_property
    def _table(self) -> pyarrow.Table:
        return self._build()

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table, whose schema has the start and the inputs of the trace as metadata.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return self._table

    def __repr__(self) -> str:
        return f"<Frame {self.name}>"


class Frames(Mapping[str, Frame]):
    """The tables of a trace by name; `frames.slices` is `frames["slices"]`.

    Attributes:
        losses: what the inputs lost in reading, a line for each kind of loss.
        warnings: the warnings of the alignment, a line for each.
        trace: the trace.
        aligned: how its inputs were aligned.
        args: the args that have columns.
    """

    def __init__(self, trace: Trace, aligned: Aligned = _NOT_ALIGNED, args: Sequence[str] = ()) -> None:
        """Take a trace on one clock, how it was aligned, and the args that become columns of their own."""
        refuse_single_texts(args=args)
        builder = _Builder(trace, aligned, tuple(args))
        self._builder = builder
        self._frames = {name: Frame(name, partial(builder.table_of, name)) for name in _BUILDERS}
        self.losses = trace.losses()
        self.warnings = warning_lines(aligned.receipt)
        self.trace, self.aligned = trace, aligned
        self.args = tuple(args)

    def part(self, name: str, wanted: Collection[str]) -> pyarrow.Table:
        """Return some columns of a table; the others are not built for it.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return self._builder.table_of(name, wanted)

    def absent_args(self) -> list[str]:
        """Return the args that were to become columns, but that no event has: their columns are empty.

        Raises:
            UsageError: pyarrow is not installed.
        """
        columns = [frame.to_arrow() for frame in self.values()] if self.args else []
        return [
            key
            for key in self.args
            if all(
                table.column(name).null_count == table.num_rows
                for table in columns
                if (name := f"args.{key}") in table.column_names
            )
        ]

    def __repr__(self) -> str:
        """Return the names of the tables."""
        return f"<Frames: {', '.join(self._frames)}>"

    def __getitem__(self, name: str) -> Frame:
        return self._frames[name]

    def __getattr__(self, name: str) -> Frame:
        try:
            return self.__dict__["_frames"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"there is no table {name!r}; tables: {', '.join(_BUILDERS)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._frames]


class _Builder:
    """Builds the tables of a trace, with cached intermediate results."""

    def __init__(self, trace: Trace, aligned: Aligned, args: tuple[str, ...]) -> None:
        if len(set(args)) < len(args) or any(not arg or _valid(arg) != arg for arg in args):
            raise UsageError("args that become columns must have names, each given once")
        self.trace = trace
        self.aligned = aligned
        self.args = args
        self.table = SliceTable(trace)

    def table_of(self, name: str, wanted: Collection[str] | None = None) -> pyarrow.Table:
        """Return a table, or some of its columns: the others are not built."""
        columns = {
            key: self._column(values)
            for key, values in _BUILDERS[name](self).items()
            if wanted is None or key in wanted
        }
        return self.pa.table(columns).replace_schema_metadata(self._metadata)

    @cached_property
    def pa(self) -> Any:
        """Return the module pyarrow."""
        return needed("pyarrow", "arrow")

    @cached_property
    def _metadata(self) -> dict[str, str]:
        from traceconv import __version__

        inputs = [{"name": _valid(source.name), "format": source.format} for source in self.trace.sources]
        clocks = [_valid(domain.name) for domain in self.trace.clocks]
        return {
            "traceconv.schema": SCHEMA_VERSION,
            "traceconv.version": __version__,
            "traceconv.start_ns": str(self.table.start),
            "traceconv.inputs": msgspec.json.encode(inputs).decode(),
            "traceconv.clocks": msgspec.json.encode(clocks).decode(),
        }

    def _column(self, values: Any) -> Any:
        """Return a column: pyarrow arrays unchanged, numpy columns shared, texts converted, functions called."""
        pa = self.pa
        values = values() if callable(values) else values
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if isinstance(values, np.ndarray):
            return pa.array(values)
        return pa.array([_valid(value) for value in values], pa.string())

    def texts(self, numbers: npt.NDArray[Any], text_of: Callable[[int], str]) -> Any:
        """Return numbers of texts as a dictionary column with only the texts that occur."""
        used = occurring(numbers)
        known: dict[str, int] = {}
        of_number = np.zeros(max(used, default=0) + 1, np.int32)
        of_number[used] = [known.setdefault(_valid(text_of(number)), len(known)) for number in used]
        dictionary = self.pa.array(list(known), self.pa.string())
        return self.pa.DictionaryArray.from_arrays(of_number[numbers], dictionary)

    def numbered(self, column: Texts) -> Any:
        """Return a column of numbered texts."""
        return self.texts(column.numbers, column.texts.__getitem__)

    def args_text(self, at: I64, length: npt.NDArray[np.int32]) -> Any:
        """Return the args as JSON texts; null for events without args."""
        pa, number, texts = self.pa, np.full(len(at), -1, np.int64), []
        known = 0
        for rows, starts, part in self.trace.args.by_part(at, length):
            # The texts and the gaps between them, in the order of their places; pyarrow copies every second one.
            distinct, first, number_of = np.unique(starts, return_index=True, return_inverse=True)
            edges = np.empty(2 * len(distinct), np.int64)
            edges[::2], edges[1::2] = distinct, distinct + length[rows[first]]
            buffers = [None, pa.py_buffer(edges), pa.py_buffer(part)]
            all_of_part = pa.Array.from_buffers(pa.large_string(), len(edges) - 1, buffers)
            texts.append(all_of_part.take(pa.array(2 * number_of)))
            number[rows] = known + np.arange(len(rows))
            known += len(rows)
        if not texts:
            return pa.nulls(len(at), pa.large_string())
        found = pa.chunked_array(texts)
        return found if known == len(at) and len(texts) == 1 else found.take(pa.array(number, mask=number < 0))

    def chosen_args(self, at: I64, length: npt.NDArray[np.int32]) -> Columns:
        """Return a column for each chosen arg: of numbers if all values are, else of texts; null if missing."""
        if not self.args:
            return {}
        pa = self.pa
        numbers, values = arg_values(self.trace.args, at, length, self.args)
        return {
            f"args.{key}": _typed(pa, [value[number] for value in values]).take(pa.array(numbers))
            for number, key in enumerate(self.args)
        }

    @cached_property
    def track_columns(self) -> dict[str, tuple[npt.NDArray[Any], list[str] | None]]:
        """Return the columns about tracks: a value or a number of a text for each track, and the texts."""
        tracks = self.trace.tracks
        row_of = self.table.row_of_track
        processes, threads = self._above(TrackKind.PROCESS), self._above(TrackKind.THREAD)

        def name(track: int) -> str:
            return "" if track == NO_TRACK else tracks[track].name

        def numbers(values: Iterable[int | None]) -> I64:
            return np.array([value if fits_int64(value) else UNKNOWN for value in values], np.int64)

        each = np.arange(len(tracks))
        return {
            "track_name": (each, [name(int(track)) for track in row_of]),
            "process": (each, [name(track) for track in processes]),
            "thread": (each, [name(track) for track in threads]),
            "pid": (numbers(None if track == NO_TRACK else tracks[track].pid for track in processes), None),
            "tid": (numbers(None if track == NO_TRACK else tracks[track].tid for track in threads), None),
        }

    def _above(self, kind: TrackKind) -> list[int]:
        """Return the nearest track of a kind, each track itself or above it; NO_TRACK if there is none."""
        tracks = self.trace.tracks
        above: list[int] = []
        for index, track in enumerate(tracks):
            row = index if track.lane_of == NO_TRACK else track.lane_of
            if tracks[row].kind is kind:
                above.append(row)
            else:
                above.append(NO_TRACK if track.parent == NO_TRACK else above[track.parent])
        return above

    def of_events(self, name: str) -> Columns:
        """Return the columns about the tracks and inputs of the events of a table."""
        return self.placed(getattr(self.trace, name).track, inputs_of(self.trace, name))

    def placed(self, track: npt.NDArray[np.int32], inputs: npt.NDArray[np.int32]) -> Columns:
        """Return the columns about tracks and inputs, by their numbers."""
        columns: Columns = {"track": self.table.row_of_track[track] if len(track) else track.astype(np.int64)}
        for name, (of_track, texts) in self.track_columns.items():
            columns[name] = partial(self._of_tracks, of_track, texts, track)
        sources = self.trace.sources
        ranks = np.array([UNKNOWN if source.rank is None else source.rank for source in sources], np.int64)
        columns["rank"] = lambda: ranks[inputs]
        columns["input"] = partial(self.texts, inputs, lambda number: sources[number].name)
        return columns

    def _of_tracks(self, of_track: npt.NDArray[Any], texts: list[str] | None, track: npt.NDArray[np.int32]) -> Any:
        """Return a column of values of tracks, or of numbers of texts."""
        numbers = of_track[track] if len(track) else np.empty(0, np.int64)
        return numbers if texts is None else self.texts(numbers, texts.__getitem__)

    def named(self, table: Any) -> Columns:
        """Return the columns `name` and `category`."""
        strings = self.trace.strings.__getitem__
        return {
            "name": partial(self.texts, table.name, strings),
            "category": partial(self.texts, table.category, strings),
        }

    def ending(self, table: Any, **last: Any) -> Columns:
        """Return the last columns of events with args: the last ones of their own stand before the chosen args."""
        texts = partial(self.args_text, table.args_at, table.args_len)
        return {"origin": table.origin, "args": texts, **last, **self.chosen_args(table.args_at, table.args_len)}


def _typed(pa: Any, values: Sequence[Any]) -> Any:
    """Return values of an arg as integers if all are, as doubles if all are exact as such, else as texts."""
    present = [value for value in values if value is not ABSENT]
    kinds = {type(value) for value in present}
    known = [None if value is ABSENT else value for value in values]
    if kinds == {int} and all(map(fits_int64, present)):
        return pa.array(known, pa.int64())
    if kinds and kinds <= {int, float} and all(map(_is_double, present)):
        return pa.array([None if value is None else float(value) for value in known], pa.float64())
    return pa.array([None if value is None else as_text(value) for value in known], pa.string())


def _is_double(value: float) -> bool:
    """Return whether a double holds the number exactly."""
    try:
        return float(value) == value
    except OverflowError:
        return False


def _valid(text: str) -> str:
    """Return a text with lone surrogates, as in undecodable file names, replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _recordings(builder: _Builder) -> Columns:
    sources = builder.trace.sources
    placed: dict[str, ReceiptLine] = {}
    for line in builder.aligned.receipt:
        placed.setdefault(line.file, line)
    lines = [placed.get(source.name) for source in sources]
    bounds = [UNKNOWN if line is None or line.bound_ns is None else line.bound_ns for line in lines]
    balances = [source.balance for source in sources]
    offsets = np.array([line.offset_ns if line else 0 for line in lines], np.int64)
    return {
        "input": [source.name for source in sources],
        "format": [source.format for source in sources],
        "host": [line.host if line else "" for line in lines],
        "rank": np.array([UNKNOWN if source.rank is None else source.rank for source in sources], np.int64),
        "world_size": np.array(
            [UNKNOWN if source.world_size is None else source.world_size for source in sources], np.int64
        ),
        "clock": [line.clock if line else "" for line in lines],
        "method": [line.method if line else "" for line in lines],
        "verdict": [line.verdict if line else "" for line in lines],
        "offset_ns": offsets,
        "bound_ns": np.array(bounds, np.int64),
        "unit": [balance.unit for balance in balances],
        "read": np.array([balance.read for balance in balances], np.int64),
        "written": np.array([balance.written for balance in balances], np.int64),
        "merged": np.array([balance.merged.total() for balance in balances], np.int64),
        "kept": np.array([balance.kept.total() for balance in balances], np.int64),
        "skipped": np.array([balance.skipped.total() for balance in balances], np.int64),
        "add_ns": offsets - builder.table.start,
    }


def _clocks(builder: _Builder) -> Columns:
    clocks = builder.trace.clocks
    return {
        "clock": np.arange(len(clocks)),
        "name": [domain.name for domain in clocks],
        "machine": [domain.machine for domain in clocks],
        "resolution_ns": np.array([domain.resolution_ns for domain in clocks], np.int64),
        "synthetic": np.array([domain.synthetic for domain in clocks], bool),
    }


def _tracks(builder: _Builder) -> Columns:
    tracks = builder.trace.tracks
    # A lane counts as the track that it belongs to, as for events.
    rows = [index for index, track in enumerate(tracks) if track.lane_of == NO_TRACK]
    shown = [tracks[row] for row in rows]
    where = builder.placed(np.array(rows, np.int32), np.array([track.source for track in shown], np.int32))
    return {
        "track": where["track"],
        "parent": np.array([int(track.parent) for track in shown], np.int64),
        "kind": [track.kind.name.lower() for track in shown],
        "name": [track.name for track in shown],
        **{name: where[name] for name in ("process", "thread", "pid", "tid", "rank", "input")},
        "unit": [track.unit for track in shown],
        "description": [track.description for track in shown],
        "clock": np.array([int(track.clock) for track in shown], np.int64),
    }


def _slices(builder: _Builder) -> Columns:
    slices, table = builder.trace.slices, builder.table
    return {
        "start_ns": lambda: slices.ts - table.start,
        "duration_ns": slices.dur,
        "self_ns": lambda: table.nesting.self_ns,
        "parent": lambda: table.nesting.parent.astype(np.int64, copy=False),
        "depth": lambda: table.nesting.depth,
        **builder.named(slices),
        **builder.of_events("slices"),
        "synthetic": lambda: ~table.drawn_in_time[slices.track] if len(slices.ts) else np.empty(0, bool),
        **builder.ending(slices, no_duration=lambda: ~table.timed),
    }


def _of_slices(builder: _Builder, chosen: Callable[[SliceTable], tuple[Rows, Own]]) -> Columns:
    """Return columns about some slices, which are rows of `slices`."""
    rows, more = chosen(builder.table)
    slices, inputs = take(builder.trace.slices, rows), inputs_of(builder.trace, "slices")
    return {
        "slice": rows.astype(np.int64, copy=False),
        "start_ns": slices.ts - builder.table.start,
        "duration_ns": slices.dur,
        "name": builder.texts(slices.name, builder.trace.strings.__getitem__),
        **{name: builder.numbered(column) if isinstance(column, Texts) else column for name, column in more.items()},
        **builder.placed(slices.track, inputs[rows]),
        "no_duration": ~builder.table.timed[rows],
    }


def _collectives(builder: _Builder) -> Columns:
    calls, sources = collectives_of(builder.table, builder.aligned), builder.trace.sources
    return {
        "start_ns": calls.start - builder.table.start,
        "duration_ns": calls.duration,
        "kind": builder.numbered(calls.kind),
        "ranks": builder.numbered(calls.ranks),
        "rank": calls.rank,
        "collective": calls.collective,
        "seq": calls.seq,
        "wait_ns": calls.wait,
        "is_last": calls.is_last,
        "bound_ns": calls.bound,
        "input": builder.texts(calls.input, lambda number: sources[number].name),
    }


def _instants(builder: _Builder) -> Columns:
    table = builder.trace.instants
    return {
        "start_ns": table.ts - builder.table.start,
        **builder.named(table),
        **builder.of_events("instants"),
        **builder.ending(table),
    }


def _counters(builder: _Builder) -> Columns:
    table = builder.trace.counters
    tracks = builder.trace.tracks
    return {
        "start_ns": table.ts - builder.table.start,
        "value": table.value,
        "integer": table.integer,
        "is_integer": table.is_integer.astype(bool),
        "unit": builder.texts(table.track, lambda track: tracks[track].unit),
        **builder.of_events("counters"),
        "origin": table.origin,
    }


def _flows(builder: _Builder) -> Columns:
    table = builder.trace.flows
    return {"from_slice": table.from_slice, "to_slice": table.to_slice, **builder.named(table), "origin": table.origin}


def _samples(builder: _Builder) -> Columns:
    table, frames = builder.trace.samples, builder.trace.frames

    def stack(innermost: int) -> str:
        names = []
        while innermost >= 0:
            names.append(frames[innermost].name)
            innermost = frames[innermost].parent
        return ";".join(reversed(names))

    return {
        "start_ns": table.ts - builder.table.start,
        "name": builder.texts(table.name, builder.trace.strings.__getitem__),
        "weight": table.weight,
        "cpu": table.cpu,
        "stack": lambda: builder.texts(table.stack + 1, lambda number: stack(number - 1)),
        **builder.of_events("samples"),
        "origin": table.origin,
    }


def _logs(builder: _Builder) -> Columns:
    table, strings = builder.trace.logs, builder.trace.strings.__getitem__
    levels = {int(level): level.name.lower() for level in Level}
    return {
        "start_ns": table.ts - builder.table.start,
        "level": builder.texts(table.level, lambda level: levels.get(level, str(level))),
        "text": builder.texts(table.text, strings),
        "source": builder.texts(table.source, strings),
        **builder.of_events("logs"),
        **builder.ending(table),
    }


def _problems(builder: _Builder) -> Columns:
    problems = [(source.name, problem) for source in builder.trace.sources for problem in source.diagnostics]
    return {
        "input": [name for name, _ in problems],
        "code": [problem.code.name for _, problem in problems],
        "kind": [problem.code.kind.value if problem.code.kind else "" for _, problem in problems],
        "count": np.array([problem.count for _, problem in problems], np.int64),
        "message": [problem.message() for _, problem in problems],
    }


_BUILDERS: dict[str, Callable[[_Builder], Columns]] = {
    "recordings": _recordings,
    "clocks": _clocks,
    "tracks": _tracks,
    "slices": _slices,
    "instants": _instants,
    "counters": _counters,
    "flows": _flows,
    "samples": _samples,
    "logs": _logs,
    "problems": _problems,
    "kernels": partial(_of_slices, chosen=kernels_of),
    "launches": partial(_of_slices, chosen=launches_of),
    "steps": partial(_of_slices, chosen=steps_of),
    "collectives": _collectives,
}
