"""MXNet profiler traces (`mx.profiler`, `profile.json`), 0.9 to 2.0.

    {
        "traceEvents": [
    ...
        {
            "name": "FullyConnected",
            "cat": "operator",
            "ph": "B",
            "ts": 1795245097318109,
            "pid": 0,
            "tid": 13270141051917857633
        }
    ,

Chrome JSON printed with printf. What differs from the format, as the sources (`src/profiler/*`, to 1.1
`src/engine/profiler.cc`) and recordings with 1.6.0 and 1.9.1 show:

- no number is one of the operating system: small pids are devices, the others hashes of a category, tids hashes of a
  thread. Here devices and categories are tracks, and threads are numbered in the order in which they appear;
- begin and end of an operation are adjacent records. Operations overlap on one thread, so a stack would mix them up;
- each operator stands there twice, as B/E on its device and as b/e on the pid of its category: the copy is dropped;
- frames are `(` and `)` without an id, markers are `n` without an id;
- times are whole microseconds: since 1970 (Linux), since boot (Windows, macOS), to 1.1 since the profiler was made.

Operators on a GPU are measured by the host, from the start of the call until its completion was noticed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, structs

from traceconv.families.chrome import document
from traceconv.families.chrome.event import Event, members_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, args_of, values_of
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero, looks_like_unix_time
from traceconv.model.columns import utf8
from traceconv.model.diagnostics import JOINED_ENDS, METADATA, absent, skipped
from traceconv.model.marks import FormatMarks
from traceconv.model.numbers import whole, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.track_table import NO_TRACK, TrackId

OPERATOR_COPIES = Counted("copy of an operator dropped", "copies of operators dropped")
REPEATED_VALUES = Counted("repeated counter value", "repeated counter values")

WALL_CLOCK = structs.replace(REALTIME, resolution_ns=1000)
BOOT_CLOCK = ClockDomain("MXNet steady clock", Zero.BOOT, Run.MONOTONIC, 1000)
RUN_CLOCK = ClockDomain("MXNet profiler time", Zero.RUN_START, Run.UNKNOWN, 1000)

LONE_BEGIN = absent(
    "mxnet.begin_without_end",
    "a start is not followed by its end, which is always the next record: the file is cut or damaged there",
)
LONE_END = absent(
    "mxnet.end_without_begin",
    "an end does not follow its start, which is always the previous record: the file is cut or damaged there",
)
NOT_WANTED = skipped(
    "mxnet.api_counter", "counters of the C API were left out, as the option api_counters=false asks", quiet=True
)

_DEVICE_NAME = re.compile(r"cpu/\d+|gpu/\d+|cpu pinned/|cpu shared/")
_DEVICE_FIELDS = frozenset(("ph", "args", "pid", "name"))
_CATEGORIES = frozenset(("operator", "Custom Operator", "MXNET_C_API", "Device Storage", "category"))
_HASHED_PIDS = frozenset((3060606181218273969, 849786139768988538))
#: No number of a process or thread of an operating system is as large; nearly all hashes are larger.
_HASHES = 1 << 32

#: pids below this are indices of devices, all others are 64-bit hashes.
_DEVICES = 10**6
#: The largest distance of the starts of an operator and its copy: 1 µs as observed, 2 with rounding.
_COPY_SLACK_NS = 2000
_BEGINS = {"B": "E", "b": "e", "(": ")"}
_ENDS = frozenset(_BEGINS.values())
_OLD_CATEGORY = "category"
_OPERATORS = ("operator", "Custom Operator", _OLD_CATEGORY)
_GROUPS = {
    "MXNET_C_API": "MXNet C API",
    "Device Storage": "MXNet memory",
    "operator": "MXNet operators",
    "Custom Operator": "MXNet custom operators",
}
_USER = "MXNet user"
#: Groups come after the devices, but for the calls that lead to all the rest.
_GROUP_RANK = {name: _DEVICES + i for i, name in enumerate([*_GROUPS.values(), _USER])} | {"MXNet C API": -1}

# FullyConnected in: [(4,10),(10,10)]out: [(4,10)] (k=v)
_ATTRIBUTES = re.compile(r"(.+?) ?(\b(?:in|out): \[.*)", re.DOTALL)
# [dot,Activation,elemwise_add]   scope:[dot,Activa
_BULK = re.compile(r"(?:.*:)?\[([^\[\]]*)(\]?)", re.DOTALL)


class _Span(Struct, frozen=True):
    """A start and its end."""

    begin: Event
    ts: int
    dur: int
    number: int


class MxnetEvents(ChromeEvents):
    """Turns the events of one MXNet profile into rows. The pids in the file are none; `pid` is None if not known."""

    def __init__(self, out: Builder, pid: int | None, api_counters: bool) -> None:
        super().__init__(out)
        self.categories: set[str] = set()
        self._pid = pid
        self._root = NO_TRACK
        self._api_counters = api_counters
        self._open: _Span | None = None
        self._devices: dict[int, TrackId] = {}
        self._device_names: dict[int, str] = {}
        self._groups: dict[tuple[str, TrackId], TrackId] = {}
        self._numbers: dict[bytes, int] = {}
        self._lines: dict[tuple[TrackId, bytes], TrackId] = {}
        self._on_devices: dict[tuple[str, str, bytes], list[int]] = defaultdict(list)
        self._copies: dict[tuple[str, str, bytes], list[_Span]] = defaultdict(list)
        self._levels: dict[TrackId, list[tuple[int, float, int]]] = defaultdict(list)
        self._handlers |= dict.fromkeys(_BEGINS, self.begin) | dict.fromkeys(_ENDS, self.end)
        self._handlers |= {"n": self.instant}

    def finish(self, frames: dict[str, Any] | None = None) -> None:
        """Drop the copies, write the counters, name the devices."""
        self._drop_open()
        for key, copies in self._copies.items():
            self._keep_or_drop(copies, sorted(self._on_devices[key]))
        self._write_levels()
        for pid, track in self._devices.items():
            self.out.tracks[track].name = self._device_names.get(pid, f"device {pid}")
        super().finish(frames)

    # -- tracks -----------------------------------------------------------------------------------------------

    def new_process(self, pid: int | str) -> TrackId:
        """Return the track of a device, or that of the user's own events."""
        return self._device(pid) if isinstance(pid, int) and 0 <= pid < _DEVICES else self._group(_USER)

    def place(self, event: Event) -> TrackId:
        """Return the thread of a device or of a part of MXNet, or a domain of the user."""
        pid = bytes(event.pid)
        if len(pid) < len(str(_DEVICES)) and pid.isdigit():
            return self._thread(self._device(whole(pid)), bytes(event.tid))
        if event.cat in _GROUPS:
            return self._thread(self._group(_GROUPS[event.cat]), bytes(event.tid))
        return self._domain(event)

    def _process(self) -> TrackId:
        if self._root == NO_TRACK:
            self._root = self.out.tracks.process("MXNet", pid=self._pid)
        return self._root

    def _device(self, pid: int) -> TrackId:
        track = self._devices.get(pid)
        if track is None:
            track = self._devices[pid] = self.out.tracks.add("", self._process())
            self.out.tracks[track].rank = pid
        return track

    def _group(self, name: str, parent: TrackId = NO_TRACK) -> TrackId:
        track = self._groups.get((name, parent))
        if track is None:
            above = self._process() if parent == NO_TRACK else parent
            track = self._groups[name, parent] = self.out.tracks.add(name, above)
            self.out.tracks[track].rank = _GROUP_RANK.get(name)
        return track

    def _domain(self, event: Event) -> TrackId:
        """Return the track of a domain; the category is its name, with `,frame` or `,instant_marker` behind it."""
        name = event.cat.removesuffix(",frame").removesuffix(",instant_marker")
        return self._group(name or "(no domain)", self._group(_USER))

    def _thread(self, parent: TrackId, tid: bytes) -> TrackId:
        track = self._lines.get((parent, tid))
        if track is None:
            number = self._thread_number(tid)
            hint = f"MXNet prints threads as hashes only; this is {tid.decode('utf-8', 'replace')}."
            track = self._lines[parent, tid] = self.out.tracks.add(f"thread {number}", parent, description=hint)
            self.out.tracks[track].rank = number
        return track

    def _thread_number(self, tid: bytes) -> int:
        return self._numbers.setdefault(tid, len(self._numbers) + 1)

    # -- spans ------------------------------------------------------------------------------------------------

    def begin(self, event: Event, ts: int, number: int) -> None:
        """Read B, b, (: the next record is its end."""
        self._drop_open()
        self._open = _Span(event, ts, 0, number)

    def end(self, event: Event, ts: int, number: int) -> None:
        """Read E, e, ): the end of the record before."""
        opened, self._open = self._open, None
        if opened is None or not _belong_together(opened.begin, event):
            self._open = opened
            self._drop_open()
            self.out.skip(LONE_END, number, f"{event.ph} {event.name!r}")
            return
        span = structs.replace(opened, dur=ts - opened.ts)
        key = (event.cat, event.name, bytes(event.tid))
        if event.ph == "e" and event.cat in _OPERATORS:
            self._copies[key].append(span)
            return
        if event.ph == "E":
            self._on_devices[key].append(span.ts)
        self._write(span)

    def _drop_open(self) -> None:
        if self._open is not None:
            self.out.skip(LONE_BEGIN, self._open.number, f"{self._open.begin.ph} {self._open.begin.name!r}")
            self._open = None

    def _write(self, span: _Span) -> None:
        event = span.begin
        name, more = (event.name, {}) if event.cat not in _OPERATORS else operator_name(event.name)
        args = join_args(self.own_args(event, span.number), more)
        self.out.slice(self.place(event), span.ts, span.dur, name, event.cat, args, span.number)
        self.categories.add(event.cat)
        self.out.balance.written += 1
        self.out.balance.merged[JOINED_ENDS] += 1

    def own_args(self, event: Event, number: int) -> bytes:
        """Return the args of a user's event with its thread, which is not a track there; of others as they are."""
        args = args_of(self.out, event, number, ("id", "s"))
        if event.cat in _OPERATORS or event.cat in _GROUPS:
            return args
        return join_args(args, {"thread": self._thread_number(bytes(event.tid))})

    def _keep_or_drop(self, copies: list[_Span], begins: list[int]) -> None:
        """Drop the copies of operators that stand on a device; both are matched in order of time."""
        at = 0
        for span in sorted(copies, key=lambda span: span.ts):
            while at < len(begins) and begins[at] < span.ts - _COPY_SLACK_NS:
                at += 1
            if at < len(begins) and begins[at] <= span.ts + _COPY_SLACK_NS:
                at += 1
                self.out.balance.merged[OPERATOR_COPIES] += 2
            else:
                self._write(span)

    # -- instants and counters --------------------------------------------------------------------------------

    def instant(self, event: Event, ts: int, number: int) -> None:
        """Read n, i: a marker of the user."""
        if event.s == "g":
            track = self._group("Global events")
        else:
            track = self._group(_USER) if event.s == "p" else self.place(event)
        self.out.instant(track, ts, event.name, event.cat, self.own_args(event, number), number)
        self.out.balance.written += 1

    def counter(self, event: Event, ts: int, number: int) -> None:
        """Read C: a level, of bytes or of the user's own; numbers from 2**63 on are negative ones."""
        if not self._api_counters and event.cat == "MXNET_C_API":
            self.out.skip(NOT_WANTED, number)
            return
        for series, value in values_of(self.out, event, number).items():
            wrapped = isinstance(value, int) and 2**63 <= value < 2**64
            self._levels[self.counter_track(event, series)].append((ts, value - 2**64 if wrapped else value, number))

    def counter_track(self, event: Event, series: str) -> TrackId:
        """Return the track of a counter, under its part of MXNet or its domain."""
        cat, name = utf8(event.cat), utf8(event.name)
        key = b"%b\0%d\0%d\0%b%b%b" % (bytes(event.pid), len(cat), len(name), cat, name, utf8(series))
        track = self._counters.get(key)
        if track < 0:
            group = self._group(_GROUPS[event.cat]) if event.cat in _GROUPS else self._domain(event)
            title = event.name if series in (event.name, "") else f"{event.name} {series}"
            unit = "bytes" if event.cat == "Device Storage" else ""
            track = self.out.tracks.counter(title, group, unit=unit)
            self._counters.put(key, track)
        return TrackId(track)

    def _write_levels(self) -> None:
        """Write the counters in order of time, without the values that repeat the one before."""
        written: set[int] = set()
        repeated: set[int] = set()
        for track, levels in self._levels.items():
            before: float | None = None
            for ts, value, number in sorted(levels, key=lambda level: (level[0], level[2])):
                if value == before:
                    repeated.add(number)
                    continue
                self.out.counter(track, ts, value, number)
                written.add(number)
                before = value
        self.out.balance.written += len(written)
        self.out.balance.merged[REPEATED_VALUES] += len(repeated - written)

    # -- metadata ------------------------------------------------------------------------------------------------

    def metadata(self, event: Event, number: int) -> None:
        """Read M: names of devices; those of the other pids are the categories of their events."""
        pid = bytes(event.pid)
        if event.name != "process_name":
            super().metadata(event, number)
            return
        self.out.balance.merged[METADATA] += 1
        if (device := whole_of(pid)) is not None and 0 <= device < _DEVICES:
            self._device_names[device] = str(members_of(event).get("name", ""))


