"""What a log line holds besides its time: level, thread, process, source, and durations in its text.

2024-01-02 03:04:05,678 - package.module - INFO - step 3 took 6.4 ms
2024-01-02 03:04:05.678901: W tensorflow/core/x.cc:77] text
[2024-01-02 03:04:05.678] [MainThread] [warning] text

In a log of one JSON object a line, a field holds the time:

{"time": "2024-01-02T03:04:05.678Z", "level": "info", "msg": "text", "duration_ms": 6.4}
{"line": 1, "arrived_mono_ns": 3276934359178, "arrived_real_ns": 1795245462407799306}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

import msgspec

from traceconv.families.logs import log_times
from traceconv.families.logs.log_times import FORMS, Form, Kind, TimeReader
from traceconv.model.clocks import looks_like_unix_time
from traceconv.model.diagnostics import noted
from traceconv.model.numbers import LIMIT_NS, decimal_or_text, double_of, parse_ns, read_json, whole_or_text
from traceconv.model.trace import Level

AMBIGUOUS_DURATION = noted(
    "timed_log.ambiguous_duration",
    "a duration such as 1,234 ms has a comma that may be decimal or not: no slice was drawn for it",
)
BAD_DURATION = noted(
    "timed_log.duration_out_of_range", "a duration is not a number or beyond 146 years: no slice was drawn for it"
)

_LEVELS = {
    Level.VERBOSE: "TRACE VERBOSE FINE FINEST V T",
    Level.DEBUG: "DEBUG DIAGNOSE DBG D",
    Level.INFO: "INFO NOTICE INF I",
    Level.WARNING: "WARNING WARN WRN W",
    Level.ERROR: "ERROR ERR SEVERE E",
    Level.FATAL: "CRITICAL CRIT FATAL ALERT EMERG PANIC F C A",
}
_LEVEL_OF = {word: level for level, words in _LEVELS.items() for word in words.split()}
_WORDS = "|".join(sorted((word for word in _LEVEL_OF if len(word) > 1), key=len, reverse=True))
_EXTENSIONS = "py|pyx|cc|cpp|cxx|c|h|hpp|cu|cuh|rs|go|java|kt|js|ts|rb|swift|m"
#: Possessive: what follows may begin with the same characters, and is not to be tried from each of them.
_SEPARATORS = r"[\s:|,;-]*+"

#: In the order in which they are tried.
_FIELDS = (
    # INFO | [INFO] | [info] | level=info
    rf"[\[(<]?(?P<level>{_WORDS})[\])>]?(?=$|[\s:|,;\]-])",
    rf"[\[(<](?P<level>(?i:{_WORDS}))[\])>]",
    r"(?:level|lvl|severity)=\"?(?P<level>\w+)\"?",
    # [MainThread] | (rank 3) | [rank0]: | [tid 77] | [77:78] | thread=77 | [0x7f5a271fab80]
    r"[\[(](?P<thread>main|MainThread|ThreadPoolExecutor-\d+_\d+|Thread-\d+[^\])]{0,60}|"
    r"(?i:rank|worker|thread|tid)[ =:#-]?\d+|0x[0-9a-fA-F]+)[\])]",
    r"(?:thread|tid)=\"?(?P<thread>[\w.-]+)\"?",
    r"\[(?:pid[ =:]?)?(?P<pid>\d{1,9}):(?:tid[ =:]?)?(?P<thread>\d{1,9})\]",
    r"\[?pid[ =:](?P<pid>\d{1,9})\]?",
    r"\[(?P<thread>\d{1,9})\]",
    # W tensorflow/core/x.cc:77] | file.py:77
    rf"(?P<level>[VDIWEFC])(?= [\w./]+\.(?:{_EXTENSIONS}):\d)",
    rf"[\[(]?(?P<source>[\w./\\@+-]+\.(?:{_EXTENSIONS}):\d+)(?:[\])]:?|:|(?=\s|$))",
    # package.module - INFO | package.module INFO
    rf"(?P<source>[A-Za-z_][\w.$/-]*)(?=\s*(?:[-:|]\s*)?[\[(<]?(?:{_WORDS})[\])>]?(?:[\s:|,;-]|$))",
    # [package.module]: | package.module: | root:
    r"\[(?P<source>[A-Za-z_]\w*(?:[./][\w./-]+)?)\](?=:?\s)",
    r"(?P<source>root|__main__|[A-Za-z_]\w*(?:\.\w+)+)(?=\s?(?::|\||-\s))",
)
_GROUP = re.compile(r"\(\?P<(\w+)>")
_LEADING = re.compile(r"[\s:|,;\])>]+(?:-\s+)?|\s*-\s+")

_UNITS = {
    "ns": (1, 0),
    "us": (1, 3),
    "usec": (1, 3),
    "ms": (1, 6),
    "msec": (1, 6),
    "s": (1, 9),
    "sec": (1, 9),
    "secs": (1, 9),
    "min": (60, 9),
    "mins": (60, 9),
    "h": (3600, 9),
}
_UNITS |= {
    word + plural: _UNITS[unit]
    for unit, word in {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}.items()
    for plural in ("", "s")
}
_UNITS |= {"µs": (1, 3), "μs": (1, 3), "minute": (60, 9), "minutes": (60, 9), "hour": (3600, 9), "hours": (3600, 9)}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_AMOUNT = rf"(?P<number>\d[\d.,]{{0,40}}+(?:[eE][+-]?\d{{1,3}})?+)\s?(?P<unit>{_UNIT})(?![\w/])"
_AMOUNTS = re.compile(_AMOUNT)
# took 6.4 ms | in 3.2 s | elapsed: 5 ms | elapsed time = 5ms | duration=5 ms | took 1 min 3 s
_DURATION = re.compile(
    rf"\b(?P<word>took|taken|in|elapsed|duration)(?:[ _]time)?[ =:]*(?P<amounts>{_AMOUNT}"
    rf"(?:(?:,? and|,)? ?\d[\d.,]*\s?(?:{_UNIT})(?![\w/]))*)",
    re.IGNORECASE,
)
#: "retry in 5 s" is about the future.
_FUTURE = re.compile(
    r"(?:retry|retrying|again|expires?|expiring|starts?|starting|timeout|sleeping|reconnect(?:ing)?|scheduled) *$", re.I
)
_NAME_ENDS = " \t:,;=-|([{'\"."


class Fields(msgspec.Struct):
    """The fields of a line beside its time and text; those without a column of their own are in `args`."""

    level: Level = Level.INFO
    thread: str = ""
    pid: str = ""
    source: str = ""
    args: dict[str, Any] = msgspec.field(default_factory=dict)

    def take(self, fields: dict[str, str]) -> None:
        """Take over named groups."""
        for name in ("thread", "pid", "source"):
            if fields.get(name):
                setattr(self, name, fields[name].strip())
        if "level" in fields:
            self.level = level_of(fields["level"])


class Duration(NamedTuple):
    """A duration in a text: the name of the operation, and its duration in ns."""

    name: str
    ns: int


def level_of(word: str) -> Level:
    """Return the level of a word or letter; INFO for others."""
    return _LEVEL_OF.get(word.upper(), Level.INFO)


@lru_cache(maxsize=64)
def _any_field(known: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of any field but those known; groups are numbered, as alternatives share names."""
    numbered = [
        _GROUP.sub(rf"(?P<\1_{number}>", pattern)
        for number, pattern in enumerate(_FIELDS)
        if not known.intersection(_GROUP.findall(pattern))
    ]
    return re.compile(f"{_SEPARATORS}(?:{'|'.join(numbered) or '(?!)'})")


