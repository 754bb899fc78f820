"""perf.data, as `perf record` writes it, without the help of perf.

    perf record -k CLOCK_MONOTONIC -F 999 -g -- python run.py

It reads samples with call chains, tracepoints with fields (scheduling becomes states of threads), names of threads, and
counts of lost records. The header states the clock, the host and the command. Both forms (file and pipe), both
endiannesses, and cut recordings are read. Records of the kernel arrive per CPU, and are sorted by time: a record
FINISHED_ROUND promises that all before the round before it is there.

A perf.data holds addresses and no symbols. A frame is named by the mapped file and the offset in it
(`libc.so.6+0x8a0b1`), one of the kernel by its address. `perf script` and `perf data convert --to-json` print symbols,
if they run on the machine of the recording. With the option `symbols`, names are read from ELF files on this machine,
if these are of the same build; C++ names are demangled without parameters, as perf prints them.

`container` describes the bytes of the file, `events` what samples become.
"""

from __future__ import annotations

import contextlib
import posixpath
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common.elf import Symbols
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.perf.container import (
    HARDWARE_TRACES,
    MEANINGLESS,
    ORDERS,
    Buffer,
    Damage,
    Event,
    Feature,
    Header,
    Kind,
    NoZstd,
    PerfFile,
    Stamp,
    Unpacker,
    lines_behind,
    read_header,
    records,
    state_letters,
    text_of,
)
from traceconv.families.perf.header import LINE_UP, NO_CPU_HELP, PERF_CLOCK, PERF_MARKS, is_possible_pair, marks_of_perf
from traceconv.families.perf.header import Header as PrintedHeader
from traceconv.families.perf.samples import NO_STACK, PerfTracks, Place, Task, task_in
from traceconv.io import progress
from traceconv.io.limits import Unpacked
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import RECORDS, absent, lost, repaired, skipped
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import Form
from traceconv.model.trace import StackId
from traceconv.model.track_table import TrackId

RECORDS_WITHOUT_PLACE = Counted(
    "record without anything to draw (tables of ids and CPUs, marks of perf)",
    "records without anything to draw (tables of ids and CPUs, marks of perf)",
)
RECORDS_FROM_BEFORE = Counted(
    "record of processes that ran before the recording (no time)",
    "records of processes that ran before the recording (no time)",
)
UNPACKED_RECORDS = Counted("compressed record unpacked", "compressed records unpacked")
MAPPED_FILES = Counted("mapped file (names of frames)", "mapped files (names of frames)")
KERNEL_SYMBOLS = Counted("symbol that the kernel added", "symbols that the kernel added")
SWITCHES_TWICE = Counted(
    "context switch that sched:sched_switch has, too", "context switches that sched:sched_switch has, too"
)
HEADER_PARTS = Counted("part of the header", "parts of the header")

DAMAGED = lost(
    "perf-data.damaged",
    "the records are invalid from here on (a cut file, or a full disk): the part before was read",
)
BROKEN_RECORD = lost("perf-data.broken_record", "a record is too short, or its time is impossible: left out")
UNKNOWN_RECORD = lost("perf-data.unknown_record", "a record is of an unknown type (a newer perf?): left out")
UNKNOWN_EVENT = lost("perf-data.unknown_event", "a sample names an event that the file does not declare: left out")
NO_TIME = lost("perf-data.no_time", "a sample has no time (perf record without -T): left out")
LOST = absent(
    "perf-data.lost",
    "the kernel could not store events while perf was recording: their number is drawn as an instant; "
    "record with a lower frequency or a larger buffer (perf record -m)",
)
MESSAGE = skipped("perf-data.message", "lines of text behind the stream, of perf or the shell: left out", quiet=True)
PACKED = lost(
    "perf-data.packed",
    "records are compressed (perf record -z), and zstd is not available: left out; install zstandard "
    "(pip install zstandard; Python 3.14 has its own), or print them: perf script -F +period > perf.script.txt",
)
BAD_PACKED = lost(
    "perf-data.bad_packed", "compressed records cannot be unpacked: these and all later ones were left out"
)
HARDWARE_TRACE = lost(
    "perf-data.hardware_trace",
    "the trace of a hardware unit (Intel PT, ARM SPE) is not decoded: left out; perf script --itrace decodes it",
)
BAD_PERIOD = repaired(
    "perf-data.period_out_of_range", "a period is too large for 63 bits: the sample counts as one event"
)
UNREAD_HEADER = lost(
    "perf-data.unread_header", "a part of the header cannot be read: names or the clock may be missing"
)

