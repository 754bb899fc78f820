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

Described at https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html; the grammar is in `_lines`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from traceconv import kernel
from traceconv.families.importer import Match, option
from traceconv.families.onednn import _lines as lines
from traceconv.families.onednn._lines import MARK, Kind, Malformed, Record, Shape
from traceconv.families.onednn._repeated import Fields, RepeatedLines, Rows
from traceconv.families.onednn._runs import BOOT_CLOCK, NO_CLOCK, SYNTHETIC_HELP, WALL_CLOCK, Layout, LogRun, Runs
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import KEPT_LINES, LINES, UNMARKED_LINES
from traceconv.model.diagnostics import absent, noted, repaired, skipped
from traceconv.model.marks import FormatMarks, PrimitiveMarks
from traceconv.model.ordering import occurring
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64, NO_TRACK, Layer, TrackId

#: Timestamps from here on count from 1970 (this is 1973), smaller ones from boot (this is three years).
_EPOCH_FROM_NS = 10**17
#: A line may appear late by its own duration, and by the time its thread waited before printing.
_LATE_NS = 10**8

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


class _Reader:
    """Reads one log into a builder."""

    def __init__(self, out: Builder, pid: int | None) -> None:
        self._out = out
        self._runs = Runs(out, pid)
        self._versions = {b"", b"0", b"1"}
        self._markers: set[bytes] = set()
        self._other_lines = 0
        self._slices = 0

    def read(self, source: Source) -> None:
        if kernel.module("lines") is not None and source.is_whole:
            self._read_chunks(source)
        else:
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
        repeated = RepeatedLines(self._out, self._meaning, self._place, self._written_together)
        for data in source.chunks():
            at = 0
            while (at := repeated.read(data, at)) < len(data):
                other = self._pass_others(repeated, data, at)
                if other == at:
                    repeated.flush()
                    other = self._single_line(repeated, data, at)
                at = other
        repeated.flush()

    def _meaning(self, marker: bytes, rest: bytes) -> Fields | None:
        """Return the fields of a line with a timestamp; None if the line is not plain."""
        line = b"%b1795244023916.781006,%b\n" % (marker, rest)
        records = lines.records(line) if b"\x1b" not in line else []
        if len(records) != 1 or records[0].marker not in self._markers or records[0].version not in self._versions:
            return None
        (record,) = records
        try:
            shape, duration, comma = lines.read_body(record.marker, record.body)
            exact = not shape.engine.startswith("gpu")
            lines.duration_ns(duration, exact)
        except Malformed:
            return None
        last = rest.rpartition(b",")[2].rstrip()
        if comma or shape.kind is not Kind.TIMED or duration != last or record.marker == b"onednn_graph":
            return None
        texts = self._out.tables.string(shape.name), self._out.tables.string(shape.group)
        return Fields(shape, exact, (record.marker, record.version), texts)

    def _place(self, fields: Fields) -> tuple[TrackId, int]:
        """Return the track of lines with a timestamp, and the number of their run."""
        run = self._runs.of(*fields.writer)
        return self._runs.track(run, fields.shape.group, fields.shape.engine, WALL_CLOCK), run.number

    def _written_together(self, rows: Rows) -> None:
        """Update the runs after many lines were written."""
        for number in occurring(rows.run):
            mine = rows.run == number
            self._check_orders(self._runs.all[number - 1], rows.ts[mine], rows.dur[mine], rows.origin[mine])
        self._slices += len(rows.ts)

    def _check_orders(self, run: LogRun, ts: I64, dur: I64, numbers: I64) -> None:
        """Check the order of many lines of one run, as `_check_order` does."""
        latest = np.maximum(np.maximum.accumulate(ts), run.latest)
        if int(np.max(latest - ts)) > run.longest + _LATE_NS:
            for number, one_ts, one_dur in zip(numbers.tolist(), ts.tolist(), dur.tolist(), strict=True):
                self._check_order(number, run, one_ts, one_dur)
        else:
            run.longest = max(run.longest, int(np.max(dur)))
            run.latest = int(latest[-1])
        run.last = (int(ts[-1]), WALL_CLOCK)

    def _pass_others(self, repeated: RepeatedLines, data: bytes, at: int) -> int:
        """Count the lines from a position on that are not of oneDNN; return the start of the first one that may be."""
        mark = data.find(MARK, at)
        end = data.rfind(b"\n", at, mark) + 1 if mark >= 0 else len(data)
        if end <= at:
            return at
        count = data.count(b"\n", at, end) + (data[end - 1 : end] != b"\n")
        repeated.number += count
        self._add_others(count)
        return end

    def _add_others(self, count: int) -> None:
        self._out.balance.read += count
        self._other_lines += count

    def _single_line(self, repeated: RepeatedLines, data: bytes, at: int) -> int:
        """Read the line at a position; return the start of the next one."""
        end = data.find(b"\n", at) + 1 or len(data)
        self._line(repeated.number, data[at:end])
        repeated.number += 1
        return end

    # -- single lines ---------------------------------------------------------------------------------------------

    def _line(self, number: int, line: bytes) -> None:
        """Read a line, which is counted once, however many records it holds."""
        balance = self._out.balance
        records = lines.records(line) if MARK in line else []
        if not records:
            self._add_others(1)
            return
        balance.read += 1
        written, lost = False, []
        for record in records:
            try:
                written |= self._record(number, record)
            except Malformed as problem:
                lost.append((problem.code if record.ended else lines.CUT_LINE, problem.detail))
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
        shape, duration, comma = lines.read_body(record.marker, record.body)
        if record.version not in self._versions:
            self._versions.add(record.version)
            self._out.problem(UNKNOWN_VERSION, number, f"v{record.version.decode()}")
        if comma or record.comma:
            self._out.problem(DECIMAL_COMMA, number)
        if shape.kind is Kind.INFO:
            self._runs.note(record)
            return False
        run = self._runs.of(record.marker, record.version)
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

    # -- events -----------------------------------------------------------------------------------------------

    def _slice(self, number: int, record: Record, run: LogRun, shape: Shape, duration: bytes) -> None:
        ts = self._timestamp(number, record)
        from_boot = ts is not None and ts < _EPOCH_FROM_NS
        exact = not from_boot and not shape.engine.startswith("gpu")
        dur = lines.duration_ns(duration, exact)
        if not record.ended and not lines.looks_complete(duration):
            raise Malformed(lines.CUT_LINE, f"the text ends inside the duration: {duration.decode()!r}")
        if ts is None:
            clock = NO_CLOCK
            layout = run.layouts.setdefault(shape.engine, Layout())
            if layout.end + dur > LIMIT_NS:
                raise Malformed(lines.BAD_DURATION, "the durations so far sum up to more than 146 years")
            ts = layout.place(shape.group, dur)
            if run.last[1] is NO_CLOCK:
                run.last = (layout.end, NO_CLOCK)
        else:
            clock = BOOT_CLOCK if from_boot else WALL_CLOCK
            self._check_order(number, run, ts, dur)
            run.last = (ts, clock)
        track = self._runs.track(run, shape.group, shape.engine, clock)
        self._out.slice(track, ts, dur, shape.name, shape.group, lines.args_of(shape, duration, dur), number)
        self._slices += 1

    def _timestamp(self, number: int, record: Record) -> int | None:
        if not record.ts:
            return None
        ts = lines.timestamp_ns(record.ts)
        if ts is None:
            self._out.problem(UNUSABLE_TIMESTAMP, number, record.ts.decode())
            return None
        return lines.nearest_us(ts) if ts >= _EPOCH_FROM_NS else ts

    def _check_order(self, number: int, run: LogRun, ts: int, dur: int) -> None:
        run.longest = max(run.longest, dur)
        if run.latest - ts > run.longest + _LATE_NS:
            self._out.problem(TIME_STEP, number, f"{run.latest - ts} ns back")
            run.latest = ts
        run.latest = max(run.latest, ts)

    def _position(self, number: int, record: Record, run: LogRun) -> tuple[int, ClockDomain]:
        """Return the time and clock of an event without duration: its timestamp, else the last known time."""
        ts = self._timestamp(number, record)
        if ts is None:
            return run.last
        run.last = (ts, WALL_CLOCK if ts >= _EPOCH_FROM_NS else BOOT_CLOCK)
        return run.last

    def _message(self, number: int, record: Record, run: LogRun) -> None:
        message = lines.message_of(record.marker, record.body)
        ts, clock = self._position(number, record, run)
        track = self._runs.track(run, "messages", "", clock)
        self._out.instant(track, ts, message.name, message.category, message.args, number)

    # -- the end ----------------------------------------------------------------------------------------------

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
class OnednnVerbose:
    """oneDNN verbose log."""

    pid: int | None = option(
        None,
        "the pid of the process, which the log does not state. Without it, in a merge, the tracks go under "
        "the only process that can have written the log, if there is one.",
    )

    name: ClassVar[str] = "onednn-verbose"
    title: ClassVar[str] = "oneDNN verbose log (also MKL-DNN, DNNL, oneDNN Graph)"
    url: ClassVar[str] = "https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html"
    versions: ClassVar[str] = "mkldnn_verbose (0.13) to onednn_verbose,v1 (3.13), onednn_graph_verbose"
    clock: ClassVar[ClockDomain] = WALL_CLOCK
    layer: ClassVar[Layer] = Layer.LIBRARY
    marks: ClassVar[FormatMarks] = FormatMarks(
        libraries=r"dnnl|mkldnn|onednn", primitives=_PRIMITIVES, shapes=("problem",)
    )
    record: ClassVar[str] = "ONEDNN_VERBOSE=1 ONEDNN_VERBOSE_TIMESTAMP=1 python run.py > onednn.log"
    line_up: ClassVar[str] = (
        "Timestamps (ONEDNN_VERBOSE_TIMESTAMP=1) are milliseconds since 1970: nothing is needed. Without "
        "them: `--offset FILE=TIME`. Merged with a profile, the log is shown under the only process that can "
        "have written it; if there are several, choose with -O pid=N --same-machine."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("exec, create, compile lines", "slices on a track for each engine, with problem, formats, attributes as args"),
        ("problem of convolution, matmul, inner product, reorder", "args derived_gflop, derived_bytes and their rates"),
        ("durations of Linux and macOS", "whole µs, as they were measured; the log prints them rounded to 1/4096 ms"),
        ("graph partitions", "slices on a track of their own"),
        ("dispatch, error, check and start lines", "instants"),
        ("info lines", "description and metadata of the run"),
    )
    skips = (FOREIGN_LINE,)
    lost: ClassVar[tuple[str, ...]] = (
        "The log does not say which thread ran a primitive; overlapping primitives go to lanes.",
        "Lines of other programs are counted and left out.",
    )
    checked = (
        (
            "oneDNN 1.6 to 3.13: checks, nested creation, lines on entry, kernels of graph partitions, builds for ACL",
            "lines in public reports (uxlfoundation/oneDNN, issues 832, 1845, 4849, 5089 and 5246) and manuals; "
            "no whole log was found",
            "the order of fields, which lines have a duration",
        ),
        (
            "MKL-DNN 0.19, 0.21.1, 1.0.4; oneDNN 2.4.4 to 3.13 in MXNet, PyTorch, TensorFlow, OpenVINO",
            "recorded",
            "fields of lines; clock and durations against those of the framework (PyTorch, MXNet)",
        ),
        (
            "MKL-DNN 0.13 to oneDNN 3.13",
            "verbose printers and manuals of uxlfoundation/oneDNN",
            "which field stands where; dnnl_verbose without attributes and `v0` from there only",
        ),
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
            certain = [record for record in lines.records(line) if lines.looks_certain(record)]
            if certain and line.startswith((certain[0].marker, b"\x1b[", b"\xef\xbb\xbf")):
                return Match.yes(f"a line begins with {certain[0].marker.decode()}_verbose,")
            glued |= bool(certain)
        if glued and not is_json:
            return Match.maybe("lines with a oneDNN marker inside")
        return Match.no("no oneDNN marker (onednn_verbose, dnnl_verbose, mkldnn_verbose)")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole log."""
        out.info.unit = "line"
        out.balance.unit = LINES
        out.info.real_ids = True  # the only process is the one that the user states
        out.info.runs_in = _RUNTIMES
        _Reader(out, self.pid).read(source)
