"""Turn text of an input into numbers, times and JSON values: the one place that does; and times into text.

`int`, `float` and `Decimal` accept 1_0, digits of other scripts, infinity and nan, fail at `²` although that is a digit
to `str.isdigit`, and `int` refuses more than 4300 digits. Here a number is ASCII, finite and of limited size, and
everything else is no number.

Times are integer nanoseconds, never made from a float: an epoch time in microseconds needs 51 bits before the decimal
point, so a double has a resolution of a quarter of a microsecond.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

# -- numbers ----------------------------------------------------------------------------------------------------------

_FORM = re.compile(r"[+-]?(?:[0-9]+([.,][0-9]*)?|([.,][0-9]+))([eE][+-]?[0-9]+)?")
#: The largest double, and the most characters of a whole number that is not larger: its digits and a sign.
_LARGEST = int(sys.float_info.max)
_MOST_CHARACTERS = 310
#: The digits of the largest unsigned number of 64 bits; those that fit into a signed one in any case.
_DIGITS_64, _PLAIN_DIGITS = 20, 18
_HEX_DIGITS = 16
_INFINITE = float("inf")


def is_digits(text: str | bytes) -> bool:
    """Return whether a text has one or more digits of ASCII, and nothing else."""
    return text.isdigit() and text.isascii()


def whole_of(text: str | bytes) -> int | None:
    """Return the whole number in a text; None for other texts, and beyond 64 bits, signed or unsigned.

    >>> whole_of("-12"), whole_of(b"007"), whole_of("1.5"), whole_of("²"), whole_of("9" * 20)
    (-12, 7, None, None, None)
    """
    if text.isdigit() and len(text) <= _PLAIN_DIGITS and text.isascii():
        return int(text)
    digits = text if text.isdigit() else text[1:] if text[:1] in ("-", "+", b"-", b"+") else text[:0]
    if len(digits) > _DIGITS_64 or not is_digits(digits):
        return None
    number = int(text)
    return number if len(digits) <= _PLAIN_DIGITS or -(1 << 63) <= number < 1 << 64 else None


def fits_int64(number: int | None) -> bool:
    """Return whether there is a number, and 64 bits with a sign hold it.

    It is not looked for in a `range`: that counts up to what is no int, such as None or a number of numpy.
    """
    return number is not None and -(1 << 63) <= number < 1 << 63


def whole(text: str | bytes) -> int:
    """Return the whole number in a text. ValueError: it is none, or beyond 64 bits."""
    number = whole_of(text)
    if number is None:
        shown = text[:24] if isinstance(text, str) else text[:24].decode("utf-8", "replace")
        raise ValueError(f"not a whole number: {shown!r}")
    return number


def whole_or_text(text: str) -> int | str:
    """Return the whole number in a text, or the text."""
    number = whole_of(text)
    return text if number is None else number


def hex_of(text: str | bytes) -> int | None:
    """Return the hexadecimal number in a text, with or without 0x; None for other texts and more than 64 bits."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    plain = 0 < len(digits) <= _HEX_DIGITS and digits.isalnum() and digits.isascii()
    try:
        return int(digits, 16) if plain else None
    except ValueError:
        return None


def number_of(text: str, mark: str = ".") -> int | float | None:
    """Return the number in a text, which may have blanks around it; None if it is none, or beyond a double.

    Integers are exact. The decimal mark is "." or ",". Thousands separators are not accepted.

    >>> number_of("-12"), number_of("1e3"), number_of("0,5", ","), number_of("1_0"), number_of("nan")
    (-12, 1000.0, 0.5, None, None)
    """
    text = text.strip()
    if is_digits(text):
        return _whole_double(text)
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    decimals = match[1] or match[2]
    if decimals is None and match[3] is None:
        return _whole_double(text)
    if decimals is not None and decimals[0] != mark:
        return None
    value = float(text.replace(mark, "."))
    return value if abs(value) < _INFINITE else None


def _whole_double(text: str) -> int | None:
    number = int(text) if len(text) <= _MOST_CHARACTERS else None
    return number if number is not None and abs(number) <= _LARGEST else None


