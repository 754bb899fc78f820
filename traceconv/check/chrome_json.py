"""Check Chrome Trace Event JSON: shape, balance, nesting, flows, numbers, texts.

The schema (`schemas/chrome_trace.schema.json`) is too slow for each of a million events. Conformance depends only on
the phase, the members and the kinds of their values, so one event of each such shape is validated. Rules on values
(pairs, overlaps, ranges) are checked for every event. Times are read from their decimal text, large ones as doubles.

An event is named by its position in the list of events, from 1. Source: the Trace Event Format document for the phases
and the handling of defects; the JSON importer of Perfetto for its limits (observed in v52, source of v58).
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import msgspec

from traceconv.check.chrome_rows import (
    FLOW_BACKWARD,
    FLOW_NO_END,
    FLOW_NO_START,
    FLOW_REVERSED,
    INTEGER,
    MAX_EXACT_INT,
    Slices,
    Tasks,
    flow_problems,
    is_big,
    is_int64,
    is_task,
    reversed_flows,
)
from traceconv.check.chrome_text import (
    LARGE_MEMBER,
    SCHEMA,
    SURROGATE_ESCAPE,
    UNREADABLE,
    RawEvent,
    Shapes,
    is_list,
    load,
    members_of,
    raw_members,
)
from traceconv.check.findings import CheckReport, Rows, Texts, Zeros, data_loss, make_report, notice, refusal
from traceconv.io.shown import Counted
from traceconv.model.diagnostics import COUNTERS, EVENTS, FLOWS, INSTANTS, SLICES, THREADS, Code, Diagnostics
from traceconv.model.drawable import AtZero
from traceconv.model.numbers import US, double, parse_ns

ASYNC_SLICES = Counted("async slice", "async slices")

NO_EVENTS = notice("check-json.no_events", "there is no event")
EMPTY_LIST = refusal("check-json.empty_list", "Perfetto does not open an empty list of events")
EMPTY_EVENT = refusal(
    "check-json.empty_event", "Perfetto counts an empty object among the events as an error of import"
)
FINAL_BACKSLASH = refusal(
    "check-json.final_backslash",
    "a text of an event ends with an escaped backslash: "
    "Perfetto takes the quote after it as escaped, too, and refuses the file; write \\u005c",
)
MANY_SHAPES = notice(
    "check-json.many_shapes",
    "the events have too many combinations of members and kinds of values: some were not compared with the format",
)
MANY_THREADS = notice(
    "check-json.many_threads",
    "there are more than 131,072 threads: slices of further ones were not checked for overlap",
)
SURROGATE = refusal(
    "check-json.surrogate_escape",
    "a surrogate pair written as escapes in a name stops Perfetto's import; write the character itself",
)
BAD_TIME = data_loss("check-json.bad_time", "a time that is not a finite number or out of range")
NEGATIVE_DUR = data_loss("check-json.negative_duration", "a slice ends before it begins")
LARGE_TIMES = notice(
    "check-json.large_times",
    "times above 9.007e12 µs do not keep their nanoseconds in viewers, which read them as doubles",
)
NEGATIVE_TIME = data_loss("check-json.negative_time", "Perfetto drops events before time 0; add the same to all times")
ID_RANGE = data_loss(
    "check-json.id_range",
    "Perfetto drops async and flow events with an id that is not a 64-bit integer; write it as text",
)
BIG_ID = notice("check-json.big_id", "ids from 2^53 on lose digits in viewers; write them as text")
TASK_RANGE = notice("check-json.task_range", "Perfetto turns a pid or tid that is not an unsigned 32-bit number into 0")
TASKS_MERGED = data_loss(
    "check-json.tasks_merged",
    "Perfetto merges processes or threads: pids and tids beyond 32 bits or below 0 become 0, and tid 0 the pid",
)
NO_PID = data_loss("check-json.no_pid", "an event has no pid: viewers drop it, or put it into process 0")
NO_TID = data_loss("check-json.no_tid", "Perfetto drops an instant of a thread without a tid")
OVERLAP = data_loss(
    "check-json.overlap", "slices of one thread overlap without nesting; viewers drop or displace the later one"
)
END_ALONE = data_loss("check-json.end_without_begin", "an end has no open slice to close")
BEGIN_ALONE = notice("check-json.begin_without_end", "a slice is never closed and is shown as open")
END_NAME = data_loss("check-json.end_name", "an end has another name than the innermost open slice of its thread")
EMPTY_PAIR = data_loss(
    "check-json.empty_pair",
    "a start and its end have one time and follow a complete event: "
    "Perfetto takes the end first, so the slice never ends",
)
CUT_BY_COMPLETE = data_loss(
    "check-json.cut_by_complete",
    "a start has the time of a complete event that ends before it: Perfetto takes that as the outer one, and ends both",
)
ASYNC_END_ALONE = data_loss("check-json.async_end_without_begin", "an async end has no open slice of its id and name")
ASYNC_CROSSES = data_loss(
    "check-json.async_end_crosses",
    "an async end closes a slice that holds other open slices of its id; Perfetto cuts these",
)
ASYNC_BEGIN_ALONE = notice("check-json.async_begin_without_end", "an async slice is never closed")
FLOW_NO_DIRECTION = refusal(
    "check-json.flow_without_direction",
    "a slice names a flow with bind_id, but neither flow_in nor flow_out: Perfetto counts that as an error",
)
FLOW_ID = data_loss("check-json.flow_id", "Perfetto reads a textual flow id as hexadecimal")
COUNTER_NULL = data_loss("check-json.counter_null", "a counter without a value is not shown")
COUNTER_RANGE = data_loss("check-json.counter_range", "Perfetto reads an integer beyond 64 bits as another value")
COUNTER_IDS = data_loss(
    "check-json.counter_ids",
    "Perfetto does not see ids of counters that are numbers: counters of one name become one; write them as text",
)
OLD_ASYNC = data_loss(
    "check-json.old_async", "Perfetto does not show async slices of phases S, T, p and F; use b, n, e"
)

_BEGIN, _END = True, False

_HEX_ID = re.compile(rb'"(0[xX])?[0-9a-fA-F]+"')
# An escaped backslash, a surrogate pair, or a lone surrogate: only the last one has a group.
_FINAL_BACKSLASH = re.compile(rb'(?<!\\)(?:\\\\)+"')

# These are about the whole trace, so no process is needed.
_PIDLESS = frozenset([b'"M"', b'"R"', b'"P"', b'"c"', b'"V"', b'"v"'])

# Perfetto accepts ids of these as integers or texts.
_NEED_ID = frozenset([b'"b"', b'"n"', b'"e"', b'"s"', b'"t"', b'"f"'])
_OF_NUMBERS = frozenset([b"-", *(b"%d" % digit for digit in range(10))])
_OLD_ASYNC = frozenset([b'"S"', b'"T"', b'"p"', b'"F"'])

_MOST_COUNTERS = 1 << 17
_SHORT, _MOST_SHORT = 64, 1 << 15
_MANY = 1 << 14  # the events of a batch, which are short then


def _of_no_writer(at_zero: AtZero) -> None:
    """Leave what is known about the writer: nothing."""


def check_chrome_json(data: bytes | bytearray, evidence: Callable[[AtZero], None] = _of_no_writer) -> CheckReport:
    """Check the text of a Chrome JSON trace; `evidence` sets what is known about its writer."""
    diagnostics = Diagnostics()
    events = load(data, diagnostics)
    if events is None:
        return make_report("chrome-json", diagnostics, {EVENTS: 0}, is_trace=False)
    checker = _Checker(diagnostics)
    count = 0
    for batch in events.batches():
        checker.events(count + 1, batch)
        count += len(batch)
    if not count:
        diagnostics.add(EMPTY_LIST if is_list(memoryview(data)) else NO_EVENTS)
    return make_report("chrome-json", diagnostics, checker.finish(evidence, events.is_output))


class _Checker:
    """Checks each event once, in file order, and keeps rows for the checks at the end."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._shapes = Shapes()
        self._counts: Counter[str] = Counter()
        self._slices: dict[bytes, Slices] = defaultdict(Slices)
        # By thread: ts in ns, position in the file, begin or end, name
        self._edges: dict[bytes, Rows] = defaultdict(lambda: Rows(4))
        self._async = Rows(5)  # and the id
        self._flows = Rows(4)  # ts, position, phase, id
        # By thread, for flows: ts, position, whether the next slice is enough instead of the enclosing one
        self._hooks: dict[bytes, Rows] = defaultdict(lambda: Rows(3))
        self._bound = Rows(5)  # ts, position, flow_out, flow_in, flow id
        self._texts = Texts()
        # Problems of short events of which nothing else is kept, and the number of their repetitions.
        self._short: dict[bytes, dict[Code, int]] = {}
        self._again: dict[bytes, int] = {}
        self._handlers: dict[bytes, Callable[[int, RawEvent, int], None]] = self._handlers_by_phase()
        self._any_large = False
        self._first_complete, self._earliest_complete = sys.maxsize, sys.maxsize
        self._counter_ids: dict[tuple[bytes, bytes], bytes] = {}
        self._tasks = Tasks()
        self._zeros = Zeros()
        self._below = array("q")  # complete events below 0

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
        """Check a batch of events, the first one at `position`, and keep their rows."""
        self._counts["events"] += len(batch)
        if len(batch) > _MANY and self._again:
            texts = list(map(bytes, batch))
            if self._again.keys() >= set(texts):
                for text, count in Counter(texts).items():
                    self._again[text] += count
                return
        for number, raw in enumerate(batch, position):
            self._element(number, raw)

    def _element(self, position: int, raw: msgspec.Raw) -> None:
        size = memoryview(raw).nbytes
        if size > _SHORT:
            self._event(position, raw, size)
            return
        text = bytes(raw)
        if text in self._again:
            self._again[text] += 1
        elif text in self._short:
            before = {entry.code: entry.count for entry in self._diagnostics}
            self._event(position, raw, size)
            counts = {entry.code: entry.count - before.get(entry.code, 0) for entry in self._diagnostics}
            if all(self._diagnostics.is_full(code) for code, count in counts.items() if count):
                self._again[text] = 0
                self._short[text] = counts
        elif not self._event(position, raw, size) and len(self._short) < _MOST_SHORT:
            self._short[text] = {}

    def _event(self, position: int, raw: msgspec.Raw, size: int) -> bool:
        """Check one event and keep its rows; return whether any were kept besides its problems."""
        try:
            event, is_large = members_of(raw, size)
        except UNREADABLE as error:
            self._diagnostics.add(SCHEMA, f"event {position}: {error}")
            return False
        if not event and not is_large:
            self._diagnostics.add(EMPTY_EVENT, f"event {position}")
            return False
        if is_large:
            self._diagnostics.add(LARGE_MEMBER, f"event {position}")
        if (is_large or b'\\\\"' in bytes(raw)) and _FINAL_BACKSLASH.search(raw):
            self._diagnostics.add(FINAL_BACKSLASH, f"event {position}")
        problem = self._shapes.verdict(event)
        if problem:
            self._diagnostics.add(SCHEMA, f"event {position}: {problem}")
        if not self._shapes.all_seen and not self._diagnostics.count(MANY_SHAPES):
            self._diagnostics.add(MANY_SHAPES, f"event {position}")
        self._check_values(position, event)
        handler = self._handlers.get(event.get("ph", b""))
        ts = self._time(position, event, "ts") if handler is not None else 0
        if "bind_id" in event:
            self._bind(position, event, ts)
        if handler is not None:
            if ts is not None and ts < 0 and event["ph"] != b'"X"':
                self._diagnostics.add(NEGATIVE_TIME, f"event {position}: ts {_shown(event['ts'])}")
            if ts is not None:
                handler(position, event, ts)
        return handler is not None or "bind_id" in event

    def finish(self, evidence: Callable[[AtZero], None], is_output: bool) -> dict[Counted, int]:
        """Make the checks that need all events; return the counts. `is_output`: whether traceconv wrote the trace."""
        for text, times in self._again.items():
            for code, count in self._short[text].items():
                self._diagnostics.add(code, count=times * count)
        self._counts["threads"] = len(self._slices.keys() | self._edges.keys())
        for slices in self._slices.values():
            slices.complete = len(slices.starts)
        for thread, edges in self._edges.items():
            self._pair(edges, self._slices[thread])
        for slices in self._slices.values():
            self._counts["slices"] += len(slices.starts)
            for position in slices.overlapping():
                self._diagnostics.add(OVERLAP, f"event {position}")
        hooked = Rows(2)
        for thread, hooks in self._hooks.items():
            hooked.extend(*self._slices[thread].begun(hooks))
            for code, position in self._slices[thread].without_slice(hooks):
                self._diagnostics.add(code, f"event {position}")
        for of_one_id in self._async.groups():
            self._pair_async(of_one_id)
        self._finish_flows(hooked)
        never_set = set(self._zeros.report(self._diagnostics, "event", evidence, is_output))
        for position in self._below:
            if position not in never_set:
                self._diagnostics.add(NEGATIVE_TIME, f"event {position}")
        wanted = (EVENTS, SLICES, ASYNC_SLICES, INSTANTS, COUNTERS, FLOWS, THREADS)
        return {what: self._counts[what] for what in wanted}

    # Values that are wrong on their own.

    def _check_values(self, position: int, event: RawEvent) -> None:
        for key in ("name", "cat"):
            text = event.get(key)
            if text is not None and b"\\u" in text and SURROGATE_ESCAPE.search(text):
                self._diagnostics.add(SURROGATE, f"event {position}")
        for key in ("pid", "tid"):
            task = event.get(key)
            if task is not None and not is_task(task):
                self._diagnostics.add(TASK_RANGE, f"event {position}: {key} {_shown(task)}")
        if "pid" not in event and event.get("ph") not in _PIDLESS and event.get("s") != b'"g"':
            self._diagnostics.add(NO_PID, f"event {position}")
        for key in ("id", "bind_id"):
            id = event.get(key)
            if id is not None and is_big(id):
                self._diagnostics.add(BIG_ID, f"event {position}: {key} {_shown(id)}")
        id = event.get("id", b"")
        if event.get("ph") in _NEED_ID and id[:1] in _OF_NUMBERS and not is_int64(id):
            self._diagnostics.add(ID_RANGE, f"event {position}: id {_shown(id)}")

    def _time(self, position: int, event: RawEvent, key: str) -> int | None:
        """Return a time in ns; None if it is invalid (and a problem, unless the schema reports it)."""
        text = event.get(key)
        if text is None:
            return None
        try:
            ns = parse_ns(text.strip(b'"'), US)
        except ValueError as error:
            self._diagnostics.add(BAD_TIME, f"event {position}: {key}: {error}")
            return None
        # In µs, a double has steps of at most a nanosecond up to here.
        if abs(ns) <= MAX_EXACT_INT:
            return ns
        if not self._any_large:
            self._any_large = True
            self._diagnostics.add(LARGE_TIMES, f"event {position}")
        us = double(text.strip(b'"').decode())  # that is how Perfetto reads them
        return int(us) * 1000 if us.is_integer() else round(us * 1000)

    def _thread(self, position: int, event: RawEvent) -> bytes | None:
        """Return the identity of the thread of an event in Perfetto; None beyond the limit of threads."""
        thread, is_another = self._tasks.thread(event.get("pid", b""), event.get("tid", b""))
        if thread is None:
            self._diagnostics.add(MANY_THREADS, f"event {position}")
        if is_another:
            self._diagnostics.add(
                TASKS_MERGED, f"event {position}: {_shown(event.get('pid', b''))}/{_shown(event.get('tid', b''))}"
            )
        return thread

    # What the phases mean.

    def _complete(self, position: int, event: RawEvent, ts: int) -> None:
        self._first_complete = min(self._first_complete, position)
        self._earliest_complete = min(self._earliest_complete, ts)
        dur = self._time(position, event, "dur")
        if ts < 0:
            self._below.append(position)
        if dur is None:
            return
        self._zeros.slice(ts, ts + max(dur, 0), position, event.get("cat", b""))
        if dur < 0:
            self._diagnostics.add(NEGATIVE_DUR, f"event {position}: dur {_shown(event['dur'])}")
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
            self._diagnostics.add(OLD_ASYNC, f"event {position}")
        id = event.get("id") or event.get("id2", b"")
        if id.startswith(b"{") and b"local" in id:
            id += event.get("pid", b"")
        key = b"\0".join((event.get("cat", b""), id, event.get("scope", b"")))
        is_begin = event["ph"] in (b'"b"', b'"S"')
        self._async.add(ts, position, is_begin, hash(event.get("name", b"")), hash(key))

    def _instant(self, position: int, event: RawEvent, ts: int) -> None:
        self._counts["instants"] += 1
        self._zeros.point(ts, position)
        if event.get("s", b'"t"') == b'"t"':
            self._thread(position, event)
            if "tid" not in event:
                self._diagnostics.add(NO_TID, f"event {position}")

    def _counter(self, position: int, event: RawEvent, ts: int) -> None:
        self._counts["counters"] += 1
        self._zeros.point(ts, position)
        args = event.get("args", b"")
        values = [bytes(value) for value in raw_members.decode(args).values()] if args[:1] == b"{" else []
        if b"null" in values:
            self._diagnostics.add(COUNTER_NULL, f"event {position}")
        for value in values:
            if INTEGER.fullmatch(value) and not is_int64(value):
                self._diagnostics.add(COUNTER_RANGE, f"event {position}: {_shown(value)}")
        id = event.get("id", b"")
        key = event.get("pid", b""), event.get("name", b"")
        if len(self._counter_ids) >= _MOST_COUNTERS and key not in self._counter_ids:
            return
        if id[:1] in _OF_NUMBERS and self._counter_ids.setdefault(key, id) != id:
            self._diagnostics.add(COUNTER_IDS, f"event {position}: id {_shown(id)}")

    def _flow(self, position: int, event: RawEvent, ts: int) -> None:
        id = event.get("id") or event.get("id2", b"")
        if id.startswith(b'"') and not _HEX_ID.fullmatch(id):
            self._diagnostics.add(FLOW_ID, f"event {position}: id {_shown(id)}")
        key = b"\0".join((event.get("cat", b""), event.get("name", b""), id))
        self._flows.add(ts, position, event["ph"] == b'"s"', hash(key))
        to_next = event["ph"] == b'"f"' and "bp" not in event
        thread = self._thread(position, event)
        if thread is not None:
            self._hooks[thread].add(ts, position, to_next)

    def _bind(self, position: int, event: RawEvent, ts: int | None) -> None:
        """Keep a flow of version 2, which is stated by a slice."""
        if b"true" not in (event.get("flow_in"), event.get("flow_out")):
            self._diagnostics.add(FLOW_NO_DIRECTION, f"event {position}")
        goes, comes = event.get("flow_out") == b"true", event.get("flow_in") == b"true"
        if ts is not None:
            self._bound.add(ts, position, goes, comes, hash(event["bind_id"]))

    # What needs all events.

    def _pair(self, edges: Rows, slices: Slices) -> None:
        """Pair the starts and ends of a thread: an end closes the innermost open slice."""
        starts, positions, names = array("q"), array("q"), array("q")  # of the open ones
        ts = 0
        for ts, position, is_begin, name in edges.in_order():
            if is_begin:
                starts.append(ts)
                positions.append(position)
                names.append(name)
                continue
            if not starts:
                self._diagnostics.add(END_ALONE, f"event {position}")
                continue
            start, begun, expected = starts.pop(), positions.pop(), names.pop()
            slices.add(start, ts, begun)
            self._zeros.slice(start, ts, begun)
            if start == ts and (begun > self._first_complete or ts > self._earliest_complete):
                self._diagnostics.add(EMPTY_PAIR, f"event {begun}")
            if name and name != expected:
                shown = (_shown(self._texts.text(number)) for number in (name, expected))
                self._diagnostics.add(END_NAME, f"event {position}: {' closes '.join(shown)}")
        for start, position in zip(starts, positions, strict=True):
            self._diagnostics.add(BEGIN_ALONE, f"event {position}")
            self._zeros.unended(start, position)
        if slices.complete:
            open_ones = list(zip(starts, positions, strict=True))
            for position in slices.cut_by_complete(open_ones, max(ts, max(slices.starts))):
                self._diagnostics.add(CUT_BY_COMPLETE, f"event {position}")

    def _pair_async(self, edges: Iterable[tuple[int, ...]]) -> None:
        """Pair the starts and ends of an async id: an end closes the innermost open slice of its name."""
        open_names, open_positions, open_times = array("q"), array("q"), array("q")
        names: Counter[int] = Counter()
        other = 0
        for ts, position, is_begin, name, _ in edges:
            if is_begin:
                self._counts["async slices"] += 1
                open_names.append(name)
                open_positions.append(position)
                open_times.append(ts)
                names[name] += 1
                continue
            if not names[name]:
                self._diagnostics.add(ASYNC_END_ALONE, f"event {position}")
                continue
            closed = 0
            while not closed or other != name:
                other = open_names.pop()
                begun, start = open_positions.pop(), open_times.pop()
                names[other] -= 1
                closed += 1
                self._zeros.slice(start, ts, begun)
            if closed > 1:
                self._diagnostics.add(ASYNC_CROSSES, f"event {position}")
        for start, position in zip(open_times, open_positions, strict=True):
            self._diagnostics.add(ASYNC_BEGIN_ALONE, f"event {position}")
            self._zeros.unended(start, position)

    def _finish_flows(self, hooked: Rows) -> None:
        if len(hooked):
            for position in reversed_flows(self._flows, hooked).tolist():
                self._diagnostics.add(FLOW_REVERSED, f"event {position}")
        for points in self._flows.groups():
            positions, starts = array("q"), bytearray()
            for _, position, is_start, _ in points:
                positions.append(position)
                starts.append(is_start)
            for code, position in flow_problems(positions, starts):
                self._diagnostics.add(code, f"event {position}")
            self._counts["flows"] += 0 in starts and 1 in starts
        for ends in self._bound.groups():
            _, position, outs, ins, _ = next(ends)
            drawn = outs & ins
            for _, _, goes, comes, _ in ends:
                outs |= goes
                ins |= comes
                drawn |= outs & comes
            self._counts["flows"] += outs & ins
            if not drawn:
                code = FLOW_BACKWARD if outs & ins else FLOW_NO_START if ins else FLOW_NO_END
                self._diagnostics.add(code, f"event {position}")


def _shown(text: bytes) -> str:
    shown = text.decode("utf-8", "replace")
    return shown if len(shown) <= 60 else shown[:57] + "..."
