"""oneDNN verbose logs (earlier MKL-DNN, DNNL; with oneDNN Graph): lines between the program's own output.

    onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)
    onednn_verbose,v1,1795244047598.492920,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0,,,16,0.003

Timestamp and duration are milliseconds; the timestamp is the start of the call, the line is printed after its end. On
Linux and macOS it is gettimeofday held in a double: whole microseconds since 1970, which rounding recovers exactly. On
Windows it counts from boot. Logs without timestamps (all before 2.1, and later ones that did not ask for
them) hold order and durations only: their slices are laid end to end on tracks that are called synthetic.

Neither process nor thread is printed. Calls of several threads overlap; they stay on the track of their engine. A
second version header starts a new run with tracks of its own. Limits: lines of other processes cannot be distinguished,
and with a filter or a lower level lines are missing.

A network repeats its primitives, and durations are printed with few digits, so most lines differ in their timestamps
only. `families.common._lines` recognises those by their bytes; `_RepeatedLines` keeps their rows, with the args once.

Described at https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html; `grammar` reads single lines.
"""

from __future__ import annotations

import re
from array import array
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from traceconv import kernel
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.onednn import grammar
from traceconv.families.onednn.grammar import MARK, Kind, Malformed, Record, Shape, args_of, duration_ns
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.columns import I64, occurring
from traceconv.model.diagnostics import LINES, absent, noted, repaired, skipped
from traceconv.model.marks import FormatMarks, PrimitiveMarks
from traceconv.model.numbers import LIMIT_NS, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.track_table import NO_TRACK, ClockId, TrackId

KEPT_LINES = Counted("line kept as metadata", "lines kept as metadata")
UNMARKED_LINES = Counted("line without a oneDNN marker", "lines without a oneDNN marker")

WALL_CLOCK = replace(REALTIME, resolution_ns=1000, exact_durations=True)
BOOT_CLOCK = ClockDomain("QueryPerformanceCounter", Zero.BOOT, Run.MONOTONIC)
NO_CLOCK = ClockDomain("order of the oneDNN lines", Zero.UNKNOWN, Run.NONE)

# oneDNN v3.12.0 (commit 80afa71) | Intel(R) MKL-DNN v0.19.0 (Git Hash 41bee20),Intel(R) AVX512-Deep Learning Boost
_HEADER = re.compile(
    r"(?P<library>[^,:]{0,40}DNN[^,:]{0,20}?) v(?P<version>\d[\w.+-]*)(?: \((?:commit|Git Hash) (?P<commit>[^)]*)\))?"
)
_GROUP_RANK = {"graph": 0, "compile": 1, "exec": 2, "create": 3}
_SHOWN = {"graph": "graph partitions", "exec": "primitives", "create": "creation of primitives"}
SYNTHETIC_HELP = "The log has no timestamps here: order and durations are real, positions are not."

#: Timestamps from here on count from 1970 (this is 1973), smaller ones from boot (this is three years).
_EPOCH_FROM_NS = 10**17
#: A line may appear late by its own duration, and by the time its thread waited before printing.
_LATE_NS = 10**8

_ROWS = 1 << 16
_MOST_ENTRIES = 1 << 17
_COLUMNS = 6
_LONGEST_NS = 10**17

FOREIGN_LINE = skipped(
    "onednn.other_line", "lines without a oneDNN marker are the program's own output and were left out", quiet=True
)
DECIMAL_COMMA = repaired(
    "onednn.decimal_comma",
    "numbers are printed with a decimal comma (the locale of the program): the last two fields were read as one number",
)
UNUSABLE_TIMESTAMP = noted(
    "onednn.unusable_timestamp",
    "a timestamp has too few digits to be useful (gemm calls of 2.7 to 3.1): drawn on a synthetic track instead",
)
NO_DURATION = absent(
    "onednn.no_duration", "a call is printed without a duration (GPU in version 1.1): drawn as an instant"
)
UNKNOWN_VERSION = noted("onednn.unknown_version", "the lines state an unknown version of their format: read like v1")
TIME_STEP = noted(
    "onednn.time_step",
    "timestamps jump back by more than the duration of any slice: the clock was set, or several "
    "processes write to one log",
)

