"""The container of perf.data: header, events, features, formats of tracepoints, records, and compressed records.

A file begins with a header of 104 bytes: the magic PERFILE2 (a byte-swapped one means the other endianness), the
sizes of header and attribute, three sections (offset and length: attributes, data, event types), and a bitmap of
features whose sections are listed right behind the data. A recording that went through a pipe has 16 bytes only: all
else comes as records. A record is a header of 8 bytes (u32 type, u16 misc, u16 size) and its body. The bodies of
compressed records are one zstd stream, so that a record may begin in one and end in the next.

The feature of tracing data begins with 17 08 44 "tracing", the version as text, the endianness and the size of a long,
the size of a page; then come descriptions of the ring buffer, of ftrace's own events, and of the events of each
subsystem, each with its length in front. The description of an event is the text of tracing/events/*/*/format. A field
of type `__data_loc` holds the position (low half) and the length (high half) of its value in the raw data; `__rel_loc`
counts from the end of the field itself.

Source: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/trace-event-read.c and
include/uapi/linux/perf_event.h of Linux 4.7 to 6.18, and recordings by perf 6.1.
"""

from __future__ import annotations

import enum
import importlib
import re
import struct
from collections.abc import Iterator, Sequence
from mmap import mmap
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from traceconv.errors import InputError
from traceconv.io.limits import Unpacked
from traceconv.model.numbers import hex_of, whole

Buffer = bytes | mmap
#: The order of bytes by the magic. Before Linux 3.4, it was PERFFILE, with the same layout.
ORDERS = {b"PERFILE2": "<", b"2ELIFREP": ">", b"PERFFILE": "<"}
_HEADER_BYTES, _PIPE_HEADER_BYTES = 104, 16
#: The position of the bitmap of features in the header, and its number of bits.
_BITMAP_AT, _FEATURES = 72, 256
#: The most bytes of text behind a stream.
_MOST_TEXT = 1 << 16
#: The clocks since boot, by clockid_t of Linux; the latest times of these (31 years) and of others (2096), ns.
SINCE_BOOT = (1, 4, 7)
_LATEST_SINCE_BOOT, _LATEST = 10**18, 4 * 10**18
_UNPACKED_AT_ONCE = 256  # bytes, since a few may unpack to megabytes


class Kind(enum.IntEnum):
    """The types of records with content for the trace; those from 64 on are written by perf itself."""

    MMAP = 1
    LOST = 2
    COMM = 3
    EXIT = 4
    THROTTLE = 5
    UNTHROTTLE = 6
    FORK = 7
    SAMPLE = 9
    MMAP2 = 10
    LOST_SAMPLES = 13
    SWITCH = 14
    SWITCH_CPU_WIDE = 15
    KSYMBOL = 17
    HEADER_ATTR = 64
    HEADER_TRACING_DATA = 66
    HEADER_BUILD_ID = 67
    FINISHED_ROUND = 68
    AUXTRACE = 71
    EVENT_UPDATE = 78
    HEADER_FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


#: AUX, ITRACE_START, AUX_OUTPUT_HW_ID, AUXTRACE, AUXTRACE_ERROR.
HARDWARE_TRACES = frozenset((11, 12, 21, Kind.AUXTRACE, 72))
#: Records without content for the trace: READ, NAMESPACES, BPF_EVENT, CGROUP, TEXT_POKE; HEADER_EVENT_TYPE, ID_INDEX,
#: AUXTRACE_INFO, THREAD_MAP, CPU_MAP, STAT_CONFIG, TIME_CONV, FINISHED_INIT.
MEANINGLESS = frozenset((8, 16, 18, 19, 20, 65, Kind.FINISHED_ROUND, 69, 70, 73, 74, 75, 79, 82))
#: Records with data behind them, and the format of the length of that data.
_WITH_DATA: dict[int, str] = {Kind.HEADER_TRACING_DATA: "I", Kind.AUXTRACE: "Q"}


class Feature(enum.IntEnum):
    """The features of the header that are read, besides texts."""

    TRACING_DATA = 1
    BUILD_ID = 2
    NRCPUS = 7
    TOTAL_MEM = 10
    CMDLINE = 11
    EVENT_DESC = 12
    PMU_MAPPINGS = 16
    CLOCK_DATA = 29


