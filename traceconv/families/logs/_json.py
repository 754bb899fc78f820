"""Logs of one JSON object a line, with a field that holds the time.

{"time": "2024-01-02T03:04:05.678Z", "level": "info", "msg": "text", "duration_ms": 6.4}
{"line": 1, "arrived_mono_ns": 3276934359178, "arrived_real_ns": 1795245462407799306}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from msgspec import Struct

from traceconv.families.logs import log_times
from traceconv.families.logs._fields import Duration, Fields, durations
from traceconv.families.logs.log_times import FORMS, Form, Kind, TimeReader
from traceconv.model.clocks import looks_like_unix_time
from traceconv.model.json_values import flatten
from traceconv.model.numbers import double_of, whole_or_text
from traceconv.model.times import parse_ns

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
_SUFFIX = re.compile(r"_(ns|us|ms|s|sec|seconds)$")
_TEXT_FORMS = FORMS[: [form.name for form in FORMS].index("glog")]
#: Bunyan and pino write levels as numbers.
_LEVEL_NUMBERS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, with decimals as Decimal; None if it is not one."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = json.loads(flatten(line).decode("utf-8", "replace"), parse_int=whole_or_text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class TimeField(Struct, frozen=True):
    """The field of JSON objects that holds the time.

    Attributes:
        key: the name of the field.
        kind: the kind of time.
        form: how it is written, if it is text.
        exponent: the unit of a number that does not count from 1970, as a power of ten of ns.
    """

    key: str
    kind: Kind
    form: Form | None = None
    exponent: int | None = None

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

    def step_ns(self, record: dict[str, Any]) -> int:
        """Return the resolution of the time of an object, as written, ns; 1 if not known."""
        text = str(record[self.key])
        if self.form is not None:
            return log_times.step_ns(self.form, text.encode())
        return log_times.number_step_ns(text.encode(), self.exponent)

    @property
    def reader(self) -> TimeReader | None:
        """The reader of texts of the field."""
        return TimeReader(self.form) if self.form is not None else None


def find(records: Sequence[dict[str, Any]], wanted: str = "") -> TimeField | None:
    """Return the field that holds a time in most objects.

    Args:
        wanted: the name of the field, if the user knows it.
    """
    keys = [wanted] if wanted else _candidates(records)
    for key in keys:
        values = [record[key] for record in records if key in record]
        if 2 * len(values) < len(records) or not values:
            continue
        for field in _readings(key, values[0], named=bool(wanted)):
            if _fits(field, records):
                return field
    return None


def _candidates(records: Sequence[dict[str, Any]]) -> list[str]:
    keys = list(dict.fromkeys(key for record in records[:50] for key in record))
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
    times, reader = [], field.reader
    for record in records:
        try:
            times.append(field.read(record, reader))
        except ValueError:
            continue
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
    rest = {key: _plain(value) for key, value in record.items() if key not in used}
    fields.args = rest
    return fields, text or json.dumps(rest, ensure_ascii=False), _durations(record, text)


def _durations(record: dict[str, Any], text: str) -> list[Duration]:
    durations_read = []
    for key, value in record.items():
        match = _DURATION_KEY.search(key)
        if isinstance(value, str) and _DURATION_TEXT_KEY.search(key):
            durations_read += [Duration(text or key, one.ns) for one in durations(f"took {value}")[0]]
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
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) else value  # Infinity and NaN, all others are Decimal