_JSON_START = re.compile(rb"\{\s*[\"}]|\[\s*[\[{\"]")
#: The formats of programs that call oneDNN, or may do so.
_RUNTIMES = (
    "pytorch-kineto",
    "mxnet",
    "onnxruntime",
    "tensorflow-profiler",
    "xplane",
    "openvino",
    "tvm-execution-trace",
    "viztracer",
)
#: What headers of runs state.
_ENVIRONMENT = {
    "oneDNN": ("onednn_runs", "version"),
    "runtime": ("onednn_runs", "cpu_runtime"),
    "threads": ("onednn_runs", "nthr"),
    "instructions": ("onednn_runs", "isa"),
}
_PRIMITIVES = PrimitiveMarks(
    calls=("exec",),
    implementation="impl",
    reference=r"(?:^|[:_])ref(?:[:_]|$)",
    reorders=r"reorder",
    gflop="derived_gflop",
    formula="2 operations for each multiplication with its addition, as if padding were computed, backward as forward",
    problem="problem",
    sizes=r"(?:mb|oc|o[dhw])(\d+)",
    size="derived_bytes",
)


# -- runs --------------------------------------------------------------------------------------------------------------


class _Layout(msgspec.Struct):
    """The synthetic times of one engine: slices end to end from 0."""

    end: int = 0  # the start of the next slice
    #: Start and group of the last slices that no graph partition encloses.
    uncovered: deque[tuple[int, str]] = msgspec.field(default_factory=lambda: deque(maxlen=4096))

    def place(self, group: str, dur: int) -> int:
        """Return the start of a slice, ns; a partition contains as many of the primitives printed before it as fit."""
        start = self.end
        inner = {"graph": "exec", "compile": "create"}.get(group)
        while inner and self.uncovered:
            inner_start, inner_group = self.uncovered.pop()
            if inner_group != inner or self.end - inner_start > dur:
                break
            start = inner_start
        if inner:
            self.uncovered.clear()
        else:
            self.uncovered.append((start, group))
        self.end = max(self.end, start + max(dur, 0))
        return start


class _LogRun(msgspec.Struct):
    """The lines from one version header to the next, mostly of a process."""

    number: int
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    root: TrackId = NO_TRACK
    tracks: dict[tuple[str, str, str], TrackId] = msgspec.field(default_factory=dict)
    layouts: dict[str, _Layout] = msgspec.field(default_factory=dict)
    last: tuple[int, ClockDomain] = (0, NO_CLOCK)  # the last event, for messages without a time
    latest: int = 0  # the last start and the greatest duration of timed slices so far, ns
    longest: int = 0

    def describe(self) -> str:
        """Return the library, its version and its device, as far as the log states them."""
        info = self.info
        parts = [f"{info['library']} {info['version']}"] if "version" in info else []
        labels = {"commit": "commit", "isa": "ISA", "cpu_runtime": "CPU runtime", "nthr": "threads"}
        parts += [f"{label} {info[key]}" for key, label in labels.items() if key in info]
        return ", ".join(parts)


@lru_cache(maxsize=1024)
def _info_of(component: str, text: str) -> dict[str, Any]:
    """Return the content of an info line, cached for runs with equal lines; under "info" if not understood."""
    header = _HEADER.match(text)
    if header is not None:
        info: dict[str, Any] = {key: value for key, value in header.groupdict().items() if value}
        if text[header.end() :].startswith(","):  # 0.18 to 0.20 have it on the same line
            info["isa"] = text[header.end() + 1 :]
        return info
    known = re.fullmatch(r"(?:(cpu|gpu),)?(isa:|runtime:|Detected ISA is |(?:prim_)?template:)(.*)", text)
    if known is None:
        return {"info": f"{component},{text}" if component else text}
    if known[2] == "runtime:":
        runtime, _, threads = known[3].partition(",nthr:")
        number = whole_of(threads)
        return {f"{known[1] or 'cpu'}_runtime": runtime} | ({} if number is None else {"nthr": number})
    if known[2].endswith("template:"):
        return {"graph_template" if component == "graph" else "template": known[3]}
    return {"isa": known[3]}