def _belong_together(begin: Event, end: Event) -> bool:
    return (
        _BEGINS[begin.ph] == end.ph
        and (begin.name, begin.cat) == (end.name, end.cat)
        and (bytes(begin.pid), bytes(begin.tid)) == (bytes(end.pid), bytes(end.tid))
    )


def operator_name(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of an operator without the attributes behind it, and these as args.

    >>> operator_name("[dot,Activa")
    ('[dot,Activa', {'operators': ['dot', 'Activa'], 'operators_cut': True})
    """
    args: dict[str, Any] = {}
    attributes = _ATTRIBUTES.fullmatch(text)
    if attributes is not None:
        text, args["attributes"] = attributes[1], attributes[2]
    bulk = _BULK.fullmatch(text)
    if bulk is not None:
        args["operators"] = [name.strip() for name in bulk[1].split(",") if name.strip()]
        if not bulk[2]:
            args["operators_cut"] = True
    return text, args


@dataclass(frozen=True)
class Mxnet(Importer):
    name = "mxnet"
    title = "MXNet profiler trace (profile.json)"
    url = "https://mxnet.apache.org/versions/1.9.1/api/python/docs/api/mxnet/profiler/index.html"
    versions = "0.9 to 2.0; complete, cut off, dumped several times, with unescaped names"
    signature = Signature(
        '"cpu/ | "gpu/ | "cpu pinned/ | "cpu shared/ | 3060606181218273969 | 849786139768988538 | "operator" | '
        '"custom operator" | "mxnet_c_api" | "device storage" | "category"'
    )
    clock = WALL_CLOCK
    layer = Layer.FRAMEWORK
    record = (
        "mx.profiler.set_config(profile_all=True, filename='profile.json'); mx.profiler.set_state('run'); ...; "
        "mx.profiler.dump()"
    )
    skips = (EMPTY_EVENT, NOT_WANTED)
    pid: int | None = option(None, "the number that the process had, which the file does not say.")
    api_counters: bool = option(True, "whether to read the counters of the C API, more records than all else together.")

    line_up = "Nothing is needed on Linux since 1.2: times count from 1970. Elsewhere `--offset FILE=TIME`."
    with_perf = (
        "# The profile names no process: perf must sample only this one while it runs. In run.py: as above.\n"
        "# In a terminal:\n"
        "perf record -k CLOCK_MONOTONIC -F 999 -g -o perf.data -- python run.py\n"
        "traceconv report profile.json perf.data -O symbols=true --section layers"
    )
    becomes = (
        ("operators (B/E)", "slices on the track of their device or category, by thread"),
        ("API calls and user tasks (b/e)", "slices"),
        ("frames and domains", "slices and tracks of their domain"),
        ("markers", "instants"),
        ("counters, memory", "counters, with unit bytes for memory"),
        ("attributes of operators (since 1.5)", "args"),
    )
    lost = (
        "The file holds hashes of processes and threads: threads are numbered in order of appearance.",
        "The copy of each operator under its category is left out, and counted.",
        "The host measures operators on a GPU, from the start of the call until it notices the end.",
    )
    marks = FormatMarks(libraries="mxnet", innermost=_OPERATORS, memory=r"Memory: .*")

    def sniff(self, head: Head) -> Match:
        """Return YES for devices named as MXNet does, or for records of its categories with hashes as pid or tid."""
        events = head.json.objects
        if any(map(_names_device, events)):
            return Match.yes("processes with the names of MXNet's devices")
        if any(map(_is_record, events)):
            return Match.yes("categories of MXNet, with hashes as pid or tid")
        return Match.no("no devices of MXNet, and no categories of MXNet with hashes as pid or tid")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        reader = ChromeReader(source, out)
        out.info.real_ids = True  # the only process is the one that the user states
        events = MxnetEvents(out, self.pid, self.api_counters)
        for batch in reader.batches():
            events.add(batch)
        top = document.top_level(reader, out)
        events.finish(top.get("stackFrames"))
        # The category of a task is the name of its domain, which the user chose.
        of_user = tuple(sorted(events.categories.difference(_OPERATORS, _GROUPS)))
        out.info.marks = structs.replace(out.info.marks, ranges=of_user)
        _set_clock(out, events.categories == {_OLD_CATEGORY})


def _names_device(event: dict[str, Any]) -> bool:
    """Return whether an event gives a process the name of a device, with the fields that MXNet gives it (no tid)."""
    args = event.get("args")
    name = args.get("name") if isinstance(args, dict) else None
    is_name = event.keys() == _DEVICE_FIELDS and event["name"] == "process_name"
    return is_name and isinstance(name, str) and _DEVICE_NAME.fullmatch(name) is not None


def _is_record(event: dict[str, Any]) -> bool:
    """Return whether an event can be of this profiler only.

    Its pid is that of a category, or one of its numbers is a hash.
    """
    pid, tid = event.get("pid"), event.get("tid")
    if isinstance(pid, int) and pid in _HASHED_PIDS:
        return True
    hashed = any(isinstance(number, int) and number >= _HASHES for number in (pid, tid))
    category = event.get("cat")
    return hashed and isinstance(category, str) and category in _CATEGORIES


def _set_clock(out: Builder, is_old: bool) -> None:
    """Set the clock, by the size of the times and the kind of records."""
    first = out.tables.first_ts()
    if out.tables.last_ts() == 0:
        return  # no events: nothing to tell a clock by
    if looks_like_unix_time(first):
        out.clocks.set_default(WALL_CLOCK)
        out.note("the times are so large that they can only count microseconds since 1970: read as Unix time")
    elif is_old:
        out.clocks.set_default(RUN_CLOCK)
        out.note("MXNet up to 1.1 counts time from the start of its profiler, which the file does not state")
    else:
        out.clocks.set_default(BOOT_CLOCK)
        out.note("the times are too small for Unix time: taken as time since boot, as on Windows and macOS")