def read_fields(text: str, fields: Fields) -> str:
    """Read the fields at the start of a text, each once; return the rest of the text."""
    known: frozenset[str] = frozenset()
    position = 0
    while match := _any_field(known).match(text, position):
        groups = {name.partition("_")[0]: value for name, value in match.groupdict().items() if value is not None}
        fields.take(groups)
        known = known.union(groups)
        position = match.end()
    leading = _LEADING.match(text, position)
    return text[leading.end() if leading else position :]


def durations(text: str) -> tuple[list[Duration], list[str]]:
    """Return the durations in a text, and the texts of ambiguous or invalid numbers."""
    durations_read: list[Duration] = []
    unclear: list[str] = []
    start = 0
    matches = list(_DURATION.finditer(text))
    for match, following in zip_longest(matches, matches[1:]):
        before = text[start : match.start()]
        if match["word"].lower() == "in" and _FUTURE.search(before):
            continue
        start = match.end()
        name = before.strip(_NAME_ENDS)
        if not name:
            behind = text[match.end() : following.start() if following else None]
            if following is None or behind.rstrip().endswith((",", ";")):  # else it is the name of the next one
                name, start = behind.strip(_NAME_ENDS), match.end() + len(behind)
        try:
            ns = sum(_amount_ns(amount) for amount in _AMOUNTS.finditer(match["amounts"]))
            durations_read.append(Duration(name or match["word"], ns))
        except ValueError:
            unclear.append(match[0])
    return durations_read, unclear


