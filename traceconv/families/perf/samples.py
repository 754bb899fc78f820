"""The events of a recording: what they become (threads with call stacks and states), and how perf prints them.

The importers of text, JSON and perf.data all use `PerfTracks` and `Header`, so that a recording gives the same tracks,
names and samples in each form:

    tracks = PerfTracks(out)
    thread = tracks.thread(pid, tid, comm)              # pid None: not printed; the same ids give the same track
    tracks.know(pid, tid, comm)                         # the same without drawing it: PERF_RECORD_COMM, FORK, MMAP
    stack = tracks.stack([Place(symbol, dso), ...])     # innermost frame first, as perf prints them
    tracks.sample(thread, ts, stack, "cpu-clock", period, at, cpu)
    tracks.tracepoint(thread, ts, "syscalls:sys_enter_read", args, stack, at, cpu)
    tracks.switch(ts, cpu, Task("python", 7, 120), "S", Task("swapper/0", 0, 120), at)
    tracks.finish()                                     # ends what is open, names the processes
    header.tell(out, resolution_ns)                     # clock, snapshot, metadata

An event that has a call stack is a sample of its thread. A tracepoint is an instant with its fields, and a sample
besides if it has a stack. A frame is a symbol (category: the file that it is in) without its address, so frames of
one function are one.

The text. `EVENT` is the line that begins an event in the output of `perf script`; frames, fields of a tracepoint or
columns that are left out follow in it or below. Samples whose lines have occurred before, except times and periods, are
recognised by their bytes: the text before the time names thread and CPU, the text behind the period the event.
`families.common._lines` finds them and assembles stacks, `KnownSamples` keeps what the lines mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from traceconv import kernel
from traceconv.model.builder import Builder
from traceconv.model.columns import I32, I64
from traceconv.model.diagnostics import absent
from traceconv.model.numbers import whole, whole_of
from traceconv.model.trace import NO_CPU, StackId
from traceconv.model.track_table import NO_TRACK, TrackId

NO_STACK = StackId(-1)
#: The names of the letters of prev_state, from the documentation of the kernel.
_STATES = {
    "R": "Runnable",
    "S": "Sleeping",
    "D": "Uninterruptible sleep",
    "T": "Stopped",
    "t": "Traced",
    "X": "Dead",
    "Z": "Zombie",
    "P": "Parked",
    "I": "Idle",
    "K": "Wakekill",
    "W": "Waking",
}
_RUNNING, _RUNNABLE = "Running", "Runnable"
_NO_PID_HELP = "the recording as printed names threads only; perf script -F +pid prints the process, too"

SWITCH_IN_UNSEEN = absent(
    "perf.switch_in_unseen",
    "a thread ran again without a record of its switch-in (as without -a): its wait was ended at its next event",
    quiet=True,
)
SWITCH_OUT_UNSEEN = absent(
    "perf.switch_out_unseen",
    "a thread stopped running without a record of its switch-out (as without -a): not drawn, since the "
    "time is not known",
    quiet=True,
)

#: What the tables of known lines hold, and the rows that are written at once.
_MOST_KNOWN, _MOST_FRAMES, _ROWS = 1 << 18, 1 << 12, 1 << 16
_FRAME_SHIFT = 32
#: The value of the head of a line: the thread, and in the upper bits the CPU plus 1, or 0 for none.
_CPU_SHIFT, _THREAD_MASK = 32, (1 << 32) - 1
_MAX_REST = 4096
_UNKNOWN = "[unknown]"  # what perf prints for a symbol that it does not know

#: A line of an event. Groups: comm, pid or tid, tid, cpu, time of day, seconds, decimals, type of a record, period,
#: event, the rest.
EVENT = re.compile(
    rb"\s*(?:(\S.{0,63}?)\s{1,64})??(?:(-?\d{1,10})(?:/(-?\d{1,10}))?\s+)?(?:\[(\d{1,6})\]\s+)?(?:[KUHGgCMEFSp]{1,5}\s+)?"
    rb"(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6,9})\s+)?(\d{1,12})\.(\d{6}(?:\d{3})?|\d{1,5}(?=:\t\t\d)):\s+"
    rb"(?:(PERF_RECORD_[A-Z0-9_]+)|(?:(\d{1,20})\s+)?(?:(\S+?):(?=\s|$))?)\s*(.*)"
)
#: What each line of an event holds.
TIME = re.compile(rb"\d\.\d+:\s")
#: An address with a symbol and a file, one of them or none.
_FRAME = re.compile(rb"\s*([0-9a-f]{1,16})(?:[ \t](.*))?")
_UNINDENTED_FRAME = re.compile(rb"[0-9a-f]{16}\t\S.*\)")
#: As above, after columns that are not part of it (data address, weight, kind of branch).
_LATE_FRAME = re.compile(rb"(?:.*\s)?([0-9a-f]{5,16}) (\S.*\))")
_TWO_ADDRESSES = re.compile(rb"\s*[0-9a-f]{5,16} (?!\()")
#: The first of the columns that perf prints behind the frames: registers, instructions, branches by address.
BEHIND = re.compile(
    rb"\s?(?:ABI:\d|ilen: \d|insn: [0-9a-f]{2}\b|0x[0-9a-f]+(?:\([^()]*\))?/0x[0-9a-f]+(?:\([^()]*\))?/[PMN-]/)"
)
#: The end of a branch by address or symbol (-F brstack, brstacksym), and a frame that such branches may follow.
BRANCH = re.compile(rb"/[PMN-]/[X-]/[A-]/\d{1,10}")
_FRAME_BEFORE = re.compile(rb"\s*[0-9a-f]{1,16} (?:.*? )?\([/\[][^()]*(?:\(deleted\))?\)")
SOURCE_LINE = re.compile(rb"  \S.*:\d+(?: \(discriminator \d+\))?(?: \(inlined\))?|  \?\?:\d+|  \S+\[[0-9a-f]+\]")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")

_TRACEPOINT = re.compile(r"[A-Za-z_][\w-]*:(?![ukhIGHpPSDWeb]+$)[A-Za-z_]\w*")
#: The name of a tracepoint without its system; a column with a number.
_NAME = re.compile(rb"[A-Za-z_]\w*")
_NUMBER_FIRST = re.compile(rb"(?:0x)?[0-9a-f]+(?:\s|$)")
_SWITCH = re.compile(
    r"prev_comm=(.{0,64}) prev_pid=([0-9]{1,10}) prev_prio=(-?[0-9]{1,6}) prev_state=(\S++) ==> "
    r"next_comm=(.{0,64}) next_pid=([0-9]{1,10}) next_prio=(-?[0-9]{1,6})"
)
_OLD_SWITCH = re.compile(
    r"(.{0,64}):([0-9]{1,10}) \[(-?[0-9]{1,6})\] (\S++) ==> (.{0,64}):([0-9]{1,10}) \[(-?[0-9]{1,6})\]"
)
_WAKEUP = re.compile(r"(?:comm=(.*) pid=([0-9]{1,10}) prio=(-?[0-9]{1,6})|(.*):([0-9]{1,10}) \[(-?[0-9]{1,6})\])\b.*")
_PROBE_PLACE = re.compile(r"\(([0-9a-f]{1,16}(?: <- [0-9a-f]{1,16})?)\)")
_KEY = re.compile(r"(?:^|,? )([A-Za-z_][\w.]*)(?:=|: (?=\S))")


class Place(NamedTuple):
    """Where a call stack was: a function, or an address if it is not known, and the file that it is in."""

    name: str
    file: str
    named: bool = True


#: The row of the records about the threads of a process.
_RECORDS = "perf records"
_UNKNOWN_FRAME = Place(_UNKNOWN, _UNKNOWN, named=False)


class Task(NamedTuple):
    """A thread in the scheduler's tracepoints, which call the `tid` pid; a priority of None is unknown."""

    comm: str
    tid: int
    prio: int | None = None


