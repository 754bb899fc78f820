"""Read the top level of a Chrome trace beside its events: clock, stack frames, metadata."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceconv.families.chrome.event import event_of
from traceconv.families.chrome.events import ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Match
from traceconv.io.source import Head
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, looks_like_unix_time
from traceconv.model.diagnostics import lost
from traceconv.model.json_values import decode_json
from traceconv.model.numbers import whole_of

LARGE_VALUE = lost("chrome.large_value", "a top-level value of the trace is larger than 16 MB and was left out")
NO_SAMPLE = lost("chrome.no_sample", "an element of `samples` is not an object, and was skipped")
BAD_BASE = lost(
    "chrome.bad_base_time",
    "baseTimeNanoseconds is not a whole number, so it is inexact and was left out; use --offset",
)
NOT_READ = lost("chrome.not_read", "ftrace or ETW text inside a Chrome trace is not read")

_LARGE = 16 << 20
_EMBEDDED = ("systemTraceEvents", "powerTraceAsString")
_STRUCTURAL = ("stackFrames", "samples", "displayTimeUnit", "baseTimeNanoseconds")
_EVENT = re.compile(rb'"ph"\s*:\s*"')
_EVENTS = re.compile(rb'"traceEvents"\s*:')
#: Control characters, and the unescaped backslash sequences that JSON reads as these.
_MISREAD = {ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


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
    for place in (top, top.get("viztracer_metadata"), top.get("metadata")):
        value = place.get("baseTimeNanoseconds") if isinstance(place, dict) else None
        if isinstance(value, str) and (number := whole_of(value)) is not None:
            return number
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _note_bad_base(top: dict[str, Any], out: Builder) -> None:
    """Count base times that are not a whole number: a double cannot hold the nanoseconds since 1970."""
    for place in (top, top.get("viztracer_metadata"), top.get("metadata")):
        value = place.get("baseTimeNanoseconds") if isinstance(place, dict) else None
        if value is not None:
            out.problem(BAD_BASE, "baseTimeNanoseconds", repr(value)[:60])
            return


def set_clock(
    top: dict[str, Any],
    out: Builder,
    private: ClockDomain,
    *,
    bound_ns: int | None = None,
    method: str = "baseTimeNanoseconds of the file",
) -> None:
    """Set the clock domain of the trace, and the snapshot that the file states.

    Args:
        top: the top-level values.
        out: the builder.
        private: the domain of the times.
        bound_ns: the bound between times of this writer and the wall clock, ns; None if not measured.
        method: the source of a base time, for the receipt.
    """
    out.clocks.set_default(private)
    base = base_time(top)
    if base is None:
        _note_bad_base(top, out)
    if looks_like_unix_time(out.tables.first_ts()):
        if base is not None:
            out.note("the times count from 1970 by their size, so baseTimeNanoseconds was not added to them")
        snapshot = ClockSnapshot(private, 0, REALTIME, 0, bound_ns, "times so large that they must count from 1970")
        out.clocks.snapshot(snapshot)
    elif base is not None:
        out.clocks.snapshot(ClockSnapshot(private, 0, REALTIME, base, bound_ns, method))
