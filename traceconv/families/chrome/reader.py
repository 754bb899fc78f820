"""Importer of any trace in the Trace Event Format of Chrome ("Chrome JSON").

Format: the Trace Event Format document, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

    {"traceEvents": [{"ph": "X", "name": "conv", "cat": "op", "pid": 1, "tid": 1, "ts": 3.5, "dur": 2.25, "args": {}}]}
    [{"ph": "B", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5}, {"ph": "E", "pid": 1, "tid": 1, "ts": 5.75}

Times are microseconds. The format does not define their zero; a top-level `baseTimeNanoseconds` (PyTorch, viztracer)
does, and times that are so large that they can only count from 1970.

Lost: embedded ftrace and ETW text (`systemTraceEvents`) is not read. Colour names have no counterpart and stay args.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceconv.errors import UsageError
from traceconv.families.chrome import document
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Match, option
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.marks import ANY_TOOL_MARKS
from traceconv.model.times import MS, NS, US, S

_DAY_NS = 24 * 3600 * 10**9
_MANY_DAYS = 10
_UNITS = {"ns": NS, "us": US, "ms": MS, "s": S}


@dataclass(frozen=True)
class ChromeTrace:
    """Importer of any Chrome trace."""

    ts_unit: str = option("us", "the unit of ts and dur; some writers print ns or ms although the format says us.")

    name = "chrome-trace"
    title = "Chrome trace (Trace Event Format), of any writer"
    url = "https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU"
    versions = "object and array form, all phases; complete, cut off or damaged"
    clock = ClockDomain("Chrome trace time", Zero.UNKNOWN, Run.UNKNOWN, 1)
    marks = ANY_TOOL_MARKS
    record = "chrome://tracing > Record, or any of the many tools that write this format"
    line_up = (
        "Nothing is needed when the file has baseTimeNanoseconds, or microseconds since 1970; else `--offset "
        "FILE=TIME`."
    )
    becomes = (
        ("X, B/E", "slices"),
        ("b/e/n, S/T/F", "slices and instants on a track for each id; lanes where they overlap"),
        ("i, I, R, `log` instants", "instants"),
        ("C", "counters"),
        ("s/t/f", "flows"),
        ("P, samples", "call stack samples"),
        ("N/O/D, M of objects", "instants with the snapshot as args"),
        ("M", "names, labels and order of processes and threads"),
        ("v, V, c", "instants with the values as args"),
    )
    skips = (EMPTY_EVENT,)
    checked = (
        (
            "writers of their own: CUDA calls by eBPF, a program in Odin, a C profiler, bpftrace by x2trace",
            "5 public traces (repositories floritange/ebpf_cuda_monitoring, Ibarria/rad, HaydenA0/small-c-profiler, "
            "umaumax/x2trace)",
            "number and summed duration of slices, ends without start, first and last time, by a reading of our own",
        ),
        (
            "developer tools of Chrome 65 to 141",
            "9 public traces (repository jlfwong/speedscope)",
            "by a reading of our own: number and summed duration of slices, instants, lone starts and ends, samples",
        ),
    )
    lost = (
        "Embedded ftrace and ETW text (systemTraceEvents) is not read.",
        "Colour names stay args.",
        "A flow event behind the slices of its thread belongs to the one that was open last, as in Perfetto.",
    )

    def sniff(self, head: Head) -> Match:
        """Return MAYBE for anything that looks like a trace: a more specific importer may know its writer."""
        return document.looks_like_chrome(head)

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        if self.ts_unit not in _UNITS:
            raise UsageError(f"option ts_unit of {self.name} is one of {', '.join(_UNITS)}, not {self.ts_unit!r}")
        reader = ChromeReader(source, out)
        events = ChromeEvents(out, _UNITS[self.ts_unit])
        events.add_all(reader)
        top = document.top_level(reader, out)
        document.add_top_level_samples(top, events)
        events.finish(top.get("stackFrames"))
        document.set_clock(top, out, self.clock)
        days = (out.tables.last_ts() - out.tables.first_ts()) // _DAY_NS
        if days >= _MANY_DAYS:
            out.note(f"the trace spans {days} days: if its times are not microseconds, say so with -O ts_unit=ns")