class _Runs:
    """The runs of one log, and their tracks."""

    def __init__(self, out: Builder, pid: int | None) -> None:
        self.all: list[_LogRun] = []
        self.is_synthetic = False  # whether any track has synthetic times
        self._out = out
        self._pid = pid
        self._process = NO_TRACK
        self._current: dict[tuple[bytes, bytes], _LogRun] = {}
        self._closed_info: dict[str, Any] = {}
        self._has_clock = False

    def run_of(self, marker: bytes, version: bytes) -> _LogRun:
        """Return the run of a line: two libraries in one process differ in marker or version."""
        if marker == b"onednn_graph" and self.all:
            return self.all[-1]
        key = (marker, version)
        return self._current.get(key) or self._new_run(key)

    def _new_run(self, key: tuple[bytes, bytes]) -> _LogRun:
        run = self._current[key] = _LogRun(len(self.all) + 1)
        self.all.append(run)
        return run

    def _close(self, run: _LogRun) -> None:
        """Free the memory of a run that has ended: there may be ten thousands."""
        run.tracks, run.layouts = {}, {}
        if run.info == self._closed_info:
            run.info = self._closed_info
        self._closed_info = run.info

    def note(self, record: Record) -> None:
        """Keep the content of an info line; a second version header starts a new run."""
        component, text = grammar.info_of(record.marker, record.body)
        run = self.run_of(record.marker, record.version)
        if _HEADER.match(text):
            if record.marker == b"onednn_graph" and "version" in run.info:
                run.info["graph_version"] = text
                return
            if "version" in run.info:
                self._close(run)
                run = self._new_run((record.marker, record.version))
        info = _info_of(component, text)
        if "info" in info:
            run.info.setdefault("info", []).append(info["info"])
        else:
            run.info.update(info)

    def track(self, run: _LogRun, group: str, engine: str, clock: ClockDomain) -> TrackId:
        """Return the track of a group of lines of an engine, on that clock."""
        key = (group, engine, clock.name)
        track = run.tracks.get(key)
        if track is not None:
            return track
        clock_id = self._clock_id(clock)
        if engine.startswith("gpu"):
            self._out.info.layer = Layer.DEVICE
        if run.root == NO_TRACK:
            if self._process == NO_TRACK and self._pid is not None:
                self._process = self._out.tracks.process(pid=self._pid)
            run.root = self._out.tracks.add("oneDNN", self._process, clock=clock_id)
        name = engine if group == "exec" else f"{engine} {group}".strip()
        synthetic = clock is NO_CLOCK
        self.is_synthetic |= synthetic
        track = self._out.tracks.add(
            f"{name} (synthetic)" if synthetic else name,
            run.root,
            description=SYNTHETIC_HELP if synthetic else "",
            clock=clock_id,
        )
        self._out.tracks[track].shown = (
            f"oneDNN {_SHOWN[group]} ({engine})" if group in _SHOWN and not synthetic else ""
        )
        self._out.tracks[track].rank = _GROUP_RANK.get(group, len(_GROUP_RANK))
        run.tracks[key] = track
        return track

    def _clock_id(self, clock: ClockDomain) -> ClockId:
        if clock is NO_CLOCK:
            clock = clock.owned_by(self._out.info.name)
        if not self._has_clock:
            self._out.clocks.set_default(clock)
            self._has_clock = True
        return self._out.clocks.add(clock)


# -- lines like others -------------------------------------------------------------------------------------------------


class _Fields(NamedTuple):
    """The content of lines that differ in timestamp and duration only."""

    shape: Shape
    exact: bool  # whether durations may be differences of whole microseconds
    writer: tuple[bytes, bytes]  # marker and version of the lines, which identify their run
    texts: tuple[int, int]  # name and category, as interned strings


