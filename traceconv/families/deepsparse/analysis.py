"""DeepSparse (Neural Magic): its log (see `log`), times per layer, and statistics of benchmarks.

    Name        | OutDims      | KerDims | Strides | ActSpars | Time(ms) | Util(%) | TFLOPS | Canonical Name
    conv_0      | [1,16,64,64] | [3,3]   | [1,1]   | 0.5      | 0.25     | 25.6    | 0.08   | a1
    sub_pyramid | [1,24,31,31] | [3,3]   | [2,2]   | 0.0      | 1.5      | 12.5    | 0.17   | a2
      conv_1    | [1,24,31,31] | [3,3]   | [2,2]   | 0.0      | 1.0      | 10.0    | 0.17   | a2

Layers are in the order of the compiled plan, each with its average time in ms; the sum of the top level is the average
of an iteration. Starts are not stated: layers are laid end to end. Sub-layers are parts of their parent. A layer that
runs in ONNX Runtime ("Naive Subgraph 0") has dimensions of -1 and a meaningless throughput.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common.json_document import JsonDocument, is_array
from traceconv.families.common.text_lines import TextLines, csv_rows
from traceconv.families.deepsparse.log import BANNER, NO_CLOCK, LogReader, plain, records
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import LINES, ROWS, absent, lost, noted, skipped
from traceconv.model.marks import FormatMarks, SeveralMarks
from traceconv.model.numbers import (
    LIMIT_NS,
    MS,
    decimal_or_text,
    double_of,
    parse_ns,
    read_json,
    whole_of,
    whole_or_text,
)
from traceconv.model.track_table import NO_TRACK, TrackId

LAYER_CLOCK = ClockDomain("order of the DeepSparse layers", Zero.UNKNOWN, Run.NONE)

NO_TIME = lost("deepsparse.layer_without_time", "a layer or an iteration has no time of 0 ms or more: it was left out")
NO_NUMBER = absent("deepsparse.not_a_number", "a value is NaN or infinite: it was left out of the args")
NAIVE_THROUGHPUT = skipped(
    "deepsparse.naive_throughput",
    "layers that run in ONNX Runtime have no dimensions, so their throughput has no meaning: it was left out",
    quiet=True,
)
OUTSIDE_PARENT = noted(
    "deepsparse.sub_layers_exceed_layer",
    "the sub-layers of a layer take longer than the layer: they are on a track of their own",
)

TIME = "average_run_time_in_ms"
#: Columns in the header of a CSV report, in any order.
CSV_COLUMNS = (b"average_run_time_in_ms", b"canonical_name")
#: The start of the header of a text report.
TEXT_HEADER = re.compile(rb"^ *Name *\| *OutDims *\| *KerDims *\| *Strides *\| *ActSpars *\| *Time\(ms\)", re.MULTILINE)
_HELP = (
    "The report has no timestamps: the order and the average durations of layers are real, positions are not; layers "
    "are laid end to end."
)
_REPORTS_HINT = "reports come from deepsparse.debug_analysis, deepsparse.analyze and deepsparse.benchmark"
_PARTS = ("sub_layer_info", "name")
_TOTALS = re.compile(r"^(?P<key>[A-Z][\w ()]*?): *(?P<value>[-\d.e+]+)\s*$")
#: The digits of a whole number; longer ones are decimals.
_MOST_DIGITS = 18
_WHOLE = re.compile(rf"[+-]?\d{{1,{_MOST_DIGITS}}}")
_NUMBER = re.compile(r"[+-]?([0-9]++\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?|[+-]?(nan|inf(inity)?)", re.IGNORECASE)
_PLACE = re.compile(r"[ _]\d+$")
_UNITS = ("mean", "median", "std")
_BENCHMARK = re.compile(rb'"engine"\s*:\s*"deepsparse\.engine')
#: The text before the layers, which includes the times of all iterations.
_ANALYSIS = {"average_total_time", "items_per_second", "iteration_times"}
_JSON = re.compile(rb"\{\s*\"")


# -- JSON -------------------------------------------------------------------------------------------------------------


class _Array(NamedTuple):
    """An array of a report, whose elements are decoded when they are iterated."""

    elements: Iterable[Any]


def _read_json(source: Source, out: Builder) -> None:
    """Read a report in JSON. Raises MalformedInput if the file is not a report."""
    report = _members(source)
    out.counts(ROWS)
    if isinstance(report.get("layer_info"), _Array):
        _read_analysis(report, out)
    elif isinstance(report.get("benchmark_result"), dict):
        lists = {key: list(value.elements) for key, value in report.items() if isinstance(value, _Array)}
        _read_benchmark(report | lists, out)
    else:
        raise source.malformed(
            "found JSON without layer_info or benchmark_result, expected a report of DeepSparse", hint=_REPORTS_HINT
        )


def _members(source: Source) -> dict[str, Any]:
    """Return the members of a report, none of other JSON; its arrays as `_Array`."""
    document = JsonDocument(source)
    try:
        members = msgspec.json.decode(document.text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):  # such as NaN, which Python reads
        report = _decoded(source, bytes(document.text))
        members = report if isinstance(report, dict) else {}
        return {key: _Array(value) if isinstance(value, list) else value for key, value in members.items()}
    return {
        key: _Array(_elements(source, document, value)) if is_array(value) else _decoded(source, bytes(value))
        for key, value in members.items()
    }


def _elements(source: Source, document: JsonDocument, array: msgspec.Raw) -> Iterator[Any]:
    for element in document.elements(array):
        yield _decoded(source, bytes(element))


def _decoded(source: Source, text: bytes) -> Any:
    try:
        return read_json(text, parse_int=whole_or_text, parse_float=decimal_or_text, parse_constant=Decimal)
    except json.JSONDecodeError as error:
        raise source.malformed(
            f"{error.msg}, expected the JSON of a report",
            hint="the file is cut or damaged: let DeepSparse write it again",
            where=f"line {error.lineno}",
        ) from None


def _read_analysis(report: dict[str, Any], out: Builder) -> None:
    layers = _Layers(out)
    layers.draw(report["layer_info"].elements)
    times = report.get("iteration_times")
    if isinstance(times, _Array):
        layers.draw_iterations(times.elements)
    layers.describe(_finite({key: value for key, value in report.items() if not isinstance(value, _Array)}, out))


class _Layers:
    def __init__(self, out: Builder) -> None:
        self._out = out
        out.clocks.set_default(LAYER_CLOCK.owned_by(out.info.name))
        self._process = out.tracks.process("DeepSparse model analysis", description=_HELP)
        self._track = out.tracks.add("layers (synthetic)", self._process, description=_HELP)
        self._apart: TrackId | None = None
        self._row = 0
        out.note(_HELP)

    def draw(self, layers: Iterable[Any]) -> None:
        """Draw layers end to end from 0, their parts inside of them."""
        start = 0
        for layer in layers:
            start += self._layer(layer, start, self._track)

    def _layer(self, layer: Any, start: int, track: TrackId) -> int:
        """Draw a layer; return its duration, ns."""
        balance = self._out.balance
        balance.read += 1
        self._row += 1
        row = self._row
        if not isinstance(layer, dict):
            self._out.skip(NO_TIME, row, f"{layer!r:.60}")
            return 0
        dur = _milliseconds(layer.get(TIME))
        if dur is None or start + dur > LIMIT_NS:
            self._out.skip(NO_TIME, row, f"{layer.get('name')!s:.60}: {layer.get(TIME)!r:.40}")
            self._parts(layer, 0, 0, track)
            return 0
        name = str(layer.get("name", "layer"))
        kind = "layer" if not layer.get("name") else _PLACE.sub("", name)
        self._out.slice(track, start, dur, name, kind, self._args(layer, row), row)
        balance.written += 1
        self._parts(layer, start, dur, track)
        return dur

    def _parts(self, layer: dict[str, Any], start: int, dur: int, track: TrackId) -> None:
        """Draw the sub-layers, inside of their layer if they fit."""
        parts = layer.get("sub_layer_info")
        if not isinstance(parts, list) or not parts:
            return
        times = [_milliseconds(part.get(TIME)) if isinstance(part, dict) else None for part in parts]
        if sum(time or 0 for time in times) > dur:
            self._out.problem(OUTSIDE_PARENT, self._row, f"{layer.get('name')!s:.60}")
            if self._apart is None:
                self._apart = self._out.tracks.add("sub-layers (synthetic)", self._process, description=_HELP)
            track = self._apart
        for part in parts:
            start += self._layer(part, start, track)

    def _args(self, layer: dict[str, Any], row: int) -> dict[str, Any]:
        args = {key: value for key, value in layer.items() if key not in _PARTS}
        dims = layer.get("output_dims")
        naive = isinstance(dims, dict) and bool(dims) and all(value == -1 for value in dims.values())
        if (naive or layer.get("output_dims_x") == -1) and args.pop("throughput_mb_per_second", None) is not None:
            self._out.problem(NAIVE_THROUGHPUT, row)
        return _finite(args, self._out, row)

    def draw_iterations(self, times: Iterable[Any]) -> None:
        """Draw the measured iterations, end to end on a track of their own, the first one."""
        track = NO_TRACK
        start = 0
        for number, time in enumerate(times):
            if track == NO_TRACK:
                track = self._out.tracks.add("iterations (synthetic)", self._process, description=_HELP)
                self._out.tracks[track].rank = 0  # above the layers that they consist of
            self._out.balance.read += 1
            dur = _milliseconds(time)
            if dur is None or start + dur > LIMIT_NS:
                self._out.skip(NO_TIME, f"iteration {number}", f"{time!r:.40}")
                continue
            args = _finite({"dur_ms": time}, self._out, number)
            self._out.slice(track, start, dur, f"iteration {number}", "iteration", args, number)
            self._out.balance.written += 1
            start += dur

    def describe(self, info: dict[str, Any]) -> None:
        """Keep the statements of the report about the whole."""
        self._out.metadata["deepsparse_analysis"] = info
        labels = {"batch_size": "batch size", "num_threads": "threads", "items_per_second": "items/s"}
        self._out.tracks[self._process].labels = tuple(
            f"{label} {_short(info[key])}" for key, label in labels.items() if key in info
        )


def _short(value: Any) -> Any:
    """Return a number for a title, with six digits; other values as they are."""
    return f"{value:.6g}" if isinstance(value, float) else value


def _read_benchmark(report: dict[str, Any], out: Builder) -> None:
    """Read statistics only: no run has a time of its own."""
    result = report["benchmark_result"]
    out.belongs_to(("deepsparse",))
    process = out.tracks.process("DeepSparse benchmark")
    track = out.tracks.totals("benchmark result", process, description="Statistics over all runs; latencies are in ms.")
    info = _finite({key: value for key, value in report.items() if key != "benchmark_result"}, out)
    for row, (key, value) in enumerate(result.items(), 1):
        out.balance.read += 1
        out.balance.written += 1
        latency = key in _UNITS or key.endswith("%")
        args = _finite({f"{key}_ms" if latency else key: value}, out, row)
        out.totals(track, f"latency {key}" if latency else key, "benchmark", args, row)
    engine = str(info.get("engine", "")).strip()
    out.tracks[process].description = engine
    out.metadata["deepsparse_benchmark"] = info
    out.note("a benchmark report holds statistics only: no run has a time, so there is nothing for a timeline")


# -- tables -----------------------------------------------------------------------------------------------------------


def _read_csv(source: Source, out: Builder) -> None:
    """Read a report in CSV: one layer a row, columns in any order, sub-layers left out by the tool."""
    out.counts(ROWS)
    layers = _Layers(out)
    layers.draw(_csv_rows(source))
    layers.describe({})


def _csv_rows(source: Source) -> Iterator[dict[str, Any]]:
    def refuse(error: csv.Error) -> list[str]:
        raise source.malformed(f"{error}, expected a table in CSV", hint=_REPORTS_HINT)

    header: list[str] = []
    for _, cells in csv_rows(source, refuse):
        if cells and not header:
            header = cells
        elif cells:
            yield {key: _typed(cell) for key, cell in zip(header, cells, strict=False)}


def _typed(text: str) -> Any:
    """Return a field of a table: a number if it looks like one."""
    text = text.strip()
    number = whole_of(text)
    if number is not None:
        return number
    return Decimal(text) if _NUMBER.fullmatch(text) else text


def _read_text(source: Source, out: Builder) -> None:
    """Read a report as a table for people: columns between pipes, sub-layers indented, totals below."""
    out.counts(ROWS, "line")
    layers = _Layers(out)
    info: dict[str, Any] = {}
    layers.draw(_text_rows(source, out, info))
    layers.describe(_finite(info, out))


def _text_rows(source: Source, out: Builder, info: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the layers of the table with their parts; keep the totals in `info`."""
    header = [""]
    layer: dict[str, Any] | None = None
    in_table = False
    for _, line in TextLines(out).read(source, again=True):
        text = line.decode("utf-8", "replace")
        total = _TOTALS.match(text.strip())
        if TEXT_HEADER.match(line):
            header, in_table = [cell.strip() for cell in text.split("|")], True
        elif in_table and "|" in text:
            row = _text_row(header, text)
            if row is None:
                continue
            if layer is not None and text.startswith("  "):
                layer.setdefault("sub_layer_info", []).append(row)
                continue
            if layer is not None:
                yield layer
            layer = row
        elif total:
            info[total["key"]] = _typed(total["value"])
            in_table = False
    if layer is not None:
        yield layer


