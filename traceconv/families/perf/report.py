"""Text of `perf report --stdio`: how the samples of each event are spread over commands, files and symbols.

    # Samples: 268  of event 'cpu-clock'
    # Event count (approx.): 268268268
    #
    # Overhead  Command  Shared Object         Symbol
    # ........  .......  ....................  ..........................
    #
         9.33%  python   libscipy_openblas.so  [.] blas_thread_server

The line of dots says where the columns begin and end; which there are is up to --sort, --children, -n, --percentage.
A locale may write 9,33%. A row has no time. Lines of call chains (-g) below a row are not read: the
samples themselves have them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct

from traceconv.families.common.idle_lines import BLANK, DIGIT, SPACE, IdleLines, lines_but
from traceconv.families.importer import Match
from traceconv.families.perf._text import add_header_line
from traceconv.families.perf._tracks import Header
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, ClockDomain
from traceconv.model.counted import EMPTY_LINES, KEPT_HEADINGS, LINES
from traceconv.model.diagnostics import skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import double, whole_of, whole_or_text
from traceconv.model.trace import TrackId

CHAIN_LINE = skipped(
    "perf-report.call_chain",
    "lines of call chains are not read: convert the output of perf script, which has the stack of each sample",
)

_SAMPLES = re.compile(r"# Samples: (\S+)\s+of events? '(.*)'.*")
_COUNT = re.compile(r"# Event count \(approx\.\): ([0-9]+)")
_LOST = re.compile(r"# Total Lost Samples: ([0-9]+)")
_RULE = re.compile(rb"# *\.\.[. ]*")
_ROW = re.compile(r"\s*\d+[.,]\d+%")
_OTHERS = lines_but(b"#", SPACE + b"*" + DIGIT + b"+[.,]" + DIGIT + b"+%")
_PERCENT = re.compile(r"[0-9]{1,9}[.,][0-9]{1,9}%")
_SYMBOL_KIND = re.compile(r"\[(\S)\] ")
_MARK = re.compile(rb"(?m)^# Samples: .* of events? '")


class _Table(Struct):
    """The rows of one event."""

    track: TrackId
    columns: list[tuple[str, int, int | None]]


class _Reader:
    """Reads one report."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._header = Header()
        self._events: list[dict[str, Any]] = []
        self._heading = ""
        self._table: _Table | None = None
        self._lines = IdleLines(out)

    def read(self, source: Source) -> None:
        """Read all lines."""
        for number, line in self._lines.read(source):
            self._line(number, line)
        if self._table is None:
            raise source.malformed(
                "no table found, expected a heading `# Overhead  Command ...` with a line of dots below it",
                hint="write it with perf report --stdio",
            )
        if self._header.info:
            self._out.metadata["perf_header"] = self._header.info
        self._out.metadata["perf_report"] = self._events

    def _line(self, number: int, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if line == b"#":
            self._heading = "#"
            self._lines.merged(KEPT_HEADINGS, rb"#\r?\n")
        elif line.startswith(b"#"):
            self._comment(line, text)
            self._out.balance.merged[KEPT_HEADINGS] += 1
        elif not line.strip():
            self._lines.merged(EMPTY_LINES, BLANK)
        elif self._table is not None and _ROW.match(text):
            self._row(number, text)
        else:
            self._lines.skip(CHAIN_LINE, number, text.strip()[:60], _OTHERS)

    def _comment(self, line: bytes, text: str) -> None:
        samples, count, lost = _SAMPLES.fullmatch(text.rstrip()), _COUNT.match(text), _LOST.match(text)
        if samples is not None:
            number = whole_or_text(samples[1])  # "2K" where it is large
            self._events.append({"event": samples[2], "samples": number})
        elif count is not None and self._events:
            self._events[-1]["event_count"] = whole_or_text(count[1])
        elif lost is not None:
            self._out.metadata["perf_lost_samples"] = whole_or_text(lost[1])
        elif _RULE.fullmatch(line) and self._heading:
            self._begin_table(text)
        else:
            add_header_line(self._header, line)
        self._heading = text

    def _begin_table(self, rule: str) -> None:
        """Begin a table, whose heading is the line before the dots, cut where they begin."""
        starts = [match.start() for match in re.finditer(r"\.+", rule)]
        ends: list[int | None] = [*starts[1:], None]
        columns = [
            (self._heading[start:end].strip().lower().replace(" ", "_"), start, end)
            for start, end in zip(starts, ends, strict=True)
        ]
        event = self._events[-1] if self._events else {}
        about = f"{event.get('samples', '?')} samples, {event.get('event_count', '?')} events (approx.)"
        track = self._out.tracks.totals(f"perf report: {event.get('event', 'samples')}", description=f"{about}.")
        self._table = _Table(track, columns)

    def _row(self, number: int, text: str) -> None:
        assert self._table is not None
        args: dict[str, Any] = {}
        for name, start, end in self._table.columns:
            # The first column is right-aligned in a width that the dots have; a long value moves the others.
            args.update(_cell(name, text[start:end].strip()))
        name = str(args.pop("symbol", "") or args.get("shared_object") or args.get("command") or "row")
        self._out.totals(self._table.track, name, str(args.get("shared_object", "")), args, number)
        self._out.balance.written += 1


def _cell(name: str, text: str) -> dict[str, Any]:
    """Return the args of a cell: percentages and counts as numbers, the kind of a symbol separately from its name."""
    if _PERCENT.fullmatch(text):
        return {f"{name}_percent": double(text[:-1].replace(",", "."))}
    if (number := whole_of(text)) is not None:
        return {name: number}
    kind = _SYMBOL_KIND.match(text) if name == "symbol" else None
    if kind is not None:
        return {"symbol": text[kind.end() :], "level": {"k": "kernel", ".": "user"}.get(kind[1], kind[1])}
    return {name: text} if text else {}


@dataclass(frozen=True)
class PerfReport:
    """Text of perf report."""

    name: ClassVar[str] = "perf-report"
    title: ClassVar[str] = "Linux perf report text"
    url: ClassVar[str] = "https://man7.org/linux/man-pages/man1/perf-report.1.html"
    versions: ClassVar[str] = "perf report --stdio, checked with perf 6.1"
    clock: ClassVar[ClockDomain] = NO_TIME
    marks: ClassVar[FormatMarks] = FormatMarks(
        totals=TotalsMarks(calls=("samples",), percent=("overhead_percent", "self_percent"))
    )
    record: ClassVar[str] = "perf report --stdio --no-children -g none > perf.report.txt"
    line_up: ClassVar[str] = (
        "It holds no times. Merged with one output of perf script or one perf.data, its tables are shown "
        "under that input."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("table of an event", "table without a timeline"),
        ("row", "instant with overhead, command, file and symbol as args"),
        ("number of samples, event count, header", "metadata"),
    )
    skips = (CHAIN_LINE,)
    lost: ClassVar[tuple[str, ...]] = ("Call chains (-g) are not read; the samples themselves have them.",)
    checked = (
        ("perf 6.1", "recorded", "each row against the samples of the same recording"),
        ("perf 5", "a published text (a commit message of Linux)", "rows, levels, headings"),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the heading `# Samples: N of event 'NAME'`."""
        return (
            Match.yes("a heading of perf report") if _MARK.search(head.data) else Match.no("no `# Samples: N of event`")
        )

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole text."""
        out.info.unit = "line"
        out.balance.unit = LINES
        _Reader(out).read(source)
        out.belongs_to(("perf-script", "perf-data", "perf-json"))