def task_in(fields: Mapping[str, Any], prefix: str) -> Task:
    """Return the thread in the fields of a scheduler's tracepoint; -1 is an unknown one."""
    tid, prio = fields.get(f"{prefix}pid"), fields.get(f"{prefix}prio")
    comm = str(fields.get(f"{prefix}comm", ""))
    return Task(comm, tid if isinstance(tid, int) else -1, prio if isinstance(prio, int) else None)


def state_name(letters: str) -> str:
    """Return the name of a thread state: "S" is Sleeping, "R+" Runnable (preempted)."""
    plain = letters.removesuffix("+")
    name = " | ".join(_STATES.get(letter, letter) for letter in plain.split("|")) or "Not running"
    return f"{name} (preempted)" if plain != letters else name


class _Thread(msgspec.Struct):
    """A thread, drawn or not.

    `spare` is a process track of its own, for a pid that becomes known later; `records` has the records about it.
    """

    track: TrackId = NO_TRACK
    spare: TrackId = NO_TRACK
    records: TrackId = NO_TRACK
    names: list[str] = msgspec.field(default_factory=list)
    pid: int | None = None


class _State(msgspec.Struct):
    """The state of a thread since `since` (ns)."""

    name: str
    since: int
    args: dict[str, Any]
    at: int


