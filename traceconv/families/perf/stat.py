"""Counts of `perf stat`: over a whole run, or for each interval (-I), as text, fields (-x) or JSON (-j), one a line.

         0.050113410 CPU0     50.70 msec task-clock     #    1.014 CPUs utilized   ( +-  0.44% )  (66.65%)
         0.050113410,CPU0,50.70,msec,task-clock,50700000,66.65,1.014,CPUs utilized
    {"interval" : 0.050113410, "cpu" : "0", "counter-value" : "50.700000", "unit" : "msec", "event" : "task-clock", ...}

Fields in order: seconds since the start (with -I), what was aggregated (CPU, core, thread, ...) and of how many CPUs,
value, unit, event, cgroup, variance (-r), for how many ns and percent of the time the event was on a counter, a metric
and its unit. Nothing is quoted in the -x form: names of events may hold the separator. A line without a value is a
further metric of the line before. Text and JSON follow the locale: separators of thousands (text only), decimal comma.
A value has two decimals or none in text. Checked against perf 6.1.

The time is the end of an interval, in seconds since perf stat began (a difference of CLOCK_MONOTONIC); a count is what
came up since the line before of that event. So it is drawn from the start of its interval, as a counter, and all that
the line says is in the args of the slice of the interval. Without -I there is one count for the run: with its length
(text form only) a slice, else a row of a table. When it began is told only by `# started on`, in whole seconds of local
time without a zone, and only with -o. An event that was not counted has no count: its counter falls to 0, since a
counter knows no gaps, the counter `... running` beside it is 0 %, and the args say "<not counted>".
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.families.common.local_time import local_time, refuse_zone, seconds_since_1970, zone_of, zone_option
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Provenance, Run, Zero
from traceconv.model.diagnostics import EMPTY_LINES, LINES, absent, lost, noted, skipped
from traceconv.model.marks import CountMarks, FormatMarks
from traceconv.model.numbers import LIMIT_NS, S, double_of, is_digits, number_of, parse_ns, whole_of, whole_or_text
from traceconv.model.track_table import NO_TRACK, TrackId

RUN_LINES = Counted("heading or total of the run", "headings and totals of the run")
RUN_COUNTS = Counted("count of the whole run, kept as its arg", "counts of the whole run, kept as its args")
FURTHER_METRICS = Counted("further metric of a count", "further metrics of counts")
UNSUPPORTED_EVENTS = Counted("event not supported, kept as an arg", "events not supported, kept as args")

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
_RUN = re.compile(r"(?a)\s*+(\d{1,12}[.,]\d+) \([+-]\d+[.,]\d+\)\s++#*+\s*+")
_HEADING = re.compile(r"#\s+time\s.*\bcounts unit events\s*")
#: What lines of perf stat hold: no count, a metric, a total, a run; a number and behind it decimals, or unit and event.
_SIGN = re.compile(rb"[<#(P\d\x80-\xff]")
_WORDS = re.compile(rb"<not|#|seconds|Performance counter|\([+-]")
_FIGURES = re.compile(rb"[^\d\x80-\xff]*+(?=[\d\x80-\xff])(?:.*[.,][\d\x80-\xff]{2}|(?:\S*+\s){2}.*[A-Za-z_])")
_TIME_FIRST = re.compile(r"\s*(?:\d+[.,]\d{9}|time)[ ,;\t]")
_MAX_LINE = 4000  # longer ones are not of perf stat
_START_BOUND_NS = 10**9  # `started on` is cut to seconds, and perf begins to count a little later
_UNIT = re.compile(r"[A-Za-z%][^\s,;]{0,19}")
_EVENT = re.compile(r"[A-Za-z_][\w.:/=,{}@*-]*")
_COUNT_HELP = "count in each interval, drawn from its start; 0 after the last one and where the event was not counted"
_RUNNING_HELP = (
    "share of the interval in which the event was on a counter; below 100 % its count was scaled up; 0 after the last"
)
NOT_COUNTED, NOT_SUPPORTED = "<not counted>", "<not supported>"
_SOMEWHERE = r"CPU\d+|[SND]\d+[A-Z0-9-]*|\S.{0,63}?-\d{1,10}"
_PLACE = re.compile(rf"(?a)\s*(?:{_SOMEWHERE})(?:\s+\d{{1,6}})?\s*")
_VALUE = r"<not counted>|<not supported>|-?\d{1,3}(?: \d{3})+(?:[.,]\d\d)?|-?\d[\d.,'’\u00a0\u202f]*"
_LEFT = re.compile(
    rf"(?a)\s*(?:(\d{{1,9}}[.,]\d{{9}})\s+)?(?:({_SOMEWHERE})\s+(?:(\d{{1,6}})\s+)?)?"
    rf"({_VALUE})(?: ([A-Za-z%]\S{{0,19}})\s+|\s{{2,}})([A-Za-z_]\S*)(?:\s+(\S+))?\s*"
)
_TIME = re.compile(r"(?a)\s*(\d{1,9}[.,]\d{9})\s")
_PERCENT = re.compile(r"(?a)\( {0,5}(\d+[.,]\d+)%\)$")
_VARIANCE = re.compile(r"(?a)\( \+- {0,5}(\d+[.,]\d+)% ?\)$")
_METRIC = re.compile(r"(?a)(-?\d[\d.,]*)\s*(\S.*)?")
_SEPARATOR = re.compile(r"(?a)([^\w.<>\-]{1,4}?)\d{1,20}\1\d{1,3}[.,]\d{2}\1")
_NUMBER = re.compile(r"(?a)-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_COMMA_NUMBER = re.compile(r"(?a)-?\d+(?:[.,]\d+)?")
_SPREAD = re.compile(r"(?a)\d+[.,]\d+%")
_SHARE = re.compile(r"(?a)\d{1,3}(?:[.,]\d+)?")
#: Numbers with a decimal comma, which perf prints by the locale: bare ones, which are no JSON, and counts in quotes.
_BARE_COMMA = re.compile(rb'(" ?: ?-?\d+),(\d+)(?= ?[,}])')
_COMMA_COUNT = re.compile(r"(?a)-?\d+,\d{6}")
_PLACES = ("cpu", "core", "die", "cluster", "cache", "socket", "node", "thread")
_PLACE_COUNTS = ("aggregate-number", "counters")
_JSON_KEYS = {"interval", "event", "counter-value", "unit", "cgroup", "variance", "event-runtime", "pcnt-running"}
_JSON_KEYS |= {"metric-value", "metric-unit", "metric-threshold", *_PLACES, *_PLACE_COUNTS}
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Row(msgspec.Struct):
    end: int | None = None  # of its interval, ns from the start; None for a count over the whole run
    place: str = ""  # the CPU, core, socket or thread that was counted: "CPU0", "S0-D0-C0", "bash-42"; "" for all
    cpus: int | None = None  # of the place, if stated
    value: int | float | str | None = None  # or the reason why there is none; None for a line of metrics only
    unit: str = ""
    event: str = ""
    cgroup: str = ""
    variance: float | None = None
    run_time_ns: int | None = None
    running: float | None = None  # percent of the time that the event was on a counter, if stated
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Whether the value is a number."""
        return isinstance(self.value, int | float)

    @property
    def label(self) -> str:
        """The name of the event, with the cgroup that it was counted in."""
        return f"{self.event} ({self.cgroup})" if self.cgroup else self.event

    def args(self) -> dict[str, Any]:
        """Return the args: the content of the line besides place and time."""
        args = {
            "unit": self.unit or None,
            "cpus": self.cpus,
            "variance_percent": self.variance,
            "run_time_ns": self.run_time_ns,
            "running_percent": self.running if self.counted else None,
        }
        stated = {name: value for name, value in args.items() if value is not None}
        return {"value": self.value, **stated, **self.metrics}


