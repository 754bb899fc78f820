"""Check the text of a Chrome JSON file as JSON, and find its events."""

from __future__ import annotations

import codecs
import re
from typing import Any

import msgspec

from traceconv.check._events import UNREADABLE, Events, byte_of, is_list, list_of
from traceconv.check._report import declare
from traceconv.check._shapes import (
    LARGE_BYTES,
    abbreviated,
    raw_members,
    top_level_problems,
)
from traceconv.model.diagnostics import Diagnostics, Severity

NOT_JSON = declare("check-json.not_json", Severity.ERROR, "the file is not valid JSON; most viewers refuse it")
NOT_FINITE = declare("check-json.not_finite", Severity.ERROR, "NaN and Infinity are not JSON; viewers refuse the file")
BOM = declare("check-json.bom", Severity.ERROR, "the file starts with a byte order mark; viewers refuse it")
NOT_UTF8 = declare("check-json.not_utf8", Severity.NOTICE, "bytes that are not UTF-8 are shown as replacements")
UNCLOSED = declare(
    "check-json.unclosed_array",
    Severity.NOTICE,
    "the list of events is not closed, or a comma ends it; the format allows that",
)
RAW_DELETE = declare(
    "check-json.raw_delete",
    Severity.ERROR,
    "the character DEL (0x7f) in a text outside of the events: Perfetto refuses the file; write \\u007f",
)
LARGE_MEMBER = declare(
    "check-json.large_member",
    Severity.NOTICE,
    "an event or a member beside the events has more than a megabyte: its large values were not checked",
)
SCHEMA = declare("check-json.schema", Severity.DATA_LOSS, "an event or member violates the Trace Event Format")
LONE_SURROGATE = declare(
    "check-json.lone_surrogate", Severity.ERROR, "half of a surrogate pair is not text; strict parsers refuse the file"
)
_UTF8_STEP = 1 << 20
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})", re.DOTALL)
_DELETE = b"\x7f"
_NOT_FINITE = re.compile(rb"-?(nan|inf)", re.IGNORECASE)


def load(data: bytes | bytearray, diagnostics: Diagnostics) -> Events | None:
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    if bom:
        diagnostics.add(BOM, "byte 0")
    text = memoryview(_as_utf8(data, diagnostics))[bom:]
    try:
        return _events_of(text, diagnostics)
    except UNREADABLE as error:
        if b"\\u" not in data or not (healed := _without_lone_surrogates(text, diagnostics)):
            _report_not_json(text, error, diagnostics)
            return None
    try:
        return _events_of(memoryview(healed), diagnostics)
    except UNREADABLE as error:
        _report_not_json(memoryview(healed), error, diagnostics)
        return None


def _as_utf8(data: bytes | bytearray, diagnostics: Diagnostics) -> bytes | bytearray:
    """Return the text with invalid UTF-8 replaced, as browsers do."""
    if data.isascii():
        return data
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _UTF8_STEP):
            decoder.decode(data[start : start + _UTF8_STEP], start + _UTF8_STEP >= len(data))
    except UnicodeDecodeError as error:
        diagnostics.add(NOT_UTF8, f"near byte {start + error.start}")
        return data.decode("utf-8", "replace").encode()
    return data


def _without_lone_surrogates(data: memoryview, diagnostics: Diagnostics) -> bytes | None:
    """Return the text with each lone surrogate replaced, or None if there is none."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return match[0]
        diagnostics.add(LONE_SURROGATE, f"byte {match.start()}")
        return b"\\ufffd"

    healed = _SURROGATES.sub(replace, data)
    return healed if diagnostics.count(LONE_SURROGATE) else None


def _events_of(text: memoryview, diagnostics: Diagnostics) -> Events | None:
    """Return the events, undecoded; None (and a problem) if this is not a trace at all."""
    if not is_list(text):
        return _events_of_object(text, diagnostics)
    events, closed = list_of(text)
    if not closed:
        diagnostics.add(UNCLOSED, f"byte {len(text)}")
    return events


def _events_of_object(text: memoryview, diagnostics: Diagnostics) -> Events | None:
    try:
        top = raw_members.decode(text)
    except msgspec.ValidationError:
        top = None
    inner = memoryview(top["traceEvents"]) if top and "traceEvents" in top else None
    if top is None or (inner is not None and bytes(inner[:1]) != b"["):
        diagnostics.add(SCHEMA, "the file is neither a list of events nor an object with a list traceEvents")
        return None
    info = {key: _fact(key, raw, diagnostics) for key, raw in top.items() if key != "traceEvents"}
    events = None
    if inner is not None:
        info["traceEvents"] = []
        events, _ = list_of(inner)
        events.is_output = _is_output(top.get("metadata"))
    if outside := _deletes(text) - (_deletes(inner) if inner is not None else 0):
        diagnostics.add(RAW_DELETE, "outside of traceEvents", outside)
    for problem in top_level_problems(info):
        diagnostics.add(SCHEMA, f"top level, {problem}")
    return events


def _is_output(metadata: msgspec.Raw | None) -> bool:
    """Return whether traceconv wrote a trace with these metadata; their values may be large."""
    for key in ("traceconv", "sources"):
        try:
            metadata = raw_members.decode(metadata or b"").get(key)
        except msgspec.DecodeError:
            return False
    return metadata is not None


def _fact(key: str, raw: msgspec.Raw, diagnostics: Diagnostics) -> Any:
    """Return a member beside the events for the schema; an empty value of its kind if it is large."""
    if memoryview(raw).nbytes > LARGE_BYTES:
        diagnostics.add(LARGE_MEMBER, f"top level, {key}")
        raw = abbreviated(raw)
    return msgspec.json.decode(raw)


def _deletes(text: memoryview) -> int:
    return sum(bytes(text[at : at + _UTF8_STEP]).count(_DELETE) for at in range(0, len(text), _UTF8_STEP))


def _report_not_json(data: memoryview, error: Exception, diagnostics: Diagnostics) -> None:
    place = byte_of(error)
    at = len(data) if place is None else place
    if _NOT_FINITE.match(data, at) or _NOT_FINITE.match(data, at - 1):
        diagnostics.add(NOT_FINITE, f"byte {at}")
    else:
        diagnostics.add(NOT_JSON, f"byte {at} of {len(data)}: {str(error).split(' (byte')[0]}")