class PerfTracks:
    """Processes, threads, samples and states of one recording; `pid` is the process of threads without a stated one."""

    def __init__(self, out: Builder, pid: int | None = None) -> None:
        self._out = out
        out.info.real_ids = out.info.several_at_once = True  # perf records processes from outside
        self._default_pid = pid
        self._knows_pids = False  # whether any process was stated
        self._threads: dict[int, _Thread] = {}
        self._processes: dict[int | None, TrackId] = {}
        self._frames: dict[tuple[int, Place], StackId] = {}
        self._states: dict[int, _State] = {}
        self._state_tracks: dict[int, TrackId] = {}
        self._tids: dict[TrackId, int] = {}
        self._on_cpu: dict[int, int] = {}  # the tid that was switched in last
        self._active: set[int] = set()  # tids with events of their own, besides switches to them
        self._samples: Counter[str] = Counter()
        self._periods: Counter[str] = Counter()

    # -- processes and threads ----------------------------------------------------------------------------------

    def thread(self, pid: int | None, tid: int, comm: str = "") -> TrackId:
        """Return the track of a thread, now called `comm`.

        Args:
            pid: its process; None or -1 if not stated.
            tid: the thread; 0 is the idle task of any CPU, -1 one that had ended already.
        """
        thread = self._threads.get(tid)
        if thread is None or comm or (pid is not None and pid != thread.pid):
            thread = self.know(pid, tid, comm)
        if thread.track == NO_TRACK:
            pid = thread.pid = 0 if tid == 0 else self._default_pid if thread.pid is None else thread.pid
            if pid is None and self._knows_pids:
                thread.spare = self._out.tracks.process()
            process = self._processes.get(pid)
            if process is None:
                process = self._processes[pid] = self._out.tracks.process(pid=pid)
            thread.track = self._out.tracks.thread(process, tid if tid >= 0 else None)
            self._tids[thread.track] = tid
        return thread.track

    def know(self, pid: int | None, tid: int, comm: str = "") -> _Thread:
        """Note the process and the new name of a thread, without a track; the arguments are those of `thread`."""
        thread = self._threads.get(tid)
        if thread is None:
            thread = self._threads[tid] = _Thread()
        if pid is not None and pid >= 0:
            self._learn(thread, pid)
        if comm and (not thread.names or thread.names[-1] != comm):
            thread.names.append(comm)
        return thread

    def _learn(self, thread: _Thread, pid: int) -> None:
        """Note the process of a thread; a track without a process is moved there."""
        self._knows_pids = True
        if thread.track == NO_TRACK:
            thread.pid = pid
        if thread.pid is not None or thread.spare == NO_TRACK:
            return
        tracks = self._out.tracks
        thread.pid = pid
        process = self._processes.setdefault(pid, thread.spare)
        if process > thread.spare:  # parents are declared before their children
            for track in self._tids:
                if tracks[track].parent == process:
                    tracks[track].parent = thread.spare
            tracks[process].pid = None
            process = self._processes[pid] = thread.spare
        tracks[process].pid = pid
        tracks[thread.track].parent = process
        thread.spare = NO_TRACK

    # -- samples --------------------------------------------------------------------------------------------------

    def child(self, parent: StackId, frame: Place) -> StackId:
        """Return the call stack of a frame called from `parent`; NO_STACK for an outermost frame."""
        key = (parent, frame)
        known = self._frames.get(key)
        if known is None:
            known = self._frames[key] = self._out.frame(frame.name, frame.file, parent, named=frame.named)
        return known

    def stack(self, frames: Sequence[Place]) -> StackId:
        """Return a call stack, innermost first; the empty one is NO_STACK."""
        parent = NO_STACK
        for frame in reversed(frames):
            parent = self.child(parent, frame)
        return parent

    def empty_stack(self) -> StackId:
        return self.child(NO_STACK, _UNKNOWN_FRAME)

    def sample(
        self, thread: TrackId, ts: int, stack: StackId, event: str, weight: int, at: int, cpu: int | None
    ) -> None:
        """Add a sample of a thread; `weight` is the period, 1 if not stated, `cpu` is None if not stated."""
        self._samples[event] += 1
        self._periods[event] += weight
        if self._states:
            self._seen_running(thread, ts, at)
        if stack == NO_STACK:  # without an address in the recording or the text
            stack = self.empty_stack()
        self._out.sample(thread, ts, stack, event, weight, at, cpu=NO_CPU if cpu is None else cpu)

    def samples_of(self, event: str, thread: I32, ts: I64, stack: I32, weight: I64, cpu: I32, at: I64) -> None:
        """Add samples of one event as columns, in input order; no stack may be empty; `cpu` may be NO_CPU."""
        if self._states:
            columns = (thread, ts, stack, weight, cpu, at)
            for on, when, what, times, where, row in zip(*(column.tolist() for column in columns), strict=True):
                self.sample(TrackId(on), when, StackId(what), event, times, row, None if where == NO_CPU else where)
            return
        self._samples[event] += len(ts)
        self._periods[event] += sum(weight.tolist())
        self._out.bulk.samples(thread, ts, stack, np.full(len(ts), self._out.tables.string(event)), weight, cpu, at)

    def tracepoint(
        self, thread: TrackId, ts: int, event: str, args: dict[str, Any], stack: StackId, at: int, cpu: int | None
    ) -> None:
        """Add a tracepoint of a thread with its fields; the stack may be NO_STACK, the CPU None."""
        if self._states:
            self._seen_running(thread, ts, at)
        self._out.instant(thread, ts, event, event.partition(":")[0] if ":" in event else "", args, at)
        self._sample_at(thread, ts, event, stack, at, cpu)

    def _sample_at(self, thread: TrackId, ts: int, event: str, stack: StackId, at: int, cpu: int | None) -> None:
        """Count a tracepoint, and add a sample of it if it has a stack."""
        self._samples[event] += 1
        self._periods[event] += 1
        if stack != NO_STACK:
            self._out.sample(thread, ts, stack, event, 1, at, cpu=NO_CPU if cpu is None else cpu)

    def record(self, pid: int | None, tid: int, ts: int, kind: str, args: dict[str, Any], at: int) -> None:
        """Add a record about a thread as an instant on the row of its process, as most threads have few of them."""
        parent = self._out.tracks[self.thread(pid, tid)].parent
        thread = self._threads[tid]
        if thread.records == NO_TRACK:
            thread.records = self._out.tracks.add(_RECORDS, parent)
        self._out.instant(thread.records, ts, kind, "record", {"tid": tid, **args}, at)

    def _join_records(self) -> None:
        """Draw the records about the threads of a process in one row."""
        tracks = self._out.tracks
        rows: dict[TrackId, TrackId] = {}
        for thread in sorted(self._threads.values(), key=lambda thread: thread.records):
            if thread.records != NO_TRACK:
                row = tracks[thread.records]
                row.parent = tracks[thread.track].parent
                row.lane_of = rows.get(row.parent, NO_TRACK)
                rows.setdefault(row.parent, thread.records)

    # -- states of threads ----------------------------------------------------------------------------------------

    def switch(
        self, ts: int, cpu: int | None, prev: Task, prev_state: str, next: Task, at: int, stack: StackId = NO_STACK
    ) -> None:
        """Read sched_switch: `prev` stops running in `prev_state` (letters such as "S" or "R+"), `next` runs."""
        thread = NO_TRACK if stack == NO_STACK else self.thread(None, prev.tid, prev.comm)
        self._sample_at(thread, ts, "sched:sched_switch", stack, at, cpu)
        self.switch_out(ts, cpu, prev, prev_state, at)
        self.switch_in(ts, cpu, next, at)

    def switch_out(self, ts: int, cpu: int | None, task: Task, state: str, at: int) -> None:
        """End the running state of a thread."""
        if cpu is not None:
            noted = self._on_cpu.pop(cpu, task.tid)
            if noted != task.tid:  # that thread had left the CPU before
                self._forget(noted, at)
        if task.tid <= 0:
            return
        self._active.add(task.tid)
        before = self._states.get(task.tid)
        if before is not None and before.name != _RUNNING:
            self._out.problem(SWITCH_IN_UNSEEN, at, task.comm)
        elif before is not None and before.args.get("cpu", cpu) != cpu:
            self._forget(task.tid, at)
        self._enter(task, ts, state_name(state), {"prev_state": state} if state else {}, at)

    def switch_in(self, ts: int, cpu: int | None, task: Task, at: int, *, stated: bool = False) -> None:
        """Start the running state of a thread; `stated` if a record of its own says so (PERF_RECORD_SWITCH)."""
        if stated:
            self._active.add(task.tid)
        args: dict[str, Any] = {} if cpu is None else {"cpu": cpu}
        if cpu is not None:
            self._on_cpu[cpu] = task.tid
        self._enter(task, ts, _RUNNING, args if task.prio is None else {**args, "prio": task.prio}, at)

    def wakeup(self, ts: int, task: Task, at: int) -> None:
        """Read sched_wakeup, sched_wakeup_new: a thread that waited may run again."""
        state = self._states.get(task.tid)
        if state is None or state.name not in (_RUNNING, _RUNNABLE):
            self._enter(task, ts, _RUNNABLE, {} if task.prio is None else {"prio": task.prio}, at)

    def _seen_running(self, thread: TrackId, ts: int, at: int) -> None:
        """Note an event of a thread: if its state is waiting, its switch-in was not recorded."""
        tid = self._tids[thread]
        self._active.add(tid)
        state = self._states.get(tid)
        if state is not None and state.name != _RUNNING and ts > state.since:
            self._out.problem(SWITCH_IN_UNSEEN, at)
            self._enter(Task("", tid), ts, _RUNNING, {"start": "at the latest: an event of the thread"}, at)

    def _forget(self, tid: int, at: int) -> None:
        """Discard the running state of a thread."""
        state = self._states.get(tid)
        if state is not None and state.name == _RUNNING:
            del self._states[tid]
            self._out.problem(SWITCH_OUT_UNSEEN, at)

    def _enter(self, task: Task, ts: int, name: str, args: dict[str, Any], at: int) -> None:
        if task.tid <= 0:  # the idle task stands for several CPUs
            return
        self.know(None, task.tid, task.comm)
        self._leave(task.tid, ts, {})
        self._states[task.tid] = _State(name, ts, args, at)

    def _leave(self, tid: int, ts: int, more: dict[str, Any]) -> None:
        state = self._states.pop(tid, None)
        if state is None:
            return
        track = self._state_tracks.get(tid)
        if track is None:
            track = self._state_tracks[tid] = self._out.tracks.add("state", self.thread(None, tid))
        self._out.slice(track, state.since, ts - state.since, state.name, "sched", {**state.args, **more}, state.at)

    # -- the end --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End open states, and give tracks their last names."""
        if self._states:
            end = max(self._out.tables.last_ts(), *(state.since for state in self._states.values()))
            for tid, state in list(self._states.items()):
                if state.name == _RUNNING and tid not in self._active:
                    self._forget(tid, state.at)
                self._leave(tid, end, {"unfinished": True})
        for tid, thread in self._threads.items():
            if thread.track != NO_TRACK:
                self._name(tid, thread)
        self._join_records()
        if None in self._processes:
            process = self._out.tracks[self._processes[None]]
            process.name, process.description = "threads seen by perf", _NO_PID_HELP
        if self._samples:
            self._out.metadata["perf_samples"] = {
                event: {"samples": count, "event_count": self._periods[event]} for event, count in self._samples.items()
            }

    def _name(self, tid: int, thread: _Thread) -> None:
        track = self._out.tracks[thread.track]
        track.name = thread.names[-1] if thread.names else ""
        earlier = list(dict.fromkeys(name for name in thread.names if name != track.name))
        if earlier and tid > 0:
            track.description = f"earlier called {', '.join(earlier)}"
        if tid == 0:
            track.name = "swapper"
        process = self._out.tracks[track.parent]
        process.unknown = process.pid is None
        if process.pid == tid or not process.name:
            process.name = track.name


