"""Checks Chrome Trace Event JSON: shape, balance, nesting, flows, numbers, texts.

The schema (`schemas/chrome_trace.schema.json`) is too slow to be asked about each of a million events. Whether an
event conforms depends only on its phase, its members and the kinds of their values, so one event of each such shape
is validated and the verdict holds for all others of the shape. Rules on values (pairs, overlaps, ranges) are
checked on every event. Times are read from their decimal text, never through a float.

An event is named by its position in the list of events, from 0. The phases and what viewers do with defects are
described in the Trace Event Format document; the limits of Perfetto are those of its JSON importer as of v58.
"""

from __future__ import annotations

import codecs
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from traceconv.check._report import CheckReport, make_report
from traceconv.check._schemas import load_schema
from traceconv.diagnostics import Diagnostics, Severity, declare
from traceconv.times import US, parse_ns

NOT_JSON = declare("check-json.not_json", Severity.ERROR, "the file is not valid JSON; most viewers refuse it")
NOT_FINITE = declare("check-json.not_finite", Severity.ERROR, "NaN and Infinity are not JSON; viewers refuse the file")
BOM = declare("check-json.bom", Severity.ERROR, "the file starts with a byte order mark; viewers refuse it")
NOT_UTF8 = declare("check-json.not_utf8", Severity.NOTICE, "bytes that are not UTF-8 are shown as replacements")
UNCLOSED = declare(
    "check-json.unclosed_array", Severity.NOTICE, "the list of events is not closed; the format allows that"
)
NO_EVENTS = declare("check-json.no_events", Severity.NOTICE, "there is no event; Perfetto does not open an empty list")
EMPTY_EVENT = declare("check-json.empty_event", Severity.INFO, "an empty object among the events is skipped by viewers")
SCHEMA = declare("check-json.schema", Severity.DATA_LOSS, "not as the Trace Event Format has it")
LONE_SURROGATE = declare(
    "check-json.lone_surrogate", Severity.ERROR, "half of a surrogate pair is no text; strict parsers refuse the file"
)
SURROGATE = declare(
    "check-json.surrogate_escape",
    Severity.ERROR,
    "a surrogate pair written as escapes in a name stops Perfetto's import; write the character itself",
)
BAD_TIME = declare("check-json.bad_time", Severity.DATA_LOSS, "a time that is no finite number or out of range")
NEGATIVE_DUR = declare("check-json.negative_duration", Severity.DATA_LOSS, "a slice ends before it begins")
LARGE_TIMES = declare(
    "check-json.large_times",
    Severity.NOTICE,
    "times above 9.007e12 µs do not keep their nanoseconds in viewers, which read them as doubles",
)
BIG_ID = declare("check-json.big_id", Severity.NOTICE, "ids from 2^53 on lose digits in viewers; write them as text")
TASK_RANGE = declare(
    "check-json.task_range", Severity.NOTICE, "Perfetto turns a pid or tid that is no unsigned 32-bit number into 0"
)
NO_PID = declare("check-json.no_pid", Severity.NOTICE, "without a pid viewers put the event into process 0")
OVERLAP = declare(
    "check-json.overlap",
    Severity.DATA_LOSS,
    "slices of one thread overlap without nesting; viewers drop or displace the later one",
)
END_ALONE = declare("check-json.end_without_begin", Severity.DATA_LOSS, "an end has no open slice to close")
BEGIN_ALONE = declare("check-json.begin_without_end", Severity.NOTICE, "a slice is never closed and is shown as open")
END_NAME = declare(
    "check-json.end_name", Severity.DATA_LOSS, "an end has another name than the innermost open slice of its thread"
)
ASYNC_END_ALONE = declare(
    "check-json.async_end_without_begin", Severity.DATA_LOSS, "an async end has no open slice of its id and name"
)
ASYNC_BEGIN_ALONE = declare("check-json.async_begin_without_end", Severity.NOTICE, "an async slice is never closed")
FLOW_NO_START = declare("check-json.flow_without_start", Severity.NOTICE, "a flow is continued that nothing started")
FLOW_NO_END = declare("check-json.flow_without_end", Severity.NOTICE, "a flow is started that leads nowhere")
FLOW_TWICE = declare(
    "check-json.flow_started_twice", Severity.NOTICE, "a flow id is started again before it was finished"
)
FLOW_ID = declare("check-json.flow_id", Severity.DATA_LOSS, "Perfetto reads a textual flow id as hexadecimal")
COUNTER_NULL = declare("check-json.counter_null", Severity.DATA_LOSS, "a counter without a value is not shown")

