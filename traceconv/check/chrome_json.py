"""Checks Chrome Trace Event JSON: shape, balance, nesting, flows, numbers, texts.

The schema (`schemas/chrome_trace.schema.json`) is too slow to be asked about each of a million events. Whether an
event conforms depends only on its phase, its members and the kinds of their values, so one event of each such shape
is validated and the verdict holds for all others of the shape. Rules on values (pairs, overlaps, ranges) are
checked on every event. Times are read from their decimal text, never through a float.

An event is named by its position in the list of events, from 0. The phases and what viewers do with defects are
described in the Trace Event Format document; the limits of Perfetto are those that its JSON importer was seen to have
in v52, and has in the source of v58.
"""

from __future__ import annotations

import codecs
import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from traceconv.check._events import UNREADABLE, Events, byte_of, is_list, list_of
from traceconv.check._report import CheckReport, declare, make_report
from traceconv.check._rows import Rows, Texts
from traceconv.check._shapes import (
    LARGE_BYTES,
    SURROGATE_ESCAPE,
    RawEvent,
    Shapes,
    abbreviated,
    members_of,
    raw_members,
    top_level_problems,
)
from traceconv.model.diagnostics import Code, Diagnostics, Severity
from traceconv.model.times import US, parse_ns

NOT_JSON = declare("check-json.not_json", Severity.ERROR, "the file is not valid JSON; most viewers refuse it")
NOT_FINITE = declare("check-json.not_finite", Severity.ERROR, "NaN and Infinity are not JSON; viewers refuse the file")
BOM = declare("check-json.bom", Severity.ERROR, "the file starts with a byte order mark; viewers refuse it")
NOT_UTF8 = declare("check-json.not_utf8", Severity.NOTICE, "bytes that are not UTF-8 are shown as replacements")
UNCLOSED = declare(
    "check-json.unclosed_array",
    Severity.NOTICE,
    "the list of events is not closed, or a comma ends it; the format allows that",
)
NO_EVENTS = declare("check-json.no_events", Severity.NOTICE, "there is no event")
EMPTY_LIST = declare("check-json.empty_list", Severity.ERROR, "Perfetto does not open an empty list of events")
EMPTY_EVENT = declare(
    "check-json.empty_event", Severity.ERROR, "Perfetto counts an empty object among the events as an error of import"
)
RAW_DELETE = declare(
    "check-json.raw_delete",
    Severity.ERROR,
    "the character DEL (0x7f) in a text outside of the events: Perfetto refuses the file; write \\u007f",
)
FINAL_BACKSLASH = declare(
    "check-json.final_backslash",
    Severity.ERROR,
    "a text of an event ends with an escaped backslash: Perfetto takes the quote behind it for escaped, too, and "
    "refuses the file; write \\u005c",
)
LARGE_MEMBER = declare(
    "check-json.large_member",
    Severity.NOTICE,
    "an event or a member beside the events has more than a megabyte: its large values were not looked into",
)
MANY_SHAPES = declare(
    "check-json.many_shapes",
    Severity.NOTICE,
    "the events have other members or kinds of values again and again: some were not compared with the format",
)
MANY_THREADS = declare(
    "check-json.many_threads",
    Severity.NOTICE,
    "there are more than 131,072 threads: whether slices of further ones overlap was not checked",
)
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
NEGATIVE_TIME = declare(
    "check-json.negative_time", Severity.DATA_LOSS, "Perfetto drops events before time 0; add the same to all times"
)
ID_RANGE = declare(
    "check-json.id_range",
    Severity.DATA_LOSS,
    "Perfetto drops async and flow events with an id that is no 64-bit integer; write it as text",
)
BIG_ID = declare("check-json.big_id", Severity.NOTICE, "ids from 2^53 on lose digits in viewers; write them as text")
TASK_RANGE = declare(
    "check-json.task_range", Severity.NOTICE, "Perfetto turns a pid or tid that is no unsigned 32-bit number into 0"
)
TASKS_MERGED = declare(
    "check-json.tasks_merged",
    Severity.DATA_LOSS,
    "Perfetto takes processes or threads for one: pids and tids beyond 32 bits or below 0 become 0, and tid 0 the pid",
)
NO_PID = declare(
    "check-json.no_pid", Severity.DATA_LOSS, "without a pid viewers lose the event or put it into process 0"
)
NO_TID = declare("check-json.no_tid", Severity.DATA_LOSS, "Perfetto drops an instant of a thread without a tid")
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
EMPTY_PAIR = declare(
    "check-json.empty_pair",
    Severity.DATA_LOSS,
    "a begin and its end have one time: behind a complete event, Perfetto takes ends first, and the slice never ends",
)
ASYNC_END_ALONE = declare(
    "check-json.async_end_without_begin", Severity.DATA_LOSS, "an async end has no open slice of its id and name"
)
ASYNC_CROSSES = declare(
    "check-json.async_end_crosses",
    Severity.DATA_LOSS,
    "an async end closes a slice inside of which others of its id are open; Perfetto cuts these",
)
ASYNC_BEGIN_ALONE = declare("check-json.async_begin_without_end", Severity.NOTICE, "an async slice is never closed")
FLOW_NO_START = declare("check-json.flow_without_start", Severity.NOTICE, "a flow is continued that nothing started")
FLOW_NO_END = declare("check-json.flow_without_end", Severity.NOTICE, "a flow is started that leads nowhere")
FLOW_TWICE = declare(
    "check-json.flow_started_twice", Severity.ERROR, "a flow id is started again; Perfetto counts that as an error"
)
FLOW_NO_DIRECTION = declare(
    "check-json.flow_without_direction",
    Severity.ERROR,
    "a slice names a flow with bind_id, but neither flow_in nor flow_out: Perfetto counts that as an error",
)
FLOW_ID = declare("check-json.flow_id", Severity.DATA_LOSS, "Perfetto reads a textual flow id as hexadecimal")
FLOW_LOOSE = declare(
    "check-json.flow_without_slice", Severity.DATA_LOSS, "a flow has no slice to hang on at its time on its thread"
)
COUNTER_NULL = declare("check-json.counter_null", Severity.DATA_LOSS, "a counter without a value is not shown")
COUNTER_RANGE = declare(
    "check-json.counter_range", Severity.DATA_LOSS, "Perfetto reads an integer beyond 64 bits as another value"
)
COUNTER_IDS = declare(
    "check-json.counter_ids",
    Severity.DATA_LOSS,
    "Perfetto does not see ids of counters that are numbers: counters of one name become one; write them as text",
)
OLD_ASYNC = declare(
    "check-json.old_async",
    Severity.DATA_LOSS,
    "Perfetto does not show async slices of phases S, T, p and F; use b, n, e",
)

