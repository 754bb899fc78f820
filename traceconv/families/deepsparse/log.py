"""DeepSparse (Neural Magic): the log of the engine, times per layer, and benchmark statistics.

    DeepSparse Engine, Copyright 2021-present / Neuralmagic, Inc. version: 0.3.0 (b1569ff6) (release) (optimized)
    [nm_ort 7f5a271fab80 >DIAGNOSE< operator() /b/nm_execution_provider.cc:110] == NMExecutionProvider::GetCapability ==
    Printing GraphViewer mix:
    Node 0: Conv stem/conv
    [nm_ort 7f5a271fab80 >DIAGNOSE< operator() /b/nm_execution_provider.cc:294] ORT NM EP compute_func: 0.488 ms

A compute_func line is printed at the end of one run of one compiled subgraph, which it does not name; up to 0.9 only.
What is not supported runs in ONNX Runtime and prints nothing, so that the sum is less than the time of an inference. No
line has a timestamp of its own; one that a collector of logs put before it is used.

Source: the output of 0.3.0, 0.8.0, 1.0.2 and 1.8.0, and from the open Python package
(https://github.com/neuralmagic/deepsparse). `_deepsparse_lines` has the grammar of logs, `_deepsparse_reports` reports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from traceconv.families.deepsparse import _lines as lines
from traceconv.families.deepsparse import _reports as reports
from traceconv.families.deepsparse._runs import NO_CLOCK, LogReader
from traceconv.families.importer import Match
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import LINES, ROWS
from traceconv.model.marks import FormatMarks, SeveralMarks

_BENCHMARK = re.compile(rb'"engine"\s*:\s*"deepsparse\.engine')
#: The text before the layers, which includes the times of all iterations.
_ANALYSIS = {"average_total_time", "items_per_second", "iteration_times"}
_JSON = re.compile(rb"\{\s*\"")


@dataclass(frozen=True)
class DeepSparse:
    """Logs and reports of DeepSparse."""

    name: ClassVar[str] = "deepsparse"
    title: ClassVar[str] = "DeepSparse engine log, model analysis and benchmark reports"
    url: ClassVar[str] = "https://github.com/neuralmagic/deepsparse"
    versions: ClassVar[str] = "0.1 to 1.8 (durations of calls are in the logs of 0.1 to 0.9 only)"
    clock: ClassVar[ClockDomain] = NO_CLOCK
    marks: ClassVar[FormatMarks] = FormatMarks(
        libraries="deepsparse",
        steps=r"iteration \d+",
        several=SeveralMarks(r".* / (?:sub-)?layers \(synthetic\)", means=True),
    )
    record: ClassVar[str] = "NM_LOGGING_LEVEL=diagnose python run.py 2> deepsparse.log"
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("compute_func lines", "slices on the thread that printed them, with their duration, ending at their line"),
        ("GetCapability and Compile phases, subgraphs, translation, compilation", "slices as long as they have lines"),
        ("nodes of the whole graph", "slices of one line, with their subgraph, or the reason why they are unsupported"),
        ("unsupported nodes, supported share, failed compilation", "instants"),
        ("all lines, those of the program included", "log entries on their thread"),
        ("layers and iterations of a model analysis", "slices end to end, with all fields as args"),
        ("statistics of a benchmark", "rows on a track without timeline"),
    )
    skips = (reports.NAIVE_THROUGHPUT,)
    lost: ClassVar[tuple[str, ...]] = (
        "The log has no timestamps: order and durations are kept, positions are synthetic.",
        "A compute_func line does not name its subgraph.",
        "Layers that run in ONNX Runtime have no time: it prints nothing.",
    )
    #: The times that collectors put before lines place them: see _deepsparse_lines.
    reads_arrivals: ClassVar[bool] = True
    line_up: ClassVar[str] = (
        "Use --offset FILE=TIME. A log whose lines were stamped on arrival (by ts, journald or a container "
        "runtime) is placed by these stamps: NM_LOGGING_LEVEL=diagnose python run.py 2>&1 | ts "
        "'%Y-%m-%dT%H:%M:%.S%z' > deepsparse.log"
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the prefix of a line, and the keys of a report; a banner alone may be a quotation."""
        text = head.text
        if _JSON.match(text):
            return _sniff_json(head)
        if any(lines.records(lines.plain(line))[1] for line in head.data.splitlines()):
            return Match.yes("a line with the prefix of a DeepSparse engine")
        first = text.split(b"\n", 1)[0]
        if b"," in first and all(column in first for column in reports.CSV_COLUMNS):
            return Match.yes("the columns of a DeepSparse model analysis")
        if reports.TEXT_HEADER.search(text):
            return Match.yes("the table of a DeepSparse model analysis")
        if any(lines.BANNER.match(lines.plain(line)) for line in head.data.splitlines()):
            return Match.maybe("the banner of DeepSparse")
        return Match.no("no line of a DeepSparse engine, and no report")

    def read(self, source: Source, out: Builder) -> None:
        """Read a log or a report."""
        head = source.head()
        out.info.unit, out.balance.unit = "line", LINES
        if _JSON.match(head.text):
            out.balance.unit = ROWS
            reports.read_json(source, out)
        elif all(column in head.text.split(b"\n", 1)[0] for column in reports.CSV_COLUMNS):
            out.balance.unit = ROWS
            reports.read_csv(source, out)
        elif reports.TEXT_HEADER.search(head.text) and not _has_records(head):
            out.balance.unit = ROWS
            reports.read_text(source, out)
        else:
            self._read_log(source, out, head)

    def _read_log(self, source: Source, out: Builder, head: Head) -> None:
        reader = LogReader(out, source)
        reader.read()
        if not reader.has_lines:
            raise source.malformed(
                "no line of a DeepSparse engine found, expected [nm_ort 7f5a271fab80 >DIAGNOSE< ...] or its banner",
                hint=f"record one with {self.record}",
            )


def _has_records(head: Head) -> bool:
    return any(lines.records(lines.plain(line))[1] for line in head.data.splitlines())


def _sniff_json(head: Head) -> Match:
    if head.json.members.keys() >= _ANALYSIS:
        return Match.yes("the keys of a DeepSparse model analysis")
    text = head.text
    if b'"benchmark_result"' in text and b'"items_per_sec"' in text and _BENCHMARK.search(text):
        return Match.yes("the keys of a DeepSparse benchmark")
    return Match.no("JSON without the keys of a DeepSparse report")
