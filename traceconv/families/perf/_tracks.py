"""The tracks of all recordings of `perf record`: threads with call stacks and states, and their clock.

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

The clock. Without `-k` perf reads the clock of the scheduler: close to CLOCK_MONOTONIC, and none of the clocks that
others can read. With `-k` the header names the clock, and since perf 5.10 it holds a reading of it and of the wall
clock. In three recordings of perf 6.1 whose offset is known otherwise, that pair was 2.0 to 2.2 µs early: the wall
clock is read first and cut to microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from traceconv.errors import UsageError
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    BOOTTIME,
    MONOTONIC,
    MONOTONIC_RAW,
    REALTIME,
    TAI,
    ClockDomain,
    ClockSnapshot,
    Run,
    Zero,
    looks_like_unix_time,
)
from traceconv.model.diagnostics import absent
from traceconv.model.forms import Mark, samples
from traceconv.model.marks import FormatMarks
from traceconv.model.trace import I32, I64, NO_CPU, NO_TRACK, StackId, Trace, TrackId

PERF_CLOCK = ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC)
#: The clock domain of times of --reltime.
SINCE_FIRST = ClockDomain("time since the first event of perf", Zero.RUN_START, Run.MONOTONIC)
#: The software events that count time.
PERF_MARKS = FormatMarks(times=r"(?:cpu|task)-clock(?:[:/].*)?")
NO_STACK = StackId(-1)


class Place(NamedTuple):
    """Where a call stack was: a function, or an address if it is not known, and the file that it is in."""

    name: str
    file: str
    named: bool = True


_UNKNOWN_FRAME = Place("[unknown]", "[unknown]", named=False)

#: Help for formats whose samples may have no CPU.
NO_CPU_HELP = (
    "If the CPU was not recorded (perf record without -a or --sample-cpu), samples have no counter of "
    "their event. Perfetto v52 still shows a row `Cpu 0 EVENT (CPU not known)`, without values."
)

#: The clock domains by clockid_t of Linux.
CLOCKS = {0: REALTIME, 1: MONOTONIC, 4: MONOTONIC_RAW, 7: BOOTTIME, 11: TAI}
#: The clocks since boot; then limits: 31 years after boot, the years 2084 and 2096, the greatest difference of clocks
#: since 1970.
_SINCE_BOOT = (1, 4, 7)
_LATEST_SINCE_BOOT, _LATEST_WALL, _LATEST, _APART = 10**18, 36 * 10**17, 4 * 10**18, 10**14
#: The names of clocks in the option `clockid` and in perf.
CLOCK_NAMES = {"realtime": 0, "monotonic": 1, "monotonic_raw": 4, "boottime": 7, "tai": 11}
#: The measured error of the pair of readings, with a margin.
PAIR_BOUND_NS = 5_000

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
_STATE_CATEGORY = "sched"
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


class Task(NamedTuple):
    """A thread in the scheduler's tracepoints, which call the `tid` pid; a priority of None is unknown."""

    comm: str
    tid: int
    prio: int | None = None


class _Thread(msgspec.Struct):
    """A thread, drawn or not.

    Attributes:
        track: its track; NO_TRACK until it has events.
        spare: a process track of its own, for a pid that becomes known after the track was created.
        names: its names, in order.
    """

    track: TrackId = NO_TRACK
    spare: TrackId = NO_TRACK
    names: list[str] = msgspec.field(default_factory=list)
    pid: int | None = None


class _State(msgspec.Struct):
    """The state of a thread since `since` (ns)."""

    name: str
    since: int
    args: dict[str, Any]
    at: int