_NOTHING = (0, (1 << 64) - 1)  # values that mean "no time"
_NEVER = 1 << 65
_MODE_MASK, _MISC_EXEC, _MISC_SWITCH_OUT, _MISC_PREEMPTED, _MISC_BUILD_ID = 7, 1 << 13, 1 << 13, 1 << 14, 1 << 14
_KERNEL_PIDS = (-1, 0)
# The mode of the CPU, in the `misc` of a record.
_KERNEL, _USER, _HYPERVISOR, _GUEST_KERNEL, _GUEST_USER = 1, 2, 3, 4, 5
#: In a call chain, numbers from here on are marks of the mode of the frames that follow.
_CONTEXT_FROM = (1 << 64) - 4095
_CONTEXTS = {
    (1 << 64) - 32: _HYPERVISOR,
    (1 << 64) - 128: _KERNEL,
    (1 << 64) - 512: _USER,
    (1 << 64) - 2048: _GUEST_USER,
    (1 << 64) - 2176: _GUEST_KERNEL,
    (1 << 64) - 2560: _GUEST_USER,
}
_OTHER_MODES = {_HYPERVISOR: "[hypervisor]", _GUEST_KERNEL: "[guest kernel]", _GUEST_USER: "[guest]"}


# -- address spaces ----------------------------------------------------------------------------------------------------


class Mapping(NamedTuple):
    """A part of a file in memory: addresses from `start` to before `end`, `offset` is that of `start` in the file."""

    start: int
    end: int
    offset: int
    name: str


class AddressSpace(msgspec.Struct):
    """The mappings of a process, by address, and the stacks that were resolved with them."""

    mappings: list[Mapping] = msgspec.field(default_factory=list)
    stacks: dict[object, StackId] = msgspec.field(default_factory=dict)

    def map(self, new: Mapping) -> None:
        """Map a file; it replaces the mappings that it covers."""
        at = stop = bisect_left(self.mappings, new.start, key=lambda old: old.end - 1)
        kept = [new]
        while stop < len(self.mappings) and self.mappings[stop].start < new.end:
            old = self.mappings[stop]
            if old.start < new.start:
                kept.append(old._replace(end=new.start))
            if old.end > new.end:
                kept.append(Mapping(new.end, old.end, old.offset + new.end - old.start, old.name))
            stop += 1
        self.mappings[at:stop] = sorted(kept)
        self.stacks = {}

    def find(self, address: int) -> Mapping | None:
        """Return the mapping at an address; None without one."""
        at = bisect_right(self.mappings, address, key=lambda mapping: mapping.start) - 1
        mapping = self.mappings[at] if at >= 0 else None
        return mapping if mapping is not None and address < mapping.end else None


class _Spaces:
    """The address spaces of all processes and of the kernel, and the stacks in them."""

    def __init__(self, order: str, tracks: PerfTracks, symbols: Symbols | None) -> None:
        self._order = order
        self._tracks = tracks
        self._symbols = symbols
        self._processes: dict[int, AddressSpace] = {}
        self._kernel = AddressSpace()

    def stack(self, pid: int, mode: int, ip: int, chain: bytes) -> StackId:
        """Return the stack of a sample: its call chain, given as bytes, or its address (-1: none) if it has none."""
        space = self._processes.get(pid)
        if space is None:
            space = self._processes[pid] = AddressSpace()
        key: object = chain or (ip, mode)
        known = space.stacks.get(key)
        if known is None:
            frames, now = [], mode
            for address in struct.unpack(f"{self._order}{len(chain) // 8}Q", chain):
                if address >= _CONTEXT_FROM:
                    now = _CONTEXTS.get(address, now)
                else:
                    frames.append(self._frame(address, now, space))
            if not frames and ip >= 0:
                frames.append(self._frame(ip, now, space))
            known = space.stacks[key] = self._tracks.stack(frames)
        return known

    def _frame(self, address: int, mode: int, space: AddressSpace) -> Place:
        if mode in _OTHER_MODES:
            return Place(f"0x{address:x}", _OTHER_MODES[mode], named=False)
        in_kernel = mode == _KERNEL
        mapping = (self._kernel if in_kernel else space).find(address)
        if mapping is None or (in_kernel and mapping.name.startswith("[kernel")):
            return Place(f"0x{address:x}", "[kernel.kallsyms]" if in_kernel else "[unknown]", named=False)
        offset = address - mapping.start + mapping.offset
        function = self._symbols.name(mapping.name, offset) if self._symbols is not None and not in_kernel else None
        if function:
            return Place(function, mapping.name)
        return Place(f"{posixpath.basename(mapping.name) or mapping.name}+0x{offset:x}", mapping.name, named=False)

    def map(self, pid: int | None, new: Mapping) -> None:
        """Map a file in a process, or in the kernel (None), which is part of all processes."""
        if pid is not None:
            self._processes.setdefault(pid, AddressSpace()).map(new)
            return
        self._kernel.map(new)
        for space in self._processes.values():
            space.stacks = {}

    def copy(self, parent: int, pid: int) -> None:
        """Copy the mappings of a process to a forked one; does nothing for a new thread."""
        if pid != parent and parent in self._processes:
            self._processes[pid] = AddressSpace(list(self._processes[parent].mappings))

    def forget(self, pid: int) -> None:
        """Remove the mappings of a process that runs another program now."""
        self._processes.pop(pid, None)