# -- text --------------------------------------------------------------------------------------------------------------


def text_row(text: str) -> Row | None:
    """Parse a line of the text form; return None for another line."""
    left, *metrics = text.rstrip().split(" #")
    tail, running = _cut(metrics[-1] if metrics else left, _PERCENT)
    tail, variance = _cut(tail, _VARIANCE)
    if metrics:
        metrics[-1] = tail
    else:
        left = tail
    row = Row(running=running, variance=variance)
    for metric in map(str.strip, metrics):
        number = _METRIC.fullmatch(metric)
        if number is not None:
            row.metrics[(number[2] or "metric").strip()] = _metric(number[1])
        elif metric:
            row.metrics[metric] = ""
    match = _LEFT.fullmatch(left)
    if match is None:
        time = _TIME.match(left + " ")
        rest = left[time.end() :] if time else left
        return row if row.metrics and (not rest.strip() or _PLACE.fullmatch(rest)) else None
    end, row.place, cpus, value, unit, row.event, cgroup = (group or "" for group in match.groups())
    row.end = _seconds(end) if end else None
    row.cpus = whole_of(cpus)
    row.value = _localized(value)
    is_old = cgroup == "(msec)" and not unit  # before perf had a column for units
    row.unit, row.cgroup = ("msec", "") if is_old else (unit, cgroup)
    return None if row.value is None else row


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, float | None]:
    """Split a text into the part before a match at its end, and the number in the match."""
    text = text.rstrip()
    match = pattern.search(text)
    number = _decimal(match[1]) if match else None
    return (text, None) if match is None or number is None else (text[: match.start()], number)