def double_of(text: str, mark: str = ".") -> float | None:
    """Return the same as a double."""
    number = number_of(text, mark)
    return None if number is None else float(number)


def double(text: str, mark: str = ".") -> float:
    """Return the same. ValueError: the text is not a number in the range of a double."""
    number = double_of(text, mark)
    if number is None:
        raise ValueError(f"not a number: {text[:24]!r}")
    return number


def decimal_of(text: str) -> Decimal | None:
    """Return the number in a text with all its digits; None if a double cannot hold it."""
    number = double_of(text)
    return None if number is None else Decimal(text.strip()) if number else Decimal(0)


def decimal_or_text(text: str) -> Decimal | str:
    """Return the same, or the text."""
    number = decimal_of(text)
    return text if number is None else number


def decimal(text: str) -> Decimal:
    """Return the same. ValueError: a double cannot hold it, or it is not a number."""
    number = decimal_of(text)
    if number is None:
        raise ValueError(f"not a number: {text[:24]!r}")
    return number


# -- times ------------------------------------------------------------------------------------------------------------

#: Powers of ten that turn a unit into nanoseconds.
NS, US, MS, S = 0, 3, 6, 9

#: Times beyond this limit (146 years) are refused: no clock counts so far. Twice the limit is below 2**63 by more than
#: 1 µs: the difference of any two times fits into an int64, also where a writer moves the first one to 0 by whole µs.
LIMIT_NS = 2**62 // 1000 * 1000
#: The time that is before all others, and the one that is after all others, ns.
EVER, FOREVER = -(2**63), 2**63 - 1

_DECIMAL = re.compile(rb"\s*+([+-]?)(\d*+)(?:\.(\d*+))?(?:[eE]([+-]?\d{1,4}))?\s*+", re.ASCII)
_MAX_DIGITS = 40
_MAX_EXPONENT = 18  # larger units are not units of time
_MOST_PLAIN = 18  # digits that an int64 holds in any case
_POWERS: list[int] = [10**exponent for exponent in range(_MAX_EXPONENT + 1)]
_DIGITS = re.compile(r"[+-]?[0-9]*+\.?([0-9]*+)(?:[eE]([+-]?[0-9]+))?")
_DURATION = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?\d+)?)\s*(ns|us|µs|ms|s|min|h)\s*")
_UNITS_DOWN = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))
MINUTE_NS, HOUR_NS, DAY_NS = 60 * 10**9, 3600 * 10**9, 86400 * 10**9
#: Times for people are in seconds below so many minutes.
_MOST_SHORT = 2
#: For each unit its nanoseconds as factor * 10**exponent.
_UNITS = {"ns": (1, NS), "us": (1, US), "µs": (1, US), "ms": (1, MS), "s": (1, S), "min": (60, S), "h": (3600, S)}


def parse_ns(text: bytes, exponent: int, factor: int = 1) -> int:
    """Return the ns of a decimal number in units of factor * 10**exponent ns.

    Digits below a nanosecond are rounded half up (away from zero). Raises ValueError for anything that is not a
    plain finite decimal number, and for times beyond ±LIMIT_NS; TypeError where 10**6 stands for MS.

    >>> parse_ns(b"6345678901234.123", US)
    6345678901234123
    """
    whole, _, decimals = text.partition(b".")
    scale = exponent - len(decimals)
    if factor == 1 and 0 <= scale <= _MAX_EXPONENT and len(text) <= _MOST_PLAIN and (whole + decimals).isdigit():
        value = int(whole + decimals) * _POWERS[scale]  # most numbers are plain; the code below gives the same
        if value <= LIMIT_NS:
            return value
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"not a number: {_shown(text)}")
    digits = match[2] + (match[3] or b"")
    if factor != 1:
        digits = str(int(digits) * factor).encode()
    scale = exponent + int(match[4] or 0) - len(match[3] or b"")
    scaled = _scaled(digits.lstrip(b"0"), scale)
    if scaled is None:
        if exponent > _MAX_EXPONENT:
            raise TypeError(f"parse_ns counts units of 10**exponent ns: NS, US, MS or S, not {exponent}")
        raise ValueError(f"time out of range: {_shown(text)}")
    return -scaled if match[1] == b"-" else scaled


