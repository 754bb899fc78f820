"""Text of `perf script`: samples of `perf record` with their call stacks, tracepoints, records of the kernel.

    # cmdline : /usr/bin/perf record -k CLOCK_MONOTONIC -F 499 -g --sample-cpu python run.py
    python 18571/18571 [001]  2674.579460047:    2004008 cpu-clock:
    <TAB>           8ab00 pthread_getspecific@@GLIBC_2.34+0x0 (/usr/lib/x86_64-linux-gnu/libc.so.6)

`_text` describes the lines, `_tracks` their tracks. Times are seconds with 6 decimals, with 9 after --ns. With
--reltime they count from the first event; --deltatime prints the time since the event before, which an option has to
state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar

import msgspec
import numpy as np

from traceconv import kernel
from traceconv.families.common.idle_lines import BLANK, IdleLines, holds, lines_but
from traceconv.families.common.local_time import is_moment, local_ns, local_time, refuse_zone, zone_of, zone_option
from traceconv.families.importer import Match, option
from traceconv.families.perf import _text as text
from traceconv.families.perf._repeated import RepeatedSamples
from traceconv.families.perf._tracks import (
    NO_CPU_HELP,
    NO_STACK,
    PAIR_BOUND_NS,
    PERF_CLOCK,
    PERF_MARKS,
    Header,
    PerfTracks,
    Place,
    Task,
    checked_clock,
    marks_of_perf,
)
from traceconv.families.perf.header import header_beside
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Provenance, Zero
from traceconv.model.counted import EARLY_RECORDS, HEADER_LINES, LINES, STACK_ENDS, STACK_FRAMES, TRACEPOINT_FIELDS
from traceconv.model.diagnostics import absent, lost, noted, repaired, skipped
from traceconv.model.forms import Form
from traceconv.model.marks import FormatMarks
from traceconv.model.numbers import whole, whole_of
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64, StackId, TrackId

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

_NO_NAME = "samples"
#: Threads without a tid get numbers from here downwards; perf prints -1 for ended threads.
_NO_TID = -2
_EVENTS_TO_JUDGE = 8
_LINES_TO_JUDGE = 2000
_MOST_KNOWN = 1 << 18

#: The reasons of merged lines.
_FRAMES, _ENDS, _HEADER = STACK_FRAMES, STACK_ENDS, HEADER_LINES
_FIELDS = TRACEPOINT_FIELDS
_EARLY = EARLY_RECORDS


#: Lines of a header behind the first event; lines of other programs.
_COMMENTS = rb"#(?! captured on)[^\n\r\x1b]*+\r?\n"
_OTHERS = lines_but(
    rb"[#\t]|  |[ \t]\s*[0-9a-f]{1,16}\s|[0-9a-f]{16}\t", rb"\s*(?:%b)" % text.MESSAGE, holds(rb"\d\.\d+:\s")
)


class _Event(msgspec.Struct):
    """An event whose frames may follow."""

    at: int
    ts: int
    thread: TrackId
    cpu: int | None
    period: int
    name: str
    rest: str
    is_tracepoint: bool
    frames: list[Place] = msgspec.field(default_factory=list)
    has_fields: bool = False


class _Names:
    """The threads and events by the text of their lines."""

    def __init__(self, tracks: PerfTracks) -> None:
        self._tracks = tracks
        self._tasks: dict[tuple[bytes | None, bytes | None, bytes | None], tuple[int | None, Task]] = {}
        self._threads: dict[tuple[int | None, Task], TrackId] = {}
        self._names: dict[bytes, tuple[str, bool]] = {}

    def task(self, comm: bytes | None, first: bytes | None, second: bytes | None) -> tuple[int | None, Task]:
        """Return the process, and the thread with its name.

        A single number is the thread, two are process and thread.
        """
        known = self._tasks.get((comm, first, second))
        if known is None:
            pid = None if second is None or first is None else whole(first)
            number = second if second is not None else first
            tid = _NO_TID - len(self._tasks) if number is None else whole(number)
            known = self._tasks[comm, first, second] = pid, Task((comm or b"").decode("utf-8", "replace"), tid)
        return known

    def thread(self, pid: int | None, task: Task) -> TrackId:
        """Return the track of a thread, with the name in the line."""
        known = self._threads.get((pid, task))
        if known is None:
            known = self._threads[pid, task] = self._tracks.thread(pid, task.tid, task.comm)
        return known

    def event(self, name: bytes | None) -> tuple[str, bool]:
        """Return the name of an event, and whether it is a tracepoint."""
        if name is None:
            return _NO_NAME, False
        known = self._names.get(name)
        if known is None:
            shown = name.decode("utf-8", "replace")
            known = self._names[name] = shown, text.is_tracepoint(shown)
        return known


class _Reader:
    """Reads one text into a builder."""

    def __init__(self, out: Builder, pid: int | None, delta: bool) -> None:
        self.header = Header()
        self.resolution_ns = 1
        self.time_of_day: tuple[bytes, int] | None = None
        self.sample_span: tuple[int, int] | None = None
        self._out = out
        self._tracks = PerfTracks(out, pid)
        self._delta = delta
        self._now = 0
        self._event: _Event | None = None
        self._names = _Names(self._tracks)
        self._frames: dict[bytes, Place] = {}
        self._frame_lines = self._field_lines = self._ends = self._header_lines = self._events = 0
        self._first = self._latest = 0
        self._steps_back = 0
        self.without_periods: dict[str, None] = {}
        self._repeated: RepeatedSamples | None = None
        self._lines = IdleLines(out)

    @property
    def relative(self) -> bool:
        """Whether the times count from the first event."""
        return self._delta or self._first == 0

    def read(self, source: Source) -> None:
        """Read all lines."""
        if kernel.module("lines") is not None and source.is_whole and not self._delta:
            self._read_chunks(source)
            return
        known = self._frames
        for number, line in self._lines.read(source, keep_ends=True):
            if line[:1] == b"\t":
                frame = known.get(line)
                if frame is not None and self._event is not None:
                    self._event.frames.append(frame)
                    self._frame_lines += 1
                    continue
            self._line(number, line)
        self._end(source, self._lines.last, self._lines.before)

    def _read_chunks(self, source: Source) -> None:
        """Read whole chunks; samples whose lines are known except times and periods are read together."""
        repeated = self._repeated = RepeatedSamples(self._tracks, self._written_together, self._flush)
        rest = b""
        for chunk in source.chunks():
            data, at = rest + chunk, 0
            while at < len(data):
                at, is_cut = repeated.read(data, at)
                if is_cut and at and self._event is None:
                    break
                repeated.flush()
                while at < len(data):  # up to the next possible start of a sample
                    at = self._single_line(repeated, data, at)
                    if self._event is None or data[at : at + 1] != b"\t":
                        break
            rest = data[at:]
        repeated.flush()
        at = 0
        while at < len(rest):
            at = self._single_line(repeated, rest, at)
        self._frame_lines += repeated.reader.frame_lines
        self._ends += repeated.reader.blank_lines
        if repeated.reader.six_decimals:
            self.resolution_ns = 1000
        self._out.balance.read = repeated.number - 1
        self._end(source, repeated.number - 1, self._lines.before)

    def _single_line(self, repeated: RepeatedSamples, data: bytes, at: int) -> int:
        """Read the line at a position; return the start of the next one that may have a meaning."""
        at, repeated.number = self._lines.look_at(data, at, self._line, repeated.number)
        return at

    def _written_together(self, ts: I64) -> None:
        """Update the state after many samples; a single one came before them."""
        count = len(ts)
        self._steps_back += int(np.count_nonzero(np.diff(ts, prepend=self._latest) < 0))
        first, self._latest = int(ts[0]), int(ts[-1])
        self.sample_span = (self.sample_span[0] if self.sample_span else first, self._latest)
        self._events += count
        self._out.balance.written += count

    def _end(self, source: Source, number: int, line: bytes) -> None:
        stripped = line.rstrip()
        in_stack = text.may_be_frame(line) and not (text.EVENT.fullmatch(stripped) or text.has_columns_only(stripped))
        if self._event is not None and (in_stack or not line.endswith(b"\n")):
            self._out.problem(CUT_STACK, number)
        self._flush()
        self._finish(source)

    def _line(self, number: int, line: bytes) -> None:
        stripped = line.rstrip()
        if not stripped and self._event is None:
            self._lines.idle(self._add_ends, BLANK)
        elif not stripped:
            self._flush()
            self._ends += 1
        elif line[:1] == b"\t":
            self._frame(number, line)
        elif stripped[:1] == b"#":
            self._header_line(number, stripped)
        else:
            match = text.EVENT.fullmatch(stripped)
            if match is not None:
                self._flush()
                self._begin(number, match, line)
            else:
                self._frame(number, line)

    def _header_line(self, number: int, line: bytes) -> None:
        if self._events and line.startswith(b"# captured on"):
            self._out.problem(SECOND_HEADER, number)
            self._header_lines += 1
        elif not self._events and line != b"#":
            text.add_header_line(self.header, line)
            self._header_lines += 1
        else:
            self._lines.idle(self._add_header_lines, _COMMENTS if self._events else rb"#[^\S\n]*\n")

    def _add_ends(self, count: int) -> None:
        self._ends += count

    def _add_header_lines(self, count: int) -> None:
        self._header_lines += count

    def _frame(self, number: int, line: bytes) -> None:
        """Read a line that is not an event: a frame of the last one, its place in the source, or something else."""
        event = self._event
        stripped = line.rstrip()
        if event is not None and event.frames and text.is_source_line(stripped):
            place = event.frames[-1]
            where = stripped.strip().removesuffix(b" (inlined)").decode("utf-8", "replace")
            name = f"{place.name} ({where})"
            event.frames[-1] = place._replace(name=name)
            self._frame_lines += 1
            return
        if event is not None and event.is_tracepoint and self._is_field(event, line):
            self._field_lines += 1
            return
        frame = text.frame_of(stripped) if text.may_be_frame(line) else None
        if frame is None:
            code = MESSAGE if text.is_message(stripped) else OTHER_LINE
            if event is not None and text.has_columns_only(stripped):
                code = MORE_COLUMNS
            like = _OTHERS if code is OTHER_LINE else b""
            self._lines.skip(code, number, repr(stripped[:60].decode("utf-8", "replace")), like)
        elif event is None:
            self._lines.skip(LONE_FRAME, number)
        else:
            self._know(line, frame)
            event.frames.append(frame)
            self._frame_lines += 1

    def _is_field(self, event: _Event, line: bytes) -> bool:
        """Return whether a line belongs to the fields of a tracepoint, which simpleperf prints one a line.

        If so, it is kept.
        """
        if text.begins_tracing_data(line):
            event.has_fields = True
            return True
        field = text.field_of(line) if event.has_fields else None
        if field is not None:
            event.rest = f"{event.rest} {field}".lstrip()
        return field is not None

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
        pid, task = self._names.task(comm, first_id, second_id)
        on_cpu = None if cpu is None else whole(cpu)
        if record is not None:
            self._record(number, ts, (pid, task.tid), task, on_cpu, record.decode(), rest.decode("utf-8", "replace"))
            return
        self.sample_span = (self.sample_span[0] if self.sample_span else ts, ts)
        shown, is_tracepoint = self._names.event(name)
        event = self._event = _Event(number, ts, self._names.thread(pid, task), on_cpu, 1, shown, "", is_tracepoint)
        if name is None and period is not None:  # there is no column for the event: this is an address
            rest = period + b" " + rest
        elif period is not None:
            event.period = self._period(number, period)
        if rest:
            self._rest(number, event, rest, name if period is None else None)
        if period is None and not event.is_tracepoint:
            self.without_periods[shown] = None
        if self._repeated is not None and not event.is_tracepoint:
            frame = event.frames[0] if event.frames and rest in self._frames else None
            self._repeated.learn(line, match, event.thread, on_cpu, shown, frame)

    def _time(self, ts: int) -> int:
        """Return the time of an event; with the option `deltatime` it counts from the event before."""
        if self._delta:
            self._now += ts
            return self._now
        if not self._events:
            self._first = ts
        self._steps_back += ts < self._latest
        self._latest = ts
        return ts

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
            frame, more = text.frame_on_event_line(rest)
            if more and frame is None and name is not None and text.may_be_fields(name, rest):
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
        """Write the event whose frames are complete now."""
        event = self._event
        if event is None:
            return
        self._event = None
        self._events += 1
        self._out.balance.written += 1
        stack = self._tracks.stack(event.frames) if event.frames else NO_STACK
        if event.is_tracepoint:
            self._tracepoint(event, stack)
        else:
            self._tracks.sample(event.thread, event.ts, stack, event.name, event.period, event.at, event.cpu)

    def _tracepoint(self, event: _Event, stack: StackId) -> None:
        tracks, name = self._tracks, event.name
        action = name.removeprefix("sched:")
        if action == "sched_switch":
            switch = text.switch_of(event.rest)
            if switch is not None:
                tracks.switch(event.ts, event.cpu, *switch, event.at, stack)
                return
            self._out.problem(UNKNOWN_SWITCH, event.at, event.rest[:60])
        args = text.fields_of(event.rest)
        if event.cpu is not None:
            args["cpu"] = event.cpu
        tracks.tracepoint(event.thread, event.ts, name, args, stack, event.at, event.cpu)
        if action in ("sched_wakeup", "sched_wakeup_new"):
            task = text.woken_task(event.rest)
            if task is not None:
                tracks.wakeup(event.ts, task, event.at)
            else:
                self._out.problem(UNKNOWN_SWITCH, event.at, event.rest[:60])

    # -- records of the kernel --------------------------------------------------------------------------------------

    def _record(
        self, at: int, ts: int, ids: tuple[int | None, int], task: Task, cpu: int | None, kind: str, rest: str
    ) -> None:
        """Read PERF_RECORD_...: names and processes of threads, and switches; others become instants."""
        args: dict[str, Any] = {"text": rest.strip(": ")} if rest.strip(": ") else {}
        if kind == "PERF_RECORD_COMM" and (comm := text.comm_of(rest)):
            self._tracks.know(comm[1], comm[2], comm[0])
            ids, args = (comm[1], comm[2]), {"comm": comm[0]}
        elif kind in ("PERF_RECORD_FORK", "PERF_RECORD_EXIT") and (fork := text.fork_of(rest)):
            self._tracks.know(fork[0], fork[1])
            self._tracks.know(fork[2], fork[3])
            args = {"pid": fork[0], "tid": fork[1], "parent_pid": fork[2], "parent_tid": fork[3]}
        elif kind in ("PERF_RECORD_MMAP", "PERF_RECORD_MMAP2") and (mmap := text.mmap_of(rest)):
            self._tracks.know(mmap[0], mmap[1])
            args = mmap[2]
        elif kind in ("PERF_RECORD_SWITCH", "PERF_RECORD_SWITCH_CPU_WIDE") and (switch := text.switch_record_of(rest)):
            self._switch_record(at, ts, task, cpu, *switch)
            return
        elif kind.startswith("PERF_RECORD_LOST"):
            self._out.problem(LOST_EVENTS, at, rest.strip(": "))
        if ts == 0:
            self._out.balance.merged[_EARLY] += 1
            return
        self._events += 1
        self._out.balance.written += 1
        self._out.instant(self._tracks.thread(*ids), ts, kind, "record", args, at)

    def _switch_record(self, at: int, ts: int, task: Task, cpu: int | None, begins: bool, preempted: bool) -> None:
        self._events += 1
        self._out.balance.written += 1
        if begins:
            self._tracks.switch_in(ts, cpu, task, at, own=True)
        else:
            self._tracks.switch_out(ts, cpu, task, "R+" if preempted else "", at)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _finish(self, source: Source) -> None:
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
        counts = (self._frame_lines, self._field_lines, self._ends, self._header_lines)
        for what, count in zip((_FRAMES, _FIELDS, _ENDS, _HEADER), counts, strict=True):
            if count:
                self._out.balance.merged[what] += count
        self._tracks.finish()


@dataclass(frozen=True)
class PerfScript:
    """Text of perf script."""

    clockid: str = option(
        "",
        "what the times of a text without header count: monotonic, monotonic_raw, realtime, boottime or tai, "
        "as given to perf record -k.",
    )
    pid: int | None = option(None, "the process of all threads, if the text does not print it.")
    deltatime: bool = option(False, "the text was printed with --deltatime: times count from the event before.")
    utc_offset: str = option(
        "",
        'the time zone of a text with +tod and without header, as "+02:00": it prints local time.',
    )
    header: str = option(
        "",
        "the file with the output of perf script --header-only, for a text without header. One beside the "
        "text (perf.header.txt of perf.script.txt) is used without this option if all samples lie in its "
        "times.",
    )

    name: ClassVar[str] = "perf-script"
    title: ClassVar[str] = "Linux perf script text"
    url: ClassVar[str] = "https://man7.org/linux/man-pages/man1/perf-script.1.html"
    versions: ClassVar[str] = (
        "checked with perf 6.1; any choice of fields with time and event, with or without header; also "
        "report_sample.py of Android's simpleperf"
    )
    clock: ClassVar[ClockDomain] = PERF_CLOCK
    marks: ClassVar[FormatMarks] = PERF_MARKS
    record: ClassVar[str] = (
        "perf record -k CLOCK_MONOTONIC --sample-cpu -g -F 499 python run.py && "
        "perf script --header --ns -F comm,pid,tid,cpu,time,event,period,ip,sym,symoff,dso > perf.script.txt"
    )
    line_up: ClassVar[str] = (
        "Record with -k CLOCK_MONOTONIC and print with --header. The header then names the clock and relates "
        "it to the wall clock. No other tool reads perf's default clock (without -k). If another file is on "
        "CLOCK_MONOTONIC or relates it to the wall clock, --clock FILE=monotonic places it, to within 10 ms and 500 "
        "ppm of the time since boot (2 s per hour). Or use --offset, or let the samples align it, if another file has "
        "slices of a sampled thread over some seconds."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sample with its call stack", "call stack sample of its thread, with its CPU, weighted with the period"),
        ("tracepoint", "instant with its fields as args, and a sample if it has a stack"),
        ("sched_switch, sched_wakeup, PERF_RECORD_SWITCH", "slices on the track `state` of the thread"),
        ("PERF_RECORD_COMM, FORK, EXIT, MMAP2 and others", "instant; names of threads and their processes"),
        ("header", "metadata, clock, snapshot of clock and wall clock"),
    )
    skips = (MESSAGE, MORE_COLUMNS)
    lost: ClassVar[tuple[str, ...]] = (
        "Addresses and offsets of frames are left out: a frame is its symbol and file.",
        "Data addresses, weights, branches and registers (-F addr, weight, brstack, uregs) are left out.",
        "Without -F +pid, the process of a thread is known only if another merged file shows that thread.",
        NO_CPU_HELP,
    )
    checked = (
        ("perf 6.1", "recorded", "events, times and periods against perf report; CPUs against perf.data"),
        (
            "perf 5.11 and others",
            "3 public recordings (graphviz.perf, gzip.perf, test.perf of the Firefox Profiler's tests)",
            "all lines are read: events, frames, header",
        ),
        (
            "perf 3 to 6.17",
            "35 public texts (repositories brendangregg/FlameGraph, jlfwong/speedscope, jonhoo/inferno, "
            "gxr1022/Hash_rt, haandfeng/MultiThreadProfilling, CaoYucong/CWM-project, DarkBenky/ReadWriteBytes, "
            "nishkp/598APE-HW3, wukun1113216744/cpu_check)",
            "by a reading of our own: time and thread of 20,008 samples, their frames, sums of periods",
        ),
        (
            "simpleperf (report_sample.py)",
            "its revisions in AOSP and the NDKs; 1 public recording (simple-perf.txt of the Firefox Profiler's tests)",
            "163 of 163 samples, 4135 of 4135 frames; header and fields of tracepoints after the script only",
        ),
    )

    def form(self, head: Head) -> Form:
        """Return the third form of a recording: a printout of events."""
        return Form(2, marks_of_perf)

    def sniff(self, head: Head) -> Match:
        """Return YES by an event line with a frame, tracepoint fields or a record, or by nothing but event lines."""
        lines = head.data.splitlines()[:_LINES_TO_JUDGE]
        for line, after in zip_longest(lines, lines[1:], fillvalue=b""):
            match = text.EVENT.fullmatch(line.rstrip()) if line[:1] not in (b"#", b"") else None
            if match is not None and text.is_certain(match, after):
                return Match.yes("an event line of perf script")
        if text.are_bare_events(lines):
            return Match.yes("event lines of perf script without frames")
        if text.are_bare_events(lines, with_fields=True):
            return Match.maybe("event lines of perf script with fields, without the systems of tracepoints")
        if text.are_untimed(lines):
            return Match.fallback("event lines of perf script without times")
        return Match.no("no event line of perf script")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole text."""
        checked_clock(self.name, self.clockid)
        beside = Source(self.header) if self.header else None
        zone = zone_of(self.name, self.utc_offset)
        out.info.unit = "line"
        out.balance.unit = LINES
        reader = _Reader(out, self.pid, self.deltatime)
        reader.read(source)
        out.info.without_periods = tuple(reader.without_periods)
        for event in reader.without_periods:
            out.problem(NO_PERIODS, event)
        if not reader.header.info:
            reader.header = header_beside(source, beside, reader.sample_span, out) or reader.header
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
