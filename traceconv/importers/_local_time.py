"""Times of day that a file prints without a zone: which instant they are, once the user has told the zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from traceconv.errors import UsageError
from traceconv.times import S, parse_ns

_OFFSET = re.compile(r"([+-])(\d\d):?([0-5]\d)", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?", re.ASCII)


def zone_of(format_name: str, text: str) -> timezone:
    """The time zone of the option `utc_offset`, such as "+02:00"; UTC for none.

    Raises:
        UsageError: it is no offset.
    """
    if text in ("", "Z", "UTC"):
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[2]) > 14:
        raise UsageError(f"option utc_offset of {format_name} is an offset such as +02:00, not {text!r}")
    minutes = int(match[2]) * 60 + int(match[3])
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))


def local_ns(text: str, zone: timezone) -> int:
    """Nanoseconds since 1970 of "2026-11-21 07:07:40.052884087" in a zone. Raises ValueError if it is no such time."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"no date and time: {text[:40]!r}")
    moment = datetime.strptime(f"{match[1]} {match[2]}", "%Y-%m-%d %H:%M:%S")
    return seconds_since_1970(moment, zone) * 10**9 + parse_ns(f"0.{match[3] or 0}".encode(), S)


def seconds_since_1970(moment: datetime, zone: timezone) -> int:
    """Whole seconds since 1970 of a local time in a zone."""
    return (moment.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