def _localized(text: str) -> int | float | str | None:
    """Return a count as printed for people: two or six decimals or none, thousands apart; None if out of range."""
    if text in (NOT_COUNTED, NOT_SUPPORTED):
        return text
    sign = -1 if text.startswith("-") else 1
    whole, decimals = text, ""
    for count in (2, 6):
        if len(text) > count + 1 and text[-count - 1] in ".," and is_digits(text[-count:]):
            whole, decimals = text[: -count - 1], text[-count:]
    digits = re.sub(r"[^0-9]", "", whole)
    number = _storable(f"{digits}.{decimals}" if decimals else digits)
    return None if number is None else sign * number


def _decimal(text: str) -> float | None:
    """Return a number with a decimal point or comma, and maybe separators of thousands before; None if out of range."""
    at = max(text.rfind("."), text.rfind(","))
    whole, decimals = (text[:at], text[at + 1 :]) if at >= 0 else (text, "")
    sign = "-" if text.startswith("-") else ""
    return double_of(f"{sign}{re.sub(r'[^0-9]', '', whole) or 0}.{decimals or 0}")


def _metric(text: str) -> float | str:
    number = _decimal(text)
    return text if number is None else number


def _seconds(text: str) -> int:
    return parse_ns(text.replace(",", ".").encode(), S)


def find_separator(text: str) -> str:
    """Return the text between the fields of a line, "" if it is not a line of the -x form."""
    match = _SEPARATOR.search(text)
    return match[1] if match else ""


def csv_row(text: str, separator: str) -> Row | None:
    """Parse a line of the -x form; return None for another line."""
    fields = text.split(separator)
    first_field, time = fields[0].strip(), _TIME.match(fields[0] + " ")
    if time is not None and first_field != time[1]:
        return None  # a time followed by other fields
    row = Row(_seconds(time[1]) if time else None)
    at = 1 if time or first_field == "summary" else 0
    number = _NUMBER if separator == "," else _COMMA_NUMBER
    first = next((i for i in range(at, len(fields)) if _is_value(fields[i], number)), -1)
    if not any(fields[at:-2]) or (first >= 0 and not any(fields[at:first]) and first > at):
        value, unit = fields[-2:] if len(fields) > 1 else ("", "")
        if not unit or not _COMMA_NUMBER.fullmatch(value):
            return None
        row.metrics[unit.strip()] = _metric(value)
        return row
    if first < 0:
        return None
    row.place = separator.join(fields[at:first])
    if row.place and is_digits(fields[first]) and first + 1 < len(fields) and _is_value(fields[first + 1], number):
        row.cpus = whole_of(fields[first])
        first += 1
    return _csv_rest(row, fields, first, separator, number)


def _is_csv(text: str) -> bool:
    """Return whether a line by itself is one of the -x form: also prose has words around numbers."""
    separator = find_separator(text)
    row = csv_row(text, separator) if separator else None
    return (
        row is not None
        and row.run_time_ns is not None
        and (row.running or 0) <= 100
        and separator not in row.cgroup
        and (not row.place or _PLACE.fullmatch(row.place) is not None)
        and (not row.unit or _UNIT.fullmatch(row.unit) is not None)
        and _EVENT.fullmatch(row.event) is not None
    )


