"""The CSV with external data that VTune reads: tasks, frames and counters that another collector writes, with times.

    name,start_tsc.CLOCK_MONOTONIC_RAW,end_tsc,pid,tid
    decode,1234567890123,1234567990123,4100,4101

    tsc.CLOCK_MONOTONIC_RAW,Requests:COUNT,Temperature:INST,pid,tid
    1234567890123,10,45,4100,4100

The order of the columns is fixed; names are not quoted, whatever commas they hold. A task has pid and tid, work of a
whole process has a pid, a frame has neither. A counter of the kind COUNT is a running total: its
differences matter.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from msgspec import Struct

from traceconv.families.common.local_time import local_ns
from traceconv.families.common.text_lines import TextLines, text_of_line
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.diagnostics import HEADINGS, lost, skipped
from traceconv.model.numbers import LIMIT_NS, is_digits, number_of, whole
from traceconv.model.track_table import NO_TRACK, TrackId

FIRST_TOTALS = Counted("first row of a running total", "first rows of running totals")

BAD_ROW = lost(
    "vtune.bad_external_row",
    "a row does not have the fields of the heading, or its times are invalid: it is cut, or mixed with other output",
)
FOREIGN_LINE = skipped("vtune.empty_line", "empty lines and repeated headings", quiet=True)

_CLOCKS = "QPC|CLOCK_MONOTONIC_RAW|RDTSC|TSC|UTC"
INTERVALS = re.compile(
    rf"name(?P<mark>[,;\t])start_tsc\.(?P<clock>{_CLOCKS})[,;\t]end_tsc(?P<pid>[,;\t]pid(?P<tid>[,;\t]tid)?)?(?<!\s)\s*+"
)
COUNTERS = re.compile(
    rf"tsc\.(?P<clock>{_CLOCKS})(?P<mark>[,;\t])(?P<names>.*?[:.](?:COUNT|INST)\b.*?)"
    r"(?P<pid>[,;\t]pid(?P<tid>[,;\t]tid)?)?(?<!\s)\s*+"
)
_COUNTER = re.compile(r"(.*)[:.](COUNT|INST)")
# 2026-11-21 10:11:12.1234567
_HOST = re.compile(r"hostname-(.+?)\.csv", re.IGNORECASE)
_TICKS = ("QPC", "RDTSC", "TSC")


class External(Struct, frozen=True):
    """A heading, taken apart."""

    mark: str
    clock: str  # the clock of the times: QPC, CLOCK_MONOTONIC_RAW, RDTSC, TSC or UTC
    counters: tuple[tuple[str, str], ...]  # name and kind of each counter; empty for intervals
    has_pid: bool
    has_tid: bool

    @property
    def ids(self) -> int:
        """The number of fields with pid and tid at the end of a row."""
        return self.has_pid + self.has_tid


def heading_of(line: str) -> External | None:
    """Parse a heading; return None for another line."""
    if not line.startswith(("name", "tsc")):
        return None
    intervals, counters = INTERVALS.fullmatch(line), COUNTERS.fullmatch(line)
    match = intervals or counters
    if match is None:
        return None
    names: list[tuple[str, str]] = []
    if counters is not None:
        for column in counters["names"].split(counters["mark"]):
            counter = _COUNTER.fullmatch(column.strip().strip('"'))
            if counter is None:
                return None
            names.append((counter[1], counter[2]))
    return External(match["mark"], match["clock"], tuple(names), bool(match["pid"]), bool(match["tid"]))


def read_external(source: Source, out: Builder, frequency_hz: int | None) -> None:
    """Read the whole file."""
    out.info.real_ids = True
    _Reader(source, out, frequency_hz).read()


class _Reader:
    def __init__(self, source: Source, out: Builder, frequency_hz: int | None) -> None:
        self._source = source
        self._out = out
        self._frequency = frequency_hz
        self._heading: External | None = None
        self._tracks: dict[tuple[Any, ...], TrackId] = {}
        self._before: dict[tuple[Any, ...], tuple[int, int]] = {}

    def read(self) -> None:
        out = self._out
        for number, line in TextLines(out).read(self._source):
            text = text_of_line(line)
            heading = heading_of(text)
            if heading is not None and self._heading is None:
                self._begin(heading)
                out.balance.merged[HEADINGS] += 1
            elif not text.strip() or heading is not None or self._heading is None:
                out.skip(FOREIGN_LINE, number)
            elif self._heading.counters:
                self._values(self._heading, text, number)
            else:
                self._interval(self._heading, text, number)

    def _begin(self, heading: External) -> None:
        self._heading = heading
        self._out.clocks.set_default(self._clock(heading))
        self._out.metadata["vtune_external"] = {"clock": heading.clock, "frequency_hz": self._frequency}

    def _clock(self, heading: External) -> ClockDomain:
        host = _HOST.search(self._source.name)
        machine = host[1] if host else ""
        if heading.clock == "UTC":
            return REALTIME
        if heading.clock in _TICKS and not self._frequency:
            raise self._source.malformed(
                f"the times are ticks of {heading.clock}, and the file does not state how many there are in a second",
                hint="state it: -O frequency_hz=N (QueryPerformanceFrequency for QPC, mostly 10000000; the nominal "
                "frequency of the processor for TSC)",
                where="line 1",
            )
        domain = ClockDomain(heading.clock, Zero.UNKNOWN, Run.MONOTONIC, machine=machine)
        return domain if machine and heading.clock not in _TICKS else domain.owned_by(self._source.name)

    # -- rows ---------------------------------------------------------------------------------------------------

    def _interval(self, heading: External, text: str, number: int) -> None:
        fields = text.rsplit(heading.mark, 2 + heading.ids)
        if len(fields) != 3 + heading.ids:
            self._out.skip(BAD_ROW, number, f"{len(fields)} fields, expected {3 + heading.ids}")
            return
        try:
            start, end = self._time(heading, fields[1]), self._time(heading, fields[2])
            track = self._track(*self._whose(heading, fields))
        except ValueError as error:
            self._out.skip(BAD_ROW, number, str(error))
            return
        name = fields[0].strip()
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = name[1:-1].replace('""', '"')
        self._out.slice(track, start, end - start, name or "[no name]", "vtune", b"", number)
        self._out.balance.written += 1

    def _values(self, heading: External, text: str, number: int) -> None:
        fields = text.split(heading.mark)
        wanted = 1 + len(heading.counters) + heading.ids
        if len(fields) != wanted:
            self._out.skip(BAD_ROW, number, f"{len(fields)} fields, expected {wanted}")
            return
        try:
            ts = self._time(heading, fields[0])
            whose = self._whose(heading, fields)
            values = [_number(field) for field in fields[1 : 1 + len(heading.counters)]]
        except ValueError as error:
            self._out.skip(BAD_ROW, number, str(error))
            return
        drawn = False
        for (name, kind), value in zip(heading.counters, values, strict=True):
            if value is not None:
                drawn |= self._value(name, kind, whose, ts, value, number)
        if drawn:
            self._out.balance.written += 1
        else:
            self._out.balance.merged[FIRST_TOTALS] += 1

    def _value(self, name: str, kind: str, whose: tuple[int | None, int | None], ts: int, value: Any, at: int) -> bool:
        """Draw a value; a running total as its growth until the next row. Return whether one was drawn."""
        track = self._counter(name, kind, whose)
        if kind == "INST":
            self._out.counter(track, ts, value, at)
            return True
        before = self._before.get((name, whose))
        self._before[name, whose] = (ts, value)
        if before is None:
            return False
        self._out.counter(track, before[0], value - before[1], at)
        return True

    def _time(self, heading: External, text: str) -> int:
        text = text.strip().strip('"')
        if heading.clock == "UTC":
            return local_ns(text.removesuffix("Z"), UTC)
        if not is_digits(text):
            raise ValueError(f"not a time: {text[:24]!r}")
        ticks = whole(text)
        ns = ticks if heading.clock not in _TICKS else (ticks * 10**9 + self._hertz // 2) // self._hertz
        if ns > LIMIT_NS:
            raise ValueError(f"time out of range: {text!r}")
        return ns

    @property
    def _hertz(self) -> int:
        assert self._frequency
        return self._frequency

    # -- tracks -------------------------------------------------------------------------------------------------

    def _whose(self, heading: External, fields: list[str]) -> tuple[int | None, int | None]:
        pid = _id(fields[-2] if heading.has_tid else fields[-1]) if heading.has_pid else None
        return pid, _id(fields[-1]) if heading.has_tid else None

    def _process(self, pid: int | None) -> TrackId:
        if pid is None:
            return NO_TRACK
        if ("process", pid) not in self._tracks:
            self._tracks["process", pid] = self._out.tracks.process(pid=pid)
        return self._tracks["process", pid]

    def _track(self, pid: int | None, tid: int | None) -> TrackId:
        key = ("tasks", pid, tid)
        if key not in self._tracks:
            parent = self._process(pid)
            if parent == NO_TRACK:
                self._tracks[key] = self._out.tracks.add("Frames")
            elif tid is None:
                self._tracks[key] = self._out.tracks.add("Tasks of the process", parent)
            else:
                self._tracks[key] = self._out.tracks.thread(parent, tid)
        return self._tracks[key]

    def _counter(self, name: str, kind: str, whose: tuple[int | None, int | None]) -> TrackId:
        key = ("counter", name, whose)
        if key not in self._tracks:
            pid, tid = whose
            parent = self._track(pid, tid) if tid is not None else self._process(pid)
            is_total = kind == "COUNT"
            help_text = "How much the running total grew until the next row." if is_total else ""
            self._tracks[key] = self._out.tracks.counter(
                name, parent, unit="count" if is_total else "", description=help_text
            )
        return self._tracks[key]


def _id(text: str) -> int | None:
    """Return a pid or tid; None if the field is empty."""
    text = text.strip().strip('"')
    if not text:
        return None
    if not is_digits(text):
        raise ValueError(f"not a pid or tid: {text[:24]!r}")
    return whole(text)


def _number(text: str) -> int | float | None:
    """Return a value; None if the field is empty."""
    text = text.strip().strip('"')
    if not text:
        return None
    number = number_of(text)
    if number is None:
        raise ValueError(f"not a number: {text[:24]!r}")
    return number