def _amount_ns(match: re.Match[str]) -> int:
    """Return the ns of a match. Raises ValueError for an ambiguous or invalid number."""
    number = match["number"].rstrip(".,")
    if "," in number:
        whole, *groups = number.split(",")
        thousands = all(re.fullmatch(r"\d{3}(\.\d+)?", group) for group in groups) and whole != "0"
        if thousands and "." not in number and len(groups) == 1:
            raise ValueError(f"{number} has a comma that may be decimal")
        number = number.replace(",", "" if thousands else ".")
    factor, exponent = _UNITS[match["unit"].lower()]
    ns = parse_ns(number.encode(), exponent, factor)
    if ns > LIMIT_NS // 4:
        raise ValueError(f"{number} is out of range")
    return ns


# -- JSON --------------------------------------------------------------------------------------------------------------

_EXPONENTS = {"ns": 0, "us": 3, "ms": 6, "s": 9, "sec": 9, "seconds": 9}
#: Names of the field with the time, the most usual first; then any other field with a time since 1970.
_TIME_KEYS = ("@timestamp", "timestamp", "time", "ts", "datetime", "asctime", "date", "created", "t")
_KEYS = {
    "text": ("msg", "message", "text", "event", "log", "body", "name"),
    "level": ("level", "levelname", "severity", "lvl", "loglevel"),
    "thread": ("thread", "threadName", "thread_name", "thread_id", "tid", "rank"),
    "pid": ("pid", "process", "process_id"),
    "source": ("caller", "logger", "logger_name", "module", "component", "source"),
}
_DURATION_KEY = re.compile(r"(?i)(?:^|_)(?:dur|duration|elapsed|took|latency)(?:_time)?_?(ns|us|ms|s|sec|seconds)$")
#: Its text states the unit: "1.5s".
_DURATION_TEXT_KEY = re.compile(r"(?i)(?:^|_)(?:dur|duration|elapsed|took|latency)(?:_time)?$")
#: The objects that are searched for fields with a time.
_LOOKED_AT = 50
_SUFFIX = re.compile(r"_(ns|us|ms|s|sec|seconds)$")
_TEXT_FORMS = FORMS[: [form.name for form in FORMS].index("glog")]
#: Bunyan and pino write levels as numbers.
_LEVEL_NUMBERS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}


