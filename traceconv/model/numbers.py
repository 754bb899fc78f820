"""Turn text of an input into numbers: the one place that does.

`int`, `float` and `Decimal` accept 1_0, digits of other scripts, infinity and nan, fail at `²` although that is a digit
to `str.isdigit`, and `int` refuses more than 4300 digits. Here a number is ASCII, finite and of limited size, and
everything else is no number. Times in ns have their own function, `traceconv.model.times.parse_ns`.
"""

from __future__ import annotations

import re
from decimal import Decimal

_FORM = re.compile(r"[+-]?(?:[0-9]+([.,][0-9]*)?|([.,][0-9]+))([eE][+-]?[0-9]+)?")
#: The most digits of a double before the point.
_MOST_DIGITS = 309
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
    """Return the whole number in a text.

    Raises:
        ValueError: it is none, or beyond 64 bits.
    """
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
    """Return the number in a text, which may have blanks around it.

    Integers are exact. Return None if the text is not a number that JSON can hold.

    Args:
        mark: the decimal mark, "." or ",". Thousands separators are not accepted.

    >>> number_of("-12"), number_of("1e3"), number_of("0,5", ","), number_of("1_0"), number_of("nan")
    (-12, 1000.0, 0.5, None, None)
    """
    text = text.strip()
    if is_digits(text):
        return int(text) if len(text) <= _MOST_DIGITS else None
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    decimals = match[1] or match[2]
    if decimals is None and match[3] is None:
        return int(text) if len(text) <= _MOST_DIGITS else None
    if decimals is not None and decimals[0] != mark:
        return None
    value = float(text.replace(mark, "."))
    return value if abs(value) < _INFINITE else None


def double_of(text: str, mark: str = ".") -> float | None:
    """Return the same as a double; None also for integers beyond its range."""
    number = number_of(text, mark)
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


def double(text: str, mark: str = ".") -> float:
    """Return the same.

    Raises:
        ValueError: the text is not a number in the range of a double.
    """
    number = double_of(text, mark)
    if number is None:
        raise ValueError(f"not a number: {text[:24]!r}")
    return number


def decimal_of(text: str) -> Decimal | None:
    """Return the number in a text with all its digits; None if a double cannot hold it."""
    number = double_of(text)
    return None if number is None else Decimal(text.strip()) if number else Decimal(0)


def decimal(text: str) -> Decimal:
    """Return the same.

    Raises:
        ValueError: a double cannot hold it, or it is not a number.
    """
    number = decimal_of(text)
    if number is None:
        raise ValueError(f"not a number: {text[:24]!r}")
    return number
