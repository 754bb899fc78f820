"""What packets of a Perfetto trace hold: track events, the state of their sequence that they rely on, packed packets.

Source: protos/perfetto/trace/*.proto in github.com/google/perfetto (trace_packet, interned_data, trace_packet_defaults,
track_event/*, profiling/profile_common); the numbers below are those of the files.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from traceconv.families.common.wire_reader import (
    BLOB,
    FIXED64,
    PACKET_TAG,
    VARINT,
    BadWire,
    Message,
    Value,
    as_bytes,
    as_double,
    as_text,
    fields,
    fields_until_cut,
    frame_at,
    signed,
    unpacked,
    unsigned,
)
from traceconv.families.importer import Match
from traceconv.io.limits import Unpacked
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent, lost
from traceconv.model.dump import name_of_unknown
from traceconv.model.trace import StackId

NOT_INTERNED = absent(
    "perfetto.not_interned",
    "an interned text or call stack is not defined in its sequence, or was lost: its number is shown",
)
UNREAD_VALUE = lost(
    "perfetto.unread_annotation", "a debug annotation holds a message that needs a schema, or nests too deep"
)

# InternedData
CATEGORIES, NAMES, _KEYS, _LOCATIONS, _FUNCTIONS, _FRAMES, _STACKS = 1, 2, 3, 4, 5, 6, 7
_PATHS, _MAPPINGS, BODIES, _TEXTS, _CORRELATIONS = 17, 19, 20, 29, 43
# DebugAnnotation
_KEY_IID, _BOOL, _UINT, _INT, _DOUBLE, _TEXT, _POINTER, _NESTED, _JSON, _KEY = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
_ENTRY, _ITEM, _TEXT_IID = 11, 12, 17
_TYPE_NAMES = (13, 16)  # of messages
# TrackEvent
_STEP_US, _CATEGORY_IID, _ANNOTATION, _LEGACY, _TYPE, _NAME_IID, _TRACK, _EXTRA, _TIME_US = (
    1,
    3,
    4,
    6,
    9,
    10,
    11,
    12,
    16,
)
_LOG, _CATEGORY, _NAME, _VALUE, _EXTRA_TRACKS, _LOCATION, _LOCATION_IID, _OLD_FLOW = 21, 22, 23, 30, 31, 33, 34, 36
_OLD_LAST_FLOW, _DOUBLE_VALUE, _DOUBLE_TRACKS, _DOUBLE_EXTRA, _FLOW, _LAST_FLOW = 42, 44, 45, 46, 47, 48
_CORRELATION, _CORRELATION_TEXT, _CORRELATION_IID, _STACK, _STACK_IID, _WEIGHT = 52, 53, 54, 55, 56, 57
_CONTEXT = (_LOCATION, _LOCATION_IID, _CORRELATION, _CORRELATION_TEXT, _CORRELATION_IID, _STACK, _STACK_IID, _WEIGHT)
_THREAD_TIME = (2, 8, 17, 20)  # times of the thread's own clock, in events of old traces
_FLOWS = {_FLOW: False, _LAST_FLOW: True, _OLD_FLOW: False, _OLD_LAST_FLOW: True}

_MAX_DEPTH = 100
_MEMO = 1 << 15
#: The largest size of a packet, and the most that is unpacked of a compressed one, bytes.
MAX_UNPACKED = 1 << 28
_CHUNK = 1 << 16

_encode = msgspec.json.encode
_is_json = msgspec.json.Decoder(msgspec.Raw).decode

#: PerfEvents.Counter from 1 on; the names are those of perf.
_PERF_COUNTERS = (
    *("", "cpu-clock", "page-faults", "task-clock", "context-switches", "cpu-migrations", "minor-faults"),
    *("major-faults", "alignment-faults", "emulation-faults", "cycles", "instructions", "cache-references"),
    *("cache-misses", "branches", "branch-misses", "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend"),
    *("ref-cycles", "dummy"),
)

#: The names of the kinds of packets by their field, for messages.
PACKET_KINDS = {
    1: "ftrace_events",
    2: "process_tree",
    4: "inode_file_map",
    5: "chrome_events",
    7: "sys_stats",
    9: "process_stats",
    33: "trace_config",
    34: "ftrace_stats",
    35: "trace_stats",
    36: "synchronization_marker",
    37: "profile_packet",
    38: "battery",
    39: "android_log",
    40: "power_rails",
    46: "trigger",
    47: "packages_list",
    48: "chrome_benchmark_metadata",
    49: "perfetto_metatrace",
    51: "chrome_metadata",
    52: "gpu_counter_event",
    53: "gpu_render_stage_event",
    54: "streaming_profile_packet",
    57: "graphics_frame_event",
    61: "module_symbols",
    62: "vulkan_memory_event",
    63: "gpu_log",
    64: "deobfuscation_mapping",
    65: "vulkan_api_event",
    67: "cpu_info",
    68: "smaps_packet",
    69: "service_event",
    70: "initial_display_state",
    71: "gpu_mem_total_event",
    72: "extension_descriptor",
    73: "memory_tracker_snapshot",
    74: "streaming_allocation",
    75: "streaming_free",
    77: "android_energy_estimation_breakdown",
    78: "ui_state",
    82: "translation_table",
    84: "statsd_atom",
    86: "android_system_property",
    90: "track_event_range_of_interest",
    91: "entity_state_residency",
    95: "etw_events",
    99: "v8_js_code",
    107: "remote_clock_sync",
    109: "chrome_trigger",
    113: "clone_snapshot_trigger",
    117: "generic_kernel_task_state_event",
    118: "generic_kernel_cpu_freq_event",
    120: "generic_kernel_task_rename_event",
    122: "generic_kernel_process_tree",
    124: "trace_provenance",
    128: "gpu_info",
    129: "generic_gpu_frequency_event",
    133: "zstd_compressed_packets",
    134: "concurrent_session_event",
    135: "stack_sample",
    138: "recovered_trace_info",
}
#: The kinds that describe the recording, and hold no recorded data.
ABOUT = frozenset((33, 34, 35, 36, 46, 69, 72, 78, 82, 90, 109, 113, 124, 134, 138))


#: Wire types of the fields of a packet that are not messages, texts or bytes.
_NUMBERS = {3: VARINT, 8: VARINT, 10: VARINT, 13: VARINT, 41: VARINT, 42: VARINT, 58: VARINT, 79: VARINT, 87: VARINT}
_NUMBERS |= {98: VARINT, 88: VARINT}
#: Fields that distinguish packets from other messages with the same start: these, and kinds from 16 on.
_TELLING = frozenset((*_NUMBERS, 11, 50, 60, *(kind for kind in PACKET_KINDS if kind >= 16)))
_LARGEST_FIELD = 1000


def looks_like_packets(data: bytes) -> Match:
    """Return YES for a series of packets with the fields of packets, which the end of the data may cut."""
    if data[:1] != bytes([PACKET_TAG]):
        return Match.no("does not begin with byte 0a, a packet")
    at = packets = 0
    telling = False
    while at < len(data):
        frame = frame_at(data, at)
        if frame is None:
            break
        if frame[1] < 0:
            return Match.no("no series of packets")
        try:
            for number, kind in fields_until_cut(data[frame[0] : frame[1]], frame[1] > len(data)):
                if kind != _NUMBERS.get(number, BLOB) and not (
                    number > max(PACKET_KINDS) and kind in (VARINT, FIXED64)
                ):
                    return Match.no(f"field {number} of a packet has another type")
                if not 0 < number < _LARGEST_FIELD:
                    return Match.no(f"packets have no field {number}")
                telling = telling or number in _TELLING
            telling = telling or _is_snapshot(data[frame[0] : frame[1]])
        except BadWire:
            return Match.no("a packet is not a protobuf message")
        packets += 1
        at = frame[1]
    return (
        Match.yes(f"{packets} packets of a Perfetto trace") if telling else Match.no("no field that only packets have")
    )


def _is_snapshot(packet: bytes) -> bool:
    """Return whether a packet is a clock snapshot and nothing else: clocks 1* {clock_id 1, timestamp 2}."""
    try:
        read = fields(packet)
        if [number for number, _ in read] != [6]:
            return False
        clocks = [as_bytes(value) for number, value in fields(as_bytes(read[0][1])) if number == 1]
        return bool(clocks) and all(
            {1, 2} <= {n for n, value in fields(clock) if isinstance(value, int)} for clock in clocks
        )
    except BadWire:
        return False


def system_of(message: Message) -> dict[str, Any]:
    """Read SystemInfo: utsname 1 {sysname 1, version 2, release 3, machine 4}, num_cpus 8, machine_name 17."""
    kernel = message.message(1)
    info = {
        "system": " ".join(filter(None, (kernel.text(1), kernel.text(3), kernel.text(4)))),
        "machine_name": message.text(17),
        "num_cpus": message.unsigned(8),
        "tracing_service_version": message.text(4),
    }
    return {key: value for key, value in info.items() if value}


class Inflated:
    """A readable stream of unpacked zlib data, in chunks; `wrong` is why it ended early, "" if it did not."""

    def __init__(self, data: bytes, unpacked: Unpacked) -> None:
        self._data, self._at, self._left = data, 0, MAX_UNPACKED
        self._unpacked, self._inflate = unpacked, zlib.decompressobj()
        self.wrong = ""

    def read(self, size: int) -> bytes:
        """Return `size` bytes; fewer only at the end."""
        chunks = []
        while size and (chunk := self._chunk(min(size, self._left + 1))):
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _chunk(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        inflate = self._inflate
        while not self.wrong and not inflate.eof:
            fed = inflate.unconsumed_tail
            if not fed:
                fed = self._data[self._at : self._at + _CHUNK]
                self._at += len(fed)
            try:
                chunk = inflate.decompress(fed, size)
            except zlib.error as error:
                self.wrong = str(error)
                break
            if len(chunk) > self._left:
                self.wrong = f"more than {MAX_UNPACKED >> 20} MiB"
                break
            self._left -= len(chunk)
            if chunk:
                self._unpacked.add(len(chunk))
                return chunk
            if not fed:
                self.wrong = "the compressed data is cut"
        return b""


class PacketSequence:
    """One packet sequence.

    Attributes:
        cleared: whether its state was started, so that packets that need it can be read.
        clock_id, clock: the default clock of timestamps, as in the file and as a number of Clocks.
        track: the uuid of the default track, 0 for none.
        extra, extra_double: the default tracks of extra counter values.
        thread: pid and tid of the thread descriptor of old traces.
        time_ns: the last time of old traces, whose events count microseconds from the one before.
        sample_totals: for each CPU the running total of its samples.
        generation, version: how often the state was cleared, and how often the meaning of ids changed.
    """

    def __init__(self, number: int, out: Builder, unpacked: Unpacked) -> None:
        self.number = number
        self._out, self._unpacked = out, unpacked
        self.cleared = self.has_packets = False
        self.generation = self.version = self.time_ns = 0
        self.thread: tuple[int, int] | None = None
        self.sample_totals: dict[int, int] = {}
        self.clear()

    def clear(self) -> None:
        """Clear the state (flag 1)."""
        self.generation += 1
        self.version += 1
        self.clock_id = self.clock = self.track = 0
        self.extra: list[int] = []
        self.extra_double: list[int] = []
        self.sample_name = ""
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
            number = timebase.unsigned(4)
            known = _PERF_COUNTERS[number] if number < len(_PERF_COUNTERS) else ""
            self.sample_name = timebase.text(10) or known or timebase.message(3).text(1)

    # -- interned data ----------------------------------------------------------------------------------------

    def intern(self, data: Value) -> None:
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
        known = self._names.get(iid)
        if known is None:
            known = self._names[iid] = self._out.tables.string(self.text(NAMES, iid))
        return known

    def category(self, iids: tuple[int, ...], texts: Sequence[str] = ()) -> int:
        """Return the string of interned categories, and of others behind them."""
        known = self._categories.get(iids)
        if known is None or texts:
            names = ",".join([*(self.text(CATEGORIES, iid) for iid in iids), *texts])
            known = self._out.tables.string(names)
            if not texts:
                self._categories[iids] = known
        return known

    def location(self, iid: int) -> Message | None:
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
            if number == _KEY_IID:
                key = self._interned(_KEYS, unsigned(content))
            elif number == _KEY:
                key = _encode(as_text(content))
            elif number == _TEXT_IID:
                value = self._interned(_TEXTS, unsigned(content))
            elif number in (_ENTRY, _ITEM) and depth < _MAX_DEPTH:
                name, inner = self._member(as_bytes(content), depth + 1)
                (entries if number == _ENTRY else items).append(name + b":" + inner if number == _ENTRY else inner)
            elif number in _VALUES:
                value = _VALUES[number](content)
            elif number == _NESTED and depth < _MAX_DEPTH:
                value = self._nested_value(as_bytes(content), depth + 1)
            elif number not in _TYPE_NAMES:
                self._out.problem(UNREAD_VALUE, f"sequence {self.number}: field {number}")
        if entries:
            value = b"{" + b",".join(entries) + b"}"
        elif items:
            value = b"[" + b",".join(items) + b"]"
        return key, value or b"null"

    def known(self, is_key: bool, iid: int) -> bytes | None:
        """Return an interned key or text of annotations as JSON; None for one that the sequence has not defined."""
        table = _KEYS if is_key else _TEXTS
        return self._interned(table, iid) if iid in self._tables.get(table, {}) else None

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
                return _VALUES[plain](message.all(number)[-1])
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
        """Read Frame: mapping_id 3, besides its function, which has the name of its file if it is not known."""
        entry = self._entry(_FRAMES, iid)
        module = self._module(entry.unsigned(3)) if entry is not None else ""
        name = self._function(iid)
        named = entry is not None and entry.unsigned(2) > 0 and name != name_of_unknown(module)
        return self._out.frame(name, module, parent, named=named)

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


_VALUES: dict[int, Callable[[Value], bytes]] = {
    _BOOL: lambda value: b"true" if unsigned(value) else b"false",
    _UINT: lambda value: b"%d" % unsigned(value),
    _INT: lambda value: b"%d" % signed(value),
    _DOUBLE: _double,
    _TEXT: lambda value: _encode(as_text(value)),
    _POINTER: lambda value: b'"%#x"' % unsigned(value),
    _JSON: _json,
}


class Event:
    """The fields of one TrackEvent; those that it does not have are empty.

    Attributes:
        type: 1 begin, 2 end, 3 instant, 4 counter, 5 state.
        track: the uuid of its track, None for the default of the sequence.
        flows: ids, with whether the flow ends here.
        unknown: the numbers of fields that need a schema.
    """

    type = 0
    track: int | None = None
    name = ""
    name_iid = 0
    value: float | None = None
    legacy: bytes | None = None
    log: Message | None = None
    step_us: int | None = None
    time_us: int | None = None

    def __init__(self, data: bytes) -> None:
        self.category_iids: list[int] = []
        self.categories: list[str] = []
        self.flows: list[tuple[int, bool]] = []
        self.extra: list[int] = []
        self.extra_tracks: list[int] = []
        self.double_extra: list[float] = []
        self.double_tracks: list[int] = []
        self.unknown: list[int] = []
        self._annotations: list[bytes] = []
        self._context: dict[int, Value] = {}
        for number, value in fields(data):
            if number == _ANNOTATION:
                self._annotations.append(as_bytes(value))
            elif number == _TYPE:
                self.type = unsigned(value)
            elif number == _TRACK:
                self.track = unsigned(value)
            elif number == _NAME_IID:
                self.name_iid = unsigned(value)
            elif number == _CATEGORY_IID:
                self.category_iids += _ids(value)
            elif number == _VALUE:
                self.value = signed(value)
            elif number == _DOUBLE_VALUE:
                self.value = as_double(value)
            elif number in _FLOWS:
                self.flows += [(id, _FLOWS[number]) for id in _ids(value)]
            else:
                self._rare(number, value)

    def _rare(self, number: int, value: Value) -> None:
        if number == _NAME:
            self.name = as_text(value)
        elif number == _CATEGORY:
            self.categories.append(as_text(value))
        elif number == _EXTRA:
            self.extra += [signed(number) for number in _ids(value)]
        elif number == _EXTRA_TRACKS:
            self.extra_tracks += _ids(value)
        elif number == _DOUBLE_EXTRA:
            self.double_extra += _doubles(value)
        elif number == _DOUBLE_TRACKS:
            self.double_tracks += _ids(value)
        elif number == _LEGACY:
            self.legacy = as_bytes(value)
        elif number == _LOG:
            self.log = Message(value)
        elif number == _STEP_US:
            self.step_us = signed(value)
        elif number == _TIME_US:
            self.time_us = signed(value)
        elif number in _CONTEXT:
            self._context[number] = value
        elif number not in _THREAD_TIME:
            self.unknown.append(number)

    def args(self, sequence: PacketSequence) -> bytes:
        """Return the args as a JSON object, b"" without any."""
        annotation = sequence.annotation
        args = b"{" + b",".join([annotation(data) for data in self._annotations]) + b"}" if self._annotations else b""
        return join_args(args, self._context_args(sequence)) if self._context else args

    def location(self, sequence: PacketSequence) -> Message | None:
        if _LOCATION in self._context:
            return Message(self._context[_LOCATION])
        iid = self._context.get(_LOCATION_IID)
        return sequence.location(unsigned(iid)) if iid is not None else None

    def _context_args(self, sequence: PacketSequence) -> dict[str, Any]:
        """Return source location, correlation id and call stack as args."""
        context = self._context
        args: dict[str, Any] = {}
        location = self.location(sequence) if self.log is None else None
        if location is not None:
            args["source_location"] = place_of(location)
        if _CORRELATION in context:
            args["correlation_id"] = unsigned(context[_CORRELATION])
        elif _CORRELATION_TEXT in context:
            args["correlation_id"] = as_text(context[_CORRELATION_TEXT])
        elif _CORRELATION_IID in context:
            args["correlation_id"] = sequence.text(_CORRELATIONS, unsigned(context[_CORRELATION_IID]))
        if _STACK in context:  # InlineCallstack: frames 1* {function_name 1}
            args["callstack"] = [Message(frame).text(1) for frame in Message(context[_STACK]).all(1)]
        elif _STACK_IID in context:
            args["callstack"] = sequence.stack_names(unsigned(context[_STACK_IID]))
        if _WEIGHT in context:
            args["callstack_weight"] = as_double(context[_WEIGHT])
        return args


def place_of(location: Message) -> str:
    """Read SourceLocation: file_name 2, function_name 3, line_number 4; return "file.cpp:77", or the known part."""
    file = location.text(2)
    return (f"{file}:{location.unsigned(4)}" if 4 in location else file) or location.text(3)


def _ids(value: Value) -> list[int]:
    """Return a repeated integer field, packed or not."""
    return [value] if isinstance(value, int) else unpacked(value)


def _doubles(value: Value) -> list[float]:
    """Return a repeated double field, packed or not."""
    if isinstance(value, int):
        return [as_double(value)]
    words = [int.from_bytes(value[at : at + 8], "little") for at in range(0, len(value) - 7, 8)]
    return [as_double(word) for word in words]