class _RepeatedLines:
    """Recognises known lines, and writes their slices; `number` is that of the line at which reading stopped."""

    def __init__(self, out: Builder, reader: _Reader) -> None:
        self.number = 1
        self._out = out
        self._reader = reader
        self._columns = np.empty((3, _ROWS), np.int64)
        self._kernel = kernel.module("lines")
        self._lines: Any = self._kernel.Timed(self._columns)
        self._forget()

    def read(self, data: bytes, at: int) -> int:
        """Read whole lines; return the start of the first line that is not plain, or the end of the data."""
        lines = self._lines
        while True:
            why = lines.read(data, at, self.number)
            at, self.number = lines.at, lines.number
            if lines.row == _ROWS:
                self.flush()
            elif why == self._kernel.NEW_FIELDS:
                marker, fields = data[at : lines.time], data[lines.fields : lines.last]
                if not self._learn_fields(marker, fields, data[lines.last : lines.end]):
                    return at
            elif why == self._kernel.NEW_LAST:
                if not self._learn_last(lines.kind, data[lines.last : lines.end]):
                    return at
            else:
                return at

    def _learn_fields(self, marker: bytes, fields: bytes, last: bytes) -> bool:
        meaning = self._reader.meaning(marker, fields + last)
        if meaning is None:
            return False
        if len(self._meanings) >= _MOST_ENTRIES:
            self._forget()
        self._meanings.append(meaning)
        self._places.extend((0, 0))
        return self._learn_last(self._lines.add_fields(marker, fields[:-1]), last)

    def _learn_last(self, kind: int, last: bytes) -> bool:
        """Register a line of a kind by its last field; return whether it can be recognised by it."""
        shape, exact, _, texts = self._meanings[kind - 1]
        duration = last.rstrip()
        if b"." not in duration:
            return False
        try:
            dur = duration_ns(duration, exact)
        except Malformed:
            return False
        if not 0 <= dur < _LONGEST_NS:
            return False
        if len(self._entries) >= _COLUMNS * _MOST_ENTRIES:
            self._forget()  # the line, too: it will be searched again
            return True
        self._lines.add_last(kind, last, len(self._entries) // _COLUMNS)
        self._entries.extend((kind - 1, *texts, dur, *self._out.tables.keep_args(args_of(shape, duration, dur))))
        return True

    def _forget(self) -> None:
        """Write the lines read so far, and clear the tables."""
        self.flush()
        self._lines.forget()
        #: The fields by kind of lines.
        self._meanings: list[_Fields] = []
        #: Of each kind: the track and the number of the run that were last used.
        self._places = array("q")
        #: Of each kind with each last field: kind, name, category, duration, place and length of the args.
        self._entries = array("q")

    def flush(self) -> None:
        """Write the lines read so far. To be called before the runs are changed elsewhere."""
        row = self._lines.row
        if not row:
            return
        ts, what, origin = self._columns[:, :row]
        ts = (ts + 500) // 1000 * 1000  # `nearest_us`
        entries = np.frombuffer(self._entries, np.int64).reshape(-1, _COLUMNS)
        kind, name, category, dur, args_at, args_len = entries[what].T
        places = np.frombuffer(self._places, np.int64).reshape(-1, 2)
        for known in dict.fromkeys(kind.tolist()):  # tracks are created in the order of the lines
            places[known] = self._reader.place(self._meanings[known])
        track, run = places[kind].T
        self._out.bulk.slice_rows(track, ts, dur, name, category, args_at, args_len, origin)
        self._out.balance.read += row
        self._out.balance.written += row
        self._lines.clear()
        self._reader.written_together(ts, dur, run, origin)


# -- reading -----------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, out: Builder, pid: int | None) -> None:
        self._out = out
        self._runs = _Runs(out, pid)
        self._versions = {b"", b"0", b"1"}
        self._markers: set[bytes] = set()
        self._other_lines = 0
        self._slices = 0

    def read(self, source: Source) -> None:
        if kernel.module("lines") is not None and source.is_whole:
            self._read_chunks(source)
        else:  # the specification of the kernel
            for numbers, texts in source.batches():
                for number, text in zip(numbers, texts, strict=True):
                    self._line(number, text)
        if not self._markers:
            raise source.malformed(
                "no oneDNN line found, expected lines that begin with onednn_verbose,",
                hint=f"record one with {OnednnVerbose.record}",
            )
        self._finish()

    # -- lines like others ----------------------------------------------------------------------------------------

    def _read_chunks(self, source: Source) -> None:
        """Read whole chunks; lines that differ in their timestamp only are handled together."""
        repeated = _RepeatedLines(self._out, self)
        for data in source.chunks():
            at = 0
            while (at := repeated.read(data, at)) < len(data):
                other = self._pass_others(repeated, data, at)
                if other == at:
                    repeated.flush()
                    other = data.find(b"\n", at) + 1 or len(data)
                    self._line(repeated.number, data[at:other])
                    repeated.number += 1
                at = other
        repeated.flush()

    def meaning(self, marker: bytes, rest: bytes) -> _Fields | None:
        """Return the fields of a line with a timestamp; None if the line is not plain."""
        line = b"%b1795244023916.781006,%b\n" % (marker, rest)
        records = grammar.records(line) if b"\x1b" not in line else []
        if len(records) != 1 or records[0].marker not in self._markers or records[0].version not in self._versions:
            return None
        (record,) = records
        try:
            shape, duration, comma = grammar.read_body(record.marker, record.body)
            exact = not shape.engine.startswith("gpu")
            duration_ns(duration, exact)
        except Malformed:
            return None
        last = rest.rpartition(b",")[2].rstrip()
        if comma or shape.kind is not Kind.TIMED or duration != last or record.marker == b"onednn_graph":
            return None
        texts = self._out.tables.string(shape.name), self._out.tables.string(shape.group)
        return _Fields(shape, exact, (record.marker, record.version), texts)

    def place(self, fields: _Fields) -> tuple[TrackId, int]:
        """Return the track of lines with a timestamp, and the number of their run."""
        run = self._runs.run_of(*fields.writer)
        return self._runs.track(run, fields.shape.group, fields.shape.engine, WALL_CLOCK), run.number

    def written_together(self, ts: I64, dur: I64, runs: I64, origin: I64) -> None:
        """Update the runs after many lines were written, in order."""
        for number in occurring(runs):
            chosen = runs == number
            self._check_orders(self._runs.all[number - 1], ts[chosen], dur[chosen], origin[chosen])
        self._slices += len(ts)

    def _check_orders(self, run: _LogRun, ts: I64, dur: I64, numbers: I64) -> None:
        """Check the order of many lines of one run, as `_check_order` does."""
        latest = np.maximum(np.maximum.accumulate(ts), run.latest)
        if int(np.max(latest - ts)) > run.longest + _LATE_NS:
            for number, start, length in zip(numbers.tolist(), ts.tolist(), dur.tolist(), strict=True):
                self._check_order(number, run, start, length)
        else:
            run.longest = max(run.longest, int(np.max(dur)))
            run.latest = int(latest[-1])
        run.last = (int(ts[-1]), WALL_CLOCK)

    def _pass_others(self, repeated: _RepeatedLines, data: bytes, at: int) -> int:
        """Count the lines from a position on that are not of oneDNN; return the start of the first one that may be."""
        mark = data.find(MARK, at)
        end = data.rfind(b"\n", at, mark) + 1 if mark >= 0 else len(data)
        if end <= at:
            return at
        count = data.count(b"\n", at, end) + (data[end - 1 : end] != b"\n")
        repeated.number += count
        self._out.balance.read += count
        self._other_lines += count
        return end

    # -- single lines ---------------------------------------------------------------------------------------------

    def _line(self, number: int, line: bytes) -> None:
        """Read a line, which is counted once, however many records it holds."""
        balance = self._out.balance
        records = grammar.records(line) if MARK in line else []
        balance.read += 1
        if not records:
            self._other_lines += 1
            return
        written, lost = False, []
        for record in records:
            try:
                written |= self._record(number, record)
            except Malformed as problem:
                lost.append((problem.code if record.ended else grammar.CUT_LINE, problem.detail))
        if written:
            balance.written += 1
        elif lost:
            self._out.skip(lost[0][0], number, lost[0][1])
            lost = lost[1:]
        else:
            balance.kept[KEPT_LINES] += 1
        for code, detail in lost:
            self._out.problem(code, number, detail)

    def _record(self, number: int, record: Record) -> bool:
        """Write a record; return False if it only describes the run."""
        self._markers.add(record.marker)
        shape, duration, comma = grammar.read_body(record.marker, record.body)
        if record.version not in self._versions:
            self._versions.add(record.version)
            self._out.problem(UNKNOWN_VERSION, number, f"v{record.version.decode()}")
        if comma or record.comma:
            self._out.problem(DECIMAL_COMMA, number)
        if shape.kind is Kind.INFO:
            self._runs.note(record)
            return False
        run = self._runs.run_of(record.marker, record.version)
        if shape.kind is Kind.MESSAGE:
            self._message(number, record, run)
        elif shape.kind is Kind.UNTIMED:
            ts, clock = self._position(number, record, run)
            self._out.problem(NO_DURATION, number)
            track = self._runs.track(run, shape.group, shape.engine, clock)
            self._out.instant(track, ts, shape.name, shape.group, b"{" + shape.args[1:] + b"}", number)
        else:
            self._slice(number, record, run, shape, duration)
        return True

    def _slice(self, number: int, record: Record, run: _LogRun, shape: Shape, duration: bytes) -> None:
        ts = self._timestamp(number, record)
        from_boot = ts is not None and ts < _EPOCH_FROM_NS
        exact = not from_boot and not shape.engine.startswith("gpu")
        dur = duration_ns(duration, exact)
        if not record.ended and not grammar.looks_complete(duration):
            raise Malformed(grammar.CUT_LINE, f"the text ends inside the duration: {duration.decode()!r}")
        if ts is None:
            clock = NO_CLOCK
            layout = run.layouts.setdefault(shape.engine, _Layout())
            if layout.end + dur > LIMIT_NS:
                raise Malformed(grammar.BAD_DURATION, "the durations so far sum up to more than 146 years")
            ts = layout.place(shape.group, dur)
            if run.last[1] is NO_CLOCK:
                run.last = (layout.end, NO_CLOCK)
        else:
            clock = BOOT_CLOCK if from_boot else WALL_CLOCK
            self._check_order(number, run, ts, dur)
            run.last = (ts, clock)
        track = self._runs.track(run, shape.group, shape.engine, clock)
        self._out.slice(track, ts, dur, shape.name, shape.group, args_of(shape, duration, dur), number)
        self._slices += 1

    def _timestamp(self, number: int, record: Record) -> int | None:
        if not record.ts:
            return None
        ts = grammar.timestamp_ns(record.ts)
        if ts is None:
            self._out.problem(UNUSABLE_TIMESTAMP, number, record.ts.decode())
            return None
        return grammar.nearest_us(ts) if ts >= _EPOCH_FROM_NS else ts

    def _check_order(self, number: int, run: _LogRun, ts: int, dur: int) -> None:
        run.longest = max(run.longest, dur)
        if run.latest - ts > run.longest + _LATE_NS:
            self._out.problem(TIME_STEP, number, f"{run.latest - ts} ns back")
            run.latest = ts
        run.latest = max(run.latest, ts)

    def _position(self, number: int, record: Record, run: _LogRun) -> tuple[int, ClockDomain]:
        """Return the time and clock of an event without duration: its timestamp, else the last known time."""
        ts = self._timestamp(number, record)
        if ts is None:
            return run.last
        run.last = (ts, WALL_CLOCK if ts >= _EPOCH_FROM_NS else BOOT_CLOCK)
        return run.last

    def _message(self, number: int, record: Record, run: _LogRun) -> None:
        message = grammar.message_of(record.marker, record.body)
        ts, clock = self._position(number, record, run)
        track = self._runs.track(run, "messages", "", clock)
        self._out.instant(track, ts, message.name, message.category, message.args, number)

    def _finish(self) -> None:
        if self._other_lines:
            self._out.balance.skipped[UNMARKED_LINES] += self._other_lines
            self._out.problem(FOREIGN_LINE, count=self._other_lines)
        drawn = [run for run in self._runs.all if run.root != NO_TRACK]
        descriptions: dict[int, str] = {}  # shared by runs with equal info
        for run in drawn:
            root = self._out.tracks[run.root]
            root.description = descriptions.setdefault(id(run.info), run.describe())
            if len(drawn) > 1:
                root.name = f"oneDNN run {run.number}"
        self._out.metadata["onednn_runs"] = [run.info for run in self._runs.all]
        self._notes()

    def _notes(self) -> None:
        if len(self._runs.all) > 1:
            self._out.note(
                f"{len(self._runs.all)} runs (version headers) in one log: each has its own tracks; "
                "lines of processes that wrote at the same time cannot be told apart"
            )
        if not self._slices:
            self._out.note(
                "the log holds no primitive with a duration: record with ONEDNN_VERBOSE=1 "
                "(or profile_exec; DNNL_VERBOSE=1 or MKLDNN_VERBOSE=1 for versions before 2.5 and 1.1)"
            )
        filters = [text for run in self._runs.all for text in run.info.get("info", []) if "filter format" in text]
        if filters:
            self._out.note(f"a filter was active ({filters[0]}): lines are absent on purpose, so sums are partial")
        if self._runs.is_synthetic:
            self._out.note(" ".join((SYNTHETIC_HELP, self._timestamp_hint())).strip())

    def _timestamp_hint(self) -> str:
        if self._out.info.diagnostics.count(UNUSABLE_TIMESTAMP):
            return ""
        if b"onednn" in self._markers or b"onednn_graph" in self._markers:
            return "Set ONEDNN_VERBOSE_TIMESTAMP=1 next time"
        if b"dnnl" in self._markers:
            return "Set DNNL_VERBOSE_TIMESTAMP=1 next time (version 2.1 and later)"
        return "Timestamps came with version 2.1"


@dataclass(frozen=True)
class OnednnVerbose(Importer):
    name = "onednn-verbose"
    title = "oneDNN verbose log (also MKL-DNN, DNNL, oneDNN Graph)"
    url = "https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html"
    versions = "mkldnn_verbose (0.13) to onednn_verbose,v1 (3.13), onednn_graph_verbose"
    signature = Signature("_verbose,")
    clock = WALL_CLOCK
    layer = Layer.LIBRARY
    record = "ONEDNN_VERBOSE=1 ONEDNN_VERBOSE_TIMESTAMP=1 python run.py > onednn.log"
    skips = (FOREIGN_LINE,)
    pid: int | None = option(
        None,
        "the pid of the process, which the log does not state. Without it, in a merge, the tracks go under "
        "the only process that can have written the log, if there is one.",
    )

    line_up = (
        "Timestamps (ONEDNN_VERBOSE_TIMESTAMP=1) are milliseconds since 1970: nothing is needed. Without them: "
        "`--offset FILE=TIME`. If several processes can have written it, choose with -O pid=N --same-machine."
    )
    becomes = (
        ("exec, create, compile lines", "slices on a track for each engine, with problem, formats, attributes as args"),
        ("problem of convolution, matmul, inner product, reorder", "args derived_gflop, derived_bytes and their rates"),
        ("durations of Linux and macOS", "whole µs, as they were measured; the log prints them rounded to 1/4096 ms"),
        ("graph partitions", "slices on a track of their own"),
        ("dispatch, error, check and start lines", "instants"),
        ("info lines", "description and metadata of the run"),
    )
    lost = ("The log does not say which thread ran a primitive; overlapping primitives go to lanes.",)
    marks = FormatMarks(
        libraries=r"dnnl|mkldnn|onednn", primitives=_PRIMITIVES, shapes=("problem",), environment=_ENVIRONMENT
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for a line that starts with marker and known word; a marker elsewhere may be a quotation."""
        is_json = _JSON_START.match(head.text) is not None
        if is_json and (b'"traceEvents"' in head.data or b'"ph"' in head.data):
            return Match.no("a trace in JSON")
        glued = False
        for line in head.data.splitlines():
            if MARK not in line:
                continue
            certain = [record for record in grammar.records(line) if grammar.looks_certain(record)]
            if certain and line.startswith((certain[0].marker, b"\x1b[", b"\xef\xbb\xbf")):
                return Match.yes(f"a line begins with {certain[0].marker.decode()}_verbose,")
            glued |= bool(certain)
        if glued and not is_json:
            return Match.maybe("lines with a oneDNN marker inside")
        return Match.no("no oneDNN marker (onednn_verbose, dnnl_verbose, mkldnn_verbose)")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(LINES)
        out.info.real_ids = True  # the only process is the one that the user states
        out.info.runs_in = _RUNTIMES
        _Reader(out, self.pid).read(source)
