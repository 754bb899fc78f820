"""The runs of a oneDNN log and the tracks of their engines. A version header starts a run, mostly a process."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from traceconv.families.onednn import _lines as lines
from traceconv.families.onednn._lines import Record
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.numbers import whole_of
from traceconv.model.trace import NO_TRACK, ClockId, Layer, TrackId

WALL_CLOCK = replace(REALTIME, resolution_ns=1000, exact_durations=True)
BOOT_CLOCK = ClockDomain("QueryPerformanceCounter", Zero.BOOT, Run.MONOTONIC)
NO_CLOCK = ClockDomain("order of the oneDNN lines", Zero.UNKNOWN, Run.NONE)

# oneDNN v3.12.0 (commit 80afa71) | Intel(R) MKL-DNN v0.19.0 (Git Hash 41bee20),Intel(R) AVX512-Deep Learning Boost
_HEADER = re.compile(
    r"(?P<library>[^,:]{0,40}DNN[^,:]{0,20}?) v(?P<version>\d[\w.+-]*)(?: \((?:commit|Git Hash) (?P<commit>[^)]*)\))?"
)
_GROUP_RANK = {"graph": 0, "compile": 1, "exec": 2, "create": 3}
_SHOWN = {"graph": "graph partitions", "exec": "primitives", "create": "creation of primitives"}
SYNTHETIC_HELP = "The log has no timestamps here: order and durations are real, positions are not."


class Layout(msgspec.Struct):
    """The synthetic times of one engine: slices end to end from 0.

    Attributes:
        end: the start of the next slice.
        uncovered: start and group of the last slices that no graph partition encloses.
    """

    end: int = 0
    uncovered: deque[tuple[int, str]] = msgspec.field(default_factory=lambda: deque(maxlen=4096))

    def place(self, group: str, dur: int) -> int:
        """Return the start of a slice of that duration, ns.

        A partition is printed after the primitives that it ran or created: it contains as many as fit.
        """
        start = self.end
        inner = {"graph": "exec", "compile": "create"}.get(group)
        while inner and self.uncovered:
            inner_start, inner_group = self.uncovered.pop()
            if inner_group != inner or self.end - inner_start > dur:
                break
            start = inner_start
        if inner:
            self.uncovered.clear()
        else:
            self.uncovered.append((start, group))
        self.end = max(self.end, start + max(dur, 0))
        return start


class LogRun(msgspec.Struct):
    """The lines from one version header to the next, mostly of a process.

    Attributes:
        info: the content of its info lines.
        last: the time and clock of the last event, for messages without a time.
        latest, longest: the last start and the greatest duration of timed slices so far, ns.
    """

    number: int
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    root: TrackId = NO_TRACK
    tracks: dict[tuple[str, str, str], TrackId] = msgspec.field(default_factory=dict)
    layouts: dict[str, Layout] = msgspec.field(default_factory=dict)
    last: tuple[int, ClockDomain] = (0, NO_CLOCK)
    latest: int = 0
    longest: int = 0

    def describe(self) -> str:
        """Return the library, its version and its device, as far as the log states them."""
        info = self.info
        parts = [f"{info['library']} {info['version']}"] if "version" in info else []
        labels = {"commit": "commit", "isa": "ISA", "cpu_runtime": "CPU runtime", "nthr": "threads"}
        parts += [f"{label} {info[key]}" for key, label in labels.items() if key in info]
        return ", ".join(parts)


@lru_cache(maxsize=1024)
def _info_of(component: str, text: str) -> dict[str, Any]:
    """Return the content of an info line, cached for runs with equal lines; under "info" if not understood."""
    header = _HEADER.match(text)
    if header is not None:
        info: dict[str, Any] = {key: value for key, value in header.groupdict().items() if value}
        if text[header.end() :].startswith(","):  # 0.18 to 0.20 have it on the same line
            info["isa"] = text[header.end() + 1 :]
        return info
    known = re.fullmatch(r"(?:(cpu|gpu),)?(isa:|runtime:|Detected ISA is |(?:prim_)?template:)(.*)", text)
    if known is None:
        return {"info": f"{component},{text}" if component else text}
    if known[2] == "runtime:":
        runtime, _, threads = known[3].partition(",nthr:")
        number = whole_of(threads)
        return {f"{known[1] or 'cpu'}_runtime": runtime} | ({} if number is None else {"nthr": number})
    if known[2].endswith("template:"):
        return {"graph_template" if component == "graph" else "template": known[3]}
    return {"isa": known[3]}


def _note_info(run: LogRun, component: str, text: str) -> None:
    """Keep the content of an info line."""
    info = _info_of(component, text)
    if "info" in info:
        run.info.setdefault("info", []).append(info["info"])
    else:
        run.info.update(info)


class Runs:
    """The runs of one log, and their tracks.

    Args:
        out: the builder.
        pid: the process of all tracks, if it is known.

    Attributes:
        all: the runs, in order.
        is_synthetic: whether any track has synthetic times.
    """

    def __init__(self, out: Builder, pid: int | None) -> None:
        self.all: list[LogRun] = []
        self.is_synthetic = False
        self._out = out
        self._pid = pid
        self._process: TrackId | None = None
        self._current: dict[tuple[bytes, bytes], LogRun] = {}
        self._closed_info: dict[str, Any] = {}
        self._has_clock = False

    def of(self, marker: bytes, version: bytes) -> LogRun:
        """Return the run that a line belongs to.

        Two libraries in one process differ in marker or version of their lines.
        """
        if marker == b"onednn_graph" and self.all:
            return self.all[-1]
        key = (marker, version)
        if key not in self._current:
            self._current[key] = self._new_run()
        return self._current[key]

    def _new_run(self) -> LogRun:
        self.all.append(LogRun(len(self.all) + 1))
        return self.all[-1]

    def _close(self, run: LogRun) -> None:
        """Free the memory of a run that has ended: there may be ten thousands."""
        run.tracks, run.layouts = {}, {}
        if run.info == self._closed_info:
            run.info = self._closed_info
        self._closed_info = run.info

    def note(self, record: Record) -> None:
        """Keep the content of an info line; a second version header starts a new run."""
        component, text = lines.info_of(record.marker, record.body)
        run = self.of(record.marker, record.version)
        if _HEADER.match(text):
            if record.marker == b"onednn_graph" and "version" in run.info:
                run.info["graph_version"] = text
                return
            if "version" in run.info:
                self._close(run)
                run = self._current[record.marker, record.version] = self._new_run()
        _note_info(run, component, text)

    def track(self, run: LogRun, group: str, engine: str, clock: ClockDomain) -> TrackId:
        """Return the track of a group of lines of an engine, on that clock."""
        key = (group, engine, clock.name)
        track = run.tracks.get(key)
        if track is not None:
            return track
        clock_id = self._clock_id(clock)
        if engine.startswith("gpu"):
            self._out.info.layer = Layer.DEVICE
        if run.root == NO_TRACK:
            run.root = self._out.tracks.add("oneDNN", self._parent(), clock=clock_id)
        name = engine if group == "exec" else f"{engine} {group}".strip()
        synthetic = clock is NO_CLOCK
        self.is_synthetic |= synthetic
        track = self._out.tracks.add(
            f"{name} (synthetic)" if synthetic else name,
            run.root,
            description=SYNTHETIC_HELP if synthetic else "",
            clock=clock_id,
        )
        self._out.tracks[track].shown = (
            f"oneDNN {_SHOWN[group]} ({engine})" if group in _SHOWN and not synthetic else ""
        )
        self._out.tracks[track].rank = _GROUP_RANK.get(group, len(_GROUP_RANK))
        run.tracks[key] = track
        return track

    def _parent(self) -> TrackId:
        if self._pid is None:
            return NO_TRACK
        if self._process is None:
            self._process = self._out.tracks.process(pid=self._pid)
        return self._process

    def _clock_id(self, clock: ClockDomain) -> ClockId:
        if clock is NO_CLOCK:
            clock = clock.owned_by(self._out.info.name)
        if not self._has_clock:
            self._out.clocks.set_default(clock)
            self._has_clock = True
        return self._out.clocks.add(clock)
