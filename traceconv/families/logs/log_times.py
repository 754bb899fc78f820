"""The forms of times in log lines, their recognition, and the pattern language for other forms.

    2024-01-02T03:04:05.678901Z text            iso
    2024-01-02 03:04:05,678 INFO text           iso-local    (Python logging)
    20240102T030405.678Z text                   iso-basic, without a zone iso-basic-local
    02.01.2024 03:04:05 text                    day.month.year, with a zone day.month.year-zone
    [02/Jan/2024:03:04:05 +0000] text           clf          (web servers), without a zone clf-local
    Jan 2, 2024 3:04:05 PM text                 month-name   (Java)
    Tue Jan  2 03:04:05 2024 text               ctime
    1/2/2024 3:04:05 PM text                    month/day/year or day/month/year: only a number above 12 tells which
    I0102 03:04:05.678901 12345 file.cc:77] t   glog         (month and day, no year)
    01-02 03:04:05.678  123  456 I tag: text    logcat       (likewise)
    Jan  2 03:04:05 host prog[77]: text         syslog       (likewise)
    1704164645.678901 text                      epoch        (10, 13, 16 or 19 digits: s, ms, us, ns)
    [   12.345678] text                         seconds      (since an instant that the log does not name)
        12.345 ( 0.012 ms): python/77 read(...  perf-trace   (ms since its first event, or with -T of its clock)
    +00:00:05.678 text                          elapsed      (likewise)
    03:04:05.678 text                           time-of-day

Each clock may be one of twelve hours: 3:04:05 PM.
A form is a regular expression whose groups have fixed names, so that one function reads the time of all of them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from traceconv.families.common.local_time import ahead_minutes
from traceconv.model.clocks import LocalForm, looks_like_unix_time
from traceconv.model.numbers import DAY_NS, HOUR_NS, parse_ns, whole

#: A time of day that goes back by more than this is of the next day.
_MIDNIGHT_NS = DAY_NS // 2
#: A date without a year that goes back by more than this is of the next year.
_NEW_YEAR_NS = 183 * DAY_NS
#: Any leap year: the calendar for dates of unknown year.
_SOME_LEAP_YEAR = 2000
#: A time begins within this many bytes of the start of a line. It is looked for in twice as many.
REACH = 200
#: The header of glog, with a time of another form.
_FILE_HEADER = (b"Log file created at:", b"Running on machine:", b"Running duration", b"Log line format:")
#: Steps back of less than this happen when several threads write one log.
_JITTER_NS = 10**9

_MONTHS = {name: number for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_EXPONENTS = {b"s": 9, b"ms": 6, b"us": 3, "µs".encode(): 3, "μs".encode(): 3, b"ns": 0}
_EPOCH_EXPONENTS = {10: 9, 13: 6, 16: 3, 19: 0}

#: Groups of a form that are not part of the time.
FIELDS = frozenset(("level", "thread", "pid", "source"))


class Kind(enum.Enum):
    """The kind of time of a form."""

    UNIX = "wall clock with its zone, or seconds since 1970"
    LOCAL = "local wall clock, zone not stated"
    YEARLESS = "local wall clock, year and zone not stated"
    SINCE_START = "since an instant that the log does not name"
    TIME_OF_DAY = "local time of day, date and zone not stated"


#: The parts that local times of a kind state; other kinds are not local.
LOCAL_FORMS = {
    Kind.LOCAL: LocalForm.DATED,
    Kind.YEARLESS: LocalForm.YEARLESS,
    Kind.TIME_OF_DAY: LocalForm.TIME_OF_DAY,
}


class Form(Struct, frozen=True):
    """A way to write a time."""

    name: str  # as given to an option
    kind: Kind
    pattern: re.Pattern[bytes]  # finds the time in a line; its groups are those of `time_ns` and of fields

    def find(self, line: bytes) -> re.Match[bytes] | None:
        """Return the first time in a line that begins near its start: as a whole, wherever it ends."""
        match = self.pattern.search(line, 0, 2 * REACH)
        if match is None or match.start() >= REACH:
            return None
        return match if len(line) <= 2 * REACH else self.pattern.match(line, match.start())


_TIME = rb":(?P<minute>\d\d):(?P<second>\d\d)(?>(?:[.,:](?P<frac>\d{1,9})\d*)?)"
#: AM, PM, p.m.; the blank before it is a narrow one where ICU writes it.
_HALF = rb"(?>(?:(?:\s|\xc2\xa0|\xe2\x80\xaf)?(?P<half>[AaPp](?:[Mm]|\.[Mm]\.))(?!\w))?)"
_CLOCK = rb"(?P<hour>\d\d?)" + _TIME + _HALF
_ZONE = rb"(?:(?P<zone>Z|[+-]\d\d(?::?\d\d)?)|\s(?P<far_zone>UTC|GMT|Z|[+-]\d{4}))(?![\w:])"
_DATE = rb"(?<![\w./:-])(?P<year>(?:19|20)\d\d)(?P<sep>[-/.]?)(?P<month>\d\d)(?P=sep)(?P<day>\d\d)(?:T|[ _]\s?)"
_MONTH_NAME = rb"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rb"(?<![\w./:-])(?P<day>\d\d?)"
_AFTER_DATE = rb"(?:T|,?\s+)"
_DOTTED = _DAY + rb"\.(?P<month>\d\d?)\.(?P<year>(?:19|20)\d\d)" + _AFTER_DATE
_DAY_FIRST = _DAY + rb"(?P<sep>[/-])(?P<month>\d\d?)(?P=sep)(?P<year>(?:19|20)\d\d)" + _AFTER_DATE
_MONTH_FIRST = _DAY_FIRST.replace(b"<day>", b"<_>").replace(b"<month>", b"<day>").replace(b"<_>", b"<month>")
_NAMED_DATE = rb"(?<!\d)(?P<day>\d\d?)[/ -]" + _MONTH_NAME + rb"[/ -](?P<year>(?:19|20)\d\d)(?:[:T]|,?\s+)"
_WEEKDAY = rb"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)"


#: Alternatives share names; inside of a lookahead groups need none.
_NO_NAMES = re.compile(rb"\(\?P<\w+>")


_NO_ZONE = rb"(?!" + _NO_NAMES.sub(b"(?:", _ZONE) + rb")"
_UNIT = rb"(?:[num]|\xc2\xb5|\xce\xbc)?s\b"
#: Behind a number: no further digits, and no unit of something else, as in 429.93 MB, 50.4%, 2.4 GHz.
_WHOLE_TIME = rb"(?!\d|\s*(?:%|[kKMGTP]i?[Bb](?:/s|ps|its?|ytes?)?\b|[Bb]ytes?\b|[kMG]?Hz\b))"
_LEVEL = rb"\b(?i:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"


def _form(name: str, kind: Kind, pattern: bytes) -> Form:
    return Form(name, kind, re.compile(pattern))


_BASIC = (
    rb"(?<![\w./:-])(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)T"
    rb"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)(?>(?:[.,](?P<frac>\d{1,9})\d*)?)(?!\d)"
)

#: The forms, in order of preference if several fit equally well.
FORMS = (
    _form("iso", Kind.UNIX, _DATE + _CLOCK + _ZONE),
    _form("iso-local", Kind.LOCAL, _DATE + _CLOCK + _NO_ZONE),
    _form("iso-basic", Kind.UNIX, _BASIC + _ZONE),
    _form("iso-basic-local", Kind.LOCAL, _BASIC + _NO_ZONE),
    _form("day.month.year-zone", Kind.UNIX, _DOTTED + _CLOCK + _ZONE),
    _form("day.month.year", Kind.LOCAL, _DOTTED + _CLOCK + _NO_ZONE),
    # [02/Jan/2024:03:04:05 +0000] | 02-Jan-2024 03:04:05
    _form("clf", Kind.UNIX, _NAMED_DATE + _CLOCK + _ZONE),
    _form("clf-local", Kind.LOCAL, _NAMED_DATE + _CLOCK + _NO_ZONE),
    # Jan 2, 2024 3:04:05 PM
    _form(
        "month-name",
        Kind.LOCAL,
        rb"(?<!\w)" + _MONTH_NAME + rb" +(?P<day>\d\d?),? +(?P<year>(?:19|20)\d\d),? +" + _CLOCK + _NO_ZONE,
    ),
    # Tue Jan  2 03:04:05.678 2024
    _form("ctime", Kind.LOCAL, _WEEKDAY + _MONTH_NAME + rb" +(?P<day>\d\d?) +" + _CLOCK + rb" +(?P<year>\d{4})\b"),
    # I0102 03:04:05.678901 12345 file.cc:77] text; with the year since glog 0.5; [W102 03:04:05.678901 in PyTorch
    _form(
        "glog",
        Kind.YEARLESS,
        rb"(?<!\w)(?P<level>[IWEFDVC])(?P<month>\d\d?)(?P<day>\d\d) " + _CLOCK + rb"(?: +(?P<thread>\d+))?"
        rb" +(?P<source>[^\s\]]+:\d+)\] ?",
    ),
    _form(
        "glog-year",
        Kind.LOCAL,
        rb"(?<!\w)(?P<level>[IWEFDVC])(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d) "
        + _CLOCK
        + rb"(?: +(?P<thread>\d+))? +(?P<source>[^\s\]]+:\d+)\] ?",
    ),
    # 01-02 03:04:05.678  1234  5678 I Tag: text
    _form(
        "logcat",
        Kind.YEARLESS,
        rb"^(?P<month>\d\d)-(?P<day>\d\d) " + _CLOCK + rb" +(?P<pid>\d+) +(?P<thread>\d+) (?P<level>[VDIWEFA]) "
        rb"(?P<source>(?:[^:]*?[^: ])??) *+: ?",
    ),
    # Jan  2 03:04:05 host program[1234]: text
    _form(
        "syslog",
        Kind.YEARLESS,
        rb"^(?:<\d{1,3}>)?" + _MONTH_NAME + rb" +(?P<day>\d\d?) " + _CLOCK + rb" +\S+ +"
        rb"(?P<source>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?",
    ),
    # 1704164645.678901 | [1704164645678] | ts=1704164645.678901, but no first column of a CSV with whole numbers
    _form(
        "epoch",
        Kind.UNIX,
        rb"(?:^\s*|([\[(<]\s*|\b(?:ts|time|timestamp|t)\s*[=:]\s*\"?))"
        rb"(?P<epoch>\d{10}\.\d{1,9}|\d{10},\d{3,9}(?![\d,;])|(?(1)\d{10},\d{1,2}(?!\d)|(?!))"
        rb"|(?:\d{10}|\d{13}(?:\.\d{1,6})?|\d{16}(?:\.\d{1,3})?|\d{19})(?(1)|(?![,;])))[\])>\"]?"
        rb"(?=$|[\s,:;|}])(?(1)|(?!:\d))",  # start:end of calls, in ns since boot: not since 1970
    ),
    # perf trace: tools/perf/builtin-trace.c; trace.show_duration=no leaves out the brackets (perf-config(1))
    _form(
        "perf-trace",
        Kind.SINCE_START,
        rb"^ *+(?P<since_ms>\d{1,15}\.\d{3}) (?=\( *(?:\d+\.\d{3} ms)?\): |[^/(]{1,15}/\d+ [\w:]+\()",
    ),
    # [   12.345678] text | 12.345678: text | +12.345s text | 250ms text; 1,5 may be two columns: it needs a bracket,
    # a sign, a unit, three decimals or a level; 1.5 MB is no time
    _form(
        "seconds",
        Kind.SINCE_START,
        rb"^\s*+([\[(<]\s*+(?:T?\+|t=)?\s*+|(?:T?\+|t=)\s*+)?"
        rb"(?P<since>\d{1,18}(?:\.\d{1,9}|,\d{3,9}(?![\d,;])|,\d{1,9}(?=\s?" + _UNIT + rb"|\s.*" + _LEVEL + rb")"
        rb"|(?(1),\d{1,9}|(?!))|(?=\s?" + _UNIT + rb")))" + _WHOLE_TIME + rb"\s?(?P<unit>" + _UNIT + rb")?[\])>]?"
        rb"(?(1)|(?(unit)|(?![,;])))(?=[\s:|,;].*[A-Za-z])",
    ),
    # +00:00:05.678
    _form("elapsed", Kind.SINCE_START, rb"^\s*+[\[(<]?\s*+T?\+(?P<hours>\d{1,6})" + _TIME + rb"(?![\w:])"),
    # 1/2/2024 3:04:05 PM
    _form("month/day/year", Kind.LOCAL, _MONTH_FIRST + _CLOCK),
    _form("day/month/year", Kind.LOCAL, _DAY_FIRST + _CLOCK),
    _form("time-of-day", Kind.TIME_OF_DAY, rb"(?<![\w.:/+-])" + _CLOCK + rb"(?![\w:])"),
)


# -- reading a time ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _day_ns(year: bytes, month: bytes, day: bytes) -> int:
    """Return midnight in ns since 1970. Raises ValueError when there is no such day."""
    number = whole(month) if month.isdigit() else _MONTHS[month[:3].lower()]
    return (date(whole(year), number, whole(day)).toordinal() - date(1970, 1, 1).toordinal()) * DAY_NS


@lru_cache(maxsize=64)
def _zone_ns(zone: bytes) -> int:
    """Return the offset from UTC (ns) of a zone such as "+02:00" or "Z". Raises ValueError for others."""
    return ahead_minutes(zone.decode("ascii")) * 60 * 10**9


def _of_day_ns(groups: dict[str, bytes]) -> int:
    hour, minute, second = (whole(groups.get(unit, b"0")) for unit in ("hour", "minute", "second"))
    half = groups.get("half", b"").replace(b".", b"").lower()
    if half and hour <= 12:  # 14:00:00 PM is a clock of 24 hours
        hour = hour % 12 + (12 if half == b"pm" else 0)
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError("no such time of day")
    return ((hour * 60 + minute) * 60 + second) * 10**9 + whole(groups.get("frac", b"0").ljust(9, b"0")[:9])


def epoch_ns(number: bytes) -> int:
    """Return the ns of a number whose unit follows from its digits. Raises ValueError outside of 2001 to 2096."""
    whole = re.split(rb"[.,]", number, maxsplit=1)[0]
    if len(whole) not in _EPOCH_EXPONENTS:
        raise ValueError("no time since 1970")
    ns = parse_ns(number.replace(b",", b"."), _EPOCH_EXPONENTS[len(whole)])
    if not looks_like_unix_time(ns):
        raise ValueError("no time since 1970")
    return ns


def day_of(number: bytes) -> str:
    """Return the day, in UTC, of a number that `epoch_ns` reads."""
    return (date(1970, 1, 1) + timedelta(days=epoch_ns(number) // DAY_NS)).isoformat()


def _counted_ns(groups: dict[str, bytes]) -> int:
    """Return the ns of a form that counts in one unit."""
    if "epoch" in groups:
        return epoch_ns(groups["epoch"])
    for name, text in groups.items():
        count, _, unit = name.partition("_")
        if count in ("epoch", "since"):
            exponent = _EXPONENTS[unit.encode() or groups.get("unit", b"s")]
            return parse_ns(text.replace(b",", b"."), exponent)
    raise ValueError("no time")


def time_ns(groups: dict[str, bytes]) -> int:
    """Return the time in the groups of a form, ns on its clock. Raises ValueError for no such day, hour or zone."""
    if "hours" in groups:  # since a start: more than a day is possible
        return whole(groups["hours"]) * HOUR_NS + _of_day_ns(groups | {"hour": b"0"})
    if "hour" not in groups:
        return _counted_ns(groups)
    ns = _of_day_ns(groups)
    month = groups.get("month") or groups.get("mon")
    if month is None or "day" not in groups:
        return ns
    year = groups.get("year", b"%d" % _SOME_LEAP_YEAR)
    ns += _day_ns(b"20" + year if len(year) == 2 else year, month, groups["day"])
    zone = groups.get("zone") or groups.get("far_zone")
    return ns - _zone_ns(zone) if zone else ns


class TimeReader:
    """Reads the times of one log in order, and counts midnights and new years that its form does not state.

    `year` is that of the first line, if it is known; `ahead_ns` the offset from UTC of times without a zone.
    """

    def __init__(self, form: Form, year: int | None = None, ahead_ns: int = 0) -> None:
        self.form = form
        self._ahead = ahead_ns
        self._turns = {Kind.YEARLESS: _NEW_YEAR_NS, Kind.TIME_OF_DAY: _MIDNIGHT_NS}.get(form.kind, 0)
        self._year = year
        self._passed = 0
        self._last: int | None = None

    def read(self, groups: dict[str, bytes]) -> int:
        """Return the time in ns. Raises ValueError as `time_ns` does."""
        ns = self._time_of_year(groups, self._passed)
        if self._turns:
            if self._last is not None and self._last - ns > self._turns:
                ns = self._time_of_year(groups, self._passed + 1)
                self._passed += 1
            self._last = ns
        return ns - self._ahead

    def _time_of_year(self, groups: dict[str, bytes], passed: int) -> int:
        if self.form.kind is Kind.TIME_OF_DAY:
            return time_ns(groups) + passed * DAY_NS
        if self.form.kind is not Kind.YEARLESS:
            return time_ns(groups)
        if self._year is not None:
            return time_ns(groups | {"year": b"%d" % (self._year + passed)})
        first = _day_ns(b"%d" % _SOME_LEAP_YEAR, b"1", b"1")
        return time_ns(groups) - first + passed * 366 * DAY_NS


def lacks_unit(form: Form, line: bytes) -> bool:
    """Return whether a line holds a number since an unknown start, and neither it nor the form states the unit."""
    match = form.find(line)
    return match is not None and "since" in match.groupdict() and match["unit"] is None


def step_ns(form: Form, line: bytes) -> int:
    """Return the resolution of the time in a line, ns."""
    match = form.find(line)
    if match is None:
        return 1
    groups = groups_of(match)
    for name, text in groups.items():
        what, _, unit = name.partition("_")
        if what in ("epoch", "since"):
            exponent = None if name == "epoch" else _EXPONENTS[unit.encode() or groups.get("unit", b"s")]
            return number_step_ns(text, exponent)
    return int(10 ** max(9 - len(groups.get("frac", b"")), 0))


def number_step_ns(text: bytes, exponent: int | None) -> int:
    """Return the resolution of a written number, ns; without an exponent (of ns) its size since 1970 tells its unit."""
    if not re.fullmatch(rb"[+-]?\d+(?:[.,]\d*)?", text):
        return 1
    whole, *decimals = re.split(rb"[.,]", text)
    unit = _EPOCH_EXPONENTS.get(len(whole), 9) if exponent is None else exponent
    return int(10 ** max(unit - len(decimals[0] if decimals else b""), 0))


def text_of_time(match: re.Match[bytes]) -> str:
    """Return the time as it is written, without the fields that the form holds besides."""
    spans = [match.span(name) for name, text in match.groupdict().items() if text is not None and name not in FIELDS]
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return match.string[start:end].decode("utf-8", "replace")


def groups_of(match: re.Match[bytes]) -> dict[str, bytes]:
    """Return the groups of a form that took part."""
    return {name: text for name, text in match.groupdict().items() if text is not None}


# -- recognising ------------------------------------------------------------------------------------------------------


class Fit(Struct, frozen=True):
    """The fit of a form to lines."""

    form: Form
    fits: int  # lines that hold such a time
    candidates: int  # lines that could begin an entry: neither empty nor indented
    #: The pairs of consecutive times; for numbers that need not be times only of different ones, since those of a
    #: sorted table are often equal.
    steps: int
    back: int  # the pairs in which the time goes back, for wall clocks by more than a second

    @property
    def good(self) -> bool:
        """Whether it fits most lines, and its times run forward."""
        return 2 * self.fits >= self.candidates and 4 * self.back <= self.steps and self.fits > 0


def begins_entry(line: bytes) -> bool:
    """Return whether a line could be the first of an entry: neither empty nor indented."""
    return bool(line.strip()) and not line[:1].isspace()


def recognise(lines: Sequence[bytes]) -> Fit | None:
    """Return the form that fits most lines, the first of FORMS among those that do so about equally; None for none."""
    lines = [line for line in lines if not line.startswith(_FILE_HEADER)]
    fits = [_fit(form, lines) for form in FORMS]
    most = max(fit.fits for fit in fits)
    if not most:
        return None
    about = [fit for fit in fits if 3 * fit.fits >= 2 * most]
    return next((fit for fit in about if fit.good), about[0])


def _fit(form: Form, lines: Sequence[bytes]) -> Fit:
    reader = TimeReader(form)
    times = []
    for line in lines:
        match = form.find(line)
        if match is None:
            continue
        try:
            times.append(reader.read(groups_of(match)))
        except ValueError:
            continue
    bare = "since" in form.pattern.groupindex  # numbers at the start of lines need not be times
    back = sum(earlier - later > (0 if bare else _JITTER_NS) for earlier, later in pairwise(times))
    steps = sum(earlier != later for earlier, later in pairwise(times)) if bare else max(len(times) - 1, 0)
    candidates = sum(begins_entry(line) for line in lines)
    return Fit(form, len(times), max(candidates, len(times)), steps, back)


#: The forms of dates with month or day first.
ORDERS = {form.name: form for form in FORMS if form.name in ("month/day/year", "day/month/year")}
#: The end and the start of a date next to a time of day.
_DATE_BEFORE = re.compile(
    rb"(?:\d{1,4}([./-])\d{1,2}\1\d{1,4}|(?<!\d)(?:19|20)\d{6}|\b(?i:"
    + _NO_NAMES.sub(b"(?:", _MONTH_NAME)
    + rb")[a-z]*[ .,/-]*\d{1,4}"
    rb"(?:,? +\d{4})?|\d{1,2}[ .,/-]*" + _NO_NAMES.sub(b"(?:", _MONTH_NAME) + rb"[a-z]*(?:[ .,/-]*\d{2,4})?)[,T:\s]*$"
)
_DATE_AFTER = re.compile(rb"[,\s]*(?:on )?(?:\d{1,4}([./-])\d{1,2}\1\d{1,4}(?![\w.]))")


def date_order(lines: Iterable[bytes]) -> Form | None:
    """Return the form of dates such as 1/13/2024, from numbers above 12; None if none or not all tell it."""
    first, second = 0, 0
    for line in lines:
        match = ORDERS["month/day/year"].find(line)
        if match is not None:
            first += whole(match["month"]) > 12
            second += whole(match["day"]) > 12
    if bool(first) == bool(second):
        return None
    return ORDERS["day/month/year" if first else "month/day/year"]


def date_beside(form: Form, lines: Sequence[bytes]) -> str:
    """Return a date with its time of day, if most times of a form without dates are beside a date; else ""."""
    found, times = [], 0
    for line in lines:
        match = form.find(line)
        if match is None:
            continue
        times += 1
        before, after = _DATE_BEFORE.search(line, 0, match.start()), _DATE_AFTER.match(line, match.end())
        if before or after:
            start, end = before.start() if before else match.start(), after.end() if after else match.end()
            found.append(line[start:end].decode("utf-8", "replace"))
    return found[0] if 2 * len(found) >= times and found else ""


# -- the pattern language ---------------------------------------------------------------------------------------------

_DIRECTIVES = {
    "Y": rb"(?P<year>\d{4})",
    "y": rb"(?P<year>\d\d)",
    "m": rb"(?P<month>\d\d?)",
    "b": _MONTH_NAME,
    "d": rb" ?(?P<day>\d\d?)",
    "H": rb" ?(?P<hour>\d\d?)",
    "I": rb" ?(?P<hour>\d\d?)",
    "p": rb"(?P<half>[AaPp][Mm])",
    "M": rb"(?P<minute>\d\d)",
    "S": rb"(?P<second>\d\d)",
    "f": rb"(?P<frac>\d{1,9})\d*",
    "z": rb"(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)",
    "a": rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)",
    "s": rb"(?P<epoch_s>\d{1,12}(?:[.,]\d+)?)",
    "%": rb"%",
}
_NAMED = {f"epoch_{unit}": rb"(?P<epoch_%b>\d{1,20}(?:[.,]\d+)?)" % unit.encode() for unit in ("s", "ms", "us", "ns")}
_NAMED |= {unit: rb"(?P<since_%b>\d{1,20}(?:[.,]\d+)?)" % unit.encode() for unit in ("s", "ms", "us", "ns")}
_NAMED |= {
    "level": rb"(?P<level>[A-Za-z]+)",
    "thread": rb"(?P<thread>[^\]\[|,;]+?)",
    "pid": rb"(?P<pid>\d+)",
    "source": rb"(?P<source>[^\s\]\[]+)",
}
_BLANKS, _GAP = rb"\s++", rb".*?"
_TOKEN = re.compile(r"%(?:\{(?P<name>\w+)\}|(?P<directive>.))|(?P<blank>\s+)|(?P<other>.)", re.DOTALL)
#: The possible values of the option, for messages.
PATTERN_HELP = (
    "a pattern of %Y %y %m %b %d %H %I %p %M %S %f %z %s and %{epoch_s} %{epoch_ms} %{epoch_us} %{epoch_ns} "
    "%{s} %{ms} %{us} %{ns} %{level} %{thread} %{pid} %{source} %{skip}, or a name: "
    + ", ".join(form.name for form in FORMS)
)


def compile_form(text: str) -> Form:
    """Return the form of that name, or the form that a pattern describes. Raises ValueError with what is wrong."""
    for form in FORMS:
        if form.name == text:
            return form
    parts: list[list[bytes]] = [[]]
    for match in _TOKEN.finditer(text):
        if match["name"] == "skip":
            parts.append([])
        else:
            parts[-1].append(_chunk(match, text))
    try:
        pattern = re.compile(_joined(parts))
    except re.error as error:
        raise ValueError(f"{text!r} states something twice ({error})") from None
    return Form(text, _kind_of(set(pattern.groupindex), text), pattern)


def _joined(parts: list[list[bytes]]) -> bytes:
    """Return the pattern of parts with anything between them.

    Each part but the last one stays at the first place where it fits: trying all of them takes a power of the length.
    """
    kept = [*parts[:1], *filter(None, parts[1:])]
    pattern = b"" if kept[0] or len(kept) == 1 else rb"(?<![^\n])"  # anything at the start begins with the line
    gap = b""
    for part, following in pairwise(kept):
        if part[-1:] == following[:1] == [_BLANKS]:
            part[-1] = rb"\s"  # of several blanks the last ones follow the gap
        pattern += b"(?>%b)" % b"".join((gap, *part))
        gap = _GAP
    return b"".join((pattern, gap, *kept[-1]))


def _chunk(match: re.Match[str], text: str) -> bytes:
    name, directive = match["name"], match["directive"]
    if match["blank"]:
        return _BLANKS
    if match["other"]:
        return re.escape(match["other"].encode())
    known = _NAMED.get(name) if name else _DIRECTIVES.get(directive)
    if known is None:
        raise ValueError(f"{match[0]!r} in {text!r} is not known")
    return known


def _kind_of(groups: set[str], text: str) -> Kind:
    if any(group.startswith("epoch_") for group in groups):
        return Kind.UNIX
    if any(group.startswith("since_") for group in groups):
        return Kind.SINCE_START
    if "hour" not in groups:
        raise ValueError(f"{text!r} states no time: it needs %H, %s, %{{s}} or the like")
    if not {"day"} <= groups or not groups & {"month", "mon"}:
        return Kind.TIME_OF_DAY
    if "year" not in groups:
        return Kind.YEARLESS
    return Kind.UNIX if "zone" in groups else Kind.LOCAL