# -- frames in texts ---------------------------------------------------------------------------------------------------


def may_be_frame(line: bytes) -> bool:
    """Return whether a line starts like a frame: indented, or with a 16-digit address and a tab."""
    return line[:1] in (b"\t", b" ") or _UNINDENTED_FRAME.fullmatch(line.rstrip()) is not None


def frame_of(line: bytes) -> Place | None:
    """Return symbol and file of a frame, without address and offset; None if the line is not a frame."""
    match = _FRAME.fullmatch(line)
    if match is None:
        return None
    text = (match[2] or b"").strip().decode("utf-8", "replace")
    return _symbol_and_file(text) if text else Place(f"0x{match[1].decode()}", "", named=False)


def frame_on_event_line(rest: bytes) -> tuple[Place | None, bool]:
    """Return the frame on the line of an event, and whether there are columns besides it."""
    behind, branch = BEHIND.search(rest), BRANCH.search(rest)
    if behind is not None or branch is not None:
        before = _FRAME_BEFORE.match(rest) if behind is None else _FRAME.fullmatch(rest, 0, behind.start())
        return None if before is None else frame_of(before[0]), True
    match = _FRAME.fullmatch(rest)
    if match is not None and not (match[2] and _TWO_ADDRESSES.match(match[2])):
        return frame_of(rest), False
    late = _LATE_FRAME.fullmatch(rest) if len(rest) < _MAX_REST else None
    return None if late is None else _symbol_and_file(late[2].decode("utf-8", "replace")), True


