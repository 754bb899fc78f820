"""Times of day that a file prints without a zone: which instant they are, once the user has told the zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from traceconv.errors import UsageError
from traceconv.model.clocks import LocalTime
from traceconv.model.times import S, parse_ns

_OFFSET = re.compile(r"([+-])(\d\d)(?::?([0-5]\d))?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?", re.ASCII)
#: No place on earth is further from UTC.
_MOST_HOURS = 14


def zone_of(format_name: str, text: str) -> timezone:
    """Return the time zone of the option `utc_offset`, such as "+02:00"; UTC for none.

    Raises:
        UsageError: it is not an offset.
    """
    try:
        return timezone(timedelta(minutes=ahead_minutes(text or "UTC")))
    except ValueError:
        raise UsageError(
            f"option utc_offset of {format_name} is an offset such as +02:00 or UTC, not {text!r}",
            hint="an offset is written as +02:00, +0200 or +02; `date +%:z` prints that of the machine it runs on",
        ) from None


def refuse_zone(format_name: str, utc_offset: str, file: str, times: str) -> None:
    """Refuse a zone for a file whose times are not local ones.

    Args:
        format_name: the importer.
        utc_offset: its option, "" if it was not given.
        file: the input.
        times: what its times are, as a clause.

    Raises:
        UsageError: the option was given.
    """
    if utc_offset:
        raise UsageError(
            f"{file} ({format_name}) needs no time zone: {times}",
            hint=f"leave --tz {utc_offset} out",
        )


def local_time(zone: timezone, *, guessed: bool = False) -> LocalTime:
    """Return what a snapshot says of a local time that was read as one of that zone."""
    return LocalTime((zone.utcoffset(None) or timedelta()) // timedelta(microseconds=1) * 1000, guessed)


def ahead_minutes(text: str) -> int:
    """Return how far ahead of UTC a zone is.

    +02:00, +0200, +02, or UTC, GMT, Z in any case. Raises ValueError for others.

    >>> ahead_minutes("-05:30"), ahead_minutes("gmt")
    (-330, 0)
    """
    if text.upper() in ("Z", "UTC", "GMT"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[2]) > _MOST_HOURS:
        raise ValueError(f"{text[:40]!r} is not a zone")
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return -minutes if match[1] == "-" else minutes


def local_ns(text: str, zone: timezone) -> int:
    """Return ns since 1970 of "2026-11-21 07:07:40.052884087" in a zone. Raises ValueError if it is no such time."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"no date and time: {text[:40]!r}")
    moment = datetime.fromisoformat(f"{match[1]} {match[2]}")
    return seconds_since_1970(moment, zone) * 10**9 + parse_ns(f"0.{match[3] or 0}".encode(), S)


def seconds_since_1970(moment: datetime, zone: timezone) -> int:
    """Return whole seconds since 1970 of a local time in a zone."""
    return (moment.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
