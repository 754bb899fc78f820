"""The records of a perf.data, in order of time, into a builder.

Records of the kernel arrive per CPU; a record FINISHED_ROUND promises that all before the round before it is there.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from mmap import mmap
from typing import Any, NamedTuple

from traceconv.families.perf._elf_symbols import Symbols
from traceconv.families.perf._file import (
    Buffer,
    Damage,
    Event,
    Feature,
    Header,
    Kind,
    PerfFile,
    Reading,
    Stamp,
    lines_behind,
    records,
    text_of,
)
from traceconv.families.perf._maps import Mapping, Spaces
from traceconv.families.perf._tracks import (
    NO_STACK,
    PerfTracks,
    Task,
)
from traceconv.families.perf._zstd import NoZstd, Unpacker
from traceconv.io.limits import Unpacked
from traceconv.model.builder import Builder
from traceconv.model.counted import (
    HEADER_PARTS,
    KERNEL_SYMBOLS,
    MAPPED_FILES,
    RECORDS_FROM_BEFORE,
    RECORDS_WITHOUT_PLACE,
    SWITCHES_TWICE,
    UNPACKED_RECORDS,
)
from traceconv.model.diagnostics import absent, lost, repaired, skipped
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import StackId, TrackId

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

_HARDWARE_TRACE = {Kind.AUX, Kind.ITRACE_START, Kind.AUXTRACE, Kind.AUXTRACE_ERROR, Kind.AUX_OUTPUT_HW_ID}
#: Records without content for the trace.
_MEANINGLESS = {
    Kind.READ,
    Kind.NAMESPACES,
    Kind.BPF_EVENT,
    Kind.CGROUP,
    Kind.TEXT_POKE,
    Kind.ID_INDEX,
    Kind.AUXTRACE_INFO,
    Kind.THREAD_MAP,
    Kind.CPU_MAP,
    Kind.STAT_CONFIG,
    Kind.TIME_CONV,
    Kind.FINISHED_ROUND,
    Kind.FINISHED_INIT,
    Kind.HEADER_EVENT_TYPE,
}
_NO_PLACE = RECORDS_WITHOUT_PLACE
_MADE_UP = RECORDS_FROM_BEFORE
_NOTHING = (0, (1 << 64) - 1)  # values that mean "no time"
_NEVER = 1 << 65

_MODE_MASK, _MISC_EXEC, _MISC_SWITCH_OUT, _MISC_PREEMPTED, _MISC_BUILD_ID = 7, 1 << 13, 1 << 13, 1 << 14, 1 << 14
_KERNEL_MODES = (1, 4)
_KERNEL_PIDS = (-1, 0)


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
    readings: list[Reading]
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
    """Reads one recording into a builder."""

    def __init__(self, out: Builder, file: PerfFile, data: Buffer, symbols: bool, unpacked: Unpacked) -> None:
        self._out = out
        self._file = file
        self._data = data
        self._tracks = PerfTracks(out)
        self._comms: dict[int, str] = {0: "swapper"}
        self._threads: dict[int, TrackId] = {}
        self._symbols = Symbols(file.build_ids) if symbols else None
        self._spaces = Spaces(file.order, self._tracks, self._symbols)
        #: A heap of the records to be sorted: time, number, record.
        self._pending: list[tuple[int, int, _Sample | _Other]] = []
        self._number = self._latest = self._flush_to = 0
        self._counted: dict[tuple[int, int], int] = {}  # of members of groups
        self._unpacker = Unpacker(unpacked)
        self._switches_seen = False
        self._u64 = struct.Struct(f"{file.order}Q").unpack_from
        self._learn_events()

    # -- reading ----------------------------------------------------------------------------------------------

    def read(self) -> None:
        self._records(self._data, self._file.data_at, self._file.data_end, None)
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
        sample = _Sample(at, header.misc, event, ip, pid, tid, ts, cpu, period, readings, chain, raw)
        self._put(ts, sample)

    def _other(self, data: Buffer, header: Header, at: int) -> None:
        kind = header.kind
        if kind == Kind.FINISHED_ROUND:
            self._out.balance.merged[_NO_PLACE] += 1
            self._flush(self._flush_to)
            self._flush_to = self._latest
            if isinstance(self._data, mmap):
                self._data.seek(at)  # for the display of progress
        elif kind in (Kind.COMPRESSED, Kind.COMPRESSED2):
            self._unpack(data, header)
        elif kind >= Kind.HEADER_ATTR or not self._file.events:
            self._of_perf(data, header, at)
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
        if ts > self._latest:
            self._latest = ts
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
            return
        except Damage as damage:
            self._out.skip(BAD_PACKED, header.at, damage.reason)
            return
        self._out.balance.merged[UNPACKED_RECORDS] += 1
        self._records(plain, 0, len(plain), header.at)

    # -- events and their names -------------------------------------------------------------------------------

    def _learn_events(self) -> None:
        self._by_id = {number: event for event in self._file.events for number in event.ids}
        for event in self._file.events:
            event.label = self._file.event_name(event)

    def _event_of_sample(self, data: Buffer, header: Header) -> Event | None:
        events = self._file.events
        if len(events) == 1:
            return events[0]
        if not events:
            return None
        id_at = events[0].id_at()
        if id_at is None:
            return events[0]
        return self._by_id.get(self._u64(data, header.at + 8 + id_at)[0])

    def _event_of_record(self, data: Buffer, end: int) -> Event:
        """Return the event whose buffer a record came from, which defines the layout of its trailer."""
        events = self._file.events
        before_end = events[0].id_before_end() if len(events) > 1 else None
        if before_end is None:
            return events[0]
        return self._by_id.get(self._u64(data, end - before_end)[0], events[0])

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
        for reading in sample.readings:
            event = self._by_id.get(reading.id)
            if event is None:
                self._out.problem(UNKNOWN_EVENT, sample.at, f"id {reading.id}")
                continue
            key = (reading.id, sample.tid if event.inherited else 0)
            counted = reading.value - self._counted.get(key, 0)
            self._counted[key] = reading.value
            if counted > 0:
                self._draw(sample, event, counted, stack)

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
            letters = known.state(state) if isinstance(state, int) else state
            prev, following = _task(values, "prev_"), _task(values, "next_")
            self._tracks.switch(sample.ts, cpu, prev, letters, following, sample.at, stack)
            return
        args: dict[str, Any] = values if cpu is None else {"cpu": cpu, **values}
        if sample.raw and not known:
            args["raw"] = sample.raw.hex()
        self._tracks.tracepoint(thread, sample.ts, name, args, stack, sample.at, cpu)
        if name in ("sched:sched_wakeup", "sched:sched_wakeup_new") and "pid" in values:
            self._tracks.wakeup(sample.ts, _task(values, ""), sample.at)

    # -- other records ----------------------------------------------------------------------------------------

    def _event(self, record: _Other) -> None:
        """Read a record of the kernel that is not a sample."""
        merged = self._out.balance.merged
        kind = record.kind
        if kind in (Kind.MMAP, Kind.MMAP2):
            self._map(record)
            merged[MAPPED_FILES] += 1
        elif kind == Kind.COMM:
            self._comm(record)
        elif kind in (Kind.FORK, Kind.EXIT):
            self._begin_or_end(record)
        elif kind == Kind.KSYMBOL:
            start, size, _, flags = struct.unpack_from(f"{self._file.order}QIHH", record.body)
            if size and not flags & 1:  # 1: detached
                self._spaces.map(None, Mapping(start, start + size, 0, text_of(record.body[16:])))
            merged[KERNEL_SYMBOLS] += 1
        elif kind in (Kind.LOST, Kind.LOST_SAMPLES):
            self._lost(record)
        elif kind in (Kind.THROTTLE, Kind.UNTHROTTLE):
            self._instant(record, {"cpu": record.stamp.cpu} if record.stamp.cpu >= 0 else {})
        elif kind in (Kind.SWITCH, Kind.SWITCH_CPU_WIDE):
            self._switch(record)
        elif kind in _HARDWARE_TRACE:
            self._out.skip(HARDWARE_TRACE, record.at)
        elif kind in _MEANINGLESS:
            merged[_NO_PLACE] += 1
        else:
            self._out.skip(UNKNOWN_RECORD, record.at, f"type {kind}")

    def _map(self, record: _Other) -> None:
        body = record.body
        pid, _, start, size, offset = struct.unpack_from(f"{self._file.order}iiQQQ", body)
        name = text_of(body[32 if record.kind == Kind.MMAP else 64 :])
        if record.kind == Kind.MMAP2 and record.misc & _MISC_BUILD_ID and 0 < body[32] <= 20:
            self._file.build_ids[name] = body[36 : 36 + body[32]]
        if not size:
            return
        new = Mapping(start, start + size, offset, name)
        is_kernel = pid in _KERNEL_PIDS or record.misc & _MODE_MASK in _KERNEL_MODES
        self._spaces.map(None if is_kernel else pid, new)

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

    def _lost(self, record: _Other) -> None:
        at = 8 if record.kind == Kind.LOST else 0
        lost = struct.unpack_from(f"{self._file.order}Q", record.body, at)[0]
        self._out.problem(LOST, record.at, f"{lost} events", lost)
        self._instant(record, {"lost_events": lost})

    def _instant(self, record: _Other, args: dict[str, Any]) -> None:
        """Draw a record as an instant on its thread, unless it has no time."""
        stamp = record.stamp
        if stamp.time <= 0 or stamp.time in _NOTHING:
            self._out.balance.merged[_MADE_UP] += 1
            return
        self._out.balance.written += 1
        name = f"PERF_RECORD_{Kind(record.kind).name}"
        self._out.instant(self._thread(stamp.pid, stamp.tid), stamp.time, name, "record", args, record.at)

    def _switch(self, record: _Other) -> None:
        """Read a switch of `perf record --switch-events`: one record when a thread stops, one when it goes on."""
        stamp = record.stamp
        if self._switches_seen or stamp.time <= 0:
            self._out.balance.merged[SWITCHES_TWICE] += 1
            return
        self._out.balance.written += 1
        self._thread(stamp.pid, stamp.tid)
        cpu, task = _known(stamp.cpu), Task(self._comms.get(stamp.tid, ""), stamp.tid)
        if record.misc & _MISC_SWITCH_OUT:
            self._tracks.switch_out(stamp.time, cpu, task, "R+" if record.misc & _MISC_PREEMPTED else "", record.at)
        else:
            self._tracks.switch_in(stamp.time, cpu, task, record.at)

    # -- records of perf --------------------------------------------------------------------------------------

    def _of_perf(self, data: Buffer, header: Header, at: int) -> None:
        """Read a record of perf itself: parts of the header (all of them in a piped recording), and marks."""
        body = data[header.at + 8 : header.end]
        order, merged = self._file.order, self._out.balance.merged
        if header.kind == Kind.HEADER_ATTR:
            (size,) = struct.unpack_from(f"{order}I", body, 4)
            size = min(max(size, 64), len(body))
            self._file.add_event(body[:size], struct.unpack_from(f"{order}{(len(body) - size) // 8}Q", body, size))
        elif header.kind == Kind.HEADER_FEATURE:
            self._file.feature(struct.unpack_from(f"{order}Q", body)[0], body[8:])
        elif header.kind == Kind.HEADER_TRACING_DATA:
            self._file.feature(Feature.TRACING_DATA, data[header.end : header.data_end])
        elif header.kind == Kind.HEADER_BUILD_ID:
            self._file.build_id(body)
        elif header.kind == Kind.EVENT_UPDATE:
            what, number = struct.unpack_from(f"{order}QQ", body)
            if what == 2:  # a name; others are unit, scale, CPUs
                self._file.name_event((number,), text_of(body[16:]))
        elif header.kind in _HARDWARE_TRACE:
            self._out.skip(HARDWARE_TRACE, at)
            return
        elif header.kind in _MEANINGLESS:
            merged[_NO_PLACE] += 1
            return
        else:
            self._out.skip(UNKNOWN_RECORD, at, f"type {header.kind}")
            return
        merged[HEADER_PARTS] += 1
        self._learn_events()


def _known(cpu: int) -> int | None:
    return cpu if cpu >= 0 else None


def _task(values: dict[str, int | str], prefix: str) -> Task:
    """Return the thread in the fields of a scheduler's tracepoint."""
    priority = values.get(f"{prefix}prio")
    tid = values.get(f"{prefix}pid", -1)
    return Task(
        str(values.get(f"{prefix}comm", "")),
        tid if isinstance(tid, int) else -1,
        priority if isinstance(priority, int) else None,
    )
