"""Convert local times without a zone to Unix time, with the zone that the user states."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta, timezone

from traceconv.errors import UsageError
from traceconv.model.clocks import LocalTime
from traceconv.model.numbers import S, parse_ns, whole

_OFFSET = re.compile(r"([+-])(\d\d)(?::?([0-5]\d))?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?", re.ASCII)
#: The largest offset of any zone from UTC, hours.
_MOST_HOURS = 14


def zone_of(format_name: str, text: str) -> timezone:
    """Return the time zone of the option `utc_offset`, such as "+02:00"; UTC for none.

    Raises:
        UsageError: the text is not an offset.
    """
    try:
        return timezone(timedelta(minutes=ahead_minutes(text or "UTC")))
    except ValueError:
        raise UsageError(
            f"option utc_offset of {format_name} is an offset such as +02:00 or UTC, not {text!r}",
            hint="an offset is written as +02:00, +0200 or +02; `date +%:z` prints that of the machine it runs on",
        ) from None


def zone_option(file: str) -> str:
    """Return the option that states the zone of the local times of a file, for messages; which zone it is, they ask."""
    return f"--tz {shlex.quote(file)}=+HH:MM"


def date_option(file: str) -> str:
    """Return the option that states the day of the first time of a file, for messages."""
    return f"--date {shlex.quote(file)}=DAY"


def refuse_zone(format_name: str, utc_offset: str, file: str, times: str) -> None:
    """Raise UsageError if a zone is given for a file whose times are not local; `times` is a clause about these."""
    if utc_offset:
        raise UsageError(
            f"{file} ({format_name}) needs no time zone: {times}",
            hint=f"leave --tz {utc_offset} out",
        )


def local_time(zone: timezone, *, guessed: bool = False, question: str = "") -> LocalTime:
    """Return the `LocalTime` of a snapshot for a local time in a zone."""
    return LocalTime((zone.utcoffset(None) or timedelta()) // timedelta(microseconds=1) * 1000, guessed, question)


def ahead_minutes(text: str) -> int:
    """Return the offset of a zone from UTC, minutes.

    Forms: +02:00, +0200, +02, or UTC, GMT, Z in any case. Raises ValueError for others.

    >>> ahead_minutes("-05:30"), ahead_minutes("gmt")
    (-330, 0)
    """
    if text.upper() in ("Z", "UTC", "GMT"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None or whole(match[2]) > _MOST_HOURS:
        raise ValueError(f"{text[:40]!r} is not a zone")
    minutes = whole(match[2]) * 60 + whole(match[3] or "0")
    return -minutes if match[1] == "-" else minutes


def local_ns(text: str, zone: timezone) -> int:
    """Return the ns since 1970 of "2026-11-21 07:07:40.052884087" in a zone. Raises ValueError for other texts."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"no date and time: {text[:40]!r}")
    moment = datetime.fromisoformat(f"{match[1]} {match[2]}")
    return seconds_since_1970(moment, zone) * 10**9 + parse_ns(f"0.{match[3] or 0}".encode(), S)


def is_moment(text: str) -> bool:
    """Return whether `local_ns` reads a text: "2026-11-21 40:07:40" is no time."""
    try:
        local_ns(text, UTC)
    except ValueError:
        return False
    return True


def seconds_since_1970(moment: datetime, zone: timezone) -> int:
    """Return whole seconds since 1970 of a local time in a zone."""
    return (moment.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
