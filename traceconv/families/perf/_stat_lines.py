"""The lines of `perf stat` in its three forms: text, fields between separators (-x), one JSON object a line (-j).

         0.050113410 CPU0     50.70 msec task-clock     #    1.014 CPUs utilized   ( +-  0.44% )  (66.65%)
         0.050113410,CPU0,50.70,msec,task-clock,50700000,66.65,1.014,CPUs utilized
    {"interval" : 0.050113410, "cpu" : "0", "counter-value" : "50.700000", "unit" : "msec", "event" : "task-clock", ...}

Fields in order: seconds since the start (with -I), what was aggregated (CPU, core, thread, ...) and of how many CPUs,
value, unit, event, cgroup, variance (-r), for how many ns and percent of the time the event was on a counter, a metric
and its unit. Nothing is quoted in the -x form: names of events may hold the separator. A line without a value is a
further metric of the line before. Text and JSON follow the locale: separators of thousands (text only), decimal comma.
A value has two decimals or none in text. Checked against perf 6.1.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceconv.model.numbers import double_of, is_digits, number_of, whole_of
from traceconv.model.times import S, parse_ns

NOT_COUNTED, NOT_SUPPORTED = "<not counted>", "<not supported>"

_SOMEWHERE = r"CPU\d+|[SND]\d+[A-Z0-9-]*|\S.{0,63}?-\d{1,10}"
_PLACE = re.compile(rf"(?a)\s*(?:{_SOMEWHERE})(?:\s+\d{{1,6}})?\s*")
_VALUE = r"<not counted>|<not supported>|-?\d{1,3}(?: \d{3})+(?:[.,]\d\d)?|-?\d[\d.,'’\u00a0\u202f]*"
_LEFT = re.compile(
    rf"(?a)\s*(?:(\d{{1,9}}[.,]\d{{9}})\s+)?(?:({_SOMEWHERE})\s+(?:(\d{{1,6}})\s+)?)?"
    rf"({_VALUE})(?: ([A-Za-z%]\S{{0,19}})\s+|\s{{2,}})([A-Za-z_]\S*)(?:\s+(\S+))?\s*"
)
#: Behind task-clock and cpu-clock, with six decimals, before perf had a column for units.
_OLD_UNIT = "(msec)"
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
_JSON_FIELDS = ("interval", "event", "counter-value", "unit", "cgroup", "variance", "event-runtime", "pcnt-running")
_JSON_METRIC = ("metric-value", "metric-unit", "metric-threshold")
_JSON_KEYS = frozenset((*_PLACES, *_PLACE_COUNTS, *_JSON_FIELDS, *_JSON_METRIC))
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Row(msgspec.Struct):
    """One count.

    Attributes:
        end: the end of its interval, ns from the start; None for a count over the whole run.
        place: the CPU, core, socket or thread that was counted: "CPU0", "S0-D0-C0", "bash-42"; "" for all.
        cpus: the number of CPUs of the place, if stated.
        value: a number, or the reason why there is none; None for a line of metrics only.
        running: percent of the time that the event was on a counter; None if not stated.
    """

    end: int | None = None
    place: str = ""
    cpus: int | None = None
    value: int | float | str | None = None
    unit: str = ""
    event: str = ""
    cgroup: str = ""
    variance: float | None = None
    run_time_ns: int | None = None
    running: float | None = None
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
        args: dict[str, Any] = {"value": self.value}
        if self.unit:
            args["unit"] = self.unit
        if self.cpus is not None:
            args["cpus"] = self.cpus
        if self.variance is not None:
            args["variance_percent"] = self.variance
        if self.run_time_ns is not None:
            args["run_time_ns"] = self.run_time_ns
        if self.running is not None and self.counted:
            args["running_percent"] = self.running
        return {**args, **self.metrics}


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
    for metric in metrics:
        _add_metric(row, metric)
    match = _LEFT.fullmatch(left)
    if match is None:
        time = _TIME.match(left + " ")
        rest = left[time.end() :] if time else left
        return row if row.metrics and (not rest.strip() or _PLACE.fullmatch(rest)) else None
    end, row.place, cpus, value, unit, row.event, cgroup = (group or "" for group in match.groups())
    row.end = _seconds(end) if end else None
    row.cpus = whole_of(cpus)
    row.value = _localized(value)
    if row.value is None:
        return None
    row.unit, row.cgroup = unit, cgroup
    if cgroup == _OLD_UNIT and not unit:
        row.unit, row.cgroup = cgroup.strip("()"), ""
    return row


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, float | None]:
    """Split a text into the part before a match at its end, and the number in the match."""
    text = text.rstrip()
    match = pattern.search(text)
    number = _decimal(match[1]) if match else None
    return (text, None) if match is None or number is None else (text[: match.start()], number)


def _add_metric(row: Row, text: str) -> None:
    text = text.strip()
    match = _METRIC.fullmatch(text)
    if match is not None:
        row.metrics[(match[2] or "metric").strip()] = _metric(match[1])
    elif text:
        row.metrics[text] = ""


def _localized(text: str) -> int | float | str | None:
    """Return a count as printed for people: two or six decimals or none, thousands in groups of three or two digits.

    Return None for a number out of range.
    """
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


# -- fields between separators -----------------------------------------------------------------------------------------


def find_separator(text: str) -> str:
    """Return the text between the fields of a line, "" if it is not a line of the -x form."""
    match = _SEPARATOR.search(text)
    return match[1] if match else ""


def csv_row(text: str, separator: str) -> Row | None:
    """Parse a line of the -x form; return None for another line."""
    fields = text.split(separator)
    row = Row()
    at = 0
    time = _TIME.match(fields[0] + " ")
    if time is not None:
        if fields[0].strip() != time[1]:
            return None  # a time followed by other fields
        row.end = _seconds(time[1])
        at = 1
    elif fields[0].strip() == "summary":
        at = 1
    number = _NUMBER if separator == "," else _COMMA_NUMBER
    first = next((i for i in range(at, len(fields)) if _is_value(fields[i], number)), -1)
    if not any(fields[at:-2]) or (first >= 0 and not any(fields[at:first]) and first > at):
        return _csv_metric(row, fields)
    if first < 0:
        return None
    row.place = separator.join(fields[at:first])
    if row.place and is_digits(fields[first]) and first + 1 < len(fields) and _is_value(fields[first + 1], number):
        row.cpus = whole_of(fields[first])
        first += 1
    return _csv_rest(row, fields, first, separator, number)


def _is_value(text: str, number: re.Pattern[str]) -> bool:
    return text in (NOT_COUNTED, NOT_SUPPORTED) or number.fullmatch(text.strip()) is not None


def _csv_rest(row: Row, fields: list[str], at: int, separator: str, number: re.Pattern[str]) -> Row | None:
    """Parse a line from the value on; the event ends where an integer and a percentage follow."""
    for run in range(at + 3, len(fields) - 1):
        if is_digits(fields[run]) and _SHARE.fullmatch(fields[run + 1]) and len(fields[run]) < 20:
            break
    else:
        return None
    row.value = _plain(fields[at].strip())
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


def _csv_metric(row: Row, fields: list[str]) -> Row | None:
    value, unit = fields[-2:] if len(fields) > 1 else ("", "")
    if not unit or not _COMMA_NUMBER.fullmatch(value):
        return None
    row.metrics[unit.strip()] = _metric(value)
    return row


def _plain(text: str) -> int | float | str | None:
    """Parse a number without thousands separators; integers stay exact."""
    return text if text.startswith("<") else _storable(text.replace(",", "."))


def _storable(text: str) -> int | float | None:
    """Return a count, or the nearest double if it exceeds 64 bits; None if none holds it."""
    number = number_of(text)
    return number if number is None or isinstance(number, float) or abs(number) < 2**63 else float(number)


# -- JSON --------------------------------------------------------------------------------------------------------------


def json_row(line: bytes) -> tuple[Row, bool] | None:
    """Parse a line of the JSON form; return also whether it has unknown members (of --metric-only).

    Return None for another line.
    """
    try:
        members = _decode(_BARE_COMMA.sub(rb"\1.\2", line))
    except msgspec.DecodeError:
        return None
    row = Row()
    if "interval" in members:
        row.end = parse_ns(bytes(members["interval"]).strip(b'"'), S)
    for name in _PLACES:
        if name in members:
            place = _text(members[name])
            row.place = f"CPU{place}" if name == "cpu" and place.isdigit() else place
    for name in _PLACE_COUNTS:
        if name in members and is_digits(_text(members[name])):
            row.cpus = whole_of(_text(members[name]))
    row.event, row.unit, row.cgroup = (_text(members.get(name)) for name in ("event", "unit", "cgroup"))
    if "counter-value" in members:
        value = _text(members["counter-value"])
        if _COMMA_COUNT.fullmatch(value):
            value = value.replace(",", ".")
        number = _whole(value) if _NUMBER.fullmatch(value) else None
        row.value = value if number is None else number
    row.variance, row.running = (_number(members.get(name)) for name in ("variance", "pcnt-running"))
    run_time = _text(members.get("event-runtime"))
    row.run_time_ns = whole_of(run_time)
    metric, unit = _number(members.get("metric-value")), _text(members.get("metric-unit"))
    if metric is not None and unit:
        row.metrics[unit.strip()] = metric
    return row, not members.keys() <= _JSON_KEYS


def _text(raw: msgspec.Raw | None) -> str:
    """Return a member as text; numbers as they are written."""
    if raw is None:
        return ""
    text = bytes(raw)
    return str(msgspec.json.decode(text)) if text[:1] == b'"' else text.decode()


def _number(raw: msgspec.Raw | None) -> float | None:
    text = _text(raw)
    return double_of(text) if _NUMBER.fullmatch(text) else None


def _whole(text: str) -> int | float | None:
    """Return a count as printed with six decimals; one without a fraction is whole."""
    whole, _, decimals = text.partition(".")
    return _storable(whole if not decimals.strip("0") and "e" not in text.lower() else text)
