"""Performance counters of OpenVINO: reports of `benchmark_app`, and what it prints with `-pc`.

    layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)
    stem/conv/WithoutBiases;Status.EXECUTED;Convolution;brgconv_avx512_amx_bf16;0.067;0.067
    Total;;;;0.830;0.830

    [ INFO ] Performance counts for 0-th infer request
    stem/conv/Wit... Status.EXECUTED layerType: Convolution execType: jit_bf16 realTime (ms): 0.057 cpuTime (ms): 0.057

    Execution results
    read model time (ms);5.20

Source: recordings with 2026.4 and from the counter dumps of the CPU plugin. Older versions end each row with `;` and
write no `Status.`. Nothing is quoted, so a name may hold `"` and `,`; names that are printed are cut at 20 characters.
Layers stand in their order of execution, without times: they are laid end to end. A detailed report has one block for
each infer request, an average report one block with means. The log of benchmark_app has no times either; the steps that
say how long they took become slices. With `-json_stats` the reports are JSON (see `_json`) and give the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.families.common.json_document import JsonDocument
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Match
from traceconv.families.openvino import _json as as_json
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.counted import BLANK_LINES, CHECKED_TOTALS, ENTRIES, HEADINGS, LINES, OTHER_LINES
from traceconv.model.diagnostics import absent, lost, noted, repaired, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import whole_of
from traceconv.model.times import MS, NS, US, S, parse_ns
from traceconv.model.trace import NO_TRACK, Layer, Level, TrackId

FOREIGN_LINE = skipped("openvino.foreign_line", "a line is not of OpenVINO: left out", quiet=True)
DECIMAL_COMMA = repaired("openvino.decimal_comma", "a decimal comma of the locale was read as a decimal point")
BAD_ROW = lost("openvino.bad_row", "a row of counters is cut or has a time that is not a number")
CUT_NAME = absent(
    "openvino.cut_name", "OpenVINO cut a printed layer name; reports in files hold the whole name", quiet=True
)
TOTAL_DIFFERS = noted(
    "openvino.total_differs", "the total of the report differs from the sum of its rows: rows may be missing"
)

UNKNOWN_MEMBER = lost("openvino.unknown_member", "a member of a JSON report is not known: left out")
FIRST_LAYER_ONLY = absent(
    "openvino.first_layer_only",
    "an average report in JSON holds one layer, since the Python benchmark_app writes only the first: "
    "use -report_type detailed_counters, or omit -json_stats",
)
_BY_TIME = "OpenVINO layers by time"

CLOCK = ClockDomain("OpenVINO layer order", Zero.UNKNOWN, Run.NONE, 1000)

_HEADER = re.compile(rb"layerName;execStatus;layerType;execType;realTime(?: \(ms\))?;cpuTime(?: \(ms\))?;?")
_STATUS = rb"(?:Status\.)?(EXECUTED|NOT_RUN|NOT_EXECUTED|OPTIMIZED_OUT)"
_ROW = re.compile(rb"(.+);" + _STATUS + rb";([^;]*);([^;]*);([^;]*);([^;]*);?")
_CUT_ROW = re.compile(rb"(.+);(?:Status\.?\w*)?[^;]*(?:;[^;]*){0,4}")
_TOTAL = re.compile(rb"Total;;;;([\d.,]+);([\d.,]+);?|Total (?:CPU )?time:\s+([\d.,]+) (?:milli|micro)seconds")
_PRINTED = re.compile(
    rb"(\S(?:.*?\S)??)\s++" + _STATUS + rb"\s+layerType:\s+(\S+)\s+(?:execType:\s+(\S+)\s+)?"
    rb"realTime \(ms\):\s*([\d.,]+)\s+cpuTime \(ms\):\s*([\d.,]+)(?:\s+execType:\s+(\S+))?\s*"
)
#: Layers by time (-pcsort): printed, and as CSV, whose heading has a line end in its last field.
_PRINTED_BY_TIME = re.compile(_PRINTED.pattern + rb"proportion:\s*(\S+)\s*")
_SORTED_ROW = re.compile(rb"(.+)," + _STATUS + rb",([^,]*),([^,]*),([\d.]+),([\d.]+),(\S+)")
_SORTED_HEADER = re.compile(
    rb'layerName,execStatus,layerType,execType,realTime \(ms\),cpuTime \(ms\),"?proportion \(%\)"?|"'
)
_TOTAL_SHARE = re.compile(rb"Total proportion:.*")
_REQUEST = re.compile(rb"Performance counts for (\d+)-th infer request")
_LOG = re.compile(rb"\[ ?(INFO|WARNING|ERROR|DEBUG) ?\] ?(.*)|(\[Step \d+/\d+\] .*)")
_TOOK = re.compile(rb"(.*?) took (\d+(?:[.,]\d+)?) (ns|us|ms|s)\b")
_SECTION = re.compile(rb"Command line parameters|Configuration setup|Execution results(?: grouped by.*)?")
_SETTING = re.compile(rb"([^;]+);([^;]*);?")
#: The first characters of lines that are neither layers nor settings.
_BEGINS = (b"layerName", b"Total ", b"Total;", b'"', b"[", b"Command line", b"Configuration", b"Execution results")
_STEP_NS = 1000
_UNITS = {b"ns": NS, b"us": US, b"ms": MS, b"s": S}
_SYNTHETIC = (
    "OpenVINO prints no times of layers: they stand end to end in their order, with the lengths that it printed."
)


class _Layer(NamedTuple):
    """A row of counters; times as they are written, in ms."""

    name: str
    status: str
    layer_type: str
    exec_type: str
    real: bytes
    cpu: bytes


class _Block(msgspec.Struct):
    """The layers of one infer request, or the means of several."""

    track: TrackId
    end: int
    rows: int = 0
    total: int = 0


class _Reader(msgspec.Struct):
    """Reads one file into a builder."""

    out: Builder
    root: TrackId = NO_TRACK
    blocks: list[_Block] = msgspec.field(default_factory=list)
    block: _Block | None = None
    blocks_at: int = 0
    log_track: TrackId = NO_TRACK
    now: int = 0
    section: str = ""
    report: TrackId = NO_TRACK
    number_of_request: int | None = None

    def read(self, source: Source) -> None:
        if _is_json(source.head()):
            self._json(source)
        else:
            self._lines(source)
        if self.root == NO_TRACK and self.report == NO_TRACK:
            raise source.malformed(
                "no performance counters and no report of benchmark_app found",
                hint=f"record them with {Openvino.record.splitlines()[0]}",
            )
        if len(self.blocks) == 1:
            self.out.tracks[self.blocks[0].track].name = "performance counters (synthetic)"
        if self.blocks:
            self.out.note(f"{_SYNTHETIC} In an average report the lengths are means over all runs.")

    def _lines(self, source: Source) -> None:
        self.out.info.unit, self.out.balance.unit = "line", LINES
        skipped = self.out.balance.skipped
        for number, line in TextLines(self.out).read(source):
            text = plain(line).strip()
            if not text:
                skipped[BLANK_LINES] += 1
            elif not self._line(number, text):
                skipped[OTHER_LINES] += 1
                self.out.problem(FOREIGN_LINE, number)

    def _line(self, number: int, text: bytes) -> bool:
        """Return whether the line is known. Each is counted once."""
        begins = text.startswith(_BEGINS)
        is_layer = b"EXECUTED" in text or b"NOT_RUN" in text or b"OPTIMIZED_OUT" in text
        if begins and (_HEADER.fullmatch(text) or _SORTED_HEADER.fullmatch(text) or _TOTAL_SHARE.fullmatch(text)):
            self.block = None
            self.out.balance.merged[HEADINGS] += 1
        elif is_layer and (match := _ROW.fullmatch(text) or _PRINTED.fullmatch(text)) is not None:
            self._layer(number, match)
        elif is_layer and (match := _PRINTED_BY_TIME.fullmatch(text) or _SORTED_ROW.fullmatch(text)) is not None:
            self._layer_by_time(number, match)
        elif begins and (match := _TOTAL.fullmatch(text)) is not None:
            self._total(number, match)
        elif begins and (match := _LOG.fullmatch(text)) is not None:
            self._log(number, match)
        elif begins and _SECTION.fullmatch(text):
            self.section = text.decode("utf-8", "replace")
            self.out.balance.merged[HEADINGS] += 1
        elif b";" not in text:
            return False
        elif self.section and (match := _SETTING.fullmatch(text)) is not None:
            self._setting(number, match)
        elif self.block is not None and _CUT_ROW.fullmatch(text):
            self.out.skip(BAD_ROW, number, repr(text[:60].decode("utf-8", "replace")))
        else:
            return False
        return True

    # -- JSON -------------------------------------------------------------------------------------------------

    def _json(self, source: Source) -> None:
        self.out.info.unit, self.out.balance.unit = "entry", ENTRIES
        document = JsonDocument(source)
        try:
            report = msgspec.json.decode(document.text, type=as_json.Report)
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.malformed(f"not valid JSON: {error}", hint="was the file cut?") from None
        for part in as_json.parts_of(document, report):
            self._part(part)
        for self.section, name, value in as_json.settings_of(report):
            number = self._next_entry()
            self._add_setting(number, name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for key in as_json.unknown_keys(report):
            self.out.skip(UNKNOWN_MEMBER, self._next_entry(), repr(key[:60]))

    def _next_entry(self) -> int:
        self.out.balance.read += 1
        return self.out.balance.read

    def _part(self, part: as_json.Part) -> None:
        """Read the layers of a request, or means."""
        self.block = None
        before = self.out.balance.read
        for node in part.nodes:
            number = self._next_entry()
            if node is None:
                self.out.skip(BAD_ROW, number)
            elif part.is_sorted:
                self._sorted_layer(number, node)
            else:
                self._add_layer(number, _Layer(*node[:6]))
        if part.is_average and self.out.balance.read == before + 1:
            self.out.problem(FIRST_LAYER_ONLY, self.out.balance.read)
        if part.total:
            self._check_total(self._next_entry(), part.total)

    def _layer_by_time(self, number: int, match: re.Match[bytes]) -> None:
        name, status, layer_type, exec_type, real, cpu = match.groups(b"")[:6]
        if name[:1] == b'"' == name[-1:]:
            name = name[1:-1].replace(b'""', b'"')
        elif name.endswith(b"..."):
            self.out.problem(CUT_NAME, number, _text(name))
        share = match.groups(b"")[-1]
        texts = (_text(name), _text(status), _text(layer_type), _text(exec_type))
        self._sorted_layer(number, as_json.Node(*texts, real, cpu, _text(share)))

    def _sorted_layer(self, number: int, node: as_json.Node) -> None:
        """Add a layer of a sorted report, of which only the time is known."""
        if self.block is None or self.block.track != NO_TRACK:
            self.block = _Block(NO_TRACK, 0)
        try:
            times = {"real_time_ns": self._ms(number, node.real), "cpu_time_ns": self._ms(number, node.cpu)}
        except ValueError as error:
            self.out.skip(BAD_ROW, number, str(error))
            return
        if self.report == NO_TRACK:
            self.report = self.out.tracks.totals(_BY_TIME)
        self.block.rows += 1
        self.block.total += times["real_time_ns"]
        args = {**times, "share": node.share, "exec_type": node.exec_type, "status": node.status}
        self.out.totals(self.report, node.name, node.layer_type, args, number)
        self.out.balance.written += 1

    # -- layers -----------------------------------------------------------------------------------------------

    def _layer(self, number: int, match: re.Match[bytes]) -> None:
        name, status, layer_type, exec_type, real, cpu = match.groups(b"")[:6]
        exec_type = exec_type or (match.groups(b"")[6] if len(match.groups()) > 6 else b"")
        if match.re.pattern == _PRINTED.pattern and name.endswith(b"..."):
            self.out.problem(CUT_NAME, number, name.decode("utf-8", "replace"))
        self._add_layer(number, _Layer(_text(name), _text(status), _text(layer_type), _text(exec_type), real, cpu))

    def _add_layer(self, number: int, layer: _Layer) -> None:
        try:
            dur, cpu_ns = self._ms(number, layer.real), self._ms(number, layer.cpu)
        except ValueError as error:
            self.out.skip(BAD_ROW, number, str(error))
            return
        if self.block is None or self.block.track == NO_TRACK:  # none, or one of layers by time
            self.block = self._new_block()
        block = self.block
        args = {"exec_type": layer.exec_type, "cpu_time_ns": cpu_ns, "status": layer.status}
        self.out.balance.written += 1
        block.rows += 1
        if layer.status != "EXECUTED" and not dur:
            self.out.instant(block.track, block.end, layer.name, layer.layer_type, args, number)
            return
        self.out.slice(block.track, block.end, dur, layer.name, layer.layer_type, args, number)
        block.end += dur
        block.total += dur
        self.now = max(self.now, block.end)

    def _new_block(self) -> _Block:
        """Return a new block; all blocks start at one time, since requests run in parallel."""
        if not self.blocks:
            self.blocks_at = self.now
        number = len(self.blocks) if self.number_of_request is None else self.number_of_request
        self.number_of_request = None
        track = self.out.tracks.add(f"infer request {number} (synthetic)", self._root(), description=_SYNTHETIC)
        self.blocks.append(_Block(track, self.blocks_at))
        return self.blocks[-1]

    def _root(self) -> TrackId:
        if self.root == NO_TRACK:
            self.root = self.out.tracks.process("OpenVINO")
        return self.root

    def _total(self, number: int, match: re.Match[bytes]) -> None:
        self._check_total(number, match[1] or match[3], is_other=b"CPU" in match[0] or b"micro" in match[0])
        if match[1]:
            self.block = None

    def _check_total(self, number: int, text: bytes, *, is_other: bool = False) -> None:
        """Compare a total in ms with the rows, unless it `is_other`: of CPU time, or in another unit."""
        block = self.block
        try:
            total = self._ms(number, text)
        except ValueError as error:
            self.out.skip(BAD_ROW, number, str(error))
            return
        self.out.balance.merged[CHECKED_TOTALS] += 1
        if block is None or is_other:
            return
        if abs(total - block.total) > _STEP_NS * (block.rows + 1):
            self.out.problem(TOTAL_DIFFERS, number, f"{total} ns, but the rows are {block.total} ns")

    def _ms(self, number: int, text: bytes) -> int:
        if b"," in text:
            self.out.problem(DECIMAL_COMMA, number)
            text = text.replace(b",", b".")
        return parse_ns(text, MS)

    # -- what benchmark_app prints ----------------------------------------------------------------------------

    def _log(self, number: int, match: re.Match[bytes]) -> None:
        if self.log_track == NO_TRACK:
            self.log_track = self.out.tracks.thread(self._root(), None, "benchmark_app (synthetic)")
            self.out.tracks[self.log_track].description = "The log has no times: its lines stand 1 µs apart."
        request = _REQUEST.match(match[2] or b"")
        if request is not None:
            self.block, self.number_of_request = None, whole_of(request[1])
        text = match[2] if match[2] is not None else match[3]
        took = _TOOK.match(text)
        if took is not None and len(took[2]) < 18:
            dur = parse_ns(took[2].replace(b",", b"."), _UNITS[took[3]])
            self.out.slice(self.log_track, self.now, dur, _text(took[1]), "step", at=number)
            self.now += dur
        level = Level[(match[1] or b"INFO").decode()]
        self.out.log(self.log_track, self.now, _text(text) or "(empty)", level, at=number)
        self.out.balance.written += 1
        self.now += _STEP_NS

    def _setting(self, number: int, match: re.Match[bytes]) -> None:
        """Read a line of the report."""
        self._add_setting(number, _text(match[1]), _text(match[2]))

    def _add_setting(self, number: int, name: str, value: str) -> None:
        """Keep a parameter, a setting or a result."""
        if self.report == NO_TRACK:
            self.report = self.out.tracks.totals("OpenVINO benchmark report")
        self.out.totals(self.report, name, self.section, {"value": value}, number)
        self.out.balance.written += 1


def _is_json(head: Head) -> bool:
    """Return whether a report is JSON; which one it is follows from its members."""
    return head.text.lstrip()[:1] == b"{"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Openvino:
    """Importer of the reports and the output of benchmark_app."""

    name: ClassVar[str] = "openvino"
    title: ClassVar[str] = "OpenVINO performance counters (benchmark_app reports and output)"
    url: ClassVar[str] = "https://docs.openvino.ai/2024/learn-openvino/openvino-samples/benchmark-tool.html"
    versions: ClassVar[str] = (
        "average, detailed and sorted counters, benchmark report, as CSV and as JSON, output of -pc; 2020 to 2026"
    )
    clock: ClassVar[ClockDomain] = CLOCK
    layer: ClassVar[Layer] = Layer.FRAMEWORK
    marks: ClassVar[FormatMarks] = FormatMarks(
        libraries=r"openvino|inference_engine",
        totals=TotalsMarks(mean=("real_time_ns",)),  # of one inference
    )
    record: ClassVar[str] = (
        "benchmark_app -m model.xml -report_type detailed_counters -report_folder .\n"
        "ONEDNN_VERBOSE=1 ONEDNN_VERBOSE_TIMESTAMP=1 benchmark_app -m model.xml > onednn.log"
    )
    line_up: ClassVar[str] = (
        "The counters have no times: `--offset FILE=TIME` places them. The oneDNN log of the same run (second command, "
        "for the CPU plugin) has real times of the primitives."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("a layer that was executed", "slice, end to end on the track of its infer request"),
        ("a layer that was fused or optimised out", "instant"),
        ("lines of benchmark_app", "log entries, and slices where they say how long a step took"),
        ("benchmark_report.csv, benchmark_report.json", "rows of totals"),
        ("layers sorted by time (-pcsort)", "rows of totals: their order is not that of execution"),
    )
    skips = (FOREIGN_LINE,)
    lost: ClassVar[tuple[str, ...]] = (
        "OpenVINO does not print when a layer ran.",
        "Printed tables cut long layer names; reports in files hold them whole.",
    )
    checked = (
        ("benchmark_app (Python) of OpenVINO 2025.3.0 and 2026.4.1", "recorded", "CSV, JSON, printed counters, log"),
        (
            "benchmark_app (C++)",
            "statistics_report.cpp of OpenVINO",
            "members and types of the JSON reports; no recording was at hand",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the heading of a report, by printed counters, or by the steps of benchmark_app."""
        if as_json.is_counters(head.text):
            return Match.yes("the members of a counters report in JSON")
        if as_json.is_report(head.text):
            return Match.yes("the members of a benchmark report in JSON")
        if b"layerName;execStatus;layerType" in head.data or b"layerName,execStatus,layerType" in head.data:
            return Match.yes("the heading of a counters report")
        if re.search(rb"layerType: \S+ .*realTime \(ms\):", head.data):
            return Match.yes("printed performance counters")
        if re.search(rb"(?m)^\[Step 1/\d+\] Parsing and validating input arguments", head.data):
            return Match.yes("the steps of benchmark_app")
        if head.text.startswith(b"Command line parameters") and b"\nConfiguration setup" in head.data:
            return Match.yes("a benchmark report")
        return Match.no("no performance counters and no report of benchmark_app")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole file."""
        out.clocks.set_default(self.clock.owned_by(out.info.name))
        _Reader(out).read(source)