_UTF8_STEP = 1 << 20
_MAX_EXACT_INT = 2**53
_MAX_TASK = 2**32 - 1
_INT64 = range(-(2**63), 2**63)
_BEGIN, _END = True, False

_HEX_ID = re.compile(rb'"(0[xX])?[0-9a-fA-F]+"')
# Escaped backslash, whole pair, or a lone half: only the last has a group.
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})", re.DOTALL)
_INTEGER = re.compile(rb"-?\d{1,30}")
_FINAL_BACKSLASH = re.compile(rb'(?<!\\)(?:\\\\)+"')
_DELETE = b"\x7f"
_NOT_FINITE = re.compile(rb"-?(nan|inf)", re.IGNORECASE)

# These are about the whole trace, so no process is needed.
_PIDLESS = frozenset([b'"M"', b'"R"', b'"P"', b'"c"', b'"V"', b'"v"'])

# Perfetto takes ids of these as integers or texts.
_NEED_ID = frozenset([b'"b"', b'"n"', b'"e"', b'"s"', b'"t"', b'"f"'])
_OF_NUMBERS = frozenset([b"-", *(b"%d" % digit for digit in range(10))])
_OLD_ASYNC = frozenset([b'"S"', b'"T"', b'"p"', b'"F"'])

_SOME_ROWS = 1 << 14
_MOST_THREADS, _MOST_COUNTERS = 1 << 17, 1 << 17
_SHORT, _MOST_SHORT = 64, 1 << 15
_MANY = 1 << 14  # events of a batch, which are short then


def check_chrome_json(data: bytes | bytearray) -> CheckReport:
    """Check the text of a Chrome JSON trace."""
    found = Diagnostics()
    events = _load(data, found)
    if events is None:
        return make_report("chrome-json", found, {"events": 0}, is_trace=False)
    checker = _Checker(found)
    position = 0
    for batch in events.batches():
        checker.events(position, batch)
        position += len(batch)
    if not position:
        found.add(EMPTY_LIST if is_list(memoryview(data)) else NO_EVENTS)
    return make_report("chrome-json", found, checker.finish())