def _scaled(digits: bytes, scale: int) -> int | None:
    """Return digits * 10**scale, rounded half up; None if it is out of range, which is found without big integers."""
    if not digits or len(digits) + scale < 0:
        return 0
    if len(digits) + scale > _MAX_DIGITS:
        return None
    if scale >= 0:
        value = int(digits) * 10**scale
    else:
        cut = len(digits) + scale
        value = int(digits[:cut] or b"0") + (digits[cut : cut + 1] >= b"5")
    return value if value <= LIMIT_NS else None


def _shown(text: bytes) -> str:
    shown = text[:24].decode("utf-8", "replace")
    return repr(shown + "..." if len(text) > 24 else shown)


def parse_duration(text: str) -> int:
    """Return the ns of a signed duration with a unit, such as "+1.5ms", "-20us", "1795245457.236s".

    Raises ValueError if the unit is missing or the number is invalid.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time with a unit (ns, us, ms, s, min, h), such as +1.5ms")
    factor, exponent = _UNITS[match[2]]
    return parse_ns(match[1].encode(), exponent, factor)


def step_of(text: str, ns: int) -> int:
    """Return the value of one unit in the last digit of a duration, ns.

    A duration of zero is exact: it means the zero of a clock, or no offset.
    """
    match = _DIGITS.match(text.strip())
    if match is None or not ns:
        return 0
    unit = text.strip()[match.end() :].strip()
    exponent = int(match[2] or 0) - len(match[1])
    return max(parse_duration(f"1e{exponent}{unit}"), 1) if -20 < exponent < 20 else 0


def format_us(ns: int) -> str:
    """Return a time (ns) in microseconds, with as many decimals as needed: 1500 -> "1.5", 2000 -> "2"."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1000)
    return f"{sign}{whole}.{rest:03d}".rstrip("0") if rest else f"{sign}{whole}"


def format_time(ns: int) -> str:
    """Return a time (ns) for people, exact, in the unit that makes the number short."""
    for unit, size in _UNITS_DOWN:
        if abs(ns) >= size:
            whole, rest = divmod(abs(ns), size)
            digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0")
            return f"{'-' if ns < 0 else ''}{whole}{'.' + digits if digits else ''} {unit}"
    return f"{ns} ns"


def format_option(ns: int) -> str:
    """Return a time (ns) in the form of options, signed and exact: "+1.5ms", "-20us", "+1795242185.473424266s"."""
    return f"{'+' if ns >= 0 else ''}{format_time(ns)}".replace(" ", "").replace("µ", "u")