def _symbol_and_file(text: str) -> Place:
    """Return symbol and file of a frame: the file is in the last parentheses; both may contain others."""
    if not text.endswith(")"):
        return Place(_OFFSET.sub("", text), "", named=text != _UNKNOWN)
    at = max(text.rfind(" (/"), text.rfind(" (["))
    if at < 0:
        at = text.rfind(" (", 0, len(text) - len(" (deleted))")) if text.endswith(" (deleted))") else text.rfind(" (")
    if at < 0:
        symbol, file = ("", text[1:-1]) if text.startswith("(") else (text, "")
    else:
        symbol, file = text[:at], text[at + 2 : -1]
    if file == "inlined":
        return Place(f"{symbol} (inlined)", "")
    symbol = _OFFSET.sub("", symbol) or _UNKNOWN
    return Place(symbol, _OFFSET.sub("", file), named=symbol != _UNKNOWN)


def has_columns_only(line: bytes) -> bool:
    """Return whether a line has columns that perf prints behind the frames of an event."""
    return BEHIND.match(line) is not None or BRANCH.search(line) is not None


# -- tracepoints -------------------------------------------------------------------------------------------------------


def is_tracepoint(event: str) -> bool:
    """Return whether an event is "system:name", and not a name with modifiers such as cycles:ppp."""
    return _TRACEPOINT.fullmatch(event) is not None