class PerfTracks:
    """Processes, threads, samples and states of one recording.

    Args:
        out: the builder.
        pid: the process of threads without a stated one.
    """

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
        #: The number of samples of each event, and the sum of their periods.
        self.samples: Counter[str] = Counter()
        self.event_counts: Counter[str] = Counter()

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
            thread.track = self._out.tracks.thread(self._process(pid), tid if tid >= 0 else None)
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

    def _process(self, pid: int | None) -> TrackId:
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = self._out.tracks.process(pid=pid)
        return process

    def _learn(self, thread: _Thread, pid: int) -> None:
        """Note the process of a thread; a track without a process is moved there."""
        self._knows_pids = True
        if thread.track == NO_TRACK:
            thread.pid = pid
        if thread.pid is not None or thread.spare == NO_TRACK:
            return
        thread.pid = pid
        process = self._processes.setdefault(pid, thread.spare)
        if process > thread.spare:  # parents are declared before their children
            for track in self._tids:
                if self._out.tracks[track].parent == process:
                    self._out.tracks[track].parent = thread.spare
            self._out.tracks[process].pid = None
            process = self._processes[pid] = thread.spare
        self._out.tracks[process].pid = pid
        self._out.tracks[thread.track].parent = process
        thread.spare = NO_TRACK

    # -- samples --------------------------------------------------------------------------------------------------

    def stack(self, frames: Sequence[Place]) -> StackId:
        """Return a call stack, innermost first; the empty one is NO_STACK."""
        parent = NO_STACK
        for frame in reversed(frames):
            parent = self.child(parent, frame)
        return parent

    def sample(
        self, thread: TrackId, ts: int, stack: StackId, event: str, weight: int, at: int, cpu: int | None
    ) -> None:
        """Add a sample of a thread.

        `weight` is the period, 1 if not stated; `cpu` is None if not stated.
        """
        self.samples[event] += 1
        self.event_counts[event] += weight
        if self._states:
            self.seen_running(thread, ts, at)
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
        self.samples[event] += len(ts)
        self.event_counts[event] += sum(weight.tolist())
        self._out.bulk.samples(thread, ts, stack, np.full(len(ts), self._out.tables.string(event)), weight, cpu, at)

    def child(self, parent: StackId, frame: Place) -> StackId:
        """Return the call stack of a frame called from `parent`; NO_STACK for an outermost frame."""
        key = (parent, frame)
        known = self._frames.get(key)
        if known is None:
            known = self._frames[key] = self._out.frame(frame.name, frame.file, parent, named=frame.named)
        return known

    def empty_stack(self) -> StackId:
        """Return the stack without frames."""
        return self.stack([_UNKNOWN_FRAME])

    def tracepoint(
        self,
        thread: TrackId,
        ts: int,
        event: str,
        args: bytes | dict[str, Any],
        stack: StackId,
        at: int,
        cpu: int | None,
    ) -> None:
        """Add a tracepoint of a thread with its fields; the stack may be NO_STACK, the CPU None."""
        self.samples[event] += 1
        self.event_counts[event] += 1
        if self._states:
            self.seen_running(thread, ts, at)
        self._out.instant(thread, ts, event, event.partition(":")[0] if ":" in event else "", args, at)
        if stack != NO_STACK:
            self._out.sample(thread, ts, stack, event, 1, at, cpu=NO_CPU if cpu is None else cpu)

    # -- states of threads ----------------------------------------------------------------------------------------

    def switch(
        self, ts: int, cpu: int | None, prev: Task, prev_state: str, next: Task, at: int, stack: StackId = NO_STACK
    ) -> None:
        """Read sched_switch: `prev` stops running in `prev_state` (letters such as "S" or "R+"), `next` runs."""
        self.samples["sched:sched_switch"] += 1
        self.event_counts["sched:sched_switch"] += 1
        if stack != NO_STACK:
            thread, on_cpu = self.thread(None, prev.tid, prev.comm), NO_CPU if cpu is None else cpu
            self._out.sample(thread, ts, stack, "sched:sched_switch", 1, at, cpu=on_cpu)
        self.switch_out(ts, cpu, prev, prev_state, at)
        self.switch_in(ts, cpu, next, at)

    def switch_out(self, ts: int, cpu: int | None, task: Task, state: str, at: int) -> None:
        """End the running state of a thread."""
        if cpu is not None:
            self._take_off(cpu, task.tid, at)
        if task.tid <= 0:
            return
        self._active.add(task.tid)
        before = self._states.get(task.tid)
        if before is not None and before.name != _RUNNING:
            self._out.problem(SWITCH_IN_UNSEEN, at, task.comm)
        elif before is not None and before.args.get("cpu", cpu) != cpu:
            self._forget(task.tid, at)
        self._enter(task, ts, state_name(state), {"prev_state": state} if state else {}, at)

    def switch_in(self, ts: int, cpu: int | None, task: Task, at: int, *, own: bool = False) -> None:
        """Start the running state of a thread; `own` if its own record says so (PERF_RECORD_SWITCH)."""
        if own:
            self._active.add(task.tid)
        args: dict[str, Any] = {} if cpu is None else {"cpu": cpu}
        if cpu is not None:
            self._on_cpu[cpu] = task.tid
        self._enter(task, ts, _RUNNING, args if task.prio is None else {**args, "prio": task.prio}, at)

    def _take_off(self, cpu: int, tid: int, at: int) -> None:
        """End the running state of `tid` on a CPU; another thread that was noted there had left before."""
        other = self._on_cpu.pop(cpu, tid)
        if other != tid:
            self._forget(other, at)

    def _forget(self, tid: int, at: int) -> None:
        """Discard the running state of a thread."""
        state = self._states.get(tid)
        if state is not None and state.name == _RUNNING:
            del self._states[tid]
            self._out.problem(SWITCH_OUT_UNSEEN, at)

    def wakeup(self, ts: int, task: Task, at: int) -> None:
        """Read sched_wakeup, sched_wakeup_new: a thread that waited may run again."""
        state = self._states.get(task.tid)
        if state is None or state.name not in (_RUNNING, _RUNNABLE):
            self._enter(task, ts, _RUNNABLE, {} if task.prio is None else {"prio": task.prio}, at)

    def seen_running(self, thread: TrackId, ts: int, at: int) -> None:
        """Note an event of a thread: if its state is waiting, its switch-in was not recorded."""
        tid = self._tids[thread]
        self._active.add(tid)
        state = self._states.get(tid)
        if state is not None and state.name != _RUNNING and ts > state.since:
            self._out.problem(SWITCH_IN_UNSEEN, at)
            self._enter(Task("", tid), ts, _RUNNING, {"start": "at the latest: an event of the thread"}, at)

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
        args = {**state.args, **more}
        self._out.slice(track, state.since, ts - state.since, state.name, _STATE_CATEGORY, args, state.at)

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
        if None in self._processes:
            process = self._out.tracks[self._processes[None]]
            process.name, process.description = "threads seen by perf", _NO_PID_HELP
        if self.samples:
            self._out.metadata["perf_samples"] = {
                name: {"samples": n, "event_count": self.event_counts[name]} for name, n in self.samples.items()
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


def state_name(letters: str) -> str:
    """Return the name of a thread state: "S" is Sleeping, "R+" Runnable (preempted)."""
    plain = letters.removesuffix("+")
    name = " | ".join(_STATES.get(letter, letter) for letter in plain.split("|")) or "Not running"
    return f"{name} (preempted)" if plain != letters else name


#: The metadata of a header alone: the time of the first sample, cut to microseconds, ns.
FIRST_SAMPLE = "first_sample_ns"


class Header(msgspec.Struct):
    """The header of a recording.

    Attributes:
        info: texts for the metadata: hostname, os_release, perf_version, arch, cmdline, ...
        clockid: the number of the clock of -k; None for perf's default clock, or if not stated.
        known: whether there is a header, so that no clockid means perf's default clock.
        reference: readings of the wall clock (ns since 1970) and of the clock of the recording at one instant.
        span: the times of the first and the last sample, cut to microseconds.
    """

    info: dict[str, Any] = msgspec.field(default_factory=dict)
    clockid: int | None = None
    known: bool = False
    reference: tuple[int, int] | None = None
    span: tuple[int, int] | None = None

    @property
    def machine(self) -> str:
        """The name of the host, "" if not stated."""
        return str(self.info.get("hostname", ""))

    def tell(self, out: Builder, resolution_ns: int = 1, chosen: str = "", *, relative: bool = False) -> ClockDomain:
        """Set the clock of the input, its relation to the wall clock, and the metadata.

        Args:
            out: the builder, after all events.
            resolution_ns: the resolution of printed times, ns.
            chosen: the clock that the user states, for input without a header; "" for none.
            relative: whether the times count from the first event.
        """
        if self.info:
            out.metadata["perf_header"] = self.info
        known = SINCE_FIRST if relative else self._domain(out, chosen)
        domain = replace(known, resolution_ns=resolution_ns, machine=self.machine)
        out.clocks.set_default(domain)
        if relative:
            out.note("the times count from the first event (--reltime): print them without it to merge with others")
        elif self.reference is not None and domain.zero is not Zero.UNIX_EPOCH:
            wall, here = self.reference
            wall_clock = replace(REALTIME, machine=self.machine)
            method = "reference time in the perf header"
            out.clocks.snapshot(ClockSnapshot(domain, here, wall_clock, wall, PAIR_BOUND_NS, method))
        return domain

    def _domain(self, out: Builder, chosen: str) -> ClockDomain:
        if self.clockid is not None:
            if chosen and CLOCK_NAMES[chosen] != self.clockid:
                out.note(f"the header names another clock than {chosen}: the header was believed")
            return CLOCKS.get(self.clockid, PERF_CLOCK)
        if chosen:
            return CLOCKS[CLOCK_NAMES[chosen]]
        if looks_like_unix_time(out.tables.first_ts()):
            out.note("the times count from 1970 by their size: taken as CLOCK_REALTIME (-k CLOCK_REALTIME)")
            return REALTIME
        out.note(
            "recorded with perf's default clock, which no other tool reads; record with -k CLOCK_MONOTONIC, which "
            "others read"
            if self.known
            else "the file does not name its clock (it is perf's default clock if recorded without -k)"
        )
        return PERF_CLOCK


def checked_clock(format_name: str, chosen: str) -> str:
    """Return the option `clockid`. Raises UsageError for an unknown name."""
    if chosen and chosen not in CLOCK_NAMES:
        raise UsageError(f"option clockid of {format_name} is one of {', '.join(CLOCK_NAMES)}, not {chosen!r}")
    return chosen


def latest_ns(clockid: int | None) -> int:
    """Return the latest possible time of a clock, ns; a later one comes from a damaged file.

    Args:
        clockid: the number of the clock; None is perf's default clock.
    """
    return _LATEST_SINCE_BOOT if clockid in _SINCE_BOOT else _LATEST


def is_possible_pair(clockid: int, wall: int, here: int) -> bool:
    """Return whether two times, in ns, can be of the wall clock and of the clock of that number."""
    if not 0 <= wall <= _LATEST_WALL or not 0 <= here <= latest_ns(clockid):
        return False
    return clockid in _SINCE_BOOT or abs(wall - here) < _APART


def marks_of_perf(trace: Trace) -> set[Mark]:
    """Return the first samples of a recording, and its command with the time of the first sample."""
    header = trace.metadata.get("perf_header", {})
    begin = {(first // 1000, ("begin", header["cmdline"])) for first in _first_samples(trace) if "cmdline" in header}
    return samples(trace) | begin


def _first_samples(trace: Trace) -> list[int]:
    """Return the times of the first sample of a timer or counter, and of the first one of a tracepoint."""
    stated = trace.metadata.get("perf_header", {}).get(FIRST_SAMPLE)
    if stated is not None:
        return [stated]
    instants = zip(trace.instants.ts.tolist(), trace.instants.name.tolist(), strict=True)
    tracepoints = [ts for ts, name in instants if not trace.strings[name].startswith("PERF_RECORD_")]
    return [min(times) for times in (trace.samples.ts.tolist(), tracepoints) if times]