def _load(data: bytes | bytearray, found: Diagnostics) -> Events | None:
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    if bom:
        found.add(BOM, "byte 0")
    text = memoryview(_as_utf8(data, found))[bom:]
    try:
        return _events_of(text, found)
    except UNREADABLE as error:
        if b"\\u" not in data or not (healed := _without_lone_surrogates(text, found)):
            _report_not_json(text, error, found)
            return None
    try:
        return _events_of(memoryview(healed), found)
    except UNREADABLE as error:
        _report_not_json(memoryview(healed), error, found)
        return None


def _as_utf8(data: bytes | bytearray, found: Diagnostics) -> bytes | bytearray:
    """The text with what is not UTF-8 replaced, as browsers do it."""
    if data.isascii():
        return data
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _UTF8_STEP):
            decoder.decode(data[start : start + _UTF8_STEP], start + _UTF8_STEP >= len(data))
    except UnicodeDecodeError as error:
        found.add(NOT_UTF8, f"near byte {start + error.start}")
        return data.decode("utf-8", "replace").encode()
    return data


def _without_lone_surrogates(data: memoryview, found: Diagnostics) -> bytes | None:
    """The text with each lone half replaced, or None if there is none."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return match[0]
        found.add(LONE_SURROGATE, f"byte {match.start()}")
        return b"\\ufffd"

    healed = _SURROGATES.sub(replace, data)
    return healed if found.count(LONE_SURROGATE) else None


def _events_of(text: memoryview, found: Diagnostics) -> Events | None:
    """The events, undecoded; None (and a problem) when this is no trace at all."""
    if not is_list(text):
        return _events_of_object(text, found)
    events, closed = list_of(text)
    if not closed:
        found.add(UNCLOSED, f"byte {len(text)}")
    return events


def _events_of_object(text: memoryview, found: Diagnostics) -> Events | None:
    try:
        top = raw_members.decode(text)
    except msgspec.ValidationError:
        top = None
    inner = memoryview(top["traceEvents"]) if top and "traceEvents" in top else None
    if top is None or (inner is not None and bytes(inner[:1]) != b"["):
        found.add(SCHEMA, "the file is neither a list of events nor an object with a list traceEvents")
        return None
    facts = {key: _fact(key, raw, found) for key, raw in top.items() if key != "traceEvents"}
    events = None
    if inner is not None:
        facts["traceEvents"] = []
        events, _ = list_of(inner)
    if outside := _deletes(text) - (_deletes(inner) if inner is not None else 0):
        found.add(RAW_DELETE, "outside of traceEvents", outside)
    for problem in top_level_problems(facts):
        found.add(SCHEMA, f"top level, {problem}")
    return events


def _fact(key: str, raw: msgspec.Raw, found: Diagnostics) -> Any:
    """What stands beside the events, for the schema; of what is large, what kind of value it is."""
    if memoryview(raw).nbytes > LARGE_BYTES:
        found.add(LARGE_MEMBER, f"top level, {key}")
        raw = abbreviated(raw)
    return msgspec.json.decode(raw)


def _deletes(text: memoryview) -> int:
    return sum(bytes(text[at : at + _UTF8_STEP]).count(_DELETE) for at in range(0, len(text), _UTF8_STEP))


def _report_not_json(data: memoryview, error: Exception, found: Diagnostics) -> None:
    place = byte_of(error)
    at = len(data) if place is None else place
    if _NOT_FINITE.match(data, at) or _NOT_FINITE.match(data, at - 1):
        found.add(NOT_FINITE, f"byte {at}")
    else:
        found.add(NOT_JSON, f"byte {at} of {len(data)}: {str(error).split(' (byte')[0]}")


class _Checker:
    """Sees each event once, in file order, and keeps what must be compared at the end."""

    def __init__(self, found: Diagnostics) -> None:
        self._found = found
        self._shapes = Shapes()
        self._counts: Counter[str] = Counter()
        self._slices: dict[bytes, _Slices] = defaultdict(_Slices)
        # By thread: ts in ns, position in the file, begin or end, name
        self._edges: dict[bytes, Rows] = defaultdict(lambda: Rows(4))
        self._async = Rows(5)  # and the id
        self._flows = Rows(4)  # ts, position, phase, id
        # By thread, as flows hang on slices: ts, position, whether the next slice will do instead of the enclosing one
        self._hooks: dict[bytes, Rows] = defaultdict(lambda: Rows(3))
        self._bound = Rows(4)  # position, whether the flow goes out, whether it comes in, its id
        self._texts = Texts()
        # What was found in short events of which nothing else is noted, and how often they came after that.
        self._short: dict[bytes, dict[Code, int]] = {}
        self._again: dict[bytes, int] = {}
        self._handlers: dict[bytes, Callable[[int, RawEvent, int], None]] = self._handlers_by_phase()
        self._any_large = False
        self._first_complete, self._earliest_complete = sys.maxsize, sys.maxsize
        self._counter_ids: dict[tuple[bytes, bytes], bytes] = {}
        self._tasks = _Tasks()

    def _handlers_by_phase(self) -> dict[bytes, Callable[[int, RawEvent, int], None]]:
        by_letters = {
            "X": self._complete,
            "BE": self._edge,
            "iIR": self._instant,
            "C": self._counter,
            "beSF": self._async_edge,
            "stf": self._flow,
        }
        return {b'"%c"' % ord(ph): method for letters, method in by_letters.items() for ph in letters}

    def events(self, position: int, batch: list[msgspec.Raw]) -> None:
        """Check some events, the first of which is at a position, on their own and note them."""
        self._counts["events"] += len(batch)
        if len(batch) > _MANY and self._again:
            texts = list(map(bytes, batch))
            if self._again.keys() >= set(texts):
                for text, count in Counter(texts).items():
                    self._again[text] += count
                return
        for number, raw in enumerate(batch, position):
            self._one(number, raw)

    def _one(self, position: int, raw: msgspec.Raw) -> None:
        size = memoryview(raw).nbytes
        if size > _SHORT:
            self._event(position, raw, size)
            return
        text = bytes(raw)
        if text in self._again:
            self._again[text] += 1
        elif text in self._short:
            before = {entry.code: entry.count for entry in self._found}
            self._event(position, raw, size)
            found = {entry.code: entry.count - before.get(entry.code, 0) for entry in self._found}
            if all(self._found.is_full(code) for code, count in found.items() if count):
                self._again[text] = 0
                self._short[text] = found
        elif not self._event(position, raw, size) and len(self._short) < _MOST_SHORT:
            self._short[text] = {}

    def _event(self, position: int, raw: msgspec.Raw, size: int) -> bool:
        """Check one event on its own and note it; whether more than its problems is noted."""
        try:
            event, is_large = members_of(raw, size)
        except UNREADABLE as error:
            self._found.add(SCHEMA, f"event {position}: {error}")
            return False
        if not event and not is_large:
            self._found.add(EMPTY_EVENT, f"event {position}")
            return False
        if is_large:
            self._found.add(LARGE_MEMBER, f"event {position}")
        if (is_large or b'\\\\"' in bytes(raw)) and _FINAL_BACKSLASH.search(raw):
            self._found.add(FINAL_BACKSLASH, f"event {position}")
        problem = self._shapes.verdict(event)
        if problem:
            self._found.add(SCHEMA, f"event {position}: {problem}")
        if not self._shapes.all_seen and not self._found.count(MANY_SHAPES):
            self._found.add(MANY_SHAPES, f"event {position}")
        self._check_values(position, event)
        handler = self._handlers.get(event.get("ph", b""))
        if handler is not None:
            ts = self._time(position, event, "ts")
            if ts is not None and ts < 0:
                self._found.add(NEGATIVE_TIME, f"event {position}: ts {_shown(event['ts'])}")
            if ts is not None:
                handler(position, event, ts)
        return handler is not None or "bind_id" in event

    def finish(self) -> dict[str, int]:
        """Check what needs all events, and count."""
        for text, times in self._again.items():
            for code, count in self._short[text].items():
                self._found.add(code, count=times * count)
        self._counts["threads"] = len(self._slices.keys() | self._edges.keys())
        for thread, edges in self._edges.items():
            self._pair(edges, self._slices[thread])
        for slices in self._slices.values():
            self._counts["slices"] += len(slices.starts)
            for position in slices.overlapping():
                self._found.add(OVERLAP, f"event {position}")
        for thread, hooks in self._hooks.items():
            for position in self._slices[thread].without_slice(hooks):
                self._found.add(FLOW_LOOSE, f"event {position}")
        for of_one_id in self._async.groups():
            self._pair_async(of_one_id)
        self._finish_flows()
        wanted = ("events", "slices", "async slices", "instants", "counters", "flows", "threads")
        return {what: self._counts[what] for what in wanted}

    # Values that are wrong on their own.

    def _check_values(self, position: int, event: RawEvent) -> None:
        for key in ("name", "cat"):
            text = event.get(key)
            if text is not None and b"\\u" in text and SURROGATE_ESCAPE.search(text):
                self._found.add(SURROGATE, f"event {position}")
        for key in ("pid", "tid"):
            task = event.get(key)
            if task is not None and not _is_task(task):
                self._found.add(TASK_RANGE, f"event {position}: {key} {_shown(task)}")
        if "pid" not in event and event.get("ph") not in _PIDLESS and event.get("s") != b'"g"':
            self._found.add(NO_PID, f"event {position}")
        for key in ("id", "bind_id"):
            id = event.get(key)
            if id is not None and _is_big(id):
                self._found.add(BIG_ID, f"event {position}: {key} {_shown(id)}")
        id = event.get("id", b"")
        if event.get("ph") in _NEED_ID and id[:1] in _OF_NUMBERS and not _is_int64(id):
            self._found.add(ID_RANGE, f"event {position}: id {_shown(id)}")
        if "bind_id" in event:
            self._bind(position, event)

    def _time(self, position: int, event: RawEvent, key: str) -> int | None:
        """A time in ns; None (and a problem, unless the schema has said so) when there is none."""
        text = event.get(key)
        if text is None:
            return None
        try:
            ns = parse_ns(text.strip(b'"'), US)
        except ValueError as error:
            self._found.add(BAD_TIME, f"event {position}: {key}: {error}")
            return None
        # In µs, a double has steps of at most a nanosecond up to here.
        if abs(ns) > _MAX_EXACT_INT and not self._any_large:
            self._any_large = True
            self._found.add(LARGE_TIMES, f"event {position}")
        return ns

    def _thread(self, position: int, event: RawEvent) -> bytes | None:
        """The thread that Perfetto takes that of the event for; None if there are too many of them."""
        thread, is_another = self._tasks.thread(event.get("pid", b""), event.get("tid", b""))
        if thread is None:
            self._found.add(MANY_THREADS, f"event {position}")
        if is_another:
            self._found.add(
                TASKS_MERGED, f"event {position}: {_shown(event.get('pid', b''))}/{_shown(event.get('tid', b''))}"
            )
        return thread

    # What the phases mean.

    def _complete(self, position: int, event: RawEvent, ts: int) -> None:
        self._first_complete = min(self._first_complete, position)
        self._earliest_complete = min(self._earliest_complete, ts)
        dur = self._time(position, event, "dur")
        if dur is None:
            return
        if dur < 0:
            self._found.add(NEGATIVE_DUR, f"event {position}: dur {_shown(event['dur'])}")
            return
        thread = self._thread(position, event)
        if thread is not None:
            self._slices[thread].add(ts, ts + dur, position)

    def _edge(self, position: int, event: RawEvent, ts: int) -> None:
        is_begin = event["ph"] == b'"B"'
        name = self._texts.number(event.get("name", b""))
        thread = self._thread(position, event)
        if thread is not None:
            self._edges[thread].add(ts, position, is_begin, name)

    def _async_edge(self, position: int, event: RawEvent, ts: int) -> None:
        if event["ph"] in _OLD_ASYNC:
            self._found.add(OLD_ASYNC, f"event {position}")
        id = event.get("id") or event.get("id2", b"")
        if id.startswith(b"{") and b"local" in id:
            id += event.get("pid", b"")
        key = b"\0".join((event.get("cat", b""), id, event.get("scope", b"")))
        is_begin = event["ph"] in (b'"b"', b'"S"')
        self._async.add(ts, position, is_begin, hash(event.get("name", b"")), hash(key))

    def _instant(self, position: int, event: RawEvent, ts: int) -> None:
        self._counts["instants"] += 1
        if event.get("s", b'"t"') == b'"t"':
            self._thread(position, event)
            if "tid" not in event:
                self._found.add(NO_TID, f"event {position}")

    def _counter(self, position: int, event: RawEvent, ts: int) -> None:
        self._counts["counters"] += 1
        args = event.get("args", b"")
        values = [bytes(value) for value in raw_members.decode(args).values()] if args[:1] == b"{" else []
        if b"null" in values:
            self._found.add(COUNTER_NULL, f"event {position}")
        for value in values:
            if _INTEGER.fullmatch(value) and not _is_int64(value):
                self._found.add(COUNTER_RANGE, f"event {position}: {_shown(value)}")
        id = event.get("id", b"")
        key = event.get("pid", b""), event.get("name", b"")
        if len(self._counter_ids) >= _MOST_COUNTERS and key not in self._counter_ids:
            return
        if id[:1] in _OF_NUMBERS and self._counter_ids.setdefault(key, id) != id:
            self._found.add(COUNTER_IDS, f"event {position}: id {_shown(id)}")

    def _flow(self, position: int, event: RawEvent, ts: int) -> None:
        id = event.get("id") or event.get("id2", b"")
        if id.startswith(b'"') and not _HEX_ID.fullmatch(id):
            self._found.add(FLOW_ID, f"event {position}: id {_shown(id)}")
        key = b"\0".join((event.get("cat", b""), event.get("name", b""), id))
        self._flows.add(ts, position, event["ph"] == b'"s"', hash(key))
        to_next = event["ph"] == b'"f"' and "bp" not in event
        thread = self._thread(position, event)
        if thread is not None:
            self._hooks[thread].add(ts, position, to_next)

    def _bind(self, position: int, event: RawEvent) -> None:
        """Flows of the second version: slices that name the flow they are part of."""
        if b"true" not in (event.get("flow_in"), event.get("flow_out")):
            self._found.add(FLOW_NO_DIRECTION, f"event {position}")
        goes, comes = event.get("flow_out") == b"true", event.get("flow_in") == b"true"
        self._bound.add(position, goes, comes, hash(event["bind_id"]))

    # What needs all events.

    def _pair(self, edges: Rows, slices: _Slices) -> None:
        """Begins and ends of a thread: an end closes the innermost open slice."""
        starts, positions, names = array("q"), array("q"), array("q")  # of the open ones
        for ts, position, is_begin, name in edges.in_order():
            if is_begin:
                starts.append(ts)
                positions.append(position)
                names.append(name)
                continue
            if not starts:
                self._found.add(END_ALONE, f"event {position}")
                continue
            start, begun, expected = starts.pop(), positions.pop(), names.pop()
            slices.add(start, ts, begun)
            if start == ts and (begun > self._first_complete or ts > self._earliest_complete):
                self._found.add(EMPTY_PAIR, f"event {begun}")
            if name and name != expected:
                shown = (_shown(self._texts.text(one)) for one in (name, expected))
                self._found.add(END_NAME, f"event {position}: {' closes '.join(shown)}")
        for position in positions:
            self._found.add(BEGIN_ALONE, f"event {position}")

    def _pair_async(self, edges: Iterable[tuple[int, ...]]) -> None:
        """Begins and ends of an async id: an end closes the innermost open slice of its name."""
        open_names, open_positions = array("q"), array("q")
        names: Counter[int] = Counter()
        other = 0
        for _, position, is_begin, name, _ in edges:
            if is_begin:
                self._counts["async slices"] += 1
                open_names.append(name)
                open_positions.append(position)
                names[name] += 1
                continue
            if not names[name]:
                self._found.add(ASYNC_END_ALONE, f"event {position}")
                continue
            closed = 0
            while not closed or other != name:
                other = open_names.pop()
                open_positions.pop()
                names[other] -= 1
                closed += 1
            if closed > 1:
                self._found.add(ASYNC_CROSSES, f"event {position}")
        for position in open_positions:
            self._found.add(ASYNC_BEGIN_ALONE, f"event {position}")

    def _finish_flows(self) -> None:
        for points in self._flows.groups():
            times, positions, starts = array("q"), array("q"), bytearray()
            for ts, position, is_start, _ in points:
                times.append(ts)
                positions.append(position)
                starts.append(is_start)
            for code, position in _flow_problems(times, positions, starts):
                self._found.add(code, f"event {position}")
            self._counts["flows"] += 0 in starts and 1 in starts
        for ends in self._bound.groups():
            position, outs, ins, _ = next(ends)
            for _, goes, comes, _ in ends:
                outs |= goes
                ins |= comes
            self._counts["flows"] += outs & ins
            if not ins:
                self._found.add(FLOW_NO_END, f"event {position}")
            elif not outs:
                self._found.add(FLOW_NO_START, f"event {position}")


class _Slices:
    """The slices of one thread, as columns: a million tuples would take five times as much."""

    def __init__(self) -> None:
        self.starts = array("q")
        self.ends = array("q")
        self.positions = array("q")

    def add(self, start: int, end: int, position: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.positions.append(position)

    def overlapping(self) -> Iterator[int]:
        """Positions of slices that begin inside another one and end after it."""
        starts = np.array(self.starts, np.int64)
        ends = np.array(self.ends, np.int64)
        order = np.lexsort((np.array(self.positions, np.int64), -ends, starts))
        stack = array("q")
        for at in range(0, len(order), _SOME_ROWS):
            some = order[at : at + _SOME_ROWS]
            for start, end, row in zip(starts[some].tolist(), ends[some].tolist(), some.tolist(), strict=True):
                while stack and stack[-1] <= start:
                    stack.pop()
                if stack and end > stack[-1]:
                    yield self.positions[row]
                else:
                    stack.append(end)

    def without_slice(self, hooks: Rows) -> Iterator[int]:
        """Positions of the hooks at whose time no slice is open (or none starts later, where that will do)."""
        starts = np.sort(np.array(self.starts, np.int64))
        ends = np.maximum.accumulate(np.array(self.ends, np.int64)[np.argsort(self.starts, kind="stable")])
        times, positions, to_next = map(hooks.column, range(3))
        count = np.searchsorted(starts, times, "right")
        # Of the slices begun so far, the one that lasts longest is open, or none is.
        is_open = count > 0
        is_open[is_open] = ends[count[is_open] - 1] >= times[is_open]
        yield from positions[~is_open & ~((to_next > 0) & (count < len(starts)))].tolist()


def _flow_problems(times: array[int], positions: array[int], starts: bytearray) -> Iterator[tuple[Code, int]]:
    """The problems of one flow id. A finish at the very time of the start, but before it in the file, is in order."""
    first = starts.find(1)
    if first < 0:
        yield from ((FLOW_NO_START, position) for position in positions)
        return
    if 0 not in starts:
        yield FLOW_NO_END, positions[first]
    before = bisect_left(times, times[first])
    yield from ((FLOW_NO_START, position) for position in positions[:before])
    yield from ((FLOW_TWICE, positions[row]) for row in range(first + 1, len(starts)) if starts[row])


class _Tasks:
    """Which processes and threads Perfetto takes for which."""

    def __init__(self) -> None:
        self._threads: dict[tuple[bytes, bytes], tuple[bytes | None, bool]] = {}
        self._first: dict[bytes, bytes] = {}

    def thread(self, pid: bytes, tid: bytes) -> tuple[bytes | None, bool]:
        """A name of the thread, and whether another process or thread of the file has it, or its process, too.

        There is none for threads that come when there are too many.
        """
        known = self._threads.get((pid, tid))
        if known is None and len(self._threads) >= _MOST_THREADS:
            return None, False
        if known is None:
            process, thread = _number(pid), _number(tid)
            thread = process + b"/" + (process if thread == b"0" else thread)
            merged = self._first.setdefault(process, pid) != pid
            merged |= self._first.setdefault(thread, pid + b"/" + tid) != pid + b"/" + tid
            known = self._threads[pid, tid] = thread, merged
        return known


def _number(task: bytes) -> bytes:
    """A pid or tid as Perfetto has it."""
    if task[:1] == b'"':
        return task
    try:
        number = int(task) if _INTEGER.fullmatch(task) else int(float(task))
    except (ValueError, OverflowError):
        return b"0"
    return b"%d" % number if 0 <= number <= _MAX_TASK else b"0"


def _is_task(text: bytes) -> bool:
    """Whether Perfetto keeps a pid or tid; any text is a name."""
    if text.isdigit() and len(text) < 10:
        return True
    digits = text.removeprefix(b"-")
    return not digits.isdigit() or 0 <= int(text) <= _MAX_TASK


def _is_int64(text: bytes) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) in _INT64


def _is_big(id: bytes) -> bool:
    digits = id.removeprefix(b"-")
    return len(digits) >= 16 and digits.isdigit() and int(digits) >= _MAX_EXACT_INT


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= 60 else shown[:57] + "..."