def format_uncertainty(ns: int) -> str:
    """Return an uncertainty (ns) in the form of options, rounded up to two digits: 1096 -> "1.1us"."""
    step = 10 ** max(len(str(ns)) - 2, 0)
    return format_option(-(-ns // step) * step)[1:]


def format_short(ns: float) -> str:
    """Return a time (ns) for people, in three digits: "71.5 ms"; from an hour on like `format_long`."""
    if abs(ns) >= HOUR_NS:
        return format_long(int(ns))
    # 999.5 of a unit are 1 of the next one in three digits.
    size, unit = next(((size, unit) for unit, size in _UNITS_DOWN if 2000 * abs(ns) >= 1999 * size), (1, "ns"))
    value = ns / size
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} {unit}"


def format_long(ns: int) -> str:
    """Return a time (ns) for people that may be hours: "1 h 22 min", "-3 d 4 h"; below two minutes in three digits."""
    size = abs(ns)
    minutes, hours, days = size // MINUTE_NS, size // HOUR_NS, size // DAY_NS
    if minutes < _MOST_SHORT:
        return format_short(ns)
    parts = [(days, "d"), (hours % 24, "h"), (0 if days else minutes % 60, "min")]
    return ("-" if ns < 0 else "") + " ".join(f"{count} {unit}" for count, unit in parts if count)


def format_within(ns: int, within: int) -> str:
    """Return a time (ns) like `format_long`, with more digits if that would be wrong by more than `within` (ns)."""
    size = abs(ns)
    minutes = size // MINUTE_NS
    if minutes < _MOST_SHORT:
        shown = parse_duration(format_short(size))
    else:
        step = HOUR_NS if size >= DAY_NS else MINUTE_NS
        shown = size // step * step
    if abs(size - shown) <= within:
        return format_long(ns)
    step = 10 ** (len(str(within)) - 1)
    size = (size + step // 2) // step * step
    rest = size % MINUTE_NS if size >= _MOST_SHORT * MINUTE_NS else size
    whole = size - rest
    counts = [(whole // DAY_NS, "d"), (whole // HOUR_NS % 24, "h"), (whole // MINUTE_NS % 60, "min")]
    parts = [f"{count} {unit}" for count, unit in counts if count] + [format_time(rest)] * bool(rest)
    return ("-" if ns < 0 else "") + " ".join(parts)


def earlier_or_later(ns: int) -> str:
    """Return an offset (ns) for people: "1.5 ms later"."""
    return f"{format_short(abs(ns))} {'earlier' if ns < 0 else 'later'}"


def format_bound(ns: int | None) -> str:
    """Return a bound (ns) for people: "±1.5 µs"."""
    return "not known" if ns is None else f"±{format_time(ns)}"


def format_drift(ppm: float) -> str:
    """Return a drift (ppm) for people."""
    return f"{ppm:+.3f} ppm"


# -- JSON -------------------------------------------------------------------------------------------------------------

#: Values nested deeper than this become text, since the limit of decoders differs between versions of Python.
MAX_DEPTH = 200

#: In JSON an escaped backslash, a surrogate pair, or half of one: only the last has a group.
HALF_PAIR = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_decode = msgspec.json.Decoder().decode


def flatten(value: bytes, levels: int = MAX_DEPTH) -> bytes:
    """Return a JSON value in which values nested deeper than `levels` are texts, also one that never ends."""
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return value
    out: list[bytes] = []
    depth = done = deep = 0
    for match in _STRING_OR_BRACKET.finditer(value):
        if match[0] in b"{[":
            depth += 1
            if depth == levels + 1:
                out.append(value[done : match.start()])
                deep = match.start()
        elif match[0] in b"}]":
            if depth == levels + 1:
                done = match.end()
                out.append(_as_text(value[deep:done]))
            depth -= 1
    if depth > levels:
        done = len(value)
        out.append(_as_text(value[deep:]))
    return b"".join(out) + value[done:]


def _as_text(value: bytes) -> bytes:
    return json.dumps(value.decode("utf-8", "replace"), ensure_ascii=False).encode()


def whole_pairs(raw: bytes) -> bytes:
    """Return JSON with U+FFFD for each escape of half a surrogate pair, which is not text: no encoder takes it."""
    return HALF_PAIR.sub(lambda match: b"\\ufffd" if match[1] else match[0], raw) if b"\\u" in raw else raw


def decode_json(raw: bytes | memoryview) -> Any:
    """Decode a valid JSON text. Numbers out of the range of a double, and values nested too deeply, stay text."""
    raw = flatten(bytes(raw))
    try:
        return _decode(raw)
    except msgspec.ValidationError:
        return read_json(raw)


def read_json(raw: bytes, **readers: Callable[[Any], Any]) -> Any:
    r"""Decode JSON as Python writes it: also NaN, control characters, and halves of surrogate pairs, as U+FFFD.

    NaN, numbers out of the range of a double, and values nested too deeply, stay text. `readers` of `json.loads`, such
    as `parse_float`, replace these rules. Raises ValueError for other text.

    >>> read_json(rb'["\ud800", NaN, 1e400]') == ["\ufffd", "NaN", "1e400"]
    True
    """
    rules: dict[str, Any] = {
        "parse_constant": str,
        "parse_float": number_or_text,
        "parse_int": number_or_text,
    } | readers
    return json.loads(whole_pairs(flatten(raw)).decode("utf-8", "replace"), strict=False, **rules)


def number_or_text(text: str) -> float | str:
    """Return a number of JSON; its text if it is out of the range of a double, or an integer of over 4300 digits."""
    try:
        return _decode(text)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return text
