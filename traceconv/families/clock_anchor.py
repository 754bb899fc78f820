"""Readings of the clocks of a machine, as `traceconv anchor` writes them.

    {
     "traceconv-anchor": 1,
     "host": "vm",
     "clocks": {"CLOCK_MONOTONIC": {"resolution_ns": 1}, "CLOCK_REALTIME": {"resolution_ns": 1}},
     "readings": [
      {"clock": "CLOCK_MONOTONIC", "ns": 81337133953514, "other": "CLOCK_REALTIME",
       "other_ns": 1795263177136846411, "within_ns": 51},
     ...
     "command": {"argv": ["python", "run.py"], "clock": "CLOCK_MONOTONIC", "start_ns": 81337140000000, ...}
    }

The format is that of traceconv; schemas/anchor.schema.json describes it. A file holds clocks and snapshots, and a slice
for the command that ran between the readings. Two clocks that were read before and after the command are related by a
line, so that recordings in between are placed correctly although the clocks drift.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
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
)
from traceconv.model.diagnostics import lost
from traceconv.model.marks import FormatMarks
from traceconv.model.numbers import LIMIT_NS

READINGS = Counted("reading", "readings")
READINGS_BY_TWO_NAMES = Counted("reading of one clock by two names", "readings of one clock by two names")
KEPT_READINGS = Counted("reading kept as clock snapshot", "readings kept as clock snapshots")

BAD_READING = lost("clock-anchor.bad_reading", "a time or a bound is out of range: it was left out")

FORMAT = 1
_MARK = "traceconv-anchor"
_MARK_AT_END = re.compile(rb'"traceconv-anchor"\s*:\s*\d+\s*\}\s*\Z')
_SYSTEM_CLOCK = re.compile(r"clock_gettime\((CLOCK_\w+)\)")
_CLOCKS = {
    "CLOCK_REALTIME": REALTIME,
    "time": REALTIME,
    "CLOCK_MONOTONIC": MONOTONIC,
    "CLOCK_MONOTONIC_RAW": MONOTONIC_RAW,
    "CLOCK_BOOTTIME": BOOTTIME,
    "CLOCK_TAI": TAI,
    "QueryPerformanceCounter()": ClockDomain("QueryPerformanceCounter", Zero.BOOT, Run.MONOTONIC),
    "mach_absolute_time()": ClockDomain("mach_absolute_time", Zero.BOOT, Run.MONOTONIC),
}


class _About(msgspec.Struct):
    resolution_ns: int = 1
    implementation: str = ""


class _Reading(msgspec.Struct):
    clock: str
    ns: int
    other: str
    other_ns: int
    within_ns: int


class _Command(msgspec.Struct):
    argv: list[str]
    clock: str
    start_ns: int
    end_ns: int
    pid: int | None = None
    exit_code: int | None = None


class _File(msgspec.Struct):
    host: str
    clocks: dict[str, _About]
    readings: list[_Reading]
    version: int = msgspec.field(name="traceconv-anchor")
    command: _Command | None = None
    system: str = ""
    boot_id: str = ""


class _Reader(msgspec.Struct, frozen=True):
    out: Builder
    content: _File

    def read(self) -> None:
        """Read the clocks, their readings, the command."""
        content = self.content
        self.out.clocks.set_default(
            self._domain(content.command.clock if content.command else content.readings[0].clock)
        )
        pairs: dict[tuple[ClockDomain, ClockDomain], list[_Reading]] = defaultdict(list)
        for number, reading in enumerate(content.readings, 1):
            self.out.balance.read += 1
            if max(abs(reading.ns), abs(reading.other_ns)) > LIMIT_NS or not 0 <= reading.within_ns <= LIMIT_NS:
                self.out.skip(BAD_READING, number, f"{reading.clock} and {reading.other}")
                continue
            first, second = self._domain(reading.clock), self._domain(reading.other)
            if first == second:
                self.out.balance.merged[READINGS_BY_TWO_NAMES] += 1
                continue
            self.out.balance.kept[KEPT_READINGS] += 1
            pairs[first, second].append(reading)
        for (first, second), readings in pairs.items():
            self._relate(first, second, readings)
        if content.command is not None:
            self._command(content.command)
        self.out.info.boot_id = content.boot_id
        info = {"host": content.host, "system": content.system, "boot_id": content.boot_id}
        for key, value in info.items():
            if value:
                self.out.metadata[key] = value

    def _domain(self, name: str) -> ClockDomain:
        """Return the domain of a clock by the name in the file, on the machine of the file."""
        about = self.content.clocks.get(name, _About())
        of_system = _SYSTEM_CLOCK.match(about.implementation)
        known = _CLOCKS.get(of_system[1] if of_system else name) or _CLOCKS.get(about.implementation)
        if known is None:
            known = ClockDomain(about.implementation or name, Zero.UNKNOWN, Run.MONOTONIC)
        if of_system:  # the clocks of a reading must be in the list
            about = self.content.clocks.get(of_system[1], about)
        resolution = min(max(about.resolution_ns, 1), LIMIT_NS)
        return replace(known, resolution_ns=resolution, machine=self.content.host)

    def _relate(self, first: ClockDomain, second: ClockDomain, readings: list[_Reading]) -> None:
        self.out.clocks.add(first)
        self.out.clocks.add(second)
        method = f"readings of {first.name} and {second.name}"
        for reading in readings:
            snapshot = ClockSnapshot(first, reading.ns, second, reading.other_ns, reading.within_ns, method)
            self.out.clocks.snapshot(snapshot)

    def _command(self, command: _Command) -> None:
        """Draw a slice from the start to the end of the command."""
        self.out.balance.read += 1
        dur = command.end_ns - command.start_ns
        if dur < 0 or max(abs(command.start_ns), abs(command.end_ns)) > LIMIT_NS:
            self.out.skip(BAD_READING, len(self.content.readings) + 1, "the command ends before it starts")
            return
        self.out.balance.written += 1
        words = command.argv
        name = shlex.join(words) or "command"
        if command.pid is not None and 0 <= command.pid < 2**31:
            track = self.out.tracks.add("command", self.out.tracks.process(words[0] if words else "", pid=command.pid))
        else:
            track = self.out.tracks.add("command")
        args = {"argv": words, "exit_code": command.exit_code}
        self.out.slice(track, command.start_ns, dur, name, "command", args, self.out.balance.read)


@dataclass(frozen=True)
class ClockAnchor(Importer):
    name = "clock-anchor"
    title = "Clock readings of traceconv anchor"
    url = "https://docs.python.org/3/library/time.html#time.clock_gettime"
    versions = "version 1, of Linux and of what Python can read elsewhere"
    signature = Signature("traceconv-anchor")
    clock = _CLOCKS["CLOCK_MONOTONIC"]
    record = "traceconv anchor -o anchor.json -- python run.py"

    line_up = (
        "It relates the clocks of all recordings of its machine, such as CLOCK_MONOTONIC of perf and CLOCK_REALTIME "
        "of MXNet. If a file names no machine: --clock FILE=monotonic@HOST."
    )
    becomes = (
        ("readings", "clock snapshots, a line with a drift where two clocks were read twice"),
        ("command", "slice in its process, with the command line and the exit code as args"),
    )
    lost = ("Between the readings, clocks are assumed to run evenly.",)
    marks = FormatMarks(reads_clocks=True)

    def sniff(self, head: Head) -> Match:
        """Return YES for an object with the member "traceconv-anchor", at any position."""
        members = head.json.members
        if _MARK in members or (members and not head.complete and _MARK_AT_END.search(head.tail)):
            return Match.yes("the mark of traceconv anchor")
        return Match.no("no mark of an anchor")

    def read(self, source: Source, out: Builder) -> None:
        """Read the file. Raises MalformedInput if it is not a complete object of this form."""
        out.info.real_ids = True
        out.counts(READINGS)
        with source.open() as stream:
            data = stream.read()
        try:
            content = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise source.malformed(
                f"{error}, expected the object that traceconv anchor writes",
                hint="the file is written when the command has ended; was it copied whole?",
            ) from None
        if content.version != FORMAT:
            raise source.malformed(
                f"version {content.version} of the format, expected {FORMAT}", hint="update traceconv"
            )
        if not content.readings:
            raise source.malformed("no readings, expected at least one", hint="record it again")
        _Reader(out, content).read()