def _is_value(text: str, number: re.Pattern[str]) -> bool:
    return text in (NOT_COUNTED, NOT_SUPPORTED) or number.fullmatch(text.strip()) is not None


def _csv_rest(row: Row, fields: list[str], at: int, separator: str, number: re.Pattern[str]) -> Row | None:
    """Parse a line from the value on; the event ends where an integer and a percentage follow."""
    for run in range(at + 3, len(fields) - 1):
        if is_digits(fields[run]) and _SHARE.fullmatch(fields[run + 1]) and len(fields[run]) < 20:
            break
    else:
        return None
    value = fields[at].strip()
    row.value = value if value.startswith("<") else _storable(value.replace(",", "."))
    if row.value is None:
        return None
    row.unit = fields[at + 1]
    row.run_time_ns, row.running = whole_of(fields[run]), _decimal(fields[run + 1])
    names = fields[at + 2 : run]
    if len(names) > 1 and _SPREAD.fullmatch(names[-1]):
        row.variance = _decimal(names.pop()[:-1])
    row.event = names.pop(0)
    while names and row.event.count("/") % 2:  # a name such as cpu/event=0x3c,umask=0x1/
        row.event += separator + names.pop(0)
    row.cgroup = separator.join(names)
    if len(fields) > run + 2 and fields[run + 2] and number.fullmatch(fields[run + 2]):
        row.metrics[separator.join(fields[run + 3 :]).strip() or "metric"] = _metric(fields[run + 2])
    return row if row.event else None


def _storable(text: str) -> int | float | None:
    """Return a count, or the nearest double if it exceeds 64 bits; None if none holds it."""
    number = number_of(text)
    return number if number is None or isinstance(number, float) or abs(number) < 2**63 else float(number)


def json_row(line: bytes) -> tuple[Row, bool] | None:
    """Parse a line of the JSON form; return also whether it has unknown members; None for another line."""
    try:
        members = {name: _text(bytes(raw)) for name, raw in _decode(_BARE_COMMA.sub(rb"\1.\2", line)).items()}
        end = parse_ns(members["interval"].encode(), S) if "interval" in members else None
    except (msgspec.DecodeError, ValueError):
        return None
    event, unit, cgroup = (members.get(name, "") for name in ("event", "unit", "cgroup"))
    row = Row(end, event=event, unit=unit, cgroup=cgroup, run_time_ns=whole_of(members.get("event-runtime", "")))
    for name in _PLACES:
        if name in members:
            row.place = f"CPU{members[name]}" if name == "cpu" and members[name].isdigit() else members[name]
    for name in _PLACE_COUNTS:
        if is_digits(members.get(name, "")):
            row.cpus = whole_of(members[name])
    if "counter-value" in members:
        value = members["counter-value"]
        if _COMMA_COUNT.fullmatch(value):
            value = value.replace(",", ".")
        whole, _, decimals = value.partition(".")  # six decimals; a count without a fraction is whole
        text = whole if not decimals.strip("0") and "e" not in value.lower() else value
        number = _storable(text) if _NUMBER.fullmatch(value) else None
        row.value = value if number is None else number
    row.variance, row.running, metric = (
        double_of(members[name]) if _NUMBER.fullmatch(members.get(name, "")) else None
        for name in ("variance", "pcnt-running", "metric-value")
    )
    if metric is not None and members.get("metric-unit"):
        row.metrics[members["metric-unit"].strip()] = metric
    return row, not members.keys() <= _JSON_KEYS


def _text(member: bytes) -> str:
    """Return a member as text; numbers as they are written."""
    return str(msgspec.json.decode(member)) if member[:1] == b'"' else member.decode()


class _Recording(msgspec.Struct):
    number: int  # from 1
    start: int = 0  # its zero on the clock of the input, ns
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    started: datetime | None = None
    elapsed: int | None = None
    last: int = 0  # the end of the last interval so far, ns from its start, and of the one before
    before: int = 0
    whole: list[tuple[int, Row]] = msgspec.field(default_factory=list)  # counts over the whole run, with line numbers
    open_rows: dict[str, dict[str, Row]] = msgspec.field(default_factory=lambda: defaultdict(dict))  # by place, event
    seen_at: int = 0
    in_block: bool = False
    groups: dict[str, TrackId] = msgspec.field(default_factory=dict)  # by place; "" is the parent of all
    interval_tracks: dict[str, TrackId] = msgspec.field(default_factory=dict)
    counters: dict[tuple[str, str], TrackId] = msgspec.field(default_factory=dict)
    shares: dict[tuple[str, str], TrackId] = msgspec.field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not self.last and not self.whole