_TEXTS = {3: "hostname", 4: "os_release", 5: "perf_version", 6: "arch", 8: "cpu_desc", 9: "cpuid"}

# Bits of sample_type, and the order of the fields before the variable part of a sample.
_IP, _TID, _TIME, _ADDR, _READ, _CALLCHAIN, _ID, _CPU = (1 << bit for bit in range(8))
_PERIOD, _STREAM_ID, _RAW, _IDENTIFIER = 1 << 8, 1 << 9, 1 << 10, 1 << 16
_FIELDS = (
    (_IDENTIFIER, "Q", ("identifier",)),
    (_IP, "Q", ("ip",)),
    (_TID, "ii", ("pid", "tid")),
    (_TIME, "Q", ("time",)),
    (_ADDR, "Q", ("addr",)),
    (_ID, "Q", ("id",)),
    (_STREAM_ID, "Q", ("stream_id",)),
    (_CPU, "iI", ("cpu", "reserved")),
    (_PERIOD, "Q", ("period",)),
)
#: The end of every other record, if the event says so (sample_id_all).
_TRAILER = (_FIELDS[2], _FIELDS[3], *_FIELDS[5:8], _FIELDS[0])
_SAMPLE_FIELDS = ("ip", "pid", "tid", "time", "cpu", "period")
_INHERIT, _FREQUENCY, _SAMPLE_ID_ALL, _USE_CLOCKID = 1, 10, 18, 25
_ENABLED, _RUNNING, _READ_ID, _GROUP, _READ_LOST = (1 << bit for bit in range(5))

_TYPE_HARDWARE, _TYPE_SOFTWARE, _TYPE_TRACEPOINT = 0, 1, 2
#: Names of events by type and number, as perf prints them.
_EVENT_NAMES = {
    _TYPE_HARDWARE: [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ],
    _TYPE_SOFTWARE: [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ],
}
_SHORT = "the record is shorter than its event says"

_TRACING_MAGIC = b"\x17\x08\x44tracing"
_NAME = re.compile(r"^name:\s*(\S+)", re.MULTILINE)
_NUMBER = re.compile(r"^ID:\s*([0-9]{1,9})\b", re.MULTILINE)
_FIELD = re.compile(
    r"^[ \t]*+field:(?P<type>[^;\n]++);\s*+offset:(?P<at>\d+);\s*+size:(?P<size>\d+);(?:\s*+signed:(?P<sign>\d);)?",
    re.M,
)
_DECLARED = re.compile(r"(?P<type>.*?)(?<!\w)(?P<name>\w++)(?P<array>\[[^\[\]]*\])?$", re.DOTALL)
# { 0x0001, "S" } of __print_flags
_FLAG = re.compile(r'\{\s*(0x[0-9a-fA-F]+|\d+),\s*"([^"]*)"\s*\}')
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}


