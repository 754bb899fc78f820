"""Traces for viewers by the profiler of TensorFlow, JAX and XLA.

The files are called `trace.json.gz`, `trace_viewer.json` or `perfetto_trace.json.gz`.

    {"displayTimeUnit":"ns","metadata":{"highres-ticks":true},
    "traceEvents":[
    {"args": {"name": "/host:CPU"}, "name": "process_name", "ph": "M", "pid": 701},
    {"args": {"group_id": "0"}, "dur": 483.328, "name": "TFE_Py_Execute", "ph": "X", "pid": 701, "tid": 107, "ts": 3.7},
    {}]}

Source: recordings of TensorFlow 2.13 and 2.18 (converted by xprof) and JAX 0.10. The file is made out of the
XSpace beside it (`*.xplane.pb`, see the importer xplane): a pid is a plane, a tid a line of it, neither is a number of
the operating system. Times are µs since the start of the profile, which only the XSpace knows. All values of args are
text. What had no duration comes as an instant, or, by JAX, with one of a picosecond. An empty object ends the array.

Lost: the exporter itself stops after 1,000,000 events without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.families.chrome import document
from traceconv.families.chrome.event import Event, Rows
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, args_of
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common.collective_kernels import declare_kernels
from traceconv.families.importer import Importer, Match, Signature
from traceconv.families.tensorflow.xplane import DEVICE, FLOW_ARGS, HOST, STEP_ARGS, Timeline
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.columns import I64, occurring
from traceconv.model.diagnostics import absent
from traceconv.model.marks import XLA_DEVICES, FormatMarks
from traceconv.model.numbers import decode_json, whole_of
from traceconv.model.source_info import Form, Layer, slices
from traceconv.model.track_table import TrackId, TrackKind

LIMIT_REACHED = absent(
    "tensorflow-profiler.limit",
    "the exporter stops after a million events: later ones are missing (shorten the profile, or read the xplane.pb)",
)

_EVENT_LIMIT = 1_000_000
#: A member, at any depth, whose value is an integer as text: a quote within a text has a backslash before it.
_INTEGER = re.compile(rb':"(0|-?[1-9][0-9]{0,19})"')
_COMPLETE, _COUNTER = b"XC"
_TIMED = list(b"XiIR")
#: The keys of flows and steps in args, also with escapes for their letters.
_TOLD = re.compile(rb'"(?:%b)"|\\u00[567]' % b"|".join(key.encode() for key in (*FLOW_ARGS, *STEP_ARGS)))


@dataclass(frozen=True)
class TensorflowProfiler(Importer):
    name = "tensorflow-profiler"
    title = "TensorFlow and JAX/XLA profiler, trace for viewers (trace.json.gz)"
    url = "https://openxla.org/xprof/trace_viewer"
    versions = "TensorFlow 2.x, JAX; also perfetto_trace.json of JAX and exports of xprof"
    signature = Signature('"highres-ticks" | "/host: | "/device:')
    clock = ClockDomain("profiler session time", Zero.RUN_START, Run.WALL, 1)
    layer = Layer.FRAMEWORK
    record = (
        "tf.profiler.experimental.start(DIR) and stop(), or the context jax.profiler.trace(DIR); "
        "then xprof converts DIR/plugins/profile/TIME/HOST.xplane.pb (JAX writes HOST.trace.json.gz beside it)"
    )
    skips = (EMPTY_EVENT,)

    line_up = (
        "The file does not state when it was recorded. The .xplane.pb beside it mostly does: merge that "
        "instead, or use --offset."
    )
    becomes = (
        ("planes (/host:CPU, /device:GPU:0), as pids", "process for a host, track for a device"),
        ("lines (threads, XLA Ops, XLA Modules, Steps, streams), as tids", "thread or track"),
        ("X", "slice"),
        ("i, and X of a picosecond", "instant; with the arg flow a slice of length 0"),
        ("the arg flow", "flow from its producer to each consumer"),
        ("numbers in args, which are text in the file", "arg as number"),
    )
    lost = ("The exporter stops silently after 1,000,000 events.",)
    marks = FormatMarks(libraries="tensorflow", devices=XLA_DEVICES, step_args=STEP_ARGS)

    def form(self, head: Head) -> Form:
        """Return which form of a recording a file is: trace.json, or perfetto_trace.json, which JAX makes of it."""
        is_full = "metadata" in head.json.members
        return Form(1 if is_full else 2, slices)

    def sniff(self, head: Head) -> Match:
        """Return YES by the header of the exporter, or by planes named as only it does."""
        members, events = head.json.members, head.json.objects
        about = members.get("metadata")
        if isinstance(about, dict) and about.get("highres-ticks") is True and members.get("displayTimeUnit") == "ns":
            return Match.yes("the header of the trace viewer of TensorFlow (highres-ticks)")
        if members.get("displayTimeUnit", "ns") == "ns" and any(map(_names_plane, events)):
            return Match.yes("planes of the profiler of TensorFlow and JAX (/host:..., /device:...)")
        return Match.no("no header of the trace viewer of TensorFlow, and no planes")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        reader = ChromeReader(source, out)
        events = _Events(out)
        events.add_all(reader)
        document.top_level(reader, out)
        events.finish()
        events.sort_out_devices()
        declare_kernels(out, "")
        if events.timed >= _EVENT_LIMIT:
            out.problem(LIMIT_REACHED, f"{source.name}: {events.timed} events")


def _names_plane(event: dict[str, Any]) -> bool:
    """Return whether an event gives a process the name of a plane."""
    args = event.get("args")
    name = args.get("name") if isinstance(args, dict) else None
    return event.get("name") == "process_name" and isinstance(name, str) and name.startswith((HOST, DEVICE))


class _Events(ChromeEvents):
    """Reads the events; pids and tids stand for planes and lines."""

    def __init__(self, out: Builder) -> None:
        super().__init__(out)
        self.timed = 0
        self._timeline = Timeline(out)
        self.flows = self._timeline.flows

    def new_process(self, pid: int | str) -> TrackId:
        """Return the track of a plane, which is the process here."""
        return self.out.tracks.process(pid if isinstance(pid, str) else "")

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """Return the track of a line of a plane, which is the thread here."""
        return self.out.tracks.thread(process, None, f"line {tid}")

    def complete(self, event: Event, ts: int, number: int) -> None:
        """Read X: an event with a duration, which rounds to nothing where the exporter had to invent one."""
        try:
            dur = self.time(bytes(event.dur))
        except ValueError:
            super().complete(event, ts, number)
            return
        self._add(event, ts, dur, number)

    def instant(self, event: Event, ts: int, number: int) -> None:
        """Read i: an event without a duration."""
        self._add(event, ts, 0, number)

    def _add(self, event: Event, ts: int, dur: int, number: int) -> None:
        self.timed += 1
        if event.extra or event.cat:  # not by this exporter: keep all there is
            (super().complete if event.ph == "X" else super().instant)(event, ts, number)
            return
        args = _INTEGER.sub(_number, args_of(self.out, event, number))
        stats = decode_json(args) if args else {}
        self._timeline.add(self.place(event), ts, dur, event.name, args, stats, number)

    def rows_to_leave(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Make numbers of texts in args; leave what has no duration, or may have flows or a step."""
        is_timed = np.isin(rows.phase, _TIMED)
        categories = [text for text in occurring(rows.category[is_timed]) if rows.scanner.name(text)]
        told = np.array([found.start() for found in _TOLD.finditer(rows.args)], np.int64)
        args, numbers = _with_numbers(rows.args)
        begin, end = rows.args_at, rows.args_at + rows.args_len
        is_short = (rows.phase == _COMPLETE) & (rows.dur == 0)
        tells = is_short | (np.searchsorted(told, begin) != np.searchsorted(told, end))
        is_other = (rows.phase != 0) & (rows.phase != _COUNTER) & (rows.args_len > 0)
        is_left: npt.NDArray[np.bool_] = np.where(is_timed, tells | np.isin(rows.category, categories), is_other)
        before, behind = np.searchsorted(numbers, begin), np.searchsorted(numbers, end)
        rows.args, rows.args_at, rows.args_len = args, begin - 2 * before, rows.args_len - 2 * (behind - before)
        self.timed += int(np.count_nonzero(is_timed & ~is_left))
        return is_left

    def sort_out_devices(self) -> None:
        """Make tracks of planes that are not hosts, which are not processes."""
        for track in self._processes.values():
            process = self.out.tracks[track]
            if not process.name.startswith(HOST):
                process.kind = TrackKind.TRACK
        for thread in self._threads.values():
            line = self.out.tracks[TrackId(thread)]
            line.kind = TrackKind.THREAD if self.out.tracks[line.parent].kind is TrackKind.PROCESS else TrackKind.TRACK


def _number(member: re.Match[bytes]) -> bytes:
    """Return the value of a member as a number, if it fits into 64 bits; else as it is."""
    return member[0] if whole_of(member[1]) is None else b":" + member[1]


def _with_numbers(args: bytes) -> tuple[bytes, I64]:
    """Return args with numbers where the exporter wrote them as text, two bytes shorter each, and where these are."""
    parts, places, end = list[bytes](), list[int](), 0
    for found in _INTEGER.finditer(args):
        if (number := _number(found)) != found[0]:
            parts += (args[end : found.start()], number)
            places.append(found.start())
            end = found.end()
    return b"".join((*parts, args[end:])), np.array(places, np.int64)