class _Reader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._now = _Recording(1)
        self.recordings = [self._now]
        self._separator = ""
        self._latest: Row | None = None
        self._unsupported: set[str] = set()

    def read(self, source: Source) -> None:
        for number, line in TextLines(self._out).read(source):
            self._line(number, plain(line))
        self._close()
        if all(recording.empty for recording in self.recordings):
            raise source.malformed(
                "no count found, expected lines such as `43.91 msec task-clock`, those of -x or of -j",
                hint=f"--metric-only prints none; record some with {PerfStat.record}",
            )
        self._out.metadata["perf_stat"] = [recording.info for recording in self.recordings]

    def _line(self, number: int, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if len(text) > _MAX_LINE:
            self._out.skip(OTHER_LINE, number, f"{len(text)} characters")
        elif not text.strip():
            self._out.balance.merged[EMPTY_LINES] += 1
        elif text[0] == "{":
            self._json(number, line)
        elif text[0] == "#" and not text.startswith(_BEGIN):
            self._out.balance.merged[RUN_LINES] += 1
        elif not self._may_be_read(line, text):
            self._other(number, text)
        elif self._about_run(text):
            self._out.balance.merged[RUN_LINES] += 1
        elif (row := self._row_of(text)) is not None:
            self._row(number, row)
        elif NOT_COUNTED in text or find_separator(text):
            self._out.skip(BAD_LINE, number, repr(text[:60]))
        else:
            self._other(number, text)

    def _may_be_read(self, line: bytes, text: str) -> bool:
        if _SIGN.search(line) is None:
            return False
        return bool((self._separator and self._separator in text) or _WORDS.search(line) or _FIGURES.match(line))

    def _other(self, number: int, text: str) -> None:
        code = OTHER_LINE
        if _TIME_FIRST.match(text):
            code = METRIC_ONLY if self._now.empty else BAD_LINE
        self._out.skip(code, number, repr(text.strip()[:60]))

    def _json(self, number: int, line: bytes) -> None:
        row, has_more = json_row(line) or (None, False)
        if row is None:
            self._out.skip(BAD_LINE, number, repr(line[:60].decode("utf-8", "replace")))
        elif row.event or row.metrics:
            self._row(number, row)
        elif has_more:
            self._out.skip(METRIC_ONLY, number)
        else:
            self._out.balance.merged[EMPTY_LINES] += 1

    def _row_of(self, text: str) -> Row | None:
        """Parse a line with a count or a metric, in the -x form or the text form."""
        if not self._separator:
            self._separator = find_separator(text)
        row = csv_row(text, self._separator) if self._separator and self._separator in text else None
        if row is not None:
            return row
        row = text_row(text)  # outside of a block of perf stat, only lines with a time are of perf stat
        if row is None or self._now.in_block or row.end is not None or (row.value is None and self._latest):
            return row
        return None

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
            recording.elapsed = min(_seconds(elapsed[1]), LIMIT_NS // 4)
            recording.info["elapsed_s"] = _decimal(elapsed[1])
            if elapsed[2]:
                recording.info["elapsed_plus_minus_s"] = _decimal(elapsed[2])
        elif cpu_time := _CPU_TIME.fullmatch(text):
            recording.info[f"{cpu_time[2]}_s"] = _decimal(cpu_time[1])
        elif recording.in_block and (run := _RUN.fullmatch(text)):
            recording.info.setdefault("measurements_s", []).append(_decimal(run[1]))
        else:
            return recording.in_block and text.strip().startswith("# ")
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
            with contextlib.suppress(ValueError):  # no time
                self._now.started = datetime.strptime(match[1], "%a %b %d %H:%M:%S %Y")
        if self._now.number == 1:
            return
        first, before = self.recordings[0], self.recordings[-2]
        self._now.start = before.start + max(before.last, before.elapsed or 0)
        self._out.note(
            "several recordings in one file: each starts at its `started on`, known to a second, or at the end of the "
            "one before"
        )
        if first.started is not None and self._now.started is not None:
            seconds = int((self._now.started - first.started).total_seconds())
            self._now.start = max(self._now.start, min(seconds * 10**9, LIMIT_NS // 2))

    def _row(self, number: int, row: Row) -> None:
        latest = self._latest
        if row.value is None:  # a further metric of the count before
            if latest is None:
                self._out.skip(BAD_LINE, number, "a metric without a count before it")
                return
            latest.metrics.update(row.metrics)
            if latest.end is not None:
                self._now.open_rows[latest.place][latest.label] = latest
            self._out.balance.merged[FURTHER_METRICS] += 1
            return
        self._latest = row
        if row.value == NOT_SUPPORTED and row.label not in self._unsupported:
            self._unsupported.add(row.label)
            self._out.problem(WAS_NOT_SUPPORTED, number, row.label)
        elif isinstance(row.value, str) and row.value != NOT_SUPPORTED:
            self._out.problem(WAS_NOT_COUNTED, number, row.label)
        elif row.counted and row.running is not None and row.running < 100:
            self._out.problem(MULTIPLEXED, number, f"{row.event} {row.running:g} %")
        if row.end is None:
            self._now.whole.append((number, row))
            self._out.balance.merged[RUN_COUNTS] += 1
            return
        self._interval(number, row)

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
        start = recording.start + recording.before
        self._share(row, start, number)
        if row.counted or (row.place, row.label) in recording.counters:
            counter = self._counter(recording.counters, row, row.label, row.unit or "count", _COUNT_HELP)
            self._out.counter(counter, start, row.value if isinstance(row.value, int | float) else 0, number)

    def _counter(self, tracks: dict[tuple[str, str], TrackId], row: Row, name: str, unit: str, help: str) -> TrackId:
        key = row.place, row.label
        if key not in tracks:
            tracks[key] = self._out.tracks.counter(name, self._group(row.place), unit=unit, description=help)
        return tracks[key]

    def _share(self, row: Row, start: int, number: int) -> None:
        """Draw the share of time in which the event was counted, from the first value below 100 % on."""
        recording = self._now
        share = (100.0 if row.running is None else row.running) if row.counted else 0.0  # the text form omits 100 %
        is_new = (row.place, row.label) not in recording.shares
        if is_new and share >= 100:
            return
        track = self._counter(recording.shares, row, f"{row.label} running", "%", _RUNNING_HELP)
        if is_new and recording.before:
            self._out.counter(track, recording.start, 100.0, number)
        self._out.counter(track, start, share, number)

    def _end_interval(self) -> None:
        """Draw the complete interval with its args."""
        recording = self._now
        for place, events in recording.open_rows.items():
            if place not in recording.interval_tracks:
                recording.interval_tracks[place] = self._out.tracks.add("intervals", self._group(place))
            track, dur = recording.interval_tracks[place], recording.last - recording.before
            args = {label: row.args() for label, row in events.items()}
            start = recording.start + recording.before
            self._out.slice(track, start, dur, "interval", "perf stat", args, recording.seen_at)
        recording.open_rows = defaultdict(dict)

    def _group(self, place: str) -> TrackId:
        """Return the track of a CPU, core, socket or thread below that of the recording."""
        recording = self._now
        if not recording.groups:
            name = "perf stat" if recording.number == 1 else f"perf stat {recording.number}"
            recording.groups[""] = self._out.tracks.add(name)
        if place not in recording.groups:
            recording.groups[place] = self._out.tracks.add(place, recording.groups[""])
        return recording.groups[place]

    def _close(self) -> None:
        """Write the parts that are known only at the end of a recording."""
        recording = self._now
        self._end_interval()
        self._latest = None
        for track in (*recording.counters.values(), *recording.shares.values()):
            self._out.counter(track, recording.start + recording.last, 0)
        if recording.groups or recording.whole:
            self._out.tracks[self._group("")].description = str(recording.info.get("command", ""))
        if recording.whole or recording.elapsed:
            self._write_run(recording, recording.elapsed or recording.last)

    def _write_run(self, recording: _Recording, length: int) -> None:
        """Write the counts of a whole run: a slice for each place, or a row of a table if the length is unknown."""
        runs: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for number, row in recording.whole:
            counts = runs.setdefault(row.place, [])
            if not counts or row.label in counts[-1][1]:
                counts.append((number, {}))
            counts[-1][1][row.label] = row.args()
        name = str(recording.info.get("command") or "summary")
        category = "perf stat" if recording.last else WHOLE_RUN
        for place, counts in (runs or {"": [(0, {})]}).items():
            group = self._group(place)
            table = NO_TRACK if length else self._out.tracks.totals("whole run", group)
            for number, events in counts:
                args = events if place else recording.info | events
                if length:
                    track = self._out.tracks.add("whole run", group)
                    self._out.slice(track, recording.start, length, name, category, args, number)
                else:
                    self._out.totals(table, name, category, args, number)
        if any(len(counts) > 1 for counts in runs.values()):
            self._out.note(
                "events are counted more than once for the whole run: each time is taken as a run of its own"
            )
        if not length:
            self._out.note("one count for the whole run, whose length is not stated: a table without a timeline")
        elif not recording.last:
            mean = " (the mean of the runs)" if "runs" in recording.info else ""
            self._out.note(f"one count for the whole run: a slice as long as the run{mean}, which begins at 0")


@dataclass(frozen=True)
class PerfStat(Importer):
    name = "perf-stat"
    title = "Linux perf stat counts (text, -x, -j; -I)"
    url = "https://man7.org/linux/man-pages/man1/perf-stat.1.html"
    versions = "checked with perf 6.1; text, CSV with any separator, JSON"
    signature = Signature(
        'performance counter stats for | "counter-value" | counts unit events',
        (rb"\d[^\w.<>-]{1,16}\d{1,3}[.,]\d\d[^\w.<>-]",),
    )
    clock = STAT_CLOCK
    record = "perf stat -I 100 -j -o perf.stat.json python run.py"
    skips = (OTHER_LINE,)
    utc_offset: str = option("", 'the time zone of the machine that recorded, as "+02:00": `started on` is local time.')

    line_up = (
        "Only with -o, perf stat prints its start, in local time: --tz FILE=+02:00 uses it, accurate to a second. "
        "For more accuracy, use --offset."
    )
    becomes = (
        ("count of an event in an interval (-I)", "counter from the start of the interval, with its unit"),
        ("CPU, core, socket, node, thread (-A, --per-...)", "group of tracks"),
        ("all about an interval", "args of its slice: value, unit, run time, percentage, metrics, variance"),
        ("percentage of time on a counter, if below 100", "counter `... running`"),
        ("counts of the whole run, --summary", "args of a slice as long as the run, or of a row without timeline"),
        ("command, started on, elapsed, user, sys", "metadata, args of the run"),
    )
    lost = ("Metrics without counts (--metric-only) are not read.",)
    #: The counter beside the counts of an event is the share of time in which it was on a counter.
    marks = FormatMarks(
        interval_counts=r"(?!.* running$).*",
        interval_threads=r"(?P<name>.*)-(?P<tid>[0-9]{1,10})",
        counts=CountMarks(
            (WHOLE_RUN,), "(?s:.+)", rows_are_calls=True, value="value", unit="unit", share="running_percent"
        ),
        spans=r"interval|perf stat(?: run)?",
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by title or heading of the text, the keys of the JSON, or a line of the form with separators."""
        if b"Performance counter stats for " in head.data:
            return Match.yes("the title of perf stat")
        for line in map(plain, head.data.splitlines()[:400]):
            if line.startswith(b"{"):
                if b'"counter-value"' in line and b'"event"' in line:
                    return Match.yes("counts of perf stat -j")
                continue
            text = line[:1000].decode("utf-8", "replace")
            if _HEADING.fullmatch(text):
                return Match.yes("the heading of perf stat -I")
            if _is_csv(text):
                return Match.yes("counts of perf stat -x")
        return Match.no("no count of perf stat")

    def read(self, source: Source, out: Builder) -> None:
        zone = zone_of(self.name, self.utc_offset)
        out.counts(LINES)
        reader = _Reader(out)
        reader.read(source)
        if any(recording.elapsed or recording.last for recording in reader.recordings):
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
        bound, local = _START_BOUND_NS, local_time(zone)
        out.clocks.snapshot(ClockSnapshot(STAT_CLOCK, 0, REALTIME, wall, bound, method, local, Provenance.ASSUMED))
