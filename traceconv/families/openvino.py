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
say how long they took become slices.

With `-json_stats` the reports are JSON and give the same:

    {"report_type": "detailed", "detailed_performance": [{"nodes": [{"name": "conv", "node_type": "Convolution",
     "status": "Status.EXECUTED", "real_time": "0.014", "cpu_time": "0.014", "exec_type": "brgconv_avx512_bf16"}],
     "total_real_time": "0.014", "total_cpu_time": "0.014"}]}
    {"report_type": "average", "avg_performance": {"nodes": [...], ...}}
    {"cmd_options": {"-m": "net.xml"}, "configuration_setup": {"topology": "net"}, "execution_results": {...}}

Times are milliseconds: text with three decimals from the Python tool, numbers from the C++ one, which also writes its
keys in alphabetical order and states without `Status.`. With `-pcsort` the type is "sorted": layers by time. The
average of the Python tool holds the first layer only (seen with 2025.3): it takes each layer for a request. Sources:
recordings with 2025.3, and the writers statistics_report.py and statistics_report.cpp of OpenVINO.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.families.common.json_document import JsonDocument, is_array
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import BLANK_LINES, HEADINGS, LINES, absent, lost, noted, repaired, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import MS, NS, US, S, decode_json, parse_ns, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.trace import Level
from traceconv.model.track_table import NO_TRACK, TrackId

ENTRIES = Counted("entry", "entries")
CHECKED_TOTALS = Counted("total, checked against the rows", "totals, checked against the rows")
OTHER_LINES = Counted("line that is not of OpenVINO", "lines that are not of OpenVINO")

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

CLOCK = ClockDomain("OpenVINO layer order", Zero.UNKNOWN, Run.NONE, 1000)

_STATUS = rb"(?:Status\.)?(?P<status>EXECUTED|NOT_RUN|NOT_EXECUTED|OPTIMIZED_OUT)"
_ROW = re.compile(rb"(?P<name>.+);" + _STATUS + rb";(?P<type>[^;]*);(?P<exec>[^;]*);(?P<real>[^;]*);(?P<cpu>[^;]*);?")
#: Printed; with a share if the layers are sorted by time (-pcsort).
_PRINTED = re.compile(
    rb"(?P<name>\S(?:.*?\S)??)\s++" + _STATUS + rb"\s+layerType:\s+(?P<type>\S+)\s+(?:execType:\s+(?P<exec>\S+)\s+)?"
    rb"realTime \(ms\):\s*(?P<real>[\d.,]+)\s+cpuTime \(ms\):\s*(?P<cpu>[\d.,]+)(?:\s+execType:\s+(?P<behind>\S+))?\s*"
    rb"(?:proportion:\s*(?P<share>\S+)\s*)?"
)
#: Sorted, as CSV, whose heading has a line end in its last field.
_SORTED_ROW = re.compile(
    rb"(?P<name>.+)," + _STATUS + rb",(?P<type>[^,]*),(?P<exec>[^,]*),(?P<real>[\d.]+),(?P<cpu>[\d.]+),(?P<share>\S+)"
)
_HEADING = re.compile(
    rb"layerName;execStatus;layerType;execType;realTime(?: \(ms\))?;cpuTime(?: \(ms\))?;?|"
    rb'layerName,execStatus,layerType,execType,realTime \(ms\),cpuTime \(ms\),"?proportion \(%\)"?|"|'
    rb"Total proportion:.*"
)
_CUT_ROW = re.compile(rb"(.+);(?:Status\.?\w*)?[^;]*(?:;[^;]*){0,4}")
_TOTAL = re.compile(rb"Total;;;;([\d.,]+);([\d.,]+);?|Total (?:CPU )?time:\s+([\d.,]+) (?:milli|micro)seconds")
_REQUEST = re.compile(rb"Performance counts for (\d+)-th infer request")
_LOG = re.compile(rb"\[ ?(INFO|WARNING|ERROR|DEBUG) ?\] ?(.*)|(\[Step \d+/\d+\] .*)")
_TOOK = re.compile(rb"(.*?) took (\d+(?:[.,]\d+)?) (ns|us|ms|s)\b")
_SECTION = re.compile(rb"Command line parameters|Configuration setup|Execution results(?: grouped by.*)?")
_SETTING = re.compile(rb"([^;]+);([^;]*);?")
#: The first characters of lines that are neither layers nor settings.
_BEGINS = (b"layerName", b"Total ", b"Total;", b'"', b"[", b"Command line", b"Configuration", b"Execution results")

