"""The views that a query sees: the tables of `traceconv.frames`, with NULL for what is not known.

`docs/sql.md` lists them. Columns are only appended; a changed meaning needs a new name.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.section import Column, Section, Unit

#: The column of frames, which views add to them, that numbers the rows.
ROW = "row"


class ViewColumn(Struct, frozen=True):
    """A column of a view.

    Attributes:
        name: its name.
        about: what it holds, for people.
        unit: the unit of its numbers; "" for texts and numbers of rows.
        expression: its value, over the columns of the frame; "" for the column of this name.
        over: these columns; (), if the expression is one.
    """

    name: str
    about: str
    unit: str = ""
    expression: str = ""
    over: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the frame that the value is made from."""
        return self.over or (self.expression or self.name,)


class View(Struct, frozen=True):
    """A view over the frame of its name."""

    name: str
    about: str
    columns: tuple[ViewColumn, ...]

    def named(self, names: Collection[str] | None) -> View:
        """Return the view with the columns of these names, in lower case, and the first one; None for all."""
        if names is None:
            return self
        first, *others = self.columns
        return replace(self, columns=(first, *(column for column in others if column.name in names)))

    def statement(self, frame: str) -> str:
        """Return the SQL that makes the view of a registered frame."""
        columns = ", ".join(
            f'{column.expression or _quoted(column.name)} as "{column.name}"' for column in self.columns
        )
        return f'create view "{self.name}" as select {columns} from "{frame}"'


def _quoted(name: str) -> str:
    return f'"{name}"'


def _known(name: str, about: str, unit: str = "", expression: str = "") -> ViewColumn:
    """Return a column of integers that is NULL where frames have -1."""
    return ViewColumn(name, about, unit, f'nullif("{expression or name}", -1)', (expression or name,))


_TS = ViewColumn("ts", "start, from the first event of the trace", "ns", "start_ns")
_RANK = _known("rank", "rank of the input")
_INPUT = ViewColumn("input", "file")
_PLACE = (
    ViewColumn("track", "row in `tracks`"),
    ViewColumn("process", "name of the process"),
    ViewColumn("thread", "name of the thread"),
    _known("pid", "number of the process"),
    _known("tid", "number of the thread"),
    _RANK,
)
_TRACK_NAME = ViewColumn("track_name", "name of the track")
_NAMED = (ViewColumn("name", "name"), ViewColumn("category", "category, as the format has it"))
_ARGS = ViewColumn("args", "args of the event: `args->>'$.stream'`", "JSON")
_SLICE = ViewColumn("slice", "its number in `slices`")
_ORIGIN = ViewColumn("origin", "number of the event, line or row in the input")
_DURATION = ("case when not no_duration then duration_ns end", ("no_duration", "duration_ns"))
_SELF = ("case when not no_duration then self_ns end", ("no_duration", "self_ns"))

