"""Importers of traces in the Trace Event Format of Chrome ("Chrome JSON"): of any writer, and of viztracer.

Format: the Trace Event Format document, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

    {"traceEvents": [{"ph": "X", "name": "conv", "cat": "op", "pid": 1, "tid": 1, "ts": 3.5, "dur": 2.25, "args": {}}]}
    [{"ph": "B", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5}, {"ph": "E", "pid": 1, "tid": 1, "ts": 5.75}

Times are microseconds. The format does not define their zero; a top-level `baseTimeNanoseconds` (PyTorch, viztracer)
does, and times that are so large that they can only count from 1970.

Lost: embedded ftrace and ETW text (`systemTraceEvents`) is not read. Colour names have no counterpart and stay args.

viztracer (`viztracer script.py`) traces functions of Python:

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

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from traceconv.errors import UsageError
from traceconv.families.chrome.event import event_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Certainty, Importer, Match, Signature, option
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero, looks_like_unix_time
from traceconv.model.diagnostics import absent, lost
from traceconv.model.marks import ANY_TOOL_MARKS
from traceconv.model.numbers import DAY_NS, MS, NS, US, S, decode_json, whole_of
from traceconv.model.source_info import Layer

LARGE_VALUE = lost("chrome.large_value", "a top-level value of the trace is larger than 16 MB and was left out")
NO_SAMPLE = lost("chrome.no_sample", "an element of `samples` is not an object, and was skipped")
BAD_BASE = lost(
    "chrome.bad_base_time",
    "baseTimeNanoseconds is not a whole number, so it is inexact and was left out; use --offset",
)
NOT_READ = lost("chrome.not_read", "ftrace or ETW text inside a Chrome trace is not read")
OVERFLOW = absent(
    "viztracer.overflow",
    "the buffer of viztracer was full: the oldest events are missing in the file (record with larger --tracer_entries)",
)

_LARGE = 16 << 20
_EMBEDDED = ("systemTraceEvents", "powerTraceAsString")
_STRUCTURAL = ("stackFrames", "samples", "displayTimeUnit", "baseTimeNanoseconds")
_EVENT = re.compile(rb'"ph"\s*:\s*"')
_EVENTS = re.compile(rb'"traceEvents"\s*:')
#: Control characters, and the unescaped backslash sequences that JSON reads as these.
_MISREAD = {ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_FUNCTION = re.compile(rb'"cat"\s*:\s*"(?:FEE|fee)"')
#: The last entry of `file_info`: "relu (/src/net.py:15)": ["/src/net.py", 15]}}}
_LAST_FUNCTION = re.compile(rb'\(([^"]+):(\d+)\)"\s*:\s*\[\s*"\1"\s*,\s*\2\s*\]\s*\}\s*\}\s*\}\s*\Z')
_LAST_ENTRY = 4096
_KEY = b'"viztracer_metadata"'
_METADATA = "viztracer_metadata"
_MANY_DAYS = 10
_UNITS = {"ns": NS, "us": US, "ms": MS, "s": S}


@dataclass(frozen=True)
class ChromeTrace(Importer):
    name = "chrome-trace"
    title = "Chrome trace (Trace Event Format), of any writer"
    url = "https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU"
    versions = "object and array, all phases; complete, cut off or damaged"
    signature = Signature('"ph" | "traceevents" | []', (rb"\[\s+\]",), most=Certainty.MAYBE)
    clock = ClockDomain("Chrome trace time", Zero.UNKNOWN, Run.UNKNOWN, 1)
    record = "chrome://tracing > Record, or any tool that writes this format"
    skips = (EMPTY_EVENT,)
    ts_unit: str = option("us", "the unit of ts and dur; some writers print ns or ms although the format says us.")

    line_up = "Nothing is needed with baseTimeNanoseconds or microseconds since 1970; else `--offset FILE=TIME`."
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
    lost = (
        "Embedded ftrace and ETW text (systemTraceEvents) is not read.",
        "Colour names stay args.",
        "A flow event behind the slices of its thread belongs to the one that was open last, as in Perfetto.",
    )
    marks = ANY_TOOL_MARKS

    def sniff(self, head: Head) -> Match:
        """Return MAYBE for anything that looks like a trace: a more specific importer may know its writer."""
        return looks_like_chrome(head)

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        if self.ts_unit not in _UNITS:
            raise UsageError(f"option ts_unit of {self.name} is one of {', '.join(_UNITS)}, not {self.ts_unit!r}")
        reader = ChromeReader(source, out)
        events = ChromeEvents(out, _UNITS[self.ts_unit])
        events.add_all(reader)
        top = top_level(reader, out)
        add_top_level_samples(top, events)
        events.finish(top.get("stackFrames"))
        set_clock(top, out, self.clock)
        days = (out.tables.last_ts() - out.tables.first_ts()) // DAY_NS
        if days >= _MANY_DAYS and self.ts_unit == "us":
            out.note(f"the trace spans {days} days: if its times are not microseconds, say so with -O ts_unit=ns")


@dataclass(frozen=True)
class Viztracer(Importer):
    name = "viztracer"
    title = "viztracer trace of Python functions"
    url = "https://viztracer.readthedocs.io"
    versions = "0.x, 1.x (recorded with 1.1)"
    signature = Signature('"viztracer_metadata" | "fee"', (rb':\d+\)"\s*:\s*\[',))
    clock = ClockDomain("CLOCK_MONOTONIC of viztracer", Zero.BOOT, Run.MONOTONIC, 1)
    layer = Layer.FRAMEWORK
    record = "viztracer -o python.json script.py"
    skips = (EMPTY_EVENT,)

    line_up = (
        "Nothing is needed with baseTimeNanoseconds, which VizTracer.save() (1.1) writes. The command line does not: "
        "`--offset FILE=TIME`."
    )
    becomes = (
        ("functions", "slices on their thread, with arguments and return values as args"),
        ("log_instant, log_var, counters", "instants and counters"),
        ("processes and threads", "processes and threads"),
        ("file_info, viztracer_metadata", "metadata"),
    )
    lost = ("Events that the ring buffer dropped before the file was written are missing.",)

    def sniff(self, head: Head) -> Match:
        """Return YES by the metadata of viztracer, before or behind the events, or by its category of functions."""
        if looks_like_chrome(head).certainty and is_of_viztracer(head):
            return Match.yes("viztracer_metadata, file_info, or functions of category FEE")
        return Match.no("no viztracer_metadata, no file_info, and no category FEE")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        out.info.real_ids = True
        reader = ChromeReader(source, out)
        events = ChromeEvents(out)
        events.add_all(reader)
        top = top_level(reader, out)
        events.finish(top.get("stackFrames"))
        set_clock(top, out, self.clock)
        about = top.get(_METADATA)
        if isinstance(about, dict) and about.get("overflow"):
            out.problem(OVERFLOW, _METADATA)


def begins_as_of_viztracer(head: Head) -> bool:
    """Return whether viztracer wrote a Chrome trace, by metadata or functions in the head."""
    return _KEY in head.data or _FUNCTION.search(head.data) is not None


def is_of_viztracer(head: Head) -> bool:
    """Return whether viztracer wrote a Chrome trace: by functions in the head, metadata, or `file_info` at the end."""
    return (
        begins_as_of_viztracer(head) or _KEY in head.tail or _LAST_FUNCTION.search(head.tail[-_LAST_ENTRY:]) is not None
    )


def looks_like_chrome(head: Head) -> Match:
    """Return MAYBE if the head looks like the Trace Event Format, else NO with the reason."""
    text = head.text
    if text[:1] not in (b"{", b"["):
        return Match.no("does not begin with { or [")
    if _EVENTS.search(text):
        return Match.maybe("JSON with traceEvents")
    if _EVENT.search(text):
        return Match.maybe("JSON with events (ph)")
    if head.complete and text.rstrip() == b"[]":
        return Match.maybe("an empty JSON array")
    if head.json.members and not head.json.objects and _EVENT.search(head.tail):
        return Match.maybe("JSON that ends with events (ph)")
    return Match.no("JSON without traceEvents and without events (ph)")


def top_level(reader: ChromeReader, out: Builder) -> dict[str, Any]:
    """Return the top-level values, decoded; keep those about the recording as metadata."""
    values: dict[str, Any] = {}
    for key, raw in reader.top.items():
        if key in _EMBEDDED:
            out.problem(NOT_READ, key)
        elif key not in _STRUCTURAL and len(bytes(raw)) > _LARGE:
            out.problem(LARGE_VALUE, f"{key}: {len(bytes(raw))} bytes")
        else:
            values[key] = decode_json(bytes(raw)) if key != "samples" else _elements(bytes(raw))
            if key not in _STRUCTURAL:
                out.metadata[key] = values[key]
    return values


def add_top_level_samples(top: dict[str, Any], events: ChromeEvents) -> None:
    """Add the `samples` of the object form, which are beside the events."""
    for sample in top.get("samples", ()):
        events.out.balance.read += 1
        if bytes(sample)[:1] != b"{":
            events.out.skip(NO_SAMPLE, f"samples: {bytes(sample)[:40].decode('utf-8', 'replace')}")
            continue
        members = msgspec.json.decode(sample, type=dict[str, msgspec.Raw])
        members["ph"] = msgspec.Raw(b'"P"')
        events.add([event_of(members)])


def _elements(raw: bytes) -> list[msgspec.Raw]:
    """Return the elements of an array, undecoded, so that times stay exact; empty for other values."""
    return msgspec.json.decode(raw, type=list[msgspec.Raw]) if raw[:1] == b"[" else []


def misread_backslashes(name: str) -> str:
    """Return a name whose backslashes were written without escapes, so that JSON took them for control characters.

    For names that hold none: of files (`torch\\nn\\functional.py`), functions and nodes.
    """
    return name if name.isprintable() else name.translate(_MISREAD)


def base_time(top: dict[str, Any]) -> int | None:
    """Return `baseTimeNanoseconds`: the Unix time in ns of ts 0, as PyTorch and viztracer write it."""
    for value in _base_times(top):
        if isinstance(value, str) and (number := whole_of(value)) is not None:
            return number
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _base_times(top: dict[str, Any]) -> list[Any]:
    """Return all values of `baseTimeNanoseconds`."""
    places = (top, top.get(_METADATA), top.get("metadata"))
    values = [place.get("baseTimeNanoseconds") for place in places if isinstance(place, dict)]
    return [value for value in values if value is not None]


def set_clock(
    top: dict[str, Any],
    out: Builder,
    private: ClockDomain,
    *,
    bound_ns: int | None = None,
    method: str = "baseTimeNanoseconds of the file",
) -> None:
    """Set the clock domain of the trace, and the snapshot that the file states, with the bound of this writer (ns)."""
    out.clocks.set_default(private)
    base = base_time(top)
    if base is None and (values := _base_times(top)):  # a double cannot hold the nanoseconds since 1970
        out.problem(BAD_BASE, "baseTimeNanoseconds", repr(values[0])[:60])
    if looks_like_unix_time(out.tables.first_ts()):
        if base is not None:
            out.note("the times count from 1970 by their size, so baseTimeNanoseconds was not added to them")
        snapshot = ClockSnapshot(private, 0, REALTIME, 0, bound_ns, "times so large that they must count from 1970")
        out.clocks.snapshot(snapshot)
    elif base is not None:
        out.clocks.snapshot(ClockSnapshot(private, 0, REALTIME, base, bound_ns, method))
