"""The tables in the output of nvprof, and the tracks of their rows."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from traceconv.families.nvprof._lines import Header
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.trace import NO_TRACK, ClockId, TrackId

CLOCK = ClockDomain("start of nvprof", Zero.RUN_START, Run.MONOTONIC)
_DEVICE = re.compile(r"(?P<name>.*) \((?P<number>\d+)\)")
UNIFIED = "[Unified Memory"
NONE = ("", "-")


class Shape(NamedTuple):
    """The properties of rows that differ only in their times and names."""

    args: dict[str, Any]
    row: dict[str, str]
    on_device: bool


class Table(msgspec.Struct):
    """The table that rows belong to.

    Attributes:
        pid: of the process, None when nvprof showed a file.
        title: the text above it.
        group: the type of the rows, such as "API calls".
        context: thread, domain, range, device and kernel that the rows are about.
    """

    pid: int | None = None
    title: str = ""
    header: Header | None = None
    header_line: str = ""
    units: dict[str, str] | None = None
    group: str = ""
    context: dict[str, str] = msgspec.field(default_factory=dict)
    totals: TrackId = NO_TRACK
    clock: ClockId | None = None
    awaits_units: bool = False
    shapes: dict[tuple[str, ...], Shape] = msgspec.field(default_factory=dict)


class TextTracks:
    """Creates tracks on first use.

    Attributes:
        commands: what the processes were started with.
        clocks: the domain of each clock.
    """

    def __init__(self, out: Builder) -> None:
        self.commands: dict[int | None, str] = {}
        self.clocks: dict[ClockId, ClockDomain] = {}
        self._out = out
        self._tracks: dict[tuple[Any, ...], TrackId] = {}

    def _process(self, table: Table) -> TrackId:
        pid = table.pid
        command = self.commands.get(pid, "")
        if pid is None and not command:
            return NO_TRACK
        key = ("process", pid)
        if key not in self._tracks:
            self._tracks[key] = self._out.tracks.process(pid=pid, description=command)
        return self._tracks[key]

    def clock(self, table: Table) -> ClockId:
        """Return the clock of a table, with a zero of its own for each process, or for each table of a file."""
        if table.clock is None:
            words = f"of process {table.pid}" if table.pid is not None else f"table {len(self.clocks) + 1}"
            domain = ClockDomain(f"{CLOCK.name}, {words}", CLOCK.zero, CLOCK.run, 1, "", self._out.info.name)
            if not self.clocks:
                self._out.clocks.set_default(domain)
            table.clock = self._out.clocks.add(domain)
            self.clocks[table.clock] = domain
        return table.clock

    def track(self, table: Table, path: tuple[str, ...], clock: ClockId) -> TrackId:
        """Return the track of that path below the process."""
        key = ("track", table.pid, path, clock)
        if key not in self._tracks:
            parent = self.track(table, path[:-1], clock) if len(path) > 1 else self._process(table)
            self._tracks[key] = self._out.tracks.add(path[-1], parent, clock=clock)
        return self._tracks[key]

    def stream(self, table: Table, shape: Shape, name: str, clock: ClockId) -> TrackId:
        """Return the track of the stream, or of the unified memory, that a row is about."""
        unified = name.startswith(UNIFIED)
        words = tuple(shape.row.get(word, "-").strip() for word in ("Device", "Context", "Stream"))
        key = ("stream", table.pid, words, unified, clock)
        if key not in self._tracks:
            device = _DEVICE.fullmatch(words[0])
            on_a_device = words[0] not in NONE
            path = [f"GPU {device['number']}: {device['name']}" if device else words[0].strip("- ") or "GPU"]
            if unified:
                path = [*path[:on_a_device], "Unified memory"]
            else:
                kinds = zip(("Context", "Stream"), words[1:], strict=True)
                path += [f"{kind} {word}" for kind, word in kinds if word not in NONE]
            self._tracks[key] = self.track(table, tuple(path), clock)
        return self._tracks[key]

    def totals(self, table: Table) -> TrackId:
        """Return a track for totals, below the process only if it has traces: tables alone are attached later."""
        if table.totals == NO_TRACK:
            title = table.title or "nvprof"
            key = ("totals", table.pid, title)
            if key not in self._tracks:
                process = self._tracks.get(("process", table.pid), NO_TRACK)
                if process == NO_TRACK and len(self.commands) > 1 and table.pid is not None:
                    title = f"{title} of process {table.pid}"
                about = f"process {table.pid}: " if table.pid is not None else ""
                command = self.commands.get(table.pid, "")
                self._tracks[key] = self._out.tracks.totals(
                    title, process, description=f"{about}{command}." if command else ""
                )
            table.totals = self._tracks[key]
        return table.totals
