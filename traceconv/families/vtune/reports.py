"""Intel VTune Profiler: the reports that it prints, and the CSV with external data that it reads.

    timeBin,Bin Start Time,Bin End Time,CPU Time:Self
    Function,CPU Time,Module,Function (Full),Source File,Start Address
    name,start_tsc.CLOCK_MONOTONIC_RAW,end_tsc,pid,tid

Result folders are closed and bound to a version; `vtune -report NAME -format csv` (`amplxe-cl` before 2020) prints what
is in them. Of the reports only the timeline has times, in bins, counted from the start of the collection. Hotspots,
hardware events and the summary are sums; a call tree is drawn as nested slices on a track that says that it is no
timeline. The CSV with external data is what other collectors write for VTune to show: tasks, frames and counters with
exact times.

Described at https://www.intel.com/content/www/us/en/docs/vtune-profiler/user-guide/2025-1/overview.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from traceconv.families.common.text_tables import text_of_line
from traceconv.families.importer import Match, option
from traceconv.families.vtune import _external as external
from traceconv.families.vtune import _reports as reports
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain
from traceconv.model.counted import LINES
from traceconv.model.marks import FormatMarks, SeveralMarks, TotalsMarks

#: Messages of VTune may precede a report.
_LINES = 200


@dataclass(frozen=True)
class Vtune:
    """Reports of VTune, and external data."""

    frequency_hz: int | None = option(
        None,
        "for external data in ticks (QPC, TSC): how many of them a second has; the file does not say it.",
    )

    name: ClassVar[str] = "vtune"
    title: ClassVar[str] = "Intel VTune Profiler: timeline, hotspots and call trees as text or CSV, external data"
    url: ClassVar[str] = "https://www.intel.com/content/www/us/en/docs/vtune-profiler/user-guide/2025-1/overview.html"
    versions: ClassVar[str] = "reports of 2017 to 2025 as text and CSV, external data with any clock"
    clock: ClassVar[ClockDomain] = reports.RUN_CLOCK
    #: CPU time; that of a function is without the functions that it calls.
    marks: ClassVar[FormatMarks] = FormatMarks(
        totals=TotalsMarks(
            total=("CPU Time:Total (s)",),
            own=("CPU Time (s)", "CPU Time:Self (s)"),
            unit_ns=10**9,
            nested=("level",),
        ),
        several=SeveralMarks(r"(?:.* / )?Call tree \(synthetic\)", means=False),
    )
    record: ClassVar[str] = (
        "vtune -collect hotspots -r result -- ./app && "
        "vtune -r result -report timeline -report-knob column-by=CPUTime -report-knob bin-count=1000 -format csv "
        "-csv-delimiter comma -report-output timeline.csv"
    )
    line_up: ClassVar[str] = (
        "The timeline counts from the start of the collection. `vtune -report summary` prints that start to the "
        "second: use it with --offset. External data in UTC is on the wall clock."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("bin of the timeline report", "value of a counter for each metric and group"),
        (
            "row of a call tree (Function Stack)",
            "slice inside its caller, as long as its own and their seconds, synthetic",
        ),
        ("share in per cent (`...:Total`)", "arg; no slice where there are no seconds"),
        ("row of hotspots, hardware events, tasks, summary", "row of a table without times"),
        ("external task", "slice on its thread, or on its process"),
        ("external frame", "slice on the track Frames"),
        ("external counter", "counter; of a running total, its increases"),
    )
    skips = (external.FOREIGN_LINE, reports.OTHER_LINE)
    lost: ClassVar[tuple[str, ...]] = (
        "Reports other than the timeline hold no times; the resolution of the timeline is its bins.",
        "Single samples, calls and states of threads are only in the result folder, whose format is closed.",
    )
    unrecorded = (
        "VTune could not be installed, and no whole public report was found. "
        "Goldens are made by hand after the sources in docs/formats.md."
    )
    checked: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (
            "VTune 2023.0 to 2025.0",
            "Intel's user guide: reports top-down, callstacks, hotspots, timeline, gprof-cc",
            "columns, units, indentation, what is in per cent; as text only",
        ),
        (
            "VTune 2017 to 2018 and 2021",
            "tables of CSV reports in public notebooks and tests (top-down, hw-events, summary)",
            "columns and numbers: in CSV, shares have no sign",
        ),
        (
            "external data",
            "three public writers of it (FFmpeg, a media driver's tracer, a converter of oneDNN logs)",
            "headings, clocks, ids",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Recognise headings that no other tool prints; a table by function with CPU Time may be someone else's."""
        maybe = False
        lines = [text_of_line(line) for line in head.text.splitlines()[:_LINES]]
        for number, text in enumerate(lines):
            if external.heading_of(text) is not None:
                return Match.yes("the heading of external data for VTune")
            report = reports.heading_of(text) or reports.heading_above(lines[:number], text)
            if report is not None and report.is_certain:
                return Match.yes(f"the heading of a VTune report ({report.kind})")
            maybe |= report is not None
        if maybe:
            return Match.maybe("a heading with a column of VTune (CPU Time, Clockticks, ...)")
        return Match.no("no heading of a VTune report or of external data")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole file."""
        out.info.unit = "line"
        out.balance.unit = LINES
        for line in source.head().text.splitlines()[:_LINES]:
            if external.heading_of(text_of_line(line)) is not None:
                external.read_external(source, out, self.frequency_hz)
                return
        reports.read_report(source, out)