_SCHEMA_NAME = "chrome_trace.schema.json"
_UTF8_STEP = 1 << 20
_MAX_EXACT_INT = 2**53
_MAX_TASK = 2**32 - 1
# A double of microseconds still has a step below half a nanosecond up to here.
_MAX_EXACT_NS = 2**53

_NUMBER = re.compile(rb'"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"')
_INTEGER = re.compile(rb"-?\d+")
_HEX_ID = re.compile(rb'"(0[xX])?[0-9a-fA-F]+"')
_SURROGATE_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]")
# Escaped backslash, whole pair, or a lone half: only the last has a group.
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})", re.DOTALL)
_BYTE_IN_MESSAGE = re.compile(r"\(byte (\d+)\)")
_NOT_FINITE = re.compile(rb"-?(nan|inf)", re.IGNORECASE)

_NUMERIC_KEYS = frozenset(["ts", "dur", "tts", "tdur"])
_VALUED_KEYS = frozenset(["ph", "s", "bp"])
_NAMED_METADATA = frozenset(
    b'"%s"' % name
    for name in (b"process_name", b"thread_name", b"process_labels", b"process_sort_index", b"thread_sort_index")
)
# Phases whose args have members that the schema knows.
_ARGS_MATTER = frozenset([b'"C"', b'"M"', b'"O"', b'"c"'])
_FLOW_PHASES = frozenset(b"stf")
_PIDLESS = frozenset(b"MRPcVv")

_Event = dict[str, bytes]
_Row = tuple[int, int, bool, bytes]  # ts, position, whether it is a begin, name

_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_raw_dict = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check_chrome_json(data: bytes) -> CheckReport:
    """Check the text of a Chrome JSON trace."""
    found = Diagnostics()
    events = _load(data, found)
    if events is None:
        return make_report("chrome-json", found, {"events": 0})
    if not events:
        found.add(NO_EVENTS)
    checker = _Checker(found)
    for position, raw in enumerate(events):
        checker.event(position, raw)
    return make_report("chrome-json", found, checker.finish())


# --- the file as a whole ---------------------------------------------------------------------------------------------


def _load(data: bytes, found: Diagnostics) -> list[msgspec.Raw] | None:
    if data.startswith(codecs.BOM_UTF8):
        found.add(BOM, "byte 0")
        data = data[len(codecs.BOM_UTF8) :]
    _check_utf8(data, found)
    try:
        return _events_of(data, found)
    except msgspec.DecodeError as error:
        if b"\\u" not in data or not (healed := _without_lone_surrogates(data, found)):
            _report_not_json(data, error, found)
            return None
    try:
        return _events_of(healed, found)
    except msgspec.DecodeError as error:
        _report_not_json(healed, error, found)
        return None


def _check_utf8(data: bytes, found: Diagnostics) -> None:
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _UTF8_STEP):
            decoder.decode(data[start : start + _UTF8_STEP], start + _UTF8_STEP >= len(data))
    except UnicodeDecodeError as error:
        found.add(NOT_UTF8, f"byte {start + error.start}")