# -- records -----------------------------------------------------------------------------------------------------------


class _Sample(NamedTuple):
    """A sample to be sorted by time; -1 for fields that it lacks."""

    at: int
    misc: int
    event: Event
    ip: int
    pid: int
    tid: int
    ts: int
    cpu: int
    period: int
    readings: list[tuple[int, int]]
    chain: bytes
    raw: bytes


class _Other(NamedTuple):
    """Another record to be sorted by time."""

    at: int
    misc: int
    kind: int
    stamp: Stamp
    body: bytes


class RecordReader:
    def __init__(self, out: Builder, file: PerfFile, data: Buffer, symbols: bool, unpacked: Unpacked) -> None:
        self._out = out
        self._merged = out.balance.merged
        self._file = file
        self._data = data
        self._tracks = PerfTracks(out)
        self._comms: dict[int, str] = {0: "swapper"}
        self._threads: dict[int, TrackId] = {}
        self._symbols = Symbols(file.build_ids) if symbols else None
        self._spaces = _Spaces(file.order, self._tracks, self._symbols)
        #: The records to be sorted: time, number, record.
        self._pending: list[tuple[int, int, _Sample | _Other]] = []
        self._number = self._latest = self._flush_to = 0
        self._counted: dict[tuple[int, int], int] = {}  # of members of groups
        self._unpacker = Unpacker(unpacked)
        self._switches_seen = False
        self._u64 = struct.Struct(f"{file.order}Q").unpack_from
        self._learn_events()

    def read(self) -> None:
        self._records(self._data, self._file.data_at, self._file.data_end, None)
        rest = self._unpacker.rest
        self._records(rest, 0, len(rest), self._file.data_end)
        self._flush(_NEVER)
        self._tracks.finish()
        if self._symbols is not None:
            self._out.note(
                f"names of functions were read from {len(self._symbols.used)} files of this machine; "
                f"{len(self._symbols.refused)} are absent or of another build"
            )
        for problem in self._file.problems:
            self._out.problem(UNREAD_HEADER, "header", problem)

    def _records(self, data: Buffer, start: int, end: int, outer: int | None) -> None:
        """Read all records of a part of the data; `outer` is the offset of the compressed record around it."""
        try:
            for header in records(data, start, end, self._file.order):
                self._out.balance.read += 1
                at = header.at if outer is None else outer
                try:
                    if header.kind == Kind.SAMPLE:
                        self._sample(data, header, at)
                    else:
                        self._other(data, header, at)
                except (struct.error, Damage) as error:
                    self._out.skip(BROKEN_RECORD, at, f"type {header.kind}: {error}")
        except Damage as damage:
            lines = lines_behind(data, damage.at) if outer is None and self._file.is_stream else []
            self._out.balance.read += len(lines) or 1
            for at, text in lines:
                self._out.skip(MESSAGE, at, text)
            if not lines:
                self._out.skip(DAMAGED, damage.at if outer is None else outer, damage.reason)

    def _sample(self, data: Buffer, header: Header, at: int) -> None:
        event = self._event_of_sample(data, header)
        if event is None:
            self._out.skip(UNKNOWN_EVENT, at)
            return
        start, end = header.at + 8, header.end
        ip, pid, tid, ts, cpu, period = event.sample(data, start, end)
        if not event.has_time:
            self._out.skip(NO_TIME, at)
            return
        if ts > event.latest and ts not in _NOTHING:
            raise Damage(at, f"a time of {ts} ns")
        readings, chain, raw = event.rest(data, start, end)
        self._put(ts, _Sample(at, header.misc, event, ip, pid, tid, ts, cpu, period, readings, chain, raw))

    def _other(self, data: Buffer, header: Header, at: int) -> None:
        kind = header.kind
        if kind == Kind.FINISHED_ROUND:
            self._merged[RECORDS_WITHOUT_PLACE] += 1
            self._flush(self._flush_to)
            self._flush_to = self._latest
            if isinstance(self._data, mmap):
                self._data.seek(at)  # for the display of progress
        elif kind in (Kind.COMPRESSED, Kind.COMPRESSED2):
            self._unpack(data, header)
        elif kind >= Kind.HEADER_ATTR or not self._file.events:
            self._from_perf(data, header, at)
        else:
            event = self._event_of_record(data, header.end)
            stamp = event.stamp(data, header.at + 8, header.end)
            if stamp.time > event.latest and stamp.time not in _NOTHING:
                raise Damage(at, f"a time of {stamp.time} ns")
            body = data[header.at + 8 : header.end - event.trailer.size]
            self._put(stamp.time, _Other(at, header.misc, kind, stamp, body))

    def _put(self, ts: int, record: _Sample | _Other) -> None:
        """Queue a record by time; those of the state before the recording have no time, and are handled at once."""
        if ts <= 0 or ts in _NOTHING:
            self._handle(record)
            return
        self._latest = max(self._latest, ts)
        self._number += 1
        self._pending.append((ts, self._number, record))

    def _flush(self, limit: int) -> None:
        """Handle the queued records up to a time, in order of time."""
        self._pending.sort()
        stop = bisect_right(self._pending, (limit, self._number + 1))
        ready, self._pending = self._pending[:stop], self._pending[stop:]
        for _, _, record in ready:
            self._handle(record)

    def _handle(self, record: _Sample | _Other) -> None:
        try:
            if isinstance(record, _Sample):
                self._take(record)
            else:
                self._event(record)
        except struct.error as error:
            self._out.skip(BROKEN_RECORD, record.at, str(error))

    def _unpack(self, data: Buffer, header: Header) -> None:
        start, end = header.at + 8, header.end
        try:
            if header.kind == Kind.COMPRESSED2:  # the length of the data, which padding follows
                start, end = start + 8, start + 8 + self._u64(data, start)[0]
            if end > header.end:
                raise Damage(header.at, f"{end - start} bytes of data in a record of {header.end - header.at}")
            plain = self._unpacker.add(data[start:end], self._file.order)
        except NoZstd:
            self._out.skip(PACKED, header.at)
        except Damage as damage:
            self._out.skip(BAD_PACKED, header.at, damage.reason)
        else:
            self._merged[UNPACKED_RECORDS] += 1
            self._records(plain, 0, len(plain), header.at)

    # -- events and their names -------------------------------------------------------------------------------

    def _learn_events(self) -> None:
        self._by_id = {number: event for event in self._file.events for number in event.ids}
        for event in self._file.events:
            event.label = self._file.event_name(event)

    def _event_of_sample(self, data: Buffer, header: Header) -> Event | None:
        events = self._file.events
        if not events:
            return None
        id_at = events[0].id_at() if len(events) > 1 else None
        return events[0] if id_at is None else self._by_id.get(self._u64(data, header.at + 8 + id_at)[0])

    def _event_of_record(self, data: Buffer, end: int) -> Event:
        """Return the event whose buffer a record came from, which defines the layout of its trailer."""
        events = self._file.events
        before_end = events[0].id_before_end() if len(events) > 1 else None
        return events[0] if before_end is None else self._by_id.get(self._u64(data, end - before_end)[0], events[0])

    # -- samples ----------------------------------------------------------------------------------------------

    def _take(self, sample: _Sample) -> None:
        event = sample.event
        stack = self._spaces.stack(sample.pid, sample.misc & _MODE_MASK, sample.ip, sample.chain)
        if event.is_tracepoint:
            self._tracepoint(sample, stack if sample.chain else NO_STACK)
        elif sample.readings:
            self._group(sample, stack)
        else:
            self._draw(sample, event, sample.period if event.has_period else event.period, stack)
        self._out.balance.written += 1

    def _draw(self, sample: _Sample, event: Event, weight: int, stack: StackId) -> None:
        thread = self._threads.get(sample.tid)
        if thread is None:
            thread = self._thread(sample.pid, sample.tid)
        if weight > LIMIT_NS:
            self._out.problem(BAD_PERIOD, sample.at, str(weight))
            weight = 1
        self._tracks.sample(thread, sample.ts, stack, event.label, weight, sample.at, _known(sample.cpu))

    def _group(self, sample: _Sample, stack: StackId) -> None:
        """Add a sample of a group: each member whose count increased is a sample of its event."""
        for number, value in sample.readings:
            event = self._by_id.get(number)
            if event is None:
                self._out.problem(UNKNOWN_EVENT, sample.at, f"id {number}")
                continue
            key = (number, sample.tid if event.inherited else 0)
            count = value - self._counted.get(key, 0)
            self._counted[key] = value
            if count > 0:
                self._draw(sample, event, count, stack)

    def _thread(self, pid: int, tid: int) -> TrackId:
        track = self._threads.get(tid)
        if track is None:
            track = self._threads[tid] = self._tracks.thread(pid, tid, self._comms.get(tid, ""))
        return track

    def _tracepoint(self, sample: _Sample, stack: StackId) -> None:
        name = sample.event.label
        known = self._file.tracepoints.get(sample.event.config)
        values = known.values(sample.raw, self._file.order) if known else {}
        cpu, thread = _known(sample.cpu), self._thread(sample.pid, sample.tid)
        if name == "sched:sched_switch" and known and "next_pid" in values:
            self._switches_seen = True
            state = values.get("prev_state", "")
            letters = state_letters(state, known.states) if isinstance(state, int) else state
            tasks = task_in(values, "prev_"), task_in(values, "next_")
            self._tracks.switch(sample.ts, cpu, tasks[0], letters, tasks[1], sample.at, stack)
            return
        args: dict[str, Any] = values if cpu is None else {"cpu": cpu, **values}
        if sample.raw and not known:
            args["raw"] = sample.raw.hex()
        self._tracks.tracepoint(thread, sample.ts, name, args, stack, sample.at, cpu)
        if name in ("sched:sched_wakeup", "sched:sched_wakeup_new") and "pid" in values:
            self._tracks.wakeup(sample.ts, task_in(values, ""), sample.at)

    # -- other records ----------------------------------------------------------------------------------------

    def _event(self, record: _Other) -> None:
        """Read a record of the kernel that is not a sample."""
        kind = record.kind
        if kind in (Kind.MMAP, Kind.MMAP2):
            self._map(record)
        elif kind == Kind.COMM:
            self._comm(record)
        elif kind in (Kind.FORK, Kind.EXIT):
            self._begin_or_end(record)
        elif kind == Kind.KSYMBOL:
            start, size, _, flags = struct.unpack_from(f"{self._file.order}QIHH", record.body)
            if size and not flags & 1:  # 1: detached
                self._spaces.map(None, Mapping(start, start + size, 0, text_of(record.body[16:])))
            self._merged[KERNEL_SYMBOLS] += 1
        elif kind in (Kind.LOST, Kind.LOST_SAMPLES):
            (count,) = self._u64(record.body, 8 if kind == Kind.LOST else 0)
            self._out.problem(LOST, record.at, f"{count} events", count)
            self._instant(record, {"lost_events": count})
        elif kind in (Kind.THROTTLE, Kind.UNTHROTTLE):
            self._instant(record, {"cpu": record.stamp.cpu} if record.stamp.cpu >= 0 else {})
        elif kind in (Kind.SWITCH, Kind.SWITCH_CPU_WIDE):
            self._switch(record)
        else:
            self._unread(kind, record.at)

    def _unread(self, kind: int, at: int) -> None:
        if kind in HARDWARE_TRACES:
            self._out.skip(HARDWARE_TRACE, at)
        elif kind in MEANINGLESS:
            self._merged[RECORDS_WITHOUT_PLACE] += 1
        else:
            self._out.skip(UNKNOWN_RECORD, at, f"type {kind}")

    def _map(self, record: _Other) -> None:
        body = record.body
        pid, _, start, size, offset = struct.unpack_from(f"{self._file.order}iiQQQ", body)
        name = text_of(body[32 if record.kind == Kind.MMAP else 64 :])
        if record.kind == Kind.MMAP2 and record.misc & _MISC_BUILD_ID and 0 < body[32] <= 20:
            self._file.build_ids[name] = body[36 : 36 + body[32]]
        if size:
            in_kernel = pid in _KERNEL_PIDS or record.misc & _MODE_MASK in (_KERNEL, _GUEST_KERNEL)
            self._spaces.map(None if in_kernel else pid, Mapping(start, start + size, offset, name))
        self._merged[MAPPED_FILES] += 1

    def _comm(self, record: _Other) -> None:
        """Name a thread from now on; an existing track gets the name at once."""
        pid, tid = struct.unpack_from(f"{self._file.order}ii", record.body)
        comm = self._comms[tid] = text_of(record.body[8:])
        if record.misc & _MISC_EXEC:
            self._spaces.forget(pid)
        if self._threads.pop(tid, None) is not None:
            self._thread(pid, tid)
        self._instant(record, {"comm": comm})

    def _begin_or_end(self, record: _Other) -> None:
        pid, parent, tid, parent_tid = struct.unpack_from(f"{self._file.order}4i", record.body)
        self._instant(record, {"pid": pid, "tid": tid, "parent_pid": parent, "parent_tid": parent_tid})
        if record.kind == Kind.FORK:
            self._spaces.copy(parent, pid)
            self._threads.pop(tid, None)
            self._comms[tid] = self._comms.get(parent_tid, self._comms.get(parent, ""))

    def _instant(self, record: _Other, args: dict[str, Any]) -> None:
        """Draw a record as an instant on its thread, unless it has no time."""
        stamp = record.stamp
        if stamp.time <= 0 or stamp.time in _NOTHING:
            self._merged[RECORDS_FROM_BEFORE] += 1
            return
        self._out.balance.written += 1
        name = f"PERF_RECORD_{Kind(record.kind).name}"
        self._thread(stamp.pid, stamp.tid)
        self._tracks.record(stamp.pid, stamp.tid, stamp.time, name, args, record.at)

    def _switch(self, record: _Other) -> None:
        """Read a switch of `perf record --switch-events`: one record when a thread stops, one when it goes on."""
        stamp = record.stamp
        if self._switches_seen or stamp.time <= 0:
            self._merged[SWITCHES_TWICE] += 1
            return
        self._out.balance.written += 1
        self._thread(stamp.pid, stamp.tid)
        cpu, task = _known(stamp.cpu), Task(self._comms.get(stamp.tid, ""), stamp.tid)
        if record.misc & _MISC_SWITCH_OUT:
            self._tracks.switch_out(stamp.time, cpu, task, "R+" if record.misc & _MISC_PREEMPTED else "", record.at)
        else:
            self._tracks.switch_in(stamp.time, cpu, task, record.at)

    def _from_perf(self, data: Buffer, header: Header, at: int) -> None:
        """Read a record of perf itself: parts of the header (all of them in a piped recording), and marks."""
        body, order, file = data[header.at + 8 : header.end], self._file.order, self._file
        if header.kind == Kind.HEADER_ATTR:
            (size,) = struct.unpack_from(f"{order}I", body, 4)
            size = min(max(size, 64), len(body))
            ids = struct.unpack_from(f"{order}{(len(body) - size) // 8}Q", body, size)
            file.events.append(Event(order, body[:size], ids))
        elif header.kind == Kind.HEADER_FEATURE:
            file.feature(self._u64(body)[0], body[8:])
        elif header.kind == Kind.HEADER_TRACING_DATA:
            file.feature(Feature.TRACING_DATA, data[header.end : header.data_end])
        elif header.kind == Kind.HEADER_BUILD_ID:
            file.build_id(body)
        elif header.kind == Kind.EVENT_UPDATE:
            what, number = struct.unpack_from(f"{order}QQ", body)
            if what == 2:  # a name; others are unit, scale, CPUs
                file.name_event((number,), text_of(body[16:]))
        else:
            self._unread(header.kind, at)
            return
        self._merged[HEADER_PARTS] += 1
        self._learn_events()


