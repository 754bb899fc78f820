"""NVTX: ranges and marks that the program or its libraries set.

A range is two rows of MARKER with one id: where it starts (with the name) and where it ends (without). Whether it was
pushed and popped on a thread or started and ended anywhere is not stored. It is drawn on the thread where it started;
ranges that cross there go to lanes. Colour, category and payload are in MARKER_DATA, under the same id.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from traceconv.families.nvprof._calls import Extras
from traceconv.families.nvprof._tables import Activities
from traceconv.families.nvprof._tracks import CONTEXT, DEVICE, PROCESS, STREAM, THREAD, ObjectId, Tracks
from traceconv.model.builder import Builder
from traceconv.model.counted import JOINED_ENDS
from traceconv.model.paired_slices import UNBEGUN_END, UNENDED
from traceconv.model.trace import TrackId

CATEGORY = "nvtx"

_INSTANT, _START, _END = 1, 2, 4
_SYNC = {8: "acquire", 16: "acquired", 32: "acquire failed", 64: "release"}
_COLOR_ARGB = 2
#: CUpti_MetricValueKind, of payloads.
_PAYLOADS = {0: "<d", 1: "<Q", 2: "<d", 3: "<Q", 4: "<q", 5: "<I"}
_MARKER_COLUMNS = ("flags", "timestamp", "id", "objectKind", "objectId", "name", "domain")
_DATA_COLUMNS = ("flags", "id", "payloadKind", "payload", "color", "category")


class _Open(NamedTuple):
    """A range that has started."""

    track: TrackId
    ts: int
    name: str
    args: dict[str, Any]
    row: int


class Marks:
    """Reads MARKER and MARKER_DATA."""

    def __init__(self, activities: Activities, tracks: Tracks, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._out = out
        self._data = Extras(out)
        self._open: dict[Any, list[_Open]] = {}

    def read(self) -> None:
        """Read all ranges and marks; those that are open at the end stay so until `close`."""
        for row, flags, number, kind, payload, color, category in self._activities.rows("MARKER_DATA", _DATA_COLUMNS):
            place = self._activities.place("MARKER_DATA", row)
            self._data.add(number, "MARKER_DATA", self._data_args(place, flags, kind, payload, color, category))
        for row, flags, ts, *rest in self._activities.rows("MARKER", _MARKER_COLUMNS, order="timestamp"):
            if self._activities.is_time("MARKER", row, ts):
                self._mark(row, flags if isinstance(flags, int) else 0, ts, *rest)
        self._data.report_left(self._out.info.name)

    def _data_args(self, place: str, flags: Any, kind: Any, payload: Any, color: Any, category: Any) -> dict[str, Any]:
        args: dict[str, Any] = {}
        if category:
            args["nvtx_category"] = self._activities.text(category, place)
        if isinstance(color, int) and isinstance(flags, int) and flags & _COLOR_ARGB:
            args["color_argb"] = f"{color & 0xFFFFFFFF:08x}"
        value = _payload(kind, payload)
        if value:
            args["payload"] = value
        return args

    def _mark(self, row: int, flags: int, ts: int, number: Any, kind: Any, blob: Any, name: Any, domain: Any) -> None:
        place = self._activities.place("MARKER", row)
        if flags & _END:
            self._end(place, ts, number)
            return
        about = ObjectId.of(kind, blob)
        track = self._track(about)
        args = {"domain": self._activities.text(domain, place)} if domain else {}
        args |= self._data.take(number, "ranges and marks")
        sync = [word for bit, word in _SYNC.items() if flags & bit]
        args |= {"sync": ", ".join(sync)} if sync else {}
        text = self._activities.text(name, place)
        if flags & _START:
            self._open.setdefault(number, []).append(_Open(track, ts, text, args, row))
        else:
            self._out.instant(track, ts, text, CATEGORY, args, row)
            self._out.balance.written += 1

    def _end(self, place: str, ts: int, number: Any) -> None:
        started = self._open.get(number)
        if not started:
            self._out.skip(UNBEGUN_END, place)
            return
        one = started.pop()
        if not started:
            del self._open[number]
        self._out.slice(one.track, one.ts, ts - one.ts, one.name, CATEGORY, one.args, one.row)
        self._out.balance.written += 1
        self._out.balance.merged[JOINED_ENDS] += 1

    def close(self) -> None:
        """End all open ranges where the recording ends."""
        last = self._out.tables.last_ts()
        for started in self._open.values():
            for one in started:
                self._out.problem(UNENDED, self._activities.place("MARKER", one.row), repr(one.name))
                args = one.args | {"unfinished": True}
                self._out.slice(one.track, one.ts, max(last - one.ts, 0), one.name, CATEGORY, args, one.row)
                self._out.balance.written += 1

    def _track(self, about: ObjectId) -> TrackId:
        if about.kind == THREAD:
            return self._tracks.thread(about.first, about.second)
        if about.kind in (DEVICE, CONTEXT, STREAM):
            return self._device_track(about)
        return self._tracks.below_process(about.first if about.kind == PROCESS else None, "NVTX")

    def _device_track(self, about: ObjectId) -> TrackId:
        pids = self._tracks.pids()
        pid = pids[0] if len(pids) == 1 else None
        if about.kind == DEVICE:
            return self._tracks.below_device(pid, about.first, "NVTX")
        if about.kind == CONTEXT:
            return self._tracks.context(pid, about.first, about.second)
        return self._tracks.stream(pid, about.first, about.second, about.third)


def _payload(kind: Any, payload: Any) -> Any:
    """Return the number that a program gave along; None for none, which is stored as 0."""
    if not isinstance(payload, bytes) or kind not in _PAYLOADS:
        return payload if isinstance(payload, int | float) else None
    layout = struct.Struct(_PAYLOADS[kind])
    (value,) = layout.unpack(payload[: layout.size].ljust(layout.size, b"\0"))
    return value if value == value and abs(value) != float("inf") else str(value)