VIEWS = (
    View(
        "slices",
        "what ran, and when",
        (
            _TS,
            ViewColumn("dur", "duration", "ns", *_DURATION),
            *_NAMED,
            *_PLACE,
            ViewColumn("depth", "number of slices around it"),
            ViewColumn("self_dur", "duration without the slices directly inside", "ns", *_SELF),
            _ARGS,
            _INPUT,
            ViewColumn("slice", "its number, from 0, which `parent` and `from_slice` name", "", ROW),
            _known("parent", "row of the slice around it"),
            _TRACK_NAME,
            ViewColumn("synthetic", "whether only the duration is real", "yes/no"),
            _ORIGIN,
        ),
    ),
    View("instants", "what happened at a time", (_TS, *_NAMED, *_PLACE, _ARGS, _INPUT, _TRACK_NAME, _ORIGIN)),
    View(
        "kernels",
        "the work of devices: kernels and copies",
        (
            _TS,
            ViewColumn("dur", "duration", "ns", "duration_ns"),
            _NAMED[0],
            ViewColumn("kind", "computation, communication or copy"),
            ViewColumn("device", "the device"),
            _known("launch", "slice of the call that launched it"),
            _known("operator", "slice of the operator that launched it"),
            *_PLACE,
            _INPUT,
            _SLICE,
            _TRACK_NAME,
        ),
    ),
    View(
        "launches",
        "the calls that launched work of devices",
        (
            _TS,
            ViewColumn("dur", "duration", "ns", *_DURATION),
            _NAMED[0],
            ViewColumn("kernels", "number of kernels and copies that it launched"),
            ViewColumn("device_dur", "sum of their durations", "ns", "device_ns"),
            ViewColumn("first", "slice of the first of them"),
            ViewColumn(
                "state",
                "`while busy` if the device had work when the call began, else `late`; empty for its first work",
            ),
            *_PLACE,
            _INPUT,
            _SLICE,
            _TRACK_NAME,
        ),
    ),
    View(
        "steps",
        "the steps that the format marks, or that names count",
        (_TS, ViewColumn("dur", "duration", "ns", *_DURATION), _NAMED[0], *_PLACE, _INPUT, _SLICE, _TRACK_NAME),
    ),
    View(
        "collectives",
        "collectives, a row for each rank",
        (
            _TS,
            ViewColumn("dur", "duration", "ns", "duration_ns"),
            ViewColumn("kind", "all_reduce, all_gather, ..."),
            ViewColumn("ranks", "ranks of the group"),
            _RANK,
            _known("collective", "number, equal for all ranks that met"),
            _known("seq", "number in the group that the input states"),
            _known("wait", "time that the rank waited for others", "ns", "wait_ns"),
            ViewColumn("is_last", "whether it is known to have come last", "yes/no"),
            _known("bound", "how wrong the times may be", "ns", "bound_ns"),
            _INPUT,
        ),
    ),
    View(
        "counters",
        "values that hold until the next one of their track",
        (
            _TS,
            ViewColumn("value", "nearest double", "`unit`"),
            ViewColumn(
                "integer",
                "exact value, if it is an integer",
                "`unit`",
                "case when is_integer then integer end",
                ("is_integer", "integer"),
            ),
            ViewColumn("name", "name of the counter", "", "track_name"),
            ViewColumn("unit", "unit of the values"),
            *_PLACE,
            _INPUT,
            _ORIGIN,
        ),
    ),
    View(
        "flows",
        "from a slice to one that it caused",
        (
            ViewColumn("from_slice", "row of the slice"),
            ViewColumn("to_slice", "row of the slice that it caused"),
            *_NAMED,
            _ORIGIN,
        ),
    ),
    View(
        "samples",
        "call stacks at times",
        (
            _TS,
            ViewColumn("name", "sampled event"),
            ViewColumn("weight", "events that the sample stands for"),
            _known("cpu", "number of the CPU"),
            ViewColumn("stack", "frames, outermost first, joined by `;`"),
            *_PLACE,
            _INPUT,
            _TRACK_NAME,
            _ORIGIN,
        ),
    ),
    View(
        "logs",
        "log entries",
        (
            _TS,
            ViewColumn("level", "verbose to fatal"),
            ViewColumn("text", "the entry"),
            ViewColumn("source", "place in the program"),
            *_PLACE,
            _ARGS,
            _INPUT,
            _TRACK_NAME,
            _ORIGIN,
        ),
    ),
    View(
        "tracks",
        "rows of a viewer; lanes count as their track",
        (
            ViewColumn("track", "number"),
            _known("parent", "track above it"),
            ViewColumn("kind", "process, thread, counter or other"),
            ViewColumn("name", "name"),
            *_PLACE[1:],
            _INPUT,
            ViewColumn("unit", "unit of a counter"),
            ViewColumn("description", "description"),
            ViewColumn("clock", "number in `clocks`"),
        ),
    ),
    View(
        "clocks",
        "clocks of the trace",
        (
            ViewColumn("clock", "number"),
            ViewColumn("name", "name"),
            ViewColumn("machine", "machine"),
            ViewColumn("resolution_ns", "resolution", "ns"),
            ViewColumn("synthetic", "whether times are made up", "yes/no"),
        ),
    ),
    View(
        "recordings",
        "the inputs, and how their clocks were placed",
        (
            _INPUT,
            ViewColumn("format", "format"),
            ViewColumn("host", "host"),
            _RANK,
            _known("world_size", "number of ranks of the job"),
            ViewColumn("clock", "clock of its times"),
            ViewColumn("method", "what placed it"),
            ViewColumn("verdict", "how certain that is"),
            ViewColumn("offset_ns", "added to its times", "ns"),
            _known("bound_ns", "how wrong its times may be", "ns"),
            ViewColumn("unit", "what is counted below"),
            ViewColumn("read", "events of the input", "`unit`"),
            ViewColumn("written", "events in the trace", "`unit`"),
            ViewColumn("merged", "events that became part of others", "`unit`"),
            ViewColumn("kept", "events kept as metadata", "`unit`"),
            ViewColumn("skipped", "events left out", "`unit`"),
            ViewColumn("add_ns", "added to times of its clock, it gives `ts`", "ns"),
        ),
    ),
    View(
        "problems",
        "what was lost, repaired, absent or left out in reading",
        (
            _INPUT,
            ViewColumn("code", "code"),
            ViewColumn("kind", "kind"),
            ViewColumn("count", "events"),
            ViewColumn("message", "message"),
        ),
    ),
)


def listed() -> Section:
    """Return the views, with a row for each column."""
    columns = tuple(Column(name, name, Unit.TEXT) for name in ("view", "column", "unit", "content"))
    rows = [(view.name, column.name, column.unit, column.about) for view in VIEWS for column in view.columns]
    return Section("views", columns, list[tuple[str | int | float | None, ...]](rows))
