"""Text of `perf script`: samples of `perf record` with their call stacks, tracepoints, records of the kernel.

    # hostname : vm
    python 18571/18571 [001]  2674.579460047:    2004008 cpu-clock:
    <TAB>           8ab00 pthread_getspecific@@GLIBC_2.34+0x0 (/usr/lib/x86_64-linux-gnu/libc.so.6)
    <blank>
              python 19570 [000]  2745.636397450:      sched:sched_switch: prev_comm=python prev_pid=19570 ...

Which fields a line has is up to `-F`, and their order is not: command, process/thread, [CPU], mode, date and time of
day, time, period, event, and then frames or the fields of the tracepoint. A single number before the time is the
thread. Without a call stack address, symbol and file stand on the line of the event. The name of a command may hold
anything. Times are seconds with 6 decimals, with 9 after --ns. With --reltime they count from the first event;
--deltatime prints the time since the event before, which an option has to state. Checked against perf 6.1; other
versions from the manual page.

The script report_sample.py of Android's simpleperf prints nearly the same, in three forms:

    Gecko<TAB>25122 [007] 115539.36601:<TAB><TAB>1000000 task-clock:u:     until NDK r17: microseconds without zeros
            b3cea6c4<TAB>Lock::unlock() (/system/lib/libc.so)
    Gecko<TAB>25122 [007] 115539.036601:<TAB><TAB>1000000 task-clock:u:    until NDK r21
    Gecko<TAB>25100/25122 [007] 115539.036601: 1000000 task-clock:u:       since
    <TAB>        b3cea6c4 Lock::unlock() (/system/lib/libc.so)

An address of 16 digits begins its line in the first two. The last form may have fields of tracepoints behind
`<TAB>tracing data:`, as lines `<TAB><TAB>key : value`. Source: the revisions of the script in AOSP's system/extras and
in the NDKs; tried on simple-perf.txt.gz of the tests of the Firefox Profiler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from traceconv import kernel
from traceconv.errors import UsageError
from traceconv.families.common.local_time import is_moment, local_ns, local_time, refuse_zone, zone_of, zone_option
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.perf.header import (
    CLOCK_NAMES,
    LINE_UP,
    NO_CPU_HELP,
    PAIR_BOUND_NS,
    PERF_CLOCK,
    PERF_MARKS,
    Header,
    begins_header,
    marks_of_perf,
)
from traceconv.families.perf.samples import (
    BEHIND,
    BRANCH,
    EVENT,
    SOURCE_LINE,
    TIME,
    KnownSamples,
    PerfTracks,
    Place,
    Task,
    fields_of,
    frame_of,
    frame_on_event_line,
    has_columns_only,
    is_tracepoint,
    may_be_fields,
    may_be_frame,
    switch_of,
    woken_task,
)
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockSnapshot, Provenance, Zero
from traceconv.model.columns import I64
from traceconv.model.diagnostics import LINES, absent, lost, noted, repaired, skipped
from traceconv.model.numbers import LIMIT_NS, hex_of, whole, whole_of
from traceconv.model.source_info import Form
from traceconv.model.trace import StackId
from traceconv.model.track_table import TrackId

EARLY_RECORDS = Counted(
    "record made up by perf before its first event (time 0)", "records made up by perf before its first event (time 0)"
)
STACK_FRAMES = Counted("frame of call stacks", "frames of call stacks")
STACK_ENDS = Counted("end of call stacks", "ends of call stacks")
HEADER_LINES = Counted("header line kept as metadata", "header lines kept as metadata")
TRACEPOINT_FIELDS = Counted("field of tracepoints", "fields of tracepoints")

MESSAGE = skipped(
    "perf-script.message", "messages of perf itself (warnings, its summary) are not data: left out", quiet=True
)
OTHER_LINE = lost(
    "perf-script.other_line",
    "a line is not a known event, frame, header or message of perf: it is output of another program, or "
    "of an unsupported version or choice of fields",
)
LONE_FRAME = absent(
    "perf-script.frame_without_event", "a frame of a call stack follows no event: the text was cut before it"
)
CUT_STACK = absent("perf-script.cut", "the text ends inside the last event: its outer frames may be missing")
NO_PERIODS = noted(
    "perf-script.no_periods",
    "an event has no periods: each sample of it counts as one; perf script -F +period prints them",
)
MORE_COLUMNS = skipped(
    "perf-script.more_columns",
    "an event has columns that no track can show (data address, weight, branches, registers): they were left out",
)
BAD_PERIOD = repaired(
    "perf-script.period_out_of_range", "a period is too large for 63 bits: the sample counts as one event"
)
UNKNOWN_SWITCH = noted(
    "perf-script.unknown_switch",
    "a sched_switch or sched_wakeup has fields of an unknown form: kept as an instant, not as states of threads",
)
LOST_EVENTS = absent(
    "perf.lost_events",
    "the kernel could not store events (record of type LOST): samples are missing there; record with a larger -m",
)
SECOND_HEADER = noted(
    "perf-script.second_header",
    "a second recording starts in the file: its events are on the same tracks, and read with the clock of the first",
)

#: Threads without a tid get numbers from here downwards; perf prints -1 for ended threads.
_NO_TID = -2
_EVENTS_TO_JUDGE = 8
_MOST_KNOWN = 1 << 18  # frames
_LINES_TO_JUDGE = 2000
_FIELD = re.compile(rb"\t\t(\S.*?) : (.*)")
#: This many consecutive event lines without frames identify perf script.
_BARE_LINES = 8
#: An event line without a time, with its address in the same line or in the lines below.
_UNTIMED = re.compile(
    rb"\S.{0,63}?(?<!\s)\s++(?:\d{1,10}/)?\d{1,10}\s++(?:\[\d+\]\s++)?(?:\d+\s++)?[\w:.-]+:"
    rb"(?:\s++[0-9a-f]{5,16} \S.*\))?"
)
_INDENTED_FRAME = re.compile(rb" +[0-9a-f]{5,16} \S.*\)\s*")
#: The tracepoints that make states of threads, without their system.
_SCHEDULED = (b"sched_switch", b"sched_wakeup", b"sched_wakeup_new")
#: Messages of perf on stderr, which are often in the same file.
_MESSAGE = re.compile(
    rb"\[ perf (?:record|script|inject): .*\]|Warning: .*|WARNING: .*|\[?\S+\]? with build id [0-9a-f]+ not found.*|"
    rb"Failed to open \S.*, continuing without symbols|no symbols found in \S.*|Processed \d+ events and lost .*|"
    rb"Check IO/CPU overload!|Samples .* do not have .*|Kernel address maps .* restricted.*|\(END\)"
)

_COMM = re.compile(r"(?:exec)?: (.*):(-?[0-9]{1,10})/(-?[0-9]{1,10})")
_FORK = re.compile(r"\(([0-9]{1,10}):([0-9]{1,10})\):\(([0-9]{1,10}):([0-9]{1,10})\)")
_MMAP = re.compile(
    r"(-?[0-9]{1,10})/(-?[0-9]{1,10}): \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]++|0)[^\]]*+\]: (\S++) (.*)"
)
_SWITCH_RECORD = re.compile(r"(IN|OUT)( preempt)?(?:\s+(?:next|prev) pid/tid:\s*([0-9]+)/([0-9]+))?\s*")


# -- reading -----------------------------------------------------------------------------------------------------------


class _Event(msgspec.Struct):
    """An event whose frames may follow."""

    at: int
    ts: int
    thread: TrackId
    cpu: int | None
    name: str
    is_tracepoint: bool
    period: int = 1
    rest: str = ""
    frames: list[Place] = msgspec.field(default_factory=list)
    has_fields: bool = False


class _Reader:
    def __init__(self, out: Builder, pid: int | None, delta: bool) -> None:
        self.header = Header()
        self.resolution_ns = 1
        self.time_of_day: tuple[bytes, int] | None = None
        self.sample_span: tuple[int, int] | None = None
        self.without_periods: dict[str, None] = {}
        self._out = out
        self._tracks = PerfTracks(out, pid)
        self._delta = delta
        self._event: _Event | None = None
        self._tasks: dict[tuple[bytes | None, bytes | None, bytes | None], tuple[int | None, Task]] = {}
        self._threads: dict[tuple[int | None, Task], TrackId] = {}
        self._names: dict[bytes | None, tuple[str, bool]] = {None: ("samples", False)}
        self._frames: dict[bytes, Place] = {}
        self._known: KnownSamples | None = None
        self._lines = dict.fromkeys((STACK_FRAMES, TRACEPOINT_FIELDS, STACK_ENDS, HEADER_LINES), 0)
        self._events = self._first = self._latest = self._steps_back = 0
        self._others = 0  # lines that are output of other programs
        self._last_line = b""

    @property
    def relative(self) -> bool:
        """Whether the times count from the first event."""
        return self._delta or self._first == 0

    def read(self, source: Source) -> None:
        number = 0
        if kernel.module("lines") is not None and source.is_whole and not self._delta:
            number = self._read_chunks(source)
        else:  # the specification of the kernel
            for number, line in TextLines(self._out).read(source, keep_ends=True):
                frame = self._frames.get(line) if line[:1] == b"\t" else None
                if frame is not None and self._event is not None:
                    self._event.frames.append(frame)
                    self._lines[STACK_FRAMES] += 1
                else:
                    self._line(number, line)
                self._last_line = line
        self._end(source, number)

    def _read_chunks(self, source: Source) -> int:
        """Read whole chunks, samples whose lines are known together; return the number of lines."""
        known = self._known = KnownSamples(self._tracks, self._written_together, self._flush)
        rest = b""
        for chunk in source.chunks():
            data, at = rest + chunk, 0
            while at < len(data):
                at, is_cut = known.read(data, at)
                if is_cut and at and self._event is None:
                    break
                known.flush()
                while at < len(data):  # up to the next possible start of a sample
                    others = self._others
                    at = self._single_line(known, data, at)
                    if others == self._others and (self._event is None or data[at : at + 1] != b"\t"):
                        break
            rest = data[at:]
        known.flush()
        at = 0
        while at < len(rest):
            at = self._single_line(known, rest, at)
        self._lines[STACK_FRAMES] += known.reader.frame_lines
        self._lines[STACK_ENDS] += known.reader.blank_lines
        if known.reader.six_decimals:
            self.resolution_ns = 1000
        self._out.balance.read = known.number - 1
        return known.number - 1

    def _single_line(self, known: KnownSamples, data: bytes, at: int) -> int:
        end = data.find(b"\n", at) + 1 or len(data)
        self._line(known.number, data[at:end])
        known.number += 1
        return end

    def _written_together(self, ts: I64) -> None:
        """Update the state after many samples; a single one came before them."""
        count = len(ts)
        self._steps_back += int(np.count_nonzero(np.diff(ts, prepend=self._latest) < 0))
        first, self._latest = int(ts[0]), int(ts[-1])
        self.sample_span = (self.sample_span[0] if self.sample_span else first, self._latest)
        self._events += count
        self._out.balance.written += count

    def _line(self, number: int, line: bytes) -> None:
        self._last_line = line
        stripped = line.rstrip()
        if not stripped:
            self._flush()
            self._lines[STACK_ENDS] += 1
        elif line[:1] == b"\t":
            self._frame(number, line, stripped)
        elif stripped[:1] == b"#":
            if self._events and stripped.startswith(b"# captured on"):
                self._out.problem(SECOND_HEADER, number)
            elif not self._events:
                self.header.add_line(stripped)
            self._lines[HEADER_LINES] += 1
        elif TIME.search(stripped) and (match := EVENT.fullmatch(stripped)):
            self._flush()
            self._begin(number, match, line)
        else:
            self._frame(number, line, stripped)

    def _frame(self, number: int, line: bytes, stripped: bytes) -> None:
        """Read a line that is not an event: a frame of the last one, its place in the source, or something else."""
        event = self._event
        if event is not None and event.frames and SOURCE_LINE.fullmatch(stripped):
            place = event.frames[-1]
            source_line = stripped.strip().removesuffix(b" (inlined)").decode("utf-8", "replace")
            event.frames[-1] = place._replace(name=f"{place.name} ({source_line})")
            self._lines[STACK_FRAMES] += 1
            return
        if event is not None and event.is_tracepoint and self._is_field(event, line):
            self._lines[TRACEPOINT_FIELDS] += 1
            return
        frame = frame_of(stripped) if may_be_frame(line) else None
        if frame is None:
            code = MESSAGE if _MESSAGE.fullmatch(stripped.strip()) else OTHER_LINE
            if event is not None and has_columns_only(stripped):
                code = MORE_COLUMNS
            self._others += code is OTHER_LINE
            self._out.skip(code, number, repr(stripped[:60].decode("utf-8", "replace")))
        elif event is None:
            self._out.skip(LONE_FRAME, number)
        else:
            self._know(line, frame)
            event.frames.append(frame)
            self._lines[STACK_FRAMES] += 1

    def _is_field(self, event: _Event, line: bytes) -> bool:
        """Keep a line of the fields of a tracepoint, which simpleperf prints one a line; return whether it is one."""
        if line.rstrip() == b"\ttracing data:":
            event.has_fields = True
            return True
        match = _FIELD.fullmatch(line.rstrip()) if event.has_fields else None
        if match is not None:
            name, value = match[1].decode("utf-8", "replace"), match[2].decode("utf-8", "replace")
            event.rest = f"{event.rest} {name}={value}".lstrip()
        return match is not None

    # -- events ---------------------------------------------------------------------------------------------------

    def _begin(self, number: int, match: re.Match[bytes], line: bytes) -> None:
        comm, first_id, second_id, cpu, moment, seconds, decimals, record, period, name, rest = match.groups()
        ts = whole(seconds) * 10**9 + whole(decimals) * (1 if len(decimals) == 9 else 1000)
        if len(decimals) != 9:
            self.resolution_ns = 1000
        if record is None or ts:
            ts = self._time(ts)
        if moment is not None and self.time_of_day is None and is_moment(moment.decode()):
            self.time_of_day = (moment, ts)
        pid, task = self._task(comm, first_id, second_id)
        on_cpu = None if cpu is None else whole(cpu)
        if record is not None:
            self._record(number, ts, pid, task, on_cpu, record.decode(), rest.decode("utf-8", "replace"))
            return
        self.sample_span = (self.sample_span[0] if self.sample_span else ts, ts)
        shown, named_tracepoint = self._name(name)
        event = self._event = _Event(number, ts, self._thread(pid, task), on_cpu, shown, named_tracepoint)
        if name is None and period is not None:  # there is no column for the event: this is an address
            rest = period + b" " + rest
        elif period is not None:
            event.period = self._period(number, period)
        if rest:
            self._rest(number, event, rest, name if period is None else None)
        if period is None and not event.is_tracepoint:
            self.without_periods[shown] = None
        if self._known is not None and not event.is_tracepoint:
            frame = event.frames[0] if event.frames and rest in self._frames else None
            self._known.learn(line, match, event.thread, on_cpu, shown, frame)

    def _time(self, ts: int) -> int:
        """Return the time of an event; with the option `deltatime` it counts from the event before."""
        if self._delta:
            self._latest += ts
            return self._latest
        if not self._events:
            self._first = ts
        self._steps_back += ts < self._latest
        self._latest = ts
        return ts

    def _task(self, comm: bytes | None, first: bytes | None, second: bytes | None) -> tuple[int | None, Task]:
        """Return the process and the thread; a single number is the thread, two are process and thread."""
        known = self._tasks.get((comm, first, second))
        if known is None:
            pid = None if second is None or first is None else whole(first)
            number = second if second is not None else first
            tid = _NO_TID - len(self._tasks) if number is None else whole(number)
            known = self._tasks[comm, first, second] = pid, Task((comm or b"").decode("utf-8", "replace"), tid)
        return known

    def _thread(self, pid: int | None, task: Task) -> TrackId:
        known = self._threads.get((pid, task))
        if known is None:
            known = self._threads[pid, task] = self._tracks.thread(pid, task.tid, task.comm)
        return known

    def _name(self, name: bytes | None) -> tuple[str, bool]:
        """Return the name of an event, and whether it is a tracepoint."""
        known = self._names.get(name)
        if known is None:
            shown = (name or b"").decode("utf-8", "replace")
            known = self._names[name] = shown, is_tracepoint(shown)
        return known

    def _period(self, number: int, digits: bytes) -> int:
        period = whole_of(digits)
        if period is not None and period <= LIMIT_NS:
            return period
        self._out.problem(BAD_PERIOD, number, digits.decode())
        return 1

    def _rest(self, number: int, event: _Event, rest: bytes, name: bytes | None) -> None:
        """Read the text behind the name of an event, None behind a period: the fields of a tracepoint, or a frame."""
        frame = None if event.is_tracepoint else self._frames.get(rest)
        if frame is None and not event.is_tracepoint:
            frame, more = frame_on_event_line(rest)
            if more and frame is None and name is not None and may_be_fields(name, rest):
                event.is_tracepoint = True
            elif more:
                self._out.problem(MORE_COLUMNS, number, repr(rest[:40].decode("utf-8", "replace")))
            elif frame is not None:
                self._know(rest, frame)
        if event.is_tracepoint:
            event.rest = rest.decode("utf-8", "replace")
        elif frame is not None:
            event.frames.append(frame)

    def _know(self, line: bytes, frame: Place) -> None:
        """Cache a frame by its line, unless each line has its own address, as there are too many then."""
        if len(self._frames) >= _MOST_KNOWN:
            self._frames.clear()
        self._frames[line] = frame

    def _flush(self) -> None:
        """Write the event whose frames are complete now, if there is one."""
        event = self._event
        if event is None:
            return
        self._event = None
        self._count_event()
        stack = self._tracks.stack(event.frames)
        if event.is_tracepoint:
            self._tracepoint(event, stack)
        else:
            self._tracks.sample(event.thread, event.ts, stack, event.name, event.period, event.at, event.cpu)

    def _count_event(self) -> None:
        self._events += 1
        self._out.balance.written += 1

    def _tracepoint(self, event: _Event, stack: StackId) -> None:
        tracks, action = self._tracks, event.name.removeprefix("sched:")
        if action == "sched_switch" and (switch := switch_of(event.rest)):
            tracks.switch(event.ts, event.cpu, *switch, event.at, stack)
            return
        woken = woken_task(event.rest) if action in ("sched_wakeup", "sched_wakeup_new") else None
        if action in ("sched_switch", "sched_wakeup", "sched_wakeup_new") and woken is None:
            self._out.problem(UNKNOWN_SWITCH, event.at, event.rest[:60])
        args = fields_of(event.rest)
        if event.cpu is not None:
            args["cpu"] = event.cpu
        tracks.tracepoint(event.thread, event.ts, event.name, args, stack, event.at, event.cpu)
        if woken is not None:
            tracks.wakeup(event.ts, woken, event.at)

    def _record(self, at: int, ts: int, pid: int | None, task: Task, cpu: int | None, kind: str, rest: str) -> None:
        """Read PERF_RECORD_...: names and processes of threads, and switches; others become instants."""
        tid, text = task.tid, rest.strip(": ")
        args: dict[str, Any] = {"text": text} if text else {}
        if kind == "PERF_RECORD_COMM" and (match := _COMM.fullmatch(rest)):
            pid, tid, args = whole(match[2]), whole(match[3]), {"comm": match[1]}
            self._tracks.know(pid, tid, match[1])
        elif kind in ("PERF_RECORD_FORK", "PERF_RECORD_EXIT") and (match := _FORK.fullmatch(rest)):
            args = dict(zip(("pid", "tid", "parent_pid", "parent_tid"), map(whole, match.groups()), strict=True))
            self._tracks.know(args["pid"], args["tid"])
            self._tracks.know(args["parent_pid"], args["parent_tid"])
        elif kind in ("PERF_RECORD_MMAP", "PERF_RECORD_MMAP2") and (match := _MMAP.fullmatch(rest)):
            self._tracks.know(whole(match[1]), whole(match[2]))
            args = {
                "file": match[7],
                "address": match[3],
                "size_bytes": hex_of(match[4]),
                "file_offset": match[5],
                "protection": match[6].rstrip(":"),
            }
        elif kind in ("PERF_RECORD_SWITCH", "PERF_RECORD_SWITCH_CPU_WIDE") and (
            match := _SWITCH_RECORD.fullmatch(rest)
        ):
            self._count_event()
            if match[1] == "IN":
                self._tracks.switch_in(ts, cpu, task, at, stated=True)
            else:
                self._tracks.switch_out(ts, cpu, task, "R+" if match[2] else "", at)
            return
        elif kind.startswith("PERF_RECORD_LOST"):
            self._out.problem(LOST_EVENTS, at, text)
        if ts == 0:
            self._out.balance.merged[EARLY_RECORDS] += 1
            return
        self._count_event()
        self._tracks.record(pid, tid, ts, kind, args, at)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end(self, source: Source, number: int) -> None:
        line = self._last_line
        stripped = line.rstrip()
        in_stack = may_be_frame(line) and not (EVENT.fullmatch(stripped) or has_columns_only(stripped))
        if self._event is not None and (in_stack or not line.endswith(b"\n")):
            self._out.problem(CUT_STACK, number)
        self._flush()
        if not self._events:
            raise source.malformed(
                "no event with a time found, expected lines such as `python 7 [000] 12.345678: 1001001 cpu-clock: ...`",
                hint="a header alone is read with --from perf-header; without times, add them: perf script -F +time",
            )
        if self._first == 0 and self._steps_back > max(_EVENTS_TO_JUDGE, self._events // 4):
            raise source.malformed(
                f"the times begin with 0 and step back {self._steps_back} times, as those of --deltatime do",
                hint="-O deltatime=true reads them as the time since the event before",
            )
        for reason, count in self._lines.items():
            if count:
                self._out.balance.merged[reason] += count
        self._tracks.finish()


def _header_beside(source: Source, named: Source | None, span: tuple[int, int] | None, out: Builder) -> Header | None:
    """Return the header of a recording from another file: the named one, or one beside it with times that cover its."""
    candidates = [named] if named is not None else [Source(path) for path in _header_paths(source)]
    for candidate in candidates:
        if not begins_header(candidate.head().text):
            if named is not None:
                raise candidate.malformed(
                    "no perf header found, expected `# ========` and `# captured on`",
                    hint="write it with perf script --header-only",
                    where="line 1",
                )
            continue
        header = Header()
        for _, line in candidate.lines():
            if not line.startswith(b"#"):
                break
            header.add_line(line)
        covers = header.covers(span)
        if named is not None or covers:
            verdict = "lie" if covers else "do not all lie"
            text = f"{candidate.name} beside the file was read as its header"
            out.note(f"{text}; the samples {verdict} in the times that it states")
            return header
    return None


def _header_paths(source: Source) -> list[Path]:
    """Return the files beside the input that may hold its header, by name."""
    if source.path is None or "script" not in source.path.name:
        return []
    before, _, after = source.path.name.partition("script")
    suffix = after[after.rindex(".") :] if "." in after else ""
    names = dict.fromkeys([f"{before}header{after}", f"{before}header{suffix}", f"{before}script_header{suffix}"])
    paths = [source.path.with_name(name) for name in names]
    return [path for path in paths if path.is_file() and not source.is_same_file(path)]


# -- recognising -------------------------------------------------------------------------------------------------------


def _is_certain(match: re.Match[bytes], after: bytes) -> bool:
    """Return whether an event line is of perf script for certain, by itself or by the line behind it."""
    has_ids, record, period, name, rest = match[2] is not None, match[8], match[9], match[10], match[11]
    if record is not None:
        return True
    if name in _SCHEDULED and has_ids:
        fields = rest.decode("utf-8", "replace")
        return switch_of(fields) is not None or woken_task(fields) is not None
    if name is not None and has_ids and is_tracepoint(name.decode("utf-8", "replace")):
        return True
    if name is not None and period is not None and not rest:
        return True
    if after[:1] == b"\t":
        return frame_of(after) is not None
    if name is not None and has_ids and _INDENTED_FRAME.fullmatch(after):
        return True
    if BEHIND.search(rest) or BRANCH.search(rest):
        return has_ids and (frame_on_event_line(rest)[0] is not None or BEHIND.match(rest) is not None)
    return rest.endswith(b")") and frame_of(rest) is not None


def _match_of(lines: Sequence[bytes]) -> Match:
    """Return what the first lines of a text tell: YES by an event that is certain, or by nothing but event lines."""
    for line, after in zip_longest(lines, lines[1:], fillvalue=b""):
        match = EVENT.fullmatch(line.rstrip()) if line[:1] not in (b"#", b"") else None
        if match is not None and _is_certain(match, after):
            return Match.yes("an event line of perf script")
    first = [line.rstrip() for line in lines if line.strip() and not line.startswith(b"#")][:_BARE_LINES]
    matches = [match for line in first if (match := EVENT.fullmatch(line)) is not None and match[10]]
    if len(matches) == _BARE_LINES and not any(match[11] for match in matches):
        return Match.yes("event lines of perf script without frames")
    named = [match for match in matches if match[2] and match[9] is None and may_be_fields(match[10], match[11])]
    if len(named) == _BARE_LINES:
        return Match.maybe("event lines of perf script with fields, without the systems of tracepoints")
    frames = [line for line in first if line[:1] in b" \t" and frame_of(line) is not None]
    events = [line for line in first if line not in frames]
    has_addresses = bool(frames) or any(line.endswith(b")") for line in events)
    if events and has_addresses and all(map(_UNTIMED.fullmatch, events)):
        return Match.fallback("event lines of perf script without times")
    return Match.no("no event line of perf script")


@dataclass(frozen=True)
class PerfScript(Importer):
    name = "perf-script"
    title = "Linux perf script text"
    url = "https://man7.org/linux/man-pages/man1/perf-script.1.html"
    versions = "checked with perf 6.1; any fields with time and event; also report_sample.py of Android's simpleperf"
    signature = Signature(
        patterns=(rb"\.\d{1,9}:\s", rb"\s\d{1,10}[\s/].{0,99}?[\w:.-]:(?:\s*?[\r\n]|\s+[0-9a-f]{5,16} |\Z)")
    )
    clock = PERF_CLOCK
    record = (
        "perf record -k CLOCK_MONOTONIC --sample-cpu -g -F 499 python run.py && "
        "perf script --header --ns -F comm,pid,tid,cpu,time,event,period,ip,sym,symoff,dso > perf.script.txt"
    )
    skips = (MESSAGE, MORE_COLUMNS)
    clockid: str = option(
        "", "the clock of a text without header (perf record -k): monotonic, boottime, monotonic_raw, realtime, tai."
    )
    pid: int | None = option(None, "the process of all threads, if the text does not print it.")
    deltatime: bool = option(False, "the text was printed with --deltatime: times count from the event before.")
    utc_offset: str = option("", 'the zone of a text with +tod and without header, as "+02:00": it has local time.')
    header: str = option(
        "",
        "the file with the output of perf script --header-only, for a text without header. One beside the text "
        "(perf.header.txt of perf.script.txt) is used without this option if all samples lie in its times.",
    )

    line_up = (
        f"Print with --header. {LINE_UP} Samples also align it, if another file has slices of a sampled thread over "
        "some seconds."
    )
    becomes = (
        ("sample with its call stack", "call stack sample of its thread, with its CPU, weighted with the period"),
        ("tracepoint", "instant with its fields as args, and a sample if it has a stack"),
        ("sched_switch, sched_wakeup, PERF_RECORD_SWITCH", "slices on the track `state` of the thread"),
        (
            "PERF_RECORD_COMM, FORK, EXIT, MMAP2 and others",
            "instant on the row `perf records` of its process; names of threads and processes",
        ),
        ("header", "metadata, clock, snapshot of clock and wall clock"),
    )
    lost = (
        "Addresses and offsets of frames are left out: a frame is its symbol and file.",
        "Data addresses, weights, branches and registers (-F addr, weight, brstack, uregs) are left out.",
        "Without -F +pid, the process of a thread is known only if another merged file shows that thread.",
        NO_CPU_HELP,
    )
    marks = PERF_MARKS

    def form(self, head: Head) -> Form:
        """Return the third form of a recording: a printout of events."""
        return Form(2, marks_of_perf)

    def sniff(self, head: Head) -> Match:
        """Return YES by an event line with a frame, tracepoint fields or a record, or by nothing but event lines."""
        return _match_of(head.data.splitlines()[:_LINES_TO_JUDGE])

    def read(self, source: Source, out: Builder) -> None:
        if self.clockid and self.clockid not in CLOCK_NAMES:
            known = ", ".join(CLOCK_NAMES)
            raise UsageError(f"option clockid of {self.name} is one of {known}, not {self.clockid!r}")
        beside = Source(self.header) if self.header else None
        zone = zone_of(self.name, self.utc_offset)
        out.counts(LINES)
        reader = _Reader(out, self.pid, self.deltatime)
        reader.read(source)
        out.info.without_periods = tuple(reader.without_periods)
        for event in reader.without_periods:
            out.problem(NO_PERIODS, event)
        if not reader.header.info:
            reader.header = _header_beside(source, beside, reader.sample_span, out) or reader.header
        domain = reader.header.tell(out, reader.resolution_ns, self.clockid, relative=reader.relative)
        if reader.header.reference is not None or domain.zero is Zero.UNIX_EPOCH:
            refuse_zone(self.name, self.utc_offset, source.name, "its clock is related to the wall clock already")
        if reader.time_of_day is None or reader.header.reference is not None or domain.zero is Zero.UNIX_EPOCH:
            return
        moment, ts = reader.time_of_day
        if self.utc_offset:
            wall = local_ns(moment.decode(), zone)
            method = f"time of day in the text, read as {zone}"
            local = local_time(zone)
            out.clocks.snapshot(
                ClockSnapshot(domain, ts, REALTIME, wall, PAIR_BOUND_NS, method, local, Provenance.ASSUMED)
            )
        else:
            out.metadata["perf_local_time_of_first_event"] = moment.decode()
            option = zone_option(out.info.name)
            out.note(f"the time of day in the text is local time: {option} puts it on the wall clock")
