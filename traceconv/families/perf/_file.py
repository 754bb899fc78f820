"""The container of perf.data: header, event attributes, features, and the stream of records.

A file begins with a header of 104 bytes: the magic PERFILE2 (a byte-swapped one means the other endianness), the
sizes of header and attribute, three sections (offset and length: attributes, data, event types), and a bitmap of
features whose sections are listed right behind the data. A recording that went through a pipe has 16 bytes only: all
else comes as records. A record is a header of 8 bytes (u32 type, u16 misc, u16 size) and its body.

Source: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of Linux 4.7 to 6.18, and
recordings by perf 6.1.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from traceconv.families.perf._tracepoints import Tracepoint, read_tracepoints
from traceconv.families.perf._tracks import latest_ns

Buffer = bytes | mmap
#: The order of bytes by the magic. Before Linux 3.4, it was PERFFILE, with the same layout.
ORDERS = {b"PERFILE2": "<", b"2ELIFREP": ">", b"PERFFILE": "<"}
_HEADER_BYTES, _PIPE_HEADER_BYTES = 104, 16
#: The position of the bitmap of features in the header, and its number of bits.
_BITMAP_AT, _FEATURES = 72, 256
#: The most bytes of text behind a stream.
_MOST_TEXT = 1 << 16


class Kind(enum.IntEnum):
    """The types of records that are read; those from 64 on are written by perf itself."""

    MMAP = 1
    LOST = 2
    COMM = 3
    EXIT = 4
    THROTTLE = 5
    UNTHROTTLE = 6
    FORK = 7
    READ = 8
    SAMPLE = 9
    MMAP2 = 10
    AUX = 11
    ITRACE_START = 12
    LOST_SAMPLES = 13
    SWITCH = 14
    SWITCH_CPU_WIDE = 15
    NAMESPACES = 16
    KSYMBOL = 17
    BPF_EVENT = 18
    CGROUP = 19
    TEXT_POKE = 20
    AUX_OUTPUT_HW_ID = 21
    HEADER_ATTR = 64
    HEADER_EVENT_TYPE = 65
    HEADER_TRACING_DATA = 66
    HEADER_BUILD_ID = 67
    FINISHED_ROUND = 68
    ID_INDEX = 69
    AUXTRACE_INFO = 70
    AUXTRACE = 71
    AUXTRACE_ERROR = 72
    THREAD_MAP = 73
    CPU_MAP = 74
    STAT_CONFIG = 75
    EVENT_UPDATE = 78
    TIME_CONV = 79
    HEADER_FEATURE = 80
    COMPRESSED = 81
    FINISHED_INIT = 82
    COMPRESSED2 = 83


class Feature(enum.IntEnum):
    """The features of the header that are read."""

    TRACING_DATA = 1
    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    VERSION = 5
    ARCH = 6
    NRCPUS = 7
    CPUDESC = 8
    CPUID = 9
    TOTAL_MEM = 10
    CMDLINE = 11
    EVENT_DESC = 12
    PMU_MAPPINGS = 16
    CLOCK_DATA = 29


#: Records with data behind them, and the format of the length of that data.
_WITH_DATA: dict[int, str] = {Kind.HEADER_TRACING_DATA: "I", Kind.AUXTRACE: "Q"}
_TEXTS = {
    Feature.HOSTNAME: "hostname",
    Feature.OSRELEASE: "os_release",
    Feature.VERSION: "perf_version",
    Feature.ARCH: "arch",
    Feature.CPUDESC: "cpu_desc",
    Feature.CPUID: "cpuid",
}

# Bits of sample_type, and the order of the fields before the variable part of a sample.
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU = (1 << bit for bit in range(8))
PERIOD, STREAM_ID, RAW = 1 << 8, 1 << 9, 1 << 10
IDENTIFIER = 1 << 16
_FIELDS = (
    (IDENTIFIER, "Q", ("identifier",)),
    (IP, "Q", ("ip",)),
    (TID, "ii", ("pid", "tid")),
    (TIME, "Q", ("time",)),
    (ADDR, "Q", ("addr",)),
    (ID, "Q", ("id",)),
    (STREAM_ID, "Q", ("stream_id",)),
    (CPU, "iI", ("cpu", "reserved")),
    (PERIOD, "Q", ("period",)),
)
#: The end of every other record, if the event says so (sample_id_all).
_TRAILER = (_FIELDS[2], _FIELDS[3], *_FIELDS[5:8], _FIELDS[0])
_WANTED = ("ip", "pid", "tid", "time", "cpu", "period")
_INHERIT, _FREQUENCY, _SAMPLE_ID_ALL, _USE_CLOCKID = 1, 10, 18, 25
_ENABLED, _RUNNING, _READ_ID, _GROUP, _READ_LOST = (1 << bit for bit in range(5))

#: Names of events by number, as perf prints them.
_SOFTWARE = [
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
]
_HARDWARE = [
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
]
_TYPE_SOFTWARE, _TYPE_TRACEPOINT = 1, 2


_SHORT = "the record is shorter than its event says"


class Damage(Exception):
    """The bytes are invalid from here on.

    Args:
        at: the offset in the file.
        reason: what was found and what was expected.
    """

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


class Stamp(NamedTuple):
    """Process, thread, time and CPU of a record; -1 where it does not state them."""

    pid: int
    tid: int
    time: int
    cpu: int


class Reading(NamedTuple):
    """The count of a member of a group so far."""

    id: int
    value: int


@dataclass(slots=True)
class Event:
    """A recorded event, and the layout of its records.

    Attributes:
        order: "<" or ">", as in `struct`.
        attr: the bytes of its perf_event_attr.
        ids: the ids by which samples refer to it, one for each CPU or thread.
        name: the name that the user gave, if the file states it.
        label: the displayed name, from its name or its number.
        latest: the latest possible time, ns.
    """

    order: str
    attr: bytes
    ids: tuple[int, ...] = ()
    name: str = ""
    label: str = ""
    type: int = 0
    config: int = 0
    period: int = 0
    sample_type: int = 0
    read_format: int = 0
    clockid: int | None = None
    sample_id_all: bool = False
    latest: int = field(init=False)
    prefix: struct.Struct = field(init=False)
    trailer: struct.Struct = field(init=False)
    _pick: itemgetter[Any] = field(init=False)
    _pick_trailer: itemgetter[Any] = field(init=False)

    def __post_init__(self) -> None:
        attr = self.attr.ljust(128, b"\0")
        self.type, _, self.config, period, self.sample_type, self.read_format, _ = struct.unpack_from(
            f"{self.order}IIQQQQQ", attr
        )
        self.period = 1 if self._flag(_FREQUENCY) else max(period, 1)
        self.sample_id_all = self._flag(_SAMPLE_ID_ALL)
        self.clockid = struct.unpack_from(f"{self.order}i", attr, 92)[0] if self._flag(_USE_CLOCKID) else None
        self.latest = latest_ns(self.clockid)
        self.prefix, self._pick = self._layout(_FIELDS, _WANTED)
        self.trailer, self._pick_trailer = self._layout(_TRAILER if self.sample_id_all else (), Stamp._fields)

    def _flag(self, bit: int) -> bool:
        """Return whether a flag of the attributes is set, by the number of its bit.

        Bit 0 is the lowest bit on a little-endian machine, and the highest on a big-endian one.
        """
        flags: int = struct.unpack_from(f"{self.order}Q", self.attr.ljust(48, b"\0"), 40)[0]
        return bool(flags >> (bit if self.order == "<" else 63 - bit) & 1)

    def _layout(
        self, fields: tuple[tuple[int, str, tuple[str, ...]], ...], wanted: tuple[str, ...]
    ) -> tuple[struct.Struct, itemgetter[Any]]:
        present = [entry for entry in fields if entry[0] & self.sample_type]
        names = [name for _, _, names in present for name in names]
        picked = [names.index(name) if name in names else len(names) for name in wanted]
        return struct.Struct(self.order + "".join(code for _, code, _ in present)), itemgetter(*picked)

    @property
    def has_time(self) -> bool:
        """Whether its samples have a time."""
        return bool(self.sample_type & TIME)

    @property
    def has_period(self) -> bool:
        """Whether each sample has a period."""
        return bool(self.sample_type & PERIOD)

    @property
    def inherited(self) -> bool:
        """Whether threads that are started later are recorded, too."""
        return self._flag(_INHERIT)

    @property
    def is_tracepoint(self) -> bool:
        """Whether its samples hold the fields of a tracepoint."""
        return self.type == _TYPE_TRACEPOINT

    def id_at(self) -> int | None:
        """Return the position of the event id in the body of a sample; None without one."""
        if self.sample_type & IDENTIFIER:
            return 0
        if not self.sample_type & ID:
            return None
        return 8 * sum(bool(self.sample_type & bit) for bit in (IP, TID, TIME, ADDR))

    def id_before_end(self) -> int | None:
        """Return the distance of the id from the end of a record that is not a sample."""
        if not self.sample_id_all or not self.sample_type & (IDENTIFIER | ID):
            return None
        if self.sample_type & IDENTIFIER:
            return 8
        return 8 * (1 + sum(bool(self.sample_type & bit) for bit in (STREAM_ID, CPU)))

    def sample(self, buffer: Buffer, at: int, end: int) -> tuple[int, int, int, int, int, int]:
        """Return address, pid, tid, time, CPU and period of the sample with its body at `at`; -1 for a missing one.

        Raises:
            Damage: the record is too short.
        """
        if at + self.prefix.size > end:
            raise Damage(at, _SHORT)
        fields: tuple[int, int, int, int, int, int] = self._pick((*self.prefix.unpack_from(buffer, at), -1))
        return fields

    def stamp(self, buffer: Buffer, at: int, end: int) -> Stamp:
        """Return the stamp of a record that is not a sample, with its body from `at` to `end`.

        Raises:
            Damage: the record is too short.
        """
        start = end - self.trailer.size
        if start < at:
            raise Damage(at, _SHORT)
        return Stamp(*self._pick_trailer((*self.trailer.unpack_from(buffer, start), -1)))

    def rest(self, buffer: Buffer, at: int, end: int) -> tuple[list[Reading], bytes, bytes]:
        """Return the variable part of a sample: values of its group, call chain, raw data of a tracepoint.

        Raises:
            Damage: a length in it goes beyond its end.
        """
        readings: list[Reading] = []
        chain = raw = b""
        at += self.prefix.size
        kind = self.sample_type
        if kind & READ:
            readings, at = self._readings(buffer, at, end)
        if kind & CALLCHAIN:
            start = at + 8
            at = start + 8 * self._length(buffer, at, end, "Q")
            chain = buffer[start:at]
        if kind & RAW and at < end:
            start = at + 4
            at = start + self._length(buffer, at, end, "I")
            raw = buffer[start:at]
        if at > end:
            raise Damage(at, f"a sample goes {at - end} bytes beyond the end of its record")
        return readings, chain, raw

    def _length(self, buffer: Buffer, at: int, end: int, code: str) -> int:
        if at + (8 if code == "Q" else 4) > end:
            raise Damage(at, _SHORT)
        length: int = struct.unpack_from(self.order + code, buffer, at)[0]
        return min(length, end)

    def _readings(self, buffer: Buffer, at: int, end: int) -> tuple[list[Reading], int]:
        form = self.read_format
        times = bool(form & _ENABLED) + bool(form & _RUNNING)
        width = 1 + bool(form & _READ_ID) + bool(form & _READ_LOST)
        words = (end - at) // 8
        if not form & _GROUP:
            return [], at + 8 * (width + times)
        count = struct.unpack_from(f"{self.order}Q", buffer, at)[0] if words else words + 1
        if 1 + times + count * width > words:
            raise Damage(at, f"{count} values of a group, expected at most {words // width}")
        start = at + 8 * (1 + times)
        values = struct.unpack_from(f"{self.order}{count * width}Q", buffer, start)
        rows = [values[i : i + width] for i in range(0, len(values), width)]
        readings = [Reading(row[1], row[0]) for row in rows] if form & _READ_ID else []
        return readings, start + 8 * count * width


class PerfFile(msgspec.Struct):
    """The header of a perf.data.

    Attributes:
        order: "<" or ">", as in `struct`.
        data_at, data_end: the start and the end of the records.
        info: host, version, command line and the like.
        clock_pair: readings of the wall clock and of the clock of the recording at one instant, ns.
        build_ids: the build ids of the files with samples, by path.
        pmus: the names of performance monitoring units, by number.
        problems: sentences about parts that could not be read.
        is_stream: whether perf wrote it to a pipe.
        unfinished: whether perf was killed before it wrote the size of the data.
    """

    order: str
    data_at: int
    data_end: int
    events: list[Event] = msgspec.field(default_factory=list)
    tracepoints: dict[int, Tracepoint] = msgspec.field(default_factory=dict)
    info: dict[str, str | int | list[str]] = msgspec.field(default_factory=dict)
    clock_pair: tuple[int, int] | None = None
    build_ids: dict[str, bytes] = msgspec.field(default_factory=dict)
    pmus: dict[int, str] = msgspec.field(default_factory=dict)
    problems: list[str] = msgspec.field(default_factory=list)
    is_stream: bool = False
    unfinished: bool = False

    def feature(self, number: int, body: bytes) -> None:
        """Read a feature of the header. perf leaves one empty if it could not learn it."""
        if not body:
            return
        try:
            self._feature(number, body)
        except (struct.error, ValueError, OverflowError, Damage) as error:
            self.problems.append(f"the header feature {number} cannot be read ({error})")

    def _feature(self, number: int, body: bytes) -> None:
        if number in _TEXTS:
            self.info[_TEXTS[Feature(number)]] = self._string(body, 0)[0]
        elif number == Feature.TRACING_DATA:
            self.tracing_data(body)
        elif number == Feature.CMDLINE:
            self.info["cmdline"] = self._strings(body)
        elif number == Feature.NRCPUS:
            self.info["cpus_online"] = self._unpack("I", body, 0)
        elif number == Feature.TOTAL_MEM:
            self.info["total_mem_kb"] = self._unpack("Q", body, 0)
        elif number == Feature.EVENT_DESC:
            self._event_names(body)
        elif number == Feature.PMU_MAPPINGS:
            self._pmu_names(body)
        elif number == Feature.BUILD_ID:
            for record in records(body, 0, len(body), self.order):
                self.build_id(body[record.at + 8 : record.end])
        elif number == Feature.CLOCK_DATA:
            _, _, wall, clock = struct.unpack_from(f"{self.order}IIQQ", body)
            self.clock_pair = (wall, clock)

    def tracing_data(self, body: bytes) -> None:
        """Keep the formats of tracepoints."""
        self.tracepoints.update(read_tracepoints(body))

    def build_id(self, body: bytes) -> None:
        """Read the build id of a file: process, 20 bytes of id, their number (0 before perf 5.12), path."""
        size = body[24] if len(body) > 24 else 0
        self.build_ids[text_of(body[28:])] = body[4 : 4 + (size if 0 < size <= 20 else 20)]

    def add_event(self, attr: bytes, ids: tuple[int, ...]) -> None:
        """Add an event that was recorded."""
        self.events.append(Event(self.order, attr, ids))

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
        if event.name:
            return event.name
        table = {0: _HARDWARE, _TYPE_SOFTWARE: _SOFTWARE}.get(event.type, [])
        if event.config < len(table):
            return table[event.config]
        if event.is_tracepoint:
            known = self.tracepoints.get(event.config)
            return known.full_name if known else f"tracepoint {event.config}"
        return f"{self.pmus.get(event.type, f'type {event.type}')} 0x{event.config:x}"

    def _unpack(self, code: str, body: bytes, at: int) -> int:
        return int(struct.unpack_from(self.order + code, body, at)[0])

    def _string(self, body: bytes, at: int) -> tuple[str, int]:
        length = self._unpack("I", body, at)
        if at + 4 + length > len(body):
            raise ValueError(f"a text of {length} bytes in {len(body)}")
        return text_of(body[at + 4 : at + 4 + length]), at + 4 + length

    def _strings(self, body: bytes) -> list[str]:
        texts, at = [], 4
        for _ in range(self._unpack("I", body, 0)):
            text, at = self._string(body, at)
            texts.append(text)
        return texts

    def _event_names(self, body: bytes) -> None:
        count, attr_size = struct.unpack_from(f"{self.order}II", body)
        at = 8
        for position in range(count):
            at += attr_size
            id_count = self._unpack("I", body, at)
            name, at = self._string(body, at + 4)
            ids = struct.unpack_from(f"{self.order}{id_count}Q", body, at)
            at += 8 * id_count
            self.name_event(ids, name, position)

    def _pmu_names(self, body: bytes) -> None:
        at = 4
        for _ in range(self._unpack("I", body, 0)):
            number = self._unpack("I", body, at)
            self.pmus[number], at = self._string(body, at + 4)


class Header(NamedTuple):
    """The header of a record: its start, type, end, and the end of the data behind it."""

    at: int
    kind: int
    misc: int
    end: int
    data_end: int


def text_of(field_: bytes) -> str:
    """Return a text that ends at the first zero byte."""
    return field_.partition(b"\0")[0].decode("utf-8", "replace")


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


def _read_attrs(file: PerfFile, data: Buffer, entry: int, at: int, size: int) -> None:
    """Read the attributes: of `entry` bytes each, the last 16 locate the ids."""
    if entry < 64 + 16 or at + size > len(data):
        raise Damage(at, f"attributes of {entry} bytes at {at} to {at + size}, expected them inside the file")
    for start in range(at, at + size - entry + 1, entry):
        ids_at, ids_size = struct.unpack_from(f"{file.order}QQ", data, start + entry - 16)
        if ids_at + ids_size > len(data):
            raise Damage(start, f"ids of an event at {ids_at}, expected them inside the file")
        ids = struct.unpack_from(f"{file.order}{ids_size // 8}Q", data, ids_at)
        file.add_event(data[start : start + entry - 16], ids)


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


def records(data: Buffer, at: int, end: int, order: str) -> Iterator[Header]:
    """Yield the headers of the records in a part of the data.

    Raises:
        Damage: a record has an impossible size, or ends behind the data.
    """
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
