"""Traces of viztracer, the tracer of Python functions: `viztracer script.py`.

    {"traceEvents": [
      {"ph": "M", "pid": 7, "tid": 7, "name": "process_name", "args": {"name": "MainProcess"}},
      {"pid": 7, "tid": 7, "ts": 38757.942, "ph": "X", "dur": 1.840, "name": "relu (/src/net.py:15)", "cat": "FEE"}],
     "viztracer_metadata": {"version": "1.1.1", "overflow": false, "baseTimeNanoseconds": 1795242185473426262},
     "file_info": {"files": {"/src/net.py": ["...", 40]}, "functions": {"relu (/src/net.py:15)": ["/src/net.py", 15]}}}

Source: recordings with 1.1.1. Times are µs of CLOCK_MONOTONIC; `baseTimeNanoseconds` is Unix time minus that clock,
as read once; files of the command line lack it. Functions have the category FEE (entry and exit; fee where the command
line wrote the file) and come in the order of their ends.
`overflow` says that the ring buffer was full, so that the oldest events are missing. `file_info` holds the source text,
which can be longer than all events; it stands behind them.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceconv.families.chrome import document
from traceconv.families.chrome._viztracer_marks import is_of_viztracer
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Match
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import absent
from traceconv.model.trace import Layer

OVERFLOW = absent(
    "viztracer.overflow",
    "the buffer of viztracer was full: the oldest events are missing in the file (record with larger --tracer_entries)",
)

_METADATA = "viztracer_metadata"


@dataclass(frozen=True)
class Viztracer:
    """Importer of viztracer's JSON."""

    name = "viztracer"
    title = "viztracer trace of Python functions"
    url = "https://viztracer.readthedocs.io"
    versions = "0.x, 1.x (recorded with 1.1)"
    clock = ClockDomain("CLOCK_MONOTONIC of viztracer", Zero.BOOT, Run.MONOTONIC, 1)
    layer = Layer.FRAMEWORK
    record = "viztracer -o python.json script.py"
    line_up = (
        "Nothing is needed if the file has baseTimeNanoseconds, as written by VizTracer.save() (1.1). The "
        "command line does not write it: use `--offset FILE=TIME`."
    )
    becomes = (
        ("functions", "slices on their thread, with arguments and return values as args"),
        ("log_instant, log_var, counters", "instants and counters"),
        ("processes and threads", "processes and threads"),
        ("file_info, viztracer_metadata", "metadata"),
    )
    skips = (EMPTY_EVENT,)
    lost = ("Events that the ring buffer dropped before the file was written are missing.",)
    checked = (
        (
            "viztracer 1.1.1",
            "recorded with the command line and with the class, programs of 10 to 70,000 calls",
            "categories, metadata and where it stands, clock; options for args, gc, async and sparse logs",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the metadata of viztracer, before or behind the events, or by its category of functions."""
        if document.looks_like_chrome(head).certainty and is_of_viztracer(head):
            return Match.yes("viztracer_metadata, file_info, or functions of category FEE")
        return Match.no("no viztracer_metadata, no file_info, and no category FEE")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        out.info.real_ids = True
        reader = ChromeReader(source, out)
        events = ChromeEvents(out)
        events.add_all(reader)
        top = document.top_level(reader, out)
        events.finish(top.get("stackFrames"))
        document.set_clock(top, out, self.clock)
        about = top.get(_METADATA)
        if isinstance(about, dict) and about.get("overflow"):
            out.problem(OVERFLOW, _METADATA)