def json_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, with decimals as Decimal; None if it is not one."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = read_json(line, parse_int=whole_or_text, parse_float=decimal_or_text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class TimeField(NamedTuple):
    """The field of JSON objects that holds the time."""

    key: str
    kind: Kind
    form: Form | None = None  # how it is written, if it is text
    exponent: int | None = None  # of the unit of a number that does not count from 1970, as a power of ten of ns

    @property
    def lacks_unit(self) -> bool:
        """Whether it counts from an unknown start in a unit that its name does not tell."""
        return self.kind is Kind.SINCE_START and self.form is None and _SUFFIX.search(self.key) is None

    def read(self, record: dict[str, Any], reader: TimeReader | None) -> int:
        """Return the time in ns. Raises ValueError if there is none."""
        value = record.get(self.key)
        if self.form is not None and isinstance(value, str) and reader is not None:
            match = self.form.find(value.encode())
            if match is not None:
                return reader.read(log_times.groups_of(match))
        if self.form is None and isinstance(value, int | Decimal | str) and not isinstance(value, bool):
            text = str(value).encode()
            if self.exponent is not None:
                return parse_ns(text, self.exponent)
            return log_times.epoch_ns(text)
        raise ValueError(f"{self.key} is not a time")

    def times(self, records: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
        """Return the times of those objects that have one, and the resolution of each as written; both in ns."""
        reader = TimeReader(self.form) if self.form is not None else None
        found = []
        for record in records:
            try:
                ns = self.read(record, reader)
            except ValueError:
                continue
            text = str(record[self.key]).encode()
            if self.form is not None:
                found.append((ns, log_times.step_ns(self.form, text)))
            else:
                found.append((ns, log_times.number_step_ns(text, self.exponent)))
        return found


def time_field(records: Sequence[dict[str, Any]], wanted: str = "") -> TimeField | None:
    """Return the field that holds a time in most objects; `wanted` is its name, if the user knows it."""
    keys = [wanted] if wanted else _candidates(records)
    for key in keys:
        values = [record[key] for record in records if key in record]
        if 2 * len(values) < len(records) or not values:
            continue
        some = values[:_LOOKED_AT]  # the first one may be odd
        for field in dict.fromkeys(field for value in some for field in _readings(key, value, named=bool(wanted))):
            if _fits(field, records):
                return field
    return None


def _candidates(records: Sequence[dict[str, Any]]) -> list[str]:
    keys = list(dict.fromkeys(key for record in records[:_LOOKED_AT] for key in record))
    return [key for key in _TIME_KEYS if key in keys] + sorted(key for key in keys if key not in _TIME_KEYS)


def _readings(key: str, value: Any, named: bool) -> list[TimeField]:
    """Return the possible readings of a field as a time.

    A number that does not count from 1970 is one only if the user named the field.
    """
    if isinstance(value, str) and not re.fullmatch(r"\d+(\.\d+)?", value):
        forms = [form for form in _TEXT_FORMS if form.pattern.match(value.encode())]
        return [TimeField(key, form.kind, form) for form in forms]
    suffix = _SUFFIX.search(key)
    exponent = _EXPONENTS[suffix[1]] if suffix else None
    fields = [TimeField(key, Kind.UNIX, exponent=exponent)]
    if named or (key in _TIME_KEYS and isinstance(value, Decimal)):
        fields.append(TimeField(key, Kind.SINCE_START, exponent=9 if exponent is None else exponent))
    return fields


def _fits(field: TimeField, records: Sequence[dict[str, Any]]) -> bool:
    times = [ns for ns, _ in field.times(records)]
    if field.kind is Kind.UNIX and not all(looks_like_unix_time(ns) for ns in times):
        return False
    back = sum(earlier - later >= 10**9 for earlier, later in pairwise(times))
    return 2 * len(times) >= len(records) and 4 * back <= max(len(times) - 1, 0)


def read_record(record: dict[str, Any], time_key: str) -> tuple[Fields, str, list[Duration]]:
    """Return the fields, the text and the durations of an object."""
    fields, used, text = Fields(), {time_key}, ""
    for what, keys in _KEYS.items():
        key = next((key for key in keys if isinstance(record.get(key), str | int) and record[key] != ""), None)
        if key is None or key in used:
            continue
        used.add(key)
        if what == "text":
            text = str(record[key])
        else:
            fields.take(
                {what: _LEVEL_NUMBERS.get(record[key], str(record[key])) if what == "level" else str(record[key])}
            )
    fields.args = {key: _plain(value) for key, value in record.items() if key not in used}
    return fields, text or json.dumps(fields.args, ensure_ascii=False), _durations_of(record, text)


def _durations_of(record: dict[str, Any], text: str) -> list[Duration]:
    durations_read = []
    for key, value in record.items():
        match = _DURATION_KEY.search(key)
        if isinstance(value, str) and _DURATION_TEXT_KEY.search(key):
            durations_read += [Duration(text or key, stated.ns) for stated in durations(f"took {value}")[0]]
        if match is None or isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        try:
            ns = parse_ns(str(value).encode(), _EXPONENTS[match[1].lower()])
        except ValueError:
            continue
        if ns >= 0:
            durations_read.append(Duration(text or key, ns))
    return durations_read or durations(text)[0]


def _plain(value: Any) -> Any:
    """Return a value of the decoder as one that JSON can hold."""
    if isinstance(value, Decimal):
        number = double_of(str(value))
        return str(value) if number is None else number
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