def _without_lone_surrogates(data: bytes, found: Diagnostics) -> bytes | None:
    """The text with each lone half replaced, or None if there is none."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return match[0]
        found.add(LONE_SURROGATE, f"byte {match.start()}")
        return b"\\ufffd"

    healed = _SURROGATES.sub(replace, data)
    return healed if found.count(LONE_SURROGATE) else None


def _events_of(data: bytes, found: Diagnostics) -> list[msgspec.Raw] | None:
    """The events, undecoded; None (and a problem) when this is no trace at all."""
    if not data.lstrip()[:1] == b"[":
        return _events_of_object(data, found)
    try:
        return _raw_list.decode(data)
    except msgspec.DecodeError:
        closed = data.rstrip().removesuffix(b"]").rstrip().removesuffix(b",") + b"]"
        events = _raw_list.decode(closed)
    found.add(UNCLOSED, f"byte {len(data)}")
    return events


def _events_of_object(data: bytes, found: Diagnostics) -> list[msgspec.Raw] | None:
    try:
        top = _raw_dict.decode(data)
        facts = {key: msgspec.json.decode(raw) for key, raw in top.items() if key != "traceEvents"}
        events = _raw_list.decode(top["traceEvents"]) if "traceEvents" in top else None
    except msgspec.ValidationError:
        found.add(SCHEMA, "the file is neither a list of events nor an object with a list traceEvents")
        return None
    if events is not None:
        facts["traceEvents"] = []
    for error in Draft202012Validator(load_schema(_SCHEMA_NAME)).evolve(schema=_part("traceObject")).iter_errors(facts):
        found.add(SCHEMA, f"top level: {_sentence(error)}")
    return events


def _report_not_json(data: bytes, error: msgspec.DecodeError, found: Diagnostics) -> None:
    match = _BYTE_IN_MESSAGE.search(str(error))
    at = int(match[1]) if match else len(data)
    if _NOT_FINITE.match(data, at) or _NOT_FINITE.match(data, at - 1):
        found.add(NOT_FINITE, f"byte {at}")
    else:
        found.add(NOT_JSON, f"byte {at} of {len(data)}: {str(error).split(' (byte')[0]}")


# --- the schema ------------------------------------------------------------------------------------------------------


def _part(name: str) -> dict[str, Any]:
    """One definition of the schema as a schema of its own."""
    definitions = load_schema(_SCHEMA_NAME)["$defs"]
    return {**definitions[name], "$defs": definitions}


def _sentence(error: ValidationError) -> str:
    """A short text for a violation: the library's own quotes the whole instance."""
    where = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "required" or error.validator == "enum":
        return f"{where}: {error.message}"[:160] if where else error.message[:160]
    wanted = error.schema.get("title", "") if isinstance(error.schema, Mapping) else ""
    if error.validator == "anyOf" and all("required" in choice for choice in error.validator_value):
        return "one of these is needed: " + ", ".join("+".join(c["required"]) for c in error.validator_value)
    shown = msgspec.json.encode(error.instance).decode()[:60]
    return f"{where or 'event'}: {shown} is not {wanted.lower() or _wanted(error)}"


def _wanted(error: ValidationError) -> str:
    return f"of {error.validator} {msgspec.json.encode(error.validator_value).decode()[:60]}"


def _kind(key: str, value: bytes) -> object:
    """What the schema can tell apart in a value, as far as the key makes it matter."""
    first = value[0]
    if first == 0x22:  # a text
        if key in _VALUED_KEYS:
            return value
        return bool(_NUMBER.fullmatch(value)) if key in _NUMERIC_KEYS else "text"
    if first == 0x2D or 0x30 <= first <= 0x39:
        return "integer" if _INTEGER.fullmatch(value) else "number"
    return first  # t, f, n, [ or { tell the rest


class _Shapes:
    """The verdict of the schema on each distinct shape of an event."""

    def __init__(self) -> None:
        self._validator = Draft202012Validator(_part("event"))
        self._verdicts: dict[object, str] = {}

    def verdict(self, event: _Event) -> str:
        """What is wrong with the event, or an empty text."""
        shape: object = tuple([(key, _kind(key, value)) for key, value in event.items()])
        phase = event.get("ph")
        if phase in _ARGS_MATTER:
            shape = (shape, event.get("name") in _NAMED_METADATA and event["name"], _args_shape(event))
        elif "id2" in event:
            shape = (shape, _args_shape(event, "id2"))
        known = self._verdicts.get(shape)
        if known is None:
            known = self._verdicts[shape] = self._validate(event)
        return known

    def _validate(self, event: _Event) -> str:
        instance = {key: msgspec.json.decode(value) for key, value in event.items()}
        error = best_match(self._validator.iter_errors(instance), key=_depth)
        return _sentence(error) if error else ""


def _depth(error: ValidationError) -> tuple[bool, int]:
    # An unknown phase explains more than anything else that is wrong with the event.
    return error.absolute_path[-1:] == ["ph"] if False else "ph" in error.absolute_path, -len(error.absolute_path)


def _args_shape(event: _Event, member: str = "args") -> object:
    try:
        args = _raw_dict.decode(event.get(member, b""))
    except msgspec.DecodeError:
        return None
    values = ((key, bytes(value)) for key, value in args.items())
    return tuple((key, _kind("ts" if event["ph"] != b'"M"' else key, value)) for key, value in values)