def may_be_fields(name: bytes, rest: bytes) -> bool:
    """Return whether the fields of a tracepoint may follow; versions until about 3.3 do not print its system."""
    return _NAME.fullmatch(name) is not None and not has_columns_only(rest) and _NUMBER_FIRST.match(rest) is None


def switch_of(text: str) -> tuple[Task, str, Task] | None:
    """Parse sched_switch: the stopping thread, its state, the next thread; None if the form is unknown."""
    match = _SWITCH.fullmatch(text) or _OLD_SWITCH.fullmatch(text)
    if match is None:
        return None
    comm, tid, prio, state, next_comm, next_tid, next_prio = match.groups()
    return Task(comm, whole(tid), whole(prio)), state, Task(next_comm, whole(next_tid), whole(next_prio))


def woken_task(text: str) -> Task | None:
    """Parse sched_wakeup: the thread that may run again; None if the form is unknown."""
    match = _WAKEUP.fullmatch(text)
    if match is None:
        return None
    comm, tid, prio = match.groups()[:3] if match[2] else match.groups()[3:]
    return Task(comm, whole(tid), whole(prio))


def fields_of(text: str) -> dict[str, Any]:
    """Return the fields of a tracepoint, `a=1 b=two` or `a: 0x1, b: 2`; decimal numbers as numbers."""
    place = _PROBE_PLACE.match(text)
    start = place.end() if place else 0
    keys = list(_KEY.finditer(text, start))
    if not keys or keys[0].start() > start:
        return {"text": text} if text else {}
    ends = [key.start() for key in keys[1:]] + [len(text)]
    fields: dict[str, Any] = {"address": place[1]} if place else {}
    for key, end in zip(keys, ends, strict=True):
        value = text[key.end() : end].strip().rstrip(",")
        number = whole_of(value)
        fields[key[1]] = value.removeprefix('"').removesuffix('"') if number is None else number
    return fields


