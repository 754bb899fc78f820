"""Any log whose lines hold a time: the last resort for files that no other importer knows.

    2024-01-02 03:04:05,678 - package.module - INFO - step 3 took 6.4 ms
    I0102 03:04:05.678901 12345 file.cc:77] text
    [ 3267.536384] run 0 starts
    {"time": "2024-01-02T03:04:05.678Z", "level": "info", "msg": "text", "duration_ms": 6.4}

The form of the times is the one that fits most lines and runs forward (`log_times` lists the forms); a note states it.
Lines without a time belong to the entry before them (stack traces). A duration in a line becomes a slice that ends at
the time of its line.

The language of `-O time=PATTERN` is that of strptime, for the first place in a line where the pattern fits: %Y %y %m %b
%d %H %I %p %M %S %f (any number of decimals) %z %a, %s for seconds since 1970, %% for a percent sign; beyond strptime
%{epoch_s} %{epoch_ms} %{epoch_us} %{epoch_ns} for a number since 1970, %{s} %{ms} %{us} %{ns} for one since an unknown
start, %{level} %{thread} %{pid} %{source} for fields, %{skip} for anything up to the first place where what
follows fits. A blank stands for any blanks.

Python's logging: https://docs.python.org/3/howto/logging.html, glog: https://google.github.io/glog/stable/logging/.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from traceconv.errors import UsageError
from traceconv.families.common.ansi import plain
from traceconv.families.common.local_time import date_option, local_time, refuse_zone, zone_of, zone_option
from traceconv.families.importer import Certainty, Importer, Match, Signature, option
from traceconv.families.logs import log_fields, log_times
from traceconv.families.logs.log_fields import AMBIGUOUS_DURATION, BAD_DURATION, Duration, Fields, TimeField
from traceconv.families.logs.log_times import Form, Kind, TimeReader
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    BOOTTIME,
    MONOTONIC,
    MONOTONIC_RAW,
    REALTIME,
    ClockDomain,
    ClockSnapshot,
    LocalForm,
    Provenance,
    Run,
    Zero,
    machine_name,
)
from traceconv.model.diagnostics import LINES, lost, noted
from traceconv.model.marks import FormatMarks
from traceconv.model.numbers import DAY_NS, format_time, is_digits, whole, whole_of
from traceconv.model.track_table import TrackId

FURTHER_LINES = Counted(
    "line without a time, in the entry that it belongs to", "lines without a time, in the entry that they belong to"
)

UNKNOWN_START = ClockDomain("time of the log, zero not stated", Zero.UNKNOWN, Run.UNKNOWN)
LOCAL_TIME = ClockDomain("local wall clock, zone not stated", Zero.UNKNOWN, Run.WALL, local=LocalForm.DATED)
TIME_OF_DAY = replace(LOCAL_TIME, name="local time of day, date and zone not stated", local=LocalForm.TIME_OF_DAY)
#: What -O clockid may say.
CLOCKS = {"monotonic": MONOTONIC, "monotonic_raw": MONOTONIC_RAW, "boottime": BOOTTIME}

STEP_BACK = noted(
    "timed_log.step_back",
    "the time steps back by more than a second: several runs in one log, the clock was set, or threads wrote late",
)
BAD_TIME = noted(
    "timed_log.no_such_time", "a time is invalid (month 13, hour 25): the line was added to the entry before it"
)
BAD_JSON_TIME = lost("timed_log.bad_json_time", "the time of a JSON line cannot be read: the line was left out")
LONG_ENTRY = noted(
    "timed_log.long_entry",
    "an entry has very many lines without a time: it is continued in further entries at the same time",
    quiet=True,
)

#: The lines that are read to recognise the form of times.
_SAMPLE = 2000
_ENTRY_LINES = 500
#: The most lines without a time that are cached, and their greatest length.
_MOST_KNOWN, _SHORT = 1 << 12, 512
_BACK_NS = 10**9
#: The text allowed before the time of a line, besides fields.
_OPENING = re.compile(r"(?:\b(?:ts|time|timestamp|asctime|date)\s*+[=:](?:\s*+[\"\[(<])?|[\"\[(<]|(?<!\s))\s*+$")
#: A message in the style of logfmt, with nothing after it.
_QUOTED = re.compile(r'(?:msg|message)="(?P<text>(?:[^"\\]|\\.)*)"\s*')
_YEAR = re.compile(rb"Log file created at: (\d{4})/")
_HOST = re.compile(rb"Running on machine: (\S+)")
#: The forms whose threads are those of the operating system: glog prints gettid().
_WITH_TIDS = ("glog", "glog-year")


class _Entry(msgspec.Struct):
    """A log entry that may get further lines."""

    ts: int
    track: TrackId
    fields: Fields
    lines: list[str]
    at: int


class _Writer:
    """Writes entries, from text or from JSON."""

    def __init__(self, out: Builder, text_of: Callable[[bytes], str], real_tids: bool = False) -> None:
        self._out = out
        self._text_of = text_of
        self._real_tids = real_tids  # whether the numbers of threads are those of the operating system
        self._processes: dict[str, TrackId] = {}
        self._threads: dict[tuple[str, str], TrackId] = {}
        self._entry: _Entry | None = None
        self._before: list[str] = []
        self._latest: int | None = None
        self.entries = 0

    def entry(self, ts: int, fields: Fields, text: str, at: int, durations: list[Duration]) -> None:
        """Add a line with a time."""
        if self._latest is not None and self._latest - ts > _BACK_NS:
            self._out.problem(STEP_BACK, at, f"{self._latest - ts} ns")
            self._latest = ts
        self._latest = ts if self._latest is None else max(ts, self._latest)
        self.flush()
        track = self._thread(fields)
        self._entry = _Entry(ts, track, fields, [text], at)
        if self._before:
            self._entry_before(ts)
        for name, ns in durations:
            self._out.slice(track, ts - ns, ns, name[:500], "duration", b"", at)
        self._out.balance.written += 1
        self.entries += 1

    def _thread(self, fields: Fields) -> TrackId:
        """Return the thread of a line; "log" if not stated."""
        key = (fields.pid, fields.thread)
        if key not in self._threads:
            number = _id_in(fields.thread)
            name = "" if number is not None else fields.thread or "log"
            self._threads[key] = self._out.tracks.thread(self._process(fields.pid), number, name)
        return self._threads[key]

    def _process(self, pid: str) -> TrackId:
        if pid not in self._processes:
            number = _id_in(pid)
            process = self._processes[pid] = self._out.tracks.process(self._out.info.name, pid=number)
            self._out.tracks[process].unknown = number is None and self._real_tids
        return self._processes[pid]

    def read_lines(self, source: Source, read: Callable[[int, bytes], bool]) -> None:
        """Read all lines; `read` gets one, and returns False if neither it nor equal ones have a time."""
        timeless: dict[bytes, str] = {}
        for numbers, lines in source.batches():
            self._out.balance.read += len(lines)
            if timeless.keys() >= set(lines):
                self.more([timeless[line] for line in lines], numbers)
                continue
            for number, line in zip(numbers, lines, strict=True):
                text = timeless.get(line)
                if text is None:
                    plain_line = line.rstrip(b"\r\n")
                    if read(number, plain_line):
                        continue
                    text = self._text_of(plain_line)
                    if len(line) <= _SHORT:
                        timeless[line] = text
                    if len(timeless) > _MOST_KNOWN:
                        timeless.clear()
                self.more([text], [number])
        self.flush()

    def more(self, texts: list[str], numbers: Sequence[int]) -> None:
        """Add consecutive lines without a time."""
        self._out.balance.merged[FURTHER_LINES] += len(texts)
        if self._entry is None:
            self._before += texts
            return
        at = 0
        while at < len(texts):
            entry = self._entry
            if len(entry.lines) >= _ENTRY_LINES:
                self._out.problem(LONG_ENTRY, numbers[at])
                self.flush()
                entry = self._entry = _Entry(entry.ts, entry.track, entry.fields, [], numbers[at])
            end = at + _ENTRY_LINES - len(entry.lines)
            entry.lines += texts[at:end]
            at = end

    def _entry_before(self, ts: int) -> None:
        """Add the lines above the first time as an entry at that time, with a note in its args."""
        text = "\n".join(self._before).strip("\n")
        self._before = []
        if text:
            track = self._thread(Fields())
            self._out.log(track, ts, text, args={"time": "not stated: placed at the first time of the log"}, at=1)

    def flush(self) -> None:
        """Write the entry that is complete now."""
        entry, self._entry = self._entry, None
        if entry is not None:
            text = "\n".join(entry.lines).rstrip()
            fields = entry.fields
            self._out.log(entry.track, entry.ts, text, fields.level, fields.source, fields.args, entry.at)


class _TextReader:
    """Reads a log of lines; `keep_time`: keep the written time in the args, since the trace shows another one."""

    def __init__(self, out: Builder, times: TimeReader, keep_time: bool, real_tids: bool) -> None:
        self._out = out
        self._times = times
        self._keep_time = keep_time
        self._find = times.form.find
        self._writer = _Writer(out, lambda line: _text(plain(line)), real_tids)
        self.first = ""

    def read(self, source: Source) -> int:
        """Read all lines; return how many hold a time."""
        self._writer.read_lines(source, self._line)
        return self._writer.entries

    def _line(self, number: int, line: bytes) -> bool:
        line = plain(line)
        match = self._find(line)
        if match is None:
            return False
        groups = log_times.groups_of(match)
        try:
            ts = self._times.read(groups)
        except ValueError:
            self._out.problem(BAD_TIME, number, repr(_text(match[0])))
            self._writer.more([_text(line)], [number])
            return True
        self.first = self.first or log_times.text_of_time(match)
        fields = Fields(args={"time": log_times.text_of_time(match)} if self._keep_time else {})
        left = self._before(_text(line[: match.start()]), fields) if match.start() else ""
        text = log_fields.read_fields(_text(line[match.end() :]).lstrip("\"'])>"), fields)
        fields.take({name: _text(groups[name]) for name in log_times.FIELDS if name in groups})
        quoted = _QUOTED.fullmatch(text)
        text = quoted["text"] if quoted else text
        text = f"{left} {text}" if left else text
        self._writer.entry(ts, fields, text, number, self._durations(text, number))
        return True

    def _before(self, text: str, fields: Fields) -> str:
        """Return the text before the time, without its fields."""
        return _OPENING.sub("", log_fields.read_fields(_OPENING.sub("", text), fields)).strip()

    def _durations(self, text: str, number: int) -> list[Duration]:
        stated, unclear = log_fields.durations(text)
        for amount in unclear:
            self._out.problem(AMBIGUOUS_DURATION if "," in amount else BAD_DURATION, number, repr(amount[:60]))
        return stated


def _id_in(text: str) -> int | None:
    return whole_of(text) if len(text) < 10 and is_digits(text) else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _distinct(source: Source) -> Iterator[bytes]:
    """Return the lines without colours; of equal lines of a batch only one."""
    return (plain(line) for _, lines in source.batches() for line in set(lines))


class _JsonReader:
    def __init__(self, out: Builder, where: TimeField, ahead_ns: int) -> None:
        self._out = out
        self._where = where
        self._times = TimeReader(where.form, None, ahead_ns) if where.form else None
        self._writer = _Writer(out, _text)

    def read(self, source: Source) -> int:
        """Read all lines; return how many hold a time."""
        self._writer.read_lines(source, self._line)
        return self._writer.entries

    def _line(self, number: int, line: bytes) -> bool:
        record = log_fields.json_object(line)
        if not record:
            return False
        try:
            ts = self._where.read(record, self._times)
        except ValueError as error:
            if self._where.key not in record:
                return False
            self._out.skip(BAD_JSON_TIME, number, str(error))
            return True
        fields, text, stated = log_fields.read_record(record, self._where.key)
        self._writer.entry(ts, fields, text, number, stated)
        return True


@dataclass(frozen=True)
class TimedLog(Importer):
    name = "timed-log"
    title = "any log whose lines hold a time (the last resort)"
    url = "https://docs.python.org/3/howto/logging.html"
    versions = "ISO 8601, Python logging, glog, syslog, logcat, epoch, seconds, perf trace, time of day, JSON lines"
    signature = Signature(patterns=(rb"\d",), most=Certainty.FALLBACK)
    clock = UNKNOWN_START
    record = "python run.py 2>&1 | ts '%Y-%m-%dT%H:%M:%.S%z' > run.log"
    only_named = True
    time: str = option(
        "",
        'where the time stands: a pattern such as "[%d/%m/%Y %H:%M:%S.%f]" or "%{ms} ms", or the name of a '
        "form such as iso, epoch, seconds; for JSON lines the name of the field. Found by itself when not "
        "given.",
    )
    utc_offset: str = option(
        "",
        "the zone of times that do not state theirs, such as +02:00 or UTC: makes them real time.",
    )
    clockid: str = option("", "what times since an unknown start count: monotonic, monotonic_raw or boottime.")
    host: str = option(
        "",
        "the machine whose clock that is, as other files name it (perf does), to share the clock with them.",
    )
    year: int | None = option(None, "the year of the first line, for forms without a year.")
    date: str = option("", "the day of the first line, as 2018-10-26, for forms without a date; with `utc_offset`.")

    line_up = (
        "Times with a zone or since 1970: nothing is needed. Local times: --tz FILE=+02:00 (and --date "
        "FILE=2024-01-31, the day of the first line, if they lack it). Seconds of CLOCK_MONOTONIC: -O "
        "clockid=monotonic, with -O host=NAME if the other file names its machine. Else --offset FILE=TIME."
    )
    becomes = (
        (
            "line with a time, with those without one below it",
            "log entry on its thread, with level and source",
        ),
        ("took 6.4 ms, in 3 s, elapsed: 5 us, duration=2 s", "slice that ends at the time of its line"),
        ("fields of a JSON line", "args of the log entry; duration_ms and the like a slice"),
    )
    lost = (
        "A duration ends at the time of its line: if the line was written late, its slice is late, too.",
        "The thread is not known unless the line states it.",
        "Numbers without a unit are assumed to be seconds.",
        "System calls of perf trace are log entries at their start.",
    )
    marks = FormatMarks(any_tool=True)

    def sniff(self, head: Head) -> Match:
        """Recognise only text most of whose lines hold a time, and only as the last resort."""
        if b"\0" in head.data:
            return Match.no("not a text")
        lines = head.data.splitlines()
        lines = lines[:_SAMPLE] if head.complete else lines[:-1][:_SAMPLE]
        if head.text.startswith(b"{"):
            where = _json_field(lines, "")
            known = b'"traceEvents"' in head.data or b'"ph"' in head.data
            if where is None or known or len(lines) < 2:
                return _NO_TIMES
            return Match.fallback(f"JSON lines with the time in {where.key}")
        fit = log_times.recognise([plain(line) for line in lines])
        alone = fit is not None and fit.candidates == 1 and _BEGINS_WITH_A_TIME.match(head.text) is not None
        if fit is None or not fit.good or (fit.fits < 2 and not alone):
            return _NO_TIMES
        return Match.fallback(f"{fit.fits} of {fit.candidates} lines hold a time ({fit.form.name})")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(LINES)
        out.info.real_ids = out.info.several_at_once = True  # a program may write several logs
        sample = [plain(line.text) for line in islice(source.lines(), _SAMPLE)]
        if source.head().text.startswith(b"{"):
            self._read_json(source, out, sample)
        else:
            self._read_text(source, out, sample)

    def _read_json(self, source: Source, out: Builder, sample: list[bytes]) -> None:
        where = _json_field(sample, self.time)
        if where is None:
            what = f"no time in the field {self.time!r}" if self.time else "no field with a time"
            hint = "name the field: -O time=FIELD"
            raise source.malformed(f"JSON lines with {what}, expected one in most lines", hint=hint)
        step_ns = min(step for _, step in where.times(_objects(sample)))
        clock, ahead = self._clock(source, out, where.kind, self._first_year(), step_ns, self.host)
        out.clocks.set_default(replace(clock, seconds_assumed=where.lacks_unit and not self.clockid))
        entries = _JsonReader(out, where, ahead).read(source)
        form = f" ({where.form.name})" if where.form else ""
        out.note(_form_note(f"the field {where.key!r}{form}", where.kind, entries, out.balance.read))
        self._advise(out, where.kind, self._first_year())

    def _read_text(self, source: Source, out: Builder, sample: list[bytes]) -> None:
        form = self._form(source, sample)
        year = self._first_year()
        year = _stated_year(sample) if year is None else year
        step_ns = _step_ns(form, sample)
        clock, ahead = self._clock(source, out, form.kind, year, step_ns, self.host or _stated_host(sample))
        assumed = not (self.time or self.clockid) and any(log_times.lacks_unit(form, line) for line in sample)
        clock = replace(clock, seconds_assumed=assumed)
        out.clocks.set_default(clock)
        reader = _TextReader(
            out,
            TimeReader(form, year, ahead),
            keep_time=not self.utc_offset and clock.zero is not Zero.UNIX_EPOCH,
            real_tids=form.name in _WITH_TIDS,
        )
        entries = reader.read(source)
        if not entries:
            raise source.malformed(
                f"no line holds a time of the form {form.name!r}", hint="compare the pattern with a line of the file"
            )
        # Nanoseconds since boot may have as many digits as microseconds since 1970: the day tells.
        day = f" of {log_times.day_of(reader.first.encode())}" if form.name == "epoch" else ""
        shown = f"{form.name} (the first is {reader.first!r}{day}, steps are {format_time(step_ns)})"
        out.note(_form_note(shown, form.kind, entries, out.balance.read))
        if assumed:
            out.note("no unit is stated: if these are not seconds, say what they are, as in -O time='%{ms}'")
        self._advise(out, form.kind, year)

    def _form(self, source: Source, sample: list[bytes]) -> Form:
        """Return the form that the user named, or the one that fits."""
        if self.time:
            try:
                return log_times.compile_form(self.time)
            except ValueError as error:
                raise UsageError(f"option time of timed-log: {error}", hint=f"it is {log_times.PATTERN_HELP}") from None
        fit = log_times.recognise(sample)
        if fit is not None and fit.good:
            return self._sure_of_date(source, fit.form, sample)
        best = f"the best, {fit.form.name}, fits {fit.fits} of {fit.candidates} lines" if fit else "none fits"
        if fit is not None and 2 * fit.fits >= fit.candidates:
            best = f"the times of {fit.form.name} go back {fit.back} times in {fit.fits} lines"
        raise source.malformed(
            f"found no form of time that fits most lines and runs forward ({best})",
            hint="state how to find the time, for instance -O time='[%d/%m/%Y %H:%M:%S.%f]' or -O time=iso",
        )

    def _sure_of_date(self, source: Source, form: Form, sample: list[bytes]) -> Form:
        """Return the form, with the order of day and month that the file tells.

        Raises MalformedInput if a date is unclear.
        """
        if form.name in log_times.ORDERS:
            order = log_times.date_order(sample) or log_times.date_order(_distinct(source))
            if order is not None:
                return order
            raise source.malformed(
                "dates such as 3/4/2024, expected one number above 12 that tells whether the day or the month is first",
                hint="state which: -O time=month/day/year or -O time=day/month/year",
            )
        beside = log_times.date_beside(form, sample) if form.kind is Kind.TIME_OF_DAY else ""
        if beside:
            raise source.malformed(
                f"the times come with dates of an unknown form (the first is {beside!r})",
                hint="state how to read them, for instance -O time='%y/%m/%d %H:%M:%S' or -O time=time-of-day",
            )
        return form

    # -- the clock --------------------------------------------------------------------------------------------

    def _clock(
        self, source: Source, out: Builder, kind: Kind, year: int | None, step_ns: int, host: str
    ) -> tuple[ClockDomain, int]:
        """Return the clock of the times, and the ns to subtract from them. Raises an error if options do not fit."""
        self._check_options(source, kind, year)
        if kind is Kind.UNIX:
            return replace(REALTIME, resolution_ns=step_ns, machine=host, exact_durations=True), 0
        if self.utc_offset:
            zone = zone_of(self.name, self.utc_offset)
            local = local_time(zone)
            clock = replace(
                LOCAL_TIME, name="local wall clock", resolution_ns=step_ns, machine=host, exact_durations=True
            )
            method = f"local time read as {zone}" + (f", from {self.date} on" if self.date else "")
            out.clocks.snapshot(
                ClockSnapshot(clock, 0, REALTIME, -local.ahead_ns, 0, method, local, Provenance.ASSUMED)
            )
            return clock, -_day_ns(self.date) if kind is Kind.TIME_OF_DAY else 0
        if self.clockid:
            return replace(CLOCKS[self.clockid], resolution_ns=step_ns, machine=host, exact_durations=True), 0
        other = TIME_OF_DAY if kind is Kind.TIME_OF_DAY else LOCAL_TIME
        clock = UNKNOWN_START if kind is Kind.SINCE_START else other
        return replace(clock, resolution_ns=step_ns, machine=host, exact_durations=True), 0

    def _check_options(self, source: Source, kind: Kind, year: int | None) -> None:
        """Check that the options fit the times. Raises MalformedInput if not, UsageError if they fit none at all."""
        if self.clockid and self.clockid not in CLOCKS:
            raise UsageError(f"option clockid of timed-log is {', '.join(CLOCKS)}, not {self.clockid!r}")
        zone_of(self.name, self.utc_offset)
        if self.host and not machine_name(self.host):
            raise UsageError(f"option host of timed-log: {self.host!r} is not a name of one machine")
        if self.date and not _is_day(self.date):
            raise UsageError(f"option date of timed-log is a day such as 2018-10-26, not {self.date!r}")
        if self.date and kind not in (Kind.TIME_OF_DAY, Kind.YEARLESS):
            misfit = f"option date does not fit: the times are {kind.value}"
            raise source.malformed(misfit, hint="it is for times without a date")
        if self.clockid and kind is not Kind.SINCE_START:
            misfit = f"option clockid does not fit: the times are {kind.value}"
            raise source.malformed(misfit, hint="it is for times since an unknown start")
        if kind is Kind.UNIX:
            refuse_zone(self.name, self.utc_offset, source.name, "its times state their zone, or count from 1970")
        if self.utc_offset and kind is Kind.TIME_OF_DAY and not self.date:
            raise source.malformed(
                "its times are times of day, so the date is needed, too",
                hint=f"{date_option(source.name)}; or use --offset FILE=TIME",
            )
        if self.utc_offset and kind is Kind.SINCE_START:
            misfit = f"a time zone (--tz) does not fit: the times are {kind.value}"
            raise source.malformed(misfit, hint="it is for local times; --offset FILE=TIME places any file")
        if self.utc_offset and kind is Kind.YEARLESS and year is None:
            misfit = "the time zone needs the year, too, which the times do not state"
            raise source.malformed(misfit, hint=f"{date_option(source.name)}, that of the first")

    def _advise(self, out: Builder, kind: Kind, year: int | None) -> None:
        """Add a note on the options that relate the times to those of other files."""
        name = out.info.name
        if kind is Kind.SINCE_START and not self.clockid:
            out.note(f"if the times are those of CLOCK_MONOTONIC: --clock {shlex.quote(name)}=monotonic")
        elif kind is Kind.YEARLESS and year is None:
            out.note(f"a leap year was assumed; for real times: {date_option(name)} (the first) {zone_option(name)}")
        elif kind in (Kind.LOCAL, Kind.YEARLESS) and not self.utc_offset:
            out.note(f"the time zone is not known; {zone_option(name)} (or UTC) makes these times real ones")
        elif kind is Kind.TIME_OF_DAY and not (self.utc_offset and self.date):
            out.note("the date is not known; midnights are counted where the time goes back by more than 12 h")

    def _first_year(self) -> int | None:
        """Return the year that the options state."""
        return date.fromisoformat(self.date).year if self.year is None and _is_day(self.date) else self.year


def _is_day(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _day_ns(text: str) -> int:
    """Return the start of a day in ns since 1970, taken as UTC."""
    return (date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()) * DAY_NS


#: A single line is a log only if it begins like one: a number somewhere in it may be anything.
_BEGINS_WITH_A_TIME = re.compile(rb"\[\d{1,2}:\d\d:\d\d(?:\.\d+)?\]|\[?\d{4}-\d\d-\d\d[T ]\d{1,2}:\d\d:\d\d")
_NO_TIMES = Match.no("no form of time fits most lines")


def _json_field(lines: list[bytes], wanted: str) -> TimeField | None:
    """Return the field with the time, if most lines are JSON objects."""
    records = list(_objects(lines))
    filled = sum(bool(line.strip()) for line in lines)
    if not records or 2 * len(records) < filled:
        return None
    return log_fields.time_field(records, wanted)


def _objects(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of those lines that are one."""
    return (record for line in lines if (record := log_fields.json_object(line)) is not None)


def _step_ns(form: Form, sample: list[bytes]) -> int:
    """Return the finest step among the times of some lines."""
    fitting = (line for line in sample if form.find(line))
    return min((log_times.step_ns(form, line) for line in fitting), default=1)


def _stated_year(sample: list[bytes]) -> int | None:
    match = next((header for line in sample[:20] if (header := _YEAR.match(line))), None)
    return whole(match[1]) if match else None


def _stated_host(sample: list[bytes]) -> str:
    match = next((header for line in sample[:20] if (header := _HOST.match(line))), None)
    return match[1].decode("utf-8", "replace") if match else ""


def _form_note(form: str, kind: Kind, entries: int, lines: int) -> str:
    return f"times were read as {form}: {kind.value}; {entries} of {lines} lines hold one"