_JSON_COUNTERS = re.compile(rb'"(?:avg|detailed)_performance"\s*:\s*+\[?\s*+\{\s*"nodes"\s*:\s*\[')
_JSON_REPORT = re.compile(rb'\A\s*\{\s*"(?:cmd_options|configuration_setup|execution_results)"\s*:\s*\{')
_JSON_STATUS = re.compile(r"(?:Status\.)?(\w+)")
_SECTIONS = {
    "cmd_options": "Command line parameters",
    "configuration_setup": "Configuration setup",
    "execution_results": "Execution results",
}
_COUNTERS = ("report_type", "detailed_performance", "avg_performance")
_NULL = msgspec.Raw(b"null")
_Members = dict[str, msgspec.Raw]

_STEP_NS = 1000
_UNITS = {b"ns": NS, b"us": US, b"ms": MS, b"s": S}
_SYNTHETIC = (
    "OpenVINO prints no times of layers: they stand end to end in their order, with the lengths that it printed."
)


class _Layer(NamedTuple):
    """A row of counters; times as they are written, in ms; the share of the whole, if layers are sorted by time."""

    name: str
    status: str
    layer_type: str
    exec_type: str
    real: bytes
    cpu: bytes
    share: str | None


class _Block(msgspec.Struct):
    """The layers of one infer request, or the means of several; of layers by time, there is no track."""

    track: TrackId
    end: int
    rows: int = 0
    total: int = 0


