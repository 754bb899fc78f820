"""The state of one packet sequence of a Perfetto trace: interned data, defaults, running totals.

Source: protos/perfetto/trace/interned_data/interned_data.proto, trace_packet_defaults.proto,
track_event/debug_annotation.proto and profiling/profile_common.proto in github.com/google/perfetto.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from traceconv.families.common.wire_reader import Message, Value, as_bytes, as_double, as_text, fields, signed, unsigned
from traceconv.io.limits import Unpacked
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent, lost
from traceconv.model.trace import StackId

NOT_INTERNED = absent(
    "perfetto.not_interned",
    "an interned text or call stack is not defined in its sequence, or was lost: its number is shown",
)
UNREAD_VALUE = lost(
    "perfetto.unread_annotation", "a debug annotation holds a message that needs a schema, or nests too deep"
)

# InternedData
_CATEGORIES, _NAMES, _KEYS, _LOCATIONS, _FUNCTIONS, _FRAMES, _STACKS = 1, 2, 3, 4, 5, 6, 7
_PATHS, _MAPPINGS, _BODIES, _TEXTS, _CORRELATIONS = 17, 19, 20, 29, 43
# DebugAnnotation
_NAME_IID, _BOOL, _UINT, _INT, _DOUBLE, _TEXT, _POINTER, _NESTED, _JSON, _NAME = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
_ENTRY, _ITEM, _TEXT_IID = 11, 12, 17
_MAX_DEPTH = 100
_MEMO = 1 << 15

_encode = msgspec.json.encode
_is_json = msgspec.json.Decoder(msgspec.Raw).decode

#: PerfEvents.Counter; the names are those of perf.
_PERF_COUNTERS = {
    1: "cpu-clock",
    2: "page-faults",
    3: "task-clock",
    4: "context-switches",
    5: "cpu-migrations",
    6: "minor-faults",
    7: "major-faults",
    8: "alignment-faults",
    9: "emulation-faults",
    10: "cycles",
    11: "instructions",
    12: "cache-references",
    13: "cache-misses",
    14: "branches",
    15: "branch-misses",
    16: "bus-cycles",
    17: "stalled-cycles-frontend",
    18: "stalled-cycles-backend",
    19: "ref-cycles",
    20: "dummy",
}


class Sequence:
    """One packet sequence.

    Attributes:
        number: its id.
        cleared: whether its state was started, so that packets that need it can be read.
        clock_id, clock: the default clock of timestamps, as in the file and as a number of Clocks.
        track: the uuid of the default track, 0 for none.
        extra, extra_double: the default tracks of extra counter values.
        thread: pid and tid of the thread descriptor of old traces.
        time_ns: the last time of old traces, whose events count microseconds from the one before.
        totals: for each counter or CPU the running total.
        generation: how often the state was cleared.
        version: how often the meaning of ids changed.
    """

    def __init__(self, number: int, out: Builder, unpacked: Unpacked) -> None:
        self.number = number
        self._unpacked = unpacked
        self.cleared = False
        self.has_packets = False
        self.generation = self.version = 0
        self.thread: tuple[int, int] | None = None
        self.time_ns = 0
        self.sample_totals: dict[int, int] = {}
        self._out = out
        self.clear()

    def clear(self) -> None:
        """Clear the state (flag 1)."""
        self.generation += 1
        self.version += 1
        self.clock_id = self.clock = self.track = 0
        self.extra: list[int] = []
        self.extra_double: list[int] = []
        self.sample_name = ""
        self.totals: dict[int, float] = {}
        self._tables: dict[int, dict[int, Any]] = {}
        self._names: dict[int, int] = {}
        self._categories: dict[tuple[int, ...], int] = {}
        self._annotations: dict[bytes, bytes] = {}
        self._stacks: dict[int, StackId] = {}

    def set_defaults(self, data: Value) -> None:
        """Read TracePacketDefaults: track events 11 {track 11, extra 31*, 45*}, samples 12 {timebase 1}, clock 58."""
        message = Message(data)
        events = message.message(11)
        self.clock_id, self.track = message.unsigned(58), events.unsigned(11)
        self.extra, self.extra_double = events.uints(31), events.uints(45)
        if 12 in message:
            timebase = message.message(12).message(1)
            known = _PERF_COUNTERS.get(timebase.unsigned(4), "")
            self.sample_name = timebase.text(10) or known or timebase.message(3).text(1)

    # -- interned data ----------------------------------------------------------------------------------------

    def intern(self, data: Value) -> bool:
        """Read InternedData; return whether an id got a new meaning."""
        changed = False
        for number, value in fields(as_bytes(data)):
            entry = Message(value)
            table = self._tables.setdefault(number, {})
            iid, new = entry.unsigned(1), as_bytes(value)
            changed = changed or table.get(iid, new) != new
            table[iid] = new
        if changed:
            self.version += 1
            self._names, self._categories, self._annotations, self._stacks = {}, {}, {}, {}
        return changed

    def _entry(self, table: int, iid: int) -> Message | None:
        entry = self._tables.get(table, {}).get(iid)
        if entry is None:
            self._out.problem(NOT_INTERNED, f"sequence {self.number}: id {iid}")
            return None
        self._unpacked.repeat(len(entry))
        return Message(entry)

    def text(self, table: int, iid: int) -> str:
        """Return the text of an interned id: field 2 of its entry."""
        entry = self._entry(table, iid)
        return f"(unknown text {iid})" if entry is None else entry.text(2)

    def name(self, iid: int) -> int:
        """Return the string of an interned event name."""
        known = self._names.get(iid)
        if known is None:
            known = self._names[iid] = self._out.tables.string(self.text(_NAMES, iid))
        return known

    def event_name(self, iid: int) -> str:
        """Return the text of an interned event name."""
        return self.text(_NAMES, iid)

    def category(self, iids: tuple[int, ...]) -> int:
        """Return the string of interned categories."""
        known = self._categories.get(iids)
        if known is None:
            text = ",".join(self.categories(iids))
            known = self._categories[iids] = self._out.tables.string(text)
        return known

    def body(self, iid: int) -> str:
        """Return the text of a log message."""
        return self.text(_BODIES, iid)

    def categories(self, iids: Iterable[int]) -> list[str]:
        """Return the texts of interned categories."""
        return [self.text(_CATEGORIES, iid) for iid in iids]

    def correlation(self, iid: int) -> str:
        """Return the text of a correlation id."""
        return self.text(_CORRELATIONS, iid)

    def location(self, iid: int) -> Message | None:
        """Return a SourceLocation."""
        return self._entry(_LOCATIONS, iid)

    # -- debug annotations ------------------------------------------------------------------------------------

    def annotation(self, data: bytes) -> bytes:
        """Return a debug annotation as the member of a JSON object."""
        known = self._annotations.get(data)
        if known is None:
            key, value = self._member(data, 0)
            known = key + b":" + value
            if len(self._annotations) < _MEMO:
                self._annotations[data] = known
        return known

    def _member(self, data: bytes, depth: int) -> tuple[bytes, bytes]:
        """Return the name and the value of an annotation as JSON."""
        key, value = b'""', b""
        entries: list[bytes] = []
        items: list[bytes] = []
        for number, content in fields(data):
            if number == _NAME_IID:
                key = self._interned(_KEYS, unsigned(content))
            elif number == _NAME:
                key = _encode(as_text(content))
            elif number == _TEXT_IID:
                value = self._interned(_TEXTS, unsigned(content))
            elif number in (_ENTRY, _ITEM) and depth < _MAX_DEPTH:
                name, inner = self._member(as_bytes(content), depth + 1)
                (entries if number == _ENTRY else items).append(name + b":" + inner if number == _ENTRY else inner)
            elif number in _PLAIN:
                value = _PLAIN[number](content)
            elif number == _NESTED and depth < _MAX_DEPTH:
                value = self._nested_value(as_bytes(content), depth + 1)
            elif number not in _TYPE_NAMES:
                self._out.problem(UNREAD_VALUE, f"sequence {self.number}: field {number}")
        if entries:
            value = b"{" + b",".join(entries) + b"}"
        elif items:
            value = b"[" + b",".join(items) + b"]"
        return key, value or b"null"

    def known_key(self, iid: int) -> bytes | None:
        """Return the JSON of an interned key of annotations, None for one that the sequence has not defined."""
        return self._interned(_KEYS, iid) if iid in self._tables.get(_KEYS, {}) else None

    def known_text(self, iid: int) -> bytes | None:
        """Return an interned text of annotations, encoded; None if it is not known."""
        return self._interned(_TEXTS, iid) if iid in self._tables.get(_TEXTS, {}) else None

    def _interned(self, table: int, iid: int) -> bytes:
        return _encode(self.text(table, iid))

    def _nested_value(self, data: bytes, depth: int) -> bytes:
        """Read NestedValue of old traces: keys 2*, values 3*, items 4*, int 5, double 6, bool 7, text 8."""
        message = Message(data)
        values = [self._inner(value, depth) for value in message.all(3)]
        keys = [_encode(text) for text in message.texts(2)]
        if keys:
            return b"{" + b",".join([k + b":" + v for k, v in zip(keys, values, strict=False)]) + b"}"
        if 4 in message:
            return b"[" + b",".join([self._inner(value, depth) for value in message.all(4)]) + b"]"
        for number, plain in ((5, _INT), (6, _DOUBLE), (7, _BOOL), (8, _TEXT)):
            if number in message:
                return _PLAIN[plain](message.all(number)[-1])
        return b"null"

    def _inner(self, value: Value, depth: int) -> bytes:
        return self._nested_value(as_bytes(value), depth + 1) if depth < _MAX_DEPTH else b"null"

    # -- call stacks ------------------------------------------------------------------------------------------

    def stack(self, iid: int) -> StackId:
        """Return the innermost frame of an interned call stack: frame ids 2*, outermost first."""
        stack = self._stacks.get(iid)
        if stack is None:
            stack = StackId(-1)
            entry = self._entry(_STACKS, iid)
            for frame in entry.uints(2) if entry is not None else [0]:
                stack = self._frame(frame, stack)
            self._stacks[iid] = stack
        return stack

    def stack_names(self, iid: int) -> list[str]:
        """Return the names of the functions of an interned call stack, outermost first."""
        entry = self._entry(_STACKS, iid)
        return [self._function(frame) for frame in (entry.uints(2) if entry is not None else [])]

    def _function(self, iid: int) -> str:
        """Read Frame: function_name_id 2, rel_pc 4; a function without a name is shown by its address."""
        entry = self._entry(_FRAMES, iid)
        if entry is None:
            return f"(unknown frame {iid})"
        return (self.text(_FUNCTIONS, entry.unsigned(2)) if entry.unsigned(2) else "") or f"{entry.unsigned(4):#x}"

    def _frame(self, iid: int, parent: StackId) -> StackId:
        """Read Frame: mapping_id 3, besides its function."""
        entry = self._entry(_FRAMES, iid)
        module = self._module(entry.unsigned(3)) if entry is not None else ""
        named = entry is not None and entry.unsigned(2) > 0
        return self._out.frame(self._function(iid), module, parent, named=named)

    def _module(self, iid: int) -> str:
        """Return the path of a Mapping: path_string_ids 7*. A path of several parts begins at the root."""
        entry = self._entry(_MAPPINGS, iid) if iid else None
        parts = [self.text(_PATHS, part) for part in entry.uints(7)] if entry is not None else []
        return "/" + "/".join(parts) if len(parts) > 1 else "".join(parts)


def _double(value: Value) -> bytes:
    number = as_double(value)
    return _encode(number) if math.isfinite(number) else _encode(str(number))


def _json(value: Value) -> bytes:
    text = as_bytes(value)
    try:
        _is_json(text)
    except msgspec.DecodeError:
        return _encode(as_text(value))
    return text


_PLAIN: dict[int, Callable[[Value], bytes]] = {
    _BOOL: lambda value: b"true" if unsigned(value) else b"false",
    _UINT: lambda value: b"%d" % unsigned(value),
    _INT: lambda value: b"%d" % signed(value),
    _DOUBLE: _double,
    _TEXT: lambda value: _encode(as_text(value)),
    _POINTER: lambda value: b'"%#x"' % unsigned(value),
    _JSON: _json,
}
#: The fields with the type name of a message.
_TYPE_NAMES = (13, 16)