def _known(cpu: int) -> int | None:
    return cpu if cpu >= 0 else None


# -- the format --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _bytes_of(source: Source) -> Iterator[Buffer]:
    """Yield the whole input: mapped if it is a plain file, read into memory if it is compressed or a stream."""
    if source.path is not None:
        with source.path.open("rb") as stream:
            if stream.read(8) in ORDERS:
                with mmap(stream.fileno(), 0, access=ACCESS_READ) as mapped:
                    progress.note(source.display, mapped)
                    yield mapped
                return
    with source.open() as packed:
        yield packed.read()


@dataclass(frozen=True)
class PerfData(Importer):
    name = "perf-data"
    title = "perf.data of Linux perf (perf record)"
    url = "https://perf.wiki.kernel.org/index.php/Tutorial"
    versions = "perf 2.6.32 to 6.18, also through a pipe"
    signature = Signature("perfile2 | 2elifrep | perffile")
    clock = PERF_CLOCK
    record = "perf record -k CLOCK_MONOTONIC -F 999 -g -- python run.py"
    skips = (MESSAGE,)
    symbols: bool = option(
        False,
        "name frames by the functions of the files on this machine, where these are of the same build.",
    )

    line_up = LINE_UP
    becomes = (
        ("sample", "sample of its thread, with call stack, period and CPU"),
        ("tracepoint", "instant on its thread, fields as args; a sample besides if it has a call chain"),
        ("sched:sched_switch, sched:sched_wakeup, PERF_RECORD_SWITCH", "slices: states of threads"),
        (
            "PERF_RECORD_COMM, FORK, EXIT, LOST, THROTTLE",
            "instant on the row `perf records` of its process; names of threads",
        ),
        ("PERF_RECORD_MMAP, MMAP2, KSYMBOL", "names of frames"),
        ("header: host, command, versions", "metadata"),
    )
    lost = (
        "The file holds no symbols: frames are named by mapped file and offset, those of the kernel by "
        "address; a .pftrace shows the file alone. -O symbols=true reads names from the same builds on this machine.",
        "Branch stacks, registers, copies of stacks (--call-graph dwarf) and addresses of data are not shown.",
        "Traces of hardware units (Intel PT) are counted, not decoded.",
        "Compressed recordings (-z) need the module zstandard, or Python 3.14.",
        "A recording in a folder (perf record --threads) is not read.",
        NO_CPU_HELP,
    )
    marks = PERF_MARKS

    def form(self, head: Head) -> Form:
        """Return the first form of a recording: the recording itself."""
        return Form(0, marks_of_perf)

    def sniff(self, head: Head) -> Match:
        """Recognise the magic number."""
        if head.data.startswith(tuple(ORDERS)):
            return Match.yes("the magic of perf.data")
        return Match.no("no magic of perf.data")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(RECORDS, "byte")
        with _bytes_of(source) as data:
            try:
                file = read_header(data)
            except Damage as damage:
                is_of_perf = data[:8] in ORDERS
                hint = "is the file whole?" if is_of_perf else "without --from, the format is detected"
                raise source.malformed(damage.reason, hint=hint, where=f"byte {damage.at}") from None
            RecordReader(out, file, data, self.symbols, Unpacked(source.display, len(data), source.limits)).read()
        _tell(out, file)


def _tell(out: Builder, file: PerfFile) -> None:
    """Set the clock, the metadata and the notes for the user."""
    info: dict[str, Any] = dict(file.info)
    if isinstance(info.get("cmdline"), list):
        info["cmdline"] = " ".join(info["cmdline"])
    clocks = [event.clockid for event in file.events]
    header = PrintedHeader(info, clocks[0] if clocks else None, known=True)
    if file.clock_pair is not None and header.clockid is not None:
        if is_possible_pair(header.clockid, *file.clock_pair):
            header.reference = file.clock_pair
        else:
            out.problem(UNREAD_HEADER, "header", f"impossible times of its clocks: {file.clock_pair}")
    header.tell(out)
    if file.unfinished:
        out.note(
            "perf was ended before it could finish the file: read up to its end; names of events and hosts are absent"
        )