# -- samples whose lines are known -------------------------------------------------------------------------------------


class KnownSamples:
    """Recognises samples whose lines are known, and writes them.

    Args:
        tracks: the tracks.
        written: gets the times (ns) of written samples.
        begun: called before anything that follows the event of the last single line is read.

    Attributes:
        number: the number of the line at which reading stopped.
        reader: the reader of the kernel, which counts lines.
    """

    def __init__(self, tracks: PerfTracks, written: Callable[[I64], None], begun: Callable[[], None]) -> None:
        self.number = 1
        self._tracks = tracks
        self._written = written
        self._begun = begun
        self._heads: dict[bytes, int] = {}
        self._tails: dict[bytes, int] = {}
        self._events: dict[str, int] = {}
        self._frame_numbers: dict[Place, int] = {}
        self._frames = [Place("", "")]  # their numbers start with 1
        self._lines: dict[bytes, int] = {}
        self._stacks: dict[int, int] = {}
        self._columns = np.empty((6, _ROWS), np.int64)
        self._kernel = kernel.module("lines")
        self.reader: Any = self._kernel.Samples(
            self._heads, self._tails, self._lines, self._stacks, _MOST_FRAMES, self._columns
        )

    def read(self, data: bytes, at: int) -> tuple[int, bool]:
        """Read whole lines.

        Returns:
            The start of the first sample that is not plain or not complete, and whether the data ends there.
        """
        reader = self.reader
        while True:
            why = reader.read(data, at, self.number)
            at, self.number = reader.at, reader.line
            if reader.any_sample:
                self._begun()
            if why == self._kernel.NEW_STACK:
                self._learn_stack(reader.stack())
            elif why == self._kernel.NEW_FRAME:
                if not self._learn_frames(data, reader.new_frame):
                    return at, False
            elif reader.row == _ROWS:
                self.flush()
            else:
                return at, why == self._kernel.END

    def flush(self) -> None:
        """Write the samples read so far."""
        if not self.reader.row:
            return
        ts, at, head, event, weight, stack = self._columns[:, : self.reader.row]
        self.reader.clear()
        self._written(ts)
        # Samples are in order as long as all are of one event.
        events = list(self._events)
        begins = [0, *(np.flatnonzero(np.diff(event)) + 1).tolist(), len(event)]
        for begin, end in pairwise(begins):
            some = slice(begin, end)
            self._tracks.samples_of(
                events[int(event[begin])],
                (head[some] & _THREAD_MASK).astype(np.int32),
                ts[some],
                stack[some].astype(np.int32),
                weight[some],
                ((head[some] >> _CPU_SHIFT) + NO_CPU).astype(np.int32),
                at[some],
            )

    def learn(
        self, line: bytes, match: re.Match[bytes], thread: TrackId, cpu: int | None, event: str, frame: Place | None
    ) -> None:
        """Learn a line of a sample that is not a tracepoint; `frame` stands on it if it has more than the event."""
        time, name = match.start(6), match.start(10)
        is_plain = match[5] is None and name >= 0 and line.endswith(b"\n") and (time == 0 or line[time - 1] in b" \t")
        if not is_plain or (match[11] and frame is None) or len(self._heads) + len(self._tails) >= _MOST_KNOWN:
            return
        self._heads[line[:time]] = thread | (NO_CPU if cpu is None else cpu) + 1 << _CPU_SHIFT
        number = self._number(frame) if frame is not None else 0
        known = self._events.setdefault(event, len(self._events))
        self._tails[line[name:]] = known | number << _FRAME_SHIFT

    def _number(self, frame: Place) -> int:
        number = self._frame_numbers.setdefault(frame, len(self._frames))
        if number == len(self._frames):
            self._frames.append(frame)
        return number

    def _learn_frames(self, data: bytes, at: int) -> bool:
        """Register the lines of frames from a position on, up to a known one; return whether the first is a frame."""
        if len(self._lines) >= _MOST_KNOWN:
            self._lines.clear()
        known = len(self._lines)
        while data[at : at + 1] == b"\t":
            end = data.find(b"\n", at) + 1
            line = data[at:end]
            frame = frame_of(line.rstrip()) if end and line not in self._lines else None
            if frame is None:
                break
            self._lines[line] = self._number(frame)
            at = end
        return len(self._lines) > known

    def _learn_stack(self, frames: list[int]) -> None:
        """Register the stack of frames, the innermost first."""
        if len(self._stacks) >= _MOST_KNOWN:
            self._stacks.clear()
        if not frames:
            self._stacks[0] = self._tracks.empty_stack()
        parent = NO_STACK
        for frame in reversed(frames):
            key = (parent + 1) << _FRAME_SHIFT | frame
            parent = StackId(self._stacks.setdefault(key, self._tracks.child(parent, self._frames[frame])))