def _text_row(header: list[str], text: str) -> dict[str, Any] | None:
    """Return the values of a row; None for a line between rows."""
    row = {key: _typed(cell) for key, cell in zip(header, text.split("|"), strict=False)}
    if not str(row.get("Name", "")) or set(text) <= set("|-=+ "):
        return None
    row["name"], row[TIME] = str(row.pop("Name")), row.pop("Time(ms)", None)
    return row


# -- numbers ----------------------------------------------------------------------------------------------------------


def _milliseconds(value: Any) -> int | None:
    """Return the ns of a number of ms; None for other values, negative ones and ones out of range."""
    if type(value) is int:
        ns = value * 10**MS
    elif isinstance(value, Decimal):
        try:
            ns = parse_ns(str(value).encode(), MS)
        except ValueError:
            return None
    else:
        return None
    return ns if 0 <= ns <= LIMIT_NS else None


def _finite(args: dict[str, Any], out: Builder, row: int | str = "") -> dict[str, Any]:
    """Return the args with numbers that JSON can hold; count and drop invalid ones."""
    members = {}
    for key, value in args.items():
        if type(value) in (str, int):  # almost all of them
            members[key] = value
            continue
        plain = _finite(value, out, row) if isinstance(value, dict) else _plain(value)
        if isinstance(value, Decimal) and plain is None:
            out.problem(NO_NUMBER, row, key)
        else:
            members[key] = plain
    return members


