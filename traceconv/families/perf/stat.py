"""Counts of `perf stat`: over a whole run, or for each interval (-I), in any of its forms (see `_stat_lines`).

    # started on Sat Nov 21 07:07:31 2026

    #           time             counts unit events
         0.062695740              43.91 msec task-clock                       #    0.878 CPUs utilized

The time is the end of an interval, in seconds since perf stat began (a difference of CLOCK_MONOTONIC); a count is what
came up since the line before of that event. So a count is drawn from the start of its interval, as a counter, and all
that the line says is in the args of the slice of the interval. Without -I there is one count for the run: with its
length (text form only) a slice, else a row of a table without timeline, with all events in its args. When it began is
told only by `started on`, in whole seconds of local time without a zone, and only with -o.

A count of 0 is a number. An event that was not counted has none: its counter falls to 0, since a counter knows no gaps,
the counter `... running` beside it is 0 %, and the args say "<not counted>".
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, ClassVar

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.families.common.idle_lines import BLANK, DIGIT, SPACE, IdleLines, holds, lines_but, literal
from traceconv.families.common.local_time import local_time, refuse_zone, seconds_since_1970, zone_of, zone_option
from traceconv.families.importer import Match, option
from traceconv.families.perf import _stat_lines as lines
from traceconv.families.perf._stat_lines import NOT_SUPPORTED, Row
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Provenance, Run, Zero
from traceconv.model.counted import EMPTY_LINES, FURTHER_METRICS, LINES, RUN_COUNTS, RUN_LINES, UNSUPPORTED_EVENTS
from traceconv.model.diagnostics import absent, lost, noted, skipped
from traceconv.model.marks import CountMarks, FormatMarks
from traceconv.model.numbers import double, whole_or_text
from traceconv.model.times import LIMIT_NS, S, parse_ns
from traceconv.model.trace import NO_TRACK, TrackId

STAT_CLOCK = ClockDomain("perf stat time", Zero.RUN_START, Run.MONOTONIC)

#: The category of the counts of a whole run. A summary beside intervals repeats these, and is not of it.
WHOLE_RUN = "perf stat run"

OTHER_LINE = skipped(
    "perf-stat.other_line", "lines that are not of perf stat (output of the program) were left out", quiet=True
)
BAD_LINE = lost(
    "perf-stat.unreadable",
    "a line begins like one of perf stat, but cannot be read: it is cut or mixed with other text",
)
METRIC_ONLY = lost("perf-stat.metric_only", "lines of --metric-only hold no counts and are not read: record without it")
WAS_NOT_COUNTED = absent(
    "perf-stat.not_counted",
    "an event was not counted (its thread did not run, or no counter was free): the args say so; its "
    "counter is 0 there and the counter `running` is 0 %",
)
WAS_NOT_SUPPORTED = absent(
    "perf-stat.not_supported", "an event is not supported on that machine (often a virtual one): it is in the args only"
)
MULTIPLEXED = noted(
    "perf-stat.multiplexed",
    "an event was on a counter for only a part of the time (`running` below 100 %): perf scaled its count up",
)

_BEGIN = "# started on "
_STARTED = re.compile(_BEGIN + r"(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\s*")
_TITLE = re.compile(r"\s*Performance counter stats for (.*?)(?: \((\d+) runs\))?:\s*")
_ELAPSED = re.compile(
    r"(?a)\s*(\d{1,9}[.,]\d+)(?: \+- (\d{1,9}[.,]\d+))? seconds time elapsed(?:\s+\( \+-\s*(\d+[.,]\d+)% \))?\s*"
)
_CPU_TIME = re.compile(r"(?a)\s*(\d{1,12}[.,]\d+)(?: \+- \d+[.,]\d+)? seconds (user|sys)\b.*")
_ONE_OF_RUNS = re.compile(r"(?a)\s*+(\d{1,12}[.,]\d+) \([+-]\d+[.,]\d+\)\s++#*+\s*+")
_HEADING = re.compile(r"#\s+time\s.*\bcounts unit events\s*")
_COMMENTS = rb"#(?! started on )[^\n\r\x1b]{0,1000}+\r?\n"
_A_VALUE = holds(DIGIT[:-1] + b"<]")
#: What lines of perf stat hold that are not fields between separators: counts, metrics, times, totals.
_KNOWN = (
    rb"\{|" + SPACE + b"*(?:#|time)",
    rb"(?=[^\n<#(Ps]*+[<#(Ps])" + holds(b"<not| #|seconds|Performance counter|" + rb"\([+-]"),
    rb"(?=[^\n\d\x80-\xff]*+%b)(?:%b|%b)"
    % (DIGIT, holds(b"[.,]" + DIGIT + b"{2}"), holds(DIGIT) + holds(SPACE, 2) + holds(b"[A-Za-z_]")),
)
_LINES_TO_JUDGE = 400
#: Longer lines are not of perf stat.
_MAX_LINE = 4000
_EVENT = re.compile(r"[A-Za-z_][\w.:/=,{}@*-]*")
#: `started on` is cut to seconds, and perf begins to count a little later.
_START_BOUND_NS = 10**9
_COUNT_HELP = "count in each interval, drawn from its start; 0 after the last one and where the event was not counted"
_RUNNING_HELP = (
    "share of the interval in which the event was on a counter; below 100 % its count was scaled up; 0 after the last"
)


class _Recording(msgspec.Struct):
    """The output of one perf stat.

    Attributes:
        number: its number, from 1.
        start: its zero on the clock of the input, ns.
        last: the end of the last interval so far, ns from its start.
        whole: the counts over the whole run, with line numbers.
        open_rows: for each place, the rows of its open interval, by event.
    """

    number: int
    start: int = 0
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    started: datetime | None = None
    elapsed: int | None = None
    last: int = 0
    before: int = 0
    whole: list[tuple[int, Row]] = msgspec.field(default_factory=list)
    open_rows: dict[str, dict[str, Any]] = msgspec.field(default_factory=lambda: defaultdict(dict))
    seen_at: int = 0
    in_block: bool = False
    root: TrackId = NO_TRACK
    groups: dict[str, TrackId] = msgspec.field(default_factory=dict)
    interval_tracks: dict[str, TrackId] = msgspec.field(default_factory=dict)
    counters: dict[tuple[str, str], TrackId] = msgspec.field(default_factory=dict)
    shares: dict[tuple[str, str], TrackId] = msgspec.field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether no count has been seen yet."""
        return not self.last and not self.whole


