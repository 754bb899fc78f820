"""An export of Nsight Systems as a database: names for numbers, tracks for ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from traceconv.families.common.cupti import named
from traceconv.families.common.sqlite_tables import Row, Tables, whole
from traceconv.families.nsight import _schema as schema
from traceconv.io.sqlite import Database, Kind, as_text
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code, ProblemKind, declare
from traceconv.model.trace import NO_TRACK, TrackId

DAMAGED = declare(
    "nsys.damaged_table",
    ProblemKind.LOST,
    "a table of the database cannot be read to its end: the file is cut or damaged, the rows before that were read",
)
UNKNOWN_STRING = declare(
    "nsys.unknown_string",
    ProblemKind.ABSENT,
    "a row refers to a string that the export does not hold: the number of the string is shown instead",
)

ODD_VALUE = declare(
    "nsys.odd_value",
    ProblemKind.LOST,
    "a number column holds another value, or a time that no session can have: it was left out, the rest "
    "of the row was read",
)


class Export(Tables):
    """The database of one input.

    Attributes:
        strings: the text of each id.
    """

    damaged: ClassVar[Code] = DAMAGED
    odd_value: ClassVar[Code] = ODD_VALUE
    kinds: ClassVar[dict[str, Kind]] = schema.KINDS

    def __init__(self, database: Database, out: Builder) -> None:
        super().__init__(database, out)
        self._enums: dict[str, dict[int, str]] = {}
        self._stacks: dict[str, dict[Any, list[str]]] = {}
        self.strings: dict[Any, str] = {
            number: as_text(text) for number, text in self.rows("StringIds", ("id", "value")) if text is not None
        }

    def rows(self, table: str, columns: Sequence[str], *, order: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a table one by one."""
        for _, portion in self.portions(table, columns, order=order):
            yield from portion

    def _possible(
        self, columns: Sequence[str], rows: Sequence[Row], report: Callable[[int, int, object], None]
    ) -> Sequence[Row]:
        """Return the rows with None for impossible times."""
        for place, column in enumerate(columns):
            if column in schema.TIMES:
                rows = _in_a_session(rows, place, report)
        return rows

    # -- names ------------------------------------------------------------------------------------------------

    def text(self, number: Any) -> str:
        """Return the string of an id; "" for none."""
        known = self.strings.get(number)
        if known is None:
            if not number:  # NULL, and 0 in exports from before 2021
                return ""
            self._out.problem(UNKNOWN_STRING, f"StringIds {number}")
            known = self.strings[number] = f"[string {number}]"
        return known

    def enum(self, column: str, value: Any) -> Any:
        """Return the name of a number in a column, from the export, else from the known names.

        Return the number if it has no name.
        """
        if not isinstance(value, int):
            return value
        table, fallback = schema.ENUMS[column]
        if column not in self._enums:
            words = {number: label or name for number, name, label in self.rows(table, ("id", "name", "label"))}
            if column == "copyKind":
                words = {number: self._copy_word(*row) for number, *row in self.rows(table, ("id", "name", "label"))}
            self._enums[column] = words or fallback
        words = self._enums[column]
        return named(words, value) if words else value

    def _copy_word(self, name: Any, label: Any) -> str:
        """Return a kind of copy as CUDA's tools print it: CUDA_MEMCPY_KIND_HTOD -> HtoD."""
        symbol = str(name or "").removeprefix(schema.COPY_SYMBOL)
        return schema.COPY_WORDS.get(symbol) or str(label or name or "")

    def call_stack(self, table: str, number: Any) -> list[str]:
        """Return the frames of a stack, innermost first, as "function (module)"; [] if there is none."""
        stacks = schema.CALL_STACKS.get(table, "")
        if not number or stacks not in self.tables:
            return []
        if stacks not in self._stacks:
            self._stacks[stacks] = self._read_stacks(stacks)
        return self._stacks[stacks].get(number, [])

    def _read_stacks(self, table: str) -> dict[Any, list[str]]:
        stacks: dict[Any, list[tuple[Any, Any, Any]]] = {}
        for number, depth, symbol, module in self.rows(table, ("id", "stackDepth", "symbol", "module")):
            stacks.setdefault(number, []).append((depth if isinstance(depth, int) else 0, symbol, module))
        frames: dict[tuple[Any, Any], str] = {}
        result: dict[Any, list[str]] = {}
        for number, stack in stacks.items():
            stack.sort(key=lambda frame: frame[0])
            result[number] = [
                frames.setdefault((symbol, module), self._frame(symbol, module)) for _, symbol, module in stack
            ]
        return result

    def _frame(self, symbol: Any, module: Any) -> str:
        where = self.text(module)
        return f"{self.text(symbol) or '[unknown]'} ({where})" if where else self.text(symbol) or "[unknown]"

    # -- args -------------------------------------------------------------------------------------------------

    def args(self, table: str, values: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a row for the args, with names for enumerations, without missing values."""
        result: dict[str, Any] = {}
        for column, value in values.items():
            if value is None or value == "" or column in schema.NOT_ARGS:
                continue
            if column in schema.TEXT_IDS:
                value = self.text(value)
            elif column in schema.ENUMS and not table.startswith("WDDM"):
                value = self.enum(column, value)
            elif column == "callchainId":
                column, value = "call_stack", self.call_stack(table, value)
            if value not in ("", []):
                result[schema.ARG_NAMES.get(column, column)] = value
        return result


def _in_a_session(rows: Sequence[Row], place: int, report: Callable[[int, int, object], None]) -> Sequence[Row]:
    """Return the rows with None for impossible times."""
    limit = schema.SESSION_LIMIT_NS
    times = [row[place] for row in rows]
    numbers = whole(times)
    if numbers is not None and -limit < np.min(numbers) and np.max(numbers) < limit:
        return rows
    beyond = {at for at, time in enumerate(times) if type(time) is int and not -limit < time < limit}
    for at in sorted(beyond):
        report(at, place, times[at])
    if not beyond:
        return rows
    return [(*row[:place], None, *row[place + 1 :]) if at in beyond else row for at, row in enumerate(rows)]


class Tracks:
    """The tracks of an export: processes, threads, devices and streams, each declared on first use."""

    def __init__(self, export: Export, out: Builder) -> None:
        self._export = export
        self._out = out
        self._known_tracks: dict[tuple[Any, ...], TrackId] = {}
        self._pids: dict[int, Any] = {}
        self._process_names: dict[int, str] = {}
        self.thread_names: dict[int, tuple[Any, str]] = {}
        self._labels: dict[int, list[str]] = {}
        self._streams: dict[tuple[Any, ...], list[str]] = {}
        self._stream_names: dict[tuple[Any, ...], str] = {}
        self._contexts: dict[tuple[Any, ...], list[str]] = {}
        self._device_names: dict[Any, str] = {}
        self._devices_of: dict[tuple[Any, Any], str] = {}
        self.gpus: dict[Any, str] = {}
        self._read_names()
        self._read_devices()
        self._read_streams()

    # -- what the export says about them ----------------------------------------------------------------------

    def _read_names(self) -> None:
        export = self._export
        for number, pid, name in export.rows("PROCESSES", ("globalPid", "pid", "name")):
            if isinstance(number, int):
                self._pids[schema.process_of(number)] = pid
                self._process_names[schema.process_of(number)] = str(name or "")
        for name, priority, number in export.rows("ThreadNames", ("nameId", "priority", "globalTid")):
            self.name_thread(number, priority, export.text(name))
        for number, rank in export.rows("MPI_RANKS", ("globalTid", "rank")):
            if isinstance(number, int):
                self._labels.setdefault(schema.process_of(number), []).append(f"MPI rank {rank}")

    def name_thread(self, number: Any, priority: Any, name: str) -> None:
        """Keep the name of the highest priority."""
        rank = priority if isinstance(priority, int) else 0
        if isinstance(number, int) and name and rank >= self.thread_names.get(number, (rank, ""))[0]:
            self.thread_names[number] = (rank, name)

    def _read_devices(self) -> None:
        export = self._export
        columns = ("id", "deviceId", "cuDevice", "name", "smCount")
        for number, older, device, name, processors in export.rows("TARGET_INFO_GPU", columns):
            number = older if number is None else number  # until 2021
            self.gpus[number] = as_text(name or "")
            if processors != 0:  # else a display adapter, which stands there with the device 0
                self._device_names.setdefault(number if device is None else device, self.gpus[number])
        for gpu, device, pid in export.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid")):
            if gpu in self.gpus:
                self._devices_of[pid, device] = self.gpus[gpu]
        for name, device in export.rows("TARGET_INFO_NVTX_CUDA_DEVICE", ("name", "deviceId")):
            known = self._device_names.get(device)
            self._device_names[device] = f"{known} ({name})" if known else str(name)

    def _read_streams(self) -> None:
        export = self._export
        ids = ("processId", "contextId", "streamId")
        for pid, context, stream, flag, priority in export.rows("TARGET_INFO_CUDA_STREAM", (*ids, "flag", "priority")):
            words = [str(export.enum("flag", flag)), f"priority {priority}"]
            self._streams[pid, context, stream] = [word for word in words if word != "None"]
        for pid, context, stream, parent, green in export.rows(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            ("processId", "contextId", "nullStreamId", "parentContextId", "isGreenContext"),
        ):
            self._stream_names[pid, context, stream] = "null stream of the context"
            if green:
                self._contexts[pid, context] = [f"green context of context {parent}"]
        for pid, context, stream in export.rows("TARGET_INFO_CUDA_NULL_STREAM", ids):  # until 2023
            self._stream_names[pid, context, stream] = "null stream of the context"
        for pid, context, stream, name in export.rows("TARGET_INFO_NVTX_CUDA_STREAM", (*ids, "name")):
            self._stream_names[pid, context, stream] = as_text(name)
        for pid, context, name in export.rows("TARGET_INFO_NVTX_CUDA_CONTEXT", ("processId", "contextId", "name")):
            self._contexts.setdefault((pid, context), []).insert(0, str(name))

    # -- tracks -----------------------------------------------------------------------------------------------

    def only_process(self) -> int | None:
        """Return the only process of an export, since old tables of devices state none; None if there are several."""
        known = {key[1] for key in self._known_tracks if key[0] == "process"} | set(self._process_names)
        return known.pop() if len(known) == 1 else None

    def process(self, number: int) -> TrackId:
        """Return the process of a global id."""
        number = schema.process_of(number)
        track = self._known_tracks.get(("process", number))
        if track is None:
            pid = self._pids.get(number)
            pid = pid if isinstance(pid, int) else schema.pid_of(number)
            track = self._out.tracks.process(self._process_names.get(number, ""), pid=pid)
            self._out.tracks[track].labels = tuple(dict.fromkeys(self._labels.get(number, ())))
            self._known_tracks["process", number] = track
        return track

    def thread(self, number: Any) -> TrackId:
        """Return the thread of a global id, or a track of its process if the id names no thread."""
        if not isinstance(number, int):
            return self.group("events without a thread")
        if not schema.tid_of(number):
            return self.group("events without a thread", number)
        track = self._known_tracks.get(("thread", number))
        if track is None:
            name = self.thread_names.get(number, (0, ""))[1]
            track = self._out.tracks.thread(self.process(number), schema.tid_of(number), name)
            self._known_tracks["thread", number] = track
        return track

    def group(self, title: str, number: Any = None, *, description: str = "") -> TrackId:
        """Return a track of the machine, or of the process of a global id; 0 is not a process."""
        parent = self.process(number) if isinstance(number, int) and schema.pid_of(number) else NO_TRACK
        track = self._known_tracks.get(("group", parent, title))
        if track is None:
            track = self._known_tracks["group", parent, title] = self._out.tracks.add(
                title, parent, description=description
            )
        return track

    def metrics_of(self, number: Any) -> TrackId:
        """Return the parent of the metrics of a GPU, which are measured beside all processes.

        All GPUs share a group, since groups outside of processes are shown before processes.
        """
        name = self.gpus.get(number, "")
        return self.part_of(self.group("GPU metrics"), f"GPU {_shown(number)} {name}".strip())

    def device(self, process: Any, device: Any) -> TrackId:
        """Return a device as a process sees it."""
        parent = self.process(process) if isinstance(process, int) else NO_TRACK
        key = ("device", parent, device)
        if key not in self._known_tracks:
            pid = self._pid(process)
            name = self._devices_of.get((pid, device)) or self._device_names.get(device, "")
            self._known_tracks[key] = track = self._out.tracks.add(f"GPU {_shown(device)} {name}".strip(), parent)
            self._rank(track, device)
        return self._known_tracks[key]

    def context(self, process: Any, device: Any, context: Any, green: Any = None) -> TrackId:
        """Return a context on a device.

        A green context stands beside the one that it is a part of (0 is none, as NULL is).
        """
        number = green or context
        key = ("context", self.device(process, device), number)
        if key not in self._known_tracks:
            words = self._contexts.get((self._pid(process), number), [])
            title = f"Context {_shown(number)}" + (f" ({', '.join(words)})" if words else "")
            self._known_tracks[key] = track = self._out.tracks.add(title, self.device(process, device))
            self._rank(track, number)
        return self._known_tracks[key]

    def stream(self, process: Any, device: Any, context: Any, green: Any, stream: Any) -> TrackId:
        """Return a stream of a context."""
        parent = self.context(process, device, context, green)
        key = ("stream", parent, stream)
        if key not in self._known_tracks:
            pid = self._pid(process)
            keys = (pid, context, stream), (pid, green, stream)
            name = next((self._stream_names[one] for one in keys if one in self._stream_names), "")
            words = [name] * bool(name) + next((self._streams[one] for one in keys if one in self._streams), [])
            title = f"Stream {_shown(stream)}" + (f" ({name})" if name else "")
            self._known_tracks[key] = track = self._out.tracks.add(title, parent, description=", ".join(words))
            self._rank(track, stream)
        return self._known_tracks[key]

    def part_of(self, parent: TrackId, title: str, *, description: str = "") -> TrackId:
        """Return a track below another one."""
        key = ("part", parent, title)
        if key not in self._known_tracks:
            self._known_tracks[key] = self._out.tracks.add(title, parent, description=description)
        return self._known_tracks[key]

    def counter(self, parent: TrackId, title: str, unit: str, *, description: str = "") -> TrackId:
        """Return a counter below another track."""
        key = ("counter", parent, title)
        if key not in self._known_tracks:
            self._known_tracks[key] = self._out.tracks.counter(title, parent, unit=unit, description=description)
        return self._known_tracks[key]

    def _pid(self, process: Any) -> Any:
        return self._pids.get(process, schema.pid_of(process)) if isinstance(process, int) else None

    def _rank(self, track: TrackId, number: Any) -> None:
        if isinstance(number, int) and 0 <= number < 10**6:
            self._out.tracks[track].rank = number


def _shown(number: Any) -> str:
    """Return the number of a device, context or stream in the name of its track."""
    return "(unknown)" if number is None else str(number)