class Damage(Exception):
    """The bytes are invalid from the offset `at` of the file on."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


def text_of(field: bytes) -> str:
    """Return a text that ends at the first zero byte."""
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def latest_ns(clockid: int | None) -> int:
    """Return the latest possible time of a clock (None: perf's default), ns; a later one comes from a damaged file."""
    return _LATEST_SINCE_BOOT if clockid in SINCE_BOOT else _LATEST


# -- events ------------------------------------------------------------------------------------------------------------


class Stamp(NamedTuple):
    """Process, thread, time (ns) and CPU of a record; -1 where it does not state them."""

    pid: int
    tid: int
    time: int
    cpu: int


class Event:
    """A recorded event, and the layout of its records; `ids` are those of samples, one for each CPU or thread."""

    def __init__(self, order: str, attr: bytes, ids: tuple[int, ...] = ()) -> None:
        attr = attr.ljust(128, b"\0")
        self.type, _, self.config, period, kind, self._read_format, flags = struct.unpack_from(f"{order}IIQQQQQ", attr)

        def has(
            bit: int,
        ) -> bool:  # bit 0 is the lowest on a little-endian machine, and the highest on a big-endian one
            return bool(flags >> (bit if order == "<" else 63 - bit) & 1)

        self.ids = ids
        self.name = self.label = ""  # that the user gave, if stated; that is displayed
        self.period = 1 if has(_FREQUENCY) else max(period, 1)
        self.clockid: int | None = struct.unpack_from(f"{order}i", attr, 92)[0] if has(_USE_CLOCKID) else None
        self.latest = latest_ns(self.clockid)
        self.inherited = has(_INHERIT)  # whether threads that are started later are recorded, too
        self.has_time, self.has_period = bool(kind & _TIME), bool(kind & _PERIOD)
        self.is_tracepoint: bool = self.type == _TYPE_TRACEPOINT
        self._order, self._sample_type, self._has_trailer = order, kind, has(_SAMPLE_ID_ALL)
        self._prefix, self._pick = self._layout(_FIELDS, _SAMPLE_FIELDS)
        self.trailer, self._pick_trailer = self._layout(_TRAILER if self._has_trailer else (), Stamp._fields)

    def _layout(
        self, fields: tuple[tuple[int, str, tuple[str, ...]], ...], wanted: tuple[str, ...]
    ) -> tuple[struct.Struct, itemgetter[Any]]:
        present = [field for field in fields if field[0] & self._sample_type]
        names = [name for _, _, names in present for name in names]
        picked = [names.index(name) if name in names else len(names) for name in wanted]
        return struct.Struct(self._order + "".join(code for _, code, _ in present)), itemgetter(*picked)

    def _count(self, *bits: int) -> int:
        return sum(bool(self._sample_type & bit) for bit in bits)

    def id_at(self) -> int | None:
        """Return the position of the event id in the body of a sample; None without one."""
        if self._sample_type & _IDENTIFIER:
            return 0
        return 8 * self._count(_IP, _TID, _TIME, _ADDR) if self._sample_type & _ID else None

    def id_before_end(self) -> int | None:
        """Return the distance of the id from the end of a record that is not a sample."""
        if not self._has_trailer or not self._sample_type & (_IDENTIFIER | _ID):
            return None
        return 8 if self._sample_type & _IDENTIFIER else 8 * (1 + self._count(_STREAM_ID, _CPU))

    # These raise Damage if the body, from `at` to `end`, is too short.

    def sample(self, buffer: Buffer, at: int, end: int) -> tuple[int, int, int, int, int, int]:
        """Return address, pid, tid, time, CPU and period of the sample with its body at `at`; -1 for a missing one."""
        if at + self._prefix.size > end:
            raise Damage(at, _SHORT)
        fields: tuple[int, int, int, int, int, int] = self._pick((*self._prefix.unpack_from(buffer, at), -1))
        return fields

    def stamp(self, buffer: Buffer, at: int, end: int) -> Stamp:
        """Return the stamp of a record that is not a sample."""
        start = end - self.trailer.size
        if start < at:
            raise Damage(at, _SHORT)
        return Stamp(*self._pick_trailer((*self.trailer.unpack_from(buffer, start), -1)))

    def rest(self, buffer: Buffer, at: int, end: int) -> tuple[list[tuple[int, int]], bytes, bytes]:
        """Return the variable part of a sample: ids and values of its group, call chain, raw data of a tracepoint."""
        readings: list[tuple[int, int]] = []
        chain = raw = b""
        at += self._prefix.size
        kind = self._sample_type
        if kind & _READ:
            readings, at = self._readings(buffer, at, end)
        if kind & _CALLCHAIN:
            start = at + 8
            at = start + 8 * self._length(buffer, at, end, "Q")
            chain = buffer[start:at]
        if kind & _RAW and at < end:
            start = at + 4
            at = start + self._length(buffer, at, end, "I")
            raw = buffer[start:at]
        if at > end:
            raise Damage(at, f"a sample goes {at - end} bytes beyond the end of its record")
        return readings, chain, raw

    def _length(self, buffer: Buffer, at: int, end: int, code: str) -> int:
        if at + (8 if code == "Q" else 4) > end:
            raise Damage(at, _SHORT)
        length: int = struct.unpack_from(self._order + code, buffer, at)[0]
        return min(length, end)

    def _readings(self, buffer: Buffer, at: int, end: int) -> tuple[list[tuple[int, int]], int]:
        form = self._read_format
        times = bool(form & _ENABLED) + bool(form & _RUNNING)
        width = 1 + bool(form & _READ_ID) + bool(form & _READ_LOST)
        words = (end - at) // 8
        if not form & _GROUP:
            return [], at + 8 * (width + times)
        count = struct.unpack_from(f"{self._order}Q", buffer, at)[0] if words else words + 1
        if 1 + times + count * width > words:
            raise Damage(at, f"{count} values of a group, expected at most {words // width}")
        start = at + 8 * (1 + times)
        values = struct.unpack_from(f"{self._order}{count * width}Q", buffer, start)
        rows = [values[i : i + width] for i in range(0, len(values), width)]
        readings = [(row[1], row[0]) for row in rows] if form & _READ_ID else []
        return readings, start + 8 * count * width


# -- tracepoints -------------------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A field of a tracepoint: bytes `at` to `at + size` of the raw data."""

    name: str
    type: str
    at: int
    size: int
    signed: bool
    is_array: bool

    def value(self, raw: bytes, order: str) -> int | str | None:
        """Return its value, data of other types in hexadecimal; None if it is absent or beyond the end."""
        end = self.at + self.size
        chunk = raw[self.at : end]
        if len(chunk) < self.size or not chunk:
            return None
        if self.type.startswith(("__data_loc", "__rel_loc")):
            place = int.from_bytes(chunk[:4], "little" if order == "<" else "big")
            start = (place & 0xFFFF) + (end if self.type.startswith("__rel_loc") else 0)
            chunk = raw[start : start + (place >> 16)]
        elif not self.is_array and self.size in _CODES:
            code = _CODES[self.size]
            return int(struct.unpack(order + (code if self.signed else code.upper()), chunk)[0])
        return text_of(chunk) if "char" in self.type else chunk.hex()


class Tracepoint(NamedTuple):
    """An event of the kernel: its fields without those of all events, and the names of the bits of a thread state."""

    full_name: str
    fields: tuple[Field, ...]
    states: tuple[tuple[int, str], ...] = ()

    def values(self, raw: bytes, order: str) -> dict[str, int | str]:
        """Return the fields of a sample, without those that are absent or beyond its end."""
        values = ((field.name, field.value(raw, order)) for field in self.fields)
        return {name: value for name, value in values if value is not None}


def state_letters(state: int, names: Sequence[tuple[int, str]]) -> str:
    """Return the letters of a thread state by the names of its bits: R, S, D, ..., or R+ for a preempted thread."""
    if not names:
        return str(state)
    letters = "|".join(letter for bit, letter in names if state & bit)
    preempted = state & 2 * max(bit for bit, _ in names)
    return (letters or "R") + ("+" if preempted else "")


class _Cursor:
    """Reads a part of the header from front to back. Raises ValueError if it ends too early."""

    def __init__(self, data: bytes, order: str) -> None:
        self._data = data
        self._at = 0
        self.order = order

    def take(self, size: int) -> bytes:
        chunk = self._data[self._at : self._at + size]
        if len(chunk) < size:
            raise ValueError(f"{len(chunk)} bytes are left, expected {size}")
        self._at += size
        return chunk

    def number(self, code: str = "I") -> int:
        return int(struct.unpack(self.order + code, self.take(struct.calcsize(self.order + code)))[0])

    def block(self, code: str = "Q") -> bytes:
        """Return bytes with their length in front."""
        return self.take(self.number(code))

    def text(self) -> str:
        """Return a text that ends with a zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ValueError("it ends inside a text")
        return text_of(self.take(end + 1 - self._at))


def read_tracepoints(data: bytes) -> dict[int, Tracepoint]:
    """Return the tracepoints of a section of tracing data, by number. Raises ValueError if it is invalid."""
    cursor = _Cursor(data, "<")
    if cursor.take(len(_TRACING_MAGIC)) != _TRACING_MAGIC:
        raise ValueError("the tracing data does not begin with its mark")
    cursor.text()  # version
    cursor.order = ">" if cursor.take(1) == b"\x01" else "<"
    cursor.take(5)  # sizes of a long and of a page
    for _ in ("header_page", "header_event"):
        cursor.text()
        cursor.block()
    for _ in range(cursor.number()):  # ftrace's own events
        cursor.block()
    tracepoints = {}
    for _ in range(cursor.number()):
        system = cursor.text()
        for _ in range(cursor.number()):
            number, tracepoint = _tracepoint(system, cursor.block().decode("utf-8", "replace"))
            tracepoints[number] = tracepoint
    return tracepoints


def _tracepoint(system: str, text: str) -> tuple[int, Tracepoint]:
    name, number = _NAME.search(text), _NUMBER.search(text)
    if name is None or number is None:
        raise ValueError("a tracepoint without name or number")
    _, _, printed = text.partition("print fmt:")
    flags = [(_bits(bits), letter) for bits, letter in _FLAG.findall(printed)] if "prev_state" in printed else []
    fields = [field for match in _FIELD.finditer(text) if (field := _field(match)) is not None]
    states = tuple(flag for flag in flags if flag[0])
    return whole(number[1]), Tracepoint(f"{system}:{name[1]}", tuple(fields), states)


def _bits(text: str) -> int:
    bits = hex_of(text) if text[:2] == "0x" else whole(text)
    if bits is None:
        raise ValueError("flags of more than 64 bits")
    return bits


def _field(match: re.Match[str]) -> Field | None:
    declared = _DECLARED.match(match["type"].strip())
    if declared is None or declared["name"].startswith("common_"):
        return None
    type_name = declared["type"].strip()
    is_array = declared["array"] is not None or type_name.endswith("]")
    return Field(declared["name"], type_name, whole(match["at"]), whole(match["size"]), match["sign"] == "1", is_array)


# -- the header --------------------------------------------------------------------------------------------------------


class PerfFile(msgspec.Struct):
    """The header of a perf.data; `order` is "<" or ">", as in `struct`."""

    order: str
    data_at: int  # the start and the end of the records
    data_end: int
    events: list[Event] = msgspec.field(default_factory=list)
    tracepoints: dict[int, Tracepoint] = msgspec.field(default_factory=dict)
    info: dict[str, str | int | list[str]] = msgspec.field(default_factory=dict)
    clock_pair: tuple[int, int] | None = None  # readings of the wall clock and of the clock of the recording, ns
    build_ids: dict[str, bytes] = msgspec.field(default_factory=dict)  # by path
    pmus: dict[int, str] = msgspec.field(default_factory=dict)  # performance monitoring units, by number
    problems: list[str] = msgspec.field(default_factory=list)  # sentences about parts that could not be read
    is_stream: bool = False  # whether perf wrote it to a pipe
    unfinished: bool = False  # whether perf was killed before it wrote the size of the data

    def feature(self, number: int, body: bytes) -> None:
        """Read a feature of the header. perf leaves one empty if it could not learn it."""
        if not body:
            return
        try:
            self._feature(number, body, _Cursor(body, self.order))
        except (struct.error, ValueError, OverflowError, Damage) as error:
            self.problems.append(f"the header feature {number} cannot be read ({error})")

    def _feature(self, number: int, body: bytes, cursor: _Cursor) -> None:
        if number in _TEXTS:
            self.info[_TEXTS[number]] = text_of(cursor.block("I"))
        elif number == Feature.TRACING_DATA:
            self.tracepoints.update(read_tracepoints(body))
        elif number == Feature.CMDLINE:
            self.info["cmdline"] = [text_of(cursor.block("I")) for _ in range(cursor.number())]
        elif number == Feature.NRCPUS:
            self.info["cpus_online"] = cursor.number()
        elif number == Feature.TOTAL_MEM:
            self.info["total_mem_kb"] = cursor.number("Q")
        elif number == Feature.EVENT_DESC:
            self._event_names(cursor)
        elif number == Feature.PMU_MAPPINGS:
            for _ in range(cursor.number()):
                unit = cursor.number()
                self.pmus[unit] = text_of(cursor.block("I"))
        elif number == Feature.BUILD_ID:
            for record in records(body, 0, len(body), self.order):
                self.build_id(body[record.at + 8 : record.end])
        elif number == Feature.CLOCK_DATA:
            cursor.take(8)
            self.clock_pair = (cursor.number("Q"), cursor.number("Q"))

    def _event_names(self, cursor: _Cursor) -> None:
        count, attr_size = cursor.number(), cursor.number()
        for position in range(count):
            cursor.take(attr_size)
            id_count, name = cursor.number(), text_of(cursor.block("I"))
            ids = struct.unpack(f"{self.order}{id_count}Q", cursor.take(8 * id_count))
            self.name_event(ids, name, position)

    def build_id(self, body: bytes) -> None:
        """Read the build id of a file: process, 20 bytes of id, their number (0 before perf 5.12), path."""
        size = body[24] if len(body) > 24 else 0
        self.build_ids[text_of(body[28:])] = body[4 : 4 + (size if 0 < size <= 20 else 20)]

    def name_event(self, ids: tuple[int, ...], name: str, position: int = -1) -> None:
        """Name an event, found by its ids, or by its position if it has none."""
        for event in self.events:
            if set(ids) & set(event.ids):
                event.name = name
                return
        if not ids and 0 <= position < len(self.events):
            self.events[position].name = name

    def event_name(self, event: Event) -> str:
        """Return the name that the user gave, else the one of its type and number."""
        names = _EVENT_NAMES.get(event.type, [])
        if event.name or event.config < len(names):
            return event.name or names[event.config]
        if event.is_tracepoint:
            known = self.tracepoints.get(event.config)
            return known.full_name if known else f"tracepoint {event.config}"
        return f"{self.pmus.get(event.type, f'type {event.type}')} 0x{event.config:x}"


def read_header(data: Buffer) -> PerfFile:
    """Read the header, with attributes and features; in a piped recording these come later, as records.

    Raises:
        Damage: the file is not a perf.data, or is cut inside its header.
    """
    order = ORDERS.get(data[:8])
    if order is None:
        raise Damage(0, f"begins with {data[:8]!r}, expected {next(iter(ORDERS))!r}")
    if len(data) < _PIPE_HEADER_BYTES:
        raise Damage(len(data), "the file ends inside its header")
    (size,) = struct.unpack_from(f"{order}Q", data, 8)
    if size == _PIPE_HEADER_BYTES:
        return PerfFile(order, _PIPE_HEADER_BYTES, len(data), is_stream=True)
    if size < _HEADER_BYTES or len(data) < _HEADER_BYTES:
        raise Damage(8, f"a header of {size} bytes in a file of {len(data)}, expected {_HEADER_BYTES}")
    attr_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from(f"{order}5Q", data, 16)
    file = PerfFile(order, data_at, data_at + data_size)
    if not data_size:
        file.unfinished = True
        file.data_end = len(data)
    elif file.data_end > len(data):
        file.problems.append(
            f"the file ends after {len(data)} bytes, its header promises {file.data_end}: names and clocks stand behind"
        )
        file.data_end = len(data)
    _read_attrs(file, data, attr_size, attrs_at, attrs_size)
    if not file.unfinished and not file.problems:
        _read_features(file, data)
    return file


def _read_attrs(file: PerfFile, data: Buffer, entry: int, at: int, size: int) -> None:
    """Read the attributes: of `entry` bytes each, the last 16 locate the ids."""
    if entry < 64 + 16 or at + size > len(data):
        raise Damage(at, f"attributes of {entry} bytes at {at} to {at + size}, expected them inside the file")
    for start in range(at, at + size - entry + 1, entry):
        ids_at, ids_size = struct.unpack_from(f"{file.order}QQ", data, start + entry - 16)
        if ids_at + ids_size > len(data):
            raise Damage(start, f"ids of an event at {ids_at}, expected them inside the file")
        ids = struct.unpack_from(f"{file.order}{ids_size // 8}Q", data, ids_at)
        file.events.append(Event(file.order, data[start : start + entry - 16], ids))


def _read_features(file: PerfFile, data: Buffer) -> None:
    words = struct.unpack_from(f"{file.order}4Q", data, _BITMAP_AT)
    numbers = [bit for bit in range(_FEATURES) if words[bit // 64] >> bit % 64 & 1]
    bodies = []
    for place, number in enumerate(numbers):
        entry = file.data_end + 16 * place
        if entry + 16 > len(data):
            file.problems.append("the file ends inside the table of its header features")
            break
        at, size = struct.unpack_from(f"{file.order}QQ", data, entry)
        if at + size > len(data):
            file.problems.append(f"the header feature {number} lies beyond the end of the file")
        else:
            bodies.append((number, data[at : at + size]))
    for number, body in bodies:
        file.feature(number, body)


# -- records -----------------------------------------------------------------------------------------------------------


class Header(NamedTuple):
    """The header of a record: its start, type, end, and the end of the data behind it."""

    at: int
    kind: int
    misc: int
    end: int
    data_end: int


def records(data: Buffer, at: int, end: int, order: str) -> Iterator[Header]:
    """Yield the headers of the records in a part of the data. Raises Damage for an impossible size."""
    unpack = struct.Struct(f"{order}IHH").unpack_from
    while at + 8 <= end:
        kind, misc, size = unpack(data, at)
        stop = body_end = at + size
        if size < 8:
            raise Damage(at, f"a record of {size} bytes, expected at least 8")
        if kind in _WITH_DATA and at + 16 <= body_end <= end:
            stop += struct.unpack_from(order + _WITH_DATA[kind], data, at + 8)[0]
        if stop > end:
            raise Damage(at, f"a record of {stop - at} bytes, {end - at} are left")
        yield Header(at, kind, misc, body_end, stop)
        at = stop
    if at < end:
        raise Damage(at, f"{end - at} bytes are left, expected a record")


def lines_behind(data: Buffer, at: int) -> list[tuple[int, str]]:
    """Return the lines of text, with their offsets, that are all from `at` to the end of the data, else nothing.

    They stand behind a stream into which stderr went, too: perf and the shell write there. The header of a record has
    bytes that text has not.
    """
    if len(data) - at > _MOST_TEXT:
        return []
    lines = []
    for line in data[at:].splitlines(keepends=True):
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        if not text.replace("\t", " ").isprintable() or "\ufffd" in text:
            return []
        lines.append((at, text))
        at += len(line)
    return lines


class NoZstd(Exception):
    """No zstd decoder is installed."""


def _new_stream() -> Any:
    """Return a decoder of Python 3.14 or of the module zstandard."""
    for module in ("compression.zstd", "zstandard"):
        try:
            decoder = importlib.import_module(module).ZstdDecompressor()
        except ImportError:
            continue
        return decoder if module == "compression.zstd" else decoder.decompressobj()
    raise NoZstd


class Unpacker:
    """Unpacks the bodies of compressed records, in order; `unpacked` counts what is unpacked."""

    def __init__(self, unpacked: Unpacked) -> None:
        self._unpacked = unpacked
        self._stream: Any = None
        #: What is unpacked of a record that is not complete.
        self.rest = b""
        self._broken = ""

    def add(self, body: bytes, order: str) -> bytes:
        """Unpack the next body; return the records that are complete now.

        Raises:
            NoZstd: no zstd decoder is installed.
            Damage: the stream is broken, here or earlier.
            InputError: the input unpacks to more than allowed.
        """
        if self._broken:
            raise Damage(0, self._broken)
        if self._stream is None:
            self._stream = _new_stream()
        parts = [self.rest]
        try:
            for at in range(0, len(body), _UNPACKED_AT_ONCE):
                parts.append(self._stream.decompress(body[at : at + _UNPACKED_AT_ONCE]))
                self._unpacked.add(len(parts[-1]))
        except InputError:
            raise
        except Exception as error:  # each module has a class of its own
            self._broken = str(error)
            raise Damage(0, self._broken) from None
        plain = b"".join(parts)
        end = _end_of_whole(plain, order)
        self.rest = plain[end:]
        return plain[:end]


def _end_of_whole(plain: bytes, order: str) -> int:
    """Return the end of the last complete record, or of all where a size is impossible."""
    size_of = struct.Struct(f"{order}H").unpack_from
    at = 0
    while at + 8 <= len(plain):
        size = size_of(plain, at + 6)[0]
        if size < 8:
            return len(plain)
        if at + size > len(plain):
            break
        at += size
    return at
