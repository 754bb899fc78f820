"""SQLite exports of Nsight Systems reports (`nsys export --type sqlite`, `nsys stats`): tables of a whole session.

    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER ...
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);

Times are integer nanoseconds since the start of the session. Tables are created only for what was recorded, and their
columns differ by version: whatever has a start and a thread is drawn on that thread, known tables with more care. What
is taken for granted about the numbers is in `exported`. Compared by table and column with public exports of 2020 to
2025.3 (docs/formats.md names them); of the rest there is the vendor's description only.

The report itself (.nsys-rep, .qdrep) is a closed format: export it. Described at
https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from traceconv.errors import InputError, MalformedInput
from traceconv.families.common import cupti as _cupti
from traceconv.families.common import torch_ranges
from traceconv.families.common.sqlite_tables import Row
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.nsight import exported
from traceconv.families.nsight.activity_tables import (
    CORRELATION,
    NO_TIME,
    Described,
    DeviceWork,
    Sampled,
    Shape,
    Slices,
    Timeline,
    read_memory,
)
from traceconv.families.nsight.exported import DAMAGED, Export, Tracks
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.io.sqlite import MAGIC, Database, as_text, open_database
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero, looks_like_unix_time
from traceconv.model.diagnostics import ROWS, absent, lost, skipped
from traceconv.model.marks import GPU_MARKS, SYSTEM_WAITS
from traceconv.model.track_table import TrackId

PROPERTY_ROWS = Counted("row of names and properties", "rows of names and properties")
MESSAGES_OF_OTHER_CLOCKS = Counted(
    "row of messages with a time of another clock, kept as metadata",
    "rows of messages with a time of another clock, kept as metadata",
)

SESSION_CLOCK = ClockDomain("Nsight Systems session", Zero.RUN_START, Run.MONOTONIC)

NOT_WANTED = skipped(
    "nsys.os_runtime",
    "OS runtime calls were left out, as the option os_runtime=false asks",
    quiet=True,
)
NO_CORRELATION = absent(
    "nsys.no_correlation",
    "a table of calls or of device work has no correlationId: no flow shows which call started which work",
)
#: Behind CUPTI_ACTIVITY_KIND_; calls and the work that they start.
_CORRELATED = ("RUNTIME", "DRIVER", "KERNEL", "MEMCPY", "MEMSET")
UNTIMED = skipped(
    "nsys.untimed_table",
    "tables without times, to which no drawn event refers, were left out",
    quiet=True,
)
_EXPORT = "export the report: nsys export --type=sqlite --force-overwrite=true report.nsys-rep"


UNKNOWN_TYPE = lost(
    "nsys.unknown_nvtx_type",
    "an NVTX row is of an unknown type (not mark, range, category, domain or thread name): left out",
)

_TABLE = "NVTX_EVENTS"
_DESCRIBED = (
    *("eventType", "globalPid", "text", "textId", "domainId", "category", "color", "rangeId"),
    *(*exported.NVTX_PAYLOADS, "jsonText", "jsonTextId", "binaryData"),
)
#: Where a range of nvtxRangeStart begins and ends.
_THREADS = ("globalTid", "endGlobalTid")


class Nvtx:
    def __init__(self, export: Export, out: Builder, tracks: Tracks, timeline: Timeline) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._timeline = timeline
        self._domains: dict[tuple[Any, Any], str] = {}
        self._categories: dict[tuple[Any, Any, Any], str] = {}

    def read(self) -> None:
        """Read all rows, once what they refer to is defined."""
        if not self._export.has(_TABLE, "start", "eventType"):
            return
        ranges = {
            exported.NVTX_PUSH_POP: self._slices(("globalTid",), self._tracks.thread),
            exported.NVTX_START_END: self._slices(("globalTid", "domainId"), self._of_domain, _THREADS),
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
            place = (thread,) if kind == exported.NVTX_PUSH_POP else (thread, row[8], thread, end_thread)
            numbers.append(number)
            rows.append((start, end, *place, kind_, process, *rest))
        if rows:
            slices.add(numbers, rows)

    def _of_domain(self, thread: Any, domain: Any) -> TrackId:
        """Return the track of a domain for ranges that may end on another thread and may overlap."""
        name = self._domains.get((_process(thread), domain), "")
        title = f"NVTX ranges ({name})" if name else "NVTX ranges"
        return self._tracks.group(title, thread, description="Ranges of nvtxRangeStart and nvtxRangeEnd.")

    def define(self) -> None:
        """Read the names of domains, categories and threads."""
        if not self._export.has(_TABLE, "eventType"):
            return
        chosen = ", ".join(map(str, exported.NVTX_DEFINITIONS))
        columns = ("eventType", "globalTid", "domainId", "category", "text", "textId")
        for _, rows in self._export.portions(_TABLE, columns, where=f'WHERE "eventType" IN ({chosen})'):
            for kind, thread, domain, category, text, text_id in rows:
                name = self._text(text, text_id)
                if kind == exported.NVTX_DOMAIN and name:
                    self._domains[_process(thread), domain] = name
                elif kind == exported.NVTX_CATEGORY and name:
                    self._categories[_process(thread), domain or 0, category] = name
                elif kind == exported.NVTX_THREAD_NAME:
                    self._tracks.name_thread(thread, None, name)

    def _text(self, text: Any, text_id: Any) -> str:
        return as_text(text) if text not in (None, "") else self._export.text(text_id)

    def _other(self, number: int, row: Row, kind: Any) -> None:
        """Add a mark, count a definition, or skip an event of an unknown kind."""
        out = self._out
        out.balance.read += 1
        if kind in exported.NVTX_DEFINITIONS:
            out.balance.merged[PROPERTY_ROWS] += 1
        elif kind != exported.NVTX_MARK:
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
                args[name] = exported.tid_of(values[column])
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
        text = self._text(values["text"], values["textId"]) or "[NVTX]"
        name, category, more = torch_ranges.described(text)
        return Described(name, category, args | more)

    def _payload(self, values: dict[str, Any]) -> dict[str, Any]:
        for column in exported.NVTX_PAYLOADS:
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


def _process(thread: Any) -> Any:
    return exported.process_of(thread) if isinstance(thread, int) else None


class _Reader:
    def __init__(self, export: Export, out: Builder, *, os_runtime: bool) -> None:
        self._export = export
        self._out = out
        self._os_runtime = os_runtime
        self._tracks = Tracks(export, out)
        self._timeline = Timeline(out)
        self._nvtx = Nvtx(export, out, self._tracks, self._timeline)

    def read(self) -> None:
        export = self._export
        self._metadata()
        self._nvtx.define()
        self._calls()
        self._timeline.process_of_work = self._tracks.only_process()
        DeviceWork(export, self._out, self._tracks, self._timeline).read()
        self._export.take("NVTX_EVENTS")
        self._nvtx.read()
        Sampled(export, self._out, self._tracks).read()
        read_memory(export, self._out, self._tracks)
        self._diagnostics()
        self._others()
        self._timeline.close()
        self._timeline.join()
        self._check_correlation()
        self._properties()

    def _check_correlation(self) -> None:
        """Say which tables lack the ids that join calls and their work."""
        for table in (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in _CORRELATED):
            if self._export.has(table, "start") and not self._export.has(table, "correlationId"):
                self._out.problem(NO_CORRELATION, table)

    def _metadata(self) -> None:
        export, out = self._export, self._out
        environment = {
            str(name): str(value) for name, value in export.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value"))
        }
        machine = environment.get("Hostname", "")
        clock = structs.replace(SESSION_CLOCK, machine=machine).owned_by(out.info.name)
        out.clocks.set_default(clock)
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"):
            stated = {as_text(name): _fact(value) for name, value in export.rows(table, ("name", "value"))}
            if stated:
                out.metadata[f"nsys_{exported.META_DATA.get(table, table).lower()}"] = stated
        gpus = [{"id": number, "name": name} for number, name in self._tracks.gpus.items()]
        info = {"hostname": machine, "gpus": gpus, "duration_ns": self._duration()}
        known = {key: value for key, value in info.items() if value}
        if known:
            out.metadata["nsys"] = known
        self._anchor(clock)

    def _duration(self) -> int | None:
        durations = [time for (time,) in self._export.rows("ANALYSIS_DETAILS", ("duration",)) if isinstance(time, int)]
        return durations[0] if durations else None

    def _anchor(self, clock: ClockDomain) -> None:
        """Anchor the clock at the start of the session since 1970, if the export knows it."""
        columns = ("utcEpochNs", "utcTime")
        for epoch, text in self._export.rows("TARGET_INFO_SESSION_START_TIME", columns):
            if isinstance(epoch, int) and looks_like_unix_time(epoch):
                method = "utcEpochNs of TARGET_INFO_SESSION_START_TIME"
                self._out.clocks.snapshot(ClockSnapshot(clock, 0, REALTIME, epoch, None, method))
                self._out.metadata["nsys_start"] = {"utc_epoch_ns": epoch, "utc": _fact(text)}
                return
        self._out.note(
            "the export states no valid start of the session (TARGET_INFO_SESSION_START_TIME, since 2021): place it "
            "with --offset to merge it"
        )

    def _calls(self) -> None:
        for table, category in exported.THREAD_TABLES.items():
            if table in self._export.tables:
                self._thread_table(table, category)

    def _thread_table(self, table: str, category: str) -> None:
        """Read any table whose rows have a start and a thread."""
        export = self._export
        if not export.has(table, "start", "globalTid"):
            return
        self._export.take(table)
        if table == "OSRT_API" and not self._os_runtime:
            count = export.count(table)
            self._out.balance.read += count
            self._out.skip(NOT_WANTED, table, count=count)
            return
        is_call = export.has(table, "correlationId") and table.endswith(("_KIND_RUNTIME", "_KIND_DRIVER"))
        place = {"start", "end", "globalTid", "correlationId"}
        described = tuple(column for column in export.tables[table] if column not in place)
        is_grouped = table.endswith("_WORKLOAD") or table.startswith("WDDM_")
        shape = Shape(
            table,
            ("globalTid",),
            described,
            (CORRELATION,) if export.has(table, "correlationId") else (),
            partial(self._tracks.group, table) if is_grouped else self._tracks.thread,
            partial(self._call, table, category),
            "call" if is_call else "",
        )
        Slices(shape, self._timeline).read(export, end="end" if export.has(table, "end") else "")

    def _call(self, table: str, category: str, values: dict[str, Any]) -> Described:
        name = ""
        for column in exported.NAME_COLUMNS:
            value = values.get(column)
            if not name and value is not None:
                name = self._export.text(value) if column in exported.TEXT_IDS else str(value)
        if name in ("", exported.NO_STRING) and "eventClass" in values:
            name = str(self._export.enum("eventClass", values["eventClass"]))
        if category in (_cupti.RUNTIME_API, _cupti.DRIVER_API):
            category = exported.EVENT_CLASS.get(values.get("eventClass", -1), category)
            if category == _cupti.RUNTIME_API and name.startswith("cu") and not name.startswith("cuda"):
                category = _cupti.DRIVER_API
            name = _cupti.display_api_name(name)
        args = self._export.args(
            table, {column: value for column, value in values.items() if column not in exported.NAME_COLUMNS}
        )
        if not args.get("return_value", 1):
            del args["return_value"]
        return Described(name or table, category, args)

    def _diagnostics(self) -> None:
        """Keep what the profiler says about its own recording; warnings are shown to the user as well."""
        table, out = "DIAGNOSTIC_EVENT", self._out
        if not self._export.take(table):
            return
        columns = ("timestamp", "severity", "source", "text", "globalPid", "timestampType")
        for number, (ts, severity, source, text, process, clock) in self._export.counted(table, columns):
            word = str(self._export.enum("severity", severity))
            name = " ".join(str(text or "").split())
            args = {"severity": word, "source": self._export.enum("source", source)}
            if word in ("Warning", "Error"):
                out.note(f"Nsight Systems {word.lower()}: {name:.300}")
            if clock == exported.HOST_TIMESTAMP or not _is_of_session(ts):
                out.metadata.setdefault("nsys_messages", []).append({"text": name, **args})
                out.balance.merged[MESSAGES_OF_OTHER_CLOCKS] += 1
                continue
            track = self._tracks.group("Nsight Systems messages", process)
            out.instant(track, ts, name or "[message]", "diagnostic", args, number)
            out.balance.written += 1

    def _others(self) -> None:
        """Draw tables that are not known, if their rows have times."""
        for table in sorted(self._export.tables.keys() - self._export.taken):
            if table.startswith(("ENUM_", "sqlite_")):
                continue
            if self._export.has(table, "start", "globalTid"):
                category = "openmp" if table.startswith("OPENMP") else table.lower().removesuffix("_events")
                self._thread_table(table, category)
                continue
            times = [c for c in ("start", "startedAt", "timestamp") if self._export.has(table, c)]
            if times:
                self._table_of_its_own(table, times[0])

    def _table_of_its_own(self, table: str, time: str) -> None:
        self._export.take(table)
        end = {"start": "end", "startedAt": "endedAt", "timestamp": ""}[time]
        described = tuple(c for c in self._export.tables[table] if c not in (time, end, "globalPid"))
        shape = Shape(
            table,
            ("globalPid",),
            described,
            (),
            partial(self._tracks.group, table),
            partial(self._call, table, table.lower().removesuffix("_events")),
        )
        Slices(shape, self._timeline).read(self._export, time, end if self._export.has(table, end) else "")

    def _properties(self) -> None:
        """Count the rows of tables without times."""
        balance = self._out.balance
        for table in sorted(self._export.tables):
            is_used = table in exported.PROPERTIES or table.startswith("ENUM_")
            if (table in self._export.taken and not is_used) or table.startswith("sqlite_"):
                continue
            count = self._export.count(table)
            balance.read += count
            if is_used and count:
                balance.merged[PROPERTY_ROWS] += count
            elif count:
                self._out.skip(UNTIMED, table, count=count)


def _is_of_session(ts: Any) -> bool:
    return type(ts) is int and -exported.SESSION_LIMIT_NS < ts < exported.SESSION_LIMIT_NS


def _fact(value: Any) -> Any:
    """Return a value as metadata can hold it."""
    return value if value is None or isinstance(value, int | str) else as_text(value)


@dataclass(frozen=True)
class NsightSystems(Importer):
    name = "nsight-systems"
    title = "NVIDIA Nsight Systems, SQLite export of a report"
    url = "https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html"
    versions = "schemas of 2020 to 2026.4 (3.28.1), tried to 2025.3"
    signature = Signature("stringids")
    clock = SESSION_CLOCK
    record = (
        "nsys profile --trace=cuda,nvtx,osrt --output=report python run.py && "
        "nsys export --type=sqlite --output=report.sqlite report.nsys-rep"
    )
    skips = (NOT_WANTED, UNTIMED)
    os_runtime: bool = option(
        True,
        "whether calls of the OS runtime libraries (poll, pthread_cond_wait, ...) are wanted; they are most "
        "of the rows of many reports.",
    )

    line_up = (
        "The start of the session since 1970 (TARGET_INFO_SESSION_START_TIME) aligns it with wall clocks, as "
        "accurately as the clocks of the machines agree. Exports from before 2021 need --offset."
    )
    becomes = (
        ("kernel, copy, memset, CUDA graph, host function", "slice on its stream, below context, device and process"),
        ("runtime and driver call, OS runtime call, cuDNN, cuBLAS, MPI, UCX, OpenACC, OpenMP", "slice on its thread"),
        ("correlation id", "flow from the call to the work that it started"),
        ("NVTX push/pop range", "slice on its thread, with domain, category, colour and payload as args"),
        ("NVTX operator of PyTorch (emit_nvtx)", "the same; sequence number, shapes and call ids are args"),
        ("NVTX start/end range", "slice on a track of its domain, with both threads as args"),
        ("NVTX mark, CUDA event, CPU page fault", "instant"),
        ("copy or fault of unified memory", "slice on the track of unified memory of its device"),
        ("GPU, SoC, network and CPU metric, allocation and free", "counter"),
        ("call stack sample", "sample of its thread"),
        ("scheduling in and out", "slices on a track of the states of the thread"),
        ("message of the profiler", "instant and, if a warning, a note"),
        ("unknown table with times", "slices or instants on the thread, or on a track of the table's name"),
    )
    lost = (
        "The report itself (.nsys-rep, .qdrep) is in a closed format: export it first.",
        "Binary NVTX payloads are kept as text.",
        "Kernels and calls whose times, and kernels whose start is 0 (not collected) are counted, not drawn.",
        "The accuracy of the session's start against the wall clock is not known.",
        torch_ranges.LOST,
    )
    marks = structs.replace(
        GPU_MARKS,
        zero_before_work=True,
        waits=rf"{SYSTEM_WAITS}|{exported.SYNCHRONIZATION}",
        spans=exported.THREAD_STATE,
        environment={"host": ("nsys", "hostname"), "device": ("nsys", "gpus", "name")},
        **torch_ranges.MARKS,
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the table of strings together with tables that no one else has."""
        tables = set(head.tables)
        if (
            "StringIds" in tables
            and tables.intersection(exported.MARKS)
            and not tables.intersection(exported.NOT_MARKS)
        ):
            return Match.yes("an SQLite database with StringIds and tables of Nsight Systems")
        return Match.no("no SQLite database with the tables of Nsight Systems (StringIds and others)")

    def read(self, source: Source, out: Builder) -> None:
        out.info.real_ids = True
        out.counts(ROWS)
        if not source.head().data.startswith(MAGIC):
            raise MalformedInput(
                source.display, "", "not an SQLite database, expected an export of a report", hint=_EXPORT
            )
        try:
            with open_database(source.database()) as database:
                for note in database.notes:
                    out.note(note)
                self._read_tables(source, database, out)
        except InputError as error:  # damaged before the first table
            raise MalformedInput(source.display, "", error.reason, hint=error.hint or _EXPORT) from None
        if not out.balance.written:
            self._say_why_empty(source, out)

    def _read_tables(self, source: Source, database: Database, out: Builder) -> None:
        if "StringIds" not in database.tables:
            tables = ", ".join(sorted(database.tables)[:5]) or "no tables"
            reason = f"no table StringIds among {tables}, expected an export of Nsight Systems"
            raise MalformedInput(source.display, "", reason, hint=_EXPORT)
        _Reader(Export(database, out), out, os_runtime=self.os_runtime).read()

    def _say_why_empty(self, source: Source, out: Builder) -> None:
        if out.info.diagnostics.count(DAMAGED):
            raise MalformedInput(
                source.display,
                "",
                "the database is cut or damaged: no event could be read",
                hint=_EXPORT,
            )
        out.note(
            "the export holds no events: nothing was traced (nsys profile --trace), the capture range never began, or "
            "other tables were exported"
        )