class _Reader:
    """Reads one file into a builder."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._now = _Recording(1)
        self.recordings = [self._now]
        self._separator = ""
        self._latest: Row | None = None
        self._unsupported: set[str] = set()
        self._lines = IdleLines(out)

    def read(self, source: Source) -> None:
        """Read all lines."""
        for number, line in self._lines.read(source):
            self._line(number, plain(line))
        self._close()
        if all(recording.empty for recording in self.recordings):
            raise source.malformed(
                "no count found, expected lines such as `43.91 msec task-clock`, those of -x or of -j",
                hint=f"--metric-only prints none; record some with {PerfStat.record}",
            )
        self._out.metadata["perf_stat"] = [recording.info for recording in self.recordings]

    def _line(self, number: int, line: bytes) -> None:
        text, separator = line.decode("utf-8", "replace"), self._separator
        if len(text) > _MAX_LINE:
            self._out.skip(OTHER_LINE, number, f"{len(text)} characters")
        elif not text.strip():
            self._lines.merged(EMPTY_LINES, BLANK)
        elif text.startswith("{"):
            self._json(number, line)
        elif text.startswith("#") and not text.startswith(_BEGIN):
            self._lines.merged(RUN_LINES, _COMMENTS)
        elif self._about_run(text):
            self._out.balance.merged[RUN_LINES] += 1
        else:
            row = self._row_of(text)
            if row is not None:
                self._row(number, row)
                return
            if lines.NOT_COUNTED in text or lines.find_separator(text):
                self._lines.skip(BAD_LINE, number, repr(text[:60]))
            elif _has_time(text):
                self._lines.skip(METRIC_ONLY if self._now.empty else BAD_LINE, number, repr(text.strip()[:60]))
            else:
                self._lines.skip(OTHER_LINE, number, repr(text.strip()[:60]), _others(self._separator))
            if self._separator != separator:
                self._lines.forget()

    def _json(self, number: int, line: bytes) -> None:
        try:
            parsed = lines.json_row(line)
        except ValueError:  # an invalid time
            parsed = None
        if parsed is None:
            self._lines.skip(BAD_LINE, number, repr(line[:60].decode("utf-8", "replace")))
            return
        row, more = parsed
        if row.event or row.metrics:
            self._row(number, row)
        elif more:
            self._lines.skip(METRIC_ONLY, number)
        else:
            self._lines.merged(EMPTY_LINES)

    def _row_of(self, text: str) -> Row | None:
        """Parse a line with a count or a metric, in the -x form or the text form."""
        if not self._separator:
            self._separator = lines.find_separator(text)
        row = lines.csv_row(text, self._separator) if self._separator and self._separator in text else None
        if row is None:
            row = lines.text_row(text)
            if row is not None and row.end is None and not (self._now.in_block or (row.value is None and self._latest)):
                return None  # outside of a block of perf stat, only lines with a time are of perf stat
        return row

    # -- about the run ----------------------------------------------------------------------------------------------

    def _about_run(self, text: str) -> bool:
        """Keep a line about the whole run; return whether it is one."""
        recording = self._now
        if text.startswith(_BEGIN):
            self._begin(text)
        elif title := _TITLE.fullmatch(text):
            if recording.elapsed is not None:
                self._begin("")
            self._now.in_block = True
            self._now.info["command"] = title[1].removeprefix("'").removesuffix("'")
            if title[2]:
                self._now.info["runs"] = whole_or_text(title[2])
        elif elapsed := _ELAPSED.fullmatch(text):
            self._elapsed(elapsed)
        elif cpu_time := _CPU_TIME.fullmatch(text):
            recording.info[f"{cpu_time[2]}_s"] = _float(cpu_time[1])
        elif recording.in_block and (one := _ONE_OF_RUNS.fullmatch(text)):
            recording.info.setdefault("measurements_s", []).append(_float(one[1]))
        elif not (text.startswith("#") or (recording.in_block and text.strip().startswith("# "))):
            return False
        return True

    def _begin(self, text: str) -> None:
        """Start a new recording, unless the current one is empty."""
        if not self._now.empty:
            self._close()
            self._now = _Recording(len(self.recordings) + 1)
            self.recordings.append(self._now)
        match = _STARTED.fullmatch(text)
        if match is not None:
            self._now.info["started_on_local_time"] = match[1]
            self._now.started = _ctime(match[1])
        if self._now.number > 1:
            self._now.start = self._start_of_next()

    def _start_of_next(self) -> int:
        """Return the start of a further recording, ns: by its `started on`, and not before the end of the last one."""
        first, before = self.recordings[0], self.recordings[-2]
        end = before.start + max(before.last, before.elapsed or 0)
        self._out.note(
            "several recordings in one file: each starts at its `started on`, known to a second, or at the end of the "
            "one before"
        )
        if first.started is None or self._now.started is None:
            return end
        seconds = int((self._now.started - first.started).total_seconds())
        return max(end, min(seconds * 10**9, LIMIT_NS // 2))

    def _elapsed(self, match: re.Match[str]) -> None:
        recording = self._now
        recording.elapsed = min(parse_ns(match[1].replace(",", ".").encode(), S), LIMIT_NS // 4)
        recording.info["elapsed_s"] = _float(match[1])
        if match[2]:
            recording.info["elapsed_plus_minus_s"] = _float(match[2])

    # -- counts ------------------------------------------------------------------------------------------------------

    def _row(self, number: int, row: Row) -> None:
        if row.value is None:
            self._more_metrics(number, row)
            return
        self._latest = row
        if isinstance(row.value, str):
            self._no_value(number, row)
        elif row.running is not None and row.running < 100:
            self._out.problem(MULTIPLEXED, number, f"{row.event} {row.running:g} %")
        if row.end is None:
            self._now.whole.append((number, row))
            self._out.balance.merged[RUN_COUNTS] += 1
            return
        self._interval(number, row)

    def _more_metrics(self, number: int, row: Row) -> None:
        """Add a further metric of the count before."""
        if self._latest is None:
            self._out.skip(BAD_LINE, number, "a metric without a count before it")
            return
        self._latest.metrics.update(row.metrics)
        if self._latest.end is not None:
            self._now.open_rows[self._latest.place][self._latest.label] = self._latest
        self._out.balance.merged[FURTHER_METRICS] += 1

    def _no_value(self, number: int, row: Row) -> None:
        if row.value != NOT_SUPPORTED:
            self._out.problem(WAS_NOT_COUNTED, number, row.label)
        elif row.label not in self._unsupported:
            self._unsupported.add(row.label)
            self._out.problem(WAS_NOT_SUPPORTED, number, row.label)

    def _interval(self, number: int, row: Row) -> None:
        assert row.end is not None
        if row.end < self._now.last:
            self._begin("")
        recording = self._now
        if row.end != recording.last:
            self._end_interval()
            recording.before, recording.last, recording.seen_at = recording.last, row.end, number
        recording.open_rows[row.place][row.label] = row
        if row.value == NOT_SUPPORTED:
            self._out.balance.merged[UNSUPPORTED_EVENTS] += 1
            return
        self._out.balance.written += 1
        key = row.place, row.label
        start = recording.start + recording.before
        self._share(recording, key, row, start, number)
        if key in recording.counters or row.counted:
            counter = self._counter(recording, key, row)
            self._out.counter(counter, start, row.value if isinstance(row.value, int | float) else 0, number)

    def _counter(self, recording: _Recording, key: tuple[str, str], row: Row) -> TrackId:
        track = recording.counters.get(key)
        if track is None:
            parent = self._group(recording, row.place)
            unit = row.unit or "count"
            track = self._out.tracks.counter(row.label, parent, unit=unit, description=_COUNT_HELP)
            recording.counters[key] = track
        return track

    def _share(self, recording: _Recording, key: tuple[str, str], row: Row, start: int, number: int) -> None:
        """Draw the share of time in which the event was counted, from the first value below 100 % on."""
        percent = 100.0 if row.running is None else row.running  # the text form omits 100 %
        share = percent if row.counted else 0.0
        track = recording.shares.get(key)
        if track is None and share >= 100:
            return
        if track is None:
            parent = self._group(recording, row.place)
            track = self._out.tracks.counter(f"{row.label} running", parent, unit="%", description=_RUNNING_HELP)
            recording.shares[key] = track
            if recording.before:
                self._out.counter(track, recording.start, 100.0, number)
        self._out.counter(track, start, share, number)

    def _end_interval(self) -> None:
        """Draw the complete interval with its args."""
        recording = self._now
        for place, events in recording.open_rows.items():
            track = recording.interval_tracks.get(place)
            if track is None:
                group = self._group(recording, place)
                track = recording.interval_tracks[place] = self._out.tracks.add("intervals", group)
            start, dur = recording.start + recording.before, recording.last - recording.before
            args = {label: row.args() for label, row in events.items()}
            self._out.slice(track, start, dur, "interval", "perf stat", args, recording.seen_at)
        recording.open_rows = defaultdict(dict)

    # -- tracks, and the end of a recording ----------------------------------------------------------------------------

    def _group(self, recording: _Recording, place: str) -> TrackId:
        """Return the track of a CPU, core, socket or thread below that of the recording."""
        if recording.root == NO_TRACK:
            name = "perf stat" if recording.number == 1 else f"perf stat {recording.number}"
            recording.root = self._out.tracks.add(name)
        if not place:
            return recording.root
        group = recording.groups.get(place)
        if group is None:
            group = recording.groups[place] = self._out.tracks.add(place, recording.root)
        return group

    def _close(self) -> None:
        """Write the parts that are known only at the end of a recording."""
        recording = self._now
        self._end_interval()
        self._latest = None
        for track in (*recording.counters.values(), *recording.shares.values()):
            self._out.counter(track, recording.start + recording.last, 0)
        if recording.root != NO_TRACK or recording.whole:
            root = self._out.tracks[self._group(recording, "")]
            root.description = str(recording.info.get("command", ""))
        if recording.whole or recording.elapsed:
            self._write_run(recording, recording.elapsed or recording.last)

    def _write_run(self, recording: _Recording, length: int) -> None:
        """Write the counts of a whole run: a slice for each place, or a row of a table if the length is unknown."""
        runs: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for number, row in recording.whole:
            of_place = runs.setdefault(row.place, [])
            if not of_place or row.label in of_place[-1][1]:
                of_place.append((number, {}))
            of_place[-1][1][row.label] = row.args()
        name = str(recording.info.get("command") or "summary")
        category = "perf stat" if recording.last else WHOLE_RUN
        for place, of_place in (runs or {"": [(0, {})]}).items():
            group = self._group(recording, place)
            table = NO_TRACK if length else self._out.tracks.totals("whole run", group)
            for number, events in of_place:
                args = events if place else recording.info | events
                if length:
                    track = self._out.tracks.add("whole run", group)
                    self._out.slice(track, recording.start, length, name, category, args, number)
                else:
                    self._out.totals(table, name, category, args, number)
        if any(len(of_place) > 1 for of_place in runs.values()):
            self._out.note(
                "events are counted more than once for the whole run: each time is taken as a run of its own"
            )
        if not length:
            self._out.note("one count for the whole run, whose length is not stated: a table without a timeline")
        elif not recording.last:
            mean = " (the mean of the runs)" if "runs" in recording.info else ""
            self._out.note(f"one count for the whole run: a slice as long as the run{mean}, which begins at 0")


def _ctime(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None


def _float(text: str) -> float:
    return double(text.replace(",", "."))


def _others(separator: str) -> bytes:
    """Return the pattern of lines without a count, a metric or information about the run."""
    return lines_but(*_KNOWN, *([b"(?=%b)%b" % (holds(literal(separator)), _A_VALUE)] if separator else []))


def _has_time(text: str) -> bool:
    """Return whether a line begins with the end of an interval, or is the heading of --metric-only."""
    return re.match(r"\s*(?:\d+[.,]\d{9}|time)[ ,;\t]", text) is not None


@dataclass(frozen=True)
class PerfStat:
    """Counts of perf stat."""

    utc_offset: str = option("", 'the time zone of the machine that recorded, as "+02:00": `started on` is local time.')

    name: ClassVar[str] = "perf-stat"
    title: ClassVar[str] = "Linux perf stat counts (text, -x, -j; -I)"
    url: ClassVar[str] = "https://man7.org/linux/man-pages/man1/perf-stat.1.html"
    versions: ClassVar[str] = "checked with perf 6.1; text, CSV with any separator, JSON"
    clock: ClassVar[ClockDomain] = STAT_CLOCK
    record: ClassVar[str] = "perf stat -I 100 -j -o perf.stat.json python run.py"
    line_up: ClassVar[str] = (
        "perf stat prints its start in whole seconds of local time, and only with -o: --tz FILE=+02:00 uses "
        "it, accurate to a second. For more accuracy, use --offset."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("count of an event in an interval (-I)", "counter from the start of the interval, with its unit"),
        ("CPU, core, socket, node, thread (-A, --per-...)", "group of tracks"),
        (
            "all that perf prints about an interval",
            "args of its slice: value, unit, run time, percentage, metrics, variance",
        ),
        ("percentage of time on a counter, if below 100", "counter `... running`"),
        ("counts of the whole run, --summary", "args of a slice as long as the run, or of a row without timeline"),
        ("command, started on, elapsed, user, sys", "metadata, args of the run"),
    )
    #: The counter beside the counts of an event is the share of time in which it was on a counter.
    marks: ClassVar[FormatMarks] = FormatMarks(
        interval_counts=r"(?!.* running$).*",
        interval_threads=r"(?P<name>.*)-(?P<tid>[0-9]{1,10})",
        counts=CountMarks((WHOLE_RUN,), "(?s:.+)", rows_are_calls=True, value="value", unit="unit"),
    )
    skips = (OTHER_LINE,)
    lost: ClassVar[tuple[str, ...]] = (
        "Metrics without counts (--metric-only) are not read.",
        "The start is known to a second at best.",
    )
    checked = (
        ("perf 6.1", "recorded", "all forms: text, -x, -j, intervals, aggregations"),
        (
            "perf 4 and 5",
            "4 published texts (commit messages of Linux, mails of its list, a book)",
            "counts, units, metrics, what was not supported",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by title or heading of the text, the keys of the JSON, or a line of the form with separators."""
        if b"Performance counter stats for " in head.data:
            return Match.yes("the title of perf stat")
        separator = ""
        for line in map(plain, head.data.splitlines()[:_LINES_TO_JUDGE]):
            if line.startswith(b"{") and b'"counter-value"' in line and b'"event"' in line:
                return Match.yes("counts of perf stat -j")
            text = line[:1000].decode("utf-8", "replace")
            if _HEADING.fullmatch(text):
                return Match.yes("the heading of perf stat -I")
            separator = separator or lines.find_separator(text)
            row = lines.csv_row(text, separator) if separator and separator in text else None
            if row is not None and row.run_time_ns is not None and _EVENT.fullmatch(row.event):
                return Match.yes("counts of perf stat -x")
        return Match.no("no count of perf stat")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole file."""
        zone = zone_of(self.name, self.utc_offset)
        out.info.unit = "line"
        out.balance.unit = LINES
        reader = _Reader(out)
        reader.read(source)
        if any(one.elapsed or one.last for one in reader.recordings):
            self._tell_start(reader.recordings[0], zone, out)
        else:
            refuse_zone(self.name, self.utc_offset, source.name, "its counts are totals, which have no times")

    def _tell_start(self, first: _Recording, zone: timezone, out: Builder) -> None:
        """Add the snapshot of the start, if the user states the zone."""
        if first.started is None:
            return
        if not self.utc_offset:
            option = zone_option(out.info.name)
            out.note(f"`started on` is local time in whole seconds: {option} puts the counts there")
            return
        wall = seconds_since_1970(first.started, zone) * 10**9 + _START_BOUND_NS // 2
        method = f"`started on` of the file in whole seconds (local time read as {zone})"
        local = local_time(zone)
        out.clocks.snapshot(
            ClockSnapshot(STAT_CLOCK, 0, REALTIME, wall, _START_BOUND_NS, method, local, Provenance.ASSUMED)
        )