def _plain(value: Any) -> Any:
    """Return a decoded value for JSON; None for NaN."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, Decimal):
        return value
    return double_of(str(value))


# -- the format -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeepSparse(Importer):
    name = "deepsparse"
    title = "DeepSparse engine log, model analysis and benchmark reports"
    url = "https://github.com/neuralmagic/deepsparse"
    versions = "0.1 to 1.8 (durations of calls are in the logs of 0.1 to 0.9 only)"
    signature = Signature(
        ">fatal< | >error< | >warn< | >info< | >diagnose< | >debug | &gt; & &lt; | deepsparse & copyright | "
        'neuralmagic wand version | average_run_time_in_ms | actspars | "iteration_times" | "benchmark_result"'
    )
    clock = NO_CLOCK
    record = "NM_LOGGING_LEVEL=diagnose python run.py 2> deepsparse.log"
    skips = (NAIVE_THROUGHPUT,)
    #: The times that collectors put before lines place them: see _Stamps.
    reads_arrivals = True

    line_up = (
        "Use --offset FILE=TIME, or stamp the lines on arrival (ts, journald, a container runtime): "
        "NM_LOGGING_LEVEL=diagnose python run.py 2>&1 | ts '%Y-%m-%dT%H:%M:%.S%z' > deepsparse.log"
    )
    becomes = (
        ("compute_func lines", "slices on the thread that printed them, with their duration, ending at their line"),
        ("GetCapability and Compile phases, subgraphs, translation, compilation", "slices as long as they have lines"),
        ("nodes of the whole graph", "slices of one line, with their subgraph, or the reason why they are unsupported"),
        ("unsupported nodes, failed compilation", "instants"),
        ("all lines, those of the program included", "log entries on their thread"),
        ("layers and iterations of a model analysis", "slices end to end, with all fields as args"),
        ("statistics of a benchmark", "rows on a track without timeline"),
    )
    lost = (
        "A compute_func line does not name its subgraph.",
        "Layers that run in ONNX Runtime have no time: it prints nothing.",
    )
    marks = FormatMarks(
        libraries="deepsparse",
        steps=r"iteration \d+",
        several=SeveralMarks(r".* / (?:sub-)?layers \(synthetic\)", means=True),
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the prefix of a line, and the keys of a report; a banner alone may be a quotation."""
        text = head.text
        if _JSON.match(text):
            return _sniff_json(head)
        if _has_records(head):
            return Match.yes("a line with the prefix of a DeepSparse engine")
        first = text.split(b"\n", 1)[0]
        if b"," in first and all(column in first for column in CSV_COLUMNS):
            return Match.yes("the columns of a DeepSparse model analysis")
        if TEXT_HEADER.search(text):
            return Match.yes("the table of a DeepSparse model analysis")
        if any(BANNER.match(plain(line)) for line in head.data.splitlines()):
            return Match.maybe("the banner of DeepSparse")
        return Match.no("no line of a DeepSparse engine, and no report")

    def read(self, source: Source, out: Builder) -> None:
        head = source.head()
        if _JSON.match(head.text):
            _read_json(source, out)
        elif all(column in head.text.split(b"\n", 1)[0] for column in CSV_COLUMNS):
            _read_csv(source, out)
        elif TEXT_HEADER.search(head.text) and not _has_records(head):
            _read_text(source, out)
        else:
            self._read_log(source, out, head)

    def _read_log(self, source: Source, out: Builder, head: Head) -> None:
        out.counts(LINES)
        reader = LogReader(out, source)
        reader.read()
        if not reader.has_lines:
            raise source.malformed(
                "no line of a DeepSparse engine found, expected [nm_ort 7f5a271fab80 >DIAGNOSE< ...] or its banner",
                hint=f"record one with {self.record}",
            )


def _has_records(head: Head) -> bool:
    return any(records(plain(line))[1] for line in head.data.splitlines())


def _sniff_json(head: Head) -> Match:
    if head.json.members.keys() >= _ANALYSIS:
        return Match.yes("the keys of a DeepSparse model analysis")
    text = head.text
    if b'"benchmark_result"' in text and b'"items_per_sec"' in text and _BENCHMARK.search(text):
        return Match.yes("the keys of a DeepSparse benchmark")
    return Match.no("JSON without the keys of a DeepSparse report")