class _Reader(msgspec.Struct):
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
        if source.head().text.lstrip()[:1] == b"{":
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

    # -- lines ------------------------------------------------------------------------------------------------

    def _lines(self, source: Source) -> None:
        self.out.counts(LINES)
        for number, line in TextLines(self.out).read(source):
            text = plain(line).strip()
            if not text:
                self.out.balance.skipped[BLANK_LINES] += 1
            elif not self._line(number, text):
                self.out.balance.skipped[OTHER_LINES] += 1
                self.out.problem(FOREIGN_LINE, number)

    def _line(self, number: int, text: bytes) -> bool:
        """Return whether the line is known. Each is counted once."""
        begins = text.startswith(_BEGINS)
        is_layer = b"EXECUTED" in text or b"NOT_RUN" in text or b"OPTIMIZED_OUT" in text
        if begins and _HEADING.fullmatch(text):
            self.block = None
            self.out.balance.merged[HEADINGS] += 1
        elif is_layer and (match := _ROW.fullmatch(text) or _PRINTED.fullmatch(text) or _SORTED_ROW.fullmatch(text)):
            self._layer(number, match)
        elif begins and (match := _TOTAL.fullmatch(text)):
            self._total(number, match)
        elif begins and (match := _LOG.fullmatch(text)):
            self._log(number, match)
        elif begins and _SECTION.fullmatch(text):
            self.section = _text(text)
            self.out.balance.merged[HEADINGS] += 1
        elif b";" not in text:
            return False
        elif self.section and (match := _SETTING.fullmatch(text)):
            self._setting(number, _text(match[1]), _text(match[2]))
        elif self.block is not None and _CUT_ROW.fullmatch(text):
            self.out.skip(BAD_ROW, number, repr(_text(text[:60])))
        else:
            return False
        return True

    def _layer(self, number: int, match: re.Match[bytes]) -> None:
        fields = match.groupdict(b"")
        name, share = fields["name"], match.groupdict().get("share")
        if share is not None and name[:1] == b'"' == name[-1:]:
            name = name[1:-1].replace(b'""', b'"')
        elif match.re is not _ROW and name.endswith(b"..."):
            self.out.problem(CUT_NAME, number, _text(name))
        exec_type = fields["exec"] or fields.get("behind", b"")
        texts = (_text(name), _text(fields["status"]), _text(fields["type"]), _text(exec_type))
        self._add_layer(number, _Layer(*texts, fields["real"], fields["cpu"], None if share is None else _text(share)))

    def _total(self, number: int, match: re.Match[bytes]) -> None:
        is_comparable = b"CPU" not in match[0] and b"micro" not in match[0]
        self._check_total(number, match[1] or match[3], is_comparable=is_comparable)
        if match[1]:
            self.block = None

    def _log(self, number: int, match: re.Match[bytes]) -> None:
        """Read a line that benchmark_app logs."""
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

    # -- JSON -------------------------------------------------------------------------------------------------

    def _json(self, source: Source) -> None:
        self.out.counts(ENTRIES)
        document = JsonDocument(source)
        try:
            report = msgspec.json.decode(document.text, type=_Members)
        except (msgspec.DecodeError, RecursionError) as error:
            raise source.malformed(f"not valid JSON: {error}", hint="was the file cut?") from None
        kind = decode_json(report.get("report_type", _NULL))
        detailed, average = report.get("detailed_performance", _NULL), report.get("avg_performance", _NULL)
        for part in document.elements(detailed) if is_array(detailed) else ():
            self._part(document, part, is_sorted=kind == "sorted", is_average=False)
        if bytes(memoryview(average)[:4]) != b"null":
            self._part(document, average, is_sorted=kind == "sorted", is_average=kind != "sorted")
        for key, self.section in _SECTIONS.items():
            for name, member in _members(report.get(key, _NULL)).items():
                value = decode_json(member)
                text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
                self._setting(self._next_entry(), name, text)
        for key in report:
            if key not in _SECTIONS and key not in _COUNTERS:
                self.out.skip(UNKNOWN_MEMBER, self._next_entry(), repr(key[:60]))

    def _next_entry(self) -> int:
        self.out.balance.read += 1
        return self.out.balance.read

    def _part(self, document: JsonDocument, part: msgspec.Raw, *, is_sorted: bool, is_average: bool) -> None:
        """Read the layers of a request, or means."""
        self.block = None
        before = self.out.balance.read
        members = _members(part)
        nodes = members.get("nodes", _NULL)
        elements: Iterable[msgspec.Raw] = document.elements(nodes) if is_array(nodes) else [_NULL]
        for element in elements:
            layer = _layer_of(element, is_sorted)
            if layer is None:
                self.out.skip(BAD_ROW, self._next_entry())
            else:
                self._add_layer(self._next_entry(), layer)
        if is_average and self.out.balance.read == before + 1:
            self.out.problem(FIRST_LAYER_ONLY, self.out.balance.read)
        total = _json_number(decode_json(members.get("total_real_time", _NULL)))
        if total:
            self._check_total(self._next_entry(), total)

    # -- layers and settings ----------------------------------------------------------------------------------

    def _add_layer(self, number: int, layer: _Layer) -> None:
        if layer.share is not None and (self.block is None or self.block.track != NO_TRACK):
            self.block = _Block(NO_TRACK, 0)
        try:
            dur, cpu_ns = self._ms(number, layer.real), self._ms(number, layer.cpu)
        except ValueError as error:
            self.out.skip(BAD_ROW, number, str(error))
            return
        if self.block is None or (layer.share is None and self.block.track == NO_TRACK):
            self.block = self._new_block()
        block = self.block
        self.out.balance.written += 1
        block.rows += 1
        block.total += dur
        args: dict[str, Any] = {"exec_type": layer.exec_type, "cpu_time_ns": cpu_ns, "status": layer.status}
        if layer.share is not None:
            args = {"real_time_ns": dur, "cpu_time_ns": cpu_ns, "share": layer.share, **args}
            self.out.totals(self._report("OpenVINO layers by time"), layer.name, layer.layer_type, args, number)
        elif layer.status != "EXECUTED" and not dur:
            self.out.instant(block.track, block.end, layer.name, layer.layer_type, args, number)
        else:
            self.out.slice(block.track, block.end, dur, layer.name, layer.layer_type, args, number)
            block.end += dur
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

    def _report(self, title: str) -> TrackId:
        if self.report == NO_TRACK:
            self.report = self.out.tracks.totals(title)
        return self.report

    def _check_total(self, number: int, text: bytes, *, is_comparable: bool = True) -> None:
        """Compare a total in ms with the rows; one of CPU time, or in another unit, is not comparable."""
        block = self.block
        try:
            total = self._ms(number, text)
        except ValueError as error:
            self.out.skip(BAD_ROW, number, str(error))
            return
        self.out.balance.merged[CHECKED_TOTALS] += 1
        if is_comparable and block is not None and abs(total - block.total) > _STEP_NS * (block.rows + 1):
            self.out.problem(TOTAL_DIFFERS, number, f"{total} ns, but the rows are {block.total} ns")

    def _ms(self, number: int, text: bytes) -> int:
        if b"," in text:
            self.out.problem(DECIMAL_COMMA, number)
            text = text.replace(b",", b".")
        return parse_ns(text, MS)

    def _setting(self, number: int, name: str, value: str) -> None:
        """Keep a parameter, a setting or a result."""
        self.out.totals(self._report("OpenVINO benchmark report"), name, self.section, {"value": value}, number)
        self.out.balance.written += 1


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _members(value: msgspec.Raw) -> _Members:
    """Return the members of an object, none of another value."""
    return msgspec.json.decode(value, type=_Members) if memoryview(value)[0] == ord("{") else {}


