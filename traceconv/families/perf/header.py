"""The header of a recording alone: `perf script --header-only`.

    # ========
    # captured on    : Sat Nov 21 07:07:40 2026
    # hostname : vm
    # clockid: monotonic (1)
    # reference time: 2026-11-21 07:07:40.014999 = 1795244860.014999 (TOD) = 2674.541574960 (monotonic)

It holds no events, but the relation of the clock of the recording to the wall clock, the machine and the command: it
becomes a table without times, and metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from traceconv.families.common.idle_lines import IdleLines
from traceconv.families.importer import Match
from traceconv.families.perf._text import add_header_line, begins_header
from traceconv.families.perf._tracks import FIRST_SAMPLE, PERF_CLOCK, Header, marks_of_perf
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import KEPT_HEADER_LINES, LINES
from traceconv.model.forms import Form


@dataclass(frozen=True)
class PerfHeader:
    """The header of perf script without events."""

    name: ClassVar[str] = "perf-header"
    title: ClassVar[str] = "Linux perf header alone (perf script --header-only)"
    url: ClassVar[str] = "https://man7.org/linux/man-pages/man1/perf-script.1.html"
    versions: ClassVar[str] = "checked with perf 6.1"
    clock: ClassVar[ClockDomain] = PERF_CLOCK
    record: ClassVar[str] = (
        "perf record -k CLOCK_MONOTONIC python run.py && perf script --header-only > perf.header.txt"
    )
    line_up: ClassVar[str] = (
        "It holds no events. Its pair of clock readings relates CLOCK_MONOTONIC of its machine to the wall clock. "
        "This holds for all files of the machine. Better use perf script --header, which prints header "
        "and events."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fact (host, command, version, events)", "row of a table without a timeline, and metadata"),
        ("clockid, reference time", "clock, snapshot of clock and wall clock"),
    )
    lost: ClassVar[tuple[str, ...]] = ("It holds no events: they are in the output of perf script.",)

    def form(self, head: Head) -> Form:
        """Return the last form of a recording: the header alone, known by its command and first sample."""
        return Form(3, marks_of_perf, 1)

    def sniff(self, head: Head) -> Match:
        """Return YES for a header, MAYBE if events may follow beyond what can be seen."""
        if not begins_header(head.text):
            return Match.no("no header of perf")
        if any(line and not line.startswith(b"#") for line in head.text.splitlines()):
            return Match.no("a header of perf with events")
        return Match.yes("a header of perf without events") if head.complete else Match.maybe("a header of perf")

    def read(self, source: Source, out: Builder) -> None:
        """Read all lines. Raises MalformedInput if there is no header."""
        out.info.unit = "line"
        out.balance.unit = LINES
        header = Header()
        lines = IdleLines(out)
        for number, line in lines.read(source):
            if line.strip() in (b"", b"#"):
                lines.idle(lambda _: None, rb"#?\s*\n")
            if line.strip() and not line.startswith(b"#"):
                raise source.malformed(
                    "events follow the header, expected lines that begin with #",
                    hint="read it with --from perf-script",
                    where=f"line {number}",
                )
            add_header_line(header, line)
        if not header.info:
            raise source.malformed(
                "no entry of a perf header found, expected lines such as `# hostname : vm`", hint=self.record
            )
        out.balance.kept[KEPT_HEADER_LINES] += out.balance.read
        if header.span is not None:
            header.info[FIRST_SAMPLE] = header.span[0]
        table = out.tracks.totals("perf header")
        for name, value in header.info.items():
            out.totals(table, name, "fact", {"value": value})
        header.tell(out)
        out.note("a header without events: only its text and its clocks are used")


def header_beside(source: Source, named: Source | None, span: tuple[int, int] | None, out: Builder) -> Header | None:
    """Return the header of a recording from another file.

    It is the named file, or one beside the recording whose times cover those of the recording.
    """
    candidates = [named] if named is not None else [Source(path) for path in _header_paths(source)]
    for candidate in candidates:
        if not begins_header(candidate.head().text):
            if named is not None:
                raise candidate.malformed(
                    "no perf header found, expected `# ========` and `# captured on`",
                    hint="write it with perf script --header-only",
                    where="line 1",
                )
            continue
        header = Header()
        for _, line in candidate.lines():
            if not line.startswith(b"#"):
                break
            add_header_line(header, line)
        covers = _covers(header, span)
        if named is not None or covers:
            verdict = "lie" if covers else "do not all lie"
            text = f"{candidate.name} beside the file was read as its header"
            out.note(f"{text}; the samples {verdict} in the times that it states")
            return header
    return None


def _header_paths(source: Source) -> list[Path]:
    """Return the files beside the input that may hold its header, by name."""
    if source.path is None or "script" not in source.path.name:
        return []
    before, _, after = source.path.name.partition("script")
    suffix = after[after.rindex(".") :] if "." in after else ""
    names = dict.fromkeys([f"{before}header{after}", f"{before}header{suffix}", f"{before}script_header{suffix}"])
    paths = [source.path.with_name(name) for name in names]
    return [path for path in paths if path.is_file() and not source.is_same_file(path)]


def _covers(header: Header, span: tuple[int, int] | None) -> bool:
    """Return whether the samples are within the times that the header states (in microseconds)."""
    if header.span is None or span is None:
        return False
    return header.span[0] - 1000 <= span[0] and span[1] <= header.span[1] + 1000
