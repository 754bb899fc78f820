"""NVTX in an export of Nsight Systems: ranges, marks, and the names that other rows of the same table define."""

from __future__ import annotations

from typing import Any

import msgspec

from traceconv.families.common.sqlite_tables import Row
from traceconv.families.nsight import _schema as schema
from traceconv.families.nsight._export import Export, Tracks
from traceconv.families.nsight._slices import NO_TIME, Described, Shape, Slices, Timeline
from traceconv.io.sqlite import as_text
from traceconv.model.builder import Builder
from traceconv.model.counted import PROPERTY_ROWS
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.trace import TrackId

UNKNOWN_TYPE = declare(
    "nsys.unknown_nvtx_type",
    ProblemKind.LOST,
    "an NVTX row is of an unknown type (not mark, range, category, domain or thread name): left out",
)

_TABLE = "NVTX_EVENTS"
_DESCRIBED = (
    "eventType",
    "globalPid",
    "text",
    "textId",
    "domainId",
    "category",
    "color",
    "rangeId",
    *schema.NVTX_PAYLOADS,
    "jsonText",
    "jsonTextId",
    "binaryData",
)
#: Where a range of nvtxRangeStart begins and ends.
_THREADS = ("globalTid", "endGlobalTid")
_Process = Any


class Nvtx:
    """Reads NVTX_EVENTS."""

    def __init__(self, export: Export, out: Builder, tracks: Tracks, timeline: Timeline) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._timeline = timeline
        self._domains: dict[tuple[_Process, Any], str] = {}
        self._categories: dict[tuple[_Process, Any, Any], str] = {}

    def read(self) -> None:
        """Read all rows, once what they refer to is defined."""
        if not self._export.has(_TABLE, "start", "eventType"):
            return
        ranges = {
            schema.NVTX_PUSH_POP: self._slices(("globalTid",), self._tracks.thread),
            schema.NVTX_START_END: self._slices(("globalTid", "domainId"), self._of_domain, _THREADS),
        }
        columns = ("start", "end", "globalTid", "endGlobalTid", *_DESCRIBED)
        kind_at = columns.index("eventType")
        for first, rows in self._export.portions(_TABLE, columns):
            numbered = list(enumerate(rows, first))
            for kind, slices in ranges.items():
                self._ranges(kind, slices, [(number, row) for number, row in numbered if row[kind_at] == kind])
            for number, row in numbered:
                if row[kind_at] not in ranges:
                    self._other(number, row, row[kind_at])

    def _slices(self, place: tuple[str, ...], track: Any, more: tuple[str, ...] = ()) -> Slices:
        return Slices(Shape(_TABLE, place, (*more, *_DESCRIBED), (), track, self._describe), self._timeline)

    def _ranges(self, kind: int, slices: Slices, chosen: list[tuple[int, Row]]) -> None:
        """Add ranges of rows in the order of the shape's columns; the process goes into the description."""
        numbers, rows = [], []
        for number, row in chosen:
            start, end, thread, end_thread, kind_, _, *rest = row
            process = _process(thread)
            place = (thread,) if kind == schema.NVTX_PUSH_POP else (thread, row[8], thread, end_thread)
            numbers.append(number)
            rows.append((start, end, *place, kind_, process, *rest))
        if rows:
            slices.add(numbers, rows)

    def _of_domain(self, thread: Any, domain: Any) -> TrackId:
        """Return the track of a domain for ranges that may end on another thread and may overlap."""
        name = self._domains.get((_process(thread), domain), "")
        title = f"NVTX ranges ({name})" if name else "NVTX ranges"
        return self._tracks.group(title, thread, description="Ranges of nvtxRangeStart and nvtxRangeEnd.")

    # -- names --------------------------------------------------------------------------------------------------

    def define(self) -> None:
        """Read the names of domains, categories and threads."""
        if not self._export.has(_TABLE, "eventType"):
            return
        chosen = ", ".join(map(str, schema.NVTX_DEFINITIONS))
        columns = ("eventType", "globalTid", "domainId", "category", "text", "textId")
        for _, rows in self._export.portions(_TABLE, columns, where=f'WHERE "eventType" IN ({chosen})'):
            for kind, thread, domain, category, text, text_id in rows:
                name = self._text(text, text_id)
                if kind == schema.NVTX_DOMAIN and name:
                    self._domains[_process(thread), domain] = name
                elif kind == schema.NVTX_CATEGORY and name:
                    self._categories[_process(thread), domain or 0, category] = name
                elif kind == schema.NVTX_THREAD_NAME:
                    self._tracks.name_thread(thread, None, name)

    def _text(self, text: Any, text_id: Any) -> str:
        """Return the name as given, or the registered string."""
        return as_text(text) if text not in (None, "") else self._export.text(text_id)

    # -- events -------------------------------------------------------------------------------------------------

    def _other(self, number: int, row: Row, kind: Any) -> None:
        """Add a mark, count a definition, or skip an event of an unknown kind."""
        out = self._out
        out.balance.read += 1
        if kind in schema.NVTX_DEFINITIONS:
            out.balance.merged[PROPERTY_ROWS] += 1
        elif kind != schema.NVTX_MARK:
            out.skip(UNKNOWN_TYPE, f"{_TABLE} row {number}", f"eventType {kind!r:.40}")
        elif type(row[0]) is not int:
            out.skip(NO_TIME, f"{_TABLE} row {number}", f"start {row[0]!r:.40}")
        else:
            values = dict(zip(_DESCRIBED, row[4:], strict=True))
            event = self._describe(values | {"globalPid": _process(row[2])})
            out.instant(self._tracks.thread(row[2]), row[0], event.name, event.category, event.args, number)
            out.balance.written += 1

    def _describe(self, values: dict[str, Any]) -> Described:
        process, domain = values["globalPid"], values["domainId"]
        args: dict[str, Any] = {}
        for column, name in zip(_THREADS, ("thread", "end_thread"), strict=True):
            if isinstance(values.get(column), int):
                args[name] = schema.tid_of(values[column])
        domain_name = self._domains.get((process, domain))
        if domain_name or domain:
            args["domain"] = domain_name or domain
        category = values["category"]
        if category:
            args["category"] = self._categories.get((process, domain or 0, category), category)
        color = values["color"]
        if isinstance(color, int) and color:
            args["color"] = f"#{color & 0xFFFFFFFF:08x}"
        args |= self._payload(values)
        return Described(self._text(values["text"], values["textId"]) or "[NVTX]", "nvtx", args)

    def _payload(self, values: dict[str, Any]) -> dict[str, Any]:
        for column in schema.NVTX_PAYLOADS:
            value = values[column]
            if value is not None:
                return {"payload": value & 0xFFFFFFFFFFFFFFFF if column == "uint64Value" else value}
        text = self._text(values["jsonText"], values["jsonTextId"])
        if text:
            try:
                payload = msgspec.json.decode(text)
                msgspec.json.encode(payload)  # what is nested too deeply for it stays a text
            except (msgspec.DecodeError, RecursionError):
                payload = text
            return {"payload": payload}
        binary = values["binaryData"]
        return {} if binary in (None, "") else {"payload_binary": binary}


def _process(thread: Any) -> _Process:
    return schema.process_of(thread) if isinstance(thread, int) else None