def _layer_of(element: msgspec.Raw, is_sorted: bool) -> _Layer | None:
    """Return an element of a report in JSON as a layer; None if it is not one."""
    node = decode_json(element)
    if not isinstance(node, dict) or "name" not in node or "real_time" not in node:
        return None
    name, layer_type, exec_type, share = (str(node.get(key, "")) for key in ("name", "node_type", "exec_type", "%"))
    status = _JSON_STATUS.fullmatch(str(node.get("status", "")))
    times = _json_number(node["real_time"]), _json_number(node.get("cpu_time"))
    return _Layer(name, status[1] if status else "", layer_type, exec_type, *times, share if is_sorted else None)


def _json_number(value: Any) -> bytes:
    """Return a number, or a text that holds one, as it is written; b"" for anything else."""
    if isinstance(value, str):
        return value.strip().encode()
    return msgspec.json.encode(value) if isinstance(value, int | float) and not isinstance(value, bool) else b""


@dataclass(frozen=True)
class Openvino(Importer):
    name = "openvino"
    title = "OpenVINO performance counters (benchmark_app reports and output)"
    url = "https://docs.openvino.ai/2024/learn-openvino/openvino-samples/benchmark-tool.html"
    versions = "2020 to 2026: counters (average, detailed, sorted), benchmark report, CSV and JSON; output of -pc"
    signature = Signature(
        '"avg_performance" | "detailed_performance" | "cmd_options" | "configuration_setup" | '
        '"execution_results" | layername | layertype: | [step 1/ | command line parameters'
    )
    clock = CLOCK
    layer = Layer.FRAMEWORK
    record = (
        "benchmark_app -m model.xml -report_type detailed_counters -report_folder .\n"
        "ONEDNN_VERBOSE=1 ONEDNN_VERBOSE_TIMESTAMP=1 benchmark_app -m model.xml > onednn.log"
    )
    skips = (FOREIGN_LINE,)

    line_up = (
        "The counters have no times: `--offset FILE=TIME`. The oneDNN log of the run (second command, CPU plugin) "
        "has times of the primitives."
    )
    becomes = (
        ("executed layer", "slice, end to end on the track of its infer request"),
        ("layer fused or optimised out", "instant"),
        ("lines of benchmark_app", "log entries, and slices where they say how long a step took"),
        ("benchmark_report.csv, benchmark_report.json", "rows of totals"),
        ("layers sorted by time (-pcsort)", "rows of totals: their order is not that of execution"),
    )
    lost = ("Printed tables cut long layer names; reports in files hold them whole.",)
    marks = FormatMarks(
        libraries=r"openvino|inference_engine",
        totals=TotalsMarks(mean=("real_time_ns",)),  # of one inference
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the heading of a report, by printed counters, or by the steps of benchmark_app."""
        if head.text.lstrip()[:1] == b"{" and _JSON_COUNTERS.search(head.text):
            return Match.yes("the members of a counters report in JSON")
        if _JSON_REPORT.match(head.text):
            return Match.yes("the members of a benchmark report in JSON")
        if b"layerName;execStatus;layerType" in head.data or b"layerName,execStatus,layerType" in head.data:
            return Match.yes("the heading of a counters report")
        if re.search(rb"layerType: \S+ (?:(?!layerType: ).)*realTime \(ms\):", head.data):
            return Match.yes("printed performance counters")
        if re.search(rb"(?m)^\[Step 1/\d+\] Parsing and validating input arguments", head.data):
            return Match.yes("the steps of benchmark_app")
        if head.text.startswith(b"Command line parameters") and b"\nConfiguration setup" in head.data:
            return Match.yes("a benchmark report")
        return Match.no("no performance counters and no report of benchmark_app")

    def read(self, source: Source, out: Builder) -> None:
        out.clocks.set_default(self.clock.owned_by(out.info.name))
        _Reader(out).read(source)
